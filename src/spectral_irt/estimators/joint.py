"""Abilities and difficulties together: joint maximum likelihood, and variational Bayes with normal distributions.

Rivals of the paper: both let the abilities of all people be parameters, with a bias that does not shrink as people are
added. `PRIOR_WEIGHT` and what follows belong to variational Bayes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from spectral_irt.chain.operator import prox_ability
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import examine
from spectral_irt.engine import Prepared
from spectral_irt.estimators.base import Estimate, RaschEstimator, Tell, convergence
from spectral_irt.estimators.chain_alone import start_thresholds
from spectral_irt.estimators.estimable import DENSE_ITEMS, Errors, EstimableItems, by_item, by_person, estimable_items
from spectral_irt.model import sigmoid
from spectral_irt.numerics import Anderson, centered_inverse, conjugate_gradients, csr, gram

ABILITY_TOL = 1e-9  # abilities are solved to this within every pass, so the likelihood is a function of difficulty
ABILITY_STEPS = 100
LONGEST_STEP = 2.0  # logits
HALVINGS = 20  # of a step that lowers the likelihood: to a millionth
FEW_ANSWERS = 30  # of a person: the bias is told
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
        theta, _ = prox_ability(block, beta)
        nothing = np.zeros(0)
        return cls(block, block.person_of_response(), block.right().astype(float), theta, nothing, nothing)


class ProfileSums(NamedTuple):
    """Of the likelihood with abilities fitted: the score of each difficulty, the diagonal of the information, and the
    log-likelihood."""

    score: Floats
    diagonal: Floats
    loglik: float


def solve_abilities(part: JointPart, beta: Floats) -> tuple[JointPart, ProfileSums]:
    """The part at the abilities that maximize the likelihood given the difficulties, sum_i p_li = s_l, and its sums."""
    block = part.block
    person = part.person
    theta = part.theta
    difficulty = beta[block.items]
    move = np.full(1, np.inf)
    for step in range(ABILITY_STEPS + 1):
        x = theta[person] - difficulty
        p = sigmoid(x)
        v = p * (1 - p)
        information = by_person(block, v)
        if step == ABILITY_STEPS or np.abs(move).max(initial=0) < ABILITY_TOL:
            break
        move = np.clip((block.scores - by_person(block, p)) / information, -LONGEST_STEP, LONGEST_STEP)
        theta = theta + move
    score = by_item(block.items, p - part.right, len(beta))
    diagonal = by_item(block.items, v * (1 - v / information[person]), len(beta))
    loglik = float((part.right * x - np.logaddexp(0, x)).sum())
    return replace(part, theta=theta, v=v, information=information), ProfileSums(score, diagonal, loglik)


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


class JointFit(NamedTuple):
    """Difficulties of joint likelihood, the `JointPart`s there, the information on each and the log-likelihood; steps,
    and the last one."""

    difficulty: Floats
    parts: Prepared
    diagonal: Floats
    loglik: float
    n_iter: int
    last_step: float


def joint_difficulty(responses: Responses, *, start: Floats, tol: float = 1e-8, max_iter: int = 100) -> JointFit:
    """Difficulties that maximize the likelihood of all answers over difficulties and abilities together.

    People with all answers right or all wrong have no finite ability and are left out; every item must have right and
    wrong answers of the others. Abilities are solved exactly for given difficulties; these then take a Newton step, its
    linear system solved by conjugate gradients in passes over the answers.
    """
    beta = start - start.mean()
    parts, totals = responses.prepare(JointPart.of, beta).map_and_sum(solve_abilities, beta)
    sums = ProfileSums(*totals)
    last_step = np.inf
    n_iter = 0
    while last_step > tol and n_iter < max_iter:
        n_iter += 1
        product = partial(parts.sum, profile_information)
        newton_step, _ = conjugate_gradients(product, sums.diagonal, sums.score, tol=1e-4, most=500)
        direction = np.clip(newton_step, -LONGEST_STEP, LONGEST_STEP)
        direction -= direction.mean()
        for _ in range(HALVINGS):
            new_parts, totals = parts.map_and_sum(solve_abilities, beta + direction)
            new_sums = ProfileSums(*totals)
            if new_sums.loglik >= sums.loglik - 1e-12 * abs(sums.loglik):
                beta = beta + direction
                parts = new_parts
                sums = new_sums
                break
            direction = direction / 2
        last_step = float(np.abs(direction).max())
    return JointFit(beta, parts, sums.diagonal, sums.loglik, n_iter, last_step)


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
        items = estimable_items(responses)
        usable = items.responses
        fit = joint_difficulty(usable, start=start_thresholds(usable), tol=self.tol, max_iter=self.max_iter)
        se = 1 / np.sqrt(fit.diagonal)
        if usable.n_items <= DENSE_ITEMS:
            se = np.sqrt(np.diag(centered_inverse(fit.parts.sum(dense_information, usable.n_items))))
        factor = 1.0
        if self.correction:  # (n - 1) / n, averaged over people by their information
            total, lost = fit.parts.sum(_lost_information)
            factor = 1 - lost / total
        findings = convergence("the joint likelihood", fit.n_iter, "steps", "a last step of", fit.last_step, self.tol)
        n = usable.n_responses / max(int(np.sum(usable.counts > 0)), 1)
        if not self.correction and n < FEW_ANSWERS:
            sentence = (
                f"Joint likelihood is inconsistent: with {n:.0f} answers per person, differences between difficulties "
                f"are about {100 / (n - 1):.0f}% too large."
            )
            remedy = "Use a consistent method: `SpectralRasch` or `ConditionalRasch`."
            findings.append(Finding("joint_bias", "warning", sentence, remedy))
        return items.estimate(
            factor * fit.difficulty,
            Errors(factor * se),
            fit.n_iter,
            fit.last_step,
            loglik=fit.loglik,
            findings=findings,
        )


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
        n_right = block.scores
        n_wrong = block.counts - n_right
        half = np.where(block.right(), 0.5, -0.5)
        mean = np.log((n_right + 0.5) / (n_wrong + 0.5))
        return cls(block, block.person_of_response(), half, mean, 1 / (1 + block.counts / 5))


def curvature(xi: Floats) -> Floats:
    """lambda(xi) = tanh(xi / 2) / (4 xi), the curvature of the logistic bound; 1/8 at zero."""
    small = xi < 1e-4
    safe = np.where(small, 1.0, xi)
    return np.where(small, 0.125 - xi * xi / 96, np.tanh(safe / 2) / (4 * safe))


class BoundTotals(NamedTuple):
    """The bound's share, the sums of E[theta] and of E[theta]^2 + Var[theta], and the number of people."""

    bound: float
    theta: float
    theta_square: float
    persons: float


class BoundSums(NamedTuple):
    """Sums, by item, of 2 lambda, 2 lambda E[theta] and X - 1/2; and the totals over people, as an array."""

    w: Floats
    w_theta: Floats
    half: Floats
    totals: Floats  # `BoundTotals`


def bound_pass(part: VariationalPart, items: Items, shift: float) -> tuple[VariationalPart, BoundSums]:
    """Update q of the abilities of a block, then add up what the items and the bound need.

    For every answer log P >= (X - 1/2) E[x] - log(2 cosh(xi / 2)) with x = theta - b and xi^2 = E[x^2], a bound with
    curvature lambda(xi) that makes every update closed-form.
    """
    block = part.block
    person = part.person
    b = items.mean[block.items]
    b_variance = items.var[block.items]
    half = by_person(block, part.half)
    mean = part.mean + shift
    var = part.var
    for last in range(ABILITY_ROUNDS + 1):
        x = mean[person] - b
        xi = np.sqrt(x * x + var[person] + b_variance)
        w = 2 * curvature(xi)
        if last < ABILITY_ROUNDS:
            var = 1 / (items.tau + by_person(block, w))
            mean = var * (half + by_person(block, w * b))
    bound = float(part.half @ x - (xi / 2 + np.log1p(np.exp(-xi))).sum())
    second = mean**2 + var
    bound += 0.5 * float((np.log(items.tau * var) - items.tau * second + 1).sum())
    totals = np.array(BoundTotals(bound, mean.sum(), second.sum(), len(mean)))
    n_items = len(items.mean)
    sums = BoundSums(
        by_item(block.items, w, n_items),
        by_item(block.items, w * mean[person], n_items),
        by_item(block.items, part.half, n_items),
        totals,
    )
    return replace(part, mean=mean, var=var), sums


def item_bound(items: Items) -> float:
    """The bound's terms of items and hyperparameters."""
    second = (items.mean - items.mu) ** 2 + items.var
    weak = sum(PRIOR_WEIGHT * (np.log(tau) - tau) for tau in (items.tau_b, items.tau))
    return 0.5 * float((np.log(items.tau_b * items.var) - items.tau_b * second + 1).sum() + weak)


def update_items(items: Items, sums: BoundSums) -> tuple[Floats, float]:
    """q of every item, then the hyperparameters, each at its maximum given the rest, as `Items.at` takes them; and the
    shift of abilities.

    Moving both so that abilities average zero, where their prior is, saves the iteration its slowest direction.
    """
    w, w_theta, half, totals = sums
    people = BoundTotals(*totals)
    var = 1 / (items.tau_b + w)
    mean = var * (items.tau_b * items.mu - half + w_theta)
    center = people.theta / people.persons
    spread = people.theta_square - people.persons * center**2
    tau = (people.persons + PRIOR_WEIGHT) / (spread + PRIOR_WEIGHT)
    mean = mean - center
    mu = mean.mean()
    tau_b = (len(mean) + PRIOR_WEIGHT) / (((mean - mu) ** 2 + var).sum() + PRIOR_WEIGHT)
    return np.concatenate([mean, np.log(var), [mu, np.log(tau_b), np.log(tau)]]), -float(center)


class VariationalState(NamedTuple):
    """Where a pass begins: the parameters of the items, the people, and by how much all abilities are shifted."""

    x: Floats
    parts: Prepared
    shift: float


class VariationalFit(NamedTuple):
    """The items at the highest bound; the bound after each accepted pass; passes, and the last change."""

    items: Items
    bounds: list[float]
    passes: int
    change: float


def variational_fit(responses: Responses, *, tol: float, max_iter: int) -> VariationalFit:
    """Passes until no parameter moves by more than `tol`.

    Anderson's acceleration proposes; what lowers the bound gives way to the plain update.
    """
    x = np.concatenate([start_thresholds(responses), -np.log1p(responses.item_counts / 5), np.zeros(3)])
    state = plain_update = VariationalState(x, responses.prepare(VariationalPart.of), 0.0)
    accelerate = Anderson()
    bounds: list[float] = []
    passes = 0
    change = np.inf
    while passes < max_iter:
        items = Items.at(state.x)
        parts, sums = state.parts.map_and_sum(bound_pass, items, state.shift)
        sums = BoundSums(*sums)
        passes += 1
        bound = float(BoundTotals(*sums.totals).bound) + item_bound(items)
        if bounds and bound < bounds[-1]:
            if state is plain_update:
                break  # what it lost is rounding, and there is nothing more to gain
            accelerate.forget()
            state = plain_update
            continue
        bounds.append(bound)
        best = items
        image, shift = update_items(items, sums)
        plain_update = VariationalState(image, parts, shift)
        change = float(np.abs(image - state.x).max())
        if change <= tol:
            break
        proposal = np.clip(accelerate.next(state.x, image), image - LONGEST_STEP, image + LONGEST_STEP)
        state = plain_update._replace(x=proposal)
    return VariationalFit(best, bounds, passes, change)


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
        usable = responses if design.answered.all() else responses.take_items(design.answered)
        fit = variational_fit(usable, tol=self.tol, max_iter=self.max_iter)
        center = fit.items.mean.mean()
        # People with extreme scores do inform the prior, so the design's remark that they do nothing is not true here.
        findings = [finding for finding in design.findings if finding.code != "silent_persons"]
        findings.append(INTERVALS)
        if fit.passes >= self.max_iter:
            findings += convergence("the variational fit", fit.passes, "passes", "a last step of", fit.change, self.tol)
        items = EstimableItems(usable, design.answered, design.status, tuple(findings), responses.thresholds)
        return items.estimate(
            fit.items.mean - center,
            Errors(np.sqrt(fit.items.var)),
            fit.passes,
            fit.change,
            extra={
                "elbo": np.array(fit.bounds),
                "sigma": float(fit.items.tau**-0.5),
                "sigma_b": float(fit.items.tau_b**-0.5),
                "mu": -float(center),
            },
        )
