"""Closed, full and broken streams; signals; odd places: what the process says and returns, and what it leaves."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow  # many short runs of whole commands, or of long updates

Cli = Callable[..., Any]

ANSWERS = "person,q1,q2,q3\na,1,0,1\nb,0,1,1\nc,1,1,0\nd,0,0,1\n"
LONG = "x" * 300


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_text(ANSWERS)
    return tmp_path


def shell(line: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A line for bash, in which `spectral-irt` is this package's."""
    script = f'spectral-irt() {{ "{sys.executable}" -m spectral_irt "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", script], cwd=cwd, capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )


# ------------------------------------------------------------------------------------------- streams


def test_a_full_disk_behind_standard_output(place: Path) -> None:
    done = shell("spectral-irt fit a.csv > /dev/full", place)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot write to standard output: the disk is full")
    assert done.stderr.endswith("Nothing was written.\n")
    assert done.stderr.count("\n") == 1
    done = shell("spectral-irt fit a.csv -o out > /dev/full", place)
    assert done.returncode == 2
    assert "'out/items.csv'" in done.stderr
    assert "had been written before" in done.stderr
    assert (place / "out/fit.json").exists()


@pytest.mark.parametrize("command", ["fit a.csv -o out", "--help"])
def test_standard_output_that_is_closed(place: Path, command: str) -> None:
    done = shell(f"spectral-irt {command} >&-", place)
    assert (done.returncode, done.stderr) == (0, "")
    assert (place / "out/fit.json").exists() == command.startswith("fit")


def test_standard_error_that_is_closed_or_full(place: Path) -> None:
    assert shell("spectral-irt fit none.csv 2>&-", place).returncode == 2
    assert shell("spectral-irt fit none.csv 2>/dev/full", place).returncode == 2
    assert shell("spectral-irt fit a.csv -o out <&- >&- 2>&-", place).returncode == 0
    assert (place / "out/items.csv").read_text().startswith("item,difficulty")


@pytest.mark.parametrize("command", ["fit a.csv", "--help"])
def test_a_reader_that_goes_away(place: Path, command: str) -> None:
    done = shell(f"set -o pipefail; spectral-irt {command} | true", place)
    assert (done.returncode in (0, 141), done.stderr) == (True, "")
    done = shell(f"spectral-irt {command} | head -1", place)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize("width", ["0", "00", "rubbish"])
def test_a_width_that_is_none(place: Path, width: str) -> None:
    done = shell("spectral-irt fit a.csv", place, COLUMNS=width)
    assert done.returncode == 0
    assert "".join(done.stdout.split()).count("q1") >= 1


def test_a_width_that_is_next_to_none(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.csv").write_text(ANSWERS)
    shown = []
    for width in ("1", "39", "40"):
        monkeypatch.setenv("COLUMNS", width)
        done = cli("fit", "a.csv", "--skip", "fit")
        assert (done.code, done.err) == (0, "")
        shown.append(done.out.split("Conditional maximum")[0])  # after that comes how long it took
    assert shown[0] == shown[1] == shown[2]
    assert re.search(r"^q1 .*\d\.\d{3}", shown[0], re.MULTILINE)


# ------------------------------------------------------------------------------------------- options


def test_the_version_and_nothing_else(cli: Cli) -> None:
    done = cli("--version", "fit", "none.csv")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("spectral-irt 0.")


def test_places_that_are_empty(cli: Cli) -> None:
    Path("a.csv").write_text(ANSWERS)
    before = os.listdir()
    for command in ("fit a.csv -o", "score a.csv --bank", "simulate --items 3 -o", "update a.csv -o"):
        done = cli(*command.split(), "")
        assert done.code == 2, command
        assert "it is empty; name a place" in done.err
    assert os.listdir() == before


def test_the_home_directory(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    Path("a.csv").write_text(ANSWERS)
    assert cli("fit", "a.csv", "-o", "~/out", "--bank", "~/bank").code == 0
    assert cli("score", "a.csv", "--bank", "~/bank", "-o", "~/s.csv").code == 0
    assert cli("fit", "a.csv", "--anchors", "~/out/items.csv").code == 0
    assert cli("fit", "a.csv", "--anchors", "~/bank").code == 0
    assert cli("simulate", "-o", "~/d.csv", "--items", 3).code == 0
    assert sorted(os.listdir("home")) == ["bank", "d.csv", "out", "s.csv"]
    assert not Path("~").exists()


def test_names_that_are_too_long(cli: Cli) -> None:
    Path("a.csv").write_text(ANSWERS)
    outputs = ("-o {}", "-o sub/{}/out", "--bank {}", "--anchors {}", "--report {}.html")
    others = ("score a.csv --bank {}", "link {} {}", "update {} a.csv", "simulate --items 3 -o {}.csv")
    for command in [*(f"fit a.csv {option}".replace("{}", LONG) for option in outputs), *others]:
        command = command.replace("{}", LONG)
        done = cli(*command.split())
        assert done.code == 2, (command, done)
        assert done.err.startswith("error: "), done
    assert os.listdir() == ["a.csv"]


def test_numbers_that_are_too_large(cli: Cli) -> None:
    Path("a.csv").write_text(ANSWERS)
    Path("k.csv").write_text("item,difficulty\nq1,0\n")
    for options in (
        "--set regularization=1e308",
        "--set regularization=1e308 --anchors k.csv",
        "--set nu=1e308 --chain-weights pairs",
        "--set nu=1e308 --estimator paper",
    ):
        done = cli("fit", "a.csv", *options.split())
        assert done.code == 2, (options, done)
        assert "is 1e+308; it can be" in done.err
        assert "a number from 1e-06 to 1e+09" in done.err


# ------------------------------------------------------------------------------------------- signals

SLOW = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background ignores it
from spectral_irt.estimators import spectral
def slow(*args, **options):
    print("now", flush=True)
    time.sleep(60)
spectral.SpectralRasch._estimate = slow
sys.argv[1:] = ["fit", "a.csv", "-o", "out"]
from spectral_irt.__main__ import run
run()
"""


def started(program: str, cwd: Path) -> subprocess.Popen[str]:
    """A Python program that has said `now`."""
    command = [sys.executable, "-c", program]
    running = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "now\n"
    return running


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_that_ends_leaves_nothing(place: Path, number: signal.Signals) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("ignored here, as under nohup; so a program started from here ignores it too")
    with started(SLOW, place) as running:
        assert (place / "out").exists()
        running.send_signal(number)
        said = running.communicate(timeout=300)
    assert running.returncode == 128 + number
    assert said == ("", "interrupted: nothing was written.\n")
    assert os.listdir(place) == ["a.csv"]


def test_a_kill_is_cleaned_up_by_the_next_run(place: Path) -> None:
    with started(SLOW, place) as running, started(SLOW, place) as living:
        running.kill()
        running.communicate()
        left = set(os.listdir(place / "out"))
        drafts = len(left) // 2
        assert {name.split("-")[1] for name in left} == {str(running.pid), str(living.pid)}  # the drafts of both
        done = shell("spectral-irt fit a.csv -o out", place)
        assert done.returncode == 0, done
        # The drafts of the other run, which is still at work, are left alone.
        names = set(os.listdir(place / "out"))
        assert len([name for name in names if name.endswith(".partial")]) == drafts
        assert all(f"-{living.pid}-" in name for name in names if name.endswith(".partial"))
        living.terminate()
        living.communicate()
    written = ["fit.json", "items.csv", "persons.csv", "scores.csv"]
    assert sorted(os.listdir(place / "out")) == written


def test_an_interrupt_after_the_results_were_written_says_so(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from spectral_irt import terminal

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    Path("a.csv").write_text(ANSWERS)
    assert cli("fit", "a.csv", "--bank", "bank").code == 0
    with monkeypatch.context() as patch:
        patch.setattr(terminal.Screen, "print", interrupted)
        done = cli("fit", "a.csv", "-o", "out")
        assert done.code == 130
        assert "nothing was written" not in done.err
        assert "had been written: 'out/items.csv'" in done.err
        Path("b.csv").write_text(ANSWERS.replace("\na,1,0,1", "\nz,1,1,0"))
        done = cli("update", "bank", "b.csv", "-o", "bank2")
        assert (done.code, "had been written: 'bank2'" in done.err) == (130, True), done
        done = cli("fit", "a.csv")
        assert (done.code, done.err) == (130, "interrupted: nothing was written.\n")


@pytest.mark.parametrize("module", ["numpy", "typer", "spectral_irt.cli.fit"])
def test_an_interrupt_while_importing(place: Path, module: str) -> None:
    program = f"""
import builtins, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
class Slow:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            print("now", flush=True)
            time.sleep(60)
sys.meta_path.insert(0, Slow())
sys.argv[1:] = ["fit", "a.csv", "-o", "out"]
from spectral_irt.__main__ import run
run()
"""
    with started(program, place) as running:
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=300)
    assert running.returncode == 130
    # What comes before the command itself ends in one word; the command says what became of its results.
    assert said == ("", "interrupted.\n" if module == "typer" else "interrupted: nothing was written.\n")
    assert os.listdir(place) == ["a.csv"]
