"""Sums of values of people's thresholds, against a dense matrix of people x thresholds."""

import numpy as np
import pytest

from spectral_irt.conditional.information import ThresholdRows
from spectral_irt.data.block import Thresholds


@pytest.mark.parametrize("max_scores", [[1, 1, 1], [2, 2, 2], [2, 1, 3]])
def test_sums_over_people_are_those_of_the_dense_matrix(max_scores):
    layout = Thresholds(np.array(max_scores))
    rng = np.random.default_rng(2)
    indptr = np.array([0, 2, 3, 6], dtype=np.int32)
    items = np.array([0, 2, 1, 0, 1, 2], dtype=np.int32)
    present = np.arange(layout.widest)[:, None] < layout.max_score[items]
    values = rng.random((layout.widest, len(items))) * present
    rows = ThresholdRows(indptr, items, values, layout)

    person = np.repeat(np.arange(3), np.diff(indptr))
    dense = np.zeros((3, layout.n_entries))
    for answer, item in enumerate(items):
        for level in range(layout.max_score[item]):
            dense[person[answer], layout.first[item] + level] = values[level, answer]
    np.testing.assert_array_equal(rows.matrix.toarray(), dense)
    np.testing.assert_allclose(rows.row_sums(), dense.sum(axis=1))
    weight = np.array([2.0, 0.5, 3.0])
    np.testing.assert_allclose(rows.sums(weight[person]), dense.T @ weight)

    squares = rows.squares()
    covariances = rows.covariances(weight[person])
    for item in range(3):
        for low in range(layout.max_score[item]):
            for high in range(low, layout.max_score[item]):
                a = dense[:, layout.first[item] + low]
                b = dense[:, layout.first[item] + high]
                met = np.isin(np.arange(3), person[items == item])
                np.testing.assert_allclose(squares[item, low, high], a @ b)
                np.testing.assert_allclose(squares[item, high, low], a @ b)
                np.testing.assert_allclose(covariances[item, low, high], (weight * (1 - a) * b)[met].sum())
