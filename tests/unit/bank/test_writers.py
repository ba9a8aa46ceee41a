"""Several writers of one bank: nobody's update is lost, and nothing is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from spectral_irt import SpectralRasch, simulate
from spectral_irt.bank import Bank, storage
from spectral_irt.data import Responses
from spectral_irt.errors import OutputError, StaleBankError
from spectral_irt.files import draft_beside


def piece(seed: int, users: int = 100) -> Responses:
    return simulate.rasch(users, 8, difficulty=np.linspace(-1, 1, 8), seed=seed).responses


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = piece(0, 300)
    return Bank.from_fit(SpectralRasch().fit(data), data).save(tmp_path / "bank")


def test_a_stale_copy_does_not_replace_somebody_elses_update(folder: Path) -> None:
    mine, theirs = Bank.load(folder), Bank.load(folder)
    theirs.update(piece(1)).save(folder)
    with pytest.raises(StaleBankError, match="has changed since it was loaded"):
        mine.update(piece(2)).save(folder)
    assert Bank.load(folder).n_persons == 400
    Bank.load(folder).update(piece(2)).save(folder)  # load it again, as the message says
    assert Bank.load(folder).n_persons == 500
    mine.update(piece(2)).save(folder.parent / "elsewhere")  # or save it elsewhere
    assert Bank.load(folder.parent / "elsewhere").n_persons == 400


def test_a_bank_that_was_saved_knows_what_it_saved(tmp_path: Path) -> None:
    data = piece(0, 300)
    bank = Bank.from_fit(SpectralRasch().fit(data), data)
    folder = bank.save(tmp_path / "bank")
    Bank.load(folder).update(piece(1)).save(folder)
    with pytest.raises(StaleBankError):
        bank.update(piece(2)).save(folder)
    other = Bank.from_fit(SpectralRasch().fit(data), data)
    other.save(folder)  # a calibration from elsewhere replaces what is there, as it always did
    assert Bank.load(folder).n_persons == 300


@pytest.mark.slow
def test_a_writer_is_waited_for_but_not_forever(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bank = Bank.load(folder).update(piece(1))
    holder = (
        "from pathlib import Path; from spectral_irt.bank.storage import locked\n"
        f"with locked(Path({str(folder)!r})): print('held', flush=True); input()"  # until it is told to let go
    )

    def hold() -> subprocess.Popen[str]:
        child = subprocess.Popen([sys.executable, "-c", holder], stdin=-1, stdout=-1, text=True)
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        return child

    with hold() as child:
        with (
            monkeypatch.context() as patch,
            pytest.raises(OutputError, match=r"another program is writing .* for 0\.3 seconds; try again"),
        ):
            patch.setattr(storage, "PATIENCE", 0.3)
            bank.save(folder)
        child.kill()  # a killed writer locks nobody out, though its lock file is still there
    assert (folder / storage.LOCK).exists()
    assert Bank.load(folder).n_persons == 300
    with hold() as child:
        waited = []

        def let_go(pause: float) -> None:  # in the place of waiting
            waited.append(pause)
            child.communicate("now\n")

        with monkeypatch.context() as patch:
            patch.setattr(storage.time, "sleep", let_go)
            bank.save(folder)
        assert len(waited) == 1
    assert Bank.load(folder).n_persons == 400
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", *3 * [".parquet"]]


def test_what_a_killed_writer_left_goes_with_the_next_update(folder: Path) -> None:
    new = folder.parent / "new"
    new.mkdir()
    for seed, place in enumerate((folder, new), start=1):  # such files alone are no bank, and nobody else's either
        draft_beside(place / "items").write_bytes(b"half a table")
        (place / "items.0123456789ab.parquet").write_bytes(b"a table without a manifest")
        assert storage.is_bank(place) == (place == folder)
        Bank.load(folder).update(piece(seed)).save(place)
        assert len(os.listdir(place)) == 4


@pytest.mark.slow
def test_three_updates_at_the_same_time_eight_times(folder: Path) -> None:
    """Three processes update one bank, eight times over; every update that says it was done is in it."""
    place = folder.parent
    for number in range(24):
        data = piece(100 + number)
        table = pl.DataFrame(data.to_dense().astype(int), schema=[str(k) for k in range(8)], orient="row")
        table.write_csv(place / f"{number}.csv")
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    for turn in range(8):
        children = [
            subprocess.Popen(
                [sys.executable, "-m", "spectral_irt", "update", str(folder), str(place / f"{3 * turn + k}.csv")],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment,
            )
            for k in range(3)
        ]
        for child in children:
            said, _ = child.communicate(timeout=120)
            assert child.returncode == 0, said
        bank = Bank.load(folder)
        assert bank.n_persons == 300 + 300 * (turn + 1)
        assert int(bank.n.sum()) == 8 * bank.n_persons
    assert sorted(data.source for data in bank.data[1:]) == sorted(f"{k}.csv" for k in range(24))
    assert len(os.listdir(folder)) == 4
    assert sorted(os.listdir(place)) == sorted(["bank", *(f"{k}.csv" for k in range(24))])
