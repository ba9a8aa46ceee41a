"""The terms of the series given the score: each coefficient from its definition, by polynomials and by contours."""

from math import comb, factorial

import numpy as np
import pytest
from numpy.polynomial import hermite_e
from numpy.polynomial import polynomial as poly

from spectral_irt.conditional import series_binary
from spectral_irt.conditional.exact import Contour, tilt
from spectral_irt.conditional.series_tables import _edgeworth, derivatives, weights
from spectral_irt.conditional.table_sums import passed_by_series


def cumulants_of(p, size):
    """The first cumulants of an answer with these probabilities of 0, 1, ..., from its raw moments."""
    k = np.arange(len(p))
    moment = [np.sum(p * k**n) for n in range(size + 1)]
    cumulant = [0.0]
    for n in range(1, size + 1):
        cumulant.append(moment[n] - sum(comb(n - 1, j - 1) * cumulant[j] * moment[n - j] for j in range(1, n)))
    return np.array(cumulant[1:])


def times(a, b, size):
    """The product of two lists of polynomials in z, one for each order, up to some order."""
    product = [np.zeros(1) for _ in range(size)]
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            if i + j < size:
                product[i + j] = poly.polyadd(product[i + j], poly.polymul(one, other))
    return product


def test_the_logarithm_of_the_edgeworth_series_to_fourth_order():
    """log(1 + e1 + e2 + ...), e_k the terms of order k, by Hermite polynomials; it vanishes at the mean but for a
    constant that no ratio of densities has."""
    l3, l4, l5, l6 = 0.7, -0.4, 0.3, 1.1

    def he(n, value):
        return value * hermite_e.herme2poly([0] * n + [1])

    terms = [
        [],
        [he(3, l3 / 6)],
        [he(4, l4 / 24), he(6, l3**2 / 72)],
        [he(5, l5 / 120), he(7, l3 * l4 / 144), he(9, l3**3 / 1296)],
        [he(6, l6 / 720), he(8, l4**2 / 1152), he(8, l3 * l5 / 720), he(10, l3**2 * l4 / 1728), he(12, l3**4 / 31104)],
    ]
    orders = []
    for one in terms:
        total = np.zeros(1)
        for term in one:
            total = poly.polyadd(total, term)
        orders.append(total)
    power, log = [np.ones(1)] + [np.zeros(1)] * 4, [np.zeros(1)] * 5
    for n in range(1, 5):  # log(1 + x) = x - x^2 / 2 + x^3 / 3 - x^4 / 4
        power = times(power, orders, 5)
        log = [poly.polyadd(a, (-1) ** (n + 1) / n * b) for a, b in zip(log, power, strict=True)]
    whole = np.zeros(13)
    for one in log:
        whole[: len(one)] += one
    np.testing.assert_allclose(whole[7:], 0, atol=1e-12)
    found = series_binary._log_series(*(np.array([each]) for each in (l3, l4, l5, l6)))
    np.testing.assert_allclose(np.array(found)[:, 0], whole[1:7], rtol=1e-12)


def test_the_series_of_right_and_wrong_has_the_cumulants_of_the_other_answers(monkeypatch):
    """Those of the row less those of an answer of probability p, standardized; at Chebyshev's points of 2p - 1."""
    p = np.array([0.1, 0.3, 0.45, 0.6, 0.8, 0.35, 0.9, 0.5, 0.7, 0.2, 0.55, 0.65])
    seen = []
    log_series = series_binary._log_series

    def recorded(*cumulants):
        seen.append(cumulants)
        return log_series(*cumulants)

    monkeypatch.setattr(series_binary, "_log_series", recorded)
    v = p * (1 - p)
    distance = np.array([0.3])
    polynomial = series_binary._series(np.array([0, 12], dtype=np.int32), distance, np.array([v.sum()]), v, 2 * p - 1)
    row = sum(cumulants_of([1 - one, one], 6) for one in p)
    nodes = np.cos(np.pi * (np.arange(6) + 0.5) / 6)
    ratio = []
    for node, *found in zip(nodes, *seen[0], strict=True):
        own = (1 + node) / 2
        k = row - cumulants_of([1 - own, own], 6)
        standardized = [k[n - 1] / k[1] ** (n / 2) for n in (3, 4, 5, 6)]
        np.testing.assert_allclose(np.array(found)[:, 0], standardized, rtol=1e-9)
        # The densities of s - 1 and of s right answers among the others, of which the mean is sum p - p.
        coefficients = np.array(log_series(*standardized))
        logs = []
        for others in (distance[0] - 1, distance[0]):
            z = (others + own) / np.sqrt(k[1])
            logs.append(-(z**2) / 2 + coefficients @ z ** np.arange(1, 7))
        r = np.exp(logs[0] - logs[1])
        given = own * r / (own * r + 1 - own)
        ratio.append((given - own) / (own * (1 - own)))
    np.testing.assert_allclose(np.polynomial.Polynomial(polynomial[:, 0])(nodes), ratio, rtol=1e-8)


def passed(theta, beta, k):
    """P(X >= k), also at complex abilities."""
    weight = [np.exp(c * theta - sum(beta[:c])) for c in range(len(beta) + 1)]
    return sum(weight[k:]) / sum(weight)


def derivative(function, theta, r):
    """By Cauchy's integral over a circle of radius 0.5."""
    turn = np.exp(2j * np.pi * np.arange(64) / 64)
    return factorial(r) * np.mean([function(theta + 0.5 * z) * z**-r for z in turn]).real / 0.5**r


def test_derivatives_by_ability_are_those_of_the_probabilities():
    beta, order = [-0.4, 0.1, 0.9], 6
    theta = np.array([-1.3, 0.2, 0.8])
    p = np.array(
        [[passed(one, beta, k) - (passed(one, beta, k + 1) if k < 3 else 0) for one in theta] for k in range(4)]
    )
    tails = np.empty((order + 1, 3, 3))
    moments = derivatives(p.copy(), order, tails)
    for place, one in enumerate(theta):
        for k in (1, 2, 3):
            wanted = [derivative(lambda x, k=k: passed(x, beta, k), one, r) for r in range(order + 1)]
            np.testing.assert_allclose(tails[:, k - 1, place], wanted, atol=1e-9)
        cumulants = cumulants_of(p[:, place], order + 2)
        np.testing.assert_allclose(moments[:-1, place], cumulants, atol=1e-9)
        assert moments[-1, place] == pytest.approx(cumulants[1] ** 2)


@pytest.mark.parametrize("order", [4, 6])
def test_terms_of_the_edgeworth_series_up_to_an_order(order):
    """Means over the normal of z^r / r! exp(sum_k l_k z^(k + 2) / (k + 2)!), z = it; r counts as r orders."""
    made, above, below = _edgeworth(order)
    rng = np.random.default_rng(2)
    cumulants = rng.normal(size=order)
    terms = np.ones(len(made))
    for place, (smaller, k) in enumerate(made[1:], start=1):
        terms[place] = terms[smaller] * cumulants[k]
    # l_1 counts as one order: what is cumulants[k] here is l_k of k orders, from k = 1 on; the first is unused.
    exponent = [np.zeros(1)]
    exponent += [np.append(np.zeros(k + 2), cumulants[k] / factorial(k + 2)) for k in range(1, order)]
    power = [np.ones(1)] + [np.zeros(1)] * (order - 1)
    series = [np.zeros(1)] * order
    for n in range(order):
        series = [poly.polyadd(a, b / factorial(n)) for a, b in zip(series, power, strict=True)]
        power = times(power, exponent, order)

    def mean(coefficients, shift):
        """E (it)^n of a normal t: (-1)^(n/2) (n - 1)!!."""
        total = 0.0
        for n, value in enumerate(coefficients, start=shift):
            if n % 2 == 0:
                total += value * (-1) ** (n // 2) * float(np.prod(np.arange(n - 1, 0, -2, dtype=float)))
        return total

    for r in range(1, order + 1):
        some = series[: order + 1 - r]
        assert above[r - 1] @ terms == pytest.approx(sum(mean(one, r) for one in some) / factorial(r), rel=1e-10)
        assert below[r - 1] @ terms == pytest.approx(sum(mean(one, 0) for one in some), rel=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.6, -0.9])
def test_weights_of_derivatives_are_integrals_of_the_characteristic_function(missing):
    """u_r = int (it)^r phi(t) e^(-its) dt / r! over the same with r = 0, of 60 answers in four categories."""
    p = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]])
    n, order = 20, 6  # answers of each kind
    cumulants = n * sum(cumulants_of(one, order + 2) for one in p)
    score = round(cumulants[0] + missing) + 0.0
    u = weights(np.array([score - cumulants[0]]), cumulants[1:, None], 0.25)[:, 0]
    t = np.linspace(-np.pi, np.pi, 4001)
    k = np.arange(4)
    phi = np.prod([(np.exp(1j * t[:, None] * k) @ one) ** n for one in p], axis=0) * np.exp(-1j * t * score)
    wanted = [np.sum((1j * t) ** r * phi).real / np.sum(phi).real / factorial(r) for r in range(order + 1)]
    # a shift of ability beside the grid; errors as of a series of this order
    np.testing.assert_allclose(u, wanted, rtol=2e-3, atol=2e-7)


def test_factors_of_long_rows_are_two_rounds_towards_their_definition():
    """c_i sum_{j != i} c_j = p_i (1 - p_i): from a start in which all c are alike."""
    rng = np.random.default_rng(1)
    counts = np.array([20, 50, 200])
    rows = np.concatenate([[0], np.cumsum(counts)])
    p = 1 / (1 + np.exp(-rng.normal(0, 1, rows[-1])))
    c = np.empty(len(p))
    series_binary._fill_factors(rows, counts, p, c)
    for start, end, off in zip(rows[:-1], rows[1:], (7e-4, 2e-4, 1e-5), strict=True):
        own = c[start:end]
        v = (p * (1 - p))[start:end]
        n = end - start
        alike = np.sqrt(v.sum() / (n * (n - 1)))
        first = v / ((n - 1) * alike)
        second = v / (np.sqrt(v.sum() + (first**2).sum()) - first)
        np.testing.assert_allclose(own, second)
        np.testing.assert_allclose(own * (own.sum() - own), v, rtol=off)


def test_the_series_of_persons_with_many_ordered_answers_and_from_where_it_is_taken():
    """P(X >= k | s) as exactly; only where the answers of all count as so many equal ones, in variance."""
    rng = np.random.default_rng(4)
    cumulated = np.cumsum(rng.normal(0, 1, (2, 40, 3)), axis=0)
    cumulated[:, :10] *= 0.3
    scores = np.array([30, 41, 52])
    most = np.full(3, 80)
    theta, p, variance = tilt(cumulated, scores, most)
    exact = Contour.of(cumulated, scores, most).given.passed
    limits = []
    for person in range(3):
        of_items = []
        for item in range(40):
            e = sum(k * p[k, item, person] for k in range(3))
            of_items.append(sum((k - e) ** 2 * p[k, item, person] for k in range(3)))
        assert variance[person] == pytest.approx(sum(of_items))
        limits += [sum(of_items), sum(of_items) ** 2 / sum(v**2 for v in of_items)]
    limit = min(limits)
    found = passed_by_series(cumulated, scores, most, 0.999 * limit)
    np.testing.assert_allclose(found, exact, atol=2e-4)
    assert passed_by_series(cumulated, scores, most, 1.001 * limit) is None
    assert np.isfinite(theta).all()
