"""What a person said on the page about a file, and the options of a command that say the same."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spectral_irt.app.detect import GROUP, ITEM, PERSON, RATER, RESPONSE, UNUSED
from spectral_irt.errors import OptionError

FORMATS, ORIENTS, DUPLICATES = ("auto", "wide", "long"), ("persons", "items"), ("error", "first", "last")
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

    def changed(self, form: Mapping[str, Any]) -> Choice:
        """With what a form says; the key is a file, and kept."""
        said: dict[str, Any] = {name: str(form.get(name, "")).strip() for name in TEXTS}
        choices = {"format": FORMATS, "orient": ORIENTS, "duplicates": DUPLICATES}
        for name, allowed in choices.items():
            value = str(form.get(name, getattr(self, name)))
            said[name] = value if value in allowed else allowed[0]
        said |= {name: name in form for name in ("largest_component", "adaptive", "list_persons", "pupil_pages")}
        roles = {
            int(name[5:]): str(role)
            for name, role in form.items()
            if name.startswith("role-") and name[5:].isdecimal() and role in (ITEM, PERSON, RESPONSE, UNUSED, *ASIDE)
        }
        return replace(self, **said, roles=roles)

    def layout(self) -> dict[str, str]:
        """What decides how columns are recognized."""
        return {name: getattr(self, name) for name in LAYOUT}

    def scoring_words(self) -> list[str]:
        """What counts as right, and where the table is: true of a second file too."""
        words = _said("--key", self.key) + _said("--threshold", self.threshold) + _said("--encoding", self.encoding)
        words += _said("--missing", *_parts(self.missing)) + _said("--correct", *_parts(self.correct))
        return words + ([] if self.duplicates == "error" else ["--duplicates", self.duplicates])

    def layout_words(self, columns: Sequence[Mapping[str, Any]], kind: str) -> list[str]:
        """Which column is what, where it was not recognized: options of every command that reads.

        `columns` and `kind` ("wide", "long") are what was recognized.
        """
        words = [] if self.orient == "persons" else ["--layout", "items-in-rows"]
        roles = self.now(columns)
        recognized = {k: column["role"] for k, column in enumerate(columns)}
        compared = [{k: UNUSED if role in ASIDE else role for k, role in some.items()} for some in (roles, recognized)]
        format = [] if self.format == "auto" or words else ["--layout", self.format]
        if self.orient == "items" or compared[0] == compared[1]:
            return words + format
        by_role = {wanted: [k for k, role in roles.items() if role == wanted] for wanted in (PERSON, ITEM, RESPONSE)}
        names = {k: column["name"] for k, column in enumerate(columns)}
        if kind == "long":
            for role, found in by_role.items():
                if len(found) != 1:
                    raise OptionError(
                        f"{len(found) or 'no'} columns are marked as {role}; in a table with a row for each answer, "
                        "one column names the person, one the item, and one holds the response."
                    )
            words += ["--layout", "long"]
            return words + [word for role, (k,) in by_role.items() for word in _said(f"--{role}", names[k])]
        if len(by_role[PERSON]) > 1:
            both = " and ".join(repr(names[k]) for k in by_role[PERSON][:2])
            raise OptionError(f"{both} cannot both name the people; choose one column as person.")
        if len(by_role[ITEM]) < 2:
            raise OptionError("fewer than two columns are items; choose which columns are items.")
        words += ["--layout", "wide", *_said("--person", *(names[k] for k in by_role[PERSON]))]
        words += _listed("--items", [_literal(names[k]) for k in by_role[ITEM]])
        if not by_role[PERSON]:  # no column that was set aside may be taken for their names
            others = [names[k] for k, role in roles.items() if role == UNUSED]
            words += _listed("--ignore", others)
        return words

    def fit_words(self, columns: Sequence[Mapping[str, Any]], kind: str) -> list[str]:
        """All the options of `fit` and `check`, but for places."""
        words = [*_said("--sheet", self.sheet), *self.layout_words(columns, kind), *self.scoring_words()]
        for k, role in self.now(columns).items():
            words += _said(ASIDE[role], columns[k]["name"]) if role in ASIDE else []
        words += ["--largest-component"] if self.largest_component else []
        words += ["--design", "adaptive"] if self.adaptive else []
        words += _said("--scale", self.scale.replace(" ", ""))
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


def _said(flag: str, *values: str) -> list[str]:
    """The option with each of the values that are not empty.

    >>> _said("--missing", "9", "", "-1")
    ['--missing', '9', '--missing=-1']
    """
    said: list[str] = []
    for value in values:
        said += [f"{flag}={value}"] if value.startswith("-") else [flag, value] if value else []
    return said


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _literal(name: str) -> str:
    """A name that stands for itself among patterns.

    >>> [_literal(name) for name in ("q1", "q*", "a[1]")]
    ['q1', 'q[*]', 'a[[]1]']
    """
    if not set(name) & set(MAGIC):
        return name
    # A comma would divide it, and a question mark stands for one.
    return "".join(f"[{sign}]" if sign in MAGIC else "?" if sign == "," else sign for sign in name)


def _listed(flag: str, names: Iterable[str]) -> list[str]:
    """Names that can stand together as "a,b", and the others, each on its own.

    >>> _listed("--items", ["q1", "a, b", "q2", " c"])
    ['--items', 'q1,q2', '--items', 'a, b', '--items', ' c']
    """
    names = list(names)
    plain = [name for name in names if "," not in name and name == name.strip() and name]
    others = [name for name in names if name not in set(plain)]
    joined = [",".join(plain[k : k + TOGETHER]) for k in range(0, len(plain), TOGETHER)]
    return [word for value in (*joined, *others) for word in _said(flag, value)]
