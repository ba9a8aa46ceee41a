"""Raw answers -> categories: by 0 and 1, a key, the right values, a threshold, or as they are. `Scoring.clean` turns
raw values, a polars Series or an array of numbers, into answers; `Scoring.category` says in which category each is
(with a key, `AnswerKey`). Blank cells may count as wrong: `BlankCounter`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

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
    # Answers are compared with right ones, so any value is an answer; otherwise answers are numbers.
    compares_text: bool = field(init=False)
    expects_01: bool = field(init=False)
    highest: int = field(init=False)  # category that there may be: above 1, an item's are known when all were seen
    bits: int = field(init=False)  # that a category takes
    codes: tuple[float, ...] = field(init=False)  # for missing answers, among numbers

    def __post_init__(self) -> None:
        """Check every option, and put it into one form; what is in this form already stays as it is."""
        ways = ("key", "correct", "threshold", "recode")
        said = [name for name in ways if getattr(self, name) is not None]
        if len(said) > 1:
            names = " and ".join(f"`{one}`" for one in said)
            raise OptionError(f"{names} are different ways of scoring; say one of them.")
        if self.ordered and said and said[0] in ("correct", "threshold"):
            what = f"these answers are in ordered categories, and `{said[0]}` is for right and wrong answers only;"
            raise OptionError(f"{what} leave it out.")
        blanks = dict.fromkeys(("omitted", "not_reached"), ("missing", "wrong"))
        for name, allowed in {"unused": UNUSED, **blanks}.items():
            if getattr(self, name) not in allowed:
                raise unknown_option(name, getattr(self, name), allowed)
        made: dict[str, Any] = {}
        for name in ("not_presented", "missing"):
            given = several(getattr(self, name))
            made[name] = tuple(spellings(given)) if given else ()
        made["missing"] = tuple(dict.fromkeys([*made["missing"], *made["not_presented"]]))
        if self.key is not None:
            from spectral_irt.data.answer_key import checked_key  # with a key only

            made["key"] = checked_key(self.key)
        if self.correct is not None:
            made["correct"] = tuple(spellings(several(self.correct)))
            if not made["correct"]:
                raise OptionError("`correct` names no value; say which answers are right.")
        if self.threshold is not None:
            with suppress(TypeError, ValueError):
                made["threshold"] = float(self.threshold)
            if not np.isfinite(made.get("threshold", np.nan)):
                raise OptionError(f"`threshold` is {self.threshold!r}; it must be a finite number.")
        if self.span is not None:
            made["span"] = _checked_span(self.span)
        if self.recode is not None:
            from spectral_irt.data.categories import recoding  # with labels only

            numbers = recoding(self.recode)
            made |= {"recode": numbers, "ordered": True, "span": (0, max(numbers.values()))}
        listing = isinstance(self.reverse, str)
        made["reverse"] = tuple(map(str.strip, self.reverse.split(","))) if listing else several(self.reverse)
        vars(self).update(made)
        highest = HIGHEST if self.ordered else 1
        if self.key is not None:
            highest = max((score for one in self.key.values() for score in one.values()), default=1)
        text = self.key is not None or self.correct is not None
        # Labels were compared as they are, so that none of them is a number.
        if text and not self.exact_case:
            vars(self).update(missing=self._missing_in_either_case())
        codes = tuple(_as_numbers(self.missing)) if self.missing and self.recode is None else ()
        vars(self).update(compares_text=text, expects_01=not (self.ordered or text or self.threshold is not None))
        vars(self).update(highest=highest, bits=highest.bit_length(), codes=codes)

    def _missing_in_either_case(self) -> tuple[str, ...]:
        """Codes for missing answers, compared as options are; but for those that are in the key in another case."""
        right = {text.lower() for options in (self.key or {}).values() for text in options}
        right |= {text.lower() for text in self.correct or ()}
        codes: dict[str, None] = {}
        for code in self.missing:
            spellings_of_code = (code,) if code.lower() in right else (code, code.lower(), code.upper())
            codes |= dict.fromkeys(spellings_of_code)
        return tuple(codes)

    def clean(self, values: Values) -> tuple[Values, Ints | None, Bools | None]:
        """The answers among raw values; which of the values they are, positions, or None for all of them; and which are
        neither answer nor missing, a mask, or None where there is none."""
        if self.compares_text:
            text = one_spelling(as_series(values))
            present = (~text.is_in([*NOT_ANSWERED, *self.missing])).fill_null(False)
            failed = text.is_in(CELL_ERRORS).fill_null(False) & present
            failures = failed.to_numpy() if failed.any() else None
            where = None if present.all() else np.flatnonzero(present.to_numpy())
            return text.filter(present), where, failures
        bounded = self.expects_01 or self.ordered
        if bounded and self.recode is None and (whole := self._whole_numbers(values)) is not None:
            return whole, None, None
        numbers, odd = self._numbers(values)
        if self.round_fractions and bounded:
            numbers = np.floor(numbers + 0.5)
        answered = ~np.isnan(numbers)
        for code in self.codes:
            answered &= numbers != code
        where = None if answered.all() else np.flatnonzero(answered)
        given = numbers if where is None else numbers.take(where)
        fits = np.isfinite(given) | np.isneginf(given)  # a logarithm may be -inf, which is below any threshold
        if bounded:
            fits = (given >= 0) & (given <= self.highest) & (given == np.floor(given))
        if not fits.all():
            where = np.arange(len(numbers)) if where is None else where
            odd = np.zeros(len(numbers), dtype=bool) if odd is None else odd.copy()
            odd[where[~fits]] = True
            where, given = where[fits], given[fits]
        return given, where, odd

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

    def presented(self, values: Values) -> Bools | None:
        """Which of the values do not say that the item was not on the person's form; None: no value does."""
        if not self.not_presented:
            return None
        empty = any(code in NOT_ANSWERED for code in self.not_presented)
        if isinstance(values, np.ndarray):
            absent = np.isin(values, _as_numbers(self.not_presented))
            return ~(absent | np.isnan(values)) if empty and values.dtype.kind == "f" else ~absent
        mask = one_spelling(values).is_in(list(self.not_presented)).fill_null("" in self.not_presented)
        if empty and values.dtype.is_numeric():
            mask = mask | values.is_null() | values.is_nan().fill_null(True)
        return ~mask.to_numpy()

    def _numbers(self, values: Values) -> tuple[Floats, Bools | None]:
        """Numbers, NaN where there is none, and a mask of text that is none. Of categories, "true" is 1, "false" 0."""
        import polars as pl

        known: Mapping[str, float] = {"true": 1, "false": 0}
        if self.recode is not None:
            known, text = self.recode, one_spelling(as_series(values))
            numbers = pl.repeat(None, len(text), dtype=pl.Float64, eager=True)
        elif isinstance(values, np.ndarray):
            return values.astype(np.float64, copy=False), None
        elif values.dtype.is_numeric() or values.dtype in (pl.Boolean, pl.Null):
            return values.cast(pl.Float64).to_numpy(), None
        else:
            text = as_text(values).str.strip_chars()
            numbers = text.cast(pl.Float64, strict=False)
        odd = numbers.is_null() & ~text.is_in([*NOT_ANSWERED, *self.missing]).fill_null(True)
        if self.recode is None and odd.any():
            comma = text.str.replace(DECIMAL_COMMA, DECIMAL_POINT).cast(pl.Float64, strict=False)
            numbers = numbers.zip_with(~odd, comma)
            odd = odd & numbers.is_null()
        if (self.expects_01 or self.ordered) and odd.any():
            text = text if self.recode is not None else text.str.to_lowercase()
            said = pl.select(pl.when(odd).then(text)).to_series()
            said = said.replace_strict(dict(known), default=None, return_dtype=pl.Float64)
            numbers = numbers.fill_null(said)
            odd = odd & said.is_null()
        return numbers.to_numpy(), odd.to_numpy() if odd.any() else None

    def category(self, answers: Any) -> NDArray[np.uint8]:
        """The category of each answer of `clean`, but for a key."""
        if self.ordered:
            return np.asarray(answers).astype(np.uint8)
        if self.correct is not None:
            return np.array(answers.is_in(list(self.correct)).to_numpy()).view(np.uint8)
        right = answers == 1 if self.threshold is None else answers > self.threshold
        return np.asarray(right).view(np.uint8)


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
    if given is None:
        return ()
    one = isinstance(given, str | bytes) or not isinstance(given, Iterable)
    return (given,) if one else tuple(given)


def _as_numbers(codes: Iterable[str]) -> list[float]:
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
        found = read(how)
    except StrayFractionsError:
        raise
    except ResponseValueError:
        pass
    else:
        if found.codes is None:
            return found
        from spectral_irt.data.categories import looks_ordered

        if looks_ordered(found):
            n, scale = found.thresholds.widest + 1, "`SpectralRatingScale` for items that share their categories"
            said = f"The answers are in up to {n} ordered categories, for a partial credit model."
            key = "`key=` if the numbers are options of multiple choice"
            remedy = f"Say {scale}, `threshold=` for right and wrong, or {key}."
            return replace(found, notes=(Finding("ordered_categories", "note", said, remedy), *found.notes))
    return read(replace(how, ordered=False, undecided=False))


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
        self._scoring, self._wrong = scoring, (scoring.omitted == "wrong", scoring.not_reached == "wrong")
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
        presented = self._scoring.presented(values)
        given = np.zeros(len(items), dtype=bool)
        given[answered] = True
        rows = given.reshape(-1, width)
        last = width - 1 - rows[:, ::-1].argmax(axis=1)
        before = np.arange(width) < last[:, None]
        there: Bools = np.any(rows, axis=1, keepdims=True)
        shown = np.ones(rows.shape, dtype=bool) if presented is None else presented.reshape(rows.shape)
        blank, cells = ~rows & there & shown, there & (shown | rows)
        kinds = (blank & before, blank & ~before)
        self.sums[:, columns] += [mask.sum(axis=0) for mask in (cells, *kinds)]
        chosen = np.flatnonzero((kinds[0] & self._wrong[0]) | (kinds[1] & self._wrong[1]))
        return chosen if len(chosen) else None

    def findings(self, labels: Iterable[Any]) -> tuple[Finding, ...]:
        """How many blanks count as wrong, and whether that looks like a mistake."""
        cells, *kinds = self.sums
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
            remedy = "If these items were not on everybody's form, name the column of the forms with `form=`, say what "
            remedy += "stands for that with `not_presented=`, "
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
