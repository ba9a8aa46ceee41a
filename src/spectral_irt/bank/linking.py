"""Two calibrations with items in common, brought to one scale; the items that have drifted.

With difficulties x in b and y in a of the common items, the shift is the mean of y - x over the items that agree on it
(`inference/robust_center.py` finds them). Its variance takes the covariances of both calibrations,

    var(shift) = w' V_a w + w' V_b w,   w = 1 / k on the k items used,

because the errors of centered difficulties are correlated: of items that make up the whole of both calibrations the
mean is known exactly. An item of b on a's scale is b_i + shift, and both parts have b's errors in them:

    var(b_i + shift) = V_b,ii - 2 (V_b w)_i + w' V_b w + w' V_a w + excess^2 / k,

where the excess is the standard deviation by which the items that agree differ beyond their errors, if they do. Which
items agree is decided from the same data: what another choice among those near the limit would change is added to all
of these variances (`choice_variance`).

`Bank.link`, `spectral_irt.link` and the command `link` call this; `equate` (`equating.py`) stands on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, calibration_of
from spectral_irt.bank.covariance import KINDS, LINKED, Side, errors_of_bank, threshold_labels
from spectral_irt.calibration import Calibration, Scale
from spectral_irt.data import Finding
from spectral_irt.data.block import Floats
from spectral_irt.data.labels import label_array, positions
from spectral_irt.data.responses import Labels
from spectral_irt.engine import one_blas_thread
from spectral_irt.errors import BankError, Severity, check_option
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.inference.robust_center import LIMIT, center_of_items, scatter
from spectral_irt.joint_errors import JointErrors
from spectral_irt.numerics import LARGE, safe_divide
from spectral_irt.tables import Table, make_table
from spectral_irt.text import count, listed, one_or_many, p_value, sentence_case

Source = Bank | Calibration | RaschEstimator

FEWEST = {"mean": 2, "robust": 3}  # common items, by method
DRIFT = LIMIT  # robust z beyond which an item has drifted: 0.3% of the items that have not
MOST_DRIFT = 0.4  # share of the common items beyond which nobody can tell who has drifted from whom
LEVEL = 0.05  # of the test of heterogeneity
SAME = 1e-9  # logits: differences of anchored items from their anchors are those of rounding
NAMED = 5  # drifted items that the sentence names
ROUNDING = 1e-15  # of a variance: no error at all


@dataclass(frozen=True, eq=False)
class Link:
    """How b's difficulties become a's: difficulty + shift.

    Attributes
    ----------
    shift, shift_se : float
        The standard error is from the covariances of both calibrations: what other people's answers to the same items
        would have changed, the choice of items that have not drifted in it (`choice`, its variance).
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
    item_of : labels
        The item that each row belongs to.
    errors_a : JointErrors
        Of the common thresholds in a.
    given : bool array
        Whether the item was anchored, in a or b, at the difficulty that it has in the other one: it cannot show drift.
    """

    method: str
    shift: float
    shift_se: float
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
    errors_a: JointErrors = field(repr=False)
    left_out: Labels
    choice: float
    item_of: Labels
    given: NDArray[np.bool_]

    @property
    def difference(self) -> Floats:
        return self.difficulty_b - self.difficulty_a

    @property
    def z(self) -> Floats:
        return safe_divide(self.difference, self.se, otherwise=np.nan)

    @property
    def drift(self) -> NDArray[np.bool_]:
        return np.abs(self.robust_z) > DRIFT

    @property
    def weights(self) -> Floats:
        """Of the common thresholds in the shift."""
        return self.used / self.used.sum()

    def columns(self) -> dict[str, NDArray[Any]]:
        """The common items, in logits of a."""
        names = ("item", "difficulty_a", "difficulty_b", "difference", "se", "z", "robust_z", "drift", "used")
        return {name: getattr(self, name) for name in names}

    def table(self, frame_kind: str | None = None) -> Table:
        """The common items as a dataframe."""
        return make_table(self.columns(), frame_kind)

    @property
    def n_items(self) -> int:
        """How many items the common thresholds belong to."""
        return len(set(self.item_of.tolist()))

    @property
    def drifted(self) -> dict[Any, float]:
        """How far what has drifted did so, farthest first: items as a whole, or single thresholds of them."""
        moved: dict[Any, float] = {}
        for label in dict.fromkeys(self.item_of[self.drift].tolist()):
            rows = self.item_of == label
            if self.drift[rows].all():
                moved[label] = float(self.difference[rows].mean())
            else:
                rows &= self.drift
                moved |= dict(zip(self.item[rows].tolist(), self.difference[rows].tolist(), strict=True))
        return dict(sorted(moved.items(), key=lambda each: -abs(each[1])))

    @property
    def compares_items(self) -> bool:
        """Whether each common item has one threshold."""
        return len(self.item) == self.n_items

    @property
    def common(self) -> str:
        """What was compared: how many items, or thresholds of how many items."""
        items = count(self.n_items, "common item", "common items")
        if self.compares_items:
            return items
        return f"{len(self.item):,} thresholds of {items}"

    @property
    def agreement(self) -> str:
        """Whether the items used agree on the shift, in words."""
        which = "the common items" if self.compares_items else "the common thresholds"
        if self.drift.any() and self.method == "robust":
            which = "the others"
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
    def by_design(self) -> str:
        """What to say where common items agree because one calibration was anchored to the other; else nothing."""
        n = len(set(self.item_of[self.given].tolist()))
        if not n:
            return ""
        which = self.common if n == self.n_items else f"{n:,} of {self.common}"
        were = one_or_many(n, "was", "were")
        agree = one_or_many(n, "agrees", "agree")
        return (
            f"{which} {were} anchored at the difficulty in the other calibration and {agree} by design: whether items "
            "have drifted is in the displacements of the fit with anchors (items.csv)"
        )

    @property
    def tells_agreement(self) -> bool:
        """Whether among the items used some are left whose agreement is not by design."""
        used = np.ones(len(self.item), dtype=bool) if self.method != "robust" else ~self.drift
        return not self.given[used].all()

    @property
    def doubtful(self) -> str:
        """What to say where too many items have drifted for a link; else nothing."""
        if self.drift.mean() <= MOST_DRIFT:
            return ""
        return (
            f"more than {100 * MOST_DRIFT:.0f}% of {self.common} have drifted, and these data cannot tell which ones "
            "moved and which stayed"
        )

    @property
    def finding(self) -> Finding:
        """What the link is, in a sentence or two."""
        sentences = [
            f"Linked over {self.common} ({self.method}): shift {self.shift:z.3f} logits (se {self.shift_se:.3f})."
        ]
        remedies: list[str] = []
        if len(self.left_out):
            sentences.append(f"Left out, with other categories in B than in A: {listed(self.left_out)}.")
        drifted = self.drifted
        if drifted:
            sentences.append(_drifted_in_words(drifted))
            if self.method != "robust":
                remedies.append("Use `method='robust'`, which leaves drifted items out of the shift.")
        if self.tells_agreement:
            sentences.append(_sentence(self.agreement))
        if self.by_design:
            sentences.append(_sentence(self.by_design))
        if self.excess:
            remedies.append("The link error has that in it; more common items make it smaller.")
        if self.doubtful:
            sentences.append(_sentence(self.doubtful))
            remedies.append("Look for what happened to these items before using the link.")
        severity: Severity = "warning" if drifted or self.excess else "note"
        return Finding(LINKED, severity, " ".join(sentences), " ".join(remedies), tuple(drifted))

    def apply(self, bank: Source) -> Bank:
        """The bank b on a's scale, the error of the link in its standard errors."""
        if not isinstance(bank, Bank):
            raise BankError("a link is applied to a bank; make one with Bank.from_fit(fit, responses).")
        calibration = bank.calibration
        threshold_se, location_se = self._errors_of(bank)
        population = bank.population
        if population is not None:
            population = replace(population, mean=population.mean + self.shift)
        return replace(
            bank,
            calibration=calibration.replace(
                thresholds=calibration.thresholds + self.shift,
                threshold_se=threshold_se,
                location_se=None if calibration.layout.binary else location_se,
                scale=self.scale,
                findings=(*calibration.findings, self.finding),
            ),
            evidence=replace(bank.evidence, prior_mean=bank.evidence.prior_mean + self.shift),
            population=population,
        )

    def _errors_of(self, bank: Bank) -> LinkedErrors:
        """Standard errors of b + shift, of thresholds and of locations; NaN where b has none.

        The bank's own standard errors stay; the errors of both calibrations say what the link adds to them.
        """
        calibration = bank.calibration
        mean = calibration.layout.mean
        errors = errors_of_bank(bank).errors
        n_thresholds = len(errors.diagonal)
        place = positions(self.item, threshold_labels(calibration))
        # The variance of the shift, and its covariance with each threshold of b.
        of_shift = np.full(n_thresholds, self.shift_se**2 - self.choice)
        covariance = np.zeros(n_thresholds)
        if (place >= 0).all():
            weights = np.zeros(n_thresholds)
            weights[place] = self.weights
            covariance = errors.times(weights)
            of_shift[:] = weights @ covariance + self.errors_a.of(self.weights)
        of_shift += self.link_error**2 - self.shift_se**2 + self.choice
        with np.errstate(invalid="ignore"):
            thresholds = calibration.threshold_se**2 + of_shift - 2 * covariance
            locations = calibration.se**2 + mean(of_shift) - 2 * mean(covariance)
            return LinkedErrors(np.sqrt(np.maximum(thresholds, 0)), np.sqrt(np.maximum(locations, 0)))


class LinkedErrors(NamedTuple):
    """Standard errors of a linked bank."""

    thresholds: Floats
    locations: Floats


def _drifted_in_words(drifted: dict[Any, float]) -> str:
    verb = one_or_many(len(drifted), "has", "have")
    named = ", ".join(f"{listed([label])} {drifted[label]:+.2f}" for label in list(drifted)[:NAMED])
    if len(drifted) > NAMED:
        named += f" and {len(drifted) - NAMED:,} more"
    return f"{len(drifted):,} of them {verb} drifted (+: harder in B): {named}."


def link(a: Source, b: Source, method: str = "robust") -> Link:
    """Bring calibration b to the scale of calibration a by the items they share.

    Parameters
    ----------
    a, b : Bank, Calibration or fitted estimator
        Of different people: the errors of the two count as independent.
    method : "robust" or "mean"
        "robust" (default): the mean of the differences of the items that agree, which up to 40% of drifted items do not
        move. "mean": of all common items.

    Notes
    -----
    Only items with the status "ok" or "anchored" on both sides count: others rest on a prior, or are on another scale.
    An item has drifted when its difference is more than 3 standard errors from the mean of the items that agree; of
    ordered answers, when the mean of its thresholds has, and a threshold when it has moved by itself.
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
    check_option("method", method, tuple(FEWEST))
    sizes = [calibration_of(source).layout.n_entries for source in (a, b)]
    # Dozens of solves, one after the other: threads of a matrix library wait for each other longer than they work.
    with one_blas_thread(with_scipy=max(sizes) > LARGE):
        return _link_of(a, b, method)


def _link_of(a: Source, b: Source, method: str) -> Link:
    side_a, side_b, left_out = _alike(Side.of(a), Side.of(b))
    common = _CommonThresholds.of(side_a, side_b)
    if len(common.labels) < FEWEST[method]:
        raise _too_few_in_common(side_a, side_b, common, left_out, method)
    agreement = _agreement(common, method)
    used = agreement.used
    weights = used / used.sum()
    shift = -float(common.difference[used].mean())
    shift_variance = max(common.errors_b.of(weights) + common.errors_a.of(weights), 0.0) + agreement.choice
    # Of b's thresholds on a's scale less a's.
    variance = common.errors_b.around(weights) + common.errors_a.around(weights) + agreement.choice
    return Link(
        method=method,
        shift=shift,
        shift_se=float(np.sqrt(shift_variance)),
        link_error=float(np.sqrt(shift_variance + agreement.excess**2 * (weights @ weights))),
        statistic=agreement.statistic,
        df=agreement.df,
        p=agreement.p,
        excess=agreement.excess,
        basis=(side_a.kind, side_b.kind),
        item=common.labels,
        difficulty_a=common.threshold_a,
        difficulty_b=common.threshold_b + shift,
        se=np.sqrt(np.where(variance > ROUNDING, variance, 0.0)),
        robust_z=agreement.z,
        used=used,
        scale=side_a.scale,
        errors_a=common.errors_a,
        left_out=left_out,
        choice=agreement.choice,
        item_of=common.item,
        given=_agree_by_design(common),
    )


class _CommonThresholds(NamedTuple):
    """The thresholds that both calibrations have: what they are called and whose they are; in a and in b, with the
    joint errors there; and whether they were anchored in one of them."""

    labels: Labels
    item: Labels
    threshold_a: Floats
    threshold_b: Floats
    errors_a: JointErrors
    errors_b: JointErrors
    anchored: NDArray[np.bool_]

    @classmethod
    def of(cls, side_a: Side, side_b: Side) -> _CommonThresholds:
        place = positions(side_b.labels, side_a.labels)  # of b's thresholds in a
        in_b = np.flatnonzero(place >= 0)
        in_a = place[in_b]
        return cls(
            labels=side_b.labels[in_b],
            item=side_b.item[in_b],
            threshold_a=side_a.threshold[in_a],
            threshold_b=side_b.threshold[in_b],
            errors_a=side_a.errors.take(in_a),
            errors_b=side_b.errors.take(in_b),
            anchored=side_b.anchored[in_b] | side_a.anchored[in_a],
        )

    @property
    def difference(self) -> Floats:
        """b less a, before any shift."""
        return self.threshold_b - self.threshold_a

    @property
    def items(self) -> Labels:
        """The items that they belong to, each once."""
        return label_array(dict.fromkeys(self.item.tolist()))


def _agree_by_design(common: _CommonThresholds) -> NDArray[np.bool_]:
    """Anchored items that have the same difficulty in both calibrations, but for a shift that all of them have."""
    anchored = common.anchored
    if not anchored.any():
        return anchored
    shift = np.median(common.difference[anchored])
    return anchored & (np.abs(common.difference - shift) < SAME)


class _Agreement(NamedTuple):
    """Which thresholds make the shift, the variance of that choice, the test of whether these agree, and how far each
    threshold is from those that do (`z`)."""

    used: NDArray[np.bool_]
    choice: float
    excess: float
    statistic: float
    df: int
    p: float
    z: Floats


def _agreement(common: _CommonThresholds, method: str) -> _Agreement:
    """The thresholds that count for the shift: those that agree ("robust"), or all of them ("mean")."""
    errors = common.errors_b + common.errors_a
    item = positions(common.item, common.items)
    center, choice = center_of_items(common.difference, errors, item, LEVEL)
    if method == "robust":
        return _Agreement(
            used=center.agrees,
            choice=choice,
            excess=center.excess,
            statistic=center.statistic,
            df=center.df,
            p=center.p,
            z=center.z,
        )
    every = scatter(common.difference, errors, LEVEL)
    return _Agreement(
        used=np.ones(len(common.labels), dtype=bool),
        choice=0.0,
        excess=float(np.sqrt(every.excess_variance)),
        statistic=every.statistic,
        df=every.df,
        p=every.p,
        z=center.z,
    )


def _too_few_in_common(
    side_a: Side, side_b: Side, common: _CommonThresholds, left_out: Labels, method: str
) -> BankError:
    items = f"{len(common.items):,} items"
    if len(common.items):
        items += f": {listed(common.items)}"
    others = ""
    if len(left_out):
        verb = one_or_many(len(left_out), "has", "have")
        others = f"{listed(left_out)} {verb} other categories in one than in the other. "
    besides = "Besides, the" if len(left_out) else "The"
    return BankError(
        f"the two calibrations share {items}; `method={method!r}` needs at least {FEWEST[method]}. {others}{besides} "
        f"first has {listed(side_a.labels) or 'no item'}, the second {listed(side_b.labels) or 'no item'}. Check the "
        "labels."
    )


class _Alike(NamedTuple):
    """Two sides without the items that have other numbers of categories in them, and the labels of these."""

    first: Side
    second: Side
    left_out: Labels


def _alike(first: Side, second: Side) -> _Alike:
    """Both without items that have another number of categories in the other one, and which these are."""
    place = positions(second.item, first.item)
    differs = (place >= 0) & (first.size[place] != second.size)
    if not differs.any():
        return _Alike(first, second, second.item[:0])
    left_out = label_array(dict.fromkeys(second.item[differs].tolist()))
    return _Alike(first.take(positions(first.item, left_out) < 0), second.take(~differs), left_out)


def errors_in_words(basis: tuple[str, str]) -> str:
    """What the errors of a link rest on, in words."""
    a, b = (KINDS[kind] for kind in basis)
    return f"the {a} of each" if a == b else f"A's {a} and B's {b}"


def _sentence(words: str) -> str:
    return sentence_case(f"{words}.")
