"""Numerical tools that know nothing of tests; and loops over the stored cells of a matrix.

These loops are scipy's own, without its checks and copies, or its public ones. The compiled ones belong to no public
interface of scipy: only this module calls them, and where a release has moved them the public operations give the same
numbers, in more time.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.errors import OptionError

Array = TypeVar("Array")

Floats = NDArray[np.float64]
Places = NDArray[np.int32]
Cells = tuple[int, Places, Places]  # how many people, where their answers begin, their items

LOOPS = ("csr_matvec", "csr_scale_columns", "csr_scale_rows", "csc_matvec", "csc_matvecs", "coo_tocsr")

WINDOW = 8  # differences that Anderson's acceleration looks back on
FILLED = 0.07  # share of cells from which a dense product in one thread is faster than a sparse one
SLICE = 500_000  # cells of a dense slice: 4 MB in each thread ...
SLICE_ROWS = 500  # ... but so many rows at least, so that the sums of slices cost little beside their products
FEW_CELLS = 2  # dense cells of a product for each stored one of the matrix: no more memory than that takes
SMALL_DESIGN = 1_000_000  # cells: 8 MB
EIGEN_ROWS = 1_000  # up to so many all eigenvectors of a matrix cost less than a second
LARGE = 500  # rows from which on the inverse of a positive definite matrix is worth a way of its own


def generator(*seed: Any) -> np.random.Generator:
    """Random numbers from a person's seed, or from several; what is no whole number, zero or more, is refused."""
    try:
        if len(seed) == 1:
            return np.random.default_rng(seed[0])
        return np.random.default_rng(list(seed))
    except (TypeError, ValueError):
        wrong = next((number for number in seed if not isinstance(number, int) or number < 0), seed[0])
        raise OptionError(f"`seed` is {wrong!r}; it must be a whole number, zero or more.") from None


@dataclass(eq=False)
class Anderson:
    """Anderson's acceleration of a fixed-point iteration x <- F(x): the next point from the last few points and images.

    With e = F(x) - x, the proposal is F(x) - sum_k gamma_k (dx_k + de_k), where gamma makes e - sum_k gamma_k de_k as
    small as it can be. The caller calls `forget` when the point is no good. With a `scale` distances are taken with
    each coordinate times this, and gamma comes from the few products of the differences, which is cheap for long
    vectors."""

    window: int = WINDOW
    scale: Floats | None = None
    steps: list[Floats] = field(default_factory=list)  # differences of successive points ...
    changes: list[Floats] = field(default_factory=list)  # ... and of their errors
    _last: tuple[Floats, Floats] | None = None

    def forget(self) -> None:
        self.steps = []
        self.changes = []
        self._last = None

    def next(self, x: Floats, image: Floats) -> Floats:
        error = image - x
        if self._last is not None:
            keep = 1 - self.window
            self.steps = [*self.steps[keep:], x - self._last[0]]
            self.changes = [*self.changes[keep:], error - self._last[1]]
        self._last = (x, error)
        if not self.changes:
            return image
        gamma: Any
        if self.scale is None:
            changes = np.stack(self.changes, axis=1)
            gamma = np.linalg.lstsq(changes, error, rcond=1e-10)[0]
            return image - (np.stack(self.steps, axis=1) + changes) @ gamma
        rows = np.stack(self.changes) * self.scale
        norms = np.sqrt(np.sum(rows**2, axis=1))
        rows /= norms[:, None]
        gamma = np.linalg.lstsq(inner(rows, rows), inner(rows, error * self.scale), rcond=1e-14)[0] / norms
        total = np.zeros_like(image)
        for g, step, change in zip(gamma, self.steps, self.changes, strict=True):
            total += g * (step + change)
        return image - total


def chosen_positions(chosen: Any, size: int, who: str) -> NDArray[np.int64]:
    """Positions from positions (negative ones count from the end) or a mask; numpy complains about what is neither."""
    array = np.asarray(chosen)
    if not array.size:
        array = array.astype(np.int64)
    positions = np.arange(size)[array]
    if np.any(positions[1:] <= positions[:-1]) and len(np.unique(positions)) < len(positions):
        raise OptionError(f"{who} was given the same one more than once; name each once.")
    return positions


def chosen_or_none(array: Array | None, chosen: Any) -> Array | None:
    """These entries of an array that there may be or not, such as weights, codes or options."""
    if array is None:
        return None
    entries: Array = cast(Any, array)[chosen]
    return entries


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers, for reading only: what is shared must not change."""
    view = array.view()
    view.setflags(write=False)
    return view


def safe_divide(
    numerator: NDArray[Any] | float, denominator: NDArray[Any], *, otherwise: float = 0.0, where_above: float = 0.0
) -> Floats:
    """The quotient where the denominator is above this, and `otherwise` elsewhere.

    >>> safe_divide(np.array([1.0, 2.0]), np.array([4.0, 0.0])).tolist()
    [0.25, 0.0]
    """
    quotient = np.full(np.broadcast_shapes(np.shape(numerator), np.shape(denominator)), otherwise)
    return np.divide(numerator, denominator, out=quotient, where=denominator > where_above)


def scramble(codes: NDArray[np.int32], salt: int) -> NDArray[np.uint64]:
    """A well-mixed 64-bit number for every item code (splitmix64)."""
    x = codes.astype(np.uint64) + np.uint64(salt << 40)
    x *= np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def inner(rows: Floats, others: Floats) -> Floats:
    """Inner products of a handful of long rows with others, or with one vector, by plain sums: the threads of a matrix
    library would take longer to wake."""
    return np.einsum("ij,...j->i...", rows, others)


def centered_inverse(matrix: Floats, parts: NDArray[np.int64] | None = None) -> Floats:
    """Pseudo-inverse of a matrix whose rows and columns add to zero: J^+ = (J + c 11^T / m)^-1 - 11^T / (c m).

    It is the covariance of mean-centered difficulties. With `parts`, rows and columns add to zero over each part, and
    so do those of the inverse; where the part is -1 they do not."""
    m = len(matrix)
    c = np.trace(matrix) / m or 1.0
    shift = np.array(1 / m)
    if parts is not None and parts.any():
        same = (parts[:, None] == parts) & (parts >= 0)
        shift = np.where(same, 1 / np.bincount(parts + 1)[parts + 1], 0.0)
    full: Any = matrix + c * shift
    by_cholesky = m > LARGE and np.array_equal(full, full.T)
    inverse = _by_cholesky(full) if by_cholesky else np.linalg.inv(full)
    return inverse - shift / c


def largest_eigenvectors(matrix: Floats, *, most: int) -> tuple[Floats, Floats]:
    """Up to so many of the largest eigenvalues of a symmetric matrix, and their vectors as columns."""
    if len(matrix) <= EIGEN_ROWS:
        values, vectors = np.linalg.eigh(matrix)
        return values[-most:], vectors[:, -most:]
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(0).standard_normal(len(matrix))  # the same result every time
    values, vectors = eigsh(matrix, k=most, which="LA", v0=start)
    return values, vectors


def _by_cholesky(matrix: Any) -> Any:
    """The inverse of a symmetric matrix; of a positive definite one in half the time."""
    inverse = positive_inverse(matrix, least=0.0)
    return np.linalg.inv(matrix) if inverse is None else inverse


def positive_inverse(matrix: Floats, least: float = 1e-12) -> Floats | None:
    """The inverse of a symmetric positive definite matrix, of which the lower half is read; None where it is none, or a
    pivot is below the share `least` of the largest."""
    from scipy.linalg import lapack  # slow to import: only a large matrix is worth it

    factor, failed = lapack.dpotrf(matrix, lower=1)
    pivots = np.diag(factor) ** 2
    if failed or not pivots.min(initial=np.inf) >= least * pivots.max(initial=0.0):
        return None
    lower: Floats = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
    upper = np.triu_indices(len(lower), 1)
    lower[upper] = lower.T[upper]
    return lower


def variances(b: sparse.csr_array, covariance: Floats) -> Floats:
    """Those of B v, the diagonal of B C B', for the covariance of v, or its variances if no two go together."""
    if covariance.ndim == 1:
        return b.multiply(b) @ covariance
    return np.asarray(b.multiply(b @ covariance).sum(axis=1)).ravel()


def gram(left: sparse.csr_array, right: sparse.csr_array | None = None, *, single: bool = False) -> Floats:
    """left^T right, or left^T left, as a dense array: by dense slices when many cells are filled, sparse otherwise. In
    `single` precision the dense products take half the time; they are added in double."""
    other = left if right is None else right
    rows, m = left.shape
    if left.nnz * other.nnz < (FILLED * rows * m) ** 2:
        return (left.T @ other).toarray()
    total = np.zeros((m, other.shape[1]))
    size = max(SLICE_ROWS, SLICE // m)
    precision = np.float32 if single else np.float64
    for start in range(0, rows, size):
        parts = []
        for matrix in (left,) if right is None else (left, right):
            bounds = matrix.indptr[start : start + size + 1]
            cells = slice(bounds[0], bounds[-1])  # by hand: scipy's own slices and changes of type would sort first
            values = matrix.data[cells].astype(precision, copy=False)
            parts.append(csr(bounds - bounds[0], matrix.indices[cells], values, matrix.shape[1]).toarray())
        total += parts[0].T @ parts[-1]
    return total


def gram_of(matrix: sparse.csr_array, design: sparse.csr_array | None, *, single: bool = False) -> Any:
    """The gram of the matrix, dense; or of the matrix times a design: sparse, but dense where the design is small."""
    if design is None:
        return gram(matrix, single=single)
    small = is_small(design)
    if small and matrix.shape[0] * design.shape[1] <= FEW_CELLS * matrix.nnz:
        product = matrix @ design.toarray()
        return product.T @ product
    product = sparse.csr_array(matrix @ design)
    product_gram = sparse.csr_array(product.T @ product)
    return product_gram.toarray() if small else product_gram


def is_small(design: sparse.csr_array) -> bool:
    """Whether products with a dense copy take less time than sparse ones, whose indices cost more than numbers."""
    return bool(design.shape[0] * design.shape[1] <= SMALL_DESIGN)


Operator = Callable[[Floats], Floats]


def conjugate_gradients(
    apply: Operator,
    diagonal: Floats | Operator,
    b: Floats,
    *,
    tol: float,
    most: int = 2000,
    centered: bool = True,
    start: Floats | None = None,
) -> tuple[Floats, int]:
    """x with H x = b, and the steps taken, for a symmetric H; one right-hand side, or the columns of many.

    `centered`: H maps constants to zero, and x has mean zero. Preconditioned by the diagonal, or by any rough inverse
    of H. Stops when the energy r' D^-1 r of the residual is tol^2 of that of b, or after `most` steps. `start`: where
    to begin, instead of at zero."""
    if callable(diagonal):
        condition = diagonal
    else:
        inverse = safe_divide(1.0, diagonal)
        inverse = inverse if b.ndim == 1 else inverse[:, None]

        def condition(r: Floats) -> Floats:
            return inverse * r

    x = np.zeros_like(b)
    r = b - b.mean(axis=0) if centered else b.copy()
    z = condition(r)
    energy = (r * z).sum(axis=0)
    goal = tol**2 * energy
    if start is not None:
        x = start
        r = r - apply(start)
        z = condition(r)
        energy = (r * z).sum(axis=0)
    direction = z
    steps = 0
    while steps < most and np.any(energy > goal):
        image = apply(direction)
        curved = (direction * image).sum(axis=0)
        length = np.divide(energy, curved, out=np.zeros_like(energy), where=curved != 0)
        x = x + length * direction
        r = r - length * image
        z = condition(r)
        last = energy
        energy = (r * z).sum(axis=0)
        direction = z + np.divide(energy, last, out=np.zeros_like(energy), where=last != 0) * direction
        steps += 1
    if centered:
        x = x - x.mean(axis=0)
    return x, steps


_ones: dict[Any, Any] = {}  # values of every 0/1 pattern, shared by all blocks: the pattern is in the indices alone
_bare = sparse.csr_array((1, 1), dtype=np.float64)
_loops: Any = getattr(sparse, "_sparsetools", None)
if not {*LOOPS} <= {*dir(_loops)} or not hasattr(_bare, "_shape"):
    _loops = None  # this scipy has them no more, or its matrices cannot be made of bare arrays


def shared_ones(size: int, dtype: Any = np.float64) -> Any:
    """So many ones, for reading only: the values of a 0/1 pattern."""
    ones = _ones.get(dtype)  # read once: another thread may put a shorter array there in the meantime
    if ones is None or len(ones) < size:
        ones = np.ones(size, dtype=dtype)
        ones.setflags(write=False)
        _ones[dtype] = ones
    return ones[:size]


def csr(indptr: Places, items: Places, values: Floats, n_items: int) -> sparse.csr_array:
    """A csr matrix of these very arrays: the public constructor would look through them, and may copy them."""
    shape = (len(indptr) - 1, n_items)
    if _loops is None:
        return sparse.csr_array((values, items, indptr), shape=shape)
    matrix = copy(_bare)
    matrix._shape = shape
    matrix.indptr, matrix.indices, matrix.data = indptr, items, values
    return matrix


def row_sums(cells: Cells, values: Floats, v: Floats) -> Floats:
    """sum_i a_li v_i of every person, a the values of the cells (l, i)."""
    people, indptr, items = cells
    if _loops is None:
        return csr(indptr, items, values, len(v)) @ v
    total = np.zeros(people, dtype=v.dtype)
    _loops.csr_matvec(people, len(v), indptr, items, values, v, total)
    return total


def add_columns(cells: Cells, values: Floats, w: Floats, total: Floats) -> None:
    """Add sum_l a_li w_l to the total of every item; or of the columns of w, which pays from eight on."""
    people, indptr, items = cells
    if _loops is None:
        total += sparse.csr_array((values, items, indptr), shape=(people, len(total))).T @ w
    elif w.ndim > 1:
        of_all = (len(total), people, w.shape[1])
        _loops.csc_matvecs(*of_all, indptr, items, values, w.reshape(-1), total.reshape(-1))
    else:
        _loops.csc_matvec(len(total), people, indptr, items, values, w, total)


def onto_items(matrix: sparse.csr_array, values: Floats) -> Floats:
    """matrix.T @ values, for people x items: on a small block, to make the transpose takes as long as the product."""
    people, items = matrix.shape
    sums = np.zeros((items, *values.shape[1:]), dtype=np.result_type(matrix.data, values))
    add_columns((people, matrix.indptr, matrix.indices), matrix.data, values, sums)
    return sums


def sums_by_item(items: Places, values: Floats, n: int) -> Floats:
    """The sum of the values of each item: `np.bincount`, without a copy of the items as wider numbers."""
    total = np.zeros(n)
    add_columns((1, np.array([0, len(items)], dtype=np.int32), items), values, np.ones(1), total)
    return total


def taken_rows(
    indptr: NDArray[np.int64], people: NDArray[np.int64], items: Places, other: NDArray[Any] | None
) -> tuple[NDArray[np.int64], Places, NDArray[Any] | None]:
    """Where the answers of these people begin when they stand one after the other, and two columns in that order."""
    cells = items if other is None else other
    matrix = csr(indptr.astype(np.int32), np.asarray(items), np.asarray(cells), 1)  # the number of columns is no matter
    rows = matrix[people]
    return rows.indptr.astype(np.int64), rows.indices, None if other is None else rows.data


def fill_scaled(indptr: Places, items: Places, rows: Floats, columns: Floats, out: Floats) -> None:
    """Write rows[l] * columns[i] for every stored cell (l, i), in order."""
    if _loops is None:
        out[:] = columns[items] * np.repeat(rows, np.diff(indptr))
        return
    out.fill(1)
    cells = (len(rows), len(columns), indptr, items, out)
    _loops.csr_scale_columns(*cells, columns)
    _loops.csr_scale_rows(*cells, rows)


def counting_sort(key: Places, n_keys: int, whole: Places, other: NDArray[Any]) -> tuple[Places, Places, NDArray[Any]]:
    """Where each key begins, and two columns sorted by key, order of arrival kept: the loop by which scipy makes rows
    of a matrix from its cells."""
    if _loops is None:
        order = np.argsort(key, kind="stable")
        begins = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=n_keys))]).astype(np.int32)
        return begins, whole[order], other[order]
    begins = np.empty(n_keys + 1, dtype=np.int32)
    sorted_whole = np.empty_like(whole)
    sorted_other = np.empty_like(other)
    _loops.coo_tocsr(n_keys, 1, len(key), key, whole, other, begins, sorted_whole, sorted_other)
    return begins, sorted_whole, sorted_other
