"""What an analysis of ordered answers says about people; and how everything in it is computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spectral_irt.analysis.shared_people import SharedPeople
from spectral_irt.calibration import Calibration
from spectral_irt.data import as_responses
from spectral_irt.data.block import Ints
from spectral_irt.data.responses import Responses
from spectral_irt.errors import OptionError
from spectral_irt.inference.items.classical import cronbach_alpha
from spectral_irt.inference.scores.reliability import Reliability, Separation, reliability, separation
from spectral_irt.persons.abilities import Persons
from spectral_irt.persons.align import Coded, align_categories
from spectral_irt.persons.residuals import MeanSquares, person_mean_squares


class OfOrderedPeople(SharedPeople):
    """A calibration and ordered answers together: abilities, reliability. See `OrderedAnalysis`."""

    def __init__(
        self,
        calibration: Calibration,
        responses: Any,
        *,
        ability: str = "wle",
        population: tuple[float, float] | None = None,
        ignore_unknown: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        if not isinstance(responses, Responses):
            responses = as_responses(responses, ordered=True, unused="keep")
        aligned = align_categories(Coded.of(calibration), responses, ignore_unknown)
        self._begin(calibration, aligned, ability, population, progress)

    def __repr__(self) -> str:
        r = self.responses
        categories = r.thresholds.widest + 1
        return (
            f"<OrderedAnalysis: {r.n_persons:,} people, {r.n_items:,} items, {r.n_responses:,} responses in up to "
            f"{categories} categories>"
        )

    def __getattr__(self, name: str) -> Any:
        from spectral_irt.analysis.analysis import Analysis

        if not name.startswith("_") and (hasattr(Analysis, name)):
            raise OptionError(
                f"{name} is for right and wrong answers, and these have up to {self.responses.thresholds.widest + 1} "
                "categories; it is not computed for them."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def people(self) -> Persons:
        """Who has the same items and score: abilities are found once for them."""
        return self._once("people", lambda: Persons.of(self.responses, self.calibration.thresholds))

    # ------------------------------------------------------------------------------------------ people

    def person_fit(self, method: str | None = None) -> MeanSquares:
        """Infit and outfit of every person as arrays, at the reported abilities."""
        method = self._estimate(method)
        found = self.abilities(method)
        return self._once(
            ("person_fit", method),
            lambda: person_mean_squares(self.responses, self.calibration.thresholds, found.ability),
        )

    def _most(self) -> Ints:
        return self.people.patterns.rows.most[self.people.patterns.of_person]

    def score_table(self, items: Any = None) -> Any:
        """From total score to ability; see `Calibration.score_table`."""
        return self.calibration.score_table(items)

    # ------------------------------------------------------------------------------------- reliability

    def alpha(self) -> float:
        """Cronbach's alpha, over the people who answered everything; NaN where nobody did."""
        found = self._once("alpha", lambda: cronbach_alpha(self.people.responses))
        return float("nan") if found is None else float(found)

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
