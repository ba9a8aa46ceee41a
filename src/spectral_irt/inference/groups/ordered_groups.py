"""Thresholds calibrated in each group of people on its own: what comparisons of groups with ordered answers start from.

As in `subgroups.py`, on the items whose thresholds can be estimated in every group: one of the partial credit model
needs somebody in each of its categories there, as in eRm; one of a rating scale only answers that differ. Always by
conditional maximum likelihood, which the default estimate of ordered answers is close to or lands on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.conditional.ordered_likelihood import OrderedLikelihood
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.design import estimable
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.errors import DesignError, DisconnectedDesignError, listed
from spectral_irt.estimators.conditional_ordered import conditional_thresholds
from spectral_irt.estimators.rating_scale import Groups, scalable, scale_design
from spectral_irt.inference.groups.calibrations import Subgroups, calibrate_groups, estimator_like
from spectral_irt.inference.groups.grouping import Split
from spectral_irt.numerics import centered_inverse

METHOD = "conditional maximum likelihood, information"
NEWTON_STEPS = 60
LONGEST_STEP = 2.0  # logits
SETTLED = 1e-9  # logits


@dataclass(frozen=True)
class Tied:
    """The thresholds of a rating scale are tied to each other; `groups` maps items to scales, None: all to one."""

    groups: Mapping[Any, Any] | None = None

    @classmethod
    def of(cls, groups: Groups, items: NDArray[Any]) -> Tied:
        """From what `SpectralRatingScale` takes."""
        if groups is None or isinstance(groups, Mapping):
            return cls(groups)
        return cls(dict(zip(items.tolist(), groups, strict=True)))


def tied_like(calibration: Calibration) -> Tied | None:
    """How the thresholds of a calibration are tied: not at all in the partial credit model."""
    made = calibration.provenance
    if not made.estimator.endswith("RatingScale"):
        return None
    return Tied.of(made.settings.get("groups"), calibration.labels)


def design_matrix(responses: Responses, tied: Tied | None) -> Floats:
    """A of thresholds = A eta; the identity for partial credit."""
    if tied is None:
        return np.eye(responses.thresholds.n_entries)
    return scale_design(responses.thresholds, responses.items, tied.groups).matrix


# ------------------------------------------------------------------------------------------- locations alone


def groups_like(calibration: Calibration, responses: Responses, split: Split) -> Subgroups:
    """Difficulties in each group of people: of items by the calibration's own method, of ordered answers locations.

    Locations come with the distances of an item's thresholds held where the calibration has them, so that a category
    that a group did not use does no harm: one number for each item and group.
    """
    if calibration.layout.binary:
        return calibrate_groups(responses, split, estimator_like(calibration))
    if split.n_groups < 2:
        raise DesignError(f"{responses.source}: two groups of people are needed to compare.")
    groups = [_only(responses.take_persons(split.members(k))) for k in range(split.n_groups)]
    kept = calibration.known.copy()
    parts = groups if kept.all() else [group.take_items(kept) for group in groups]
    kept[kept] = _common_items(parts, split.names, Tied())
    shape = calibration.thresholds[responses.thresholds.of_items(np.flatnonzero(kept))]
    everyone = _only(responses.take_persons(split.group >= 0))
    if not kept.all():
        groups, everyone = [group.take_items(kept) for group in groups], everyone.take_items(kept)
    fits = [locations(group, shape, name) for group, name in zip(groups, split.names, strict=True)]
    covariances = tuple(covariance for _, covariance in fits)
    return Subgroups(
        split.names,
        split.sizes,
        np.array([int(group.mixed.sum()) for group in groups]),
        everyone.items,
        np.array([difficulty for difficulty, _ in fits]),
        np.sqrt(np.maximum([np.diag(c) for c in covariances], 0)),
        covariances,
        (),
        everyone,
        responses.items[~kept],
        METHOD,
    )


def locations(responses: Responses, shape: Floats, name: str = "") -> tuple[Floats, Floats]:
    """Locations of the items, mean zero, and their covariance, by conditional maximum likelihood.

    The thresholds of an item keep the distances that they have in `shape`.
    """
    steps = responses.thresholds
    likelihood = OrderedLikelihood(responses)
    exact = likelihood.exact_is_affordable()
    shift = np.zeros(steps.n_items)
    for _ in range(NEWTON_STEPS):
        beta = shape + shift[steps.item]
        score = np.bincount(steps.item, weights=likelihood.at(beta).gradient, minlength=steps.n_items)
        each = likelihood.information(beta, exact=exact)
        rows = np.add.reduceat(each, steps.first, axis=0)
        covariance = centered_inverse(np.add.reduceat(rows, steps.first, axis=1))
        step = covariance @ score
        shift += np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        if np.max(np.abs(step)) < SETTLED:
            where = steps.mean(shape) + shift
            return where - where.mean(), covariance
    raise DesignError(
        f"{responses.source}: in the group {name!r} the items have no finite location on a common scale. Use fewer or "
        "larger groups."
    )


# ------------------------------------------------------------------------------------------------ thresholds


@dataclass(frozen=True, eq=False)
class StepGroups:
    """Thresholds in each group, on the items that have them in all groups.

    Attributes
    ----------
    names, sizes, informative : tuple of str, int arrays
        The groups, their people, and how many of these have neither the lowest nor the highest score.
    thresholds : groups x thresholds
        The mean location is zero in each group.
    covariances : tuple of thresholds x thresholds
    loglik : tuple of float
        Conditional log-likelihoods.
    n_parameters : int
        Free ones in each group.
    everyone : Responses
        The people of all groups together, and only the items compared.
    left_out : labels
    tied : bool
        Whether only locations and common steps are free.
    """

    names: tuple[str, ...]
    sizes: NDArray[np.int64]
    informative: NDArray[np.int64]
    thresholds: Floats
    covariances: tuple[Floats, ...]
    loglik: tuple[float, ...]
    n_parameters: int
    everyone: Responses
    left_out: NDArray[Any]
    tied: bool

    @property
    def steps(self) -> Thresholds:
        return self.everyone.thresholds

    def locations(self) -> Subgroups:
        """The locations of the items in each group, with their covariances."""
        steps = self.steps
        mean = np.zeros((steps.n_items, steps.n_entries))
        mean[steps.item, np.arange(steps.n_entries)] = 1 / steps.max_score[steps.item]
        covariances = tuple(mean @ c @ mean.T for c in self.covariances)
        return Subgroups(
            self.names,
            self.sizes,
            self.informative,
            self.everyone.items,
            self.thresholds @ mean.T,
            np.sqrt(np.maximum([np.diag(c) for c in covariances], 0)),
            covariances,
            self.loglik,
            self.everyone,
            self.left_out,
            METHOD,
        )


def calibrate_step_groups(responses: Responses, split: Split, tied: Tied | None = None) -> StepGroups:
    """Fit every group on its own, on the items that can be estimated in all of them."""
    if split.n_groups < 2:
        what = f"a single one, {split.names[0]!r}" if split.names else "none"
        raise DesignError(f"{responses.source}: two groups of people are needed to compare, and there is {what}.")
    groups = [_only(responses.take_persons(split.members(k))) for k in range(split.n_groups)]
    kept = _common_items(groups, split.names, tied)
    everyone = _only(responses.take_persons(split.group >= 0))
    if not kept.all():
        groups, everyone = [group.take_items(kept) for group in groups], everyone.take_items(kept)
    matrix = design_matrix(everyone, tied)
    fits = [conditional_thresholds(group, None if tied is None else matrix) for group in groups]
    return StepGroups(
        split.names,
        split.sizes,
        np.array([int(group.mixed.sum()) for group in groups]),
        np.array([fit.thresholds for fit in fits]),
        tuple(fit.covariance for fit in fits if fit.covariance is not None),
        tuple(fit.loglik for fit in fits),
        matrix.shape[1] - 1,
        everyone,
        responses.items[~kept],
        tied is not None,
    )


def _only(responses: Any) -> Responses:
    assert isinstance(responses, Responses)
    return responses


def _common_items(groups: list[Responses], names: tuple[str, ...], tied: Tied | None) -> NDArray[np.bool_]:
    kept = np.ones(groups[0].n_items, dtype=bool)
    while True:
        before = kept.copy()
        for name, group in zip(names, groups, strict=True):
            here = group if kept.all() else group.take_items(kept)
            kept[np.flatnonzero(kept)[~_estimable_here(here, name, tied)]] = False
            if kept.sum() < 2:
                raise DesignError(
                    f"{group.source}: in the group {name!r} ({group.n_persons:,} people) too few items have all their "
                    f"categories in use to compare groups; items left: {listed(group.items[kept]) or 'none'}. Use "
                    "fewer or larger groups, another split, or join categories that few people use."
                )
        if (kept == before).all():
            return kept


def _estimable_here(group: Responses, name: str, tied: Tied | None) -> NDArray[np.bool_]:
    if tied is not None:
        return scalable(group)[0]
    try:
        return estimable(group)[1]
    except DisconnectedDesignError as error:
        raise DisconnectedDesignError(f"in the group {name!r} of {error.args[0]}") from None
    except DesignError:
        return np.zeros(group.n_items, dtype=bool)
