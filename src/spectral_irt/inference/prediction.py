"""How well estimators predict people they have never seen, as the paper measures it; and several of them compared.

A new person's ability is unknown, so the probability of category k of item i is the average over a prior, p_ik = E
P(X_i = k | theta) with theta ~ N(mu, sigma^2). The prior is chosen among a few by the log-likelihood of validation
people; mean log-likelihood, and of right and wrong answers the area under the ROC curve, are taken on test people.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.errors import OptionError, SpectralIrtError
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.model import category_probabilities, sigmoid
from spectral_irt.numerics import generator

# The paper tries ten normal distributions and does not list them; its authors' program has means -2 to 2 and standard
# deviations 0.5, 1 and 1.5. These ten span the same range.
TEN_PRIORS = tuple((mu, sd) for mu in (-2.0, -1.0, 0.0, 1.0, 2.0) for sd in (0.5, 1.5))
NODES = 41  # of the Gauss-Hermite rule: the averaged probability is right to ten digits
CML = ("cml", "pcm-cml")  # what distances are taken from, where it is among the methods
VALIDATION = 0.1  # of the training people, to choose the prior of the predictions: the paper's share


class Holdout(NamedTuple):
    """What the test people say: the chance that a right answer had the larger predicted probability than a wrong one
    (ties count half; NaN of ordered answers), the mean log-likelihood of an answer, the prior (mu, sigma) that the
    validation people chose, and how many answers there are; those to items without a difficulty among them."""

    auc: float
    loglik: float
    prior: tuple[float, float]
    n_responses: int


def split_persons(responses: Responses, shares: Sequence[float], seed: int) -> tuple[Responses, ...]:
    """Random groups of people with these shares, which add to 1; the same seed gives the same groups."""
    if any(share < 0 for share in shares) or abs(sum(shares) - 1) > 1e-9:
        raise OptionError(f"shares {list(shares)} must be positive and add to 1.")
    order = generator(seed).permutation(responses.n_persons)
    limits = np.round(np.cumsum([0.0, *shares]) * len(order)).astype(int)
    return tuple(responses.take_persons(np.sort(order[a:b])) for a, b in itertools.pairwise(limits))


def marginal_categories(layout: Thresholds, beta: Floats, mu: float, sigma: float) -> Floats:
    """E P(X_i = k | theta) over theta ~ N(mu, sigma^2), items x categories; 0 where an item has fewer."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    theta, weights = mu + sigma * nodes, weights / weights.sum()
    if layout.binary:
        right = sigmoid(np.clip(theta[None, :] - beta[:, None], -700, 700)) @ weights
        return np.stack([1 - right, right], axis=1)
    rows = layout.cumulated(beta)
    return np.array([weights @ category_probabilities(theta, np.broadcast_to(row, (NODES, len(row)))) for row in rows])


def evaluate(
    thresholds: Floats, validation: Responses, test: Responses, priors: Sequence[tuple[float, float]] = TEN_PRIORS
) -> Holdout:
    """Choose the prior on the validation people, and measure on the test people.

    Thresholds without an estimate (nobody answered the item in training) are taken at 0, the average difficulty: a
    prediction is asked for all the same, and no better one is known.
    """
    layout, beta = test.thresholds, np.where(np.isfinite(thresholds), thresholds, 0.0)
    chosen = max(priors, key=lambda prior: _loglik(marginal_categories(layout, beta, *prior), validation))
    p = marginal_categories(layout, beta, *chosen)
    area = auc(p[:, 1], test.item_scores, test.item_counts - test.item_scores) if layout.binary else float("nan")
    return Holdout(area, _loglik(p, test), chosen, test.n_responses)


def _loglik(p: Floats, responses: Responses) -> float:
    counts = np.nan_to_num(responses.category_counts)
    total = float(counts.sum())
    return float((counts * np.log(np.maximum(p, np.finfo(float).tiny))).sum() / total) if total else float("nan")


def auc(score: Floats, right: Ints, wrong: Ints) -> float:
    """Area under the ROC curve when every response to item i is predicted by score[i]; ties count half."""
    # Items with equal shares of right answers are tied, whatever the last steps of an estimator left between them.
    levels, level = np.unique(np.round(score, 6), return_inverse=True)
    ones = np.bincount(level, right, len(levels))
    zeros = np.bincount(level, wrong, len(levels))
    if not ones.sum() or not zeros.sum():
        return float("nan")
    below = np.cumsum(zeros) - zeros
    return float(ones @ (below + zeros / 2) / (ones.sum() * zeros.sum()))


@dataclass(frozen=True)
class Comparison:
    """One estimator's row.

    `distance_to_cml` is the root mean square difference of thresholds (of right and wrong answers, of difficulties)
    over items that both have, NaN without a CML fit; `auc` is NaN of ordered answers; `problem` is empty, or says in
    one sentence why the method has no result.
    """

    method: str
    auc: float = float("nan")
    loglik: float = float("nan")
    prior_mean: float = float("nan")
    prior_sd: float = float("nan")
    distance_to_cml: float = float("nan")
    items_estimated: int = 0
    seconds: float = float("nan")
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare(
    responses: Responses,
    methods: Mapping[str, Callable[[], RaschEstimator]],
    *,
    holdout: float = 0.2,
    seed: int = 0,
    tell: Callable[[str], None] = lambda text: None,
) -> list[Comparison]:
    """Fit each method to the same training people and predict the same test people.

    People are divided at random: `holdout` for the test; of the others nine tenths to fit and one tenth to choose the
    prior of the predictions. A method that fails says why in its row; the others go on.
    """
    if not 0 < holdout < 1:
        raise OptionError(f"`holdout` is {holdout}; it must lie between 0 and 1.")
    train = 1 - holdout
    fit_on, validation, test = split_persons(responses, [train * (1 - VALIDATION), train * VALIDATION, holdout], seed)
    estimates: dict[str, NDArray[Any]] = {}

    def row(name: str, make: Callable[[], RaschEstimator]) -> Comparison:
        tell(name)
        # Blocks remember what they prepared; a fresh copy makes every method pay for its own preparation.
        data = fit_on.take_persons(np.arange(fit_on.n_persons))
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit = make().fit(data)
        except (SpectralIrtError, MemoryError, ArithmeticError, np.linalg.LinAlgError) as error:
            sentence = " ".join(str(error).split()) or type(error).__name__
            return Comparison(name, seconds=time.perf_counter() - start, problem=sentence)
        seconds = time.perf_counter() - start
        estimates[name] = fit.calibration_.thresholds
        found = evaluate(estimates[name], validation, test)
        items = int(np.isfinite(fit.calibration_.difficulty).sum())
        return Comparison(name, found.auc, found.loglik, *found.prior, items_estimated=items, seconds=seconds)

    rows = [row(name, make) for name, make in methods.items()]
    reference = next((estimates[name] for name in CML if name in estimates), None)
    if reference is None:
        return rows
    apart = {name: (one - reference)[np.isfinite(one - reference)] for name, one in estimates.items()}
    distance = {name: float(np.std(one)) if len(one) else float("nan") for name, one in apart.items()}
    return [replace(row, distance_to_cml=distance.get(row.method, row.distance_to_cml)) for row in rows]
