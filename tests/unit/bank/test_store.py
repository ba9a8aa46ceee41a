"""Banks on disk: everything comes back, damage is found, nothing that was there is lost, whoever else is writing."""

import hashlib
import json
import os
import stat
import subprocess
import sys
import time
from dataclasses import fields
from functools import partial
from unittest import mock

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from changed_bank import bank_of, changed
from spectral_irt import simulate
from spectral_irt.bank import Bank, storage
from spectral_irt.bank.evidence import Evidence
from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding
from spectral_irt.data.block import Thresholds
from spectral_irt.data.labels import label_array
from spectral_irt.errors import BankError, OutputError, StaleBankError
from spectral_irt.files import draft_beside


@pytest.fixture(scope="module")
def bank():
    bank = bank_of(simulate.rasch(200, 12, design="sampled", p=0.3, seed=1).responses)
    difficulty, se = bank.difficulty.copy(), bank.se.copy()
    difficulty[3], se[3] = np.nan, np.nan
    finding = Finding("a", "note", 'one "two" ü', "do", (1, "x"))
    return changed(bank, thresholds=difficulty, threshold_se=se, findings=(finding,)).rescale(mean=500, sd=100)


def assert_same(a, b):
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


def test_everything_comes_back(bank, tmp_path):
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
    with pytest.raises(BankError, match="is a tuple"):  # a label of a strange kind
        storage.labels_as_json(np.array([("a", 1), None], dtype=object))


anything = st.text(alphabet=st.characters(), max_size=20) | st.integers() | st.floats(allow_nan=False)
labels = st.lists(anything, min_size=1, max_size=12, unique_by=repr)  # lone surrogates, control characters, everything


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(labels=labels)
def test_labels_survive_exactly(bank, tmp_path, labels):
    m = len(labels)
    made, kept = bank.calibration, bank.evidence
    columns = {name: getattr(made, name)[:m] for name in ("thresholds", "threshold_se", "status", "n", "score")}
    some = Calibration(labels=label_array(labels), item_information=made.item_information[:m], **columns)
    of_thresholds = (kept.information[:m], kept.prior_mean[:m], kept.prior_gradient[:m], kept.link_group[:m])
    renamed = Bank(calibration=some, evidence=Evidence(*of_thresholds))
    again = Bank.load(renamed.save(tmp_path / "bank")).items.tolist()
    assert again == labels
    assert [type(label) for label in again] == [type(label) for label in labels]


@pytest.mark.parametrize("table", ["items", "categories", "information"])
def test_a_changed_table_is_found(bank, tmp_path, table):
    folder = bank.save(tmp_path / "bank")
    path = next(folder.glob(f"{table}.*.parquet"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(BankError, match=f"{table}.*checksum is wrong"):
        Bank.load(folder)
    path.unlink()
    with pytest.raises(BankError, match=f"not complete: '{table}.*is missing"):
        Bank.load(folder)


def test_a_changed_manifest_is_found(bank, tmp_path):
    folder = bank.save(tmp_path / "bank")
    path = folder / "bank.json"
    text = path.read_text()
    path.write_text(text.replace('"unit": ', '"unit": 1'))
    with pytest.raises(BankError, match=r"bank\.json.*checksum is wrong"):
        Bank.load(folder)
    for broken in (text[:-20], "[1, 2]", "", "{}"):
        path.write_text(broken)
        with pytest.raises(BankError, match=r"checksum|not a bank"):
            Bank.load(folder)


def test_a_resealed_manifest_that_lies_and_names_outside_the_folder_which_are_not_opened(bank, tmp_path):
    folder = bank.save(tmp_path / "bank")
    record = json.loads((folder / "bank.json").read_text())
    record.pop("sha256")
    tables, items = record["tables"], record["tables"]["items"]
    for lie, words in (
        ({"tables": {**tables, "items": {**items, "file": "../secret.parquet"}}}, "lies outside"),
        ({"tables": {**tables, "items": 5}}, "cannot be understood"),
        ({"scale": {**record["scale"], "unit": "wide"}}, "worth 'wide'"),
    ):
        (folder / "bank.json").write_bytes(storage._seal_record(record | lie)[0])
        with pytest.raises(BankError, match=words):
            Bank.load(folder)


@pytest.mark.parametrize(
    ("table", "lie", "says"),
    [
        ("items", pl.lit(None, dtype=pl.String).alias("status"), "not as it should be"),
        ("items", pl.col("n").cast(pl.String).alias("n"), "not as it should be"),
        ("items", pl.lit(1).alias("more"), "not as it should be"),
        ("categories", pl.lit(40, dtype=pl.Int32).alias("item"), "items that it does not have"),
        ("categories", pl.lit(None, dtype=pl.Float64).alias("prior_gradient"), "not as it should be"),
        ("information", pl.lit(40, dtype=pl.Int32).alias("row"), "thresholds that it does not have"),
    ],
)
def test_a_resealed_table_that_lies(bank, tmp_path, table, lie, says):
    folder = bank.save(tmp_path / "bank")
    record = json.loads((folder / "bank.json").read_text())
    path = folder / record["tables"][table]["file"]
    pl.read_parquet(path).with_columns(lie).write_parquet(path)
    del record["sha256"]
    record["tables"][table]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "bank.json").write_bytes(storage._seal_record(record)[0])
    with pytest.raises(BankError, match=says):
        Bank.load(folder)


def test_a_bank_replaces_a_bank_and_leaves_no_litter(bank, tmp_path):
    folder = bank.save(tmp_path / "bank")
    other = changed(bank, thresholds=bank.difficulty + 1)
    other.save(folder)
    assert_same(other, Bank.load(folder))
    assert len(list(folder.iterdir())) == 4
    other.save(folder)  # the very same again
    assert_same(other, Bank.load(folder))
    next(folder.glob("information.*.parquet")).write_bytes(b"damaged")
    other.save(folder)
    assert_same(other, Bank.load(folder))
    assert [path.name for path in tmp_path.iterdir()] == ["bank"]


@pytest.mark.parametrize("step", range(1, 10))
def test_a_crash_at_any_step_leaves_the_old_bank_whole(bank, tmp_path, monkeypatch, step):
    """Each write, flush to disk and move in turn fails, as on a full disk or when the power goes."""
    folder = bank.save(tmp_path / "bank")
    fails = iter([False] * (step - 1) + [True] + [False] * 20)

    def failing(real, *args):
        if next(fails):
            raise OSError(28, "No space left on device")
        return real(*args)

    other = changed(bank, thresholds=bank.difficulty + 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", partial(failing, os.fsync))
        patch.setattr(os, "replace", partial(failing, os.replace))
        if step <= 8:  # three tables and the manifest, each flushed and moved
            with pytest.raises(OutputError, match="The bank that was there is unchanged"):
                other.save(folder)
        else:
            other.save(folder)
    assert_same(bank if step <= 8 else other, Bank.load(folder))
    assert len(list(folder.iterdir())) == 4


def test_a_first_save_that_fails_leaves_nothing(bank, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", mock.Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(OutputError, match="Nothing was written"):
        bank.save(tmp_path / "bank")
    assert list(tmp_path.iterdir()) == []


def test_other_files_are_not_written_over(bank, tmp_path):
    (tmp_path / "thesis.doc").write_text("important")
    with pytest.raises(OutputError, match=r"other files \('thesis.doc'\), not a bank"):
        bank.save(tmp_path)
    with pytest.raises(OutputError, match="is a file"):
        bank.save(tmp_path / "thesis.doc")
    with pytest.raises(OutputError, match="Nothing was written"):
        bank.save(tmp_path / "thesis.doc" / "bank")
    (tmp_path / "empty").mkdir()
    assert_same(bank, Bank.load(bank.save(tmp_path / "empty")))


def piece(seed, users=100):
    return simulate.rasch(users, 8, difficulty=np.linspace(-1, 1, 8), seed=seed).responses


@pytest.fixture
def folder(tmp_path):
    return bank_of(piece(0, 300)).save(tmp_path / "bank")


def test_a_stale_copy_does_not_replace_somebody_elses_update(folder):
    mine, theirs = Bank.load(folder), Bank.load(folder)
    theirs.update(piece(1)).save(folder)
    with pytest.raises(StaleBankError, match="has changed since it was loaded"):
        mine.update(piece(2)).save(folder)
    assert Bank.load(folder).n_persons == 400
    Bank.load(folder).update(piece(2)).save(folder)  # load it again, as the message says
    assert Bank.load(folder).n_persons == 500
    mine.update(piece(2)).save(folder.parent / "elsewhere")  # or save it elsewhere
    assert Bank.load(folder.parent / "elsewhere").n_persons == 400
    bank = bank_of(piece(0, 300))  # one that was saved knows what it saved
    folder = bank.save(folder.parent / "another")
    Bank.load(folder).update(piece(1)).save(folder)
    with pytest.raises(StaleBankError):
        bank.update(piece(2)).save(folder)
    bank_of(piece(0, 300)).save(folder)  # a calibration from elsewhere replaces what is there, as it always did
    assert Bank.load(folder).n_persons == 300


@pytest.mark.slow
def test_a_writer_is_waited_for_but_not_forever(folder, monkeypatch):
    bank = Bank.load(folder).update(piece(1))
    holder = (
        "from pathlib import Path; from spectral_irt.bank.storage import lock_folder\n"
        f"with lock_folder(Path({str(folder)!r})): print('held', flush=True); input()"  # until it is told to let go
    )

    def hold():
        child = subprocess.Popen([sys.executable, "-c", holder], stdin=-1, stdout=-1, text=True)
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        return child

    with hold() as child:
        said = r"another program is writing .* for 0\.3 seconds; try again"
        with monkeypatch.context() as patch, pytest.raises(OutputError, match=said):
            patch.setattr(storage, "PATIENCE", 0.3)
            bank.save(folder)
        child.kill()  # a killed writer locks nobody out, though its lock file is still there
    assert (folder / storage.LOCK).exists()
    assert Bank.load(folder).n_persons == 300
    with hold() as child:
        waited = []

        def let_go(pause):  # in the place of waiting
            waited.append(pause)
            child.communicate("now\n")

        with monkeypatch.context() as patch:
            patch.setattr(storage.time, "sleep", let_go)
            bank.save(folder)
        assert len(waited) == 1
    assert Bank.load(folder).n_persons == 400
    assert sorted(path.suffix for path in folder.iterdir()) == [
        *2 * [".json"],
        *6 * [".parquet"],
    ]  # with the one before


def test_what_a_killed_writer_left_goes_with_the_next_update(folder):
    new = folder.parent / "new"
    new.mkdir()
    for seed, place in enumerate((folder, new), start=1):  # such files alone are no bank, and nobody else's either
        draft_beside(place / "items").write_bytes(b"half a table")
        (place / "items.0123456789ab.parquet").write_bytes(b"a table without a manifest")
        assert storage.is_bank(place) == (place == folder)
        Bank.load(folder).update(piece(seed)).save(place)
        assert len(os.listdir(place)) == (8 if place == folder else 4)  # with the bank before, where there was one


@pytest.mark.slow
def test_three_writers_at_the_same_time(folder):
    """Each has three files for the bank, one after the other; whoever reads meanwhile finds a whole bank."""
    place = folder.parent
    for number in range(9):
        data = piece(100 + number)
        table = pl.DataFrame(data.to_dense().astype(int), schema=[str(k) for k in range(8)], orient="row")
        table.write_csv(place / f"{number}.csv")
    program = "import sys; from spectral_irt.cli.main import main\n"
    program += "sys.exit(max(main(['update', sys.argv[1], file]) for file in sys.argv[2:]))"
    start, one = [sys.executable, "-c", program, str(folder)], {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    writers = [
        subprocess.Popen([*start, *(str(place / f"{k}.csv") for k in files)], stdout=-1, stderr=-2, text=True, env=one)
        for files in np.arange(9).reshape(3, 3)
    ]
    while any(writer.poll() is None for writer in writers):
        bank = Bank.load(folder)
        assert int(bank.n.sum()) == 8 * bank.n_persons
        time.sleep(0.02)
    for writer in writers:
        said, _ = writer.communicate(timeout=120)
        assert writer.returncode == 0, said
    bank = Bank.load(folder)
    assert bank.n_persons == 300 + 9 * 100
    assert int(bank.n.sum()) == 8 * bank.n_persons
    assert sorted(data.source for data in bank.data[1:]) == sorted(f"{k}.csv" for k in range(9))
    assert len(os.listdir(folder)) == 8  # the bank, and the one before
    assert sorted(os.listdir(place)) == sorted(["bank", *(f"{k}.csv" for k in range(9))])


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def loads(tmp_path):
    """A bank in a folder, and two further loads."""
    first, *rest = (simulate.rasch(200, 12, seed=k).responses for k in (1, 2, 3))
    return bank_of(first).save(tmp_path / "bank"), rest


def test_the_last_load_is_undone_byte_by_byte_and_once(loads):
    folder, (second, third) = loads
    with pytest.raises(BankError, match="nothing to undo"):
        Bank.undo(folder)
    before = contents(folder)
    Bank.load(folder).update(second).save(folder)
    assert len(Bank.load(folder).data) == 2
    assert [data.persons for data in Bank.undo(folder).data] == [200]
    assert contents(folder) == before
    with pytest.raises(BankError, match="nothing to undo"):
        Bank.undo(folder)
    bank = Bank.load(folder).update(second)
    bank.save(folder)
    between = Bank.load(folder)
    bank.update(third).save(folder)
    assert len(list(folder.iterdir())) == 8  # the bank, and the one before: none that came earlier
    assert_same(Bank.undo(folder), between)
    assert_same(Bank.load(folder), between)
    with pytest.raises(BankError, match="nothing to undo"):  # one step is kept
        Bank.undo(folder)
    Bank.load(folder).update(third).save(folder)  # what was undone can come again
    assert len(Bank.load(folder).data) == 3
    Bank.load(folder).rescale(500, 100).save(folder)
    with pytest.raises(BankError, match="nothing to undo"):  # that was no load
        Bank.undo(folder)


@pytest.mark.parametrize("step", range(1, 13))
def test_a_crash_in_a_load_or_in_its_undoing_leaves_one_bank_whole(loads, monkeypatch, step):
    folder, (second, third) = loads
    Bank.load(folder).update(second).save(folder)
    old = Bank.load(folder)
    new = old.update(third)
    fails = iter([False] * (step - 1) + [True] + [False] * 40)

    def failing(real, *args):
        if next(fails):
            raise OSError(28, "No space left on device")
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", partial(failing, os.fsync))
        patch.setattr(os, "replace", partial(failing, os.replace))
        if step <= 10:  # three tables, the manifest before and the new one, each flushed and moved
            with pytest.raises(OutputError, match="The bank that was there is unchanged"):
                new.save(folder)
        else:
            new.save(folder)
            with pytest.raises(OutputError, match="unchanged"):
                Bank.undo(folder)
    there = Bank.load(folder)
    assert len(there.data) == (2 if step <= 10 else 3)
    assert len(Bank.undo(folder).data) == len(there.data) - 1
    if step > 10:
        assert_same(Bank.load(folder), old)


def test_a_bank_before_that_is_damaged_is_not_put_back(loads):
    folder, (second, _) = loads
    Bank.load(folder).update(second).save(folder)
    now = Bank.load(folder)
    kept = json.loads((folder / "bank.json").read_text())["previous"]["file"]
    text = (folder / kept).read_text()
    (folder / kept).write_text(text.replace("update", "updated") + " ")
    with pytest.raises(BankError, match="checksum is wrong"):
        Bank.undo(folder)
    (folder / kept).write_text(text)
    table = folder / json.loads(text)["tables"]["items"]["file"]
    table.write_bytes(table.read_bytes()[:-1] + b"?")
    with pytest.raises(BankError, match="checksum is wrong"):
        Bank.undo(folder)
    table.unlink()
    with pytest.raises(BankError, match="is missing"):
        Bank.undo(folder)
    assert_same(Bank.load(folder), now)


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_bank_that_is_replaced_stays_as_open_as_it_was(bank, tmp_path, mode):
    folder = tmp_path / "bank"
    bank.save(folder)
    for path in folder.iterdir():
        path.chmod(mode)
    grown = Bank.load(folder).update(simulate.rasch(100, 12, seed=2).responses)
    grown.save(folder)
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {mode}
    storage.undo(folder)
    assert stat.S_IMODE((folder / "bank.json").stat().st_mode) == mode
