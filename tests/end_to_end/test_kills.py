"""Runs ended by SIGINT, SIGTERM or SIGKILL at a random one of their files: nothing is lost and nothing is left behind.

A moment is counted, not timed: the run ends itself when it opens, renames or removes its n-th file below the folder in
which it works. (Interrupts before that, while it is imported, are in test_streams_and_signals.py.)
"""

import json
import os
import random
import signal
import subprocess
import sys
from contextlib import chdir

import pytest

from end_to_end.tables import wide
from spectral_irt import Bank, simulate
from spectral_irt.cli.main import main

KILLS = 9
PEOPLE, ITEMS = 100, 8  # in each file
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
# A parent in the background ignores SIGINT, and its children would, too.
PROGRAM = """
import atexit, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from spectral_irt.__main__ import run
files, last, number = 0, int(os.environ["TEST_KILL_AT"]), int(os.environ["TEST_KILL_BY"])
place = os.getcwd() + os.sep
def count(event, args):
    global files
    if event in ("open", "os.rename", "os.remove", "os.mkdir") and os.path.abspath(str(args[0])).startswith(place):
        files += 1
        if files == last:
            os.kill(os.getpid(), number)
sys.addaudithook(count)
if not last:
    atexit.register(lambda: print(files, file=sys.stderr))
run()
"""


def write(path, seed):
    answers = simulate.rasch(PEOPLE, ITEMS, seed=seed).responses.to_dense()
    wide(path, answers, person=[f"p{seed}-{k}" for k in range(PEOPLE)])


def start(args, cwd, at=0, number=0):
    """A process that ends itself at its file number `at`, or not: its exit code, and what it said on stderr."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "TEST_KILL_AT": str(at), "TEST_KILL_BY": str(number)}
    command = [sys.executable, "-c", PROGRAM, *args]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    return done.returncode, done.stderr


def count_files(args, cwd):
    """How many files a run to the end opens, renames or removes."""
    code, said = start(args, cwd)
    assert code == 0, said
    return int(said.splitlines()[-1])


def finish(args, cwd):
    """Run to the end, in this process: one of its own is for those that are killed."""
    with chdir(cwd):
        assert main(args) == 0


def drafts(place):
    return [str(path) for path in place.rglob("*.partial")]


def fit_state(place):
    """Which data the results are of; every file must say the same."""
    record = json.loads((place / "out/fit.json").read_text())
    items = (place / "out/items.csv").read_text().splitlines()
    persons = (place / "out/persons.csv").read_text().splitlines()
    assert len(items) == ITEMS + 1
    assert len(persons) == PEOPLE + 1
    assert sum(int(line.split(",")[6]) for line in items[1:]) == record["counts"]["right"]
    assert persons[1].split(",")[0].split("-")[0] == {"a.csv": "p1", "b.csv": "p2"}[record["input"]["source"]]
    return str(record["input"]["source"])


def bank_state(place):
    return str(Bank.load(place / "bank").n_persons)  # loading checks every file


@pytest.mark.slow
@pytest.mark.parametrize(("name", "state"), [("fit", fit_state), ("update", bank_state)], ids=["fit", "update"])
def test_random_kills(tmp_path, name, state):
    numbers = random.Random(9)
    for seed, file in ((1, "a.csv"), (2, "b.csv")):
        write(tmp_path / file, seed)
    finish(["fit", "a.csv", "--bank", "bank", "-o", "out"], tmp_path)
    whole, ended = count_files(["fit", "a.csv", "-o", "out"], tmp_path), 0
    for kill in range(KILLS):
        if name == "fit":
            args = ["fit", "b.csv" if state(tmp_path) == "a.csv" else "a.csv", "-o", "out"]
        else:
            write(tmp_path / "new.csv", 10 + kill)
            args = ["update", "bank", "new.csv"]
        if kill == 0 and name == "update":
            whole = count_files([*args, "-o", "copy"], tmp_path)
        before = state(tmp_path)
        number = SIGNALS[kill % 3]
        code, said = start(args, tmp_path, numbers.randint(1, whole), number)
        ended += code != 0
        assert code in (0, -number, 128 + number), said
        assert "Traceback" not in said
        assert "internal error" not in said
        try:
            after = state(tmp_path)  # whole, of before or of after
        except AssertionError:  # killed outright between two files that took their places: the next run puts that right
            assert (name, number) == ("fit", signal.SIGKILL)
            assert drafts(tmp_path)
            finish(args, tmp_path)
            after = state(tmp_path)
            assert after != before
        if name == "update":
            assert int(after) - int(before) in (0, PEOPLE)
        if code == 0:
            assert after != before
        if "nothing was written" in said:
            assert after == before
        assert number == signal.SIGKILL or drafts(tmp_path) == []
        if drafts(tmp_path):  # the next run that comes to its end removes them
            write(tmp_path / "new.csv", 100 + kill)  # what was killed last may be in the bank already
            finish(args, tmp_path)
            assert drafts(tmp_path) == []
    write(tmp_path / "new.csv", 99)
    finish(args, tmp_path)
    assert ended > KILLS // 3
    assert [path.name for path in tmp_path.rglob("*") if "partial" in path.name or path.name.startswith(".")] == []
    if name == "update":
        record = json.loads((tmp_path / "bank/bank.json").read_text())
        earlier = json.loads((tmp_path / "bank" / record["previous"]["file"]).read_text())
        names = {entry["file"] for one in (record, earlier) for entry in one["tables"].values()}
        assert set(os.listdir(tmp_path / "bank")) == {"bank.json", record["previous"]["file"], *names}
        last = int(state(tmp_path))
        assert Bank.undo(tmp_path / "bank").n_persons == last - PEOPLE
