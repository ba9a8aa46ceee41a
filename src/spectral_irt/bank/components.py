"""Which items of a calibration are on one scale.

Groups of items that no answers link have no common scale: their distance is the prior's. A bank numbers them, 0 being
the one whose items have the status "ok", and keeps the numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints

MEASURED = ("ok", "apart", "anchored")  # the status of items that answers have placed, if only within their group
ON_SCALE = ("ok", "anchored")  # ... and on the scale of the calibration


def is_measured(status: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isin(status.astype(str), MEASURED)


def on_scale(status: NDArray[Any]) -> NDArray[np.bool_]:
    """Items with an estimate of their own, or an anchor, on the common scale."""
    return np.isin(status.astype(str), ON_SCALE)


def groups_of(responses: Responses, joined: Ints, measured: NDArray[np.bool_]) -> Ints:
    """The group of every item: those in one strongly connected component of the answers, and of what is `joined`.

    `joined` numbers the items that are known to share a scale (-1: nothing is known); groups keep the lowest number of
    those in them, others get the next ones by falling size. An item that no answers place (not `measured`) goes with
    the items that its people answered.
    """
    component = _components(responses, joined)
    out = np.full(len(joined), -1)
    named: dict[int, int] = {}
    for label, number in zip(component[joined >= 0].tolist(), joined[joined >= 0].tolist(), strict=True):
        named[label] = min(number, named.get(label, number))
    sizes = np.bincount(component[measured], minlength=component.max(initial=0) + 1)
    following = int(joined.max(initial=-1)) + 1
    for label in np.argsort(-sizes, kind="stable").tolist():
        if sizes[label] and label not in named:
            named[label] = following
            following += 1
    out[measured] = [named[label] for label in component[measured].tolist()]
    if not measured.all():
        home = responses.sum(_company, out, following)
        out[~measured] = np.argmax(home, axis=1)[~measured]
    return out


def parts_before(information: Floats, group: Ints, known: NDArray[np.bool_], loose: NDArray[np.bool_]) -> Ints:
    """Which items of a bank hang together through people, numbered; -1 for those that nothing is known of.

    The information matrix tells; where a bank keeps none, items whose standard error is infinite (`loose`) go by their
    group, and all others are one part.
    """
    from scipy.sparse.csgraph import connected_components

    if information.ndim == 1:
        return np.where(known, np.where(loose, 1 + group, 0), -1)
    return np.where(known, connected_components(sparse.csr_array(information != 0), directed=False)[1], -1)


def parts_of(responses: Responses, joined: Ints) -> Ints:
    """Which items hang together through people whose answers differ, or are `joined` already."""
    return _components(responses, joined, "weak")


def numbered_from(scale: NDArray[np.bool_], parts: Ints) -> Ints:
    """Parts numbered anew: 0 is the one with most items of the scale."""
    parts = np.unique(parts, return_inverse=True)[1]
    sizes = np.bincount(parts, weights=scale)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return rank[parts]


def _company(block: Block, group: Ints, number: int) -> Floats:
    """Items x groups: how often people who answered an item answered one of the group."""
    right, wrong = block.halves(len(group))
    kept = np.flatnonzero(group >= 0)
    member = sparse.csr_array((np.ones(len(kept)), (kept, group[kept])), shape=(len(group), number))
    theirs = right @ member + wrong @ member
    return np.asarray((right.T @ theirs + wrong.T @ theirs).toarray())


def _components(responses: Responses, joined: Ints, connection: str = "strong") -> Ints:
    """Connected components of item -> person (right) -> item (wrong), with a ring through what is joined."""
    from scipy.sparse.csgraph import connected_components

    m, n = responses.n_items, responses.n_persons
    person, item, right = responses.answers()
    differ = ((responses.scores > 0) & (responses.scores < responses.counts))[person]  # others link nothing
    person, item, right = person[differ], item[differ], right[differ]
    sources = [np.where(right, item, m + person)]
    targets = [np.where(right, m + person, item)]
    for number in np.unique(joined[joined >= 0]):
        ring = np.flatnonzero(joined == number)
        sources.append(ring)
        targets.append(np.roll(ring, 1))
    edges = (np.concatenate(sources), np.concatenate(targets))
    graph = sparse.coo_array((np.ones(len(edges[0]), dtype=np.int8), edges), shape=(m + n, m + n))
    labels: Ints = connected_components(graph.tocsr(), directed=True, connection=connection)[1][:m]
    return np.unique(labels, return_inverse=True)[1]


def groups_of_old(status: NDArray[Any], matrix: Floats | None) -> Ints:
    """Groups of a bank that did not keep them: by which items its information links; else every one for itself."""
    from scipy.sparse.csgraph import connected_components

    apart = status.astype(str) == "apart"
    out = np.zeros(len(status), dtype=np.int64)
    if not apart.any():
        return out
    if matrix is None:
        out[apart] = 1 + np.arange(apart.sum())
        return out
    among = sparse.csr_array(matrix[np.ix_(apart, apart)] != 0)
    out[apart] = 1 + connected_components(among, directed=False)[1]
    return out
