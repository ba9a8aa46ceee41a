"""Pair counts, both nu rules, and the papers' algorithms, against dense versions written out here."""

import numpy as np
import pytest
from scipy import sparse

from dense import dense_pairs
from spectral_irt import PairwiseRasch, Responses, SpectralRasch, paper, simulate
from spectral_irt.chain.paper import PairChain, pair_counts, regularize, seen_together, smaller_dense
from spectral_irt.chain.stationary import stationary
from spectral_irt.errors import DesignError, OptionError

algorithm_1, algorithm_2 = paper.algorithm_1, paper.algorithm_2
ATOL = 1e-8  # the accuracy that reproduction of the paper is held to


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(7)
    beta, theta = rng.normal(size=8), rng.normal(size=90)
    x = (rng.random((90, 8)) < 1 / (1 + np.exp(beta - theta[:, None]))).astype(float)
    x[rng.random(x.shape) > 0.7] = np.nan
    both = ~np.isnan(x[:, :2]).any(axis=1)
    x[both, 1] = x[both, 0]  # seen together, and never answered differently: the rules part here
    return x


def printed_program(x, nu, rule):
    """The paper's listing, in its own dense terms (people x items here), with its undefined name mended."""
    m = x.shape[1]
    y, b = dense_pairs(x)
    met = (y != 0) | (y.T != 0) if rule == "differed" else b > 0
    y = np.where(met, y + nu, y)
    d = np.maximum(y.sum(axis=1), 1)
    transition = y / d[:, None]
    transition[np.diag_indices(m)] = 1 - transition.sum(axis=1)
    pi = np.full(m, 1 / m)
    for _ in range(20_000):
        pi = pi @ transition
        pi /= pi.sum()
    beta = np.log(pi / d)
    return beta - beta.mean()


@pytest.mark.parametrize("dense", [True, False])
def test_pair_counts_equal_loops(table, dense):
    responses = Responses.from_wide(table)
    y, b = dense_pairs(table)
    found = pair_counts(responses, dense=dense)
    np.testing.assert_array_equal(found if dense else found.toarray(), y)
    found = seen_together(responses, dense=dense)
    np.testing.assert_array_equal(found if dense else found.toarray(), b)
    n = np.sum(~np.isnan(table), axis=1)
    weighted, _ = dense_pairs(table, lambda person, i, j: 1 / n[person])
    found = pair_counts(responses, weighting="persons", dense=dense)
    np.testing.assert_allclose(found if dense else found.toarray(), weighted, rtol=1e-13)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("rule", ["differed", "together"])
@pytest.mark.parametrize("nu", [0.1, 1.0])
def test_both_algorithms_and_both_rules_equal_the_printed_program(table, nu, rule, dense):
    responses = Responses.from_wide(table)
    y = regularize(pair_counts(responses, dense=dense), nu, rule=rule, b=seen_together(responses, dense=dense))
    expected = printed_program(table, nu, rule)
    np.testing.assert_allclose(algorithm_1(y, tol=1e-13).difficulty, expected, atol=ATOL)
    np.testing.assert_allclose(algorithm_2(y, tol=1e-13).difficulty, expected, atol=ATOL)
    solved = np.log(stationary(PairChain(y)).pi)
    np.testing.assert_allclose(solved - solved.mean(), expected, atol=ATOL)
    fit = SpectralRasch.paper(nu=nu, nu_rule=rule).fit(responses)
    np.testing.assert_allclose(fit.difficulty_, expected, atol=ATOL)
    assert fit.regularization_.nu == nu


@pytest.mark.parametrize("rule", ["differed", "together"])
def test_large_dense_matrices_go_in_slices_and_in_place(table, rule, monkeypatch):
    responses = Responses.from_wide(table)
    b = seen_together(responses, dense=False)
    whole = regularize(pair_counts(responses, dense=True), 1.0, rule=rule, b=b)
    monkeypatch.setattr("spectral_irt.chain.paper.SLICE", 3)
    y = pair_counts(responses, dense=True)
    sliced = regularize(y, 1.0, rule=rule, b=b, overwrite=True)
    assert sliced is y
    np.testing.assert_array_equal(sliced, whole)


def test_dense_where_most_pairs_have_met(table, monkeypatch):
    responses = Responses.from_wide(table)
    monkeypatch.setattr("spectral_irt.chain.paper.DENSE_ITEMS", 1)
    assert smaller_dense(responses)
    assert not smaller_dense(responses.take_persons(np.arange(responses.n_persons) < 2))


def test_pairs_are_counted_in_advance_and_refused_beyond_what_can_be_done(table, monkeypatch):
    responses = Responses.from_wide(table)
    y, _ = dense_pairs(table)
    assert paper.pairs_that_differ(responses) == y.sum()
    for estimator in (SpectralRasch.paper(), PairwiseRasch()):
        estimator.fit(responses)
        for limit, value in (("MOST_PAIRS", y.sum() - 1), ("MOST_CELLS", 8)):
            with monkeypatch.context() as patch:
                patch.setattr(paper, limit, value)
                with pytest.raises(DesignError, match="pairs of answers, too many"):
                    estimator.fit(responses)


@pytest.mark.parametrize("items", [20_000, 200_000])
def test_long_records_of_five_people_are_refused_at_once(items):
    # Of 200,000 items to count would take hours, and half a terabyte; of 20,000 a matrix of 3 GB is gone through again
    # and again.
    right = np.arange(5 * items) % 3 > 0
    person = np.repeat(np.arange(5), items)
    item = np.tile(np.arange(items), 5)
    few = Responses.from_codes(person, item, right, persons=np.arange(5), items=np.arange(items))
    with pytest.raises(DesignError, match="pairs of answers, too many"):
        pair_counts(few)
    with pytest.raises(DesignError, match="pairs of answers, too many"):
        seen_together(few)


@pytest.fixture(scope="module")
def y(table):
    return regularize(pair_counts(Responses.from_wide(table)), 0.5)


def test_common_normalization_is_free_but_slow(y):
    default = algorithm_1(y)
    large = algorithm_1(y, d=10 * default.normalization[0])
    np.testing.assert_allclose(large.difficulty, default.difficulty, atol=ATOL)
    assert large.n_iter > 5 * default.n_iter
    assert algorithm_2(y).n_iter < default.n_iter


def test_truncated_log(y):
    full = algorithm_1(y)
    cut = np.sort(full.pi)[2]  # a range that cuts the smallest entries only
    short = algorithm_1(y, beta_range=-np.log(len(full.pi) * cut))
    expected = np.log(np.maximum(full.pi, cut))
    np.testing.assert_allclose(short.difficulty, expected - expected.mean(), atol=ATOL)


def test_the_papers_stopping_rule_stops_early(y):
    early, exact = algorithm_1(y, tol=1e-6, stop="step"), algorithm_1(y)
    assert early.n_iter < exact.n_iter
    assert 1e-8 < np.abs(early.difficulty - exact.difficulty).max() < 1e-2


def test_bad_arguments(table):
    y = pair_counts(Responses.from_wide(table))
    for call, message in (
        (lambda: algorithm_1(y, d=1.0), "at least the largest row sum"),
        (lambda: regularize(y, np.inf), "`nu` is inf"),
        (lambda: regularize(y, 1.0, rule="together"), "needs the counts b"),
        (lambda: regularize(y, 1.0, rule="always"), "'differed', 'together'"),
    ):
        with pytest.raises(OptionError, match=message):
            call()
    padded = np.zeros((9, 9))
    padded[:8, :8] = y
    with pytest.raises(DesignError, match="keeps their starting mass"):
        algorithm_2(sparse.csr_array(padded))


# ----------------------------------------------------------------------- partial credit, two phases


def counts_of_categories(x, a, b):
    """Y_ij(a, b): who answered i in category a and j in category b."""
    m = x.shape[1]
    return np.array([[np.sum((x[:, i] == a) & (x[:, j] == b)) if i != j else 0 for j in range(m)] for i in range(m)])


def two_phases_by_loops(x, nu):
    """Both phases from tables of categories, items x levels; every item has all categories."""
    m, top = x.shape[1], int(np.nanmax(x))
    levels = []
    for k in range(1, top + 1):
        y = counts_of_categories(x, k, k - 1).astype(float)
        y = np.where((y > 0) | (y.T > 0), y + nu, y)
        equations = y.T - np.diag(y.sum(axis=1))  # pi Y = pi d, and pi adds to one
        equations[-1] = 1.0
        beta = np.log(np.linalg.solve(equations, np.eye(m)[-1]))
        levels.append(beta - beta.mean())
    for k in range(2, top + 1):
        below = np.exp(levels[0])[:, None] * counts_of_categories(x, 1, k - 1)
        above = np.exp(levels[k - 1])[None, :] * counts_of_categories(x, 0, k)
        levels[k - 1] = levels[k - 1] + np.log(below.sum() / above.sum())
    table = np.column_stack(levels)
    return table - table.mean()


@pytest.mark.parametrize("nu", [0.0, 0.1])
def test_two_phases_equal_loops_over_categories(nu):
    data = simulate.partial_credit(400, 5, categories=4, design="sampled", p=0.8, seed=2).responses
    fit = paper.two_phase(data, nu=nu, tol=1e-13)
    expected = two_phases_by_loops(data.to_dense(), nu)
    np.testing.assert_allclose(fit.thresholds, expected.ravel(), atol=ATOL)
    np.testing.assert_allclose(fit.difficulty, expected.mean(axis=1), atol=ATOL)


def test_two_phases_of_two_items_by_hand():
    patterns = {(1, 0): 6, (0, 1): 3, (2, 1): 8, (1, 2): 2, (2, 0): 5, (0, 2): 4, (1, 1): 7, (2, 2): 9}
    x = np.repeat(np.array(list(patterns)), list(patterns.values()), axis=0)
    # Level 1: pi_1 Y_12 = pi_2 Y_21, 6 persons against 3; level 2: 8 against 2. The first item is the easier one.
    half = np.array([0.5, -0.5])
    first, second = half * np.log(3 / 6), half * np.log(2 / 8)
    # Phase 2: both items in category 1, counted for either of them, against one in 0 and the other in 2, where the
    # threshold of the item in 2 counts: 4 with the second item there, 5 with the first.
    shift = np.log(7 * np.exp(first).sum() / (4 * np.exp(second[1]) + 5 * np.exp(second[0])))
    expected = np.column_stack([first, second + shift])
    fit = paper.two_phase(x)
    np.testing.assert_allclose(fit.shift, [0, shift], atol=ATOL)
    np.testing.assert_allclose(fit.thresholds, (expected - expected.mean()).ravel(), atol=ATOL)


def test_two_phases_with_two_categories_are_algorithm_2(table):
    for nu in (0.0, 0.5):
        expected = algorithm_2(regularize(pair_counts(Responses.from_wide(table)), nu))
        np.testing.assert_allclose(paper.two_phase(table, nu=nu).thresholds, expected.difficulty, atol=1e-14)


def test_two_phases_come_to_the_truth_also_where_items_have_different_categories():
    data = simulate.partial_credit(60_000, 6, categories=[2, 3, 4, 4, 3, 2], seed=4)
    error = paper.two_phase(data.responses).thresholds - data.thresholds
    # Standard errors at this size are between .01 and .03; a wrong shift of a level would be tenths.
    assert np.abs(error).max() < 0.09
    assert np.abs(error).mean() < 0.03


def test_two_phases_name_what_cannot_be_placed():
    # Both levels are linked; two persons have 1 and 1, and nobody has 0 and 2.
    with pytest.raises(DesignError, match=r"thresholds 2 cannot be placed.*category 0 and another in 2"):
        paper.two_phase([[0, 1], [1, 0], [1, 2], [2, 1], [1, 1]])
    with pytest.raises(DesignError, match=r"chain of thresholds 2 .*: 2 \[2\] \(1 in all\)"):
        paper.two_phase([[0, 1, 0], [1, 0, 1], [1, 2, 0], [2, 1, 0], [1, 1, 2], [0, 0, 1], [1, 1, 0]])
