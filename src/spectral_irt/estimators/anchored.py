"""Calibrate new items on the scale of old ones: some thresholds are fixed, the others are estimated around them.

`fit_beside` is `spectral_fit` with `Anchors`, wherever these come from (`bank.anchors` reads them): what is anchored of
the data is `Anchored`, which plans the fit, passes on the errors of the anchors and says how far each is displaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np

from spectral_irt.calibration import LOGITS, Scale
from spectral_irt.chain.prior import AMPLE_INFORMATION, FEW_ANSWERS, Regularization, enough_is_known, plan_prior
from spectral_irt.chain.stationary import linked_items
from spectral_irt.conditional.displacement import displacements
from spectral_irt.conditional.errors import Matrices, variance_from_anchors
from spectral_irt.conditional.penalized import PenalizedPoint
from spectral_irt.data import Finding, Responses, as_responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.design import Design, Mask, tied_to
from spectral_irt.data.labels import Labels, label_array, positions, text_of
from spectral_irt.data.scoring import several
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.estimators.base import Estimate, RaschEstimator, Tell
from spectral_irt.estimators.estimable import EstimableItems
from spectral_irt.estimators.spectral import options_of
from spectral_irt.estimators.spectral_steps import FitPlan, Solution, spectral_fit
from spectral_irt.joint_errors import JointErrors
from spectral_irt.tables import Table, make_table
from spectral_irt.text import count, count_are, first_of, listed, one_or_many

DISPLACED = 0.5  # logits: less is unlikely to matter in practice (Linacre, Winsteps manual, "Displacement measures")
DISPLACED_Z = 1.96  # and more than chance explains


@dataclass(frozen=True, eq=False)
class Anchors:
    """Items with given thresholds in logits, item after item, their standard errors (NaN: unknown) and joint errors.

    Items `left_out` have a difficulty that rests on the prior, or on another scale, and anchor nothing. Where
    `by_entry`, items are the numbers of their places in the data, from 1 on; `notes` say how they were read.
    """

    items: Labels
    thresholds: Floats
    se: Floats
    scale: Scale = LOGITS
    source: str = "the anchors"
    left_out: Labels = field(default_factory=lambda: label_array([]))
    errors: JointErrors | None = None
    layout: Thresholds | None = None
    by_entry: bool = False
    notes: tuple[Finding, ...] = ()

    @property
    def places(self) -> Thresholds:
        return self.layout or Thresholds.ones(len(self.items))

    @classmethod
    def of(cls, given: Mapping[Any, Any]) -> Anchors:
        """Of a mapping from item to thresholds (or one difficulty), which count as exact."""
        values = [np.atleast_1d(np.asarray(each, dtype=float)) for each in given.values()]
        layout = Thresholds(np.array([len(each) for each in values], dtype=np.int64))
        thresholds = np.concatenate([*values, np.empty(0)])
        return cls(label_array(list(given)), thresholds, np.full(len(thresholds), np.nan), layout=layout)

    def in_data(self, responses: Responses) -> Anchors:
        """The anchors under the labels of these data, where they have numbers of places instead."""
        if not self.by_entry or (positions(self.items, responses.items) >= 0).any():
            return self
        place = np.array([int(entry) - 1 for entry in self.items.tolist()], dtype=np.int64)
        beyond = self.items[(place < 0) | (place >= responses.n_items)]
        if len(beyond):
            raise OptionError(
                f"{self.source}: {responses.source} has {count(responses.n_items, 'item')}, and the anchors have the "
                f"entry numbers {listed(beyond)}. Give a file with the labels of the items."
            )
        labels = responses.items[place]
        sentence = (
            f"{count(len(place), 'anchor is', 'anchors are')} named by entry number, which is the place of the item in "
            f"the data: {self.items[0]} is {listed(labels[:1])}, {self.items[-1]} is {listed(labels[-1:])}."
        )
        note = Finding("anchors_by_entry", "note", sentence, "Check that the data have the items in that order.")
        return replace(self, items=labels, by_entry=False, notes=(note,))

    def without(self, free: Sequence[Any], responses: Responses) -> tuple[Anchors, tuple[Finding, ...]]:
        """The anchors but for the items that are to be `free`, and a note on these; an error for one that is no anchor
        of the data."""
        if not len(free):
            return self, ()
        place = positions(free, self.items)
        self._check_free(free, place, responses)
        stays = np.ones(len(self.items), dtype=bool)
        stays[place] = False
        if not (positions(responses.items, self.items[stays]) >= 0).any():
            raise OptionError(
                "`free` leaves none of the anchors that are in the data, so that nothing would fix the scale. Leave "
                "out some items, or calibrate without anchors."
            )
        thresholds = stays[self.places.item]
        anchors = replace(
            self,
            items=self.items[stays],
            thresholds=self.thresholds[thresholds],
            se=self.se[thresholds],
            errors=None if self.errors is None else self.errors.take(thresholds),
            layout=Thresholds(self.places.max_score[stays]),
        )
        names = self.items[np.unique(place)]
        verb = one_or_many(len(names), "was", "were")
        sentence = f"{count(len(names), 'anchor')} {verb} set free, as asked, and estimated: {listed(names)}."
        return anchors, (Finding("freed_anchors", "note", sentence, "", tuple(names.tolist())),)

    def _check_free(self, free: Sequence[Any], place: Ints, responses: Responses) -> None:
        """An error for items to be freed that are not in the data, or are no anchors."""
        in_data = positions(free, responses.items) >= 0
        unknown = [label for label, is_known in zip(free, in_data, strict=True) if not is_known]
        if unknown:
            raise OptionError(f"`free` names {listed(unknown)}, and the data have the items {listed(responses.items)}.")
        no_anchors = [label for label, k in zip(free, place.tolist(), strict=True) if k < 0]
        if no_anchors:
            raise OptionError(
                f"`free` names {listed(no_anchors)}, no anchor and therefore free already; the anchors are "
                f"{listed(self.items)}. Leave it out."
            )


@dataclass(frozen=True, eq=False)
class Anchored:
    """The thresholds of the data that are anchored, and what a fit does beside them."""

    value: Floats  # of every threshold of the data; NaN for those that are to be found
    place: Ints  # of each among the anchors, or -1
    errors: JointErrors | None = None  # of the anchors; without them they count as exact

    @property
    def fixed(self) -> Mask:
        return np.isfinite(self.value)

    def plan(self, design: Design, regularization: str | float) -> FitPlan:
        """What goes into the fit beside the anchors."""
        responses = design.answers
        tied = tied_to(responses, self.fixed)
        planned = self._regularization(design, tied, regularization)
        included = responses.item_counts > 0
        if regularization == 0:
            included = self._items_tied_by_data(responses, included)
        usable = responses
        if not included.all():
            usable = responses.take_items(included)
        findings = tuple(finding for finding in design.findings if finding.code != "disconnected")
        items = EstimableItems(usable, included, design.status, findings, responses.thresholds)
        return FitPlan(design, planned, items, tied[items.included_thresholds], self)

    def _regularization(self, design: Design, tied: Mask, regularization: str | float) -> Regularization:
        """Whether the free thresholds need a prior."""
        noun = "item" if design.answers.thresholds.binary else "threshold"
        if not isinstance(regularization, str):
            return plan_prior(design, regularization, noun)
        free = design.answered & ~self.fixed
        n_loose = int((free & ~tied).sum())
        if n_loose:
            verb = f"{noun} is" if n_loose == 1 else f"{noun}s are"
            reason = f"{n_loose:,} {verb} not tied to the anchors by the data alone"
            return Regularization("neighbors", reason, 1.0, True)
        if design.information[free].min(initial=AMPLE_INFORMATION) < AMPLE_INFORMATION:
            return Regularization("neighbors", FEW_ANSWERS.format(noun), 1.0, True)
        return enough_is_known(design.information[design.answered], noun)

    def _items_tied_by_data(self, responses: Responses, included: Mask) -> Mask:
        """Of these items, those that the answers tie to the anchors. Without the answers to items left out others may
        lose their tie, until all that are left have one."""
        layout = responses.thresholds
        included = included.copy()
        while True:
            usable = responses.take_items(included)
            fixed = self.fixed[included[layout.item]]
            tied = tied_to(usable, fixed) | fixed
            if tied.all():
                return included
            untied_items = np.unique(usable.thresholds.item[~tied])
            included[np.flatnonzero(included)[untied_items]] = False

    def around(self, beta: Floats, included_thresholds: Mask, component: Ints) -> Floats:
        """These thresholds of the chain with the mean of the anchors in each part of the data, and anchors as given."""
        value = self.value[included_thresholds]
        part = component[included_thresholds]
        distance = np.nan_to_num(value - beta)
        is_anchor = np.isfinite(value).astype(float)
        n_anchors = np.bincount(part, weights=is_anchor)
        shift = np.bincount(part, weights=distance) / np.maximum(n_anchors, 1)
        shift[n_anchors == 0] = distance.sum() / is_anchor.sum()
        return np.where(np.isfinite(value), value, beta + shift[part])

    def passed_on(
        self, optimum: PenalizedPoint, included_thresholds: Mask, matrices: Matrices | None, seed: int
    ) -> Floats:
        """The covariance that free thresholds have from the anchors' errors; their variances, without matrices."""
        assert self.errors is not None
        held = self.fixed[included_thresholds]
        of_held = self.errors.take(self.place[included_thresholds][held])
        if matrices is not None:
            return matrices.from_anchors(held, of_held.full())
        variance = np.zeros(len(held))
        variance[held] = of_held.variance
        return variance_from_anchors(optimum, variance, seed)

    def beside(self, estimate: Estimate, solution: Solution, matrices: Matrices | None) -> Estimate:
        """The estimate with anchors where they are, also those that nobody informs on, and how far they are off."""
        plan = solution.plan
        layout = plan.design.answers.thresholds
        included = plan.items.included
        is_anchor = layout.sum(self.fixed.astype(float)) == layout.max_score
        tied = np.zeros(layout.n_entries, dtype=bool)
        tied[plan.included_thresholds] = plan.tied
        status = estimate.status.copy()
        status[status == "unlinked"] = "ok"
        status[(layout.sum(tied.astype(float)) == 0) & (status == "ok")] = "unlinked"
        status[is_anchor] = "anchored"
        # An item that is the only anchor of its part would take all of it along.
        part, _ = linked_items(plan.responses, mixed=True)
        has_several_anchors = np.bincount(part, weights=is_anchor[included]) > 1
        moved = displacements(solution.optimum, matrices, solution.likelihood, has_several_anchors[part])
        assert estimate.item_se is not None
        return replace(
            estimate,
            thresholds=np.where(self.fixed, self.value, estimate.thresholds),
            se=np.where(self.fixed, 0.0, estimate.se),
            item_se=np.where(is_anchor, 0.0, estimate.item_se),
            status=status,
            further={
                "anchored": is_anchor,
                "displacement": plan.items.for_all_items(moved.displacement),
                "displacement_se": plan.items.for_all_items(moved.se),
            },
        )


def match_anchors(anchors: Anchors, responses: Responses) -> tuple[Anchored, list[Finding]]:
    """The anchored thresholds of the data; and notes on anchors that are not in the data, or anchor nothing."""
    layout = responses.thresholds
    anchor_of_item = positions(responses.items, anchors.items)
    estimated_anew = responses.items[positions(responses.items, anchors.left_out) >= 0]
    _check_anchors(anchors, anchor_of_item, responses, estimated_anew)
    place = np.where(anchor_of_item >= 0, anchors.places.first[anchor_of_item], -1)[layout.item]
    place = np.where(place >= 0, place + layout.level - 1, -1)
    value = np.where(place >= 0, anchors.thresholds[place], np.nan)
    has_all = layout.sum(np.isfinite(value).astype(float)) == layout.max_score  # an item without all of them is free
    value = np.where(has_all[layout.item], value, np.nan)
    if not np.isfinite(value).any():
        raise OptionError(f"none of the anchors ({listed(anchors.items)}) has a value for each of its thresholds.")
    notes = []
    if len(estimated_anew):
        them = one_or_many(len(estimated_anew), "it", "them")
        sentence = (
            f"{count_are(len(estimated_anew), 'item')} estimated anew and no anchor, because nothing but the prior had "
            f"placed {them} on the scale of the anchors: {listed(estimated_anew)}."
        )
        notes.append(Finding("anchors_left_out", "warning", sentence, "", tuple(estimated_anew.tolist())))
    missing = anchors.items[np.setdiff1d(np.arange(len(anchors.items)), anchor_of_item)]
    if len(missing):
        do = one_or_many(len(missing), "does", "do")
        sentence = f"{count_are(len(missing), 'anchor')} not in the data and {do} nothing: {listed(missing)}."
        notes.append(Finding("unused_anchors", "note", sentence, "", tuple(missing.tolist())))
    return Anchored(value, np.where(np.isfinite(value), place, -1), anchors.errors), notes


def _check_anchors(anchors: Anchors, anchor_of_item: Ints, responses: Responses, estimated_anew: Labels) -> None:
    """An error where no item has an anchor, or an anchor has another number of thresholds than its item."""
    if not (anchor_of_item >= 0).any():
        without_anchor = ""
        if len(estimated_anew):
            without_anchor = f" ({listed(estimated_anew)} had no difficulty of their own on that scale)"
        among = listed(anchors.items) or "none at all"
        raise OptionError(
            f"{responses.source}: none of its items ({listed(responses.items)}) is among the anchors, which are "
            f"{among}{without_anchor}; the scale would be fixed by nothing. Check the labels."
        )
    for item in np.flatnonzero(anchor_of_item >= 0):
        n_thresholds = anchors.places.max_score[anchor_of_item[item]]
        if n_thresholds != responses.thresholds.max_score[item]:
            raise OptionError(
                f"the anchor {listed([responses.items[item]])} has {n_thresholds:,} thresholds, and its answers are in "
                f"{responses.thresholds.max_score[item] + 1:,} categories; give one threshold less than there are "
                "categories, or keep categories that nobody used (`unused='keep'`)."
            )


def fit_beside(responses: Responses, anchors: Anchors, *, free: Sequence[Any] = (), **options: Any) -> Estimate:
    """The thresholds on the scale of the anchors, with findings on these. Items that are to be `free` are estimated;
    the options are those of `spectral_fit`."""
    layout = responses.thresholds
    anchors, freed = anchors.in_data(responses).without(free, responses)
    anchored, notes = match_anchors(anchors, responses)
    is_anchor = layout.sum(anchored.fixed.astype(float)) > 0
    if not (is_anchor & (responses.item_counts > 0)).any():
        raise DesignError(
            f"{responses.source}: nobody answered an anchored item ({listed(responses.items[is_anchor])}); the scale "
            "would be fixed by nothing. Anchor items that were answered."
        )
    estimate = spectral_fit(responses, anchored=anchored, **options)
    anchor_se = _location_se(anchors, layout, anchored.place, is_anchor)
    displacement = estimate.further["displacement"]
    se_of_difference = np.hypot(estimate.further["displacement_se"], np.nan_to_num(anchor_se))
    about_errors = "the anchors came without standard errors and count as exact"
    if anchors.errors is not None:
        about_errors = "the anchors' standard errors are passed on to the other items"
    sentence = f"{count_are(int(is_anchor.sum()), 'item')} anchored; {about_errors}."
    findings = (
        *estimate.findings[:-1],
        *anchors.notes,
        *freed,
        *notes,
        *_not_estimated(responses, estimate),
        estimate.findings[-1],
        Finding("anchored", "note", sentence),
        *_displacement_findings(responses.items, displacement, se_of_difference),
    )
    return replace(
        estimate,
        findings=findings,
        further={**estimate.further, "anchor_se": anchor_se},
        scale=anchors.scale,
        extra={**estimate.extra, "given_anchors": anchors},  # for another fit with the same ones
    )


def given_anchors(anchors: Any) -> Anchors:
    """Anchors from whatever they may be given as."""
    from spectral_irt.bank.anchors import as_anchors

    return as_anchors(anchors)


def _location_se(anchors: Anchors, layout: Thresholds, place: Ints, is_anchor: Mask) -> Floats:
    """The standard errors that the anchors' locations had where they come from, as far as is known."""
    se = np.where(place >= 0, anchors.se[place], np.nan)
    if layout.binary:
        return se
    location_se = np.full(layout.n_items, np.nan)
    if anchors.errors is None:
        return location_se
    for item in np.flatnonzero(is_anchor):
        places = place[layout.first[item] : layout.first[item] + layout.max_score[item]]
        location_se[item] = np.sqrt(anchors.errors.take(places).full().sum()) / len(places)
    return location_se


def _not_estimated(responses: Responses, estimate: Estimate) -> Iterator[Finding]:
    """Free items that the data do not put on the scale of the anchors: left out, or at the mercy of the prior."""
    answered = responses.item_counts > 0
    left_out = answered & np.isnan(responses.thresholds.mean(estimate.thresholds))
    untied = answered & ~left_out & (estimate.status == "unlinked")
    why = "because the data do not link them to the anchors"
    if left_out.any():
        labels = responses.items[left_out]
        sentence = f"{count_are(len(labels), 'item')} left out, {why}: {listed(labels)}."
        remedy = "Use `regularization='auto'` for an estimate from the prior, or drop them."
        yield Finding("items_left_out", "warning", sentence, remedy, tuple(labels.tolist()))
    if untied.any():
        labels = responses.items[untied]
        sentence = f"{count_are(len(labels), 'item')} placed by the prior alone, {why}: {listed(labels)}."
        remedy = "Collect answers to them together with anchored items."
        yield Finding("untied_items", "warning", sentence, remedy, tuple(labels.tolist()))


def _displacement_findings(labels: Labels, displacement: Floats, se: Floats) -> Iterator[Finding]:
    """Anchored items that lie elsewhere in these data, by more than matters and by more than chance."""
    with np.errstate(invalid="ignore", divide="ignore"):
        is_displaced = (np.abs(displacement) > DISPLACED) & (np.abs(displacement) > DISPLACED_Z * se)
    if not is_displaced.any():
        return
    places = np.flatnonzero(is_displaced)
    farthest_first = places[np.argsort(-np.abs(displacement[places]), kind="stable")]
    names = labels[farthest_first]
    sizes = [
        f"{listed([label])} by {size:+.2f}"
        for label, size in zip(names.tolist(), displacement[farthest_first].tolist(), strict=True)
    ]
    example = f"`free={[text_of(names[0])]}`"
    if len(names) == 1:
        what = f"1 anchored item is displaced by more than {DISPLACED:g} logits in these data"
        remedy = f"Look at this item; if it has changed, fit again with its anchor set free: {example}."
    else:
        what = f"{len(names):,} anchored items are displaced by more than {DISPLACED:g} logits in these data"
        remedy = (
            f"Look at these items; those that have changed are set free, the farthest first, in another fit: {example}."
        )
    sentence = f"{what} (+ is harder than its anchor): {first_of(sizes)}."
    yield Finding("displaced_anchors", "warning", sentence, remedy, tuple(names.tolist()))


def _further(name: str) -> Any:
    """An attribute of a fitted estimator that is a further column of its calibration."""
    return property(lambda self: self._fitted_calibration.further[name])


@dataclass(eq=False, repr=False)
class AnchoredRasch(RaschEstimator):
    """Difficulties (thresholds, where answers are in categories) with some items fixed, by the spectral method.

    The free items satisfy the same equations as in `SpectralRasch`, with the anchored items as given. Anchors of a
    bank, a fit or a file with standard errors pass their errors on to the free items: Var = sandwich + D errors D', D
    how free items move with the anchors. Plain numbers count as exact.

    Parameters
    ----------
    anchors : Bank, mapping label -> difficulty (or its thresholds), or path
        The fixed difficulties, in logits: a bank, its folder, a folder of results, or a file with columns item and
        difficulty; Winsteps' IFILE=, IAFILE= and control files, too.
    free : labels of items
        Anchors that are dropped: these items stay in the test, and are estimated. None by default.
    regularization : "auto" or float
        As in `SpectralRasch`, for the free items, with "connected" meaning tied to the anchors.
    assume_equal_means : bool
        Whether free items that share no people with anchored ones are taken to be as hard on average. By default their
        standard errors are infinite.
    se, tol, max_iter, threads, threshold, random_state
        As in `SpectralRasch`.

    Attributes
    ----------
    difficulty_, se_ : float arrays
        On the scale of the anchors. Anchored items keep their value exactly; their standard error is 0.
    anchored_ : bool array
    displacement_, displacement_se_ : float arrays
        For anchored items: the difficulty the item would have if it alone were set free, minus its anchor.
    anchor_se_ : float array
        The standard errors that the anchors had where they come from.

    Examples
    --------
    >>> from spectral_irt import datasets
    >>> fit = AnchoredRasch(anchors={"item1": 0.0, "item2": 1.75}).fit(datasets.load_lsat())
    >>> fit.difficulty_.round(1).tolist()
    [0.0, 1.8, 2.5, 1.4, 0.6]
    """

    anchors: Any = None
    _: KW_ONLY
    free: Sequence[Any] = ()
    regularization: str | float = "auto"
    assume_equal_means: bool = False
    se: str = "auto"
    tol: float = 1e-10
    max_iter: int = 10_000
    threads: int | None = None
    threshold: float | None = None
    random_state: int = 0

    def _read(self, data: Any) -> Responses:
        if self.anchors is None:
            raise OptionError("anchors is missing; give a bank, a mapping from item to difficulty, or a file.")
        if not given_anchors(self.anchors).places.binary:
            return as_responses(data, ordered=True, unused="keep")
        return as_responses(data, threshold=self.threshold)

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        return fit_beside(responses, given_anchors(self.anchors), free=several(self.free), **options_of(self, tell))

    anchored_ = _further("anchored")
    displacement_ = _further("displacement")
    displacement_se_ = _further("displacement_se")
    anchor_se_ = _further("anchor_se")

    def displacements(self) -> Table:
        """The anchored items as a table: `item, anchor, free, displacement, se, z`.

        `se` is that of the new data; `z` also has the anchor's own error, where that is known.
        """
        anchored = self.anchored_
        displacement = self.displacement_[anchored]
        se = self.displacement_se_[anchored]
        anchor = self.difficulty_[anchored]
        columns = {
            "item": self.item_labels_[anchored],
            "anchor": anchor,
            "free": anchor + displacement,
            "displacement": displacement,
            "se": se,
            "z": displacement / np.hypot(se, np.nan_to_num(self.anchor_se_[anchored])),
        }
        return make_table(columns, self._fitted_calibration.frame_kind)


def anchored_fit(responses: Any, anchors: Any, **options: Any) -> AnchoredRasch:
    """`AnchoredRasch(anchors, **options).fit(responses)`.

    >>> from spectral_irt import anchored_fit, datasets
    >>> float(anchored_fit(datasets.load_lsat(), {"item1": -1.0}).difficulty_[0])
    -1.0
    """
    return AnchoredRasch(anchors, **options).fit(responses)
