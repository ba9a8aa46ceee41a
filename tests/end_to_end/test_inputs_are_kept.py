"""No result takes the place of something that is being read, under whatever name it goes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spectral_irt import Bank

pytestmark = pytest.mark.slow  # many short runs of whole commands, or of long updates

Cli = Callable[..., Any]

ANSWERS = "person,q1,q2,q3\na,1,0,1\nb,0,1,1\nc,1,1,0\nd,0,0,1\ne,1,0,0\nf,0,1,0\n"


@pytest.fixture
def files(cli: Cli) -> None:
    """What is read; refusals come before the work, so one setting serves many of them."""
    Path("d.csv").write_text(ANSWERS)
    Path("key.csv").write_text("item,key\nq1,1\nq2,1\nq3,1\n")
    Path("people.csv").write_text("person,sex\na,f\nb,m\nc,f\nd,m\ne,f\nf,m\n")
    Path("anchors.csv").write_text("item,difficulty\nq1,0.5\nq2,-0.5\n")
    for bank in ("bank", "bank2"):
        assert cli("fit", "d.csv", "--bank", bank).code == 0


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def same(name: str, how: str) -> str:
    """Another name of the same file."""
    if how == "relative":
        return name
    if how == "absolute":
        return str(Path(name).absolute())
    if how == "roundabout":
        Path("sub").mkdir(exist_ok=True)
        return f"sub/../{name}"
    other = f"other{Path(name).suffix}"
    if how == "hard link":
        os.link(name, other)
    else:
        os.symlink(name, other)
    return other


NAMES = ["relative", "absolute", "roundabout", "hard link", "symbolic link"]


def refused(cli: Cli, command: list[str], name: str, ways: list[str]) -> None:
    """The command does not write over this input under any of its names."""
    for how in ways:
        target = same(name, how)
        before = contents()
        done = cli(*command, target)
        assert done.code == 2, (command, how, done)
        assert f"would replace '{name}', which is being read" in done.err, (command, how, done)
        assert contents() == before
        if Path(f"other{Path(name).suffix}").exists():
            Path(f"other{Path(name).suffix}").unlink()


def test_compare_and_score(cli: Cli, files: None) -> None:
    for name, command in [
        ("d.csv", "compare d.csv --estimators spectral -o"),
        ("key.csv", "compare d.csv --key key.csv --estimators spectral -o"),
        ("d.csv", "score d.csv --bank bank -o"),
        ("key.csv", "score d.csv --key key.csv --bank bank -o"),
    ]:
        refused(cli, command.split(), name, NAMES)


def test_banks(cli: Cli, files: None) -> None:
    for name, command in [("bank", "link bank bank2 -o"), ("bank2", "link bank bank2 -o")]:
        refused(cli, command.split(), name, [how for how in NAMES if how != "hard link"])


def test_a_bank_that_anchors_and_grows(cli: Cli, files: None) -> None:
    """`--anchors A --bank A` is no loss: A's items stay, and others join them."""
    Path("e.csv").write_text(ANSWERS.replace("q2", "new").replace("\na,", "\nz,"))
    before = Bank.load("bank")
    for name in ("bank", "./bank", str(Path("bank").absolute())):
        shutil.rmtree("kept", ignore_errors=True)
        shutil.copytree("bank", "kept")
        done = cli("fit", "e.csv", "--anchors", "bank", "--bank", name)
        assert done.code == 0, done
        after = Bank.load("bank")
        assert after.items.tolist() == ["q1", "q2", "q3", "new"]
        assert after.difficulty[:3].tolist() == before.difficulty.tolist()
        assert after.n_persons == 12
        shutil.rmtree("bank")
        shutil.move("kept", "bank")


def test_tables_of_a_bank(cli: Cli, files: None) -> None:
    table = next(Path("bank").glob("items.*.parquet"))
    before = contents()
    assert "being read" in cli("score", "d.csv", "--bank", "bank", "-o", table).err
    assert "being read" in cli("link", "bank", "bank2", "--common-items", table).err
    shutil.copy(table, "bank2/answers.parquet")
    before = contents()
    assert "being read" in cli("update", "bank2", "bank2/answers.parquet").err
    assert contents() == before


def test_patterns_mean_their_files(cli: Cli, files: None) -> None:
    before = contents()
    assert "would replace 'd.csv', which is being read" in cli("compare", "d*.csv", "-o", "d.csv").err
    assert contents() == before


def test_a_folder_of_results(cli: Cli, files: None) -> None:
    assert cli("fit", "d.csv", "-o", "out").code == 0
    before = contents()
    read = ["out/persons.csv", "d.csv --key out/items.csv", "d.csv --anchors out/items.csv"]
    for words in [*read, "d.csv --group-file out/persons.csv --group n"]:
        for folder in ("out", str(Path("out").absolute()), "sub/../out"):
            Path("sub").mkdir(exist_ok=True)
            assert "being read" in cli("fit", *words.split(), "-o", folder).err, words
    assert contents() == before


def test_two_results_in_one_place(cli: Cli, files: None) -> None:
    Path("sub").mkdir()
    done = cli("simulate", "-o", "x.csv", "--items", 3, "--truth", "sub/../x.csv")
    assert (done.code, "same file" in done.err) == (2, True)
    assert not Path("x.csv").exists()


def test_what_is_no_ordinary_file_is_not_replaced(cli: Cli, files: None) -> None:
    os.mkfifo("pipe.csv")
    os.symlink("/dev/full", "full.csv")
    for name in ("pipe.csv", "full.csv"):
        done = cli("compare", "d.csv", "-o", name)
        assert done.code == 2
        assert f"'{name}' is not an ordinary file" in done.err
    assert Path("pipe.csv").is_fifo()
    assert Path("full.csv").is_symlink()
