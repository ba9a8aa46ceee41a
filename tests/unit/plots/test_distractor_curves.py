"""Distractor curves: readable, with names that are plain text, and in the standard set where there is a key."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import spectral_irt as si
from pictures import Picture
from spectral_irt.plots.distractors import distractor_sheet

pytestmark = pytest.mark.slow  # pictures

LABELS = ["$x^2$", "<script>alert(1)</script>", *(f"Item {k}" for k in range(3, 13))]
OPTIONS = ["A", "$b$", "a rather long option of many words", "D", "E", "F", "G", "H"]


def keyed_study(n_options: int) -> si.Analysis:
    rng = np.random.default_rng(3)
    theta, beta = rng.normal(size=(500, 1)), rng.normal(size=12)
    right = rng.random((500, 12)) < 1 / (1 + np.exp(beta - theta))
    chosen = np.where(right, 0, rng.integers(1, n_options, right.shape))
    table = np.array(OPTIONS, dtype=object)[chosen]
    key = dict.fromkeys(LABELS, "A") | {"Item 7": "D"}
    responses = si.Responses.from_wide(table, items=LABELS, key=key)
    return si.SpectralRasch().fit(responses).analyse(responses)


@pytest.fixture(scope="module")
def study() -> si.Analysis:
    return keyed_study(4)


@pytest.mark.parametrize("n_options", [4, 8])
def test_it_is_readable(n_options: int) -> None:
    display = keyed_study(n_options).plot.distractors("$x^2$")
    seen = Picture(display.plot())
    assert 0.01 < seen.ink < 0.6
    assert not seen.overlaps()
    assert not seen.cut()
    texts = {text.get_text(): text for text in seen.texts}
    assert any(text.startswith("A, the key (") for text in texts)
    assert any(text.startswith("$b$ (") and not texts[text].get_parse_math() for text in texts)
    assert "Item $x^2$" in texts
    if n_options == 8:  # the key and five of seven distractors
        assert any("2 rarer options left out" in text for text in texts)


def test_a_wrong_key_is_seen(study: si.Analysis) -> None:
    display = study.plot.distractors("Item 7")
    assert display.suspects == ("A",)
    assert any(text.get_text().endswith(": abler than the key") for text in Picture(display.plot()).texts)
    table = display.frame()
    assert table["share"].sum() == pytest.approx(table["stratum"].n_unique())
    up = table.filter(table["option"] == "A")["share"].to_list()
    assert up[-1] > up[0] + 0.3
    likeness = Picture(display.plot()).likeness(Picture(study.plot.distractors("Item 8").plot()))
    assert likeness < 0.99


def test_the_sheet_and_the_standard_set(study: si.Analysis, tmp_path: Path) -> None:
    sheet = distractor_sheet(study)
    seen = Picture(sheet.axes[0])
    assert not seen.cut()
    assert not seen.overlaps()
    names = {path.name for path in study.plot.write(tmp_path / "with")}
    assert {"distractors.svg", "distractors.png"} <= names
    responses = si.datasets.load_lsat()
    without = si.SpectralRasch().fit(responses).analyse(responses)
    assert not any("distractors" in path.name for path in without.plot.write(tmp_path / "without"))
    with pytest.raises(si.errors.OptionError, match="not scored with an answer key"):
        without.plot.distractors("item1")


def test_bad_questions(study: si.Analysis) -> None:
    with pytest.raises(si.errors.OptionError, match=r"there is no item 'item 8'\. Did you mean 'Item 8'"):
        study.plot.distractors("item 8")
    with pytest.raises(si.errors.OptionError, match="two groups of people or more"):
        study.plot.distractors("Item 8", strata=1)
