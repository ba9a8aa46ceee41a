"""Pictures of ordered answers: the numbers of the model computed once more in another way."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import spectral_irt as si
from pictures import Picture
from spectral_irt.plots.all import EVERY
from spectral_irt.plots.curves import CategoryCurves

ALWAYS = {*EVERY, "icc", "categories"}

pytestmark = pytest.mark.slow  # pictures


def test_many_categories_are_named_here_and_there() -> None:
    beta = np.linspace(-3, 3, 60)
    ax = CategoryCurves(label="q", thresholds=beta, codes=np.arange(61.0)).plot()
    assert not Picture(ax).overlaps()
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert (named[0], named[-1], len(named)) == ("0", "60", 12)


def test_category_curves_are_the_model_and_cross_at_the_thresholds(ordered_study: si.Analysis) -> None:
    beta = ordered_study.calibration.thresholds[:3]
    display = ordered_study.plot.categories("$x^2$")
    table = display.frame()
    p = table["probability"].to_numpy().reshape(4, -1)
    theta = table["ability"].to_numpy().reshape(4, -1)[0]
    assert np.allclose(p.sum(axis=0), 1)
    for k in range(3):  # the log odds of neighbors are theta - beta
        assert np.allclose(np.log(p[k + 1] / p[k]), theta - beta[k])
    lines = [line for line in display.plot().lines if len(line.get_xdata()) > 10]
    assert np.allclose([line.get_ydata() for line in lines], p)
    assert table["code"].unique().sort().to_list() == [0, 1, 2, 3]


def test_categories_that_are_nowhere_the_most_likely_are_said(ordered_study: si.Analysis) -> None:
    for beta in itertools.permutations([-1.6, -0.2, 0.5, 1.1]):
        display = CategoryCurves(label="q", thresholds=np.array(beta), codes=np.arange(5.0))
        p = display.frame()["probability"].to_numpy().reshape(5, -1)
        assert np.flatnonzero(display.modal).tolist() == np.unique(p.argmax(axis=0)).tolist()
    texts = [text.get_text() for text in Picture(ordered_study.plot.categories("two\nlines").plot()).texts]
    assert any("never the most likely answer: 1" in " ".join(text.split()) for text in texts)


def test_strata_have_the_means_observed_and_those_given_the_score(ordered_study: si.Analysis) -> None:
    """Against all patterns of answers, written out: P(x | score) ~ exp(-sum of the thresholds passed)."""
    display = ordered_study.plot.icc("$x^2$")
    table, steps = display.frame(), ordered_study.calibration.layout
    person, item, category = ordered_study.responses.answers()
    x = np.zeros((ordered_study.responses.n_persons, 6), dtype=int)
    x[person, item] = category
    passed = steps.cumulated(ordered_study.calibration.thresholds)
    every = np.array(list(itertools.product(*(range(k + 1) for k in steps.max_score))))
    weight = np.exp(-sum(passed[i, every[:, i]] for i in range(6)))
    total, most = every.sum(axis=1), int(steps.max_score.sum())
    mean, variance = np.zeros(most + 1), np.zeros(most + 1)
    for s in range(most + 1):
        p = weight[total == s] / weight[total == s].sum()
        mean[s] = p @ every[total == s, 0]
        variance[s] = p @ every[total == s, 0] ** 2 - mean[s] ** 2
    score = x.sum(axis=1)
    ability = ordered_study.abilities("wle").ability
    inside = np.flatnonzero((score > 0) & (score < most))
    order = inside[np.argsort(ability[inside], kind="stable")]
    assert table["n"].sum() == len(order)
    start = 0
    for row in table.iter_rows(named=True):
        mine = order[start : start + row["n"]]
        start += row["n"]
        assert row["ability"] == pytest.approx(ability[mine].mean())
        assert row["observed"] == pytest.approx(x[mine, 0].mean())
        assert row["expected"] == pytest.approx(mean[score[mine]].mean())
        half = 1.96 * np.sqrt(variance[score[mine]].sum()) / len(mine)
        assert row["ci_low"] == pytest.approx(max(row["observed"] - half, 0), abs=1e-4)
        assert row["ci_high"] == pytest.approx(min(row["observed"] + half, 3), abs=1e-4)
    there = ordered_study.calibration.expected_score(table["place"].to_numpy(), ["$x^2$"])[:, 0]
    assert np.allclose(there, table["expected"].to_numpy())
    marks = next(line for line in display.plot().lines if line.get_marker() == "o")
    assert np.allclose(marks.get_ydata(), table["observed"].to_numpy())


def test_marks_of_a_noisy_item_leave_the_curve(ordered_study: si.Analysis) -> None:
    def outside(item: str) -> int:
        table = ordered_study.plot.icc(item).frame()
        return int(((table["expected"] < table["ci_low"]) | (table["expected"] > table["ci_high"])).sum())

    assert outside("_a_") >= 4
    assert outside("q6") <= 2


def test_scores_and_information(ordered_study: si.Analysis, wide_ordered_study: si.Analysis) -> None:
    table, persons = ordered_study.plot.scores().frame(), ordered_study.persons()
    scores = persons["score"].to_numpy()
    assert table["score"].to_list() == list(range(16))
    assert table["persons"].to_list() == [int((scores == k).sum()) for k in range(16)]
    assert table["extreme"].sum() == persons["extreme"].sum() == np.sum((scores == 0) | (scores == 15))
    wide = wide_ordered_study.persons()
    percent = 100 * wide["score"].to_numpy() / (3 * wide["n"].to_numpy())
    found = wide_ordered_study.plot.scores().frame()
    assert found["persons"].to_list() == np.histogram(percent + 1e-9, [*range(0, 100, 5), 101])[0].tolist()
    information = ordered_study.plot.information().frame()
    theirs = ordered_study.calibration.information(information["ability"].to_numpy())
    assert np.allclose(information["information"].to_numpy(), theirs["information"].to_numpy())


def test_the_standard_set(ordered_study: si.Analysis, wide_ordered_study: si.Analysis, tmp_path: Path) -> None:
    written = wide_ordered_study.plot.write(tmp_path / "wide")
    assert sorted({path.stem for path in written}) == sorted(ALWAYS)
    assert sorted(path.name for path in (tmp_path / "wide").iterdir()) == sorted(path.name for path in written)
    ordered_study.plot.write(tmp_path / "a")
    ordered_study.plot.write(tmp_path / "b")
    for name in ALWAYS:
        for kind in ("svg", "png"):
            assert (tmp_path / "a" / f"{name}.{kind}").read_bytes() == (tmp_path / "b" / f"{name}.{kind}").read_bytes()


def test_what_cannot_be_shown_is_said(ordered_study: si.Analysis) -> None:
    with pytest.raises(si.errors.OptionError, match=r"there is no item 'q7'\. Did you mean 'q6'"):
        ordered_study.plot.categories("q7")
    assert "wright, items, facet, icc, categories" in repr(ordered_study.plot)
