"""Fifty runs ended at random moments by SIGINT, SIGTERM or SIGKILL: nothing is lost and nothing is left behind."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spectral_irt import Bank, simulate

KILLS = {"fit": 21, "update": 21, "reproduce": 8}  # an experiment takes longer
PEOPLE = 400  # in each file
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
# A parent in the background ignores SIGINT, and its children would, too.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from spectral_irt.__main__ import run; run()"
)


def write(path: Path, seed: int) -> None:
    data = simulate.rasch(PEOPLE, 30, seed=seed).responses
    rows = [f"p{seed}-{k}," + ",".join(map(str, row)) for k, row in enumerate(data.to_dense().astype(int).tolist())]
    path.write_text("\n".join(["user," + ",".join(f"q{k}" for k in range(30)), *rows]) + "\n")


def start(args: list[str], cwd: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, *args]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(args: list[str], cwd: Path) -> float:
    """Run to the end; how many seconds it took."""
    begin = time.monotonic()
    with start(args, cwd) as running:
        said = running.communicate(timeout=120)
    assert running.returncode == 0, said
    return time.monotonic() - begin


def drafts(place: Path) -> list[str]:
    return [str(path) for path in place.rglob("*.partial")]


def fit_state(place: Path) -> str:
    """Which data the results are of; every file must say the same."""
    record = json.loads((place / "out/fit.json").read_text())
    items = (place / "out/items.csv").read_text().splitlines()
    persons = (place / "out/persons.csv").read_text().splitlines()
    assert len(items) == 31
    assert len(persons) == PEOPLE + 1
    assert sum(int(line.split(",")[6]) for line in items[1:]) == record["counts"]["right"]
    assert persons[1].split(",")[0].split("-")[0] == {"a.csv": "p1", "b.csv": "p2"}[record["input"]["source"]]
    return str(record["input"]["source"])


def bank_state(place: Path) -> str:
    return str(Bank.load(place / "bank").n_users)  # loading checks every file


def figure_state(place: Path) -> str:
    table = place / "figures/table1.csv"
    return table.read_text().splitlines()[0] if table.exists() else "none"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "state"),
    [("fit", fit_state), ("update", bank_state), ("reproduce", figure_state)],
    ids=["fit", "update", "reproduce"],
)
def test_random_kills(tmp_path: Path, name: str, state: Callable[[Path], str]) -> None:
    numbers = random.Random(9)
    for seed, file in ((1, "a.csv"), (2, "b.csv")):
        write(tmp_path / file, seed)
    finish(["fit", "a.csv", "--bank", "bank", "-o", "out"], tmp_path)
    whole = 0.0
    ended = 0
    for kill in range(KILLS[name]):
        if name == "fit":
            args = ["fit", "b.csv" if state(tmp_path) == "a.csv" else "a.csv", "-o", "out"]
        elif name == "update":
            write(tmp_path / "new.csv", 10 + kill)
            args = ["update", "bank", "new.csv"]
        else:
            args = ["reproduce", "table1", "--datasets", "lsat", "--trials", "1", "-o", "figures"]
        if kill == 0:  # how long it takes
            whole = finish([*args[:3], "-o", "copy"] if name == "update" else args, tmp_path)
        before = state(tmp_path)
        number = SIGNALS[kill % 3]
        with start(args, tmp_path) as running:
            time.sleep(numbers.uniform(0.3, 1.05) * whole)
            running.send_signal(number)
            said = running.communicate(timeout=120)
        ended += running.returncode != 0
        assert running.returncode in (0, -number, 128 + number), said
        assert "Traceback" not in said[1]
        assert "internal error" not in said[1]
        after = state(tmp_path)  # whole, of before or of after
        if name == "update":
            assert int(after) - int(before) in (0, PEOPLE)
        if running.returncode == 0 and name != "reproduce":
            assert after != before
        if "nothing was written" in said[1]:
            assert after == before
        assert number == signal.SIGKILL or drafts(tmp_path) == []
        if drafts(tmp_path):  # the next run that comes to its end removes them
            write(tmp_path / "new.csv", 100 + kill)  # what was killed last may be in the bank already
            finish(args, tmp_path)
            assert drafts(tmp_path) == []
    write(tmp_path / "new.csv", 99)
    finish(args, tmp_path)
    assert ended > 0
    assert [path.name for path in tmp_path.rglob("*") if "partial" in path.name or path.name.startswith(".")] == []
    if name == "update":
        names = {entry["file"] for entry in json.loads((tmp_path / "bank/bank.json").read_text())["tables"].values()}
        assert set(os.listdir(tmp_path / "bank")) == {"bank.json", *names}
