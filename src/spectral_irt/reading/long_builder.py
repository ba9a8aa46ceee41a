"""Long tables -> Responses, in one pass over the table and without ever holding it.

Every row becomes a few numbers: the codes of its person and item, as they came up, and the category of the answer.
When all rows were seen the labels are put in order, the codes follow, and the rows are dealt out to blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.data.block import Ints
from spectral_irt.data.builder import packed, raw_answers, refuse_blanks
from spectral_irt.data.categories import Settled, Used, settle
from spectral_irt.data.choices import OptionCoder
from spectral_irt.data.labels import Labels
from spectral_irt.data.packing import Pile, Rows, slots_of
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import Keys, Means, Scoring, means_from_sums
from spectral_irt.data.value_check import Place, ValueCheck
from spectral_irt.errors import ReadError, listed
from spectral_irt.reading import ReadOptions
from spectral_irt.reading.columns import Long
from spectral_irt.reading.frame import Table
from spectral_irt.reading.label_codes import (
    LabelCodes,
    check_names,
    is_whole,
    labels_of,
    plain_labels,
    settled,
    unnamed,
)


class OrderColumn:
    """Reads a column, piece by piece, as numbers that order its rows; all pieces hold the same kind of thing."""

    def __init__(self) -> None:
        self._kind: str | None = None

    def read(self, column: pl.Series, where: str, rows: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
        found, kind = self._numbers(column)
        absent = found.is_null()
        if absent.any():
            k = int(absent.arg_max())  # type: ignore[arg-type]
            value = column[k]
            empty = value is None or value == ""
            holds = "is empty" if empty else f"holds {listed([value])}, which is neither a number nor a time"
            raise ReadError(
                f"{where}, row {rows[k]:,} {holds}, so it is not known when the answer was given. Fill it in, or write "
                "times as in 2024-05-17 10:30:00."
            )
        if self._kind not in (None, kind):
            raise ReadError(f"{where} holds {kind} where it held {self._kind} before; write all of them alike.")
        self._kind = kind if len(column) else self._kind
        return found.to_numpy()

    def _numbers(self, column: pl.Series) -> tuple[pl.Series, str]:
        dtype = column.dtype
        if dtype.is_integer():
            return column.cast(pl.Int64, strict=False), "numbers"
        if dtype.is_numeric() or dtype == pl.Boolean:
            return column.cast(pl.Float64).fill_nan(None), "numbers"
        if dtype == pl.Date:
            return column.cast(pl.Datetime("us")).to_physical(), "times"
        if isinstance(dtype, pl.Datetime):
            return column.dt.cast_time_unit("us").to_physical(), "times"
        if dtype in (pl.Time, pl.Duration):
            return column.to_physical(), "times"
        text = column.cast(pl.String, strict=False).str.strip_chars()
        numbers = text.cast(pl.Float64, strict=False)
        if self._kind != "times" and (self._kind == "numbers" or numbers.count() or not text.count()):
            return numbers.fill_nan(None), "numbers"
        return _times(text), "times"


def _times(text: pl.Series) -> pl.Series:
    """ISO dates and times, with or without a zone, as microseconds."""
    plain = text.str.replace(r"^(\S+) ", "${1}T")
    frame = pl.DataFrame({"text": plain})
    zoned = pl.col("text").str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%#z", strict=False, time_unit="us")
    ways = [zoned.dt.replace_time_zone(None)]
    ways += [
        pl.col("text").str.to_datetime(form, strict=False, time_unit="us")
        for form in ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M")
    ]
    ways.append(pl.col("text").str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us")))
    return frame.select(pl.coalesce(ways)).to_series().to_physical()


@dataclass(frozen=True)
class LongPiece:
    """Some rows of a long table: codes of people and items, raw values, and where they stand."""

    persons: NDArray[np.int32]
    items: NDArray[np.int32]
    values: pl.Series
    place: Callable[[int], Place]
    done: float  # the share of all rows read with this piece
    when: NDArray[Any] | None = None  # what orders the rows


@dataclass(frozen=True)
class LongTables:
    """Long tables, one after the other, as one; what labels they have is known when all pieces were read."""

    tables: Sequence[tuple[Table, Long]]
    persons: LabelCodes = field(default_factory=LabelCodes)
    items: LabelCodes = field(default_factory=LabelCodes)

    def _columns(self, role: str) -> list[tuple[Table, int]]:
        return [(table, getattr(layout, role)) for table, layout in self.tables]

    def is_text(self, role: str) -> bool:
        """Whether the labels are text in some table; then they are in all."""
        return not all(is_whole(table.dtypes[k]) for table, k in self._columns(role))

    def is_loose(self, role: str) -> bool:
        """Whether labels handled as text become integers again when all are whole numbers."""
        return not self.is_text(role) or all(table.is_loose(k) for table, k in self._columns(role))

    def pieces(self) -> Iterator[LongPiece]:
        """The rows in order of arrival, without those that are empty altogether."""
        text = {role: self.is_text(role) for role in ("person", "item")}
        order = OrderColumn()
        for number, (table, layout) in enumerate(self.tables):
            start = table.rows_above + 1
            columns = [layout.person, layout.item, layout.response]
            for frame, done in table.pieces(columns if layout.order is None else [*columns, layout.order]):
                rows: Sequence[int] | NDArray[Any] = range(start, start + frame.height)
                start += frame.height
                if all(frame.to_series(k).null_count() for k in range(3)):
                    empty = frame.select(pl.all_horizontal(pl.nth(0, 1, 2).is_null())).to_series()
                    rows, frame = np.asarray(rows)[~empty.to_numpy()], frame.filter(~empty)
                piece = self._piece(table, layout, frame, rows, text, (number + done) / len(self.tables))
                if layout.order is not None:
                    where = f"{table.name}: column {str(table.columns[layout.order])!r}"
                    piece = replace(piece, when=order.read(frame.to_series(3), where, rows))
                yield piece

    def _piece(
        self,
        table: Table,
        layout: Long,
        frame: pl.DataFrame,
        rows: Sequence[int] | NDArray[Any],
        text: dict[str, bool],
        done: float,
    ) -> LongPiece:
        codes = {}
        for position, (role, coder) in enumerate((("person", self.persons), ("item", self.items))):
            column = str(table.columns[getattr(layout, role)])
            where = f"{table.name}: column {column!r}"
            labels = plain_labels(frame.to_series(position), text=text[role], name=where)
            if labels.null_count():
                if role == "person":
                    check_names(labels, where, rows)
                row = rows[labels.is_null().arg_max()]  # type: ignore[index]
                raise ReadError(
                    f"{table.name}: column {column!r}, row {row:,} is empty, so it is not known which {role} the "
                    "response belongs to. Fill it in, or remove the row."
                )
            codes[role], new = coder.codes(labels)
            if role == "person" and unnamed(new).any():
                check_names(labels, where, rows)
        response = table.columns[layout.response]

        def place(k: int) -> Place:
            return Place(table.name, response, int(rows[k]))

        return LongPiece(codes["person"], codes["item"], frame.to_series(2), place, done)

    def numbering(self, role: str) -> tuple[Labels, NDArray[np.int32]]:
        """The labels in order, numbers by size and text by its characters; and the position of each by its code."""
        labels, loose = (self.persons if role == "person" else self.items).labels(), self.is_loose(role)
        order = settled(labels, loose=loose).arg_sort().to_numpy()
        position = np.empty(len(order), dtype=np.int32)
        position[order] = np.arange(len(order), dtype=np.int32)
        return labels_of(labels.gather(order), loose=loose), position


T = TypeVar("T")


def one_ahead(things: Iterable[T]) -> Iterator[T]:
    """The same things; while one is used, a thread makes the next. polars and numpy leave the other threads alone."""
    source, end = iter(things), object()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, source, end)
        while (thing := coming.result()) is not end:
            coming = thread.submit(next, source, end)
            yield thing  # type: ignore[misc]


DEALT = 1 << 23  # rows that are dealt out to blocks at a time when they come from a file: parts as long as a disk likes
READ = 0.8  # the share of the work that is reading; the rest is packing


def long_responses(data: LongTables, options: ReadOptions) -> Responses:
    """Responses from long tables; people and items in sorted order."""
    refuse_blanks(options.scoring, "here there is a row for each answer")
    check = ValueCheck(options.scoring)
    scorer = LongScorer(options.scoring, data)
    pile = Pile()
    for piece in one_ahead(data.pieces()):
        pile.add(*scorer.coded(piece, check))
        options.report(READ * piece.done)
    if not data.persons.size:
        raise ReadError(f"{options.source} has a header but no rows; check that whatever wrote it had finished.")
    check.check(options.source)
    items, item_at = data.numbering("item")
    check.check_key(items)
    persons, person_at = data.numbering("person")
    settled = settle(scorer.used.of_items(item_at), items, options.scoring, options.source) if scorer.used else None
    responses = packed(
        _in_final_codes(pile, person_at, item_at, options.scoring, scorer.used, settled),
        _counts(pile, person_at),
        persons,
        items,
        options.scoring,
        options.duplicates,
        options.source,
        settled,
        lambda share: options.report(READ + (1 - READ) * share),
    )
    check.check_scored(responses)
    raw, notes = (None, ()) if scorer.options is None else raw_answers(options.scoring, scorer.options, items.tolist())
    return replace(responses, frame_kind=options.frame_kind, raw=raw, notes=(*responses.notes, *notes))


class CodedRows(NamedTuple):
    """Answers in the order of their arrival, under the codes by which labels came up.

    The code of an answer is its slot; or the item alone where the value decides later, when all ratings are known.
    """

    person: NDArray[np.int32]
    code: NDArray[np.int32]
    options: NDArray[np.uint8] | None
    values: NDArray[np.float64] | None
    when: NDArray[Any] | None


class LongScorer:
    """Turns pieces into codes."""

    def __init__(self, scoring: Scoring, data: LongTables) -> None:
        self.scoring = scoring
        self.options = None if scoring.key is None else OptionCoder()
        self.used = Used(scoring.bits) if scoring.graded else None
        self._keys = _Keys(scoring, data.items, data.is_loose("item"))

    def coded(self, piece: LongPiece, check: ValueCheck) -> CodedRows:
        answers = check.answers(piece.values, piece.place)
        person, item = answers.of(piece.persons), answers.of(piece.items)
        when = None if piece.when is None else answers.of(piece.when)
        if self.scoring.above_mean is not None:
            return CodedRows(person, item, None, np.asarray(answers.values, dtype=np.float64), when)
        keys, options = self._keys.by_code(), None
        category = self.scoring.category(answers.values, items=item, persons=person, keys=keys)
        if keys is not None and self.options is not None:
            options = self.options.codes(answers.values, category == keys.best[item])  # type: ignore[arg-type]
        slots = slots_of(item, category, self.scoring.bits)
        if self.used is not None:
            self.used.note(slots)
        return CodedRows(person, slots, options, None, when)


@dataclass
class _Keys:
    """The right answers by the code of the item, of as many items as came up by now."""

    scoring: Scoring
    items: LabelCodes
    loose: bool
    known: Keys | None = None

    def by_code(self) -> Keys | None:
        if self.scoring.key is not None and (self.known is None or len(self.known.best) < self.items.size):
            self.known = self.scoring.keys_of(labels_of(self.items.labels(), loose=self.loose).tolist())
        return self.known


def _in_final_codes(
    pile: Pile,
    person_at: NDArray[np.int32],
    item_at: NDArray[np.int32],
    scoring: Scoring,
    used: Used | None,
    settled: Settled | None,
) -> Iterator[Rows]:
    """The same answers with people and items numbered in order; the pile is used up."""
    means = _means(pile, person_at) if scoring.above_mean else None
    slot_at = np.stack([2 * item_at, 2 * item_at + 1], axis=1).ravel()
    final = slot_at.__getitem__ if used is None or settled is None else used.renaming(settled, item_at)
    for columns in pile.used_up(DEALT if pile.spilled else 1):
        piece = CodedRows(*columns)  # type: ignore[arg-type]
        person = person_at[piece.person]
        if means is None:
            yield Rows(person, final(piece.code), piece.options, piece.when)
            continue
        item = item_at[piece.code]
        yield Rows(
            person, 2 * item + scoring.category(piece.values, items=item, persons=person, means=means), None, piece.when
        )


def _counts(pile: Pile, person_at: NDArray[np.int32]) -> Ints:
    """Answers of each person, in the final order."""
    by_code = np.zeros(len(person_at), dtype=np.int64)
    for person, *_ in pile:
        assert person is not None
        by_code += np.bincount(person, minlength=len(by_code))
    counts = np.empty_like(by_code)
    counts[person_at] = by_code
    return counts


def _means(pile: Pile, person_at: NDArray[np.int32]) -> Means:
    n = len(person_at)
    counts = np.zeros(n, dtype=np.int64)
    sums, sizes = np.zeros(n), np.zeros(n)
    for columns in pile:
        piece = CodedRows(*columns)  # type: ignore[arg-type]
        person = person_at[piece.person]
        assert piece.values is not None
        counts += np.bincount(person, minlength=n)
        sums += np.bincount(person, piece.values, n)
        sizes += np.bincount(person, np.abs(piece.values), n)
    return means_from_sums(counts, sums, sizes)
