"""Labels are data: they come out of files and on the terminal as they went in."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from end_to_end.odd_labels import LABELS, odd_labels
from end_to_end.tables import rows_of, strict_json
from spectral_irt import SpectralRasch
from spectral_irt.bank.anchors import as_anchors
from spectral_irt.reading import read
from spectral_irt.tables import unguarded

pytestmark = pytest.mark.slow  # whole runs of commands

Cli = Callable[..., Any]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_labels_come_out_as_they_went_in(cli: Cli, kind: str) -> None:
    assert cli("fit", odd_labels(kind), "-o", "out", "--parquet").code == 0
    cells = [row[0] for row in rows_of(Path("out/items.csv"))[1:]]
    found = [unguarded(cell) for cell in cells]
    assert sorted(found) == sorted(LABELS)
    assert pl.read_csv("out/items.csv")["item"].to_list() == cells
    assert as_anchors("out/items.csv").items.tolist() == found  # our own reader
    assert pl.read_parquet("out/items.parquet")["item"].to_list() == found


def test_labels_come_out_as_they_went_in_findings(cli: Cli) -> None:
    with Path("a.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "q1", "q2", *LABELS])
        writer.writerows([[f"p{k}", k % 2, (k // 2) % 2, *[1] * len(LABELS)] for k in range(8)])
    assert cli("fit", "a.csv", "-o", "out").code == 0
    findings = {finding["code"]: finding for finding in strict_json(Path("out/fit.json"))["findings"]}
    assert findings["extreme_items"]["items"] == LABELS


def test_labels_are_never_markup_on_the_terminal(cli: Cli) -> None:
    done = cli("fit", odd_labels("csv"))
    kept = {c for c in done.out if not c.isprintable()}
    assert kept == {"\n"}
    columns = SpectralRasch().fit(read("odd.csv")).item_columns()
    order = np.argsort(-columns["difficulty"], kind="stable")
    shown = [columns["item"][k] for k in [*order[:5], *order[-5:]]]
    for label in shown:
        if label.isprintable() and len(label) < 12:
            assert label in done.out
