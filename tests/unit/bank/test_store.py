"""Banks on disk: everything comes back, damage is found, and what was there before is never lost."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from changed_bank import changed
from spectral_irt import SpectralRasch, simulate
from spectral_irt.bank import Bank, storage
from spectral_irt.bank.evidence import Evidence
from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding
from spectral_irt.data.block import Thresholds
from spectral_irt.data.labels import label_array
from spectral_irt.errors import BankError, OutputError


@pytest.fixture(scope="module")
def bank() -> Bank:
    data = simulate.rasch(200, 12, design="sampled", p=0.3, seed=1).responses
    bank = Bank.from_fit(SpectralRasch().fit(data), data)
    difficulty, se = bank.difficulty.copy(), bank.se.copy()
    difficulty[3], se[3] = np.nan, np.nan
    finding = Finding("a", "note", 'one "two" ü', "do", (1, "x"))
    return changed(bank, thresholds=difficulty, threshold_se=se, findings=(finding,)).rescale(mean=500, sd=100)


def assert_same(a: Any, b: Any) -> None:
    for column in fields(a):
        one, other = getattr(a, column.name), getattr(b, column.name)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype, column.name
            np.testing.assert_array_equal(one, other, err_msg=column.name)
        elif isinstance(one, Calibration | Evidence):
            assert_same(one, other)
        elif isinstance(one, Thresholds):
            assert np.array_equal(one.max_score, other.max_score)
        else:
            assert one == other, column.name


def test_everything_comes_back(bank: Bank, tmp_path: Path) -> None:
    folder = bank.save(tmp_path / "some" / "bank")
    assert_same(bank, Bank.load(folder))
    assert_same(bank, Bank.load(str(folder)))
    manifest = json.loads((folder / "bank.json").read_text())
    assert manifest["format_version"] == 6
    assert manifest["data"][0]["digest"] == bank.data[0].digest
    assert {path.name.split(".")[0] for path in folder.iterdir()} == {"bank", "categories", "information", "items"}
    table = pl.read_parquet(folder / manifest["tables"]["items"]["file"])
    assert table["difficulty"].null_count() == 1
    without = changed(bank, matrix=None)
    assert_same(without, Bank.load(without.save(tmp_path / "no matrix")))


any_text = st.text(alphabet=st.characters(), max_size=20)  # lone surrogates, control characters, everything
labels = st.lists(any_text | st.integers() | st.floats(allow_nan=False), min_size=1, max_size=12, unique_by=repr)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(labels=labels)
def test_labels_survive_exactly(bank: Bank, tmp_path: Path, labels: list[Any]) -> None:
    m = len(labels)
    made, kept = bank.calibration, bank.evidence
    columns = {name: getattr(made, name)[:m] for name in ("thresholds", "threshold_se", "status", "n", "score")}
    some = Calibration(labels=label_array(labels), item_information=made.item_information[:m], **columns)
    of_thresholds = (kept.information[:m], kept.prior_mean[:m], kept.prior_gradient[:m], kept.link_group[:m])
    renamed = Bank(calibration=some, evidence=Evidence(*of_thresholds))
    again = Bank.load(renamed.save(tmp_path / "bank")).items.tolist()
    assert again == labels
    assert [type(label) for label in again] == [type(label) for label in labels]


def test_labels_of_strange_kinds_are_refused() -> None:
    strange = np.empty(1, dtype=object)
    strange[0] = ("a", 1)
    with pytest.raises(BankError, match="is a tuple"):
        storage.encoded(strange)


# ------------------------------------------------------------------------------------------------- damage


def saved(bank: Bank, tmp_path: Path) -> Path:
    return bank.save(tmp_path / "bank")


@pytest.mark.parametrize("table", ["items", "categories", "information"])
def test_a_changed_table_is_found(bank: Bank, tmp_path: Path, table: str) -> None:
    folder = saved(bank, tmp_path)
    path = next(folder.glob(f"{table}.*.parquet"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(BankError, match=f"{table}.*checksum is wrong"):
        Bank.load(folder)
    path.unlink()
    with pytest.raises(BankError, match=f"not complete: '{table}.*is missing"):
        Bank.load(folder)


def test_a_changed_manifest_is_found(bank: Bank, tmp_path: Path) -> None:
    folder = saved(bank, tmp_path)
    path = folder / "bank.json"
    text = path.read_text()
    path.write_text(text.replace('"unit": ', '"unit": 1'))
    with pytest.raises(BankError, match=r"bank\.json.*checksum is wrong"):
        Bank.load(folder)
    for broken in (text[:-20], "[1, 2]", "", "{}"):
        path.write_text(broken)
        with pytest.raises(BankError, match=r"checksum|not a bank"):
            Bank.load(folder)


def test_names_outside_the_folder_are_not_opened(bank: Bank, tmp_path: Path) -> None:
    folder = saved(bank, tmp_path)
    record = json.loads((folder / "bank.json").read_text())
    record.pop("sha256")
    record["tables"]["items"]["file"] = "../secret.parquet"
    (folder / "bank.json").write_bytes(storage._sealed(record)[0])
    with pytest.raises(BankError, match="lies outside"):
        Bank.load(folder)
    record["tables"]["items"] = 5
    (folder / "bank.json").write_bytes(storage._sealed(record)[0])
    with pytest.raises(BankError, match="cannot be understood"):
        Bank.load(folder)


@pytest.mark.parametrize(
    ("table", "lie", "says"),
    [
        ("items", pl.lit(None, dtype=pl.String).alias("status"), "not as it should be"),
        ("items", pl.col("n").cast(pl.String).alias("n"), "not as it should be"),
        ("items", pl.lit(1).alias("more"), "not as it should be"),
        ("categories", pl.lit(40, dtype=pl.Int32).alias("item"), "cannot be understood"),
        ("categories", pl.lit(None, dtype=pl.Float64).alias("prior_gradient"), "not as it should be"),
        ("information", pl.lit(40, dtype=pl.Int32).alias("row"), "cannot be understood"),
    ],
)
def test_a_resealed_table_that_lies(bank: Bank, tmp_path: Path, table: str, lie: pl.Expr, says: str) -> None:
    folder = saved(bank, tmp_path)
    record = json.loads((folder / "bank.json").read_text())
    path = folder / record["tables"][table]["file"]
    pl.read_parquet(path).with_columns(lie).write_parquet(path)
    del record["sha256"]
    record["tables"][table]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "bank.json").write_bytes(storage._sealed(record)[0])
    with pytest.raises(BankError, match=says):
        Bank.load(folder)


# ------------------------------------------------------------------------------- nothing is lost on the way


def test_a_bank_replaces_a_bank_and_leaves_no_litter(bank: Bank, tmp_path: Path) -> None:
    folder = saved(bank, tmp_path)
    other = changed(bank, thresholds=bank.difficulty + 1)
    other.save(folder)
    assert_same(other, Bank.load(folder))
    assert len(list(folder.iterdir())) == 4
    other.save(folder)  # the very same again
    assert_same(other, Bank.load(folder))
    assert [path.name for path in tmp_path.iterdir()] == ["bank"]


@pytest.mark.parametrize("step", range(1, 10))
def test_a_crash_at_any_step_leaves_the_old_bank_whole(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Each write, flush to disk and move in turn fails, as on a full disk or when the power goes."""
    folder = saved(bank, tmp_path)
    calls = 0

    def failing(real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == step:
                raise OSError(28, "No space left on device")
            return real(*args, **kwargs)

        return call

    other = changed(bank, thresholds=bank.difficulty + 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(os.fsync))
        patch.setattr(os, "replace", failing(os.replace))
        if step <= 8:  # three tables and the manifest, each flushed and moved
            with pytest.raises(OutputError, match="The bank that was there is unchanged"):
                other.save(folder)
        else:
            other.save(folder)
    assert_same(bank if step <= 8 else other, Bank.load(folder))
    assert len(list(folder.iterdir())) == 4


def test_a_damaged_bank_is_replaced_by_a_whole_one(bank: Bank, tmp_path: Path) -> None:
    folder = saved(bank, tmp_path)
    next(folder.glob("information.*.parquet")).write_bytes(b"damaged")
    bank.save(folder)
    assert_same(bank, Bank.load(folder))


def test_a_first_save_that_fails_leaves_nothing(bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="Nothing was written"):
        bank.save(tmp_path / "bank")
    assert list(tmp_path.iterdir()) == []


def test_other_files_are_not_written_over(bank: Bank, tmp_path: Path) -> None:
    (tmp_path / "thesis.doc").write_text("important")
    with pytest.raises(OutputError, match=r"other files \('thesis.doc'\), not a bank"):
        bank.save(tmp_path)
    with pytest.raises(OutputError, match="is a file"):
        bank.save(tmp_path / "thesis.doc")
    with pytest.raises(OutputError, match="Nothing was written"):
        bank.save(tmp_path / "thesis.doc" / "bank")
    (tmp_path / "empty").mkdir()
    assert_same(bank, Bank.load(bank.save(tmp_path / "empty")))
