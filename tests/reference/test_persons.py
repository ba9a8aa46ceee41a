"""Abilities and person fit against programs we did not write (see README.md beside the data).

Tolerances: `cml_gold.json` solves to machine precision. Given eRm's own abilities its person fit is reproduced to the
twelve digits of the files. Its abilities come from an optimizer that stops about 1e-5 from the solution, and its
difficulties are up to 3.3e-5 from the exact ones, so with our own estimates the comparison is at 1e-4 (of the number
itself where it is above 1: a surprising answer can make an outfit of 5, and its error grows with it).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from spectral_irt import Responses
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.persons import abilities, person_mean_squares, score_abilities

HERE = Path(__file__).parent
SETS = ["lsat6", "test15", "missing12", "booklets24"]
GOLD, GIVEN, OWN = 1e-6, 1e-6, 1e-4


@pytest.fixture(scope="module", params=SETS)
def case(request):
    name = request.param
    answers = Responses.from_wide(pl.read_csv(HERE / f"{name}.csv"))
    gold = json.loads((HERE / "cml_gold.json").read_text())[name]
    others = json.loads((HERE / f"{name}.json").read_text())
    return name, answers, gold, others


def column(values):
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def erm(name, what):
    return pl.read_csv(HERE / f"{name}_erm_{what}.csv", null_values=["NA", "NaN"])


def erm_difficulty(answers, others):
    return np.array([others["eRm_RM"]["difficulty_sum0"][item] for item in answers.items])


def test_score_table_is_gold(case):
    _, _, gold, _ = case
    beta = np.array(gold["difficulty_sum0"])
    for warm, kind, error in ((True, "theta_wle", "se_information_at_wle"), (False, "theta_ml", "se_ml")):
        ability, se = score_abilities(beta, warm=warm)
        known = np.isfinite(column(gold[kind]))
        np.testing.assert_allclose(ability[known], column(gold[kind])[known], rtol=0, atol=GOLD)
        np.testing.assert_allclose(se[known], column(gold[error])[known], rtol=0, atol=GOLD)
    assert (ability[0], ability[-1]) == (-np.inf, np.inf)


def test_complete_persons_are_gold(case):
    _, answers, gold, _ = case
    complete = answers.take_persons(answers.counts == answers.n_items)
    beta = np.array(gold["difficulty_sum0"])
    found = abilities(complete, beta)
    np.testing.assert_allclose(found.ability, column(gold["theta_wle"])[found.score], rtol=0, atol=GOLD)


def test_score_table_with_our_own_estimates(case):
    name, answers, gold, _ = case
    table = ConditionalRasch().fit(answers).calibration_.score_table()
    np.testing.assert_allclose(table["ability"], column(gold["theta_wle"]), rtol=0, atol=GOLD)
    if name in ("lsat6", "test15"):  # complete: one group
        theirs = erm(name, "score_theta")
        inside = slice(1, answers.n_items)
        np.testing.assert_allclose(table["ability_ml"][inside], theirs["theta"].to_numpy()[inside], rtol=0, atol=OWN)


def test_erm_abilities(case):
    name, answers, _, others = case
    theirs = erm(name, "persons")
    found = abilities(answers, erm_difficulty(answers, others), "ml")
    mixed = ~found.extreme
    np.testing.assert_allclose(found.ability[mixed], theirs["theta"].to_numpy()[mixed], rtol=0, atol=OWN)
    # eRm's standard errors come from a numerical Hessian, good to 1.3e-4.
    np.testing.assert_allclose(found.se[mixed], theirs["se"].to_numpy()[mixed], rtol=0, atol=2e-4)


def person_fit_agrees(found, theirs, tolerance):
    rows = np.array([int(label[1:]) - 1 for label in theirs["person"]])
    assert set(rows) == set(np.flatnonzero(np.isfinite(found.infit)))
    np.testing.assert_array_equal(found.n[rows], theirs["df"])
    for mine, name in (
        (found.outfit, "outfit_msq"),
        (found.infit, "infit_msq"),
        (found.outfit_z, "outfit_t"),
        (found.infit_z, "infit_t"),
    ):
        np.testing.assert_allclose(mine[rows], theirs[name].to_numpy(), rtol=tolerance, atol=tolerance)


def test_person_fit_given_their_estimates(case):
    name, answers, _, others = case
    theta = erm(name, "persons")["theta"].to_numpy()
    found = person_mean_squares(answers, erm_difficulty(answers, others), theta)
    person_fit_agrees(found, erm(name, "personfit"), GIVEN)


def test_person_fit_with_our_own_estimates(case):
    name, answers, _, _ = case
    fit = ConditionalRasch().fit(answers)
    found = person_mean_squares(answers, fit.difficulty_, abilities(answers, fit.difficulty_, "ml").ability)
    person_fit_agrees(found, erm(name, "personfit"), OWN)


def test_population_of_marginal_likelihood():
    """At the difficulties of marginal likelihood the fitted population is theirs: variance free, mean zero."""
    answers = Responses.from_wide(pl.read_csv(HERE / "lsat6.csv"))
    others = json.loads((HERE / "lsat6.json").read_text())
    theirs = others["TAM_mml"]
    beta = np.array([theirs["difficulty"][item] for item in answers.items])
    found = abilities(answers, beta, "eap")
    assert abs(found.prior_mean) < 1e-5
    assert abs(found.prior_sd**2 - theirs["variance"]) < 1e-5
    spread = found.ability.var()
    assert abs(spread / (spread + np.mean(found.se**2)) - theirs["EAP_reliability"]) < 1e-6
