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

from dataclasses import dataclass, replace

import numpy as np

from spectral_irt.conditional.given_score import conditional_probabilities
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.engine import Prepared

GAP = 1e-5  # logits between any two difficulties, so that the quotient above keeps ten digits
ROUNDS = 3  # of fitting row sums; the variance changes by less than a percent after that


@dataclass(frozen=True, eq=False)
class Residuals:
    """People x items, zero where not answered.

    Attributes
    ----------
    e, v : float arrays
        x - E(x | score), and the variance of x given the score.
    lean : float array
        Third central moment over the variance: what e^2 gains, on average, with e.
    p : float array
        E(x | score).
    seen : float array
        1 where answered.
    half : int array
        Which half each person is in.
    """

    e: Floats
    v: Floats
    lean: Floats
    p: Floats
    seen: Floats
    half: Ints

    def of(self, half: int) -> Residuals:
        mine = self.half == half
        return Residuals(*(each[mine] for each in (self.e, self.v, self.lean, self.p, self.seen, self.half)))


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
        """S_ij as a correlation of residuals, about 0 under the model.

        The scale is what the model expects; far-off items can exceed it without bound, a correlation cannot.
        """
        return np.clip(np.divide(self.shared, self.scale, out=np.zeros_like(self.shared), where=self.scale > 0), -1, 1)


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
    return centered(responses.prepare(_residuals, beta, persons=(half,)))


def centered(parts: Prepared) -> Prepared:
    """The residuals of each item freed of their mean."""
    off, v = parts.sum(_item_sums)
    shift = np.divide(off, v, out=np.zeros_like(off), where=v > 0)
    return parts.prepare(_centered, shift)


def _residuals(block: Block, half: Ints, beta: Floats) -> Residuals:
    persons = np.flatnonzero(block.informative)
    block = block.take(persons)
    e, p, seen = (np.zeros((len(persons), len(beta))) for _ in range(3))
    if len(persons):
        where = (block.person_of_response(), block.items)
        seen[where] = 1.0
        p[where] = conditional_probabilities(block, beta)
        e[where] = block.right()
        e -= p
    return Residuals(e, p * (1 - p), (1 - 2 * p) * seen, p, seen, half[persons])


def _item_sums(part: Residuals) -> tuple[Floats, Floats]:
    return part.e.sum(axis=0), part.v.sum(axis=0)


def _centered(part: Residuals, shift: Floats) -> Residuals:
    return replace(part, e=part.e - part.v * shift)


def pair_sums(parts: Prepared, beta: Floats) -> tuple[PairSums, PairSums]:
    """The sums of either half of the people."""
    first, second = (
        finished(parts.sum(pair_products, k), _expected(parts.sum(_probabilities, k), beta)) for k in (0, 1)
    )
    return first, second


def both(one: PairSums, other: PairSums) -> PairSums:
    """The sums of all people."""
    return PairSums(one.shared + other.shared, one.variance + other.variance, one.scale + other.scale, one.n + other.n)


def _probabilities(part: Residuals, half: int) -> Floats:
    """Over people who answered both: P_i P_j, P_j."""
    part = part.of(half)
    return np.array([part.p.T @ part.p, part.seen.T @ part.p])


def pair_products(part: Residuals, half: int) -> Floats:
    """Over people who answered both: e_i e_j, the two variances, V_i, 1."""
    part = part.of(half)
    e, v, seen = part.e, part.v, part.seen
    c = rank_one(v, seen)
    lean, squares, c2 = part.lean * c, e * e, c * c
    less = c2.T @ c2
    return np.array(
        [
            e.T @ e,
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


def _expected(sums: Floats, beta: Floats) -> Floats:
    """The sum of C_ij, exactly."""
    products, other = sums
    eps = np.exp(beta.mean() - beta)
    away = eps[:, None] - eps
    np.fill_diagonal(away, 1.0)
    weighted = eps[:, None] * other
    return np.asarray((weighted - weighted.T) / away - products)


def finished(sums: Floats, expected: Floats) -> PairSums:
    """From sums of products, and the sum of C_ij."""
    products, model, shown, v, n = sums
    shared = products - expected
    np.fill_diagonal(shared, 0.0)
    variance = np.maximum(model, shown)
    np.fill_diagonal(variance, 0.0)
    return PairSums(shared, variance, np.sqrt(v * v.T), n)


def along(parts: Prepared, direction: Floats, half: int) -> float:
    """Sum of squares over the people of a half of what each adds to direction' S direction."""
    return float(parts.sum(_along, direction, half))


def _along(part: Residuals, direction: Floats, half: int) -> float:
    part = part.of(half)
    c = rank_one(part.v, part.seen) * direction
    e = part.e * direction
    each = e.sum(axis=1) ** 2 - (e * e).sum(axis=1) + c.sum(axis=1) ** 2 - (c * c).sum(axis=1)
    return float(each @ each)
