"""`fit --wave` and `--waves`: change between waves, from option to files and report."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from end_to_end.tables import column

REFERENCE = Path(__file__).parents[1] / "reference" / "change.csv"
WRITTEN = ["change.csv", "fit.json", "item_change.csv", "items.csv", "occasions.csv", "persons.csv", "scores.csv"]


@pytest.fixture
def trial():
    frame = pl.read_csv(REFERENCE)
    frame.write_csv("trial.csv")
    items = [f"i{k}" for k in range(1, 6)]
    wide = frame.filter(pl.col("wave") == 1).select("person", "arm")
    for wave in (1, 2, 3):
        of_wave = frame.filter(pl.col("wave") == wave).rename({item: f"{item}_t{wave}" for item in items})
        wide = wide.join(of_wave.drop("arm", "wave"), on="person")
    wide.write_csv("wide.csv")


def test_files_terminal_and_report_have_the_change(cli, trial):
    shown = cli.ok("fit trial.csv --wave wave --arm arm --each-item --skip fit -o out --report report.html")
    assert "change Change in logits from wave 1 to 3: control +0.48 (SE 0.14" in shown
    assert sorted(path.name for path in Path("out").iterdir()) == WRITTEN
    assert len(column("out/change.csv", "change")) == 12
    assert len(column("out/persons.csv", "reliable")) == 240
    assert len(column("out/item_change.csv", "item")) == 10
    record = json.loads(Path("out/fit.json").read_text())
    assert record["change"]["waves"] == ["1", "2", "3"]
    assert record["change"]["each_item"]["df"] == 16
    page = Path("report.html").read_text()
    assert "Change over time" in page
    assert "240 people in 3 waves" in page
    assert "study = si.change(answers" in page
    assert "severity" not in page.lower()


@pytest.mark.parametrize("waves", ["'*_t1,*_t2,*_t3'", "auto"])
def test_a_wide_table_gives_the_same(cli, trial, waves):
    cli.ok("fit trial.csv --wave wave --arm arm -o long --skip persons,fit")
    cli.ok(f"fit wide.csv --waves {waves} --arm arm -o wide --skip persons,fit")
    long = np.array(column("long/change.csv", "change"), dtype=float)
    wide = np.array(column("wide/change.csv", "change"), dtype=float)
    np.testing.assert_allclose(long, wide, atol=1e-9)
    assert column("wide/change.csv", "wave")[:2] == ["t2", "t3"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fit trial.csv --wave arm", "answered more than once"),
        ("fit trial.csv --wave wave:3<2", "lacks 1"),
        ("fit trial.csv --arm arm", "--arm would do nothing without --wave or --waves"),
        ("fit trial.csv --wave wave --bank bank", "--wave does not go with --bank yet"),
        ("fit trial.csv --wave wave --facet arm", "--wave does not go with --facet yet"),
        ("fit trial.csv --wave wave --drop i1", "options that change items or persons"),
        ("fit wide.csv --waves '*_t1,*_t7'", "no column is called like '*_t7'"),
        ("fit wide.csv --waves '*_t1'", "names a single wave"),
        ("fit one.csv --wave wave", "a single wave"),
        ("fit trial.csv --wave wave --arm i1", "more than one value in the column 'i1'"),
    ],
)
def test_what_cannot_be_is_refused(cli, trial, line, message):
    pl.read_csv("trial.csv").filter(pl.col("wave") == 1).write_csv("one.csv")
    cli.refused(f"{line} -o out", message)
