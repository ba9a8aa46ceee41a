"""The stationary distribution of a chain: pi with sum_j pi_j Y_ji = pi_i d_i; and rounds of it.

The row-normalized iteration (the paper's accelerated chain) gains a factor of about 30 a pass on ordinary data, a
little more with Anderson's acceleration. Test forms linked in a line mix slowly, which is measured, and then an Arnoldi
method takes over. Small chains are solved exactly by elimination. Ability weights are taken at the difficulties of the
round before, first "persons"; the second round moves nothing by a tenth of its standard error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from spectral_irt.chain.operator import PERSONS, Chain, ItemChain, TiedChain, Weighting, weighting_named
from spectral_irt.chain.prior import Regularization, prior_precision
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, rows_of
from spectral_irt.data.design import Mask
from spectral_irt.data.unlinked import across
from spectral_irt.errors import ConvergenceWarning
from spectral_irt.numerics import Anderson, inner
from spectral_irt.text import listed, stopped

if TYPE_CHECKING:
    from spectral_irt.chain.errors import Balance

SMALL = 32  # up to here the explicit matrix costs no more than a few passes
WINDOW = 5  # differences that Anderson's acceleration looks back on
PATIENCE = 15  # passes before the measured contraction may call for the Arnoldi method
SLOW = 0.7  # contraction above which it does
ARNOLDI = 20  # basis vectors of the Arnoldi method
LEAST_ROUNDS, MOST_ROUNDS = 2, 50
ROUGH = 1e-4  # residual of solves whose result is only the start of the next
STEADY = 0.15  # each round moves about this share of the one before, where data rule; under a strong prior more
MANY = 100_000  # answers from which on a rough start saves memory
SETTLED = 0.05  # rounds end when the next would move no item by more than this many standard errors
WEAK = 0.9  # contraction above which a link is reported
FEW_PEOPLE, THIN = 50, 0.97  # people below, contraction above which it is a warning: a grade that links forms is sound
PASSES = 60
ENOUGH = 0.5  # a decay faster than this, seen over a few passes, cannot hide a weak link
MIXED = 0.05  # a side smaller than this share of the items is a few odd items, not a form


@dataclass(frozen=True, eq=False)
class Stationary:
    """What the solver found: `pi` adds to 1; residual = sum_i |inflow_i - pi_i d_i| / sum_i pi_i d_i.

    `contraction` is the factor by which one row-normalized pass shrinks the slowest error seen (an estimate from
    below); near 1 means weak links between items. `method` is "elimination", "anderson" or "arnoldi".
    """

    pi: Floats
    passes: int
    residual: float
    contraction: float
    method: str


def stationary(
    chain: Chain, *, start: Floats | None = None, tol: float = 1e-10, max_passes: int = 10_000
) -> Stationary:
    """Solve for the stationary distribution to the relative l1 residual `tol`; warn if that is not reached."""
    rates = chain.rates
    if len(rates) <= SMALL:  # exactly; the matrix comes from one pass with many columns
        y = chain.inflow(np.eye(len(rates))).T
        np.fill_diagonal(y, 0)
        pi = gth(y)
        residual = np.abs(pi @ y - pi * rates).sum() / (pi @ rates)
        second = np.sort(np.abs(np.linalg.eigvals(y / rates[:, None])))[-2]  # of the row-normalized chain
        return Stationary(pi, 1, float(residual), float(min(second, 1.0)), "elimination")
    flow = rates.copy() if start is None else start * rates
    found = _anderson(chain, flow / flow.sum(), tol, max_passes)
    if found.residual > tol:
        found = _arnoldi(chain, found, tol, max_passes)
    if found.residual > tol:
        warnings.warn(
            stopped("the chain", found.passes, "passes", "residual", found.residual, tol)
            + " Difficulties across weak links may be off.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return found


def _anderson(chain: Chain, flow: Floats, tol: float, max_passes: int) -> Stationary:
    """Row-normalized iteration on the flow x = pi d, x <- inflow(x / d), with Anderson's acceleration.

    Distances are taken in the norm of a reversible chain, |r|^2 / x, in which the iteration is nearly symmetric.
    """
    rates = chain.rates
    accelerate = Anderson(WINDOW, scale=1 / np.sqrt(flow))
    residual = np.inf
    passes = 0
    while passes < max_passes:
        image = chain.inflow(flow / rates)
        passes += 1
        residual = float(np.abs(image - flow).sum() / flow.sum())
        if residual <= tol:
            break
        trial = accelerate.next(flow, image)
        if passes > PATIENCE and _ritz(accelerate) > SLOW:
            break
        flow = trial / trial.sum() if accelerate.changes and trial.min() > 0 else image
    pi = flow / rates
    return Stationary(pi / pi.sum(), passes, residual, _ritz(accelerate), "anderson")


def _ritz(history: Anderson) -> float:
    """Largest eigenvalue (below 1) of the iteration on the span of the last steps: A s = s + change."""
    if not history.steps:
        return 0.0
    scale: Any = history.scale
    s = np.stack(history.steps) * scale
    image = s + np.stack(history.changes) * scale
    norms = np.sqrt(np.sum(s**2, axis=1))[:, None]
    s, image = s / norms, image / norms
    size, vectors = np.linalg.eigh(inner(s, s))
    kept = size > 1e-10 * size[-1]
    basis = vectors[:, kept] / np.sqrt(size[kept])  # basis.T @ s has orthonormal rows
    small = basis.T @ inner(s, image) @ basis
    return float(min(np.abs(np.linalg.eigvals(small)).max(), 1.0))


def _arnoldi(chain: Chain, found: Stationary, tol: float, max_passes: int) -> Stationary:
    """The dominant eigenvector of the row-normalized chain by the implicitly restarted Arnoldi method."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

    rates, m = chain.rates, len(chain.rates)
    passes = found.passes

    def step(flow: Floats) -> Floats:
        nonlocal passes
        passes += 1
        return chain.inflow(flow.real.ravel() / rates)

    best = found
    size = ARNOLDI
    while passes < max_passes and best.residual > tol and size < m:
        operator = LinearOperator((m, m), matvec=step, dtype=np.float64)
        try:
            _, vectors = eigs(
                operator, k=1, which="LR", v0=best.pi * rates, ncv=size, tol=tol / 10, maxiter=max(4000 // size, 20)
            )
        except ArpackNoConvergence as short:
            vectors = short.eigenvectors
        if vectors.size:
            flow = np.abs(vectors[:, 0].real)
            for _ in range(2):  # plain passes: they make every entry positive and accurate in itself
                image = step(flow)
                residual = float(np.abs(image - flow).sum() / flow.sum())
                flow = image / image.sum()
            if residual < best.residual:
                pi = flow / rates
                best = replace(best, pi=pi / pi.sum(), residual=residual)
        size *= 2
    return replace(best, passes=passes, method="arnoldi")


def gth(rates: Floats) -> Floats:
    """Stationary distribution of a chain with these transition rates (diagonal ignored), by elimination of states.

    Grassmann, Taksar & Heyman (1985): no subtraction, so every entry is accurate to a few units in the last place.
    """
    y = np.array(rates, dtype=float)
    m = len(y)
    np.fill_diagonal(y, 0)
    for k in range(m - 1, 0, -1):
        y[:k, k] /= y[k, :k].sum()
        y[:k, :k] += np.outer(y[:k, k], y[k, :k])
    pi = np.ones(m)
    for k in range(1, m):
        pi[k] = pi[:k] @ y[:k, k]
    return pi / pi.sum()


@dataclass(eq=False)
class Rounds:
    """Solve the chain of these responses; `beta`, `plan` (with its alpha), `passes` and `balance()` hold the result.

    `rough_information` is that of each threshold (`Design.information`), which sets the scale of the prior. `rough`:
    one round of weights will do, for a place to start from. `given`: the chain under a weighting that does not move,
    where somebody has it.
    """

    responses: Responses
    named: str
    plan: Regularization
    rough_information: Floats
    _: KW_ONLY
    tol: float
    max_passes: int
    tell: Callable[[str], None]
    rough: bool = False
    given: ItemChain | None = None
    data: ItemChain = field(init=False)
    chain: Chain = field(init=False)

    def solve(self) -> Stationary:
        """Solve until nothing moves any more, with ties and ability weights taken anew at the same difficulties.

        To settle the ties within fixed ability weights would make items that live by the prior swing.
        """
        self.weighting = weighting_named(self.named)
        if self.rough and self.weighting.moving and self.responses.n_responses > MANY:
            self.weighting = replace(self.weighting, single=True)
        self.beta, self.passes = np.zeros(self.responses.thresholds.n_entries), 0
        self.current = PERSONS if self.weighting.moving else self.weighting
        self._prepare(self.current)
        if self.weighting.moving:
            self._solve(ROUGH)  # where the first weights are taken
        elif self.plan.kind != "virtual item":
            return self._solve(self.tol)
        move, (least, most) = np.inf, (1, 1) if self.rough else (LEAST_ROUNDS, MOST_ROUNDS)
        for k in range(1, most + 1):
            before, last_move = self.beta, move
            if self.weighting.moving:
                self._prepare(self.weighting)
            found = self._solve(self.tol if k >= least else ROUGH)
            move = float(np.max(np.abs(self.beta - before) * np.sqrt(self.information() + self.plan.alpha)))
            # The next move is to this one about as this is to the last.
            share = min(max(move / last_move, STEADY), 1) if last_move > 0 else 1
            if k >= least and move * share < SETTLED:
                break
        return found

    def _prepare(self, weighting: Weighting) -> None:
        """Make the chain under this weighting at the present difficulties."""
        old = self.data if weighting.moving and weighting is self.current else None
        self.data = self.given or ItemChain.under(self.responses, weighting, self.beta, old)
        self.chain = self.data
        self.current = weighting
        if self.plan.kind == "pairs":
            from spectral_irt.chain.paper import PairChain, pair_counts, regularize, seen_together, smaller_dense

            dense = smaller_dense(self.responses)
            y = pair_counts(self.responses, weighting=weighting.name, dense=dense)
            b = seen_together(self.responses) if self.plan.rule == "together" else None
            self.chain = PairChain(regularize(y, self.plan.nu, rule=self.plan.rule, b=b, overwrite=True))

    def _solve(self, tol: float) -> Stationary:
        """One solve; under a prior with the ties, and then the precision, taken at the present difficulties."""
        chain, start = self.chain, np.exp(self.beta)  # their log has mean 0, so the virtual item is at 1
        if self.plan.kind == "virtual item":
            tie = self.plan.alpha * self._unit() * self.current.tie(start)
            chain, start = TiedChain(chain, tie), np.append(start, 1.0)
        found = stationary(chain, start=start, tol=tol, max_passes=self.max_passes)
        self.passes += found.passes
        beta = np.log(found.pi[: len(self.beta)])
        self.beta = beta - beta.mean()
        if self.plan.estimated:
            self.plan = replace(self.plan, alpha=prior_precision(self.beta, self.information(), self.plan.alpha))
        self.tell(f"{self.current.name} weights: residual {found.residual:.0e} after {self.passes} passes")
        return found

    def information(self) -> Floats:
        """What the answers tell about each item, without the prior: what flows through it, or by the counts."""
        return np.exp(self.beta) * self.data.rates if self.current.moving else self.rough_information

    def _unit(self) -> float:
        """Flow per information: the unit in which the prior's pull adds to the balance of an item."""
        known = float(self.rough_information.sum())
        if self.current.moving or known == 0:
            return 1.0
        return float(np.sum(np.exp(self.beta) * self.data.rates)) / known

    def balance(self) -> Balance:
        """The solved chain, ready for its standard errors."""
        from spectral_irt.chain.errors import Balance

        precision = meat = np.zeros(len(self.beta))
        if self.plan.kind == "virtual item":
            pull = self._unit() * self.current.slope(self.beta)
            precision, meat = self.plan.alpha * pull, self.plan.alpha * pull**2
        return Balance(self.data, self.chain, np.exp(self.beta), precision, meat, self.current.moving)


def linked_items(responses: Responses, mixed: bool = False) -> tuple[Ints, Mask]:
    """Which group each item is in, linked by people who answered two, numbered from 0 by falling size; and which of
    them such people answered. With a `mixed` score only, where the others say nothing."""
    from scipy.sparse.csgraph import connected_components

    links = responses.entries.sum(_links, responses.thresholds, mixed)
    return by_size(connected_components(links, directed=False)[1]), np.diff(sparse.csr_array(links).indptr) > 0


def by_size(groups: Ints) -> Ints:
    """The groups numbered from 0 by falling size."""
    return np.argsort(np.argsort(-np.bincount(groups), kind="stable"))[groups]


def _links(block: Block, layout: Thresholds, mixed: bool) -> sparse.csr_array:
    """Items x items: an entry for each item that was answered and the first of its group, by people of this block."""
    from scipy.sparse.csgraph import connected_components

    rows, m = rows_of(block, layout), layout.n_items
    some = rows.take(np.flatnonzero(rows.informative if mixed else rows.counts > 1))
    other = np.repeat(some.items[some.indptr[:-1]], some.counts)
    graph = sparse.csr_array((np.ones(len(other), dtype=np.int32), (some.items, other)), shape=(m, m))
    labels = connected_components(graph, directed=False)[1]
    first, met = np.unique(labels, return_index=True)[1], np.unique(some.items)
    return sparse.csr_array((np.ones(len(met), dtype=np.int32), (met, first[labels[met]])), shape=(m, m))


def weak_links(responses: Responses, *, seed: int = 0) -> Finding | None:
    """A finding that names the two sides of the weakest link, if it is weak; None otherwise.

    The slowest error of the row-normalized chain is nearly constant on each side of it: a few passes bring it out of a
    random start, its sign names the sides, and its rate of decay says how weak the link is. The items must be in one
    strongly connected component (`Responses.largest_component`).
    """
    m = responses.n_items
    if m < 4:
        return None
    chain, of_items = ItemChain.under(responses, PERSONS), responses.thresholds
    rates = of_items.sum(chain.rates)

    def inflow(flow: Floats) -> Floats:
        """Between items: what flows between all their thresholds."""
        return of_items.sum(chain.inflow(flow[of_items.item]))

    rng = np.random.default_rng(seed)
    flow = rates / rates.sum()
    error = rng.standard_normal(m) * np.sqrt(flow)
    rate = 0.0
    for k in range(PASSES):
        error -= flow * error.sum()
        error /= np.abs(error).sum()
        flow = inflow(flow / rates)  # goes along to its limit, so that the error is freed of it
        flow /= flow.sum()
        moved = inflow(error / rates)
        moved -= flow * moved.sum()
        rate = float(np.abs(moved).sum() / np.abs(error).sum())
        error = moved
        if k >= 5 and rate < ENOUGH:
            return None
    if rate <= WEAK:
        return None
    side = error / flow > 0
    if min(side.mean(), 1 - side.mean()) < MIXED:
        return None
    links = responses.entries.sum(across, side[of_items.item].astype(np.int64), True, of_items)
    one, other = responses.items[side], responses.items[~side]
    few = links < FEW_PEOPLE or rate > THIN
    return Finding(
        "weak_links",
        "warning" if few else "note",
        f"{'Only ' if few else ''}{links:,} of {responses.n_persons:,} people link two groups of {len(one):,} and "
        f"{len(other):,} items ({listed(one)} | {listed(other)}).",
        "Differences between the groups are less sure than within them; the standard errors say how much."
        + (" Add common items, or people who take several forms." if few else ""),
        tuple((one if len(one) < len(other) else other).tolist()),
    )
