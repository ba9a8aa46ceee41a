"""Work is done in pieces that bound the memory, or fit a cache: of whatever size they are, the numbers are the same."""

from functools import lru_cache
from importlib import import_module

import numpy as np
import pytest

import spectral_irt as si
from ratings import simulated
from spectral_irt import simulate
from spectral_irt.conditional.exact_likelihood import ExactLikelihood, information_at
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.linear import unidentified_directions
from spectral_irt.inference.ranks.items import drawn_ranks, likely

# Where a constant says how many at a time, and a value that makes many small pieces, or another way to the same sums.
PIECES = {
    "right or wrong": [
        ("inference.fit.mean_squares.CACHED", 40),
        ("inference.items.rest_ability.CACHED", 40),
        ("persons.abilities.CACHED", 40),
        ("persons.residuals.CACHED", 40),
        ("conditional.exact.TILE_CELLS", 1),
        ("conditional.exact.TREE_CELLS", 0),
        ("conditional.exact_likelihood.CELLS", 1),
    ],
    "ordered": [
        ("inference.fit.mean_squares.CACHED", 40),
        ("persons.abilities.CACHED", 40),
        ("persons.residuals.CACHED", 40),
        ("conditional.exact.TILE_CELLS", 1),
        ("conditional.exact.TREE_CELLS", 0),
        ("conditional.exact_likelihood.CELLS", 1),
        ("conditional.series_tables.CACHED", 8),
        ("conditional.series_tables.AT_ONCE", 1),
        ("conditional.series_tables.AT_ONCE", 100),
    ],
    "ratings": [
        ("inference.fit.level_fit.POINT_CELLS", 1),
        ("inference.interactions.CELLS_AT_A_TIME", 3),
        ("persons.residuals.CACHED", 40),
    ],
}


@lru_cache
def responses_of(kind):
    if kind == "ratings":
        meets = [[0, 1], [1, 2], [0, 2], [0, 1, 2]] * 15
        return simulated(meets, 3, 3, seed=4)[0]
    if kind == "ordered":
        x = simulate.partial_credit(130, 6, categories=4, seed=3).responses.to_dense()
    else:
        x = simulate.rasch(130, 9, seed=3).responses.to_dense()
    x[np.random.default_rng(3).random(x.shape) < 0.15] = np.nan
    x[:30, -3:] = np.nan  # some share their items
    return si.Responses.from_wide(x, ordered=kind == "ordered")


def numbers(kind):
    """What a fit, its persons, and the fit of items say; and what the exact likelihood does."""
    responses = responses_of(kind)
    estimator = si.SpectralRasch if kind == "right or wrong" else si.SpectralPartialCredit
    fit = estimator().fit(responses)
    study = fit.analyse(responses)
    found = {"thresholds": fit.calibration_.thresholds, "se": fit.calibration_.threshold_se}
    found |= {f"persons {name}": values for name, values in study.tables()["persons"].items()}
    if kind == "ratings":
        found |= {f"rater {name}": study.facet()[name].to_numpy() for name in study.facet().columns}
        found |= {f"cell {name}": study.interactions()[name].to_numpy() for name in study.interactions().columns}
    else:
        table = study.item_fit()
        found |= {f"fit {name}": table[name].to_numpy() for name in table.columns}
        analysis = study.item_analysis()
        found |= {f"classical {name}": analysis[name].to_numpy() for name in analysis.columns}
        beta = np.linspace(-1, 1, responses.thresholds.n_entries)
        point = ExactLikelihood(responses).at(beta)
        found |= {"gradient": point.gradient, "loglik": np.array([point.loglik])}
        found["information"] = information_at(Likelihood(responses, beta), beta).matrix
    return found


whole = lru_cache(numbers)


@pytest.mark.parametrize(
    ("kind", "constant", "size"), [(kind, *piece) for kind, pieces in PIECES.items() for piece in pieces]
)
def test_numbers_do_not_depend_on_the_size_of_the_pieces(monkeypatch, kind, constant, size):
    expected = whole(kind)
    module, name = constant.rsplit(".", 1)
    monkeypatch.setattr(import_module(f"spectral_irt.{module}"), name, size)
    found = numbers(kind)
    assert list(found) == list(expected)
    for key, values in expected.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(found[key], values, rtol=1e-6, atol=1e-7, err_msg=key)
        else:
            assert found[key].tolist() == values.tolist(), key


def test_ranks_in_a_few_draws_at_a_time(monkeypatch):
    calibration = si.SpectralRasch().fit(responses_of("right or wrong")).calibration_
    covariance = calibration.location_covariance

    def ranks():
        return drawn_ranks(likely(calibration), covariance=covariance, rng=np.random.default_rng(5))

    expected = ranks()
    monkeypatch.setattr("spectral_irt.inference.ranks.items.CELLS", 7 * calibration.n_items)
    np.testing.assert_array_equal(ranks(), expected)


def test_directions_that_a_design_leaves_open_from_a_few_rows_at_a_time(monkeypatch):
    """The space they span, by its projection."""
    design = si.SpectralPartialCredit().fit(responses_of("ratings")).calibration_.facets.design
    parts = np.zeros(design.shape[0], dtype=np.int64)
    expected = unidentified_directions(design, parts)
    monkeypatch.setattr("spectral_irt.conditional.linear.ROWS_AT_A_TIME", 2)
    found = unidentified_directions(design, parts)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-9)
