"""The rating scale model: all items of a group share the distances of their thresholds.

beta_ik = delta_i + tau_gk: a location for each item, and offsets that the items of a group g have in common (mean zero
over k). Thresholds are then A eta with a known matrix A, and the rest is what the partial credit model has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from spectral_irt.chain.weights import PERSONS
from spectral_irt.conditional.errors import parameter_covariance
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.newton import newton, parameters
from spectral_irt.data import Finding, Responses, as_responses
from spectral_irt.data.block import Block, Floats, Ints
from spectral_irt.data.design import examine
from spectral_irt.data.thresholds import Thresholds, answered_items, rows_of
from spectral_irt.errors import DesignError, OptionError, listed
from spectral_irt.estimators.base import RaschEstimator, Tell
from spectral_irt.estimators.conditional import Conditional
from spectral_irt.estimators.estimate import DENSE_ITEMS, Estimate, Kept, centered, person_weights, weights_finding
from spectral_irt.estimators.linear_design import LinearDesign
from spectral_irt.estimators.marginal import Marginal
from spectral_irt.estimators.spectral import Spectral
from spectral_irt.estimators.spectral_fit import spectral_fit
from spectral_irt.tables import Columns

Groups = Mapping[Any, Any] | Sequence[Any] | None
EXTREME = ("all right", "all wrong")
REPLACED = ("empty_categories", "disconnected", "extreme_items", "uninformed_items")  # findings with a prior in mind
START = 1e-6  # residual of the chain from which Newton's steps start


@dataclass(frozen=True, eq=False)
class ScaleDesign:
    """A of beta = A eta: first a column for every item, then for every group its category offsets but the last.

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


def scale_design(layout: Thresholds, items: NDArray[Any], groups: Groups) -> ScaleDesign:
    """The design of the rating scale model; items of one group must have the same number of categories."""
    labels, group = group_codes(items, groups)
    m = layout.n_items
    columns = [np.zeros((layout.n_entries, m))]
    columns[0][np.arange(layout.n_entries), layout.item] = 1.0
    for g, label in enumerate(labels):
        counts = layout.max_score[group == g]
        most = int(counts.max())
        if np.any(counts != most):
            fewer = items[group == g][counts != most]
            raise OptionError(
                f"the items of a rating scale have the same categories, but in group {label!r} {listed(fewer)} have "
                f"fewer than {most + 1}. Give them a group of their own, keep categories that nobody used "
                "(`unused='keep'`), or fit a partial credit model."
            )
        mine = group[layout.item] == g
        own = np.zeros((layout.n_entries, most - 1))
        for k in range(1, most):
            own[mine & (layout.level == k), k - 1] = 1.0
            own[mine & (layout.level == most), k - 1] = -1.0
        columns.append(own)
    return ScaleDesign(labels, group, np.concatenate(columns, axis=1))


class _RatingScale(RaschEstimator):
    """What the rating scale estimators share: tables keep the categories that all items of a group have."""

    several: ClassVar[bool] = True
    groups: Groups

    def _read(self, data: Any) -> Responses:
        return as_responses(
            data, ordered=True, unused=self.unused, groups=self.groups if self.unused == "keep" else None
        )

    def _kept(self, responses: Responses) -> tuple[Kept, Any]:
        """The items that a rating scale can place, and the matrix A of their thresholds."""
        n = responses.thresholds.n_entries
        if n > DENSE_ITEMS:
            raise OptionError(
                f"the rating scale is fitted with the covariance of all thresholds, up to {DENSE_ITEMS:,}; there are "
                f"{n:,}. Fit SpectralPartialCredit, or fewer items."
            )
        scale_design(responses.thresholds, responses.items, self.groups)  # errors before work
        mask, status, findings = scalable(responses)
        rest = responses if mask.all() else responses.take_items(mask)
        labels, group = group_codes(responses.items, self.groups)
        design = scale_design(rest.thresholds, rest.items, [labels[g] for g in group[mask]])
        check_categories(rest, design)
        return Kept(rest, mask, status, findings, responses.thresholds), sparse.csr_array(design.matrix)

    @property
    def offsets_(self) -> Columns:
        """tau_k of every group as columns `group, category, offset, se`."""
        learned = self._learned
        layout, beta = learned.layout, learned.thresholds
        rows: dict[str, list[Any]] = {"group": [], "category": [], "offset": [], "se": []}
        labels, group = group_codes(learned.labels, self.groups)
        for g, label in enumerate(labels):
            known = np.flatnonzero((group == g) & learned.known)
            for one in known[:1]:  # any item of the group has them
                mine = layout.of_items(np.array([one]))
                center = np.eye(len(mine)) - 1 / len(mine)
                se = np.full(len(mine), np.nan)
                if self.covariance_ is not None:
                    variance = np.diag(center @ self.covariance_[np.ix_(mine, mine)] @ center)
                    se = np.sqrt(np.maximum(variance, 0))
                rows["group"] += [label] * len(mine)
                rows["category"] += layout.level[mine].tolist()
                rows["offset"] += (center @ beta[mine]).tolist()
                rows["se"] += se.tolist()
        return {name: np.array(values) for name, values in rows.items()}


@dataclass(kw_only=True, eq=False, repr=False)
class SpectralRatingScale(_RatingScale, Spectral):
    """The rating scale model by the spectral method: difficulties, and category offsets that all items share.

    beta_ik = delta_i + tau_k = (A eta)_ik. From the chain on thresholds Newton's steps for eta lead onto the
    conditional likelihood. No threshold needs an estimate by itself, so that a category that some items never saw does
    no harm.

    Parameters
    ----------
    groups : mapping from item to group, or a label for each item, optional
        Items with a rating scale of their own; one scale for all by default.
    unused : "keep", "collapse" or "error"
        What becomes of categories that nobody used, where `fit` is given a table. "keep" (default): an item has the
        categories of its group.
    max_iter, threads
        As for `SpectralPartialCredit`.

    Attributes
    ----------
    difficulty_, se_ : float arrays
        delta_i; mean zero.
    offsets_ : columns
        tau_k of every group: `group, category, offset, se`.
    thresholds_, threshold_se_ : float arrays

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> fit = SpectralRatingScale().fit(simulate.rating_scale(800, 6, categories=4, seed=1).responses)
    >>> np.diff(fit.offsets_["offset"]).round(0).tolist()
    [1.0, 1.0]
    """

    common_offsets: ClassVar[bool] = True

    groups: Groups = None
    unused: str = "keep"
    max_iter: int = 10_000
    threads: int | None = None

    def _marginal(self) -> type[Marginal]:
        return MarginalRatingScale

    def _estimate(
        self,
        responses: Responses,
        tell: Tell,
        anchors: Any = None,
        weights: ArrayLike | None = None,
        design: LinearDesign | None = None,
    ) -> Estimate:
        if design is not None or responses.facets is not None:
            return self._linear(responses, tell, anchors, weights, design)
        if anchors is not None:
            raise OptionError("a rating scale has no anchors; anchor the items of a partial credit model.")
        kept, matrix_a = self._kept(responses)
        rest, each = kept.responses, None if weights is None else person_weights(responses, weights)
        chain: dict[str, Any] = {"weighting": PERSONS.name, "refine": False, "se": "none", "tol": START}
        first = spectral_fit(rest, **chain, max_passes=self.max_iter, progress=tell)
        eta = parameters(matrix_a, first.thresholds)
        found = newton(Likelihood(rest, matrix_a @ eta, weights=each, fine=True), eta, design=matrix_a, tell=tell)
        matrix = matrix_a @ (matrix_a @ parameter_covariance(found)).T
        beta, matrix = centered(rest.thresholds, found.beta, matrix)
        return kept.estimate(
            beta,
            None,
            first.n_iter + found.evaluations,
            found.move,
            covariance=matrix,
            se_method="dense",
            findings=[] if each is None else [weights_finding(each)],
            extra={} if each is None else {"weighted": (responses.persons, each)},
        )


@dataclass(kw_only=True, eq=False, repr=False)
class ConditionalRatingScale(_RatingScale, Conditional):
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
    offsets_ : columns
        tau_k of every group: `group, category, offset, se`.

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> answers = simulate.rating_scale(300, 5, categories=3, seed=1).responses
    >>> ConditionalRatingScale().fit(answers).thresholds_.shape
    (10,)
    """

    groups: Groups = None
    se: str = "information"
    unused: str = "keep"
    tol: float = 1e-9
    max_iter: int = 100
    threads: int | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class MarginalRatingScale(_RatingScale, Marginal):
    """The rating scale model by marginal maximum likelihood (MML): what `SpectralRatingScale` has of adaptive designs.

    Parameters
    ----------
    groups, unused
        As for `SpectralRatingScale`; groups of people are told to `fit`.
    sigma, tol, max_iter, threads
        As for `MarginalRasch`.

    Attributes
    ----------
    difficulty_, se_, thresholds_, threshold_se_, offsets_
        As for `SpectralRatingScale`.
    mu_, sigma_, population_, loglik_ and others
        As for `MarginalRasch`.

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> fit = MarginalRatingScale().fit(simulate.rating_scale(500, 5, categories=3, seed=1).responses)
    >>> fit.thresholds_.shape, bool(0.7 < fit.sigma_ < 1.3)
    ((10,), True)
    """

    groups: Groups = None
    sigma: float | None = None
    unused: str = "keep"
    tol: float = 1e-6
    max_iter: int = 500
    threads: int | None = None


def scalable(responses: Responses) -> tuple[NDArray[np.bool_], NDArray[Any], tuple[Finding, ...]]:
    """Which items have a finite location on a rating scale, the status of all, and findings.

    An item whose people all chose the highest or all the lowest category has none, and the same holds where the others
    say nothing because their score on the remaining items is the lowest or the highest.
    """
    found = examine(responses)
    status = found.status()
    kept = status != "no responses"
    while True:
        rest = responses.take_items(kept)
        used = rest.entries.sum(_categories_used, rest.thresholds)
        top = np.take_along_axis(used, rest.thresholds.max_score[:, None], axis=1)[:, 0]
        n = used.sum(axis=1)
        extreme = (used[:, 0] == n) | (top == n)
        if not extreme.any():
            break
        kept[np.flatnonzero(kept)[extreme]] = False
        if kept.sum() < 2:
            raise DesignError(
                f"{responses.source}: fewer than two items have answers in different categories by people who can tell "
                "them apart, so there is nothing to compare."
            )
    status[~kept & ~np.isin(status, ("no responses", *EXTREME))] = "no information"
    status[kept & (status == "empty category")] = "ok"  # the other items of the scale tell where its thresholds lie
    findings = tuple(f for f in found.findings if f.code not in REPLACED)
    names = responses.items[~kept & (responses.item_counts > 0)]
    if len(names):
        one = len(names) == 1
        findings += (
            Finding(
                "items_left_out",
                "warning",
                f"{len(names):,} {'item is' if one else 'items are'} left out, answered in the highest or in the "
                f"lowest category by everyone without an extreme score: {listed(names)}. A rating scale has no finite "
                f"location for {'it' if one else 'them'}.",
                "Drop the items or collect more answers; a partial credit model places them by its prior.",
                tuple(names.tolist()),
            ),
        )
    return kept, status, findings


def _categories_used(block: Block, layout: Thresholds) -> Floats:
    """Items x categories: answers of people with neither the lowest nor the highest score."""
    indptr, items, category = answered_items(block, layout)
    counts = np.repeat(rows_of(block, layout).informative, np.diff(indptr))
    width = layout.widest + 1
    cell = items[counts].astype(np.int64) * width + category[counts]
    return np.bincount(cell, minlength=layout.n_items * width).reshape(-1, width).astype(float)


def check_categories(rest: Responses, design: ScaleDesign) -> None:
    """Every category of a scale must have been chosen, or its thresholds lie at infinity."""
    used = rest.entries.sum(_categories_used, rest.thresholds)
    for g, label in enumerate(design.labels):
        mine = design.group == g
        one = int(np.flatnonzero(mine)[0])
        empty = np.flatnonzero(used[mine].sum(axis=0)[: rest.thresholds.max_score[one] + 1] == 0)
        if len(empty):
            where = f" of group {label!r}" if len(design.labels) > 1 else ""
            codes = empty.tolist() if rest.codes is None else [f"{code:g}" for code in rest.codes[one][empty]]
            raise DesignError(
                f"{rest.source}: category {listed(codes)}{where} was chosen only for items that everybody answers "
                "alike, or by people with the lowest or the highest score, so a rating scale has no finite threshold "
                "for it. Join it with its neighbor (`recode=`), drop these items, or fit a partial credit model."
            )
