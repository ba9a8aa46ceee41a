"""The order of items and of people, and how sure it is."""

import math

import numpy as np
import pytest

from spectral_irt import SpectralPartialCredit, SpectralRasch, datasets, simulate
from spectral_irt.analysis.cache import columns_of
from spectral_irt.calibration import Z95
from spectral_irt.errors import NotFittedError, OptionError
from spectral_irt.inference.ranks import intervals
from spectral_irt.inference.ranks import items as module
from spectral_irt.inference.ranks.intervals import order_p, person_ranks, square_root
from spectral_irt.inference.ranks.items import Likely, drawn_ranks, item_ranks, likely_places, middle

# Monte Carlo: 4,000 draws leave a standard deviation of at most 0.008.
TOLERANCE = 0.03


def normal(mean, sd):
    places = np.arange(-8, 8.05, 0.1)
    return Likely(mean, sd, np.tile(places, (len(mean), 1)))


def test_table_of_lsat_and_what_cannot_be_asked():
    lsat = datasets.load_lsat()
    study = SpectralRasch().fit(lsat).analyse(lsat)
    table = study.ranking(top=2)
    assert table["rank"].to_list() == [1, 2, 3, 4, 5]
    assert table["item"].to_list() == ["item3", "item2", "item4", "item5", "item1"]
    np.testing.assert_allclose(table["lower"], table["difficulty"] - Z95 * table["se"])
    assert table["p_top"].sum() == pytest.approx(2)
    assert study.ranking("difficulty", 2)["item"].to_list() == table["item"].to_list()
    assert study.location_covariance() is not None
    with pytest.raises(OptionError, match="`by` is 'upper'; it can be 'difficulty', 'lower'"):
        study.ranking(by="upper")
    for top in (0, -1, 2.5, True):
        with pytest.raises(OptionError, match="`top` is"):
            study.ranking(top=top)
    bare = SpectralRasch(se="none").fit(lsat).analyse(lsat)
    with pytest.raises(OptionError, match=r"no standard errors.* rank by difficulty"):
        bare.ranking(by="lower")
    assert bare.ranking(by="difficulty")["item"][0] == "item3"
    with pytest.raises(NotFittedError):
        SpectralRasch().analyse(lsat).ranking()


def test_by_lower_puts_the_unsure_behind():
    dense = simulate.rasch(400, 12, seed=3, difficulty_sd=0.3).responses.to_dense()
    dense[6:, 0], dense[:6, 0], dense[:6, 1] = np.nan, [0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 0]
    study = SpectralRasch(regularization=0).fit(dense).analyse(dense)
    for by, first in (("difficulty", True), ("lower", False)):
        assert (study.ranking(by=by)["item"][0] == 0) == first
        assert np.all(np.diff(study.ranking(by=by)[by].to_numpy()) <= 0)
    hard, safe = (dict(study.ranking(by, 1).select("item", "p_top").iter_rows()) for by in ("difficulty", "lower"))
    assert hard == safe


def test_unanswered_last_and_extreme_marked():
    answers = np.array([[1, 0, 1, 0], [1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 1, 0.0]])
    answers = np.column_stack([answers, np.full(5, np.nan)])
    with_prior = SpectralRasch().fit(answers).analyse(answers).ranking(top=1)
    last = with_prior.row(-1, named=True)
    assert (last["item"], last["status"], last["rank_low"], last["rank_high"]) == (4, "no responses", 1, 5)
    assert np.isnan([last["difficulty"], last["p_top"]]).all()
    assert dict(zip(with_prior["item"], with_prior["status"], strict=True))[3] == "all wrong"
    # Without a prior nothing is known of item 3 either, but it was answered.
    without = SpectralRasch(regularization=0).fit(answers).analyse(answers).ranking()
    assert without["item"].to_list()[-2:] == [3, 4]
    assert without["status"].to_list()[-2:] == ["all wrong", "no responses"]


def brute_force(mean, sd, top):
    """P(among the top) of independent normals, by integration over the item's own value."""
    x, w = np.polynomial.hermite_e.hermegauss(120)
    w = w / w.sum()
    out = []
    for i in range(len(mean)):
        total = 0.0
        for node, weight in zip(mean[i] + sd[i] * x, w, strict=True):
            above = [1.0]  # distribution of the number of others above the node
            for j in range(len(mean)):
                if j != i:
                    q = 1 - 0.5 * (1 + math.erf((node - mean[j]) / (sd[j] * np.sqrt(2))))
                    above = [a * (1 - q) + b * q for a, b in zip([*above, 0.0], [0.0, *above], strict=True)]
            total += weight * sum(above[:top])
        out.append(total)
    return np.array(out)


@pytest.mark.parametrize("top", [1, 2, 4])
def test_probabilities_of_independent_items(top):
    mean, sd = np.array([1.0, 0.8, 0.5, -0.2, -1.0]), np.array([0.2, 0.8, 0.3, 1.0, 0.1])
    found = np.mean(drawn_ranks(normal(mean, sd), rng=np.random.default_rng(1)) <= top, axis=0)
    np.testing.assert_allclose(found, brute_force(mean, sd, top), atol=TOLERANCE)
    assert found.sum() == pytest.approx(top)


def test_draws_use_the_covariance():
    """Two items that err together are told apart much more surely than their standard errors say."""
    mean, sd = np.array([0.3, 0.0, -9.0]), np.array([1.0, 1.0, 0.1])
    together = np.array([[1.0, 0.995, 0.0], [0.995, 1.0, 0.0], [0.0, 0.0, 0.01]])
    rng = np.random.default_rng(2)
    # The difference of the two has standard deviation 0.1 if they err together, 1.4 if not.
    ranks = drawn_ranks(normal(mean, sd), covariance=together, rng=rng)
    assert np.mean(ranks[:, 0] == 1) == pytest.approx(0.9987, abs=TOLERANCE / 10)
    assert [x.tolist() for x in middle(ranks)] == [[1, 2, 3], [1, 2, 3]]
    alone = drawn_ranks(normal(mean, sd), rng=rng)
    assert np.mean(alone[:, 0] == 1) == pytest.approx(0.584, abs=TOLERANCE)
    assert [x.tolist() for x in middle(alone)] == [[1, 1, 3], [2, 2, 3]]


def test_draws_use_the_covariance_of_items_that_err_unlike():
    """The difference has the variance .04 + .01 - 2 cov: a standard deviation of .1, or of .22 without covariance."""
    mean, sd = np.array([0.1, 0.0, -9.0]), np.array([0.2, 0.1, 0.01])
    for covariance in (0.0199, 0.0, -0.0199):
        matrix = np.diag(sd**2)
        matrix[0, 1] = matrix[1, 0] = covariance
        ranks = drawn_ranks(normal(mean, sd), covariance=matrix, rng=np.random.default_rng(2))
        z = 0.1 / np.sqrt(0.05 - 2 * covariance)
        assert np.mean(ranks[:, 0] == 1) == pytest.approx(0.5 * (1 + math.erf(z / np.sqrt(2))), abs=TOLERANCE)


def test_anchored_items_do_not_err():
    responses = simulate.rasch(200, 6, seed=1).responses
    made = SpectralRasch().fit(responses).calibration_
    fixed = made.replace(threshold_se=np.zeros(6), threshold_covariance=np.zeros((6, 6)))
    for covariance in (None, np.zeros((6, 6))):
        found = item_ranks(fixed, covariance, top=2)
        rank = 6 - np.argsort(np.argsort(made.difficulty))
        for bound in (found["rank_low"], found["rank_high"]):
            np.testing.assert_array_equal(bound, rank)


def test_normal_spread_is_the_normal_posterior():
    """Many equally sure items from a normal spread: the posterior mean is the estimate, shrunk by the known factor."""
    rng = np.random.default_rng(4)
    beta = rng.normal(0.5, 1.0, size=5_000)
    x = beta + 0.8 * rng.normal(size=5_000)
    found = likely_places(np.full(5_000, 0.8**-2), x * 0.8**-2)
    few = np.arange(200)
    draws = Likely(found.center[few], found.sd[few], found.quantile[few]).draws(rng.standard_normal((4000, 200)))
    shrunk = 0.5 + (x[few] - 0.5) / (1 + 0.64)
    inner = np.abs(x[few] - 0.5) < 2.5  # beyond, few items tell what the spread is
    # Monte Carlo 0.01 per item; the learned spread is off by a few hundredths.
    np.testing.assert_allclose(draws.mean(axis=0)[inner], shrunk[inner], atol=0.1)
    np.testing.assert_allclose(draws.std(axis=0)[inner], 0.8 / np.sqrt(1.64), atol=0.1)


def test_two_clusters_are_found():
    """Items at 0 and at 3: an estimate of 2 is likelier a 3, which a normal spread would put below 2."""
    rng = np.random.default_rng(5)
    beta = np.where(rng.random(2000) < 0.3, 3.0, 0.0)
    x = beta + 0.7 * rng.normal(size=2000)
    x[0] = 2.0
    found = likely_places(np.full(2000, 0.7**-2), x * 0.7**-2)
    one = Likely(found.center[:1], found.sd[:1], found.quantile[:1])
    assert one.draws(rng.standard_normal((4000, 1))).mean() > 2.1


def test_what_a_prior_added_is_taken_away():
    responses = simulate.rasch(300, 30, design="sampled", p=0.2, seed=2).responses
    top = []
    for alpha in (0.5, 3.0):
        fit = SpectralRasch(regularization=alpha).fit(responses)
        top.append(item_ranks(fit.calibration_, fit.covariance(), top=5))
    np.testing.assert_allclose(top[0]["p_top"], top[1]["p_top"], atol=3 * TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["long tail", "crowded", "t3"])
def test_probability_of_the_top_is_calibrated(shape):
    """Of items in the top with probability 0.5 to 0.95 about so many are, be the difficulties normal or not."""
    p, hit = [], []
    for seed in range(15):
        rng = np.random.default_rng([1, seed])
        tail = rng.exponential(size=100)
        beta = {"long tail": tail, "crowded": -tail, "t3": rng.standard_t(3, size=100) / np.sqrt(3)}[shape]
        data = simulate.rasch(1000, design="sampled", p=0.06, difficulty=beta, seed=seed)
        fit = SpectralRasch().fit(data.responses)
        p.append(item_ranks(fit.calibration_, fit.covariance(), top=15)["p_top"])
        hit.append(100 - np.argsort(np.argsort(beta)) <= 15)
    chance, top = np.concatenate(p), np.concatenate(hit)
    here = (chance > 0.5) & (chance < 0.95)
    # Items of one data set are not independent; 0.1 is about three standard errors of the share.
    assert top[here].mean() == pytest.approx(chance[here].mean(), abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("design", [{"n_persons": 300, "n_items": 20}, {"n_persons": 400, "n_items": 60, "p": 0.2}])
def test_rank_intervals_cover(design):
    covered, width = [], []
    for seed in range(20):
        data = simulate.rasch(**design, design="sampled" if "p" in design else "complete", seed=seed)
        fit = SpectralRasch().fit(data.responses)
        found = item_ranks(fit.calibration_, fit.covariance())
        rank = len(data.difficulty) - np.argsort(np.argsort(data.difficulty))
        low, high = found["rank_low"], found["rank_high"]
        covered.append(np.mean((low <= rank) & (rank <= high)))
        width.append(np.mean(high - low) / len(rank))
    assert np.mean(covered) >= 0.94
    assert np.mean(width) < 0.5


@pytest.mark.slow
def test_large_as_small(monkeypatch):
    data = simulate.rasch(3000, 150, design="sampled", p=0.2, seed=5)
    study = SpectralRasch().fit(data.responses).analyse(data.responses)
    small = item_ranks(study.calibration, study.location_covariance(), top=20)
    for name, value in (("CELLS", 1000), ("CHUNK", 40)):
        monkeypatch.setattr(module, name, value)
    study = SpectralRasch(se="one-pass").fit(data.responses).analyse(data.responses)
    assert study.location_covariance() is None
    large = item_ranks(study.calibration, study.location_covariance(), top=20)
    np.testing.assert_allclose(large["p_top"], small["p_top"], atol=TOLERANCE + 0.01)
    for name in ("rank_low", "rank_high"):
        assert np.max(np.abs(large[name] - small[name])) <= 5


def test_root_of_a_singular_covariance():
    centering = np.eye(30) - 1 / 30
    for off in (0.0, 1e-6):  # the second one is indefinite
        root = square_root(centering - off / 30)
        np.testing.assert_allclose(root @ root.T, centering, atol=1e-8 + 10 * off)


@pytest.mark.parametrize("correlated", [False, True])
def test_in_one_step_p_is_that_of_the_largest_error_of_all_pairs(correlated, monkeypatch):
    """Leaving out pairs loses none, with very different standard errors and with blocks of items that err together."""
    rng = np.random.default_rng(2)
    m = 150
    covariance = np.diag(rng.lognormal(-2, 1.5, size=m))
    if correlated:
        covariance += 0.8 * np.kron(np.eye(3), np.ones((50, 50)))
    se = np.sqrt(np.diag(covariance))
    for name, value in {"DRAWS": 50, "STEP_DOWN": 100, "FARTHEST": 4}.items():
        monkeypatch.setattr(intervals, name, value)
    beta = rng.normal(size=m)
    width, z, p = order_p(beta, se, covariance=covariance if correlated else None, rng=np.random.default_rng(3))
    noise = np.random.default_rng(3).standard_normal((50, m))
    errors = noise @ square_root(covariance).T if correlated else noise * se
    apart = np.array([[[a - b for b in error] for a in error] for error in errors]) / width
    largest = np.abs(apart).max(axis=(1, 2))
    pairs = rng.integers(0, m, size=(200, 2))
    for i, j in pairs[pairs[:, 0] != pairs[:, 1]]:
        assert p[i, j] == pytest.approx((1 + np.sum(largest >= abs(z[i, j]))) / 51)
    assert (np.diag(p) == 1).all()


def test_wrong_orders_are_as_rare_as_said():
    """Pairs of nearly equal people far from all others: any wrong order makes a rank wrong, and still 95% are right."""
    rng = np.random.default_rng(6)
    ability = np.repeat(np.arange(10) * 10.0, 2) + np.tile([0.0, 1e-6], 10)
    rank = 20 - np.argsort(np.argsort(ability))
    inside = []
    for seed in range(100):
        found = person_ranks(ability + rng.normal(size=20), np.ones(20), seed=seed)
        inside.append(np.all((found["rank_low"] <= rank) & (rank <= found["rank_high"])))
    assert np.mean(inside) >= 0.93  # 0.97 expected: half of the errors put a pair in the wrong order


def test_places_ties_and_people_without_an_ability():
    ability = np.array([0.5, 2.0, np.nan, 0.5, -np.inf, -3.0])
    found = person_ranks(ability, np.array([0.1, 0.1, np.nan, 0.1, np.inf, 0.1]))
    assert found["rank"].tolist() == [2, 1, 0, 2, 0, 4]
    assert found["rank_low"].tolist() == [2, 1, 0, 2, 0, 4]
    assert found["rank_high"].tolist() == [3, 1, 0, 3, 0, 4]
    np.testing.assert_allclose(found["ci_high"][[0, 5]] - ability[[0, 5]], 1.959964 * 0.1, rtol=1e-6)
    assert np.isnan(found["ci_low"][[2, 4]]).all()
    for number in (0, 1, 6000):  # nobody, one alone, and too many
        assert set(person_ranks(np.zeros(number), np.ones(number))["rank_high"]) == ({number} if number else set())


def test_ranks_of_many_people_hold_at_once():
    rng, missed = np.random.default_rng(5), 0
    for _ in range(100):
        ability, se = rng.normal(size=1500) * 3, rng.uniform(0.1, 0.3, 1500)
        found = person_ranks(ability + se * rng.normal(size=1500), se)
        true = 1 + np.argsort(np.argsort(-ability))
        missed += bool(np.any((found["rank_low"] > true) | (true > found["rank_high"])))
    assert missed <= 10
    assert np.mean(found["rank_high"] - found["rank_low"]) < 750
    assert np.all((found["rank_low"] <= found["rank"]) & (found["rank"] <= found["rank_high"]))


@pytest.mark.slow
def test_few_people_many_items():
    ability = np.linspace(-0.5, 0.5, 8)
    missed = 0
    for seed in range(60):
        data = simulate.rasch(8, 400, ability=ability, seed=seed).responses
        table = columns_of(SpectralRasch(se="none").fit(data).analyse(data).person_ranking)
        assert table["rank"].tolist() == sorted(table["rank"].tolist())
        true_rank = 8 - np.array([int(person) for person in table["person"]])
        missed += bool(np.any((table["rank_low"] > true_rank) | (table["rank_high"] < true_rank)))
    assert missed <= 7  # 3 expected at most, 1.7 the se


def test_ranks_of_ordered_items_go_by_the_covariance_of_their_locations():
    """Few thresholds and many: the means of the blocks of the covariance of the thresholds, by plain loops."""
    for categories in (4, 6):  # 18 thresholds, which a calibration keeps, and 30, which the estimator keeps
        responses = simulate.partial_credit(300, 6, categories=categories, seed=2).responses
        fit = SpectralPartialCredit().fit(responses)
        study, size = fit.analyse(responses), categories - 1
        by_loops = np.empty((6, 6))
        for i in range(6):
            for j in range(6):
                own = fit.covariance()[i * size : (i + 1) * size, j * size : (j + 1) * size]
                by_loops[i, j] = own.mean()
        np.testing.assert_allclose(study.location_covariance(), by_loops, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(np.sqrt(np.diag(by_loops)), fit.se_, rtol=1e-8)
        np.testing.assert_allclose(fit.location_covariance(), by_loops, rtol=1e-10, atol=1e-14)
        if categories == 4:
            np.testing.assert_allclose(fit.calibration_.location_covariance, by_loops, rtol=1e-10, atol=1e-14)
        order = np.argsort(-fit.difficulty_)
        expected = item_ranks(fit.calibration_, by_loops, 2, seed=3)["p_top"][order]
        np.testing.assert_allclose(study.ranking(top=2, seed=3)["p_top"], expected)
