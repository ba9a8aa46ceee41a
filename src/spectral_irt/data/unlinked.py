"""Where no common scale is possible: groups of items without a link, items without a finite estimate, and answers that
cannot say which item is harder."""

from __future__ import annotations

from typing import Any

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

    m, n = responses.n_items, responses.n_persons
    person, item, right = responses.answers()
    edges = (np.where(right, item, m + person), np.where(right, m + person, item))
    graph = sparse.coo_array((np.ones(len(edges[0]), dtype=np.int8), edges), shape=(m + n, m + n))
    _, labels = connected_components(graph, directed=True, connection="strong")
    return np.unique(labels[:m], return_inverse=True)[1]


def estimable(responses: Responses) -> tuple[Responses, Mask, tuple[Finding, ...]]:
    """The items whose thresholds exist without a prior, and a finding that names the others: items that everyone or no
    one answered right, then those that this makes extreme, and so on. What remains must be connected."""
    kept = np.ones(responses.n_items, dtype=bool)
    rest, binary = responses, responses.thresholds.binary
    while True:
        right, wrong = evidence_of(rest)
        bad = np.unique(rest.thresholds.item[(right == 0) | (wrong == 0)])
        if not len(bad):
            break
        kept[np.flatnonzero(kept)[bad]] = False
        rest = responses.take_items(kept)
        if not kept.any():
            what = "has all its thresholds passed by one and failed by another person"
            what = "was answered right by one and wrong by another person of mixed success" if binary else what
            raise DesignError(
                f"{responses.source}: no item {what}; nothing can be estimated without a prior. Use the spectral "
                "method with `regularization='auto'`, or collect more answers."
            )
    refuse_parts(rest, components(rest))
    left = responses.items[~kept]
    if not len(left):
        return rest, kept, ()
    why = "a threshold is passed or failed by nobody"
    why = "everyone or no one who informs on an item is right" if binary else why
    what = f"{count_are(len(left), 'item')} left out, because without a prior no finite difficulty exists"
    sentence = f"{what} where {why}: {listed(left)}."
    remedy = "The spectral method with `regularization='auto'` has an estimate from the prior for them; or drop them"
    remedy += "." if binary else ", or collapse their categories."
    return rest, kept, (Finding("items_left_out", "warning", sentence, remedy, tuple(left.tolist())),)


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
    scale = f"Their {'difficulties' if layout.binary else what} have no common scale."
    return f"the {what} split into {groups}. {scale}"


def across(block: Block, labels: Ints, informative: bool, thresholds: Thresholds) -> int:
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
    low, high = ("wrong", "right")
    if not responses.thresholds.binary or responses.codes is not None:  # of a single category, too
        low, high = "in the lowest category", "in the highest category"
    total, highest = int(responses.item_scores.sum()), int(responses.item_counts @ responses.thresholds.max_score)
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
    elif total in (0, highest):
        reason = (
            f"all {responses.n_responses:,} responses are {high if total else low}, so no item is harder than another. "
            "Check how the answers were scored, and that the other kind was not dropped on the way."
        )
    else:
        reason = (
            f"every one of the {responses.n_persons:,} people has all answers {high} or all {low}, so nobody found one "
            "item harder than another. Check how the answers were scored."
        )
    return DesignError(f"{responses.source}: {reason}")


def left_out(every: Responses, rest: Responses) -> Finding:
    """What is not in the largest group of items, or of combinations of items and raters, that have a common scale."""
    n_answers = every.n_responses - rest.n_responses
    answers = "rating" if every.facets is not None else "response"
    parts = [f"{n_answers:,} of {count(every.n_responses, answers)}"]
    gone: list[Any] = []
    if every.facets is None or rest.facets is None:
        gone = _absent(every.items, rest.items)
        parts.append(f"{len(gone):,} of {count(every.n_items, 'item')} ({listed(gone)})")
    else:
        names = every.facets.names
        for name, before, after in zip(names, every.facets.levels, rest.facets.levels, strict=True):
            if lost := _absent(before, after):
                parts.append(f"{len(lost):,} of {count(len(before), name)} ({listed(lost)})")
    silent = int(np.sum((every.counts > 0) & (rest.counts == 0)))
    if silent:
        parts.append(f"every {answers} of {silent:,} of {count(every.n_persons, 'person')}")
    what = "items" if every.facets is None else "items and raters"
    sentence = f"Left out, since nothing links them with the largest group of {what}: {', '.join(parts)}."
    remedy = "Have persons answer items of both groups, or analyze each group by itself."
    return Finding("largest_component", "warning", sentence, remedy, tuple(gone))


def _absent(labels: Labels, among: Labels) -> list[Any]:
    known = set(among.tolist())
    return [label for label in labels.tolist() if label not in known]
