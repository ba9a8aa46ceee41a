"""A test as people took it, of right and wrong answers or of ordered ones: what its total scores say.

Total scores run from 0 to `most`; of right and wrong answers they are numbers of right ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from spectral_irt.ability import Answers, solve
from spectral_irt.model import category_probabilities
from spectral_irt.ordered_ability import form_rows, ordered_abilities, posterior
from spectral_irt.persons.ordered_people import OrderedPeople
from spectral_irt.persons.scores import abilities_of_scores
from spectral_irt.responses.block import Floats, Ints
from spectral_irt.responses.ordered import Steps


class Taken(Protocol):
    """What is asked of a test."""

    @property
    def known(self) -> Ints:
        """Positions of the items with an estimate."""
        ...

    @property
    def ends_are(self) -> tuple[str, str]:
        """The lowest and the highest score in words."""
        ...

    def ends(self) -> tuple[float, float]:
        """Warm's abilities of the lowest and the highest score on all items with an estimate."""
        ...

    def most(self, items: Ints) -> int:
        """The highest total score on these items."""
        ...

    def of_scores(self, items: Ints, method: str, prior: tuple[float, float] | None) -> tuple[Floats, Floats]:
        """Ability and standard error of every total score on these items."""
        ...

    def chances(self, items: Ints, theta: Floats) -> Floats:
        """P(total score | ability), abilities x scores."""
        ...


@dataclass(frozen=True, eq=False)
class RightOrWrong:
    """A test of right and wrong answers."""

    difficulty: Floats

    @property
    def known(self) -> Ints:
        return np.flatnonzero(np.isfinite(self.difficulty))

    @property
    def ends_are(self) -> tuple[str, str]:
        return "nothing right", "everything right"

    def ends(self) -> tuple[float, float]:
        beta = self.difficulty[self.known]
        m = len(beta)
        items, indptr = np.tile(np.arange(m, dtype=np.int32), 2), np.array([0, m, 2 * m], dtype=np.int32)
        low, high = solve(Answers(indptr, items, np.array([0, m])), beta, warm=True)[0].tolist()
        return low, high

    def most(self, items: Ints) -> int:
        return len(items)

    def of_scores(self, items: Ints, method: str, prior: tuple[float, float] | None) -> tuple[Floats, Floats]:
        return abilities_of_scores(self.difficulty[items], method, prior)

    def chances(self, items: Ints, theta: Floats) -> Floats:
        return score_chances(self.difficulty[items], theta)


@dataclass(frozen=True, eq=False)
class InCategories:
    """A test of ordered answers; `known` are the items that `people` has, among all."""

    people: OrderedPeople
    known: Ints

    def form(self, items: Ints) -> tuple[Steps, Floats]:
        """The thresholds of these items."""
        place = np.searchsorted(self.known, items)
        steps = self.people.steps
        return Steps(steps.counts[place]), self.people.thresholds[steps.of_items(place)]

    @property
    def ends_are(self) -> tuple[str, str]:
        return "the lowest score", "the highest"

    def ends(self) -> tuple[float, float]:
        steps = self.people.steps
        rows = form_rows(steps).take(np.array([0, steps.n_steps]))
        low, high = ordered_abilities(rows, steps, self.people.thresholds)[0].tolist()
        return low, high

    def most(self, items: Ints) -> int:
        return self.form(items)[0].n_steps

    def of_scores(self, items: Ints, method: str, prior: tuple[float, float] | None) -> tuple[Floats, Floats]:
        steps, beta = self.form(items)
        rows = form_rows(steps)
        if method == "eap":
            assert prior is not None
            return posterior(rows, steps, beta, *prior)
        return ordered_abilities(rows, steps, beta, warm=method == "wle")

    def chances(self, items: Ints, theta: Floats) -> Floats:
        return ordered_score_chances(*self.form(items), theta)


def score_chances(difficulty: Floats, theta: Floats) -> Floats:
    """P(score | ability), abilities x scores: gamma_s exp(s theta) / prod(1 + exp(theta - beta)).

    >>> score_chances(np.zeros(2), np.zeros(1)).round(6).tolist()
    [[0.25, 0.5, 0.25]]
    """
    log_gamma = np.zeros(1)
    for b in difficulty:  # of the items so far; all terms are positive
        log_gamma = np.logaddexp(np.append(log_gamma, -np.inf), np.append(-np.inf, log_gamma - b))
    away = np.array([np.logaddexp(0, at - difficulty).sum() for at in theta])
    return np.exp(log_gamma + theta[:, None] * np.arange(len(log_gamma)) - away[:, None])


def ordered_score_chances(steps: Steps, thresholds: Floats, theta: Floats) -> Floats:
    """The same of ordered answers, item by item (Lord & Wingersky): all terms are positive.

    >>> ordered_score_chances(Steps(np.array([1, 1])), np.zeros(2), np.zeros(1)).round(6).tolist()
    [[0.25, 0.5, 0.25]]
    """
    found = np.ones((len(theta), 1))
    for row, count in zip(steps.cumulated(thresholds), steps.counts.tolist(), strict=True):
        p = category_probabilities(theta, np.broadcast_to(row[: count + 1], (len(theta), count + 1)))
        longer = np.zeros((len(theta), found.shape[1] + count))
        for k in range(count + 1):
            longer[:, k : k + found.shape[1]] += found * p[:, k : k + 1]
        found = longer
    return found
