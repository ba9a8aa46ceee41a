"""Packed files and a memory budget on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spectral_irt.cli.main import main

pytestmark = pytest.mark.slow


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    right = rng.random((300, 8)) < 1 / (1 + np.exp(np.linspace(-1, 1, 8) - rng.normal(size=(300, 1))))
    rows = [",".join(["id", *(f"q{k}" for k in range(8))])]
    rows += [",".join([f"p{k}", *map(str, row.astype(int))]) for k, row in enumerate(right)]
    Path("answers.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_a_packed_file_stands_for_the_files(answers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "answers.csv", "-q", "-o", "plain"]) == 0
    assert main(["pack", "answers.csv", "-o", "answers.packed"]) == 0
    assert "300 people, 8 items, 2,400 responses" in capsys.readouterr().out
    assert main(["fit", "answers.packed", "-q", "--memory", "1GB", "-o", "packed"]) == 0
    for name in ("items.csv", "persons.csv"):
        assert Path("plain", name).read_bytes() == Path("packed", name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit", "answers.csv", "--memory", "lots"], "--memory is 'lots'; it is a size such as 500MB"),
        (["fit", "answers.csv", "--memory", "100MB"], "need at least 151 MB"),
        (["check", "answers.csv", "--spill", "nowhere"], "--spill is 'nowhere', which is not a folder"),
        (["pack", "answers.csv", "-o", "answers.csv"], "a packed file ends in .packed"),
        (["fit", "cut.packed"], "cut.packed is too short to be a packed file"),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: list[str], said: str, answers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("cut.packed").write_bytes(b"SIRTPACK")
    before = sorted(answers.rglob("*"))
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
    assert sorted(answers.rglob("*")) == before
