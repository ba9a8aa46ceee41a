"""Persons, probabilities and errors in cases of their own, against loops and direct formulas."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse, stats

import spectral_irt as si
from spectral_irt import ability as ability_module
from spectral_irt.calibration import t_quantile
from spectral_irt.conditional import series_tables
from spectral_irt.conditional.exact_likelihood import conditional_probabilities
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.data.block import Rows, Thresholds, rows_of
from spectral_irt.errors import DisconnectedDesignError
from spectral_irt.estimators import pairwise, spectral_errors
from spectral_irt.estimators.joint import VariationalRasch
from spectral_irt.estimators.population import _check_linked
from spectral_irt.inference.ranks import items as ranks
from spectral_irt.persons.plausible import background
from spectral_irt.persons.residuals import ERRATIC, residual_columns, unexpected_columns

NAN = np.nan


def test_what_is_known_of_persons_is_in_units_of_its_sd():
    rng = np.random.default_rng(1)
    age = rng.normal(40, 12, 50)
    both = np.column_stack([rng.normal(3, 0.1, 50), np.full(50, 7.0)])
    town = np.array(["b", "a", "c", "b", "a"] * 10)
    found = background({"age": age, "both": both, "town": town}, 50)
    assert found.shape == (50, 6)
    np.testing.assert_array_equal(found[:, 0], 1)
    np.testing.assert_allclose(found[:, 1], (age - age.mean()) / age.std())
    np.testing.assert_allclose(found[:, 2], (both[:, 0] - both[:, 0].mean()) / both[:, 0].std())
    np.testing.assert_allclose(found[:, 3], 0, atol=1e-12)  # a constant
    np.testing.assert_array_equal(found[:, 4:], np.column_stack([town == "b", town == "c"]))


@pytest.fixture(scope="module")
def unlike():
    data = si.simulate.partial_credit(80, thresholds=[[0.3], [-1, 1.2], [-0.8, 0.1, 1]], seed=4).responses
    return data, np.array([0.3, -1, 1.2, -0.8, 0.1, 1])


def category_logits(theta, thresholds):
    return np.array([k * theta - np.sum(thresholds[:k]) for k in range(len(thresholds) + 1)])


def test_residuals_of_every_answer(unlike):
    responses, beta = unlike
    ability = np.linspace(-2, 2, responses.n_persons)
    ability[3] = NAN
    columns = residual_columns(responses, beta, ability)
    parts = np.split(beta, responses.thresholds.first[1:])
    table = responses.to_dense()
    for row in range(0, len(columns["person"]), 7):
        person = responses.persons.tolist().index(columns["person"][row])
        item = responses.items.tolist().index(columns["item"][row])
        x = table[person, item]
        assert columns["response"][row] == x
        if person == 3:
            assert np.isnan(columns["expected"][row])
            continue
        p = np.exp(category_logits(ability[person], parts[item]))
        p /= p.sum()
        k = np.arange(len(p))
        mean = p @ k
        assert columns["expected"][row] == pytest.approx(mean)
        assert columns["residual"][row] == pytest.approx(x - mean)
        assert columns["z"][row] == pytest.approx((x - mean) / np.sqrt(p @ (k - mean) ** 2))


@pytest.mark.parametrize("far", [False, True])
def test_the_log_likelihood_of_abilities(unlike, monkeypatch, far):
    """By sums of powers, and where these would be too large by logarithms: the same but for one constant a person."""
    responses, beta = unlike
    if far:
        monkeypatch.setattr(ability_module, "SAFE_EXPONENT", 0.0)
    layout = responses.thresholds
    rows = rows_of(responses.entries.blocks[0], layout)
    loglik = ability_module.log_likelihood(ability_module.Run(rows, layout, beta))
    table = responses.to_dense()
    parts = np.split(beta, layout.first[1:])

    def slow(theta):
        total = np.zeros(len(table))
        for person, row in enumerate(table):
            for x, thresholds in zip(row, parts, strict=True):
                logits = category_logits(theta[person], thresholds)
                total[person] += logits[int(x)] - np.log(np.exp(logits).sum())
        return total

    first = np.linspace(-3, 3, len(table))
    second = first[::-1] / 2
    np.testing.assert_allclose(loglik(first) - loglik(second), slow(first) - slow(second), atol=1e-10)


def test_the_probability_of_right_answers():
    calibration = si.ConditionalRasch().fit(si.simulate.rasch(100, 4, seed=2).responses).calibration_
    theta = np.array([-1.0, 0.5])
    p = 1 / (1 + np.exp(calibration.difficulty - theta[:, None]))
    np.testing.assert_allclose(calibration.probability(theta), p)
    np.testing.assert_allclose(calibration.probability(theta, [2, 0]), p[:, [2, 0]])
    np.testing.assert_allclose(calibration.expected_score(theta), p)


def test_items_without_a_difficulty_count_as_not_answered():
    rng = np.random.default_rng(5)
    table = (rng.random((30, 6)) < 0.5).astype(float)
    table[rng.random(table.shape) < 0.2] = NAN
    beta = np.array([0.4, NAN, -0.7, 0.1, NAN, 1.0])
    block = si.Responses.from_wide(table).entries.blocks[0]
    found = conditional_probabilities(block, beta, series_from=np.inf)
    finite = np.isfinite(beta)
    row = np.repeat(np.arange(block.n_persons), block.counts)
    dense = np.full(table.shape, NAN)
    dense[row, block.items] = found
    assert np.isnan(dense[:, ~finite]).all()
    some = si.Responses.from_wide(table[:, finite]).entries.blocks[0]
    expected = np.full((30, finite.sum()), NAN)
    expected[np.repeat(np.arange(30), some.counts), some.items] = conditional_probabilities(
        some, beta[finite], series_from=np.inf
    )
    np.testing.assert_allclose(dense[:, finite], expected, atol=1e-12)


def test_groups_without_common_items_are_named():
    def members(*items):
        counts = np.zeros(6, dtype=np.int64)
        counts[list(items)] = 3
        return SimpleNamespace(responses=SimpleNamespace(item_counts=counts, source="survey.csv"))

    _check_linked([members(0, 1), members(1, 2), members(2, 3)], ("a", "b", "c"))
    with pytest.raises(DisconnectedDesignError) as error:
        _check_linked([members(0, 1), members(3, 4), members(1, 2)], ("a", "b", "c"))
    assert "the groups 'a', 'c' have no item in common with 'b'" in str(error.value)


def test_errors_of_anchors_are_added_as_variances(monkeypatch):
    layout = Thresholds(np.array([1, 2]))
    passed_on = np.array([0.01, 0.02, 0.04])
    optimum = SimpleNamespace(point=SimpleNamespace(layout=layout))
    anchored = SimpleNamespace(errors=np.ones(3), passed_on=lambda *given: passed_on)
    plan = SimpleNamespace(anchored=anchored, included_thresholds=slice(None))
    solution = SimpleNamespace(optimum=optimum, plan=plan, chain=SimpleNamespace(contraction=0.5))
    given = (np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.15]))
    monkeypatch.setattr(spectral_errors, "standard_errors", lambda *given_: given)
    found = spectral_errors._without_matrices(solution, "one pass", 0)
    np.testing.assert_allclose(found.thresholds, np.sqrt(given[0] ** 2 + passed_on))
    np.testing.assert_allclose(found.locations, np.sqrt(given[1] ** 2 + [0.01, 0.03]))
    anchored.errors = None
    np.testing.assert_allclose(spectral_errors._without_matrices(solution, "one pass", 0).thresholds, given[0])


@pytest.mark.parametrize("dense", [True, False])
def test_pairwise_errors_by_their_matrices(monkeypatch, dense):
    rng = np.random.default_rng(2)
    table = (rng.random((60, 5)) < 0.5).astype(float)
    table[rng.random(table.shape) < 0.2] = NAN
    responses = si.Responses.from_wide(table)
    beta = np.linspace(-0.5, 0.5, 5)
    counts = np.zeros((5, 5))
    scores = np.zeros((60, 5))
    for person, row in enumerate(table):
        for i in range(5):
            for j in range(5):
                if row[i] == 1 and row[j] == 0:
                    counts[i, j] += 1
                    p = 1 / (1 + np.exp(beta[i] - beta[j]))  # that i is the right one of the two
                    scores[person, i] += 1 - p
                    scores[person, j] -= 1 - p
    information = np.zeros((5, 5))
    for i in range(5):
        for j in range(5):
            p = 1 / (1 + np.exp(beta[i] - beta[j]))
            weight = (counts[i, j] + counts[j, i]) * p * (1 - p)
            information[i, i] += weight
            information[i, j] -= weight
    omega = scores.T @ scores
    inverse = np.linalg.pinv(information)
    expected = np.sqrt(np.diag(inverse @ omega @ inverse))
    if not dense:
        monkeypatch.setattr(pairwise, "DENSE_ITEMS", 4)
        expected = np.sqrt(np.diag(omega)) / np.diag(information)
    found = pairwise.pairwise_errors(responses, sparse.csr_array(counts), beta, "pairs")
    np.testing.assert_allclose(found, expected)


def test_displacements_of_anchors():
    data = si.simulate.rasch(300, 5, seed=3).responses
    known = {0: -1.0, 1: 0.2, 3: 0.9}
    fit = si.anchored_fit(data, known)
    table = {name: fit.displacements()[name].to_numpy() for name in fit.displacements().columns}
    np.testing.assert_allclose(table["anchor"], [-1.0, 0.2, 0.9])
    np.testing.assert_allclose(table["free"], table["anchor"] + table["displacement"])
    np.testing.assert_allclose(table["z"], table["displacement"] / table["se"])


def test_how_far_an_interval_reaches():
    for tail in (0.025, 0.005, 0.2):
        assert t_quantile(np.inf, tail) == pytest.approx(stats.norm.isf(tail))
        assert t_quantile(6.5, tail) == pytest.approx(stats.t.isf(tail, 6.5))


@pytest.mark.parametrize(
    ("mean", "unit", "agree"), [(500.09, 100.09, True), (500.2, 100, False), (500, 100.2, False), (500, 99.8, False)]
)
def test_scales_that_differ_by_a_thousandth_of_a_logit_agree(mean, unit, agree):
    assert si.Scale(500, 100).agrees_with(si.Scale(mean, unit)) == agree


@pytest.mark.parametrize(("items", "categories"), [(40, 2), (30, 4)])
def test_weights_are_copies_of_persons_in_the_series(items, categories):
    """Long rows, whose sums given the score are series: a person of weight 3 counts as three."""
    thresholds = [np.linspace(-0.5, 0.5, categories - 1) if categories > 2 else [0.0]] * items
    responses = si.simulate.partial_credit(120, thresholds=thresholds, seed=6).responses
    beta = np.random.default_rng(1).normal(size=responses.thresholds.n_entries)
    weights = np.random.default_rng(2).choice([1.0, 2.0, 3.0], 120)
    table = np.repeat(responses.to_dense(), weights.astype(int), axis=0)
    copies = si.Responses.from_wide(table, ordered=categories > 2)
    weighted = Likelihood(responses, beta, weights=weights).at(beta)
    expected = Likelihood(copies, beta).at(beta)
    if categories > 2:
        assert sum(len(part.at) for part in weighted.rows.parts) > 60  # in tables
    v = np.random.default_rng(3).normal(size=len(beta))
    # Copies are of one pattern, which may have exact sums: apart by what the series and the matched information allow.
    near = 0.01 * np.abs(expected.information).max()
    np.testing.assert_allclose(weighted.gradient, expected.gradient, atol=near / 10)
    np.testing.assert_allclose(weighted.information, expected.information, atol=near)
    np.testing.assert_allclose(weighted @ v, expected @ v, atol=near * np.linalg.norm(v))


def by_gaps(items_of, beta, layout, scores):
    """Persons with a gap among the places of their thresholds, and about as many points as thresholds below it."""
    chosen = []
    widest = layout.widest
    slack = 1 if widest == 1 else 2 * widest - 1
    nearer = 1 if widest == 1 else 1 + ability_module.NEARER * (widest - 1)
    for person, (items, score) in enumerate(zip(items_of, scores, strict=True)):
        places = np.sort(nearer * np.concatenate([beta[layout.item == item] for item in items]))
        for k in range(1, len(places)):
            if places[k] - places[k - 1] >= ability_module.GAP and abs(score - k) <= slack:
                chosen.append(person)
                break
    return chosen


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("widest", [1, 3])
def test_persons_beside_a_gap(widest, far):
    """Two maxima are possible there; by bits for each logit, and where these are too many by sorting everybody."""
    rng = np.random.default_rng(4)
    n_items = 24
    layout = Thresholds(np.full(n_items, widest))
    location = rng.uniform(-12, 12, n_items)
    if far:
        location[0] = 80.0
    beta = (location[:, None] + 0.7 * np.arange(widest)).ravel()
    items_of = [np.sort(rng.choice(np.arange(1, n_items), 6, replace=False)) for _ in range(200)]
    max_scores = np.full(200, 6 * widest)
    scores = rng.integers(1, 6 * widest, 200)
    items = np.concatenate(items_of).astype(np.int32)
    rows = Rows(np.arange(201) * 6, items, np.full(200, 6), scores, max_scores)
    found = ability_module.beside_a_gap(ability_module.Run(rows, layout, beta))
    expected = by_gaps(items_of, beta, layout, scores)
    assert 10 < len(expected) < 190
    assert found.tolist() == expected
    close = ability_module.Run(rows, layout, beta / 100)
    assert not len(ability_module.beside_a_gap(close))


@pytest.mark.parametrize("widest", [1, 8, 40])
def test_a_grid_of_abilities_is_as_fine_as_answers_need(widest):
    layout = Thresholds(np.full(3, widest))
    grid = series_tables.grid_over(-1.0, 2.0, layout)
    assert (grid[0], grid[-1]) == (-1 - series_tables.MARGIN, 2 + series_tables.MARGIN)
    apart = series_tables.APART / max(1, widest / 4 / series_tables.WIDE)
    n = (3 + 2 * series_tables.MARGIN) / apart
    assert n <= len(grid) - 1 < n + 1


def test_the_spread_of_very_many_items_is_learned_from_some_evenly_by_difficulty(monkeypatch):
    rng = np.random.default_rng(5)
    precision = rng.uniform(5, 20, 23)
    pull = precision * rng.normal(size=23)
    seen = {}
    spread = ranks._spread

    def recorded(some_precision, some_pull, mean, variance):
        seen.update(precision=some_precision, pull=some_pull)
        return spread(some_precision, some_pull, mean, variance)

    monkeypatch.setattr(ranks, "_spread", recorded)
    monkeypatch.setattr(ranks, "LEARNED_FROM", 8)
    ranks.likely_places(precision, pull)
    ordered = np.argsort(pull / precision)
    np.testing.assert_array_equal(seen["pull"], pull[ordered[1::3]])
    np.testing.assert_array_equal(seen["precision"], precision[ordered[1::3]])


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("asked", [None, [7, 2, 30]])
def test_the_most_unexpected_answers_person_by_person(unlike, ordered, asked):
    """Of the persons asked for, in this order, or of those that misfit, the worst first; of each the largest |z|."""
    responses, beta = unlike
    if not ordered:
        responses = si.simulate.rasch(80, 6, seed=1).responses
        beta = np.linspace(-2, 2, 6)
    rng = np.random.default_rng(3)
    ability = rng.normal(0, 2, 80)
    infit, outfit = rng.normal(1.2, 1, 80), rng.normal(1.2, 1, 80)
    outfit[5] = NAN
    fits = SimpleNamespace(infit_z=infit, outfit_z=outfit)
    worst = np.fmax(infit, outfit)
    positions = None if asked is None else np.array(asked)
    found = unexpected_columns(
        responses, beta, SimpleNamespace(ability=ability), fits, people=positions, per_person=2, limit=9
    )
    every = residual_columns(responses, beta, ability)
    people = asked
    if people is None:
        people = sorted(np.flatnonzero(worst > ERRATIC), key=lambda k: -worst[k])
    expected = []
    for k in people:
        rows = np.flatnonzero((every["person"] == responses.persons[k]) & (np.abs(every["z"]) > 1))
        expected += rows[np.argsort(-np.abs(every["z"][rows]), kind="stable")][:2].tolist()
    expected = expected[:9]
    assert len(expected) > 2
    for name in ("person", "item", "response", "expected", "z"):
        assert found[name].tolist() == pytest.approx(every[name][expected].tolist())
    place = [responses.persons.tolist().index(person) for person in found["person"]]
    np.testing.assert_array_equal(found["misfit_z"], worst[place])
    np.testing.assert_array_equal(found["ability"], ability[place])
    location = responses.thresholds.mean(beta)
    where = [responses.items.tolist().index(item) for item in found["item"]]
    np.testing.assert_allclose(found["difficulty"], location[where])


def test_extreme_scores_tell_the_variational_fit_something():
    table = si.simulate.rasch(60, 5, seed=1).responses.to_dense()
    table[:3] = 1
    assert any(finding.code == "silent_persons" for finding in si.ConditionalRasch().fit(table).findings_)
    fit = VariationalRasch().fit(table)
    assert all(finding.code != "silent_persons" for finding in fit.findings_)
    table[:, 4] = 1
    assert any(4 in finding.items for finding in VariationalRasch().fit(table).findings_)
