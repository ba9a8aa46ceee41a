"""Answers that a bank may not take: those it has already, and those that say nothing on its scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank
from spectral_irt.bank.recognition import SALT, Hashes, Salt, numbered
from spectral_irt.data import Finding, Responses
from spectral_irt.errors import BankError, DesignError, OptionError, listed

SAME_AGAIN = 0.95  # share of merely numbered people with the very same answers from which it is no accident


def checked_salt(bank: Bank, salt: Any, repeats: str) -> Salt | None:
    """The secret of this update; what the bank has, and what is wanted, must go with it."""
    secret = Salt.of(salt)
    if secret is None:
        if repeats == "skip":
            raise OptionError(f"`repeats='skip'` leaves out people who are recognized, which needs {SALT}.")
        if bank.salt_check and repeats != "keep":
            raise BankError(
                f"the bank recognizes people by a salt, and none was given. Give {SALT}, or say `repeats='keep'` to "
                "count everybody, seen before or not. The bank is unchanged."
            )
        return None
    if bank.salt_check and secret.check != bank.salt_check:
        missing = f" ({str(secret.path)!r} does not exist)" if secret.path is not None else ""
        raise BankError(
            f"this is not the salt that the bank was made with{missing}, so nobody would be recognized. Give that "
            "one. The bank is unchanged."
        )
    return secret


def without_repeats(
    bank: Bank, answers: Responses, users: Hashes, repeats: str
) -> tuple[NDArray[np.bool_], list[Finding]]:
    """Which people to count, and what to say about the others."""
    fresh = np.ones(answers.n_persons, dtype=bool)
    said = answers.counts > 0
    again = np.isin(users[:, 1], bank.users[:, 1]) & said
    number, anonymous = int(again.sum()), numbered(answers)
    # Numbers say little about who somebody is: then almost all of the new people, or of the old ones, must be the same.
    accident = SAME_AGAIN * min(int(said.sum()), len(bank.users)) if anonymous else 1
    suspicious = number >= max(accident, 1)
    if suspicious and repeats != "keep":
        noun = "person is" if number == 1 else "people are"
        if repeats == "error":
            raise BankError(
                f"{answers.source}: {number:,} of {answers.n_persons:,} {noun} in the bank already with the very same "
                f"answers: {listed(answers.persons[again])}. They would count twice. Say `repeats='skip'` to leave "
                "them out, or `repeats='keep'` if they are other people. The bank is unchanged."
            )
        sentence = f"{number:,} of {answers.n_persons:,} {noun} in the bank already with the same answers."
        fresh = ~again
        return fresh, [Finding("repeated_persons", "note", sentence, "They are left out.")]
    known = 0 if anonymous else int((np.isin(users[:, 0], bank.users[:, 0]) & said).sum())
    if not known:
        return fresh, []
    noun = "person has" if known == 1 else "people have"
    sentence = f"{known:,} of {answers.n_persons:,} {noun} been in the bank before under the same name."
    remedy = "Their new answers count as those of another person; answers given before must not be among them."
    return fresh, [Finding("known_persons", "note", sentence, remedy)]


def check_usable(bank: Bank, answers: Responses) -> None:
    if not answers.n_responses:
        raise DesignError(f"{answers.source}: there is no new response to add. The bank is unchanged.")
    known = set(bank.items[bank.known].tolist())
    shared = [label for label in answers.items[answers.item_counts > 0].tolist() if label in known]
    if not shared:
        raise BankError(
            f"{answers.source}: none of its items ({listed(answers.items)}) has a difficulty in the bank, which has "
            f"{listed(bank.items[bank.known])}; the new answers say nothing on its scale. Check the labels."
        )
    if not answers.mixed.any():
        raise DesignError(
            f"{answers.source}: everybody has the lowest or the highest score (all answers right or all wrong), which "
            "carries no information about difficulty. The bank is unchanged."
        )
