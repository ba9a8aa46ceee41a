"""SpectralRatingScale and ConditionalRatingScale: all items of a group share the distances of their thresholds.

beta_ik = delta_i + tau_gk: a location for each item, and steps that the items of a group g have in common (mean zero
over k). Thresholds are then A eta with a known matrix A.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.chain.tied_steps import solve_tied
from spectral_irt.chain.weights import PERSONS
from spectral_irt.errors import DesignError, OptionError, check_option, listed, option
from spectral_irt.estimators.base import Tell
from spectral_irt.estimators.conditional_ordered import conditional_estimate, conditional_thresholds
from spectral_irt.estimators.ordered_base import (
    OrderedEstimator,
    StepEstimate,
    as_ordered,
    centered,
    location_errors,
    spread,
    spread_matrix,
)
from spectral_irt.estimators.partial_credit import SpectralPartialCredit
from spectral_irt.estimators.spectral import lands
from spectral_irt.estimators.tied_landing import land_tied
from spectral_irt.responses import Finding, Responses
from spectral_irt.responses.block import Floats, Ints
from spectral_irt.responses.ordered import OrderedResponses, Steps
from spectral_irt.responses.ordered_arrays import ordered_from_wide
from spectral_irt.responses.step_design import examine_ordered
from spectral_irt.tables import Columns

Groups = Mapping[Any, Any] | Sequence[Any] | None
METHODS = ("tied", "least squares")
MOST_STEPS = 5000  # thresholds whose covariance is a matrix in memory


@dataclass(frozen=True, eq=False)
class ScaleDesign:
    """A of beta = A eta: first a column for every item, then for every group its steps but the last.

    Attributes
    ----------
    labels : list
        Of the groups.
    group : int array
        The group of each item.
    matrix : float array, thresholds x parameters
    """

    labels: list[Any]
    group: Ints
    matrix: Floats

    def tau(self, steps: Steps, thresholds: Floats, covariance: Floats | None) -> Columns:
        """The common steps as columns `group, category, step, se`."""
        rows: dict[str, list[Any]] = {"group": [], "category": [], "step": [], "se": []}
        away = thresholds - steps.mean(thresholds)[steps.item]
        for g, label in enumerate(self.labels):
            one = int(np.flatnonzero(self.group == g)[0])  # any item of the group has them
            mine = np.arange(steps.first[one], steps.first[one] + steps.counts[one])
            se = np.full(len(mine), np.nan)
            if covariance is not None:
                c = covariance[np.ix_(mine, mine)]
                center = np.eye(len(mine)) - 1 / len(mine)
                se = np.sqrt(np.maximum(np.diag(center @ c @ center), 0))
            rows["group"] += [label] * len(mine)
            rows["category"] += steps.level[mine].tolist()
            rows["step"] += away[mine].tolist()
            rows["se"] += se.tolist()
        return {name: np.array(values) for name, values in rows.items()}


def group_codes(items: NDArray[Any], groups: Groups) -> tuple[list[Any], Ints]:
    """The groups' labels, and the group of each item."""
    if groups is None:
        return ["all"], np.zeros(len(items), dtype=np.int64)
    if isinstance(groups, Mapping):
        absent = [item for item in items.tolist() if item not in groups]
        if absent:
            raise OptionError(f"groups says nothing about {len(absent):,} items: {listed(absent)}.")
        each = [groups[item] for item in items.tolist()]
    else:
        each = list(groups)
        if len(each) != len(items):
            raise OptionError(f"groups has {len(each):,} labels; there are {len(items):,} items.")
    labels = list(dict.fromkeys(each))
    return labels, np.array([labels.index(one) for one in each])


def scale_design(steps: Steps, items: NDArray[Any], groups: Groups) -> ScaleDesign:
    """The design of the rating scale model; items of one group must have the same number of categories."""
    labels, group = group_codes(items, groups)
    m = steps.n_items
    columns = [np.zeros((steps.n_steps, m))]
    columns[0][np.arange(steps.n_steps), steps.item] = 1.0
    for g, label in enumerate(labels):
        counts = steps.counts[group == g]
        most = int(counts.max())
        if np.any(counts != most):
            fewer = items[group == g][counts != most]
            raise OptionError(
                f"the items of a rating scale have the same categories, but in group {label!r} {listed(fewer)} have "
                f"fewer than {most + 1}. Give them a group of their own, keep categories that nobody used (",
                option("unused", "keep"),
                "), or fit a partial credit model.",
            )
        mine = group[steps.item] == g
        own = np.zeros((steps.n_steps, most - 1))
        for k in range(1, most):
            own[mine & (steps.level == k), k - 1] = 1.0
            own[mine & (steps.level == most), k - 1] = -1.0
        columns.append(own)
    return ScaleDesign(labels, group, np.concatenate(columns, axis=1))


class _RatingScale(OrderedEstimator):
    """What both rating scale estimators share: tables keep the categories that all items of a group have."""

    groups: Groups
    steps_: Columns

    def _fitted(self, data: Any, progress: Tell | None, **design: Any) -> Any:
        if not isinstance(data, Responses):
            if self.groups is None or self.unused != "keep":
                data = as_ordered(data, self.unused)
            else:
                data = ordered_from_wide(data, unused="keep", groups=self.groups)
        return super()._fitted(data, progress, **design)

    def step_columns(self) -> Columns:
        """The common steps: `group, category, step, se`."""
        self._learned  # noqa: B018
        found: Columns = self.steps_
        return found


class SpectralRatingScale(_RatingScale):
    """The rating scale model by the spectral method: difficulties, and steps that all items share.

    beta_ik = delta_i + tau_k = (A eta)_ik. "tied" (default) takes Newton's steps for eta on the conditional likelihood,
    from the chain on thresholds; it needs no estimate of each threshold by itself, so that a category that some items
    never saw does no harm. "least squares" summarizes the thresholds b of `SpectralPartialCredit` with their
    covariance C, min (b - A eta)' C^-1 (b - A eta), and says how far they are from a rating scale.

    Parameters
    ----------
    groups : mapping from item to group, or a label for each item, optional
        Items with a rating scale of their own; one scale for all by default.
    method : "tied" or "least squares"
    weighting : "ability", "persons" or "pairs"
        As for `SpectralPartialCredit`.
    refine : "auto", True or False
        As for `SpectralPartialCredit`; False solves the balance of flows for eta, A' g = 0, which is unbiased as g is.
    unused : "keep", "collapse" or "error"
        What becomes of categories that nobody used, where `fit` is given a table. "keep" (default): an item has the
        categories of its group.
    tol, max_iter, threads
        As for `SpectralPartialCredit`.

    Attributes
    ----------
    difficulty_, se_ : float arrays
        delta_i; mean zero.
    steps_ : columns
        tau_k of every group: `group, category, step, se`.
    thresholds_, threshold_se_ : float arrays
    chi2_, df_ : float, int
        With "least squares": the squared distance of the partial credit thresholds from the rating scale, about
        chi-square distributed with `df_` degrees of freedom where the items do share their steps.

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> fit = SpectralRatingScale().fit(simulate.rating_scale(800, 6, categories=4, seed=1).responses)
    >>> np.diff(fit.steps_["step"]).round(0).tolist()
    [1.0, 1.0]
    """

    def __init__(
        self,
        *,
        groups: Groups = None,
        method: str = "tied",
        weighting: str = "ability",
        refine: str | bool = "auto",
        unused: str = "keep",
        tol: float = 1e-10,
        max_iter: int = 10_000,
        threads: int | None = None,
    ) -> None:
        self.groups = groups
        self.method = method
        self.weighting = weighting
        self.refine = refine
        self.unused = unused
        self.tol = tol
        self.max_iter = max_iter
        self.threads = threads

    def _estimate_steps(self, responses: OrderedResponses, tell: Tell, **options: Any) -> StepEstimate:
        check_option("method", self.method, METHODS)
        n = responses.steps.n_steps
        if n > MOST_STEPS:
            raise OptionError(
                f"the rating scale is fitted with the covariance of all thresholds, up to {MOST_STEPS:,}; there are "
                f"{n:,}. Fit SpectralPartialCredit, or fewer items."
            )
        scale_design(responses.steps, responses.items, self.groups)  # errors before work
        tied = self.method == "tied"
        kept, status, findings = scalable(responses)
        rest = responses if kept.all() else responses.take_items(kept)
        design = scale_design(rest.steps, rest.items, kept_groups(responses.items, self.groups, kept))
        own = SpectralPartialCredit(
            weighting=PERSONS.name if tied else self.weighting,
            refine=False if tied else self.refine,
            regularization="auto" if tied else 0,
            se="none" if tied else "dense",
            tol=1e-6 if tied else self.tol,
            max_iter=self.max_iter,
        )
        first = own._estimate_steps(rest, tell)
        extra: dict[str, Any] = {"kept": kept}
        if tied:
            solve = land_tied if lands(self.refine, self.weighting, 0.0) else solve_tied
            found = solve(rest, design.matrix, first.thresholds, self.weighting, tell)
            beta, matrix = centered(rest.steps, found.thresholds, found.covariance)
            passes, residual = first.n_iter + found.rounds, found.residual
        else:
            if not np.all(np.isfinite(first.thresholds)):
                raise DesignError(
                    f"{responses.source}: least squares need an estimate of every threshold, and some have none "
                    f"({listed(rest.items[~np.isfinite(rest.steps.mean(first.thresholds))])}). Say ",
                    option("method", "tied"),
                    ".",
                )
            assert first.covariance is not None
            beta, matrix, extra["chi2"], extra["df"] = least_squares(
                rest.steps, first.thresholds, first.covariance, design.matrix
            )
            passes, residual = first.n_iter, first.residual
        assert matrix is not None
        mask = kept[responses.steps.item]
        return StepEstimate(
            spread(beta, mask),
            spread(np.sqrt(np.maximum(np.diag(matrix), 0)), mask),
            spread(location_errors(rest.steps, matrix), kept),
            status,
            passes,
            residual,
            covariance=spread_matrix(matrix, mask),
            findings=findings,
            se_method="dense",
            extra={**extra, "steps": design.tau(rest.steps, beta, matrix)},
        )


def scalable(responses: OrderedResponses) -> tuple[NDArray[np.bool_], NDArray[Any], tuple[Finding, ...]]:
    """Which items have a finite location on a rating scale, the status of all, and findings."""
    found = examine_ordered(responses)
    status = found.item_status()
    kept = ~np.isin(status, ("no responses", "all right", "all wrong", "no information"))
    if kept.sum() < 2:
        raise DesignError(
            f"{responses.source}: fewer than two items have answers in different categories by people who can tell "
            "them apart, so there is nothing to compare."
        )
    status[status == "empty category"] = "ok"  # the other items of the scale tell where its thresholds lie
    findings = tuple(f for f in found.findings if f.code not in ("empty_categories", "disconnected"))
    return kept, status, findings


def kept_groups(items: NDArray[Any], groups: Groups, kept: NDArray[np.bool_]) -> Groups:
    labels, group = group_codes(items, groups)
    return [labels[g] for g in group[kept]]


def least_squares(
    steps: Steps, thresholds: Floats, covariance: Floats, design: Floats
) -> tuple[Floats, Floats, float, int]:
    """The nearest thresholds of the form A eta, in the metric of the covariance; theirs, the distance and its df."""
    weight = steps.averaging()
    # The mean location is zero and has no variance; a variance along it changes nothing but makes a matrix to invert.
    full = covariance + np.mean(np.diag(covariance)) * np.outer(weight, weight) / (weight @ weight)
    metric = np.linalg.inv(full)
    normal = design.T @ metric
    back = design @ np.linalg.solve(normal @ design, normal)
    beta, matrix = centered(steps, back @ thresholds, back @ covariance @ back.T)
    assert matrix is not None
    away = thresholds - beta
    return beta, matrix, float(away @ metric @ away), len(thresholds) - design.shape[1]


class ConditionalRatingScale(_RatingScale):
    """The rating scale model by conditional maximum likelihood, exact; the accuracy reference.

    Parameters
    ----------
    groups, unused
        As for `SpectralRatingScale`.
    se, tol, max_iter, threads
        As for `ConditionalPartialCredit`.

    Attributes
    ----------
    difficulty_, se_, thresholds_, threshold_se_, loglik_, n_patterns_
    steps_ : columns
        tau_k of every group: `group, category, step, se`.

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> answers = simulate.rating_scale(300, 5, categories=3, seed=1).responses
    >>> ConditionalRatingScale().fit(answers).thresholds_.shape
    (10,)
    """

    def __init__(
        self,
        *,
        groups: Groups = None,
        se: str = "information",
        unused: str = "keep",
        tol: float = 1e-9,
        max_iter: int = 100,
        threads: int | None = None,
    ) -> None:
        self.groups = groups
        self.se = se
        self.unused = unused
        self.tol = tol
        self.max_iter = max_iter
        self.threads = threads

    def _estimate_steps(self, responses: OrderedResponses, tell: Tell, **options: Any) -> StepEstimate:
        scale_design(responses.steps, responses.items, self.groups)
        kept, status, findings = scalable(responses)
        rest = responses if kept.all() else responses.take_items(kept)
        design = scale_design(rest.steps, rest.items, kept_groups(responses.items, self.groups, kept))
        fit = conditional_thresholds(
            rest, design.matrix, se=self.se, tol=self.tol, max_iter=self.max_iter, progress=tell
        )
        mask = kept[responses.steps.item]
        estimate = conditional_estimate(fit, rest.steps, kept, mask, status, findings, self.tol)
        steps = design.tau(rest.steps, fit.thresholds, fit.covariance)
        return StepEstimate(**{**vars(estimate), "extra": {**estimate.extra, "steps": steps}})
