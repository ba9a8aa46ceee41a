"""Which columns of a wide table are items: those that were named, those of the answer key, or all that look alike. A
column about the person (sex, school, a weight, a cluster number, a total score) would be calibrated like an item. Names
and values show it; findings name what was left out and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from spectral_irt.data.labels import NOT_ANSWERED, SUSPECTS, one_spelling, positions
from spectral_irt.data.value_check import ColumnFamilies
from spectral_irt.errors import Finding, OptionError, ReadError, Severity
from spectral_irt.reading.families import families_of, same_on_two_occasions
from spectral_irt.reading.frame import Table, is_plain
from spectral_irt.text import NAMED, count, listed

if TYPE_CHECKING:
    from spectral_irt.reading import ReadOptions
    from spectral_irt.reading.columns import Wide

# fmt: off
# Attributes that may well be coded 0 and 1: the name alone decides.
CATEGORIES = frozenset({
    "sex", "gender", "group", "class", "classroom", "school", "form", "booklet", "grade", "ethnicity", "race",
    "teacher", "cohort", "education", "educ", "marital", "country", "income", "occupation", "religion", "nationality",
    "finished", "female", "male",
})
# Attributes that are never just 0 and 1: with such values, the column is more likely an item of this name.
MEASURES = frozenset({
    "age", "id", "total", "score", "date", "dob", "birthdate", "birthday", "timestamp", "email", "name", "ip",
    "ipaddress", "started", "completed", "status", "progress", "duration", "latitude", "longitude", "language",
    "channel",
})
WHEN = frozenset({"date", "timestamp", "started", "completed", "ip", "ipaddress"})  # several people may have the same
ATTRIBUTES = CATEGORIES | MEASURES
# Words that may stand beside them without making the column anything else.
_BESIDE = frozenset({
    "student", "person", "pupil", "user", "subject", "respondent", "participant", "test", "exam", "raw", "sum",
    "final", "level", "number", "no", "nr", "code", "of", "the", "at", "in", "birth", "years", "start", "end", "first",
    "last", "recorded", "response", "recipient", "distribution", "address", "seconds", "external", "data", "reference",
})
# fmt: on

WIDEST = 1000  # columns of tables whose values are compared
FEWEST_SUMMANDS = 3
RIGHT_WRONG = frozenset({"0", "1"})
FEWEST_ALIKE, MOST = 5, 0.7  # columns, and share of them, that make a family of items
MANY_ITEMS = 20  # from which on the names of the items are looked at
MOST_NUMBERED = 0.8  # of the items have a number in their names, where one without is worth a word
MOST_FAMILIES = 8  # that a message names
FEW_VALUES = 12  # different values of an item, at most
ENOUGH = 50  # answers in a column below which a value that is not there says nothing
USUAL = 0.2  # share of the family's columns that hold a value of the family
Held = dict[int, str]  # what a column holds, by its position
INSIDE, STRAY = 0.2, 0.05  # shares of a column: values of the family, at least; values that are typing errors, at most


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


def _attributes(table: Table, columns: Sequence[int]) -> tuple[list[int], list[int]]:
    """Columns whose names are attributes, and those whose names merely mention one ("group 2", "age_q3"). Where most of
    the names have the same of these words, it is how the items are called, and none is either."""
    sure, like, times = dict[int, frozenset[str]](), list[int](), Counter[str]()
    in_families = {k for family in families_of(table.columns) for k in family.columns}
    for k in columns:
        name = str(table.columns[k])
        if k not in in_families:
            name = re.sub(r"(?<=[a-z])\d{2,}$", "", name)  # Education123: codes 1, 2 and 3
        words = words_of(name)
        if known := ATTRIBUTES.intersection(words):
            if says_attribute(name):
                sure[k] = known
            if k in sure or len(words) <= 3:
                like.append(k)
                times.update(known)
    if not like or 2 * (max(times.values()) - 1) > len(columns) - 1 or len(columns) - len(sure) < 2:
        return [], []
    out = [k for k, known in sure.items() if CATEGORIES & known or not are_answers(table.head(k))]
    return out, [k for k in like if k not in out]


def are_answers(values: pl.Series) -> bool:
    """Zeros and ones, repeated: a column called "code" or "task" may be an item after all."""
    texts = one_spelling(values).drop_nulls()
    return texts.n_unique() < len(texts) and bool(texts.is_in(["0", "1", *NOT_ANSWERED]).all())


def parts_of(given: Any, known: Iterable[Any]) -> list[Any]:
    """The names in "a,b"; a column may have that name, and then it is meant."""
    if not isinstance(given, str) or "," not in given or given in {str(name) for name in known}:
        return [given]
    return [part.strip() for part in given.split(",") if part.strip()]


def named(given: Sequence[Any], names: Sequence[Any]) -> list[bool]:
    """Which of the names are meant by names and patterns such as "q*"."""
    patterns = [str(part) for one in given for part in parts_of(one, names)]
    return [any(str(name) == pattern or fnmatchcase(str(name), pattern) for pattern in patterns) for name in names]


def check_named(given: Sequence[Any], names: Sequence[Any], source: str) -> None:
    """Refuse a name or pattern of items that is not there."""
    for part in (part for one in given for part in parts_of(one, names)):
        if not any(named([part], names)):
            what = f"{source} has no column {str(part)!r} for `items`; its columns are {listed(names)}."
            raise OptionError(f"{what} Give names or patterns such as `items='q*'`.")


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
    for code, sentence in SENTENCES.items():
        held = {table.columns[k]: what for table, one in tables for k, what in one.others.get(code, {}).items()}
        if not held:
            continue
        names, severity = tuple(held), "warning"
        are, they = ("is", "it is an item") if len(names) == 1 else ("are", "they are items")
        values = _held_in_words(held)
        n_others = sum(item not in held for item in items)
        values += f", where the {n_others:,} others hold {layout.alike}" if layout.alike else ""
        families = families_of(names)
        example = families[0].pattern if families else f"q*,{names[0]}"
        remedy = f"If {they}, name all the items, as in `items={example!r}`."
        if code == "not_in_key":
            known = all(map(says_attribute, names))
            remedy = "" if known else "Add the right answers of those that are items to the key."
            severity = "note" if known else "warning"
        elif code == "unnamed_columns":
            severity, remedy = "note", ""
        elif code in ("suspect_items", "doubtful_items"):
            remedy = f"If that is wrong, say `ignore={','.join(map(str, names))!r}`."
        sentence = sentence.format(columns=_columns(names), are=are, values=values)
        yield Finding(code, severity, sentence, remedy, names)  # type: ignore[arg-type]
    if layout.by_default:
        yield from _named_apart(table, layout)


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
    return shown + (f" and {len(parts) - NAMED:,} more" if len(parts) > NAMED else "")


def _named_apart(table: Table, layout: Wide) -> Iterator[Finding]:
    """A note where the items go by the names of several tests, and a warning where a few go by no number at all."""
    columns = layout.columns
    names = [str(table.columns[k]) for k in columns]
    families = [family for family in families_of(names) if len(family.columns) >= FEWEST_ALIKE]
    if len(columns) < MANY_ITEMS or not families:
        return
    if len(families) > 1:
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
    families = sorted(families_of([table.columns[k] for k in columns]), key=lambda one: -len(one.columns))
    parts = []
    for family in families[:MOST_FAMILIES]:
        codes = _codes_of(table, [columns[k] for k in family.columns])
        parts.append(f"{family.span} ({codes})" if codes else family.span)
    more = len(families) - MOST_FAMILIES
    return ", ".join(parts) + (f" and {count(more, 'more family', 'more families')}" if more > 0 else "")


def _codes_of(table: Table, columns: Sequence[int]) -> str:
    """What these columns hold, by their first rows: "1 to 5"; nothing where they are empty."""
    texts = set().union(*_values(table, columns, NOT_ANSWERED, every_row=False).values())
    numbers = sorted({number for text in texts if (number := _number(text)) is not None})
    if not numbers:
        return "words" if texts else ""
    if len(numbers) <= FEW_VALUES:
        return _range(numbers)
    return f"{len(numbers):,} values, {numbers[0]:g} to {numbers[-1]:g}"


def family_advice(table: Table, layout: Wide) -> ColumnFamilies:
    """What to say of the columns where one of them cannot be read, and many are there."""
    columns = layout.columns
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
        f"together: `items={both!r}`.{every}"
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
    return f"{'column' if len(names) == 1 else f'{len(names):,} columns'} {listed(names)}"


def choose_columns(
    table: Table, candidates: Sequence[int], options: ReadOptions, every_row: bool
) -> tuple[Sequence[int], Mapping[str, Held], str]:
    """Those of these columns that are items, by the first rows or by every row; others by the code of their finding,
    with what each holds; and what the items hold."""
    if options.items:
        return list(compress(candidates, named(options.items, [table.columns[k] for k in candidates]))), {}, ""
    if key := options.scoring.key:
        kept = positions([table.columns[k] for k in candidates], key) >= 0
        if kept.any():
            return list(compress(candidates, kept)), {"not_in_key": dict.fromkeys(compress(candidates, ~kept), "")}, ""
    out, suspects = _attributes(table, candidates)
    rest, sums = sorted(set(candidates).difference(out)), list[int]()
    odd, doubtful, alike = Held(), Held(), ""
    if FEWEST_SUMMANDS < len(rest) <= WIDEST:
        held = _values(table, rest, (*NOT_ANSWERED, *options.scoring.missing), every_row)
        sums = _sums(table, rest) if set().union(*held.values()) - RIGHT_WRONG else []
        for k in sums:
            rest.remove(k)
            del held[k]
        if len(rest) >= FEWEST_ALIKE:
            odd, doubtful, alike = unlike_the_others(held, suspects)
            odd |= _other_labels(table, rest) if table.value_labels else {}
    chosen = set(rest).difference(odd)
    others = {
        "attribute_columns": dict.fromkeys(out, ""),
        "total_columns": dict.fromkeys(sums, ""),
        "unlike_columns": odd,
        "suspect_items": dict.fromkeys(sorted(chosen.intersection(suspects)), ""),
        "doubtful_items": {k: doubtful[k] for k in doubtful if k in chosen} if doubtful else {},
    }
    return sorted(chosen), others, alike


def _values(table: Table, columns: Sequence[int], missing: Sequence[str], every_row: bool) -> dict[int, Counter[str]]:
    """How often each value stands in each column, in one spelling; nothing of columns whose values are no answers."""
    found = {k: Counter[str]() for k in columns}
    plain = [k for k in columns if is_plain(table.dtypes[k])]
    heads = pl.DataFrame(dict(zip(map(str, plain), map(table.head, plain), strict=True)))
    for frame, _ in table.pieces(plain) if every_row else [(heads, 1.0)]:
        whole = frame.with_columns(pl.col(pl.Boolean).cast(pl.Int8)).cast(pl.String).unpivot()
        texts = one_spelling(whole["value"])  # column after column, spelled in one go
        for n, k in enumerate(plain):
            column = texts.slice(n * frame.height, frame.height)
            for value, times in column.value_counts().iter_rows() if len(found[k]) < WIDEST else ():
                if value is not None and value not in missing:
                    found[k][value] += times
    return found


def _number(text: str) -> float | None:
    """A number, also one with a decimal comma."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def unlike_the_others(held: Mapping[int, Counter[str]], doubted: Sequence[int]) -> tuple[Held, Held, str]:
    """Columns whose values are unlike those of most: to be left out, to be doubted, and what most hold. Nothing where
    most are not alike, and nothing where a column has stray values only: a code for a missing answer or a typing error
    is a matter of that answer. A column that is `doubted` for its name has no value that the others do not have."""
    enough = max(FEWEST_ALIKE, MOST * len(held))
    if set().union(*held.values()) <= RIGHT_WRONG:  # as it mostly is
        return {}, {}, "0 and 1" if sum(map(bool, held.values())) >= enough else ""
    numbers: dict[int, dict[float, int]] = {}
    odd = Held()
    for n, counter in held.items():
        pairs = [(number, text, times) for text, times in counter.items() if (number := _number(text)) is not None]
        n_numbers = sum(times for *_, times in pairs)
        broken = sum(times for number, _, times in pairs if np.isfinite(number) and not number.is_integer())
        if n_numbers < INSIDE * counter.total():
            odd[n] = f"words ({listed(sorted(counter)[:3])})"
        elif broken >= STRAY * n_numbers > 0:
            odd[n] = "fractions"
        numbers[n] = {number: times for number, text, times in pairs if text not in SUSPECTS and n not in odd}
    words = {n: held[n] for n, what in odd.items() if what != "fractions"}
    if len(words) >= enough:
        times = Counter(text for counter in words.values() for text in counter)
        usual = sorted(text for text, n in times.items() if n >= USUAL * len(words))
        inside = {n: sum(counter[text] for text in usual) for n, counter in words.items()}
        out = {n: "numbers" for n, counter in held.items() if n not in words and counter}
        out |= {n: odd[n] for n, counter in words.items() if inside[n] < INSIDE * counter.total()}
        return (out, {}, f"words ({listed(usual[:3])})") if usual else ({}, {}, "")
    few = [own for own in numbers.values() if 0 < len(own) <= FEW_VALUES]
    if len(few) < enough:
        return {}, {}, ""
    holders = Counter(value for own in few for value in own)
    family = sorted(value for value, n in holders.items() if n >= USUAL * len(few))
    family = [0.0, 1.0] if family in ([0.0], [1.0]) else family  # most items are all right, or all wrong
    if not family or len(family) > FEW_VALUES:
        return {}, {}, ""
    low, high = family[0], family[-1]
    several = high > low + 2 and sum(len(own) > 2 for own in few) >= MOST * len(few)
    doubtful = {}
    for n, own in numbers.items():
        total = sum(own.values())
        if not total or n in odd:
            continue
        outside = sum(times for value, times in own.items() if not low <= value <= high) / total
        what = f"{len(held[n]):,} values" if len(own) > FEW_VALUES else f"the codes {_range(sorted(own))}"
        codes_from_1 = low == 0 and sorted(own) == [1, 2] and total >= ENOUGH and holders[0] >= MOST * len(few)
        gaps = max(own) - high > sum(value > high for value in own)  # 14 follows 2 with a gap, 3 and 4 without
        unlike = len(own) > FEW_VALUES or low > 0 or min(own) != low or gaps
        if outside > 1 - INSIDE or codes_from_1 or (n in doubted and outside) or (outside >= STRAY and unlike):
            odd[n] = what
        elif (outside >= STRAY and len(family) > 2) or (several and len(own) <= 2 and total >= ENOUGH):
            doubtful[n] = what
    return odd, doubtful, _range(family)


def _range(values: Sequence[float]) -> str:
    """
    >>> _range([0, 1]), _range([1, 2, 3]), _range([1, 14, 36])
    ('0 and 1', '1 to 3', '1, 14 and 36')
    """
    if len(values) > 2 and values[-1] - values[0] == len(values) - 1:
        return f"{values[0]:g} to {values[-1]:g}"
    *first, last = (f"{value:g}" for value in values)
    return f"{', '.join(first)} and {last}" if first else last


def _other_labels(table: Table, columns: Sequence[int]) -> Held:
    """Columns with value labels of their own where most share one set (SPSS, Stata)."""
    labels = {k: list(table.value_labels[k].values()) for k in columns if k in table.value_labels}
    sets = {k: frozenset(text.strip().lower() for text in own) for k, own in labels.items()}
    usual, n = Counter(sets.values()).most_common(1)[0] if sets else (frozenset(), 0)
    if n < max(FEWEST_ALIKE, MOST * len(columns)):
        return {}
    return {k: f"values labeled {listed(labels[k][:3])}" for k, own in sets.items() if not own & usual}


def _sums(table: Table, columns: Sequence[int]) -> list[int]:
    """Which of the columns is the sum of all others, in the first rows; it has a value above 1, unlike an item."""
    heads = [table.head(k) for k in columns]
    if len(heads[0]) < FEWEST_SUMMANDS or not all(is_plain(values.dtype) for values in heads):
        return []
    values = np.stack([one_spelling(one).cast(pl.Float64, strict=False).to_numpy() for one in heads], axis=1)
    total = np.nansum(values, axis=1)
    largest = np.nanmax(np.where(np.isfinite(values), values, -np.inf), axis=0)
    is_sum = (2 * values == total[:, None]).all(axis=0) & (largest > 1)
    return list(compress(columns, is_sum)) if is_sum.sum() == 1 else []
