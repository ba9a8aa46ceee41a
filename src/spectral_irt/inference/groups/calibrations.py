"""The same items calibrated in each group of people on its own: what every comparison of groups starts from.

In a group the thresholds are A eta: all of them free (A is the identity), a rating scale, or one location for each item
with the distances of its thresholds held. Always by conditional maximum likelihood, exact where patterns of answers are
few, else by series, as the spectral estimator of right and wrong answers comes to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt import estimators
from spectral_irt.calibration import RASCH, Calibration
from spectral_irt.chain.stationary import linked_items
from spectral_irt.conditional.errors import centered, free_inverse, location_covariance
from spectral_irt.conditional.exact_likelihood import ExactLikelihood, information_at
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.newton import CLOSE, Newton
from spectral_irt.conditional.penalized import parameters
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.design import components
from spectral_irt.data.unlinked import estimable, refuse_parts
from spectral_irt.errors import DesignError, DisconnectedDesignError
from spectral_irt.estimators.base import KEEP_COVARIANCE
from spectral_irt.estimators.by_name import estimator_name
from spectral_irt.estimators.chain_alone import start_thresholds
from spectral_irt.estimators.estimable import scalable
from spectral_irt.estimators.spectral import SpectralRasch
from spectral_irt.inference.groups.grouping import Split
from spectral_irt.inference.groups.sampling import SIMPLE, Sampling, Sandwiches, sandwiches
from spectral_irt.inference.results import two_sided
from spectral_irt.joint_errors import JointErrors
from spectral_irt.text import count, count_are, listed

DENSE_ITEMS = KEEP_COVARIANCE  # up to here whole covariance matrices are compared; beyond, items one by one
NEWTON_STEPS = 100
SETTLED = 1e-9  # largest derivative of the exact log-likelihood

if TYPE_CHECKING:
    from spectral_irt.estimators import ConditionalRasch

Comparable: TypeAlias = "ConditionalRasch | SpectralRasch"  # estimators with a covariance matrix


@dataclass(frozen=True, eq=False)
class GroupCalibrations:
    """Thresholds in each group, on the items that have them in all groups.

    `everyone` are the people of all groups together, with only the items compared, and `left_out` the items without
    finite thresholds in some group, of which `in_one_group` have responses there only. `thresholds` (groups x
    thresholds) have a mean location of zero in each group, and `difficulty, se` (groups x items) are of their means;
    `covariances` of the thresholds are there for few items, and `loglik` for exact fits. `design` is A of thresholds =
    A eta, None where every threshold is free. `anchors` are the items whose mean is zero; all of them at first. Where
    persons have weights or clusters, `sandwiches` has what groups have to do with each other, and degrees of freedom.
    """

    names: tuple[str, ...]
    sizes: NDArray[np.int64]
    everyone: Responses
    left_out: NDArray[Any]
    thresholds: Floats
    covariances: tuple[Floats, ...]
    difficulty: Floats
    se: Floats
    loglik: tuple[float, ...]
    design: Floats | None
    sandwiches: Sandwiches | None = None
    anchors: NDArray[np.bool_] | None = None
    in_one_group: NDArray[Any] | None = None

    def __str__(self) -> str:
        parts = [f"{name} ({count(n, 'person')})" for name, n in zip(self.names, self.sizes, strict=True)]
        shown = " | ".join(parts[:5]) + (f" and {len(parts) - 5} more" if len(parts) > 5 else "")
        return shown + (f", {len(self.left_out)} items left out" if len(self.left_out) else "")

    @property
    def items(self) -> NDArray[Any]:
        """Labels of the items compared."""
        return self.everyone.items

    @property
    def layout(self) -> Thresholds:
        return self.everyone.thresholds

    @property
    def n_parameters(self) -> int:
        """Free ones in each group."""
        return (self.layout.n_entries if self.design is None else self.design.shape[1]) - 1

    @cached_property
    def location_covariances(self) -> tuple[Floats, ...]:
        """Of the difficulties in each group; empty for many items."""
        return tuple(location_covariance(self.layout, one) for one in self.covariances)

    def errors(self, group: int) -> JointErrors:
        """Of the difficulties in one group."""
        if self.covariances:
            return JointErrors.dense(self.location_covariances[group])
        return JointErrors.after_centering(self.se[group])

    def combined_errors(self, coefficients: Floats) -> JointErrors:
        """Of the sum of coefficient times difficulties over the groups."""
        if self.sandwiches is not None:
            covariance = location_covariance(self.layout, self.sandwiches.combined(coefficients))
            return JointErrors.dense(covariance)
        parts = [self.errors(int(g)).scaled(coefficients[g]) for g in np.flatnonzero(coefficients)]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def combined(self, coefficients: Floats, center: Floats | None = None) -> Combination:
        """The sum of coefficient times difficulties over the groups; around the mean by the weights `center` of the
        items, or as the groups are centered."""
        value = coefficients @ self.difficulty
        if self.sandwiches is None and center is None:
            return Combination(value, np.sqrt(coefficients**2 @ self.se**2), np.full(len(value), np.inf))
        if center is None and self.anchors is not None and not self.anchors.all():
            center = self.anchors / self.anchors.sum()
        errors = self.combined_errors(coefficients)
        variance = errors.variance if center is None else errors.around(center)
        value = value if center is None else value - center @ value
        df = np.full(len(value), np.inf)
        if self.sandwiches is not None:
            df = self.sandwiches.df_of(coefficients[:, None] ** 2 * self.se**2)
        return Combination(value, np.sqrt(variance), df)

    def threshold_covariance(self, group: int) -> Floats:
        """Of the thresholds of a group less those of the first."""
        if self.sandwiches is None:
            return self.covariances[group] + self.covariances[0]
        coefficients = np.zeros(len(self.names))
        coefficients[[group, 0]] = 1.0, -1.0
        return self.sandwiches.combined(coefficients)

    def item_statistics(self, difficulty: Floats, further_se: Floats) -> Floats:
        """Wald's statistic of each item over all groups, from sandwiches that may have to do with each other, at these
        difficulties (groups x items), which have further errors of their own."""
        assert self.sandwiches is not None
        n = len(self.names)
        center = np.zeros(len(self.items))
        if self.anchors is not None and not self.anchors.all():
            center = self.anchors / self.anchors.sum()
        blocks = self.sandwiches.covariances
        covariance = np.zeros((len(self.items), n, n))
        for g in range(n):
            for h in range(n):
                one = location_covariance(self.layout, blocks[g][h]).T  # which is turned round by that function
                around = np.diag(one) - one @ center - center @ one + center @ one @ center
                covariance[:, g, h] = around + (further_se[g] ** 2 if g == h else 0.0)
        to_first = np.hstack([-np.ones((n - 1, 1)), np.eye(n - 1)])
        apart = (to_first @ difficulty).T
        inside = to_first @ covariance @ to_first.T
        inverse = np.linalg.pinv(inside, rcond=1e-9, hermitian=True)
        return np.asarray(np.einsum("ig,igh,ih->i", apart, inverse, apart))

    @property
    def df_joint(self) -> float:
        """Degrees of freedom of the errors of all groups together; infinite without clusters."""
        return np.inf if self.sandwiches is None else self.sandwiches.df_joint

    def centered_on(self, anchors: NDArray[np.bool_]) -> GroupCalibrations:
        """Difficulties with the anchors' mean at zero: b - a'b has variance V_ii - 2 (V a)_i + a'V a."""
        a = anchors / anchors.sum()
        difficulty = self.difficulty - (self.difficulty @ a)[:, None]
        if anchors.all():
            return replace(self, difficulty=difficulty)
        variance = [self.errors(k).around(a) for k in range(len(self.names))]
        return replace(self, difficulty=difficulty, se=np.sqrt(variance), anchors=anchors)

    @property
    def findings(self) -> tuple[Finding, ...]:
        of_one = np.zeros(0, dtype=object) if self.in_one_group is None else self.in_one_group
        findings: tuple[Finding, ...] = ()
        if len(of_one):
            have = "has" if len(of_one) == 1 else "have"
            sentence = f"{count(len(of_one), 'item')} {have} responses in one group only: {listed(of_one)}."
            remedy = "There is nothing to compare, as with an item that was split by these groups."
            findings = (Finding("items_of_one_group", "note", sentence, remedy, tuple(of_one.tolist())),)
        in_several = [item for item in self.left_out.tolist() if item not in set(of_one.tolist())]
        n = len(in_several)
        if not n:
            return findings
        why = "answered right by everyone or no one" if self.layout.binary else "a category there is used by nobody"
        sentence = (
            f"{count_are(n, 'item')} left out of the comparison, because in some group "
            f"{'it has' if n == 1 else 'they have'} no difficulty on the common scale ({why}, or answered by nobody "
            f"who answered the others): {listed(in_several)}."
        )
        remedy = "Use fewer or larger groups to compare them."
        return (*findings, Finding("items_not_compared", "warning", sentence, remedy, tuple(in_several)))


class Combination(NamedTuple):
    """A combination of the difficulties of several groups, item by item, its standard error, and the degrees of freedom
    of that."""

    value: Floats
    se: Floats
    df: Floats

    @property
    def z(self) -> Floats:
        """Over its standard error; 0 where nothing can vary, as a single anchor, which is zero in every group."""
        return np.divide(self.value, self.se, out=np.zeros(len(self.value)), where=self.se > 0)

    @property
    def p(self) -> Floats:
        return np.asarray(two_sided(self.z, self.df))


@dataclass(frozen=True, eq=False)
class GroupModel:
    """What is estimated in every group: of right and wrong answers what the `estimator` does.

    Items of a rating scale (`scales`: item to scale) have the distances of their thresholds in common; else every
    threshold is free, or with a `shape` (thresholds, NaN for items to be left out) only locations are, the distances of
    an item's thresholds held, so that a category that a group did not use does no harm. `exact` asks for exact sums
    whatever they cost, and the log-likelihood with them.
    """

    estimator: Comparable = field(default_factory=lambda: estimators.ConditionalRasch())
    scales: Mapping[Any, Any] | None = None
    shape: Floats | None = None
    exact: bool = False

    def of_items(self, layout: Thresholds, items: Ints) -> GroupModel:
        """The same for some of the items."""
        return self if self.shape is None else replace(self, shape=self.shape[layout.of_items(items)])

    def design(self, responses: Responses) -> Floats | None:
        """A of thresholds = A eta; None for the identity."""
        layout = responses.thresholds
        if layout.binary or (self.scales is None and self.shape is None):
            return None
        if self.scales is not None:
            made = estimators.LinearDesign("items").of(responses, scale=True, groups=self.scales)
            return np.asarray(made.matrix.toarray())
        return (layout.item[:, None] == np.arange(layout.n_items)).astype(float)


def model_like(calibration: Calibration) -> GroupModel:
    """The model of a calibration, with an estimator that has no prior, but a covariance matrix."""
    return GroupModel(estimator_like(calibration), calibration.rating_scales)


def locations_like(calibration: Calibration) -> GroupModel:
    """One difficulty for each item and group, the distances of its thresholds held where the calibration has them."""
    return GroupModel(estimator_like(calibration), shape=calibration.thresholds)


def estimator_like(calibration: Calibration) -> Comparable:
    """Conditional maximum likelihood without a prior: with the options of the calibration where it is one, else from
    the spectral estimator."""
    exact = estimator_name(calibration.provenance.estimator) == "cml"
    if exact and calibration.model == RASCH:
        return estimators.ConditionalRasch(**{**calibration.provenance.settings, "se": "information"})
    if exact or not calibration.layout.binary:
        return estimators.ConditionalRasch()
    return SpectralRasch(regularization=0)


class GroupFit(NamedTuple):
    """Thresholds of one group; no covariance where items are too many, nor a likelihood of other than exact."""

    thresholds: Floats
    se: Floats
    covariance: Floats | None
    loglik: float | None


def _by_estimator(part: Responses, make: Comparable) -> GroupFit:
    fit, dense = type(make)(**make.get_params()), part.n_items <= DENSE_ITEMS
    if dense:
        fit.set_params(se="information")  # the covariance is wanted too
    fit.fit(part)
    covariance = fit.covariance() if dense else None
    se = fit.se_ if covariance is None else np.sqrt(np.diag(covariance))
    return GroupFit(fit.difficulty_, se, covariance, fit.calibration_.provenance.loglik)


def by_newton(
    part: Responses, model: GroupModel, design: Floats | None, name: str, weights: Floats | None = None
) -> GroupFit:
    """Thresholds A eta of one group by Newton steps, with the inverse of their information."""
    layout, fixed = part.thresholds, None
    exact = ExactLikelihood(part, weights=weights)
    affordable = exact.exact_is_affordable()
    start = start_thresholds(part) if model.shape is None or layout.binary else model.shape
    likelihood: Any = exact if affordable or model.exact else Likelihood(part, start, weights=weights)
    a, eta = design, start
    if model.shape is not None and not layout.binary:  # the shape is one more column, times one
        a = np.column_stack([layout.item[:, None] == np.arange(layout.n_items), start])
        eta, fixed = np.append(np.zeros(layout.n_items), 1.0), np.arange(layout.n_items + 1) == layout.n_items
    elif a is not None:
        eta = parameters(sparse.csr_array(a), start)
    if a is not None:  # shared offsets, or distances that are held, do not tie items together that no person links
        refuse_parts(part, linked_items(part, mixed=True)[0][layout.item])
    goal = max(SETTLED, exact.rounding * (1.0 if design is None else float(np.abs(design).sum(axis=0).max())))
    problem = Newton(likelihood, design=a, fixed=fixed)
    if likelihood is exact:
        found = problem.solve_to_gradient(eta, goal, max_evaluations=NEWTON_STEPS)
    else:
        found = problem.solve(eta, max_evaluations=NEWTON_STEPS)
    if found.move > CLOSE:
        raise DesignError(
            f"{part.source}: in the group {name!r} the items have no finite location on a common scale. Use fewer or "
            "larger groups."
        )
    information = information_at(likelihood, found.point.beta)
    thresholds, covariance = centered(layout, found.beta, free_inverse(found, information.matrix))
    assert covariance is not None
    loglik = found.point.loglik if likelihood is exact else None
    return GroupFit(thresholds, np.sqrt(np.maximum(np.diag(covariance), 0)), covariance, loglik)


def fit_group(
    part: Responses, model: GroupModel, design: Floats | None, name: str, weights: Floats | None = None
) -> GroupFit:
    """The thresholds of one group, whose persons may have weights."""
    if part.thresholds.binary and weights is None:
        return _by_estimator(part, model.estimator)
    return by_newton(part, model, design, name, weights)


def calibrate_groups(
    responses: Responses, split: Split, model: GroupModel, sampling: Sampling = SIMPLE
) -> GroupCalibrations:
    """Fit every group on its own, on the items that can be estimated in all of them.

    An item without finite thresholds in one group is left out of all, as eRm does, and then any that this makes
    extreme, until the groups agree. A threshold that is free needs somebody in both categories beside it. Persons count
    by their weights, and errors are those of the sandwich where there are weights or clusters.
    """
    if split.n_groups < 2:
        what = f"a single one, {split.names[0]!r}" if split.names else "none"
        raise DesignError(f"{responses.source}: two groups of people are needed to compare, and there is {what}.")
    layout = responses.thresholds
    members = [split.group == k for k in range(split.n_groups)]
    groups = [responses.take_persons(each) for each in members]
    n_groups_with = np.sum([group.item_counts > 0 for group in groups], axis=0)
    kept = np.ones(responses.n_items, dtype=bool)
    if model.shape is not None and not layout.binary:
        kept = np.isfinite(layout.mean(model.shape))
    kept = _common_items(groups, split.names, kept, model)
    model = model.of_items(layout, np.flatnonzero(kept))
    everyone = responses.take_persons(split.group >= 0).take_items(kept)
    groups = [group.take_items(kept) for group in groups]
    design = model.design(everyone)
    samplings = [sampling.take(each) for each in members]
    fits = []
    for group, name, own in zip(groups, split.names, samplings, strict=True):
        fits.append(fit_group(group, model, design, name, own.weights))
    thresholds, se = np.array([fit.thresholds for fit in fits]), np.array([fit.se for fit in fits])
    covariances = tuple(fit.covariance for fit in fits if fit.covariance is not None)
    robust = None
    if not sampling.simple:
        if thresholds.shape[1] > DENSE_ITEMS:
            raise DesignError(
                f"{responses.source}: groups of people with {sampling.words} are compared on up to {DENSE_ITEMS:,} "
                f"items, and there are {len(everyone.items):,}. Compare fewer items at a time."
            )
        robust = sandwiches(groups, samplings, thresholds, design)
        covariances = tuple(robust.covariances[g][g] for g in range(len(groups)))
        se = np.sqrt(np.maximum([np.diag(one) for one in covariances], 0))
    found = GroupCalibrations(
        names=split.names,
        sizes=np.array([group.n_persons for group in groups]),
        everyone=everyone,
        left_out=responses.items[~kept],
        in_one_group=responses.items[~kept & (n_groups_with < 2)],
        thresholds=thresholds,
        covariances=covariances,
        difficulty=thresholds,
        se=se,
        loglik=tuple(fit.loglik for fit in fits if fit.loglik is not None),
        design=design,
        sandwiches=robust,
    )
    if layout.binary:
        return found
    variance = np.array([np.diag(one) for one in found.location_covariances])
    difficulty = np.array([everyone.thresholds.mean(each) for each in thresholds])
    return replace(found, difficulty=difficulty, se=np.sqrt(np.maximum(variance, 0)))


def _common_items(
    groups: Sequence[Responses], names: Sequence[str], kept: NDArray[np.bool_], model: GroupModel
) -> NDArray[np.bool_]:
    while True:
        before = kept.copy()
        for name, group in zip(names, groups, strict=True):
            here = _estimable_here(group.take_items(kept), name, group.n_items, model)
            kept[np.flatnonzero(kept)[~here]] = False
        if (kept == before).all():
            return kept


def _estimable_here(group: Responses, name: str, n_items: int, model: GroupModel) -> NDArray[np.bool_]:
    """Which items have a common scale in this group: its largest strongly connected component of thresholds.

    An item that is extreme there is a component of its own. An error names the group when hardly any item is left, or
    when half of them or more are not connected. Items whose thresholds are tied only need answers that differ.
    """
    layout = group.thresholds
    if not layout.binary and (model.scales is not None or model.shape is not None):
        return scalable(group)
    kept = np.logical_and.reduceat(components(group) == 0, layout.first)
    if 2 <= kept.sum() <= group.n_items / 2:
        try:
            estimable(group)
        except DisconnectedDesignError as error:
            raise DisconnectedDesignError(
                f"in the group {name!r} ({count(group.n_persons, 'person')}) of {error.args[0]} Or use fewer or "
                "larger groups: the items must be connected within each."
            ) from None
    if kept.sum() < 2:
        gone = n_items - group.n_items
        others = f" ({gone:,} of {n_items:,} items were already left out, extreme in another group)" if gone else ""
        why = "have both right and wrong answers" if layout.binary else "have answers in all their categories"
        remedy = "" if layout.binary else "; or join categories that few people use"
        raise DesignError(
            f"{group.source}: in the group {name!r} ({count(group.n_persons, 'person')}) no two items can be "
            f"compared, because too few there {why}{others}. Use fewer or larger groups, or another split{remedy}."
        )
    return kept
