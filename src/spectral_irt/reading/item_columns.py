"""Which columns of a wide table are items: those that were named, those of the answer key, or all that look alike.

A column about the person (sex, school, a weight, a cluster number, a total score) would be calibrated like an item.
Names show it here, values in `unlike_columns.py`; findings name what was left out and why.

`find_layout` (`columns.py`) asks for the items (`choose_columns`), the builder of wide tables for the findings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from spectral_irt.data.labels import NOT_ANSWERED, one_spelling, positions
from spectral_irt.data.value_check import ColumnFamilies
from spectral_irt.errors import Finding, OptionError, ReadError, Severity
from spectral_irt.reading.families import families_of, same_on_two_occasions
from spectral_irt.reading.frame import Table, is_plain
from spectral_irt.reading.unlike_columns import (
    FEW_VALUES,
    FEWEST_ALIKE,
    RIGHT_WRONG,
    WIDEST,
    Held,
    Unlike,
    columns_with_other_labels,
    number_of,
    range_in_words,
    unlike_the_others,
    values_of,
    words_beside_numbers,
)
from spectral_irt.text import NAMED, count, listed, one_or_many

if TYPE_CHECKING:
    from spectral_irt.reading import ReadOptions
    from spectral_irt.reading.columns import Wide

# fmt: off
# Attributes that may well be coded 0 and 1: the name alone decides.
CATEGORIES = frozenset({
    "sex", "gender", "group", "class", "classroom", "school", "form", "booklet", "grade", "ethnicity", "race",
    "teacher", "cohort", "education", "educ", "marital", "country", "income", "occupation", "religion", "nationality",
    "finished", "female", "male", "site", "clinic", "hospital", "ward", "arm", "treatment", "diagnosis",
    "geschlecht", "klasse", "schule", "gruppe", "heft", "testheft", "jahrgang", "lehrer", "lehrkraft",
    "sexo", "género", "genero", "clase", "grupo", "escuela", "curso", "sexe", "classe", "groupe", "école", "ecole",
})
# Attributes that are never just 0 and 1: with such values, the column is more likely an item of this name.
MEASURES = frozenset({
    "age", "id", "total", "score", "date", "dob", "birthdate", "birthday", "timestamp", "email", "name", "ip",
    "ipaddress", "started", "completed", "status", "progress", "duration", "latitude", "longitude", "language",
    "channel", "alter", "edad", "âge", "percent", "percentage", "prozent",
})
WHEN = frozenset({"date", "timestamp", "started", "completed", "ip", "ipaddress"})  # several people may have the same
ATTRIBUTES = CATEGORIES | MEASURES
REMARKS = frozenset({"comment", "comments", "remark", "remarks", "note", "notes", "bemerkung", "bemerkungen"})
RATERS = frozenset({"rater", "raters", "judge", "marker", "grader", "examiner", "assessor", "scorer"})
# Words that may stand beside them without making the column anything else.
_BESIDE = frozenset({
    "student", "person", "pupil", "user", "subject", "respondent", "participant", "test", "exam", "raw", "sum",
    "final", "level", "number", "no", "nr", "code", "of", "the", "at", "in", "birth", "years", "start", "end", "first",
    "last", "recorded", "response", "recipient", "distribution", "address", "seconds", "external", "data", "reference",
})
# fmt: on

FEWEST_SUMMANDS = 3
MANY_ITEMS = 20  # from which on families of names may be several tests
MOST_NUMBERED = 0.8  # of the items have a number in their names, where one without is worth a word
MOST_FAMILIES = 8  # that a message names


def words_of(name: Any) -> list[str]:
    """The words of a name: "ageGroup" and "Age_group" are age, group; "score1" is one word."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(name))
    return list(map(str.lower, re.findall(r"[^\W_]+", spaced)))


def says_attribute(name: Any) -> bool:
    """Whether a column of this name is clearly about the person: "sex", "Age group", "total_score".

    >>> [says_attribute(name) for name in ("Gender", "school_id", "score1", "form3_q2", "group 2")]
    [True, True, False, False, False]
    """
    words = set(words_of(name))
    return bool(words & ATTRIBUTES) and words <= ATTRIBUTES | _BESIDE


class Attributes(NamedTuple):
    """Columns whose names are attributes of the person, and those whose names merely mention one ("group 2",
    "age_q3")."""

    sure: list[int]
    suspected: list[int]


def _attributes(table: Table, columns: Sequence[int]) -> Attributes:
    """By their names. Where most of the names have the same of these words, it is how the items are called, and none is
    an attribute."""
    named_so: dict[int, frozenset[str]] = {}
    mentioning: list[int] = []
    times: Counter[str] = Counter()  # how many names have each of the words
    in_families = {k for family in families_of(table.columns) for k in family.columns}
    for k in columns:
        name = str(table.columns[k])
        if k not in in_families:
            name = re.sub(r"(?<=[a-z])\d{2,}$", "", name)  # Education123: codes 1, 2 and 3
        words = words_of(name)
        attributes = ATTRIBUTES.intersection(words)
        if not attributes:
            continue
        if says_attribute(name):
            named_so[k] = attributes
        if k in named_so or len(words) <= 3:
            mentioning.append(k)
            times.update(attributes)
    if not mentioning or 2 * (max(times.values()) - 1) > len(columns) - 1 or len(columns) - len(named_so) < 2:
        return Attributes([], [])
    sure = [k for k, words in named_so.items() if CATEGORIES & words or not are_answers(table.head(k))]
    return Attributes(sure, [k for k in mentioning if k not in sure])


def are_answers(values: pl.Series) -> bool:
    """Zeros and ones, repeated: a column called "code" or "task" may be an item after all."""
    texts = one_spelling(values).drop_nulls()
    return texts.n_unique() < len(texts) and bool(texts.is_in(["0", "1", *NOT_ANSWERED]).all())


def parts_of(given: Any, known: Iterable[Any]) -> list[Any]:
    """The names in "a,b"; a column may have that name, and then it is meant."""
    if not isinstance(given, str) or "," not in given or given in {str(name) for name in known}:
        return [given]
    return [part.strip() for part in given.split(",") if part.strip()]


def match_names(given: Sequence[Any], names: Sequence[Any]) -> list[bool]:
    """Which of the names are meant by names and patterns such as "q*"."""
    patterns = [str(part) for name in given for part in parts_of(name, names)]
    return [any(str(name) == pattern or fnmatchcase(str(name), pattern) for pattern in patterns) for name in names]


def check_named(given: Sequence[Any], names: Sequence[Any], source: str) -> None:
    """Refuse a name or pattern of items that is not there."""
    for part in (part for name in given for part in parts_of(name, names)):
        if not any(match_names([part], names)):
            what = f"{source} has no column {str(part)!r} for `items`; its columns are {listed(names)}."
            raise OptionError(f"{what} Give names or patterns such as `items='q*'`.")


MOST_PATTERNS = 6  # of an example of how to name columns, which has all of them
PATTERNS = 3  # of a longer one

# What is said of columns by the code of the finding: those left out, and those that perhaps should be.
SENTENCES = {
    "attribute_columns": "Left out of the items: {columns}, which {are} named like an attribute of the person.",
    "total_columns": "Left out of the items: {columns}, which {are} the sum of the other columns, a total score.",
    "unlike_columns": "Left out of the items, being unlike the others: {values}.",
    "not_in_key": "Not in the key, and not used as items: {columns}.",
    "unnamed_columns": "Left out of the items: {columns}, without a name and empty.",
    "suspect_items": "Treated as items, though named like something else: {columns}.",
    "doubtful_items": "Treated as items, though unlike the others: {values}.",
}


def findings(tables: Sequence[tuple[Table, Wide]], items: tuple[Any, ...]) -> Iterator[Finding]:
    """What is said of the columns of tables that are read as one, whose items these are."""
    table, layout = tables[0]
    who = "numbered" if table.row_labels is None else "labeled by the index"
    if layout.label is not None:
        who = f"labeled by column {str(table.columns[layout.label])!r}"
    yield Finding("items_taken", "note", f"Items: {_columns(items)}. People are {who}.", "", items)
    for code in SENTENCES:
        held = {table.columns[k]: what for table, layout in tables for k, what in layout.others.get(code, {}).items()}
        if held:
            yield _about_columns(code, held, items, layout.alike)
    if layout.by_default:
        yield from _named_apart(table, layout)


def _about_columns(code: str, held: Mapping[Any, str], items: tuple[Any, ...], alike: str) -> Finding:
    """One finding about columns that are no items, or perhaps none; `held` is what they hold, `alike` what the items
    do."""
    names = tuple(held)
    values = _held_in_words(held)
    if alike:
        n_others = sum(item not in held for item in items)
        values += f", where the {n_others:,} others hold {alike}"
    are = one_or_many(len(names), "is", "are")
    sentence = SENTENCES[code].format(columns=_columns(names), are=are, values=values)
    advice = _advice(code, names, items)
    return Finding(code, advice.severity, sentence, advice.remedy, names)


class _Advice(NamedTuple):
    """How much it matters that columns are no items, and what to do if they are."""

    severity: Severity
    remedy: str


def _advice(code: str, names: tuple[Any, ...], items: tuple[Any, ...]) -> _Advice:
    if code == "unnamed_columns":
        return _Advice("note", "")
    if code == "not_in_key":
        if all(says_attribute(name) or REMARKS.intersection(words_of(name)) for name in names):
            return _Advice("note", "")
        return _Advice("warning", "If one of them is an item, add its right answer to the key.")
    of_ratings = rater_advice(names)
    if of_ratings:
        of_ratings += " "
    if code in ("suspect_items", "doubtful_items"):
        return _Advice("warning", f"{of_ratings}If that is wrong, say `ignore={','.join(map(str, names))!r}`.")
    they_are = one_or_many(len(names), "it is an item", "they are items")
    families = families_of(names)
    first = families[0].names if families else names[:1]
    example = ",".join([*_patterns(items), *_patterns(first)])
    return _Advice("warning", f"{of_ratings}If {they_are}, name all the items, as in `items={example!r}`.")


def _patterns(names: Sequence[Any]) -> list[str]:
    """Patterns that mean these columns, for an example: families of names and other columns; of very many the first,
    and dots."""
    families = families_of(names)
    in_families = {place for family in families for place in family.columns}
    patterns = [family.pattern for family in families]
    others = [str(name) for place, name in enumerate(names) if place not in in_families]
    # A pattern may mean a column beside its family, too: M* is M01 to M20, and M05A.
    patterns += [name for name in others if not any(fnmatchcase(name, pattern) for pattern in patterns)]
    return patterns if len(patterns) <= MOST_PATTERNS else [*patterns[:PATTERNS], "..."]


def _held_in_words(held: Mapping[Any, str]) -> str:
    """What columns hold, a family of columns that hold the same at a time."""
    names = list(held)
    together: dict[int, str] = {}  # by the first column of a family, what it holds
    passed: set[int] = set()
    for family in families_of(names):
        if len({held[names[k]] for k in family.columns}) == 1:
            together[family.columns[0]] = f"{family.span} hold {held[family.names[0]]}"
            passed |= set(family.columns[1:])
    parts = []
    for k, name in enumerate(names):
        if k not in passed:
            parts.append(together.get(k, f"{listed([name])} holds {held[name]}"))
    shown = "; ".join(parts[:NAMED])
    if len(parts) > NAMED:
        shown += f" and {len(parts) - NAMED:,} more"
    return shown


def _named_apart(table: Table, layout: Wide) -> Iterator[Finding]:
    """A note where the items go by the names of several tests, and a warning where a few go by no number at all."""
    columns = layout.columns
    names = [str(table.columns[k]) for k in columns]
    families = [family for family in families_of(names) if len(family.columns) >= FEWEST_ALIKE]
    if not families:
        return
    if len(families) > 1 and len(columns) >= MANY_ITEMS:
        sentence = f"The items fall into {families_in_words(table, columns)}."
        remedy = f"If these are different tests, choose one, as with `items={families[0].pattern!r}`."
        codes = {_codes_of(table, [columns[k] for k in family.columns]) for family in families}
        severity: Severity = "note" if len(codes) == 1 else "warning"
        yield Finding("column_families", severity, sentence, remedy)
    numbered = {k for family in families_of(names) for k in family.columns}
    words = [name for k, name in enumerate(names) if k not in numbered and not re.search(r"\d", name)]
    doubted = [name for name in words if not _is_said(name, table, layout)]
    if doubted and len(words) <= (1 - MOST_NUMBERED) * len(names):
        sentence = f"Treated as items, though their names have no number as the others have: {_columns(doubted)}."
        remedy = f"If that is wrong, say `ignore={','.join(doubted)!r}`."
        yield Finding("unnumbered_items", "warning", sentence, remedy, tuple(doubted))


def _is_said(name: str, table: Table, layout: Wide) -> bool:
    """Whether another finding names this item already."""
    codes = ("suspect_items", "doubtful_items")
    return any(str(table.columns[k]) == name for code in codes for k in layout.others.get(code, {}))


def families_in_words(table: Table, columns: Sequence[int]) -> str:
    """The families of these columns with what they hold: "'Pre_01' to 'Pre_20' (1 to 5)"."""
    families = sorted(families_of([table.columns[k] for k in columns]), key=lambda family: -len(family.columns))
    parts = []
    for family in families[:MOST_FAMILIES]:
        codes = _codes_of(table, [columns[k] for k in family.columns])
        parts.append(f"{family.span} ({codes})" if codes else family.span)
    words = ", ".join(parts)
    n_more = len(families) - MOST_FAMILIES
    if n_more > 0:
        words += f" and {count(n_more, 'more family', 'more families')}"
    return words


def _codes_of(table: Table, columns: Sequence[int]) -> str:
    """What these columns hold, by their first rows: "1 to 5"; nothing where they are empty."""
    texts = set().union(*values_of(table, columns, NOT_ANSWERED, every_row=False).values())
    numbers = sorted({number for text in texts if (number := number_of(text)) is not None})
    if not numbers:
        return "words" if texts else ""
    if len(numbers) <= FEW_VALUES:
        return range_in_words(numbers)
    return f"{len(numbers):,} values, {numbers[0]:g} to {numbers[-1]:g}"


def rater_advice(columns: Sequence[Any]) -> str:
    """What to say where one of the columns is named as one that says who rated."""
    rating = [str(name) for name in columns if RATERS.intersection(words_of(name))]
    if len(rating) != 1:
        return ""
    return f"If these are ratings and {rating[0]!r} says who rated, say `facet={rating[0]!r}`."


def family_advice(table: Table, layout: Wide) -> ColumnFamilies:
    """What to say of the columns where one of them cannot be read, and many are there, or one may say who rated."""
    columns = layout.columns
    advice = rater_advice([table.columns[k] for k in columns])
    if advice:
        return ColumnFamilies(f" {advice}", says_who_rated=True)
    families = families_of([table.columns[k] for k in columns])
    members = frozenset(name for family in families for name in family.names)
    if len(columns) < MANY_ITEMS or len(families) < 2:
        return ColumnFamilies("", members)
    text = f" The columns fall into {families_in_words(table, columns)}; choose the items, as with "
    return ColumnFamilies(f"{text}`items={families[0].pattern!r}`.", members)


def refuse_two_occasions(table: Table, layout: Wide) -> None:
    """An error where the items are the same ones on two occasions, answered by the same people on both: what a person
    says on one of them goes with what he or she says on the other, and the person has changed in between."""
    if not layout.by_default:
        return
    columns = layout.columns
    pair = same_on_two_occasions(families_of([table.columns[k] for k in columns]))
    if pair is None:
        return
    answered = []
    for family in pair:
        heads = [one_spelling(table.head(columns[k])).is_not_null().to_numpy() for k in family.columns]
        answered.append(np.any(heads, axis=0))
    if 2 * int(np.sum(answered[0] & answered[1])) < min(int(answered[0].sum()), int(answered[1].sum())):
        return  # forms of different people
    first, second = pair
    others = [k for k in range(len(table.columns)) if k != layout.label]
    several = len(families_of([table.columns[k] for k in others])) > len(pair)
    every = f" The columns fall into {families_in_words(table, others)}." if several else ""
    both = f"{first.pattern},{second.pattern}"
    raise ReadError(
        f"{table.name} seems to have the same items on two occasions, {first.span} and {second.span}, for the same "
        f"people; they are not one test. Choose one, as with `items={first.pattern!r}`, or name both to have them "
        f"together: `items={both!r}`. Change between them: spectral-irt fit ... --waves {both!r}.{every}"
    )


def unnamed_columns(table: Table, columns: Sequence[int]) -> list[int]:
    """Those of the columns that have no name and hold nothing, as when every line ends with a separator; an error where
    one holds answers, of which nobody knows the item."""
    unnamed = [k for k in columns if isinstance(table.columns[k], str) and not table.columns[k].strip()]
    for k in unnamed:
        row = table.rows_above
        for frame, _ in table.pieces([k]):
            filled = (~one_spelling(frame.to_series()).is_in(NOT_ANSWERED)).fill_null(False)
            if filled.any():
                row += int(filled.arg_max()) + 1  # type: ignore[arg-type]
                what = f"{table.name}: column {k + 1:,} has no name, and holds an answer in row {row:,}."
                raise ReadError(f"{what} Give the item a name in the header, or remove the column.")
            row += frame.height
    return unnamed


def _columns(names: Sequence[Any]) -> str:
    columns = "column" if len(names) == 1 else f"{len(names):,} columns"
    return f"{columns} {listed(names)}"


class ChosenColumns(NamedTuple):
    """Positions of the items; other columns by the code of their finding, with what each holds; and what the items
    hold, if all hold alike."""

    items: list[int]
    others: Mapping[str, Held]
    alike: str = ""


def choose_columns(table: Table, candidates: Sequence[int], options: ReadOptions, every_row: bool) -> ChosenColumns:
    """Those of these columns that are items, by the first rows or by every row."""
    names = [table.columns[k] for k in candidates]
    if options.items:
        return ChosenColumns(list(compress(candidates, match_names(options.items, names))), {})
    if options.scoring.key:
        in_key = positions(names, options.scoring.key) >= 0
        if in_key.any():
            others = dict.fromkeys(compress(candidates, ~in_key), "")
            return ChosenColumns(list(compress(candidates, in_key)), {"not_in_key": others})
    recode = options.scoring.recode
    rated = bool(options.facets) and (recode is None or all(number_of(str(label)) is not None for label in recode))
    return _by_names_and_values(table, candidates, options.scoring.missing, every_row, rated=rated)


def _by_names_and_values(
    table: Table, candidates: Sequence[int], missing: Sequence[str], every_row: bool, *, rated: bool
) -> ChosenColumns:
    """All columns but those named like attributes, sums of the others, and columns unlike the others. Where the answers
    are ratings (`rated`), as few as two columns may be alike."""
    attributes = _attributes(table, candidates)
    columns = sorted(set(candidates).difference(attributes.sure))
    sums: list[int] = []
    unlike = Unlike()
    other_labels: Held = {}
    if FEWEST_SUMMANDS < len(columns) <= WIDEST:
        values = values_of(table, columns, (*NOT_ANSWERED, *missing), every_row)
        if set().union(*values.values()) - RIGHT_WRONG:
            sums = _sums(table, columns)
        columns = [k for k in columns if k not in sums]
        if rated:
            unlike = words_beside_numbers({k: values[k] for k in columns})
        elif len(columns) >= FEWEST_ALIKE:
            values_of_columns = {k: values[k] for k in columns}
            unlike = unlike_the_others(values_of_columns, attributes.suspected, _numbered_alike(table, columns))
            if table.value_labels:
                other_labels = columns_with_other_labels(table, columns)
    left_out = unlike.left_out | other_labels
    items = set(columns).difference(left_out)
    others = {
        "attribute_columns": dict.fromkeys(attributes.sure, ""),
        "total_columns": dict.fromkeys(sums, ""),
        "unlike_columns": left_out,
        "suspect_items": dict.fromkeys(sorted(items.intersection(attributes.suspected)), ""),
        "doubtful_items": {k: what for k, what in unlike.doubtful.items() if k in items},
    }
    return ChosenColumns(sorted(items), others, unlike.usual)


def _numbered_alike(table: Table, columns: Sequence[int]) -> set[int]:
    """Columns that belong to a family of names which most columns are of."""
    for family in families_of([table.columns[k] for k in columns]):
        if 2 * len(family.columns) > len(columns):
            return {columns[place] for place in family.columns}
    return set()


def _sums(table: Table, columns: Sequence[int]) -> list[int]:
    """Which of the columns is the sum of all others, in the first rows; it has a value above 1, unlike an item."""
    heads = [table.head(k) for k in columns]
    if len(heads[0]) < FEWEST_SUMMANDS or not all(is_plain(values.dtype) for values in heads):
        return []
    values = np.stack([one_spelling(head).cast(pl.Float64, strict=False).to_numpy() for head in heads], axis=1)
    total = np.nansum(values, axis=1)
    largest = np.nanmax(np.where(np.isfinite(values), values, -np.inf), axis=0)
    is_sum = (2 * values == total[:, None]).all(axis=0) & (largest > 1)
    if is_sum.sum() != 1:
        return []
    return list(compress(columns, is_sum))
