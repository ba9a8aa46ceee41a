"""What an analysis says about people; and how everything in it is computed once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.analysis.assembled import with_measures
from spectral_irt.calibration import Calibration
from spectral_irt.errors import OptionError
from spectral_irt.inference.person_ranks import person_ranks
from spectral_irt.ordered_calibration import OrderedCalibration
from spectral_irt.persons.abilities import FEW_ANSWERS, Abilities, abilities, both_likelihoods
from spectral_irt.persons.align import align
from spectral_irt.persons.plausible import PlausibleValues, Seed, plausible_values
from spectral_irt.persons.residuals import MeanSquares, person_mean_squares
from spectral_irt.persons.table import person_columns
from spectral_irt.responses import as_responses
from spectral_irt.tables import Columns, make_table

if TYPE_CHECKING:
    from spectral_irt.estimators.base import RaschEstimator

Tell = Callable[[str], None]


class OfPeople:
    """A calibration and responses together: abilities, plausible values, reliability. See `Analysis`."""

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
    ) -> None:
        if isinstance(calibration, OrderedCalibration):
            raise OptionError(
                "these items have several thresholds; OrderedAnalysis, or the estimator's analyse(), is for them."
            )
        self.calibration = calibration
        given = as_responses(responses, threshold=calibration.provenance.settings.get("threshold"))
        self.responses = align(calibration.labels, given, ignore_unknown)
        self.ability = ability
        self.population = population
        self.tell: Tell = progress or (lambda text: None)
        self._estimator = estimator
        self._known: dict[Hashable, Any] = {}
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        r = self.responses
        return f"<Analysis: {r.n_users:,} people, {r.n_items:,} items, {r.n_responses:,} responses>"

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

    # ------------------------------------------------------------------------------------------ people

    def _estimate(self, method: str | None) -> str:
        """The one estimate for each person that goes with a method: the posterior mean with plausible values."""
        method = method or self.ability
        return "eap" if method == "pv" else method

    def abilities(self, method: str | None = None) -> Abilities:
        """The ability of every person as arrays; see `persons` for a table. Plausible values go with "eap"."""
        method = self._estimate(method)
        prior: dict[str, Any] = {}
        if method == "eap" and self.population is not None:
            prior = dict(zip(("prior_mean", "prior_sd"), self.population, strict=True))
        if method != "eap" and self.responses.n_responses > FEW_ANSWERS:
            return self._once("likelihoods", self._both_likelihoods, say="abilities")[method]
        return self._once(
            ("abilities", method),
            lambda: abilities(self.responses, self.calibration.difficulty, method, **prior),
            say=f"abilities ({method})",
        )

    def _both_likelihoods(self) -> dict[str, Abilities]:
        return both_likelihoods(self.responses, self.calibration.difficulty)

    def populations(self) -> list[dict[str, Any]] | None:
        """Mean and standard deviation of ability in each group, where marginal likelihood estimated them."""
        table: Columns | None = getattr(self._estimator, "population_", None)
        if table is None:
            return None
        columns = {name: values.tolist() for name, values in table.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def person_fit(self, method: str | None = None) -> MeanSquares:
        """Infit and outfit of every person as arrays."""
        method = self._estimate(method)
        found = self.abilities(method)
        return self._once(
            ("person_fit", method),
            lambda: person_mean_squares(self.responses, self.calibration.difficulty, found.ability),
        )

    def plausible_values(self, draws: int = 5, *, seed: Seed = 0, given: Any = None) -> PlausibleValues:
        """Draws from the posterior of every person as arrays; see `persons.plausible.plausible_values`."""
        prior = self.population if given is not None else self.abilities("eap").prior
        how: dict[str, Any] = {"draws": draws, "seed": seed, "prior": prior, "given": given}
        return plausible_values(self.responses, self.calibration.difficulty, **how)

    def persons(self, method: str | None = None, *, draws: int = 5, seed: Seed = 0, given: Any = None) -> Any:
        """The persons as a table: `person, n, score, ability, se, extreme, infit, outfit, infit_z, outfit_z`.

        `n` answers to items with a difficulty, `score` of them right. `extreme`: everything right or everything wrong;
        the ability is then infinite under "ml", and finite but mostly the method's under the others. `infit` and
        `outfit` are mean squares at the reported ability (1 = as the model expects, above: erratic, below: too
        regular), missing for extreme scores. `measure` and `measure_se` follow where there is a scale of report.

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
        columns = person_columns(self.responses, self.abilities(method), self.person_fit(method))
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
