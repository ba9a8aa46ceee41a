"""OrderedBank: a kept calibration of items with several thresholds, and of items that are right or wrong among them.

What its data said is a quadratic around the thresholds, as in `evidence.py`: the information of the conditional
likelihood there. New answers add their likelihood (`ordered_updating.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from spectral_irt.bank.bank import Bank, DataSet
from spectral_irt.bank.evidence import MATRIX_ITEMS
from spectral_irt.bank.linked_groups import is_measured
from spectral_irt.bank.naming import same_labels
from spectral_irt.bank.people import NO_RECOGNITION, Salt, nobody
from spectral_irt.bank.reference_population import Population
from spectral_irt.calibration import Provenance
from spectral_irt.errors import BankError, listed, option
from spectral_irt.estimators.ordered_base import as_ordered
from spectral_irt.estimators.ordered_likelihood import OrderedLikelihood
from spectral_irt.numerics import fixed
from spectral_irt.ordered_calibration import OrderedCalibration
from spectral_irt.responses.block import Floats, Ints
from spectral_irt.responses.labels import positions
from spectral_irt.responses.ordered import OrderedResponses, Steps


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class OrderedBank(Bank):
    """A saved calibration of ordered answers. `difficulty` and `se` are those of the items' locations.

    Attributes
    ----------
    thresholds, threshold_se : float arrays
        Item after item, in logits; NaN without an estimate.
    n_thresholds : int array
        How many each item has; 1 for items that are right or wrong.
    category_n, codes : float arrays, items x categories
        How many people gave each answer, and what stands for it in data; NaN where an item has fewer categories.
    step_information : float array
        What the answers told about each threshold, with the others held.
    step_matrix : float array or None
        The whole information matrix, kept for up to 2,000 thresholds.

    Examples
    --------
    >>> from spectral_irt import SpectralPartialCredit, simulate
    >>> answers = simulate.partial_credit(300, 5, categories=3, seed=1).responses
    >>> Bank.from_fit(SpectralPartialCredit().fit(answers), answers)
    <OrderedBank: 5 items, 300 people, 1,500 responses, difficulty ... to ... logits>
    """

    thresholds: Floats = field(default_factory=lambda: np.zeros(0))
    threshold_se: Floats = field(default_factory=lambda: np.zeros(0))
    n_thresholds: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    category_n: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    codes: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    step_information: Floats = field(default_factory=lambda: np.zeros(0))
    step_matrix: Floats | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        steps = int(np.sum(self.n_thresholds))
        for name in ("thresholds", "threshold_se", "step_information"):
            values = getattr(self, name)
            if len(values) != steps:
                raise BankError(f"{name} has {len(values):,} values for {steps:,} thresholds.")
            object.__setattr__(self, name, fixed(values))

    @property
    def span(self) -> tuple[int, int]:
        """The lowest and the highest category that stands in data."""
        return int(np.nanmin(self.codes)), int(np.nanmax(self.codes))

    @cached_property
    def steps(self) -> Steps:
        return Steps(np.asarray(self.n_thresholds, dtype=np.int64))

    def item_columns(self) -> dict[str, Any]:
        columns = super().item_columns()
        del columns["p_correct"]
        mean = np.divide(self.n_right, self.n, out=np.full(self.n_items, np.nan), where=self.n > 0)
        return {**columns, "mean_score": mean, "most": self.steps.counts}

    @property
    def calibration(self) -> OrderedCalibration:
        """The calibration that the bank keeps; with responses it makes an `OrderedAnalysis`."""
        return OrderedCalibration(
            labels=self.items,
            thresholds=self.thresholds,
            threshold_se=self.threshold_se,
            location_se=self.se,
            n_thresholds=self.steps.counts,
            category_n=self.category_n,
            codes=self.codes,
            status=self.status,
            n=self.n,
            score=self.n_right,
            item_information=self.information,
            scale=self.scale,
            findings=self.findings,
            provenance=Provenance(estimator=self.estimator, settings=self.settings, version=self.version),
            further={"anchored": self.anchored} if self.anchored.any() else {},
        )


def ordered_without_data(made: OrderedCalibration) -> OrderedBank:
    """The bank of a calibration alone: updating it goes by the standard errors of its thresholds."""
    with np.errstate(divide="ignore", invalid="ignore"):
        told = np.nan_to_num(1 / made.threshold_se**2, posinf=0.0)
    return OrderedBank(
        items=made.labels,
        difficulty=made.difficulty,
        se=made.se,
        status=made.status,
        n=made.n,
        n_right=made.score,
        information=np.where(made.known, np.nan_to_num(made.item_information), 0.0),
        anchored=made.anchored,
        group=np.zeros(made.n_items, dtype=np.int64),
        estimator=made.provenance.estimator,
        settings=plain_settings(made.provenance.settings),
        scale=made.scale,
        findings=made.findings,
        version=made.provenance.version,
        thresholds=made.thresholds,
        threshold_se=made.threshold_se,
        n_thresholds=made.steps.counts,
        category_n=made.category_n,
        codes=made.codes,
        step_information=told,
    )


def plain_settings(settings: Any) -> dict[str, Any]:
    """Settings that a manifest can hold; the groups of a rating scale, which may be any labels, are left out."""
    return {name: value for name, value in settings.items() if value is None or isinstance(value, str | int | float)}


def ordered_to_bank(made: OrderedCalibration, responses: Any, salt: Any = None) -> OrderedBank:
    """The bank of this calibration and of what the answers that it was fitted to tell; see `to_bank`."""
    secret = Salt.of(salt)
    answers = as_ordered(responses, "keep")
    if not (same_labels(made.labels, answers.items) and np.array_equal(made.n, answers.item_counts)):
        raise BankError(
            f"{answers.source}: these are not the responses that the calibration was fitted to "
            f"({answers.n_items:,} items: {listed(answers.items)}; the calibration has {made.n_items:,}: "
            f"{listed(made.labels)}). Give to_bank the same responses as fit."
        )
    alone = ordered_without_data(made)
    matrix = None
    if made.steps.n_steps <= MATRIX_ITEMS:
        matrix = step_information(answers, made.thresholds)
        alone = replace(alone, step_information=np.diag(matrix).copy())
    measured = made.known & is_measured(made.status)
    place = made.thresholds.copy()
    place[~measured[made.steps.item]] = np.nan
    if secret is not None:
        secret = secret.keep()
    silent = secret is None and NO_RECOGNITION not in made.findings
    return replace(
        alone,
        data=(DataSet.of(answers, "fit", secret),),
        findings=(*made.findings, NO_RECOGNITION) if silent else made.findings,
        population=Population.of(answers, place),
        users=secret.fingerprints(answers) if secret else nobody(),
        salt_check=secret.check if secret else "",
        step_matrix=matrix,
    )


def step_information(responses: OrderedResponses, thresholds: Floats) -> Floats:
    """Information of these answers on all thresholds, zero for items without an estimate."""
    steps = responses.steps
    full = np.zeros((steps.n_steps, steps.n_steps))
    known = np.isfinite(steps.mean(thresholds))
    rest = responses if known.all() else responses.take_items(known)
    if rest.mixed.any():
        place = steps.of_items(np.flatnonzero(known))
        likelihood = OrderedLikelihood(rest)
        full[np.ix_(place, place)] = likelihood.information(thresholds[place], exact=likelihood.exact_is_affordable())
    return full


def refuse_ordered(bank: Bank, responses: Any) -> None:
    """An error where answers in several categories meet a bank of items that are right or wrong."""
    if not isinstance(responses, OrderedResponses) or responses.steps.binary:
        return
    wide = responses.steps.counts > 1
    shared = wide & (positions(responses.items, bank.items) >= 0)
    named = responses.items[shared if shared.any() else wide]
    raise BankError(
        f"{responses.source}: answers to {listed(named)} are in more than two categories, and the bank has items that "
        "are right or wrong. Say what counts as right with ",
        option("threshold", ...),
        ", or calibrate the ordered answers to a bank of their own. The bank is unchanged.",
    )
