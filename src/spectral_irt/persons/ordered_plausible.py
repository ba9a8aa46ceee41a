"""Plausible values of people whose answers are in ordered categories; see `plausible`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spectral_irt.errors import OptionError
from spectral_irt.ordered_ability import NODES, SPAN, fit_population, log_likelihoods
from spectral_irt.persons.ordered_people import OrderedPeople
from spectral_irt.persons.plausible import (
    BOTH,
    STEP,
    PlausibleValues,
    Seed,
    background,
    chances,
    check_draws,
    drawn,
    regression,
    without_answers,
)
from spectral_irt.persons.posterior import WIDEST
from spectral_irt.responses.block import Floats, Ints
from spectral_irt.responses.ordered import Rows, Steps

PEOPLE = 20_000  # at a time: people x nodes are some ten megabytes


def ordered_plausible_values(
    people: OrderedPeople,
    *,
    draws: int = 5,
    seed: Seed = 0,
    prior: tuple[float, float] | None = None,
    given: Any = None,
) -> PlausibleValues:
    """Abilities drawn from each person's posterior under a normal population; the parameters are those of
    `plausible.plausible_values`."""
    check_draws(draws)
    patterns = people.patterns
    rows, of = patterns.rows, patterns.of_person
    if given is None:
        mean, sd = prior or fit_population(rows, people.steps, people.thresholds, patterns.count.astype(float))
        means = np.full(len(of), mean)
    elif prior is not None:
        raise OptionError(BOTH)
    else:
        known = background(given, len(of))
        means, sd = regression(lambda mean, sd: moments(people, mean, sd), rows.counts[of] > 0, known)
    chance = chances(len(of), draws, seed)
    values = without_answers(means, sd, chance)
    ability, error = moments(people, means, sd)
    for start in range(0, len(of), PEOPLE):
        some = np.arange(start, min(start + PEOPLE, len(of)))
        some = some[rows.counts[of[some]] > 0]
        if len(some):
            density = _log_posterior(rows.take(of[some]), people.steps, people.thresholds, means[some], sd)
            width = np.minimum(STEP * error[some], WIDEST)
            values[some] = drawn(density, _modes(density, ability[some], error[some]), width, chance[some])
    return PlausibleValues(values, means, sd, seed)


def moments(people: OrderedPeople, mean: Floats, sd: float) -> tuple[Floats, Floats]:
    """Posterior mean and standard deviation of everybody, whose populations have these means."""
    low, high = float(mean.min(initial=0.0)) - SPAN * sd, float(mean.max(initial=0.0)) + SPAN * sd
    nodes = np.linspace(low, high, int(np.ceil((high - low) / (2 * SPAN * sd) * (NODES - 1))) + 1)
    log = log_likelihoods(people.patterns.rows, people.steps, people.thresholds, nodes)
    of, ability, error = people.patterns.of_person, np.empty(len(mean)), np.empty(len(mean))
    for start in range(0, len(of), PEOPLE):
        part = slice(start, start + PEOPLE)
        weight = log[of[part]] - ((nodes - mean[part, None]) / sd) ** 2 / 2
        weight = np.exp(weight - weight.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        ability[part] = weight @ nodes
        error[part] = np.sqrt(np.maximum(weight @ nodes**2 - ability[part] ** 2, 0))
    return ability, error


def _log_posterior(rows: Rows, steps: Steps, thresholds: Floats, mean: Floats, sd: float) -> Callable[[Floats], Floats]:
    """Logarithm of the posterior density of each row, but for a constant, as a function of abilities."""
    cumulated = steps.cumulated(thresholds)
    categories = np.arange(cumulated.shape[1], dtype=float)
    who: Ints = np.repeat(np.arange(len(rows.counts)), rows.counts)

    def log_density(theta: Floats) -> Floats:
        x = theta[who][:, None] * categories - cumulated[rows.items]
        top = x.max(axis=1)
        away = rows.sums(top + np.log(np.exp(x - top[:, None]).sum(axis=1)))
        return rows.scores * theta - away - ((theta - mean) / sd) ** 2 / 2

    return log_density


def _modes(log_density: Callable[[Floats], Floats], start: Floats, width: Floats) -> Floats:
    """Close to where the densities are highest: the best of some points around the means."""
    points = np.array([start + k * width / 4 for k in range(-4, 5)])
    best = np.argmax([log_density(at) for at in points], axis=0)
    return points[best, np.arange(len(start))]
