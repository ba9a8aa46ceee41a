"""A bank with more items: room for items that it does not have, and the items of a calibration anchored to it.

A calibration and its evidence are arrays with a number for each item, or for each threshold. Each such array is listed
here once, with what it holds for an item of which nothing is known, and with what becomes of two of them in one bank:
estimates are taken from whichever calibration made them, counts and information add up. What is no such array (codes,
counts of categories, the information between thresholds) has its own few lines.

`update` asks for room (`with_room`); `fit --anchors BANK --bank BANK` merges (`merge_banks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, DataSet
from spectral_irt.bank.evidence import MATRIX_SIZE, Evidence, blocks_of
from spectral_irt.calibration import Calibration
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints, Mask, Thresholds
from spectral_irt.data.labels import label_array, positions
from spectral_irt.errors import BankError
from spectral_irt.numerics import chosen_or_none
from spectral_irt.text import listed

ITEM = "item"
THRESHOLD = "threshold"
ESTIMATE = "estimate"  # of two calibrations, the number of the one that estimated the item
SUM = "sum"  # the numbers of both are added


class Information(NamedTuple):
    """The information between thresholds: the whole matrix, or the items' blocks of it, or neither (of items with one
    threshold each, where `Evidence.information` is all that is kept)."""

    matrix: Floats | None
    blocks: Floats | None


class ArrayField(NamedTuple):
    """An array with a number per item or per threshold, what it holds of an item of which nothing is known, and whether
    it is an estimate or a sum where two calibrations are merged."""

    name: str
    per: str
    unknown: Any
    rule: str


CALIBRATION_FIELDS = (
    ArrayField("thresholds", THRESHOLD, np.nan, ESTIMATE),
    ArrayField("threshold_se", THRESHOLD, np.nan, ESTIMATE),
    ArrayField("se", ITEM, np.nan, ESTIMATE),
    ArrayField("status", ITEM, "no responses", ESTIMATE),
    ArrayField("n", ITEM, 0, SUM),
    ArrayField("score", ITEM, 0, SUM),
    ArrayField("item_information", ITEM, 0.0, SUM),
)
EVIDENCE_FIELDS = (
    ArrayField("information", THRESHOLD, 0.0, SUM),
    ArrayField("prior_mean", THRESHOLD, 0.0, ESTIMATE),
    ArrayField("prior_gradient", THRESHOLD, 0.0, ESTIMATE),
    ArrayField("link_group", ITEM, 0, ESTIMATE),
)


def _changes_of_calibration(arrays: dict[str, NDArray[Any]], layout: Thresholds) -> dict[str, Any]:
    """The arrays under the names that the constructor of a calibration has for them: of items with one threshold the
    standard error of the location is that of the threshold."""
    location_se = arrays.pop("se")
    return {**arrays, "location_se": None if layout.binary else location_se}


def with_room(
    bank: Bank, labels: Sequence[Any], max_score: Ints, codes: Floats, codes_high: Floats | None = None
) -> Bank:
    """The bank with these items besides, of which nothing is known.

    Parameters
    ----------
    labels, max_score, codes : of the new items
        What they are called, their highest categories, and what stands in the data for each category.
    codes_high : float array, optional
        Where categories were merged, the highest of the codes that stand for each.
    """
    if not labels:
        return bank
    calibration = bank.calibration.with_free_thresholds()
    layout = _layout(np.concatenate([calibration.layout.max_score, max_score]))
    further = {}
    if calibration.anchored.any():
        further["anchored"] = pad(calibration.anchored, layout.n_items, False)
    return replace(
        bank,
        calibration=calibration.replace(
            labels=label_array([*calibration.labels.tolist(), *labels]),
            layout=layout,
            further=further,
            **_categories_with_room(calibration, layout, codes, codes_high),
            **_changes_of_calibration(_with_room(calibration, CALIBRATION_FIELDS, layout), layout),
        ),
        evidence=replace(
            bank.evidence,
            **_with_room(bank.evidence, EVIDENCE_FIELDS, layout),
            **_information_with_room(bank.evidence, calibration.layout, layout)._asdict(),
        ),
    )


def _layout(max_score: Ints) -> Thresholds:
    if max_score.max() == 1:
        return Thresholds.ones(len(max_score))
    return Thresholds(max_score)


def _with_room(source: Calibration | Evidence, fields: Sequence[ArrayField], layout: Thresholds) -> dict[str, Any]:
    """The arrays of these fields, long enough for a layout that begins with the items they have."""
    length = {ITEM: layout.n_items, THRESHOLD: layout.n_entries}
    return {field.name: pad(getattr(source, field.name), length[field.per], field.unknown) for field in fields}


def _categories_with_room(
    calibration: Calibration, layout: Thresholds, new_codes: Floats, new_codes_high: Floats | None
) -> dict[str, Floats]:
    """Codes and counts of categories, items x categories; no response is in a category of a new item."""
    shape = (layout.n_items, layout.widest + 1)
    codes = pad(calibration.codes, shape, np.nan)
    category_n = pad(calibration.category_n, shape, np.nan)
    width = min(layout.widest + 1, new_codes.shape[1])
    new_codes = new_codes[:, :width]
    codes[calibration.n_items :, :width] = new_codes
    category_n[calibration.n_items :, :width] = np.where(np.isfinite(new_codes), 0.0, np.nan)
    arrays = {"codes": codes, "category_n": category_n}
    if calibration.codes_high is None and new_codes_high is None:
        return arrays
    codes_high = codes.copy()  # one code for each category, where none were merged
    if calibration.codes_high is not None:
        codes_high[: calibration.n_items, : calibration.codes_high.shape[1]] = calibration.codes_high
    if new_codes_high is not None:
        codes_high[calibration.n_items :, :width] = new_codes_high[:, :width]
    return {**arrays, "codes_high": codes_high}


def _information_with_room(evidence: Evidence, before: Thresholds, layout: Thresholds) -> Information:
    """The information matrix while it is not too large, else its blocks of items."""
    if evidence.matrix is not None and layout.n_entries <= MATRIX_SIZE:
        matrix = pad(evidence.matrix, (layout.n_entries, layout.n_entries), 0.0)
        return Information(matrix, blocks=None)
    if layout.binary:
        return Information(matrix=None, blocks=None)
    blocks = blocks_of(evidence.matrix_or_blocks(before), before)
    return Information(matrix=None, blocks=pad(blocks, (layout.n_items, layout.widest, layout.widest), 0.0))


def pad(values: NDArray[Any], shape: int | tuple[int, ...], fill: Any) -> NDArray[Any]:
    """An array of this shape that begins with these values."""
    out = np.full(shape, fill, dtype=values.dtype)
    out[tuple(map(slice, values.shape))] = values
    return out


@dataclass(frozen=True, eq=False)
class _Places:
    """Where the items and thresholds of an anchored calibration are in the bank, and which of them it estimated."""

    items: Ints
    thresholds: Ints
    estimated_items: Mask
    estimated_thresholds: Mask

    @classmethod
    def of(cls, calibration: Calibration, bank: Calibration) -> _Places:
        items = positions(calibration.labels, bank.labels)
        return cls(
            items=items,
            thresholds=bank.layout.of_items(items),
            estimated_items=~calibration.anchored,
            estimated_thresholds=~calibration.anchored[calibration.layout.item],
        )

    def merge_field(self, field: ArrayField, old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        """One array of the bank, with that of the new calibration in it."""
        place = self.items
        estimated = self.estimated_items
        if field.per == THRESHOLD:
            place = self.thresholds
            estimated = self.estimated_thresholds
        out = old.copy()
        if field.rule == SUM:
            out[place] += new
        else:
            out[place[estimated]] = new[estimated]
        return out

    def all_merged(self, fields: Sequence[ArrayField], old: Any, new: Any) -> dict[str, Any]:
        """All of these arrays of the bank's calibration or evidence, with those of the new one in them."""
        return {
            field.name: self.merge_field(field, getattr(old, field.name), getattr(new, field.name)) for field in fields
        }


def merge_banks(bank: Bank, new: Bank, responses: Responses) -> Bank:
    """The bank with all its items, and those of `new`, which is a calibration of `responses` anchored to it.

    Items that were anchors keep thresholds, standard errors and status. Items that are new to the bank, or had no
    difficulty on its scale, have what the calibration found. Answers are counted, and what they tell is added, for all.
    """
    dataset = DataSet.of(responses, "anchored fit")
    earlier = dataset.in_bank(bank)
    if earlier is not None:
        dataset.refuse_again(earlier, "Keep the new calibration as another bank. Nothing was written.")
    calibration = new.calibration
    is_new = positions(calibration.labels, bank.items) < 0
    extended = with_room(
        bank,
        labels=calibration.labels[is_new].tolist(),
        max_score=calibration.layout.max_score[is_new],
        codes=calibration.codes[is_new],
        codes_high=chosen_or_none(calibration.codes_high, is_new),
    )
    old = extended.calibration.with_free_thresholds()
    places = _Places.of(calibration, old)
    _check_categories(calibration, old.layout.max_score[places.items], responses.source)
    category_n = old.category_n.copy()
    category_n[places.items, : calibration.category_n.shape[1]] += np.nan_to_num(calibration.category_n)
    evidence = places.all_merged(EVIDENCE_FIELDS, extended.evidence, new.evidence)
    # Items that nothing links with the bank are on scales of their own, numbered after the bank's.
    unlinked = places.estimated_items & (new.evidence.link_group > 0)
    last_group = int(bank.evidence.link_group.max(initial=0))
    evidence["link_group"][places.items[unlinked]] = last_group + new.evidence.link_group[unlinked]
    arrays = places.all_merged(CALIBRATION_FIELDS, old, calibration)
    return replace(
        extended,
        calibration=old.replace(
            category_n=category_n,
            scale=calibration.scale,
            findings=_together(old.findings, calibration.findings),
            **_changes_of_calibration(arrays, old.layout),
        ),
        evidence=replace(
            extended.evidence,
            prior_precision=extended.evidence.prior_precision or new.evidence.prior_precision,
            offset_precision=extended.evidence.offset_precision or new.evidence.offset_precision,
            **evidence,
            **_merged_information(extended.evidence, old.layout, new.evidence, calibration.layout, places)._asdict(),
        ),
        data=(*bank.data, dataset),
        population=bank.population or new.population,
        forms=(*bank.forms, *(form for form in new.forms if form not in bank.forms)),
    )


def _check_categories(calibration: Calibration, in_bank: Ints, source: str) -> None:
    other = calibration.labels[calibration.layout.max_score != in_bank]
    if len(other):
        raise BankError(
            f"{source}: {listed(other)} have another number of categories in the bank. Nothing was written."
        )


def _together(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    """Both findings, one that both have with the new ones."""
    return (*(finding for finding in old if finding not in new), *new)


def _merged_information(
    old: Evidence, layout: Thresholds, new: Evidence, new_layout: Thresholds, places: _Places
) -> Information:
    """The information of both: the whole matrix where both have it, else the items' blocks."""
    if old.matrix is not None and new.matrix is not None:
        matrix = old.matrix.copy()
        matrix[np.ix_(places.thresholds, places.thresholds)] += new.matrix
        return Information(matrix, blocks=None)
    if layout.binary:
        return Information(matrix=None, blocks=None)
    blocks = blocks_of(old.matrix_or_blocks(layout), layout).copy()
    widest = new_layout.widest
    blocks[places.items, :widest, :widest] += blocks_of(new.matrix_or_blocks(new_layout), new_layout)
    return Information(matrix=None, blocks=blocks)
