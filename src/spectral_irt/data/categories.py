"""Which categories each item has, numbered from 0, and the labels that may stand for them.

While answers are read, the values that somebody used are marked for each item (`Used`). When all were read they become
categories from 0 without gaps (`settle`): items that are turned round first, then those that nobody used left out,
refused or kept, as `unused` says.

`ResponsesBuilder` calls this where answers are not right and wrong; `Scoring` for `recode` (`categories_of_labels`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.answer_key import score_of
from spectral_irt.data.block import Codes, Floats, Ints, Mask, Thresholds
from spectral_irt.data.labels import SUSPECTS, Labels, plain_label, positions, spellings
from spectral_irt.data.scoring import HIGHEST, Scoring
from spectral_irt.errors import Finding, OptionError, ResponseValueError
from spectral_irt.text import count, listed, one_or_many

if TYPE_CHECKING:
    from spectral_irt.data.responses import Responses


def categories_of_labels(labels: Any) -> dict[str, int]:
    """Labels from the lowest category to the highest; those joined by = share one ("never=not at all,sometimes")."""
    if isinstance(labels, Mapping):
        pairs = [(str(label), score_of(number, label)) for label, number in labels.items()]
    else:
        parts = labels.split(",") if isinstance(labels, str) else [str(label) for label in labels]
        pairs = [(label, k) for k, part in enumerate(parts) for label in part.split("=")]
    category_of: dict[str, int] = {}
    for label, (_, number) in zip(spellings(label for label, _ in pairs), pairs, strict=True):
        if not label or label in category_of:
            raise OptionError(f"`recode` names {label!r} twice or not at all; each label once.")
        category_of[label] = number
    if len(category_of) < 2:
        raise OptionError("`recode` needs two labels or more, from the lowest to the highest.")
    return category_of


class Used:
    """Which categories were used, by items as they came up, while answers are read."""

    def __init__(self, bits: int) -> None:
        self._bits = bits  # of a category in a slot
        self._width = 1  # the same, in the table
        self.table: NDArray[np.bool_] = np.zeros((0, 2), dtype=bool)

    def note(self, slots: NDArray[np.int32]) -> None:
        if not len(slots):
            return
        n_items = (int(slots.max()) >> self._bits) + 1
        width = int((slots & ((1 << self._bits) - 1)).max()).bit_length()
        if width > self._width or n_items > len(self.table):
            self._width = max(width, self._width)
            grown = np.zeros((max(n_items, 2 * len(self.table)), 1 << self._width), dtype=bool)
            grown[: len(self.table), : self.table.shape[1]] = self.table
            self.table = grown
        self.table.reshape(-1)[self._place(slots)] = True

    def _place(self, slots: NDArray[np.int32]) -> NDArray[Any]:
        if self._width == self._bits:
            return slots
        return ((slots >> self._bits) << self._width) | (slots & ((1 << self._width) - 1))

    def final_categories(
        self, item_at: Codes, items: Labels, scoring: Scoring, source: str, of: tuple[Labels, Ints] | None
    ) -> tuple[Settled, Callable[[NDArray[np.int32]], NDArray[np.int32]]]:
        """The categories of items under their final codes, `item_at` of those by which they came up; and what makes
        slots in these from slots as they came up. `of` are the things rated, and the one of each item."""
        used = np.zeros((len(item_at), self.table.shape[1]), dtype=bool)
        used[item_at[: len(self.table)]] = self.table[: len(item_at)]
        names = None
        if of is not None:
            things, thing = of
            used = used_by_group(used, thing)
            names = things[thing]
        result = settle(used, items, scoring, source, names)
        category = result.category[item_at, : self.table.shape[1]].astype(np.int32)
        final = ((item_at.astype(np.int32)[:, None] << result.thresholds.bits) | category).reshape(-1)
        return result, lambda slots: final[self._place(slots)]


@dataclass(frozen=True, eq=False)
class Settled:
    """The category, from 0 without gaps, of each item and value; the thresholds of each item; what stood in the data
    for each category; findings; and the sum of a code and what it became in an item that was turned round."""

    category: NDArray[np.uint8]
    thresholds: Thresholds
    codes: Floats | None
    notes: tuple[Finding, ...]
    turned: int = 0


def settle(used: Mask, items: Labels, scoring: Scoring, source: str, names: Labels | None = None) -> Settled:
    """Categories from 0 to the K of each item, from items x values that somebody used; `names` are those of the things
    rated, by which options and messages know the items.
    Of values that nobody used `unused` says: "collapse", the other categories of the item are renumbered; "error"; or
    "keep", an item has every category that somebody used for any item of its group."""
    if scoring.undecided and not used[:, 2:].any():
        right_or_wrong = np.tile(np.arange(2, dtype=np.uint8), (len(items), 1))
        return Settled(right_or_wrong, Thresholds.ones(len(items)), None, ())
    if scoring.recode is None and scoring.key is None:
        _refuse_suspect(used, source)
    names = np.array((items if names is None else names).tolist(), dtype=object)
    used, value, turned = _reverse_items(used, names, scoring)
    lowest_of_all = int(used.any(axis=0).argmax())
    if scoring.unused == "keep":  # an item has the categories of its group, from the lowest of these to the highest
        things, thing = distinct_labels(names)
        used = used_by_group(used, group_codes(things, scoring.groups)[1][thing])
    gaps = _Gaps.of(used)
    if gaps.items.any() and scoring.unused == "error":
        raise gaps.refusal(used, names, source)
    rank = np.cumsum(used, axis=1) - 1
    # One category only: the lowest of the table, or above it.
    rank[gaps.n_used == 1] = np.clip(np.arange(used.shape[1]) - lowest_of_all, 0, 1)
    thresholds = Thresholds(np.maximum(gaps.n_used - 1, 1))
    codes = np.full((len(items), thresholds.widest + 1), np.nan)
    row, column = np.nonzero(used)
    codes[row, rank[row, column]] = column
    category = np.take_along_axis(rank, value, axis=1).astype(np.uint8)
    return Settled(category, thresholds, codes, gaps.findings(names, lowest_of_all), turned)


def _refuse_suspect(used: Mask, source: str) -> None:
    """An error where the highest value is one that often stands for a missing answer, far above the others."""
    values = np.flatnonzero(used.any(axis=0)).tolist()
    if len(values) < 3:
        return
    *others, top = values
    if str(top) in SUSPECTS and top > others[-1] + 2:
        raise ResponseValueError(
            f"{source}: answers to {count(int(used[:, top].sum()), 'item')} are {top}, and the other categories are "
            f"{others[0]} to {others[-1]}. If {top} means 'not answered', say `missing={top}`; if it is a category, "
            "name all categories with `recode=`."
        )


class _Gaps(NamedTuple):
    """Which items have categories that nobody used, how many each has that somebody used, and the lowest and the
    highest of these."""

    items: Mask
    n_used: Ints
    lowest: Ints
    highest: Ints

    @classmethod
    def of(cls, used: Mask) -> _Gaps:
        n_used = used.sum(axis=1)
        answered = n_used > 0
        lowest = used.argmax(axis=1)
        highest = np.where(answered, used.shape[1] - 1 - used[:, ::-1].argmax(axis=1), 0)
        one_of_two = (n_used == 1) & (highest <= 1)  # all right, or all wrong
        items = answered & ((lowest > 0) | (n_used < highest + 1)) & ~one_of_two
        return cls(items, n_used, lowest, highest)

    def refusal(self, used: Mask, names: Labels, source: str) -> ResponseValueError:
        first = int(np.flatnonzero(self.items)[0])
        return ResponseValueError(
            f"{source}: {_have_unused(names[self.items])} (the first was answered "
            f"{listed(np.flatnonzero(used[first]).tolist())}). Number the categories from 0 without gaps, or say "
            "`unused='collapse'`."
        )

    def findings(self, names: Labels, lowest_of_all: int) -> tuple[Finding, ...]:
        """That categories were renumbered: all of them from their lowest, or those of some items."""
        if not self.items.any():
            return ()
        all_from_one_code = len(set(self.lowest[self.n_used > 0].tolist())) == 1
        between = self.highest - self.lowest + 1 > self.n_used
        if all_from_one_code and not np.any(self.items & between):
            sentence = f"The lowest category is {lowest_of_all}; it counts as 0, the next as 1, and so on."
            things = tuple(dict.fromkeys(names))
            return (Finding("categories_shifted", "note", sentence, "Scores are counted from 0.", things),)
        # Codes that begin with 1 at every item are no reason to name an item.
        uneven = self.items & ((self.lowest > lowest_of_all) | (self.highest - lowest_of_all + 1 > self.n_used))
        things = tuple(dict.fromkeys(names[uneven].tolist()))
        sentence = f"{_have_unused(names[uneven])}. The others are renumbered."
        these = one_or_many(len(things), "this item", "these items")
        remedy = f"A threshold without answers on both sides cannot be estimated; check the categories of {these}."
        return (Finding("categories_collapsed", "warning", sentence, remedy, things),)


def _have_unused(names: Labels) -> str:
    """Such as "2 items have categories that nobody used: q1, q2"."""
    things = list(dict.fromkeys(names.tolist()))
    have = one_or_many(len(things), "has", "have")
    return f"{count(len(things), 'item')} {have} categories that nobody used: {listed(things)}"


Groups = Mapping[Any, Any] | Sequence[Any] | None  # of items that share a rating scale


def group_codes(items: Labels, groups: Groups) -> tuple[Labels, Ints]:
    """The labels of the groups of items that share a rating scale, and the group of each item."""
    if groups is None:
        return np.array(["all"], dtype=object), np.zeros(len(items), dtype=np.int64)
    if isinstance(groups, Mapping):
        absent = [item for item in items.tolist() if item not in groups]
        if absent:
            raise OptionError(f"groups says nothing about {count(len(absent), 'item')}: {listed(absent)}.")
        groups = [groups[item] for item in items.tolist()]
    if len(groups) != len(items):
        raise OptionError(f"groups has {len(groups):,} labels; there are {count(len(items), 'item')}.")
    return distinct_labels(groups)


def distinct_labels(labels: Iterable[Any]) -> tuple[Labels, Ints]:
    """The labels that differ, in the order of their first appearance, and which of them each one is."""
    every = list(map(plain_label, labels))
    different = list(dict.fromkeys(every))
    return np.fromiter(different, dtype=object), positions(every, different)


def _reverse_items(used: NDArray[np.bool_], items: Labels, scoring: Scoring) -> tuple[NDArray[np.bool_], Ints, int]:
    """Items x values used after some items were turned round; what each value is then; and the sum of both. An item may
    be there several times, once for each rater."""
    value = np.broadcast_to(np.arange(used.shape[1]), used.shape)
    if not scoring.reverse:
        return used, value, 0
    things, thing = distinct_labels(items)
    chosen = positions(scoring.reverse, things)
    unknown = [label for label, k in zip(scoring.reverse, chosen.tolist(), strict=True) if k < 0]
    if unknown:
        raise OptionError(f"`reverse` names {listed(unknown)}, which are not items; these are {listed(things)}.")
    place = np.flatnonzero(np.isin(thing, chosen))
    somewhere = np.flatnonzero(used.any(axis=0))
    low, high = scoring.span or (int(somewhere.min(initial=HIGHEST)), int(somewhere.max(initial=0)))
    beyond = used[place, low + high + 1 :].any(axis=1)
    if beyond.any():
        what = f"{listed(items[place[beyond]])} is to be turned round within the categories {low} to {high},"
        raise ResponseValueError(f"{what} and was answered beyond these.")
    wide = np.zeros((len(items), max(used.shape[1], low + high + 1)), dtype=bool)
    wide[:, : used.shape[1]] = used
    value = np.broadcast_to(np.arange(wide.shape[1]), wide.shape).copy()
    value[place] = np.abs(low + high - value[place])  # of values beyond there is none
    wide[place] = np.take_along_axis(wide, value, axis=1)[place]
    wide[place, low + high + 1 :] = False
    return wide, value, low + high


def used_by_group(used: NDArray[np.bool_], group: Ints) -> NDArray[np.bool_]:
    total = np.zeros((int(group.max(initial=0)) + 1, used.shape[1]), dtype=bool)
    np.logical_or.at(total, group, used)
    return total[group]


def without_unused(answers: Responses, scoring: Scoring, of: tuple[Labels, Ints] | None) -> Responses:
    """The answers without categories that only repeated answers were in, which were dropped. `of` are the things rated,
    and the one of each item: it keeps a category that any rater used."""
    counts = answers.category_counts
    if np.all(counts != 0):
        return answers
    value = np.nan_to_num(answers.category_codes()).astype(np.int64)
    used = np.zeros((answers.n_items, int(value.max()) + 2), dtype=bool)
    row, column = np.nonzero(np.nan_to_num(counts))
    used[row, value[row, column]] = True
    names = None
    if of is not None:
        used = used_by_group(used, of[1])
        names = of[0][of[1]]
    final = settle(used, answers.items, replace(scoring, reverse=()), answers.source, names)
    person, item, category = answers.answers()
    category = final.category[item, value[item, category.astype(np.int64)]]
    return answers.from_codes(
        person,
        item,
        category,
        persons=answers.persons,
        items=answers.items,
        thresholds=final.thresholds,
        source=answers.source,
        codes=final.codes,
        notes=final.notes,
    )


def looks_ordered(responses: Responses) -> bool:
    """Whether answers that are not all 0 and 1 look like ordered categories: whole numbers without a gap over all
    items, from 0 or 1, at most ten, and more than two in at least two items and a tenth of them. Codes for missing
    answers (9, 99) leave a gap, and ages or grades stand in a single column."""
    codes = responses.category_codes()
    seen = np.unique(codes[np.isfinite(codes)])
    are_codes = len(seen) and seen[0] in (0, 1) and seen[-1] - seen[0] == len(seen) - 1
    many = int(np.sum(np.isfinite(codes).sum(axis=1) > 2))  # unused categories were collapsed
    return bool(are_codes and len(seen) <= 10 and many >= 2 and 10 * many >= responses.n_items)
