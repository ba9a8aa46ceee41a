"""People, the fit of items and groups, by `spectral-irt fit`."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from end_to_end.tables import numbers, read_csv, record
from spectral_irt import SpectralRasch, datasets, simulate
from spectral_irt.analysis import folder
from spectral_irt.analysis.cache import columns_of
from spectral_irt.data import Responses
from spectral_irt.reading import read

pytestmark = pytest.mark.slow  # many short runs of whole commands, or of long updates

Cli = Callable[..., Any]

PERSONS = ["person", "n", "score", "ability", "se", "extreme", "infit", "outfit", "infit_z", "outfit_z"]


@pytest.fixture
def school(tmp_path: Path) -> Path:
    """1,200 students; q4 is harder for boys, q8 is noisy, q10 steep; age is not an item."""
    rng = np.random.default_rng(0)
    n, m = 1200, 12
    sex = rng.integers(0, 2, n)
    difficulty = np.tile(np.linspace(-2, 2, m), (n, 1))
    difficulty[:, 3] += 0.9 * sex
    slope = np.ones(m)
    slope[[7, 9]] = 0.4, 2.0
    theta = rng.normal(0, 1.2, n)
    answers = (rng.random((n, m)) < 1 / (1 + np.exp(-slope * (theta[:, None] - difficulty)))).astype(int)
    path = tmp_path / "school.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["student", "sex", *(f"q{k + 1}" for k in range(m)), "age"])
        writer.writerows([f"s{k}", "fm"[sex[k]], *row, rng.integers(9, 15)] for k, row in enumerate(answers.tolist()))
    return path


@pytest.mark.parametrize("method", ["wle", "ml", "eap"])
def test_persons_are_those_of_python(cli: Cli, lsat: Path, method: str) -> None:
    done = cli("fit", lsat, "-o", "out", "--ability", method)
    assert (done.code, done.err) == (0, "")
    rows = read_csv("out/persons.csv")
    assert list(rows[0]) == PERSONS
    data = datasets.load_lsat()
    expected = columns_of(SpectralRasch().fit(data).analyse(data).persons, method)
    for name in ("ability", "se", "infit", "outfit", "infit_z", "outfit_z"):
        np.testing.assert_array_equal(numbers(rows, name), expected[name])
    assert [row["extreme"] == "true" for row in rows] == expected["extreme"].tolist()
    assert [int(row["score"]) for row in rows] == expected["score"].tolist()
    found = record()
    assert found["persons"]["ability"] == found["reliability"]["method"] == method
    assert (found["persons"]["all_right"], found["persons"]["all_wrong"]) == (298, 3)
    assert found["persons"]["with_ability"] == (699 if method == "ml" else 1000)


def test_plausible_values_are_those_of_python(cli: Cli, lsat: Path) -> None:
    done = cli("fit", lsat, "-o", "out", "--ability", "pv:3", "--seed", 2)
    assert (done.code, done.err) == (0, "")
    rows = read_csv("out/persons.csv")
    assert list(rows[0]) == [*PERSONS, "pv1", "pv2", "pv3"]
    data = datasets.load_lsat()
    expected = columns_of(SpectralRasch().fit(data).analyse(data).persons, "pv", draws=3, seed=2)
    for name in ("ability", "pv1", "pv3"):
        np.testing.assert_array_equal(numbers(rows, name), expected[name])
    found = record()
    assert found["persons"]["ability"] == "pv"
    assert found["persons"]["plausible_values"] == {"draws": 3, "seed": 2, "given": []}
    done = cli("fit", lsat, "--seed", 2)
    assert (done.code, done.err) == (2, "error: --seed is about plausible values; say --ability pv, or leave it out.\n")


def test_plausible_values_know_the_groups(cli: Cli, school: Path) -> None:
    cli("fit", school, "-o", "out", "--ability", "pv", "--group", "sex", "--ignore", "age")
    with_groups = numbers(read_csv("out/persons.csv"), "pv1")
    assert record()["persons"]["plausible_values"]["given"] == ["sex"]
    cli("fit", school, "-o", "out", "--ability", "pv", "--ignore", "sex,age")
    assert not np.array_equal(with_groups, numbers(read_csv("out/persons.csv"), "pv1"))


def test_reliability_is_in_the_record_and_on_the_terminal(cli: Cli) -> None:
    cli("simulate", "-o", "a.csv", "--persons", 500, "--items", 20, "--seed", 1)
    out = cli("fit", "a.csv", "-o", "out").out
    data = read("a.csv")
    expected = SpectralRasch().fit(data).analyse(data).reliability()
    found = record()
    assert found["reliability"]["persons"]["reliability"] == expected.persons.reliability
    assert found["reliability"]["kr20"] == expected.kr20
    assert found["reliability"]["eap_reliability"] == expected.eap_reliability
    assert f"people  EAP reliability {expected.eap_reliability:.2f}, KR-20 {expected.kr20:.2f}; WLE separation" in out
    assert expected.n_lowest + expected.n_highest == 1
    assert "1 extreme score" in " ".join(out.split())
    assert found["model_test"]["test"] == "Score test, less able against more able half"
    assert 0 < found["model_test"]["p"] <= 1


def test_a_person_without_answers_is_kept(cli: Cli) -> None:
    data = simulate.rasch(60, 5, seed=3).responses.to_dense().astype(int).tolist()
    rows = [f"p{k},{','.join(map(str, row))}" for k, row in enumerate(data)]
    Path("a.csv").write_text("\n".join(["person,q1,q2,q3,q4,q5", *rows, "nobody,,,,,"]))
    done = cli("fit", "a.csv", "-o", "out")
    assert done.code == 0
    assert "1 with no answers" in " ".join(done.out.split())
    last = read_csv("out/persons.csv")[-1]
    assert [last[name] for name in PERSONS[:6]] == ["nobody", "0", "0", "", "", "false"]
    assert record()["persons"]["without_answers"] == 1


def test_parquet_has_every_table(cli: Cli, lsat: Path) -> None:
    assert cli("fit", lsat, "-o", "out", "--all", "--parquet", "--rank", 2, "--scale", "500,100").code == 0
    for name in ("items", "persons", "item_fit", "ranking"):
        table = pl.read_parquet(f"out/{name}.parquet")
        assert table.equals(pl.read_csv(f"out/{name}.csv", schema=table.schema)), name


def test_no_persons_and_no_fit(cli: Cli, lsat: Path) -> None:
    done = cli("fit", lsat, "-o", "out", "--skip", "persons,fit")
    assert done.code == 0
    assert sorted(os.listdir("out")) == ["fit.json", "items.csv"]
    assert "reliability" not in done.out
    found = record()
    for name in ("persons", "reliability", "item_fit", "model_test"):
        assert found[name] is None


def test_large_data_are_analyzed_only_when_something_is_written(
    cli: Cli, lsat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "QUICK", 4999)
    assert "reliability" not in cli("fit", lsat).out
    assert "reliability" in cli("fit", lsat, "--skip", "none").out
    assert "reliability" in cli("fit", lsat, "-o", "out").out


def test_fit_that_takes_long_is_left_out_and_said(cli: Cli, lsat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("fit", lsat, "-o", "out", "--all")
    monkeypatch.setattr(folder, "LONG", 10)
    done = cli("fit", lsat, "-o", "out", "--all")
    assert "Say --skip none to have it all the same" in " ".join(done.out.split())
    left = ["items.csv", "persons.csv", "scores.csv", "unexpected.csv", "item_analysis.csv", "fit.json"]
    assert sorted(os.listdir("out")) == sorted(left)  # the old item_fit.csv is stale
    assert record()["outputs"] == left
    assert cli("fit", lsat, "-o", "out", "--skip", "none", "--all").code == 0
    assert Path("out/item_fit.csv").exists()


def test_item_fit_is_that_of_python_and_names_what_misfits(cli: Cli, school: Path) -> None:
    done = cli("fit", school, "-o", "out", "--all", "--ignore", "sex", "--ignore", "age")
    assert done.code == 0
    rows = read_csv("out/item_fit.csv")
    items = read_csv("out/items.csv")  # has what the terminal shows
    assert list(items[0])[9:] == [*folder.OF_FIT, "item_rest", "misfit"]
    assert all(
        row[name] == item[name] for row, item in zip(rows, items, strict=True) for name in (*folder.OF_FIT, "misfit")
    )
    assert [row["item_rest"] for row in items] == [row["item_rest"] for row in read_csv("out/item_analysis.csv")]
    data = read(school, ignore=["sex", "age"])
    expected = columns_of(SpectralRasch().fit(data).analyse(data).item_fit)
    assert list(rows[0]) == list(expected)
    assert [row["misfit"] for row in rows] == expected["misfit"].tolist()
    for name in list(expected)[2:-1]:
        np.testing.assert_array_equal(numbers(rows, name), expected[name])
    flagged = {row["item"]: row["misfit"] for row in rows if row["misfit"]}
    assert flagged == {"q8": "underfit", "q10": "overfit"}
    text = " ".join(done.out.split())
    assert "2 of 12 items misfit beyond chance: underfit 'q8'; overfit 'q10'" in text
    findings = {finding["code"]: finding for finding in record()["findings"]}
    assert findings["misfitting_items"]["items"] == ["q8", "q10"]
    assert "unequal_halves" in findings
    assert (record()["item_fit"]["underfit"], record()["item_fit"]["overfit"]) == (1, 1)


def test_bootstrap_limits(cli: Cli, school: Path) -> None:
    options = ("--ignore", "sex", "--ignore", "age", "--bootstrap")
    done = cli("fit", school, "-o", "out", "--all", *options, "40:500")
    assert done.code == 0
    rows = read_csv("out/item_fit.csv")
    assert {"infit_conditional_low", "infit_conditional_high", "infit_conditional_p", "misfit"} <= set(rows[0])
    assert rows[7]["misfit"] == "underfit"
    assert "(40 simulated data sets, adjusted for asking of 12 items)" in " ".join(done.out.split())
    assert record()["item_fit"]["bootstrap"] == 40
    done = cli("fit", school, *options, 5)
    assert done.code == 2
    assert "--bootstrap is 5" in done.err


def test_the_rule_keeps_good_items_and_finds_bad_ones() -> None:
    """40 data sets of 20 items, half of them with slopes 0.5 and 2."""
    good, bad = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        slope = np.ones(20)
        if seed % 2:
            slope[:2] = 0.5, 2.0
        theta, beta = rng.normal(0, 1.2, 1000), rng.normal(0, 1, 20)
        x = rng.random((1000, 20)) < 1 / (1 + np.exp(-slope * (theta[:, None] - beta)))
        data = Responses.from_wide(x.astype(int))
        flagged = columns_of(SpectralRasch(se="none").fit(data).analyse(data).item_fit)["misfit"]
        if seed % 2:
            bad.append((flagged[0], flagged[1]))
        else:
            good.append(flagged != "")
    assert np.mean(good) < 0.01
    assert np.mean([pair == ("underfit", "overfit") for pair in bad]) > 0.85


def test_groups_from_a_column_of_the_answers(cli: Cli, school: Path) -> None:
    done = cli("fit", school, "-o", "out", "--group", "sex", "--ignore", "age")
    assert (done.code, done.err) == (0, "")
    rows = read_csv("out/dif.csv")
    assert [row["item"] for row in rows] == [f"q{k + 1}" for k in range(12)]
    assert {(row["group"], row["reference"]) for row in rows} == {("m", "f")}
    assert [row["item"] for row in rows if row["class"] == "C"] == ["q4"]
    assert 0.5 < float(rows[3]["contrast"]) < 1.3
    said = "DIF in 1 of 12 items between the groups 'f', 'm': 'q4' is harder for 'm' by"
    size = float(rows[3]["contrast"])
    assert f"{said} {size:.2f} logits (class C, adjusted p < 0.001)." in " ".join(done.out.split())
    found = record()
    assert (found["dif"]["flagged"], found["dif"]["nonuniform"]) == (
        1,
        sum(row["nonuniform"] == "true" for row in rows),
    )
    assert found["dif"]["anchors"] < 12
    assert found["dif"]["column"] == "sex"
    assert sum(found["dif"]["groups"].values()) == 1200
    assert found["dif"]["classes"]["C"] == 1
    assert found["input"]["reading"] == {"ignore": ["age"], "people": ["sex"]}
    assert [row["item"] for row in read_csv("out/items.csv")] == [row["item"] for row in rows]


def same_comparison(cli: Cli, *args: object) -> None:
    done = cli("fit", *args, "-o", "other")
    assert (done.code, done.err) == (0, "")
    ours, theirs = read_csv("out/dif.csv"), read_csv("other/dif.csv")
    by_item = {row["item"]: row for row in theirs}
    for row in ours:
        assert float(by_item[row["item"]]["contrast"]) == pytest.approx(float(row["contrast"]), abs=1e-6)


def test_groups_come_from_every_kind_of_file(cli: Cli, school: Path) -> None:
    cli("fit", school, "-o", "out", "--group", "sex", "--ignore", "age")
    table = pl.read_csv(school)
    table.select("student", "sex", "age").sample(fraction=1.0, shuffle=True, seed=1).write_csv("people.csv")
    table.drop("sex", "age").write_csv("answers.csv")
    same_comparison(cli, "answers.csv", "--group-file", "people.csv", "--group", "sex")
    pl.read_csv("people.csv").drop("age").write_parquet("people.parquet")
    same_comparison(cli, "answers.csv", "--group-file", "people.parquet")  # its only other column
    pl.read_csv("people.csv").write_ndjson("people.jsonl")
    same_comparison(cli, "answers.csv", "--group-file", "people.jsonl", "--group", "sex")
    table.write_parquet("school.parquet")
    same_comparison(cli, "school.parquet", "--group", "sex", "--ignore", "age")
    table.write_ndjson("school.jsonl")
    same_comparison(cli, "school.jsonl", "--group", "sex", "--ignore", "age")
    table.drop("student").select("q1", pl.exclude("q1")).write_csv("nameless.csv")
    same_comparison(cli, "nameless.csv", "--group", "sex", "--ignore", "age")
    items = [name for name in table.columns if name.startswith("q")]
    long = table.unpivot(items, index=["student", "sex"], variable_name="item", value_name="response")
    long.write_parquet("long.parquet")
    same_comparison(cli, "long.parquet", "--group", "sex")
    nested = [
        {"subject_id": row["student"], "sex": row["sex"], "responses": {name: row[name] for name in items}}
        for row in table.iter_rows(named=True)
    ]
    Path("nested.jsonl").write_text("\n".join(map(json.dumps, nested)))
    same_comparison(cli, "nested.jsonl", "--group", "sex")


def test_group_numbers_are_in_order_and_people_without_a_group_are_left_out(cli: Cli, school: Path) -> None:
    table = pl.read_csv(school).with_columns(year=pl.Series([(2, 10, None)[k % 3] for k in range(1200)]))
    table.write_csv("years.csv")
    done = cli("fit", "years.csv", "-o", "out", "--group", "year", "--ignore", "sex", "--ignore", "age")
    assert done.code == 0
    assert {(row["group"], row["reference"]) for row in read_csv("out/dif.csv")} == {("10", "2")}
    assert "400 of 1,200 people are in no group" in " ".join(done.out.split())


GROUPS = {
    "no such column": (["--group", "gender"], "no column 'gender' for --group"),
    "a single value": (["--group", "same"], "the column 'same' has a single value, 'x'"),
    "no value": (["--group", "none"], "the column 'none' has no value at all"),
    "too few people": (["--group", "few"], "fewer than 30 people with both right and wrong answers"),
    "items in rows": (["--group", "sex", "--layout", "items-in-rows"], "--group-file"),
    "no such file": (["--group-file", "none.csv"], "there is no file 'none.csv'"),
    "which column": (["--group-file", "school.csv"], "say which column of school.csv is meant"),
    "people of another place": (["--group-file", "others.csv"], "none of the people in others.csv"),
    "twice": (["--group-file", "twice.csv"], "1 person has more than one value in the column 'sex': 's1'"),
    "the names themselves": (
        ["--group-file", "others.csv", "--group", "person", "--person", "person"],
        "'person' names the people",
    ),
    "many values": (["--group-file", "many.csv"], "1,200 different values", "Merge them"),
}


@pytest.mark.parametrize("name", GROUPS)
def test_bad_groups(cli: Cli, school: Path, name: str) -> None:
    options, *says = GROUPS[name]
    table = pl.read_csv(school).with_columns(
        same=pl.lit("x"), none=pl.lit(None, dtype=pl.String), few=pl.Series(["a"] * 1190 + ["b"] * 10)
    )
    table.write_csv(school)
    Path("others.csv").write_text("person,sex\nann,f\nbob,m\n")
    Path("twice.csv").write_text("person,sex\ns1,f\ns2,m\ns1,m\n")
    Path("many.csv").write_text("person,room\n" + "".join(f"s{k},r{k}\n" for k in range(1200)))
    rest = [column for column in ("sex", "age", "same", "none", "few") if column not in options]
    ignored = [word for column in rest for word in ("--ignore", column)]
    before = sorted(os.listdir())
    done = cli("fit", school, "-o", "out", *options, *ignored)
    assert (done.code, done.out) == (2, "")
    for text in says:
        assert text in done.err
    assert done.err.count("\n") == 1
    assert sorted(os.listdir()) == before
