"""How much each user counts in the chain.

Any weight `h_ij^l` that is symmetric in the items i, j, and depends on user l only through the items answered and the
number right, gives an unbiased chain (docs/explanation/estimator.md). Three are offered:

- "pairs":   h = 1, the paper's. A user with n answers makes up to n^2 / 4 comparisons, so long users drown the others.
- "users":   h = 1 / n_l. Fully efficient when items are equally hard.
- "ability": h = (t_l / V_l) a_li a_lj with a_li = 1 / (t_l + pi_i), t_l = exp(theta_l), V_l = sum_i p_li (1 - p_li).
  Nearly as accurate as conditional maximum likelihood, and still a product, so one pass stays one pass.
"""

from __future__ import annotations

import numpy as np

from spectral_irt.responses.block import Block, Floats

WEIGHTINGS = ("ability", "users", "pairs")

# PROX (Cohen 1979): a logistic distribution is close to a normal one with this variance, 1.7^2.
LOGISTIC_VARIANCE = 2.89


def count_weights(block: Block, weighting: str) -> Floats:
    """w_l for "pairs" (1) and "users" (1 / n_l); 0 for users who say nothing about difficulty."""
    counts = block.counts
    weights = np.ones(block.n_users) if weighting == "pairs" else 1 / np.maximum(counts, 1)
    weights[~block.informative] = 0
    return weights


def prox_ability(block: Block, beta: Floats) -> Floats:
    """Closed-form abilities: theta_l = mean(beta) + sqrt(1 + var(beta) / 2.89) logit(s_l / n_l) over the user's items.

    A function of the items answered and the score alone, which is all that the weights ask for. 0 for users who say
    nothing about difficulty (their ability is not needed).
    """
    right, wrong = block.halves(len(beta))
    table = np.stack([beta, beta**2], axis=1)
    moments = (right @ table + wrong @ table) / np.maximum(block.counts, 1)[:, None]
    variance = np.maximum(moments[:, 1] - moments[:, 0] ** 2, 0)
    ok = block.informative
    odds = np.divide(block.scores, block.counts - block.scores, out=np.ones(block.n_users), where=ok)
    theta = moments[:, 0] + np.sqrt(1 + variance / LOGISTIC_VARIANCE) * np.log(odds)
    return np.where(ok, theta, 0.0)


def ability_factors(block: Block, beta: Floats) -> tuple[Floats, Floats, Floats]:
    """w_l = t_l / V_l of every user, and a_li of every right and of every wrong answer (in the order of `halves`)."""
    right, wrong = block.halves(len(beta))
    pi, t = np.exp(beta), np.exp(prox_ability(block, beta))
    information = np.zeros(block.n_users)
    factors = []
    for half in (right, wrong):
        user_t = np.repeat(t, np.diff(half.indptr))
        a = pi[half.indices]
        a += user_t
        np.reciprocal(a, out=a)
        # sum of p (1 - p) = t a - (t a)^2 over the user's answers
        p = np.multiply(user_t, a, out=user_t)
        p -= p * p
        information += np.bincount(np.repeat(np.arange(block.n_users), np.diff(half.indptr)), p, block.n_users)
        factors.append(a)
    ok = block.informative
    weights = np.divide(t, information, out=np.zeros(block.n_users), where=ok)
    return weights, factors[0], factors[1]
