"""Which items are the hardest (or, of ratings, the best liked), and how sure that order is.

The items that come first by their estimates are not as far out as they seem (the winner's curse); by how much depends
on how difficulties are spread. That is learned: a mixture of narrow normals on a grid, by a few steps of EM from the
normal that fits best (Laird & Louis 1991; Shen & Louis 1999). The spread is smooth: items that come in groups of nearly
equal ones are taken for farther apart than they are.

What the answers say of an item of difficulty b, without the prior, is the likelihood exp(pull b - precision b^2 / 2).
`study.ranking` calls `ranking_columns`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.chain.prior import share_of_prior
from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import OptionError, check_option
from spectral_irt.estimators.base import KEEP_COVARIANCE
from spectral_irt.inference.ranks.intervals import LEAST_SE, square_root, standard_draws
from spectral_irt.numerics import generator
from spectral_irt.tables import Columns

ORDERS = ("difficulty", "lower")
TAIL = 0.025  # of the ranks, on either side of an interval
DENSE_ITEMS = KEEP_COVARIANCE  # items up to which the covariance of all is used
DRAWS = 4000  # probabilities are then right to 0.008 (one standard deviation) or better
LEAST_DRAWS = 200  # where items are very many: each end of an interval still has five draws beyond it
RANKED = 20_000_000  # random numbers drawn, and sorted, in all: a few seconds
CELLS = 20_000_000  # random numbers held at a time
EM_STEPS = 10  # of EM; few keep the spread smooth
NORMAL_STEPS = 200  # for the mean and variance of the normal that is the start
NARROW = 0.5  # width of the narrow normals: this times sd times items^-0.2, half of the usual rule for densities
GRID_STEP = 0.5  # of that width
LEAST_SPREAD = 1e-3  # logits; items closer than this are equally hard for every purpose
LEAST_SHARE = 1e-3  # of an item's precision that is its answers' at least, where a prior says the rest
# Places considered for an item: so many standard deviations either side, and so far apart.
REACH = 8.0
STEP = 0.1
PLACES = np.arange(-REACH, REACH + STEP / 2, STEP)
SMALLEST_TAIL = 1e-300  # of the distribution function of an item below
LARGEST_BELOW = 1 - 1e-16  # the last number before 1
CHUNK = 5_000  # items looked at together
LEARNED_FROM = 20_000  # items from which the spread is learned; of more, so many from the easiest to the hardest


def ranking_columns(
    calibration: Calibration, covariance: Floats | None, by: str = "difficulty", top: int = 10, *, seed: int = 0
) -> Columns:
    """The items from the hardest (best liked, for ratings coded liked = 0) down, and how sure that order is.

    `rank, item, difficulty, se, lower, rank_low, rank_high, p_top, n, status`. `rank` counts rows, by the estimate,
    which finds more of the items that are truly the hardest, or by the lower end of the 95% interval, difficulty - 1.96
    se, for recommending: an item that few answered must be better by more than chance to come first. `rank_low` to
    `rank_high` is a 95% interval of the rank that the item has by its true difficulty (1 = hardest): right for 95% of
    the items. `p_top` is the probability that the item is among the `top` hardest. None of them depends on `by`. Items
    without an estimate come last, with no probability and the interval that says nothing.

    `rank_low`, `rank_high` and `p_top` come from draws of the difficulties given the estimates. How difficulties are
    spread over the items is learned from the items (`likely`), so that of the items with `p_top` near 0.8 about 80% are
    in the top, be the difficulties normal or not. Without a `covariance` (up to 2,000 items where the fit kept it)
    errors of different items are taken as independent, which they nearly are where items are many and well mixed, and
    are not where groups of items are linked by few people.
    """
    check_option("by", by, ORDERS)
    if isinstance(top, bool) or top != int(top) or top < 1:
        raise OptionError(f"`top` is {top!r}; it must be a whole number, 1 or more.")
    difficulty = calibration.difficulty
    lower = difficulty - calibration.ci_width * calibration.se
    if by == "lower" and not np.isfinite(lower).any():
        raise OptionError(
            "there are no standard errors, so no lower ends; rank by difficulty, or fit with standard errors."
        )
    columns: Columns = {"item": calibration.labels, "difficulty": difficulty, "se": calibration.se, "lower": lower}
    columns |= item_ranks(calibration, covariance, top, seed=seed)
    columns |= {"n": calibration.n, "status": calibration.status}
    order = _order(calibration, lower if by == "lower" else difficulty)
    rows: Columns = {"rank": np.arange(1, len(order) + 1)}
    for name, column in columns.items():
        rows[name] = column[order]
    return rows


def _order(calibration: Calibration, values: Floats) -> Ints:
    """The items from the highest value down. NaN goes last: items with an estimate and no standard error, those with
    answers and no estimate, the unanswered."""

    def from_hardest(numbers: Floats) -> Floats:
        return -np.where(np.isfinite(numbers), numbers, -np.inf)

    position = np.arange(calibration.n_items)
    return np.lexsort((position, calibration.n == 0, from_hardest(calibration.difficulty), from_hardest(values)))


def item_ranks(calibration: Calibration, covariance: Floats | None, top: int = 10, *, seed: int = 0) -> Columns:
    """`rank_low, rank_high, p_top` of `ranking_columns`, in the order of the calibration's items."""
    n_items = calibration.n_items
    rank_low = np.ones(n_items, dtype=np.int64)
    rank_high = np.full(n_items, n_items, dtype=np.int64)
    p_top = np.full(n_items, np.nan)
    has_error = np.isfinite(calibration.difficulty - calibration.se)
    if has_error.any():
        ranks = drawn_ranks(
            likely(calibration),
            covariance=covariance_among(covariance, has_error),
            df=calibration.provenance.se_df,
            rng=generator(seed),
        )
        p_top[has_error] = np.mean(ranks <= top, axis=0)
        rank_low[has_error], rank_high[has_error] = middle(ranks)
    return {"rank_low": rank_low, "rank_high": rank_high, "p_top": p_top}


def covariance_among(covariance: Floats | None, items: NDArray[np.bool_]) -> Floats | None:
    """The covariance of some items; None where it is not known of all of them."""
    if covariance is None:
        return None
    among = covariance[np.ix_(items, items)]
    if not np.all(np.isfinite(among)):
        return None
    return among + np.diag(np.where(np.diag(among) < LEAST_SE**2, LEAST_SE**2, 0.0))


def drawn_ranks(
    items: Likely, *, covariance: Floats | None = None, df: float = np.inf, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Ranks (1 = largest; draws x items) in draws of the difficulties; those of items that err together go together."""
    n_items = len(items.center)
    n_draws = int(np.clip(RANKED // n_items, LEAST_DRAWS, DRAWS))
    step = max(1, CELLS // n_items)
    root = None
    if covariance is not None:
        se = np.sqrt(np.diag(covariance))
        root = square_root(covariance / np.outer(se, se))
    ranks = np.empty((n_draws, n_items), dtype=np.int32)
    rising = np.arange(1, n_items + 1, dtype=np.int32)
    for start in range(0, n_draws, step):
        z = standard_draws(rng, (min(step, n_draws - start), n_items), df)
        if root is not None:
            z = z @ root.T
        difficulty = items.draws(z)
        for row, falling in enumerate(np.negative(difficulty, out=difficulty), start=start):
            ranks[row, np.argsort(falling)] = rising
    return ranks


def middle(ranks: NDArray[np.int32]) -> tuple[Ints, Ints]:
    """The middle 95% of the ranks that each item has."""
    last = len(ranks) - 1
    ends = [int(np.floor(last * TAIL)), int(np.ceil(last * (1 - TAIL)))]
    low, high = np.partition(ranks, ends, axis=0)[ends].astype(np.int64)
    return low, high


@dataclass(frozen=True, eq=False)
class Likely:
    """Where each item is likely to be: center and sd were the spread normal; and, items x places, the standard normal
    quantile of the item's distribution function at center + sd * place."""

    center: Floats
    sd: Floats
    quantile: Floats

    def draws(self, z: Floats) -> Floats:
        """Difficulties (draws x items) for standard normal numbers, which may be correlated between items."""
        difficulty = np.empty_like(z)
        for item in range(z.shape[1]):
            difficulty[:, item] = np.interp(z[:, item], self.quantile[item], PLACES)
        difficulty *= self.sd
        difficulty += self.center
        return difficulty


def likely(calibration: Calibration) -> Likely:
    """The distribution of each item with a standard error, given its estimate and the spread of all.

    A difficulty with standard error s that a prior N(mean, 1 / alpha) was part of has the precision 1 / s^2 - alpha
    from its answers. The level that an item was drawn to is taken for the mean of all: right where items were met at
    random, and where forms differ in difficulty too little is taken away.
    """
    has_error = np.isfinite(calibration.difficulty - calibration.se)
    total = 1 / np.maximum(calibration.se, LEAST_SE) ** 2
    prior = calibration.prior
    prior_precision: float | Floats = 0.0
    prior_mean = 0.0
    if prior is not None:
        prior_precision = prior.alpha
        prior_mean = prior.mean
        if prior.kind == "neighbors" and prior.estimated:
            fades = share_of_prior(calibration.item_information, calibration.known, prior.alpha)
            prior_precision = prior_precision * fades
    precision = np.maximum(total - prior_precision, LEAST_SHARE * total)
    pull = calibration.difficulty * total - (total - precision) * prior_mean
    return likely_places(precision[has_error], pull[has_error])


def likely_places(precision: Floats, pull: Floats) -> Likely:
    """`likely` for likelihoods exp(pull b - precision b^2 / 2)."""
    from scipy.special import ndtri

    mean, variance = _best_normal(precision, pull)
    learned_from: slice | Ints = slice(None)
    every = -(-len(pull) // LEARNED_FROM)
    if every > 1:
        learned_from = np.argsort(pull / precision, kind="stable")[every // 2 :: every]
    grid, log_spread = _spread(precision[learned_from], pull[learned_from], mean, variance)
    center = (pull + mean / variance) / (precision + 1 / variance)
    sd = 1 / np.sqrt(precision + 1 / variance)
    quantile = np.empty((len(center), len(PLACES)))
    for start in range(0, len(center), CHUNK):
        rows = slice(start, start + CHUNK)
        b = center[rows, None] + sd[rows, None] * PLACES
        log_ratio = np.interp(b, grid, log_spread) + (b - mean) ** 2 / (2 * variance)  # of the spread to the normal
        log_density = log_ratio - PLACES**2 / 2
        mass = np.exp(log_density - log_density.max(axis=1, keepdims=True))
        below = (np.cumsum(mass, axis=1) - mass / 2) / mass.sum(axis=1, keepdims=True)
        quantile[rows] = ndtri(np.clip(below, SMALLEST_TAIL, LARGEST_BELOW))
    return Likely(center, sd, quantile)


def _best_normal(precision: Floats, pull: Floats) -> tuple[float, float]:
    """Mean and variance of the normal spread that makes the answers likeliest, by EM."""
    estimate = pull / (precision + np.median(precision))
    mean = float(estimate.mean())
    variance = float(estimate.var()) + LEAST_SPREAD**2
    for _ in range(NORMAL_STEPS):
        posterior_variance = 1 / (precision + 1 / variance)
        center = posterior_variance * (pull + mean / variance)
        mean = float(center.mean())
        variance = max(float(np.mean(posterior_variance + (center - mean) ** 2)), LEAST_SPREAD**2)
    return mean, variance


def _spread(precision: Floats, pull: Floats, mean: float, variance: float) -> tuple[Floats, Floats]:
    """The logarithm of the density of difficulties on a grid."""
    sd = np.sqrt(variance)
    width = NARROW * sd * len(precision) ** -0.2
    center = (pull + mean / variance) / (precision + 1 / variance)
    low = min(center.min(), mean - 4 * sd) - sd
    high = max(center.max(), mean + 4 * sd) + sd
    grid = np.linspace(low, high, int(np.ceil((high - low) / (GRID_STEP * width))) + 1)
    share = np.exp(-((grid - mean) ** 2) / (2 * (variance - width**2)))
    share /= share.sum()
    # An item from a narrow normal at b0: the likelihood of its answers with b integrated out.
    widening = 1 + precision * width**2
    likelihoods = []
    for start in range(0, len(precision), CHUNK):
        rows = slice(start, start + CHUNK)
        log_likelihood = (pull[rows, None] * grid - precision[rows, None] * grid**2 / 2) / widening[rows, None]
        likelihoods.append(np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True)))
    for _ in range(EM_STEPS):
        posterior = sum(likelihood.T @ (1 / (likelihood @ share)) for likelihood in likelihoods)
        share = share * posterior / len(precision)
    kernel = np.exp(-((grid[:, None] - grid) ** 2) / (2 * width**2))
    return grid, np.log(kernel @ share + np.finfo(float).tiny)
