"""Pieces of raw answers -> Responses, in one pass: whatever the source, they are scored and packed here.

Right and wrong answers of whole people are packed as they come. Where there are more categories, those that an item
has are known only when all were seen: until then the answers lie in a pile, which may be on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Block, Ints
from spectral_irt.data.categories import Settled, Used, settle
from spectral_irt.data.choices import BLANK, BlankCounter, OptionCoder, RawAnswers
from spectral_irt.data.finding import Finding
from spectral_irt.data.labels import Labels, positions
from spectral_irt.data.packing import (
    AnswerRows,
    Duplicates,
    Repeats,
    SpillColumns,
    in_pieces,
    pack_rows,
    slots_of,
    stored,
)
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import Answers, Scoring, means_of
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.data.value_check import Place, ValueCheck
from spectral_irt.errors import OptionError, listed

if TYPE_CHECKING:
    from spectral_irt.data.scoring import Values

Codes = NDArray[np.integer[Any]]


class Piece(NamedTuple):
    """Raw values, the codes of the person and the item of each, and where the k-th of them stands.

    With a `width` they are whole rows of so many cells, one for each person, in the order of the test.
    """

    person: Codes
    item: Codes
    values: Values
    place: Callable[[int], Place]
    width: int | None = None


class ResponsesBuilder:
    """Takes pieces of raw answers, scores and packs them."""

    def __init__(self, scoring: Scoring, source: str, *, wide: bool, duplicates: Duplicates = "error") -> None:
        self.scoring, self.source, self.duplicates = scoring, source, duplicates
        self.check = ValueCheck(scoring, wide=wide)
        self._options = OptionCoder()
        self._blanks: BlankCounter | None = None
        self._blocks: list[Block] = []  # of right and wrong answers
        self._pile, self._used = SpillColumns(), Used(scoring.bits)  # of answers in several categories
        self._n_people = 0  # in the blocks, or in the pile
        self._forget()

    def _forget(self) -> None:
        self._person: list[Codes] = []
        self._item: list[Codes] = []
        self._answers: list[Values] = []
        self._wrong: list[tuple[Codes, Codes]] = []  # blank cells

    @property
    def n_waiting(self) -> int:
        return sum(map(len, self._answers)) + sum(len(person) for person, _ in self._wrong)

    def add(self, piece: Piece) -> None:
        answers = self.check.answers(piece.values, piece.place)
        self._person.append(answers.of(piece.person))
        self._item.append(answers.of(piece.item))
        self._answers.append(answers.values)
        if piece.width is not None:
            self._count_blanks(piece, piece.width, answers)

    def _count_blanks(self, piece: Piece, width: int, answers: Answers) -> None:
        how = self.scoring
        self._blanks = self._blanks or BlankCounter(how.omitted, how.not_reached)
        presented = None if answers.answered is None else how.presented(piece.values)
        wrong = self._blanks.wrong(piece.item, width, answers.answered, presented)
        if wrong is not None:
            self._wrong.append((piece.person[wrong], piece.item[wrong]))

    def whole_people(self, persons: Labels, items: Labels) -> None:
        """What is waiting are all the answers of these people, who come next."""
        if not self._answers:
            return
        rows, binary = self._rows(len(persons), items)
        if binary:
            repeats, counts = Repeats(), np.bincount(rows.person, minlength=len(persons))
            blocks = pack_rows(in_pieces(rows), counts, duplicates=self.duplicates, repeats=repeats)
            self._blocks += map(stored, blocks)
            repeats.complain(persons, items, self.source)
        else:
            self._keep(rows)
        self._n_people += len(persons)

    def responses(
        self, persons: Labels, items: Labels, recode: Callable[[Codes, Codes], tuple[Codes, Codes]] | None = None
    ) -> Responses:
        """All answers; `recode` makes codes of people and items from those of the pieces that are waiting."""
        if self._answers:
            rows, binary = self._rows(len(persons), items, recode)
            if binary:
                counts = np.bincount(rows.person, minlength=len(persons))
                return packed(in_pieces(rows), counts, persons, items, self.scoring, self.duplicates, self.source)
            self._keep(rows)
        if self._blocks or not self.scoring.graded:
            return Responses(tuple(self._blocks), items, persons, source=self.source)
        counts = np.zeros(len(persons), dtype=np.int64)
        for person, *_ in self._pile:
            counts += np.bincount(person, minlength=len(persons))  # type: ignore[arg-type]
        same = np.arange(len(items))
        settled = settle(self._used.of_items(same), items, self.scoring, self.source)
        final = self._used.renaming(settled, same)
        rows_of = (AnswerRows(*columns) for columns in self._pile.used_up())  # type: ignore[arg-type]
        pieces = (rows._replace(slots=final(rows.slots)) for rows in rows_of)
        return packed(pieces, counts, persons, items, self.scoring, self.duplicates, self.source, settled)

    def _keep(self, rows: AnswerRows) -> None:
        """Put answers in several categories on the pile, after those that were taken for right and wrong until now."""
        n_before = 0
        for block in self._blocks:
            row = np.repeat(np.arange(2 * block.n_persons, dtype=np.int32), np.diff(block.bounds))  # right, then wrong
            slots = slots_of(np.asarray(block.items), 1 - (row & 1), self.scoring.bits)
            self._add(AnswerRows((row >> 1) + np.int32(n_before), slots))
            n_before += block.n_persons
        self._blocks = []
        self._add(rows._replace(person=rows.person + np.int32(self._n_people)))

    def _add(self, rows: AnswerRows) -> None:
        self._used.note(rows.slots)
        self._pile.add(*rows)

    def _rows(
        self, n_persons: int, items: Labels, recode: Callable[[Codes, Codes], tuple[Codes, Codes]] | None = None
    ) -> tuple[AnswerRows, bool]:
        """The answers that are waiting, scored, and whether they are right and wrong ones, of one bit each, as all
        before them; blank cells that count as wrong are in category 0."""
        blank_person, blank_item = zip(*self._wrong, strict=True) if self._wrong else ((), ())
        person, item = _joined([*self._person, *blank_person]), _joined([*self._item, *blank_item])
        if recode is not None:
            person, item = recode(person, item)
        answers, scoring = _joined(self._answers), self.scoring
        self._forget()
        means = means_of(person, answers, n_persons) if scoring.above_mean else None
        keys = scoring.keys_of(items)
        n = len(answers)
        category = scoring.category(answers, items=item[:n], persons=person[:n], keys=keys, means=means)
        options = None if keys is None else self._options.codes(answers, category == keys.best[item[:n]])
        undecided = scoring.undecided and not len(self._pile)
        binary = not scoring.graded or (undecided and int(category.max(initial=0)) <= 1)
        slots = slots_of(item, np.int32(0), 1 if binary else scoring.bits)
        slots[:n] |= category
        if options is not None and len(item) > n:
            options = np.concatenate([options, np.full(len(item) - n, BLANK, dtype=np.uint8)])
        return AnswerRows(person.astype(np.int32, copy=False), slots, options), binary

    def raw(self, items: Labels) -> tuple[RawAnswers | None, tuple[Finding, ...]]:
        """What is known of the answers besides right and wrong, when all are packed; and what is odd about it."""
        labels = items.tolist()
        raw, found = raw_answers(self.scoring, self._options, labels)
        if self._blanks is not None:
            wrong = self._blanks.counted_wrong
            raw = replace(raw or RawAnswers(), blanks=self._blanks.counts(labels), counted_wrong=(wrong[0], wrong[1]))
            found += self._blanks.findings(labels)
        return raw, found


def raw_answers(
    scoring: Scoring, options: OptionCoder, labels: list[Any]
) -> tuple[RawAnswers | None, tuple[Finding, ...]]:
    """The options and their key, if there is one; and what is odd about them."""
    if scoring.key is None:
        return None, ()
    place = positions(labels, scoring.key)
    known = [*scoring.key.values()]
    own = {label: known[k] for label, k in zip(labels, place.tolist(), strict=True) if k >= 0}
    key = {label: "|".join(text for text, s in one.items() if s == max(one.values())) for label, one in own.items()}
    unused = np.ones(len(scoring.key), dtype=bool)
    unused[place[place >= 0]] = False
    absent = [label for label, one in zip(scoring.key, unused.tolist(), strict=True) if one]
    return RawAnswers(options.texts, key), (
        *options.findings(text for one in own.values() for text in one),
        *([_not_there(absent)] if absent else []),
    )


def _not_there(absent: list[Any]) -> Finding:
    """A note on items of the key that the data do not have: a longer key does no harm, a misspelled label does."""
    items = "1 item of the key is" if len(absent) == 1 else f"{len(absent):,} items of the key are"
    sentence = f"{items} not among the answers: {listed(absent)}."
    return Finding("key_items_not_there", "note", sentence, "Compare the labels if they should be.", tuple(absent))


def refuse_blanks(scoring: Scoring, where: str) -> None:
    """Complain where blank cells have no place in the test."""
    if scoring.counts_blanks:
        name = "omitted" if scoring.omitted == "wrong" else "not_reached"
        raise OptionError(
            f"`{name}='wrong'` goes by the order of the cells in a table with a row for each person and a column for "
            f"each item; {where}. Leave it out, or give such a table."
        )


def packed(
    pieces: Iterable[AnswerRows],
    counts: Ints,
    persons: Labels,
    items: Labels,
    scoring: Scoring,
    duplicates: Duplicates,
    source: str,
    settled: Settled | None = None,
    report: Callable[[float], None] = lambda share: None,
) -> Responses:
    """Responses from pieces of rows in any order; `counts` are the answers of each person, `settled` the categories."""
    thresholds = Thresholds.ones(len(items)) if settled is None else settled.thresholds
    repeats, blocks, n_packed = Repeats(), [], 0
    for block in pack_rows(pieces, counts, thresholds, duplicates=duplicates, repeats=repeats):
        n_packed += block.n_persons
        blocks.append(stored(block))
        report(n_packed / len(persons))
    if duplicates == "error":
        repeats.complain(persons, items, source)
    made = Responses(tuple(blocks), items, persons, source=source, thresholds=thresholds)
    if settled is not None:
        made = replace(made, codes=settled.codes, notes=settled.notes)
        if repeats.extra and scoring.unused != "keep" and settled.codes is not None:
            made = _without_unused(made, scoring)
    if not repeats.extra:
        return made
    what = "1 repeated answer was" if repeats.extra == 1 else f"{repeats.extra:,} repeated answers were"
    sentence = f"{what} left out: the {duplicates} answer of a person to an item counts."
    return replace(made, notes=(*made.notes, Finding("repeats_left_out", "note", sentence)))


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
    made = Responses.from_codes(
        person, item, category, persons=answers.persons, items=answers.items, thresholds=settled.thresholds
    )
    return replace(made, source=answers.source, codes=settled.codes, notes=settled.notes)


def _joined(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import polars as pl

    return pl.concat(parts)
