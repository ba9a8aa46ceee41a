"""Has this person been counted before? Only the owner of a secret salt can tell.

Without a salt a bank keeps nothing about single people. With one it keeps two keyed hashes per person: of the label,
and of the label with the items and the answers. Without the salt, which is never in the bank, no name and no answer can
be tried against them; who has both the bank and the salt can try guesses.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.labels import positions
from spectral_irt.errors import BankError, DesignError, OptionError, OutputError, ReadError, listed

if TYPE_CHECKING:
    from spectral_irt.bank.bank import Bank, DataSet

Hashes = NDArray[np.uint64]

LEAST_SALT = 16  # bytes: fewer could be found by trying
MANY = 30  # people in a data set of which an unkeyed trace is kept; with fewer it would tell of their answers
SAME_AGAIN = 0.95  # share of merely numbered people with the very same answers from which it is no accident
TRACE = 4  # hexadecimal digits of that trace: 16 bits for all answers together

SALT = "a salt (`salt=`)"
NO_RECOGNITION = Finding(
    "no_recognition",
    "note",
    "This bank keeps nothing about single people, so it cannot see whether somebody's answers are added twice.",
    "Give " + SALT + " to recognize people who come again.",
)


def nobody() -> Hashes:
    return np.zeros((0, 2), dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class KnownPeople:
    """Keyed hashes of people (of the label; of the label with items and answers), and the check of their salt."""

    hashes: Hashes = field(default_factory=nobody)
    salt_check: str = ""

    @classmethod
    def of(cls, responses: Responses, salt: Salt | None) -> KnownPeople:
        return cls() if salt is None else cls(salt.fingerprints(responses), salt.check)

    def __len__(self) -> int:
        return len(self.hashes)

    def and_more(self, hashes: Hashes, salt: Salt | None) -> KnownPeople:
        check = self.salt_check if salt is None else salt.check
        return KnownPeople(np.concatenate([self.hashes, hashes]), check)

    def have(self, hashes: Hashes, column: int) -> NDArray[np.bool_]:
        """Who of these is known: by the label (0), or by label and answers (1)."""
        return np.isin(hashes[:, column], self.hashes[:, column])


@dataclass(frozen=True)
class Salt:
    """A secret key; `path` is where it is still to be written."""

    key: bytes
    path: Path | None = None

    @classmethod
    def of(cls, salt: Any) -> Salt | None:
        """From the secret itself (bytes), or from a file; a file that does not exist is made by `keep`."""
        if salt is None or isinstance(salt, Salt):
            return salt
        if isinstance(salt, bytes):
            return cls(_checked(salt, "the salt"))
        if not isinstance(salt, str | Path):
            raise OptionError(f"salt is a {type(salt).__name__}; it is a secret (bytes) or the path of a file with it.")
        path = Path(salt)
        try:
            return cls(_checked(path.read_bytes().strip(), f"the salt file {str(path)!r}"))
        except FileNotFoundError:
            return cls(secrets.token_hex(32).encode(), path)
        except OSError as error:
            raise ReadError(f"the salt file {str(path)!r} cannot be read: {error.strerror or error}.") from error

    def keep(self) -> Salt:
        """Write a new salt to its file, for its owner's eyes only."""
        if self.path is None:
            return self
        try:
            made = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise OutputError(
                f"the salt file {str(self.path)!r} cannot be written: {error.strerror or error}. Nothing was written."
            ) from error
        try:
            with os.fdopen(made, "wb") as file:
                file.write(self.key + b"\n")
        except BaseException:
            with suppress(OSError):
                self.path.unlink()
            raise
        return replace(self, path=None)

    @property
    def check(self) -> str:
        """By this a bank knows its salt again."""
        return self._hash(b"spectral-irt: is this the salt?", 8).hex()

    def _hash(self, text: bytes, size: int) -> bytes:
        key = blake2b(self.key, digest_size=32).digest()
        return blake2b(text, key=key, digest_size=size).digest()

    def fingerprints(self, responses: Responses) -> Hashes:
        """People x 2: keyed hash of the label, and of label and answers together. Order and blocks do not matter."""
        key = blake2b(self.key, digest_size=32).digest()
        responses = responses.entries
        items = _hashed(responses.items) & ~np.uint64(1)
        return responses.gather(_keyed_hashes, items, key, persons=(responses.persons,))


def _keyed_hashes(block: Block, names: NDArray[Any], items: Hashes, key: bytes) -> Hashes:
    answers = items[block.items] | block.right().astype(np.uint64)
    answers = answers[np.lexsort((answers, block.person_of_response()))].astype("<u8")
    out = np.zeros((block.n_persons, 2), dtype=np.uint64)
    for k, label in enumerate(names.tolist()):
        name = str(label).encode("utf-8", "surrogatepass")
        given = answers[block.indptr[k] : block.indptr[k + 1]].tobytes()
        both = b"answers:%d:%s:%s" % (len(name), name, given)
        for column, text in enumerate((b"name:" + name, both)):
            out[k, column] = int.from_bytes(blake2b(text, key=key, digest_size=8).digest(), "little")
    return out


def _checked(secret: bytes, what: str) -> bytes:
    if len(secret) < LEAST_SALT:
        raise OptionError(
            f"{what} has {len(secret)} bytes, and fewer than {LEAST_SALT} can be guessed. Name a file that does not "
            "exist, and a good salt is written there."
        )
    return secret


def digest_of(responses: Responses, salt: Salt | None) -> str:
    """By this the same data are known again: keyed, or a mere trace; none of so few people that it would tell."""
    whole = responses.digest()
    if salt is not None:
        return salt._hash(f"data:{whole}".encode(), 16).hex()
    return whole[:TRACE] if responses.n_persons >= MANY else ""


def _hashed(labels: NDArray[Any]) -> Hashes:
    """64 bits for every label; a number and the same number as text agree."""
    texts = map(str, labels.tolist())
    digests = b"".join(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def in_no_order(hashes: Hashes) -> Hashes:
    """The fingerprints sorted, so that their places tell nothing."""
    return hashes[np.lexsort((hashes[:, 1], hashes[:, 0]))]


def numbered(responses: Responses) -> bool:
    """Whether the people are merely numbered from 0 or 1: then labels say nothing about who they are."""
    names = responses.persons
    if names.dtype.kind not in "iu" or not len(names):
        return False
    return bool(names[0] in (0, 1) and np.array_equal(names, np.arange(names[0], names[0] + len(names))))


# ----------------------------------------------------------------------------- answers that a bank may not take


def checked_salt(bank: Bank, salt: Any, repeats: str) -> Salt | None:
    """The secret of this update; what the bank has, and what is wanted, must go with it."""
    secret = Salt.of(salt)
    if secret is None:
        if repeats == "skip":
            raise OptionError(f"`repeats='skip'` leaves out people who are recognized, which needs {SALT}.")
        if bank.people.salt_check and repeats != "keep":
            raise BankError(
                f"the bank recognizes people by a salt, and none was given. Give {SALT}, or say `repeats='keep'` to "
                "count everybody, seen before or not. The bank is unchanged."
            )
        return None
    if bank.people.salt_check and secret.check != bank.people.salt_check:
        missing = f" ({str(secret.path)!r} does not exist)" if secret.path is not None else ""
        raise BankError(
            f"this is not the salt that the bank was made with{missing}, so nobody would be recognized. Give that "
            "one. The bank is unchanged."
        )
    return secret


def without_repeats(
    bank: Bank, answers: Responses, hashes: Hashes, repeats: str
) -> tuple[NDArray[np.bool_], list[Finding]]:
    """Which people to count, and what to say about the others."""
    fresh = np.ones(answers.n_persons, dtype=bool)
    said = answers.counts > 0
    again = bank.people.have(hashes, 1) & said
    number, anonymous = int(again.sum()), numbered(answers)
    # Numbers say little about who somebody is: then almost all of the new people, or of the old ones, must be the same.
    accident = SAME_AGAIN * min(int(said.sum()), len(bank.people)) if anonymous else 1
    suspicious = number >= max(accident, 1)
    if suspicious and repeats != "keep":
        noun = "person is" if number == 1 else "people are"
        known_already = f"{number:,} of {answers.n_persons:,} {noun} in the bank already with the"
        if repeats == "skip":
            return ~again, [Finding("repeated_persons", "note", f"{known_already} same answers.", "They are left out.")]
        raise BankError(
            f"{answers.source}: {known_already} very same answers: {listed(answers.persons[again])}. They would count "
            "twice. Say `repeats='skip'` to leave them out, or `repeats='keep'` if they are other people. The bank is "
            "unchanged."
        )
    known = 0 if anonymous else int((bank.people.have(hashes, 0) & said).sum())
    if not known:
        return fresh, []
    noun = "person has" if known == 1 else "people have"
    sentence = f"{known:,} of {answers.n_persons:,} {noun} been in the bank before under the same name."
    remedy = "Their new answers count as those of another person; answers given before must not be among them."
    return fresh, [Finding("known_persons", "note", sentence, remedy)]


def refuse_again(old: DataSet, source: str, rest: str) -> NoReturn:
    """These very data have been counted."""
    raise BankError(
        f"{source}: these very data are in the bank already ({old.source}, {old.persons:,} people, "
        f"{old.responses:,} responses, by {old.how}); they would count twice. {rest}"
    )


def check_usable(bank: Bank, answers: Responses) -> None:
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
