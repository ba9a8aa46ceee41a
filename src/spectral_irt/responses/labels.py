"""Labels: which of one source is which of another, and what names nobody.

One rule brings labels of two sources together. A file whose item names are all whole numbers gives numbers, and one
more item called "x" turns them all into text; a key or a table of groups has types of its own. So labels are compared
as they are first, and then as text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import OptionError, ReadError, listed
from spectral_irt.responses.block import Ints
from spectral_irt.responses.missing import NOT_ANSWERED, is_missing

Labels = NDArray[Any]


def label_array(labels: Iterable[Any]) -> Labels:
    """Labels as every room has them: int64 where all are whole numbers, Python objects otherwise.

    Never fixed-width strings, which pad and cut, or wrapped numbers.
    """
    if isinstance(labels, np.ndarray) and labels.dtype.kind == "i":
        return labels.astype(np.int64)
    plain = _plain(labels)
    if plain and all(type(label) is int and abs(label) < 2**63 for label in plain):
        return np.array(plain, dtype=np.int64)
    out = np.empty(len(plain), dtype=object)
    for k, label in enumerate(plain):  # one by one: a label may be a tuple
        out[k] = label
    return out


# ------------------------------------------------------------------------------------- two sources


def positions(labels: Iterable[Any], known: Iterable[Any]) -> Ints:
    """Where each label is among the known ones; -1 where it is not.

    Equal labels match. A label without an equal one matches the label that is the same text, so that 1 is "1", provided
    that there is one such label and nothing else matches it; otherwise it is an error.

    >>> positions(["q2", "q9"], ["q1", "q2"]).tolist()
    [1, -1]
    >>> positions(["2", "x"], [1, 2]).tolist()
    [1, -1]
    >>> positions([1, "1"], ["1", "2"])
    Traceback (most recent call last):
    ...
    spectral_irt.errors.OptionError: 1 and '1' are the same label as text, and '1' could be either. Rename one of them.
    """
    mine, theirs = _plain(labels), _plain(known)
    place = {label: k for k, label in enumerate(theirs)}
    found = [place.get(label, -1) for label in mine]
    if -1 in found:
        _match_as_text(mine, theirs, found)
    return np.array(found, dtype=np.int64)


def index_of(known: Iterable[Any]) -> dict[Any, int]:
    """Where each label is, for whoever looks up a few of very many again and again; `positions` has the whole rule."""
    return {label: k for k, label in enumerate(_plain(known))}


def _match_as_text(mine: list[Any], theirs: list[Any], found: list[int]) -> None:
    """Fill in the labels that agree as text only."""
    by_text: dict[str, list[int]] = {}
    for k, label in enumerate(theirs):
        by_text.setdefault(text_of(label), []).append(k)
    matched: dict[int, Any] = {k: label for label, k in zip(mine, found, strict=True) if k >= 0}
    for n, label in enumerate(mine):
        if found[n] >= 0:
            continue
        same = by_text.get(text_of(label), [])
        if len(same) > 1:
            raise _ambiguous([theirs[k] for k in same], label)
        for k in same:
            if k in matched and not _equal(matched[k], label):
                raise _ambiguous([label, matched[k]], theirs[k])
            matched[k] = label
            found[n] = k


def _ambiguous(same: list[Any], label: Any) -> OptionError:
    names = " and ".join(listed([one]) for one in same[:2])
    return OptionError(
        f"{names} are the same label as text, and {listed([label])} could be either. Rename one of them."
    )


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


def _plain(labels: Iterable[Any]) -> list[Any]:
    return labels.tolist() if isinstance(labels, np.ndarray) else [_scalar(label) for label in labels]


def _scalar(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def text_of(label: Any) -> str:
    """A label as text; a whole number is written without a point."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


# ------------------------------------------------------------------------------------- missing labels


def item_label(name: Any) -> Any:
    """A column's name as the label of an item; a missing name (None, NaN) becomes the text for it."""
    return str(name) if is_missing(name) else name


def check_people(labels: Iterable[Any], where: str, among: NDArray[np.bool_] | None = None) -> None:
    """Refuse people without a label: several of them would be taken for one."""
    rows = [k for k, label in enumerate(labels) if (among is None or among[k]) and _is_nobody(label)]
    if rows:
        raise nobody(where, rows)


def _is_nobody(label: Any) -> bool:
    return is_missing(label) or (isinstance(label, str) and label.strip() in NOT_ANSWERED)


def nobody(where: str, rows: Iterable[int]) -> ReadError:
    """The complaint about rows in which the label of the person is missing."""
    rows = list(rows)
    has = "row {} has" if len(rows) == 1 else "rows {} have"
    return ReadError(
        f"{where} names the people, and {has.format(listed(rows))} no name there (empty, NA or NaN), so it is not "
        "known whose answers these are. Fill it in, or remove the rows."
    )
