"""Critical values of the fit of items and persons, from data sets drawn given the scores (`conditional.draw`).

Rules of thumb (infit between 0.7 and 1.3) fit no design in particular. Given the scores the model says how every
statistic varies in this one, without an ability and without a population. Of each item: conditional infit and outfit,
and the correlation of the responses with the rest of the test (`items/classical.py`); of each person infit and outfit,
at an ability that depends on the score alone and so is the same in every draw.

The thresholds are estimates, and a data set that is drawn would have others. To first order (one Newton step) infit
then changes by what these have used up, sum r' S^-1 d / sum V (`mean_squares.py`); it is taken off in every draw, and
off the observed one, where it is zero at conditional estimates. Of an item-rest correlation the part that goes with
how many passed each threshold of the item, by least squares over the draws, is taken off in the same way.

Of many items the p-value adjusted for all (Westfall & Young 1993) is the share of data sets, the observed one among
them, in which any item is as many standard deviations from its mean.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from spectral_irt.ability import answer_moments
from spectral_irt.conditional.draw import DrawnBlock, draws_given_score
from spectral_irt.conditional.exact_likelihood import SERIES_FROM
from spectral_irt.conditional.likelihood import QUICK_ANSWERS
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints, Mask
from spectral_irt.engine.base import one_blas_thread
from spectral_irt.errors import OptionError
from spectral_irt.inference.fit.item_fit import LEVEL, misfit_columns
from spectral_irt.inference.fit.mean_squares import sums_given_score, used_by_parameters
from spectral_irt.inference.fit.moments import GivenScore, answers_with_moments
from spectral_irt.inference.fit.person_fit import PersonMisfit, misfit_against_draws
from spectral_irt.inference.results import LEAST_DRAWS, TOO_FEW_DRAWS
from spectral_irt.numerics import generator
from spectral_irt.persons.abilities import with_thresholds
from spectral_irt.persons.residuals import ERRATIC, LEAST, mean_squares
from spectral_irt.tables import Columns

FEWEST_PEOPLE = 2  # of a sample
CELLS = 400_000  # responses of a run of draws: their numbers stay near a core
TIE = 1e-9  # of a statistic: two that agree so far are equal but for rounding


@dataclass(frozen=True, eq=False)
class CriticalFit:
    """What `critical_fit` found.

    Attributes
    ----------
    draws : int
        Data sets that were drawn.
    items : dict
        Of every item `infit_conditional_low, .._high, .._p, .._p_family`, the same of `outfit_conditional`, `item_rest`
        with the same, and the verdict `misfit_p, misfit`; NaN of items without thresholds.
    persons : dict
        Of every person `infit_p, outfit_p`, how likely so large a mean square is given the score; NaN of extreme
        scores, and of persons who are not in the sample.
    misfit : PersonMisfit or None
        How many persons misfit, against the draws; None with too few persons.
    """

    draws: int
    items: Columns
    persons: Columns
    misfit: PersonMisfit | None


class Reference(NamedTuple):
    """Limits between which 95% of good items are, the two-sided p of the observed values, by rank, and p adjusted for
    all items."""

    low: Floats
    high: Floats
    p: Floats
    p_family: Floats


@one_blas_thread()  # the products are small
def critical_fit(
    responses: Responses,
    thresholds: Floats,
    ability: Floats,
    draws: int,
    *,
    scale_of_item: Ints | None = None,
    sample: int | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> CriticalFit:
    """Fit of every item and person against data sets drawn given the scores.

    Parameters
    ----------
    responses, thresholds : Responses, float array
    ability : float array
        Of every person, by a method that goes by the items answered and the score alone.
    draws : int
        Data sets to draw: 199 or more. A p-value of 5% has a standard error of 0.7% with 1,000.
    scale_of_item : int array, optional
        That of a rating scale model, whose offsets are estimated in common.
    sample : int, optional
        Persons to take at random. With very many persons every item is significantly off.
    seed : int
        Of sample and draws.
    progress : callable, optional

    References
    ----------
    Westfall & Young (1993), Resampling-based multiple testing; Müller (2020), J. Stat. Distrib. Appl. 7:5.
    """
    if draws < LEAST_DRAWS:
        raise OptionError(TOO_FEW_DRAWS.format(f"`critical` is {draws}"))
    if sample is not None and sample < FEWEST_PEOPLE:
        raise OptionError(f"`sample` is {sample}; it is a number of people, at least {FEWEST_PEOPLE}.")
    chosen, people = responses, np.arange(responses.n_persons)
    if sample is not None:
        chosen, people = responses.sample(sample, generator(seed, 0))
    has_difficulty = np.isfinite(responses.thresholds.mean(thresholds))
    scores = (chosen.scores, chosen.max_scores)
    chosen, beta = with_thresholds(chosen, thresholds)
    if scale_of_item is not None and not responses.thresholds.binary:
        scale_of_item = scale_of_item[has_difficulty]
    else:
        scale_of_item = None
    table = _FitTable.of(chosen.in_one_block(), beta, ability[people], scores)
    statistics = table.statistics(draws, seed, scale_of_item, progress)
    columns = statistics.item_columns(responses.n_items, has_difficulty)
    persons = {}
    for name, as_large in zip(("infit_p", "outfit_p"), statistics.as_large, strict=True):
        p = np.full(responses.n_persons, np.nan)
        p[people] = np.where(table.mixed & np.isfinite(ability[people]), as_large / (1 + draws), np.nan)
        persons[name] = p
    n_judged = int(np.sum(table.mixed & np.isfinite(ability[people])))
    misfit = misfit_against_draws(*statistics.misfitting, n_judged)
    return CriticalFit(draws, columns, persons, misfit)


class _Cells(NamedTuple):
    """Of people x items of a block, 0 where there is no response: the observed category; 1 for people with a mixed
    score (`mixed`), E and 1 / V given the score; E, V and the fourth central moment at the ability; and the rest of the
    test in the share of its points, rest_at_0 - rest_per_point x, where there is one (`has_rest`)."""

    x: Floats
    mixed: Floats
    mean: Floats
    inverse: Floats
    theta_seen: Floats
    theta_mean: Floats
    theta_variance: Floats
    theta_fourth: Floats
    has_rest: Floats
    rest_at_0: Floats
    rest_per_point: Floats


class _ItemSums(NamedTuple):
    """Sums of each data set over the responses to each item, the observed data set first: (x - E)^2 and that over V;
    how many passed each threshold; and over the responses with a rest r of 1, x, x^2, r, r^2 and x r."""

    square: Floats
    z2: Floats
    passed: Floats
    rest: Floats  # 6 x data sets x items


class _Misfitting(NamedTuple):
    """Of each data set, the observed one first: how many persons misfit, and by how much in all."""

    number: Floats
    excess: Floats


class _Statistics(NamedTuple):
    """Of each data set, the observed one first, infit, outfit and item-rest correlation of the items; the observed ones
    before what is used up is taken off; of each person, in how many data sets infit and outfit are as large as
    observed; and how many persons misfit in each."""

    infit: Floats
    outfit: Floats
    item_rest: Floats
    observed: tuple[Floats, Floats, Floats]
    as_large: tuple[Floats, Floats]
    misfitting: _Misfitting

    def item_columns(self, n_items: int, known: Mask) -> Columns:
        """The columns of `CriticalFit.items`."""
        columns: Columns = {}
        names = ("infit_conditional", "outfit_conditional", "item_rest")
        columns["item_rest"] = self.observed[2]
        for name, statistic, observed in zip(names, self[:3], self.observed, strict=True):
            reference = against_draws(statistic)
            used = observed - statistic[0]
            reference = reference._replace(low=reference.low + used, high=reference.high + used)
            columns |= {f"{name}_{what}": values for what, values in reference._asdict().items()}
        for name, values in columns.items():
            columns[name] = np.full(n_items, np.nan)
            columns[name][known] = values
        off = np.full(n_items, np.nan)
        infit = np.full(n_items, np.nan)
        off[known] = self.infit[0] - self.infit.mean(axis=0)
        infit[known] = self.observed[0]
        return columns | misfit_columns(columns["infit_conditional_p_family"], off, infit)


@dataclass(frozen=True, eq=False)
class _FitTable:
    """Responses with their moments, one number for each response, in the order of `place`, people x items with 1 + the
    position of the response (0 where there is none)."""

    responses: Responses
    thresholds: Floats
    mixed: Mask
    ability: Floats
    place: scipy.sparse.csr_array
    x: Floats
    mean: Floats
    variance: Floats
    at_ability: Floats
    rest_at_0: Floats
    rest_per_point: Floats

    @classmethod
    def of(cls, responses: Responses, thresholds: Floats, ability: Floats, scores: tuple[Ints, Ints]) -> _FitTable:
        """`scores` have the score and the highest possible one of each person on all items, also those without
        thresholds: the rest of the test has them, too."""
        layout = responses.thresholds
        person, item, x = responses.answers()
        series_from = np.inf if responses.n_responses <= QUICK_ANSWERS else SERIES_FROM
        given_score = GivenScore.of(responses, thresholds, series_from=series_from)
        mixed = responses.informative
        mean = np.zeros(len(person))
        variance = np.ones(len(person))
        place = scipy.sparse.csr_array(
            (1 + np.arange(len(person)), (person, item)), shape=(responses.n_persons, responses.n_items)
        )
        [block] = responses.blocks
        moments = answers_with_moments(block, given_score.pattern, given_score)
        cell = person * responses.n_items + item
        order = np.argsort(cell)
        at = order[np.searchsorted(cell[order], moments.person * responses.n_items + moments.item)]
        mean[at] = moments.mean
        variance[at] = np.maximum(moments.variance, LEAST)
        theta = np.where(np.isfinite(ability), ability, 0.0)
        at_ability = np.array(answer_moments(theta[person], item, layout.cumulated(thresholds))[:4])
        other_points = (scores[1][person] - layout.max_score[item]).astype(np.float64)
        per_point = np.divide(1.0, other_points, out=np.zeros(len(person)), where=other_points > 0)
        return cls(
            responses=responses,
            thresholds=thresholds,
            mixed=mixed,
            ability=ability,
            place=place,
            x=x.astype(np.float64),
            mean=mean,
            variance=variance,
            at_ability=at_ability,
            rest_at_0=scores[0][person].astype(np.float64) * per_point,
            rest_per_point=per_point,
        )

    def cells(self, persons: Ints, items: Ints) -> _Cells:
        place = self.place[persons][:, items].toarray() - 1
        seen = place >= 0
        mixed = seen & self.mixed[persons][:, None]
        at_theta = mixed & np.isfinite(self.ability[persons])[:, None]
        has_rest = seen & (self.rest_per_point[place] > 0)
        return _Cells(
            x=np.where(seen, self.x[place], 0.0),
            mixed=mixed.astype(np.float64),
            mean=np.where(mixed, self.mean[place], 0.0),
            inverse=np.where(mixed, 1 / self.variance[place], 0.0),
            theta_seen=at_theta.astype(np.float64),
            theta_mean=np.where(at_theta, self.at_ability[0][place], 0.0),
            theta_variance=np.where(at_theta, np.maximum(self.at_ability[1][place], LEAST), 1.0),
            theta_fourth=np.where(at_theta, self.at_ability[3][place], 1.0),
            has_rest=has_rest.astype(np.float64),
            rest_at_0=np.where(has_rest, self.rest_at_0[place], 0.0),
            rest_per_point=np.where(has_rest, self.rest_per_point[place], 0.0),
        )

    def statistics(
        self, draws: int, seed: int, scale_of_item: Ints | None, progress: Callable[[str], None] | None
    ) -> _Statistics:
        layout = self.responses.thresholds
        shape = (1 + draws, layout.n_items)
        sums = _ItemSums(np.zeros(shape), np.zeros(shape), np.zeros((*shape, layout.widest)), np.zeros((6, *shape)))
        as_large = (np.ones(self.responses.n_persons), np.ones(self.responses.n_persons))
        misfitting = _Misfitting(np.zeros(1 + draws), np.zeros(1 + draws))
        done = 0
        for block in draws_given_score(self.responses, self.thresholds, draws=range(draws), seed=seed):
            cells = self.cells(block.persons, block.items)
            _add_items(sums, block, cells)
            _add_persons(as_large, misfitting, block, cells)
            done += len(block.persons)
            if progress:
                progress(f"{draws:,} draws, {done:,} of {self.responses.n_persons:,} people")
        of_model = sums_given_score(self.responses, self.thresholds)
        off = sums.passed - sums.passed[0] + of_model.off
        used = used_by_parameters(of_model._replace(off=off), scale_of_item)
        with np.errstate(divide="ignore", invalid="ignore"):
            infit = sums.square / of_model.v
            outfit = sums.z2 / of_model.n
            n, x, x2, r, r2, x_r = sums.rest
            spread = np.sqrt(np.maximum(n * x2 - x**2, 0)) * np.sqrt(np.maximum(n * r2 - r**2, 0))
            item_rest = np.where(spread > TIE * np.maximum(n, 1), (n * x_r - x * r) / spread, np.nan)
            return _Statistics(
                infit=infit - used.infit / of_model.v,
                outfit=outfit - used.outfit / of_model.n,
                item_rest=item_rest
                - with_passed(item_rest, off if scale_of_item is None else off.sum(axis=-1)[..., None]),
                observed=(infit[0], outfit[0], item_rest[0]),
                as_large=as_large,
                misfitting=misfitting,
            )


def with_passed(statistic: Floats, off: Floats) -> Floats:
    """What of a statistic of each item goes with its numbers of people who passed thresholds, less those expected
    (`off`, data sets x items x thresholds): by least squares over the draws, the data sets after the first."""
    drawn = statistic[1:] - np.nanmean(statistic[1:], axis=0)
    drawn = np.nan_to_num(drawn)  # of a draw that has none
    u = off[1:] - off[1:].mean(axis=0)
    squares = np.einsum("rik,ril->ikl", u, u)
    slopes = np.einsum("ikl,ril,ri->ik", np.linalg.pinv(squares, hermitian=True), u, drawn)
    result: Floats = np.einsum("rik,ik->ri", off, slopes)
    return result


def _add_items(sums: _ItemSums, block: DrawnBlock, cells: _Cells) -> None:
    """Add the responses of a block, the observed ones and all draws."""
    items = block.items
    of_rest = (cells.has_rest, cells.rest_per_point, cells.rest_at_0 * cells.rest_per_point, cells.rest_at_0)
    linear = np.stack([cells.mean, cells.mean * cells.inverse, cells.mixed, *of_rest], axis=-1).swapaxes(0, 1)
    of_squares = (cells.mixed, cells.inverse, cells.has_rest, cells.rest_per_point, cells.rest_per_point**2)
    squares = np.stack(of_squares, axis=-1).swapaxes(0, 1)
    binary = sums.passed.shape[2] == 1
    mixed = cells.mixed.T[:, :, None]
    for run, x in _runs(block, cells):
        of_item = np.ascontiguousarray(x.transpose(2, 0, 1))  # items x data sets x people
        e, e_inverse, passed, rest_x, rest_b, rest_ab, rest_a = np.moveaxis(of_item @ linear, 2, 0).swapaxes(1, 2)
        square = of_item if binary else of_item * of_item
        x2, x2_inverse, rest_x2, rest_b_x2, rest_b2_x2 = np.moveaxis(square @ squares, 2, 0).swapaxes(1, 2)
        sums.square[run, items] += x2 - 2 * e + (cells.mean**2).sum(axis=0)
        sums.z2[run, items] += x2_inverse - 2 * e_inverse + (cells.mean**2 * cells.inverse).sum(axis=0)
        if binary:
            sums.passed[run, items, 0] += passed
        else:
            for k in range(sums.passed.shape[2]):
                sums.passed[run, items, k] += ((of_item > k) @ mixed)[:, :, 0].T
        sums.rest[0][run, items] += cells.has_rest.sum(axis=0)
        sums.rest[1][run, items] += rest_x
        sums.rest[2][run, items] += rest_x2
        sums.rest[3][run, items] += cells.rest_at_0.sum(axis=0) - rest_b
        sums.rest[4][run, items] += (cells.rest_at_0**2).sum(axis=0) - 2 * rest_ab + rest_b2_x2
        sums.rest[5][run, items] += rest_a - rest_b_x2


def _runs(block: DrawnBlock, cells: _Cells) -> Iterator[tuple[slice, Floats]]:
    """Data sets x people x items, some data sets at a time: the observed one, and then the draws."""
    yield slice(0, 1), cells.x[None]
    step = max(1, CELLS // cells.x.size)
    for start in range(0, len(block.categories), step):
        x = block.categories[start : start + step].astype(np.float64)
        yield slice(1 + start, 1 + start + len(x)), x


def _add_persons(as_large: tuple[Floats, Floats], misfitting: _Misfitting, block: DrawnBlock, cells: _Cells) -> None:
    """Compare infit and outfit of the persons of a block with the observed ones, and count who misfits."""
    seen = cells.theta_seen
    inverse = seen / cells.theta_variance
    linear = np.stack([cells.theta_mean, cells.theta_mean * inverse], axis=-1)
    squares = np.stack([seen, inverse], axis=-1)
    constant = (cells.theta_mean**2).sum(axis=1), (cells.theta_mean**2 * inverse).sum(axis=1)
    n = seen.sum(axis=1)
    v = (seen * cells.theta_variance).sum(axis=1)
    outer = (seen * (cells.theta_fourth / cells.theta_variance**2 - 1)).sum(axis=1)
    inner = (seen * (cells.theta_fourth - cells.theta_variance**2)).sum(axis=1)
    observed = None
    for run, x in _runs(block, cells):
        of_person = x.swapaxes(0, 1)  # people x data sets x items
        e, e_inverse = np.moveaxis(of_person @ linear, 2, 0).swapaxes(1, 2)
        x2, x2_inverse = np.moveaxis((of_person * of_person) @ squares, 2, 0).swapaxes(1, 2)
        square = np.maximum(x2 - 2 * e + constant[0], 0)
        z2 = np.maximum(x2_inverse - 2 * e_inverse + constant[1], 0)
        fit = mean_squares(n, z2, square, v, outer, inner)
        with np.errstate(invalid="ignore"):
            beyond = np.fmax(fit.infit_z, fit.outfit_z) - ERRATIC
            misfitting.number[run] += (beyond > 0).sum(axis=1)
            misfitting.excess[run] += np.where(beyond > 0, beyond, 0.0).sum(axis=1)
            if observed is None:
                observed = (fit.infit[0], fit.outfit[0])
                continue
            for count, drawn, one in zip(as_large, (fit.infit, fit.outfit), observed, strict=True):
                count[block.persons] += (drawn >= one * (1 - TIE)).sum(axis=0)


def against_draws(statistics: Floats) -> Reference:
    """The first row against the others, which are those of data sets drawn under the model; NaN where there is none, or
    where they are all alike.

    Limits are at the ranks that the observed value would have below with probability 2.5%: under the model it is one
    more data set, equally likely to take any of R + 1 ranks.
    """
    observed = statistics[0]
    drawn = statistics[1:]
    slack = TIE * np.abs(observed)
    counts = np.isfinite(drawn).sum(axis=0)
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # statistics that no draw has are NaN
        low, high = np.nanquantile(drawn, (LEVEL / 2, 1 - LEVEL / 2), axis=0, method="weibull")
        mean = np.nanmean(statistics, axis=0)
        sd = np.nanstd(statistics, axis=0)
        varies = (sd > TIE * np.maximum(np.abs(mean), TIE)) & (counts > LEAST_DRAWS // 2) & np.isfinite(observed)
        below = (drawn <= observed + slack).sum(axis=0)
        above = (drawn >= observed - slack).sum(axis=0)
        p = np.minimum(2 * (np.minimum(below, above) + 1) / (counts + 1), 1.0)
        deviation = np.where(varies & np.isfinite(statistics), np.abs(statistics - mean) / sd, 0.0)
    largest = deviation[1:].max(axis=1, initial=0.0)
    p_family = (1 + (largest[:, None] >= deviation[0] * (1 - TIE)).sum(axis=0)) / (1 + len(drawn))
    return Reference(*(np.where(varies, values, np.nan) for values in (low, high, p, p_family)))
