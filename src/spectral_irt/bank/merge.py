"""A bank with the items of a calibration that was anchored to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, DataSet
from spectral_irt.bank.evidence import MATRIX_ITEMS
from spectral_irt.bank.recognition import Salt
from spectral_irt.data import Responses
from spectral_irt.data.labels import label_array, positions
from spectral_irt.errors import BankError, OptionError


def merged(bank: Bank, new: Bank, responses: Responses, salt: Any = None) -> Bank:
    """The bank with all its items, and those of `new`, which is a calibration of `responses` anchored to it.

    Items that were anchors keep difficulty, standard error and status. Items that are new to the bank, or had no
    difficulty on its scale, have what the calibration found. Answers are counted, and what they tell is added, for all.
    """
    secret = Salt.of(salt)
    dataset = DataSet.of(responses, "anchored fit", secret)
    old = dataset.is_in(bank, responses)
    if old is not None:
        raise BankError(
            f"{responses.source}: these very data are in the bank already ({old.source}, {old.users:,} people, by "
            f"{old.how}); they would count twice. Keep the new calibration as another bank. Nothing was written."
        )
    if bank.salt_check and (secret is None or secret.check != bank.salt_check):
        raise OptionError("the bank recognizes people by a salt; give the one it was made with. Nothing was written.")
    place = positions(new.items, bank.items)
    fresh = place < 0
    m = bank.n_items + int(fresh.sum())
    where = place.copy()
    where[fresh] = np.arange(bank.n_items, m)
    taken = ~new.anchored  # what this calibration has estimated itself

    def together(name: str, *, add: bool = False) -> NDArray[Any]:
        ours, theirs = getattr(bank, name), getattr(new, name)
        out = np.concatenate([ours, np.zeros(m - bank.n_items, dtype=ours.dtype)])
        if add:
            np.add.at(out, where, theirs)
        else:
            out[where[taken]] = theirs[taken]
        return out

    matrix = None
    if bank.matrix is not None and new.matrix is not None and m <= MATRIX_ITEMS:
        matrix = np.zeros((m, m))
        matrix[: bank.n_items, : bank.n_items] = bank.matrix
        matrix[np.ix_(where, where)] += new.matrix
    status, group = together("status"), together("group")
    number = int(bank.group.max(initial=0))
    apart = where[taken & (new.group > 0)]
    group[apart] = number + new.group[taken & (new.group > 0)]  # a scale of their own here too
    return replace(
        bank,
        items=label_array([*bank.items.tolist(), *new.items[fresh].tolist()]),
        difficulty=together("difficulty"),
        se=together("se"),
        status=status,
        n=together("n", add=True),
        n_right=together("n_right", add=True),
        information=together("information", add=True),
        anchored=np.concatenate([bank.anchored, np.zeros(int(fresh.sum()), dtype=bool)]),
        group=group,
        matrix=matrix,
        scale=new.scale,
        data=(*bank.data, dataset),
        findings=(*(one for one in bank.findings if one not in new.findings), *new.findings),
        level=together("level"),
        pull=together("pull"),
        prior_precision=bank.prior_precision or new.prior_precision,
        population=bank.population or new.population,
        users=np.concatenate([bank.users, new.users]),
        salt_check=new.salt_check,
    )
