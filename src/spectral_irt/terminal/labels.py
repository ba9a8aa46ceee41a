"""Labels in little room: on one line, cut where they are all alike, and never where they differ.

Labels are data: control characters are spelled out, and what a reader takes for one character is never cut in two.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from rich.cells import cell_len

from spectral_irt.errors import printable

CUT = "..."
LEAST = 8  # columns that labels get however narrow the place is
MOST = 100  # columns that labels get at most
JOINER, MARK = "\u200d", "\u200e"  # joins two characters into one; ends text that is written from right to left


def shortened(labels: Iterable[Any], width: int, cut: str = CUT) -> list[str]:
    """Labels on one line each, cut in the middle where one is too wide, and never so that two of them look alike.

    >>> shortened(["form-A-item-01", "form-A-item-02", "form-B"], 11)
    ['form-A...01', 'form-A...02', 'form-B']
    >>> shortened(["item-17-of-form-A", "item-18-of-form-A"], 10)
    ['item-17...', 'item-18...']
    >>> shortened(["examination-2024-part-17-of-physics", "examination-2024-part-18-of-physics"], 14)
    ['...17-of-ph...', '...18-of-ph...']
    """
    labels = list(labels)
    plain = {str(label): _Line(printable(label)) for label in labels}
    short = _told_apart(plain, width, cut)
    if short is None:  # there is no room for what they differ in
        numbered = {label: _Line(f"{k}:{line.text}") for k, (label, line) in enumerate(plain.items(), 1)}
        short = {label: _cut(line, width - len(cut), 0, width, cut) for label, line in numbered.items()}
    return [short[str(label)] for label in labels]


def room_for(labels: Iterable[Any]) -> int:
    """The columns in which labels can be told apart, about as few as can be."""
    plain = {str(label): _Line(printable(label)) for label in labels}
    enough = min(max((line.width for line in plain.values()), default=0), MOST)
    few = min(LEAST, enough) - 1
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if _told_apart(plain, middle, CUT) is not None else (middle, enough)
    return enough


def widest(labels: Iterable[Any]) -> int:
    """The columns that the widest label takes when all are whole, within reason."""
    return min(max((cell_len(printable(label)) for label in labels), default=0), MOST)


def in_its_place(text: str) -> str:
    """A text that may be written from right to left, without taking the numbers after it along.

    >>> in_its_place("abc"), in_its_place("שלום") == "שלום" + MARK
    ('abc', True)
    """
    backward = any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)
    return text + MARK if backward else text


class _Line:
    """A text by what a reader takes for characters: an accent stays with its letter, a joined emoji whole."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.ends, self.cells = [0], [0]  # after each character: its place in the text, and the columns up to there
        for k, character in enumerate(text, 1):
            joined = k > 1 and (text[k - 2] == JOINER or character == JOINER)
            size = cell_len(character)
            if k > 1 and (joined or size == 0):
                self.ends[-1] = k
            else:
                self.ends.append(k)
                self.cells.append(self.cells[-1] + size)
        self.width = self.cells[-1]

    def first(self, room: int) -> str:
        """As much of the start as has room."""
        return self.text[: self.ends[max(bisect_right(self.cells, room) - 1, 0)]]

    def last(self, room: int) -> str:
        """As much of the end as has room."""
        return self.text[self.ends[min(bisect_left(self.cells, self.width - room), len(self.ends) - 1)] :]


Way = Callable[[_Line], str]


def _told_apart(plain: Mapping[str, _Line], width: int, cut: str) -> dict[str, str] | None:
    """The texts in this width: what is common to them goes first, then their middles, as long as no two are alike."""
    wide = [line.text for line in plain.values() if line.width > width]
    for way in [*_leaving_out_the_common(wide, width, cut), *_leaving_out_the_middle(width, cut)]:
        short: dict[str, str] = {}
        seen: set[str] = set()
        for label, line in plain.items():
            text = short[label] = line.text if line.width <= width else way(line)
            if text in seen:
                break
            seen.add(text)
        else:
            return short
    return None


def _leaving_out_the_common(wide: Sequence[str], width: int, cut: str) -> list[Way]:
    """Ways that keep whole what tells the wide texts apart: cut what they begin with, what they end with, or both."""
    if len(wide) < 2:
        return []
    start = _whole_words(wide, _common(wide))
    end = _whole_words([text[::-1] for text in wide], _common([text[::-1] for text in wide]))
    end = min(end, min(map(len, wide)) - start)
    begin, close, room = _Line(wide[0][:start]), _Line(wide[0][len(wide[0]) - end :]), width - len(cut)
    after = room - max(cell_len(text[start:]) for text in wide)
    before = room - max(cell_len(text[: len(text) - end]) for text in wide)
    ways: list[Way] = []
    if start and after >= 0:
        ways.append(lambda line: begin.first(after) + cut + line.text[start:])
    if end and before >= 0:
        ways.append(lambda line: line.text[: len(line.text) - end] + cut + close.last(before))
    core = max(cell_len(text[start : len(text) - end]) for text in wide)
    if not ways and core <= room - len(cut):
        ways.append(lambda line: cut + _Line(line.text[start:]).first(room - len(cut)) + cut)
    return ways


def _leaving_out_the_middle(width: int, cut: str) -> list[Way]:
    """Ways to cut all texts at the same place, that in the middle first."""
    room = max(width - len(cut), 1)
    heads = sorted(range(room + 1), key=lambda head: abs(2 * head - room))
    return [partial(_cut, head=head, tail=room - head, width=width, cut=cut) for head in heads]


def _cut(line: _Line, head: int, tail: int, width: int, cut: str) -> str:
    """So many columns of either end."""
    return line.text if line.width <= width else line.first(head) + cut + line.last(tail)


def _whole_words(texts: Sequence[str], common: int) -> int:
    """How much of what is common at the start does not break into a word or a number: 10 and 11 are not 0 and 1."""
    while common and any(_inside(text, common) for text in texts):
        common -= 1
    return common


def _inside(text: str, place: int) -> bool:
    """Whether this place is between two letters, between two digits, or within a character."""
    if place >= len(text):
        return False
    before, after = text[place - 1], text[place]
    alike = (before.isdigit() and after.isdigit()) or (before.isalpha() and after.isalpha())
    return alike or JOINER in (before, after) or 0 in (cell_len(before), cell_len(after))


def _common(texts: Sequence[str]) -> int:
    """With how many characters all texts begin alike."""
    first, last = min(texts), max(texts)
    return next((k for k, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
