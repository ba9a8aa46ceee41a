"""Estimators of the Rasch model against programs we did not write.

Tolerances: `cml_gold.json` is a Newton solver with gradient below 1e-12; psychotools stops within 1.3e-8 of it, eRm
within 3.3e-5, and psychotools inverts the Hessian of its own solution. TAM and mirt are 1e-5 apart. Closed forms of
the reciprocal methods have no iteration in either program.
"""

import numpy as np
import pytest

from gold import SETS, close, of_items, said, table
from spectral_irt import ConditionalRasch, MarginalRasch, PairwiseRasch
from spectral_irt.chain.paper import pair_counts
from spectral_irt.datasets import load_lsat
from spectral_irt.estimators.pairwise import ChoppinRasch, choppin_difficulty, eigenvector_difficulty, reciprocal_matrix

GOLD, GOLD_SE, PSYCHOTOOLS, VCOV, ERM = 1e-8, 1e-6, 1e-7, 1e-6, 1e-4
MARGINAL, CHOIX, CLOSED_FORM, EIGENVECTOR = 1e-4, 1e-6, 1e-10, 1e-8


@pytest.mark.parametrize("name", SETS)
def test_conditional_likelihood(name):
    fit, gold, others = ConditionalRasch().fit(table(name)), said("cml_gold")[name], said(name)
    assert fit.item_labels_.tolist() == gold["items"]
    close(fit.difficulty_, gold["difficulty_sum0"], GOLD)
    close(fit.se_, gold["se_sum0"], GOLD_SE)
    close(fit.loglik_, gold["loglik_conditional"], GOLD)
    theirs = others["psychotools_raschmodel"]
    close(fit.difficulty_, of_items(theirs["difficulty_sum0"], fit.item_labels_), PSYCHOTOOLS)
    close(fit.loglik_, theirs["loglik_conditional"], PSYCHOTOOLS)
    close(fit.covariance(), theirs["vcov_sum0"], VCOV)
    theirs = others["eRm_RM"]
    close(fit.difficulty_, of_items(theirs["difficulty_sum0"], fit.item_labels_), ERM)
    close(fit.se_, of_items(theirs["se_beta"], fit.item_labels_), ERM)
    close(fit.loglik_, theirs["loglik_conditional"], ERM)


@pytest.mark.parametrize("name", SETS)
def test_marginal_likelihood_is_that_of_tam_and_mirt(name):
    """Their difficulties have mean ability zero; standard errors are a little smaller than conditional ones."""
    fit, others = MarginalRasch().fit(table(name)), said(name)
    for program in ("TAM_mml", "mirt_Rasch"):
        close(fit.difficulty_ - fit.mu_, list(others[program]["difficulty"].values()), MARGINAL)
        close(fit.sigma_**2, others[program]["variance"], MARGINAL)
    close(fit.loglik_, others["mirt_Rasch"]["loglik"], MARGINAL)
    close(fit.loglik_, -others["TAM_mml"]["deviance"] / 2, MARGINAL)
    ratio = fit.se_ / list(others["psychotools_raschmodel"]["se_sum0"].values())
    assert 0.94 < ratio.min() <= ratio.max() < 1.02
    if name == "lsat6":  # as published
        close([fit.loglik_, fit.sigma_**2], [-2466.9376, 0.57024], 5e-5)


@pytest.mark.parametrize("weighting", ["pairs", "persons"])
def test_pairwise_likelihood_is_that_of_choix(weighting):
    case = said("choix_pairwise")  # holds the data, the script and the version that made it
    fit = PairwiseRasch(weighting=weighting).fit(np.array(case["responses"], dtype=float))
    for values in case["difficulty"]["users" if weighting == "persons" else weighting].values():
        close(fit.difficulty_, np.array(values) - np.mean(values), CHOIX)


def test_reciprocal_methods_are_those_of_pairwise_and_sirt():
    """`pairwise::pair` cubes the matrix of counts by default, `sirt::rasch.evm.pcm` squares it."""
    lsat = said("lsat6")
    counts = pair_counts(load_lsat(), dense=True)
    square, cube = (reciprocal_matrix(np.linalg.matrix_power(counts, power)) for power in (2, 3))
    close(
        ChoppinRasch().fit(load_lsat()).difficulty_,
        list(lsat["pairwise_pair_nopow"]["difficulty"].values()),
        CLOSED_FORM,
    )
    close(choppin_difficulty(cube), list(lsat["pairwise_pair"]["difficulty"].values()), CLOSED_FORM)
    close(eigenvector_difficulty(square)[0], list(lsat["sirt_rasch.evm.pcm"]["difficulty"].values()), EIGENVECTOR)
