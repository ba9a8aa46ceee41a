"""The same 0/1 answers calibrated as right and wrong and as categories: every test between groups says the same."""

import numpy as np
import pytest

from spectral_irt import ConditionalPartialCredit, ConditionalRasch, ConditionalRatingScale, simulate
from spectral_irt.conditional.exact_likelihood import ExactLikelihood
from spectral_irt.data.unlinked import estimable
from spectral_irt.estimators.conditional import conditional_thresholds
from spectral_irt.inference.groups.calibrations import GroupModel, by_newton, calibrate_groups
from spectral_irt.inference.groups.dif import differential
from spectral_irt.inference.groups.grouping import divide
from spectral_irt.inference.groups.hausman import hausman
from spectral_irt.inference.groups.model_tests import andersen, score_split
from spectral_irt.inference.groups.score_test import ability_split


@pytest.fixture(scope="module")
def answers():
    return simulate.rasch(600, 12, design="sampled", p=0.7, seed=8).responses


@pytest.fixture(scope="module", params=[ConditionalPartialCredit, ConditionalRatingScale])
def calibrations(request, answers):
    return ConditionalRasch().fit(answers).calibration_, request.param().fit(answers).calibration_


def same(one, other):
    assert one.df == other.df
    assert one.columns.keys() == other.columns.keys()
    np.testing.assert_allclose([one.statistic, one.p], [other.statistic, other.p], rtol=1e-6)
    for name, column in one.columns.items():
        if column.dtype.kind == "f":
            np.testing.assert_allclose(column, other.columns[name], atol=1e-6)
        else:
            assert (column == other.columns[name]).all()
    assert [f.sentence for f in one.findings] == [f.sentence for f in other.findings]


@pytest.mark.parametrize("split", ["ability", np.arange(600) % 2, np.arange(600) % 3], ids=["ability", "two", "three"])
def test_wald(answers, calibrations, split):
    same(*(score_split(each, answers, split) for each in calibrations))


def test_score_test_of_halves_and_hausman(answers, calibrations):
    same(*(ability_split(each, answers) for each in calibrations))
    for groups in (None, np.arange(600) % 2):
        same(*(hausman(answers, each.thresholds, groups) for each in calibrations))


@pytest.mark.parametrize("model", ["pcm", "rsm"])
def test_andersen(answers, model):
    group = np.arange(600) % 3
    same(andersen(answers, group, model="rasch"), andersen(answers, group, model=model))


def test_differential(answers, calibrations):
    one, other = (differential(each, answers, np.arange(600) % 2) for each in calibrations)
    same(one.test, other.test)
    for mine, theirs in ((one.contrasts, other.contrasts), (one.items, other.items)):
        assert mine.keys() == theirs.keys()
        np.testing.assert_allclose(mine["p"], theirs["p"], atol=1e-6)
    assert [f.sentence for f in one.findings] == [f.sentence for f in other.findings]


def test_what_is_done_for_several_thresholds_is_right_for_one(answers):
    """The branches that right and wrong answers do not take, taken for them."""
    rest = estimable(answers)[0]
    groups = calibrate_groups(rest, divide(rest, np.arange(600) % 2), GroupModel())
    first = rest.take_persons(np.arange(600) % 2 == 0)
    general = conditional_thresholds(first)
    np.testing.assert_allclose(general.thresholds, groups.thresholds[0], atol=1e-8)
    np.testing.assert_allclose(general.covariance, groups.covariances[0], atol=1e-8)
    np.testing.assert_allclose(general.loglik, groups.loglik[0])
    for design, shape in ((None, None), (np.eye(12), np.zeros(12))):
        found = by_newton(first, GroupModel(shape=shape), design, "")
        np.testing.assert_allclose(found.thresholds, groups.difficulty[0], atol=1e-8)
        np.testing.assert_allclose(found.covariance, groups.covariances[0], atol=1e-8)
    exact = ExactLikelihood(first).information(found.thresholds)
    np.testing.assert_allclose(exact @ found.covariance, np.eye(12) - 1 / 12, atol=1e-8)
