"""A bank after new responses, without the old ones.

What the old data said is kept as a quadratic (`evidence.py`). Newton's method solves the equations of the conditional
likelihood of all new responses together with it. The prior is that of calibrations. Before that the new responses are
compared with the bank, item by item (`drift.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, DataSet
from spectral_irt.bank.components import components, groups_of, numbered_from, parts_before
from spectral_irt.bank.drift import DRIFTED, NOTHING, Drift, drift
from spectral_irt.bank.evidence import Evidence, Posterior, Quadratic
from spectral_irt.bank.merge import with_room
from spectral_irt.calibration import MEASURED, Calibration
from spectral_irt.chain.prior import FEW_ANSWERS, Regularization, with_effect
from spectral_irt.conditional.information import Point
from spectral_irt.conditional.newton import RENEWALS, Likelihood
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.design import examine, tied_to
from spectral_irt.data.labels import positions
from spectral_irt.engine import LocalEngine
from spectral_irt.errors import BankError, DesignError, check_option
from spectral_irt.estimators.estimable import between_parts
from spectral_irt.text import count, listed

Mask = NDArray[np.bool_]

REPEATS = ("error", "skip")
NEWTON_STEPS = 25
SETTLED = 1e-3  # standard errors
WEAK = 1.5  # variance of an item over 1 / information from which its ties are weak
OUTDATED = ("regularization", "weak_links", "new_items", DRIFTED)  # findings about the update before


class Updated(NamedTuple):
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
    return updated(bank, responses, repeats=repeats, threads=threads).bank


def updated(bank: Bank, responses: Any, *, repeats: str = "error", threads: int | None = None) -> Updated:
    """The bank after these responses, and how far they put its items from where it had them; see `update`."""
    check_option("repeats", repeats, REPEATS)
    answers = bank._read(responses)
    dataset = DataSet.of(answers, "update")
    old = dataset.in_bank(bank)
    if old is not None and repeats == "skip":
        return Updated(bank, NOTHING)
    if old is not None:
        dataset.refuse_again(old, "The bank is unchanged.")
    _check_usable(bank, answers)
    new = positions(answers.items, bank.items) < 0
    whole = with_room(
        bank, answers.items[new].tolist(), answers.thresholds.max_score[new], answers.category_codes()[new]
    )
    aligned = whole._align(answers)
    job = _Job(whole, aligned if threads is None else aligned.using(LocalEngine(threads)))
    moved = drift(whole, job.answers, screen=True)
    return Updated(job.finish(job.solved(), dataset, moved), moved)


def _check_usable(bank: Bank, answers: Responses) -> None:
    if not answers.n_responses:
        raise DesignError(f"{answers.source}: there is no new response to add. The bank is unchanged.")
    place = positions(answers.items, bank.items)
    if not (bank.calibration.known[place] & (place >= 0) & (answers.item_counts > 0)).any():
        raise BankError(
            f"{answers.source}: none of its items ({listed(answers.items)}) has a difficulty in the bank, which has "
            f"{listed(bank.items[bank.calibration.known])}; the new answers say nothing on its scale. Check the labels."
        )
    if not answers.informative.any():
        raise DesignError(
            f"{answers.source}: everybody has the lowest or the highest score (all answers right or all wrong), which "
            "carries no information about difficulty. The bank is unchanged."
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
    """All that is known after the new responses, and the precisions of the prior (locations, offsets)."""

    state: Quadratic
    precisions: tuple[float, float]


@dataclass(frozen=True, eq=False)
class _Job:
    """One update: the bank with room for new items, and the new responses in its codes."""

    bank: Bank
    answers: Responses

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
    def linked(self) -> bool:
        """Whether the bank was brought to the scale of another."""
        return any(finding.code == "linked" for finding in self.calibration.findings)

    @cached_property
    def active(self) -> Mask:
        """Items that will have a difficulty."""
        return self.known | (self.answers.item_counts > 0)

    @cached_property
    def free(self) -> Mask:
        """Those of them that move."""
        return self.active & ~self.calibration.anchored

    @cached_property
    def on_scale(self) -> Mask:
        """The items that the scale is known by."""
        return self.known & ~np.isinf(self.calibration.se)

    @cached_property
    def counts(self) -> Counts:
        old, new = self.calibration, self.answers
        category_n = old.category_n.copy()
        category_n[:, : new.category_counts.shape[1]] += np.nan_to_num(new.category_counts)
        return Counts(old.n + new.item_counts, old.score + new.item_scores, category_n)

    @property
    def below(self) -> Floats:
        """Responses in the category below each threshold."""
        return self.counts.category_n[self.item, self.layout.level - 1]

    @property
    def above(self) -> Floats:
        """Responses in the category above each threshold."""
        return self.counts.category_n[self.item, self.layout.level]

    @cached_property
    def kept_information(self) -> Floats:
        """The bank's information matrix, or its blocks of items with a difficulty."""
        information = self.bank.evidence.matrix_or_blocks(self.layout)
        return information * self.known[:, None, None] if information.ndim == 3 else information

    @cached_property
    def parts(self) -> Parts:
        group, loose = self.bank.evidence.link_group, np.isinf(self.calibration.se)
        together = parts_before(self.kept_information, self.layout, group, self.known, loose)
        with_new = components(self.answers, together, "weak")
        return Parts(numbered_from(self.on_scale, together), numbered_from(self.on_scale, with_new))

    @property
    def kept_precisions(self) -> tuple[float, float]:
        """Of the bank's prior."""
        return self.bank.evidence.prior_precision, self.bank.evidence.offset_precision

    @cached_property
    def before(self) -> Quadratic:
        """What the bank knows; new items start at the mean of the others."""
        calibration, evidence, layout = self.calibration, self.bank.evidence, self.layout
        start = np.where(self.known[self.item], calibration.thresholds, calibration.difficulty[self.known].mean())
        level = np.where(self.known, layout.mean(evidence.prior_mean), layout.mean(start))
        without_squares = Quadratic(
            start, self.kept_information, evidence.prior_gradient, level, squares=np.zeros(len(start))
        )
        return replace(without_squares, squares=self._squares(without_squares))

    @cached_property
    def fixed_prior(self) -> bool:
        """Whether the prior stays as asked; that there is none, only where the responses place every item."""
        evidence = self.bank.evidence
        placed = np.isin(self.placement.status[self.free], MEASURED).all()
        return evidence.fixed_prior and bool(evidence.prior_precision or placed)

    def first_precisions(self) -> tuple[float, float]:
        """Of the prior that the new responses meet: the bank's, or where it had none, by empirical Bayes."""
        locations, offsets = self.kept_precisions
        if self.fixed_prior or (locations and (offsets or self.layout.binary)):
            return locations, offsets
        here = replace(self._at_bank(self.before, (1.0, 1.0)), fixed_prior=False)
        for _ in range(RENEWALS):
            here = replace(here, precisions=here.renewed(self.below, self.above))
        return locations or here.precisions[0], offsets or here.precisions[1]

    def _at_bank(self, known: Quadratic, precisions: tuple[float, float]) -> Posterior:
        """The bank as it was."""
        return Posterior(
            layout=self.layout,
            kept=known,
            answers=None,
            beta=known.beta,
            precisions=precisions,
            tied=self._tied(self.calibration.category_n, self.calibration.status),
            fixed=~(self.free & self.known)[self.item],
            floating=self._floating(self.parts.before),
            fixed_prior=self.bank.evidence.fixed_prior,
        )

    def _with(self, known: Quadratic, new: Point | None, beta: Floats, precisions: tuple[float, float]) -> Posterior:
        """The bank and the new responses, or all of them where they have been added."""
        return Posterior(
            layout=self.layout,
            kept=known,
            answers=new,
            beta=beta,
            precisions=precisions,
            tied=self._tied(self.counts.category_n, self.placement.status),
            fixed=~self.free[self.item],
            floating=self._floating(self.parts.after),
            fixed_prior=self.fixed_prior,
        )

    def _tied(self, category_n: Floats, status: NDArray[Any]) -> Mask:
        """Thresholds that answers link with the scale: of an item with an empty category those beside none."""
        level = self.layout.level
        seen = (category_n[self.item, level - 1] > 0) & (category_n[self.item, level] > 0)
        return np.isin(status, MEASURED)[self.item] | ((status == "empty category")[self.item] & seen)

    def _floating(self, parts: Ints) -> Ints:
        """Parts whose mean nothing determines; with blocks alone every item stays where it is."""
        loose = self.free & ~np.isin(parts, parts[self.calibration.anchored])
        return np.where(loose & (self.bank.evidence.matrix is not None), parts, -1)[self.item]

    def solved(self) -> Solution:
        """Newton's steps on the new answers and what was known, until nothing moves; then the prior is settled."""
        precisions = self.first_precisions()
        beta = self.before.beta
        likelihood = Likelihood(self.answers, beta)
        for _ in range(NEWTON_STEPS):
            here = self._with(self.before, likelihood.at(beta), beta, precisions)
            step = here.step()
            beta = beta + step
            if (np.abs(step) * np.sqrt(here.data) < SETTLED).all():
                break
        return self._settled(Solution(here.after(step), precisions))

    def _settled(self, solution: Solution) -> Solution:
        """Under the prior by empirical Bayes; there is none where every item has enough information of its own. A prior
        that was asked for stays as it is."""
        if self.fixed_prior:
            return solution
        state, precisions = solution
        for _ in range(RENEWALS):
            here = self._with(state, None, state.beta, precisions)
            needed = here.prior.counts[~here.fixed].any()
            precisions = here.renewed(self.below, self.above) if needed else (0.0, 0.0)
            step = replace(here, precisions=precisions).step()
            state = here.after(step)
            if np.max(np.abs(step) * np.sqrt(here.data), initial=0.0) < SETTLED:
                break
        return Solution(state, precisions)

    def finish(self, solution: Solution, dataset: DataSet, moved: Drift) -> Bank:
        """The new bank: scale kept, standard errors, counts, status."""
        calibration, item = self.calibration, self.item
        state, anchored = solution.state, calibration.anchored
        here = self._with(state, None, state.beta, solution.precisions)
        offset = self._offset_of_scale(state.beta)[item]
        variance, of_locations = self._variance(here)
        findings = [*moved.findings, *self._findings(here, variance, state.gradient)]
        outdated = (*OUTDATED, *(() if np.isinf(variance).any() else ("disconnected",)))
        thresholds = np.where(self.active[item], state.beta - offset, np.nan)
        information, location_se = here.data, None
        if not self.layout.binary:
            location_se = np.where(anchored, calibration.se, np.sqrt(of_locations))
            with np.errstate(divide="ignore", invalid="ignore"):
                information = np.nan_to_num(1 / location_se**2, posinf=0.0)
        whole_matrix = state.information.ndim == 2
        return replace(
            self.bank,
            calibration=calibration.with_free_thresholds().replace(
                thresholds=np.where(anchored[item], calibration.thresholds, thresholds),
                threshold_se=np.where(anchored[item], calibration.threshold_se, np.sqrt(variance)),
                location_se=location_se,
                status=self.placement.status,
                n=self.counts.n,
                score=self.counts.score,
                category_n=self.counts.category_n,
                item_information=information,
                findings=(*(old for old in calibration.findings if old.code not in outdated), *findings),
            ),
            evidence=Evidence(
                information=here.data,
                prior_mean=here.levels()[item] - offset,
                prior_gradient=np.where(self.free[item], state.gradient, 0.0),
                link_group=self.placement.group,
                prior_precision=solution.precisions[0],
                offset_precision=solution.precisions[1],
                fixed_prior=self.fixed_prior,
                matrix=state.information if whole_matrix else None,
                blocks=None if whole_matrix or self.layout.binary else state.information,
            ),
            data=(*self.bank.data, dataset),
        )

    def _offset_of_scale(self, beta: Floats) -> Floats:
        """How far each part of the items has moved as a whole: those on the scale, or those known if none is."""
        part, location = self.parts.after, self.layout.mean(beta)
        placed = np.where(np.bincount(part, weights=self.on_scale)[part] > 0, self.on_scale, self.known)
        moved = np.where(placed, location - np.where(placed, self.calibration.difficulty, 0.0), 0.0)
        mean = np.bincount(part, weights=moved) / np.maximum(np.bincount(part, weights=placed), 1)
        return np.where(np.isin(part, part[self.calibration.anchored]), 0.0, mean[part])

    def _squares(self, known: Quadratic) -> Floats:
        """Squared scores of the bank's own answers, such that its standard errors come out."""
        here = self._at_bank(known, self.kept_precisions)
        if self.linked:  # what its errors have beyond the model's is the link's
            return here.data
        with np.errstate(divide="ignore", invalid="ignore"):
            old = (self.known & self.free)[self.item]
            ratio = np.where(old, self.calibration.threshold_se**2 / here.variance()[0], np.nan)
        good = np.isfinite(ratio) & (ratio > 0)
        usual = float(np.median(ratio[good])) if good.any() else 1.0
        return here.data * np.where(good, ratio, usual)

    def _variance(self, here: Posterior) -> tuple[Floats, Floats]:
        """Of thresholds and locations under the model, in the ratio that squared scores have to the information;
        infinite for parts without a link."""
        calibration, item, anchored = self.calibration, self.item, self.calibration.anchored
        model, location = here.variance()
        after = model * here.ratio()
        if self.linked:  # answers do not lessen the link's error
            before = self._at_bank(self.before, self.kept_precisions).variance()[0]
            added = np.where((self.known & self.free)[item], calibration.threshold_se**2 - before, np.nan)
            after = np.maximum(after + np.where(np.isfinite(added), added, np.nanmedian(added)), after / 4)
        with np.errstate(divide="ignore", invalid="ignore"):
            location = location * self.layout.mean(after / model) * self._location_ratio()
        nothing = here.data <= 0  # nothing new
        after[nothing] = calibration.threshold_se[nothing] ** 2
        location = np.where(self.layout.sum(nothing.astype(float)) > 0, calibration.se**2, location)
        part = self.parts.after
        unlinked = np.where(np.isin(part, part[anchored]), 0, part + anchored.any())
        if unlinked[self.free].any():
            equal_means = bool(calibration.provenance.settings.get("assume_equal_means"))
            unknown = between_parts(unlinked, here.precisions[0] or 1.0, equal_means)
            after, location = after + unknown[item], location + unknown
        return np.where(self.free[item], after, np.nan), np.where(self.free, location, np.nan)

    def _location_ratio(self) -> Floats:
        """What the links with other items add to the variances of locations, over what they add to thresholds. A matrix
        knows both; beside blocks, which take the others as given, the bank's standard errors tell."""
        ratio = np.ones(self.layout.n_items)
        if self.bank.evidence.matrix is not None or self.layout.binary or self.linked:
            return ratio
        calibration = self.calibration
        threshold, location = self._at_bank(self.before, self.kept_precisions).variance()
        with np.errstate(divide="ignore", invalid="ignore"):
            told = calibration.se**2 / location / self.layout.mean(calibration.threshold_se**2 / threshold)
        good = self.known & self.free & np.isfinite(told) & (told > 0)
        return np.where(good, told, np.median(told[good])) if good.any() else ratio

    @cached_property
    def placement(self) -> Placement:
        """New answers link groups, and may bring new ones."""
        calibration, layout, counts = self.calibration, self.layout, self.counts
        now = examine(self.answers).status
        status = np.full(layout.n_items, "ok", dtype=object)
        status[(calibration.status == "no information") & (now != "ok")] = "no information"
        status[~self.known & (now == "no information")] = "no information"
        beside_empty = layout.sum(((self.below == 0) | (self.above == 0)).astype(float)) > 0
        status[(layout.max_score > 1) & beside_empty] = "empty category"
        status[counts.score == counts.n * layout.max_score] = "all right"
        status[counts.score == 0] = "all wrong"
        status[counts.n == 0] = "no responses"
        estimated = status == "ok"
        group = self.bank.evidence.link_group
        old = estimated & self.known
        untied = np.zeros(len(status), dtype=bool)
        untied[layout.item[~tied_to(self.answers, self.known[self.item])]] = True
        if (estimated & ~self.known & untied).any() or group[old].any():
            group = groups_of(self.answers, np.where(old, group, -1), estimated)
            status[estimated & (group > 0)] = "unlinked"
        status[calibration.anchored] = "anchored"
        return Placement(status, group)

    def _findings(self, here: Posterior, variance: Floats, pull: Floats) -> list[Finding]:
        inflation = variance * (here.data + here.precisions[0])
        return [*self._new_items(inflation), *self._weak_links(inflation), *self._regularization(here, pull)]

    def _new_items(self, inflation: Floats) -> list[Finding]:
        """Items that the bank did not have; and those of them that nothing but the prior places."""
        out, new = [], self.active & ~self.known
        if new.any():
            names = self.calibration.labels[new]
            sentence = f"{count(len(names), 'item is', 'items are')} new in the bank: {listed(names)}."
            out.append(Finding("new_items", "note", sentence, "", tuple(names.tolist())))
        loose = new & (self.placement.status != "ok")
        if loose.any():
            names = self.calibration.labels[loose]
            what = count(len(names), "new item rests", "new items rest")
            sentence = f"{what} on the prior alone, not tied to the bank by answers: {listed(names)}."
            if np.isinf(inflation[loose[self.item]]).any():
                sentence += " The standard error of items that share no people with the bank's is infinite."
            remedy = "Collect answers to them together with items of the bank."
            out.append(Finding("prior_only", "warning", sentence, remedy, tuple(names.tolist())))
        return out

    def _weak_links(self, inflation: Floats) -> list[Finding]:
        if self.bank.evidence.matrix is not None or not np.nanmedian(inflation[self.free[self.item]]) > WEAK:
            return []
        sentence = (
            "Groups of items are connected by few answers, and a bank of this many items keeps no record of which: in "
            "an update the distance between such groups moves too little."
        )
        return [Finding("weak_links", "warning", sentence, "Fit all data at once if they are at hand.")]

    def _regularization(self, here: Posterior, pull: Floats) -> list[Finding]:
        """What the prior did, where there is one."""
        if not any(here.precisions):
            return []
        prior, information = here.prior, here.data
        step = np.divide(pull, information, out=np.zeros(len(pull)), where=information > 1e-9)
        what = "item" if self.layout.binary else "threshold"
        plan = Regularization("neighbors", FEW_ANSWERS.format(what), estimated=True)
        if self.fixed_prior:
            plan = Regularization("neighbors", "as asked", fixed=True)
        acts = (prior.counts > 0) & self.free[self.item]
        plan = with_effect(plan, prior, self.calibration.labels, acts, here.tied, step, (self.below, self.above))
        return [Finding("regularization", "note", str(plan))]
