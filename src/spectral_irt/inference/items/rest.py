"""What a person's other answers say, apart from the one that is looked at.

An item that is part of the measure it is compared with agrees with itself, the more so the shorter the test. So each
answer is set against the rest: the share of the person's other answers that are right, or the ability that these stand
for in closed form (PROX), which is comparable where people met different items.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spectral_irt.data import Block
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.packing import person_chunks
from spectral_irt.model import prox
from spectral_irt.persons.abilities import answers_with_difficulty

CACHED = 65_536  # answers whose few numbers each stay in a core's second-level cache


def rest_ability(block: Block, difficulty: Floats, rest: Floats) -> Floats:
    """PROX of every answer's rest: all other items of the person, `rest` of them right.

    Every item has a difficulty, and everybody two answers or more.
    """
    n = np.repeat(block.counts, block.counts) - 1
    return _prox(block, difficulty, np.log((rest + 0.5) / (n - rest + 0.5)))


def _prox(block: Block, difficulty: Floats, logit: Floats) -> Floats:
    b, starts = difficulty[block.items], block.indptr[:-1]
    n = np.repeat(block.counts, block.counts) - 1
    mean = (np.repeat(np.add.reduceat(b, starts), block.counts) - b) / n
    spread = (np.repeat(np.add.reduceat(b * b, starts), block.counts) - b * b) / n - mean**2
    return np.asarray(prox(mean, np.maximum(spread, 0), logit))


def rest_shares(block: Block) -> Floats:
    """The share of the person's other answers that are right, for every answer; everybody has two answers or more."""
    return _of_halves(block, block.scores - 1, block.scores) / (np.repeat(block.counts, block.counts) - 1)


def own_rest_ability(block: Block, difficulty: Floats) -> Floats:
    """`rest_ability` with what the person did answer to the other items."""
    n, right = block.counts - 1, block.scores
    logits = [np.log((np.clip(rest, 0, n) + 0.5) / (n - np.clip(rest, 0, n) + 0.5)) for rest in (right - 1, right)]
    return _prox(block, difficulty, _of_halves(block, *logits))


def _of_halves(block: Block, if_right: Floats | Ints, if_wrong: Floats | Ints) -> Floats:
    """For every answer what its person has for right answers, or for wrong ones."""
    each = np.empty(2 * block.n_persons)
    each[0::2], each[1::2] = if_right, if_wrong
    return np.repeat(each, np.diff(block.bounds))


def with_rest(block: Block) -> Block:
    """The people who have two answers or more: somebody with a single one has no rest."""
    return block if (block.counts > 1).all() else block.take(np.flatnonzero(block.counts > 1))


def runs(block: Block, difficulty: Floats) -> Iterator[tuple[Ints, Block, Block, Block]]:
    """People in runs that fit the cache: positions, all their answers, those with a rest, and of these those to items
    with a difficulty."""
    for start, stop in person_chunks(block.indptr, CACHED):
        persons = np.arange(start, stop)
        part = block.span(start, stop)
        rest = with_rest(part)
        known = answers_with_difficulty(part, difficulty)
        yield persons, part, rest, rest if known is part else with_rest(known)
