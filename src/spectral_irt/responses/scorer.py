"""Raw answers -> right or wrong: an answer key, the right values, a threshold, or the person's own mean.

Scoring is done in two steps, because a person's mean is known only when all ratings were seen. `Scoring.clean` turns
raw values into answers, without the missing ones; `Scoring.right` marks the answers. Both work on values of any number,
so files are scored piece by piece: a polars Series of any type, or an array of numbers, for which polars is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import OptionError, check_option, join, option
from spectral_irt.responses.labels import positions
from spectral_irt.responses.missing import CELL_ERRORS, NOT_ANSWERED

if TYPE_CHECKING:
    import polars as pl

    from spectral_irt.responses.block import Floats, Ints

    Values = pl.Series | Floats

Bools = NDArray[np.bool_]
Polarity = Literal["right", "wrong"]
Blank = Literal["wrong", "missing"]

# A rating is above the mean when it exceeds it by more than this share of the person's mean |rating|: the sum of equal
# ratings is not always their exact multiple, and the order of summation must not decide.
SLACK = 1e-9

EXACT = 2.0**53  # whole numbers below this are exact in a float


class Answers(NamedTuple):
    """The answers among raw values, which of the values they are, and which are neither answer nor missing."""

    values: Values
    answered: Ints | None  # positions; None: all of them
    odd: Bools | None  # None: none of them

    def of(self, each: NDArray[Any]) -> NDArray[Any]:
        """The answers' part of what there is for each of the values."""
        return each if self.answered is None else each.take(self.answered)


_HOW_TO_SCORE = (
    " Say what counts as right with "
    + join([option("key"), option("correct"), option("threshold")], ", ")
    + " or "
    + option("above_mean")
    + "."
)
_HOW_TO_LEAVE_OUT = (
    " Say "
    + option("missing", ...)
    + " if it means 'not answered', or "
    + option("correct", ...)
    + " if the answers are not numbers."
)


@dataclass(frozen=True)
class Scoring:
    """How raw values become right, wrong or missing. Make one with `scoring`, which checks the options."""

    missing: tuple[str, ...] = ()
    key: Mapping[Any, str] | None = None
    correct: tuple[str, ...] | None = None
    threshold: float | None = None
    above_mean: Polarity | None = None
    omitted: Blank = "missing"
    not_reached: Blank = "missing"
    not_presented: tuple[str, ...] = ()

    @property
    def counts_blanks(self) -> bool:
        """Whether some blank cells count as wrong."""
        return "wrong" in (self.omitted, self.not_reached)

    @property
    def compares_text(self) -> bool:
        """Answers are compared with right ones, so any value is an answer; otherwise answers are numbers."""
        return self.key is not None or self.correct is not None

    @property
    def expects_01(self) -> bool:
        return not self.compares_text and self.threshold is None and self.above_mean is None

    @property
    def expected(self) -> str:
        """What an odd value is, in words."""
        if self.compares_text:
            return "an error of the spreadsheet, not an answer"
        return "neither 0/1 nor missing" if self.expects_01 else "not a finite number"

    @property
    def how_to(self) -> str:
        """What to do about odd values that are not codes for missing ones."""
        return _HOW_TO_SCORE if self.expects_01 else _HOW_TO_LEAVE_OUT

    def clean(self, values: Values) -> Answers:
        """The answers, without the missing ones."""
        if self.compares_text:
            text = one_spelling(as_series(values))
            given = (~text.is_in([*NOT_ANSWERED, *self.missing])).fill_null(False)
            failed = text.is_in(CELL_ERRORS).fill_null(False) & given
            odd = failed.to_numpy() if failed.any() else None
            return Answers(text.filter(given), _unless_all(given.to_numpy()), odd)
        if self.expects_01 and (whole := _zeros_and_ones(values)) is not None:
            return Answers(whole, None, None)
        numbers, no_number = self._numbers(values)
        if self.expects_01:
            answered = (numbers == 0) | (numbers == 1)
            if not self.missing and no_number is None and answered.all():
                return Answers(numbers, None, None)
            known = answered | np.isnan(numbers)
        else:
            known = ~np.isinf(numbers)
            answered = known & ~np.isnan(numbers)
        for code in self._missing_numbers():
            known |= numbers == code
            answered &= numbers != code
        odd = ~known if no_number is None else ~known | no_number
        where = _unless_all(answered)
        return Answers(numbers if where is None else numbers.take(where), where, odd if odd.any() else None)

    def _missing_numbers(self) -> list[float]:
        return _as_numbers(self.missing)

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
        """Numbers, NaN where there is none, and a mask of text that is none. With 0/1, "true" is 1 and "false" 0."""
        if isinstance(values, np.ndarray):
            return values.astype(np.float64, copy=False), None
        import polars as pl

        if values.dtype.is_numeric() or values.dtype in (pl.Boolean, pl.Null):
            return values.cast(pl.Float64).to_numpy(), None
        text = as_text(values).str.strip_chars()
        numbers = text.cast(pl.Float64, strict=False)
        odd = numbers.is_null() & ~text.is_in([*NOT_ANSWERED, *self.missing]).fill_null(True)
        if self.expects_01 and odd.any():
            known = {"true": 1.0, "false": 0.0}
            said = text.str.to_lowercase().replace_strict(known, default=None, return_dtype=pl.Float64)
            numbers = numbers.fill_null(said)
            odd = odd & said.is_null()
        return numbers.to_numpy(), odd.to_numpy() if odd.any() else None

    def keys_of(self, items: Iterable[Any]) -> pl.Series | None:
        """The right answer of every item, null where the key has none; None when there is no key."""
        if self.key is None:
            return None
        import polars as pl

        answers = [*self.key.values(), None]
        return pl.Series([answers[k] for k in positions(items, self.key)], dtype=pl.String)

    def right(
        self,
        answers: Any,
        *,
        items: NDArray[Any],
        users: NDArray[Any],
        keys: pl.Series | None = None,
        means: Means | None = None,
    ) -> NDArray[np.bool_]:
        """Which answers, of `clean`, are right; `items` and `users` are the codes of each."""
        if self.key is not None:
            assert keys is not None
            return (answers == keys.gather(items)).fill_null(False).to_numpy()
        if self.correct is not None:
            return answers.is_in(list(self.correct)).to_numpy()
        if self.threshold is not None:
            return np.asarray(answers > self.threshold)
        if self.above_mean is not None:
            assert means is not None
            above = answers - means.mean[users] > means.slack[users]
            return above if self.above_mean == "right" else ~above
        return np.asarray(answers == 1)


def scoring(
    *,
    missing: Any = (),
    key: Mapping[Any, Any] | None = None,
    correct: Any = None,
    threshold: float | None = None,
    above_mean: str | None = None,
    omitted: str = "missing",
    not_reached: str = "missing",
    not_presented: Any = (),
) -> Scoring:
    """How to score, with every option checked.

    Parameters
    ----------
    missing : value or values
        What else means "not answered", beside the empty cell, null, NaN, "NA", "NaN", "nan" and "null".
    key : mapping of item to right answer
        For multiple choice.
    correct : value or values
        Right, whatever the item; every other answer is wrong.
    threshold : float
        Values above it are right.
    above_mean : "right" or "wrong"
        What a rating strictly above the mean of the person's own ratings counts as. "wrong" is the paper's polarity:
        what a person likes is coded 0, so that a larger difficulty means better liked.
    omitted, not_reached : "missing" or "wrong"
        What a blank cell of a table with a row for each person is: before a later answer of the person, and after the
        last one.
    not_presented : value or values
        What means that the item was not on the person's form: neither omitted nor not reached. "" is the empty cell.

    Examples
    --------
    >>> scoring(correct=[2, "B"]).correct
    ('2', 'B')
    """
    given = {"key": key, "correct": correct, "threshold": threshold, "above_mean": above_mean}
    said = [name for name, value in given.items() if value is not None]
    if len(said) > 1:
        raise OptionError(join(map(option, said), " and "), " are different ways of scoring; say one of them.")
    check_option("above_mean", above_mean, (None, "right", "wrong"))
    for name, value in (("omitted", omitted), ("not_reached", not_reached)):
        check_option(name, value, ("missing", "wrong"))
        if value == "wrong" and above_mean is not None:
            raise OptionError(
                option(name, "wrong"),
                " is for tests, and ",
                option("above_mean"),
                " for ratings: what is not rated is not below the mean. Leave out one of them.",
            )
    absent = tuple(spellings(_several(not_presented)))
    if threshold is not None:
        try:
            threshold = float(threshold)
        except (TypeError, ValueError):
            raise OptionError(option("threshold"), f" is {threshold!r}; it must be a number.") from None
        if not np.isfinite(threshold):
            raise OptionError(option("threshold"), f" is {threshold}; it must be a finite number.")
    right = None if correct is None else tuple(spellings(_several(correct)))
    if right == ():
        raise OptionError(option("correct"), " names no value; say which answers are right.")
    return Scoring(
        missing=(*spellings(_several(missing)), *absent),
        key=None if key is None else _checked_key(key),
        correct=right,
        threshold=threshold,
        above_mean=above_mean,  # type: ignore[arg-type]
        omitted=omitted,  # type: ignore[arg-type]
        not_reached=not_reached,  # type: ignore[arg-type]
        not_presented=absent,
    )


def _checked_key(key: Mapping[Any, Any]) -> dict[Any, str]:
    answers = spellings(key.values())
    return {item: answer for item, answer in zip(key, answers, strict=True) if answer not in NOT_ANSWERED}


def _as_numbers(codes: Iterable[str]) -> list[float]:
    numbers = []
    for code in codes:
        with suppress(ValueError):
            numbers.append(float(code))
    return numbers


def _several(values: Any) -> Sequence[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        return [values]
    return list(values)


# ------------------------------------------------------------------ one spelling of an answer


def spellings(values: Iterable[Any]) -> list[str]:
    """`one_spelling` of values from options; "" for None."""
    texts = ["" if v is None else str(int(v)) if isinstance(v, bool | np.bool_) else str(v) for v in values]
    if not texts:
        return []
    import polars as pl

    return one_spelling(pl.Series(texts, dtype=pl.String)).to_list()


def one_spelling(values: pl.Series) -> pl.Series:
    """Answers as text, spelled one way: 2, 2.0, "2" and " 2 " are the same answer, as are 0.5 and "0.50"."""
    import polars as pl

    text = as_text(values).str.strip_chars().alias("text")
    number = text.cast(pl.Float64, strict=False).alias("number")
    if number.null_count() == len(number):
        return text
    plain = pl.col("number").is_finite() & (pl.col("number").abs() < EXACT)
    whole = pl.col("number") == pl.col("number").floor()
    spelled = (
        pl.when(plain & whole)
        .then(pl.col("number").cast(pl.Int64, strict=False).cast(pl.String))
        .when(plain)
        .then(pl.col("number").cast(pl.String))
        .otherwise(pl.col("text"))
    )
    return pl.DataFrame([text, number]).select(spelled.alias("text")).to_series()


def as_text(values: pl.Series) -> pl.Series:
    import polars as pl

    if values.dtype == pl.Boolean:
        values = values.cast(pl.Int8)
    return values if values.dtype == pl.String else values.cast(pl.String)


def as_series(values: Values) -> pl.Series:
    import polars as pl

    return pl.Series(values) if isinstance(values, np.ndarray) else values


def _zeros_and_ones(values: Values) -> NDArray[Any] | None:
    """Whole numbers as they are, if all are 0 or 1: most files hold nothing else, and need no look at each value."""
    if not isinstance(values, np.ndarray):
        import polars as pl

        if values.null_count() or not (values.dtype.is_integer() or values.dtype == pl.Boolean):
            return None
        values = values.to_numpy()
    if values.dtype.kind not in "biu" or not len(values) or values.min() < 0 or values.max() > 1:
        return None
    return values


def _unless_all(mask: Bools) -> Ints | None:
    return None if mask.all() else np.flatnonzero(mask)


# ------------------------------------------------------------------ the person's own mean


@dataclass(frozen=True)
class Means:
    """The mean rating of every person, and how far above it counts as above."""

    mean: Floats
    slack: Floats


def means_from_sums(counts: Ints, sums: Floats, sizes: Floats) -> Means:
    """Means from how many ratings each person gave, their sum, and the sum of their absolute values."""
    n = np.maximum(counts, 1)
    return Means(sums / n, SLACK * sizes / n)


def means_of(users: NDArray[Any], ratings: Floats, n_users: int) -> Means:
    """Means from the ratings themselves and the person (code) of each."""
    return means_from_sums(
        np.bincount(users, minlength=n_users),
        np.bincount(users, weights=ratings, minlength=n_users).astype(np.float64),
        np.bincount(users, weights=np.abs(ratings), minlength=n_users).astype(np.float64),
    )
