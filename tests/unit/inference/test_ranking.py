"""The order of items, and how sure it is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spectral_irt import ConditionalRasch, JointRasch, SpectralRasch, datasets, simulate
from spectral_irt.analysis import analysis
from spectral_irt.calibration import Z95
from spectral_irt.errors import NotFittedError, OptionError
from spectral_irt.inference import ranking as module
from spectral_irt.inference.ranking import rank_intervals, rank_items, top_probabilities

# Monte Carlo: 4,000 draws leave a standard deviation of at most 0.008.
TOLERANCE = 0.03

COLUMNS = ["rank", "item", "difficulty", "se", "lower", "rank_low", "rank_high", "p_top", "n", "status"]


def test_table_of_lsat() -> None:
    lsat = datasets.load_lsat()
    study = SpectralRasch().fit(lsat).analyse(lsat)
    table = study.ranking(top=2)
    assert table.columns == COLUMNS
    assert table["rank"].to_list() == [1, 2, 3, 4, 5]
    assert table["item"].to_list() == ["item3", "item2", "item4", "item5", "item1"]
    np.testing.assert_allclose(table["lower"], table["difficulty"] - Z95 * table["se"])
    assert table["p_top"].sum() == pytest.approx(2)
    assert study.ranking("difficulty", 2)["item"].to_list() == table["item"].to_list()
    assert rank_items(study.calibration, study.covariance()).correlated


def test_by_lower_puts_the_unsure_behind() -> None:
    """An item that six people rated comes before all by its estimate, and not by the lower end of its interval."""
    data = simulate.rasch(400, 12, seed=3, difficulty_sd=0.3)
    dense = data.responses.to_dense()
    dense[6:, 0] = np.nan
    dense[:6, 0] = [0, 0, 0, 0, 0, 1]
    dense[:6, 1] = [1, 1, 1, 1, 1, 0]
    study = SpectralRasch(regularization=0).fit(dense).analyse(dense)
    assert study.ranking(by="difficulty")["item"][0] == 0
    assert study.ranking(by="lower")["item"][0] != 0
    for by in ("difficulty", "lower"):
        table = study.ranking(by=by)
        key = table[by].to_numpy()
        assert np.all(np.diff(key) <= 0)


def test_unanswered_last_and_extreme_marked() -> None:
    answers = np.array(
        [
            [1, 0, 1, 0, np.nan],
            [1, 1, 0, 0, np.nan],
            [0, 1, 1, 0, np.nan],
            [1, 0, 0, 0, np.nan],
            [0, 0, 1, 0, np.nan],
        ]
    )
    with_prior = SpectralRasch().fit(answers).analyse(answers).ranking(top=1)
    assert with_prior["item"].to_list()[-1] == 4
    assert with_prior["status"].to_list()[-1] == "no responses"
    last = with_prior.row(-1, named=True)
    assert np.isnan(last["difficulty"])
    assert np.isnan(last["p_top"])
    assert (last["rank_low"], last["rank_high"]) == (1, 5)
    assert dict(zip(with_prior["item"], with_prior["status"], strict=True))[3] == "all wrong"
    # Without a prior nothing is known of item 3 either, but it was answered.
    without = SpectralRasch(regularization=0).fit(answers).analyse(answers).ranking()
    assert without["item"].to_list()[-2:] == [3, 4]
    assert without["status"].to_list()[-2:] == ["all wrong", "no responses"]


def brute_force(mean: np.ndarray, sd: np.ndarray, top: int) -> np.ndarray:
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
def test_probabilities_of_independent_items(top: int) -> None:
    mean, sd = np.array([1.0, 0.8, 0.5, -0.2, -1.0]), np.array([0.2, 0.8, 0.3, 1.0, 0.1])
    found = top_probabilities(mean, sd, top, rng=np.random.default_rng(1))
    np.testing.assert_allclose(found, brute_force(mean, sd, top), atol=TOLERANCE)
    assert found.sum() == pytest.approx(top)


def test_probabilities_and_intervals_use_the_covariance() -> None:
    """Two items that err together are told apart much more surely than their standard errors say."""
    mean, sd = np.array([0.3, 0.0, -9.0]), np.array([1.0, 1.0, 0.1])
    together = np.array([[1.0, 0.995, 0.0], [0.995, 1.0, 0.0], [0.0, 0.0, 0.01]])
    rng = np.random.default_rng(2)
    # The difference of the two has standard deviation 0.1 if they err together, 1.4 if not.
    p = top_probabilities(mean, sd, 1, covariance=together, rng=rng)
    assert p[0] == pytest.approx(0.9987, abs=TOLERANCE / 10)
    low, high = rank_intervals(mean, sd, covariance=together, rng=rng)
    assert (low.tolist(), high.tolist()) == ([1, 2, 3], [1, 2, 3])
    alone = top_probabilities(mean, sd, 1, rng=rng)
    assert alone[0] == pytest.approx(0.584, abs=TOLERANCE)
    low, high = rank_intervals(mean, sd, rng=rng)
    assert (low.tolist(), high.tolist()) == ([1, 1, 3], [2, 2, 3])


def test_more_asked_than_there_are() -> None:
    assert top_probabilities(np.arange(3.0), np.ones(3), 5, rng=np.random.default_rng(0)).tolist() == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("design", [{"n_users": 300, "n_items": 20}, {"n_users": 400, "n_items": 60, "p": 0.2}])
def test_rank_intervals_cover(design: dict[str, float]) -> None:
    covered, width = [], []
    for seed in range(20):
        data = simulate.rasch(**design, design="sampled" if "p" in design else "complete", seed=seed)  # type: ignore[arg-type]
        fit = SpectralRasch().fit(data.responses)
        found = rank_items(fit.calibration_, fit.covariance())
        rank = len(data.difficulty) - np.argsort(np.argsort(data.difficulty))
        covered.append(np.mean((found.rank_low <= rank) & (rank <= found.rank_high)))
        width.append(np.mean(found.rank_high - found.rank_low) / len(rank))
    assert np.mean(covered) >= 0.94
    assert np.mean(width) < 0.5


def test_large_as_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Independent errors, and few draws at a time, change little where items are many."""
    data = simulate.rasch(3000, 150, design="sampled", p=0.2, seed=5)
    study = SpectralRasch().fit(data.responses).analyse(data.responses)
    small = rank_items(study.calibration, study.covariance(), top=20)
    monkeypatch.setattr(analysis, "DENSE_ITEMS", 100)
    monkeypatch.setattr(module, "CELLS", 1000)
    study = SpectralRasch(se="one-pass").fit(data.responses).analyse(data.responses)
    assert study.covariance() is None
    large = rank_items(study.calibration, study.covariance(), top=20)
    assert small.correlated
    assert not large.correlated
    np.testing.assert_allclose(large.p_top, small.p_top, atol=TOLERANCE + 0.01)
    assert np.max(np.abs(large.rank_low - small.rank_low)) <= 5
    assert np.max(np.abs(large.rank_high - small.rank_high)) <= 5


def test_same_seed_same_table() -> None:
    responses = simulate.rasch(200, 30, seed=1).responses
    fit = SpectralRasch().fit(responses)
    assert fit.analyse(responses).ranking(seed=4).equals(fit.analyse(responses).ranking(seed=4))


@pytest.mark.parametrize("estimator", [ConditionalRasch(), JointRasch()])
def test_other_estimators(estimator) -> None:  # type: ignore[no-untyped-def]
    responses = simulate.rasch(300, 8, seed=1).responses
    table = estimator.fit(responses).analyse(responses).ranking(top=3)
    assert table["p_top"].sum() == pytest.approx(3)


def test_frames_go_out_as_they_came_in() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1, 0, 1], "b": [0, 1, 1], "c": [0, 0, 1]})
    assert isinstance(SpectralRasch().fit(frame).analyse(frame).ranking(), pd.DataFrame)


def test_what_cannot_be_asked() -> None:
    lsat = datasets.load_lsat()
    study = SpectralRasch().fit(lsat).analyse(lsat)
    with pytest.raises(OptionError, match="by is 'upper'; it can be 'lower', 'difficulty'"):
        study.ranking(by="upper")
    for top in (0, -1, 2.5, True):
        with pytest.raises(OptionError, match="top is"):
            study.ranking(top=top)
    bare = SpectralRasch(se="none").fit(lsat).analyse(lsat)
    with pytest.raises(OptionError, match=r"no standard errors.* rank by='difficulty'"):
        bare.ranking(by="lower")
    assert bare.ranking(by="difficulty")["item"][0] == "item3"
    assert bare.ranking().equals(bare.ranking(by="difficulty"))  # all that is left where nothing was said
    with pytest.raises(NotFittedError):
        SpectralRasch().analyse(lsat).ranking()
