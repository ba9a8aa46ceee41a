"""People on several scales, words on links and anchors, and which folders hold what, from records made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.bank import anchors as anchors_module
from spectral_irt.bank import linking, score
from spectral_irt.bank.results_folder import calibration_in
from spectral_irt.errors import OptionError


def test_responses_by_group_are_counted():
    rng = np.random.default_rng(1)
    x = (rng.random((20, 6)) < 0.5).astype(float)
    x[rng.random(x.shape) < 0.4] = np.nan
    responses = si.Responses.from_wide(x)
    group = np.array([0, 1, 2, 0, -1, 1])
    found = responses.entries.gather(score._responses_by_group, responses.thresholds, group, 3)
    expected = [[np.sum(~np.isnan(row[group == g])) for g in range(3)] for row in x]
    assert found.tolist() == expected


@pytest.mark.parametrize("n_scales", [1, 2, 40])
def test_how_many_are_on_each_scale(n_scales):
    found = list(score._several_scales({k + 1: 1000 + k for k in range(n_scales)}))
    assert len(found) == (n_scales > 1)
    if found:
        assert found[0].sentence.startswith(f"The people are on {n_scales} scales that no answers link")
        assert "1,000 on scale 1, 1,001 on scale 2" in found[0].sentence
        rest = n_scales - score.NAMED_SCALES
        assert (f" and {rest} more." in found[0].sentence) == (rest > 0)


def test_items_that_do_not_count():
    (one,) = score._items_that_do_not_count("c", np.array(["q1"], dtype=object), "is odd", "are odd")
    (two,) = score._items_that_do_not_count("c", np.array(["q1", "q2"], dtype=object), "is odd", "are odd")
    assert one.sentence.startswith("1 item is odd, and the answers to it")
    assert two.sentence.startswith("2 items are odd, and the answers to them")
    assert not list(score._items_that_do_not_count("c", np.array([], dtype=object), "", ""))
    (person,) = score._responses_on_several_scales(np.array(["p1"], dtype=object))
    assert person.sentence.startswith("1 person has answered items on more than one scale")
    assert not list(score._responses_on_several_scales(np.array([], dtype=object)))


def test_findings_on_items_and_persons_by_reason():
    x = si.simulate.rasch(60, 5, seed=1).responses
    fit = si.SpectralRasch().fit(x)
    bank = fit.analyse(x).to_bank()
    others = si.Responses.from_wide(np.array([[1.0, 0.0, np.nan], [np.nan, np.nan, 1.0]]), items=[0, 1, "new"])
    codes = {one.code: one for one in score._findings(bank, others, {"n": np.array([2, 0])})}
    assert set(codes) == {"unknown_items", "no_answers"}
    assert codes["unknown_items"].items == ("new",)
    assert codes["no_answers"].sentence.startswith("1 person has no answer that counts")


@pytest.mark.parametrize(
    ("drifted", "words"),
    [
        ({"a": 0.5}, "1 of them has drifted (+: harder in B): 'a' +0.50."),
        ({"a": -0.5, "b": 0.25}, "2 of them have drifted (+: harder in B): 'a' -0.50, 'b' +0.25."),
    ],
)
def test_items_that_have_drifted_are_named(drifted, words):
    assert linking._drifted_in_words(drifted).replace("'", "") == words.replace("'", "")
    many = {f"i{k}": 1.0 for k in range(linking.NAMED + 3)}
    assert linking._drifted_in_words(many).endswith("and 3 more.")
    assert "more" not in linking._drifted_in_words(dict(list(many.items())[: linking.NAMED]))


def linked(difference, *, se=0.1, robust_z=None, given=(), excess=0.0, method="robust", df=3):
    n = len(difference)
    item = np.array([f"i{k}" for k in range(n)], dtype=object)
    drift = np.zeros(n) if robust_z is None else np.array(robust_z, dtype=float)
    made = object.__new__(linking.Link)
    fields = {
        "method": method,
        "shift": 0.25,
        "shift_se": 0.05,
        "statistic": 4.0,
        "df": df,
        "p": 0.3,
        "excess": excess,
        "item": item,
        "item_of": item,
        "difficulty_a": np.zeros(n),
        "difficulty_b": np.array(difference),
        "se": np.full(n, se),
        "robust_z": drift,
        "used": np.abs(drift) <= linking.DRIFT,
        "left_out": np.array([], dtype=object),
        "given": np.isin(np.arange(n), given),
    }
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def test_what_is_said_of_a_link():
    plain = linked([0.2, 0.3, 0.25])
    assert plain.finding.severity == "note"
    assert plain.finding.sentence.startswith("Linked over 3 common items (robust): shift 0.250 logits (se 0.050).")
    assert "he common items agree within their errors (Q = 4.0, df = 3" in plain.finding.sentence
    np.testing.assert_allclose(plain.z, [2.0, 3.0, 2.5])
    np.testing.assert_allclose(plain.weights, np.full(3, 1 / 3))
    drifted = linked([0.2, 0.3, 1.5, -1.0, 0.2], robust_z=[0, 0, 5, -4, 1])
    assert drifted.drifted == {"i2": 1.5, "i3": -1.0}
    assert drifted.finding.severity == "warning"
    assert "he others agree within their errors" in drifted.finding.sentence
    np.testing.assert_allclose(drifted.weights, [1 / 3, 1 / 3, 0, 0, 1 / 3])
    assert "method='robust'" not in drifted.finding.remedy
    assert "method='robust'" in linked([0.2, 1.5], robust_z=[0, 5], method="mean").finding.remedy
    beyond = linked([0.2, 0.3], excess=0.4)
    assert beyond.finding.severity == "warning"
    assert "by a standard deviation of 0.40 logits beyond chance" in beyond.finding.sentence
    assert "cannot be told without standard errors" in linked([0.2, 0.3], df=0).agreement


@pytest.mark.parametrize(("n_drifted", "doubtful"), [(4, False), (5, True)])
def test_a_link_of_which_too_much_has_drifted(n_drifted, doubtful):
    one = linked(np.arange(10) / 10, robust_z=[9.0] * n_drifted + [0.0] * (10 - n_drifted))
    assert bool(one.doubtful) == doubtful
    assert linking.MOST_DRIFT == 0.4


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((), ""),
        ((1,), "1 of 3 common items was anchored at the difficulty in the other calibration and agrees by design"),
        ((0, 1), "2 of 3 common items were anchored at the difficulty in the other calibration and agree by design"),
        ((0, 1, 2), "3 common items were anchored at the difficulty in the other calibration and agree by design"),
    ],
)
def test_items_that_agree_by_design(given, words):
    one = linked([0.2, 0.3, 0.25], given=given)
    assert one.by_design.startswith(words)
    assert bool(one.by_design) == bool(given)
    assert ("Q =" in one.finding.sentence) == (len(given) < 3)


def test_codes_of_anchors_that_know_none():
    """Those of the data where an item has as many categories there, else 0, 1, ..."""
    rng = np.random.default_rng(2)
    x = rng.integers(0, 3, (60, 3)).astype(float)
    x[:, 1] = 1 + 2 * x[:, 1]  # codes 1, 3, 5
    responses = si.read(x, items=["a", "b", "c"], ordered=True, unused="collapse")
    items = np.array(["b", "a", "elsewhere"], dtype=object)
    found = anchors_module._codes_in_data(items, np.array([2, 1, 2]), responses)
    np.testing.assert_array_equal(found, [[1, 3, 5], [0, 1, np.nan], [0, 1, 2]])


def test_what_folders_can_give(tmp_path):
    x = si.simulate.rasch(80, 5, seed=1).responses
    study = si.SpectralRasch().fit(x).analyse(x)
    study.to_bank().save(tmp_path / "bank")
    calibration, about = calibration_in(tmp_path / "bank", "ifile")
    np.testing.assert_array_equal(calibration.difficulty, study.calibration.difficulty)
    assert about == {}
    with pytest.raises(OptionError, match="only these have people"):
        calibration_in(tmp_path / "bank", "pfile")
    study.write(tmp_path / "results")
    assert calibration_in(tmp_path / "results", "pfile")[1]["persons"]["n"].tolist() == x.counts.tolist()
    with pytest.raises(OptionError, match="keep a bank"):
        calibration_in(tmp_path / "results", "sfile")
    assert calibration_in(tmp_path / "results", "ifile")[1]["wle"]


def test_a_population_is_a_mean_and_a_sd():
    bank = SimpleNamespace(population=None, n_groups=2)
    for given in ((np.nan, 1.0), (0.0, 0.0), (0.0, -1.0), (0.0, np.inf)):
        with pytest.raises(OptionError, match="a mean and a standard deviation above zero"):
            score._population(bank, None, given, "eap")
    assert score._population(bank, None, (0.5, 2.0), "eap").sd == 2.0
    with pytest.raises(OptionError, match="several scales that no answers link"):
        score._population(bank, None, None, "eap")
