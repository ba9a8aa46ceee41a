"""Numerical tools against their dense, obvious versions; loops that are not public against public operations."""

import numpy as np
import pytest
from scipy import sparse

import spectral_irt as si
from spectral_irt import numerics
from spectral_irt.conditional.errors import Matrices
from spectral_irt.numerics import Anderson, centered_inverse, conjugate_gradients, gram


@pytest.mark.parametrize("m", [2, 5, 40, 150])
def test_centered_inverse_is_the_pseudo_inverse(m):
    rng = np.random.default_rng(m)
    flows = rng.random((m, m))
    flows = flows + flows.T
    laplacian = np.diag(flows.sum(axis=1)) - flows
    found = centered_inverse(laplacian)
    np.testing.assert_allclose(found, np.linalg.pinv(laplacian), atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-12)


def test_large_matrices_are_inverted_as_well_as_by_elimination():
    """By their Cholesky factor where they have one; the weakest of these links is 1e-8 of the strongest."""
    rng = np.random.default_rng(2)
    turn = np.linalg.qr(rng.normal(size=(501, 501)))[0]
    for values in (np.logspace(0, -8, 501), np.linspace(-1, 1.2, 501)):
        matrix = (turn * values) @ turn.T
        matrix = (matrix + matrix.T) / 2
        exact = (turn / values) @ turn.T
        # without a floating part nothing is centered: the plain inverse
        found = centered_inverse(matrix, np.full(501, -1))
        np.testing.assert_allclose(found, exact, atol=1e-6 * np.abs(exact).max())


def test_a_sandwich_in_single_precision():
    rng = np.random.default_rng(6)
    scores = rng.normal(size=(2000, 120))
    scores -= scores.mean(axis=1, keepdims=True)
    meat = scores.T @ scores
    bread = 2000 * (np.eye(120) - 1 / 120)
    inverse = centered_inverse(bread)
    plain = inverse @ meat @ inverse
    np.testing.assert_allclose(Matrices(bread, meat, inverse, single=False).covariance(), plain, atol=1e-18)
    errors = np.sqrt(np.diag(Matrices(bread, meat, inverse, single=True).covariance()))
    np.testing.assert_allclose(errors, np.sqrt(np.diag(plain)), rtol=2e-7)


@pytest.mark.parametrize("filled", [0.0, 0.05, 0.9])
def test_gram_is_the_product(filled, monkeypatch):
    monkeypatch.setattr(numerics, "SLICE_ROWS", 1)
    monkeypatch.setattr(numerics, "SLICE", 70)  # slices of ten rows
    rng = np.random.default_rng(1)
    one, other = (rng.normal(size=(57, 7)) * (rng.random((57, 7)) < filled) for _ in range(2))
    np.testing.assert_allclose(gram(sparse.csr_array(one)), one.T @ one, atol=1e-12)
    np.testing.assert_allclose(gram(sparse.csr_array(one), sparse.csr_array(other)), one.T @ other, atol=1e-12)


@pytest.mark.parametrize("columns", [(), (1,), (4,)])
def test_conjugate_gradients_solve_a_laplacian(columns):
    rng = np.random.default_rng(3)
    flows = rng.random((30, 30)) ** 4
    laplacian = np.diag((flows + flows.T).sum(axis=1)) - flows - flows.T
    b = rng.normal(size=(30, *columns))
    x, steps = conjugate_gradients(laplacian.__matmul__, np.diag(laplacian), b, tol=1e-10)
    np.testing.assert_allclose(x, np.linalg.pinv(laplacian) @ b, atol=1e-9)
    assert 1 < steps <= 40
    assert conjugate_gradients(laplacian.__matmul__, np.diag(laplacian), b, tol=1e-10, most=3)[1] == 3
    assert conjugate_gradients(laplacian.__matmul__, np.diag(laplacian), 0 * b, tol=1e-10)[1] == 0
    rough, few = conjugate_gradients(laplacian.__matmul__, np.diag(laplacian), b, tol=1e-2)
    exact, more = conjugate_gradients(laplacian.__matmul__, np.diag(laplacian), b, tol=1e-10, start=rough)
    np.testing.assert_allclose(exact, x, atol=1e-9)
    assert few < steps
    assert more < steps + 3  # what the rough solution knew is not done again
    assert conjugate_gradients(laplacian.__matmul__, np.diag(laplacian), b, tol=1e-9, start=exact)[1] == 0


def iterated(matrix, shift, speed, steps):
    """x = matrix x + shift, from zero."""
    x = np.zeros(len(shift))
    for _ in range(steps):
        step = matrix @ x + shift
        x = step if speed is None else speed.next(x, step)
    return x


def test_anderson_solves_a_linear_iteration_in_as_many_steps_as_it_has_directions():
    rng = np.random.default_rng(2)
    matrix = np.diag([0.9, 0.8, -0.7, 0.95]) + 0.02 * rng.normal(size=(4, 4))
    shift = rng.normal(size=4)
    exact = np.linalg.solve(np.eye(4) - matrix, shift)
    np.testing.assert_allclose(iterated(matrix, shift, Anderson(), 6), exact, atol=1e-9)
    assert np.abs(iterated(matrix, shift, None, 6) - exact).max() > 0.1


def test_anderson_in_a_scaled_metric_goes_the_same_way():
    rng = np.random.default_rng(5)
    matrix = np.diag(rng.uniform(-0.9, 0.95, 40)) + 0.01 * rng.normal(size=(40, 40))
    shift = rng.normal(size=40)
    speeds = Anderson(5), Anderson(5, scale=np.ones(40))
    np.testing.assert_allclose(*(iterated(matrix, shift, speed, 8) for speed in speeds), rtol=1e-6, atol=1e-8)
    assert all(len(speed.steps) == len(speed.changes) == 5 for speed in speeds)


@pytest.mark.parametrize("public", [False, True])
def test_every_loop_against_dense_matrices(public, monkeypatch):
    if public:
        monkeypatch.setattr(numerics, "_loops", None)
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((30, 7)) < 0.4, rng.normal(size=(30, 7)), 0.0)
    dense[4] = 0
    a = sparse.csr_array(dense)
    cells, v, w = (30, a.indptr, a.indices), rng.normal(size=7), rng.normal(size=30)
    assert np.array_equal(numerics.csr(a.indptr, a.indices, a.data, 7).toarray(), dense)
    np.testing.assert_allclose(numerics.row_sums(cells, a.data, v), dense @ v, atol=1e-12)
    for each in (w, np.stack([w, w**2], axis=1)):
        total = np.ones((7, *each.shape[1:]))
        numerics.add_columns(cells, a.data, each, total)
        np.testing.assert_allclose(total, 1 + dense.T @ each, atol=1e-12)
    who = np.array([9, 4, 2, 9])
    begins, items, data = numerics.taken_rows(a.indptr.astype(np.int64), who, a.indices, a.data)
    assert np.array_equal(sparse.csr_array((data, items, begins), shape=(4, 7)).toarray(), dense[who])
    assert numerics.taken_rows(a.indptr.astype(np.int64), who, a.indices, None)[2] is None
    np.testing.assert_allclose(numerics.onto_items(a, w), dense.T @ w, atol=1e-12)
    out = np.empty(a.nnz)
    numerics.fill_scaled(a.indptr, a.indices, w, v, out)
    assert np.array_equal(out, (w[:, None] * v)[dense != 0])
    key = rng.integers(0, 5, 100).astype(np.int32)
    begins, first, second = numerics.counting_sort(key, 6, np.arange(100, dtype=np.int32), key.astype(np.int8))
    assert begins.tolist() == np.searchsorted(np.sort(key), np.arange(7)).tolist()
    assert first.tolist() == np.argsort(key, kind="stable").tolist()
    assert np.array_equal(second, np.sort(key))


def test_a_fit_does_not_need_what_is_not_public(monkeypatch):
    here, there = (si.simulate.rasch(300, 12, design="sampled", p=0.6, seed=1).responses for _ in range(2))
    one = si.SpectralRasch().fit(here)
    monkeypatch.setattr(numerics, "_loops", None)
    other = si.SpectralRasch().fit(there)
    np.testing.assert_allclose(other.difficulty_, one.difficulty_, atol=1e-9)
    np.testing.assert_allclose(other.se_, one.se_, rtol=1e-6)
    ability, expected = (fit.analyse(here).persons()["ability"] for fit in (other, one))
    np.testing.assert_allclose(ability, expected, atol=1e-9)


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("filled", [True, False])
def test_the_gram_of_a_matrix_times_a_design_is_the_same_by_every_way(monkeypatch, small, filled):
    rng = np.random.default_rng(4)
    matrix = sparse.csr_array(rng.normal(size=(40, 12)) * (rng.random((40, 12)) < 0.6))
    design = sparse.csr_array(rng.integers(-1, 2, (12, 5)).astype(float))
    if not small:
        monkeypatch.setattr(numerics, "SMALL_DESIGN", 0)
    if not filled:
        monkeypatch.setattr(numerics, "FEW_CELLS", 0)
    product = matrix.toarray() @ design.toarray()
    gram = numerics.gram_of(matrix, design)
    assert sparse.issparse(gram) is not small
    np.testing.assert_allclose(gram.toarray() if sparse.issparse(gram) else gram, product.T @ product, atol=1e-12)


def test_sums_by_item_are_those_of_bincount():
    items = np.array([3, 0, 3, 1, 3], dtype=np.int32)
    values = np.array([0.5, 2.0, -1.0, 4.0, 0.25])
    np.testing.assert_array_equal(numerics.sums_by_item(items, values, 6), np.bincount(items, values, minlength=6))
    np.testing.assert_array_equal(numerics.sums_by_item(items[:0], values[:0], 2), [0.0, 0.0])
