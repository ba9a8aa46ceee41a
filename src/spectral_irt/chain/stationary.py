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

from spectral_irt.chain.operator import PERSONS, Chain, ItemChain, MatrixChain, TiedChain, Weighting, weighting_named
from spectral_irt.chain.prior import Regularization, prior_precision
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, rows_of
from spectral_irt.data.design import Mask
from spectral_irt.data.unlinked import across
from spectral_irt.errors import ConvergenceWarning
from spectral_irt.numerics import Anderson, inner
from spectral_irt.text import listed, stopped_early

if TYPE_CHECKING:
    from spectral_irt.chain.errors import Balance

ELIMINATION_ITEMS = 32  # up to here the explicit matrix costs no more than a few passes
ANDERSON_WINDOW = 5  # differences that Anderson's acceleration looks back on
ANDERSON_PATIENCE = 15  # passes before the measured contraction may call for the Arnoldi method
SLOW_CONTRACTION = 0.7  # above which it does
ARNOLDI_VECTORS = 20  # of its first basis
LEAST_ROUNDS = 2  # of weights: the second moves nothing by a tenth of its standard error
MOST_ROUNDS = 50
ROUGH_RESIDUAL = 1e-4  # of solves whose result is only the start of the next
USUAL_SHARE = 0.15  # of a round's move to that of the round before, where data rule; under a strong prior more
LARGE_DATA = 100_000  # responses from which on single precision is worth its memory in a rough start
SETTLED_MOVE = 0.05  # rounds end when the next would move no item by more than this many standard errors

WEAK_CONTRACTION = 0.9  # above which a link is reported
THIN_CONTRACTION = 0.97  # above which it is a warning ...
FEW_LINKING_PERSONS = 50  # ... and below which: a grade that links forms is sound
LINK_PASSES = 60  # that bring out the weakest link
FAST_DECAY = 0.5  # seen over a few passes, cannot hide a weak link
SMALLEST_SIDE = 0.05  # a side smaller than this share of the items is a few odd items, not a form


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
    if len(rates) <= ELIMINATION_ITEMS:  # exactly; the matrix comes from one pass with many columns
        y = chain.inflow(np.eye(len(rates))).T
        np.fill_diagonal(y, 0)
        pi = gth(y)
        residual = np.abs(pi @ y - pi * rates).sum() / (pi @ rates)
        second = np.sort(np.abs(np.linalg.eigvals(y / rates[:, None])))[-2]  # of the row-normalized chain
        return Stationary(pi, 1, float(residual), float(min(second, 1.0)), "elimination")
    flow = rates.copy()
    if start is not None:
        flow = start * rates
    solution = _anderson(chain, flow / flow.sum(), tol, max_passes)
    if solution.residual > tol:
        solution = _arnoldi(chain, solution, tol, max_passes)
    if solution.residual > tol:
        warnings.warn(
            stopped_early("the chain", solution.passes, "passes", "residual", solution.residual, tol)
            + " Difficulties across weak links may be off.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return solution


def _anderson(chain: Chain, flow: Floats, tol: float, max_passes: int) -> Stationary:
    """Row-normalized iteration on the flow x = pi d, x <- inflow(x / d), with Anderson's acceleration.

    Distances are taken in the norm of a reversible chain, |r|^2 / x, in which the iteration is nearly symmetric.
    """
    rates = chain.rates
    accelerate = Anderson(ANDERSON_WINDOW, scale=1 / np.sqrt(flow))
    residual = np.inf
    passes = 0
    while passes < max_passes:
        image = chain.inflow(flow / rates)
        passes += 1
        residual = float(np.abs(image - flow).sum() / flow.sum())
        if residual <= tol:
            break
        trial = accelerate.next(flow, image)
        if passes > ANDERSON_PATIENCE and _ritz(accelerate) > SLOW_CONTRACTION:
            break
        flow = image
        if accelerate.changes and trial.min() > 0:
            flow = trial / trial.sum()
    pi = flow / rates
    return Stationary(pi / pi.sum(), passes, residual, _ritz(accelerate), "anderson")


def _ritz(history: Anderson) -> float:
    """Largest eigenvalue (below 1) of the iteration on the span of the last steps: A s = s + change."""
    if not history.steps:
        return 0.0
    scale: Any = history.scale
    steps = np.stack(history.steps) * scale
    images = steps + np.stack(history.changes) * scale
    norms = np.sqrt(np.sum(steps**2, axis=1))[:, None]
    steps /= norms
    images /= norms
    size, vectors = np.linalg.eigh(inner(steps, steps))
    independent = size > 1e-10 * size[-1]
    basis = vectors[:, independent] / np.sqrt(size[independent])  # basis.T @ steps has orthonormal rows
    projected = basis.T @ inner(steps, images) @ basis
    return float(min(np.abs(np.linalg.eigvals(projected)).max(), 1.0))


def _arnoldi(chain: Chain, start: Stationary, tol: float, max_passes: int) -> Stationary:
    """The dominant eigenvector of the row-normalized chain by the implicitly restarted Arnoldi method."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

    rates = chain.rates
    m = len(rates)
    passes = start.passes

    def step(flow: Floats) -> Floats:
        nonlocal passes
        passes += 1
        return chain.inflow(flow.real.ravel() / rates)

    best = start
    size = ARNOLDI_VECTORS
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
    chain: MatrixChain = field(init=False)

    def solve(self) -> Stationary:
        """Solve until nothing moves any more, with ties and ability weights taken anew at the same difficulties.

        To settle the ties within fixed ability weights would make items that live by the prior swing.
        """
        self.weighting = weighting_named(self.named)
        if self.rough and self.weighting.moving and self.responses.n_responses > LARGE_DATA:
            self.weighting = replace(self.weighting, single=True)
        self.beta = np.zeros(self.responses.thresholds.n_entries)
        self.passes = 0
        self.current = PERSONS if self.weighting.moving else self.weighting
        self._prepare(self.current)
        if self.weighting.moving:
            self._solve(ROUGH_RESIDUAL)  # where the first weights are taken
        elif self.plan.kind != "virtual item":
            return self._solve(self.tol)
        if self.rough:
            return self._rounds(least=1, most=1)
        return self._rounds(least=LEAST_ROUNDS, most=MOST_ROUNDS)

    def _rounds(self, *, least: int, most: int) -> Stationary:
        """Rounds of weights and ties taken anew, until the next would move no item by much."""
        move = np.inf
        for k in range(1, most + 1):
            beta_before = self.beta
            last_move = move
            if self.weighting.moving:
                self._prepare(self.weighting)
            solution = self._solve(self.tol if k >= least else ROUGH_RESIDUAL)
            move = float(np.max(np.abs(self.beta - beta_before) * np.sqrt(self.information() + self.plan.alpha)))
            share = 1.0  # of the next move to this one: about as this is to the last
            if last_move > 0:
                share = min(max(move / last_move, USUAL_SHARE), 1)
            if k >= least and move * share < SETTLED_MOVE:
                break
        return solution

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
        chain: Chain = self.chain
        start = np.exp(self.beta)  # their log has mean 0, so the virtual item is at 1
        if self.plan.kind == "virtual item":
            tie = self.plan.alpha * self._unit() * self.current.tie(start)
            chain = TiedChain(chain, tie)
            start = np.append(start, 1.0)
        solution = stationary(chain, start=start, tol=tol, max_passes=self.max_passes)
        self.passes += solution.passes
        beta = np.log(solution.pi[: len(self.beta)])
        self.beta = beta - beta.mean()
        if self.plan.estimated:
            self.plan = replace(self.plan, alpha=prior_precision(self.beta, self.information(), self.plan.alpha))
        self.tell(f"{self.current.name} weights: residual {solution.residual:.0e} after {self.passes} passes")
        return solution

    def information(self) -> Floats:
        """What the answers tell about each item, without the prior: what flows through it, or by the counts."""
        if self.current.moving:
            return np.exp(self.beta) * self.data.rates
        return self.rough_information

    def _unit(self) -> float:
        """Flow per information: the unit in which the prior's pull adds to the balance of an item."""
        information = float(self.rough_information.sum())
        if self.current.moving or information == 0:
            return 1.0
        return float(np.sum(np.exp(self.beta) * self.data.rates)) / information

    def balance(self) -> Balance:
        """The solved chain, ready for its standard errors."""
        from spectral_irt.chain.errors import Balance

        precision = np.zeros(len(self.beta))
        meat = np.zeros(len(self.beta))
        if self.plan.kind == "virtual item":
            pull = self._unit() * self.current.slope(self.beta)
            precision = self.plan.alpha * pull
            meat = self.plan.alpha * pull**2
        return Balance(self.data, self.chain, np.exp(self.beta), precision, meat, self.current.moving)


def linked_items(responses: Responses, mixed: bool = False) -> tuple[Ints, Mask]:
    """Which group each item is in, linked by people who answered two, numbered from 0 by falling size; and which of
    them such people answered. With a `mixed` score only, where the others say nothing."""
    from scipy.sparse.csgraph import connected_components

    links = responses.entries.sum(_links, responses.thresholds, mixed)
    groups = by_size(connected_components(links, directed=False)[1])
    answered = np.diff(sparse.csr_array(links).indptr) > 0
    return groups, answered


def by_size(groups: Ints) -> Ints:
    """The groups numbered from 0 by falling size."""
    return np.argsort(np.argsort(-np.bincount(groups), kind="stable"))[groups]


def _links(block: Block, layout: Thresholds, mixed: bool) -> sparse.csr_array:
    """Items x items: an entry for each item that was answered and the first of its group, by people of this block."""
    from scipy.sparse.csgraph import connected_components

    rows = rows_of(block, layout)
    m = layout.n_items
    links_items = rows.informative if mixed else rows.counts > 1
    linking = rows.take(np.flatnonzero(links_items))
    first_item_of_person = np.repeat(linking.items[linking.indptr[:-1]], linking.counts)
    ones = np.ones(len(first_item_of_person), dtype=np.int32)
    graph = sparse.csr_array((ones, (linking.items, first_item_of_person)), shape=(m, m))
    group = connected_components(graph, directed=False)[1]
    _, first_item_of_group = np.unique(group, return_index=True)
    answered = np.unique(linking.items)
    ones = np.ones(len(answered), dtype=np.int32)
    return sparse.csr_array((ones, (answered, first_item_of_group[group[answered]])), shape=(m, m))


def weak_links(responses: Responses, *, seed: int = 0) -> Finding | None:
    """A finding that names the two sides of the weakest link, if it is weak; None otherwise.

    The items must be in one strongly connected component (`Responses.largest_component`).
    """
    if responses.n_items < 4:
        return None
    link = _weakest_link(responses, seed)
    if link is None:
        return None
    side, contraction = link
    sides_of_thresholds = side[responses.thresholds.item].astype(np.int64)
    n_linking = responses.entries.sum(across, sides_of_thresholds, True, responses.thresholds)
    return _weak_link_finding(responses, side, n_linking, contraction)


def _weakest_link(responses: Responses, seed: int) -> tuple[Mask, float] | None:
    """On which side of the weakest link each item is, and its contraction; None where no link is weak.

    The slowest error of the row-normalized chain is nearly constant on each side of it: a few passes bring it out of a
    random start, its sign names the sides, and its rate of decay says how weak the link is.
    """
    chain = ItemChain.under(responses, PERSONS)
    thresholds = responses.thresholds
    rates = thresholds.sum(chain.rates)

    def inflow(flow: Floats) -> Floats:
        """Between items: what flows between all their thresholds."""
        return thresholds.sum(chain.inflow(flow[thresholds.item]))

    rng = np.random.default_rng(seed)
    flow = rates / rates.sum()
    error = rng.standard_normal(responses.n_items) * np.sqrt(flow)
    contraction = 0.0
    for k in range(LINK_PASSES):
        error -= flow * error.sum()
        error /= np.abs(error).sum()
        flow = inflow(flow / rates)  # goes along to its limit, so that the error is freed of it
        flow /= flow.sum()
        image = inflow(error / rates)
        image -= flow * image.sum()
        contraction = float(np.abs(image).sum() / np.abs(error).sum())
        error = image
        if k >= 5 and contraction < FAST_DECAY:
            return None
    side = error / flow > 0
    smaller_share = min(side.mean(), 1 - side.mean())
    if contraction <= WEAK_CONTRACTION or smaller_share < SMALLEST_SIDE:
        return None
    return side, contraction


def _weak_link_finding(responses: Responses, side: Mask, n_linking: int, contraction: float) -> Finding:
    first = responses.items[side]
    second = responses.items[~side]
    smaller = first if len(first) < len(second) else second
    sides = f"{len(first):,} and {len(second):,} items ({listed(first)} | {listed(second)})"
    sentence = f"{n_linking:,} of {responses.n_persons:,} people link two groups of {sides}."
    remedy = "Differences between the groups are less sure than within them; the standard errors say how much."
    if n_linking >= FEW_LINKING_PERSONS and contraction <= THIN_CONTRACTION:
        return Finding("weak_links", "note", sentence, remedy, tuple(smaller.tolist()))
    remedy += " Add common items, or people who take several forms."
    return Finding("weak_links", "warning", f"Only {sentence}", remedy, tuple(smaller.tolist()))
