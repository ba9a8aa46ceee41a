"""Responses: who answered what, right or wrong, packed in blocks, with the labels of people and items."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_irt.engines.engine import Engine, Kernel, Prepared, gathered
from spectral_irt.engines.local import LocalEngine
from spectral_irt.errors import (
    DesignError,
    OptionError,
    check_option,
    option,
)
from spectral_irt.numerics import fixed
from spectral_irt.responses import kernels
from spectral_irt.responses.block import EMPTY, Block, Floats, Ints
from spectral_irt.responses.fingerprint import fingerprint_of
from spectral_irt.responses.labels import Labels as Labels
from spectral_irt.responses.pack import DUPLICATES, Duplicates, Repeats, Rows, in_pieces, pack, pack_rows
from spectral_irt.writing import write_each

if TYPE_CHECKING:
    from spectral_irt.responses.findings import Finding
    from spectral_irt.responses.raw_answers import RawAnswers
    from spectral_irt.responses.shared_sets import SharedSets


@dataclass(frozen=True, eq=False)
class Responses:
    """Who answered what, and whether it was right.

    Make one with `from_wide`, `from_long` or `read_responses`; every estimator also takes an array or dataframe and
    does that itself.

    Attributes
    ----------
    blocks : tuple of Block
        The answers of whole people, packed; kernels see these and integer codes only.
    items, users : array of labels
        Item code `i` is `items[i]`; people are numbered through the blocks in order.
    frame_kind : str or None
        The dataframe library that the data came in ("pandas", "polars", ...); tables go out in the same.
    source : str
        What the data are, for messages and `fit.json`.
    words : (str, str)
        What those who answered and what they answered are called in the file, in the plural.
    raw : RawAnswers, optional
        With an answer key, which options there are; and how many cells of a wide table were blank.
    engine : Engine
        How sums over people are done: threads of this process by default.
    notes : tuple of Finding
        What reading them has to say: which columns were taken for items, and which were left out.

    Examples
    --------
    >>> answers = Responses.from_wide([[1, 0, None], [1, 1, 0]])
    >>> answers
    Responses(2 persons x 3 items, 5 responses, 60.0% right)
    """

    blocks: tuple[Block, ...]
    items: Labels
    users: Labels
    frame_kind: str | None = None
    source: str = "the data"
    notes: tuple[Finding, ...] = ()
    words: tuple[str, str] = ("people", "items")
    raw: RawAnswers | None = None
    engine: Engine = field(default_factory=LocalEngine, repr=False)

    def __post_init__(self) -> None:
        if not self.blocks:  # so that a sum over nobody is made of zeros
            object.__setattr__(self, "blocks", (EMPTY,))

    # ------------------------------------------------- sums over people: what everything else asks for

    def sum(self, kernel: Kernel, *args: Any, persons: Sequence[NDArray[Any]] = ()) -> Any:
        """The sum over blocks of `kernel(block, *own, *args)`: an array, a number, or a tuple of them.

        `persons` are arrays with an entry for every person; each block gets its own part of them.
        """
        return self.engine.sum(kernel, self.blocks, *args, each=self._cut(persons))

    def map(self, kernel: Kernel, *args: Any, persons: Sequence[NDArray[Any]] = ()) -> Iterator[Any]:
        """`kernel(block, *own, *args)` of every block, in order."""
        return self.engine.map(kernel, self.blocks, *args, each=self._cut(persons))

    def gather(self, kernel: Kernel, *args: Any, persons: Sequence[NDArray[Any]] = ()) -> Any:
        """What the kernel gives for each block's people, as one array for all of them, or a tuple of arrays."""
        return gathered(self.map(kernel, *args, persons=persons))

    def prepare(self, kernel: Kernel, *args: Any, persons: Sequence[NDArray[Any]] = ()) -> Prepared:
        """What the kernel makes of every block, kept where the blocks are."""
        return self.engine.prepare(kernel, self.blocks, *args, each=self._cut(persons))

    def transform(
        self,
        kernel: Kernel,
        *args: Any,
        persons: Sequence[NDArray[Any]] = (),
        items: Labels | None = None,
        seed: np.random.SeedSequence | None = None,
    ) -> Responses:
        """Responses whose blocks are what the kernel makes of these, with the same people.

        With a `seed` the kernel gets one of its own for every block, after the values of its persons.
        """
        each: list[Sequence[Any]] = [*self._cut(persons), *([] if seed is None else [seed.spawn(len(self.blocks))])]
        blocks = self.engine.prepare(kernel, self.blocks, *args, each=each).parts
        return replace(self, blocks=blocks, items=self.items if items is None else items)

    def using(self, engine: Engine | None) -> Responses:
        """The same responses under another engine; None leaves them as they are."""
        if engine is None:
            return self
        if isinstance(engine, LocalEngine) and isinstance(self.engine, LocalEngine):
            return replace(self, engine=engine)
        return replace(self, blocks=engine.hold(self.engine.fetch(self.blocks)).parts, engine=engine)

    def _cut(self, persons: Sequence[NDArray[Any]]) -> list[list[NDArray[Any]]]:
        return [[values[a:b] for a, b in pairwise(self._ends)] for values in persons]

    @cached_property
    def _ends(self) -> list[int]:
        """Where each block's people begin, and the number of all."""
        sizes = [int(size) for size in self.engine.map(kernels.n_persons, self.blocks)]
        return np.concatenate([[0], np.cumsum(sizes)]).tolist()

    # ---------------------------------------------------------------- ways in

    @classmethod
    def from_wide(
        cls,
        table: Any,
        *,
        user: Any = None,
        items: Sequence[Any] | None = None,
        orient: str = "users",
        **scoring: Any,
    ) -> Responses:
        """Responses from a table with one row per person and one column per item.

        Parameters
        ----------
        table : 2-D array, dataframe, or scipy sparse matrix
            1 = right, 0 = wrong; NaN, None or masked = not answered. In a sparse matrix the stored zeros are wrong
            answers and what is not stored was not answered.
        user : str, optional
            The dataframe's column of people's labels. Without it people are numbered from 0.
        items : sequence, optional
            Item labels of an array; column numbers by default. For a dataframe: the columns to use.
        orient : "users" or "items"
            What a row is.
        missing, key, correct, threshold, above_mean, omitted, not_reached, not_presented : optional
            How values become right and wrong, as in `read_responses`; with `threshold=3` those above 3 are right.
        """
        from spectral_irt.responses import arrays
        from spectral_irt.responses.read import scoring_of

        check_option("orient", orient, ("users", "items"))
        how = scoring_of(**scoring)
        if arrays.is_frame(table):
            from spectral_irt.responses.read import responses_from_wide_frame

            return responses_from_wide_frame(table, how, user=user, items=items, orient=orient)
        if user is not None:
            raise OptionError(
                option("user", user), " names a column of a dataframe; this table is an array, without names."
            )
        return arrays.from_array(table, items, how, orient=orient)

    @classmethod
    def from_frame(cls, frame: Any, **options: Any) -> Responses:
        """Responses from a dataframe of any library, long or wide; the options are those of `responses_from_frame`."""
        from spectral_irt.responses.read import responses_from_frame

        return responses_from_frame(frame, **options)

    @classmethod
    def from_long(
        cls,
        users: ArrayLike,
        items: ArrayLike,
        responses: ArrayLike,
        *,
        duplicates: Duplicates = "error",
        **scoring: Any,
    ) -> Responses:
        """Responses from three columns of equal length: person, item, and 1 or 0 (or missing: not answered).

        People and items come out in sorted order. `duplicates` says what to do when a person answered an item twice:
        "error" counts and names the pairs, "first" and "last" keep one answer. Scoring is said as in `from_wide`.

        >>> Responses.from_long(["ann", "ann", "bob"], ["q1", "q2", "q1"], [1, 0, 0]).items.tolist()
        ['q1', 'q2']
        """
        from spectral_irt.responses import arrays
        from spectral_irt.responses.read import scoring_of

        check_option("duplicates", duplicates, DUPLICATES)
        return arrays.from_columns(users, items, responses, scoring_of(**scoring), duplicates=duplicates)

    @classmethod
    def from_codes(
        cls,
        user: NDArray[np.integer[Any]],
        item: NDArray[np.integer[Any]],
        right: NDArray[np.bool_],
        options: NDArray[np.uint8] | None = None,
        *,
        users: Labels,
        items: Labels,
        duplicates: Duplicates = "error",
        frame_kind: str | None = None,
        source: str = "the data",
    ) -> Responses:
        """Responses from integer codes that point into the label arrays, perhaps of options too; rows in any order."""
        slots = item.astype(np.int32) << 1
        slots |= ~right
        rows, repeats = Rows(user.astype(np.int32, copy=False), slots, options), Repeats()
        counts = np.bincount(user, minlength=len(users))
        blocks = tuple(pack_rows(in_pieces(rows), counts, duplicates=duplicates, repeats=repeats))
        if duplicates == "error":
            repeats.complain(users, items, source)
        return cls(blocks, items, users, frame_kind, source)

    @classmethod
    def from_slots(
        cls,
        indptr: Ints,
        slots: NDArray[np.int32],
        options: NDArray[np.uint8] | None = None,
        *,
        users: Labels,
        items: Labels,
        duplicates: Duplicates = "error",
        frame_kind: str | None = None,
        source: str = "the data",
    ) -> Responses:
        """Responses from slots `2 * item + wrong`, person after person, in arrival order."""
        repeats = Repeats()
        blocks = pack(indptr, slots, options, duplicates=duplicates, repeats=repeats)
        if duplicates == "error":
            repeats.complain(users, items, source)
        return cls(blocks, items, users, frame_kind, source)

    # ------------------------------------------------------------- what it is

    @property
    def n_users(self) -> int:
        return len(self.users)

    @property
    def n_items(self) -> int:
        return len(self.items)

    @cached_property
    def n_responses(self) -> int:
        return int(self.sum(kernels.n_responses))

    @cached_property
    def counts(self) -> Ints:
        """n_l: how many items each person answered."""
        return fixed(self.gather(kernels.counts))

    @cached_property
    def scores(self) -> Ints:
        """s_l: how many of them right."""
        return fixed(self.gather(kernels.scores))

    @cached_property
    def most(self) -> Ints:
        """The highest score that each person could have."""
        return self.counts

    @cached_property
    def mixed(self) -> NDArray[np.bool_]:
        """People whose score is neither the lowest nor the highest, on two items or more: who can tell items apart."""
        return fixed((self.scores > 0) & (self.scores < self.most) & (self.counts > 1))

    @cached_property
    def kinds_of_people(self) -> Ints:
        """How many have no answer, a single one, several and all right, several and all wrong, and a mixed score."""
        return fixed(self.sum(kernels.kinds_of_people))

    @cached_property
    def item_counts(self) -> Ints:
        """How many people answered each item."""
        return self._per_item[0]

    @cached_property
    def item_scores(self) -> Ints:
        """How many people answered each item right."""
        return self._per_item[1]

    @cached_property
    def shared(self) -> SharedSets | None:
        """What people on repeated sets of items told together, where most share theirs; see `shared_sets`."""
        from spectral_irt.responses.shared_sets import shared_sets

        return shared_sets(self)

    @cached_property
    def _per_item(self) -> tuple[Ints, Ints]:
        shared = self.shared
        left = self if shared is None else shared.rest
        none = np.zeros(self.n_items, dtype=np.int64)
        counts, scores = (none, none) if left is None else left.sum(kernels.item_counts, self.n_items)
        if shared is not None:
            counts = counts + shared.total(lambda one: one.people.sum()).astype(np.int64)
            scores = scores + shared.total(lambda one: one.right.sum(axis=0)).astype(np.int64)
        return fixed(counts), fixed(scores)

    def __repr__(self) -> str:
        share = 100 * self.item_scores.sum() / max(self.n_responses, 1)
        return (
            f"Responses({self.n_users:,} persons x {self.n_items:,} items, "
            f"{self.n_responses:,} responses, {share:.1f}% right)"
        )

    def digest(self) -> str:
        """A fingerprint of the answers and labels: the same data read again give the same digest.

        Blocks and file formats do not matter; the order of people and items does. So many answers on a cluster that
        their codes cannot travel have a digest of another kind, which only clusters give.
        """
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return fingerprint_of(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a packed file, which `open_responses` opens at once: answers, labels, notes, options.

        Complete or not at all: what was there before stays until then.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from spectral_irt import open_responses
        >>> file = pathlib.Path(tempfile.mkdtemp(), "answers.packed")
        >>> Responses.from_wide([[1, 0, None], [1, 1, 0]]).save(file)
        >>> open_responses(file)
        Responses(2 persons x 3 items, 5 responses, 60.0% right)
        """
        from spectral_irt.responses.packed import write_packed

        write_each({Path(path): functools.partial(write_packed, self)})

    # ------------------------------------------------------------ parts of it

    def take_users(self, users: ArrayLike) -> Responses:
        """The responses of some people only: positions or a mask. All items stay."""
        chosen = _positions(users, self.n_users)
        if len(chosen) and np.any(np.diff(chosen) <= 0):
            chosen = np.unique(chosen)
        ends = np.searchsorted(chosen, self._ends)
        own = [chosen[a:b] - start for a, b, start in zip(ends[:-1], ends[1:], self._ends[:-1], strict=True)]
        blocks = self.engine.prepare(Block.take, self.blocks, each=[own]).parts
        # Blocks that nobody is left of go; this process can see that only of blocks it holds.
        kept = tuple(block for block, persons in zip(blocks, own, strict=True) if len(persons))
        raw = None if self.raw is None else self.raw.of_some_people()
        return replace(self, blocks=kept, users=self.users[chosen], raw=raw)

    def take_items(self, items: ArrayLike) -> Responses:
        """The responses to some items only: positions or a mask. All people stay, perhaps with fewer answers."""
        chosen = _positions(items, self.n_items)
        if len(np.unique(chosen)) < len(chosen):
            raise OptionError("take_items was given the same item more than once; name each once.")
        new_code = np.full(self.n_items, -1, dtype=np.int32)
        new_code[chosen] = np.arange(len(chosen), dtype=np.int32)
        return self.transform(Block.keep_items, new_code, items=self.items[chosen])

    def in_one_block(self) -> Responses:
        """The same responses in a single block of this process: for few people with very many items."""
        sizes = np.concatenate([[0], np.cumsum(self.counts)])
        blocks = self.engine.fetch(self.blocks)
        items = np.concatenate([np.asarray(block.items) for block in blocks])
        kept = [block.options for block in blocks if block.options is not None]
        options = np.concatenate(kept) if len(kept) == len(blocks) else None
        return replace(self, blocks=(Block(sizes, sizes[:-1] + self.scores, items, options),))

    def largest_component(self) -> Responses:
        """The largest group of items with a common scale, and everybody's answers to them."""
        from spectral_irt.responses.design import components

        labels = components(self)
        sizes = np.bincount(labels[labels >= 0])
        if not len(sizes):
            raise DesignError(f"{self.source}: no item was answered by anyone; there is nothing to keep.")
        return self.take_items(labels == np.argmax(sizes))

    def findings(self) -> tuple[Finding, ...]:
        """What was taken for an item, and what is odd in the design of the data, in plain sentences."""
        from spectral_irt.responses.design import examine

        return self.notes + examine(self).findings

    def answers(self) -> tuple[Ints, NDArray[np.int32], NDArray[np.bool_]]:
        """Every answer: the position of the person, the code of the item, and whether it is right."""
        return gathered(self.answers_by_block())

    def answers_by_block(self) -> Iterator[tuple[Ints, NDArray[np.int32], NDArray[np.bool_]]]:
        """`answers`, a block at a time."""
        return self.map(kernels.answers, persons=(np.arange(self.n_users),))

    def to_dense(self) -> Floats:
        """People x items with NaN where there is no answer; for small data."""
        return self.gather(kernels.dense, self.n_items)


def _positions(chosen: ArrayLike, size: int) -> Ints:
    """Positions from positions (negative ones count from the end) or a mask; numpy complains about what is neither."""
    array = np.asarray(chosen)
    return np.arange(size)[array if array.size else array.astype(np.int64)]
