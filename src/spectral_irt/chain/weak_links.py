"""Weak links: groups of items that are connected by few common people.

The slowest error of the row-normalized chain is nearly constant on each side of the weakest link. A few passes bring it
out of a random start; its sign names the sides, and its rate of decay says how weak the link is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectral_irt.chain.operator import ItemChain
from spectral_irt.chain.weights import PERSONS
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.design import across
from spectral_irt.errors import listed

WEAK = 0.9  # contraction above which a link is reported
FEW_PEOPLE, THIN = 50, 0.97  # people below, contraction above which it is a warning: a grade that links forms is sound
PASSES = 60
ENOUGH = 0.5  # a decay faster than this, seen over a few passes, cannot hide a weak link
MIXED = 0.05  # a side smaller than this share of the items is a few odd items, not a form


def weak_links(responses: Responses, *, seed: int = 0) -> Finding | None:
    """A finding that names the two sides of the weakest link, if it is weak; None otherwise.

    The items must be in one strongly connected component (`Responses.largest_component`).
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
    return _finding(responses, side, rate)


def _finding(responses: Responses, side: NDArray[np.bool_], rate: float) -> Finding:
    layout = responses.thresholds
    links = responses.entries.sum(across, side[layout.item].astype(np.int64), True, layout)
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
