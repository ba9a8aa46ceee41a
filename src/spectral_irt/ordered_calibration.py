"""OrderedCalibration: what an estimator of ordered answers found. Numbers per threshold, and a location per item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt.ability import score_abilities
from spectral_irt.calibration import Z95, Calibration, as_abilities
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.errors import OptionError, listed
from spectral_irt.model import category_probabilities
from spectral_irt.tables import Columns, make_table
from spectral_irt.total_score import form_information


@dataclass(frozen=True, eq=False, kw_only=True)
class OrderedCalibration(Calibration):
    """Items with their thresholds: P(X = k) ~ exp(k theta - sum_{v <= k} beta_v).

    `difficulty` is the location of an item, the mean of its thresholds; the mean of all locations is zero. `score` is
    the sum of the categories answered.

    Attributes
    ----------
    location_se : float array
        Standard error of every location.
    category_n : float array, items x categories
        How many people gave each answer; NaN where an item has fewer categories.
    codes : float array, items x categories
        What stood in the data for each category.

    Examples
    --------
    >>> from spectral_irt import SpectralPartialCredit, simulate
    >>> answers = simulate.partial_credit(300, 4, categories=3, seed=1).responses
    >>> SpectralPartialCredit().fit(answers).calibration_.threshold_table().shape
    (8, 8)
    """

    location_se: Floats
    category_n: Floats
    codes: Floats

    @property
    def se(self) -> Floats:
        """Standard error of every location."""
        return self.location_se

    @cached_property
    def steps(self) -> Thresholds:
        return Thresholds(np.asarray(self.n_thresholds, dtype=np.int64))

    @property
    def share_right(self) -> Floats:
        """The mean answer as a share of the highest category; NaN without answers."""
        most = self.n * self.steps.max_score
        return np.divide(self.score, most, out=np.full(self.n_items, np.nan), where=most > 0)

    def form(self, items: Sequence[Any] | None) -> Never:
        raise OptionError("items with several thresholds have no single difficulty; see thresholds.")

    def _form(self, items: Sequence[Any] | None) -> tuple[Thresholds, Floats]:
        """The thresholds of a form, each item named once and all with estimates."""
        place = self.positions(items)
        if len(np.unique(place)) < len(place):
            raise OptionError("items names the same item more than once; name each once.")
        without = self.labels[place[~self.known[place]]]
        if len(without):
            raise OptionError(f"items without an estimate: {listed(without)}. Leave them out of the form.")
        return Thresholds(self.steps.max_score[place]), self.thresholds[self.steps.of_items(place)]

    # ------------------------------------------------------------------------------------------ tables

    def item_columns(self) -> Columns:
        """The columns of `items()`: `score` adds the categories, `mean_score` is score / n, of at most `most`."""
        difficulty, se = self.difficulty, self.se
        mean = np.divide(self.score, self.n, out=np.full(self.n_items, np.nan), where=self.n > 0)
        return {
            "item": self.labels,
            "difficulty": difficulty,
            "se": se,
            "ci_low": difficulty - Z95 * se,
            "ci_high": difficulty + Z95 * se,
            "n": self.n,
            "score": self.score,
            "most": self.steps.max_score,
            "mean_score": mean,
            "status": self.status,
            **{name: values for name, values in self.further.items() if name != "anchor_se"},
        }

    def threshold_columns(self) -> Columns:
        """A row for each threshold: `item, category, threshold, se, ci_low, ci_high, n, n_below`.

        `threshold` is where the `category` and the one below are equally likely; `n` people answered in the category,
        `n_below` in the one below.
        """
        steps, beta, se = self.steps, self.thresholds, self.threshold_se
        return {
            "item": self.labels[steps.item],
            "category": steps.level,
            "threshold": beta,
            "se": se,
            "ci_low": beta - Z95 * se,
            "ci_high": beta + Z95 * se,
            "n": self.category_n[steps.item, steps.level].astype(np.int64),
            "n_below": self.category_n[steps.item, steps.level - 1].astype(np.int64),
        }

    def threshold_table(self) -> Any:
        """The thresholds as a table; see `threshold_columns`."""
        return make_table(self.threshold_columns(), self.frame_kind)

    # ------------------------------------------------------------------------------------- the model

    def probability(self, abilities: ArrayLike, items: Sequence[Any] | None = None) -> Never:
        raise OptionError("items with several categories have a probability each: ask category_probability, per item.")

    def category_probability(self, abilities: ArrayLike, item: Any) -> Floats:
        """P(X = k) of one item: a row for each ability, a column for each category."""
        place = self.positions([item])
        own = Thresholds(self.steps.max_score[place])
        theta = as_abilities(abilities)
        row = own.cumulated(self.thresholds[self.steps.of_items(place)])[0]
        return category_probabilities(theta, np.broadcast_to(row, (len(theta), len(row))))

    def expected_score(self, abilities: ArrayLike, items: Sequence[Any] | None = None) -> Floats:
        """The expected answer: a row for each ability, a column for each item (by default all with an estimate)."""
        theta = as_abilities(abilities)
        names = self.labels[self.positions(items)]
        columns = [self.category_probability(theta, name) for name in names.tolist()]
        return np.stack([p @ np.arange(p.shape[1]) for p in columns], axis=1)

    def information(self, theta: ArrayLike | None = None, items: Sequence[Any] | None = None) -> Any:
        """The test information function as a table, `ability, information, se`: the variance of the total score."""
        steps, beta = self._form(items)
        at = as_abilities(np.linspace(beta.min() - 2, beta.max() + 2, 121) if theta is None else theta)
        found = form_information(steps, beta, at)
        with np.errstate(divide="ignore"):
            return make_table({"ability": at, "information": found, "se": 1 / np.sqrt(found)}, self.frame_kind)

    def score_table(self, items: Sequence[Any] | None = None) -> Any:
        """From total score to ability on a complete set of items: `score, ability, se, ability_ml, se_ml`."""
        steps, beta = self._form(items)
        ability, se = score_abilities(beta, steps)
        ability_ml, se_ml = score_abilities(beta, steps, warm=False)
        columns: dict[str, Ints | Floats] = {
            "score": np.arange(len(ability)),
            "ability": ability,
            "se": se,
            "ability_ml": ability_ml,
            "se_ml": se_ml,
        }
        return make_table(columns, self.frame_kind)
