"""The reciprocal methods against R's pairwise and sirt on LSAT section 6.

`pairwise::pair(pot=FALSE)` is Choppin's estimate. By default that package first raises the matrix of counts to its
third power, and `sirt::rasch.evm.pcm` takes the eigenvector after squaring it: the same free functions on Y^3 and Y^2.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from spectral_irt.chain.paper import pair_counts
from spectral_irt.datasets import load_lsat
from spectral_irt.estimators.pairwise import ChoppinRasch, choppin_difficulty, eigenvector_difficulty, reciprocal_matrix

CLOSED_FORM = 1e-10  # no iteration in either program
EIGENVECTOR = 1e-8

REFERENCE = json.loads((Path(__file__).parent / "lsat6.json").read_text())


def values(program: str) -> np.ndarray:
    return np.array(list(REFERENCE[program]["difficulty"].values()))


def test_choppin_equals_pairwise():
    np.testing.assert_allclose(
        ChoppinRasch().fit(load_lsat()).difficulty_, values("pairwise_pair_nopow"), atol=CLOSED_FORM
    )


def test_choppin_of_the_third_power_equals_pairwise_default():
    cube = np.linalg.matrix_power(pair_counts(load_lsat(), dense=True), 3)
    np.testing.assert_allclose(choppin_difficulty(reciprocal_matrix(cube)), values("pairwise_pair"), atol=CLOSED_FORM)


def test_eigenvector_of_the_square_equals_sirt():
    square = np.linalg.matrix_power(pair_counts(load_lsat(), dense=True), 2)
    beta, _, _ = eigenvector_difficulty(reciprocal_matrix(square))
    np.testing.assert_allclose(beta, values("sirt_rasch.evm.pcm"), atol=EIGENVECTOR)
