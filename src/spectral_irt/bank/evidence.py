"""What data said about difficulties, kept after the data are gone.

Near its solution the log-likelihood of all answers seen is -1/2 beta' P beta + b' beta. P is the information matrix of
the ability-weighted equations (THEORY: H = sum_l n_l/(n_l - 1) [diag(v_l) - v_l v_l' / V_l], v = p (1 - p)); its
diagonal alone is right where the chain on items mixes well, and the whole matrix is kept where it is small enough, so
that weak links between test forms stay as weak as they are. With a normal prior of mean mu and precision alpha,

    beta = (P + alpha I)^-1 (b + alpha mu 1),

so b follows from the difficulties, and a prior can be taken off or put on without the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.chain.operator import Part
from spectral_irt.chain.weights import ABILITY
from spectral_irt.responses import Block, Responses
from spectral_irt.responses.block import Floats

MATRIX_ITEMS = 2000  # up to here the whole matrix is kept: at most 16 MB on disk
MATRIX_WORK = 4e8  # pairs of answers of the same user that may be looked at to form it: about 10 s on one core
DENSE_GAIN = 400  # a pair costs this much more in a sparse product than a cell in a dense one
DENSE_SLICE = 2_000_000  # cells of a slice of users made dense


def matrix_is_affordable(responses: Responses) -> bool:
    """Whether the whole information matrix of these responses is small enough to keep and quick enough to form."""
    pairs = float((responses.counts.astype(float) ** 2).sum())
    cells = responses.n_users * float(responses.n_items) ** 2
    return responses.n_items <= MATRIX_ITEMS and min(pairs, cells / DENSE_GAIN) <= MATRIX_WORK


# --------------------------------------------------------------------------------------------- kernels


def score_and_information(responses: Responses, beta: Floats, *, matrix: bool) -> tuple[Floats, Floats]:
    """What these answers add at `beta`: the score of each item (positive: harder), and information.

    The information is a matrix, or with `matrix=False` its diagonal.
    """
    score, diagonal, cross = responses.sum(_contribution, beta, matrix)
    return score, np.diag(diagonal) - cross if matrix else diagonal - cross


def _contribution(block: Block, beta: Floats, matrix: bool) -> tuple[Floats, Floats, Floats]:
    m = len(beta)
    part = Part.under(block, ABILITY, beta)
    pi, one = np.exp(beta), np.ones(m)
    won = part.weight * (part.right @ pi)
    lost = part.weight * (part.wrong @ one)
    score = part.wrong_t @ won - pi * (part.right_t @ lost)
    for half in (part.right, part.wrong):
        half.data *= 1 - half.data  # p becomes v = p (1 - p)
    ok, n = block.informative, block.counts
    factor = np.where(ok, n / np.maximum(n - 1, 1), 0.0)
    total = part.right @ one + part.wrong @ one
    share = np.sqrt(np.divide(factor, total, out=np.zeros(len(total)), where=ok))
    diagonal = part.right_t @ factor + part.wrong_t @ factor
    if matrix:
        return score, diagonal, _gram(part, share)
    squares = sum(_squared(half).T @ share**2 for half in (part.right, part.wrong))
    return score, diagonal, np.asarray(squares)


def _squared(half: sparse.csr_array) -> sparse.csr_array:
    out = half.copy()
    out.data = half.data**2
    return out


def _gram(part: Part, share: Floats) -> Floats:
    """B' B with B_li = share_l v_li."""
    users, m = part.right.shape
    if (part.right.nnz + part.wrong.nnz) ** 2 * DENSE_GAIN <= (users * m) ** 2:
        b = sparse.diags_array(share) @ (part.right + part.wrong)
        return (b.T @ b).toarray()
    total = np.zeros((m, m))
    rows = max(1, DENSE_SLICE // m)
    for start in range(0, users, rows):
        piece = slice(start, start + rows)
        b = share[piece, None] * (part.right[piece].toarray() + part.wrong[piece].toarray())
        total += b.T @ b
    return total


# ------------------------------------------------------------------------------------- the evidence


@dataclass(frozen=True)
class Prior:
    """A normal prior of every difficulty; precision 0 is none."""

    mean: float = 0.0
    precision: float = 0.0


NO_PRIOR = Prior()


def diagonal_of(information: Floats) -> Floats:
    return information if information.ndim == 1 else np.diag(information).copy()


def part_of(information: Floats, chosen: NDArray[np.bool_]) -> Floats:
    """The information on some of the items."""
    return information[chosen] if information.ndim == 1 else information[np.ix_(chosen, chosen)]


def solve(information: Floats, alpha: float, right: Floats, *, grounded: bool = False) -> Floats:
    """(P + alpha I)^-1 right.

    Unless something grounds the scale (a prior, anchored items) P has no say on a common shift, and the solution has
    mean zero.
    """
    if information.ndim == 1:
        return right / (information + alpha)
    loose = alpha == 0 and not grounded
    return np.linalg.solve(_full(information, alpha, loose), right - right.mean() if loose else right)


def exchange_prior(beta: Floats, information: Floats, old: Prior, new: Prior, *, grounded: bool = False) -> Floats:
    """The difficulties under another prior: (P + alpha' I) beta' = (P + alpha I) beta - alpha mu + alpha' mu'."""
    if old == new or not (old.precision or new.precision):
        return beta
    given = information * beta if information.ndim == 1 else information @ beta
    right = given + old.precision * (beta - old.mean) + new.precision * new.mean
    return solve(information, new.precision, right, grounded=grounded)


def model_variance(information: Floats, alpha: float, *, grounded: bool = False) -> Floats:
    """Variance of each difficulty under the model; of its distance from the mean unless something grounds the scale."""
    if information.ndim == 1:
        with np.errstate(divide="ignore"):
            return 1 / (information + alpha)
    return np.maximum(np.diag(model_covariance(information, alpha, grounded=grounded)), 0)


def model_covariance(information: Floats, alpha: float, *, grounded: bool = False) -> Floats:
    """Covariance of the difficulties under the model, from the whole matrix; centered unless the scale is grounded."""
    covariance = np.asarray(np.linalg.inv(_full(information, alpha, alpha == 0 and not grounded)), dtype=float)
    if not grounded:
        covariance -= covariance.mean(axis=0)
        covariance -= covariance.mean(axis=1)[:, None]
    return covariance


def _full(information: Floats, alpha: float, loose: bool) -> Floats:
    m = len(information)
    full = information + alpha * np.eye(m)
    return full + np.trace(information) / m**2 if loose else full
