"""Is a table long (one row per answer) or wide (one row per person, one column per item), and which column is what?

Options decide first, then the names of the columns, then their values. `tables.py` asks for every table
(`find_layout`); of wide ones `item_columns.py` chooses the items.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import polars as pl

from spectral_irt.data.labels import NOT_ANSWERED, SUSPECTS, one_spelling
from spectral_irt.errors import OptionError, ReadError
from spectral_irt.reading import ReadOptions, item_columns
from spectral_irt.reading.frame import HEAD_COLUMNS, Table
from spectral_irt.reading.item_columns import WHEN, are_answers, match_names, parts_of, says_attribute, words_of
from spectral_irt.reading.unlike_columns import FEW_VALUES
from spectral_irt.text import listed

Candidates = Mapping[str, list[int]]  # columns that may have each role

# fmt: off
_PEOPLE = (
    "user", "person", "student", "subject", "respondent", "participant", "pupil", "examinee", "candidate", "learner",
    "testtaker", "annotator", "worker", "model", "system", "llm", "player",
)
_THINGS = (
    "item", "question", "problem", "prompt", "movie", "book", "product", "task", "exercise", "example", "stimulus",
)
_ENDINGS = ("", "s", "id", "ids", "name", "no", "nr", "number", "code", "key")

PERSON_NAMES = frozenset(map("".join, product(_PEOPLE, _ENDINGS)))
ITEM_NAMES = frozenset(map("".join, product(_THINGS, _ENDINGS))) | {"isbn"}
# Of ratings alone, since an essay may be an item, and a criterion a column about people.
NAMES_OF_RATINGS = {
    "person": frozenset(map("".join, product(("essay", "script", "ratee", "performance"), _ENDINGS))),
    "item": frozenset(map("".join, product(("criterion", "domain", "aspect"), _ENDINGS))) | {"criteria"},
    "response": frozenset({"band", "bandscore", "level"}),
}
# Names of people only when nothing better is there. "" and "Unnamed: 0" are what R and pandas call row labels.
ID_NAMES = frozenset({
    "", "id", "ids", "uid", "pid", "sid", "name", "names", "label", "case", "caseid", "idno", "rowname", "rownames",
    "index", "unnamed0", "code",
})
# Columns that number the rows; a column of names beside them labels the people.
NUMBER_NAMES = frozenset({
    "nr", "no", "num", "number", "n", "#", "№", "lfd", "lfdnr", "lfnr", "sno", "srno", "slno", "rollno", "rownr",
    "rowno", "pos", "lp",
})
RESPONSE_NAMES = frozenset({
    "response", "responses", "resp", "correct", "iscorrect", "correctness", "score", "scores", "answer", "answers",
    "rating", "ratings", "value", "values", "result", "outcome", "mark", "grade",
})
KEY_NAMES = frozenset({
    "key", "keys", "correct", "correctanswer", "correctoption", "correctresponse", "answer", "answers", "answerkey",
    "solution", "right",
})
SCORE_NAMES = frozenset({"score", "scores", "points", "credit", "mark", "marks"})  # of answers, in a key
# fmt: on
ROLES = ("person", "item", "response")
ROLE_OF = dict.fromkeys(PERSON_NAMES, "person") | dict.fromkeys(ITEM_NAMES, "item")
ROLE_OF |= dict.fromkeys(RESPONSE_NAMES, "response") | dict.fromkeys(ID_NAMES, "id")

REPEATED = 0.1  # of the labels of rows, at most: an error names people who are there twice
ABSENT = 0.05  # share of the rows without a label in a column that is called an id
_GENERAL = frozenset({"user", "person", "item"})  # words that say no more than "people" and "items"
_PLURALS = {"stimulus": "stimuli", "testtaker": "test takers", "llm": "LLMs"}


def plural_words(person: Any, item: Any) -> tuple[str, str]:
    """What a long table calls those who answered and what they answered, in the plural.

    >>> plural_words("model", "prompt_id"), plural_words("user_id", "item"), plural_words("Student", "Aufgabe")
    (('models', 'prompts'), ('people', 'items'), ('students', 'items'))
    """
    words_found = []
    for column, known, otherwise in ((person, _PEOPLE, "people"), (item, _THINGS, "items")):
        word = next((word for word in known if plain(column) in {word + ending for ending in _ENDINGS}), None)
        words_found.append(otherwise if word is None or word in _GENERAL else _PLURALS.get(word, f"{word}s"))
    return words_found[0], words_found[1]


_ITEM_LABEL = re.compile(r"(q|i|it|item|question|problem|prompt|task|exercise|v|var)[\s_.\-]*\d+[a-z]?", re.I)
_WORDS = "user|person|student|subject|pupil|respondent|participant|examinee|candidate|learner"
_PERSON_WORD = re.compile(rf"({_WORDS})[\s_.\-]*\d+", re.I)
_PERSON_LABEL = re.compile(rf"(p|s|u|id|subj|resp|model|{_WORDS})[\s_.\-]*\d+", re.I)


@dataclass(frozen=True)
class Long:
    """Positions of the columns of a long table. `order` is the one that orders the rows, if it was named; `row` has the
    number of the row of the source, where that holds several answers; `facets` say who rated, or when."""

    person: int
    item: int
    response: int
    order: int | None = None
    row: int | None = None
    facets: tuple[int, ...] = ()


@dataclass(frozen=True)
class Wide:
    """Position of the row labels of a wide table (None: rows are numbered), and of the columns with answers. Other
    columns by the code of their finding, with what each holds; `alike` is what those with answers hold; `by_default`
    where nobody named the items."""

    label: int | None
    columns: tuple[int, ...]
    others: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    alike: str = ""
    by_default: bool = False


def plain(name: Any) -> str:
    """A column name for comparison: "User_ID" and "user id" are "userid"."""
    return re.sub(r"[\W_]+", "", str(name)).lower() or str(name).strip()


def without_items(columns: Sequence[str], labels: Iterable[Any]) -> bool:
    """Whether these columns look like those of a long table without the one that names the items: some are called as
    persons or responses are, none as items are, nor as one of the items that are known.

    >>> without_items(["student_id", "is_correct", "ts"], ["q1"]), without_items(["id", "q1"], ["q1"])
    (True, False)
    """
    roles = {ROLE_OF.get(plain(name)) for name in columns}
    return bool(roles & {"person", "response"}) and "item" not in roles and not set(columns) & set(map(str, labels))


def find_layout(table: Table, options: ReadOptions, *, every_row: bool = False) -> Long | Wide:
    """How to read the table, by its first rows or by every row; an error that says what to pass if that is unclear."""
    named = dict[str, int]()
    ignored = set[int]()
    for role in (*ROLES, "order_by"):
        name = getattr(options, role)
        if name is not None:
            named[role] = table.position(role, name)
    for name in options.ignore:
        for part in parts_of(name, table.columns):
            ignored |= _positions_to_ignore(table, part)
    # Columns that may have each role: the one that was named, else those with a usual name.
    candidates: dict[str, list[int]] = {"person": [], "item": [], "response": [], "id": []}
    for k, name in enumerate(table.columns):
        usual = ROLE_OF.get(plain(name))
        if usual is not None and k not in ignored and k not in named.values():
            candidates[usual].append(k)
    candidates["person"] = candidates["person"] or candidates["id"]
    if options.facets:
        named = _roles_of_ratings(table, options, candidates, ignored) | named
    for role, k in named.items():
        candidates[role] = [k]
    if table.nested:
        return _objects(table, options, named.get("response"), candidates["person"])
    named_long = options.item is not None or options.response is not None
    if options.format == "wide" and options.orient != "items" and named_long:
        raise OptionError("`item` and `response` name columns of a long table; leave them out, or say `format='long'`.")
    if options.facets and options.format != "wide" and not candidates["response"]:
        candidates["response"] = _only_column_left(table, candidates, ignored)
    is_long = options.format == "long"
    if options.format == "auto":
        is_long = named_long or _looks_long(table, options, candidates)
    if is_long:
        return _long(table, options, candidates, named.get("order_by"))
    labels_items = options.orient == "items" and options.format == "wide"
    label = named.get("item" if labels_items else "person")
    return _wide(table, options, label, ignored, every_row)


def _only_column_left(table: Table, candidates: Candidates, ignored: set[int]) -> list[int]:
    """Of ratings the column that holds them, by exclusion: beside persons, items in words and what was named otherwise
    one column is left, and it holds a few codes."""
    if len(candidates["person"]) != 1 or len(candidates["item"]) != 1 or are_answers(table.head(candidates["item"][0])):
        return []
    others = {*candidates["person"], *candidates["item"], *ignored}
    left = [k for k in range(len(table.columns)) if k not in others]
    if len(left) != 1 or not _few_codes(table, left[0]):
        return []
    return left


def _positions_to_ignore(table: Table, part: Any) -> set[int]:
    """The column of this name, or those that a pattern such as "Post*" means; an error where there is none."""
    if isinstance(part, str) and part not in map(str, table.columns):
        matching = {k for k, meant in enumerate(match_names([part], table.columns)) if meant}
        if matching:
            return matching
    return {table.position("ignore", part)}


def _roles_of_ratings(table: Table, options: ReadOptions, candidates: Candidates, ignored: set[int]) -> dict[str, int]:
    """Columns with a usual name among ratings, for the roles that no other column has."""
    roles: dict[str, int] = {}
    for role, names in NAMES_OF_RATINGS.items():
        usual = [k for k, name in enumerate(table.columns) if plain(name) in names and k not in ignored]
        free = [k for k in usual if table.columns[k] not in options.facets]
        if len(free) == 1 and not candidates[role]:
            roles[role] = free[0]
    return roles


def _looks_long(table: Table, options: ReadOptions, candidates: Candidates) -> bool:
    if options.orient == "items" or len(table.columns) < 3 or not (candidates["person"] and candidates["item"]):
        return False
    if candidates["response"]:
        return True
    first = candidates["item"][0]
    if options.facets and _is_a_criterion(table, first, options.facets):
        return False
    if not are_answers(table.head(first)):
        columns = _column_names(table, candidates["person"] + candidates["item"])
        raise ReadError(
            f"{table.name} seems to be long (it has columns {columns}), but which of {listed(table.columns)} holds the "
            "responses? Say `response=`; or `format='wide'`."
        )
    return False


def _is_a_criterion(table: Table, position: int, facets: Sequence[Any]) -> bool:
    """Whether a column called as items are, such as "Task", holds ratings as two or more others do, so that the table
    of ratings is wide."""
    codes_of_column = _few_codes(table, position)
    alike = 0
    for k, name in enumerate(table.columns):
        if k == position or name in facets:
            continue
        codes = _few_codes(table, k)
        alike += bool(codes_of_column & codes) and len(codes_of_column | codes) <= FEW_VALUES
    return alike >= 2


def _few_codes(table: Table, position: int) -> set[str]:
    """The whole numbers of a column that holds few of them and nothing else; none of other columns."""
    texts = one_spelling(table.head(position)).drop_nulls()
    texts = texts.filter(~texts.is_in(list(NOT_ANSWERED)))
    if texts.n_unique() > FEW_VALUES or not texts.str.contains(r"^\d{1,3}$").all():
        return set()
    return set(texts.unique().to_list())


def _long(table: Table, options: ReadOptions, candidates: Candidates, order: int | None) -> Long:
    if options.orient == "items":
        raise OptionError("`orient='items'` is for wide tables; in a long table the columns say what is what.")
    if options.items:
        raise OptionError(f"`items=` names columns of a wide table, and {table.name} is long, a row per answer.")
    chosen: list[int] = []
    for role in ROLES:
        may = [k for k in candidates[role] if k not in chosen]
        if len(may) != 1:
            raise _unclear(table, role, may, [k for k in may if are_answers(table.head(k))])
        chosen += may
    person, item, response = chosen
    return Long(person, item, response, order)


def _unclear(table: Table, role: str, candidates: Sequence[int], likely: Sequence[int] = ()) -> ReadError:
    """Several columns could have a role, or none."""
    problem = f"no column seems to hold the {role}; the columns are {listed(table.columns)}"
    if candidates:
        problem = f"{_column_names(table, candidates)} could each hold the {role}"
    example = repr(table.columns[(*likely, *candidates)[0]]) if candidates else ""
    return ReadError(f"{table.name}: {problem}. Say which one with `{role}={example}`.")


def _objects(table: Table, options: ReadOptions, response: int | None, people: Sequence[int]) -> Long:
    """Of objects of answers; people may be without a name, and are numbered then."""
    if options.items:
        what = f"`items=` names columns of a wide table, and {table.name} has objects of answers."
        raise OptionError(f"{what} Leave it out.")
    number = len(table.columns) - 2
    item = len(table.columns) - 1
    if response is None:
        usual = [k for k in table.nested if plain(table.columns[k]) in RESPONSE_NAMES] or table.nested
        if len(usual) > 1:
            raise _unclear(table, "response", table.nested)
        response = usual[0]
    person = next((k for k in people if k not in table.nested), number)
    return Long(person, item, response, row=number)


def _column_names(table: Table, positions: Iterable[int]) -> str:
    return " and ".join(repr(str(table.columns[k])) for k in positions)


def _wide(table: Table, options: ReadOptions, label: int | None, ignored: set[int], every_row: bool) -> Wide:
    """What each column of a wide table is: the label of the rows, an item, or left out."""
    if options.order_by is not None:
        raise OptionError(f"`order_by=` is for long tables, with a row per answer, and {table.name} is wide.")
    if label is not None and label in ignored:
        name = str(table.columns[label])
        raise OptionError(f"column {name!r} of {table.name} labels the rows and cannot be left out as well.")
    if label is None:
        label = _label_column(table, options, ignored)
        if options.orient == "persons":
            _check_orientation(table, label)
    columns = sorted(set(range(len(table.columns) - table.n_added)) - ignored - {label})
    if columns and label != columns[0] and not options.items and _numbers_rows(table, columns[0]):
        columns = columns[1:]
    if not columns and ignored:
        raise OptionError(f"{table.name} has no answers beside the columns to ignore, {listed(options.ignore)}.")
    if not columns:
        what = f"{table.name} has one column, {str(table.columns[0])!r}, which labels the rows."
        raise ReadError(f"{what} Check the separator.")
    if options.orient == "items":  # columns are people
        return Wide(label, tuple(columns))
    chosen, others, alike = item_columns.choose_columns(table, columns, options, every_row)
    unnamed = item_columns.unnamed_columns(table, chosen)
    if unnamed:
        chosen = [k for k in chosen if k not in unnamed]
        others = {**others, "unnamed_columns": dict.fromkeys(unnamed, "")}
    if not chosen:
        item_columns.check_named(options.items, [table.columns[k] for k in columns], table.name)
    return Wide(label, tuple(chosen), others, alike, by_default=not (options.items or options.scoring.key))


def _label_column(table: Table, options: ReadOptions, ignored: set[int]) -> int | None:
    """The first column, if it labels the rows; columns that are not items do not count as the first, and one that
    numbers the rows labels them only where no names are beside it, or where two have the same."""
    numbers: int | None = None
    meant = match_names(options.items, table.columns) if options.items else [False] * len(table.columns)
    items_of_key = set(map(str, options.scoring.key or ()))
    for k, name in enumerate(table.columns[: len(table.columns) - table.n_added]):
        if k in ignored:
            continue
        is_item = meant[k] or str(name) in items_of_key
        if not is_item and (plain(name) in PERSON_NAMES or _labels_rows(table, k)):
            names = table.head(k).drop_nulls()
            return k if numbers is None or names.n_unique() == len(names) else numbers
        if k == 0 and not is_item and options.orient == "persons" and _numbers_rows(table, k):
            numbers = k
            continue
        passed = not meant[k] if options.items else says_attribute(name) and not is_item
        if options.orient == "items" or not passed:
            return numbers
    return numbers


def _numbers_rows(table: Table, position: int) -> bool:
    """Whether a column numbers the rows, by its name and by whole numbers of which none comes twice."""
    if plain(table.columns[position]) not in NUMBER_NAMES:
        return False
    texts = one_spelling(table.head(position)).drop_nulls()
    integers = texts.cast(pl.Int64, strict=False)
    return len(texts) > 1 and integers.null_count() == 0 and integers.n_unique() == len(integers)


def _labels_rows(table: Table, position: int) -> bool:
    """Whether a column that is not named after people labels the rows, by its name or its values."""
    first = table.columns[position]
    values = table.head(position)
    if WHEN.intersection(words_of(first)):
        return False
    if isinstance(first, str) and plain(first) in ID_NAMES | ITEM_NAMES and not are_answers(values):
        return True
    if values.dtype not in (pl.String, pl.Categorical, pl.Enum) or len(table.columns) == 1:
        return False
    texts = one_spelling(values)
    others = [one_spelling(table.head(k)) for k in range(min(len(table.columns), HEAD_COLUMNS)) if k != position]
    if texts.null_count():  # a row in which nothing is written is no row
        every = pl.DataFrame([one.alias(str(k)) for k, one in enumerate([texts, *others])])
        texts = texts.filter(every.select(pl.any_horizontal(pl.all().is_not_null())).to_series())
    if plain(first).endswith("id") and texts.null_count() <= ABSENT * len(texts):
        texts = texts.drop_nulls()  # ResponseId, with a row or two that have none
    no_label = texts.is_in(list(SUSPECTS)) | texts.str.to_lowercase().is_in(["true", "false"])
    repeated = texts.n_unique() < (1 - REPEATED) * len(texts)
    if texts.null_count() or no_label.any() or texts.cast(pl.Float64, strict=False).count() or repeated:
        return False
    # Raw answers of a few people may all differ, but then they turn up in other columns too.
    return not any(texts.is_in(other.drop_nulls().to_list()).any() for other in others)


def _check_orientation(table: Table, label: int | None) -> None:
    """Refuse a table whose header names people, and whose column of labels, if there is one, names items."""
    header = list(table.columns)
    first = None if label is None else header.pop(label)
    what = f"a column for each person ({listed(header[:3])}, ...)"
    remedy = "if the columns are items, rename them."
    turned = label is None and _most(_PERSON_WORD, header)
    if label is not None:
        rows = table.head(label).drop_nulls().to_list()
        names_items = plain(first) in ITEM_NAMES or (_most(_ITEM_LABEL, rows) and _most(_PERSON_LABEL, header))
        turned = names_items and bool(rows and header) and not _most(_ITEM_LABEL, header)
        what = f"a row for each item ({listed(rows[:3])}, ...) and {what}"
        remedy = f"if each row is a person, say `person={str(first)!r}`."
    if turned:
        raise ReadError(f"{table.name} seems to have {what}. Say `orient='items'` if so; {remedy}")


def _most(pattern: re.Pattern[str], labels: Sequence[Any]) -> bool:
    texts = map(str.strip, map(str, labels))
    return len(list(filter(pattern.fullmatch, texts))) > 0.8 * len(labels)
