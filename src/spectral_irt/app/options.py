"""What a person said on the page about a file, and the options of a command that say the same."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spectral_irt.app.detect import GROUP, ITEM, PERSON, RATER, RESPONSE, UNUSED
from spectral_irt.errors import OptionError

# What a form may say; the first is taken where it says something else.
CHOICES = {"format": ("auto", "wide", "long"), "orient": ("persons", "items"), "duplicates": ("error", "first", "last")}
SWITCHES = ("largest_component", "adaptive", "list_persons", "pupil_pages")
ASIDE = {GROUP: "--group", RATER: "--facet"}  # no answers: an option of its own
LAYOUT = ("format", "orient", "sheet", "encoding", "key")  # what decides how columns are recognized
TEXTS = ("sheet", "encoding", "missing", "correct", "threshold", "scale", "more")
# What the page says itself: where results go, and what the command prints, by which the page learns of them.
PLACES = ("--output", "--report", "--pupil-pages", "--plots", "--bank")
PRINTED = ("--json", "--quiet", "--strict", "--dry-run", "--help", "--help-all", "--version")
SHORT = ("-o", "-q", "-h")  # also with a value or another flag behind them, as in -oFOLDER and -qh
TOGETHER = 50  # names of columns that are said in one word
MAGIC = "[*?"  # by which a name would be a pattern


@dataclass(frozen=True)
class Choice:
    """How a file is to be read and fitted; empty where nothing was said. `roles` are by position of the column."""

    format: str = "auto"
    orient: str = "persons"
    sheet: str = ""
    encoding: str = ""
    key: str = ""
    missing: str = ""
    correct: str = ""
    threshold: str = ""
    duplicates: str = "error"
    largest_component: bool = False
    adaptive: bool = False
    list_persons: bool = False
    pupil_pages: bool = False
    scale: str = ""  # as --scale has it
    more: str = ""  # further options, as in a terminal
    roles: Mapping[int, str] = field(default_factory=dict)

    def with_form(self, form: Mapping[str, Any]) -> Choice:
        """With what a form says; the key is a file, and kept."""
        values: dict[str, Any] = {name: str(form.get(name, "")).strip() for name in TEXTS}
        for name, allowed in CHOICES.items():
            value = str(form.get(name, getattr(self, name)))
            values[name] = value if value in allowed else allowed[0]
        values |= {name: name in form for name in SWITCHES}
        roles = {}
        for name, role in form.items():
            number = name.removeprefix("role-")
            is_role = name != number and number.isdecimal()
            if is_role and role in (ITEM, PERSON, RESPONSE, UNUSED, *ASIDE):
                roles[int(number)] = str(role)
        return replace(self, **values, roles=roles)

    def layout(self) -> dict[str, str]:
        """What decides how columns are recognized."""
        return {name: getattr(self, name) for name in LAYOUT}

    def scoring_words(self) -> list[str]:
        """What counts as right, and where the table is: true of a second file too."""
        words = [
            *_option("--key", self.key),
            *_option("--threshold", self.threshold),
            *_option("--encoding", self.encoding),
            *_option("--missing", *_parts(self.missing)),
            *_option("--correct", *_parts(self.correct)),
        ]
        if self.duplicates != "error":
            words += ["--duplicates", self.duplicates]
        return words

    def layout_words(self, columns: Sequence[Mapping[str, Any]], kind: str) -> list[str]:
        """Which column is what, where it was not recognized: options of every command that reads.

        `columns` and `kind` ("wide", "long") are what was recognized.
        """
        words = [] if self.orient == "persons" else ["--layout", "items-in-rows"]
        roles = self.now(columns)
        recognized = {k: column["role"] for k, column in enumerate(columns)}
        format = [] if self.format == "auto" or words else ["--layout", self.format]
        if self.orient == "items" or _of_answers(roles) == _of_answers(recognized):
            return words + format
        by_role = {wanted: [k for k, role in roles.items() if role == wanted] for wanted in (PERSON, ITEM, RESPONSE)}
        names = {k: column["name"] for k, column in enumerate(columns)}
        if kind == "long":
            for role, places in by_role.items():
                if len(places) != 1:
                    raise OptionError(
                        f"{len(places) or 'no'} columns are marked as {role}; in a table with a row for each answer, "
                        "one column names the person, one the item, and one holds the response."
                    )
            words += ["--layout", "long"]
            return words + [word for role, (k,) in by_role.items() for word in _option(f"--{role}", names[k])]
        if len(by_role[PERSON]) > 1:
            both = " and ".join(repr(names[k]) for k in by_role[PERSON][:2])
            raise OptionError(f"{both} cannot both name the people; choose one column as person.")
        if len(by_role[ITEM]) < 2:
            raise OptionError("fewer than two columns are items; choose which columns are items.")
        words += ["--layout", "wide", *_option("--person", *(names[k] for k in by_role[PERSON]))]
        words += _option_with_names("--items", [_literal(names[k]) for k in by_role[ITEM]])
        if not by_role[PERSON]:  # no column that was set aside may be taken for their names
            others = [names[k] for k, role in roles.items() if role == UNUSED]
            words += _option_with_names("--ignore", others)
        return words

    def fit_words(self, columns: Sequence[Mapping[str, Any]], kind: str) -> list[str]:
        """All the options of `fit` and `check`, but for places."""
        words = [*_option("--sheet", self.sheet), *self.layout_words(columns, kind), *self.scoring_words()]
        for k, role in self.now(columns).items():
            if role in ASIDE:
                words += _option(ASIDE[role], columns[k]["name"])
        if self.largest_component:
            words.append("--largest-component")
        if self.adaptive:
            words += ["--design", "adaptive"]
        words += _option("--scale", self.scale.replace(" ", ""))
        return words + self.more_words()

    def more_words(self) -> list[str]:
        """The further options; an error where one is among those that the page says itself."""
        try:
            words = shlex.split(self.more)
        except ValueError as error:
            raise OptionError(f"the further options cannot be read: {error}.") from None
        for k, word in enumerate(words):
            flag = word.partition("=")[0]
            reserved = flag in (*PLACES, *PRINTED) or word.startswith(SHORT)
            no_option = word == "--" or (k == 0 and not word.startswith("-"))
            if reserved or no_option:
                raise OptionError(
                    f"{word!r} is no option for this page, which says itself where results go and what is printed; "
                    "leave it out. In a terminal, spectral-irt fit --help lists the options."
                )
        return words

    def now(self, columns: Sequence[Mapping[str, Any]]) -> dict[int, str]:
        """The role of every column: as said, else as recognized."""
        return {k: self.roles.get(k, column["role"]) for k, column in enumerate(columns)}


def _option(flag: str, *values: str) -> list[str]:
    """The option with each of the values that are not empty.

    >>> _option("--missing", "9", "", "-1")
    ['--missing', '9', '--missing=-1']
    """
    words: list[str] = []
    for value in values:
        if value.startswith("-"):  # which alone would be taken for an option
            words.append(f"{flag}={value}")
        elif value:
            words += [flag, value]
    return words


def _of_answers(roles: Mapping[int, str]) -> dict[int, str]:
    """The roles of columns as far as answers are read by them."""
    return {k: UNUSED if role in ASIDE else role for k, role in roles.items()}


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _literal(name: str) -> str:
    """A name that stands for itself among patterns.

    >>> [_literal(name) for name in ("q1", "q*", "a[1]")]
    ['q1', 'q[*]', 'a[[]1]']
    """
    if not set(name) & set(MAGIC):
        return name
    signs = {sign: f"[{sign}]" for sign in MAGIC}
    signs[","] = "?"  # a comma would divide it, and a question mark stands for one
    return "".join(signs.get(sign, sign) for sign in name)


def _option_with_names(flag: str, names: Iterable[str]) -> list[str]:
    """Names that can stand together as "a,b", and the others, each on its own.

    >>> _option_with_names("--items", ["q1", "a, b", "q2", " c"])
    ['--items', 'q1,q2', '--items', 'a, b', '--items', ' c']
    """
    names = list(names)
    plain = [name for name in names if "," not in name and name == name.strip() and name]
    others = [name for name in names if name not in set(plain)]
    joined = [",".join(plain[k : k + TOGETHER]) for k in range(0, len(plain), TOGETHER)]
    return [word for value in (*joined, *others) for word in _option(flag, value)]
