"""How well thresholds predict people they have never seen: `holdout.py` for ordered answers.

The probability of category k of item i is the average over a prior, p_ik = E P(X_i = k | theta) with theta ~ N(mu,
sigma^2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spectral_irt.data.block import Floats
from spectral_irt.data.responses import Responses
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.inference.prediction import NODES, TEN_PRIORS, Holdout
from spectral_irt.model import category_probabilities


def evaluate_ordered(
    thresholds: Floats,
    validation: Responses,
    test: Responses,
    priors: Sequence[tuple[float, float]] = TEN_PRIORS,
) -> Holdout:
    """Choose the prior on the validation people, and measure the mean log-likelihood of an answer on the test people.

    Thresholds without an estimate are taken at 0, the average location. There is no area under a ROC curve.
    """
    beta, steps = np.where(np.isfinite(thresholds), thresholds, 0.0), test.thresholds
    chosen = max(priors, key=lambda prior: _loglik(marginal_categories(beta, steps, *prior), validation))
    p = marginal_categories(beta, steps, *chosen)
    return Holdout(float("nan"), _loglik(p, test), chosen, test.n_responses)


def marginal_categories(thresholds: Floats, steps: Thresholds, mu: float, sigma: float) -> Floats:
    """E P(X_i = k | theta), items x categories; 0 where an item has fewer."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    theta, weights = mu + sigma * nodes, weights / weights.sum()
    rows = steps.cumulated(thresholds)
    return np.array([weights @ category_probabilities(theta, np.broadcast_to(row, (NODES, len(row)))) for row in rows])


def _loglik(p: Floats, responses: Responses) -> float:
    counts = np.nan_to_num(responses.category_counts)
    total = float(counts.sum())
    if not total:
        return float("nan")
    return float((counts * np.log(np.maximum(p, np.finfo(float).tiny))).sum() / total)
