"""OrderedResponses: answers in more than two ordered categories, packed in the same blocks.

An answer x to an item with categories 0 to K has passed its first x thresholds and failed the next. It is an entry
among the ones of its person for the threshold that it passed last (if x > 0), and an entry among the zeros for the
next one (if x < K). A right or wrong answer (K = 1) is one entry, as in `Responses`. The items of the blocks are then
thresholds, item after item: "answers of a person" and "entries in the row" are two different counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_irt.engines.engine import Kernel, Prepared, gathered
from spectral_irt.errors import DuplicateResponseError, OptionError, ResponseValueError, listed, option
from spectral_irt.numerics import fixed
from spectral_irt.responses.block import Block, Floats, Ints
from spectral_irt.responses.labels import Labels
from spectral_irt.responses.pack import Duplicates, Repeats, pack
from spectral_irt.responses.responses import Responses, _positions


@dataclass(frozen=True, eq=False)
class Steps:
    """Which item each threshold belongs to.

    Attributes
    ----------
    counts : int array
        K_i: the thresholds of each item, which has the categories 0 to K_i.
    """

    counts: Ints

    @property
    def n_items(self) -> int:
        return len(self.counts)

    @cached_property
    def n_steps(self) -> int:
        return int(self.counts.sum())

    @cached_property
    def first(self) -> Ints:
        """The first threshold of each item."""
        return fixed(np.cumsum(self.counts) - self.counts)

    @cached_property
    def item(self) -> Ints:
        """The item of each threshold."""
        return fixed(np.repeat(np.arange(self.n_items), self.counts))

    @cached_property
    def level(self) -> Ints:
        """k = 1, ..., K_i of each threshold."""
        return fixed(np.arange(self.n_steps) - self.first[self.item] + 1)

    @cached_property
    def below(self) -> NDArray[np.bool_]:
        """Thresholds with another of the same item below them."""
        return fixed(self.level > 1)

    @property
    def binary(self) -> bool:
        return bool(np.all(self.counts == 1))

    @cached_property
    def widest(self) -> int:
        """The largest K_i."""
        return int(self.counts.max(initial=1))

    def mean(self, values: Floats) -> Floats:
        """The mean over the thresholds of each item."""
        return np.bincount(self.item, weights=values, minlength=self.n_items) / np.maximum(self.counts, 1)

    def averaging(self) -> Floats:
        """Weights of the thresholds in the mean of all items' locations."""
        return 1 / (self.n_items * self.counts[self.item])

    def table(self, values: Floats, fill: float) -> Floats:
        """Items x levels, filled where an item has fewer."""
        out = np.full((self.n_items, self.widest), fill)
        out[self.item, self.level - 1] = values
        return out

    def cumulated(self, thresholds: Floats) -> Floats:
        """Items x categories 0 to K: sums of the thresholds up to each category, +inf where an item has fewer."""
        total = np.cumsum(self.table(thresholds, np.inf), axis=1)
        return np.concatenate([np.zeros((self.n_items, 1)), total], axis=1)

    def of_items(self, items: Ints) -> Ints:
        """The thresholds of these items, in their order."""
        counts = self.counts[items]
        ends = np.cumsum(counts)
        return np.repeat(self.first[items] - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)


@dataclass(frozen=True, eq=False)
class OrderedResponses(Responses):
    """Who answered what, in which of the ordered categories 0, 1, ..., K_i of the item.

    Make one with `ordered_from_wide` or `ordered_from_long`; the estimators of ordered answers also take an array and
    do that themselves. Sums over people are asked of `thresholds`, the same blocks as right and wrong answers to
    thresholds: what knows of right and wrong only is refused, and cannot give wrong numbers.

    Attributes
    ----------
    n_thresholds : int array
        K_i of each item.
    codes : float array, items x categories, optional
        What stood in the data for each category, NaN where an item has fewer; the numbers of the categories by default.

    Examples
    --------
    >>> from spectral_irt.responses.ordered_arrays import ordered_from_wide
    >>> ordered_from_wide([[0, 1, None], [2, 0, 1], [1, 1, 0]])
    OrderedResponses(3 persons x 3 items, 8 responses in up to 3 categories)
    """

    n_thresholds: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    codes: Floats | None = None

    # -------------------------------------------------------------------------------------- sums

    @cached_property
    def steps(self) -> Steps:
        return Steps(np.asarray(self.n_thresholds, dtype=np.int64))

    @cached_property
    def thresholds(self) -> Responses:
        """The entries: whether each threshold was passed, for the thresholds next to the answer."""
        steps = self.steps
        names = [f"{self.items[i]} [{k}]" for i, k in zip(steps.item.tolist(), steps.level.tolist(), strict=True)]
        labels = np.empty(len(names), dtype=object)
        labels[:] = names
        kept = {"frame_kind": self.frame_kind, "source": self.source, "words": self.words, "engine": self.engine}
        return Responses(self.blocks, labels, self.users, **kept)  # type: ignore[arg-type]

    def _right_and_wrong_only(self) -> None:
        if self.steps.binary:  # where every item is right or wrong the blocks are those of `Responses`
            return
        widest = int(np.argmax(self.n_thresholds))
        raise ResponseValueError(
            f"{self.source}: answers have more than two categories (item {listed([self.items[widest]])} has "
            f"{self.steps.widest + 1}), and this is for right and wrong answers only. Fit a partial credit or rating "
            "scale model, or say what counts as right with ",
            option("threshold", ...),
            ".",
        )

    def sum(self, kernel: Kernel, *args: Any, persons: Sequence[NDArray[Any]] = ()) -> Any:
        self._right_and_wrong_only()
        return super().sum(kernel, *args, persons=persons)

    def map(self, kernel: Kernel, *args: Any, persons: Sequence[NDArray[Any]] = ()) -> Iterator[Any]:
        self._right_and_wrong_only()
        return super().map(kernel, *args, persons=persons)

    def prepare(self, kernel: Kernel, *args: Any, persons: Sequence[NDArray[Any]] = ()) -> Prepared:
        self._right_and_wrong_only()
        return super().prepare(kernel, *args, persons=persons)

    def transform(self, kernel: Kernel, *args: Any, **options: Any) -> Responses:
        self._right_and_wrong_only()
        return super().transform(kernel, *args, **options)

    # -------------------------------------------------------------------------------- what it is

    @cached_property
    def n_responses(self) -> int:
        return int(self.counts.sum())

    @cached_property
    def _of_people(self) -> tuple[Ints, Ints, Ints]:
        counts, scores, most = self.thresholds.gather(_counts_scores_most, self.steps)
        return fixed(counts), fixed(scores), fixed(most)

    @property
    def counts(self) -> Ints:
        """How many items each person answered."""
        return self._of_people[0]

    @property
    def scores(self) -> Ints:
        """The total score of each person: the sum of the categories."""
        return self._of_people[1]

    @property
    def most(self) -> Ints:
        """The highest total score that each person could have."""
        return self._of_people[2]

    @cached_property
    def category_counts(self) -> Floats:
        """Items x categories 0 to K: how many people gave each answer; NaN where an item has fewer categories."""
        passed, failed = self.thresholds.sum(_passed_failed, self.steps.n_steps)
        steps = self.steps
        table = np.concatenate([np.zeros((self.n_items, 1)), steps.table(passed.astype(float), np.nan)], axis=1)
        table[:, 0] = failed[steps.first]
        return table

    @cached_property
    def _per_item(self) -> tuple[Ints, Ints]:
        table = np.nan_to_num(self.category_counts)
        counts = table.sum(axis=1).astype(np.int64)
        scores = (table * np.arange(table.shape[1])).sum(axis=1).astype(np.int64)
        return fixed(counts), fixed(scores)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.n_users:,} persons x {self.n_items:,} items, "
            f"{self.n_responses:,} responses in up to {self.steps.widest + 1} categories)"
        )

    @cached_property
    def _digest(self) -> str:
        return self.thresholds.digest()

    # ------------------------------------------------------------------------------- parts of it

    def take_items(self, items: ArrayLike) -> OrderedResponses:
        chosen = _positions(items, self.n_items)
        if len(np.unique(chosen)) < len(chosen):
            raise OptionError("take_items was given the same item more than once; name each once.")
        rest = self.thresholds.take_items(self.steps.of_items(chosen))
        codes = None if self.codes is None else self.codes[chosen]
        n_thresholds = self.n_thresholds[chosen]
        return replace(self, blocks=rest.blocks, items=self.items[chosen], n_thresholds=n_thresholds, codes=codes)

    def category_codes(self) -> Floats:
        """`codes`, or the numbers of the categories."""
        if self.codes is not None:
            return self.codes
        number = np.arange(self.steps.widest + 1, dtype=float)
        return np.where(number <= self.steps.counts[:, None], number, np.nan)

    def in_one_block(self) -> OrderedResponses:
        return replace(self, blocks=self.thresholds.in_one_block().blocks)

    def findings(self) -> tuple[Any, ...]:
        return self.notes

    def answers(self) -> tuple[Ints, NDArray[np.int32], NDArray[Any]]:
        """Every answer: the position of the person, the code of the item, and its category."""
        return gathered(self.answers_by_block())

    def answers_by_block(self) -> Iterator[tuple[Ints, NDArray[np.int32], NDArray[Any]]]:
        return self.thresholds.map(_answers, self.steps, persons=(np.arange(self.n_users),))

    def to_dense(self) -> Floats:
        return self.thresholds.gather(_dense, self.steps)


# ---------------------------------------------------------------------------------------- kernels


def of_answers(block: Block, below: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """One entry for each answer: what it passed last, or the first threshold, which it failed."""
    return block.right() | ~below[block.items]


def _passed_failed(block: Block, n_steps: int) -> tuple[Ints, Ints]:
    right = block.right()
    return (
        np.bincount(block.items[right], minlength=n_steps),
        np.bincount(block.items[~right], minlength=n_steps),
    )


def answered_items(block: Block, steps: Steps) -> tuple[Ints, NDArray[np.int32], Ints]:
    """Where each person's answers begin, and the item and category of each answer."""
    one = of_answers(block, steps.below)
    code = block.items[one]
    indptr = np.concatenate([[0], np.cumsum(one)])[block.indptr]
    return indptr, steps.item[code].astype(np.int32), np.where(block.right()[one], steps.level[code], 0)


def _answers(block: Block, person: Ints, steps: Steps) -> tuple[Ints, NDArray[np.int32], Ints]:
    indptr, item, category = answered_items(block, steps)
    return np.repeat(person, np.diff(indptr)), item, category


def _dense(block: Block, steps: Steps) -> Floats:
    dense = np.full((block.n_users, steps.n_items), np.nan)
    indptr, item, category = answered_items(block, steps)
    dense[np.repeat(np.arange(block.n_users), np.diff(indptr)), item] = category
    return dense


@dataclass(frozen=True, eq=False)
class Rows:
    """What a person's weight depends on: the items answered, and the total score."""

    indptr: Ints
    items: NDArray[np.int32]
    counts: Ints
    scores: Ints
    most: Ints

    @property
    def n_users(self) -> int:
        return len(self.counts)

    @property
    def informative(self) -> NDArray[np.bool_]:
        """Neither the lowest nor the highest total score, on two items at least."""
        return (self.scores > 0) & (self.scores < self.most) & (self.counts > 1)

    def part(self, start: int, stop: int) -> Rows:
        """Consecutive people."""
        low, high = self.indptr[start], self.indptr[stop]
        mine = slice(start, stop)
        return Rows(
            self.indptr[start : stop + 1] - low,
            self.items[low:high],
            self.counts[mine],
            self.scores[mine],
            self.most[mine],
        )

    def take(self, people: Ints) -> Rows:
        """These people, in this order."""
        counts = self.counts[people]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        where = np.repeat(self.indptr[:-1][people] - indptr[:-1], counts) + np.arange(indptr[-1])
        return Rows(indptr, self.items[where], counts, self.scores[people], self.most[people])

    def sums(self, values: NDArray[np.generic]) -> Floats:
        """Sums over the answers of each person."""
        out = np.zeros(len(self.counts))
        some = np.flatnonzero(self.counts)
        if len(some):
            out[some] = np.add.reduceat(values, self.indptr[some])
        return out


def rows_of(block: Block, steps: Steps) -> Rows:
    """The rows of a block, made once."""
    found: Rows | None = block._cache.get(("rows", steps.n_steps))
    if found is None:
        indptr, items, category = answered_items(block, steps)
        before = np.concatenate([[0], np.cumsum(category)])
        size = np.concatenate([[0], np.cumsum(steps.counts[items])])
        made = Rows(indptr, items, np.diff(indptr), np.diff(before[indptr]), np.diff(size[indptr]))
        found = block.remember(("rows", steps.n_steps), made)
    return found


def _counts_scores_most(block: Block, steps: Steps) -> tuple[Ints, Ints, Ints]:
    rows = rows_of(block, steps)
    return rows.counts, rows.scores, rows.most


# ---------------------------------------------------------------------------------------- packing


def ordered_from_codes(
    user: NDArray[np.integer[Any]],
    item: NDArray[np.integer[Any]],
    category: NDArray[np.integer[Any]],
    n_thresholds: Ints,
    *,
    users: Labels,
    items: Labels,
    duplicates: Duplicates = "error",
    source: str = "the data",
    notes: Sequence[Any] = (),
    frame_kind: str | None = None,
    codes: Floats | None = None,
    words: tuple[str, str] = ("people", "items"),
) -> OrderedResponses:
    """Responses from integer codes; rows in any order, categories from 0 to the thresholds of their item."""
    user, item, category = in_order(user, item, category, duplicates, users, items, source)
    steps = Steps(np.asarray(n_thresholds, dtype=np.int64))
    slots, there = step_slots(item, category, steps)
    entries = np.bincount(user, weights=there.sum(axis=1), minlength=len(users)).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum(entries)])
    blocks = pack(indptr, slots[there].astype(np.int32), duplicates="error", repeats=Repeats())
    return OrderedResponses(
        blocks,
        items,
        users,
        frame_kind=frame_kind,
        source=source,
        notes=tuple(notes),
        words=words,
        n_thresholds=steps.counts,
        codes=codes,
    )


def step_slots(
    item: NDArray[np.integer[Any]], category: NDArray[np.integer[Any]], steps: Steps
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The two entries of each answer as `pack` takes them, the passed one first, and which of them there are."""
    last = steps.first[item] + category - 1  # the threshold passed last; the next one is failed
    passed, failed = category > 0, category < steps.counts[item]
    return np.stack([2 * last, 2 * (last + 1) + 1], axis=1), np.stack([passed, failed], axis=1)


def in_order(
    user: NDArray[Any],
    item: NDArray[Any],
    category: NDArray[Any],
    duplicates: Duplicates,
    users: Labels,
    items: Labels,
    source: str,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """By person, then item; repeated answers settled."""
    key = user.astype(np.int64) * max(len(items), 1) + item
    rising = np.diff(key)
    if np.all(rising > 0):
        return user, item, category
    order = np.argsort(key, kind="stable")
    again = np.concatenate([[False], np.diff(key[order]) == 0])
    if again.any() and duplicates == "error":
        pairs = np.unique(key[order][again])
        named = [f"({listed([users[k // len(items)]])}, {listed([items[k % len(items)]])})" for k in pairs[:5]]
        more = f" and {len(pairs) - 5:,} more" if len(pairs) > 5 else ""
        raise DuplicateResponseError(
            f"{source}: {len(pairs):,} (person, item) {'pair is' if len(pairs) == 1 else 'pairs are'} answered more "
            f"than once: {', '.join(named)}{more}. Say ",
            option("duplicates", "first", "last"),
            " to keep one answer of each.",
        )
    kept = order[~again] if duplicates == "first" else order[~np.concatenate([again[1:], [False]])]
    return user[kept], item[kept], category[kept]
