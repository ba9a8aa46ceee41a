"""Blocks in more space than there is memory: while the budget has room they stay, from then on they are on disk."""

from __future__ import annotations

from collections.abc import Iterable

from spectral_irt.engines.memory import Budget, budget
from spectral_irt.responses.block import Block

SHARE = 0.5  # of the room, for packed answers: they are only read, so a mapped file serves them nearly as well


class BlockStore:
    """Takes blocks one by one as they are packed, and gives them back, in memory or mapped from a temporary file.

    Examples
    --------
    >>> from spectral_irt.responses.block import EMPTY
    >>> BlockStore().add(EMPTY).n_users
    0
    """

    def __init__(self, allowed: Budget | None = None) -> None:
        self.budget = allowed or budget()

    def add(self, block: Block) -> Block:
        """The same block, with `indptr`, `split`, `items` and `options` where there is room for them."""
        kept: Block = self.budget.keep(block, SHARE)
        return kept

    def add_all(self, blocks: Iterable[Block]) -> list[Block]:
        """The same blocks, each added."""
        return [self.add(block) for block in blocks]
