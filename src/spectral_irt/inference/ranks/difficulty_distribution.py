"""How difficulties are spread over the items, learned from the items, and where each item then is likely to be.

The items that come first by their estimates are not as far out as they seem (the winner's curse); by how much depends
on how difficulties are spread. A normal spread is right for some tests and wrong for others: where the hardest items
crowd together it makes an item's place among the top too sure, where they have a long tail too unsure. So the spread is
learned: a mixture of narrow normals on a grid, by a few steps of EM from the normal that fits best. That spread is
smooth: items that come in groups of nearly equal ones are taken for farther apart than they are.

References
----------
Laird & Louis (1991), Smoothing the nonparametric maximum likelihood estimate of a mixing distribution by EM.
Shen & Louis (1999), Empirical Bayes estimation via the smoothing by roughening approach.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.chain.regularization import fading
from spectral_irt.data.block import Floats

STEPS = 10  # of EM; few keep the spread smooth
NORMAL_STEPS = 200  # for the mean and variance of the normal that is the start
NARROW = 0.5  # width of the narrow normals: this times sd times items^-0.2, half of the usual rule for densities
GRID_STEP = 0.5  # of that width
LEAST_SPREAD = 1e-3  # logits; items closer than this are equally hard for every purpose
LEAST_SE = 1e-6  # logits; anchored items do not err at all, and this keeps the arithmetic finite
LEAST_SHARE = 1e-3  # of an item's precision that is its answers' at least, where a prior says the rest
REACH, STEP = 8.0, 0.1  # places considered for an item: standard deviations either side, and how far apart
CHUNK = 5_000  # items looked at together
LEARNED_FROM = 20_000  # items from which the spread is learned; of more, so many from the easiest to the hardest


@dataclass(frozen=True, eq=False)
class Likely:
    """Where each item is likely to be.

    Attributes
    ----------
    center, sd : float arrays
        Of each item, were the spread normal.
    score : items x places
        Standard normal quantile of the item's distribution function at center + sd * place.
    """

    center: Floats
    sd: Floats
    score: Floats

    def draws(self, z: Floats) -> Floats:
        """Difficulties (draws x items) for standard normal numbers, which may be correlated between items."""
        places = _places()
        out = np.empty_like(z)
        for i in range(z.shape[1]):
            out[:, i] = np.interp(z[:, i], self.score[i], places)
        out *= self.sd
        out += self.center
        return out


def likely(calibration: Calibration) -> Likely:
    """The distribution of each item with a standard error, given its estimate and the spread of all."""
    known = np.isfinite(calibration.difficulty - calibration.se)
    precision, pull = data_alone(calibration)
    return likely_places(precision[known], pull[known])


def data_alone(calibration: Calibration) -> tuple[Floats, Floats]:
    """What the answers say of each item without the prior: its likelihood exp(pull b - precision b^2 / 2).

    A difficulty with standard error s that a prior N(mean, 1 / alpha) was part of has the precision 1 / s^2 - alpha
    from its answers. The level that an item was drawn to is taken for the mean of all: right where items were met at
    random, and where forms differ in difficulty too little is taken away.
    """
    total = 1 / np.maximum(calibration.se, LEAST_SE) ** 2
    prior = calibration.prior
    alpha: float | Floats
    alpha, mean = (0.0, 0.0) if prior is None else (prior.alpha, prior.mean)
    if prior is not None and prior.kind == "neighbors" and prior.estimated:
        alpha = alpha * fading(calibration.item_information, calibration.known, prior.alpha)
    precision = np.maximum(total - alpha, LEAST_SHARE * total)
    return precision, calibration.difficulty * total - (total - precision) * mean


def likely_places(precision: Floats, pull: Floats) -> Likely:
    """`likely` for likelihoods exp(pull b - precision b^2 / 2)."""
    from scipy.special import ndtri

    mean, variance = _best_normal(precision, pull)
    every = -(-len(pull) // LEARNED_FROM)
    some = slice(None) if every == 1 else np.argsort(pull / precision, kind="stable")[every // 2 :: every]
    grid, log_spread = _spread(precision[some], pull[some], mean, variance)
    center = (pull + mean / variance) / (precision + 1 / variance)
    sd = 1 / np.sqrt(precision + 1 / variance)
    places = _places()
    score = np.empty((len(center), len(places)))
    for start in range(0, len(center), CHUNK):
        rows = slice(start, start + CHUNK)
        at = center[rows, None] + sd[rows, None] * places
        log_ratio = np.interp(at, grid, log_spread) + (at - mean) ** 2 / (2 * variance)
        log_density = log_ratio - places**2 / 2
        mass = np.exp(log_density - log_density.max(axis=1, keepdims=True))
        below = np.cumsum(mass, axis=1) - mass / 2
        score[rows] = ndtri(np.clip(below / mass.sum(axis=1, keepdims=True), 1e-300, 1 - 1e-16))
    return Likely(center, sd, score)


def _places() -> Floats:
    return np.arange(-REACH, REACH + STEP / 2, STEP)


def _best_normal(precision: Floats, pull: Floats) -> tuple[float, float]:
    """Mean and variance of the normal spread that makes the answers likeliest, by EM."""
    estimate = pull / (precision + np.median(precision))
    mean, variance = float(estimate.mean()), float(estimate.var()) + LEAST_SPREAD**2
    for _ in range(NORMAL_STEPS):
        after = 1 / (precision + 1 / variance)
        center = after * (pull + mean / variance)
        mean = float(center.mean())
        variance = max(float(np.mean(after + (center - mean) ** 2)), LEAST_SPREAD**2)
    return mean, variance


def _spread(precision: Floats, pull: Floats, mean: float, variance: float) -> tuple[Floats, Floats]:
    """The logarithm of the density of difficulties on a grid."""
    sd = np.sqrt(variance)
    width = NARROW * sd * len(precision) ** -0.2
    center = (pull + mean / variance) / (precision + 1 / variance)
    low, high = min(center.min(), mean - 4 * sd) - sd, max(center.max(), mean + 4 * sd) + sd
    grid = np.linspace(low, high, int(np.ceil((high - low) / (GRID_STEP * width))) + 1)
    share = np.exp(-((grid - mean) ** 2) / (2 * (variance - width**2)))
    share /= share.sum()
    # An item from a narrow normal at b0: the likelihood of its answers with b integrated out.
    wide = 1 + precision * width**2
    parts = []
    for start in range(0, len(precision), CHUNK):
        rows = slice(start, start + CHUNK)
        log_part = (pull[rows, None] * grid - precision[rows, None] * grid**2 / 2) / wide[rows, None]
        parts.append(np.exp(log_part - log_part.max(axis=1, keepdims=True)))
    for _ in range(STEPS):
        share = share * sum(part.T @ (1 / (part @ share)) for part in parts) / len(precision)
    kernel = np.exp(-((grid[:, None] - grid) ** 2) / (2 * width**2))
    return grid, np.log(kernel @ share + np.finfo(float).tiny)
