"""Designs in which the answers so far decide what comes next: adaptive tests, routing, stopping rules.

What is missing then depends on answers that were given, and on nothing else: likelihoods of all answers of a person
may be used as they are, likelihoods given the score may not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import OptionError, option
from spectral_irt.model import sigmoid
from spectral_irt.responses.block import Floats, Ints
from spectral_irt.simulate.designs import DESIGNS, Design, as_count
from spectral_irt.simulate.successive import CHUNK

Given = tuple[Ints, NDArray[np.int32], NDArray[np.bool_]]
NODES = np.linspace(-4, 4, 41)  # abilities among which an adaptive test looks for that of a person


@dataclass(frozen=True)
class Responsive(Design):
    """Which items each person is given depends on the answers to earlier ones."""

    def given(self, luck: Floats, items: Floats, ability: Floats, slopes: Floats) -> Given:
        """How many items each person is given, these items, and which of them are answered right.

        `luck` is a number between 0 and 1 for every person and item: an answer is right when the chance is above it.
        """
        raise NotImplementedError

    def administered(
        self, rng: np.random.Generator, difficulty: Floats, ability: Floats, slopes: Floats
    ) -> Iterator[Given]:
        """`given` for runs of consecutive people."""
        rows = max(1, CHUNK // len(difficulty))
        for start in range(0, len(ability), rows):
            some = ability[start : start + rows]
            yield self.given(rng.random((len(some), len(difficulty))), difficulty, some, slopes)


@dataclass(frozen=True)
class Adaptive(Responsive):
    """A computerized adaptive test: the next item is the one that tells most at the ability estimated so far.

    That ability is the posterior mean under a standard normal population; the difficulties that choose are the true
    ones.

    Parameters
    ----------
    length : int
        Items each person is given.
    """

    length: int = 20

    def __post_init__(self) -> None:
        as_count("length", self.length)

    def check(self, n_users: int, n_items: int) -> None:
        if self.length > n_items:
            raise OptionError(option("length"), f" is {self.length}; there are {n_items} items.")

    def given(self, luck: Floats, items: Floats, ability: Floats, slopes: Floats) -> Given:
        n = len(ability)
        person = np.arange(n)
        used = np.zeros(luck.shape, dtype=bool)
        log_posterior = np.tile(-(NODES**2) / 2, (n, 1))
        chosen, right = np.empty((n, self.length), dtype=np.int32), np.empty((n, self.length), dtype=bool)
        for k in range(self.length):
            weight = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
            estimate = weight @ NODES / weight.sum(axis=1)
            p = sigmoid(slopes * (estimate[:, None] - items))
            item = np.argmax(np.where(used, -1.0, slopes**2 * p * (1 - p)), axis=1)
            used[person, item] = True
            hit = luck[person, item] < sigmoid(slopes[item] * (ability - items[item]))
            chosen[:, k], right[:, k] = item, hit
            x = slopes[item, None] * (NODES - items[item, None])
            log_posterior += np.where(hit[:, None], -np.logaddexp(0, -x), -np.logaddexp(0, x))
        return np.full(n, self.length), chosen.ravel(), right.ravel()


@dataclass(frozen=True)
class TwoStage(Responsive):
    """A routing test for everybody, then the easier or the harder of the other items, by the score on it.

    Parameters
    ----------
    routing : int
        Items of the routing test: the first ones. Half of them right or more leads to the harder half of the rest.
    """

    routing: int = 10

    def __post_init__(self) -> None:
        as_count("routing", self.routing)

    def check(self, n_users: int, n_items: int) -> None:
        if self.routing > n_items - 2:
            raise OptionError(
                option("routing"), f" is {self.routing}; of {n_items} items at least two must be left to choose from."
            )

    def given(self, luck: Floats, items: Floats, ability: Floats, slopes: Floats) -> Given:
        right = luck < sigmoid(slopes * (ability[:, None] - items))
        hard = 2 * right[:, : self.routing].sum(axis=1) >= self.routing
        rest = self.routing + np.argsort(items[self.routing :], kind="stable")
        shown = np.zeros(luck.shape, dtype=bool)
        shown[:, : self.routing] = True
        for module, takers in ((rest[: len(rest) // 2], ~hard), (rest[len(rest) // 2 :], hard)):
            shown[np.ix_(takers, module)] = True
        return shown.sum(axis=1), np.nonzero(shown)[1].astype(np.int32), right[shown]


@dataclass(frozen=True)
class Stopping(Responsive):
    """From the easiest item up, until so many answers in a row are wrong; as individual tests of children do it.

    Parameters
    ----------
    wrong : int
        Wrong answers in a row that end the test.
    """

    wrong: int = 3

    def __post_init__(self) -> None:
        as_count("wrong", self.wrong)

    def given(self, luck: Floats, items: Floats, ability: Floats, slopes: Floats) -> Given:
        order = np.argsort(items, kind="stable")
        right = (luck < sigmoid(slopes * (ability[:, None] - items)))[:, order]
        row, going = np.zeros(len(ability), dtype=np.int64), np.ones(len(ability), dtype=bool)
        shown = np.zeros(luck.shape, dtype=bool)
        for k in range(len(order)):
            shown[:, k] = going
            row = np.where(right[:, k], 0, row + 1)
            going &= row < self.wrong
        return shown.sum(axis=1), order[np.nonzero(shown)[1]].astype(np.int32), right[shown]


DESIGNS |= {"adaptive": Adaptive, "two-stage": TwoStage, "stopping": Stopping}
