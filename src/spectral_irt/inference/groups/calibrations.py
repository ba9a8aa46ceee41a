"""The same items calibrated in each group of people on its own: what every comparison of groups starts from.

In a group the thresholds are A eta: all of them free (A is the identity), a rating scale, or one location for each item
with the distances of its thresholds held. Always by conditional maximum likelihood, exact where patterns of answers are
few, else by series, as the spectral estimator of right and wrong answers comes to it.

`calibrate_groups` is called by `dif.py` and `dif_details.py` (one location for each item), and by `model_tests.py` (all
that the model of the calibration leaves free); `slope_shifts.py` calibrates its draws by `fit_group`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.calibration import RASCH, Calibration
from spectral_irt.chain.stationary import linked_items
from spectral_irt.conditional.errors import center_parts, free_inverse, location_covariance
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
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.estimators.estimable import scalable
from spectral_irt.estimators.linear_design import LinearDesign
from spectral_irt.estimators.spectral import SpectralRasch
from spectral_irt.inference.groups.grouping import Split
from spectral_irt.inference.groups.sampling import SIMPLE, SampledPersons, Sampling, Sandwiches, sandwiches
from spectral_irt.inference.results import two_sided
from spectral_irt.joint_errors import JointErrors
from spectral_irt.numerics import safe_divide
from spectral_irt.text import count, count_are, listed, one_or_many

DENSE_ITEMS = KEEP_COVARIANCE  # up to here whole covariance matrices are compared; beyond, items one by one
NEWTON_STEPS = 100
SETTLED = 1e-9  # largest derivative of the exact log-likelihood
SHOWN_GROUPS = 5  # names that a text has of many groups
RANK_DIGITS = 1e-9  # eigenvalues below this share of the largest are zero

GroupEstimator: TypeAlias = ConditionalRasch | SpectralRasch  # estimators with a covariance matrix


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
        text = " | ".join(parts[:SHOWN_GROUPS])
        if len(parts) > SHOWN_GROUPS:
            text += f" and {len(parts) - SHOWN_GROUPS} more"
        if len(self.left_out):
            text += f", {len(self.left_out)} items left out"
        return text

    @property
    def items(self) -> NDArray[Any]:
        """Labels of the items compared."""
        return self.everyone.items

    @property
    def layout(self) -> Thresholds:
        return self.everyone.thresholds

    @property
    def n_parameters(self) -> int:
        """Free ones in each group, of which one is the origin of the scale."""
        n_columns = self.layout.n_entries if self.design is None else self.design.shape[1]
        return n_columns - 1

    @cached_property
    def location_covariances(self) -> tuple[Floats, ...]:
        """Of the difficulties in each group; empty for many items."""
        return tuple(location_covariance(self.layout, covariance) for covariance in self.covariances)

    def errors(self, group: int) -> JointErrors:
        """Of the difficulties in one group."""
        if self.covariances:
            return JointErrors.dense(self.location_covariances[group])
        return JointErrors.after_centering(self.se[group])

    def combined_errors(self, coefficients: Floats) -> JointErrors:
        """Of the sum of coefficient times difficulties over the groups."""
        if self.sandwiches is not None:
            covariance = location_covariance(self.layout, self.sandwiches.covariance_of_sum(coefficients))
            return JointErrors.dense(covariance)
        parts = [self.errors(int(g)).times_factor(coefficients[g]) for g in np.flatnonzero(coefficients)]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def combine(self, coefficients: Floats, center: Floats | None = None) -> Combination:
        """The sum of coefficient times difficulties over the groups; around the mean by the weights `center` of the
        items, or as the groups are centered."""
        value = coefficients @ self.difficulty
        no_limit = np.full(len(value), np.inf)
        if self.sandwiches is None and center is None:
            return Combination(value, np.sqrt(coefficients**2 @ self.se**2), no_limit)
        if center is None:
            center = self._anchor_weights
        errors = self.combined_errors(coefficients)
        variance = errors.variance
        if center is not None:
            variance = errors.around(center)
            value = value - center @ value
        df = no_limit
        if self.sandwiches is not None:
            df = self.sandwiches.df_of(coefficients[:, None] ** 2 * self.se**2)
        return Combination(value, np.sqrt(variance), df)

    @property
    def _anchor_weights(self) -> Floats | None:
        """Weights of the items in the mean that is zero, where that is not the mean of all."""
        if self.anchors is None or self.anchors.all():
            return None
        return np.asarray(self.anchors / self.anchors.sum())

    def threshold_covariance(self, group: int) -> Floats:
        """Of the thresholds of a group less those of the first."""
        if self.sandwiches is None:
            return self.covariances[group] + self.covariances[0]
        return self.sandwiches.covariance_of_sum(contrast(len(self.names), group, 0))

    def item_statistics(self, difficulty: Floats, further_se: Floats) -> Floats:
        """Wald's statistic of each item over all groups, from sandwiches that may have to do with each other, at these
        difficulties (groups x items), which have further errors of their own."""
        assert self.sandwiches is not None
        n_groups, n_items = difficulty.shape
        center = np.zeros(n_items) if self._anchor_weights is None else self._anchor_weights
        covariance = np.zeros((n_items, n_groups, n_groups))
        for g in range(n_groups):
            for h in range(n_groups):
                # Of the difficulties in g (rows) with those in h, which `location_covariance` turns round.
                block = location_covariance(self.layout, self.sandwiches.covariances[g][h]).T
                covariance[:, g, h] = np.diag(block) - block @ center - center @ block + center @ block @ center
            covariance[:, g, g] += further_se[g] ** 2
        to_first = less_first(n_groups)
        difference = (to_first @ difficulty).T
        variance = to_first @ covariance @ to_first.T
        inverse = np.linalg.pinv(variance, rcond=RANK_DIGITS, hermitian=True)
        return np.asarray(np.einsum("ig,igh,ih->i", difference, inverse, difference))

    @property
    def df_joint(self) -> float:
        """Degrees of freedom of the errors of all groups together; infinite without clusters."""
        return np.inf if self.sandwiches is None else self.sandwiches.df_joint

    def centered_on(self, anchors: NDArray[np.bool_]) -> GroupCalibrations:
        """Difficulties with the anchors' mean at zero: b - a'b has variance V_ii - 2 (V a)_i + a'V a."""
        weights = anchors / anchors.sum()
        difficulty = self.difficulty - (self.difficulty @ weights)[:, None]
        if anchors.all():
            return replace(self, difficulty=difficulty)
        variance = [self.errors(group).around(weights) for group in range(len(self.names))]
        return replace(self, difficulty=difficulty, se=np.sqrt(variance), anchors=anchors)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Which items were not compared, and why."""
        findings = []
        of_one_group = [] if self.in_one_group is None else self.in_one_group.tolist()
        if of_one_group:
            sentence = (
                f"{count(len(of_one_group), 'item has', 'items have')} responses in one group only: "
                f"{listed(of_one_group)}."
            )
            remedy = "There is nothing to compare, as with an item that was split by these groups."
            findings.append(Finding("items_of_one_group", "note", sentence, remedy, tuple(of_one_group)))
        in_several = [item for item in self.left_out.tolist() if item not in set(of_one_group)]
        if in_several:
            reason = "a category there is used by nobody"
            if self.layout.binary:
                reason = "answered right by everyone or no one"
            they_have = one_or_many(len(in_several), "it has", "they have")
            sentence = (
                f"{count_are(len(in_several), 'item')} left out of the comparison of groups, because in some "
                f"{they_have} no difficulty on the common scale ({reason}, or answered by nobody who answered the "
                f"others): {listed(in_several)}."
            )
            remedy = "Use fewer or larger groups to compare them."
            findings.append(Finding("items_not_compared", "warning", sentence, remedy, tuple(in_several)))
        return tuple(findings)


class Combination(NamedTuple):
    """A combination of the difficulties of several groups, item by item, its standard error, and the degrees of freedom
    of that."""

    value: Floats
    se: Floats
    df: Floats

    @property
    def z(self) -> Floats:
        """Over its standard error; 0 where nothing can vary, as a single anchor, which is zero in every group."""
        return safe_divide(self.value, self.se)

    @property
    def p(self) -> Floats:
        """Two-sided, by Student's t where the errors have degrees of freedom."""
        return np.asarray(two_sided(self.z, self.df))


def contrast(n_groups: int, group: int, reference: int) -> Floats:
    """Coefficients of the difficulties in one of the groups less those in another."""
    coefficients = np.zeros(n_groups)
    coefficients[group] = 1.0
    coefficients[reference] = -1.0
    return coefficients


def less_first(n_groups: int) -> Floats:
    """The matrix that takes the first of several groups from each of the others."""
    return np.hstack([-np.ones((n_groups - 1, 1)), np.eye(n_groups - 1)])


@dataclass(frozen=True, eq=False)
class GroupModel:
    """What is estimated in every group: of right and wrong answers what the `estimator` does.

    Items of a rating scale (`scales`: item to scale) have the distances of their thresholds in common; else every
    threshold is free, or with a `shape` (thresholds, NaN for items to be left out) only locations are, the distances of
    an item's thresholds held, so that a category that a group did not use does no harm. `exact` asks for exact sums
    whatever they cost, and the log-likelihood with them.
    """

    estimator: GroupEstimator = field(default_factory=ConditionalRasch)
    scales: Mapping[Any, Any] | None = None
    shape: Floats | None = None
    exact: bool = False

    def of_items(self, layout: Thresholds, items: Ints) -> GroupModel:
        """The same for some of the items."""
        if self.shape is None:
            return self
        return replace(self, shape=self.shape[layout.of_items(items)])

    def design(self, responses: Responses) -> Floats | None:
        """A of thresholds = A eta; None for the identity."""
        layout = responses.thresholds
        if layout.binary or (self.scales is None and self.shape is None):
            return None
        if self.scales is not None:
            rating_scales = LinearDesign("items").of(responses, scale=True, groups=self.scales)
            return np.asarray(rating_scales.matrix.toarray())
        return (layout.item[:, None] == np.arange(layout.n_items)).astype(float)


def model_like(calibration: Calibration) -> GroupModel:
    """The model of a calibration, with an estimator that has no prior, but a covariance matrix."""
    return GroupModel(estimator_like(calibration), calibration.rating_scales)


def locations_like(calibration: Calibration) -> GroupModel:
    """One difficulty for each item and group, the distances of its thresholds held where the calibration has them."""
    return GroupModel(estimator_like(calibration), shape=calibration.thresholds)


def estimator_like(calibration: Calibration) -> GroupEstimator:
    """Conditional maximum likelihood without a prior: with the options of the calibration where it is one, else from
    the spectral estimator."""
    exact = estimator_name(calibration.provenance.estimator) == "cml"
    if exact and calibration.model == RASCH:
        return ConditionalRasch(**{**calibration.provenance.settings, "se": "information"})
    if exact or not calibration.layout.binary:
        return ConditionalRasch()
    return SpectralRasch(regularization=0)


class GroupFit(NamedTuple):
    """Thresholds of one group; no covariance where items are too many, nor a likelihood of other than exact."""

    thresholds: Floats
    se: Floats
    covariance: Floats | None
    loglik: float | None


def _by_estimator(responses: Responses, model: GroupEstimator) -> GroupFit:
    estimator = type(model)(**model.get_params())
    dense = responses.n_items <= DENSE_ITEMS
    if dense:
        estimator.set_params(se="information")  # the covariance is wanted too
    estimator.fit(responses)
    loglik = estimator.calibration_.provenance.loglik
    if not dense:
        return GroupFit(estimator.difficulty_, estimator.se_, None, loglik)
    covariance = estimator.covariance()
    return GroupFit(estimator.difficulty_, np.sqrt(np.diag(covariance)), covariance, loglik)


class _Parameters(NamedTuple):
    """What Newton's steps move: A of thresholds = A eta (None for the identity), where they start, and which of the
    parameters do not move."""

    design: Floats | None
    start: Floats
    fixed: NDArray[np.bool_] | None = None


def _parameters_of(model: GroupModel, design: Floats | None, layout: Thresholds, start: Floats) -> _Parameters:
    """The parameters of a group, from thresholds to start with."""
    if model.shape is not None and not layout.binary:
        # The thresholds are a location for each item plus the shape, which is one more column, times one.
        n_items = layout.n_items
        of_item = layout.item[:, None] == np.arange(n_items)
        return _Parameters(
            design=np.column_stack([of_item, start]),
            start=np.append(np.zeros(n_items), 1.0),
            fixed=np.arange(n_items + 1) == n_items,
        )
    if design is None:
        return _Parameters(None, start)
    return _Parameters(design, parameters(sparse.csr_array(design), start))


def by_newton(
    responses: Responses,
    model: GroupModel,
    design: Floats | None,
    name: str,
    weights: Floats | None = None,
    start: Floats | None = None,
) -> GroupFit:
    """Thresholds A eta of one group by Newton steps (from `start`, if it is given), with the inverse of their
    information."""
    layout = responses.thresholds
    if model.shape is not None and not layout.binary:
        start = model.shape
    if start is None:
        start = start_thresholds(responses)
    exact = ExactLikelihood(responses, weights=weights)
    is_exact = exact.exact_is_affordable() or model.exact
    likelihood: Likelihood = exact if is_exact else Likelihood(responses, start, weights=weights)
    eta = _parameters_of(model, design, layout, start)
    if eta.design is not None:  # shared offsets, or held distances, do not tie items together that no person links
        refuse_parts(responses, linked_items(responses, mixed=True)[0][layout.item])
    no_location = DesignError(
        f"{responses.source}: in the group {name!r} the items have no finite location on a common scale. Use fewer or "
        "larger groups."
    )
    problem = Newton(likelihood, design=eta.design, fixed=eta.fixed)
    try:
        if is_exact:
            steepest = 1.0 if design is None else float(np.abs(design).sum(axis=0).max())
            derivative = max(SETTLED, exact.rounding * steepest)
            fit = problem.solve_to_gradient(eta.start, derivative, max_evaluations=NEWTON_STEPS)
        else:
            fit = problem.solve(eta.start, max_evaluations=NEWTON_STEPS)
    except np.linalg.LinAlgError:  # a distance of shared thresholds beside a category that nobody used
        raise no_location from None
    if fit.move > CLOSE:
        raise no_location
    information = information_at(likelihood, fit.point.beta)
    thresholds, covariance = center_parts(layout, fit.beta, free_inverse(fit, information.matrix))
    assert covariance is not None
    loglik = fit.point.loglik if is_exact else None
    return GroupFit(thresholds, np.sqrt(np.maximum(np.diag(covariance), 0)), covariance, loglik)


def fit_group(
    responses: Responses, model: GroupModel, design: Floats | None, name: str, weights: Floats | None = None
) -> GroupFit:
    """The thresholds of one group, whose persons may have weights."""
    if responses.thresholds.binary and weights is None:
        return _by_estimator(responses, model.estimator)
    return by_newton(responses, model, design, name, weights)


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
    persons = SampledPersons(responses, sampling)
    groups = [persons.take(split.group == k) for k in range(split.n_groups)]
    n_groups_with = np.sum([group.responses.item_counts > 0 for group in groups], axis=0)
    common = _common_items([group.responses for group in groups], split.names, model)
    model = model.of_items(responses.thresholds, np.flatnonzero(common))
    everyone = responses.take_persons(split.group >= 0).take_items(common)
    groups = [group.take_items(common) for group in groups]
    design = model.design(everyone)
    fits = []
    for group, name in zip(groups, split.names, strict=True):
        fits.append(fit_group(group.responses, model, design, name, group.sampling.weights))
    thresholds = np.array([fit.thresholds for fit in fits])
    se = np.array([fit.se for fit in fits])
    covariances = tuple(fit.covariance for fit in fits if fit.covariance is not None)
    robust = None
    if not sampling.simple:
        robust = _robust_errors(groups, thresholds, design)
        covariances = tuple(robust.covariances[g][g] for g in range(len(groups)))
        se = _standard_errors(covariances)
    calibrations = GroupCalibrations(
        names=split.names,
        sizes=np.array([group.responses.n_persons for group in groups]),
        everyone=everyone,
        left_out=responses.items[~common],
        in_one_group=responses.items[~common & (n_groups_with < 2)],
        thresholds=thresholds,
        covariances=covariances,
        difficulty=thresholds,
        se=se,
        loglik=tuple(fit.loglik for fit in fits if fit.loglik is not None),
        design=design,
        sandwiches=robust,
    )
    if everyone.thresholds.binary:
        return calibrations
    difficulty = np.array([everyone.thresholds.mean(of_group) for of_group in thresholds])
    return replace(calibrations, difficulty=difficulty, se=_standard_errors(calibrations.location_covariances))


def _robust_errors(groups: Sequence[SampledPersons], thresholds: Floats, design: Floats | None) -> Sandwiches:
    first = groups[0]
    if thresholds.shape[1] > DENSE_ITEMS:
        raise DesignError(
            f"{first.responses.source}: groups of people with {first.sampling.words} are compared on up to "
            f"{DENSE_ITEMS:,} items, and there are {first.responses.n_items:,}. Compare fewer items at a time."
        )
    return sandwiches(groups, thresholds, design)


def _standard_errors(covariances: Sequence[Floats]) -> Floats:
    """Of each group (rows), where rounding may have left a variance just below zero."""
    variance = np.array([np.diag(covariance) for covariance in covariances])
    return np.sqrt(np.maximum(variance, 0))


def _common_items(groups: Sequence[Responses], names: Sequence[str], model: GroupModel) -> NDArray[np.bool_]:
    """The items that have a common scale in each group, and a shape, where the distances of thresholds are held."""
    layout = groups[0].thresholds
    common = np.ones(layout.n_items, dtype=bool)
    if model.shape is not None and not layout.binary:
        common = np.isfinite(layout.mean(model.shape))
    while True:
        before = common.copy()
        for name, group in zip(names, groups, strict=True):
            in_group = estimable_items(group.take_items(common), name, group.n_items, model)
            common[np.flatnonzero(common)[~in_group]] = False
        if (common == before).all():
            return common


def estimable_items(group: Responses, name: str, n_items: int, model: GroupModel) -> NDArray[np.bool_]:
    """Which items have a common scale in this group: its largest strongly connected component of thresholds.

    An item that is extreme there is a component of its own. An error names the group when hardly any item is left, or
    when half of them or more are not connected. Items whose thresholds are tied only need answers that differ.
    """
    layout = group.thresholds
    if not layout.binary and (model.scales is not None or model.shape is not None):
        return scalable(group)
    connected = np.logical_and.reduceat(components(group) == 0, layout.first)
    n_connected = connected.sum()
    who = f"in the group {name!r} ({count(group.n_persons, 'person')})"
    if 2 <= n_connected <= group.n_items / 2:
        try:
            estimable(group)
        except DisconnectedDesignError as error:
            raise DisconnectedDesignError(
                f"{who} of {error.args[0]} Or use fewer or larger groups: the items must be connected within each."
            ) from None
    if n_connected < 2:
        why = "have both right and wrong answers"
        remedy = ""
        if not layout.binary:
            why = "have answers in all their categories"
            remedy = "; or join categories that few people use"
        n_left_out = n_items - group.n_items
        if n_left_out:
            why += f" ({n_left_out:,} of {n_items:,} items were already left out, extreme in another group)"
        raise DesignError(
            f"{group.source}: {who} no two items can be compared, because too few there {why}. Use fewer or larger "
            f"groups, or another split{remedy}."
        )
    return connected
