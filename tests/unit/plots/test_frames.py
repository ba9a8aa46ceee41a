"""The numbers of each display, computed once more in another way; and where its artists stand."""

import itertools

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from pictures import Picture
from spectral_irt.errors import OptionError
from spectral_irt.plots.all import EVERY, Pictures
from spectral_irt.plots.curves import CategoryCurves
from spectral_irt.plots.labels import all_shown
from spectral_irt.plots.style import room_for
from spectral_irt.plots.wright import BETWEEN, LabelLines

pytestmark = pytest.mark.slow  # pictures, or whole runs of commands


@pytest.fixture
def plot(study):
    return study.plot


@pytest.mark.parametrize(("name", "what", "n"), [("study", "items", 800), ("ordered_study", "thresholds", 600)])
def test_wright_counts_people_and_items(name, what, n, request):
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


def test_wright_has_a_bar_for_each_stretch_and_a_diamond_for_each_item(plot, study):
    display = plot.wright()
    ax = display.plot()
    assert len(ax.patches) == len(display.frame())
    diamonds = next(line for line in ax.lines if line.get_marker() == "D")
    assert sorted(diamonds.get_ydata()) == sorted(study.calibration.difficulty)


def label_heights(ax, labels):
    """The height at which each label is written, alone or with others on one line."""
    lines = [(text.get_text().split(BETWEEN), text.get_position()[1]) for text in ax.texts]
    return {label: height for names, height in lines for label in names if label in labels}


@pytest.mark.parametrize("name", ["study", "ordered_study"])
def test_labels_of_the_wright_map_are_at_the_height_of_their_items(name, request):
    study = request.getfixturevalue(name)
    display = study.plot.wright()
    ax = display.plot()
    low, high = ax.get_ylim()
    half_a_line = (high - low) / display._rows / 2
    assert display._rows < room_for(ax)
    labels = all_shown(display.labels)
    heights = label_heights(ax, set(labels))
    assert set(heights) == set(labels)
    for label, difficulty in zip(labels, display.difficulty, strict=True):
        assert abs(heights[label] - difficulty) <= half_a_line * 1.001


def test_items_at_one_height_share_a_line_of_the_wright_map():
    crowd = np.array(["a", "b", "c", "far"], dtype=object)
    lines = LabelLines.of(crowd, np.array([0.51, 0.50, 0.49, -2.0]), (-3.0, 3.0), rows=20)
    assert lines.text == [BETWEEN.join(["a", "b", "c"]), "far"]
    assert np.allclose(lines.height, [0.45, -1.95])


def test_the_area_of_a_bar_of_the_wright_map_is_the_number_of_persons(plot):
    display = plot.wright()
    areas = np.array([abs(bar.get_width()) * bar.get_height() for bar in display.plot().patches])
    persons = display.frame()["persons"].to_numpy()
    assert np.allclose(areas / areas.sum(), persons / persons.sum())


def test_the_wright_map_marks_mean_and_standard_deviations(plot):
    display = plot.wright()
    marks = [text for text in display.plot().texts if text.get_text() in ("M", "S", "T")]
    of_persons = [text.get_position()[1] for text in marks if text.get_position()[0] < 0 and text.get_text() == "S"]
    mean, sd = display.ability.mean(), display.ability.std()
    assert sorted(of_persons) == pytest.approx([mean - sd, mean + sd])


def test_the_wright_map_has_locations_in_the_place_of_thresholds_on_request(ordered_study):
    display = ordered_study.plot.wright(thresholds=False)
    calibration = ordered_study.calibration
    assert display.what == "item"
    assert display.labels.tolist() == calibration.labels.tolist()
    assert np.allclose(display.difficulty, calibration.difficulty)


def test_items_are_those_of_the_table_from_the_hardest_down(plot, study):
    table = plot.items().frame()
    other = study.calibration.items().sort("difficulty", descending=True)
    assert table["item"].to_list() == other["item"].to_list()
    for name in ("difficulty", "se", "ci_low", "ci_high"):
        assert np.allclose(table[name], other[name])
    ax = plot.items().plot()
    assert [tick.get_text() for tick in ax.get_yticklabels()][5] == table["item"][5]
    middles = next(line for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata()))
    assert np.allclose(middles.get_xdata(), table["difficulty"])


def test_another_scale_is_in_the_table_and_the_picture(study):
    scaled = study.rescale(500, 100)
    unit = scaled.calibration.scale.unit
    plain, other = study.plot.items().frame(), scaled.plot.items().frame()
    assert np.allclose(other["se"], unit * plain["se"])
    assert np.allclose(np.diff(other["difficulty"]), unit * np.diff(plain["difficulty"]))
    information = scaled.plot.information().frame()
    assert np.allclose(information["se"], 1 / np.sqrt(information["information"]))
    low, high = scaled.plot.wright().plot().get_ylim()
    assert low < 500 < high
    assert high - low > 300
    curve = scaled.plot.icc("Item 9").frame()
    logits = study.plot.icc("Item 9").strata["ability"]
    assert np.allclose(curve["ability"], scaled.calibration.scale.measure(logits))


@pytest.mark.parametrize("name", ["study", "ordered_study"])
def test_information_is_the_slope_of_the_expected_score(name, request):
    made, table = request.getfixturevalue(name).calibration, request.getfixturevalue(name).plot.information().frame()
    theta, h = table["ability"].to_numpy(), 1e-5
    slope = (made.expected_score(theta + h) - made.expected_score(theta - h)).sum(axis=1) / (2 * h)
    assert np.allclose(table["information"], slope)
    assert np.allclose(table["se"], 1 / np.sqrt(slope))


@pytest.mark.parametrize(
    ("name", "wide", "most"), [("study", "wide_study", 1), ("ordered_study", "wide_ordered_study", 3)]
)
def test_scores_are_counted(name, wide, most, request):
    study, other = request.getfixturevalue(name), request.getfixturevalue(wide).responses.to_dense()
    scores, highest = np.nansum(study.responses.to_dense(), axis=1), int(study.responses.thresholds.max_score.sum())
    table, numbers = study.plot.scores().frame(), [int((scores == k).sum()) for k in range(highest + 1)]
    assert table["score"].to_list() == list(range(highest + 1))
    assert table["persons"].to_list() == numbers
    assert table["extreme"].to_list() == [numbers[0], *[0] * (highest - 1), numbers[-1]]
    assert table["share"].sum() == pytest.approx(1)
    percent = 100 * np.nansum(other, axis=1) / (most * np.isfinite(other).sum(axis=1))
    found = request.getfixturevalue(wide).plot.scores().frame()
    assert found["persons"].to_list() == np.histogram(percent + 1e-9, [*range(0, 100, 5), 101])[0].tolist()


def test_the_fit_map_has_the_conditional_mean_squares(plot, study):
    display = plot.fit()
    table, other = display.frame(), study.item_fit()
    assert display.conditional
    assert np.allclose(table["infit"], other["infit_conditional"])
    assert np.allclose(table["outfit"], other["outfit_conditional"])
    bad = {item: kind for item, kind in zip(table["item"], table["misfit"], strict=True) if kind}
    assert bad["A very long label of an item about ferns and mosses"] == "underfit"
    assert bad["Item 8"] == "overfit"
    assert set(table["item"].to_numpy()[display.worst(2)]) <= set(bad)
    marks = [line for line in display.plot().lines if line.get_marker() in ("o", "^", "v")]
    assert sum(len(line.get_xdata()) for line in marks) == 20
    axes = display.plot()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("conditional infit", "conditional outfit")


def test_the_fit_map_names_all_of_a_few_items():
    answers = si.simulate.rasch(500, 12, seed=3).responses
    axes = si.SpectralRasch().fit(answers).analyse(answers).plot.fit().plot()
    texts = {text.get_text() for text in axes.texts}
    assert len(texts & {str(k) for k in range(12)}) >= 10  # those that find a free place


def test_the_fit_map_of_an_adaptive_calibration_is_not_given_the_scores():
    answers = si.simulate.rasch(400, 30, design="adaptive", length=12, seed=1).responses
    study = si.SpectralRasch().fit(answers, design="adaptive").analyse(answers)
    display = study.plot.fit()
    assert not display.conditional
    assert display.plot().get_xlabel() == "infit"
    wanted = study.item_fit(conditional=False).filter(pl.col("item").is_in(display.frame()["item"].to_list()))
    assert np.allclose(display.frame()["infit"], wanted["infit"])


def test_dif_shows_the_contrasts_of_one_group_by_size(plot, study):
    found = study.dif(np.array(["a", "b", "c"])[np.arange(800) % 3])
    table = plot.dif(found).frame()
    mine = {row["item"]: row for row in found.table().iter_rows(named=True) if row["group"] == "b"}
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


def test_against_brings_the_other_to_this_scale(plot, study):
    moved = study.calibration.replace(thresholds=study.calibration.thresholds + 1.5)
    table = plot.against(moved).frame()
    assert np.allclose(table["difficulty_a"], table["difficulty_b"])
    assert np.allclose(table["se"], np.sqrt(2) * study.calibration.se)
    assert not table["drift"].any()
    off = moved.thresholds.copy()
    off[4] += 2
    drifted = plot.against(moved.replace(thresholds=off)).frame()
    assert drifted["item"].to_numpy()[drifted["drift"].to_numpy()].tolist() == ["two\nlines"]
    assert plot.against(study).link.shift == pytest.approx(0, abs=1e-12)


def test_dependence_shows_the_pair_that_was_copied(plot, study):
    display = plot.dependence()
    table, found = display.frame(), study.local_dependence()
    assert set(table.row(0)[:2]) == {"Item 12", "Item 13"}
    assert table["dependent"].to_list() == found.table()["dependent"].to_list()
    assert np.allclose(table["q3_above_mean"], table["q3"] - found.mean)
    (image,) = display.plot().images
    cells = np.ma.filled(image.get_array(), np.nan)
    assert np.isfinite(cells).sum() == 190
    assert cells[12, 11] == pytest.approx(table["q3_above_mean"][0])


def test_ranks_are_those_of_the_ranking(plot, study, wide_study):
    table = plot.ranks(top=5).frame()
    assert table.equals(study.ranking(top=5))
    ax = wide_study.plot.ranks().plot()
    assert len(ax.get_yticklabels()) == 40
    assert ax.get_yticklabels()[0].get_text() == wide_study.ranking()["item"][0]


def test_very_many_items_are_shown_by_density(plot):
    rng, m = np.random.default_rng(1), 20_000
    table = {"item": np.arange(m), "n": np.full(m, 50), "misfit": np.full(m, "", dtype=object)}
    squares = {"infit": np.exp(rng.normal(0, 0.15, m)), "outfit": np.exp(rng.normal(0, 0.25, m))}
    ax = type(plot.fit())(table={**table, **squares, "infit_z": rng.normal(0, 1, m)}).plot()
    (hexagons,) = ax.collections
    assert 200 < len(hexagons.get_offsets()) < 5000
    assert sum(len(line.get_xdata()) for line in ax.lines) < 10
    assert 2 <= len(ax.texts) <= 5


def test_one_absurd_interval_does_not_flatten_all_others(wide_study):
    display = wide_study.plot.items()
    se = display.se.copy()
    se[[100, 200, 300]] = 1e10
    ax = type(display)(labels=display.labels, difficulty=display.difficulty, se=se, anchored=display.anchored).plot()
    low, high = ax.get_xlim()
    assert low < display.difficulty.min()
    assert high > display.difficulty.max()
    assert high - low < 4 * np.ptp(display.difficulty)


def test_ratings_have_a_column_for_each_facet():
    answers = si.datasets.load_writing().take_persons(np.arange(60))
    study = si.SpectralPartialCredit().fit(answers).analyse(answers)
    table, raters = study.plot.facet().frame(), study.facet().sort("severity", descending=True)
    assert table["rater"].to_list() == raters["rater"].to_list()
    assert np.allclose(table["severity"], raters["severity"])
    wright = study.plot.wright()
    assert sum(1 for text in wright.frame()["rater"] if text) > 1
    heights = wright.frame()["high"] - wright.frame()["low"]  # nearly everybody has an ability of their own
    assert len(heights) < 20
    assert np.allclose(heights, heights[0])
    marks = [line.get_ydata() for line in wright.plot().lines if line.get_marker() == "D"]
    assert sorted(marks[1]) == pytest.approx(sorted(raters["severity"]))
    assert len(marks[0]) == 12  # thresholds of four items


def test_category_curves_are_the_model_and_cross_at_the_thresholds(ordered_study):
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
    beta = np.linspace(-3, 3, 60)
    ax = CategoryCurves(label="q", thresholds=beta, codes=np.arange(61.0)).plot()
    assert not Picture(ax).overlaps()
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert (named[0], named[-1], len(named)) == ("0", "60", 12)


def test_categories_that_are_nowhere_the_most_likely_are_said(ordered_study):
    for beta in itertools.permutations([-1.6, -0.2, 0.5, 1.1]):
        display = CategoryCurves(label="q", thresholds=np.array(beta), codes=np.arange(5.0))
        p = display.frame()["probability"].to_numpy().reshape(5, -1)
        assert np.flatnonzero(display.modal).tolist() == np.unique(p.argmax(axis=0)).tolist()
    texts = [text.get_text() for text in Picture(ordered_study.plot.categories("two\nlines").plot()).texts]
    assert any("never the most likely answer: 1" in " ".join(text.split()) for text in texts)


def test_strata_have_the_means_observed_and_those_given_the_score(ordered_study):
    """Against all patterns of answers, written out: P(x | score) ~ exp(-sum of the thresholds passed)."""
    display = ordered_study.plot.icc("$x^2$")
    table, steps = display.frame(), ordered_study.calibration.layout
    x = ordered_study.responses.to_dense().astype(int)
    passed = steps.cumulated(ordered_study.calibration.thresholds)
    every = np.array(list(itertools.product(*(range(k + 1) for k in steps.max_score))))
    weight = np.exp(-sum(passed[i, every[:, i]] for i in range(6)))
    total, most = every.sum(axis=1), int(steps.max_score.sum())
    mean, variance = np.zeros(most + 1), np.zeros(most + 1)
    for s in range(most + 1):
        p = weight[total == s] / weight[total == s].sum()
        mean[s] = p @ every[total == s, 0]
        variance[s] = p @ every[total == s, 0] ** 2 - mean[s] ** 2
    score, ability = x.sum(axis=1), ordered_study.abilities("wle").ability
    inside = np.flatnonzero((score > 0) & (score < most))
    order = inside[np.argsort(ability[inside], kind="stable")]
    assert table["n"].sum() == len(order)
    start = 0
    for row in table.iter_rows(named=True):
        mine = order[start : start + row["n"]]
        start += row["n"]
        means = (ability[mine].mean(), x[mine, 0].mean(), mean[score[mine]].mean())
        assert (row["ability"], row["observed"], row["expected"]) == pytest.approx(means)
        half = 1.96 * np.sqrt(variance[score[mine]].sum()) / len(mine)
        ends = (max(row["observed"] - half, 0), min(row["observed"] + half, 3))
        assert (row["ci_low"], row["ci_high"]) == pytest.approx(ends, abs=1e-4)
    there = ordered_study.calibration.expected_score(table["place"].to_numpy(), ["$x^2$"])[:, 0]
    assert np.allclose(there, table["expected"])
    lines = display.plot().lines
    marks = next(line for line in lines if line.get_marker() == "o")
    curve = max(lines, key=lambda line: len(line.get_xdata()))
    assert np.allclose(marks.get_ydata(), table["observed"])
    expected = ordered_study.calibration.expected_score(curve.get_xdata(), ["$x^2$"])[:, 0]
    assert np.allclose(curve.get_ydata(), expected)


def test_the_standard_set(wide_ordered_study, tmp_path):
    written = wide_ordered_study.plot.write(tmp_path / "wide")
    assert sorted({path.stem for path in written}) == sorted({*EVERY, "icc", "categories"})
    assert sorted(path.name for path in (tmp_path / "wide").iterdir()) == sorted(path.name for path in written)


def test_no_curve_of_an_adaptive_test_beside_answers_by_score():
    """In data that follow the model, what is expected given the score is far from what was observed: so it is not
    shown, and the standard set of pictures leaves it out with a word."""
    answers = si.simulate.rasch(1500, 30, design="adaptive", length=12, seed=1).responses
    study = si.SpectralRasch().fit(answers, design="adaptive").analyse(answers)
    strata = study._strata(np.arange(30), 8)
    expected = strata["expected"]
    z = (strata["observed"] - expected) * np.sqrt(strata["n"] / (expected * (1 - expected)))
    assert np.sqrt(np.mean(z**2)) > 1.3
    with pytest.raises(OptionError, match="chose the items"):
        study.plot.icc(0)
    pictures = Pictures.of(study)
    assert "icc" in pictures.left_out
    assert "wright" in pictures.figures
    assert study.plot.categories(0).frame().shape[0] > 0
