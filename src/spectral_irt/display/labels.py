"""Labels in little room: on one line, cut where they are all alike, and never where they differ.

Labels are data: control characters are spelled out, and what a reader takes for one character is never cut in two.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from rich.cells import cell_len

from spectral_irt.errors import printable

CUT = "..."
LEAST = 8  # columns that labels get however narrow the place is
MOST = 100  # columns that labels get at most
Way = Callable[[str], str]
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
    plain = {str(label): printable(label) for label in labels}
    short = _told_apart(plain, width, cut)
    if short is None:  # there is no room for what they differ in
        numbered = {label: f"{k}:{text}" for k, (label, text) in enumerate(plain.items(), 1)}
        short = {label: _cut(text, width - len(cut), 0, width, cut) for label, text in numbered.items()}
    return [short[str(label)] for label in labels]


def room_for(labels: Iterable[Any]) -> int:
    """The columns in which labels can just be told apart."""
    plain = {str(label): printable(label) for label in labels}
    widest = min(max(map(cell_len, plain.values()), default=0), MOST)
    widths = range(min(LEAST, widest), widest)
    return next((width for width in widths if _told_apart(plain, width, CUT) is not None), widest)


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


def _told_apart(plain: Mapping[str, str], width: int, cut: str) -> dict[str, str] | None:
    """The texts in this width: what is common to them goes first, then their middles, as long as no two are alike."""
    wide = [text for text in plain.values() if cell_len(text) > width]
    for way in [*_leaving_out_the_common(wide, width, cut), *_leaving_out_the_middle(width, cut)]:
        short = {label: text if cell_len(text) <= width else way(text) for label, text in plain.items()}
        if len(set(short.values())) == len(short):
            return short
    return None


def _leaving_out_the_common(wide: Sequence[str], width: int, cut: str) -> list[Way]:
    """Ways that keep whole what tells the wide texts apart: cut what they begin with, what they end with, or both."""
    if len(wide) < 2:
        return []
    start = _whole_words(wide, _common(wide))
    end = _whole_words([text[::-1] for text in wide], _common([text[::-1] for text in wide]))
    end = min(end, min(map(len, wide)) - start)
    ways: list[Way] = []
    begin = width - len(cut) - max(cell_len(text[start:]) for text in wide)
    if start and begin >= 0:
        ways.append(lambda text: _first(_characters(text[:start]), begin) + cut + text[start:])
    close = width - len(cut) - max(cell_len(text[: len(text) - end]) for text in wide)
    if end and close >= 0:
        ways.append(lambda text: text[: len(text) - end] + cut + _last(_characters(text[len(text) - end :]), close))
    if not ways and max(cell_len(text[start : len(text) - end]) for text in wide) <= width - 2 * len(cut):
        room = width - 2 * len(cut)
        ways.append(lambda text: cut + _first(_characters(text[start:]), room) + cut)
    return ways


def _leaving_out_the_middle(width: int, cut: str) -> list[Way]:
    """Ways to cut all texts at the same place, that in the middle first."""
    room = max(width - len(cut), 1)
    heads = sorted(range(room + 1), key=lambda head: abs(2 * head - room))
    return [partial(_cut, head=head, tail=room - head, width=width, cut=cut) for head in heads]


def _cut(text: str, head: int, tail: int, width: int, cut: str) -> str:
    """So many columns of either end."""
    if cell_len(text) <= width:
        return text
    characters = _characters(text)
    return _first(characters, head) + cut + _last(characters, tail)


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
    return alike or after == JOINER or before == JOINER or cell_len(after) == 0


def _common(texts: Sequence[str]) -> int:
    """With how many characters all texts begin alike."""
    first, last = min(texts), max(texts)
    return next((k for k, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))


# ------------------------------------------------------------------------------------- characters


def _characters(text: str) -> list[str]:
    """What a reader takes for one character each: an accent stays with its letter, a joined emoji whole."""
    found: list[str] = []
    for character in text:
        joined = bool(found) and found[-1].endswith(JOINER)
        if found and (joined or character == JOINER or cell_len(character) == 0):
            found[-1] += character
        else:
            found.append(character)
    return found


def _first(characters: Sequence[str], room: int) -> str:
    taken = ""
    for character in characters:
        if cell_len(taken + character) > room:
            break
        taken += character
    return taken


def _last(characters: Sequence[str], room: int) -> str:
    taken = ""
    for character in reversed(characters):
        if cell_len(character + taken) > room:
            break
        taken = character + taken
    return taken
