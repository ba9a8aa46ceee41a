"""Families of columns: names that differ in one number only, such as PrePANAS_01 to PrePANAS_20.

Where a file has a hundred columns, these are what a person chooses among; and two families may be the same items on two
occasions. `item_columns.py` names them in findings and errors.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import combinations
from typing import Any, NamedTuple

FEWEST = 3  # columns of a family
# Words for an occasion, and letters that stand for one before a number: "t1", "wave 2".
OCCASIONS = frozenset({"pre", "post", "before", "after", "baseline", "followup", "pretest", "posttest"})
NUMBERED_OCCASION = re.compile(r"(t|w|y|time|wave|year|occasion|session)\d+")
PREFIXES = ("pre", "post")


class Family(NamedTuple):
    """Columns whose names differ in one number: the names, that number of each, the pattern that means all of them and
    no other column, and their positions."""

    names: tuple[str, ...]
    numbers: tuple[str, ...]
    pattern: str
    columns: tuple[int, ...]

    @property
    def span(self) -> str:
        return f"{self.names[0]!r} to {self.names[-1]!r}"


def families_of(names: Sequence[Any]) -> list[Family]:
    """Families of these columns, in the order of their first columns."""
    by_text: dict[tuple[str, ...], list[int]] = defaultdict(list)
    parts = [re.split(r"(\d+)", str(name)) for name in names]  # text, number, text, ..., text
    for k, parts_of_name in enumerate(parts):
        if len(parts_of_name) > 1:
            by_text[tuple(parts_of_name[::2])].append(k)
    families = []
    for columns in by_text.values():
        # The number that takes most values tells the columns of a family apart; others belong to its name (t1, Y6).
        slots = range(1, len(parts[columns[0]]), 2)
        place = max(slots, key=lambda slot: (len({parts[k][slot] for k in columns}), slot))
        members: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for k in columns:
            members[(*parts[k][:place], "", *parts[k][place + 1 :])].append(k)
        for around, columns_of_family in members.items():
            if len(columns_of_family) >= FEWEST:
                numbers = [parts[k][place] for k in columns_of_family]
                families.append(_family(names, columns_of_family, around, place, numbers))
    return sorted(families, key=lambda family: family.columns)


def _family(
    names: Sequence[Any], columns: Sequence[int], around: Sequence[str], place: int, numbers: Sequence[str]
) -> Family:
    members = tuple(str(names[k]) for k in columns)
    before, after = (re.sub(r"([\[*?])", r"[\1]", "".join(some)) for some in (around[:place], around[place + 1 :]))
    pattern = f"{before}*{after}"
    others = {str(name) for name in names}.difference(members)
    if any(fnmatchcase(name, pattern) for name in others):
        pattern = f"{before}[0-9]*{after}"
    return Family(members, tuple(numbers), pattern, tuple(columns))


class Occasion(NamedTuple):
    """The word of a name that says when, and what is left of the name without it."""

    word: str
    rest: tuple[str, ...]


def occasion_of(family: Family) -> Occasion | None:
    """
    >>> families = families_of([f"{when}PANAS_{k}" for when in ("Pre", "Post") for k in range(3)])
    >>> [occasion_of(family) for family in families]
    [Occasion(word='pre', rest=('panas',)), Occasion(word='post', rest=('panas',))]
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", family.pattern.replace("[0-9]", ""))
    words = [word.lower() for word in re.findall(r"[^\W_]+", spaced)]
    for k, word in enumerate(words):
        others = (*words[:k], *words[k + 1 :])
        if word in OCCASIONS or NUMBERED_OCCASION.fullmatch(word):
            return Occasion(word, others)
        for prefix in PREFIXES:
            if word.startswith(prefix) and word != prefix:
                return Occasion(prefix, (*words[:k], word.removeprefix(prefix), *words[k + 1 :]))
    return None


def same_on_two_occasions(families: Sequence[Family]) -> tuple[Family, Family] | None:
    """The first two families that are the same items on two occasions, by their names."""
    for first, second in combinations(families, 2):
        occasion_a = occasion_of(first)
        occasion_b = occasion_of(second)
        if occasion_a is None or occasion_b is None:
            continue
        if occasion_a.rest != occasion_b.rest or occasion_a.word == occasion_b.word:
            continue
        common = set(first.numbers) & set(second.numbers)
        if 2 * len(common) > max(len(first.numbers), len(second.numbers)):
            return first, second
    return None
