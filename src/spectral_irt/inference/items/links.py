"""Groups of items that share most of their people, and how many people link one group to another.

From an item to one of its people, and on to one of that person's items: the slower this walk leaves a group of items,
the weaker the group is linked to the rest. Its second eigenvector is nearly constant on each side of the weakest link.
The items are cut there, then the parts in turn, as long as a link is weak. One pass over the answers for each step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.chain.prior import Neighbors
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints

SLOW = 0.8  # second eigenvalue from which items are cut in two: four of five steps stay on their side
MOST = 12  # groups: as many as can be drawn and told apart
FEW = 4  # items: fewer are not cut
ODD = 0.05  # a side with a smaller share of the items is a few odd items, not a form
WEAK = 0.05  # share of answers that cross from one group to the other, below which the link is weak


@dataclass(frozen=True, eq=False)
class ItemLinks:
    """What `item_links` found.

    `group` of every item, numbered so that linked groups come one after the other (-1: nobody who answered another item
    answered this one); how many `items` each has; groups x groups, the `persons` who answered items of both (on the
    diagonal, items of that group), and the `flow` of the walk from an item of the smaller group: of the answers of the
    people who met such an item, the share that is to items of the other. `slowness` is the second eigenvalue of the
    walk over all items: near 1, the weakest link is weak; NaN for fewer than four items.
    """

    group: Ints
    items: Ints
    persons: Ints
    flow: Floats
    slowness: float


def item_links(responses: Responses, *, most: int = MOST) -> ItemLinks:
    """Cut the items at weak links into at most so many groups, and count the people who link the groups."""
    walk = Neighbors(responses)
    linked = np.where(walk.alone, -1, np.minimum(walk.parts(), most - 1))  # the largest first
    groups = [np.flatnonzero(linked == k) for k in range(linked.max(initial=-1) + 1)]
    cuts = [_cut(responses, group) for group in groups]
    whole = 1.0 if len(groups) > 1 else cuts[0][0] if cuts else float("nan")
    while len(groups) < most:
        weakest = max(range(len(cuts)), key=lambda k: np.nan_to_num(cuts[k][0], nan=-1.0), default=None)
        if weakest is None or not cuts[weakest][0] > SLOW:
            break
        side = cuts[weakest][1]
        halves = [groups[weakest][~side], groups[weakest][side]]
        groups[weakest : weakest + 1] = halves
        cuts[weakest : weakest + 1] = [_cut(responses, half) for half in halves]
    group = np.full(responses.n_items, -1)
    for k, members in enumerate(groups):
        group[members] = k
    member = (group[:, None] == np.arange(len(groups))).astype(np.float64)
    items = member.sum(axis=0)
    persons = responses.sum(_in_both, member).astype(np.int64)
    flow = member.T @ walk.level(member) / np.minimum.outer(items, items)
    return ItemLinks(group, items.astype(np.int64), persons, flow, whole)


def _cut(responses: Responses, members: Ints) -> tuple[float, np.ndarray]:
    """The second eigenvalue of the walk among these items, and on which side of the weakest link each of them is.

    NaN where they are too few, or where one side is a few odd items: then they stay together.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    m = len(members)
    if m < FEW:
        return float("nan"), np.zeros(m, dtype=bool)
    among = Neighbors(responses.take_items(members) if m < responses.n_items else responses)
    walk = LinearOperator((m, m), matvec=lambda v: among.level(np.ravel(v)), dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(m)
    values, vectors = eigsh(walk, k=2, which="LA", v0=start, tol=1e-3)
    slow = np.argmin(values)
    side = vectors[:, slow] > 0
    if side[0]:  # the same numbers whatever the sign of the vector
        side = ~side
    odd = min(side.mean(), 1 - side.mean()) < ODD
    return (float("nan") if odd else float(values[slow])), side


def _in_both(block: Block, member: Floats) -> Floats:
    """Groups x groups: people who answered items of both."""
    right, wrong = block.halves(len(member))
    met = ((right @ member) + (wrong @ member) > 0).astype(np.float64)
    return met.T @ met
