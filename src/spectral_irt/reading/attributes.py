"""Which columns of a wide table are items: those that were named, those of the answer key, or all but the attributes;
and columns about people, read in the same pass as their answers.

A column that is about the person (sex, group, school) may hold zeros and ones and would be calibrated like an item, and
so would a total score. Names and values tell them; what was left out, and what was not, is said in findings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import compress
from typing import Any

import numpy as np
import polars as pl

from spectral_irt.data.finding import Finding
from spectral_irt.data.labels import NOT_ANSWERED, Labels, People, item_label, one_spelling, positions
from spectral_irt.errors import OptionError, listed
from spectral_irt.reading.frame import Table, all_whole, plain_labels

# fmt: off
# Attributes that may well be coded 0 and 1: the name alone decides.
CATEGORIES = frozenset({
    "sex", "gender", "group", "class", "classroom", "school", "form", "booklet", "grade", "ethnicity", "race",
    "teacher", "cohort", "education", "educ", "marital", "country", "income", "occupation", "religion", "nationality",
})
# Attributes that are never just 0 and 1: with such values, the column is more likely an item of this name.
MEASURES = frozenset({"age", "id", "total", "score", "date", "dob", "birthdate", "birthday", "timestamp", "email"})
ATTRIBUTES = CATEGORIES | MEASURES
# Words that may stand beside them without making the column anything else.
_BESIDE = frozenset({
    "student", "person", "pupil", "user", "subject", "respondent", "participant", "test", "exam", "raw", "sum",
    "final", "level", "name", "number", "no", "nr", "code", "of", "the", "at", "in", "birth", "years",
})
# fmt: on

SUM_COLUMNS = 1000  # tables up to this wide are searched for a column that is the sum of the others
FEWEST_SUMMANDS = 3
FEWEST_ALIKE, MOST = 5, 0.7  # columns, and share of them, that make a family of items
FEW_VALUES = 12  # different values of an item, at most
USUAL, STRAY = 0.2, 0.2  # of the family: columns that have a value; of a column: values within the family's
LABEL = "label"
DECIMAL = r"^-?(0|[1-9]\d*)(\.\d+)?$"  # a number; a code such as 007 is none
KEPT = 1_000_000  # rows that may wait before those of the same person are made one


def words_of(name: Any) -> list[str]:
    """The words of a name: "ageGroup" and "Age_group" are age, group; "score1" is one word."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(name))
    return [word.lower() for word in re.split(r"[\W_]+", spaced) if word]


def says_attribute(name: Any) -> bool:
    """Whether a column of this name is clearly about the person: "sex", "Age group", "total_score".

    >>> [says_attribute(name) for name in ("Gender", "school_id", "score1", "form3_q2", "group 2")]
    [True, True, False, False, False]
    """
    words = set(words_of(name))
    return bool(words & ATTRIBUTES) and words <= ATTRIBUTES | _BESIDE


def mentions_attribute(name: Any) -> bool:
    """Whether a short name has such a word in it: "group 2", "age_q3". A whole question as name says nothing."""
    words = words_of(name)
    return len(words) <= 3 and bool(set(words) & ATTRIBUTES)


def attributes_among(names: Sequence[Any], are_answers: Sequence[bool]) -> tuple[list[int], list[int]]:
    """Positions of the names that are attributes, and of those that are merely suspect.

    Where most of the names look like that, it is how the items are called, and none is either.
    """
    sure = [k for k, name in enumerate(names) if says_attribute(name)]
    like = [k for k, name in enumerate(names) if says_attribute(name) or mentions_attribute(name)]
    if 2 * (len(like) - 1) > len(names) - 1 or len(names) - len(sure) < 2:
        return [], []
    out = [k for k in sure if not are_answers[k] or set(words_of(names[k])) & CATEGORIES]
    return out, [k for k in like if k not in out]


def are_answers(values: pl.Series) -> bool:
    """Zeros and ones, repeated: a column called "code" or "task" may be an item after all."""
    texts = one_spelling(values).drop_nulls()
    return texts.n_unique() < len(texts) and bool(texts.is_in(["0", "1", *NOT_ANSWERED]).all())


# ---------------------------------------------------------------------------------------- what was said


def parts_of(said: Any, known: Iterable[Any]) -> list[Any]:
    """The names in "a,b"; a column may be called that, and then it is meant."""
    if not isinstance(said, str) or "," not in said or said in {str(name) for name in known}:
        return [said]
    return [part.strip() for part in said.split(",") if part.strip()]


def named(said: Sequence[Any], names: Sequence[Any]) -> list[bool]:
    """Which of the names are meant by names and patterns such as "q*"."""
    texts = [str(name) for name in names]
    patterns = [str(part) for one in said for part in parts_of(one, names)]
    return [any(text == pattern or fnmatchcase(text, pattern) for pattern in patterns) for text in texts]


def check_named(said: Sequence[Any], names: Sequence[Any], source: str) -> None:
    """Refuse a name or pattern of items that is not there."""
    for one in said:
        for part in parts_of(one, names):
            if not any(named([part], names)):
                raise OptionError(
                    f"{source} has no column {str(part)!r} for `items`; its columns are {listed(names)}. Give names or "
                    "patterns such as `items='q*'`."
                )


# --------------------------------------------------------------------------------------------- a choice


@dataclass(frozen=True)
class ItemColumns:
    """Columns by name: items, and why others are not items or perhaps should not be."""

    items: tuple[Any, ...] = ()
    attributes: tuple[Any, ...] = ()
    totals: tuple[Any, ...] = ()
    not_in_key: tuple[Any, ...] = ()
    suspects: tuple[Any, ...] = ()
    unlike: tuple[Any, ...] = ()
    why: tuple[str, ...] = ()  # what each of these holds
    label: Any = None

    def findings(self) -> tuple[Finding, ...]:
        who = "numbered" if self.label is None else f"labeled by {self.label}"
        found = [Finding("items_taken", "note", f"Items: {_columns(self.items)}. People are {who}.", "", self.items)]
        for code, names, what in (
            ("attribute_columns", self.attributes, "named like an attribute of the person"),
            ("total_columns", self.totals, "the sum of the other columns, a total score"),
        ):
            if names:
                be, it = ("is", "it is an item") if len(names) == 1 else ("are", "they are items")
                sentence = f"Left out of the items: {_columns(names)}, which {be} {what}."
                remedy = f"If {it}, name all the items, as in `items={f'q*,{names[0]}'!r}`."
                found.append(Finding(code, "warning", sentence, remedy, names))
        if self.unlike:
            pairs = list(zip(self.unlike, self.why, strict=True))[:5]
            held = "; ".join(f"{listed([name])} holds {what}" for name, what in pairs)
            more = f" and {len(self.unlike) - 5:,} more" if len(self.unlike) > 5 else ""
            sentence = f"Left out of the items, being unlike the others: {held}{more}."
            remedy = f"If they are items, name all the items, as in `items={f'q*,{self.unlike[0]}'!r}`."
            found.append(Finding("unlike_columns", "warning", sentence, remedy, self.unlike))
        if self.not_in_key:
            known = all(says_attribute(name) for name in self.not_in_key)
            sentence = f"Not in the key, and not used as items: {_columns(self.not_in_key)}."
            remedy = "" if known else "Add the right answers of those that are items to the key."
            found.append(Finding("not_in_key", "note" if known else "warning", sentence, remedy, self.not_in_key))
        if self.suspects:
            sentence = f"Treated as items, though named like something else: {_columns(self.suspects)}."
            remedy = f"If that is wrong, say `ignore={','.join(map(str, self.suspects))!r}`."
            found.append(Finding("suspect_items", "warning", sentence, remedy, self.suspects))
        return tuple(found)


def _columns(names: Sequence[Any]) -> str:
    return f"{'column' if len(names) == 1 else f'{len(names):,} columns'} {listed(names)}"


def together(parts: Sequence[ItemColumns]) -> ItemColumns:
    """What was chosen in several tables; a column that is an item in one of them is an item."""
    if len(parts) == 1:
        return parts[0]

    def every(kind: str) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(name for part in parts for name in getattr(part, kind)))

    kinds = ("items", "attributes", "totals", "not_in_key", "suspects")
    odd = {name: what for part in parts for name, what in zip(part.unlike, part.why, strict=True)}
    chosen = {kind: every(kind) for kind in kinds}
    return ItemColumns(**chosen, unlike=tuple(odd), why=tuple(odd.values()), label=parts[0].label)


def choose_columns(
    table: Table, candidates: Sequence[int], items: Sequence[Any], key: Sequence[Any]
) -> tuple[list[int], ItemColumns]:
    """The positions of the items among these columns, and what there is to say; `items` and `key` were said, if any."""
    names = [item_label(table.columns[k]) for k in candidates]
    others: dict[str, tuple[Any, ...]] = {}
    if items:
        kept: Any = named(items, names)
    elif key and (kept := positions(names, key) >= 0).any():
        others["not_in_key"] = tuple(compress(names, ~kept))
    else:
        answers = [not says_attribute(n) or are_answers(table.head(k)) for k, n in zip(candidates, names, strict=True)]
        out, suspects = attributes_among(names, answers)
        left_out = set(out)
        rest = [n for n in range(len(names)) if n not in left_out]
        sums = [rest[n] for n in _sums(table, [candidates[n] for n in rest])]
        rest = [n for n in rest if n not in sums]
        doubted = [n in suspects for n in rest]
        odd = {rest[n]: what for n, what in unlike_the_others(table, [candidates[n] for n in rest], doubted).items()}
        kept = [n not in sums and n not in left_out and n not in odd for n in range(len(names))]
        kinds = {"attributes": out, "totals": sums, "suspects": [n for n in suspects if n not in sums and n not in odd]}
        others = {kind: tuple(names[n] for n in where) for kind, where in kinds.items()}
        others |= {"unlike": tuple(names[n] for n in odd), "why": tuple(odd.values())}
    return list(compress(candidates, kept)), ItemColumns(tuple(compress(names, kept)), **others)


def unlike_the_others(table: Table, columns: Sequence[int], doubted: Sequence[bool]) -> dict[int, str]:
    """Columns whose values are unlike those of most: fractions, words or many numbers beside answers such as 1 to 5.

    By their first rows; positions in `columns`, and what each holds. Nothing where most are not alike, and nothing
    where a column has stray values only: a code for a missing answer is a matter of that answer. A column whose name is
    `doubted` has no value that the others do not have.
    """
    if not FEWEST_ALIKE <= len(columns) <= SUM_COLUMNS:
        return {}
    held = [_held(table.head(k)) for k in columns]
    few = [numbers for numbers, _ in held if numbers is not None and 0 < len(np.unique(numbers)) <= FEW_VALUES]
    if len(few) < max(FEWEST_ALIKE, MOST * len(columns)):
        return {}
    every, times = np.unique(np.concatenate([np.unique(numbers) for numbers in few]), return_counts=True)
    usual = every[times >= USUAL * len(few)]
    if not len(usual) or len(usual) > FEW_VALUES:
        return {}
    low, high = usual[0], usual[-1]
    found = {}
    for n, (numbers, what) in enumerate(held):
        if numbers is None:
            found[n] = what
        elif len(numbers) and np.mean((numbers >= low) & (numbers <= high)) < (1.0 if doubted[n] else STRAY):
            shown = [f"{value:g}" for value in np.unique(numbers)]
            found[n] = f"{len(shown):,} other numbers" if len(shown) > FEW_VALUES else f"the codes {listed(shown)}"
    return found


def _held(values: pl.Series) -> tuple[np.ndarray[Any, Any] | None, str]:
    """The whole numbers of a column; or None and what it holds instead."""
    texts = one_spelling(values).drop_nulls()
    texts = texts.filter(~texts.is_in(NOT_ANSWERED))
    numbers = texts.cast(pl.Float64, strict=False).drop_nulls().to_numpy()
    if len(numbers) < STRAY * len(texts):
        return None, f"words ({listed(texts.unique(maintain_order=True).to_list()[:3])})"
    if len(numbers) and np.mean(numbers != np.round(numbers)) > 1 - STRAY:
        return None, "fractions"
    return numbers, ""


def _sums(table: Table, columns: Sequence[int]) -> list[int]:
    """Which of the columns is the sum of all others, in the first rows; it has a value above 1, unlike an item."""
    if not FEWEST_SUMMANDS < len(columns) <= SUM_COLUMNS:
        return []
    numbers = [_as_numbers(table.head(k)) for k in columns]
    if len({len(values) for values in numbers}) > 1 or len(numbers[0]) < FEWEST_SUMMANDS:
        return []
    values = np.stack(numbers, axis=1)
    total = np.nansum(values, axis=1)
    largest = np.nanmax(np.where(np.isfinite(values), values, -np.inf), axis=0)
    is_sum = (2 * values == total[:, None]).all(axis=0) & (largest > 1)
    return np.flatnonzero(is_sum).tolist() if is_sum.sum() == 1 else []


def _as_numbers(values: pl.Series) -> np.ndarray[Any, Any]:
    if values.dtype.is_nested() or values.dtype in (pl.Object, pl.Binary):
        return np.full(len(values), np.nan)
    return one_spelling(values).cast(pl.Float64, strict=False).to_numpy().astype(np.float64)


# ------------------------------------------------------------------ columns about people


class PersonColumns:
    """What columns say about people, as it comes by; a long table says it with every answer."""

    def __init__(self, names: Sequence[str], source: str, whom: tuple[str, str] = ("person", "people")) -> None:
        self.names, self.source, self.whom = tuple(dict.fromkeys(map(str, names))), source, whom
        self._parts: list[pl.DataFrame] = []
        self._waiting = self._settled = 0

    def positions(self, table: Table) -> list[int]:
        """Where the columns are in a table."""
        return [table.position("people", name) for name in self.names]  # type: ignore[misc]

    def add(self, labels: pl.Series, columns: Sequence[pl.Series]) -> None:
        """Some rows: labels of people, and their values in each column."""
        texts = [_texts(values, self.source).alias(f"c{k}") for k, values in enumerate(columns)]
        part = pl.DataFrame([_texts(labels, self.source).alias(LABEL), *texts])
        values = pl.all().exclude(LABEL).str.strip_chars()
        part = part.with_columns(pl.when(~values.is_in(NOT_ANSWERED)).then(values)).filter(pl.col(LABEL).is_not_null())
        self._parts.append(part.unique(maintain_order=True))
        self._waiting += self._parts[-1].height
        if self._waiting > 2 * self._settled + KEPT:
            self._together()

    def _together(self) -> pl.DataFrame:
        self._parts = [pl.concat(self._parts).unique(maintain_order=True)]
        self._waiting = self._settled = self._parts[0].height
        return self._parts[0]

    def people(self, persons: Labels) -> People:
        """What was said about these people; an error where it contradicts itself."""
        seen = self._together() if self._parts else pl.DataFrame(schema={LABEL: pl.String})
        columns = {}
        for k, name in enumerate(self.names):
            known = seen.select(LABEL, pl.col(f"c{k}").alias("value")).drop_nulls().unique(maintain_order=True)
            known = _settled(known, name, self.source, self.whom)
            values = np.empty(known.height, dtype=object)
            values[:] = known["value"].to_list()
            columns[name] = People(known[LABEL].to_numpy(), {name: values}).of(persons)[name]
        return People(persons, columns, self.source)


def _settled(known: pl.DataFrame, name: str, source: str, whom: tuple[str, str]) -> pl.DataFrame:
    twice = known.filter(pl.col(LABEL).is_duplicated())[LABEL].unique(maintain_order=True)
    if len(twice):
        raise OptionError(
            f"{source}: {len(twice):,} {f'{whom[0]} has' if len(twice) == 1 else f'{whom[1]} have'} more than one "
            f"value in the column {name!r}: {listed(twice.to_list())}. Give each {whom[0]} one."
        )
    if all_whole(known["value"]):
        return known.with_columns(pl.col("value").cast(pl.Int64))
    if known.height and known["value"].str.contains(DECIMAL).all():
        return known.with_columns(pl.col("value").cast(pl.Float64))
    return known


def _texts(values: pl.Series, name: str) -> pl.Series:
    return plain_labels(values, text=True, name=name).cast(pl.String)


# -------------------------------------------------------------------------- a table beside the answers


def read_people(
    path: str,
    columns: Sequence[str] = (),
    *,
    person: str | None = None,
    sheet: str | int | None = None,
    encoding: str | None = None,
) -> People:
    """Columns of a table with a row for each person, beside the answers; its only one where none is named."""
    from spectral_irt.reading.formats import read_one

    def read(table: Table) -> People:
        label = _label_column(table, columns, person)
        names = list(columns) or [str(name) for k, name in enumerate(table.columns) if k != label]
        if not columns and len(names) != 1:
            raise OptionError(f"say which column of {table.name} is meant; it has {listed(table.columns)}.")
        about = PersonColumns(names, table.name)
        places = about.positions(table)
        if label in places:
            name = names[places.index(label)]
            raise OptionError(f"{table.name}: column {name!r} names the people; a group is another one.")
        return _rows_about(table, label, places, about)

    return read_one(path, "a table of people", read, sheet=sheet, sheet_option="group_sheet", encoding=encoding)


def read_item_properties(path: str, *, sheet: str | int | None = None) -> People:
    """All columns of a table with a row for each item, which its column `item` names, or else the first."""
    from spectral_irt.reading.formats import read_one

    def read(table: Table) -> People:
        names = [str(name) for name in table.columns]
        label = names.index("item") if "item" in names else 0
        places = [k for k in range(len(names)) if k != label]
        if not places:
            raise OptionError(f"{table.name} has no column beside {names[0]!r}; each property of items is a column.")
        return _rows_about(
            table, label, places, PersonColumns([names[k] for k in places], table.name, ("item", "items"))
        )

    return read_one(path, "a table of items", read, sheet=sheet, sheet_option="item_covariates")


def _rows_about(table: Table, label: int, places: list[int], about: PersonColumns) -> People:
    labels: dict[str, None] = {}
    for piece, _ in table.pieces([label, *places]):
        own, *values = piece.get_columns()
        about.add(own, values)
        labels |= dict.fromkeys(own.cast(pl.String).drop_nulls())
    return about.people(np.array(list(labels), dtype=object))


def _label_column(table: Table, columns: Sequence[str], person: str | None) -> int:
    """The column that names the people: as said for the answers, by a usual name, or the first."""
    from spectral_irt.reading.columns import ID_NAMES, PERSON_NAMES, plain

    names = [str(name) for name in table.columns]
    if person is not None and str(person) in names:
        return names.index(str(person))
    others = [k for k, name in enumerate(names) if name not in columns]
    for known in (PERSON_NAMES, ID_NAMES):
        usual = [k for k in others if plain(names[k]) in known]
        if usual:
            return usual[0]
    return others[0] if others else 0
