"""What every display keeps to: it draws something readable, names are plain text, no global state is touched."""

import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.optimize import minimize

import spectral_irt as si
from pictures import Picture
from spectral_irt.plots.guttman import ScalogramPlot
from spectral_irt.plots.labels import MISSING, label_text, spread_apart
from spectral_irt.plots.wright import BETWEEN

pytestmark = pytest.mark.slow  # pictures, or whole runs of commands

DISPLAYS = {
    "wright": lambda study: study.plot.wright(),
    "items": lambda study: study.plot.items(),
    "icc": lambda study: study.plot.icc("$x^2$"),
    "fit": lambda study: study.plot.fit(),
    "information": lambda study: study.plot.information(),
    "scores": lambda study: study.plot.scores(),
    "dif": lambda study: study.plot.dif(np.arange(study.responses.n_persons) % 2),
    "against": lambda study: study.plot.against(study),
    "dependence": lambda study: study.plot.dependence(),
    "ranks": lambda study: study.plot.ranks(),
    "pathway": lambda study: study.plot.pathway(),
    "category_means": lambda study: study.plot.category_means(),
    "kidmap": lambda study: study.plot.kidmap(study.responses.persons[3]),
    "guttman": lambda study: study.plot.guttman(study.responses.persons[:25]),
}
OF_BOTH = (
    "wright",
    "items",
    "icc",
    "fit",
    "information",
    "scores",
    "pathway",
    "category_means",
    "kidmap",
    "guttman",
)  # kinds of answers
ALL_NAMED = ("wright", "items", "dif", "dependence", "ranks")  # those that name every one of twenty items


def readable(display):
    seen = Picture(display.plot())
    most_ink = 0.9 if isinstance(display, ScalogramPlot) else 0.6  # of which every cell has a shade
    assert 0.02 < seen.ink < most_ink
    assert not seen.overlaps()
    assert not seen.cut()
    return seen


@pytest.mark.parametrize("name", DISPLAYS)
@pytest.mark.parametrize("size", ["study", "wide_study"])
def test_it_draws_something_readable(name, size, request):
    display = DISPLAYS[name](request.getfixturevalue(size))
    seen = readable(display)
    if size == "study" and name in ALL_NAMED:  # odd names stand there as they are, and are not taken for formulas
        by_text = {name: text for text in seen.texts for name in text.get_text().split(BETWEEN)}
        for label in ("$x^2$", "_a_", r"two\nlines"):
            assert not by_text[label].get_parse_math()
            assert not by_text[label].get_usetex()
        assert any(text.startswith("<script>") for text in by_text)
        assert any(text.startswith("A very") and "…" in text and len(text) <= 26 for text in by_text)


@pytest.mark.parametrize("name", ["icc", "wright", "items"])
def test_it_is_drawn_into_axes_of_ones_own(study, name):
    left, right = Figure().subplots(1, 2)
    assert DISPLAYS[name](study).plot(ax=right, title="Mine") is right
    assert right.get_title(loc="left") == "Mine"
    assert right.has_data()
    assert not left.has_data()


@pytest.mark.parametrize("name", [*OF_BOTH, "categories", "out of order"])
@pytest.mark.parametrize("size", ["ordered_study", "wide_ordered_study"])
def test_ordered_answers_are_readable(name, size, request):
    study = request.getfixturevalue(size)
    if name in OF_BOTH:
        display = DISPLAYS[name](study)
    else:
        display = study.plot.categories(study.calibration.labels[0 if name == "categories" else 3])
    seen = readable(display)
    if size == "ordered_study" and name == "wright":
        texts = {name: text for text in seen.texts for name in text.get_text().split(BETWEEN)}
        assert "15 thresholds" in texts
        assert not texts["$x^2$ (2)"].get_parse_math()


def test_the_check_itself_sees_names_that_collide_and_blank_pictures(study):
    ax = study.plot.items().plot()
    full = Picture(ax)
    ax.text(0, 5, "one on another")
    ax.text(0, 5, "two on another")
    assert ("one on another", "two on another") in Picture(ax).overlaps()
    ax.text(1.5, 0.5, "beyond the edge", transform=ax.transAxes)
    assert "beyond the edge" in Picture(ax).cut()
    ax.clear()
    ax.set_axis_off()
    blank = Picture(ax)
    assert blank.ink == 0
    assert full.likeness(blank) < 0.9
    assert full.likeness(Picture(study.plot.scores().plot())) < 0.9


@pytest.mark.parametrize("name", DISPLAYS)
def test_it_draws_into_axes_that_are_given(name, study):
    left, right = Figure(figsize=(12, 5)).subplots(1, 2)
    assert DISPLAYS[name](study).plot(right) is right
    assert not left.has_data()
    assert right.has_data() or right.texts


def test_in_axes_too_low_for_all_names_there_are_fewer(study):
    figure = Figure(figsize=(6, 2.4), layout="constrained")
    for name in ("wright", "items", "ranks", "dif"):
        figure.clear()
        ax = DISPLAYS[name](study).plot(figure.add_subplot())
        assert not Picture(ax).overlaps(), name


def test_it_is_saved_the_same_twice(study, tmp_path):
    for kind in ("svg", "png", "pdf"):
        first = study.plot.scores().save(tmp_path / f"a.{kind}").read_bytes()
        second = study.plot.scores().save(tmp_path / f"b.{kind}").read_bytes()
        assert first == second
        assert b"spectral-irt" in first
    svg = study.plot.wright().save(tmp_path / "a.svg").read_text()
    assert "<dc:date>" not in svg
    assert "<script" not in svg  # nor in the comments that matplotlib writes
    ElementTree.fromstring(svg)
    with pytest.raises(si.errors.OptionError, match=r"'.*c.gif' ends in none of .svg, .png and .pdf"):
        study.plot.wright().save(tmp_path / "c.gif")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pdf", "a.png", "a.svg", "b.pdf", "b.png", "b.svg"]


def test_a_notebook_shows_the_picture(study):
    assert study.plot.items()._repr_png_().startswith(b"\x89PNG")
    assert repr(study.plot.items()) == "<ItemIntervals: 20 rows; frame(), plot(), save(path)>"
    assert "wright, items, facet, icc" in repr(study.plot)


def test_tables_go_out_as_the_data_came_in():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame((rng.random((200, 6)) < 0.5).astype(int), columns=list("abcdef"))
    study = si.SpectralRasch().fit(frame).analyse(frame)
    for name in ("wright", "items", "fit", "information", "scores", "ranks"):
        assert isinstance(DISPLAYS[name](study).frame(), pandas.DataFrame), name
    assert isinstance(study.plot.icc("a").frame(), pandas.DataFrame)


def test_nothing_touches_pyplot_and_tables_need_no_matplotlib():
    program = """
import sys
import spectral_irt as si
answers = si.datasets.load_lsat()
study = si.SpectralRasch().fit(answers).analyse(answers)
for display in (study.plot.wright(), study.plot.items(), study.plot.icc("item1"), study.plot.fit(), study.plot.scores(),
                study.plot.information(), study.plot.ranks(), study.plot.dependence()):
    display.frame()
assert "matplotlib" not in sys.modules
study.plot.wright().plot()
assert "matplotlib.figure" in sys.modules
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("seed", range(5))
def test_apart_is_the_least_move(seed):
    rng = np.random.default_rng(seed)
    places, gap = rng.normal(0, 1, 7), 0.5
    found = spread_apart(places, gap)
    order = np.argsort(places)
    assert (np.diff(found[order]) >= gap - 1e-12).all()
    limits = [{"type": "ineq", "fun": lambda x, i=i: x[i + 1] - x[i] - gap} for i in range(6)]
    start = gap * np.arange(7.0)
    best = minimize(lambda x: ((x - places[order]) ** 2).sum(), start, constraints=limits, tol=1e-12)
    assert ((found - places) ** 2).sum() == pytest.approx(best.fun, abs=1e-6)


def test_apart_stays_within():
    found = spread_apart([9.9, 9.95, 10.0], 1.0, 0.0, 10.0)
    assert found.tolist() == [8.0, 9.0, 10.0]
    assert spread_apart([], 1.0).tolist() == []


def test_shown_is_one_short_line_in_characters_that_the_font_has():
    assert label_text("$x^2$") == "$x^2$"
    assert label_text("a\tb\x1b[31m") == r"a\tb\x1b[31m"
    assert label_text(17) == "17"
    assert label_text("\U00012000\U00012001é") == MISSING * 2 + "é"
    long = "begin" + 100 * "x" + "end"
    assert len(label_text(long)) == 26
    assert label_text(long).startswith("begin")
    assert label_text(long).endswith("end")
