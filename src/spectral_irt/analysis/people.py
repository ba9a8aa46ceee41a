"""What an analysis says about people: abilities, raw scores, single answers, groups, classes."""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from spectral_irt import notebook
from spectral_irt.analysis.cache import as_table, columns_of, once
from spectral_irt.analysis.moves import Move, parts_of_split_items
from spectral_irt.calibration import Calibration, Scale
from spectral_irt.conditional.errors import location_covariance
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.booklets import Booklets, booklets_of
from spectral_irt.data.code_sums import code_findings, person_code_sums
from spectral_irt.data.crossing import cross_with_column
from spectral_irt.data.labels import column_of
from spectral_irt.errors import Finding, OptionError, check_option
from spectral_irt.inference.facets import fair_average, subset_of_persons
from spectral_irt.inference.fit.halo import Halo, halo_of_facet
from spectral_irt.inference.groups.grouping import by_label, group_columns, without_tests_across_subsets
from spectral_irt.inference.groups.sampling import Sampling
from spectral_irt.inference.ranks.intervals import person_ranks
from spectral_irt.inference.scores.cut_scores import cut_columns, lowest_scores, raw_cuts, scale_cuts
from spectral_irt.inference.scores.equating import Equating, equate_forms
from spectral_irt.inference.scores.reliability import Marginal, marginal_reliability
from spectral_irt.joint_errors import errors_of_thresholds
from spectral_irt.persons.abilities import Abilities, abilities, with_severities, with_thresholds
from spectral_irt.persons.align import align, align_categories
from spectral_irt.persons.residuals import (
    UNEXPECTED_OF_ALL,
    UNEXPECTED_OF_PERSON,
    MeanSquares,
    people_at,
    person_mean_squares,
    residual_columns,
    unexpected_columns,
)
from spectral_irt.persons.scalogram import MOST_CELLS, Scalogram, scalogram
from spectral_irt.persons.test_form import Form, Forms, find_forms, form_columns, score_columns
from spectral_irt.tables import Columns, rows_of
from spectral_irt.text import QUESTIONNAIRE, TEST, Words

if TYPE_CHECKING:
    from spectral_irt.analysis.folder import Parts
    from spectral_irt.estimators.base import RaschEstimator
    from spectral_irt.inference.groups.change import Change
    from spectral_irt.inference.groups.cluster_errors import ClusterErrors
    from spectral_irt.persons.plausible import PlausibleValues, Seed

Tell = Callable[[str], None]

# Whose numbers a scale goes by, and how an error names the scale that was asked for.
SCALES_BY = {
    "persons": "the mean {:g} and sd {:g} of these persons",
    "items": "the mean {:g} of the items with {:g} units per logit",
    "formula": "the formula {:g} + {:g} x logit",
}


# Names of results in a table of persons.
PLAUSIBLE = re.compile(r"(measure_)?pv\d+")
OF_PERSONS = frozenset(
    [
        "person",
        "n",
        "score",
        "max_score",
        "code_sum",
        "ability",
        "se",
        "extreme",
        "infit",
        "outfit",
        "infit_z",
        "outfit_z",
        "infit_p",
        "outfit_p",
        "measure",
        "measure_se",
        "measure_100",
        "fair_average",
        "subset",
        "ci_low",
        "ci_high",
        "rank",
        "rank_low",
        "rank_high",
    ]
)


class AnalysisOfPeople:
    """The people of an analysis; see `Analysis`, which has the parameters."""

    calibration: Calibration
    responses: Responses
    moves: tuple[Move, ...] = ()
    _change: Change | None = None  # where responses are of several waves

    def __init__(
        self,
        calibration: Calibration,
        responses: Any,
        *,
        ability: str = "wle",
        population: tuple[float, float] | None = None,
        ignore_unknown: bool = False,
        progress: Tell | None = None,
        estimator: RaschEstimator | None = None,
        trait: str | None = None,
        form: Any = None,
    ) -> None:
        in_blocks = calibration.responses_of(responses)
        if calibration.facets is not None and in_blocks.facets is not None:
            for name in calibration.facets.facets.facet_names:
                if name not in in_blocks.facets.facet_names and name in (in_blocks.people or {}):
                    in_blocks = cross_with_column(in_blocks, name)
        self.calibration = calibration
        if calibration.right_or_wrong and in_blocks.thresholds.binary:
            self.responses = align(calibration.labels, in_blocks, ignore_unknown)
        else:
            self.responses = align_categories(calibration, in_blocks, ignore_unknown)
        self.ability = ability
        self.population = population
        self._estimator = estimator
        if trait is not None and (not trait.strip() or not trait.isprintable()):
            raise OptionError(f"`trait={trait!r}` is no word; say what is measured, such as `trait='anxiety'`.")
        self.trait = trait
        self._form = form
        # What these people have on the scale of report, where that was asked, or by what else the scale goes.
        self._asked_scale: dict[str, float | str] = {}
        self._tell: Tell = progress or notebook.say
        self._clustered: ClusterErrors | None = None
        self._known: dict[Hashable, Any] = {}  # what was computed: see `once`
        self._lock = threading.RLock()
        self._layout = layout = self.responses.thresholds  # which thresholds belong to which item
        raw = self.responses.raw
        self._multiple_choice = layout.binary and raw is not None and bool(raw.options)  # scored with a key
        is_measured = calibration.measured[calibration.layout.item]
        self._measured: Floats = np.where(is_measured, calibration.thresholds, np.nan)  # of items that rest on answers
        self.facets: tuple[str, ...] = ()
        if calibration.facets is not None:
            self.facets = tuple(calibration.facets.of)
        persons, weights = getattr(estimator, "weighted_", None) or (None, None)
        same_persons = persons is not None and np.array_equal(persons, self.responses.persons)
        self.sampling = Sampling()
        if same_persons:
            self.sampling = Sampling(weights)

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and deep copies: what was given. What was computed from it is computed anew when asked for; a
        lock and whoever is told about progress belong to this process."""
        return {name: value for name, value in vars(self).items() if name not in ("_known", "_lock", "_tell")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._known = {}
        self._lock = threading.RLock()
        self._tell = notebook.say

    def __copy__(self) -> Self:
        """A shallow copy has the same results, lock and listener; see `rescale`."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    @property
    def weights(self) -> Floats | None:
        """How much each person counts, with mean 1; None where all count alike."""
        return self.sampling.weights

    def _weights_of(self, persons: NDArray[Any]) -> Floats | None:
        """The weights of some persons (chosen by position or as true and false); None where all count alike."""
        if self.weights is None:
            return None
        return self.weights[persons]

    @property
    def _words(self) -> Words:
        """How texts call what is measured: as asked, or an ability where answers are right or wrong."""
        if self.trait is not None:
            return Words(self.trait, "measures")
        if self._layout.binary:
            return TEST
        return QUESTIONNAIRE

    def _estimate(self, method: str | None) -> str:
        """The one estimate for each person that goes with a method: the posterior mean with plausible values."""
        method = method or self.ability
        if method == "pv":
            return "eap"
        return method

    def _labels(self, groups: Any) -> Any:
        """The labels of a grouping: given, or those of a column about the people by its name."""
        if isinstance(groups, str):
            return column_of(self.responses, groups)
        return groups

    @once
    def abilities(self, method: str | None = None) -> Abilities:
        """The ability of every person as arrays; see `persons` for a table. Plausible values go with "eap".

        Parameters
        ----------
        method : "wle", "ml", "eap" or "pv", optional
            How abilities are estimated; by default as the analysis was told.
        """
        if method != self._estimate(method):
            return self.abilities(self._estimate(method))
        self._tell("abilities")
        mean, sd = (method == "eap" and self.population) or (None, None)
        beta = self.calibration.thresholds
        estimates = abilities(self.responses, beta, method, prior_mean=mean, prior_sd=sd, weights=self.weights)
        rated = self.calibration.facets
        if rated is None:
            return estimates
        return with_severities(estimates, self.responses, self.calibration.thresholds, rated, self._halo_variances())

    def _halo_variances(self) -> dict[str, float]:
        """Of the impressions that raters, and levels of other facets, have of persons."""
        halos = {name: self._halo(name) for name in self.facets}
        return {name: halo.variance for name, halo in halos.items() if halo is not None}

    @once
    def _halo(self, name: str) -> Halo | None:
        """How far ratings of one person by one rater depend on each other; None where that cannot be seen."""
        self._tell(f"halo of every {name}")
        return halo_of_facet(self.calibration, self.responses, name)

    @once
    def _subset(self) -> Ints | None:
        """Of ratings in subsets that nothing links, the subset of each person from 1, or 0 without ratings; None where
        all people can be compared."""
        rated = self.calibration.facets
        if rated is None or rated.subset_of_item.max(initial=0) == 0:
            return None
        return subset_of_persons(rated, self.responses) + 1

    def _comparable(self) -> NDArray[np.bool_] | None:
        """People of the first subset, whose measures can be compared; None where that is everybody."""
        subset = self._subset()
        if subset is None:
            return None
        return subset == 1

    @as_table
    def persons(self, method: str | None = None, *, draws: int = 5, seed: Seed = 0, given: Any = None) -> Columns:
        """The persons as a table: `person, n, score, ability, se, extreme, infit, outfit, infit_z, outfit_z`.

        `n` answers to items with an estimate; `score` of them right, or the sum of the categories answered, then of at
        most `max_score`. `extreme`: the lowest or the highest score; the ability is then infinite under "ml", and
        finite but mostly the method's under the others. `infit` and `outfit` are mean squares at the reported ability
        (1 = as the model expects, above: underfit, below: overfit), missing for extreme scores. `measure` and
        `measure_se` follow where there is a scale of report, and then the columns about people that were read.

        Parameters
        ----------
        method : "wle", "ml", "eap" or "pv", optional
            Warm's weighted likelihood, maximum likelihood, or the mean under a normal prior; by default that of the
            analysis. "pv": plausible values too, `pv1, pv2, ...`, drawn from the posterior whose mean is `ability`.
        draws, seed, given
            Of "pv": how many values for each person, the seed, and what they will be related to (groups, numbers); see
            `persons.plausible.plausible_values`.
        """
        estimates = self.abilities(method)
        fit = self._person_fit(self._estimate(method))
        columns: Columns = {"person": self.responses.persons, "n": estimates.n, "score": estimates.score}
        columns |= self._code_sums()
        if not self._layout.binary:  # the highest score that each person could have
            columns["max_score"] = with_thresholds(self.responses, self.calibration.thresholds)[0].max_scores
        columns |= {"ability": estimates.ability, "se": estimates.se, **self._from_0_to_100(estimates.ability)}
        columns |= {"extreme": estimates.extreme}
        columns |= {"infit": fit.infit, "outfit": fit.outfit, "infit_z": fit.infit_z, "outfit_z": fit.outfit_z}
        if (method or self.ability) == "pv":
            columns |= self.plausible_values(draws, seed=seed, given=given).columns()
        return with_measures(columns, "ability", self.calibration.scale) | self._about_persons()

    @once
    def _code_sums(self) -> Columns:
        """`code_sum`, the sum of each person's responses in the codes of the data; nothing where it is the score."""
        if self.facets or not self.calibration.has_codes:
            return {}
        codes = np.where(self.calibration.known[:, None], self.calibration.codes, np.nan)
        sums = self.responses.entries.gather(person_code_sums, self._layout, codes)
        if self.responses.code_excess is not None:
            sums = sums + self.responses.code_excess
        if np.isnan(sums).any():
            return {"code_sum": sums}
        return {"code_sum": sums.astype(np.int64)}

    def _from_0_to_100(self, ability: Floats) -> Columns:
        """`measure_100` of ordered responses: 100 (ability - lowest) / (highest - lowest), of the abilities by Warm's
        likelihood that go with the lowest and the highest score on all items. Of an item that was split by groups,
        of which nobody has two parts, the lowest score is on the easiest and the highest on the hardest."""
        test = Form(self.calibration.thresholds, self._layout)
        has_difficulty = self.calibration.known
        if self.facets or self._layout.binary or not has_difficulty.any():
            return {}
        location = self.calibration.difficulty
        on_easiest = has_difficulty.copy()
        on_hardest = has_difficulty.copy()
        for parts in parts_of_split_items(self.moves, self.calibration.labels):
            parts = parts[has_difficulty[parts]]
            easiest_last = parts[np.argsort(-location[parts])]
            on_easiest[easiest_last[:-1]] = False
            on_hardest[easiest_last[1:]] = False
        lowest, _ = test.take(np.flatnonzero(on_easiest)).ends()
        _, highest = test.take(np.flatnonzero(on_hardest)).ends()
        return {"measure_100": 100 * (ability - lowest) / (highest - lowest)}

    def _about_persons(self) -> Columns:
        """The columns about people that were read (sex, class); one that is called like a result is `given_` that."""
        people: Mapping[str, NDArray[Any]] = self.responses.people or {}
        columns: Columns = {}
        for name, values in people.items():
            if name in OF_PERSONS or PLAUSIBLE.fullmatch(name):
                name = f"given_{name}"
            columns[name] = values
        return columns

    def plausible_values(self, draws: int = 5, *, seed: Seed = 0, given: Any = None) -> PlausibleValues:
        """Draws from the posterior of every person as arrays; see `persons.plausible.plausible_values`.

        Parameters
        ----------
        draws : int
            Values for each person; 5 are customary.
        seed : int
            Random seed (default 0).
        given : column, labels or table, optional
            What the values will be related to (latent regression).
        """
        from spectral_irt.persons.plausible import plausible_values

        prior = self.population
        if given is None:
            prior = self.abilities("eap").prior
        return plausible_values(
            self.responses,
            self.calibration.thresholds,
            weights=self.weights,
            draws=draws,
            seed=seed,
            prior=prior,
            given=given,
        )

    @as_table
    def person_ranking(self, method: str | None = None, *, seed: int = 0) -> Columns:
        """The persons from the highest ability down, with intervals of ability and rank, as a table.

        The columns of `persons` with `ci_low, ci_high, rank, rank_low, rank_high`; see
        `inference.ranks.intervals.person_ranks`. For a few people who answered many items, such as language models.

        Parameters
        ----------
        method : "wle", "ml", "eap" or "pv", optional
            How abilities are estimated; by default as the analysis was told.
        seed : int
            Random seed (default 0).
        """
        method = self._estimate(method)
        ranks = self._person_ranks(method, seed)
        columns = {**columns_of(self.persons, method), **ranks}
        order = np.lexsort((ranks["rank"], ranks["rank"] == 0))
        return {name: values[order] for name, values in columns.items()}

    @once
    def _person_ranks(self, method: str, seed: int) -> Columns:
        return person_ranks(self.abilities(method).ability, self.abilities(method).se, seed=seed)

    def populations(self) -> list[dict[str, Any]] | None:
        """Mean and standard deviation of ability in each group, where marginal likelihood estimated them."""
        table: Columns | None = getattr(self._estimator, "population_", None)
        if table is None:
            return None
        return rows_of(table)

    @once
    def _marginal(self) -> Marginal | None:
        """The normal population of these people, by marginal maximum likelihood; None where too few people differ."""
        some = self._comparable()
        if some is None:
            some = np.ones(self.responses.n_persons, dtype=bool)
        responses = self.responses
        if not some.all():
            responses = responses.take_persons(some)
        weights = self._weights_of(some)
        marginal = marginal_reliability(responses, self.calibration.thresholds, weights)
        if marginal is None or self.calibration.facets is None:
            return marginal
        return self._of_ratings(marginal, some, weights)

    def _of_ratings(self, found: Marginal, some: NDArray[np.bool_], weights: Floats | None) -> Marginal:
        """The reliability that allows for the errors of severities and for halo."""
        eap = abilities(self.responses, self.calibration.thresholds, "eap", prior_mean=found.mean, prior_sd=found.sd)
        measures = self.calibration.facets
        assert measures is not None
        beta = self.calibration.thresholds
        severities = with_severities(eap, self.responses, beta, measures)
        all_errors = with_severities(eap, self.responses, beta, measures, self._halo_variances())
        return found.with_rater_errors(eap.take(some), severities.take(some), all_errors.take(some), weights)

    @once
    def _person_fit(self, method: str) -> MeanSquares:
        """Infit and outfit of every person as arrays, at these abilities."""
        return person_mean_squares(self.responses, self.calibration.thresholds, self.abilities(method).ability)

    @as_table
    def residuals(self) -> Columns:
        """Every answer as a table: `person, item, response, expected, residual, z`, at the abilities of the analysis.

        For small data: a row for each answer.
        """
        return residual_columns(self.responses, self.calibration.thresholds, self.abilities().ability)

    @as_table
    @once
    def unexpected_answers(
        self,
        people: Sequence[Any] | None = None,
        *,
        per_person: int = UNEXPECTED_OF_PERSON,
        limit: int = UNEXPECTED_OF_ALL,
    ) -> Columns:
        """The most surprising answers as a table: `person, misfit_z, item, response, expected, z, ability, difficulty`.

        Of ordered answers `expected` is the mean answer that the model expects, `difficulty` the item's location.

        Parameters
        ----------
        people : sequence of labels, optional
            Whose answers; by default of people whose infit or outfit, standardized, is above 2, the worst first.
        per_person, limit : int
            So many answers of each person, and of all; see `persons.residuals.unexpected_columns`.
        """
        place = None
        if people is not None:
            place = people_at(self.responses, people)
        return unexpected_columns(
            self.responses,
            self.calibration.thresholds,
            self.abilities(),
            self._person_fit(self._estimate(None)),
            people=place,
            per_person=per_person,
            limit=limit,
        )

    def _unexpected(self) -> Columns:
        """What goes to a file of unexpected answers."""
        return columns_of(self.unexpected_answers)

    @as_table
    def guttman(self, persons: Sequence[Any] | None = None) -> Columns:
        """Guttman's scalogram as a table: persons from the highest ability down, items from the easiest on.

        `person, score, ability, n_unexpected` (with `measure` where there is a scale of report), then a column for each
        item with the responses in the codes of the data: `*` behind one whose standardized residual is beyond 2,
        nothing where there is none.

        Parameters
        ----------
        persons : sequence of labels, optional
            Whose responses; by default everybody's, where these are at most 500,000 cells.
        """
        return self._guttman_columns(persons)

    def _guttman_columns(self, persons: Sequence[Any] | None = None) -> Columns:
        table = self._scalogram(persons)
        about_persons = with_measures(table.person_columns(), "ability", self.calibration.scale)
        return about_persons | table.item_columns(about_persons)

    def _scalogram(self, persons: Sequence[Any] | None = None) -> Scalogram:
        if self.facets:
            raise OptionError(
                "a scalogram has a row for each person and a column for each item, and these are ratings; "
                "`study.unexpected_answers()` has the ratings that were least expected."
            )
        place = None if persons is None else people_at(self.responses, persons)
        return scalogram(self.responses, self.calibration.thresholds, self.abilities().ability, place)

    @once
    def _booklets(self) -> Booklets:
        """The forms that people were given, with items that they skipped; see `data.booklets`."""
        return booklets_of(self.responses, self._form)

    @once
    def forms(self) -> Forms:
        """The forms with a table of scores; see `persons.test_form.find_forms`."""
        return find_forms(self.responses, self.calibration.thresholds, self._booklets())

    @as_table
    def scores(self) -> Columns:
        """From raw score to ability on every form, as a table: `form, n_items, score, ability, se, n, percentile`.

        Of ordered responses `measure_100` is the ability from 0 to 100: 100 (ability - lowest) / (highest - lowest),
        over the scores on all items. Where categories are coded otherwise than 0, 1, ..., `code_sum` is the score as a
        sum of codes (10 to 50); where a category that nobody used was renumbered, the lowest such sum, and
        `code_sum_high` the highest.

        Forms are those that `form=` of the analysis names, or sets of items that at least ten people answered;
        `study.forms()` has them. `n` people who answered the whole form have the score, and `percentile` is 100 times
        the share of those with a lower one and half of the share with the same (the mid-percentile). `measure` and
        `measure_se` follow where there is a scale of report. Without forms, as in an adaptive test, the table
        has no rows.
        """
        self._tell("tables of scores")
        test = Form(self.calibration.thresholds, self._layout)
        forms = self.forms()
        columns_of_scores = score_columns(test, forms, self.abilities(), self.weights)
        codes = self.calibration.code_columns(forms.items)
        columns: Columns = {}
        for name, values in columns_of_scores.items():
            columns[name] = values
            if name == "score":
                columns |= codes
            elif name == "se":
                columns |= self._from_0_to_100(columns_of_scores["ability"])
        return with_measures(columns, "ability", self.calibration.scale)

    def _code_findings(self) -> tuple[Finding, ...]:
        """What is odd about the raw scores as coded, of the form that most items are on."""
        forms = self.forms().items
        calibration = self.calibration
        if not forms or not calibration.has_codes:
            return ()
        items = max(forms, key=len)
        codes_high = None
        if calibration.codes_high is not None:
            codes_high = calibration.codes_high[items]
        max_score = calibration.layout.max_score[items]
        return code_findings(
            calibration.labels[items], calibration.codes[items], max_score, codes_high, self.responses.answer_labels
        )

    def equate(self, first: str | Sequence[Any], second: str | Sequence[Any]) -> Equating:
        """Raw scores on one form, and what they are on another of the same analysis; see `inference.scores.equating`.

        A form is named as in `scores()` ("form 1", or as the column of `form=` has it), or given by the labels of its
        items, each once and with a difficulty. Two calibrations: `si.equate`.

        Parameters
        ----------
        first, second : str or labels
            The two forms.
        """
        calibration = self.calibration
        layout = self._layout
        items_a = self._items_of_form(first)
        items_b = self._items_of_form(second)
        errors, _ = errors_of_thresholds(
            calibration.thresholds, calibration.threshold_se, self.threshold_covariance(), layout, calibration.se
        )
        return equate_forms(
            calibration.thresholds,
            errors,
            layout.of_items(items_a),
            layout.of_items(items_b),
            names=(_name_of_form(first, "A"), _name_of_form(second, "B")),
            frame_kind=self.responses.frame_kind,
            counts=(layout.max_score[items_a], layout.max_score[items_b]),
        )

    def _items_of_form(self, form: str | Sequence[Any]) -> Ints:
        """Positions of the items of a form, by its name or their labels."""
        if isinstance(form, str):
            forms = self.forms()
            return forms.items[forms.position(form)]
        return self.calibration.form_positions(form)

    def threshold_covariance(self) -> Floats | None:
        """Covariance of the thresholds where the calibration or its estimator kept it; None otherwise.

        Of clusters of people where these were asked for.
        """
        if self._clustered is not None:
            return self._clustered.covariance
        if self.calibration.threshold_covariance is not None:
            return self.calibration.threshold_covariance
        covariance: Floats | None = getattr(self._estimator, "covariance_", None)
        return covariance

    def location_covariance(self) -> Floats | None:
        """Covariance of the difficulties, the means of the items' thresholds, where that of these is known."""
        covariance = self.threshold_covariance()
        if covariance is None:
            return None
        return location_covariance(self._layout, covariance)

    def rescale(self, mean: float, sd: float, *, by: str = "persons") -> Self:
        """The same analysis, reported on a scale: a + b x logit.

        An analysis whose anchors carry a scale keeps that one; asking for another is an error.

        Parameters
        ----------
        mean, sd : float
            Two numbers, whose meaning is that of `by`.
        by : "persons", "items" or "formula"
            "persons": the mean and standard deviation of these persons, such as 500 and 100. "items": the mean of the
            items (their difficulties) and the units per logit, Winsteps' UIMEAN and USCALE. "formula": a and b.
        """
        check_option("by", by, SCALES_BY)
        if not (np.isfinite(mean) and np.isfinite(sd) and sd > 0):
            raise OptionError(f"a scale is a number and one above zero, not {mean:g} and {sd:g}.")
        scale = self._scale_by(by, float(mean), float(sd))
        inherited = self.calibration.scale
        anchored = bool(self.calibration.anchored.any())
        if anchored and not inherited.is_logits:
            if not inherited.agrees_with(scale):
                raise OptionError(
                    f"the anchors carry the scale {inherited.formula}, and {SCALES_BY[by].format(mean, sd)} would be "
                    f"{scale.formula}. Leave out the scale, and results are reported on that of the anchors."
                )
            return self
        other = copy.copy(self)  # what is kept is in logits, and holds for both
        other.calibration = self.calibration.replace(scale=scale)
        other._asked_scale = {"by": by}
        if by == "persons":
            other._asked_scale = {"people_mean": mean, "people_sd": sd}
        return other

    def _scale_by(self, by: str, mean: float, sd: float) -> Scale:
        """The formula of a scale that was asked for by persons, items or formula."""
        if by == "formula":
            return Scale(mean, sd)
        if by == "items":
            items = self.calibration.own_items
            return Scale(mean - sd * float(items.difficulty[items.known].mean()), sd)
        estimates = self.abilities()
        has_ability = np.isfinite(estimates.ability)
        weights = self._weights_of(has_ability)
        center = spread = 0.0
        if has_ability.any():
            ability = estimates.ability[has_ability]
            center = float(np.average(ability, weights=weights))
            spread = float(np.sqrt(np.average((ability - center) ** 2, weights=weights)))
        if self.ability == "pv" and estimates.prior is not None:  # as much as plausible values differ
            center, spread = estimates.prior
        if spread == 0:
            raise OptionError(f"the people do not differ in ability, so that none can have the scale {mean:g},{sd:g}.")
        unit = sd / spread
        return Scale(mean - unit * center, unit)

    @as_table
    def group_means(self, groups: Any) -> Columns:
        """Mean ability of every group as a table.

        `grouping, group, n, mean, se, sd, latent_mean, latent_se, latent_sd`: the abilities of these people, and the
        population that they are from, without errors of measurement; `difference, difference_se, difference_p` from
        the first group, and `equal_means_p`: Welch's tests; see `inference.groups.grouping.group_columns`.

        `groups` is the name of a column about the people (or several), or has a label for each person, in their order,
        or maps persons to labels; a dictionary of several such has the names of the groupings as keys. With a scale of
        report, `measure_mean`, `measure_se`, `measure_sd` and others follow. Of a fit with weights, people
        count by theirs.
        """
        values = [""]
        if isinstance(groups, Mapping):
            values = list(groups.values())  # labels of people, or of groupings
        several = bool(values) and all(hasattr(value, "__len__") and not isinstance(value, str) for value in values)
        named = groups
        if isinstance(groups, str):
            named = {groups: self._labels(groups)}
        elif not several:
            named = {"group": groups}
        tables = [self._group_means(name, labels) for name, labels in named.items()]
        scale = self.calibration.scale
        columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
        if scale.is_logits:
            return columns
        distances = ("se", "sd", "latent_sd", "difference", "difference_se")
        widths = {f"measure_{name}": scale.width(columns[name]) for name in distances}
        return {**columns, "measure_mean": scale.measure(columns["mean"]), **widths}

    @once
    def _group_means(self, name: str, labels: Any) -> Columns:
        self._tell("mean abilities of groups")
        beta = self.calibration.thresholds
        columns = group_columns(self.responses, beta, self.abilities("wle"), labels, name, self.sampling)
        subset = self._subset()
        if subset is None:
            return columns
        return without_tests_across_subsets(columns, by_label(self.responses, labels), subset)

    @as_table
    def cuts(self, cuts: Sequence[float], *, raw: bool | Literal["codes"] = False) -> Columns:
        """People in classes: how many are in each, with accuracy and consistency, as a table.

        `class, cut, ability, se, n, share, accuracy, consistency, too_high, too_low, form, score`; see
        `inference.scores.cut_scores.cut_columns`. Rows without a `form` are of everybody; where there are several
        forms, rows of each follow. `score` is the lowest raw score on the form that is in the class, for a person who
        answered the whole form.

        Parameters
        ----------
        cuts : sequence of numbers
            On the scale of report (logits where there is none). A person at the cut is above it.
        raw : bool or "codes"
            The cuts are raw scores on the whole test, each standing for the ability that `scores()` gives it; "codes":
            sums of the responses as coded, `code_sum` there.
        """
        test = Form(self.calibration.thresholds, self._layout)
        scale = self.calibration.scale
        if raw:
            sums = None
            if raw == "codes":
                sums = self.calibration.code_sums
            limits = raw_cuts(cuts, test, self.forms(), self.abilities(), sums)
        else:
            limits = scale_cuts(cuts, test, scale)
        tables = self._classes(limits.logits)
        columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
        named = np.tile(np.concatenate([[np.nan], limits.values, [np.nan]]), len(tables))
        columns = {"class": columns["class"], "cut": named, **columns}
        if scale.is_logits:
            return columns
        return {**columns, "measure_se": scale.width(columns["se"])}

    @once
    def _classes(self, at: Floats) -> list[Columns]:
        """The classes of everybody, and where there are several forms those on each."""
        self._tell("classes of people")
        test = Form(self.calibration.thresholds, self._layout)
        forms = self.forms()
        estimates = self.abilities()
        population = self._population()
        everybody = cut_columns(test, self.responses, at, estimates, forms, population, self.weights)
        scores = None
        if len(forms.items) == 1:
            scores = lowest_scores(test.take(forms.items[0]), at, estimates)
        tables = [_on_form(everybody, "", scores)]
        if len(forms.items) > 1:
            for number, items in enumerate(forms.items):
                members = self._given_form(items)
                one_form = replace(
                    forms,
                    items=(items,),
                    names=forms.names[number : number + 1],
                    form=np.where(forms.form[members] == number, 0, -1),
                )
                weights = self._weights_of(members)
                people = self.responses.take_persons(members)
                classes = cut_columns(test, people, at, estimates.take(members), one_form, population, weights)
                tables.append(_on_form(classes, forms.names[number], lowest_scores(test.take(items), at, estimates)))
        return tables

    def _given_form(self, items: Ints) -> Ints:
        """The people who were given a form with these items, also those who left out some of them."""
        booklets = self._booklets()
        estimated = np.flatnonzero(self.calibration.known)
        same = [
            k
            for k, items_of_booklet in enumerate(booklets.items)
            if np.array_equal(np.intersect1d(items_of_booklet, estimated), items)
        ]
        return np.flatnonzero(np.isin(booklets.form, same))

    def _population(self) -> tuple[float, float] | None:
        """Mean and standard deviation of the population, given or estimated."""
        if self.population is not None:
            return self.population
        marginal = self._marginal()
        if marginal is None:
            return None
        return marginal.mean, marginal.sd

    def _people_tables(self, parts: Parts, every: bool) -> dict[str, Columns]:
        """The tables about people that go to files, by name; one without rows is left out."""
        tables = {"persons": columns_of(self.persons, draws=parts.draws, seed=parts.seed, given=parts.groups or None)}
        if self.facets:
            tables["persons"]["fair_average"] = fair_average(self.calibration, tables["persons"]["ability"])
            subset = self._subset()
            if subset is None:
                subset = (self.responses.counts > 0).astype(np.int64)
            tables["persons"]["subset"] = subset
        elif parts.scores:  # what a score means depends on who rated
            tables["scores"] = columns_of(self.scores)
            forms = self.forms()
            if every and not (len(forms.items) == 1 and len(forms.items[0]) == int(self.calibration.known.sum())):
                tables["forms"] = form_columns(forms, self.calibration.labels, self.calibration.difficulty)
        if parts.scores and every:
            tables["unexpected"] = self._unexpected()
            if not self.facets and self.responses.n_persons * self.responses.n_items <= MOST_CELLS:
                tables["guttman"] = self._guttman_columns()
        if parts.described:
            tables["groups"] = columns_of(self.group_means, parts.described)
        if parts.cuts:
            tables["cuts"] = columns_of(self.cuts, parts.cuts, raw=parts.cut_raw)
        for name in list(tables)[1:]:
            if not len(next(iter(tables[name].values()))):
                del tables[name]
        return tables


def _name_of_form(form: str | Sequence[Any], by_default: str) -> str:
    if isinstance(form, str):
        return form
    return by_default


def _on_form(classes: Columns, name: str, scores: Floats | None) -> Columns:
    """Classes of people with the name of their form, and the lowest raw score of each class on it."""
    rows = len(classes["class"])
    lowest = np.full(rows, np.nan)
    if scores is not None:
        lowest = np.append(scores, np.nan)
    return {**classes, "form": np.full(rows, name, dtype=object), "score": lowest}


def with_measures(columns: Columns, name: str, scale: Scale) -> Columns:
    """The columns with what is reported on another scale after them; logits stay."""
    if scale.is_logits:
        return columns
    measures = {"measure": scale.measure(columns[name])}
    if "se" in columns:
        measures["measure_se"] = scale.width(columns["se"])
    drawn = {f"measure_{pv}": scale.measure(values) for pv, values in columns.items() if pv[:2] == "pv"}
    return {**columns, **measures, **drawn}
