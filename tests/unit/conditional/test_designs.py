"""Newton steps for thresholds of a linear form, beta = A eta, against conditional likelihood by enumeration."""

import numpy as np
import pytest
from scipy import optimize, sparse

from dense_ordered import Enumerated, draw
from spectral_irt import Responses
from spectral_irt.conditional import linear
from spectral_irt.conditional.errors import Matrices, parameter_covariance
from spectral_irt.conditional.exact_likelihood import ExactLikelihood
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.linear import unidentified_directions
from spectral_irt.conditional.newton import Newton
from spectral_irt.conditional.penalized import parameters
from spectral_irt.errors import DesignError

MAX_SCORES = (1, 2, 3, 1, 2)


def answers(max_scores=MAX_SCORES, people=100):
    """A table with holes, every category of every item used."""
    rng = np.random.default_rng(3)
    thresholds = [np.sort(rng.normal(size=k)) for k in max_scores]
    return draw(rng, rng.normal(size=people), thresholds, missing=0.15)


def best_parameters(truth, design, start, free):
    def down(values):
        eta = start.copy()
        eta[free] = values
        loglik, scores, _ = truth.at(design @ eta)
        return -loglik, -(design.T @ scores.sum(axis=0))[free]

    eta = start.copy()
    eta[free] = optimize.minimize(down, start[free], jac=True, method="BFGS", options={"gtol": 1e-9}).x
    return eta


def designs():
    """Random sparse ones that fix the scale, some of whose parameters may be held; and one that leaves it open."""
    rng, n = np.random.default_rng(8), sum(MAX_SCORES)
    random = rng.normal(size=(n, 5)) * (rng.random((n, 5)) < 0.6)
    open_scale = np.column_stack([np.ones(n), random[:, :3]])
    none = np.zeros(5, dtype=bool)
    return {
        "random": (random, none),
        "some fixed": (random, np.array([False, True, False, False, True])),
        "scale left open": (open_scale, none[:4]),
    }


@pytest.mark.parametrize("name", designs())
@pytest.mark.parametrize("exact", [False, True])
def test_a_design_is_what_enumeration_finds(name, exact):
    design, fixed = designs()[name]
    table = answers()
    responses = Responses.from_wide(table, ordered=True)
    assert tuple(responses.thresholds.max_score) == MAX_SCORES
    truth = Enumerated(table, MAX_SCORES)
    start = np.where(fixed, 0.4, 0.0)
    best = design @ best_parameters(truth, design, start, ~fixed)
    a = sparse.csr_array(design)
    likelihood = ExactLikelihood(responses) if exact else Likelihood(responses, design @ start)
    problem = Newton(likelihood, design=a, fixed=fixed if fixed.any() else None)
    found = problem.solve_to_gradient(start, 1e-9) if exact else problem.solve(start)
    level = best.mean() - found.beta.mean() if name == "scale left open" else 0.0
    np.testing.assert_allclose(found.beta + level, best, atol=1e-5)
    np.testing.assert_allclose(found.eta[fixed], 0.4)
    if exact:
        assert found.point.loglik == pytest.approx(truth.at(best)[0], abs=1e-6)
    _, scores, information = truth.at(found.point.beta)
    np.testing.assert_allclose(found.point.gradient, scores.sum(axis=0), atol=1e-6)
    np.testing.assert_allclose(found.point.score_gram(), scores.T @ scores, atol=1e-4)
    diagonal = np.diag(design.T @ found.point.dense() @ design)
    np.testing.assert_allclose(found.point.information_on(a), diagonal, atol=1e-8 * diagonal.max())
    mine = design[:, ~fixed]
    inverse = mine @ np.linalg.pinv(mine.T @ information @ mine, rcond=1e-9) @ mine.T
    if name == "scale left open":  # errors of differences from the mean
        center = np.eye(len(best)) - 1 / len(best)
        inverse = center @ inverse
    covariance = inverse @ scores.T @ scores @ inverse.T
    ours = design @ parameter_covariance(found) @ design.T
    ours = center @ ours @ center if name == "scale left open" else ours
    np.testing.assert_allclose(np.sqrt(np.diag(ours)), np.sqrt(np.diag(covariance)), rtol=0.06)  # H is matched


def test_the_identity_is_no_design():
    responses = Responses.from_wide(answers(), ordered=True)
    start = np.zeros(responses.thresholds.n_entries)
    plain = Newton(Likelihood(responses, start)).solve(start)
    written = Newton(Likelihood(responses, start), design=sparse.eye_array(len(start), format="csr")).solve(start)
    np.testing.assert_allclose(written.beta - written.beta.mean(), plain.beta, atol=1e-4)
    np.testing.assert_allclose(parameter_covariance(written), Matrices.of(plain).covariance(), atol=1e-4)
    np.testing.assert_allclose(parameters(written.design, plain.beta), plain.beta, atol=1e-10)


def test_levels_in_more_subsets_than_can_be_told_apart_are_refused(monkeypatch):
    n = 30  # raters, each of whom has persons and an item of his or her own: as many subsets
    design = sparse.hstack([sparse.eye_array(n), sparse.eye_array(n)], format="csr")
    raters = slice(n, 2 * n)
    monkeypatch.setattr(linear, "MOST_OPEN", n * 2 * n)  # subsets x (raters and groups of persons)
    assert unidentified_directions(design, np.arange(n), term=raters).shape == (2 * n, 2 * n)
    monkeypatch.setattr(linear, "MOST_OPEN", n * 2 * n - 1)
    with pytest.raises(DesignError, match="fall into 30 subsets that no person and no common level links"):
        unidentified_directions(design, np.arange(n), term=raters)
