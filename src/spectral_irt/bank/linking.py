"""Two calibrations with items in common, brought to one scale, and the items that have drifted.

With difficulties x in b and y in a of the common items, the shift is the mean of y - x over the items that agree on it
(`inference/robust_center.py` says how these are found). Its variance takes the covariances of both calibrations,

    var(shift) = w' V_a w + w' V_b w,   w = 1 / k on the k items used,

because the errors of centered difficulties are correlated: of items that make up the whole of both calibrations the
mean is known for sure. An item of b on a's scale is b_i + shift, and both parts have b's errors in them:

    var(b_i + shift) = V_b,ii - 2 (V_b w)_i + w' V_b w + w' V_a w + excess^2 / k,

where the excess is the standard deviation by which the items that agree differ beyond their errors, if they do. Which
items agree was read from the same data: what another choice among those near the limit would change is added to all of
these variances (`choice_variance`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank
from spectral_irt.bank.covariance import KINDS, LINKED, Side, errors_of_bank, threshold_labels
from spectral_irt.calibration import Calibration, Scale
from spectral_irt.data import Finding
from spectral_irt.data.block import Floats
from spectral_irt.data.finding import Severity
from spectral_irt.data.labels import label_array, positions
from spectral_irt.data.responses import Labels
from spectral_irt.errors import BankError, check_option, listed
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.inference.joint_errors import JointErrors
from spectral_irt.inference.robust_center import LIMIT, choice_variance, robust_center, scatter
from spectral_irt.tables import make_table
from spectral_irt.text import p_value

METHODS = ("mean", "mean-sigma", "robust")
FEWEST = {"mean": 2, "mean-sigma": 3, "robust": 3}
DRIFT = LIMIT  # robust z beyond which an item has drifted: 0.3% of the items that have not
MOST_DRIFT = 0.4  # share of the common items beyond which nobody can tell who has drifted from whom
LEVEL = 0.05  # of the test of heterogeneity
NAMED = 5  # drifted items that the sentence names


@dataclass(frozen=True, eq=False)
class Link:
    """How b's difficulties become a's: shift + slope * difficulty.

    Attributes
    ----------
    shift, slope : float
        The slope is 1 except for "mean-sigma".
    shift_se, slope_se : float
        From the covariances of both calibrations: what other people's answers to the same items would have changed, the
        choice of items that have not drifted in it (`choice`, its variance).
    link_error : float
        Standard error of the shift if the common items are a sample of those that could have been used: with what they
        differ by beyond their errors (`excess`). It goes into the standard errors of the linked items.
    statistic, df, p : float, int, float
        Cochran's Q: do the items used differ by more than their errors explain?
    excess : float
        By how much (standard deviation, logits); 0 where p is 0.05 or more.
    basis : (str, str)
        What the errors of a and of b were taken from: "covariance", "information" (both whole matrices), "independent"
        (standard errors only) or "none".
    item, difficulty_a, difficulty_b, difference, se, z, robust_z, drift, used : arrays
        The common items: a's difficulty, b's on a's scale, b minus a, its standard error with that of both calibrations
        and of the shift, their ratio; the distance from the items that agree over its standard error, the excess in it,
        and whether that is beyond 3; whether the item counts for the shift. Of items with several thresholds each of
        these has a row, "item [2]".
    scale : Scale
        Of a.
    left_out : labels
        Items that both have, with another number of categories.
    n_items : int
        How many items the common thresholds belong to.
    by_a, by_b, errors_a : float arrays, JointErrors
        How shift and slope move with the common thresholds in a and in b (2 x thresholds); a's errors of these.
    """

    method: str
    shift: float
    slope: float
    shift_se: float
    slope_se: float
    link_error: float
    statistic: float
    df: int
    p: float
    excess: float
    basis: tuple[str, str]
    item: Labels
    difficulty_a: Floats
    difficulty_b: Floats
    se: Floats
    robust_z: Floats
    used: NDArray[np.bool_]
    scale: Scale
    by_a: Floats = field(repr=False)
    by_b: Floats = field(repr=False)
    errors_a: JointErrors = field(repr=False)
    left_out: Labels
    choice: float
    n_items: int

    @property
    def difference(self) -> Floats:
        return self.difficulty_b - self.difficulty_a

    @property
    def z(self) -> Floats:
        return np.divide(self.difference, self.se, out=np.full(len(self.se), np.nan), where=self.se > 0)

    @property
    def drift(self) -> NDArray[np.bool_]:
        return np.abs(self.robust_z) > DRIFT

    def columns(self) -> dict[str, NDArray[Any]]:
        """The common items, in logits of a."""
        names = ("item", "difficulty_a", "difficulty_b", "difference", "se", "z", "robust_z", "drift", "used")
        return {name: getattr(self, name) for name in names}

    def table(self, frame_kind: str | None = None) -> Any:
        """The common items as a dataframe."""
        return make_table(self.columns(), frame_kind)

    @property
    def common(self) -> str:
        """What was compared: how many items, or thresholds of how many items."""
        items = f"{self.n_items:,} common item{'s' if self.n_items != 1 else ''}"
        return items if len(self.item) == self.n_items else f"{len(self.item):,} thresholds of {items}"

    @property
    def _what(self) -> str:
        return "items" if len(self.item) == self.n_items else "thresholds"

    @property
    def agreement(self) -> str:
        """Whether the items used agree on the shift, in words."""
        which = "the others" if self.drift.any() and self.method == "robust" else f"the common {self._what}"
        if not self.df:
            return f"whether {which} agree cannot be told without standard errors"
        test = f"Q = {self.statistic:.1f}, df = {self.df}, {p_value(self.p)}"
        if self.excess == 0:
            return f"{which} agree within their errors ({test})"
        return (
            f"{which} differ by more than their errors explain ({test}): by a standard deviation of {self.excess:.2f} "
            "logits beyond chance"
        )

    @property
    def doubtful(self) -> str:
        """What to say where too many items have drifted for a link; else nothing."""
        if self.drift.mean() <= MOST_DRIFT:
            return ""
        return (
            f"more than {100 * MOST_DRIFT:.0f}% of the common {self._what} have drifted, and these data cannot tell "
            "which ones moved and which stayed"
        )

    @property
    def finding(self) -> Finding:
        """What the link is, in a sentence or two."""
        slope = "" if self.slope == 1 else f" and slope {self.slope:.3f} (se {self.slope_se:.3f})"
        sentence = (
            f"Linked over {self.common} ({self.method}): shift {self.shift:.3f} logits (se {self.shift_se:.3f}){slope}."
        )
        if len(self.left_out):
            sentence += f" Left out, with other categories in B than in A: {listed(self.left_out)}."
        drifted = np.flatnonzero(self.drift)
        remedies: list[str] = []
        if len(drifted):
            verb = "has" if len(drifted) == 1 else "have"
            order = drifted[np.argsort(-np.abs(self.difference[drifted]), kind="stable")]
            named = ", ".join(f"{listed(self.item[[k]])} {self.difference[k]:+.2f}" for k in order[:NAMED])
            more = f" and {len(drifted) - NAMED:,} more" if len(drifted) > NAMED else ""
            sentence += f" {len(drifted):,} of them {verb} drifted (+: harder in B): {named}{more}."
            if self.method != "robust":
                remedies.append("Use `method='robust'`, which leaves drifted items out of the shift.")
        sentence += f" {_sentence(self.agreement)}"
        if self.excess:
            remedies.append("The link error has that in it; more common items make it smaller.")
        if self.doubtful:
            sentence += f" {_sentence(self.doubtful)}"
            remedies.append("Look for what happened to these items before using the link.")
        severity: Severity = "warning" if len(drifted) or self.excess else "note"
        return Finding(LINKED, severity, sentence, " ".join(remedies), tuple(self.item[drifted].tolist()))

    def apply(self, bank: Bank | Calibration | RaschEstimator) -> Bank:
        """The bank b on a's scale, the error of the link in its standard errors."""
        if not isinstance(bank, Bank):
            raise BankError("a link is applied to a bank; make one with Bank.from_fit(fit, responses).")
        people, made = bank.population, bank.calibration
        if people is not None:
            people = replace(people, mean=self.shift + self.slope * people.mean, sd=self.slope * people.sd)
        threshold_se, location_se = self._errors_of(bank)
        return replace(
            bank,
            calibration=made.replace(
                thresholds=self.shift + self.slope * made.thresholds,
                threshold_se=threshold_se,
                location_se=None if made.layout.binary else location_se,
                item_information=made.item_information / self.slope**2,
                scale=self.scale,
                findings=(*made.findings, self.finding),
            ),
            evidence=bank.evidence.scaled(self.shift, self.slope),
            population=people,
        )

    def _errors_of(self, bank: Bank) -> tuple[Floats, Floats]:
        """Standard errors of shift + slope * b, of thresholds and of locations; NaN where b has none.

        What the bank says of them stands; the errors of both say what the link adds to it.
        """
        made, errors = bank.calibration, errors_of_bank(bank)[0]
        place = positions(self.item, threshold_labels(made))
        gradient = np.zeros((2, len(errors.own)))
        common = bool((place >= 0).all())
        if common:
            gradient[:, place] = self.by_b
        (shift, slope), joint = _moved(gradient, errors)
        joint = joint + _moved(self.by_a, self.errors_a)[1]
        beyond = _moved(self.by_a, JointErrors.independent(self.excess * self.used))[1]
        out = []
        for values, own, mean in (
            (made.thresholds, made.threshold_se, lambda each: each),
            (made.difficulty, made.se, made.layout.mean),
        ):
            at = np.nan_to_num(values)
            gained = np.full(len(at), self.shift_se**2 - self.choice)
            if common:
                gained = _on_line(joint, at) + 2 * self.slope * (mean(shift) + at * mean(slope))
            with np.errstate(invalid="ignore"):
                total = self.slope**2 * own**2 + gained + _on_line(beyond, at) + self.choice
                out.append(np.sqrt(np.maximum(total, 0)))
        return out[0], out[1]


def link(
    a: Bank | Calibration | RaschEstimator, b: Bank | Calibration | RaschEstimator, method: str = "robust"
) -> Link:
    """Bring calibration b to the scale of calibration a by the items they share.

    Parameters
    ----------
    a, b : Bank, Calibration or fitted estimator
        Of different people: the errors of the two count as independent.
    method : "robust", "mean" or "mean-sigma"
        "robust" (default): the mean of the differences of the items that agree, which up to 40% of drifted items do not
        move. "mean": of all common items. "mean-sigma": also a slope, the ratio of the standard deviations; under the
        Rasch model it should be 1, and one that is not asks for an explanation.

    Notes
    -----
    Only items with the status "ok" or "anchored" on both sides count: others rest on a prior, or are on another scale.
    An item has drifted when its difference is more than 3 standard errors from the mean of the items that agree.
    Where these differ beyond doubt by more than their errors explain (p < 0.001), that excess counts as error too, so
    that in large samples small differences everywhere are not drift of every item.

    Errors come from covariance matrices where there are any: of a fit, or from a bank's information matrix (both up to
    2,000 items). Otherwise they count as independent before centering, which is right where everybody answers the same
    items, and too small where forms are connected by few; `Link.basis` says which it was.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, simulate
    >>> data = simulate.rasch(1000, 10, seed=1).responses
    >>> odd, even = (SpectralRasch().fit(data.take_persons(range(k, 1000, 2))) for k in (1, 0))
    >>> bool(abs(link(odd, even).shift) < 1e-9)
    True

    References
    ----------
    Kolen & Brennan (2014), Test Equating, Scaling, and Linking, ch. 6. Huynh & Meyer (2010), Use of robust z in
    detecting unstable items in item response theory models, Practical Assessment, Research & Evaluation 15(2).
    """
    check_option("method", method, METHODS)
    first, second, left_out = _alike(Side.of(a), Side.of(b))
    place = positions(second.labels, first.labels)
    shared = np.flatnonzero(place >= 0)
    common = label_array(dict.fromkeys(second.item[shared].tolist()))
    if len(shared) < FEWEST[method]:
        raise BankError(
            f"the two calibrations share {len(common):,} items{': ' if len(common) else ''}{listed(common)}; "
            f"`method={method!r}` needs at least {FEWEST[method]}. The first has {listed(first.labels)}, the second "
            f"{listed(second.labels)}. {_others(left_out)}Check the labels."
        )
    x, y = second.threshold[shared], first.threshold[place[shared]]
    errors_x, errors_y = second.errors.take(shared), first.errors.take(place[shared])
    slope = float(y.std(ddof=1) / x.std(ddof=1)) if method == "mean-sigma" else 1.0
    if not np.isfinite(slope) or slope == 0:
        raise BankError("the common items do not differ in difficulty, so they give no slope; use `method='mean'`.")

    raw, errors = slope * x - y, errors_x.scaled(slope) + errors_y
    found = robust_center(raw, errors, level=LEVEL)
    used = found.agrees if method == "robust" else np.ones(len(raw), dtype=bool)
    statistic, df, p, excess = found.statistic, found.df, found.p, found.excess
    if method != "robust":
        every = scatter(raw, errors, LEVEL)
        statistic, df, p, excess = every.statistic, every.df, every.p, float(np.sqrt(every.beyond))
    shift = -float(raw[used].mean())
    by_a, by_b = _gradients(x, y, slope, used, method)
    choice = choice_variance(raw, errors, found) if method == "robust" else 0.0
    (shift_a, slope_a), joint_a = _moved(by_a, errors_y)
    (shift_b, slope_b), joint_b = _moved(by_b, errors_x)
    shift_variance, slope_variance = np.maximum(np.diag(joint_a + joint_b), 0) + np.array([choice, 0.0])
    beyond = _moved(by_a, JointErrors.independent(excess * used))[1][0, 0]
    # Of b minus a, on a's scale: -e_i of a, slope * e_i of b, and what shift and slope have of both.
    from_b = _on_line(joint_b, x) + slope**2 * errors_x.variance + 2 * slope * (shift_b + x * slope_b)
    from_a = _on_line(joint_a, x) + errors_y.variance - 2 * (shift_a + x * slope_a)
    variance = np.maximum(from_b, 0) + np.maximum(from_a, 0) + choice
    return Link(
        method,
        shift,
        slope,
        float(np.sqrt(shift_variance)),
        float(np.sqrt(slope_variance)),
        float(np.sqrt(shift_variance + beyond)),
        statistic,
        df,
        p,
        excess,
        (first.kind, second.kind),
        second.labels[shared],
        y,
        shift + slope * x,
        np.sqrt(np.where(variance > 1e-15, variance, 0.0)),
        found.z,
        used,
        first.scale,
        by_a,
        by_b,
        errors_y,
        left_out,
        choice,
        len(common),
    )


def _others(left_out: Labels) -> str:
    return f"{listed(left_out)} have other categories in one than in the other. " if len(left_out) else ""


def _alike(first: Side, second: Side) -> tuple[Side, Side, Labels]:
    """Both without items that have another number of categories in the other one, and which these are."""
    place = positions(second.item, first.item)
    differs = (place >= 0) & (first.size[place] != second.size)
    if not differs.any():
        return first, second, second.item[:0]
    names = label_array(dict.fromkeys(second.item[differs].tolist()))
    return first.take(positions(first.item, names) < 0), second.take(~differs), names


def told_errors(basis: tuple[str, str]) -> str:
    """What the errors of a link rest on, in words."""
    a, b = (KINDS[kind] for kind in basis)
    return f"the {a} of each" if a == b else f"A's {a} and B's {b}"


def _gradients(x: Floats, y: Floats, slope: float, used: NDArray[np.bool_], method: str) -> tuple[Floats, Floats]:
    """How shift and slope move with the thresholds of the common items, in a (y) and in b (x)."""
    k, w = int(used.sum()), used / used.sum()
    if method != "mean-sigma":
        return np.stack([w, 0 * w]), np.stack([-w, 0 * w])
    by_y = (y - y.mean()) / ((k - 1) * y.std(ddof=1) * x.std(ddof=1))
    by_x = -slope * (x - x.mean()) / ((k - 1) * x.var(ddof=1))
    return np.stack([w - x.mean() * by_y, by_y]), np.stack([-slope * w - x.mean() * by_x, by_x])


def _moved(gradient: Floats, errors: JointErrors) -> tuple[Floats, Floats]:
    """The covariances of shift and slope with these errors, and with each other as far as they come from these."""
    images = np.stack([errors.times(row) for row in gradient])
    return images, gradient @ images.T


def _on_line(joint: Floats, at: Floats) -> Floats:
    """The variance of shift + slope * at."""
    return joint[0, 0] + 2 * at * joint[0, 1] + at**2 * joint[1, 1]


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:] + "."
