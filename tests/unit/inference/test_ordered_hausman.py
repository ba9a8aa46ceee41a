"""Conditional against marginal likelihood of ordered answers, and designs that look at the answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spectral_irt import (
    ConditionalPartialCredit,
    MarginalPartialCredit,
    SpectralPartialCredit,
    SpectralRasch,
    simulate,
)
from spectral_irt.data.same_items import distinct_rows
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.estimators.marginal_em import passed
from spectral_irt.estimators.population import normal_population
from spectral_irt.inference.groups.hausman import hausman
from spectral_irt.inference.groups.ordered_hausman import (
    compare_ordered,
    marginal_step_information,
    ordered_hausman,
    posterior,
    rough_hausman,
)


def test_the_marginal_information_is_the_curvature_of_the_likelihood() -> None:
    data = simulate.partial_credit(200, 4, categories=[2, 3, 4, 3], design="sampled", p=0.7, seed=3).responses
    steps, patterns = data.thresholds, distinct_rows(data)
    own = passed(data.entries, steps)

    def loglik(x: Any) -> float:
        _, log, _ = posterior(patterns.rows, steps, x[:-1], normal_population(float(np.exp(x[-1])), 61))
        return float(patterns.count @ log - own @ x[:-1])

    x, h = np.append(np.random.default_rng(1).normal(size=steps.n_entries), 0.2), 1e-3
    e = h * np.eye(len(x))
    slow = np.empty((len(x), len(x)))
    for i in range(len(x)):
        for j in range(len(x)):
            corners = [s * t * loglik(x + s * e[i] + t * e[j]) for s in (1, -1) for t in (1, -1)]
            slow[i, j] = -sum(corners) / (4 * h * h)
    found = marginal_step_information(patterns, steps, x[:-1], float(np.exp(x[-1])))
    assert np.allclose(found, slow, atol=1e-3)  # differences of numbers of a thousand, over 4e-6


def test_right_and_wrong_answers_give_the_test_of_right_and_wrong_answers() -> None:
    answers = simulate.rasch(400, 20, design="sampled", p=0.6, seed=2).responses
    binary = hausman(SpectralRasch().fit(answers).calibration_, answers)
    as_ordered = SpectralPartialCredit().fit(answers)
    ordered = as_ordered.analyse(answers).hausman()
    assert ordered.df == binary.df
    assert ordered.statistic == pytest.approx(binary.statistic, rel=0.05)  # another grid of abilities
    assert ordered.size == pytest.approx(binary.size, rel=0.1, abs=1e-3)


@pytest.mark.slow
def test_it_keeps_its_level_and_sees_adaptive_tests() -> None:
    p = []
    for seed in range(40):
        data = simulate.partial_credit(300, 12, categories=4, design="sampled", p=0.6, seed=seed)
        p.append(compare_ordered(data.responses, data.thresholds).p)
    assert np.mean(np.array(p) < 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / len(p))
    assert 0.3 < np.mean(p) < 0.7
    adaptive = simulate.partial_credit(500, 40, categories=3, design="adaptive", length=10, seed=1)
    test = rough_hausman(adaptive.responses)
    assert test is not None
    assert test.findings
    assert test.stretch > 1.2


@pytest.mark.slow
def test_marginal_likelihood_is_the_remedy() -> None:
    data = simulate.partial_credit(1000, 30, categories=3, design="adaptive", length=10, seed=4)
    plain = SpectralPartialCredit().fit(data.responses)
    study = plain.analyse(data.responses)
    assert "conditional_against_marginal" in [finding.code for finding in study.findings()]
    told = SpectralPartialCredit().fit(data.responses, design="adaptive")
    assert told.calibration_.provenance.estimator == "MarginalPartialCredit"
    assert "adaptive_design" in [finding.code for finding in told.calibration_.findings]
    after = told.analyse(data.responses)
    assert after.quick_hausman() is None
    assert not after.parts().fit
    assert after.record()["design"] == "adaptive"
    known = np.isfinite(plain.thresholds_) & np.isfinite(told.thresholds_)
    slopes = [np.polyfit(data.thresholds[known], fit.thresholds_[known], 1)[0] for fit in (plain, told)]
    assert slopes[0] > 1.2
    assert slopes[1] == pytest.approx(1, abs=0.1)


def test_too_few_people_and_odd_designs_are_said() -> None:
    few = simulate.partial_credit(20, 5, categories=3, seed=1).responses
    fit = ConditionalPartialCredit().fit(few)
    with pytest.raises(DesignError, match="needs 50 and 3 items"):
        ordered_hausman(fit.calibration_, few)
    assert fit.analyse(few).quick_hausman() is None
    with pytest.raises(OptionError, match="`design` is 'random'"):
        MarginalPartialCredit().fit(few, design="random")
    with pytest.raises(OptionError, match="fixed design"):
        SpectralPartialCredit().fit(few, design="adaptive", anchors={0: [0.0, 1.0]})
