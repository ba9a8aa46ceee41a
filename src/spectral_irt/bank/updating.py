"""A bank after new answers, without the old ones.

What the old data said is kept as a quadratic (`evidence.py`). "stream" goes once through the new users in small
batches: each batch adds its information P and moves the difficulties by (P + alpha I)^-1 times its score (the one-pass
streaming of the theory, with a batch in place of a single user). A batch is at most a sixteenth of the users seen
before it, so that what it adds is judged at difficulties that it hardly moves, and the number of batches grows with the
logarithm of the users. "refit" solves the equations of all new answers together with the old evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.bank.bank import Bank, DataSet
from spectral_irt.bank.evidence import (
    MATRIX_ITEMS,
    NO_PRIOR,
    Prior,
    diagonal_of,
    exchange_prior,
    model_variance,
    part_of,
    score_and_information,
    solve,
)
from spectral_irt.bank.linked_groups import groups_of
from spectral_irt.bank.people import NO_RECOGNITION, SALT, Hashes, Salt, nobody, numbered
from spectral_irt.chain.anchored import Known, solve_grounded, tied
from spectral_irt.chain.regularization import ENOUGH_INFORMATION, prior_precision
from spectral_irt.engines import LocalEngine
from spectral_irt.errors import BankError, DesignError, OptionError, check_option, listed, option
from spectral_irt.persons.align import align
from spectral_irt.responses import Finding, Responses, as_responses
from spectral_irt.responses.block import Floats
from spectral_irt.responses.design import examine
from spectral_irt.responses.labels import label_array

METHODS = ("stream", "refit")
REPEATS = ("error", "skip", "keep")
SMALLEST_BATCH = 64  # users; below this arithmetic costs less than the calls for it
BATCH_SHARE = 16  # a batch is at most this part of the users seen before
LONGEST_STEP = 2.0  # logits that one step may move an item: a new item starts from nowhere
STRAIGHT = 0.25  # logits: over a shorter step the score is nearly a straight line, and one step is enough
NEWTON_STEPS = 25
SETTLED = 1e-3  # standard errors
SAME_AGAIN = 0.95  # share of merely numbered users with the very same answers from which it is no accident
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
    """The bank after these answers; items it does not have come in at the mean, with a weak prior.

    Parameters
    ----------
    responses : Responses, array or dataframe
        New answers. At least one item must be of the bank.
    method : "stream" or "refit"
        "stream" (default): one pass, in small batches. "refit": iterated until nothing moves; a little more exact,
        some passes more.
    repeats : "error", "skip" or "keep"
        What to do with users who are in the bank already with the very same answers: refuse the update (default),
        leave these users out, or count them again. Without a salt nobody is recognized. Data that are in the bank as a
        whole are refused in any case (of 30 people or more, or with a salt).
    salt : bytes or path, optional
        The secret by which the bank recognizes people; see `to_bank`. A bank that has one asks for it, unless
        repeats="keep".
    threads : int, optional

    Notes
    -----
    The scale stays: anchored items do not move, and without any the mean of the items that had a difficulty is kept.
    Standard errors shrink as the information grows, each in the ratio it had to the model's before.
    """
    check_option("method", method, METHODS)
    check_option("repeats", repeats, REPEATS)
    secret = _salt(bank, salt, repeats)
    given = as_responses(responses, threshold=bank.settings.get("threshold"))
    dataset, answers = DataSet.of(given, method, secret), bank.in_my_words(given)
    old = dataset.is_in(bank, given)
    if old is not None:
        raise BankError(
            f"{answers.source}: these very data are in the bank already ({old.source}, {old.users:,} people, "
            f"{old.responses:,} responses, by {old.how}); they would count twice. The bank is unchanged."
        )
    users, fresh = nobody(), np.ones(answers.n_users, dtype=bool)
    findings = [NO_RECOGNITION]
    if secret is not None:
        users = secret.fingerprints(answers)
        fresh, findings = _without_repeats(bank, answers, users, repeats)
    if not fresh.all():
        answers, users = answers.take_users(fresh), users[fresh]
        dataset = replace(dataset, users=answers.n_users, responses=answers.n_responses)
    _check_usable(bank, answers)

    whole, known = _with_new_items(bank, answers)
    aligned = align(whole.items, answers)
    job = _Job(whole, known, aligned if threads is None else aligned.using(LocalEngine(threads)))
    after = job.stream() if method == "stream" else job.refit()
    updated = job.finish(after, dataset, users, findings)
    if secret is None:
        return updated
    secret.keep()
    return replace(updated, salt_check=secret.check)


# ----------------------------------------------------------------------------------------- seen before?


def _salt(bank: Bank, salt: Any, repeats: str) -> Salt | None:
    """The secret of this update; what the bank has, and what is wanted, must go with it."""
    secret = Salt.of(salt)
    if secret is None:
        if repeats == "skip":
            raise OptionError(
                option("repeats", "skip"), " leaves out people who are recognized, which needs ", SALT, "."
            )
        if bank.salt_check and repeats != "keep":
            raise BankError(
                "the bank recognizes people by a salt, and none was given. Give ",
                SALT,
                ", or say ",
                option("repeats", "keep"),
                " to count everybody, seen before or not. The bank is unchanged.",
            )
        return None
    if bank.salt_check and secret.check != bank.salt_check:
        missing = f" ({str(secret.path)!r} does not exist)" if secret.path is not None else ""
        raise BankError(
            f"this is not the salt that the bank was made with{missing}, so nobody would be recognized. Give that "
            "one. The bank is unchanged."
        )
    return secret


def _without_repeats(
    bank: Bank, answers: Responses, users: Hashes, repeats: str
) -> tuple[NDArray[np.bool_], list[Finding]]:
    """Which users to count, and what to say about the others."""
    fresh = np.ones(answers.n_users, dtype=bool)
    said = answers.counts > 0
    again = np.isin(users[:, 1], bank.users[:, 1]) & said
    number, anonymous = int(again.sum()), numbered(answers)
    # Numbers say little about who somebody is: then almost all of the new users, or of the old ones, must be the same.
    accident = SAME_AGAIN * min(int(said.sum()), len(bank.users)) if anonymous else 1
    suspicious = number >= max(accident, 1)
    if suspicious and repeats != "keep":
        noun = "user is" if number == 1 else "users are"
        if repeats == "error":
            raise BankError(
                f"{answers.source}: {number:,} of {answers.n_users:,} {noun} in the bank already with the very same "
                f"answers: {listed(answers.users[again])}. They would count twice. Say ",
                option("repeats", "skip"),
                " to leave them out, or ",
                option("repeats", "keep"),
                " if they are other people. The bank is unchanged.",
            )
        sentence = f"{number:,} of {answers.n_users:,} {noun} in the bank already with the same answers."
        fresh = ~again
        return fresh, [Finding("repeated_users", "note", sentence, "They are left out.")]
    known = 0 if anonymous else int((np.isin(users[:, 0], bank.users[:, 0]) & said).sum())
    if not known:
        return fresh, []
    noun = "user has" if known == 1 else "users have"
    sentence = f"{known:,} of {answers.n_users:,} {noun} been in the bank before under the same name."
    remedy = "Their new answers count as those of another person; answers given before must not be among them."
    return fresh, [Finding("known_users", "note", sentence, remedy)]


def _check_usable(bank: Bank, answers: Responses) -> None:
    if not answers.n_responses:
        raise DesignError(f"{answers.source}: there is no new response to add. The bank is unchanged.")
    known = set(bank.items[bank.known].tolist())
    shared = [label for label in answers.items[answers.item_counts > 0].tolist() if label in known]
    if not shared:
        raise BankError(
            f"{answers.source}: none of its items ({listed(answers.items)}) has a difficulty in the bank, which has "
            f"{listed(bank.items[bank.known])}; the new answers say nothing on its scale. Check the labels."
        )
    if not np.any((answers.scores > 0) & (answers.scores < answers.counts)):
        raise DesignError(
            f"{answers.source}: everybody has all answers right or all wrong, which carries no information about "
            "difficulty. The bank is unchanged."
        )


# --------------------------------------------------------------------------------------------- new items


def _with_new_items(bank: Bank, answers: Responses) -> tuple[Bank, NDArray[np.bool_]]:
    """The bank with room for items it does not have, and which items had a difficulty."""
    have = set(bank.items.tolist())
    new = [label for label in answers.items.tolist() if label not in have]
    known = np.concatenate([bank.known, np.zeros(len(new), dtype=bool)])
    mean = float(bank.difficulty[bank.known].mean())
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
        difficulty=np.where(known, longer(bank.difficulty, np.nan), mean),
        se=longer(bank.se, np.nan),
        status=longer(bank.status, "no responses"),
        n=longer(bank.n, 0),
        n_right=longer(bank.n_right, 0),
        group=longer(bank.group, 0),
        information=np.where(known, longer(bank.information, 0.0), 0.0),
        anchored=longer(bank.anchored, False),
        matrix=matrix,
    )
    return whole, known


# ------------------------------------------------------------------------------------------------ the work


@dataclass(frozen=True, eq=False)
class _State:
    """Difficulties under the working prior, and the information of everything counted so far."""

    beta: Floats
    information: Floats  # matrix or diagonal


class _Job:
    """One update: the bank with room for new items, and the new answers in its codes."""

    def __init__(self, bank: Bank, known: NDArray[np.bool_], answers: Responses) -> None:
        self.bank, self.known, self.answers = bank, known, answers
        self.active = known | (answers.item_counts > 0)
        self.free = self.active & ~bank.anchored
        self.grounded = bool(bank.anchored.any())
        self.before = bank.information if bank.matrix is None else bank.matrix
        # While they work both ways have a prior: it gives new items a place to start from. It is taken off in the end
        # if the data need none.
        errors = bank.se[known]
        spread = bank.difficulty[known].var() - np.nan_to_num(np.where(np.isinf(errors), 0, errors) ** 2).mean()
        alpha = bank.prior.precision or float(1 / np.clip(spread, 0.01, 100))
        self.prior = Prior(bank.prior.mean if bank.prior.precision else float(bank.difficulty[known].mean()), alpha)

    def start(self) -> _State:
        """The bank under the working prior; items without information are at its mean."""
        beta = self._exchanged(self.bank.difficulty, self.before, self.bank.prior, self.prior)
        return _State(np.where(self.known, beta, self.prior.mean), self.before)

    def _exchanged(self, beta: Floats, information: Floats, old: Prior, new: Prior) -> Floats:
        out = beta.copy()
        out[self.free] = exchange_prior(
            beta[self.free], part_of(information, self.free), old, new, grounded=self.grounded
        )
        return out

    def _step(self, information: Floats, right: Floats) -> Floats:
        """How far each free item moves."""
        step = np.zeros(len(right))
        step[self.free] = solve(part_of(information, self.free), self.prior.precision, right[self.free], grounded=True)
        return np.clip(step, -LONGEST_STEP, LONGEST_STEP)

    def stream(self) -> _State:
        """One pass in batches; see the module's text."""
        state = self.start()
        for batch in _batches(self.answers, self.bank.n_users):
            state = self._absorb(state, batch, lambda step, information: np.abs(step) < STRAIGHT)
        return state

    def refit(self) -> _State:
        """The new answers' own equations with the old evidence as a prior, to the end."""
        state, answers = self.start(), self.answers
        if self.before.ndim == 2:
            return self._absorb(state, answers, lambda step, information: np.abs(step) * np.sqrt(information) < SETTLED)
        precision = np.where(self.free, self.before + self.prior.precision, 0.0)
        beta = solve_grounded(answers, state.beta, Known(~self.free, state.beta, precision)).beta
        return _State(beta, self.before + score_and_information(answers, beta, matrix=False)[1])

    def _absorb(self, state: _State, answers: Responses, done: Callable[[Floats, Floats], NDArray[np.bool_]]) -> _State:
        """Newton's steps on the score of these answers and the pull of what was known, until all items are `done`.

        The answers of a batch to items that are well known need one step, which is the streaming formula.
        """
        beta, before = state.beta, state.information
        for _ in range(NEWTON_STEPS):
            score, added = score_and_information(answers, beta, matrix=before.ndim == 2)
            apart = beta - state.beta
            pull = self.prior.precision * apart + (before * apart if before.ndim == 1 else before @ apart)
            step = self._step(before + added, score - pull)
            beta = beta + step
            if done(step, diagonal_of(before + added)).all():
                break
        return _State(beta, before + added)

    # --------------------------------------------------------------------------------- what comes out

    def finish(self, state: _State, dataset: DataSet, users: Hashes, findings: list[Finding]) -> Bank:
        """The new bank: prior settled, scale kept, standard errors, counts, status."""
        bank, information = self.bank, diagonal_of(state.information)
        n, right = bank.n + self.answers.item_counts, bank.n_right + self.answers.item_scores
        prior, beta = self._settled(state, information)
        if not self.grounded:
            drift = float((beta - bank.difficulty)[self.known].mean())
            beta = beta - drift
            prior = replace(prior, mean=prior.mean - drift) if prior.precision else NO_PRIOR
        variance = self._variance(state.information, prior)
        status, group = self._status(n, right)
        findings = [*findings, *self._findings(status, variance * (information + prior.precision), prior)]
        return replace(
            bank,
            difficulty=np.where(bank.anchored, bank.difficulty, np.where(self.active, beta, np.nan)),
            se=np.where(bank.anchored, bank.se, np.sqrt(variance)),
            status=status,
            n=n,
            n_right=right,
            group=group,
            information=information,
            prior=prior,
            matrix=state.information if state.information.ndim == 2 else None,
            data=(*bank.data, dataset),
            users=np.concatenate([bank.users, users]),
            findings=(*(old for old in bank.findings if old.code not in _OUTDATED), *findings),
        )

    def _settled(self, state: _State, information: Floats) -> tuple[Prior, Floats]:
        """No prior where every item tells enough by itself and all are connected; otherwise empirical Bayes."""
        free = self.free
        if (information[free] > ENOUGH_INFORMATION).all() and self._hang_together(state.information):
            return NO_PRIOR, self._exchanged(state.beta, state.information, self.prior, NO_PRIOR)
        prior, beta = self.prior, state.beta
        for _ in range(5):
            mean = prior.mean if self.grounded else float(beta[free].mean())
            new = Prior(mean, prior_precision(beta[free] - mean, information[free], prior.precision))
            beta = self._exchanged(beta, state.information, prior, new)
            prior = new
        return prior, beta

    def _hang_together(self, information: Floats) -> bool:
        if information.ndim == 1:
            new = self.active & ~self.known
            return bool(tied(self.answers, self.known)[new].all())
        from scipy.sparse.csgraph import connected_components

        links = sparse.csr_array(part_of(information, self.active) != 0)
        return connected_components(links, directed=False)[0] == 1

    def _variance(self, information: Floats, prior: Prior) -> Floats:
        """Variances under the model, each in the ratio that the bank's own had to the model's before.

        Of a bank that was linked, by as much more as before.
        """
        old, new = self.known & self.free, self.free
        before, after = np.full(len(new), np.nan), np.full(len(new), np.nan)
        before[old] = model_variance(part_of(self.before, old), self.bank.prior.precision, grounded=self.grounded)
        after[new] = model_variance(part_of(information, new), prior.precision, grounded=self.grounded)
        if any(finding.code == "linked" for finding in self.bank.findings):  # answers do not lessen the link's error
            added = self.bank.se**2 - before
            return np.maximum(after + np.where(np.isfinite(added), added, np.nanmedian(added[old])), after / 4)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.bank.se**2 / before
        good = np.isfinite(ratio) & (ratio > 0)
        usual = float(np.median(ratio[good])) if good.any() else 1.0
        return after * np.where(good, ratio, usual)

    def _status(self, n: NDArray[np.int64], right: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """A word about each item, and its group: new answers link groups, and may bring new ones."""
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
        loose = measured & ~self.known & ~tied(self.answers, self.known)
        if loose.any() or group[old].any():
            group = groups_of(self.answers, np.where(old, group, -1), measured)
            status[measured & (group > 0)] = "apart"
        status[self.bank.anchored] = "anchored"
        return status, group

    def _findings(self, status: NDArray[Any], inflation: Floats, prior: Prior) -> list[Finding]:
        out = []
        fresh = self.active & ~self.known
        if fresh.any():
            names = self.bank.items[fresh]
            verb = "item is" if len(names) == 1 else "items are"
            sentence = f"{len(names):,} {verb} new in the bank: {listed(names)}."
            out.append(Finding("new_items", "note", sentence, "", tuple(names.tolist())))
        loose = fresh & (status != "ok")
        if loose.any():
            names = self.bank.items[loose]
            verb = "new item rests" if len(names) == 1 else "new items rest"
            sentence = f"{len(names):,} {verb} on the prior alone, not tied to the bank by answers: {listed(names)}."
            remedy = "Collect answers to them together with items of the bank."
            out.append(Finding("prior_only", "warning", sentence, remedy, tuple(names.tolist())))
        if self.before.ndim == 1 and np.nanmedian(inflation[self.free]) > WEAK:
            out.append(
                Finding(
                    "weak_links",
                    "warning",
                    "Groups of items are connected by few answers, and a bank of this many items keeps no record of "
                    "which: in an update the distance between such groups moves too little.",
                    "Fit all data at once if they are at hand.",
                )
            )
        if prior.precision:
            text = f"mean {prior.mean:.2f}, precision {prior.precision:.3g}"
            sentence = f"Regularization: normal prior of the difficulties, {text} by empirical Bayes."
            out.append(Finding("regularization", "note", sentence))
        return out


_OUTDATED: tuple[str, ...] = (
    "regularization",
    "weak_links",
    "known_users",
    "repeated_users",
    "new_items",
    "no_recognition",
)
_OUTDATED += ("old_fingerprints",)


def _batches(answers: Responses, seen: int) -> Iterator[Responses]:
    """The users in order, in batches that grow with those before them."""
    start = 0
    while start < answers.n_users:
        stop = min(start + max(SMALLEST_BATCH, (seen + start) // BATCH_SHARE), answers.n_users)
        yield answers.take_users(np.arange(start, stop))
        start = stop
