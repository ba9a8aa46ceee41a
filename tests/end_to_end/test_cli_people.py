"""People, the fit of items and the design of a test, by `spectral-irt fit`."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from drawn import drawn
from end_to_end.tables import column, numbers, read_csv, record, wide
from spectral_irt import MarginalRasch, Responses, SpectralRasch, datasets, simulate
from spectral_irt.analysis import folder
from spectral_irt.analysis.cache import columns_of
from spectral_irt.inference.groups.cluster_errors import cluster_covariance
from spectral_irt.reading import read

pytestmark = pytest.mark.slow  # many short runs of whole commands, or of long updates

PERSONS = ["person", "n", "score", "ability", "se", "extreme", "infit", "outfit", "infit_z", "outfit_z"]


@pytest.fixture
def school(cli):
    """school.csv, 1,200 students: q4 is harder for boys, q8 is noisy, q10 steep; age is not an item."""
    rng = np.random.default_rng(0)
    n, m = 1200, 12
    sex = rng.integers(0, 2, n)
    difficulty = np.tile(np.linspace(-2, 2, m), (n, 1))
    difficulty[:, 3] += 0.9 * sex
    slope = np.ones(m)
    slope[[7, 9]] = 0.4, 2.0
    right = drawn(rng, slope * (rng.normal(0, 1.2, (n, 1)) - difficulty))
    people = {"student": [f"s{k}" for k in range(n)], "sex": np.array(["f", "m"])[sex], "age": rng.integers(9, 15, n)}
    wide("school.csv", right, **people)


@pytest.mark.parametrize("method", ["wle", "ml", "eap", "pv"])
def test_persons_are_those_of_python(cli, lsat, method):
    draws = {"draws": 3, "seed": 2} if method == "pv" else {}
    cli.ok(f"fit lsat.csv -o out --ability {'pv:3 --seed 2' if draws else method}")
    rows = read_csv("out/persons.csv")
    assert list(rows[0]) == [*PERSONS, *(["pv1", "pv2", "pv3"] if draws else [])]
    data = datasets.load_lsat()
    expected = columns_of(SpectralRasch().fit(data).analyse(data).persons, method, **draws)
    for name in ("ability", "se", "infit", "outfit", "infit_z", "outfit_z", *(["pv1", "pv3"] if draws else [])):
        np.testing.assert_array_equal(numbers(rows, name), expected[name])
    assert [row["extreme"] == "true" for row in rows] == expected["extreme"].tolist()
    assert [int(row["score"]) for row in rows] == expected["score"].tolist()
    found = record()
    assert found["persons"]["ability"] == method
    assert draws or found["reliability"]["method"] == method
    assert (found["persons"]["all_right"], found["persons"]["all_wrong"]) == (298, 3)
    assert found["persons"]["with_ability"] == (699 if method == "ml" else 1000)
    assert not draws or found["persons"]["plausible_values"] == {**draws, "given": []}


def test_plausible_values_know_the_groups(cli, school):
    cli.ok("fit school.csv -o out --ability pv --group sex --ignore age")
    with_groups = numbers("out/persons.csv", "pv1")
    assert record()["persons"]["plausible_values"]["given"] == ["sex"]
    cli.ok("fit school.csv -o out --ability pv --ignore sex,age")
    assert not np.array_equal(with_groups, numbers("out/persons.csv", "pv1"))


def test_reliability_is_in_the_record_and_on_the_terminal(cli):
    cli.ok("simulate -o a.csv --persons 500 --items 20 --seed 1")
    said = cli.ok("fit a.csv -o out")
    data = read("a.csv")
    expected = SpectralRasch().fit(data).analyse(data).reliability()
    found = record()
    assert found["reliability"]["persons"]["reliability"] == expected.persons.reliability
    assert found["reliability"]["kr20"] == expected.kr20
    assert found["reliability"]["eap_reliability"] == expected.eap_reliability
    assert f"people EAP reliability {expected.eap_reliability:.2f}, KR-20 {expected.kr20:.2f}; WLE separation" in said
    assert expected.n_lowest + expected.n_highest == 1
    assert "1 extreme score" in said
    assert found["model_test"]["test"] == "Score test, less able against more able half"
    assert 0 < found["model_test"]["p"] <= 1


def test_a_person_without_answers_is_kept(cli):
    table = np.vstack([simulate.rasch(60, 5, seed=3).responses.to_dense(), np.full(5, np.nan)])
    wide("a.csv", table, person=[*(f"p{k}" for k in range(60)), "nobody"])
    assert "1 with no answers" in cli.ok("fit a.csv -o out")
    last = read_csv("out/persons.csv")[-1]
    assert [last[name] for name in PERSONS[:6]] == ["nobody", "0", "0", "", "", "false"]
    assert record()["persons"]["without_answers"] == 1


def test_parquet_has_every_table(cli, lsat):
    cli.ok("fit lsat.csv -o out --all --parquet --rank 2 --scale 500,100")
    for name in ("items", "persons", "item_fit", "ranking"):
        table = pl.read_parquet(f"out/{name}.parquet")
        assert table.equals(pl.read_csv(f"out/{name}.csv", schema=table.schema)), name


def test_no_persons_and_no_fit(cli, lsat):
    assert "reliability" not in cli.ok("fit lsat.csv -o out --skip persons,fit")
    assert sorted(os.listdir("out")) == ["fit.json", "items.csv"]
    assert [record()[name] for name in ("persons", "reliability", "item_fit", "model_test")] == [None] * 4


def test_large_data_are_analyzed_only_when_something_is_written(cli, lsat, monkeypatch):
    monkeypatch.setattr(folder, "QUICK", 4999)
    for options, analyzed in (("", False), ("--skip none", True), ("-o out", True)):
        assert ("reliability" in cli.ok(f"fit lsat.csv {options}")) == analyzed


def test_fit_that_takes_long_is_left_out_and_said(cli, lsat, monkeypatch):
    cli.ok("fit lsat.csv -o out --all")
    monkeypatch.setattr(folder, "LONG", 10)
    assert "Say --skip none to have it all the same" in cli.ok("fit lsat.csv -o out --all")
    left = ["items.csv", "persons.csv", "scores.csv", "unexpected.csv", "guttman.csv", "item_analysis.csv", "fit.json"]
    assert sorted(os.listdir("out")) == sorted(left)  # the old item_fit.csv is stale
    assert record()["outputs"] == left
    cli.ok("fit lsat.csv -o out --skip none --all")
    assert Path("out/item_fit.csv").exists()


def test_item_fit_is_that_of_python_and_names_what_misfits(cli, school):
    said = cli.ok("fit school.csv -o out --all --ignore sex --ignore age")
    rows, items = read_csv("out/item_fit.csv"), read_csv("out/items.csv")  # items.csv has what the terminal shows
    assert list(items[0])[9:] == [*folder.OF_FIT, "item_rest", "misfit"]
    for name in (*folder.OF_FIT, "misfit"):
        assert [row[name] for row in rows] == [item[name] for item in items]
    assert column("out/items.csv", "item_rest") == column("out/item_analysis.csv", "item_rest")
    data = read("school.csv", ignore=["sex", "age"])
    expected = columns_of(SpectralRasch().fit(data).analyse(data).item_fit)
    assert list(rows[0]) == list(expected)
    assert [row["misfit"] for row in rows] == expected["misfit"].tolist()
    for name in list(expected)[2:-1]:
        np.testing.assert_array_equal(numbers(rows, name), expected[name])
    assert {row["item"]: row["misfit"] for row in rows if row["misfit"]} == {"q8": "underfit", "q10": "overfit"}
    assert "2 of 12 items misfit beyond chance: underfit 'q8'; overfit 'q10'" in said
    findings = {finding["code"]: finding for finding in record()["findings"]}
    assert findings["misfitting_items"]["items"] == ["q8", "q10"]
    assert "unequal_halves" in findings
    assert (record()["item_fit"]["underfit"], record()["item_fit"]["overfit"]) == (1, 1)


def test_critical_values(cli, school):
    said = cli.ok("fit school.csv -o out --all --ignore sex,age --critical 199:500")
    rows = read_csv("out/item_fit.csv")
    assert {"infit_conditional_low", "outfit_conditional_p", "item_rest_p_family", "misfit"} <= set(rows[0])
    assert rows[7]["misfit"] == "underfit"
    assert "(199 data sets drawn given the scores, adjusted for asking of 12 items)" in said
    assert record()["item_fit"]["draws"] == record()["fit_checks"]["shared"]["draws"] == 199
    persons = read_csv("out/persons.csv")
    assert sum(row["infit_p"] != "" for row in persons) <= 500
    contrasts = [row for row in read_csv("out/dimensionality.csv") if row["part"].startswith("contrast")]
    assert all(float(row["critical"]) > 1 and 0 < float(row["p"]) <= 1 for row in contrasts)


def test_the_rule_keeps_good_items_and_finds_bad_ones():
    """40 data sets of 20 items, half of them with slopes 0.5 and 2."""
    good, bad = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        slope = np.ones(20)
        if seed % 2:
            slope[:2] = 0.5, 2.0
        theta, beta = rng.normal(0, 1.2, (1000, 1)), rng.normal(0, 1, 20)
        data = Responses.from_wide(drawn(rng, slope * (theta - beta)))
        flagged = columns_of(SpectralRasch(se="none").fit(data).analyse(data).item_fit)["misfit"]
        if seed % 2:
            bad.append((flagged[0], flagged[1]))
        else:
            good.append(flagged != "")
    assert np.mean(good) < 0.01
    assert np.mean([pair == ("underfit", "overfit") for pair in bad]) > 0.85


# Adaptive administration, populations, clusters of people, weights.

ADAPTIVE = "--design adaptive --population-by school_year --clustered-by room"


@pytest.fixture
def adaptive(cli):
    """cat.csv: an adaptive test in two grades, in classes of thirty; a row for each answer."""
    grade = np.repeat([3, 4], 300)
    ability = (grade - 3.5) * 1.2 + np.random.default_rng(2).normal(size=600)
    responses = simulate.rasch(600, 40, design="adaptive", length=12, ability=ability, seed=1).responses
    person, item, right = responses.answers()
    table = {"person": person, "item": item, "response": right.astype(int)}
    pl.DataFrame({**table, "school_year": grade[person], "room": person // 30}).write_csv("cat.csv")
    return responses, grade, np.arange(600) // 30


def test_plain_fits_and_checks_say_that_something_is_wrong(cli, adaptive):
    for command in ("fit", "check"):
        said = cli.ok(f"{command} cat.csv")
        assert "items were chosen by the answers (adaptive test" in said
        assert "not from one normal population" in said
        assert "--design adaptive" in said
        assert "--population-by" in said
    assert "chosen by the answers" not in cli.ok("fit cat.csv --design adaptive --dry-run")


def test_adaptive_with_populations_and_clusters(cli, adaptive):
    responses, grade, room = adaptive
    said = cli.ok(f"fit cat.csv {ADAPTIVE} -o out")
    assert "MML estimate" in said
    assert "Populations of the 2 groups, mean and standard deviation: 3: " in said
    assert "Standard errors allow for 20 clusters by room" in said
    assert "takes the population of each group as normal" in said
    assert "fit of the items was left out" in said
    fit = MarginalRasch().fit(responses, groups=grade)
    np.testing.assert_allclose(numbers("out/items.csv", "difficulty"), fit.difficulty_, atol=1e-4)
    robust = cluster_covariance(fit.calibration_, responses, room, grade)
    np.testing.assert_allclose(numbers("out/items.csv", "se"), robust.se, rtol=1e-3)
    found = record()
    assert (found["design"], found["estimator"], found["item_fit"]) == ("adaptive", "mml", None)
    assert [one["group"] for one in found["populations"]] == ["3", "4"]
    assert found["populations"][1]["mean"] == pytest.approx(fit.population_["mean"][1], abs=1e-3)
    assert found["input"]["population_by"] == "school_year"
    assert not Path("out/dif.csv").exists()
    # The same with the columns in a table of the people.
    pl.read_csv("cat.csv").select("person", "item", "response").write_csv("bare.csv")
    pl.DataFrame({"person": range(600), "school_year": grade, "room": room}).write_csv("people.csv")
    cli.ok(f"fit bare.csv {ADAPTIVE} --group-file people.csv -o apart")
    assert Path("apart/items.csv").read_bytes() == Path("out/items.csv").read_bytes()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--design adaptive --estimator cml", "leave out --estimator cml"),
        ("--population-by school_year", "add --estimator mml, or --design adaptive"),
        ("--design random", "it can be 'fixed', 'adaptive'"),
        ("--design adaptive --chain-weights pairs", "has no --chain-weights"),
        ("--clustered-by nowhere", "nowhere"),
        ("--design adaptive --population-by room --anchors bank", "leave out --design"),
        ("--clustered-by room --anchors bank", "leave out --anchors"),
        ("--survey-weight room --anchors bank", "leave out --anchors"),
        ("--survey-weight room --estimator cml", "--survey-weight goes with the spectral estimator"),
    ],
)
def test_designs_that_do_not_go_together(cli, options, says):
    Path("a.csv").write_text("person,school_year,room,q1,q2,q3\na,3,1,1,0,1\nb,4,1,0,1,1\nc,3,2,1,1,0\nd,4,2,0,0,1\n")
    for more in ("", "--dry-run"):
        cli.refused(f"fit a.csv {options} {more}", says)


def test_weights_and_clusters_reach_items_groups_and_dif(cli):
    """The files of the command have the numbers of the same analysis in Python; without clusters they are others."""
    rng = np.random.default_rng(7)
    room, weight = np.repeat(np.arange(16), 20), rng.uniform(0.2, 5, 320).round(2)
    harder = 0.6 * rng.normal(size=(16, 6))
    x = (rng.random((320, 6)) < 1 / (1 + np.exp(harder[room] - rng.normal(size=(320, 1))))).astype(float)
    program = np.where(room % 2, "old", "new")
    wide("a.csv", x, name=[f"p{k}" for k in range(320)], wt=weight, room=[f"r{k}" for k in room], program=program)
    asked = "fit a.csv --survey-weight wt --group program"
    shown = cli.ok(f"{asked} --clustered-by room -o both --report both.html")
    assert "16 clusters by room" in " ".join(shown.split())
    cli.ok(f"{asked} --ignore room -o alone")
    study = SpectralRasch().fit(x, weights=weight).analyse(x).clustered(room.tolist())
    made, dif, means = study.calibration, study.dif(program.tolist()), study.group_means(program.tolist())
    np.testing.assert_allclose(numbers("both/items.csv", "se"), made.se, rtol=1e-6)
    np.testing.assert_allclose(
        numbers("both/items.csv", "ci_high"), made.difficulty + made.ci_width * made.se, rtol=1e-6
    )
    for name in ("se", "p", "df"):
        np.testing.assert_allclose(numbers("both/dif.csv", name), dif.contrasts[name], rtol=1e-5)
    for name in ("se", "latent_se", "clusters", "df"):
        np.testing.assert_allclose(numbers("both/groups.csv", name), means[name], rtol=1e-5)
    for file in ("items", "dif", "groups"):
        both, alone = (np.array(numbers(f"{folder}/{file}.csv", "se")) for folder in ("both", "alone"))
        assert np.abs(both / alone - 1).max() > 0.05


def test_weights_in_a_column(cli):
    data = simulate.rasch(200, 6, seed=4).responses
    weight = np.random.default_rng(3).uniform(0.2, 5, 200).round(2)
    names = [f"p{k}" for k in range(200)]
    wide("survey.csv", data.to_dense(), name=names, wt=weight)
    assert "People count by their weights" in cli.ok("fit survey.csv --survey-weight wt -o out")
    expected = SpectralRasch().fit(data, weights=weight)
    np.testing.assert_allclose(numbers("out/items.csv", "difficulty"), expected.difficulty_, atol=1e-9)
    np.testing.assert_allclose(numbers("out/items.csv", "se"), expected.se_, rtol=1e-6)
    wide("equal.csv", data.to_dense(), name=names, wt=np.full(200, 2))
    cli.ok("fit equal.csv --survey-weight wt -o equal")
    plain = SpectralRasch().fit(data)
    np.testing.assert_allclose(numbers("equal/items.csv", "se"), plain.se_, rtol=1e-6)
    for bad, says in (("much", "'much' is not a number"), ("-1", "1 person has no weight above zero: 'p7'")):
        wide("survey.csv", data.to_dense(), name=names, wt=[*map(str, weight[:7]), bad, *map(str, weight[8:])])
        cli.refused("fit survey.csv --survey-weight wt -o not", says)
