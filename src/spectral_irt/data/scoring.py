"""Raw answers -> categories: by 0 and 1, a key, the right values, a threshold, the person's own mean, or as they are.
In two steps, because a person's mean is known only when all ratings were seen: `Scoring.clean` turns raw values, a
polars Series or an array of numbers, into answers; `Scoring.category` says in which category each is. `ValueCheck`
takes note of values that are neither an answer nor missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.categories import HIGHEST, UNUSED, recoding, score_of
from spectral_irt.data.labels import (
    CELL_ERRORS,
    NOT_ANSWERED,
    SUSPECTS,
    as_series,
    as_text,
    one_spelling,
    positions,
    spellings,
)
from spectral_irt.data.value_check import is_fraction, odd_sentence
from spectral_irt.errors import OptionError, ResponseValueError, unknown_option
from spectral_irt.text import NAMED, listed

if TYPE_CHECKING:
    import polars as pl

    from spectral_irt.data.block import Floats, Ints
    from spectral_irt.data.block import Mask as Bools
    from spectral_irt.data.responses import Responses

    Values = pl.Series | Floats

Polarity = Literal["right", "wrong"]
Blank = Literal["wrong", "missing"]


class Answers(NamedTuple):
    """The answers among raw values, which of the values they are, and which are neither answer nor missing."""

    values: Values
    answered: Ints | None  # positions; None: all of them
    odd: Bools | None  # None: none of them

    def of(self, each: NDArray[Any]) -> NDArray[Any]:
        return each if self.answered is None else each.take(self.answered)


class Keys(NamedTuple):
    """The key of every item: one option and its score after the other, null where an item has no more of them."""

    options: list[pl.Series]
    scores: list[NDArray[np.uint8]]
    best: NDArray[np.uint8]  # the highest score


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
    above_mean: Polarity | None = None
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

    def __post_init__(self) -> None:
        """Check every option, and put it into one form; what is in this form already stays as it is."""
        ways = ("key", "correct", "threshold", "above_mean", "recode")
        said = [name for name in ways if getattr(self, name) is not None]
        if len(said) > 1:
            names = " and ".join(f"`{one}`" for one in said)
            raise OptionError(f"{names} are different ways of scoring; say one of them.")
        if self.ordered and said and said[0] in ("correct", "threshold", "above_mean"):
            what = f"these answers are in ordered categories, and `{said[0]}` is for right and wrong answers only;"
            raise OptionError(f"{what} leave it out.")
        blanks = dict.fromkeys(("omitted", "not_reached"), ("missing", "wrong"))
        for name, allowed in {"above_mean": (None, "right", "wrong"), "unused": UNUSED, **blanks}.items():
            if getattr(self, name) not in allowed:
                raise unknown_option(name, getattr(self, name), allowed)
            if name in blanks and getattr(self, name) == "wrong" and self.above_mean is not None:
                what = f"`{name}='wrong'` is for tests, and `above_mean` for ratings:"
                raise OptionError(f"{what} what is not rated is not below the mean. Leave out one of them.")
        made: dict[str, Any] = {}
        for name in ("not_presented", "missing"):
            given = several(getattr(self, name))
            made[name] = tuple(spellings(given)) if given else ()
        made["missing"] = tuple(dict.fromkeys([*made["missing"], *made["not_presented"]]))
        if self.key is not None:
            made["key"] = _checked_key(self.key)
        if self.correct is not None:
            made["correct"] = tuple(spellings(several(self.correct)))
            if not made["correct"]:
                raise OptionError("`correct` names no value; say which answers are right.")
        if self.threshold is not None:
            with suppress(TypeError, ValueError):
                made["threshold"] = float(self.threshold)
            if not np.isfinite(made.get("threshold", np.nan)):
                raise OptionError(f"`threshold` is {self.threshold!r}; it must be a finite number.")
        if self.recode is not None:
            numbers = recoding(self.recode)
            made |= {"recode": numbers, "ordered": True, "span": (0, max(numbers.values()))}
        turned = self.reverse.split(",") if isinstance(self.reverse, str) else several(self.reverse)
        made["reverse"] = tuple(one.strip() if isinstance(self.reverse, str) else one for one in turned)
        vars(self).update(made)

    @property
    def compares_text(self) -> bool:
        """Answers are compared with right ones, so any value is an answer; otherwise answers are numbers."""
        return self.key is not None or self.correct is not None

    @property
    def expects_01(self) -> bool:
        return not (self.ordered or self.compares_text or self.threshold is not None or self.above_mean is not None)

    @property
    def highest(self) -> int:
        """Of the categories that there may be: above 1, what an item has is known when all answers were seen."""
        if self.key is not None:
            return max((score for one in self.key.values() for score in one.values()), default=1)
        return HIGHEST if self.ordered else 1

    @property
    def bits(self) -> int:
        return self.highest.bit_length()

    @property
    def expected(self) -> str:
        if self.compares_text:
            return "an error of the spreadsheet, not an answer"
        if self.recode is not None:
            return f"not among the labels of the categories, {listed(self.recode)}"
        if self.ordered:
            return f"not a category: these are whole numbers from 0 to {HIGHEST}"
        return "neither 0/1 nor missing" if self.expects_01 else "not a finite number"

    @property
    def how_to(self) -> str:
        """What to do about odd values that are not codes for missing ones."""
        if self.recode is not None:
            return " Add it to `recode`, or say `missing=` if it means 'not answered'."
        if self.ordered:
            how = " Number the categories 0, 1, 2, ..., or name them with `recode=`;"
            return f"{how} for right and wrong, say `threshold=`."
        if self.expects_01:
            return " Say which answers are correct with `key`, `correct`, `threshold` or `above_mean`."
        return " Say `missing=` if it means 'not answered', or `correct=` if the answers are not numbers."

    def clean(self, values: Values) -> Answers:
        if self.compares_text:
            text = one_spelling(as_series(values))
            present = (~text.is_in([*NOT_ANSWERED, *self.missing])).fill_null(False)
            failed = text.is_in(CELL_ERRORS).fill_null(False) & present
            failures = failed.to_numpy() if failed.any() else None
            return Answers(text.filter(present), _unless_all(present.to_numpy()), failures)
        codes = _as_numbers(self.missing) if self.recode is None else []  # else labels were compared as they are
        bounded = self.expects_01 or self.ordered
        if bounded and self.recode is None and (whole := _whole_numbers(values, self.highest, codes)) is not None:
            return Answers(whole, None, None)
        numbers, odd = self._numbers(values)
        answered = ~np.isnan(numbers)
        for code in codes:
            answered &= numbers != code
        where = _unless_all(answered)
        given = numbers if where is None else numbers.take(where)
        fits = np.isfinite(given)
        if bounded:
            fits = (given >= 0) & (given <= self.highest) & (given == np.floor(given))
        if not fits.all():
            where = np.arange(len(numbers)) if where is None else where
            odd = np.zeros(len(numbers), dtype=bool) if odd is None else odd.copy()
            odd[where[~fits]] = True
            where, given = where[fits], given[fits]
        return Answers(given, where, odd)

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
            # A decimal comma; before three digits it may part thousands.
            comma = text.str.replace(r"^([+-]?\d+),(\d{1,2}|\d{4,})$", "$1.$2").cast(pl.Float64, strict=False)
            numbers = numbers.zip_with(~odd, comma)
            odd = odd & numbers.is_null()
        if (self.expects_01 or self.ordered) and odd.any():
            text = text if self.recode is not None else text.str.to_lowercase()
            said = pl.select(pl.when(odd).then(text)).to_series()
            said = said.replace_strict(dict(known), default=None, return_dtype=pl.Float64)
            numbers = numbers.fill_null(said)
            odd = odd & said.is_null()
        return numbers.to_numpy(), odd.to_numpy() if odd.any() else None

    def keys_of(self, items: Iterable[Any]) -> Keys:
        """The options of every item that have a score."""
        import polars as pl

        key = self.key or {}
        known = [*(list(one.items()) for one in key.values()), []]
        own = [known[k] for k in positions(items, key)]
        most = max(map(len, own), default=0)
        padded = [one + [(None, 0)] * (most - len(one)) for one in own]
        return Keys(
            [pl.Series([one[k][0] for one in padded], dtype=pl.String) for k in range(most)],
            [np.array([one[k][1] for one in padded], dtype=np.uint8) for k in range(most)],
            np.array([max((score for _, score in one), default=1) for one in own], dtype=np.uint8),
        )

    def category(self, answers: Any, items: NDArray[Any], keys: Keys | None = None) -> NDArray[np.uint8]:
        """The category of each answer of `clean`, but for `above_mean`; `items` are the codes of each."""
        if keys is not None:
            found = np.zeros(len(items), dtype=np.uint8)
            for options, scores in zip(keys.options, keys.scores, strict=True):
                chosen = (answers == options.gather(items)).fill_null(False).to_numpy()
                found[chosen] = scores[items[chosen]]
            return found
        if self.ordered:
            return np.asarray(answers).astype(np.uint8)
        if self.correct is not None:
            return np.array(answers.is_in(list(self.correct)).to_numpy()).view(np.uint8)
        right = answers == 1 if self.threshold is None else answers > self.threshold
        return np.asarray(right).view(np.uint8)


class Place(NamedTuple):
    """Where a value stands, in the person's words."""

    name: str
    column: Any
    row: int


@dataclass
class ValueCheck:
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
            where = np.flatnonzero(found.odd)
            texts = one_spelling(as_series(values[where]))
            if self.first is None:
                self.first = (place(int(where[0])), texts[0])
            kinds = texts.unique(maintain_order=True)
            if self.fraction is None and self.scoring.expects_01:
                broken = next(filter(is_fraction, kinds), None)
                if broken is not None:
                    self.fraction = (place(int(where[(texts == broken).arg_max()])), broken)
            strange = where[~texts.is_in(list(SUSPECTS)).to_numpy()]  # an item may hold codes for "not answered"
            self.columns |= {place(k).column for k in strange[:20].tolist()}
            self.n_odd += len(texts)
            self.odd |= dict.fromkeys(kinds.head(1000).to_list())
        elif self.scoring.threshold is not None and len(found.values):
            self.low = min(self.low, float(found.values.min()))  # type: ignore[arg-type]
            self.high = max(self.high, float(found.values.max()))  # type: ignore[arg-type]
        elif self.scoring.compares_text and not self.examples:
            self.examples = as_series(found.values).unique(maintain_order=True).head(NAMED + 1).to_list()
        return found

    def check(self, name: str) -> None:
        """Raise when some value was odd, or when the threshold leaves nothing to compare."""
        if self.first is not None:
            raise ResponseValueError(odd_sentence(self))
        threshold = self.scoring.threshold
        if threshold is not None and self.low <= self.high and not self.low <= threshold < self.high:
            effect = "none is" if threshold >= self.high else "all are"
            raise OptionError(
                f"`threshold` is {threshold:g}, and the responses in {name} run from {self.low:g} to {self.high:g}, "
                f"so {effect} above it; choose a threshold of at least {self.low:g} and less than {self.high:g}."
            )

    def check_scored(self, responses: Responses) -> None:
        """Raise when no answer at all agrees with the right ones: they are spelled differently."""
        if not self.scoring.compares_text or responses.scores.any() or not responses.n_responses:
            return
        if self.scoring.correct is not None:
            said: str = f"`correct` is {listed(self.scoring.correct)}"
        else:
            options = dict.fromkeys(text for one in (self.scoring.key or {}).values() for text in one)
            said = f"the key holds {listed(options)}"
        what = f"{said}, but no response agrees with it; the responses are {listed(self.examples)}."
        raise OptionError(f"{what} Check the spelling, capitals included.")


def _checked_key(key: Mapping[Any, Any]) -> dict[Any, dict[str, int]]:
    checked = {}
    for item, given in key.items():
        right = given.split("|") if isinstance(given, str) else [given]
        answers = given if isinstance(given, Mapping) else dict.fromkeys(right, 1)
        options = dict(zip(spellings(answers), answers.values(), strict=True))
        scores = {text: score_of(score, item) for text, score in options.items() if text not in NOT_ANSWERED}
        if scores:
            checked[item] = dict(sorted(scores.items(), key=lambda one: -one[1]))
    return checked


def _as_numbers(codes: Iterable[str]) -> list[float]:
    numbers = []
    for code in codes:
        with suppress(ValueError):
            numbers.append(float(code))
    return numbers


def several(given: Any) -> tuple[Any, ...]:
    if given is None:
        return ()
    one = isinstance(given, str | bytes) or not isinstance(given, Iterable)
    return (given,) if one else tuple(given)


def _whole_numbers(values: Values, highest: int, missing: Sequence[float]) -> NDArray[Any] | None:
    """Whole numbers as they are, if all are categories: most files hold nothing else, and need no look at each."""
    if any(0 <= code <= highest for code in missing):
        return None
    if not isinstance(values, np.ndarray):
        import polars as pl

        if values.null_count() or not (values.dtype.is_integer() or values.dtype == pl.Boolean):
            return None
        values = values.to_numpy()
    if values.dtype.kind not in "biu" or not len(values) or values.min() < 0 or values.max() > highest:
        return None
    return values


def _unless_all(mask: Bools) -> Ints | None:
    return None if mask.all() else np.flatnonzero(mask)
