"""Survey weights: what they are worth, that they count, and what is refused."""

import numpy as np
import pytest

from spectral_irt import Responses, SpectralRasch, simulate
from spectral_irt.errors import OptionError


def test_equal_weights_change_nothing():
    data = simulate.rasch(400, 10, design="sampled", p=0.6, seed=1).responses
    plain, weighted = SpectralRasch().fit(data), SpectralRasch().fit(data, weights=np.full(400, 3.7))
    np.testing.assert_allclose(weighted.difficulty_, plain.difficulty_, atol=1e-10)
    np.testing.assert_allclose(weighted.se_, plain.se_, rtol=1e-8)
    assert "400 people of equal weight" in next(f.sentence for f in weighted.findings_ if f.code == "weights")


@pytest.mark.parametrize("se", ["dense", "one-pass"])
def test_whole_weights_are_people_repeated(se):
    """As if each had come so often; but the errors know that they are the same people."""
    table = simulate.rasch(500, 30, design="sampled", p=0.5, seed=2).responses.to_dense()
    weights = np.random.default_rng(1).integers(1, 4, 500)
    weighted = SpectralRasch(regularization=0, se=se).fit(table, weights=weights)
    repeated = SpectralRasch(regularization=0, se=se).fit(np.repeat(table, weights, axis=0))
    np.testing.assert_allclose(weighted.difficulty_, repeated.difficulty_, atol=1e-4)
    # Repeats have sum w g^2 where the truth is sum w^2 g^2: with weights of 1 to 3, by mean(w^2) / mean(w) more.
    expected = np.sqrt(np.mean(weights**2) / np.mean(weights))
    assert np.median(weighted.se_ / repeated.se_) == pytest.approx(expected, rel=0.03)


@pytest.mark.slow
def test_weights_undo_a_skewed_sample():
    """Two strata, in one of which half of the items are harder by a logit; the first is sampled nine times as often."""
    beta = np.linspace(-1.5, 1.5, 12)
    shift = np.where(np.arange(12) % 2, 0.5, -0.5)
    rng = np.random.default_rng(7)

    def draw(people, stratum):
        difficulty = beta + (shift if stratum else 0)
        return (rng.random((people, 12)) < 1 / (1 + np.exp(difficulty - rng.normal(size=(people, 1))))).astype(float)

    whole = SpectralRasch(regularization=0).fit(np.vstack([draw(40_000, 0), draw(40_000, 1)])).difficulty_
    inside, outside = [], []
    weights = np.r_[np.full(900, 1.0), np.full(100, 9.0)]
    for _ in range(60):
        sample = np.vstack([draw(900, 0), draw(100, 1)])
        plain, fit = SpectralRasch().fit(sample), SpectralRasch().fit(sample, weights=weights)
        inside.append(np.abs(fit.difficulty_ - whole) < 1.96 * fit.se_)
        outside.append(np.abs(plain.difficulty_ - whole) < 1.96 * plain.se_)
    # 60 samples of 12 correlated items: a standard error of about .012.
    assert 0.91 < np.mean(inside) < 0.98
    assert np.mean(outside) < 0.5


def test_blocks_do_not_matter():
    from split import in_blocks

    data = simulate.rasch(300, 8, seed=3).responses
    weights = np.random.default_rng(2).uniform(0.2, 5, 300)
    one, many = (SpectralRasch().fit(each, weights=weights) for each in (data, in_blocks(data, 23)))
    np.testing.assert_allclose(one.difficulty_, many.difficulty_, atol=1e-9)
    np.testing.assert_allclose(one.se_, many.se_, rtol=1e-8)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, 2], "there are 2 weights for 3 people"),
        ([1, 0, np.nan], "2 people have no weight above zero: 1, 2"),
        (["a", "b", "c"], "not all numbers"),
    ],
)
def test_what_is_no_weight(weights, words):
    data = Responses.from_wide([[1, 0, 1], [0, 1, 1], [1, 1, 0]])
    with pytest.raises(OptionError, match=words):
        SpectralRasch().fit(data, weights=weights)


def test_where_weights_have_no_place():
    data = simulate.rasch(60, 5, seed=1).responses
    with pytest.raises(OptionError, match="Newton steps only"):
        SpectralRasch(refine=False).fit(data, weights=np.ones(60))
