"""What an analysis says about people; and how everything in it is computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.analysis.shared_people import SharedPeople, Tell
from spectral_irt.calibration import Calibration
from spectral_irt.data import as_responses
from spectral_irt.errors import OptionError
from spectral_irt.persons.align import align
from spectral_irt.persons.residuals import MeanSquares, person_mean_squares
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
        if not calibration.layout.binary:
            raise OptionError(
                "these items have several thresholds; OrderedAnalysis, or the estimator's analyse(), is for them."
            )
        given = as_responses(responses, threshold=calibration.provenance.settings.get("threshold"))
        aligned = align(calibration.labels, given, ignore_unknown)
        self._begin(calibration, aligned, ability, population, progress)
        self._estimator = estimator
        persons, weights = getattr(estimator, "weighted_", None) or (None, None)
        self.weights = weights if persons is not None and np.array_equal(persons, aligned.persons) else None

    def __repr__(self) -> str:
        r = self.responses
        return f"<Analysis: {r.n_persons:,} people, {r.n_items:,} items, {r.n_responses:,} responses>"

    # ------------------------------------------------------------------------------------------ people

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
