"""The conditional likelihood: its series against exact sums, its matrices against dense ones, hard designs."""

import numpy as np
import pytest

from dense_ordered import draw
from spectral_irt import simulate
from spectral_irt.conditional import likelihood as likelihood_room
from spectral_irt.conditional import series_tables
from spectral_irt.conditional.errors import Matrices
from spectral_irt.conditional.exact_likelihood import ExactLikelihood
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.penalized import PenalizedPoint
from spectral_irt.conditional.table_sums import far_items
from spectral_irt.data import Responses
from spectral_irt.estimators.conditional import ConditionalPartialCredit
from spectral_irt.estimators.spectral import SpectralPartialCredit
from spectral_irt.numerics import centered_inverse


def point_at(responses, beta, allowed, monkeypatch):
    monkeypatch.setattr(likelihood_room, "FINE_SERIES_SHIFT", allowed)
    return Likelihood(responses, beta).at(beta)


@pytest.mark.parametrize(("items", "categories", "seen"), [(25, 4, 0.8), (40, 2, 0.9), (60, 6, 0.7)])
def test_the_series_is_near_the_exact_sums(items, categories, seen, monkeypatch):
    """A threshold must not move by a hundredth of its standard error where that is what is allowed."""
    widths = [categories if k % 3 else max(2, categories - 1) for k in range(items)]  # different numbers of categories
    thresholds = [np.sort(np.random.default_rng(k).normal(size=w - 1)) for k, w in enumerate(widths)]
    responses = simulate.partial_credit(400, thresholds=thresholds, design="sampled", p=seen, seed=3).responses
    beta = np.concatenate(thresholds)[: responses.thresholds.n_entries]
    here = point_at(responses, beta, 0.01, monkeypatch)
    if categories > 2:
        assert sum(len(part.at) for part in here.rows.parts) > 250
    exact = ExactLikelihood(responses).at(beta).gradient
    assert np.max(np.abs(here.gradient - exact) / np.sqrt(here.information)) < 0.01
    everybody = point_at(responses, beta, 1e-30, monkeypatch)
    np.testing.assert_allclose(everybody.gradient, exact, atol=1e-8)  # nobody is long


@pytest.mark.parametrize("n_joined", [1, 8])
def test_the_series_of_right_and_wrong_answers_with_super_items_is_within_its_bound(n_joined, monkeypatch):
    """Where most items are right or wrong, people with little information take the series: a person's share in the
    error of a threshold is BRIEF_ERROR / V^2 at most, V the variance of the total score."""
    thresholds = [np.array([b]) for b in np.linspace(-2, 2, 40)]
    thresholds[:n_joined] = [np.array([b - 0.7, b + 0.7]) for b in np.linspace(-1, 1, n_joined)]
    responses = simulate.partial_credit(1500, thresholds=thresholds, design="sampled", p=0.8, seed=4).responses
    here = point_at(responses, np.concatenate(thresholds), 1e3, monkeypatch)  # whatever the error
    variance = np.concatenate([part.factor for part in here.rows.parts]) ** -2.0
    assert len(variance) > 1400
    assert here.tables.order == series_tables.BRIEF
    exact = ExactLikelihood(responses).at(np.concatenate(thresholds)).gradient
    bound = (series_tables.BRIEF_ERROR[2] / variance**2).sum()
    assert np.abs(here.gradient - exact).max() < bound


@pytest.mark.parametrize("categories", [2, 4])
def test_the_information_is_near_the_exact_one(categories, monkeypatch):
    responses = simulate.partial_credit(300, 20, categories=categories, seed=5).responses
    beta = np.random.default_rng(1).normal(size=responses.thresholds.n_entries)
    exact = ExactLikelihood(responses).information(beta)
    floating = np.zeros(len(beta), dtype=np.int64)
    points = [point_at(responses, beta, allowed, monkeypatch) for allowed in (0.01, 1e-30)]
    for point in (*points, ExactLikelihood(responses).at(beta)):
        here = PenalizedPoint(beta, beta, point, None, None, None, floating)
        h = here @ np.eye(len(beta))
        single = point.tables is not None and point.tables.moments.dtype == np.float32
        rounding = 1e-6 * np.diag(h).max() if single else 1e-9
        np.testing.assert_allclose(h, h.T, atol=rounding)
        np.testing.assert_allclose(h.sum(axis=0), 0, atol=rounding)
        assert np.abs(h - exact).max() < 0.02 * np.diag(exact).max()
        v = np.random.default_rng(2).normal(size=len(beta))
        v -= v.mean()
        np.testing.assert_allclose(here.solve(h @ v, tol=1e-10), v, atol=max(1e-6, rounding))
        matrices = Matrices.of(here)
        meat = matrices.meat
        np.testing.assert_allclose(matrices.bread, h, atol=10 * rounding)
        blocks, twice = point.score_sums(v)
        np.testing.assert_allclose(twice, meat @ v, atol=2e-2 * meat.max())
        scores = np.concatenate([part.scores(point.tables).matrix.toarray() for part in point.rows_with_scores.parts])
        np.testing.assert_allclose(meat, scores.T @ scores, atol=1e-8)
        np.testing.assert_allclose(scores.sum(axis=1), 0, atol=5e-3)  # expected and observed total scores agree
        k = responses.thresholds.max_score[0]
        np.testing.assert_allclose(blocks[0, :k, :k], meat[:k, :k], atol=0.01 * meat.max())


def test_standard_errors_of_long_records_are_those_of_exact_sums(monkeypatch):
    """What a short series leaves of the rows of the information must not go to the diagonal: that was 4% of errors."""
    data = simulate.partial_credit(700, 40, categories=5, design="sampled", p=0.9, seed=1)
    monkeypatch.setattr(likelihood_room, "QUICK_ANSWERS", 0)  # as if there were many answers
    point = Likelihood(data.responses, data.thresholds).at(data.thresholds)
    exact = ExactLikelihood(data.responses).at(data.thresholds)
    assert sum(len(part.at) for part in point.rows.parts) > 600
    mine, theirs = (np.sqrt(np.diag(centered_inverse(one.dense()))) for one in (point, exact))
    assert np.abs(mine / theirs - 1).max() < 0.05  # of a threshold that hardly anybody passed
    assert np.median(np.abs(mine / theirs - 1)) < 1e-3


def cml_apart(responses, **options):
    fit = SpectralPartialCredit(regularization=0, **options).fit(responses)
    cml = ConditionalPartialCredit().fit(responses)
    return float(np.nanmax(np.abs(fit.thresholds_ - cml.thresholds_) / cml.threshold_se_))


@pytest.mark.slow
def test_misfitting_and_clustered_data_lead_to_conditional_likelihood():
    """Unequal slopes, an item that follows another, and people who answered at random."""
    rng = np.random.default_rng(7)
    theta = rng.normal(size=500)
    thresholds = [np.array([-0.6, 0.5]) + d for d in np.linspace(-1, 1, 8)]
    slopes = np.linspace(0.3, 2.0, 8)
    columns = [draw(rng, slope * theta, [own])[:, 0] for slope, own in zip(slopes, thresholds, strict=True)]
    table = np.column_stack(columns)
    table[:, 3] = np.where(rng.random(500) < 0.7, table[:, 2], table[:, 3])
    table[:60] = rng.integers(0, 3, (60, 8))
    table[rng.random(table.shape) < 0.1] = np.nan
    responses = Responses.from_wide(table, ordered=True)
    assert cml_apart(responses) < 1e-3
    assert cml_apart(responses, refine=False) > 0.3  # the chain alone does not


@pytest.mark.slow
def test_long_rows_lead_to_conditional_likelihood(monkeypatch):
    monkeypatch.setattr(likelihood_room, "QUICK_ANSWERS", 0)  # as if there were many answers
    data = simulate.partial_credit(900, 24, categories=3, design="sampled", p=0.9, seed=2)
    assert cml_apart(data.responses) < 0.06  # steps end at 0.04 standard errors, the series is off by 0.01


def grades(seed, people=150):
    """Five grades of 12 items each, 4 common to neighbors; people of a grade are as able as its items are hard."""
    rng = np.random.default_rng(seed)
    center = np.r_[np.repeat(1.2 * np.arange(5), 12), np.repeat(1.2 * np.arange(4) + 0.6, 4)]
    location = rng.normal(center, 0.7)
    beta = location[:, None] + [-1.0, 0.0, 1.0] + 0.3 * rng.normal(size=(len(location), 3))
    table = np.full((5 * people, len(location)), np.nan)
    for g in range(5):
        mine = [*range(12 * g, 12 * g + 12)]
        mine += [60 + 4 * h + k for h in (g - 1, g) if 0 <= h < 4 for k in range(4)]
        table[g * people : (g + 1) * people, mine] = draw(rng, rng.normal(1.2 * g, 1, people), beta[mine].tolist())
    return Responses.from_wide(table, unused="keep", ordered=True), beta - beta.mean()


@pytest.mark.slow
def test_the_prior_does_not_flatten_a_vertical_scale():
    slopes, hits = [], []
    for seed in range(4):
        responses, beta = grades(seed)
        fit = SpectralPartialCredit().fit(responses)
        assert fit.regularization_.kind == "neighbors"
        found = fit.thresholds_.reshape(beta.shape)
        slopes.append(np.polyfit(beta.mean(axis=1), found.mean(axis=1), 1)[0])
        hits.append(np.mean(np.abs(fit.difficulty_ - beta.mean(axis=1)) < 1.96 * fit.se_))
    assert abs(np.mean(slopes) - 1) < 0.04
    assert 0.90 < np.mean(hits) < 0.99  # 4 x 76 locations, which move together within a replicate


def test_a_thin_item_and_thresholds_out_of_order():
    rng = np.random.default_rng(4)
    beta = [[0.8, -0.9], *([-0.7, 0.6],) * 7]
    table = draw(rng, rng.normal(size=900), beta)
    table[10:, 4] = np.nan  # 10 answers
    fit = SpectralPartialCredit().fit(table, progress=None)
    (found,) = [f for f in fit.findings_ if f.code == "thresholds_out_of_order"]
    assert found.severity == "warning"
    assert 0 in found.items
    assert ": 0, significant." in found.sentence
    z = (fit.thresholds_ - np.concatenate(beta) + np.mean(np.concatenate(beta))) / fit.threshold_se_
    assert np.max(np.abs(z)) < 3.5
    assert fit.se_[4] > 3 * fit.se_[0]


def with_two_items_moved(seen):
    """Responses, the thresholds under which they were drawn but for items 4 and 7, a step, and which are those two."""
    thresholds = [np.linspace(-0.8, 0.8, 3 if k % 3 else 2) for k in range(40)]
    responses = simulate.partial_credit(500, thresholds=thresholds, design="sampled", p=seen, seed=3).responses
    item, beta = responses.thresholds.item, np.concatenate(thresholds)
    beta[item == 4] += 0.5
    beta[item == 7] -= 0.4
    step = np.full(len(beta), 0.01)
    step[item == 4] = 0.21
    step[item == 7] = -0.3
    return responses, beta, step, np.isin(item, [4, 7])


@pytest.mark.parametrize("held", [False, True], ids=["free", "with a prior"])
def test_an_item_that_a_step_moves_far_goes_to_where_its_own_score_is_zero(held, monkeypatch):
    """Others stay; with a prior the score of the penalized likelihood is zero. Here everybody is in the tables."""
    responses, beta, step, far = with_two_items_moved(0.9)
    point = point_at(responses, beta, 10.0, monkeypatch)
    assert sum(len(part.at) for part in point.rows.parts) > 490
    prior = Spring(responses.thresholds, np.where(np.arange(40) == 4, 40.0, 0.0)) if held else None
    moved = far_items(point, beta, step, prior)
    np.testing.assert_array_equal(moved[~far], beta[~far])
    start = point.gradient - (prior @ beta if held else 0)
    score = ExactLikelihood(responses).at(moved).gradient - (prior @ moved if held else 0)
    assert np.abs(start[far]).min() > 20
    # What people expect of their other answers follows, of which there are forty.
    assert np.abs(score[far]).max() < 0.05 * np.abs(start[far]).max()
    if not held:
        close = far_items(point, beta, np.full(len(beta), 0.19), None)
        np.testing.assert_array_equal(close, beta)
        evenly = far_items(point, beta, np.linspace(0.3, 0.5, len(beta)), None)  # nobody farther than the others
        np.testing.assert_array_equal(evenly, beta)


def test_an_item_whose_people_have_exact_sums_moves_by_a_step_with_its_information(monkeypatch):
    """Such people were taken to expect the same wherever the item went, so that it moved by up to four logits."""
    responses, beta, step, far = with_two_items_moved(1.0)
    point = point_at(responses, beta, 1e-30, monkeypatch)
    assert sum(len(part.at) for part in point.rows.parts) == 0
    moved = far_items(point, beta, step, None)
    exact = ExactLikelihood(responses)
    gradient, information = exact.at(beta).gradient, exact.information(beta)
    for item in (4, 7):
        own = responses.thresholds.item == item
        newton_step = np.linalg.solve(information[np.ix_(own, own)], gradient[own])
        np.testing.assert_allclose(moved[own] - beta[own], newton_step, rtol=0.02)
    np.testing.assert_array_equal(moved[~far], beta[~far])


class Spring:
    """A prior that holds some items at zero."""

    def __init__(self, layout, precision):
        self.precision = precision[layout.item]
        self.counts = self.precision
        self.table = precision[:, None, None] * np.eye(layout.widest)

    def within(self):
        return self.table

    def __matmul__(self, beta):
        return self.precision * beta


def test_people_whose_items_few_others_met_have_the_series_without_tables(monkeypatch):
    responses = simulate.partial_credit(60, 90, categories=4, seed=3).responses
    beta = np.random.default_rng(1).normal(size=responses.thresholds.n_entries)
    exact = ExactLikelihood(responses).at(beta)
    monkeypatch.setattr(likelihood_room, "QUICK_ANSWERS", 10)
    monkeypatch.setattr(likelihood_room, "FEW_PEOPLE", 1000)
    found = Likelihood(responses, beta)
    assert found.tables is None
    point = found.at(beta)
    near = 1e-3 * np.sqrt(exact.information)
    assert (np.abs(point.gradient - exact.gradient) < near).all()
    np.testing.assert_allclose(point.information, exact.information, rtol=1e-3)
    assert np.isnan(point.loglik)
