"""Loops of scipy that are not public, against the public operations that stand in for them."""

import numpy as np
import pytest
from scipy import sparse

import spectral_irt as si
from spectral_irt import numerics as kernels
from spectral_irt.simulate import rasch


@pytest.fixture(params=["compiled loops", "public operations"])
def _either(request, monkeypatch):
    if request.param == "public operations":
        monkeypatch.setattr(kernels, "_loops", None)


@pytest.mark.usefixtures("_either")
def test_every_loop_against_dense_matrices():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((30, 7)) < 0.4, rng.normal(size=(30, 7)), 0.0)
    dense[4] = 0
    a = sparse.csr_array(dense)
    cells, v, w = (30, a.indptr, a.indices), rng.normal(size=7), rng.normal(size=30)
    assert np.array_equal(kernels.csr(a.indptr, a.indices, a.data, 7).toarray(), dense)
    np.testing.assert_allclose(kernels.row_sums(cells, a.data, v), dense @ v, atol=1e-12)
    total = np.ones(7)
    kernels.add_columns(cells, a.data, w, total)
    np.testing.assert_allclose(total, 1 + dense.T @ w, atol=1e-12)
    np.testing.assert_allclose(kernels.onto_items(a, w), dense.T @ w, atol=1e-12)
    out = np.empty(a.nnz)
    kernels.fill_scaled(a.indptr, a.indices, w, v, out)
    assert np.array_equal(out, (w[:, None] * v)[dense != 0])
    filled = np.zeros(dense.shape)
    kernels.fill_dense(a.indptr, a.indices, a.data, filled)
    assert np.array_equal(filled, dense)
    key = rng.integers(0, 5, 100).astype(np.int32)
    begins, first, second = kernels.counting_sort(key, 6, np.arange(100, dtype=np.int32), key.astype(np.int8))
    assert begins.tolist() == np.searchsorted(np.sort(key), np.arange(7)).tolist()
    assert first.tolist() == np.argsort(key, kind="stable").tolist()
    assert np.array_equal(second, np.sort(key))


def test_a_fit_does_not_need_what_is_not_public(monkeypatch):
    drawn = rasch(300, 12, design="sampled", p=0.6, seed=1).responses
    here = si.SpectralRasch().fit(drawn)
    monkeypatch.setattr(kernels, "_loops", None)
    there = si.SpectralRasch().fit(rasch(300, 12, design="sampled", p=0.6, seed=1).responses)
    np.testing.assert_allclose(there.difficulty_, here.difficulty_, atol=1e-9)
    np.testing.assert_allclose(there.se_, here.se_, rtol=1e-6)
    np.testing.assert_allclose(
        there.analyse(drawn).persons()["ability"], here.analyse(drawn).persons()["ability"], atol=1e-9
    )
