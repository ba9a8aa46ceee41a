"""VariationalRasch: the Bayesian Rasch model, its posterior approximated by independent normal distributions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import examine
from spectral_irt.estimators.base import RaschEstimator, Tell
from spectral_irt.estimators.estimate import Estimate, Kept, by_item, by_person, convergence
from spectral_irt.estimators.spectral_fit import start_thresholds
from spectral_irt.numerics import Anderson

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
class Items:
    """q of the items, b_i ~ N(mean_i, var_i), and the priors: b ~ N(mu, 1/tau_b), theta ~ N(0, 1/tau)."""

    mean: Floats
    var: Floats
    mu: float
    tau_b: float
    tau: float

    def pack(self) -> Floats:
        return np.concatenate([self.mean, np.log(self.var), [self.mu, np.log(self.tau_b), np.log(self.tau)]])

    @classmethod
    def unpack(cls, x: Floats) -> Items:
        m = (len(x) - 3) // 2
        tau_b, tau = np.exp(x[-2:])
        return cls(x[:m], np.exp(x[m:-3]), float(x[-3]), float(tau_b), float(tau))


@dataclass(frozen=True, eq=False)
class Part:
    """The people of a block with answers, and q of their abilities: theta_l ~ N(mean_l, var_l)."""

    block: Block
    person: Ints
    half: Floats  # X - 1/2 of every answer
    mean: Floats
    var: Floats

    @classmethod
    def of(cls, block: Block) -> Part:
        block = block.take(np.flatnonzero(block.counts > 0))
        n, s = block.counts, block.scores
        mean = np.log((s + 0.5) / (n - s + 0.5))
        half = np.where(block.right(), 0.5, -0.5)
        return cls(block, block.person_of_response(), half, mean, 1 / (1 + n / 5))


def curvature(xi: Floats) -> Floats:
    """lambda(xi) = tanh(xi / 2) / (4 xi), the curvature of the logistic bound; 1/8 at zero."""
    small = xi < 1e-4
    safe = np.where(small, 1.0, xi)
    return np.where(small, 0.125 - xi * xi / 96, np.tanh(safe / 2) / (4 * safe))


def bound_pass(part: Part, items: Items, shift: float) -> tuple[Part, tuple[Floats, ...]]:
    """Update q of the abilities of a block, then add up what the items and the bound need.

    For every answer log P >= (X - 1/2) E[x] - log(2 cosh(xi / 2)) with x = theta - b and xi^2 = E[x^2], and a bound
    quadratic in x with curvature lambda(xi), which makes every update closed-form. xi is never stored.

    Returns the new part; per item, sums of 2 lambda, 2 lambda E[theta] and X - 1/2; then the bound's share, the sum of
    E[theta], of E[theta]^2 + Var[theta], and the number of people.
    """
    block, person = part.block, part.person
    b, c = items.mean[block.items], items.var[block.items]
    mean, var = part.mean + shift, part.var
    half_sum = by_person(block, part.half)
    for _ in range(ABILITY_ROUNDS):
        xi = np.sqrt((mean[person] - b) ** 2 + var[person] + c)
        w = 2 * curvature(xi)
        var = 1 / (items.tau + by_person(block, w))
        mean = var * (half_sum + by_person(block, w * b))
    x = mean[person] - b
    xi = np.sqrt(x * x + var[person] + c)
    w = 2 * curvature(xi)
    m = len(items.mean)
    bound = float(part.half @ x - (xi / 2 + np.log1p(np.exp(-xi))).sum())
    second = mean**2 + var
    bound += 0.5 * float((np.log(items.tau * var) - items.tau * second + 1).sum())
    sums = (
        by_item(block.items, w, m),
        by_item(block.items, w * mean[person], m),
        by_item(block.items, part.half, m),
        np.array([bound, mean.sum(), second.sum(), len(mean)]),
    )
    return replace(part, mean=mean, var=var), sums


def item_bound(items: Items) -> float:
    """The bound's terms of items and hyperparameters."""
    second = (items.mean - items.mu) ** 2 + items.var
    own = 0.5 * float((np.log(items.tau_b * items.var) - items.tau_b * second + 1).sum())
    weak = sum(0.5 * PRIOR_WEIGHT * (np.log(tau) - tau) for tau in (items.tau_b, items.tau))
    return own + float(weak)


def update_items(items: Items, sums: tuple[Floats, ...]) -> tuple[Items, float]:
    """q of every item, then the hyperparameters, each at its maximum given the rest; and the shift of abilities.

    Abilities and difficulties may move together without changing any answer's probability; moving them so that
    abilities average zero is where their prior wants them, and saves the iteration its slowest direction.
    """
    w, w_theta, half, (_, theta, theta2, persons) = sums
    var = 1 / (items.tau_b + w)
    mean = var * (items.tau_b * items.mu - half + w_theta)
    centre = theta / persons
    tau = (persons + PRIOR_WEIGHT) / (theta2 - persons * centre**2 + PRIOR_WEIGHT)
    mean = mean - centre
    mu = float(mean.mean())
    tau_b = (len(mean) + PRIOR_WEIGHT) / (float(((mean - mu) ** 2 + var).sum()) + PRIOR_WEIGHT)
    return Items(mean, var, mu, float(tau_b), float(tau)), -float(centre)


@dataclass(kw_only=True, eq=False, repr=False)
class VariationalRasch(RaschEstimator):
    """Posterior mean and standard deviation of every difficulty and ability under hierarchical normal priors (VB).

    X_li ~ Bernoulli(logistic(theta_l - b_i)),  theta_l ~ N(0, sigma^2),  b_i ~ N(mu_b, sigma_b^2)

    The posterior is approximated by independent normals that maximize a lower bound on the log evidence (logistic bound
    of Jaakkola & Jordan); sigma, mu_b and sigma_b are estimated from the data (empirical Bayes). Deterministic: no
    sampling, no seed. Every answered item gets an estimate, also where everyone was right: there the prior decides.

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
    Coordinate ascent on the bound, each update closed-form, in one pass an iteration. Anderson's acceleration proposes;
    a proposal that lowers the bound is replaced by the plain update, which cannot.

    The approximation pulls the spread of abilities, and with it all differences, towards zero on short tests. That bias
    does not shrink as people are added, while the intervals do: the more data, the less they cover (from 92% down to
    36% for 5 answers each, docs/explanation/rivals.md). Every fit says so in its findings (`approximate_intervals`).
    For numbers to rely on use SpectralRasch or ConditionalRasch.

    References
    ----------
    Natesan, Nandakumar, Minka & Rubright (2016), Frontiers in Psychology 7, 1422 (Bayesian 1PL by variational methods).
    Jaakkola & Jordan (2000), Statistics and Computing 10, 25 (the logistic bound).

    Examples
    --------
    >>> from spectral_irt.datasets import load_lsat
    >>> fit = VariationalRasch().fit(load_lsat())
    >>> fit.difficulty_.round(1).tolist()
    [-1.2, 0.4, 1.1, 0.2, -0.6]
    """

    tol: float = 1e-5
    max_iter: int = 500
    threads: int | None = None
    threshold: float | None = None

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        design = examine(responses)
        rest = responses.take_items(design.answered) if design.unanswered.any() else responses
        items = Items(start_thresholds(rest), 1 / (1 + rest.item_counts / 5), 0.0, 1.0, 1.0)
        x, parts, shift = safe = items.pack(), rest.prepare(Part.of), 0.0
        accelerate, good = Anderson(), items
        trace: list[float] = []
        passes, change = 0, np.inf
        while passes < self.max_iter:
            items = Items.unpack(x)
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
            new, shift = update_items(items, sums)
            image = new.pack()
            safe = (image, parts, shift)
            change = float(np.abs(image - x).max())
            if change <= self.tol:
                break
            x = np.clip(accelerate.next(x, image), image - 2, image + 2)
        centre = good.mean.mean()
        # People with extreme scores do inform the prior, so the design's remark that they do nothing is not true here.
        findings = [finding for finding in design.findings if finding.code != "silent_persons"]
        findings.append(INTERVALS)
        if passes >= self.max_iter:
            findings += convergence("the variational fit", passes, "passes", "a last step of", change, self.tol)
        kept = Kept(rest, design.answered, design.status(), tuple(findings), responses.thresholds)
        hyper = {"sigma": float(good.tau**-0.5), "sigma_b": float(good.tau_b**-0.5), "mu": -float(centre)}
        extra = {"elbo": np.array(trace), **hyper}
        return kept.estimate(good.mean - centre, np.sqrt(good.var), passes, change, extra=extra)
