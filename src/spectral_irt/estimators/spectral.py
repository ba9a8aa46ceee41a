"""SpectralRasch: item difficulties as the log of the stationary distribution of a Markov chain on items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectral_irt.chain.covariance import SE_METHODS, Balance, choose_method, covariance, standard_errors
from spectral_irt.chain.operator import Chain, ItemChain, TiedChain
from spectral_irt.chain.pairs import NU_RULES, PairChain, pair_counts, regularize, seen_together
from spectral_irt.chain.stationary import Stationary, stationary
from spectral_irt.chain.weights import WEIGHTINGS
from spectral_irt.engines import LocalEngine
from spectral_irt.errors import DesignError, OptionError, check_option
from spectral_irt.estimators.base import Estimate, RaschEstimator
from spectral_irt.responses import Finding, Responses
from spectral_irt.responses.block import Floats
from spectral_irt.responses.design import Design, describe_split, estimable, examine

# Below this information an item's estimate is worth less than a prior that other items supply: its standard error
# exceeds 0.2 logits. A judgement, not a theorem.
ENOUGH_INFORMATION = 25.0
ROUNDS = 2  # of ability weights, each at the difficulties of the last; the second moves nothing by a tenth of its se
PRIOR_ROUNDS = 4  # of "users" weights while the prior's precision settles
ROUGH = 1e-4  # residual for rounds whose result is only the start of the next
WEAK_LINK = 0.9  # contraction above which links between groups of items are reported as weak


@dataclass(frozen=True)
class Regularization:
    """What was added to the data, and why.

    `kind` is "none", "virtual item" (precision `alpha`, chosen by empirical Bayes when `estimated`) or "pairs" (the
    paper's `nu` with its `rule`).
    """

    kind: str
    reason: str
    alpha: float = 0.0
    estimated: bool = False
    nu: float = 0.0
    rule: str = ""

    def __str__(self) -> str:
        if self.kind == "virtual item":
            how = "by empirical Bayes" if self.estimated else "as asked"
            return f"virtual item of average difficulty, alpha = {self.alpha:.3g} {how} ({self.reason})"
        if self.kind == "pairs":
            return f"nu = {self.nu:g} on pairs that {'differed' if self.rule == 'differed' else 'were seen together'}"
        return f"none ({self.reason})"


@dataclass(frozen=True, eq=False)
class SpectralFit:
    """What `spectral_difficulty` found, in the order of the responses' items."""

    difficulty: Floats
    se: Floats
    status: Any
    passes: int
    residual: float
    contraction: float
    solver: str
    se_method: str
    regularization: Regularization
    findings: tuple[Finding, ...]
    information: Floats
    balance: Balance
    kept: Any


def spectral_difficulty(
    responses: Responses,
    *,
    weighting: str = "ability",
    regularization: str | float = "auto",
    nu: float = 0.0,
    nu_rule: str = "differed",
    se: str = "auto",
    tol: float = 1e-10,
    max_passes: int = 10_000,
    seed: int = 0,
    engine: LocalEngine | None = None,
    progress: Callable[[str], None] | None = None,
) -> SpectralFit:
    """Item difficulties with standard errors by the spectral method; the function behind `SpectralRasch`.

    sum_l sum_j h_ij^l ( pi_i X_li (1 - X_lj) - pi_j X_lj (1 - X_li) ) = 0,   beta_i = log pi_i - mean.

    The parameters are those of `SpectralRasch`.
    """
    check_option("weighting", weighting, WEIGHTINGS)
    check_option("se", se, SE_METHODS)
    check_option("nu_rule", nu_rule, NU_RULES)
    _check_numbers(regularization, nu, weighting)
    engine = engine or LocalEngine()
    tell = progress or (lambda text: None)
    tell("looking at the design")
    design = examine(responses, engine.sum)
    plan = _plan(design, regularization, nu, nu_rule)
    findings = list(design.findings)

    if plan.kind == "none":
        rest, kept, left_out = estimable(responses, engine.sum)
        findings = [f for f in findings if f.code not in ("extreme_items", "uninformed_items")] + list(left_out)
    else:
        kept = design.answered
        rest = responses if kept.all() else responses.take_items(kept)
    tell("solving the chain")
    solver = _Solver(rest, weighting, plan, design.information[kept], engine, tol, max_passes, tell)
    found, beta = solver.solve()
    plan = solver.plan
    balance = solver.balance(found)

    contraction = found.contraction
    method = se
    if se == "auto":
        work = float((responses.counts.astype(float) ** 2).sum())
        method = choose_method(rest.n_items, contraction, work)
    if method != "none":
        tell(f"standard errors ({method})")
    errors = np.full(rest.n_items, np.nan) if method == "none" else standard_errors(balance, method, seed)

    findings += _findings(plan, contraction, found, tol)
    difficulty, every_se, information = (np.full(responses.n_items, np.nan) for _ in range(3))
    difficulty[kept], every_se[kept] = beta, errors
    information[kept] = solver.information(balance)
    return SpectralFit(
        difficulty,
        every_se,
        design.status(),
        solver.passes,
        found.residual,
        contraction,
        found.method,
        method,
        plan,
        tuple(findings),
        information,
        balance,
        kept,
    )


# ------------------------------------------------------------------------------------- what to add


def _check_numbers(regularization: str | float, nu: float, weighting: str) -> None:
    if isinstance(regularization, str):
        check_option("regularization", regularization, ("auto",))
    elif not (np.isfinite(regularization) and regularization >= 0):
        raise OptionError(f"regularization is {regularization}; it is 'auto' or a finite number, 0 or more.")
    if not (np.isfinite(nu) and nu >= 0):
        raise OptionError(f"nu is {nu}; it must be a finite number, 0 or more.")
    if nu > 0 and weighting == "ability":
        raise OptionError("nu adds to pair counts, so it goes with weighting='pairs' (the paper's) or 'users'.")
    if nu > 0 and not isinstance(regularization, str) and regularization > 0:
        raise OptionError("give nu (pairs) or regularization (virtual item), not both.")


def _plan(design: Design, regularization: str | float, nu: float, rule: str) -> Regularization:
    """Decide what to add to the data, and say why."""
    if nu > 0:
        _require_met(design)
        return Regularization("pairs", "as asked", nu=nu, rule=rule)
    if not isinstance(regularization, str):
        if regularization > 0:
            return Regularization("virtual item", "as asked", alpha=float(regularization))
        return Regularization("none", "as asked")
    least = float(design.information[design.answered].min())
    if not design.connected:
        return Regularization("virtual item", "the data alone do not tie all items together", 1.0, True)
    if least <= ENOUGH_INFORMATION:
        thin = int(np.sum(design.information[design.answered] <= ENOUGH_INFORMATION))
        reason = f"{thin:,} items carry information of {ENOUGH_INFORMATION:g} or less"
        return Regularization("virtual item", reason, 1.0, True)
    reason = f"all items hang together and each carries information above {ENOUGH_INFORMATION:g}"
    return Regularization("none", f"{reason}; the least is {least:.0f}")


def _require_met(design: Design) -> None:
    """nu on pairs ties only items that users answered differently, directly or through others."""
    from scipy.sparse.csgraph import connected_components

    responses, m = design.responses, design.responses.n_items
    from scipy import sparse

    start, users, items = m, [], []
    for block in responses.blocks:
        live = np.repeat(block.informative, block.counts)
        users.append(start + block.user_of_response()[live])
        items.append(block.items[live])
        start += block.n_users
    user, item = np.concatenate(users), np.concatenate(items)
    graph = sparse.coo_array((np.ones(len(user), dtype=np.int8), (user, item)), shape=(start, start))
    labels = connected_components(graph, directed=False)[1][:m]
    met = design.answered & ~design.uninformed
    groups = np.unique(labels[met], return_inverse=True)[1]
    if len(groups) and groups.max() > 0:
        sizes = np.bincount(groups)
        order = np.empty(len(sizes), dtype=int)
        order[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
        split = np.full(m, -1)
        split[met] = order[groups]
        raise DesignError(
            f"{responses.source}: {describe_split(responses.take_items(met), split[met])} "
            "nu cannot tie them. Use responses.largest_component(), or regularization='auto' without nu."
        )


# --------------------------------------------------------------------------------------- the rounds


class _Solver:
    """Rounds of chain solves: "users" or "pairs" weights first, then ability weights at the last difficulties."""

    def __init__(
        self,
        responses: Responses,
        weighting: str,
        plan: Regularization,
        information: Floats,
        engine: LocalEngine,
        tol: float,
        max_passes: int,
        tell: Callable[[str], None],
    ) -> None:
        self.responses, self.weighting, self.plan, self.engine = responses, weighting, plan, engine
        self.rough_information = information
        self.tol, self.max_passes, self.tell = tol, max_passes, tell
        self.passes = 0
        self.data: ItemChain
        self.chain: Chain
        self.beta = np.zeros(responses.n_items)

    def solve(self) -> tuple[Stationary, Floats]:
        prior = self.plan.kind == "virtual item"
        ability = self.weighting == "ability"
        self._prepare("users" if ability else self.weighting)
        for k in range(PRIOR_ROUNDS if prior else 1):
            last = not ability and k == (PRIOR_ROUNDS if prior else 1) - 1
            found = self._round(self.tol if last else ROUGH)
        if ability:
            rounds = ROUNDS + prior
            for k in range(rounds):
                self._prepare("ability")
                found = self._round(self.tol if k == rounds - 1 else ROUGH)
        return found, self.beta

    def _prepare(self, weighting: str) -> None:
        """Make the chain under this weighting at the present difficulties."""
        m = self.responses.n_items
        self.data = ItemChain(self.responses.blocks, m, weighting, self.engine, self.beta)
        self.chain = self.data
        self.current = weighting
        if self.plan.kind == "pairs":
            y = pair_counts(self.responses, weighting=weighting, engine=self.engine)
            b = seen_together(self.responses, engine=self.engine) if self.plan.rule == "together" else None
            self.chain = PairChain(regularize(y, self.plan.nu, rule=self.plan.rule, b=b))

    def _round(self, tol: float) -> Stationary:
        """One solve; under a prior its ties are taken at the present difficulties, and its precision is updated."""
        start = np.exp(self.beta)
        if self.plan.kind != "virtual item":
            found = stationary(self.chain, start=start, tol=tol, max_passes=self.max_passes)
            pi = found.pi
        else:
            virtual = np.exp(self._centre())
            tied = TiedChain(self.chain, self._strength() * _log_mean_weight(start, virtual))
            start = np.append(start, virtual)
            found = stationary(tied, start=start, tol=tol, max_passes=self.max_passes)
            pi = found.pi[:-1]
        self.passes += found.passes
        beta = np.log(pi)
        self.beta = beta - beta.mean()
        if self.plan.estimated:
            self.plan = replace(self.plan, alpha=self._empirical_bayes())
        self.tell(f"{self.current} weights: {found.passes} passes, residual {found.residual:.0e}")
        return replace(found, pi=np.exp(self.beta))

    # What the prior adds: strength_i (beta_i - centre) to the balance of item i. Under ability weights the balance is
    # in units of information and the strength is alpha itself; other weights have their own scale for each item.

    def _scale(self) -> Floats:
        if self.current == "ability":
            return np.ones(len(self.beta))
        flow, known = np.exp(self.beta) * self.chain.rates, self.rough_information > 0
        typical = flow[known].sum() / self.rough_information[known].sum() if known.any() else 1.0
        scale = np.full(len(flow), typical)
        np.divide(flow, self.rough_information, out=scale, where=known & (flow > 0))
        return scale

    def _strength(self) -> Floats:
        return self.plan.alpha * self._scale()

    def _centre(self) -> float:
        strength = self._strength()
        return float(strength @ self.beta / strength.sum())

    def _empirical_bayes(self) -> float:
        """One EM step for the precision of the difficulties: alpha = 1 / mean(beta^2 + 1 / (information + alpha))."""
        information = self.rough_information
        if self.current == "ability":
            information = np.exp(self.beta) * self.chain.rates
        known = self.rough_information > 0
        spread = self.beta[known] ** 2 + 1 / (information[known] + self.plan.alpha)
        return float(np.clip(1 / spread.mean(), 1e-3, 1e3))

    def balance(self, found: Stationary) -> Balance:
        prior = self.plan.kind == "virtual item"
        scale = self._scale()
        alpha = self.plan.alpha if prior else 0.0
        return Balance(self.data, self.chain, np.exp(self.beta), alpha * scale, alpha * scale**2)

    def information(self, balance: Balance) -> Floats:
        """Information of each item, without the prior's."""
        if self.current == "ability":
            return balance.pi * self.data.rates
        return self.rough_information


def _log_mean_weight(pi: Floats, virtual: float) -> Floats:
    """h with h (pi - v) = log(pi) - log(v): the tie whose pull is linear in difficulty, as a normal prior's is."""
    gap = np.log(pi / virtual)
    small = np.abs(gap) < 1e-6
    safe = np.where(small, 1.0, gap)
    return np.where(small, 1 - gap / 2, safe / np.expm1(safe)) / virtual


def _findings(plan: Regularization, contraction: float, found: Stationary, tol: float) -> list[Finding]:
    out = [Finding("regularization", "note", f"Regularisation: {plan}.")]
    if contraction > WEAK_LINK:
        out.append(
            Finding(
                "weak_links",
                "warning",
                f"Some groups of items hang together by few common users (contraction {contraction:.3f}).",
                "Differences between the groups are much less sure than within them; the standard errors say how much. "
                "Add anchor items or users who take several forms.",
            )
        )
    if found.residual > tol:
        out.append(
            Finding(
                "not_converged",
                "warning",
                f"The chain stopped at residual {found.residual:.1e}, asked was {tol:.1e}.",
                "Raise max_iter, or look for weak links between groups of items.",
            )
        )
    return out


# ----------------------------------------------------------------------------------------- the class


class SpectralRasch(RaschEstimator):
    """Rasch difficulties with standard errors by the spectral method.

    P(X_li = 1) = 1 / (1 + exp(beta_i - theta_l)); exp(beta) is the stationary distribution of a Markov chain on items.

    Parameters
    ----------
    weighting : "ability", "users" or "pairs"
        How much each user counts. "ability" (default): 97 to 99.8 % as efficient as conditional maximum likelihood.
        "users": every user counts once. "pairs": the paper's; long users count for much more than they know.
    regularization : "auto" or float
        "auto" (default): nothing when all items hang together and each carries information above 25; else a virtual
        item of average difficulty that every item meets, worth a normal prior of precision alpha, which is chosen by
        empirical Bayes. A number is that alpha; 0 forbids it, and then items without a finite estimate are left out and
        a design without a common scale is an error.
    nu, nu_rule : float, "differed" or "together"
        The paper's regularisation, for reproduction: `nu` imaginary disagreements each way for every pair that
        differed in some user's answers (its program), or was seen together (its text). Needs weighting="pairs" or
        "users", and the explicit item-item matrix.
    se : "auto", "dense", "one-pass", "multiplier" or "none"
        How standard errors are computed; `se_method_` says which was used.
    tol : float
        Relative l1 residual of the chain at which to stop. 1e-10: no digit that anyone prints depends on it.
    max_iter : int
        Most passes of one chain solve.
    threads : int, optional
        Default: all this process may use. Results do not depend on it.
    threshold : float, optional
        Values above it count as right, instead of 1 and 0.
    random_state : int
        Seed of the multiplier standard errors.

    Attributes
    ----------
    difficulty_, se_ : float arrays
        Larger = harder; mean zero over the items that have an estimate. NaN without one.
    status_ : array of str
    n_iter_, residual_, contraction_ : int, float, float
        Passes over the data, final residual, and how much one pass shrinks the slowest error (near 1: weak links).
    regularization_ : Regularization
    findings_ : tuple of Finding
    information_ : float array
        Information that the answers carry on each item.

    References
    ----------
    Nguyen & Zhang, "A Spectral Approach to Item Response Theory", NeurIPS 2022. The weights and the standard errors
    are derived in docs/explanation/estimator.md.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> fit = SpectralRasch().fit(datasets.load_lsat())
    >>> fit.difficulty_.round(2).tolist()
    [-1.26, 0.48, 1.24, 0.17, -0.62]
    """

    balance_: Balance
    kept_: Any

    def __init__(
        self,
        *,
        weighting: str = "ability",
        regularization: str | float = "auto",
        nu: float = 0.0,
        nu_rule: str = "differed",
        se: str = "auto",
        tol: float = 1e-10,
        max_iter: int = 10_000,
        threads: int | None = None,
        threshold: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.weighting = weighting
        self.regularization = regularization
        self.nu = nu
        self.nu_rule = nu_rule
        self.se = se
        self.tol = tol
        self.max_iter = max_iter
        self.threads = threads
        self.threshold = threshold
        self.random_state = random_state

    @classmethod
    def paper(cls, *, nu: float = 1.0, nu_rule: str = "differed", **options: Any) -> SpectralRasch:
        """The estimator of the paper's experiments: every pair counts once, nu = 1 on pairs that differed."""
        return cls(weighting="pairs", regularization=0, nu=nu, nu_rule=nu_rule, **options)

    def _estimate(self, responses: Responses, engine: LocalEngine) -> Estimate:
        fit = spectral_difficulty(
            responses,
            weighting=self.weighting,
            regularization=self.regularization,
            nu=self.nu,
            nu_rule=self.nu_rule,
            se=self.se,
            tol=self.tol,
            max_passes=self.max_iter,
            seed=self.random_state,
            engine=engine,
            progress=getattr(self, "_progress", None),
        )
        return Estimate(
            fit.difficulty,
            fit.se,
            fit.status,
            fit.passes,
            fit.residual,
            findings=fit.findings,
            extra={
                "contraction": fit.contraction,
                "solver": fit.solver,
                "se_method": fit.se_method,
                "regularization": fit.regularization,
                "information": fit.information,
                "balance": fit.balance,
                "kept": fit.kept,
            },
        )

    def covariance(self) -> Floats:
        """Covariance matrix of the mean-centred difficulties, items x items; NaN for items without an estimate.

        Dense: meant for up to a few thousand items.
        """
        self._require_fit()
        m = len(self.difficulty_)
        if m > 20_000:
            raise OptionError(f"a covariance matrix of {m:,} items needs {8 * m * m / 1e9:.0f} GB; use se_ instead.")
        full = np.full((m, m), np.nan)
        full[np.ix_(self.kept_, self.kept_)] = covariance(self.balance_)
        return full
