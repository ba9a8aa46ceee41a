"""Classical statistics of items, rest scores and slopes against loops over their definitions."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import spectral_irt as si
from dense import AWKWARD
from drawn import drawn
from spectral_irt import Responses, SpectralPartialCredit, SpectralRasch, datasets, simulate
from spectral_irt.conditional.exact_likelihood import conditional_probabilities
from spectral_irt.inference.items import rest_score as restscore
from spectral_irt.inference.items import reversed_items
from spectral_irt.inference.items.classical import ItemAnalysis, cronbach_alpha, item_analysis, item_analysis_columns
from spectral_irt.inference.items.rest_ability import AbilitySums, p_rising
from spectral_irt.inference.items.reversed_items import first_component, reversed_findings
from spectral_irt.inference.items.slopes import GroupedAnswers, score_given_number_right, slopes
from spectral_irt.model import sigmoid
from split import in_blocks


def rasch(n, m, seed, share=1.0):
    rng = np.random.default_rng(seed)
    x = drawn(rng, rng.normal(size=(n, 1)) - np.linspace(-1.5, 1.5, m))
    x[rng.random((n, m)) >= share] = np.nan
    return x


def study_of(x):
    responses = Responses.from_wide(x)
    return si.SpectralRasch().fit(responses).analyse(responses)


def correlation(pairs):
    if len(pairs) < 2:
        return np.nan
    a, b = np.array(pairs).T
    return np.corrcoef(a, b)[0, 1] if a.std() > 0 and b.std() > 0 else np.nan


def rests(X, item):
    """The answer to this item, and the share right of the person's other answers."""
    others = np.delete(X, item, axis=1)
    answered = ~np.isnan(X[:, item]) & (~np.isnan(others)).any(axis=1)
    return [(row[item], np.nanmean(rest)) for row, rest in zip(X[answered], others[answered], strict=True)]


def rest_measure(row, item, beta):
    """PROX on the other items; NaN without any."""
    others = ~np.isnan(row)
    others[item] = False
    n, right, b = others.sum(), row[others].sum(), beta[others]
    return b.mean() + np.sqrt(1 + b.var() / 2.89) * np.log((right + 0.5) / (n - right + 0.5)) if n else np.nan


def rest_abilities(X, beta, item, right):
    found = [rest_measure(row, item, beta) for row in X if row[item] == right]
    return [ability for ability in found if np.isfinite(ability)]


@pytest.mark.parametrize("case", ["awkward", "complete", "holes"])
def test_statistics_are_their_definitions(case):
    X = {"awkward": AWKWARD, "complete": rasch(80, 6, 1), "holes": rasch(120, 7, 2, share=0.6)}[case]
    beta = np.linspace(-1, 1, X.shape[1])
    beta[3] = np.inf if case == "holes" else beta[3]  # counts in the rest score, and makes nobody able
    known = np.where(np.isfinite(beta), X, np.nan)
    found = item_analysis(in_blocks(Responses.from_wide(X), 30), beta)
    for item in range(X.shape[1]):
        assert found.item_rest[item] == pytest.approx(correlation(rests(X, item)), abs=1e-12, nan_ok=True)
        for right in (0, 1):
            values = rest_abilities(known, beta, item, right)
            sums = [len(values), np.sum(values), np.sum(np.square(values))]
            np.testing.assert_allclose(np.array(found.by_category)[:, item, right], sums, atol=1e-10)


@pytest.mark.parametrize("categories", [2, 4])
def test_alpha_over_the_people_who_answered_everything(categories):
    """One rule for any number of categories; an answer that is missing leaves its person out, and no more."""
    data = simulate.partial_credit(150, 6, categories=categories, seed=3).responses
    X = data.to_dense()
    X[0, 0] = np.nan
    whole = X[1:]

    def alpha(table):
        covariance, k = np.cov(table.T), table.shape[1]
        return float(k / (k - 1) * (1 - np.trace(covariance) / covariance.sum()))

    answers = Responses.from_wide(X, ordered=categories > 2)
    assert cronbach_alpha(answers)[0] == pytest.approx(alpha(whole), abs=1e-12)
    assert cronbach_alpha(answers, np.full(150, 2.0))[0] == pytest.approx(alpha(whole), abs=1e-12)
    found = item_analysis(answers, np.zeros(answers.thresholds.n_entries)).alpha_if_deleted
    for item in range(6):
        assert found[item] == pytest.approx(alpha(np.delete(whole, item, axis=1)), abs=1e-12)
    two = Responses.from_wide(X[:, :2], ordered=categories > 2)
    assert np.isnan(item_analysis(two, np.zeros(two.thresholds.n_entries)).alpha_if_deleted).all()
    X[: len(X) // 2 + 1, 0] = np.nan  # most of them lack an answer
    assert cronbach_alpha(Responses.from_wide(X, ordered=categories > 2))[0] is None


def test_ordered_answers_by_hand():
    X = simulate.partial_credit(300, 5, categories=4, seed=2).responses.to_dense()
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    answers = Responses.from_wide(X, ordered=True)
    layout = answers.thresholds
    beta = np.linspace(-1, 1, layout.n_entries)
    beta[layout.item == 3] = np.nan  # of the rest, but not of the ability that it tells
    found = item_analysis(answers, beta)
    location, known = layout.mean(beta), np.array([0, 1, 2, 4])
    pairs, abilities = [], []
    for row in X[~np.isnan(X[:, 0])]:
        others = [k for k in range(1, 5) if not np.isnan(row[k])]
        if others:
            pairs.append((row[0], sum(row[others]) / layout.max_score[others].sum()))
        others = [k for k in others if k in known]
        if others and row[0] == 2:
            b, s, n = location[others], row[others].sum(), layout.max_score[others].sum()
            abilities.append(b.mean() + np.sqrt(1 + b.var() / 2.89) * np.log((s + 0.5) / (n - s + 0.5)))
    assert found.item_rest[0] == pytest.approx(correlation(pairs), abs=1e-12)
    n, total, _ = found.by_category
    assert n[0, 2] == len(abilities)
    assert total[0, 2] / n[0, 2] == pytest.approx(np.mean(abilities), abs=1e-12)
    assert n[3].sum() == 0


def test_discrimination_is_one_newton_step_of_the_slope():
    X = rasch(300, 10, 5, share=0.8)
    study = study_of(X)
    beta, theta = study.calibration.difficulty, study.abilities("ml").ability
    table = study.item_analysis()
    for item in range(10):
        own = ~np.isnan(X[:, item]) & (np.nanmean(X, axis=1) % 1 > 0)  # answered, and not all right or all wrong
        far = theta[own] - beta[item]
        p = sigmoid(far)
        slope = 1 + np.sum((X[own, item] - p) * far) / np.sum(p * (1 - p) * far**2)
        assert table["discrimination"][item] == pytest.approx(slope, abs=1e-9)


def test_the_table_counts_blanks_and_leaves_out_what_is_not_known():
    study = study_of(np.where(np.isnan(AWKWARD), None, AWKWARD))
    columns = study._item_analysis(discrimination=False)
    assert list(columns) == ["item", "n", "p_correct", "item_rest", "alpha_if_deleted", "omitted", "not_reached"]
    assert columns["omitted"].tolist() == [2, 1, 1, 0, 4, 5, 0]
    assert columns["not_reached"].tolist() == [0, 0, 0, 1, 2, 2, 2]
    part = study.responses.take_persons(np.arange(4))  # their blanks were not counted
    assert "omitted" not in item_analysis_columns(study.calibration, part, item_analysis(part, np.zeros(7)))


def test_welch():
    from scipy.stats import ttest_ind

    values = (np.array([3.0, 4, 5, 6, 9]), np.array([1.0, 2, 2, 4, 1, 2]))
    sums = np.array([[len(v), v.sum(), (v**2).sum()] for v in values]).T
    expected = ttest_ind(*values, equal_var=False, alternative="greater").pvalue
    assert p_rising(AbilitySums(*sums[:, ::-1])) == pytest.approx(
        expected, abs=1e-12
    )  # of two groups, a slope is a difference
    assert p_rising(AbilitySums(*sums)) == pytest.approx(1 - expected, abs=1e-12)
    assert np.isnan(p_rising(AbilitySums(*(sums - [[1, 0], [0, 0], [0, 0]]))))  # too few


def test_an_item_that_abler_people_fail_is_found_and_a_good_or_noisy_one_is_not():
    X = rasch(400, 20, 7)
    X[:, 4] = 1 - X[:, 4]
    X[:, 9] = np.random.default_rng(1).random(400) < 0.5  # noise
    study = study_of(X)
    (found,) = study._item_findings()
    assert (found.code, found.severity, found.items) == ("reversed_items", "warning", (4,))
    assert "High scorers fail 1 item: 4 (correlation with the other items -0." in found.sentence
    assert found in study.findings()


REVERSED = {
    # name: loadings, items whose answers fall with ability, and those that are named
    "the test alone": (None, (1, 4), (1, 4)),
    "the test and the other side": ((0.5, -0.4, 0.5, 0.5, 0.0, 0.6), (1, 4), (1, 4)),
    "the test, on the side of the others": ((0.5, 0.4, 0.5, -0.3, 0.6, 0.6), (1,), (3,)),
    "nobody on the other side": ((0.5, 0.4, 0.5, 0.5, 0.6, 0.6), (1,), (1,)),
    "three on the other side": ((0.5, -0.4, 0.5, -0.3, -0.5, 0.6), (), (1, 3, 4)),
    "two on the other side": ((0.5, -0.4, 0.5, -0.3, 0.5, 0.6), (), ()),
}


@pytest.mark.parametrize("name", REVERSED)
def test_items_are_reversed_by_the_test_and_by_the_side_they_are_on(name, monkeypatch):
    loading, falling, named = REVERSED[name]
    study = study_of(rasch(60, 6, 2))
    monkeypatch.setattr(
        reversed_items, "first_component", lambda responses: None if loading is None else np.array(loading)
    )
    chose = np.zeros((3, 6, 2))
    chose[0] = 50.0
    mean = np.array([[2.0, -2.0] if item in falling else [-0.5, 0.5] for item in range(6)])
    chose[1] = 50 * mean
    chose[2] = 50 * (mean**2 + 1)
    rest = np.where(np.isin(np.arange(6), named), -0.3, np.nan)
    nothing = np.full(6, np.nan)
    found = ItemAnalysis(rest, nothing, AbilitySums(*chose), nothing, nothing, nothing)
    told = reversed_findings(study.calibration, study.responses, found)
    assert [finding.items for finding in told] == ([named] if named else [])
    if not named:
        return
    half = "either half may be the reversed one" in told[0].sentence
    assert half == (loading is not None and 2 * len(named) >= sum(each != 0 for each in loading))
    # Items that go with the others are worded as they are, and those that are explained already are not named again.
    against = replace(found, item_rest=np.where(np.isin(np.arange(6), named[:1]), 0.2, rest))
    fewer = reversed_findings(study.calibration, study.responses, against)
    assert [finding.items for finding in fewer] == ([named[1:]] if named[1:] else [])
    assert not reversed_findings(study.calibration, study.responses, found, set(named))


def test_the_first_component_is_that_of_the_correlations():
    """Loadings are eigenvector times root of the eigenvalue; small ones count as none, and most are positive."""
    rng = np.random.default_rng(4)
    ability = rng.normal(size=500)
    X = drawn(rng, 2 * ability[:, None] * np.array([1, 1, 1, 1, -1, -1, 0]) - np.linspace(-1, 1, 7))
    values, vectors = np.linalg.eigh(np.corrcoef(X.T))
    expected = vectors[:, -1] * np.sqrt(values[-1])
    expected *= np.sign(expected[0])
    expected[np.abs(expected) < max(0.2, 3 / np.sqrt(500))] = 0
    assert expected[6] == 0
    np.testing.assert_allclose(first_component(Responses.from_wide(X)), expected, atol=1e-9)
    noise = (rng.random((500, 7)) < 0.5) * 1.0
    assert first_component(Responses.from_wide(noise)) is None
    X[:, :4] = np.where(rng.random((500, 4)) < 0.9, np.nan, X[:, :4])  # fewer than half of the answers
    assert first_component(Responses.from_wide(X)) is None


def test_forms_of_unlike_difficulty_turn_nothing_round():
    """The able get the hard form: their share of right answers is lower, and common items are easier for them."""
    rng = np.random.default_rng(8)
    able = np.arange(1000) % 2 == 1
    theta = np.where(able, 1.5, -1.5) + 0.3 * rng.normal(size=1000)
    beta = np.concatenate([np.full(10, -3.5), np.zeros(4), np.full(10, 3.5)])
    X = drawn(rng, theta[:, None] - beta)
    X[np.ix_(able, range(10))] = np.nan
    X[np.ix_(~able, range(14, 24))] = np.nan
    study = study_of(X)
    assert (study._classical().item_rest[10:14] < -0.1).any()  # which is why this does not decide
    assert not study._item_findings()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("turned", "noise"), [((0, 3, 4, 7, 9, 11), 0.0), ((1, 2, 5, 8, 9, 10), 0.4), ((4, 6, 7), 0.2)]
)
def test_all_reversed_items_are_named_first_and_ready_to_paste(turned, noise):
    """Half of the items reversed is the hard case: no total score says who is able."""
    rng = np.random.default_rng(len(turned))
    x = simulate.partial_credit(600, 12, categories=5, seed=12).responses.to_dense()
    x = np.where(rng.random(x.shape) < noise, rng.integers(0, 5, x.shape), x)
    x[:, turned] = 4 - x[:, turned]
    x[rng.random(x.shape) < 0.05] = np.nan
    study = SpectralPartialCredit().fit(x).analyse(x)
    codes = [one.code for one in study.findings()]
    found = study.findings()[codes.index("reversed_items")]
    rest = tuple(k for k in range(12) if k not in turned)
    named = rest if len(turned) == 6 and 0 in turned else turned  # of equal halves, not that of the first
    assert found.items == named
    assert f"`reverse='{','.join(map(str, found.items))}'`" in found.remedy
    assert ("either half may be" in found.sentence) == (len(turned) == 6)
    follow = [code for code in codes if code in ("second_dimension", "misfitting_items", "dependent_items")]
    assert follow
    assert codes.index(follow[0]) > codes.index("reversed_items")


def test_items_of_a_second_trait_that_go_with_the_others_are_not_turned_round():
    """Positive and negative affect: two traits, and every item has a positive correlation with the rest."""
    rng = np.random.default_rng(4)
    first, second = rng.normal(size=(2, 900, 1))
    logit = np.where(np.arange(16) < 10, first, second - 0.4 * first)
    x = sum(drawn(rng, 2 * logit - step) for step in (-1.0, 0.0, 1.0))
    study = SpectralPartialCredit().fit(x).analyse(x)
    rest = study._classical().item_rest
    assert (first_component(study.responses) < 0).sum() >= 3  # which alone would turn them round
    assert (rest > 0).all()
    assert "reversed_items" not in [finding.code for finding in study.findings()]


def rest_scores(table, beta):
    study = SpectralRasch(se="none").fit(Responses.from_wide(table)).calibration_
    return restscore.restscore_columns(replace(study, thresholds=beta), Responses.from_wide(table))


def gamma_of_pairs(ones, zeros):
    """ones, zeros: lists of (rest, weight)."""
    agree = sum(a * b for r, a in ones for t, b in zeros if r > t + 1e-9)
    differ = sum(a * b for r, a in ones for t, b in zeros if r < t - 1e-9)
    return (agree - differ) / (agree + differ) if agree + differ else np.nan


def test_complete_data_pair_by_pair():
    table = simulate.rasch(60, 6, seed=1).responses.to_dense()
    beta = np.linspace(-1, 1, 6)
    found = rest_scores(table, beta)
    block = Responses.from_wide(table).blocks[0]
    P = np.empty((60, 6))
    P[block.person_of_response(), block.items] = conditional_probabilities(block, beta)
    score = table.sum(axis=1)
    for item in range(6):
        for name, right in (("gamma", table[:, item]), ("gamma_expected", P[:, item])):
            expected = gamma_of_pairs(
                list(zip(score - 1, right, strict=True)), list(zip(score, 1 - right, strict=True))
            )
            np.testing.assert_allclose(found[name][item], expected)


def test_errors_of_rest_scores_are_those_of_single_answers_changed():
    """The change of gamma by a little more of one right answer, by differences of tables; what moves the difficulty
    of the item is taken off by a regression on a constant, with the variances of the answers as weights."""
    table = simulate.rasch(60, 6, seed=1).responses.to_dense()
    beta = np.linspace(-1, 1, 6)
    found = rest_scores(table, beta)
    block = Responses.from_wide(table).blocks[0]
    P = np.empty((60, 6))
    P[block.person_of_response(), block.items] = conditional_probabilities(block, beta)
    score = table.sum(axis=1)
    step = 1e-5
    for item in range(6):
        p = P[:, item]
        change = np.empty(60)
        for person in range(60):
            gammas = []
            for sign in (1, -1):
                moved = p.copy()
                moved[person] += sign * step
                right = list(zip(score - 1, moved, strict=True))
                wrong = list(zip(score, 1 - moved, strict=True))
                gammas.append(gamma_of_pairs(right, wrong))
            change[person] = (gammas[0] - gammas[1]) / (2 * step)
        variance = p * (1 - p)
        mean = np.average(change, weights=variance)
        expected = np.sqrt(variance @ (change - mean) ** 2)
        np.testing.assert_allclose(found["se"][item], expected, rtol=1e-5)


def test_awkward_data_pair_by_pair():
    beta = np.linspace(-1, 1, 7)
    found = rest_scores(AWKWARD, beta)
    gamma, n = found["gamma"], found["n"]
    for item in range(7):
        rows = [row for row in AWKWARD if not np.isnan(row[item]) and np.sum(~np.isnan(row)) > 1]
        assert n[item] == len(rows)
        rest = [(rest_measure(row, item, beta), 1.0, row[item]) for row in rows]
        expected = gamma_of_pairs([r[:2] for r in rest if r[2]], [r[:2] for r in rest if not r[2]])
        np.testing.assert_allclose(gamma[item], expected)


def test_table_and_sample_of_very_many_answers(monkeypatch):
    answers = datasets.load_lsat()
    table = SpectralRasch().fit(answers).analyse(answers).item_restscore()
    assert table.columns == ["item", "n", "gamma", "gamma_expected", "se", "z", "p"]
    assert (table["p"] > 0.05).all()  # LSAT section 6 fits
    monkeypatch.setattr(restscore, "MOST_RESPONSES", 1000)
    assert SpectralRasch().fit(answers).analyse(answers).item_restscore()["n"].max() == 200


@pytest.mark.slow
def test_level():
    z = []
    for seed in range(25):
        responses = simulate.rasch(600, 20, design="sampled", p=0.7, seed=seed).responses
        z.append(SpectralRasch(se="none").fit(responses).analyse(responses).item_restscore()["z"].to_numpy())
    z = np.concatenate(z)
    assert abs(z.mean()) < 0.15
    assert 0.02 < np.mean(np.abs(z) > 1.96) < 0.08  # of 500: a standard error of 1%


def test_moments_given_the_sum_by_enumeration():
    theta = np.array([-1.3, -0.2, 0.4, 1.9])
    n = np.array([[1.0, 1, 1, 1], [1, 0, 2, 1], [2, 2, 1, 0]])
    r = np.array([[1.0, 0, 1, 0], [0, 0, 2, 1], [1, 0, 0, 0]])
    score, variance, varies = score_given_number_right(GroupedAnswers(n, r, theta))
    apart = theta - (n.sum(axis=0) @ theta) / n.sum()
    for i in range(3):
        each = np.repeat(apart, n[i].astype(int))
        answers = np.array([x for x in product((0, 1), repeat=len(each)) if sum(x) == r[i].sum()])
        t = answers @ each
        chance = np.exp(t) / np.exp(t).sum()
        mean = chance @ t
        spread = chance @ (t - mean) ** 2
        assert score[i] == pytest.approx(r[i] @ apart - mean, abs=1e-12)
        assert variance[i] == pytest.approx(spread, rel=1e-10)
        assert varies[i] == pytest.approx(chance @ (t - mean) ** 4 / spread**2 - 1, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("models", [9, 30])
def test_one_slope_is_enough_where_it_is(models):
    """With nine models, chi-square on normal scores rejected three true models of four."""
    ratios = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        ability, difficulty = random.normal(0.8, 1, models), random.normal(0, 1.3, 300)
        right = drawn(random, ability[:, None] - difficulty)
        found = slopes(Responses.from_wide(right), -SpectralRasch(se="none").fit(right.T).difficulty_)
        ratios.append(found.chi2 / found.df)
    # twenty means of some 270 squares, each with a variance of 2 at most
    assert np.mean(ratios) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 270 / 20))
