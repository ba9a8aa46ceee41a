"""The tables people ask for: scores, forms, unexpected answers, groups, cuts, ranks, options; scales and anchors."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from drawn import drawn
from end_to_end.tables import column, numbers, read_csv, record, wide
from spectral_irt import SpectralRasch, datasets
from spectral_irt.bank import AnchoredRasch, Bank

pytestmark = pytest.mark.slow  # whole runs of commands or checks, seconds each


@pytest.fixture
def school(cli):
    """school.csv, 400 students of two sexes, some unknown; three who know the hard items only."""
    rng = np.random.default_rng(1)
    sex = rng.choice(["f", "m", ""], 400, p=[0.5, 0.45, 0.05])
    right = drawn(rng, rng.normal(0.5 * (sex == "f"), 1)[:, None] - np.linspace(-2, 2, 12))
    right[:3] = np.r_[np.zeros(6), np.ones(6)]
    wide("school.csv", right, student=[f"s{k}" for k in range(400)], sex=sex)


def test_scores_groups_and_cuts_are_written_and_shown(cli, school):
    said = cli.ok("fit school.csv --group sex --scale 500,100 --cut 450,550 -o out --all --parquet")
    for name in ("scores", "unexpected", "groups", "cuts"):
        assert pl.read_parquet(f"out/{name}.parquet").columns == list(read_csv(f"out/{name}.csv")[0])
    assert not Path("out/forms.csv").exists()  # everybody answered everything
    scores = read_csv("out/scores.csv")
    by_score = {row["score"]: float(row["measure"]) for row in scores}
    for row in read_csv("out/persons.csv"):
        assert float(row["measure"]) == pytest.approx(by_score[row["score"]], abs=1e-4)
    assert len(scores) == 13
    assert sum(int(row["n"]) for row in scores) == 400
    groups = read_csv("out/groups.csv")
    assert [row["group"] for row in groups] == ["f", "m", "(no label)"]
    assert float(groups[0]["measure_mean"]) > float(groups[1]["measure_mean"])
    classes = read_csv("out/cuts.csv")
    assert [row["class"] for row in classes] == ["1", "2", "3", "all"]
    assert sum(int(row["n"]) for row in classes[:3]) == int(classes[3]["n"]) == 400
    assert set(column("out/unexpected.csv", "person")[:9]) == {"s0", "s1", "s2"}
    assert record()["forms"] == {"forms": 1, "people_on_forms": 400, "sets_of_items": 1}
    assert [row["n"] for row in record()["cuts"]] == [int(row["n"]) for row in classes]
    assert f"sex: f {groups[0]['n']} {float(groups[0]['measure_mean']):.1f}" in said
    assert "class 2 450" in said
    assert "all classes 400 1.00" in said
    cli.ok("fit school.csv --skip persons -o out")
    assert sorted(os.listdir("out")) == ["fit.json", "items.csv"]  # the others are stale


def test_raw_cuts_and_refusals(cli, school):
    cli.ok("fit school.csv --cut raw:6 -o out")
    low = sum(score < 6 for score in numbers("out/persons.csv", "score"))
    assert numbers("out/cuts.csv", "n") == [low, 400 - low, 400]
    for options, says in (
        ("--cut 9", "the cut 9 is outside the scale"),
        ("--scale 500,100 --cut 4500", "the cut 4500 is outside the scale"),
        ("--cut raw:13", "not a raw score from 1 to 12"),
        ("--cut a,b", "--cut is 'a,b'; it is numbers"),
        ("--cut 1 --skip persons", "leave out --skip persons"),
    ):
        cli.refused(f"fit school.csv {options} -o nothing", says)


def test_booklets_have_a_table_each_and_adaptive_tests_none(cli):
    rng = np.random.default_rng(2)
    right = drawn(rng, rng.normal(size=(300, 1)) - np.linspace(-2, 2, 16))
    booklets = right.copy()
    booklets[:150, 10:], booklets[150:, :6] = np.nan, np.nan
    wide("booklets.csv", booklets)
    cli.ok("fit booklets.csv -o two --all --cut 0.3")
    items = [f"q{k + 1}" for k in range(16)]
    rows = read_csv("two/forms.csv")
    assert [row["item"] for row in rows if row["form"] == "form 1"] == items[:10]
    assert [row["item"] for row in rows if row["form"] == "form 2"] == items[6:]
    assert column("two/scores.csv", "n_items") == ["10"] * 22
    cli.refused("fit booklets.csv --cut raw:5", "the cut on the scale of the abilities: --cut NUMBER")
    right[rng.random(right.shape) < 0.5] = np.nan
    wide("own.csv", right)
    assert "There is no table from raw score to person measure" in cli.ok("fit own.csv -o none --cut 0.3")
    assert not Path("none/scores.csv").exists()
    assert 0.6 < numbers("none/cuts.csv", "accuracy")[1] < 1
    assert "forms" not in cli.ok("fit own.csv")  # said only of what is written


def test_scores_with_weights_anchors_and_populations(cli, school):
    Path("weights.csv").write_text("student,weight\n" + "".join(f"s{k},{1 + k % 3}\n" for k in range(400)))
    cli.ok("fit school.csv --ignore sex -o plain")
    cli.ok("fit school.csv --ignore sex --anchors plain/items.csv -o anchored")
    cli.ok("fit school.csv --ignore sex --survey-weight weight --group-file weights.csv -o weighted")
    for name in ("n", "percentile"):
        assert column("plain/scores.csv", name) == column("anchored/scores.csv", name)
    np.testing.assert_allclose(*(numbers(f"{at}/scores.csv", "ability") for at in ("plain", "anchored")), atol=1e-6)
    assert column("weighted/scores.csv", "n") == column("plain/scores.csv", "n")
    assert not Path("weighted/groups.csv").exists()
    cli.ok("fit school.csv --estimator mml --population-by sex -o populations")
    groups = {row["group"]: row for row in read_csv("populations/groups.csv")}
    known = [found for found in record("populations")["populations"] if found["group"] in groups]
    assert len(known) >= 2
    for found in known:
        mine = groups[found["group"]]
        assert float(mine["latent_mean"]) == pytest.approx(found["mean"], abs=0.02)
        assert float(mine["latent_sd"]) == pytest.approx(found["sd"], abs=0.05)


def test_with_a_key_every_option_is_written_and_a_wrong_key_is_said(cli):
    rng = np.random.default_rng(4)
    right = drawn(rng, rng.normal(size=(400, 1)) - np.linspace(-1, 1, 12))
    chosen = np.where(right, "A", np.array(list("BCD"))[rng.integers(0, 3, right.shape)]).astype(object)
    chosen[::9, 10:] = ""
    chosen[5, 3] = ""
    names = [f"q{k + 1}" for k in range(12)]
    pl.DataFrame({"id": np.arange(400), **dict(zip(names, chosen.T.tolist(), strict=True))}).write_csv("answers.csv")
    pl.DataFrame({"item": names, "key": ["A"] * 7 + ["C"] + ["A"] * 4}).write_csv("key.csv")
    said = cli.ok("fit answers.csv --key key.csv --blanks not-reached=wrong -o out --all")
    assert "The key of 1 item is probably wrong. 'q8': the key is 'C', but the" in said
    assert "Cells that count as wrong, as asked: 90 not-reached" in said
    table = pl.read_csv("out/distractors.csv")
    assert table.columns[:5] == ["item", "option", "key", "n", "share"]
    assert table["n"].sum() == 400 * 12 - 1  # one omitted
    assert table.filter(pl.col("option") == "(blank)")["n"].to_list() == [45, 45]
    analysis = pl.read_csv("out/item_analysis.csv")
    assert analysis["omitted"].sum() == 1
    assert analysis["not_reached"].to_list() == [0] * 10 + [45, 45]
    assert analysis["n"].to_list() == [400] * 3 + [399] + [400] * 8
    assert record()["input"]["reading"]["not_reached"] == "wrong"
    assert "distractors.csv" in record()["outputs"]
    cli.ok("fit answers.csv --correct A -o out --all")  # no key: the table is stale
    assert not Path("out/distractors.csv").exists()


def test_rank_with_and_without_a_number(cli, lsat):
    cli.ok("fit --rank lsat.csv -o ten")
    cli.ok("fit lsat.csv --rank 2 -o two")
    assert column("ten/ranking.csv", "item") == ["item3", "item2", "item4", "item5", "item1"]
    assert numbers("ten/ranking.csv", "p_top") == [1] * 5
    assert sum(numbers("two/ranking.csv", "p_top")) == pytest.approx(2)
    cli.refused("fit lsat.csv --rank", "-o DIR")


def test_a_scale_for_reports(cli, lsat):
    cli.ok("fit lsat.csv -o out --scale 500,100 --bank bank")
    persons, items = read_csv("out/persons.csv"), read_csv("out/items.csv")
    measure = np.array(numbers(persons, "measure"))
    assert (measure.mean(), measure.std()) == (pytest.approx(500), pytest.approx(100))
    scale = record()["scale"]
    for rows, name in ((persons, "ability"), (items, "difficulty")):
        expected = scale["mean"] + scale["unit"] * np.array(numbers(rows, name))
        assert numbers(rows, "measure") == pytest.approx(expected.tolist())
        assert numbers(rows, "measure_se") == pytest.approx([scale["unit"] * x for x in numbers(rows, "se")])
    assert Bank.load("bank").scale.unit == scale["unit"]
    cli.ok("fit lsat.csv -o same --scale 500,100 --skip persons")
    assert record("same")["scale"] == scale
    cli.ok("fit lsat.csv -o out --anchors bank")  # the scale comes with the anchors
    assert record()["scale"]["unit"] == scale["unit"]
    assert "measure" in read_csv("out/persons.csv")[0]


def test_anchors_from_a_bank_and_from_a_file(cli, lsat):
    cli.ok("fit lsat.csv -o old --bank bank")
    Path("anchors.csv").write_text("\n".join(Path("old/items.csv").read_text().splitlines()[:3]))
    assert "anchored to 2 items" in cli.ok("fit lsat.csv -o out --anchors anchors.csv")
    rows = read_csv("out/items.csv")
    assert [row["status"] for row in rows] == ["anchored", "anchored", "ok", "ok", "ok"]
    assert {"anchored", "displacement", "displacement_se"} <= set(rows[0])
    expected = AnchoredRasch("anchors.csv").fit(datasets.load_lsat())
    assert numbers(rows, "difficulty") == expected.difficulty_.tolist()
    assert record()["counts"]["items_anchored"] == 2
    assert record()["settings"]["anchors"] == "anchors.csv"
    cli.ok("export out --to ifile -o i.csv")
    assert column("i.csv", "STATUS") == ["2", "2", "1", "1", "1"]
    cli.ok("fit lsat.csv -o again --anchors bank")
    assert record("again")["counts"]["items_anchored"] == 5
    Path("anchors.csv").write_text("item,difficulty\nitem1,-1\nitem2,0.5\nx,1\n")
    assert "1 anchor is not in the data and does nothing: 'x'" in cli.ok("fit lsat.csv --anchors anchors.csv")


def test_an_anchor_that_is_set_free(cli, lsat):
    Path("anchors.csv").write_text("item,difficulty\nitem1,-1.3\nitem2,0.5\nitem3,2.4\nitem4,0.2\n")
    first = cli.ok("fit lsat.csv --all -o held --anchors anchors.csv")
    assert "displ." in first
    assert "'item3' by -" in first
    assert "--free item3" in first
    places = ["held/items.csv", "held/item_fit.csv"]
    displacement = record("held")["anchors"]["items"][2]["displacement"]
    assert [numbers(read_csv(place), "displacement")[2] for place in places] == [displacement] * 2
    assert "item3" in cli.ok("fit lsat.csv -o out --anchors anchors.csv --free item3,item4 --report report.html")
    rows = read_csv("out/items.csv")
    assert [row["status"] for row in rows] == ["anchored", "anchored", "ok", "ok", "ok"]
    assert record()["input"]["free"] == record()["anchors"]["free"] == ["item3", "item4"]
    assert "the anchors of &#39;item3&#39;, &#39;item4&#39; set free" in Path("report.html").read_text()
    one = cli.ok("fit lsat.csv -o one --anchors anchors.csv --free item3")
    assert "1 anchor was set free, as asked, and estimated: 'item3'." in one
    alone = float(read_csv("one/items.csv")[2]["difficulty"])
    assert alone - 2.4 == pytest.approx(displacement, abs=0.002)
    cli.refused("fit lsat.csv --free item3", "--anchors")
    cli.refused("fit lsat.csv --anchors anchors.csv --free item9", "--free names 'item9'")
    cli.refused("fit lsat.csv --anchors anchors.csv --free item5", "'item5', no anchor and therefore free already")
    cli.ok("fit lsat.csv --bank bank")
    cli.refused("fit lsat.csv --anchors bank --bank bank --free item3", "another bank")


def test_files_for_other_programs(cli, lsat):
    cli.ok("fit lsat.csv -o out --scale 500,100")
    for to, name in (("ifile", "i.csv"), ("pfile", "deep/p.txt"), ("catsim", "c.csv")):
        assert cli.ok(f"export out --to {to} -o {name}") == f"Written: {name}."
    fit = SpectralRasch().fit(datasets.load_lsat())
    items = read_csv("i.csv")
    heads = "ENTRY MEASURE STATUS COUNT SCORE ERROR IN.MSQ IN.ZSTD OUT.MSQ OUT.ZSTD DISPLACE PTME"
    assert list(items[0])[:12] == heads.split()
    assert [row["NAME"] for row in items] == fit.item_labels_.tolist()
    assert all(row["IN.MSQ"] for row in items)
    lines = Path("deep/p.txt").read_text().splitlines()
    assert lines[0] == "; spectral-irt, out"
    assert len(lines) == 1002
    assert sum(line.startswith(";") for line in lines) == 2 + 301  # extreme scores are commented out
    assert numbers("c.csv", "b") == fit.difficulty_.tolist()
    assert {(row["a"], row["c"], row["d"]) for row in read_csv("c.csv")} == {("1.0", "0.0", "1.0")}
