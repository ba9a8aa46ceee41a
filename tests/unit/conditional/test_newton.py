"""Newton steps on the conditional likelihood: the series, the prior's operator, the steps, standard errors."""

from dataclasses import replace

import numpy as np
import pytest

from dense_ordered import Enumerated
from oracle import conditional_point
from spectral_irt import AnchoredRasch, ConditionalRasch, Responses, SpectralRasch, simulate
from spectral_irt.chain.operator import Neighbors
from spectral_irt.chain.prior import LocationPrior, Prior, share_of_prior
from spectral_irt.conditional.errors import Matrices, standard_errors
from spectral_irt.conditional.exact import Contour
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.newton import Newton
from spectral_irt.conditional.series_binary import fill_given_score
from spectral_irt.estimators.spectral import SpectralPartialCredit
from spectral_irt.model import prox


def started(responses, beta, **problem):
    return Newton(Likelihood(responses, beta), **problem).solve(beta)


@pytest.mark.parametrize(("n", "sd", "worst"), [(20, 1.0, 2e-3), (40, 1.0, 4e-4), (100, 1.5, 1e-4), (400, 2.0, 1e-5)])
def test_series_is_close(n, sd, worst):
    """Against the exact contour sum, for people with information of 2 or more; and its c matches P (1 - P)."""
    rng = np.random.default_rng(2)
    people = 60
    b, theta = rng.normal(0, sd, (n, people)), rng.normal(0, 1, people)
    scores = np.clip((rng.random((n, people)) < 1 / (1 + np.exp(b - theta))).sum(axis=0), n // 6, n - n // 6)
    exact = Contour.of(b[None], scores, np.full(people, n)).given.p[0]
    indptr = np.arange(0, (people + 1) * n, n, dtype=np.int32)
    start = prox(b.mean(axis=0), b.var(axis=0), np.log(scores / (n - scores)))
    p, c = np.empty(n * people), np.empty(n * people)
    fill_given_score(indptr, np.arange(n * people, dtype=np.int32), scores, start, b.T.ravel(), p, c)
    assert np.abs(p.reshape(people, n).T - exact).max() < worst
    single, link = np.empty((2, n * people), dtype=np.float32)
    cells = (indptr, np.arange(n * people, dtype=np.int32), scores, start, b.T.ravel(), single, link)
    fill_given_score(*cells)
    np.testing.assert_allclose(single, p, atol=5e-6)
    np.testing.assert_allclose(link, c, rtol=1e-4, atol=1e-7)
    c = c.reshape(people, n).T
    np.testing.assert_allclose(c * (c.sum(axis=0) - c), exact * (1 - exact), rtol=0.02, atol=1e-5)


def neighbors_by_hand(table):
    """W of the definition, person by person; people with one answer left out."""
    seen = ~np.isnan(table)
    seen = seen[seen.sum(axis=1) > 1].astype(float)
    n = seen.sum(axis=0)
    w = np.zeros((len(n), len(n)))
    for row in seen:
        share = np.where(row > 0, 1 / np.maximum(n, 1), 0.0)
        w += np.outer(share, share) / share.sum()
    return w


def test_neighbors_are_what_they_say():
    data = simulate.rasch(60, 12, design="sampled", p=0.3, seed=4).responses.to_dense()
    data[0], data[0, 3] = np.nan, 1.0  # a single answer
    w = neighbors_by_hand(data)
    near = Neighbors(Responses.from_wide(data))
    np.testing.assert_allclose(w.sum(axis=1), 1)
    v = np.random.default_rng(1).normal(size=(12, 2))
    np.testing.assert_allclose(v - near.deviation(v), w @ v)
    np.testing.assert_allclose(near.deviation(v[:, 0]), v[:, 0] - w @ v[:, 0])
    np.testing.assert_allclose(near.self_weight, np.diag(w))
    np.testing.assert_allclose(near.dense(), np.eye(12) - w, atol=1e-15)


def test_neighbors_of_a_few_items_need_only_their_people():
    near = Neighbors(simulate.rasch(400, 60, design="popularity", n_responses=3000, seed=5).responses)
    chosen = np.arange(60) == near.share.argmax()
    fewer = near.around(chosen)
    assert sum(part.answered.shape[0] for part in fewer.rows.map(lambda rows: rows)) < 40
    v = np.random.default_rng(2).normal(size=60)
    np.testing.assert_allclose(fewer.deviation(v)[chosen], near.deviation(v)[chosen])
    np.testing.assert_allclose(fewer.deviation(chosen * v), near.deviation(chosen * v), atol=1e-14)


def test_the_prior_fades_with_what_is_known():
    information, tied = np.array([1.0, 3.0, 4.5, 6.0, 25.0, 40.0, 50.0, 900.0]), np.array([True] * 7 + [False])
    np.testing.assert_allclose(share_of_prior(information, tied, 1.0), [1, 1, 0.5, 0, 0, 0, 0, 1])
    # The median is 15.5: with a precision of as much the data are thin as a whole, with half of it they are not.
    np.testing.assert_allclose(share_of_prior(information, tied, 15.5), [1, 1, 1, 1, 1, 0.4, 0, 1])
    np.testing.assert_allclose(share_of_prior(information, tied, 7.75), share_of_prior(information, tied, 1.0))
    half = share_of_prior(information, tied, 15.5 / 1.5)
    assert half[4] == pytest.approx(2 - 25 / 14)


@pytest.mark.slow
@pytest.mark.parametrize("people", [50, 100])
def test_an_ordinary_test_is_conditional_maximum_likelihood(people):
    """A prior that also counted for items with information up to 50 flattened tests of 50 people by an eighth."""
    slopes = []
    for seed in range(25):
        data = simulate.rasch(people, 20, seed=1000 + seed)
        fit = SpectralRasch(se="none").fit(data.responses)
        slopes.append(np.polyfit(data.difficulty, fit.difficulty_, 1)[0])
        if fit.regularization_.kind == "none":
            exact = ConditionalRasch().fit(data.responses)
            np.testing.assert_allclose(fit.difficulty_, exact.difficulty_, atol=3e-4)  # a thousandth of an error
    assert 0.94 < np.mean(slopes) < 1.06  # a standard error of .02 and .01


@pytest.mark.slow
@pytest.mark.parametrize("ordered", [False, True])
def test_how_far_the_prior_moves_an_item_is_told(ordered):
    """To a sixth of the difference between a fit with it and one without."""
    told, exact = [], []
    for seed in range(12):
        if ordered:
            data = simulate.partial_credit(60, 10, categories=3, seed=seed).responses
            fit, bare = (SpectralPartialCredit(regularization=r).fit(data) for r in ("auto", 0))
            moved, places = bare.thresholds_ - fit.thresholds_, data.thresholds
            names = [f"threshold {k} of item {i}" for i, k in zip(places.item, places.level, strict=True)]
        else:
            data = simulate.rasch(30, 15, seed=seed).responses
            fit, bare = (SpectralRasch(regularization=r).fit(data) for r in ("auto", 0))
            moved, names = bare.difficulty_ - fit.difficulty_, [f"item {i}" for i in range(15)]
        plan = fit.regularization_
        if len(moved) == len(names) and np.isfinite(moved).all() and plan.kind == "neighbors":
            assert plan.alone == 0
            told.append(plan.shift)
            exact.append(abs(moved[names.index(plan.moved)]))
            assert f"acts on {plan.items} of {len(names)} " in str(plan)
            assert f"it moves {plan.moved} most, by about {plan.shift:.2f} logits" in str(plan)
    assert len(told) >= 4
    np.testing.assert_allclose(np.array(told) / exact, 1, atol=0.17)


def test_items_that_only_the_prior_makes_finite_are_counted():
    table = (np.random.default_rng(5).random((25, 8)) < 0.5).astype(float)
    table[:, 2] = 1
    plan = SpectralRasch().fit(table).regularization_
    assert plan.alone == 1
    assert "1 has no finite estimate without it" in str(plan)


@pytest.mark.slow
def test_the_priors_matrix_three_ways():
    data = simulate.rasch(200, 15, design="sampled", p=0.3, seed=4).responses
    prior = LocationPrior(Neighbors(data), 1.7, np.linspace(0, 1, 15))
    penalty, pull = prior.dense()
    w = neighbors_by_hand(data.to_dense())
    others = (np.eye(15) - w) / (1 - np.diag(w))[:, None]  # from the mean of the others
    np.testing.assert_allclose(others @ np.ones(15), 0, atol=1e-12)
    np.testing.assert_allclose(penalty, 1.7 * others.T @ np.diag(prior.fade) @ others, atol=1e-12)
    v = np.random.default_rng(1).normal(size=(15, 3))
    np.testing.assert_allclose(prior.spread(v, 1), penalty @ v, atol=1e-12)
    np.testing.assert_allclose(prior.spread(v), pull @ v, atol=1e-12)
    drawn = prior.draw(np.random.default_rng(2), 40_000)
    np.testing.assert_allclose(np.cov(drawn), pull, atol=5 * 1.7 * np.sqrt(2 / 40_000))


@pytest.mark.parametrize(
    ("people", "items", "options"),
    [
        (800, 12, {}),
        (800, 40, {"design": "sampled", "p": 0.3}),
        (500, 50, {"design": "popularity", "n_responses": 10_000, "exponent": 0.3}),
    ],
)
def test_lands_on_conditional_maximum_likelihood(people, items, options):
    data = simulate.rasch(people, items, seed=5, **options).responses
    exact = ConditionalRasch().fit(data)
    landed = SpectralRasch(regularization=0).fit(data)
    known = np.isfinite(exact.difficulty_)
    assert np.max(np.abs(landed.difficulty_ - exact.difficulty_)[known] / exact.se_[known]) < 0.005
    far = started(data.take_items(known), np.zeros(known.sum()))  # from anywhere
    assert np.max(np.abs(far.beta - exact.difficulty_[known]) / exact.se_[known]) < 0.005


def test_steps_that_end_on_the_way_back_give_the_last_good_point():
    data, start = simulate.partial_credit(300, 2, categories=8, seed=1).responses, np.linspace(8, -8, 14)
    ends = [Newton(Likelihood(data, start)).solve(start, max_evaluations=k) for k in range(1, 12)]
    back = next(k for k, end in enumerate(ends) if np.array_equal(end.beta, end.point.beta))  # else a step further
    found = ends[back]
    np.testing.assert_allclose(found.beta, ends[back - 1].point.beta, atol=1e-9)
    assert found.move > 0.04  # far from the end, which a finding says
    fresh = Likelihood(data, found.beta).at(found.beta)
    np.testing.assert_allclose(found.point.gradient, fresh.gradient, atol=1e-6)
    np.testing.assert_allclose(found.point.information, fresh.information, rtol=1e-6)


def test_misfitting_complete_data_are_ordered_by_their_shares():
    """Two abilities, and slopes that follow difficulty: the chain alone goes astray, CML does not."""
    rng = np.random.default_rng(3)
    n, m = 4000, 40
    beta = np.linspace(-2, 2, m)
    slope = np.exp(0.35 * beta)
    abilities = rng.normal(size=(n, 2))
    which = (np.arange(m) >= m // 2).astype(int)
    table = (rng.random((n, m)) < 1 / (1 + np.exp(-slope * (abilities[:, which] * 1.5 - beta)))).astype(float)
    chain, landed = SpectralRasch(refine=False).fit(table), SpectralRasch().fit(table)
    exact = ConditionalRasch(se="sandwich").fit(table)
    order = np.argsort(-table.mean(axis=0), kind="stable")
    assert np.max(np.abs(chain.difficulty_ - exact.difficulty_) / exact.se_) > 3
    assert np.max(np.abs(landed.difficulty_ - exact.difficulty_) / exact.se_) < 0.05
    assert (np.diff(landed.difficulty_[order]) > -1e-5).all()  # equal shares are equal to that


@pytest.mark.parametrize("n_anchors", [0, 1, 5, 40])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_standard_errors_three_ways(n_anchors, alpha):
    """The dense sandwich, its diagonal alone, and that corrected by random probes (a per cent or two of noise)."""
    data = simulate.rasch(1500, 120, design="sampled", p=0.15, seed=7)
    fixed = np.arange(120) < n_anchors if n_anchors else None
    near = LocationPrior(Neighbors(data.responses), alpha, np.ones(120))
    prior = Prior(data.responses.thresholds, near, 0.0, np.zeros(0), False) if alpha else None
    landed = started(data.responses, data.difficulty, prior=prior, fixed=fixed)
    free = slice(n_anchors, None)
    dense = np.sqrt(np.diag(Matrices.of(landed).covariance()))[free]
    one, many = (standard_errors(landed, way)[0][free] for way in ("one-pass", "multiplier"))
    np.testing.assert_allclose(one.mean(), dense.mean(), rtol=0.03)
    np.testing.assert_allclose(many.mean(), dense.mean(), rtol=0.02)
    np.testing.assert_allclose(many, dense, rtol=0.12)


def test_the_sandwich_by_hand():
    table = simulate.rasch(300, 6, seed=8).responses.to_dense()
    landed = started(Responses.from_wide(table), np.zeros(6))
    matrices = Matrices.of(landed)
    _, scores, information = Enumerated(table, [1] * 6).at(landed.beta)
    np.testing.assert_allclose(matrices.meat, scores.T @ scores, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(matrices.bread, information, rtol=0.15)  # matched on the diagonal, close off it
    np.testing.assert_allclose(np.diag(matrices.bread), np.diag(information), rtol=0.01)


def test_anchors_take_part_in_the_level():
    """Thin new items among easy anchors are thought easy: the prior's level is that of their own people's items."""
    rng = np.random.default_rng(4)
    beta = np.r_[np.full(10, -3.0), np.full(10, 3.0), -3.0, 3.0]
    table = np.full((400, 22), np.nan)
    for half, (items, theta) in enumerate(((range(10), -3), (range(10, 20), 3))):
        rows = np.arange(200 * half, 200 * (half + 1))
        table[np.ix_(rows, items)] = rng.random((200, 10)) < 1 / (1 + np.exp(-3 * (1 - 2 * half) - theta))
    table[0, 20], table[200, 21] = 1, 1  # one right answer each: information next to none
    fit = AnchoredRasch({k: beta[k] for k in range(20)}).fit(table)
    assert fit.difficulty_[20] < -2
    assert fit.difficulty_[21] > 2


@pytest.mark.parametrize("se", ["dense", "multiplier"])
def test_groups_that_share_no_people_land_each_by_itself(se):
    """Probabilities by the series do not quite add up to scores, which must not move the level of a group."""
    table = np.full((450, 240), np.nan)
    for k in range(3):
        rows, items = slice(150 * k, 150 * (k + 1)), slice(80 * k, 80 * (k + 1))
        table[rows, items] = simulate.rasch(150, 80, seed=k).responses.to_dense()
    fit = SpectralRasch(regularization=1.0, se=se).fit(table)
    assert fit.residual_ < 1e-3
    for k in range(3):
        rows, items = slice(150 * k, 150 * (k + 1)), slice(80 * k, 80 * (k + 1))
        alone = SpectralRasch(regularization=1.0, se="dense").fit(table[rows, items])
        np.testing.assert_allclose(fit.difficulty_[items], alone.difficulty_, atol=1e-3)
        if np.isfinite(fit.se_[items]).all():  # the group that gives the scale
            np.testing.assert_allclose(fit.se_[items], alone.se_, rtol=0.01 if se == "dense" else 0.25)


def test_many_rare_items_beside_a_popular_one():
    """A star: the conditioner knows what the rare ones add to the hub, and few evaluations are enough."""
    rng = np.random.default_rng(5)
    table = np.full((400, 401), np.nan)
    table[:, 0] = rng.random(400) < 0.6
    table[np.arange(400), 1 + np.arange(400)] = rng.random(400) < 0.5
    fit = SpectralRasch().fit(table)
    assert fit.residual_ <= 0.04
    assert np.isfinite(fit.difficulty_).all()
    assert np.abs(fit.difficulty_).max() < 10


def test_items_start_without_the_pull_of_the_chains_prior(monkeypatch):
    """One Newton step is enough, though the chain's prior acts on items with few answers that have none afterwards."""
    data = simulate.rasch(6000, 1500, design="popularity", n_responses=120_000, seed=2).responses
    steps = []
    found = SpectralRasch(threads=1).fit(data, progress=steps.append)
    assert sum("Newton step" in text for text in steps) == 1
    monkeypatch.setattr("spectral_irt.conditional.newton.CLOSE", 2e-5)
    end = SpectralRasch(threads=1).fit(data)
    assert np.nanmax(np.abs(found.difficulty_ - end.difficulty_) / end.se_) < 0.04


def test_a_variance_that_a_series_puts_below_zero_counts_as_none():
    """Its root was no number, and no step was ever small enough."""
    responses = simulate.partial_credit(200, 5, categories=3, seed=4).responses
    likelihood = Likelihood(responses, np.zeros(10))
    end = Newton(likelihood).solve(np.zeros(10))
    blocks = end.point.own.copy()
    blocks[2, 1, 1] = -1e-9
    beside = replace(end, point=replace(end.point, own=blocks))
    assert beside.diagonal[5] == 0
    assert beside.diagonal[:5] == pytest.approx(end.diagonal[:5])


@pytest.mark.parametrize("weighted", [False, True])
def test_shares_and_noise_of_items_count_persons_by_weight(weighted):
    """Who is expected to pass an item, of those without an extreme score; and squared weights over weights."""
    rng = np.random.default_rng(6)
    table = (rng.random((60, 5)) < 0.6).astype(float)
    table[rng.random((60, 5)) < 0.2] = np.nan
    weights = rng.choice([0.5, 1.0, 3.0], 60) if weighted else np.ones(60)
    responses = Responses.from_wide(table)
    beta = np.linspace(-0.6, 0.6, 5)
    likelihood = Likelihood(responses, beta, weights=weights if weighted else None)
    point = likelihood.at(beta)
    seen = ~np.isnan(table)
    score = np.nansum(table, axis=1)
    tells = (score > 0) & (score < seen.sum(axis=1))
    # The plain scores are what is expected less what was observed.
    excess, _ = conditional_point(table, [1] * 5, beta, weights)
    passed = np.nansum(weights[tells, None] * table[tells], axis=0)
    expected = passed + excess[tells].sum(axis=0)
    people = (weights[tells, None] * seen[tells]).sum(axis=0)
    np.testing.assert_allclose(likelihood.share(point), expected / people, atol=2e-3)  # series, for short tests
    squares = (weights[tells, None] ** 2 * seen[tells]).sum(axis=0)
    np.testing.assert_allclose(likelihood.noise, squares / people if weighted else 1.0)


@pytest.mark.parametrize("n_fixed", [0, 4])
def test_blocks_and_errors_of_ordered_items_under_a_prior(n_fixed):
    """Blocks of own information and prior, inverted; and standard errors by the dense sandwich and two shorter ways."""
    data = simulate.partial_credit(800, 30, categories=3, design="sampled", p=0.5, seed=3)
    layout = data.responses.thresholds
    near = LocationPrior(Neighbors(data.responses), 15.0, np.linspace(0, 1, 30))
    prior = Prior(layout, near, 12.0, np.linspace(1, 0.2, layout.n_entries), False)
    fixed = layout.item < n_fixed if n_fixed else None
    found = started(data.responses, data.thresholds, prior=prior, fixed=fixed)
    penalty = prior @ np.eye(layout.n_entries)
    for item in range(30):
        own = layout.of_items(np.array([item]))
        expected = np.zeros((2, 2))
        if item >= n_fixed:
            expected = np.linalg.inv(found.point.own[item] + penalty[np.ix_(own, own)])
        # Blocks of the prior leave out that the mean of all items moves along, by a thirtieth.
        np.testing.assert_allclose(found.inverse[item], expected, rtol=0.05, atol=1e-3)
    covariance = Matrices.of(found).covariance()
    free = slice(2 * n_fixed, None)
    dense = np.sqrt(np.diag(covariance))[free]
    averaging = np.kron(np.eye(30), [0.5, 0.5])
    of_locations = np.sqrt(np.diag(averaging @ covariance @ averaging.T))[n_fixed:]
    one, location = standard_errors(found, "one-pass")
    np.testing.assert_allclose(one[free].mean(), dense.mean(), rtol=0.04)
    np.testing.assert_allclose(location[n_fixed:].mean(), of_locations.mean(), rtol=0.04)
    many, location = standard_errors(found, "multiplier")
    np.testing.assert_allclose(many[free].mean(), dense.mean(), rtol=0.02)
    np.testing.assert_allclose(many[free], dense, rtol=0.12)
    np.testing.assert_allclose(location[n_fixed:], of_locations, rtol=0.15)
