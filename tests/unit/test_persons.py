"""Abilities, person fit and score tables against one person at a time; then awkward people, others, and errors."""

import numpy as np
import pytest
from scipy.optimize import brentq

from dense import AWKWARD, mean_squares, posterior, probabilities
from spectral_irt import Analysis, Responses, SpectralRasch, simulate
from spectral_irt import ability as module
from spectral_irt.ability import Run, score_abilities, solve
from spectral_irt.data.block import Rows, Thresholds
from spectral_irt.engine import LocalEngine
from spectral_irt.errors import NotFittedError, OptionError
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.persons import abilities, align, person_mean_squares
from split import in_pieces


def rows_of_items(indptr, items, scores):
    counts = np.diff(indptr)
    return Rows(indptr.astype(np.int64), items, counts, scores, counts), Thresholds.ones(int(items.max()) + 1)


DIFFICULTY = np.array([-1.5, 0.3, 0.0, 2.0, -0.7, 1.1, -8.0])


def by_hand(row, beta, warm):
    seen = ~np.isnan(row) & np.isfinite(beta)
    b, score = beta[seen], row[seen].sum()
    if not seen.any():
        return np.nan, np.nan
    if not warm and score in (0, len(b)):
        return (np.inf if score else -np.inf), np.inf

    def information(theta):
        p = 1 / (1 + np.exp(b - theta))
        return np.sum(p * (1 - p))

    def pull(theta):
        p = 1 / (1 + np.exp(b - theta))
        value = score - p.sum()
        if warm:
            value += np.sum(p * (1 - p) * (1 - 2 * p)) / (2 * information(theta))
        return value

    theta = brentq(pull, -30, 30, xtol=1e-13)
    return theta, 1 / np.sqrt(information(theta))


def posterior_by_hand(row, beta, mean, sd):
    """Posterior mean and standard deviation of one person on a fine grid."""
    grid, weight = posterior(row, beta, mean, sd, points=40_001)
    centre = weight @ grid
    return centre, np.sqrt(weight @ (grid - centre) ** 2)


@pytest.mark.parametrize("missing", [None, 2])
@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("method", ["wle", "ml"])
def test_likelihood_estimates_one_user_at_a_time(method, pieces, missing):
    beta = DIFFICULTY.copy()
    if missing is not None:
        beta[missing] = np.nan
    found = abilities(in_pieces(AWKWARD, pieces), beta, method)
    expected = np.array([by_hand(row, beta, method == "wle") for row in AWKWARD])
    np.testing.assert_allclose(found.ability, expected[:, 0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.se, expected[:, 1], rtol=1e-6)
    seen = ~np.isnan(AWKWARD) & np.isfinite(beta)
    np.testing.assert_array_equal(found.n, seen.sum(axis=1))
    np.testing.assert_array_equal(found.score, np.where(seen, AWKWARD, 0).sum(axis=1))
    np.testing.assert_array_equal(found.extreme, (found.n > 0) & ((found.score == 0) | (found.score == found.n)))


@pytest.mark.parametrize("method", ["wle", "ml"])
def test_long_and_far_apart(method):
    rng = np.random.default_rng(3)
    beta = np.concatenate([rng.normal(size=3000), [-10.0, 10.0, -9.0]])
    table = (rng.random((6, len(beta))) < 0.5).astype(float)
    table[0], table[0, :2] = 1, 0
    table[1], table[1, :1] = 0, 1
    table[2], table[2, -3:] = np.nan, [1, 0, 1]
    table[3], table[4] = 1, 0
    found = abilities(Responses.from_wide(table), beta, method)
    expected = np.array([by_hand(row, beta, method == "wle")[0] for row in table])
    # Between items twenty logits apart the weighted likelihood has several maxima.
    keep = np.arange(6) != (2 if method == "wle" else -1)
    assert -11 < found.ability[2] < 11
    np.testing.assert_allclose(found.ability[keep], expected[keep], rtol=0, atol=1e-9)


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1.0), (1, 3), (-2.0, 0.3), (0.0, 10.0)])
def test_posterior_one_user_at_a_time(mean, sd):
    found = abilities(in_pieces(AWKWARD, 2), DIFFICULTY, "eap", prior_mean=mean, prior_sd=sd)
    expected = np.array([posterior_by_hand(row, DIFFICULTY, mean, sd) for row in AWKWARD])
    np.testing.assert_allclose(found.ability, expected[:, 0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.se, expected[:, 1], rtol=1e-6)
    assert (found.ability[1], found.se[1]) == (mean, sd)  # nobody's answers: the prior


@pytest.mark.slow
def test_prior_is_estimated():
    data = simulate.rasch(4000, 25, ability_mean=0.7, ability_sd=1.4, seed=2)
    found = abilities(data.responses, data.difficulty, "eap")
    assert abs(found.prior[0] - 0.7) < 0.08
    assert abs(found.prior[1] - 1.4) < 0.08
    assert abs(found.ability.mean() - found.prior[0]) < 1e-4  # EM's fixed point
    assert abs(np.mean(found.se**2) + found.ability.var() - found.prior[1] ** 2) < 1e-4
    given = abilities(data.responses, data.difficulty, "eap", prior_mean=0.0)
    assert given.prior[0] == 0
    assert given.prior[1] > found.prior[1]


def test_categories_near_and_far_have_one_likelihood(monkeypatch):
    data = simulate.partial_credit(60, 5, categories=4, seed=1)
    near = abilities(data.responses, data.thresholds, "eap")
    monkeypatch.setattr(module, "SAFE_EXPONENT", 0.0)  # where powers of odds would overflow
    far = abilities(data.responses, data.thresholds, "eap")
    np.testing.assert_allclose([far.ability, far.se], [near.ability, near.se], atol=1e-9)


@pytest.mark.slow
def test_same_bits_whatever_the_threads():
    responses = simulate.rasch(3000, 400, design="sampled", p=0.5, seed=1).responses
    beta = np.linspace(-2, 2, 400)
    for method in ("wle", "ml", "eap"):
        one, two = (abilities(responses.with_engine(LocalEngine(threads)), beta, method).ability for threads in (1, 2))
        assert one.tobytes() == two.tobytes()


def test_abilities_are_honest():
    data = simulate.rasch(4000, 60, design="sampled", p=0.7, seed=4)
    found = abilities(data.responses, data.difficulty)
    z = (found.ability - data.ability) / found.se
    assert abs(z.mean()) < 0.05
    assert abs(z.std() - 1) < 0.06


def test_person_fit_by_definition():
    beta = DIFFICULTY.copy()
    beta[3] = np.nan
    theta = np.linspace(-1, 1.5, len(AWKWARD))
    found = person_mean_squares(in_pieces(AWKWARD, 3), beta, theta)
    P = probabilities(theta, beta)
    for person, row in enumerate(AWKWARD):
        seen = ~np.isnan(row) & np.isfinite(beta)
        x, p = row[seen], P[person, seen]
        fits = [values[person] for values in (found.infit, found.outfit, found.infit_z, found.outfit_z)]
        if x.sum() in (0, len(x)):
            assert np.isnan(fits).all()
        else:
            np.testing.assert_allclose(fits, mean_squares(x, p))


@pytest.fixture(scope="module")
def calibrated():
    data = simulate.rasch(400, 12, seed=6)
    return SpectralRasch().fit(data.responses), data.responses


def test_table(calibrated):
    fit, responses = calibrated
    table = fit.analyse(responses).persons()
    head = ["person", "n", "score", "ability", "se", "extreme", "infit", "outfit", "infit_z", "outfit_z"]
    assert table.columns == head
    assert len(table) == 400
    assert table.equals(Analysis(fit.calibration_, responses).persons())
    found = abilities(responses, fit.difficulty_)
    np.testing.assert_array_equal(table["ability"], found.ability)
    extreme = table.filter(table["extreme"])
    assert len(extreme)
    assert extreme["ability"].is_finite().all()
    assert extreme["infit"].is_nan().all()
    by_ml = fit.analyse(responses).persons(method="ml").filter(found.extreme)
    assert by_ml["ability"].is_infinite().all()
    assert by_ml["se"].is_infinite().all()


def test_people_who_were_not_in_the_calibration(calibrated):
    """Columns in another order, some missing: the same abilities as in the calibration's order."""
    fit, responses = calibrated
    dense = responses.to_dense()
    dense[:, 3] = np.nan
    order = np.array([7, 1, 11, 0, 2, 10, 4, 6, 5, 9, 8])
    other = Responses.from_wide(dense[:, order], items=order.tolist())
    here, there = fit.analyse(Responses.from_wide(dense)).persons(), fit.analyse(other).persons()
    np.testing.assert_allclose(there["ability"], here["ability"], rtol=0, atol=1e-12)
    aligned = align(fit.item_labels_, other)
    np.testing.assert_array_equal(aligned.to_dense(), dense)
    for block in aligned.blocks:  # packed as blocks are: increasing within right and within wrong
        for low, high in zip(block.bounds[:-1], block.bounds[1:], strict=True):
            assert np.all(np.diff(block.items[low:high]) > 0)


def test_unknown_items(calibrated):
    fit, _ = calibrated
    new = Responses.from_wide([[1, 0, 1, 1, 0, 1, 1, 0]], items=[0, 1, "x1", "x2", "x3", "x4", "x5", "x6"])
    with pytest.raises(OptionError, match=r"6 items are not in the calibration: 'x1', .* and 1 more.*ignore_unknown"):
        fit.analyse(new)
    table = fit.analyse(new, ignore_unknown=True).persons()
    assert table["n"].to_list() == [2]
    nothing = Responses.from_wide([[1, 0]], items=["x", "y"])
    with pytest.raises(OptionError, match="none of its 2 items"):
        fit.analyse(nothing, ignore_unknown=True)


def test_score_table(calibrated):
    fit, responses = calibrated
    table = fit.calibration_.score_table()
    found = fit.analyse(responses).persons()
    for score, ability, se in found.select("score", "ability", "se").unique().iter_rows():
        assert abs(table["ability"][score] - ability) < 1e-9
        assert abs(table["se"][score] - se) < 1e-6
    ml = fit.analyse(responses).persons(method="ml")
    for score, ability in ml.select("score", "ability").unique().iter_rows():
        assert ability == table["ability_ml"][score] or abs(ability - table["ability_ml"][score]) < 1e-9
    form = fit.calibration_.score_table(items=[4, 2, 9])
    np.testing.assert_allclose(form["ability"], score_abilities(fit.difficulty_[[4, 2, 9]])[0])


def test_score_table_in_pieces():
    beta = np.linspace(-3, 3, 700)
    ability, se = score_abilities(beta)
    assert np.all(np.diff(ability) > 0)
    theta, error = by_hand(np.r_[np.ones(123), np.zeros(577)], beta, True)
    np.testing.assert_allclose([ability[123], se[123]], [theta, error])


def test_errors(calibrated):
    fit, responses = calibrated
    study = fit.analyse(responses)
    with pytest.raises(NotFittedError):
        SpectralRasch().analyse(responses).persons()
    for call, message in (
        (lambda: study.persons(method="mle"), "'wle', 'ml', 'eap'"),
        (lambda: abilities(responses, fit.difficulty_, prior_sd=1.0), "has no prior"),
        (lambda: fit.analyse(responses, population=(0, 0)).persons(method="eap"), "above zero"),
        (lambda: abilities(responses, np.zeros(3)), "12 items"),
        (lambda: fit.calibration_.score_table(items=["z"]), "unknown items 'z'"),
    ):
        with pytest.raises(OptionError, match=message):
            call()


def test_items_without_difficulty():
    table = simulate.rasch(200, 6, seed=1).responses.to_dense()
    table[:, 2] = 1
    fit = ConditionalRasch().fit(table)
    assert np.isnan(fit.difficulty_[2])
    assert set(fit.analyse(table).persons()["n"]) == {5}
    assert len(fit.calibration_.score_table()) == 6
    with pytest.raises(OptionError, match="items without a difficulty: 2"):
        fit.calibration_.score_table(items=[1, 2])


def weighted_likelihood(theta, beta, score):
    """log L + log(V) / 2 at every theta."""
    away = theta[:, None] - beta
    p = 1 / (1 + np.exp(-away))
    return score * theta - np.logaddexp(0, away).sum(axis=1) + np.log((p * (1 - p)).sum(axis=1)) / 2


def people_beside_gaps(seed, n=400):
    """Few items in two or three clusters far apart, and any score."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        centers = np.cumsum(rng.uniform(3, 14, rng.integers(2, 4)))
        beta = np.concatenate([c + rng.normal(0, 0.4, rng.integers(1, 5)) for c in centers])
        yield rng.permutation(beta - beta.mean()), int(rng.integers(0, len(beta) + 1))


@pytest.mark.slow
def test_warm_takes_the_higher_of_two_maxima():
    """Against a grid: it returned the minimum between them for one in seven people of this kind."""
    people = list(people_beside_gaps(1))
    beta = np.concatenate([b for b, _ in people])
    ends = np.cumsum([len(b) for b, _ in people])
    scores = np.array([score for _, score in people])
    answers = rows_of_items(np.concatenate([[0], ends]), np.arange(len(beta), dtype=np.int32), scores)
    theta, information = solve(Run(*answers, beta), warm=True)
    several = 0
    for k, (b, score) in enumerate(people):
        grid = np.linspace(b.min() - 6, b.max() + 6, 20_001)
        height = weighted_likelihood(grid, b, score)
        peaks = np.flatnonzero((height[1:-1] > height[:-2]) & (height[1:-1] > height[2:])) + 1
        several += len(peaks) > 1
        assert weighted_likelihood(theta[k : k + 1], b, score)[0] >= height.max() - 1e-7
        assert np.min(np.abs(theta[k] - grid[peaks])) < 2 * (grid[1] - grid[0])
        p = 1 / (1 + np.exp(b - theta[k]))
        assert information[k] == pytest.approx((p * (1 - p)).sum(), rel=1e-5)
    assert several > 60


def test_of_two_equal_maxima_the_lower_ability():
    """Items at -5 and 5, one of them right: both sides are as likely, and zero is the least likely between them."""
    found = abilities(Responses.from_wide([[1, 0], [0, 1]]), np.array([-5.0, 5.0])).ability
    assert found[0] == found[1]
    assert found[0] < -3


def test_abilities_rise_with_the_score_across_gaps():
    for seed in range(20):
        beta = next(people_beside_gaps(seed))[0]
        assert (np.diff(score_abilities(beta)[0]) > 0).all()


@pytest.mark.slow
def test_no_gap_that_makes_two_maxima_is_overlooked(monkeypatch):
    rng = np.random.default_rng(5)
    beta = rng.normal(0, 4, 60)
    tables = [rng.choice(60, rng.integers(2, 9), replace=False) for _ in range(3000)]
    indptr = np.concatenate([[0], np.cumsum([len(t) for t in tables])]).astype(np.int32)
    scores = np.array([rng.integers(0, len(t) + 1) for t in tables])
    answers = Run(*rows_of_items(indptr, np.concatenate(tables).astype(np.int32), scores), beta)
    screened = solve(answers, warm=True)
    everybody = np.arange(len(tables))
    chosen = module.beside_a_gap(answers)
    assert 0 < len(chosen) < len(tables) / 2
    monkeypatch.setattr(module, "beside_a_gap", lambda run: everybody)
    np.testing.assert_allclose(solve(answers, warm=True)[0], screened[0], atol=1e-6)


@pytest.mark.parametrize("method", ["wle", "ml", "eap"])
def test_the_same_score_on_all_items_is_the_same_ability_to_the_last_bit(method):
    data = simulate.rasch(40, 200, ability=np.linspace(-1, 1, 40), seed=3)
    found = abilities(data.responses, data.difficulty, method)
    for score in np.unique(found.score):
        mine = found.score == score
        assert len(np.unique(found.ability[mine])) == len(np.unique(found.se[mine])) == 1
    scores, first = np.unique(found.score, return_index=True)
    assert len(scores) < 40  # some share theirs
    assert np.all(np.diff(found.ability[first]) > 0)
    prior = {"prior_mean": found.prior[0], "prior_sd": found.prior[1]} if method == "eap" else {}
    few = np.sort(first[:3])
    alone = abilities(data.responses.take_persons(few), data.difficulty, method, **prior)
    np.testing.assert_allclose(alone.ability, found.ability[few], rtol=1e-9)


@pytest.mark.parametrize("sd", [1e-6, 1e-3, 0.5])
def test_a_spread_that_is_given_is_kept_beside_a_mean_that_is_not(sd):
    answers = simulate.rasch(50, 8, seed=1).responses
    assert abilities(answers, np.zeros(8), "eap", prior_sd=sd).prior[1] == pytest.approx(sd)


def weighted_height(grid, thresholds, score):
    """log-likelihood of a score plus half the logarithm of the information, of items with these thresholds."""
    height = score * grid
    information = np.zeros(len(grid))
    for own in thresholds:
        category = np.arange(len(own) + 1)[:, None]
        log_p = category * grid - np.concatenate([[0.0], np.cumsum(own)])[:, None]
        total = np.logaddexp.reduce(log_p, axis=0)
        p = np.exp(log_p - total)
        height = height - total
        information += (p * category**2).sum(axis=0) - (p * category).sum(axis=0) ** 2
    return height + np.log(information) / 2


@pytest.mark.parametrize("gap", [1.2, 2.5, 3.8, 4.5, 9.0, 25.0])
@pytest.mark.parametrize("offsets", [(0.0,), (1.0, -1.0), (2.0, 0.0, -2.0), (-0.5, 0.5), (0.0, 0.1, 0.2, 0.3)])
@pytest.mark.parametrize("sides", [(1, 1), (2, 1), (1, 3)])
def test_warm_takes_the_highest_of_all_maxima_of_ordered_items(gap, offsets, sides):
    """Against a grid: thresholds that are close, or in reverse order, make two maxima where the gap is small."""
    below, above = sides
    places = np.concatenate([-gap / 2 - 0.1 * np.arange(below), gap / 2 + 0.1 * np.arange(above)])
    thresholds = places[:, None] + np.array(offsets)
    most, n_items = len(offsets), below + above
    rows = []
    for score in range(1, most * n_items):
        row = np.clip(score - most * np.arange(n_items), 0, most)
        rows.append(row)
    # Everybody has the categories that there are.
    rows += [np.full(n_items, category) for category in range(most + 1)]
    responses = Responses.from_wide(np.array(rows, dtype=float), ordered=most > 1)
    found = abilities(responses, thresholds.ravel(), "wle").ability
    grid = np.linspace(-gap / 2 - 8, gap / 2 + 8, 20_001)
    for score in range(1, most * n_items):
        height = weighted_height(grid, thresholds, score)
        best = height.max()
        assert weighted_height(found[score - 1 : score], thresholds, score)[0] >= best - 1e-7
