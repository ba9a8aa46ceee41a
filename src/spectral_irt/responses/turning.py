"""Responses turned round: those who answered become items, and what they answered becomes people.

A table of models and prompts can be read either way. With models as items, the conditional likelihood compares models
on the prompts that they share, and prompts are the sample that errors are over.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.responses.block import Block
from spectral_irt.responses.responses import Responses


def turned(responses: Responses) -> Responses:
    """The same answers with people and items exchanged.

    >>> answers = Responses.from_wide([[1, 0, None], [1, 1, 0]])
    >>> turned(answers)
    Responses(3 persons x 2 items, 5 responses, 60.0% right)
    """
    item, wrong = responses.gather(_answers)
    indptr = np.concatenate([[0], np.cumsum(responses.counts)])
    # The value is 1 for right and 2 for wrong, so that none is a zero that sparse arithmetic may drop.
    shape = (responses.n_users, responses.n_items)
    columns = sparse.csr_array((wrong + np.int8(1), item, indptr), shape=shape).tocsc()
    slots = 2 * columns.indices.astype(np.int32, copy=False) + (columns.data - 1)
    indptr = columns.indptr.astype(np.int64)
    other = Responses.from_slots(
        indptr, slots.astype(np.int32, copy=False), users=responses.items, items=responses.users
    )
    return replace(
        responses,
        blocks=other.blocks,
        users=responses.items,
        items=responses.users,
        words=(responses.words[1], responses.words[0]),
    )


def _answers(block: Block) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    return np.asarray(block.items), (~block.right()).astype(np.int8)
