"""Mantel and Haenszel's odds ratio: is an item harder for one group than for another of the same score?

People are matched on the set of items answered and the raw score. In each stratum k an item has a table of right and
wrong by group, A_k B_k (reference) over C_k D_k (focal), and log alpha, alpha = sum_k A_k D_k / N_k / sum_k B_k C_k /
N_k, estimates how much harder the item is for the focal group, without difficulties (Mantel & Haenszel 1959; errors by
Robins, Breslow & Greenland 1986). With more than two categories it is Mantel's statistic (1963) with Cox's estimate,
sum (E - F) / sum V, where F is the sum of the focal group's answers, E and V its mean and variance if groups do not
differ.

`dif.differential` calls `matched_columns`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.inference.groups.grouping import Split, item_sets
from spectral_irt.inference.groups.sampling import SIMPLE, Sampling
from spectral_irt.inference.results import chi2_tail
from spectral_irt.tables import Columns

MATCHED_SINGLY = 50  # items that are not anchors, up to which each has a matching score of its own
LEAST_MATCHED = 0.5  # share of people with a match below which the ratio is not given
CELLS_PER_ANSWER = 4  # cells of strata and items, up to which each has a place in memory
CONTINUITY = 0.5  # Yates's correction: scores are whole numbers


class MatchedDifference(NamedTuple):
    """How much harder items are for the focal group than for others of the same score.

    `size` is log alpha, or Cox's estimate, positive when the item is harder for the focal group, `se` its standard
    error, NaN where no two matched people differed; `statistic` a chi-square with one degree of freedom, with
    continuity correction where answers are right or wrong; `matched` the share of the people without an extreme score
    who have a match: equal items and score, other group.
    """

    size: Floats
    se: Floats
    statistic: Floats
    matched: float


def mantel_haenszel(responses: Responses, focal: NDArray[np.bool_], items: Ints | None = None) -> MatchedDifference:
    """The difference of some (by default all) items between the focal group and the others, given items and score."""
    keys = np.stack([item_sets(responses), responses.scores], axis=1)
    stratum = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    informative = responses.informative
    n_focal = np.bincount(stratum, weights=focal & informative)
    n_other = np.bincount(stratum, weights=~focal & informative)
    both = (n_focal > 0) & (n_other > 0)
    matched = float((n_focal + n_other)[both].sum() / max(informative.sum(), 1))
    asked = responses if items is None else responses.take_items(items)
    if not both.any():
        unknown = np.full(asked.n_items, np.nan)
        return MatchedDifference(unknown, unknown, unknown, matched)
    number = np.where(both, np.cumsum(both) - 1, -1)
    cells = _cells(asked, number[stratum], focal, n_strata=int(both.sum()))
    estimate = _odds_ratio if responses.thresholds.binary else _mean_scores
    return MatchedDifference(*estimate(cells, asked.n_items), matched)


class _Cells(NamedTuple):
    """Of every item in a stratum: the item, its answers, those of the focal group, the sum of the answers and of their
    squares, and the sum of the focal group."""

    item: Ints
    n: Floats
    n_focal: Floats
    total: Floats
    squares: Floats
    total_focal: Floats


def _cells(responses: Responses, stratum: Ints, focal: NDArray[np.bool_], n_strata: int) -> _Cells:
    person, item, category = responses.answers()
    inside = stratum[person] >= 0
    person = person[inside]
    n_items = responses.n_items
    x = category[inside].astype(float)
    cell_of_answer = stratum[person].astype(np.int64) * n_items + item[inside].astype(np.int64)
    cell = np.arange(n_strata * n_items)
    if len(cell) > CELLS_PER_ANSWER * len(cell_of_answer):  # only those that have answers
        cell, cell_of_answer = np.unique(cell_of_answer, return_inverse=True)
    is_focal = focal[person].astype(float)

    def sums(values: Floats | None) -> Floats:
        return np.bincount(cell_of_answer, weights=values, minlength=len(cell)).astype(np.float64)

    return _Cells(cell % n_items, sums(None), sums(is_focal), sums(x), sums(x * x), sums(is_focal * x))


def _odds_ratio(cells: _Cells, n_items: int) -> tuple[Floats, Floats, Floats]:
    """Log odds ratio, its standard error by Robins et al., and chi-square with continuity correction."""
    # Right and wrong of the others (a, b) and of the focal group (c, d).
    c = cells.total_focal
    d = cells.n_focal - c
    a = cells.total - c
    b = cells.n - cells.n_focal - a
    n = np.maximum(cells.n, 2)  # where there is nobody all numerators are zero
    r = a * d / n
    s = b * c / n
    p = (a + d) / n
    q = (b + c) / n

    def over_strata(values: Floats) -> Floats:
        return np.asarray(np.bincount(cells.item, values, n_items), dtype=np.float64)

    R = over_strata(r)
    S = over_strata(s)
    expected = over_strata((a + b) * (a + c) / n)
    variance = over_strata((a + b) * (c + d) * (a + c) * (b + d) / (n * n * (n - 1)))
    distance = np.abs(over_strata(a) - expected)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_odds = np.log(R / S)
        se = np.sqrt(
            over_strata(p * r) / (2 * R**2) + over_strata(p * s + q * r) / (2 * R * S) + over_strata(q * s) / (2 * S**2)
        )
        statistic = np.maximum(distance - CONTINUITY, 0) ** 2 / variance
    finite = (R > 0) & (S > 0)
    return (np.where(finite, log_odds, np.nan), np.where(finite, se, np.nan), np.where(variance > 0, statistic, np.nan))


def _mean_scores(cells: _Cells, n_items: int) -> tuple[Floats, Floats, Floats]:
    """Cox's estimate, its standard error, and Mantel's chi-square."""
    n = np.maximum(cells.n, 2)
    compared = cells.n > 1
    n_focal = cells.n_focal
    total = cells.total
    variance = n_focal * (n - n_focal) * (n * cells.squares - total**2) / (n * n * (n - 1))
    difference = n_focal * total / n - cells.total_focal  # E - F
    D = np.bincount(cells.item, np.where(compared, difference, 0.0), n_items)
    V = np.bincount(cells.item, np.where(compared, variance, 0.0), n_items)
    with np.errstate(divide="ignore", invalid="ignore"):
        size, se, statistic = np.where(V > 0, [D / V, 1 / np.sqrt(V), D**2 / V], np.nan)
    return size, se, statistic


def matched_columns(
    everyone: Responses, split: Split, anchors: NDArray[np.bool_], scale: float, sampling: Sampling = SIMPLE
) -> tuple[Columns, list[Finding]]:
    """`mh_delta, mh_se, mh_p` of every item in every group but the first, people matched on their score on the anchors
    and the item; a finding where too few can be matched.

    Where more than 50 items are not anchors, those are matched on all items. `everyone` are the people of the split's
    groups; `scale` makes delta of logits. Of persons with weights or clusters it is left out: it has no errors that
    allow for these.
    """
    n_focal_groups = split.n_groups - 1
    delta, se, p = np.full((3, n_focal_groups, everyone.n_items), np.nan)
    group = split.group[split.group >= 0]
    shares = []
    compared = range(n_focal_groups) if sampling.simple else ()
    for row in compared:
        pair = (group == 0) | (group == row + 1)
        people = everyone.take_persons(pair)
        focal = group[pair] == row + 1
        for k, (matching, asked) in enumerate(_matching_sets(anchors)):
            difference = mantel_haenszel(people.take_items(matching), focal, np.searchsorted(matching, asked))
            if k == 0:  # the anchors, on which all the others are matched, too
                shares.append(difference.matched)
                if difference.matched < LEAST_MATCHED:
                    break
            delta[row, asked] = -scale * difference.size
            se[row, asked] = scale * difference.se
            p[row, asked] = chi2_tail(difference.statistic, 1)
    columns: Columns = {"mh_delta": delta.ravel(), "mh_se": se.ravel(), "mh_p": p.ravel()}
    if min(shares, default=1.0) >= LEAST_MATCHED:
        return columns, []
    sentence = (
        f"Only {100 * min(shares):.0f}% of the people have a match in the other group (the same items and score), so "
        "Mantel and Haenszel's statistic is not given."
    )
    return columns, [Finding("not_matched", "note", sentence, "It needs larger groups, or fewer forms.")]


def _matching_sets(anchors: NDArray[np.bool_]) -> list[tuple[Ints, Ints]]:
    """Items on which people are matched, and those that are compared so: the anchors first."""
    anchor_items = np.flatnonzero(anchors)
    others = np.flatnonzero(~anchors)
    sets: list[tuple[Ints, Ints]] = [(anchor_items, anchor_items)]
    if len(others) > MATCHED_SINGLY:
        sets.append((np.arange(len(anchors)), others))
    else:
        for item in others:
            sets.append((np.sort(np.append(anchor_items, item)), np.array([item])))
    return sets
