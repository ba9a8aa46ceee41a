"""How a calibration becomes a bank: with what its answers tell, or alone; and a bank with more items."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, BankForm, DataSet, Population, calibration_of
from spectral_irt.bank.components import groups_of
from spectral_irt.bank.evidence import (
    MATRIX_SIZE,
    Evidence,
    blocks_of,
    compared,
    diagonal_of,
    matrix_is_affordable,
    own_information,
)
from spectral_irt.calibration import Calibration, Provenance
from spectral_irt.conditional.newton import Likelihood
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.booklets import booklets_of
from spectral_irt.data.labels import label_array, positions
from spectral_irt.errors import BankError
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.inference.joint_errors import blocks_of_errors
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
    made = calibration_of(calibration)
    alone = without_data(made)
    answers = alone._read(responses)
    _check_same(made, answers)
    estimated = alone.estimated
    group = np.zeros(answers.n_items, dtype=np.int64)
    if not made.measured[estimated].all():
        group = groups_of(answers, np.where(made.measured, 0, -1), estimated)
    population = None
    if not group[estimated].any():  # on scales that nothing links there is no common population
        thresholds = np.where(estimated[made.layout.item], made.thresholds, np.nan)
        population = Population.of(answers, thresholds, weights)
    return replace(
        alone,
        evidence=replace(evidence_of(answers, alone, made), link_group=group),
        population=population,
        data=(DataSet.of(answers, "fit"),),
        forms=_forms_of(made, answers, form),
    )


def _forms_of(made: Calibration, responses: Responses, labels: Any) -> tuple[BankForm, ...]:
    """The forms that people were given, with the items that have an estimate of their own or an anchor."""
    thresholds = np.where(made.measured[made.layout.item], made.thresholds, np.nan)
    forms = find_forms(responses, thresholds, booklets_of(responses, labels))
    named = zip(forms.names, forms.items, strict=True)
    return tuple(BankForm(name, tuple(made.labels[items].tolist())) for name, items in named)


def _check_same(made: Calibration, responses: Responses) -> None:
    if made.labels.tolist() == responses.items.tolist() and np.array_equal(made.n, responses.item_counts):
        return
    raise BankError(
        f"{responses.source}: these are not the responses that the calibration was fitted to "
        f"({responses.n_items:,} items: {listed(responses.items)}; the calibration has {made.n_items:,}: "
        f"{listed(made.labels)}). Give to_bank the same responses as fit."
    )


def without_data(made: Calibration) -> Bank:
    """The bank of a calibration alone: an update goes by what is known of each item, and there is no population."""
    layout, prior, known = made.layout, made.prior, made.known[made.layout.item]
    information, blocks = np.where(known, np.nan_to_num(made.item_information)[layout.item], 0.0), None
    if not layout.binary:
        blocks = made.threshold_information
        if blocks is None:  # of a method that does not know it, and has no prior
            blocks = _blocks_of_errors(made)
        information = diagonal_of(blocks, layout)
    pull = np.zeros(layout.n_entries)
    if made.threshold_score is not None:
        pull = np.where(known & ~made.anchored[layout.item], np.nan_to_num(made.threshold_score), 0.0)
    elif prior is not None and prior.kind == "virtual item":
        pull[known] = prior.alpha * (made.thresholds[known] - prior.mean)
    mean = float(made.difficulty[made.known].mean()) if made.known.any() else 0.0
    source, anchor_se = made.provenance, made.further.get("anchor_se", made.se)
    # Without the groups of a rating scale, which may be any labels, and which a file cannot hold.
    settings = {name: value for name, value in source.settings.items() if isinstance(value, str | int | float | None)}
    return Bank(
        calibration=made.replace(
            threshold_se=with_anchors(made),
            location_se=None if layout.binary else np.where(made.anchored, anchor_se, made.se),
            item_information=np.where(made.known, np.nan_to_num(made.item_information), 0.0),
            threshold_covariance=None,
            threshold_information=None,
            threshold_score=None,
            prior=None,
            provenance=Provenance(source.estimator, settings, version=source.version),
            further={"anchored": made.anchored} if made.anchored.any() else {},
            frame_kind=None,
        ),
        evidence=Evidence(
            information,
            np.full(layout.n_entries, mean),
            pull,
            np.zeros(made.n_items, dtype=np.int64),
            prior_precision=0.0 if prior is None else prior.alpha,
            offset_precision=0.0 if prior is None else prior.offsets,
            fixed_prior=prior is not None and prior.fixed,
            blocks=blocks,
        ),
    )


def _blocks_of_errors(made: Calibration) -> Floats:
    """Each item's block of the information that agrees with the standard errors of its thresholds and its location."""
    layout = made.layout
    covariance = blocks_of_errors(layout, made.threshold_se, made.se)
    known = np.einsum("ikk->ik", covariance) > 0
    inverse = np.linalg.inv(covariance + ~known[:, :, None] * np.eye(layout.widest))
    return inverse * known[:, :, None] * known[:, None, :]


def with_anchors(made: Calibration) -> Floats:
    """The standard errors of all thresholds, those of anchors as they had them where they come from."""
    if "anchor_se" not in made.further:
        return made.threshold_se
    item = made.layout.item
    return np.where(made.anchored[item], made.further["anchor_se"][item], made.threshold_se)


def evidence_of(responses: Responses, alone: Bank, made: Calibration) -> Evidence:
    """What these answers, all that the bank has seen, say near its thresholds."""
    kept, known, layout = alone.evidence, made.known, made.layout
    rest = responses if known.all() else responses.take_items(known)
    place = layout.of_items(np.flatnonzero(known))
    beta = made.thresholds[place]
    if not (layout.binary or rest.informative.any()):
        return kept
    found = Likelihood(rest, beta).at(beta)
    level, pull, information = kept.prior_mean.copy(), kept.prior_gradient.copy(), kept.information.copy()
    others, locations = own_information(found), made.difficulty[known]
    away = np.divide(compared(found, locations), others, out=np.zeros(len(others)), where=others > 0)
    level[place] = (locations - away)[rest.thresholds.item]
    if made.prior is not None and made.prior.kind == "neighbors":
        pull[place] = found.gradient
        pull[made.anchored[layout.item]] = 0
    matrix, blocks = None, None
    if matrix_is_affordable(responses):
        matrix = np.zeros((layout.n_entries, layout.n_entries))
        matrix[np.ix_(place, place)] = found.dense()
    if not layout.binary:
        information = np.zeros(layout.n_entries)
        information[place] = found.information
    if matrix is None and not layout.binary:
        blocks = np.zeros((layout.n_items, layout.widest, layout.widest))
        blocks[known, : rest.thresholds.widest, : rest.thresholds.widest] = found.own
    return replace(kept, information=information, prior_mean=level, prior_gradient=pull, matrix=matrix, blocks=blocks)


def with_room(bank: Bank, labels: list[Any], max_score: Ints, codes: Floats) -> Bank:
    """The bank with these items besides, of which nothing is known."""
    if not labels:
        return bank
    made, kept, old = bank.calibration.with_free_thresholds(), bank.evidence, bank.calibration.layout
    counts = np.concatenate([old.max_score, max_score])
    layout = Thresholds.ones(len(counts)) if counts.max() == 1 else Thresholds(counts)
    items, entries, table = layout.n_items, layout.n_entries, (layout.n_items, layout.widest + 1)
    all_codes, category_n = padded(made.codes, table, np.nan), padded(made.category_n, table, np.nan)
    width = min(table[1], codes.shape[1])
    all_codes[made.n_items :, :width] = codes[:, :width]
    category_n[made.n_items :, :width] = np.where(np.isfinite(codes[:, :width]), 0.0, np.nan)
    matrix, blocks = kept.matrix, None
    if matrix is not None:
        matrix = padded(matrix, (entries, entries), 0.0) if entries <= MATRIX_SIZE else None
    if matrix is None and not layout.binary:
        blocks = padded(blocks_of(kept.known(old), old), (items, layout.widest, layout.widest), 0.0)
    return replace(
        bank,
        calibration=made.replace(
            labels=label_array([*made.labels.tolist(), *labels]),
            thresholds=padded(made.thresholds, entries, np.nan),
            threshold_se=padded(made.threshold_se, entries, np.nan),
            layout=layout,
            location_se=None if layout.binary else padded(made.se, items, np.nan),
            category_n=category_n,
            codes=all_codes,
            status=padded(made.status, items, "no responses"),
            n=padded(made.n, items, 0),
            score=padded(made.score, items, 0),
            item_information=padded(made.item_information, items, 0.0),
            further={"anchored": padded(made.anchored, items, False)} if made.anchored.any() else {},
        ),
        evidence=replace(
            kept,
            information=padded(kept.information, entries, 0.0),
            prior_mean=padded(kept.prior_mean, entries, 0.0),
            prior_gradient=padded(kept.prior_gradient, entries, 0.0),
            link_group=padded(kept.link_group, items, 0),
            matrix=matrix,
            blocks=blocks,
        ),
    )


def padded(values: NDArray[Any], shape: int | tuple[int, ...], fill: Any) -> NDArray[Any]:
    """An array of this shape that begins with these values."""
    out = np.full(shape, fill, dtype=values.dtype)
    out[tuple(map(slice, values.shape))] = values
    return out


def merged(bank: Bank, new: Bank, responses: Responses) -> Bank:
    """The bank with all its items, and those of `new`, which is a calibration of `responses` anchored to it.

    Items that were anchors keep thresholds, standard errors and status. Items that are new to the bank, or had no
    difficulty on its scale, have what the calibration found. Answers are counted, and what they tell is added, for all.
    """
    dataset = DataSet.of(responses, "anchored fit")
    old = dataset.in_bank(bank)
    if old is not None:
        dataset.refuse_again(old, "Keep the new calibration as another bank. Nothing was written.")
    theirs = new.calibration
    fresh, own = positions(theirs.labels, bank.items) < 0, theirs.layout.max_score
    whole = with_room(bank, theirs.labels[fresh].tolist(), own[fresh], theirs.codes[fresh])
    made, kept, found = whole.calibration.with_free_thresholds(), whole.evidence, new.evidence
    where = positions(theirs.labels, made.labels)
    other = theirs.labels[made.layout.max_score[where] != own]
    if len(other):
        raise BankError(
            f"{responses.source}: {listed(other)} have another number of categories in the bank. Nothing was written."
        )
    estimated = ~theirs.anchored
    entries = made.layout.of_items(where)

    def placed(ours: NDArray[Any], theirs_: NDArray[Any], of_items: bool = False) -> NDArray[Any]:
        """Ours, with theirs of what this calibration has estimated itself."""
        out = ours.copy()
        into, chosen = (where, estimated) if of_items else (entries, estimated[theirs.layout.item])
        out[into[chosen]] = theirs_[chosen]
        return out

    def added(ours: NDArray[Any], theirs_: NDArray[Any], *into: Ints) -> NDArray[Any]:
        out = ours.copy()
        out[np.ix_(*into) if len(into) > 1 else into] += theirs_
        return out

    matrix, blocks = None, None
    if kept.matrix is not None and found.matrix is not None:
        matrix = added(kept.matrix, found.matrix, entries, entries)
    elif not made.layout.binary:
        blocks = blocks_of(kept.known(made.layout), made.layout).copy()
        own_blocks, wide = blocks_of(found.known(theirs.layout), theirs.layout), theirs.layout.widest
        blocks[where, :wide, :wide] += own_blocks
    group = placed(kept.link_group, found.link_group, of_items=True)
    unlinked = estimated & (found.link_group > 0)
    group[where[unlinked]] = int(bank.evidence.link_group.max(initial=0)) + found.link_group[unlinked]  # its own scale
    category_n = made.category_n.copy()
    category_n[where, : theirs.category_n.shape[1]] += np.nan_to_num(theirs.category_n)
    return replace(
        whole,
        calibration=made.replace(
            thresholds=placed(made.thresholds, theirs.thresholds),
            threshold_se=placed(made.threshold_se, theirs.threshold_se),
            location_se=None if made.layout.binary else placed(made.se, theirs.se, of_items=True),
            status=placed(made.status, theirs.status, of_items=True),
            n=added(made.n, theirs.n, where),
            score=added(made.score, theirs.score, where),
            category_n=category_n,
            item_information=added(made.item_information, theirs.item_information, where),
            scale=theirs.scale,
            findings=(*(one for one in made.findings if one not in theirs.findings), *theirs.findings),
        ),
        evidence=replace(
            kept,
            information=added(kept.information, found.information, entries),
            prior_mean=placed(kept.prior_mean, found.prior_mean),
            prior_gradient=placed(kept.prior_gradient, found.prior_gradient),
            link_group=group,
            prior_precision=kept.prior_precision or found.prior_precision,
            offset_precision=kept.offset_precision or found.offset_precision,
            matrix=matrix,
            blocks=blocks,
        ),
        data=(*bank.data, dataset),
        population=bank.population or new.population,
        forms=(*bank.forms, *(form for form in new.forms if form not in bank.forms)),
    )
