"""Conditional maximum likelihood against enumeration on small, awkward data; then sizes, options and errors."""

import numpy as np
import pytest

import spectral_irt as si
from dense_ordered import Enumerated, draw
from spectral_irt.conditional import exact, exact_likelihood
from spectral_irt.conditional.exact import matched_factors, pattern_parts
from spectral_irt.conditional.exact_likelihood import ExactLikelihood, conditional_probabilities
from spectral_irt.data import Responses
from spectral_irt.data.block import Thresholds
from spectral_irt.data.patterns import distinct_rows
from spectral_irt.errors import OptionError
from spectral_irt.estimators import conditional
from spectral_irt.estimators.conditional import ConditionalRasch, conditional_thresholds
from split import in_pieces


def drawn(n_persons, n_items, seen=1.0, seed=0, spread=1.0):
    """Simulated answers, NaN where unseen; the first people are awkward: empty, all right, all wrong, one answer."""
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=n_items) * spread
    x = (rng.random((n_persons, n_items)) < 1 / (1 + np.exp(beta - rng.normal(size=(n_persons, 1))))).astype(float)
    x[rng.random(x.shape) >= seen] = np.nan
    x[0], x[1], x[2] = np.nan, 1, 0
    x[3], x[3, 0] = np.nan, 1
    x[4] = x[5]  # two people alike
    return x


def by_enumeration(x, beta):
    loglik, scores, matrix = Enumerated(x, [1] * len(beta)).at(beta)
    return loglik, scores.sum(axis=0), matrix


SMALL = [[-0.5, 0.7], [0.2], [-0.4, 0.1, 0.9], [0.0, 0.4]]


def small():
    rng = np.random.default_rng(1)
    return Responses.from_wide(draw(rng, rng.normal(size=80), SMALL, missing=0.25), ordered=True)


@pytest.mark.parametrize("case", ["one block", "four blocks", "missing, one block", "missing, four blocks", "ordered"])
def test_enumeration(case):
    x = drawn(40, 7, 0.7 if "missing" in case else 1.0, seed=2)
    responses, beta = in_pieces(x, 4 if "four" in case else 1), np.random.default_rng(9).normal(size=7)
    if case == "ordered":
        responses, beta = small(), np.concatenate(SMALL)
    truth = Enumerated(responses.to_dense(), responses.thresholds.max_score)
    loglik, scores, matrix = truth.at(beta)
    likelihood = ExactLikelihood(responses)
    point = likelihood.at(beta)
    assert abs(point.loglik - loglik) < 1e-12 * abs(loglik)
    np.testing.assert_allclose(point.gradient, scores.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(likelihood.information(beta), matrix, atol=1e-12)
    # The matched information has the same zero row sums, and lies close: of right and wrong answers its diagonal, too.
    matched = likelihood.at(beta).dense()
    np.testing.assert_allclose(matched.sum(axis=0), 0, atol=1e-9)
    if case == "ordered":
        assert np.abs(matched - matrix).max() < 0.35 * np.diag(matrix).max()  # near enough to climb by
        return
    np.testing.assert_allclose(point.information, np.diag(matrix), rtol=0.02)
    np.testing.assert_allclose(point @ np.ones(7), 0, atol=1e-12)
    np.testing.assert_allclose(point.dense(), matrix, atol=0.03 * matrix.max())


@pytest.mark.parametrize("short", [0, 1000])
def test_information_by_tile_and_by_pattern_agree(short, monkeypatch):
    x = drawn(60, 9, 0.6, seed=4)
    beta = np.linspace(-1, 1, 9)
    monkeypatch.setattr(exact_likelihood, "SHORT", short)
    found = ExactLikelihood(in_pieces(x, 2)).information(beta)
    np.testing.assert_allclose(found, by_enumeration(x, beta)[2], atol=1e-12)


def test_the_estimate_solves_the_score_equations():
    x = drawn(80, 6, 0.75, seed=3)
    fit = ConditionalRasch().fit(x)
    loglik, gradient, matrix = by_enumeration(x, fit.difficulty_)
    assert np.abs(gradient).max() < 1e-9
    assert fit.residual_ <= 1e-9
    assert abs(fit.loglik_ - loglik) < 1e-11 * abs(loglik)
    assert abs(fit.difficulty_.mean()) < 1e-14
    covariance = np.linalg.pinv(matrix)
    np.testing.assert_allclose(fit.covariance(), covariance, atol=1e-11)
    np.testing.assert_allclose(fit.se_, np.sqrt(np.diag(covariance)), atol=1e-11)
    assert fit.se_method_ == "exact information"
    ahead = by_enumeration(x, fit.difficulty_ + 0.01 * np.array([1, -1, 0, 0, 0, 0]))[0]
    assert ahead < loglik


def test_two_items_have_the_closed_form():
    """beta_2 - beta_1 = log of (first right, second wrong) over (first wrong, second right)."""
    x = [[1, 0]] * 30 + [[0, 1]] * 10 + [[1, 1]] * 50 + [[0, 0]] * 7
    fit = ConditionalRasch().fit(x)
    assert abs(fit.difficulty_[1] - fit.difficulty_[0] - np.log(3)) < 1e-9
    assert abs(2 * fit.se_[0] - np.sqrt(1 / 30 + 1 / 10)) < 1e-9


def test_sandwich():
    x = drawn(300, 6, 0.8, seed=5)
    fit = ConditionalRasch(se="sandwich").fit(x)
    _, scores, information = Enumerated(x, [1] * 6).at(fit.difficulty_)
    bread = np.linalg.pinv(information)
    np.testing.assert_allclose(fit.covariance(), bread @ scores.T @ scores @ bread, atol=1e-11)
    assert fit.se_method_ == "exact information, sandwich"


@pytest.mark.slow
@pytest.mark.parametrize("se", ["information", "sandwich"])
def test_standard_errors_at_scale_agree_with_the_exact_ones(se, monkeypatch):
    x = drawn(2000, 60, 0.3, seed=6)
    exact = ConditionalRasch(se=se).fit(x)
    monkeypatch.setattr("spectral_irt.conditional.exact_likelihood.EXACT_CELLS", 0)
    matched = ConditionalRasch(se=se).fit(x)
    assert matched.se_method_.startswith("matched information")
    np.testing.assert_allclose(matched.se_, exact.se_, rtol=1e-3)
    monkeypatch.setattr(conditional, "DENSE_ITEMS", 10)
    probed = ConditionalRasch(se=se).fit(x)
    assert probed.se_method_ == "multiplier, sandwich"
    np.testing.assert_allclose(probed.se_, ConditionalRasch(se="sandwich").fit(x).se_, rtol=0.05)
    np.testing.assert_allclose(probed.se_, exact.se_, rtol=0.1)
    with pytest.raises(OptionError, match="kept no covariance"):
        probed.covariance()


@pytest.mark.slow
def test_small_tiles_and_parts_change_nothing(monkeypatch):
    x = drawn(100, 16, 0.5, seed=8)
    whole = conditional_thresholds(in_pieces(x, 1))
    for name, value in (("TILE_CELLS", 50), ("MANY", 1)):
        monkeypatch.setattr(exact, name, value)
    pieces = conditional_thresholds(in_pieces(x, 1))
    np.testing.assert_allclose(pieces.thresholds, whole.thresholds, atol=1e-12)
    np.testing.assert_allclose(pieces.se, whole.se, atol=1e-12)


def test_users_alike_are_counted_once():
    x = np.array([[1, 0, 1, np.nan], [0, 1, 1, np.nan], [1, 0, np.nan, 1], [1, 0, 0, np.nan], [1, 1, 1, 1]])
    found = distinct_rows(Responses.from_wide(np.concatenate([x, x])))
    assert found.of_person[0] == found.of_person[1]  # same items, same score, other answers
    assert found.count[found.of_person[:5]].tolist() == [4, 4, 2, 2, 2]
    parts = list(pattern_parts(found.rows, found.count, Thresholds.ones(4)))
    assert sorted(np.concatenate([part.people for part in parts])) == [2, 2, 4]  # the last is all right


def test_complete_data_have_one_pattern_a_score():
    fit = ConditionalRasch().fit(np.nan_to_num(drawn(500, 8, seed=1)))
    assert fit.n_patterns_ == 7


def test_conditional_probabilities():
    x = drawn(60, 7, 0.7, seed=13)
    beta = np.random.default_rng(1).normal(size=7)
    block = Responses.from_wide(x).blocks[0]
    ours = conditional_probabilities(block, beta)
    expected = Enumerated(x, [1] * 7).at(beta)[1] + x
    np.testing.assert_allclose(ours, expected[block.person_of_response(), block.items], atol=1e-13)
    sums = np.bincount(block.person_of_response(), weights=ours, minlength=60)
    np.testing.assert_allclose(sums, block.scores, atol=1e-12)


def test_items_without_difficulty_count_as_unanswered():
    x = drawn(50, 6, 0.8, seed=14)
    beta = np.random.default_rng(2).normal(size=6)
    beta[[1, 4]] = np.nan
    block = Responses.from_wide(x).blocks[0]
    ours = conditional_probabilities(block, beta)
    missing = np.isin(block.items, [1, 4])
    assert np.all(np.isnan(ours[missing]))
    rest = Responses.from_wide(x[:, [0, 2, 3, 5]]).blocks[0]
    np.testing.assert_allclose(ours[~missing], conditional_probabilities(rest, beta[[0, 2, 3, 5]]), atol=1e-13)


def test_links_reproduce_the_variances():
    p = np.random.default_rng(0).uniform(0.05, 0.95, size=(6, 3))
    c = matched_factors(p * (1 - p), np.array([6, 6, 6]))
    np.testing.assert_allclose(c * (c.sum(axis=0) - c), p * (1 - p), rtol=0.01)
    two = matched_factors(np.array([[0.21], [0.21]]), np.array([2]))
    np.testing.assert_allclose(two, np.sqrt(0.21))


def test_any_start_arrives():
    responses = in_pieces(drawn(200, 9, 0.7, seed=16), 1)
    near = conditional_thresholds(responses)
    far = conditional_thresholds(responses, start=np.linspace(12, -12, 9))
    np.testing.assert_allclose(far.thresholds, near.thresholds, atol=1e-9)
    warm = conditional_thresholds(responses, start=near.thresholds)
    assert warm.n_iter == 1


@pytest.mark.parametrize(
    ("n", "m", "missing", "seed", "off"),
    [pytest.param(600, 1500, 0, 18, 0.1, marks=pytest.mark.slow), (3000, 100, 0.9, 19, 0.15)],
    ids=["1500 items, complete", "sparse"],
)
def test_the_truth_is_recovered_as_the_standard_errors_say(n, m, missing, seed, off):
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=m)
    x = (rng.random((n, m)) < 1 / (1 + np.exp(beta - rng.normal(size=(n, 1))))).astype(float)
    x[rng.random(x.shape) < missing] = np.nan
    fit = ConditionalRasch().fit(x)
    assert fit.residual_ < 1e-6
    assert np.isfinite(fit.loglik_)
    z = (fit.difficulty_ - beta + beta.mean()) / fit.se_
    assert abs(np.sqrt(np.mean(z**2)) - 1) < off


@pytest.mark.parametrize("options", [{"se": "bootstrap"}, {"tol": 0}, {"tol": float("nan")}, {"max_iter": 0}])
def test_bad_options(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        ConditionalRasch(**options).fit(drawn(50, 5))


def test_without_standard_errors_there_is_no_covariance():
    fit = ConditionalRasch(se="none").fit(drawn(100, 5, seed=22))
    assert np.isnan(fit.se_).all()
    with pytest.raises(OptionError, match="standard errors: none"):
        fit.covariance()


def test_the_conditional_estimate_does_not_depend_on_the_information(monkeypatch):
    exact = conditional_thresholds(small())
    monkeypatch.setattr("spectral_irt.conditional.exact_likelihood.EXACT_CELLS", 0)
    matched = conditional_thresholds(small())
    assert matched.se_method == "matched information"
    np.testing.assert_allclose(matched.thresholds, exact.thresholds, atol=1e-8)


@pytest.mark.parametrize("estimator", ["ConditionalPartialCredit", "ConditionalRatingScale", "SpectralPartialCredit"])
@pytest.mark.parametrize("categories", [3, 5, 7])
def test_two_items_of_many_categories_converge(estimator, categories, recwarn):
    """Steps with the matched matrix leave most of the way to the next one; accelerated, they end."""
    answers = si.simulate.partial_credit(1000, 2, categories=categories, seed=5).responses
    made = getattr(si, estimator)().fit(answers).calibration_
    assert made.provenance.iterations < 25
    assert not recwarn.list
