"""A bank after new answers, without the old ones.

What the old data said is kept as a quadratic (`evidence.py`). "stream" goes once through the new people in small
batches: each batch adds its information and moves the difficulties by a Newton step on the conditional likelihood of
its answers together with all before it (the one-pass streaming of the theory, with a batch in place of a single
person). A batch is at most a sixteenth of the people seen before it, so that what it adds is judged at difficulties
that it hardly moves, and the number of batches grows with the logarithm of the people. "refit" solves the equations of
all new answers together with the old evidence. The prior is that of calibrations, on each item's deviation from the
others that its people met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, DataSet
from spectral_irt.bank.components import groups_of, numbered_from, on_scale, parts_before, parts_of
from spectral_irt.bank.evidence import MATRIX_ITEMS, Answers, Evidence, Posterior
from spectral_irt.bank.ordered_bank import OrderedBank, refuse_ordered
from spectral_irt.bank.ordered_updating import update_ordered
from spectral_irt.bank.recognition import (
    NO_RECOGNITION,
    Hashes,
    check_usable,
    checked_salt,
    nobody,
    without_repeats,
)
from spectral_irt.chain.prior import fading
from spectral_irt.chain.regularization import FEW_ANSWERS, Regularization, acted
from spectral_irt.conditional.newton import RENEWALS
from spectral_irt.data import Block, Finding, Responses, as_responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import examine, tied_to
from spectral_irt.data.labels import label_array
from spectral_irt.engine import LocalEngine
from spectral_irt.errors import BankError, check_option, listed
from spectral_irt.estimators.spectral_errors import between_parts
from spectral_irt.persons.align import align

METHODS = ("stream", "refit")
REPEATS = ("error", "skip", "keep")
SMALLEST_BATCH = 64  # people; below this arithmetic costs less than the calls for it
BATCH_SHARE = 16  # a batch is at most this part of the people seen before
STRAIGHT = 0.25  # logits: over a shorter step the score is nearly a straight line, and one step is enough
NEWTON_STEPS = 25
SETTLED = 1e-3  # standard errors
WEAK = 1.5  # variance of an item over 1 / information from which its ties are weak


def update(
    bank: Bank,
    responses: Any,
    method: str = "stream",
    *,
    repeats: str = "error",
    salt: Any = None,
    threads: int | None = None,
) -> Bank:
    """The bank after these answers; items it does not have are taken to be like those that their people met.

    Parameters
    ----------
    responses : Responses, array or dataframe
        New answers. At least one item must be of the bank.
    method : "stream" or "refit"
        "stream" (default): one pass, in small batches. "refit": iterated until nothing moves; a little more exact,
        some passes more.
    repeats : "error", "skip" or "keep"
        What to do with people who are in the bank already with the very same answers: refuse the update (default),
        leave these people out, or count them again. Without a salt nobody is recognized. Data that are in the bank as a
        whole (of 30 people or more, or with a salt) are refused, and left out by "skip"; where nothing is left, the
        bank itself comes back.
    salt : bytes or path, optional
        The secret by which the bank recognizes people; see `to_bank`. A bank that has one asks for it, unless
        repeats="keep".
    threads : int, optional

    Notes
    -----
    The scale stays: anchored items do not move, and without any the mean of the items that were on the scale is kept.
    Standard errors shrink as the information grows, each in the ratio it had to the model's before; that of items which
    share no people with the others, directly or through others, is infinite.
    """
    check_option("method", method, METHODS)
    check_option("repeats", repeats, REPEATS)
    if isinstance(bank, OrderedBank):
        engine = None if threads is None else LocalEngine(threads)
        return update_ordered(bank, responses, method=method, repeats=repeats, salt=salt, engine=engine)
    refuse_ordered(bank, responses)
    secret = checked_salt(bank, salt, repeats)
    given = as_responses(responses, threshold=bank.settings.get("threshold"))
    dataset, answers = DataSet.of(given, method, secret), bank.in_my_words(given)
    old = dataset.is_in(bank, given)
    if old is not None and repeats == "skip":
        return bank
    if old is not None:
        raise BankError(
            f"{answers.source}: these very data are in the bank already ({old.source}, {old.users:,} people, "
            f"{old.responses:,} responses, by {old.how}); they would count twice. The bank is unchanged."
        )
    users, fresh = nobody(), np.ones(answers.n_persons, dtype=bool)
    findings = [NO_RECOGNITION]
    if secret is not None:
        users = secret.fingerprints(answers)
        fresh, findings = without_repeats(bank, answers, users, repeats)
    if not fresh.all():
        answers, users = answers.take_persons(fresh), users[fresh]
        if not answers.n_responses:  # all that there is has been counted
            return bank
        dataset = replace(dataset, users=answers.n_persons, responses=answers.n_responses)
    check_usable(bank, answers)

    whole, known = _with_new_items(bank, answers)
    aligned = align(whole.items, answers)
    job = _Job(whole, known, aligned if threads is None else aligned.using(LocalEngine(threads)))
    after = job.stream() if method == "stream" else job.refit()
    updated = job.finish(after, dataset, users, findings)
    if secret is None:
        return updated
    secret.keep()
    return replace(updated, salt_check=secret.check)


# --------------------------------------------------------------------------------------------- new items


def _with_new_items(bank: Bank, answers: Responses) -> tuple[Bank, NDArray[np.bool_]]:
    """The bank with room for items it does not have, and which items had a difficulty."""
    have = set(bank.items.tolist())
    new = [label for label in answers.items.tolist() if label not in have]
    known = np.concatenate([bank.known, np.zeros(len(new), dtype=bool)])
    extra, m = len(new), bank.n_items + len(new)

    def longer(values: Any, fill: Any) -> Any:
        return np.concatenate([values, np.full(extra, fill, dtype=values.dtype)])

    matrix = None
    if bank.matrix is not None and m <= MATRIX_ITEMS:
        matrix = np.zeros((m, m))
        matrix[: bank.n_items, : bank.n_items] = bank.matrix
    whole = replace(
        bank,
        items=label_array([*bank.items.tolist(), *new]),
        difficulty=longer(bank.difficulty, np.nan),
        se=longer(bank.se, np.nan),
        status=longer(bank.status, "no responses"),
        n=longer(bank.n, 0),
        n_right=longer(bank.n_right, 0),
        group=longer(bank.group, 0),
        information=np.where(known, longer(bank.information, 0.0), 0.0),
        anchored=longer(bank.anchored, False),
        level=longer(bank.level, 0.0),
        pull=longer(bank.pull, 0.0),
        matrix=matrix,
    )
    return whole, known


def _levels(answers: Responses, difficulty: Floats, known: NDArray[np.bool_]) -> Floats:
    """Where items start that have no difficulty: at the mean of the known items that their people met."""
    total, number = answers.sum(_met, np.where(known, difficulty, 0.0), known.astype(float))
    mean = float(difficulty[known].mean())
    return np.divide(total, number, out=np.full(len(known), mean), where=number > 0)


def _met(block: Block, difficulty: Floats, known: Floats) -> tuple[Floats, Floats]:
    """For every item, sums over its people: of the mean known difficulty that they met, and of one."""
    right, wrong = block.halves(len(known))
    number = right @ known + wrong @ known
    met = (number > 0).astype(float)
    mean = np.divide(right @ difficulty + wrong @ difficulty, number, out=np.zeros(len(number)), where=number > 0)
    return right.T @ mean + wrong.T @ mean, right.T @ met + wrong.T @ met


# ------------------------------------------------------------------------------------------------ the work


class _Job:
    """One update: the bank with room for new items, and the new answers in its codes."""

    def __init__(self, bank: Bank, known: NDArray[np.bool_], answers: Responses) -> None:
        self.bank, self.known, self.answers = bank, known, answers
        self.linked = any(finding.code == "linked" for finding in bank.findings)
        self.active = known | (answers.item_counts > 0)
        self.free = self.active & ~bank.anchored
        self.n, self.right = bank.n + answers.item_counts, bank.n_right + answers.item_scores
        self.status, self.group = self._status()
        information = bank.information if bank.matrix is None else bank.matrix
        together = parts_before(information, bank.group, known, np.isinf(bank.se))
        self.scale = known & ~np.isinf(bank.se)  # the items that the scale is known by
        self.old_part = numbered_from(self.scale, together)
        self.part = numbered_from(self.scale, parts_of(answers, together))
        start = np.where(known, bank.difficulty, _levels(answers, bank.difficulty, known))
        level = np.where(known, bank.level, start)
        self.before = Evidence(start, information, bank.pull, level, np.zeros(len(known)))
        self.before = replace(self.before, squares=self._squares())
        self.alpha = bank.prior_precision or self._precision(self._before(1.0))

    def _before(self, alpha: float) -> Posterior:
        """The bank as it was."""
        kept, fixed = self.before, ~(self.free & self.known)
        return Posterior(kept, None, kept.beta, alpha, on_scale(self.bank.status), fixed, self._floating(True))

    def _with(self, kept: Evidence, new: Answers | None, beta: Floats) -> Posterior:
        return Posterior(kept, new, beta, self.alpha, on_scale(self.status), ~self.free, self._floating())

    def _floating(self, before: bool = False) -> Ints:
        """Parts with a mean that nothing says anything about; a diagonal alone holds every item where it is."""
        parts, anchored = self.old_part if before else self.part, self.bank.anchored
        loose = self.free & ~np.isin(parts, parts[anchored]) & (self.bank.matrix is not None)
        return np.where(loose, parts, -1)

    def _precision(self, here: Posterior) -> float:
        for _ in range(RENEWALS):
            here = replace(here, alpha=here.renewed(self.n, self.right))
        return here.alpha

    def stream(self) -> Evidence:
        """One pass in batches; see the module's text."""
        state = self.before
        for batch in _batches(self.answers, self.bank.n_persons):
            state = self._absorbed(state, batch, lambda step, information: np.abs(step) < STRAIGHT)
        return state

    def refit(self) -> Evidence:
        """All new answers together, to the end."""
        return self._absorbed(
            self.before, self.answers, lambda step, information: np.abs(step) * np.sqrt(information) < SETTLED
        )

    def _absorbed(
        self, state: Evidence, answers: Responses, done: Callable[[Floats, Floats], NDArray[np.bool_]]
    ) -> Evidence:
        """Newton's steps on these answers and what was known, until all items are `done`.

        The answers of a batch to items that are well known need one step, which is the streaming formula.
        """
        new, beta = Answers.at(answers, state.beta), state.beta
        for k in range(NEWTON_STEPS):
            new = new.moved(beta) if k else new
            here = self._with(state, new, beta)
            step = here.step()
            beta = beta + step
            if done(step, here.data).all():
                break
        return here.after(step)

    # --------------------------------------------------------------------------------- what comes out

    def finish(self, state: Evidence, dataset: DataSet, users: Hashes, findings: list[Finding]) -> Bank:
        """The new bank: prior settled, scale kept, standard errors, counts, status."""
        bank = self.bank
        state = self._settled(state)
        here = self._with(state, None, state.beta)
        drift = self._drift(state.beta)
        variance = self._variance(here)
        findings = [*findings, *self._findings(variance * (here.data + self.alpha), here.data, state.gradient)]
        outdated = (*_OUTDATED, *(() if np.isinf(variance).any() else ("disconnected",)))
        return replace(
            bank,
            difficulty=np.where(bank.anchored, bank.difficulty, np.where(self.active, state.beta - drift, np.nan)),
            se=np.where(bank.anchored, bank.se, np.sqrt(variance)),
            status=self.status,
            n=self.n,
            n_right=self.right,
            group=self.group,
            information=here.data,
            level=state.levels - drift,
            pull=np.where(self.free, state.gradient, 0.0),
            prior_precision=self.alpha,
            matrix=state.information if state.information.ndim == 2 else None,
            data=(*bank.data, dataset),
            users=np.concatenate([bank.users, users]),
            findings=(*(old for old in bank.findings if old.code not in outdated), *findings),
        )

    def _settled(self, state: Evidence) -> Evidence:
        """Under the prior that all deviations speak for; there is none where every item tells enough by itself."""
        for _ in range(RENEWALS):
            here = self._with(state, None, state.beta)
            needed = fading(here.data, here.tied, self.alpha)[self.free].any()
            self.alpha = here.renewed(self.n, self.right) if needed else 0.0
            step = replace(here, alpha=self.alpha).step()
            state = here.after(step)
            if np.max(np.abs(step) * np.sqrt(here.data), initial=0.0) < SETTLED:
                break
        return state

    def _drift(self, beta: Floats) -> Floats:
        """How far each part of the items has moved as a whole: those on the scale, or those known if none is."""
        part, bank = self.part, self.bank
        placed = np.where(np.bincount(part, weights=self.scale)[part] > 0, self.scale, self.known)
        moved = np.where(placed, beta - np.where(placed, bank.difficulty, 0.0), 0.0)
        mean = np.bincount(part, weights=moved) / np.maximum(np.bincount(part, weights=placed), 1)
        return np.where(np.isin(part, part[bank.anchored]), 0.0, mean[part])

    def _squares(self) -> Floats:
        """Squared scores of the bank's own answers, such that its standard errors come out."""
        here = self._before(self.bank.prior_precision)
        if self.linked:  # what its errors have beyond the model's is the link's
            return here.data
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.known & self.free, self.bank.se**2 / here.variance(), np.nan)
        good = np.isfinite(ratio) & (ratio > 0)
        usual = float(np.median(ratio[good])) if good.any() else 1.0
        return here.data * np.where(good, ratio, usual)

    def _variance(self, here: Posterior) -> Floats:
        """Under the model, in the ratio that squared scores have to the information; infinite for parts apart."""
        after = here.variance() * here.ratio()
        if self.linked:  # answers do not lessen the link's error
            before = self._before(self.bank.prior_precision).variance()
            added = np.where(self.known & self.free, self.bank.se**2 - before, np.nan)
            after = np.maximum(after + np.where(np.isfinite(added), added, np.nanmedian(added)), after / 4)
        after[here.data <= 0] = self.bank.se[here.data <= 0] ** 2  # nothing new
        anchored = self.bank.anchored
        apart = np.where(np.isin(self.part, self.part[anchored]), 0, self.part + anchored.any())
        if apart[self.free].any():
            equal_means = bool(self.bank.settings.get("assume_equal_means"))
            after = after + between_parts(apart, self.alpha or 1.0, equal_means)
        return np.where(self.free, after, np.nan)

    def _status(self) -> tuple[NDArray[Any], Ints]:
        """A word about each item, and its group: new answers link groups, and may bring new ones."""
        n, right = self.n, self.right
        now = examine(self.answers).status()
        status = np.full(len(n), "ok", dtype=object)
        status[(self.bank.status == "no information") & (now != "ok")] = "no information"
        status[~self.known & (now == "no information")] = "no information"
        status[right == n] = "all right"
        status[right == 0] = "all wrong"
        status[n == 0] = "no responses"
        measured = status == "ok"
        group = self.bank.group
        old = measured & self.known
        loose = measured & ~self.known & ~tied_to(self.answers, self.known)
        if loose.any() or group[old].any():
            group = groups_of(self.answers, np.where(old, group, -1), measured)
            status[measured & (group > 0)] = "apart"
        status[self.bank.anchored] = "anchored"
        return status, group

    def _findings(self, inflation: Floats, information: Floats, pull: Floats) -> list[Finding]:
        out = []
        fresh = self.active & ~self.known
        if fresh.any():
            names = self.bank.items[fresh]
            verb = "item is" if len(names) == 1 else "items are"
            sentence = f"{len(names):,} {verb} new in the bank: {listed(names)}."
            out.append(Finding("new_items", "note", sentence, "", tuple(names.tolist())))
        loose = fresh & (self.status != "ok")
        if loose.any():
            names = self.bank.items[loose]
            verb = "new item rests" if len(names) == 1 else "new items rest"
            sentence = f"{len(names):,} {verb} on the prior alone, not tied to the bank by answers: {listed(names)}."
            if np.isinf(inflation[loose]).any():
                sentence += " The standard error of items that share no people with the bank's is infinite."
            remedy = "Collect answers to them together with items of the bank."
            out.append(Finding("prior_only", "warning", sentence, remedy, tuple(names.tolist())))
        if self.bank.matrix is None and np.nanmedian(inflation[self.free]) > WEAK:
            out.append(
                Finding(
                    "weak_links",
                    "warning",
                    "Groups of items are connected by few answers, and a bank of this many items keeps no record of "
                    "which: in an update the distance between such groups moves too little.",
                    "Fit all data at once if they are at hand.",
                )
            )
        if self.alpha:
            tied, items = on_scale(self.status), self.bank.items
            acts = (fading(information, tied, self.alpha) > 0) & self.free
            step = np.divide(pull, information, out=np.zeros(len(acts)), where=information > 1e-9)
            plan = Regularization("neighbors", FEW_ANSWERS.format("item"), self.alpha, True)
            counts = (self.n - self.right).astype(float), self.right.astype(float)
            plan = acted(plan, acts, tied, step, counts, lambda k: f"item {listed([items[k]])}")
            out.append(Finding("regularization", "note", f"Regularization: {plan}."))
        return out


_OUTDATED: tuple[str, ...] = (
    "regularization",
    "weak_links",
    "known_persons",
    "repeated_persons",
    "new_items",
    "no_recognition",
)
_OUTDATED += ("old_fingerprints",)


def _batches(answers: Responses, seen: int) -> Iterator[Responses]:
    """The people in order, in batches that grow with those before them."""
    start = 0
    while start < answers.n_persons:
        stop = min(start + max(SMALLEST_BATCH, (seen + start) // BATCH_SHARE), answers.n_persons)
        yield answers.take_persons(np.arange(start, stop))
        start = stop
