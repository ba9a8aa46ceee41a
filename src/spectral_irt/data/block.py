"""Block: the answers of whole people, packed.

The items that person `l` answered are `items[indptr[l]:indptr[l + 1]]`; those before `split[l]` were answered right
(1), the rest wrong (0). Four bytes a response, no value array: a wrong answer is never mistaken for a missing one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.engine.memory import budget
from spectral_irt.sparse_kernels import csr, shared_ones

if TYPE_CHECKING:
    from spectral_irt.data.responses import Responses

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Responses in a block: small enough that its temporary arrays stay in the cache of one core, large enough that the
# per-item sums it returns cost little beside it, and that a few blocks keep every thread busy.
BLOCK_RESPONSES = 500_000


@dataclass(frozen=True, eq=False)
class Block:
    """Whole people, packed: the ones of a person first, then the zeros, item codes increasing within each."""

    indptr: Ints  # people + 1
    split: Ints  # where the zeros of each person begin
    items: NDArray[np.int32]
    options: NDArray[np.uint8] | None = None  # with an answer key: what was chosen, a code into `Responses.raw.options`
    _cache: dict[tuple[str, int], Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_persons(self) -> int:
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
        bounds = np.empty(2 * self.n_persons + 1, dtype=np.int64)
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
        return kept

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

    def person_of_response(self) -> Ints:
        return np.repeat(np.arange(self.n_persons), self.counts)

    def right(self) -> NDArray[np.bool_]:
        """Whether each response is right, in the order of `items`."""
        halves = np.diff(self.bounds)
        return np.repeat(np.tile([True, False], self.n_persons), halves)

    def span(self, start: int, stop: int) -> Block:
        """The block of the people from `start` up to `stop`; their answers are not copied."""
        low, high = int(self.indptr[start]), int(self.indptr[stop])
        options = None if self.options is None else self.options[low:high]
        return Block(self.indptr[start : stop + 1] - low, self.split[start:stop] - low, self.items[low:high], options)

    def take(self, persons: Ints) -> Block:
        indptr, where = taken(self.indptr, persons)
        return Block(indptr, indptr[:-1] + self.scores[persons], self.items[where], self._options(where))

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


def taken(indptr: Ints, persons: Ints) -> tuple[Ints, Ints]:
    """Where the entries of these people begin when they stand one after the other, and where each entry was."""
    counts = np.diff(indptr)[persons]
    new = np.concatenate([[0], np.cumsum(counts)])
    return new, np.repeat(indptr[:-1][persons] - new[:-1], counts) + np.arange(new[-1])


EMPTY = Block(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))  # nobody


def n_persons(block: Block) -> int:
    return block.n_persons


def n_responses(block: Block) -> int:
    return block.n_responses


def item_counts(block: Block, n_items: int) -> tuple[Ints, Ints]:
    return np.bincount(block.items, minlength=n_items), np.bincount(block.items[block.right()], minlength=n_items)


def item_bytes(block: Block, whole: bool) -> bytes:
    codes = np.ascontiguousarray(block.items).tobytes()
    return codes if whole else hashlib.blake2b(codes, digest_size=16).digest()


FETCHED = 250_000_000  # answers on a cluster whose codes are fetched for a digest: a gigabyte


def fingerprint_of(responses: Responses) -> str:
    """Of labels, answers, counts and scores; see `Responses.digest`."""
    fingerprint = hashlib.blake2b(digest_size=16)
    for labels in (responses.items, responses.persons):
        fingerprint.update(f"{len(labels)} labels:".encode())
        if labels.dtype == object:  # each with its length, so that no label can imitate two others
            texts = (f"{len(text)}:{text}" for text in map(str, labels))
            fingerprint.update("".join(texts).encode("utf-8", "surrogatepass"))
        else:
            fingerprint.update(np.ascontiguousarray(labels).tobytes())
    for items in responses.map(item_bytes, not (responses.engine.remote and responses.n_responses > FETCHED)):
        fingerprint.update(items)
    fingerprint.update(responses.counts.tobytes())
    fingerprint.update(responses.scores.tobytes())
    return fingerprint.hexdigest()
