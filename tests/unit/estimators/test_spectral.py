"""Spectral estimators: accuracy, regularization, survey weights, what they say, and what they refuse."""

import numpy as np
import pytest

from gold import SETS, said, table
from spectral_irt import (
    ConditionalPartialCredit,
    ConditionalRasch,
    Responses,
    SpectralPartialCredit,
    SpectralRasch,
    datasets,
    simulate,
)
from spectral_irt.chain.prior import precision_of
from spectral_irt.conditional.newton import Likelihood
from spectral_irt.errors import DesignError, DisconnectedDesignError, NotFittedError, OptionError
from spectral_irt.estimators.pairwise import PairwiseRasch
from split import in_blocks


def two_islands(link=None):
    """Items 0-3 and 4-7, each answered by its own people; `link` adds rows."""
    rng = np.random.default_rng(0)
    table = np.full((200, 8), np.nan)
    table[:100, :4] = rng.integers(0, 2, (100, 4))
    table[100:, 4:] = rng.integers(0, 2, (100, 4))
    return table if link is None else np.vstack([table, link])


@pytest.mark.parametrize("name", SETS)
def test_close_to_conditional_maximum_likelihood(name):
    """Landed on it: to four digits; standard errors those of CML's own sandwich. The chain alone comes close."""
    gold, answers = said("cml_gold")[name], table(name)
    fit = SpectralRasch(regularization=0).fit(answers)
    np.testing.assert_allclose(fit.difficulty_, gold["difficulty_sum0"], atol=2e-4)
    robust = ConditionalRasch(se="sandwich").fit(answers)
    np.testing.assert_allclose(fit.se_, robust.se_, rtol=0.03)  # five items: its matrix is matched, not exact
    chain = SpectralRasch(regularization=0, refine=False).fit(answers)
    gap = (chain.difficulty_ - gold["difficulty_sum0"]) / np.array(gold["se_sum0"])
    assert np.abs(gap).max() < 0.25
    np.testing.assert_allclose(chain.se_, gold["se_sum0"], rtol=0.03)


def test_ability_beats_users_beats_pairs_on_skewed_data():
    data = simulate.rasch(2000, 100, design="popularity", n_responses=40_000, seed=11)
    rmse = {}
    for weighting in ("pairs", "persons", "ability"):
        fit = SpectralRasch(weighting=weighting, regularization=0, se="none").fit(data.responses)
        rmse[weighting] = np.sqrt(np.mean((fit.difficulty_ - data.difficulty) ** 2))
    assert rmse["ability"] < rmse["persons"] < rmse["pairs"]


@pytest.mark.slow
def test_true_difficulties_of_eight_are_reported():
    beta = np.concatenate([[-8.0, 8.0], np.linspace(-2, 2, 20)])
    data = simulate.rasch(60_000, 22, difficulty=beta, ability_sd=2.0, seed=1)
    fit = SpectralRasch().fit(data.responses)
    z = (fit.difficulty_ - data.difficulty) / fit.se_
    assert fit.difficulty_.max() > 7
    assert np.abs(z).max() < 4


def test_auto_adds_nothing_to_a_good_test():
    fit = SpectralRasch().fit(datasets.load_lsat())
    assert fit.regularization_.kind == "none"
    assert "every item is linked and has enough responses" in str(fit.regularization_)


def test_prior_beats_no_prior_on_thin_data():
    data = simulate.rasch(1000, 600, design="popularity", n_responses=20_000, seed=3)
    auto = SpectralRasch(se="none").fit(data.responses)
    none = SpectralRasch(se="none", regularization=0).fit(data.responses)
    both = np.isfinite(none.difficulty_)
    errors = [np.mean((f.difficulty_ - data.difficulty)[both] ** 2) for f in (auto, none)]
    assert errors[0] < 0.85 * errors[1]


def test_a_number_is_the_precision_of_a_normal_prior():
    """Two items: the score of the conditional likelihood against the pull of the prior, solved by hand."""
    table = np.array([[1, 0]] * 6 + [[0, 1]] * 2, dtype=float)
    alpha = 1.7
    beta = SpectralRasch(regularization=alpha).fit(table).difficulty_[0]
    # Each lies 2 beta from the other, and both deviations pull both items: alpha / 2 (4 beta^2 + 4 beta^2).
    assert 8 / (1 + np.exp(2 * beta)) - 6 == pytest.approx(4 * alpha * beta, abs=1e-3)


def test_auto_estimates_extreme_items_from_the_prior_and_marks_them():
    table = np.hstack([simulate.rasch(300, 5, seed=1).responses.to_dense(), np.ones((300, 1))])
    fit = SpectralRasch().fit(table)
    assert fit.status_[5] == "all right"
    assert fit.difficulty_[5] < fit.difficulty_[:5].min()
    assert np.isfinite(fit.se_[5])
    assert fit.se_[5] > 2 * fit.se_[:5].max()


def test_nu_puts_no_unanswered_item_first():
    """The printed program ranks an item without answers first: its row sum is padded and it keeps its mass."""
    table = np.hstack([simulate.rasch(100, 6, seed=1).responses.to_dense(), np.full((100, 1), np.nan)])
    fit = SpectralRasch.paper().fit(table)
    assert np.isnan(fit.difficulty_[6])


def test_no_common_scale_under_nu():
    with pytest.raises(DesignError, match="`nu` cannot tie them"):
        SpectralRasch.paper().fit(two_islands())


@pytest.mark.parametrize("estimator", [SpectralRasch, SpectralPartialCredit])
def test_islands_are_not_tied_silently_but_by_assumption(estimator):
    answers = two_islands()
    if estimator is SpectralPartialCredit:  # in three categories
        answers += two_islands()[::-1, ::-1][np.r_[100:200, :100]][:, np.r_[4:8, :4]]
    apart, tied = (estimator(assume_equal_means=way).fit(answers) for way in (False, True))
    (finding,) = [f for f in apart.findings_ if f.code == "disconnected"]
    assert finding.severity == "warning"
    assert "share no people" in finding.sentence
    assert "assume_equal_means=True" in finding.remedy
    assert len(finding.items) == 4
    outside = np.isin(np.arange(8), finding.items)
    assert np.isinf(apart.se_[outside]).all()
    assert np.isfinite(apart.se_[~outside]).all()
    for part in (outside, ~outside):
        assert apart.difficulty_[part].mean() == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(apart.difficulty_, tied.difficulty_)
    assert "assumed to be equally hard" in next(f.sentence for f in tied.findings_ if f.code == "disconnected")
    assert np.isfinite(tied.se_).all()
    if estimator is SpectralRasch:  # the mean of four items of precision alpha has the variance 1 / (4 alpha)
        more = tied.se_[~outside] ** 2 - apart.se_[~outside] ** 2
        point = Likelihood(Responses.from_wide(answers), tied.difficulty_).at(tied.difficulty_)
        alpha = precision_of(tied.difficulty_, point.information)
        np.testing.assert_allclose(more, 1 / (4 * alpha), rtol=1e-6)


def test_one_way_link_is_refused_and_two_ways_are_enough():
    link = np.full((6, 8), np.nan)
    link[:, 0], link[:, 7] = 1, 0
    with pytest.raises(DisconnectedDesignError, match="linked one way only"):
        SpectralRasch(regularization=0).fit(two_islands(link))
    link[3:] = 1 - link[3:]
    assert np.all(np.isfinite(SpectralRasch(regularization=0).fit(two_islands(link)).difficulty_))


def test_silent_users_change_nothing():
    table = simulate.rasch(300, 6, seed=3).responses.to_dense()
    silent = np.array([[1.0] * 6, [0.0] * 6, [np.nan] * 5 + [1.0], [np.nan] * 6])
    a = SpectralRasch(regularization=0).fit(table)
    b = SpectralRasch(regularization=0).fit(np.vstack([silent[:2], table, silent[2:]]))
    np.testing.assert_allclose(a.difficulty_, b.difficulty_, atol=1e-12)
    np.testing.assert_allclose(a.se_, b.se_, rtol=1e-10)
    assert any(f.code == "silent_persons" for f in b.findings_)


def test_items():
    items = SpectralRasch().fit(datasets.load_lsat()).items()
    assert items.columns == ["item", "difficulty", "se", "ci_low", "ci_high", "n", "n_correct", "p_correct", "status"]
    assert items["item"].to_list() == ["item1", "item2", "item3", "item4", "item5"]
    assert items["n_correct"].to_list() == [924, 709, 553, 763, 870]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_the_library_that_came_in_goes_out(library):
    columns = {f"q{k}": simulate.rasch(50, 4, seed=1).responses.to_dense()[:, k] for k in range(4)}
    module = pytest.importorskip(library)
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    fit = SpectralRasch().fit(frame)
    for out in (fit.items(), fit.calibration_.score_table(), fit.analyse(frame).persons()):
        assert type(out) is type(frame)


def test_predict_proba():
    fit = SpectralRasch().fit(datasets.load_lsat())
    p = fit.predict_proba([fit.difficulty_[2], 100.0, -1000.0], ["item3", "item1"])
    assert p.shape == (3, 2)
    assert p[0, 0] == pytest.approx(0.5)
    assert p[1].min() > 0.999
    assert p[2].max() == 0
    with pytest.raises(OptionError, match="'item9'"):
        fit.predict_proba([0.0], ["item9"])


def test_a_model_before_a_fit_and_after_another():
    model = SpectralRasch(weighting="persons")
    assert repr(model) == "SpectralRasch(weighting='persons')"
    with pytest.raises(NotFittedError, match="call fit"):
        model.items()
    assert "5 items" in repr(model.fit(datasets.load_lsat()))
    model.set_params(se="none").fit(simulate.rasch(100, 7, seed=1).responses)
    assert len(model.difficulty_) == 7
    assert np.all(np.isnan(model.se_))


@pytest.mark.parametrize(
    ("estimator", "params", "message"),
    [
        (SpectralRasch, {"weighting": "votes"}, "'ability', 'persons', 'pairs'"),
        (SpectralRasch, {"regularization": "some"}, "'auto'"),
        (SpectralRasch, {"nu": 1.0}, "weighting='pairs'"),
        (SpectralRasch, {"nu": 1.0, "weighting": "pairs", "regularization": 2.0}, "not both"),
        (SpectralRasch, {"nu": 1.0, "weighting": "pairs", "nu_rule": "x"}, "'differed', 'together'"),
        (SpectralRasch, {"se": "jackknife"}, "'dense'"),
        (SpectralRasch, {"threads": 0}, "at least 1"),
        (SpectralRasch, {"threshold": np.inf}, "finite"),
        (SpectralPartialCredit, {"weighting": "best"}, "weighting"),
        (SpectralPartialCredit, {"se": "big"}, "se"),
        (SpectralPartialCredit, {"regularization": -1.0}, "regularization"),
        (SpectralPartialCredit, {"tol": 2.0}, "tol"),
        (SpectralPartialCredit, {"unused": "drop"}, "unused"),
        (PairwiseRasch, {"weighting": "ability"}, "weighting"),
    ],
)
def test_bad_options(estimator, params, message):
    with pytest.raises(OptionError, match=message):
        estimator(**params).fit([[1, 0, 1], [0, 1, 1], [1, 1, 0]])


def test_people_with_all_answers_right_or_all_wrong_tell_nothing():
    with pytest.raises(DesignError, match="all answers right or all wrong"):
        SpectralRasch().fit([[1, 1], [0, 0]])


def test_covariance_is_kept_where_there_is_one(monkeypatch):
    data = simulate.rasch(300, 12, seed=4).responses
    dense, bare = SpectralRasch().fit(data), SpectralRasch(se="one-pass").fit(data)
    np.testing.assert_array_equal(np.sqrt(np.diag(dense.covariance())), dense.se_)
    monkeypatch.setattr("spectral_irt.estimators.base.KEEP_COVARIANCE", 10)
    np.testing.assert_array_equal(SpectralRasch(se="dense").fit(data).covariance(), dense.covariance())
    for none in (bare, SpectralRasch().fit(data)):
        with pytest.raises(OptionError, match=r"kept no covariance matrix .*`se='dense'`"):
            none.covariance()


@pytest.mark.slow
@pytest.mark.parametrize("refine", [True, False])
def test_standard_errors_without_the_matrix(refine):
    data = simulate.partial_credit(800, 40, categories=3, design="sampled", p=0.4, seed=1).responses
    dense = SpectralPartialCredit(se="dense", regularization=0, refine=refine).fit(data)
    assert dense.contraction_ < 0.3
    for se, middle, far in (("one-pass", 0.04, 0.12), ("multiplier", 0.02, 0.1))[: 1 + refine]:
        fit = SpectralPartialCredit(se=se, regularization=0, refine=refine).fit(data)
        for name in ("threshold_se_", "se_"):
            ratio = getattr(fit, name) / getattr(dense, name)
            assert abs(np.median(ratio) - 1) < middle
            assert np.all(np.abs(ratio - 1) < far)


def test_thin_thresholds_get_a_prior_and_it_is_said():
    data = simulate.partial_credit(80, 8, categories=4, seed=3)
    fit = SpectralPartialCredit().fit(data.responses)
    assert fit.regularization_.kind == "neighbors"
    assert fit.regularization_.estimated
    assert any(f.code == "regularization" and "thresholds with few responses" in f.sentence for f in fit.findings_)
    loose = SpectralPartialCredit(regularization=0).fit(data.responses)
    rmse = [np.sqrt(np.nanmean((f.thresholds_ - data.thresholds) ** 2)) for f in (fit, loose)]
    assert rmse[0] < rmse[1]


def test_extreme_items_and_empty_categories():
    table = simulate.partial_credit(300, 5, categories=3, seed=3).responses.to_dense()
    table = np.column_stack([table, np.zeros(300), np.full(300, 2.0), np.full(300, np.nan)])
    fit = SpectralPartialCredit().fit(table)
    assert fit.status_.tolist()[5:] == ["all wrong", "all right", "no responses"]
    assert fit.difficulty_[5] > fit.difficulty_[:5].max()
    assert fit.difficulty_[6] < fit.difficulty_[:5].min()
    assert np.isnan(fit.difficulty_[7])
    assert {"extreme_items", "no_responses"} <= {f.code for f in fit.findings_}
    kept = SpectralPartialCredit(unused="keep").fit(np.column_stack([table[:, :5], np.minimum(table[:, 0], 1)]))
    assert kept.status_[5] == "empty category"
    assert np.isfinite(kept.thresholds_).all()


def test_moves_inside_an_item_do_not_connect():
    """Two items; nobody passed a threshold of one while standing below the top of the other, but for its own."""
    table = np.array([[1, 0], [1, 0], [2, 0], [0, 0], [2, 1]])
    with pytest.raises((DisconnectedDesignError, DesignError)):
        SpectralPartialCredit(regularization=0).fit(table)


def test_equal_weights_change_nothing():
    data = simulate.rasch(400, 10, design="sampled", p=0.6, seed=1).responses
    plain, weighted = SpectralRasch().fit(data), SpectralRasch().fit(data, weights=np.full(400, 3.7))
    np.testing.assert_allclose(weighted.difficulty_, plain.difficulty_, atol=1e-10)
    np.testing.assert_allclose(weighted.se_, plain.se_, rtol=1e-8)
    note = next(f for f in weighted.findings_ if f.code == "weights")
    assert note.severity == "note"
    assert not note.remedy


@pytest.mark.parametrize("se", ["dense", "one-pass"])
def test_whole_weights_are_people_repeated(se):
    table = simulate.rasch(500, 30, design="sampled", p=0.5, seed=2).responses.to_dense()
    weights = np.random.default_rng(1).integers(1, 4, 500)
    weighted = SpectralRasch(regularization=0, se=se).fit(table, weights=weights)
    repeated = SpectralRasch(regularization=0, se=se).fit(np.repeat(table, weights, axis=0))
    np.testing.assert_allclose(weighted.difficulty_, repeated.difficulty_, atol=1e-4)
    # Repeats have sum w g^2 where the truth is sum w^2 g^2: with weights of 1 to 3, by mean(w^2) / mean(w) more.
    expected = np.sqrt(np.mean(weights**2) / np.mean(weights))
    assert np.median(weighted.se_ / repeated.se_) == pytest.approx(expected, rel=0.03)


@pytest.mark.slow
def test_weights_undo_a_skewed_sample():
    """Two strata, in one of which half of the items are harder by a logit; the first is sampled nine times as often."""
    beta = np.linspace(-1.5, 1.5, 12)
    shift = np.where(np.arange(12) % 2, 0.5, -0.5)
    rng = np.random.default_rng(7)

    def draw(people, stratum):
        difficulty = beta + (shift if stratum else 0)
        return (rng.random((people, 12)) < 1 / (1 + np.exp(difficulty - rng.normal(size=(people, 1))))).astype(float)

    whole = SpectralRasch(regularization=0).fit(np.vstack([draw(40_000, 0), draw(40_000, 1)])).difficulty_
    inside, outside = [], []
    weights = np.r_[np.full(900, 1.0), np.full(100, 9.0)]
    for _ in range(60):
        sample = np.vstack([draw(900, 0), draw(100, 1)])
        plain, fit = SpectralRasch().fit(sample), SpectralRasch().fit(sample, weights=weights)
        inside.append(np.abs(fit.difficulty_ - whole) < 1.96 * fit.se_)
        outside.append(np.abs(plain.difficulty_ - whole) < 1.96 * plain.se_)
    # 60 samples of 12 correlated items: a standard error of about .012.
    assert 0.91 < np.mean(inside) < 0.98
    assert np.mean(outside) < 0.5


def test_weights_in_one_block_or_many():
    data = simulate.rasch(300, 8, seed=3).responses
    weights = np.random.default_rng(2).uniform(0.2, 5, 300)
    one, many = (SpectralRasch().fit(each, weights=weights) for each in (data, in_blocks(data, 23)))
    np.testing.assert_allclose(one.difficulty_, many.difficulty_, atol=1e-9)
    np.testing.assert_allclose(one.se_, many.se_, rtol=1e-8)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, 2], "there are 2 weights for 3 people"),
        ([1, 0, np.nan], "2 people have no weight above zero: 1, 2"),
        (["a", "b", "c"], "not all numbers"),
    ],
)
def test_what_is_no_weight(weights, words):
    data = Responses.from_wide([[1, 0, 1], [0, 1, 1], [1, 1, 0]])
    with pytest.raises(OptionError, match=words):
        SpectralRasch().fit(data, weights=weights)
    with pytest.raises(OptionError, match="Newton steps only"):
        SpectralRasch(refine=False).fit(data, weights=np.ones(3))


@pytest.mark.parametrize(
    ("estimator", "near"),
    [
        (SpectralPartialCredit(regularization=0), 1e-4),
        (ConditionalPartialCredit(), 1e-7),
        # What is learned about the prior from rare categories is not quite the same from either side.
        (SpectralPartialCredit(), 0.1),
    ],
)
def test_reversed_categories_give_the_negative_difficulties(estimator, near):
    """Of 80 people, in standard errors."""
    thresholds = [[location - 0.8, location, location + 0.8] for location in np.linspace(-1, 1, 8)]
    answers = simulate.partial_credit(80, thresholds=thresholds, seed=3).responses.to_dense()
    plain = estimator.fit(answers).calibration_
    other = estimator.fit(3 - answers).calibration_
    np.testing.assert_allclose(plain.difficulty / plain.se, -other.difficulty / plain.se, atol=near)
