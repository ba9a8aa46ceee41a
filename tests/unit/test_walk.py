"""The default in eight steps, as docs/design.md has them: each function is there, and is called in this order."""

import logging
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spectral_irt import SpectralPartialCredit, SpectralRasch, datasets, simulate

PAGE = Path(__file__).parents[2] / "docs" / "design.md"
MATHEMATICS = ("chain/", "conditional/", "estimators/", "calibration.py")


def steps():
    """Function and file of each step."""
    rows = re.findall(r"^\| (\d) \|.*\| `([\w.]+)` \| `([\w./]+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(number) for number, *_ in rows] == list(range(1, 9))
    return [(function, file) for _, function, file in rows]


def calls(estimator, table):
    """Functions of the package in the order of their first calls, in this thread."""
    seen: dict[tuple[str, str], None] = {}

    def note(frame, event, arg):
        code = frame.f_code
        if event == "call" and "spectral_irt/" in code.co_filename.replace("\\", "/"):
            file = code.co_filename.replace("\\", "/").rpartition("spectral_irt/")[2]
            seen.setdefault((code.co_qualname, file))

    estimator.fit(table)  # what modules do when they are loaded is no step
    before = sys.getprofile()
    logging.disable()  # who listens to the log is no step either
    sys.setprofile(note)
    try:
        estimator.fit(table)
    finally:
        sys.setprofile(before)
        logging.disable(logging.NOTSET)
    return list(seen)


WALKS = {
    "LSAT": (SpectralRasch, lambda: datasets.load_lsat(), 11),
    "sparse": (SpectralRasch, lambda: simulate.rasch(300, 40, design="sampled", p=0.2, seed=1).responses, 12),
    "categories": (SpectralPartialCredit, lambda: simulate.partial_credit(300, 8, categories=4, seed=1).responses, 12),
}


@pytest.mark.parametrize("name", WALKS)
def test_a_fit_takes_the_steps_of_the_page(name):
    estimator, data, files = WALKS[name]
    found = calls(estimator(threads=1), data().to_dense())
    places = [found.index(step) for step in steps()]
    assert places == sorted(places)
    walked = {file for _, file in found if file.startswith(MATHEMATICS)}
    assert len(walked) <= files, sorted(walked)
    assert len({file for _, file in found}) <= 25


COMMAND = """
import json, sys, threading
seen = set()
def note(frame, event, arg):
    code = frame.f_code
    if event == "call" and "spectral_irt" in code.co_filename and code.co_name != "<module>":
        seen.add((code.co_filename, code.co_qualname))
threading.setprofile(note)
sys.setprofile(note)
from spectral_irt.cli.main import main
assert main(sys.argv[1:]) == 0
sys.setprofile(None)
print(len({file for file, _ in seen}), len(seen), file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("options", "files"), [([], 100), (["--report", "report.html"], 120)])
def test_a_newcomer_can_follow_the_command(tmp_path, options, files):
    """All that a plain fit calls: functions, classes that are made, comprehensions."""
    values = simulate.rasch(2000, 30, seed=1).responses.to_dense()
    head = ",".join(f"q{k}" for k in range(30))
    np.savetxt(tmp_path / "answers.csv", values, fmt="%d", delimiter=",", header=head, comments="")
    line = [sys.executable, "-c", COMMAND, "fit", "answers.csv", "-o", "results", *options]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)
    n_files, n_functions = map(int, done.stderr.split()[-2:])
    assert n_files <= files
    assert n_functions <= (800 if not options else np.inf)
