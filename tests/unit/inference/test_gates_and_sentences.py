"""Limits from which something is said, on either side of each; and numbers in sentences, from records made by hand."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.special

import spectral_irt as si
from spectral_irt.estimators import linear_fit
from spectral_irt.inference import interactions, results
from spectral_irt.inference.fit import checks, item_fit, person_fit
from spectral_irt.inference.fit.checks import Checks
from spectral_irt.inference.fit.person_fit import MisfitCount, PersonMisfit, misfit_sentence, person_misfit
from spectral_irt.inference.groups import dif, score_test, slope_shifts
from spectral_irt.inference.groups.grouping import Split, mean_sentences, without_tests_across_subsets
from spectral_irt.inference.items.reversed_items import first_component, reversed_items
from spectral_irt.inference.items.slopes import Slopes
from spectral_irt.inference.ranks import intervals
from spectral_irt.inference.scores.reliability import Reliability, Separation, separation

NONE = Separation(0, *[float("nan")] * 7)


def a_reliability(**change):
    persons = Separation(90, 0.1, 1.2, 0.6, 1.04, 1.73, 2.6, 0.75)
    made = Reliability(
        eap_reliability=0.8,
        eap_people=100,
        population_mean=0.0,
        population_sd=1.1,
        kr20=0.78,
        persons=persons,
        persons_real=persons,
        persons_with_extremes=replace(persons, sd=1.3, reliability=0.72),
        items=NONE,
        items_real=NONE,
        sep_rel=0.75,
        n_persons=100,
        n_lowest=4,
        n_highest=0,
        targeting=0.2,
        form_correlation=0.5,
        method="wle",
        same_items=0.9,
    )
    return replace(made, **change)


def test_the_reliability_among_persons_with_the_same_items():
    within = 1.1**2 - 0.5**2 * 1.3**2
    errors = 1.1**2 * 0.2 / 0.8
    assert a_reliability().within_forms == pytest.approx(within / (within + errors))
    assert a_reliability(form_correlation=0.9).within_forms == 0.0  # more than all of the variance
    for gap in ({"form_correlation": None}, {"eap_reliability": None}, {"population_sd": None}, {"same_items": None}):
        assert a_reliability(**gap).within_forms is None
    assert a_reliability(same_items=0.1).within_forms is None
    assert a_reliability(eap_reliability=1.0).within_forms is None


def test_what_is_said_of_reliability():
    text = a_reliability().text()
    assert text.startswith("EAP reliability 0.80, KR-20 0.78; WLE separation reliability 0.75 without extreme scores, ")
    assert "0.72 with them" in text
    assert "high scorers met harder items (r = 0.50): about" in text
    assert "high scorers" not in a_reliability(form_correlation=0.1).text()
    assert "high scorers" not in a_reliability(n_persons=5).text()
    assert "about" not in a_reliability(same_items=0.0).text()
    assert "separation" not in a_reliability(method="eap").text()
    assert "with them" not in a_reliability(method="ml").text()
    assert a_reliability().extremes() == "4 extreme scores (floor 4%)"
    assert a_reliability(n_lowest=0, n_highest=1).extremes() == "1 extreme score (ceiling 1%)"


@pytest.mark.parametrize("weighted", [False, True])
def test_separation_by_its_formulas(weighted):
    measure = np.array([0.5, -1.0, 2.0, np.inf, 0.3, 1.0])
    se = np.array([0.4, 0.5, 0.6, 0.3, np.nan, 0.5])
    weights = np.array([1.0, 2.0, 0.5, 9.0, 9.0, 1.5]) if weighted else np.ones(6)
    kept = [0, 1, 2, 5]
    x = measure[kept]
    w = weights[kept]
    found = separation(measure, se, weights if weighted else None)
    mean = np.sum(w * x) / np.sum(w)
    variance = found.sd**2
    if not weighted:
        assert variance == pytest.approx(np.sum((x - mean) ** 2) / 3)
    error = np.sum(w * se[kept] ** 2) / np.sum(w)
    assert (found.n, found.mean) == (4, pytest.approx(mean))
    assert found.rmse == pytest.approx(np.sqrt(error))
    assert found.true_sd == pytest.approx(np.sqrt(variance - error))
    assert found.separation == pytest.approx(np.sqrt((variance - error) / error))
    assert found.strata == pytest.approx((4 * found.separation + 1) / 3)
    assert found.reliability == pytest.approx(1 - error / variance)


MISFIT = PersonMisfit(n_people=200, share=0.05, chance=0.02, p=0.001)


def test_what_is_said_of_persons_who_misfit():
    assert misfit_sentence(MISFIT).startswith("10 of 200 persons misfit (4 expected; p")
    assert "not significant" not in misfit_sentence(MISFIT)
    assert "not significant" in misfit_sentence(replace(MISFIT, p=0.2))
    assert "(0.4 expected; " in misfit_sentence(replace(MISFIT, chance=0.002))
    assert "(0 expected; " in misfit_sentence(replace(MISFIT, chance=0.0))
    assert "(1 expected; " in misfit_sentence(replace(MISFIT, chance=0.005))
    assert person_fit._erratic_people(MISFIT).severity == "warning"
    assert person_fit._erratic_people(replace(MISFIT, chance=0.031)).severity == "note"
    assert "5.0% of 200 people" in person_fit._erratic_people(MISFIT).sentence
    assert "expected are 2.0%" in person_fit._erratic_people(MISFIT).sentence


@pytest.mark.parametrize(("misfitting", "drawn"), [(12, 4), (3, 12), (0, 5)])
def test_the_chance_of_so_many_who_misfit(monkeypatch, misfitting, drawn):
    """Of all who misfit, seen or drawn, each is one of those seen with the share that these have of the persons."""
    answers = si.simulate.rasch(150, 10, seed=1).responses
    n = int(answers.informative.sum())
    monkeypatch.setattr(MisfitCount, "of", classmethod(lambda cls, fit: cls(misfitting, n)))
    monkeypatch.setattr(person_fit, "_count_under_the_model", lambda *given: MisfitCount(drawn, 4 * n))
    found = person_misfit(answers, np.linspace(-1, 1, 10))
    share = n / (5 * n)
    total = misfitting + drawn
    ways = [scipy.special.comb(total, k) * share**k * (1 - share) ** (total - k) for k in range(total + 1)]
    assert found.p == pytest.approx(sum(ways[misfitting:]))
    assert (found.share, found.chance) == (misfitting / n, drawn / (4 * n))
    assert len(found.findings) == (found.p < person_fit.EACH)


def the_checks(infit, limits, *, misfit_p=None, draws=0, n=None, **others):
    columns = {
        "item": np.arange(len(infit)),
        "n": np.full(len(infit), 80) if n is None else np.array(n),
        "infit_conditional": np.array(infit, dtype=float),
        "misfit_p": np.ones(len(infit)) if misfit_p is None else np.array(misfit_p),
        "infit_conditional_low": np.full(len(infit), 0.9),
        "infit_conditional_high": np.full(len(infit), 1.1),
    }
    fields = {"halves": None, "shared": None, "people": None, "findings": (), **others}
    return Checks(columns=columns, limits=np.array(limits), critical=draws, **fields)


def numbers_after(sentence, text):
    return re.findall(r"\d+(?:\.\d+)?", sentence.split(text, 1)[1])


def test_what_is_said_of_the_fit_of_items():
    few = the_checks([1.02, 0.97, 1.05], [0.1, 0.1, 0.1])._items_sentence()
    assert few == "no misfit of items seen (conditional infit 0.97 to 1.05)"
    some = the_checks([1.02, 0.97, 1.05], [0.1, 2.0, 0.1])._items_sentence()
    assert "; 1 of 3 have too few answers to tell)" in some
    most = the_checks([1.02, 0.97, 1.05], [2.0, 2.0, 0.1], n=[30, 40, 500])._items_sentence()
    assert most == "with 35 answers per item, misfit could not be seen"
    assert the_checks([np.nan, 1.0], [0.1, np.nan])._items_sentence() == "no item has answers that could misfit"
    one = the_checks([1.02, 0.97, 1.05], [0.1] * 3, misfit_p=[1e-4, 0.5, 0.5])._items_sentence()
    assert numbers_after(one, "1.05") == ["1", "1", "0.1"]  # one item that is off 1, by less than .1
    two = the_checks([1.02, 0.97, 1.3], [0.1] * 3, misfit_p=[1e-4, 1e-4, 1e-4])._items_sentence()
    assert numbers_after(two, "1.30")[0] == "2"
    outside = the_checks([1.2, 0.97, 0.85, 1.0, np.nan], [0.1] * 5, draws=100)._items_sentence()
    assert numbers_after(outside, "1.20") == ["2", "95", "0.2"]  # .05 times 4
    warned = (si.Finding("misfitting_items", "warning", "2 items misfit.", ""),)
    assert the_checks([1.0], [0.1], findings=warned)._items_sentence() == "2 items misfit"
    other = (si.Finding("multidimensional", "warning", "Two dimensions.", ""),)
    assert "no misfit of single items seen" in the_checks([1.0], [0.1], findings=other)._items_sentence()


@pytest.mark.parametrize(("p", "words"), [(0.2, "no difference between low and high"), (0.001, "by 0.25 logits, p")])
def test_what_is_said_of_halves(p, words):
    halves = SimpleNamespace(p=p, spread=0.25)
    (sentence,) = the_checks([1.0], [0.1], halves=halves)._halves_sentences()
    assert words in sentence


def test_items_that_differ_between_the_halves_are_named():
    """Those significant after Holm, the clearest first; a warning from .3 logits on."""
    labels = np.array(["a", "b", "c", "d"])
    z = np.array([3.0, 0.5, -4.0, 1.0])
    p = 2 * scipy.special.ndtr(-np.abs(z))
    found = score_test._unequal_halves(0.001, score_test._ItemDifferences(z, 0.31), p, labels)
    assert (found.severity, found.items) == ("warning", ("a", "c"))
    assert found.sentence.index("c") > 0
    assert "above all c, a" in found.sentence.replace("'", "")
    assert score_test._unequal_halves(0.001, score_test._ItemDifferences(z, 0.29), p, labels).severity == "note"
    none = score_test._unequal_halves(0.001, score_test._ItemDifferences(z / 3, 0.3), np.ones(4), labels)
    assert (none.severity, none.items) == ("warning", ())
    assert "above all" not in none.sentence


def means(p, difference, n_groups=2):
    columns = {
        "grouping": np.repeat("sex", n_groups + 1),
        "group": np.array([f"g{k}" for k in range(n_groups)] + ["(no label)"], dtype=object),
        "equal_means_p": np.append(np.full(n_groups, p), np.nan),
        "difference": np.append([np.nan, *difference], np.nan),
        "difference_se": np.append([np.nan, *np.full(n_groups - 1, 0.125)], np.nan),
    }
    return mean_sentences(columns)


def test_whether_means_differ():
    assert means(0.049, [0.5])[0].startswith("sex: means differ significantly at 5% (p = ")
    assert means(0.051, [0.5])[0].startswith("sex: means do not differ significantly at 5% (p = ")
    assert means(0.01, [-0.5])[0].endswith("; g1 less g0: -0.50, se 0.12.")
    assert "less" not in means(0.01, [0.5, 0.2], n_groups=3)[0]


def test_means_of_groups_in_unlinked_subsets_are_not_compared():
    """Groups that have no subset in common; the one sentence says so, and nothing of groups spread over all."""
    table = {
        "grouping": np.repeat("class", 3),
        "group": np.array(["A", "B", "C"], dtype=object),
        "n": np.full(3, 2),
        "difference": np.array([np.nan, 0.1, 0.2]),
        "difference_se": np.array([np.nan, 0.1, 0.1]),
        "difference_p": np.array([np.nan, 0.5, 0.04]),
        "equal_means_p": np.full(3, 0.03),
    }
    split = Split(("A", "B", "C"), np.array([0, 0, 1, 1, 2, 2, -1]))
    apart = without_tests_across_subsets(table, split, np.array([1, 2, 2, 2, 3, 0, 3]))
    np.testing.assert_array_equal(apart["difference"], [np.nan, 0.1, np.nan])
    np.testing.assert_array_equal(apart["difference_p"], [np.nan, 0.5, np.nan])
    assert np.isnan(apart["equal_means_p"]).all()
    (sentence,) = mean_sentences(apart, linked=False)
    assert sentence == "class: means cannot be compared: nothing links the subsets of these groups."
    spread = without_tests_across_subsets(table, split, np.array([1, 2, 2, 1, 1, 2, 3]))
    np.testing.assert_array_equal(spread["equal_means_p"], table["equal_means_p"])
    (sentence,) = mean_sentences(spread, linked=False)
    assert "they compare only groups spread evenly over all." in sentence


def some_slopes(p):
    return Slopes(
        slope=np.array([0.5, 1.0, -0.2, np.nan, 1.4]),
        se=np.full(5, 0.2),
        intercept=np.zeros(5),
        z=np.zeros(5),
        negative=np.array([False, False, True, False, False]),
        chi2=12.0,
        df=3,
        p=p,
        spread=0.4,
    )


def test_what_is_said_of_slopes():
    text = some_slopes(0.001).sentence
    assert "a standard deviation of 0.40 around 0.75 (" in text
    assert "25.0% are estimated below zero, 1 of 4 prompts significantly so" in text
    assert "is not enough" in text
    assert "One slope for all is enough" in some_slopes(0.2).sentence


class AnsweredAlike(SimpleNamespace):
    """What `reversed_items` asks of an analysis of items: chance of a rise, by a made-up table, and correlations."""


@pytest.mark.parametrize(
    ("p_rising", "loading", "item_rest", "named"),
    [
        ([0.9, 0.9, 0.9, 0.9], None, [0.3, 0.3, 0.3, -0.1], []),
        ([0.9, 0.9, 0.9, 1 - 1e-9], None, [0.3, 0.3, 0.3, -0.3], [3]),
        ([0.9, 0.9, 0.9, 1 - 1e-9], None, [0.3, 0.3, 0.3, 0.3], []),  # it goes with the others
        ([0.9, 0.9, 0.9, 0.9], [0.5, 0.5, 0.5, -0.5], [0.3, 0.3, 0.3, -0.3], []),  # one on the other side: an accident
        ([0.9, 0.9, 0.9, 0.9], [0.5, -0.5, -0.5, -0.5], [0.3, -0.3, -0.3, -0.3], [1, 2, 3]),  # three are not
        ([0.9, 0.9, 1 - 1e-9, 0.9], [0.5, 0.5, 0.0, -0.5], [0.3, 0.3, -0.3, -0.3], [2, 3]),
        ([0.9, 0.9, 1 - 1e-9, 0.9], [0.5, 0.5, 0.5, 0.5], [0.3, 0.3, -0.3, -0.3], [2]),  # the component names nobody
    ],
)
def test_items_that_higher_persons_answer_lower(monkeypatch, p_rising, loading, item_rest, named):
    module = "spectral_irt.inference.items.reversed_items"
    monkeypatch.setattr(f"{module}.p_rising", lambda by_category: np.array(p_rising))
    analysis = AnsweredAlike(by_category=None, item_rest=np.array(item_rest))
    found = reversed_items(analysis, None if loading is None else np.array(loading))
    assert np.flatnonzero(found).tolist() == named


def test_the_first_component_is_that_of_the_correlations():
    rng = np.random.default_rng(4)
    theta = rng.normal(size=(300, 1))
    sign = np.array([1, 1, 1, 1, -1, 1, -1, 1])
    x = (rng.random((300, 8)) < 1 / (1 + np.exp(-1.8 * theta * sign))).astype(float)
    values, vectors = np.linalg.eigh(np.corrcoef(x.T))
    expected = vectors[:, -1] * np.sqrt(values[-1])
    expected *= np.sign(expected.sum())
    found = first_component(si.Responses.from_wide(x))
    np.testing.assert_allclose(found, np.where(np.abs(expected) < 0.2, 0.0, expected), atol=1e-10)
    assert (found[[4, 6]] < 0).all()
    noise = (rng.random((300, 8)) < 0.5).astype(float)
    assert first_component(si.Responses.from_wide(noise)) is None
    x[:, 1:] = np.where(rng.random((300, 7)) < 0.6, np.nan, x[:, 1:])
    assert first_component(si.Responses.from_wide(x)) is None  # many are missing
    even = np.where(np.arange(8) < 4, 1, -1)
    halves = (rng.random((300, 8)) < 1 / (1 + np.exp(-2.5 * theta * even))).astype(float)
    assert first_component(si.Responses.from_wide(halves))[0] > 0  # of two halves the first item is on the upper side


@pytest.mark.parametrize("dependent", [False, True])
def test_the_order_of_pairs_by_loops(monkeypatch, dependent):
    """T over the pairs that are not farther apart, and over all pairs where they are many."""
    rng = np.random.default_rng(6)
    beta = rng.normal(size=6)
    se = rng.uniform(0.2, 0.5, 6)
    covariance = None
    width = np.sqrt(se[:, None] ** 2 + se**2)
    if dependent:
        root = rng.normal(size=(6, 6)) * 0.2 + np.diag(se)
        covariance = root @ root.T
        se = np.sqrt(np.diag(covariance))
        width = np.sqrt(np.maximum(se[:, None] ** 2 + se**2 - 2 * covariance, 0))
    tests = intervals.order_p(beta, se, covariance=covariance, rng=np.random.default_rng(0))
    errors = np.random.default_rng(0).standard_normal((intervals.DRAWS, 6))
    errors = errors * se if covariance is None else errors @ intervals.square_root(covariance).T
    first, second = np.triu_indices(6, 1)
    z = (beta[first] - beta[second]) / width[first, second]
    np.testing.assert_allclose(tests.z[first, second], z)
    size = np.abs(errors[:, first] - errors[:, second]) / width[first, second]
    p = np.zeros(len(z))
    last = 0.0
    for pair in np.argsort(-np.abs(z)):
        others = np.abs(z) <= np.abs(z[pair])
        last = max(last, (1 + np.sum(size[:, others].max(axis=1) >= np.abs(z[pair]))) / (intervals.DRAWS + 1))
        p[pair] = last
    np.testing.assert_allclose(tests.p[first, second], p)
    np.testing.assert_allclose(tests.p[second, first], p)
    monkeypatch.setattr(intervals, "STEP_DOWN", 5)
    one_step = intervals.order_p(beta, se, covariance=covariance, rng=np.random.default_rng(0))
    largest = size.max(axis=1)
    expected = [(1 + np.sum(largest >= abs(one))) / (intervals.DRAWS + 1) for one in z]
    np.testing.assert_allclose(one_step.p[first, second], expected)
    np.testing.assert_array_equal(np.diag(one_step.p), 1)


@pytest.mark.parametrize("farthest", [2, 3, 50])
def test_the_largest_error_of_a_draw_is_that_of_all_pairs(monkeypatch, farthest):
    monkeypatch.setattr(intervals, "FARTHEST", farthest)
    rng = np.random.default_rng(1)
    se = rng.uniform(0.1, 1, 40)
    width = np.sqrt(se[:, None] ** 2 + se**2)
    for _ in range(20):
        error = rng.normal(size=40) * se
        every = max(abs(error[i] - error[j]) / width[i, j] for i in range(40) for j in range(i))
        assert intervals._largest_error(error, se, width, 1.0) == pytest.approx(every)


@pytest.mark.parametrize("many", [False, True])
def test_ranks_of_persons(monkeypatch, many):
    ability = np.array([2.0, -1.0, 0.0, np.nan, 2.0, 5.0, 0.5])
    se = np.array([0.3, 0.3, 0.3, 0.3, 0.3, np.nan, 0.3])
    if many:
        monkeypatch.setattr(intervals, "MOST_PERSONS", 4)
    found = intervals.person_ranks(ability, se)
    assert found["rank"].tolist() == [1, 5, 4, 0, 1, 0, 3]
    np.testing.assert_allclose(found["ci_low"][0], 2 - 1.959964 * 0.3, atol=1e-6)
    np.testing.assert_allclose(found["ci_high"][0], 2 + 1.959964 * 0.3, atol=1e-6)
    assert found["rank_low"][[3, 5]].tolist() == found["rank_high"][[3, 5]].tolist() == [0, 0]
    if many:  # each interval at .95^(1/5)
        reach = scipy.special.ndtri((1 + 0.95 ** (1 / 5)) / 2) * 0.3
        known = np.flatnonzero(found["rank"] > 0)
        for k in known:
            above = sum(ability[j] - reach > ability[k] + reach for j in known)
            below = sum(ability[j] + reach < ability[k] - reach for j in known)
            assert (found["rank_low"][k], found["rank_high"][k]) == (1 + above, 5 - below)


@pytest.mark.parametrize(
    ("factor", "said"),
    [((1.0, 0.9995), ""), ((1.0, 0.998), "offsets"), ((0.95, 1.002), "locations of items times 0.950")],
)
def test_a_correction_is_said_from_a_thousandth_on(factor, said):
    x = si.simulate.partial_credit(60, 4, categories=3, seed=1).responses
    result = si.SpectralRatingScale()
    items, design = result._estimable(x)
    found = linear_fit.design_fit(items.responses, design, regularization=0, se="none")
    finding = replace(found, factor=np.array(factor))._correction()
    assert len(finding) == bool(said)
    if said:
        assert said in finding[0].sentence


@pytest.mark.parametrize(("p", "codes"), [(0.049, ["covariates_incomplete"]), (0.05, []), (None, [])])
def test_properties_that_do_not_explain_everything(p, codes):
    explained = linear_fit.Explained({}, 6, -10.0, -8.0, 3, 0.7, 4.0, p)
    assert [finding.code for finding in explained.findings] == codes


def test_the_infit_that_would_be_found():
    """The quantile of the level, Bonferroni, two-sided, and that of the power, in standard errors."""
    se = np.array([0.1, np.nan, 0.2, 0.05])
    reach = scipy.special.ndtri(1 - item_fit.EACH / 6) + scipy.special.ndtri(0.8)
    np.testing.assert_allclose(item_fit.detectable(se), reach * se)


def test_items_that_misfit():
    p = np.array([1e-6, 1e-6, 1e-6, 0.5, 1e-6])
    infit = np.array([1.3, 0.8, 1.09, 1.4, 1.1])
    found = item_fit.verdict(p, infit - 1, infit)
    assert found["misfit"].tolist() == ["underfit", "overfit", "", "", "underfit"]
    columns = {
        "item": np.array(["a", "b", "c", "d", "e"], dtype=object),
        "misfit": found["misfit"],
        "infit_conditional_z": np.array([4.0, -5.0, 1.0, 1.0, 6.0]),
        "infit_conditional": np.append(infit[:4], np.nan),
    }
    finding = item_fit.misfit_finding(columns)
    assert finding.sentence.replace("'", "").startswith("3 of 4 items misfit beyond chance: underfit e, a; overfit b.")
    assert finding.items == ("a", "b", "e")
    one = item_fit.misfit_finding({**columns, "misfit": np.array(["underfit", "", "", "", ""], dtype=object)}, 500)
    assert one.sentence.startswith(
        "1 of 4 items misfits beyond chance (500 data sets drawn given the scores, adjusted for asking"
    )


def test_items_of_which_misfit_could_not_be_seen():
    columns = {"item": np.array(list("abcd"), dtype=object), "n": np.array([50, 70, 400, 60])}
    limits = np.array([0.8, 0.6, 0.1, np.nan])
    finding = checks.not_visible(columns, limits, np.array([0, 1]))
    assert finding.sentence == (
        "With 60 answers per item, misfit of 2 of 3 items could not be seen: only an infit beyond 1.7 (1 fits the "
        "model) would be found."
    )
    needed = np.median([50 * (0.8 / checks.WANTED) ** 2, 70 * (0.6 / checks.WANTED) ** 2])
    assert f"About {float(f'{needed:.1g}'):,.0f} answers per item" in finding.remedy
    every = checks.not_visible(columns, np.array([0.8, 0.6, np.nan, np.nan]), np.array([0, 1]))
    assert "misfit could not be seen" in every.sentence


@pytest.mark.parametrize(("n_differ", "said"), [(0, False), (4, False), (5, True)])
def test_too_many_items_that_differ_between_groups(n_differ, said):
    items = {"item": np.arange(10), "flagged": np.arange(10) < n_differ}
    found = dif._too_many_differ(items)
    assert len(found) == said
    if said:
        assert found[0].sentence.startswith("5 of 10 items differ between the groups")


def test_shifts_by_slopes_are_centered_on_anchors():
    shift = np.array([[0.0, 0.0, 0.0], [0.4, -0.2, 1.0]])
    found = slope_shifts.SlopeShifts(shift, np.ones((2, 3))).centered_on(np.array([True, True, False]))
    np.testing.assert_allclose(found.shift, [[0, 0, 0], [0.3, -0.3, 0.9]])
    np.testing.assert_array_equal(found.se, 1)


@pytest.mark.parametrize("number", [0, 1])
def test_responses_are_drawn_where_the_group_is_on_the_common_scale(monkeypatch, number):
    """The logit a (theta + origin) - t: intercepts of the first group's scale, less origin times the item's slope."""
    people = si.simulate.partial_credit(7, 3, categories=3, seed=1).responses
    ability = np.linspace(-1, 1, 7)
    model = SimpleNamespace(ability=ability, ability_sd=ability + 2)
    common = slope_shifts._CommonSlopes(
        slope=np.array([0.5, 1.0, 2.0]), slope_se=np.zeros(3), intercepts=np.arange(6.0), origin=np.array([0.0, 0.3])
    )
    drawn_with = {}

    def drawn(responses, intercepts, mean, sd, seed, slope):
        drawn_with.update(n=responses.n_persons, intercepts=intercepts, mean=mean, sd=sd, slope=slope)
        return responses

    monkeypatch.setattr(slope_shifts, "redraw", drawn)
    group = slope_shifts._GroupSlopes(people, model)
    slope_shifts._draw_responses(group, common, number, np.random.SeedSequence(0))
    copies = slope_shifts.COPIES
    assert drawn_with["n"] == 7 * copies
    slope_of_threshold = np.array([0.5, 0.5, 1.0, 1.0, 2.0, 2.0])
    np.testing.assert_allclose(drawn_with["intercepts"], np.arange(6.0) - 0.3 * number * slope_of_threshold)
    np.testing.assert_array_equal(drawn_with["mean"], np.tile(ability, copies))
    np.testing.assert_array_equal(drawn_with["sd"], np.tile(ability + 2, copies))
    monkeypatch.setattr(slope_shifts, "CELLS", slope_shifts.DRAWS * 21 * 2)
    slope_shifts._draw_responses(group, common, number, np.random.SeedSequence(0))
    assert drawn_with["n"] == 7 * 2  # of many responses fewer copies


@pytest.mark.parametrize("held", [False, True])
def test_a_shift_is_that_with_common_slopes_less_that_with_equal_ones(monkeypatch, held):
    """Equal slopes have the distances of thresholds that are held, about the location of the common intercepts."""
    people = si.simulate.partial_credit(9, 2, categories=3, seed=1).responses
    layout = people.thresholds
    shape = np.array([-0.5, 1.5, 0.0, 2.0])
    common = slope_shifts._CommonSlopes(
        slope=np.array([0.5, 2.0]),
        slope_se=np.zeros(2),
        intercepts=np.array([1.0, 2.0, 3.0, 7.0]),
        origin=np.array([0.0, 0.3]),
    )
    drawn_with = []

    def drawn(group, slopes, number, seed):
        drawn_with.append((number, slopes.slope.tolist(), slopes.intercepts, seed.entropy))
        return number, slopes.slope[0]

    def fitted(responses, model, design, name):
        number, slope = responses
        return SimpleNamespace(thresholds=np.array([1.0, 3.0, 0.0, 2.0]) * (number + 1) * slope)

    monkeypatch.setattr(slope_shifts, "_draw_responses", drawn)
    monkeypatch.setattr(slope_shifts, "fit_group", fitted)
    calibrations = SimpleNamespace(layout=layout, design=None, names=("a", "b"))
    model = SimpleNamespace(shape=shape if held else None)
    found = slope_shifts._shifts_of_draw(calibrations, model, [None, None], common, 3)
    # Locations (2, 1) times the number of the group and the slope of the first item, .5 and 1.
    np.testing.assert_allclose(found, [[0, 0], [2 * 0.5 - 2, 0.5 - 1]])
    assert [each[0] for each in drawn_with] == [0, 1, 0, 1]
    assert [each[1] for each in drawn_with] == [[0.5, 2.0]] * 2 + [[1.0, 1.0]] * 2
    assert drawn_with[0][3] == drawn_with[2][3] == [0, 4, 3, 0]  # the same random numbers for both
    assert drawn_with[1][3] == drawn_with[3][3] == [0, 4, 3, 1]
    expected = shape + 3.25 - 0.75 if held else common.intercepts
    np.testing.assert_allclose(drawn_with[2][2], expected)


def test_slopes_in_common_by_loops():
    """Means of slopes by precision, drawn towards 1; intercepts moved so that anchors agree with the first group."""
    rng = np.random.default_rng(5)
    responses = [si.simulate.partial_credit(60, 3, categories=3, seed=k).responses for k in (1, 2, 3)]
    models = [
        SimpleNamespace(
            slope=np.array([0.4, 1.0, 1.9]) + rng.normal(0, 0.05, 3),
            slope_se=rng.uniform(0.1, 0.3, 3),
            intercepts=rng.normal(0, 1, 6) + k,
        )
        for k in range(3)
    ]
    groups = [slope_shifts._GroupSlopes(*pair) for pair in zip(responses, models, strict=True)]
    anchors = np.array([True, False, True])
    found = slope_shifts._common_slopes(groups, anchors)
    mean = np.zeros(3)
    variance = np.zeros(3)
    for item in range(3):
        w = [1 / model.slope_se[item] ** 2 for model in models]
        variance[item] = 1 / sum(w)
        mean[item] = sum(each * model.slope[item] for each, model in zip(w, models, strict=True)) / sum(w)
    true = np.var(mean) - np.mean(variance)
    assert true > 0
    slope = 1 + true / (true + variance) * (mean - mean.mean())
    np.testing.assert_allclose(found.slope, slope)
    np.testing.assert_allclose(found.slope_se, np.sqrt(true / (true + variance) * variance))
    used = []
    for one in responses:
        n = one.category_counts
        used.append([(n[i, k] * n[i, k + 1] + 1e-6) / (n[i, k] + n[i, k + 1] + 1e-3) for i in range(3) for k in (0, 1)])
    a = np.repeat(slope, 2)
    for g in range(3):
        above = below = 0.0
        for t in (0, 1, 4, 5):  # the thresholds of the anchors
            w = used[g][t] * used[0][t] / (used[g][t] + used[0][t])
            above += w * a[t] * (models[0].intercepts[t] - models[g].intercepts[t])
            below += w * a[t] ** 2
        assert found.origin[g] == pytest.approx(above / below, abs=1e-12)
    used = np.array(used)
    moved = np.array([model.intercepts + d * a for model, d in zip(models, found.origin, strict=True)])
    np.testing.assert_allclose(found.intercepts, (used * moved).sum(axis=0) / used.sum(axis=0))


@pytest.mark.parametrize("explained", [False, True])
def test_the_largest_contrast_of_an_item_without_what_slopes_explain(monkeypatch, explained):
    rng = np.random.default_rng(7)
    difficulty = rng.normal(0, 1, (3, 4))
    se = rng.uniform(0.1, 0.3, (3, 4))
    shifts = slope_shifts.SlopeShifts(rng.normal(0, 1.5, (3, 4)), rng.uniform(0.1, 0.3, (3, 4)))
    groups = SimpleNamespace(difficulty=difficulty, se=se, items=np.arange(4), names=("a", "b", "c"), sandwiches=None)
    left = difficulty - shifts.shift if explained else difficulty
    errors = np.hypot(se, shifts.se) if explained else se

    def pair(groups, high, low, given):
        assert (given is shifts) == explained
        return SimpleNamespace(value=left[high] - left[low], se=np.full(4, 0.3), df=np.full(4, np.inf))

    monkeypatch.setattr(dif, "_pair", pair)
    found = dif._overall(groups, 0.05, shifts if explained else None)
    for item in range(4):
        of_item = left[:, item]
        weight = 1 / errors[:, item] ** 2
        mean = weight @ of_item / weight.sum()
        assert found["harder_for"][item] == "abc"[int(of_item.argmax())]
        assert found["easier_for"][item] == "abc"[int(of_item.argmin())]
        assert found["largest"][item] == pytest.approx(of_item.max() - of_item.min())
        assert found["statistic"][item] == pytest.approx(weight @ (of_item - mean) ** 2)
    np.testing.assert_allclose(found["p"], scipy.special.chdtrc(2, found["statistic"]))


def test_the_level_of_each_check():
    """Bonferroni: of five checks on data where the model holds, any alarms with a chance of 5% at most."""
    assert results.TOGETHER == 0.05
    assert pytest.approx(results.TOGETHER) == results.EACH * results.CHECKS


def test_of_very_many_parameters_those_of_the_largest_facet_are_not_few(monkeypatch):
    columns = {"items": slice(0, 4), "rater": slice(4, 10), "occasion": slice(10, 12)}
    rated = SimpleNamespace(is_estimated=np.arange(12) != 1, columns=columns)
    assert interactions._beside_the_largest_facet(rated).tolist() == [True] * 11
    monkeypatch.setattr(interactions, "DENSE_PARAMETERS", 11)
    assert interactions._beside_the_largest_facet(rated).tolist() == [True] * 3 + [False] * 6 + [True] * 2
