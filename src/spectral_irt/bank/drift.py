"""Have items of a bank drifted? New responses against the bank's thresholds, before they are added to it.

Given the score of person l, the bank's thresholds give the response to item i the probabilities p_lic of its categories
c. Were the item harder by d, they would be multiplied by exp(-c d). So the item by itself has the likelihood

    L_i(d) = exp(-d x_i) / prod_l sum_c p_lic exp(-c d),    x_i the sum of the responses.

Its displacement is the d where that is largest, and the signed root of 2 log (L(d) / L(0)) is standard normal if the
item has not changed: far out in the tails and of few responses, too, where a test by normal errors is not. Sums of
responses are whole numbers; so the root is taken half a point nearer to what was expected, which is never too often
significant.

The bank has errors: with the information H of the new responses on locations and the covariance V of the bank's, they
add v_i = (H V H)_ii / H_ii^2 to the variance of the displacement. Few responses make them skewed, too: so the bank's
responses count as those of n people of one ability, of whom the share p that the bank knows is right, with
1 / v_i = n p (1 - p), and the ratio is that of two likelihoods, of the bank's d and the new one's, each at its own
largest value and both at one d. (Where answers are in categories, p is the mean answer over the highest.)

Items that have drifted make the others seem to move the other way. So the items on which most agree are found
(`inference/robust_center.py`), and the others are set free before each is compared with the bank.

`Bank.drift` calls this, and every update before it adds new responses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spectral_irt.bank.bank import Bank
from spectral_irt.bank.covariance import errors_of_bank
from spectral_irt.bank.evidence import own_information
from spectral_irt.conditional.displacement import answers_given_score
from spectral_irt.conditional.information import PeopleRows, Point
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints, Mask
from spectral_irt.data.labels import Labels, label_array
from spectral_irt.inference.results import adjust_p, first_few, two_sided
from spectral_irt.inference.robust_center import robust_center
from spectral_irt.joint_errors import JointErrors
from spectral_irt.numerics import safe_divide
from spectral_irt.tables import Columns, Table, make_table, rows_of
from spectral_irt.text import count, listed

DRIFTED = "drifted_items"  # code of the finding
LEVEL = 0.05  # of any false alarm among all items of a load (Holm)
LEAST_DRIFT = 0.3  # logits: less does no harm to a scale (Miller, Rotou & Twing 2004, the 0.3 logits criterion)
FEWEST = 3  # items of which most can agree
ROUNDS = 8  # of finding the items that most do not agree with; each halves what the last one left, or better
STEPS = 30  # of Newton's method, for all items at once
LONGEST_STEP = 2.0  # logits
CLOSE = 0.01  # standard errors: where rounds and steps end
HALF_A_POINT = 0.5
NO_INFORMATION = 1e-9
LEAST_SHARE = 1e-3  # of the highest score: a bank may count few of the responses that placed an item
PROBES = 100  # random errors of the bank, where it keeps no matrix: their variance is known to 14%


@dataclass(frozen=True, eq=False)
class Drift:
    """How far new responses put the items of a bank from where it has them.

    Attributes
    ----------
    item, n : labels, int array
        Items that the bank has measured and these people answered, and how many of them did.
    displacement, se : float arrays
        In logits, + is harder than in the bank; the standard error holds that of the bank.
    z, p, p_adjusted : float arrays
        The signed root of the likelihood ratio over its standard deviation, its two-sided p, and that after Holm.
    """

    item: Labels
    n: Ints
    displacement: Floats
    se: Floats
    z: Floats
    p: Floats
    p_adjusted: Floats

    @property
    def drifted(self) -> Mask:
        """Significant after Holm, and by 0.3 logits or more."""
        return (self.p_adjusted < LEVEL) & (np.abs(self.displacement) >= LEAST_DRIFT)

    def columns(self) -> Columns:
        names = ("item", "n", "displacement", "se", "z", "p", "p_adjusted", "drifted")
        return {name: getattr(self, name) for name in names}

    def table(self, frame_kind: str | None = None) -> Table:
        """A row for each item: `item, n, displacement, se, z, p, p_adjusted, drifted`."""
        return make_table(self.columns(), frame_kind)

    def records(self) -> list[dict[str, Any]]:
        """The items that have drifted, farthest first, as data."""
        order = np.flatnonzero(self.drifted)
        order = order[np.argsort(-np.abs(self.displacement[order]), kind="stable")]
        columns = {name: values[order] for name, values in self.columns().items() if name != "drifted"}
        return rows_of(columns)

    @property
    def findings(self) -> list[Finding]:
        """One, where items have drifted."""
        moved = self.records()
        if not moved:
            return []
        sizes = [f"{listed([row['item']])} {row['displacement']:+.2f} (se {row['se']:.2f})" for row in moved]
        what = count(len(moved), "item has", "items have")
        sentence = (
            f"{what} drifted, of {len(self.item):,} in the new responses (+: harder than in the bank; significant "
            f"after Holm, by {LEAST_DRIFT:g} logits or more): {first_few(sizes)}."
        )
        remedy = (
            "Look for a wrong key, a changed item or another file. If an item has changed, give it another label in "
            "the new responses; if the responses are wrong, leave them out."
        )
        return [Finding(DRIFTED, "warning", sentence, remedy, tuple(row["item"] for row in moved))]


class ItemSums(NamedTuple):
    """For each item, moved by some d from where it is: the sum of its responses, what is expected, its variance, and
    the sum of log sum_c p_c exp(-c d)."""

    observed: Floats
    expected: Floats
    variance: Floats
    log_total: Floats


class Displacements(NamedTuple):
    """For each item: how far from the bank these responses put it, the information there, the sum of responses that it
    was compared by (half a point nearer to the expected one), the log-likelihood of that at its largest, and where the
    item stood when it was compared."""

    displacement: Floats
    information: Floats
    target: Floats
    log_likelihood: Floats
    shift: Floats

    def se(self, errors: BankErrors) -> Floats:
        """Standard errors of the displacements, those of the bank in them."""
        return np.sqrt(1 / self.information + errors.variance)


class BankErrors(NamedTuple):
    """What the bank's errors add to the variance of each displacement; and the share of the highest score that its
    people reached."""

    variance: Floats
    share: Floats

    @property
    def people(self) -> Floats:
        """Of one ability, who would tell as much; infinitely many where the bank is exact."""
        p = self.share
        return np.divide(1.0, self.variance * p * (1 - p), out=np.full(len(p), np.inf), where=self.variance > 0)


NOTHING = Drift(label_array([]), np.empty(0, dtype=np.int64), *np.empty((5, 0)))


def drift(bank: Bank, responses: Responses, *, screen: bool = False) -> Drift:
    """How far these responses, in the items and categories of the bank, put each item from where the bank has it.

    No item is compared where fewer than two of those that the bank has measured were answered. With `screen`, the
    bank's errors are left out where no item has drifted even without them.
    """
    calibration = bank.calibration
    tested = calibration.measured & (responses.item_counts > 0)
    if tested.sum() < 2:
        return NOTHING
    responses = responses.take_items(tested)
    if not responses.informative.any():
        return NOTHING
    thresholds = calibration.thresholds[calibration.layout.of_items(np.flatnonzero(tested))]
    likelihood = Likelihood(responses, thresholds)
    point = likelihood.at(thresholds)
    share = (calibration.score / np.maximum(calibration.n * calibration.layout.max_score, 1))[tested]
    no_errors = BankErrors(np.zeros(responses.n_items), np.clip(share, LEAST_SHARE, 1 - LEAST_SHARE))
    displacements = _displacements(point, np.zeros(responses.n_items))
    if screen:
        result = _result(responses, point, displacements, no_errors)
        if not result.drifted.any():
            return result
    errors = no_errors._replace(variance=_variance_of_bank(bank, tested, point))
    point, displacements = _with_drifted_free(likelihood, displacements, errors)
    return _result(responses, point, displacements, errors)


def _result(responses: Responses, point: Point, displacements: Displacements, errors: BankErrors) -> Drift:
    z = _roots(point, displacements, errors)
    p = two_sided(z)
    return Drift(
        item=responses.items,
        n=responses.item_counts,
        displacement=displacements.displacement,
        se=displacements.se(errors),
        z=z,
        p=p,
        p_adjusted=adjust_p(p, "holm"),
    )


class _Compared(NamedTuple):
    """The likelihood at some thresholds, and how far it puts every item from the bank."""

    point: Point
    displacements: Displacements


def _with_drifted_free(likelihood: Likelihood, displacements: Displacements, errors: BankErrors) -> _Compared:
    """The likelihood where the items that most do not agree with are set free, and every item against the bank; the
    `displacements` given are those with none set free."""
    point = likelihood.point
    assert point is not None
    thresholds = point.beta
    for _ in range(ROUNDS):
        informed = np.isfinite(displacements.displacement)
        if informed.sum() < FEWEST:
            break
        se = displacements.se(errors)
        agrees = np.ones(len(informed), dtype=bool)
        center = robust_center(
            displacements.displacement[informed], JointErrors.independent(se[informed]), excess=False
        )
        agrees[informed] = center.agrees
        weight = np.where(informed & agrees, displacements.information, 0.0)
        mean = float(weight @ np.nan_to_num(displacements.displacement)) / weight.sum()
        shift = np.where(agrees, 0.0, displacements.displacement - mean)
        change = np.abs(shift - displacements.shift) * np.sqrt(np.nan_to_num(displacements.information))
        if np.all(change < CLOSE):
            break
        point = likelihood.at(thresholds + shift[likelihood.layout.item])
        displacements = _displacements(point, shift)
    return _Compared(point, displacements)


def _displacements(point: Point, shift: Floats) -> Displacements:
    """Of every item by itself, at thresholds where it stands `shift` from the bank; NaN without information."""
    at_bank = _sums(point, -shift)
    short = at_bank.expected - at_bank.observed  # above zero: harder than in the bank
    target = at_bank.observed + np.sign(short) * np.minimum(np.abs(short), HALF_A_POINT)
    moved = np.zeros(len(shift))  # from where the item stands
    sums = _sums(point, moved)
    for _ in range(STEPS):
        step = _step(sums.expected - target, sums.variance)
        moved = moved + step
        sums = _sums(point, moved)
        if np.all(np.abs(step) * np.sqrt(sums.variance) < CLOSE):
            break
    informed = (sums.variance > NO_INFORMATION) & (at_bank.variance > NO_INFORMATION)
    displacement = shift + moved + _step(sums.expected - sums.observed, sums.variance)
    return Displacements(
        displacement=np.where(informed, displacement, np.nan),
        information=np.where(informed, sums.variance, np.nan),
        target=target,
        log_likelihood=-moved * target - sums.log_total,
        shift=shift,
    )


def _step(lacking: Floats, variance: Floats) -> Floats:
    """Of Newton's method for each item; none without information."""
    step = safe_divide(lacking, variance, where_above=NO_INFORMATION)
    return np.clip(step, -LONGEST_STEP, LONGEST_STEP)


def _roots(point: Point, displacements: Displacements, errors: BankErrors) -> Floats:
    """Signed roots of the likelihood ratios of one d for the bank and the new responses, and of one for each."""
    p = errors.share
    is_exact = np.isinf(errors.people)
    n = np.where(is_exact, 0.0, errors.people)
    common = np.zeros(len(p))  # from the bank
    for step_number in range(STEPS):
        sums = _sums(point, common - displacements.shift)
        log_total = np.log1p(p * np.expm1(-common))
        share = p * np.exp(-common - log_total)
        step = _step(sums.expected - displacements.target + n * (share - p), sums.variance + n * share * (1 - share))
        step = np.where(is_exact, 0.0, step)
        if step_number and np.all(np.abs(step) * np.sqrt(sums.variance) < CLOSE):
            break
        common = common + step
    of_new = -(common - displacements.shift) * displacements.target - sums.log_total
    of_bank = -n * (p * common + log_total)
    gain = np.maximum(displacements.log_likelihood - of_new - of_bank, 0.0)
    root = np.sign(displacements.displacement) * np.sqrt(2 * gain)
    return np.where(np.isfinite(displacements.displacement), root, np.nan)


def _sums(point: Point, moved: Floats) -> ItemSums:
    return ItemSums(*point.rows_with_scores.sum(_sums_of_rows, point.tables, moved))


def _sums_of_rows(rows: PeopleRows, tables: Any, moved: Floats) -> tuple[Floats, ...]:
    answers = answers_given_score(rows, tables)
    score = np.arange(len(answers.p))
    odds = answers.p * np.exp(-score[:, None] * moved)[:, answers.items]
    total = odds.sum(axis=0)
    odds /= total
    expected = score @ odds
    variance = score**2 @ odds - expected**2
    return tuple(
        np.bincount(answers.items, weights=values, minlength=len(moved)).astype(np.float64)
        for values in (answers.category, expected, variance, np.log(total))
    )


def _variance_of_bank(bank: Bank, tested: Mask, point: Point) -> Floats:
    """(H V H)_ii / H_ii^2: what the bank's errors add to the variance of each displacement. A common error of all drops
    out, because the rows of H add to zero."""
    if bank.evidence.matrix is not None:
        added = _spread_by_matrix(bank, tested, point)
    else:
        added = _spread_by_probes(bank.calibration.se[tested], point)
    information = own_information(point)
    informed = information > NO_INFORMATION
    return np.divide(np.maximum(added, 0.0), information**2, out=np.zeros(len(information)), where=informed)


def _spread_by_matrix(bank: Bank, tested: Mask, point: Point) -> Floats:
    """The diagonal of H V H, with the joint errors of the bank."""
    calibration = bank.calibration
    errors = errors_of_bank(bank).errors.take(tested[calibration.layout.item])
    rows = point.dense()
    if not point.layout.binary:
        rows = np.add.reduceat(rows, point.layout.first, axis=0)
    spread = rows**2 @ errors.diagonal
    if errors.matrix is not None:
        spread += np.einsum("ij,ij->i", rows @ errors.matrix, rows)
    return spread


def _spread_by_probes(location_se: Floats, point: Point) -> Floats:
    """The diagonal of H V H with independent errors, by random ones: H itself is never formed."""
    se = np.nan_to_num(location_se, posinf=0.0)
    noise = np.random.default_rng(0).standard_normal((point.layout.n_items, PROBES))
    pull = point @ (se[:, None] * noise)[point.layout.item]
    return np.mean(np.add.reduceat(pull, point.layout.first, axis=0) ** 2, axis=1)
