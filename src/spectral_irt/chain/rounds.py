"""Rounds of chain solves: what the weights and the prior need to know is taken from the round before.

"users" and "pairs" weights need one solve. Ability weights start from "users" and take abilities at the difficulties of
the round before; the second round moves nothing by a tenth of its standard error. Under a prior the ties to the virtual
item, and its precision, are settled within each round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from spectral_irt.chain.covariance import Balance
from spectral_irt.chain.operator import Chain, ItemChain, TiedChain
from spectral_irt.chain.pairs import PairChain, pair_counts, regularize, seen_together, smaller_dense
from spectral_irt.chain.regularization import Regularization, log_mean_weight, prior_precision
from spectral_irt.chain.stationary import Stationary, stationary
from spectral_irt.chain.weights import WEIGHTINGS
from spectral_irt.errors import check_option
from spectral_irt.responses import Responses
from spectral_irt.responses.block import Floats

LEAST_ROUNDS, MOST_ROUNDS = 2, 50
ROUGH = 1e-4  # residual of solves whose result is only the start of the next
STEADY = 0.15  # each round moves about this share of the one before, where data rule; under a strong prior more
SETTLED = 0.05  # rounds end when the next would move no item by more than this many standard errors


class Rounds:
    """Solve the chain of these responses; `beta`, `plan` (with its alpha), `passes` and `balance()` hold the result.

    Parameters
    ----------
    information : float array
        Rough information of each item (`Design.information`), which sets the scale of the prior.
    tell : callable
        Told what goes on, for progress.
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
    ) -> None:
        check_option("weighting", weighting, WEIGHTINGS)
        self.responses, self.weighting, self.plan = responses, weighting, plan
        self.rough_information = information
        self.tol, self.max_passes, self.tell = tol, max_passes, tell
        self.passes = 0
        self.beta = np.zeros(responses.n_items)
        self.data: ItemChain
        self.chain: Chain
        self.current = ""

    def solve(self) -> Stationary:
        if self.weighting == "ability":
            self._prepare("users")
            self._solve(ROUGH)  # where the first ability weights are taken
        else:
            self._prepare(self.weighting)
            if self.plan.kind != "virtual item":
                return self._solve(self.tol)
        return self._settle()

    def _settle(self) -> Stationary:
        """Solve until nothing moves any more, with ties and ability weights taken anew each time.

        Ties and ability weights are taken at the same difficulties. To settle the ties within fixed ability weights
        would set data and prior of one moment against each other at two, and items that live by the prior would swing.
        """
        move = np.inf
        for k in range(1, MOST_ROUNDS + 1):
            before, last_move = self.beta, move
            if self.weighting == "ability":
                self._prepare("ability")
            found = self._solve(self.tol if k >= LEAST_ROUNDS else ROUGH)
            move = float(np.max(np.abs(self.beta - before) * np.sqrt(self.information() + self.plan.alpha)))
            # The next move is to this one about as this is to the last.
            share = min(max(move / last_move, STEADY), 1) if last_move > 0 else 1
            if k >= LEAST_ROUNDS and move * share < SETTLED:
                break
        return found

    def _prepare(self, weighting: str) -> None:
        """Make the chain under this weighting at the present difficulties."""
        if weighting == "ability":
            old = self.data if self.current == "ability" else None
            self.data = ItemChain.able(self.responses, self.beta, old)
        else:
            self.data = ItemChain.counting(self.responses, weighting)
        self.chain = self.data
        self.current = weighting
        if self.plan.kind == "pairs":
            dense = smaller_dense(self.responses)
            y = pair_counts(self.responses, weighting=weighting, dense=dense)
            b = seen_together(self.responses) if self.plan.rule == "together" else None
            self.chain = PairChain(regularize(y, self.plan.nu, rule=self.plan.rule, b=b, overwrite=True))

    def _solve(self, tol: float) -> Stationary:
        """One solve; under a prior with the ties, and then the precision, taken at the present difficulties."""
        pi = np.exp(self.beta)  # their log has mean 0, so the virtual item is at 1
        if self.plan.kind != "virtual item":
            found = self._stationary(self.chain, pi, tol)
        else:
            tied = TiedChain(self.chain, self.plan.alpha * self._unit() * self._tie_weight())
            found = self._stationary(tied, np.append(pi, 1.0), tol)
        if self.plan.estimated:
            self.plan = replace(self.plan, alpha=prior_precision(self.beta, self.information(), self.plan.alpha))
        self.tell(f"{self.current} weights: residual {found.residual:.0e} after {self.passes} passes")
        return found

    def _stationary(self, chain: Chain, start: Floats, tol: float) -> Stationary:
        found = stationary(chain, start=start, tol=tol, max_passes=self.max_passes)
        self.passes += found.passes
        beta = np.log(found.pi[: len(self.beta)])
        self.beta = beta - beta.mean()
        return found

    # What the prior adds to the balance of item i: alpha (beta_i - mean beta) under ability weights, whose balance is
    # in units of information. Other weights have a unit of their own; and what the answers push with does not fade
    # there as an item gets harder, so the prior's pull must grow, or an item that nobody got right would run away: it
    # is 2 sinh(beta / 2). Both pulls are odd, so that the virtual item has the average difficulty.

    def _tie_weight(self) -> Floats:
        pi = np.exp(self.beta)
        return log_mean_weight(pi) if self.current == "ability" else 1 / np.sqrt(pi)

    def _unit(self) -> float:
        if self.current == "ability" or self.plan.kind != "virtual item":
            return 1.0
        known = float(self.rough_information.sum())
        return float(np.sum(np.exp(self.beta) * self.data.rates)) / known if known > 0 else 1.0

    def information(self) -> Floats:
        """What the answers tell about each item, without the prior."""
        if self.current == "ability":
            return np.exp(self.beta) * self.data.rates
        return self.rough_information

    def balance(self) -> Balance:
        """The solved chain, ready for its standard errors."""
        alpha = self.plan.alpha if self.plan.kind == "virtual item" else 0.0
        unit, in_information = self._unit(), self.current == "ability"
        slope = np.ones(len(self.beta)) if in_information else np.cosh(self.beta / 2)  # of the prior's pull
        return Balance(
            self.data,
            self.chain,
            np.exp(self.beta),
            precision=alpha * unit * slope,
            meat=alpha * (unit * slope) ** 2,
            in_information=in_information,
        )
