"""JointRasch: joint maximum likelihood, every ability a parameter like every difficulty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from spectral_irt.chain.weights import prox_ability
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.engine import Prepared
from spectral_irt.estimators.base import RaschEstimator, Tell
from spectral_irt.estimators.estimate import DENSE_ITEMS, Estimate, by_item, by_person, convergence, keep_estimable
from spectral_irt.estimators.spectral_fit import start_thresholds
from spectral_irt.model import sigmoid
from spectral_irt.numerics import centered_inverse, conjugate_gradients, gram
from spectral_irt.sparse_kernels import csr

ABILITY_TOL = 1e-9  # abilities are solved to this within every pass, so the likelihood is a function of difficulty
HALVINGS = 20


@dataclass(frozen=True, eq=False)
class Part:
    """The people of a block with a finite ability, and where they stand at the current difficulties.

    `v` holds p (1 - p) of every answer and `information` its sum for every person.
    """

    block: Block
    person: Ints
    right: Floats
    theta: Floats
    v: Floats
    information: Floats

    @classmethod
    def of(cls, block: Block, beta: Floats) -> Part:
        block = block.take(np.flatnonzero(block.informative))
        right, start, empty = block.right().astype(float), prox_ability(block, beta), np.zeros(0)
        return cls(block, block.person_of_response(), right, start, empty, empty)


def solve_abilities(part: Part, beta: Floats) -> tuple[Part, tuple[Floats, Floats, float]]:
    """Maximum-likelihood ability of every person given the difficulties: sum_i p_li = s_l, by Newton's method.

    Returns the part at these abilities, and its sums: the score of each difficulty sum_l (p_li - X_li), the diagonal
    of the information sum_l p (1 - p) (1 - p (1 - p) / V_l), and the log-likelihood.
    """
    block, person = part.block, part.person
    b = beta[block.items]
    theta = part.theta
    score = block.scores.astype(float)
    for _ in range(100):
        p = sigmoid(theta[person] - b)
        v = p * (1 - p)
        information = by_person(block, v)
        move = np.clip((score - by_person(block, p)) / information, -2, 2)
        theta = theta + move
        if np.abs(move).max(initial=0) < ABILITY_TOL:
            break
    x = theta[person] - b
    p = sigmoid(x)
    v = p * (1 - p)
    information = by_person(block, v)
    m = len(beta)
    slope = by_item(block.items, p - part.right, m)
    own = by_item(block.items, v * (1 - v / information[person]), m)
    loglik = float((part.right * x - np.logaddexp(0, x)).sum())
    return replace(part, theta=theta, v=v, information=information), (slope, own, loglik)


def profile_information(part: Part, direction: Floats) -> Floats:
    """H x for the information of difficulties with abilities fitted: sum_l [v_li x_i - v_li (v_l . x) / V_l]."""
    block = part.block
    x = direction[block.items]
    mean = by_person(block, part.v * x) / part.information
    return by_item(block.items, part.v * (x - mean[part.person]), len(direction))


def dense_information(part: Part, n_items: int) -> Floats:
    """H itself: diag(sum_l v_l) - sum_l v_l v_l^T / V_l."""
    scaled = part.v / np.sqrt(part.information)[part.person]
    total = -gram(csr(part.block.indptr.astype(np.int32), np.asarray(part.block.items), scaled, n_items))
    total[np.diag_indices(n_items)] += by_item(part.block.items, part.v, n_items)
    return total


@dataclass(frozen=True, eq=False)
class JointFit:
    """What `joint_difficulty` found, before any correction."""

    difficulty: Floats
    parts: Prepared
    diagonal: Floats
    loglik: float
    n_iter: int
    residual: float


def joint_difficulty(responses: Responses, *, start: Floats, tol: float = 1e-8, max_iter: int = 100) -> JointFit:
    """Difficulties that maximize the likelihood of all answers over difficulties and abilities together.

    loglik = sum_l sum_i X_li (theta_l - beta_i) - log(1 + exp(theta_l - beta_i))

    People with all answers right or all wrong have no finite ability and are left out; every item must have right and
    wrong answers of the others. Abilities are solved exactly for given difficulties, vectorized over people; the
    difficulties then take a Newton step, its linear system solved by conjugate gradients in passes over the answers.
    """
    beta = start - start.mean()
    parts, (slope, own, loglik) = responses.prepare(Part.of, beta).map_and_sum(solve_abilities, beta)
    step, n_iter = np.inf, 0
    while step > tol and n_iter < max_iter:
        n_iter += 1
        product = partial(parts.sum, profile_information)
        direction = np.clip(conjugate_gradients(product, own, slope, tol=1e-4, most=500)[0], -2, 2)
        direction -= direction.mean()
        for _ in range(HALVINGS):
            there, (new_slope, new_own, new_loglik) = parts.map_and_sum(solve_abilities, beta + direction)
            if new_loglik >= loglik - 1e-12 * abs(loglik):
                beta = beta + direction
                parts, slope, own, loglik = there, new_slope, new_own, new_loglik
                break
            direction = direction / 2
        step = float(np.abs(direction).max())
    return JointFit(beta, parts, own, loglik, n_iter, step)


def shrink_factor(parts: Prepared) -> float:
    """(n - 1) / n averaged over people by their information; with complete data just (n - 1) / n."""
    total, lost = parts.sum(_lost_information)
    return 1 - lost / total


def _lost_information(part: Part) -> tuple[float, float]:
    return float(part.information.sum()), float((part.information / part.block.counts).sum())


@dataclass(kw_only=True, eq=False, repr=False)
class JointRasch(RaschEstimator):
    """Difficulties by joint maximum likelihood (JML): the likelihood of all answers, abilities and difficulties free.

    loglik = sum_l sum_i X_li (theta_l - beta_i) - log(1 + exp(theta_l - beta_i))

    Inconsistent: with n answers per person, differences between difficulties come out about n / (n - 1) times too
    large, however many people there are. `correction=True` shrinks them by (n - 1) / n; it removes most of that bias
    but is no substitute for a consistent method.

    Parameters
    ----------
    correction : bool
        Off by default: the paper's JMLE. Where people gave different numbers of answers, (n - 1) / n is averaged over
        them, each counting by the information given.
    tol, max_iter : float, int
        Stop when a Newton step moves no difficulty by more than `tol`; at most so many steps.
    threads, threshold
        As in every estimator.

    Attributes
    ----------
    loglik_ : float
        Joint log-likelihood at the maximum, before any correction.

    Notes
    -----
    Standard errors invert the information of the difficulties with abilities fitted. They do not cover the bias.

    References
    ----------
    Wright & Panchapakesan (1969); Haberman (1977), Annals of Statistics 5, 815; Wright & Douglas (1977) for (n-1)/n.

    Examples
    --------
    >>> from spectral_irt.datasets import load_lsat
    >>> JointRasch().fit(load_lsat()).difficulty_.round(2).tolist()
    [-1.55, 0.56, 1.63, 0.17, -0.81]
    >>> JointRasch(correction=True).fit(load_lsat()).difficulty_.round(2).tolist()
    [-1.24, 0.45, 1.3, 0.13, -0.65]
    """

    correction: bool = False
    tol: float = 1e-8
    max_iter: int = 100
    threads: int | None = None
    threshold: float | None = None

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        kept = keep_estimable(responses)
        rest = kept.responses
        fit = joint_difficulty(rest, start=start_thresholds(rest), tol=self.tol, max_iter=self.max_iter)
        if rest.n_items <= DENSE_ITEMS:
            se = np.sqrt(np.diag(centered_inverse(fit.parts.sum(dense_information, rest.n_items))))
        else:
            se = 1 / np.sqrt(fit.diagonal)
        factor = shrink_factor(fit.parts) if self.correction else 1.0
        findings = convergence("the joint likelihood", fit.n_iter, "steps", "a last step of", fit.residual, self.tol)
        n = rest.n_responses / max(int(np.sum(rest.counts > 0)), 1)
        if not self.correction and n < 30:
            sentence = (
                f"Joint likelihood is inconsistent: with {n:.0f} answers per person, differences between difficulties "
                f"are about {100 / (n - 1):.0f}% too large."
            )
            remedy = "Use a consistent method: `SpectralRasch` or `ConditionalRasch`."
            findings.append(Finding("joint_bias", "warning", sentence, remedy))
        found = factor * fit.difficulty, factor * se, fit.n_iter, fit.residual
        return kept.estimate(*found, loglik=fit.loglik, findings=findings)
