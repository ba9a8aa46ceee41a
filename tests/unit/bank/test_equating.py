"""Equated scores against root finding, their gradients against differences, their errors against simulation."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

import spectral_irt as si
from drawn import drawn
from spectral_irt import simulate
from spectral_irt.errors import BankError, OptionError
from spectral_irt.inference.scores.equating import equate_forms, equate_scores
from spectral_irt.joint_errors import JointErrors
from spectral_irt.model import sigmoid


def by_roots(first, second, shift=0.0, slope=1.0):
    """The equated scores between nothing and everything right."""
    theta = [brentq(lambda t, s=s: sigmoid(t - first).sum() - s, -40, 40, xtol=1e-13) for s in range(1, len(first))]
    return np.array([sigmoid(shift + slope * t - second).sum() for t in theta])


COMMON, ONLY_A, ONLY_B = 8, 10, 14
RNG = np.random.default_rng(1)
A = RNG.normal(size=COMMON + ONLY_A)
B = np.concatenate([A[:COMMON], RNG.normal(0.5, 1, ONLY_B)])
NAMES_A = [f"c{k}" for k in range(COMMON)] + [f"a{k}" for k in range(ONLY_A)]
NAMES_B = [f"c{k}" for k in range(COMMON)] + [f"b{k}" for k in range(ONLY_B)]


def answers(beta, names, mean, people, rng):
    return si.Responses.from_wide(drawn(rng, rng.normal(mean, 1, (people, 1)) - beta), items=names)


def two_fits(seed, people=600):
    rng = np.random.default_rng(seed)
    data = answers(A, NAMES_A, 0.0, people, rng), answers(B, NAMES_B, 0.6, people, rng)
    return data, tuple(si.SpectralRasch().fit(each) for each in data)


def test_scores_are_those_of_root_finding_there_and_back():
    found = equate_scores(A, B, -0.3, 1.2)
    np.testing.assert_allclose(found.equated[1:-1], by_roots(A, B, -0.3, 1.2), atol=1e-6)
    assert (found.equated[0], found.equated[-1]) == (0, len(B))
    assert (np.diff(found.equated) > 0).all()
    forth, back = equate_scores(A, B, -0.3, 1.0), equate_scores(B, A, 0.3, 1.0)
    at = np.interp(forth.equated, np.arange(len(B) + 1), back.equated)  # between whole scores, nearly
    np.testing.assert_allclose(at, np.arange(len(A) + 1), atol=0.05)
    np.testing.assert_allclose(equate_scores(A, A).equated, np.arange(len(A) + 1), atol=1e-6)


def slopes(function, forms, which, h):
    """The derivatives of function(*forms) by the difficulties of one of the forms, by differences."""
    found = []
    for k in range(len(forms[which])):
        sides = []
        for sign in (1, -1):
            moved = [form.copy() for form in forms]
            moved[which][k] += sign * h
            sides.append(function(*moved))
        found.append((sides[0] - sides[1]) / (2 * h))
    return np.array(found)


def test_gradients_are_differences():
    found = equate_scores(A, B, -0.3, 1.2)
    for which, gradient in ((0, found.by_first), (1, found.by_second)):
        expected = slopes(lambda a, b: by_roots(a, b, -0.3, 1.2), (A, B), which, 1e-5)
        np.testing.assert_allclose(gradient[1:-1].T, expected, atol=1e-5)


def test_two_banks_agree_with_root_finding_on_the_linked_scale():
    data, (a, b) = two_fits(5)
    for method in ("mean", "robust"):
        found = si.equate(a, b, method)
        on_a = si.link(a, b, method).shift + b.difficulty_
        np.testing.assert_allclose(found.equated[0][1:-1], by_roots(a.difficulty_, on_a), atol=1e-6)
        np.testing.assert_allclose(found.equated[1][1:-1], by_roots(on_a, a.difficulty_), atol=1e-6)
    banks = [fit.analyse(each).to_bank() for fit, each in zip((a, b), data, strict=True)]
    kept, whole = si.equate(*banks), si.equate(a, b)
    np.testing.assert_allclose(kept.equated[0], whole.equated[0], atol=1e-6)
    np.testing.assert_allclose(kept.se[0][1:-1] / whole.se[0][1:-1], 1, atol=0.15)  # under the model, and robust


def test_errors_are_the_delta_method_over_both_calibrations():
    """The variance by brute force: the whole chain of link and equating, differentiated item by item."""
    _, (a, b) = two_fits(6)
    found = si.equate(a, b, "mean")
    link = si.link(a, b, "mean")
    common_a = [NAMES_A.index(name) for name in link.item]
    common_b = [NAMES_B.index(name) for name in link.item]

    def whole(x, y):
        return by_roots(x, y + (x[common_a] - y[common_b]).mean())

    x, y = a.difficulty_, b.difficulty_
    variance = link.excess**2 / len(common_a) * (equate_scores(x, y, -link.shift).by_ability[1:-1]) ** 2
    for which, covariance in ((0, a.covariance()), (1, b.covariance())):
        g = slopes(whole, (x, y), which, 1e-4)
        variance += np.einsum("is,ij,js->s", g, covariance, g)
    np.testing.assert_allclose(found.se[0][1:-1], np.sqrt(variance), rtol=1e-3)


@pytest.mark.slow
def test_errors_are_those_of_repeated_samples():
    """80 pairs of samples. The scores of a table are off together, so that the ratio of standard deviations has the
    error of a single one, 8%, and coverage 2.4%: three of each. Where the common items seem to differ by chance, as in
    one sample of twenty, that goes into the errors too; here it is left out."""
    truth, estimates, errors = by_roots(A, B), [], []
    for seed in range(80):
        a, b = two_fits([9, seed], people=500)[1]
        found = si.equate(a, b, linked=replace(si.link(a, b, "mean"), excess=0.0))
        estimates.append(found.equated[0][1:-1])
        errors.append(found.se[0][1:-1])
    ratio = np.mean(errors, axis=0) / np.std(estimates, axis=0, ddof=1)
    assert ratio.mean() == pytest.approx(1, abs=0.24)
    inside = np.abs(np.array(estimates) - truth) < 1.96 * np.array(errors)
    assert inside.mean() == pytest.approx(0.95, abs=0.072)


def test_ends_are_by_convention_and_forms_may_be_some_of_the_items():
    data, (a, b) = two_fits(8)
    columns = si.equate(a, b).columns()
    n, m = len(A), len(B)
    assert columns["score"].tolist() == [*range(n + 1), *range(m + 1)]
    assert columns["from"].tolist() == ["A"] * (n + 1) + ["B"] * (m + 1)
    ends = [0, n, n + 1, n + m + 1]
    assert columns["equated"][ends].tolist() == [0, m, 0, n]
    assert np.isinf(columns["ability"][ends]).all()
    assert np.flatnonzero(np.isnan(columns["se"])).tolist() == ends
    found = si.equate(a, b, items_a=NAMES_A[5:15], items_b=NAMES_B[:12])
    expected = by_roots(a.difficulty_[5:15], si.link(a, b).shift + b.difficulty_[:12])
    np.testing.assert_allclose(found.equated[0][1:-1], expected, atol=1e-6)
    for options, words in (({"items_a": ["zz"]}, "'zz'"), ({"items_b": ["c0", "c0"]}, "more than once")):
        with pytest.raises(OptionError, match=words):
            si.equate(a, b, **options)
    with pytest.raises(BankError, match="share 0 items"):
        si.equate(a, si.SpectralRasch().fit(np.random.default_rng(0).integers(0, 2, (50, 5))))
    without = si.equate(*(si.SpectralRasch(se="none").fit(each) for each in data))
    assert np.isnan(without.se[0]).all()
    assert np.isfinite(without.equated[0]).all()


def test_forms_of_one_calibration_share_its_errors():
    """Booklets of one analysis: the joint covariance, by differences; a form is itself without any error."""
    rng = np.random.default_rng(2)
    table = drawn(rng, rng.normal(size=(300, 1)) - np.linspace(-1, 1, 12))
    table[:150, 8:], table[150:, :4] = np.nan, np.nan
    study = si.SpectralRasch().fit(table).analyse(table)
    found = study.equate("form 1", "form 2")
    beta, covariance = study.calibration.difficulty, study.location_covariance()
    np.testing.assert_allclose(found.equated[0][1:-1], by_roots(beta[:8], beta[4:]), atol=1e-6)
    g = slopes(lambda b: by_roots(b[:8], b[4:]), (beta,), 0, 1e-4)
    np.testing.assert_allclose(found.se[0][1:-1], np.sqrt(np.einsum("is,ij,js->s", g, covariance, g)), rtol=1e-3)
    by_labels = study.equate(range(8), range(4, 12))
    np.testing.assert_allclose(by_labels.se[0][1:-1], found.se[0][1:-1])
    assert found.table().columns == ["from", "to", "score", "equated", "se", "ability"]
    same = equate_forms(beta, JointErrors.dense(covariance), np.arange(8), np.arange(8))
    assert np.nan_to_num(same.se[0]).max() < 1e-6
    with pytest.raises(OptionError, match="there is no 'form 3'"):
        study.equate("form 1", "form 3")


def equated_by_roots(thresholds, first, second, size):
    """Expected scores on the second form where the first expects 1, 2, ..., items with `size` thresholds each."""

    def expected(items, theta):
        total = np.zeros_like(theta)
        for item in items:
            own = thresholds[item * size : (item + 1) * size]
            k = np.arange(size + 1)
            p = np.exp(np.multiply.outer(theta, k) - np.concatenate([[0.0], np.cumsum(own)]))
            total += (p / p.sum(axis=-1, keepdims=True)) @ k
        return total

    scores = range(1, len(first) * size)
    low, high = (np.full(len(scores), end) for end in (-15.0, 15.0))
    for _ in range(80):
        middle = (low + high) / 2
        below = expected(first, middle) < np.array(scores)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return expected(second, low)


@pytest.mark.parametrize("clusters", [False, True])
def test_forms_of_ordered_answers_share_the_errors_of_their_thresholds(clusters):
    """The delta method by differences, with the whole covariance of the thresholds."""
    data = simulate.rating_scale(400, 6, categories=4, seed=1).responses
    fit = si.SpectralPartialCredit().fit(data)
    study, covariance = fit.analyse(data), fit.covariance()
    if clusters:
        study = study.clustered(np.arange(400) // 4)
        assert study.threshold_covariance().shape == (18, 18)
        covariance = study.threshold_covariance()
        np.testing.assert_allclose(np.sqrt(np.diag(covariance)), study.calibration.threshold_se)
    found = study.equate([0, 1, 2], [3, 4, 5])
    beta, step = fit.thresholds_, 1e-5
    slope = np.array(
        [
            (
                equated_by_roots(beta + step * (np.arange(18) == k), [0, 1, 2], [3, 4, 5], 3)
                - equated_by_roots(beta - step * (np.arange(18) == k), [0, 1, 2], [3, 4, 5], 3)
            )
            / (2 * step)
            for k in range(18)
        ]
    )
    np.testing.assert_allclose(found.equated[0][1:-1], equated_by_roots(beta, [0, 1, 2], [3, 4, 5], 3), atol=1e-6)
    se = np.sqrt(np.einsum("ks,kl,ls->s", slope, covariance, slope))
    np.testing.assert_allclose(found.se[0][1:-1], se, rtol=1e-4)


def test_a_form_has_each_item_once_and_with_a_difficulty():
    table = np.random.default_rng(1).integers(0, 2, (100, 6)).astype(float)
    table[:, 5] = 1.0  # answered right by everybody
    study = si.SpectralRasch(regularization=0).fit(table).analyse(table)
    with pytest.raises(OptionError, match="without a difficulty: 5"):
        study.equate([0, 1, 5], [2, 3])
    with pytest.raises(OptionError, match="more than once"):
        study.equate([0, 1], [2, 3, 3])
    with pytest.raises(OptionError, match="unknown items 9"):
        study.equate([0, 9], [2, 3])


@pytest.mark.parametrize(("n_items", "categories"), [(12, 4), (20, 5)])
def test_without_a_covariance_thresholds_of_one_item_err_together(n_items, categories):
    """Standard errors alone, as a bank's calibration has them: near those of the whole covariance, and above; taken for
    independent they are 1.3 times as large."""
    data = simulate.rating_scale(600, n_items, categories=categories, seed=3).responses
    fit = si.SpectralPartialCredit().fit(data)
    forms = list(range(n_items // 2)), list(range(n_items // 2, n_items))
    whole = fit.analyse(data).equate(*forms).se[0][1:-1]
    alone = si.Analysis(fit.calibration_.replace(threshold_covariance=None), data).equate(*forms).se[0][1:-1]
    assert np.median(alone / whole) < 1.2
    assert np.min(alone / whole) > 0.95
