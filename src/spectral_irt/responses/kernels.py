"""What `Responses` asks every block: counts, scores, the answers themselves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectral_irt.responses.block import Block, Floats, Ints


def itself(block: Block) -> Block:
    return block


def n_persons(block: Block) -> int:
    return block.n_users


def n_responses(block: Block) -> int:
    return block.n_responses


def counts(block: Block) -> Ints:
    return block.counts


def scores(block: Block) -> Ints:
    return block.scores


def item_counts(block: Block, n_items: int) -> tuple[Ints, Ints]:
    """Answers to each item, and how many of them right."""
    return (
        np.bincount(block.items, minlength=n_items),
        np.bincount(block.items[block.right()], minlength=n_items),
    )


def kinds_of_people(block: Block) -> Ints:
    """How many have no answer, a single one, several and all right, several and all wrong, and a mixed score."""
    n, s = block.counts, block.scores
    several = n > 1
    kinds = (n == 0, n == 1, several & (s == n), several & (s == 0), (s > 0) & (s < n))
    return np.array([np.count_nonzero(kind) for kind in kinds])


def item_bytes(block: Block) -> bytes:
    return np.ascontiguousarray(block.items).tobytes()


def mixed(block: Block, person: Ints) -> NDArray[np.uint64]:
    """Sums, over answers, of two numbers that depend on person, item and answer without pattern; they wrap around."""
    at = np.repeat(person.astype(np.uint64), block.counts) << np.uint64(32)
    at += 2 * block.items.astype(np.uint64) + block.right()
    sums = []
    for odd in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03):  # the multipliers of splitmix64 and of a variant
        number = (at + np.uint64(1)) * np.uint64(odd)
        number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        sums.append(np.sum(number ^ (number >> np.uint64(31)), dtype=np.uint64))
    return np.array(sums)


def answers(block: Block, person: Ints) -> tuple[Ints, NDArray[np.int32], NDArray[np.bool_]]:
    return np.repeat(person, block.counts), np.asarray(block.items), block.right()


def dense(block: Block, n_items: int) -> Floats:
    table = np.full((block.n_users, n_items), np.nan)
    table[block.user_of_response(), block.items] = block.right()
    return table
