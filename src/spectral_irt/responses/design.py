"""Is a common scale possible? Components, extreme items and people, and how much each item can tell.

Item `i` points to item `j` when somebody answered `i` right and `j` wrong. Difficulties without a prior exist, and are
unique, exactly when every item can be reached from every other along these arrows (Fischer 1981). The arrows are never
formed: item -> person (answered right) -> item (answered wrong) is the same graph with one edge a response.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.errors import LARGEST_COMPONENT, DesignError, DisconnectedDesignError, listed, option
from spectral_irt.responses.block import Block, Floats, Ints, onto_items
from spectral_irt.responses.findings import Finding
from spectral_irt.responses.responses import Labels, Responses

Mask = NDArray[np.bool_]

# A table this many times wider than long is more often transposed than real.
WIDE_RATIO = 10


@dataclass(frozen=True, eq=False)
class Design:
    """What the pattern of answers allows, item by item.

    Attributes
    ----------
    component : int array
        Strongly connected component of each item, 0 the largest; -1 for an item without answers.
    information : float array
        About how much each item's answers tell of its difficulty: `2 R W / (R + W)` where R adds Z_l / n_l over the
        people who answered it right and W adds s_l / n_l over those who answered it wrong. It is the information of the
        Rasch model when people are as able as the items are hard, and close to it elsewhere.
    all_right, all_wrong, unanswered, uninformed : bool arrays
        Items that everyone or no one answered right, nobody answered, or only people with extreme scores answered.
    """

    responses: Responses
    component: Ints
    information: Floats
    all_right: Mask
    all_wrong: Mask
    unanswered: Mask
    uninformed: Mask

    @property
    def answered(self) -> Mask:
        return ~self.unanswered

    @property
    def connected(self) -> bool:
        """Whether all answered items are in one component."""
        return bool(np.all(self.component[self.answered] == 0))

    @property
    def extreme(self) -> Mask:
        """Items without a finite difficulty of their own: all right, all wrong, unanswered or uninformed."""
        return self.all_right | self.all_wrong | self.unanswered | self.uninformed

    @property
    def split(self) -> bool:
        """Whether the items that are not extreme fall into several components."""
        return len(np.unique(self.component[~self.extreme])) > 1

    def status(self) -> NDArray[Any]:
        """A word about each item: "ok", "all right", "all wrong", "no information", "no responses", "apart"."""
        status = np.full(len(self.component), "ok", dtype=object)
        alone = self.answered.sum() > 1 and np.sum(self.component == 0) == 1  # the largest group is a single item
        status[(self.component > 0) | alone] = "apart"
        status[self.uninformed] = "no information"
        status[self.all_right] = "all right"
        status[self.all_wrong] = "all wrong"
        status[self.unanswered] = "no responses"
        return status

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(_findings(self))


def examine(responses: Responses) -> Design:
    """Look at the design of the data: a few passes over the responses, and no item-item matrix."""
    m = responses.n_items
    if responses.n_responses == 0:
        raise DesignError(
            f"{responses.source}: there are no responses. Check the file and the codes for missing answers."
        )
    right, wrong = evidence_of(responses)
    counts, scores = responses.item_counts, responses.item_scores
    unanswered = counts == 0
    all_right = (scores == counts) & ~unanswered
    all_wrong = (scores == 0) & ~unanswered
    uninformed = (right == 0) & (wrong == 0) & ~unanswered & ~all_right & ~all_wrong
    both = right + wrong
    information = np.divide(2 * right * wrong, both, out=np.zeros(m), where=both > 0)
    component = components(responses, information=information)
    return Design(responses, component, information, all_right, all_wrong, unanswered, uninformed)


def evidence_of(responses: Responses) -> tuple[Floats, Floats]:
    """R and W of every item: right answers weighted by Z/n, wrong ones by s/n."""
    shared = responses.shared
    if shared is None:
        return responses.sum(evidence, responses.n_items)
    right = shared.total(lambda one: (1 - one.share) @ one.right)
    wrong = shared.total(lambda one: one.share @ (one.people[:, None] - one.right))
    if shared.rest is not None:
        more = shared.rest.sum(evidence, responses.n_items)
        right, wrong = right + more[0], wrong + more[1]
    return right, wrong


def evidence(block: Block, n_items: int) -> tuple[Floats, Floats]:
    """What a block adds to R and W."""
    right, wrong = block.halves(n_items)
    share = block.scores / np.maximum(block.counts, 1)
    return onto_items(right, 1 - share), onto_items(wrong, share)


# ------------------------------------------------------------------ components


def components(responses: Responses, *, information: Floats | None = None) -> Ints:
    """Strongly connected component of each item, numbered from 0 by falling size; -1 without answers.

    The component of the best-answered item is found by spreading marks along the arrows and against them, each round
    one pass; on ordinary data two rounds each way reach everything. Only what is left goes through a graph search.
    """
    m = responses.n_items
    answered = responses.item_counts > 0
    if not answered.any():
        return np.full(m, -1)
    pivot = int(np.argmax(responses.item_counts if information is None else information))
    core = np.ones(m, dtype=bool)
    for against in (False, True):
        core &= _reach(responses, pivot, against, answered)
    labels = np.full(m, -1)
    labels[core] = 0
    rest = answered & ~core
    if rest.any():
        search = _components_of if responses.engine.gathers else _components_by_sums
        labels[rest] = 1 + search(responses.take_items(rest))
    sizes = np.bincount(labels[answered])
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    labels[answered] = rank[labels[answered]]
    return labels


def _reach(responses: Responses, pivot: int, against: bool, answered: Mask) -> Mask:
    """Items that can be reached from the pivot (or, against the arrows, that can reach it)."""
    marks = np.zeros(responses.n_items)
    marks[pivot] = 1
    reached = int(marks.sum())
    while True:
        found = _next(responses, marks, against)
        marks = ((found > 0) | (marks > 0)).astype(float)
        now = int(marks.sum())
        if now == reached or now == int(answered.sum()):
            return marks > 0
        reached = now


def _next(responses: Responses, marks: Floats, against: bool) -> Floats:
    """Above 0 for items that an arrow from a marked one reaches (or, against the arrows, that reach one)."""
    shared = responses.shared
    if shared is None:
        return responses.sum(spread_marks, responses.n_items, marks, against)
    found = shared.total(lambda one: (one.won if against else one.won.T) @ marks[one.items])
    return found if shared.rest is None else found + shared.rest.sum(spread_marks, responses.n_items, marks, against)


def spread_marks(block: Block, n_items: int, marks: Floats, against: bool) -> Floats:
    """Marked item -> people who answered it right -> items they answered wrong (or the other way round)."""
    start, end = block.halves(n_items)
    if against:
        start, end = end, start
    return onto_items(end, (start @ marks > 0).astype(float))


def _components_of(responses: Responses) -> Ints:
    """Strongly connected components of the items by one search of the whole graph of items and people."""
    from scipy.sparse.csgraph import connected_components

    m, n = responses.n_items, responses.n_users
    person, item, right = responses.answers()
    edges = (np.where(right, item, m + person), np.where(right, m + person, item))
    graph = sparse.coo_array((np.ones(len(edges[0]), dtype=np.int8), edges), shape=(m + n, m + n))
    _, labels = connected_components(graph, directed=True, connection="strong")
    return np.unique(labels[:m], return_inverse=True)[1]


def _components_by_sums(responses: Responses) -> Ints:
    """The same where the answers cannot be gathered: items that no arrow leaves, or none enters, are on their own.

    Of the others, the component of the best-informed is found by marks, and so on: a few passes for each component.
    """
    labels = np.full(responses.n_items, -1)
    left = np.arange(responses.n_items)
    while len(left):
        rest = responses.take_items(left)
        right, wrong = rest.sum(evidence, rest.n_items)
        alone = (right == 0) | (wrong == 0)
        if alone.any():
            labels[left[alone]] = labels.max() + 1 + np.arange(np.count_nonzero(alone))
            left = left[~alone]
        else:
            pivot, everyone = int(np.argmax(np.minimum(right, wrong))), np.ones(len(left), dtype=bool)
            core = _reach(rest, pivot, False, everyone) & _reach(rest, pivot, True, everyone)
            labels[left[core]] = labels.max() + 1
            left = left[~core]
    return labels


# ------------------------------------------------- what an estimate without a prior needs


def estimable(responses: Responses) -> tuple[Responses, Mask, tuple[Finding, ...]]:
    """The items whose difficulty exists without a prior, and a finding that names the others.

    Items that everyone or no one answered right are left out, then those that this makes extreme, and so on. What
    remains must be connected: if not, `DisconnectedDesignError` says how it falls apart.
    """
    kept = np.ones(responses.n_items, dtype=bool)
    rest = responses
    while True:
        right, wrong = evidence_of(rest)
        bad = (right == 0) | (wrong == 0)
        if not bad.any():
            break
        kept[np.flatnonzero(kept)[bad]] = False
        rest = responses.take_items(kept)
        if not kept.any():
            raise DesignError(
                f"{responses.source}: no item was answered right by one and wrong by another person of mixed success; "
                "nothing can be estimated without a prior. Use the spectral method with ",
                option("regularization", "auto"),
                ", or collect more answers.",
            )
    require_connected(rest)
    left = responses.items[~kept]
    findings = []
    if len(left):
        findings.append(
            Finding(
                "items_left_out",
                "warning",
                f"{_count(len(left), 'item')} left out, because without a prior no finite difficulty exists where "
                f"everyone or no one who informs on an item is right: {listed(left)}.",
                "The spectral method with "
                + option("regularization", "auto")
                + " has an estimate from the prior for them; or drop them.",
                tuple(left.tolist()),
            )
        )
    return rest, kept, tuple(findings)


def require_connected(responses: Responses) -> None:
    """Raise `DisconnectedDesignError` unless all items are in one strongly connected component."""
    labels = components(responses)
    if labels.max(initial=0) > 0:
        raise DisconnectedDesignError(
            f"{responses.source}: {describe_split(responses, labels)} Use ",
            LARGEST_COMPONENT,
            ", fit each group on its own, add a form that links them, or use the spectral method with ",
            option("regularization", "auto"),
            ".",
        )


def describe_split(responses: Responses, labels: Ints) -> str:
    """One sentence on how the items fall apart: groups, sizes, the smallest by name."""
    sizes = np.bincount(labels[labels >= 0])
    shown = ", ".join(f"{size:,}" for size in sizes[:5]) + (f" and {len(sizes) - 5:,} more" if len(sizes) > 5 else "")
    smallest = [listed(responses.items[labels == k]) for k in range(len(sizes) - 1, max(0, len(sizes) - 4), -1)]
    if not _shared(responses, labels, informative=False):
        how = "that share no people"
    elif not _shared(responses, labels, informative=True):
        how = "that share only people with all answers right or all wrong"
    else:
        how = "that are linked one way only (where they meet, one side always wins)"
    return (
        f"the items split into {len(sizes):,} groups {how} (sizes {shown}; the smallest: {' | '.join(smallest)}). "
        "Their difficulties have no common scale."
    )


def _shared(responses: Responses, labels: Ints, *, informative: bool) -> bool:
    """Whether some (informative) person answered items of two different groups."""
    return bool(responses.sum(across, labels, informative))


def across(block: Block, labels: Ints, informative: bool) -> int:
    """How many people answered items of two different groups."""
    occupied = np.flatnonzero(block.informative if informative else block.counts)
    if not len(occupied):
        return 0
    ends = np.stack([block.indptr[:-1][occupied], block.indptr[1:][occupied]], axis=1).ravel()
    group = np.append(labels[block.items], 0)  # so that the last person's end is a valid position
    low = np.minimum.reduceat(group, ends)[::2]
    high = np.maximum.reduceat(group, ends)[::2]
    return int(np.sum(low != high))


# -------------------------------------------------------------------- findings


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun} is" if number == 1 else f"{number:,} {noun}s are"


def _findings(design: Design) -> list[Finding]:
    responses, labels = design.responses, design.responses.items
    found: list[Finding] = []

    def about(code: str, mask: Mask, what: str, remedy: str, severity: Any = "warning") -> None:
        if mask.any():
            names: Labels = labels[mask]
            sentence = f"{_count(len(names), 'item')} {what}: {listed(names)}."
            found.append(Finding(code, severity, sentence, remedy, tuple(names.tolist())))

    prior = "Their difficulty comes from the prior alone; collect more answers or drop them."
    about(
        "no_responses", design.unanswered, "answered by nobody", "They get no estimate and come last in every ranking."
    )
    about("extreme_items", design.all_right, "answered right by everyone", prior)
    about("extreme_items", design.all_wrong, "answered wrong by everyone", prior)
    about("uninformed_items", design.uninformed, "answered only by people with all answers right or all wrong", prior)

    extreme = design.extreme
    if design.split:
        relabeled = np.where(extreme, -1, design.component)
        codes = np.unique(relabeled[relabeled >= 0], return_inverse=True)[1]
        groups = np.full(len(labels), -1)
        groups[relabeled >= 0] = codes
        apart = labels[groups > 0]
        found.append(
            Finding(
                "disconnected",
                "warning",
                _sentence(describe_split(responses.take_items(~extreme), groups[~extreme])),
                "Fit each group on its own, add a form that links them, or take "
                + LARGEST_COMPONENT
                + "; with regularization the groups are tied by the prior alone.",
                tuple(apart.tolist()),
            )
        )
    found += _user_findings(responses)
    if responses.n_items > WIDE_RATIO * responses.n_users:
        found.append(
            Finding(
                "many_more_items_than_users",
                "note",
                f"There are {responses.n_items:,} items and only {responses.n_users:,} people.",
                "If rows are items and columns people, say " + option("orient", "items") + ".",
            )
        )
    return found


def _user_findings(responses: Responses) -> list[Finding]:
    words = ("no answers", "a single answer", "every answer right", "every answer wrong")
    kinds = list(zip(words, responses.kinds_of_people[: len(words)].tolist(), strict=True))
    parts = [f"{number:,} with {what}" for what, number in kinds if number]
    if not parts:
        return []
    silent = sum(number for _, number in kinds)
    return [
        Finding(
            "silent_users",
            "note",
            f"{silent:,} of {responses.n_users:,} people {'carries' if silent == 1 else 'carry'} no information "
            f"about difficulty ({', '.join(parts)}).",
            "They stay in the counts and have no effect on the difficulties.",
        )
    ]


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
