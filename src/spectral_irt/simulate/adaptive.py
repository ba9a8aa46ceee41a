"""Designs in which the answers so far decide what comes next: adaptive tests, routing, stopping rules.

What is missing then depends on answers that were given, and on nothing else: likelihoods of all answers of a person
may be used as they are, likelihoods given the score may not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import OptionError
from spectral_irt.model import category_probabilities, sigmoid
from spectral_irt.simulate.designs import CHUNK, DESIGNS, Design

Given = tuple[Ints, NDArray[np.int32], Ints]
NODES = np.linspace(-4, 4, 41)  # abilities among which an adaptive test looks for that of a person
# Decimals that count when the next item is chosen: of items that tell equally much it is the first.
TIES = 9


@dataclass(frozen=True, eq=False)
class Items:
    """The true items: sums of the thresholds up to each category, as `Thresholds.cumulated` has them, and slopes."""

    cumulated: Floats
    slopes: Floats

    @property
    def max_score(self) -> Ints:
        return np.isfinite(self.cumulated).sum(axis=1) - 1

    @property
    def difficulty(self) -> Floats:
        """The mean of the thresholds of each item."""
        last = self.max_score
        return self.cumulated[np.arange(len(last)), last] / last

    def at(self, items: Ints | NDArray[np.int32]) -> Items:
        return Items(self.cumulated[items], self.slopes[items])

    def probabilities(self, theta: Floats) -> Floats:
        """Of every category (the last axis); the axes of `theta` go with the items."""
        return category_probabilities(self.slopes * theta, self.slopes[:, None] * self.cumulated)

    def answers(self, luck: Floats, theta: Floats) -> Ints:
        """The category in which a person of this ability answers, by a number between 0 and 1."""
        if self.cumulated.shape[1] == 2:  # right where luck is below the chance; the other end than below
            return (luck < sigmoid(self.slopes * (theta - self.cumulated[:, 1]))).astype(np.int64)
        above = luck[..., None] > np.cumsum(self.probabilities(theta), axis=-1)[..., :-1]
        return np.minimum(above.sum(axis=-1), self.max_score)  # sums of probabilities may end below 1 by rounding

    def information(self, theta: Floats) -> Floats:
        """a_i^2 Var(X_i | theta), which for right and wrong answers is a_i^2 p (1 - p)."""
        if self.cumulated.shape[1] == 2:
            p = sigmoid(self.slopes * (theta - self.cumulated[:, 1]))
            return self.slopes**2 * p * (1 - p)
        p, k = self.probabilities(theta), np.arange(self.cumulated.shape[1])
        return self.slopes**2 * (p @ k**2.0 - (p @ k) ** 2)


@dataclass(frozen=True)
class Responsive(Design):
    """Which items each person is given depends on the answers to earlier ones."""

    def given(self, luck: Floats, items: Items, ability: Floats) -> Given:
        """How many items each person is given, these items, and the categories of the answers, which follow from
        `luck`, a number between 0 and 1 for every person and item."""
        raise NotImplementedError

    def administered(self, rng: np.random.Generator, items: Items, ability: Floats) -> Iterator[Given]:
        """`given` for runs of consecutive people."""
        rows = max(1, CHUNK // items.cumulated.size)
        for start in range(0, len(ability), rows):
            some = ability[start : start + rows]
            yield self.given(rng.random((len(some), len(items.slopes))), items, some)


@dataclass(frozen=True)
class Adaptive(Responsive):
    """A computerized adaptive test: the next item is the one that tells most at the ability estimated so far.

    That ability is the posterior mean under a standard normal population; the thresholds that choose are the true
    ones.

    Parameters
    ----------
    length : int
        Items each person is given.
    """

    length: int = 20

    def check(self, n_persons: int, n_items: int) -> None:
        if self.length > n_items:
            raise OptionError(f"`length` is {self.length}; there are {n_items} items.")

    def given(self, luck: Floats, items: Items, ability: Floats) -> Given:
        n = len(ability)
        person = np.arange(n)
        used = np.zeros(luck.shape, dtype=bool)
        log_posterior = np.tile(-(NODES**2) / 2, (n, 1))
        chosen, answers = np.empty((n, self.length), dtype=np.int32), np.empty((n, self.length), dtype=np.int64)
        for k in range(self.length):
            weight = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
            estimate = np.round(weight @ NODES / weight.sum(axis=1), TIES)
            information = np.round(items.information(estimate[:, None]), TIES)
            item = np.argmax(np.where(used, -1.0, information), axis=1)
            used[person, item] = True
            own = items.at(item)
            category = own.answers(luck[person, item], ability)
            chosen[:, k], answers[:, k] = item, category
            log_posterior += np.log(own.probabilities(NODES[:, None])[:, person, category]).T
        return np.full(n, self.length), chosen.ravel(), answers.ravel()


@dataclass(frozen=True)
class TwoStage(Responsive):
    """A routing test for everybody, then the easier or the harder of the other items, by the score on it.

    Parameters
    ----------
    routing : int
        Items of the routing test: the first ones. Half of its highest score or more leads to the harder half of the
        rest.
    """

    routing: int = 10

    def check(self, n_persons: int, n_items: int) -> None:
        if self.routing > n_items - 2:
            raise OptionError(
                f"`routing` is {self.routing}; of {n_items} items at least two must be left to choose from."
            )

    def given(self, luck: Floats, items: Items, ability: Floats) -> Given:
        answers = items.answers(luck, ability[:, None])
        hard = 2 * answers[:, : self.routing].sum(axis=1) >= items.max_score[: self.routing].sum()
        rest = self.routing + np.argsort(items.difficulty[self.routing :], kind="stable")
        shown = np.zeros(luck.shape, dtype=bool)
        shown[:, : self.routing] = True
        for module, takers in ((rest[: len(rest) // 2], ~hard), (rest[len(rest) // 2 :], hard)):
            shown[np.ix_(takers, module)] = True
        return shown.sum(axis=1), np.nonzero(shown)[1].astype(np.int32), answers[shown]


@dataclass(frozen=True)
class Stopping(Responsive):
    """From the easiest item up, until so many answers in a row are wrong; as individual tests of children do it.

    Parameters
    ----------
    wrong : int
        Answers in a row that end the test when they are wrong, that is in the lowest category.
    """

    wrong: int = 3

    def given(self, luck: Floats, items: Items, ability: Floats) -> Given:
        order = np.argsort(items.difficulty, kind="stable")
        answers = items.answers(luck, ability[:, None])[:, order]
        row, going = np.zeros(len(ability), dtype=np.int64), np.ones(len(ability), dtype=bool)
        shown = np.zeros(luck.shape, dtype=bool)
        for k in range(len(order)):
            shown[:, k] = going
            row = np.where(answers[:, k] > 0, 0, row + 1)
            going &= row < self.wrong
        return shown.sum(axis=1), order[np.nonzero(shown)[1]].astype(np.int32), answers[shown]


DESIGNS |= {"adaptive": Adaptive, "two-stage": TwoStage, "stopping": Stopping}
