"""Raw answers -> blocks of Responses, in one pass: whatever the source, arrays too, they are scored and packed here.

Answers lie in a pile, perhaps on disk, under the codes by which people and items came up. Right and wrong answers of
whole people are packed on the way; of more categories those of an item are known only when all were seen, and the rows
are then dealt out to blocks, a counting pass."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.data.block import (
    BINARY,
    BLOCK_RESPONSES,
    Block,
    Codes,
    Columns,
    Duplicates,
    Ints,
    Repeats,
    Thresholds,
    at,
    pack_block,
    person_chunks,
    slots_of,
)
from spectral_irt.data.labels import Labels, label_array
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import BLANK, BlankCounter, Place, RawAnswers, Scoring, refuse_blanks
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
from spectral_irt.numerics import counting_sort
from spectral_irt.text import listed

if TYPE_CHECKING:
    from spectral_irt.data.categories import AnswerKey, OneSpelling, Used
    from spectral_irt.data.scoring import Values
    from spectral_irt.data.value_check import ValueCheck

FinalCodes = NDArray[np.int32] | None  # by those of the pieces; None: these are final
DEALT = 1 << 23  # rows that are dealt out to blocks at a time when they come from a file: parts as long as a disk likes
RUNS = 8  # of blocks whose rows lie together while they wait to be packed
SHARE = 0.25  # of the room that the budget leaves, for a pile; there are two at times, and half is for the blocks
MANY_REPEATS = 0.1  # of the answers that are kept: to leave out more may change what the results are about
IN_MEMORY = 0.5  # of the room, for packed answers: they are only read, so a mapped file serves them nearly as well


class ResponsesBuilder:
    """Scores and packs pieces of raw answers; `labels` gives those of the items that came up, by code."""

    def __init__(
        self, scoring: Scoring, source: str, labels: Callable[[], Sequence[Any]], *, duplicates: Duplicates = "error"
    ) -> None:
        self.scoring, self.source, self._labels, self.duplicates = scoring, source, labels, duplicates
        self.check: ValueCheck | None = None  # where there is something to take note of
        self._key: AnswerKey | None = None
        self._spelling: OneSpelling | None = None
        if scoring.compares_text:
            from spectral_irt.data.categories import AnswerKey, OneSpelling  # which only raw answers need

            self._spelling = OneSpelling(scoring)
            if scoring.key is not None:
                self._key = AnswerKey(scoring.key, self._spelling)
        self._n_rounded = 0
        self._blanks: BlankCounter | None = None
        self._blocks: list[Block] = []  # right and wrong answers of whole people
        self._n_people = 0  # in the blocks
        self._binary = scoring.undecided or scoring.highest <= 1  # up to now
        self._pile = Pile()  # person, slot, option and time of each answer
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
        cells = (person, item)
        if answered is not None:
            person, item, when = person[answered], item[answered], None if when is None else when[answered]
        person = person.astype(np.int32, copy=False)
        options = None
        if self._spelling is not None:
            answers = self._spelling.of_each(answers)
        if self._key is None:
            category = self.scoring.category(answers)
        else:
            category, options = self._key.scored(answers, item, self._labels)
        if self._binary and int(category.max(initial=0)) > 1:
            self._give_room()
        bits = 1 if self._binary else self.scoring.bits
        slots = slots_of(item, category, bits)
        wrong = None  # cells that count as wrong though they are blank
        if width is not None:
            self._blanks = self._blanks or BlankCounter(self.scoring)
            wrong = self._blanks.wrong(values, cells[1], width, answered)
        if wrong is not None:
            person = np.concatenate([person, cells[0][wrong].astype(np.int32)])
            slots = np.concatenate([slots, slots_of(cells[1][wrong], np.int32(0), bits)])
            if options is not None:
                options = np.concatenate([options, np.full(len(wrong), BLANK, dtype=np.uint8)])
        self._pile.add(person, slots, options, when)
        self.n_waiting += len(slots)

    def _give_room(self) -> None:
        """Answers were taken for right and wrong until now: slots have room for more categories from now on."""
        before, bits, n_people = self._pile, self.scoring.bits, 0
        self._pile, self._binary = Pile(), False
        for block in self._blocks:
            row = np.repeat(np.arange(2 * block.n_persons, dtype=np.int32), np.diff(block.bounds))  # right, then wrong
            slots = slots_of(np.asarray(block.items), 1 - (row & 1), bits)
            self._pile.add((row >> 1) + np.int32(n_people), slots, None, None)
            n_people += block.n_persons
        self._blocks = []
        for person, codes, *others in before.used_up():
            self._pile.add(person, slots_of(codes >> 1, codes & 1, bits), *others)

    def whole_people(self, stop: int, persons: Sequence[Any] | Labels, items: Labels) -> None:
        """Pack the people before `stop`, who are complete, if answers are right or wrong; `persons` label new ones."""
        if not (self._binary and len(self._pile)):
            return
        person, *others = next(self._pile.used_up(np.inf))
        person = person - np.int32(self._n_people)
        repeats, counts = Repeats(self.duplicates), np.bincount(person, minlength=stop - self._n_people)
        self._blocks += pack_rows([(person, *others)], counts, BINARY, repeats)
        if repeats.extra:
            repeats.complain(persons, items, self.source)
        self._n_people, self.n_waiting, self._pile = stop, 0, Pile()

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
        raw, labels = None, items.tolist()
        notes: tuple[Finding, ...] = ()
        if self._key is not None:
            raw, notes = self._key.known(labels)
        if self._spelling is not None:
            notes += self._spelling.findings()
        if self._n_rounded:
            were = "fraction was" if self._n_rounded == 1 else "fractions were"
            sentence = f"{self._n_rounded:,} {were} rounded to the nearest whole number, as asked."
            notes += (Finding("fractions_rounded", "note", sentence, number=self._n_rounded),)
        if self._blanks is not None:
            omitted_or_not_reached = zip(*self._blanks.sums[1:].tolist(), strict=True)
            blanks = dict(zip(labels, omitted_or_not_reached, strict=False))
            how = self.scoring
            decided = bool(how.not_presented) or "wrong" in (how.omitted, how.not_reached)
            raw = replace(raw or RawAnswers(), blanks=blanks, blanks_decided=decided)
            if "wrong" in (self.scoring.omitted, self.scoring.not_reached):
                notes += self._blanks.findings(labels)
        if self._blocks and not len(self._pile):
            made = Responses(tuple(self._blocks), items, persons, source=self.source)
        else:
            made = self._of_pile(persons, items, person_at, item_at, of, report)
        if self.check is not None:
            self.check.complain_of_scores(made)
        return replace(made, raw=raw, notes=(*made.notes, *notes))

    def _of_pile(
        self, persons: Labels, items: Labels, person_at: FinalCodes, item_at: FinalCodes, of: Any, report: Any
    ) -> Responses:
        """Responses of answers that lie in the pile, which is used up."""
        item_at = np.arange(len(items), dtype=np.int32) if item_at is None else item_at
        known: dict[str, Any] = {"thresholds": Thresholds.ones(len(items))}
        final: Any = np.stack([2 * item_at, 2 * item_at + 1], axis=1).ravel().take  # of slots as they came up
        used = None
        if not self._binary:
            from spectral_irt.data.categories import Used, without_unused  # right and wrong need none of that

            used = Used(self.scoring.bits)
        counts = self._counts(person_at, len(persons), used)
        if used is not None:
            settled, final = used.settled(item_at, items, self.scoring, self.source, of)
            known = {"codes": settled.codes, "notes": settled.notes, "thresholds": settled.thresholds}
            self.turned = settled.turned
        repeats, blocks, n_packed = Repeats(self.duplicates), [], 0
        pieces = self._final_rows(person_at, final)
        for block in pack_rows(pieces, counts, known["thresholds"], repeats):
            n_packed += block.n_persons
            blocks.append(block)
            report(n_packed / len(persons))
        if repeats.extra:
            repeats.complain(persons, items, self.source)
        made = Responses(tuple(blocks), items, persons, source=self.source, **known)
        if not repeats.extra:
            return made
        if self.scoring.unused != "keep" and made.codes is not None:
            made = without_unused(made, self.scoring, of)
        what = "1 repeated answer was" if repeats.extra == 1 else f"{repeats.extra:,} repeated answers were"
        sentence = f"{what} left out: the {self.duplicates} answer of a person to an item counts."
        many = repeats.extra > MANY_REPEATS * made.n_responses
        severity: Severity = "warning" if many else "note"
        finding = Finding("repeats_left_out", severity, sentence, number=repeats.extra)
        return replace(made, notes=(*made.notes, finding))

    def _counts(self, person_at: FinalCodes, n_persons: int, used: Used | None) -> Ints:
        """Answers of each person; `used` notes the categories on the way."""
        counts = np.zeros(n_persons, dtype=np.int64)
        for person, slots, _, _ in self._pile:
            final = person if person_at is None else person_at[person]
            counts += np.bincount(final, minlength=n_persons)
            if used is not None:
                used.note(slots)
        return counts

    def _final_rows(self, person_at: FinalCodes, final: Any) -> Iterator[Columns]:
        """The answers with people and items under their final codes; `final` makes slots of those that came up."""
        for person, slots, options, when in self._pile.used_up(DEALT if self._pile.spilled else 1):
            yield person if person_at is None else person_at[person], final(slots), options, when


class Pile(list[Columns]):
    """Pieces of several columns, in order, mapped from a file where memory does not suffice."""

    held, spilled = 0, False  # bytes in memory; whether some pieces are not there

    def add(self, *columns: Any) -> None:
        """A copy of each, made by this thread, whose memory serves it again; codes that fit have two bytes each."""
        kept, size = list(columns), 0
        for k, column in enumerate(columns):
            if column is not None:
                fits = column.dtype == np.int32 and int(column.max(initial=0)) < 1 << 16
                kept[k] = column.astype(np.uint16 if fits else column.dtype)
                size += kept[k].nbytes
        if self.held + size <= SHARE * budget().room:
            self.held += size
        else:
            self.spilled = True
            kept = [None if column is None else budget().spill.put(column) for column in kept]
        self.append(tuple(kept))

    def used_up(self, n_rows: float = 1) -> Iterator[Columns]:
        """The pieces in order, several together until they have so many rows; each is let go when it was used."""
        waiting: list[Columns] = []
        n_waiting = 0
        for k in range(len(self)):
            waiting.append(self[k])
            self[k] = ()
            n_waiting += len(waiting[-1][0])
            if k + 1 == len(self) or n_waiting >= n_rows:
                together, waiting, n_waiting = waiting, [], 0
                yield _joined(together)
                del together


def _joined(pieces: Sequence[Columns]) -> Columns:
    if len(pieces) == 1:
        return pieces[0]
    return tuple(None if each[0] is None else np.concatenate(each) for each in zip(*pieces, strict=True))


def pack_rows(pieces: Iterable[Columns], counts: Ints, layout: Thresholds, repeats: Repeats) -> Iterator[Block]:
    """Blocks from pieces of rows in any order, in memory while the budget has room, else mapped from a temporary file;
    `counts` are the answers of each person. Of repeated answers the first is the one that arrived first, or has the
    lowest time."""
    chunks = list(person_chunks(np.concatenate([[0], np.cumsum(counts)])))
    if len(chunks) == 1:
        yield budget().keep(pack_block(_joined(list(pieces)), range(len(counts)), layout, repeats), IN_MEMORY)
    elif chunks:
        yield from _pack_dealt(pieces, np.array(chunks), layout, repeats)


def _pack_dealt(pieces: Iterable[Columns], chunks: Ints, layout: Thresholds, repeats: Repeats) -> Iterator[Block]:
    """The same for several blocks, of the people from one number of a chunk to the other. Rows lie in runs of blocks,
    which are let go as their blocks are packed."""
    starts = chunks[:, 0]
    block_of = np.repeat(np.arange(len(chunks), dtype=np.int32), np.diff(chunks)[:, 0])
    n_runs = min(len(chunks), RUNS)
    runs = np.linspace(0, len(chunks), n_runs + 1).astype(int).tolist()
    dealt, ends = Pile(), []
    for piece in pieces:
        rows, limits = _dealt(piece, block_of, starts)
        for a, b in pairwise(runs):
            person, *others = at(rows, slice(limits[a], limits[b]))
            dealt.add(person - np.int32(starts[a]), *others)
        ends.append(limits)
        del piece, rows
    for r, (a, b) in enumerate(pairwise(runs)):
        give_back_freed()
        for k in range(a, b):
            places = [slice(limits[k] - limits[a], limits[k + 1] - limits[a]) for limits in ends]
            own = [at(rows, place) for rows, place in zip(dealt[r::n_runs], places, strict=True)]
            person, *others = _joined(own)
            rows = (person - np.int32(starts[k] - starts[a]), *others)
            del own, person, others
            block = pack_block(rows, range(*chunks[k].tolist()), layout, repeats)
            del rows
            yield budget().keep(block, IN_MEMORY)
        dealt[r::n_runs] = [()] * len(ends)


def _dealt(rows: Columns, block_of: NDArray[np.int32], starts: Ints) -> tuple[Columns, list[int]]:
    """The rows block by block, order of arrival kept within each; and where each block ends."""
    person, slots, options, when = rows
    person, n_blocks = person.astype(np.int32, copy=False), len(starts)
    if not np.any(person[1:] < person[:-1]):
        return rows, [*np.searchsorted(person, starts).tolist(), len(person)]
    block = block_of[person]
    if options is None and when is None:
        ends, person, slots = counting_sort(block, n_blocks, person, slots)
        return (person, slots, None, None), ends.tolist()
    places = np.arange(len(block), dtype=np.int32)
    ends, order, _ = counting_sort(block, n_blocks, places, np.empty_like(block, dtype=np.int8))
    return at(rows, order), ends.tolist()


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
            matrix = filled(table)
        except ValueError as error:
            raise ReadError(f"expected a 2-D table, people x items, with rows of one length ({error}).") from None
        if matrix.dtype.kind == "c":
            raise ReadError("Complex data not supported: responses are 0 or 1.")
        if matrix.ndim != 2:
            what = f"expected a 2-D table, people x items, not {matrix.ndim}-D with shape {matrix.shape}."
            raise ReadError(f"{what} Reshape your data: one row per person, one column per item.")
    matrix = matrix.T if orient == "items" else matrix
    if matrix.shape[0] and not matrix.shape[1]:
        raise ReadError(f"the table has no items: its shape is {matrix.shape}, people x items.")
    labels = np.arange(matrix.shape[1]) if items is None else label_array(items)
    if len(labels) != matrix.shape[1]:
        raise OptionError(f"`items` has {len(labels)} labels; the table has {matrix.shape[1]} columns.")
    for wrong in (label for label in labels.tolist() if not isinstance(label, Hashable)):
        raise ReadError(f"labels of items are numbers or texts, and one is {wrong!r} ({type(wrong).__name__}).")
    twice = [label for label, n in Counter(labels.tolist()).items() if n > 1]
    if twice:
        raise ReadError(f"item labels must differ; repeated: {listed(twice)}.")
    builder = ResponsesBuilder(scoring, SOURCE, labels.tolist)
    (_add_sparse if sparse.issparse(matrix) else _add_dense)(builder, matrix, labels)
    return builder.responses(np.arange(matrix.shape[0]), labels)


def _add_dense(builder: ResponsesBuilder, matrix: NDArray[Any], labels: Labels) -> None:
    n_persons, n_items = matrix.shape
    rows = max(1, BLOCK_RESPONSES // max(n_items, 1))
    for start in range(0, n_persons, rows):
        part = matrix[start : start + rows]
        persons = np.arange(start, start + len(part), dtype=np.int32)

        def place(k: int, start: int = start) -> Place:
            return SOURCE, labels[k % n_items], start + k // n_items

        person, item = np.repeat(persons, n_items), np.tile(np.arange(n_items, dtype=np.int32), len(part))
        builder.add(person, item, plain_values(part.ravel()), place, n_items)
        builder.whole_people(start + len(part), persons, labels)


def _add_sparse(builder: ResponsesBuilder, matrix: Any, labels: Labels) -> None:
    scoring = builder.scoring
    refuse_blanks(scoring, "a sparse matrix holds answers only")
    stored = sparse.coo_array(matrix)  # keeps stored zeros: they are wrong answers
    row, column = stored.row, stored.col
    if (scoring.expects_01 or scoring.undecided) and len(stored.data) and np.all(stored.data == 1):
        raise ResponseValueError(
            "every stored response of the sparse matrix is 1: its zeros, the wrong answers, were dropped on the way. "
            "Store them explicitly (for instance with Responses.from_long), or pass a dense array."
        )
    builder.add(row, column, plain_values(stored.data), lambda k: (SOURCE, labels[column[k]], int(row[k])))
    builder.whole_people(stored.shape[0], range(stored.shape[0]), labels)


def plain_values(values: NDArray[Any]) -> Any:
    """Numbers as an array, and anything else as a polars Series."""
    if values.dtype.kind in "biuf":
        return values
    from spectral_irt.reading.frame import series_of

    return series_of(values.tolist())


def filled(values: Any) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), np.array(None), values.data)
    return np.asarray(values)
