"""What decides on dependent pairs and second dimensions: rules on made-up evidence, and sums by plain loops."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import spectral_irt as si
from spectral_irt.data.block import Thresholds
from spectral_irt.inference.dimensions import dimensionality as module
from spectral_irt.inference.dimensions import evidence as tests
from spectral_irt.inference.dimensions import unequal_slopes
from spectral_irt.inference.dimensions.contrast import Contrasts
from spectral_irt.inference.dimensions.dimensionality import Dimensionality, _sample
from spectral_irt.inference.dimensions.evidence import (
    BothTests,
    ContrastTest,
    affordable_draws,
    contrast_in_other_half,
    contrast_strength,
    first_eigenvector,
    judge_by_normal,
)
from spectral_irt.inference.dimensions.findings import only_above
from spectral_irt.inference.dimensions.local_dependence import LocalDependence, PairTest
from spectral_irt.inference.dimensions.pairs import HalfOfPeople, PairSums, pair_sums, with_gaps
from spectral_irt.inference.dimensions.unequal_slopes import (
    allowing_for_slopes,
    is_of_pairs,
    judge_by_normal_with_slopes,
)

FIRST, SECOND = np.triu_indices(6, 1)
LABELS = np.array(list("abcdef"), dtype=object)


def evidence_of(p_pairs, q3=0.1):
    """Of six items, the p-values of some pairs, 1 of the others, and their Q3."""
    p = np.ones(15)
    matrix = np.eye(6)
    for (one, other), value in p_pairs.items():
        p[(one == FIRST) & (other == SECOND)] = value
        matrix[one, other] = matrix[other, one] = q3
    return LocalDependence(
        items=LABELS,
        matrix=matrix,
        n=np.full((6, 6), 100),
        first=FIRST,
        second=SECOND,
        test=PairTest(-np.log(p), p, np.full(15, 0.1), 3.0, p_alone=p),
        p_slopes=np.full(15, np.nan),
        dependent=p < 0.01,
        q3_star_critical=0.3,
        draws=199,
        frame_kind=None,
    )


def result_of(p_pairs, contrast_p, strength=2.5, q3=0.4, loadings=(0.9, 0.8, 0.7, -0.7, -0.8, -0.9)):
    contrasts = Contrasts(LABELS, np.array([3.2, 1.0]), np.array([loadings, loadings]).T, 2.0, contrast_p, {})
    pairs = evidence_of(p_pairs, q3)
    return Dimensionality(LABELS, 100, pairs, contrasts, float(pairs.test.p.min()), contrast_p, strength, False)


def judged(result, slopes_p_pairs, slopes_contrast_p, slope, monkeypatch):
    again = BothTests(evidence_of(slopes_p_pairs).test, slopes_contrast_p)
    monkeypatch.setattr(unequal_slopes, "slope_model", lambda some: SimpleNamespace(slope=np.array(slope)))
    monkeypatch.setattr(unequal_slopes, "judge_by_draws_with_slopes", lambda *each: again)
    evidence = SimpleNamespace(table=SimpleNamespace(responses=None))
    return allowing_for_slopes(evidence, result, SimpleNamespace())


def test_a_pair_that_slopes_do_not_explain_keeps_its_p_value(monkeypatch):
    """Significant at 1%, and at 5% beside slopes; the p-value of a pair that these explain is the larger one."""
    result = result_of({(0, 1): 0.002, (2, 3): 0.004, (4, 5): 0.02}, 0.5)
    found = judged(result, {(0, 1): 0.04, (2, 3): 0.06, (4, 5): 0.01}, 0.9, [0.5, 1.5], monkeypatch)
    assert found.dependent
    dependence = found.dependence
    assert [*zip(FIRST[dependence.dependent], SECOND[dependence.dependent], strict=True)] == [(0, 1)]
    told = {(0, 1): 0.04, (2, 3): 0.06}
    for one, other, p in zip(FIRST, SECOND, dependence.p_slopes, strict=True):
        assert p == pytest.approx(told.get((one, other), np.nan), nan_ok=True)
    assert found.pairs_p == 0.002
    assert found.equal_slopes == (0.5, 2)
    assert found.slopes == (0.5, 1.5)
    assert (found.contrast, found.two_dimensions, found.by_slopes) == (False, False, False)
    assert found.contrast_p == 0.9
    (finding,) = found.findings
    assert (finding.code, finding.severity, finding.items) == ("dependent_items", "warning", ("a", "b"))
    assert "1 pair of items (residual correlation Q3 = 0.40)" in finding.sentence


def test_several_dependent_pairs_are_named_as_groups(monkeypatch):
    pairs = {(0, 1): 0.001, (1, 2): 0.002, (3, 4): 0.003}
    found = judged(result_of(pairs, 0.5), pairs, 0.9, [0.5, 1.5], monkeypatch)
    (finding,) = found.findings
    assert finding.items == ("a", "b", "c", "d", "e")
    assert "3 pairs of items, in 2 groups (residual correlations up to Q3 = 0.40)" in finding.sentence
    apart_from_each_other = {(0, 1): 0.001, (3, 4): 0.003}
    found = judged(result_of(apart_from_each_other, 0.5), apart_from_each_other, 0.9, [0.5, 1.5], monkeypatch)
    assert "in 2 pairs of items (residual correlations up to" in found.findings[0].sentence


@pytest.mark.parametrize(
    ("slopes_p", "slope", "severity"), [(0.2, [0.4, 1.5], "warning"), (0.2, [0.8, 1.5], "note"), (0.04, None, None)]
)
def test_a_contrast_that_slopes_explain_is_no_dimension(slopes_p, slope, severity, monkeypatch):
    found = judged(result_of({}, 0.005), {}, slopes_p, slope or [0.5, 1.5], monkeypatch)
    assert found.contrast == found.two_dimensions == (slope is None)
    assert found.by_slopes == (slope is not None)
    assert found.contrast_p == (0.005 if slope is None else slopes_p)
    (finding,) = found.findings
    if slope is None:
        assert (finding.code, finding.severity) == ("second_dimension", "warning")
        assert "with an eigenvalue of 3.2 items (cross-validated 2.5)" in finding.sentence
        assert "'a', 'b', 'c', 'd', 'e' on one side" in finding.sentence
        assert "'f', 'e', 'd', 'c', 'b' on the other" in finding.sentence
        weak = judged(result_of({}, 0.005, strength=1.9), {}, slopes_p, [0.5, 1.5], monkeypatch)
        assert weak.findings[0].severity == "note"
    else:
        assert (finding.code, finding.severity) == ("unequal_slopes", severity)
        assert f"from {slope[0]:.1f} to 1.5 times the mean slope" in finding.sentence
        assert "a contrast in the residuals" in finding.sentence
        assert "residual correlations of" not in finding.sentence


def test_pairs_that_slopes_explain_are_counted(monkeypatch):
    found = judged(result_of({(0, 1): 0.002, (2, 4): 0.003}, 0.4), {}, 0.3, [0.3, 2.0], monkeypatch)
    assert (found.dependent, found.contrast, found.by_slopes) == (False, False, True)
    assert found.pairs_p == 1
    (finding,) = found.findings
    assert "explains residual correlations of 2 pairs of items" in finding.sentence


def test_a_contrast_of_few_items_is_that_of_their_dependence():
    """1 / sum of the squared shares of the squared loadings: by how many items it is; below four, that of the pair."""
    dependent = (FIRST == 0) & (SECOND == 1)
    nobody = np.zeros(15, dtype=bool)
    few = np.array([1.0, 1.0, 1.0, 0.3, 0.0, 0.0])
    assert 3 < 1 / np.sum((few**2 / np.sum(few**2)) ** 2) < 4
    assert is_of_pairs(few, FIRST, SECOND, dependent)
    assert not is_of_pairs(few, FIRST, SECOND, nobody)
    # Five items or so; but the two of the pair have more than half of it, or less.
    many = np.array([1.2, 1.2, 0.8, 0.8, 0.7, 0.7])
    assert 1 / np.sum((many**2 / np.sum(many**2)) ** 2) > 4
    assert np.sum(many[:2] ** 2) > 0.5 * np.sum(many**2)
    assert is_of_pairs(many, FIRST, SECOND, dependent)
    assert not is_of_pairs(many[::-1], FIRST, SECOND, dependent)
    four = np.isin(FIRST, [0, 2]) & (SECOND == FIRST + 1)  # four items, which is no pair or three
    assert not is_of_pairs(many, FIRST, SECOND, four)


def test_as_many_draws_as_take_half_a_second():
    """A response costs as much as 50 products of residuals; eigenvalues come besides."""
    for people, items in ((100, 10), (500, 40), (700, 60), (4000, 30), (50_000, 100)):
        work = people * (50 * items + items**2) + items**3
        affordable = int(3e9 / work)
        assert affordable_draws(people, items) == (0 if affordable < 200 else min(affordable, 1000))
    assert affordable_draws(100, 10) == 1000
    assert 200 <= affordable_draws(1000, 60) < 1000


def test_a_contrast_of_one_half_is_judged_in_the_other():
    """p of d' S d over the squares of what each person adds; strength 1 + v' R v, of the direction the first found."""
    data = si.simulate.rasch(120, 5, seed=3)
    half = np.arange(120) % 2
    one, other = pair_sums(data.responses, with_gaps(data.difficulty), half)
    shared, variance, scale, _ = one.sums
    z = np.array([[shared[i, j] / np.sqrt(variance[i, j]) if i != j else 0.0 for j in range(5)] for i in range(5)])
    vectors = np.linalg.eigh(z)[1]
    vector = vectors[:, -1] * np.sign(np.sum(vectors[:, -1] ** 3))
    np.testing.assert_allclose(first_eigenvector(z), vector)
    direction = vector / np.sqrt(np.diag(scale))
    (part,) = other.residuals.parts
    squares = 0.0
    for e, v, seen in zip(part.e, part.v, part.answered, strict=True):
        c = np.sqrt(v) * 0.5
        for _ in range(200):  # c_i times the sum of the others is the variance
            c = v / np.maximum(c.sum() - c, 1e-12) * 0.5 + 0.5 * c
        each = sum(
            (e[i] * e[j] + c[i] * c[j]) * direction[i] * direction[j]
            for i in range(5)
            for j in range(5)
            if i != j and seen[i] and seen[j]
        )
        squares += each**2
    sum_along = direction @ other.sums.shared @ direction
    for factor in (1.0, 2.0):
        p, strength = contrast_in_other_half(one.sums, other, factor)
        assert p == pytest.approx(stats.norm.sf(sum_along / np.sqrt(factor * squares)), rel=2e-3)
    r = np.clip(other.sums.shared / other.sums.scale, -1, 1)
    assert strength == pytest.approx(1 + vector @ r @ vector)


def test_people_and_items_that_are_looked_at(monkeypatch):
    """Those with a mixed score, drawn where they are more than wanted; of many items those answered most."""
    rng = np.random.default_rng(1)
    x = si.simulate.rasch(80, 7, seed=2).responses.to_dense()
    x[rng.random(x.shape) < 0.1] = np.nan
    x[:30, 2] = np.nan
    x[:20, 5] = np.nan
    calibration = si.SpectralRasch().fit(x).calibration_
    responses = si.Responses.from_wide(x)
    everyone, beta, fewer = _sample(calibration, responses, 80, 0)
    assert not fewer
    total, n = np.nansum(x, axis=1), np.sum(~np.isnan(x), axis=1)
    assert everyone.n_persons == np.sum((total > 0) & (total < n))
    np.testing.assert_array_equal(beta, calibration.difficulty)
    some, _, fewer = _sample(calibration, responses, 50, 0)
    assert fewer
    assert some.n_persons == 50
    monkeypatch.setattr(module, "MOST_ITEMS", 5)
    some, beta, fewer = _sample(calibration, responses, 80, 0)
    assert fewer
    kept = [0, 1, 3, 4, 6]
    np.testing.assert_array_equal(beta, calibration.difficulty[kept])
    y = x[:, kept]
    total, n = np.nansum(y, axis=1), np.sum(~np.isnan(y), axis=1)
    assert some.n_persons == np.sum((total > 0) & (total < n))


def test_what_would_not_be_seen_is_said_above_a_residual_correlation_of_two_fifths():
    assert only_above(0.41) == "; only residual correlations above 0.4 would be seen"
    assert only_above(0.39) == ""


def halves_of(sums, residuals=(None, None)):
    """Two halves of people with these sums, halves x 4 x items x items."""
    return tuple(HalfOfPeople(people, PairSums(*of_half)) for people, of_half in zip(residuals, sums, strict=True))


def test_sums_of_large_samples_allow_for_slopes_by_what_draws_from_a_model_with_slopes_share(monkeypatch):
    """The mean of what pairs share in the draws is taken off, and its error is in the variances."""
    rng = np.random.default_rng(2)
    sums = rng.uniform(1, 2, (2, 4, 5, 5))
    draws = rng.normal(size=(3, 2, 4, 5, 5))
    evidence = SimpleNamespace(
        halves=halves_of(sums),
        half="the halves",
        table=SimpleNamespace(thresholds=np.zeros(5), responses=SimpleNamespace(thresholds=Thresholds.ones(5))),
    )
    seen = []
    monkeypatch.setattr(unequal_slopes, "tables_with_slopes", lambda *each: iter(range(3)))
    monkeypatch.setattr(unequal_slopes, "pair_sums", lambda k, beta, half: halves_of(draws[k]))
    monkeypatch.setattr(unequal_slopes, "judge_by_normal", lambda *each: seen.append(each))
    judge_by_normal_with_slopes(evidence, None)
    ((told, halves, factor),) = seen
    assert told is evidence
    assert factor == pytest.approx(4 / 3)
    adjusted = np.array([half.sums for half in halves])
    np.testing.assert_allclose(adjusted[:, 0], sums[:, 0] - (draws[0, :, 0] + draws[1, :, 0] + draws[2, :, 0]) / 3)
    np.testing.assert_allclose(adjusted[:, 1], sums[:, 1] * 4 / 3)
    np.testing.assert_array_equal(adjusted[:, 2:], sums[:, 2:])


def test_large_samples_are_judged_over_both_halves_and_contrasts_by_either(monkeypatch):
    """Twice the smaller p-value, for asking twice."""
    sums = np.random.default_rng(3).uniform(1, 2, (2, 4, 3, 3))
    first, second = np.triu_indices(3, 1)
    halves = halves_of(sums, ("one", "other"))
    evidence = SimpleNamespace(halves=halves, first=first, second=second)
    p = {"one": 0.2, "other": 0.004}

    def contrast(found, tested, variance_factor=1.0):
        return ContrastTest(p[tested.residuals], found.shared[0, 0])

    monkeypatch.setattr(tests, "contrast_in_other_half", contrast)
    found = judge_by_normal(evidence, halves)
    assert found.contrast_p == 0.008
    shared, variance, _, n = sums[0] + sums[1]
    np.testing.assert_allclose(found.pairs.z, shared[first, second] / np.sqrt(variance[first, second]))
    np.testing.assert_allclose(found.pairs.sd, n[first, second] ** -0.5)
    p["one"] = 0.001
    assert judge_by_normal(evidence, halves).contrast_p == 0.002
    p |= {"one": 0.6, "other": 0.7}
    assert judge_by_normal(evidence, halves).contrast_p == 1
    assert contrast_strength(evidence) == pytest.approx((sums[0, 0, 0, 0] + sums[1, 0, 0, 0]) / 2)
