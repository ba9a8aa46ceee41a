"""`fit --plots DIR`: the standard set of pictures, complete or not at all with everything else that is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.plots import all as standard

pytestmark = pytest.mark.slow  # whole runs of commands or checks, seconds each

Cli = Callable[..., Any]
NAMES = sorted(f"{name}.{kind}" for name in (*standard.EVERY, "icc") for kind in standard.KINDS)


def names(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@pytest.mark.slow
def test_the_standard_set_is_written_the_same_each_time(cli: Cli, lsat: Path) -> None:
    done = cli("fit", lsat, "--plots", "deep/pictures")
    assert done.code == 0
    assert "Written: deep/pictures." in done.out
    assert names("deep/pictures") == NAMES
    first = contents()
    for name in NAMES:
        data = first[f"deep/pictures/{name}"]
        if name.endswith(".svg"):
            assert ElementTree.fromstring(data).tag.endswith("svg")
        else:
            assert data.startswith(b"\x89PNG")
        assert len(data) < 400_000
    again = cli("fit", lsat, "--plots", "deep/pictures", "-o", "deep/pictures")  # beside the tables, over the old ones
    assert again.code == 0
    tables = {"items.csv", "persons.csv", "scores.csv", "fit.json"}
    assert {*NAMES, *tables} <= set(names("deep/pictures"))
    assert {name for name in names("deep/pictures") if name.endswith((".svg", ".png"))} == set(NAMES)
    assert all(contents()[name] == data for name, data in first.items())
    answers = si.read(str(lsat))
    paths = si.SpectralRasch().fit(answers).analyse(answers).plot.write("python")
    assert sorted(path.name for path in paths) == names("python") == NAMES
    assert all(path.read_bytes() == first[f"deep/pictures/{path.name}"] for path in paths)


@pytest.mark.slow
def test_what_cannot_be_drawn_is_left_out_and_said(cli: Cli, lsat: Path) -> None:
    assert cli("fit", lsat, "--plots", "pictures").code == 0
    done = cli("fit", lsat, "--plots", "pictures", "--set", "se=none")
    assert done.code == 0
    assert "No picture of items: no item has a finite standard error" in " ".join(done.out.split())
    assert names("pictures") == [name for name in NAMES if not name.startswith("items")]  # no stale one stays


def test_nothing_is_left_when_a_picture_fails(cli: Cli, lsat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(figure: Any, draft: Path, target: Path) -> None:
        if target.name == "fit.png":
            raise OSError(28, os.strerror(28))
        draft.write_bytes(b"picture")

    monkeypatch.setattr(standard, "write_figure", full)
    before = contents()
    done = cli("fit", lsat, "--plots", "pictures", "-o", "results", "--bank", "bank")
    assert done.code == 2
    assert "fit.png' cannot be written: the disk is full" in done.err
    assert contents() == before
    assert not Path("pictures").exists()
    assert not Path("results").exists()


def test_what_we_did_not_draw_is_not_replaced(cli: Cli, lsat: Path) -> None:
    Path("pictures").mkdir()
    Path("pictures/wright.png").write_bytes(b"\x89PNG my own")
    before = contents()
    done = cli("fit", lsat, "--plots", "pictures")
    assert done.code == 2
    assert "'pictures/wright.png' exists, and spectral-irt did not make it" in done.err
    assert contents() == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--skip", "persons"], "--plots shows people and item fit; leave out --skip persons."),
        (["--skip", "fit"], "leave out --skip fit."),
        (["--bank", "pictures"], "a bank has a folder of its own"),
    ],
)
def test_options_that_do_not_go_together(cli: Cli, lsat: Path, options: list[str], said: str) -> None:
    done = cli("fit", lsat, "--plots", "pictures", *options)
    assert done.code == 2
    assert said in done.err
    assert not Path("pictures").exists()


@pytest.mark.slow
def test_more_items_than_fit_on_a_sheet(cli: Cli) -> None:
    rng = np.random.default_rng(1)
    table = rng.random((300, 45)) < rng.random(45)
    rows = [",".join(f"q{k}" for k in range(45)), *(",".join(map(str, row)) for row in table.astype(int).tolist())]
    Path("wide.csv").write_text("\n".join(rows) + "\n")
    assert cli("fit", "wide.csv", "--plots", "pictures").code == 0
    assert "The 30 items of 45 that fit worst" in Path("pictures/icc.svg").read_text()
