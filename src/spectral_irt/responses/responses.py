"""Responses: who answered what, right or wrong, packed in blocks, with the labels of users and items."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_irt.errors import (
    DesignError,
    DuplicateResponseError,
    OptionError,
    ReadError,
    SpectralIrtError,
    check_option,
    listed,
)
from spectral_irt.responses.block import Block, Floats, Ints
from spectral_irt.responses.pack import DUPLICATES, Duplicates, Repeats, pack

if TYPE_CHECKING:
    from spectral_irt.responses.findings import Finding

Labels = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Responses:
    """Who answered what, and whether it was right.

    Make one with `from_wide`, `from_long` or `read_responses`; every estimator also takes an array or dataframe and
    does that itself.

    Attributes
    ----------
    blocks : tuple of Block
        The answers of whole users, packed; kernels see these and integer codes only.
    items, users : array of labels
        Item code `i` is `items[i]`; users are numbered through the blocks in order.
    frame_kind : str or None
        The dataframe library that the data came in ("pandas", "polars", ...); tables go out in the same.
    source : str
        What the data are, for messages and `fit.json`.
    notes : tuple of Finding
        What reading them has to say: which columns were taken for items, and which were left out.

    Examples
    --------
    >>> answers = Responses.from_wide([[1, 0, None], [1, 1, 0]])
    >>> answers
    Responses(2 users x 3 items, 5 responses, 60.0 % right)
    """

    blocks: tuple[Block, ...]
    items: Labels
    users: Labels
    frame_kind: str | None = None
    source: str = "the data"
    notes: tuple[Finding, ...] = ()

    # ---------------------------------------------------------------- ways in

    @classmethod
    def from_wide(
        cls,
        table: Any,
        *,
        user: str | None = None,
        items: Sequence[Any] | None = None,
        threshold: float | None = None,
        orient: str = "users",
    ) -> Responses:
        """Responses from a table with one row a user and one column an item.

        Parameters
        ----------
        table : 2-D array, dataframe, or scipy sparse matrix
            1 = right, 0 = wrong; NaN, None or masked = not answered. In a sparse matrix the stored zeros are wrong
            answers and what is not stored was not answered.
        user : str, optional
            The dataframe's column of user labels. Without it users are numbered from 0.
        items : sequence, optional
            Item labels of an array; column numbers by default. For a dataframe: the columns to use.
        threshold : float, optional
            Values above it are right, the others wrong, instead of 1 and 0.
        orient : "users" or "items"
            What a row is. "items" transposes first.
        """
        from spectral_irt.responses import wide

        return wide.from_wide(cls, table, user=user, items=items, threshold=threshold, orient=orient)

    @classmethod
    def from_long(
        cls,
        users: ArrayLike,
        items: ArrayLike,
        responses: ArrayLike,
        *,
        duplicates: Duplicates = "error",
        threshold: float | None = None,
    ) -> Responses:
        """Responses from three columns of equal length: user, item, and 1 or 0 (or missing: not answered).

        Users and items come out in sorted order. `duplicates` says what to do when a user answered an item twice:
        "error" counts and names the pairs, "first" and "last" keep one answer.

        >>> Responses.from_long(["ann", "ann", "bob"], ["q1", "q2", "q1"], [1, 0, 0]).items.tolist()
        ['q1', 'q2']
        """
        from spectral_irt.responses import wide

        check_option("duplicates", duplicates, DUPLICATES)
        return wide.from_long(cls, users, items, responses, duplicates=duplicates, threshold=threshold)

    @classmethod
    def from_codes(
        cls,
        user: NDArray[np.integer[Any]],
        item: NDArray[np.integer[Any]],
        right: NDArray[np.bool_],
        *,
        users: Labels,
        items: Labels,
        duplicates: Duplicates = "error",
        frame_kind: str | None = None,
        source: str = "the data",
    ) -> Responses:
        """Responses from integer codes that point into the label arrays; rows in any order."""
        indptr = np.concatenate([[0], np.cumsum(np.bincount(user, minlength=len(users)))])
        slots = (2 * np.asarray(item, dtype=np.int64) + ~right).astype(np.int32)
        if len(user) and np.any(user[1:] < user[:-1]):
            slots = slots[np.argsort(user, kind="stable")]
        return cls.from_slots(
            indptr.astype(np.int64),
            slots,
            users=users,
            items=items,
            duplicates=duplicates,
            frame_kind=frame_kind,
            source=source,
        )

    @classmethod
    def from_slots(
        cls,
        indptr: Ints,
        slots: NDArray[np.int32],
        *,
        users: Labels,
        items: Labels,
        duplicates: Duplicates = "error",
        frame_kind: str | None = None,
        source: str = "the data",
    ) -> Responses:
        """Responses from slots `2 * item + wrong`, user after user, in arrival order; `slots` is used up."""
        repeats = Repeats()
        blocks = pack(indptr, slots, duplicates=duplicates, repeats=repeats)
        if repeats.extra and duplicates == "error":
            first = [f"({listed([users[u]])}, {listed([items[i]])})" for u, i in repeats.first or []]
            more = f" and {repeats.pairs - len(first):,} more" if repeats.pairs > len(first) else ""
            raise DuplicateResponseError(
                f"{source}: {repeats.pairs:,} (user, item) {'pair is' if repeats.pairs == 1 else 'pairs are'} "
                f"answered more than once: {', '.join(first)}{more}. "
                "Say duplicates='first' or 'last' to keep one answer of each."
            )
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
        return sum(block.n_responses for block in self.blocks)

    @cached_property
    def counts(self) -> Ints:
        """n_l: how many items each user answered."""
        return fixed(np.concatenate([block.counts for block in self.blocks] or [np.zeros(0, dtype=np.int64)]))

    @cached_property
    def scores(self) -> Ints:
        """s_l: how many of them right."""
        return fixed(np.concatenate([block.scores for block in self.blocks] or [np.zeros(0, dtype=np.int64)]))

    @cached_property
    def item_counts(self) -> Ints:
        """How many users answered each item."""
        return self._per_item(lambda block: block.items)

    @cached_property
    def item_scores(self) -> Ints:
        """How many users answered each item right."""
        return self._per_item(lambda block: block.items[block.right()])

    def _per_item(self, pick: Any) -> Ints:
        total = np.zeros(self.n_items, dtype=np.int64)
        for block in self.blocks:
            total += np.bincount(pick(block), minlength=self.n_items)
        return fixed(total)

    def __repr__(self) -> str:
        share = 100 * self.item_scores.sum() / max(self.n_responses, 1)
        return (
            f"Responses({self.n_users:,} users x {self.n_items:,} items, "
            f"{self.n_responses:,} responses, {share:.1f} % right)"
        )

    def digest(self) -> str:
        """A fingerprint of the answers and labels: the same data read again give the same digest.

        Blocks and file formats do not matter; the order of users and items does.
        """
        fingerprint = hashlib.blake2b(digest_size=16)
        for labels in (self.items, self.users):
            fingerprint.update(f"{len(labels)} labels:".encode())
            if labels.dtype == object:  # each with its length, so that no label can imitate two others
                texts = (f"{len(text)}:{text}" for text in map(str, labels))
                fingerprint.update("".join(texts).encode("utf-8", "surrogatepass"))
            else:
                fingerprint.update(np.ascontiguousarray(labels).tobytes())
        for block in self.blocks:
            fingerprint.update(np.ascontiguousarray(block.items).tobytes())
        fingerprint.update(self.counts.tobytes())
        fingerprint.update(self.scores.tobytes())
        return fingerprint.hexdigest()

    # ------------------------------------------------------------ parts of it

    def take_users(self, users: ArrayLike) -> Responses:
        """The responses of some users only: positions or a mask. All items stay."""
        chosen = _positions(users, self.n_users)
        starts = np.cumsum([0] + [block.n_users for block in self.blocks])
        if len(chosen) and np.any(np.diff(chosen) <= 0):
            chosen = np.unique(chosen)
        blocks = []
        for block, start in zip(self.blocks, starts, strict=False):
            low, high = np.searchsorted(chosen, [start, start + block.n_users])
            if high > low:
                blocks.append(block.take(chosen[low:high] - start))
        return self._with(tuple(blocks), users=self.users[chosen])

    def take_items(self, items: ArrayLike) -> Responses:
        """The responses to some items only: positions or a mask. All users stay, perhaps with fewer answers."""
        chosen = _positions(items, self.n_items)
        if len(np.unique(chosen)) < len(chosen):
            raise OptionError("take_items was given the same item more than once; name each once.")
        new_code = np.full(self.n_items, -1, dtype=np.int32)
        new_code[chosen] = np.arange(len(chosen), dtype=np.int32)
        blocks = tuple(block.keep_items(new_code) for block in self.blocks)
        return self._with(blocks, items=self.items[chosen])

    def _with(
        self, blocks: tuple[Block, ...], *, items: Labels | None = None, users: Labels | None = None
    ) -> Responses:
        return Responses(
            blocks,
            self.items if items is None else items,
            self.users if users is None else users,
            self.frame_kind,
            self.source,
            self.notes,
        )

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

    def to_dense(self) -> Floats:
        """Users x items with NaN where there is no answer; for small data."""
        dense = np.full((self.n_users, self.n_items), np.nan)
        start = 0
        for block in self.blocks:
            dense[start + block.user_of_response(), block.items] = block.right()
            start += block.n_users
        return dense


def fixed(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers, for reading only: what is shared must not change."""
    view = array.view()
    view.setflags(write=False)
    return view


def _positions(chosen: ArrayLike, size: int) -> Ints:
    """Positions from positions (negative ones count from the end) or a mask; numpy complains about what is neither."""
    array = np.asarray(chosen)
    return np.arange(size)[array if array.size else array.astype(np.int64)]


def as_responses(data: Any, *, threshold: float | None = None) -> Responses:
    """What an estimator's `fit` makes of its argument: Responses as they are, a dataframe as `responses_from_frame`
    reads it, long or wide, and anything else as a wide table."""
    if isinstance(data, Responses):
        return data
    from spectral_irt.responses.wide import is_frame

    if is_frame(data):
        from spectral_irt.responses.read import responses_from_frame

        try:
            return responses_from_frame(data, threshold=threshold)
        except SpectralIrtError as error:
            if "=" not in str(error):
                raise
            raise type(error)(
                f"{error} Such options go to spectral_irt.responses_from_frame, and what it returns to fit."
            ) from None
    if isinstance(data, str | bytes):
        raise ReadError(
            f"fit takes responses, an array or a dataframe, not the text {data!r}; "
            "read a file with spectral_irt.read_responses(path) first."
        )
    return Responses.from_wide(data, threshold=threshold)
