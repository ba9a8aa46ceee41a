"""Closed, full and broken streams; signals; odd places: what the process says and returns, and what it leaves."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spectral_irt import terminal

pytestmark = pytest.mark.slow  # many short runs of whole commands, or of long updates

ANSWERS = "person,q1,q2,q3\na,1,0,1\nb,0,1,1\nc,1,1,0\nd,0,0,1\n"


@pytest.fixture
def place(cli, tmp_path):
    (tmp_path / "a.csv").write_text(ANSWERS)
    return tmp_path


def shell(line, cwd):
    """A line for bash, in which `spectral-irt` is this package's."""
    script = f'spectral-irt() {{ "{sys.executable}" -m spectral_irt "$@"; }}; {line}'
    return subprocess.run(["bash", "-c", script], cwd=cwd, capture_output=True, text=True, timeout=120)


def test_a_full_disk_behind_standard_output(place):
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


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("spectral-irt fit a.csv -o out >&-", [0]),
        ("spectral-irt --help >&-", [0]),
        ("spectral-irt fit none.csv 2>&-", [2]),
        ("spectral-irt fit none.csv 2>/dev/full", [2]),
        ("spectral-irt fit a.csv -o out <&- >&- 2>&-", [0]),
        ("set -o pipefail; spectral-irt fit a.csv | true", [0, 141]),
        ("set -o pipefail; spectral-irt --help | true", [0, 141]),
        ("spectral-irt fit a.csv | head -1", [0]),
        ("spectral-irt --help | head -1", [0]),
    ],
)
def test_streams_that_are_closed_or_full_and_readers_that_go_away(place, line, code):
    done = shell(line, place)
    assert done.returncode in code
    assert done.stderr == ""
    assert done.stdout.count("\n") == line.count("head")
    if "-o out" in line:
        assert (place / "out/items.csv").read_text().startswith("item,difficulty")
        assert (place / "out/fit.json").exists()


def test_a_width_that_is_none_or_next_to_none(cli, place, monkeypatch):
    shown = []
    for width in ("0", "00", "rubbish", "1", "39", "40"):
        monkeypatch.setenv("COLUMNS", width)
        done = cli("fit a.csv --skip fit")
        assert (done.code, done.err) == (0, "")
        assert re.search(r"^q1 .*\d\.\d{3}", done.out, re.MULTILINE)
        shown.append(done.out.split("Conditional maximum")[0])  # after that comes how long it took
    assert shown[-3] == shown[-2] == shown[-1]


def test_the_home_directory(cli, place, monkeypatch):
    monkeypatch.setenv("HOME", str(place / "home"))
    for line in (
        *("fit a.csv -o ~/out --bank ~/bank", "score a.csv --bank ~/bank -o ~/s.csv", "fit a.csv --anchors ~/bank"),
        *("fit a.csv --anchors ~/out/items.csv", "simulate -o ~/d.csv --items 3"),
    ):
        cli.ok(line)
    assert sorted(os.listdir("home")) == ["bank", "d.csv", "out", "s.csv"]
    assert not Path("~").exists()


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


def started(program, cwd):
    """A Python program that has said `now`."""
    command = [sys.executable, "-c", program]
    running = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout.readline() == "now\n"
    return running


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_that_ends_leaves_nothing(place, number):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("ignored here, as under nohup; so a program started from here ignores it too")
    with started(SLOW, place) as running:
        assert (place / "out").exists()
        running.send_signal(number)
        said = running.communicate(timeout=300)
    assert running.returncode == 128 + number
    assert said == ("", "interrupted: nothing was written.\n")
    assert os.listdir(place) == ["a.csv"]


def test_a_kill_is_cleaned_up_by_the_next_run(place):
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


def test_an_interrupt_after_the_results_were_written_says_so(cli, place, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    cli.ok("fit a.csv --bank bank")
    monkeypatch.setattr(terminal.Screen, "print", interrupted)
    Path("b.csv").write_text(ANSWERS.replace("\na,1,0,1", "\nz,1,1,0"))
    for line, written in (("fit a.csv -o out", "'out/items.csv'"), ("update bank b.csv -o bank2", "'bank2'")):
        done = cli(line)
        assert done.code == 130
        assert "nothing was written" not in done.err
        assert f"had been written: {written}" in done.err
    done = cli("fit a.csv")
    assert (done.code, done.err) == (130, "interrupted: nothing was written.\n")


@pytest.mark.parametrize("module", ["numpy", "typer", "spectral_irt.cli.fit", "spectral_irt.cli.calibrate"])
def test_an_interrupt_while_importing(place, module):
    program = f"""
import builtins, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
class Slow:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            print("now", flush=True)
            for _ in range(600):  # an interrupt that is raised again does not end a sleep
                time.sleep(0.1)
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
