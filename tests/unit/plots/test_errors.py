"""What cannot be shown is an error with a remedy, and leaves nothing behind; distractor curves."""

import numpy as np
import pytest

import spectral_irt as si
from drawn import drawn
from pictures import Picture
from spectral_irt.errors import OptionError
from spectral_irt.plots.distractors import distractor_sheet

pytestmark = pytest.mark.slow  # pictures, or whole runs of commands


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda plot: plot.icc("Itm 9"), "there is no item 'Itm 9'. Did you mean 'Item 9'"),
        (lambda plot: plot.icc("item 7"), "Did you mean 'Item 7'"),
        (lambda plot: plot.icc("qqq"), r"there is no item 'qqq'. The items are '\$x\^2\$'.* and 15 more"),
        (lambda plot: plot.icc("Item 9", strata=1), "`strata` is 1; it takes two"),
        (lambda plot: plot.categories("Itm 9"), "Did you mean 'Item 9'"),
        (lambda plot: plot.distractors("Item 9"), "not scored with an answer key"),
    ],
)
def test_what_cannot_be_asked(study, ask, words):
    with pytest.raises(OptionError, match=words):
        ask(study.plot)


def test_labels_that_are_numbers():
    answers = si.simulate.rasch(200, 6, seed=1).responses
    study = si.SpectralRasch().fit(answers).analyse(answers)
    assert study.plot.icc("3").label == study.plot.icc(3).label == 3
    with pytest.raises(OptionError, match="there is no item 33"):
        study.plot.icc(33)


def test_an_analysis_without_people(study):
    nobody = si.Analysis(study.calibration, study.responses.take_persons(np.zeros(0, dtype=int)))
    for ask in (nobody.plot.wright, nobody.plot.scores, lambda: nobody.plot.icc("Item 9"), nobody.plot.fit):
        with pytest.raises(OptionError, match=r"no people|no item has a fit"):
            ask()
    assert len(nobody.plot.items().frame()) == 20
    assert len(nobody.plot.information().frame()) == 201
    nobody.plot.information().plot()


def test_only_extreme_scores_by_maximum_likelihood():
    lsat = si.datasets.load_lsat()
    fit = si.SpectralRasch().fit(lsat)
    study = fit.analyse(lsat.take_persons(lsat.scores == 5), ability="ml")
    with pytest.raises(OptionError, match=r"nobody has a finite ability.*'wle' gives finite ones"):
        study.plot.wright()
    with pytest.raises(OptionError, match=r"no item has a fit to show"):
        study.plot.fit()
    some = fit.analyse(lsat, ability="ml").plot.wright()
    assert some.left_out == int(((lsat.scores == 0) | (lsat.scores == 5)).sum())
    assert f"{some.left_out:,} without" in some.plot().get_xticklabels()[0].get_text()


def test_no_difficulties_and_no_standard_errors(study, tmp_path):
    known = study.calibration
    nothing = si.Analysis(known.replace(thresholds=np.full(20, np.nan)), study.responses)
    for ask in (nothing.plot.items, nothing.plot.information, lambda: nothing.plot.icc("Item 9")):
        with pytest.raises(OptionError, match=r"no item has a finite difficulty|no place on the common scale"):
            ask()
    unsure = si.Analysis(known.replace(threshold_se=np.full(20, np.inf), threshold_covariance=None), study.responses)
    for ask in (unsure.plot.items, unsure.plot.ranks):
        with pytest.raises(OptionError, match=r"no item has a finite standard error.*Fit with standard errors"):
            ask()
    with pytest.raises(OptionError):
        unsure.plot.items().save(tmp_path / "items.svg")
    assert not list(tmp_path.iterdir())


def test_items_off_the_common_scale_are_left_out_and_counted(study):
    status, se = study.calibration.status.copy(), study.calibration.threshold_se.copy()
    status[[2, 6]], se[[2, 6]] = "unlinked", np.inf
    partly = si.Analysis(study.calibration.replace(status=status, threshold_se=se), study.responses)
    display = partly.plot.items()
    assert len(display.frame()) == 18
    assert any("2 items without a standard error left out" in text.get_text() for text in display.plot().texts)
    assert partly.plot.wright().frame()["items"].sum() == 18
    with pytest.raises(OptionError, match=r"no place on the common scale, and so no curve: '_a_' \(unlinked\)"):
        partly.plot.icc("_a_")


LABELS = ["$x^2$", "<script>alert(1)</script>", *(f"Item {k}" for k in range(3, 13))]
OPTIONS = ["A", "$b$", "a rather long option of many words", "D", "E", "F", "G", "H"]


def keyed_study(n_options):
    rng = np.random.default_rng(3)
    right = drawn(rng, rng.normal(size=(500, 1)) - rng.normal(size=12))
    chosen = np.where(right == 1, 0, rng.integers(1, n_options, right.shape))
    key = dict.fromkeys(LABELS, "A") | {"Item 7": "D"}
    responses = si.Responses.from_wide(np.array(OPTIONS, dtype=object)[chosen], items=LABELS, key=key)
    return si.SpectralRasch().fit(responses).analyse(responses)


@pytest.fixture(scope="module")
def keyed():
    return keyed_study(4)


@pytest.mark.parametrize("n_options", [4, 8])
def test_it_is_readable(n_options):
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


def test_a_wrong_key_is_seen(keyed):
    display = keyed.plot.distractors("Item 7")
    assert display.suspects == ("A",)
    assert any(text.get_text().endswith(": higher ability than the key") for text in Picture(display.plot()).texts)
    table = display.frame()
    assert table["share"].sum() == pytest.approx(table["stratum"].n_unique())
    up = table.filter(table["option"] == "A")["share"].to_list()
    assert up[-1] > up[0] + 0.3
    assert Picture(display.plot()).likeness(Picture(keyed.plot.distractors("Item 8").plot())) < 0.99


def test_the_sheet_and_the_standard_set(keyed, tmp_path):
    seen = Picture(distractor_sheet(keyed).axes[0])
    assert not seen.cut()
    assert not seen.overlaps()
    names = {path.name for path in keyed.plot.write(tmp_path / "with")}
    assert {"distractors.svg", "distractors.png"} <= names
    with pytest.raises(OptionError, match="two groups of people or more"):
        keyed.plot.distractors("Item 8", strata=1)
