"""Item labels of two tables brought together, and labels written so that they come back exactly."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from spectral_irt.data import Responses
from spectral_irt.data.labels import Labels, label_array, positions
from spectral_irt.errors import BankError


def in_words_of(responses: Responses, known: Labels) -> Responses:
    """The responses with their items called as in `known`, where only the type of a label differs."""
    where = positions(responses.items, known)
    mine, theirs = responses.items.tolist(), known.tolist()
    names = [theirs[k] if k >= 0 else label for label, k in zip(mine, where.tolist(), strict=True)]
    if names == mine and all(type(a) is type(b) for a, b in zip(names, mine, strict=True)):
        return responses
    return replace(responses, items=label_array(names))


# ------------------------------------------------------------------------------------------- on disk


def encoded(labels: Labels) -> list[str]:
    """Each label as JSON text: numbers stay numbers, and any text comes back to the letter."""
    plain = labels.tolist()
    strange = [label for label in plain if not isinstance(label, str | int | float | None)]
    if strange:
        raise BankError(
            f"the label {strange[0]!r} is a {type(strange[0]).__name__}; a bank keeps labels that are text or numbers. "
            "Name the items by text."
        )
    return [json.dumps(label) for label in plain]


def decoded(texts: list[str]) -> Labels:
    return label_array([json.loads(text) for text in texts])


def readable(labels: Labels) -> list[str]:
    """Each label as text that every reader can show."""
    return [str(label).encode("utf-8", "replace").decode("utf-8") for label in labels.tolist()]


def same_labels(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return a.tolist() == b.tolist()
