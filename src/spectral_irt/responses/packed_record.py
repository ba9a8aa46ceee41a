"""What a packed file keeps besides the answers: labels, findings, what the raw answers were. As data, never pickled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import OptionError, Words, for_shell, listed
from spectral_irt.responses.findings import Finding
from spectral_irt.responses.labels import Labels, label_array
from spectral_irt.responses.raw_answers import RawAnswers

NUMBERS, TEXTS, MIXED = "numbers", "texts", "mixed"


# ------------------------------------------------------------------------------------------------- labels


def labels_out(labels: Labels) -> tuple[str, *tuple[NDArray[Any], ...]]:
    """How the labels are kept, and the arrays that keep them."""
    if labels.dtype.kind == "i":
        return NUMBERS, labels.astype("<i8")
    plain = labels.tolist()
    if all(type(label) is str for label in plain):
        texts = [label.encode("utf-8", "surrogatepass") for label in plain]
        ends = np.cumsum([0, *map(len, texts)], dtype="<i8")
        return TEXTS, ends, np.frombuffer(b"".join(texts), dtype="u1")
    foreign = [label for label in plain if not isinstance(label, str | int | float | bool)]
    if foreign:
        raise OptionError(
            f"labels of the kind {type(foreign[0]).__name__} cannot be packed: {listed(foreign)}. Make them text or "
            "whole numbers."
        )
    return MIXED, np.frombuffer(json.dumps(plain).encode(), dtype="u1")


def labels_in(kind: str, parts: Sequence[memoryview], n: int, which: str) -> Labels:
    """The labels again; a ValueError where there are not as many as there should be."""
    found: Labels
    if kind == NUMBERS:
        found = np.frombuffer(parts[0], "<i8")
    elif kind == TEXTS:
        ends, text = np.frombuffer(parts[0], "<i8"), bytes(parts[1])
        if len(ends) != n + 1 or ends[0] != 0 or ends[-1] != len(text) or np.any(np.diff(ends) < 0):
            raise ValueError(f"labels of {which}")
        found = np.empty(n, dtype=object)
        places = ends.tolist()
        found[:] = [text[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(places)]
    elif kind == MIXED:
        found = label_array(json.loads(bytes(parts[0])))
    else:
        raise ValueError(f"labels of the kind {kind}")
    if len(found) != n:
        raise ValueError(f"{len(found):,} {which} instead of {n:,}")
    return found


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


# ------------------------------------------------------------------------------------------------ findings


def notes_out(notes: Sequence[Finding]) -> list[dict[str, Any]]:
    """Findings, with what they say in Python and on the command line."""
    return [
        {
            "code": note.code,
            "severity": note.severity,
            "sentence": [str(note.sentence), for_shell(note.sentence)],
            "remedy": [str(note.remedy), for_shell(note.remedy)],
            "items": [_plain(label) for label in note.items],
        }
        for note in notes
    ]


def notes_in(kept: Sequence[dict[str, Any]]) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            str(note["code"]),
            note["severity"],
            Words(*map(str, note["sentence"])),
            Words(*map(str, note["remedy"])),
            tuple(note["items"]),
        )
        for note in kept
    )


# --------------------------------------------------------------------------------------------- raw answers


def raw_out(raw: RawAnswers | None, items: Labels) -> dict[str, Any] | None:
    """What is known of the raw answers, by the number of the item."""
    if raw is None:
        return None
    labels = items.tolist()
    blanks = None if raw.blanks is None else [raw.blanks.get(label) for label in labels]
    return {
        "options": list(raw.options),
        "key": [raw.key.get(label) for label in labels],
        "blanks": blanks,
        "counted_wrong": list(raw.counted_wrong),
    }


def raw_in(kept: dict[str, Any] | None, items: Labels) -> RawAnswers | None:
    if kept is None:
        return None
    labels = items.tolist()
    key = {label: text for label, text in zip(labels, kept["key"], strict=True) if text is not None}
    blanks = None
    if kept["blanks"] is not None:
        pairs = zip(labels, kept["blanks"], strict=True)
        blanks = {label: (int(pair[0]), int(pair[1])) for label, pair in pairs if pair is not None}
    omitted, not_reached = kept["counted_wrong"]
    return RawAnswers(tuple(map(str, kept["options"])), key, blanks, (int(omitted), int(not_reached)))
