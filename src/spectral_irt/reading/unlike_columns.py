"""Columns of a wide table whose values are unlike those of most columns: ages among answers, words among numbers.

Most columns must be alike for that. What most hold is the *family*: a few codes (0 and 1; 1 to 5), or the same words.
A column is left out of the items where a rule says so, and doubted where it may be an item after all. Nothing is said
of a column that has stray values only: a code for a missing answer or a typing error is a matter of that answer.

`item_columns.py` asks where nobody named the items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from spectral_irt.data.labels import SUSPECTS, one_spelling
from spectral_irt.reading.frame import Table, is_plain
from spectral_irt.text import listed

WIDEST = 1000  # columns of tables whose values are compared; and different values of a column that are counted
RIGHT_WRONG = frozenset({"0", "1"})
FEWEST_ALIKE = 5  # columns that make a family of items
FEWEST_RATED = 2  # columns of ratings beside which a column of words is none
MOST = 0.7  # of the columns, the share that makes one
FEW_VALUES = 12  # different values of an item, at most
ENOUGH = 50  # answers in a column below which a value that is not there says nothing
USUAL = 0.2  # share of the family's columns that hold a value of the family
INSIDE = 0.2  # of a column's values that are in the family, at least
STRAY = 0.05  # of a column's values that are typing errors, at most

Held = dict[int, str]  # what a column holds, by its position


class Unlike(NamedTuple):
    """Columns to be left out and to be doubted, with what they hold; and what most columns hold, nothing where most are
    not alike."""

    left_out: Held = {}  # noqa: RUF012
    doubtful: Held = {}  # noqa: RUF012
    usual: str = ""


class NumberInText(NamedTuple):
    """A value that is a number, as it is written, and how often it is there."""

    number: float
    text: str
    times: int


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """How often each value stands in a column, and what follows from it."""

    texts: Counter[str] = field(default_factory=Counter)

    @cached_property
    def numbers(self) -> list[NumberInText]:
        """The values that are numbers."""
        return [
            NumberInText(number, text, times)
            for text, times in self.texts.items()
            if (number := number_of(text)) is not None
        ]

    @property
    def _n_numbers(self) -> int:
        return sum(value.times for value in self.numbers)

    @cached_property
    def holds_words(self) -> bool:
        """Numbers are fewer than strays could be."""
        return self._n_numbers < INSIDE * self.texts.total()

    @cached_property
    def holds_fractions(self) -> bool:
        """Numbers, more of them broken than typing errors could be."""
        if self.holds_words or not self._n_numbers:
            return False
        broken = [value for value in self.numbers if np.isfinite(value.number) and not value.number.is_integer()]
        return sum(value.times for value in broken) >= STRAY * self._n_numbers

    @cached_property
    def codes(self) -> dict[float, int]:
        """How often each code is there, but for those that mean that there was no answer; none of a column of words or
        of fractions."""
        if self.holds_words or self.holds_fractions:
            return {}
        return {value.number: value.times for value in self.numbers if value.text not in SUSPECTS}

    @property
    def usual_codes(self) -> set[float]:
        """The codes that are there more often than typing errors could be."""
        n = sum(self.codes.values())
        return {code for code, times in self.codes.items() if times >= STRAY * n}

    @property
    def has_few_codes(self) -> bool:
        return 0 < len(self.codes) <= FEW_VALUES

    def __str__(self) -> str:
        """What it holds, in words."""
        if self.holds_words:
            return f"words ({listed(sorted(self.texts)[:3])})"
        if self.holds_fractions:
            return "fractions"
        if len(self.codes) > FEW_VALUES:
            return f"{len(self.texts):,} values"
        codes = sorted(self.codes)
        held = {value.number for value in self.numbers}
        while codes and codes[-1] + 1 in held:  # 9 says no answer beside 1 to 5, and follows on 8
            codes.append(codes[-1] + 1)
        return f"the codes {range_in_words(codes)}"


def unlike_the_others(
    values: Mapping[int, Counter[str]], suspected: Sequence[int], numbered: Collection[int] = ()
) -> Unlike:
    """Columns whose values are unlike those of most. A column that is `suspected` for its name has no value that the
    others do not have; one that is `numbered` as most columns are is likely an item of which nobody used a category."""
    enough = max(FEWEST_ALIKE, MOST * len(values))
    if set().union(*values.values()) <= RIGHT_WRONG:  # as it mostly is
        n_filled = sum(map(bool, values.values()))
        return Unlike(usual="0 and 1" if n_filled >= enough else "")
    columns = {k: ColumnValues(texts) for k, texts in values.items()}
    if sum(column.holds_words for column in columns.values()) >= enough:
        return _unlike_words(columns)
    family = _Family.of([column.codes for column in columns.values() if column.has_few_codes], enough)
    if family is None:
        return Unlike()
    left_out = {k: str(column) for k, column in columns.items() if column.holds_words or column.holds_fractions}
    doubtful: Held = {}
    for k, column in columns.items():
        if not column.codes:
            continue
        lacks_lowest = k in numbered and family.lacks_lowest(column.codes)
        excluded = family.excludes(column.codes) and not lacks_lowest
        if excluded or (k in suspected and family.share_outside(column.codes)):
            left_out[k] = str(column)
        elif lacks_lowest or family.doubts(column.codes):
            doubtful[k] = str(column)
    apart = left_out.keys() | doubtful.keys()
    held = set(family.codes).union(*(column.usual_codes for k, column in columns.items() if k not in apart))
    return Unlike(left_out, doubtful, range_in_words(sorted(held)))


def words_beside_numbers(values: Mapping[int, Counter[str]]) -> Unlike:
    """Columns of words beside ratings, of which there may be two or three: a remark, a language, the day."""
    columns = {k: ColumnValues(texts) for k, texts in values.items() if texts}
    words = {k: str(column) for k, column in columns.items() if column.holds_words}
    return Unlike(words) if len(columns) - len(words) >= FEWEST_RATED else Unlike()


def _unlike_words(columns: Mapping[int, ColumnValues]) -> Unlike:
    """Where most columns hold words: those with numbers, and those with other words."""
    with_words = {k: column.texts for k, column in columns.items() if column.holds_words}
    n_columns = Counter(text for texts in with_words.values() for text in texts)
    usual = sorted(text for text, n in n_columns.items() if n >= USUAL * len(with_words))
    if not usual:
        return Unlike()
    left_out = {k: "numbers" for k, column in columns.items() if k not in with_words and column.texts}
    for k, texts in with_words.items():
        if sum(texts[text] for text in usual) < INSIDE * texts.total():
            left_out[k] = str(columns[k])
    return Unlike(left_out, {}, f"words ({listed(usual[:3])})")


@dataclass(frozen=True)
class _Family:
    """The codes that most columns hold, from the lowest to the highest; whether most columns hold more than two of
    several codes, and whether most hold a zero."""

    codes: list[float]
    is_graded: bool
    has_zeros: bool

    @classmethod
    def of(cls, columns: Sequence[Mapping[float, int]], enough: float) -> _Family | None:
        """The family of these columns of few codes; None where they are fewer than enough, or not alike."""
        if len(columns) < enough:
            return None
        holders = Counter(code for codes in columns for code in codes)
        family = sorted(code for code, n in holders.items() if n >= USUAL * len(columns))
        if family in ([0.0], [1.0]):  # most items are all right, or all wrong
            family = [0.0, 1.0]
        if not 0 < len(family) <= FEW_VALUES:
            return None
        most = MOST * len(columns)
        is_graded = family[-1] > family[0] + 2 and sum(len(codes) > 2 for codes in columns) >= most
        return cls(family, is_graded, has_zeros=holders[0] >= most)

    @property
    def low(self) -> float:
        return self.codes[0]

    @property
    def high(self) -> float:
        return self.codes[-1]

    def share_outside(self, codes: Mapping[float, int]) -> float:
        """Of a column's values, those below the lowest or above the highest code of the family."""
        outside = sum(times for code, times in codes.items() if not self.low <= code <= self.high)
        return outside / sum(codes.values())

    def excludes(self, codes: Mapping[float, int]) -> bool:
        """Whether a column with these codes is none of the family, by any of the rules."""
        rules = (self._is_elsewhere, self._has_codes_from_1, self._has_other_codes)
        return any(rule(codes) for rule in rules)

    def _is_elsewhere(self, codes: Mapping[float, int]) -> bool:
        return self.share_outside(codes) > 1 - INSIDE

    def _has_codes_from_1(self, codes: Mapping[float, int]) -> bool:
        """1 and 2, where the others have 0 and 1: sex, or yes and no."""
        return self.low == 0 and self.has_zeros and sorted(codes) == [1, 2] and sum(codes.values()) >= ENOUGH

    def _has_other_codes(self, codes: Mapping[float, int]) -> bool:
        """More values outside than typing errors, in a column that is unlike the family in some other way, too."""
        n_above = sum(code > self.high for code in codes)
        has_gap = max(codes) - self.high > n_above  # 14 follows 2 with a gap, 3 and 4 without
        unlike = len(codes) > FEW_VALUES or self.low > 0 or min(codes) != self.low or has_gap
        return unlike and self.share_outside(codes) >= STRAY

    def lacks_lowest(self, codes: Mapping[float, int]) -> bool:
        """1 and 2, where the others have 0 to 2 or more: sex, or an item of which nobody used the lowest category."""
        return self._has_codes_from_1(codes) and not self.share_outside(codes)

    def doubts(self, codes: Mapping[float, int]) -> bool:
        """Whether a column of the family may be none: further categories, or two where the others have several."""
        has_further = len(self.codes) > 2 and self.share_outside(codes) >= STRAY
        has_two = self.is_graded and len(codes) <= 2 and sum(codes.values()) >= ENOUGH
        return has_further or has_two


def values_of(table: Table, columns: Sequence[int], missing: Sequence[str], every_row: bool) -> dict[int, Counter[str]]:
    """How often each value stands in each column, in one spelling; nothing of columns whose values are no answers."""
    values = {k: Counter[str]() for k in columns}
    plain = [k for k in columns if is_plain(table.dtypes[k])]
    for frame in _rows_of(table, plain, every_row):
        by_column = frame.with_columns(pl.col(pl.Boolean).cast(pl.Int8)).cast(pl.String).unpivot()
        texts = one_spelling(by_column["value"])  # column after column, spelled in one go
        for n, k in enumerate(plain):
            if len(values[k]) >= WIDEST:
                continue
            column = texts.slice(n * frame.height, frame.height)
            for value, times in column.value_counts().iter_rows():
                if value is not None and value not in missing:
                    values[k][value] += times
    return values


def _rows_of(table: Table, columns: Sequence[int], every_row: bool) -> Iterator[pl.DataFrame]:
    """These columns: all of their rows, piece by piece, or the first ones."""
    if not every_row:
        yield pl.DataFrame({str(k): table.head(k) for k in columns})
        return
    for frame, _ in table.pieces(columns):
        yield frame


def number_of(text: str) -> float | None:
    """A number, also one with a decimal comma."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def range_in_words(values: Sequence[float]) -> str:
    """
    >>> range_in_words([0, 1]), range_in_words([1, 2, 3]), range_in_words([1, 14, 36])
    ('0 and 1', '1 to 3', '1, 14 and 36')
    """
    if len(values) > 2 and values[-1] - values[0] == len(values) - 1:
        return f"{values[0]:g} to {values[-1]:g}"
    *first, last = (f"{value:g}" for value in values)
    if not first:
        return last
    return f"{', '.join(first)} and {last}"


def columns_with_other_labels(table: Table, columns: Sequence[int]) -> Held:
    """Columns with value labels of their own where most share one set (SPSS, Stata)."""
    labels = {k: list(table.value_labels[k].values()) for k in columns if k in table.value_labels}
    if not labels:
        return {}
    sets = {k: frozenset(text.strip().lower() for text in texts) for k, texts in labels.items()}
    usual, n = Counter(sets.values()).most_common(1)[0]
    if n < max(FEWEST_ALIKE, MOST * len(columns)):
        return {}
    return {k: f"values labeled {listed(labels[k][:3])}" for k in sets if not sets[k] & usual}
