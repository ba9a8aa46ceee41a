"""A bank with the items of a calibration that was anchored to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, DataSet
from spectral_irt.bank.build import with_room
from spectral_irt.bank.recognition import Salt, refuse_again
from spectral_irt.data import Responses
from spectral_irt.data.labels import positions
from spectral_irt.errors import BankError, OptionError, listed


def merged(bank: Bank, new: Bank, responses: Responses, salt: Any = None) -> Bank:
    """The bank with all its items, and those of `new`, which is a calibration of `responses` anchored to it.

    Items that were anchors keep thresholds, standard errors and status. Items that are new to the bank, or had no
    difficulty on its scale, have what the calibration found. Answers are counted, and what they tell is added, for all.
    """
    secret = Salt.of(salt)
    dataset = DataSet.of(responses, "anchored fit", secret)
    old = dataset.is_in(bank, responses)
    if old is not None:
        refuse_again(old, responses.source, "Keep the new calibration as another bank. Nothing was written.")
    check = bank.people.salt_check
    if check and (secret is None or secret.check != check):
        raise OptionError("the bank recognizes people by a salt; give the one it was made with. Nothing was written.")
    theirs = new.calibration
    fresh = positions(theirs.labels, bank.items) < 0
    own = theirs.layout.max_score
    whole = with_room(bank, theirs.labels[fresh].tolist(), own[fresh], theirs.codes[fresh])
    made, kept = whole.calibration, whole.evidence
    where = positions(theirs.labels, made.labels)
    other = theirs.labels[made.layout.max_score[where] != own]
    if len(other):
        raise BankError(
            f"{responses.source}: {listed(other)} have another number of categories in the bank. Nothing was written."
        )
    taken = ~theirs.anchored  # what this calibration has estimated itself
    entries, taken_entries = made.layout.of_items(where), taken[theirs.layout.item]

    def placed(ours: NDArray[Any], found: NDArray[Any]) -> NDArray[Any]:
        out = ours.copy()
        into, chosen = (where, taken) if len(found) == len(where) else (entries, taken_entries)
        out[into[chosen]] = found[chosen]
        return out

    def added(ours: NDArray[Any], found: NDArray[Any]) -> NDArray[Any]:
        out = ours.copy()
        np.add.at(out, where if len(found) == len(where) else entries, found)
        return out

    category_n = made.category_n.copy()
    category_n[where, : theirs.category_n.shape[1]] += np.nan_to_num(theirs.category_n)
    matrix = None
    if kept.matrix is not None and new.evidence.matrix is not None:
        matrix = kept.matrix.copy()
        matrix[np.ix_(entries, entries)] += new.evidence.matrix
    theirs_group = new.evidence.link_group
    group = placed(kept.link_group, theirs_group)
    unlinked = taken & (theirs_group > 0)
    group[where[unlinked]] = int(bank.evidence.link_group.max(initial=0)) + theirs_group[unlinked]  # a scale of its own
    return replace(
        whole,
        calibration=made.replace(
            thresholds=placed(made.thresholds, theirs.thresholds),
            threshold_se=placed(made.threshold_se, theirs.threshold_se),
            location_se=None if made.layout.binary else placed(made.se, theirs.se),
            status=placed(made.status, theirs.status),
            n=added(made.n, theirs.n),
            score=added(made.score, theirs.score),
            category_n=category_n,
            item_information=added(made.item_information, theirs.item_information),
            scale=theirs.scale,
            findings=(*(one for one in made.findings if one not in theirs.findings), *theirs.findings),
        ),
        evidence=replace(
            kept,
            information=added(kept.information, new.evidence.information),
            prior_mean=placed(kept.prior_mean, new.evidence.prior_mean),
            prior_gradient=placed(kept.prior_gradient, new.evidence.prior_gradient),
            link_group=group,
            prior_precision=kept.prior_precision or new.evidence.prior_precision,
            matrix=matrix,
        ),
        data=(*bank.data, dataset),
        population=bank.population or new.population,
        people=replace(new.people, hashes=np.concatenate([bank.people.hashes, new.people.hashes])),
    )
