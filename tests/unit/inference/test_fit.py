"""Mean squares of items and people, critical values, strata, categories: definitions, enumeration and simulation."""

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dense import AWKWARD, mean_squares, probabilities, wilson_hilferty
from drawn import drawn
from spectral_irt import Responses, SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.analysis.cache import columns_of
from spectral_irt.data import Finding
from spectral_irt.engine import LocalEngine
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.inference.fit.causes import _items_not_reached
from spectral_irt.inference.fit.checks import Checks
from spectral_irt.inference.fit.item_fit import misfit_finding
from spectral_irt.inference.fit.mean_squares import conditional_statistics, item_statistics
from spectral_irt.inference.fit.moments import GivenScore
from spectral_irt.inference.fit.person_fit import (
    MisfitCount,
    PersonMisfit,
    misfit_sentence,
    person_misfit,
    posterior_of_abilities,
)
from spectral_irt.inference.fit.redraw import redraw
from spectral_irt.inference.fit.strata import STRATA, strata_columns, wilson_interval
from spectral_irt.model import category_probabilities
from spectral_irt.persons import abilities
from spectral_irt.persons.residuals import ERRATIC, person_mean_squares, z_of_mean_square
from split import in_blocks

DIFFICULTY = np.array([-1.5, 0.3, 0.0, 2.0, -0.7, 1.1, -0.4])
ONE_UNKNOWN = np.where(np.arange(7) == 2, np.nan, DIFFICULTY)


def mixed(table, beta):
    """The table with NaN for people who have everything right or wrong, and for items without a difficulty."""
    table = np.where(np.isfinite(beta), table, np.nan)
    share = np.nansum(table, axis=1, keepdims=True) / np.maximum(np.sum(~np.isnan(table), axis=1, keepdims=True), 1)
    return np.where((share > 0) & (share < 1), table, np.nan)


def given_score(row, beta):
    """P(X_i = 1 | score) of one person by adding up all answer patterns with that score."""
    seen = np.flatnonzero(~np.isnan(row))
    total, weight = np.where(np.isnan(row), np.nan, 0.0), 0.0
    for ones in combinations(seen, int(row[seen].sum())):
        w = np.exp(-beta[list(ones)].sum())
        weight += w
        total[list(ones)] += w
    return total / weight


@pytest.mark.parametrize("beta", [DIFFICULTY, ONE_UNKNOWN])
@pytest.mark.parametrize("size", [8, 3])
def test_conventional_by_definition(size, beta):
    theta = np.linspace(-1.03, 2.01, len(AWKWARD))
    theta[3] = np.inf  # maximum likelihood of the person with everything right
    found = SimpleNamespace(**item_statistics(in_blocks(Responses.from_wide(AWKWARD), size), beta, theta))
    table = mixed(AWKWARD, beta)
    with np.errstate(over="ignore"):
        P = probabilities(theta, beta)
    for item in range(len(beta)):
        persons = np.flatnonzero(~np.isnan(table[:, item]))
        assert found.n[item] == len(persons)
        if not len(persons):
            assert np.isnan([found.infit[item], found.outfit[item]]).all()
            continue
        x, p, t = table[persons, item], P[persons, item], theta[persons]
        v, n = p * (1 - p), len(x)
        squares = [getattr(found, name)[item] for name in ("infit", "outfit", "infit_z", "outfit_z")]
        np.testing.assert_allclose(squares, mean_squares(x, p))
        np.testing.assert_allclose(found.exact_match[item], 100 * np.mean(np.abs(x - p) < 0.5))
        np.testing.assert_allclose(found.exact_match_expected[item], 100 * np.mean(np.maximum(p, 1 - p)))
        if n > 1 and x.min() < x.max():
            np.testing.assert_allclose(found.point_measure[item], np.corrcoef(x, t)[0, 1])
            slope = np.mean((p - p.mean()) * (t - t.mean()))
            spread = np.sqrt((p.var() + v.mean()) * t.var())
            np.testing.assert_allclose(found.point_measure_expected[item], slope / spread)
        else:
            assert np.isnan(found.point_measure[item])


def test_an_even_chance_is_half_a_match():
    found = item_statistics(Responses.from_wide([[1, 0], [0, 1]]), np.zeros(2), np.zeros(2))
    assert found["exact_match"].tolist() == [50, 50]
    assert np.isnan(found["infit_z"]).all()  # all V = 1/4: mean squares are 1 whatever the answers
    assert np.isnan(found["point_measure"]).all()


@pytest.mark.parametrize("beta", [DIFFICULTY, ONE_UNKNOWN])
@pytest.mark.parametrize("size", [8, 3])
def test_conditional_by_enumeration(size, beta):
    found = SimpleNamespace(**conditional_statistics(in_blocks(Responses.from_wide(AWKWARD), size), beta))
    table = mixed(AWKWARD, beta)
    P = np.array([given_score(row, beta) for row in table])
    for item in range(len(beta)):
        persons = np.flatnonzero(~np.isnan(table[:, item]))
        assert found.n[item] == len(persons)
        if not len(persons):
            assert np.isnan([found.infit[item], found.outfit_z[item]]).all()
            continue
        x, p = table[persons, item], P[persons, item]
        v, n = p * (1 - p), len(x)
        np.testing.assert_allclose([found.infit[item], found.outfit[item]], mean_squares(x, p)[:2])
        for g, total, z in ((1 - 2 * p, v.sum(), found.infit_z[item]), ((1 - 2 * p) / v, n, found.outfit_z[item])):
            rest = g - np.sum(v * g) / v.sum()
            q = np.sqrt(np.sum(v * rest**2)) / total
            square = max(1 + np.sum((x - p) * rest) / total, 0)
            if q > 1e-7:
                np.testing.assert_allclose(z, wilson_hilferty(square, q), atol=1e-6)


@pytest.mark.parametrize("shape", [(300, 200), (800, 25)])
def test_the_series_for_long_rows(shape):
    data = simulate.rasch(*shape, seed=3)
    exact = conditional_statistics(data.responses, data.difficulty)
    rough = conditional_statistics(data.responses, data.difficulty, series_from=4.0)
    np.testing.assert_allclose(rough["infit"], exact["infit"], atol=1e-5)
    np.testing.assert_allclose(rough["outfit_z"], exact["outfit_z"], atol=1e-3)


def test_people_who_share_their_items_are_judged_from_tables(monkeypatch):
    data = simulate.rasch(900, 12, seed=8).responses
    x = data.to_dense()
    x[::2, :3] = np.nan
    x[5:25] = np.where(np.random.default_rng(0).random((20, 12)) < 0.3, np.nan, x[5:25])
    together, one_by_one = (Responses.from_wide(x) for _ in range(2))
    assert together.shared is not None
    assert together.shared.rest is not None
    monkeypatch.setitem(vars(one_by_one), "shared", None)
    beta = np.linspace(-1, 1, 12)
    one, other = (conditional_statistics(each, beta) for each in (one_by_one, together))
    for name, values in one.items():
        np.testing.assert_allclose(other[name], values, rtol=1e-9, atol=1e-9)


def test_items_that_were_not_estimated_have_no_fit():
    table = simulate.rasch(300, 8, seed=2).responses.to_dense()
    table[:, 5] = 1
    for estimator in (SpectralRasch(), ConditionalRasch()):
        found = estimator.fit(table).analyse(table).item_fit()
        assert np.isnan(found["infit"][5])
        assert np.isnan(found["infit_conditional"][5])
        assert np.isfinite(np.delete(found["infit_conditional"].to_numpy(), 5)).all()


@pytest.mark.slow
@pytest.mark.parametrize(("m", "n_data_sets"), [(10, 30), (20, 20), (60, 10)])
def test_conditional_fit_averages_one(m, n_data_sets):
    """30% missing, 1,000 people; the conventional mean squares fall short, the conditional ones do not."""
    rows = []
    for seed in range(n_data_sets):
        responses = simulate.rasch(1000, m, design="sampled", p=0.7, seed=seed).responses
        rows.append(SpectralRasch(se="none").fit(responses).analyse(responses).item_fit())
    every = {name: np.concatenate([row[name].to_numpy() for row in rows]) for name in rows[0].columns[2:-1]}
    assert abs(every["infit_conditional"].mean() - 1) < 0.01
    assert abs(every["outfit_conditional"].mean() - 1) < 0.02
    assert every["infit"].mean() < every["infit_conditional"].mean()
    for name in ("infit_conditional_z", "outfit_conditional_z"):
        assert abs(np.mean(np.abs(every[name]) > 1.96) - 0.05) < 3 * np.sqrt(0.05 * 0.95 / len(every[name]))
    assert abs(np.mean(every["point_measure"] - every["point_measure_expected"])) < 0.02


def again(responses, beta, seed=0, threads=1):
    known = abilities(responses, beta, "eap", prior_mean=0.0, prior_sd=1.0)
    people = responses.with_engine(LocalEngine(threads))
    return redraw(people, beta, known.ability, known.se, np.random.SeedSequence(seed))


def test_redrawn_data_have_the_same_design():
    beta = np.linspace(-1, 1, 7)
    responses = Responses.from_wide(AWKWARD)
    drawn = again(responses, beta).to_dense()
    np.testing.assert_array_equal(np.isnan(drawn), np.isnan(AWKWARD))
    assert np.nansum(np.abs(drawn - AWKWARD)) > 0
    beta[0] = np.nan  # an item without a difficulty cannot be drawn
    assert np.isnan(again(responses, beta).to_dense()[:, 0]).all()


def test_redrawn_data_follow_the_model():
    data = simulate.rasch(20_000, 30, design="sampled", p=0.6, seed=1)
    old, new = data.responses, again(data.responses, data.difficulty)
    np.testing.assert_allclose(new.item_scores / new.item_counts, old.item_scores / old.item_counts, atol=0.025)
    # Abilities drawn from posteriors vary as abilities do, so scores vary as scores did.
    assert abs(np.var(new.scores / new.counts) / np.var(old.scores / old.counts) - 1) < 0.05


@pytest.mark.slow
def test_draws_depend_on_the_seed_alone():
    data = simulate.rasch(6000, 300, design="sampled", p=0.6, seed=1)
    draws = [again(data.responses, data.difficulty, *how).digest() for how in ((0, 1), (0, 2), (1, 1))]
    assert draws[0] == draws[1] != draws[2]


def strata(responses, beta, items, number=STRATA):
    return strata_columns(responses, GivenScore.of(responses, beta), abilities(responses, beta).ability, items, number)


def test_against_counting():
    """Complete data, few items: a stratum is a score, and expected shares come from enumeration."""
    rng = np.random.default_rng(2)
    beta = np.array([-1.0, -0.3, 0.1, 0.4, 0.8])
    x = drawn(rng, rng.normal(0, 1, (600, 1)) - beta)
    responses = Responses.from_wide(x)
    found = abilities(responses, beta)
    table = strata(responses, beta, np.array([3, 0]), 50)
    score = x.sum(axis=1)
    for item in (3, 0):
        rows = table["item"] == item
        assert table["stratum"][rows].tolist() == [1, 2, 3, 4]
        for k, s in enumerate((1, 2, 3, 4)):
            who = score == s
            assert table["n"][rows][k] == who.sum()
            assert table["observed"][rows][k] == pytest.approx(x[who, item].mean())
            assert table["expected"][rows][k] == pytest.approx(given_score(x[who][0], beta)[item])
            assert table["ability"][rows][k] == pytest.approx(found.ability[who].mean())


def test_incomplete_data_in_several_blocks_and_items_without_a_difficulty():
    rng = np.random.default_rng(3)
    beta = rng.normal(0, 1, 9)
    beta[4] = np.nan
    x = (rng.random((500, 9)) < 0.5).astype(float)
    x[rng.random((500, 9)) < 0.4] = np.nan
    table = strata(in_blocks(Responses.from_wide(x), 100), beta, np.array([7]), 5)
    known = np.isfinite(x) & np.isfinite(beta)
    score, n = np.where(known, x, 0).sum(axis=1), known.sum(axis=1)
    who = (score > 0) & (score < n) & known[:, 7]
    expected = 0.0
    for row in np.where(known, x, np.nan)[who]:
        expected += given_score(row, beta)[7]
    assert table["n"].sum() == who.sum()
    assert len(table["n"]) == 5
    few = simulate.rasch(40, 30, seed=4).responses  # few people make few strata
    assert len(strata(few, np.zeros(30), np.array([0]))["n"]) == 3
    assert (table["n"] * table["observed"]).sum() == pytest.approx(x[who, 7].sum())
    assert (table["n"] * table["expected"]).sum() == pytest.approx(expected)
    assert (np.diff(table["ability"]) > 0).all()


@pytest.mark.slow
def test_under_the_model_marks_lie_on_the_curve_but_for_chance():
    """A short test, where the abilities' own error would show: z of observed against expected is standard normal."""
    z = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        beta = np.linspace(-1.5, 1.5, 8)
        x = drawn(rng, rng.normal(0.5, 1, (2000, 1)) - beta)
        table = strata(Responses.from_wide(x), beta, np.arange(8))
        p, n = table["expected"], table["n"]
        z.append((table["observed"] - p) / np.sqrt(p * (1 - p) / n))
    every = np.concatenate(z)
    # Values nearly independent: four standard errors of the mean of their squares and of the mean.
    assert len(every) > 900
    assert np.mean(every**2) == pytest.approx(1.0, abs=4 * np.sqrt(2 / len(every)))
    assert np.mean(every) == pytest.approx(0.0, abs=4 / np.sqrt(len(every)))


def test_wilson_contains_the_proportions_that_are_not_refused():
    """Its ends are where |x/n - p| = 1.96 sqrt(p (1 - p) / n), the definition."""
    n, right = np.array([10.0, 25.0, 400.0]), np.array([10.0, 3.0, 100.0])
    for end in wilson_interval(right, n):
        inside = (end > 0) & (end < 1)
        gap = np.abs(right / n - end)[inside]
        assert gap == pytest.approx(1.959964 * np.sqrt(end * (1 - end) / n)[inside], rel=1e-6)


def test_counts_mean_abilities_and_infit():
    answers = simulate.partial_credit(300, 6, categories=4, seed=4).responses
    study = SpectralPartialCredit().fit(answers).analyse(answers)
    found = study.categories()
    person, item, x = answers.answers()
    theta = study.abilities("wle").ability[person]
    inside = (answers.scores > 0) & (answers.scores < answers.max_scores)
    beta = study.calibration.thresholds.reshape(6, 3)
    p = category_probabilities(theta, np.concatenate([np.zeros((6, 1)), np.cumsum(beta, axis=1)], axis=1)[item])
    e = p @ np.arange(4)
    for k, row in enumerate(found.iter_rows(named=True)):
        category, mine = k % 4, item == k // 4
        own = mine & inside[person]
        here = own & (x == category)
        n = np.sum(mine & (x == category))
        assert (row["item"], row["category"], row["n"]) == (answers.items[k // 4], category, n)
        assert row["mean_ability"] == pytest.approx(theta[here].mean())
        expected = (p[own, category] * (category - e[own]) ** 2).sum()
        assert row["infit"] == pytest.approx(((category - e[here]) ** 2).sum() / expected)
    assert found["share"].sum() == pytest.approx(6)
    assert found["infit"].mean() == pytest.approx(1, abs=0.15)  # the model holds


def test_the_share_is_that_of_the_table_of_people():
    rng = np.random.default_rng(1)
    logit = rng.normal(size=(1500, 1)) - rng.normal(size=30)
    logit[:150] = 0.0  # careless
    responses = Responses.from_wide(drawn(rng, logit))
    study = SpectralRasch(se="none").fit(responses).analyse(responses)
    found = person_misfit(responses, study.calibration.difficulty)
    columns = columns_of(study.persons)
    known = np.isfinite(columns["infit"])
    erratic = (columns["infit_z"][known] > ERRATIC) | (columns["outfit_z"][known] > ERRATIC)
    assert (found.n_people, found.share) == (known.sum(), erratic.mean())
    assert misfit_sentence(found).startswith(f"{erratic.sum()} of {known.sum():,} persons misfit (")
    assert found.findings
    assert "expected are" in found.findings[0].sentence


@pytest.mark.slow
def test_chance_is_what_the_model_does_with_known_abilities():
    """10 data sets of the same people and items from the truth: their share is the one by chance, to 3 errors."""
    data = simulate.rasch(1500, 25, seed=2)
    found = person_misfit(data.responses, SpectralRasch(se="none").fit(data.responses).difficulty_)
    same = {"difficulty": data.difficulty, "ability": data.ability}
    again = [simulate.rasch(1500, 25, **same, seed=100 + seed).responses for seed in range(10)]
    shares = [person_misfit(each, data.difficulty).share for each in again]
    error = np.hypot(np.std(shares) / np.sqrt(10), np.std(shares) / 2)  # 4 replicates stand behind `chance`
    assert abs(found.chance - np.mean(shares)) < 3 * error
    assert not found.findings


def test_few_people_and_endless_tests_are_left_alone():
    for shape in ((60, 20), (120, 1500)):
        data = simulate.rasch(*shape, seed=1)
        assert person_misfit(data.responses, data.difficulty) is None


def test_an_item_many_logits_away_makes_nobody_misfit():
    """20 items near people and one 10 logits off: answers as expected have no outfit z above 2, and the right sign."""
    rng = np.random.default_rng(3)
    beta = np.append(rng.normal(size=20), 10.0)
    theta = rng.normal(size=2000)
    x = rng.random((2000, 21)) < 1 / (1 + np.exp(beta - theta[:, None]))
    x[:, 20] = False  # as expected: the chance of a right answer is 1 in 20,000
    found = person_mean_squares(Responses.from_wide(x.astype(float)), beta, theta)
    known = np.isfinite(found.outfit)
    assert np.mean(found.outfit_z[known] > ERRATIC) < 0.03
    low = known & (found.outfit < 0.5)
    assert low.sum() > 20
    assert (found.outfit_z[low] < 0.5).all()
    x[:100, 20] = True
    surprising = person_mean_squares(Responses.from_wide(x.astype(float)), beta, theta)
    assert (surprising.outfit_z[:100][np.isfinite(surprising.outfit[:100])] > ERRATIC).all()


def test_a_z_in_reach_is_wilson_and_hilfertys_and_moves_on_without_a_jump():
    square = np.array([0.27, 1.0, 3.0])
    for q in (0.2, 1.0, 2.0):
        np.testing.assert_allclose(z_of_mean_square(square, np.full(3, q)), 3 * (np.cbrt(square) - 1) / q + q / 3)
    np.testing.assert_allclose(*(z_of_mean_square(square, np.full(3, q)) for q in (2.0, 2.0 + 1e-9)), atol=1e-6)
    assert z_of_mean_square(np.array([0.27]), np.array([10.0]))[0] < 0


def test_counts_in_sentences_on_simulated_limits():
    """Of eight items one has no infit and one no limits; two of the other six are outside, and chance puts 0.3."""
    nan = np.nan
    infit = np.array([0.80, 1.00, 1.20, 1.00, nan, 1.00, 1.05, 0.95])
    columns = {
        "item": np.arange(8),
        "n": np.full(8, 300),
        "infit_conditional": infit,
        "infit_conditional_low": np.array([0.9, 0.9, 0.9, 0.9, 0.9, nan, 0.9, 0.9]),
        "infit_conditional_high": np.array([1.1, 1.1, 1.1, 1.1, 1.1, nan, 1.1, 1.1]),
        "infit_conditional_z": (infit - 1) * 30,
        "misfit_p": np.ones(8),
        "misfit": np.array(["overfit", "", "underfit", "", "", "", "", ""]),
    }
    sentence = misfit_finding(columns, 1200).sentence
    assert "2 of 7 items misfit" in sentence
    assert "(1,200 data sets drawn given the scores, adjusted for asking of 7 items)" in sentence
    assert "drawn" not in misfit_finding(columns).sentence
    checks = Checks(columns, None, None, None, np.full(8, 0.1), 60, ())
    assert ", 2 outside their own 95% limits, where chance puts 0.3" in checks.sentence()
    assert "limits" not in replace(checks, critical=0).sentence()


def test_person_misfit_is_said_in_numbers_with_the_level():
    said = "4 of 119 persons misfit (1 expected; not significant at 1%, p = 0.051)"
    assert misfit_sentence(PersonMisfit(119, 4 / 119, 0.009, 0.051)) == said
    assert (
        misfit_sentence(PersonMisfit(119, 9 / 119, 0.0042, 0.0002))
        == "9 of 119 persons misfit (0.5 expected; p < 0.001)"
    )


def test_items_at_the_end_are_told_by_their_mean_rank():
    """z of the mean rank of k of m items; and three quarters of them in the last third."""
    labels = np.array([f"i{k}" for k in range(1, 31)], dtype=object)
    calibration = SimpleNamespace(labels=labels, measured=np.ones(30, dtype=bool))

    def told(places):
        misfit = Finding("misfitting_items", "warning", "Some misfit.", "", tuple(f"i{k}" for k in places))
        return [cause.items for cause in _items_not_reached(calibration, [misfit])]

    def z(places):
        ranks = stats.ranksums(places, sorted({*range(1, 31)} - {*places}))
        return ranks.statistic

    late = (26, 28, 29, 30)
    assert z(late) > 2.33
    assert told(late) == [("i26", "i28", "i29", "i30")]
    assert told((1, 29, 30)) == []  # two of three
    just, short = (18, 22, 24, 27, 29), (17, 22, 24, 27, 29)
    assert z(just) > 2.33 > z(short)
    assert told(just) == [tuple(f"i{k}" for k in just)]
    assert told(short) == []
    assert z((19, 20, 28, 29, 30)) > 2.33
    assert told((19, 20, 28, 29, 30)) == []  # three of five in the last third
    assert told((29, 30)) == []
    assert told(range(15, 31)) == []  # more than half


def test_abilities_are_drawn_to_the_mean_by_what_of_their_spread_is_error():
    theta = np.array([-1.0, 0.5, 2.0, np.inf, 3.0, np.nan])
    se = np.array([0.5, 0.4, 0.6, np.inf, 0.9, np.nan])
    extreme = np.array([False, False, False, True, True, False])
    measured = SimpleNamespace(ability=theta, se=se, extreme=extreme)
    mean, spread = posterior_of_abilities(measured)
    own = theta[:3]
    variance = own.var() - np.mean(se[:3] ** 2)
    trust = variance / (variance + se[[0, 1, 2, 4]] ** 2)
    np.testing.assert_allclose(mean[[0, 1, 2, 4]], own.mean() + trust * (theta[[0, 1, 2, 4]] - own.mean()))
    np.testing.assert_allclose(spread[[0, 1, 2, 4]], np.sqrt(variance * (1 - trust)))
    np.testing.assert_allclose(mean[[3, 5]], own.mean())
    np.testing.assert_allclose(spread[[3, 5]], np.sqrt(variance))


def test_people_misfit_by_infit_or_outfit_above_two():
    nan = np.nan
    found = SimpleNamespace(
        infit=np.array([1.0, 1.5, 0.8, nan, 1.2]),
        infit_z=np.array([0.0, 2.1, 1.0, 5.0, 2.0]),
        outfit_z=np.array([0.0, 0.0, 2.5, 5.0, -3.0]),
    )
    assert MisfitCount.of(found) == (2, 4)


def test_a_category_of_extreme_people_alone_has_no_fit():
    """One person gave the highest answer, everywhere: there is nothing to compare with what is expected."""
    table = np.array([[0, 1, 0], [1, 0, 1], [1, 1, 0], [0, 0, 1], [0, 1, 1], [1, 0, 0], [2, 2, 2]])
    found = columns_of(SpectralPartialCredit().fit(table).analyse(table).categories)
    highest = found["category"] == 2
    assert found["n"][highest].tolist() == [1, 1, 1]
    for name in ("mean_ability", "infit", "outfit"):
        assert np.isnan(found[name][highest]).all()
        assert np.isfinite(found[name][~highest]).all()
