"""Analysis: a calibration and responses together. Whatever is asked is computed once, and from the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.analysis.assembled import contrast_columns, with_measures
from spectral_irt.analysis.of_items import OfItems
from spectral_irt.analysis.parts import Parts
from spectral_irt.analysis.score_tables import ScoreTables
from spectral_irt.analysis.shared_items import SharedItems
from spectral_irt.data import Finding
from spectral_irt.data.block import Floats
from spectral_irt.errors import OptionError
from spectral_irt.estimators.marginal import is_adaptive
from spectral_irt.inference.efficiency import error_over_floor
from spectral_irt.inference.fit.item_fit import bootstrap_limits, item_fit_columns
from spectral_irt.inference.fit.mean_squares import ConditionalStatistics, conditional_statistics
from spectral_irt.inference.groups.cluster_errors import clustered
from spectral_irt.inference.groups.hausman import HausmanTest, hausman, quick_hausman
from spectral_irt.inference.groups.wald import WaldTest, score_split
from spectral_irt.inference.items.rest_score import restscore_columns
from spectral_irt.inference.joint_errors import known_errors
from spectral_irt.inference.ranks.items import DENSE_ITEMS
from spectral_irt.inference.scores.equating import Equating, equate_forms
from spectral_irt.inference.scores.reliability import Reliability, reliability
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from spectral_irt.data.block import Ints
    from spectral_irt.inference.items.links import ItemLinks
    from spectral_irt.plots.all import Plots

Tell = Callable[[str], None]


class Analysis(OfItems, ScoreTables, SharedItems):
    """What a calibration says about people, and what their answers say about the calibration.

    Every question is a method; what several of them need (abilities, say) is computed once.

    Parameters
    ----------
    calibration : Calibration
    responses : Responses, array or dataframe
        Those of the calibration, or others; items are matched by label, here and only here.
    ability : "wle", "ml", "eap" or "pv"
        How abilities are estimated where a method does not say: Warm's weighted likelihood by default.
    population : (mean, sd), optional
        The normal population of "eap" and "pv"; estimated from the responses unless given.
    ignore_unknown : bool
        Leave out answers to items that the calibration does not have; by default they are an error.
    progress : callable, optional
        Told in a few words what is being computed.
    estimator : optional
        The fitted estimator, which may have kept the covariance of many items.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> answers = datasets.load_lsat()
    >>> study = SpectralRasch().fit(answers).analyse(answers)
    >>> study
    <Analysis: 1,000 people, 5 items, 5,000 responses>
    >>> round(study.reliability().kr20, 3)
    0.295
    """

    def reliability(self, method: str | None = None) -> Reliability:
        """EAP reliability, KR-20, separation of persons and items: see `inference.reliability.reliability`."""
        method = self._estimate(method)
        return self._once(
            ("reliability", method),
            lambda: reliability(
                self.calibration,
                self.responses,
                self.abilities(method),
                ml=self.abilities("ml"),
                eap=self.marginal(),
                weights=self.weights,
                person_infit=self.person_fit(method).infit,
                item_infit=self.item_statistics().mean_squares.infit,
            ),
        )

    def error_over_floor(self) -> float:
        """The estimated error of the difficulties over the least possible; see `inference.efficiency`."""
        return self._once(
            "floor", lambda: error_over_floor(self.calibration, self.responses, self.abilities("wle").ability)
        )

    # --------------------------------------------------------------------------------------------- fit

    def conditional_statistics(self) -> ConditionalStatistics:
        """Fit statistics of every item given the scores, without abilities, as arrays."""
        return self._once(
            "conditional_statistics",
            lambda: conditional_statistics(self.responses, self.calibration.difficulty),
            say="fit of the items given the scores",
        )

    def infit_errors(self) -> Floats:
        """Standard error of the conditional infit of every item under the model."""
        return self.conditional_statistics().infit_se

    def item_fit(
        self, *, bootstrap: int = 0, sample: int | None = None, seed: int = 0, conditional: bool = True
    ) -> Any:
        """The fit of every item as a table, and which items misfit.

        `item, n, infit, infit_z, outfit, outfit_z`, the same conditional on the scores (`infit_conditional, ...`),
        `point_measure, point_measure_expected, exact_match, exact_match_expected, displacement,
        displacement_conditional`, and the verdict `misfit`: "underfit" (noisier than the model), "overfit" (steeper),
        or "".

        Mean squares are 1 when the item fits; above 1 answers are more erratic than the model says, below more
        regular. Decide by the conditional ones: the conventional ones, at maximum likelihood abilities as in eRm and
        Winsteps, have a mean below 1. `n` counts answers of people with a mixed score, who alone can tell. An item
        that was not properly estimated (its status is neither "ok" nor "anchored") has no fit.

        Parameters
        ----------
        bootstrap : int
            Replicates for critical values of the conditional mean squares; 0 (default): none, and the verdict comes
            from the standardized infit. 200 is a good number. Adds `infit_conditional_low, .._high, .._p`, and the
            same for outfit, of one item each: 5% of good items are outside. The verdict is adjusted for that.
        sample : int, optional
            People to take at random for the bootstrap. With very many people every item is "significantly" off.
        seed : int
            Of sample and bootstrap.
        conditional : bool
            Compute the conditional statistics too (default); they cost a few times the others.
        """
        return self._table(
            self.item_fit_columns(bootstrap=bootstrap, sample=sample, seed=seed, conditional=conditional)
        )

    def item_fit_columns(
        self, *, bootstrap: int = 0, sample: int | None = None, seed: int = 0, conditional: bool = True
    ) -> Columns:
        """The columns of `item_fit`."""

        def compute() -> Columns:
            limits = None
            if bootstrap:
                options: dict[str, Any] = {"sample": sample, "seed": seed, "progress": self.tell}
                limits = bootstrap_limits(self.responses, self.calibration.difficulty, bootstrap, **options)
            given = self.conditional_statistics() if conditional else None
            return item_fit_columns(self.calibration, self.item_statistics(), given, limits)

        return self._once(("item_fit", bootstrap, sample, seed, conditional), compute)

    def item_restscore(self, *, sample: int | None = None, seed: int = 0) -> Any:
        """Does each item go with the rest of the test as the model says? Goodman and Kruskal's gamma as a table."""
        return self._table(restscore_columns(self.calibration, self.responses, sample=sample, seed=seed))

    def strata_columns(self, items: Ints, strata: int) -> Columns:
        """Right answers to these items (positions) by stratum of ability; see `inference.strata.strata_columns`."""
        from spectral_irt.inference.fit.moments import GivenScore
        from spectral_irt.inference.fit.strata import strata_columns

        given = GivenScore.of(self.responses, self.calibration.difficulty)
        return strata_columns(self.responses, given, self.abilities("wle").ability, items, strata)

    # ------------------------------------------------------------------------------------------- tests

    def model_test(self, split: Any = "ability") -> WaldTest:
        """Are items as hard for the less able as for the more able? See `inference.wald.score_split`.

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
        abilities are not normal (in each group); see `inference.hausman.hausman`."""
        return hausman(self.calibration, self.responses, groups, seed=seed)

    def quick_hausman(self, groups: Any = None) -> HausmanTest | None:
        """`hausman` where the data allow it and the calibration does not allow for adaptive designs anyway."""
        if is_adaptive(self.calibration):
            return None
        start = np.where(self.calibration.measured, self.calibration.difficulty, np.nan)
        return self._once(
            "hausman",
            lambda: quick_hausman(self.responses, start, groups),
            say="conditional against marginal likelihood",
        )

    def item_links(self) -> ItemLinks:
        """Groups of items between which few people make a link; see `inference.item_links.item_links`."""
        from spectral_irt.inference.items.links import item_links

        return self._once("item_links", lambda: item_links(self.responses), say="links between items")

    # ------------------------------------------------------------------------------------------- ranks

    def covariance(self) -> Floats | None:
        """Covariance of the difficulties where the calibration or its estimator kept it; None otherwise."""
        if self.calibration.covariance is not None:
            return self.calibration.covariance
        form = getattr(self._estimator, "covariance", None)
        few = int(np.isfinite(self.calibration.se).sum()) <= DENSE_ITEMS
        if form is None or not (few or self.calibration.provenance.se_method == "dense"):
            return None
        try:
            return self._once("covariance", form)
        except OptionError:  # none was kept
            return None

    def equate(self, first: str | Sequence[Any], second: str | Sequence[Any]) -> Equating:
        """Raw scores on one form, and what they are on another of the same analysis; see `inference.equating`.

        A form is named as in `scores()` ("form 1"), or given by the labels of its items. Two calibrations: `si.equate`.
        """
        one, other = (
            self.forms().items[self.forms().position(form)]
            if isinstance(form, str)
            else self.calibration.positions(form)
            for form in (first, second)
        )
        names = tuple(form if isinstance(form, str) else letter for form, letter in ((first, "A"), (second, "B")))
        errors = known_errors(self.calibration.difficulty, self.calibration.se, self.covariance())[0]
        return equate_forms(
            self.calibration.difficulty, errors, one, other, (names[0], names[1]), self.responses.frame_kind
        )

    # -------------------------------------------------------------------------------------------- scale

    def clustered(self, clusters: Any, groups: Any = None, *, name: str = "clusters") -> Analysis:
        """The same analysis with standard errors that allow for clusters of people, such as classrooms.

        `clusters` has a label for each person, in their order, or maps persons to labels; `groups` those of a marginal
        calibration with several populations; see `inference.clusters.cluster_covariance`.
        """
        calibration, found = clustered(self.calibration, self.responses, clusters, groups, name=name)
        other = object.__new__(Analysis)
        other.__dict__ = {**self.__dict__, "calibration": calibration, "_known": {"covariance": found.covariance}}
        return other

    @property
    def plot(self) -> Plots:
        """Pictures: `study.plot.wright()`, `study.plot.icc("item 7")`; see `plots.plots.Plots`."""
        from spectral_irt.plots.all import Plots

        return Plots(self)

    # ------------------------------------------------------------------- everything: text, tables, files

    def findings(self, parts: Parts | None = None) -> tuple[Finding, ...]:
        """Everything that is odd, in the data and in what was computed from them."""
        parts = parts or self.parts()
        found = [*self.calibration.findings, *parts.notes, *(self.forms().findings if parts.scores else ())]
        if parts.fit:
            found += self.checks(parts).findings
            test = self.quick_hausman(parts.populations)
            found += [] if test is None else test.findings
        if parts.item_analysis:
            found += self.item_findings()
        for one in self.grouped(parts).values():
            found += one.findings
        return tuple(found)

    def tables(self, parts: Parts | None = None) -> dict[str, Columns]:
        """The tables that are written, by the names of their files."""
        parts = parts or self.parts(writing=True)
        tables = {"items": with_measures(self.calibration.item_columns(), "difficulty", self.calibration.scale)}
        if parts.persons:
            given = parts.groups or None
            tables["persons"] = self.person_columns(draws=parts.draws, seed=parts.seed, given=given)
            tables |= self.people_tables(parts)
        if parts.fit:
            tables["item_fit"] = self.item_fit_columns(bootstrap=parts.bootstrap, sample=parts.sample)
        if parts.item_analysis:
            tables |= self.item_tables(parts)
        if parts.groups:
            tables["dif"] = contrast_columns(self.grouped(parts))
        if parts.top is not None:
            tables["ranking"] = self.ranking_columns(parts.rank_by, parts.top)
        return tables

    def record(self, parts: Parts | None = None) -> dict[str, Any]:
        """What was computed, how, and what came of it: the content of `fit.json`."""
        from spectral_irt.analysis.record import fit_record

        return fit_record(self, parts or self.parts(writing=True))

    def summary(self, parts: Parts | None = None, *, width: int = 80) -> str:
        """The text that `spectral-irt fit` prints."""
        from spectral_irt.analysis.summary import summary_text

        return summary_text(self, parts or self.parts(), width)

    def write(self, folder: str | Path, parts: Parts | None = None, *, parquet: bool = False) -> list[Path]:
        """Write the tables and `fit.json` to a folder as CSV (and Parquet), or to a workbook ("results.xlsx")."""
        from spectral_irt.analysis.folder import write_results

        return write_results(self, Path(folder), parts or self.parts(writing=True), parquet=parquet)

    def report(self, path: str | Path, parts: Parts | None = None, *, list_persons: bool = False) -> Path:
        """Write everything to one HTML file that needs no network; nobody is named in it unless `list_persons`."""
        from spectral_irt.report.page import write_report

        return write_report(self, Path(path), parts or self.parts(writing=True), list_persons=list_persons)
