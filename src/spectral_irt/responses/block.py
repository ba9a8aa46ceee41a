"""Block: the answers of whole people, packed.

The items that person `l` answered are `items[indptr[l]:indptr[l + 1]]`; those before `split[l]` were answered right
(1), the rest wrong (0). Four bytes a response, no value array: a wrong answer is never mistaken for a missing one.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import _sparsetools

from spectral_irt.engines.memory import budget

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Responses in a block: small enough that its temporary arrays stay in the cache of one core, large enough that the
# per-item sums it returns cost little beside it, and that a few blocks keep every thread busy.
BLOCK_RESPONSES = 500_000

_ones = np.ones(0)  # values of every 0/1 pattern, shared by all blocks: the pattern is in the indices alone


def shared_ones(size: int) -> Floats:
    """So many ones, for reading only: the values of a 0/1 pattern."""
    global _ones
    ones = _ones  # read once: another thread may put a shorter array there in the meantime
    if len(ones) < size:
        ones = np.ones(size)
        ones.setflags(write=False)
        _ones = ones
    return ones[:size]


_bare = sparse.csr_array((1, 1), dtype=np.float64)


def csr(indptr: NDArray[np.int32], items: NDArray[np.int32], values: Floats, n_items: int) -> sparse.csr_array:
    """A csr matrix of these very arrays: the public constructor would look through them, and may copy them."""
    matrix = copy(_bare)
    matrix._shape = (len(indptr) - 1, n_items)
    matrix.indptr, matrix.indices, matrix.data = indptr, items, values
    return matrix


Cells = tuple[int, NDArray[np.int32], NDArray[np.int32]]  # how many people, where their answers begin, their items


def row_sums(cells: Cells, values: Floats, v: Floats) -> Floats:
    """sum_i a_li v_i of every person, a the values of the cells (l, i)."""
    people, indptr, items = cells
    total = np.zeros(people)
    _sparsetools.csr_matvec(people, len(v), indptr, items, values, v, total)
    return total


def add_columns(cells: Cells, values: Floats, w: Floats, total: Floats) -> None:
    """Add sum_l a_li w_l to the total of every item."""
    people, indptr, items = cells
    _sparsetools.csc_matvec(len(total), people, indptr, items, values, w, total)


def onto_items(matrix: sparse.csr_array, values: Floats) -> Floats:
    """matrix.T @ values, for people x items: on a small block, to make the transpose takes as long as the product."""
    if values.ndim > 1:
        return matrix.T @ values
    people, items = matrix.shape
    sums = np.zeros(items, dtype=np.result_type(matrix.data, values))
    add_columns((people, matrix.indptr, matrix.indices), matrix.data, values, sums)
    return sums


def fill_scaled(
    indptr: NDArray[np.int32], items: NDArray[np.int32], rows: Floats, columns: Floats, out: Floats
) -> None:
    """Write rows[l] * columns[i] for every stored cell (l, i), in order, by the loops that scipy itself uses."""
    out.fill(1)
    cells = (len(rows), len(columns), indptr, items, out)
    _sparsetools.csr_scale_columns(*cells, columns)
    _sparsetools.csr_scale_rows(*cells, rows)


@dataclass(frozen=True, eq=False)
class Block:
    """Whole people, packed: ones first, then zeros.

    Parameters
    ----------
    indptr : int64 array, people + 1
    split : int64 array, people
        Where the zeros of each person begin.
    items : int32 array, responses
        Item codes; increasing within the ones and within the zeros of a person.
    options : uint8 array, responses, optional
        With an answer key: what was chosen, as a code into `Responses.raw.options`; one more byte a response.
    """

    indptr: Ints
    split: Ints
    items: NDArray[np.int32]
    options: NDArray[np.uint8] | None = None
    _cache: dict[tuple[str, int], Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_users(self) -> int:
        return len(self.split)

    @property
    def n_responses(self) -> int:
        return len(self.items)

    @property
    def counts(self) -> Ints:
        """n_l: how many items each person answered."""
        return np.diff(self.indptr)

    @property
    def scores(self) -> Ints:
        """s_l: how many of them right."""
        return self.split - self.indptr[:-1]

    @property
    def informative(self) -> NDArray[np.bool_]:
        """People with both a right and a wrong answer; the others carry no information about difficulty."""
        scores = self.scores
        return (scores > 0) & (scores < self.counts)

    @property
    def bounds(self) -> Ints:
        """Row limits of the matrix with two rows per person: row 2l the right answers, row 2l + 1 the wrong ones."""
        bounds = np.empty(2 * self.n_users + 1, dtype=np.int64)
        bounds[0:-1:2] = self.indptr[:-1]
        bounds[1::2] = self.split
        bounds[-1] = self.indptr[-1]
        return bounds

    def pattern(self, n_items: int) -> sparse.csr_array:
        """The 0/1 matrix with two rows per person (right, wrong) and a column per item; the items are not copied."""
        found = self._cache.get(("pattern", n_items))
        if found is None:
            found = self.remember(("pattern", n_items), self.matrix(shared_ones(self.n_responses), n_items))
        return found

    def remember(self, key: tuple[str, int], made: Any) -> Any:
        """What was made of this block, for the next who asks: in memory while the budget has room, else on disk."""
        self._cache[key] = kept = budget().keep(made)
        budget().remembers(self)
        return kept

    def forget(self) -> None:
        """Let go of what was made of this block."""
        self._cache.clear()

    def matrix(self, values: Floats, n_items: int) -> sparse.csr_array:
        """`pattern` with a value for every response instead of one."""
        return csr(self.bounds.astype(np.int32), np.asarray(self.items), values, n_items)

    def halves(self, n_items: int) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Two 0/1 matrices, people x items: right answers, and wrong answers. Made once, four bytes a response."""
        found: tuple[sparse.csr_array, sparse.csr_array] | None = self._cache.get(("halves", n_items))
        if found is None:
            right = self.right()
            made = (
                self._half(self.scores, self.items[right], n_items),
                self._half(self.counts - self.scores, self.items[~right], n_items),
            )
            found = self.remember(("halves", n_items), made)  # both at once: another thread may look in between
        return found

    def _half(self, sizes: Ints, items: NDArray[np.int32], n_items: int) -> sparse.csr_array:
        indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        return csr(indptr, items, shared_ones(len(items)), n_items)

    def user_of_response(self) -> Ints:
        """The person (row in this block) of every response."""
        return np.repeat(np.arange(self.n_users), self.counts)

    def right(self) -> NDArray[np.bool_]:
        """Whether each response is right, in the order of `items`."""
        halves = np.diff(self.bounds)
        return np.repeat(np.tile([True, False], self.n_users), halves)

    def span(self, start: int, stop: int) -> Block:
        """The block of the people from `start` up to `stop`; their answers are not copied."""
        low, high = int(self.indptr[start]), int(self.indptr[stop])
        options = None if self.options is None else self.options[low:high]
        return Block(self.indptr[start : stop + 1] - low, self.split[start:stop] - low, self.items[low:high], options)

    def take(self, users: Ints) -> Block:
        """The block of these people, in this order."""
        starts, counts = self.indptr[:-1][users], self.counts[users]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        where = np.repeat(starts - indptr[:-1], counts) + np.arange(indptr[-1])
        return Block(indptr, indptr[:-1] + self.scores[users], self.items[where], self._options(where))

    def keep_items(self, new_code: NDArray[np.int32]) -> Block:
        """The block with item `i` renamed `new_code[i]`, and dropped where that is negative."""
        codes = new_code[self.items]
        kept = codes >= 0
        before = np.concatenate([[0], np.cumsum(kept)])
        return Block(before[self.indptr], before[self.split], codes[kept], self._options(kept))

    def _options(self, chosen: NDArray[Any]) -> NDArray[np.uint8] | None:
        return None if self.options is None else self.options[chosen]

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_cache": {}}

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


EMPTY = Block(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))  # nobody
