"""Ordered answers against eRm and psychotools.

psychotools stops within 2e-7 of the maximum, eRm within some 1e-5.
"""

import numpy as np
import pytest

from gold import close, said, table
from spectral_irt import ConditionalPartialCredit, ConditionalRatingScale

PSYCHOTOOLS, ERM = 1e-6, 1e-4
CASES = {
    "credit6_pcm": (ConditionalPartialCredit(), "eRm_PCM"),
    "scale8_pcm": (ConditionalPartialCredit(), "eRm_PCM"),
    "scale8_rsm": (ConditionalRatingScale(), "eRm_RSM"),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    estimator, name = CASES[request.param]
    others = said(request.param)
    return estimator.fit(table(others["dataset"])), others, name


def test_psychotools(case):
    fit, others, _ = case
    theirs = others["psychotools"]
    close(fit.thresholds_, np.concatenate([theirs["threshpar_mode"][item] for item in fit.item_labels_]), PSYCHOTOOLS)
    close(fit.threshold_se_, theirs["se_threshpar"], PSYCHOTOOLS)
    close(fit.difficulty_, [theirs["itempar_sum0"][item] for item in fit.item_labels_], PSYCHOTOOLS)
    close(fit.se_, theirs["se_itempar"], PSYCHOTOOLS)
    close(fit.loglik_, theirs["loglik_conditional"], PSYCHOTOOLS)


def test_erm(case):
    fit, others, name = case
    found = [others[key] for key in (f"{name}_sum0", f"{name}_first0") if key in others]
    for theirs in found:
        values = np.array(theirs["thresholds"]["values"])[:, 1:].ravel()
        close(fit.thresholds_, values - values.mean(), ERM)
        close(fit.loglik_, theirs["loglik_conditional"], ERM)
    shift = np.array(found[0]["thresholds"]["values"])[:, 1:].mean()  # its zero is that of its own parameters
    # Maximum likelihood abilities of every total score but the ends, where eRm extrapolates.
    ours = np.array(fit.calibration_.score_table()["ability_ml"])[1:-1]
    close(ours, np.array(others["eRm_score_theta"]["theta"])[1:-1] - shift, ERM)


def test_item_fit_and_reliability(case):
    fit, others, _ = case
    study, theirs = fit.analyse(table(others["dataset"])), others["eRm_itemfit"]
    ours = study._item_statistics()
    for name in ("outfit", "infit"):
        close(ours[name], theirs[f"{name}_msq"], ERM)
        close(ours[f"{name}_z"], theirs[f"{name}_t"], ERM)
    assert ours["n"].tolist() == theirs["df"]
    close(study.reliability("ml").sep_rel, others["eRm_SepRel"], ERM)
