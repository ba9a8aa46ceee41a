"""Mean and standard deviation of the ability of every person under a normal prior, and the prior that fits them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spectral_irt.ability import log_likelihood, solve
from spectral_irt.data.block import Floats
from spectral_irt.data.thresholds import Rows, Thresholds
from spectral_irt.numerics import Anderson

# Trapezoidal rule in steps of 0.8 standard deviations at the mode: exact to 2 exp(-2 pi^2 / 0.8^2) = 1e-13 for a normal
# posterior. Under a wide prior a step is at most 0.6 logits: the logistic function itself has poles pi from the real
# line, and an answer in categories 0 to K has them at least pi / K from it. The rule goes on until the density has
# fallen by exp(-32), so that skewed posteriors are covered too.
STEP, WIDEST, FALL = 0.8, 0.6, 32.0
MOST_NODES = 2000  # each way, a bound that no posterior needs

NARROWEST = 0.01  # standard deviation of a population in which abilities do not differ
CHANGE = 1e-6  # in the prior's mean and log sd, at which to stop


def posterior_moments(
    rows: Rows, layout: Thresholds, beta: Floats, mean: float | Floats, sd: float
) -> tuple[Floats, Floats]:
    """Posterior mean and standard deviation of these people's abilities under a normal prior.

    `mean` may have a number for each of them.
    """
    mode, width = mode_and_step(rows, layout, beta, mean, sd, STEP)
    log_density = log_posterior(rows, layout, beta, mean, sd)
    top = log_density(mode)
    mass, first, second = np.ones(len(mode)), np.zeros(len(mode)), np.zeros(len(mode))
    for side in (-1, 1):
        for k in range(1, MOST_NODES):
            height = log_density(mode + side * k * width) - top
            # Nothing beyond the fall: a person's numbers do not depend on how far the nodes go on account of others.
            weight = np.where(height < -FALL, 0, np.exp(np.minimum(height, 0)))
            mass += weight
            first += side * k * weight
            second += k**2 * weight
            if np.all(height < -FALL):
                break
    first, second = first / mass, second / mass
    return mode + width * first, width * np.sqrt(np.maximum(second - first**2, 0))


def mode_and_step(
    rows: Rows, layout: Thresholds, beta: Floats, mean: float | Floats, sd: float, step: float
) -> tuple[Floats, Floats]:
    """Where each posterior is highest, and a step for looking at it that is `step` of its standard deviation there."""
    mode, information = solve(rows, layout, beta, mean=mean, precision=sd**-2)
    return mode, np.minimum(step / np.sqrt(information + sd**-2), WIDEST / layout.widest)


def log_posterior(
    rows: Rows, layout: Thresholds, beta: Floats, mean: float | Floats, sd: float
) -> Callable[[Floats], Floats]:
    """Logarithm of the posterior density of each person's ability, but for a constant, as a function of abilities."""
    likelihood = log_likelihood(rows, layout, beta)
    return lambda theta: likelihood(theta) - ((theta - mean) / sd) ** 2 / 2


def fit_prior(
    moments: Callable[[float, float], tuple[Floats, Floats]], mean: float | None, sd: float | None
) -> tuple[float, float]:
    """The normal population under which the answers are most likely, by EM with Anderson's acceleration.

    `moments(mean, sd)` gives the posterior mean and standard deviation of every person with answers. A mean or standard
    deviation that is given stays as it is.
    """
    if mean is not None and sd is not None:
        return mean, sd

    def image(here: Floats) -> Floats | None:
        ability, error = moments(float(here[0]), float(np.exp(here[1])))
        if not len(ability):
            return None
        there = here.copy()
        if mean is None:
            there[0] = ability.mean()
        if sd is None:
            there[1] = log_spread(ability - there[0], error)
        return there

    here = settle(image, np.array([0.0 if mean is None else mean, np.log(1.0 if sd is None else sd)]))
    return float(here[0]), float(np.exp(here[1]))


def log_spread(away: Floats, error: Floats) -> float:
    """EM's step: the logarithm of the population's sd, from posterior means (less their expectation) and sds."""
    return max(float(np.log(np.mean(error**2 + away**2))) / 2, float(np.log(NARROWEST)))


def settle(image: Callable[[Floats], Floats | None], here: Floats) -> Floats:
    """Where EM's step `image` leaves a population as it is, by Anderson's acceleration; its last entry is log sd."""
    speed = Anderson(window=3)
    for _ in range(200):
        there = image(here)
        if there is None:  # nobody answered anything
            return here
        if np.max(np.abs(there - here)) < CHANGE:
            return there
        bold = speed.next(here, there)
        if np.max(np.abs(bold - there)) > 1:  # too bold: start again from the plain step
            speed.forget()
            bold = there
        bold[-1] = max(bold[-1], np.log(NARROWEST))
        here = bold
    return here
