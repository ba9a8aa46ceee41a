"""Is a common scale possible? Item `i` points to item `j` when somebody answered `i` right and `j` wrong. Difficulties
without a prior exist, and are unique, exactly when every item can be reached from every other along these arrows
(Fischer 1981). They are never formed: item -> person (answered right) -> item (answered wrong) is the same graph with
one edge a response. In several categories the same is asked of thresholds of different items: passed last, failed next.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt import errors
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, rows_of
from spectral_irt.data.block import Mask as Mask
from spectral_irt.data.responses import Labels, Responses
from spectral_irt.errors import AnswersStayError, DesignError, DisconnectedDesignError, Finding
from spectral_irt.numerics import fixed, onto_items
from spectral_irt.text import count_are, first_of, listed

# A table this many times wider than long is more often transposed than real.
WIDE_RATIO = 10
# Groups that are told apart by passes alone; what is left beyond counts as a group of its own each.
MOST_GROUPS = 50
MANY_BLOCKS = 4  # from which on looking at one of them first costs nothing to speak of
ROUNDED = 1e-9  # sums from which as much was taken again are not above this


@dataclass(frozen=True, eq=False)
class Design:
    """What the pattern of answers allows, threshold by threshold; of right and wrong answers that is item by item.

    `component` is the strongly connected component of each, 0 the largest, -1 without answers. `information` is
    2 R W / (R + W), where R adds Z_l / n_l over the people who answered it right and W adds s_l / n_l over those who
    answered it wrong: that of the Rasch model when people are as able as the items are hard. `extreme` are those
    without a finite difficulty of their own: all right, all wrong, unanswered, or answered only by people with extreme
    scores. `status` is a word about each item: "ok", "all right", "all wrong", "no information", "no responses",
    "unlinked"; or "empty category" where some of its thresholds are never met.
    """

    answers: Responses
    component: Ints
    information: Floats
    answered: Mask
    extreme: Mask
    status: NDArray[Any]

    @property
    def layout(self) -> Thresholds:
        return self.answers.thresholds

    @property
    def connected(self) -> bool:
        return bool(np.all(self.component[self.answered] == 0))

    @property
    def findings(self) -> tuple[Finding, ...]:
        answers, binary = self.answers, self.layout.binary
        found: list[Finding] = []
        right, wrong = ("right", "wrong") if binary else ("in the highest category", "in the lowest category")
        for code, word, what in (
            ("no_responses", "no responses", "answered by nobody"),
            ("extreme_items", "all right", f"answered {right} by everyone"),
            ("extreme_items", "all wrong", f"answered {wrong} by everyone"),
            ("empty_categories", "empty category", "without answers in a category"),
            ("uninformed_items", "no information", f"answered only by people with all answers {right} or all {wrong}"),
        ):
            names: Labels = answers.items[self.status == word]
            if len(names):
                its, it, they = ("Its", "it", "It gets") if len(names) == 1 else ("Their", "them", "They get")
                remedy = f"{its} difficulty comes" if binary else f"What is said about {it} comes"
                remedy += f" from the prior alone; collect more answers or drop {it}."
                if word == "no responses":
                    remedy = f"{they} no estimate and come{'s' if len(names) == 1 else ''} last in every ranking."
                sentence = f"{count_are(len(names), 'item')} {what}: {listed(names)}."
                found.append(Finding(code, "warning", sentence, remedy, tuple(names.tolist())))
        groups = np.full(len(self.component), -1)
        groups[~self.extreme] = np.unique(self.component[~self.extreme], return_inverse=True)[1]
        if groups.max() > 0:
            apart = answers.items[np.unique(self.layout.item[groups > 0])]
            said, of = (answers, groups) if not binary else (answers.take_items(~self.extreme), groups[~self.extreme])
            sentence = describe_split(said, of)
            how = f"Fit each group on its own, add a form that links them, or take {errors.LARGEST_COMPONENT}"
            remedy = f"{how}; with regularization the groups are tied by the prior alone."
            sentence = sentence[0].upper() + sentence[1:]
            found.append(Finding("disconnected", "warning", sentence, remedy, tuple(apart.tolist())))
        words: tuple[str, ...] = ("no answers", "a single answer", "every answer right", "every answer wrong")
        if not binary:
            words = (*words[:2], "the highest score", "the lowest score")
        kinds = list(zip(words, answers.kinds_of_people[: len(words)].tolist(), strict=True))
        parts = [f"{number:,} with {what}" for what, number in kinds if number]
        if parts:
            silent = sum(number for _, number in kinds)
            who = f"{silent:,} of {answers.n_persons:,} people {'carries' if silent == 1 else 'carry'}"
            sentence = f"{who} no information about difficulty ({', '.join(parts)})."
            remedy = "They stay in the counts and have no effect on the difficulties."
            found.append(Finding("silent_persons", "note", sentence, remedy))
        if answers.n_items > WIDE_RATIO * answers.n_persons:
            sentence = f"There are {answers.n_items:,} items and only {answers.n_persons:,} people."
            remedy = "If rows are items and columns people, say `orient='items'`."
            found.append(Finding("many_more_items_than_persons", "note", sentence, remedy))
        return tuple(found)


def examine(responses: Responses) -> Design:
    """Look at the design of the data: a few passes over the responses, and no item-item matrix."""
    if responses.n_responses == 0:
        what = f"{responses.source}: there are no responses."
        raise DesignError(f"{what} Check the file and the codes for missing answers.")
    right, wrong = evidence_of(responses)
    layout, counts = responses.thresholds, responses.category_counts
    answered = responses.item_counts[layout.item] > 0
    all_right = (counts[layout.item, layout.level - 1] == 0) & answered
    all_wrong = (counts[layout.item, layout.level] == 0) & answered
    uninformed = (right == 0) & (wrong == 0) & answered & ~all_right & ~all_wrong
    component, status = components(responses, right, wrong), np.full(layout.n_items, "ok", dtype=object)
    alone = answered.sum() > 1 and np.sum(component == 0) == 1  # the largest group is a single item
    status[layout.item[(component > 0) | alone]] = "unlinked"
    status[layout.item[uninformed]] = "no information"
    status[layout.item[all_right | all_wrong]] = "empty category"
    for word, mask in (("all right", all_right), ("all wrong", all_wrong)):
        status[np.bincount(layout.item[mask], minlength=layout.n_items) == layout.max_score] = word
    status[responses.item_counts == 0] = "no responses"
    extreme = ~answered | all_right | all_wrong | uninformed
    return Design(responses, component, _told(right, wrong), answered, extreme, fixed(status))


def _told(right: Floats, wrong: Floats) -> Floats:
    both = right + wrong
    return np.divide(2 * right * wrong, both, out=np.zeros(len(both)), where=both > 0)


def evidence_of(responses: Responses) -> tuple[Floats, Floats]:
    """R and W of every threshold: right answers weighted by Z/n, wrong ones by s/n."""
    shared, layout = responses.shared, responses.thresholds
    if shared is None:
        return responses.entries.sum(evidence, layout)
    right, wrong = np.zeros((2, layout.n_entries))
    for one in shared.sets:
        share = np.arange(len(one.people)) / len(one.items)
        right[one.items] += (1 - share) @ one.right
        wrong[one.items] += share @ (one.people[:, None] - one.right)
    more = (0.0, 0.0) if shared.rest is None else shared.rest.sum(evidence, layout)
    return right + more[0], wrong + more[1]


def evidence(block: Block, thresholds: Thresholds) -> tuple[Floats, Floats]:
    right, wrong = block.halves(thresholds.n_entries)
    n = np.maximum(rows_of(block, thresholds).counts, 1)
    share = block.scores / n
    if thresholds.binary:
        return onto_items(right, 1 - share), onto_items(wrong, share)
    own, above = 1 / n, np.append(thresholds.below, False)[1:]  # thresholds with another above them
    r = onto_items(right, (block.counts - block.scores) / n) - above * onto_items(right, own)
    w = onto_items(wrong, share) - thresholds.below * onto_items(wrong, own)
    return np.where(r > ROUNDED, r, 0.0), np.where(w > ROUNDED, w, 0.0)


def components(responses: Responses, right: Floats | None = None, wrong: Floats | None = None) -> Ints:
    """Strongly connected component of each threshold, numbered from 0 by falling size; -1 without answers. That of the
    best-answered is found by spreading marks along the arrows and against them, a pass for each round; what is left by
    a graph search, where answers are right or wrong and can be had one by one, else by more passes. `right` and `wrong`
    are those of `evidence_of`."""
    if right is None or wrong is None:
        right, wrong = evidence_of(responses)
    layout = responses.thresholds
    answered = responses.item_counts[layout.item] > 0
    waiting = answered & (right > 0) & (wrong > 0)
    labels, found, searched = np.full(layout.n_entries, -1), 0, False
    while waiting.any() and found < MOST_GROUPS and not searched:
        pivot = int(np.argmax(np.where(waiting, _told(right, wrong), -1.0)))
        core = tied_to(responses, np.arange(layout.n_entries) == pivot, waiting) & waiting
        labels[core] = found
        waiting &= ~core
        found += 1
        if found == 1 and layout.binary and waiting.any():
            with suppress(AnswersStayError):
                rest = answered & (labels < 0)
                labels[rest] = 1 + _components_of(responses.take_items(rest))
                searched = True
    rest = answered & (labels < 0)
    labels[rest] = found + np.arange(int(rest.sum()))
    sizes = np.bincount(labels[answered])
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    labels[answered] = rank[labels[answered]]
    return labels


def tied_to(responses: Responses, known: Mask, among: Mask | None = None) -> Mask:
    """What has a finite value given the known ones, of all or `among` these: reached along the arrows and against."""
    wanted = responses.item_counts[responses.thresholds.item] > 0 if among is None else among
    reached = [known, known]
    if len(responses.blocks) > MANY_BLOCKS and responses.shared is None:  # the people of one block reach nearly all
        few = responses.first_block()
        reached = [_reach(few, known, against, wanted) for against in (False, True)]
    return _reach(responses, reached[0], False, wanted) & _reach(responses, reached[1], True, wanted)


def _reach(responses: Responses, start: Mask, against: bool, answered: Mask) -> Mask:
    """What can be reached from the start (or, against the arrows, what can reach it), a pass for each round."""
    shared, layout, reached = responses.shared, responses.thresholds, start
    while not reached[answered].all():
        found, marks = np.zeros(layout.n_entries), reached.astype(float)
        for one in () if shared is None else shared.sets:
            found[one.items] += (one.won if against else one.won.T) @ marks[one.items]
        rest = responses if shared is None else shared.rest
        if rest is not None:
            found += rest.entries.sum(spread_marks, layout, marks, against)
        if not layout.binary:  # who meets c at the end has its neighbor of the same item, if marked, at the start
            counts, own = responses.category_counts, layout.below * np.append(0, marks[:-1])
            if against:
                own = np.append(layout.below * marks, 0)[1:]
            found -= own * counts[layout.item, layout.level - (not against)] + 0.5
        further = reached | (found > 0)
        if (further == reached).all():
            break
        reached = further
    return reached


def spread_marks(block: Block, thresholds: Thresholds, marks: Floats, against: bool) -> Floats:
    """Marked item -> people who answered it right -> items they answered wrong (or the other way round)."""
    start, end = block.halves(thresholds.n_entries)
    return onto_items(start, end @ marks) if against else onto_items(end, start @ marks)


def _components_of(responses: Responses) -> Ints:
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
    labels = components(rest)
    if labels.max(initial=0) > 0:
        what = f"{rest.source}: {describe_split(rest, labels)} Use {errors.LARGEST_COMPONENT}, fit each group on its"
        other = "add a form that links them, or use the spectral method with `regularization='auto'`"
        raise DisconnectedDesignError(f"{what} own, {other}.")
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


def check_usable(responses: Responses) -> None:
    """Nothing when the responses can say which item is harder; otherwise a `DesignError` that says why not."""
    low, high = ("wrong", "right")
    if not responses.thresholds.binary:
        low, high = "in the lowest category", "in the highest category"
    total, highest = int(responses.item_scores.sum()), int(responses.item_counts @ responses.thresholds.max_score)
    reason = None
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
    elif not responses.kinds_of_people[-1]:
        reason = (
            f"every one of the {responses.n_persons:,} people has all answers {high} or all {low}, so nobody found one "
            "item harder than another. Check how the answers were scored."
        )
    if reason:
        raise DesignError(f"{responses.source}: {reason}")
