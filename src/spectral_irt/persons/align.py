"""Responses put in terms of a calibration: the same items under the same codes, whoever answered them."""

from __future__ import annotations

from typing import Any

import numpy as np

from spectral_irt.errors import OptionError, listed, option
from spectral_irt.responses import Block, Responses
from spectral_irt.responses.labels import positions


def align(labels: Any, responses: Responses, ignore_unknown: bool = False) -> Responses:
    """The responses with the items of a calibration, in its order; items are matched by label, 1 as "1".

    Parameters
    ----------
    labels : array of item labels
        Those of the calibration.
    ignore_unknown : bool
        Leave out answers to items that the calibration does not have; by default they are an error.

    Examples
    --------
    >>> answers = Responses.from_wide([[1, 0]], items=["b", "a"])
    >>> align(np.array(["a", "b", "c"]), answers).to_dense().tolist()
    [[0.0, 1.0, nan]]
    """
    labels = np.asarray(labels)
    mine, theirs = responses.items.tolist(), labels.tolist()
    if mine == theirs:
        return responses
    new = positions(responses.items, labels).astype(np.int32)
    unknown = [label for label, k in zip(mine, new, strict=True) if k < 0]
    if unknown and not ignore_unknown:
        verb = "item is" if len(unknown) == 1 else "items are"
        raise OptionError(
            f"{responses.source}: {len(unknown):,} {verb} not in the calibration: {listed(unknown)}. "
            f"It has {listed(theirs)}. Check the labels, or say ",
            option("ignore_unknown", True),
            " to leave the answers to these items out.",
        )
    if len(unknown) == len(mine):
        raise OptionError(
            f"{responses.source}: none of its {len(mine):,} items ({listed(mine)}) is in the calibration, which has "
            f"{listed(theirs)}; there is nothing to score. Check the labels."
        )
    return responses.transform(_recode, new, items=labels)


def _recode(block: Block, new: np.ndarray[Any, Any]) -> Block:
    """The block under new item codes, increasing again within the right and within the wrong answers of a person."""
    kept = block.keep_items(new)
    if np.all(np.diff(new[new >= 0]) > 0):
        return kept
    halves = np.diff(kept.bounds)
    slot = np.repeat(np.arange(len(halves), dtype=np.int64), halves) << 32
    slot += kept.items
    if kept.options is not None:
        order = np.argsort(slot)
        return Block(kept.indptr, kept.split, kept.items[order], kept.options[order])
    slot.sort()
    return Block(kept.indptr, kept.split, (slot & 0xFFFFFFFF).astype(np.int32))
