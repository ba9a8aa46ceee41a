"""Fit of raters given the totals, and halo: against all ratings with the same total, one by one; and what is named."""

import numpy as np
import pytest

import spectral_irt as si
from ratings import given_totals, ratings, simulated
from spectral_irt.estimators.linear_design import LinearDesign
from spectral_irt.inference.facets import level_verdict
from spectral_irt.inference.fit.halo import halo_of_facet
from spectral_irt.inference.fit.level_fit import FUNCTIONS, level_fit, level_sums, variance_of_sums
from spectral_irt.inference.fit.moments import GivenScore
from spectral_irt.inference.scores.reliability import marginal_reliability
from spectral_irt.persons.abilities import abilities, with_severities


def by_enumeration(calibration, responses, ability, level, n_levels):
    """Sums of (x - E)^2 - V, of that over V, and of theta (x - E) by level; their variances, and what estimated
    parameters leave of both; V and n by level."""
    design, layout = calibration.facets.design.toarray(), calibration.layout
    value, v_sum, n = np.zeros((FUNCTIONS, n_levels)), np.zeros(n_levels), np.zeros(n_levels)
    variance, cross = np.zeros((FUNCTIONS, n_levels)), np.zeros((FUNCTIONS, n_levels, design.shape[1]))
    information, score = np.zeros((design.shape[1],) * 2), np.zeros(design.shape[1])
    for person, (rated, x, p, patterns) in enumerate(given_totals(calibration, responses)):
        if len(patterns) == 1:
            continue
        mean = p @ patterns
        v = p @ (patterns - mean) ** 2
        own_level = np.eye(n_levels)[level[rated]]

        def functions(x, mean=mean, v=v, theta=ability[person]):
            return np.array([(x - mean) ** 2 - v, (x - mean) ** 2 / v - 1, theta * (x - mean)])

        def scores(x, rated=rated):
            """1{x >= k} summed over the ratings, by parameter."""
            passed = np.zeros(layout.n_entries)
            for item, c in zip(rated, x.astype(int), strict=True):
                passed[layout.first[item] : layout.first[item] + c] += 1
            return passed @ design

        every = np.array([functions(one) @ own_level for one in patterns])  # patterns x functions x levels
        g = np.array([scores(one) for one in patterns])
        g = g - p @ g
        value += functions(x) @ own_level
        v_sum += v @ own_level
        n += own_level.sum(axis=0)
        score += scores(x) - p @ np.array([scores(one) for one in patterns])
        variance += np.einsum("t,tfl->fl", p, every**2)
        cross += np.einsum("t,tfl,tp->flp", p, every, g)
        information += g.T @ (p[:, None] * g)
    taken = cross @ np.linalg.pinv(information, rcond=1e-10, hermitian=True)
    return value - taken @ score, variance - np.einsum("flp,flp->fl", taken, cross), value, v_sum, n


@pytest.mark.parametrize("categories", [2, 3])
@pytest.mark.parametrize("by", ["rater", "item"])
def test_sums_of_levels_and_what_parameters_take_up_are_those_of_all_ratings_with_the_same_total(categories, by):
    """With a prior (one rater of few ratings), so that the scores of the parameters are not zero."""
    meets = [[0, 1], [1, 2], [0, 2], [0, 1, 2]] * 8 + [[3, 0]]
    responses, *_ = simulated(meets, 2, categories, seed=1)
    calibration = si.SpectralPartialCredit().fit(responses).calibration_
    ability = abilities(responses, calibration.thresholds).ability
    facets = calibration.facets.facets
    labels, level = facets.column("rater") if by == "rater" else (facets.items, facets.item)
    expected, variance, value, v, n = by_enumeration(calibration, responses, ability, level, len(labels))
    given = GivenScore.of(responses, calibration.facets.likeliest)
    found = level_sums(responses, given, ability, level, len(labels), calibration.facets.design)
    np.testing.assert_allclose(found.value, expected, atol=1e-8)
    np.testing.assert_allclose(found.variance, variance, atol=1e-8)
    np.testing.assert_allclose(found.v, v)
    table = level_fit(responses, given, ability, level, len(labels), calibration.facets.design)
    np.testing.assert_allclose(table["infit"], 1 + value[0] / v)
    np.testing.assert_allclose(table["outfit"], 1 + value[1] / n)
    seen = variance[2] > 1e-9
    assert (np.isnan(table["discrimination"]) == ~seen).all()  # the rater of one person has no slope
    np.testing.assert_allclose((table["discrimination"][seen] - 1) * variance[2][seen], expected[2][seen], atol=1e-7)


def test_of_many_parameters_each_level_has_its_own_severity_taken_off(monkeypatch):
    """Where pairs of ratings would take long: much the same, for the ratings of a rater hardly depend on each other."""
    rng = np.random.default_rng(1)
    responses, *_ = simulated([rng.choice(30, 4, replace=False).tolist() for _ in range(300)], 3, 3, seed=1)
    calibration = si.SpectralPartialCredit().fit(responses).calibration_
    study = si.Analysis(calibration, responses)
    exact = study.facet()
    monkeypatch.setattr("spectral_irt.inference.fit.level_fit.PAIR_WORK", 0)
    own = si.Analysis(calibration, responses).facet()
    np.testing.assert_allclose(own["infit_conditional"], exact["infit_conditional"])
    np.testing.assert_allclose(own["infit_conditional_z"], exact["infit_conditional_z"], atol=0.35)
    own_z, exact_z = ((one["discrimination"] - 1) / one["discrimination_se"] for one in (own, exact))
    np.testing.assert_allclose(own_z, exact_z, atol=0.35)
    # Three ratings of a person by one rater, twelve in all: as if independent, se would be a tenth smaller.
    np.testing.assert_allclose(own["discrimination_se"], exact["discrimination_se"], rtol=0.05)


def test_sums_of_a_persons_ratings_vary_less_than_independent_ones():
    """Given the total, by enumeration: a few percent too small where thresholds are wide, and far from independent."""
    responses, *_ = simulated([[0, 1], [1, 2], [0, 1, 2]] * 12, 3, 3, seed=3)
    calibration = si.SpectralPartialCredit().fit(responses).calibration_
    code = calibration.facets.facets.column("rater")[1]
    exact, found, independent = [], [], []
    for rated, _, p, patterns in given_totals(calibration, responses):
        if len(patterns) == 1:
            continue
        level = code[rated]
        mean = p @ patterns
        v = p @ (patterns - mean) ** 2
        of_sum = variance_of_sums(np.zeros(len(rated), dtype=int), level, v)
        for rater in np.unique(level):
            total = patterns[:, level == rater].sum(axis=1)
            exact.append(p @ total**2 - (p @ total) ** 2)
            found.append(of_sum[level == rater].sum())
            independent.append(v[level == rater].sum())
    np.testing.assert_allclose(found, exact, rtol=0.12)
    assert sum(found) == pytest.approx(sum(exact), rel=0.05)
    assert sum(independent) > 1.4 * sum(exact)


@pytest.mark.parametrize("missing", [0.0, 0.25])
def test_halo_compares_sums_of_ratings_with_all_ratings_of_the_same_total(missing):
    """Sums of two ratings or more count; all of them tell about severities."""
    rng = np.random.default_rng(2)
    complete, *_ = simulated([[0, 1], [1, 2], [0, 2], [0, 1, 2]] * 8, 3, 3, seed=6)
    person, item, x = complete.answers()
    some = rng.random(len(x)) >= missing
    item, rater = complete.facets.codes[item[some]].T
    responses = ratings(person[some], item, {"rater": rater}, x[some])
    calibration = si.SpectralPartialCredit(regularization=0).fit(responses).calibration_
    code = calibration.facets.facets.column("rater")[1]
    found = halo_of_facet(calibration, responses, "rater")
    square, own, scaled, information = np.zeros((4, 3))
    for rated, x, p, patterns in given_totals(calibration, responses):
        if len(patterns) == 1:
            continue
        met = np.unique(code[rated])
        sums = np.array([patterns[:, code[rated] == r].sum(axis=1) for r in met])
        mean = sums @ p
        v = ((sums - mean[:, None]) ** 2) @ p
        information[met] += v
        several = np.bincount(code[rated], minlength=3)[met] > 1
        square[met] += several * (np.array([x[code[rated] == r].sum() for r in met]) - mean) ** 2
        own[met] += several * v
        scaled[met] += several * v * v.sum() / max(len(met) - 1, 1)
    taken = scaled / information * (2 / 3)  # two severities of three are free
    np.testing.assert_allclose(found.of_level, 1 + (square - own + taken) / own)
    assert found.ratio == pytest.approx(1 + (square - own + taken).sum() / own.sum())
    assert found.variance == pytest.approx(max((square - own + taken).sum(), 0) / scaled.sum())


def with_halo(sd, seed, n=200, raters=8, items=4):
    """Ratings by two raters a person, each with an impression of the person."""
    rng = np.random.default_rng(seed)
    meets = np.array([rng.choice(raters, 2, replace=False) for _ in range(n)])
    theta = rng.normal(0, 1.3, n)
    level = theta[:, None] + rng.normal(0, sd, meets.shape) - rng.normal(0, 0.5, raters)[meets]
    logit = level[:, :, None, None] - np.linspace(-1, 1, items)[:, None] - np.array([-1.0, 0, 1])
    p = np.exp(np.concatenate([np.zeros((*logit.shape[:3], 1)), np.cumsum(logit, axis=3)], axis=3))
    p /= p.sum(axis=3, keepdims=True)
    x = (rng.random((*p.shape[:3], 1)) > np.cumsum(p, axis=3)).sum(axis=3)
    person, which, item = np.indices(x.shape).reshape(3, -1)
    return person, item, meets[person, which], x.ravel()


def test_halo_is_named_where_it_is_and_errors_of_persons_and_reliability_allow_for_it():
    person, item, rater, x = with_halo(0.9, 1)
    responses = ratings(person, item, {"rater": rater}, x)
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    assert study._halo("rater").ratio > 1.5
    assert "halo" in [finding.code for finding in study.findings()]
    plain = abilities(responses, study.calibration.thresholds)
    without = with_severities(plain, responses, study.calibration.thresholds, study.calibration.facets)
    found = study.abilities("wle")
    assert np.mean(found.se**2 / without.se**2) == pytest.approx(study._halo("rater").ratio, abs=0.25)
    model = si.SpectralPartialCredit().fit(responses := ratings(*with_halo(0.0, 2)[:2], *_facet(with_halo(0.0, 2))))
    other = model.analyse(responses)
    assert "halo" not in [finding.code for finding in other.findings()]
    assert study.reliability().eap_reliability < other.reliability().eap_reliability - 0.08


def _facet(rows):
    return {"rater": rows[2]}, rows[3]


def test_one_rating_of_each_person_by_a_rater_has_no_halo():
    responses, *_ = simulated([[0, 1], [1, 2], [0, 2]] * 40, 1, 4, seed=1)
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    assert study._halo("rater") is None
    assert study.record()["facets"]["rater"]["halo"] is None
    assert study.facet()["halo"].is_nan().all()
    assert study.facet()["infit_conditional_z"].is_finite().all()


def test_reliability_of_ratings_allows_for_the_errors_of_severities():
    """Posterior means differ by what severities are off by as well: 1 - (v + a) / s^2 with a mean posterior variance v,
    the mean variance a that errors of severities add, and the variance s^2 of the population."""
    rng = np.random.default_rng(8)
    meets = rng.permutation(np.repeat(np.arange(40), 6)).reshape(-1, 2)
    meets = meets[meets[:, 0] != meets[:, 1]].tolist()
    responses, *_ = simulated(meets, 1, 4, seed=9)  # one item: no halo
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    given = abilities(responses, study.calibration.thresholds, "eap")
    added = np.mean(study.abilities("eap").se ** 2 - given.se**2)
    population = marginal_reliability(responses, study.calibration.thresholds)
    expected = population.reliability - added / population.sd**2
    assert study.reliability().eap_reliability == pytest.approx(expected, abs=1e-6)
    assert population.reliability - expected > 0.03  # raters of six persons: it matters


def test_what_halo_adds_to_the_errors_of_persons():
    """w times the squared variance of the ratings of each rater, over the squared information: person by person."""
    responses, *_ = simulated([[0, 1], [1, 2], [0, 1, 2]] * 10, 2, 3, seed=3)
    made = si.SpectralPartialCredit().fit(responses).calibration_
    found = abilities(responses, made.thresholds)
    without = with_severities(found, responses, made.thresholds, made.facets).se ** 2
    added = with_severities(found, responses, made.thresholds, made.facets, {"rater": 0.3}).se ** 2 - without
    code = made.facets.facets.column("rater")[1]
    cumulated = made.layout.cumulated(made.thresholds)
    for person, row in enumerate(responses.to_dense()):
        of_rater = np.zeros(3)
        for v in np.flatnonzero(~np.isnan(row)):
            p = np.exp(np.arange(3) * found.ability[person] - cumulated[v])
            p /= p.sum()
            of_rater[code[v]] += p @ np.arange(3) ** 2 - (p @ np.arange(3)) ** 2
        assert added[person] == pytest.approx(0.3 * np.sum(of_rater**2) / of_rater.sum() ** 2)


def test_an_erratic_and_a_central_rater_are_named_and_their_status_says_so():
    """Rater 0 gives half of the ratings at random, rater 1 the middle categories; six others as the model says."""
    rng = np.random.default_rng(4)
    responses, *_ = simulated([rng.choice(8, 3, replace=False).tolist() for _ in range(300)], 4, 4, seed=2, sd=2.0)
    person, item, x = responses.answers()
    rater = responses.facets.codes[item, 1]
    x = np.where((rater == 0) & (rng.random(len(x)) < 0.5), rng.integers(0, 4, len(x)), x)
    middle = np.clip(x, 1, 2)
    x = np.where((rater == 1) & (rng.random(len(x)) < 0.7), middle, x)
    data = ratings(person, responses.facets.codes[item, 0], {"rater": rater}, x)
    study = si.SpectralPartialCredit().fit(data).analyse(data)
    table = study.facet()
    assert table["misfit"].to_list()[:2] == table["status"].to_list()[:2] == ["underfit", "central"]
    assert set(table["status"].to_list()[2:]) <= {"ok", "overfit"}  # beside rater 0 others are more regular
    named = {finding.code: finding.items for finding in study.findings()}
    assert named["erratic_levels"] == (0,)
    assert named["central_levels"] == (1,)
    assert table["discrimination"][1] < 0.8


ALL_LINKED = np.zeros(8)  # the subset of eight raters


def slopes_alone(slope, se):
    """Raters of whom nothing is odd but their slopes, the average of which is 1."""
    n = len(slope)
    return {
        "infit_conditional": np.ones(n),
        "infit_conditional_z": np.zeros(n),
        "discrimination": np.asarray(slope),
        "discrimination_se": np.broadcast_to(se, n),
    }


def test_flat_and_steep_raters_are_named_from_a_fifth_and_a_quarter_on_where_that_is_certain():
    """Slopes are misfit where they are so far from their median, 1 here, and both tails of the normal are below 2.5%
    (Holm)."""
    slope = np.array([0.75, 0.85, 1.0, 1.0, 1.0, 1.2, 1.3, 0.75])
    fit = slopes_alone(slope, np.append(np.full(7, 0.04), 0.12))  # the last is about two standard errors from 1
    assert level_verdict(fit, ALL_LINKED).tolist() == ["central", "", "", "", "", "", "extreme ratings", ""]
    fit["infit_conditional"] = np.where(slope == 0.75, 1.4, 1.0)
    fit["infit_conditional_z"] = np.where(slope == 0.75, 6.0, 0.0)
    assert level_verdict(fit, ALL_LINKED)[0] == "underfit"  # ratings at random are flat as well


def test_raters_who_are_steeper_than_the_average_because_others_are_flat_are_not_named():
    slope = np.array([0.4, 0.4, 0.4, 1.36, 1.36, 1.36, 1.36, 1.36])
    assert level_verdict(slopes_alone(slope, 0.04), ALL_LINKED).tolist() == ["central"] * 3 + [""] * 5


def test_a_flat_rater_makes_those_of_the_own_subset_steep_and_no_others():
    """Slopes given the totals average one in each subset: beside a flat rater two others look steep."""
    fit = slopes_alone(np.array([1.0, 0.95, 1.05, 0.0, 1.55, 1.45]), 0.08)
    assert level_verdict(fit, np.array([0, 0, 0, 1, 1, 1])).tolist() == ["", "", "", "central", "", ""]
    assert level_verdict(fit, np.zeros(6)).tolist() == ["", "", "", "central", "extreme ratings", "extreme ratings"]


def test_one_rater_a_person_tells_no_slope():
    """All ratings of a person by one rater: their sum is the total, whatever the slope."""
    responses, *_ = simulated([[k % 3] for k in range(90)], 4, 4, seed=11)
    table = si.SpectralPartialCredit().fit(responses).analyse(responses).facet()
    assert table["discrimination"].is_nan().all()
    assert table["discrimination_se"].is_nan().all()
    assert set(table["status"]) == {"unlinked"}


@pytest.mark.parametrize("n_raters", [5, 10, 30])
def test_slopes_name_a_rater_in_one_of_forty_clean_data_sets(n_raters):
    """Slopes differ from their average, 1, by normal errors of known variance. The error of their median is in no
    standard error: a test against it names somebody in 6 to 10 of a hundred."""
    rng = np.random.default_rng(n_raters)
    deviation = rng.normal(0, 0.3, (2000, n_raters))
    deviation -= deviation.mean(axis=1, keepdims=True)
    se = 0.3 * np.sqrt(1 - 1 / n_raters)
    one_subset = np.zeros(n_raters)
    named = [bool((level_verdict(slopes_alone(1 + one, se), one_subset) != "").any()) for one in deviation]
    assert np.mean(named) == pytest.approx(0.025, abs=0.0105)  # three standard errors


def test_ratings_in_subsets_are_not_pooled():
    """Two sets of raters without a common person: what is said of people is about those of the first subset."""
    first, *_ = simulated([[0, 1], [1, 2], [0, 2]] * 30, 3, 3, seed=1)
    meets = [[0, 1], [1, 2], [0, 2]] * 30 + [[3, 4]] * 50
    both, *_ = simulated(meets, 3, 3, seed=1)
    study = si.SpectralPartialCredit().fit(both).analyse(both)
    persons = study.tables()["persons"]
    assert persons["subset"].tolist() == [1] * 90 + [2] * 50
    assert study.facet()["subset"].to_list() == [1, 1, 1, 2, 2]
    record = study.record()
    ability = persons["ability"][:90]
    assert record["persons"]["mean"] == pytest.approx(ability.mean())
    assert record["persons"]["compared"] == study.reliability().n_persons == 90
    assert record["facets"]["rater"]["sd"] == pytest.approx(np.std(study.facet()["severity"].to_numpy()[:3], ddof=1))
    means = [ability.mean()] * 3 + [persons["ability"][90:].mean()] * 2
    items = study.calibration.facets.items
    for rater in range(5):
        theta = means[rater] - study.facet()["severity"][rater]
        assert study.facet()["fair_average"][rater] == pytest.approx(items.expected_score([theta]).mean())
    (said,) = (finding for finding in study.findings() if finding.code == "disjoint_subsets")
    assert "persons" in said.sentence
    assert "subset 1, 90 of 140 people" in " ".join(study.summary().split())
    # Items that share raters with nobody, but all persons: their measures can be compared.
    person, item, x = first.answers()
    code = first.facets.codes[item]
    nested = ratings(person, code[:, 0], {"rater": np.where(code[:, 0] == 0, code[:, 1], 3 + code[:, 1])}, x)
    one = si.SpectralPartialCredit().fit(nested).analyse(nested)
    assert set(one.tables()["persons"]["subset"]) == {1}
    assert one._comparable() is None


@pytest.mark.parametrize("kind", ["weights", "rating scale", "two facets", "missing", "anchored", "right or wrong"])
def test_every_kind_of_ratings_has_a_fit_that_one_is_expected_of(kind):
    rng = np.random.default_rng(8)
    categories = 2 if kind == "right or wrong" else 3
    responses, *_ = simulated([rng.choice(5, 2, replace=False).tolist() for _ in range(150)], 4, categories, seed=11)
    person, item, x = responses.answers()
    code = responses.facets.codes[item]
    known, estimator = {}, si.SpectralPartialCredit()
    if kind == "two facets":
        seen = {"rater": code[:, 1], "day": rng.integers(0, 3, (150, 5))[person, code[:, 1]]}
        responses = ratings(person, code[:, 0], seen, x)
    elif kind == "missing":
        some = rng.random(len(x)) < 0.6
        responses = ratings(person[some], code[some, 0], {"rater": code[some, 1]}, x[some])
    elif kind == "weights":
        known = {"weights": rng.choice([0.5, 2.0], responses.n_persons)}
    elif kind == "anchored":
        known = {"design": LinearDesign(anchors={"rater": {0: 0.0}})}
    elif kind == "rating scale":
        estimator = si.SpectralRatingScale()
    elif kind == "right or wrong":
        estimator = si.SpectralRasch()
    study = estimator.fit(responses, **known).analyse(responses)
    for name in study.facets:
        table = study.facet(name)
        assert table["infit_conditional"].mean() == pytest.approx(1, abs=0.1)
        assert table["infit_conditional_z"].abs().max() < 3.5
        assert table["status"].is_in(["ok", "anchored"]).all()
    items = study.tables()["items"]
    assert np.mean(items["infit_conditional"]) == pytest.approx(1, abs=0.05)
    assert np.abs(items["infit_conditional_z"]).max() < 3.5
    assert 0 < study.reliability().eap_reliability < 1
    assert np.isfinite(study.abilities().se).all()
    study.summary()
    record = study.record()["facets"]
    assert all(record[name]["expected"] == pytest.approx(record[name]["agreement"], abs=0.08) for name in ("rater",))


def test_the_fit_that_is_shown_is_the_one_of_which_1_is_expected():
    """Two ratings a person: conventional mean squares are far below 1, and those given the totals are shown."""
    responses, *_ = simulated([[k % 6, (k + 1) % 6] for k in range(300)], 2, 4, seed=3)
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    raters = study.facet("rater")
    items = study.tables()["items"]
    assert raters["infit"].mean() < 0.75
    text = study.summary(width=140)
    assert "infit, outfit: 1 expected" in text
    lines = [line.split() for line in text.splitlines()]
    for table, label in ((raters, "rater"), (items, "item")):
        fits = zip(table[label], table["infit_conditional"], table["outfit_conditional"], strict=True)
        for name, infit, outfit in fits:
            shown = [f"{infit:.2f}", f"{outfit:.2f}"]
            rows = [line for line in lines if line[:1] == [str(name)]]
            assert any(row[k : k + 2] == shown for row in rows for k in range(len(row)))


def test_the_bundled_ratings_have_halo_and_it_is_said():
    """Essays in four domains: a rater's ratings of one essay hang together, and errors of persons allow for it."""
    responses = si.datasets.load_writing().take_persons(np.arange(60))
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    found = study.record()["facets"]["rater"]
    assert found["halo"] == pytest.approx(1.67, abs=0.1)
    warnings = [one for one in study.findings() if one.severity == "warning"]
    assert any("halo" in one.sentence for one in warnings)
