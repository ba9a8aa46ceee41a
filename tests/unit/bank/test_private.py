"""What a bank tells about single people: nothing, whatever is tried against it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from spectral_irt import SpectralRasch, simulate
from spectral_irt.bank import Bank
from spectral_irt.bank.recognition import Salt
from spectral_irt.data import Responses
from spectral_irt.errors import BankError, OptionError

SALT = b"a secret of sixteen bytes or more"


def named(n: int, m: int, seed: int) -> Responses:
    data = simulate.rasch(n, m, seed=seed).responses
    users = np.array([f"pupil {k}" for k in range(n)], dtype=object)
    return replace(data, persons=users, items=np.array([f"q{k}" for k in range(m)], dtype=object))


def numbers_in(folder: Path) -> set[int]:
    """Every whole number of 64 bits that any table of the bank holds."""
    found: set[int] = set()
    for path in folder.glob("*.parquet"):
        table = pl.read_parquet(path)
        for name, kind in table.schema.items():
            if kind in (pl.UInt64, pl.Int64):
                found |= set(table[name].to_list())
    return found


def unsalted(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


@pytest.mark.parametrize("salt", [None, SALT])
def test_no_name_and_no_answer_can_be_tried_against_a_bank(tmp_path: Path, salt: bytes | None) -> None:
    """The names are known and there are 2^8 ways to answer: neither with nor without a salt does one fit."""
    data = named(60, 8, 1)
    Bank.from_fit(SpectralRasch().fit(data), data, salt).save(tmp_path / "bank")
    held = numbers_in(tmp_path / "bank")
    assert not held & {unsalted(label) for label in data.persons.tolist()}
    if salt is None:
        assert not list((tmp_path / "bank").glob("persons.*"))
        assert max(held) < 2**16  # counts, and no hash
        return
    assert len(held) > 120  # two hashes each, and they come from the salt:
    guess = Salt(b"another secret, as long as you like")
    everyone = Responses.from_wide(np.array(list(itertools.product([0.0, 1.0], repeat=8))))
    for label in data.persons[:3].tolist():
        asked = replace(everyone, persons=np.array([label] * 256, dtype=object), items=data.items)
        assert not held & set(guess.fingerprints(asked).ravel().tolist())
    assert held >= set(Salt(salt).fingerprints(data).ravel().tolist())
    manifest = (tmp_path / "bank" / "bank.json").read_text()
    assert salt.decode() not in manifest


def test_the_order_of_people_is_not_kept(tmp_path: Path) -> None:
    data = named(60, 8, 1)
    bank = Bank.from_fit(SpectralRasch().fit(data), data, SALT)
    order = Bank.load(bank.save(tmp_path / "bank")).people.hashes[:, 0]
    assert np.array_equal(order, np.sort(order))


def test_data_of_few_people_leave_no_digest() -> None:
    """With one pupil and eight items 256 digests would have to be tried."""
    data = named(60, 8, 1)
    bank = Bank.from_fit(SpectralRasch().fit(data), data)
    assert len(bank.data[0].digest) == 4  # 16 bits of the answers of 60
    one = replace(data.take_persons([3]), persons=np.array(["new pupil"], dtype=object))
    if one.scores[0] in (0, 8):
        pytest.fail("the pupil should be neither perfect nor hopeless")
    assert bank.update(one).data[1].digest == ""
    salted = Bank.from_fit(SpectralRasch().fit(data), data, SALT).update(one, salt=SALT)
    with pytest.raises(BankError, match="these very data are in the bank already"):
        salted.update(one, salt=SALT)


def test_names_of_repeated_people_do_not_go_into_the_bank(tmp_path: Path) -> None:
    data, more = named(60, 8, 1), named(80, 8, 2)
    bank = Bank.from_fit(SpectralRasch().fit(data), data, SALT)
    mixed = Responses.from_wide(np.vstack([data.to_dense()[:5], more.to_dense()]), items=data.items.tolist())
    users = [*data.persons[:5].tolist(), *(f"other {k}" for k in range(80))]
    updated = bank.update(replace(mixed, persons=np.array(users, dtype=object)), repeats="skip", salt=SALT)
    folder = updated.save(tmp_path / "bank")
    assert "5 of 85 people are in the bank already" in (folder / "bank.json").read_text()
    assert all(b"pupil" not in path.read_bytes() for path in folder.iterdir())


def test_a_salt_file(tmp_path: Path) -> None:
    data = named(60, 8, 1)
    fit = SpectralRasch().fit(data)
    bank = Bank.from_fit(fit, data, tmp_path / "salt")
    again = Bank.from_fit(fit, data, str(tmp_path / "salt"))
    assert np.array_equal(bank.people.hashes, again.people.hashes)
    assert (tmp_path / "salt").stat().st_mode & 0o777 == 0o600
    assert not np.array_equal(bank.people.hashes, Bank.from_fit(fit, data, tmp_path / "other").people.hashes)
    with pytest.raises(OptionError, match="fewer than 16 can be guessed"):
        Bank.from_fit(fit, data, b"pepper")
    with pytest.raises(OptionError, match="salt is a int"):
        Bank.from_fit(fit, data, 5)
    with pytest.raises(BankError, match="recognizes people by a salt, and none was given"):
        bank.update(named(50, 8, 3))
