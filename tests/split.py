"""The same responses cut into many blocks, for tests that one block and many give the same."""

import mmap
from dataclasses import replace
from typing import Any

import numpy as np

from spectral_irt.data import Responses


def in_blocks(responses: Responses, size: int) -> Responses:
    """The responses with at most `size` people a block."""
    blocks = []
    for block in responses.blocks:
        for start in range(0, block.n_persons, size):
            blocks.append(block.take(np.arange(start, min(start + size, block.n_persons))))
    return replace(responses, blocks=tuple(blocks))


def in_pieces(table: np.ndarray, pieces: int) -> Responses:
    """The responses of a table of people x items, in so many blocks."""
    blocks = [Responses.from_wide(part).blocks[0] for part in np.array_split(table, pieces)]
    return Responses(tuple(blocks), np.arange(table.shape[1]), np.arange(len(table)))


def is_mapped(array: Any) -> bool:
    """Whether the array's numbers lie in a file."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(getattr(array, "obj", array), mmap.mmap)
