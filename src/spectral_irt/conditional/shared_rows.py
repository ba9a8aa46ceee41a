"""The score of the conditional likelihood of people who share their sets of items: a row for every set and score.

P(X = 1 | score) and the links are those of any person of the row; answers and scores are sums over its people, of whom
nothing else is needed. What the standard errors need, the products of single people's scores, follows from how many
answered two items right: with R the right answers of the N people of a row,

    sum_l (X_l - P) (X_l - P)' = X' X - R P' - P R' + N P P'.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from spectral_irt.conditional.given_score import Exact
from spectral_irt.conditional.information import links
from spectral_irt.conditional.rows import Rows
from spectral_irt.conditional.series_binary import DOUBLE
from spectral_irt.conditional.tree import given_every_score
from spectral_irt.data.block import EMPTY, Block, Floats, Ints
from spectral_irt.data.same_items import SharedSet, SharedSets


@dataclass(frozen=True, eq=False)
class SharedRows(Rows):
    """Rows of whole groups of people: for each set its scores from 1 to k - 1.

    `weight` says how many people a row has, `right` how many of them answered each item right.
    """

    right: Floats = field(default_factory=lambda: np.empty(0))
    sets: tuple[SharedSet, ...] = ()

    @classmethod
    def of_sets(cls, shared: SharedSets) -> SharedRows:
        lengths = np.array([len(one.items) for one in shared.sets])
        indptr = np.concatenate([[0], np.cumsum(np.repeat(lengths, lengths - 1))]).astype(np.int64)
        scores = np.concatenate([np.arange(1, k) for k in lengths])
        items = np.concatenate([np.tile(one.items, len(one.items) - 1) for one in shared.sets]).astype(np.int32)
        right, people = (
            np.concatenate([getattr(one, name)[one.mixed].ravel() for one in shared.sets])
            for name in ("right", "people")
        )
        return cls(
            block=Block(indptr, indptr[:-1] + scores, items),
            n_long=0,
            theta=np.zeros(len(scores)),
            exact=Exact(EMPTY, np.empty(0), slice(0, 0)),
            score=np.empty(len(items)),
            link=np.empty(len(items)),
            n_items=shared.n_items,
            precision=DOUBLE,
            weight=people,
            right=right,
            sets=shared.sets,
        )

    def _each(self, values: Floats) -> Iterator[tuple[SharedSet, Floats]]:
        """Every set, and its part of what there is for all cells, scores x items."""
        start = 0
        for one in self.sets:
            k = len(one.items)
            stop = start + k * (k - 1)
            yield one, values[start:stop].reshape(k - 1, k)
            start = stop

    def filled(self, beta: Floats) -> SharedRows:
        for (one, p), (_, c) in zip(self._each(self.score), self._each(self.link), strict=True):
            p[:] = given_every_score(beta[None, one.items]).p[0].T
            c[:] = links(p.T, np.full(len(p), len(one.items))).T
        return self

    def observed(self) -> Floats:
        return self.right

    def answers_to_items(self) -> tuple[Floats, Floats]:
        assert self.weight is not None
        each = np.repeat(self.weight, self.block.counts)
        items, m = self.block.items, self.n_items
        counts, right = (np.bincount(items, weights=one, minlength=m) for one in (each, self.right))
        return counts.astype(np.float64), right.astype(np.float64)

    def _products(self) -> Iterator[tuple[Ints, Floats]]:
        """The items of every set, and sum_l (X_l - P) (X_l - P)' over its people."""
        for one, score in self._each(self.score):
            right, people = one.right[one.mixed], one.people[one.mixed][:, None]
            p = np.divide(right - score, people, out=np.zeros_like(score), where=people > 0)
            across = (right - people * p / 2).T @ p
            yield one.items, one.together - across - across.T

    def score_squares(self) -> Floats:
        return np.diag(self.score_gram(False)).copy()

    def score_gram(self, single: bool) -> Floats:
        total = np.zeros((self.n_items, self.n_items))
        for items, products in self._products():
            total[np.ix_(items, items)] += products
        return total

    def score_twice(self, v: Floats) -> Floats:
        total = np.zeros((self.n_items, *v.shape[1:]))
        for items, products in self._products():
            total[items] += products @ v[items]
        return total
