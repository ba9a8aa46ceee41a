"""Fixtures for tests that go through the command line."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

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
            [label, *map(int, row)] for label, row in zip(responses.users, responses.to_dense(), strict=True)
        )
    return path
