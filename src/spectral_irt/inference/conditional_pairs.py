"""What two items share given the score: a test of every pair of items without abilities.

Given the score, answers depend on the difficulties alone. With e = x - P(X = 1 | score) and C_ij the covariance of two
answers given the score,

    S_ij = sum over people who answered both of (e_i e_j - C_ij)

has mean 0 under the model, whatever the abilities are, and its variance is a sum over people as well. The covariance is
exact, and costs nothing: right on i and wrong on j is to wrong on i and right on j as eps_i = exp(-beta_i) is to eps_j,
for every person and every score, so that

    P(X_i = X_j = 1 | score) = (eps_i P_j - eps_j P_i) / (eps_i - eps_j),

which needs P alone and is linear in it: the sum over people is a matrix product. (For the variance, where C is a small
part, a C of rank one whose rows have the right sums is good enough.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.engines import Prepared
from spectral_irt.estimators.given_score import conditional_probabilities
from spectral_irt.responses import Block, Responses
from spectral_irt.responses.block import Floats, Ints

GAP = 1e-5  # logits between any two difficulties, so that the quotient above keeps ten digits
ROUNDS = 3  # of fitting row sums; the variance changes by less than a percent after that

# People x items, zero where not answered: e, P, 1 where answered, and which half each person is in.
Residuals = tuple[Floats, Floats, Floats, Ints]


@dataclass(frozen=True, eq=False)
class PairSums:
    """Sums over people, items x items, zero on the diagonal.

    Attributes
    ----------
    shared : float matrix
        S_ij: above 0 where the items share more than the ability.
    variance : float matrix
        Of S_ij: what the model says or what the answers show, whichever is larger.
    scale : float matrix
        sqrt(sum V_i sum V_j), which makes a correlation of S_ij.
    n : float matrix
        People who answered both.
    """

    shared: Floats
    variance: Floats
    scale: Floats
    n: Floats

    def z(self, fewest: int = 1) -> Floats:
        """S_ij in standard errors; 0 for pairs that fewer people answered."""
        known = (self.n >= fewest) & (self.variance > 0)
        return np.divide(self.shared, np.sqrt(self.variance), out=np.zeros_like(self.shared), where=known)

    def correlation(self) -> Floats:
        """S_ij as a correlation of residuals, about 0 under the model."""
        return np.divide(self.shared, self.scale, out=np.zeros_like(self.shared), where=self.scale > 0)


def apart(beta: Floats, gap: float = GAP) -> Floats:
    """The difficulties with equal ones moved a little, so that any two differ by `gap` or more.

    >>> apart(np.array([1.0, 0.0, 1.0]), 0.1).tolist()
    [1.0, 0.0, 1.1]
    """
    order = np.argsort(beta, kind="stable")
    steps = np.arange(len(beta)) * gap
    out = np.empty(len(beta))
    out[order] = np.maximum.accumulate(beta[order] - steps) + steps
    return out


def pair_residuals(responses: Responses, beta: Floats, half: Ints) -> Prepared:
    """Residuals given the score of people with both right and wrong answers, dense; `beta` from `apart`.

    An item's residuals are freed of their mean by a Newton step, so that items whose difficulty comes from elsewhere
    (anchors, a prior) share no more with each other for that.
    """
    parts = responses.prepare(_residuals, beta, persons=(half,))
    off, v = parts.sum(_item_sums)
    shift = np.divide(off, v, out=np.zeros_like(off), where=v > 0)
    return parts.prepare(_centered, shift)


def _residuals(block: Block, half: Ints, beta: Floats) -> Residuals:
    users = np.flatnonzero(block.informative)
    block = block.take(users)
    e, p, seen = (np.zeros((len(users), len(beta))) for _ in range(3))
    if len(users):
        where = (block.user_of_response(), block.items)
        seen[where] = 1.0
        p[where] = conditional_probabilities(block, beta)
        e[where] = block.right()
        e -= p
    return e, p, seen, half[users]


def _item_sums(part: Residuals) -> tuple[Floats, Floats]:
    e, p, _, _ = part
    return e.sum(axis=0), (p * (1 - p)).sum(axis=0)


def _centered(part: Residuals, shift: Floats) -> Residuals:
    e, p, seen, half = part
    return e - p * (1 - p) * shift, p, seen, half


def pair_sums(parts: Prepared, beta: Floats) -> tuple[PairSums, PairSums]:
    """The sums of either half of the people."""
    first, second = (_finished(parts.sum(_pair_products, k), beta) for k in (0, 1))
    return first, second


def both(one: PairSums, other: PairSums) -> PairSums:
    """The sums of all people."""
    return PairSums(one.shared + other.shared, one.variance + other.variance, one.scale + other.scale, one.n + other.n)


def _pair_products(part: Residuals, half: int) -> Floats:
    """Over people who answered both: e_i e_j + P_i P_j, P_j, the two variances, V_i, 1."""
    mine = part[3] == half
    e, p, seen = (each[mine] for each in part[:3])
    v = p * (1 - p)
    c = rank_one(v, seen)
    lean, squares, c2 = (1 - 2 * p) * c, e * e, c * c
    less = c2.T @ c2
    return np.array(
        [
            e.T @ e + p.T @ p,
            seen.T @ p,
            v.T @ v - lean.T @ lean - less,
            squares.T @ squares - less,
            v.T @ seen,
            seen.T @ seen,
        ]
    )


def rank_one(v: Floats, seen: Floats) -> Floats:
    """c with c_i sum_{j != i} c_j = V_i for each person: -c_i c_j is about the covariance of two answers."""
    n = np.maximum(seen.sum(axis=1, keepdims=True), 2)
    total = np.sqrt(v.sum(axis=1, keepdims=True) * n / (n - 1))
    c = seen * total / n
    for _ in range(ROUNDS):
        c = np.divide(v, total - c, out=np.zeros_like(v), where=total > c)
        total = np.sqrt((v + c * c).sum(axis=1, keepdims=True))
    return c


def _finished(sums: Floats, beta: Floats) -> PairSums:
    products, other, model, shown, v, n = sums
    eps = np.exp(beta.mean() - beta)
    away = eps[:, None] - eps
    np.fill_diagonal(away, 1.0)
    weighted = eps[:, None] * other
    shared = products - (weighted - weighted.T) / away
    np.fill_diagonal(shared, 0.0)
    variance = np.maximum(model, shown)
    np.fill_diagonal(variance, 0.0)
    return PairSums(shared, variance, np.sqrt(v * v.T), n)


def along(parts: Prepared, direction: Floats, half: int) -> float:
    """Sum of squares over the people of a half of what each adds to direction' S direction."""
    return float(parts.sum(_along, direction, half))


def _along(part: Residuals, direction: Floats, half: int) -> float:
    mine = part[3] == half
    e, p, seen = (each[mine] for each in part[:3])
    c = rank_one(p * (1 - p), seen) * direction
    e = e * direction
    each = e.sum(axis=1) ** 2 - (e * e).sum(axis=1) + c.sum(axis=1) ** 2 - (c * c).sum(axis=1)
    return float(each @ each)
