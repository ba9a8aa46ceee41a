"""Recursion, tree and contour sum against enumeration of all answers; then at lengths that no enumeration reaches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dense_ordered import conditional
from spectral_irt.conditional import exact
from spectral_irt.conditional.exact import Contour, by_fewer_steps, chances, given_every_score, rough_tilt
from spectral_irt.conditional.exact_likelihood import pair_factors
from spectral_irt.data.block import Thresholds

CASES = {
    "one right or wrong": [[0.3]],
    "one item": [[0.3, -0.2, 1.0]],
    "two items": [[-1.0], [0.5]],
    "right and wrong": [[-1.0], [0.5], [0.0], [2.0], [-0.3]],
    "right and wrong, far apart": [[-15.0], [15.0], [-14.0], [14.0], [0.0], [0.5]],
    "unequal categories": [[-0.5, 0.7], [0.2], [-1.0, -0.2, 1.1], [0.0, 0.4]],
    "ordered, far apart": [[-15.0, 15.0], [5.0], [-14.0, 6.0, 15.0]],
    "disordered": [[15.0, -15.0], [3.0, -3.0, 0.0], [0.0]],
    "factors that vanish": [[0.0, 0.0, 0.0]] * 4,
}


def columns(thresholds, scores, padding=2):
    """`cumulated` of one set of items, a column for each score, with items that nobody answered below."""
    steps = Thresholds(np.array([len(own) for own in thresholds]))
    sums = steps.cumulated(np.concatenate(thresholds))[:, 1:].T
    sums = np.concatenate([sums, np.full((len(sums), padding), np.inf)], axis=1)
    return np.repeat(sums[:, :, None], len(scores), axis=2), np.full(len(scores), steps.n_entries)


def enumerated(thresholds, score, width):
    """P(X_i = c | s) for c = 1, 2, ..., P(X_i >= c, X_j >= c' | s), and log gamma."""
    x, p = conditional(thresholds, score)
    n = len(thresholds)
    each = np.array([[p[x[:, i] == c].sum() for i in range(n)] for c in range(1, width + 1)])
    passed = (x[:, :, None] >= np.arange(1, width + 1)).reshape(len(x), -1).astype(float)
    weight = [np.exp(-sum(sum(own[:c]) for own, c in zip(thresholds, row, strict=True))) for row in x]
    return each, (passed * p[:, None]).T @ passed, np.log(sum(weight))


@pytest.mark.parametrize("name", CASES)
def test_all_agree_with_enumeration(name):
    thresholds = CASES[name]
    n, most = len(thresholds), sum(len(own) for own in thresholds)
    scores = np.arange(1, most)
    if not len(scores):
        return
    cumulated, high = columns(thresholds, scores)
    width = len(cumulated)
    sums = Contour.of(cumulated, scores, high)
    contour = sums.given
    theta = rough_tilt(cumulated, scores, high)[0]
    start = chances(theta, cumulated)
    recursion, total = by_fewer_steps(start, cumulated, scores, high)
    tree = given_every_score(cumulated[:, :n, 0])
    real, imaginary = pair_factors(sums)
    other = ~np.kron(np.eye(n, dtype=bool), np.ones((width, width), dtype=bool))
    for k, score in enumerate(scores):
        each, pairs, log = enumerated(thresholds, score, width)
        for found in (contour.p[:, :n, k], recursion[:, :n, k], tree.p[:, :, k]):
            np.testing.assert_allclose(found, each, rtol=0, atol=2e-13)
        assert np.all(contour.p[:, n:, k] < 1e-300)
        assert np.all(recursion[:, n:, k] < 1e-300)
        b, c = (part[k, :n].reshape(n * width, -1) for part in (real, imaginary))
        np.testing.assert_allclose((b @ b.T - c @ c.T)[other], pairs[other], rtol=0, atol=2e-13)
        by_recursion = np.log(total[k]) - np.log(start[0, :, k]).sum() - score * theta[k]
        for found in (contour.log_gamma[k], tree.log_gamma[k], by_recursion):
            assert abs(found - log) < 1e-11 * max(1, abs(log))


@pytest.mark.parametrize("padding", [0, 3])
def test_right_and_wrong_are_the_case_of_one_threshold(padding):
    """The same items with a second category that nobody can reach: the general way, and the same numbers."""
    rng = np.random.default_rng(4)
    for n, sd in ((2, 1.0), (7, 3.0), (40, 1.0), (40, 8.0)):
        scores = np.arange(1, n)
        beta = np.concatenate([rng.normal(0, sd, n), np.full(padding, np.inf)])
        one = np.repeat(beta[None, :, None], n - 1, axis=2)
        two = np.concatenate([one, np.full_like(one, np.inf)])
        most = np.full(n - 1, n)
        short, long = Contour.of(one, scores, most), Contour.of(two, scores, most)
        np.testing.assert_allclose(long.given.p[0], short.given.p[0], rtol=0, atol=1e-13)
        np.testing.assert_allclose(long.given.log_gamma, short.given.log_gamma, rtol=1e-13, atol=1e-12)
        for a, b in zip(pair_factors(short), pair_factors(long), strict=True):
            assert a.shape[:3] == (n - 1, n + padding, 1)
            assert b.shape[:3] == (n - 1, n + padding, 2)
        theta = rough_tilt(one, scores, most)[0]
        ways = (by_fewer_steps(chances(theta, each), each, scores, most) for each in (one, two))
        for a, b in zip(*ways, strict=True):
            np.testing.assert_allclose(b[0], a[0], rtol=0, atol=1e-13)
        few, many = given_every_score(one[:, :n, 0]), given_every_score(two[:, :n, 0])
        np.testing.assert_allclose(many.p[0], few.p[0], rtol=0, atol=1e-13)
        np.testing.assert_allclose(many.log_gamma, few.log_gamma, rtol=1e-13, atol=1e-12)


def test_missing_answers_and_unequal_lengths_side_by_side():
    sets = [CASES["unequal categories"], CASES["ordered, far apart"], CASES["two items"]]
    tables = [columns(each, [1], padding=4 - len(each))[0] for each in sets]
    cumulated = np.full((3, 4, 3), np.inf)
    for k, table in enumerate(tables):
        cumulated[: len(table), :, k] = table[:, :, 0]
    most = np.array([sum(len(own) for own in each) for each in sets])
    for scores in (np.array([1, 1, 1]), most - 1, np.array([5, 3, 1])):
        contour = Contour.of(cumulated, scores, most).given
        theta = rough_tilt(cumulated, scores, most)[0]
        recursion = by_fewer_steps(chances(theta, cumulated), cumulated, scores, most)[0]
        for k, each in enumerate(sets):
            p = enumerated(each, scores[k], 3)[0]
            for found in (contour.p, recursion):
                np.testing.assert_allclose(found[:, : len(each), k], p, rtol=0, atol=2e-13)


def test_items_that_are_certain_keep_their_digits():
    """Where q = 1 - p would keep a few digits only."""
    beta = np.array([-25.0, -26.0, 12.0, 13.0])
    scores = np.array([1, 3])
    cumulated, most = columns([[b] for b in beta], scores, padding=0)
    exact = np.array([enumerated([[b] for b in beta], s, 1)[0][0] for s in scores]).T
    for theta in (0.0, -6.0, 6.0):
        found = by_fewer_steps(chances(np.full(2, theta), cumulated), cumulated, scores, most)[0][0]
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-13)
    np.testing.assert_allclose(given_every_score(beta[None]).p[0][:, [0, 2]], exact, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", ["right and wrong", "unequal categories"])
def test_whoever_takes_which_method_has_the_same_answers(kind, monkeypatch):
    """Through the one door: the tree for all scores of a set, the recursion for few steps, else the contour sum."""
    thresholds = CASES[kind]
    scores = np.arange(1, sum(len(own) for own in thresholds))
    cumulated, most = columns(thresholds, scores, padding=0)
    taken = []
    for name in ("given_every_score", "by_fewer_steps"):
        way = getattr(exact, name)
        monkeypatch.setattr(exact, name, lambda *each, way=way: (taken.append(way.__name__), way(*each))[1])
    tree = exact.given_score(cumulated, scores, most, one_set=True)
    recursion = exact.given_score(cumulated, scores, most)
    monkeypatch.setattr(exact, "SHORT_ORDER", 0)
    contour = exact.given_score(cumulated, scores, most)
    assert taken == ["given_every_score", "by_fewer_steps"]
    for found in (recursion, contour):
        np.testing.assert_allclose(found.p, tree.p, rtol=0, atol=1e-13)
        np.testing.assert_allclose(found.log_gamma, tree.log_gamma, rtol=0, atol=1e-12)


def test_scores_too_unlikely_for_the_recursion_take_the_contour_sum():
    """At an ability where the score has no chance that a number can hold."""
    scores = np.array([1, 2])
    cumulated, most = columns([[600.0], [601.0], [602.0]], scores, padding=0)
    found = exact.given_score(cumulated, scores, most, np.full(2, -200.0)).p[0]
    slowly = np.array([enumerated([[0.0], [1.0], [2.0]], s, 1)[0][0] for s in scores]).T
    np.testing.assert_allclose(found, slowly, rtol=0, atol=1e-13)


def contour(beta, score):
    return Contour.of(np.asarray(beta, dtype=float)[None, :, None], np.array([score]), np.array([len(beta)]))


def moments(beta, score):
    found = contour(beta, score).given
    return found.log_gamma[0], found.p[0, :, 0]


def recursion(beta, score):
    """log gamma and P by the classical recursion in 80-bit numbers, once for every item left out."""
    eps = np.exp(-np.asarray(beta, dtype=np.longdouble))

    def gammas(values):
        g = np.zeros(score + 1, dtype=np.longdouble)
        g[0] = 1
        for value in values:
            g[1:] = g[1:] + value * g[:-1]
        return g

    total = gammas(eps)[score]
    p = [eps[i] * gammas(np.delete(eps, i))[score - 1] / total for i in range(len(eps))]
    return float(np.log(total)), np.array(p, dtype=float)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "spread"), [(30, 1.0), (30, 4.0), (120, 1.0), (120, 0.1), (120, 3.0)])
def test_recursion(n, spread):
    beta = np.random.default_rng(n).normal(size=n) * spread
    for score in sorted({1, 2, 3, n // 5, n // 2, n - 7, n - 2, n - 1}):
        log_gamma, p = recursion(beta, score)
        ours, probabilities = moments(beta, score)
        assert abs(ours - log_gamma) < 1e-12 * max(1, abs(log_gamma))
        # Ten roundings of a number of order one; the contour sum leaves out 1e-16.
        np.testing.assert_allclose(probabilities, p, rtol=1e-11, atol=1e-13)


def test_pair_probabilities_obey_the_swap_identity():
    """P(X_i = 1, X_j = 0 | s) = eps_i (P_i - P_j) / (eps_i - eps_j), at a length no enumeration reaches."""
    n, score = 400, 150
    beta = np.random.default_rng(5).normal(size=n)
    sums = contour(beta, score)
    b, c = (factor[:, :, 0] for factor in pair_factors(sums))
    p = sums.given.p[0, :, 0]
    both = (b @ b.transpose(0, 2, 1) - c @ c.transpose(0, 2, 1))[0]
    i, j = np.argmin(beta), np.argmax(beta)
    eps = np.exp(-beta)
    np.testing.assert_allclose(p[i] - both[i, j], eps[i] * (p[i] - p[j]) / (eps[i] - eps[j]), rtol=1e-12)
    np.fill_diagonal(both, p)
    np.testing.assert_allclose(both.sum(axis=1), score * p, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1_500, 80_000])
def test_no_length_overflows(n):
    """Equal difficulties: P = s / n, whatever the common difficulty; gamma_s itself is beyond 10^400."""
    for score in (1, n // 3, n - 1):
        log_gamma, p = moments(np.full(n, 2.5), score)
        assert np.isfinite(log_gamma)
        np.testing.assert_allclose(p, score / n, rtol=1e-11)


def test_hopeless_spread_stays_finite():
    beta = np.array([-300.0, -40.0, 0.0, 0.5, 50.0, 400.0])
    for score in range(1, 6):
        log_gamma, p = moments(beta, score)
        assert np.isfinite(log_gamma)
        np.testing.assert_allclose(p.sum(), score, atol=1e-12)
        assert p.min() >= 0
        assert p.max() <= 1
    np.testing.assert_allclose(moments(beta, 2)[1], [1, 1, 0, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(moments(beta, 3)[1][2], 1 / (1 + np.exp(-0.5)), atol=1e-12)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-6, 6), min_size=2, max_size=60), st.data())
def test_identities(beta, data):
    beta = np.array(beta)
    score = data.draw(st.integers(1, len(beta) - 1))
    shift = data.draw(st.floats(-20, 20))
    log_gamma, p = moments(beta, score)
    assert abs(p.sum() - score) < 1e-11  # the score is what was given
    moved, q = moments(beta + shift, score)
    np.testing.assert_allclose(q, p, atol=1e-11)  # abilities, and the origin, drop out
    assert abs(moved + shift * score - log_gamma) < 1e-9
    mirrored = moments(-beta, len(beta) - score)[1]
    np.testing.assert_allclose(mirrored, 1 - p, atol=1e-11)  # right and wrong change places
    assert np.all(np.diff(p[np.argsort(beta)]) <= 1e-12)  # the harder, the less likely


def test_a_thousand_items_of_five_categories():
    steps = Thresholds(np.full(1000, 4))
    beta = np.random.default_rng(0).normal(size=4000)
    cumulated = steps.cumulated(beta).T[1:, :, None]
    for score in (1, 700, 3999):
        found = Contour.of(cumulated, np.array([score]), np.array([4000])).given
        assert abs(found.passed.sum() - score) < 1e-9 * score
        assert np.isfinite(found.log_gamma[0])


def test_every_score_of_a_form_too_long_for_one_ability():
    beta = np.repeat([-6.0, 6.0], 70)
    beta[:5] += 1
    p = given_every_score(beta[None]).p[0]
    np.testing.assert_allclose(p.sum(axis=0), np.arange(1, 140), atol=1e-9)
