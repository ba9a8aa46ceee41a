"""Which items of a calibration are on one scale.

Groups of items that no answers link have no common scale: their distance is the prior's. A bank numbers them, 0 being
the one whose items have the status "ok", and keeps the numbers. Of items with several thresholds these are the nodes of
the graph, those of an item always together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds


def groups_of(responses: Responses, joined: Ints, estimated: NDArray[np.bool_]) -> Ints:
    """The group of every item: those in one strongly connected component of the answers, and of what is `joined`.

    `joined` numbers the items that are known to share a scale (-1: nothing is known); groups keep the lowest number of
    those in them, others get the next ones by falling size. An item that no answers place (not `estimated`) goes with
    the items that its people answered.
    """
    component = components(responses, joined)
    out = np.full(len(joined), -1)
    named: dict[int, int] = {}
    for label, number in zip(component[joined >= 0].tolist(), joined[joined >= 0].tolist(), strict=True):
        named[label] = min(number, named.get(label, number))
    sizes = np.bincount(component[estimated], minlength=component.max(initial=0) + 1)
    following = int(joined.max(initial=-1)) + 1
    for label in np.argsort(-sizes, kind="stable").tolist():
        if sizes[label] and label not in named:
            named[label] = following
            following += 1
    out[estimated] = [named[label] for label in component[estimated].tolist()]
    if not estimated.all():
        home = responses.entries.sum(_company, responses.thresholds, out, following)
        out[~estimated] = np.argmax(home, axis=1)[~estimated]
    return out


def parts_before(
    information: Floats, layout: Thresholds, group: Ints, known: NDArray[np.bool_], loose: NDArray[np.bool_]
) -> Ints:
    """Which items of a bank people link, numbered; -1 for those that nothing is known of. Without a matrix, items whose
    standard error is infinite (`loose`) go by their group, and all others are one part."""
    if information.ndim == 3:
        return np.where(known, np.where(loose, 1 + group, 0), -1)
    shared = information != 0
    if not layout.binary:
        shared |= layout.item[:, None] == layout.item
    return np.where(known, _linked_rows(shared)[layout.first], -1)


def _linked_rows(shared: NDArray[np.bool_]) -> Ints:
    """Connected parts of a symmetric matrix, numbered by their first row. Each row is looked at once: of a full matrix
    that is quicker than making it sparse."""
    part = np.full(len(shared), -1)
    for first in range(len(shared)):
        if part[first] >= 0:
            continue
        reached = np.array([first])
        while len(reached):
            part[reached] = first
            reached = np.flatnonzero(shared[reached].any(axis=0) & (part < 0))
    return np.unique(part, return_inverse=True)[1]


def numbered_from(scale: NDArray[np.bool_], parts: Ints) -> Ints:
    """Parts renumbered: 0 is the one with most items of the scale."""
    parts = np.unique(parts, return_inverse=True)[1]
    sizes = np.bincount(parts, weights=scale)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return rank[parts]


def _company(block: Block, layout: Thresholds, group: Ints, number: int) -> Floats:
    """Items x groups: how often people who answered an item answered one of the group."""
    right, wrong = block.halves(layout.n_entries)
    of_threshold = group[layout.item]
    kept = np.flatnonzero(of_threshold >= 0)
    member = sparse.csr_array((np.ones(len(kept)), (kept, of_threshold[kept])), shape=(layout.n_entries, number))
    theirs = right @ member + wrong @ member
    total = np.asarray((right.T @ theirs + wrong.T @ theirs).toarray())
    return total if layout.binary else np.add.reduceat(total, layout.first, axis=0)


def components(responses: Responses, joined: Ints, connection: str = "strong") -> Ints:
    """Connected components of item -> person (right) -> item (wrong), with a ring through what is joined."""
    from scipy.sparse.csgraph import connected_components

    layout, n = responses.thresholds, responses.n_persons
    m = layout.n_entries
    person, entry, passed = responses.entries.answers()
    differ = responses.informative[person]  # others link nothing
    person, entry, passed = person[differ], entry[differ], passed[differ]
    sources = [np.where(passed, entry, m + person)]
    targets = [np.where(passed, m + person, entry)]
    numbers = np.where(joined < 0, -1 - np.arange(len(joined)), joined)[layout.item]  # an item is joined with itself
    order = np.argsort(numbers, kind="stable")
    first = np.flatnonzero(np.diff(numbers[order], prepend=numbers[order][:1] - 1))
    following = np.arange(1, m + 1)
    following[np.append(first[1:] - 1, m - 1)] = first
    sources.append(order)
    targets.append(order[following])
    edges = (np.concatenate(sources), np.concatenate(targets))
    graph = sparse.coo_array((np.ones(len(edges[0]), dtype=np.int8), edges), shape=(m + n, m + n))
    labels: Ints = connected_components(graph.tocsr(), directed=True, connection=connection)[1][layout.first]
    return np.unique(labels, return_inverse=True)[1]
