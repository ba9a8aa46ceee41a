"""What an analysis of ordered answers says about the items: fit, tests of the model, groups, dependence, ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spectral_irt.analysis.checks import measured_parameters
from spectral_irt.analysis.ordered_core import OfOrderedPeople
from spectral_irt.analysis.score_tables import ScoreTables
from spectral_irt.analysis.shared_items import SharedItems
from spectral_irt.data.block import Floats, Ints
from spectral_irt.estimators.marginal import is_adaptive
from spectral_irt.inference.fit.item_fit import bootstrap_limits, item_fit_columns
from spectral_irt.inference.fit.mean_squares import (
    ConditionalStatistics,
    ItemStatistics,
    conditional_statistics,
    item_statistics,
)
from spectral_irt.inference.fit.moments import GivenScore
from spectral_irt.inference.fit.strata import STRATA, curved, strata_columns
from spectral_irt.inference.groups.hausman import HausmanTest, hausman, quick_hausman
from spectral_irt.inference.groups.wald import WaldTest, score_split
from spectral_irt.inference.items.classical import ItemAnalysis, item_analysis, item_analysis_columns
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    pass


class OfOrderedItems(OfOrderedPeople, ScoreTables, SharedItems):
    """Fit, tests, groups and ranks of items with ordered answers. See `OrderedAnalysis`."""

    # --------------------------------------------------------------------------------------------- fit

    def item_statistics(self) -> ItemStatistics:
        """Conventional fit statistics of every item as arrays, at maximum likelihood abilities."""
        ml = self.abilities("ml").ability
        return self._once(
            "item_statistics",
            lambda: item_statistics(self.responses, self.calibration.thresholds, ml),
            say="fit of the items",
        )

    def conditional_statistics(self) -> ConditionalStatistics:
        """Infit and outfit of every item given the total scores, without abilities, as arrays."""
        return self._once(
            "conditional",
            lambda: conditional_statistics(self.responses, self.calibration.thresholds, given=self._given_score()),
            say="fit of the items given the scores",
        )

    def infit_errors(self) -> Floats:
        """Standard error of the conditional infit of every item under the model."""
        return self.conditional_statistics().infit_se

    def _given_score(self) -> GivenScore:
        return self._once("given_score", lambda: GivenScore.of(self.responses, self.calibration.thresholds))

    def strata_columns(self, items: Ints, strata: int) -> Columns:
        """Mean answers to items (by position, with an estimate) by stratum of ability; see `inference.fit.strata`."""
        return strata_columns(self.responses, self._given_score(), self.abilities("wle").ability, items, strata)

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
            limits: Columns | None = None
            if bootstrap:
                options: dict[str, Any] = {"sample": sample, "seed": seed, "progress": self.tell}
                limits = bootstrap_limits(self.responses, self.calibration.thresholds, bootstrap, **options)
            return item_fit_columns(self.calibration, self.item_statistics(), self.conditional_statistics(), limits)

        return self._once(("item_fit", bootstrap, sample, seed), compute)

    # -------------------------------------------------------------------------------------- single items

    def classical(self) -> ItemAnalysis:
        """The classical statistics of every item as arrays."""
        return self._once(
            "classical",
            lambda: item_analysis(self.responses, self.calibration.thresholds),
            say="item analysis",
        )

    def item_analysis(self) -> Any:
        """The classical analysis of every item as a table.

        `item, n, mean_score, max_score`; `item_rest`, the correlation of the answers with the share of the other points
        that each person has; `alpha_if_deleted`, Cronbach's alpha without the item; `discrimination`, the slope of the
        item where 1 is the model's; and the share of each category.
        """
        return self._table(self.item_analysis_columns())

    def item_analysis_columns(self, *, discrimination: bool = True) -> Columns:
        """The columns of `item_analysis`."""
        slopes = self.item_statistics().discrimination if discrimination else None
        return item_analysis_columns(self.calibration, self.responses, self.classical(), slopes)

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
