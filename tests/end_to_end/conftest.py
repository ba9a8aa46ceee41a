"""The command as a fixture, and what it reads."""

import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

import pytest

from app_server import App
from end_to_end.tables import contents, form, wide
from spectral_irt import datasets
from spectral_irt.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a command left on the terminal, and its exit code."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Cli:
    """`spectral-irt` in this process. The first words of a command may be one string, as for a shell."""

    terminal: pytest.CaptureFixture[str]

    def __call__(self, line: str = "", *more: object) -> Done:
        self.terminal.readouterr()
        code = main([*shlex.split(line), *map(str, more)])
        return Done(code, *self.terminal.readouterr())

    def ok(self, line: str, *more: object) -> str:
        """What a command that succeeds prints, in one line."""
        done = self(line, *more)
        assert (done.code, done.err) == (0, ""), done.err
        return " ".join(done.out.split())

    def refused(self, line: str | Sequence[object], *says: str) -> None:
        """One line on stderr that says all this, exit code 2, nothing else, and no file written or changed."""
        before = contents()
        done = self(line) if isinstance(line, str) else self(*line)
        assert (done.code, done.out) == (2, ""), (line, done)
        assert done.err.startswith("error: ")
        assert done.err.endswith("\n")
        assert done.err.count("\n") == 1
        for text in says:
            assert text in done.err, done.err
        assert contents() == before


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run `spectral-irt` in this process, in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    return Cli(capsys)


@pytest.fixture
def lsat(tmp_path: Path) -> Path:
    """LSAT section 6 as a wide CSV, lsat.csv."""
    responses = datasets.load_lsat()
    return wide(tmp_path / "lsat.csv", responses.to_dense(), responses.items.tolist(), student=responses.persons)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with old.csv and a bank of it."""
    place = tmp_path_factory.mktemp("made")
    with chdir(place):
        form("old.csv", 1)
        assert main(["fit", "old.csv", "--bank", "bank"]) == 0
    return place


@pytest.fixture
def bank(cli: Cli, made: Path) -> Path:
    """A bank of q0 to q9 from old.csv."""
    shutil.copytree(made, ".", dirs_exist_ok=True)
    return Path("bank")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An app for many tests; at its end nothing of them may be left, and nothing may have been complained of."""
    with App(tmp_path_factory.mktemp("app") / "temporary") as one:
        yield one
        assert one.end() == (0, "")
        assert list(one.folder.iterdir()) == []
