"""Differential functioning: the statistic by definition, size and power, classes, anchors, and bad groups."""

import importlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from spectral_irt import ConditionalRasch, Responses, SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.groups.dif import DELTA, differential
from spectral_irt.inference.groups.grouping import divide
from spectral_irt.inference.groups.mantel_haenszel import mantel_haenszel
from spectral_irt.model import sigmoid


def two_groups(sizes, m, seed, shift=0.0, mean=0.0, missing=0.0):
    """Groups of people; for the last, items are harder by `shift`, and its people are abler by `mean`."""
    rng = np.random.default_rng(seed)
    beta = rng.standard_normal(m)
    parts = []
    for k, n in enumerate(sizes):
        last = k == len(sizes) - 1
        theta = rng.standard_normal((n, 1)) + mean * last
        parts.append((rng.random((n, m)) < 1 / (1 + np.exp(beta + shift * last - theta))) * 1.0)
    table = np.vstack(parts)
    table[rng.random(table.shape) < missing] = np.nan
    return Responses.from_wide(table), np.repeat([f"g{k}" for k in range(len(sizes))], sizes)


# ------------------------------------------------------------------------------- mantel and haenszel


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


def test_nobody_to_match():
    data = Responses.from_wide([[1, 0, np.nan], [np.nan, 1, 0]])
    log_odds, _, _, matched = mantel_haenszel(data, np.array([True, False]))
    assert matched == 0
    assert np.isnan(log_odds).all()


# ---------------------------------------------------------------------------------------- contrasts


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


@pytest.mark.slow
def test_chosen_anchors_are_zero_on_average():
    data, groups = two_groups((300, 250), 6, seed=3)
    found = SpectralRasch().fit(data).analyse(data).dif(groups, anchors=[1, 4])
    assert found.anchors.tolist() == [1, 4]
    assert SpectralRasch().fit(data).analyse(data).dif(groups, anchors=["1", "4"]).anchors.tolist() == [1, 4]  # as text
    assert found.contrasts["contrast"][[1, 4]].mean() == pytest.approx(0, abs=1e-12)
    single = SpectralRasch().fit(data).analyse(data).dif(groups, anchors=[2]).contrasts
    assert single["contrast"][2] == single["se"][2] == single["z"][2] == 0
    # b_i - b_2 in each group: the variance of a difference.
    fits = [SpectralRasch(regularization=0, se="information") for _ in range(2)]
    fits = [fit.fit(data.take_persons(groups == g)).covariance() for fit, g in zip(fits, ("g0", "g1"), strict=True)]
    variance = sum(v[0, 0] + v[2, 2] - 2 * v[0, 2] for v in fits)
    assert single["se"][0] == pytest.approx(np.sqrt(variance))


def test_three_groups():
    data, groups = two_groups((400, 400, 400), 8, seed=4, shift=np.eye(8)[5] * 1.2)
    found = SpectralRasch().fit(data).analyse(data).dif(groups)
    assert found.table().shape == (16, 22)
    assert found.overall()["df"].to_list() == [2] * 8
    assert found.items["flagged"].tolist() == [k == 5 for k in range(8)]
    assert found.items["class"][5] == "C"
    rows = [(g, i) for g, i, f in zip(*(found.contrasts[c] for c in ("group", "item", "flagged")), strict=True) if f]
    assert rows == [("g2", 5)]
    said = next(one for one in found.findings if one.code == "differential_items").sentence
    assert "5 is harder for 'g2' than for 'g" in said
    assert f"by {found.items['largest'][5]:.2f} logits (class C, adjusted p < 0.001)" in said
    assert found.items["harder_for"][5] == "g2"


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
    found = SpectralRasch().fit(data).analyse(data).dif(groups)
    assert found.items["flagged"].sum() >= 5
    assert "too_many_differ" in [one.code for one in found.findings]
    assert "too_many_differ" not in [
        one.code for one in SpectralRasch().fit(data).analyse(data).dif(groups, anchors=[6, 7, 8]).findings
    ]


def test_people_are_matched_on_anchors_and_the_item():
    data, groups = two_groups((800, 800), 8, seed=13, shift=np.eye(8)[2] * 1.5)
    found = SpectralRasch().fit(data).analyse(data).dif(groups)
    assert found.anchors.tolist() == [0, 1, 3, 4, 5, 6, 7]
    for item, chosen in ((2, np.arange(8)), (4, found.anchors)):
        here = data.to_dense()[:, chosen]
        log_odds, se, _ = loop_mantel_haenszel(here, groups == "g1", int(np.flatnonzero(chosen == item)[0]))
        assert found.contrasts["mh_delta"][item] == pytest.approx(-DELTA * log_odds)
        assert found.contrasts["mh_se"][item] == pytest.approx(DELTA * se)


# --------------------------------------------------------------------------------------- non-uniform


def steeper(n, m, item, slope, seed):
    """Two groups as able; in the second one item discriminates by `slope`."""
    rng = np.random.default_rng(seed)
    groups, theta, beta = np.repeat(["a", "b"], n), rng.normal(size=(2 * n, 1)), np.linspace(-1.5, 1.5, m)
    each = np.where((groups == "b")[:, None] & (np.arange(m) == item), slope, 1.0)
    return (rng.random((2 * n, m)) < 1 / (1 + np.exp(each * (beta - theta)))) * 1.0, groups


def test_a_difference_that_depends_on_ability():
    table, groups = steeper(1500, 11, 5, 0.3, seed=1)
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


def test_halves_too_small_to_ask_are_told():
    data, groups = two_groups((50, 50), 6, seed=14)
    found = SpectralRasch().fit(data).analyse(data).dif(groups)
    assert np.isnan(found.contrasts["interaction"]).all()
    assert not found.contrasts["nonuniform"].any()
    assert not found.nonuniform_tested
    assert "nonuniform_not_tested" in [one.code for one in found.findings]


def test_sign_and_agreement_with_mantel_haenszel():
    data, groups = two_groups((2000, 2000), 10, seed=6, shift=np.eye(10)[7] * 0.8, mean=-0.7)
    found = SpectralRasch().fit(data).analyse(data).dif(groups).contrasts
    assert found["contrast"][7] > 0.5
    assert found["delta"][7] < -1
    np.testing.assert_allclose(found["mh_delta"], found["delta"], atol=0.25)


def test_items_extreme_in_a_group_are_named_and_left_out():
    data, groups = two_groups((200, 200), 6, seed=7)
    table = data.to_dense()
    table[groups == "g1", 3] = 0
    found = SpectralRasch().fit(table).analyse(table).dif(groups)
    assert 3 not in found.contrasts["item"]
    assert "items_not_compared" in [f.code for f in found.findings]


def test_unmatched_users_are_told():
    data = simulate.rasch(400, 30, design="sampled", p=0.4, seed=9).responses
    found = SpectralRasch().fit(data).analyse(data).dif(np.arange(400) % 2)
    assert np.isnan(found.contrasts["mh_delta"]).all()
    assert "not_matched" in [f.code for f in found.findings]
    assert np.isfinite(found.contrasts["z"]).all()


# -------------------------------------------------------------------------------------- bad groups


def test_bad_groups():
    data, groups = two_groups((200, 200), 6, seed=10)
    fit = SpectralRasch().fit(data)
    with pytest.raises(DesignError, match="the groups have a single level, 'x'"):
        fit.analyse(data).dif(["x"] * 400)
    with pytest.raises(DesignError, match="no level at all, only missing values"):
        fit.analyse(data).dif([None] * 400)
    with pytest.raises(OptionError, match="the groups are 399 labels, and the data has 400 people"):
        fit.analyse(data).dif(groups[1:])
    few = np.where(np.arange(400) < 380, "many", "few")
    with pytest.raises(DesignError, match=r"fewer than 30 people .* in 'few' \(\d+\), which leaves 1 of 2 groups"):
        fit.analyse(data).dif(few)
    with pytest.raises(OptionError, match="`reference` is 'z'; the groups are 'g0', 'g1'"):
        fit.analyse(data).dif(groups, reference="z")
    with pytest.raises(OptionError, match="99 not among the items compared"):
        fit.analyse(data).dif(groups, anchors=[99])
    with pytest.raises(OptionError, match="`anchors` is 'some'"):
        fit.analyse(data).dif(groups, anchors="some")
    with pytest.raises(OptionError, match="`level` is 5"):
        fit.analyse(data).dif(groups, level=5)


def test_small_groups_and_users_without_one_are_told():
    data, groups = two_groups((200, 200), 6, seed=11)
    labels = groups.astype(object)
    labels[:10] = "tiny"
    labels[10:15] = None
    found = SpectralRasch().fit(data).analyse(data).dif(labels)
    codes = {f.code: f.sentence for f in found.findings}
    assert "5 of 400 people are in no group" in codes["persons_without_group"]
    assert "'tiny' (" in codes["small_groups"]
    assert found.groups.names == ("g0", "g1")
    by_person = dict(enumerate(labels))
    np.testing.assert_array_equal(
        SpectralRasch().fit(data).analyse(data).dif(by_person).contrasts["z"], found.contrasts["z"]
    )


# ------------------------------------------------------------------------------------ size and power


@pytest.mark.slow
@pytest.mark.parametrize("mean", [0.0, -0.8])
def test_size(mean):
    single, matched, any_holm, joint = [], [], [], []
    for seed in range(200):
        data, groups = two_groups((500, 400), 15, seed=seed, mean=mean)
        found = SpectralRasch().fit(data).analyse(data).dif(groups, nonuniform=False)
        single.append(np.mean(found.contrasts["p"] < 0.05))
        matched.append(np.mean(found.contrasts["mh_p"] < 0.05))
        any_holm.append((found.contrasts["p_holm"] < 0.05).any())
        joint.append(found.test.p < 0.05)
    assert 0.03 <= np.mean(single) <= 0.07
    assert 0.02 <= np.mean(matched) <= 0.06  # the continuity correction is cautious
    assert np.mean(any_holm) <= 0.1  # 1,500 samples had 5.9%; 200 of them spread by 1.6%
    assert 0.02 <= np.mean(joint) <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize("design", ["4 of 20", "4 of 20; booklets; abler by 1"])
def test_items_that_do_not_differ_are_not_blamed_for_those_that_do(design, monkeypatch):
    """benchmarks/differential.py with fewer replicates: 25 x 16 clean items, a standard error of 1.1% or so."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "benchmarks"))
    found = importlib.import_module("differential").study(design, 500, 25)
    assert found["clean"] < 0.085
    assert found["clean, all"] > 0.1  # what centering on all items does
    assert found["power"] > 0.85
    assert found["named"] > 0.65
    assert 0.02 < found["interaction"] < 0.09


@pytest.mark.slow
def test_a_row_that_is_flagged_is_named():
    """Against the reference alone a difference may be sure that is none over all groups taken together."""
    data = simulate.rasch(1200, 10, seed=3)
    groups = np.arange(1200) % 6
    table = data.responses.to_dense()
    rng = np.random.default_rng(0)
    table[groups == 5, 4] = np.where(rng.random(200) < 0.2, 1 - table[groups == 5, 4], table[groups == 5, 4])
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(6)
        found = SpectralRasch(regularization=0).fit(table).analyse(table).dif(order[groups], nonuniform=False)
        rows = {item for item, flag in zip(found.contrasts["item"], found.contrasts["flagged"], strict=True) if flag}
        said = next((one for one in found.findings if one.code == "differential_items"), None)
        assert rows <= set(said.items if said else ())


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
        table = rng.random((2 * n, m)) < sigmoid(logit)
        if ordered:
            table = table + (table & (rng.random((2 * n, m)) < sigmoid(logit - 1)))
            data = Responses.from_wide(table.astype(float), ordered=True)
            study = SpectralPartialCredit().fit(data).analyse(data)
        else:
            data = Responses.from_wide(table.astype(float))
            study = SpectralRasch().fit(data).analyse(data)
        found = study.dif(groups, nonuniform=False)
        assert np.sum((found.items["class"] != "A") & (found.items["p_bh"] < 0.05)) > 2
        assert found.items["item"][found.items["flagged"]].tolist() == ([found.items["item"][3]] if differ else [])
        assert "differences_by_slope" in {finding.code for finding in found.findings}


# ------------------------------------------------------------------------------------------ thresholds


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
    halves = [
        simulate.partial_credit(
            800, thresholds=list(beta), ability=ability[group == label], seed=seed
        ).responses.to_dense()
        for seed, (label, beta) in enumerate((("a", thresholds), ("b", moved)))
    ]
    table = np.empty((1600, 10))
    table[group == "a"], table[group == "b"] = halves
    frame = pl.DataFrame({f"q{k + 1}": table[:, k].astype(int) for k in range(10)})
    answers = Responses.from_wide(frame, ordered=True)
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
    assert {"differential_items", "threshold_dif"} <= {one.code for one in found.findings}


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
