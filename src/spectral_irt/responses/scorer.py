"""Raw answers -> right or wrong: an answer key, the right values, a threshold, or the user's own mean.

Scoring is done in two steps, because the mean of a user is known only when all of it was seen. `Scoring.clean` turns
raw values into answers, with null where there is none; `Scoring.right` marks the answers. Both work on a polars Series
of any length, so files are scored piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import OptionError, check_option, join, option
from spectral_irt.responses.arrays import check_threshold
from spectral_irt.responses.labels import positions

if TYPE_CHECKING:
    import polars as pl

    from spectral_irt.responses.block import Floats, Ints

Polarity = Literal["right", "wrong"]

# Always "not answered": the empty cell, and what R, pandas and JSON write for it.
NOT_ANSWERED = ("", "NA", "NaN", "nan", "null")

# A rating is above the mean when it exceeds it by more than this share of the user's mean |rating|: the sum of equal
# ratings is not always their exact multiple, and the order of summation must not decide.
SLACK = 1e-9

EXACT = 2.0**53  # whole numbers below this are exact in a float


@dataclass(frozen=True)
class Scoring:
    """How raw values become right, wrong or missing. Make one with `scoring`, which checks the options."""

    missing: tuple[str, ...] = ()
    key: Mapping[Any, str] | None = None
    correct: tuple[str, ...] | None = None
    threshold: float | None = None
    above_mean: Polarity | None = None

    @property
    def compares_text(self) -> bool:
        """Answers are compared with right ones, so any value is an answer; otherwise answers are numbers."""
        return self.key is not None or self.correct is not None

    @property
    def expects_01(self) -> bool:
        return not self.compares_text and self.threshold is None and self.above_mean is None

    def clean(self, values: pl.Series) -> tuple[pl.Series, pl.Series | None]:
        """Answers, null where there is none, and a mask of the values that are neither answer nor missing."""
        if self.compares_text:
            text = one_spelling(values)
            absent = text.is_in([*NOT_ANSWERED, *self.missing])
            return _null_where(text, absent), None
        numbers, odd = _numbers(values, self.missing, truth=self.expects_01)
        if self.expects_01:
            odd = odd | ((numbers != 0) & (numbers != 1)).fill_null(False)
        else:
            odd = odd | numbers.is_infinite().fill_null(False)
        return numbers, odd if odd.any() else None

    def keys_of(self, items: Iterable[Any]) -> pl.Series | None:
        """The right answer of every item, null where the key has none; None when there is no key."""
        import polars as pl

        if self.key is None:
            return None
        answers = [*self.key.values(), None]
        return pl.Series([answers[k] for k in positions(items, self.key)], dtype=pl.String)

    def right(
        self,
        answers: pl.Series,
        *,
        items: NDArray[Any],
        users: NDArray[Any],
        keys: pl.Series | None = None,
        means: Means | None = None,
    ) -> NDArray[np.bool_]:
        """Which answers (none of them null) are right; `items` and `users` are the codes of each."""
        if self.key is not None:
            assert keys is not None
            return (answers == keys.gather(items)).fill_null(False).to_numpy()
        if self.correct is not None:
            return answers.is_in(list(self.correct)).to_numpy()
        numbers = answers.to_numpy()
        if self.threshold is not None:
            return np.asarray(numbers > self.threshold)
        if self.above_mean is not None:
            assert means is not None
            above = numbers - means.mean[users] > means.slack[users]
            return above if self.above_mean == "right" else ~above
        return np.asarray(numbers == 1)


def scoring(
    *,
    missing: Any = (),
    key: Mapping[Any, Any] | None = None,
    correct: Any = None,
    threshold: float | None = None,
    above_mean: str | None = None,
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
        What a rating strictly above the mean of the user's own ratings counts as. "wrong" is the paper's polarity:
        what a user likes is coded 0, so that a larger difficulty means better liked.

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
    if threshold is not None:
        try:
            threshold = float(threshold)
        except (TypeError, ValueError):
            raise OptionError(option("threshold"), f" is {threshold!r}; it must be a number.") from None
        check_threshold(threshold)
    right = None if correct is None else tuple(spellings(_several(correct)))
    if right == ():
        raise OptionError(option("correct"), " names no value; say which answers are right.")
    return Scoring(
        missing=tuple(spellings(_several(missing))),
        key=None if key is None else _checked_key(key),
        correct=right,
        threshold=threshold,
        above_mean=above_mean,  # type: ignore[arg-type]
    )


def _checked_key(key: Mapping[Any, Any]) -> dict[Any, str]:
    answers = spellings(key.values())
    return {item: answer for item, answer in zip(key, answers, strict=True) if answer not in NOT_ANSWERED}


def _several(values: Any) -> Sequence[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        return [values]
    return list(values)


# ------------------------------------------------------------------ one spelling of an answer


def spellings(values: Iterable[Any]) -> list[str]:
    """`one_spelling` of values from options; "" for None."""
    import polars as pl

    texts = ["" if v is None else str(int(v)) if isinstance(v, bool | np.bool_) else str(v) for v in values]
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


def _numbers(values: pl.Series, missing: Sequence[str], *, truth: bool) -> tuple[pl.Series, pl.Series]:
    """Numbers, null where missing, and a mask of what is not a number. With `truth`, "true" is 1 and "false" 0."""
    import polars as pl

    if values.dtype.is_numeric() or values.dtype in (pl.Boolean, pl.Null):
        numbers = values.cast(pl.Float64)
        odd = pl.repeat(False, len(values), eager=True)
    else:
        text = as_text(values).str.strip_chars()
        numbers = text.cast(pl.Float64, strict=False)
        odd = numbers.is_null() & ~text.is_in([*NOT_ANSWERED, *missing]).fill_null(True)
        if truth and odd.any():
            known = {"true": 1.0, "false": 0.0}
            said = text.str.to_lowercase().replace_strict(known, default=None, return_dtype=pl.Float64)
            numbers = numbers.fill_null(said)
            odd = odd & said.is_null()
    codes = pl.Series(missing, dtype=pl.String).cast(pl.Float64, strict=False).drop_nulls()
    absent = numbers.is_nan()
    if len(codes):
        absent = absent | numbers.is_in(codes.to_list())
    return _null_where(numbers, absent), odd


def _null_where(values: pl.Series, absent: pl.Series) -> pl.Series:
    if not absent.any():
        return values
    return values.set(absent.fill_null(False), None)


# ------------------------------------------------------------------ the user's own mean


@dataclass(frozen=True)
class Means:
    """The mean rating of every user, and how far above it counts as above."""

    mean: Floats
    slack: Floats


def means_from_sums(counts: Ints, sums: Floats, sizes: Floats) -> Means:
    """Means from how many ratings each user gave, their sum, and the sum of their absolute values."""
    n = np.maximum(counts, 1)
    return Means(sums / n, SLACK * sizes / n)


def means_of(users: NDArray[Any], ratings: Floats, n_users: int) -> Means:
    """Means from the ratings themselves and the user (code) of each."""
    return means_from_sums(
        np.bincount(users, minlength=n_users),
        np.bincount(users, weights=ratings, minlength=n_users).astype(np.float64),
        np.bincount(users, weights=np.abs(ratings), minlength=n_users).astype(np.float64),
    )
