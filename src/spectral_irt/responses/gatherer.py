"""Pieces of raw answers -> Responses, in one pass: whatever the source, they are scored and packed here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import OptionError, listed, option
from spectral_irt.responses.findings import Finding
from spectral_irt.responses.labels import Labels, positions
from spectral_irt.responses.ordered import in_order
from spectral_irt.responses.ordered_scoring import WIDTH, OrderedScoring
from spectral_irt.responses.pack import Duplicates
from spectral_irt.responses.raw_answers import BLANK, BlankCounter, OptionCoder, RawAnswers
from spectral_irt.responses.responses import Responses
from spectral_irt.responses.scorer import Scoring, means_of
from spectral_irt.responses.survey import Place, Survey

if TYPE_CHECKING:
    from spectral_irt.responses.scorer import Answers, Values

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


class Gatherer:
    """Takes the answers of pieces, and packs what it has when told to."""

    def __init__(self, scoring: Scoring, source: str, *, wide: bool, duplicates: Duplicates = "error") -> None:
        self.scoring, self.source, self.duplicates = scoring, source, duplicates
        self.survey = Survey(scoring, wide=wide)
        self._options = OptionCoder()
        self._blanks: BlankCounter | None = None
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
        answers = self.survey.answers(piece.values, piece.place)
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

    def pack(
        self, users: Labels, items: Labels, recode: Callable[[Codes, Codes], tuple[Codes, Codes]] | None = None
    ) -> Responses:
        """The answers since the last time; `recode` makes codes of people and items from those of the pieces."""
        if not self._answers:
            return Responses((), items, users)
        blank_person, blank_item = zip(*self._wrong, strict=True) if self._wrong else ((), ())
        person, item = _joined([*self._person, *blank_person]), _joined([*self._item, *blank_item])
        if recode is not None:
            person, item = recode(person, item)
        answers, scoring = _joined(self._answers), self.scoring
        self._forget()
        if isinstance(scoring, OrderedScoring):
            codes = scoring.codes(answers, item, items, self.source)
            return coded_responses(person, codes, users, items, self.duplicates, self.source)
        means = means_of(person, answers, len(users)) if scoring.above_mean else None
        keys = scoring.keys_of(items)
        n = len(answers)
        right = scoring.right(answers, items=item[:n], users=person[:n], keys=keys, means=means)
        options = None if keys is None else self._options.codes(answers, right)
        if len(item) > n:  # blank cells that count as wrong
            right = np.concatenate([right, np.zeros(len(item) - n, dtype=bool)])
            if options is not None:
                options = np.concatenate([options, np.full(len(item) - n, BLANK, dtype=np.uint8)])
        return Responses.from_codes(
            person,
            item,
            right,
            options,
            users=users,
            items=items,
            duplicates=self.duplicates,
            source=self.source,
        )

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
    answers = [*scoring.key.values(), None]
    place = positions(labels, scoring.key)
    right = {label: answers[k] for label, k in zip(labels, place.tolist(), strict=True)}
    key = {label: text for label, text in right.items() if text is not None}
    unused = np.ones(len(scoring.key), dtype=bool)
    unused[place[place >= 0]] = False
    absent = [label for label, one in zip(scoring.key, unused.tolist(), strict=True) if one]
    return RawAnswers(options.texts, key), (*options.findings(key), *_not_there(absent))


def _not_there(absent: list[Any]) -> tuple[Finding, ...]:
    """A note on items of the key that the data do not have: a longer key does no harm, a misspelled label does."""
    if not absent:
        return ()
    items = "1 item of the key is" if len(absent) == 1 else f"{len(absent):,} items of the key are"
    return (
        Finding(
            "key_items_not_there",
            "note",
            f"{items} not among the answers: {listed(absent)}.",
            "Compare the labels if they should be.",
            tuple(absent),
        ),
    )


def refuse_blanks(scoring: Scoring, where: str) -> None:
    """Complain where blank cells have no place in the test."""
    if scoring.counts_blanks:
        name = "omitted" if scoring.omitted == "wrong" else "not_reached"
        raise OptionError(
            option(name, "wrong"),
            " goes by the order of the cells in a table with a row for each person and a column for each item; "
            f"{where}. Leave it out, or give such a table.",
        )


def coded_responses(
    person: Codes, codes: Codes, users: Labels, items: Labels, duplicates: Duplicates, source: str
) -> Responses:
    """Ordered answers under one code each, WIDTH times the item plus the category; see `read_ordered.decoded`."""
    item, category = codes // WIDTH, codes % WIDTH
    person, item, category = in_order(person, item, category, duplicates, users, items, source)
    codes = item * WIDTH + category
    return Responses.from_codes(person, codes, np.ones(len(codes), dtype=bool), users=users, items=items, source=source)


def _joined(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import polars as pl

    return pl.concat(parts)
