"""Reliability, strata and suspected options: by plain formulas on made-up abilities."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from drawn import drawn
from spectral_irt import AnchoredRasch, Responses, SpectralRasch
from spectral_irt.data.answer_key import OTHER
from spectral_irt.inference.fit.strata import cell_edges, items_with_curves, stratum_of_cells
from spectral_irt.inference.items.distractors import _suspicion
from spectral_irt.inference.items.rest_ability import AbilitySums
from spectral_irt.inference.prediction import auc, split_persons
from spectral_irt.inference.scores import reliability as module
from spectral_irt.inference.scores.reliability import Marginal, mean_and_sd, reliability, sample_of_people, separation


def by_hand(measure, se, weights):
    """Spread with n - 1, mean square of the errors, and what follows from the two."""
    n = len(measure)
    mean = np.sum(weights * measure) / weights.sum()
    variance = np.sum(weights * (measure - mean) ** 2) / weights.sum() * n / (n - 1)
    error = np.sum(weights * se**2) / weights.sum()
    ratio = np.sqrt(max(variance - error, 0) / error)
    return {
        "n": n,
        "mean": mean,
        "sd": np.sqrt(variance),
        "rmse": np.sqrt(error),
        "true_sd": np.sqrt(max(variance - error, 0)),
        "separation": ratio,
        "strata": (4 * ratio + 1) / 3,
        "reliability": 1 - error / variance,
    }


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [1.0, 3.0])
def test_separation_is_spread_beyond_errors(weighted, size):
    rng = np.random.default_rng(1)
    measure, se = rng.normal(size=9), size * rng.uniform(0.2, 0.6, 9)
    measure[[2, 5]] = np.inf, np.nan
    weights = rng.uniform(0.5, 3, 9)
    known = np.isfinite(measure)
    expected = by_hand(measure[known], se[known], weights[known] if weighted else np.ones(7))
    found = separation(measure, se, weights if weighted else None)
    assert vars(found) == pytest.approx(expected)
    assert found.unseen == (expected["reliability"] < 0)
    assert mean_and_sd(measure[known]) == pytest.approx((measure[known].mean(), measure[known].std(ddof=1)))


@pytest.fixture(scope="module")
def study():
    """Two forms with items in common; the abler people met the harder one."""
    rng = np.random.default_rng(7)
    theta = np.repeat([-0.7, 0.7], 60) + rng.normal(size=120)
    X = drawn(rng, theta[:, None] - np.linspace(-2, 2, 12))
    X[:60, 8:] = np.nan
    X[60:, :4] = np.nan
    X[3, :] = np.nan
    X[4, 0] = np.nan  # a set of items of one's own
    return SpectralRasch().fit(X).analyse(X)


def test_what_is_said_of_people_and_items_against_loops(study):
    found, ml = study.abilities("wle"), study.abilities("ml")
    infit, item_infit = np.linspace(0.7, 1.6, 120), np.linspace(1.3, 0.8, 12)
    eap = Marginal(0.7, 0.1, 1.2, 119, 1.0)
    weights = np.linspace(0.5, 2, 120)
    calibration = study.calibration
    how = {"ml": ml, "eap": eap, "person_infit": infit, "item_infit": item_infit, "weights": weights}
    result = reliability(calibration, study.responses, found, **how)
    mixed = (found.n > 0) & ~found.extreme
    everybody = found.n > 0

    def people(which, factor=1.0, ability=found):
        se = (ability.se * factor)[which]
        return by_hand(ability.ability[which], se, weights[which])

    assert vars(result.persons) == pytest.approx(people(mixed))
    assert vars(result.persons_real) == pytest.approx(people(mixed, np.sqrt(np.maximum(infit, 1))))
    assert vars(result.persons_with_extremes) == pytest.approx(people(everybody))
    assert result.sep_rel == pytest.approx(people(mixed, ability=ml)["reliability"])
    beta, se = calibration.difficulty, calibration.se
    assert vars(result.items) == pytest.approx(by_hand(beta, se, np.ones(12)))
    worse = se * np.sqrt(np.maximum(item_infit, 1))
    assert vars(result.items_real) == pytest.approx(by_hand(beta, worse, np.ones(12)))
    X = study.responses.to_dense()
    total, n = np.nansum(X, axis=1), np.sum(~np.isnan(X), axis=1)
    assert result.n_persons == np.sum(n > 0)
    assert result.n_lowest == np.sum((n > 0) & (total == 0))
    assert result.n_highest == np.sum((n > 0) & (total == n))
    assert result.targeting == pytest.approx(result.persons.mean - beta.mean())
    met = np.array([beta[~np.isnan(row)].mean() for row in X[everybody]])
    assert result.form_correlation == pytest.approx(np.corrcoef(met, found.ability[everybody])[0, 1])
    assert result.same_items == pytest.approx(118 / 119)
    # Reliability among people on one form: the spread that goes with the difficulty of the items is taken off.
    v, errors = 1.44, 1.44 * 0.3 / 0.7
    rest = v - result.form_correlation**2 * result.persons_with_extremes.sd**2
    assert result.within_forms == pytest.approx(rest / (rest + errors))
    assert replace(result, same_items=0.4).within_forms is None
    assert replace(result, eap_reliability=None).within_forms is None


def test_what_errors_of_severities_and_halo_take_from_reliability():
    weights = np.array([1.0, 2.0, 1.0, 5.0])
    n = np.array([3, 2, 4, 0])
    plain, severities, halo = (
        SimpleNamespace(n=n, se=np.array(se)) for se in ([0.4, 0.5, 0.3, 9], [0.45, 0.55, 0.35, 9], [0.6, 0.7, 0.5, 9])
    )
    found = Marginal(0.8, 0.0, 1.1, 3, 1.0).with_rater_errors(plain, severities, halo, weights)
    a, b, c = (np.average(one.se[:3] ** 2, weights=weights[:3]) for one in (plain, severities, halo))
    kept = 1 - a / 1.21
    assert found.reliability == pytest.approx(0.8 - (b - a) / 1.21 - (c - b) / (kept * 1.21))


def test_a_sample_of_people_is_even(monkeypatch):
    X = np.tile([1.0, 0.0, 1.0, 0.0], (1000, 1))
    X[::10] = np.nan
    responses = Responses.from_wide(X)
    np.testing.assert_array_equal(sample_of_people(responses), np.flatnonzero(np.arange(1000) % 10))
    monkeypatch.setattr(module, "LEAST_SAMPLE", 50)
    monkeypatch.setattr(module, "ENOUGH_RESPONSES", 400)  # responses: 100 people
    some = sample_of_people(responses)
    assert len(some) == 100
    assert (some[0], some[-1]) == (1, 999)
    assert np.diff(some).max() <= 11
    monkeypatch.setattr(module, "LEAST_SAMPLE", 150)
    assert len(sample_of_people(responses)) == 150


def test_cells_end_between_people_who_differ():
    rng = np.random.default_rng(2)
    ability = np.repeat(np.round(rng.normal(size=30), 2), rng.integers(1, 40, 30))
    edges = cell_edges(ability + 1e-12 * rng.normal(size=len(ability)))
    values = np.unique(ability)
    assert np.all(np.diff(edges) > 0)
    middles = (values[1:] + values[:-1]) / 2
    assert all(np.abs(middles - edge).min() < 1e-9 for edge in edges)
    many = np.sort(rng.normal(size=20_000))
    sizes = np.diff(np.concatenate([[0], np.searchsorted(many, cell_edges(many)), [20_000]]))
    assert len(sizes) == 200
    assert np.abs(sizes - 100).max() <= 1
    assert len(cell_edges(np.zeros(5))) == 0


@pytest.mark.parametrize(("people", "strata"), [(1000, 8), (75, 5), (60, 4), (30, 3), (10, 3)])
def test_strata_hold_about_as_many_people(people, strata):
    """Fifteen people in each, or more; three strata at least."""
    n = np.full(40, people / 40)
    of_cell = stratum_of_cells(n, 8)
    assert of_cell.max() + 1 == strata
    assert (np.diff(of_cell) >= 0).all()
    sizes = np.bincount(of_cell, weights=n)
    assert sizes.max() - sizes.min() <= 1.01 * people / 40
    assert stratum_of_cells(n, 2).max() == 1


def test_of_very_many_items_the_curves_of_those_that_fit_worst(monkeypatch):
    status = np.array(["ok", "ok", "unlinked", "ok", "ok"], dtype=object)
    calibration = SimpleNamespace(known=np.array([True, True, True, False, True]), status=status)
    fit = {"infit_conditional_z": np.array([0.5, -3.0, 9.0, 9.0, np.nan])}
    assert items_with_curves(calibration, fit).tolist() == [0, 1, 4]
    monkeypatch.setattr("spectral_irt.inference.fit.strata.MOST_CURVES", 2)
    assert items_with_curves(calibration, fit).tolist() == [0, 1]
    monkeypatch.setattr("spectral_irt.inference.fit.strata.MOST_CURVES", 1)
    assert items_with_curves(calibration, fit).tolist() == [1]


def sums(n, mean, sd=1.0):
    return [n, n * mean, (n - 1) * sd**2 + n * mean**2]


def test_options_whose_people_are_abler_than_the_others_and_than_those_of_the_key():
    """Welch's tests from counts, sums and squares; columns: blank, key, two options, other."""
    people = [
        [sums(8, -1.0), sums(40, -0.3), sums(30, 1.2), sums(30, -0.5), sums(3, 0.0)],  # the third is the right one
        [sums(8, -1.0), sums(40, 1.0), sums(30, 1.2), sums(30, -0.5), sums(3, 0.0)],  # plausible, as good as the key
        [sums(8, -1.0), sums(3, 0.0), sums(30, 1.0), sums(30, -0.5), sums(3, 0.0)],  # hardly anybody chose the key
        [sums(8, 2.0), sums(40, -0.3), sums(30, 0.0), sums(30, 0.1), sums(9, 2.0)],  # those without an answer are abler
    ]
    shown = np.array(people).transpose(2, 0, 1).astype(float)
    chose = np.zeros((3, 4, OTHER + 1))
    chose[:, :, :4] = shown[:, :, :4]
    chose[:, :, OTHER] = shown[:, :, 4]
    suspect, above_key = _suspicion(AbilitySums(*chose))
    assert np.argwhere(suspect).tolist() == [[0, 2], [2, 2]]
    a, b = people[3][2], people[3][1]

    def welch(one, other):
        (n, s, q), (m, t, r) = one, other
        va, vb = ((q - s**2 / n) / (n - 1) / n, (r - t**2 / m) / (m - 1) / m)
        df = (va + vb) ** 2 / (va**2 / (n - 1) + vb**2 / (m - 1))
        return stats.t.sf((s / n - t / m) / np.sqrt(va + vb), df)

    assert above_key[3, 2] == (welch(a, b) < 0.05)
    assert above_key[0, 2]
    assert not above_key[0, 3]


def test_the_area_under_the_curve_by_pairs():
    score, right, wrong = np.array([0.2, 0.7, 0.7, 0.9]), np.array([1, 3, 2, 6]), np.array([5, 2, 2, 1])
    ones, zeros = np.repeat(score, right), np.repeat(score, wrong)
    pairs = (ones[:, None] > zeros) + 0.5 * (ones[:, None] == zeros)
    assert auc(score, right, wrong) == pytest.approx(pairs.mean())
    assert np.isnan(auc(score, right, 0 * wrong))


def test_people_are_divided_at_random_by_shares():
    responses = Responses.from_wide((np.random.default_rng(0).random((97, 3)) < 0.5) * 1.0)
    groups = split_persons(responses, [0.72, 0.08, 0.2], 5)
    assert [group.n_persons for group in groups] == [70, 8, 19]
    everyone = np.concatenate([group.persons for group in groups])
    assert sorted(everyone.tolist()) == list(range(97))


def test_anchors_have_no_error_and_no_part_in_the_separation_of_items():
    """Counted as known exactly, they made it as large as one liked: separation is that of the items estimated here."""
    X = drawn(np.random.default_rng(3), np.random.default_rng(2).normal(size=(300, 1)) - np.linspace(-2, 2, 10))
    anchors = dict(enumerate(np.linspace(-2, 2, 10)[:6].tolist()))
    study = AnchoredRasch(anchors).fit(X).analyse(X)
    free = study.calibration.status != "anchored"
    expected = by_hand(study.calibration.difficulty[free], study.calibration.se[free], np.ones(4))
    assert vars(study.reliability().items) == pytest.approx(expected)
