"""The same responses cut into many blocks, for tests that one block and many give the same."""

from __future__ import annotations

import numpy as np

from spectral_irt.data import Responses


def in_blocks(responses: Responses, size: int) -> Responses:
    """The responses with at most `size` people a block."""
    blocks = []
    for block in responses.blocks:
        for start in range(0, block.n_persons, size):
            blocks.append(block.take(np.arange(start, min(start + size, block.n_persons))))
    return Responses(tuple(blocks), responses.items, responses.persons, responses.frame_kind, responses.source)
