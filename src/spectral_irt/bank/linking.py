"""Two calibrations with items in common, brought to one scale, and the items that have drifted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, calibration_of
from spectral_irt.bank.linked_groups import on_scale
from spectral_irt.calibration import Calibration, Scale
from spectral_irt.errors import BankError, check_option, listed, option
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.responses import Finding
from spectral_irt.responses.block import Floats
from spectral_irt.responses.labels import positions
from spectral_irt.responses.responses import Labels
from spectral_irt.tables import make_table

METHODS = ("mean", "mean-sigma", "robust")
FEWEST = {"mean": 2, "mean-sigma": 3, "robust": 3}
DRIFT = 2.7  # robust z beyond which an item has drifted: 0.7% of the items that have not
IQR = 0.7413  # times the distance of the quartiles = the standard deviation of a normal sample


@dataclass(frozen=True, eq=False)
class Link:
    """How b's difficulties become a's: shift + slope * difficulty.

    Attributes
    ----------
    shift, slope : float
        The slope is 1 except for "mean-sigma".
    shift_se, slope_se : float
        From the standard errors of the items, as if the common items were the only ones that matter.
    link_error : float
        Standard error of the shift if the common items are a sample of those that could have been used: from how much
        they disagree (jackknife), drift and all.
    item, difficulty_a, difficulty_b, difference, se, z, robust_z, drift : arrays
        The common items: a's difficulty, b's on a's scale, b minus a, its standard error, their ratio, the ratio to
        the spread of all differences, and whether that is beyond 2.7.
    scale : Scale
        Of a.
    """

    method: str
    shift: float
    slope: float
    shift_se: float
    slope_se: float
    link_error: float
    item: Labels
    difficulty_a: Floats
    difficulty_b: Floats
    difference: Floats
    se: Floats
    z: Floats
    robust_z: Floats
    drift: NDArray[np.bool_]
    scale: Scale

    def columns(self) -> dict[str, NDArray[Any]]:
        """The common items, in logits of a."""
        names = ("item", "difficulty_a", "difficulty_b", "difference", "se", "z", "robust_z", "drift")
        return {name: getattr(self, name) for name in names}

    def table(self, frame_kind: str | None = None) -> Any:
        """The common items as a dataframe."""
        return make_table(self.columns(), frame_kind)

    @property
    def finding(self) -> Finding:
        """What the link is, in a sentence."""
        slope = "" if self.slope == 1 else f" and slope {self.slope:.3f} (se {self.slope_se:.3f})"
        sentence = (
            f"Linked over {len(self.item):,} common items ({self.method}): shift {self.shift:.3f} logits "
            f"(se {self.shift_se:.3f}){slope}."
        )
        drifted = self.item[self.drift]
        if not len(drifted):
            return Finding("linked", "note", sentence)
        verb = "has" if len(drifted) == 1 else "have"
        sentence += f" {len(drifted):,} of them {verb} drifted: {listed(drifted)}."
        robust = "Use " + option("method", "robust") + ", which leaves drifted items out of the shift."
        remedy = "" if self.method == "robust" else robust
        return Finding("linked", "warning", sentence, remedy, tuple(drifted.tolist()))

    def apply(self, bank: Bank | Calibration | RaschEstimator) -> Bank:
        """The bank b on a's scale. The uncertainty of the link is not added to the items' standard errors."""
        bank = _bank(bank)
        people = bank.population
        if people is not None:
            people = replace(people, mean=self.shift + self.slope * people.mean, sd=self.slope * people.sd)
        return replace(
            bank,
            difficulty=self.shift + self.slope * bank.difficulty,
            se=self.slope * bank.se,
            information=bank.information / self.slope**2,
            matrix=None if bank.matrix is None else bank.matrix / self.slope**2,
            level=self.shift + self.slope * bank.level,
            pull=bank.pull / self.slope,
            prior_precision=bank.prior_precision / self.slope**2,
            population=people,
            scale=self.scale,
            findings=(*bank.findings, self.finding),
        )


def link(
    a: Bank | Calibration | RaschEstimator, b: Bank | Calibration | RaschEstimator, method: str = "robust"
) -> Link:
    """Bring calibration b to the scale of calibration a by the items they share.

    Parameters
    ----------
    a, b : Bank or fitted estimator
    method : "robust", "mean" or "mean-sigma"
        "mean": the mean of the differences. "mean-sigma": also a slope, the ratio of the standard deviations; under the
        Rasch model it should be 1, and one that is not asks for an explanation. "robust" (default): items whose
        difference is far from the median are left out, then the mean.

    Notes
    -----
    Only items with the status "ok" or "anchored" on both sides count: others rest on a prior, or are on another scale.
    An item has drifted when its difference is more than 2.7 robust standard deviations from the median of all: the
    standard deviation is 0.74 times the distance of the quartiles, or the item's own standard error where that is
    larger, so that neither items that agree by luck nor items measured badly make others look bad.

    References
    ----------
    Huynh & Meyer (2010), Use of robust z in detecting unstable items in item response theory models, Practical
    Assessment, Research & Evaluation 15(2). Kolen & Brennan (2014), Test Equating, Scaling, and Linking, ch. 6.
    """
    check_option("method", method, METHODS)
    first, second = _Side.of(a), _Side.of(b)
    place = positions(second.items, first.items)
    shared = np.flatnonzero(place >= 0)
    if len(shared) < FEWEST[method]:
        raise BankError(
            f"the two calibrations share {len(shared):,} items{': ' if len(shared) else ''}"
            f"{listed(second.items[shared])}; ",
            option("method", method),
            f" needs at least {FEWEST[method]}. The first has {listed(first.items)}, the second "
            f"{listed(second.items)}. Check the labels.",
        )
    x, y = second.difficulty[shared], first.difficulty[place[shared]]
    var_x, var_y = second.se[shared] ** 2, first.se[place[shared]] ** 2
    slope = float(y.std(ddof=1) / x.std(ddof=1)) if method == "mean-sigma" else 1.0
    if not np.isfinite(slope) or slope == 0:
        raise BankError(
            "the common items do not differ in difficulty, so they give no slope; use ", option("method", "mean"), "."
        )

    raw = slope * x - y
    se = np.sqrt(slope**2 * var_x + var_y)
    robust = _robust_z(raw, se)
    drift = np.abs(robust) > DRIFT
    used = ~drift if method == "robust" else np.ones(len(raw), dtype=bool)
    shift = -float(raw[used].mean())
    shift_se, slope_se = _standard_errors(x[used], y[used], var_x[used], var_y[used], slope, method)
    difference = raw + shift
    with np.errstate(divide="ignore", invalid="ignore"):
        z = difference / se
    return Link(
        method,
        shift,
        slope,
        shift_se,
        slope_se,
        _jackknife(x[used], y[used], method),
        second.items[shared],
        y,
        shift + slope * x,
        difference,
        se,
        z,
        robust,
        drift,
        first.scale,
    )


@dataclass(frozen=True, eq=False)
class _Side:
    items: Labels
    difficulty: Floats
    se: Floats
    scale: Scale

    @classmethod
    def of(cls, calibration: Bank | Calibration | RaschEstimator) -> _Side:
        """The items of a calibration that have an estimate of their own, or an anchor, on its scale."""
        made = calibration_of(calibration)
        known = made.known & on_scale(made.status)
        return cls(made.labels[known], made.difficulty[known], np.nan_to_num(made.se[known]), made.scale)


def _bank(calibration: Bank | Calibration | RaschEstimator) -> Bank:
    if isinstance(calibration, Bank):
        return calibration
    raise BankError("a link is applied to a bank; make one with Bank.from_fit(fit, responses).")


def _robust_z(difference: Floats, se: Floats) -> Floats:
    low, middle, high = np.quantile(difference, [0.25, 0.5, 0.75])
    spread = np.maximum(IQR * (high - low), se)
    apart = difference - middle
    sure = np.where(apart == 0, 0.0, np.copysign(np.inf, apart))  # where nothing explains a difference
    return np.divide(apart, spread, out=sure, where=spread > 0)


def _standard_errors(
    x: Floats, y: Floats, var_x: Floats, var_y: Floats, slope: float, method: str
) -> tuple[float, float]:
    """Of shift and slope, by the delta method from the items' standard errors."""
    k = len(x)
    if method != "mean-sigma":
        return float(np.sqrt((var_x + var_y).sum()) / k), 0.0
    by_y = (y - y.mean()) / ((k - 1) * y.std(ddof=1) * x.std(ddof=1))
    by_x = -slope * (x - x.mean()) / ((k - 1) * x.var(ddof=1))
    slope_se = np.sqrt(by_y**2 @ var_y + by_x**2 @ var_x)
    shift_by_y, shift_by_x = 1 / k - x.mean() * by_y, -slope / k - x.mean() * by_x
    return float(np.sqrt(shift_by_y**2 @ var_y + shift_by_x**2 @ var_x)), float(slope_se)


def _jackknife(x: Floats, y: Floats, method: str) -> float:
    """Standard error of the shift over the common items, each left out in turn."""
    k = len(x)
    if k < (4 if method == "mean-sigma" else 2):
        return float("nan")
    slope: Any = np.sqrt(_variance_without_one(y) / _variance_without_one(x)) if method == "mean-sigma" else 1.0
    shift = (y.sum() - y) / (k - 1) - slope * (x.sum() - x) / (k - 1)
    return float(np.sqrt((k - 1) / k * ((shift - shift.mean()) ** 2).sum()))


def _variance_without_one(x: Floats) -> Floats:
    """The variance of the others, for each."""
    k, apart = len(x), x - x.mean()
    return np.maximum((apart @ apart - k / (k - 1) * apart**2) / (k - 2), np.finfo(float).tiny)
