"""The fast branches for right and wrong answers give what the lines for any number of categories give."""

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

from spectral_irt import SpectralRasch, simulate
from spectral_irt.data import Responses
from spectral_irt.data.block import Thresholds
from spectral_irt.inference.dimensions.pairs import pair_sums, with_gaps
from spectral_irt.inference.dimensions.residual_table import ResidualTable
from spectral_irt.inference.fit.mean_squares import conditional_statistics, item_statistics
from spectral_irt.inference.fit.moments import GivenScore
from spectral_irt.inference.fit.strata import strata_columns
from spectral_irt.inference.items.classical import cronbach_alpha, item_analysis
from spectral_irt.inference.items.rest_ability import p_rising
from spectral_irt.persons.abilities import abilities, items_met
from spectral_irt.persons.residuals import person_mean_squares, residuals


@pytest.fixture(scope="module")
def kinds():
    """The same answers, right and wrong as they are and made to take the general lines; and difficulties."""
    table = simulate.rasch(400, 9, seed=3).responses.to_dense()
    table[np.random.default_rng(1).random(table.shape) < 0.2] = np.nan
    answers = Responses.from_wide(table)
    general = Thresholds(np.ones(9, dtype=np.int64))
    vars(general)["binary"] = False
    beta = SpectralRasch(se="none").fit(answers).difficulty_.copy()
    beta[4] = np.nan  # an item without a difficulty
    return answers, replace(answers, thresholds=general), beta


def same(one, other, atol=1e-9):
    if is_dataclass(one):
        for name in (field.name for field in fields(one)):
            same(getattr(one, name), getattr(other, name), atol)
    elif isinstance(one, dict):
        for name in one:
            if not name.startswith("ci_"):  # Wilson's interval is that of proportions
                same(one[name], other[name], atol)
    else:
        np.testing.assert_allclose(one, other, atol=atol)


def test_fit_of_items_and_people(kinds):
    *answers, beta = kinds
    theta = abilities(answers[0], beta, "ml").ability
    same(*(item_statistics(each, beta, theta) for each in answers))
    same(*(conditional_statistics(each, beta) for each in answers))
    same(*(person_mean_squares(each, beta, theta) for each in answers))
    finite = np.where(np.isfinite(theta), theta, np.nan)
    same(*(residuals(each, beta, finite)[-1] for each in answers), atol=1e-8)
    same(*(items_met(each, beta) for each in answers))


def test_strata_classical_statistics_and_pairs(kinds):
    *answers, beta = kinds
    theta, items = abilities(answers[0], beta).ability, np.array([0, 7])
    given = [GivenScore.of(each, beta, series_from=np.inf) for each in answers]
    same(*(strata_columns(each, know, theta, items, 5) for each, know in zip(answers, given, strict=True)))
    found = [item_analysis(each, beta) for each in answers]
    same(*found)
    same(*(p_rising(one.by_category) for one in found))
    assert cronbach_alpha(answers[0])[0] == cronbach_alpha(answers[1])[0]
    known = np.isfinite(beta)
    tables = [ResidualTable.of(each.take_items(known), beta[known]) for each in answers]
    for kind in range(2):
        same(*(each.correlations(30)[kind] for each in tables))
        batches = [[*each.correlations_of_draws(range(20), 0, 30)] for each in tables]
        same(*(np.concatenate([batch[kind] for batch in of_table]) for of_table in batches))
    moved, half = with_gaps(beta[known]), np.arange(400) % 2
    wide = Thresholds(np.ones(8, dtype=np.int64))
    vars(wide)["binary"] = False
    some = answers[0].take_items(known)
    both = (some, replace(some, thresholds=wide))
    shared = [np.array([part.sums for part in pair_sums(each, moved, half)]).sum(axis=0) for each in both]
    same(*shared, atol=1e-5)  # a quotient of differences of 1e-5, and a contour sum
