"""Mantel and Haenszel's odds ratio: is an item harder for one group than for another of the same score?

People are matched on the set of items answered and the raw score. In each stratum k an item has a table of right and
wrong by group, A_k B_k (reference) over C_k D_k (focal), and log alpha, alpha = sum_k A_k D_k / N_k / sum_k B_k C_k /
N_k, estimates how much harder the item is for the focal group, without difficulties (Mantel & Haenszel 1959; errors by
Robins, Breslow & Greenland 1986). With more than two categories it is Mantel's statistic (1963) with Cox's estimate,
sum (E - F) / sum V, where F is the sum of the focal group's answers, E and V its mean and variance if groups do not
differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.inference.groups.grouping import Split, item_sets
from spectral_irt.inference.groups.sampling import SIMPLE, Sampling
from spectral_irt.inference.results import chi2_tail
from spectral_irt.tables import Columns

SINGLY = 50  # items that are not anchors, up to which each has a matching score of its own
MATCHED = 0.5  # share of people with a match below which the ratio is not given
FILLED = 4  # cells of strata and items per answer, up to which each has a place in memory


def mantel_haenszel(
    responses: Responses, focal: NDArray[np.bool_], items: Ints | None = None
) -> tuple[Floats, Floats, Floats, float]:
    """The difference of some (by default all) items between the focal group and the others, given items and score.

    log alpha, or Cox's estimate, positive when the item is harder for the focal group, and its standard error, NaN
    where no two matched people differed; chi-square with one degree of freedom, with continuity correction where
    answers are right or wrong; and the share of the people without an extreme score who have a match: equal items and
    score, other group.
    """
    keys = np.stack([item_sets(responses), responses.scores], axis=1)
    stratum = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    informative = responses.informative
    persons, others = (np.bincount(stratum, weights=each & informative) for each in (focal, ~focal))
    both = (persons > 0) & (others > 0)
    matched = float((persons + others)[both].sum() / max(informative.sum(), 1))
    asked = responses if items is None else responses.take_items(items)
    if not both.any():
        nothing = np.full(asked.n_items, np.nan)
        return nothing, nothing, nothing, matched
    cells = _cells(asked, np.where(both, np.cumsum(both) - 1, -1)[stratum], focal, int(both.sum()))
    return (*(_odds_ratio if responses.thresholds.binary else _mean_scores)(*cells, asked.n_items), matched)


def _cells(responses: Responses, stratum: Ints, focal: NDArray[np.bool_], n_strata: int) -> tuple[Ints, Floats]:
    """The item of every item in a stratum; its answers, those of the focal group, the sum of the answers and of their
    squares, and the sum of the focal group."""
    person, item, category = responses.answers()
    inside = stratum[person] >= 0
    person, item, x = person[inside], item[inside].astype(np.int64), category[inside].astype(float)
    of, m = stratum[person].astype(np.int64) * responses.n_items + item, responses.n_items
    cell = np.arange(n_strata * m)
    if len(cell) > FILLED * len(of):
        cell, of = np.unique(of, return_inverse=True)
    mine = focal[person].astype(float)
    columns = [np.bincount(of, weights=w, minlength=len(cell)) for w in (None, mine, x, x * x, mine * x)]
    return cell % m, np.array(columns, dtype=np.float64)


def _odds_ratio(item: Ints, cells: Floats, n_items: int) -> tuple[Floats, Floats, Floats]:
    """Log odds ratio, its standard error by Robins et al., and chi-square with continuity correction."""
    n, n_focal, total, _, c = cells
    d, a = n_focal - c, total - c
    b, n = n - n_focal - a, np.maximum(n, 2)  # where there is nobody all numerators are zero
    r, s, p, q = a * d / n, b * c / n, (a + d) / n, (b + c) / n
    expected, variance = (a + b) * (a + c) / n, (a + b) * (c + d) * (a + c) * (b + d) / (n * n * (n - 1))
    each = (r, s, p * r, p * s + q * r, q * s, a, expected, variance)
    R, S, pr, mixed, qs, right, awaited, spread = (np.bincount(item, one, n_items) for one in each)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_odds = np.log(R / S)
        se = np.sqrt(pr / (2 * R**2) + mixed / (2 * R * S) + qs / (2 * S**2))
        statistic = np.maximum(np.abs(right - awaited) - 0.5, 0) ** 2 / spread
    known = (R > 0) & (S > 0)
    return np.where(known, log_odds, np.nan), np.where(known, se, np.nan), np.where(spread > 0, statistic, np.nan)


def _mean_scores(item: Ints, cells: Floats, n_items: int) -> tuple[Floats, Floats, Floats]:
    """Cox's estimate, its standard error, and Mantel's chi-square."""
    number, n_focal, total, square, of_focal = cells
    n, more = np.maximum(number, 2), number > 1
    variance = n_focal * (n - n_focal) * (n * square - total**2) / (n * n * (n - 1))
    away = np.bincount(item, np.where(more, n_focal * total / n - of_focal, 0.0), n_items)
    spread = np.bincount(item, np.where(more, variance, 0.0), n_items)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(spread > 0, [away / spread, 1 / np.sqrt(spread), away**2 / spread], np.nan)
    return found[0], found[1], found[2]


def matched_columns(
    everyone: Responses, split: Split, anchors: NDArray[np.bool_], scale: float, sampling: Sampling = SIMPLE
) -> tuple[Columns, list[Finding]]:
    """`mh_delta, mh_se, mh_p` of every item in every group but the first, people matched on their score on the anchors
    and the item; a finding where too few can be matched.

    Where more than 50 items are not anchors, those are matched on all items. `everyone` are the people of the split's
    groups; `scale` makes delta of logits. Of persons with weights or clusters it is left out: it has no errors that
    allow for these.
    """
    if not sampling.simple:
        empty = np.full((split.n_groups - 1) * everyone.n_items, np.nan)
        return {name: empty.copy() for name in ("mh_delta", "mh_se", "mh_p")}, []
    every, others = np.arange(len(anchors)), np.flatnonzero(~anchors)
    sets: list[tuple[Ints, Ints]] = [(every[anchors], every[anchors])]  # matched on these, asked for those
    if len(others) > SINGLY:
        sets.append((every, others))
    else:
        sets += [(np.sort(np.append(every[anchors], k)), np.array([k])) for k in others]
    inside = split.group[split.group >= 0]
    columns, shares = np.full((3, split.n_groups - 1, everyone.n_items), np.nan), []
    for row, k in enumerate(range(1, split.n_groups)):
        pair = (inside == k) | (inside == 0)
        people, focal = everyone.take_persons(pair), inside[pair] == k
        for which, (matching, asked) in enumerate(sets):
            place = np.searchsorted(matching, asked)
            log_odds, se, statistic, matched = mantel_haenszel(people.take_items(matching), focal, place)
            if which == 0:
                shares.append(matched)
                if matched < MATCHED:
                    break
            columns[:, row, asked] = -scale * log_odds, scale * se, chi2_tail(statistic, 1)
    found: Columns = dict(zip(("mh_delta", "mh_se", "mh_p"), columns.reshape(3, -1), strict=True))
    if min(shares) >= MATCHED:
        return found, []
    sentence = (
        f"Only {100 * min(shares):.0f}% of the people have a match in the other group (the same items and score), so "
        "Mantel and Haenszel's statistic is not given."
    )
    return found, [Finding("not_matched", "note", sentence, "It needs forms that many people took.")]
