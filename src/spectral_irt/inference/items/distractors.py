"""Multiple choice: who chose which option. A distractor that attracts people of higher ability than the key is a wrong
key's mark.

Abilities are those by the other items (`rest_ability.py`), so that choosing what the key says does not raise them. An
option is suspected of being the right one when

- those who chose it are of higher ability than everybody else who answered the item (adjusted for asking of every
  option of every item, Bonferroni), which a plausible distractor of a hard item may be too; and
- they are of higher ability than those who chose the key,

beyond chance by Welch's test, at 1% and 5%. Where the key is right the first hardly ever holds, and where it does the
second is against the facts; with two right answers the second does not hold. Where hardly anybody (fewer than five)
chose the key, the first is enough.

`Analysis.distractors` shows the table, `review.py` goes on from it, and `plots/distractors.py` draws `option_curves`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.answer_key import KEY, OTHER
from spectral_irt.data.block import Floats, Ints, Mask, Thresholds
from spectral_irt.data.labels import positions
from spectral_irt.data.scoring import BLANK, RawAnswers
from spectral_irt.errors import OptionError
from spectral_irt.inference.fit.strata import stratum_of_cells, wilson_interval
from spectral_irt.inference.items.classical import ItemAnalysis
from spectral_irt.inference.items.rest_ability import FEWEST, AbilitySums, p_rising, person_runs, rest_scores
from spectral_irt.inference.results import EACH, first_few
from spectral_irt.persons.abilities import answers_with_difficulty
from spectral_irt.tables import Columns
from spectral_irt.text import listed

MOST_CELLS = 10_000_000  # items times options: some tens of bytes each
THAN_KEY = 0.05  # level of the comparison with the key: it is asked only of options that passed the first one
STRATA = 6  # few enough that options have people in each, many enough to show where a curve turns
CELLS = 120  # of equal numbers of people, of which strata are made


@dataclass(frozen=True, eq=False)
class Distractors:
    """What `distractors` found: `item, option, key, n, share, mean_ability, rest_ability, rest_ability_se,
    point_biserial`, which rows are options that may be the right ones, whose people measure higher than those who chose
    the key (a weaker condition), the codes of the options, and findings."""

    columns: Columns
    suspect: Mask
    above_key: Mask
    code: Ints
    findings: tuple[Finding, ...]


class OptionSums(NamedTuple):
    """Sums over the answers with each option, items x options: how many; those of people with an ability, and these;
    those with a rest, and the share of the rest that is right; those with an ability by the rest, these abilities, and
    their squares."""

    n: Floats
    with_ability: Floats
    ability: Floats
    with_rest: Floats
    rest_share: Floats
    measured: Floats
    rest_ability: Floats
    rest_ability_square: Floats

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> OptionSums:
        return cls(*np.zeros((len(cls._fields), *shape)))

    @property
    def groups(self) -> AbilitySums:
        """Those who chose each option, with their abilities by the other items."""
        return AbilitySums(self.measured, self.rest_ability, self.rest_ability_square)


class OptionRows(NamedTuple):
    """Item, code and text of each row of the table."""

    item: Ints
    code: Ints
    text: NDArray[Any]


class Suspicion(NamedTuple):
    """Items x options: which may be the right ones, and whose people measure higher than those of the key."""

    suspect: Mask
    above_key: Mask


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
    n_options = len(raw.options)
    if responses.n_items * n_options > MOST_CELLS:
        raise OptionError(
            f"{responses.n_items:,} items times {n_options:,} options are too many for a table; up to {MOST_CELLS:,} "
            "are counted. Look at some of the items with responses.take_items(...)."
        )
    kernel_arguments = (calibration.difficulty, responses.thresholds, n_options)
    sums = OptionSums(*responses.sum(_option_sums, *kernel_arguments, persons=(ability,)))
    rows = _option_rows(sums.n, raw, responses.items)
    cells = (rows.item, rows.code)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = sums.rest_ability / sums.measured
        variance = np.maximum(sums.rest_ability_square - sums.measured * mean**2, 0) / (sums.measured - 1)
        columns: Columns = {
            "item": calibration.labels[rows.item],
            "option": rows.text,
            "key": rows.code == KEY,
            "n": sums.n[cells].astype(np.int64),
            "share": (sums.n / sums.n.sum(axis=1, keepdims=True))[cells],
            "mean_ability": (sums.ability / sums.with_ability)[cells],
            "rest_ability": mean[cells],
            "rest_ability_se": np.sqrt(variance / sums.measured)[cells],
            "point_biserial": _point_biserial(sums, analysis)[cells],
        }
    suspicion = _suspicion(sums.groups)
    suspect = suspicion.suspect[cells]
    return Distractors(
        columns=columns,
        suspect=suspect,
        above_key=suspicion.above_key[cells],
        code=rows.code,
        findings=_findings(columns, suspect, rows.item),
    )


def _point_biserial(sums: OptionSums, analysis: ItemAnalysis) -> Floats:
    """Correlation of choosing an option with the share r of the other answers that are right."""
    n = analysis.rest_n[:, None]
    r = analysis.rest[:, None]
    r2 = analysis.rest_square[:, None]
    covariance = n * sums.rest_share - sums.with_rest * r
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = covariance / (
            np.sqrt(n * sums.with_rest - sums.with_rest**2) * np.sqrt(np.maximum(n * r2 - r**2, 0))
        )
    return np.where(np.isfinite(correlation), correlation, np.nan)


def _option_sums(block: Block, ability: Floats, difficulty: Floats, layout: Thresholds, n_options: int) -> OptionSums:
    shape = (len(difficulty), n_options)
    total = OptionSums.zeros(shape)
    if block.options is None:
        return total

    def add(row: Floats, cell: Ints, values: Floats | None = None) -> None:
        row += np.bincount(cell, weights=values, minlength=row.size).reshape(shape)

    for run in person_runs(block, difficulty, difficulty, layout):
        theta = np.repeat(ability[run.persons], run.block.counts)
        finite = np.isfinite(theta)
        cell = _option_cells(run.block, n_options)
        add(total.n, cell)
        add(total.with_ability, cell[finite])
        add(total.ability, cell[finite], theta[finite])
        cell = _option_cells(run.rest.block, n_options)
        add(total.with_rest, cell)
        add(total.rest_share, cell, run.rest.share)
        cell = _option_cells(run.measured.block, n_options)
        rest_ability = run.measured.ability
        add(total.measured, cell)
        add(total.rest_ability, cell, rest_ability)
        add(total.rest_ability_square, cell, rest_ability**2)
    return total


def _option_cells(block: Block, n_options: int) -> Ints:
    """Item and option of every answer as one number."""
    assert block.options is not None
    return block.items.astype(np.int64) * n_options + block.options


def _option_rows(n: Floats, raw: RawAnswers, items: NDArray[Any]) -> OptionRows:
    """What was chosen, and the key; by texts, numbers by size, blanks and texts that are no option last."""
    item, code = np.nonzero((n > 0) | (np.arange(n.shape[1]) == KEY))
    text = np.array([*raw.options, None], dtype=object)[code]
    is_key = code == KEY
    text[is_key] = [raw.key.get(label, "") for label in items[item[is_key]].tolist()]
    place = positions(text.tolist(), sorted(set(text.tolist()), key=natural))
    last = (code == OTHER) * 2 + (code == BLANK)
    order = np.lexsort((place, last, item))
    return OptionRows(item[order], code[order], text[order])


def natural(text: str) -> list[tuple[int, int, str]]:
    """A key to sort texts by, in which 10 comes after 9.

    >>> sorted(["10", "b", "9", "a"], key=natural)
    ['9', '10', 'a', 'b']
    """
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.findall(r"\d+|\D+", text)]


def _suspicion(chose: AbilitySums) -> Suspicion:
    others = AbilitySums(*(sums.sum(axis=1, keepdims=True) - sums for sums in chose))
    chose_key = AbilitySums(*(np.broadcast_to(sums[:, [KEY]], sums.shape) for sums in chose))
    than_others = _p_higher_ability(chose, others)
    than_key = _p_higher_ability(chose, chose_key)
    is_asked = np.isfinite(than_others)
    is_asked[:, [BLANK, KEY]] = False
    is_asked[:, OTHER:] = False
    n_asked = max(int(is_asked.sum()), 1)
    with np.errstate(invalid="ignore"):
        above_key = than_key < THAN_KEY
        hardly_anybody_chose_key = (chose_key.n < FEWEST) & (chose.n >= FEWEST)
        above_others = than_others * n_asked < EACH
    return Suspicion(is_asked & above_others & (above_key | hardly_anybody_chose_key), above_key)


def _p_higher_ability(people: AbilitySums, others: AbilitySums) -> Floats:
    """One-sided p of "these people are of higher ability than the others"."""
    return p_rising(AbilitySums(*(np.stack(pair, axis=-1) for pair in zip(others, people, strict=True))))


def _beside_the_key(columns: Columns, row: int, key_row: int) -> str:
    """Those who chose the option in this row beside those who chose the key."""
    n = columns["n"]
    mean = columns["rest_ability"]
    key = columns["option"][key_row]
    who = f"the {n[row]:,} people who chose {columns['option'][row]!r}"
    higher = f"measure higher on the other items (mean {mean[row]:z.2f})"
    if n[key_row] < FEWEST:
        return f"the key is {key!r}, which {n[key_row] or 'nobody'} chose, and {who} {higher} than the others"
    return f"the key is {key!r}, but {who} {higher} than the {n[key_row]:,} who chose {key!r} ({mean[key_row]:z.2f})"


def _findings(columns: Columns, suspect: Mask, item: Ints) -> tuple[Finding, ...]:
    """A warning that names the items whose key is probably wrong, each with its first suspect option."""
    if not suspect.any():
        return ()
    suspect_rows = np.flatnonzero(suspect)
    _, first = np.unique(item[suspect_rows], return_index=True)
    labels = []
    comparisons = []
    for row in suspect_rows[first].tolist():
        key_row = int(np.flatnonzero((item == item[row]) & columns["key"])[0])
        label = columns["item"][row]
        labels.append(label)
        comparisons.append(f"{listed([label])}: {_beside_the_key(columns, row, key_row)}")
    what = "The key of 1 item is probably wrong"
    if len(labels) > 1:
        what = f"The keys of {len(labels):,} items are probably wrong"
    remedy = "Check the key, correct it and calibrate again; `study.distractors()` has every option."
    return (Finding("wrong_key", "warning", f"{what}. {first_few(comparisons, ' items')}.", remedy, tuple(labels)),)


def option_curves(
    responses: Responses, difficulty: Floats, ability: Floats, items: Ints, strata: int = STRATA
) -> list[Columns]:
    """Of each of these items a row for every option and stratum: `item, option, key, stratum, n, chose, share, ci_low,
    ci_high, ability`.

    `n` people in the stratum, `chose` of them this option; `ability` is their mean, by the other items; intervals are
    Wilson's, 95%. The abilities given only say where the people are, so that strata have about equal numbers of them.
    """
    raw = require_options(responses)
    finite = np.sort(ability[np.isfinite(ability)])
    edges = np.unique(np.quantile(finite, np.arange(1, CELLS) / CELLS)) if len(finite) else np.zeros(0)
    row_of_item = np.full(len(difficulty), -1)
    row_of_item[items] = np.arange(len(items))
    kernel_arguments = (difficulty, responses.thresholds, row_of_item, edges, len(raw.options))
    sums = responses.sum(_cell_sums, *kernel_arguments)
    curves = []
    for label, sums_of_item in zip(responses.items[items].tolist(), sums.transpose(1, 0, 2, 3), strict=True):
        texts = np.array([raw.options[0], raw.key.get(label, ""), *raw.options[2:]], dtype=object)
        curves.append(_curve(sums_of_item, strata, label, texts))
    return curves


def _cell_sums(
    block: Block, difficulty: Floats, layout: Thresholds, row_of_item: Ints, edges: Floats, n_options: int
) -> Floats:
    """Of every item with a row, cell and option: people, and their abilities by the other items."""
    n_cells = len(edges) + 1
    n_rows = int(row_of_item.max()) + 1
    sums = np.zeros((2, n_rows * n_cells * n_options))
    if block.options is not None:
        rest_of_person = rest_scores(answers_with_difficulty(block, difficulty), difficulty, layout)
        chosen = np.flatnonzero(row_of_item[rest_of_person.item] >= 0)
        rest_ability = rest_of_person.ability[chosen]
        option = np.asarray(rest_of_person.block.options)[chosen]
        cell = row_of_item[rest_of_person.item[chosen]] * n_cells + np.searchsorted(edges, rest_ability)
        cell = cell * n_options + option
        sums[0] += np.bincount(cell, minlength=sums.shape[1])
        sums[1] += np.bincount(cell, weights=rest_ability, minlength=sums.shape[1])
    return sums.reshape(2, n_rows, n_cells, n_options)


def _curve(sums: Floats, strata: int, label: Any, texts: NDArray[Any]) -> Columns:
    """Neighboring cells of one item put together, and a row for each option that was chosen, and for the key."""
    stratum_of_cell = stratum_of_cells(sums[0].sum(axis=1), strata)
    # 2 x strata x options, and of abilities the sum over the options.
    in_strata = np.array([sums[:, stratum_of_cell == k].sum(axis=1) for k in range(strata)]).transpose(1, 0, 2)
    chose_in_strata = in_strata[0]
    ability_sum = in_strata[1].sum(axis=1)
    with_people = np.flatnonzero(chose_in_strata.sum(axis=1) > 0)
    codes = np.flatnonzero((chose_in_strata.sum(axis=0) > 0) | (np.arange(sums.shape[2]) == KEY))
    codes = np.array(sorted(codes.tolist(), key=lambda code: (code in (BLANK, OTHER), natural(str(texts[code])))))
    chose = chose_in_strata[np.ix_(with_people, codes)].T.ravel()
    people_in_strata = chose_in_strata[with_people].sum(axis=1)
    people = np.tile(people_in_strata, len(codes))
    low, high = wilson_interval(chose, people)
    item = np.empty(len(chose), dtype=object)
    item[:] = [label] * len(chose)
    return {
        "item": item,
        "option": np.repeat(texts[codes], len(with_people)),
        "key": np.repeat(codes == KEY, len(with_people)),
        "stratum": np.tile(np.arange(1, len(with_people) + 1), len(codes)),
        "n": people.astype(np.int64),
        "chose": chose.astype(np.int64),
        "share": chose / people,
        "ci_low": low,
        "ci_high": high,
        "ability": np.tile(ability_sum[with_people] / people_in_strata, len(codes)),
    }
