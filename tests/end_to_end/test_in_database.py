"""`spectral-irt fit duckdb:FILE#TABLE`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from spectral_irt import SpectralRasch, datasets
from spectral_irt.cli.main import main

pytestmark = pytest.mark.slow  # many short runs of whole jobs

duckdb = pytest.importorskip("duckdb")


@pytest.fixture
def lsat(tmp_path: Path) -> str:
    responses = datasets.load_lsat()
    person, item, right = responses.answers()
    frame = pl.DataFrame({"person": person, "item": responses.items[item].tolist(), "correct": right})
    connection = duckdb.connect(str(tmp_path / "school.duckdb"))
    connection.register("frame", frame.to_arrow())
    connection.execute('CREATE TABLE "the answers" AS SELECT * FROM frame')
    connection.close()
    return f"duckdb:{tmp_path / 'school.duckdb'}"


def test_the_same_files_as_a_fit(lsat: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "results"
    command = ["fit", f"{lsat}#the answers", "-o", str(place)]
    assert main(command) == 0
    assert "5 items" in (said := capsys.readouterr().out)
    assert "People and fit were not computed" in said
    assert sorted(path.name for path in place.iterdir()) == ["fit.json", "items.csv"]
    items = pl.read_csv(place / "items.csv")
    fit = SpectralRasch(refine=False).fit(datasets.load_lsat())
    assert items["difficulty"].to_list() == pytest.approx(fit.difficulty_.tolist(), abs=1e-9)
    assert items["se"].to_list() == pytest.approx(fit.se_.tolist(), abs=1e-6)
    record = json.loads((place / "fit.json").read_text())
    assert record["counts"]["persons"] == 1000
    assert record["input"]["reading"] == {"table": "the answers"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["#the answers", "--skip", "none"], "--skip none: the database gives difficulties and errors"),
        (["#the answers", "--model", "pcm"], "--model: the database gives"),
        (
            ["#the answers", "--estimator", "cml", "--set", "refine=true"],
            "--estimator, --set refine: the database gives",
        ),
        (["#answers"], "there is no table or view 'answers' that we may see; it has 'the answers'"),
        ([""], "is a database; say what to read from it with --sql"),
        (["#the answers", "answers.csv"], "no file is read with it"),
    ],
)
def test_what_does_not_go_together(
    lsat: str, options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", lsat + options[0], *options[1:], "-o", str(tmp_path / "results")]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
    assert not (tmp_path / "results").exists()


def test_neither_file_nor_database(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit"]) == 2
    assert "missing argument 'FILE'" in capsys.readouterr().err
