"""Bad input: one sentence with place and remedy, exit code 2, no traceback, no files."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spectral_irt import SpectralRasch, tables
from spectral_irt.analysis import folder as result_files
from spectral_irt.analysis.folder import RESULTS
from spectral_irt.errors import ReadError

pytestmark = pytest.mark.slow  # many short ones: seconds together

Cli = Callable[..., Any]

GOOD = "person,q1,q2,q3\na,1,0,1\nb,0,1,1\nc,1,1,0\nd,0,0,1\n"


def row(name: str, content: str | bytes | None, *says: str, options: str = "") -> tuple[Any, ...]:
    """A file (name and content), what the sentence must hold (the place, then the remedy), and the options of `fit`."""
    return name, content, says, options.split()


CASES = {
    "missing file": row("answers.csv", None, "'answers.csv'", "check the name"),
    "empty file": row("a.csv", "", "a.csv is empty", "check"),
    "header only": row("a.csv", "person,q1,q2\n", "a.csv has a header but no rows", "check"),
    "binary rubbish": row("a.csv", bytes(range(256)) * 20, "a.csv", "binary", "check"),
    "binary rubbish called Parquet": row("a.parquet", bytes(range(256)) * 20, "a.parquet is not a Parquet file"),
    "Parquet cut short": row("a.parquet", b"PAR1" + bytes(100), "a.parquet cannot be read", "again"),
    "zip archive": row("a.csv", b"PK\x03\x04" + bytes(100), "a.csv", "Unpack it first"),
    "ragged rows": row("a.csv", "person,q1,q2\na,1,0\nb,1\n", "a.csv: line 3 has 2 values", "same number of values"),
    "open quotation mark": row("a.csv", 'person,q1,q2\na,1,0\n"b,1,0\n', "line 3", "Close it"),
    "unknown column": row("a.csv", GOOD, "no column 'perso'", "Did you mean 'person'?", options="--person perso"),
    "odd value": row(
        "a.csv",
        "person,q1,q2\na,1,0\nb,5,1\nc,0,5\nd,7,1\n",
        "column 'q1', row 2 holds 5",
        "3 such values: 5, 7",
        "--threshold",
    ),
    "odd value that looks missing": row(
        "a.csv", "person,q1,q2\na,1,0\nb,9,1\nc,0,-1\n", "a.csv: column 'q1', row 2 holds 9", "--missing 9 --missing -1"
    ),
    "all right": row("a.csv", "person,q1,q2\na,1,1\nb,1,1\n", "a.csv: all 4 responses are right", "Check"),
    "a single item": row("a.csv", "person,q1\na,1\nb,0\n", "single item, 'q1'", "--layout long"),
    "a single person": row("a.csv", "person,q1,q2\na,1,0\n", "single person, 'a'", "--layout items-in-rows"),
    "nobody with two answers": row("a.csv", "person,q1,q2\na,1,\nb,,0\n", "none of the 2 people answered two", "Check"),
    "nothing but missing": row("a.csv", "person,q1,q2\na,NA,\nb,,NA\n", "a.csv", "missing", "Check"),
    "neither UTF-8 nor cp1252": row(
        "a.csv", b"person,q\x81,q2\na,1,0\nb,0,1\n", "a.csv: line 1 is neither", "--encoding"
    ),
    "cut UTF-16": row("a.csv", GOOD.encode("utf-16")[:-1], "a.csv: line", "not text in the encoding utf-16"),
    "repeated column": row("a.csv", "person,q1,q1\na,1,0\nb,0,1\n", "repeated: 'q1'", "Rename"),
    "no header": row("a.csv", "1,0,1\n0,1,1\n", "a.csv has no header", "line with the names"),
    "answered twice": row(
        "a.csv",
        "person,item,response\na,q1,1\na,q1,0\na,q2,0\nb,q1,1\nb,q2,1\n",
        "('a', 'q1')",
        "--duplicates first or last",
    ),
    "a person twice in a wide table": row(
        "a.csv", "person,q1,q2\na,1,0\na,0,1\nb,1,0\n", "more than one row: 'a'", "--duplicates first or last"
    ),
    "infinite threshold": row("a.csv", GOOD, "--threshold is inf", "finite", options="--threshold inf"),
    "threshold out of range": row("a.csv", GOOD, "run from 0 to 1", "choose", options="--threshold 3"),
    "threshold in words": row("a.csv", GOOD, "--threshold is 'high'", "a number", options="--threshold high"),
    "items in rows": row(
        "a.csv",
        "item,student1,student2,student3\nq1,1,0,1\nq2,0,1,1\nq3,1,1,0\n",
        "a row for each item ('q1', 'q2', 'q3', ...)",
        "--layout items-in-rows",
    ),
    "two ways of scoring": row("a.csv", GOOD, "say one of them", options="--threshold 0.5 --correct 1"),
    "missing key": row("a.csv", GOOD, "'key.csv'", "check the name", options="--key key.csv"),
    "right answers that nobody gave": row("a.csv", GOOD, "correct is 'B'", "spelling", options="--correct B"),
    "unknown way of scoring": row(
        "a.csv", GOOD, "own-mean is 'up'; it can be 'right'", options="--threshold own-mean:up"
    ),
    "unknown estimator": row("a.csv", GOOD, "--estimator is 'magic'", "'spectral'", options="--estimator magic"),
    "option of another estimator": row(
        "a.csv", GOOD, "'paper' has no --chain-weights", "--set nu", options="--estimator paper --chain-weights persons"
    ),
    "negative regularization": row(
        "a.csv", GOOD, "--set regularization is -1", "a number from 1e-06 to 1e+09", options="--set regularization=-1"
    ),
    "nu with ability weights": row(
        "a.csv", GOOD, "nu adds to pair counts", "--chain-weights pairs", options="--set nu=1"
    ),
    "no threads": row("a.csv", GOOD, "'--threads'", "greater than or equal to 1", options="--threads 0"),
    "no iterations": row("a.csv", GOOD, "--set max_iter is 0", "at least 1", options="--set max_iter=0"),
    "unknown option": row("a.csv", GOOD, "--fast", "spectral-irt fit --help", options="--fast"),
    "two groups of items, no prior": row(
        "a.csv",
        "person,q1,q2,x1,x2\na,1,0,,\nb,0,1,,\nc,,,1,0\nd,,,0,1\n",
        "2 groups that share no people",
        "--largest-component",
        options="--set regularization=0",
    ),
    "spreadsheet": row("a.xlsx", b"PK\x03\x04" + bytes(100), "a.xlsx cannot be read as a workbook", "fetch it again"),
    "unknown ending": row("a.data", GOOD, "the ending '.data'", "Rename"),
    "directory": row("sub/a.data", GOOD, "is a directory", "name files"),
    "broken JSON lines": row("a.jsonl", '{"subject_id": "a", "responses": {"q1": 1}\n', "a.jsonl", "line 1"),
}


def refused(done: Any, *says: str) -> None:
    """One line on stderr that says this, exit code 2, and nothing else."""
    assert done.code == 2, done
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert done.err.endswith("\n")
    assert "Traceback" not in done.err
    for text in says:
        assert text in done.err, done.err


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("command", ["fit", "check"])
def test_bad_input_is_one_sentence_and_no_file(cli: Cli, tmp_path: Path, case: str, command: str) -> None:
    name, content, says, options = CASES[case]
    path = tmp_path / name
    if content is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    name, before = name.split("/")[0], sorted(tmp_path.rglob("*"))
    if command == "fit":
        refused(cli("fit", name, "-o", "out/deep", *options), *says)
    elif not any(option in " ".join(options) for option in ("estim", "weigh", "--set", "threads")):
        refused(cli("check", name, *options), *(text for text in says if text != "spectral-irt fit --help"))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_path_where_responses_belong() -> None:
    with pytest.raises(ReadError, match=r"spectral_irt\.read"):
        SpectralRasch().fit("answers.csv")


def test_file_names_are_shown_safely(cli: Cli) -> None:
    Path("a\n\x1b[31mb.csv").write_text("")
    refused(cli("fit", "a\n\x1b[31mb.csv"), r"a\n\x1b[31mb.csv is empty")


def test_arguments(cli: Cli) -> None:
    refused(cli("fit"), "missing argument 'FILE'", "spectral-irt fit --help")
    refused(cli("calibrate"), "there is no command calibrate", "spectral-irt --help")
    refused(cli("fit", "*.csv"), "no file matches '*.csv'")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.csv"
    path.write_text(GOOD)
    return path


def test_a_place_that_is_a_file(cli: Cli, good: Path) -> None:
    refused(cli("fit", good, "-o", good), "-o names a folder, or a workbook")
    refused(cli("fit", good, "-o", good / "sub"), "is a file, not a directory", "choose another place")
    assert good.read_text() == GOOD


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_without_permission(cli: Cli, good: Path) -> None:
    Path("closed").mkdir(mode=0o500)
    refused(cli("fit", good, "-o", "closed"), "permission denied", "choose a place you may write to")


@pytest.mark.parametrize("name", RESULTS)
def test_files_that_no_fit_wrote_are_never_replaced(cli: Cli, good: Path, name: str) -> None:
    Path("mine").mkdir()
    Path("mine", name).write_text('{"mine": 1}')
    refused(cli("fit", good, "-o", "mine"), repr(name), "choose another directory")
    assert Path("mine", name).read_text() == '{"mine": 1}'
    assert os.listdir("mine") == [name]


@pytest.fixture
def earlier(cli: Cli, good: Path) -> dict[str, bytes]:
    """Results of an earlier fit in `out`."""
    cli("fit", good, "-o", "out", "--parquet")
    return contents(Path("out"))


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def no_space(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("where", ["estimator", "last file"])
def test_an_interrupt_leaves_no_file(
    cli: Cli, good: Path, earlier: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    if where == "estimator":
        monkeypatch.setattr(SpectralRasch, "_estimate", interrupt)
    else:
        monkeypatch.setattr(result_files, "write_json", interrupt)
    for place in ("new/deep", "out"):
        done = cli("fit", good, "-o", place)
        assert done.code == 130
        assert done.err == "interrupted: nothing was written.\n"
    assert not Path("new").exists()
    assert contents(Path("out")) == earlier


@pytest.mark.parametrize("writer", ["write_csv", "write_parquet", "write_json"])
def test_a_full_disk_leaves_no_file(
    cli: Cli, good: Path, earlier: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    for module in (tables, result_files):
        if hasattr(module, writer):
            monkeypatch.setattr(module, writer, no_space)
    for place in ("new/deep", "out"):
        refused(cli("fit", good, "-o", place, "--parquet"), "the disk is full", "free some space")
    assert not Path("new").exists()
    assert contents(Path("out")) == earlier


def limited(*args: str, cwd: Path, largest_file: int) -> subprocess.CompletedProcess[str]:
    """Run the command where no file may grow beyond a size: writing fails half-way, as on a full disk."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

    command = [sys.executable, "-B", "-m", "spectral_irt", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, preexec_fn=limit)


@pytest.mark.parametrize(
    "args",
    [
        ["fit", "good.csv", "-o", "new/deep"],
        ["simulate", "-o", "new/a.csv", "--items", "20", "--truth", "new/t.csv"],
        ["simulate", "-o", "new/a.parquet", "--items", "20", "--truth", "new/t.parquet"],
    ],
    ids=["fit", "simulate csv", "simulate parquet"],
)
def test_writing_that_fails_half_way_leaves_no_file(good: Path, tmp_path: Path, args: list[str]) -> None:
    done = limited(*args, cwd=tmp_path, largest_file=200)
    assert done.returncode == 2
    assert done.stderr.startswith("error: 'new/")
    assert "cannot be written" in done.stderr
    assert done.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == ["good.csv"]


def test_an_internal_error_is_one_line_without_debug(cli: Cli, good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("something\nbroke")

    monkeypatch.setattr(SpectralRasch, "_estimate", broken)
    done = cli("fit", good, "-o", "new")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("internal error: RuntimeError: something -- ")
    assert "--debug" in done.err
    assert done.err.count("\n") == 1
    assert not Path("new").exists()
    done = cli("fit", good, "-o", "new", "--debug")
    assert done.code == 1
    assert "Traceback" in done.err
    assert "broke" in done.err


def test_debug_shows_the_traceback_of_bad_input_too(cli: Cli) -> None:
    done = cli("--debug", "fit", "none.csv")
    assert done.code == 2
    assert "Traceback" in done.err
    assert done.err.splitlines()[-1].startswith("error: there is no file 'none.csv'")


def test_not_enough_memory_is_said(cli: Cli, good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hungry(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(SpectralRasch, "_estimate", hungry)
    refused(cli("fit", good), "not enough memory", "--memory", "--set se=none")
