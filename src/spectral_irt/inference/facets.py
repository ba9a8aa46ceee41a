"""Raters and other facets: severity, fit and averages of every level.

What is summed over the answers to an item is summed over the answers of a rater here: the items of the responses are
combinations of both, and a level is the sum of its combinations. `Analysis.facet` shows the table, with `agreement.py`
and halo beside it; `interactions.py` has combinations of rater and item, `facet_findings.py` what is said of raters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Responses
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, answered_items
from spectral_irt.data.facets import FacetMeasures
from spectral_irt.inference.fit.halo import Halo
from spectral_irt.inference.fit.item_fit import SQUARES, verdict
from spectral_irt.inference.fit.level_fit import level_fit
from spectral_irt.inference.fit.mean_squares import item_statistics
from spectral_irt.inference.fit.moments import GivenScore
from spectral_irt.inference.rating_tables import codes_of_ratings, point_measure_correlation
from spectral_irt.inference.results import adjust_p, two_sided
from spectral_irt.tables import Columns

FLAT = 0.8  # slopes below which a rater keeps to the middle categories,
STEEP = 1.25  # and above which to the lowest and highest
CERTAIN = 0.05  # of an adjusted p below which something is said of a rater, or of an interaction
OF_EACH_TEST = CERTAIN / 2  # the two tests of a rater, of infit and of slope, have this together (Bonferroni)
CENTRAL = "central"  # misfits that the slope of a rater says
SHARP = "extreme ratings"


def facet_table(
    calibration: Calibration,
    responses: Responses,
    ability: Floats,
    name: str,
    given: GivenScore | None = None,
    impressions: Halo | None = None,
) -> Columns:
    """A row for each level of a facet, with the columns of `Analysis.facet` but for agreement."""
    rated = calibration.facets
    assert rated is not None
    labels, level = rated.facets.column(name)
    measures = rated.of[name]
    ratings = (np.nan_to_num(responses.category_counts) * codes_of_ratings(rated)).sum(axis=1)
    n = np.bincount(level, responses.item_counts, len(labels))
    with np.errstate(divide="ignore", invalid="ignore"):
        average = np.bincount(level, ratings, len(labels)) / n
    fit = fit_by_level(calibration, responses, ability, level, len(labels), given)
    halo = halo_z = np.full(len(labels), np.nan)
    if impressions is not None:
        halo = impressions.of_level
        halo_z = impressions.of_level_z
        fit["discrimination_se"] = fit["discrimination_se"] * max(impressions.ratio, 1.0) ** 0.5
    fit |= point_measure_correlation(rated, responses, calibration.thresholds, ability, level, len(labels))
    misfit = level_verdict(fit, measures["subset"])
    subset = first_of_levels(rated.subset_of_item, level, len(labels))
    mean_ability = mean_of_subsets(rated, responses, ability)[subset]
    return {
        name: labels,
        "severity": measures["severity"],
        "se": measures["se"],
        "n": n.astype(np.int64),
        **fit,
        "halo": halo,
        "halo_z": halo_z,
        "observed_average": average,
        "fair_average": fair_average(calibration, mean_ability - measures["severity"]),
        "subset": measures["subset"] + 1,
        "misfit": misfit,
        "status": np.where((measures["status"] == "ok") & (misfit != ""), misfit, measures["status"]),
    }


def fit_by_level(
    calibration: Calibration,
    responses: Responses,
    ability: Floats,
    level: Ints,
    n_levels: int,
    given: GivenScore | None = None,
) -> Columns:
    """Infit and outfit of the levels of a facet, or of the items, conventional and given the totals, and slopes."""
    rated = calibration.facets
    assert rated is not None
    conventional = item_statistics(responses, calibration.thresholds, ability, level, n_levels)
    if given is None:
        # At the maximum of the likelihood: a correction of first-order bias draws ratings of one person together.
        given = GivenScore.of(responses, rated.likeliest)
    conditional = level_fit(responses, given, ability, level, n_levels, rated.estimated_design)
    columns: Columns = {name: conventional[name] for name in SQUARES}
    columns |= {name.replace("fit", "fit_conditional"): conditional[name] for name in SQUARES}
    return columns | {name: conditional[name] for name in ("discrimination", "discrimination_se")}


def level_verdict(fit: Columns, subset: Ints) -> NDArray[Any]:
    """Which levels misfit: "underfit" or "overfit" by the conditional infit, as of items; "central" or "extreme
    ratings" by the slope (Holm); at 5% for both tests of all levels, and only where it is large enough to matter.

    Ratings at random are flat as well, so that underfit comes first. Slopes are tested against the model's 1, which is
    their average; how large they are goes by the median of their subset: where some raters are flat, all others whom
    they meet are steeper than the average. The median has an error of its own, so that a test against it would name
    raters too often.
    """
    z = fit["infit_conditional_z"]
    misfit = verdict(two_sided(z), z, fit["infit_conditional"], OF_EACH_TEST)["misfit"]
    slope = fit["discrimination"]
    if not np.isfinite(slope).any():
        return misfit
    slope_z = (slope - 1) / fit["discrimination_se"]
    significant = adjust_p(two_sided(slope_z), "holm") < OF_EACH_TEST
    significant &= misfit != "underfit"
    relative_slope = np.full(len(slope), np.nan)
    for number in np.unique(subset):
        together = (subset == number) & np.isfinite(slope)
        if together.any():
            relative_slope[together] = slope[together] / max(float(np.median(slope[together])), FLAT)
    misfit[significant & (slope_z < 0) & (relative_slope < FLAT)] = CENTRAL
    misfit[significant & (slope_z > 0) & (relative_slope > STEEP)] = SHARP
    return misfit


def fair_average(calibration: Calibration, theta: Floats) -> Floats:
    """The mean over all items of the rating that is expected there from a rater of average severity, in the codes of
    the data."""
    items = calibration.own_items
    average = np.zeros(len(theta))
    for item, codes in zip(items.labels.tolist(), np.nan_to_num(items.codes), strict=True):
        p = items.category_probability(theta, item)
        average += p @ codes[: p.shape[1]]
    return average / items.n_items


def first_of_levels(values: Ints, level: Ints, n_levels: int) -> Ints:
    """Of each level what its first virtual item has; 0 where it has none."""
    first = np.zeros(n_levels, dtype=np.int64)
    first[level[::-1]] = values[::-1]  # the last to be written stays
    return first


def mean_of_subsets(rated: FacetMeasures, responses: Responses, ability: Floats) -> Floats:
    """The mean ability of the people of each subset."""
    subset = subset_of_persons(rated, responses)
    measured = np.isfinite(ability) & (subset >= 0)
    n_subsets = rated.subset_of_item.max(initial=0) + 1
    total = np.bincount(subset[measured], weights=ability[measured], minlength=n_subsets)
    with np.errstate(invalid="ignore"):
        return total / np.bincount(subset[measured], minlength=n_subsets)


def subset_of_persons(rated: FacetMeasures, responses: Responses) -> Ints:
    """The subset in which each person was rated; -1 without ratings."""
    return np.asarray(responses.entries.gather(_first_subset, responses.thresholds, rated.subset_of_item))


def _first_subset(block: Block, layout: Thresholds, subset: Ints) -> Ints:
    indptr, items, _ = answered_items(block, layout)
    first = np.full(block.n_persons, -1, dtype=np.int64)
    with_ratings = np.flatnonzero(np.diff(indptr))
    first[with_ratings] = subset[items[indptr[with_ratings]]]
    return first
