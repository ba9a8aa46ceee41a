"""Labels in little room: on one line, cut where they are all alike, and never where they differ.

Labels are data: control characters are spelled out, and what a reader sees as one character is never cut in two.
Tables of the terminal and pictures (`plots/labels.py`) take labels from here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate, groupby, takewhile
from typing import Any

from rich.cells import cell_len

from spectral_irt.text import printable

CUT = "..."
LEAST = 8  # columns that labels get however narrow the place is
MOST = 100  # columns that labels get at most
JOINER = "\u200d"  # joins two characters into one
MARK = "\u200e"  # ends text that is written from right to left
Characters = list[str]  # what a reader sees as characters: an accent with its letter, a joined emoji


def shorten(labels: Iterable[Any], width: int, cut: str = CUT) -> list[str]:
    """Labels on one line each, cut in the middle where one is too wide, and never so that two of them look alike.

    >>> shorten(["form-A-item-01", "form-A-item-02", "form-B"], 11)
    ['form-A...01', 'form-A...02', 'form-B']
    >>> shorten(["item-17-of-form-A", "item-18-of-form-A"], 10)
    ['item-17...', 'item-18...']
    >>> shorten(["examination-2024-part-17-of-physics", "examination-2024-part-18-of-physics"], 14)
    ['...17-of-ph...', '...18-of-ph...']
    """
    labels = list(map(str, labels))
    texts = list(map(printable, labels))
    if max(map(cell_len, texts), default=0) <= width and len(set(texts)) == len(set(labels)):
        return texts
    characters = dict(zip(labels, map(_characters, texts), strict=True))
    short = _cut_in_some_way(characters, width, cut)
    if short is None:  # there is no room for what they differ in: they are told apart by number
        short = {}
        for number, (label, text) in enumerate(characters.items(), 1):
            numbered = _characters(f"{number}:{''.join(text)}")
            if _columns(numbered) > width:
                short[label] = _first(numbered, width - len(cut)) + cut
            else:
                short[label] = "".join(numbered)
    return [short[label] for label in labels]


def room_for(labels: Iterable[Any]) -> int:
    """The columns in which labels can be told apart, about as few as can be."""
    characters = {str(label): _characters(printable(label)) for label in labels}
    enough = min(max(map(_columns, characters.values()), default=0), MOST)
    too_few = min(LEAST, enough) - 1
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if _cut_in_some_way(characters, middle, CUT) is None:
            too_few = middle
        else:
            enough = middle
    return enough


def in_its_place(text: str) -> str:
    """A text that may be written from right to left, without taking the numbers after it along.

    >>> in_its_place("abc"), in_its_place("שלום") == "שלום" + MARK
    ('abc', True)
    """
    if text.isascii() or not any(unicodedata.bidirectional(sign) in ("R", "AL") for sign in text):
        return text
    return text + MARK


def _characters(text: str) -> Characters:
    characters: Characters = []
    for sign in text:
        if characters and (sign == JOINER or characters[-1].endswith(JOINER) or cell_len(sign) == 0):
            characters[-1] += sign
        else:
            characters.append(sign)
    return characters


def _columns(text: Characters) -> int:
    return sum(map(cell_len, text))


def _first(text: Characters, room: int) -> str:
    """As much of the start as has room."""
    n = sum(end <= room for end in accumulate(map(cell_len, text)))
    return "".join(text[:n])


def _last(text: Characters, room: int) -> str:
    n = sum(end <= room for end in accumulate(map(cell_len, text[::-1])))
    return "".join(text[len(text) - n :])


def _cut_in_some_way(characters: Mapping[str, Characters], width: int, cut: str) -> dict[str, str] | None:
    """The texts in this width, cut in the first way in which no two are alike; None where there is none."""
    too_wide = {label: text for label, text in characters.items() if _columns(text) > width}
    texts = {label: "".join(text) for label, text in characters.items()}
    for cut_text in _ways_to_cut(list(too_wide.values()), width - len(cut), cut):
        short = texts | {label: cut_text(text) for label, text in too_wide.items()}
        if len(set(short.values())) == len(short):
            return short
    return None


def _ways_to_cut(wide: Sequence[Characters], room: int, cut: str) -> Iterable[Callable[[Characters], str]]:
    """Leave out of all texts what they begin with, or end with, or both, as whole words; or cut all at the same place,
    that in the middle first."""
    if len(wide) > 1:
        words = [[tuple(word) for _, word in groupby(text, _kind)] for text in wide]
        start = _alike_at_the_start(words)
        end = min(_alike_at_the_start([text[::-1] for text in words]), min(map(len, wide)) - start)
        room_at_start = room - max(_columns(text[start:]) for text in wide)
        room_at_end = room - max(_columns(text[: len(text) - end]) for text in wide)
        core = max(_columns(text[start : len(text) - end]) for text in wide)
        without_start = start > 0 and room_at_start >= 0
        without_end = end > 0 and room_at_end >= 0
        if without_start:
            yield lambda text: _first(text, room_at_start) + cut + "".join(text[start:])
        if without_end:
            yield lambda text: "".join(text[: len(text) - end]) + cut + _last(text, room_at_end)
        if not without_start and not without_end and core <= room - len(cut):
            yield lambda text: cut + _first(text[start:], room - len(cut)) + cut
    room_of_both = max(room, 1)
    for head in sorted(range(room_of_both + 1), key=lambda head: abs(2 * head - room_of_both)):
        yield partial(lambda head, text: _first(text, head) + cut + _last(text, room_of_both - head), head)


def _alike_at_the_start(texts: Sequence[Sequence[tuple[str, ...]]]) -> int:
    """The characters of the words with which all texts begin."""
    return sum(len(first) for first, *_ in takewhile(lambda words: len(set(words)) == 1, zip(*texts, strict=False)))


def _kind(character: str) -> str:
    """The same for neighbors that may not be parted: 10 and 11 are not 0 and 1."""
    if character[0].isdigit():
        return "digit"
    return "letter" if character[0].isalpha() else character
