"""Banks through the command line: kept by `fit --bank`, linked by `link`; those that cannot be trusted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from end_to_end.banks import contents, refused, write
from end_to_end.tables import numbers, read_csv
from spectral_irt import SpectralRasch
from spectral_irt.analysis import folder
from spectral_irt.bank import Bank, storage
from spectral_irt.errors import OutputError
from spectral_irt.reading import read

pytestmark = pytest.mark.slow  # many short runs of whole commands, or of long updates

Cli = Callable[..., Any]


def test_a_fit_is_kept(cli: Cli, bank: Path) -> None:
    fit = SpectralRasch().fit(read("old.csv"))
    kept = Bank.load(bank)
    assert kept.items.tolist() == fit.item_labels_.tolist()
    np.testing.assert_array_equal(kept.difficulty, fit.difficulty_)
    assert kept.data[0].source == "old.csv"
    write("other.csv", 2)
    assert cli("fit", "other.csv", "--bank", bank).code == 0  # a bank is replaced by a bank
    assert Bank.load(bank).data[0].source == "other.csv"


def test_a_bank_that_cannot_be_saved_takes_the_results_with_it(
    cli: Cli, bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(bank)

    def full(*_: Any) -> None:
        raise OutputError("the bank 'bank' cannot be written: No space left on device.")

    monkeypatch.setattr(storage, "save", full)
    write("other.csv", 2)
    refused(cli("fit", "other.csv", "--bank", bank, "-o", "out"), "No space left")
    assert not Path("out").exists()
    assert contents(bank) == before


def test_results_that_cannot_be_written_leave_the_bank_alone(
    cli: Cli, bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(bank)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "write_json", full)
    write("other.csv", 2)
    refused(cli("fit", "other.csv", "--bank", bank, "-o", "out"), "the disk is full")
    assert contents(bank) == before


# ------------------------------------------------------------------------------- what is no good bank


def damaged(bank: Path, how: str) -> None:
    manifest = bank / "bank.json"
    record = json.loads(manifest.read_text())
    table = next(bank.glob("items.*.parquet"))
    if how == "another version":
        manifest.write_text(json.dumps({**record, "format_version": 99}))
    elif how == "edited":
        manifest.write_text(manifest.read_text().replace("SpectralRasch", "SpectralRash"))
    elif how == "a byte of a table":
        table.write_bytes(table.read_bytes()[:-1] + b"x")
    elif how == "a table is gone":
        table.unlink()
    elif how == "no manifest":
        manifest.unlink()
    elif how == "something else":
        manifest.write_text('{"kind": "a savings bank"}')


BAD_BANKS = {
    "another version": "has format version 99",
    "edited": "its checksum is wrong",
    "a byte of a table": "its checksum is wrong",
    "a table is gone": "is not complete",
    "no manifest": "is not a bank",
    "something else": "is not a bank of spectral-irt",
    "nothing": "there is no bank at 'nowhere'",
}


@pytest.mark.slow
@pytest.mark.parametrize("how", BAD_BANKS)
def test_a_bank_that_cannot_be_trusted_is_not_used_and_not_touched(cli: Cli, bank: Path, how: str) -> None:
    write("new.csv", 3)
    cli("fit", "new.csv", "--bank", "good")
    place = Path("nowhere") if how == "nothing" else bank
    damaged(bank, how)
    before = contents(bank)
    files = sorted(os.listdir())
    refused(cli("score", "new.csv", "--bank", place, "-o", "out"), BAD_BANKS[how])
    refused(cli("update", place, "new.csv"), BAD_BANKS[how])
    refused(cli("link", "good", place, "-o", "linked"), BAD_BANKS[how])
    refused(cli("link", place, "good"), BAD_BANKS[how])
    refused(cli("fit", "new.csv", "--anchors", place, "-o", "out"), BAD_BANKS[how])
    assert contents(bank) == before
    assert sorted(os.listdir()) == files


@pytest.mark.parametrize("how", ["nested", "resealed"])
def test_a_hostile_bank_is_refused_in_a_sentence(cli: Cli, bank: Path, how: str) -> None:
    write("new.csv", 3)
    manifest = bank / "bank.json"
    if how == "nested":
        manifest.write_text("[" * 100_000 + "]" * 100_000)
    else:
        record = json.loads(manifest.read_text())
        del record["sha256"]
        record["scale"]["unit"] = "wide"
        manifest.write_bytes(storage._sealed(record)[0])
    before = contents(bank)
    for command in (("score", "new.csv", "--bank", bank), ("update", bank, "new.csv"), ("link", bank, bank)):
        refused(cli(*command))
    refused(cli("fit", "new.csv", "--anchors", bank))
    assert contents(bank) == before


# -------------------------------------------------------------------------------------------- linking


@pytest.mark.parametrize("method", ["robust", "mean"])
def test_two_banks_are_linked(cli: Cli, bank: Path, method: str) -> None:
    write("later.csv", 4, items=10, first=4, persons=600)
    cli("fit", "later.csv", "--bank", "later")
    done = cli("link", bank, "later", "--method", method, "-o", "linked", "--common-items", "common.csv")
    assert (done.code, done.err) == (0, "")
    expected = Bank.load(bank).link(Bank.load("later"), method)
    assert f"{expected.shift:+.3f} logits (se {expected.shift_se:.3f}), {method}" in " ".join(done.out.split())
    linked = Bank.load("linked")
    np.testing.assert_allclose(linked.difficulty, expected.shift + Bank.load("later").difficulty, rtol=1e-12)
    rows = read_csv("common.csv")
    assert [row["item"] for row in rows] == [f"q{k}" for k in range(4, 10)]
    assert numbers(rows, "difference") == expected.difference.tolist()
    assert {row["drift"] for row in rows} == {"false"}


def test_a_drifted_item_is_named_and_nothing_is_written_unasked(cli: Cli, bank: Path) -> None:
    table = pl.read_csv(write("later.csv", 4, persons=600))
    table.with_columns(q5=1 - pl.col("q0")).write_csv("later.csv")
    cli("fit", "later.csv", "--bank", "later")
    before = contents(bank), contents(Path("later"))
    done = cli("link", bank, "later")
    assert done.out.splitlines()[1].startswith("q5 ")
    assert " harder in " in done.out.splitlines()[1]
    text = " ".join(done.out.split())
    assert "1 of 10 common items, beyond a robust z of 3; left out of the link" in text
    assert "agreement the others agree within their errors (Q = " in text
    assert "carried into the standard errors of B (from the information matrix of each)" in text
    assert "Nothing was saved" in done.out
    assert (contents(bank), contents(Path("later"))) == before


def test_links_that_cannot_be(cli: Cli, bank: Path) -> None:
    write("apart.csv", 5, items=8, first=12)
    write("barely.csv", 6, items=8, first=9)
    for name in ("apart", "barely"):
        cli("fit", f"{name}.csv", "--bank", name)
    refused(cli("link", bank, "apart"), "share 0 items", "Check the labels")
    refused(cli("link", bank, "barely", "-o", "x"), "share 1 items: 'q9'", "--method robust needs at least 3")
    refused(cli("link", bank, "apart", "--method", "magic"), "--method is 'magic'", "'mean'")
    refused(cli("link", bank, bank, "-o", bank), "which is being read")
    refused(cli("link", bank, bank, "--common-items", "t.xls"), "none of .csv, .parquet and .xlsx")
    refused(cli("link", bank, bank, "-o", "."), "not a bank; choose another place")
    assert not Path("x").exists()
