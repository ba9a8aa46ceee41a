"""Likely causes of misfit, matches across groups and populations at the limits from which they are said, by loops."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.data.labels import Split
from spectral_irt.errors import Finding
from spectral_irt.estimators import marginal
from spectral_irt.inference.fit import causes
from spectral_irt.inference.groups import mantel_haenszel as module
from spectral_irt.inference.groups import score_test


def items_in_trouble(places, m=12):
    labels = np.array([f"q{k}" for k in range(1, m + 1)], dtype=object)
    calibration = SimpleNamespace(labels=labels, measured=np.ones(m, dtype=bool))
    named = tuple(labels[np.array(places) - 1].tolist())
    known = [
        Finding("misfitting_items", "warning", "", "", named[:1]),
        Finding("dependent_items", "note", "", "", named),
    ]
    return list(causes._items_not_reached(calibration, [*known, Finding("another", "note", "", "", ("q1",))]))


@pytest.mark.parametrize("places", [(10, 11, 12), (9, 10, 11, 12), (1, 2, 3), (1, 6, 12), (7, 8, 9), (11, 12), (6, 12)])
def test_items_in_trouble_that_are_the_last(places):
    """Wilcoxon's rank sum: its mean and variance by listing every choice of so many positions."""
    k = len(places)
    means = [np.mean(each) for each in combinations(range(1, 13), k)]
    z = (np.mean(places) - np.mean(means)) / np.std(means)
    late = z >= causes.LATE and np.mean(np.array(places) > 8) >= causes.MOSTLY
    found = items_in_trouble(places)
    assert len(found) == (k >= causes.SEVERAL and late)
    if found:
        assert found[0].items == tuple(f"q{place}" for place in places)


@pytest.mark.parametrize(
    ("lucky", "slips", "guessing"),
    [((1.1, 1.0), (1.0, 1.0), False), ((9.0, 2.0), (2.0, 2.0), True), ((9.0, 2.0), (9.0, 2.0), False)],
)
def test_guesses_are_lucky_and_nobody_slips_as_much(lucky, slips, guessing):
    def surprises(observed, expected):
        return causes.Surprises(100.0, 10 * observed, 10 * expected, 10 * expected)

    first = surprises(*lucky)
    assert first.surplus == pytest.approx((10 * lucky[0] - 10 * lucky[1]) / np.sqrt(10 * lucky[1]))
    assert causes.is_guessing(first, surprises(*slips)) == guessing
    assert not causes.is_guessing(first._replace(variance=0.0), surprises(*slips))


def test_items_on_which_people_are_matched(monkeypatch):
    anchors = np.array([True, False, True, False, False])
    sets = [(matching.tolist(), asked.tolist()) for matching, asked in module._matching_sets(anchors)]
    assert sets == [([0, 2], [0, 2]), ([0, 1, 2], [1]), ([0, 2, 3], [3]), ([0, 2, 4], [4])]
    monkeypatch.setattr(module, "MATCHED_SINGLY", 2)
    sets = [(matching.tolist(), asked.tolist()) for matching, asked in module._matching_sets(anchors)]
    assert sets == [([0, 2], [0, 2]), ([0, 1, 2, 3, 4], [1, 3, 4])]


@pytest.mark.parametrize("matched", [0.0, 0.1])
def test_where_few_have_a_match_the_statistic_is_left_out(monkeypatch, matched):
    share = module.LEAST_MATCHED - 0.01 + matched
    people = si.simulate.rasch(20, 3, seed=1).responses

    def difference(answers, focal, asked):
        assert focal.sum() == 10
        return module.MatchedDifference(
            np.full(len(asked), 0.5), np.full(len(asked), 0.2), np.full(len(asked), 6.25), share
        )

    monkeypatch.setattr(module, "mantel_haenszel", difference)
    split = Split(("a", "b"), np.arange(20) % 2)
    columns, findings = module.matched_columns(people, split, np.ones(3, dtype=bool), scale=2.35)
    if matched:
        assert not findings
        np.testing.assert_allclose(columns["mh_delta"], -2.35 * 0.5)
        np.testing.assert_allclose(columns["mh_se"], 2.35 * 0.2)
        np.testing.assert_allclose(columns["mh_p"], 0.0124193, atol=1e-6)  # of z = 2.5
    else:
        assert np.isnan(columns["mh_delta"]).all()
        assert findings[0].sentence.startswith(f"Only {100 * share:.0f}% of the people have a match")


@pytest.mark.parametrize(
    ("sd", "codes"), [(0.0101, {"no_ability_spread"}), (0.0102, set()), (47.5, {"unbounded_ability_spread"})]
)
@pytest.mark.parametrize("with_sigma", [True, False])
def test_spreads_at_a_limit(sd, codes, with_sigma):
    answers = si.simulate.rasch(10, 4, seed=1).responses
    population = SimpleNamespace(free=False)
    fit = SimpleNamespace(populations=[population], n_iter=5, residual=0.0)
    found = {one.code for one in marginal._fit_findings(fit, np.array([1.0, sd]), with_sigma, answers, 1e-6)}
    assert found - {"coarse_nodes"} == (codes if with_sigma else set())


@pytest.mark.parametrize("n_groups", [2, 12, 13])
def test_populations_in_words(n_groups):
    columns = {
        "group": [f"g{k}" for k in range(n_groups)],
        "mean": np.arange(n_groups) / 10,
        "sd": np.full(n_groups, 1.25),
        "n": np.append(29, np.full(n_groups - 1, 30)),
    }
    told, small = marginal._population_findings(columns, True)
    assert told.sentence.startswith(
        f"Populations of the {n_groups} groups, mean and standard deviation: g0: 0.00, 1.25; "
    )
    assert ("and 1 more" in told.sentence) == (n_groups == 13)
    assert small.sentence.replace("'", "").startswith("g0 has fewer than 30 people")
    assert len(list(marginal._population_findings({**columns, "n": np.full(n_groups, 30)}, False))) == 1


def test_differences_between_the_halves_by_loops():
    """z of every item, and the root mean square of u / w over items, without what is chance."""
    rng = np.random.default_rng(3)
    root = rng.normal(size=(4, 9))
    w = root @ root.T
    covariance = w * 1.1
    u = rng.normal(0, 6, 4)
    of_item = np.array([[1.0, 0, 0, 0], [0, 1.0, 1.0, 0], [0, 0, 0, 1.0]])
    comparison = SimpleNamespace(u=u, w=w, covariance=covariance)
    found = score_test._item_differences(comparison, of_item)
    beyond = []
    for item, a in enumerate(of_item):
        size = a @ u / (a @ w @ a)
        variance = a @ covariance @ a / (a @ w @ a) ** 2
        assert found.z[item] == pytest.approx(size / np.sqrt(variance))
        beyond.append(size**2 - variance)
    assert found.spread == pytest.approx(np.sqrt(max(np.mean(beyond), 0)))
