"""What an analysis says about people; and how everything in it is computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spectral_irt.analysis.shared_people import SharedPeople, Tell
from spectral_irt.calibration import Calibration
from spectral_irt.errors import OptionError
from spectral_irt.inference.cuts import RightOrWrongPeople
from spectral_irt.ordered_calibration import OrderedCalibration
from spectral_irt.persons.abilities import FEW_ANSWERS, Abilities, abilities, both_likelihoods
from spectral_irt.persons.align import align
from spectral_irt.persons.forms import Forms, find_forms
from spectral_irt.persons.plausible import PlausibleValues, Seed, plausible_values
from spectral_irt.persons.residuals import MeanSquares, person_mean_squares
from spectral_irt.persons.taken import RightOrWrong
from spectral_irt.responses import as_responses
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from spectral_irt.estimators.base import RaschEstimator


class OfPeople(SharedPeople):
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
        given = as_responses(responses, threshold=calibration.provenance.settings.get("threshold"))
        aligned = align(calibration.labels, given, ignore_unknown)
        self._begin(calibration, aligned, ability, population, progress)
        self._estimator = estimator

    def __repr__(self) -> str:
        r = self.responses
        return f"<Analysis: {r.n_users:,} people, {r.n_items:,} items, {r.n_responses:,} responses>"

    # ------------------------------------------------------------------------------------------ people

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

    def forms(self) -> Forms:
        """Sets of items that many people answered, such as booklets; see `persons.forms.find_forms`."""
        return self._once("forms", lambda: find_forms(self.responses, self.calibration.difficulty))

    def taken(self) -> RightOrWrong:
        """The test: what its raw scores say."""
        return RightOrWrong(self.calibration.difficulty)

    def _others(self) -> RightOrWrongPeople:
        return RightOrWrongPeople(self.responses, self.calibration.difficulty)

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
