"""Q3 and components of residuals: by their definitions, and what they show."""

import numpy as np
import pytest

from spectral_irt import SpectralRasch, simulate
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.dimensions import q3
from spectral_irt.persons import abilities
from split import in_blocks

pytestmark = pytest.mark.slow  # many short ones: seconds together


def residuals(responses, beta, standardized=False):
    """People x items, NaN where there is no answer."""
    theta = abilities(responses, beta).ability
    p = 1 / (1 + np.exp(beta - theta[:, None]))
    r = responses.to_dense() - p
    return r / np.sqrt(p * (1 - p)) if standardized else r


def loop_correlations(r, min_people):
    m = r.shape[1]
    out, n = np.full((m, m), np.nan), np.zeros((m, m), dtype=int)
    for i in range(m):
        for j in range(m):
            both = np.isfinite(r[:, i]) & np.isfinite(r[:, j])
            n[i, j] = both.sum()
            if n[i, j] >= min_people:
                out[i, j] = np.corrcoef(r[both, i], r[both, j])[0, 1]
    return out, n


@pytest.mark.parametrize("p", [1.0, 0.6, 0.05])
def test_correlations_equal_loops(p):
    data = simulate.rasch(400, 9, design="sampled", p=p, seed=1)
    responses = in_blocks(data.responses, 150)
    theta = abilities(responses, data.difficulty).ability
    matrices = q3.residual_matrices(responses, data.difficulty, theta, standardized=False)
    found, n = q3.correlations(matrices, min_people=5)
    expected, counts = loop_correlations(residuals(responses, data.difficulty), 5)
    np.testing.assert_array_equal(n, counts)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_pairs_are_sorted_and_centered():
    data = simulate.rasch(300, 8, design="sampled", p=0.7, seed=2)
    fit = SpectralRasch().fit(data.responses)
    found = fit.analyse(data.responses).local_dependence()
    table = found.table()
    slow = loop_correlations(residuals(data.responses, fit.difficulty_), 30)[0][np.triu_indices(8, 1)]
    assert found.mean == pytest.approx(slow.mean())
    assert found.q3_star == pytest.approx(slow.max() - slow.mean())
    np.testing.assert_allclose(np.sort(table["q3"]), np.sort(slow))
    assert (np.diff(table["z"]) <= 0).all()
    assert table["excess"].sum() == pytest.approx(0, abs=1e-10)


def test_components_are_eigenvalues_of_the_correlations(monkeypatch):
    monkeypatch.setattr(q3, "COMPONENTS", 8)
    data = simulate.rasch(300, 8, seed=3)
    fit = SpectralRasch().fit(data.responses)
    found = fit.analyse(data.responses).local_dependence()
    r = loop_correlations(residuals(data.responses, fit.difficulty_, standardized=True), 30)[0]
    np.testing.assert_allclose(found.eigenvalues, np.linalg.eigvalsh(r)[::-1], atol=1e-10)
    loadings = found.component_loadings
    np.testing.assert_allclose(loadings @ loadings.T, r, atol=1e-10)
    assert found.loadings().columns == ["item"] + [f"component_{k}" for k in range(1, 9)]


def test_of_very_many_items_those_answered_most_are_looked_at(monkeypatch):
    table = simulate.rasch(300, 12, seed=4).responses.to_dense()
    table[:150, ::2] = np.nan
    fit = SpectralRasch().fit(table)
    whole = fit.analyse(table).local_dependence()
    monkeypatch.setattr(q3, "ITEMS", 6)
    some = fit.analyse(table).local_dependence()
    assert some.items.tolist() == [1, 3, 5, 7, 9, 11]
    np.testing.assert_allclose(some.matrix, whole.matrix[1::2, 1::2], atol=1e-12)


def test_items_without_difficulty_are_left_out():
    table = simulate.rasch(200, 6, seed=6).responses.to_dense()
    table[:, 2] = 1
    fit = SpectralRasch(regularization=0).fit(table)
    found = fit.analyse(table).local_dependence()
    assert len(found.pairs[0]) == 10
    assert np.isnan(found.component_loadings[2]).all()


def dependent_data(seed):
    """Twelve items; three in ten people answer item 8 as they answered item 3."""
    table = simulate.rasch(800, 12, seed=seed).responses.to_dense()
    copied = np.random.default_rng(seed).random(800) < 0.3
    table[copied, 8] = table[copied, 3]
    return table


def test_a_dependent_pair_and_a_second_dimension_are_seen():
    table = dependent_data(8)
    rows = SpectralRasch().fit(table).analyse(table).local_dependence().table()
    assert rows["dependent"].to_list() == [k == 0 for k in range(66)]
    assert (rows["item_1"][0], rows["item_2"][0]) == (3, 8)
    assert rows["p"][0] < 1e-6
    first, second = (simulate.rasch(1000, 8, seed=seed).responses.to_dense() for seed in (1, 2))
    table = np.hstack([first, second])
    found = SpectralRasch().fit(table).analyse(table).local_dependence()
    assert found.eigenvalues[0] > max(2.0, found.noise)
    loading = found.component_loadings[:, 0]
    assert (np.sign(loading[:8]) == np.sign(loading[0])).all()
    assert (np.sign(loading[8:]) == -np.sign(loading[0])).all()


def test_bad_options():
    data = simulate.rasch(100, 5, seed=10).responses
    fit = SpectralRasch().fit(data)
    for options, text in [({"min_people": 2}, "`min_people` is 2"), ({"sample": 5}, "`sample` is 5")]:
        with pytest.raises(OptionError, match=text):
            fit.analyse(data).local_dependence(**options)
    with pytest.raises(DesignError, match="no two items have 200 people in common"):
        fit.analyse(data).local_dependence(min_people=200)
