"""Responses put in terms of a calibration: the same items under the same codes, whoever answered them.

An analysis, a bank that scores or is updated, and anchors match responses by this: items by label, categories by what
stood in the data.
"""

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
from spectral_irt.text import count, listed, one_or_many


def align(labels: Any, responses: Responses, ignore_unknown: bool = False) -> Responses:
    """The responses with the items of a calibration, in its order; items are matched by label, 1 as "1".

    `ignore_unknown` leaves out answers to items that the calibration does not have; by default they are an error.

    >>> answers = Responses.from_wide([[1, 0]], items=["b", "a"])
    >>> align(np.array(["a", "b", "c"]), answers).to_dense().tolist()
    [[0.0, 1.0, nan]]
    """
    labels = np.asarray(labels)
    if responses.codes is not None and np.nan_to_num(responses.codes - [0, 1]).any():  # such as 1 and 2
        max_scores = np.ones(len(labels), dtype=np.int64)
        codes = np.broadcast_to([0.0, 1.0], (len(labels), 2))
        return _in_categories(responses, labels, max_scores, codes, _places(labels, responses, ignore_unknown))
    if responses.items.tolist() == labels.tolist():
        return responses
    place = _places(labels, responses, ignore_unknown)
    blocks = responses.prepare(_recode, place.astype(np.int32)).parts
    return replace(responses, blocks=blocks, items=labels, thresholds=Thresholds.ones(len(labels)), codes=None)


def align_categories(calibration: Calibration, responses: Responses, ignore_unknown: bool = False) -> Responses:
    """The responses with the items and categories of a calibration; both are matched by what they are called."""
    labels = calibration.labels
    codes = calibration.codes
    same = np.array_equal(responses.category_codes(), codes, equal_nan=True)
    if same and responses.items.tolist() == labels.tolist():
        return responses
    place = _places(labels, responses, ignore_unknown)
    return _in_categories(responses, labels, calibration.layout.max_score, codes, place)


def _places(labels: NDArray[Any], responses: Responses, ignore_unknown: bool) -> Ints:
    """Where each item of the responses is among these; -1 for those that are left out."""
    place = positions(responses.items, labels)
    unknown = responses.items[place < 0]
    if len(unknown) and not ignore_unknown:
        verb = one_or_many(len(unknown), "item is", "items are")
        raise OptionError(
            f"{responses.source}: {len(unknown):,} {verb} not in the calibration: {listed(unknown)}. It has "
            f"{listed(labels)}. Check the labels, or say `ignore_unknown=True` to leave the answers to these items "
            "out."
        )
    if len(unknown) == responses.n_items:
        raise OptionError(
            f"{responses.source}: none of its {responses.n_items:,} items ({listed(responses.items)}) is in the "
            f"calibration, which has {listed(labels)}; there is nothing to score. Check the labels."
        )
    return place


def _recode(block: Block, new_code: NDArray[np.int32]) -> Block:
    """The block under new item codes, increasing again within the right and within the wrong responses of a person."""
    recoded = block.keep_items(new_code)
    if np.all(np.diff(new_code[new_code >= 0]) > 0):
        return recoded
    # Sorted by half of a person and item: both in one number, the half in its upper 32 bits.
    halves = np.diff(recoded.bounds)
    half_and_item = np.repeat(np.arange(len(halves), dtype=np.int64), halves) << 32
    half_and_item += recoded.items
    if recoded.options is not None:
        order = np.argsort(half_and_item)
        return Block(recoded.indptr, recoded.split, recoded.items[order], recoded.options[order])
    half_and_item.sort()
    return Block(recoded.indptr, recoded.split, (half_and_item & 0xFFFFFFFF).astype(np.int32))


def _in_categories(
    responses: Responses, labels: NDArray[Any], max_scores: Ints, codes: Floats, place: Ints
) -> Responses:
    """The responses to the items `labels`, in the categories that the `codes` of these items (items x categories) stand
    for; `place` is where each item of the data is among them, or -1 to leave it out."""
    codes_in_data = responses.category_codes()
    # For every item and category of the data, the category of the calibration with the same code.
    same_code = codes_in_data[:, :, None] == codes[np.maximum(place, 0)][:, None, :]
    new_category = np.where(same_code.any(axis=2), same_code.argmax(axis=2), -1)
    person, item, category_in_data = responses.answers()
    stays = place[item] >= 0
    person = person[stays]
    item = item[stays]
    category_in_data = category_in_data[stays].astype(np.int64)
    category = new_category[item, category_in_data]
    if (category < 0).any():
        bad = np.unique(item[category < 0])
        first = int(np.flatnonzero(category < 0)[0])
        value = codes_in_data[item[first], category_in_data[first]]
        calibrated = codes[place[item[first]]]
        raise ResponseValueError(
            f"{responses.source}: {count(len(bad), 'item has', 'items have')} answers in a category that nobody "
            f"used at calibration: {listed(responses.items[bad])} ({listed([responses.persons[person[first]]])} "
            f"answered {listed([responses.items[item[first]]])} with {value:g}; it has "
            f"{', '.join(f'{code:g}' for code in calibrated[np.isfinite(calibrated)])}). Leave these answers out, or "
            "calibrate again."
        )
    return Responses.from_codes(
        person,
        place[item],
        category,
        thresholds=Thresholds(max_scores),
        persons=responses.persons,
        items=labels,
        source=responses.source,
        frame_kind=responses.frame_kind,
        people=responses.people,
        codes=codes,
    ).with_engine(responses.engine)


def in_categories_of(labels: NDArray[Any], max_scores: Ints, codes: Floats, responses: Responses) -> Responses:
    """The responses with the categories of known items, so many and with these codes; other items keep theirs."""
    place = positions(responses.items, labels)
    is_known = place >= 0
    all_max_scores = responses.thresholds.max_score.copy()
    all_max_scores[is_known] = max_scores[place[is_known]]
    width = int(all_max_scores.max(initial=1)) + 1
    all_codes = np.full((len(place), width), np.nan)
    codes_in_data = responses.category_codes()
    all_codes[~is_known, : codes_in_data.shape[1]] = codes_in_data[~is_known][:, :width]
    all_codes[is_known, : codes.shape[1]] = codes[place[is_known]][:, :width]
    aligned = _in_categories(responses, responses.items, all_max_scores, all_codes, np.arange(len(place)))
    if responses.codes_high is None:
        return aligned
    all_codes_high = all_codes.copy()
    all_codes_high[~is_known, : codes_in_data.shape[1]] = responses.codes_high[~is_known][:, :width]
    return replace(aligned, codes_high=all_codes_high, code_excess=responses.code_excess)
