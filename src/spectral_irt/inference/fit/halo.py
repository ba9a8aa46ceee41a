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
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.calibration import Calibration
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
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


def halo_of_facet(calibration: Calibration, responses: Responses, name: str) -> Halo | None:
    """The halo of a facet; None where no level has two ratings of a person whom another level rated too, or where the
    data are too large."""
    rated = calibration.facets
    assert rated is not None
    labels, code = rated.facets.column(name)
    own = rated.of[name]
    sums = summed_by_level(responses, np.nan_to_num(rated.likeliest), code)
    if sums is None:
        return None
    counted = np.where(sums.several, sums.level, -1)
    size = len(labels)
    free = own["status"] != "anchored"
    columns = sparse.eye_array(size, format="csr")[:, np.flatnonzero(free)]
    design = sparse.csr_array(columns[sums.level[sums.responses.thresholds.item]])
    given = GivenScore.of(sums.responses, sums.thresholds)
    no_ability = np.zeros(sums.responses.n_persons)
    together = level_sums(sums.responses, given, no_ability, np.minimum(counted, 0), 1, design)
    if not together.variance[INFIT, 0] > 0:
        return None
    by_level = level_sums(sums.responses, given, no_ability, counted, size, design)
    kernel_arguments = (given, counted, sums.level, size)
    information, scaled = sums.responses.entries.sum(_impressions, *kernel_arguments, persons=(given.pattern,))
    # A severity under a prior of precision a keeps I / (I + a) of what an estimate takes up.
    precision = prior_precision(calibration, name)
    kept = free * (1 - len(np.unique(own["subset"])) / size)
    with np.errstate(divide="ignore", invalid="ignore"):
        taken = np.where(information > 0, kept * scaled / (information + precision), 0.0)
        ratio = 1 + (by_level.value[INFIT] + taken) / by_level.v
        z = (by_level.value[INFIT] + taken) / np.sqrt(by_level.variance[INFIT])
    excess = float(together.value[INFIT, 0] + taken.sum())
    return Halo(
        ratio=1 + excess / float(together.v[0]),
        z=excess / float(together.variance[INFIT, 0]) ** 0.5,
        n=int(together.n[0]),
        variance=max(excess, 0.0) / float(scaled.sum()),
        of_level=np.where(by_level.variance[INFIT] > 0, ratio, np.nan),
        of_level_z=np.where(by_level.variance[INFIT] > 0, z, np.nan),
    )


def prior_precision(calibration: Calibration, name: str) -> float:
    """Of the prior on the severities of a facet; 0 where none acts."""
    prior = calibration.prior
    for term in () if prior is None else prior.terms:
        if term.noun == f"{name} severities":
            return float(term.sd**-2)
    return 0.0


def summed_by_level(responses: Responses, thresholds: Floats, code: Ints) -> Sums | None:
    """The ratings of each person put together by level; None where none has two, or where they are too many."""
    if not 0 < responses.n_responses <= MOST_RATINGS:
        return None
    layout = responses.thresholds
    person, item, x = responses.answers()
    cell = person.astype(np.int64) * (code.max(initial=0) + 1) + code[item]
    order = np.lexsort((item, cell))
    person, item, x, cell = person[order], item[order], x[order], cell[order]
    first = np.flatnonzero(np.append(True, np.diff(cell) > 0))
    size = np.diff(np.append(first, len(cell)))
    keys = np.add.reduceat(scramble(np.arange(layout.n_items, dtype=np.int32), SALT)[item], first)
    _, example, which = np.unique(keys, return_index=True, return_inverse=True)
    if size.max(initial=0) < 2 or len(example) > MOST_SETS:
        return None
    beta = [_summed_thresholds(layout, thresholds, item[first[k] : first[k] + size[k]]) for k in example]
    together = Responses.from_codes(
        person[first],
        which.ravel(),
        np.add.reduceat(x, first),
        persons=responses.persons,
        items=np.arange(len(example)).astype(object),
        thresholds=Thresholds(np.array(list(map(len, beta)))),
    )
    return Sums(
        responses=together, thresholds=np.concatenate(beta), level=code[item[first[example]]], several=size[example] > 1
    )


def _summed_thresholds(layout: Thresholds, thresholds: Floats, items: NDArray[np.integer[Any]]) -> Floats:
    """Thresholds of the sum of the ratings of these items: log gamma_(s - 1) - log gamma_s for s = 1, 2, ..."""
    own = thresholds[layout.of_items(items.astype(np.int64))]
    center = own.mean()  # which keeps gamma within the range of numbers
    gamma = np.ones(1)
    for one in np.split(own - center, np.cumsum(layout.max_score[items])[:-1]):
        gamma = np.convolve(gamma, np.exp(-np.append(0.0, np.cumsum(one))))
        gamma /= gamma.max()
    return center - np.diff(np.log(np.maximum(gamma, np.finfo(float).tiny)))


def _impressions(block: Block, pattern: Ints, given: GivenScore, counted: Ints, level: Ints, n_levels: int) -> Floats:
    """By level, sums over persons of the variance C of its sum given the total, and of u C where it counts."""
    person, item, _, _, variance, *_ = answers_with_moments(block, pattern, given)
    n = np.bincount(person, minlength=block.n_persons)
    total = np.bincount(person, weights=variance, minlength=block.n_persons)
    mean = total / np.maximum(n - 1, 1)
    scaled = np.where(counted[item] >= 0, mean[person] * variance, 0.0)
    return np.array([np.bincount(level[item], weights=each, minlength=n_levels) for each in (variance, scaled)])
