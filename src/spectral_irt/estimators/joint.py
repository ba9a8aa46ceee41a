"""Abilities and difficulties together: joint maximum likelihood, and variational Bayes with normal distributions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from spectral_irt.chain.operator import prox_ability
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import examine
from spectral_irt.engine import Prepared
from spectral_irt.estimators.base import Estimate, RaschEstimator, Tell, convergence
from spectral_irt.estimators.estimable import DENSE_ITEMS, Kept, by_item, by_person, keep_estimable
from spectral_irt.estimators.spectral import start_thresholds
from spectral_irt.model import sigmoid
from spectral_irt.numerics import Anderson, centered_inverse, conjugate_gradients, csr, gram

ABILITY_TOL = 1e-9  # abilities are solved to this within every pass, so the likelihood is a function of difficulty
HALVINGS = 20
# Both precisions have a weak prior worth one imaginary person (or item) at distance 1 from the mean: it keeps the
# spread from collapsing on tiny data and vanishes otherwise.
PRIOR_WEIGHT = 1.0
INTERVALS = Finding(
    "approximate_intervals",
    "warning",
    "The intervals of variational Bayes are too narrow: it draws differences between items towards zero, on short "
    "tests by a tenth and more, and its standard errors say nothing of that.",
    "For intervals to rely on use `SpectralRasch` or `ConditionalRasch`.",
)
ABILITY_ROUNDS = 2  # updates of abilities for every update of items: a third moves little


@dataclass(frozen=True, eq=False)
class JointPart:
    """The people of a block with a finite ability, with v = p (1 - p) of every answer and its sum for each person."""

    block: Block
    person: Ints
    right: Floats
    theta: Floats
    v: Floats
    information: Floats

    @classmethod
    def of(cls, block: Block, beta: Floats) -> JointPart:
        block = block.take(np.flatnonzero(block.informative))
        right, start, empty = block.right().astype(float), prox_ability(block, beta)[0], np.zeros(0)
        return cls(block, block.person_of_response(), right, start, empty, empty)


def solve_abilities(part: JointPart, beta: Floats) -> tuple[JointPart, tuple[Floats, Floats, float]]:
    """The part at the abilities that maximize the likelihood given the difficulties, sum_i p_li = s_l, and its sums:
    the score of each difficulty, the diagonal of the information, and the log-likelihood."""
    block, person, theta, m = part.block, part.person, part.theta, len(beta)
    b, move = beta[block.items], np.full(1, np.inf)
    for last in range(101):
        x = theta[person] - b
        p = sigmoid(x)
        v = p * (1 - p)
        information = by_person(block, v)
        if last == 100 or np.abs(move).max(initial=0) < ABILITY_TOL:
            break
        move = np.clip((block.scores - by_person(block, p)) / information, -2, 2)
        theta = theta + move
    slope = by_item(block.items, p - part.right, m)
    own = by_item(block.items, v * (1 - v / information[person]), m)
    loglik = float((part.right * x - np.logaddexp(0, x)).sum())
    return replace(part, theta=theta, v=v, information=information), (slope, own, loglik)


def profile_information(part: JointPart, direction: Floats) -> Floats:
    """H x for the information of difficulties with abilities fitted: sum_l [v_li x_i - v_li (v_l . x) / V_l]."""
    x = direction[part.block.items]
    mean = by_person(part.block, part.v * x) / part.information
    return by_item(part.block.items, part.v * (x - mean[part.person]), len(direction))


def dense_information(part: JointPart, n_items: int) -> Floats:
    """H itself: diag(sum_l v_l) - sum_l v_l v_l^T / V_l."""
    scaled = part.v / np.sqrt(part.information)[part.person]
    total = -gram(csr(part.block.indptr.astype(np.int32), np.asarray(part.block.items), scaled, n_items))
    total[np.diag_indices(n_items)] += by_item(part.block.items, part.v, n_items)
    return total


def joint_difficulty(
    responses: Responses, *, start: Floats, tol: float = 1e-8, max_iter: int = 100
) -> tuple[Floats, Prepared, Floats, float, int, float]:
    """Difficulties that maximize the likelihood of all answers over difficulties and abilities together; `JointPart`s,
    the information of each difficulty and the log-likelihood there; steps, and the last one.

    People with all answers right or all wrong have no finite ability and are left out; every item must have right and
    wrong answers of the others. Abilities are solved exactly for given difficulties; these then take a Newton step, its
    linear system solved by conjugate gradients in passes over the answers.
    """
    beta = start - start.mean()
    parts, (slope, own, loglik) = responses.prepare(JointPart.of, beta).map_and_sum(solve_abilities, beta)
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
    return beta, parts, own, loglik, n_iter, step


def _lost_information(part: JointPart) -> tuple[float, float]:
    """The information of all people, and the n-th part of it that estimating the ability of each takes."""
    return float(part.information.sum()), float((part.information / part.block.counts).sum())


@dataclass(kw_only=True, eq=False, repr=False)
class JointRasch(RaschEstimator):
    """Difficulties by joint maximum likelihood (JML): the likelihood of all answers, abilities and difficulties free.

    loglik = sum_l sum_i X_li (theta_l - beta_i) - log(1 + exp(theta_l - beta_i))

    Inconsistent: with n answers per person, differences between difficulties come out about n / (n - 1) times too
    large, however many people there are. `correction=True` shrinks them by (n - 1) / n; it removes most of that bias
    but is no substitute for a consistent method. Standard errors, from the information with abilities fitted, do not
    cover the bias.

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

    likelihood: ClassVar[str] = "joint"

    correction: bool = False
    tol: float = 1e-8
    max_iter: int = 100
    threads: int | None = None
    threshold: float | None = None

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        kept = keep_estimable(responses)
        rest = kept.responses
        found = joint_difficulty(rest, start=start_thresholds(rest), tol=self.tol, max_iter=self.max_iter)
        beta, parts, own, loglik, n_iter, step = found
        se, factor = 1 / np.sqrt(own), 1.0
        if rest.n_items <= DENSE_ITEMS:
            se = np.sqrt(np.diag(centered_inverse(parts.sum(dense_information, rest.n_items))))
        if self.correction:  # (n - 1) / n, averaged over people by their information
            total, lost = parts.sum(_lost_information)
            factor = 1 - lost / total
        findings = convergence("the joint likelihood", n_iter, "steps", "a last step of", step, self.tol)
        n = rest.n_responses / max(int(np.sum(rest.counts > 0)), 1)
        if not self.correction and n < 30:
            with_few = f"Joint likelihood is inconsistent: with {n:.0f} answers per person"
            sentence = f"{with_few}, differences between difficulties are about {100 / (n - 1):.0f}% too large."
            remedy = "Use a consistent method: `SpectralRasch` or `ConditionalRasch`."
            findings.append(Finding("joint_bias", "warning", sentence, remedy))
        return kept.estimate(factor * beta, factor * se, n_iter, step, loglik=loglik, findings=findings)


@dataclass(frozen=True, eq=False)
class Items:
    """q of the items, b_i ~ N(mean_i, var_i), and the priors: b ~ N(mu, 1/tau_b), theta ~ N(0, 1/tau)."""

    mean: Floats
    var: Floats
    mu: float
    tau_b: float
    tau: float

    @classmethod
    def at(cls, x: Floats) -> Items:
        """Of means, log variances, mu and the logs of both precisions, one after the other."""
        m = (len(x) - 3) // 2
        tau_b, tau = np.exp(x[-2:])
        return cls(x[:m], np.exp(x[m:-3]), float(x[-3]), float(tau_b), float(tau))


@dataclass(frozen=True, eq=False)
class VariationalPart:
    """The people of a block with answers, and q of their abilities: theta_l ~ N(mean_l, var_l)."""

    block: Block
    person: Ints
    half: Floats  # X - 1/2 of every answer
    mean: Floats
    var: Floats

    @classmethod
    def of(cls, block: Block) -> VariationalPart:
        block = block.take(np.flatnonzero(block.counts > 0))
        n, s, half = block.counts, block.scores, np.where(block.right(), 0.5, -0.5)
        return cls(block, block.person_of_response(), half, np.log((s + 0.5) / (n - s + 0.5)), 1 / (1 + n / 5))


def curvature(xi: Floats) -> Floats:
    """lambda(xi) = tanh(xi / 2) / (4 xi), the curvature of the logistic bound; 1/8 at zero."""
    small = xi < 1e-4
    safe = np.where(small, 1.0, xi)
    return np.where(small, 0.125 - xi * xi / 96, np.tanh(safe / 2) / (4 * safe))


def bound_pass(part: VariationalPart, items: Items, shift: float) -> tuple[VariationalPart, tuple[Floats, ...]]:
    """Update q of the abilities of a block, then add up what the items and the bound need.

    For every answer log P >= (X - 1/2) E[x] - log(2 cosh(xi / 2)) with x = theta - b and xi^2 = E[x^2], a bound with
    curvature lambda(xi) that makes every update closed-form. Sums, by item, of 2 lambda, 2 lambda E[theta], X - 1/2;
    then the bound's share, the sums of E[theta] and of E[theta]^2 + Var[theta], and the number of people.
    """
    block, person, m = part.block, part.person, len(items.mean)
    b, c, half_sum = items.mean[block.items], items.var[block.items], by_person(block, part.half)
    mean, var = part.mean + shift, part.var
    for last in range(ABILITY_ROUNDS + 1):
        x = mean[person] - b
        xi = np.sqrt(x * x + var[person] + c)
        w = 2 * curvature(xi)
        if last < ABILITY_ROUNDS:
            var = 1 / (items.tau + by_person(block, w))
            mean = var * (half_sum + by_person(block, w * b))
    bound = float(part.half @ x - (xi / 2 + np.log1p(np.exp(-xi))).sum())
    second = mean**2 + var
    bound += 0.5 * float((np.log(items.tau * var) - items.tau * second + 1).sum())
    sums = [by_item(block.items, values, m) for values in (w, w * mean[person], part.half)]
    return replace(part, mean=mean, var=var), (*sums, np.array([bound, mean.sum(), second.sum(), len(mean)]))


def item_bound(items: Items) -> float:
    """The bound's terms of items and hyperparameters."""
    second = (items.mean - items.mu) ** 2 + items.var
    weak = sum(PRIOR_WEIGHT * (np.log(tau) - tau) for tau in (items.tau_b, items.tau))
    return 0.5 * float((np.log(items.tau_b * items.var) - items.tau_b * second + 1).sum() + weak)


def update_items(items: Items, sums: tuple[Floats, ...]) -> tuple[Floats, float]:
    """q of every item, then the hyperparameters, each at its maximum given the rest, as `Items.at` takes them; and the
    shift of abilities.

    Moving both so that abilities average zero, where their prior is, saves the iteration its slowest direction.
    """
    w, w_theta, half, (_, theta, theta2, persons) = sums
    var = 1 / (items.tau_b + w)
    mean = var * (items.tau_b * items.mu - half + w_theta)
    centre = theta / persons
    tau = (persons + PRIOR_WEIGHT) / (theta2 - persons * centre**2 + PRIOR_WEIGHT)
    mean = mean - centre
    mu = mean.mean()
    tau_b = (len(mean) + PRIOR_WEIGHT) / (((mean - mu) ** 2 + var).sum() + PRIOR_WEIGHT)
    return np.concatenate([mean, np.log(var), [mu, np.log(tau_b), np.log(tau)]]), -float(centre)


@dataclass(kw_only=True, eq=False, repr=False)
class VariationalRasch(RaschEstimator):
    """Posterior mean and standard deviation of every difficulty and ability under hierarchical normal priors (VB).

    X_li ~ Bernoulli(logistic(theta_l - b_i)),  theta_l ~ N(0, sigma^2),  b_i ~ N(mu_b, sigma_b^2)

    The posterior is approximated by independent normals that maximize a lower bound on the log evidence (logistic bound
    of Jaakkola & Jordan); sigma, mu_b and sigma_b are estimated from the data (empirical Bayes). Every answered item
    gets an estimate, also where everyone was right: there the prior decides.

    Parameters
    ----------
    tol, max_iter : float, int
        Stop when no difficulty, log standard deviation or hyperparameter moves by more than `tol` in a pass; at most
        so many passes.
    threads, threshold
        As in every estimator.

    Attributes
    ----------
    difficulty_, se_ : arrays
        Posterior means (shrunk towards the mean difficulty) and standard deviations, which are too small: see Notes.
    elbo_ : array
        The bound after each accepted pass; never decreases.
    sigma_, sigma_b_, mu_ : float
        Prior standard deviations of ability and difficulty, and mean ability on the scale of the difficulties.

    Notes
    -----
    The approximation pulls the spread of abilities, and with it all differences, towards zero on short tests. That bias
    does not shrink as people are added, while the intervals do: the more data, the less they cover (from 92% down to
    36% for 5 answers each, docs/explanation/rivals.md). Every fit says so in its findings (`approximate_intervals`).

    References
    ----------
    Natesan, Nandakumar, Minka & Rubright (2016), Frontiers in Psychology 7, 1422 (Bayesian 1PL by variational methods).
    Jaakkola & Jordan (2000), Statistics and Computing 10, 25 (the logistic bound).

    Examples
    --------
    >>> from spectral_irt.datasets import load_lsat
    >>> VariationalRasch().fit(load_lsat()).difficulty_.round(1).tolist()
    [-1.2, 0.4, 1.1, 0.2, -0.6]
    """

    likelihood: ClassVar[str] = "variational"

    tol: float = 1e-5
    max_iter: int = 500
    threads: int | None = None
    threshold: float | None = None

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        design = examine(responses)
        rest = responses.take_items(design.answered) if not design.answered.all() else responses
        x = np.concatenate([start_thresholds(rest), -np.log1p(rest.item_counts / 5), np.zeros(3)])
        _, parts, shift = safe = x, rest.prepare(VariationalPart.of), 0.0
        accelerate = Anderson()  # which proposes; what lowers the bound gives way to the plain update
        trace: list[float] = []
        passes, change = 0, np.inf
        while passes < self.max_iter:
            items = Items.at(x)
            there, sums = parts.map_and_sum(bound_pass, items, shift)
            passes += 1
            bound = float(sums[3][0]) + item_bound(items)
            if trace and bound < trace[-1]:
                if x is safe[0] and parts is safe[1]:
                    break  # the plain update: what it lost is rounding, and there is nothing more to gain
                accelerate.forget()
                x, parts, shift = safe
                continue
            trace.append(bound)
            good, parts = items, there
            image, shift = update_items(items, sums)
            safe = (image, parts, shift)
            change = float(np.abs(image - x).max())
            if change <= self.tol:
                break
            x = np.clip(accelerate.next(x, image), image - 2, image + 2)
        centre = good.mean.mean()
        # People with extreme scores do inform the prior, so the design's remark that they do nothing is not true here.
        findings = [*(one for one in design.findings if one.code != "silent_persons"), INTERVALS]
        if passes >= self.max_iter:
            findings += convergence("the variational fit", passes, "passes", "a last step of", change, self.tol)
        kept = Kept(rest, design.answered, design.status, tuple(findings), responses.thresholds)
        hyper = {"sigma": float(good.tau**-0.5), "sigma_b": float(good.tau_b**-0.5), "mu": -float(centre)}
        extra = {"elbo": np.array(trace), **hyper}
        return kept.estimate(good.mean - centre, np.sqrt(good.var), passes, change, extra=extra)
