"""Interactions of raters, or of any facet: with items, with groups of people; and contrasts of two items by rater.

Score tests at the calibration: the design gets a further column, the level on one item or in one group, with the score
g and the information v that is left after what the parameters of the model take up. One Newton step g / v is the bias
of that combination, and g / sqrt(v) is standard normal where there is none. What is expected is so given the totals.

`Analysis.interactions` and `Analysis.contrasts` show these.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.calibration import Calibration
from spectral_irt.conditional.exact_likelihood import information_at
from spectral_irt.conditional.information import Point
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.penalized import DENSE_PARAMETERS
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints, Mask
from spectral_irt.data.facets import FacetMeasures
from spectral_irt.data.labels import by_label
from spectral_irt.errors import OptionError
from spectral_irt.inference.rating_tables import Averages, cell_averages
from spectral_irt.inference.results import adjust_p, two_sided
from spectral_irt.numerics import conjugate_gradients, safe_divide
from spectral_irt.tables import Columns

CELLS_AT_A_TIME = 2_000
NO_INFORMATION = 1e-10  # of the largest eigenvalue
RANK_ONE = 1e-6  # of the larger eigenvalue of two, below which the smaller is zero but for rounding
NOTHING_LEFT = 1e-6  # of the information on a combination: the parameters of the model take up all of it


class Cells(NamedTuple):
    """Combinations of a level and an item or a group: the level and the label of the other; score and information of a
    column for each, its information with the column of its level, and with these parameters; and mean ratings."""

    level: Ints
    other: NDArray[Any]
    score: Floats
    information: Floats
    with_level: Floats
    with_parameters: sparse.csr_array
    averages: Averages


def interactions(calibration: Calibration, responses: Responses, name: str, groups: Any = None) -> Columns:
    """Score tests of every level of a facet with every item; or, with the groups of people, with every group.

    The columns are those of `Analysis.interactions`. Nothing is fitted again: `bias` is one Newton step, and the
    information that the parameters of the model take up is subtracted.
    """
    rated = calibration.facets
    assert rated is not None
    labels, _ = rated.facets.column(name)
    beta = rated.likeliest  # there the scores of the model's own parameters are zero
    point = Likelihood(responses, beta).at(beta)
    design = rated.estimated_design
    matrix = point.of_parameters(design)
    few = _beside_the_largest_facet(rated)
    if groups is None:
        # Of many raters and many items, what combinations share with other raters is left out.
        only_few = sparse.diags_array(few.astype(float))
        with_parameters = sparse.csr_array(matrix @ only_few)
        other_name = "item"
        cells = _cells_with_items(rated, responses, name, point, sparse.csr_array(design @ only_few))
    else:
        with_parameters = matrix
        other_name = "group"
        cells = _cells_with_groups(rated, responses, name, groups, design)
    # First the level's own column is taken off, whose score is 0 at the maximum, then the other parameters.
    column_of_level = rated.columns[name].start + cells.level
    column = np.maximum(np.cumsum(rated.is_estimated)[column_of_level] - 1, 0)
    share = cells.with_level / np.maximum(matrix.diagonal()[column], 1e-12)
    share = np.where(rated.is_estimated[column_of_level], share, 0.0)
    score = cells.score - share * np.bincount(cells.level, cells.score)[cells.level]

    def without_level(some: slice) -> sparse.csr_array:
        of_level = sparse.diags_array(share[some]) @ with_parameters[column[some]]
        return sparse.csr_array(cells.with_parameters[some] - of_level)

    taken_up = _taken_up(matrix, few, without_level, len(column))
    information = cells.information - share * cells.with_level - taken_up
    is_testable = information > NOTHING_LEFT * np.maximum(cells.information, 1e-12)
    columns: Columns = {
        name: labels[cells.level],
        other_name: cells.other,
        "n": cells.averages.n,
        "observed_average": cells.averages.observed,
        "expected_average": cells.averages.expected,
    }
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = np.where(is_testable, score / information, np.nan)
        se = np.where(is_testable, 1 / np.sqrt(information), np.nan)
    return _with_tests(columns, "bias", bias, se)


def _with_tests(columns: Columns, name: str, value: Floats, se: Floats) -> Columns:
    """The columns with this value, its standard error, z and p; the most significant first."""
    z = value / se
    p = two_sided(z)
    tests = {name: value, "se": se, "z": z, "p": p, "p_holm": adjust_p(p, "holm")}
    order = np.argsort(np.where(np.isfinite(p), p, 2.0), kind="stable")
    return {name: values[order] for name, values in {**columns, **tests}.items()}


def _beside_the_largest_facet(rated: FacetMeasures) -> Mask:
    """Which of the estimated parameters are few: all, or, of very many, those of all facets but the largest."""
    few = np.ones(len(rated.is_estimated), dtype=bool)
    if len(few) > DENSE_PARAMETERS:
        few[max(rated.columns.values(), key=lambda columns: columns.stop - columns.start)] = False
    return few[rated.is_estimated]


def _cells_with_items(
    rated: FacetMeasures, responses: Responses, name: str, point: Point, design: sparse.csr_array
) -> Cells:
    _, level = rated.facets.column(name)
    pairs, cell = np.unique(np.stack([level, rated.facets.item], axis=1), axis=0, return_inverse=True)
    averages = cell_averages(rated, responses, point.gradient, cell.ravel(), len(pairs))
    return _cells_at(point, design, cell.ravel(), pairs[:, 0], rated.facets.items[pairs[:, 1]], averages)


def _cells_with_groups(
    rated: FacetMeasures, responses: Responses, name: str, groups: Any, design: sparse.csr_array
) -> Cells:
    labels, level = rated.facets.column(name)
    split = by_label(responses, groups)
    every_level = np.arange(len(labels))
    parts = []
    for number, group in enumerate(split.names):
        members = responses.take_persons(split.group == number)
        point = Likelihood(members, rated.likeliest).at(rated.likeliest)
        averages = cell_averages(rated, members, point.gradient, level, len(labels))
        other = np.repeat(np.array([group], dtype=object), len(labels))
        parts.append(_cells_at(point, design, level, every_level, other, averages))
    averages = Averages(
        n=np.concatenate([part.averages.n for part in parts]),
        observed=np.concatenate([part.averages.observed for part in parts]),
        expected=np.concatenate([part.averages.expected for part in parts]),
    )
    met = np.flatnonzero(averages.n)  # a rater may have rated nobody of a group
    return Cells(
        level=np.concatenate([part.level for part in parts])[met],
        other=np.concatenate([part.other for part in parts])[met],
        score=np.concatenate([part.score for part in parts])[met],
        information=np.concatenate([part.information for part in parts])[met],
        with_level=np.concatenate([part.with_level for part in parts])[met],
        with_parameters=sparse.csr_array(sparse.vstack([part.with_parameters for part in parts]))[met],
        averages=Averages(averages.n[met], averages.observed[met], averages.expected[met]),
    )


def _cells_at(
    point: Point, design: sparse.csr_array, cell: Ints, level: Ints, other: NDArray[Any], averages: Averages
) -> Cells:
    """With a column for each cell; `cell` is that of every virtual item, and `level` that of every cell."""
    n = len(level)
    columns = sparse.eye_array(n, format="csr")[cell[point.layout.item]]
    sums = sparse.csr_array((np.ones(n), (np.arange(n), level)))
    information, with_level, with_parameters = point.of_columns(columns, sums, design)
    score = columns.T @ point.gradient
    return Cells(level, other, score, information, with_level, with_parameters, averages)


def item_contrasts(calibration: Calibration, responses: Responses, name: str) -> Columns:
    """Of every level of a facet each two of its items: the columns of `Analysis.contrasts`.

    Two columns are added to the design at a time, the level on either item, and one Newton step d = V^-1 g is taken,
    with V their information less what the parameters of the model take up. The contrast is d_1 - d_2.
    """
    rated = calibration.facets
    assert rated is not None
    labels, level = rated.facets.column(name)
    cells, cell = np.unique(np.stack([level, rated.facets.item], axis=1), axis=0, return_inverse=True)
    n = len(cells)
    if n > DENSE_PARAMETERS:
        raise OptionError(f"there are {n:,} pairs of {name} and item; contrasts are for up to {DENSE_PARAMETERS:,}.")
    beta = rated.likeliest
    likelihood = Likelihood(responses, beta)
    columns_of_cells = sparse.eye_array(n, format="csr")[cell.ravel()[responses.thresholds.item]]
    design = sparse.csr_array(sparse.hstack([columns_of_cells, rated.estimated_design]))
    gradient = design.T @ likelihood.at(beta).gradient
    matrix = information_at(likelihood, beta, design).matrix
    taken_up = matrix[:n, n:] @ np.linalg.pinv(matrix[n:, n:], rcond=NO_INFORMATION, hermitian=True)
    information = matrix[:n, :n] - taken_up @ matrix[n:, :n]
    score = gradient[:n] - taken_up @ gradient[n:]
    pairs = [
        pair
        for number in range(len(labels))
        for pair in combinations(np.flatnonzero(cells[:, 0] == number).tolist(), 2)
    ]
    pair = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    # Where a level has two items only, both together are its severity: V has rank 1, and the difference is known.
    inverse = np.linalg.pinv(information[pair[:, :, None], pair[:, None, :]], rcond=RANK_ONE, hermitian=True)
    contrast = np.einsum("rij,rj->ri", inverse, score[pair]) @ [1.0, -1.0]
    variance = inverse[:, 0, 0] + inverse[:, 1, 1] - 2 * inverse[:, 0, 1]
    se = np.sqrt(np.where(variance > 0, variance, np.nan))
    columns: Columns = {
        name: labels[cells[pair[:, 0], 0]],
        "item": rated.facets.items[cells[pair[:, 0], 1]],
        "other_item": rated.facets.items[cells[pair[:, 1], 1]],
    }
    return _with_tests(columns, "contrast", np.where(np.isfinite(se), contrast, np.nan), se)


def _taken_up(matrix: sparse.csr_array, few: Mask, rows: Callable[[slice], sparse.csr_array], n: int) -> Floats:
    """The diagonal of E M^-1 E', the information of further columns that parameters beside their own level take up.

    X, what further columns have in common with the parameters, is a share of the rows of M that belong to their own
    level, where X M^-1 X' is exact, and a rest E of n `rows`. `few` are all parameters but the levels of the largest
    facet. Any two of those share few people, so that their part of M^-1 is about diagonal in E; where the rows leave
    them out, they are taken for zero.
    """
    few_columns = np.flatnonzero(few)
    levels = np.flatnonzero(~few)
    of_levels = sparse.csr_array(matrix[levels][:, levels])
    between = matrix[levels][:, few_columns].toarray()
    solved = between
    if len(levels):
        solved = conjugate_gradients(of_levels.__matmul__, of_levels.diagonal(), between, tol=1e-6)[0]
    of_few = matrix[few_columns][:, few_columns].toarray() - between.T @ solved
    inverse = np.linalg.pinv(of_few, rcond=NO_INFORMATION, hermitian=True)
    diagonal = of_levels.diagonal()
    inverse_diagonal = safe_divide(1.0, diagonal)
    taken_up = []
    for start in range(0, n, CELLS_AT_A_TIME):
        cells = rows(slice(start, start + CELLS_AT_A_TIME))
        on_levels = cells[:, levels]
        on_few = cells[:, few_columns].toarray() - on_levels @ solved
        by_levels = on_levels.multiply(on_levels) @ inverse_diagonal
        taken_up.append(by_levels + np.einsum("ij,ij->i", on_few @ inverse, on_few))
    return np.concatenate(taken_up)
