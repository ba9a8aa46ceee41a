"""Options that are no numbers, and seeds that are no seeds: a sentence, whichever estimator it is."""

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt import SpectralRasch, simulate
from spectral_irt.errors import ConvergenceWarning, OptionError
from spectral_irt.estimators.base import convergence

NUMBERS = {"tol", "max_iter", "nu", "threads", "random_state", "regularization"}
ESTIMATORS = [si.SpectralRasch, si.ConditionalRasch, si.MarginalRasch, si.JointRasch, si.PairwiseRasch]
ESTIMATORS += [si.VariationalRasch, si.SpectralPartialCredit, si.SpectralRatingScale]


@pytest.mark.parametrize("made", ESTIMATORS)
def test_options_that_are_no_numbers(made):
    responses = simulate.rasch(40, 5, seed=1).responses
    for name in sorted(NUMBERS & set(made().get_params())):
        for wrong in ("a", [1], None, -1 if name == "random_state" else "b"):
            if wrong is None and name == "threads":
                continue  # all there are
            with pytest.raises(OptionError, match=f"`{name}` is "):
                made(**{name: wrong}).fit(responses)
    with pytest.raises(OptionError, match=r"`max_iter` is 2\.5; it must be a whole number"):
        made(max_iter=2.5).fit(responses)


@pytest.mark.parametrize("seed", [-1, "a", 1.5])
def test_seeds_are_whole_numbers(seed):
    responses = simulate.rasch(40, 5, seed=1).responses
    study = SpectralRasch().fit(responses).analyse(responses)
    for work in (
        lambda: study.ranking(seed=seed),
        lambda: study.persons(method="pv", seed=seed),
        lambda: simulate.rasch(5, 5, seed=seed),
        lambda: si.Leaderboard(responses, seed=seed).models(),
    ):
        with pytest.raises(OptionError, match="`seed` is "):
            work()


@pytest.mark.parametrize("made", [si.JointRasch, si.MarginalRasch, si.PairwiseRasch])
def test_many_items_take_their_own_information(made, monkeypatch):
    data = simulate.rasch(500, 40, seed=3).responses
    dense = made().fit(data)
    for module in ("joint", "marginal", "marginal_fit", "pairwise"):
        monkeypatch.setattr(f"spectral_irt.estimators.{module}.DENSE_ITEMS", 10)
    quick = made().fit(data)
    np.testing.assert_allclose(quick.se_, dense.se_, rtol=0.1)
    assert made is si.JointRasch or "approximate_se" in [f.code for f in quick.findings_]


@pytest.mark.parametrize(("reached", "n_findings"), [(0.9e-3, 0), (1e-3, 0), (1.1e-3, 1), (np.nan, 1)])
def test_what_did_not_reach_its_tolerance_is_said(reached, n_findings):
    quietly = {"warn": False}
    found = convergence("the steps", 30, "passes", "a step of", reached, 1e-3, **quietly)
    assert [one.code for one in found] == ["not_converged"] * n_findings
    if n_findings:
        with pytest.warns(ConvergenceWarning, match="stopped after 30 passes"):
            convergence("the steps", 30, "passes", "a step of", reached, 1e-3)
