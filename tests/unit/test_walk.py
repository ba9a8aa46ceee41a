"""The default in eight steps, as docs/design.md has them: each function is there, and is called in this order."""

import logging
import re
import sys
from pathlib import Path

import pytest

from spectral_irt import SpectralPartialCredit, SpectralRasch, datasets, simulate

PAGE = Path(__file__).parents[2] / "docs" / "design.md"


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
    "LSAT": (SpectralRasch, lambda: datasets.load_lsat()),
    "sparse": (SpectralRasch, lambda: simulate.rasch(300, 40, design="sampled", p=0.2, seed=1).responses),
    "categories": (SpectralPartialCredit, lambda: simulate.partial_credit(300, 8, categories=4, seed=1).responses),
}


@pytest.mark.parametrize("name", WALKS)
def test_a_fit_takes_the_steps_of_the_page(name):
    estimator, data = WALKS[name]
    found = calls(estimator(threads=1), data().to_dense())
    places = [found.index(step) for step in steps()]
    assert places == sorted(places)
