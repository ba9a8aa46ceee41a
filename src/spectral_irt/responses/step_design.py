"""Is a common scale possible for ordered answers? `design.py` for thresholds, without moves inside an item.

Threshold (i, k) points to (j, k') of another item when somebody passed k of item i last, and failed k' of item j next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import DesignError, DisconnectedDesignError, listed, option
from spectral_irt.responses.block import Block, Floats, Ints
from spectral_irt.responses.design import Design, Mask
from spectral_irt.responses.findings import Finding
from spectral_irt.responses.ordered import OrderedResponses, Steps, rows_of

MOST_GROUPS = 50  # groups that are told apart; what is left beyond counts as a group of its own each
NO_COMMON_SCALE = "Their thresholds have no common scale. Fit each group on its own, or add a form that links them."


@dataclass(frozen=True, eq=False)
class StepDesign(Design):
    """`Design` with a number for every threshold; `responses` are the thresholds as right and wrong answers."""

    ordered: OrderedResponses

    @property
    def steps(self) -> Steps:
        return self.ordered.steps

    def item_status(self) -> NDArray[Any]:
        """A word about each item: that of its thresholds, if they agree; "empty category" if some are never met."""
        status, item = self.status(), self.steps.item
        words = np.full(self.steps.n_items, "ok", dtype=object)
        for word in ("apart", "no information", "all right", "all wrong", "no responses"):
            here = np.bincount(item[status == word], minlength=self.steps.n_items)
            words[here > 0] = word
            if word in ("all right", "all wrong"):
                words[(here > 0) & (here < self.steps.counts)] = "empty category"
        words[self.ordered.item_counts == 0] = "no responses"
        return words

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(_findings(self))


def examine_ordered(responses: OrderedResponses) -> StepDesign:
    """Look at the design of ordered answers: a few passes over the entries."""
    steps = responses.steps
    if responses.n_responses == 0:
        raise DesignError(
            f"{responses.source}: there are no responses. Check the file and the codes for missing answers."
        )
    passed, failed, right, wrong = responses.thresholds.sum(_evidence, steps)
    unanswered = responses.item_counts[steps.item] == 0
    never_failed = (failed == 0) & ~unanswered
    never_passed = (passed == 0) & ~unanswered
    uninformed = (right <= 0) & (wrong <= 0) & ~unanswered & ~never_failed & ~never_passed
    both = right + wrong
    information = np.divide(2 * right * wrong, both, out=np.zeros(len(both)), where=both > 0)
    component = step_components(responses, right, wrong, unanswered)
    return StepDesign(
        responses.thresholds, component, information, never_failed, never_passed, unanswered, uninformed, responses
    )


def _evidence(block: Block, steps: Steps) -> tuple[Floats, Floats, Floats, Floats]:
    """Entries among ones and zeros; and R and W: ones weighted by the share of other items' zeros, and so on."""
    n = np.maximum(rows_of(block, steps).counts, 1)
    right, wrong = block.halves(steps.n_steps)
    s, z = block.scores / n, (block.counts - block.scores) / n
    ends = np.append(steps.below, False)[1:]  # thresholds with another above them
    ones, zeros = np.ones(block.n_users), 1 / n
    passed, failed = right.T @ ones, wrong.T @ ones
    return (
        passed,
        failed,
        _rounded(right.T @ z - ends * (right.T @ zeros)),
        _rounded(wrong.T @ s - steps.below * (wrong.T @ zeros)),
    )


def _rounded(values: Floats) -> Floats:
    return np.where(values > 1e-9, values, 0.0)


# ------------------------------------------------------------------------------------- components


def step_components(responses: OrderedResponses, right: Floats, wrong: Floats, unanswered: Mask) -> Ints:
    """Strongly connected component of each threshold, numbered from 0 by falling size; -1 without answers."""
    alone = (right <= 0) | (wrong <= 0)
    labels = np.full(len(right), -1)
    waiting = ~unanswered & ~alone
    found = 0
    while waiting.any() and found < MOST_GROUPS:
        pivot = int(np.argmax(np.where(waiting, np.minimum(right, wrong), -1.0)))
        core = _reach(responses, pivot, False) & _reach(responses, pivot, True) & waiting
        core[pivot] = True
        labels[core] = found
        waiting &= ~core
        found += 1
    single = (waiting | alone) & ~unanswered
    labels[single] = found + np.arange(int(single.sum()))
    there = labels >= 0
    sizes = np.bincount(labels[there], minlength=1)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    labels[there] = rank[labels[there]]
    return labels


def _reach(responses: OrderedResponses, pivot: int, against: bool) -> Mask:
    marks = np.zeros(responses.steps.n_steps, dtype=bool)
    marks[pivot] = True
    while True:
        grown = marks | (responses.thresholds.sum(_spread, marks, against, responses.steps) > 0)
        if (grown == marks).all():
            return marks
        marks = grown


def _spread(block: Block, marks: Mask, against: bool, steps: Steps) -> Floats:
    """Marked threshold -> people who passed it last -> thresholds of other items that they failed next (or back)."""
    right, wrong = block.halves(steps.n_steps)
    start, end = (wrong, right) if against else (right, wrong)
    if against:
        own = np.append(steps.below & marks, False)[1:]
    else:
        own = steps.below & np.concatenate([[False], marks[:-1]])
    # Who meets c at the end has its neighbor of the same item at the start: it is among the marked ones that were met.
    met = end.T @ (start @ marks.astype(float))
    return np.where(met - own * (end.T @ np.ones(block.n_users)) > 0.5, 1.0, 0.0)


# ------------------------------------------------------------------- what an estimate without a prior needs


def estimable_items(responses: OrderedResponses) -> tuple[OrderedResponses, Mask, tuple[Finding, ...]]:
    """The items whose thresholds all exist without a prior, and a finding that names the others."""
    kept = np.ones(responses.n_items, dtype=bool)
    rest = responses
    while True:
        _, _, right, wrong = rest.thresholds.sum(_evidence, rest.steps)
        bad = np.bincount(rest.steps.item, weights=(right <= 0) | (wrong <= 0), minlength=rest.n_items) > 0
        if not bad.any():
            break
        kept[np.flatnonzero(kept)[bad]] = False
        if not kept.any():
            raise DesignError(
                f"{responses.source}: no item has all its thresholds passed by one and failed by another person; "
                "nothing can be estimated without a prior. Use the spectral method with ",
                option("regularization", "auto"),
                ", or collect more answers.",
            )
        rest = responses.take_items(kept)
    design = examine_ordered(rest)
    if not design.connected:
        raise DisconnectedDesignError(f"{responses.source}: {_split_sentence(design)} {NO_COMMON_SCALE}")
    if kept.all():
        return rest, kept, ()
    names = responses.items[~kept]
    return (
        rest,
        kept,
        (
            Finding(
                "items_left_out",
                "warning",
                f"{len(names):,} items have a threshold that nobody passed or nobody failed, and are left out: "
                f"{listed(names)}.",
                "Collapse their categories, or use the spectral method with its prior.",
                tuple(names.tolist()),
            ),
        ),
    )


def _split_sentence(design: StepDesign) -> str:
    item, component = design.steps.item, design.component
    groups = [design.ordered.items[np.unique(item[component == k])] for k in range(int(component.max()) + 1)]
    sizes = ", ".join(str(int(np.sum(component == k))) for k in range(min(len(groups), 5)))
    return (
        f"the thresholds split into {len(groups):,} groups (sizes {sizes}{', ...' if len(groups) > 5 else ''}; the "
        f"smallest is of {listed(groups[-1])})."
    )


# --------------------------------------------------------------------------------------- findings


def _findings(design: StepDesign) -> list[Finding]:
    responses, status = design.ordered, design.item_status()
    found = []
    prior = "What is said about them comes from the prior alone; collect more answers or drop them."
    for code, word, what in (
        ("no_responses", "no responses", "answered by nobody"),
        ("extreme_items", "all right", "answered in the highest category by everyone"),
        ("extreme_items", "all wrong", "answered in the lowest category by everyone"),
        ("empty_categories", "empty category", "without answers in a category"),
        ("uninformed_items", "no information", "answered only by people with the lowest or the highest score"),
    ):
        names = responses.items[status == word]
        if len(names):
            verb = "item is" if len(names) == 1 else "items are"
            found.append(
                Finding(
                    code, "warning", f"{len(names):,} {verb} {what}: {listed(names)}.", prior, tuple(names.tolist())
                )
            )
    if design.split:
        apart = responses.items[np.unique(design.steps.item[(design.component > 0) & ~design.extreme])]
        sentence = _split_sentence(design)
        found.append(
            Finding(
                "disconnected", "warning", sentence[0].upper() + sentence[1:], NO_COMMON_SCALE, tuple(apart.tolist())
            )
        )
    silent = int(np.sum((responses.counts < 2) | (responses.scores == 0) | (responses.scores == responses.most)))
    if silent:
        found.append(
            Finding(
                "silent_users",
                "note",
                f"{silent:,} of {responses.n_users:,} people {'carries' if silent == 1 else 'carry'} no information "
                "about thresholds (fewer than two answers, or the lowest or the highest score).",
                "They stay in the counts and have no effect on the thresholds.",
            )
        )
    return found
