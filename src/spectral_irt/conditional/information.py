"""The information of the conditional likelihood, and what it says about the standard errors.

A person's information matrix is the covariance of the answers given the score. It is a graph Laplacian on the items
(its rows sum to zero), and comes in two forms:

- exact, from the pair probabilities of `contour`: dense, for standard errors;
- matched: off-diagonal -c_i c_j, with c such that the diagonal is the exact P_i (1 - P_i). It is a product, so that
  `H y = d y - C' (C y)` costs one light pass over the answers: this drives the Newton steps. Equal to the exact one
  where people answer two items, and close to it elsewhere: standard errors differ by less than 0.01% where people
  answer 30 items or more, and by 0.03% (median; at most 2%) where they answer three. So it also gives the standard
  errors of data too large for the exact one. It improves on n / (n - 1) (diag(v) - v v' / V), which is its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.conditional.contour import Contour, n_points
from spectral_irt.conditional.patterns import PatternPart, columns_of
from spectral_irt.data.block import Floats, Ints
from spectral_irt.engine import Prepared
from spectral_irt.numerics import conjugate_gradients, gram

DENSE_ITEMS = 5_000  # 200 MB for a matrix; beyond, standard errors come from random multipliers
EXACT_WORK = 5e7  # pairs of items, summed over patterns, up to which the exact form is used: a few seconds
MULTIPLIERS = 100  # random right-hand sides; the control variate leaves about 1% of noise where items mix well
CELLS = 300_000  # patterns x thresholds x points of the pairs at a time: some ten megabytes
SHORT = 24  # thresholds; below, the pairs of many patterns are added at once, above, pattern by pattern


# ------------------------------------------------------------------------------- the matched form


def links(p: Floats, counts: Ints) -> Floats:
    """c with c_i sum_{j != i} c_j = P_i (1 - P_i), column by column; five rounds settle it to a per cent or better."""
    return variance_links(p * (1 - p), counts)


def variance_links(variance: Floats, counts: Ints) -> Floats:
    """`links` of answers with these variances given the score."""
    inside = np.arange(len(variance))[:, None] < counts
    total = np.sqrt(variance.sum(axis=0) * counts / (counts - 1))
    c = np.broadcast_to(total / counts, variance.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(5):
            c = np.where(inside & (variance > 0), variance / (total - c), 0.0)
            total = np.sqrt((variance + c * c).sum(axis=0))
    return c


class Information:
    """The matched information of all people, as an operator.

    Parameters
    ----------
    pieces : list of csr matrices, patterns x items
        sqrt(weight) c of every pattern.
    """

    def __init__(self, pieces: Prepared, n_items: int) -> None:
        self.pieces = pieces
        self.n_items = n_items
        self.degree = pieces.sum(_degree)
        self.diagonal = self.degree - pieces.sum(_square)

    def __matmul__(self, y: Floats) -> Floats:
        degree = self.degree if y.ndim == 1 else self.degree[:, None]
        return degree * y - self.pieces.sum(_apply, y)

    def dense(self) -> Floats:
        """All of it; for up to a few thousand items."""
        return np.diag(self.degree) - self.pieces.sum(gram)

    def draw(self, noise: np.random.Generator, columns: int) -> Floats:
        """Columns of random numbers with this matrix as their covariance."""
        seeds = self.pieces.seeds(int(noise.integers(2**63)))
        return self.pieces.sum(_draw, columns, each=[seeds])


def _apply(piece: sparse.csr_array, y: Floats) -> Floats:
    return piece.T @ (piece @ y)


def _draw(piece: sparse.csr_array, seed: np.random.SeedSequence, columns: int) -> Floats:
    """y - c_i / C sum_j y_j with y_i = sqrt(C c_i) times a random sign, C = sum c: covariance diag(C c) - c c'."""
    noise = np.random.default_rng(seed)
    total = np.asarray(piece.sum(axis=1)).ravel()
    scale = np.sqrt(piece.data * np.repeat(total, np.diff(piece.indptr)))
    out = np.empty((piece.shape[1], columns))
    for column in range(columns):
        signs = noise.integers(0, 2, len(scale), dtype=np.int8)
        y = sparse.csr_array((np.where(signs, scale, -scale), piece.indices, piece.indptr), shape=piece.shape)
        shared = np.divide(y.sum(axis=1), total, out=np.zeros(len(total)), where=total > 0)
        out[:, column] = y.sum(axis=0) - piece.T @ shared
    return out


def _degree(piece: sparse.csr_array) -> Floats:
    return piece.T @ np.asarray(piece.sum(axis=1)).ravel()


def _square(piece: sparse.csr_array) -> Floats:
    return np.bincount(piece.indices, weights=piece.data**2, minlength=piece.shape[1]).astype(np.float64)


def solve(matrix: Information, b: Floats, *, tol: float) -> tuple[Floats, int]:
    """y with `matrix @ y = b` and mean zero, and the steps taken; one or many right-hand sides."""
    return conjugate_gradients(matrix.__matmul__, matrix.diagonal, b, tol=tol)


# --------------------------------------------------------------------------------- the exact form


def contours(part: PatternPart, cumulated: Floats) -> Iterator[tuple[slice, Contour]]:
    """Some patterns at a time, with the contour sums that pairs of items need."""
    width = cumulated.shape[1] - 1
    points = int(n_points(part.most * width / 4.0, width, part.scores, part.most)[1].max())
    size = max(1, CELLS // (part.items.shape[1] * points * width))
    for start in range(0, len(part.scores), size):
        some = slice(start, start + size)
        yield some, Contour.of(columns_of(part, cumulated, some), part.scores[some], part.most[some])


def exact_information(part: PatternPart, cumulated: Floats, codes: Ints, n_steps: int) -> Floats:
    """sum of Cov(1{X_i >= k}, 1{X_j >= k'} | s), thresholds x thresholds; `cumulated` is `padded`."""
    total = np.zeros((n_steps + 1, n_steps + 1))  # the last row and column take the padding
    items, width = part.items.shape[1], cumulated.shape[1] - 1
    level = np.arange(width)
    higher = np.maximum(level[:, None], level)
    own = np.arange(items)[:, None, None] * width
    block = (own + level[:, None] + 0 * level, own + level + 0 * level[:, None])  # thresholds of one item
    for some, sums in contours(part, cumulated):
        people = part.people[some, None, None]
        passed = sums.given.passed.transpose(2, 1, 0)
        within = (passed[:, :, higher] - passed[:, :, :, None] * passed[:, :, None, :]) * people[..., None]
        flat = passed.reshape(len(passed), items * width, 1)
        real, imaginary = (factor.reshape(len(passed), items * width, -1) for factor in sums.pair_factors())
        left = np.concatenate([real, imaginary, flat], axis=2)
        right = np.concatenate([real, -imaginary, -flat], axis=2) * people
        where = codes[part.items[some]].reshape(len(passed), -1)
        if part.one_set:
            pairs = np.tensordot(left, right, axes=([0, 2], [0, 2]))
            pairs[block] = within.sum(axis=0)
            total[np.ix_(where[0], where[0])] += pairs
        elif items * width < SHORT:
            pairs = left @ right.transpose(0, 2, 1)
            pairs[(slice(None), *block)] = within
            np.add.at(total.reshape(-1), where[:, :, None] * len(total) + where[:, None, :], pairs)
        else:
            for row, here in enumerate(where):
                pairs = left[row] @ right[row].T
                pairs[block] = within[row]
                total.reshape(-1)[(here[:, None] * len(total) + here).reshape(-1)] += pairs.reshape(-1)
    return total[:n_steps, :n_steps]


def exact_work(part: PatternPart) -> float:
    """Pairs of items that the exact information adds up."""
    return float(part.items.size * part.items.shape[1])


# ------------------------------------------------------------------------- variances of many items


def multiplier_variance(
    information: Information,
    *,
    diagonal: Floats,
    apply: Callable[[Floats], Floats],
    draw: Callable[[np.random.Generator, int], Floats],
    seed: int = 0,
) -> Floats:
    """Diagonal of H^+ M H^+ for the information H and a matrix M known by its diagonal, products and random draws.

    Random b with covariance M are solved for; what the diagonal of H alone would give for the same b is known exactly
    and corrects them (a control variate), so that little noise is left where items mix well.
    """
    m = information.n_items
    inverse = 1 / information.diagonal
    known = inverse**2 * diagonal
    cross = inverse * apply(inverse)  # row sums of D^-1 M D^-1
    known = known - 2 * cross / m + cross.sum() / m**2
    noise = np.random.default_rng(seed)
    surplus: Any = 0.0
    done, step = 0, max(1, min(MULTIPLIERS, 2_000_000 // m))
    while done < MULTIPLIERS:
        b = draw(noise, min(step, MULTIPLIERS - done))
        rough = inverse[:, None] * b
        rough -= rough.mean(axis=0)
        surplus = surplus + (solve(information, b, tol=1e-3)[0] ** 2 - rough**2).sum(axis=1)
        done += b.shape[1]
    return np.maximum(known + surplus / MULTIPLIERS, known / 10)
