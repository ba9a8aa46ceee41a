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
from scipy import sparse

from spectral_irt.errors import check_option
from spectral_irt.model import prox
from spectral_irt.responses.block import Block, Floats, fill_scaled
from spectral_irt.responses.pack import CACHED, user_chunks

WEIGHTINGS = ("ability", "users", "pairs")


def count_weights(block: Block, weighting: str) -> Floats:
    """w_l for "pairs" (1) and "users" (1 / n_l); 0 for users who say nothing about difficulty."""
    check_option("weighting", weighting, ("users", "pairs"))
    weights = np.ones(block.n_users) if weighting == "pairs" else 1 / np.maximum(block.counts, 1)
    weights[~block.informative] = 0
    return weights


def prox_ability(block: Block, beta: Floats) -> Floats:
    """Closed-form abilities: theta_l = mean(beta) + sqrt(1 + var(beta) / 2.89) logit(s_l / n_l) over the user's items.

    A function of the items answered and the score alone, which is all that the weights ask for. 0 for users who say
    nothing about difficulty (their ability is not needed).
    """
    right, wrong = block.halves(len(beta))
    counts = np.maximum(block.counts, 1)
    mean, square = ((right @ values + wrong @ values) / counts for values in (beta, beta**2))
    variance = np.maximum(square - mean**2, 0)
    ok = block.informative
    odds = np.divide(block.scores, block.counts - block.scores, out=np.ones(block.n_users), where=ok)
    theta = prox(mean, variance, np.log(odds))
    return np.where(ok, theta, 0.0)


def ability_factors(block: Block, beta: Floats, right: Floats, wrong: Floats) -> Floats:
    """w_l of every user; p_li of every right and of every wrong answer go into the two arrays (ordered as `halves`).

    a_li = p_li / t_l, so h_ij = w_l p_li p_lj with w_l = 1 / (t_l V_l).
    """
    pi, t = np.exp(beta), np.exp(prox_ability(block, beta))
    information = np.zeros(block.n_users)
    for half, p in zip(block.halves(len(beta)), (right, wrong), strict=True):
        information += _fill_probabilities(half, 1 / t, pi, p)
    return np.divide(1, t * information, out=np.zeros(block.n_users), where=block.informative)


def _fill_probabilities(half: sparse.csr_array, inverse_t: Floats, pi: Floats, p: Floats) -> Floats:
    """Write p = 1 / (1 + pi / t) for every answer; return sum of p (1 - p) over each user's.

    Memory costs more than arithmetic here: a few thousand answers at a time go through all steps while in the cache.
    """
    sums = np.zeros(half.shape[0])
    for start, stop in user_chunks(half.indptr, CACHED):
        indptr = half.indptr[start : stop + 1]
        low, high = indptr[0], indptr[-1]
        rows = np.flatnonzero(np.diff(indptr))
        if not len(rows):
            continue
        piece = p[low:high]
        fill_scaled(indptr - low, half.indices[low:high], inverse_t[start:stop], pi, piece)
        piece += 1
        np.reciprocal(piece, out=piece)
        sums[start + rows] = np.add.reduceat(piece * (1 - piece), indptr[rows] - low)
    return sums
