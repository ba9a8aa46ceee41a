"""Pictures of ordered answers: readable, and with the numbers of the model computed once more in another way."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import spectral_irt as si
from pictures import Picture
from spectral_irt.analysis import Analysis
from spectral_irt.data import Responses
from spectral_irt.plots.all import NAMES
from spectral_irt.plots.curves import CategoryCurves

pytestmark = pytest.mark.slow  # pictures

LABELS = ["$x^2$", "<script>alert(1)</script>", "_a_", "two\nlines", "A very long label of an item about ferns", "q6"]


def study_of(thresholds: list[list[float]], n: int, labels: list[str], *, share: float = 1.0) -> Analysis:
    """Answers drawn category by category; the item at 2 is noise."""
    rng = np.random.default_rng(4)
    theta = rng.normal(0.2, 1.2, n)
    answers = np.empty((n, len(thresholds)))
    for i, beta in enumerate(thresholds):
        weight = np.exp([k * theta - sum(beta[:k]) for k in range(len(beta) + 1)])
        answers[:, i] = (rng.random(n) > np.cumsum(weight / weight.sum(axis=0), axis=0)).sum(axis=0)
    answers[: n // 2, 2] = rng.integers(0, len(thresholds[2]) + 1, n // 2)
    answers[rng.random(answers.shape) >= share] = np.nan
    responses = Responses.from_wide(answers, items=labels, ordered=True)
    return si.SpectralPartialCredit().fit(responses).analyse(responses)


@pytest.fixture(scope="module")
def study() -> Analysis:
    """Six items with two to five categories; the thresholds of the fourth are out of order."""
    beta = [[-1.0, 0.0, 1.0], [-0.5, 0.5, 1.0, 2.0], [-1.0, 1.0], [1.0, -1.0], [0.3], [-2.0, -1.0, 0.0]]
    return study_of(beta, 600, LABELS)


@pytest.fixture(scope="module")
def wide_study() -> Analysis:
    rng = np.random.default_rng(0)
    beta = (rng.normal(0, 1, (60, 1)) + np.array([-1.0, 0.0, 1.0])).tolist()
    return study_of(beta, 500, [f"Item {k}" for k in range(1, 61)], share=0.3)


DISPLAYS = {
    "wright": lambda study: study.plot.wright(),
    "items": lambda study: study.plot.items(),
    "icc": lambda study: study.plot.icc(study.calibration.labels[0]),
    "categories": lambda study: study.plot.categories(study.calibration.labels[0]),
    "out of order": lambda study: study.plot.categories(study.calibration.labels[3]),
    "fit": lambda study: study.plot.fit(),
    "information": lambda study: study.plot.information(),
    "scores": lambda study: study.plot.scores(),
}


@pytest.mark.parametrize("name", DISPLAYS)
@pytest.mark.parametrize("size", ["study", "wide_study"])
def test_it_is_readable(name: str, size: str, request: pytest.FixtureRequest) -> None:
    display = DISPLAYS[name](request.getfixturevalue(size))
    seen = Picture(display.plot())
    assert 0.02 < seen.ink < 0.6
    assert not seen.overlaps()
    assert not seen.cut()
    assert len(display.frame())
    if size == "study" and name == "wright":
        texts = {text.get_text(): text for text in seen.texts}
        assert "14 thresholds" not in texts
        assert "15 thresholds" in texts
        assert not texts["$x^2$ (2)"].get_parse_math()


def test_many_categories_are_named_here_and_there() -> None:
    beta = np.linspace(-3, 3, 60)
    seen = Picture(CategoryCurves(label="q", thresholds=beta, codes=np.arange(61.0)).plot())
    assert not seen.overlaps()
    assert {"0", "60"} <= {text.get_text() for text in seen.texts}


def test_category_curves_are_the_model_and_cross_at_the_thresholds(study: Analysis) -> None:
    beta = study.calibration.thresholds[:3]
    display = study.plot.categories("$x^2$")
    table = display.frame()
    p = table["probability"].to_numpy().reshape(4, -1)
    theta = table["ability"].to_numpy().reshape(4, -1)[0]
    assert np.allclose(p.sum(axis=0), 1)
    for k in range(3):  # the log odds of neighbors are theta - beta
        assert np.allclose(np.log(p[k + 1] / p[k]), theta - beta[k])
    lines = [line for line in display.plot().lines if len(line.get_xdata()) > 10]
    assert np.allclose([line.get_ydata() for line in lines], p)
    assert table["code"].unique().sort().to_list() == [0, 1, 2, 3]


def test_categories_that_are_nowhere_the_most_likely_are_said(study: Analysis) -> None:
    for beta in itertools.permutations([-1.6, -0.2, 0.5, 1.1]):
        display = CategoryCurves(label="q", thresholds=np.array(beta), codes=np.arange(5.0))
        p = display.frame()["probability"].to_numpy().reshape(5, -1)
        assert np.flatnonzero(display.modal).tolist() == np.unique(p.argmax(axis=0)).tolist()
    texts = [text.get_text() for text in Picture(study.plot.categories("two\nlines").plot()).texts]
    assert any("never the most likely answer: 1" in " ".join(text.split()) for text in texts)


def test_strata_have_the_means_observed_and_those_given_the_score(study: Analysis) -> None:
    """Against all patterns of answers, written out: P(x | score) ~ exp(-sum of the thresholds passed)."""
    display = study.plot.icc("$x^2$")
    table, steps = display.frame(), study.calibration.layout
    person, item, category = study.responses.answers()
    x = np.zeros((study.responses.n_persons, 6), dtype=int)
    x[person, item] = category
    passed = steps.cumulated(study.calibration.thresholds)
    every = np.array(list(itertools.product(*(range(k + 1) for k in steps.max_score))))
    weight = np.exp(-sum(passed[i, every[:, i]] for i in range(6)))
    total, most = every.sum(axis=1), int(steps.max_score.sum())
    mean, variance = np.zeros(most + 1), np.zeros(most + 1)
    for s in range(most + 1):
        p = weight[total == s] / weight[total == s].sum()
        mean[s] = p @ every[total == s, 0]
        variance[s] = p @ every[total == s, 0] ** 2 - mean[s] ** 2
    score = x.sum(axis=1)
    ability = study.abilities("wle").ability
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
    there = study.calibration.expected_score(table["place"].to_numpy(), ["$x^2$"])[:, 0]
    assert np.allclose(there, table["expected"].to_numpy())
    marks = next(line for line in display.plot().lines if line.get_marker() == "o")
    assert np.allclose(marks.get_ydata(), table["observed"].to_numpy())


def test_marks_of_a_noisy_item_leave_the_curve(study: Analysis) -> None:
    def outside(item: str) -> int:
        table = study.plot.icc(item).frame()
        return int(((table["expected"] < table["ci_low"]) | (table["expected"] > table["ci_high"])).sum())

    assert outside("_a_") >= 4
    assert outside("q6") <= 2


def test_the_map_counts_people_and_thresholds(study: Analysis) -> None:
    table = study.plot.wright().frame()
    ability, beta = study.abilities().ability, study.calibration.thresholds
    assert table["persons"].sum() == 600
    assert table["thresholds"].sum() == len(beta) == 15
    for row in table.iter_rows(named=True):
        assert row["persons"] == np.sum((ability >= row["low"]) & (ability < row["high"]))
        assert row["thresholds"] == np.sum((beta >= row["low"]) & (beta < row["high"]))


def test_scores_and_information(study: Analysis, wide_study: Analysis) -> None:
    table, persons = study.plot.scores().frame(), study.persons()
    scores = persons["score"].to_numpy()
    assert table["score"].to_list() == list(range(16))
    assert table["persons"].to_list() == [int((scores == k).sum()) for k in range(16)]
    assert table["extreme"].sum() == persons["extreme"].sum() == np.sum((scores == 0) | (scores == 15))
    wide = wide_study.persons()
    percent = 100 * wide["score"].to_numpy() / (3 * wide["n"].to_numpy())
    found = wide_study.plot.scores().frame()
    assert found["persons"].to_list() == np.histogram(percent + 1e-9, [*range(0, 100, 5), 101])[0].tolist()
    information = study.plot.information().frame()
    theirs = study.calibration.information(information["ability"].to_numpy())
    assert np.allclose(information["information"].to_numpy(), theirs["information"].to_numpy())


def test_the_standard_set(study: Analysis, wide_study: Analysis, tmp_path: Path) -> None:
    written = wide_study.plot.write(tmp_path / "wide")
    assert sorted({path.stem for path in written}) == sorted(set(NAMES) - {"distractors"})
    assert sorted(path.name for path in (tmp_path / "wide").iterdir()) == sorted(path.name for path in written)
    study.plot.write(tmp_path / "a")
    study.plot.write(tmp_path / "b")
    for name in set(NAMES) - {"distractors"}:
        for kind in ("svg", "png"):
            assert (tmp_path / "a" / f"{name}.{kind}").read_bytes() == (tmp_path / "b" / f"{name}.{kind}").read_bytes()


def test_what_cannot_be_shown_is_said(study: Analysis) -> None:
    with pytest.raises(si.errors.OptionError, match=r"there is no item 'q7'\. Did you mean 'q6'"):
        study.plot.categories("q7")
    with pytest.raises(si.errors.OptionError, match="two groups of people or more"):
        study.plot.icc("q6", strata=1)
    assert "wright, items, icc, categories" in repr(study.plot)
