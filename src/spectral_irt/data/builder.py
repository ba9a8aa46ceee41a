"""Pieces of raw answers (arrays, too) -> Responses, in one pass: whatever the source, they are scored and packed here.

Answers lie in a pile, perhaps on disk, under the codes by which people and items came up. Right and wrong answers of
whole people are packed on the way; of more categories those of an item are known only when all were seen."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.data.block import BINARY, BLOCK_RESPONSES, Block, Floats, Ints, Mask, Thresholds
from spectral_irt.data.categories import BLANK, Codes, OptionCoder, RawAnswers, Used, settle, used_by_group
from spectral_irt.data.labels import Labels, label_array, positions
from spectral_irt.data.packing import AnswerRows, Duplicates, Repeats, SpillColumns, pack_rows, slots_of
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import Keys, Place, Scoring, ValueCheck
from spectral_irt.errors import Finding, OptionError, ReadError, ResponseValueError, SpectralIrtError, for_shell
from spectral_irt.text import count_are, listed

if TYPE_CHECKING:
    from spectral_irt.data.scoring import Values

Labeling = Callable[[], Sequence[Any]]
Sums = tuple[Ints, Floats, Floats]
FinalCodes = NDArray[np.int32] | None  # by those of the pieces; None: these are final
Renaming = Callable[[NDArray[np.int32]], NDArray[np.int32]] | None
Report = Callable[[float], None]
# A rating is above the mean when it exceeds it by more than this share of the person's mean |rating|: the sum of equal
# ratings is not always their exact multiple, and the order of summation must not decide.
SLACK = 1e-9
FORMS = 0.5  # a larger share of blanks among an item's cells is more likely another form of the test than omission
DEALT = 1 << 23  # rows that are dealt out to blocks at a time when they come from a file: parts as long as a disk likes


class Piece(NamedTuple):
    """Raw values, the codes of the person and the item of each, and where the k-th stands. With a `width` they are
    whole rows of so many cells, one for each person, in the order of the test; `when` are numbers that order them."""

    person: Codes
    item: Codes
    values: Values
    place: Callable[[int], Place]
    width: int | None = None
    when: NDArray[Any] | None = None


class ResponsesBuilder:
    """Scores and packs pieces of raw answers; `labels` gives those of the items that came up, by code."""

    def __init__(
        self, scoring: Scoring, source: str, labels: Labeling, *, wide: bool = False, duplicates: Duplicates = "error"
    ) -> None:
        self.scoring, self.source, self._labels, self.duplicates = scoring, source, labels, duplicates
        self.check = ValueCheck(scoring, wide=wide)
        self._keys: Keys | None = None
        self._blanks: BlankCounter | None = None
        self._blocks: list[Block] = []  # right and wrong answers of whole people
        self._n_people = 0  # in the blocks
        self._binary = scoring.undecided or scoring.highest <= 1  # up to now
        # Person, slot, option and time; where the person's mean decides later, the item instead, and the value.
        self._pile = SpillColumns()
        self.n_waiting = 0  # answers that are not packed
        self.turned = 0  # see `Settled`

    @cached_property
    def _options(self) -> OptionCoder:
        return OptionCoder()

    def add(self, piece: Piece) -> None:
        answers = self.check.answers(piece.values, piece.place)
        person, item = answers.of(piece.person).astype(np.int32, copy=False), answers.of(piece.item)
        when = None if piece.when is None else answers.of(piece.when)
        if self.scoring.above_mean is not None:
            values = np.asarray(answers.values, dtype=np.float64)
            self._pile.add(person, item.astype(np.int32, copy=False), None, when, values)
            return
        if self.scoring.key is not None and (self._keys is None or int(item.max(initial=-1)) >= len(self._keys.best)):
            self._keys = self.scoring.keys_of(self._labels())  # by code, of as many items as came up by now
        keys, options = self._keys, None
        category = self.scoring.category(answers.values, item, keys)
        if keys is not None:
            options = self._options.codes(answers.values, category == keys.best[item])  # type: ignore[arg-type]
        if self._binary and int(category.max(initial=0)) > 1:
            self._give_room()
        bits = 1 if self._binary else self.scoring.bits
        slots = slots_of(item, category, bits)
        wrong = None  # cells that count as wrong though they are blank
        if piece.width is not None:
            self._blanks = self._blanks or BlankCounter(self.scoring.omitted, self.scoring.not_reached)
            presented = None if answers.answered is None else self.scoring.presented(piece.values)
            wrong = self._blanks.wrong(piece.item, piece.width, answers.answered, presented)
        if wrong is not None:
            person = np.concatenate([person, piece.person[wrong].astype(np.int32)])
            slots = np.concatenate([slots, slots_of(piece.item[wrong], np.int32(0), bits)])
            if options is not None:
                options = np.concatenate([options, np.full(len(wrong), BLANK, dtype=np.uint8)])
        self._pile.add(person, slots, options, when, None)
        self.n_waiting += len(slots)

    def _give_room(self) -> None:
        """Answers were taken for right and wrong until now: slots have room for more categories from now on."""
        before, bits, n_people = self._pile, self.scoring.bits, 0
        self._pile, self._binary = SpillColumns(), False
        for block in self._blocks:
            row = np.repeat(np.arange(2 * block.n_persons, dtype=np.int32), np.diff(block.bounds))  # right, then wrong
            slots = slots_of(np.asarray(block.items), 1 - (row & 1), bits)
            self._pile.add((row >> 1) + np.int32(n_people), slots, None, None, None)
            n_people += block.n_persons
        self._blocks = []
        for person, codes, *others in before.used_up():
            self._pile.add(person, slots_of(codes >> 1, codes & 1, bits), *others)

    def whole_people(self, stop: int, persons: Sequence[Any] | Labels, items: Labels) -> None:
        """Pack the people before `stop`, who are complete, if answers are right or wrong; `persons` label new ones."""
        if self.scoring.above_mean or not (self._binary and len(self._pile)):
            return
        person, *others, _ = next(self._pile.used_up(np.inf))
        rows = AnswerRows(person - np.int32(self._n_people), *others)
        repeats, counts = Repeats(self.duplicates), np.bincount(rows.person, minlength=stop - self._n_people)
        self._blocks += pack_rows([rows], counts, BINARY, repeats)
        repeats.complain(persons, items, self.source)
        self._n_people, self.n_waiting, self._pile = stop, 0, SpillColumns()

    def responses(
        self,
        persons: Labels,
        items: Labels,
        person_at: FinalCodes = None,
        item_at: FinalCodes = None,
        of: tuple[Labels, Ints] | None = None,
        report: Report = lambda share: None,
    ) -> Responses:
        """All answers; `person_at` and `item_at` are the final codes of people and items, by those of the pieces, and
        `of` are the things rated and the one of each item: it has the same categories whoever rates."""
        self.check.check(self.source)
        raw, notes = self._raw(items.tolist())
        if self._blocks and not len(self._pile):
            made = Responses(tuple(self._blocks), items, persons, source=self.source)
        else:
            item_at = np.arange(len(items), dtype=np.int32) if item_at is None else item_at
            used = None if self._binary else Used(self.scoring.bits)
            sums, final = self._sums(person_at, len(persons), used), None
            known: dict[str, Any] = {"thresholds": Thresholds.ones(len(items))}
            if used is not None:
                table = used.of_items(item_at) if of is None else used_by_group(used.of_items(item_at), of[1])
                settled = settle(table, items, self.scoring, self.source, None if of is None else of[0][of[1]])
                final, self.turned = used.renaming(settled, item_at), settled.turned
                known = {"codes": settled.codes, "notes": settled.notes, "thresholds": settled.thresholds}
            pieces = self._final_rows(person_at, item_at, sums, final)
            made = self._packed(pieces, sums[0], report, persons=persons, items=items, **known)
        self.check.check_scored(made)
        return replace(made, raw=raw, notes=(*made.notes, *notes))

    def _packed(self, pieces: Iterable[AnswerRows], counts: Ints, report: Report, **known: Any) -> Responses:
        repeats, blocks, n_packed = Repeats(self.duplicates), [], 0
        for block in pack_rows(pieces, counts, known["thresholds"], repeats):
            n_packed += block.n_persons
            blocks.append(block)
            report(n_packed / len(counts))
        repeats.complain(known["persons"], known["items"], self.source)
        made = Responses(tuple(blocks), source=self.source, **known)
        if not repeats.extra:
            return made
        if self.scoring.unused != "keep" and made.codes is not None:
            made = _without_unused(made, self.scoring)
        what = "1 repeated answer was" if repeats.extra == 1 else f"{repeats.extra:,} repeated answers were"
        sentence = f"{what} left out: the {self.duplicates} answer of a person to an item counts."
        return replace(made, notes=(*made.notes, Finding("repeats_left_out", "note", sentence, number=repeats.extra)))

    def _final_rows(
        self, person_at: FinalCodes, item_at: NDArray[np.int32], sums: Sums, final: Renaming
    ) -> Iterator[AnswerRows]:
        """The answers with people and items under their final codes; the pile is used up."""
        n = np.maximum(sums[0], 1)
        mean, slack, above = sums[1] / n, SLACK * sums[2] / n, self.scoring.above_mean
        if final is None:
            final = np.stack([2 * item_at, 2 * item_at + 1], axis=1).ravel().__getitem__
        for columns in self._pile.used_up(DEALT if self._pile.spilled else 1):
            codes, slots, options, when, values = columns
            person = codes if person_at is None else person_at[codes]
            if above is None:
                yield AnswerRows(person, final(slots), options, when)
            else:
                right = (values - mean[person] > slack[person]) == (above == "right")
                yield AnswerRows(person, slots_of(item_at[slots], right, 1), None, when)

    def _sums(self, person_at: FinalCodes, n_persons: int, used: Used | None) -> Sums:
        """Answers of each person; where values are kept, sums of these and of their sizes. `used` notes categories."""
        counts, values, sizes = np.zeros(n_persons, dtype=np.int64), np.zeros(n_persons), np.zeros(n_persons)
        for person, slots, _, _, own in self._pile:
            final = person if person_at is None else person_at[person]
            counts += np.bincount(final, minlength=n_persons)
            if own is not None:
                values += np.bincount(final, own, n_persons)
                sizes += np.bincount(final, np.abs(own), n_persons)
            elif used is not None:
                used.note(slots)
        return counts, values, sizes

    def _raw(self, labels: list[Any]) -> tuple[RawAnswers | None, tuple[Finding, ...]]:
        """What is known of the answers besides right and wrong, when all were seen; and what is odd about it. An error
        when an item has no right answer in the key."""
        raw, scoring = None, self.scoring
        found: tuple[Finding, ...] = ()
        if scoring.key is not None:
            known, place = [*scoring.key.values()], positions(labels, scoring.key).tolist()
            without = [label for label, k in zip(labels, place, strict=True) if k < 0]
            if without:
                what = f"the key has no answer for {len(without):,} of the items: {listed(without)}."
                raise OptionError(f"{what} Add them to the key, or leave these items out of the data.")
            own = {label: known[k] for label, k in zip(labels, place, strict=True)}
            best = {label: max(one.values()) for label, one in own.items()}
            key = {label: "|".join(text for text, s in one.items() if s == best[label]) for label, one in own.items()}
            found = self._options.findings(text for one in own.values() for text in one)
            used = set(place)
            absent = [label for k, label in enumerate(scoring.key) if k not in used]
            if absent:  # a longer key does no harm, a misspelled label does
                items = "1 item of the key is" if len(absent) == 1 else f"{len(absent):,} items of the key are"
                said, remedy = f"{items} not among the answers: {listed(absent)}.", "Compare the labels."
                found += (Finding("key_items_not_there", "note", said, remedy, tuple(absent)),)
            raw = RawAnswers(self._options.texts, key)
        if self._blanks is not None:
            raw = replace(raw or RawAnswers(), blanks=self._blanks.counts(labels))
            found += self._blanks.findings(labels)
        return raw, found


class BlankCounter:
    """Counts blank cells of whole rows, by item, and finds those that count as wrong: before a later answer of the same
    person they were *omitted*, after the last one *not reached*. Of a row without any answer no cell is either."""

    def __init__(self, omitted: str, not_reached: str) -> None:
        self._wrong = (omitted == "wrong", not_reached == "wrong")
        self._sums = np.zeros((3, 0), dtype=np.int64)  # cells, omitted, not reached

    def wrong(self, items: NDArray[Any], width: int, answered: Ints | None, presented: Mask | None) -> Ints | None:
        """Positions of the blank cells that count as wrong, of rows with so many cells each; None for none."""
        n_items = int(items.max()) + 1 if len(items) else 0
        if self._sums.shape[1] < n_items:
            self._sums = np.pad(self._sums, ((0, 0), (0, n_items - self._sums.shape[1])))
        columns = items[:width]  # of every row
        if answered is None:
            self._sums[0, columns] += len(items) // width
            return None
        given = np.zeros(len(items), dtype=bool)
        given[answered] = True
        rows = given.reshape(-1, width)
        last = width - 1 - rows[:, ::-1].argmax(axis=1)
        before = np.arange(width) < last[:, None]
        there: NDArray[np.bool_] = np.any(rows, axis=1, keepdims=True)
        shown = np.ones(rows.shape, dtype=bool) if presented is None else presented.reshape(rows.shape)
        blank, cells = ~rows & there & shown, there & (shown | rows)
        kinds = (blank & before, blank & ~before)
        self._sums[:, columns] += [mask.sum(axis=0) for mask in (cells, *kinds)]
        chosen = np.flatnonzero((kinds[0] & self._wrong[0]) | (kinds[1] & self._wrong[1]))
        return chosen if len(chosen) else None

    def counts(self, labels: Iterable[Any]) -> dict[Any, tuple[int, int]]:
        return {label: (int(a), int(b)) for label, a, b in zip(labels, *self._sums[1:], strict=False)}

    def findings(self, labels: Iterable[Any]) -> tuple[Finding, ...]:
        """How many blanks count as wrong, and whether that looks like a mistake."""
        cells, *kinds = self._sums
        counted = np.array([n if as_wrong else 0 * n for n, as_wrong in zip(kinds, self._wrong, strict=True)])
        omitted, unreached = counted.sum(axis=1).tolist()
        if not omitted + unreached:
            return ()
        parts = [f"{n:,} {what}" for n, what in ((omitted, "omitted"), (unreached, "not-reached")) if n]
        wrong = counted.sum(axis=0)
        mostly = [label for label, n, all_ in zip(labels, wrong, cells, strict=False) if n > FORMS * all_]
        share = (omitted + unreached) / cells.sum()
        said = f"Cells that count as wrong, as asked: {' and '.join(parts)} ({share:.1%} of all)."
        found = [Finding("blanks_count_as_wrong", "note", said, number=int(omitted + unreached))]
        if mostly:
            blank = f"{count_are(len(mostly), 'item')} blank for more than half of the people"
            said = f"{blank}, and that counts as wrong: {listed(mostly)}."
            remedy = "If these items were not on everybody's form, say what stands for that with `not_presented=`, "
            remedy += '"" for the empty cell, or give a file for each form.'
            found.append(Finding("mostly_blank_items", "warning", said, remedy, tuple(mostly)))
        return tuple(found)


def refuse_blanks(scoring: Scoring, where: str) -> None:
    if "wrong" in (scoring.omitted, scoring.not_reached):
        name = "omitted" if scoring.omitted == "wrong" else "not_reached"
        raise OptionError(
            f"`{name}='wrong'` goes by the order of the cells in a table with a row for each person and a column for "
            f"each item; {where}. Leave it out, or give such a table."
        )


def _without_unused(answers: Responses, scoring: Scoring) -> Responses:
    """The answers without categories that only repeated answers were in, which were dropped."""
    counts, codes = answers.category_counts, answers.category_codes()
    if np.all(counts != 0):
        return answers
    value = np.nan_to_num(codes).astype(np.int64)
    used = np.zeros((answers.n_items, int(value.max()) + 2), dtype=bool)
    row, column = np.nonzero(np.nan_to_num(counts))
    used[row, value[row, column]] = True
    settled = settle(used, answers.items, replace(scoring, reverse=()), answers.source)
    person, item, category = answers.answers()
    category = settled.category[item, value[item, category.astype(np.int64)]]
    known = {"source": answers.source, "codes": settled.codes, "notes": settled.notes, "thresholds": settled.thresholds}
    return Responses.from_codes(person, item, category, persons=answers.persons, items=answers.items, **known)  # type: ignore[arg-type]


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
    labels = np.arange(matrix.shape[1]) if items is None else label_array(items)
    if len(labels) != matrix.shape[1]:
        raise OptionError(f"`items` has {len(labels)} labels; the table has {matrix.shape[1]} columns.")
    for wrong in (label for label in labels.tolist() if not isinstance(label, Hashable)):
        raise ReadError(f"labels of items are numbers or texts, and one is {wrong!r} ({type(wrong).__name__}).")
    twice = [label for label, n in Counter(labels.tolist()).items() if n > 1]
    if twice:
        raise ReadError(f"item labels must differ; repeated: {listed(twice)}.")
    builder = ResponsesBuilder(scoring, SOURCE, labels.tolist)
    for piece, persons in _of_sparse(matrix, labels, scoring) if sparse.issparse(matrix) else _of_dense(matrix, labels):
        builder.add(piece)
        builder.whole_people(persons.stop, persons, labels)
    return builder.responses(np.arange(matrix.shape[0]), labels)


def _of_dense(matrix: NDArray[Any], labels: Labels) -> Iterator[tuple[Piece, range]]:
    n_persons, n_items = matrix.shape
    rows = max(1, BLOCK_RESPONSES // max(n_items, 1))
    for start in range(0, n_persons, rows):
        part = matrix[start : start + rows]

        def place(k: int, start: int = start) -> Place:
            return Place(SOURCE, labels[k % n_items], start + k // n_items)

        persons = range(start, start + len(part))
        person = np.repeat(np.array(persons, dtype=np.int32), n_items)
        item = np.tile(np.arange(n_items, dtype=np.int32), len(part))
        yield Piece(person, item, plain_values(part.ravel()), place, n_items), persons


def _of_sparse(matrix: Any, labels: Labels, scoring: Scoring) -> Iterator[tuple[Piece, range]]:
    refuse_blanks(scoring, "a sparse matrix holds answers only")
    stored = sparse.coo_array(matrix)  # keeps stored zeros: they are wrong answers
    row, column = stored.row, stored.col
    if (scoring.expects_01 or scoring.undecided) and len(stored.data) and np.all(stored.data == 1):
        raise ResponseValueError(
            "every stored response of the sparse matrix is 1: its zeros, the wrong answers, were dropped on the way. "
            "Store them explicitly (for instance with Responses.from_long), or pass a dense array."
        )
    values = plain_values(stored.data)
    yield (Piece(row, column, values, lambda k: Place(SOURCE, labels[column[k]], int(row[k]))), range(stored.shape[0]))


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


def turned(responses: Responses) -> Responses:
    responses.right_and_wrong_only()
    person, item, right = responses.answers()
    names = ("source", "frame_kind", "notes", "raw", "engine")
    known = {name: getattr(responses, name) for name in names} | {"words": responses.words[::-1]}
    return Responses.from_codes(item, person, right, persons=responses.items, items=responses.persons, **known)
