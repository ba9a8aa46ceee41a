"""Right and wrong is the case of one threshold: the chain of both is one, its errors, its prior and its findings."""

from dataclasses import replace

import numpy as np
import pytest

from spectral_irt import SpectralPartialCredit, simulate
from spectral_irt.chain.operator import covariance, one_pass
from spectral_irt.chain.prior import Neighbors
from spectral_irt.chain.regularization import Regularization
from spectral_irt.chain.stationary import Rounds
from spectral_irt.data.block import Thresholds
from spectral_irt.data.responses import Responses

WEIGHTINGS = ["pairs", "persons", "ability"]


@pytest.mark.parametrize("se", ["dense", "one-pass"])
def test_a_threshold_that_rests_on_the_prior_has_the_error_of_the_prior(se):
    table = simulate.partial_credit(300, 8, categories=3, seed=2).responses.to_dense()
    table[table[:, 0] == 2, 0] = 1
    table[:, 1] = np.where(table[:, 1] > 0, 2, np.nan)  # its empty category is left out
    answers = Responses.from_wide(np.vstack([table, np.full((1, 8), 2.0), np.zeros((1, 8))]), ordered=True)
    fit = SpectralPartialCredit(weighting="persons", refine=False, se=se, regularization=4.0).fit(answers)
    alone = [1, 2]  # the second of item 0, and the one left of item 1: only people at the ends of the scale met them
    np.testing.assert_allclose(fit.threshold_se_[alone], 0.5)
    np.testing.assert_allclose(fit.se_[1], 0.5)
    assert 0.25 < fit.se_[0] < 0.3  # half of it is known
    assert np.all(fit.threshold_se_[3:] < 0.3)


def test_with_several_thresholds_or_one_the_same_passes():
    """What is done for several thresholds is, with one for each item, what is done for right and wrong answers."""
    data = simulate.rasch(400, 30, design="sampled", p=0.6, seed=4).responses
    several = Thresholds(np.ones(30, dtype=np.int64))
    vars(several)["binary"] = False
    other = replace(data, thresholds=several)
    for name in WEIGHTINGS:
        for plan in (Regularization("none", "as asked"), Regularization("virtual item", "as asked", 1.5)):
            one, two = (solved(responses, name, plan) for responses in (data, other))
            np.testing.assert_allclose(two.beta, one.beta, atol=1e-10)
            np.testing.assert_allclose(covariance(two.balance()), covariance(one.balance()), atol=1e-10)
            for mine, theirs in zip(one_pass(two.balance()), one_pass(one.balance()), strict=True):
                np.testing.assert_allclose(mine, theirs, atol=1e-10)
    np.testing.assert_allclose(Neighbors(other).dense(), Neighbors(data).dense(), atol=1e-12)


def solved(responses, name, plan):
    rounds = Rounds(responses, name, plan, np.ones(30), tol=1e-12, max_passes=1000, tell=lambda text: None)
    rounds.solve()
    return rounds


@pytest.mark.parametrize("refine", ["auto", False])
@pytest.mark.parametrize("categories", [2, 4])
def test_weak_links_are_found_whatever_the_categories(categories, refine):
    """Two forms that six people link; with two hundred there is no warning."""
    table = simulate.partial_credit(800, 20, categories=categories, seed=5).responses.to_dense()
    for linking, severity in ((6, ["warning"]), (400, [])):
        forms = table.copy()
        forms[linking:400, 10:] = forms[max(400, linking) :, :10] = np.nan
        fit = SpectralPartialCredit(regularization=0, refine=refine).fit(forms)
        found = [finding for finding in fit.findings_ if finding.code == "weak_links"]
        assert [finding.severity for finding in found] == severity
        if found:
            assert "Only 6 of 800 people" in found[0].sentence or "Only 5 of 800 people" in found[0].sentence
            assert set(found[0].items) in ({*range(10)}, {*range(10, 20)})
