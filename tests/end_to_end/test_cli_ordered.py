"""`spectral-irt fit` on answers in ordered categories."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from spectral_irt.reading import wide_builder

REFERENCE = Path(__file__).parents[1] / "reference"
pytestmark = pytest.mark.slow


@pytest.fixture
def fit(cli):
    def run(*arguments, code=0):
        done = cli("fit", *arguments)
        assert done.code == code, done.err
        return done.out + done.err

    return run


def test_categories_are_seen(fit, tmp_path):
    said = " ".join(fit(REFERENCE / "scale8.csv", "-o", tmp_path / "out").split())
    assert "in up to 5 ordered categories, for a partial credit model" in said
    record = json.loads((tmp_path / "out" / "fit.json").read_text())
    assert record["model"] == "pcm"
    assert (record["model"], record["estimator"]) == ("pcm", "spectral")
    assert len(pl.read_csv(tmp_path / "out" / "items.csv")) == 8
    assert len(pl.read_csv(tmp_path / "out" / "thresholds.csv")) == 32


@pytest.mark.parametrize("command", ["fit", "check", "pack", "compare"])
def test_answers_are_read_once_whatever_they_are_and_whatever_is_asked_of_people(cli, command, tmp_path, monkeypatch):
    calls = []
    read = wide_builder._scored_tables
    monkeypatch.setattr(wide_builder, "_scored_tables", lambda *a, **k: (calls.append(a), read(*a, **k))[1])
    about = pl.DataFrame({"sex": ["f", "m"] * 200, "room": [k % 20 for k in range(400)], "w": [1.0, 2.0] * 200})
    answers = pl.read_csv(REFERENCE / "scale8.csv")
    pl.concat([about[: len(answers)], answers[:400]], how="horizontal").write_csv(tmp_path / "a.csv")
    options = {"fit": ["--group", "sex", "--clustered-by", "room", "--survey-weight", "w", "--skip", "persons,fit"]}
    options |= {"pack": ["--group", "sex", "--ignore", "room,w", "-o", tmp_path / "a.packed"]}
    done = cli(command, tmp_path / "a.csv", *options.get(command, ["--ignore", "sex,room,w"]))
    assert done.code == 0, done.err
    assert len(calls) == 1


def test_models_and_estimators(fit, tmp_path):
    for model, estimator in (("pcm", "cml"), ("rsm", "cml"), ("rsm", "spectral"), ("pcm", "mml")):
        fit(REFERENCE / "scale8.csv", "--model", model, "--estimator", estimator, "-o", tmp_path / "out")
        record = json.loads((tmp_path / "out" / "fit.json").read_text())
        assert (record["model"], record["estimator"]) == (model, estimator)
    theirs = json.loads((REFERENCE / "scale8_pcm.json").read_text())["psychotools"]["itempar_sum0"]
    fit(REFERENCE / "scale8.csv", "--model", "pcm", "--estimator", "cml", "-o", tmp_path / "out")
    items = pl.read_csv(tmp_path / "out" / "items.csv")
    assert all(abs(d - theirs[i]) < 1e-5 for i, d in zip(items["item"], items["difficulty"], strict=True))


def test_labels_and_reversed_items(fit, tmp_path):
    answers = pl.read_csv(REFERENCE / "credit6.csv")
    words = {0: "never", 1: "sometimes", 2: "often", 3: "always"}
    labels = answers.with_columns((3 - pl.col("q2")).alias("q2")).select(
        pl.col(name).replace_strict(words) for name in answers.columns
    )
    labels.write_csv(tmp_path / "survey.csv")
    fit(tmp_path / "survey.csv", "--recode", "never,sometimes,often,always", "--reverse", "q2", "-o", tmp_path / "a")
    fit(REFERENCE / "credit6.csv", "--model", "pcm", "-o", tmp_path / "b")
    for name in ("items.csv", "thresholds.csv", "persons.csv"):
        assert (tmp_path / "a" / name).read_text() == (tmp_path / "b" / name).read_text()
    said = " ".join(fit(tmp_path / "survey.csv", "--recode", "never,sometimes,often", code=2).split())
    assert "column 'q2', row 2" in said
    assert "holds 'always', which is not among the labels of the categories, 'never', 'sometimes', 'often'" in said


def test_a_workbook_and_pictures(fit, tmp_path):
    said = fit(REFERENCE / "scale8.csv", "-o", tmp_path / "r.xlsx", "--plots", tmp_path / "p")
    assert (
        "items, thresholds, persons, scores, unexpected, item_fit, curves and item_analysis. Also written:"
        in " ".join(said.split())
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p", "r.xlsx"]
    assert {path.stem for path in (tmp_path / "p").iterdir()} == {
        *("wright", "items", "fit", "information", "scores", "icc", "categories")
    }
    fit(REFERENCE / "scale8.csv", "-o", tmp_path / "out", "--all", "--plots", tmp_path / "p")  # again: replaced
    assert len(list((tmp_path / "p").iterdir())) == 14
    for name in ("items", "thresholds", "persons", "item_fit"):
        sheet = pl.read_excel(tmp_path / "r.xlsx", sheet_name=name, engine="openpyxl")
        table = pl.read_csv(tmp_path / "out" / f"{name}.csv")
        assert sheet.columns == table.columns
        assert len(sheet) == len(table)
    (tmp_path / "p" / "icc.svg").write_text("somebody's own")
    (tmp_path / "own.xlsx").write_text("somebody's own")
    assert "did not make it" in fit(REFERENCE / "scale8.csv", "--plots", tmp_path / "p", code=2)
    assert "own.xlsx" in fit(REFERENCE / "scale8.csv", "-o", tmp_path / "own.xlsx", code=2)
    assert (tmp_path / "own.xlsx").read_text() == (tmp_path / "p" / "icc.svg").read_text() == "somebody's own"


def test_a_report(fit, tmp_path):
    said = fit(REFERENCE / "credit6.csv", "--model", "rsm", "--reverse", "q2", "-o", tmp_path / "out",
               "--report", tmp_path / "r.html")  # fmt: skip
    assert "Also written" in said
    page = (tmp_path / "r.html").read_text()
    assert "spectral-irt fit credit6.csv --model rsm --reverse q2" in page
    record = json.loads((tmp_path / "out" / "fit.json").read_text())
    assert record["input"]["reading"] == {"reverse": ["q2"]}


def test_groups(fit, tmp_path):
    """A column of the answers themselves: it is not an item, and its groups are compared."""
    answers = pl.read_csv(REFERENCE / "scale8.csv")
    sexes = pl.Series("sex", ["f", "m"] * (len(answers) // 2))
    moved = (pl.col("q2") + (pl.col("sex") == "m")).clip(0, 4)
    answers.with_columns(sexes).with_columns(moved.alias("q2")).write_csv(tmp_path / "a.csv")
    said = " ".join(fit(tmp_path / "a.csv", "--group", "sex", "--scale", "500,100", "-o", tmp_path / "out").split())
    assert "sex: DIF in 1 of 8 items between the groups 'f', 'm': 'q2' is harder for 'f'" in said
    dif, steps = (pl.read_csv(tmp_path / "out" / f"{name}.csv") for name in ("dif", "dif_thresholds"))
    assert dif.filter(pl.col("flagged"))["item"].to_list() == ["q2"]
    assert steps["grouping"].unique().to_list() == ["sex"]
    assert abs(pl.read_csv(tmp_path / "out" / "persons.csv")["measure"].mean() - 500) < 0.1
    assert len(pl.read_csv(tmp_path / "out" / "groups.csv")) == 2
    record = json.loads((tmp_path / "out" / "fit.json").read_text())
    assert record["dif"]["flagged"] == 1
    assert record["fit_checks"]["shared"]["n_items"] == 8


def test_a_bank_scored_updated_linked_and_anchored(fit, cli, tmp_path):
    answers = pl.read_csv(REFERENCE / "credit6.csv").with_row_index("who")
    first, second = answers[:200], answers[200:]
    first.write_csv(tmp_path / "a.csv")
    second.write_csv(tmp_path / "b.csv")
    second.drop("q1").write_csv(tmp_path / "c.csv")
    fit(tmp_path / "a.csv", "--person", "who", "--bank", tmp_path / "bank", "-o", tmp_path / "first")
    for to, source in (("sfile", "bank"), ("ifile", "first"), ("pfile", "first")):
        assert cli("export", tmp_path / source, "--to", to, "-o", tmp_path / f"{to}.txt").code == 0
    assert "Rasch-Andrich threshold" in (tmp_path / "sfile.txt").read_text()

    def run(*arguments, code=0):
        done = cli(*arguments)
        assert done.code == code, done.err
        return " ".join((done.out + done.err).split())

    run("score", tmp_path / "b.csv", "--person", "who", "--bank", tmp_path / "bank", "-o", tmp_path / "scored")
    record = json.loads((tmp_path / "scored" / "score.json").read_text())
    assert record["counts"]["thresholds"] == 18
    assert record["reliability"]["alpha"] > 0.5
    said = run("update", tmp_path / "bank", tmp_path / "b.csv", "--person", "who", "-o", tmp_path / "new")
    assert "2,400 answers of 400 people to 6 items" in said
    assert "already" in run("update", tmp_path / "new", tmp_path / "b.csv", "--person", "who", code=2)
    fit(tmp_path / "c.csv", "--person", "who", "--bank", tmp_path / "other")
    said = run("link", tmp_path / "bank", tmp_path / "other", "-o", tmp_path / "linked")
    assert "none of 15 thresholds of 5 common items" in said or "of 15 thresholds of 5 common items, beyond" in said
    fit(tmp_path / "c.csv", "--person", "who", "--anchors", tmp_path / "bank", "-o", tmp_path / "out")
    items = pl.read_csv(tmp_path / "out" / "items.csv")
    assert items["status"].to_list() == ["anchored"] * 5
    assert "--anchors and --bank name the same bank" in fit(
        tmp_path / "c.csv", "--person", "who", "--anchors", tmp_path / "bank", "--bank", tmp_path / "bank", code=2
    ).replace("\n", " ")
    (tmp_path / "x.csv").write_text("who,q1,q2\nann,1,7\nbob,0,1\n")
    said = run("score", tmp_path / "x.csv", "--bank", tmp_path / "bank", code=2)
    assert "'ann' answered 'q2' with 7; it has 0, 1, 2, 3" in said
    words = pl.col("q1", "q2").replace_strict({0: "no", 1: "a little", 2: "quite", 3: "very"})
    second.select("who", words).write_csv(tmp_path / "w.csv")
    options = ["--person", "who", "--bank", tmp_path / "bank", "--recode", "no,a little,quite,very"]
    run("score", tmp_path / "w.csv", *options)


def test_simulated_answers_come_back(fit, cli, tmp_path):
    """Estimates of the truth that was written: within four standard errors, and with it as their mean."""
    for model in ("pcm", "rsm"):
        options = ["--persons", "1500", "--items", "6", "--model", model, "--categories", "4", "--seed", "3"]
        done = cli("simulate", "-o", tmp_path / "a.csv", "--truth", tmp_path / "t.csv", *options)
        assert done.code == 0, done.err
        assert "1,500 people, 6 items, 9,000 responses" in done.out
        fit(tmp_path / "a.csv", "--model", model, "--skip", "fit", "-o", tmp_path / "out")
        found, truth = pl.read_csv(tmp_path / "out" / "thresholds.csv"), pl.read_csv(tmp_path / "t.csv")
        both = found.join(truth.rename({"threshold": "true"}), on=["item", "category"])
        assert len(both) == 18
        assert (((both["threshold"] - both["true"]) / both["se"]).abs() < 4).all()
        assert (both["threshold"] - both["true"]).abs().mean() < 0.15
    for options, words in (
        (["--categories", "3"], "--categories is for ordered"),
        (["--model", "x"], "--model is 'x'"),
    ):
        done = cli("simulate", "-o", tmp_path / "b.csv", "--items", "5", *options)
        assert done.code == 2
        assert words in " ".join(done.err.split())
    assert not (tmp_path / "b.csv").exists()


def test_an_adaptive_test_is_seen_and_calibrated_as_one(fit, cli, tmp_path):
    drawn = ["simulate", "-o", tmp_path / "log.csv", "--model", "pcm", "--persons", "600", "--items", "40"]
    assert cli(*drawn, "--seed", "1", "--categories", "3", "--design", "adaptive", "--length", "10").code == 0
    for words in (fit(tmp_path / "log.csv"), cli("check", tmp_path / "log.csv").out):
        sentence = "Thresholds by conditional and by marginal maximum likelihood (CML, MML) disagree"
        assert sentence in " ".join(words.split())
    said = " ".join(fit(tmp_path / "log.csv", "--design", "adaptive", "-o", tmp_path / "out").split())
    assert "come from marginal maximum likelihood" in said
    record = json.loads((tmp_path / "out" / "fit.json").read_text())
    assert (record["design"], record["estimator"]) == ("adaptive", "mml")


def test_clusters_populations_and_weights_go_with_ordered_answers(fit, tmp_path):
    rows = "".join(f"{k},{k % 20},{'ab'[k % 2]},{1 + k % 3}\n" for k in range(1, 401))
    (tmp_path / "people.csv").write_text("person,room,grade,w\n" + rows)
    beside, out = ["--group-file", tmp_path / "people.csv"], ["-o", tmp_path / "out"]
    for options in (
        ["--clustered-by", "room"],
        ["--set", "refine=true", "--survey-weight", "w"],
        ["--estimator", "mml", "--population-by", "grade"],
        ["--model", "rsm", "--survey-weight", "w"],
        ["--model", "rsm", "--design", "adaptive", "--clustered-by", "room"],
    ):
        fit(REFERENCE / "scale8.csv", *beside, *options, *out)
        record = json.loads((tmp_path / "out" / "fit.json").read_text())
        assert record["argv"][0] == "fit"
        assert record["seconds"]["total"] > 0
        assert record["input"]["people"]["columns"] == [options[-1]]


def test_what_is_not_for_ordered_answers_is_said(fit, tmp_path):
    for options, words in (
        (["--model", "pcm", "-o", tmp_path / "a.xlsx", "--parquet"], "-o names a workbook"),
        (["--model", "rsm", "--anchors", tmp_path / "b"], "leave out --model"),
        (["--model", "pcm", "--threshold", "1"], "--threshold"),
        (["--model", "pcm", "--estimator", "jml"], "estimator is 'jml'"),
        (["--model", "2pl"], "--model is '2pl'"),
        (["--model", "rasch"], "neither 0/1 nor missing"),
    ):
        assert words in " ".join(fit(REFERENCE / "scale8.csv", *options, code=2).split())
    assert not list(tmp_path.iterdir())


def test_codes_for_missing_answers_are_not_categories(fit, tmp_path):
    """9 among 0 and 1 leaves a gap: an error, as before."""
    (tmp_path / "a.csv").write_text("q1,q2,q3\n0,1,9\n1,0,9\n9,1,1\n0,9,1\n")
    assert "--missing 9" in fit(tmp_path / "a.csv", code=2)
