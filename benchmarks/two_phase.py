"""The published spectral algorithm for the partial credit model, in two phases; for comparison.

Phase one: for each level k a chain on items alone, from i to j by people with X_i = k and X_j = k - 1. It gives the
thresholds of level k up to a shift. Phase two: the shift of each level against the first, from one moment,

    exp(shift_k) = sum e^{b_i1} #{X_i = 1, X_j = k - 1} / sum e^{b_jk} #{X_i = 0, X_j = k},     i != j.

It uses pairs of one level only, and one number to join the levels; the chain on all thresholds uses every pair.

References
----------
Nguyen & Zhang, "Novel Spectral Algorithms for the Partial Credit Model", ICML 2024.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectral_irt.chain.operator import ItemChain
from spectral_irt.chain.stationary import stationary
from spectral_irt.chain.weights import PAIRS
from spectral_irt.data.block import Block
from spectral_irt.data.design import estimable, require_connected
from spectral_irt.data.responses import Responses
from spectral_irt.data.thresholds import Thresholds

Floats = NDArray[np.float64]


class TwoPhase:
    """Thresholds of the items that have all of theirs; NaN for the others."""

    def fit(self, responses: Responses) -> TwoPhase:
        rest, kept, _ = estimable(responses)
        beta = two_phase(rest)
        self.thresholds_ = np.full(responses.thresholds.n_entries, np.nan)
        self.thresholds_[kept[responses.thresholds.item]] = beta - rest.thresholds.averaging() @ beta
        return self


def two_phase(responses: Responses) -> Floats:
    """Thresholds; each level must be connected by itself."""
    steps = responses.thresholds
    beta = np.zeros(steps.n_entries)
    for level in range(1, steps.widest + 1):
        mine = steps.level == level
        if mine.sum() < 2:
            continue
        answers = responses.entries.take_items(mine)
        require_connected(answers)
        found = stationary(ItemChain.under(answers, PAIRS))
        beta[mine] = np.log(found.pi) - np.log(found.pi).mean()
    above, below = responses.entries.sum(_moments, np.exp(beta), steps)
    for level in range(2, steps.widest + 1):
        beta[steps.level == level] += np.log(above[level] / below[level])
    return beta


def _moments(block: Block, pi: Floats, steps: Thresholds) -> tuple[Floats, Floats]:
    """Both sums of every level."""
    passed, failed = block.halves(steps.n_entries)
    first = passed @ np.where(steps.level == 1, pi, 0.0)  # sum of e^b over X_i = 1
    none = failed @ (steps.level == 1).astype(float)  # how many X_i = 0
    above, below = np.zeros(steps.widest + 1), np.zeros(steps.widest + 1)
    for level in range(2, steps.widest + 1):
        at = steps.level == level
        above[level] = first @ (failed @ at.astype(float))
        below[level] = none @ (passed @ np.where(at, pi, 0.0))
        if level == 2:  # an item in category 1 is not its own partner
            second = np.flatnonzero(at)
            above[level] -= (failed.T @ np.ones(block.n_persons))[second] @ pi[second - 1]
    return above, below
