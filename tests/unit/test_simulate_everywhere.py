"""The same seed gives the same answers on every processor: digests of every design, with and without its special code.

Only what was answered is digested (who, which item, which category); the last bits of parameters may differ.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from spectral_irt import simulate

# Items a tenth of a logit apart on both sides of zero: adaptive tests meet ties that the last bit would decide.
SYMMETRIC = np.linspace(-2, 2, 41)

DRAWN: dict[str, tuple[str, dict[str, Any]]] = {
    "complete": ("rasch", {"n_items": 30}),
    "slopes": ("rasch", {"n_items": 30, "slopes": np.linspace(0.5, 2, 30)}),
    "sampled": ("rasch", {"n_items": 80, "design": "sampled", "p": 0.2}),
    "popularity": ("rasch", {"n_items": 300, "design": "popularity", "n_responses": 12_000}),
    "popularity, most items": ("rasch", {"n_items": 50, "design": "popularity", "n_responses": 9000}),
    "popularity, few items": (
        "rasch",
        {"n_items": 90, "design": "popularity", "n_responses": 3000, "exponent": 4.0, "activity_sd": 0.0},
    ),
    "booklets": ("rasch", {"n_items": 60, "design": "booklets", "booklets": 5}),
    "linked": ("rasch", {"design": "linked", "forms": 6, "length": 12, "anchors": 3}),
    "adaptive": ("rasch", {"n_items": 80, "design": "adaptive"}),
    "adaptive, ties": ("rasch", {"difficulty": SYMMETRIC, "design": "adaptive", "length": 15}),
    "two-stage": ("rasch", {"n_items": 40, "design": "two-stage"}),
    "stopping": ("rasch", {"n_items": 40, "design": "stopping"}),
    "partial credit": ("partial_credit", {"n_items": 20, "categories": 5}),
    "partial credit, unequal": ("partial_credit", {"n_items": 4, "categories": [2, 3, 6, 4]}),
    "partial credit, sampled": ("partial_credit", {"n_items": 60, "design": "sampled", "p": 0.2}),
    "partial credit, popularity": ("partial_credit", {"n_items": 60, "design": "popularity", "n_responses": 6000}),
    "partial credit, booklets": ("partial_credit", {"n_items": 40, "design": "booklets", "booklets": 4}),
    "partial credit, linked": ("partial_credit", {"design": "linked", "forms": 4, "length": 10}),
    "partial credit, adaptive": ("partial_credit", {"n_items": 60, "design": "adaptive", "length": 12}),
    "partial credit, ties": (
        "partial_credit",
        {"thresholds": SYMMETRIC[:, None] + [-0.5, 0.5], "design": "adaptive", "length": 12},
    ),
    "rating scale": ("rating_scale", {"n_items": 20, "categories": 4}),
}

DIGESTS = {
    "complete": "fc9acaf41f34c79b",
    "slopes": "1df5e157cdd126e0",
    "sampled": "6880ae60ffbc4080",
    "popularity": "b533568466804d42",
    "popularity, most items": "b0d4fda29d35829c",
    "popularity, few items": "79a3d4f80bab72c7",
    "booklets": "df2c73b86ff65871",
    "linked": "a5045ce6bcd22c26",
    "adaptive": "2e434c4819169923",
    "adaptive, ties": "4cab9cf8b04d9e72",
    "two-stage": "e5c302a428bb5a69",
    "stopping": "073e71de44463202",
    "partial credit": "b02c95597251123a",
    "partial credit, unequal": "b5ee4bb90c532484",
    "partial credit, sampled": "dd222a6ef8f1d30c",
    "partial credit, popularity": "fe2919bf2d8fd171",
    "partial credit, booklets": "07988172b716f33e",
    "partial credit, linked": "6b857ecb52ff891e",
    "partial credit, adaptive": "4c975363e24cc4b1",
    "partial credit, ties": "37d6d7ecfa7837eb",
    "rating scale": "4ec0c0545ec55152",
}


def digests() -> dict[str, str]:
    found = {}
    for name, (model, options) in DRAWN.items():
        data = getattr(simulate, model)(300, seed=11, **options)
        person, item, answer = (part.astype(np.int64) for part in data.responses.answers())
        order = np.lexsort((item, person))
        rows = np.column_stack([person, item, answer])[order]
        found[name] = hashlib.blake2b(rows.astype("<i8").tobytes(), digest_size=8).hexdigest()
    return found


def test_on_this_processor() -> None:
    assert digests() == DIGESTS


@pytest.mark.parametrize(
    "environment",
    [{"NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 X86_V3 X86_V4"}, {"OPENBLAS_CORETYPE": "Prescott"}],
    ids=["numpy", "blas"],
)
def test_on_another_processor(environment: dict[str, str]) -> None:
    """Features that this processor lacks cannot be switched off, which numpy says in a warning."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__], env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == DIGESTS


if __name__ == "__main__":
    print(json.dumps(digests(), indent=1))
