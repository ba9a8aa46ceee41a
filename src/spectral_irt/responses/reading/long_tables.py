"""Long tables -> Responses, in two passes and without ever holding the table.

The first pass finds the labels and how many answers each person gave; then every answer has a place in one array of
slots, and the second pass puts it there. Memory: four bytes a response, the labels, and one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.errors import ReadError
from spectral_irt.responses.block import Ints
from spectral_irt.responses.gatherer import coded_responses, raw_answers, refuse_blanks
from spectral_irt.responses.labels import Labels
from spectral_irt.responses.ordered_scoring import OrderedScoring
from spectral_irt.responses.pack import in_user_order
from spectral_irt.responses.raw_answers import OptionCoder
from spectral_irt.responses.reading.layout import Long
from spectral_irt.responses.reading.numbering import (
    Coder,
    TextCoder,
    WholeCoder,
    changed,
    check_names,
    is_whole,
    labels_of,
    plain_labels,
    settled,
)
from spectral_irt.responses.reading.request import Request
from spectral_irt.responses.reading.tabular import Table
from spectral_irt.responses.responses import Responses
from spectral_irt.responses.scorer import Means, means_from_sums
from spectral_irt.responses.survey import Place, Survey

SMALL_RANGE = 1 << 20  # integer labels in a range this small are counted in an array over the range


@dataclass(frozen=True)
class LongPiece:
    """Some rows of a long table: labels of people and items, raw values, and where they stand."""

    users: pl.Series
    items: pl.Series
    values: pl.Series
    place: Callable[[int], Place]
    name: str
    done: float  # the share of all rows read with this piece


@dataclass(frozen=True)
class LongTables:
    """Long tables, one after the other, as one."""

    tables: Sequence[Table]
    layouts: Sequence[Long]

    def _columns(self, role: str) -> list[tuple[Table, int]]:
        return [(table, getattr(layout, role)) for table, layout in zip(self.tables, self.layouts, strict=True)]

    def is_text(self, role: str) -> bool:
        """Whether the labels are text in some table; then they are in all."""
        return not all(is_whole(table.dtypes[k]) for table, k in self._columns(role))

    def is_loose(self, role: str) -> bool:
        """Whether labels handled as text become integers again when all are whole numbers."""
        return not self.is_text(role) or all(table.loose[k] for table, k in self._columns(role))

    def range_of(self, role: str) -> tuple[int | None, int | None, int]:
        """The smallest and largest integer label, and the number of rows."""
        low: int | None = None
        high: int | None = None
        n_rows = 0
        for table, k in self._columns(role):
            for frame, _ in table.pieces([k]):
                labels = frame.to_series(0)
                n_rows += len(labels)
                if labels.count():
                    least, most = int(labels.min()), int(labels.max())  # type: ignore[arg-type]
                    low = least if low is None else min(low, least)
                    high = most if high is None else max(high, most)
        return low, high, n_rows

    def pieces(self) -> Iterator[LongPiece]:
        """The rows in order of arrival, without those that are empty altogether."""
        text = {role: self.is_text(role) for role in ("user", "item")}
        for number, (table, layout) in enumerate(zip(self.tables, self.layouts, strict=True)):
            start = 0
            for frame, done in table.pieces([layout.user, layout.item, layout.response]):
                rows = table.rows_above + np.arange(start + 1, start + frame.height + 1)
                start += frame.height
                empty = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
                if empty.any():
                    rows, frame = rows[~empty.to_numpy()], frame.filter(~empty)
                yield _piece(table, layout, frame, rows, text, (number + done) / len(self.tables))


def _piece(
    table: Table, layout: Long, frame: pl.DataFrame, rows: Ints, text: dict[str, bool], done: float
) -> LongPiece:
    labels = {}
    for position, role in enumerate(("user", "item")):
        column = str(table.columns[getattr(layout, role)])
        where = f"{table.name}: column {column!r}"
        labels[role] = plain_labels(frame.to_series(position), text=text[role], name=where)
        if role == "user":
            check_names(labels[role], where, rows)
        if labels[role].null_count():
            row = rows[labels[role].is_null().arg_max()]
            raise ReadError(
                f"{table.name}: column {column!r}, row {row:,} is empty, so it is not known which {role} the response "
                "belongs to. Fill it in, or remove the row."
            )
    response = table.columns[layout.response]
    return LongPiece(
        labels["user"],
        labels["item"],
        frame.to_series(2),
        lambda k: Place(table.name, response, int(rows[k])),
        table.name,
        done,
    )


T = TypeVar("T")


def one_ahead(things: Iterable[T]) -> Iterator[T]:
    """The same things; while one is used, a thread makes the next. polars and numpy leave the other threads alone."""
    source, end = iter(things), object()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, source, end)
        while (thing := coming.result()) is not end:
            coming = thread.submit(next, source, end)
            yield thing  # type: ignore[misc]


@dataclass(frozen=True)
class Numbering:
    """Labels of one kind, in order, and the position of each among them."""

    coder: Coder
    labels: pl.Series
    position: NDArray[np.int32]  # by the coder's number; -1 where it is not in use
    in_use: NDArray[np.int64]  # the coder's numbers, by position

    @classmethod
    def of(cls, coder: Coder, seen: NDArray[np.bool_], *, loose: bool) -> Numbering:
        used = np.flatnonzero(seen)
        labels = coder.labels(used)
        order = settled(labels, loose=loose).arg_sort().to_numpy()  # numbers by size, text by its characters
        position = np.full(coder.size, -1, dtype=np.int32)
        position[used[order]] = np.arange(len(order))
        return cls(coder, labels.gather(order), position, used[order])

    def codes(self, labels: pl.Series, name: str) -> NDArray[np.int32]:
        raw = self.coder.codes(labels)
        codes = self.position[raw] if self.coder.size == len(self.position) else np.array([-1], dtype=np.int32)
        if np.any(codes < 0):
            raise changed(name)
        return codes


@dataclass(frozen=True)
class Census:
    """What the first pass found: labels in order, answers per person, and the people's means when they are needed."""

    users: Numbering
    items: Numbering
    counts: Ints
    means: Means | None


def long_responses(data: LongTables, request: Request) -> Responses:
    """Responses from long tables; people and items in sorted order."""
    refuse_blanks(request.scoring, "here there is a row for each answer")
    survey = Survey(request.scoring)
    census = _census(data, survey, request)
    survey.check(request.source, part=request.part)
    items = labels_of(census.items.labels, loose=data.is_loose("item"))
    survey.check_key(items)
    indptr = np.concatenate([[0], np.cumsum(census.counts)]).astype(np.int64)
    coder = None if request.scoring.key is None else OptionCoder()
    slots, options = _slots(data, census, indptr, request.scoring.keys_of(items.tolist()), coder, request, items)
    users = labels_of(census.users.labels, loose=data.is_loose("user"))
    if isinstance(request.scoring, OrderedScoring):
        person = np.repeat(np.arange(len(users)), np.diff(indptr))
        ordered = coded_responses(person, slots >> 1, users, items, request.duplicates, request.source)
        return replace(ordered, frame_kind=request.frame_kind)
    responses = Responses.from_slots(
        indptr,
        slots,
        options,
        users=users,
        items=items,
        duplicates=request.duplicates,
        frame_kind=request.frame_kind,
        source=request.source,
    )
    if not request.part:
        survey.check_scored(responses)
    if coder is None:
        return responses
    raw, notes = raw_answers(request.scoring, coder, items.tolist())
    return replace(responses, raw=raw, notes=notes)


def _census(data: LongTables, survey: Survey, request: Request) -> Census:
    rated, source = request.scoring.above_mean is not None, request.source
    users, items = _coder(data, "user", source), _coder(data, "item", source)
    user_seen, item_seen, counts = Sums(bool), Sums(bool), Sums(np.int64)
    sums, sizes = Sums(np.float64), Sums(np.float64)
    coded = ((piece, users.codes(piece.users), items.codes(piece.items)) for piece in data.pieces())
    for piece, user, item in one_ahead(coded):
        answers = survey.answers(piece.values, piece.place)
        n_users = users.size  # once: the thread may be adding people of the next piece
        user_seen.of_size(n_users)[user] = True
        item_seen.of_size(items.size)[item] = True
        user = answers.of(user)
        counts.of_size(n_users)[:] += np.bincount(user, minlength=n_users)
        if rated:
            ratings = np.asarray(answers.values)
            sums.of_size(n_users)[:] += np.bincount(user, ratings, n_users)
            sizes.of_size(n_users)[:] += np.bincount(user, np.abs(ratings), n_users)
        request.report(piece.done / 2)
    if not users.size:
        raise ReadError(f"{source} has a header but no rows; check that whatever wrote it had finished.")
    numbered = Numbering.of(users, user_seen.of_size(users.size), loose=data.is_loose("user"))
    use = numbered.in_use
    total = counts.of_size(users.size)[use]
    means = None
    if rated:
        means = means_from_sums(total, sums.of_size(users.size)[use], sizes.of_size(users.size)[use])
    things = Numbering.of(items, item_seen.of_size(items.size), loose=data.is_loose("item"))
    return Census(numbered, things, total, means)


class Sums:
    """An array of zeros that grows as new labels turn up."""

    def __init__(self, dtype: Any) -> None:
        self._array = np.zeros(0, dtype=dtype)

    def of_size(self, size: int) -> NDArray[Any]:
        if len(self._array) < size:
            # Doubling keeps the copying in proportion to the final size.
            grown = np.zeros(max(size, 2 * len(self._array)), dtype=self._array.dtype)
            grown[: len(self._array)] = self._array
            self._array = grown
        return self._array[:size]


def _coder(data: LongTables, role: str, source: str) -> Coder:
    """Integers in a small range number themselves; anything else is numbered by a dictionary."""
    if data.is_text(role):
        return TextCoder()
    low, high, n_rows = data.range_of(role)
    if low is None or high is None or high - low >= max(SMALL_RANGE, n_rows // 2):
        return TextCoder()
    return WholeCoder(low, high, source)


def _slots(
    data: LongTables,
    census: Census,
    indptr: Ints,
    keys: pl.Series | None,
    coder: OptionCoder | None,
    request: Request,
    items: Labels,
) -> tuple[NDArray[np.int32], NDArray[np.uint8] | None]:
    """Every answer as `2 * item + wrong` in the slots of its person, in order of arrival; likewise what was chosen."""
    scoring = request.scoring
    slots = np.empty(int(indptr[-1]), dtype=np.int32)
    options = None if coder is None else np.empty(len(slots), dtype=np.uint8)
    free = indptr[:-1].copy()  # the next free slot of every person
    coded = (
        (piece, census.users.codes(piece.users, piece.name), census.items.codes(piece.items, piece.name))
        for piece in data.pieces()
    )
    for piece, user, item in one_ahead(coded):
        answers = scoring.clean(piece.values)
        user, item = answers.of(user), answers.of(item)
        if isinstance(scoring, OrderedScoring):
            codes = scoring.codes(answers.values, item, items, request.source)
            if not _put([(slots, 2 * codes.astype(np.int32))], free, indptr, user):
                raise changed(piece.name)
            continue
        right = scoring.right(answers.values, items=item, users=user, keys=keys, means=census.means)
        pairs: list[tuple[NDArray[Any], NDArray[Any]]] = [(slots, 2 * item + ~right)]
        if coder is not None and options is not None:
            pairs.append((options, coder.codes(answers.values, right)))  # type: ignore[arg-type]
        if not _put(pairs, free, indptr, user):
            raise changed(piece.name)
        request.report((1 + piece.done) / 2)
    if not np.array_equal(free, indptr[1:]):
        raise changed("the data")
    return slots, options


def _put(pairs: Sequence[tuple[NDArray[Any], NDArray[Any]]], free: Ints, indptr: Ints, user: NDArray[np.int32]) -> bool:
    """Append each value to the slots of its person, keeping the order of arrival; False when there is no room.

    `pairs` are arrays of slots and values for them.
    """
    every = [values for _, values in pairs]
    if np.any(user[1:] < user[:-1]):
        user, *every = in_user_order(user, *every)
    starts = np.flatnonzero(np.diff(user, prepend=-1))
    counts = np.diff(starts, append=len(user))
    present = user[starts]
    if np.any(free[present] + counts > indptr[1:][present]):
        return False
    places = np.repeat(free[present] - starts, counts) + np.arange(len(user))
    for (slots, _), values in zip(pairs, every, strict=True):
        slots[places] = values
    free[present] += counts
    return True
