"""The design of the data: is a common scale possible?

Item `i` points to item `j` when somebody answered `i` right and `j` wrong. Difficulties without a prior exist, and are
unique, exactly when every item can be reached from every other along these arrows (Fischer 1981). They are never
formed: item -> person (answered right) -> item (answered wrong) is the same graph with one edge a response. In several
categories the same is asked of thresholds of different items: passed last, failed next.

Estimators look at the design before every fit (`examine`, `check_usable`); `Responses.findings` has what is odd about
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Block, Floats, Ints, Thresholds, rows_of
from spectral_irt.data.block import Mask as Mask
from spectral_irt.errors import LARGEST_COMPONENT, AnswersStayError, DesignError, Finding
from spectral_irt.numerics import onto_items, read_only, safe_divide
from spectral_irt.text import count, count_are, first_of, listed, one_or_many, sentence_case, whole_percent

if TYPE_CHECKING:
    from spectral_irt.data.responses import Responses

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
    "unlinked", where the data tie none of its thresholds to those of the largest component; or "empty category" where
    some of its thresholds are never met.
    """

    answers: Responses
    component: Ints
    information: Floats
    answered: Mask
    extreme: Mask
    status: NDArray[Any]
    connected: bool  # all that was answered

    @property
    def binary(self) -> bool:
        """Whether all answers are right or wrong."""
        return self.answers.thresholds.binary

    @property
    def without_finite_estimate(self) -> Mask:
        """Thresholds without a finite estimate of their own, of items of which another threshold has one."""
        layout = self.answers.thresholds
        return (self.component > 0) & ~self.extreme & (self.status[layout.item] != "unlinked")

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What a reader of the results should know about the design."""
        rules = (
            items_without_estimate,
            unbounded_thresholds,
            unlinked_groups,
            persons_without_information,
            more_items_than_persons,
        )
        return tuple(finding for rule in rules for finding in rule(self))


def items_without_estimate(design: Design) -> Iterator[Finding]:
    """Items that responses alone give no finite difficulty, or not all of their thresholds, by status."""
    highest = "right" if design.binary else "in the highest category"
    lowest = "wrong" if design.binary else "in the lowest category"
    extreme = f"all answers {highest} or all {lowest}"
    for code, status, what in (
        ("no_responses", "no responses", "answered by nobody"),
        ("extreme_items", "all right", f"answered {highest} by everyone"),
        ("extreme_items", "all wrong", f"answered {lowest} by everyone"),
        ("empty_categories", "empty category", "without answers in a category"),
        ("uninformed_items", "no information", f"answered only by people with {extreme}"),
    ):
        labels = design.answers.items[design.status == status]
        if len(labels):
            sentence = f"{count_are(len(labels), 'item')} {what}: {listed(labels)}."
            remedy = _remedy_of_prior(len(labels), design.binary)
            if status == "no responses":
                remedy = _remedy_of_no_responses(len(labels))
            yield Finding(code, "warning", sentence, remedy, tuple(labels.tolist()))


def _remedy_of_prior(n_items: int, binary: bool) -> str:
    it = one_or_many(n_items, "it", "them")
    comes = f"What is said about {it} comes"
    if binary:
        comes = one_or_many(n_items, "Its difficulty comes", "Their difficulty comes")
    return f"{comes} from the prior alone; collect more answers or drop {it}."


def _remedy_of_no_responses(n_items: int) -> str:
    if n_items == 1:
        return "It gets no estimate and comes last in every ranking."
    return "They get no estimate and come last in every ranking."


def unlinked_groups(design: Design) -> Iterator[Finding]:
    """Groups of items, each with difficulties on a scale of its own."""
    group = np.full(len(design.component), -1)
    in_a_group = ~design.extreme & ~design.without_finite_estimate
    group[in_a_group] = np.unique(design.component[in_a_group], return_inverse=True)[1]
    if group.max() <= 0:
        return
    from spectral_irt.data.unlinked import describe_split

    responses = design.answers
    outside = responses.items[np.unique(responses.thresholds.item[group > 0])]
    if design.binary:  # extreme items are in no group, and not spoken of
        responses = responses.take_items(~design.extreme)
        group = group[~design.extreme]
    sentence = describe_split(responses, group)
    how = f"Fit each group on its own, add a form that links them, or take {LARGEST_COMPONENT}"
    remedy = f"{how}; with regularization the groups are tied by the prior alone."
    yield Finding("disconnected", "warning", sentence_case(sentence), remedy, tuple(outside.tolist()))


class ExtremePersons(NamedTuple):
    """People of one kind who tell nothing about difficulty, and the effect that they may show in the test."""

    what: str
    n: int
    effect: str = ""


def persons_without_information(design: Design) -> Iterator[Finding]:
    """People whose score is the lowest or the highest possible, or who answered no more than one item."""
    n_without, n_single, n_highest, n_lowest, _ = design.answers.kinds_of_people.tolist()
    highest = "every answer right" if design.binary else "the highest possible score"
    lowest = "every answer wrong" if design.binary else "the lowest possible score"
    kinds = (
        ExtremePersons("no answers", n_without),
        ExtremePersons("a single answer", n_single),
        ExtremePersons(highest, n_highest, "ceiling"),
        ExtremePersons(lowest, n_lowest, "floor"),
    )
    total = sum(kind.n for kind in kinds)
    if not total:
        return
    n_persons = design.answers.n_persons
    parts = [_persons_in_words(kind, n_persons - n_without) for kind in kinds if kind.n]
    do = one_or_many(total, "does", "do")
    sentence = f"{total:,} of {n_persons:,} people {do} not affect the difficulties: {'; '.join(parts)}."
    yield Finding("silent_persons", "note", sentence, "They stay in the counts.")


def _persons_in_words(kind: ExtremePersons, n_answered: int) -> str:
    words = f"{kind.n:,} with {kind.what}"
    if kind.effect:
        words += f", {kind.effect} {whole_percent(kind.n, n_answered)}"
    return words


def more_items_than_persons(design: Design) -> Iterator[Finding]:
    """A table that is perhaps on its side."""
    answers = design.answers
    if answers.n_items > WIDE_RATIO * answers.n_persons:
        sentence = f"There are {answers.n_items:,} items and only {answers.n_persons:,} people."
        remedy = "If rows are items and columns people, say `orient='items'`."
        yield Finding("many_more_items_than_persons", "note", sentence, remedy)


def unbounded_thresholds(design: Design) -> Iterator[Finding]:
    """Rare categories: thresholds without a finite estimate, of items whose other thresholds have one."""
    if not design.without_finite_estimate.any():
        return
    layout = design.answers.thresholds
    thresholds = np.flatnonzero(design.without_finite_estimate)
    labels = design.answers.items[layout.item[thresholds]].tolist()
    levels = layout.level[thresholds].tolist()
    named = [f"threshold {level} of {label!r}" for level, label in zip(levels, labels, strict=True)]
    have = one_or_many(len(named), "has", "have")
    yield Finding(
        code="rare_categories",
        severity="note",
        sentence=(
            f"{count(len(named), 'threshold')} {have} no finite estimate without a prior, since few people chose the "
            f"category above or below, and these have the highest or the lowest scores: {first_of(named)}."
        ),
        remedy="Their values rest on the prior; join a rare category with its neighbor (`recode=`), or collect more "
        "answers.",
        items=tuple(dict.fromkeys(labels)),
    )


def examine(responses: Responses) -> Design:
    """Look at the design of the data: a few passes over the responses, and no item-item matrix."""
    if responses.n_responses == 0:
        what = f"{responses.source}: there are no responses."
        raise DesignError(f"{what} Check the file and the codes for missing answers.")
    right, wrong = evidence_of(responses)
    layout = responses.thresholds
    counts = responses.category_counts
    answered = responses.item_counts[layout.item] > 0
    all_right = (counts[layout.item, layout.level - 1] == 0) & answered
    all_wrong = (counts[layout.item, layout.level] == 0) & answered
    uninformed = (right == 0) & (wrong == 0) & answered & ~all_right & ~all_wrong
    component = components(responses, right, wrong)
    largest_is_one = answered.sum() > 1 and np.sum(component == 0) == 1  # then no item is linked with another
    # Of the words about an item the last that fits stays.
    status = np.full(layout.n_items, "ok", dtype=object)
    # An item with a threshold in the largest component is on the scale, whatever is known of its rare categories.
    in_largest = (component == 0) & (not largest_is_one)
    status[layout.sum(in_largest.astype(float)) == 0] = "unlinked"
    status[layout.item[uninformed]] = "no information"
    status[layout.item[all_right | all_wrong]] = "empty category"
    status[_every_threshold(all_right, layout)] = "all right"
    status[_every_threshold(all_wrong, layout)] = "all wrong"
    status[responses.item_counts == 0] = "no responses"
    return Design(
        answers=responses,
        component=component,
        information=_information(right, wrong),
        answered=answered,
        extreme=~answered | all_right | all_wrong | uninformed,
        status=read_only(status),
        connected=bool(np.all(component[answered] == 0)),
    )


def _every_threshold(mask: Mask, layout: Thresholds) -> Mask:
    """Items of which every threshold is in the mask."""
    return np.bincount(layout.item[mask], minlength=layout.n_items) == layout.max_score


def _information(right: Floats, wrong: Floats) -> Floats:
    """2 R W / (R + W)."""
    both = right + wrong
    return safe_divide(2 * right * wrong, both)


class Evidence(NamedTuple):
    """R and W of every threshold: right answers weighted by Z / n, wrong ones by s / n."""

    right: Floats
    wrong: Floats


def evidence_of(responses: Responses) -> Evidence:
    """R and W: of shared sets of items by their tables, of other people by a pass over them."""
    shared = responses.shared
    layout = responses.thresholds
    if shared is None:
        return Evidence(*responses.entries.sum(evidence, layout))
    right = np.zeros(layout.n_entries)
    wrong = np.zeros(layout.n_entries)
    for shared_set in shared.sets:
        share_right = np.arange(len(shared_set.people)) / len(shared_set.items)  # of each score
        right[shared_set.items] += (1 - share_right) @ shared_set.right
        wrong[shared_set.items] += share_right @ (shared_set.people[:, None] - shared_set.right)
    if shared.rest is not None:
        of_rest = Evidence(*shared.rest.sum(evidence, layout))
        right = right + of_rest.right
        wrong = wrong + of_rest.wrong
    return Evidence(right, wrong)


def evidence(block: Block, thresholds: Thresholds) -> tuple[Floats, Floats]:
    """R and W of the people in a block."""
    right, wrong = block.halves(thresholds.n_entries)
    n = np.maximum(rows_of(block, thresholds).counts, 1)
    share = block.scores / n
    if thresholds.binary:
        return onto_items(right, 1 - share), onto_items(wrong, share)
    # A threshold is not compared with another one of the same item, above or below it.
    one_item = 1 / n
    has_above = np.append(thresholds.below, False)[1:]
    r = onto_items(right, (block.counts - block.scores) / n) - has_above * onto_items(right, one_item)
    w = onto_items(wrong, share) - thresholds.below * onto_items(wrong, one_item)
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
    labels = np.full(layout.n_entries, -1)
    n_found = 0
    searched = False
    while waiting.any() and n_found < MOST_GROUPS and not searched:
        pivot = int(np.argmax(np.where(waiting, _information(right, wrong), -1.0)))
        core = tied_to(responses, np.arange(layout.n_entries) == pivot, waiting) & waiting
        labels[core] = n_found
        waiting &= ~core
        n_found += 1
        if n_found == 1 and layout.binary and waiting.any():
            from spectral_irt.data.unlinked import components_by_search

            with suppress(AnswersStayError):
                unlabeled = answered & (labels < 0)
                labels[unlabeled] = 1 + components_by_search(responses.take_items(unlabeled))
                searched = True
    unlabeled = answered & (labels < 0)
    labels[unlabeled] = n_found + np.arange(int(unlabeled.sum()))
    sizes = np.bincount(labels[answered])
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    labels[answered] = rank[labels[answered]]
    return labels


def tied_to(responses: Responses, known: Mask, among: Mask | None = None) -> Mask:
    """What has a finite value given the known ones, of all or `among` these: reached along the arrows and against."""
    wanted = among
    if wanted is None:
        wanted = responses.item_counts[responses.thresholds.item] > 0
    forwards = known
    backwards = known
    if len(responses.blocks) > MANY_BLOCKS and responses.shared is None:  # the people of one block reach nearly all
        some = responses.first_block()
        forwards = _reach(some, known, against=False, wanted=wanted)
        backwards = _reach(some, known, against=True, wanted=wanted)
    forwards = _reach(responses, forwards, against=False, wanted=wanted)
    return forwards & _reach(responses, backwards, against=True, wanted=wanted)


def _reach(responses: Responses, start: Mask, *, against: bool, wanted: Mask) -> Mask:
    """What can be reached from the start (or, against the arrows, what can reach it), a pass for each round."""
    reached = start
    while not reached[wanted].all():
        further = reached | (_marks_spread(responses, reached.astype(float), against) > 0)
        if (further == reached).all():
            break
        reached = further
    return reached


def _marks_spread(responses: Responses, marks: Floats, against: bool) -> Floats:
    """Above zero where an arrow ends that begins at a mark (or, against the arrows, the other way round)."""
    shared = responses.shared
    layout = responses.thresholds
    others: Responses | None = responses
    spread = np.zeros(layout.n_entries)
    if shared is not None:
        others = shared.rest
        for shared_set in shared.sets:
            arrows = shared_set.won if against else shared_set.won.T
            spread[shared_set.items] += arrows @ marks[shared_set.items]
    if others is not None:
        spread += others.entries.sum(spread_marks, layout, marks, against)
    if layout.binary:
        return spread
    # Who meets a threshold at the end of an arrow has its neighbor of the same item, if marked, at the beginning: no
    # arrow leads from there.
    counts = responses.category_counts
    if against:
        marked_neighbor = np.append(layout.below * marks, 0)[1:]
        category = layout.level
    else:
        marked_neighbor = layout.below * np.append(0, marks[:-1])
        category = layout.level - 1
    return spread - (marked_neighbor * counts[layout.item, category] + 0.5)


def spread_marks(block: Block, thresholds: Thresholds, marks: Floats, against: bool) -> Floats:
    """Marked item -> people who answered it right -> items they answered wrong (or the other way round)."""
    right, wrong = block.halves(thresholds.n_entries)
    if against:
        return onto_items(right, wrong @ marks)
    return onto_items(wrong, right @ marks)


def check_usable(responses: Responses) -> None:
    """Nothing when the responses can say which item is harder; otherwise a `DesignError` that says why not."""
    if responses.n_persons == 1 or not responses.kinds_of_people[-1]:  # nobody has a mixed score
        from spectral_irt.data.unlinked import unusable

        raise unusable(responses)
