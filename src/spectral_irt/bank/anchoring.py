"""Calibrate new items on the scale of old ones: some difficulties are fixed, the others are estimated around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.anchors import Anchors, as_anchors
from spectral_irt.chain.anchored import AnchoredSolution, FixedAndPrior, solve_anchored
from spectral_irt.chain.errors import SE_METHODS, choose_method
from spectral_irt.chain.neighbors import Neighbors
from spectral_irt.chain.pair_chain import check_strength
from spectral_irt.chain.prior import LocationPrior, Prior, fading
from spectral_irt.chain.regularization import (
    AMPLE_INFORMATION,
    FEW_ANSWERS,
    Regularization,
    enough_is_known,
    prior_precision,
)
from spectral_irt.conditional.displacement import displacements
from spectral_irt.conditional.errors import Matrices, anchored_finding, standard_errors, variance_from_anchors
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.newton import NEWTON, Newton, newton
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Design, examine, tied_to
from spectral_irt.data.labels import positions
from spectral_irt.data.responses import Labels
from spectral_irt.errors import DesignError, OptionError, check_option, listed
from spectral_irt.estimators.base import RaschEstimator, Tell
from spectral_irt.estimators.chain_alone import chain_convergence
from spectral_irt.estimators.estimate import Estimate
from spectral_irt.estimators.landed import between_parts, prior_acted, regularization_finding
from spectral_irt.inference.joint_errors import JointErrors
from spectral_irt.tables import make_table

DISPLACED = 0.5  # logits: less is unlikely to matter in practice (Linacre, Winsteps manual, "Displacement measures")
DISPLACED_Z = 1.96  # and more than chance explains


# ------------------------------------------------------------------------------------------- the estimator


@dataclass(eq=False, repr=False)
class AnchoredRasch(RaschEstimator):
    """Difficulties with some items fixed to given values, by the spectral method.

    The free items satisfy the same equations as in `SpectralRasch`, with the anchored items as given: the chain of
    `chain/anchored.py`, then the conditional likelihood. Anchors of a bank, a fit or a file with standard errors pass
    their errors on to the free items: Var = sandwich + D errors D', D how free items move with the anchors. Plain
    numbers count as exact.

    Parameters
    ----------
    anchors : Bank, mapping label -> difficulty, or path
        The fixed difficulties, in logits: a bank, its folder, or a CSV file with columns item and difficulty.
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
    regularization: str | float = "auto"
    assume_equal_means: bool = False
    se: str = "auto"
    tol: float = 1e-10
    max_iter: int = 10_000
    threads: int | None = None
    threshold: float | None = None
    random_state: int = 0

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        check_option("se", self.se, SE_METHODS)
        if self.anchors is None:
            raise OptionError("anchors is missing; give a bank, a mapping from item to difficulty, or a file.")
        anchors = as_anchors(self.anchors)
        place, notes = match_anchors(anchors, responses)
        design = examine(responses)
        fixed = place >= 0
        if not (fixed & design.answered).any():
            raise DesignError(
                f"{responses.source}: nobody answered an anchored item ({listed(responses.items[fixed])}); the scale "
                "would be fixed by nothing. Anchor items that were answered."
            )
        value = np.where(fixed, anchors.difficulty[place], np.nan)
        reached = tied_to(responses, fixed)
        plan, kept = plan_prior(responses, design, fixed, reached, self.regularization)
        rest = responses if kept.all() else responses.take_items(kept)
        solved, plan = self._solve(rest, value[kept], plan, tell)
        landed, parts = self._land(rest, solved, plan, design.information[kept], (reached | fixed)[kept], tell)
        if landed.prior:
            plan = prior_acted(replace(plan, alpha=float(landed.prior.precisions[0])), landed, rest, reached[kept])
        elif plan.alpha:
            plan = enough_is_known(design.information[kept])

        found = solved.found
        contraction = found.contraction if found else 0.0
        method = self.se
        if method == "auto":
            method = choose_method(rest.n_items, contraction, float((responses.counts.astype(float) ** 2).sum()))
        tell(f"standard errors ({method})")
        matrices = Matrices.of(landed) if method == "dense" else None
        if matrices is not None:
            se = np.sqrt(np.maximum(np.diag(matrices.covariance()), 0))
        elif method == "none":
            se = np.where(solved.known.fixed, 0.0, np.nan)
        else:
            se = standard_errors(landed, method, contraction, self.random_state)[0]
        if anchors.errors is not None and method != "none":
            se = np.sqrt(se**2 + _passed_on(landed, matrices, anchors.errors, place[kept], self.random_state))
        if parts.any():
            unknown = between_parts(landed.floating + 1, plan.alpha, self.assume_equal_means)
            se = np.sqrt(se**2 + np.where(landed.floating < 0, 0.0, unknown))
        displacement, displacement_se = displacements(landed, matrices)
        columns = {
            "difficulty": np.where(solved.known.fixed, value[kept], landed.beta),
            "se": se,
            "information": landed.information,
            "displacement": displacement,
            "displacement_se": displacement_se,
        }
        full = {name: _spread_out(values, kept) for name, values in columns.items()}
        full["difficulty"][fixed], full["se"][fixed] = value[fixed], 0.0
        status = design.status()
        status[status == "apart"] = "ok"
        status[~reached & (status == "ok")] = "apart"
        status[fixed] = "anchored"
        findings = [finding for finding in design.findings if finding.code != "disconnected"] + notes
        findings += _not_estimated(responses, status, kept)
        findings += [regularization_finding(plan), anchored_finding(int(fixed.sum()), anchors.errors is not None)]
        findings += chain_convergence(found, self.tol) if found else []
        anchor_se = np.where(fixed, anchors.se[place], np.nan)
        chance = np.hypot(full["displacement_se"], np.nan_to_num(anchor_se))
        findings += _displaced(responses.items, full["displacement"], chance)
        return Estimate(
            full["difficulty"],
            full["se"],
            status,
            solved.passes,
            found.residual if found else 0.0,
            findings=tuple(findings),
            information=full["information"],
            regularization=plan,
            se_method=method,
            solver=found.method + NEWTON if found else "none",
            contraction=contraction,
            scale=anchors.scale,
            further={
                "anchored": fixed,
                "displacement": full["displacement"],
                "displacement_se": full["displacement_se"],
                "anchor_se": anchor_se,
            },
        )

    def _land(
        self,
        rest: Responses,
        start: AnchoredSolution,
        plan: Regularization,
        information: Floats,
        reached: NDArray[np.bool_],
        tell: Callable[[str], None],
    ) -> tuple[Newton, Ints]:
        """The free items on the conditional likelihood, and which items hang together."""
        parts, prior = np.zeros(rest.n_items, dtype=np.int64), None
        if plan.alpha:
            neighbors = Neighbors(rest)
            parts = parts if reached.all() else neighbors.parts()
            fade = fading(information, reached, plan.alpha) if plan.estimated else np.ones(rest.n_items)
            if fade[~start.known.fixed].any():
                prior = Prior.of_items(rest.thresholds, LocationPrior(neighbors, plan.alpha, fade, plan.estimated))
        likelihood = Likelihood(rest, start.beta)
        landed = newton(likelihood, start.beta, prior=prior, fixed=start.known.fixed, parts=parts, tell=tell)
        return landed, parts

    def _solve(
        self, rest: Responses, value: Floats, plan: Regularization, tell: Callable[[str], None]
    ) -> tuple[AnchoredSolution, Regularization]:
        """The chain's difficulties, from which the landing starts, with a prior around one mean."""
        fixed = np.isfinite(value)
        mean = float(value[fixed].mean())
        known = FixedAndPrior(fixed, np.where(fixed, value, mean), np.where(fixed, 0.0, plan.alpha))
        solved = solve_anchored(
            rest,
            np.full(len(value), mean),
            known,
            tol=self.tol,
            max_passes=self.max_iter,
            renew=_renewed if plan.estimated else _recentered if plan.alpha else None,
            tell=tell,
        )
        if plan.alpha and not fixed.all():
            free = np.flatnonzero(~fixed)[0]
            plan = replace(plan, alpha=float(solved.known.precision[free]), mean=float(solved.known.mean[free]))
        return solved, plan

    @property
    def anchored_(self) -> NDArray[np.bool_]:
        return self._learned.anchored

    @property
    def displacement_(self) -> Floats:
        """The difficulty that an anchored item would have if it alone were set free, minus its anchor."""
        return self._learned.further["displacement"]

    @property
    def displacement_se_(self) -> Floats:
        return self._learned.further["displacement_se"]

    @property
    def anchor_se_(self) -> Floats:
        """The standard errors that the anchors had where they come from."""
        return self._learned.further["anchor_se"]

    def displacements(self) -> Any:
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
    """Calibrate with some items fixed: `AnchoredRasch(anchors, **options).fit(responses)`.

    Examples
    --------
    >>> from spectral_irt import datasets
    >>> fit = anchored_fit(datasets.load_lsat(), {"item1": 0.0})
    >>> float(fit.difficulty_[0])
    0.0
    """
    return AnchoredRasch(anchors, **options).fit(responses)


# ------------------------------------------------------------------------------------------------- its steps


def match_anchors(anchors: Anchors, responses: Responses) -> tuple[NDArray[np.int64], list[Finding]]:
    """For every item of the data the place of its anchor, or -1; and a note on anchors that are not in the data."""
    place = positions(responses.items, anchors.items)
    again = responses.items[positions(responses.items, anchors.left_out) >= 0]
    if not (place >= 0).any():
        loose = f" ({listed(again)} had no difficulty of their own on that scale)" if len(again) else ""
        raise OptionError(
            f"{responses.source}: none of its items ({listed(responses.items)}) is among the anchors, which are "
            f"{listed(anchors.items) or 'none at all'}{loose}; the scale would be fixed by nothing. Check the labels."
        )
    notes = []
    if len(again):
        one = len(again) == 1
        verb, whom = ("item is not an anchor", "it") if one else ("items are not anchors", "them")
        sentence = (
            f"{len(again):,} {verb} but estimated anew, because nothing but the prior had placed {whom} on the scale "
            f"of the anchors: {listed(again)}."
        )
        notes.append(Finding("anchors_left_out", "warning", sentence, "", tuple(again.tolist())))
    missing = np.setdiff1d(np.arange(len(anchors.items)), place)
    if not len(missing):
        return place, notes
    names = anchors.items[missing]
    verb = "anchor is not in the data and does" if len(names) == 1 else "anchors are not in the data and do"
    sentence = f"{len(names):,} {verb} nothing: {listed(names)}."
    return place, [*notes, Finding("unused_anchors", "note", sentence, "", tuple(names.tolist()))]


def _passed_on(
    landed: Newton, matrices: Matrices | None, errors: JointErrors, place: NDArray[np.int64], seed: int
) -> Floats:
    """The variance that the free items have from the errors of the anchors; `place` of each item's anchor, or -1."""
    fixed = place >= 0
    mine = errors.take(place[fixed])
    if matrices is not None:
        return np.maximum(np.diag(matrices.from_anchors(fixed, mine.full())), 0)
    variance = np.zeros(len(place))
    variance[fixed] = mine.variance
    return variance_from_anchors(landed, variance, seed)


def plan_prior(
    responses: Responses,
    design: Design,
    fixed: NDArray[np.bool_],
    reached: NDArray[np.bool_],
    regularization: str | float,
) -> tuple[Regularization, NDArray[np.bool_]]:
    """Whether the free items need a prior, and which items take part."""
    answered = design.answered
    free = answered & ~fixed
    if isinstance(regularization, str):
        check_option("regularization", regularization, ("auto",))
        loose = int((free & ~reached).sum())
        if loose:
            noun = "item is" if loose == 1 else "items are"
            reason = f"{loose:,} {noun} not tied to the anchors by the data alone"
            return Regularization("neighbors", reason, 1.0, True), answered
        if design.information[free].min(initial=AMPLE_INFORMATION) < AMPLE_INFORMATION:
            return Regularization("neighbors", FEW_ANSWERS.format("item"), 1.0, True), answered
        return enough_is_known(design.information[answered]), answered
    check_strength("regularization", regularization, "'auto', ")
    if regularization > 0:
        return Regularization("neighbors", "as asked", alpha=float(regularization)), answered
    kept = answered.copy()
    while True:  # without the answers to items left out, others may lose their tie
        rest = responses.take_items(kept)
        good = tied_to(rest, fixed[kept]) | fixed[kept]
        if good.all():
            break
        kept[np.flatnonzero(kept)[~good]] = False
    return Regularization("none", "as asked"), kept


def _recentered(beta: Floats, information: Floats, known: FixedAndPrior) -> FixedAndPrior:
    """The prior mean: all items, each by the share of it that is not prior; anchored items count in full."""
    alpha = known.precision.max()
    share = np.where(known.fixed, 1.0, information / (information + alpha))
    mean = float(share @ beta / share.sum())
    return FixedAndPrior(known.fixed, np.where(known.fixed, known.mean, mean), known.precision)


def _renewed(beta: Floats, information: Floats, known: FixedAndPrior) -> FixedAndPrior:
    """Empirical Bayes: mean and precision of the prior from all items (anchored items are known for sure)."""
    known = _recentered(beta, information, known)
    mean = known.mean[~known.fixed][0]
    certain = np.where(known.fixed, 1e12, information)
    alpha = prior_precision(beta - mean, certain, known.precision.max())
    return FixedAndPrior(known.fixed, known.mean, np.where(known.fixed, 0.0, alpha))


def _spread_out(values: Floats, kept: NDArray[np.bool_]) -> Floats:
    full = np.full(len(kept), np.nan)
    full[kept] = values
    return full


def _not_estimated(responses: Responses, status: NDArray[Any], kept: NDArray[np.bool_]) -> list[Finding]:
    """Free items that the data do not put on the scale of the anchors: left out, or at the mercy of the prior."""
    answered = responses.item_counts > 0
    out = answered & ~kept
    loose = answered & kept & (status == "apart")
    findings = []
    auto = "`regularization='auto'`"
    for mask, code, what, remedy in (
        (out, "items_left_out", "left out", "Use " + auto + " for an estimate from the prior, or drop them."),
        (loose, "untied_items", "placed by the prior alone", "Collect answers to them together with anchored items."),
    ):
        names = responses.items[mask]
        if len(names):
            verb = "item is" if len(names) == 1 else "items are"
            sentence = f"{len(names):,} {verb} {what}, for the data do not tie them to the anchors: {listed(names)}."
            findings.append(Finding(code, "warning", sentence, remedy, tuple(names.tolist())))
    return findings


def _displaced(labels: Labels, displacement: Floats, se: Floats) -> list[Finding]:
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = (np.abs(displacement) > DISPLACED) & (np.abs(displacement) > DISPLACED_Z * se)
    if not moved.any():
        return []
    names = labels[moved]
    worst = labels[[int(np.nanargmax(np.where(moved, np.abs(displacement), np.nan)))]]
    size = np.nanmax(np.where(moved, np.abs(displacement), np.nan))
    verb = "anchored item is" if len(names) == 1 else "anchored items are"
    sentence = (
        f"{len(names):,} {verb} more than {DISPLACED:g} logits from where these data put them: {listed(names)}; the "
        f"farthest is {listed(worst)}, by {size:.2f}."
    )
    remedy = "Look at these items; if they have changed, set them free and fit again."
    return [Finding("displaced_anchors", "warning", sentence, remedy, tuple(names.tolist()))]
