"""Labels in little room: on one line, cut where they are all alike, and never where they differ.

Labels are data: control characters are spelled out, and what a reader sees as one character is never cut in two.
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
JOINER, MARK = "\u200d", "\u200e"  # joins two characters into one; ends text that is written from right to left
Characters = list[str]  # what a reader sees as characters: an accent with its letter, a joined emoji


def shortened(labels: Iterable[Any], width: int, cut: str = CUT) -> list[str]:
    """Labels on one line each, cut in the middle where one is too wide, and never so that two of them look alike.

    >>> shortened(["form-A-item-01", "form-A-item-02", "form-B"], 11)
    ['form-A...01', 'form-A...02', 'form-B']
    >>> shortened(["item-17-of-form-A", "item-18-of-form-A"], 10)
    ['item-17...', 'item-18...']
    >>> shortened(["examination-2024-part-17-of-physics", "examination-2024-part-18-of-physics"], 14)
    ['...17-of-ph...', '...18-of-ph...']
    """
    labels = list(map(str, labels))
    texts = list(map(printable, labels))
    if max(map(cell_len, texts), default=0) <= width and len(set(texts)) == len(set(labels)):
        return texts
    plain = dict(zip(labels, map(_characters, texts), strict=True))
    short = _told_apart(plain, width, cut)
    if short is None:  # there is no room for what they differ in
        numbered = {label: _characters(f"{k}:{''.join(text)}") for k, (label, text) in enumerate(plain.items(), 1)}
        short = {
            label: "".join(text) if _wide(text) <= width else _first(text, width - len(cut)) + cut
            for label, text in numbered.items()
        }
    return [short[label] for label in labels]


def room_for(labels: Iterable[Any]) -> int:
    """The columns in which labels can be told apart, about as few as can be."""
    plain = {str(label): _characters(printable(label)) for label in labels}
    enough = min(max(map(_wide, plain.values()), default=0), MOST)
    few = min(LEAST, enough) - 1
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if _told_apart(plain, middle, CUT) is not None else (middle, enough)
    return enough


def in_its_place(text: str) -> str:
    """A text that may be written from right to left, without taking the numbers after it along.

    >>> in_its_place("abc"), in_its_place("שלום") == "שלום" + MARK
    ('abc', True)
    """
    backward = not text.isascii() and any(unicodedata.bidirectional(one) in ("R", "AL") for one in text)
    return text + MARK if backward else text


def _characters(text: str) -> Characters:
    found: Characters = []
    for one in text:
        if found and (one == JOINER or found[-1].endswith(JOINER) or cell_len(one) == 0):
            found[-1] += one
        else:
            found.append(one)
    return found


def _wide(text: Characters) -> int:
    return sum(map(cell_len, text))


def _first(text: Characters, room: int) -> str:
    """As much of the start as has room."""
    return "".join(text[: sum(end <= room for end in accumulate(map(cell_len, text)))])


def _last(text: Characters, room: int) -> str:
    return "".join(text[len(text) - sum(end <= room for end in accumulate(map(cell_len, text[::-1]))) :])


def _told_apart(plain: Mapping[str, Characters], width: int, cut: str) -> dict[str, str] | None:
    """The texts in this width, cut in the first way in which no two are alike."""
    wide = [text for text in plain.values() if _wide(text) > width]
    for way in _ways(wide, width - len(cut), cut):
        short = {label: "".join(text) if _wide(text) <= width else way(text) for label, text in plain.items()}
        if len(set(short.values())) == len(short):
            return short
    return None


def _ways(wide: Sequence[Characters], room: int, cut: str) -> Iterable[Callable[[Characters], str]]:
    """Leave out of all texts what they begin with, or end with, or both, as whole words; or cut all at the same place,
    that in the middle first."""
    if len(wide) > 1:
        words = [[tuple(word) for _, word in groupby(text, _kind)] for text in wide]
        start = _alike(words)
        end = min(_alike([text[::-1] for text in words]), min(map(len, wide)) - start)
        after = room - max(_wide(text[start:]) for text in wide)
        before = room - max(_wide(text[: len(text) - end]) for text in wide)
        core = max(_wide(text[start : len(text) - end]) for text in wide)
        if start and after >= 0:
            yield lambda text: _first(text, after) + cut + "".join(text[start:])
        if end and before >= 0:
            yield lambda text: "".join(text[: len(text) - end]) + cut + _last(text, before)
        if not (start and after >= 0) and not (end and before >= 0) and core <= room - len(cut):
            yield lambda text: cut + _first(text[start:], room - len(cut)) + cut
    rest = max(room, 1)
    for head in sorted(range(rest + 1), key=lambda head: abs(2 * head - rest)):
        yield partial(lambda head, text: _first(text, head) + cut + _last(text, rest - head), head)


def _alike(texts: Sequence[Sequence[tuple[str, ...]]]) -> int:
    """The characters of the words with which all texts begin."""
    return sum(len(first) for first, *_ in takewhile(lambda words: len(set(words)) == 1, zip(*texts, strict=False)))


def _kind(character: str) -> str:
    """The same for neighbors that may not be parted: 10 and 11 are not 0 and 1."""
    return "digit" if character[0].isdigit() else "letter" if character[0].isalpha() else character
