"""Item-trait tests: the responses to an item in class intervals of the measure, beside what the model expects there.

Persons with neither the lowest nor the highest score are divided into G intervals by their measure, which depends on
the items answered and the score alone, so all persons of a score are in one. With d_g the sum of x - E[x | score] over
the persons of an interval, the statistic of an item is

    chi2 = d' C^- d,    C = diag(V_g) - R S^- R',

V_g the variance of d_g given the scores, and R S^- R' what the item's estimated thresholds have used up: R_gk is the
covariance of d_g with how many passed threshold k, S that of the latter. C has rank G - 1. Of right and wrong answers
sum d_g = 0 at the estimate, and chi2 = sum d_g^2 / V_g.

Beside it are the figures that are quoted from RUMM, which take residuals at the estimated measure for those at the true
one and do not correct for that: sum_g (sum (x - E))^2 / sum V with G - 1 degrees of freedom, and the analysis of
variance of standardized residuals. Measures have adapted to the responses, so both are too small in short tests.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from spectral_irt.ability import answer_moments
from spectral_irt.conditional.draw import draws_given_score
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints, person_chunks
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.fit.mean_squares import SumsGivenScore, sums_given_score
from spectral_irt.inference.fit.strata import TIE
from spectral_irt.inference.results import LEAST_DRAWS, TOO_FEW_DRAWS, adjust_p, chi2_tail
from spectral_irt.persons.abilities import with_thresholds
from spectral_irt.persons.residuals import LEAST
from spectral_irt.tables import Columns

PERSONS = 50  # of an interval by default,
MOST = 10  # intervals by default: as many as RUMM has,
FEWEST_PERSONS = 15  # and no fewer persons in each: the chi-squared distribution is one of large samples
RANK = 1e-9  # of the largest eigenvalue: a direction in which nothing varies


class ItemTrait(NamedTuple):
    """Item-trait tests of every item, and of all: the columns of `Analysis.item_trait`, the sum of chi-squared over the
    items with its degrees of freedom and p-value, and the persons in each interval."""

    columns: Columns
    chi2: float
    df: int
    p: float
    sizes: Ints


def item_trait(
    responses: Responses,
    thresholds: Floats,
    ability: Floats,
    *,
    intervals: int | None = None,
    shared_offsets: bool = False,
    draws: int = 0,
    seed: int = 0,
) -> ItemTrait:
    """The tests of every item with thresholds; NaN of the others.

    Parameters
    ----------
    responses, thresholds : Responses, float array
    ability : float array
        Of every person, by a method that goes by the items answered and the score alone.
    intervals : int, optional
        Class intervals; by default one for 50 persons, two at least and ten at most.
    shared_offsets : bool
        Of a rating scale, where an item has but its location to itself.
    draws : int
        Data sets to draw given the scores for p-values (0: chi-squared), 199 or more.
    seed : int
        Of the draws.
    """
    if draws and draws < LEAST_DRAWS:
        raise OptionError(TOO_FEW_DRAWS.format(f"`critical` is {draws}"))
    has_difficulty = np.isfinite(responses.thresholds.mean(thresholds))
    chosen, beta = with_thresholds(responses, thresholds)
    people = np.flatnonzero(chosen.informative & np.isfinite(ability))
    interval = class_intervals(ability[people], intervals, responses.source)
    chosen = chosen.take_persons(people).in_one_block()
    groups = [np.flatnonzero(interval == g) for g in range(int(interval.max()) + 1)]
    sums = [sums_given_score(chosen.take_persons(group), beta) for group in groups]
    test = _Quadratic.of(sums, shared_offsets=shared_offsets)
    observed = test.statistic(np.stack([one.off for one in sums], axis=1))
    df = test.rank
    if draws:
        drawn = _statistics_of_draws(chosen, beta, test, interval, sums, range(draws), seed)
        p = (1 + (drawn >= observed * (1 - RANK)).sum(axis=0)) / (1 + draws)
        p = np.where(df > 0, p, np.nan)
        p_of_all = float((1 + (drawn.sum(axis=1) >= observed.sum() * (1 - RANK)).sum()) / (1 + draws))
    else:
        p = np.where(df > 0, chi2_tail(observed, np.maximum(df, 1)), np.nan)
        p_of_all = float(chi2_tail(observed.sum(), max(int(df.sum()), 1)))
    columns: Columns = {"n": np.sum([one.n for one in sums], axis=0), "chi2": observed, "df": df.astype(np.float64)}
    columns |= {"p": p, "p_adjusted": adjust_p(p, "holm")}
    columns |= _at_measures(chosen, beta, ability[people], interval)
    for name, values in columns.items():
        columns[name] = np.full(responses.n_items, np.nan)
        columns[name][has_difficulty] = values
    return ItemTrait(
        columns={"item": responses.items, **columns},
        chi2=float(observed.sum()),
        df=int(df.sum()),
        p=p_of_all,
        sizes=np.bincount(interval),
    )


def class_intervals(ability: Floats, intervals: int | None, source: str) -> Ints:
    """The interval of each person: about equal numbers, and persons with the same measure in one."""
    n = len(ability)
    if intervals is not None and intervals < 2:
        raise OptionError(f"`intervals` is {intervals}; class intervals are two or more.")
    wanted = int(np.clip(n // PERSONS, 2, MOST)) if intervals is None else intervals
    if n < wanted * FEWEST_PERSONS:
        raise DesignError(
            f"{source}: {n:,} persons have neither the lowest nor the highest score; {wanted} class intervals take "
            f"{wanted * FEWEST_PERSONS} or more."
        )
    order = np.argsort(ability, kind="stable")
    level = np.zeros(n, dtype=np.int64)
    level[order] = np.concatenate([[0], np.cumsum(np.diff(ability[order]) > TIE)])
    size = np.bincount(level)
    middle = np.cumsum(size) - size / 2
    interval = np.minimum((middle * wanted / n).astype(np.int64), wanted - 1)[level]
    numbered = np.unique(interval, return_inverse=True)[1]
    if not numbered.max():
        raise DesignError(f"{source}: persons have too few different scores for class intervals.")
    return np.asarray(numbered)


class _Quadratic(NamedTuple):
    """C^- of every item, items x intervals x intervals; R S^-, items x intervals x thresholds of one; and the rank of
    C."""

    inverse: Floats
    used: Floats
    rank: Ints

    @classmethod
    def of(cls, sums: list[SumsGivenScore], *, shared_offsets: bool) -> _Quadratic:
        between = np.stack([one.between for one in sums], axis=1)  # items x intervals x thresholds x thresholds
        with_thresholds = between.sum(axis=3)  # R
        variance = with_thresholds.sum(axis=2)
        if shared_offsets:
            total = variance.sum(axis=1)[:, None, None]
            used = np.divide(variance[:, :, None], total, out=np.zeros((*variance.shape, 1)), where=total > 0)
            used = np.repeat(used, between.shape[3], axis=2)  # of each passed threshold: of their sum
            lost = np.einsum("igk,ih->igh", used[:, :, :1], variance)
        else:
            used = with_thresholds @ np.linalg.pinv(between.sum(axis=1), rcond=RANK, hermitian=True)
            lost = used @ with_thresholds.swapaxes(1, 2)
        diagonal = np.arange(variance.shape[1])
        covariance = -lost
        covariance[:, diagonal, diagonal] += variance
        eigenvalues = np.linalg.eigvalsh(covariance)
        rank = (eigenvalues > RANK * np.maximum(eigenvalues[:, -1:], LEAST)).sum(axis=1)
        return cls(np.linalg.pinv(covariance, rcond=RANK, hermitian=True), used, rank)

    def statistic(self, off: Floats) -> Floats:
        """d' C^- d of each item, from how many passed each threshold less what is expected, ... x items x intervals x
        thresholds of one."""
        d = off.sum(axis=-1) - np.einsum("igk,...ik->...ig", self.used, off.sum(axis=-2))
        return np.asarray(np.einsum("...ig,igh,...ih->...i", d, self.inverse, d))


def _statistics_of_draws(
    responses: Responses,
    beta: Floats,
    test: _Quadratic,
    interval: Ints,
    sums: list[SumsGivenScore],
    draws: range,
    seed: int,
) -> Floats:
    """The statistic of each data set drawn given the scores, data sets x items."""
    layout = responses.thresholds
    member = (interval[:, None] == np.arange(len(sums))).astype(np.float64)
    passed = np.zeros((len(draws), layout.n_items, len(sums), layout.widest))
    for block in draws_given_score(responses, beta, draws=draws, seed=seed):
        of_item = np.ascontiguousarray(block.categories.transpose(2, 0, 1))
        for k in range(layout.widest):
            passed[..., k][:, block.items] += ((of_item > k) @ member[block.persons]).swapaxes(0, 1)
    observed = np.zeros((layout.n_items, len(sums), layout.widest))
    person, item, x = responses.answers()
    for k in range(layout.widest):
        np.add.at(observed[:, :, k], (item, interval[person]), x > k)
    expected = observed - np.stack([one.off for one in sums], axis=1)
    return test.statistic(passed - expected)


def _at_measures(responses: Responses, beta: Floats, ability: Floats, interval: Ints) -> Columns:
    """`chi2_rumm, df_rumm, p_rumm`, and of the analysis of variance `f, df_f, df_within, p_f`."""
    shape = (responses.n_items, int(interval.max()) + 1)
    cumulated = responses.thresholds.cumulated(beta)
    sizes = np.concatenate([[0], np.cumsum(responses.counts)])
    total_of_cells = np.zeros((5, *shape))
    for start, stop in person_chunks(sizes):  # a dozen numbers for each response of some persons at a time
        some = responses.take_persons(np.arange(start, stop))
        total_of_cells += _sums_of_cells(some, cumulated, ability[start:stop], interval[start:stop], shape)
    n, v, residual, z_sum, z_square = total_of_cells
    groups = (n > 0).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        chi2 = np.nansum(residual**2 / v, axis=1)
        total = z_sum.sum(axis=1) ** 2 / n.sum(axis=1)
        explained = np.nansum(z_sum**2 / n, axis=1)
        within = z_square.sum(axis=1) - explained
        df_within = (n.sum(axis=1) - groups).astype(np.float64)
        f = ((explained - total) / (groups - 1)) / (within / df_within)
    df = np.where(groups > 1, groups - 1.0, np.nan)
    return {
        "chi2_rumm": np.where(groups > 1, chi2, np.nan),
        "df_rumm": df,
        "p_rumm": np.where(groups > 1, chi2_tail(chi2, np.maximum(df, 1)), np.nan),
        "f": f,
        "df_within": df_within,
        "p_f": scipy.special.fdtrc(np.nan_to_num(df, nan=1.0), np.maximum(df_within, 1), np.maximum(f, 0)),
    }


def _sums_of_cells(
    responses: Responses, cumulated: Floats, ability: Floats, interval: Ints, shape: tuple[int, int]
) -> Floats:
    """Of each item and interval: the number of responses, and the sums of variances, residuals, standardized residuals
    and their squares."""
    person, item, x = responses.answers()
    moments = answer_moments(ability[person], item, cumulated)
    variance = np.maximum(moments[1], LEAST)
    residual = x - moments[0]
    z = residual / np.sqrt(variance)
    cell = item.astype(np.int64) * shape[1] + interval[person]
    values = (None, variance, residual, z, z * z)
    return np.array([np.bincount(cell, one, minlength=shape[0] * shape[1]).reshape(shape) for one in values])
