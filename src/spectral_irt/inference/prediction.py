"""How well estimators predict people they have never seen, as the paper measures it; and several of them compared.

A new person's ability is unknown, so the probability of category k of item i is the average over a prior, p_ik = E
P(X_i = k | theta) with theta ~ N(mu, sigma^2). The prior is chosen among a few by the log-likelihood of validation
people; mean log-likelihood, and of right and wrong answers the area under the ROC curve, are taken on test people. The
command `compare` shows it.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

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
DIGITS = 6  # of probabilities that count as different
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
    weights = weights / weights.sum()
    theta = mu + sigma * nodes
    if layout.binary:
        right = sigmoid(np.clip(theta[None, :] - beta[:, None], -700, 700)) @ weights
        return np.stack([1 - right, right], axis=1)
    p = [
        weights @ category_probabilities(theta, np.broadcast_to(of_item, (NODES, len(of_item))))
        for of_item in layout.cumulated(beta)
    ]
    return np.array(p)


def evaluate(
    thresholds: Floats, validation: Responses, test: Responses, priors: Sequence[tuple[float, float]] = TEN_PRIORS
) -> Holdout:
    """Choose the prior on the validation people, and measure on the test people.

    Thresholds without an estimate (nobody answered the item in training) are taken at 0, the average difficulty: a
    prediction is asked for all the same, and no better one is known.
    """
    layout = test.thresholds
    beta = np.where(np.isfinite(thresholds), thresholds, 0.0)
    prior = max(priors, key=lambda prior: _mean_loglik(marginal_categories(layout, beta, *prior), validation))
    p = marginal_categories(layout, beta, *prior)
    area = float("nan")
    if layout.binary:
        area = auc(p[:, 1], test.item_scores, test.item_counts - test.item_scores)
    return Holdout(area, _mean_loglik(p, test), prior, test.n_responses)


def _mean_loglik(p: Floats, responses: Responses) -> float:
    counts = np.nan_to_num(responses.category_counts)
    total = float(counts.sum())
    if not total:
        return float("nan")
    return float((counts * np.log(np.maximum(p, np.finfo(float).tiny))).sum() / total)


def auc(score: Floats, right: Ints, wrong: Ints) -> float:
    """Area under the ROC curve when every response to item i is predicted by score[i]; ties count half."""
    # Items with equal shares of right answers are tied, whatever the last steps of an estimator left between them.
    scores, place = np.unique(np.round(score, DIGITS), return_inverse=True)
    n_right = np.bincount(place, right, len(scores))
    n_wrong = np.bincount(place, wrong, len(scores))
    if not n_right.sum() or not n_wrong.sum():
        return float("nan")
    wrong_below = np.cumsum(n_wrong) - n_wrong
    return float(n_right @ (wrong_below + n_wrong / 2) / (n_right.sum() * n_wrong.sum()))


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
    shares = [train * (1 - VALIDATION), train * VALIDATION, holdout]
    training, validation, test = split_persons(responses, shares, seed)
    thresholds: dict[str, Floats] = {}
    rows = []
    for name, make in methods.items():
        tell(name)
        # Blocks remember what they prepared; a fresh copy makes every method pay for its own preparation.
        copy = training.take_persons(np.arange(training.n_persons))
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                calibration = make().fit(copy).calibration_
        except (SpectralIrtError, MemoryError, ArithmeticError, np.linalg.LinAlgError) as error:
            problem = " ".join(str(error).split()) or type(error).__name__
            rows.append(Comparison(name, seconds=time.perf_counter() - start, problem=problem))
            continue
        seconds = time.perf_counter() - start
        thresholds[name] = calibration.thresholds
        prediction = evaluate(calibration.thresholds, validation, test)
        rows.append(
            Comparison(
                method=name,
                auc=prediction.auc,
                loglik=prediction.loglik,
                prior_mean=prediction.prior[0],
                prior_sd=prediction.prior[1],
                items_estimated=int(np.isfinite(calibration.difficulty).sum()),
                seconds=seconds,
            )
        )
    distance = _distances_to_cml(thresholds)
    return [replace(row, distance_to_cml=distance.get(row.method, row.distance_to_cml)) for row in rows]


def _distances_to_cml(thresholds: Mapping[str, Floats]) -> dict[str, float]:
    """Root mean square difference of the thresholds that both have, a mean difference apart; none without CML."""
    reference = next((thresholds[name] for name in CML if name in thresholds), None)
    if reference is None:
        return {}
    distance = {}
    for name, values in thresholds.items():
        difference = values - reference
        difference = difference[np.isfinite(difference)]
        distance[name] = float(np.std(difference)) if len(difference) else float("nan")
    return distance
