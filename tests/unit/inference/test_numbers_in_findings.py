"""Numbers in findings and short tables, from records made by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.data.block import Thresholds
from spectral_irt.inference.dimensions.smith import smith_test
from spectral_irt.inference.fit import causes
from spectral_irt.inference.groups import calibrations, cluster_errors, dif, exact_tests
from spectral_irt.inference.groups.grouping import divide
from spectral_irt.inference.items import reversed_items
from spectral_irt.inference.prediction import _distances_to_cml, compare, evaluate, marginal_categories
from spectral_irt.inference.robust_center import center_of_items, robust_center
from spectral_irt.joint_errors import JointErrors
from spectral_irt.persons.abilities import abilities
from spectral_irt.persons.test_form import Forms

NAN = np.nan


@pytest.mark.parametrize(("df", "worth"), [(7.0, ""), (4.2, "worth 5.2 clusters of equal size"), (20.0, None)])
def test_how_many_clusters_errors_are_worth(df, worth):
    errors = cluster_errors.ClusterErrors(np.ones(2), np.ones(2), None, 8, df)
    finding = cluster_errors.cluster_finding(errors, "schools")
    assert "8 schools" in finding.sentence
    assert finding.code == ("clustered" if worth is None else "few_clusters")
    if worth is not None:
        assert ("clusters of equal size" in finding.sentence) == bool(worth)
        assert worth in finding.sentence


def test_guesses_in_percent():
    lucky = causes.Surprises(n=200, observed=60, expected=25.0, variance=20.0)
    sentence = causes._guessing(lucky, ("a",)).sentence
    assert "30% of the answers are right, 2.4 times as many as expected (12%)" in sentence


@pytest.mark.parametrize("split", ["mean", "median"])
def test_groups_by_the_typical_score_of_those_with_the_same_items(split):
    rng = np.random.default_rng(4)
    table = (rng.random((60, 5)) < 0.55).astype(float)
    table[20:40, 3] = NAN
    table[40:, :2] = NAN
    found = divide(si.Responses.from_wide(table), split)
    score = np.nansum(table, axis=1)
    for rows in (slice(0, 20), slice(20, 40), slice(40, 60)):
        if split == "mean":
            expected = score[rows] >= score[rows].mean()
        else:
            expected = score[rows] > np.median(score[rows])
        assert 0 < expected.sum() < 20
        np.testing.assert_array_equal(found.group[rows], expected)


def test_a_score_at_the_mean_is_not_below_it():
    table = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 0, 1]])
    assert divide(si.Responses.from_wide(table), "mean").group.tolist() == [0, 1, 1, 1, 1]


def test_the_mean_loglik_of_answers_to_come():
    """log p of each answer, on average, at the prior of the validation persons that suits them best."""
    table = np.array([[1.0, 0, 1], [0, NAN, 1], [1, 1, NAN]])
    responses = si.Responses.from_wide(table)
    beta = np.array([0.5, -0.5, 0.2])
    priors = ((-2.0, 1.0), (0.7, 1.0), (3.0, 1.0))
    logliks = []
    for mean, sd in priors:
        p = marginal_categories(Thresholds.ones(3), beta, mean, sd)
        logs = [np.log(p[i, int(x)]) for row in table for i, x in enumerate(row) if not np.isnan(x)]
        logliks.append(np.mean(logs))
    found = evaluate(beta, responses, responses, priors)
    assert found.loglik == pytest.approx(max(logliks))
    assert found.prior == priors[int(np.argmax(logliks))] == (0.7, 1.0)


def test_smiths_test_person_by_person():
    rng = np.random.default_rng(7)
    beta = np.linspace(-1.5, 1.5, 10)
    table = (rng.random((80, 10)) < 1 / (1 + np.exp(beta - rng.normal(size=(80, 1))))).astype(float)
    responses = si.Responses.from_wide(table)
    first = np.arange(10) < 5
    found = smith_test(responses, beta, first, ~first)
    columns = found.table()
    inside = []
    for side in (first, ~first):
        score = table[:, side].sum(axis=1)
        inside.append((score > 0) & (score < side.sum()))
    compared = inside[0] & inside[1]
    assert len(found.persons) == compared.sum()
    t = []
    for person in np.flatnonzero(compared):
        each = [
            abilities(si.Responses.from_wide(table[[person]][:, side]), beta[side], "wle") for side in (first, ~first)
        ]
        values = [float(one.ability[0]) for one in each]
        errors = [float(one.se[0]) for one in each]
        t.append((values[0] - values[1]) / np.hypot(*errors))
        row = len(t) - 1
        np.testing.assert_allclose([columns["ability_1"][row], columns["ability_2"][row]], values, atol=1e-6)
        np.testing.assert_allclose([columns["se_1"][row], columns["se_2"][row]], errors, atol=1e-6)
    np.testing.assert_allclose(columns["t"], t, atol=1e-6)
    assert found.n_significant == np.sum(np.abs(t) > 1.959964)
    assert found.correlation == pytest.approx(np.corrcoef(found.measures.T)[0, 1])


@pytest.mark.parametrize("n_groups", [2, calibrations.SHOWN_GROUPS, calibrations.SHOWN_GROUPS + 2])
def test_how_many_groups_are_not_shown(n_groups):
    groups = SimpleNamespace(names=[f"g{k}" for k in range(n_groups)], sizes=np.arange(n_groups) + 2, left_out=[])
    text = calibrations.GroupCalibrations.__str__(groups)
    assert text.count(" | ") == min(n_groups, calibrations.SHOWN_GROUPS) - 1
    assert (" and 2 more" in text) == (n_groups > calibrations.SHOWN_GROUPS)


@pytest.mark.parametrize("n_named", [1, 2])
def test_what_slopes_predict(n_named):
    items = {"item": np.array(["a", "b", "c"], dtype=object), "largest": np.array([0.1, 0.9, 0.5])}
    finding = dif._differences_by_slope(items, np.array([False, True, n_named > 1]))
    assert finding.items == ("b", "c")[:n_named]
    assert ("its slope predicts" in finding.sentence) == (n_named == 1)


def test_labels_with_a_comma_are_not_joined_by_commas():
    assert "`reverse='a,b'`" in reversed_items._turn_categories(np.array(["a", "b"], dtype=object))
    assert "`reverse=['a, too', 'b']`" in reversed_items._turn_categories(np.array(["a, too", "b"], dtype=object))


def test_groups_of_an_exact_test_by_labels():
    people = si.simulate.rasch(6, 4, seed=1).responses
    found = exact_tests._groups(people, ["m", "f", "f", "m", "m", "f"])
    assert found.tolist() == [False, True, True, False, False, True]


@pytest.mark.parametrize("spread", [0.0, 0.6])
def test_z_of_thresholds_has_the_excess_where_all_disagree(spread):
    """Without items that are off, of thresholds z is that about their common value, with the variance in excess."""
    rng = np.random.default_rng(3)
    item = np.repeat(np.arange(8), 2)
    se = np.full(16, 0.1)
    difference = np.where(np.arange(16) % 2, 1, -1) * rng.uniform(0.05, 0.1, 16) * (1 + 10 * spread)
    found = center_of_items(difference, JointErrors.independent(se), item, 0.05).center
    plain = robust_center(difference, JointErrors.independent(se))
    np.testing.assert_allclose(found.z, plain.z)
    assert (found.p < 0.05) == bool(spread)


def test_distances_to_cml_are_of_what_both_estimated_a_shift_apart():
    cml = np.array([0.1, 0.5, NAN, -0.6])
    found = _distances_to_cml({"a": np.array([1.1, 1.4, 3.0, 0.6]), "cml": cml, "none": np.full(4, NAN)})
    assert found["cml"] == 0
    assert found["a"] == pytest.approx(np.std([1.0, 0.9, 1.2]))
    assert np.isnan(found["none"])
    assert _distances_to_cml({"a": cml}) == {}


def test_persons_are_divided_in_shares():
    people = si.simulate.rasch(200, 5, seed=1).responses
    fitted_on = []

    class Recorded(si.SpectralRasch):
        def fit(self, responses, **options):
            fitted_on.append(responses.n_persons)
            return super().fit(responses, **options)

    (row,) = compare(people, {"one": Recorded}, holdout=0.3, seed=2)
    assert fitted_on == [126]  # nine tenths of seven tenths
    assert row.items_estimated == 5
    assert row.problem == ""
    (failed,) = compare(people, {"one": lambda: 1 / 0})
    assert "division" in failed.problem


@pytest.mark.parametrize(
    ("forms", "long", "words"),
    [
        (0, 0, "90 people answered 40 different sets of items, and no set of 5 items or more is shared by 10 people."),
        (0, 1, "1 shared set is too long for a table."),
        (1, 0, "are for the 8 of 90 people who answered all items of it; the others skipped some."),
        (3, 0, "are for the 8 of 90 people who answered all items of one of 3 forms; the others skipped some, or are"),
        (3, 2, "of one of 3 forms; 2 shared sets are too long for a table."),
    ],
)
def test_why_there_is_no_table_of_scores(forms, long, words):
    found = Forms(
        items=(np.arange(3),) * forms, form=np.full(90, -1), n_people=90, n_on_forms=8, n_sets=40, n_long=long
    )
    (finding,) = found.findings
    assert finding.code == ("few_on_forms" if forms else "no_forms")
    assert words.replace("are for", "for") in finding.sentence.replace("is for", "for").replace("are for", "for")
    assert not replace(found, n_on_forms=90).findings
    assert not replace(found, n_people=0).findings
