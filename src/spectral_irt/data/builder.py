"""Raw answers -> blocks of Responses, in one pass: whatever the source, arrays too, they are scored and packed here.

Answers lie in a pile, perhaps on disk, under the codes by which people and items came up. Right and wrong answers of
whole people are packed on the way; of more categories those of an item are known only when all were seen, and the rows
are then dealt out to blocks, a counting pass.

The builders of `reading/` (long and wide tables), `Responses.from_long` and arrays (`from_array`) add pieces
(`ResponsesBuilder.add`) and ask for the responses at the end. `as_responses` is what `fit` makes of its argument."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.data.block import (
    BINARY,
    BLOCK_RESPONSES,
    AnswerRows,
    Block,
    Codes,
    Duplicates,
    Ints,
    Repeats,
    Thresholds,
    pack_block,
    person_chunks,
    slots_of,
)
from spectral_irt.data.labels import Labels, label_array
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import BLANK, BlankCounter, Place, RawAnswers, Scoring, refuse_blanks
from spectral_irt.data.values import plain_values, without_mask
from spectral_irt.engine.base import budget
from spectral_irt.engine.spill import give_back_freed
from spectral_irt.errors import (
    Finding,
    OptionError,
    ReadError,
    ResponseValueError,
    Severity,
    SpectralIrtError,
    for_shell,
)
from spectral_irt.numerics import chosen_or_none, counting_sort
from spectral_irt.text import count, listed

if TYPE_CHECKING:
    from spectral_irt.data.answer_key import AnswerKey, OneSpelling
    from spectral_irt.data.categories import Used
    from spectral_irt.data.scoring import Values
    from spectral_irt.data.value_check import ValueCheck

FinalCodes = NDArray[np.int32] | None  # by those of the pieces; None: these are final
DEALT = 1 << 21  # rows dealt out to blocks at a time when they come from a file: 50 MB, and parts of a MB on disk
RUNS = 8  # of blocks whose rows lie together while they wait to be packed
SHARE = 0.25  # of the room that the budget leaves, for a pile; there are two at times, and half is for the blocks
MANY_REPEATS = 0.1  # of the answers that are kept: to leave out more may change what the results are about
IN_MEMORY = 0.5  # of the room, for packed answers: they are only read, so a mapped file serves them nearly as well


class RawAnswersRead(NamedTuple):
    """What is known of answers before they were scored, if anything, and notes on how they were read."""

    answers: RawAnswers | None
    notes: tuple[Finding, ...]


class ResponsesBuilder:
    """Scores and packs pieces of raw answers; `labels` gives those of the items that came up, by code."""

    def __init__(
        self, scoring: Scoring, source: str, labels: Callable[[], Sequence[Any]], *, duplicates: Duplicates = "error"
    ) -> None:
        self.scoring = scoring
        self.source = source
        self.duplicates = duplicates
        self._labels = labels
        self.check: ValueCheck | None = None  # where there is something to take note of
        self._key: AnswerKey | None = None
        self._spelling: OneSpelling | None = None
        if scoring.compares_text:
            from spectral_irt.data.answer_key import AnswerKey, OneSpelling  # which only raw answers need

            self._spelling = OneSpelling(scoring)
            if scoring.key is not None:
                self._key = AnswerKey(scoring.key, self._spelling)
        self._n_rounded = 0
        self._blanks: BlankCounter | None = None
        self._blocks: list[Block] = []  # right and wrong answers of whole people
        self._n_people = 0  # in the blocks
        self._binary = scoring.undecided or scoring.highest <= 1  # up to now
        self._pile = Pile()
        self.n_waiting = 0  # answers that are not packed
        self.turned = 0  # see `Settled`

    def add(
        self,
        person: Codes,
        item: Codes,
        values: Values,
        place: Callable[[int], Place],
        width: int | None = None,
        when: NDArray[Any] | None = None,
    ) -> None:
        """Raw values, the codes of the person and the item of each, and where the k-th stands. With a `width` they are
        whole rows of so many cells, one for each person, in the order of the test; `when` are numbers that order them.
        """
        answers, answered, odd = self.scoring.clean(values)
        if self.scoring.round_fractions and not self.scoring.compares_text:
            self._n_rounded += self.scoring.n_fractions(values)
        if odd is not None or self.scoring.threshold is not None or self.scoring.compares_text:
            if self.check is None:
                from spectral_irt.data.value_check import ValueCheck  # most data have nothing to be noted

                self.check = ValueCheck(self.scoring)
            self.check.note(values, answers, odd, place)
        person_of_cell = person
        item_of_cell = item
        if answered is not None:
            person = person[answered]
            item = item[answered]
            when = chosen_or_none(when, answered)
        person = person.astype(np.int32, copy=False)
        options = None
        if self._spelling is not None:
            answers = self._spelling.of_each(answers)
        if self._key is None:
            category = self.scoring.category(answers)
        else:
            category, options = self._key.score(answers, item, self._labels)
        if self._binary and int(category.max(initial=0)) > 1:
            self._give_room()
        bits = 1 if self._binary else self.scoring.bits
        slots = slots_of(item, category, bits)
        wrong = None  # cells that count as wrong though they are blank
        if width is not None:
            self._blanks = self._blanks or BlankCounter(self.scoring)
            wrong = self._blanks.wrong(values, item_of_cell, width, answered)
        if wrong is not None:
            person = np.concatenate([person, person_of_cell[wrong].astype(np.int32)])
            slots = np.concatenate([slots, slots_of(item_of_cell[wrong], np.int32(0), bits)])
            if options is not None:
                options = np.concatenate([options, np.full(len(wrong), BLANK, dtype=np.uint8)])
        self._pile.add(AnswerRows(person, slots, options, when))
        self.n_waiting += len(slots)

    def _give_room(self) -> None:
        """Answers were taken for right and wrong until now: slots have room for more categories from now on."""
        waiting = self._pile
        bits = self.scoring.bits
        self._pile = Pile()
        self._binary = False
        n_people = 0
        for block in self._blocks:
            half = np.repeat(np.arange(2 * block.n_persons, dtype=np.int32), np.diff(block.bounds))  # right, then wrong
            person = (half >> 1) + np.int32(n_people)
            self._pile.add(AnswerRows(person, slots_of(np.asarray(block.items), 1 - (half & 1), bits)))
            n_people += block.n_persons
        self._blocks = []
        for rows in waiting.used_up():
            self._pile.add(rows._replace(slot=slots_of(rows.slot >> 1, rows.slot & 1, bits)))

    def whole_people(self, stop: int, persons: Sequence[Any] | Labels, items: Labels) -> None:
        """Pack the people before `stop`, who are complete, if answers are right or wrong; `persons` label new ones."""
        if not (self._binary and len(self._pile)):
            return
        rows = next(self._pile.used_up(np.inf))
        rows = rows._replace(person=rows.person - np.int32(self._n_people))
        counts = np.bincount(rows.person, minlength=stop - self._n_people)
        repeats = Repeats(self.duplicates)
        self._blocks += pack_rows([rows], counts, BINARY, repeats)
        if repeats.extra:
            repeats.complain(persons, items, self.source)
        self._n_people = stop
        self.n_waiting = 0
        self._pile = Pile()

    def responses(
        self,
        persons: Labels,
        items: Labels,
        person_at: FinalCodes = None,
        item_at: FinalCodes = None,
        of: tuple[Labels, Ints] | None = None,
        report: Callable[[float], None] = lambda share: None,
    ) -> Responses:
        """All answers; `person_at` and `item_at` are the final codes of people and items, by those of the pieces, and
        `of` are the things rated and the one of each item: it has the same categories whoever rates."""
        if self.check is not None:
            self.check.complain(self.source)
        raw = self._raw_answers(items.tolist())
        if self._blocks and not len(self._pile):
            responses = Responses(tuple(self._blocks), items, persons, source=self.source)
        else:
            responses = self._of_pile(persons, items, person_at, item_at, of, report)
        if self.check is not None:
            self.check.complain_of_scores(responses)
        return replace(responses, raw=raw.answers, notes=(*responses.notes, *raw.notes))

    def _raw_answers(self, items: list[Any]) -> RawAnswersRead:
        """What is known of the answers before they were scored, and notes on how they were read."""
        raw: RawAnswers | None = None
        notes: tuple[Finding, ...] = ()
        if self._key is not None:
            raw, notes = self._key.known_answers(items)
        if self._spelling is not None:
            notes += self._spelling.findings()
        if self._n_rounded:
            were = count(self._n_rounded, "fraction was", "fractions were")
            sentence = f"{were} rounded to the nearest whole number, as asked."
            notes += (Finding("fractions_rounded", "note", sentence, number=self._n_rounded),)
        if self._blanks is not None:
            how = self.scoring
            counts_as_wrong = "wrong" in (how.omitted, how.not_reached)
            omitted_and_not_reached = zip(*self._blanks.sums[1:].tolist(), strict=True)
            raw = replace(
                raw or RawAnswers(),
                blanks=dict(zip(items, omitted_and_not_reached, strict=False)),
                blanks_decided=bool(how.not_presented) or counts_as_wrong,
            )
            if counts_as_wrong:
                notes += self._blanks.findings(items)
        return RawAnswersRead(raw, notes)

    def _of_pile(
        self, persons: Labels, items: Labels, person_at: FinalCodes, item_at: FinalCodes, of: Any, report: Any
    ) -> Responses:
        """Responses of answers that lie in the pile, which is used up."""
        if item_at is None:
            item_at = np.arange(len(items), dtype=np.int32)
        used = None
        if not self._binary:
            from spectral_irt.data.categories import Used  # right and wrong need none of that

            used = Used(self.scoring.bits)
        counts = self._counts(person_at, len(persons), used)
        # What makes slots under final codes from slots as they came up.
        final: Any = np.stack([2 * item_at, 2 * item_at + 1], axis=1).ravel().take
        layout = Thresholds.ones(len(items))
        codes = None
        notes: tuple[Finding, ...] = ()
        if used is not None:
            categories, final = used.final_categories(item_at, items, self.scoring, self.source, of)
            layout = categories.thresholds
            codes = categories.codes
            notes = categories.notes
            self.turned = categories.turned
        repeats = Repeats(self.duplicates)
        blocks: list[Block] = []
        n_packed = 0
        for block in pack_rows(self._final_rows(person_at, final), counts, layout, repeats):
            n_packed += block.n_persons
            blocks.append(block)
            report(n_packed / len(persons))
        responses = Responses(
            tuple(blocks), items, persons, source=self.source, thresholds=layout, codes=codes, notes=notes
        )
        if not repeats.extra:
            return responses
        repeats.complain(persons, items, self.source)
        if self.scoring.unused != "keep" and responses.codes is not None:
            from spectral_irt.data.categories import without_unused

            responses = without_unused(responses, self.scoring, of)
        finding = self._repeats_left_out(repeats.extra, responses.n_responses)
        return replace(responses, notes=(*responses.notes, finding))

    def _repeats_left_out(self, n_repeats: int, n_responses: int) -> Finding:
        were = count(n_repeats, "repeated answer was", "repeated answers were")
        severity: Severity = "warning" if n_repeats > MANY_REPEATS * n_responses else "note"
        sentence = f"{were} left out: the {self.duplicates} answer of a person to an item counts."
        return Finding("repeats_left_out", severity, sentence, number=n_repeats)

    def _counts(self, person_at: FinalCodes, n_persons: int, used: Used | None) -> Ints:
        """Answers of each person; `used` notes the categories on the way."""
        counts = np.zeros(n_persons, dtype=np.int64)
        for rows in self._pile:
            person = rows.person if person_at is None else person_at[rows.person]
            counts += np.bincount(person, minlength=n_persons)
            if used is not None:
                used.note(rows.slot)
        return counts

    def _final_rows(self, person_at: FinalCodes, final: Any) -> Iterator[AnswerRows]:
        """The answers with people and items under their final codes; `final` makes slots of those that came up."""
        for rows in self._pile.used_up(DEALT if self._pile.spilled else 1):
            person = rows.person if person_at is None else person_at[rows.person]
            yield rows._replace(person=person, slot=final(rows.slot))


LET_GO = AnswerRows(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32))  # in the place of a piece that was used


class Pile:
    """Pieces of answers in the order in which they came, mapped from a file where memory does not suffice."""

    def __init__(self) -> None:
        self.pieces: list[AnswerRows] = []
        self.spilled = False  # whether some pieces are not in memory
        self._in_memory = 0  # bytes

    def __len__(self) -> int:
        return len(self.pieces)

    def __iter__(self) -> Iterator[AnswerRows]:
        return iter(self.pieces)

    def add(self, rows: AnswerRows) -> None:
        """A copy of each column, made by this thread, whose memory serves it again."""
        piece = rows.each(_small_copy)
        size = sum(column.nbytes for column in piece if column is not None)
        if self._in_memory + size <= SHARE * budget().room:
            self._in_memory += size
        else:
            self.spilled = True
            piece = piece.each(budget().spill.put)
        self.pieces.append(piece)

    def used_up(self, n_rows: float = 1) -> Iterator[AnswerRows]:
        """The pieces in order, several together until they have so many rows; each is let go when it was used."""
        waiting: list[AnswerRows] = []
        n_waiting = 0
        for k in range(len(self.pieces)):
            waiting.append(self.pieces[k])
            self.pieces[k] = LET_GO
            n_waiting += len(waiting[-1].person)
            if k + 1 == len(self.pieces) or n_waiting >= n_rows:
                together = waiting
                waiting = []
                n_waiting = 0
                yield _concatenate(together)
                del together


def _small_copy(column: NDArray[Any]) -> NDArray[Any]:
    """Codes that fit have two bytes each."""
    fits = column.dtype == np.int32 and int(column.max(initial=0)) < 1 << 16
    dtype = np.dtype(np.uint16) if fits else column.dtype
    return column.astype(dtype)


def _concatenate(pieces: Sequence[AnswerRows]) -> AnswerRows:
    if len(pieces) == 1:
        return pieces[0]
    option = None
    time = None
    if pieces[0].option is not None:
        option = np.concatenate([rows.option for rows in pieces])
    if pieces[0].time is not None:
        time = np.concatenate([rows.time for rows in pieces])
    person = np.concatenate([rows.person for rows in pieces])
    slot = np.concatenate([rows.slot for rows in pieces])
    return AnswerRows(person, slot, option, time)


def pack_rows(pieces: Iterable[AnswerRows], counts: Ints, layout: Thresholds, repeats: Repeats) -> Iterator[Block]:
    """Blocks from pieces of rows in any order, in memory while the budget has room, else mapped from a temporary file;
    `counts` are the answers of each person. Of repeated answers the first is the one that arrived first, or has the
    lowest time."""
    chunks = list(person_chunks(np.concatenate([[0], np.cumsum(counts)])))
    if len(chunks) == 1:
        yield budget().keep(pack_block(_concatenate(list(pieces)), range(len(counts)), layout, repeats), IN_MEMORY)
    elif chunks:
        yield from _pack_dealt(pieces, np.array(chunks), layout, repeats)


def _pack_dealt(pieces: Iterable[AnswerRows], chunks: Ints, layout: Thresholds, repeats: Repeats) -> Iterator[Block]:
    """The same for several blocks, of the people from one number of a chunk to the other. Rows lie in runs of blocks,
    which are let go as their blocks are packed."""
    starts = chunks[:, 0]
    block_of = np.repeat(np.arange(len(chunks), dtype=np.int32), np.diff(chunks)[:, 0])
    n_runs = min(len(chunks), RUNS)
    runs = np.linspace(0, len(chunks), n_runs + 1).astype(int).tolist()
    pile = Pile()  # of each piece so many runs, one after the other
    limits_of_pieces: list[list[int]] = []  # where the blocks begin in each piece
    for piece in pieces:
        dealt = _rows_by_block(piece, block_of, starts)
        for first, stop in pairwise(runs):
            run = dealt.rows.take(slice(dealt.limits[first], dealt.limits[stop]))
            pile.add(run._replace(person=run.person - np.int32(starts[first])))
            del run
        limits_of_pieces.append(dealt.limits)
        del piece, dealt
    for r, (first, stop) in enumerate(pairwise(runs)):
        give_back_freed()
        for k in range(first, stop):
            parts = [
                rows.take(slice(limits[k] - limits[first], limits[k + 1] - limits[first]))
                for rows, limits in zip(pile.pieces[r::n_runs], limits_of_pieces, strict=True)
            ]
            rows = _concatenate(parts)
            rows = rows._replace(person=rows.person - np.int32(starts[k] - starts[first]))
            del parts
            block = pack_block(rows, range(*chunks[k].tolist()), layout, repeats)
            del rows
            yield budget().keep(block, IN_MEMORY)
        pile.pieces[r::n_runs] = [LET_GO] * len(limits_of_pieces)


class DealtRows(NamedTuple):
    """Rows block by block, order of arrival kept within each; and where each block begins, and the last one ends."""

    rows: AnswerRows
    limits: list[int]


def _rows_by_block(rows: AnswerRows, block_of: NDArray[np.int32], starts: Ints) -> DealtRows:
    """The rows block by block."""
    person = rows.person.astype(np.int32, copy=False)
    if not np.any(person[1:] < person[:-1]):
        return DealtRows(rows, [*np.searchsorted(person, starts).tolist(), len(person)])
    block = block_of[person]
    if rows.option is None and rows.time is None:
        limits, person, slot = counting_sort(block, len(starts), person, rows.slot)
        return DealtRows(AnswerRows(person, slot), limits.tolist())
    places = np.arange(len(block), dtype=np.int32)
    limits, order, _ = counting_sort(block, len(starts), places, np.empty_like(block, dtype=np.int8))
    return DealtRows(rows.take(order), limits.tolist())


SOURCE = "the data"


def is_frame(table: Any) -> bool:
    return hasattr(type(table), "columns") or hasattr(table, "__arrow_c_stream__")


def names_files(source: Any) -> bool:
    """Whether this is a path or several; else it is an array, or nested lists of answers."""
    if isinstance(source, str | bytes | os.PathLike):
        return True
    if hasattr(source, "__array__") or hasattr(source, "tocoo") or not isinstance(source, Iterable):
        return False
    first = next(iter(source), None) if isinstance(source, Sequence) else ""
    return first is None or isinstance(first, str | bytes | os.PathLike)


def as_responses(data: Any, *, ordered: bool = False, **how: Any) -> Responses:
    """What an estimator's `fit` makes of its argument: Responses as they are, and what `read` makes of a table."""
    if isinstance(data, Responses):
        return data
    if names_files(data):
        what = f"fit takes responses, an array or a dataframe, not the text {data!r};"
        raise ReadError(f"{what} read a file with spectral_irt.read(path) first.")
    try:
        if not is_frame(data):
            return from_array(data, Scoring(ordered=ordered, **how))
        from spectral_irt.reading import read

        return read(data, ordered=ordered, **how)
    except SpectralIrtError as error:
        if for_shell(str(error)) == str(error):  # it names no option
            raise
        raise type(error)(f"{error} Such options go to spectral_irt.read, and what it returns to fit.") from None


def from_array(table: Any, scoring: Scoring, items: Sequence[Any] | None = None, orient: str = "persons") -> Responses:
    matrix: Any = table
    if not sparse.issparse(table):
        try:
            matrix = without_mask(table)
        except ValueError as error:
            raise ReadError(f"expected a 2-D table, people x items, with rows of one length ({error}).") from None
        if matrix.dtype.kind == "c":
            raise ReadError("Complex data not supported: responses are 0 or 1.")
        if matrix.ndim != 2:
            what = f"expected a 2-D table, people x items, not {matrix.ndim}-D with shape {matrix.shape}."
            raise ReadError(f"{what} Reshape your data: one row per person, one column per item.")
    if orient == "items":
        matrix = matrix.T
    if matrix.shape[0] and not matrix.shape[1]:
        raise ReadError(f"the table has no items: its shape is {matrix.shape}, people x items.")
    labels = np.arange(matrix.shape[1]) if items is None else label_array(items)
    if len(labels) != matrix.shape[1]:
        raise OptionError(f"`items` has {len(labels)} labels; the table has {matrix.shape[1]} columns.")
    for label in labels.tolist():
        if not isinstance(label, Hashable):
            raise ReadError(f"labels of items are numbers or texts, and one is {label!r} ({type(label).__name__}).")
    repeated = [label for label, n in Counter(labels.tolist()).items() if n > 1]
    if repeated:
        raise ReadError(f"item labels must differ; repeated: {listed(repeated)}.")
    builder = ResponsesBuilder(scoring, SOURCE, labels.tolist)
    if sparse.issparse(matrix):
        _add_sparse(builder, matrix, labels)
    else:
        _add_dense(builder, matrix, labels)
    return builder.responses(np.arange(matrix.shape[0]), labels)


def _add_dense(builder: ResponsesBuilder, matrix: NDArray[Any], labels: Labels) -> None:
    n_persons, n_items = matrix.shape
    rows = max(1, BLOCK_RESPONSES // max(n_items, 1))
    for start in range(0, n_persons, rows):
        part = matrix[start : start + rows]
        persons = np.arange(start, start + len(part), dtype=np.int32)

        def place(k: int, start: int = start) -> Place:
            return SOURCE, labels[k % n_items], start + k // n_items

        person = np.repeat(persons, n_items)
        item = np.tile(np.arange(n_items, dtype=np.int32), len(part))
        builder.add(person, item, plain_values(part.ravel()), place, n_items)
        builder.whole_people(start + len(part), persons, labels)


def _add_sparse(builder: ResponsesBuilder, matrix: Any, labels: Labels) -> None:
    scoring = builder.scoring
    refuse_blanks(scoring, "a sparse matrix holds answers only")
    stored = sparse.coo_array(matrix)  # keeps stored zeros: they are wrong answers
    row = stored.row
    column = stored.col
    if (scoring.expects_01 or scoring.undecided) and len(stored.data) and np.all(stored.data == 1):
        raise ResponseValueError(
            "every stored response of the sparse matrix is 1: its zeros, the wrong answers, were dropped on the way. "
            "Store them explicitly (for instance with Responses.from_long), or pass a dense array."
        )
    builder.add(row, column, plain_values(stored.data), lambda k: (SOURCE, labels[column[k]], int(row[k])))
    builder.whole_people(stored.shape[0], range(stored.shape[0]), labels)
