"""Pieces of raw answers -> Responses, in one pass: whatever the source, they are scored and packed here.

Right and wrong answers of whole people are packed as they come. Where there are more categories, those that an item
has are known only when all were seen: until then the answers lie in a pile, which may be on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Block, Ints
from spectral_irt.data.categories import Settled, Used, settle
from spectral_irt.data.choices import BLANK, BlankCounter, OptionCoder, RawAnswers
from spectral_irt.data.finding import Finding
from spectral_irt.data.labels import SUSPECTS, Labels, as_series, one_spelling, positions
from spectral_irt.data.packing import Duplicates, Pile, Repeats, Rows, in_pieces, pack_rows, slots_of, stored
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import Answers, Scoring, means_of
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.errors import NAMED, OptionError, ResponseValueError, listed

if TYPE_CHECKING:
    from spectral_irt.data.scoring import Values

LONGEST_SHOWN = 60  # characters of a value that a message repeats
TIMES = range(2, 11)  # factors that may make fractions of points whole


class Place(NamedTuple):
    """Where a value stands, in the person's words."""

    name: str
    column: Any
    row: int


@dataclass
class Survey:
    """What was met among the raw values: the odd ones, and the range. `check` complains when all were seen."""

    scoring: Scoring
    low: float = np.inf
    high: float = -np.inf
    n_odd: int = 0
    odd: dict[str, None] = field(default_factory=dict)
    first: tuple[Place, str] | None = None
    fraction: tuple[Place, str] | None = None  # the first, where 0/1 was expected: no ordered category either
    columns: set[Any] = field(default_factory=set)  # of the first odd values
    examples: list[str] = field(default_factory=list)
    wide: bool = False  # columns are items, so that an odd value may mean that one is not
    n_columns: int = 0  # how many there are

    def answers(self, values: Values, place: Callable[[int], Place]) -> Answers:
        """The answers among the values of one piece, taking note of them; `place` says where its k-th value stands."""
        found = self.scoring.clean(values)
        if found.odd is not None:
            self._note_odd(values, np.flatnonzero(found.odd), place)
        elif self.scoring.threshold is not None and len(found.values):
            self.low = min(self.low, float(found.values.min()))  # type: ignore[arg-type]
            self.high = max(self.high, float(found.values.max()))  # type: ignore[arg-type]
        elif self.scoring.compares_text and not self.examples:
            self.examples = as_series(found.values).unique(maintain_order=True).head(NAMED + 1).to_list()
        return found

    def _note_odd(self, values: Values, where: Ints, place: Callable[[int], Place]) -> None:
        texts = one_spelling(as_series(values[where]))
        if self.first is None:
            self.first = (place(int(where[0])), texts[0])
        kinds = texts.unique(maintain_order=True)
        if self.fraction is None and self.scoring.expects_01:
            broken = next(filter(_is_fraction, kinds), None)
            if broken is not None:
                self.fraction = (place(int(where[(texts == broken).arg_max()])), broken)
        strange = where[~texts.is_in(list(SUSPECTS)).to_numpy()]  # an item may hold codes for "not answered"
        self.columns |= {place(k).column for k in strange[:20].tolist()}
        self.n_odd += len(texts)
        self.odd |= dict.fromkeys(kinds.head(1000).to_list())

    def check(self, name: str) -> None:
        """Raise when some value was odd, or when the threshold leaves nothing to compare."""
        if self.first is not None:
            raise ResponseValueError(self._odd_sentence())
        threshold = self.scoring.threshold
        if threshold is not None and self.low <= self.high and not self.low <= threshold < self.high:
            effect = "none is" if threshold >= self.high else "all are"
            raise OptionError(
                f"`threshold` is {threshold:g}, and the responses in {name} run from {self.low:g} to {self.high:g}, "
                f"so {effect} above it; choose a threshold of at least {self.low:g} and less than {self.high:g}."
            )

    def check_key(self, items: Iterable[Any]) -> None:
        """Raise when an item has no right answer in the key; items of the key that nobody saw do no harm."""
        if self.scoring.key is not None:
            items = list(items)
            place = positions(items, self.scoring.key)
            absent = [item for item, k in zip(items, place, strict=True) if k < 0]
            if absent:
                raise OptionError(
                    f"the key has no answer for {len(absent):,} of the items: {listed(absent)}. Add them to the key, "
                    "or leave these items out of the data."
                )

    def check_scored(self, responses: Responses) -> None:
        """`check_key`; and raise when no answer at all agrees with the right ones: they are spelled differently."""
        self.check_key(responses.items)
        if not self.scoring.compares_text or responses.scores.any() or not responses.n_responses:
            return
        if self.scoring.correct is not None:
            said: str = f"`correct` is {listed(self.scoring.correct)}"
        else:
            options = dict.fromkeys(text for one in (self.scoring.key or {}).values() for text in one)
            said = f"the key holds {listed(options)}"
        raise OptionError(
            f"{said}, but no response agrees with it; the responses are {listed(self.examples)}. Check the spelling, "
            "capitals included."
        )

    def _odd_sentence(self) -> str:
        assert self.first is not None
        place, text = self.fraction or self.first
        kinds = sorted(self.odd, key=lambda kind: not _is_fraction(kind)) if self.fraction else list(self.odd)
        values = "value" if self.n_odd == 1 else "values"
        what = ", a fraction" if self.fraction else ""
        sentence: str = (
            f"{place.name}: column {listed([place.column])}, row {place.row:,} holds {_shown(text)}{what}, which is "
            f"{self.scoring.expected} ({self.n_odd:,} such {values}: {', '.join(map(_shown, kinds[:NAMED]))}"
            f"{f' and {len(kinds) - NAMED:,} more' if len(kinds) > NAMED else ''})."
        )
        codes = _missing_codes(kinds)
        if codes:
            mean = "means" if len(codes) == 1 else "mean"
            said = f"`missing={codes[0] if len(codes) == 1 else codes!r}`"
            sentence += f" If {' and '.join(codes)} {mean} 'not answered', say " + said + "."
        if len(codes) < len(kinds):
            sentence += _of_fractions(kinds) if self.fraction else self.scoring.how_to
            if self.wide and self.columns and (len(self.columns) == 1 or 2 * len(self.columns) < self.n_columns):
                sentence += self._no_items()
        return sentence

    def _no_items(self) -> str:
        names = sorted(map(str, self.columns))
        if len(names) == 1:
            return (
                f" If the column is not an item, say `ignore={names[0]!r}`, or name it with `person={names[0]!r}` if "
                "it labels the people; if a row is one answer, say `item=` and `response=`."
            )
        return f" If the columns {listed(names)} are not items, say `ignore={names!r}`."


def _of_fractions(kinds: list[str]) -> str:
    """What to do about answers that are fractions: a threshold, or whole categories."""
    numbers = np.array([float(kind) for kind in kinds if _is_number(kind)])
    times = next((k for k in TIMES if np.allclose(numbers * k, np.rint(numbers * k), atol=1e-9)), None)
    whole = (
        "give each grade a whole number from 0 on"
        if times is None
        else f"multiply them by {times}, so that they are whole"
    )
    return (
        " Say `threshold=` to count the answers above it as right and the others as wrong (`above_mean=` for "
        f"ratings); or {whole}, to fit them as ordered answers with `SpectralPartialCredit`."
    )


def _is_fraction(text: str) -> bool:
    return _is_number(text) and np.isfinite(float(text)) and not float(text).is_integer()


def _missing_codes(kinds: list[str]) -> list[str]:
    """Values that look like codes for "not answered"; among other numbers 9 is more likely a rating."""
    codes = [kind for kind in kinds if kind in SUSPECTS]
    if any(_is_number(kind) and kind not in SUSPECTS for kind in kinds):
        return [code for code in codes if not _is_number(code)]
    return codes


def _is_number(text: str) -> bool:
    return _shown(text) == text


def _shown(text: str) -> str:
    """Numbers as they are, other text in quotes; of a very long one, the beginning."""
    if len(text) > LONGEST_SHOWN:
        return f"{_shown(text[:LONGEST_SHOWN])}... ({len(text):,} characters)"
    try:
        float(text)
    except ValueError:
        return repr(text)
    return text


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
    """Takes the answers of pieces, and packs them."""

    def __init__(self, scoring: Scoring, source: str, *, wide: bool, duplicates: Duplicates = "error") -> None:
        self.scoring, self.source, self.duplicates = scoring, source, duplicates
        self.survey = Survey(scoring, wide=wide)
        self._options = OptionCoder()
        self._blanks: BlankCounter | None = None
        self._blocks: list[Block] = []
        self._pile, self._used = Pile(), Used(scoring.bits)
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

    def whole_people(self, persons: Labels, items: Labels) -> None:
        """What is waiting are all the answers of these people, who come next."""
        if not self._answers:
            return
        rows = self._rows(len(persons), items)
        if self.scoring.graded:
            self._used.note(rows.slots)
        if not self._right_or_wrong:
            self._keep(rows)
        else:
            rows = rows._replace(slots=right_or_wrong(rows.slots, self.scoring.bits))
            repeats, counts = Repeats(), np.bincount(rows.person, minlength=len(persons))
            blocks = pack_rows(in_pieces(rows), counts, duplicates=self.duplicates, repeats=repeats)
            self._blocks += map(stored, blocks)
            repeats.complain(persons, items, self.source)
        self._n_people += len(persons)

    def responses(
        self, persons: Labels, items: Labels, recode: Callable[[Codes, Codes], tuple[Codes, Codes]] | None = None
    ) -> Responses:
        """All answers; `recode` makes codes of people and items from those of the pieces that are waiting."""
        if self._answers:
            rows = self._rows(len(persons), items, recode)
            if not self.scoring.graded:
                counts = np.bincount(rows.person, minlength=len(persons))
                return packed(in_pieces(rows), counts, persons, items, self.scoring, self.duplicates, self.source)
            self._used.note(rows.slots)
            self._keep(rows)
        if self._right_or_wrong and not len(self._pile):
            return Responses(tuple(self._blocks), items, persons, source=self.source)
        counts = np.zeros(len(persons), dtype=np.int64)
        for person, *_ in self._pile:
            counts += np.bincount(person, minlength=len(persons))  # type: ignore[arg-type]
        same = np.arange(len(items))
        settled = settle(self._used.of_items(same), items, self.scoring, self.source)
        final = self._used.renaming(settled, same)
        rows_of = (Rows(*columns) for columns in self._pile.used_up())  # type: ignore[arg-type]
        pieces = (rows._replace(slots=final(rows.slots)) for rows in rows_of)
        return packed(pieces, counts, persons, items, self.scoring, self.duplicates, self.source, settled)

    @property
    def _right_or_wrong(self) -> bool:
        """Whether no answer so far can be in a category above 1."""
        return not self.scoring.graded or (self.scoring.undecided and not self._used.several)

    def _keep(self, rows: Rows) -> None:
        n_before = 0
        for block in self._blocks:  # taken for right and wrong, until a category was seen
            row = np.repeat(np.arange(2 * block.n_persons, dtype=np.int32), np.diff(block.bounds))  # right, then wrong
            slots = slots_of(np.asarray(block.items), 1 - (row & 1), self.scoring.bits)
            self._pile.add(*Rows((row >> 1) + np.int32(n_before), slots))
            n_before += block.n_persons
        self._blocks = []
        self._pile.add(*rows._replace(person=rows.person + np.int32(self._n_people)))

    def _rows(
        self,
        n_persons: int,
        items: Labels,
        recode: Callable[[Codes, Codes], tuple[Codes, Codes]] | None = None,
    ) -> Rows:
        """The answers that are waiting, scored; blank cells that count as wrong are in category 0."""
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
        slots = slots_of(item, np.int32(0), scoring.bits)
        slots[:n] |= category
        if options is not None and len(item) > n:
            options = np.concatenate([options, np.full(len(item) - n, BLANK, dtype=np.uint8)])
        return Rows(person.astype(np.int32, copy=False), slots, options)

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
    pieces: Iterable[Rows],
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
    if settled is None:
        return made
    made = replace(made, codes=settled.codes, notes=settled.notes)
    again = repeats.extra and scoring.unused != "keep" and settled.codes is not None
    return _without_unused(made, scoring) if again else made


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


def right_or_wrong(slots: NDArray[np.int32], bits: int) -> NDArray[np.int32]:
    """Slots with a single bit for the category, which is 0 or 1."""
    return slots if bits == 1 else ((slots >> bits) << 1) | (slots & 1)


def _joined(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import polars as pl

    return pl.concat(parts)
