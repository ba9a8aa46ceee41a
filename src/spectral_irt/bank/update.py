"""A bank after new responses, without the old ones.

With g' (b - beta) - (b - beta)' M (b - beta) / 2, what the old responses told (`evidence.py`), the thresholds b solve

    gradient of log L(new responses | scores)  +  g - M (b - beta)  =  gradient of the prior,

by Newton's method: the conditional likelihood of all new responses together with a quadratic. The prior is that of
calibrations; where it rests on empirical Bayes its precisions are renewed at the end, from everything. Before that the
new responses are compared with the bank, item by item (`drift.py`).

`Bank.update` and the command `update` call this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, DataSet
from spectral_irt.bank.components import components, groups_of, numbered_from, parts_before
from spectral_irt.bank.drift import DRIFTED, NOTHING, Drift, drift
from spectral_irt.bank.evidence import Evidence, Posterior, Precisions, Quadratic, Variances, is_matrix
from spectral_irt.bank.merge import with_room
from spectral_irt.calibration import MEASURED, Calibration
from spectral_irt.chain.prior import FEW_ANSWERS, Regularization, shift_of_step, with_effect
from spectral_irt.conditional.information import Point
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.newton import RENEWALS
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints, Mask, Thresholds
from spectral_irt.data.design import examine, tied_to
from spectral_irt.data.labels import positions
from spectral_irt.engine import LocalEngine, one_blas_thread
from spectral_irt.errors import BankError, DesignError, check_option
from spectral_irt.estimators.estimable import between_parts
from spectral_irt.numerics import LARGE, safe_divide
from spectral_irt.text import count, listed

REPEATS = ("error", "skip")
NEWTON_STEPS = 25
SETTLED = 1e-3  # standard errors that the last step may move a threshold
WEAK = 1.5  # variance of an item over 1 / information from which its ties with the others are weak
OUTDATED = ("regularization", "weak_links", "new_items", DRIFTED)  # findings about the update before


class BankUpdate(NamedTuple):
    """A bank after new responses, and how far these put its items from where it had them."""

    bank: Bank
    drift: Drift


def update(bank: Bank, responses: Any, *, repeats: str = "error", threads: int | None = None) -> Bank:
    """The bank after these responses; items it does not have are taken to be like those that their people met.

    Parameters
    ----------
    responses : Responses, array or dataframe
        New responses. At least one item must be of the bank.
    repeats : "error" or "skip"
        Data (of 30 people or more) that are in the bank already, as a whole: an error (default), or the bank comes back
        as it is. Single people are not recognized.
    threads : int, optional

    Notes
    -----
    The scale stays: anchored items do not move, and without any the mean of the items that were on the scale is kept.
    Standard errors shrink as the information grows, each in the ratio it had to the model's before; that of items which
    share no people with the others, directly or through others, is infinite, and a finding names them.

    A finding `drifted_items` names the items that the new responses put elsewhere than the bank, significantly after
    Holm and by 0.3 logits or more: `Bank.drift` has the numbers. The new bank has these responses in it all the same;
    do not save it if they are wrong.
    """
    return update_with_drift(bank, responses, repeats=repeats, threads=threads).bank


def update_with_drift(bank: Bank, responses: Any, *, repeats: str = "error", threads: int | None = None) -> BankUpdate:
    """The bank after these responses, and how far they put its items from where it had them; see `update`."""
    check_option("repeats", repeats, REPEATS)
    responses = bank._as_responses(responses)
    dataset = DataSet.of(responses, "update")
    earlier = dataset.in_bank(bank)
    if earlier is not None and repeats == "skip":
        return BankUpdate(bank, NOTHING)
    if earlier is not None:
        dataset.refuse_again(earlier, "The bank is unchanged.")
    _check_usable(bank, responses)
    extended = _with_items_of(bank, responses)
    aligned = extended._align(responses)
    if threads is not None:
        aligned = aligned.with_engine(LocalEngine(threads))
    job = _Update(extended, aligned)
    with one_blas_thread(with_scipy=extended.calibration.layout.n_entries > LARGE):
        comparison = drift(extended, aligned, screen=True)
        return BankUpdate(job.new_bank(job.solution(), dataset, comparison), comparison)


def _with_items_of(bank: Bank, responses: Responses) -> Bank:
    """The bank with room for the items of these responses that it does not have."""
    is_new = positions(responses.items, bank.items) < 0
    return with_room(
        bank,
        labels=responses.items[is_new].tolist(),
        max_score=responses.thresholds.max_score[is_new],
        codes=responses.category_codes()[is_new],
    )


def _check_usable(bank: Bank, responses: Responses) -> None:
    """An error where no response tells anything on the scale of the bank."""
    if not responses.n_responses:
        raise DesignError(f"{responses.source}: there is no new response to add. The bank is unchanged.")
    place = positions(responses.items, bank.items)
    in_bank = bank.calibration.known[place] & (place >= 0)
    if not (in_bank & (responses.item_counts > 0)).any():
        raise BankError(
            f"{responses.source}: none of its items ({listed(responses.items)}) has a difficulty in the bank, which "
            f"has {listed(bank.items[bank.calibration.known])}; the new answers say nothing on its scale. Check the "
            "labels."
        )
    if not responses.informative.any():
        raise DesignError(
            f"{responses.source}: everybody has the lowest or the highest score (all answers right or all wrong), "
            "which carries no information about difficulty. The bank is unchanged."
        )


class Counts(NamedTuple):
    """Responses of the bank and the new ones: for each item how many and their sum, and for each category of each item
    how many."""

    n: Ints
    score: Ints
    category_n: Floats


class Placement(NamedTuple):
    """A word about each item, and the number of its group of linked items."""

    status: NDArray[Any]
    group: Ints


class Parts(NamedTuple):
    """Which items share people, numbered: before the new responses, and with them."""

    before: Ints
    after: Ints


class Solution(NamedTuple):
    """The evidence of all responses at the new thresholds, and the precisions of the prior there."""

    evidence: Quadratic
    precisions: Precisions


@dataclass(frozen=True, eq=False)
class _Update:
    """One update: the bank with room for new items, and the new responses in its items and categories."""

    bank: Bank
    responses: Responses

    # --- the bank before, item by item ---

    @property
    def calibration(self) -> Calibration:
        return self.bank.calibration

    @property
    def layout(self) -> Thresholds:
        return self.calibration.layout

    @property
    def item(self) -> Ints:
        """The item of each threshold."""
        return self.layout.item

    @property
    def known(self) -> Mask:
        """Items that the bank has a difficulty of."""
        return self.calibration.known

    @property
    def is_linked(self) -> bool:
        """Whether the bank was brought to the scale of another."""
        return any(finding.code == "linked" for finding in self.calibration.findings)

    @cached_property
    def active(self) -> Mask:
        """Items that will have a difficulty."""
        return self.known | (self.responses.item_counts > 0)

    @cached_property
    def free(self) -> Mask:
        """Those of them that move."""
        return self.active & ~self.calibration.anchored

    @property
    def was_free(self) -> Mask:
        """Those of them that the bank has estimated."""
        return self.free & self.known

    @cached_property
    def on_scale(self) -> Mask:
        """The items that the scale is known by."""
        return self.known & ~np.isinf(self.calibration.se)

    @cached_property
    def counts(self) -> Counts:
        calibration = self.calibration
        new = self.responses
        category_n = calibration.category_n.copy()
        category_n[:, : new.category_counts.shape[1]] += np.nan_to_num(new.category_counts)
        return Counts(calibration.n + new.item_counts, calibration.score + new.item_scores, category_n)

    @property
    def n_below(self) -> Floats:
        """Responses in the category below each threshold."""
        return self.counts.category_n[self.item, self.layout.level - 1]

    @property
    def n_above(self) -> Floats:
        """Responses in the category above each threshold."""
        return self.counts.category_n[self.item, self.layout.level]

    @cached_property
    def parts(self) -> Parts:
        """Which items share people, before and after."""
        before = parts_before(
            self.kept_information,
            self.layout,
            self.bank.evidence.link_group,
            known=self.known,
            loose=np.isinf(self.calibration.se),
        )
        after = components(self.responses, before, "weak")
        return Parts(numbered_from(self.on_scale, before), numbered_from(self.on_scale, after))

    # --- the evidence before, and posteriors ---

    @cached_property
    def kept_information(self) -> Floats:
        """The bank's information matrix, or its blocks of items with a difficulty."""
        information = self.bank.evidence.matrix_or_blocks(self.layout)
        if is_matrix(information):
            return information
        return information * self.known[:, None, None]

    @property
    def kept_precisions(self) -> Precisions:
        """Of the bank's prior."""
        return Precisions(self.bank.evidence.prior_precision, self.bank.evidence.offset_precision)

    @cached_property
    def before(self) -> Quadratic:
        """What the bank knows; new items start at the mean of the others."""
        calibration = self.calibration
        evidence = self.bank.evidence
        layout = self.layout
        mean_difficulty = calibration.difficulty[self.known].mean()
        start = np.where(self.known[self.item], calibration.thresholds, mean_difficulty)
        without_squares = Quadratic(
            beta=start,
            information=self.kept_information,
            gradient=evidence.prior_gradient,
            mean_of_others=np.where(self.known, layout.mean(evidence.prior_mean), layout.mean(start)),
            squares=np.zeros(len(start)),
        )
        return replace(without_squares, squares=self._squares_before(without_squares))

    def _squares_before(self, without_squares: Quadratic) -> Floats:
        """Squared scores of the bank's own responses, such that its standard errors come out."""
        posterior = self._posterior_before(without_squares, self.kept_precisions)
        if self.is_linked:  # what its errors have beyond the model's is the link's
            return posterior.information
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.calibration.threshold_se**2 / posterior.variance().thresholds
        good = self.was_free[self.item] & np.isfinite(ratio) & (ratio > 0)
        usual = 1.0
        if good.any():
            usual = float(np.median(ratio[good]))
        return posterior.information * np.where(good, ratio, usual)

    @cached_property
    def fixed_prior(self) -> bool:
        """Whether the prior stays as asked; that there is none, only where the responses place every item."""
        evidence = self.bank.evidence
        placed = np.isin(self.placement.status[self.free], MEASURED).all()
        return evidence.fixed_prior and bool(evidence.prior_precision or placed)

    def _first_precisions(self) -> Precisions:
        """Of the prior that the new responses meet: the bank's, or where it had none, by empirical Bayes."""
        locations, offsets = self.kept_precisions
        if self.fixed_prior or (locations and (offsets or self.layout.binary)):
            return self.kept_precisions
        posterior = replace(self._posterior_before(self.before, Precisions(1.0, 1.0)), fixed_prior=False)
        for _ in range(RENEWALS):
            posterior = replace(posterior, precisions=posterior.renewed_precisions(self.n_below, self.n_above))
        return Precisions(locations or posterior.precisions.locations, offsets or posterior.precisions.offsets)

    def _posterior_before(self, kept: Quadratic, precisions: Precisions) -> Posterior:
        """The bank as it was."""
        return Posterior(
            layout=self.layout,
            kept=kept,
            new=None,
            beta=kept.beta,
            precisions=precisions,
            tied=self._linked_by_responses(self.calibration.category_n, self.calibration.status),
            fixed=~self.was_free[self.item],
            floating=self._part_of_threshold(self.parts.before),
            fixed_prior=self.bank.evidence.fixed_prior,
        )

    def _posterior_with(self, kept: Quadratic, new: Point, precisions: Precisions) -> Posterior:
        """The bank and the new responses, at the thresholds where these were looked at."""
        return replace(self._posterior_after(kept, precisions), new=new, beta=new.beta)

    def _posterior_after(self, kept: Quadratic, precisions: Precisions) -> Posterior:
        """All responses, when the new ones are part of the evidence."""
        return Posterior(
            layout=self.layout,
            kept=kept,
            new=None,
            beta=kept.beta,
            precisions=precisions,
            tied=self._linked_by_responses(self.counts.category_n, self.placement.status),
            fixed=~self.free[self.item],
            floating=self._part_of_threshold(self.parts.after),
            fixed_prior=self.fixed_prior,
        )

    def _linked_by_responses(self, category_n: Floats, status: NDArray[Any]) -> Mask:
        """Thresholds that responses link with the scale: of an item with an empty category those beside none."""
        level = self.layout.level
        both_seen = (category_n[self.item, level - 1] > 0) & (category_n[self.item, level] > 0)
        measured = np.isin(status, MEASURED)[self.item]
        return measured | ((status == "empty category")[self.item] & both_seen)

    def _part_of_threshold(self, parts: Ints) -> Ints:
        """For each threshold, its part where nothing determines the mean of that; -1 for others. With blocks alone
        every item stays where it is."""
        if self.bank.evidence.matrix is None:
            return np.full(self.layout.n_entries, -1)
        loose = self.free & ~np.isin(parts, parts[self.calibration.anchored])
        return np.where(loose, parts, -1)[self.item]

    # --- Newton's method ---

    def solution(self) -> Solution:
        """Newton's steps on the new responses and what was known, until nothing moves; then the prior is renewed."""
        precisions = self._first_precisions()
        beta = self.before.beta
        likelihood = Likelihood(self.responses, beta)
        for _ in range(NEWTON_STEPS):
            posterior = self._posterior_with(self.before, likelihood.at(beta), precisions)
            step = posterior.step()
            beta = beta + step
            if (np.abs(step) * np.sqrt(posterior.information) < SETTLED).all():
                break
        return self._with_renewed_prior(Solution(posterior.after(step), precisions))

    def _with_renewed_prior(self, solution: Solution) -> Solution:
        """Under the prior by empirical Bayes; there is none where every item has enough information of its own. A prior
        that was asked for stays as it is."""
        if self.fixed_prior:
            return solution
        evidence, precisions = solution
        for _ in range(RENEWALS):
            posterior = self._posterior_after(evidence, precisions)
            precisions = Precisions(0.0, 0.0)
            if posterior.prior.counts[~posterior.fixed].any():
                precisions = posterior.renewed_precisions(self.n_below, self.n_above)
            step = replace(posterior, precisions=precisions).step()
            evidence = posterior.after(step)
            if np.max(np.abs(step) * np.sqrt(posterior.information), initial=0.0) < SETTLED:
                break
        return Solution(evidence, precisions)

    # --- the bank after ---

    def new_bank(self, solution: Solution, dataset: DataSet, comparison: Drift) -> Bank:
        """The new bank: scale kept, standard errors, counts, status."""
        calibration = self.calibration
        item = self.item
        evidence = solution.evidence
        posterior = self._posterior_after(evidence, solution.precisions)
        offset = self._offset_of_scale(evidence.beta)[item]
        variance = self._variance(posterior)
        anchored_threshold = calibration.anchored[item]
        thresholds = np.where(self.active[item], evidence.beta - offset, np.nan)
        location_se = None
        item_information = posterior.information
        if not self.layout.binary:
            location_se = np.where(calibration.anchored, calibration.se, np.sqrt(variance.locations))
            with np.errstate(divide="ignore", invalid="ignore"):
                item_information = np.nan_to_num(1 / location_se**2, posinf=0.0)
        findings = self._findings_that_stay(variance)
        findings += comparison.findings
        findings += self._findings(posterior, variance)
        matrix = None
        blocks = None
        if evidence.has_matrix:
            matrix = evidence.information
        elif not self.layout.binary:
            blocks = evidence.information
        return replace(
            self.bank,
            calibration=calibration.with_free_thresholds().replace(
                thresholds=np.where(anchored_threshold, calibration.thresholds, thresholds),
                threshold_se=np.where(anchored_threshold, calibration.threshold_se, np.sqrt(variance.thresholds)),
                location_se=location_se,
                status=self.placement.status,
                n=self.counts.n,
                score=self.counts.score,
                category_n=self.counts.category_n,
                item_information=item_information,
                findings=tuple(findings),
            ),
            evidence=Evidence(
                information=posterior.information,
                prior_mean=posterior.means_of_others()[item] - offset,
                prior_gradient=np.where(self.free[item], evidence.gradient, 0.0),
                link_group=self.placement.group,
                prior_precision=solution.precisions.locations,
                offset_precision=solution.precisions.offsets,
                fixed_prior=self.fixed_prior,
                matrix=matrix,
                blocks=blocks,
            ),
            data=(*self.bank.data, dataset),
        )

    def _offset_of_scale(self, beta: Floats) -> Floats:
        """How far each part of the items has moved as a whole: those on the scale, or those known if none is."""
        part = self.parts.after
        has_scale = np.bincount(part, weights=self.on_scale)[part] > 0
        compared = np.where(has_scale, self.on_scale, self.known)
        before = np.where(compared, self.calibration.difficulty, 0.0)
        moved = np.where(compared, self.layout.mean(beta) - before, 0.0)
        mean = np.bincount(part, weights=moved) / np.maximum(np.bincount(part, weights=compared), 1)
        anchored_part = np.isin(part, part[self.calibration.anchored])
        return np.where(anchored_part, 0.0, mean[part])

    def _variance(self, posterior: Posterior) -> Variances:
        """Of thresholds and locations under the model, in the ratio that squared scores have to the information;
        infinite for parts without a link."""
        calibration = self.calibration
        model = posterior.variance()
        thresholds = model.thresholds * posterior.variance_ratio()
        if self.is_linked:
            thresholds = self._with_error_of_link(thresholds)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.layout.mean(thresholds / model.thresholds)
            locations = model.locations * ratio * self._location_ratio()
        uninformed = posterior.information <= 0  # nothing was learned: the errors stay
        thresholds[uninformed] = calibration.threshold_se[uninformed] ** 2
        some_uninformed = self.layout.sum(uninformed.astype(float)) > 0
        locations = np.where(some_uninformed, calibration.se**2, locations)
        unlinked = self._unlinked_parts()
        if unlinked[self.free].any():
            equal_means = bool(calibration.provenance.settings.get("assume_equal_means"))
            distance = between_parts(unlinked, posterior.precisions.locations or 1.0, equal_means)
            thresholds = thresholds + distance[self.item]
            locations = locations + distance
        return Variances(
            thresholds=np.where(self.free[self.item], thresholds, np.nan),
            locations=np.where(self.free, locations, np.nan),
        )

    def _with_error_of_link(self, variance: Floats) -> Floats:
        """Variances of thresholds with the error of the link, which responses do not lessen: what the bank's standard
        errors had beyond the model's."""
        before = self._posterior_before(self.before, self.kept_precisions).variance().thresholds
        of_link = np.where(self.was_free[self.item], self.calibration.threshold_se**2 - before, np.nan)
        of_link = np.where(np.isfinite(of_link), of_link, np.nanmedian(of_link))
        return np.maximum(variance + of_link, variance / 4)

    def _unlinked_parts(self) -> Ints:
        """The part of each item, 0 for the parts whose place on the scale is known: those with anchors, or the first
        where there are none."""
        part = self.parts.after
        anchored = self.calibration.anchored
        return np.where(np.isin(part, part[anchored]), 0, part + anchored.any())

    def _location_ratio(self) -> Floats:
        """What the links with other items add to the variances of locations, over what they add to thresholds. A matrix
        knows both; beside blocks, which take the others as given, the bank's standard errors tell."""
        none_added = np.ones(self.layout.n_items)
        if self.bank.evidence.matrix is not None or self.layout.binary or self.is_linked:
            return none_added
        calibration = self.calibration
        model = self._posterior_before(self.before, self.kept_precisions).variance()
        with np.errstate(divide="ignore", invalid="ignore"):
            of_thresholds = self.layout.mean(calibration.threshold_se**2 / model.thresholds)
            ratio = calibration.se**2 / model.locations / of_thresholds
        good = self.was_free & np.isfinite(ratio) & (ratio > 0)
        if not good.any():
            return none_added
        return np.where(good, ratio, np.median(ratio[good]))

    @cached_property
    def placement(self) -> Placement:
        """What is known of each item now. New responses link groups, and may bring new ones; of the words about an item
        the last that fits stays."""
        calibration = self.calibration
        layout = self.layout
        counts = self.counts
        status_of_new = examine(self.responses).status
        status = np.full(layout.n_items, "ok", dtype=object)
        status[(calibration.status == "no information") & (status_of_new != "ok")] = "no information"
        status[~self.known & (status_of_new == "no information")] = "no information"
        beside_empty = layout.sum(((self.n_below == 0) | (self.n_above == 0)).astype(float)) > 0
        status[(layout.max_score > 1) & beside_empty] = "empty category"
        status[counts.score == counts.n * layout.max_score] = "all right"
        status[counts.score == 0] = "all wrong"
        status[counts.n == 0] = "no responses"
        estimated = status == "ok"
        group = self.bank.evidence.link_group
        was_estimated = estimated & self.known
        untied = np.zeros(layout.n_items, dtype=bool)
        untied[layout.item[~tied_to(self.responses, self.known[self.item])]] = True
        if (estimated & ~self.known & untied).any() or group[was_estimated].any():
            group = groups_of(self.responses, np.where(was_estimated, group, -1), estimated)
            status[estimated & (group > 0)] = "unlinked"
        status[calibration.anchored] = "anchored"
        return Placement(status, group)

    # --- findings ---

    def _findings_that_stay(self, variance: Variances) -> list[Finding]:
        """Findings of the bank that the new responses do not put in question."""
        outdated = {*OUTDATED}
        if not np.isinf(variance.thresholds).any():
            outdated.add("disconnected")
        return [finding for finding in self.calibration.findings if finding.code not in outdated]

    def _findings(self, posterior: Posterior, variance: Variances) -> list[Finding]:
        inflation = variance.thresholds * (posterior.information + posterior.precisions.locations)
        return [
            *self._new_items(),
            *self._loose_items(inflation),
            *self._weak_links(inflation),
            *self._regularization(posterior),
        ]

    def _new_items(self) -> Iterator[Finding]:
        """Items that the bank did not have."""
        names = self.calibration.labels[self.active & ~self.known]
        if len(names):
            sentence = f"{count(len(names), 'item is', 'items are')} new in the bank: {listed(names)}."
            yield Finding("new_items", "note", sentence, "", tuple(names.tolist()))

    def _loose_items(self, inflation: Floats) -> Iterator[Finding]:
        """New items that nothing but the prior places."""
        loose = self.active & ~self.known & (self.placement.status != "ok")
        if not loose.any():
            return
        names = self.calibration.labels[loose]
        what = count(len(names), "new item rests", "new items rest")
        sentence = f"{what} on the prior alone, not tied to the bank by answers: {listed(names)}."
        if np.isinf(inflation[loose[self.item]]).any():
            sentence += " The standard error of items that share no people with the bank's is infinite."
        remedy = "Collect answers to them together with items of the bank."
        yield Finding("prior_only", "warning", sentence, remedy, tuple(names.tolist()))

    def _weak_links(self, inflation: Floats) -> Iterator[Finding]:
        """Variances far above 1 / information, where the bank has no matrix that would know the links."""
        if self.bank.evidence.matrix is not None or not np.nanmedian(inflation[self.free[self.item]]) > WEAK:
            return
        sentence = (
            "Groups of items are connected by few answers, and a bank of this many items keeps no record of which: in "
            "an update the distance between such groups moves too little."
        )
        yield Finding("weak_links", "warning", sentence, "Fit all data at once if they are at hand.")

    def _regularization(self, posterior: Posterior) -> Iterator[Finding]:
        """What the prior did, where there is one."""
        if not any(posterior.precisions):
            return
        noun = "item" if self.layout.binary else "threshold"
        plan = Regularization("neighbors", FEW_ANSWERS.format(noun), estimated=True)
        if self.fixed_prior:
            plan = Regularization("neighbors", "as asked", fixed=True)
        prior = posterior.prior
        gradient = posterior.kept.gradient
        information = posterior.information
        moved = safe_divide(gradient, information, where_above=1e-9)
        plan = with_effect(
            plan,
            prior,
            self.calibration.labels,
            (prior.counts > 0) & self.free[self.item],
            posterior.tied,
            shift_of_step(moved, self.n_below, self.n_above),
        )
        yield Finding("regularization", "note", str(plan))
