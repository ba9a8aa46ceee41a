"""Newton steps by tables of repeated designs, against those person by person: the same numbers."""

import numpy as np
import pytest

from spectral_irt import SpectralRasch
from spectral_irt.conditional import likelihood, newton
from spectral_irt.conditional.errors import Matrices, standard_errors
from spectral_irt.data import Responses
from spectral_irt.data.shared_sets import shared_sets


def finest(monkeypatch):
    monkeypatch.setattr(likelihood, "FINE_SERIES_SHIFT", 1e-10)
    monkeypatch.setattr(newton, "CLOSER", 1e-10)


def fitted(responses, shared):
    start = np.zeros(responses.n_items)
    return newton.Newton(likelihood.Likelihood(responses, start, shared=shared)).solve(start)


def answers(design, people: int = 300, items: int = 14) -> Responses:
    """Answers that misfit a little, so that the sandwich is not the inverse information."""
    rng = np.random.default_rng(5)
    slope, beta = rng.uniform(0.6, 1.6, items), np.linspace(-1.5, 1.5, items)
    x = (rng.random((people, items)) < 1 / (1 + np.exp(slope * (beta - rng.normal(size=(people, 1)))))).astype(float)
    if design.startswith("booklets"):
        x[::2, :4] = np.nan
        x[1::2, -5:] = np.nan
    if design.endswith("some missing"):
        x[rng.random(x.shape) < 0.02] = np.nan
    if design == "one set per person":
        x[rng.random(x.shape) < 0.4] = np.nan
    return Responses.from_wide(x)


@pytest.mark.parametrize("design", ["complete", "booklets", "booklets, some missing", "one set per person"])
def test_the_same_numbers(design, monkeypatch):
    finest(monkeypatch)  # exact sums for everybody, steps until nothing moves
    responses = answers(design, people=60 if design == "one set per person" else 300)
    shared = shared_sets(responses, per_item=0, per_block=0, shared=0)
    one, other = fitted(responses, None), fitted(responses, shared)
    assert shared is not None
    np.testing.assert_allclose(other.beta, one.beta, atol=1e-9)
    np.testing.assert_allclose(other.point.information, one.point.information, rtol=1e-9)
    a, b = Matrices.of(one), Matrices.of(other)
    np.testing.assert_allclose(b.bread, a.bread, atol=1e-9 * np.abs(a.bread).max())
    np.testing.assert_allclose(b.meat, a.meat, atol=1e-9 * np.abs(a.meat).max())
    np.testing.assert_allclose(b.covariance(), a.covariance(), atol=1e-9 * np.abs(a.covariance()).max())
    np.testing.assert_allclose(standard_errors(other, "one-pass"), standard_errors(one, "one-pass"), rtol=1e-9)


def test_people_off_the_shared_sets_are_taken_one_by_one(monkeypatch):
    finest(monkeypatch)
    responses = answers("booklets, some missing")
    shared = shared_sets(responses, per_item=2, per_block=0, shared=0)
    assert shared.rest is not None
    assert len(shared.sets) == 2
    one, other = (fitted(responses, how) for how in (None, shared))
    np.testing.assert_allclose(other.beta, one.beta, atol=1e-9)
    np.testing.assert_allclose(Matrices.of(other).covariance(), Matrices.of(one).covariance(), atol=1e-12)


@pytest.mark.parametrize("design", ["complete", "booklets", "booklets, some missing"])
def test_a_fit_chooses_it_by_itself(design, monkeypatch):
    responses = answers(design, people=1500)
    assert responses.shared is not None
    chosen = SpectralRasch().fit(responses)
    plain = responses.take_persons(np.arange(responses.n_persons))
    monkeypatch.setitem(vars(plain), "shared", None)
    other = SpectralRasch().fit(plain)
    np.testing.assert_allclose(chosen.difficulty_, other.difficulty_, atol=2e-4 * other.se_.min())
    np.testing.assert_allclose(chosen.se_, other.se_, rtol=1e-4)
    assert chosen.status_.tolist() == other.status_.tolist()
    assert [f.code for f in chosen.findings_] == [f.code for f in other.findings_]
