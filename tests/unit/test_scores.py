"""Forms, tables of raw scores, and unexpected answers, against slow and obvious versions."""

import itertools
from collections import Counter

import numpy as np
import polars as pl
import pytest
from scipy.optimize import brentq

import gold
import spectral_irt as si
from spectral_irt import ConditionalRasch, Responses, SpectralRasch
from spectral_irt.analysis import Analysis
from spectral_irt.analysis.cache import columns_of
from spectral_irt.errors import OptionError
from spectral_irt.inference.scores.equating import equate_scores
from spectral_irt.persons import test_form as forms_module
from spectral_irt.persons.test_form import Form, find_forms, form_columns, percentiles


@pytest.fixture(scope="module")
def booklets():
    """Three booklets of 8 of 14 items, some people with a few answers of their own, one with none."""
    rng = np.random.default_rng(5)
    beta, theta = np.linspace(-1.5, 1.5, 14), rng.normal(size=303)
    table = (rng.random((303, 14)) < 1 / (1 + np.exp(beta - theta[:, None]))).astype(float)
    for k in range(300):
        table[k, [j for j in range(14) if not 3 * (k % 3) <= j < 3 * (k % 3) + 8]] = np.nan
    table[300:302, 5:] = np.nan
    table[302] = np.nan
    return Responses.from_wide(table, items=[f"q{j}" for j in range(14)])


def test_forms_are_the_sets_that_many_share(booklets):
    difficulty = np.zeros(14)
    difficulty[4] = np.nan  # answers to it do not count
    found = find_forms(booklets, difficulty)
    dense = booklets.to_dense()
    sets = [tuple(j for j in np.flatnonzero(~np.isnan(row)) if j != 4) for row in dense]
    shared = sorted(items for items, n in Counter(sets).items() if n >= 10 and items)
    assert [tuple(items) for items in found.items] == shared
    assert found.form.tolist() == [shared.index(one) if one in shared else -1 for one in sets]
    assert (found.n_people, found.n_sets) == (302, 4)
    assert np.bincount(found.form + 1).tolist() == [3, 100, 100, 100]
    columns = form_columns(found, booklets.items, difficulty)
    assert columns["item"].tolist() == [f"q{j}" for items in shared for j in items]


def test_what_everybody_answered_is_a_form_however_few_and_the_whole_test_comes_before_its_parts():
    for table, forms in (([[1, 0], [0, 1], [1, 1]], [[0, 1]]), ([[1, 0], [0, None], [1, 1]], [])):
        assert [items.tolist() for items in find_forms(Responses.from_wide(table), np.zeros(2)).items] == forms
    table = np.ones((45, 7))
    table[15:30, 5:] = np.nan
    table[30:, :2] = np.nan
    found = find_forms(Responses.from_wide(table), np.zeros(7))
    assert [(len(items), items[0]) for items in found.items] == [(7, 0), (5, 0), (5, 2)]


def test_many_sets_make_no_form_and_a_sentence_says_why():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 2, (300, 40)).astype(float)
    table[rng.random(table.shape) < 0.7] = np.nan
    study = SpectralRasch().fit(table).analyse(table)
    assert study.scores().shape == (0, 7)
    (finding,) = study.forms().findings
    assert finding.code == "no_forms"
    assert "300 people answered 300 different sets of items" in finding.sentence
    assert finding in study.findings(study.parts(writing=True))
    assert finding not in study.findings(study.parts())
    assert not {"scores", "forms"} & set(study.tables())


def test_who_skipped_items_is_not_in_the_table_and_a_sentence_says_so():
    rng = np.random.default_rng(4)
    table = rng.integers(0, 2, (60, 12)).astype(float)
    table[15:, :3][np.arange(45), np.arange(45) % 3] = np.nan
    (finding,) = SpectralRasch().fit(table).analyse(table).forms().findings
    sentence = "is for the 15 of 60 people who answered all items of it; the others skipped some."
    assert finding.sentence == f"The table from raw score to person measure {sentence}"


def test_forms_too_long_for_a_table_are_left_out(booklets, monkeypatch):
    monkeypatch.setattr(forms_module, "CELLS", 8 * 9)
    found = find_forms(booklets, np.zeros(14))
    assert (len(found.items), found.n_long) == (1, 2)
    assert "too long for a table" in found.findings[0].sentence
    monkeypatch.setattr(forms_module, "CELLS", 10)
    assert "There is no table" in find_forms(booklets, np.zeros(14)).findings[0].sentence


@pytest.mark.parametrize("method", ["wle", "ml", "eap"])
def test_the_table_gives_everybody_the_ability_that_they_have(booklets, method):
    study = SpectralRasch().fit(booklets).analyse(booklets, ability=method)
    table, forms, found = study.scores(), study.forms(), study.abilities()
    rows = {(form, score): row for form, score, *row in table.select("form", "score", "ability", "se").iter_rows()}
    for person in np.flatnonzero(forms.form >= 0):
        ability, se = rows[forms.names[forms.form[person]], found.score[person]]
        assert ability == pytest.approx(found.ability[person], abs=1e-6)
        assert se == pytest.approx(found.se[person], abs=1e-6)
    for k, name in enumerate(forms.names):
        mine = table.filter(pl.col("form") == name)
        scores = found.score[forms.form == k]
        assert mine["n"].to_list() == [int(np.sum(scores == s)) for s in range(9)]
        middle = [100 * (np.mean(scores < s) + np.mean(scores == s) / 2) for s in range(9)]
        np.testing.assert_allclose(mine["percentile"], middle)
    assert set(table["n_items"]) == {8}


def test_percentiles_average_fifty_and_need_people():
    n = np.array([3, 0, 5, 9, 1])
    assert n @ percentiles(n) / n.sum() == pytest.approx(50)
    assert np.isnan(percentiles(np.zeros(3, dtype=int))).all()


def test_scores_come_on_the_scale_of_report(booklets):
    study = SpectralRasch().fit(booklets).analyse(booklets)
    plain = study.scores()
    scaled = study.rescale(500, 100)
    table, scale = scaled.scores(), scaled.calibration.scale
    np.testing.assert_allclose(table["measure"], scale.mean + scale.unit * table["ability"].to_numpy())
    np.testing.assert_allclose(table["measure_se"], scale.unit * table["se"].to_numpy())
    assert "measure" not in plain.columns
    assert "measure" not in study.scores().columns


@pytest.mark.parametrize("name", ["lsat6", "test15", "booklets24"])
def test_maximum_likelihood_by_score_is_that_of_erm(name):
    """eRm's table for each booklet; its extreme scores are extrapolated, and its optimizer stops 1e-5 away."""
    answers, theirs = gold.answers(name), gold.table(f"{name}_erm_score_theta")
    study = ConditionalRasch(se="none").fit(answers).analyse(answers, ability="ml")
    table = study.scores().filter(pl.col("ability").is_finite())
    lengths = [len(items) for items in study.forms().items]
    # Its groups of missing answers are in an order of its own: the tables are compared as sets of tables.
    ours = sorted(tuple(part["ability"].round(3)) for _, part in table.group_by("form", maintain_order=True))
    inner = theirs.filter(pl.col("raw_score").is_between(1, lengths[0] - 1)).sort("na_group", "raw_score")
    erm = sorted(tuple(part["theta"].round(3)) for _, part in inner.group_by("na_group", maintain_order=True))
    assert len(ours) == len(erm) == len(lengths)
    for mine, other in zip(ours, erm, strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=1.1e-3)


@pytest.fixture(scope="module")
def careless():
    """People who follow the model, and five who know the hard items only."""
    rng = np.random.default_rng(2)
    beta, theta = np.linspace(-2.5, 2.5, 16), rng.normal(size=200)
    table = (rng.random((200, 16)) < 1 / (1 + np.exp(beta - theta[:, None]))).astype(float)
    table[rng.random(table.shape) < 0.05] = np.nan
    table[:5] = np.r_[np.zeros(8), np.ones(8)]
    answers = Responses.from_wide(table, items=[f"q{j}" for j in range(16)])
    return table, SpectralRasch().fit(answers).analyse(answers)


def test_unexpected_answers_are_those_of_the_worst_people(careless):
    dense, study = careless
    found = study.unexpected_answers()
    theta, beta = study.abilities().ability, study.calibration.difficulty
    p = 1 / (1 + np.exp(beta - theta[:, None]))
    z = (dense - p) / np.sqrt(p * (1 - p))
    fits = study._person_fit("wle")
    worst = np.fmax(fits.infit_z, fits.outfit_z)
    expected = []
    for person in sorted(np.flatnonzero(worst > 2), key=lambda k: -worst[k]):
        order = np.argsort(-np.nan_to_num(np.abs(z[person])), kind="stable")[:3]
        expected += [(person, f"q{j}", z[person, j]) for j in order if abs(z[person, j]) > 1]
    assert set(found["person"][:15]) == {0, 1, 2, 3, 4}
    ours = list(zip(found["person"], found["item"], found["z"], strict=True))
    assert sorted((a, b) for a, b, _ in ours) == sorted((a, b) for a, b, _ in expected)
    np.testing.assert_allclose(sorted(c for *_, c in ours), sorted(c for *_, c in expected))
    assert (np.diff(found["misfit_z"]) <= 1e-12).all()
    np.testing.assert_allclose(found["expected"], 1 / (1 + np.exp(found["difficulty"] - found["ability"])))
    assert ((found["response"].to_numpy() == 1) == (found["z"].to_numpy() > 0)).all()


def test_unexpected_answers_are_bounded_and_can_be_asked_for(careless):
    _, study = careless
    assert len(study.unexpected_answers(limit=4)) == 4
    assert study.unexpected_answers(per_person=1)["person"].is_unique().all()
    asked = study.unexpected_answers([9, 0], per_person=2)
    assert asked["person"].unique(maintain_order=True).to_list() in ([9, 0], [0])
    with pytest.raises(OptionError, match="unknown people 'nobody'"):
        study.unexpected_answers(["nobody"])


def test_extreme_scores_surprise_nobody():
    answers = Responses.from_wide([[1, 1, 1], [0, 0, 0], [1, 0, 1], [0, 1, 1]])
    study = SpectralRasch().fit(answers).analyse(answers, ability="ml")
    assert len(study.unexpected_answers([0, 1])) == 0
    assert study.unexpected_answers([0, 1]).columns[:3] == ["person", "misfit_z", "item"]


COUNTS, OTHERS = np.array([2, 3, 1]), np.array([1, 2, 4])
RNG = np.random.default_rng(1)
BETA, GAMMA = RNG.normal(size=6), RNG.normal(size=7)


def category_chances(counts, beta, theta):
    found, first = [], 0
    for n in counts.tolist():
        weight = np.exp(np.append(0.0, np.cumsum(theta - beta[first : first + n])))
        found.append(weight / weight.sum())
        first += n
    return found


def expected(counts, beta, theta):
    return sum(float(p @ np.arange(len(p))) for p in category_chances(counts, beta, theta))


@pytest.fixture(scope="module")
def study():
    answers = si.simulate.partial_credit(400, 6, categories=[2, 3, 4, 3, 2, 5], seed=3, ability_sd=1.3).responses
    return si.SpectralPartialCredit().fit(answers).analyse(answers, population=(0.2, 1.3))


def test_chances_of_scores_are_sums_over_all_answers():
    theta = np.array([-1.0, 0.3, 2.0])
    slow = np.zeros((3, 7))
    for q, at in enumerate(theta.tolist()):
        p = category_chances(COUNTS, BETA, at)
        for answers in itertools.product(*(range(n + 1) for n in COUNTS.tolist())):
            slow[q, sum(answers)] += np.prod([p[i][x] for i, x in enumerate(answers)])
    assert np.allclose(Form.of(BETA, COUNTS).chances(theta), slow, atol=1e-12)


def test_plausible_values_are_draws_from_the_posterior(study):
    draws = 1000
    found = study.plausible_values(draws, seed=1)
    eap = study.abilities("eap")
    z = (found.values.mean(axis=1) - eap.ability) / (eap.se / np.sqrt(draws))
    assert abs(z.mean()) < 4 / np.sqrt(len(z))
    assert z.std() == pytest.approx(1, abs=4 / np.sqrt(2 * len(z)))
    assert np.mean(found.values.std(axis=1) / eap.se) == pytest.approx(1, abs=0.01)
    table = study.persons("pv", draws=2)
    assert table.columns[-2:] == ["pv1", "pv2"]
    assert np.array_equal(table["pv1"].to_numpy(), study.plausible_values(2).values[:, 0])


def test_scores_have_the_abilities_of_people(study):
    table, people = columns_of(study.scores), columns_of(study.persons)
    assert table["score"].tolist() == list(range(14))
    assert np.allclose(table["ability"][people["score"]], people["ability"])
    assert table["n"].sum() == 400
    for cut, raw, message in ((14, True, "from 1 to 13"), (40, False, "the lowest score")):
        with pytest.raises(OptionError, match=message):
            study.cuts([cut], raw=raw)


@pytest.mark.slow
def test_accuracy_and_consistency_are_those_of_people_tested_twice():
    seen, said = [], []
    for seed in range(12):
        data = si.simulate.partial_credit(1000, 10, categories=4, seed=seed)
        study = si.SpectralPartialCredit().fit(data.responses).analyse(data.responses)
        columns = columns_of(study.cuts, [0.3])
        said.append((columns["accuracy"][-1], columns["consistency"][-1]))
        again = si.simulate.partial_credit(
            1000, thresholds=list(data.thresholds.reshape(10, 3)), ability=data.ability, seed=100 + seed
        )
        passed = [s.abilities().ability >= 0.3 for s in (study, Analysis(study.calibration, again.responses))]
        seen.append((np.mean(passed[0] == (data.ability >= 0.3)), np.mean(passed[0] == passed[1])))
    away = np.array(seen) - np.array(said)
    assert np.all(np.abs(away.mean(axis=0)) < 4 * away.std(axis=0) / np.sqrt(12))


def test_equated_scores_and_their_derivatives_against_a_search():
    found = equate_scores(Form.of(BETA, COUNTS), Form.of(GAMMA, OTHERS), 0.2, 1.1)

    def slow(beta, gamma, score):
        theta = brentq(lambda at: expected(COUNTS, beta, at) - score, -30, 30, xtol=1e-13)
        return expected(OTHERS, gamma, 0.2 + 1.1 * theta)

    inner, h = range(1, 6), 1e-5
    assert np.allclose(found.equated[1:-1], [slow(BETA, GAMMA, s) for s in inner], atol=1e-9)
    assert found.equated[[0, -1]].tolist() == [0, 7]
    for k, move in enumerate(h * np.eye(6)):
        both = [(slow(BETA + move, GAMMA, s) - slow(BETA - move, GAMMA, s)) / (2 * h) for s in inner]
        assert np.allclose(found.by_first[1:-1, k], both, atol=1e-5)
    for k, move in enumerate(h * np.eye(7)):
        both = [(slow(BETA, GAMMA + move, s) - slow(BETA, GAMMA - move, s)) / (2 * h) for s in inner]
        assert np.allclose(found.by_second[1:-1, k], both, atol=1e-5)


def test_forms_of_one_analysis_are_equated(study):
    found = study.equate([0, 1, 2], [3, 4, 5])
    assert [len(scores) for scores in found.scores] == [7, 8]
    there = np.interp(found.equated[0], found.scores[1], found.equated[1])  # and back, between whole scores
    assert np.allclose(there[1:-1], found.scores[0][1:-1], atol=0.1)
    assert np.all(found.se[0][1:-1] > 0)


def test_errors_of_forms_of_one_analysis_have_the_whole_covariance_of_its_thresholds(study):
    """Delta method: thresholds of one item, and of both forms, do not err independently."""
    layout = study.responses.thresholds
    covariance = study.threshold_covariance()
    beta = study.calibration.thresholds
    place = [layout.of_items(np.array(items)) for items in ([0, 1, 2], [3, 4, 5])]
    counts = [layout.max_score[items] for items in ([0, 1, 2], [3, 4, 5])]
    curve = equate_scores(*(Form.of(beta[at], k) for at, k in zip(place, counts, strict=True)))
    slopes = np.hstack([curve.by_first, curve.by_second])[1:-1]
    both = np.concatenate(place)
    expected = np.sqrt(np.diag(slopes @ covariance[np.ix_(both, both)] @ slopes.T))
    found = study.equate([0, 1, 2], [3, 4, 5]).se[0][1:-1]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    independent = np.sqrt(slopes**2 @ np.diag(covariance)[both])
    assert np.median(independent / expected) > 1.1


@pytest.mark.slow
def test_standard_errors_of_equated_scores_cover():
    """Two samples of people take two forms with three items in common; equated scores against those of the truth."""
    rng = np.random.default_rng(7)
    thresholds = [rng.normal() + np.array([-0.5, 0.5]) for _ in range(13)]
    a, b = list(range(8)), list(range(5, 13))
    one, other = (np.concatenate([thresholds[k] for k in form]) for form in (a, b))
    counts = np.full(8, 2)
    truth = equate_scores(Form.of(one, counts), Form.of(other, counts)).equated[1:-1]
    inside = []
    for seed in range(40):
        fits = []
        for form, start in ((a, 0), (b, 1000)):
            drawn = si.simulate.partial_credit(400, thresholds=[thresholds[k] for k in form], seed=seed + start)
            dense = drawn.responses.to_dense()
            labeled = si.Responses.from_wide(dense, items=[f"q{k}" for k in form], ordered=True)
            fits.append(si.SpectralPartialCredit(regularization=0).fit(labeled))
        found = si.equate(*fits)
        inside.append(np.abs(found.equated[0][1:-1] - truth) < 1.96 * found.se[0][1:-1])
    assert 0.88 < np.mean(inside) <= 1
