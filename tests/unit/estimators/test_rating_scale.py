"""Rating scales with items that everybody answers alike: left out and said, never placed at infinity."""

import numpy as np
import pytest

from spectral_irt import ConditionalRatingScale, SpectralRatingScale, simulate
from spectral_irt.analysis.summary import how
from spectral_irt.data import Responses
from spectral_irt.errors import DesignError, DisconnectedDesignError, OptionError
from spectral_irt.report.methods import paragraph

BOTH = (SpectralRatingScale, ConditionalRatingScale)


@pytest.fixture(scope="module")
def table():
    return simulate.rating_scale(80, 6, categories=4, seed=11).responses.to_dense()


@pytest.mark.parametrize("estimator", BOTH)
def test_an_item_that_only_extreme_scores_answer_otherwise_is_left_out(estimator, table):
    """Only the person who is lowest everywhere is lower than the top on the last item: nobody else differs on it."""
    odd = np.vstack([np.column_stack([table, np.full(80, 3.0)]), np.zeros(7)])
    fit = estimator().fit(odd)
    assert fit.status_[-1] == "no information"
    assert np.nanmax(fit.se_) < 1


@pytest.mark.parametrize("estimator", BOTH)
def test_a_category_of_left_out_items_only_is_refused(estimator, table):
    odd = np.column_stack([np.minimum(table, 2), np.full(80, 3.0)])
    with pytest.raises(DesignError, match="category '3' was chosen only for items"):
        estimator().fit(odd)
    with pytest.raises(DesignError, match="category '3' of group 'b' was chosen only for items"):
        estimator(groups=["a"] * 3 + ["b"] * 4).fit(np.column_stack([table[:, :3], odd[:, 3:]]))


def test_items_that_nobody_links_are_refused(table):
    """Their common offsets do not say how hard one half is to the other."""
    apart = table.copy()
    apart[::2, 3:], apart[1::2, :3] = np.nan, np.nan
    with pytest.raises(DisconnectedDesignError, match="2 groups that share no people"):
        ConditionalRatingScale().fit(apart)


def test_categories_that_are_kept_are_not_said_to_be_numbered_anew(table):
    narrow = table.copy()
    narrow[:, 0] = np.maximum(narrow[:, 0], 1)
    kept = Responses.from_wide(narrow, unused="keep", ordered=True)
    assert not kept.notes
    np.testing.assert_array_equal(kept.to_dense(), narrow)
    assert [one.code for one in Responses.from_wide(narrow, unused="collapse").notes] == ["categories_collapsed"]
    # A category that no item uses is gone from all of them.
    gap = np.where(narrow == 2, 3, narrow)
    assert [one.code for one in Responses.from_wide(gap, unused="keep", ordered=True).notes] == ["categories_collapsed"]


@pytest.mark.slow
def test_groups_of_items_with_a_scale_of_their_own():
    rng = np.random.default_rng(0)
    scales = {"a": [-1.0, 0.0, 1.0], "b": [-0.3, 0.3]}
    groups, places = ["a", "a", "a", "b", "b"], (-0.5, 0.0, 0.6, -0.4, 0.3)
    thresholds = [np.array(scales[name]) + place for name, place in zip(groups, places, strict=True)]
    data = simulate.partial_credit(4000, thresholds=thresholds, ability=rng.normal(size=4000), seed=1)
    for estimator in (SpectralRatingScale(groups=groups), ConditionalRatingScale(groups=groups)):
        fit = estimator.fit(data.responses)
        offsets = fit.offsets_
        assert offsets["group"].tolist() == ["a", "a", "a", "b", "b"]
        assert offsets["category"].tolist() == [1, 2, 3, 1, 2]
        expected = np.concatenate([scales["a"], scales["b"]])
        assert np.all(np.abs(offsets["offset"] - expected) < 4 * offsets["se"])
        assert np.all(offsets["se"] < 0.1)
        from_table = estimator.fit(data.responses.to_dense())
        np.testing.assert_allclose(from_table.thresholds_, fit.thresholds_, atol=1e-6)
    with pytest.raises(OptionError, match="same categories"):
        SpectralRatingScale().fit(data.responses)
    with pytest.raises(OptionError, match="5 items"):
        SpectralRatingScale(groups=["a"]).fit(data.responses)


@pytest.mark.slow
def test_a_category_that_one_item_never_saw():
    data = simulate.rating_scale(500, 6, categories=4, seed=7)
    table = data.responses.to_dense()
    table[table[:, 5] == 3, 5] = np.nan
    for estimator in (SpectralRatingScale(), ConditionalRatingScale()):
        fit = estimator.fit(table)
        assert fit.n_thresholds_.tolist() == [3] * 6
        assert np.isfinite(fit.thresholds_).all()


def unlinked_forms():
    table = simulate.rating_scale(600, 10, categories=4, seed=7).responses.to_dense()
    table[:300, 6:] = np.nan
    table[300:, :6] = np.nan
    return table


def test_differences_between_groups_of_unlinked_items_are_refused():
    responses = Responses.from_wide(unlinked_forms(), ordered=True)
    study = SpectralRatingScale().fit(responses).analyse(responses)
    with pytest.raises(DisconnectedDesignError, match=r"nothing|share no"):
        study.dif(["a", "b"] * 300)


def test_terminal_and_report_say_the_same_about_the_method():
    responses = simulate.rating_scale(200, 5, categories=4, seed=1).responses
    study = SpectralRatingScale().fit(responses).analyse(responses)
    sentences, _ = paragraph(study.record())
    said = "conditional maximum likelihood"
    assert said in how(study.calibration)
    assert said in sentences[0]
    assert "spectral" not in how(study.calibration) + sentences[0]


def test_items_that_nobody_links_to_the_others_have_infinite_standard_errors():
    """As in a partial credit model; the offsets that both forms share are known from both."""
    table = unlinked_forms()
    responses = Responses.from_wide(table, ordered=True)
    fit = SpectralRatingScale().fit(responses)
    largest = SpectralRatingScale().fit(Responses.from_wide(table[:300, :6], ordered=True))
    layout = responses.thresholds
    np.testing.assert_array_equal(np.isinf(fit.se_), np.arange(10) >= 6)
    np.testing.assert_array_equal(np.isinf(fit.threshold_se_), layout.item >= 6)
    assert fit.difficulty_[:6].mean() == pytest.approx(0, abs=1e-9)
    assert fit.difficulty_[6:].mean() == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(fit.se_[:6], largest.se_, rtol=0.03)
    within, between = fit.covariance()[:18, :18], fit.covariance()[:18, 18:]
    assert np.isfinite(within).all()
    assert np.isfinite(between).all()
    offsets = fit.offsets_
    assert np.all(offsets["se"] < largest.offsets_["se"])
    groups = ["first"] * 6 + ["second"] * 4
    assert np.isfinite(SpectralRatingScale(groups=groups).fit(responses).offsets_["se"]).all()


def test_items_with_fewer_categories_than_their_group_are_named_with_how_many_it_has():
    x = simulate.partial_credit(200, 4, categories=4, seed=1).responses.to_dense()
    x[:, 2] = np.minimum(x[:, 2], 2)
    responses = Responses.from_wide(x, ordered=True, unused="collapse")
    with pytest.raises(OptionError, match=r"2 have fewer than 4\. Give them a group"):
        SpectralRatingScale().fit(responses)
