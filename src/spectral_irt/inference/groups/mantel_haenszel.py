"""Mantel and Haenszel's odds ratio: is an item harder for one group than for another of the same score?

People are matched on the set of items answered and the raw score, which under the Rasch model is all that ability has
to say. In each stratum k an item has a table of right and wrong by group, A_k B_k (reference) over C_k D_k (focal),

    alpha = sum_k A_k D_k / N_k  /  sum_k B_k C_k / N_k,

the common odds ratio; log alpha estimates how much harder the item is for the focal group. It needs no difficulties
at all, which makes it a check on those that have them. Ordered answers have Mantel's statistic and Cox's estimate in
its place (`ordered_differential.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.inference.groups.grouping import item_sets
from spectral_irt.inference.groups.ordered_differential import mantel_sums
from spectral_irt.inference.probability import chi2_tail

CELLS = 2_000_000  # strata x items at a time
SINGLY = 50  # items that are not anchors, up to which each has a matching score of its own


@dataclass(frozen=True, eq=False)
class MantelHaenszel:
    """One number an item; NaN where no two matched people differed.

    Attributes
    ----------
    log_odds, se : float arrays
        log alpha: positive when the item is harder for the focal group; its standard error (Robins et al. 1986).
    statistic, p : float arrays
        Chi-square with one degree of freedom and continuity correction.
    matched : float
        Share of the people of mixed success who have a match: equal items and score, other group.
    """

    log_odds: Floats
    se: Floats
    statistic: Floats
    p: Floats
    matched: float


def mantel_haenszel(responses: Responses, focal: NDArray[np.bool_]) -> MantelHaenszel:
    """The common odds ratio of every item between the focal group and the others, given items answered and score.

    References
    ----------
    Mantel & Haenszel (1959), J. Nat. Cancer Inst. 22; Holland & Thayer (1988); Robins, Breslow & Greenland (1986),
    Biometrics 42, 311-323.

    Examples
    --------
    >>> answers = Responses.from_wide([[1, 0], [1, 0], [0, 1], [1, 0], [0, 1], [0, 1]])
    >>> found = mantel_haenszel(answers, np.array([False, False, False, True, True, True]))
    >>> found.log_odds.round(4).tolist()  # the odds are 2 : 1 and 1 : 2
    [1.3863, -1.3863]
    """
    stratum, n_strata, matched = _match(responses, focal)
    m = responses.n_items
    if not n_strata:
        nothing = np.full(m, np.nan)
        return MantelHaenszel(nothing, nothing, nothing, nothing, matched)
    if not responses.thresholds.binary:
        away, variance = mantel_sums(responses, stratum, focal)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(variance > 0, [away / variance, 1 / np.sqrt(variance), away**2 / variance], np.nan)
        log_odds, se, statistic = found
        return MantelHaenszel(log_odds, se, statistic, chi2_tail(statistic, 1), matched)
    tables = _tables(responses, stratum, focal, n_strata)
    sums = np.zeros((8, m))
    step = max(1, CELLS // max(m, 1))
    for start in range(0, n_strata, step):
        sums += _sums(*(table[start : start + step].toarray() for table in tables))
    r, s, pr, mixed, qs, right, expected, variance = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        log_odds = np.log(r / s)
        se = np.sqrt(pr / (2 * r**2) + mixed / (2 * r * s) + qs / (2 * s**2))
        statistic = np.maximum(np.abs(right - expected) - 0.5, 0) ** 2 / variance
    known = (r > 0) & (s > 0)
    log_odds, se = np.where(known, log_odds, np.nan), np.where(known, se, np.nan)
    statistic = np.where(variance > 0, statistic, np.nan)
    return MantelHaenszel(log_odds, se, statistic, chi2_tail(statistic, 1), matched)


def _match(responses: Responses, focal: NDArray[np.bool_]) -> tuple[Ints, int, float]:
    """The stratum of each person (-1: none), how many there are, and the share of informative people in one."""
    keys = np.stack([item_sets(responses), responses.scores], axis=1)
    stratum = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    informative = responses.mixed
    persons, others = (np.bincount(stratum, weights=each & informative) for each in (focal, ~focal))
    both = (persons > 0) & (others > 0)
    code = np.where(both, np.cumsum(both) - 1, -1)
    share = float((persons + others)[both].sum() / max(informative.sum(), 1))
    return code[stratum], int(both.sum()), share


def _tables(
    responses: Responses, stratum: Ints, focal: NDArray[np.bool_], n_strata: int
) -> tuple[sparse.csr_array, ...]:
    """A, B, C, D: right and wrong answers of the reference group, then of the focal one; strata x items."""
    tables = []
    for group in (~focal, focal):
        persons = np.flatnonzero(group & (stratum >= 0))
        chosen = responses.take_persons(persons)
        add = sparse.csr_array(
            (np.ones(len(persons)), (stratum[persons], np.arange(len(persons)))), shape=(n_strata, len(persons))
        )
        for half in (0, 1):
            answered = sparse.vstack(list(chosen.map(_half, responses.n_items, half)), format="csr")
            tables.append(sparse.csr_array(add @ answered))
    return tuple(tables)


def _half(block: Block, n_items: int, which: int) -> sparse.csr_array:
    return block.halves(n_items)[which]


def _sums(a: Floats, b: Floats, c: Floats, d: Floats) -> Floats:
    """What the ratio, its variance and the test add up over strata; an item outside a stratum's set adds nothing."""
    n = a + b + c + d
    n = np.maximum(n, 2)  # where there is nobody all numerators are zero; with matched people n is at least two
    r, s = a * d / n, b * c / n
    p, q = (a + d) / n, (b + c) / n
    expected = (a + b) * (a + c) / n
    variance = (a + b) * (c + d) * (a + c) * (b + d) / (n * n * (n - 1))
    return np.array([each.sum(axis=0) for each in (r, s, p * r, p * s + q * r, q * s, a, expected, variance)])


def matched_on(
    responses: Responses, focal: NDArray[np.bool_], anchors: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats, float]:
    """Log odds ratio, standard error and p of every item, people matched on their score on the anchors and the item.

    Where more than 50 items are not anchors, those are matched on all items.
    """
    others = np.flatnonzero(~anchors)
    sets = [anchors] if len(others) else [np.ones(len(anchors), dtype=bool)]
    if len(others) > SINGLY:
        sets.append(np.ones(len(anchors), dtype=bool))
    else:
        sets += [anchors | (np.arange(len(anchors)) == k) for k in others]
    out, matched = np.full((3, len(anchors)), np.nan), 0.0
    for k, chosen in enumerate(sets):
        found = mantel_haenszel(responses if chosen.all() else responses.take_items(chosen), focal)
        new = chosen if not k else chosen & ~anchors
        out[:, new] = np.array([found.log_odds, found.se, found.p])[:, new[chosen]]
        matched = matched if k else found.matched
    return out[0], out[1], out[2], matched
