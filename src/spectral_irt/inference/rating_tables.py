"""Tables of ratings: how often each rater used each category, single ratings that are unexpected, and whether all
levels of a facet are alike. Categories and averages are in the codes of the data.

`Analysis.category_use` and `Analysis.unexpected_ratings` show them; `facets.py` and `interactions.py` take averages.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.facets import FacetMeasures
from spectral_irt.inference.items.categories import category_sums
from spectral_irt.model import category_probabilities
from spectral_irt.persons.abilities import thresholds_of
from spectral_irt.persons.residuals import LEAST, UNEXPECTED_OF_ALL, answers_at
from spectral_irt.tables import Columns

NOTHING_VARIES = 1e-9  # of the sum of squares around zero, what is left around the mean: less is rounding
UNEXPECTED = 3.0  # standard deviations of a rating from what is expected, from which on it is listed


def as_whole(codes: Floats) -> Floats | Ints:
    """Codes as whole numbers where all of them are."""
    whole = codes.astype(np.int64)
    return whole if np.array_equal(whole, codes) else codes


def codes_of_ratings(rated: FacetMeasures) -> Floats:
    """The code of each category of every virtual item; 0 where it has fewer categories."""
    codes: Floats = np.nan_to_num(rated.items.codes)[rated.facets.item]
    return codes


class Averages(NamedTuple):
    """Mean ratings by cell: of virtual items, or of some people on them."""

    n: Ints
    observed: Floats
    expected: Floats


def cell_averages(rated: FacetMeasures, responses: Responses, gradient: Floats, cell: Ints, n_cells: int) -> Averages:
    """The mean rating of the virtual items of each cell, and that expected given the totals.

    `gradient` is that of the conditional likelihood, how often each threshold is expected to be passed less how often
    it was. A person with an extreme total has no choice: what is expected is what was given.
    """
    layout = responses.thresholds
    codes = codes_of_ratings(rated)
    step = codes[layout.item, layout.level] - codes[layout.item, layout.level - 1]
    ratings = (np.nan_to_num(responses.category_counts) * codes).sum(axis=1)
    expected_ratings = ratings + np.bincount(layout.item, step * gradient, minlength=layout.n_items)
    n = np.bincount(cell, responses.item_counts, n_cells)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Averages(
            n=n.astype(np.int64),
            observed=np.bincount(cell, ratings, n_cells) / n,
            expected=np.bincount(cell, expected_ratings, n_cells) / n,
        )


def category_use(rated: FacetMeasures, responses: Responses, thresholds: Floats, ability: Floats, name: str) -> Columns:
    """A row for each level of a facet, or for each `item`, and each category that its items have: the columns of
    `Analysis.category_use`."""
    layout = responses.thresholds
    if name == "item":
        labels = rated.facets.items
        level = rated.facets.item
    else:
        labels, level = rated.facets.column(name)
    sums = category_sums(responses, thresholds, ability)
    beta = rated.likeliest
    # How many more persons are expected at or above each category than there are.
    excess = layout.table(Likelihood(responses, beta).at(beta).gradient, 0.0)
    nobody = np.zeros((layout.n_items, 1))
    counts = responses.category_counts
    expected = counts + np.hstack([nobody, excess]) - np.hstack([excess, nobody])
    location = layout.mean(thresholds)[:, None]
    item, category = np.nonzero(np.isfinite(counts))
    codes, code = np.unique(codes_of_ratings(rated)[item, category], return_inverse=True)
    cell = level[item] * len(codes) + code.ravel()

    def by_cell(values: Floats) -> Floats:
        return np.bincount(cell, values[item, category], len(labels) * len(codes)).astype(np.float64)

    n = by_cell(counts)
    share = n / np.maximum(n.reshape(-1, len(codes)).sum(axis=1), 1).repeat(len(codes))
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = {
            "n": n.astype(np.int64),
            "share": share,
            "expected": by_cell(expected),
            "mean_measure": by_cell(sums.ability - sums.n * location) / by_cell(sums.n),
            "expected_measure": by_cell(sums.expected_ability - sums.expected_n * location) / by_cell(sums.expected_n),
            "outfit": np.where(
                by_cell(sums.n) > 0, by_cell(sums.square_over_v) / by_cell(sums.expected_square_over_v), np.nan
            ),
        }
    offered = np.unique(cell)  # a category that an item of the level has
    rows = {name: labels[offered // len(codes)], "category": as_whole(codes)[offered % len(codes)]}
    return rows | {key: values[offered] for key, values in columns.items()}


def unexpected_ratings(
    rated: FacetMeasures, responses: Responses, thresholds: Floats, ability: Floats, limit: int = UNEXPECTED_OF_ALL
) -> Columns:
    """Ratings three or more standard deviations from what is expected, the farthest first:
    `person, item, rater, ..., response, expected, z, ability`, in the codes of the data."""
    beta = thresholds_of(responses, thresholds)
    position = np.arange(responses.n_persons)
    kernel_arguments = (beta, responses.thresholds, codes_of_ratings(rated))
    unexpected = Unexpected(*responses.entries.gather(_unexpected, *kernel_arguments, persons=(ability, position)))
    order = np.argsort(-np.abs(unexpected.z), kind="stable")[:limit]
    person = unexpected.person[order]
    item = unexpected.item[order]
    facets = rated.facets
    columns: Columns = {"person": responses.persons[person]}
    for name, levels, codes in zip(facets.names, facets.levels, facets.codes.T, strict=True):
        columns[name] = levels[codes[item]]
    columns["response"] = as_whole(unexpected.code)[order]
    columns["expected"] = unexpected.expected[order]
    columns["z"] = unexpected.z[order]
    columns["ability"] = ability[person]
    return columns


class Unexpected(NamedTuple):
    """Unexpected ratings: person, virtual item, rating, what is expected, z."""

    person: Ints
    item: Ints
    code: Floats
    expected: Floats
    z: Floats


def _unexpected(
    block: Block, ability: Floats, position: Ints, beta: Floats, layout: Thresholds, codes: Floats
) -> Unexpected:
    no_number = np.zeros(0, dtype=np.int64)
    parts = [Unexpected(no_number, no_number, np.zeros(0), np.zeros(0), np.zeros(0))]
    cumulated = layout.cumulated(np.nan_to_num(beta))
    for answers in answers_at(block, ability, beta, layout):
        z = (answers.x - answers.mean) / np.sqrt(np.maximum(answers.variance, LEAST))
        far = np.flatnonzero(np.abs(z) >= UNEXPECTED)
        item = answers.item[far].astype(np.int64)
        p = category_probabilities(answers.theta[far], cumulated[item])
        parts.append(
            Unexpected(
                person=position[answers.person[far]],
                item=item,
                code=codes[item, answers.x[far].astype(np.int64)],
                expected=(p * codes[item]).sum(axis=1),
                z=z[far],
            )
        )
    return Unexpected(*map(np.concatenate, zip(*parts, strict=True)))


class CorrelationSums(NamedTuple):
    """Sums over the ratings of each level: of the rating, of the measure of person less location and severity, and of
    what is expected of the rating, with its variance."""

    n: Floats
    rating: Floats
    rating_squared: Floats
    measure: Floats
    measure_squared: Floats
    rating_with_measure: Floats
    expected: Floats
    expected_squared: Floats
    expected_with_measure: Floats
    variance: Floats


def point_measure_correlation(
    rated: FacetMeasures, responses: Responses, thresholds: Floats, ability: Floats, level: Ints, n_levels: int
) -> Columns:
    """`point_measure`, the correlation of each level's ratings with the measures of the persons less the locations of
    what they were rated on, and `point_measure_expected`, what the model expects of it:

        cov(E, m) / sqrt((var E + mean V) var m),    E and V the mean and the variance of a rating at the measure m.

    Extreme totals are left out. NaN where nothing varies.
    """
    beta = thresholds_of(responses, thresholds)
    layout = responses.thresholds
    kernel_arguments = (beta, layout, codes_of_ratings(rated), layout.mean(thresholds), level, n_levels)
    sums = CorrelationSums(*responses.entries.sum(_correlation_sums, *kernel_arguments, persons=(ability,)))
    with np.errstate(divide="ignore", invalid="ignore"):

        def covariance(products: Floats, first: Floats, second: Floats) -> Floats:
            """n times it; zero but for rounding where nothing varies."""
            around_mean = products - first * second / sums.n
            return np.where(np.abs(around_mean) > NOTHING_VARIES * np.abs(products), around_mean, 0.0)

        of_measure = covariance(sums.measure_squared, sums.measure, sums.measure)
        of_rating = covariance(sums.rating_squared, sums.rating, sums.rating)
        of_expected = covariance(sums.expected_squared, sums.expected, sums.expected) + sums.variance
        with_rating = covariance(sums.rating_with_measure, sums.rating, sums.measure)
        with_expected = covariance(sums.expected_with_measure, sums.expected, sums.measure)
        return {
            "point_measure": with_rating / np.sqrt(of_rating * of_measure),
            "point_measure_expected": with_expected / np.sqrt(of_expected * of_measure),
        }


def _correlation_sums(
    block: Block,
    ability: Floats,
    beta: Floats,
    layout: Thresholds,
    codes: Floats,
    location: Floats,
    level: Ints,
    n_levels: int,
) -> Floats:
    """The fields of `CorrelationSums`, levels in columns."""
    sums = np.zeros((len(CorrelationSums._fields), n_levels))
    cumulated = layout.cumulated(np.nan_to_num(beta))
    for answers in answers_at(block, ability, beta, layout):
        item = answers.item.astype(np.int64)
        p = category_probabilities(answers.theta, cumulated[item])
        rating = codes[item, answers.x.astype(np.int64)]
        expected = (p * codes[item]).sum(axis=1)
        variance = (p * codes[item] ** 2).sum(axis=1) - expected**2
        measure = answers.theta - location[item]
        values = CorrelationSums(
            n=np.ones(len(item)),
            rating=rating,
            rating_squared=rating**2,
            measure=measure,
            measure_squared=measure**2,
            rating_with_measure=rating * measure,
            expected=expected,
            expected_squared=expected**2,
            expected_with_measure=expected * measure,
            variance=variance,
        )
        sums += [np.bincount(level[item], weights=value, minlength=n_levels) for value in values]
    return sums


class ChiSquare(NamedTuple):
    """A chi-square test of the hypothesis that all levels of a facet are the same."""

    chi2: float
    df: int
    p: float


def all_same(severity: Floats, se: Floats) -> ChiSquare | None:
    """Are levels with these severities, of mean zero, all the same? The fixed-effect chi-square of Facets,

        chi2 = (L - 1) / L  sum_l (s_l - m)^2 / se_l^2,    df = L - 1,    m the mean weighted by 1 / se^2,

    with (L - 1) / L because the standard errors are those of differences from the mean of all L: so its mean is L - 1
    whatever their correlations. None where fewer than two levels have an error (anchors have none).
    """
    has_error = np.isfinite(severity) & np.isfinite(se) & (se > 0)
    n_levels = int(has_error.sum())
    if n_levels < 2:
        return None
    severity = severity[has_error]
    weight = 1 / se[has_error] ** 2
    mean = weight @ severity / weight.sum()
    chi2 = float((n_levels - 1) / n_levels * (weight @ (severity - mean) ** 2))
    df = n_levels - 1
    return ChiSquare(chi2=chi2, df=df, p=float(scipy.special.chdtrc(df, chi2)))
