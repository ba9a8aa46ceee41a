"""Halo: ratings that one rater gives one person and that depend on each other beyond the person's ability.

Let S be the sum of a rater's ratings of a person. Given the person's total over all raters the model says how S varies;

    H = sum (S - E[S | total])^2 / sum Var(S | total)

over raters and persons is 1 under the model, and above it where a rater's impression of a person moves all ratings of
that person at once. The ratings of one rater of one person are put together to one rating, with the thresholds
log gamma_(s - 1) - log gamma_s, gamma the elementary symmetric functions of the ratings: that is again a partial credit
model, in which H is an infit.

If impressions have the variance w in logits, S has the variance V + w V^2 at a given ability, to first order. With C
the covariance of the sums of all raters of a person given the total, E (S - E)^2 = C_rr + w (C^2)_rr; and C^2 is about
u C, u = trace(C) / (number of raters - 1), which is exact for raters of the same information. So

    w = sum ((S - E)^2 - C_rr) / sum u C_rr.

Estimated severities draw the sums near: each takes about u off the numerator, as far as no prior holds it.

`Analysis.facet` shows H of each rater; errors of persons and the reliability allow for w.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.calibration import Calibration
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Mask, Thresholds
from spectral_irt.inference.fit.level_fit import INFIT, level_sums
from spectral_irt.inference.fit.moments import GivenScore, answers_with_moments
from spectral_irt.numerics import scramble

SALT = 1  # of the numbers that tell sets of items apart, one of which would be 0 without it
MOST_RATINGS = 5_000_000  # that are sorted by person and rater: some seconds
MOST_SETS = 200_000  # different sets of items of one rater, up to which their sums are worked out: some ten seconds


class Halo(NamedTuple):
    """H of all raters with its z and of how many sums; w, the variance of impressions; and H of each rater with z."""

    ratio: float
    z: float
    n: int
    variance: float
    of_level: Floats
    of_level_z: Floats


class Sums(NamedTuple):
    """Ratings put together, a rating for each person and level: as responses, with their thresholds, the level of every
    item of these, and whether it stands for two ratings or more."""

    responses: Responses
    thresholds: Floats
    level: Ints
    several: NDArray[np.bool_]


def halo_of_facet(calibration: Calibration, responses: Responses, name: str, among: Mask | None = None) -> Halo | None:
    """The halo of a facet, by the ratings of all levels or of those `among` only; None where no level has two ratings
    of a person whom another level rated too, or where the data are too large."""
    rated = calibration.facets
    assert rated is not None
    labels, level = rated.facets.column(name)
    measures = rated.of[name]
    thresholds = np.nan_to_num(rated.likeliest)
    n_levels = len(labels)
    if among is None:
        among = np.ones(n_levels, dtype=bool)
    if not among.all():
        rated_by_them = np.flatnonzero(among[level])
        thresholds = thresholds[responses.thresholds.of_items(rated_by_them)]
        responses = responses.take_items(rated_by_them)
        level = level[rated_by_them]
    sums = summed_by_level(responses, thresholds, level)
    if sums is None:
        return None
    counted_level = np.where(sums.several, sums.level, -1)
    is_free = measures["status"] != "anchored"
    columns = sparse.eye_array(n_levels, format="csr")[:, np.flatnonzero(is_free)]
    design = sparse.csr_array(columns[sums.level[sums.responses.thresholds.item]])
    given_score = GivenScore.of(sums.responses, sums.thresholds)
    no_ability = np.zeros(sums.responses.n_persons)
    together = level_sums(sums.responses, given_score, no_ability, np.minimum(counted_level, 0), 1, design)
    variance = float(together.variance[INFIT, 0])
    if not variance > 0:
        return None
    by_level = level_sums(sums.responses, given_score, no_ability, counted_level, n_levels, design)
    level_variance = by_level.variance[INFIT]
    kernel_arguments = (given_score, counted_level, sums.level, n_levels)
    information, scaled = sums.responses.entries.sum(_impressions, *kernel_arguments, persons=(given_score.pattern,))
    # A severity under a prior of precision a takes up I / (I + a) of what it would without, and the levels of a subset
    # one severity less than they are.
    precision = prior_precision(calibration, name)
    n_linked = np.bincount(measures["subset"], among)[measures["subset"]]
    free_share = is_free * (1 - 1 / np.maximum(n_linked, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        taken_up = np.where(information > 0, free_share * scaled / (information + precision), 0.0)
        level_excess = by_level.value[INFIT] + taken_up
        ratio = 1 + level_excess / by_level.v
        z = level_excess / np.sqrt(level_variance)
    excess = float(together.value[INFIT, 0] + taken_up.sum())
    return Halo(
        ratio=1 + excess / float(together.v[0]),
        z=excess / variance**0.5,
        n=int(together.n[0]),
        variance=max(excess, 0.0) / float(scaled.sum()),
        of_level=np.where(level_variance > 0, ratio, np.nan),
        of_level_z=np.where(level_variance > 0, z, np.nan),
    )


def prior_precision(calibration: Calibration, name: str) -> float:
    """Of the prior on the severities of a facet; 0 where none acts."""
    if calibration.prior is None:
        return 0.0
    for term in calibration.prior.terms:
        if term.noun == f"{name} severities":
            return float(term.sd**-2)
    return 0.0


def summed_by_level(responses: Responses, thresholds: Floats, level: Ints) -> Sums | None:
    """The ratings of each person put together by level; None where none has two, or where they are too many."""
    if not 0 < responses.n_responses <= MOST_RATINGS:
        return None
    layout = responses.thresholds
    person, item, x = responses.answers()
    # Person and level as one number; ratings that have it in common stand together, by item.
    cell = person.astype(np.int64) * (level.max(initial=0) + 1) + level[item]
    order = np.lexsort((item, cell))
    person = person[order]
    item = item[order]
    x = x[order]
    cell = cell[order]
    first = np.flatnonzero(np.append(True, np.diff(cell) > 0))
    size = np.diff(np.append(first, len(cell)))
    # Each set of items is known by a number, and becomes an item of its own.
    set_keys = np.add.reduceat(scramble(np.arange(layout.n_items, dtype=np.int32), SALT)[item], first)
    _, example, set_of_cell = np.unique(set_keys, return_index=True, return_inverse=True)
    if size.max(initial=0) < 2 or len(example) > MOST_SETS:
        return None
    beta = [_summed_thresholds(layout, thresholds, item[first[k] : first[k] + size[k]]) for k in example]
    together = Responses.from_codes(
        person[first],
        set_of_cell.ravel(),
        np.add.reduceat(x, first),
        persons=responses.persons,
        items=np.arange(len(example)).astype(object),
        thresholds=Thresholds(np.array(list(map(len, beta)))),
    )
    return Sums(
        responses=together,
        thresholds=np.concatenate(beta),
        level=level[item[first[example]]],
        several=size[example] > 1,
    )


def _summed_thresholds(layout: Thresholds, thresholds: Floats, items: NDArray[np.integer[Any]]) -> Floats:
    """Thresholds of the sum of the ratings of these items: log gamma_(s - 1) - log gamma_s for s = 1, 2, ..."""
    beta = thresholds[layout.of_items(items.astype(np.int64))]
    center = beta.mean()  # which keeps gamma within the range of numbers
    gamma = np.ones(1)
    for of_item in np.split(beta - center, np.cumsum(layout.max_score[items])[:-1]):
        gamma = np.convolve(gamma, np.exp(-np.append(0.0, np.cumsum(of_item))))
        gamma /= gamma.max()
    return center - np.diff(np.log(np.maximum(gamma, np.finfo(float).tiny)))


def _impressions(block: Block, pattern: Ints, given: GivenScore, counted: Ints, level: Ints, n_levels: int) -> Floats:
    """By level, sums over persons of the variance C of its sum given the total, and of u C where it counts."""
    sums = answers_with_moments(block, pattern, given)
    n = np.bincount(sums.person, minlength=block.n_persons)
    trace = np.bincount(sums.person, weights=sums.variance, minlength=block.n_persons)
    u = trace / np.maximum(n - 1, 1)
    scaled = np.where(counted[sums.item] >= 0, u[sums.person] * sums.variance, 0.0)
    level_of_sum = level[sums.item]
    by_level = [np.bincount(level_of_sum, weights=values, minlength=n_levels) for values in (sums.variance, scaled)]
    return np.array(by_level)
