"""Where released programs go wrong silently, and what ours does instead: one test for each trap."""

import itertools

import numpy as np
import pytest

from spectral_irt import ConditionalRasch, JointRasch, MarginalRasch, Responses, SpectralRasch, simulate
from spectral_irt.errors import ResponseValueError

ALL = [SpectralRasch, ConditionalRasch, MarginalRasch, JointRasch]


@pytest.mark.parametrize("method", ALL)
def test_a_person_with_no_answer_or_one(method):
    table = simulate.rasch(300, 6, seed=1).responses.to_dense()
    extra = np.full((2, 6), np.nan)
    extra[1, 0] = 1
    a, b = method().fit(table), method().fit(np.vstack([table, extra]))
    # A marginal likelihood also hears a single answer; the others hear nothing.
    np.testing.assert_allclose(a.difficulty_, b.difficulty_, atol=0.02 if method is MarginalRasch else 1e-6)


@pytest.mark.parametrize("code", [-1, 9, -99999])
def test_codes_for_missing(code):
    table = simulate.rasch(50, 5, seed=1).responses.to_dense()
    table[3, 2] = code
    with pytest.raises(ResponseValueError, match=rf"row 3 holds {code}.*not answered"):
        SpectralRasch().fit(table)


def test_items_by_persons():
    table = simulate.rasch(300, 6, seed=1).responses.to_dense()
    fit = SpectralRasch().fit(table.T)
    assert any("orient='items'" in f.remedy for f in fit.findings_)
    right = Responses.from_wide(table.T, orient="items")
    assert right.n_items == 6


@pytest.mark.slow
def test_nine_hundred_items_in_a_conditional_likelihood():
    data = simulate.rasch(600, 900, seed=2)
    fit = ConditionalRasch().fit(data.responses)
    z = (fit.difficulty_ - data.difficulty) / fit.se_
    assert np.isfinite(fit.loglik_)
    assert 0.85 < np.std(z) < 1.15


def test_missing_data_in_a_conditional_likelihood():
    """Exact for each pattern: the likelihood of a small table by enumeration."""
    table = np.array([[1, 0, np.nan, 1], [np.nan, 1, 0, 0], [0, 1, 1, np.nan], [1, 0, 0, 1], [0, 0, 1, 1]])
    fit = ConditionalRasch().fit(table)
    total = 0.0
    for row in table:
        seen = np.flatnonzero(~np.isnan(row))
        beta, x = fit.difficulty_[seen], row[seen]
        same = [p for p in itertools.product([0, 1], repeat=len(seen)) if sum(p) == x.sum()]
        total += -x @ beta - np.log(sum(np.exp(-np.array(p) @ beta) for p in same))
    assert fit.loglik_ == pytest.approx(total, abs=1e-10)


def test_ability_sd_of_two():
    data = simulate.rasch(4000, 20, ability_sd=2.0, seed=3)
    for method in (SpectralRasch, ConditionalRasch, MarginalRasch):
        slope = np.polyfit(data.difficulty, method().fit(data.responses).difficulty_, 1)[0]
        assert slope == pytest.approx(1, abs=0.04)
    assert MarginalRasch().fit(data.responses).sigma_ == pytest.approx(2, abs=0.1)


def test_ability_of_a_perfect_score():
    table = simulate.rasch(200, 6, seed=1).responses.to_dense()
    table[0] = 1
    fit = SpectralRasch().fit(table)
    wle, ml = fit.analyse(table).persons(), fit.analyse(table).persons(method="ml")
    assert 1 < wle["ability"][0] < 6
    assert wle["se"][0] > 1
    assert wle["extreme"][0]
    assert np.isinf(ml["ability"][0])


def test_order_of_rows_and_standard_errors():
    """A jackknife by row order gives a third of the truth on sorted data; a sandwich by person knows no order."""
    table = simulate.rasch(400, 8, seed=5).responses.to_dense()
    by_score = table[np.argsort(table.sum(axis=1))]
    np.testing.assert_allclose(SpectralRasch().fit(table).se_, SpectralRasch().fit(by_score).se_, rtol=1e-8)
