"""What every analysis says about people in the same words, of right and wrong answers or of ordered ones.

The inference below asks its questions of either kind; the parameters of the items are
`calibration.thresholds`, which of right and wrong answers are the difficulties.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.analysis.assembled import group_table, with_measures
from spectral_irt.data.block import Floats, Ints
from spectral_irt.inference.groups.means import group_columns
from spectral_irt.inference.ranks.people import person_ranks
from spectral_irt.inference.scores.reliability import Marginal, marginal_reliability
from spectral_irt.persons.abilities import FEW_ANSWERS, Abilities, abilities, both_likelihoods
from spectral_irt.persons.plausible import PlausibleValues, Seed, plausible_values
from spectral_irt.persons.residuals import MeanSquares, residual_columns
from spectral_irt.persons.score_tables import person_columns
from spectral_irt.persons.unexpected import EACH, MOST, people_at, unexpected_columns
from spectral_irt.tables import Columns, make_table

if TYPE_CHECKING:
    from spectral_irt.analysis.parts import Parts

Tell = Callable[[str], None]


class SharedPeople:
    """A calibration and responses together; everything is computed once."""

    calibration: Any
    responses: Any
    ability: str
    population: tuple[float, float] | None
    tell: Tell

    def _begin(
        self,
        calibration: Any,
        responses: Any,
        ability: str,
        population: tuple[float, float] | None,
        progress: Tell | None,
    ) -> None:
        self.calibration, self.responses = calibration, responses
        self.ability, self.population = ability, population
        self.tell = progress or (lambda text: None)
        self.weights: Floats | None = None
        self._known: dict[Hashable, Any] = {}
        self._lock = threading.RLock()

    def _once(self, key: Hashable, compute: Callable[[], Any], say: str = "") -> Any:
        """What was computed under this key, or is now."""
        with self._lock:
            if key not in self._known:
                if say:
                    self.tell(say)
                self._known[key] = compute()
            return self._known[key]

    def _table(self, columns: Columns) -> Any:
        return make_table(columns, self.responses.frame_kind)

    def _estimate(self, method: str | None) -> str:
        """The one estimate for each person that goes with a method: the posterior mean with plausible values."""
        method = method or self.ability
        return "eap" if method == "pv" else method

    def _most(self) -> Ints | None:
        """The highest score that each person could have; None where that is the number of answers."""
        return None

    def abilities(self, method: str | None = None) -> Abilities:
        """The ability of every person as arrays; see `persons` for a table. Plausible values go with "eap"."""
        method, beta = self._estimate(method), self.calibration.thresholds
        if method in ("wle", "ml") and self.responses.n_responses > FEW_ANSWERS:
            both = self._once("likelihoods", lambda: both_likelihoods(self.responses, beta), say="abilities")
            return both[method]
        mean, sd = (method == "eap" and self.population) or (None, None)
        return self._once(
            ("abilities", method),
            lambda: abilities(self.responses, beta, method, prior_mean=mean, prior_sd=sd),
            say=f"abilities ({method})",
        )

    def person_fit(self, method: str | None = None) -> MeanSquares:
        """Infit and outfit of every person as arrays, at the reported abilities."""
        raise NotImplementedError

    def plausible_values(self, draws: int = 5, *, seed: Seed = 0, given: Any = None) -> PlausibleValues:
        """Draws from the posterior of every person as arrays; see `persons.plausible.plausible_values`."""
        prior = self.population if given is not None else self.abilities("eap").prior
        how: dict[str, Any] = {"draws": draws, "seed": seed, "prior": prior, "given": given}
        return plausible_values(self.responses, self.calibration.thresholds, **how)

    # ------------------------------------------------------------------------------------------ people

    def persons(self, method: str | None = None, *, draws: int = 5, seed: Seed = 0, given: Any = None) -> Any:
        """The persons as a table: `person, n, score, ability, se, extreme, infit, outfit, infit_z, outfit_z`.

        `n` answers to items with an estimate; `score` of them right, or the sum of the categories answered, then of at
        most `max_score`. `extreme`: the lowest or the highest score; the ability is then infinite under "ml", and
        finite but mostly the method's under the others. `infit` and `outfit` are mean squares at the reported ability
        (1 = as the model expects, above: erratic, below: too regular), missing for extreme scores. `measure` and
        `measure_se` follow where there is a scale of report.

        Parameters
        ----------
        method : "wle", "ml", "eap" or "pv", optional
            Warm's weighted likelihood, maximum likelihood, or the mean under a normal prior; by default that of the
            analysis. "pv": plausible values too, `pv1, pv2, ...`, drawn from the posterior whose mean is `ability`.
        draws, seed, given
            Of "pv": how many values for each person, the seed, and what they will be related to (groups, numbers); see
            `persons.plausible.plausible_values`.
        """
        return self._table(self.person_columns(method, draws=draws, seed=seed, given=given))

    def person_columns(
        self, method: str | None = None, *, draws: int = 5, seed: Seed = 0, given: Any = None
    ) -> Columns:
        """The columns of `persons`."""
        columns = person_columns(self.responses, self.abilities(method), self.person_fit(method), self._most())
        if (method or self.ability) == "pv":
            columns |= self.plausible_values(draws, seed=seed, given=given).columns()
        return with_measures(columns, "ability", self.calibration.scale)

    def person_ranking(self, method: str | None = None, *, seed: int = 0) -> Any:
        """The persons from the ablest down, with intervals of ability and rank, as a table.

        The columns of `persons` with `ci_low, ci_high, rank, rank_low, rank_high`; see
        `inference.person_ranks.person_ranks`. For a few people who answered many items, such as language models.
        """
        return self._table(self.person_ranking_columns(method, seed=seed))

    def person_ranking_columns(self, method: str | None = None, *, seed: int = 0) -> Columns:
        """The columns of `person_ranking`."""
        found = self.abilities(method)
        ranks = self._once(
            ("ranks", self._estimate(method), seed), partial(person_ranks, found.ability, found.se, seed=seed)
        )
        columns = {**self.person_columns(self._estimate(method)), **ranks}
        order = np.lexsort((ranks["rank"], ranks["rank"] == 0))
        return {name: values[order] for name, values in columns.items()}

    def marginal(self) -> Marginal | None:
        """The normal population of these people, by marginal maximum likelihood; None where too few people differ."""
        return self._once(
            "eap", lambda: marginal_reliability(self.responses, self.calibration.thresholds, self.weights)
        )

    def _people_from(self) -> tuple[float, float] | None:
        """Mean and standard deviation of the population, given or estimated."""
        if self.population is not None:
            return self.population
        found = self.marginal()
        return None if found is None else (found.mean, found.sd)

    # -------------------------------------------------------------------------------------- single answers

    def residuals(self) -> Any:
        """Every answer as a table: `person, item, response, expected, residual, z`, at the abilities of the analysis.

        For small data: a row for each answer.
        """
        return self._table(residual_columns(self.responses, self.calibration.thresholds, self.abilities().ability))

    def unexpected_answers(
        self, people: Sequence[Any] | None = None, *, per_person: int = EACH, limit: int = MOST
    ) -> Any:
        """The most surprising answers as a table: `person, misfit_z, item, response, expected, z, ability, difficulty`.

        Of ordered answers `expected` is the mean answer that the model expects, `difficulty` the item's location.

        Parameters
        ----------
        people : sequence of labels, optional
            Whose answers; by default of people whose infit or outfit, standardized, is above 2, the worst first.
        per_person, limit : int
            So many answers of each person, and of all; see `persons.unexpected.unexpected_columns`.
        """
        place = None if people is None else people_at(self.responses, people)
        return self._table(self.unexpected_columns(place, per_person=per_person, limit=limit))

    def unexpected_columns(self, people: Any = None, *, per_person: int = EACH, limit: int = MOST) -> Columns:
        """The columns of `unexpected_answers`, of people at these positions."""
        found, fits = self.abilities(), self.person_fit()
        how: dict[str, Any] = {"people": people, "per_person": per_person, "limit": limit}
        return unexpected_columns(self.responses, self.calibration.thresholds, found, fits, **how)

    # -------------------------------------------------------------------------------------------- groups

    def group_means(self, groups: Any) -> Any:
        """Mean ability of every group as a table.

        `grouping, group, n, mean, se, sd, latent_mean, latent_se, latent_sd`: the abilities of these people, and the
        population that they are from, without errors of measurement; see `inference.group_means.group_columns`.

        `groups` has a label for each person, in their order, or maps persons to labels; a dictionary of several such
        has the names of the groupings as keys. With a scale of report, `measure_mean`, `measure_se`, `measure_sd` and
        `measure_latent_sd` follow. Of a fit with weights, people count by theirs.
        """
        several = isinstance(groups, Mapping) and bool(groups) and all(_is_labels(value) for value in groups.values())
        return self._table(self.group_columns(groups if several else {"group": groups}))

    def group_columns(self, groupings: Mapping[str, Any]) -> Columns:
        """The columns of `group_means`, of groupings by name."""
        found, beta = self.abilities("wle"), self.calibration.thresholds
        tables = [
            group_columns(self.responses, beta, found, labels, name, self.weights) for name, labels in groupings.items()
        ]
        return group_table(tables, self.calibration.scale)

    def described(self, parts: Parts) -> Columns:
        """`group_columns` of the groupings of the parts."""
        key = ("described", tuple(parts.described), self.calibration.scale)
        return self._once(key, lambda: self.group_columns(parts.described), say="means of groups")


def _is_labels(value: Any) -> bool:
    """Whether this has a label for each person, rather than being one."""
    return isinstance(value, Mapping | Sequence | np.ndarray) and not isinstance(value, str | bytes)
