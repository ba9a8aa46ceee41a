"""Fixtures for tests that go through the command line."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

import pytest

from end_to_end.banks import write
from spectral_irt import datasets
from spectral_irt.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a command left on the terminal, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run `spectral-irt` in this process, in a directory of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*args: object) -> Done:
        capsys.readouterr()
        code = main([str(arg) for arg in args])
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run


@pytest.fixture
def lsat(tmp_path: Path) -> Path:
    """LSAT section 6 as a wide CSV."""
    responses = datasets.load_lsat()
    path = tmp_path / "lsat.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["student", *responses.items])
        writer.writerows(
            [label, *map(int, row)] for label, row in zip(responses.persons, responses.to_dense(), strict=True)
        )
    return path


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with old.csv and a bank of it."""
    place = tmp_path_factory.mktemp("made")
    with chdir(place):
        write("old.csv", 1)
        assert main(["fit", "old.csv", "--bank", "bank"]) == 0
    return place


@pytest.fixture
def bank(cli: Callable[..., Done], made: Path) -> Path:
    """A bank of q0 to q9 from old.csv."""
    shutil.copytree(made, ".", dirs_exist_ok=True)
    return Path("bank")
