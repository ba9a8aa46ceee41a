"""`fit` with an answer key: every option, wrong keys, blanks that count."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

pytestmark = pytest.mark.slow  # many short runs of whole jobs

Cli = Callable[..., Any]


def test_with_a_key_every_option_is_written_and_a_wrong_key_is_said(cli: Cli) -> None:
    rng = np.random.default_rng(4)
    right = rng.random((400, 12)) < 1 / (1 + np.exp(np.linspace(-1, 1, 12) - rng.normal(size=(400, 1))))
    chosen = np.where(right, "A", np.array(list("BCD"))[rng.integers(0, 3, right.shape)]).astype(object)
    chosen[::9, 10:] = ""
    chosen[5, 3] = ""
    names = [f"q{k + 1}" for k in range(12)]
    pl.DataFrame({"id": np.arange(400), **dict(zip(names, chosen.T.tolist(), strict=True))}).write_csv("answers.csv")
    pl.DataFrame({"item": names, "key": ["A"] * 7 + ["C"] + ["A"] * 4}).write_csv("key.csv")
    done = cli("fit", "answers.csv", "--key", "key.csv", "--blanks", "not-reached=wrong", "-o", "out", "--all")
    assert done.code == 0, done.err
    assert "The key of 1 item is probably wrong. 'q8': the key is 'C', but the" in " ".join(done.out.split())
    assert "Cells that count as wrong, as asked: 90 not-reached" in " ".join(done.out.split())
    table = pl.read_csv("out/distractors.csv")
    assert table.columns[:5] == ["item", "option", "key", "n", "share"]
    assert table["n"].sum() == 400 * 12 - 1  # one omitted
    assert table.filter(pl.col("option") == "(blank)")["n"].to_list() == [45, 45]
    analysis = pl.read_csv("out/item_analysis.csv")
    assert analysis["omitted"].sum() == 1
    assert analysis["not_reached"].to_list() == [0] * 10 + [45, 45]
    assert analysis["n"].to_list() == [400] * 3 + [399] + [400] * 8
    record = json.loads(Path("out/fit.json").read_text(encoding="utf-8"))
    assert record["input"]["reading"]["not_reached"] == "wrong"
    assert "distractors.csv" in record["outputs"]
    assert cli("fit", "answers.csv", "--correct", "A", "-o", "out", "--all").code == 0  # no key: the table is stale
    assert not Path("out/distractors.csv").exists()
    bad = cli("fit", "answers.csv", "--key", "key.csv", "--blanks", "omitted=zero")
    assert bad.code == 2
    assert "--blanks is 'omitted=zero'; it can be omitted=wrong, not-reached=wrong" in " ".join(bad.err.split())
