"""A bank after new answers, without the old ones.

What the old data said is kept as a quadratic (`evidence.py`). Newton's method solves the equations of the conditional
likelihood of all new answers together with it. The prior is that of calibrations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, DataSet
from spectral_irt.bank.build import with_room
from spectral_irt.bank.components import components, groups_of, numbered_from, parts_before
from spectral_irt.bank.evidence import Evidence, Posterior, Quadratic
from spectral_irt.calibration import MEASURED, Calibration
from spectral_irt.chain.prior import FEW_ANSWERS, Regularization, acted
from spectral_irt.conditional.information import Point
from spectral_irt.conditional.newton import RENEWALS, Likelihood
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import examine, tied_to
from spectral_irt.data.labels import positions
from spectral_irt.engine import LocalEngine
from spectral_irt.errors import BankError, DesignError, check_option
from spectral_irt.estimators.estimable import between_parts
from spectral_irt.text import count, listed

REPEATS = ("error", "skip")
NEWTON_STEPS = 25
SETTLED = 1e-3  # standard errors
WEAK = 1.5  # variance of an item over 1 / information from which its ties are weak
OUTDATED = ("regularization", "weak_links", "new_items")


def update(bank: Bank, responses: Any, *, repeats: str = "error", threads: int | None = None) -> Bank:
    """The bank after these answers; items it does not have are taken to be like those that their people met.

    Parameters
    ----------
    responses : Responses, array or dataframe
        New answers. At least one item must be of the bank.
    repeats : "error" or "skip"
        Data (of 30 people or more) that are in the bank already, as a whole: an error (default), or the bank comes back
        as it is. Single people are not recognized.
    threads : int, optional

    Notes
    -----
    The scale stays: anchored items do not move, and without any the mean of the items that were on the scale is kept.
    Standard errors shrink as the information grows, each in the ratio it had to the model's before; that of items which
    share no people with the others, directly or through others, is infinite, and a finding names them.
    """
    check_option("repeats", repeats, REPEATS)
    answers = bank._read(responses)
    dataset = DataSet.of(answers, "update")
    old = dataset.in_bank(bank)
    if old is not None and repeats == "skip":
        return bank
    if old is not None:
        dataset.refuse_again(old, "The bank is unchanged.")
    _check_usable(bank, answers)
    new = positions(answers.items, bank.items) < 0
    whole = with_room(
        bank, answers.items[new].tolist(), answers.thresholds.max_score[new], answers.category_codes()[new]
    )
    aligned = whole._align(answers)
    job = _Job(whole, aligned if threads is None else aligned.using(LocalEngine(threads)))
    return job.finish(job.solved(), dataset)


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


class _Job:
    """One update: the bank with room for new items, and the new answers in its codes."""

    def __init__(self, bank: Bank, answers: Responses) -> None:
        made, kept = bank.calibration, bank.evidence
        self.bank, self.made, self.layout, self.answers = bank, made, made.layout, answers
        self.item = item = made.layout.item
        self.known = known = made.known
        self.linked = any(finding.code == "linked" for finding in made.findings)
        self.active = known | (answers.item_counts > 0)
        self.free = self.active & ~made.anchored
        self.n, self.score = made.n + answers.item_counts, made.score + answers.item_scores
        self.category_n = made.category_n.copy()
        counts = answers.category_counts
        self.category_n[:, : counts.shape[1]] += np.nan_to_num(counts)
        self.low = self.category_n[item, made.layout.level - 1]
        self.high = self.category_n[item, made.layout.level]
        self.status, self.group = self._status()
        information = kept.known(made.layout)
        if information.ndim == 3:
            information = information * known[:, None, None]
        together = parts_before(information, made.layout, kept.link_group, known, np.isinf(made.se))
        self.scale = known & ~np.isinf(made.se)  # the items that the scale is known by
        self.old_part = numbered_from(self.scale, together)
        self.part = numbered_from(self.scale, components(answers, together, "weak"))
        start = np.where(known[item], made.thresholds, made.difficulty[known].mean())
        level = np.where(known, made.layout.mean(kept.prior_mean), made.layout.mean(start))
        self.kept_precisions = self.precisions = (kept.prior_precision, kept.offset_precision)
        self.before = Quadratic(start, information, kept.prior_gradient, level, np.zeros(len(start)))
        self.before = replace(self.before, squares=self._squares())
        if not all(self.precisions[: 1 if made.layout.binary else 2]):
            here = self._before((1.0, 1.0))
            for _ in range(RENEWALS):
                here = replace(here, precisions=here.renewed(self.low, self.high))
            found = here.precisions
            self.precisions = (self.precisions[0] or found[0], self.precisions[1] or found[1])

    def _before(self, precisions: tuple[float, float]) -> Posterior:
        """The bank as it was."""
        kept, tied = self.before, self._tied(self.made)
        fixed = ~(self.free & self.known)[self.item]
        return Posterior(self.layout, kept, None, kept.beta, precisions, tied, fixed, self._floating(True))

    def _with(self, kept: Quadratic, new: Point | None, beta: Floats) -> Posterior:
        tied, fixed = self._tied(self), ~self.free[self.item]
        return Posterior(self.layout, kept, new, beta, self.precisions, tied, fixed, self._floating())

    def _tied(self, of: Calibration | _Job) -> NDArray[np.bool_]:
        """Thresholds that answers link with the scale: of an item with an empty category those beside none."""
        counts = of.category_n
        seen = (counts[self.item, self.layout.level - 1] > 0) & (counts[self.item, self.layout.level] > 0)
        return np.isin(of.status, MEASURED)[self.item] | ((of.status == "empty category")[self.item] & seen)

    def _floating(self, before: bool = False) -> Ints:
        """Parts whose mean nothing determines; with blocks alone every item stays where it is."""
        parts, anchored = self.old_part if before else self.part, self.made.anchored
        loose = self.free & ~np.isin(parts, parts[anchored]) & (self.bank.evidence.matrix is not None)
        return np.where(loose, parts, -1)[self.item]

    def solved(self) -> Quadratic:
        """Newton's steps on the new answers and what was known, until nothing moves; then the prior is settled."""
        beta = self.before.beta
        likelihood = Likelihood(self.answers, beta)
        for _ in range(NEWTON_STEPS):
            here = self._with(self.before, likelihood.at(beta), beta)
            step = here.step()
            beta = beta + step
            if (np.abs(step) * np.sqrt(here.data) < SETTLED).all():
                break
        return self._settled(here.after(step))

    def _settled(self, state: Quadratic) -> Quadratic:
        """Under the prior by empirical Bayes; there is none where every item has enough information of its own."""
        for _ in range(RENEWALS):
            here = self._with(state, None, state.beta)
            needed = here.prior.counts[~here.fixed].any()
            self.precisions = here.renewed(self.low, self.high) if needed else (0.0, 0.0)
            step = replace(here, precisions=self.precisions).step()
            state = here.after(step)
            if np.max(np.abs(step) * np.sqrt(here.data), initial=0.0) < SETTLED:
                break
        return state

    def finish(self, state: Quadratic, dataset: DataSet) -> Bank:
        """The new bank: scale kept, standard errors, counts, status."""
        bank, made, item, anchored = self.bank, self.made, self.item, self.made.anchored
        here = self._with(state, None, state.beta)
        drift = self._drift(state.beta)[item]
        variance, of_locations = self._variance(here)
        findings = self._findings(here, variance, state.gradient)
        outdated = (*OUTDATED, *(() if np.isinf(variance).any() else ("disconnected",)))
        found = np.where(self.active[item], state.beta - drift, np.nan)
        information, location_se = here.data, None
        if not self.layout.binary:
            location_se = np.where(anchored, made.se, np.sqrt(of_locations))
            with np.errstate(divide="ignore", invalid="ignore"):
                information = np.nan_to_num(1 / location_se**2, posinf=0.0)
        return replace(
            bank,
            calibration=made.with_free_thresholds().replace(
                thresholds=np.where(anchored[item], made.thresholds, found),
                threshold_se=np.where(anchored[item], made.threshold_se, np.sqrt(variance)),
                location_se=location_se,
                status=self.status,
                n=self.n,
                score=self.score,
                category_n=self.category_n,
                item_information=information,
                findings=(*(old for old in made.findings if old.code not in outdated), *findings),
            ),
            evidence=Evidence(
                here.data,
                here.levels()[item] - drift,
                np.where(self.free[item], state.gradient, 0.0),
                self.group,
                *self.precisions,
                state.information if state.information.ndim == 2 else None,
                None if state.information.ndim == 2 or self.layout.binary else state.information,
            ),
            data=(*bank.data, dataset),
        )

    def _drift(self, beta: Floats) -> Floats:
        """How far each part of the items has moved as a whole: those on the scale, or those known if none is."""
        part, made, place = self.part, self.made, self.layout.mean(beta)
        placed = np.where(np.bincount(part, weights=self.scale)[part] > 0, self.scale, self.known)
        moved = np.where(placed, place - np.where(placed, made.difficulty, 0.0), 0.0)
        mean = np.bincount(part, weights=moved) / np.maximum(np.bincount(part, weights=placed), 1)
        return np.where(np.isin(part, part[made.anchored]), 0.0, mean[part])

    def _squares(self) -> Floats:
        """Squared scores of the bank's own answers, such that its standard errors come out."""
        here = self._before(self.kept_precisions)
        if self.linked:  # what its errors have beyond the model's is the link's
            return here.data
        with np.errstate(divide="ignore", invalid="ignore"):
            old = (self.known & self.free)[self.item]
            ratio = np.where(old, self.made.threshold_se**2 / here.variance()[0], np.nan)
        good = np.isfinite(ratio) & (ratio > 0)
        usual = float(np.median(ratio[good])) if good.any() else 1.0
        return here.data * np.where(good, ratio, usual)

    def _variance(self, here: Posterior) -> tuple[Floats, Floats]:
        """Of thresholds and locations under the model, in the ratio that squared scores have to the information;
        infinite for parts without a link."""
        made, item, anchored = self.made, self.item, self.made.anchored
        model, location = here.variance()
        after = model * here.ratio()
        if self.linked:  # answers do not lessen the link's error
            before = self._before(self.kept_precisions).variance()[0]
            added = np.where((self.known & self.free)[item], made.threshold_se**2 - before, np.nan)
            after = np.maximum(after + np.where(np.isfinite(added), added, np.nanmedian(added)), after / 4)
        with np.errstate(divide="ignore", invalid="ignore"):
            location = location * self.layout.mean(after / model)
        nothing = here.data <= 0  # nothing new
        after[nothing] = made.threshold_se[nothing] ** 2
        location = np.where(self.layout.sum(nothing.astype(float)) > 0, made.se**2, location)
        unlinked = np.where(np.isin(self.part, self.part[anchored]), 0, self.part + anchored.any())
        if unlinked[self.free].any():
            equal_means = bool(made.provenance.settings.get("assume_equal_means"))
            unknown = between_parts(unlinked, self.precisions[0] or 1.0, equal_means)
            after, location = after + unknown[item], location + unknown
        return np.where(self.free[item], after, np.nan), np.where(self.free, location, np.nan)

    def _status(self) -> tuple[NDArray[Any], Ints]:
        """A word about each item, and its group: new answers link groups, and may bring new ones."""
        made, layout = self.made, self.layout
        now = examine(self.answers).status
        status = np.full(len(self.n), "ok", dtype=object)
        status[(made.status == "no information") & (now != "ok")] = "no information"
        status[~self.known & (now == "no information")] = "no information"
        status[(layout.max_score > 1) & (layout.sum(((self.low == 0) | (self.high == 0)).astype(float)) > 0)] = (
            "empty category"
        )
        status[self.score == self.n * layout.max_score] = "all right"
        status[self.score == 0] = "all wrong"
        status[self.n == 0] = "no responses"
        estimated = status == "ok"
        group = self.bank.evidence.link_group
        old = estimated & self.known
        untied = np.zeros(len(status), dtype=bool)
        untied[layout.item[~tied_to(self.answers, self.known[self.item])]] = True
        if (estimated & ~self.known & untied).any() or group[old].any():
            group = groups_of(self.answers, np.where(old, group, -1), estimated)
            status[estimated & (group > 0)] = "unlinked"
        status[made.anchored] = "anchored"
        return status, group

    def _findings(self, here: Posterior, variance: Floats, pull: Floats) -> list[Finding]:
        out, items, item, information = [], self.made.labels, self.item, here.data
        inflation = variance * (information + self.precisions[0])
        fresh = self.active & ~self.known
        if fresh.any():
            names = items[fresh]
            sentence = f"{count(len(names), 'item is', 'items are')} new in the bank: {listed(names)}."
            out.append(Finding("new_items", "note", sentence, "", tuple(names.tolist())))
        loose = fresh & (self.status != "ok")
        if loose.any():
            names = items[loose]
            what = count(len(names), "new item rests", "new items rest")
            sentence = f"{what} on the prior alone, not tied to the bank by answers: {listed(names)}."
            if np.isinf(inflation[loose[item]]).any():
                sentence += " The standard error of items that share no people with the bank's is infinite."
            remedy = "Collect answers to them together with items of the bank."
            out.append(Finding("prior_only", "warning", sentence, remedy, tuple(names.tolist())))
        if self.bank.evidence.matrix is None and np.nanmedian(inflation[self.free[item]]) > WEAK:
            out.append(
                Finding(
                    "weak_links",
                    "warning",
                    "Groups of items are connected by few answers, and a bank of this many items keeps no record of "
                    "which: in an update the distance between such groups moves too little.",
                    "Fit all data at once if they are at hand.",
                )
            )
        if any(self.precisions):
            prior = here.prior
            step = np.divide(pull, information, out=np.zeros(len(pull)), where=information > 1e-9)
            what = "item" if self.layout.binary else "threshold"
            plan = Regularization("neighbors", FEW_ANSWERS.format(what), estimated=True)
            acts = (prior.counts > 0) & self.free[item]
            plan = acted(plan, prior, self.made.labels, acts, here.tied, step, (self.low, self.high))
            out.append(Finding("regularization", "note", str(plan)))
        return out
