"""What an analysis of ordered answers says about people; and how everything in it is computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from spectral_irt.analysis.assembled import group_table, with_measures
from spectral_irt.errors import OptionError
from spectral_irt.inference.group_means import group_columns
from spectral_irt.inference.marginal_reliability import Marginal, marginal_reliability
from spectral_irt.inference.ordered_fit import cronbach_alpha, moments_at, person_mean_squares
from spectral_irt.inference.person_ranks import person_ranks
from spectral_irt.inference.reliability import Reliability, Separation, reliability, separation
from spectral_irt.ordered_calibration import OrderedCalibration
from spectral_irt.persons.abilities import Abilities
from spectral_irt.persons.ordered_people import OrderedPeople, align_ordered
from spectral_irt.persons.residuals import MeanSquares, residual_columns
from spectral_irt.persons.table import person_columns
from spectral_irt.persons.unexpected import EACH, MOST, people_at, unexpected_columns
from spectral_irt.responses.ordered import OrderedResponses
from spectral_irt.tables import Columns, make_table


class OfOrderedPeople:
    """A calibration and ordered answers together: abilities, reliability. See `OrderedAnalysis`."""

    def __init__(
        self,
        calibration: OrderedCalibration,
        responses: Any,
        *,
        ability: str = "wle",
        population: tuple[float, float] | None = None,
        ignore_unknown: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        if not isinstance(responses, OrderedResponses):
            from spectral_irt.estimators.ordered_base import as_ordered

            responses = as_ordered(responses, "keep")
        self.calibration = calibration
        self.responses = align_ordered(calibration, responses, ignore_unknown)
        self.ability, self.population = ability, population
        self.tell = progress or (lambda text: None)
        self._known: dict[Hashable, Any] = {}

    def __repr__(self) -> str:
        r = self.responses
        categories = r.steps.widest + 1
        return (
            f"<OrderedAnalysis: {r.n_users:,} people, {r.n_items:,} items, {r.n_responses:,} responses in up to "
            f"{categories} categories>"
        )

    def __getattr__(self, name: str) -> Any:
        from spectral_irt.analysis.analysis import Analysis

        if not name.startswith("_") and (hasattr(Analysis, name)):
            raise OptionError(
                f"{name} is for right and wrong answers, and these have up to {self.responses.steps.widest + 1} "
                "categories; it is not computed for them."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _once(self, key: Hashable, compute: Callable[[], Any], say: str = "") -> Any:
        if key not in self._known:
            if say:
                self.tell(say)
            self._known[key] = compute()
        return self._known[key]

    def _table(self, columns: Columns) -> Any:
        return make_table(columns, self.responses.frame_kind)

    @property
    def people(self) -> OrderedPeople:
        """Who has the same items and score: abilities are found once for them."""
        return self._once("people", lambda: OrderedPeople.of(self.calibration, self.responses))

    # ------------------------------------------------------------------------------------------ people

    def abilities(self, method: str | None = None) -> Abilities:
        """The ability of every person as arrays."""
        method = method or self.ability
        return self._once(
            ("abilities", method),
            lambda: self.people.abilities(method, self.population),
            say=f"abilities ({method})",
        )

    def person_fit(self, method: str | None = None) -> MeanSquares:
        """Infit and outfit of every person as arrays, at the reported abilities."""
        method = method or self.ability

        def compute() -> MeanSquares:
            patterns = self.people.patterns
            theta = np.full(len(patterns.count), np.nan)
            theta[patterns.of_person] = self.abilities(method).ability
            return person_mean_squares(self.people, moments_at(self.people, theta))

        return self._once(("person_fit", method), compute)

    def persons(self, method: str | None = None) -> Any:
        """The persons as a table: `person, n, score, most, ability, se, extreme, infit, outfit, infit_z, outfit_z`.

        `score` adds the categories answered, of at most `most`; `extreme`: it is 0 or `most`.
        """
        return self._table(self.person_columns(method))

    def person_columns(self, method: str | None = None) -> Columns:
        """The columns of `persons`."""
        rows, of = self.people.patterns.rows, self.people.patterns.of_person
        columns = person_columns(self.responses, self.abilities(method), self.person_fit(method), rows.most[of])
        return with_measures(columns, "ability", self.calibration.scale)

    def person_ranking(self, method: str | None = None, *, seed: int = 0) -> Any:
        """The persons from the ablest down, with intervals of ability and rank; see `Analysis.person_ranking`."""
        found = self.abilities(method)
        ranks = self._once(
            ("ranks", method or self.ability, seed), partial(person_ranks, found.ability, found.se, seed=seed)
        )
        columns = {**self.person_columns(method), **ranks}
        order = np.lexsort((ranks["rank"], ranks["rank"] == 0))
        return self._table({name: values[order] for name, values in columns.items()})

    def score_table(self, items: Any = None) -> Any:
        """From total score to ability; see `OrderedCalibration.score_table`."""
        return self.calibration.score_table(items)

    def residuals(self) -> Any:
        """Every answer as a table: `person, item, response, expected, residual, z`; see `Analysis.residuals`."""
        return self._table(residual_columns(self.responses, self.calibration.thresholds, self.abilities().ability))

    def unexpected_answers(
        self, people: Sequence[Any] | None = None, *, per_person: int = EACH, limit: int = MOST
    ) -> Any:
        """The most surprising answers as a table: `person, misfit_z, item, response, expected, z, ability, difficulty`.

        See `Analysis.unexpected_answers`; `expected` is the mean answer that the model expects, `difficulty` the
        item's location.
        """
        place = None if people is None else people_at(self.responses, people)
        return self._table(self.unexpected_columns(place, per_person=per_person, limit=limit))

    def unexpected_columns(self, people: Any = None, *, per_person: int = EACH, limit: int = MOST) -> Columns:
        """The columns of `unexpected_answers`, of people at these positions."""
        how: dict[str, Any] = {"people": people, "per_person": per_person, "limit": limit}
        thresholds = self.calibration.thresholds
        return unexpected_columns(self.responses, thresholds, self.abilities(), self.person_fit(), **how)

    def group_means(self, groups: Any, name: str = "group") -> Any:
        """Mean ability of every group as a table; see `Analysis.group_means`."""
        return self._table(self.group_columns({name: groups}))

    def group_columns(self, groupings: Any) -> Columns:
        """The columns of `group_means`, of groupings by name."""
        found, beta = self.abilities("wle"), self.calibration.thresholds
        tables = [group_columns(self.responses, beta, found, labels, name) for name, labels in groupings.items()]
        return group_table(tables, self.calibration.scale)

    # ------------------------------------------------------------------------------------- reliability

    def alpha(self) -> float:
        """Cronbach's alpha, over the people who answered everything; NaN where nobody did."""
        found = self._once("alpha", lambda: cronbach_alpha(self.people.responses))
        return float("nan") if found is None else float(found)

    def marginal(self) -> Marginal | None:
        """The normal population of these people, by marginal maximum likelihood; None where too few people differ."""
        return self._once("eap", lambda: marginal_reliability(self.responses, self.calibration.thresholds))

    def eap_reliability(self) -> float:
        """The share of the population's variance that the posterior means show; NaN where people do not differ."""
        found = self.marginal()
        return float("nan") if found is None else found.reliability

    def separation(self, method: str = "ml") -> Separation:
        """How far people differ beyond their errors; with "ml" the reliability is eRm's `SepRel`."""
        found = self.abilities(method)
        return separation(np.where(found.extreme, np.nan, found.ability), found.se)

    def reliability(self, method: str | None = None) -> Reliability:
        """EAP reliability, alpha, separation of persons and items: see `inference.reliability.reliability`."""
        method = method or self.ability
        return self._once(
            ("reliability", method),
            lambda: reliability(
                self.calibration,
                self.responses,
                self.abilities(method),
                ml=self.abilities("ml"),
                eap=self.marginal(),
                person_infit=self.person_fit(method).infit,
                item_infit=self.item_statistics().infit,
            ),
        )
