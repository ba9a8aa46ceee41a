"""Multiple choice: who chose which option. A distractor that attracts abler people than the key is a wrong key's mark.

How able somebody is, is told by the other items (PROX), so that choosing what the key says does not make anybody look
abler. An option is suspected of being the right one when

- those who chose it are abler than everybody else who answered the item (adjusted for asking of every option of every
  item, Bonferroni), which a plausible distractor of a hard item may be too; and
- they are abler than those who chose the key,

beyond chance by Welch's test, at 1% and 5%. Where the key is right the first hardly ever holds, and where it does the
second is against the facts; with two right answers the second does not hold. Where hardly anybody (fewer than five)
chose the key, the first is enough.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.choices import BLANK, KEY, OTHER
from spectral_irt.data.labels import positions
from spectral_irt.errors import NAMED, OptionError, listed
from spectral_irt.inference.items.classical import (
    FEWEST,
    Groups,
    ItemAnalysis,
    abler,
    own_rest_ability,
    rest_shares,
    runs,
)
from spectral_irt.inference.results import EACH
from spectral_irt.tables import Columns

MOST = 10_000_000  # items times options: some tens of bytes each
THAN_KEY = 0.05  # level of the comparison with the key: it is asked only of options that passed the first one
SIZES = 8  # sums for every item and option


@dataclass(frozen=True, eq=False)
class Distractors:
    """What `distractors` found: the table, and the tests of each row.

    Attributes
    ----------
    columns : mapping of columns
        `item, option, key, n, share, mean_ability, rest_ability, rest_ability_se, point_biserial`.
    suspect : bool array
        Options that may be the right ones.
    findings : tuple of Finding
    """

    columns: Columns
    suspect: NDArray[np.bool_]
    findings: tuple[Finding, ...]


def has_options(responses: Responses) -> bool:
    """Whether a key was used, so that options are known."""
    return responses.raw is not None and bool(responses.raw.options)


def require_options(responses: Responses) -> tuple[str, ...]:
    """The texts of the options; an error without a key."""
    if responses.raw is None or not responses.raw.options:
        raise OptionError(
            "there are no options to look at: the answers were not scored with an answer key. Read the raw answers "
            "and say `key=`."
        )
    return responses.raw.options


def distractors(calibration: Calibration, responses: Responses, ability: Floats, analysis: ItemAnalysis) -> Distractors:
    """Who chose which option of every item.

    Parameters
    ----------
    calibration, responses
        The responses in the order of the calibration's items, read with a key.
    ability : float array, one per person
        As reported; for `mean_ability`.
    analysis : ItemAnalysis
        Of the same responses.
    """
    options = require_options(responses)
    m, k = responses.n_items, len(options)
    if m * k > MOST:
        raise OptionError(
            f"{m:,} items times {k:,} options are too many for a table; up to {MOST:,} are counted. Look at some of "
            "the items with responses.take_items(...)."
        )
    sums = responses.sum(_sums, calibration.difficulty, k, persons=(ability,))
    n, of_ability, known, with_a_rest, share, rest_n, rest, rest2 = sums.reshape(SIZES, m, k)
    item, code, text = _rows(n, responses)
    chose = Groups.of(rest_n, rest, rest2)
    others = Groups.of(*(each.sum(axis=1, keepdims=True) - each for each in (rest_n, rest, rest2)))
    with np.errstate(divide="ignore", invalid="ignore"):
        all_n, all_r, all_r2 = (each[:, None] for each in analysis.rest)
        point = (all_n * share - with_a_rest * all_r) / (
            np.sqrt(all_n * with_a_rest - with_a_rest**2) * np.sqrt(np.maximum(all_n * all_r2 - all_r**2, 0))
        )
        columns: Columns = {
            "item": calibration.labels[item],
            "option": text,
            "key": code == KEY,
            "n": n[item, code].astype(np.int64),
            "share": (n / n.sum(axis=1, keepdims=True))[item, code],
            "mean_ability": (of_ability / known)[item, code],
            "rest_ability": chose.mean[item, code],
            "rest_ability_se": np.sqrt(chose.variance / chose.n)[item, code],
            "point_biserial": np.where(np.isfinite(point), point, np.nan)[item, code],
        }
    suspect = _suspects(chose, others)[item, code]
    return Distractors(columns, suspect, _findings(columns, suspect, item))


def _sums(block: Block, ability: Floats, difficulty: Floats, k: int) -> Floats:
    """Of every item and option: answers; abilities, and how many; answers with a rest, and their r; answers with a rest
    ability, these, and their squares."""
    size = len(difficulty) * k
    total = np.zeros((SIZES, size))
    if block.options is None:
        return total
    for persons, part, rest, known in runs(block, difficulty):
        slot, theta = _slots(part, k), np.repeat(ability[persons], part.counts)
        counts = np.bincount(slot, minlength=size)
        finite = np.isfinite(theta)
        if finite.all():
            total[:3] += counts, np.bincount(slot, weights=theta, minlength=size), counts
        else:
            own, theta = slot[finite], theta[finite]
            sums = (np.bincount(own, weights=value, minlength=size) for value in (theta, None))
            total[:3] += counts, *sums
        if rest.n_persons:
            slot, counts = (slot, counts) if rest is part else _counted(rest, k, size)
            total[3:5] += counts, np.bincount(slot, weights=rest_shares(rest), minlength=size)
        if known.n_persons:
            slot, counts = (slot, counts) if known is rest else _counted(known, k, size)
            measure = own_rest_ability(known, difficulty)
            total[5:] += counts, *(np.bincount(slot, weights=w, minlength=size) for w in (measure, measure**2))
    return total


def _counted(block: Block, k: int, size: int) -> tuple[Ints, Ints]:
    slot = _slots(block, k)
    return slot, np.bincount(slot, minlength=size)


def _slots(block: Block, k: int) -> Ints:
    assert block.options is not None
    return block.items.astype(np.int64) * k + block.options


def _rows(n: Floats, responses: Responses) -> tuple[Ints, Ints, NDArray[Any]]:
    """Items, codes and texts of the rows of the table: what was chosen, and the key; by texts, numbers by size."""
    assert responses.raw is not None
    options, key = responses.raw.options, responses.raw.key
    shown = n > 0
    shown[:, KEY] = True
    item, code = np.nonzero(shown)
    texts = np.empty(len(options), dtype=object)
    texts[:] = options
    text = texts[code]
    right = code == KEY
    text[right] = [key.get(label, "") for label in responses.items[item[right]].tolist()]
    place = positions(text.tolist(), sorted(set(text.tolist()), key=natural))
    last = (code == OTHER) * 2 + (code == BLANK)
    order = np.lexsort((place, last, item))
    return item[order], code[order], text[order]


def natural(text: str) -> list[tuple[int, int, str]]:
    """A key to sort texts by, in which 10 comes after 9.

    >>> sorted(["10", "b", "9", "a"], key=natural)
    ['9', '10', 'a', 'b']
    """
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.findall(r"\d+|\D+", text)]


def _suspects(chose: Groups, others: Groups) -> NDArray[np.bool_]:
    """Which options of which items may be the right ones."""
    keyed = Groups(*(each[:, [KEY]] for each in (chose.n, chose.mean, chose.variance)))
    than_others, than_key = abler(chose, others), abler(chose, keyed)
    asked = np.isfinite(than_others)
    asked[:, [BLANK, KEY]] = False
    asked[:, OTHER:] = False
    with np.errstate(invalid="ignore"):
        than_key_too = (than_key < THAN_KEY) | ((keyed.n < FEWEST) & (chose.n >= FEWEST))
        return asked & (than_others * max(int(asked.sum()), 1) < EACH) & than_key_too


def _compared(columns: Columns, row: int, right: int) -> str:
    """Those who chose the option in this row beside those who chose the key."""
    key, n, mean = columns["option"][right], columns["n"], columns["rest_ability"]
    who = f"the {n[row]:,} people who chose {columns['option'][row]!r}"
    able = f"(mean ability on the other items {mean[row]:z.2f})"
    if n[right] < FEWEST:
        return f"the key is {key!r}, which {n[right] or 'nobody'} chose, and {who} are abler {able} than the others"
    return (
        f"the key is {key!r}, but {who} are abler {able} than the {n[right]:,} who chose {key!r} ({mean[right]:z.2f})"
    )


def _findings(columns: Columns, suspect: NDArray[np.bool_], item: Ints) -> tuple[Finding, ...]:
    if not suspect.any():
        return ()
    parts = []
    labels: list[Any] = []
    for row in np.flatnonzero(suspect).tolist():
        label, right = columns["item"][row], int(np.flatnonzero((item == item[row]) & columns["key"])[0])
        if label in labels:
            continue
        labels.append(label)
        parts.append(f"{listed([label])}: {_compared(columns, row, right)}")
    more = f"; and {len(parts) - NAMED:,} more items" if len(parts) > NAMED else ""
    one = len(parts) == 1
    what = "The key of 1 item is probably wrong" if one else f"The keys of {len(parts):,} items are probably wrong"
    return (
        Finding(
            "wrong_key",
            "warning",
            f"{what}. {'; '.join(parts[:NAMED])}{more}.",
            "Check the key, correct it and calibrate again; distractors.csv has every option.",
            tuple(labels),
        ),
    )
