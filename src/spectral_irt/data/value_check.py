"""What is wrong with raw answers: odd values, neither an answer nor missing, with their place and what to do about
them; a threshold that all are above; right answers that nobody gave.

`ResponsesBuilder` notes each piece (`ValueCheck.note`), and complains when all were read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectral_irt.data.labels import SUSPECTS, as_series, no_answers, one_spelling
from spectral_irt.data.scoring import HIGHEST, Scoring
from spectral_irt.errors import OptionError, ResponseValueError, StrayFractionsError
from spectral_irt.text import NAMED, count_are, first_of, listed, one_or_many

if TYPE_CHECKING:
    import polars as pl

    from spectral_irt.data.block import Ints, Mask
    from spectral_irt.data.responses import Responses
    from spectral_irt.data.scoring import Place, Values

LONGEST_SHOWN = 60  # characters of a value that a message repeats
TIMES = range(2, 11)  # factors that may make fractions of points whole
STRAY = 0.05  # of the values may be fractions where whole numbers are meant
FEW_CATEGORIES = 5  # that many different numbers may be cut into
MOST_CODES = 4  # different codes for no answer (left out, not reached, not given, not clear)
LOWEST_CODE = 6  # points of a question with partial credit mostly end below
RARE = 0.2  # share of the values that may be such codes
MOST_LABELS = 10  # of ordered categories
FEWEST_CATEGORIES = 2  # different numbers above 1, for answers to look like ordered categories
POINTS = frozenset(map(str, range(2, 11)))  # of an answer, beside 0 and 1
# fmt: off
SCALES = (  # labels in order, for the advice
    ("never", "almost never", "hardly ever", "rarely", "seldom", "once in a while", "occasionally", "sometimes",
     "regularly", "often", "frequently", "usually", "very often", "almost always", "always"),
    ("strongly disagree", "disagree strongly", "disagree", "somewhat disagree", "disagree somewhat",
     "slightly disagree", "neither agree nor disagree", "neutral", "undecided", "slightly agree", "agree somewhat",
     "somewhat agree", "agree", "agree strongly", "strongly agree"),
    ("not at all", "several days", "more than half the days", "nearly every day"),
    ("not at all", "a little", "a little bit", "slightly", "somewhat", "moderately", "quite a bit", "very", "very much",
     "a great deal", "extremely"),
    ("very poor", "poor", "fair", "average", "good", "very good", "excellent"),
    ("none", "mild", "moderate", "severe", "very severe", "extreme"),
    ("very low", "low", "medium", "high", "very high"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("no", "perhaps", "maybe", "partly", "yes"),
)
# fmt: on


class ColumnFamilies(NamedTuple):
    """What to say of the columns of a wide table by their names, and which go by one name and a number: items, most
    likely, that nobody is to be told to leave out."""

    advice: str = ""
    members: frozenset[str] = frozenset()
    says_who_rated: bool = False  # one column names the raters: the advice is about it, and there is no other


@dataclass
class ValueCheck:
    """What was met among the raw values: the odd ones, and the range. It complains when all were seen."""

    scoring: Scoring
    low: float = np.inf
    high: float = -np.inf
    n_odd: int = 0
    odd: dict[str, None] = field(default_factory=dict)
    first: tuple[Place, str] | None = None
    fraction: tuple[Place, str] | None = None  # the first: no category
    n_fractions: int = 0
    n_values: int = 0  # in the pieces that have odd ones
    fraction_columns: dict[Any, None] = field(default_factory=dict)
    columns: set[Any] = field(default_factory=set)  # of the first odd values
    stranger: tuple[Place, str] | None = None  # the first odd value that is no small number, and no code for missing
    n_strangers: int = 0
    strangers: dict[str, None] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)

    def note(self, values: Values, answers: Values, odd: Mask | None, place: Callable[[int], Place]) -> None:
        """Take note of the values of one piece, and of the answers among them; `place` says where the k-th stands."""
        if odd is not None:
            where = np.flatnonzero(odd)
            texts = one_spelling(as_series(values[where]))
            if self.first is None:
                self.first = (place(int(where[0])), texts[0])
            kinds = texts.unique(maintain_order=True)
            self.n_values += len(answers) + len(where)
            if self.scoring.expects_01 or self.scoring.ordered:
                self._note_fractions(texts, kinds, where, answers, place)
            if self.scoring.expects_01:
                self._note_strangers(texts, where, place)
            strange = where[~texts.is_in(list(SUSPECTS)).to_numpy()]  # an item may hold codes for "not answered"
            self.columns |= {place(k)[1] for k in strange[:20].tolist()}
            self.n_odd += len(texts)
            self.odd |= dict.fromkeys(kinds.head(1000).to_list())
        elif self.scoring.threshold is not None and len(answers):
            self.low = min(self.low, float(answers.min()))  # type: ignore[arg-type]
            self.high = max(self.high, float(answers.max()))  # type: ignore[arg-type]
        elif self.scoring.compares_text and not self.examples:
            self.examples = as_series(answers).unique(maintain_order=True).head(NAMED + 1).to_list()

    def _note_fractions(
        self, texts: pl.Series, kinds: pl.Series, where: Ints, answers: Values, place: Callable[[int], Place]
    ) -> None:
        fractions = where[texts.is_in(list(filter(is_fraction, kinds))).to_numpy()]
        if not len(fractions):
            return
        if len(answers):
            self.high = max(self.high, float(answers.max()))  # type: ignore[arg-type]
        if self.fraction is None:
            first = int(fractions[0])
            self.fraction = (place(first), texts[int(np.searchsorted(where, first))])
        self.n_fractions += len(fractions)
        self.fraction_columns |= dict.fromkeys(place(k)[1] for k in fractions[:1000].tolist())

    def _note_strangers(self, texts: pl.Series, where: Ints, place: Callable[[int], Place]) -> None:
        is_strange = ~texts.is_in(list(POINTS | SUSPECTS))
        if not is_strange.any():
            return
        if self.stranger is None:
            first = int(is_strange.arg_max() or 0)
            self.stranger = (place(int(where[first])), texts[first])
        self.n_strangers += int(is_strange.sum())
        self.strangers |= dict.fromkeys(texts.filter(is_strange).unique(maintain_order=True).head(1000).to_list())

    @property
    def has_few_strangers(self) -> bool:
        """Whether the odd values look like ordered categories but for a few, which are then what is wrong."""
        categories = [kind for kind in self.odd if kind in POINTS - SUSPECTS]
        return len(categories) >= FEWEST_CATEGORIES and 0 < self.n_strangers <= STRAY * self.n_values

    @property
    def has_stray_fractions(self) -> bool:
        """Whether answers are in ordered categories but for a few fractions, as when missing ones were imputed."""
        is_ordered = self.scoring.ordered and self.high > 1
        return is_ordered and self.n_fractions == self.n_odd > 0 and self.n_fractions <= STRAY * self.n_values

    def complain(self, name: str, n_columns: int = 0, families: ColumnFamilies | None = None) -> None:
        """Raise when some value was odd, or when the threshold leaves nothing to compare. With so many columns of items
        an odd value may mean that one is none."""
        if self.first is not None and self.has_stray_fractions:
            raise StrayFractionsError(_of_stray_fractions(self))
        if self.first is not None:
            raise ResponseValueError(odd_sentence(self, n_columns, families or ColumnFamilies()))
        threshold = self.scoring.threshold
        if threshold is not None and self.low <= self.high and not self.low <= threshold < self.high:
            effect = "none is" if threshold >= self.high else "all are"
            raise OptionError(
                f"`threshold` is {threshold:g}, and the responses in {name} run from {self.low:g} to {self.high:g}, "
                f"so {effect} above it; choose a threshold of at least {self.low:g} and less than {self.high:g}."
            )

    def complain_of_scores(self, responses: Responses) -> None:
        """Raise when no answer at all agrees with the right ones: they are spelled differently."""
        if not self.scoring.compares_text or responses.scores.any() or not responses.n_responses:
            return
        if self.scoring.correct is not None:
            right = f"`correct` is {listed(self.scoring.correct)}"
        else:
            options = dict.fromkeys(text for answers in (self.scoring.key or {}).values() for text in answers)
            right = f"the key holds {listed(options)}"
        capitals = ", capitals included" if self.scoring.exact_case else ""
        raise OptionError(
            f"{right}, but no response agrees with it; the responses are {listed(self.examples)}. Check the "
            f"spelling{capitals}."
        )


def _why_odd(scoring: Scoring) -> str:
    if scoring.compares_text:
        return "an error of the spreadsheet, not an answer"
    if scoring.recode is not None:
        return f"not among the labels of the categories, {listed(scoring.recode)}"
    if scoring.ordered:
        return f"not a category: these are whole numbers from 0 to {HIGHEST}"
    return "neither 0/1 nor missing" if scoring.expects_01 else "not a finite number"


def _how_to(scoring: Scoring) -> str:
    """What to do about odd values that are not codes for missing ones."""
    if scoring.recode is not None:
        return " Add it to `recode`, or say `missing=` if it means 'not answered'."
    if scoring.ordered:
        how = " Number the categories 0, 1, 2, ..., or name them with `recode=`;"
        return f"{how} for right and wrong, say `threshold=`."
    if scoring.expects_01:
        return " Say which answers are correct with `key`, `correct` or `threshold`."
    return " Say `missing=` if it means 'not answered', or `correct=` if the answers are not numbers."


def _of_stray_fractions(check: ValueCheck) -> str:
    assert check.fraction is not None
    (name, column, row), text = check.fraction
    columns = list(check.fraction_columns)
    where = f", in {len(columns):,} columns ({listed(columns)})" if len(columns) > 1 else ""
    return (
        f"{name}: {count_are(check.n_fractions, 'value')} {one_or_many(check.n_fractions, 'a fraction', 'fractions')}"
        f"{where}; the first is {text} in column {listed([column])}, row {row:,}. Answers are whole numbers: say "
        "`round_fractions=True` to round them, or correct or remove them."
    )


def odd_sentence(check: ValueCheck, n_columns: int, families: ColumnFamilies) -> str:
    """Which values are odd, where the first stands, and what to do about them."""
    assert check.first is not None
    if check.has_few_strangers and check.fraction is None:
        return _of_strangers(check)
    is_broken = check.fraction is not None and check.scoring.expects_01
    (name, column, row), text = check.fraction if check.fraction is not None and is_broken else check.first
    kinds = list(filter(is_fraction, check.odd)) if is_broken else list(check.odd)
    n_odd = check.n_fractions if is_broken else check.n_odd
    values = one_or_many(n_odd, "value", "values")
    what = ", a fraction" if is_broken else ""
    where = f"{name}: column {listed([column])}, row {row:,} holds {_in_words(text)}{what}"
    every = f"{n_odd:,} such {values}: {first_of(map(_in_words, kinds))}"
    sentence = f"{where}, which is {_why_odd(check.scoring)} ({every})."
    if families.says_who_rated:
        return sentence + families.advice
    if check.scoring.expects_01 and not is_broken:
        missing = codes_among_categories(kinds)
        if missing:
            return sentence + _of_ordered_with_codes(missing)
    codes = _codes_among(check, kinds)
    if codes:
        mean = one_or_many(len(codes), "means", "mean")
        sentence += f" If {' and '.join(codes)} {mean} 'not answered', say {_missing_option(codes)}."
    if len(codes) == len(kinds):
        return sentence
    in_few_columns = bool(check.columns) and (len(check.columns) == 1 or 2 * len(check.columns) <= n_columns)
    if not n_columns:
        in_few_columns = False
    how_to = _of_fractions(kinds) if is_broken else _of_many_numbers(kinds) or _how_to(check.scoring)
    are_points = all(kind in POINTS for kind in kinds) or (not in_few_columns and _are_steps(kinds))
    if check.scoring.expects_01 and are_points:
        how_to = f" If these are ordered categories or points, fit `SpectralPartialCredit`.{how_to}"
    if check.scoring.expects_01 and not in_few_columns:
        how_to = _of_words(kinds, how_to)
    sentence += how_to + families.advice
    if in_few_columns:
        sentence += _of_columns(sorted({str(column) for column in check.columns} - families.members))
    return sentence


def _are_steps(kinds: Sequence[str]) -> bool:
    """Whether some whole numbers may be ordered categories with gaps between, such as 0, 14, 28, ... of a line.

    >>> _are_steps(["70", "42", "56", "98", "84"]), _are_steps(["70", "many"]), _are_steps(["70"])
    (True, False, False)
    """
    if not FEWEST_CATEGORIES <= len(kinds) <= MOST_LABELS:
        return False
    return all(kind.isdecimal() and int(kind) <= HIGHEST for kind in kinds)


def _codes_among(check: ValueCheck, kinds: list[str]) -> list[str]:
    """Of odd values those that probably stand for no answer."""
    codes = [kind for kind in kinds if kind in SUSPECTS]
    if any(_is_number(kind) and kind not in SUSPECTS for kind in kinds):  # among other numbers 9 may be a rating
        codes = [code for code in codes if not _is_number(code)]
    if not codes and check.scoring.expects_01 and _may_be_codes(check, kinds):
        codes = sorted(kinds, key=int)
    return codes


def _of_columns(names: list[str]) -> str:
    """What to do where the odd values are in a few columns, which may be no items."""
    if not names:
        return ""
    if len(names) > 1:
        return f" If the columns {listed(names)} are not items, say `ignore={','.join(names)!r}`."
    person = f"or name it with `person={names[0]!r}` if it labels the people"
    return (
        f" If the column is not an item, say `ignore={names[0]!r}`, {person}; if a row is one answer, say `item=` and "
        "`response=`."
    )


def _missing_option(codes: list[str]) -> str:
    """The option that makes these missing, as it is written in a call."""
    value = codes[0] if len(codes) == 1 else codes
    return f"`missing={value!r}`"


def _may_be_codes(check: ValueCheck, kinds: Sequence[str]) -> bool:
    """Whether a few whole numbers far above 1, such as 8 and 9, may stand for no answer among zeros and ones."""
    if not 0 < len(kinds) <= MOST_CODES or not all(kind.isdecimal() for kind in kinds):
        return False
    return min(map(int, kinds)) >= LOWEST_CODE and check.n_odd <= RARE * check.n_values


def _of_strangers(check: ValueCheck) -> str:
    """The few values that are odd among what looks like ordered categories."""
    assert check.stranger is not None
    (name, column, row), text = check.stranger
    kinds = list(check.strangers)
    every = ""
    if check.n_strangers > 1:
        every = f" ({check.n_strangers:,} such values: {first_of(map(_in_words, kinds))})"
    it = one_or_many(check.n_strangers, "it", "them")
    it_means = one_or_many(check.n_strangers, "it means", "they mean")
    usual = [kind for kind in check.odd if kind not in check.strangers]
    return (
        f"{name}: column {listed([column])}, row {row:,} holds {_in_words(text)}{every}, where other values are "
        f"numbers such as {first_of(usual[:NAMED])}, and look like ordered categories. Correct {it}, or say "
        f"{_missing_option(kinds)} if {it_means} 'not answered'. If the numbers are options of multiple choice, say "
        "which are correct with `key`."
    )


def codes_among_categories(kinds: list[str]) -> list[str]:
    """Of numbers that look like ordered categories (2 to 10) with codes for missing answers, those codes.

    >>> codes_among_categories(["2", "99", "3", "5", "-9"]), codes_among_categories(["2", "9", "8"])
    (['99', '-9'], [])
    """
    categories = [kind for kind in kinds if kind in POINTS - SUSPECTS]
    codes = [kind for kind in kinds if kind in SUSPECTS and kind not in categories]
    if len(categories) < FEWEST_CATEGORIES or len(categories) + len(codes) < len(kinds):
        return []
    highest = max(map(int, categories))
    # A number just above the others may be a category: 9 after 8.
    apart = [not _is_number(code) or not 0 <= _number(code) <= highest + 1 for code in codes]
    return codes if all(apart) else []


def _of_ordered_with_codes(codes: list[str]) -> str:
    mean = one_or_many(len(codes), "means", "mean")
    return (
        f" If {' and '.join(codes)} {mean} 'not answered', say {_missing_option(codes)}: the other numbers look like "
        "ordered categories, for `SpectralPartialCredit`. If they are options of multiple choice, say which are "
        "correct with `key`."
    )


def _of_fractions(kinds: list[str]) -> str:
    """What to do about answers that are fractions: a threshold, or whole categories."""
    numbers = np.array([_number(kind) for kind in kinds if _is_number(kind)])
    times = next((k for k in TIMES if np.allclose(numbers * k, np.rint(numbers * k), atol=1e-9)), None)
    make_whole = "give each grade a whole number from 0 on" if times is None else f"multiply them by {times}"
    threshold = " Say `threshold=` to count the answers above it as right and the others as wrong"
    return f"{threshold}; or {make_whole}, to fit them as ordered answers with `SpectralPartialCredit`."


def _of_many_numbers(kinds: list[str]) -> str:
    """What to do about whole numbers that are too many for the categories of an answer: points, counts, percentages."""
    numbers = [_number(kind) for kind in kinds if _is_number(kind)]
    whole_numbers = [number for number in numbers if number >= 0 and number.is_integer()]
    if len(whole_numbers) <= MOST_LABELS or len(whole_numbers) < len(kinds):
        return ""
    high = int(max(whole_numbers))
    step = high // FEW_CATEGORIES + 1
    spans = [f"{low} to {low + step - 1}" for low in range(0, 2 * step, step)]
    return (
        f" These are {len(whole_numbers):,} different whole numbers, too many for the categories of an answer: cut "
        f"them into about {FEW_CATEGORIES} ordered categories, such as {', '.join(spans)} and so on; or say "
        "`threshold=` for right and wrong."
    )


def _of_words(kinds: list[str], how_to: str) -> str:
    """What to do about answers in a few words: labels of categories, in the order of a usual scale if it is one."""
    words = [kind for kind in kinds if not _is_number(kind) and kind not in SUSPECTS]
    if words and all(len(word) == 1 and word.isalpha() for word in words):
        return " These look like options of multiple choice: say which are correct with `key=`, or with `correct=`."
    if not 2 <= len(words) <= MOST_LABELS or 2 * len(words) <= len(kinds):
        return how_to
    missing = no_answers(words)
    words = [word for word in words if word not in missing]
    scale = next((scale for scale in SCALES if all(word.lower() in scale for word in words)), None)
    ordered = words if scale is None else sorted(words, key=lambda word: scale.index(word.lower()))
    order = "put in order" if scale is None else "check the order"
    how = f" If these are ordered categories, say `recode={','.join(ordered)!r}`, from the lowest to the highest"
    how += f" ({order})"
    if missing:
        codes = missing[0] if len(missing) == 1 else missing
        how += f", and `missing={codes!r}` for what means 'not answered'"
    return f"{how}; if one answer is right, say `correct` or `key`."


def is_fraction(text: str) -> bool:
    return _is_number(text) and np.isfinite(_number(text)) and not _number(text).is_integer()


def _is_number(text: str) -> bool:
    return _in_words(text) == text


def _in_words(text: str) -> str:
    """Numbers as they are, other text in quotes; of a very long one, the beginning."""
    if len(text) > LONGEST_SHOWN:
        return f"{_in_words(text[:LONGEST_SHOWN])}... ({len(text):,} characters)"
    try:
        _number(text)
    except ValueError:
        return repr(text)
    return text


def _number(text: str) -> float:
    return float(text.replace(",", "."))  # a decimal comma
