"""A bank that is being written: another writer is waited for, aloud; what a kill left goes; the last word is true."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spectral_irt import Bank, files
from spectral_irt.bank.storage import locked
from terminal import interrupt, on_terminal

pytestmark = pytest.mark.slow  # many short runs of whole jobs

Cli = Callable[..., Any]

ANSWERS = "person,q1,q2,q3\na,1,0,1\nb,0,1,1\nc,1,1,0\nd,0,0,1\n"
NEW = ANSWERS.replace("\nc,1,1,0", "\nc,1,0,0")


@pytest.fixture
def place(tmp_path: Path, cli: Cli) -> Path:
    (tmp_path / "a.csv").write_text(ANSWERS)
    (tmp_path / "new.csv").write_text(NEW)
    assert cli("fit", "a.csv", "--bank", "bank").code == 0
    return tmp_path


def contents(place: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file()}


WRITERS = ["update bank new.csv", "fit new.csv -o out --bank bank"]


@pytest.mark.parametrize("command", WRITERS)
def test_waiting_for_another_writer_says_so_and_can_be_interrupted(place: Path, command: str) -> None:
    before = contents(place)
    with locked(place / "bank"):
        shown = on_terminal(*command.split(), cwd=place, when=("waiting for another program", interrupt))
    assert shown.code == 130, shown.text
    assert any("waiting for another program that is writing the bank 'bank'" in line for line, _, _ in shown.progress)
    assert [line for line in shown.screen if line][-1] == "interrupted: nothing was written.", shown.text
    assert contents(place) == before
    assert not (place / "out").exists()


@pytest.mark.parametrize(
    ("failing", "before"),
    [("fit.json", "'bank', 'out/items.csv', 'out/persons.csv', 'out/scores.csv'"), ("items.csv", "'bank'")],
)
def test_a_move_that_fails_late_says_what_had_been_written(
    place: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, failing: str, before: str
) -> None:
    replace = os.replace

    def fails(source: Path, target: Path) -> None:
        if Path(target).name == failing:
            raise OSError(5, "Input/output error")
        replace(source, target)

    monkeypatch.setattr(files.os, "replace", fails)
    done = cli("fit", "new.csv", "-o", "out", "--bank", "bank")
    assert done.code == 2
    assert f"'out/{failing}' cannot be written: Input/output error" in done.err
    assert f"{before} had been written before." in done.err
    assert "othing was written" not in done.err
    assert Bank.load("bank").data[0].source == "new.csv"
    assert list(place.rglob("*.partial")) == []
