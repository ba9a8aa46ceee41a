"""What a person's other answers say, apart from the one that is looked at.

An item that is part of the measure it is compared with agrees with itself, the more so the shorter the test. So each
answer is set against the rest: the share of the person's other answers that are right, or the ability that these stand
for in closed form (PROX), which is comparable where people met different items.
"""

from __future__ import annotations

import numpy as np

from spectral_irt.model import prox
from spectral_irt.responses import Block
from spectral_irt.responses.block import Floats


def rest_ability(block: Block, difficulty: Floats, rest: Floats) -> Floats:
    """PROX of every answer's rest: all other items of the person, `rest` of them right.

    Every item has a difficulty, and everybody two answers or more.
    """
    b, starts = difficulty[block.items], block.indptr[:-1]
    n = np.repeat(block.counts, block.counts) - 1
    mean = (np.repeat(np.add.reduceat(b, starts), block.counts) - b) / n
    spread = (np.repeat(np.add.reduceat(b * b, starts), block.counts) - b * b) / n - mean**2
    return np.asarray(prox(mean, np.maximum(spread, 0), np.log((rest + 0.5) / (n - rest + 0.5))))


def with_rest(block: Block) -> Block:
    """The people who have two answers or more: somebody with a single one has no rest."""
    return block if (block.counts > 1).all() else block.take(np.flatnonzero(block.counts > 1))


def rest_score(block: Block) -> Floats:
    """How many of the person's other answers are right, for every answer."""
    return np.asarray(np.repeat(block.scores, block.counts) - block.right(), dtype=np.float64)
