"""Plausible values: abilities drawn from each person's posterior, for statements about populations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectral_irt.ability import cached_runs, posterior_density, posterior_moments
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Thresholds
from spectral_irt.errors import OptionError
from spectral_irt.numerics import chosen_or_none, generator
from spectral_irt.persons.abilities import known_rows, population, settle, thresholds_of
from spectral_irt.tables import Columns

# The density is computed at nodes 0.4 standard deviations apart until it has fallen by exp(-20), its logarithm is
# interpolated by cubics to cells a quarter as wide, and a value is drawn from the cells: their width adds 0.1^2 / 12 =
# 0.0008 of the posterior variance.
NODE_STEP = 0.4
CELLS_PER_STEP = 4
LOG_FALL = 20.0
PERSONS_AT_A_TIME = 256  # whose cells are laid out together: they fit a core's cache
Seed = int | tuple[int, ...]  # as numpy's generators take it


@dataclass(frozen=True, eq=False)
class PlausibleValues:
    """What `plausible_values` found: the values, people x draws, and the normal population each person is from."""

    values: Floats
    mean: Floats  # one number a person
    sd: float
    seed: Seed

    def columns(self) -> Columns:
        """`pv1, pv2, ...`"""
        return {f"pv{k + 1}": self.values[:, k] for k in range(self.values.shape[1])}


def plausible_values(
    responses: Responses,
    difficulty: Floats,
    *,
    draws: int = 5,
    seed: Seed = 0,
    prior: tuple[float, float] | None = None,
    given: Any = None,
    weights: Floats | None = None,
) -> PlausibleValues:
    """Abilities drawn from each person's posterior under a normal population.

    Posterior means vary less than abilities do, likelihood estimates more; plausible values vary as much. Compute what
    you want to know from each column, and average the results; their variance, times 1 + 1/draws, adds to that of
    sampling (Rubin's rule). They are no scores of persons.

    Parameters
    ----------
    responses, difficulty
        As in `abilities`.
    draws : int
        Values for each person; 5 are customary.
    seed : int
        The same seed gives the same values, whatever the blocks and threads, and the same first columns, however many.
    prior : (mean, sd), optional
        Of the population; estimated from the responses by marginal maximum likelihood unless given.
    given : labels or numbers of each person, a table of numbers, or a mapping from names to such, optional
        What the values will be related to: groups, age, another score. The mean of the population then depends on it
        (latent regression); a relation to anything else is drawn towards zero.
    weights : float array, optional
        How much each person counts where the population is estimated.

    References
    ----------
    Mislevy (1991), Psychometrika 56, 177-196; von Davier, Gonzalez & Mislevy (2009), IERI Monograph Series 2, 9-36.

    Examples
    --------
    >>> answers = Responses.from_wide([[1, 1, 0], [1, 1, 1], [0, 0, 1], [0, 0, 0]])
    >>> plausible_values(answers, np.array([-1.0, 0.0, 1.0]), draws=2, prior=(0.0, 1.0)).values.shape
    (4, 2)
    """
    if draws < 1:
        raise OptionError(f"`draws` is {draws}; it is a whole number, 1 or more.")
    beta = thresholds_of(responses, difficulty)
    if given is None:
        given_mean, given_sd = prior or (None, None)
        mean, sd = population(responses, beta, given_mean, given_sd, weights)
        means = np.full(responses.n_persons, mean)
    elif prior is not None:
        raise OptionError("plausible values have a given population, or one that depends on what is given; not both.")
    else:
        means, sd = latent_regression(responses, beta, background(given, responses.n_persons), weights)
    rng = generator(seed)
    chance = np.stack([rng.random(responses.n_persons) for _ in range(draws)], axis=1)
    values = responses.entries.gather(_draw, beta, responses.thresholds, sd, persons=(means, chance))
    return PlausibleValues(values, means, sd, seed)


def _draw(block: Block, mean: Floats, chance: Floats, beta: Floats, layout: Thresholds, sd: float) -> Floats:
    from scipy.special import ndtri

    # Of people about whom nothing is known but their population.
    values = np.asarray(mean[:, None] + sd * ndtri(np.maximum(chance, np.finfo(float).tiny)))
    for persons, run in cached_runs(known_rows(block, beta, layout), layout, beta):
        # Two nodes more than needed, for the cubics.
        mode, width, heights = posterior_density(run, mean[persons], sd, NODE_STEP, LOG_FALL, beyond=2)
        heights[0] = np.zeros(len(mode))
        nodes = np.stack([heights[k] for k in sorted(heights)], axis=1)
        first = min(heights) + 1  # the node, counted from the mode, at which the first cell starts
        for start in range(0, len(mode), PERSONS_AT_A_TIME):
            rows = slice(start, start + PERSONS_AT_A_TIME)
            place = quantiles(nodes[rows], chance[persons[rows]], first)
            values[persons[rows]] = mode[rows, None] + width[rows, None] * place
    return values


def quantiles(nodes: Floats, chance: Floats, first: int = 0) -> Floats:
    """Where each row's distribution function reaches `chance`, in steps between nodes; the second node is at `first`.

    `nodes` has logarithms of densities at even steps. What lies more than LOG_FALL below the mode has no mass, so that
    a person's values do not depend on how far the nodes go on account of others.
    """
    t = np.arange(CELLS_PER_STEP) / CELLS_PER_STEP
    cubics = (
        -t * (t - 1) * (t - 2) / 6,
        (t + 1) * (t - 1) * (t - 2) / 2,
        -(t + 1) * t * (t - 2) / 2,
        (t + 1) * t * (t - 1) / 6,
    )
    last = nodes.shape[1] - 3
    log_p = np.zeros((len(nodes), last, CELLS_PER_STEP))
    for k, cubic in enumerate(cubics):
        log_p += nodes[:, k : last + k, None] * cubic
    cells = np.where(log_p < -LOG_FALL, 0.0, np.exp(log_p)).reshape(len(nodes), -1)
    upto = np.cumsum(cells, axis=1)
    row = np.arange(len(nodes))
    out = np.empty_like(chance)
    for draw in range(chance.shape[1]):
        target = np.minimum(chance[:, draw] * upto[:, -1], np.nextafter(upto[:, -1], 0))
        cell = np.count_nonzero(upto <= target[:, None], axis=1)
        left = upto[row, cell] - target  # of the cell, which is centered at its point
        out[:, draw] = (first * CELLS_PER_STEP + cell + (0.5 - left / cells[row, cell])) / CELLS_PER_STEP
    return out


def latent_regression(
    responses: Responses, beta: Floats, x: Floats, weights: Floats | None = None
) -> tuple[Floats, float]:
    """Every person's mean, linear in `x` (people x variables), and the sd around it, by marginal maximum likelihood;
    people count by their weights."""
    answered = np.asarray(responses.counts) > 0
    counts = chosen_or_none(weights, answered)
    root = np.ones(int(answered.sum())) if counts is None else np.sqrt(counts)
    least_squares = np.linalg.pinv(root[:, None] * x[answered]) * root

    def em_step(slopes_and_log_sd: Floats) -> Floats | None:
        if not answered.any():
            return None
        mean = x @ slopes_and_log_sd[:-1]
        sd = float(np.exp(slopes_and_log_sd[-1]))
        ability, error = responses.entries.gather(_moments, beta, responses.thresholds, sd, persons=(mean,))
        ability = ability[answered]
        slopes = least_squares @ ability
        squares = error[answered] ** 2 + (ability - x[answered] @ slopes) ** 2
        return np.append(slopes, np.log(np.average(squares, weights=counts)) / 2)

    fixed_point = settle(em_step, np.zeros(x.shape[1] + 1))
    return x @ fixed_point[:-1], float(np.exp(fixed_point[-1]))


def _moments(block: Block, mean: Floats, beta: Floats, layout: Thresholds, sd: float) -> tuple[Floats, Floats]:
    ability = mean.copy()
    error = np.full(block.n_persons, sd)
    for persons, run in cached_runs(known_rows(block, beta, layout), layout, beta):
        ability[persons], error[persons] = posterior_moments(run, mean[persons], sd)
    return ability, error


def background(given: Any, n: int) -> Floats:
    """What is known of the people, people x variables: a one, numbers in units of their sd, labels as 0 and 1."""
    columns = [np.ones((n, 1))]
    if not isinstance(given, Mapping):
        given = {"given": given}
    for name, variable in given.items():
        values = np.asarray(variable)
        if len(values) != n:
            raise OptionError(f"{name!r} has {len(values):,} entries; there must be one for each of the {n:,} people.")
        if np.issubdtype(values.dtype, np.number) or values.dtype == bool:
            numbers = values.reshape(n, -1).astype(np.float64)
            if not np.isfinite(numbers).all():
                raise OptionError(f"{name!r} has missing or infinite numbers; give one for each person, or labels.")
            spread = numbers.std(axis=0)
            columns.append((numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1))
        else:
            labels, which = np.unique(np.array([str(value) for value in values.tolist()]), return_inverse=True)
            columns.append((which[:, None] == np.arange(1, len(labels))).astype(np.float64))
    return np.concatenate(columns, axis=1)
