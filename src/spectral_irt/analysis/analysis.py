"""Analysis: a calibration and responses together. Whatever is asked is computed once, and from the same numbers."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from spectral_irt.analysis.cache import as_table, columns_of, once
from spectral_irt.analysis.facets import AnalysisOfRatings, of_items
from spectral_irt.analysis.folder import Parts, fit_record, result_tables, wanted_parts, write_results
from spectral_irt.analysis.likelihood import ConditionalLikelihood, conditional_likelihood
from spectral_irt.analysis.moves import about_super_items, merge_for, move_for, pointing_at_move
from spectral_irt.analysis.second_fit import AnalysisWithMoves
from spectral_irt.data import Finding
from spectral_irt.data.block import Ints
from spectral_irt.data.booklets import blanks_by_item
from spectral_irt.data.labels import column_of, positions
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.dimensions.dimensionality import Dimensionality, dimensionality, too_few
from spectral_irt.inference.fit.causes import cause_findings
from spectral_irt.inference.fit.checks import VISIBLE, Checks, not_visible
from spectral_irt.inference.fit.critical import CriticalFit, critical_fit
from spectral_irt.inference.fit.item_fit import LEVEL, detectable, item_fit_columns, misfit_finding
from spectral_irt.inference.fit.mean_squares import conditional_statistics, item_statistics
from spectral_irt.inference.fit.moments import GivenScore
from spectral_irt.inference.fit.person_fit import person_misfit
from spectral_irt.inference.fit.strata import STRATA, items_with_curves, strata_columns
from spectral_irt.inference.groups.hausman import UNTESTABLE, HausmanTest, hausman
from spectral_irt.inference.groups.model_tests import WaldTest, score_split
from spectral_irt.inference.groups.sampling import cluster_numbers
from spectral_irt.inference.groups.score_test import RaoTest, ability_split
from spectral_irt.inference.items import classical
from spectral_irt.inference.items.categories import category_columns
from spectral_irt.inference.items.rest_score import restscore_columns
from spectral_irt.inference.items.reversed_items import reversed_findings
from spectral_irt.inference.items.review import Look, items_to_look_at
from spectral_irt.inference.results import MIN_PAIRED, MIN_PEOPLE
from spectral_irt.inference.scores.reliability import Reliability, reliability
from spectral_irt.numerics import chosen_or_none
from spectral_irt.tables import Columns, as_html
from spectral_irt.text import listed

if TYPE_CHECKING:
    from spectral_irt.bank.bank import Bank
    from spectral_irt.inference.dimensions.local_dependence import LocalDependence
    from spectral_irt.inference.dimensions.smith import SmithTest
    from spectral_irt.inference.fit.class_intervals import ItemTrait
    from spectral_irt.inference.groups.change import Change
    from spectral_irt.inference.groups.dif import Differential
    from spectral_irt.inference.groups.tree import DifTree
    from spectral_irt.inference.items.distractors import Distractors
    from spectral_irt.plots.all import Plots


CLASS_RESPONSES = 5_000_000  # up to here class intervals take some seconds
# Up to here the halves are compared in a second or less.
TEST_ITEMS = 300
TEST_RESPONSES = 2_000_000


class Analysis(AnalysisWithMoves, AnalysisOfRatings):
    """What a calibration says about people, and what their answers say about the calibration.

    Every question is a method; what several of them need (abilities, say) is computed once. Answers may be right and
    wrong or in ordered categories; what has no mathematics for the latter yet (slopes, say) says so.

    Parameters
    ----------
    calibration : Calibration
    responses : Responses, array or dataframe
        Those of the calibration, or others; items are matched by label, categories by their codes, here and only here.
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
    form : str, or labels of forms, optional
        The column about the people that says which form (booklet) each was given, or a label for each person. By
        default forms are found in the responses; see `data.booklets`. Items that a form does not have were not
        presented to its people.
    trait : str, optional
        What is measured, such as "anxiety": texts and pictures then say so instead of "ability", and higher and lower
        instead of harder and easier. By default "ability", and "person measure" of ordered answers. Columns of tables
        keep their names.

    Notes
    -----
    Where a method takes groups or clusters of people, it takes the name of a column about them that was read with the
    answers (`si.read("answers.csv", people=["sex"])`), labels in the order of the people, or a mapping from person to
    label. `study.facets` are the facets of ratings beside the items, such as "rater".

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

    def __repr__(self) -> str:
        r = self.responses
        within = "" if self._layout.binary else f" in up to {self._layout.widest + 1} categories"
        return f"<Analysis: {r.n_persons:,} people, {r.n_items:,} items, {r.n_responses:,} responses{within}>"

    @once
    def reliability(self, method: str | None = None) -> Reliability:
        """EAP reliability, alpha (KR-20), separation of persons and items: see `inference.scores.reliability`.

        Parameters
        ----------
        method : "wle", "ml", "eap" or "pv", optional
            How abilities are estimated; by default as the analysis was told.
        """
        if method is None or method != self._estimate(method):
            return self.reliability(self._estimate(method))
        responses = self.responses
        persons = np.ones(responses.n_persons, dtype=bool)
        comparable = self._comparable()
        if comparable is not None:  # of ratings in subsets that nothing links, people of the first
            persons = comparable
            responses = responses.take_persons(comparable)
        items = self._rated_items() if self.facets else self._item_statistics()
        return reliability(
            self.calibration,
            responses,
            self.abilities(method).take(persons),
            ml=self.abilities("ml").take(persons),
            eap=self._marginal(),
            weights=chosen_or_none(self.weights, persons),
            person_infit=self._person_fit(method).infit[persons],
            item_infit=items["infit"],
        )

    def _repr_html_(self) -> str:
        """For notebooks: what there is, and the first items."""
        return as_html(repr(self), self.calibration.own_items.item_columns())

    @once
    def likelihood(self) -> ConditionalLikelihood:
        """The conditional log-likelihood of these responses at the thresholds of the calibration, with AIC and BIC.

        Responses count once each, also in samples with weights. Ratings with facets are refused.

        Examples
        --------
        >>> from spectral_irt import SpectralRasch, datasets
        >>> lsat = datasets.load_lsat()
        >>> likelihood = SpectralRasch().fit(lsat).analyse(lsat).likelihood()
        >>> round(likelihood.loglik, 3), likelihood.n_parameters, round(likelihood.aic, 1)
        (-1091.57, 4, 2191.1)
        """
        return conditional_likelihood(self)

    @of_items
    @as_table
    @once
    def item_fit(
        self, *, critical: int = 0, sample: int | None = None, seed: int = 0, conditional: bool = True
    ) -> Columns:
        """The fit of every item as a table, and which items misfit.

        `item, n, infit, infit_z, outfit, outfit_z`, the same conditional on the scores (`infit_conditional, ...`),
        `point_measure, point_measure_expected, exact_match, exact_match_expected`, with anchors `displacement,
        displacement_se` of a fit in which the item is free, and the verdict `misfit`: "underfit", "overfit" or "".

        Mean squares are 1 when the item fits; above 1 answers are less predictable than the model says (underfit),
        below more (overfit). Decide by the conditional ones: the conventional ones, at maximum likelihood abilities as
        in eRm and Winsteps, have a mean below 1. `n` counts answers of people with a mixed score, who alone can tell.
        An item that was not properly estimated (its status is neither "ok" nor "anchored") has no fit.

        Parameters
        ----------
        critical : int
            Data sets to draw given the scores for critical values; 0 (default): none, and the verdict comes from the
            standardized infit. 1,000 is a good number, 199 the least. Adds `infit_conditional_low, .._high, .._p,
            .._p_family`, the same of outfit, and `item_rest` with the same: between the limits are 95% of the data sets
            that fit, of one item each; `p_family` is adjusted for all items, and the verdict goes by that of infit.
        sample : int, optional
            People to take at random for the draws. With very many people every item is "significantly" off.
        seed : int
            Of sample and draws.
        conditional : bool
            Compute the conditional statistics too (default); they cost a few times the others.
        """
        limits = self._critical(critical, sample, seed).items if critical else None
        given_score = self._conditional() if conditional else None
        return item_fit_columns(self.calibration, self._item_statistics(), given_score, limits)

    @once
    def _critical(self, draws: int, sample: int | None = None, seed: int = 0) -> CriticalFit:
        """Fit of items and persons against data sets drawn given the scores."""
        self._refuse_adaptive("critical values are drawn given the scores")
        return critical_fit(
            self.responses,
            self.calibration.thresholds,
            self.abilities(self._estimate(None)).ability,
            draws,
            scale_of_item=self.calibration.scale_of_item,
            sample=sample,
            seed=seed,
            progress=self._tell,
        )

    @once
    def _item_statistics(self) -> Columns:
        """Conventional fit statistics of every item as arrays, at maximum likelihood abilities."""
        self._tell("fit of the items")
        return item_statistics(self.responses, self.calibration.thresholds, self.abilities("ml").ability)

    @once
    def _conditional(self) -> Columns:
        """Fit statistics of every item given the scores, without abilities, as arrays."""
        self._tell("fit of the items given the scores")
        calibration = self.calibration
        return conditional_statistics(
            self.responses,
            calibration.thresholds,
            scale_of_item=calibration.scale_of_item,
            given=None if self._layout.binary else self._given_score(),
        )

    @once
    def _given_score(self) -> GivenScore:
        return GivenScore.of(self.responses, self.calibration.thresholds)

    def _strata(self, items: Ints, strata: int) -> Columns:
        """Mean answers to these items (positions, with an estimate) by stratum of ability, and those expected."""
        return strata_columns(self.responses, self._given_score(), self.abilities("wle").ability, items, strata)

    @once
    def _curves(self) -> Columns:
        """Mean answers in strata of ability and what the model expects, of every item or of those that fit worst."""
        items = items_with_curves(self.calibration, columns_of(self.item_fit))
        if not len(items) or not self.responses.n_responses:
            return {}
        strata = self._strata(items, STRATA)
        return {**strata, "item": self.calibration.labels[strata["item"]]}

    @as_table
    def item_analysis(self) -> Columns:
        """The classical analysis of every item as a table.

        `item, n`; `p_correct`, or in several categories `mean_score, max_score`; `item_rest`, the correlation of the
        answers with the share of the other points that each person has; `alpha_if_deleted`, Cronbach's alpha (KR-20) of
        the test without the item; `discrimination`, the slope of the item where 1 is the model's, as in Winsteps; for
        tables with a row for each person `omitted` and `not_reached`: blanks before a later answer of the person, and
        after the last one, of people whose form has the item; and in several categories the share of each.
        """
        return self._item_analysis()

    def _item_analysis(self, *, discrimination: bool = True) -> Columns:
        """The columns of `item_analysis`; the discrimination needs abilities."""
        slopes = self._item_statistics()["discrimination"] if discrimination else None
        blanks = self._blanks()
        return classical.item_analysis_columns(self.calibration, self.responses, self._classical(), slopes, blanks)

    @once
    def _blanks(self) -> Ints | None:
        """How often each item was left out, and not reached, by people whose form has it; None where a blank has no
        place in the test, as in long tables."""
        raw = self.responses.raw
        if raw is None or raw.blanks is None:
            return None
        if raw.blanks_decided:
            return np.array([raw.blanks.get(label, (0, 0)) for label in self.responses.items.tolist()], np.int64).T
        return blanks_by_item(self.responses, self._booklets())

    @once
    def _classical(self) -> classical.ItemAnalysis:
        """The classical statistics of every item as arrays."""
        self._tell("item analysis")
        return classical.item_analysis(self.responses, self.calibration.thresholds)

    @as_table
    def item_restscore(self, *, seed: int = 0) -> Columns:
        """Does each item go with the rest of the test as the model says? Goodman and Kruskal's gamma, observed and
        expected: `item, n, gamma, gamma_expected, se, z, p`, for right and wrong answers (Kreiner 2011).

        Parameters
        ----------
        seed : int
            Random seed (default 0).
        """
        return restscore_columns(self.calibration, self.responses, seed)

    @as_table
    @once
    def categories(self) -> Columns:
        """`item, category, code, n, share, mean_ability, infit` of every answer; see `inference.items.categories`."""
        self._tell("categories")
        return category_columns(self.responses, self.calibration.thresholds, self.abilities("wle").ability)

    @as_table
    def distractors(self) -> Columns:
        """Who chose which option, as a table; for answers that were scored with a key.

        `item, option, key, n, share, mean_ability` (as in `persons`), `rest_ability` and `rest_ability_se` (the mean
        ability by the other items alone, and its standard error), `point_biserial` (correlation of choosing it with the
        share right of the other answers). See `inference.items.distractors.distractors`.
        """
        return self._distractors().columns

    @once
    def _distractors(self) -> Distractors:
        """`distractors` as arrays, with the options that may be the right ones."""
        self._tell("options")
        if not self._layout.binary:
            raise OptionError("distractors is for right and wrong answers, and these are in ordered categories.")
        from spectral_irt.inference.items.distractors import distractors

        return distractors(self.calibration, self.responses, self.abilities().ability, self._classical())

    def _to_look_at(self) -> list[Look]:
        """Questions of a multiple-choice test that its author should look at, the most serious reason first."""
        return items_to_look_at(self._distractors(), self._classical().item_rest)

    @once
    def _item_findings(self) -> tuple[Finding, ...]:
        """Items whose key is probably wrong, and items that people of higher ability fail."""
        about_options: tuple[Finding, ...] = ()
        if self._multiple_choice:
            try:
                about_options = self._distractors().findings
            except OptionError as error:
                about_options = (Finding("distractors_left_out", "note", f"The options were not compared: {error}"),)
        explained = {item for finding in about_options for item in finding.items}
        reversed_items = reversed_findings(self.calibration, self.responses, self._classical(), explained)
        return about_options + reversed_items

    @of_items
    @as_table
    def item_trait(self, intervals: int | None = None, *, critical: int = 0, seed: int = 0) -> Columns:
        """Item-trait tests over class intervals: `item, n, chi2, df, p, p_adjusted` from what is expected given the
        scores, corrected for the estimated thresholds; `chi2_rumm, df_rumm, p_rumm` and the analysis of variance `f,
        df_within, p_f` at estimated measures, without a correction, as RUMM has them.

        The parameters are those of `inference.fit.class_intervals.item_trait`; `critical`: data sets for p-values.

        Parameters
        ----------
        intervals : int, optional
            Class intervals; by default one for 50 persons, two at least and ten at most.
        critical : int
            Data sets to draw given the scores for p-values (0: chi-squared), 199 or more.
        seed : int
            Random seed (default 0).
        """
        return self._item_trait(intervals, critical, seed).columns

    @once
    def _item_trait(self, intervals: int | None = None, critical: int = 0, seed: int = 0) -> ItemTrait:
        """`item_trait`, with the test of all items."""
        from spectral_irt.inference.fit.class_intervals import item_trait

        self._refuse_adaptive("class intervals go by scores")
        self._tell("class intervals")
        return item_trait(
            self.responses,
            self._measured,
            self.abilities("wle").ability,
            intervals=intervals,
            shared_offsets=self.calibration.scale_of_item is not None,
            draws=critical,
            seed=seed,
        )

    @of_items
    @once
    def smith_test(self, subset: Iterable[Any] | None = None) -> SmithTest:
        """Smith's test: are persons measured alike by two subsets of the items? See `inference.dimensions.smith`.

        Parameters
        ----------
        subset : labels of items, optional
            One of the two; the other has all other items. By default the items that load positively and negatively on
            the first residual contrast.
        """
        from spectral_irt.inference.dimensions.smith import smith_test

        if subset is None:
            dimensionality = self.dimensionality()
            place = positions(dimensionality.items.tolist(), self.responses.items)
            loading = np.zeros(self.responses.n_items)
            loading[place] = dimensionality.loadings
            return smith_test(self.responses, self._measured, loading > 0, loading < 0)
        self._refuse_adaptive("subsets of items are compared as if they had been given to everybody alike")
        place = positions(list(subset), self.responses.items)
        if (place < 0).any():
            unknown = [label for label, k in zip(subset, place, strict=True) if k < 0]
            raise OptionError(f"`subset` names {listed(unknown)}; the items are {listed(self.responses.items)}.")
        first = np.isin(np.arange(self.responses.n_items), place)
        return smith_test(self.responses, self._measured, first, ~first)

    def _class_intervals(self, parts: Parts) -> ItemTrait | None:
        """`item_trait` where the data are not too many or too few for it."""
        if self.responses.n_responses > CLASS_RESPONSES:
            return None
        with suppress(DesignError):
            return self._item_trait(critical=parts.critical)
        return None

    def _smith(self, parts: Parts) -> SmithTest | None:
        """`smith_test` where the data are not too few for it; of a subset that was asked for in any case."""
        if parts.subset is not None:
            return self.smith_test(parts.subset)
        if self._dimensionality(draws=parts.critical or None) is None:
            return None
        with suppress(DesignError, OptionError):
            return self.smith_test()
        return None

    def _refuse_adaptive(self, why: str) -> None:
        if self.calibration.adaptive:
            raise OptionError(f"{why}, and these answers chose the items.")

    @of_items
    @once
    def model_test(self, split: Any = "ability") -> WaldTest:
        """Are items as hard for the less able as for the more able? See `inference.groups.model_tests.score_split`.

        Parameters
        ----------
        split : "ability", "median", "mean", "scores", or labels
            Into which groups people are divided; a label for each person, or a mapping from person to label.
        """
        return score_split(self.calibration, self.responses, split, self.sampling)

    @once
    def quick_model_test(self) -> RaoTest | None:
        """A score test of the same, without calibrating the halves; None with many items, or with too few data."""
        if self.facets or self.responses.n_items > TEST_ITEMS or self.responses.n_responses > TEST_RESPONSES:
            return None
        self._tell("less able against more able half")
        with suppress(DesignError):
            return ability_split(self.calibration, self.responses, self.sampling)
        return None

    @of_items
    def hausman(self, groups: Any = None, *, seed: int = 0) -> HausmanTest:
        """Do conditional and marginal likelihood agree? They part where items were chosen by the answers, or where
        abilities are not normal (in each group); see `inference.groups.hausman.hausman`.

        Parameters
        ----------
        groups : column or labels, optional
            Populations of the marginal likelihood; by default one.
        seed : int
            Random seed (default 0).
        """
        return hausman(self.responses, self._measured, self._labels(groups), seed, self.sampling)

    @once
    def _quick_hausman(self, groups: Any = None) -> HausmanTest | None:
        """`hausman` where the data allow it and the calibration does not allow for adaptive designs anyway."""
        self._tell("conditional against marginal likelihood")
        if self.facets or self.calibration.adaptive:
            return None
        with suppress(*UNTESTABLE):
            return hausman(self.responses, self._measured, groups, sampling=self.sampling)
        return None

    @of_items
    def checks(self, parts: Parts | None = None) -> Checks:
        """Does it fit? The items, the halves, dependence, dimensions and people, at 5% together; see `Checks`.

        Parameters
        ----------
        parts : Parts, optional
            What to hold besides the items, by `study.parts(...)`; by default what does not take long.
        """
        parts = parts or self.parts(fit=True)
        return self._checks(parts.critical, parts.sample, parts.persons)

    @once
    def _checks(self, critical: int, sample: int | None, persons: bool) -> Checks:
        """All checks, within a second or about the time of the fit; with abilities of people where those are known."""
        calibration = self.calibration
        responses = self.responses
        columns = columns_of(self.item_fit, critical=critical, sample=sample)
        halves = self.quick_model_test()
        shared = self._dimensionality(draws=critical or None)
        self._tell("person misfit")
        if critical:
            people = self._critical(critical, sample).misfit
        else:
            # People are measured anew where some items rest on a prior: without these.
            of_all_items = None
            if persons and calibration.measured.all():
                of_all_items = (self.abilities("wle"), self._person_fit("wle"))
            people = person_misfit(responses, self._measured, known=of_all_items)
        misfit = bool((columns["misfit"] != "").any())
        findings = [misfit_finding(columns, critical)] if misfit else []
        for check in (halves, shared, people):
            if check is not None:
                findings += check.findings
        limits = np.where(calibration.measured, detectable(self._conditional()["infit_se"]), np.nan)
        if findings:
            slopes = self._item_statistics()["discrimination"]
            findings += cause_findings(calibration, responses, columns, slopes, findings)
        blind = np.flatnonzero(limits > VISIBLE)
        if len(blind) and not misfit:
            findings.append(not_visible(columns, limits, blind))
        return Checks(columns, halves, shared, people, limits, critical, tuple(findings))

    @of_items
    @once
    def dif(
        self,
        groups: Any,
        *,
        reference: Any = None,
        anchors: str | Iterable[Any] = "purified",
        min_people: int = MIN_PEOPLE,
        level: float = LEVEL,
        nonuniform: bool = True,
    ) -> Differential:
        """Differential item functioning: which items are harder for one group than for another as able.

        `groups` is the name of a column about the people, or has a label for each, in their order, or maps persons to
        labels; the rest is of `inference.groups.dif.differential`. Ordered answers: `thresholds()` has each threshold.
        Weights of the fit count, and so do clusters: `study.clustered("class").dif("sex")`.

        Parameters
        ----------
        groups : str, labels or mapping
            As above.
        reference : label, optional
            The group that the others are compared with; by default the first in order.
        anchors : "purified", "all" or item labels
            What the groups are centered on: the items that agree on one difference between the groups (default), all
            that are compared, or these.
        min_people : int
            A group with fewer people of mixed success is left out, with a finding (default 30).
        level : float
            Of classes and findings (default 0.05).
        nonuniform : bool
            Whether to ask too if differences depend on ability.
        """
        from spectral_irt.inference.groups.dif import differential

        self._tell("comparing groups")
        if not isinstance(anchors, str):
            anchors = list(anchors)
        return differential(
            self.calibration,
            self.responses,
            self._labels(groups),
            reference=reference,
            anchors=anchors,
            min_people=min_people,
            level=level,
            nonuniform=nonuniform,
            sampling=self.sampling,
        )

    @of_items
    @once
    def dif_tree(
        self,
        columns: Sequence[str],
        *,
        order: Mapping[str, Sequence[str]] | None = None,
        size: str | float = "B",
        min_leaf: int = 200,
        depth: int = 5,
        sample: str = "auto",
        subsamples: int = 0,
        seed: int = 0,
    ) -> DifTree:
        """Groups of persons, by any columns about them, for whom items work differently: found, not named beforehand.

        `columns` are columns about the people. Numbers are cut, labels divided; `order` has the labels of a column from
        the lowest to the highest, or `["categories"]` for numbers that are names. The rest is of
        `inference.groups.tree.dif_tree`. Compare what was found item by item with `study.dif(tree.leaves)`.

        Parameters
        ----------
        columns, order
            As above.
        size : "B", "C", "any" or float
            The difference of an item, in logits, from which a split counts: that of ETS class B (0.43) by default.
        min_leaf : int
            Fewest persons of a group (default 200).
        depth : int
            Most splits one below the other (default 5).
        sample : "half", "all" or "auto"
            "half": grow on one half of the persons, and take the sizes from the other. "all": use all for both.
            "auto" does so below 1,000 persons.
        subsamples : int
            So many further trees, each on half of the persons, to see how stable the choice of columns is (default 0).
        seed : int
            Random seed of halves and subsamples (default 0).
        """
        from spectral_irt.inference.groups.fluctuation import covariate
        from spectral_irt.inference.groups.tree import dif_tree

        if self.calibration.adaptive:
            raise OptionError("a DIF tree goes by residuals given the score, and these answers chose the items.")
        if isinstance(columns, str):
            columns = [columns]
        orders = order or {}
        covariates = [
            covariate(self.responses, name, column_of(self.responses, name), orders.get(name, ())) for name in columns
        ]
        if not covariates:
            raise OptionError("a DIF tree needs a column about the persons; name one or more.")
        self._tell("DIF tree")
        return dif_tree(
            self.calibration,
            self.responses,
            covariates,
            size=size,
            min_leaf=min_leaf,
            depth=depth,
            sample=sample,
            subsamples=subsamples,
            seed=seed,
            sampling=self.sampling,
        )

    @property
    def change(self) -> Change:
        """Change between waves, of an analysis by `si.change`."""
        if self._change is None:
            raise OptionError("this analysis is of one occasion; `si.change` makes one of several.")
        return self._change

    def _tree(self, parts: Parts) -> DifTree | None:
        """The tree of the parts, where one was asked for."""
        if parts.tree is None:
            return None
        options = parts.tree._asdict()
        order = options.pop("order")
        return self.dif_tree(list(order), order=order, **options)

    def _comparisons_of_groups(self, parts: Parts) -> Mapping[str, Differential]:
        """The comparison of groups for every grouping of the parts; of ratings these are interactions of the facets."""
        comparisons = self._comparisons(parts)
        return {name: dif for name, dif in comparisons.items() if not isinstance(dif, Finding)}

    def _comparisons(self, parts: Parts) -> Mapping[str, Differential | Finding]:
        """The comparison of groups for every grouping of the parts, or a note why there is none: groups that are too
        small leave out DIF, and nothing else."""
        comparisons: dict[str, Differential | Finding] = {}
        if self.facets:
            return comparisons
        for name, labels in parts.groups.items():
            try:
                comparisons[name] = self.dif(labels)
            except DesignError as error:
                reason = str(error).removeprefix(f"{self.responses.source}: ")
                comparisons[name] = Finding("dif_left_out", "note", f"DIF by {name!r} was left out: {reason}")
        return comparisons

    @of_items
    def local_dependence(
        self, *, min_people: int = MIN_PAIRED, sample: int | None = None, draws: int | None = None, seed: int = 0
    ) -> LocalDependence:
        """Yen's Q3 of pairs of items, with the verdict on each that summary, report and files give, too.

        The parameters are those of `inference.dimensions.dimensionality.dimensionality`.

        Parameters
        ----------
        min_people : int
            People who answered both items of a pair; pairs with fewer are left out (default 30).
        sample : int, optional
            People to take at random (default 4,000 at most).
        draws : int, optional
            Data sets to draw given the scores; 0 for the normal distribution of large samples. By default as many as
            take half a second, up to 1,000.
        seed : int
            Random seed of sample and draws (default 0).
        """
        return self.dimensionality(min_people=min_people, sample=sample, draws=draws, seed=seed).dependence

    @of_items
    def dimensionality(
        self, *, min_people: int = MIN_PAIRED, sample: int | None = None, draws: int | None = None, seed: int = 0
    ) -> Dimensionality:
        """Contrasts of the residuals, the variance that the measures explain (Winsteps' table 23), and dependent pairs.

        The parameters are those of `inference.dimensions.dimensionality.dimensionality`.

        Parameters
        ----------
        min_people : int
            People who answered both items of a pair; pairs with fewer are left out (default 30).
        sample : int, optional
            People to take at random (default 4,000 at most).
        draws : int, optional
            Data sets to draw given the scores; 0 for the normal distribution of large samples. By default as many as
            take half a second, up to 1,000.
        seed : int
            Random seed of sample and draws (default 0).
        """
        if self.calibration.adaptive:
            raise OptionError(
                "local dependence and dimensions go by residuals given the score, and these answers chose the items: "
                "they are left out of adaptive designs."
            )
        result = self._dimensionality(min_people, sample, draws, seed)
        if result is None:
            raise DesignError(too_few(self.responses, min_people))
        return result

    @once
    def _dimensionality(
        self, min_people: int = MIN_PAIRED, sample: int | None = None, draws: int | None = None, seed: int = 0
    ) -> Dimensionality | None:
        """The one computation of dependent pairs and dimensions; None with too few data."""
        self._tell("dimensions and dependent items")
        return dimensionality(
            self.calibration, self.responses, min_people=min_people, sample=sample, draws=draws, seed=seed
        )

    @of_items
    @as_table
    @once
    def ranking(self, by: str = "difficulty", top: int = 10, *, seed: int = 0) -> Columns:
        """The items from the hardest down, with rank intervals and the chance of being among the `top` hardest.

        By the estimate to find the hardest items, `by="lower"` to recommend; see `inference.ranks.items`.

        Parameters
        ----------
        by : "difficulty" or "lower"
            The estimate, or the lower end of its interval.
        top : int
            How many are the hardest (default 10).
        seed : int
            Random seed (default 0).
        """
        self._tell("ranks")
        from spectral_irt.inference.ranks.items import ranking_columns

        return ranking_columns(self.calibration, self.location_covariance(), by, top, seed=seed)

    @of_items
    def clustered(self, clusters: Any, groups: Any = None, *, name: str | None = None) -> Self:
        """The same analysis with standard errors that allow for clusters of people, such as classrooms.

        `clusters` is the name of a column about the people, or has a label for each, in their order, or maps persons to
        labels; `groups` are those of a marginal calibration with several populations, likewise; see
        `inference.groups.cluster_errors.cluster_covariance`.
        """
        if not name:
            name = f"clusters by {clusters}" if isinstance(clusters, str) else "clusters"
        labels = self._labels(clusters)
        populations = self._labels(groups)
        from spectral_irt.inference.groups.cluster_errors import with_cluster_errors

        other = copy.copy(self)
        other._known = {}
        other.calibration, other._clustered = with_cluster_errors(
            self.calibration, self.responses, labels, populations, weights=self.weights, name=name
        )
        other.sampling = replace(self.sampling, cluster=cluster_numbers(self.responses, labels), name=name)
        return other

    @of_items
    def to_bank(self) -> Bank:
        """A bank of the calibration and of what these responses, which it was fitted to, tell for later updates."""
        from spectral_irt.bank.build import to_bank

        return to_bank(self.calibration, self.responses, self.weights, form=self._form)

    @property
    def plot(self) -> Plots:
        """Pictures: `study.plot.wright()`, `study.plot.icc("item 7")`; see `plots.all.Plots`."""
        from spectral_irt.plots.all import Plots

        return Plots(self)

    parts = wanted_parts
    tables = result_tables
    record = fit_record
    write = write_results

    def findings(self, parts: Parts | None = None) -> tuple[Finding, ...]:
        """Everything that is odd, in the data and in what was computed from them.

        Parameters
        ----------
        parts : Parts, optional
            What to hold besides the items, by `study.parts(...)`; by default what does not take long.
        """
        parts = parts or self.parts()
        of_fit = []
        for finding in self.calibration.findings:
            of_items = about_super_items(finding, self.moves)
            of_fit.append(pointing_at_move(of_items, merge_for(of_items, self)))
        findings = [*self.ledger_findings, *of_fit, *parts.notes]
        if self._form is not None or (parts.scores and not self.facets):  # beside raters a score stands for nothing
            findings += self._booklets().findings(self.responses)
        if parts.scores and not self.facets:
            findings += [*self.forms().findings, *self._code_findings()]
        if parts.item_analysis:
            findings += self._item_findings()  # what the checks find may follow from a wrong key or a reversed item
        if parts.fit:
            findings += [pointing_at_move(finding, move_for(finding)) for finding in self.checks(parts).findings]
            hausman = self._quick_hausman(parts.populations)
            if hausman is not None:
                findings += hausman.findings
        comparisons = self._comparisons(parts)
        for column, comparison in comparisons.items():
            findings += _findings_of_comparison(column, comparison, alone=len(comparisons) == 1)
        if self._change is not None:
            findings += self._change.findings
        tree = self._tree(parts)
        if tree is not None:
            findings += tree.findings
        if parts.covariates is not None:
            findings += self._explain_severities(parts.covariates).findings
        if self.facets:
            findings += self._facet_findings()  # which name raters without quotes
        return tuple(findings)

    def summary(self, parts: Parts | None = None, *, width: int = 80) -> str:
        """The text that `spectral-irt fit` prints.

        Parameters
        ----------
        parts : Parts, optional
            What to hold besides the items, by `study.parts(...)`; by default what does not take long.
        width : int
            Columns of the terminal (default 80).
        """
        from spectral_irt.analysis.summary import summary_text

        return summary_text(self, parts or self.parts(), width)

    def report(
        self,
        path: str | Path,
        parts: Parts | None = None,
        *,
        title: str | None = None,
        author: str | None = None,
        list_persons: bool = False,
        checklist: str | None = None,
    ) -> Path:
        """Write everything to one HTML file that needs no network, or to a Word document (report.docx); nobody is named
        in it unless `list_persons`.

        Parameters
        ----------
        path : path
            report.html or report.docx.
        parts : Parts, optional
            What to hold besides the items, by `study.parts(...)`; by default what does not take long.
        title, author : str, optional
            Shown on the report.
        list_persons : bool
            Whether persons are listed by name.
        checklist : "ruler", optional
            An appendix that answers a guideline for reporting, point by point.
        """
        from spectral_irt.report.page import write_report

        parts = parts or self.parts(writing=True)
        words: dict[str, Any] = {"title": title, "author": author, "list_persons": list_persons}
        return write_report(self, Path(path), parts, **words, checklist=checklist)

    def pupil_pages(self, path: str | Path, *, title: str | None = None) -> Path:
        """Write a class list and a page for each person to one HTML file, to print: points, percent, measure with its
        interval, and which questions are right or wrong; a person's page has nothing about anybody else.

        Parameters
        ----------
        path : path
            The HTML file.
        title : str, optional
            Shown above the list.
        """
        from spectral_irt.report.pupils import write_pupil_pages

        return write_pupil_pages(self, Path(path), title)


def _findings_of_comparison(column: str, comparison: Differential | Finding, *, alone: bool) -> Iterable[Finding]:
    """What a comparison of groups found, or why it was left out; the column is named where there are several, whose
    groups may have the same names, such as 0 and 1."""
    if isinstance(comparison, Finding):
        return (comparison,)
    findings = [pointing_at_move(finding, move_for(finding, column)) for finding in comparison.findings]
    if alone:
        return findings
    return [replace(finding, sentence=f"{column}: {finding.sentence}") for finding in findings]
