"""What an update does with the scale, with the error of a link, and with parts of the items: rule by rule."""

from types import SimpleNamespace

import numpy as np
import pytest

from spectral_irt.bank.update import _Update
from spectral_irt.data.block import Thresholds

LAYOUT = Thresholds(np.array([1, 2, 1, 2]))


def bank_with(**fields):
    """What the rules ask of an update: a bank of four items, without anchors and with blocks unless said otherwise."""
    usual = {
        "layout": LAYOUT,
        "item": LAYOUT.item,
        "known": np.ones(4, dtype=bool),
        "free": np.ones(4, dtype=bool),
        "was_free": np.ones(4, dtype=bool),
        "active": np.ones(4, dtype=bool),
        "is_linked": False,
        "bank": SimpleNamespace(evidence=SimpleNamespace(matrix=None)),
    }
    return SimpleNamespace(**usual | fields)


def calibration_with(**fields):
    usual = {"anchored": np.zeros(4, dtype=bool), "labels": np.array(list("abcd"), dtype=object)}
    return SimpleNamespace(**usual | fields)


def test_a_part_moves_back_by_the_mean_of_the_items_on_the_scale():
    """Or of those that are known, where none of the part is on the scale; a part with an anchor stays."""
    beta = np.array([0.5, 1.0, 2.0, -1.0, 0.0, 0.4])  # locations .5, 1.5, -1, .2
    calibration = calibration_with(difficulty=np.array([0.2, 1.0, np.nan, 0.6]))
    on_scale = np.array([True, False, False, False])
    known = np.array([True, True, False, True])
    parts = SimpleNamespace(after=np.array([0, 0, 1, 1]))
    update = bank_with(calibration=calibration, on_scale=on_scale, known=known, parts=parts)
    np.testing.assert_allclose(_Update._offset_of_scale(update, beta), [0.3, 0.3, -0.4, -0.4])
    update.on_scale = np.array([True, True, False, False])
    np.testing.assert_allclose(_Update._offset_of_scale(update, beta), [0.4, 0.4, -0.4, -0.4])
    calibration.anchored[1] = True
    np.testing.assert_allclose(_Update._offset_of_scale(update, beta), [0, 0, -0.4, -0.4])


def before(thresholds, locations=None):
    model = SimpleNamespace(thresholds=np.array(thresholds), locations=locations)
    return SimpleNamespace(variance=lambda: model)


def test_the_error_of_a_link_stays_however_many_answers_come():
    se = np.sqrt([0.5, 0.6, 0.7, 0.8, 0.4, np.nan])
    update = bank_with(
        calibration=calibration_with(threshold_se=se),
        before=None,
        kept_precisions=None,
        was_free=np.array([True, True, False, True]),
        _posterior_before=lambda *each: before([0.2, 0.25, 0.3, 0.1, 0.5, 0.1]),
    )
    of_link = [0.3, 0.35, 0.4, None, -0.1, None]
    usual = np.median([0.3, 0.35, 0.4, -0.1])
    variance = np.array([0.1, 0.1, 0.1, 0.1, 0.08, 0.1])
    expected = [max(v + (usual if u is None else u), v / 4) for v, u in zip(variance, of_link, strict=True)]
    np.testing.assert_allclose(_Update._with_error_of_link(update, variance), expected)


def test_links_with_other_items_add_to_locations_as_the_bank_says():
    se = np.sqrt([0.4, 0.6, 0.9, 0.8, 0.5, 0.5])
    location_se = np.sqrt(np.array([0.3, 0.5, 0.2, np.nan]))
    update = bank_with(
        calibration=calibration_with(threshold_se=se, se=location_se),
        before=None,
        kept_precisions=None,
        _posterior_before=lambda *each: before([0.2, 0.3, 0.3, 0.4, 0.5, 0.5], np.array([0.15, 0.2, 0.1, 0.1])),
    )
    of_thresholds = np.array([2.0, (2 + 3) / 2, 2.0])
    ratio = np.array([2.0, 2.5, 2.0]) / of_thresholds
    np.testing.assert_allclose(_Update._location_ratio(update), [*ratio, np.median(ratio)])
    update.was_free = np.zeros(4, dtype=bool)
    np.testing.assert_array_equal(_Update._location_ratio(update), np.ones(4))
    update.was_free = np.ones(4, dtype=bool)
    update.is_linked = True
    np.testing.assert_array_equal(_Update._location_ratio(update), np.ones(4))


@pytest.mark.parametrize(("anchored", "expected"), [([], [0, 1, 1, 2]), ([3], [1, 2, 2, 0])])
def test_parts_whose_place_is_not_known(anchored, expected):
    calibration = calibration_with()
    calibration.anchored[anchored] = True
    update = bank_with(calibration=calibration, parts=SimpleNamespace(after=np.array([0, 1, 1, 2])))
    assert _Update._unlinked_parts(update).tolist() == expected


def test_thresholds_that_responses_link_with_the_scale():
    """All of a measured item; beside an empty category those between two categories that were seen."""
    category_n = np.array([[3, 4, np.nan], [5, 2, 0], [6, 0, np.nan], [1, 1, 1]])
    status = np.array(["ok", "empty category", "all wrong", "unlinked"], dtype=object)
    assert _Update._linked_by_responses(bank_with(), category_n, status).tolist() == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    status[3] = "anchored"
    assert _Update._linked_by_responses(bank_with(), category_n, status)[4:].tolist() == [True, True]


def test_parts_without_an_anchor_float_where_a_matrix_is_kept():
    calibration = calibration_with()
    calibration.anchored[0] = True
    parts = np.array([0, 0, 1, 1])
    update = bank_with(calibration=calibration, free=np.array([False, True, True, True]))
    assert _Update._part_of_threshold(update, parts).tolist() == [-1] * 6
    update.bank.evidence.matrix = np.eye(6)
    assert _Update._part_of_threshold(update, parts).tolist() == [-1, -1, -1, 1, 1, 1]


def test_new_items_and_what_places_them_are_told():
    status = np.array(["ok", "ok", "unlinked", "all right"], dtype=object)
    known = np.array([True, False, False, False])
    update = bank_with(calibration=calibration_with(), known=known, placement=SimpleNamespace(status=status))
    (new,) = _Update._new_items(update)
    assert new.items == ("b", "c", "d")
    (loose,) = _Update._loose_items(update, np.ones(6))
    assert loose.items == ("c", "d")
    assert "infinite" not in loose.sentence
    (loose,) = _Update._loose_items(update, np.array([1, 1, 1, np.inf, 1, 1]))
    assert "infinite" in loose.sentence
    status[2:] = "ok"
    assert not list(_Update._loose_items(update, np.ones(6)))
    update.known[:] = True
    assert not list(_Update._new_items(update))


def test_weak_links_are_told_by_variances_far_above_one_over_the_information():
    free = np.array([True, True, True, False])
    inflation = np.array([1.4, 1.6, 1.6, 1.6, 9.0, 9.0])  # the median over free thresholds is 1.6
    assert len(list(_Update._weak_links(bank_with(free=free), inflation))) == 1
    inflation[1:3] = 1.5
    assert not list(_Update._weak_links(bank_with(free=free), inflation))
    matrix = SimpleNamespace(evidence=SimpleNamespace(matrix=np.eye(6)))
    assert not list(_Update._weak_links(bank_with(bank=matrix), np.full(6, 9.0)))
