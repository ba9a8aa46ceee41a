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
# Everything is imported once; each run is a fork of that process, and ends as a process does. A parent in the
# background ignores SIGINT, and its children would, too.
PROGRAM = """
import atexit, importlib, json, os, pkgutil, scipy.special, signal, sys
import spectral_irt
from spectral_irt.__main__ import run
for module in pkgutil.walk_packages(spectral_irt.__path__, "spectral_irt."):
    importlib.import_module(module.name)
signal.signal(signal.SIGINT, signal.default_int_handler)
def count(event, args):
    global files
    if event in ("open", "os.rename", "os.remove", "os.mkdir") and os.path.abspath(str(args[0])).startswith(place):
        files += 1
        if files == last:
            os.kill(os.getpid(), number)
for line in sys.stdin:
    words, place, said, last, number = json.loads(line)
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.chdir(place)
    place, files = os.getcwd() + os.sep, 0
    sys.addaudithook(count)
    if not last:
        atexit.register(lambda: print(files, file=sys.stderr))
    sys.argv = ["spectral-irt", *words]
    run()
"""


@pytest.fixture(scope="module")
def runs():
    """The process of which runs are forked."""
    command = [sys.executable, "-c", PROGRAM]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    with subprocess.Popen(command, env=environment, text=True, **pipes) as process:
        yield process
        process.stdin.close()
        assert process.wait() == 0


def write(path, seed):
    answers = simulate.rasch(PEOPLE, ITEMS, seed=seed).responses.to_dense()
    wide(path, answers, person=[f"p{seed}-{k}" for k in range(PEOPLE)])


def start(runs, args, cwd, at=0, number=0):
    """A run that ends itself at its file number `at`, or not: its exit code, and what it said on stderr."""
    said = cwd.with_name(f"{cwd.name}.stderr")
    runs.stdin.write(json.dumps([args, str(cwd), str(said), at, number]) + "\n")
    runs.stdin.flush()
    return int(runs.stdout.readline()), said.read_text()


def count_files(runs, args, cwd):
    """How many files a run to the end opens, renames or removes."""
    code, said = start(runs, args, cwd)
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
def test_random_kills(runs, tmp_path, name, state):
    numbers = random.Random(9)
    for seed, file in ((1, "a.csv"), (2, "b.csv")):
        write(tmp_path / file, seed)
    finish(["fit", "a.csv", "--bank", "bank", "-o", "out"], tmp_path)
    whole, ended = count_files(runs, ["fit", "a.csv", "-o", "out"], tmp_path), 0
    for kill in range(KILLS):
        if name == "fit":
            args = ["fit", "b.csv" if state(tmp_path) == "a.csv" else "a.csv", "-o", "out"]
        else:
            write(tmp_path / "new.csv", 10 + kill)
            args = ["update", "bank", "new.csv"]
        if kill == 0 and name == "update":
            whole = count_files(runs, [*args, "-o", "copy"], tmp_path)
        before = state(tmp_path)
        number = SIGNALS[kill % 3]
        code, said = start(runs, args, tmp_path, numbers.randint(1, whole), number)
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
