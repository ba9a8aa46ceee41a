"""Calibrate new items on the scale of old ones: some thresholds are fixed, the others are estimated around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np

from spectral_irt.calibration import LOGITS, Scale
from spectral_irt.chain.prior import AMPLE_INFORMATION, FEW_ANSWERS, Regularization, enough_is_known, plan_prior
from spectral_irt.chain.stationary import linked_items
from spectral_irt.conditional.errors import Matrices, displacements, variance_from_anchors
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.penalized import PenalizedPoint
from spectral_irt.data import Finding, Responses, as_responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.design import Design, Mask, tied_to
from spectral_irt.data.labels import Labels, label_array, positions, text_of
from spectral_irt.data.scoring import several
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.estimators.base import Estimate, RaschEstimator, Tell, with_missing
from spectral_irt.estimators.spectral_steps import TakingPart, options_of, spectral_fit
from spectral_irt.tables import Table, make_table
from spectral_irt.text import count, count_are, first_of, listed

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
    errors: Any = None  # JointErrors
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
        beta = np.concatenate([*values, np.empty(0)])
        return cls(label_array(list(given)), beta, np.full(len(beta), np.nan), layout=layout)

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
        in_data = positions(free, responses.items) >= 0
        unknown = [label for label, known in zip(free, in_data, strict=True) if not known]
        if unknown:
            raise OptionError(f"`free` names {listed(unknown)}, and the data have the items {listed(responses.items)}.")
        estimated = [label for label, k in zip(free, place.tolist(), strict=True) if k < 0]
        if estimated:
            raise OptionError(
                f"`free` names {listed(estimated)}, no anchor and therefore free already; the anchors are "
                f"{listed(self.items)}. Leave it out."
            )
        kept = np.ones(len(self.items), dtype=bool)
        kept[place] = False
        if not (positions(responses.items, self.items[kept]) >= 0).any():
            raise OptionError(
                "`free` leaves none of the anchors that are in the data, so that nothing would fix the scale. Leave "
                "out some items, or calibrate without anchors."
            )
        thresholds = kept[self.places.item]
        rest = replace(
            self,
            items=self.items[kept],
            thresholds=self.thresholds[thresholds],
            se=self.se[thresholds],
            errors=None if self.errors is None else self.errors.take(thresholds),
            layout=Thresholds(self.places.max_score[kept]),
        )
        names = self.items[np.unique(place)]
        verb = "was" if len(names) == 1 else "were"
        sentence = f"{count(len(names), 'anchor')} {verb} set free, as asked, and estimated: {listed(names)}."
        return rest, (Finding("freed_anchors", "note", sentence, "", tuple(names.tolist())),)


@dataclass(frozen=True, eq=False)
class Known:
    """Anchored thresholds, and what a fit does beside them."""

    value: Floats  # of every threshold of the data; NaN for those that are to be found
    place: Ints  # of each among the anchors, or -1
    errors: Any = None  # JointErrors of the anchors; without them they count as exact

    @property
    def fixed(self) -> Mask:
        return np.isfinite(self.value)

    def plan(self, design: Design, regularization: str | float) -> tuple[Any, Responses, Mask, list[Finding], Mask]:
        """Whether the free thresholds need a prior, the answers to the items that take part, which these are, findings
        on the design, and what the data tie to the anchors."""
        responses, layout, fixed = design.answers, design.answers.thresholds, self.fixed
        noun = "item" if layout.binary else "threshold"
        kept, free, reached = responses.item_counts > 0, design.answered & ~fixed, tied_to(responses, fixed)
        loose = int((free & ~reached).sum())
        if not isinstance(regularization, str):
            plan = plan_prior(design, regularization, noun)
        elif loose:
            verb = f"{noun} is" if loose == 1 else f"{noun}s are"
            reason = f"{loose:,} {verb} not tied to the anchors by the data alone"
            plan = Regularization("neighbors", reason, 1.0, True)
        elif design.information[free].min(initial=AMPLE_INFORMATION) < AMPLE_INFORMATION:
            plan = Regularization("neighbors", FEW_ANSWERS.format(noun), 1.0, True)
        else:
            plan = enough_is_known(design.information[design.answered], noun)
        while regularization == 0:  # without the answers to items left out, others may lose their tie
            rest, mask = responses.take_items(kept), kept[layout.item]
            good = tied_to(rest, fixed[mask]) | fixed[mask]
            if good.all():
                break
            kept[np.flatnonzero(kept)[np.unique(rest.thresholds.item[~good])]] = False
        rest = responses if kept.all() else responses.take_items(kept)
        findings = [finding for finding in design.findings if finding.code != "disconnected"]
        return plan, rest, kept, findings, reached

    def around(self, beta: Floats, mask: Mask, component: Ints) -> Floats:
        """These thresholds of the chain with the mean of the anchors in each part of the data, and anchors as given."""
        value, part = self.value[mask], component[mask]
        off, there = np.nan_to_num(value - beta), np.isfinite(value).astype(float)
        number = np.bincount(part, weights=there)
        shift = np.bincount(part, weights=off) / np.maximum(number, 1)
        shift[number == 0] = off.sum() / there.sum()
        return np.where(np.isfinite(value), value, beta + shift[part])

    def passed_on(self, found: PenalizedPoint, mask: Mask, matrices: Matrices | None, seed: int) -> Floats:
        """The covariance that free thresholds have from the anchors' errors; their variances, without matrices."""
        held = self.fixed[mask]
        mine = self.errors.take(self.place[mask][held])
        if matrices is not None:
            return matrices.from_anchors(held, mine.full())
        variance = np.zeros(len(held))
        variance[held] = mine.variance
        return variance_from_anchors(found, variance, seed)

    def beside(
        self, made: Estimate, fit: TakingPart, found: PenalizedPoint, likelihood: Likelihood, matrices: Matrices | None
    ) -> Estimate:
        """The estimate with anchors where they are, also those that nobody informs on, and how far they are off."""
        layout, fixed = fit.design.answers.thresholds, self.fixed
        item = layout.sum(fixed.astype(float)) == layout.max_score
        tied = np.zeros(layout.n_entries, dtype=bool)
        tied[fit.mask] = fit.tied
        status = made.status.copy()
        status[status == "unlinked"] = "ok"
        status[(layout.sum(tied.astype(float)) == 0) & (status == "ok")] = "unlinked"
        status[item] = "anchored"
        # An item that is the only anchor of its part would take all of it along.
        linked, _ = linked_items(fit.rest, mixed=True)
        several = np.bincount(linked, weights=item[fit.kept]) > 1
        moved = displacements(found, matrices, likelihood, several[linked])
        displacement, displacement_se = (with_missing(each, fit.kept) for each in moved)
        assert made.item_se is not None
        return replace(
            made,
            thresholds=np.where(fixed, self.value, made.thresholds),
            se=np.where(fixed, 0.0, made.se),
            item_se=np.where(item, 0.0, made.item_se),
            status=status,
            further={"anchored": item, "displacement": displacement, "displacement_se": displacement_se},
        )


def matched(anchors: Anchors, responses: Responses) -> tuple[Known, list[Finding]]:
    """The anchored thresholds of the data; and notes on anchors that are not in the data, or anchor nothing."""
    layout, theirs = responses.thresholds, anchors.places
    where = positions(responses.items, anchors.items)
    again = responses.items[positions(responses.items, anchors.left_out) >= 0]
    if not (where >= 0).any():
        loose = f" ({listed(again)} had no difficulty of their own on that scale)" if len(again) else ""
        raise OptionError(
            f"{responses.source}: none of its items ({listed(responses.items)}) is among the anchors, which are "
            f"{listed(anchors.items) or 'none at all'}{loose}; the scale would be fixed by nothing. Check the labels."
        )
    for item in np.flatnonzero(where >= 0):
        has = theirs.max_score[where[item]]
        if has != layout.max_score[item]:
            raise OptionError(
                f"the anchor {listed([responses.items[item]])} has {has:,} thresholds, and its answers are in "
                f"{layout.max_score[item] + 1:,} categories; give one threshold less than there are categories, or "
                "keep categories that nobody used (`unused='keep'`)."
            )
    place = np.where(where >= 0, theirs.first[where], -1)[layout.item]
    place = np.where(place >= 0, place + layout.level - 1, -1)
    value = np.where(place >= 0, anchors.thresholds[place], np.nan)
    whole = layout.sum(np.isfinite(value).astype(float)) == layout.max_score  # an item without all of them is free
    value = np.where(whole[layout.item], value, np.nan)
    if not np.isfinite(value).any():
        raise OptionError(f"none of the anchors ({listed(anchors.items)}) has a value for each of its thresholds.")
    notes = []
    if len(again):
        anew = f"{count_are(len(again), 'item')} estimated anew and no anchor, because nothing but the prior had placed"
        sentence = f"{anew} {'it' if len(again) == 1 else 'them'} on the scale of the anchors: {listed(again)}."
        notes.append(Finding("anchors_left_out", "warning", sentence, "", tuple(again.tolist())))
    missing = anchors.items[np.setdiff1d(np.arange(len(anchors.items)), where)]
    if len(missing):
        do = "does" if len(missing) == 1 else "do"
        sentence = f"{count_are(len(missing), 'anchor')} not in the data and {do} nothing: {listed(missing)}."
        notes.append(Finding("unused_anchors", "note", sentence, "", tuple(missing.tolist())))
    return Known(value, np.where(np.isfinite(value), place, -1), anchors.errors), notes


def fit_beside(responses: Responses, anchors: Anchors, *, free: Sequence[Any] = (), **options: Any) -> Estimate:
    """The thresholds on the scale of the anchors, with findings on these. Items that are to be `free` are estimated;
    the options are those of `spectral_fit`."""
    layout = responses.thresholds
    anchors, freed = anchors.in_data(responses).without(free, responses)
    known, notes = matched(anchors, responses)
    notes = [*anchors.notes, *freed, *notes]
    items = layout.sum(known.fixed.astype(float)) > 0
    if not (items & (responses.item_counts > 0)).any():
        raise DesignError(
            f"{responses.source}: nobody answered an anchored item ({listed(responses.items[items])}); the scale would "
            "be fixed by nothing. Anchor items that were answered."
        )
    made, answered = spectral_fit(responses, known=known, **options), responses.item_counts > 0
    out = answered & np.isnan(layout.mean(made.thresholds))
    loose = answered & ~out & (made.status == "unlinked")
    anchor_se = _location_se(anchors, layout, known.place, items)
    chance = np.hypot(made.further["displacement_se"], np.nan_to_num(anchor_se))
    findings = [*made.findings[:-1], *notes, *_not_estimated(responses, out, loose), made.findings[-1]]
    passed_on = "the anchors' standard errors are passed on to the other items"
    said = passed_on if anchors.errors is not None else "the anchors came without standard errors and count as exact"
    findings.append(Finding("anchored", "note", f"{count_are(int(items.sum()), 'item')} anchored; {said}."))
    findings += _displaced(responses.items, made.further["displacement"], chance)
    further = {**made.further, "anchor_se": anchor_se}
    extra = {**made.extra, "given_anchors": anchors}  # for another fit with the same ones
    return replace(made, findings=tuple(findings), further=further, scale=anchors.scale, extra=extra)


def given_anchors(anchors: Any) -> Anchors:
    """Anchors from whatever they may be given as."""
    from spectral_irt.bank.anchors import as_anchors

    return as_anchors(anchors)


def _location_se(anchors: Anchors, layout: Thresholds, place: Ints, items: Mask) -> Floats:
    """The standard errors that the anchors' locations had where they come from, as far as is known."""
    se = np.where(place >= 0, anchors.se[place], np.nan)
    if layout.binary:
        return se
    out = np.full(layout.n_items, np.nan)
    for item in np.flatnonzero(items) if anchors.errors is not None else ():
        own = place[layout.first[item] : layout.first[item] + layout.max_score[item]]
        out[item] = np.sqrt(anchors.errors.take(own).full().sum()) / len(own)
    return out


def _not_estimated(responses: Responses, out: Mask, loose: Mask) -> list[Finding]:
    """Free items that the data do not put on the scale of the anchors: left out, or at the mercy of the prior."""
    prior = "Use `regularization='auto'` for an estimate from the prior, or drop them."
    links = "Collect answers to them together with anchored items."
    untied = ("untied_items", "placed by the prior alone", links)
    findings = []
    for mask, (code, what, remedy) in ((out, ("items_left_out", "left out", prior)), (loose, untied)):
        names = responses.items[mask]
        if len(names):
            which = f"{count_are(len(names), 'item')} {what}"
            sentence = f"{which}, because the data do not link them to the anchors: {listed(names)}."
            findings.append(Finding(code, "warning", sentence, remedy, tuple(names.tolist())))
    return findings


def _displaced(labels: Labels, displacement: Floats, se: Floats) -> list[Finding]:
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = (np.abs(displacement) > DISPLACED) & (np.abs(displacement) > DISPLACED_Z * se)
    if not moved.any():
        return []
    places = np.flatnonzero(moved)
    farthest_first = places[np.argsort(-np.abs(displacement[places]), kind="stable")]
    names = labels[farthest_first]
    sizes = [
        f"{listed([label])} by {size:+.2f}"
        for label, size in zip(names.tolist(), displacement[farthest_first].tolist(), strict=True)
    ]
    if len(names) == 1:
        what = f"1 anchored item is displaced by more than {DISPLACED:g} logits in these data"
        remedy = "Look at this item; if it has changed, fit again with its anchor set free: {}."
    else:
        what = f"{len(names):,} anchored items are displaced by more than {DISPLACED:g} logits in these data"
        remedy = "Look at these items; those that have changed are set free, the farthest first, in another fit: {}."
    sentence = f"{what} (+ is harder than its anchor): {first_of(sizes)}."
    option = f"`free={[text_of(names[0])]}`"
    return [Finding("displaced_anchors", "warning", sentence, remedy.format(option), tuple(names.tolist()))]


def _further(name: str) -> Any:
    return property(lambda self: self._learned.further[name])


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
        chosen = self.anchored_
        displacement, se = self.displacement_[chosen], self.displacement_se_[chosen]
        anchor = self.difficulty_[chosen]
        columns = {
            "item": self.item_labels_[chosen],
            "anchor": anchor,
            "free": anchor + displacement,
            "displacement": displacement,
            "se": se,
            "z": displacement / np.hypot(se, np.nan_to_num(self.anchor_se_[chosen])),
        }
        return make_table(columns, self._learned.frame_kind)


def anchored_fit(responses: Any, anchors: Any, **options: Any) -> AnchoredRasch:
    """`AnchoredRasch(anchors, **options).fit(responses)`.

    >>> from spectral_irt import anchored_fit, datasets
    >>> float(anchored_fit(datasets.load_lsat(), {"item1": -1.0}).difficulty_[0])
    -1.0
    """
    return AnchoredRasch(anchors, **options).fit(responses)
