"""`fit --plots DIR`: the standard set of pictures, complete or not at all with everything else that is written."""

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

import spectral_irt as si
from end_to_end.tables import contents
from spectral_irt.plots import all as standard

pytestmark = pytest.mark.slow  # whole runs of commands or checks, seconds each

NAMES = sorted(f"{name}.{kind}" for name in (*standard.EVERY, "icc") for kind in standard.KINDS)


def test_the_standard_set_is_written_the_same_each_time(cli, lsat):
    tables = {"items.csv", "persons.csv", "scores.csv", "fit.json"}
    assert "Also written: deep/pictures." in cli.ok("fit lsat.csv --plots deep/pictures -o deep/pictures")
    assert set(os.listdir("deep/pictures")) == {*NAMES, *tables}
    first = contents()
    for name in NAMES:
        data = first[f"deep/pictures/{name}"]
        if name.endswith(".svg"):
            assert ElementTree.fromstring(data).tag.endswith("svg")
        else:
            assert data.startswith(b"\x89PNG")
        assert len(data) < 400_000
    answers = si.read("lsat.csv")
    paths = si.SpectralRasch().fit(answers).analyse(answers).plot.write("deep/pictures")  # over the old ones
    assert sorted(path.name for path in paths) == NAMES
    assert contents() == first


def test_what_cannot_be_drawn_is_left_out_and_said(cli, lsat, monkeypatch):
    answers = si.read("lsat.csv")
    Path("pictures").mkdir()
    si.SpectralRasch().fit(answers).analyse(answers).plot.items().save("pictures/items.svg")
    monkeypatch.setattr(standard, "SHEET", 3)
    said = cli.ok("fit lsat.csv --plots pictures --set se=none")
    assert "No picture of items: no item has a finite standard error" in said
    assert sorted(os.listdir("pictures")) == [name for name in NAMES if not name.startswith("items")]  # none is stale
    assert "The 3 items of 5 that fit worst" in Path("pictures/icc.svg").read_text()


def test_nothing_is_left_when_a_picture_fails(cli, lsat, monkeypatch):
    def full(figure, draft, target):
        if target.name == "fit.png":
            raise OSError(28, os.strerror(28))
        draft.write_bytes(b"picture")

    monkeypatch.setattr(standard, "write_figure", full)
    cli.refused("fit lsat.csv --plots pictures -o results --bank bank", "fit.png' cannot be written: the disk is full")


def test_a_picture_of_somebody_else_is_kept(cli, lsat):
    Path("pictures").mkdir()
    Path("pictures/wright.png").write_bytes(b"\x89PNG my own")
    cli.refused("fit lsat.csv --plots pictures", "'pictures/wright.png' exists, and spectral-irt did not make it")
