"""Ranks, the scale of report, anchors and files for other programs, by `spectral-irt fit`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from end_to_end.tables import numbers, read_csv, record
from spectral_irt import SpectralRasch, datasets, simulate
from spectral_irt.bank import AnchoredRasch, Bank

pytestmark = pytest.mark.slow  # many short runs of whole commands, or of long updates

Cli = Callable[..., Any]


def test_rank_with_and_without_a_number(cli: Cli, lsat: Path) -> None:
    assert cli("fit", "--rank", lsat, "-o", "ten").code == 0
    assert cli("fit", lsat, "--rank", "2", "-o", "two").code == 0
    ten, two = (read_csv(Path(folder, "ranking.csv")) for folder in ("ten", "two"))
    assert [row["item"] for row in ten] == ["item3", "item2", "item4", "item5", "item1"]
    assert numbers(ten, "p_top") == [1] * 5
    assert sum(numbers(two, "p_top")) == pytest.approx(2)
    assert cli("fit", lsat, "--rank", "0", "-o", "none").code == 2
    assert "-o DIR" in cli("fit", lsat, "--rank").err


def test_rank_by_the_lower_end(cli: Cli, tmp_path: Path) -> None:
    """The first of twelve items, which six people answered, is the hardest by its estimate and not by its lower end."""
    dense = simulate.rasch(400, 12, seed=3, difficulty_sd=0.3).responses.to_dense()
    dense[6:, 0] = np.nan
    dense[:6, :2] = [[0, 1]] * 5 + [[1, 0]]
    rows = [",".join("" if np.isnan(x) else f"{x:.0f}" for x in row) for row in dense]
    (tmp_path / "few.csv").write_text("\n".join([",".join(f"q{k}" for k in range(12)), *rows]) + "\n")
    options = ["few.csv", "--set", "regularization=0", "--rank"]
    assert cli("fit", *options, "1", "-o", "hard").code == 0
    assert cli("fit", *options, "1:lower", "-o", "safe").code == 0
    hard, safe = (read_csv(Path(folder, "ranking.csv")) for folder in ("hard", "safe"))
    assert hard[0]["item"] == "q0" != safe[0]["item"]
    assert {row["item"]: row["p_top"] for row in hard} == {row["item"]: row["p_top"] for row in safe}
    assert "--rank is '1:upper'" in cli("fit", *options, "1:upper", "-o", "none").err


def test_a_scale_for_reports(cli: Cli, lsat: Path) -> None:
    assert cli("fit", lsat, "-o", "out", "--scale", "500,100", "--bank", "bank").code == 0
    persons, items = read_csv("out/persons.csv"), read_csv("out/items.csv")
    measure = np.array(numbers(persons, "measure"))
    assert (measure.mean(), measure.std()) == (pytest.approx(500), pytest.approx(100))
    scale = record()["scale"]
    for rows, name in ((persons, "ability"), (items, "difficulty")):
        assert numbers(rows, "measure") == pytest.approx(
            [scale["mean"] + scale["unit"] * x for x in numbers(rows, name)]
        )
        assert numbers(rows, "measure_se") == pytest.approx([scale["unit"] * x for x in numbers(rows, "se")])
    assert Bank.load("bank").scale.unit == scale["unit"]
    assert cli("fit", lsat, "-o", "same", "--scale", "500,100", "--skip", "persons").code == 0
    assert record("same")["scale"] == scale


@pytest.mark.parametrize("scale", ["500", "500,0", "500,-1", "a,b", "nan,1", "1,inf", "1,2,3"])
def test_a_scale_that_is_none(cli: Cli, lsat: Path, scale: str) -> None:
    done = cli("fit", lsat, "--scale", scale)
    assert done.code == 2
    assert "as in --scale 500,100" in done.err


def test_anchors_from_a_bank_and_from_a_file(cli: Cli, lsat: Path) -> None:
    cli("fit", lsat, "-o", "old", "--bank", "bank")
    text = Path("old/items.csv").read_text().splitlines()
    Path("anchors.csv").write_text("\n".join([text[0], *text[1:3]]))
    done = cli("fit", lsat, "-o", "out", "--anchors", "anchors.csv")
    assert cli("export", "out", "--to", "ifile", "-o", "i.csv").code == 0
    assert (done.code, done.err) == (0, "")
    rows = read_csv("out/items.csv")
    assert [row["status"] for row in rows] == ["anchored", "anchored", "ok", "ok", "ok"]
    assert {"anchored", "displacement", "displacement_se"} <= set(rows[0])
    expected = AnchoredRasch("anchors.csv").fit(datasets.load_lsat())
    assert numbers(rows, "difficulty") == expected.difficulty_.tolist()
    assert record()["counts"]["items_anchored"] == 2
    assert record()["settings"]["anchors"] == "anchors.csv"
    assert [row["STATUS"] for row in read_csv("i.csv")] == ["2", "2", "1", "1", "1"]
    assert "anchored to 2 items" in " ".join(done.out.split())
    assert cli("fit", lsat, "-o", "again", "--anchors", "bank").code == 0
    assert record("again")["counts"]["items_anchored"] == 5


def test_the_scale_of_a_bank_comes_with_its_anchors(cli: Cli, lsat: Path) -> None:
    cli("fit", lsat, "--bank", "bank", "--scale", "500,100")
    assert cli("fit", lsat, "-o", "out", "--anchors", "bank").code == 0
    assert record()["scale"]["unit"] == Bank.load("bank").scale.unit
    assert "measure" in read_csv("out/persons.csv")[0]


ANCHORS = {
    "conflict": ("item,difficulty\nitem1,0\nitem1,1\n", "'item1' more than once, with different difficulties"),
    "other items": ("item,difficulty\nx,0\ny,1\n", "none of its items", "is among the anchors"),
    "no number": ("item,difficulty\nitem1,easy\n", "line 2", "'easy', no number"),
    "no columns": ("a,b\n1,2\n", "needs a heading with the columns item and difficulty"),
    "another scale": ("item,difficulty\nitem1,500\nitem2,550\n", "beyond 20 logits"),
}


@pytest.mark.parametrize("name", ANCHORS)
def test_bad_anchors(cli: Cli, lsat: Path, name: str) -> None:
    content, *says = ANCHORS[name]
    Path("anchors.csv").write_text(content)
    done = cli("fit", lsat, "-o", "out", "--anchors", "anchors.csv")
    assert (done.code, done.out) == (2, "")
    for text in says:
        assert text in done.err
    assert not Path("out").exists()


def test_anchors_that_are_not_there_and_options_that_do_not_go_with_them(cli: Cli, lsat: Path) -> None:
    assert "there is no bank at 'none'" in cli("fit", lsat, "--anchors", "none").err
    Path("anchors.csv").write_text("item,difficulty\nitem1,-1\nitem2,0.5\nx,1\n")
    done = cli("fit", lsat, "--anchors", "anchors.csv")
    assert done.code == 0
    assert "1 anchor is not in the data and does nothing: 'x'" in " ".join(done.out.split())
    done = cli("fit", lsat, "--anchors", "anchors.csv", "--estimator", "cml", "--set", "nu=1")
    assert done.code == 2
    assert "leave out --estimator, --set nu" in done.err


def test_files_for_other_programs(cli: Cli, lsat: Path) -> None:
    cli("fit", lsat, "-o", "out", "--scale", "500,100")
    for to, name in (("ifile", "i.csv"), ("pfile", "deep/p.txt"), ("catsim", "c.csv")):
        done = cli("export", "out", "--to", to, "-o", name)
        assert (done.code, done.out, done.err) == (0, f"Written: {name}.\n", "")
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
    cat = read_csv("c.csv")
    assert numbers(cat, "b") == fit.difficulty_.tolist()
    assert {(row["a"], row["c"], row["d"]) for row in cat} == {("1.0", "0.0", "1.0")}


def test_places_that_clash(cli: Cli, lsat: Path) -> None:
    before = lsat.read_bytes()
    cases = {
        ("--report", "r.html", "-o", "r.html"): "-o names a folder, or a workbook",
        ("-o", "out", "--report", "out/fit.json"): "fit.json",
        ("-o", "out", "--bank", "out"): "a bank has a folder of its own",
        ("--bank", lsat): "is a file, not a folder",
        ("--bank", lsat.parent): "not a bank; choose another place",
        ("--skip", "fit", "--bootstrap", 99): "leave out --skip fit",
        ("--bootstrap", "99:no"): "--bootstrap 200",
        ("--skip", "people"): "it can be persons, fit",
        ("--ability", "map"): "--ability is 'map'; it can be wle, ml, eap",
    }
    for options, sentence in cases.items():
        done = cli("fit", lsat, *options)
        assert (done.code, done.out) == (2, ""), options
        assert sentence in done.err
    assert os.listdir() == ["lsat.csv"]
    assert lsat.read_bytes() == before
