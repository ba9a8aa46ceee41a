"""Groups of people compared by `spectral-irt fit`, and where they come from."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from drawn import drawn
from end_to_end.tables import numbers, read_csv, record, wide

pytestmark = pytest.mark.slow  # whole runs of commands


@pytest.fixture
def school(cli):
    """school.csv, 900 students of two sexes and three towns: q3 is harder for boys, q6 in the last town."""
    rng = np.random.default_rng(3)
    n, m = 900, 8
    sex, town = rng.integers(0, 2, n), rng.integers(0, 3, n)
    difficulty = np.tile(np.linspace(-1.5, 1.5, m), (n, 1))
    difficulty[:, 2] += 1.2 * sex
    difficulty[:, 5] += 1.4 * (town == 2)
    right = drawn(rng, rng.normal(0, 1, (n, 1)) - difficulty)
    wide("school.csv", right, student=[f"s{k}" for k in range(n)], sex=np.array(["f", "m"])[sex], town=10 + town)


def test_a_grouping_is_compared(cli, school):
    said = cli.ok("fit school.csv -o out --group sex --ignore town")
    rows = read_csv("out/dif.csv")
    assert [row["item"] for row in rows] == [f"q{k + 1}" for k in range(8)]
    assert {(row["group"], row["reference"]) for row in rows} == {("m", "f")}
    assert [row["item"] for row in rows if row["class"] == "C"] == ["q3"]
    size = float(rows[2]["contrast"])
    assert 0.8 < size < 1.6
    harder = f"DIF in 1 of 8 items between the groups 'f', 'm': 'q3' is harder for 'm' by {size:.2f} logits"
    assert f"{harder} (class C, adjusted p < 0.001)." in said
    found = record()["dif"]
    assert (found["flagged"], found["nonuniform"]) == (1, sum(row["nonuniform"] == "true" for row in rows))
    assert found["anchors"] < 8
    assert found["column"] == "sex"
    assert sum(found["groups"].values()) == 900
    assert found["classes"]["C"] == 1
    assert record()["input"]["reading"] == {"ignore": ["town"], "people": ["sex"]}
    assert [row["item"] for row in read_csv("out/items.csv")] == [row["item"] for row in rows]


def test_several_groupings_are_all_compared(cli, school):
    said = cli.ok("fit school.csv --group sex --group town -o both")
    rows = read_csv("both/dif.csv")
    assert list(rows[0])[:4] == ["grouping", "item", "group", "reference"]
    assert [(row["grouping"], row["group"]) for row in rows[::8]] == [("sex", "m"), ("town", "11"), ("town", "12")]
    flagged = {(row["grouping"], row["group"], row["item"]) for row in rows if row["flagged"] == "true"}
    assert {("sex", "m", "q3"), ("town", "12", "q6")} <= flagged
    assert "sex: DIF in 1 of 8 items between the groups 'f', 'm': 'q3' is harder for 'm' by 1." in said
    assert "town: DIF in 1 of 8 items between the groups '10', '11', '12': 'q6' is harder for '12'" in said
    assert [one["column"] for one in record("both")["dif"]] == ["sex", "town"]
    assert len(read_csv("both/items.csv")) == 8  # neither column is an item
    for name, other in (("sex", "town"), ("town", "sex")):
        cli.ok(f"fit school.csv --group {name} --ignore {other} -o {name}")
        assert read_csv(f"{name}/dif.csv") == [row for row in rows if row["grouping"] == name]
        assert record(name)["dif"]["column"] == name


def test_groups_come_from_every_kind_of_file(cli, school):
    table = pl.read_csv("school.csv")
    people = table.select("student", "sex", "town").sample(fraction=1.0, shuffle=True, seed=1)
    people.write_csv("people.csv")
    people.drop("town").write_parquet("people.parquet")
    people.write_ndjson("people.jsonl")
    table.drop("sex", "town").write_csv("answers.csv")
    table.write_parquet("school.parquet")
    table.write_ndjson("school.jsonl")
    table.drop("student").select("q1", pl.exclude("q1")).write_csv("nameless.csv")
    items = [name for name in table.columns if name.startswith("q")]
    long = table.unpivot(items, index=["student", "sex"], variable_name="item", value_name="response")
    long.write_parquet("long.parquet")
    nested = [
        {"subject_id": row["student"], "sex": row["sex"], "responses": {name: row[name] for name in items}}
        for row in table.iter_rows(named=True)
    ]
    Path("nested.jsonl").write_text("\n".join(map(json.dumps, nested)))
    cli.ok("fit school.csv -o out --group sex --ignore town")
    ours = dict(zip(items, numbers("out/dif.csv", "contrast"), strict=True))
    for line in (
        "answers.csv --group-file people.csv --group sex",
        "answers.csv --group-file people.parquet",  # its only other column
        "answers.csv --group-file people.jsonl --group sex",
        "school.parquet --group sex --ignore town",
        "school.jsonl --group sex --ignore town",
        "nameless.csv --group sex --ignore town",
        "long.parquet --group sex",
        "nested.jsonl --group sex",
    ):
        cli.ok(f"fit {line} --skip persons -o other")
        theirs = {row["item"]: float(row["contrast"]) for row in read_csv("other/dif.csv")}
        assert theirs == pytest.approx(ours, abs=1e-6), line
    cli.ok("fit answers.csv --group-file people.csv --group town --group sex -o both")
    assert [row["grouping"] for row in read_csv("both/dif.csv")] == ["town"] * 16 + ["sex"] * 8


def test_group_numbers_are_in_order_and_people_without_a_group_are_left_out(cli, school):
    years = pl.Series([(2, 10, None)[k % 3] for k in range(900)])
    pl.read_csv("school.csv").with_columns(year=years).write_csv("years.csv")
    assert "300 of 900 people are in no group" in cli.ok("fit years.csv -o out --group year --ignore sex,town")
    assert {(row["group"], row["reference"]) for row in read_csv("out/dif.csv")} == {("10", "2")}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--group gender", "no column 'gender'; its columns are"),
        ("--survey-weight w", "no column 'w'; its columns are"),
        ("--layout long", "Say which one with --item."),
        ("--group same", "the column 'same' has a single value, 'x'"),
        ("--group none", "the column 'none' has no value at all"),
        ("--group sex --layout items-in-rows", "--group-file"),
        ("--group-file none.csv", "there is no file 'none.csv'"),
        ("--group-file school.csv", "say which column of school.csv is meant"),
        ("--group-file others.csv", "none of the people in others.csv"),
        ("--group-file twice.csv", "1 person has more than one value in the column 'sex': 's1'"),
        ("--group-file others.csv --group person --person person", "'person' names the people"),
        ("--group-file many.csv", "900 different values"),
    ],
)
def test_bad_groups(cli, school, options, says):
    columns = {"same": pl.lit("x"), "none": pl.lit(None, dtype=pl.String)}
    pl.read_csv("school.csv").with_columns(**columns).write_csv("school.csv")
    Path("others.csv").write_text("person,sex\nann,f\nbob,m\n")
    Path("twice.csv").write_text("person,sex\ns1,f\ns2,m\ns1,m\n")
    Path("many.csv").write_text("person,room\n" + "".join(f"s{k},r{k}\n" for k in range(900)))
    rest = ",".join(name for name in ("sex", "town", "same", "none") if name not in options.split())
    cli.refused(f"fit school.csv -o out {options} --ignore {rest}", says)


def test_columns_with_a_comma_between_are_named_one_by_one(cli, school):
    repeat = "are two columns. Name each by itself: --group sex, --group town."
    cli.refused("fit school.csv --group sex,town", "'sex', 'town'", repeat)


def test_groups_that_are_too_small_leave_out_dif_alone(cli):
    """Two classes of 15: items, people and means are there, and a note says why there is no DIF."""
    rng = np.random.default_rng(2)
    right = drawn(rng, rng.normal(0.3, 1, (30, 1)) - np.linspace(-1.5, 1.5, 20))
    wide("klass.csv", right, pupil=[f"s{k}" for k in range(30)], klass=["A", "B"] * 15)
    said = " ".join(cli.ok("fit klass.csv -o out --report report.html --plots figures --group klass").split())
    assert "DIF by 'klass' was left out: fewer than 30 people whose score is not extreme in 'A' (" in said
    assert not Path("out/dif.csv").exists()
    assert [row["group"] for row in read_csv("out/groups.csv")] == ["A", "B"]
    assert record()["dif"] is None
    assert "DIF by &#39;klass&#39; was left out" in Path("report.html").read_text(encoding="utf-8")


def test_age_is_cut_at_its_median_or_as_asked_and_stands_beside_the_persons(cli, school):
    rng = np.random.default_rng(7)
    ages = pl.Series(rng.integers(18, 90, 900))
    pl.read_csv("school.csv").with_columns(age=ages).write_csv("ages.csv")
    said = " ".join(cli.ok("fit ages.csv -o out --group age --group sex --ignore town").split())
    cut = read_csv("out/groups.csv")[0]["group"].removeprefix("under ")
    assert f"it was cut at its median into under {cut}, and {cut} and over. Say where to cut it" in said
    low, high = map(int, re.search(r"as in --group age:(\d+),(\d+), for other groups", said).groups())
    assert 35 < low < int(cut) < high < 73  # thirds of ages from 18 to 89
    sizes = numbers("out/groups.csv", "n")[:2]
    assert abs(sizes[0] - sizes[1]) <= 20
    assert list(numbers("out/persons.csv", "age")) == ages.to_list()
    assert {row["sex"] for row in read_csv("out/persons.csv")} == {"f", "m"}
    cli.ok("fit ages.csv -o asked --group age:40,65 --ignore town,sex")
    groups = [row["group"] for row in read_csv("asked/groups.csv")]
    assert groups == ["under 40", "40 to under 65", "65 and over"]
    assert list(numbers("asked/groups.csv", "n")) == [
        (ages < 40).sum(),
        ((ages >= 40) & (ages < 65)).sum(),
        (ages >= 65).sum(),
    ]
    cli.refused("fit ages.csv --group age:200 --ignore town,sex", "puts everybody in one group, 'under 200'")
    cli.refused("fit ages.csv --group sex:3 --ignore town,age", "which is no number")
    cli.refused("fit ages.csv --group age:65,40", "cuts are numbers that rise")
    cli.refused("fit ages.csv --group age --group age:40", "names 'age' twice")
