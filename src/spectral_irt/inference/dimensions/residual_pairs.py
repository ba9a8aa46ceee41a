"""Correlations of residuals between items: Yen's Q3, all pairs at once or the strongest of many.

The residual of an answer is r = x - P at the person's estimated ability, or (x - P) / sqrt(P (1 - P)) standardized. Q3
of two items is the correlation of their residuals over the people who answered both. Under the model it is not zero but
about -1 / (m - 1), because a person's ability was fitted to these very answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.engine import Prepared
from spectral_irt.persons.abilities import answers_with_difficulty
from spectral_irt.persons.residuals import CERTAIN, probabilities
from spectral_irt.sparse_kernels import csr

ALL_PAIRS = 1_000  # items up to which all pairs are kept: six matrices of 8 MB on the way
CELLS = 4_000_000  # of a dense piece on the way
DENSE = 0.1  # share of answered cells from which dense products are faster


def residual_matrices(responses: Responses, difficulty: Floats, ability: Floats, *, standardized: bool) -> Prepared:
    """Residuals, people x items, one matrix a block; a residual of zero is stored like any other."""
    return responses.prepare(_residuals, difficulty, standardized, persons=(ability,))


def _residuals(block: Block, theta: Floats, difficulty: Floats, standardized: bool) -> sparse.csr_array:
    block = answers_with_difficulty(block, difficulty)
    p = np.clip(probabilities(block, difficulty, theta), CERTAIN, 1 - CERTAIN)
    values = block.right() - p
    if standardized:
        values /= np.sqrt(p * (1 - p))
    return csr(block.indptr.astype(np.int32), np.asarray(block.items), values, len(difficulty))


def pair_correlations(matrices: Prepared, columns: slice, *, min_people: int) -> tuple[Floats, Ints]:
    """Correlation of each item's residuals with those of the items in `columns`, and the people who answered both.

    Items x columns; NaN with fewer than `min_people` people in common, or where a residual does not vary.
    """
    n, s, t, ss, tt, st = matrices.sum(_pair_sums, columns)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt((n * ss - s * s) * (n * tt - t * t))
        correlation = (n * st - s * t) / spread
    known = (n >= min_people) & (spread > 0)
    return np.where(known, np.clip(correlation, -1, 1), np.nan), n.astype(np.int64)


def _pair_sums(residuals: sparse.csr_array, columns: slice) -> Floats:
    """Sums over the people who answered both items: 1, r_i, r_j, r_i^2, r_j^2, r_i r_j."""
    persons, m = residuals.shape
    width = len(range(*columns.indices(m)))
    total = np.zeros((6, m, width))
    seen = csr(residuals.indptr, residuals.indices, np.ones(residuals.nnz), m)
    square = csr(residuals.indptr, residuals.indices, residuals.data**2, m)
    if residuals.nnz >= DENSE * persons * m:
        step = max(1, CELLS // m)
        for start in range(0, persons, step):
            d, r = (each[start : start + step].toarray() for each in (seen, residuals))
            _add_products(total, d, r, r * r, columns)
    else:
        _add_products(total, seen, residuals, square, columns)
    return total


def _add_products(total: Floats, d: Any, r: Any, rr: Any, columns: slice) -> None:
    e, b, bb = d[:, columns], r[:, columns], rr[:, columns]
    for k, (left, right) in enumerate(((d, e), (r, e), (d, b), (rr, e), (d, bb), (r, b))):
        product = left.T @ right
        total[k] += product.toarray() if sparse.issparse(product) else product


# ------------------------------------------------------------------------------------- pairs by name


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
    matrix : items x items or None
        All correlations, 1 on the diagonal; kept for up to 1,000 items.
    """

    first: Ints
    second: Ints
    correlation: Floats
    n: Ints
    z: Floats
    mean: float
    n_pairs: int
    largest: float
    matrix: Floats | None


def pairs_of(matrices: Prepared, m: int, *, min_people: int, top: int | None) -> Pairs:
    """All pairs of up to 1,000 items; of more, the `top` strongest."""
    if m <= ALL_PAIRS:
        matrix, n = pair_correlations(matrices, slice(0, m), min_people=min_people)
        first, second = np.nonzero(np.triu(np.isfinite(matrix), 1))
        values, counts = matrix[first, second], n[first, second]
        mean = float(values.mean()) if len(values) else float("nan")
        np.fill_diagonal(matrix, 1.0)
        found = first, second, values, counts
        return _sorted(found, mean, len(values), float(values.max(initial=-np.inf)), top, matrix)
    # The average comes from a first look at all pairs; those near the top are kept as it goes.
    keep = top if top is not None else m
    total, number, largest = 0.0, 0, -np.inf
    strongest: tuple[NDArray[Any], ...] = tuple(np.zeros(0, dtype) for dtype in (np.int64, np.int64, float, np.int64))
    for first, second, values, counts in _in_columns(matrices, m, min_people):
        total, number = total + float(values.sum()), number + len(values)
        largest = max(largest, float(values.max(initial=-np.inf)))
        both = tuple(np.concatenate(each) for each in zip(strongest, (first, second, values, counts), strict=True))
        # The centre moves all of z alike but for sqrt(n), so a generous number survives until it is known.
        best = np.argsort(-_above(both[2], both[3], total / max(number, 1)), kind="stable")[: 4 * keep]
        strongest = tuple(each[best] for each in both)
    return _sorted(strongest, total / max(number, 1), number, largest, keep, None)


def _in_columns(matrices: Prepared, m: int, min_people: int) -> Iterator[tuple[Ints, Ints, Floats, Ints]]:
    width = max(1, CELLS // m)
    by_column = matrices.prepare(sparse.csc_array)
    for start in range(0, m, width):
        columns = slice(start, min(start + width, m))
        # Pairs are wanted once: items up to the last of these columns, against these columns.
        parts = by_column.prepare(_first_columns, columns.stop)
        r, n = pair_correlations(parts, columns, min_people=min_people)
        first, second = np.nonzero(np.isfinite(r) & (np.arange(columns.stop)[:, None] < start + np.arange(r.shape[1])))
        yield first, second + start, r[first, second], n[first, second]


def _first_columns(matrix: sparse.csc_array, stop: int) -> sparse.csr_array:
    return sparse.csr_array(matrix[:, :stop])


def _above(correlation: Floats, n: Ints, mean: float) -> Floats:
    return (np.arctanh(np.clip(correlation, -CLOSE, CLOSE)) - np.arctanh(mean)) * np.sqrt(np.maximum(n - 3, 1))


CLOSE = 1 - 1e-12  # to 1, where atanh ends


def _sorted(
    found: tuple[NDArray[Any], ...], mean: float, n_pairs: int, largest: float, top: int | None, matrix: Floats | None
) -> Pairs:
    first, second, correlation, n = found
    z = _above(correlation, n, mean)
    best = np.argsort(-z, kind="stable")[:top]
    return Pairs(first[best], second[best], correlation[best], n[best], z[best], mean, n_pairs, largest, matrix)
