"""What each person adds to the gradient of the marginal likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Block
from spectral_irt.data.block import Floats
from spectral_irt.data.thresholds import Thresholds, answered_items
from spectral_irt.estimators.estimate import person_slices
from spectral_irt.estimators.marginal_information import population_scores
from spectral_irt.estimators.population import (
    CELLS,
    Population,
    expected_passes,
    log_denominators,
    passing,
    posterior,
    thresholds_met,
)
from spectral_irt.sparse_kernels import csr


def marginal_scores(
    block: Block, beta: Floats, population: Population, steps: Thresholds | None = None
) -> tuple[Any, Floats]:
    """E[P(X >= k) | answers of l] - 1{x_l >= k}, people x thresholds met; and of each person the scores of mean and
    log sigma.

    The first, summed over people, is the derivative of the marginal log-likelihood by each threshold; the others are
    E[z] / sigma and E[z^2] - 1, with z = (theta - mu) / sigma, or the statistics of a free population.
    """
    table, p = log_denominators(beta, population, steps), passing(beta, population, steps)
    scores = population_scores(population)
    scores = scores - ([0.0, 1.0] if population.basis is None else np.exp(population.log_weights) @ scores)
    expected, of_population = [], np.zeros((block.n_persons, scores.shape[1]))
    for start, stop in person_slices(block, CELLS // len(population.nodes)):
        post, _ = posterior(block, start, stop, beta, population, table, steps)
        expected.append(expected_passes(block, start, stop, p, post, steps).data)
        of_population[start:stop] = post @ scores
    of_population[block.counts == 0] = 0
    indptr, index = thresholds_met(block, 0, block.n_persons, steps)
    values = np.concatenate([*expected, np.empty(0)]) - _passed(block, index, steps)
    return csr(indptr.astype(np.int32), index, values, len(beta)), of_population


def _passed(block: Block, met: NDArray[np.int32], steps: Thresholds | None) -> NDArray[np.bool_]:
    """Whether each of the thresholds met was passed."""
    if steps is None:
        return block.right()
    _, item, category = answered_items(block, steps)
    return np.repeat(category, steps.max_score[item]) >= steps.level[met]
