"""Room for new items, and two calibrations in one bank: every array item by item, against loops over labels."""

from dataclasses import fields, replace

import numpy as np
import pytest

from spectral_irt import Bank, SpectralPartialCredit, SpectralRasch, anchored_fit, simulate
from spectral_irt.bank.evidence import Evidence
from spectral_irt.bank.merge import CALIBRATION_FIELDS, EVIDENCE_FIELDS, ITEM, SUM, merge_banks, with_room
from spectral_irt.calibration import Calibration

# Fields of a calibration or of evidence with an array that have lines of their own in `merge`, are computed from
# others, or are not kept in a bank.
BY_HAND = {"labels", "layout", "codes", "codes_high", "category_n", "matrix", "blocks", "location_se"}
COMPUTED = {"difficulty", "known", "measured", "anchored", "se"}
NOT_KEPT = {"threshold_covariance", "threshold_information", "threshold_score", "without_prior", "scale_of_item"}


def test_no_array_is_forgotten():
    listed = {field.name for field in (*CALIBRATION_FIELDS, *EVIDENCE_FIELDS)}
    for kind in (Calibration, Evidence):
        arrays = {field.name for field in fields(kind) if "Floats" in field.type or "Ints" in field.type}
        arrays |= {field.name for field in fields(kind) if "NDArray" in field.type and "Mapping" not in field.type}
        assert arrays - listed - BY_HAND - COMPUTED - NOT_KEPT == set()


def two_calibrations(categories):
    """A bank of items 0 to 5, and a calibration of items 2 to 7 anchored to it, with the responses of that."""
    data = simulate.partial_credit(600, 8, categories=categories, seed=3).responses
    estimator = SpectralPartialCredit
    if categories == 2:
        data = simulate.rasch(600, 8, seed=3).responses
        estimator = SpectralRasch
    item = np.arange(8)
    first = data.take_persons(range(300)).take_items(item < 6)
    second = data.take_persons(range(300, 600)).take_items(item >= 2)
    bank = Bank.from_fit(estimator().fit(first), first)
    return bank, Bank.from_fit(anchored_fit(second, bank), second), second


def of_item(owner, field, calibration, label):
    """What an array has for one item: a number, or one for each threshold."""
    place = calibration.labels.tolist().index(label)
    values = getattr(owner, field.name)
    return values[place] if field.per == ITEM else values[calibration.layout.item == place]


@pytest.mark.parametrize("categories", [2, 4])
def test_room_holds_nothing_for_new_items(categories):
    bank, new, _ = two_calibrations(categories)
    labels = new.items[-2:].tolist()
    roomy = with_room(bank, labels, new.calibration.layout.max_score[-2:], new.calibration.codes[-2:])
    for owner, before, some in (
        (roomy.calibration, bank.calibration, CALIBRATION_FIELDS),
        (roomy.evidence, bank.evidence, EVIDENCE_FIELDS),
    ):
        for field in some:
            for label in bank.items.tolist():
                old = of_item(before, field, bank.calibration, label)
                np.testing.assert_array_equal(of_item(owner, field, roomy.calibration, label), old)
            for label in labels:
                values = np.atleast_1d(of_item(owner, field, roomy.calibration, label)).tolist()
                np.testing.assert_equal(values, [field.unknown] * len(values))
    np.testing.assert_array_equal(roomy.evidence.matrix[:, -1], 0)


@pytest.mark.parametrize("categories", [2, 4])
def test_two_calibrations_in_one_bank(categories):
    """Anchors stay, new items are as estimated, counts and information are sums: item by item, by label."""
    bank, new, responses = two_calibrations(categories)
    both = merge_banks(bank, new, responses)
    assert both.items.tolist() == list(range(8))
    for whole, old, added, some in (
        (both.calibration, bank.calibration, new.calibration, CALIBRATION_FIELDS),
        (both.evidence, bank.evidence, new.evidence, EVIDENCE_FIELDS),
    ):
        for field in some:
            for label in range(8):
                value = of_item(whole, field, both.calibration, label)
                if label < 2:
                    wanted = of_item(old, field, bank.calibration, label)
                elif label >= 6:
                    wanted = of_item(added, field, new.calibration, label)
                elif field.rule == SUM:
                    wanted = of_item(old, field, bank.calibration, label) + of_item(
                        added, field, new.calibration, label
                    )
                else:
                    wanted = of_item(old, field, bank.calibration, label)
                np.testing.assert_array_equal(value, wanted, err_msg=f"{field.name} of item {label}")
    # The information between two thresholds is the sum of what both calibrations have.
    for row, first in enumerate(both.calibration.layout.item.tolist()):
        for column, second in enumerate(both.calibration.layout.item.tolist()):
            wanted = 0.0
            for part in (bank, new):
                labels = part.items.tolist()
                if first in labels and second in labels:
                    k, j = (
                        np.flatnonzero(part.calibration.layout.item == labels.index(item))[
                            both.calibration.layout.level[entry] - 1
                        ]
                        for item, entry in ((first, row), (second, column))
                    )
                    wanted += part.evidence.matrix[k, j]
            assert both.evidence.matrix[row, column] == wanted


def test_codes_of_merged_categories_of_new_items_are_kept():
    """A new item whose categories were merged stands for several codes: for its own, whatever the bank's items do."""
    bank, new, second = two_calibrations(4)
    codes_high = new.calibration.codes.copy()
    codes_high[-1, -1] += 1  # the highest category of the last item stands for two codes
    several = replace(new, calibration=new.calibration.replace(codes_high=codes_high))
    result = merge_banks(bank, several, second).calibration
    expected = result.codes.copy()
    expected[-1, -1] += 1
    np.testing.assert_array_equal(result.codes_high, expected)
