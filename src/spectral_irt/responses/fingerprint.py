"""A fingerprint of responses: the same data give the same, however they were read."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.responses import kernels

if TYPE_CHECKING:
    from spectral_irt.responses.responses import Responses

FETCHED = 250_000_000  # answers on a cluster whose codes are fetched for a digest: a gigabyte


def fingerprint_of(responses: Responses) -> str:
    """Of labels, answers, counts and scores; see `Responses.digest`."""
    fingerprint = hashlib.blake2b(digest_size=16)
    for labels in (responses.items, responses.users):
        fingerprint.update(f"{len(labels)} labels:".encode())
        if labels.dtype == object:  # each with its length, so that no label can imitate two others
            texts = (f"{len(text)}:{text}" for text in map(str, labels))
            fingerprint.update("".join(texts).encode("utf-8", "surrogatepass"))
        else:
            fingerprint.update(np.ascontiguousarray(labels).tobytes())
    if responses.engine.far and responses.n_responses > FETCHED:
        fingerprint.update(responses.sum(kernels.mixed, persons=(np.arange(responses.n_users),)).tobytes())
    else:
        for items in responses.map(kernels.item_bytes):
            fingerprint.update(items)
    fingerprint.update(responses.counts.tobytes())
    fingerprint.update(responses.scores.tobytes())
    return fingerprint.hexdigest()
