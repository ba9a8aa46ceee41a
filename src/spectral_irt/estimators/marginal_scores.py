"""What each person adds to the gradient of the marginal likelihood."""

from __future__ import annotations

import numpy as np

from spectral_irt.data import Block
from spectral_irt.data.block import Floats
from spectral_irt.estimators.estimate import person_slices
from spectral_irt.estimators.marginal_information import population_scores
from spectral_irt.estimators.population import (
    CELLS,
    Population,
    expected_passes,
    log_denominators,
    passing,
    posterior,
)


def marginal_scores(block: Block, difficulty: Floats, population: Population) -> tuple[Floats, Floats]:
    """E[P(X_li = 1) | answers of l] - X_li of every response; and of each person the scores of mean and log sigma.

    The first, summed over the answers to an item, is the derivative of the marginal log-likelihood by its difficulty;
    the others are E[z] / sigma and E[z^2] - 1, with z = (theta - mu) / sigma, or the statistics of a free population.
    """
    table, p = log_denominators(difficulty, population), passing(difficulty, population)
    scores = population_scores(population)
    scores = scores - ([0.0, 1.0] if population.basis is None else np.exp(population.log_weights) @ scores)
    expected, of_population = np.empty(block.n_responses), np.zeros((block.n_persons, scores.shape[1]))
    for start, stop in person_slices(block, CELLS // len(population.nodes)):
        post, _ = posterior(block, start, stop, difficulty, population, table)
        expected[block.indptr[start] : block.indptr[stop]] = expected_passes(block, start, stop, p, post).data
        of_population[start:stop] = post @ scores
    of_population[block.counts == 0] = 0
    return expected - block.right(), of_population
