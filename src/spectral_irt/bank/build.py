"""How a calibration becomes a bank: with what its responses told (`to_bank`), or without them (`without_data`).

A bank is the calibration and its evidence: the conditional log-likelihood of the responses, as a quadratic at the
calibration's thresholds (`evidence.py`). `to_bank` computes that from the responses. Without responses the evidence is
what the standard errors tell: the information about each item by itself.

`Bank.from_fit`, `study.to_bank()` and `fit --bank` call `to_bank`; `calibration.save` calls `without_data`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from spectral_irt.bank.bank import Bank, BankForm, DataSet, Population, calibration_of
from spectral_irt.bank.components import groups_of
from spectral_irt.bank.evidence import Evidence, compare_with_others, diagonal_of, matrix_is_affordable, own_information
from spectral_irt.calibration import Calibration, Provenance
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Mask
from spectral_irt.data.booklets import booklets_of
from spectral_irt.errors import BankError
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.joint_errors import blocks_of_errors
from spectral_irt.numerics import safe_divide
from spectral_irt.persons.test_form import find_forms
from spectral_irt.text import listed


def to_bank(
    calibration: Calibration | RaschEstimator, responses: Any, weights: Floats | None = None, *, form: Any = None
) -> Bank:
    """The bank of this calibration.

    Parameters
    ----------
    calibration : Calibration, or fitted estimator
    responses : Responses, array or dataframe
        What it was fitted to.
    weights : float array, optional
        How much each person counts in the population of the bank; difficulties and errors are the calibration's.
    form : str, or labels of forms, optional
        The column about the people that names the form of each; by default forms are found in the responses.

    Notes
    -----
    A bank keeps sums over people and nothing about single people, so it cannot see whether a person's answers are
    added twice; the same data as a whole are refused.
    """
    calibration = calibration_of(calibration)
    bank = without_data(calibration)
    responses = bank._as_responses(responses)
    _check_same(calibration, responses)
    link_group = np.zeros(calibration.n_items, dtype=np.int64)
    if not calibration.measured[bank.estimated].all():
        on_scale = np.where(calibration.measured, 0, -1)
        link_group = groups_of(responses, on_scale, bank.estimated)
    population = None
    if not link_group[bank.estimated].any():  # on scales that nothing links there is no common population
        population = Population.of(responses, _thresholds_of(calibration, bank.estimated), weights)
    return replace(
        bank,
        evidence=replace(evidence_of(responses, calibration, bank.evidence), link_group=link_group),
        population=population,
        data=(DataSet.of(responses, "fit"),),
        forms=_forms_of(calibration, responses, form),
    )


def _thresholds_of(calibration: Calibration, items: Mask) -> Floats:
    """The thresholds of these items, NaN for the others."""
    return np.where(items[calibration.layout.item], calibration.thresholds, np.nan)


def _forms_of(calibration: Calibration, responses: Responses, labels: Any) -> tuple[BankForm, ...]:
    """The forms that people were given, with the items that have an estimate of their own or an anchor."""
    thresholds = _thresholds_of(calibration, calibration.measured)
    forms = find_forms(responses, thresholds, booklets_of(responses, labels))
    return tuple(
        BankForm(name, tuple(calibration.labels[items].tolist()))
        for name, items in zip(forms.names, forms.items, strict=True)
    )


def _check_same(calibration: Calibration, responses: Responses) -> None:
    same_items = calibration.labels.tolist() == responses.items.tolist()
    if same_items and np.array_equal(calibration.n, responses.item_counts):
        return
    raise BankError(
        f"{responses.source}: these are not the responses that the calibration was fitted to "
        f"({responses.n_items:,} items: {listed(responses.items)}; the calibration has {calibration.n_items:,}: "
        f"{listed(calibration.labels)}). Give to_bank the same responses as fit."
    )


def without_data(calibration: Calibration) -> Bank:
    """The bank of a calibration alone: an update goes by what is known of each item, and there is no population."""
    anchored = calibration.anchored
    location_se = None
    if not calibration.layout.binary:
        location_se = location_errors(calibration)
    further = {}
    if anchored.any():
        further["anchored"] = anchored
    provenance = calibration.provenance
    # Without the groups of a rating scale, which may be any labels, and which a file cannot hold.
    settings = {
        name: value for name, value in provenance.settings.items() if isinstance(value, str | int | float | None)
    }
    return Bank(
        calibration=calibration.replace(
            threshold_se=threshold_errors(calibration),
            location_se=location_se,
            item_information=np.where(calibration.known, np.nan_to_num(calibration.item_information), 0.0),
            threshold_covariance=None,
            threshold_information=None,
            threshold_score=None,
            without_prior=None,
            prior=None,
            provenance=Provenance(provenance.estimator, settings, version=provenance.version),
            further=further,
            frame_kind=None,
        ),
        evidence=_evidence_of_errors(calibration),
    )


def _evidence_of_errors(calibration: Calibration) -> Evidence:
    """The evidence of a calibration without its responses: each item by itself, compared with the mean of all."""
    layout = calibration.layout
    estimated = calibration.known[layout.item]
    blocks = None
    if layout.binary:
        information = np.where(estimated, np.nan_to_num(calibration.item_information), 0.0)
    else:
        blocks = calibration.threshold_information
        if blocks is None:  # of a method that does not know it, and has no prior
            blocks = _blocks_by_errors(calibration)
        information = diagonal_of(blocks, layout)
    mean_difficulty = 0.0
    if calibration.known.any():
        mean_difficulty = float(calibration.difficulty[calibration.known].mean())
    evidence = Evidence(
        information=information,
        prior_mean=np.full(layout.n_entries, mean_difficulty),
        prior_gradient=_prior_gradient(calibration),
        link_group=np.zeros(calibration.n_items, dtype=np.int64),
        blocks=blocks,
    )
    prior = calibration.prior
    if prior is None:
        return evidence
    return replace(evidence, prior_precision=prior.alpha, offset_precision=prior.offsets, fixed_prior=prior.fixed)


def _prior_gradient(calibration: Calibration) -> Floats:
    """What the prior holds against the responses at each threshold; zero at thresholds without an estimate."""
    layout = calibration.layout
    estimated = calibration.known[layout.item]
    prior = calibration.prior
    if calibration.threshold_score is not None:
        free = estimated & ~calibration.anchored[layout.item]
        return np.where(free, np.nan_to_num(calibration.threshold_score), 0.0)
    gradient = np.zeros(layout.n_entries)
    if prior is not None and prior.kind == "virtual item":
        gradient[estimated] = prior.alpha * (calibration.thresholds[estimated] - prior.mean)
    return gradient


def _blocks_by_errors(calibration: Calibration) -> Floats:
    """Each item's block of the information that agrees with the standard errors of its thresholds and its location."""
    layout = calibration.layout
    covariance = blocks_of_errors(layout, calibration.threshold_se, calibration.se)
    has_error = np.einsum("ikk->ik", covariance) > 0
    # Thresholds without an error get a one on the diagonal, so that every block can be inverted, and no information.
    inverse = np.linalg.inv(covariance + ~has_error[:, :, None] * np.eye(layout.widest))
    return inverse * has_error[:, :, None] * has_error[:, None, :]


def threshold_errors(calibration: Calibration) -> Floats:
    """The standard errors of all thresholds, those of anchors as they had them where they come from."""
    if "anchor_se" not in calibration.further:
        return calibration.threshold_se
    item = calibration.layout.item
    anchor_se = calibration.further["anchor_se"]
    return np.where(calibration.anchored[item], anchor_se[item], calibration.threshold_se)


def location_errors(calibration: Calibration) -> Floats:
    """The standard errors of the locations, those of anchors as they had them where they come from."""
    anchor_se = calibration.further.get("anchor_se", calibration.se)
    return np.where(calibration.anchored, anchor_se, calibration.se)


def evidence_of(responses: Responses, calibration: Calibration, without_data: Evidence) -> Evidence:
    """What these responses, all that the bank has seen, tell near the thresholds of the calibration.

    `without_data` is the evidence without them; it stays for items without a difficulty.
    """
    layout = calibration.layout
    has_difficulty = calibration.known
    affordable = matrix_is_affordable(responses)
    if not has_difficulty.all():
        responses = responses.take_items(has_difficulty)
    if not layout.binary and not responses.informative.any():
        return without_data
    entry = layout.of_items(np.flatnonzero(has_difficulty))  # where their thresholds are among all
    beta = calibration.thresholds[entry]
    point = Likelihood(responses, beta).at(beta)
    # Each item was compared with the mean of the others that its people met: d = E^-1 N delta below that mean.
    location = calibration.difficulty[has_difficulty]
    item_information = own_information(point)
    deviation = safe_divide(compare_with_others(point, location), item_information)
    prior_mean = without_data.prior_mean.copy()
    prior_mean[entry] = (location - deviation)[responses.thresholds.item]
    prior_gradient = without_data.prior_gradient
    if calibration.prior is not None and calibration.prior.kind == "neighbors":
        prior_gradient = prior_gradient.copy()
        prior_gradient[entry] = point.gradient
        prior_gradient[calibration.anchored[layout.item]] = 0
    information = without_data.information
    if not layout.binary:
        information = np.zeros(layout.n_entries)
        information[entry] = point.information
    matrix = None
    blocks = None
    if affordable:
        matrix = np.zeros((layout.n_entries, layout.n_entries))
        matrix[np.ix_(entry, entry)] = point.dense()
    elif not layout.binary:
        widest = responses.thresholds.widest
        blocks = np.zeros((layout.n_items, layout.widest, layout.widest))
        blocks[has_difficulty, :widest, :widest] = point.own
    return replace(
        without_data,
        information=information,
        prior_mean=prior_mean,
        prior_gradient=prior_gradient,
        matrix=matrix,
        blocks=blocks,
    )
