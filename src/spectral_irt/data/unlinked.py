"""Where no common scale is possible: groups of items without a link, items without a finite estimate, and answers that
cannot say which item is harder.

`design.py` looks for these; here they are put into sentences, left out (`estimable`) or refused. Methods without a
prior call `estimable`, `check_usable` the errors, and `Responses.largest_component` calls `left_out`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from spectral_irt import errors
from spectral_irt.data.block import Block, Ints, Mask, Thresholds, rows_of
from spectral_irt.data.design import components, evidence_of
from spectral_irt.data.responses import Labels, Responses
from spectral_irt.errors import DesignError, DisconnectedDesignError, Finding
from spectral_irt.text import count, count_are, first_of, listed


def components_by_search(responses: Responses) -> Ints:
    """Strongly connected components of the items by one search of the whole graph of items and people."""
    from scipy.sparse.csgraph import connected_components

    n_items = responses.n_items
    n_nodes = n_items + responses.n_persons
    person, item, right = responses.answers()
    person = n_items + person  # nodes of people come after those of items
    source = np.where(right, item, person)
    target = np.where(right, person, item)
    graph = sparse.coo_array((np.ones(len(source), dtype=np.int8), (source, target)), shape=(n_nodes, n_nodes))
    _, labels = connected_components(graph, directed=True, connection="strong")
    return np.unique(labels[:n_items], return_inverse=True)[1]


class Estimable(NamedTuple):
    """Responses to the items whose thresholds exist without a prior, which of all items these are, and a finding that
    names the others."""

    responses: Responses
    items: Mask
    findings: tuple[Finding, ...]


def estimable(responses: Responses) -> Estimable:
    """The items whose thresholds exist without a prior: without those that everyone or no one answered right, then
    those that this makes extreme, and so on. What remains must be connected."""
    binary = responses.thresholds.binary
    items = np.ones(responses.n_items, dtype=bool)
    remaining = responses
    while True:
        right, wrong = evidence_of(remaining)
        extreme = np.unique(remaining.thresholds.item[(right == 0) | (wrong == 0)])
        if not len(extreme):
            break
        items[np.flatnonzero(items)[extreme]] = False
        remaining = responses.take_items(items)
        if not items.any():
            raise _nothing_estimable(responses)
    refuse_parts(remaining, components(remaining))
    left = responses.items[~items]
    if not len(left):
        return Estimable(remaining, items, ())
    why = "a threshold is passed or failed by nobody"
    remedy = "The spectral method with `regularization='auto'` has an estimate from the prior for them; or drop them"
    if binary:
        why = "everyone or no one who informs on an item is right"
        remedy += "."
    else:
        remedy += ", or collapse their categories."
    what = f"{count_are(len(left), 'item')} left out, because without a prior no finite difficulty exists"
    sentence = f"{what} where {why}: {listed(left)}."
    finding = Finding("items_left_out", "warning", sentence, remedy, tuple(left.tolist()))
    return Estimable(remaining, items, (finding,))


def _nothing_estimable(responses: Responses) -> DesignError:
    what = "has all its thresholds passed by one and failed by another person"
    if responses.thresholds.binary:
        what = "was answered right by one and wrong by another person of mixed success"
    return DesignError(
        f"{responses.source}: no item {what}; nothing can be estimated without a prior. Use the spectral "
        "method with `regularization='auto'`, or collect more answers."
    )


def refuse_parts(responses: Responses, labels: Ints) -> None:
    """An error where items, or their thresholds, are of several parts: without a prior these have no common scale."""
    if labels.max(initial=0) > 0:
        what = f"{responses.source}: {describe_split(responses, labels)} Use {errors.LARGEST_COMPONENT}, fit each group"
        other = "add a form that links them, or use the spectral method with `regularization='auto'`"
        raise DisconnectedDesignError(f"{what} on its own, {other}.")


def describe_split(responses: Responses, labels: Ints) -> str:
    """One sentence on how the items, or their thresholds, fall apart: groups, sizes, the smallest by name."""
    layout = responses.thresholds
    what = "items" if layout.binary else "thresholds"
    sizes = np.bincount(labels[labels >= 0])
    shown = first_of(f"{size:,}" for size in sizes)
    last = range(len(sizes) - 1, max(0, len(sizes) - 4), -1)
    smallest = [listed(responses.items[np.unique(layout.item[labels == k])]) for k in last]
    if not responses.entries.sum(across, labels, False, layout):
        how = "that share no people"
    elif not responses.entries.sum(across, labels, True, layout):
        how = "that share only people with all answers right or all wrong"
    else:
        how = "that are linked one way only (every person who answered both got the same side right)"
    groups = f"{len(sizes):,} groups {how} (sizes {shown}; the smallest: {' | '.join(smallest)})"
    difficulties = "difficulties" if layout.binary else what
    return f"the {what} split into {groups}. Their {difficulties} have no common scale."


def across(block: Block, labels: Ints, informative: bool, thresholds: Thresholds) -> int:
    """How many people, or of them those with a mixed score, answered items of several groups."""
    occupied = np.flatnonzero(rows_of(block, thresholds).informative if informative else block.counts)
    if not len(occupied):
        return 0
    ends = np.stack([block.indptr[:-1][occupied], block.indptr[1:][occupied]], axis=1).ravel()
    group = np.append(labels[block.items], 0)  # so that the last person's end is a valid position
    high = np.maximum.reduceat(group, ends)[::2]
    low = np.minimum.reduceat(np.where(group < 0, len(labels), group), ends)[::2]  # -1 is no group
    return int(np.sum(low < high))


def unusable(responses: Responses) -> DesignError:
    """Why responses of a single person, or of people without mixed scores, cannot say which item is harder."""
    low = "wrong"
    high = "right"
    if not responses.thresholds.binary or responses.codes is not None:  # of a single category, too
        low = "in the lowest category"
        high = "in the highest category"
    total = int(responses.item_scores.sum())
    highest_total = int(responses.item_counts @ responses.thresholds.max_score)
    if responses.n_responses == 0:
        reason = "there is no response at all, only missing ones. Check what was read as missing."
    elif responses.n_items == 1:
        reason = (
            f"there is a single item, {listed(responses.items)}, and nothing to compare it with. A calibration needs "
            "two items or more; check the separator of the file, and whether the table is long (`format='long'`)."
        )
    elif responses.n_persons == 1:
        reason = (
            f"there is a single person, {listed(responses.persons)}. A calibration needs answers from several people; "
            "if a row of the table is an item, say `orient='items'`."
        )
    elif not responses.kinds_of_people[2:].any():
        reason = (
            f"none of the {responses.n_persons:,} people answered two items, so no two items can be compared. Check "
            "that the column of people's labels names people, not answers."
        )
    elif total in (0, highest_total):
        all_are = high if total else low
        reason = (
            f"all {responses.n_responses:,} responses are {all_are}, so no item is harder than another. "
            "Check how the answers were scored, and that the other kind was not dropped on the way."
        )
    else:
        reason = (
            f"every one of the {responses.n_persons:,} people has all answers {high} or all {low}, so nobody found one "
            "item harder than another. Check how the answers were scored."
        )
    return DesignError(f"{responses.source}: {reason}")


def left_out(every: Responses, linked: Responses) -> Finding:
    """What is not in the largest group of items, or of combinations of items and raters, that have a common scale."""
    n_left_out = every.n_responses - linked.n_responses
    noun = "rating" if every.facets is not None else "response"
    parts = [f"{n_left_out:,} of {count(every.n_responses, noun)}"]
    items: list[Any] = []
    if every.facets is None or linked.facets is None:
        what = "items"
        items = _labels_missing_from(every.items, linked.items)
        parts.append(f"{len(items):,} of {count(every.n_items, 'item')} ({listed(items)})")
    else:
        what = "items and raters"
        names = every.facets.names
        for name, before, after in zip(names, every.facets.levels, linked.facets.levels, strict=True):
            absent = _labels_missing_from(before, after)
            if absent:
                parts.append(f"{len(absent):,} of {count(len(before), name)} ({listed(absent)})")
    n_persons = int(np.sum((every.counts > 0) & (linked.counts == 0)))
    if n_persons:
        parts.append(f"every {noun} of {n_persons:,} of {count(every.n_persons, 'person')}")
    sentence = f"Left out, since nothing links them with the largest group of {what}: {', '.join(parts)}."
    remedy = "Have persons answer items of both groups, or analyze each group by itself."
    return Finding("largest_component", "warning", sentence, remedy, tuple(items))


def _labels_missing_from(labels: Labels, among: Labels) -> list[Any]:
    those = set(among.tolist())
    return [label for label in labels.tolist() if label not in those]
