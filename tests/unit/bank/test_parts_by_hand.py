"""Which items of a bank are on one scale: against searches written as loops; and errors of what has no matrix."""

from types import SimpleNamespace

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.bank import build, covariance
from spectral_irt.bank.components import _linked_rows, components, groups_of, numbered_from, parts_before
from spectral_irt.bank.covariance import _errors_by_matrix, _errors_of_linked
from spectral_irt.data.block import Thresholds

NAN = np.nan
TABLE = np.array(
    [
        [1, 0, NAN, NAN, NAN, NAN, NAN],
        [0, 1, NAN, NAN, NAN, NAN, NAN],
        [NAN, 1, 0, NAN, NAN, NAN, NAN],  # one way only
        [NAN, NAN, NAN, 1, 0, NAN, NAN],
        [NAN, NAN, NAN, 0, 1, NAN, NAN],
        [NAN, NAN, NAN, 1, 1, 1, NAN],  # an extreme score links nothing
        [NAN, NAN, NAN, NAN, NAN, 0, 1],
        [NAN, NAN, NAN, NAN, NAN, 1, 0],
    ]
)


def strongly_connected(edges, n):
    """The items that reach each other, by Warshall's closure."""
    reach = np.eye(n, dtype=bool)
    for a, b in edges:
        reach[a, b] = True
    for k in range(n):
        reach |= reach[:, [k]] & reach[[k]]
    return reach & reach.T


def edges_of(table, joined):
    edges = [(a, b) for a in range(len(joined)) for b in range(len(joined)) if joined[a] == joined[b] >= 0]
    for row in table:
        items = np.flatnonzero(~np.isnan(row))
        if 0 < np.nansum(row) < len(items):
            edges += [(a, b) for a in items for b in items if row[a] == 1 and row[b] == 0]
    return edges


@pytest.mark.parametrize("joined", [[-1] * 7, [0, -1, 0, -1, -1, -1, -1], [2, -1, -1, 2, -1, 1, 1]])
def test_items_that_answers_and_the_bank_connect(joined):
    joined = np.array(joined)
    found = components(si.Responses.from_wide(TABLE), joined)
    np.testing.assert_array_equal(found[:, None] == found, strongly_connected(edges_of(TABLE, joined), 7))


def test_groups_keep_the_lowest_number_and_others_get_the_next_by_size():
    joined = np.array([3, -1, 1, -1, -1, -1, -1])
    table = np.vstack([TABLE, [NAN, 0, 1, NAN, NAN, NAN, NAN]])  # now 0, 1 and 2 are one component
    estimated = np.array([True, True, True, True, True, True, False])
    found = groups_of(si.Responses.from_wide(table), joined, estimated)
    assert found[:3].tolist() == [1, 1, 1]
    assert found[3] == found[4] == 4
    assert found[5] == 5
    assert found[6] == 5  # goes with the item that its people answered


def test_parts_are_numbered_from_the_one_with_most_items_of_the_scale():
    parts = np.array([7, 7, 2, 2, 2, 5])
    scale = np.array([True, True, True, False, False, False])
    assert numbered_from(scale, parts).tolist() == [0, 0, 1, 1, 1, 2]


def test_linked_rows_are_those_that_reach_each_other():
    shared = np.eye(6, dtype=bool)
    for a, b in ((0, 4), (4, 2), (1, 3)):
        shared[a, b] = shared[b, a] = True
    assert _linked_rows(shared).tolist() == [0, 1, 0, 1, 0, 2]


def test_parts_of_a_matrix_and_of_blocks():
    layout = Thresholds(np.array([2, 1, 1]))
    matrix = np.zeros((4, 4))
    matrix[1, 2] = matrix[2, 1] = 0.5  # the second threshold of the first item, and the second item
    known, group = np.array([True, True, True]), np.array([0, 3, 1])
    loose = np.array([False, True, True])
    assert parts_before(matrix, layout, group, known, loose).tolist() == [0, 0, 1]
    assert parts_before(matrix, layout, group, ~loose, loose).tolist() == [0, -1, -1]
    blocks = np.zeros((3, 2, 2))
    assert parts_before(blocks, layout, group, known, loose).tolist() == [0, 4, 2]


def bank_of(se, information, anchored=None, thresholds=None):
    n = len(se)
    calibration = SimpleNamespace(
        threshold_se=np.array(se),
        thresholds=np.zeros(n) if thresholds is None else np.array(thresholds),
        anchored=np.zeros(n, dtype=bool) if anchored is None else np.array(anchored),
        layout=Thresholds.ones(n),
    )
    return SimpleNamespace(calibration=calibration, evidence=SimpleNamespace(information=np.array(information)))


def test_errors_of_a_linked_bank_without_a_matrix(monkeypatch):
    """Independent errors of the information and the prior, centered; the rest of each variance is that of the link."""
    monkeypatch.setattr(covariance, "_prior_precisions", lambda bank: np.array([1.0, 0.5, 0.0, 0.0]))
    se = [0.6, 0.8, 0.7, np.inf]
    found = _errors_of_linked(bank_of(se, [3.0, 4.5, 8.0, 0.0], thresholds=[0.1, 0.2, -0.3, np.nan]))
    v = np.array([1 / 4, 1 / 5, 1 / 8, 0.0])
    C = np.eye(4) - 1 / 4
    centered = C @ np.diag(v) @ C.T
    u = (np.array([0.36, 0.64, 0.49, 0.0]) - np.diag(centered)) / 2
    np.testing.assert_allclose(found.full(), centered + u[:, None] + u)
    np.testing.assert_allclose(found.variance[:3], [0.36, 0.64, 0.49])


def test_errors_by_a_matrix_are_in_proportion_or_have_the_link_beside_it():
    root = np.random.default_rng(1).normal(size=(3, 5))
    model = root @ root.T
    se = np.array([0.5, 0.0, 2.0])
    linked = _errors_by_matrix(bank_of(se, np.zeros(3)), model, True)
    u = (se**2 - np.diag(model)) / 2
    np.testing.assert_allclose(linked.full(), model + u[:, None] + u)
    ratio = np.array([0.5, 1.0, 2.0]) / np.array([np.sqrt(model[0, 0]), 1, np.sqrt(model[2, 2])])
    np.testing.assert_allclose(
        _errors_by_matrix(bank_of(se, np.zeros(3)), model, False).full(), model * np.outer(ratio, ratio)
    )
    anchored = _errors_by_matrix(bank_of(se, np.zeros(3), anchored=[False, True, False]), model, False)
    np.testing.assert_allclose(anchored.full(), model)


def test_blocks_that_agree_with_standard_errors():
    """The inverse of each block has the errors of the thresholds and, as their mean, that of the location."""
    layout = Thresholds(np.array([2, 3, 2]))
    se = np.array([0.3, 0.4, 0.2, 0.3, 0.25, 0.5, np.nan])
    location = np.array([0.28, 0.2, np.nan])
    calibration = SimpleNamespace(layout=layout, threshold_se=se, se=location)
    blocks = build._blocks_by_errors(calibration)
    for item, own in ((0, slice(0, 2)), (1, slice(2, 5))):
        k = layout.max_score[item]
        inverse = np.linalg.inv(blocks[item, :k, :k])
        np.testing.assert_allclose(np.sqrt(np.diag(inverse)), se[own])
        assert np.sqrt(inverse.mean()) == pytest.approx(location[item])
    assert blocks[2, 0, 0] == pytest.approx(0.5**-2)
    assert not blocks[2, 1].any()
    assert not blocks[0, :, 2].any()


@pytest.mark.parametrize("prior", [False, True])
def test_the_covariance_under_the_model_has_the_prior_and_is_centered_on_parts(prior):
    """Of two parts without a common person, each with a mean of zero, items counting alike."""
    layout = Thresholds(np.array([2, 1, 1, 1]))
    information = np.zeros((5, 5))
    for own in (slice(0, 3), slice(3, 5)):
        root = np.random.default_rng(own.start).normal(size=(own.stop - own.start, 8))
        root -= root.mean(axis=0)
        information[own, own] = root @ root.T
    precision = np.array([0.4, 0.4, 0.2, 0.0, 0.3]) if prior else np.zeros(5)
    floating = np.array([0, 0, 0, 1, 1])
    weight = 1 / layout.max_score[layout.item]
    full = information + np.diag(precision)
    inverse = np.linalg.inv(full) if prior else np.linalg.pinv(full, rcond=1e-10, hermitian=True)
    C = np.eye(5)
    for part in (0, 1):
        own = floating == part
        C[own] -= np.where(own, weight / weight[own].sum(), 0.0)
    found = covariance._model_covariance(information, precision, weight, floating)
    np.testing.assert_allclose(found, C @ inverse @ C.T, atol=1e-9)


def test_free_thresholds_have_the_errors_of_anchors():
    """By the model given the anchors, and moved by -V_ff H_fa with them; no floating part beside an anchor."""
    root = np.random.default_rng(4).normal(size=(4, 9))
    information = root @ root.T
    anchored = np.array([False, True, False, True])
    calibration = SimpleNamespace(
        layout=Thresholds.ones(4),
        known=np.ones(4, dtype=bool),
        anchored=anchored,
        threshold_se=np.array([0.5, 0.2, 0.4, np.nan]),
        se=np.full(4, 0.3),
    )
    evidence = SimpleNamespace(
        link_group=np.zeros(4, dtype=np.int64), prior_precision=0.7, offset_precision=0.0, fixed_prior=True
    )
    found = covariance._under_model(SimpleNamespace(calibration=calibration, evidence=evidence), information)
    free, fixed = [0, 2], [1, 3]
    V = np.linalg.inv(information[np.ix_(free, free)] + 0.7 * np.eye(2))
    follow = -V @ information[np.ix_(free, fixed)]
    errors = np.diag([0.04, 0.0])
    np.testing.assert_allclose(found[np.ix_(free, free)], V + follow @ errors @ follow.T)
    np.testing.assert_allclose(found[np.ix_(free, fixed)], follow @ errors)
    np.testing.assert_allclose(found[np.ix_(fixed, free)], (follow @ errors).T)
    np.testing.assert_allclose(found[np.ix_(fixed, fixed)], errors)
