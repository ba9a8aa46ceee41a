"""Rounds of chain solves: what the weights and the prior need to know is taken from the round before.

Weights that do not move with the difficulties need one solve. Ability weights start from "persons" and take abilities
at the difficulties of the round before; the second round moves nothing by a tenth of its standard error. Under a prior
the ties to the virtual item, and its precision, are settled within each round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from spectral_irt.chain.errors import Balance
from spectral_irt.chain.operator import Chain, ItemChain, TiedChain
from spectral_irt.chain.pair_chain import PairChain, pair_counts, regularize, seen_together, smaller_dense
from spectral_irt.chain.regularization import Regularization, prior_precision
from spectral_irt.chain.stationary import Stationary, stationary
from spectral_irt.chain.weights import Weighting, weighting_named
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats

LEAST_ROUNDS, MOST_ROUNDS = 2, 50
ROUGH = 1e-4  # residual of solves whose result is only the start of the next
STEADY = 0.15  # each round moves about this share of the one before, where data rule; under a strong prior more
MANY = 100_000  # answers from which on a rough start saves memory
SETTLED = 0.05  # rounds end when the next would move no item by more than this many standard errors


class Rounds:
    """Solve the chain of these responses; `beta`, `plan` (with its alpha), `passes` and `balance()` hold the result.

    Parameters
    ----------
    information : float array
        Rough information of each threshold (`Design.information`), which sets the scale of the prior.
    tell : callable
        Told what goes on, for progress.
    rough : bool
        One round of weights will do: the result is a place to start from.
    chain : ItemChain, optional
        The chain of these responses under a weighting that does not move, where somebody has it.
    """

    def __init__(
        self,
        responses: Responses,
        weighting: str,
        plan: Regularization,
        information: Floats,
        *,
        tol: float,
        max_passes: int,
        tell: Callable[[str], None],
        rough: bool = False,
        chain: ItemChain | None = None,
    ) -> None:
        self.responses, self.weighting, self.plan = responses, weighting_named(weighting), plan
        if rough and responses.n_responses > MANY:
            self.weighting = self.weighting.rough()
        self.rough_information = information
        self.tol, self.max_passes, self.tell = tol, max_passes, tell
        self.least_rounds, self.most_rounds = (1, 1) if rough else (LEAST_ROUNDS, MOST_ROUNDS)
        self.passes = 0
        self.given = chain
        self.beta = np.zeros(responses.thresholds.n_entries)
        self.data: ItemChain
        self.chain: ItemChain | PairChain
        self.current = self.weighting.first

    def solve(self) -> Stationary:
        self._prepare(self.weighting.first)
        if self.weighting.moving:
            self._solve(ROUGH)  # where the first weights are taken
        elif self.plan.kind != "virtual item":
            return self._solve(self.tol)
        return self._settle()

    def _settle(self) -> Stationary:
        """Solve until nothing moves any more, with ties and ability weights taken anew each time.

        Ties and ability weights are taken at the same difficulties. To settle the ties within fixed ability weights
        would set data and prior of one moment against each other at two, and items that live by the prior would swing.
        """
        move = np.inf
        for k in range(1, self.most_rounds + 1):
            before, last_move = self.beta, move
            if self.weighting.moving:
                self._prepare(self.weighting)
            found = self._solve(self.tol if k >= self.least_rounds else ROUGH)
            move = float(np.max(np.abs(self.beta - before) * np.sqrt(self.information() + self.plan.alpha)))
            # The next move is to this one about as this is to the last.
            share = min(max(move / last_move, STEADY), 1) if last_move > 0 else 1
            if k >= self.least_rounds and move * share < SETTLED:
                break
        return found

    def _prepare(self, weighting: Weighting) -> None:
        """Make the chain under this weighting at the present difficulties."""
        old = self.data if weighting.moving and weighting is self.current else None
        self.data = self.given or ItemChain.under(self.responses, weighting, self.beta, old)
        self.chain = self.data
        self.current = weighting
        if self.plan.kind == "pairs":
            dense = smaller_dense(self.responses)
            y = pair_counts(self.responses, weighting=weighting.name, dense=dense)
            b = seen_together(self.responses) if self.plan.rule == "together" else None
            self.chain = PairChain(regularize(y, self.plan.nu, rule=self.plan.rule, b=b, overwrite=True))

    def _solve(self, tol: float) -> Stationary:
        """One solve; under a prior with the ties, and then the precision, taken at the present difficulties."""
        pi = np.exp(self.beta)  # their log has mean 0, so the virtual item is at 1
        if self.plan.kind != "virtual item":
            found = self._stationary(self.chain, pi, tol)
        else:
            tied = TiedChain(self.chain, self.plan.alpha * self._unit() * self.current.tie(pi))
            found = self._stationary(tied, np.append(pi, 1.0), tol)
        if self.plan.estimated:
            self.plan = replace(self.plan, alpha=prior_precision(self.beta, self.information(), self.plan.alpha))
        self.tell(f"{self.current.name} weights: residual {found.residual:.0e} after {self.passes} passes")
        return found

    def _stationary(self, chain: Chain, start: Floats, tol: float) -> Stationary:
        found = stationary(chain, start=start, tol=tol, max_passes=self.max_passes)
        self.passes += found.passes
        beta = np.log(found.pi[: len(self.beta)])
        self.beta = beta - beta.mean()
        return found

    @property
    def flow(self) -> Floats:
        return np.exp(self.beta) * self.data.rates

    def _unit(self) -> float:
        """Of the prior's pull, in which it adds to the balance of an item."""
        return self.current.unit(self.flow, self.rough_information) if self.plan.kind == "virtual item" else 1.0

    def information(self) -> Floats:
        """What the answers tell about each item, without the prior."""
        return self.current.information(self.flow, self.rough_information)

    def balance(self) -> Balance:
        """The solved chain, ready for its standard errors."""
        alpha = self.plan.alpha if self.plan.kind == "virtual item" else 0.0
        pull = self._unit() * self.current.slope(self.beta)
        return Balance(
            self.data,
            self.chain,
            np.exp(self.beta),
            precision=alpha * pull,
            meat=alpha * pull**2,
            in_information=self.current.in_information,
        )
