"""The items that a method can estimate, what to say about the others and about weak links; people's weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

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
from spectral_irt.text import count, count_are, first_of, listed

# Up to here a covariance matrix is formed and inverted: 200 MB and some tens of seconds. Beyond, each item's standard
# error comes from its own information alone.
DENSE_ITEMS = 5000
REPLACED = ("empty_categories", "disconnected", "extreme_items", "uninformed_items")  # findings with a prior in mind


@dataclass(frozen=True, eq=False)
class Kept:
    """The items a method can estimate, and what to say about the others."""

    responses: Responses
    mask: Mask
    status: NDArray[Any]
    findings: tuple[Finding, ...]
    layout: Thresholds  # of all items

    def spread(self, values: Floats) -> Floats:
        """One number for every threshold of the data: NaN for those left out."""
        return with_missing(values, self.mask if self.layout.binary else self.mask[self.layout.item])

    def estimate(
        self,
        thresholds: Floats,
        se: Floats | None,
        n_iter: int,
        residual: float,
        *,
        location: Floats | None = None,
        covariance: Floats | None = None,
        information: Floats | None = None,
        threshold_information: Floats | None = None,
        findings: tuple[Finding, ...] | list[Finding] = (),
        **record: Any,
    ) -> Estimate:
        """What was found of the items kept, for all; errors are those of the covariance, where there is one."""
        if covariance is not None:
            se = np.sqrt(np.maximum(np.diag(covariance), 0))
            location = np.sqrt(np.maximum(np.diag(location_covariance(self.responses.thresholds, covariance)), 0))
        return Estimate(
            self.spread(thresholds),
            self.spread(np.full(len(thresholds), np.nan) if se is None else se),
            self.status,
            n_iter,
            residual,
            item_se=None if location is None else with_missing(location, self.mask),
            covariance=None if covariance is None else self.spread(covariance),
            information=None if information is None else with_missing(information, self.mask),
            threshold_information=None
            if threshold_information is None
            else of_all_items(threshold_information, self.mask, self.layout),
            findings=(*self.findings, *findings),
            **record,
        )


def keep_estimable(responses: Responses) -> Kept:
    """For methods without a prior: leave out items with no finite difficulty; refuse data that fall apart."""
    rest, mask, findings = estimable(responses)
    design = examine(responses)
    also = tuple(f for f in design.findings if f.code in ("silent_persons", "many_more_items_than_persons"))
    return Kept(rest, mask, design.status, findings + also, responses.thresholds)


def scalable(responses: Responses) -> Mask:
    """Which items have a finite location on a rating scale.

    An item whose people all chose the highest or all the lowest category has none, and the same holds where the others
    say nothing because their score on the remaining items is the lowest or the highest.
    """
    kept = responses.item_counts > 0
    while True:
        rest = responses.take_items(kept)
        used = rest.entries.sum(_categories_used, rest.thresholds)
        top = np.take_along_axis(used, rest.thresholds.max_score[:, None], axis=1)[:, 0]
        extreme = (used[:, 0] == used.sum(axis=1)) | (top == used.sum(axis=1))
        if not extreme.any():
            return kept
        kept[np.flatnonzero(kept)[extreme]] = False
        if kept.sum() < 2:
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


def keep_scalable(responses: Responses, labels: NDArray[Any], group: Ints) -> Kept:
    """The items that a rating scale can place; an error where a category of a group is nobody's choice there."""
    design, mask = examine(responses), scalable(responses)
    status, rest = design.status.copy(), responses if mask.all() else responses.take_items(mask)
    used = rest.entries.sum(_categories_used, rest.thresholds)
    for g, label in enumerate(labels):
        mine = np.flatnonzero(group[mask] == g)
        if not len(mine):
            continue
        empty = np.flatnonzero(used[mine].sum(axis=0)[: rest.thresholds.max_score[mine[0]] + 1] == 0)
        if len(empty):
            where = f" of group {label!r}" if len(labels) > 1 else ""
            codes = empty.tolist() if rest.codes is None else [f"{code:g}" for code in rest.codes[mine[0]][empty]]
            raise DesignError(
                f"{rest.source}: category {listed(codes)}{where} was chosen only for items that everybody answers "
                "alike, or by people with the lowest or the highest score, so a rating scale has no finite threshold "
                "for it. Join it with its neighbor (`recode=`), drop these items, or fit a partial credit model."
            )
    status[~mask & ~np.isin(status, ("no responses", "all right", "all wrong"))] = "no information"
    status[mask & (status == "empty category")] = "ok"  # the other items of the scale tell where its thresholds lie
    findings = tuple(finding for finding in design.findings if finding.code not in REPLACED)
    names = responses.items[~mask & (responses.item_counts > 0)]
    if len(names):
        out = f"{count_are(len(names), 'item')} left out, answered in the highest or in the lowest category by everyone"
        why = f"A rating scale has no finite location for {'it' if len(names) == 1 else 'them'}."
        sentence = f"{out} without an extreme score: {listed(names)}. {why}"
        remedy = "Drop the items or collect more answers; a partial credit model places them by its prior."
        findings += (Finding("items_left_out", "warning", sentence, remedy, tuple(names.tolist())),)
    return Kept(rest, mask, status, findings, responses.thresholds)


def between_parts(parts: Ints, alpha: float, equal_means: bool) -> Floats:
    """Variance of each item's part against the scale, which is that of part 0: infinite, unless difficulties of all
    parts are draws from one distribution, where the mean of k of them has the variance 1 / (alpha k)."""
    if equal_means:
        return 1 / (alpha * np.bincount(parts + 1)[parts + 1])
    return np.where(parts > 0, np.inf, 0.0)


def unlinked(rest: Responses, parts: Ints, equal_means: bool) -> Finding:
    """What was assumed about groups of items that nobody links."""
    sizes, outside = np.bincount(parts), rest.items[parts > 0]
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


def slow_mixing(design: Design, rest: Responses, kept: Mask, method: str) -> list[Finding]:
    """The finding of weak links, for a chain that mixes slowly; ties hide them, so they are looked for in the data."""
    outside = design.component[kept[design.answers.thresholds.item]] != 0
    weak = weak_links(rest.take_items(rest.thresholds.sum(outside) == 0))
    if weak and method == "one-pass":
        remedy = "Standard errors by one pass are too small for differences between the groups; say `se='dense'`."
        weak = replace(weak, severity="warning", remedy=remedy)
    return [weak] if weak else []


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
        raise OptionError(
            f"{count(bad.sum(), 'person')} {'has' if bad.sum() == 1 else 'have'} no weight above zero: "
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
