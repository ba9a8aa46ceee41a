"""What is said about raters, against plain loops over the ratings."""

import itertools
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

import spectral_irt as si
from ratings import given_totals, ratings, simulated
from spectral_irt.analysis.facets import facet_lines
from spectral_irt.conditional.exact_likelihood import ExactLikelihood
from spectral_irt.errors import OptionError
from spectral_irt.estimators.linear_design import LinearDesign
from spectral_irt.inference.agreement import agreement
from spectral_irt.inference.facet_findings import are_no_cause_of_halo, facet_findings
from spectral_irt.inference.facets import facet_table
from spectral_irt.inference.fit.halo import Halo, halo_of_facet
from spectral_irt.inference.fit.mean_squares import item_statistics
from spectral_irt.inference.interactions import interactions
from spectral_irt.persons.abilities import abilities, with_severities


@pytest.fixture(scope="module", params=[2, 4])
def study(request):
    rng = np.random.default_rng(1)
    meets = [rng.choice(5, 3, replace=False).tolist() for _ in range(150)]
    responses, *_ = simulated(meets, 3, request.param, seed=4)
    kind = si.SpectralRasch if request.param == 2 else si.SpectralPartialCredit
    calibration = kind().fit(responses).calibration_
    return calibration, responses, si.Analysis(calibration, responses).persons()["ability"].to_numpy()


def each(calibration, responses, ability):
    """Every rating: person, virtual item, x, and the probabilities of all categories."""
    layout = calibration.layout
    for person, row in enumerate(responses.to_dense()):
        for v in np.flatnonzero(~np.isnan(row)):
            beta = calibration.thresholds[layout.first[v] : layout.first[v] + layout.max_score[v]]
            weight = np.exp(np.concatenate([[0], np.cumsum(ability[person] - beta)]))
            yield person, v, row[v], weight / weight.sum()


def fair(calibration, theta):
    """The mean over items of the rating that a rater of severity zero is expected to give."""
    items, total = calibration.facets.items, 0.0
    for first, highest in zip(items.layout.first, items.layout.max_score, strict=True):
        weight = np.exp(np.concatenate([[0], np.cumsum(theta - items.thresholds[first : first + highest])]))
        total += np.arange(highest + 1) @ weight / weight.sum()
    return total / len(items.labels)


def test_fit_and_averages_of_raters_and_items(study):
    calibration, responses, ability = study
    facets = calibration.facets.facets
    rater = facets.column("rater")[1]
    table = facet_table(calibration, responses, ability, "rater")
    items = item_statistics(responses, calibration.thresholds, ability, facets.item, 3)
    own = {name: np.zeros((4, 5)) for name in ("rater", "item")}  # n, z2, square, variance
    total = np.zeros((2, 5))
    for person, v, x, p in each(calibration, responses, ability):
        k = np.arange(len(p))
        mean, variance = p @ k, p @ k**2 - (p @ k) ** 2
        total[:, rater[v]] += 1, x
        if not responses.informative[person]:
            continue
        for name, level in (("rater", rater[v]), ("item", facets.item[v])):
            own[name][:, level] += 1, (x - mean) ** 2 / variance, (x - mean) ** 2, variance
    np.testing.assert_array_equal(table["n"], total[0])
    np.testing.assert_allclose(table["observed_average"], total[1] / total[0])
    np.testing.assert_allclose(table["infit"], own["rater"][2] / own["rater"][3], rtol=1e-8)
    np.testing.assert_allclose(table["outfit"], own["rater"][1] / own["rater"][0], rtol=1e-8)
    np.testing.assert_allclose(items["infit"], own["item"][2, :3] / own["item"][3, :3], rtol=1e-8)
    np.testing.assert_allclose(items["outfit"], own["item"][1, :3] / own["item"][0, :3], rtol=1e-8)
    theta = ability[np.isfinite(ability)].mean() - table["severity"]
    np.testing.assert_allclose(table["fair_average"], [fair(calibration, one) for one in theta], rtol=1e-9)


def test_averages_are_in_the_codes_of_the_ratings():
    rows = [(p, i, r, 1 + (p + i * r) % 4) for p in range(40) for i in range(3) for r in range(3)]
    data = pl.DataFrame(rows, schema=["person", "item", "rater", "response"], orient="row")
    responses = si.read(data, facets=["rater"])
    found = si.SpectralPartialCredit().fit(responses).analyse(responses).facet("rater")
    means = data.group_by("rater", maintain_order=True).agg(pl.col("response").mean())
    np.testing.assert_allclose(found["observed_average"], means["response"])
    assert found["fair_average"].is_between(1, 4).all()


def test_agreement_of_raters_who_met(study):
    """What was observed, pair by pair; and what is expected given the totals, over all ratings with the same total."""
    calibration, _, _ = study
    meets = [[0, 1], [1, 2], [0, 2]] * 8
    responses, *_ = simulated(meets, 2, calibration.layout.widest + 1, seed=3)
    calibration = si.SpectralPartialCredit().fit(responses).calibration_
    facets = calibration.facets.facets
    rater = facets.column("rater")[1]
    total = np.zeros((3, 3))
    for rated, x, p, patterns in given_totals(calibration, responses):
        for a, b in itertools.combinations(range(len(rated)), 2):
            if facets.item[rated[a]] == facets.item[rated[b]]:
                expected = p @ (patterns[:, a] == patterns[:, b])
                for v in (rated[a], rated[b]):
                    total[:, rater[v]] += 1, x[a] == x[b], expected
    found = agreement(calibration, responses, "rater")
    np.testing.assert_array_equal(found["pairs"], total[0])
    np.testing.assert_allclose(found["agreement"], total[1] / total[0])
    np.testing.assert_allclose(found["expected"], total[2] / total[0], rtol=1e-9)


@pytest.mark.parametrize("codes", [[10, 15, 30], [1, 2, 4], [5, 9]])
def test_averages_are_means_of_the_codes_in_the_file(codes):
    """Codes with gaps, and of right/wrong ratings: observed averages are those of the file, fair ones by plain sums."""
    rng = np.random.default_rng(3)
    rows = [
        (
            person,
            f"item {item}",
            f"rater {rater}",
            int(rng.choice(codes, p=np.roll(np.ones(len(codes)), item) / len(codes))),
        )
        for person in range(60)
        for rater in rng.choice(4, 2, replace=False)
        for item in range(3)
    ]
    data = pl.DataFrame(rows, schema=["person", "item", "rater", "rating"], orient="row")
    responses = si.read(data, facets=["rater"], ordered=True)
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    table = study.facet("rater")
    for rater, average in zip(table["rater"], table["observed_average"], strict=True):
        assert average == pytest.approx(data.filter(pl.col("rater") == rater)["rating"].mean())
    ability, items = study.abilities().ability, study.calibration.facets.items
    persons = study.tables()["persons"]["fair_average"]
    for theta, average in ((ability.mean() - table["severity"][1], table["fair_average"][1]), (ability[7], persons[7])):
        total = 0.0
        for first in items.layout.first:
            weight = np.exp(np.append(0, np.cumsum(theta - items.thresholds[first : first + len(codes) - 1])))
            total += codes @ weight / weight.sum()
        assert average == pytest.approx(total / 3)


def test_what_is_said_of_a_facet_as_a_whole(study):
    """Separation, agreement of all pairs, people with one rater only, and fair averages of people: the record."""
    calibration, responses, ability = study
    ours = si.Analysis(calibration, responses)
    table, record = facet_table(calibration, responses, ability, "rater"), ours._facet_record()["rater"]
    mean, error = sum(table["severity"]) / 5, sum(se**2 for se in table["se"]) / 5
    variance = sum((one - mean) ** 2 for one in table["severity"]) / 4
    assert record["sd"] == pytest.approx(variance**0.5)
    assert record["reliability"] == pytest.approx(1 - error / variance)
    assert record["separation"] == pytest.approx(((variance - error) / error) ** 0.5)
    assert record["strata"] == pytest.approx((4 * record["separation"] + 1) / 3)
    met = agreement(calibration, responses, "rater")
    pairs = met["pairs"].sum() // 2
    assert (record["levels"], record["subsets"], record["pairs"]) == (5, 1, pairs)
    assert ours.reliability().items.n == 3
    assert record["agreement"] == pytest.approx(met["agreement"] @ met["pairs"] / (2 * pairs))
    assert record["expected"] == pytest.approx(met["expected"] @ met["pairs"] / (2 * pairs))
    assert record["kappa"] == pytest.approx((record["agreement"] - record["expected"]) / (1 - record["expected"]))
    (line,) = (text for _, text in facet_lines(ours))
    assert f", strata {record['strata']:.2f}; equal severities" in line
    assert f"(Rasch-kappa {record['kappa']:z.2f})" in line
    facets = calibration.facets.facets
    persons = ours.tables()["persons"]
    np.testing.assert_allclose(persons["fair_average"], [fair(calibration, one) for one in persons["ability"]])
    assert "one_rater" not in [finding.code for finding in ours._facet_findings()]
    met = {person: set() for person in range(150)}
    some = responses.take_items(np.flatnonzero(facets.codes[:, 1] < 3))  # without two of the raters
    for person, item, _ in zip(*some.answers(), strict=True):
        met[person].add(int(some.facets.codes[item, 1]))
    single = sum(len(raters) == 1 for raters in met.values())
    told = facet_findings(some, "rater", table, interactions(calibration, responses, "rater"))
    (said,) = (finding.sentence for finding in told if finding.code == "one_rater")
    assert said.startswith(f"{single:,} of {sum(map(bool, met.values()))} people")


def test_fit_statistics_stand_as_standard_normal_deviates_of_their_mean_squares(study):
    """Wilson and Hilferty's cube root, with the variances that the model has, rating by rating."""
    calibration, responses, ability = study
    rater = calibration.facets.facets.column("rater")[1]
    table, sums = facet_table(calibration, responses, ability, "rater"), np.zeros((5, 4))
    for person, v, _, p in each(calibration, responses, ability):
        if responses.informative[person]:
            away = np.arange(len(p)) - p @ np.arange(len(p))
            variance, fourth = p @ away**2, p @ away**4
            sums[rater[v]] += 1, variance, fourth - variance**2, fourth / variance**2 - 1
    for name, spread in (("infit", np.sqrt(sums[:, 2]) / sums[:, 1]), ("outfit", np.sqrt(sums[:, 3]) / sums[:, 0])):
        expected = (np.cbrt(table[name]) - 1) * 3 / spread + spread / 3
        np.testing.assert_allclose(table[f"{name}_z"], expected, rtol=1e-7)


def are_score_tests(found, calibration, responses, a, **near):
    """Against a model with the columns of `a`: z of every combination by the whole information."""
    facets, layout, beta = calibration.facets.facets, calibration.layout, calibration.facets.likeliest
    likelihood = ExactLikelihood(responses)
    information, gradient = likelihood.information(beta), likelihood.at(beta).gradient
    inner = np.linalg.pinv(a.T @ information @ a, rcond=1e-10)
    for v in range(responses.n_items):
        c = (layout.item == v).astype(float)
        cross = c @ information @ a
        left = c @ information @ c - cross @ inner @ cross
        rater, item = facets.codes[v, 1], facets.codes[v, 0]
        (row,) = np.flatnonzero((found["rater"] == rater) & (found["item"] == item))
        assert found["z"][row] == pytest.approx(c @ gradient / np.sqrt(left), **near)


def test_interactions_are_tested_against_the_design_that_was_fitted():
    """A rating scale; two raters whose severities are known, and take up no information; nothing beyond all pairs."""
    rng = np.random.default_rng(1)
    meets = [rng.choice(5, 3, replace=False).tolist() for _ in range(150)]
    responses, *_ = simulated(meets, 3, 4, seed=4)
    scale = si.SpectralRatingScale().fit(responses).calibration_
    a = LinearDesign().of(responses, scale=True).matrix.toarray()
    are_score_tests(interactions(scale, responses, "rater"), scale, responses, a, rel=0.003)
    design = LinearDesign(anchors={"rater": {1: 0.9, 3: -0.9}})
    known = si.SpectralPartialCredit().fit(responses, design=design).calibration_
    made = LinearDesign().of(responses)
    a = np.delete(made.matrix.toarray(), made.term("rater").columns.start + np.array([1, 3]), axis=1)
    are_score_tests(interactions(known, responses, "rater"), known, responses, a, rel=0.003)
    design = LinearDesign("items + rater + items:rater")
    whole = si.SpectralPartialCredit().fit(responses, design=design).calibration_
    assert np.isnan(interactions(whole, responses, "rater")["z"]).all()


def test_interactions_are_score_tests(study):
    calibration, responses, _ = study
    found = interactions(calibration, responses, "rater")
    are_score_tests(found, calibration, responses, LinearDesign().of(responses).matrix.toarray(), rel=0.05, abs=0.02)
    np.testing.assert_allclose(found["p"], 2 * stats.norm.sf(np.abs(found["z"])))
    assert (np.diff(found["p"]) >= 0).all()
    groups = np.array(["a", "b"] * 75, dtype=object)
    by_group = interactions(calibration, responses, "rater", dict(zip(responses.persons.tolist(), groups, strict=True)))
    z = {(r, g): z for r, g, z in zip(*(by_group[name] for name in ("rater", "group", "z")), strict=True)}
    np.testing.assert_allclose([z[r, "a"] for r in range(5)], [-z[r, "b"] for r in range(5)], atol=0.02)


def test_an_interaction_that_is_there_is_found_first():
    meets = [[0, 1, 2]] * 300
    responses, *_ = simulated(meets, 3, 3, seed=9)
    person, item, x = responses.answers()
    x[np.flatnonzero((item == 4) & (x > 0))[::2]] -= 1  # item 1 by rater 1 loses a threshold
    same = {name: getattr(responses, name) for name in ("persons", "items", "thresholds")}
    changed = replace(si.Responses.from_codes(person, item, x, **same), facets=responses.facets)
    found = interactions(si.SpectralPartialCredit().fit(changed).calibration_, changed, "rater")
    assert (found["rater"][0], found["item"][0]) == (1, 1)
    assert found["bias"][0] > 0.5
    assert found["p_holm"][0] < 0.001


def test_severe_raters_and_raters_of_few_ratings_are_named():
    meets = [[k % 4, (k + 1) % 4] for k in range(200)] + [[4, 0]]
    responses, *_ = simulated(meets, 2, 4, seed=3, severity=[-3.0, 1, 1, 1, 0])
    calibration = si.SpectralPartialCredit().fit(responses).calibration_
    ability = si.Analysis(calibration, responses).persons()["ability"].to_numpy()
    table = facet_table(calibration, responses, ability, "rater")
    pairs = interactions(calibration, responses, "rater")
    found = {finding.code: finding for finding in facet_findings(responses, "rater", table, pairs)}
    assert found["severe_levels"].items[0] == 0
    assert found["few_ratings"].items == (4,)


@pytest.mark.parametrize(("z", "said"), [(2.2, False), (2.4, True), (-6.0, False)])
def test_halo_is_said_above_its_one_sided_level(study, z, said):
    """One-sided at 1%: above 2.33. Sums that vary less than expected are no halo."""
    calibration, responses, ability = study
    table = facet_table(calibration, responses, ability, "rater")
    pairs = interactions(calibration, responses, "rater")
    none = np.full(5, np.nan)
    halo = Halo(ratio=1.44, z=z, n=300, variance=0.25, of_level=none, of_level_z=none)
    sentences = [one.sentence for one in facet_findings(responses, "rater", table, pairs, halo) if one.code == "halo"]
    assert len(sentences) == said
    if said:
        assert "vary 1.44 times" in sentences[0]
        assert "sd of 0.50 logits" in sentences[0]


def test_halo_of_one_unpredictable_rater_is_said_of_that_rater(study):
    calibration, responses, ability = study
    table = facet_table(calibration, responses, ability, "rater")
    table = table | {"misfit": np.array(["", "underfit", "", "", ""], dtype=object)}
    pairs = interactions(calibration, responses, "rater")
    of_level = np.array([1.0, 2.7, 2.1, 0.9, 0.4])
    of_level_z = np.array([0.1, 6.8, 4.1, -0.6, -5.0])
    halo = Halo(ratio=1.28, z=2.5, n=300, variance=0.09, of_level=of_level, of_level_z=of_level_z)
    (finding,) = (one for one in facet_findings(responses, "rater", table, pairs, halo) if one.code == "halo")
    assert "clear in 2 of 5 (Holm, 5%): 1, 2." in finding.sentence
    assert finding.remedy.startswith("Look at 1 first: ratings that misfit")


@pytest.mark.parametrize(("z_of_others", "severity"), [(2.3, "note"), (2.4, "warning")])
def test_sums_that_vary_because_of_misfitting_raters_are_no_halo(study, z_of_others, severity):
    calibration, responses, ability = study
    table = facet_table(calibration, responses, ability, "rater")
    table = table | {"misfit": np.array(["", "underfit", "central", "overfit", ""], dtype=object)}
    assert are_no_cause_of_halo(table).tolist() == [True, False, False, True, True]
    pairs = interactions(calibration, responses, "rater")
    nobody = np.full(5, np.nan)
    halo = Halo(ratio=1.28, z=5.2, n=300, variance=0.09, of_level=nobody, of_level_z=nobody)
    others = halo._replace(ratio=1.06, z=z_of_others)
    told = facet_findings(responses, "rater", table, pairs, halo, others)
    (finding,) = (one for one in told if one.code == "halo")
    assert finding.severity == severity
    assert "vary 1.28 times as much as the model expects (z = 5.2" in finding.sentence
    if severity == "note":
        assert "because of 1 (underfit) and 2 (central): without, 1.06 times (z = 2.3). So no halo" in finding.sentence
    else:
        assert "(halo)" in finding.sentence
        assert "Without 1 (underfit) and 2 (central) they vary 1.06 times as much." in finding.sentence


def test_halo_among_some_raters_is_that_of_their_ratings_alone():
    """A rater whom nobody else met adds nothing to it, and those who are left out count as if they had not rated."""
    meets = [[k % 4, (k + 1) % 4] for k in range(80)]
    with_one_alone, *_ = simulated([*meets, *([[4]] * 20)], 3, 3, seed=5, severity=[0.3, -0.2, 0.1, -0.2, 0.0])
    calibration = si.SpectralPartialCredit(regularization=0).fit(with_one_alone).calibration_
    of_four = halo_of_facet(calibration, with_one_alone, "rater", np.array([True] * 4 + [False]))
    whole = halo_of_facet(calibration, with_one_alone, "rater")
    assert (of_four.n, of_four.variance) == (whole.n, pytest.approx(whole.variance, rel=1e-6))
    np.testing.assert_allclose(of_four.of_level[:4], whole.of_level[:4], rtol=1e-6)
    assert np.isnan(of_four.of_level[4])
    assert halo_of_facet(calibration, with_one_alone, "rater", np.array([True] + [False] * 4)) is None


def test_a_central_rater_is_no_halo_and_partners_are_not_steep():
    """Ratings without any impression, where one of three raters uses two middle categories only."""
    responses, *_ = simulated([[0, 1, 2]] * 60 + [[3, 4, 5]] * 60, 4, 6, seed=12, sd=1.5)
    person, place, x = responses.answers()
    item, rater = responses.facets.codes[place].T
    x = np.where(rater == 4, np.clip(x, 2, 3), x)
    changed = ratings(person, item, {"rater": rater}, x)
    study = si.SpectralPartialCredit().fit(changed).analyse(changed)
    assert study.facet()["misfit"].to_list()[3:] == ["", "central", ""]
    (finding,) = (one for one in study.findings() if one.code == "halo")
    assert finding.severity == "note"
    assert "4 (central): without, " in finding.sentence


def test_a_rater_who_met_nobody_of_a_group_has_no_row_with_it():
    responses, *_ = simulated([[0, 1]] * 30 + [[1, 2]] * 30, 2, 3, seed=3)
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    found = study.interactions("rater", groups=["a"] * 30 + ["b"] * 30)
    assert set(found.select("rater", "group").iter_rows()) == {(0, "a"), (1, "a"), (1, "b"), (2, "b")}
    assert (found["n"] > 0).all()


def test_anchored_severities_have_no_reliability():
    responses, *_ = simulated([[0, 1]] * 30 + [[1, 2]] * 30, 2, 3, seed=3)
    anchors = LinearDesign(anchors={"rater": {0: -0.5, 1: 0.0, 2: 0.5}})
    study = si.SpectralPartialCredit().fit(responses, design=anchors).analyse(responses)
    assert study._facet_record()["rater"]["reliability"] is None
    (line,) = (text for _, text in facet_lines(study))
    assert line.startswith("3 raters, severity -0.50 to 0.50 logits; exact agreement")


def test_of_two_raters_each_halo_of_one_shows_in_the_other(study):
    """Given the total of two raters, their sums vary alike: who has it cannot be told from these persons alone."""
    calibration, rated_before, ability = study
    table = facet_table(calibration, rated_before, ability, "rater")
    pairs = interactions(calibration, rated_before, "rater")
    z = np.array([4.0, 3.5, 0.0, 0.0, 0.0])
    halo = Halo(ratio=1.5, z=5.0, n=300, variance=0.2, of_level=1 + z / 4, of_level_z=z)
    said = "Where a person has two raters, halo of one shows in the sums of the other, too."
    for raters in (2, 3):
        rows = [(f"p{p}", item, 1 + (p + r) % 5, p % 2) for p in range(40) for r in range(raters) for item in "ab"]
        rated = si.read(pl.DataFrame(rows, ["person", "item", "rater", "response"], orient="row"), facets="rater")
        (finding,) = (one for one in facet_findings(rated, "rater", table, pairs, halo) if one.code == "halo")
        assert "clear in 2 of 5 (Holm, 5%): 0, 1." in finding.sentence
        assert (said in finding.sentence) == (raters == 2)


def test_levels_and_interactions_are_named_from_their_limits_on(study):
    """Severities by the larger of a logit and three errors; misfit by kind; the clearest interaction by its side."""
    calibration, responses, ability = study
    table = facet_table(calibration, responses, ability, "rater")
    pairs = interactions(calibration, responses, "rater")
    labels = list(table["rater"])
    table["severity"] = np.array([1.1, -1.1, 0.9, -2.0, 0.0])
    table["se"] = np.array([0.3, 0.4, 0.1, 0.5, 0.1])
    table["misfit"] = np.array(["underfit", "overfit", "central", "extreme ratings", ""], dtype=object)
    table["n"] = np.array([9, 10, 50, 50, 8])
    pairs["p_holm"] = np.append([0.04, 0.049], np.full(len(pairs["p"]) - 2, 0.05))
    for bias, side in ((0.8, "0.80 logits more severe"), (-0.7, "0.70 logits more lenient")):
        pairs["bias"][0] = bias
        found = {one.code: one for one in facet_findings(responses, "rater", table, pairs)}
        assert found["severe_levels"].items == (labels[0], labels[3])
        assert found["erratic_levels"].items == (labels[0],)
        assert found["regular_levels"].items == (labels[1],)
        assert found["central_levels"].items == (labels[2],)
        assert found["extreme_levels"].items == (labels[3],)
        assert found["few_ratings"].items == (labels[0], labels[4])
        assert f"2 of {len(pairs['p'])} combinations" in found["interactions"].sentence
        assert side in found["interactions"].sentence
    with pytest.raises(OptionError, match="none: name their columns when reading"):
        si.SpectralRasch().fit(lsat := si.datasets.load_lsat()).analyse(lsat).facet()


def test_tables_of_ratings_leave_out_what_is_about_answers_and_people_without_a_measure(study):
    calibration, responses, _ = study
    ours = si.Analysis(calibration, responses)
    asked = ours.parts(persons=True)
    tables = ours.tables(replace(asked, fit=True, item_analysis=True))
    assert set(tables) == set(ours.tables(asked))
    assert len({len(column) for column in tables["items"].values()}) == 1
    nobody = responses.take_persons(responses.scores == responses.scores.max() + 1)
    assert len(si.Analysis(calibration, nobody, ability="ml").facet()) == 5


def test_what_is_about_items_says_so(study):
    calibration, responses, _ = study
    ours = si.Analysis(calibration, responses)
    grouped = (lambda: ours.dif(["a", "b"] * 75), lambda: ours.clustered(["a", "b", "c"] * 50))
    for ask in (ours.item_fit, ours.ranking, ours.to_bank, ours.checks, ours.model_test, ours.hausman, *grouped):
        with pytest.raises(OptionError, match="these are ratings"):
            ask()
    with pytest.raises(OptionError, match="keep ratings as the table"):
        responses.save("packed")
    assert ours.facet().columns[:3] == ["rater", "severity", "se"]
    with pytest.raises(OptionError, match="'judge' is no facet"):
        ours.facet("judge")


def test_errors_of_people_allow_for_those_of_severities():
    """J C J' by differences: how far abilities move with each parameter."""
    responses, *_ = simulated([[0, 1], [1, 2], [0, 2]] * 20, 3, 4, seed=2)
    made = si.SpectralPartialCredit().fit(responses).calibration_
    found = abilities(responses, made.thresholds, "ml")
    wider = with_severities(found, responses, made.thresholds, made.facets)
    a = made.facets.design.toarray()
    eta, some = np.linalg.lstsq(a, made.thresholds, rcond=None)[0], ~found.extreme
    moved = [abilities(responses, a @ (eta + step), "ml").ability[some] for step in 1e-5 * np.eye(len(eta))]
    slopes = (np.array(moved).T - found.ability[some][:, None]) / 1e-5
    expected = found.se[some] ** 2 + np.einsum("ij,jk,ik->i", slopes, made.facets.spread, slopes)
    np.testing.assert_allclose(wider.se[some] ** 2, expected, rtol=1e-4)
    few = replace(made.facets, spread=np.diag(made.facets.spread))
    alone = with_severities(found, responses, made.thresholds, few).se[some] ** 2
    expected = found.se[some] ** 2 + slopes**2 @ few.spread
    np.testing.assert_allclose(alone, expected, rtol=1e-4)


def test_errors_of_posterior_means_allow_for_those_of_severities():
    """The same under a prior that is known, which does not move: by differences."""
    responses, *_ = simulated([[0, 1], [1, 2], [0, 2]] * 20, 2, 3, seed=5)
    made = si.SpectralPartialCredit().fit(responses).calibration_
    prior = {"prior_mean": 0.2, "prior_sd": 1.1}
    found = abilities(responses, made.thresholds, "eap", **prior)
    added = with_severities(found, responses, made.thresholds, made.facets).se ** 2 - found.se**2
    a = made.facets.design.toarray()
    eta = np.linalg.lstsq(a, made.thresholds, rcond=None)[0]
    moved = [abilities(responses, a @ (eta + step), "eap", **prior).ability for step in 1e-4 * np.eye(len(eta))]
    slopes = (np.array(moved).T - found.ability[:, None]) / 1e-4
    expected = np.einsum("ij,jk,ik->i", slopes, made.facets.spread, slopes)
    some = ~found.extreme
    np.testing.assert_allclose(added[some] / expected[some], 1, atol=0.1)  # it was 2 to 3 times as large
    assert np.mean(added / expected) == pytest.approx(1, abs=0.03)


def test_interactions_among_many_raters_are_about_those_of_the_whole_information(monkeypatch):
    rng = np.random.default_rng(5)
    responses, *_ = simulated([rng.choice(60, 3, replace=False).tolist() for _ in range(300)], 4, 3, seed=8)
    calibration = si.SpectralPartialCredit().fit(responses).calibration_
    whole = interactions(calibration, responses, "rater")
    monkeypatch.setattr("spectral_irt.inference.interactions.DENSE_PARAMETERS", 0)
    each = interactions(calibration, responses, "rater")
    key = lambda table: np.lexsort((table["item"], table["rater"]))  # noqa: E731
    np.testing.assert_allclose(each["se"][key(each)], whole["se"][key(whole)], rtol=0.002)
    np.testing.assert_allclose(each["z"][key(each)], whole["z"][key(whole)], rtol=0.002, atol=1e-9)
    groups = np.array(["a", "b"] * 150, dtype=object)
    each = interactions(calibration, responses, "rater", groups)
    monkeypatch.undo()
    whole = interactions(calibration, responses, "rater", groups)
    np.testing.assert_allclose(np.sort(each["z"]), np.sort(whole["z"]), rtol=0.03, atol=0.01)
