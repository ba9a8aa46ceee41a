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
from spectral_irt.data.answer_key import KEY, OTHER
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.labels import positions
from spectral_irt.data.scoring import BLANK, RawAnswers
from spectral_irt.errors import OptionError
from spectral_irt.inference.fit.strata import stratum_of_cells, wilson_interval
from spectral_irt.inference.items.classical import FEWEST, ItemAnalysis, rest_of, rises, runs
from spectral_irt.inference.results import EACH, first_few
from spectral_irt.persons.abilities import answers_with_difficulty
from spectral_irt.tables import Columns
from spectral_irt.text import listed

MOST = 10_000_000  # items times options: some tens of bytes each
THAN_KEY = 0.05  # level of the comparison with the key: it is asked only of options that passed the first one
SIZES = 8  # sums for every item and option
STRATA = 6  # few enough that options have people in each, many enough to show where a curve turns
GRID = 120  # cells of equal numbers of people, of which strata are made


@dataclass(frozen=True, eq=False)
class Distractors:
    """What `distractors` found: `item, option, key, n, share, mean_ability, rest_ability, rest_ability_se,
    point_biserial`, which rows are options that may be the right ones, whose people measure higher than those who chose
    the key (a weaker condition), the codes of the options, and findings."""

    columns: Columns
    suspect: NDArray[np.bool_]
    above_key: NDArray[np.bool_]
    code: Ints
    findings: tuple[Finding, ...]


def require_options(responses: Responses) -> RawAnswers:
    """The texts of the options and the key; an error without a key."""
    if responses.raw is None or not responses.raw.options:
        raise OptionError(
            "there are no options to look at: the answers were not scored with an answer key. Read the raw answers "
            "and say `key=`."
        )
    return responses.raw


def distractors(calibration: Calibration, responses: Responses, ability: Floats, analysis: ItemAnalysis) -> Distractors:
    """Who chose which option of every item, from responses in the order of the calibration's items, read with a key;
    abilities, as reported, are for `mean_ability`."""
    raw = require_options(responses)
    m, k = responses.n_items, len(raw.options)
    if m * k > MOST:
        raise OptionError(
            f"{m:,} items times {k:,} options are too many for a table; up to {MOST:,} are counted. Look at some of "
            "the items with responses.take_items(...)."
        )
    sums = responses.sum(_sums, calibration.difficulty, responses.thresholds, k, persons=(ability,))
    n, of_ability, known, with_a_rest, share, rest_n, rest, rest2 = sums.reshape(SIZES, m, k)
    item, code, text = _rows(n, raw, responses.items)
    with np.errstate(divide="ignore", invalid="ignore"):
        all_n, all_r, all_r2 = (each[:, None] for each in analysis.rest)
        point = (all_n * share - with_a_rest * all_r) / (
            np.sqrt(all_n * with_a_rest - with_a_rest**2) * np.sqrt(np.maximum(all_n * all_r2 - all_r**2, 0))
        )
        mean = rest / rest_n
        variance = np.maximum(rest2 - rest_n * mean**2, 0) / (rest_n - 1)
        columns: Columns = {
            "item": calibration.labels[item],
            "option": text,
            "key": code == KEY,
            "n": n[item, code].astype(np.int64),
            "share": (n / n.sum(axis=1, keepdims=True))[item, code],
            "mean_ability": (of_ability / known)[item, code],
            "rest_ability": mean[item, code],
            "rest_ability_se": np.sqrt(variance / rest_n)[item, code],
            "point_biserial": np.where(np.isfinite(point), point, np.nan)[item, code],
        }
    suspects, above_key = _suspects(np.array([rest_n, rest, rest2]))
    suspect = suspects[item, code]
    return Distractors(
        columns=columns,
        suspect=suspect,
        above_key=above_key[item, code],
        code=code,
        findings=_findings(columns, suspect, item),
    )


def _sums(block: Block, ability: Floats, difficulty: Floats, layout: Thresholds, k: int) -> Floats:
    """Of every item and option: answers; abilities, and how many; answers with a rest, and their r; answers with a rest
    ability, these, and their squares."""
    size = len(difficulty) * k
    total = np.zeros((SIZES, size))
    if block.options is None:
        return total
    for persons, part, rest, known in runs(block, difficulty, difficulty, layout):
        theta = np.repeat(ability[persons], part.counts)
        finite = np.isfinite(theta)
        slot = _slots(part, k)
        total[0] += np.bincount(slot, minlength=size)
        total[1:3] += [np.bincount(slot[finite], weights=w, minlength=size) for w in (theta[finite], None)]
        slot = _slots(rest.block, k)
        total[3:5] += [np.bincount(slot, weights=w, minlength=size) for w in (None, rest.points / rest.most)]
        slot, measure = _slots(known.block, k), known.ability(known.points)
        total[5:] += [np.bincount(slot, weights=w, minlength=size) for w in (None, measure, measure**2)]
    return total


def _slots(block: Block, k: int) -> Ints:
    assert block.options is not None
    return block.items.astype(np.int64) * k + block.options


def _rows(n: Floats, raw: RawAnswers, items: NDArray[Any]) -> tuple[Ints, Ints, NDArray[Any]]:
    """Items, codes and texts of the rows of the table: what was chosen, and the key; by texts, numbers by size."""
    item, code = np.nonzero((n > 0) | (np.arange(n.shape[1]) == KEY))
    text, right = np.array([*raw.options, None], dtype=object)[code], code == KEY
    text[right] = [raw.key.get(label, "") for label in items[item[right]].tolist()]
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


def _suspects(chose: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which options of which items may be the right ones, and whose people measure higher than those of the key; from
    the people who chose each, the sum of their abilities by the other items and that of the squares."""
    others, keyed = chose.sum(axis=2, keepdims=True) - chose, np.broadcast_to(chose[:, :, [KEY]], chose.shape)
    than_others, than_key = (rises(*np.stack([those, chose], axis=-1)) for those in (others, keyed))
    asked = np.isfinite(than_others)
    asked[:, [BLANK, KEY]] = False
    asked[:, OTHER:] = False
    with np.errstate(invalid="ignore"):
        above_key = than_key < THAN_KEY
        than_key_too = above_key | ((keyed[0] < FEWEST) & (chose[0] >= FEWEST))
        return asked & (than_others * max(int(asked.sum()), 1) < EACH) & than_key_too, above_key


def _compared(columns: Columns, row: int, right: int) -> str:
    """Those who chose the option in this row beside those who chose the key."""
    key, n, mean = columns["option"][right], columns["n"], columns["rest_ability"]
    who = f"the {n[row]:,} people who chose {columns['option'][row]!r}"
    higher = f"measure higher on the other items (mean {mean[row]:z.2f})"
    if n[right] < FEWEST:
        return f"the key is {key!r}, which {n[right] or 'nobody'} chose, and {who} {higher} than the others"
    return f"the key is {key!r}, but {who} {higher} than the {n[right]:,} who chose {key!r} ({mean[right]:z.2f})"


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
    one = len(parts) == 1
    what = "The key of 1 item is probably wrong" if one else f"The keys of {len(parts):,} items are probably wrong"
    remedy = "Check the key, correct it and calibrate again; `study.distractors()` has every option."
    return (Finding("wrong_key", "warning", f"{what}. {first_few(parts, ' items')}.", remedy, tuple(labels)),)


def option_curves(
    responses: Responses, difficulty: Floats, ability: Floats, items: Ints, strata: int = STRATA
) -> list[Columns]:
    """Of each of these items a row for every option and stratum: `item, option, key, stratum, n, chose, share, ci_low,
    ci_high, ability`.

    `n` people in the stratum, `chose` of them this option; `ability` is their mean, by the other items; intervals are
    Wilson's, 95%. The abilities given only say where the people are, so that strata have about equal numbers of them.
    """
    raw = require_options(responses)
    options, k = raw.options, len(raw.options)
    known = np.sort(ability[np.isfinite(ability)])
    edges = np.unique(np.quantile(known, np.arange(1, GRID) / GRID)) if len(known) else np.zeros(0)
    place = np.full(len(difficulty), -1)
    place[items] = np.arange(len(items))
    sums = responses.sum(_grid_sums, difficulty, responses.thresholds, place, edges, k)
    labels = responses.items[items].tolist()
    return [
        _curve(one, strata, label, np.array([options[0], raw.key.get(label, ""), *options[2:]], dtype=object))
        for label, one in zip(labels, sums.transpose(1, 0, 2, 3), strict=True)
    ]


def _grid_sums(block: Block, difficulty: Floats, layout: Thresholds, place: Ints, edges: Floats, k: int) -> Floats:
    """Of every wanted item, cell and option: people, and their abilities by the other items."""
    cells, wanted = len(edges) + 1, int(place.max()) + 1
    total = np.zeros((2, wanted * cells * k))
    if block.options is not None:
        rest = rest_of(answers_with_difficulty(block, difficulty), difficulty, layout)
        chosen = np.flatnonzero(place[rest.item] >= 0)
        measure, option = rest.ability(rest.points)[chosen], np.asarray(rest.block.options)[chosen]
        slot = (place[rest.item[chosen]] * cells + np.searchsorted(edges, measure)) * k + option
        total[0] += np.bincount(slot, minlength=total.shape[1])
        total[1] += np.bincount(slot, weights=measure, minlength=total.shape[1])
    return total.reshape(2, wanted, cells, k)


def _curve(sums: Floats, strata: int, label: Any, texts: NDArray[Any]) -> Columns:
    """Neighboring cells of one item put together, and a row for each option that was chosen, and for the key."""
    of_cell = stratum_of_cells(sums[0].sum(axis=1), strata)
    joined = np.array([sums[:, of_cell == k].sum(axis=1) for k in range(strata)]).transpose(1, 0, 2)
    counts, totals = joined[0], joined[1].sum(axis=1)
    there = np.flatnonzero(counts.sum(axis=1) > 0)
    codes = np.flatnonzero((counts.sum(axis=0) > 0) | (np.arange(sums.shape[2]) == KEY))
    codes = np.array(sorted(codes.tolist(), key=lambda code: (code in (BLANK, OTHER), natural(str(texts[code])))))
    chose = counts[np.ix_(there, codes)].T.ravel()
    people = np.tile(counts[there].sum(axis=1), len(codes))
    low, high = wilson_interval(chose, people)
    item = np.empty(len(chose), dtype=object)
    item[:] = [label] * len(chose)
    return {
        "item": item,
        "option": np.repeat(texts[codes], len(there)),
        "key": np.repeat(codes == KEY, len(there)),
        "stratum": np.tile(np.arange(1, len(there) + 1), len(codes)),
        "n": people.astype(np.int64),
        "chose": chose.astype(np.int64),
        "share": chose / people,
        "ci_low": low,
        "ci_high": high,
        "ability": np.tile(totals[there] / counts[there].sum(axis=1), len(codes)),
    }
