"""Where released programs go wrong silently, and what ours does instead: one test for each trap."""

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


def test_ability_sd_of_two():
    data = simulate.rasch(4000, 20, ability_sd=2.0, seed=3)
    for method in (SpectralRasch, ConditionalRasch, MarginalRasch):
        slope = np.polyfit(data.difficulty, method().fit(data.responses).difficulty_, 1)[0]
        assert slope == pytest.approx(1, abs=0.04)
    assert MarginalRasch().fit(data.responses).sigma_ == pytest.approx(2, abs=0.1)
