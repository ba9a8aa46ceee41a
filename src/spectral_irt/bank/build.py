"""How a calibration becomes a bank: with what its answers tell, or alone; and a bank with room for more items."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from spectral_irt.bank.bank import Bank, DataSet, Population, calibration_of
from spectral_irt.bank.components import groups_of, on_scale
from spectral_irt.bank.evidence import MATRIX_SIZE, Answers, Evidence, matrix_is_affordable
from spectral_irt.bank.recognition import NO_RECOGNITION, KnownPeople, Salt
from spectral_irt.calibration import Calibration, Provenance
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import label_array
from spectral_irt.data.thresholds import Thresholds
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
    alone = without_data(made)
    answers = alone.read(responses)
    _check_same(made, answers)
    estimated = alone.estimated
    group = np.zeros(answers.n_items, dtype=np.int64)
    if not on_scale(made.status)[estimated].all():
        group = groups_of(answers, np.where(estimated & on_scale(made.status), 0, -1), estimated)
    population = None
    if not group[estimated].any():  # on scales that nothing links there is no common population
        population = Population.of(answers, np.where(estimated[made.layout.item], made.thresholds, np.nan))
    if secret is not None:
        secret = secret.keep()
    kept = alone.calibration
    if secret is None and NO_RECOGNITION not in made.findings:
        kept = kept.replace(findings=(*made.findings, NO_RECOGNITION))
    return replace(
        alone,
        calibration=kept,
        evidence=replace(evidence_of(answers, alone, made), link_group=group),
        population=population,
        data=(DataSet.of(answers, "fit", secret),),
        people=KnownPeople.of(answers, secret),
    )


def _check_same(made: Calibration, responses: Responses) -> None:
    if made.labels.tolist() == responses.items.tolist() and np.array_equal(made.n, responses.item_counts):
        return
    raise BankError(
        f"{responses.source}: these are not the responses that the calibration was fitted to "
        f"({responses.n_items:,} items: {listed(responses.items)}; the calibration has {made.n_items:,}: "
        f"{listed(made.labels)}). Give to_bank the same responses as fit."
    )


def without_data(made: Calibration) -> Bank:
    """The bank of a calibration alone: updating it goes by what is known of each item, and there is no population."""
    layout, prior, known = made.layout, made.prior, made.known[made.layout.item]
    if layout.binary:
        information = np.where(known, np.nan_to_num(made.item_information), 0.0)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            information = np.nan_to_num(1 / made.threshold_se**2, posinf=0.0)
    pull = np.zeros(layout.n_entries)
    if prior is not None and prior.kind == "virtual item":
        pull[known] = prior.alpha * (made.thresholds[known] - prior.mean)
    mean = float(made.difficulty[made.known].mean()) if made.known.any() else 0.0
    source, anchor_se = made.provenance, made.further.get("anchor_se", made.se)
    return Bank(
        calibration=made.replace(
            threshold_se=with_anchors(made),
            location_se=None if layout.binary else np.where(made.anchored, anchor_se, made.se),
            item_information=np.where(made.known, np.nan_to_num(made.item_information), 0.0),
            covariance=None,
            prior=None,
            provenance=Provenance(source.estimator, _plain(source.settings), version=source.version),
            further={"anchored": made.anchored} if made.anchored.any() else {},
            frame_kind=None,
        ),
        evidence=Evidence(
            information,
            np.full(layout.n_entries, mean),
            pull,
            np.zeros(made.n_items, dtype=np.int64),
            0.0 if prior is None else prior.alpha,
        ),
    )


def with_anchors(made: Calibration) -> Floats:
    """The standard errors of all thresholds, those of anchors as they had them where they come from."""
    if "anchor_se" not in made.further:
        return made.threshold_se
    item = made.layout.item
    return np.where(made.anchored[item], made.further["anchor_se"][item], made.threshold_se)


def _plain(settings: Any) -> dict[str, Any]:
    """Settings that a manifest can hold; the groups of a rating scale, which may be any labels, are left out."""
    return {name: value for name, value in settings.items() if value is None or isinstance(value, str | int | float)}


# -------------------------------------------------------------------------------------- what answers tell


def evidence_of(responses: Responses, alone: Bank, made: Calibration) -> Evidence:
    """What these answers, all that the bank has seen, say near its thresholds; nothing of items without them.

    Under the prior of the others that people met, the score of the answers is what it pulls with.
    """
    kept, known, layout = alone.evidence, made.known, made.layout
    rest = responses if known.all() else responses.take_items(known)
    place = layout.of_items(np.flatnonzero(known))
    beta = made.thresholds[place]
    if not (layout.binary or rest.informative.any()):
        return kept
    found = Answers.at(rest, beta)
    level, pull, information = kept.prior_mean.copy(), kept.prior_gradient.copy(), kept.information.copy()
    others = found.others
    level[place] = beta - np.divide(found.compared(beta), others, out=np.zeros(len(beta)), where=others > 0)
    if made.prior is not None and made.prior.kind == "neighbors":
        pull[place] = found.score
        pull[made.anchored[layout.item]] = 0
    matrix = None
    if matrix_is_affordable(responses):
        matrix = np.zeros((layout.n_entries, layout.n_entries))
        matrix[np.ix_(place, place)] = found.matrix()
    if not layout.binary:
        information = np.zeros(layout.n_entries)
        information[place] = found.diagonal
    return replace(kept, information=information, prior_mean=level, prior_gradient=pull, matrix=matrix)


# ---------------------------------------------------------------------------------------- room for more items


def with_room(bank: Bank, labels: list[Any], max_score: Ints, codes: Floats) -> Bank:
    """The bank with these items besides, of which nothing is known."""
    if not labels:
        return bank
    made, kept = bank.calibration, bank.evidence
    layout = made.layout
    extra, more = len(labels), int(max_score.sum())
    width = max(made.codes.shape[1], int(max_score.max()) + 1)

    def longer(values: Any, fill: Any, number: int = extra) -> Any:
        return np.concatenate([values, np.full(number, fill, dtype=values.dtype)])

    def wider(values: Floats, below: Floats) -> Floats:
        out = np.full((made.n_items + extra, width), np.nan)
        out[: made.n_items, : values.shape[1]] = values
        out[made.n_items :, : min(below.shape[1], width)] = below[:, :width]
        return out

    size = layout.n_entries + more
    matrix = None
    if kept.matrix is not None and size <= MATRIX_SIZE:
        matrix = np.zeros((size, size))
        matrix[: layout.n_entries, : layout.n_entries] = kept.matrix
    binary = layout.binary and int(max_score.max()) == 1
    return replace(
        bank,
        calibration=made.replace(
            labels=label_array([*made.labels.tolist(), *labels]),
            thresholds=longer(made.thresholds, np.nan, more),
            threshold_se=longer(made.threshold_se, np.nan, more),
            layout=Thresholds.ones(made.n_items + extra)
            if binary
            else Thresholds(np.concatenate([layout.max_score, max_score])),
            location_se=None if binary else longer(made.se, np.nan),
            category_n=wider(made.category_n, np.where(np.isfinite(codes), 0.0, np.nan)),
            codes=wider(made.codes, codes),
            status=longer(made.status, "no responses"),
            n=longer(made.n, 0),
            score=longer(made.score, 0),
            item_information=longer(made.item_information, 0.0),
            further={"anchored": longer(made.anchored, False)} if made.anchored.any() else {},
        ),
        evidence=Evidence(
            longer(kept.information, 0.0, more),
            longer(kept.prior_mean, 0.0, more),
            longer(kept.prior_gradient, 0.0, more),
            longer(kept.link_group, 0),
            kept.prior_precision,
            matrix,
        ),
    )
