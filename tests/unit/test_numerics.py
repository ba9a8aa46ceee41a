"""Numerical tools against their dense, obvious versions."""

import numpy as np
import pytest
from scipy import sparse

from spectral_irt import numerics
from spectral_irt.numerics import Anderson, centered_inverse, conjugate_gradients, gram, sandwich


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
    turn = np.linalg.qr(rng.normal(size=(151, 151)))[0]
    for values in (np.logspace(0, -8, 151), np.linspace(-1, 1.2, 151)):
        matrix = (turn * values) @ turn.T
        matrix = (matrix + matrix.T) / 2
        exact = (turn / values) @ turn.T
        # without a floating part nothing is centered: the plain inverse
        found = centered_inverse(matrix, np.full(151, -1))
        np.testing.assert_allclose(found, exact, atol=1e-6 * np.abs(exact).max())


def test_a_sandwich_in_single_precision():
    rng = np.random.default_rng(6)
    scores = rng.normal(size=(2000, 120))
    scores -= scores.mean(axis=1, keepdims=True)
    meat = scores.T @ scores
    bread = 2000 * (np.eye(120) - 1 / 120)
    inverse = centered_inverse(bread)
    plain = inverse @ meat @ inverse
    np.testing.assert_allclose(sandwich(inverse, bread, meat), plain, atol=1e-18)
    errors = np.sqrt(np.diag(sandwich(inverse, bread, meat, single=True)))
    np.testing.assert_allclose(errors, np.sqrt(np.diag(plain)), rtol=2e-7)


@pytest.mark.parametrize("filled", [0.0, 0.05, 0.9])
def test_gram_is_the_product(filled, monkeypatch):
    monkeypatch.setattr(numerics, "SLICE", 70)  # slices of ten rows
    rng = np.random.default_rng(1)
    dense = rng.normal(size=(57, 7)) * (rng.random((57, 7)) < filled)
    np.testing.assert_allclose(gram(sparse.csr_array(dense)), dense.T @ dense, atol=1e-12)
    other = rng.normal(size=(57, 7)) * (rng.random((57, 7)) < filled)
    np.testing.assert_allclose(gram(sparse.csr_array(dense), sparse.csr_array(other)), dense.T @ other, atol=1e-12)


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


def test_anderson_solves_a_linear_iteration_in_as_many_steps_as_it_has_directions():
    rng = np.random.default_rng(2)
    matrix = np.diag([0.9, 0.8, -0.7, 0.95]) + 0.02 * rng.normal(size=(4, 4))
    shift = rng.normal(size=4)
    exact = np.linalg.solve(np.eye(4) - matrix, shift)
    x, speed = np.zeros(4), Anderson()
    for _ in range(6):
        x = speed.next(x, matrix @ x + shift)
    np.testing.assert_allclose(x, exact, atol=1e-9)
    plain = np.zeros(4)
    for _ in range(6):
        plain = matrix @ plain + shift
    assert np.abs(plain - exact).max() > 0.1


def test_anderson_in_a_scaled_metric_goes_the_same_way():
    rng = np.random.default_rng(5)
    matrix = np.diag(rng.uniform(-0.9, 0.95, 40)) + 0.01 * rng.normal(size=(40, 40))
    shift = rng.normal(size=40)
    found = []
    for speed in (Anderson(5), Anderson(5, scale=np.ones(40))):
        x = np.zeros(40)
        for _ in range(8):
            x = speed.next(x, matrix @ x + shift)
        assert len(speed.steps) == len(speed.changes) == 5
        found.append(x)
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-8)
