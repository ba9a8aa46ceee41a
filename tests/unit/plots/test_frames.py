"""The numbers of each display, computed once more in another way; and where its artists stand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.plots.all import Plots

pytestmark = pytest.mark.slow  # pictures, or whole runs of commands


@pytest.fixture
def plot(study: si.Analysis) -> Plots:
    return study.plot


@pytest.mark.parametrize(("name", "what", "n"), [("study", "items", 800), ("ordered_study", "thresholds", 600)])
def test_wright_counts_people_and_items(name: str, what: str, n: int, request: pytest.FixtureRequest) -> None:
    study = request.getfixturevalue(name)
    table, layout = study.plot.wright().frame(), study.calibration.layout
    ability, beta = study.abilities().ability, study.calibration.thresholds
    labels = [
        label if layout.binary else f"{label} ({level})"
        for label, level in zip(study.calibration.labels[layout.item], layout.level.tolist(), strict=True)
    ]
    assert table["persons"].sum() == n
    assert table[what].sum() == len(beta)
    assert (np.diff(table["low"].to_numpy()) < 0).all()
    assert np.array_equal(table["high"].to_numpy()[1:], table["low"].to_numpy()[:-1])
    for row in table.iter_rows(named=True):
        assert row["persons"] == np.sum((ability >= row["low"]) & (ability < row["high"]))
        inside = sorted((-b, label) for label, b in zip(labels, beta, strict=True) if row["low"] <= b < row["high"])
        assert row[what] == len(inside)
        first = ", ".join(repr(label) for _, label in inside[:5])
        assert row["which"] == first + (f" and {len(inside) - 5} more" if len(inside) > 5 else "")


def test_wright_has_a_bar_for_each_stretch_and_a_diamond_for_each_item(plot: Plots, study: si.Analysis) -> None:
    display = plot.wright()
    ax = display.plot()
    assert len(ax.patches) == len(display.frame())
    diamonds = next(line for line in ax.lines if line.get_marker() == "D")
    assert sorted(diamonds.get_ydata()) == sorted(study.calibration.difficulty)
    names = {text.get_text(): text.get_position()[1] for text in ax.texts}
    order = np.argsort(study.calibration.difficulty)
    heights = [names[label] for label in study.calibration.labels[order] if label in names]
    assert heights == sorted(heights)  # harder items higher


def test_items_are_those_of_the_table_from_the_hardest_down(plot: Plots, study: si.Analysis) -> None:
    table = plot.items().frame()
    other = study.calibration.items().sort("difficulty", descending=True)
    assert table["item"].to_list() == other["item"].to_list()
    for name in ("difficulty", "se", "ci_low", "ci_high"):
        assert np.allclose(table[name].to_numpy(), other[name].to_numpy())
    ax = plot.items().plot()
    assert [tick.get_text() for tick in ax.get_yticklabels()][5] == table["item"][5]
    middles = next(line for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata()))
    assert np.allclose(middles.get_xdata(), table["difficulty"].to_numpy())


def test_another_scale_is_in_the_table_and_the_picture(study: si.Analysis) -> None:
    scaled = study.rescale(500, 100)
    unit = scaled.calibration.scale.unit
    plain, other = study.plot.items().frame(), scaled.plot.items().frame()
    assert np.allclose(other["se"].to_numpy(), unit * plain["se"].to_numpy())
    assert np.allclose(np.diff(other["difficulty"].to_numpy()), unit * np.diff(plain["difficulty"].to_numpy()))
    information = scaled.plot.information().frame()
    assert np.allclose(information["se"].to_numpy(), 1 / np.sqrt(information["information"].to_numpy()))
    low, high = scaled.plot.wright().plot().get_ylim()
    assert low < 500 < high
    assert high - low > 300
    curve = scaled.plot.icc("Item 9").frame()
    assert np.allclose(
        curve["ability"].to_numpy(), scaled.calibration.scale.measure(study.plot.icc("Item 9").strata["ability"])
    )


def test_information_is_the_sum_over_items(plot: Plots, study: si.Analysis) -> None:
    table = plot.information().frame()
    p = study.calibration.probability(table["ability"].to_numpy())
    assert np.allclose(table["information"].to_numpy(), (p * (1 - p)).sum(axis=1))
    assert np.allclose(table["se"].to_numpy(), 1 / np.sqrt((p * (1 - p)).sum(axis=1)))


def test_scores_are_counted(plot: Plots, study: si.Analysis, wide_study: si.Analysis) -> None:
    scores = np.nansum(study.responses.to_dense(), axis=1).astype(int)
    table = plot.scores().frame()
    assert table["persons"].to_list() == [int((scores == k).sum()) for k in range(21)]
    assert table["extreme"].to_list() == [int((scores == k).sum()) if k in (0, 20) else 0 for k in range(21)]
    assert table["share"].sum() == pytest.approx(1)
    dense = wide_study.responses.to_dense()
    percent = 100 * np.nansum(dense, axis=1) / np.isfinite(dense).sum(axis=1)
    wide = wide_study.plot.scores().frame()
    edges = [*range(0, 100, 5), 101]
    assert wide["persons"].to_list() == [
        int(((percent >= low - 1e-9) & (percent < high - 1e-9)).sum()) for low, high in pairwise(edges)
    ]


def test_the_fit_map_has_the_conditional_mean_squares(plot: Plots, study: si.Analysis) -> None:
    display = plot.fit()
    table, other = display.frame(), study.item_fit()
    assert display.conditional
    assert np.allclose(table["infit"].to_numpy(), other["infit_conditional"].to_numpy())
    assert np.allclose(table["outfit"].to_numpy(), other["outfit_conditional"].to_numpy())
    bad = {item: kind for item, kind in zip(table["item"], table["misfit"], strict=True) if kind}
    assert bad["A very long label of an item about ferns and mosses"] == "underfit"
    assert bad["Item 8"] == "overfit"
    worst = table["item"].to_numpy()[display.worst(2)]
    assert set(worst) <= set(bad)
    ax = display.plot()
    drawn = sum(len(line.get_xdata()) for line in ax.lines if line.get_marker() in ("o", "^", "v"))
    assert drawn == 20


def test_dif_shows_the_contrasts_of_one_group_by_size(plot: Plots, study: si.Analysis) -> None:
    groups = np.array(["a", "b", "c"])[np.arange(800) % 3]
    found = study.dif(groups)
    table, other = plot.dif(found).frame(), found.table()
    mine = {row["item"]: row for row in other.iter_rows(named=True) if row["group"] == "b"}
    assert len(table) == 20
    assert (np.diff(np.abs(table["contrast"].to_numpy())) <= 0).all()
    for row in table.iter_rows(named=True):
        assert row["contrast"] == mine[row["item"]]["contrast"]
        assert row["ci_high"] == pytest.approx(row["contrast"] + 1.96 * mine[row["item"]]["se"], abs=1e-4)
        assert row["class"] == mine[row["item"]]["class"]
    assert plot.dif(found, "c").group == "c"
    halves = plot.dif(np.arange(800) % 2).frame()
    assert (halves["item"][0], halves["class"][0]) == ("Item 6", "C")
    assert halves["contrast"][0] > 0.6  # harder by 1.2 for the odd ones, less what is centered away


def test_against_brings_the_other_to_this_scale(plot: Plots, study: si.Analysis) -> None:
    moved = study.calibration.replace(thresholds=study.calibration.thresholds + 1.5)
    table = plot.against(moved).frame()
    assert np.allclose(table["difficulty_a"].to_numpy(), table["difficulty_b"].to_numpy())
    assert np.allclose(table["se"].to_numpy(), np.sqrt(2) * study.calibration.se)
    assert not table["drift"].any()
    off = moved.thresholds.copy()
    off[4] += 2
    drifted = plot.against(moved.replace(thresholds=off)).frame()
    assert drifted["item"].to_numpy()[drifted["drift"].to_numpy()].tolist() == ["two\nlines"]
    assert plot.against(study).link.shift == pytest.approx(0, abs=1e-12)


def test_dependence_shows_the_pair_that_was_copied(plot: Plots, study: si.Analysis) -> None:
    display = plot.dependence()
    table, found = display.frame(), study.local_dependence()
    assert set(table.row(0)[:2]) == {"Item 12", "Item 13"}
    assert table["dependent"].to_list() == found.table()["dependent"].to_list()
    assert np.allclose(table["excess"].to_numpy(), table["q3"].to_numpy() - found.mean)
    (image,) = display.plot().images
    cells = np.ma.filled(image.get_array(), np.nan)
    assert np.isfinite(cells).sum() == 190
    assert cells[12, 11] == pytest.approx(table["excess"][0])


def test_ranks_are_those_of_the_ranking(plot: Plots, study: si.Analysis, wide_study: si.Analysis) -> None:
    table = plot.ranks(top=5).frame()
    assert table.equals(study.ranking(top=5))
    ax = wide_study.plot.ranks().plot()
    assert len(ax.get_yticklabels()) == 40
    assert ax.get_yticklabels()[0].get_text() == wide_study.ranking()["item"][0]


def test_a_curve_is_the_models_and_its_marks_are_the_strata(plot: Plots, study: si.Analysis) -> None:
    display = plot.icc("Item 9")
    ax, table = display.plot(), display.frame()
    line = max(ax.lines, key=lambda line: len(line.get_xdata()))
    x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    assert np.allclose(y, study.calibration.probability(x, ["Item 9"])[:, 0])
    assert np.allclose(study.calibration.probability(table["place"].to_numpy(), ["Item 9"])[:, 0], table["expected"])
    marks = next(line for line in ax.lines if line.get_marker() == "o")
    assert np.allclose(marks.get_xdata(), table["place"].to_numpy())
    assert np.allclose(marks.get_ydata(), table["observed"].to_numpy())


def test_very_many_items_are_shown_by_density() -> None:
    """Twenty thousand marks would be a blot, and a file of megabytes."""
    rng = np.random.default_rng(1)
    display = si.datasets.load_lsat()
    fit = si.SpectralRasch().fit(display).analyse(display).plot.fit()
    m = 20_000
    table = {
        "item": np.arange(m),
        "n": np.full(m, 50),
        "infit": np.exp(rng.normal(0, 0.15, m)),
        "outfit": np.exp(rng.normal(0, 0.25, m)),
        "infit_z": rng.normal(0, 1, m),
        "misfit": np.full(m, "", dtype=object),
    }
    ax = type(fit)(table=table).plot()
    (hexagons,) = ax.collections
    assert 200 < len(hexagons.get_offsets()) < 5000
    assert sum(len(line.get_xdata()) for line in ax.lines) < 10
    assert 2 <= len(ax.texts) <= 5


def test_one_absurd_interval_does_not_flatten_all_others(wide_study: si.Analysis) -> None:
    display = wide_study.plot.items()
    se = display.se.copy()
    se[[100, 200, 300]] = 1e10
    ax = type(display)(labels=display.labels, difficulty=display.difficulty, se=se, anchored=display.anchored).plot()
    low, high = ax.get_xlim()
    assert low < display.difficulty.min()
    assert high > display.difficulty.max()
    assert high - low < 4 * np.ptp(display.difficulty)


def test_ratings_have_a_column_for_each_facet() -> None:
    answers = si.datasets.load_writing().take_persons(np.arange(60))
    study = si.SpectralPartialCredit().fit(answers).analyse(answers)
    table, raters = study.plot.facet().frame(), study.facet().sort("severity", descending=True)
    assert table["rater"].to_list() == raters["rater"].to_list()
    assert np.allclose(table["severity"], raters["severity"])
    wright = study.plot.wright()
    assert sum(1 for text in wright.frame()["rater"] if text) > 1
    marks = [line.get_ydata() for line in wright.plot().lines if line.get_marker() == "D"]
    assert sorted(marks[1]) == pytest.approx(sorted(raters["severity"]))
    assert len(marks[0]) == 12  # thresholds of four items
