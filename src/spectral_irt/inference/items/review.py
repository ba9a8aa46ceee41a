"""Questions of a multiple-choice test that its author should look at before points are given.

A question is named for what anybody can see in the answers, in this order: its key looks wrong (`distractors`, or most
people chose one wrong option, and hardly anybody the key); more people chose a wrong option than the key, or those who
chose it measure higher on the other items; the correlation with the rest of the test is surely low; hardly anybody is
right, or nearly everybody. These are hints for reading the question again, and no test of the model. The report shows
them (`report/questions.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spectral_irt.data.answer_key import KEY, OTHER
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.scoring import BLANK
from spectral_irt.inference.items.distractors import Distractors

HARD = 0.2  # share of right answers at or below which an item is hard for everybody; so is one at the level of guessing
MOST = 0.5  # share of people on a wrong option from which on the key is doubted, where hardly anybody chose that
EASY = 0.95  # share at or above which it says next to nothing about anybody
USUAL = 0.2  # correlation with the rest of the test below which handbooks advise a revision (Ebel & Frisbie, 1991)
ONE_SIDED = 1.645  # normal quantile: a correlation is low where its upper 95% limit is below the usual one


class Look(NamedTuple):
    """A question to look at, and why.

    `reasons` are among "key", "swapped" (more people chose a wrong option than the key, they measure higher, and those
    who are right measure lower than the others), "most" (half of the people or more chose a wrong option, and hardly
    anybody the key, so that measures of those who did tell little), "more", "higher", "flat", "hard" and "easy";
    `option` is the wrong option that these are about, None where they are about none; `chose` and `chose_key` are the
    people who chose it and the key.
    """

    item: Any
    reasons: tuple[str, ...]
    n: int
    right: int
    correlation: float
    n_options: int
    option: Any
    chose: int
    key: Any
    chose_key: int


def surely_low(correlation: Floats, n: Ints) -> Any:
    """Whether the upper limit of a correlation, by Fisher's z, is below the usual one.

    >>> surely_low(np.array([-0.2, 0.0, 0.1, 0.1]), np.array([30, 30, 100, 1000])).tolist()
    [True, False, False, True]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        upper = np.tanh(np.arctanh(correlation) + ONE_SIDED / np.sqrt(np.maximum(n - 3.0, 0.0)))
        return upper < USUAL


def items_to_look_at(chosen: Distractors, item_rest: Floats) -> list[Look]:
    """The questions to look at, those with the most serious reason first; `item_rest` has a number for each item, in
    the order of the table of options."""
    columns = chosen.columns
    labels = columns["item"]
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]]) if len(labels) else np.zeros(0, dtype=np.int64)
    ends = np.r_[starts[1:], len(labels)]
    looks = []
    for place, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        look = _look(chosen, np.arange(start, end), float(item_rest[place]))
        if look.reasons:
            looks.append(look)
    order = ("key", "swapped", "most", "more", "higher", "flat", "hard", "easy")
    return sorted(looks, key=lambda look: (order.index(look.reasons[0]), look.right / look.n))


def _look(chosen: Distractors, rows: Ints, correlation: float) -> Look:
    """What there is to say about the item of these rows."""
    columns = chosen.columns
    count = columns["n"]
    key = int(rows[chosen.code[rows] == KEY][0])
    n = int(count[rows].sum())
    right = int(count[key])
    wrong = [row for row in rows.tolist() if chosen.code[row] not in (BLANK, KEY, OTHER)]
    n_options = 1 + sum(int(count[row]) > 0 for row in wrong)
    most = max(wrong, key=lambda row: int(count[row]), default=None)
    suspects = [row for row in wrong if chosen.suspect[row]]
    higher = [row for row in wrong if chosen.above_key[row]]
    reasons: list[str] = []
    option = None
    if suspects:
        reasons.append("key")
        option = max(suspects, key=lambda row: int(count[row]))
    elif most is not None and count[most] > right:
        if chosen.above_key[most] and correlation < 0:
            reasons.append("swapped")
        elif count[most] >= MOST * n and 2 * right * n_options <= n:
            reasons.append("most")
        else:
            reasons.append("more")
        option = most
    elif higher:
        reasons.append("higher")
        option = max(higher, key=lambda row: int(count[row]))
    if n and not suspects:
        share = right / n
        extreme = share >= EASY or share <= 0
        if not extreme and bool(surely_low(np.array([correlation]), np.array([n]))[0]):
            reasons.append("flat")
        if share <= HARD or (n_options > 1 and share <= 1 / n_options):
            reasons.append("hard")
        elif share >= EASY:
            reasons.append("easy")
    return Look(
        item=columns["item"][key],
        reasons=tuple(reasons),
        n=n,
        right=right,
        correlation=correlation,
        n_options=n_options,
        option=None if option is None else columns["option"][option],
        chose=0 if option is None else int(count[option]),
        key=columns["option"][key],
        chose_key=right,
    )
