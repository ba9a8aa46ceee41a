"""Which categories each item has: those that somebody used, numbered from 0; and the labels that may stand for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.finding import Finding
from spectral_irt.data.labels import Labels, positions, spellings
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.errors import OptionError, ResponseValueError, listed

if TYPE_CHECKING:
    from spectral_irt.data.responses import Responses
    from spectral_irt.data.scoring import Scoring

UNUSED = ("collapse", "error", "keep")
# Categories are 0 to this: a column with more is a count or a measure, and most of its categories would be nobody's.
HIGHEST = 100


def score_of(score: Any, item: Any) -> int:
    with suppress(TypeError, ValueError):
        if 0 <= float(score) <= HIGHEST and float(score).is_integer():
            return int(float(score))
    raise OptionError(
        f"the key gives an answer to item {listed([item])} the score {score!r}; scores are whole numbers from 0 to "
        f"{HIGHEST}."
    )


def recoding(labels: Any) -> dict[str, int] | None:
    """Labels from the lowest category to the highest; those joined by = share one ("never=not at all,sometimes").

    >>> recoding("never,sometimes,often")
    {'never': 0, 'sometimes': 1, 'often': 2}
    """
    if labels is None:
        return None
    if isinstance(labels, Mapping):
        pairs = [(str(label), score_of(number, label)) for label, number in labels.items()]
    else:
        parts = labels.split(",") if isinstance(labels, str) else [str(one) for one in labels]
        pairs = [(label, k) for k, part in enumerate(parts) for label in part.split("=")]
    found: dict[str, int] = {}
    for label, (_, number) in zip(spellings(label for label, _ in pairs), pairs, strict=True):
        if not label or label in found:
            raise OptionError(f"`recode` names {label!r} twice or not at all; each label once.")
        found[label] = number
    if len(found) < 2:
        raise OptionError("`recode` needs two labels or more, from the lowest to the highest.")
    return found


class Used:
    """Which categories were used, by items as they came up, while answers are read."""

    def __init__(self, bits: int) -> None:
        self._bits, self._width = bits, 1  # bits of a category in a slot, and in the table
        self.table: NDArray[np.bool_] = np.zeros((0, 2), dtype=bool)

    def note(self, slots: NDArray[np.int32]) -> None:
        """Take note of the slots of some answers."""
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

    def of_items(self, item_at: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Items x values, items under their final codes: `item_at` of those by which they came up."""
        table = np.zeros((len(item_at), self.table.shape[1]), dtype=bool)
        table[item_at[: len(self.table)]] = self.table[: len(item_at)]
        return table

    def renaming(
        self, settled: Settled, item_at: NDArray[np.integer[Any]]
    ) -> Callable[[NDArray[np.int32]], NDArray[np.int32]]:
        """What makes slots in final items and categories from slots as they came up."""
        final = settled.category[item_at, : self.table.shape[1]].astype(np.int32)
        table = ((item_at.astype(np.int32)[:, None] << settled.thresholds.bits) | final).reshape(-1)
        return lambda slots: table[self._place(slots)]


@dataclass(frozen=True, eq=False)
class Settled:
    """The category, from 0 without gaps, of each item and value; how many thresholds each item has; what stood in the
    data for each category; and what there is to say."""

    category: NDArray[np.uint8]
    thresholds: Thresholds
    codes: Floats | None
    notes: tuple[Finding, ...]


def settle(
    used: NDArray[np.bool_], items: Labels, scoring: Scoring, source: str, names: Labels | None = None
) -> Settled:
    """Categories from 0 to the K of each item, from items x values that somebody used.

    What becomes of values that nobody used is said by `unused`: "collapse", the answers to the item are numbered anew
    without them, with a finding; "error"; or "keep", an item has every category that somebody used for any item of its
    group; `names` is what messages call the items. Answers of which nobody said what they are stay right and wrong
    where none is above 1.
    """
    if scoring.undecided and not used[:, 2:].any():
        return Settled(np.tile(np.arange(2, dtype=np.uint8), (len(items), 1)), Thresholds.ones(len(items)), None, ())
    used, value = _turned(used, items, scoring)
    width = used.shape[1]
    low = int(used.any(axis=0).argmax())
    names = np.array((items if names is None else names).tolist(), dtype=object)
    if scoring.unused == "keep":  # an item has the categories of its group, from the lowest of these to the highest
        used = used_by_group(used, _groups_of(items, scoring.groups))
    n_used = used.sum(axis=1)
    answered = n_used > 0
    lowest = used.argmax(axis=1)
    highest = np.where(answered, width - 1 - used[:, ::-1].argmax(axis=1), 0)
    gaps = answered & ((lowest > 0) | (n_used < highest + 1)) & ~((n_used == 1) & (highest <= 1))
    without = list(dict.fromkeys(names[gaps].tolist()))
    if gaps.any() and scoring.unused == "error":
        k = int(np.flatnonzero(gaps)[0])
        raise ResponseValueError(
            f"{source}: {_items(without)} categories that nobody used: {listed(without)} (the first was answered "
            f"{listed(np.flatnonzero(used[k]).tolist())}). Number the categories from 0 without gaps, or say "
            "`unused='collapse'`."
        )
    found: tuple[Finding, ...] = ()
    if gaps.any():
        if not np.any(gaps & (highest - lowest + 1 > n_used)) and len(set(lowest[answered].tolist())) == 1:
            said = f"The lowest category is {low}; it counts as 0, the next as 1, and so on."
            found = (
                Finding(
                    "categories_shifted",
                    "note",
                    said,
                    "Scores are counted from 0.",
                    tuple(dict.fromkeys(names.tolist())),
                ),
            )
        else:
            found = (
                Finding(
                    "categories_collapsed",
                    "warning",
                    f"{_items(without)} categories that nobody used: {listed(without)}. The answers are numbered anew "
                    "without them.",
                    "A threshold that nobody stands beside cannot be estimated; check the categories of these items.",
                    tuple(without),
                ),
            )
    rank = np.cumsum(used, axis=1) - 1
    rank[n_used == 1] = np.clip(np.arange(width) - low, 0, 1)  # one category only: the lowest of the table, or above it
    thresholds = Thresholds(np.maximum(n_used - 1, 1))
    codes = np.full((len(items), thresholds.widest + 1), np.nan)
    row, column = np.nonzero(used)
    codes[row, rank[row, column]] = column
    return Settled(np.take_along_axis(rank, value, axis=1).astype(np.uint8), thresholds, codes, found)


def _turned(used: NDArray[np.bool_], items: Labels, scoring: Scoring) -> tuple[NDArray[np.bool_], Ints]:
    """Items x values that somebody used after some items were turned round; and what each value is then."""
    value = np.broadcast_to(np.arange(used.shape[1]), used.shape)
    if not scoring.reverse:
        return used, value
    place = positions(scoring.reverse, items)
    unknown = [one for one, k in zip(scoring.reverse, place.tolist(), strict=True) if k < 0]
    if unknown:
        raise OptionError(f"`reverse` names {listed(unknown)}, which are not items; these are {listed(items)}.")
    somewhere = np.flatnonzero(used.any(axis=0))
    low, high = scoring.span or (int(somewhere.min(initial=HIGHEST)), int(somewhere.max(initial=0)))
    beyond = used[place, low + high + 1 :].any(axis=1)
    if beyond.any():
        raise ResponseValueError(
            f"{listed(items[place[beyond]])} is to be turned round within the categories {low} to {high}, and was "
            "answered beyond these."
        )
    wide = np.zeros((len(items), max(used.shape[1], low + high + 1)), dtype=bool)
    wide[:, : used.shape[1]] = used
    value = np.broadcast_to(np.arange(wide.shape[1]), wide.shape).copy()
    value[place] = np.abs(low + high - value[place])  # of values beyond there is none
    wide[place] = np.take_along_axis(wide, value, axis=1)[place]
    wide[place, low + high + 1 :] = False
    return wide, value


def _items(chosen: Sequence[Any]) -> str:
    number = len(chosen)
    return f"{number:,} item{' has' if number == 1 else 's have'}"


def _groups_of(items: Labels, groups: Any) -> Ints:
    if groups is None:
        return np.zeros(len(items), dtype=np.int64)
    each = [groups[item] for item in items.tolist()] if isinstance(groups, Mapping) else list(groups)
    return np.unique([str(one) for one in each], return_inverse=True)[1]


def used_by_group(used: NDArray[np.bool_], group: Ints) -> NDArray[np.bool_]:
    """Items x categories: those that somebody used for an item of the same group."""
    total = np.zeros((int(group.max(initial=0)) + 1, used.shape[1]), dtype=bool)
    np.logical_or.at(total, group, used)
    return total[group]


# ------------------------------------------------------------------ right or wrong, or ordered


def of_either_kind(read: Callable[[Scoring], Responses], how: Scoring) -> Responses:
    """Answers of which nobody said what they are: right and wrong, or ordered categories if they look like it.

    One reading is enough; only where the answers are neither, another says what is odd about them.
    """
    if not how.undecided:
        return read(how)
    with suppress(ResponseValueError):
        found = read(how)
        if found.codes is None:
            return found
        if looks_ordered(found):
            n = found.thresholds.widest + 1
            said = f"The answers are in up to {n} ordered categories, for a partial credit model."
            remedy = (
                "Say `SpectralRatingScale` for items that share their categories, `threshold=` for right and wrong,"
            )
            remedy += " or `key=` if the numbers are options of multiple choice."
            return replace(found, notes=(Finding("ordered_categories", "note", said, remedy), *found.notes))
    return read(replace(how, ordered=False, undecided=False))


def looks_ordered(responses: Responses) -> bool:
    """Whether answers that are not all 0 and 1 look like ordered categories, so that nobody need say so.

    Whole numbers without a gap over all items, from 0 or 1, at most ten, and more than two in at least two items and a
    tenth of them: codes for missing answers (9, 99) leave a gap, and ages or grades stand in a single column.
    """
    codes = responses.category_codes()
    seen = np.unique(codes[np.isfinite(codes)])
    whole = len(seen) and seen[0] in (0, 1) and seen[-1] - seen[0] == len(seen) - 1
    many = int(np.sum(np.isfinite(codes).sum(axis=1) > 2))  # unused categories were collapsed
    return bool(whole and len(seen) <= 10 and many >= 2 and 10 * many >= responses.n_items)
