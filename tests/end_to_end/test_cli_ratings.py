"""`fit --facet rater` and `--item-covariates`: ratings and properties of items through the command."""

import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from end_to_end.tables import numbers, record
from ratings import simulated
from spectral_irt import datasets
from undrawn import without_pictures


@pytest.fixture
def file(cli):
    """ratings.csv: every fifth student, a row for each student and rater."""
    table = pl.read_csv(datasets.writing_file())
    some = table["student"].unique(maintain_order=True).gather_every(5)
    table.filter(pl.col("student").is_in(some.implode())).write_csv("ratings.csv")


def test_raters_have_a_table_of_their_own(cli, file, monkeypatch):
    without_pictures(monkeypatch)
    assert "exact agreement" in cli.ok("fit ratings.csv --facet rater --group language -o out --report r.html")
    assert "No groups of people were compared" not in Path("r.html").read_text()
    tables = [pl.read_csv(f"out/{name}.csv") for name in ("rater", "items", "persons", "rater_interactions")]
    assert [table.height for table in tables] == [21, 4, 75, 84]
    raters, items, persons, _ = tables
    assert set(record()["outputs"]) == set(os.listdir("out"))
    assert raters["severity"].sum() == pytest.approx(0, abs=1e-6)
    fit = si.SpectralPartialCredit().fit(si.read("ratings.csv", person="student", facets="rater", ignore="language"))
    measures = fit.calibration_.facets
    np.testing.assert_allclose(raters["severity"], measures.of["rater"]["severity"], atol=1e-9)
    np.testing.assert_allclose(items["difficulty"], measures.items.difficulty, atol=1e-9)
    assert record()["facets"]["rater"]["levels"] == 21
    assert 0 < record()["facets"]["rater"]["reliability"] < 1
    assert pl.read_csv("out/rater_language.csv").columns[:2] == ["rater", "group"]
    used = pl.read_csv("out/rater_categories.csv")
    assert (used.height, used["n"].sum()) == (21 * 4, 75 * 21 * 4)
    assert used["expected"].sum() == pytest.approx(75 * 21 * 4)
    assert record()["facets"]["rater"]["df"] == 20
    assert persons["fair_average"].is_between(0, 3).all()
    cli.ok("fit ratings.csv --facet rater --ignore language -o out")
    assert not Path("out/rater_language.csv").exists()  # of the earlier run


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--facet judge", "no column 'judge' for --facet"),
        ("--facet rater --estimator cml", "--facet does not go with --estimator cml yet"),
        ("--facet rater --bank bank", "--facet does not go with --bank yet"),
        ("--facet rater --rank 5 -o out", "--facet does not go with --rank yet"),
        (
            "--facet rater --anchors anchors.csv",
            "--facet does not go with --anchors yet; leave out one of them. In Python",
        ),
        ("--facet rater --clustered-by language", "--facet does not go with --clustered-by yet"),
        ("--facet rater --form language", "--facet does not go with --form yet"),
        ("--facet rater --design adaptive", "--facet does not go with --design adaptive yet"),
    ],
)
def test_what_ratings_do_not_go_with_is_said_in_a_sentence(cli, file, options, says):
    cli.refused(f"fit ratings.csv {options}", says)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("1,a,1,2\n1,b,,1\n2,a,1,0\n2,b,2,1\n", "column 'rater', row 2 is empty, so it is not known what was rated"),
        ("1,a,1,2\n1,b,1,oops\n2,a,1,0\n2,b,2,1\n", "column 'x', row 2 holds 'oops', which is not a category"),
        ("1,a,1,2\n1,a,1,1\n2,a,1,0\n2,b,2,1\n", "answered more than once: (1, 'a × 1')"),
    ],
)
def test_bad_ratings_are_named_by_row_and_column(cli, rows, says):
    Path("bad.csv").write_text("student,item,rater,x\n" + rows)
    cli.refused("fit bad.csv --facet rater --response x -o out", says)


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("--survey-weight id", "--survey-weight"),
        ("--clustered-by id --survey-weight id", "--survey-weight or --clustered-by"),
        ("--model rsm", "--model rsm"),
        ("--design adaptive", "--design adaptive"),
    ],
)
def test_what_properties_do_not_go_with_is_said_before_the_work(cli, option, named):
    Path("a.csv").write_text("id,x,y\n1,1,0\n2,0,1\n3,1,0\n")
    Path("c.csv").write_text("item,p\nx,1\ny,2\n")
    cli.refused(f"fit a.csv --item-covariates c.csv {option}", f"--item-covariates does not go with {named}; leave")


def test_properties_of_items_have_effects_and_a_test(cli):
    reference = Path(__file__).parents[1] / "reference"
    gold, answers = json.loads((reference / "lltm12.json").read_text()), reference / "lltm12.csv"
    items = answers.read_text().splitlines()[0].replace('"', "").split(",")
    pl.DataFrame({"item": items, **gold["design"]}).write_csv("properties.csv")
    said = cli.ok(f"fit {answers} --item-covariates properties.csv -o out")
    np.testing.assert_allclose(numbers("out/covariates.csv", "effect"), gold["eta"], atol=1e-5)
    assert record()["covariates"]["df"] == gold["df"]
    assert "likelihood ratio test against free items (chi2 = 8.9, df = 8" in said
    cli.ok(f"fit {answers} -o out")
    assert not Path("out/covariates.csv").exists()  # of the earlier run


def test_findings_about_ratings_name_items_and_count_people_with_one_rater():
    rows = [(s, i, r, (s + r + k) % 4 if i == "a" else 2 * ((s * k + r) % 3)) for k, i in enumerate("abc")
            for s in range(30) for r in {s % 3, (s + s // 10) % 3}]  # fmt: skip
    table = pl.DataFrame(rows, schema=["student", "item", "rater", "x"], orient="row")
    responses = si.read(table, person="student", response="x", facets="rater", ordered=True)
    (collapsed,) = (one for one in responses.notes if one.code == "categories_collapsed")
    assert collapsed.items == ("b", "c")
    fit = si.SpectralPartialCredit().fit(responses)
    found = {one.code: one for one in fit.analyse(responses).findings()}
    assert "10 of 30 people have ratings of one rater only" in found["one_rater"].sentence
    assert set(found["thresholds_out_of_order"].items) <= {"a", "b", "c"}


def test_a_category_that_nobody_used_leaves_thresholds_to_the_prior():
    responses, *_ = simulated([[0, 1], [1, 2], [0, 2]] * 40, 3, 4, seed=2)
    person, item, x = responses.answers()
    item, rater = (responses.facets.codes[item, k] for k in (0, 1))
    table = {"student": person, "item": item, "rater": rater, "x": np.where((item == 0) & (x == 1), 2, x)}
    kept = si.read(pl.DataFrame(table), person="student", response="x", facets="rater", ordered=True, unused="keep")
    fit = si.SpectralPartialCredit().fit(kept)
    assert not [one for one in fit.findings_ if one.code == "not_converged"]
    assert np.abs(fit.calibration_.facets.items.thresholds).max() < 6


def test_a_bad_rating_of_a_wide_table_is_named_by_its_own_column_and_row(cli):
    Path("bad.csv").write_text("person,rater,q1,q2\na,r1,1,2\na,r2,2,x\nb,r1,0,1\nb,r2,1,1\n")
    cli.refused("fit bad.csv --facet rater -o out", "column 'q2', row 2 holds 'x'")


# Names of facets and properties, and files of properties as they come.


def table_of_ratings(name):
    rows = [
        (f"p{s}", r, (s + r) % 3, (s * r + s // 3) % 3, (s // 2 + r) % 3)
        for s in range(30)
        for r in (s % 3, (s + 1) % 3)
    ]
    pl.DataFrame(rows, schema=["person", name, "q1", "q2", "q3"], orient="row").write_csv("r.csv")


@pytest.mark.parametrize(
    "name", ["Persons", "examiner_first_round", "scores", "a facet of a very long name, indeed", "About"]
)
def test_tables_of_a_facet_keep_clear_of_other_tables_and_of_the_length_of_a_sheet(cli, name):
    table_of_ratings(name)
    cli.ok("fit r.csv --facet", name, "-o", "out.xlsx")
    cli.ok("fit r.csv --facet", name, "-o", "out")
    sheets = pl.read_excel("out.xlsx", sheet_id=0)
    assert {len(sheet) <= 31 for sheet in sheets} == {True}
    for folder_or_book in ({path.stem: pl.read_csv(path) for path in Path("out").glob("*.csv")}, sheets):
        heights = {tuple(table.columns[:2]): table.height for table in folder_or_book.values()}
        assert heights[name, "severity"] == 3
        assert heights[name, "item"] == 9
        assert folder_or_book["persons"].height == 30
        assert folder_or_book["items"].height == 3


@pytest.mark.parametrize("name", ["item", "items", "persons", "thresholds"])
def test_a_facet_with_the_name_of_other_results_is_refused_by_name(cli, name):
    table_of_ratings(name)
    cli.refused(f"fit r.csv --facet {name} -o out", f"the facet {name!r}", "rename it")


def test_nothing_is_skipped_of_ratings_where_nothing_is_to_be(cli):
    table_of_ratings("rater")
    cli.ok("fit r.csv --facet rater -o expected")
    cli.ok("fit r.csv --facet rater --skip none -o out")
    for name in ("rater.csv", "items.csv", "persons.csv"):
        assert Path("out", name).read_bytes() == Path("expected", name).read_bytes()


def test_a_file_of_groups_beside_ratings_has_a_table_of_its_own(cli):
    table_of_ratings("rater")
    Path("people.csv").write_text("person,sex\n" + "".join(f"p{k},{'mf'[k % 2]}\n" for k in range(30)))
    cli.ok("fit r.csv --facet rater --group sex --group-file people.csv -o out")
    assert pl.read_csv("out/rater_sex.csv").columns[:2] == ["rater", "group"]


def test_a_facet_named_twice_is_refused(cli):
    table_of_ratings("rater")
    cli.refused("fit r.csv --facet rater --facet rater", "names the column 'rater' twice")


@pytest.fixture
def properties(cli):
    """answers.csv with eight items, and the lengths of these."""
    lengths = [1.5, 2.25, 3.0, 3.5, 4.25, 5.5, 6.0, 7.5]
    answers = si.simulate.rasch(300, 8, difficulty=np.array(lengths) / 3, seed=1).responses.to_dense().astype(int)
    pl.DataFrame(answers, schema=[f"q{k}" for k in range(8)], orient="row").write_csv("answers.csv")
    return lengths


def write_properties(name, values, separator=","):
    rows = [f"q{k}{separator}{value}" for k, value in enumerate(values)]
    Path("properties.csv").write_text("\n".join([f"item{separator}{name}", *rows]) + "\n")


def test_a_property_has_a_slope_whatever_it_is_called_and_however_its_decimals_are_written(cli, properties):
    write_properties("length", properties)
    cli.ok("fit answers.csv --item-covariates properties.csv -o expected")
    expected = numbers("expected/covariates.csv", "effect")
    assert len(expected) == 1
    for name in ("items", "item:length", "offsets"):
        write_properties(name, properties)
        cli.ok("fit answers.csv --item-covariates properties.csv -o out")
        np.testing.assert_allclose(numbers("out/covariates.csv", "effect"), expected, atol=1e-12)
        assert pl.read_csv("out/covariates.csv")["property"].to_list() == [name]
    write_properties("length", [str(value).replace(".", ",") for value in properties], ";")
    cli.ok("fit answers.csv --item-covariates properties.csv -o out")
    np.testing.assert_allclose(numbers("out/covariates.csv", "effect"), expected, atol=1e-12)


@pytest.mark.parametrize("odd", ["inf", "-inf", "nan", ""])
def test_a_property_that_is_no_number_is_named_with_its_item(cli, properties, odd):
    write_properties("length", [*properties[:3], odd, *properties[4:]])
    cli.refused("fit answers.csv --item-covariates properties.csv -o out", "'length'", "'q3'")


def test_a_word_among_numbers_is_refused_in_a_file_and_remarked_on_in_a_mapping(cli, properties):
    lengths = ["1", "2", "1", "x", "2", "1", "2", "2"]
    write_properties("length", lengths)
    cli.refused("fit answers.csv --item-covariates properties.csv -o out", "'length'", "'x'")
    answers = si.read("answers.csv")
    study = si.SpectralRasch().fit(answers).analyse(answers)
    (found,) = study._explain_severities({"length": {f"q{k}": value for k, value in enumerate(lengths)}}).remarks
    assert found.code == "covariates_in_words"
    assert "'x' (item q3)" in found.sentence


def test_unexpected_ratings_and_contrasts_are_written_with_all_tables(cli, file, monkeypatch):
    without_pictures(monkeypatch)
    cli.ok("fit ratings.csv --facet rater --ignore language -o out --all --report r.html")
    unexpected = pl.read_csv("out/unexpected.csv")
    assert unexpected.columns == ["person", "item", "rater", "response", "expected", "z", "ability"]
    assert unexpected["z"].abs().min() >= 3
    assert pl.read_csv("out/rater_contrasts.csv").height == 21 * 6
    page = Path("r.html").read_text()
    assert f"{len(unexpected)} ratings of 6,300 are 3 or more standard deviations" in page
    assert "equal severities: chi-square" in page


def test_ratings_that_nothing_links_are_described_one_subset_at_a_time(cli, monkeypatch):
    """Raters 1 and 2 of some students, 3 and 4 of others: measures of the first subset only; and one rater each."""
    without_pictures(monkeypatch)
    table = pl.read_csv(datasets.writing_file()).drop("language")
    half = pl.col("student") % 2 == 1
    subsets = table.filter((half & (pl.col("rater") <= 2)) | (~half & pl.col("rater").is_in([3, 4])))
    subsets.write_csv("subsets.csv")
    cli.ok("fit subsets.csv --facet rater -o out --report r.html")
    n = pl.read_csv("out/persons.csv").filter(pl.col("subset") == 1)
    page = Path("r.html").read_text()
    assert f"Reliability, targeting and extreme scores are those of subset 1, {len(n)} of 372 people." in page
    assert f"<td>{n['ability'].median():.2f}</td>" in page.split("half are below (median)")[1][:60]
    subsets.unique("student", keep="first").write_csv("single.csv")
    said = cli.ok("fit single.csv --facet rater -o single --report single.html")
    assert "none of which can be compared with another" in said
    assert "Prior:" not in said
    assert set(pl.read_csv("single/rater.csv")["status"]) == {"unlinked"}
