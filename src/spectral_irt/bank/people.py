"""Has this person been counted before? Two numbers a user, from which no name and no answer can be read back.

One is a hash of the user's label, the other of the label, the items answered and the answers. Both are 64 bits, so a
million users of different names meet by accident about once in thirty million banks.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.responses import Block, Responses

Hashes = NDArray[np.uint64]


def fingerprints(responses: Responses) -> Hashes:
    """Users x 2: hash of the label, and hash of label and answers together. Order and blocks do not matter."""
    names = hashed(responses.users)
    items = hashed(responses.items)
    answers = np.zeros((2, len(items)), dtype=np.uint64)
    answers[0], answers[1] = mix(items), mix(items ^ np.uint64(0x5851F42D4C957F2D))
    given = responses.gather(_summed, answers)
    return np.stack([names, mix(names ^ mix(given))], axis=1)


def _summed(block: Block, answers: Hashes) -> Hashes:
    each = answers[(~block.right()).astype(np.intp), block.items]
    before = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(each, dtype=np.uint64)])
    return before[block.indptr[1:]] - before[block.indptr[:-1]]


def hashed(labels: NDArray[Any]) -> Hashes:
    """64 bits for every label; a number and the same number as text agree."""
    texts = map(str, labels.tolist())
    digests = b"".join(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def mix(x: Hashes) -> Hashes:
    """The finaliser of splitmix64 (Steele, Lea & Flood 2014): every bit of the input moves every bit of the output."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def numbered(responses: Responses) -> bool:
    """Whether the users are merely numbered from 0 or 1: then labels say nothing about who they are."""
    users = responses.users
    if users.dtype.kind not in "iu" or not len(users):
        return False
    return bool(users[0] in (0, 1) and np.array_equal(users, np.arange(users[0], users[0] + len(users))))
