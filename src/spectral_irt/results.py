"""What a fitted estimator can tell beyond its items: a method for each question, with the function that answers it.

The functions are in rooms below the estimators and know them, not the other way round; so each is imported when it is
asked for. They take the same parameters, and their docstrings say what these mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from spectral_irt.bank.bank import Bank
    from spectral_irt.estimators.base import RaschEstimator
    from spectral_irt.inference.dependence import LocalDependence
    from spectral_irt.inference.differential import Differential
    from spectral_irt.inference.reliability import Reliability
    from spectral_irt.inference.wald import WaldTest


class Results:
    """The methods of every estimator that are about people, fit, groups, ranks and banks."""

    # ------------------------------------------------------------------------------------------ people

    def persons(
        self,
        responses: Any = None,
        method: str = "wle",
        *,
        prior_mean: float | None = None,
        prior_sd: float | None = None,
        ignore_unknown: bool = False,
    ) -> Any:
        """Abilities with standard errors and fit, a row for each person; see `spectral_irt.persons.table.persons`."""
        from spectral_irt.persons.table import persons

        prior = {"prior_mean": prior_mean, "prior_sd": prior_sd}
        return persons(_fit(self), responses, method, **prior, ignore_unknown=ignore_unknown)

    def score_table(self, items: Sequence[Any] | None = None) -> Any:
        """From raw score to ability on a form; see `spectral_irt.persons.table.score_table`."""
        from spectral_irt.persons.table import score_table

        return score_table(_fit(self), items)

    def reliability(
        self,
        responses: Any = None,
        method: str = "wle",
        *,
        prior_mean: float | None = None,
        prior_sd: float | None = None,
        ignore_unknown: bool = False,
    ) -> Reliability:
        """Separation and reliability of persons and items; see `spectral_irt.reliability`."""
        from spectral_irt.inference.reliability import reliability

        return reliability(
            _fit(self), responses, method, prior_mean=prior_mean, prior_sd=prior_sd, ignore_unknown=ignore_unknown
        )

    def test_information(self, theta: ArrayLike | None = None, items: Sequence[Any] | None = None) -> Any:
        """The test information function; see `spectral_irt.inference.reliability.test_information`."""
        from spectral_irt.inference.reliability import test_information

        return test_information(_fit(self), theta, items)

    # --------------------------------------------------------------------------------------------- fit

    def item_fit(
        self,
        responses: Any = None,
        *,
        conditional: bool = True,
        bootstrap: int = 0,
        level: float = 0.05,
        sample: int | None = None,
        seed: int = 0,
        ignore_unknown: bool = False,
    ) -> Any:
        """The fit of every item as a table; see `spectral_irt.item_fit`."""
        from spectral_irt.inference.item_fit import item_fit

        return item_fit(
            _fit(self),
            responses,
            conditional=conditional,
            bootstrap=bootstrap,
            level=level,
            sample=sample,
            seed=seed,
            ignore_unknown=ignore_unknown,
        )

    def item_restscore(
        self, responses: Any = None, *, sample: int | None = None, seed: int = 0, ignore_unknown: bool = False
    ) -> Any:
        """Observed and expected item-restscore gamma; see `spectral_irt.item_restscore`."""
        from spectral_irt.inference.restscore import item_restscore

        return item_restscore(_fit(self), responses, sample=sample, seed=seed, ignore_unknown=ignore_unknown)

    def local_dependence(
        self,
        responses: Any = None,
        *,
        bootstrap: int = 0,
        level: float = 0.05,
        min_users: int = 30,
        top: int | None = None,
        n_components: int = 5,
        sample: int | None = None,
        seed: int = 0,
        ignore_unknown: bool = False,
    ) -> LocalDependence:
        """Yen's Q3 and components of residuals; see `spectral_irt.inference.dependence.local_dependence`."""
        from spectral_irt.inference.dependence import local_dependence

        return local_dependence(
            _fit(self),
            responses,
            bootstrap=bootstrap,
            level=level,
            min_users=min_users,
            top=top,
            n_components=n_components,
            sample=sample,
            seed=seed,
            ignore_unknown=ignore_unknown,
        )

    def score_split(self, responses: Any, split: Any = "ability") -> WaldTest:
        """Are items as hard for the more able as for the less able? See `spectral_irt.inference.wald.score_split`."""
        from spectral_irt.inference.wald import score_split

        return score_split(_fit(self), responses, split)

    def dif(
        self,
        responses: Any,
        groups: Any,
        *,
        reference: Any = None,
        anchors: str | Iterable[Any] = "all",
        min_users: int = 30,
        level: float = 0.05,
    ) -> Differential:
        """Which items are harder for one group than for another; see `spectral_irt.differential`."""
        from spectral_irt.inference.differential import differential

        return differential(
            _fit(self), responses, groups, reference=reference, anchors=anchors, min_users=min_users, level=level
        )

    # ----------------------------------------------------------------------------------- ranks and banks

    def ranking(self, by: str = "lower", top: int = 10, *, seed: int = 0) -> Any:
        """The items by rank, and how sure that is; see `spectral_irt.inference.ranking.ranking`."""
        from spectral_irt.inference.ranking import ranking

        return ranking(_fit(self), by, top, seed=seed)

    def to_bank(self, responses: Any, salt: Any = None) -> Bank:
        """The bank of this calibration; `responses` are what it was fitted to."""
        from spectral_irt.bank.bank import to_bank

        return to_bank(_fit(self), responses, salt)


def _fit(self: Results) -> RaschEstimator:
    return cast("RaschEstimator", self)
