"""Which items of a calibration are on one scale.

Groups of items that no responses link have no common scale: their distance is the prior's. A bank numbers them, 0 being
the one whose items have the status "ok", and keeps the numbers.

Responses are a directed graph: threshold passed -> person -> threshold failed. Thresholds in one strongly connected
component of it have finite distances; those in one weakly connected component share people. The thresholds of an item
are always together.

`to_bank` and updates ask which group an item belongs to (`groups_of`), updates and the errors of a bank which items
share people (`parts_before`, `components`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Mask, Thresholds


def groups_of(responses: Responses, joined: Ints, estimated: Mask) -> Ints:
    """The group of every item: those in one strongly connected component of the responses, and of what is `joined`.

    `joined` numbers the items that are known to share a scale (-1: nothing is known); groups keep the lowest number of
    those in them, others get the next ones by falling size. An item that no responses place (not `estimated`) goes with
    the items that its people answered.
    """
    component = components(responses, joined)
    number_of = _lowest_numbers(component, joined)
    next_number = int(joined.max(initial=-1)) + 1
    sizes = np.bincount(component[estimated], minlength=component.max(initial=0) + 1)
    for label in np.argsort(-sizes, kind="stable").tolist():
        if sizes[label] and label not in number_of:
            number_of[label] = next_number
            next_number += 1
    group = np.full(len(joined), -1)
    group[estimated] = [number_of[label] for label in component[estimated].tolist()]
    if not estimated.all():
        company = responses.entries.sum(_company, responses.thresholds, group, next_number)
        group[~estimated] = np.argmax(company, axis=1)[~estimated]
    return group


def _lowest_numbers(component: Ints, joined: Ints) -> dict[int, int]:
    """The lowest number of the joined items in each component that has any."""
    lowest: dict[int, int] = {}
    has_number = joined >= 0
    for label, number in zip(component[has_number].tolist(), joined[has_number].tolist(), strict=True):
        lowest[label] = min(number, lowest.get(label, number))
    return lowest


def parts_before(information: Floats, layout: Thresholds, group: Ints, known: Mask, loose: Mask) -> Ints:
    """Which items of a bank people link, numbered; -1 for those that nothing is known of. Without a matrix, items whose
    standard error is infinite (`loose`) go by their group, and all others are one part."""
    if information.ndim == 3:
        by_group = np.where(loose, 1 + group, 0)
        return np.where(known, by_group, -1)
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


def numbered_from(scale: Mask, parts: Ints) -> Ints:
    """Parts renumbered: 0 is the one with most items of the scale."""
    parts = np.unique(parts, return_inverse=True)[1]
    sizes = np.bincount(parts, weights=scale)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return rank[parts]


def _company(block: Block, layout: Thresholds, group: Ints, n_groups: int) -> Floats:
    """Items x groups: how often people who answered an item answered one of the group."""
    right, wrong = block.halves(layout.n_entries)
    of_threshold = group[layout.item]
    in_group = np.flatnonzero(of_threshold >= 0)
    member = sparse.csr_array(
        (np.ones(len(in_group)), (in_group, of_threshold[in_group])), shape=(layout.n_entries, n_groups)
    )
    answered = right @ member + wrong @ member  # people x groups
    total = np.asarray((right.T @ answered + wrong.T @ answered).toarray())
    if layout.binary:
        return total
    return np.add.reduceat(total, layout.first, axis=0)


class Edges(NamedTuple):
    """Edges of a directed graph: from which node to which."""

    source: Ints
    target: Ints


def components(responses: Responses, joined: Ints, connection: str = "strong") -> Ints:
    """Connected components of threshold passed -> person -> threshold failed, with a ring through what is `joined`
    (numbers of items, -1: with nothing but itself); of items, numbered from 0."""
    from scipy.sparse.csgraph import connected_components

    layout = responses.thresholds
    answers = _edges_of_answers(responses)
    rings = _rings(np.where(joined < 0, -1 - np.arange(len(joined)), joined)[layout.item])
    edges = (np.concatenate([answers.source, rings.source]), np.concatenate([answers.target, rings.target]))
    n_nodes = layout.n_entries + responses.n_persons
    graph = sparse.coo_array((np.ones(len(edges[0]), dtype=np.int8), edges), shape=(n_nodes, n_nodes))
    label_of_node = connected_components(graph.tocsr(), directed=True, connection=connection)[1]
    return np.unique(label_of_node[layout.first], return_inverse=True)[1]


def _edges_of_answers(responses: Responses) -> Edges:
    """Threshold passed -> person, person -> threshold failed; nodes of persons come after those of thresholds."""
    person, entry, passed = responses.entries.answers()
    informative = responses.informative[person]  # people with an extreme score link nothing
    person = person[informative] + responses.thresholds.n_entries
    entry = entry[informative]
    passed = passed[informative]
    return Edges(source=np.where(passed, entry, person), target=np.where(passed, person, entry))


def _rings(number: Ints) -> Edges:
    """A ring through all nodes of the same number: each to the next one, the last to the first."""
    order = np.argsort(number, kind="stable")
    first = np.flatnonzero(np.diff(number[order], prepend=number[order][:1] - 1))
    following = np.arange(1, len(number) + 1)
    last = np.append(first[1:] - 1, len(number) - 1)
    following[last] = first
    return Edges(source=order, target=order[following])
