"""The same seed gives the same answers on every processor: digests of every design, with and without its special code.

Only what was answered is digested (who, which item, which category); the last bits of parameters may differ.
"""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from spectral_irt import simulate

# Items a tenth of a logit apart on both sides of zero: adaptive tests meet ties that the last bit would decide.
SYMMETRIC = np.linspace(-2, 2, 41)
TIES = SYMMETRIC[:, None] + [-0.5, 0.5]
FEW = {"n_items": 90, "design": "popularity", "n_responses": 3000, "exponent": 4.0, "activity_sd": 0.0}

# What is drawn, by the digest of its answers.
DRAWN = {
    "fc9acaf41f34c79b": ("rasch", {"n_items": 30}),
    "1df5e157cdd126e0": ("rasch", {"n_items": 30, "slopes": np.linspace(0.5, 2, 30)}),
    "6880ae60ffbc4080": ("rasch", {"n_items": 80, "design": "sampled", "p": 0.2}),
    "b533568466804d42": ("rasch", {"n_items": 300, "design": "popularity", "n_responses": 12_000}),
    "b0d4fda29d35829c": ("rasch", {"n_items": 50, "design": "popularity", "n_responses": 9000}),
    "79a3d4f80bab72c7": ("rasch", FEW),
    "df2c73b86ff65871": ("rasch", {"n_items": 60, "design": "booklets", "booklets": 5}),
    "a5045ce6bcd22c26": ("rasch", {"design": "linked", "forms": 6, "length": 12, "anchors": 3}),
    "2e434c4819169923": ("rasch", {"n_items": 80, "design": "adaptive"}),
    "4cab9cf8b04d9e72": ("rasch", {"difficulty": SYMMETRIC, "design": "adaptive", "length": 15}),
    "e5c302a428bb5a69": ("rasch", {"n_items": 40, "design": "two-stage"}),
    "073e71de44463202": ("rasch", {"n_items": 40, "design": "stopping"}),
    "b02c95597251123a": ("partial_credit", {"n_items": 20, "categories": 5}),
    "b5ee4bb90c532484": ("partial_credit", {"n_items": 4, "categories": [2, 3, 6, 4]}),
    "dd222a6ef8f1d30c": ("partial_credit", {"n_items": 60, "design": "sampled", "p": 0.2}),
    "fe2919bf2d8fd171": ("partial_credit", {"n_items": 60, "design": "popularity", "n_responses": 6000}),
    "07988172b716f33e": ("partial_credit", {"n_items": 40, "design": "booklets", "booklets": 4}),
    "6b857ecb52ff891e": ("partial_credit", {"design": "linked", "forms": 4, "length": 10}),
    "4c975363e24cc4b1": ("partial_credit", {"n_items": 60, "design": "adaptive", "length": 12}),
    "37d6d7ecfa7837eb": ("partial_credit", {"thresholds": TIES, "design": "adaptive", "length": 12}),
    "4ec0c0545ec55152": ("rating_scale", {"n_items": 20, "categories": 4}),
}


def digests():
    found = []
    for model, options in DRAWN.values():
        data = getattr(simulate, model)(300, seed=11, **options)
        person, item, answer = (part.astype(np.int64) for part in data.responses.answers())
        rows = np.column_stack([person, item, answer])[np.lexsort((item, person))]
        found.append(hashlib.blake2b(rows.astype("<i8").tobytes(), digest_size=8).hexdigest())
    return found


def test_on_this_processor():
    assert digests() == list(DRAWN)


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [{"NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 X86_V3 X86_V4"}, {"OPENBLAS_CORETYPE": "Prescott"}],
    ids=["numpy", "blas"],
)
def test_on_another_processor(environment):
    """Features that this processor lacks cannot be switched off, which numpy says in a warning."""
    command = [sys.executable, "-W", "ignore", __file__]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == list(DRAWN)


if __name__ == "__main__":
    print(json.dumps(digests(), indent=1))
