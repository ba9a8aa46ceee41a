"""A bank of ordered answers after new ones, without the old.

With beta the thresholds of the bank and M the information of all that it has seen, the log-likelihood of everything is

    -(b - beta)' M (b - beta) / 2 + log L(b; new answers),

whose maximum Newton's method finds in a few passes over the new answers; M then grows by their information. Thresholds
about which little is known (less than 50) have a normal prior around where they stand, or for new items around the
items that their people met, with a standard deviation of two logits, which fades as answers come in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import DataSet
from spectral_irt.bank.evidence import MATRIX_ITEMS
from spectral_irt.bank.ordered_bank import OrderedBank
from spectral_irt.bank.recognition import (
    NO_RECOGNITION,
    Hashes,
    check_usable,
    checked_salt,
    nobody,
    without_repeats,
)
from spectral_irt.chain.prior import fading
from spectral_irt.conditional.likelihood import ExactLikelihood
from spectral_irt.data import Finding, as_responses
from spectral_irt.data.block import Block, Floats
from spectral_irt.data.labels import label_array, positions
from spectral_irt.data.responses import Responses
from spectral_irt.data.thresholds import Thresholds, rows_of
from spectral_irt.engine import Engine
from spectral_irt.errors import BankError, DesignError, listed
from spectral_irt.persons.align import Coded, align_categories

PRECISION = 0.25  # of the prior of a threshold that little is known about: two logits either way
STEPS = 60
LONGEST_STEP = 2.0  # logits
SETTLED = 1e-6  # logits
OUTDATED = ("no_recognition", "known_persons", "repeated_persons", "new_items")


def update_ordered(
    bank: OrderedBank, responses: Any, *, method: str, repeats: str, salt: Any, engine: Engine | None
) -> OrderedBank:
    """The bank after these answers; see `bank.updating.update`."""
    secret = checked_salt(bank, salt, repeats)
    given = as_responses(responses, ordered=True, unused="keep").using(engine)
    dataset, answers = DataSet.of(given, method, secret), bank.in_my_words(given)
    old = dataset.is_in(bank, given)
    if old is not None:
        raise BankError(
            f"{answers.source}: these very data are in the bank already ({old.source}, {old.users:,} people, "
            f"{old.responses:,} responses, by {old.how}); they would count twice. The bank is unchanged."
        )
    users, findings = nobody(), [NO_RECOGNITION]
    if secret is not None:
        users = secret.fingerprints(answers)
        fresh, findings = without_repeats(bank, answers, users, repeats)
        if not fresh.any():
            return bank
        if not fresh.all():
            answers, users = answers.take_persons(fresh), users[fresh]
            dataset = replace(dataset, users=answers.n_persons, responses=answers.n_responses)
    check_usable(bank, answers)
    if answers.n_items and answers.thresholds.n_entries + bank.steps.n_entries > 2 * MATRIX_ITEMS:
        raise BankError(f"a bank of ordered answers is updated up to {MATRIX_ITEMS:,} thresholds; this has more.")
    whole = _with_new_items(bank, answers)
    aligned = align_categories(Coded.of(whole.calibration), answers, ignore_unknown=True)
    updated = _Job(whole, bank.n_items, aligned).finish(dataset, users, findings)
    if secret is None:
        return updated
    secret.keep()
    return replace(updated, salt_check=secret.check)


def _with_new_items(bank: OrderedBank, answers: Responses) -> OrderedBank:
    """The bank with room for items it does not have."""
    place = positions(answers.items, bank.items)
    new = np.flatnonzero((place < 0) & (answers.item_counts > 0))
    if not len(new):
        return bank
    counts = answers.thresholds.max_score[new]
    extra, steps = len(new), int(counts.sum())
    width = max(bank.codes.shape[1], int(counts.max()) + 1)

    def longer(values: Any, fill: Any, number: int = extra) -> Any:
        return np.concatenate([values, np.full(number, fill, dtype=values.dtype)])

    def wider(values: Floats, more: Floats) -> Floats:
        out = np.full((bank.n_items + extra, width), np.nan)
        out[: bank.n_items, : values.shape[1]] = values
        out[bank.n_items :, : min(more.shape[1], width)] = more[:, :width]
        return out

    matrix = None
    if bank.step_matrix is not None:
        matrix = np.zeros((bank.steps.n_entries + steps,) * 2)
        matrix[: bank.steps.n_entries, : bank.steps.n_entries] = bank.step_matrix
    return replace(
        bank,
        items=label_array([*bank.items.tolist(), *answers.items[new].tolist()]),
        difficulty=longer(bank.difficulty, np.nan),
        se=longer(bank.se, np.nan),
        status=longer(bank.status, "no responses"),
        n=longer(bank.n, 0),
        n_right=longer(bank.n_right, 0),
        group=longer(bank.group, 0),
        information=longer(bank.information, 0.0),
        anchored=longer(bank.anchored, False),
        level=longer(bank.level, 0.0),
        pull=longer(bank.pull, 0.0),
        thresholds=longer(bank.thresholds, np.nan, steps),
        threshold_se=longer(bank.threshold_se, np.nan, steps),
        n_thresholds=np.concatenate([bank.steps.max_score, counts]),
        category_n=wider(bank.category_n, np.where(np.isfinite(answers.category_codes()[new]), 0.0, np.nan)),
        codes=wider(bank.codes, answers.category_codes()[new]),
        step_information=longer(bank.step_information, 0.0, steps),
        step_matrix=matrix,
    )


class _Job:
    """One update: the bank with room for new items, and the new answers in its codes."""

    def __init__(self, bank: OrderedBank, n_old: int, answers: Responses) -> None:
        self.bank, self.answers, self.n_old = bank, answers, n_old
        steps = bank.steps
        self.steps = steps
        known = np.isfinite(bank.thresholds)
        self.active = known | (answers.item_counts > 0)[steps.item]
        self.free = self.active & ~bank.anchored[steps.item]
        levels = _levels(answers, np.where(bank.known, bank.difficulty, np.nan))
        self.start = np.where(known, bank.thresholds, levels[steps.item])
        self.kept = bank.step_matrix if bank.step_matrix is not None else np.diag(bank.step_information)
        self.old = known

    def solved(self) -> tuple[Floats, Floats, Floats]:
        """The thresholds, the information of everything, and the precision of the prior of each."""
        steps, start = self.steps, np.where(np.isfinite(self.start), self.start, 0.0)
        asked = np.flatnonzero(self.answers.item_counts > 0)
        place = steps.of_items(asked)
        rest = self.answers.take_items(asked) if len(asked) < steps.n_items else self.answers
        likelihood = ExactLikelihood(rest)
        exact = likelihood.exact_is_affordable()
        free = np.flatnonzero(self.free)
        beta, held = start.copy(), bool((self.bank.anchored & self.bank.known).any())
        told = self.kept.diagonal().copy()
        told[place] += likelihood.information(beta[place], exact=False).diagonal()
        alpha = PRECISION * fading(told, np.ones(len(beta), dtype=bool), PRECISION)
        for _ in range(STEPS):
            point = likelihood.at(beta[place])
            total = self.kept.copy()
            total[np.ix_(place, place)] += likelihood.information(beta[place], exact=exact)
            score = -self.kept @ (beta - start) - alpha * (beta - start)
            score[place] += point.gradient
            bread = total + np.diag(alpha)
            if not held:  # nothing says where the scale lies: the items that were on it stay, on average
                bread = bread + np.trace(bread) / len(bread) ** 2
            step = np.zeros(len(beta))
            step[free] = np.linalg.lstsq(bread[np.ix_(free, free)], score[free], rcond=None)[0]
            there = beta + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
            if not held:
                there -= self._drift(there - start)
            moved, beta = np.max(np.abs(there - beta), initial=0.0), there
            if moved < SETTLED:
                return beta, total, alpha
        raise DesignError(
            f"{self.answers.source}: the thresholds did not settle with these answers. Check the categories of the new "
            f"items ({listed(self.bank.items[self.n_old :])}). The bank is unchanged."
        )

    def _drift(self, moved: Floats) -> float:
        """How far the items that had thresholds have moved as a whole."""
        mean = self.steps.mean(moved)
        known = self.bank.known
        return float(mean[known].mean())

    def finish(self, dataset: DataSet, users: Hashes, findings: list[Finding]) -> OrderedBank:
        bank, steps, answers = self.bank, self.steps, self.answers
        beta, total, alpha = self.solved()
        covariance = self._covariance(total, alpha)
        variance = np.diag(covariance) * self._ratio()
        beta = np.where(self.active, beta, np.nan)
        se = np.where(bank.anchored[steps.item], bank.threshold_se, np.where(self.active, np.sqrt(variance), np.nan))
        mean = np.zeros((steps.n_items, steps.n_entries))
        mean[steps.item, np.arange(steps.n_entries)] = 1 / steps.max_score[steps.item]
        spread = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", mean, covariance, mean), 0))
        location_se = spread * np.sqrt(steps.mean(self._ratio()))
        counts = np.nan_to_num(answers.category_counts)
        fresh = np.where(np.isfinite(bank.codes), _widened(counts, bank.codes.shape[1]), np.nan)
        status = bank.status.copy()
        told = np.bincount(steps.item, weights=np.diag(total) <= 1e-9, minlength=steps.n_items) == 0
        status[(answers.item_counts > 0) & ~bank.anchored & told] = "ok"
        status[(answers.item_counts > 0) & ~bank.anchored & ~told] = "no information"
        new = bank.items[self.n_old :]
        if len(new):
            verb = "item is" if len(new) == 1 else "items are"
            findings = [
                *findings,
                Finding("new_items", "note", f"{len(new):,} {verb} new to the bank: {listed(new)}.", "", tuple(new)),
            ]
        with np.errstate(divide="ignore", invalid="ignore"):
            information = np.nan_to_num(1 / location_se**2, posinf=0.0)
        return replace(
            bank,
            difficulty=np.where(bank.anchored, bank.difficulty, steps.mean(beta)),
            se=np.where(bank.anchored, bank.se, np.where(np.isfinite(steps.mean(beta)), location_se, np.nan)),
            status=status,
            n=bank.n + answers.item_counts,
            n_right=bank.n_right + answers.item_scores,
            information=information,
            data=(*bank.data, dataset),
            users=np.concatenate([bank.users, users]),
            findings=(*(one for one in bank.findings if one.code not in OUTDATED), *findings),
            thresholds=beta,
            threshold_se=se,
            category_n=np.nan_to_num(bank.category_n) + fresh,
            step_information=np.diag(total).copy(),
            step_matrix=total if bank.step_matrix is not None else None,
        )

    def _covariance(self, total: Floats, alpha: Floats) -> Floats:
        """Of all thresholds, on the scale whose mean location is kept; zero for what does not move."""
        free = np.flatnonzero(self.free)
        full = np.zeros_like(total)
        bread = (total + np.diag(alpha))[np.ix_(free, free)]
        held = bool((self.bank.anchored & self.bank.known).any())
        if not held:
            bread = bread + np.trace(bread) / len(bread) ** 2
        full[np.ix_(free, free)] = np.linalg.pinv(bread, hermitian=True)
        if held:
            return full
        known = self.bank.known[self.steps.item]
        weight = known / (max(int(self.bank.known.sum()), 1) * self.steps.max_score[self.steps.item])
        cross = full @ weight
        return full - cross[:, None] - cross[None, :] + weight @ cross

    def _ratio(self) -> Floats:
        """What the variances of the bank were to those of the model; the usual one for new thresholds."""
        bank = self.bank
        before = np.diag(self._covariance(self.kept, np.where(self.old, 0.0, PRECISION)))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.old & self.free, bank.threshold_se**2 / before, np.nan)
        good = np.isfinite(ratio) & (ratio > 0.25) & (ratio < 4)
        usual = float(np.median(ratio[good])) if good.any() else 1.0
        return np.where(good, ratio, usual)


def _widened(values: Floats, width: int) -> Floats:
    out = np.zeros((len(values), width))
    out[:, : values.shape[1]] = values
    return out


def _levels(answers: Responses, difficulty: Floats) -> Floats:
    """Where items start that have no thresholds: at the mean of the known items that their people met."""
    known = np.isfinite(difficulty)
    total, number = answers.entries.sum(_met, answers.thresholds, np.nan_to_num(difficulty), known)
    mean = float(difficulty[known].mean()) if known.any() else 0.0
    return np.divide(total, number, out=np.full(len(known), mean), where=number > 0)


def _met(block: Block, steps: Thresholds, difficulty: Floats, known: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    rows = rows_of(block, steps)
    number = rows.sums(known[rows.items].astype(float))
    mean = np.divide(
        rows.sums(np.where(known, difficulty, 0.0)[rows.items]), number, out=np.zeros(len(number)), where=number > 0
    )
    met = (number > 0).astype(float)
    return tuple(
        np.bincount(rows.items, weights=np.repeat(each, rows.counts), minlength=steps.n_items).astype(float)
        for each in (mean, met)
    )  # type: ignore[return-value]
