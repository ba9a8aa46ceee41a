"""What unequal slopes explain: the tests of pairs and contrast again, against a model with a slope for every item.

Steep items share more with steep ones than the Rasch model says, and less with flat ones, with one ability behind them
all. So where a test alarms, data sets are drawn from a model with slopes (`items/slope_model.py`), and what they share
in the mean is taken off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints, Mask
from spectral_irt.inference.dimensions.evidence import (
    BothTests,
    Evidence,
    Reference,
    judge_by_normal,
    thresholds_of_sums,
)
from spectral_irt.inference.dimensions.local_dependence import share_as_large
from spectral_irt.inference.dimensions.pairs import HalfOfPeople, pair_sums
from spectral_irt.inference.dimensions.residual_table import ResidualTable, with_mixed_scores
from spectral_irt.inference.items.slope_model import SlopeModel, slope_model
from spectral_irt.inference.results import EACH

if TYPE_CHECKING:
    from spectral_irt.inference.dimensions.dimensionality import Dimensionality

LEVEL = 0.05  # of these tests: what is asked here has already alarmed
TABLES_WORK = 4e7  # people x items^2 of all tables that are drawn: 3 s at most
FEWEST_TABLES = 4  # of which a mean is taken
MOST_TABLES = 16
FEWEST_RANKED = 39  # tables among which the observed one has a rank
MOST_RANKED = 99
FEW_LOADED = 4  # a contrast of fewer items than this is a dependent pair or three
MOST_OF_IT = 0.5  # of the squared loadings on a contrast


class EqualSlopes(NamedTuple):
    """p of the contrast, and the number of significant pairs, had all items one slope."""

    contrast_p: float
    n_pairs: int


def allowing_for_slopes(evidence: Evidence, result: Dimensionality, reference: Reference | None) -> Dimensionality:
    """What is left of an alarm after the same tests against a model with slopes."""
    model = slope_model(evidence.table.responses)
    if reference is None:
        tests = judge_by_normal_with_slopes(evidence, model)
    else:
        tests = judge_by_draws_with_slopes(evidence, model, reference)
    significant = result.dependence.dependent
    dependent = significant & (tests.pairs.p < LEVEL)
    alarm = result.contrast_p < EACH
    contrast = alarm and tests.contrast_p < LEVEL
    of_pairs = is_of_pairs(result.loadings, result.dependence.first, result.dependence.second, dependent)
    # What slopes explain has the p-value that allows for them; what they do not keeps the one that alarmed.
    pairs_p = np.where(dependent, result.dependence.test.p, np.maximum(result.dependence.test.p, tests.pairs.p))
    contrast_p = result.contrast_p
    if not contrast:
        contrast_p = max(result.contrast_p, tests.contrast_p)
    p_slopes = np.where(significant, tests.pairs.p, np.nan)
    return replace(
        result,
        dependence=replace(result.dependence, p_slopes=p_slopes, dependent=dependent),
        pairs_p=float(pairs_p.min()),
        contrast_p=contrast_p,
        equal_slopes=EqualSlopes(result.contrast_p, int(significant.sum())),
        slopes=(float(model.slope.min()), float(model.slope.max())),
        contrast=contrast,
        two_dimensions=contrast and not of_pairs,
        by_slopes=(alarm and not contrast) or (bool(significant.any()) and not dependent.any()),
    )


def is_of_pairs(loadings: Floats, first: Ints, second: Ints, dependent: Mask) -> bool:
    """Whether a contrast is that of a dependent pair or three: few items load on it, or the dependent ones, few as they
    are, have most of it."""
    items = np.unique(np.concatenate([first[dependent], second[dependent]]))
    share = loadings**2 / (loadings**2).sum()
    few_loaded = 1 / float((share**2).sum()) < FEW_LOADED
    few_dependent = len(items) < FEW_LOADED and float(share[items].sum()) > MOST_OF_IT
    return len(items) > 0 and (few_loaded or few_dependent)


def tables_with_slopes(evidence: Evidence, model: SlopeModel, fewest: int, most: int) -> Iterator[Responses]:
    """Data sets drawn from the model with slopes, as many as are affordable between these numbers."""
    people, items = evidence.table.seen.shape
    number = int(np.clip(TABLES_WORK / (people * items**2), fewest, most))
    for seed in np.random.SeedSequence([0, 3]).spawn(number):
        yield model.redraw(evidence.table.responses, seed)


def judge_by_normal_with_slopes(evidence: Evidence, model: SlopeModel) -> BothTests:
    beta = thresholds_of_sums(evidence.table)
    shared = []  # tables x halves x items x items
    for responses in tables_with_slopes(evidence, model, FEWEST_TABLES, MOST_TABLES):
        shared.append([half.sums.shared for half in pair_sums(responses, beta, evidence.half)])
    variance_factor = 1 + 1 / len(shared)  # for the error of the mean of these tables
    mean_first, mean_second = np.mean(shared, axis=0)
    first, second = evidence.halves
    halves = (_without(first, mean_first, variance_factor), _without(second, mean_second, variance_factor))
    return judge_by_normal(evidence, halves, variance_factor)


def _without(half: HalfOfPeople, shared: Floats, variance_factor: float) -> HalfOfPeople:
    """The sums of a half without what pairs share by their slopes."""
    sums = half.sums
    sums = sums._replace(shared=sums.shared - shared, variance=sums.variance * variance_factor)
    return half._replace(sums=sums)


def judge_by_draws_with_slopes(evidence: Evidence, model: SlopeModel, reference: Reference) -> BothTests:
    q3 = []
    eigenvalues = []
    for responses in tables_with_slopes(evidence, model, FEWEST_RANKED, MOST_RANKED):
        table = ResidualTable.of(with_mixed_scores(responses), evidence.table.thresholds)
        drawn = table.correlations(evidence.min_people)
        q3.append(drawn.q3[evidence.first, evidence.second])
        eigenvalues.append(np.linalg.eigvalsh(drawn.standardized)[-1])
    mean = np.nan_to_num(q3).mean(axis=0)
    pairs = reference.pairs.test(evidence.q3, mean, variance_factor=1 + 1 / len(q3))
    p = share_as_large(np.array(eigenvalues), np.array([evidence.eigenvalue]))
    return BothTests(pairs, float(p[0]))
