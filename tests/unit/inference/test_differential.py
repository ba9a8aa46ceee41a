"""Differential functioning: the statistic by definition, size and power, classes, anchors, and bad groups."""

import importlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize_scalar

from drawn import drawn, drawn_categories
from spectral_irt import AnchoredRasch, ConditionalRasch, Responses, SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.data.block import Thresholds
from spectral_irt.data.labels import positions
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.groups.calibrations import Combination, GroupModel, calibrate_groups, locations_like
from spectral_irt.inference.groups.dif import DELTA, _pair, differential
from spectral_irt.inference.groups.dif_details import _unlike
from spectral_irt.inference.groups.grouping import by_label, divide
from spectral_irt.inference.groups.mantel_haenszel import mantel_haenszel
from spectral_irt.inference.groups.slope_shifts import slope_shifts
from spectral_irt.inference.items.slope_model import SlopeModel


def two_groups(sizes, m, seed, shift=0.0, mean=0.0, missing=0.0):
    """Groups of people; for the last, items are harder by `shift`, and its people are abler by `mean`."""
    rng = np.random.default_rng(seed)
    beta, parts = rng.standard_normal(m), []
    for k, n in enumerate(sizes):
        last = k == len(sizes) - 1
        parts.append(drawn(rng, rng.standard_normal((n, 1)) + mean * last - beta - shift * last))
    table = np.vstack(parts)
    table[rng.random(table.shape) < missing] = np.nan
    return Responses.from_wide(table), np.repeat([f"g{k}" for k in range(len(sizes))], sizes)


def dif_of(data, groups, **options):
    return SpectralRasch().fit(data).analyse(data).dif(groups, **options)


def codes(found):
    return {finding.code: finding.sentence for finding in found.findings}


def loop_mantel_haenszel(table, focal, item):
    """Sums over strata of equal items and score, as written in the books."""
    seen = ~np.isnan(table)
    score = np.nansum(table, axis=1)
    strata = {(tuple(s), r) for s, r in zip(seen, score, strict=True)}
    r = s = pr = mixed = qs = right = expected = variance = 0.0
    for items, total in strata:
        here = (seen == items).all(axis=1) & (score == total)
        if not items[item] or total in (0, sum(items)) or not (here & focal).any() or not (here & ~focal).any():
            continue
        a, c = (table[here & group, item].sum() for group in (~focal, focal))
        b, d = (here & ~focal).sum() - a, (here & focal).sum() - c
        n = a + b + c + d
        r, s = r + a * d / n, s + b * c / n
        p, q = (a + d) / n, (b + c) / n
        pr, mixed, qs = pr + p * a * d / n, mixed + (p * b * c + q * a * d) / n, qs + q * b * c / n
        right += a
        expected += (a + b) * (a + c) / n
        variance += (a + b) * (c + d) * (a + c) * (b + d) / (n * n * (n - 1))
    se = np.sqrt(pr / (2 * r**2) + mixed / (2 * r * s) + qs / (2 * s**2))
    return np.log(r / s), se, max(abs(right - expected) - 0.5, 0) ** 2 / variance


@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_mantel_haenszel_equals_loops(missing):
    data, groups = two_groups((150, 130), 5, seed=1, missing=missing)
    focal = groups == "g1"
    *found, matched = mantel_haenszel(data, focal)
    for item in range(5):
        assert [each[item] for each in found] == pytest.approx(loop_mantel_haenszel(data.to_dense(), focal, item))
    assert 0.5 < matched <= 1


@pytest.mark.slow
def test_contrasts_are_differences_of_separate_fits():
    data, groups = two_groups((300, 250), 6, seed=2)
    fit = ConditionalRasch().fit(data)
    found = fit.analyse(data).dif(groups, anchors="all")
    first, second = (ConditionalRasch().fit(data.take_persons(groups == g)) for g in ("g0", "g1"))
    np.testing.assert_allclose(found.contrasts["contrast"], second.difficulty_ - first.difficulty_, atol=1e-9)
    np.testing.assert_allclose(found.contrasts["se"], np.hypot(first.se_, second.se_), rtol=1e-8)
    np.testing.assert_allclose(found.contrasts["delta"], -DELTA * found.contrasts["contrast"])
    np.testing.assert_allclose(found.items["statistic"], found.contrasts["z"] ** 2)
    assert found.reference == "g0"
    other = differential(fit.calibration_, data, groups, reference="g1", anchors="all")
    np.testing.assert_allclose(other.contrasts["contrast"], -found.contrasts["contrast"])


@pytest.mark.parametrize("ordered", [False, True])
def test_both_groups_are_on_the_scale_of_the_calibration(ordered):
    """Anchored at values of mean 3: the items that the groups are centered on have their mean there in both groups."""
    make = simulate.partial_credit if ordered else simulate.rasch
    data = make(600, 8, seed=4, **({"categories": 3} if ordered else {}))
    groups = np.array(["a", "b"])[np.arange(600) % 2]
    layout = data.responses.thresholds
    anchors = {item: data.thresholds[layout.item == item] + 3 for item in range(5)}
    study = AnchoredRasch(anchors).fit(data.responses).analyse(data.responses)
    found = study.dif(groups)
    expected = study.calibration.difficulty[positions(found.anchors, study.calibration.labels)].mean()
    chosen = positions(found.contrasts["item"], found.anchors) >= 0
    for name in ("difficulty", "difficulty_reference"):
        assert found.contrasts[name][chosen].mean() == pytest.approx(expected)
    difference = found.contrasts["difficulty"] - found.contrasts["difficulty_reference"]
    np.testing.assert_allclose(difference, found.contrasts["contrast"], atol=1e-12)
    if ordered:
        rows = found.by_threshold
        np.testing.assert_allclose(rows["threshold"] - rows["threshold_reference"], rows["contrast"], atol=1e-12)
        assert rows["threshold_reference"].mean() == pytest.approx(expected, abs=0.5)
    else:
        scaled = study.rescale(500, 100).tables(study.parts(groups={"half": groups}))["dif"]
        scale = study.rescale(500, 100).calibration.scale
        np.testing.assert_allclose(scaled["measure"], scale.measure(scaled["difficulty"]))
        np.testing.assert_allclose(scaled["measure_reference"], scale.measure(scaled["difficulty_reference"]))


@pytest.mark.slow
def test_chosen_anchors_are_zero_on_average():
    data, groups = two_groups((300, 250), 6, seed=3)
    found = dif_of(data, groups, anchors=[1, 4])
    assert found.anchors.tolist() == [1, 4]
    assert dif_of(data, groups, anchors=["1", "4"]).anchors.tolist() == [1, 4]  # as text
    assert found.contrasts["contrast"][[1, 4]].mean() == pytest.approx(0, abs=1e-12)
    single = dif_of(data, groups, anchors=[2]).contrasts
    assert single["contrast"][2] == single["se"][2] == single["z"][2] == 0
    # b_i - b_2 in each group: the variance of a difference.
    each = [data.take_persons(groups == g) for g in ("g0", "g1")]
    covariances = [SpectralRasch(regularization=0, se="information").fit(own).covariance() for own in each]
    variance = sum(v[0, 0] + v[2, 2] - 2 * v[0, 2] for v in covariances)
    assert single["se"][0] == pytest.approx(np.sqrt(variance))


def test_three_groups():
    data, groups = two_groups((400, 400, 400), 8, seed=4, shift=np.eye(8)[5] * 1.2)
    found = dif_of(data, groups)
    assert found.table().shape == (16, 22)
    assert found.overall()["df"].to_list() == [2] * 8
    assert found.items["flagged"].tolist() == [k == 5 for k in range(8)]
    assert found.items["class"][5] == "C"
    rows = [(g, i) for g, i, f in zip(*(found.contrasts[c] for c in ("group", "item", "flagged")), strict=True) if f]
    assert rows == [("g2", 5)]
    said = codes(found)["differential_items"]
    assert "5 is harder for 'g2' than for 'g" in said
    assert f"by {found.items['largest'][5]:.2f} logits (class C, adjusted p < 0.001)" in said
    assert found.items["harder_for"][5] == "g2"


def test_classes_are_counted_as_they_are_told():
    """Item 3 is moderately harder for one group than for the reference and moderately easier for another, so that only
    those two differ by class C."""
    rng = np.random.default_rng(3)
    group = np.repeat(["a", "b", "c"], 4000)
    shift = np.zeros((len(group), 12))
    shift[:, 3] = 0.53 * (group == "b") - 0.53 * (group == "c")
    x = drawn(rng, rng.normal(size=(len(group), 1)) - np.linspace(-1.5, 1.5, 12) - shift)
    found = dif_of(Responses.from_wide(x), group, reference="a")
    told = codes(found)["differential_items"]
    assert found.contrasts["class"][found.contrasts["item"] == 3].tolist() == ["B", "B"]
    assert "(class C" in told
    assert found.classes["C"] == told.count("(class C") == 1
    assert found.to_dict()["classes"] == found.classes
    assert f"({found.classes['A']} A, {found.classes['B']} B, 1 C; {found.to_dict()['flagged']} flagged)" in repr(found)


def test_purified_anchors_find_the_right_items():
    shift = np.zeros(12)
    shift[:3] = 1.5  # all against the same group: centering on everything would blame the other nine
    data, groups = two_groups((1500, 1500), 12, seed=5, shift=shift)
    fit = SpectralRasch().fit(data)
    naive, pure = fit.analyse(data).dif(groups, anchors="all"), fit.analyse(data).dif(groups)
    assert naive.contrasts["p_bh"][3:].min() < 0.01
    assert pure.contrasts["flagged"].tolist() == [k < 3 for k in range(12)]
    assert pure.anchors.tolist() == list(range(3, 12))
    np.testing.assert_allclose(pure.contrasts["contrast"][:3], 1.5, atol=0.3)


@pytest.mark.slow
def test_when_half_of_the_items_differ_nobody_can_tell_which():
    data, groups = two_groups((1500, 1500), 12, seed=12, shift=np.where(np.arange(12) < 6, 1.5, 0.0))
    found = dif_of(data, groups)
    assert found.items["flagged"].sum() >= 5
    assert "too_many_differ" in codes(found)
    assert "too_many_differ" not in codes(dif_of(data, groups, anchors=[6, 7, 8]))


def test_people_are_matched_on_anchors_and_the_item():
    data, groups = two_groups((800, 800), 8, seed=13, shift=np.eye(8)[2] * 1.5)
    found = dif_of(data, groups)
    assert found.anchors.tolist() == [0, 1, 3, 4, 5, 6, 7]
    for item, chosen in ((2, np.arange(8)), (4, found.anchors)):
        here = data.to_dense()[:, chosen]
        log_odds, se, _ = loop_mantel_haenszel(here, groups == "g1", int(np.flatnonzero(chosen == item)[0]))
        assert found.contrasts["mh_delta"][item] == pytest.approx(-DELTA * log_odds)
        assert found.contrasts["mh_se"][item] == pytest.approx(DELTA * se)


def test_a_difference_that_depends_on_ability():
    """Two groups as able; in the second one item discriminates by 0.3."""
    rng = np.random.default_rng(1)
    groups, theta = np.repeat(["a", "b"], 1500), rng.normal(size=(3000, 1))
    slope = np.where((groups == "b")[:, None] & (np.arange(11) == 5), 0.3, 1.0)
    table = drawn(rng, slope * (theta - np.linspace(-1.5, 1.5, 11)))
    fit = SpectralRasch(regularization=0).fit(table)
    found = fit.analyse(table).dif(groups)
    assert found.contrasts["nonuniform"].tolist() == [k == 5 for k in range(11)]
    assert found.contrasts["class"][5] == "A"  # on the whole it is as hard
    said = next(one for one in found.findings if one.code == "nonuniform_items")
    assert said.items == (5,)
    assert f"5 harder for 'b' than for 'a' by {found.contrasts['interaction'][5]:.2f} logits" in said.sentence
    # By hand: the contrast in each half, and the difference of the two up to their common center.
    half = np.where(divide(Responses.from_wide(table), "ability", difficulty=fit.difficulty_).group == 1, "high", "low")
    contrast = {}
    for part in ("low", "high"):
        here = [SpectralRasch(regularization=0).fit(table[(groups == g) & (half == part)]) for g in "ab"]
        contrast[part] = here[1].difficulty_ - here[0].difficulty_
    apart = contrast["high"] - contrast["low"] - found.contrasts["interaction"]
    np.testing.assert_allclose(apart, apart[0], atol=1e-8)
    assert "interaction" not in fit.analyse(table).dif(groups, nonuniform=False).contrasts


def test_a_difference_of_all_items_together_is_said_where_no_item_is_named():
    """Each of 20 items differs a little, every second one the other way."""
    rng = np.random.default_rng(2)
    groups = np.repeat(["f", "m"], 400)
    shift = 0.35 * np.where(np.arange(20) % 2, 1.0, -1.0) * (groups == "m")[:, None]
    responses = Responses.from_wide(drawn(rng, rng.normal(size=(800, 1)) - np.linspace(-1, 1, 20) - shift))
    found = dif_of(responses, groups, nonuniform=False, level=1e-4)
    assert found.test.p < 1e-4
    assert not found.items["flagged"].any()
    (said,) = (one for one in found.findings if one.code == "items_differ_together")
    assert "All items together do differ between the groups (p" in said.sentence
    data, same = two_groups((300, 300), 8, seed=4)
    assert "items_differ_together" not in codes(dif_of(data, same, nonuniform=False))


def test_an_item_that_only_one_group_was_given_is_a_note_and_no_fault_of_the_groups():
    data, groups = two_groups((200, 200), 6, seed=14)
    table = data.to_dense()
    table[groups == "g1", 3] = np.nan
    table[groups == "g1", 5] = 1
    found = dif_of(table, groups, nonuniform=False)
    findings = {finding.code: finding for finding in found.findings}
    assert findings["items_of_one_group"].severity == "note"
    assert findings["items_of_one_group"].items == (3,)
    assert findings["items_not_compared"].items == (5,)


def test_items_extreme_in_a_group_and_halves_too_small_to_ask_are_told():
    data, groups = two_groups((50, 50), 6, seed=14)
    table = data.to_dense()
    table[groups == "g1", 3] = 0
    found = dif_of(table, groups)
    assert 3 not in found.contrasts["item"]
    assert {"items_not_compared", "nonuniform_not_tested"} <= set(codes(found))
    assert np.isnan(found.contrasts["interaction"]).all()
    assert not found.contrasts["nonuniform"].any()
    assert not found.nonuniform_tested


def test_unmatched_users_are_told():
    data = simulate.rasch(400, 30, design="sampled", p=0.4, seed=9).responses
    found = dif_of(data, np.arange(400) % 2)
    assert np.isnan(found.contrasts["mh_delta"]).all()
    assert "not_matched" in codes(found)
    (unmatched,) = (finding for finding in found.findings if finding.code == "not_matched")
    assert unmatched.remedy == "It needs larger groups, or fewer forms."
    assert np.isfinite(found.contrasts["z"]).all()


GOOD = np.repeat(["g0", "g1"], 200)


@pytest.mark.parametrize(
    ("groups", "options", "error", "text"),
    [
        (["x"] * 400, {}, DesignError, "the groups have a single level, 'x'"),
        ([None] * 400, {}, DesignError, "no level at all, only missing values"),
        (["many"] * 380 + ["few"] * 20, {}, DesignError, r"than 30 people .* in 'few' \(\d+\), which leaves 1 of 2"),
        (GOOD, {"reference": "z"}, OptionError, "`reference` is 'z'; the groups are 'g0', 'g1'"),
        (GOOD, {"anchors": [99]}, OptionError, "99 not among the items compared"),
        (GOOD, {"anchors": "some"}, OptionError, "`anchors` is 'some'"),
        (GOOD, {"level": 5}, OptionError, "`level` is 5"),
    ],
)
def test_bad_groups(groups, options, error, text):
    data, _ = two_groups((200, 200), 6, seed=10)
    with pytest.raises(error, match=text):
        dif_of(data, groups, **options)


def test_small_groups_and_users_without_one_are_told():
    data, groups = two_groups((200, 200), 6, seed=11)
    labels = groups.astype(object)
    labels[:10] = "tiny"
    labels[10:15] = None
    found = dif_of(data, labels)
    assert "5 of 400 people are in no group" in codes(found)["persons_without_group"]
    assert "'tiny' (" in codes(found)["small_groups"]
    assert found.groups.names == ("g0", "g1")
    by_person = dif_of(data, dict(enumerate(labels)))
    np.testing.assert_array_equal(by_person.contrasts["z"], found.contrasts["z"])


@pytest.mark.slow
@pytest.mark.parametrize("mean", [0.0, -0.8])
def test_size(mean):
    data = [two_groups((500, 400), 15, seed=seed, mean=mean) for seed in range(80)]
    found = [dif_of(*each, nonuniform=False) for each in data]
    below = {name: np.array([each.contrasts[name] < 0.05 for each in found]) for name in ("p", "mh_p", "p_holm")}
    assert 0.03 <= below["p"].mean() <= 0.07
    assert 0.02 <= below["mh_p"].mean() <= 0.06  # the continuity correction is cautious
    assert below["p_holm"].any(axis=1).mean() <= 0.14  # 1,500 samples had 5.9%; 80 of them spread by 2.6%
    assert np.mean([each.test.p < 0.05 for each in found]) <= 0.125  # 5% and three standard errors


@pytest.mark.slow
@pytest.mark.parametrize("design", ["4 of 20", "4 of 20; booklets; abler by 1"])
def test_items_that_do_not_differ_are_not_blamed_for_those_that_do(design, monkeypatch):
    """benchmarks/differential.py with fewer replicates: 12 x 16 clean items, a standard error of 1.6% or so."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "benchmarks"))
    found = importlib.import_module("differential").study(design, 500, 12)
    assert found["clean"] < 0.095
    assert found["all anchors"] > 0.08  # what centering on all items does: 0.11 where people differ, too
    assert found["power"] > 0.85
    assert found["named"] > 0.65
    assert 0.01 < found["interaction"] < 0.1


@pytest.mark.slow
def test_a_row_that_is_flagged_is_named():
    """Against the reference alone a difference may be sure that is none over all groups taken together."""
    table, groups = simulate.rasch(1200, 10, seed=3).responses.to_dense(), np.arange(1200) % 6
    own = table[groups == 5, 4]
    table[groups == 5, 4] = np.where(np.random.default_rng(0).random(200) < 0.2, 1 - own, own)
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(6)
        found = SpectralRasch(regularization=0).fit(table).analyse(table).dif(order[groups], nonuniform=False)
        rows = {item for item, flag in zip(found.contrasts["item"], found.contrasts["flagged"], strict=True) if flag}
        said = next((one for one in found.findings if one.code == "differential_items"), None)
        assert rows <= set(said.items if said else ())


@pytest.mark.slow
@pytest.mark.parametrize("ordered", [False, True])
def test_slopes_are_not_differences_between_groups_of_unlike_ability(ordered):
    """Steep and flat items, the second group abler by a logit, no DIF: named as slopes; one that differs is found."""
    rng = np.random.default_rng(21)
    n, m = 1000, 16
    slope, beta, groups = np.repeat([0.6, 1.4], m // 2), rng.normal(size=m), np.repeat(["a", "b"], n)
    theta = rng.normal(size=(2 * n, 1)) + (groups == "b")[:, None]
    shift = np.zeros(m)
    for differ in (False, True):
        shift[3] = 1.5 * differ
        logit = slope * (theta - beta - shift * (groups == "b")[:, None])
        weights = np.stack([k * logit - slope * (k == 2) for k in range(3 if ordered else 2)], axis=2)
        data = Responses.from_wide(drawn_categories(rng, weights), ordered=ordered)
        estimator = SpectralPartialCredit() if ordered else SpectralRasch()
        found = estimator.fit(data).analyse(data).dif(groups, nonuniform=False)
        assert np.sum((found.items["class"] != "A") & (found.items["p_bh"] < 0.05)) >= 2
        assert found.items["item"][found.items["flagged"]].tolist() == ([found.items["item"][3]] if differ else [])
        assert "differences_by_slope" in codes(found)


@pytest.fixture(scope="module")
def study():
    """Ten items in up to four categories; the first is a logit harder for "b", the second has one threshold moved."""
    rng = np.random.default_rng(8)
    group = np.array(["a", "b"])[np.arange(1600) % 2]
    thresholds = np.sort(rng.normal(0, 0.8, (10, 3)), axis=1) + np.linspace(-0.8, 0.8, 10)[:, None]
    moved = thresholds.copy()
    moved[0] += 1.0
    moved[1] += [-1.0, 0.0, 1.0]
    ability = rng.normal(0, 1.3, 1600)
    table = np.empty((1600, 10))
    for seed, (label, beta) in enumerate((("a", thresholds), ("b", moved))):
        own = group == label
        made = simulate.partial_credit(800, thresholds=list(beta), ability=ability[own], seed=seed)
        table[own] = made.responses.to_dense()
    answers = Responses.from_wide(table, items=[f"q{k + 1}" for k in range(10)], ordered=True)
    return SpectralPartialCredit().fit(answers).analyse(answers), group


@pytest.mark.slow
def test_items_that_differ_are_found_with_their_size(study):
    study, group = study
    found = study.dif(group)
    rows = found.table().to_dict(as_series=False)
    assert rows["flagged"][0]
    assert rows["class"][0] == "C"
    assert abs(rows["contrast"][0] - 1.0) < 4 * rows["se"][0]
    assert rows["item"][0] not in found.anchors
    np.testing.assert_allclose(rows["mh_delta"][0], rows["delta"][0], atol=3 * 2.35 * rows["se"][0])
    assert sum(rows["flagged"]) <= 2  # of nine without a difference, at 5% after adjustment
    assert rows["threshold_dif_p_bh"][1] < 1e-4
    assert min(rows["threshold_dif_p_bh"][2:]) > 0.01
    steps = found.thresholds().filter(pl.col("item") == "q2")["contrast"].to_numpy()
    assert np.abs(steps - [-1, 0, 1]).max() < 0.7
    assert {"differential_items", "threshold_dif"} <= set(codes(found))


@pytest.mark.slow
def test_a_category_that_a_group_does_not_use_does_no_harm(study):
    study, group = study
    table = study.responses.to_dense()
    table[(group == "b") & (table[:, 4] == 3), 4] = 2
    answers = Responses.from_wide(table, ordered=True)
    found = SpectralPartialCredit().fit(answers).analyse(answers).dif(group)
    assert len(found.items["item"]) == 10
    assert 4 not in found.by_threshold["item"]  # its thresholds have no estimate in b
    assert np.isnan(found.contrasts["threshold_dif_p"][4])


def test_mantel_by_hand():
    table = np.array([[2, 0], [1, 1], [0, 2], [2, 0], [0, 2], [1, 1.0]])
    focal = np.array([False, False, False, True, True, True])
    log_odds, se, _, _ = mantel_haenszel(Responses.from_wide(table, ordered=True), focal)
    # One stratum of six with total score 2: F = 3, E = 3 * 6 / 6, V = 3 * 3 * (6 * 10 - 36) / (36 * 5).
    np.testing.assert_allclose(log_odds, [0, 0], atol=1e-12)
    np.testing.assert_allclose(se, (216 / 180) ** -0.5)
    other = np.array([False, True, True, False, True, False])
    log_odds, *_ = mantel_haenszel(Responses.from_wide(table, ordered=True), other)
    # F = 1 + 0 + 0 of the first item, E = 3: it is harder for them, and the second one easier.
    np.testing.assert_allclose(log_odds, [2 / (216 / 180), -2 / (216 / 180)])


def test_unequal_slopes_move_ordered_responses_by_less_than_the_difference_of_abilities_times_the_slope(monkeypatch):
    """Free distances of four categories shrink with the slope: 0.4 of (1 - a) D is left (8,000 persons)."""
    rng = np.random.default_rng(3)
    slope, apart = np.array([0.4, 0.7, 1.0, 1.3, 1.6]), 1.5
    ability = rng.normal(size=200) + apart * (np.arange(200) >= 100)
    thresholds = np.linspace(-0.8, 0.8, 5)[:, None] + np.array([-1.0, 0.0, 1.0])
    logit = np.cumsum(slope[:, None] * (ability[:, None, None] - thresholds), axis=-1)
    p = np.exp(np.concatenate([np.zeros((200, 5, 1)), logit], axis=-1))
    table = (rng.random((200, 5, 1)) > np.cumsum(p / p.sum(axis=-1, keepdims=True), axis=-1)).sum(axis=-1)
    answers = Responses.from_wide(table.astype(float), ordered=True)
    split = by_label(answers, np.repeat(["a", "b"], 100).tolist())
    shape = SpectralPartialCredit(regularization=0, se="none").fit(answers).calibration_.thresholds
    model = GroupModel(shape=shape)
    groups = calibrate_groups(answers, split, model)

    def true_model(people):
        theta = ability[np.asarray(people.persons, dtype=int)]
        intercepts = (slope[:, None] * thresholds).ravel()
        return SlopeModel(slope, np.full(5, 1e-3), intercepts, ability=theta, ability_sd=np.zeros(len(theta)))

    monkeypatch.setattr("spectral_irt.inference.groups.slope_shifts.slope_model", true_model)
    shift = slope_shifts(groups, split.group, model, np.ones(5, dtype=bool)).shift
    too_much = (1 - slope) * apart
    assert np.all(shift[0] == 0)
    assert 0.25 < shift[1] @ too_much / (too_much @ too_much) < 0.55


@pytest.mark.slow
def test_slopes_of_ordered_responses_are_not_called_dif():
    """Slopes of sd 0.5 (logarithms) and groups 1.5 logits apart: what slopes explain leaves no more than chance."""
    rng = np.random.default_rng(12)
    n, m = 1500, 10
    beta, slope = 0.8 * rng.normal(size=m), np.exp(0.5 * rng.normal(size=m))
    second = np.repeat([False, True], n)
    ability = rng.normal(size=2 * n) + 1.5 * second
    step = slope[:, None] * (ability[:, None, None] - beta[:, None] - np.array([-1.0, 0.0, 1.0]))
    p = np.exp(np.concatenate([np.zeros((2 * n, m, 1)), np.cumsum(step, axis=-1)], axis=-1))
    p /= p.sum(axis=-1, keepdims=True)
    X = (rng.random((2 * n, m))[..., None] > np.cumsum(p, axis=-1)[..., :-1]).sum(axis=-1).astype(float)
    answers = Responses.from_wide(X, ordered=True)
    calibration = SpectralPartialCredit().fit(answers).calibration_
    split, model = by_label(answers, second.tolist()), locations_like(calibration)
    groups = calibrate_groups(answers, split, model)
    shifts = slope_shifts(groups, split.group, model, np.ones(m, dtype=bool))
    contrast, se = groups.difficulty[1] - groups.difficulty[0], np.hypot(*groups.se)
    left = contrast - shifts.shift[1]
    assert np.sqrt(np.mean(contrast**2)) > 4 * np.sqrt(np.mean(se**2))  # far beyond chance without it
    assert np.sqrt(np.mean(left**2)) < 2 * np.sqrt(np.mean(se**2))
    by_formula = (1 - slope / slope.mean()) * 1.5
    assert np.sqrt(np.mean((contrast - by_formula + by_formula.mean()) ** 2)) > 2 * np.sqrt(np.mean(left**2))
    found = differential(calibration, answers, second.tolist(), nonuniform=False)
    assert not found.contrasts["flagged"].any()
    assert any(one.code == "differences_by_slope" for one in found.findings)


def test_thresholds_of_an_item_are_compared_with_their_best_common_value():
    """The statistic is the least of (d - c)' V^-1 (d - c) over c; equal contrasts are no difference."""
    rng = np.random.default_rng(5)
    layout = Thresholds(np.array([3, 1, 2]))
    root = rng.normal(size=(6, 6))
    covariance = root @ root.T + np.eye(6)
    contrast = np.array([0.4, -0.3, 0.9, 2.0, 0.7, 0.7])
    statistic, df = _unlike(layout, contrast, covariance)
    d, inverse = contrast[:3], np.linalg.inv(covariance[:3, :3])
    least = minimize_scalar(lambda c: (d - c) @ inverse @ (d - c)).fun
    np.testing.assert_allclose(statistic[0], least, rtol=1e-8)
    assert np.isnan(statistic[1])
    np.testing.assert_allclose(statistic[2], 0, atol=1e-12)
    assert df.tolist() == [2, 0, 1]


def test_what_slopes_explain_is_taken_off_a_contrast_of_two_groups():
    """shift of one less that of the other, with the errors of both."""
    difficulty = np.array([[0.1, -0.4, 0.3], [0.5, -0.2, -0.3], [1.0, 0.0, -1.0]])
    variance = np.array([[0.04, 0.09, 0.01], [0.02, 0.05, 0.03], [0.01, 0.02, 0.06]])

    def combined(coefficients):
        return Combination(coefficients @ difficulty, np.sqrt(coefficients**2 @ variance), np.full(3, np.inf))

    groups = SimpleNamespace(names=("a", "b", "c"), combine=combined)
    shifts = SimpleNamespace(shift=np.array([[0.3, 0.2, -0.5], [0.0, 0.1, -0.1], [-0.2, 0.1, 0.1]]), se=variance)
    plain = _pair(groups, 2, 1, None)
    np.testing.assert_allclose(plain.value, [0.5, 0.2, -0.7])
    np.testing.assert_allclose(plain.se, np.sqrt([0.03, 0.07, 0.09]))
    beyond = _pair(groups, 2, 1, shifts)
    np.testing.assert_allclose(beyond.value, [0.7, 0.2, -0.9])
    np.testing.assert_allclose(beyond.se**2, plain.se**2 + variance[2] ** 2 + variance[1] ** 2)
