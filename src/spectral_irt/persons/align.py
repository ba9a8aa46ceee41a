"""Responses put in terms of a calibration: the same items under the same codes, whoever answered them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError, ResponseValueError
from spectral_irt.text import listed


def align(labels: Any, responses: Responses, ignore_unknown: bool = False) -> Responses:
    """The responses with the items of a calibration, in its order; items are matched by label, 1 as "1".

    `ignore_unknown` leaves out answers to items that the calibration does not have; by default they are an error.

    >>> answers = Responses.from_wide([[1, 0]], items=["b", "a"])
    >>> align(np.array(["a", "b", "c"]), answers).to_dense().tolist()
    [[0.0, 1.0, nan]]
    """
    labels = np.asarray(labels)
    if responses.codes is not None and np.nan_to_num(responses.codes - [0, 1]).any():  # such as 1 and 2
        ones, codes = np.ones(len(labels), dtype=np.int64), np.broadcast_to([0.0, 1.0], (len(labels), 2))
        return _matched(responses, labels, ones, codes, _places(labels, responses, ignore_unknown))
    if responses.items.tolist() == labels.tolist():
        return responses
    place = _places(labels, responses, ignore_unknown)
    blocks = responses.prepare(_recode, place.astype(np.int32)).parts
    return replace(responses, blocks=blocks, items=labels, thresholds=Thresholds.ones(len(labels)), codes=None)


def align_categories(calibration: Calibration, responses: Responses, ignore_unknown: bool = False) -> Responses:
    """The responses with the items and categories of a calibration; both are matched by what they are called."""
    labels, codes = calibration.labels, calibration.codes
    same = np.array_equal(responses.category_codes(), codes, equal_nan=True)
    if same and responses.items.tolist() == labels.tolist():
        return responses
    place = _places(labels, responses, ignore_unknown)
    return _matched(responses, labels, calibration.layout.max_score, codes, place)


def _places(labels: NDArray[Any], responses: Responses, ignore_unknown: bool) -> Ints:
    """Where each item of the responses is among these; -1 for those that are left out."""
    place = positions(responses.items, labels)
    mine, unknown = responses.items, responses.items[place < 0]
    if len(unknown) and not ignore_unknown:
        verb = "item is" if len(unknown) == 1 else "items are"
        raise OptionError(
            f"{responses.source}: {len(unknown):,} {verb} not in the calibration: {listed(unknown)}. It has "
            f"{listed(labels)}. Check the labels, or say `ignore_unknown=True` to leave the answers to these items "
            "out."
        )
    if len(unknown) == len(mine):
        raise OptionError(
            f"{responses.source}: none of its {len(mine):,} items ({listed(mine)}) is in the calibration, which has "
            f"{listed(labels)}; there is nothing to score. Check the labels."
        )
    return place


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


def _matched(responses: Responses, labels: NDArray[Any], counts: Ints, theirs: Floats, place: Ints) -> Responses:
    """The answers in the categories of known items, by the codes `theirs` that stand for these in data; `place` is that
    of each item of the data, or -1 to leave it out."""
    mine = responses.category_codes()
    # For every item and category of the data, the category of the calibration with the same code.
    there = np.where(place >= 0, place, 0)
    same = mine[:, :, None] == theirs[there][:, None, :]
    new = np.where(same.any(axis=2), same.argmax(axis=2), -1)
    person, item, category = responses.answers()
    kept = place[item] >= 0
    person, item, given = person[kept], item[kept], category[kept]
    category = new[item, given.astype(np.int64)]
    if (category < 0).any():
        bad = np.unique(item[category < 0])
        first = int(np.flatnonzero(category < 0)[0])
        value, own = mine[item[first], int(given[first])], theirs[place[item[first]]]
        raise ResponseValueError(
            f"{responses.source}: {len(bad):,} item{' has' if len(bad) == 1 else 's have'} answers in a category that "
            f"nobody used at calibration: {listed(responses.items[bad])} ({listed([responses.persons[person[first]]])} "
            f"answered {listed([responses.items[item[first]]])} with {value:g}; it has "
            f"{', '.join(f'{code:g}' for code in own[np.isfinite(own)])}). Leave these answers out, or calibrate again."
        )
    return Responses.from_codes(
        person,
        place[item],
        category,
        thresholds=Thresholds(counts),
        persons=responses.persons,
        items=labels,
        source=responses.source,
        frame_kind=responses.frame_kind,
        people=responses.people,
        codes=theirs,
    ).using(responses.engine)


def in_categories_of(labels: NDArray[Any], counts: Ints, theirs: Floats, responses: Responses) -> Responses:
    """The responses with the categories of known items, so many and with these codes; other items keep theirs."""
    mine, place = responses.category_codes(), positions(responses.items, labels)
    shared = np.flatnonzero(place >= 0)
    counts, known = responses.thresholds.max_score.copy(), counts
    counts[shared] = known[place[shared]]
    codes = np.full((len(place), int(counts.max(initial=1)) + 1), np.nan)
    own = np.flatnonzero(place < 0)
    codes[own, : mine.shape[1]] = mine[own][:, : codes.shape[1]]
    codes[shared, : theirs.shape[1]] = theirs[place[shared]][:, : codes.shape[1]]
    return _matched(responses, responses.items, counts, codes, np.arange(len(place)))
