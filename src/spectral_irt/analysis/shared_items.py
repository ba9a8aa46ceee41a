"""What every analysis says about items in the same words, of right and wrong answers or of ordered ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from spectral_irt.analysis.checks import Checks, compared_halves, halves_are_quick, run_checks
from spectral_irt.analysis.parts import Parts, affordable
from spectral_irt.analysis.shared_people import SharedPeople
from spectral_irt.calibration import Scale
from spectral_irt.data.block import Floats
from spectral_irt.errors import OptionError
from spectral_irt.estimators.marginal import is_adaptive
from spectral_irt.inference.dimensions.q3 import MIN_PAIRED, LocalDependence, local_dependence
from spectral_irt.inference.fit.item_fit import LEVEL
from spectral_irt.inference.fit.mean_squares import ItemStatistics
from spectral_irt.inference.groups.dif import MIN_PEOPLE, Differential, differential
from spectral_irt.inference.ranks.items import ranking_columns
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from spectral_irt.bank.bank import Bank
    from spectral_irt.inference.groups.score_test import RaoTest


class SharedItems(SharedPeople):
    """Checks, groups, dependence and ranks of items."""

    def covariance(self) -> Floats | None:
        """Covariance of the difficulties where the calibration or its estimator kept it; None otherwise."""
        return None

    def parts(self, *, writing: bool = False, **wanted: Any) -> Parts:
        """What a summary or the files hold besides the items; `wanted` are fields of `Parts`."""
        return affordable(self.responses, writing=writing, adaptive=is_adaptive(self.calibration), **wanted)

    def item_fit_columns(self, *, bootstrap: int = 0, sample: int | None = None, seed: int = 0) -> Columns:
        """The columns of `item_fit`."""
        raise NotImplementedError

    def item_statistics(self) -> ItemStatistics:
        """Conventional fit statistics of every item as arrays, at maximum likelihood abilities."""
        raise NotImplementedError

    def infit_errors(self) -> Floats:
        """Standard error of the conditional infit of every item under the model."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------- tests

    def quick_model_test(self) -> RaoTest | None:
        """A score test of the same, without calibrating the halves; None with many items, or with too few data."""
        if not halves_are_quick(self.responses):
            return None
        return self._once("quick_model_test", lambda: compared_halves(self), say="less able against more able half")

    def checks(self, parts: Parts | None = None) -> Checks:
        """Does it fit? The items, the halves, dependence, dimensions and people, at 5% together; see `Checks`."""
        parts = parts or self.parts(fit=True)
        return self._once(("checks", parts.bootstrap, parts.sample), lambda: run_checks(self, parts))

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

        The parameters are those of `inference.differential.differential`; `groups` has a label for each person, in
        their order, or maps persons to labels. Of ordered answers `table()` goes by location, with the distances of an
        item's thresholds held, and `thresholds()` threshold by threshold.
        """
        options: dict[str, Any] = {"reference": reference, "anchors": anchors, "min_people": min_people, "level": level}
        return differential(self.calibration, self.responses, groups, nonuniform=nonuniform, **options)

    def grouped(self, parts: Parts) -> Mapping[str, Differential]:
        """The comparison of groups for every grouping of the parts."""
        return {
            name: self._once(("dif", name), partial(self.dif, labels), say=f"comparing groups by {name}")
            for name, labels in parts.groups.items()
        }

    def local_dependence(
        self,
        *,
        level: float = LEVEL,
        min_people: int = MIN_PAIRED,
        top: int | None = None,
        n_components: int = 5,
        sample: int | None = None,
        seed: int = 0,
    ) -> LocalDependence:
        """Yen's Q3 of pairs of items, and principal components of residuals, to report; `checks` decides.

        The parameters are those of `inference.dimensions.q3.local_dependence`.
        """
        how: dict[str, Any] = {"level": level, "min_people": min_people, "top": top}
        how |= {"n_components": n_components, "sample": sample, "seed": seed}
        return self._once(
            ("local_dependence", *how.values()),
            lambda: local_dependence(self.calibration, self.responses, **how),
        )

    # ------------------------------------------------------------------------------------------- ranks

    def ranking(self, by: str = "difficulty", top: int = 10, *, seed: int = 0) -> Any:
        """The items from the hardest down, with rank intervals and the chance of being among the `top` hardest.

        By the estimate to find the hardest items, `by="lower"` to recommend; see `inference.ranking.ranking_columns`.
        """
        return self._table(self.ranking_columns(by, top, seed=seed))

    def ranking_columns(self, by: str = "difficulty", top: int = 10, *, seed: int = 0) -> Columns:
        """The columns of `ranking`."""
        return self._once(
            ("ranking", by, top, seed),
            lambda: ranking_columns(self.calibration, self.covariance(), by, top, seed=seed),
            say="ranks",
        )

    # -------------------------------------------------------------------------------------------- scale

    def rescale(self, mean: float, sd: float) -> Self:
        """The same analysis, reported on a scale on which these people have this mean and standard deviation."""
        found = self.abilities()
        known = np.isfinite(found.ability)
        own = None if self.weights is None else self.weights[known]
        center = float(np.average(found.ability[known], weights=own)) if known.any() else 0.0
        spread = float(np.sqrt(np.average((found.ability[known] - center) ** 2, weights=own))) if known.any() else 0.0
        if self.ability == "pv" and found.prior is not None:  # as much as plausible values differ
            center, spread = found.prior
        if spread == 0:
            raise OptionError(f"the people do not differ in ability, so that none can have the scale {mean:g},{sd:g}.")
        unit = sd / spread
        other = object.__new__(type(self))
        scale = Scale(mean - unit * center, unit)
        other.__dict__ = {**self.__dict__, "calibration": self.calibration.replace(scale=scale)}
        return other

    def to_bank(self, salt: Any = None) -> Bank:
        """A bank of the calibration and of what these responses, which it was fitted to, tell for later updates.

        Parameters
        ----------
        salt : bytes or path, optional
            A secret by which the bank knows people again; see `bank.making.to_bank`.
        """
        from spectral_irt.bank.build import to_bank

        return to_bank(self.calibration, self.responses, salt)
