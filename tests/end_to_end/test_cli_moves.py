"""Moves on the command line: what is written, done again from the ledger, and refused."""

import json
import tomllib
from pathlib import Path

import polars as pl
import pytest

LINE = "fit quiz.csv --key quiz_key.csv --missing 9 --skip fit"


@pytest.fixture
def quiz(cli):
    cli.ok("demo --files .")
    return cli


def test_moves_are_in_every_result_and_are_done_again(quiz):
    moves = "--drop density --join moon+plants=biology --split tides:region --drop-persons out.csv"
    Path("out.csv").write_text("person\np001\np002\n")
    shown = quiz.ok(f"{LINE} {moves} -o first --report report.html")
    assert "density dropped; 2 people dropped, as listed; moon and plants joined; tides split by region." in shown
    record = json.loads(Path("first/fit.json").read_text())
    assert [move["move"] for move in record["moves"]] == ["drop", "drop_persons", "join", "split"]
    assert record["moves"][0]["effect"]["items"] == [30, 29]
    assert record["counts"]["persons"] == 798
    assert "moves.toml" in record["outputs"]
    items = pl.read_csv("first/items.csv")["item"].to_list()
    assert {"biology", "tides[region=coast]", "tides[region=inland]"} <= set(items)
    assert not {"density", "moon", "plants", "tides"} & set(items)
    page = Path("report.html").read_text()
    assert "What was changed" in page
    assert "Before this fit 4 changes were made: density dropped;" in page
    assert tomllib.loads(Path("first/moves.toml").read_text())["data"] == record["first_digest"]

    quiz.ok(f"{LINE} --moves first/moves.toml -o second")
    for name in ("items.csv", "persons.csv", "scores.csv", "thresholds.csv", "moves.toml"):
        assert Path("first", name).read_bytes() == Path("second", name).read_bytes()
    quiz.ok(f"{LINE} -o second")  # without moves, no ledger is left
    assert not Path("second/moves.toml").exists()


def test_a_questionnaire_keeps_its_raw_scores(quiz):
    line = "fit survey.csv --recode never,rarely,sometimes,often,always --skip fit"
    quiz.ok(f"{line} -o plain")
    quiz.ok(f"{line} --collapse '*:0,1,1,2,3' -o merged")
    plain, merged = (pl.read_csv(f"{folder}/persons.csv") for folder in ("plain", "merged"))
    name = "code_sum" if "code_sum" in plain.columns else "score"
    assert plain[name].to_list() == merged["code_sum"].to_list()
    scores = pl.read_csv("merged/scores.csv").filter(pl.col("form") == "form 1")
    assert (scores["code_sum"][0], scores["code_sum_high"][-1]) == (0, 40)
    assert scores["score"].max() == 30


def test_the_codes_of_numbers_stay(quiz):
    quiz.ok("simulate --model pcm --persons 300 --items 5 --categories 4 --seed 2 -o ordered.csv")
    table = pl.read_csv("ordered.csv")
    table.with_columns(pl.col(table.columns[1:]) + 1).write_csv("coded.csv")
    quiz.ok("fit coded.csv --collapse '*:0,1,1,2' -o merged --skip fit")
    quiz.ok("fit coded.csv -o plain --skip fit")
    plain, merged = (pl.read_csv(f"{folder}/persons.csv") for folder in ("plain", "merged"))
    assert plain["code_sum"].to_list() == merged["code_sum"].to_list()


def test_a_bank_of_merged_categories_keeps_the_sums(quiz):
    quiz.ok("simulate --model pcm --persons 300 --items 5 --categories 4 --seed 2 -o ordered.csv")
    quiz.ok("fit ordered.csv --collapse '*:0,1,1,2' --bank bank -o merged --skip fit")
    from spectral_irt import load

    table = load("bank").calibration.score_table()
    scores = pl.read_csv("merged/scores.csv")
    own = scores.filter(pl.col("n_items") == 5)
    assert table["code_sum_high"].to_list() == own["code_sum_high"].to_list()


def test_a_dry_run_makes_the_moves_and_writes_nothing(quiz):
    quiz.ok(f"{LINE} --split tides:region --dry-run")
    quiz.refused(f"{LINE} --split tides:booklets --dry-run", "booklets")
    quiz.refused(f"{LINE} --drop tide --dry-run", "which is no item")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--drop tide", ("--drop names 'tide', which is no item", "Did you mean 'tides'")),
        ("--split tides", ("it is ITEM:COLUMN",)),
        ("--split tides:sex", ("has no column 'sex'",)),
        ("--join moon", ("two items or more",)),
        ("--join moon,tides", ("two items or more joined by +, as in --join moon+tides",)),
        ("--join moon+tides=echo", ("one of that name already",)),
        ("--collapse tides:0,0", ("an item has at least two",)),
        ("--collapse tides:1,0", ("ITEM:NEW",)),
        ("--drop tides --split tides:region", ("an earlier move took away: tides dropped",)),
        ("--drop-persons quiz_key.csv", ("who are not among the persons",)),
        ("--drop-persons absent.csv", ("absent.csv",)),
        ("--moves absent.toml", ("there is no file 'absent.toml'; check the name and the directory",)),
        ("--moves quiz.csv", ("is no file of moves",)),
    ],
)
def test_what_cannot_be_done_leaves_nothing(quiz, options, says):
    quiz.refused(f"{LINE} {options} -o out", *says)


def test_two_fits_side_by_side(quiz):
    quiz.ok(f"{LINE} -o first")
    quiz.ok(f"{LINE} --drop density --split tides:region -o second")
    shown = quiz.ok("compare-fits first second --cut -0.5,0.5 -o both")
    assert "EAP reliability" in shown
    assert "Only in 'first': 2 items, 'tides', 'density'." in shown
    assert "Only in 'second': 2 items, 'tides[region=coast]', 'tides[region=inland]'." in shown
    assert "change class at -0.5, 0.5" in shown
    items = pl.read_csv("both/items.csv")
    assert items.height == 28
    assert abs(items["difference"].mean()) < 1e-9
    first, second = (pl.read_csv(f"{folder}/items.csv") for folder in ("first", "second"))
    both = items.join(first, on="item").join(second, on="item", suffix="_second")
    shift = (both["difficulty"] - both["difficulty_second"]).mean()
    assert (both["difficulty_after"] - both["difficulty_second"] - shift).abs().max() < 1e-9
    for folder in ("first", "second", "./first", "both/../second"):
        quiz.refused(f"compare-fits first second -o {folder}", "the results would replace", "which is being read")
    for file in ("cf.csv", "cf.xlsx"):
        quiz.refused(
            f"compare-fits first second -o {file}", f"-o names a folder for items.csv and persons.csv, and is '{file}'"
        )
    quiz.refused("compare-fits first lsat.csv", "is not the results of a fit")
    quiz.ok("fit lsat.csv -o lsat --skip fit")
    quiz.refused("compare-fits first lsat", "have 0 items in common")


def test_remedies_name_the_option_that_does_them(quiz):
    quiz.ok("fit quiz.csv --key quiz_key.csv --missing 9 --group region -o first")
    record = json.loads(Path("first/fit.json").read_text())
    remedies = {finding["code"]: finding["remedy"] for finding in record["findings"]}
    assert "--split tides:region gives it a difficulty for each group" in remedies["differential_items"]
    assert "--drop density shows what changes without it" in remedies["misfitting_items"]


def test_a_ledger_of_another_file_is_said(quiz):
    quiz.ok(f"{LINE} --drop density -o first")
    Path("some.csv").write_text("\n".join(Path("quiz.csv").read_text().splitlines()[:600]) + "\n")
    shown = quiz.ok("fit some.csv --key quiz_key.csv --missing 9 --skip fit --moves first/moves.toml")
    assert "were made on other responses" in shown


def test_numbers_come_from_the_persons_held_out(quiz):
    quiz.ok(f"{LINE} --hold-out 0.5 --seed 4 -o first")
    first = json.loads(Path("first/fit.json").read_text())
    assert (first["counts"]["persons"], first["hold_out"]["for_choice"]) == (400, True)
    assert not Path("first/moves.toml").exists()
    shown = quiz.ok(f"{LINE} --hold-out 0.5 --seed 4 --dif-resolve region -o second --report report.html")
    assert "held out while changes were chosen" in " ".join(shown.split())
    second = json.loads(Path("second/fit.json").read_text())
    assert (second["counts"]["persons"], second["hold_out"]["for_choice"]) == (400, False)
    assert [move["option"] for move in second["moves"]] == ["--split tides:region"]
    persons = [set(pl.read_csv(f"{folder}/persons.csv")["person"]) for folder in ("first", "second")]
    assert not persons[0] & persons[1]
    page = Path("report.html").read_text()
    assert page.count("who were held out while changes were chosen on the other 400") >= 2
    quiz.ok(f"{LINE} --moves second/moves.toml -o again")
    for name in ("items.csv", "persons.csv", "moves.toml"):
        assert Path("second", name).read_bytes() == Path("again", name).read_bytes()
    quiz.refused(f"{LINE} --moves second/moves.toml --hold-out 0.3 -o third", "differs from the moves in")
    quiz.refused(f"{LINE} --hold-out 2 -o third", "--hold-out is 2; it is the share of persons held out")
