"""Numbers of other programs in tests/reference (see README.md there): the data, and what the programs say of them."""

import json
from pathlib import Path

import numpy as np
import polars as pl

from spectral_irt import Responses

HERE = Path(__file__).parent / "reference"
SETS = ["lsat6", "test15", "missing12", "booklets24"]


def table(name):
    return pl.read_csv(HERE / f"{name}.csv", null_values=["NA", "NaN"])


def answers(name):
    return Responses.from_wide(table(name))


def said(name):
    return json.loads((HERE / f"{name}.json").read_text())


def of_items(values, items):
    return np.array([values[item] for item in items])


def close(ours, theirs, atol, rtol=0):
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)
