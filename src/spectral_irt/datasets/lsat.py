"""Section 6 of the Law School Admission Test."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources

import numpy as np

from spectral_irt.responses.responses import Responses


def load_lsat() -> Responses:
    """Section 6 of the Law School Admission Test: 1,000 persons, 5 items, complete; the classic small example.

    Items are "item1" to "item5", people 1 to 1000, sorted by their answers. The file bundled with the package is the
    published table of frequencies of the 30 answer patterns that occur.

    References
    ----------
    Bock, R. D. & Lieberman, M. (1970). Fitting a response model for n dichotomously scored items.
    Psychometrika 35, 179-197.

    Examples
    --------
    >>> load_lsat()
    Responses(1,000 persons x 5 items, 5,000 responses, 76.4% right)
    """
    text = resources.files("spectral_irt.datasets").joinpath("lsat6.csv").read_text(encoding="ascii")
    header, *lines = text.splitlines()
    table = np.array([line.split(",") for line in lines], dtype=np.int64)
    answers = np.repeat(table[:, :-1], table[:, -1], axis=0)
    responses = Responses.from_wide(answers, items=header.split(",")[:-1])
    return replace(responses, users=np.arange(1, len(answers) + 1), source="LSAT section 6")


def lsat_text() -> str:
    """The same as a CSV file: a row for each person, a column for each item.

    Examples
    --------
    >>> print(lsat_text()[:52])
    person,item1,item2,item3,item4,item5
    1,0,0,0,0,0
    2,0
    """
    responses = load_lsat()
    rows = zip(responses.users.tolist(), responses.to_dense().astype(int).tolist(), strict=True)
    lines = [["person", *responses.items.tolist()], *([person, *row] for person, row in rows)]
    return "".join(",".join(map(str, line)) + "\n" for line in lines)
