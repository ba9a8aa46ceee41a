"""`fit.loglik_` with AIC and BIC: from the data that the fit was made of, as long as these are there."""

import copy
import itertools
import math
import pickle

import numpy as np
import pandas as pd
import pytest

import spectral_irt as si

ERM_LSAT = -1091.56969  # eRm::RM(lsat)$loglik


@pytest.fixture
def lsat():
    return si.datasets.load_lsat()


def test_the_default_fit_has_the_conditional_likelihood_of_erm(lsat):
    fit = si.SpectralRasch().fit(lsat)
    assert fit.loglik_ == pytest.approx(ERM_LSAT, abs=2e-5)
    assert fit.n_parameters_ == 4
    assert fit.aic_ == pytest.approx(2 * 4 - 2 * ERM_LSAT, abs=4e-5)
    mixed = int(np.sum((lsat.scores > 0) & (lsat.scores < 5)))
    assert fit.bic_ == pytest.approx(math.log(mixed) * 4 - 2 * ERM_LSAT, abs=4e-5)
    exact = si.ConditionalRasch().fit(lsat)
    assert (exact.n_parameters_, exact.aic_) == (4, pytest.approx(fit.aic_, abs=1e-6))


def by_enumeration(x, thresholds):
    """The sum over persons of log P(pattern | score), all patterns of three items written out."""
    total = 0.0
    cumulated = [np.concatenate([[0.0], np.cumsum(of_item)]) for of_item in thresholds]
    patterns = list(itertools.product(*(range(len(each)) for each in cumulated)))
    weight = {pattern: math.exp(-sum(c[k] for c, k in zip(cumulated, pattern, strict=True))) for pattern in patterns}
    for row in x:
        alike = sum(weight[pattern] for pattern in patterns if sum(pattern) == sum(row))
        total += math.log(weight[tuple(row)] / alike)
    return total


@pytest.mark.parametrize("estimator", [si.SpectralPartialCredit, si.SpectralRatingScale, si.ConditionalPartialCredit])
def test_of_ordered_responses_it_is_that_of_enumeration(estimator):
    x = si.simulate.partial_credit(300, 3, categories=3, seed=3).responses.to_dense().astype(int)
    fit = estimator().fit(x)
    assert fit.loglik_ == pytest.approx(by_enumeration(x, fit.thresholds_.reshape(3, 2)), rel=1e-10)
    assert fit.n_parameters_ == {"SpectralRatingScale": 3}.get(estimator.__name__, 5)


def test_it_is_computed_once_and_only_when_asked_for(lsat, monkeypatch):
    fit = si.SpectralRasch().fit(lsat)
    monkeypatch.setattr(si.SpectralRasch, "analyse", None)
    assert {"loglik_", "n_parameters_", "aic_", "bic_"} <= set(dir(fit))
    monkeypatch.undo()
    first = fit.loglik_
    monkeypatch.setattr(si.SpectralRasch, "analyse", None)
    assert fit.loglik_ == first


def test_data_that_are_gone_or_changed_are_named(lsat):
    frame = pd.DataFrame(lsat.to_dense())
    fit = si.SpectralRasch().fit(frame)
    assert fit.loglik_ == pytest.approx(ERM_LSAT, abs=2e-5)
    changed = si.SpectralRasch().fit(frame)
    frame.iloc[0, 0] = 1 - frame.iloc[0, 0]
    with pytest.raises(AttributeError, match=r"no loglik_, because the data were changed since the fit; .*likelihood"):
        changed.loglik_  # noqa: B018
    # What was computed before belongs to the fit, but not to a copy of it.
    assert fit.loglik_ == pytest.approx(ERM_LSAT, abs=2e-5)
    of_a_list = si.SpectralRasch().fit(lsat.to_dense().tolist())
    of_an_array_that_is_gone = si.SpectralRasch().fit(lsat.to_dense())
    for other in (of_a_list, of_an_array_that_is_gone, pickle.loads(pickle.dumps(changed)), copy.deepcopy(changed)):
        assert "loglik_" not in dir(other)
        for name in ("loglik_", "aic_", "bic_", "n_parameters_"):
            with pytest.raises(AttributeError, match=f"no {name}, because the data it was fitted to are gone"):
                getattr(other, name)


def test_the_next_fit_has_its_own(lsat):
    fit = si.SpectralRasch().fit(lsat)
    first = fit.loglik_
    half = lsat.take_persons(np.arange(500))
    assert fit.fit(half).loglik_ == pytest.approx(si.ConditionalRasch().fit(half).loglik_, abs=1e-6)
    assert fit.loglik_ > first


def test_fits_without_a_likelihood_say_so(lsat):
    weighted = si.SpectralRasch().fit(lsat, weights=np.linspace(0.5, 1.5, lsat.n_persons))
    x = lsat.to_dense()
    x[:, 0] = 1
    without_an_item = si.SpectralRasch(regularization=0).fit(x)
    assert not without_an_item.calibration_.known.all()
    for fit in (weighted, without_an_item):
        with pytest.raises(AttributeError, match="no loglik_ of ratings, weighted persons, items without an estimate"):
            fit.loglik_  # noqa: B018
        assert "loglik_" not in dir(fit)
    with pytest.raises(AttributeError, match="has no attribute 'nothing_'"):
        weighted.nothing_  # noqa: B018


def test_of_adaptive_designs_it_is_the_marginal_one(lsat):
    fit = si.SpectralRasch().fit(lsat, design="adaptive")
    marginal = si.MarginalRasch().fit(lsat)
    assert fit.loglik_ == pytest.approx(marginal.loglik_)
    assert fit.aic_ == pytest.approx(marginal.aic_)
