"""Banks that grow through the command line: by `update`, and by `fit --anchors A --bank A`."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from end_to_end.banks import contents, refused, write
from spectral_irt.bank import Bank, storage
from spectral_irt.reading import read

pytestmark = pytest.mark.slow  # many short runs of whole commands, or of long updates

Cli = Callable[..., Any]


def test_a_bank_is_updated_in_place(cli: Cli, bank: Path) -> None:
    old = Bank.load(bank)
    write("new.csv", 3, items=12)
    done = cli("update", bank, "new.csv")
    assert (done.code, done.err) == (0, "")
    found, expected = Bank.load(bank), old.update(read("new.csv"))
    np.testing.assert_array_equal(found.difficulty, expected.difficulty)
    np.testing.assert_array_equal(found.se, expected.se)
    text = " ".join(done.out.split())
    assert "before 4,000 answers of 400 people to 10 items" in text
    assert "after 8,800 answers of 800 people to 12 items" in text
    assert "2 items are new in the bank: 'q10', 'q11'" in text
    assert "The bank is in bank." in text
    assert sorted(os.listdir(bank)) == sorted(["bank.json", *(path.name for path in bank.glob("*.parquet"))])
    assert len(os.listdir(bank)) == 4


def test_another_place_keeps_the_old_bank(cli: Cli, bank: Path) -> None:
    before = contents(bank)
    write("new.csv", 3)
    assert cli("update", bank, "new.csv", "-o", "newer").code == 0
    assert contents(bank) == before
    assert Bank.load("newer").n_persons == 800
    refused(cli("update", bank, "new.csv", "-o", "."), "not a bank; choose another place")


def test_an_update_that_fails_or_is_stopped_leaves_the_bank(
    cli: Cli, bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(bank)
    write("new.csv", 3)
    write("foreign.csv", 3, items=4, first=14)
    Path("empty.csv").write_text("user,q0,q1\nann,,\nbob,,\n")
    Path("perfect.csv").write_text("user,q0,q1\nann,1,1\nbob,1,1\n")
    refused(cli("update", bank, "foreign.csv"), "none of its items", "Check the labels")
    refused(cli("update", bank, "empty.csv"), "empty.csv")
    refused(cli("update", bank, "perfect.csv"), "all answers right or all wrong")
    refused(cli("update", bank, "new.csv", "--repeats", "magic"), "--repeats is 'magic'")

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Bank, "update", stopped)
        done = cli("update", bank, "new.csv")
        assert (done.code, done.err) == (130, "interrupted: nothing was written.\n")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "_put", full)
        refused(cli("update", bank, "new.csv"), "No space left on device", "The bank that was there is unchanged")
    assert contents(bank) == before


def test_an_interrupt_at_the_very_end_comes_too_late(cli: Cli, bank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While bank and results take their places Ctrl-C is not heard: never one without the other, never a false word."""
    put = storage._put

    def interrupted(*args: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        put(*args)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(storage, "_put", interrupted)
        assert cli("fit", write("new.csv", 2), "--bank", "newer", "-o", "out").code == 0
        assert cli("update", bank, "new.csv").code == 0
    finally:
        signal.signal(signal.SIGINT, handler)
    assert Path("out/fit.json").exists()
    assert Bank.load("newer").n_persons == 400
    assert Bank.load(bank).n_persons == 800


def test_a_bank_that_is_anchor_and_target_keeps_its_other_items(cli: Cli, bank: Path) -> None:
    before = Bank.load(bank)
    write("s2.csv", 5, items=8, first=6)  # q6 to q13: four of the bank, four new
    done = cli("fit", "s2.csv", "--anchors", bank, "--bank", bank)
    assert (done.code, done.err) == (0, "")
    after = Bank.load(bank)
    assert after.items.tolist() == [f"q{k}" for k in range(14)]
    np.testing.assert_array_equal(after.difficulty[:10], before.difficulty)
    np.testing.assert_array_equal(after.se[:10], before.se)
    assert after.n.tolist() == [400] * 6 + [800] * 4 + [400] * 4
    assert after.status.tolist() == ["ok"] * 14
    assert not after.calibration.anchored.any()
    truth = np.linspace(-1.5, 1.5, 20)
    shift = before.difficulty.mean() - truth[:10].mean()
    assert np.max(np.abs(after.difficulty[10:] - truth[10:14] - shift) / after.se[10:]) < 4
    assert after.n_persons == 800
    assert [data.how for data in after.data] == ["fit", "anchored fit"]
    refused(cli("fit", "s2.csv", "--anchors", bank, "--bank", bank), "these very data are in the bank already")
    write("s3.csv", 6, items=14)
    assert cli("update", bank, "s3.csv").code == 0  # and the enlarged bank goes on
    moved = Bank.load(bank).difficulty - after.difficulty
    assert np.max(np.abs(moved) / after.se) < 3
    assert cli("fit", "s2.csv", "--anchors", bank, "--bank", "other").code == 0  # another bank has what is in s2
    assert Bank.load("other").n_items == 8
