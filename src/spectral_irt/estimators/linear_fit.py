"""The fit of a linear design beta = A eta: what raters, items and properties add to thresholds, with standard errors.

The likelihood is given the person's total over all ratings: abilities drop out, whoever rated whom. `fit_of_design` is
what the spectral estimators call for facets, a `LinearDesign` or a rating scale; `explain_items` is the linear logistic
test model (Fischer, 1973).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from spectral_irt.calibration import RATING_SCALE, Calibration
from spectral_irt.chain.prior import AMPLE_INFORMATION, Regularization, TermPrior
from spectral_irt.chain.stationary import linked_items
from spectral_irt.conditional.bias import bias_factors
from spectral_irt.conditional.errors import center_parts, parameter_covariance, parameter_variance, score_factors
from spectral_irt.conditional.exact_likelihood import ExactLikelihood, information_at, residuals
from spectral_irt.conditional.likelihood import Likelihood, passed_counts
from spectral_irt.conditional.linear import Ridge
from spectral_irt.conditional.newton import CLOSE, LINEAR_DESIGN, MAX_EVALUATIONS, NEWTON, Newton
from spectral_irt.conditional.penalized import DENSE_PARAMETERS, PenalizedPoint, parameters
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, rows_of
from spectral_irt.data.design import Mask
from spectral_irt.data.facets import FacetMeasures
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.estimators.base import Estimate, Tell, convergence
from spectral_irt.estimators.conditional import conditional_thresholds
from spectral_irt.estimators.estimable import Errors, between_parts, estimable_items, weights_finding
from spectral_irt.estimators.linear_design import (
    ITEMS,
    DesignMatrix,
    LinearDesign,
    SpectralRatingScale,
    Term,
    design_of_properties,
    property_numbers,
)
from spectral_irt.numerics import csr, gram, safe_divide, variances
from spectral_irt.tables import Columns
from spectral_irt.text import first_of, listed, p_value, plural

if TYPE_CHECKING:
    from spectral_irt.estimators.spectral import Spectral

SIGNIFICANT = 0.05  # level of the test of properties against free items
OPEN = 1e-6  # of a direction of length one: by which a parameter moves along it
KEPT_COVARIANCE = 1_000  # parameters up to which a calibration keeps it (8 MB), for the errors of people
TOLD_CORRECTION = 0.001  # share of the values by which bias is taken off, from which on a note says so
EXACT_ANSWERS = 20_000  # up to so many the likelihood is exact to the last digit


def design_fit(
    responses: Responses,
    design: DesignMatrix,
    *,
    regularization: str | float = "auto",
    weights: Floats | None = None,
    se: str = "auto",
    seed: int = 0,
    unbiased: bool = False,
    exact_up_to: int = EXACT_ANSWERS,
    clusters: Ints | None = None,
    max_evaluations: int = MAX_EVALUATIONS,
    likelihood: Likelihood | None = None,
    tell: Tell = lambda text: None,
) -> DesignResult:
    """The parameters of a design by Newton steps on the conditional likelihood, with standard errors.

    `unbiased`: their bias of first order is taken off (`bias_factors`). `clusters` has the cluster of each person, from
    0 without gaps: errors then allow for people of a cluster who respond alike. `likelihood` is that of these
    responses, where a faster one than the general is known.
    """
    a = design.matrix
    part, _ = linked_items(responses, mixed=True)
    open_directions, subset = design.open_directions(part[responses.thresholds.item])
    normalize = design.normalization(open_directions, subset)
    categories = _categories_beside(responses, design)
    start = np.where(design.fixed, design.value, parameters(a, categories.log_odds[design.place]))
    if likelihood is None and responses.n_responses <= exact_up_to:
        likelihood = ExactLikelihood(responses, weights=weights)
    elif likelihood is None:
        likelihood = Likelihood(responses, a @ start, weights=weights, fine=responses.facets is None)

    def information_at_start() -> Floats:
        return likelihood.at(a @ start).of_parameters(a).diagonal()

    ridge, tied = _ridge(responses, design, regularization, categories.both_used, information_at_start, subset)
    fixed = design.fixed if design.fixed.any() else None
    problem = Newton(likelihood, design=a, fixed=fixed, open_directions=open_directions, ridge=ridge)
    optimum = problem.solve(start, max_evaluations=max_evaluations, tell=tell)
    if se != "none":
        tell("standard errors")
    eta = normalize(optimum.eta)
    errors = _parameter_errors(
        responses, design, likelihood, optimum, normalize, se=se, seed=seed, clusters=clusters, weights=weights
    )
    factor_of_term = np.ones(len(design.terms))
    if unbiased:  # last, for the memory of the point is used again
        # What squared scores are to the information: more than 1 with weights.
        noise = 1.0 if weights is None else float(np.sum(weights**2) / np.sum(weights))
        columns = [term.columns if not design.fixed[term.columns].any() else slice(0) for term in design.terms]
        factor_of_term = bias_factors(likelihood, optimum, eta, columns, noise)
    factor = np.repeat(factor_of_term, [len(term.labels) for term in design.terms])
    covariance = errors.covariance
    if covariance is not None:
        covariance = factor[:, None] * covariance * factor
    return DesignResult(
        design=design,
        eta=factor * eta,
        se=factor * np.sqrt(np.maximum(errors.variance, 0)),
        covariance=covariance,
        se_method=errors.method,
        subset=subset,
        tied=tied,
        optimum=optimum,
        factor=factor_of_term,
        scales=design.scale_of_items(open_directions),
        of_model=errors.of_model,
    )


class CategoriesBeside(NamedTuple):
    """Of each threshold of the items, whoever rated: the log odds of the category below it to the one above, and
    whether both were used."""

    log_odds: Floats
    both_used: Mask


def _categories_beside(responses: Responses, design: DesignMatrix) -> CategoriesBeside:
    n = design.facets.by_item(responses.category_counts)
    n_below = n[design.real.item, design.real.level - 1]
    n_above = n[design.real.item, design.real.level]
    return CategoriesBeside(np.log((n_below + 0.5) / (n_above + 0.5)), np.minimum(n_below, n_above) > 0)


class ParameterErrors(NamedTuple):
    """Variances of the parameters of a design, and by which method; their covariance, where it was formed, and that by
    the model's own information, which is formed when it is asked for."""

    method: str
    variance: Floats
    covariance: Floats | None = None
    of_model: Callable[[], Floats] | None = None


def _parameter_errors(
    responses: Responses,
    design: DesignMatrix,
    likelihood: Likelihood,
    optimum: PenalizedPoint,
    normalize: Callable[[Floats], Floats],
    *,
    se: str,
    seed: int,
    clusters: Ints | None = None,
    weights: Floats | None = None,
) -> ParameterErrors:
    """By the dense sandwich or the information; by random right-hand sides where there are many parameters.

    "auto" draws the scores of parameters together that few people met, and is not below the model's own errors: where
    few people link raters, their scores spread too little.
    """
    if se == "none":
        return ParameterErrors(se, np.full(len(optimum.eta), np.nan))
    if len(optimum.eta) > DENSE_PARAMETERS:
        if clusters is not None:
            raise OptionError(
                f"errors that allow for clusters are for designs of up to {DENSE_PARAMETERS:,} parameters, and this "
                f"one has {len(optimum.eta):,}. Leave out the clusters."
            )
        scores = _score_squares(responses, design, optimum)
        variance = parameter_variance(optimum, normalize, scores.squares, scores.factor, seed)
        return ParameterErrors("multiplier", variance)
    method = "information" if se == "information" else "dense"
    information = information_at(likelihood, optimum.point.beta, design.matrix).matrix

    def of_model() -> Floats:
        return normalize(normalize(parameter_covariance(optimum, False, information)).T)

    factor = None
    if clusters is not None:
        meat = _cluster_gram(responses, design, optimum.point.beta, clusters, weights)
        covariance = normalize(normalize(parameter_covariance(optimum, True, information, meat=meat)).T)
        method = f"sandwich, {int(clusters.max()) + 1:,} clusters"
        return ParameterErrors(method, np.diag(covariance), covariance, of_model)
    if se not in ("dense", "information"):
        factor = _score_squares(responses, design, optimum).factor
    covariance = parameter_covariance(optimum, method == "dense", information, factor)
    covariance = normalize(normalize(covariance).T)
    if se == "auto":
        variance = np.diag(covariance)
        ratio = safe_divide(np.diag(of_model()), variance, otherwise=1.0)
        scale = np.sqrt(np.maximum(ratio, 1))
        covariance = scale[:, None] * covariance * scale
    return ParameterErrors(method, np.diag(covariance), covariance, of_model)


def _cluster_gram(
    responses: Responses, design: DesignMatrix, beta: Floats, clusters: Ints, weights: Floats | None
) -> Floats:
    """f G' G, with G the scores of the parameters summed within each of C clusters and f = C / (C - 1)."""
    n_clusters = int(clusters.max()) + 1
    if n_clusters < 2:
        raise DesignError(f"{responses.source}: errors that allow for clusters need two of them, and there is one.")
    if weights is None:
        weights = np.ones(responses.n_persons)
    sums = sparse.csr_array((n_clusters, design.matrix.shape[1]))
    blocks = responses.entries.map(_scores_of_parameters, responses.thresholds, beta, design.matrix)
    start = 0
    for scores in blocks:
        persons = slice(start, start + scores.shape[0])
        start = persons.stop
        place = (clusters[persons], np.arange(scores.shape[0]))
        sums = sums + sparse.csr_array((weights[persons], place), shape=(n_clusters, scores.shape[0])) @ scores
    return n_clusters / (n_clusters - 1) * gram(sums)


def _scores_of_parameters(block: Block, layout: Thresholds, beta: Floats, design: sparse.csr_array) -> sparse.csr_array:
    """Persons x parameters."""
    return sparse.csr_array(residuals(block, layout, beta) @ design)


def fit_of_design(
    estimator: Spectral,
    responses: Responses,
    tell: Tell,
    design: LinearDesign | None,
    anchors: Any,
    weights: Floats | None,
) -> Estimate:
    """Thresholds that are sums of what belongs to items, raters, occasions; or those of a rating scale."""
    parameters_of_fit = estimator.get_params()
    is_plain_scale = design is None and responses.facets is None
    _refuse_options(parameters_of_fit, anchors, is_plain_scale)
    about_weights = [] if weights is None else [weights_finding(weights)]
    if is_plain_scale:
        assert isinstance(estimator, SpectralRatingScale)
        return _fit_of_scale(estimator, responses, tell, weights, about_weights)
    matrix = (design or LinearDesign()).of(responses, scale=estimator.scaled, groups=parameters_of_fit.get("groups"))
    regularization = parameters_of_fit.get("regularization", "auto")
    result = design_fit(
        responses,
        matrix,
        regularization=regularization,
        weights=weights,
        se=parameters_of_fit.get("se", "auto"),
        seed=parameters_of_fit.get("random_state", 0),
        unbiased=regularization != 0,  # 0 asks for maximum likelihood itself
        tell=tell,
    )
    estimate = result.estimate(responses)
    return replace(estimate, findings=(*estimate.findings, *about_weights))


def _refuse_options(parameters_of_fit: Mapping[str, Any], anchors: Any, is_plain_scale: bool) -> None:
    """An error for what a linear design does not take."""
    if anchors is not None and is_plain_scale:
        raise OptionError("a rating scale has no anchors; anchor the items of a partial credit model.")
    if anchors is not None:
        raise OptionError("anchors of a linear design, as of raters, go with it: `design=LinearDesign(anchors={...})`.")
    usual = {"weighting": "ability", "nu": 0, "assume_equal_means": False}
    refused = [name for name, value in usual.items() if parameters_of_fit.get(name, value) != value]
    if parameters_of_fit.get("refine") is False:
        refused.append("refine")
    if refused:
        names = ", ".join(f"`{name}`" for name in refused)
        raise OptionError(f"a linear design, as of raters, is fitted by conditional likelihood; leave out {names}.")


def _fit_of_scale(
    estimator: SpectralRatingScale,
    responses: Responses,
    tell: Tell,
    weights: Floats | None,
    about_weights: list[Finding],
) -> Estimate:
    """The thresholds of a rating scale without facets."""
    items, design = estimator._estimable(responses)
    result = design_fit(
        items.responses,
        design,
        regularization=0,
        weights=weights,
        se="dense",
        unbiased=True,
        max_evaluations=estimator.max_iter,
        tell=tell,
    )
    layout = items.responses.thresholds
    part = result.subset[ITEMS]
    a = design.matrix
    covariance = None
    if result.covariance is not None:
        covariance = a @ (a @ result.covariance).T
    beta, covariance = center_parts(layout, a @ result.eta, covariance, part)
    unknown = between_parts(part, alpha=0.0, equal_means=False)[layout.item]
    errors = Errors(result.errors_of(a) + unknown, method=result.se_method)
    extra: dict[str, Any] = {"covariance_within_parts": None}
    if covariance is not None:
        part_of_threshold = part[layout.item]
        same_part = part_of_threshold[:, None] == part_of_threshold
        errors = Errors.of(layout, covariance + np.where(same_part, unknown, 0.0), result.se_method)
        # The offsets, which parts without a link have in common, are known though their levels are not.
        extra["covariance_within_parts"] = items.for_all(covariance)
    return items.estimate(
        beta,
        errors,
        result.optimum.evaluations,
        result.optimum.move,
        threshold_information=result.optimum.point.own,
        solver=LINEAR_DESIGN + NEWTON,
        findings=result.findings() + about_weights,
        extra=extra,
    )


@dataclass(frozen=True, eq=False)
class Explained:
    """The linear logistic test model: what properties add to the difficulty of items, beside items that are free.

    `effects` has the columns `property, level, effect, se, z, p`, `explained` is the squared correlation of both kinds
    of difficulty; `remarks` are about the properties themselves.
    """

    effects: Columns
    n_items: int
    loglik: float
    loglik_free: float
    df: int
    explained: float
    chi2: float
    p: float | None  # none where there are as many properties as items
    remarks: tuple[Finding, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Of fit.json."""
        return {name: value for name, value in vars(self).items() if name not in ("effects", "remarks")}

    @property
    def sentence(self) -> str:
        """The first effects, how much they explain, and the test."""
        named = zip(*(self.effects[key].tolist() for key in ("property", "level", "effect", "se")), strict=True)
        shown = [f"{f'{name} {level}'.rstrip()} {effect:+.2f} (SE {se:.2f})" for name, level, effect, se in named]
        against = "" if self.p is None else f" (chi2 = {self.chi2:.1f}, df = {self.df}, {p_value(self.p)})"
        return (
            f"{first_of(shown)}; they explain {self.explained:.0%} of the variance of {self.n_items:,} difficulties, "
            f"likelihood ratio test against free items{against}."
        )

    @property
    def findings(self) -> list[Finding]:
        if self.p is None or self.p >= SIGNIFICANT:
            return [*self.remarks]
        explain = f"The properties explain {self.explained:.0%} of the variance of difficulties"
        others = "Items differ for other reasons too, of which the standard errors of the effects know nothing"
        sentence = f"{explain}, but free items fit better ({p_value(self.p)})."
        remedy = f"{others}: read them as a description of these items."
        return [*self.remarks, Finding("covariates_incomplete", "note", sentence, remedy)]


def explain_items(responses: Responses, properties: Mapping[str, Mapping[Any, Any]]) -> Explained:
    """How far properties say how hard items are, by conditional likelihood; offsets of thresholds are free.

    Only items with a finite estimate of their own count, so that both likelihoods are of the same answers.
    """
    from scipy.special import chdtrc, ndtr

    usable = estimable_items(responses).responses
    names = list(properties)
    design = design_of_properties(usable, {str(name): values for name, values in properties.items()})
    terms = design.terms[: len(names)]
    n_open = _refuse_inseparable(names, terms, design)
    df = usable.thresholds.n_entries - 1 - (design.matrix.shape[1] - n_open)
    if df < 0:
        raise OptionError(f"there are too few items ({usable.n_items:,}) for {len(names):,} properties.")
    result = design_fit(usable, design, regularization=0, se="information")
    free = conditional_thresholds(usable, se="none")
    beta = design.matrix @ result.eta
    n_effects = terms[-1].columns.stop
    effect = result.effect[:n_effects]
    se = result.effect_se[:n_effects]
    with np.errstate(divide="ignore", invalid="ignore"):
        z = effect / se
    no_level = np.array([""], dtype=object)  # of a property in numbers
    levels = [no_level if term.weight is None else term.labels for term in terms]
    effects = {
        "property": np.repeat(np.array(names, dtype=object), [len(term.labels) for term in terms]),
        "level": np.concatenate(levels),
        "effect": effect,
        "se": se,
        "z": z,
        "p": 2 * ndtr(-np.abs(z)),
    }
    correlation = np.corrcoef([usable.thresholds.mean(beta), usable.thresholds.mean(free.thresholds)])
    loglik = ExactLikelihood(usable).at(beta).loglik
    chi2 = max(2 * (free.loglik - loglik), 0.0)
    return Explained(
        effects,
        usable.n_items,
        loglik,
        free.loglik,
        df,
        explained=float(np.asarray(correlation)[0, 1] ** 2),
        chi2=chi2,
        p=float(chdtrc(df, chi2)) if df else None,
        remarks=tuple(numbers_taken_for_words(properties)),
    )


def _refuse_inseparable(names: Sequence[str], terms: Sequence[Term], design: DesignMatrix) -> int:
    """How many directions of the parameters are open; an error if properties move along one."""
    one_part = np.zeros(design.layout.n_entries, dtype=np.int64)
    directions, subset = design.open_directions(one_part)
    inseparable = []
    for name, term in zip(names, terms, strict=True):
        if term.weight is None:
            is_open = bool(np.abs(directions[term.columns]).max(initial=0) > OPEN)
        else:
            is_open = bool(subset[term.name].any())
        if is_open:
            inseparable.append(name)
    if inseparable:
        raise OptionError(
            f"the properties {listed(inseparable)} cannot be told apart: one is the same for all items, or a sum of "
            "the others. Leave some of them out."
        )
    return directions.shape[1]


def numbers_taken_for_words(properties: Mapping[str, Mapping[Any, Any]]) -> Iterator[Finding]:
    """A warning for each property of which most values are numbers, but not all: each value then has an effect."""
    for name, by_item in properties.items():
        values = {item: value for item, value in by_item.items() if value is not None and value == value}
        words = {item: value for item, value in values.items() if property_numbers([value]) is None}
        if 0 < len(words) < len(values) / 2:
            listing = ", ".join(f"{value!r} (item {item})" for item, value in list(words.items())[:5])
            sentence = (
                f"The property {name!r} is not in numbers throughout ({listing}); its values were taken for words, "
                f"with an effect for each of {len(set(map(str, values.values()))):,}."
            )
            remedy = "Correct these values if the property is a number."
            yield Finding("covariates_in_words", "warning", sentence, remedy, tuple(words))


def levels_alone(design: DesignMatrix, subset: Mapping[str, Ints]) -> Mask:
    """Levels of a facet that are compared with no other level: zero by definition, whatever the ratings are."""
    is_alone = np.zeros(design.matrix.shape[1], dtype=bool)
    for term in design.terms:
        if term.of_facet and term.name in subset:
            is_alone[term.columns] = np.bincount(subset[term.name])[subset[term.name]] == 1
    return is_alone


class TermRidge(NamedTuple):
    """The prior on the parameters of a design, if there is one, and which of them the answers tie to the others."""

    ridge: Ridge | None
    tied: Mask


def _ridge(
    responses: Responses,
    design: DesignMatrix,
    regularization: str | float,
    both_used: Mask,
    information: Callable[[], Floats],
    subset: Mapping[str, Ints],
) -> TermRidge:
    """The prior, where a parameter has few answers or all alike.

    `both_used` are thresholds of the items between two categories that were used, `information` says that on the
    parameters, and `subset` says which levels of a facet can be compared.
    """
    is_effect = design.of_columns(lambda term: term.weight is not None or term.interaction)
    takes_prior = is_effect & ~levels_alone(design, subset)  # of a level by itself there is nothing to estimate
    tied = ~takes_prior | _answered_both_ways(responses, design)
    kind = np.zeros(len(tied), dtype=np.int64)
    real = design.real
    for term in design.terms:
        if term.level is not None and term.weight is not None:  # the thresholds of the items
            tied[term.columns] &= both_used
            kind[term.columns] = real.max_score[real.item] * (real.widest + 1) + real.level
    alpha = None if isinstance(regularization, str) else float(regularization)
    if alpha == 0:
        untied = takes_prior & ~tied & ~design.fixed
        if untied.any():
            names = design.of_columns(lambda term: term.labels)[untied]
            raise DesignError(
                f"{responses.source}: without a prior no finite value exists where all ratings are the lowest or all "
                f"are the highest, or beside a category that nobody used: {listed(dict.fromkeys(names.tolist()))}. "
                "Use `regularization='auto'`, or drop them."
            )
        return TermRidge(None, tied)
    group = design.alike(lambda term: kind[term.columns])
    ridge = Ridge.of(np.where(takes_prior & ~design.fixed, group, -1), tied, alpha)
    in_need = (ridge.group >= 0) & ((information() < AMPLE_INFORMATION) | ~tied)
    return TermRidge(ridge if alpha is not None or in_need.any() else None, tied)


def _answered_both_ways(responses: Responses, design: DesignMatrix) -> Mask:
    """Of which parameters some of the thresholds that they move were passed, and some were not."""
    layout = responses.thresholds
    n_people = responses.entries.sum(_people, layout, sparse.csr_array(sparse.eye_array(layout.n_items)))
    moves = abs(design.matrix).sign().T  # a property in numbers says by how much, not whether
    n_passed = moves @ passed_counts(responses)
    n_met = moves @ n_people[layout.item]
    return (n_passed > 1e-9) & (n_passed < n_met - 1e-9)


class SquaredScores(NamedTuple):
    """Sums of squared scores of the parameters, and by what to multiply their scores."""

    squares: Floats
    factor: Floats


def _score_squares(responses: Responses, design: DesignMatrix, optimum: PenalizedPoint) -> SquaredScores:
    """The squared scores of parameters that few people met are drawn towards those of their term."""
    layout = responses.thresholds
    a = design.matrix
    meets = sparse.csr_array((np.abs(a[layout.first]) > 0).astype(np.float64))
    n_people = responses.entries.sum(_people, layout, meets)
    squares = optimum.point.score_squares(a)
    term_of_parameter = design.of_columns(lambda term: -1 if term.weight is None else design.terms.index(term))
    return SquaredScores(squares, score_factors(optimum.matrix.diagonal(), squares, n_people, term_of_parameter))


def _people(block: Block, layout: Thresholds, meets: sparse.csr_array) -> Floats:
    """How many people without an extreme score met each column of a matrix of items x columns."""
    rows = rows_of(block, layout)
    some = rows.take(np.flatnonzero(rows.informative))
    answered = csr(some.indptr.astype(np.int32), np.asarray(some.items), np.ones(len(some.items)), layout.n_items)
    met = answered @ meets
    return np.bincount(met.indices, minlength=meets.shape[1]).astype(float)


def _noun(term: Term) -> str:
    """What the parameters of a term are."""
    if not term.factors:
        return "offsets of thresholds"
    kind = term.factors[0].kind
    if term.interaction or kind in ("property", "number"):
        return f"effects of {term.name}"
    if kind == "facet":
        return f"{term.name} severities"
    return "locations of items" if term.level is None else "thresholds of items"


@dataclass(frozen=True, eq=False)
class DesignResult:
    """What a linear design found: the parameters of every term, with errors, and what can be compared."""

    design: DesignMatrix
    eta: Floats
    se: Floats
    covariance: Floats | None
    se_method: str
    subset: Mapping[str, Ints]
    tied: Mask
    optimum: PenalizedPoint
    factor: Floats  # of each term, by which its values were multiplied to take off the bias of first order
    scales: Ints  # the same for virtual items that can be compared, and so for people rated on them
    of_model: Callable[[], Floats] | None = None  # the covariance of uncorrected parameters by the model's information

    @property
    def effect(self) -> Floats:
        """The parameters in the units of the properties that they multiply."""
        return self.eta / self.design.unit

    @property
    def effect_se(self) -> Floats:
        return self.se / self.design.unit

    def facet(self, name: str) -> Columns:
        """What was found about a facet."""
        columns = self.design.term(name).columns
        subset = self.subset[name]
        fixed = self.design.fixed[columns]
        unlinked = subset > 0
        if len(unlinked) > 1:
            unlinked |= levels_alone(self.design, self.subset)[columns]
        status = np.where(unlinked, "unlinked", "ok").astype(object)
        status[~self.tied[columns]] = "extreme"
        status[fixed] = "anchored"
        se = np.where(unlinked & ~fixed, np.inf, self.se[columns])
        return {"severity": self.eta[columns], "se": se, "status": status, "subset": subset}

    @property
    def under_prior(self) -> dict[str, Mask]:
        """Of each term, the parameters on which a prior acts."""
        ridge = self.optimum.ridge
        precision = np.zeros(len(self.eta)) if ridge is None else ridge.precision
        return {term.name: precision[term.columns] > 0 for term in self.design.terms}

    def subset_of_items(self) -> Ints:
        """Which virtual items can be compared, numbered as the subsets of the facets are."""
        facets = self.design.facets
        number = np.zeros(len(self.scales), dtype=np.int64)
        for name in facets.names[1:]:
            if name in self.subset:
                subset = self.subset[name]
                number = number * (subset.max(initial=0) + 1) + subset[facets.column(name)[1]]
        lowest = np.full(self.scales.max(initial=0) + 1, np.iinfo(np.int64).max)
        np.minimum.at(lowest, self.scales, number)
        rank = np.argsort(np.argsort(lowest, kind="stable"), kind="stable")
        return rank[self.scales]

    def errors_of(self, b: sparse.csr_array) -> Floats:
        """Standard errors of B eta, as if parameters were independent where they are too many for a covariance."""
        spread = self.se**2 if self.covariance is None else self.covariance
        return np.sqrt(np.maximum(variances(b, spread), 0))

    def items(self, responses: Responses) -> Calibration:
        """The items themselves, at the mean of the raters."""
        design = self.design
        facets = design.facets
        real = design.real
        subset = self.subset.get(ITEMS, np.zeros(real.n_entries, dtype=np.int64))
        if len(subset) != real.n_items:
            subset = subset[real.first]
        # A row of the design for every threshold of an item, that of its first virtual item, without other facets.
        rows = responses.thresholds.of_items(facets.first)
        without_facets = design.of_columns(lambda term: not term.of_facet)
        b = sparse.csr_array(design.matrix[rows] * without_facets)
        mean = sparse.csr_array((1 / real.max_score[real.item], (real.item, np.arange(real.n_entries))))
        unknown = np.where(subset > 0, np.inf, 0.0)
        return Calibration(
            labels=facets.items,
            layout=real,
            thresholds=b @ self.eta,
            threshold_se=self.errors_of(b) + unknown[real.item],
            location_se=self.errors_of(sparse.csr_array(mean @ b)) + unknown,
            status=np.where(subset > 0, "unlinked", "ok").astype(object),
            n=facets.by_item(responses.item_counts),
            score=facets.by_item(responses.item_scores),
            item_information=facets.by_item(responses.thresholds.sum(self.optimum.point.information)),
            category_n=facets.by_item(responses.category_counts),
            codes=responses.category_codes()[facets.first],
            model="" if design.scale_of_item is None else RATING_SCALE,
            scale_of_item=design.scale_of_item,
            frame_kind=responses.frame_kind,
        )

    def findings(self) -> list[Finding]:
        """Which levels of a facet cannot be compared, and whether the steps ended."""
        findings = list(self._disjoint_subsets())
        prior = self.regularization()
        if prior is not None:
            findings.append(Finding("regularization", "note", str(prior)))
        findings += self._correction()
        optimum = self.optimum
        return findings + convergence(
            "the Newton steps", optimum.evaluations, "passes", "a step of", optimum.move, CLOSE
        )

    def _disjoint_subsets(self) -> Iterator[Finding]:
        """Facets whose levels fall into subsets that nothing links."""
        for name, subset in self.subset.items():
            labels = self.design.term(name).labels
            n_subsets = int(subset.max(initial=0)) + 1
            if n_subsets == 1:
                continue
            members = [listed(dict.fromkeys(labels[subset == k].tolist())) for k in range(min(n_subsets, 4))]
            if n_subsets > 4:
                members.append("...")
            level = "item" if name == ITEMS else name
            sentence = (
                f"The {plural(level)} fall into {n_subsets:,} subsets that nothing links: {' | '.join(members)}. "
                "Each subset has a mean of zero of its own; values of different subsets cannot be compared."
            )
            if name != ITEMS:
                sentence += " Neither can measures and fair averages of persons rated by them."
            remedy = (
                f"Have some people rated by members of two subsets, anchor one {level} of each subset, or analyze each "
                "subset by itself."
            )
            outside = tuple(dict.fromkeys(labels[subset > 0].tolist()))
            yield Finding("disjoint_subsets", "warning", sentence, remedy, outside)

    def _correction(self) -> list[Finding]:
        """By what the values of each term were multiplied, where that is worth telling."""
        corrected = [
            f"{_noun(term)} times {factor:.3f}"
            for term, factor in zip(self.design.terms, self.factor.tolist(), strict=True)
            if abs(factor - 1) >= TOLD_CORRECTION
        ]
        if not corrected:
            return []
        sentence = f"Small-sample bias was corrected, in standard errors as well: {first_of(corrected)}."
        if self.design.facets.facet_names:
            remedy = (
                "With few ratings each, maximum likelihood estimates lie too far apart, and a prior on some of them "
                "draws the others together. `regularization=0` has neither prior nor correction."
            )
        else:
            remedy = "Maximum likelihood estimates lie too far apart in small samples."
        return [Finding("bias_correction", "note", sentence, remedy)]

    def regularization(self) -> Regularization | None:
        """The prior that acted on the parameters of each term; None where none did."""
        ridge = self.optimum.ridge
        if ridge is None:
            return None
        terms = []
        for term in self.design.terms:
            under_prior = np.flatnonzero(ridge.precision[term.columns])
            if len(under_prior):
                sd = float(np.mean(ridge.alpha[ridge.group[term.columns][under_prior]]) ** -0.5)
                terms.append(TermPrior(noun=_noun(term), sd=sd, acts_on=len(under_prior), of=len(term.labels)))
        if not terms:
            return None
        reason = "where ratings are few, or all alike" if ridge.estimated else "as asked"
        return Regularization(kind="terms", reason=reason, estimated=ridge.estimated, terms=tuple(terms))

    def estimate(self, responses: Responses) -> Estimate:
        """Of the virtual items, with what was found about facets and all parameters."""
        optimum = self.optimum
        design = self.design
        facets = design.facets
        spread = self.se**2
        if self.covariance is not None and len(self.covariance) <= KEPT_COVARIANCE:
            spread = self.covariance
        effects = {
            "term": design.of_columns(lambda term: term.name),
            "level": design.of_columns(lambda term: term.labels),
            "threshold": design.of_columns(lambda term: 0 if term.level is None else term.level),  # of items alone
            "effect": self.effect,
            "se": self.effect_se,
        }
        measures = FacetMeasures(
            facets=facets,
            of={name: self.facet(name) for name in facets.facet_names if name in self.subset},
            items=self.items(responses),
            design=design.matrix,
            spread=spread,
            columns={term.name: term.columns for term in design.terms if term.weight is not None},
            likeliest=optimum.beta,
            under_prior=self.under_prior,
            factor={term.name: float(self.factor[k]) for k, term in enumerate(design.terms)},
            subset_of_item=self.subset_of_items(),
        )
        loglik = optimum.point.loglik
        return Estimate(
            design.matrix @ self.eta,
            self.errors_of(design.matrix),
            np.full(responses.n_items, "ok", dtype=object),
            optimum.evaluations,
            optimum.move,
            information=responses.thresholds.sum(optimum.point.information),
            loglik=loglik if np.isfinite(loglik) else None,
            findings=tuple(self.findings()),
            se_method=self.se_method,
            solver=LINEAR_DESIGN + NEWTON,
            regularization=self.regularization(),
            facets=measures,
            extra={"effects": effects},
        )
