"""The design of the data: is a common scale possible, and who answered the same items?

Item `i` points to item `j` when somebody answered `i` right and `j` wrong. Difficulties without a prior exist, and are
unique, exactly when every item can be reached from every other along these arrows (Fischer 1981). They are never
formed: item -> person (answered right) -> item (answered wrong) is the same graph with one edge a response. In several
categories the same is asked of thresholds of different items: passed last, failed next.

The conditional likelihood sees a person only through the set of items and the score, so three tables for each set are
all that a fit needs on complete data and booklets. They come from one sweep over the answers, as products of 0/1
matrices in single precision, which are exact. People whose set few others share stay as they are (`SharedSets.rest`).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Block, Floats, Ints, Rows, Thresholds, rows_of
from spectral_irt.data.block import Mask as Mask
from spectral_irt.engine.base import budget
from spectral_irt.errors import LARGEST_COMPONENT, AnswersStayError, DesignError, Finding
from spectral_irt.numerics import csr, fixed, onto_items, scramble, shared_ones
from spectral_irt.text import count_are, listed, whole_percent

if TYPE_CHECKING:
    from spectral_irt.data.responses import Labels, Responses

# A table this many times wider than long is more often transposed than real.
WIDE_RATIO = 10
# Groups that are told apart by passes alone; what is left beyond counts as a group of its own each.
MOST_GROUPS = 50
MANY_BLOCKS = 4  # from which on looking at one of them first costs nothing to speak of
ROUNDED = 1e-9  # sums from which as much was taken again are not above this
SAMPLE = 100  # people of each block looked at first: where the sets of most of them differ nothing is shared
PER_ITEM = 2  # people per item of a set, at least: the set's tables have a row for every score
PER_BLOCK = 2_000  # answers of a set per block, at least: below, going through the sets costs more than it saves
SHARED = 0.5  # of all answers must be on shared sets; else two ways of doing everything are not worth it
LONGEST = 2_000  # items of a set: its pairs are 32 MB then
CELLS = 500_000  # of a dense slice: 2 MB
EXACT = 1 << 24  # whole numbers up to here are exact in single precision


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
    connected: bool  # all that was answered

    @property
    def findings(self) -> tuple[Finding, ...]:
        answers, binary = self.answers, self.answers.thresholds.binary
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
            from spectral_irt.data.unlinked import describe_split

            apart = answers.items[np.unique(answers.thresholds.item[groups > 0])]
            said, of = (answers, groups) if not binary else (answers.take_items(~self.extreme), groups[~self.extreme])
            sentence = describe_split(said, of)
            how = f"Fit each group on its own, add a form that links them, or take {LARGEST_COMPONENT}"
            remedy = f"{how}; with regularization the groups are tied by the prior alone."
            sentence = sentence[0].upper() + sentence[1:]
            found.append(Finding("disconnected", "warning", sentence, remedy, tuple(apart.tolist())))
        words: tuple[str, ...] = ("no answers", "a single answer", "every answer right", "every answer wrong")
        if not binary:
            words = (*words[:2], "the highest possible score", "the lowest possible score")
        kinds = answers.kinds_of_people[: len(words)]
        if kinds.any():
            silent = int(kinds.sum())
            n_answered = answers.n_persons - int(kinds[0])
            effects = ("", "", "ceiling", "floor")
            parts = []
            for what, effect, number in zip(words, effects, kinds.tolist(), strict=True):
                share = f", {effect} {whole_percent(number, n_answered)}" if effect else ""
                parts += [f"{number:,} with {what}{share}"] if number else []
            who = f"{silent:,} of {answers.n_persons:,} people {'carries' if silent == 1 else 'carry'}"
            sentence = f"{who} no information about difficulty ({'; '.join(parts)})."
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
    connected = bool(np.all(component[answered] == 0))
    return Design(responses, component, _told(right, wrong), answered, extreme, fixed(status), connected)


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
            from spectral_irt.data.unlinked import components_by_search

            with suppress(AnswersStayError):
                rest = answered & (labels < 0)
                labels[rest] = 1 + components_by_search(responses.take_items(rest))
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


def check_usable(responses: Responses) -> None:
    """Nothing when the responses can say which item is harder; otherwise a `DesignError` that says why not."""
    if responses.n_persons == 1 or not responses.kinds_of_people[-1]:  # nobody has a mixed score
        from spectral_irt.data.unlinked import unusable

        raise unusable(responses)


@dataclass(frozen=True, eq=False)
class SharedSet:
    items: Ints  # increasing
    people: Floats  # with each score, k + 1
    right: Floats  # answers by score and item, (k + 1) x k
    together: Floats  # people with a mixed score who answered both items right, k x k

    @property
    def won(self) -> Floats:
        """How many people answered item i right and item j wrong."""
        won = self.right[1:-1].sum(axis=0)[:, None] - self.together
        np.fill_diagonal(won, 0)
        return won


@dataclass(frozen=True, eq=False)
class SharedSets:
    """Sets of items that many people answered; and the other people, if any."""

    sets: tuple[SharedSet, ...]
    rest: Responses | None
    n_items: int


def shared_sets(
    responses: Responses, *, per_item: float = PER_ITEM, per_block: float = PER_BLOCK, shared: float = SHARED
) -> SharedSets | None:
    """What the people on repeated sets told; None where too few people share theirs for that to pay."""
    m = responses.n_items
    if not responses.n_persons:
        return None
    table = scramble(np.arange(m, dtype=np.int32), 0)
    different, people = responses.sum(sampled_sets, table)
    if different > (people / 2 if shared > 0 and responses.n_persons > SAMPLE else people):
        return None
    keys, counts = responses.gather(set_keys, table)
    first, people, code = distinct_keys(keys)
    lengths = counts[first]
    worth = (people >= per_item * lengths) & (people * lengths >= per_block * len(responses.blocks))
    worth &= (lengths > 1) & (lengths <= LONGEST)
    if not worth.any() or np.sum((people * lengths)[worth]) < shared * counts.sum():
        return None
    code = np.where(worth, np.cumsum(worth) - 1, -1)[code]
    sets = items_of_people(responses, first[worth])
    sums = []
    for items, k in zip(sets, map(len, sets), strict=True):
        empty = SharedSet(items, np.zeros(k + 1), np.zeros((k + 1, k)), np.zeros((k, k)))
        sums.append(budget().keep(empty))
    for tables in responses.map(_tables, sets, m, persons=(code,)):
        for which, *more in tables:
            if not more:
                return None  # two sets have the same key, as chance has it once in the life of a universe
            for total, part in zip((sums[which].people, sums[which].right, sums[which].together), more, strict=True):
                total += part
    for one in sums:
        one.together[:] -= one.people[-1]  # those who had all right
    outside = code < 0
    return SharedSets(tuple(sums), responses.take_persons(outside) if outside.any() else None, m)


def distinct_keys(keys: NDArray[np.uint64]) -> tuple[Ints, Ints, Ints]:
    """Who is the first with each key, in their order; how many have it; and which one each person has."""
    if len(keys) and keys.min() == keys.max():
        return np.zeros(1, dtype=np.int64), np.array([len(keys)]), np.zeros(len(keys), dtype=np.int64)
    _, first, of_person, count = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return first[order], count[order], rank[of_person.ravel()]


def sampled_sets(block: Block, table: NDArray[np.uint64]) -> tuple[int, int]:
    """How many different sets the first people of a block answered, and how many these people are."""
    keys, counts = set_keys(block.take(np.arange(min(SAMPLE, block.n_persons))), table)
    some = keys[counts > 0]
    return len(np.unique(some)), len(some)


def set_keys(block: Block | Rows, table: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], Ints]:
    """64 bits by which equal sets of items are known, sums of well-mixed numbers; and how many items there are."""
    counts = block.counts
    keys = counts.astype(np.uint64)
    some = np.flatnonzero((counts > 0) & (counts < len(table)))
    if len(some) == block.n_persons:
        keys += np.add.reduceat(table[block.items], block.indptr[:-1])
    elif len(some):
        part = block.take(some)
        keys[some] += np.add.reduceat(table[part.items], part.indptr[:-1])
    return keys, counts


def items_of_people(responses: Responses, people: Ints) -> list[Ints]:
    place, asked = np.unique(people, return_inverse=True)  # `take_persons` keeps the order of the data
    person, items, _ = responses.take_persons(place).answers()
    order = np.lexsort((items, person))
    ends = np.cumsum(np.bincount(person, minlength=len(place)))[:-1]
    sets = np.split(items[order].astype(np.int64), ends)
    return list(map(sets.__getitem__, asked))


def _tables(block: Block, code: Ints, sets: list[Ints], n_items: int) -> list[tuple[Any, ...]]:
    """For every set in this block: which it is, people by score, right answers by score and item, pairs of these; which
    it is alone, where somebody answered other items than the set has."""
    if not len(code):
        return []
    if code.min() == code.max():
        return [] if code[0] < 0 else [(int(code[0]), *_products(block, sets[code[0]], n_items))]
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-2))
    found: list[tuple[Any, ...]] = []
    for start, stop in zip(starts, [*starts[1:], len(code)], strict=True):
        which = int(code[order[start]])
        if which >= 0:
            found.append((which, *_products(block.take(order[start:stop]), sets[which], n_items)))
    return found


def _products(block: Block, items: Ints, n_items: int) -> tuple[Floats, ...]:
    k = len(items)
    codes = np.asarray(block.items)
    if k < n_items:
        place = np.full(n_items, k, dtype=np.int32)
        place[items] = np.arange(k)
        codes = place[codes]
        if codes.max() == k or np.any(block.counts != k):
            return ()
    scores, right, together = block.scores, np.zeros((k + 1, k)), np.zeros((k, k))
    size = min(max(CELLS // k, 1), EXACT)
    for start in range(0, block.n_persons, size):
        stop = min(start + size, block.n_persons)
        bounds = block.bounds[2 * start : 2 * stop + 1]
        own = codes[bounds[0] : bounds[-1]]
        both = csr((bounds - bounds[0]).astype(np.int32), own, shared_ones(len(own), np.float32), k)
        x = both.toarray()[::2]  # every second row: right, and wrong
        has_score = np.zeros((stop - start, k + 1), dtype=np.float32)
        has_score[np.arange(stop - start), scores[start:stop]] = 1
        right += has_score.T @ x
        together += x.T @ x
    return np.bincount(scores, minlength=k + 1).astype(np.float64), right, together


@dataclass(frozen=True, eq=False)
class Patterns:
    rows: Rows  # one for each
    count: Ints  # people who have it
    of_person: Ints  # which one each person has


def distinct_rows(responses: Responses, keys: NDArray[np.uint64] | None = None) -> Patterns:
    """The patterns of these people. Sets of items are told apart by `set_keys`; `keys` are people's `row_keys`."""
    keys = responses.entries.gather(row_keys, responses.thresholds) if keys is None else keys
    first, count, of_person = distinct_keys(keys)
    (together,) = responses.take_persons(first).in_one_block().blocks
    return Patterns(rows_of(together, responses.thresholds), count, of_person)


def same_rows(rows: Rows, layout: Thresholds) -> Patterns:
    first, count, of_person = distinct_keys(row_keys(rows, layout))
    return Patterns(rows.take(first), count, of_person)


def row_keys(rows: Rows | Block, layout: Thresholds, beside: Ints | None = None) -> NDArray[np.uint64]:
    """A number for each set of items and the number beside it, by default the score."""
    rows = rows_of(rows, layout) if isinstance(rows, Block) else rows
    table = scramble(np.arange(layout.n_items, dtype=np.int32), 0)
    keys = set_keys(rows, table)[0]
    keys += scramble((rows.scores if beside is None else beside).astype(np.int32), 1)
    return keys
