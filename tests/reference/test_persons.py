"""Abilities, person fit, reliability and information against programs we did not write.

Tolerances: `cml_gold.json` solves to machine precision. Given eRm's own abilities its person fit and SepRel are
reproduced to the twelve digits of the files. Its abilities come from an optimizer that stops about 1e-5 from the
solution, its standard errors from a numerical Hessian, and its difficulties are up to 3.3e-5 from the exact ones, so
with our own estimates the comparison is at 1e-4 (of the number itself where it is above 1: a surprising answer can make
an outfit of 5, and its error grows with it). TAM integrates on 81 nodes and stops at 1e-8: its variance and EAP
reliability are reproduced to 1e-5 at its difficulties, and to 1e-3 at our own.
"""

import numpy as np
import pytest

from gold import SETS, close, of_items, said, table
from gold import answers as answers_of
from spectral_irt import ConditionalRasch, MarginalRasch
from spectral_irt.ability import form_information
from spectral_irt.data.block import Thresholds
from spectral_irt.inference.scores.reliability import marginal_reliability, separation
from spectral_irt.persons import abilities, person_mean_squares, score_abilities

GOLD, GIVEN, OWN, HESSIAN = 1e-6, 1e-6, 1e-4, 2e-4
MARGINAL, EAP = 1e-5, 1e-3


@pytest.fixture(scope="module", params=SETS)
def case(request):
    name = request.param
    answers = answers_of(name)
    return name, answers, said(name), ConditionalRasch().fit(answers)


def column(values):
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def test_score_tables_are_gold(case):
    name, answers, _, fit = case
    gold = said("cml_gold")[name]
    beta = np.array(gold["difficulty_sum0"])
    for warm, kind, error in ((True, "theta_wle", "se_information_at_wle"), (False, "theta_ml", "se_ml")):
        ability, se = score_abilities(beta, warm=warm)
        known = np.isfinite(column(gold[kind]))
        close(ability[known], column(gold[kind])[known], GOLD)
        close(se[known], column(gold[error])[known], GOLD)
    assert (ability[0], ability[-1]) == (-np.inf, np.inf)
    complete = abilities(answers.take_persons(answers.counts == answers.n_items), beta)
    close(complete.ability, column(gold["theta_wle"])[complete.score], GOLD)
    ours = fit.calibration_.score_table()
    close(ours["ability"], column(gold["theta_wle"]), GOLD)
    if name in ("lsat6", "test15"):  # complete: one group
        theirs = table(f"{name}_erm_score_theta")
        close(ours["ability_ml"][1:-1], theirs["theta"].to_numpy()[1:-1], OWN)


def person_fit_agrees(found, theirs, tolerance):
    rows = np.array([int(label[1:]) - 1 for label in theirs["person"]])
    assert set(rows) == set(np.flatnonzero(np.isfinite(found.infit)))
    np.testing.assert_array_equal(found.n[rows], theirs["df"])
    for mine in ("outfit", "infit"):
        close(getattr(found, mine)[rows], theirs[f"{mine}_msq"].to_numpy(), tolerance, tolerance)
        close(getattr(found, f"{mine}_z")[rows], theirs[f"{mine}_t"].to_numpy(), tolerance, tolerance)


def test_people_are_those_of_erm(case):
    name, answers, others, fit = case
    people, theirs = table(f"{name}_erm_persons"), table(f"{name}_erm_personfit")
    theta, se = people["theta"].to_numpy(), people["se"].cast(float).to_numpy()
    beta = of_items(others["eRm_RM"]["difficulty_sum0"], answers.items)
    found = abilities(answers, beta, "ml")
    mixed = ~found.extreme
    close(found.ability[mixed], theta[mixed], OWN)
    close(found.se[mixed], se[mixed], HESSIAN)
    person_fit_agrees(person_mean_squares(answers, beta, theta), theirs, GIVEN)
    own = abilities(answers, fit.difficulty_, "ml").ability
    person_fit_agrees(person_mean_squares(answers, fit.difficulty_, own), theirs, OWN)
    parts, rel = separation(theta, se), others["eRm_SepRel"]
    close([parts.reliability, parts.sd**2, parts.rmse**2], [rel["sep_rel"], rel["ssd"], rel["mse"]], GIVEN)


def test_reliability(case):
    """Conditional estimates of booklets differ a little from marginal ones, which learn from who got which booklet."""
    name, answers, others, fit = case
    theirs = others["TAM_mml"]
    given = marginal_reliability(answers, of_items(theirs["difficulty"], answers.items))
    close([given.reliability, given.sd**2, given.mean], [theirs["EAP_reliability"], theirs["variance"], 0], MARGINAL)
    own = MarginalRasch().fit(answers).analyse(answers).reliability()
    close(own.eap_reliability, theirs["EAP_reliability"], EAP)
    close(own.persons_with_extremes.reliability, others["TAM_wle_reliability"]["value"], EAP)
    conditional = fit.analyse(answers).reliability()
    close(conditional.sep_rel, others["eRm_SepRel"]["sep_rel"], OWN)
    close(conditional.eap_reliability, theirs["EAP_reliability"], 2 * EAP if name == "booklets24" else EAP)


def test_information(case):
    _, answers, others, _ = case
    beta = of_items(others["psychotools_raschmodel"]["difficulty_sum0"], answers.items)
    theirs = others["test_information_at_theta"]
    close(form_information(beta, np.array(theirs["theta"]), Thresholds.ones(len(beta))), theirs["info"], 1e-12)


def test_population_of_marginal_likelihood():
    """At the difficulties of marginal likelihood the fitted population is theirs: variance free, mean zero."""
    answers, theirs = answers_of("lsat6"), said("lsat6")["TAM_mml"]
    found = abilities(answers, of_items(theirs["difficulty"], answers.items), "eap")
    close([found.prior[0], found.prior[1] ** 2], [0, theirs["variance"]], MARGINAL)
    spread = found.ability.var()
    close(spread / (spread + np.mean(found.se**2)), theirs["EAP_reliability"], 1e-6)
