"""What an analysis of ordered answers says about the items: fit, tests of the model, groups, dependence, ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.analysis.checks import measured_parameters
from spectral_irt.analysis.ordered_core import OfOrderedPeople
from spectral_irt.analysis.score_tables import ScoreTables
from spectral_irt.analysis.shared_items import SharedItems
from spectral_irt.data.block import Floats, Ints
from spectral_irt.estimators.adaptive import is_adaptive
from spectral_irt.estimators.estimate import with_missing
from spectral_irt.inference.fit.item_fit import bootstrap_limits, judged
from spectral_irt.inference.fit.ordered_fit import (
    AnswerMoments,
    conditional_item_mean_squares,
    item_mean_squares,
    moments_at,
    moments_given_score,
    spread_squares,
)
from spectral_irt.inference.fit.ordered_strata import ordered_strata
from spectral_irt.inference.fit.strata import STRATA, curved
from spectral_irt.inference.groups.hausman import HausmanTest, hausman, quick_hausman
from spectral_irt.inference.groups.wald import WaldTest, score_split
from spectral_irt.inference.items.ordered_item_analysis import (
    OrderedItemAnalysis,
    ordered_item_analysis,
    ordered_item_columns,
)
from spectral_irt.persons.residuals import MeanSquares
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    pass


class OfOrderedItems(OfOrderedPeople, ScoreTables, SharedItems):
    """Fit, tests, groups and ranks of items with ordered answers. See `OrderedAnalysis`."""

    # --------------------------------------------------------------------------------------------- fit

    def item_statistics(self) -> MeanSquares:
        """Conventional infit and outfit of every item as arrays, at maximum likelihood abilities."""

        def compute() -> MeanSquares:
            patterns = self.people.patterns
            theta = np.full(len(patterns.count), np.nan)
            theta[patterns.of_person] = self.abilities("ml").ability
            found = item_mean_squares(self.people, moments_at(self.people, theta))
            return spread_squares(found, self.calibration.known)

        return self._once("item_statistics", compute, say="fit of the items")

    def conditional_statistics(self) -> MeanSquares:
        """Infit and outfit of every item given the total scores, without abilities, as arrays."""
        return self._conditional()[0]

    def infit_errors(self) -> Floats:
        """Standard error of the conditional infit of every item under the model."""
        return self._conditional()[1]

    def _conditional(self) -> tuple[MeanSquares, Floats]:
        def compute() -> tuple[MeanSquares, Floats]:
            found, infit_se = conditional_item_mean_squares(self.people, self._given_score())
            return spread_squares(found, self.calibration.known), with_missing(infit_se, self.calibration.known)

        return self._once("conditional", compute, say="fit of the items given the scores")

    def _given_score(self) -> AnswerMoments:
        return self._once("given_score", lambda: moments_given_score(self.people))

    def strata_columns(self, items: Ints, strata: int) -> Columns:
        """Mean answers to items (by position, with an estimate) by stratum of ability; see `ordered_strata`."""
        place = np.cumsum(self.calibration.known) - 1
        found = ordered_strata(self.people, self.abilities("wle").ability, self._given_score(), place[items], strata)
        return {**found, "item": np.flatnonzero(self.calibration.known)[found["item"]]}

    def curve_columns(self) -> Columns:
        """Mean answers in strata of ability and what the model expects, of every item or of those that fit worst."""

        def compute() -> Columns:
            items = curved(self.calibration, self.item_fit_columns())
            if not len(items) or not self.responses.n_responses:
                return {}
            found = self.strata_columns(items, STRATA)
            return {**found, "item": self.calibration.labels[found["item"]]}

        return self._once("curves", compute)

    def item_fit(self, *, bootstrap: int = 0, sample: int | None = None, seed: int = 0) -> Any:
        """The fit of every item as a table, and which items misfit; see `Analysis.item_fit`."""
        return self._table(self.item_fit_columns(bootstrap=bootstrap, sample=sample, seed=seed))

    def item_fit_columns(self, *, bootstrap: int = 0, sample: int | None = None, seed: int = 0) -> Columns:
        """The columns of `item_fit`."""

        def compute() -> Columns:
            conventional, given = self.item_statistics(), self.conditional_statistics()
            columns: Columns = {}
            for suffix, squares in (("", conventional), ("_conditional", given)):
                for name in ("infit", "outfit"):
                    columns[f"{name}{suffix}"] = getattr(squares, name)
                    columns[f"{name}{suffix}_z"] = getattr(squares, f"{name}_z")
            limits: Columns | None = None
            if bootstrap:
                options: dict[str, Any] = {"sample": sample, "seed": seed, "progress": self.tell}
                limits = bootstrap_limits(self.responses, self.calibration.thresholds, bootstrap, **options)
                columns |= limits
            for name, values in columns.items():
                columns[name] = np.where(self.calibration.measured, values, "" if values.dtype == object else np.nan)
            if limits is None:
                columns |= judged(columns)
            return {"item": self.calibration.labels, "n": conventional.n.astype(np.int64), **columns}

        return self._once(("item_fit", bootstrap, sample, seed), compute)

    # -------------------------------------------------------------------------------------- single items

    def classical(self) -> OrderedItemAnalysis:
        """The classical statistics of every item as arrays."""
        return self._once(
            "classical",
            lambda: ordered_item_analysis(self.responses, self.calibration.thresholds),
            say="item analysis",
        )

    def item_analysis(self) -> Any:
        """The classical analysis of every item as a table.

        `item, n, mean_score, most`; `item_rest`, the correlation of the answers with the share of the other points that
        each person has; `alpha_if_deleted`, Cronbach's alpha without the item, where everybody answered every item; and
        the share of each category.
        """
        return self._table(self.item_analysis_columns())

    def item_analysis_columns(self) -> Columns:
        """The columns of `item_analysis`."""
        return ordered_item_columns(self.calibration, self.responses, self.classical())

    # ------------------------------------------------------------------------------------------- tests

    def model_test(self, split: Any = "ability") -> WaldTest:
        """Do the thresholds lie alike for the less and the more able? See `inference.groups.wald.score_split`.

        Parameters
        ----------
        split : "ability", "median", "mean", "scores", or labels
            Into which groups people are divided; a label for each person, or a mapping from person to label.
        """
        if isinstance(split, str):
            return self._once(("model_test", split), lambda: score_split(self.calibration, self.responses, split))
        return score_split(self.calibration, self.responses, split)

    def hausman(self, groups: Any = None, *, seed: int = 0) -> HausmanTest:
        """Do conditional and marginal likelihood agree? They part where items were chosen by the answers, or where
        abilities are not normal (in each group); see `inference.groups.hausman.hausman`."""
        return hausman(self.calibration, self.responses, groups, seed=seed)

    def quick_hausman(self) -> HausmanTest | None:
        """`hausman` where the data allow it and the calibration does not allow for adaptive designs anyway."""
        if is_adaptive(self.calibration):
            return None
        start = measured_parameters(self.calibration)
        return self._once(
            "hausman",
            lambda: quick_hausman(self.responses, start),
            say="conditional against marginal likelihood",
        )
