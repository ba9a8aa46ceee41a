"""Successive sampling without replacement, for many people at once, at a cost that follows the items drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectral_irt.responses.block import Floats, Ints
from spectral_irt.responses.pack import user_chunks

# Responses drawn at a time. Not tied to the size of a block: a seed must keep its bits when that is tuned.
CHUNK = 500_000
# (person, item, position) of a draw must fit in 63 bits: 2^18 people of a chunk, 2^24 items, 2^20 positions.
MOST_ITEMS = 2**24


class SuccessiveSampler:
    """Successive sampling without replacement: item after item, with probability proportional to its weight.

    Two ways to the same distribution, both exact. Drawing *with* replacement and keeping the first n_l items to appear
    is cheap while few draws repeat. The race, in which item `i` arrives after an exponential time with rate `weight_i`
    and the first n_l win, costs all items once, and serves the people for whom the draws would cost more.
    """

    def __init__(self, weights: Floats) -> None:
        self.n_items = len(weights)
        self.weights = weights / weights.sum()
        self.keep, self.alias = _alias_table(self.weights)
        # draws -> expected number of different items among them, sum_i 1 - exp(-draws * weight_i)
        self._draws = np.concatenate([[0.0], np.geomspace(1, max(self.n_items, 2), 48)])
        self._different = np.array([-np.expm1(-draws * self.weights).sum() for draws in self._draws])

    def draw(self, rng: np.random.Generator, counts: Ints) -> NDArray[np.int32]:
        """`counts[l]` different items for every person `l`, person after person."""
        # Draws that give the wanted number of items, with about a standard deviation to spare.
        draws = np.ceil(np.interp(counts + np.sqrt(counts), self._different, self._draws, right=np.inf))
        race = draws > self.n_items / 2  # a draw, with its part in the sort, costs about twice an arrival
        cost = np.where(race, self.n_items, draws).astype(np.int64)
        parts = []
        for start, stop in user_chunks(limits_of(cost), CHUNK):
            sizes, some = counts[start:stop], race[start:stop]
            racing = np.repeat(some, sizes)
            part = np.empty(len(racing), dtype=np.int32)
            part[racing] = self._race(rng, sizes[some])
            part[~racing] = self._first_seen(rng, sizes[~some], cost[start:stop][~some])
            parts.append(part)
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)

    def _race(self, rng: np.random.Generator, counts: Ints) -> NDArray[np.int32]:
        winners = [np.zeros(0, dtype=np.int32)]
        for count in counts:
            arrival = rng.standard_exponential(self.n_items) / self.weights
            winners.append(np.argpartition(arrival, min(count, self.n_items - 1))[:count].astype(np.int32))
        return np.concatenate(winners)

    def _first_seen(self, rng: np.random.Generator, counts: Ints, draws: Ints) -> NDArray[np.int32]:
        out = np.empty(int(counts.sum()), dtype=np.int32)
        first_slot = limits_of(counts)[:-1]
        users = np.flatnonzero(counts)  # whose items are still to be completed
        seen = np.zeros(0, dtype=np.int32)  # what they have so far, in order of appearance
        n_seen = np.zeros(len(users), dtype=np.int64)
        while len(users):
            limits = limits_of(n_seen + draws[users])
            owner = np.repeat(np.arange(len(users)), np.diff(limits))
            old = np.arange(limits[-1]) < (limits[:-1] + n_seen)[owner]
            item = np.empty(limits[-1], dtype=np.int32)
            item[old] = seen
            item[~old] = self._draw_with_replacement(rng, int(draws[users].sum()))
            new = _first_appearance(owner, item, self.n_items)
            rank: Ints = np.cumsum(new, dtype=np.int64)
            rank -= np.concatenate([[0], rank])[limits[:-1]][owner]
            new &= rank <= counts[users][owner]
            item, owner, rank = item[new], owner[new], rank[new]
            n_seen = np.bincount(owner, minlength=len(users))
            done = n_seen == counts[users]
            ready = done[owner]
            out[first_slot[users][owner[ready]] + rank[ready] - 1] = item[ready]
            users, n_seen, seen = users[~done], n_seen[~done], item[~ready]
        return out

    def _draw_with_replacement(self, rng: np.random.Generator, size: int) -> NDArray[np.int32]:
        """Walker's alias method: a column at random, then its own item or its alias."""
        place = rng.random(size) * self.n_items
        column = place.astype(np.int32)
        return np.where(place - column < self.keep[column], column, self.alias[column])


def _first_appearance(owner: Ints, item: NDArray[np.int32], n_items: int) -> NDArray[np.bool_]:
    """Whether each draw is the first of its item for its owner."""
    bits = len(item).bit_length()
    key = ((owner * n_items + item) << bits) + np.arange(len(item))
    key.sort()
    pair = key >> bits
    first = np.concatenate([[True], pair[1:] != pair[:-1]])
    new = np.zeros(len(item), dtype=bool)
    new[key[first] & ((1 << bits) - 1)] = True
    return new


def _alias_table(weights: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """Columns of equal height, each holding a share `keep` of its own item and the rest of one other."""
    keep = weights * len(weights)
    alias = np.arange(len(weights), dtype=np.int32)
    heights = keep.tolist()
    small = [i for i, height in enumerate(heights) if height < 1]
    large = [i for i, height in enumerate(heights) if height >= 1]
    while small and large:
        low, high = small.pop(), large[-1]
        alias[low] = high
        heights[high] -= 1 - heights[low]
        if heights[high] < 1:
            small.append(large.pop())
    keep = np.array(heights)
    keep[small + large] = 1.0  # what rounding left over
    return keep, alias


def limits_of(counts: Ints) -> Ints:
    """Where each person begins, and the end: 0, n_1, n_1 + n_2, ..."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64, copy=False)
