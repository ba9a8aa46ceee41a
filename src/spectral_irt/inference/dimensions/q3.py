"""Yen's Q3 and principal components of residuals: what analysts report of local dependence and a second dimension.

Q3 of two items is the correlation of their residuals x - E at the estimated abilities. Under the model it is about -1 /
(m - 1), so it is set against the average pair. Eigenvalues of the correlations of standardized residuals are in units
of items; pure noise has some up to about (1 + sqrt(m v))^2, v the mean variance of a correlation (Marchenko & Pastur
1967). These are descriptions with rules of thumb; `dimensionality` decides, by tests that keep their level."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.calibration import Calibration
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.engine import Prepared
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.results import EXCESS, MIN_PAIRED
from spectral_irt.numerics import csr, generator
from spectral_irt.persons.abilities import abilities, answers_with_difficulty, checked
from spectral_irt.persons.residuals import CERTAIN, LEAST, answers_at, probabilities
from spectral_irt.tables import Columns, Table, make_table

ITEMS = 1_000  # whose pairs are looked at: six matrices of 8 MB on the way; of more, those answered most often
CELLS = 4_000_000  # of a dense piece on the way
DENSE = 0.1  # share of answered cells from which dense products are faster
FEWEST = 10  # below, a correlation of 0.6 is chance
LEVEL = 0.05  # of the column `dependent`
COMPONENTS = 5  # that are reported
CLOSE = 1 - 1e-12  # to 1, where atanh ends


@dataclass(frozen=True, eq=False, repr=False)
class LocalDependence:
    """What `local_dependence` found.

    Attributes
    ----------
    items, matrix, n : labels, items x items, items x items
        Those looked at; Q3 of every pair, 1 on the diagonal, NaN where too few people answered both; how many did.
    mean, q3_star : float
        The average Q3 of all pairs, and the largest minus that.
    eigenvalues, component_loadings, noise : float array, items x components, float
        Of the first principal components of standardized residuals, falling, in units of items; the correlation of each
        item's residuals with the component (NaN without residuals), the largest positive; and about the largest
        eigenvalue of noise, rough for few items.
    """

    items: NDArray[Any]
    matrix: Floats
    n: Ints
    mean: float
    q3_star: float
    eigenvalues: Floats
    component_loadings: Floats
    noise: float
    frame_kind: str | None

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """Positions of the items of every pair, farthest above the average one first."""
        first, second = np.nonzero(np.triu(np.isfinite(self.matrix), 1))
        best = np.argsort(-self._z(first, second), kind="stable")
        return first[best], second[best]

    def _z(self, first: Ints, second: Ints) -> Floats:
        r = np.clip(self.matrix[first, second], -CLOSE, CLOSE)
        return (np.arctanh(r) - np.arctanh(self.mean)) * np.sqrt(np.maximum(self.n[first, second] - 3, 1))

    @property
    def columns(self) -> Columns:
        """The columns of `table()`."""
        first, second = self.pairs
        z, q3 = self._z(first, second), self.matrix[first, second]
        p = np.minimum(scipy.special.ndtr(-z) * len(z), 1.0)
        return {
            "item_1": self.items[first],
            "item_2": self.items[second],
            "n": self.n[first, second],
            "q3": q3,
            "excess": q3 - self.mean,
            "z": z,
            "p": p,
            "dependent": (p < LEVEL) & (q3 - self.mean > EXCESS),
        }

    def table(self) -> Table:
        """The pairs, strongest first: `item_1, item_2, n, q3, excess, z, p, dependent`.

        `excess` is Q3 above the average pair, `z` the same in standard errors, `p` one-sided and adjusted for all pairs
        (Bonferroni). A pair is `dependent` when p is below 5% and the excess above 0.2, the usual rule of thumb.
        """
        return make_table(self.columns, self.frame_kind)

    def loadings(self) -> Table:
        """The items' loadings on the components of their residuals: `item, component_1, component_2, ...`."""
        values = self.component_loadings
        columns = {"item": self.items} | {f"component_{k + 1}": values[:, k] for k in range(values.shape[1])}
        return make_table(columns, self.frame_kind)

    def __repr__(self) -> str:
        first = self.eigenvalues[0] if len(self.eigenvalues) else float("nan")
        return (
            f"<Local dependence: {len(self.pairs[0]):,} pairs, mean Q3 {self.mean:.3f}, Q3* {self.q3_star:.3f}; "
            f"first component {first:.2f} items>"
        )


def local_dependence(
    calibration: Calibration,
    responses: Responses,
    *,
    min_people: int = MIN_PAIRED,
    sample: int | None = None,
    seed: int = 0,
) -> LocalDependence:
    """Yen's Q3 of pairs of items that `min_people` answered, and principal components of residuals, at Warm's
    abilities; of more than 1,000 items, of those answered most often. `sample` takes so many people at random: the work
    grows with the square of the answers of a person.

    References
    ----------
    Yen (1984), Appl. Psych. Meas. 8; Christensen, Makransky & Horton (2017), Appl. Psych. Meas. 41, 178-194.
    """
    if min_people < FEWEST:
        raise OptionError(f"`min_people` is {min_people}; a correlation of fewer than {FEWEST} people says nothing.")
    if sample is not None and sample < min_people:
        raise OptionError(f"`sample` is {sample}; it is a number of people, at least `min_people={min_people}`.")
    answers = responses if sample is None else responses.sample(sample, generator(seed, 0))[0]
    beta = calibration.thresholds
    theta = abilities(answers, beta, "wle").ability
    if answers.n_items > ITEMS:
        items = np.sort(np.argsort(-answers.item_counts, kind="stable")[:ITEMS])
        beta, answers = beta[answers.thresholds.of_items(items)], answers.take_items(items)
    r, n = correlations(residual_matrices(answers, beta, theta, standardized=False), min_people=min_people)
    values = r[np.triu(np.isfinite(r), 1)]
    if not len(values):
        raise DesignError(
            f"{answers.source}: no two items have {min_people} people in common, so no residuals can be correlated. "
            "Lower min_people, or collect more answers."
        )
    np.fill_diagonal(r, 1.0)
    mean = float(values.mean())
    standard = residual_matrices(answers, beta, theta, standardized=True)
    components = residual_components(*correlations(standard, min_people=min_people))
    return LocalDependence(answers.items, r, n, mean, float(values.max()) - mean, *components, answers.frame_kind)


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
    parts: Any = [(seen, residuals, square)]
    if residuals.nnz >= DENSE * persons * m:
        step = max(1, CELLS // m)
        parts = ([each[k : k + step].toarray() for each in (seen, residuals, square)] for k in range(0, persons, step))
    for d, r, rr in parts:
        for k, (left, right) in enumerate(((d, d), (r, d), (rr, d), (r, r))):
            product = left.T @ right
            total[k] += product.toarray() if sparse.issparse(product) else product
    return total


def residual_components(matrix: Floats, n: Ints) -> tuple[Floats, Floats, float]:
    """Eigenvalues and loadings of the first principal components of these correlations, 0 for pairs that too few people
    answered; and the largest eigenvalue of noise."""
    m = len(matrix)
    known = np.flatnonzero(np.isfinite(np.diag(matrix)))
    k = min(COMPONENTS, len(known))
    variance = np.divide(1.0, n, out=np.zeros(n.shape), where=np.isfinite(matrix) & ~np.eye(m, dtype=bool))
    edge = variance.sum() / max(len(known), 1)
    r = np.where(np.isfinite(matrix), matrix, 0.0)[np.ix_(known, known)]
    np.fill_diagonal(r, 1.0)
    values, vectors = (each[..., ::-1][..., :k] for each in np.linalg.eigh(r))
    loadings = np.full((m, k), np.nan)
    loadings[known] = vectors * np.sqrt(np.maximum(values, 0))
    largest = loadings[known][np.abs(loadings[known]).argmax(axis=0), np.arange(k)] if k else np.zeros(0)
    return values, loadings * np.where(largest < 0, -1.0, 1.0), float((1 + np.sqrt(edge)) ** 2)
