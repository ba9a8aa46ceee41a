"""Responses turned round: those who answered become items, and what they answered becomes people.

A table of models and prompts can be read either way. With models as items, the conditional likelihood compares models
on the prompts that they share, and prompts are the sample that errors are over.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spectral_irt.responses.block import Block
from spectral_irt.responses.responses import Responses


def turned(responses: Responses) -> Responses:
    """The same answers with people and items exchanged.

    >>> answers = Responses.from_wide([[1, 0, None], [1, 1, 0]])
    >>> turned(answers)
    Responses(3 persons x 2 items, 5 responses, 60.0% right)
    """
    item, right = responses.gather(_answers)
    user = np.repeat(np.arange(responses.n_users, dtype=np.int32), responses.counts)
    other = Responses.from_codes(item, user, right, users=responses.items, items=responses.users)
    return replace(
        responses,
        blocks=other.blocks,
        users=responses.items,
        items=responses.users,
        words=(responses.words[1], responses.words[0]),
    )


def _answers(block: Block) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    return np.asarray(block.items), block.right().astype(bool)
