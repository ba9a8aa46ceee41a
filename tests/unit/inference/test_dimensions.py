"""What items share beyond one ability: sums over pairs, residuals, dimensionality, Martin-Löf."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

import spectral_irt as si
from drawn import drawn
from spectral_irt.conditional.draw import draws_given_score
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.dimensions import dimensionality as module
from spectral_irt.inference.dimensions import evidence, findings, pairs
from spectral_irt.inference.dimensions.contrast import variance_explained
from spectral_irt.inference.dimensions.dimensionality import dimensionality
from spectral_irt.inference.dimensions.local_dependence import DrawnPairs, normal_test, share_as_large
from spectral_irt.inference.dimensions.pairs import pair_sums, with_gaps
from spectral_irt.inference.dimensions.residual_table import ResidualTable
from spectral_irt.persons import abilities
from split import in_blocks


def look(x, ordered=False):
    responses = si.Responses.from_wide(x, ordered=ordered)
    estimator = si.SpectralPartialCredit if ordered else si.SpectralRasch
    return dimensionality(estimator(se="none").fit(responses).calibration_, responses)


@pytest.mark.slow
@pytest.mark.parametrize(("m", "seen", "severity"), [(30, 1.0, "warning"), (30, 0.5, "warning"), (12, 1.0, "note")])
def test_two_abilities_are_two_sides_of_a_contrast_whose_size_decides(m, seen, severity):
    rng = np.random.default_rng(1)
    theta = rng.multivariate_normal([0, 0], [[1, 0.3], [0.3, 1]], 1500)
    x = drawn(rng, theta[:, np.arange(m) % 2] - rng.normal(size=m))
    x[rng.random(x.shape) > seen] = np.nan
    found = look(x)
    assert found.two_dimensions
    assert len(set(np.sign(found.loadings[::2]))) == 1
    np.testing.assert_array_equal(np.sign(found.loadings[::2]), -np.sign(found.loadings[1::2]))
    finding = next(each for each in found.findings if each.code == "second_dimension")
    assert finding.severity == severity
    assert (found.strength < findings.MATERIAL_CONTRAST) == (severity == "note")


def test_testlets_are_groups():
    rng = np.random.default_rng(2)
    theta = rng.normal(size=(2000, 1)) + np.repeat(rng.normal(0, 1.2, (2000, 3)), 4, axis=1)
    found = look(drawn(rng, theta - rng.normal(size=12)))
    groups = findings.groups_of_pairs(12, *found.dependence.dependent_pairs[:2])
    assert sorted(group.tolist() for group in groups) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert "in 3 groups" in found.findings[0].sentence
    assert found.findings[0].severity == "warning"  # a set of items, whatever its strongest pair


@pytest.mark.parametrize("categories", [2, 4])
def test_one_copied_pair_is_a_pair_and_no_dimension(categories):
    x = si.simulate.partial_credit(1000, 15, categories=categories, seed=6).responses.to_dense()
    x[:500, 9] = x[:500, 4]
    found = look(x, ordered=categories > 2)
    first, second, q3 = found.dependence.dependent_pairs
    assert (first.tolist(), second.tolist()) == ([4], [9])
    assert [finding.code for finding in found.findings] == ["dependent_items"]
    assert found.findings[0].items == (4, 9)
    said = f"Local dependence in 1 pair of items (residual correlation Q3 = {q3[0]:.2f}): 4, 9 ({q3[0]:.2f})."
    assert found.findings[0].sentence == said
    study = si.SpectralPartialCredit().fit(x).analyse(x)
    pair = study.local_dependence().table().row(0, named=True)
    assert (pair["item_1"], pair["item_2"], pair["dependent"]) == (4, 9, True)


def test_difficulties_from_elsewhere_are_no_dependence():
    """Anchors that are off by half a logit either way: displaced, but no more alike for that."""
    data = si.simulate.rasch(3000, 20, seed=4)
    made = si.SpectralRasch(se="none").fit(data.responses).calibration_
    shifted = made.replace(thresholds=made.difficulty + np.where(np.arange(20) % 2, 0.5, -0.5))
    found = dimensionality(shifted, data.responses)
    assert not found.findings


def test_people_and_items_are_sampled(monkeypatch):
    monkeypatch.setattr(module, "MOST_PEOPLE", 300)
    monkeypatch.setattr(module, "MOST_ITEMS", 10)
    data = si.simulate.rasch(900, 30, design="popularity", n_responses=15_000, seed=5)
    found = dimensionality(si.SpectralRasch(se="none").fit(data.responses).calibration_, data.responses)
    assert found.sampled
    assert 100 < found.n_people <= 300
    often = np.argsort(-data.responses.item_counts, kind="stable")[:10]
    assert sorted(found.items.tolist()) == sorted(data.responses.items[often].tolist())


def test_too_few_people_or_items_have_nothing_to_tell():
    few, short = (si.simulate.rasch(n, m, seed=1).responses for n, m in ((25, 10), (800, 3)))
    assert look(few.to_dense()) is None
    assert look(short.to_dense()) is None
    with pytest.raises(DesignError, match="people have a score between the ends of the scale"):
        si.SpectralRasch().fit(few).analyse(few).local_dependence()
    with pytest.raises(DesignError, match="fewer than 4 items"):
        si.SpectralRasch().fit(short).analyse(short).dimensionality()


@pytest.mark.slow
def test_p_values_keep_their_level():
    """Of 10 data sets under the model of each design at most 5% + 3 standard errors below 5%, for pairs and for the
    contrast; of all designs 5% + 2.5 standard errors. The level in a complete test of ten items is in `validation`."""
    designs = ({"n_persons": 2000, "n_items": 5}, {"n_persons": 600, "n_items": 40, "design": "sampled", "p": 0.4})
    shares = []
    for design in designs:
        found = [look(si.simulate.rasch(**design, seed=seed).responses.to_dense()) for seed in range(10)]
        p = np.array([(each.pairs_p, each.contrast_p) for each in found])
        shares.append(np.mean(p < 0.05, axis=0))
    error = np.sqrt(0.05 * 0.95 / 10)
    assert np.max(shares) <= 0.05 + 3 * error
    assert np.all(np.mean(shares, axis=0) <= 0.05 + 2.5 * error / np.sqrt(len(designs)))


@pytest.mark.slow
@pytest.mark.parametrize("ordered", [False, True])
def test_unequal_slopes_are_no_second_dimension(ordered):
    rng = np.random.default_rng(12)
    theta, slope = rng.normal(size=(1500, 1)), np.repeat([0.5, 1.5], 10)
    x = drawn(rng, slope * (theta - rng.normal(size=20)))
    if ordered:
        x = x + drawn(rng, slope * (theta - rng.normal(size=20) - 1)) * x
    found = look(x, ordered)
    assert found.equal_slopes[0] < 0.001
    assert found.by_slopes
    assert not found.two_dimensions
    assert not found.dependent
    assert [finding.code for finding in found.findings] == ["unequal_slopes"]
    assert "Items differ in slope" in found.findings[0].sentence


def test_a_minor_dimension_of_a_quarter_of_the_items_is_not_taken_for_flat_items():
    rng = np.random.default_rng(13)
    theta = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 1]], 1500)
    found = look(drawn(rng, theta[:, (np.arange(20) % 4 == 0).astype(int)] - rng.normal(size=20)))
    assert found.two_dimensions
    np.testing.assert_array_equal(np.sign(found.loadings) == np.sign(found.loadings[0]), np.arange(20) % 4 == 0)


BETA = np.array([-1.0, 0.3, 0.3, 2.0, -0.2])  # two are equal
OFF = ~np.eye(5, dtype=bool)


def given_score(beta, score):
    """Mean and covariance of the answers given their sum, over all of them."""
    every = np.array([x for x in product((0, 1), repeat=len(beta)) if sum(x) == score], dtype=float)
    weight = np.exp(-every @ beta)
    weight /= weight.sum()
    mean = weight @ every
    return mean, (every - mean).T @ ((every - mean) * weight[:, None])


def test_pair_sums_are_those_of_enumeration():
    """Residuals centered by a Newton step; their products less the covariance, in each half."""
    rng = np.random.default_rng(3)
    x = drawn(rng, rng.normal(size=(40, 1)) - BETA)
    x[rng.random((40, 5)) < 0.2] = np.nan
    e, cov, half = np.zeros(x.shape), np.zeros((40, 5, 5)), np.arange(40) % 2
    for person, row in enumerate(x):
        seen = np.flatnonzero(~np.isnan(row))
        score = int(np.nansum(row))
        if 0 < score < len(seen):
            mean, cov[person][np.ix_(seen, seen)] = given_score(BETA[seen], score)
            e[person, seen] = row[seen] - mean
    v = np.einsum("lii->li", cov)
    free = e - v * (e.sum(axis=0) / v.sum(axis=0))
    shared = np.einsum("li,lj->lij", free, free) - cov
    for k, found in enumerate(pair_sums(si.Responses.from_wide(x), with_gaps(BETA), half)):
        wanted = shared[half == k].sum(axis=0)
        np.testing.assert_allclose(found.sums.shared[OFF], wanted[OFF], atol=1e-4)  # difficulties were moved by 1e-5


def test_pair_sums_of_ordered_answers_by_enumeration():
    data = si.simulate.partial_credit(150, thresholds=[[-0.5, 0.7], [0.2], [-1.0, 0.3, 1.1], [0.0, 0.4]], seed=3)
    answers, layout = data.responses, data.responses.thresholds
    beta = si.ConditionalPartialCredit().fit(answers).thresholds_  # where residuals add to zero for every item
    every = np.array(list(product(*(range(k + 1) for k in layout.max_score))), dtype=float)
    weight = np.exp(-layout.cumulated(beta)[np.arange(4), every.astype(int)].sum(axis=1))
    shared = np.zeros((4, 4))
    for row in answers.to_dense()[answers.informative]:
        same = every.sum(axis=1) == row.sum()
        p = weight[same] / weight[same].sum()
        mean = p @ every[same]
        away = every[same] - mean
        shared += np.outer(row - mean, row - mean) - away.T @ (away * p[:, None])
    halves = np.array([half.sums for half in pair_sums(answers, beta, np.arange(150) % 2)])
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(halves[:, 0].sum(axis=0)[off], shared[off], atol=1e-6)


def test_the_series_of_long_records_gives_the_exact_covariances(monkeypatch):
    data = si.simulate.partial_credit(200, 14, categories=4, seed=5)
    x = data.responses.to_dense()
    x[np.random.default_rng(1).random(x.shape) < 0.2] = np.nan
    answers, half = si.Responses.from_wide(x, ordered=True), np.arange(200) % 2
    series = sum(each.sums.shared for each in pair_sums(answers, data.thresholds, half))
    monkeypatch.setattr(pairs, "LONG", np.inf)
    exact = sum(each.sums.shared for each in pair_sums(answers, data.thresholds, half))
    # The standard error of S is about 10: its z is right to 0.001.
    np.testing.assert_allclose(series, exact, atol=0.01)
    assert np.abs(series - exact).max() > 0


def test_variance_is_that_of_simulation():
    """20,000 people of score 2 on 5 items: the model's variance of e_i e_j and what is seen agree."""
    rng = np.random.default_rng(0)
    every = np.array([x for x in product((0, 1), repeat=5) if sum(x) == 2], dtype=float)
    weight = np.exp(-every @ BETA)
    x = every[rng.choice(len(every), 20_000, p=weight / weight.sum())]
    halves = np.array(
        [half.sums for half in pair_sums(si.Responses.from_wide(x), with_gaps(BETA), np.arange(len(x)) % 2)]
    )
    mean, cov = given_score(BETA, 2)
    e = every - mean
    products = np.einsum("li,lj->lij", e, e)
    exact = (np.einsum("l,lij->ij", weight / weight.sum(), products**2) - cov**2)[OFF]
    found = halves[:, 1].sum(axis=0)[OFF] / len(x)
    assert np.all(found >= 0.9 * exact)
    np.testing.assert_allclose(found, exact, rtol=0.15)  # the covariance of rank one is not exact


def residuals(responses, beta, standardized=False):
    theta = abilities(responses, beta).ability
    p = 1 / (1 + np.exp(beta - theta[:, None]))
    r = responses.to_dense() - p
    return r / np.sqrt(p * (1 - p)) if standardized else r


def loop_correlations(r, min_people):
    m = r.shape[1]
    out, n = np.full((m, m), np.nan), np.zeros((m, m), dtype=int)
    for i, j in product(range(m), repeat=2):
        both = np.isfinite(r[:, i]) & np.isfinite(r[:, j])
        n[i, j] = both.sum()
        if n[i, j] >= min_people:
            out[i, j] = np.corrcoef(r[both, i], r[both, j])[0, 1]
    return out, n


@pytest.mark.parametrize("p", [1.0, 0.6, 0.05])
def test_correlations_equal_loops(p):
    data = si.simulate.rasch(400, 9, design="sampled", p=p, seed=1)
    table = ResidualTable.of(in_blocks(data.responses, 150), data.difficulty)
    q3, standardized = table.correlations(min_people=5)
    expected, counts = loop_correlations(residuals(data.responses, data.difficulty), 5)
    np.testing.assert_array_equal(table.n_both, counts)
    np.testing.assert_allclose(q3, expected, atol=1e-10)
    filled = np.nan_to_num(residuals(data.responses, data.difficulty, standardized=True))
    np.testing.assert_allclose(standardized, np.corrcoef(filled.T), atol=1e-10)


@pytest.mark.parametrize("seen", [1.0, 0.7])
def test_correlations_of_draws_are_those_of_the_drawn_tables(seen):
    """Each draw as a table of its own: the same abilities, residuals and correlations."""
    x = si.simulate.partial_credit(300, 6, categories=4, seed=3).responses.to_dense()
    x[np.random.default_rng(3).random(x.shape) > seen] = np.nan
    responses = si.Responses.from_wide(x, ordered=True)
    beta = si.SpectralPartialCredit(se="none").fit(responses).thresholds_
    table = ResidualTable.of(responses, beta)
    batches = list(table.correlations_of_draws(range(3), 7, 30))
    drawn = np.full((3, *x.shape), np.nan)
    for block in draws_given_score(responses, beta, draws=range(3), seed=7):
        drawn[:, block.persons[:, None], block.items] = block.categories
    drawn[:, np.isnan(x)] = np.nan
    for k, each in enumerate(drawn):
        e = np.where(np.isnan(x), np.nan, each - table.mean)
        np.testing.assert_allclose(batches[0].q3[k], loop_correlations(e, 30)[0], atol=1e-10)
        z = np.nan_to_num(e / table.sd)
        np.testing.assert_allclose(batches[0].standardized[k], np.corrcoef(z.T), atol=1e-10)


def mixed(responses):
    return responses.take_persons(np.flatnonzero(responses.informative))


def test_pairs_are_sorted_and_set_against_the_mean():
    data = si.simulate.rasch(300, 8, design="sampled", p=0.7, seed=2)
    fit = si.SpectralRasch().fit(data.responses)
    found = fit.analyse(data.responses).local_dependence()
    table = found.table()
    slow = loop_correlations(residuals(mixed(data.responses), fit.difficulty_), 30)[0][np.triu_indices(8, 1)]
    assert found.mean == pytest.approx(slow.mean())
    assert found.q3_star == pytest.approx(slow.max() - slow.mean())
    np.testing.assert_allclose(np.sort(table["q3"]), np.sort(slow))
    assert (np.diff(table["z"]) <= 0).all()
    assert (np.diff(table["p_adjusted"]) >= 0).all()
    assert table["q3_above_mean"].sum() == pytest.approx(0, abs=1e-10)
    # found with a probability of 80%: as far above the critical value as a normal is below its 80th percentile
    power = stats.norm.sf(found.test.z_critical - found.detectable / np.median(found.test.sd))
    assert power == pytest.approx(0.8)


def test_family_wise_p_values_by_definition():
    """Westfall and Young: the share of data sets whose largest z is as large; the observed one counts."""
    rng = np.random.default_rng(0)
    observed, drawn = rng.normal(size=5), rng.normal(size=(99, 5)) * np.arange(1, 6)
    test = DrawnPairs.of(observed, drawn).test(observed)
    every = np.vstack([observed, drawn])
    z = (every - every.mean(axis=0)) / every.std(axis=0)
    np.testing.assert_allclose(test.z, z[0])
    wanted = [(1 + (z[1:].max(axis=1) >= each).sum()) / 100 for each in z[0]]
    np.testing.assert_allclose(test.p, wanted)
    assert share_as_large(np.array([1.0, 2.0, 2.0, 3.0]), np.array([2.0, 4.0])).tolist() == [0.8, 0.2]
    q3_star = [row.max() - row.mean() for row in drawn]
    np.testing.assert_allclose(DrawnPairs.of(observed, drawn).q3_star, q3_star)
    assert test.z_critical == pytest.approx(np.quantile(z[1:].max(axis=1), 0.99))
    unsure = DrawnPairs.of(observed, drawn).test(observed, mean=np.full(5, 0.1), variance_factor=4.0)
    np.testing.assert_allclose(unsure.z, (observed - 0.1) / (2 * every.std(axis=0)))
    np.testing.assert_allclose(unsure.sd, 2 * every.std(axis=0))


def test_sums_of_large_samples_are_judged_by_the_normal_distribution_for_all_pairs():
    shared, variance, n = np.array([3.0, 30.0, -4.0]), np.array([4.0, 25.0, 16.0]), np.array([100.0, 400.0, 25.0])
    test = normal_test(shared, variance, n)
    np.testing.assert_allclose(test.z, [1.5, 6.0, -1.0])
    np.testing.assert_allclose(test.p, np.minimum(3 * stats.norm.sf([1.5, 6.0, -1.0]), 1))
    np.testing.assert_allclose(test.sd, [0.1, 0.05, 0.2])
    assert test.z_critical == pytest.approx(stats.norm.isf(0.01 / 3))


def test_contrasts_are_eigenvalues_of_the_correlations_and_shares_of_the_variance():
    """By a plain computation on the whole table: people of mixed scores, standardized residuals, raw variance."""
    data = si.simulate.rasch(300, 8, seed=3)
    fit = si.SpectralRasch().fit(data.responses)
    found = fit.analyse(data.responses).dimensionality()
    people = mixed(data.responses)
    values, vectors = np.linalg.eigh(np.corrcoef(residuals(people, fit.difficulty_, standardized=True).T))
    np.testing.assert_allclose(found.contrasts.eigenvalues, values[::-1][:5], atol=1e-10)
    loadings = np.abs(vectors[:, ::-1][:, :5]) * np.sqrt(values[::-1][:5])
    np.testing.assert_allclose(np.abs(found.contrasts.loadings), loadings, atol=1e-8)
    x = people.to_dense()
    expected = x - residuals(people, fit.difficulty_)
    total, left = ((x - x.mean()) ** 2).sum(), ((x - expected) ** 2).sum()
    by_persons, by_items = expected.mean(axis=1).var(), expected.mean(axis=0).var()
    table = dict(zip(*found.table()["part", "percent"].to_dict(as_series=False).values(), strict=True))
    assert table["total"] == 100
    assert table["unexplained"] == pytest.approx(100 * left / total)
    assert table["measures"] == pytest.approx(100 * (1 - left / total))
    assert table["persons"] == pytest.approx(table["measures"] * by_persons / (by_persons + by_items))
    assert table["items"] == pytest.approx(table["measures"] - table["persons"])
    assert table["contrast_1"] == pytest.approx(table["unexplained"] * values[-1] / 8)
    units = dict(zip(*found.table()["part", "eigenvalue"].to_dict(as_series=False).values(), strict=True))
    assert units["unexplained"] == pytest.approx(8)
    assert units["contrast_1"] == pytest.approx(values[-1])
    rows = found.loadings_table()
    assert rows.columns == ["item", *(f"contrast_{k}" for k in range(1, 6))]
    assert (np.diff(rows["contrast_1"]) <= 0).all()


def test_missing_responses_are_in_the_variance_explained():
    data = si.simulate.rasch(200, 6, design="sampled", p=0.6, seed=4)
    table = ResidualTable.of(data.responses, data.difficulty)
    shares = variance_explained(table)
    x, e = data.responses.to_dense(), residuals(data.responses, data.difficulty)
    assert shares["unexplained"] == pytest.approx(np.nansum(e**2) / np.nansum((x - np.nanmean(x)) ** 2))
    assert shares["measures"] == pytest.approx(shares["persons"] + shares["items"])


def test_one_verdict_everywhere():
    """Table, summary, findings and record agree, whatever is asked first."""
    table = si.simulate.partial_credit(150, 10, categories=5, ability_mean=-1.5, seed=4).responses.to_dense()
    copied = np.random.default_rng(8).random(150) < 0.6
    table[copied, 8] = np.minimum(table[copied, 3], np.nanmax(table[:, 8]))
    study = si.SpectralPartialCredit().fit(table).analyse(table)
    dependence = study.local_dependence()
    checks = study.checks()
    record = checks.to_dict()["shared"]
    assert checks.shared.dependence is dependence
    dependent = dependence.table().filter(dependence.table()["dependent"])
    assert [(row[0], row[1]) for row in dependent.rows()] == [(3, 8)]
    assert record["dependent_pairs"] == 1
    assert record["pairs_p"] == dependent["p_adjusted"][0]
    assert record["method"] == "draws given the score"
    assert record["q3_star"] > record["q3_star_critical"]
    assert "local dependence in 1 pair of items" in checks.sentence()
    assert any(finding.code == "dependent_items" and finding.items == (3, 8) for finding in checks.findings)


def test_ratings_and_adaptive_designs_are_left_out_with_a_reason():
    answers = si.simulate.rasch(400, 30, design="adaptive", length=12, seed=1).responses
    study = si.SpectralRasch().fit(answers, design="adaptive").analyse(answers)
    with pytest.raises(OptionError, match="these answers chose the items"):
        study.local_dependence()
    ratings = si.datasets.load_writing().take_persons(np.arange(60))
    with pytest.raises(OptionError, match="these are ratings"):
        si.SpectralPartialCredit().fit(ratings).analyse(ratings).dimensionality()


def test_draws_are_reproducible_and_may_be_asked_for():
    data = si.simulate.rasch(200, 6, seed=11).responses
    study = si.SpectralRasch().fit(data).analyse(data)
    one, same, other = (study.local_dependence(draws=200, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.test.p, same.test.p)
    assert (one.test.z != other.test.z).any()
    assert (one.draws, study.local_dependence().draws) == (200, evidence.MOST_DRAWS)
    large = study.local_dependence(draws=0)
    assert (large.draws, large.method) == (0, "normal distribution")
    np.testing.assert_array_equal(large.matrix, one.matrix)  # Q3 is the same, however it is judged
    assert np.isnan(large.q3_star_critical)
    assert evidence.affordable_draws(4000, 200) == 0
    assert evidence.FEWEST_DRAWS <= evidence.affordable_draws(2000, 40) < evidence.MOST_DRAWS


def test_of_very_many_items_those_answered_most_are_looked_at(monkeypatch):
    table = si.simulate.rasch(300, 12, seed=4).responses.to_dense()
    table[:150, ::2] = np.nan
    fit = si.SpectralRasch().fit(table)
    monkeypatch.setattr(module, "MOST_ITEMS", 6)
    some = fit.analyse(table).local_dependence()
    assert some.items.tolist() == [1, 3, 5, 7, 9, 11]
    monkeypatch.undo()
    table[:, 3] = 1  # no difficulty, and so left out
    found = si.SpectralRasch(regularization=0).fit(table).analyse(table).local_dependence()
    assert len(found.pairs[0]) == 55
    assert 3 not in found.items.tolist()


def test_a_dependent_pair_and_a_second_dimension_are_seen():
    table = si.simulate.rasch(800, 12, seed=8).responses.to_dense()
    copied = np.random.default_rng(8).random(800) < 0.3
    table[copied, 8] = table[copied, 3]
    rows = si.SpectralRasch().fit(table).analyse(table).local_dependence().table()
    assert rows["dependent"].to_list() == [k == 0 for k in range(66)]
    assert (rows["item_1"][0], rows["item_2"][0]) == (3, 8)
    first, second = (si.simulate.rasch(1000, 8, seed=seed).responses.to_dense() for seed in (1, 2))
    table = np.hstack([first, second])
    found = si.SpectralRasch().fit(table).analyse(table).dimensionality()
    assert found.contrasts.eigenvalues[0] > max(2.0, found.contrasts.critical[0])
    assert found.two_dimensions
    loading = found.loadings
    assert (np.sign(loading[:8]) == np.sign(loading[0])).all()
    assert (np.sign(loading[8:]) == -np.sign(loading[0])).all()


def test_bad_options():
    data = si.simulate.rasch(100, 5, seed=10).responses
    fit = si.SpectralRasch().fit(data)
    for options, text in [
        ({"min_people": 2}, "`min_people` is 2"),
        ({"sample": 5}, "`sample` is 5"),
        ({"draws": 20}, "`draws` is 20"),
        ({"seed": -1, "sample": 30}, "`seed` is -1"),
        ({"seed": -1}, "`seed` is -1"),
    ]:
        with pytest.raises(OptionError, match=text):
            fit.analyse(data).local_dependence(**options)
    with pytest.raises(DesignError, match="no two items have 200 people in common"):
        fit.analyse(data).local_dependence(min_people=200)


def test_martin_loef_by_definition():
    data = si.datasets.load_lsat()
    labels = dict(zip(data.items.tolist(), "aabba", strict=True))
    found = si.martin_loef(data, labels)
    table = data.to_dense()
    sets = [[0, 1, 4], [2, 3]]
    scores = np.stack([table[:, chosen].sum(axis=1) for chosen in sets])
    term = 0.0
    for columns, sign in ((scores, 1), (table.sum(axis=1)[None], -1)):
        for count in np.unique(columns, axis=1, return_counts=True)[1]:
            term += sign * count * np.log(count / 1000)
    parts = [si.ConditionalRasch().fit(table[:, chosen]).loglik_ for chosen in sets]
    expected = 2 * (term + sum(parts) - si.ConditionalRasch().fit(table).loglik_)
    assert found.statistic == pytest.approx(expected)
    assert found.df == 5
    assert [one.tolist() for one in found.items] == [data.items[chosen].tolist() for chosen in sets]


def test_martin_loef_finds_two_abilities():
    first, second = (si.simulate.rasch(2000, 5, seed=seed).responses.to_dense() for seed in (1, 2))
    assert si.martin_loef(np.hstack([first, second]), [0] * 5 + [1] * 5).p < 1e-6
    assert si.martin_loef(si.simulate.rasch(2000, 10, seed=1).responses).p > 0.01


@pytest.mark.parametrize(
    ("table", "split", "error", "text"),
    [
        ([[1, 0, 1], [0, np.nan, 1], [0, 1, 0]], "median", DesignError, "1 of 3 people miss an answer"),
        ([[1, 0, 1, 0], [1, 1, 0, 0], [1, 0, 0, 1]], "median", DesignError, "no finite difficulty: 0"),
        ([[1, 0, 1, 0], [0, 1, 0, 1]], "thirds", OptionError, "it can be 'median', 'mean'"),
        ([[1, 0, 1, 0], [0, 1, 0, 1]], [1, 1, 1, 2], OptionError, "'2' has fewer"),
        ([[1, 0, 1, 0], [0, 1, 0, 1]], [1, 1, 1, 1], OptionError, "only one set"),
        ([[1, 0, 1, 0], [0, 1, 0, 1]], [1, 2], OptionError, "a label for each of the 4 items"),
    ],
)
def test_martin_loef_bad_input(table, split, error, text):
    with pytest.raises(error, match=text):
        si.martin_loef(np.array(table, dtype=float), split)


def test_what_each_person_adds_along_a_direction():
    """The square of d' (e e' + c c') d without the diagonals, person by person, with c that has the right row sums."""
    rng = np.random.default_rng(8)
    seen = (rng.random((40, 6)) < 0.8).astype(float)
    seen[:, :3] = 1
    v = seen * rng.uniform(0.05, 0.25, seen.shape)
    e = seen * rng.normal(size=seen.shape)
    nothing = np.zeros_like(e)
    part = pairs.Residuals(e, v, nothing, nothing, seen, np.zeros(40, dtype=int), np.arange(40))
    c = pairs.rank_one(v, seen)
    # c_i (sum of the other c) = V_i: after three rounds to a percent.
    np.testing.assert_allclose(c * (c.sum(axis=1, keepdims=True) - c), v, rtol=0.05)
    direction = rng.normal(size=6)
    total = 0.0
    for one in range(40):
        added = 0.0
        for i in range(6):
            for j in range(6):
                if i != j:
                    product = e[one, i] * e[one, j] + c[one, i] * c[one, j]
                    added += direction[i] * direction[j] * product
        total += added**2
    assert pairs.variance_along(part, direction) == pytest.approx(total)


def test_two_scales_in_one_are_not_said_to_have_like_wording():
    rng = np.random.default_rng(5)
    theta = 1.5 * rng.normal(size=(800, 2))
    found = look(drawn(rng, theta[:, np.arange(16) % 2] - rng.normal(size=16) / 2))
    dependent, contrast = found.findings[:2]
    assert (dependent.code, contrast.code) == ("dependent_items", "second_dimension")
    assert len(found.dependence.dependent_pairs.q3) > 16
    assert "two scales" in dependent.remedy
    assert "wording" not in dependent.remedy.partition("rather")[0]
