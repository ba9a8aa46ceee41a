"""Raw answers -> categories: by 0 and 1, a key, the right values, a threshold, or as they are.

`Scoring.clean` turns raw values, a polars Series or an array of numbers, into answers; `Scoring.category` says in which
category each is (with a key, `AnswerKey`). Blank cells may count as wrong: `BlankCounter`.

`read` makes a `Scoring` of its options, and `ResponsesBuilder` scores every piece by it. Where nobody said what answers
are, `of_either_kind` reads them as categories, and again as right and wrong if they do not look like it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.labels import (
    CELL_ERRORS,
    DECIMAL_COMMA,
    DECIMAL_POINT,
    NOT_ANSWERED,
    as_series,
    as_text,
    one_spelling,
    spellings,
)
from spectral_irt.errors import Finding, OptionError, ResponseValueError, StrayFractionsError, unknown_option
from spectral_irt.text import count_are, listed

if TYPE_CHECKING:
    import polars as pl

    from spectral_irt.data.block import Floats, Ints
    from spectral_irt.data.block import Mask as Bools
    from spectral_irt.data.responses import Responses

    Values = pl.Series | Floats

Place = tuple[str, Any, int]  # where a value stands, in the person's words: the table, its column, and its row
Blank = Literal["wrong", "missing"]
UNUSED = ("collapse", "error", "keep")
BLANKS = ("missing", "wrong")
# Categories are 0 to this: a column with more is a count or a measure, and most of its categories would be nobody's.
HIGHEST = 100
DERIVED = ("compares_text", "expects_01", "highest", "bits", "codes")  # from the options
FORMS = 0.5  # a larger share of blanks among an item's cells is more likely another form of the test than omission


@dataclass(frozen=True)
class Scoring:
    """How raw values become categories, or missing, which is decided by the raw value; the options are those of `read`.
    `undecided` answers are read as ordered categories; if none is above 1 they are right and wrong.

    >>> Scoring(key={"q1": "A|C", "q2": {"B": 2, "D": 1}}, missing=2.0).key
    {'q1': {'A': 1, 'C': 1}, 'q2': {'B': 2, 'D': 1}}
    """

    missing: Any = ()
    key: Mapping[Any, Any] | None = None
    correct: Any = None
    threshold: float | None = None
    omitted: Blank = "missing"
    not_reached: Blank = "missing"
    not_presented: Any = ()
    ordered: bool = False
    undecided: bool = False
    recode: Any = None
    reverse: Any = ()
    span: tuple[int, int] | None = None
    unused: str = "collapse"
    groups: Any = None
    exact_case: bool = False
    round_fractions: bool = False

    def __post_init__(self) -> None:
        """Check every option, and put it into one form; what is in this form already stays as it is."""
        self._check_ways()
        for name, allowed in (("unused", UNUSED), ("omitted", BLANKS), ("not_reached", BLANKS)):
            if getattr(self, name) not in allowed:
                raise unknown_option(name, getattr(self, name), allowed)
        options: dict[str, Any] = {"not_presented": _as_texts(self.not_presented)}
        options["missing"] = tuple(dict.fromkeys([*_as_texts(self.missing), *options["not_presented"]]))
        if self.key is not None:
            from spectral_irt.data.answer_key import checked_key  # with a key only

            options["key"] = checked_key(self.key)
        if self.correct is not None:
            options["correct"] = tuple(spellings(several(self.correct)))
            if not options["correct"]:
                raise OptionError("`correct` names no value; say which answers are right.")
        if self.threshold is not None:
            options["threshold"] = _checked_threshold(self.threshold)
        if self.span is not None:
            options["span"] = _checked_span(self.span)
        if self.recode is not None:
            from spectral_irt.data.categories import categories_of_labels  # with labels only

            categories = categories_of_labels(self.recode)
            options |= {"recode": categories, "ordered": True, "span": (0, max(categories.values()))}
        if isinstance(self.reverse, str):
            options["reverse"] = tuple(map(str.strip, self.reverse.split(",")))
        else:
            options["reverse"] = several(self.reverse)
        # The one place where a scoring is written to: from here on its options are in one form.
        vars(self).update(options)
        if self.compares_text and not self.exact_case:
            vars(self).update(missing=self._missing_in_either_case())

    def _check_ways(self) -> None:
        """An error where answers are to be scored in several ways, or categories as right and wrong."""
        ways = [name for name in ("key", "correct", "threshold", "recode") if getattr(self, name) is not None]
        if len(ways) > 1:
            names = " and ".join(f"`{name}`" for name in ways)
            raise OptionError(f"{names} are different ways of scoring; say one of them.")
        if self.ordered and ways and ways[0] in ("correct", "threshold"):
            what = f"these answers are in ordered categories, and `{ways[0]}` is for right and wrong answers only;"
            raise OptionError(f"{what} leave it out.")

    @property
    def compares_text(self) -> bool:
        """Whether answers are compared with right ones, so that any value is an answer; otherwise they are numbers."""
        return self.key is not None or self.correct is not None

    @property
    def expects_01(self) -> bool:
        """Whether answers are zeros and ones."""
        return not (self.ordered or self.compares_text or self.threshold is not None)

    @cached_property
    def highest(self) -> int:
        """The highest category that there may be: above 1, those of an item are known when all were seen."""
        if self.key is not None:
            return max((score for scores in self.key.values() for score in scores.values()), default=1)
        return HIGHEST if self.ordered else 1

    @property
    def bits(self) -> int:
        """That a category takes."""
        return self.highest.bit_length()

    @cached_property
    def codes(self) -> tuple[float, ...]:
        """Numbers that stand for missing answers; labels are compared as they are, so that none of them is a number."""
        if self.recode is not None:
            return ()
        return tuple(numbers_among(self.missing))

    def _missing_in_either_case(self) -> tuple[str, ...]:
        """Codes for missing answers, compared as options are; but for those that are in the key in another case."""
        right = {text.lower() for options in (self.key or {}).values() for text in options}
        right |= {text.lower() for text in self.correct or ()}
        codes: dict[str, None] = {}
        for code in self.missing:
            spellings_of_code = (code,) if code.lower() in right else (code, code.lower(), code.upper())
            codes |= dict.fromkeys(spellings_of_code)
        return tuple(codes)

    def clean(self, values: Values) -> CleanAnswers:
        """The answers among raw values."""
        if self.compares_text:
            return self._clean_texts(values)
        bounded = self.expects_01 or self.ordered
        if bounded and self.recode is None:
            categories = self._whole_numbers(values)
            if categories is not None:
                return CleanAnswers(categories)
        numbers, odd = self._numbers(values)
        if self.round_fractions and bounded:
            numbers = np.floor(numbers + 0.5)
        is_answer = ~np.isnan(numbers)
        for code in self.codes:
            is_answer &= numbers != code
        place = None
        answers = numbers
        if not is_answer.all():
            place = np.flatnonzero(is_answer)
            answers = numbers.take(place)
        fits = np.isfinite(answers) | np.isneginf(answers)  # a logarithm may be -inf, which is below any threshold
        if bounded:
            fits = (answers >= 0) & (answers <= self.highest) & (answers == np.floor(answers))
        if fits.all():
            return CleanAnswers(answers, place, odd)
        place = np.arange(len(numbers)) if place is None else place
        odd = np.zeros(len(numbers), dtype=bool) if odd is None else odd.copy()
        odd[place[~fits]] = True
        return CleanAnswers(answers[fits], place[fits], odd)

    def _clean_texts(self, values: Values) -> CleanAnswers:
        text = one_spelling(as_series(values))
        is_answer = (~text.is_in([*NOT_ANSWERED, *self.missing])).fill_null(False)
        is_error = text.is_in(CELL_ERRORS).fill_null(False) & is_answer
        return CleanAnswers(
            answers=text.filter(is_answer),
            place=None if is_answer.all() else np.flatnonzero(is_answer.to_numpy()),
            odd=is_error.to_numpy() if is_error.any() else None,
        )

    def n_fractions(self, values: Values) -> int:
        """How many of the values are fractions, which are to be rounded."""
        numbers, _ = self._numbers(values)
        return int(np.sum(np.isfinite(numbers) & (numbers != np.floor(numbers))))

    def _whole_numbers(self, values: Values) -> NDArray[Any] | None:
        """Whole numbers as they are, if all are categories: most files hold nothing else, and need no look at each."""
        if not set(self.codes).isdisjoint(range(self.highest + 1)):
            return None
        if not isinstance(values, np.ndarray):
            import polars as pl

            if values.null_count() or not (values.dtype.is_integer() or values.dtype == pl.Boolean):
                return None
            values = values.to_numpy()
        if values.dtype.kind not in "biu" or not len(values) or values.min() < 0 or values.max() > self.highest:
            return None
        return values

    def was_presented(self, values: Values) -> Bools | None:
        """Which of the values do not say that the item was not on the person's form; None: no value does."""
        if not self.not_presented:
            return None
        empty = any(code in NOT_ANSWERED for code in self.not_presented)
        if isinstance(values, np.ndarray):
            absent = np.isin(values, numbers_among(self.not_presented))
            return ~(absent | np.isnan(values)) if empty and values.dtype.kind == "f" else ~absent
        mask = one_spelling(values).is_in(list(self.not_presented)).fill_null("" in self.not_presented)
        if empty and values.dtype.is_numeric():
            mask = mask | values.is_null() | values.is_nan().fill_null(True)
        return ~mask.to_numpy()

    def _numbers(self, values: Values) -> tuple[Floats, Bools | None]:
        """Numbers, NaN where there is none, and a mask of text that is none. Of categories, "true" is 1, "false" 0."""
        import polars as pl

        if self.recode is not None:
            text = one_spelling(as_series(values))
            numbers = pl.repeat(None, len(text), dtype=pl.Float64, eager=True)
            odd = self._is_odd(numbers, text)
        elif isinstance(values, np.ndarray):
            return values.astype(np.float64, copy=False), None
        elif values.dtype.is_numeric() or values.dtype in (pl.Boolean, pl.Null):
            return values.cast(pl.Float64).to_numpy(), None
        else:
            text = as_text(values).str.strip_chars()
            numbers = text.cast(pl.Float64, strict=False)
            odd = self._is_odd(numbers, text)
            if odd.any():
                with_comma = text.str.replace(DECIMAL_COMMA, DECIMAL_POINT).cast(pl.Float64, strict=False)
                numbers = numbers.zip_with(~odd, with_comma)
                odd = odd & numbers.is_null()
        if (self.expects_01 or self.ordered) and odd.any():
            category_of: dict[Any, float] = {"true": 1, "false": 0}
            words = text.str.to_lowercase()
            if self.recode is not None:
                category_of = dict(self.recode)
                words = text
            named = pl.select(pl.when(odd).then(words)).to_series()
            named = named.replace_strict(category_of, default=None, return_dtype=pl.Float64)
            numbers = numbers.fill_null(named)
            odd = odd & named.is_null()
        return numbers.to_numpy(), odd.to_numpy() if odd.any() else None

    def _is_odd(self, numbers: pl.Series, text: pl.Series) -> pl.Series:
        """Which texts are neither numbers nor missing."""
        return numbers.is_null() & ~text.is_in([*NOT_ANSWERED, *self.missing]).fill_null(True)

    def category(self, answers: Any) -> NDArray[np.uint8]:
        """The category of each answer of `clean`, but for a key."""
        if self.ordered:
            return np.asarray(answers).astype(np.uint8)
        if self.correct is not None:
            return np.array(answers.is_in(list(self.correct)).to_numpy()).view(np.uint8)
        right = answers == 1 if self.threshold is None else answers > self.threshold
        return np.asarray(right).view(np.uint8)


class CleanAnswers(NamedTuple):
    """The answers among raw values; which of the values they are, positions, or None for all of them; and which are
    neither answer nor missing, a mask, or None where there is none."""

    answers: Any
    place: Ints | None = None
    odd: Bools | None = None


def _as_texts(codes: Any) -> tuple[str, ...]:
    """Codes as they stand in files, in one spelling."""
    values = several(codes)
    if not values:
        return ()
    return tuple(spellings(values))


def _checked_threshold(threshold: Any) -> float:
    """The value above which answers are right."""
    with suppress(TypeError, ValueError):
        if np.isfinite(float(threshold)):
            return float(threshold)
    raise OptionError(f"`threshold` is {threshold!r}; it must be a finite number.")


def _checked_span(span: Any) -> tuple[int, int]:
    """The lowest and the highest category that there are."""
    with suppress(TypeError, ValueError):
        low, high = span
        if int(low) == low and int(high) == high and 0 <= low < high <= HIGHEST:
            return int(low), int(high)
    raise OptionError(
        f"span is {span!r}; it is the lowest and the highest category, whole numbers from 0 to {HIGHEST}."
    )


def several(given: Any) -> tuple[Any, ...]:
    """What was given as several values: none, one, or those of a sequence; a text is one."""
    if given is None:
        return ()
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return (given,)
    return tuple(given)


def numbers_among(codes: Iterable[str]) -> list[float]:
    """The codes that are numbers."""
    numbers = []
    for code in codes:
        with suppress(ValueError):
            numbers.append(float(code))
    return numbers


def of_either_kind(read: Callable[[Scoring], Responses], how: Scoring) -> Responses:
    """Answers of which nobody said what they are: right and wrong, or ordered categories if they look like it."""
    if not how.undecided:
        return read(how)
    try:
        responses = read(how)
    except StrayFractionsError:
        raise
    except ResponseValueError:
        pass
    else:
        if responses.codes is None:
            return responses
        from spectral_irt.data.categories import looks_ordered

        if looks_ordered(responses):
            finding = _ordered_categories(responses.thresholds.widest + 1)
            return replace(responses, notes=(finding, *responses.notes))
    return read(replace(how, ordered=False, undecided=False))


def _ordered_categories(n_categories: int) -> Finding:
    sentence = f"The answers are in up to {n_categories} ordered categories, for a partial credit model."
    rating_scale = "`SpectralRatingScale` for items that share their categories"
    key = "`key=` if the numbers are options of multiple choice"
    remedy = f"Use {rating_scale}, `threshold=` for right and wrong, or {key}."
    return Finding("ordered_categories", "note", sentence, remedy)


BLANK = 0  # code of a blank cell that counts as a wrong answer


@dataclass(frozen=True)
class RawAnswers:
    """What is known about the answers besides right and wrong: the text of every code in `Block.options` (none without
    a key), the right option of every item, and how many of its cells were omitted and not reached (None where a blank
    has no place in the test, as in long tables, or people were left out)."""

    options: tuple[str, ...] = ()
    key: Mapping[Any, str] = field(default_factory=dict)
    blanks: Mapping[Any, tuple[int, int]] | None = None
    # Whether cells said what was not presented, or blanks count as wrong; else the forms of the people decide.
    blanks_decided: bool = False


class BlankCounter:
    """Counts blank cells of whole rows, by item, and finds those that count as wrong: before a later answer of the same
    person they were *omitted*, after the last one *not reached*. Of a row without any answer no cell is either."""

    def __init__(self, scoring: Scoring) -> None:
        self._scoring = scoring
        self._omitted_is_wrong = scoring.omitted == "wrong"
        self._not_reached_is_wrong = scoring.not_reached == "wrong"
        self.sums = np.zeros((3, 0), dtype=np.int64)  # cells, omitted, not reached

    def wrong(self, values: Values, items: NDArray[Any], width: int, answered: Ints | None) -> Ints | None:
        """Positions of the blank cells that count as wrong, of rows with so many cells each; None for none."""
        n_items = int(items.max()) + 1 if len(items) else 0
        if self.sums.shape[1] < n_items:
            self.sums = np.pad(self.sums, ((0, 0), (0, n_items - self.sums.shape[1])))
        columns = items[:width]  # of every row
        if answered is None:
            self.sums[0, columns] += len(items) // width
            return None
        is_answer = np.zeros(len(items), dtype=bool)
        is_answer[answered] = True
        rows = is_answer.reshape(-1, width)
        has_answers = np.any(rows, axis=1, keepdims=True)
        presented = self._scoring.was_presented(values)
        shown = np.ones(rows.shape, dtype=bool) if presented is None else presented.reshape(rows.shape)
        last = width - 1 - rows[:, ::-1].argmax(axis=1)  # answer of each row
        before_last = np.arange(width) < last[:, None]
        blank = ~rows & has_answers & shown
        cells = has_answers & (shown | rows)
        omitted = blank & before_last
        not_reached = blank & ~before_last
        self.sums[:, columns] += [mask.sum(axis=0) for mask in (cells, omitted, not_reached)]
        wrong = np.flatnonzero((omitted & self._omitted_is_wrong) | (not_reached & self._not_reached_is_wrong))
        return wrong if len(wrong) else None

    def findings(self, labels: Iterable[Any]) -> tuple[Finding, ...]:
        """How many blanks count as wrong, and whether that looks like a mistake."""
        cells, omitted, not_reached = self.sums
        omitted = omitted * self._omitted_is_wrong
        not_reached = not_reached * self._not_reached_is_wrong
        number = int(omitted.sum() + not_reached.sum())
        if not number:
            return ()
        counts = ((int(omitted.sum()), "omitted"), (int(not_reached.sum()), "not-reached"))
        parts = [f"{n:,} {what}" for n, what in counts if n]
        share = number / cells.sum()
        sentence = f"Cells that count as wrong, as asked: {' and '.join(parts)} ({share:.1%} of all)."
        findings = [Finding("blanks_count_as_wrong", "note", sentence, number=number)]
        wrong = omitted + not_reached
        mostly = [label for label, n, of in zip(labels, wrong, cells, strict=False) if n > FORMS * of]
        if mostly:
            findings.append(_mostly_blank(mostly))
        return tuple(findings)


def _mostly_blank(items: list[Any]) -> Finding:
    blank = f"{count_are(len(items), 'item')} blank for more than half of the people"
    sentence = f"{blank}, and that counts as wrong: {listed(items)}."
    remedy = (
        "If these items were not on everybody's form, name the column of the forms (`form=`), say what stands for "
        'that (`not_presented=`; "" is the empty cell), or give a file for each form.'
    )
    return Finding("mostly_blank_items", "warning", sentence, remedy, tuple(items))


def refuse_blanks(scoring: Scoring, where: str) -> None:
    if "wrong" in (scoring.omitted, scoring.not_reached):
        name = "omitted" if scoring.omitted == "wrong" else "not_reached"
        raise OptionError(
            f"`{name}='wrong'` goes by the order of the cells in a table with a row for each person and a column for "
            f"each item; {where}. Leave it out, or give such a table."
        )
