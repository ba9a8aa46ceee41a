"""How able people are by their other answers: what an item is compared with, so that the item itself raises nobody.

Of a person's answer x to an item, the rest is the score s on the other items, of the n that could be had there. With
mean m and variance v of the locations of these items, PROX makes it an ability,

    theta = m + sqrt(1 + v / 2.89) log((s + 0.5) / (n - s + 0.5)),

so that people who were given items of unlike difficulty can be compared. Classical statistics, the test of reversed
items, distractors and the item-restscore association go by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from spectral_irt.data import Block
from spectral_irt.data.block import Floats, Ints, Thresholds, answered_items, person_chunks, rows_of
from spectral_irt.model import prox
from spectral_irt.persons.abilities import answers_with_difficulty

CACHED = 65_536  # answers whose few numbers each stay in a core's second-level cache
FEWEST = 5  # people of a group whose mean is compared


class RestScores(NamedTuple):
    """Answers of people who have others: the block that they are in, item and answer; the person's score on the other
    items and how high it could be there; and mean and variance of the locations of these items."""

    block: Block
    item: NDArray[np.int32]
    x: Floats
    score: Floats
    max_score: Floats
    mean: Floats
    variance: Floats

    @property
    def share(self) -> Floats:
        """Of the points that could be had on the other items."""
        return self.score / self.max_score

    @property
    def ability(self) -> Floats:
        return self.ability_at(self.score)

    def ability_at(self, score: Floats) -> Floats:
        """PROX by the other items, with this score on them."""
        logit = np.log((score + 0.5) / (self.max_score - score + 0.5))
        return np.asarray(prox(self.mean, self.variance, logit))


def rest_scores(block: Block, location: Floats, layout: Thresholds) -> RestScores:
    """The answers of a block that have a rest: somebody with a single answer has none."""
    rows = rows_of(block, layout)
    if (rows.counts < 2).any():
        block = block.take(np.flatnonzero(rows.counts > 1))
        rows = rows_of(block, layout)
    _, item, category = answered_items(block, layout)
    of_item = location[item]
    n_others = np.repeat(rows.counts - 1.0, rows.counts)
    mean = (np.repeat(rows.sums(of_item), rows.counts) - of_item) / n_others
    mean_square = (np.repeat(rows.sums(of_item * of_item), rows.counts) - of_item * of_item) / n_others
    max_score = n_others
    if not layout.binary:
        max_score = np.repeat(rows.max_scores, rows.counts) - layout.max_score[item].astype(float)
    x = category.astype(np.float64)
    return RestScores(
        block=block,
        item=item,
        x=x,
        score=np.repeat(rows.scores, rows.counts) - x,
        max_score=max_score,
        mean=mean,
        variance=np.maximum(mean_square - mean * mean, 0.0),
    )


class PersonRun(NamedTuple):
    """Some people of a block, by position: all their answers, the rest of these, and that of their answers to items
    with a difficulty, by these items alone."""

    persons: Ints
    block: Block
    rest: RestScores
    measured: RestScores


def person_runs(block: Block, beta: Floats, location: Floats, layout: Thresholds) -> Iterator[PersonRun]:
    """The people of a block in runs that fit the cache."""
    location = np.where(np.isfinite(location), location, np.nan)
    for start, stop in person_chunks(block.indptr, CACHED):
        persons = np.arange(start, stop)
        part = block.take(persons)
        rest_of_person = measured = rest_scores(part, location, layout)
        with_difficulty = answers_with_difficulty(part, beta)
        if with_difficulty is not part:
            measured = rest_scores(with_difficulty, location, layout)
        yield PersonRun(persons, part, rest_of_person, measured)


class AbilitySums(NamedTuple):
    """Groups of people (last axis): how many they are, and sums of their abilities and of the squares."""

    n: Floats
    ability: Floats
    square: Floats


def p_rising(groups: AbilitySums) -> Floats:
    """One-sided p of a slope of ability by group, in order, above zero; NaN unless two groups have five people.

    The regression of ability on the number of the group, with a variance of its own in each, and the degrees of freedom
    of Satterthwaite: of two groups, Welch's test.
    """
    n = groups.n
    enough = n >= FEWEST
    people = np.where(enough, n, 0.0)
    number = np.arange(n.shape[-1], dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = groups.ability / n
        variance = np.maximum(groups.square - n * mean**2, 0) / (n - 1)
        deviation = number - (people @ number / people.sum(axis=-1))[..., None]
        weight = people * deviation / (people * deviation**2).sum(axis=-1)[..., None]
        slope = np.where(enough, weight * mean, 0.0).sum(axis=-1)
        variance_part = np.where(enough, weight**2 * variance / n, 0.0)
        slope_variance = variance_part.sum(axis=-1)
        t = slope / np.sqrt(slope_variance)
        df = slope_variance**2 / np.where(enough, variance_part**2 / (n - 1), 0.0).sum(axis=-1)
    has_test = (enough.sum(axis=-1) > 1) & np.isfinite(t) & np.isfinite(df)
    p = scipy.special.stdtr(np.where(has_test, df, 1.0), np.where(has_test, -t, 0.0))
    return np.where(has_test, p, np.nan)
