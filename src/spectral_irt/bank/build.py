"""How a calibration becomes a bank: with what its answers tell, or alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from spectral_irt.bank.bank import Bank, DataSet, Population, calibration_of
from spectral_irt.bank.components import groups_of, is_measured, on_scale
from spectral_irt.bank.evidence import MATRIX_ITEMS, Answers, Evidence, matrix_is_affordable
from spectral_irt.bank.ordered_bank import OrderedBank
from spectral_irt.bank.recognition import NO_RECOGNITION, Salt, nobody
from spectral_irt.calibration import Calibration
from spectral_irt.conditional.likelihood import ExactLikelihood
from spectral_irt.data import Responses, as_responses
from spectral_irt.data.block import Floats
from spectral_irt.errors import BankError, listed
from spectral_irt.estimators.base import RaschEstimator


def to_bank(calibration: Calibration | RaschEstimator, responses: Any, salt: Any = None) -> Bank:
    """The bank of this calibration.

    Parameters
    ----------
    calibration : Calibration, or fitted estimator
    responses : Responses, array or dataframe
        What it was fitted to.
    salt : bytes or path, optional
        A secret of yours, or a file with one (made if it does not exist): with it updates recognize people who come
        again. Without it, the default, the bank keeps nothing about single people. The salt itself is never kept.
    """
    made = calibration_of(calibration)
    secret = Salt.of(salt)
    if not made.layout.binary:
        return _of_ordered_answers(made, responses, secret)
    answers = as_responses(responses, threshold=made.provenance.settings.get("threshold"))
    _check_same(made, answers)
    alone = without_data(made)
    landed = made.prior is not None and made.prior.kind == "neighbors"
    known = evidence_of(answers, alone, pulled=landed)
    measured = made.known & is_measured(made.status)
    group = np.zeros(answers.n_items, dtype=np.int64)
    if not on_scale(made.status)[measured].all():
        group = groups_of(answers, np.where(measured & on_scale(made.status), 0, -1), measured)
    population = None
    if not group[measured].any():  # on scales that nothing links there is no common population
        population = Population.of(answers, np.where(measured, made.difficulty, np.nan))
    return replace(
        alone,
        group=group,
        level=known.levels,
        pull=known.gradient,
        matrix=known.information if known.information.ndim == 2 else None,
        population=population,
        **_of_people(made, answers, secret),
    )


def _of_ordered_answers(made: Calibration, responses: Any, secret: Salt | None) -> OrderedBank:
    answers = as_responses(responses, ordered=True, unused="keep")
    _check_same(made, answers)
    alone = _ordered_without_data(made)
    matrix = None
    if made.layout.n_entries <= MATRIX_ITEMS:
        matrix = step_information(answers, made.thresholds)
        alone = replace(alone, step_information=np.diag(matrix).copy())
    measured = made.known & is_measured(made.status)
    place = made.thresholds.copy()
    place[~measured[made.layout.item]] = np.nan
    return replace(
        alone,
        population=Population.of(answers, place),
        step_matrix=matrix,
        **_of_people(made, answers, secret),
    )


def _of_people(made: Calibration, answers: Responses, secret: Salt | None) -> dict[str, Any]:
    """What a bank keeps of the people whose answers made it."""
    if secret is not None:
        secret = secret.keep()
    silent = secret is None and NO_RECOGNITION not in made.findings
    return {
        "data": (DataSet.of(answers, "fit", secret),),
        "findings": (*made.findings, NO_RECOGNITION) if silent else made.findings,
        "users": secret.fingerprints(answers) if secret else nobody(),
        "salt_check": secret.check if secret else "",
    }


def _check_same(made: Calibration, responses: Responses) -> None:
    if made.labels.tolist() == responses.items.tolist() and np.array_equal(made.n, responses.item_counts):
        return
    raise BankError(
        f"{responses.source}: these are not the responses that the calibration was fitted to "
        f"({responses.n_items:,} items: {listed(responses.items)}; the calibration has {made.n_items:,}: "
        f"{listed(made.labels)}). Give to_bank the same responses as fit."
    )


# ------------------------------------------------------------------------------------------- without answers


def without_data(made: Calibration) -> Bank:
    """The bank of a calibration alone: updating it goes by what is known of each item, and there is no population."""
    if not made.layout.binary:
        return _ordered_without_data(made)
    prior = made.prior
    pull = np.zeros(made.n_items)
    if prior is not None and prior.kind == "virtual item":
        pull[made.known] = prior.alpha * (made.difficulty[made.known] - prior.mean)
    return Bank(
        se=np.where(made.anchored, made.further.get("anchor_se", np.nan), made.se),
        settings=made.provenance.settings,
        pull=pull,
        prior_precision=0.0 if prior is None else prior.alpha,
        **_common(made),
    )


def _ordered_without_data(made: Calibration) -> OrderedBank:
    """The bank of a calibration alone: updating it goes by the standard errors of its thresholds."""
    with np.errstate(divide="ignore", invalid="ignore"):
        told = np.nan_to_num(1 / made.threshold_se**2, posinf=0.0)
    return OrderedBank(
        se=made.se,
        settings=_plain(made.provenance.settings),
        thresholds=made.thresholds,
        threshold_se=made.threshold_se,
        n_thresholds=made.layout.max_score,
        category_n=made.category_n,
        codes=made.codes,
        step_information=told,
        **_common(made),
    )


def _common(made: Calibration) -> dict[str, Any]:
    """What the bank of a calibration takes over, whatever its answers are."""
    return {
        "items": made.labels,
        "difficulty": made.difficulty,
        "status": made.status,
        "n": made.n,
        "n_right": made.score,
        "information": np.where(made.known, np.nan_to_num(made.item_information), 0.0),
        "anchored": made.anchored,
        "group": np.zeros(made.n_items, dtype=np.int64),
        "estimator": made.provenance.estimator,
        "scale": made.scale,
        "findings": made.findings,
        "version": made.provenance.version,
    }


def _plain(settings: Any) -> dict[str, Any]:
    """Settings that a manifest can hold; the groups of a rating scale, which may be any labels, are left out."""
    return {name: value for name, value in settings.items() if value is None or isinstance(value, str | int | float)}


# -------------------------------------------------------------------------------------- what answers tell


def evidence_of(responses: Responses, bank: Bank, *, pulled: bool) -> Evidence:
    """What these answers, all that the bank has seen, say near its difficulties; nothing of items without one.

    `pulled`: a prior holds the difficulties against the likelihood, so that the score is what the prior pulls with.
    """
    known = bank.known
    rest = responses if known.all() else responses.take_items(known)
    found = Answers.at(rest, bank.difficulty[known])
    met = found @ bank.difficulty[known]
    level, pull = bank.level.copy(), bank.pull.copy()
    told = found.diagonal > 0
    level[known] = bank.difficulty[known] - np.divide(met, found.diagonal, out=np.zeros(len(met)), where=told)
    if pulled:
        pull[known] = found.score
        pull[bank.anchored] = 0
    information = bank.information
    if matrix_is_affordable(responses):
        information = np.zeros((len(known), len(known)))
        information[np.ix_(known, known)] = found.matrix()
    return Evidence(bank.difficulty, information, pull, level, bank.information)


def step_information(responses: Responses, thresholds: Floats) -> Floats:
    """Information of these answers on all thresholds, zero for items without an estimate."""
    steps = responses.thresholds
    full = np.zeros((steps.n_entries, steps.n_entries))
    known = np.isfinite(steps.mean(thresholds))
    rest = responses if known.all() else responses.take_items(known)
    if rest.mixed.any():
        place = steps.of_items(np.flatnonzero(known))
        likelihood = ExactLikelihood(rest)
        full[np.ix_(place, place)] = likelihood.information(thresholds[place], exact=likelihood.exact_is_affordable())
    return full
