"""Pairwise likelihood against choix (the JSON file holds the data, the script and the version that made it)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from spectral_irt.estimators.pairwise import PairwiseRasch

CHOIX = 1e-6  # by the issue; its own tolerance is 1e-12 and ours 1e-9

CASE = json.loads((Path(__file__).parent / "choix_pairwise.json").read_text())


@pytest.mark.parametrize("weighting", ["pairs", "persons"])
def test_equals_choix(weighting):
    table = np.array(CASE["responses"], dtype=float)
    fit = PairwiseRasch(weighting=weighting).fit(table)
    for values in CASE["difficulty"]["users" if weighting == "persons" else weighting].values():
        np.testing.assert_allclose(fit.difficulty_, np.array(values) - np.mean(values), atol=CHOIX)
