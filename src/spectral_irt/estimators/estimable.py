"""The items that a method can estimate, what to say about the others and about weak links; people's weights.

Every method begins with `EstimableItems`, estimates their thresholds, and has `estimate` say what it found of all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_irt.chain.stationary import weak_links
from spectral_irt.conditional.errors import location_covariance
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds, answered_items, rows_of
from spectral_irt.data.design import Design, Mask, examine
from spectral_irt.data.labels import column_of
from spectral_irt.data.unlinked import estimable
from spectral_irt.errors import LARGEST_COMPONENT, DesignError, OptionError
from spectral_irt.estimators.base import Estimate, of_all_items, with_missing
from spectral_irt.text import count, count_are, first_of, listed, one_or_many

if TYPE_CHECKING:
    from spectral_irt.chain.prior import Regularization
    from spectral_irt.conditional.errors import Matrices

# Up to here a covariance matrix is formed and inverted: 200 MB and some tens of seconds. Beyond, each item's standard
# error comes from its own information alone.
DENSE_ITEMS = 5000
SAID_OF_ITEMS_LEFT_OUT = ("extreme_items", "uninformed_items", "empty_categories")  # findings that `estimable` repeats
REPLACED = ("empty_categories", "disconnected", "extreme_items", "uninformed_items")  # findings with a prior in mind


class Errors(NamedTuple):
    """Standard errors of thresholds and of locations (None: as if each threshold were known by itself), and by which
    method; their covariance and the matrices that it came from, where these were formed."""

    thresholds: Floats
    locations: Floats | None = None
    method: str | None = None
    covariance: Floats | None = None
    matrices: Matrices | None = None

    @classmethod
    def none(cls, layout: Thresholds) -> Errors:
        """Where no errors were asked for, or there are none."""
        return cls(np.full(layout.n_entries, np.nan), np.full(layout.n_items, np.nan), "none")

    @classmethod
    def of(
        cls, layout: Thresholds, covariance: Floats, method: str | None = None, matrices: Matrices | None = None
    ) -> Errors:
        """Those of this covariance of the thresholds."""
        thresholds = np.sqrt(np.maximum(np.diag(covariance), 0))
        locations = np.sqrt(np.maximum(np.diag(location_covariance(layout, covariance)), 0))
        return cls(thresholds, locations, method, covariance, matrices)

    def with_unknown_levels(self, layout: Thresholds, part: Ints, unknown: Floats) -> Errors:
        """With the variance `unknown` of the level of each item's part, which all items of a part share."""
        assert self.locations is not None
        part_of_threshold = part[layout.item]
        wider = unknown[layout.item]
        covariance = self.covariance
        if covariance is not None:
            covariance = covariance + np.where(part_of_threshold[:, None] == part_of_threshold, wider, 0.0)
        return self._replace(
            thresholds=np.sqrt(self.thresholds**2 + wider),
            locations=np.sqrt(self.locations**2 + unknown),
            covariance=covariance,
        )


@dataclass(frozen=True, eq=False)
class EstimableItems:
    """The items that a method can estimate, and what to say about the others.

    `responses` are those to these items, `included` says which of all items they are; `status`, `layout` and
    `findings` are of all items.
    """

    responses: Responses
    included: Mask
    status: NDArray[Any]
    findings: tuple[Finding, ...]
    layout: Thresholds

    @classmethod
    def all_of(cls, responses: Responses) -> EstimableItems:
        """Every item, for whoever knows that all can be estimated."""
        n = responses.n_items
        return cls(responses, np.full(n, True), np.full(n, "ok", dtype=object), (), responses.thresholds)

    @property
    def included_thresholds(self) -> Mask:
        """Which of all thresholds belong to these items."""
        return self.included if self.layout.binary else self.included[self.layout.item]

    def for_all(self, values: Floats) -> Floats:
        """One number for every threshold of the data, or a matrix of them: NaN for those left out."""
        return with_missing(values, self.included_thresholds)

    def for_all_items(self, values: Floats) -> Floats:
        """One number for every item of the data: NaN for those left out."""
        return with_missing(values, self.included)

    def estimate(
        self,
        thresholds: Floats,
        errors: Errors,
        n_iter: int,
        residual: float,
        *,
        information: Floats | None = None,
        threshold_information: Floats | None = None,
        findings: tuple[Finding, ...] | list[Finding] = (),
        **fields: Any,
    ) -> Estimate:
        """What was found of these items, said of all; `fields` are further ones of the `Estimate`."""
        item_se = covariance = None
        if errors.locations is not None:
            item_se = self.for_all_items(errors.locations)
        if errors.covariance is not None:
            covariance = self.for_all(errors.covariance)
        if information is not None:
            information = self.for_all_items(information)
        if threshold_information is not None:
            threshold_information = of_all_items(threshold_information, self.included, self.layout)
        return Estimate(
            self.for_all(thresholds),
            self.for_all(errors.thresholds),
            self.status,
            n_iter,
            residual,
            item_se=item_se,
            covariance=covariance,
            information=information,
            threshold_information=threshold_information,
            findings=(*self.findings, *findings),
            se_method=errors.method,
            **fields,
        )


def estimable_items(responses: Responses) -> EstimableItems:
    """For methods without a prior: leave out items with no finite difficulty; refuse data that fall apart."""
    usable, included, left_out = estimable(responses)
    design = examine(responses)
    about_persons = tuple(
        finding for finding in design.findings if finding.code in ("silent_persons", "many_more_items_than_persons")
    )
    return EstimableItems(usable, included, design.status, left_out + about_persons, responses.thresholds)


def items_taking_part(design: Design, plan: Regularization) -> EstimableItems:
    """The items of a spectral fit: those with an answer; without a prior, those with a finite estimate."""
    responses = design.answers
    if plan.kind == "none" and not (design.connected and design.answered.all()):
        usable, included, left_out = estimable(responses)
        about_design = tuple(finding for finding in design.findings if finding.code not in SAID_OF_ITEMS_LEFT_OUT)
        return EstimableItems(usable, included, design.status, about_design + left_out, responses.thresholds)
    included = responses.item_counts > 0
    usable = responses
    if not included.all():
        usable = responses.take_items(included)
    return EstimableItems(usable, included, design.status, tuple(design.findings), responses.thresholds)


def scalable(responses: Responses) -> Mask:
    """Which items have a finite location on a rating scale.

    An item whose people all chose the highest or all the lowest category has none, and the same holds where the others
    say nothing because their score on the remaining items is the lowest or the highest.
    """
    included = responses.item_counts > 0
    while True:
        usable = responses.take_items(included)
        used = usable.entries.sum(_categories_used, usable.thresholds)
        answers = used.sum(axis=1)
        in_highest = np.take_along_axis(used, usable.thresholds.max_score[:, None], axis=1)[:, 0]
        extreme = (used[:, 0] == answers) | (in_highest == answers)
        if not extreme.any():
            return included
        included[np.flatnonzero(included)[extreme]] = False
        if included.sum() < 2:
            raise DesignError(
                f"{responses.source}: fewer than two items have answers in different categories by people who can tell "
                "them apart, so there is nothing to compare."
            )


def _categories_used(block: Block, layout: Thresholds) -> Floats:
    """Items x categories: answers of people with neither the lowest nor the highest score."""
    indptr, items, category = answered_items(block, layout)
    counts = np.repeat(rows_of(block, layout).informative, np.diff(indptr))
    width = layout.widest + 1
    cell = items[counts].astype(np.int64) * width + category[counts]
    return np.bincount(cell, minlength=layout.n_items * width).reshape(-1, width).astype(float)


def scalable_items(responses: Responses, labels: NDArray[Any], group: Ints) -> EstimableItems:
    """The items that a rating scale can place; an error where a category of a group is nobody's choice there.

    `labels` are those of the groups of items with one scale, `group` is that of each item.
    """
    design = examine(responses)
    included = scalable(responses)
    usable = responses
    if not included.all():
        usable = responses.take_items(included)
    _refuse_unused_categories(usable, labels, group[included])
    status = design.status.copy()
    status[~included & ~np.isin(status, ("no responses", "all right", "all wrong"))] = "no information"
    status[included & (status == "empty category")] = "ok"  # the other items tell where its thresholds lie
    findings = tuple(finding for finding in design.findings if finding.code not in REPLACED)
    left_out = responses.items[~included & (responses.item_counts > 0)]
    if len(left_out):
        findings += (_left_out_of_the_scale(left_out),)
    return EstimableItems(usable, included, status, findings, responses.thresholds)


def _refuse_unused_categories(usable: Responses, labels: NDArray[Any], group: Ints) -> None:
    """An error where a category of a rating scale was never chosen by a person who tells something."""
    used = usable.entries.sum(_categories_used, usable.thresholds)
    for g, label in enumerate(labels):
        members = np.flatnonzero(group == g)
        if not len(members):
            continue
        highest = usable.thresholds.max_score[members[0]]
        empty = np.flatnonzero(used[members].sum(axis=0)[: highest + 1] == 0)
        if not len(empty):
            continue
        where = f" of group {label!r}" if len(labels) > 1 else ""
        codes: list[Any] = empty.tolist()
        if usable.codes is not None:
            codes = [f"{code:g}" for code in usable.codes[members[0]][empty]]
        raise DesignError(
            f"{usable.source}: category {listed(codes)}{where} was chosen only for items that everybody answers "
            "alike, or by people with the lowest or the highest score, so a rating scale has no finite threshold "
            "for it. Join it with its neighbor (`recode=`), drop these items, or fit a partial credit model."
        )


def _left_out_of_the_scale(labels: NDArray[Any]) -> Finding:
    what = f"{count_are(len(labels), 'item')} left out, answered in the highest or in the lowest category by everyone"
    them = one_or_many(len(labels), "it", "them")
    return Finding(
        "items_left_out",
        "warning",
        f"{what} without an extreme score: {listed(labels)}. A rating scale has no finite location for {them}.",
        "Drop the items or collect more answers; a partial credit model places them by its prior.",
        tuple(labels.tolist()),
    )


def between_parts(parts: Ints, alpha: float, equal_means: bool) -> Floats:
    """Variance of each item's part against the scale, which is that of part 0: infinite, unless difficulties of all
    parts are draws from one distribution, where the mean of k of them has the variance 1 / (alpha k)."""
    if equal_means:
        return 1 / (alpha * np.bincount(parts + 1)[parts + 1])
    return np.where(parts > 0, np.inf, 0.0)


def finding_on_groups(usable: Responses, parts: Ints, equal_means: bool) -> Finding:
    """What was assumed about groups of items that nobody links."""
    sizes = np.bincount(parts)
    outside = usable.items[parts > 0]
    sentence = (
        f"The items fall into {len(sizes):,} groups that share no people (sizes {first_of(f'{n:,}' for n in sizes)}): "
        "nothing tells how their difficulties compare. Each group has a mean of zero of its own"
    )
    remedy = "Fit each group on its own, add a form that links them, or take " + LARGEST_COMPONENT
    if equal_means:
        sentence += ", for the groups were assumed to be equally hard on average."
    else:
        sentence += f"; the standard error of items outside the largest group is infinite: {listed(outside)}."
        remedy += "; `assume_equal_means=True` assumes that groups are equally hard on average"
    return Finding("disconnected", "warning", sentence, remedy + ".", tuple(outside.tolist()))


def slow_mixing(design: Design, usable: Responses, included: Mask, method: str | None) -> list[Finding]:
    """The finding of weak links, for a chain that mixes slowly; ties hide them, so they are looked for in the data."""
    outside = design.component[included[design.answers.thresholds.item]] != 0
    finding = weak_links(usable.take_items(usable.thresholds.sum(outside) == 0))
    if not finding:
        return []
    if method == "one-pass":
        remedy = "Standard errors by one pass are too small for differences between the groups; say `se='dense'`."
        finding = replace(finding, severity="warning", remedy=remedy)
    return [finding]


def by_item(items: NDArray[Any], values: Floats, n_items: int) -> Floats:
    """Sum over the answers to each item."""
    return np.bincount(items, weights=values, minlength=n_items).astype(np.float64, copy=False)


def by_person(block: Block, values: Floats) -> Floats:
    """Sum over the answers of each person of a block in which everybody answered something."""
    return np.add.reduceat(values, block.indptr[:-1]) if block.n_persons else np.zeros(0)


def person_weights(responses: Responses, weights: ArrayLike) -> Floats:
    """Survey weights: one positive number for every person, with mean 1, as estimates do not depend on their unit."""
    if isinstance(weights, str):
        weights = [np.nan if value is None else value for value in column_of(responses, weights)]
    try:
        values = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError("the weights are not all numbers; give each person a number above zero.") from None
    if values.shape != (responses.n_persons,):
        raise OptionError(
            f"there are {values.size:,} weights for {responses.n_persons:,} people; give one for each, in their order."
        )
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        have = one_or_many(bad.sum(), "has", "have")
        raise OptionError(
            f"{count(bad.sum(), 'person')} {have} no weight above zero: "
            f"{listed(responses.persons[bad])}. Leave them out, or give them one."
        )
    return values / values.mean()


def weights_finding(weights: Floats) -> Finding:
    """What weights there were, and how many people of equal weight they are worth."""
    if np.ptp(weights) == 0:
        return Finding("weights", "note", "All people have the same weight, so that weights change nothing.")
    worth = weights.sum() ** 2 / np.sum(weights**2)
    counts = f"People count by their weights, from {weights.min():.2g} to {weights.max():.2g} times the mean"
    sentence = f"{counts}; together they are worth {worth:,.0f} people of equal weight."
    allow = (
        "Difficulties and their standard errors, populations, means, reliability, percentiles and classes of people, "
        "DIF and the tests of the model between groups allow for the weights"
    )
    remedy = f"{allow}; counts, item fit, local dependence and dimensions count everybody once."
    return Finding("weights", "note", sentence, remedy)
