"""Yen's Q3 and principal components of residuals: what analysts report of local dependence and a second dimension.

The residual of an answer is r = x - E at the person's estimated ability, or (x - E) / sqrt(V) standardized. Q3 of two
items is the correlation of their residuals over the people who answered both. Under the model it is not zero but about
-1 / (m - 1), because a person's ability was fitted to these very answers; so it is set against the average pair.
Eigenvalues of the correlations of standardized residuals are in units of items: one of 3 says that about three items
share something beyond the ability, and the loadings say which. Pure noise has eigenvalues too, up to about
(1 + sqrt(m v))^2 with v the mean variance of a correlation, 1 / n on complete data (Marchenko & Pastur 1967).

These are descriptions with rules of thumb. Whether items are dependent, or have a second dimension, is decided by
`dimensionality`, whose tests have a level without a bootstrap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.calibration import Calibration
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.engine import Prepared
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.probability import upper
from spectral_irt.numerics import generator
from spectral_irt.persons.abilities import abilities, answers_with_difficulty, checked
from spectral_irt.persons.residuals import CERTAIN, LEAST, answers_at, probabilities
from spectral_irt.sparse_kernels import csr
from spectral_irt.tables import Columns, make_table

ITEMS = 1_000  # whose pairs are looked at: six matrices of 8 MB on the way; of more, those answered most often
CELLS = 4_000_000  # of a dense piece on the way
DENSE = 0.1  # share of answered cells from which dense products are faster
MIN_PAIRED = 30  # who answered both items of a pair: with fewer, a correlation of 0.35 is chance
FEWEST = 10  # below, a correlation of 0.6 is chance
EXCESS = 0.2  # Q3 above the average that is usually taken for dependence (Christensen et al. 2017)
CLOSE = 1 - 1e-12  # to 1, where atanh ends


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of items with their correlation, strongest first.

    Attributes
    ----------
    first, second : int arrays
        Item codes, first < second.
    correlation : float array
    n : int array
        People who answered both.
    z : float array
        How far the correlation is above the average one, in standard errors: (atanh r - atanh mean) sqrt(n - 3).
    mean : float
        Average correlation over all pairs that enough people answered, listed here or not.
    n_pairs : int
        How many those are.
    largest : float
        The largest of their correlations.
    matrix : items x items
        All correlations, 1 on the diagonal.
    """

    first: Ints
    second: Ints
    correlation: Floats
    n: Ints
    z: Floats
    mean: float
    n_pairs: int
    largest: float
    matrix: Floats


@dataclass(frozen=True, eq=False)
class Components:
    """The first principal components.

    Attributes
    ----------
    eigenvalues : float array
        Falling, in units of items; they would add to the number of items if all were listed.
    loadings : items x components
        Correlation of each item's residuals with the component; NaN for items without residuals. Signs are such that
        the larger loading of each component is positive.
    noise : float
        About the largest eigenvalue of noise; rough for few items.
    """

    eigenvalues: Floats
    loadings: Floats
    noise: float


@dataclass(frozen=True, eq=False, repr=False)
class LocalDependence:
    """What `local_dependence` found.

    Attributes
    ----------
    pairs : Pairs
        Q3 of every pair, with its matrix.
    q3_star : float
        Largest Q3 minus the average one.
    components : Components
        Of the standardized residuals.
    level : float
    items : labels
        Those looked at.
    """

    pairs: Pairs
    q3_star: float
    components: Components
    level: float
    items: NDArray[Any]
    frame_kind: str | None

    @property
    def columns(self) -> Columns:
        """The columns of `table()`."""
        pairs = self.pairs
        p = np.minimum(upper(pairs.z) * max(pairs.n_pairs, 1), 1.0)
        excess = pairs.correlation - pairs.mean
        return {
            "item_1": self.items[pairs.first],
            "item_2": self.items[pairs.second],
            "n": pairs.n,
            "q3": pairs.correlation,
            "excess": excess,
            "z": pairs.z,
            "p": p,
            "dependent": (p < self.level) & (excess > EXCESS),
        }

    def table(self) -> Any:
        """The pairs, strongest first: `item_1, item_2, n, q3, excess, z, p, dependent`.

        `excess` is Q3 above the average pair, `z` the same in standard errors, `p` one-sided and adjusted for all pairs
        (Bonferroni). A pair is `dependent` when p is below the level and the excess above 0.2, the usual rule of thumb.
        """
        return make_table(self.columns, self.frame_kind)

    def loadings(self) -> Any:
        """The items' loadings on the components of their residuals: `item, component_1, component_2, ...`."""
        values = self.components.loadings
        columns = {"item": self.items} | {f"component_{k + 1}": values[:, k] for k in range(values.shape[1])}
        return make_table(columns, self.frame_kind)

    def __repr__(self) -> str:
        first = self.components.eigenvalues[0] if len(self.components.eigenvalues) else float("nan")
        return (
            f"<Local dependence: {self.pairs.n_pairs:,} pairs, mean Q3 {self.pairs.mean:.3f}, Q3* {self.q3_star:.3f}; "
            f"first component {first:.2f} items>"
        )


def local_dependence(
    calibration: Calibration,
    responses: Responses,
    *,
    level: float = 0.05,
    min_people: int = MIN_PAIRED,
    top: int | None = None,
    n_components: int = 5,
    sample: int | None = None,
    seed: int = 0,
) -> LocalDependence:
    """Yen's Q3 of pairs of items, and principal components of residuals, at Warm's abilities.

    Parameters
    ----------
    calibration, responses
        The responses in the order of the calibration's items. Of more than 1,000 items those answered most often are
        looked at.
    level : float
        Of the column `dependent`.
    min_people : int
        Who must have answered both items of a pair.
    top : int, optional
        Pairs to list; all by default.
    n_components : int
    sample : int, optional
        People to take at random: for very large data. The work grows with the square of the answers of a person.
    seed : int
        Of the sample.

    References
    ----------
    Yen (1984), Appl. Psych. Meas. 8; Christensen, Makransky & Horton (2017), Appl. Psych. Meas. 41, 178-194.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> lsat = datasets.load_lsat()
    >>> local_dependence(SpectralRasch().fit(lsat).calibration_, lsat)
    <Local dependence: 10 pairs, mean Q3 -0.235, Q3* 0.096; first component 1.33 items>
    """
    _check(top, min_people, n_components, sample)
    answers = responses if sample is None else responses.sample(sample, generator(seed, 0))[0]
    beta = calibration.thresholds
    theta = abilities(answers, beta, "wle").ability
    if answers.n_items > ITEMS:
        items = np.sort(np.argsort(-answers.item_counts, kind="stable")[:ITEMS])
        beta, answers = beta[answers.thresholds.of_items(items)], answers.take_items(items)
    r, n = correlations(residual_matrices(answers, beta, theta, standardized=False), min_people=min_people)
    pairs = pairs_of(r, n, top)
    if not pairs.n_pairs:
        raise DesignError(
            f"{answers.source}: no two items have {min_people} people in common, so no residuals can be correlated. "
            "Lower min_people, or collect more answers."
        )
    standard = residual_matrices(answers, beta, theta, standardized=True)
    components = residual_components(*correlations(standard, min_people=min_people), n_components)
    star = pairs.largest - pairs.mean
    return LocalDependence(pairs, star, components, level, answers.items, answers.frame_kind)


def _check(top: int | None, min_people: int, n_components: int, sample: int | None) -> None:
    if top is not None and top < 1:
        raise OptionError(f"`top` is {top}; it is a number of pairs, at least 1.")
    if min_people < FEWEST:
        raise OptionError(f"`min_people` is {min_people}; a correlation of fewer than {FEWEST} people says nothing.")
    if n_components < 1:
        raise OptionError(f"`n_components` is {n_components}; it must be at least 1.")
    if sample is not None and sample < min_people:
        raise OptionError(f"`sample` is {sample}; it is a number of people, at least `min_people={min_people}`.")


# ---------------------------------------------------------------------------------------------- residuals


def residual_matrices(responses: Responses, thresholds: Floats, ability: Floats, *, standardized: bool) -> Prepared:
    """Residuals, people x items, one sparse matrix a block; a residual of zero is stored like any other."""
    beta = checked(responses, thresholds)
    return responses.entries.prepare(_residuals, beta, responses.thresholds, standardized, persons=(ability,))


def _residuals(block: Block, theta: Floats, beta: Floats, layout: Thresholds, standardized: bool) -> sparse.csr_array:
    if layout.binary:
        block = answers_with_difficulty(block, beta)
        p = np.clip(probabilities(block, beta, theta), CERTAIN, 1 - CERTAIN)
        values = block.right() - p
        if standardized:
            values /= np.sqrt(p * (1 - p))
        return csr(block.indptr.astype(np.int32), np.asarray(block.items), values, len(beta))
    runs = answers_at(block, theta, beta, layout, everybody=True)
    parts = [np.stack([one.person, one.item, one.x - one.mean, one.variance]) for one in runs]
    person, item, off, v = np.concatenate(parts, axis=1) if parts else np.zeros((4, 0))
    values = off / np.sqrt(np.maximum(v, LEAST)) if standardized else off
    ends = np.concatenate([[0], np.cumsum(np.bincount(person.astype(np.int64), minlength=block.n_persons))])
    return csr(ends.astype(np.int32), item.astype(np.int32), values, layout.n_items)


def correlations(matrices: Prepared, *, min_people: int) -> tuple[Floats, Ints]:
    """Correlations of the residuals of any two items, and the people who answered both.

    NaN with fewer than `min_people` people in common, or where a residual does not vary.
    """
    n, s, ss, st = matrices.sum(_pair_sums)
    t, tt = s.T, ss.T
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt((n * ss - s * s) * (n * tt - t * t))
        correlation = (n * st - s * t) / spread
    known = (n >= min_people) & (spread > 0)
    return np.where(known, np.clip(correlation, -1, 1), np.nan), n.astype(np.int64)


def _pair_sums(residuals: sparse.csr_array) -> Floats:
    """Sums over the people who answered both items: 1, r_i, r_i^2, r_i r_j."""
    persons, m = residuals.shape
    total = np.zeros((4, m, m))
    seen = csr(residuals.indptr, residuals.indices, np.ones(residuals.nnz), m)
    square = csr(residuals.indptr, residuals.indices, residuals.data**2, m)
    if residuals.nnz >= DENSE * persons * m:
        step = max(1, CELLS // m)
        for start in range(0, persons, step):
            d, r = (each[start : start + step].toarray() for each in (seen, residuals))
            _add_products(total, d, r, r * r)
    else:
        _add_products(total, seen, residuals, square)
    return total


def _add_products(total: Floats, d: Any, r: Any, rr: Any) -> None:
    for k, (left, right) in enumerate(((d, d), (r, d), (rr, d), (r, r))):
        product = left.T @ right
        total[k] += product.toarray() if sparse.issparse(product) else product


# ----------------------------------------------------------------------------------- pairs and components


def pairs_of(matrix: Floats, n: Ints, top: int | None = None) -> Pairs:
    """All pairs, or the strongest, of these correlations and numbers of people."""
    first, second = np.nonzero(np.triu(np.isfinite(matrix), 1))
    values, counts = matrix[first, second], n[first, second]
    mean = float(values.mean()) if len(values) else float("nan")
    z = (np.arctanh(np.clip(values, -CLOSE, CLOSE)) - np.arctanh(mean)) * np.sqrt(np.maximum(counts - 3, 1))
    best = np.argsort(-z, kind="stable")[:top]
    matrix = matrix.copy()
    np.fill_diagonal(matrix, 1.0)
    largest = float(values.max(initial=-np.inf))
    return Pairs(first[best], second[best], values[best], counts[best], z[best], mean, len(values), largest, matrix)


def residual_components(matrix: Floats, n: Ints, n_components: int = 5) -> Components:
    """The first principal components of these correlations, 0 for pairs that too few people answered."""
    m = len(matrix)
    known = np.flatnonzero(np.isfinite(np.diag(matrix)))
    k = min(n_components, len(known))
    variance = np.divide(1.0, n, out=np.zeros(n.shape), where=np.isfinite(matrix) & ~np.eye(m, dtype=bool))
    edge = variance.sum() / max(len(known), 1)
    r = np.where(np.isfinite(matrix), matrix, 0.0)[np.ix_(known, known)]
    np.fill_diagonal(r, 1.0)
    values, vectors = (each[..., ::-1][..., :k] for each in np.linalg.eigh(r))
    loadings = np.full((m, k), np.nan)
    loadings[known] = vectors * np.sqrt(np.maximum(values, 0))
    largest = loadings[known][np.abs(loadings[known]).argmax(axis=0), np.arange(k)] if k else np.zeros(0)
    return Components(values, loadings * np.where(largest < 0, -1.0, 1.0), float((1 + np.sqrt(edge)) ** 2))
