"""Do the items share more than one ability? Pairs of items, and a contrast between sets of items, by default and fast.

- Is a pair of items locally dependent (the same text, a clue from one to the other, copying)? See
  `local_dependence.py`: Q3 of every pair, and a p-value that is adjusted for all pairs.
- Does a contrast between two sets of items run through the residuals (a second dimension)? The eigenvalue of the first
  contrast (`contrast.py`), compared with those of data sets drawn given the scores.

Both tests are in `evidence.py`; where draws would take long, both come from sums over people that are normal in large
samples (`pairs.py`). Where either alarms, both are made again allowing for a slope for every item
(`unequal_slopes.py`); what that explains is called by its name (`findings.py`).

Some thousands of people and some hundreds of items suffice for what matters, so more are sampled: people at random,
items by how often they were answered. Neither depends on how they were answered, so the level stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.engine.base import one_blas_thread
from spectral_irt.errors import OptionError
from spectral_irt.inference.dimensions.contrast import Contrasts, contrasts_of, variance_explained
from spectral_irt.inference.dimensions.evidence import (
    BothTests,
    Evidence,
    Reference,
    affordable_draws,
    contrast_strength,
    judge_by_draws,
    judge_by_normal,
)
from spectral_irt.inference.dimensions.findings import (
    MATERIAL_CONTRAST,
    MATERIAL_PAIR,
    MATERIAL_SET,
    dimension_findings,
)
from spectral_irt.inference.dimensions.local_dependence import LocalDependence
from spectral_irt.inference.dimensions.residual_table import with_mixed_scores
from spectral_irt.inference.dimensions.unequal_slopes import EqualSlopes, allowing_for_slopes
from spectral_irt.inference.results import EACH, LEAST_DRAWS, MIN_PAIRED
from spectral_irt.numerics import generator
from spectral_irt.tables import Table, make_table
from spectral_irt.text import count, p_value

MOST_PEOPLE = 4_000  # looked at; with so many items 0.6 s of CPU at most: some products of people x items^2
MOST_ITEMS = 200
FEWEST_PEOPLE = 30  # with fewer, correlations are chance
FEWEST_ITEMS = 4  # three leave nothing to test
FEWEST_IN_COMMON = 10  # people who answered both items: with fewer, a correlation of 0.6 is chance


@dataclass(frozen=True, eq=False, repr=False)
class Dimensionality:
    """What `dimensionality` found.

    Attributes
    ----------
    items, n_people : labels, int
        The items looked at and people with a mixed score on them; `sampled` where there are more people or items.
    dependence, contrasts : LocalDependence, Contrasts
        Q3 of every pair, with the verdict on each; eigenvalues and loadings of residual contrasts, with the variance
        that the measures explain.
    pairs_p, contrast_p : float
        p-values of the most significant pair, adjusted for all pairs, and of the first contrast; of an alarm that
        unequal slopes explain, those that allow for slopes.
    strength : float
        Of the first contrast, in items, cross-validated: found in one half of the people and measured in the other,
        where chance adds nothing to it; 1 on average if there is none.
    equal_slopes, slopes : EqualSlopes, (float, float), or None
        Of tests that alarmed: p of the contrast and the significant pairs, had all items one slope; and the flattest
        and the steepest, in units of the mean one.
    dependent, contrast, two_dimensions, by_slopes : bool
        Whether some pair is locally dependent; there is a contrast that unequal slopes do not explain, and of more
        items than some dependent pairs have; a test alarmed, and does no longer with a slope for every item.
    findings : tuple of Finding
        What alarmed, with what to do about it.
    """

    items: NDArray[Any]
    n_people: int
    dependence: LocalDependence
    contrasts: Contrasts
    pairs_p: float
    contrast_p: float
    strength: float
    sampled: bool
    equal_slopes: EqualSlopes | None = None
    slopes: tuple[float, float] | None = None
    contrast: bool = False
    two_dimensions: bool = False
    by_slopes: bool = False

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(dimension_findings(self))

    @property
    def dependent(self) -> bool:
        return bool(self.dependence.dependent.any())

    @property
    def loadings(self) -> Floats:
        """Of the items on the first contrast."""
        return self.contrasts.loadings[:, 0]

    @property
    def weak_contrast(self) -> bool:
        return self.strength < MATERIAL_CONTRAST

    @property
    def weak_pairs(self) -> bool:
        pairs = self.dependence.dependent_pairs
        above_mean = pairs.q3 - self.dependence.mean
        of_item = np.bincount(np.concatenate([pairs.first, pairs.second]), np.tile(above_mean, 2), minlength=1)
        return float(above_mean.max(initial=0.0)) < MATERIAL_PAIR and float(of_item.max()) < MATERIAL_SET

    def table(self) -> Table:
        """Winsteps' table 23: `part, eigenvalue, percent` of the variance of responses, and of the first contrasts;
        `critical` and `p` of these from the draws."""
        return make_table(self.contrasts.variance_columns, self.dependence.frame_kind)

    def loadings_table(self) -> Table:
        """`item, contrast_1, ...`: loadings of the items on the contrasts, from the highest on the first down."""
        return make_table(self.contrasts.loading_columns, self.dependence.frame_kind)

    def to_dict(self) -> dict[str, Any]:
        """The result as data."""
        equal_slopes = self.equal_slopes or EqualSlopes(self.contrast_p, int(self.dependence.dependent.sum()))
        strongest = self.dependence.strongest[0]
        return {
            "n_items": len(self.items),
            "n_people": self.n_people,
            "n_pairs": len(self.dependence.first),
            "dependent_pairs": int(self.dependence.dependent.sum()),
            "pairs_p": self.pairs_p,
            "correlation": float(self.dependence.q3[strongest]),
            "detectable": self.dependence.detectable,
            **self.dependence.to_dict(),
            "contrast_p": self.contrast_p,
            "strength": self.strength,
            **self.contrasts.to_dict(),
            "level": EACH,
            "contrast_p_equal_slopes": equal_slopes.contrast_p,
            "dependent_pairs_equal_slopes": equal_slopes.n_pairs,
        }

    def __repr__(self) -> str:
        eigenvalue = self.contrasts.eigenvalues[0]
        return f"<Dimensionality: first contrast {eigenvalue:.2f} items, {p_value(self.contrast_p)}>"


@one_blas_thread()  # the matrices are small
def dimensionality(
    calibration: Calibration,
    responses: Responses,
    *,
    min_people: int = MIN_PAIRED,
    sample: int | None = None,
    draws: int | None = None,
    seed: int = 0,
) -> Dimensionality | None:
    """Locally dependent pairs of items, and the first contrast between items; None with too few data.

    Parameters
    ----------
    calibration, responses : Calibration, Responses
    min_people : int
        People who answered both items of a pair; pairs with fewer are left out (default 30).
    sample : int, optional
        People to take at random (default 4,000 at most).
    draws : int, optional
        Data sets to draw given the scores; 0: none, and the normal distribution of large samples. By default as many as
        take half a second, up to 1,000, and none where those would be fewer than 200.
    seed : int
        Random seed of sample and draws (default 0).

    References
    ----------
    Yen (1984), Appl. Psych. Meas. 8, 125-145; Christensen, Makransky & Horton (2017), Appl. Psych. Meas. 41, 178-194;
    Westfall & Young (1993), Resampling-based multiple testing. Sums over pairs: van den Wollenberg (1982),
    Psychometrika 47, 123-140, given the score. Contrasts: Linacre (1998), J. Outcome Meas. 2, 266-283.
    """
    _check_options(min_people, sample, draws, seed)
    sampled = _sample(calibration, responses, MOST_PEOPLE if sample is None else sample, seed)
    if sampled.responses.n_items < FEWEST_ITEMS or sampled.responses.n_persons < FEWEST_PEOPLE:
        return None
    evidence = Evidence.of(sampled.responses, sampled.thresholds, min_people)
    if not len(evidence.first):
        return None
    if draws is None:
        draws = affordable_draws(*evidence.table.seen.shape)
    if draws:
        reference = Reference.drawn(evidence, draws, seed)
        tests = judge_by_draws(evidence, reference)
    else:
        reference = None
        tests = judge_by_normal(evidence, evidence.halves)
    result = _result(evidence, tests, reference, is_sample=sampled.is_sample)
    if result.contrast_p >= EACH and not result.dependent:
        return result
    return allowing_for_slopes(evidence, result, reference)


def _check_options(min_people: int, sample: int | None, draws: int | None, seed: int) -> None:
    generator(seed, 0)  # refuses what is no seed
    if min_people < FEWEST_IN_COMMON:
        raise OptionError(
            f"`min_people` is {min_people}; a correlation of fewer than {FEWEST_IN_COMMON} people says nothing."
        )
    if sample is not None and sample < min_people:
        raise OptionError(f"`sample` is {sample}; it is a number of people, at least `min_people={min_people}`.")
    if draws is not None and draws != 0 and draws < LEAST_DRAWS:
        raise OptionError(f"`draws` is {draws}; a p-value of 1% takes {LEAST_DRAWS} or more; 0 is none at all.")


def too_few(responses: Responses, min_people: int = MIN_PAIRED) -> str:
    """Why there is nothing to tell."""
    mixed = int(responses.informative.sum())
    if responses.n_items < FEWEST_ITEMS:
        return f"{responses.source}: residuals of fewer than {FEWEST_ITEMS} items have nothing to tell."
    if mixed < FEWEST_PEOPLE:
        return (
            f"{responses.source}: {count(mixed, 'person has', 'people have')} a score between the ends of the scale; "
            f"correlations of residuals take {FEWEST_PEOPLE} or more."
        )
    return (
        f"{responses.source}: no two items have {min_people} people in common, so no residuals can be correlated. "
        "Lower min_people, or collect more answers."
    )


class Sampled(NamedTuple):
    """The answers that are looked at, the thresholds of their items, and whether there are more people or items."""

    responses: Responses
    thresholds: Floats
    is_sample: bool


def _sample(calibration: Calibration, responses: Responses, most: int, seed: int) -> Sampled:
    """The answers of some people with a mixed score to the items that most people answered."""
    measured = np.flatnonzero(calibration.measured)
    most_answered = np.argsort(-responses.item_counts[measured], kind="stable")[:MOST_ITEMS]
    items = np.sort(measured[most_answered])
    mixed = np.flatnonzero(responses.informative)
    fewer_people = len(mixed) > most
    answers = responses
    if fewer_people:
        answers, _ = responses.sample(most, generator(seed, 0), mixed)
    if len(items) < responses.n_items:
        answers = answers.take_items(items)
    return Sampled(
        responses=with_mixed_scores(answers).in_one_block(),
        thresholds=calibration.thresholds[responses.thresholds.of_items(items)],
        is_sample=fewer_people or len(items) < len(measured),
    )


def _result(evidence: Evidence, tests: BothTests, reference: Reference | None, *, is_sample: bool) -> Dimensionality:
    """Both tests with what is reported beside them; pairs that are significant count as dependent."""
    table = evidence.table
    items = table.responses.items
    matrix = evidence.observed.q3.copy()
    np.fill_diagonal(matrix, 1.0)
    q3_star_critical = np.nan
    eigenvalues, loadings = contrasts_of(evidence.observed.standardized)
    critical = np.full(len(eigenvalues), np.nan)
    p_of_draws = np.full(len(eigenvalues), np.nan)
    if reference is not None:
        q3_star_critical = float(np.quantile(reference.pairs.q3_star, 1 - EACH))
        critical = np.quantile(reference.eigenvalues, 1 - EACH, axis=0)
        as_large = (reference.eigenvalues >= eigenvalues).sum(axis=0)
        p_of_draws = (1 + as_large) / (1 + reference.draws)
    dependence = LocalDependence(
        items=items,
        matrix=matrix,
        n=table.n_both.astype(np.int64),
        first=evidence.first,
        second=evidence.second,
        test=tests.pairs,
        p_slopes=np.full(len(evidence.first), np.nan),
        dependent=tests.pairs.p < EACH,
        q3_star_critical=q3_star_critical,
        draws=0 if reference is None else reference.draws,
        frame_kind=table.responses.frame_kind,
    )
    contrasts = Contrasts(
        items=items,
        eigenvalues=eigenvalues,
        loadings=loadings,
        critical=critical,
        p=p_of_draws,
        variance=variance_explained(table),
    )
    return Dimensionality(
        items=items,
        n_people=len(table.seen),
        dependence=dependence,
        contrasts=contrasts,
        pairs_p=float(tests.pairs.p.min()),
        contrast_p=tests.contrast_p,
        strength=contrast_strength(evidence),
        sampled=is_sample,
    )
