"""Loops over the stored cells of a matrix: scipy's own, without its checks and copies, or its public ones.

The compiled loops belong to no public interface of scipy. Only this module calls them, and where a release has moved
them the public operations give the same numbers, in more time.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Places = NDArray[np.int32]
Cells = tuple[int, Places, Places]  # how many people, where their answers begin, their items

LOOPS = ("csr_matvec", "csc_matvec", "csr_scale_columns", "csr_scale_rows", "csr_todense", "coo_tocsr")


def _found() -> Any:
    """The compiled loops; None where this scipy has them no more, or matrices that cannot be made of bare arrays."""
    try:
        from scipy.sparse import _sparsetools
    except ImportError:
        return None
    whole = all(hasattr(_sparsetools, name) for name in LOOPS) and hasattr(_bare, "_shape")
    return _sparsetools if whole else None


_ones: dict[Any, Any] = {}  # values of every 0/1 pattern, shared by all blocks: the pattern is in the indices alone
_bare = sparse.csr_array((1, 1), dtype=np.float64)
_loops = _found()


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
        return sparse.csr_array((values, items, indptr), shape=(people, len(v))) @ v
    total = np.zeros(people, dtype=v.dtype)
    _loops.csr_matvec(people, len(v), indptr, items, values, v, total)
    return total


def add_columns(cells: Cells, values: Floats, w: Floats, total: Floats) -> None:
    """Add sum_l a_li w_l to the total of every item."""
    people, indptr, items = cells
    if _loops is None:
        total += sparse.csr_array((values, items, indptr), shape=(people, len(total))).T @ w
    else:
        _loops.csc_matvec(len(total), people, indptr, items, values, w, total)


def onto_items(matrix: sparse.csr_array, values: Floats) -> Floats:
    """matrix.T @ values, for people x items: on a small block, to make the transpose takes as long as the product."""
    if values.ndim > 1:
        return matrix.T @ values
    people, items = matrix.shape
    sums = np.zeros(items, dtype=np.result_type(matrix.data, values))
    add_columns((people, matrix.indptr, matrix.indices), matrix.data, values, sums)
    return sums


def fill_scaled(indptr: Places, items: Places, rows: Floats, columns: Floats, out: Floats) -> None:
    """Write rows[l] * columns[i] for every stored cell (l, i), in order."""
    if _loops is None:
        out[:] = columns[items] * np.repeat(rows, np.diff(indptr))
        return
    out.fill(1)
    cells = (len(rows), len(columns), indptr, items, out)
    _loops.csr_scale_columns(*cells, columns)
    _loops.csr_scale_rows(*cells, rows)


def fill_dense(indptr: Places, items: Places, values: NDArray[Any], out: NDArray[Any]) -> None:
    """Add the stored cells to a dense matrix."""
    if _loops is None:
        out += sparse.csr_array((values, items, indptr), shape=out.shape).toarray()
    else:
        _loops.csr_todense(*out.shape, indptr, items, values, out)


def counting_sort(key: Places, n_keys: int, whole: Places, other: NDArray[Any]) -> tuple[Places, Places, NDArray[Any]]:
    """Where each key begins, and two columns sorted by key, order of arrival kept: the loop by which scipy makes rows
    of a matrix from its cells."""
    if _loops is None:
        order = np.argsort(key, kind="stable")
        begins = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=n_keys))]).astype(np.int32)
        return begins, whole[order], other[order]
    begins = np.empty(n_keys + 1, dtype=np.int32)
    out, also = np.empty_like(whole), np.empty_like(other)
    _loops.coo_tocsr(n_keys, 1, len(key), key, whole, other, begins, out, also)
    return begins, out, also
