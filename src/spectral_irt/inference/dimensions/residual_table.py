"""Residuals at Warm's abilities, and their correlations: as observed, and under the model.

A person's ability depends on the items answered and the score alone, so what the model expects of each response is the
same in every draw given the score (`conditional.draw`): a draw changes the responses and nothing else, and correlations
of its residuals are those that the observed ones are compared with.

Q3 is the correlation of residuals x - E over people who answered both items (Yen 1984). The first contrast is the first
principal component of the correlations of standardized residuals (x - E) / sqrt(V), 0 where there is no response, as in
Winsteps. People with an extreme score are to be left out: given the score their responses are certain, and all they do
is to make items look alike. `evidence.py` compares the observed ones with those of the draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from spectral_irt.ability import answer_moments
from spectral_irt.conditional.draw import draws_given_score
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.numerics import safe_divide
from spectral_irt.persons.abilities import abilities
from spectral_irt.persons.residuals import LEAST

CELLS = 400_000  # residuals of a run of draws, and numbers of the sums of a batch: some MB each
TINY = 1e-12  # of a variance: the residuals of an item that do not vary but for rounding


class Correlations(NamedTuple):
    """Of one data set or of several (first axis): Q3 of every pair, items x items, NaN where it is not known; and
    correlations of standardized residuals."""

    q3: Floats
    standardized: Floats


class _Sums(NamedTuple):
    """Sums over people, by data set: over those who answered both items the residual e_i of the first, its square and
    e_i e_j; over all people z_i and z_i z_j of standardized residuals."""

    e: Floats
    square: Floats
    product: Floats
    z: Floats
    z_product: Floats

    @classmethod
    def zeros(cls, sets: int, items: int) -> Self:
        pairs = (sets, items, items)
        return cls(np.zeros(pairs), np.zeros(pairs), np.zeros(pairs), np.zeros((sets, items)), np.zeros(pairs))


def with_mixed_scores(responses: Responses) -> Responses:
    """The people whose score is neither the lowest nor the highest."""
    mixed = responses.informative
    if mixed.all():
        return responses
    return responses.take_persons(np.flatnonzero(mixed))


@dataclass(frozen=True, eq=False)
class ResidualTable:
    """People x items: the category, its mean and its standard deviation under the model at the
    person's ability (0 and 1 where there is no response), and whether there is a response."""

    responses: Responses
    thresholds: Floats
    category: Floats
    mean: Floats
    sd: Floats
    seen: NDArray[np.bool_]

    @classmethod
    def of(cls, responses: Responses, thresholds: Floats) -> Self:
        """Of responses to items that all have thresholds, with a table of people x items that fits into memory."""
        shape = (responses.n_persons, responses.n_items)
        theta = abilities(responses, thresholds, "wle").ability
        person, item, x = responses.answers()
        mean, variance, *_ = answer_moments(theta[person], item, responses.thresholds.cumulated(thresholds))
        category = np.zeros(shape)
        expected = np.zeros(shape)
        sd = np.ones(shape)
        seen = np.zeros(shape, dtype=bool)
        cell = (person, item)
        category[cell] = x
        expected[cell] = mean
        sd[cell] = np.sqrt(np.maximum(variance, LEAST))
        seen[cell] = True
        return cls(responses, thresholds, category, expected, sd, seen)

    @property
    def n_both(self) -> Floats:
        """People who answered both items of a pair."""
        seen = self.seen.astype(np.float64)
        return np.asarray(seen.T @ seen)

    def correlations(self, min_people: int) -> Correlations:
        """Of the observed responses."""
        n, m = self.seen.shape
        sums = _Sums.zeros(1, m)
        self._add(sums, self.category[None], np.arange(n), np.arange(m))
        of_one_set = self._correlations_from(sums, min_people)
        return Correlations(of_one_set.q3[0], of_one_set.standardized[0])

    def correlations_of_draws(self, draws: range, seed: int, min_people: int) -> Iterator[Correlations]:
        """Of responses drawn given the score, batch after batch of draws."""
        m = self.seen.shape[1]
        batch = max(1, CELLS // m**2)
        for start in range(0, len(draws), batch):
            draws_of_batch = draws[start : start + batch]
            sums = _Sums.zeros(len(draws_of_batch), m)
            for block in draws_given_score(self.responses, self.thresholds, draws=draws_of_batch, seed=seed):
                self._add(sums, block.categories, block.persons, block.items)
            yield self._correlations_from(sums, min_people)

    def _add(self, sums: _Sums, categories: NDArray[Any], persons: Ints, items: Ints) -> None:
        """Add the residuals of these people and items, data sets x people x items."""
        cells = np.ix_(persons, items)
        seen = self.seen[cells]
        mean = self.mean[cells]
        sd = self.sd[cells]
        answered = seen.astype(np.float64)
        complete = bool(seen.all())
        first, second = np.ix_(items, items)
        step = max(1, CELLS // seen.size)
        for start in range(0, len(categories), step):
            run = slice(start, start + step)
            e = categories[run] - mean  # 0 where there is no response: both are
            z = e / sd
            transposed = e.swapaxes(1, 2)
            if complete:  # everybody answered both items of every pair
                sum_of_first = e.sum(axis=1)[:, :, None]
                square_of_first = np.einsum("dpi,dpi->di", e, e)[:, :, None]
            else:
                sum_of_first = transposed @ answered
                square_of_first = (e * e).swapaxes(1, 2) @ answered
            sums.e[run, first, second] += sum_of_first
            sums.square[run, first, second] += square_of_first
            sums.product[run, first, second] += transposed @ e
            sums.z[run, items] += z.sum(axis=1)
            sums.z_product[run, first, second] += z.swapaxes(1, 2) @ z

    def _correlations_from(self, sums: _Sums, min_people: int) -> Correlations:
        n = self.n_both
        other = sums.e.swapaxes(1, 2)
        other_square = sums.square.swapaxes(1, 2)
        spread = (n * sums.square - sums.e**2) * (n * other_square - other**2)
        has_q3 = (n >= min_people) & (spread > TINY * (n * sums.square) * (n * other_square))
        q3 = np.full(spread.shape, np.nan)
        np.divide(n * sums.product - sums.e * other, np.sqrt(np.maximum(spread, 0)), out=q3, where=has_q3)
        # People without a response to an item have a residual of 0 there, and count.
        z = sums.z / len(self.seen)
        covariance = sums.z_product / len(self.seen) - z[:, :, None] * z[:, None, :]
        sd = np.sqrt(np.maximum(np.einsum("dii->di", covariance), 0))
        scale = sd[:, :, None] * sd[:, None, :]
        standardized = safe_divide(covariance, scale)
        diagonal = np.arange(len(n))
        standardized[:, diagonal, diagonal] = 1.0
        return Correlations(np.clip(q3, -1, 1), standardized)
