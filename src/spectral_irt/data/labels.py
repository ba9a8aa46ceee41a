"""Labels: which of one source is which of another, and what names nobody.

A file whose item names are all whole numbers gives numbers, and one more item called "x" turns them all into text; a
key or a table of groups has types of its own. So labels are compared as they are first, and then as text (`positions`):
the one place where labels of two sources meet. Columns about people (`People`) and groups of people (`Split`) are kept
by labels, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Ints
from spectral_irt.errors import OptionError, ReadError
from spectral_irt.text import listed

if TYPE_CHECKING:
    import polars as pl

    from spectral_irt.data.responses import Responses

EXACT = 2.0**53  # whole numbers below this are exact in a float

# Always: the empty cell, and what R, pandas and JSON write for it. Nobody is called that either.
NOT_ANSWERED = ("", "NA", "NaN", "nan", "null")

# What a cell of a spreadsheet shows when its formula fails: never an answer, right or wrong.
CELL_ERRORS = ("#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NUM!", "#NULL!", "#SPILL!", "#CALC!")

# A number with a decimal comma, and what to write instead; before three digits the comma may part thousands.
DECIMAL_COMMA = r"^([+-]?\d+),(\d{1,2}|\d{4,})$"
DECIMAL_POINT = "$1.$2"

# fmt: off
# Never assumed, only suggested when they turn up where 0/1 is expected.
SUSPECTS = frozenset({
    *NOT_ANSWERED, "-1", "9", "-8", "-9", "99", "-99", "999", "-999", "9999", "-9999", "-99999",
    "N/A", "NULL", "None", "none", "na", "n/a", *CELL_ERRORS, ".", "-", "?", "*", "missing",
})
# fmt: on
# What says, whole, that there is no answer: the label of a code, or the answer itself. "Not relevant" does not: some
# scales score it.
SAYS_MISSING = re.compile(
    r"(no|not|missing|invalid) (answer|answered|response|data|stated|ascertained|available|given)"
    r"|(not|does not|doesn['’]?t) (applicable|apply)|inapplicable|n\.?/?a\.?|(item )?non-?response|unanswered"
    r"|refused?|refused to answer|refusal|prefer not to (say|answer)"
    r"|do(es)?(n['’]?t| not) know|dk|missing|skipped|left blank|system missing",
    re.IGNORECASE,
)
APPLIES = re.compile(r"\bappl(y|ies)", re.IGNORECASE)  # beside which "Does not apply" is an answer


def no_answers(texts: Sequence[str]) -> list[str]:
    """Those of the texts that say that there is no answer.

    >>> no_answers(["Never", "Often", "Refused", "does not apply"])
    ['Refused', 'does not apply']
    """
    missing = [text for text in texts if SAYS_MISSING.fullmatch(text.strip(" .()-"))]
    if any(APPLIES.search(text) for text in texts if text not in missing):
        missing = [text for text in missing if not APPLIES.search(text)]
    return missing


def is_missing(value: Any) -> bool:
    """None, NaN, and what dataframe libraries use for them (pandas' NA cannot even be compared)."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def spellings(values: Iterable[Any]) -> list[str]:
    """Values as text, each in its one spelling; None is the empty text, and True is 1."""
    texts = []
    for value in values:
        if isinstance(value, bool | np.bool_):
            value = int(value)
        texts.append("" if value is None else str(value))
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
    is_whole = pl.col("number") == pl.col("number").floor()
    spelled = (
        pl.when(plain & is_whole)
        .then(pl.col("number").cast(pl.Int64, strict=False).cast(pl.String))
        .when(plain)
        .then(pl.col("number").cast(pl.String))
        .otherwise(pl.col("text"))
    )
    return pl.DataFrame([text, number]).select(spelled.alias("text")).to_series()


def as_text(values: pl.Series) -> pl.Series:
    """The column as text; true is 1."""
    import polars as pl

    if values.dtype == pl.Boolean:
        values = values.cast(pl.Int8)
    if values.dtype == pl.String:
        return values
    return values.cast(pl.String)


def as_series(values: Any) -> pl.Series:
    import polars as pl

    if isinstance(values, np.ndarray):
        return pl.Series(values)
    return values


Labels = NDArray[Any]


def label_array(labels: Iterable[Any]) -> Labels:
    """Labels as int64 where all are whole numbers, else objects; never fixed-width strings, which pad and cut."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind == "i":
        return labels.astype(np.int64)
    plain = _plain(labels)
    if set(map(type, plain)) == {int}:
        with suppress(OverflowError):
            return np.array(plain, dtype=np.int64)
    out = np.empty(len(plain), dtype=object)
    for k, label in enumerate(plain):  # one by one: a label may be a tuple
        out[k] = label
    return out


def positions(labels: Iterable[Any], known: Iterable[Any]) -> Ints:
    """Where each label is among the known ones; -1 where it is not.

    Equal labels match. A label without an equal one matches the label that is the same text, so that 1 is "1", provided
    that there is one such label and nothing else matches it; otherwise it is an error.

    >>> positions(["q2", "q9"], ["q1", "q2"]).tolist(), positions(["2", "x"], [1, 2]).tolist()
    ([1, -1], [1, -1])
    """
    wanted = _plain(labels)
    known_labels = _plain(known)
    place_of = {label: k for k, label in enumerate(known_labels)}
    place = [place_of.get(label, -1) for label in wanted]
    if -1 in place:
        _match_as_text(wanted, known_labels, place)
    return np.array(place, dtype=np.int64)


def _match_as_text(wanted: list[Any], known: list[Any], place: list[int]) -> None:
    """Fill in the places of labels that have no equal one but are the same text; an error where that is ambiguous."""
    places_of_text: dict[str, list[int]] = {}
    for k, label in enumerate(known):
        places_of_text.setdefault(text_of(label), []).append(k)
    matched_by: dict[int, Any] = {k: label for label, k in zip(wanted, place, strict=True) if k >= 0}
    for n, label in enumerate(wanted):
        if place[n] >= 0:
            continue
        same_text = places_of_text.get(text_of(label), [])
        if len(same_text) > 1:
            raise _ambiguous([known[k] for k in same_text], label)
        if same_text:
            [k] = same_text
            other = matched_by.setdefault(k, label)
            if type(other) is not type(label) or other != label:
                raise _ambiguous([label, other], known[k])
            place[n] = k


def _ambiguous(alike: list[Any], label: Any) -> OptionError:
    names = " and ".join(listed([each]) for each in alike[:2])
    what = f"{names} are the same label as text, and {listed([label])} could be either."
    return OptionError(f"{what} Rename one of them.")


def _plain(labels: Iterable[Any]) -> list[Any]:
    return labels.tolist() if isinstance(labels, np.ndarray) else list(map(plain_label, labels))


def plain_label(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def text_of(label: Any) -> str:
    """A label as text; a whole number is written without a point."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


def readable(labels: NDArray[Any]) -> list[str]:
    return [str(label).encode("utf-8", "replace").decode("utf-8") for label in labels.tolist()]


def names_nothing(label: Any) -> bool:
    return is_missing(label) or (isinstance(label, str) and label.strip() in NOT_ANSWERED)


def nobody(where: str, rows: Iterable[int]) -> ReadError:
    rows = list(rows)
    has = "row {} has" if len(rows) == 1 else "rows {} have"
    what = f"{where} names the people, and {has.format(listed(rows))} no name there (empty, NA or NaN),"
    return ReadError(f"{what} so it is not known whose answers these are. Fill it in, or remove the rows.")


class People(dict[str, NDArray[Any]]):
    """Columns by name, each with a value for every person in their order, None where nothing is known."""

    def __init__(self, labels: Labels, columns: Mapping[str, NDArray[Any]], source: str = "the data") -> None:
        super().__init__(columns)
        self.labels = labels
        self.source = source

    def of(self, persons: Labels) -> People:
        """The same of these people, brought together by their labels."""
        place = positions(persons, self.labels)
        nothing = np.array([None], dtype=object)  # at the end, where -1 points to
        columns = {name: np.concatenate([values, nothing])[place] for name, values in self.items()}
        return People(persons, columns, self.source)


def column_of(responses: Any, name: str) -> list[Any]:
    """The values of a column about people; an error where none of this name was read."""
    people = responses.people
    if people is None or name not in people:
        there_are = f"; there are {listed(people)}" if people else ""
        what = f"{responses.source}: no column {name!r} about people was read{there_are}."
        raise OptionError(f"{what} Name it in `people=` of read, or give a value for each person.")
    values: list[Any] = people[name].tolist()
    return values


@dataclass(frozen=True, eq=False)
class Split:
    """People in groups: what each is called, and each person's group as a position there, -1 for a person in none."""

    names: tuple[str, ...]
    group: Ints

    @property
    def n_groups(self) -> int:
        return len(self.names)

    def keep(self, groups: NDArray[np.bool_]) -> Split:
        code = np.append(np.where(groups, np.cumsum(groups) - 1, -1), -1)
        return Split(tuple(np.array(self.names, dtype=object)[groups]), code[self.group])


def by_label(responses: Responses, labels: Any) -> Split:
    """Groups of equal labels: one for each person in order, a mapping by person, or a column about people."""
    column = _one_for_each(responses, labels)
    # Of each label once: there are few, and of persons a million.
    distinct = list(dict.fromkeys(column))
    named = [label for label in distinct if not names_nothing(label)]
    levels = sorted(set(named), key=lambda label: (isinstance(label, str), label))
    code = dict.fromkeys(distinct, -1)
    code.update(zip(named, positions(named, levels).tolist(), strict=True))
    group = np.fromiter((code[label] for label in column), dtype=np.int64, count=len(column))
    return Split(tuple(map(str, levels)), group)


def _one_for_each(responses: Responses, labels: Any) -> list[Any]:
    """A label for each person: of a column, of a mapping by person (None for others), or as they are given."""
    if isinstance(labels, str):
        return column_of(responses, labels)
    if isinstance(labels, Mapping):
        persons = responses.persons.tolist()
        place = positions(persons, labels)
        if not (place >= 0).any():
            what = f"none of the {len(labels):,} people in the groups ({listed(labels)}) is in {responses.source}"
            raise OptionError(f"{what} ({listed(persons)}). Check that both name people alike.")
        values = list(labels.values())
        return [values[k] if k >= 0 else None for k in place]
    array = np.asarray(labels, dtype=object) if isinstance(labels, list | tuple) else np.asarray(labels)
    if array.ndim != 1 or len(array) != responses.n_persons:
        shape = f"{len(array):,} labels" if array.ndim == 1 else f"an array of shape {array.shape}"
        raise OptionError(
            f"the groups are {shape}, and {responses.source} has {responses.n_persons:,} people; give one label "
            "for each person, in their order, or a mapping from person to label."
        )
    column: list[Any] = array.tolist()
    return column
