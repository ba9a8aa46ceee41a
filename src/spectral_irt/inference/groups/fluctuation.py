"""Do difficulties depend on a column about persons? Score tests along numbers, ordered values and categories.

Given the score, u_l = 1{X_l >= k} - E[X_l >= k | s_l] has the mean zero for everybody if the difficulties hold for
everybody. Sorted by a column about persons, its sum over those up to each value is a random walk that returns to zero;
where difficulties depend on the column, it drifts away. With J = sum of u_l u_l', S(A) the sum over the persons of A,
and t(A) their share,

    numbers, ordered values   T = max over cuts with t in [.1, .9] of |J^-1/2 (S(A) - t S)|^2 / (t (1 - t))
    categories                T = sum over categories c of |J^-1/2 (S(c) - t(c) S)|^2 / t(c)

sup LM and a chi-square, which are the statistics of psychotree (Strobl, Kopf & Zeileis 2015). All of them take one pass
over the responses, with no fit at any cut. Persons of one value stay together. p of sup LM is Estrella's (2003), at
most that of all cuts by Bonferroni. `tree.py` splits nodes by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.groupings import numbers_of
from spectral_irt.data.labels import by_label
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.groups.calibrations import RANK_DIGITS
from spectral_irt.inference.groups.sampling import SampledPersons, cluster_scores, person_scores
from spectral_irt.inference.results import chi2_tail
from spectral_irt.text import first_of, listed

MOST_BINS = 512  # of a column of numbers: more change no digit that is shown
MOST_LEVELS = 100  # of categories; beyond, a column has names
MOST_PARTITIONS = 8  # categories up to which all ways to divide them are looked at: 127
TRIM = 0.1  # share of persons on either side, below which no cut is looked at
CELLS = 500_000  # of persons x thresholds that are looked at at a time: 4 MB
CATEGORIES = "categories"
ORDERED = "ordered"
NUMBERS = "numbers"

# Signs of the sides of a split.
UP_TO = "<="
ABOVE = ">"
EQUALS = "="


@dataclass(frozen=True, eq=False)
class Covariate:
    """A column about persons: the level of each (-1: not known), and what the levels are.

    Levels of `numbers` are single values or, of many, intervals, each from `low` to `high`; of `categories` and
    `ordered` columns they are labels.
    """

    name: str
    kind: str
    code: Ints
    labels: tuple[str, ...] = ()
    low: Floats = field(default_factory=lambda: np.empty(0))
    high: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def n_levels(self) -> int:
        return len(self.low) if self.kind == NUMBERS else len(self.labels)

    def take(self, persons: NDArray[Any]) -> Covariate:
        return replace(self, code=self.code[persons])

    def side(self, chosen: NDArray[np.bool_], present: NDArray[np.bool_]) -> str:
        """One side of a split in words, of the levels that are present in the node."""
        levels = np.flatnonzero(chosen & present)
        sign = self.sign(chosen, present)
        if sign == EQUALS:
            return f"{self.name} = {first_of([self.labels[k] for k in levels])}"
        # Both sides are named by the highest level of the lower one.
        edge = levels[-1]
        if sign == ABOVE:
            edge = np.flatnonzero(~chosen & present)[-1]
        label = f"{self.high[edge]:g}" if self.kind == NUMBERS else self.labels[edge]
        return f"{self.name} {sign} {label}"

    def sign(self, chosen: NDArray[np.bool_], present: NDArray[np.bool_]) -> str:
        """Which side of a split this is: the lower, the upper, or some categories."""
        if self.kind == CATEGORIES:
            return EQUALS
        is_lower = np.flatnonzero(chosen & present)[0] < np.flatnonzero(~chosen & present)[0]
        return UP_TO if is_lower else ABOVE


def covariate(responses: Responses, name: str, values: Sequence[Any], order: Sequence[str] = ()) -> Covariate:
    """A column about persons as the tree needs it: numbers, or labels in an order, or categories.

    `order` are the labels from the lowest to the highest; one of them alone, "categories", takes numbers for names.
    """
    named = [*order] == [CATEGORIES]
    numbers = None if order else numbers_of(values)
    if numbers is not None:
        return _of_numbers(responses, name, numbers)
    split = by_label(responses, values)
    labels = split.names
    code = split.group
    if order and not named:
        unknown = [label for label in labels if label not in order]
        if unknown:
            raise OptionError(f"the order of the column {name!r} lacks {listed(unknown)}, which its persons have.")
        labels = tuple(str(label) for label in order if label in labels)
        rank = np.array([labels.index(label) for label in split.names] + [-1])
        code = rank[code]
    _refuse_levels(responses, name, len(labels))
    if len(labels) > MOST_LEVELS:
        what = "nearly every person has a value of their own" if 2 * len(labels) > responses.n_persons else "too many"
        raise OptionError(
            f"{responses.source}: the column {name!r} has {len(labels):,} different values ({what}); the tree takes "
            f"numbers, or up to {MOST_LEVELS} categories. Leave the column out, or merge its values."
        )
    return Covariate(name, ORDERED if order and not named else CATEGORIES, code, labels=tuple(labels))


def _of_numbers(responses: Responses, name: str, numbers: Floats) -> Covariate:
    known = np.isfinite(numbers)
    values = np.unique(numbers[known])
    _refuse_levels(responses, name, len(values))
    low = values
    if len(values) > MOST_BINS:
        low = np.unique(np.quantile(numbers[known], np.linspace(0, 1, MOST_BINS + 1)[:-1], method="higher"))
    code = np.where(known, np.searchsorted(low, numbers, side="right") - 1, -1)
    high = np.append(values[np.searchsorted(values, low[1:]) - 1], values[-1])
    return Covariate(name, NUMBERS, code, low=low, high=high)


def _refuse_levels(responses: Responses, name: str, n_levels: int) -> None:
    if n_levels < 2:
        what = "a single value" if n_levels else "no value at all"
        raise DesignError(f"{responses.source}: the column {name!r} has {what}; nothing can be split by it.")


class ColumnTest(NamedTuple):
    """The test of one column in a node: its statistic, degrees of freedom, and log p; NaN where it has one level."""

    statistic: float = np.nan
    df: int = 0
    log_p: float = np.nan

    @property
    def p(self) -> float:
        return float(np.exp(self.log_p))


class Cut(NamedTuple):
    """Which levels of a column go to the first side; persons whose level is not known go there too, or not."""

    column: int
    first: NDArray[np.bool_]
    unknown_first: bool

    def goes_first(self, covariates: Sequence[Covariate]) -> NDArray[np.bool_]:
        return np.append(self.first, self.unknown_first)[covariates[self.column].code]


class Fluctuation(NamedTuple):
    """The random walk of a node in coordinates in which J is the identity: sums by level, one matrix for each column,
    and by level the sum of squared weights (the clock) and how many persons there are."""

    sums: list[Floats]
    clock: list[Floats]
    persons: list[Ints]

    @property
    def df(self) -> int:
        """Free thresholds."""
        return self.sums[0].shape[1]


def fluctuation(
    persons: SampledPersons, beta: Floats, covariates: Sequence[Covariate], design: Floats | None = None
) -> Fluctuation:
    """One pass over the responses of a node at its thresholds beta = A eta."""
    responses = persons.responses
    sizes = [column.n_levels + 1 for column in covariates]  # the last of each are persons without a value
    first = np.cumsum([0, *sizes])
    codes = np.column_stack([column.code % size for column, size in zip(covariates, sizes, strict=True)])
    place = (codes + first[:-1]).astype(np.int32)
    weight = persons.weight
    outer, sums = responses.entries.sum(
        _sums_by_level, responses.thresholds, beta, int(first[-1]), persons=(weight, place)
    )
    if persons.sampling.cluster is not None:
        n_clusters = int(persons.cluster.max(initial=0)) + 1
        by_cluster = cluster_scores(responses, beta, persons.sampling, n_clusters)
        outer = (by_cluster.T @ by_cluster).toarray()
    if design is not None:
        outer = design.T @ outer @ design
        sums = sums @ design
    values, vectors = np.linalg.eigh(outer)
    free = values > RANK_DIGITS * values[-1]
    sums = sums @ (vectors[:, free] / np.sqrt(values[free]))
    clock = [
        np.bincount(code, weights=weight**2, minlength=size).astype(float)
        for code, size in zip(codes.T, sizes, strict=True)
    ]
    counts = [np.bincount(code, minlength=size) for code, size in zip(codes.T, sizes, strict=True)]
    return Fluctuation(np.split(sums, first[1:-1]), clock, counts)


def _sums_by_level(
    block: Block, weight: Floats, place: Ints, layout: Thresholds, beta: Floats, n_levels: int
) -> tuple[Floats, Floats]:
    """sum of u u', and sums of u by level of every column (rows of `place` are persons)."""
    scores = person_scores(block, layout, beta)
    n_persons, n_thresholds = scores.shape
    n_columns = place.shape[1]
    outer = np.zeros((n_thresholds, n_thresholds))
    sums = np.zeros((n_levels, n_thresholds))
    step = max(1, CELLS // n_thresholds)
    for start in range(0, n_persons, step):
        some = slice(start, min(start + step, n_persons))
        u = scores[some].toarray() * weight[some, None]
        outer += u.T @ u
        indptr = np.arange(0, n_columns * len(u) + 1, n_columns)
        levels = sparse.csr_array((np.ones(n_columns * len(u)), place[some].ravel(), indptr), shape=(len(u), n_levels))
        sums += levels.T @ u
    return outer, sums


class Walk(NamedTuple):
    """The walk along one column, on its levels in the node: sums less their share, shares, and numbers of persons."""

    level: Ints
    sums: Floats
    share: Floats
    persons: Ints


def walk(found: Fluctuation, column: int) -> Walk:
    """Persons without a value are left out; those who have one have the sum zero after their share is taken off."""
    level = np.flatnonzero(found.persons[column][:-1])
    clock = found.clock[column][level]
    share = clock / clock.sum()
    sums = found.sums[column][level]
    # J of the persons with a value is their share of that of all.
    known = clock.sum() / found.clock[column].sum()
    return Walk(level, (sums - share[:, None] * sums.sum(axis=0)) / np.sqrt(known), share, found.persons[column][level])


def column_test(found: Walk, kind: str, df: int) -> ColumnTest:
    """The statistic of one column, and its p."""
    n_levels = len(found.level)
    if n_levels < 2:
        return ColumnTest()
    if kind == CATEGORIES:
        statistic = float(((found.sums**2).sum(axis=1) / found.share).sum())
        return ColumnTest(statistic, df * (n_levels - 1), log_chi2_tail(statistic, df * (n_levels - 1)))
    share = np.cumsum(found.share)[:-1]
    inside = np.flatnonzero((share >= TRIM) & (share <= 1 - TRIM))
    if not len(inside):
        return ColumnTest()
    statistic = float(_of_cuts(found, np.tri(n_levels - 1, n_levels, dtype=bool)[inside]).max())
    each = log_chi2_tail(statistic, df) + np.log(len(inside))
    return ColumnTest(statistic, df, min(log_sup_lm_tail(statistic, df), each, 0.0))


def _of_cuts(found: Walk, first: NDArray[np.bool_]) -> Floats:
    """|S(A)|^2 / (t (1 - t)) of some cuts x levels."""
    share = first @ found.share
    return np.asarray(((first @ found.sums) ** 2).sum(axis=1) / (share * (1 - share)))


def log_chi2_tail(statistic: float, df: int) -> float:
    """log P(chi-square > statistic), also where P is below the smallest number."""
    p = float(chi2_tail(statistic, df))
    if p > 0:
        return float(np.log(p))
    half = statistic / 2
    return float((df / 2 - 1) * np.log(half) - half - gammaln(df / 2))


def log_sup_lm_tail(statistic: float, df: int, trim: float = TRIM) -> float:
    """log P(sup LM > statistic) by Estrella (2003), good where P < .15; 0 where the formula does not hold.

    >>> round(float(np.exp(log_sup_lm_tail(34.75, 7))), 5)
    0.00067
    """
    if statistic <= df:
        return 0.0
    log_lambda = 2 * np.log((1 - trim) / trim)
    log_density = df / 2 * np.log(statistic / 2) - statistic / 2 - gammaln(df / 2)
    return float(min(0.0, log_density + np.log((1 - df / statistic) * log_lambda + 2 / statistic)))


def best_cut(found: Walk, covariates: Sequence[Covariate], column: int, fewest: float) -> Cut | None:
    """Where the statistic of two sides is largest, each with `fewest` persons or more; None where there is none."""
    kind = covariates[column].kind
    sides = _sides(found, kind)
    share = sides @ found.share
    n_first = sides @ found.persons
    allowed = (n_first >= fewest) & (found.persons.sum() - n_first >= fewest)
    if kind != CATEGORIES:
        allowed &= (share >= TRIM) & (share <= 1 - TRIM)
    if not allowed.any():
        return None
    sides = sides[allowed]
    best = int(np.argmax(_of_cuts(found, sides)))
    first = np.zeros(covariates[column].n_levels, dtype=bool)
    first[found.level[sides[best]]] = True
    if kind != CATEGORIES:  # values that the node does not have go with the lower ones that it has
        first = np.arange(len(first)) <= np.flatnonzero(first)[-1]
    return Cut(column, first, bool(n_first[allowed][best] >= found.persons.sum() / 2))


def _sides(found: Walk, kind: str) -> NDArray[np.bool_]:
    """The first side of all splits that are looked at, splits x levels: all ways to divide a few categories; of many
    those along the direction in which their mean scores differ most; else the cuts in order."""
    n_levels = len(found.level)
    if kind == CATEGORIES and n_levels <= MOST_PARTITIONS:
        number = np.arange(1, 2 ** (n_levels - 1))
        return (number[:, None] >> np.arange(n_levels)) % 2 == 1
    cuts = np.tri(n_levels - 1, n_levels, dtype=bool)
    if kind != CATEGORIES:
        return cuts
    means = found.sums / np.sqrt(found.share)[:, None]
    direction = np.linalg.svd(means, full_matrices=False)[2][0]
    rank = np.argsort(np.argsort(found.sums @ direction / found.share, kind="stable"))
    return np.asarray(cuts[:, rank])
