"""Item-trait tests against sums by hand and enumeration, Smith's test against two calibrations of a person and R."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

import spectral_irt as si
from spectral_irt.ability import answer_moments
from spectral_irt.analysis.cache import columns_of
from spectral_irt.data import Responses
from spectral_irt.data.block import person_chunks
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.dimensions.smith import exact_interval
from spectral_irt.inference.fit import class_intervals as module
from spectral_irt.inference.fit.class_intervals import class_intervals, item_trait
from spectral_irt.persons import abilities

THRESHOLDS = [np.array([-0.8, 0.4]), np.array([0.3]), np.array([-0.2, 0.9, 1.1]), np.array([-1.0])]


def responses_in_categories(n=240, seed=4):
    return si.simulate.partial_credit(n, thresholds=THRESHOLDS, seed=seed).responses


def moments_given_score(score):
    """Mean of x and of 1{x >= k}, and their covariances, from all patterns with a score."""
    sizes = [len(each) + 1 for each in THRESHOLDS]
    patterns = np.array([x for x in product(*map(range, sizes)) if sum(x) == score])
    steps = [np.concatenate([[0], np.cumsum(each)]) for each in THRESHOLDS]
    weight = np.exp([-sum(step[k] for step, k in zip(steps, x, strict=True)) for x in patterns])
    weight /= weight.sum()
    passed = np.stack([patterns[:, i] >= k for i, each in enumerate(THRESHOLDS) for k in range(1, len(each) + 1)], 1)
    mean = weight @ passed
    return mean, (passed * weight[:, None]).T @ passed - np.outer(mean, mean)


def test_chi_squared_by_enumeration():
    """d' C^- d with C = diag(V_g) - R S^- R' of every item, from all patterns of every score."""
    responses = responses_in_categories()
    beta = np.concatenate(THRESHOLDS)
    theta = abilities(responses, beta).ability
    found = item_trait(responses, beta, theta, intervals=3)
    people = np.flatnonzero(responses.informative)
    interval = class_intervals(theta[people], 3, "")
    x = responses.to_dense()[people].astype(int)
    moments = {score: moments_given_score(score) for score in range(1, 7)}
    first = np.cumsum([0, *map(len, THRESHOLDS)])
    for i, each in enumerate(THRESHOLDS):
        entries = slice(first[i], first[i + 1])
        d, between = np.zeros((3, len(each))), np.zeros((3, len(each), len(each)))
        for row, g in zip(x, interval, strict=True):
            mean, covariance = moments[row.sum()]
            d[g] += (row[i] >= np.arange(1, len(each) + 1)) - mean[entries]
            between[g] += covariance[entries, entries]
        r = between.sum(axis=2)
        used = r @ np.linalg.pinv(between.sum(axis=0))
        covariance = np.diag(between.sum(axis=(1, 2))) - used @ r.T
        left = d.sum(axis=1) - used @ d.sum(axis=0)
        assert found.columns["chi2"][i] == pytest.approx(left @ np.linalg.pinv(covariance, rcond=1e-9) @ left)
    assert found.columns["df"].tolist() == [2, 2, 2, 2]
    assert (found.df, found.sizes.sum()) == (8, len(people))
    assert found.p == pytest.approx(stats.chi2.sf(found.chi2, 8))


def test_figures_as_in_rumm_and_the_analysis_of_variance():
    responses = responses_in_categories()
    beta = np.concatenate(THRESHOLDS)
    theta = abilities(responses, beta).ability
    columns = item_trait(responses, beta, theta, intervals=4).columns
    people = np.flatnonzero(responses.informative)
    interval = class_intervals(theta[people], 4, "")
    for i, each in enumerate(THRESHOLDS):
        steps = np.concatenate([[0], np.cumsum(each)])
        k = np.arange(len(steps))
        p = np.exp(np.outer(theta[people], k) - steps)
        p /= p.sum(axis=1, keepdims=True)
        mean = p @ k
        variance = p @ k**2 - mean**2
        x = responses.to_dense()[people, i]
        groups = [np.flatnonzero(interval == g) for g in range(4)]
        chi2 = sum((x[g] - mean[g]).sum() ** 2 / variance[g].sum() for g in groups)
        assert columns["chi2_rumm"][i] == pytest.approx(chi2)
        assert columns["p_rumm"][i] == pytest.approx(stats.chi2.sf(chi2, 3))
        z = (x - mean) / np.sqrt(variance)
        f, p_f = stats.f_oneway(*(z[g] for g in groups))
        assert (columns["f"][i], columns["p_f"][i]) == (pytest.approx(f), pytest.approx(p_f))
        assert columns["df_within"][i] == len(people) - 4


def test_an_item_with_another_slope_is_found_by_chi_squared_and_by_draws():
    slopes = np.ones(10)
    slopes[4] = 0.1
    data = si.simulate.rasch(500, 10, slopes=slopes, seed=5).responses
    study = si.SpectralRasch().fit(data).analyse(data)
    for critical in (0, 199):
        columns = columns_of(study.item_trait, critical=critical)
        assert np.argmin(columns["p"]) == 4
        assert columns["p_adjusted"][4] < 0.05 + 0.01 * bool(critical)
    tables = study.tables(study.parts(fit=True, writing=True))
    assert tables["item_trait"]["item"].tolist() == list(range(10))


def test_draws_and_chi_squared_agree_where_groups_are_large():
    data = si.simulate.partial_credit(900, thresholds=THRESHOLDS * 2, seed=9).responses
    study = si.SpectralPartialCredit().fit(data).analyse(data)
    by_draws = columns_of(study.item_trait, 3, critical=999)["p"]
    np.testing.assert_allclose(by_draws, columns_of(study.item_trait, 3)["p"], atol=0.06)


def test_persons_of_a_score_are_in_one_interval():
    data = si.simulate.rasch(300, 7, seed=2).responses
    theta = abilities(data, np.linspace(-1, 1, 7)).ability
    interval = class_intervals(theta, 5, "")
    for score in np.unique(data.scores):
        assert len(set(interval[data.scores == score])) == 1
    assert (np.diff([theta[interval == g].mean() for g in np.unique(interval)]) > 0).all()


def test_too_few_persons_and_unfit_options():
    data = si.simulate.rasch(25, 5, seed=1).responses
    study = si.SpectralRasch().fit(data).analyse(data)
    with pytest.raises(DesignError, match="2 class intervals take 30"):
        study.item_trait()
    with pytest.raises(OptionError, match="two or more"):
        study.item_trait(1)
    with pytest.raises(DesignError, match="Smith's test"):
        study.smith_test([0, 1])
    with pytest.raises(OptionError, match="names 'x'"):
        study.smith_test([0, "x"])
    with pytest.raises(OptionError, match="it takes 2"):
        study.smith_test([0])
    assert study.record(study.parts(fit=True))["item_trait"] is None


def test_smiths_test_by_hand():
    data = si.simulate.rasch(200, 8, seed=6).responses
    study = si.SpectralRasch().fit(data).analyse(data)
    found = study.smith_test([0, 2, 4, 6])
    x = data.to_dense()
    t = {}
    beta = study.calibration.thresholds
    halves = [[0, 2, 4, 6], [1, 3, 5, 7]]
    measured = [abilities(Responses.from_wide(x[:, half]), beta[half]) for half in halves]
    for person in range(200):
        if all(0 < x[person, half].sum() < 4 for half in halves):
            difference = measured[0].ability[person] - measured[1].ability[person]
            t[person] = difference / np.hypot(measured[0].se[person], measured[1].se[person])
    assert found.persons.tolist() == list(t)
    np.testing.assert_allclose(found.t, list(t.values()), rtol=1e-9)
    assert found.n_significant == np.sum(np.abs(list(t.values())) > 1.96)
    assert found.correlation == pytest.approx(np.corrcoef(found.measures.T)[0, 1])


def test_two_abilities_are_found_by_the_subsets_of_the_first_contrast():
    first, second = (si.simulate.rasch(400, 12, seed=seed).responses.to_dense() for seed in (1, 2))
    data = Responses.from_wide(np.hstack([first, second]))
    found = si.SpectralRasch().fit(data).analyse(data).smith_test()
    assert {len(set(half.tolist()) & set(range(12))) for half in (found.first, found.second)} == {0, 12}
    assert found.ci_low > 0.05


def test_exact_intervals_are_those_of_r():
    """`binom.test(k, n)$conf.int` of R 4.2."""
    np.testing.assert_allclose(exact_interval(8, 119), (0.02946854, 0.1281695), atol=1e-7)
    np.testing.assert_allclose(exact_interval(0, 30), (0, 0.1157033), atol=1e-7)
    np.testing.assert_allclose(exact_interval(30, 30), (0.8842967, 1), atol=1e-7)


def test_many_responses_are_summed_for_some_persons_at_a_time(monkeypatch):
    responses = si.simulate.partial_credit(120, 6, categories=4, design="sampled", p=0.7, seed=4).responses
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    given = responses, study.calibration.thresholds, study.abilities("wle").ability
    whole = module.item_trait(*given).columns
    sizes = []

    def counted(ability, *more):
        sizes.append(len(ability))
        return answer_moments(ability, *more)

    monkeypatch.setattr(module, "answer_moments", counted)
    monkeypatch.setattr(module, "person_chunks", lambda indptr: person_chunks(indptr, 60))
    parted = module.item_trait(*given).columns
    assert len(sizes) > 5
    assert max(sizes) <= 60
    for name in ("chi2_rumm", "p_rumm", "f", "df_within", "p_f"):
        np.testing.assert_allclose(parted[name], whole[name], rtol=1e-9)
