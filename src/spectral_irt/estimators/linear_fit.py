"""The fit of a linear design beta = A eta: what raters, items and properties add to thresholds, with standard errors.

The likelihood is given the person's total over all ratings: abilities drop out, whoever rated whom.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.calibration import RATING_SCALE, Calibration
from spectral_irt.chain.prior import AMPLE_INFORMATION, Regularization, TermPrior
from spectral_irt.chain.stationary import linked_items
from spectral_irt.conditional.bias import bias_factors
from spectral_irt.conditional.errors import centered, parameter_covariance, parameter_variance, steadied
from spectral_irt.conditional.exact_likelihood import ExactLikelihood, information_at
from spectral_irt.conditional.likelihood import Likelihood, passed_counts
from spectral_irt.conditional.linear import Ridge
from spectral_irt.conditional.newton import CLOSE, LINEAR_DESIGN, NEWTON, Newton
from spectral_irt.conditional.penalized import DENSE_PARAMETERS, PenalizedPoint, parameters
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, rows_of
from spectral_irt.data.design import Mask
from spectral_irt.data.facets import FacetMeasures
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.estimators.base import Estimate, Tell, convergence
from spectral_irt.estimators.conditional import conditional_thresholds
from spectral_irt.estimators.estimable import between_parts, keep_estimable, weights_finding
from spectral_irt.estimators.linear_design import (
    ITEMS,
    DesignMatrix,
    LinearDesign,
    Term,
    design_of_properties,
    property_numbers,
)
from spectral_irt.numerics import csr, variances
from spectral_irt.tables import Columns
from spectral_irt.text import first_of, listed, p_value, plural

SURE = 0.05  # of a test
KEPT_COVARIANCE = 1_000  # parameters up to which a calibration keeps it (8 MB), for the errors of people
TOLD_CORRECTION = 0.001  # share of the values by which bias is taken off, from which on a note says so
EXACT_ANSWERS = 20_000  # up to so many the likelihood is exact to the last digit


def design_fit(
    responses: Responses,
    made: DesignMatrix,
    *,
    regularization: str | float = "auto",
    weights: Floats | None = None,
    se: str = "auto",
    seed: int = 0,
    unbiased: bool = False,
    tell: Tell = lambda text: None,
    **steps: Any,
) -> DesignResult:
    """The parameters of a design by Newton steps on the conditional likelihood, with standard errors.

    `unbiased`: their bias of first order is taken off (`bias_factors`). `steps` are further parameters of `newton`.
    """
    a, (parts, _) = made.matrix, linked_items(responses, mixed=True)
    levels, subset = made.open_directions(parts[responses.thresholds.item])
    normal = made.normalization(levels, subset)
    total = made.facets.by_item(responses.category_counts)  # of each item, whoever rated
    below, above = (total[made.real.item, made.real.level - k] for k in (1, 0))
    pooled = np.log((below + 0.5) / (above + 0.5))[made.place]
    start = np.where(made.fixed, made.value, parameters(a, pooled))
    likelihood: Likelihood
    if responses.n_responses <= EXACT_ANSWERS:
        likelihood = ExactLikelihood(responses, weights=weights)
    else:
        likelihood = Likelihood(responses, a @ start, weights=weights, fine=responses.facets is None)
    told = likelihood.at(a @ start).of_parameters(a).diagonal()
    alone = levels_alone(made, subset)
    ridge, tied = _ridge(responses, made, regularization, np.minimum(below, above) > 0, told, alone)
    fixed = made.fixed if made.fixed.any() else None
    problem = Newton(likelihood, design=a, fixed=fixed, open_directions=levels, ridge=ridge)
    found = problem.solve(start, tell=tell, **steps)
    eta, covariance, variance = normal(found.eta), None, np.full(len(start), np.nan)
    method = se if se in ("none", "information") else "dense"
    if method != "none":
        tell("standard errors")
        method = method if len(eta) <= DENSE_PARAMETERS else "multiplier"
    if method in ("dense", "information"):
        information = information_at(likelihood, found.point.beta, a).matrix
        factor = None if se in ("dense", "information") else _steadied(responses, made, found)[1]
        covariance = parameter_covariance(found, method == "dense", information, factor)
        covariance = normal(normal(covariance).T)
        if se == "auto":  # not below the model's: where few people link raters, their scores spread too little
            least = np.diag(normal(normal(parameter_covariance(found, False, information)).T))
            ratio = np.divide(least, np.diag(covariance), out=np.ones(len(eta)), where=np.diag(covariance) > 0)
            scale = np.sqrt(np.maximum(ratio, 1))
            covariance = scale[:, None] * covariance * scale
        variance = np.diag(covariance)
    elif method == "multiplier":
        variance = parameter_variance(found, normal, *_steadied(responses, made, found), seed)
    factor_of_term = np.ones(len(made.terms))
    if unbiased:  # last, for the memory of the point is used again
        noise = 1.0
        if weights is not None:
            noise = float(np.sum(weights**2) / np.sum(weights))
        columns = [term.columns if not made.fixed[term.columns].any() else slice(0) for term in made.terms]
        factor_of_term = bias_factors(likelihood, found, eta, columns, noise)
    factors = np.repeat(factor_of_term, [len(term.labels) for term in made.terms])
    if covariance is not None:
        covariance = factors[:, None] * covariance * factors
    return DesignResult(
        design=made,
        eta=factors * eta,
        se=factors * np.sqrt(np.maximum(variance, 0)),
        covariance=covariance,
        se_method=method,
        subset=subset,
        tied=tied,
        found=found,
        factor=factor_of_term,
        scales=made.scale_of_items(levels),
    )


def fit_of_design(
    estimator: Any, responses: Responses, tell: Tell, design: LinearDesign | None, anchors: Any, weights: Floats | None
) -> Estimate:
    """Thresholds that are sums of what belongs to items, raters, occasions; or those of a rating scale."""
    given, plain = estimator.get_params(), design is None and responses.facets is None
    if anchors is not None and plain:
        raise OptionError("a rating scale has no anchors; anchor the items of a partial credit model.")
    if anchors is not None:
        raise OptionError("anchors of a linear design, as of raters, go with it: `design=LinearDesign(anchors={...})`.")
    usual = {"weighting": "ability", "nu": 0, "assume_equal_means": False}
    unfit = [name for name, value in usual.items() if given.get(name, value) != value]
    unfit += ["refine"] if given.get("refine") is False else []
    if unfit:
        names = ", ".join(f"`{name}`" for name in unfit)
        raise OptionError(f"a linear design, as of raters, is fitted by conditional likelihood; leave out {names}.")
    noted = [] if weights is None else [weights_finding(weights)]
    if not plain:
        made = (design or LinearDesign()).of(responses, scale=estimator.scaled, groups=given.get("groups"))
        options = {name: given[name] for name in ("regularization", "se") if name in given}
        options["seed"] = given.get("random_state", 0)
        # `regularization=0` asks for maximum likelihood itself.
        options["unbiased"] = options.get("regularization", "auto") != 0
        found = design_fit(responses, made, weights=weights, tell=tell, **options).estimate(responses)
        return replace(found, findings=(*found.findings, *noted))
    kept, made = estimator._kept(responses)
    how: dict[str, Any] = {"regularization": 0, "se": "dense", "max_evaluations": estimator.max_iter, "tell": tell}
    result = design_fit(kept.responses, made, weights=weights, unbiased=True, **how)
    layout = kept.responses.thresholds
    parts = result.subset[ITEMS]
    matrix = None if result.covariance is None else made.matrix @ (made.matrix @ result.covariance).T
    beta, matrix = centered(layout, made.matrix @ result.eta, matrix, parts)
    part = parts[layout.item]
    unknown = between_parts(parts, alpha=0.0, equal_means=False)[layout.item]
    wider = None if matrix is None else matrix + np.where(part[:, None] == part, unknown, 0.0)
    return kept.estimate(
        beta,
        result.errors_of(made.matrix) + unknown,
        result.found.evaluations,
        result.found.move,
        covariance=wider,
        threshold_information=result.found.point.own,
        se_method=result.se_method,
        solver=LINEAR_DESIGN + NEWTON,
        findings=result.findings() + noted,
        # The offsets, which parts without a link have in common, are known though their levels are not.
        extra={"covariance_within_parts": None if matrix is None else kept.spread(matrix)},
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
        if self.p is None or self.p >= SURE:
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

    rest, names = keep_estimable(responses).responses, list(properties)
    made = design_of_properties(rest, {str(name): values for name, values in properties.items()})
    levels, subset = made.open_directions(np.zeros(rest.thresholds.n_entries, dtype=np.int64))
    lost = [
        name
        for name, term in zip(names, made.terms, strict=False)
        if (np.abs(levels[term.columns]).max(initial=0) > 1e-6 if term.weight is None else subset[term.name].any())
    ]
    if lost:
        raise OptionError(
            f"the properties {listed(lost)} cannot be told apart: one is the same for all items, or a sum of the "
            "others. Leave some of them out."
        )
    df = rest.thresholds.n_entries - 1 - (made.matrix.shape[1] - levels.shape[1])
    if df < 0:
        raise OptionError(f"there are too few items ({rest.n_items:,}) for {len(names):,} properties.")
    found = design_fit(rest, made, regularization=0, se="information")
    beta, free = made.matrix @ found.eta, conditional_thresholds(rest, se="none")
    own = made.terms[: len(names)]
    last = own[-1].columns.stop
    effect = found.effect[:last]
    se = found.effect_se[:last]
    with np.errstate(divide="ignore", invalid="ignore"):
        z = effect / se
    about = np.repeat(np.array(names, dtype=object), [len(term.labels) for term in own])
    level = np.concatenate([np.array([""], dtype=object) if one.weight is None else one.labels for one in own])
    effects = {"property": about, "level": level, "effect": effect, "se": se, "z": z, "p": 2 * ndtr(-np.abs(z))}
    explained = np.corrcoef([rest.thresholds.mean(each) for each in (beta, free.thresholds)])[0, 1] ** 2
    loglik = ExactLikelihood(rest).at(beta).loglik
    chi2 = max(2 * (free.loglik - loglik), 0.0)
    p = float(chdtrc(df, chi2)) if df else None
    remarks = tuple(numbers_taken_for_words(properties))
    return Explained(effects, rest.n_items, loglik, free.loglik, df, float(explained), chi2, p, remarks)


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


def levels_alone(made: DesignMatrix, subset: Mapping[str, Ints]) -> Mask:
    """Levels of a facet that are compared with no other level: zero by definition, whatever the ratings are."""
    alone = np.zeros(made.matrix.shape[1], dtype=bool)
    for term in made.terms:
        if term.of_facet and term.name in subset:
            alone[term.columns] = np.bincount(subset[term.name])[subset[term.name]] == 1
    return alone


def _ridge(
    responses: Responses, made: DesignMatrix, regularization: str | float, used: Mask, told: Floats, alone: Mask
) -> tuple[Ridge | None, Mask]:
    """The prior, where a parameter has few answers or all alike; and which parameters the answers tie to the others.

    `used` are thresholds of the items between two categories that were used, `told` the information on parameters,
    and `alone` are levels that need no prior, since there is nothing to estimate.
    """
    a, layout, real = made.matrix, responses.thresholds, made.real
    met = responses.entries.sum(_people, layout, sparse.csr_array(sparse.eye_array(layout.n_items)))
    meets = abs(a).sign()  # a property in numbers says by how much, not whether
    passed = meets.T @ passed_counts(responses)
    most = meets.T @ met[layout.item]
    plain = made.of_columns(lambda term: term.weight is not None or term.interaction) & ~alone
    tied, kind = ~plain | ((passed > 1e-9) & (passed < most - 1e-9)), np.zeros(len(plain), dtype=np.int64)
    for term in made.terms:
        if term.level is not None and term.weight is not None:  # the thresholds of the items
            tied[term.columns] &= used
            kind[term.columns] = real.max_score[real.item] * (real.widest + 1) + real.level
    alpha = None if isinstance(regularization, str) else float(regularization)
    if alpha == 0:
        loose = plain & ~tied & ~made.fixed
        if loose.any():
            names = made.of_columns(lambda term: term.labels)[loose]
            raise DesignError(
                f"{responses.source}: without a prior no finite value exists where all ratings are the lowest or all "
                f"are the highest, or beside a category that nobody used: {listed(dict.fromkeys(names.tolist()))}. "
                "Leave out `regularization=0`, or drop them."
            )
        return None, tied
    group = made.alike(lambda term: kind[term.columns])
    ridge = Ridge.of(np.where(plain & ~made.fixed, group, -1), tied, alpha)
    needed = alpha is not None or np.any((ridge.group >= 0) & ((told < AMPLE_INFORMATION) | ~tied))
    return ridge if needed else None, tied


def _steadied(responses: Responses, made: DesignMatrix, found: PenalizedPoint) -> tuple[Floats, Floats]:
    """Sums of squared scores of the parameters, and by what to multiply their scores."""
    layout, a = responses.thresholds, made.matrix
    meets = sparse.csr_array((np.abs(a[layout.first]) > 0).astype(np.float64))
    people = responses.entries.sum(_people, layout, meets)
    squares = found.point.score_squares(a)
    group = made.of_columns(lambda term: -1 if term.weight is None else made.terms.index(term))
    return squares, steadied(found.matrix.diagonal(), squares, people, group)


def _people(block: Block, layout: Thresholds, meets: sparse.csr_array) -> Floats:
    """How many people without an extreme score met each column of a matrix of items x columns."""
    rows = rows_of(block, layout)
    some = rows.take(np.flatnonzero(rows.informative))
    cells = some.indptr.astype(np.int32), np.asarray(some.items), np.ones(len(some.items))
    met = csr(*cells, layout.n_items) @ meets
    return np.bincount(met.indices, minlength=meets.shape[1]).astype(float)


def _noun(term: Term) -> str:
    """What the parameters of a term are."""
    if not term.factors:
        return "offsets of thresholds"
    kind = term.factors[0].kind
    if term.interaction or kind == "property":
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
    found: PenalizedPoint
    factor: Floats  # of each term, by which its values were multiplied to take off the bias of first order
    scales: Ints  # the same for virtual items that can be compared, and so for people rated on them

    @property
    def effect(self) -> Floats:
        """The parameters in the units of the properties that they multiply."""
        return self.eta / self.design.unit

    @property
    def effect_se(self) -> Floats:
        return self.se / self.design.unit

    def facet(self, name: str) -> Columns:
        """What was found about a facet."""
        own = self.design.term(name).columns
        unlinked = self.subset[name] > 0
        if len(unlinked) > 1:
            unlinked |= levels_alone(self.design, self.subset)[own]
        status = np.where(unlinked, "unlinked", "ok").astype(object)
        status[~self.tied[own]] = "extreme"
        status[self.design.fixed[own]] = "anchored"
        se = np.where(unlinked & ~self.design.fixed[own], np.inf, self.se[own])
        return {"severity": self.eta[own], "se": se, "status": status, "subset": self.subset[name]}

    @property
    def under_prior(self) -> dict[str, Mask]:
        """Of each term, the parameters on which a prior acts."""
        ridge = self.found.ridge
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
        return np.sqrt(np.maximum(variances(b, self.se**2 if self.covariance is None else self.covariance), 0))

    def items(self, responses: Responses) -> Calibration:
        """The items themselves, at the mean of the raters."""
        design, facets, real = self.design, self.design.facets, self.design.real
        subset = self.subset.get(ITEMS, np.zeros(real.n_entries, dtype=np.int64))
        subset = subset if len(subset) == real.n_items else subset[real.first]
        # A row of the design for every threshold of an item, that of its first virtual item, without other facets.
        rows = responses.thresholds.of_items(facets.first)
        own = design.of_columns(lambda term: not term.of_facet)
        b = sparse.csr_array(design.matrix[rows] * own)
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
            item_information=facets.by_item(responses.thresholds.sum(self.found.point.information)),
            category_n=facets.by_item(responses.category_counts),
            codes=responses.category_codes()[facets.first],
            model="" if design.scale_of_item is None else RATING_SCALE,
            scale_of_item=design.scale_of_item,
            frame_kind=responses.frame_kind,
        )

    def findings(self) -> list[Finding]:
        """Which levels of a facet cannot be compared, and whether the steps ended."""
        said = []
        for name, subset in self.subset.items():
            labels, n = self.design.term(name).labels, int(subset.max(initial=0)) + 1
            if n == 1:
                continue
            shown = " | ".join(listed(dict.fromkeys(labels[subset == k].tolist())) for k in range(min(n, 4)))
            one = "item" if name == ITEMS else name
            fall = f"The {plural(one)} fall into {n:,} subsets that nothing links: {shown}{' | ...' if n > 4 else ''}."
            what = f"{fall} Each subset has a mean of zero of its own; values of different subsets cannot be compared."
            if name != ITEMS:
                what += " Neither can measures and fair averages of persons rated by them."
            how = f"Have some people rated by members of two subsets, anchor one {one} of each subset, or analyze each"
            outside = tuple(dict.fromkeys(labels[subset > 0].tolist()))
            said.append(Finding("disjoint_subsets", "warning", what, f"{how} subset by itself.", outside))
        prior = self.regularization()
        if prior is not None:
            said.append(Finding("regularization", "note", str(prior)))
        found = self.found
        said += self._correction()
        return said + convergence("the Newton steps", found.evaluations, "passes", "a step of", found.move, CLOSE)

    def _correction(self) -> list[Finding]:
        """By what the values of each term were multiplied, where that is worth telling."""
        corrected = [
            f"{_noun(term)} times {factor:.3f}"
            for term, factor in zip(self.design.terms, self.factor.tolist(), strict=True)
            if abs(factor - 1) >= TOLD_CORRECTION
        ]
        if not corrected:
            return []
        sentence = f"The bias of first order was taken off, of errors as well: {first_of(corrected)}."
        if self.design.facets.facet_names:
            remedy = (
                "Maximum likelihood draws values apart where each of them has few ratings, and a prior on some of them "
                "draws the others together. `regularization=0` leaves out prior and correction."
            )
        else:
            remedy = "Maximum likelihood draws values apart in small samples; `ConditionalRatingScale` is without."
        return [Finding("bias_correction", "note", sentence, remedy)]

    def regularization(self) -> Regularization | None:
        """The prior that acted on the parameters of each term; None where none did."""
        ridge = self.found.ridge
        terms = []
        for term in self.design.terms if ridge else ():
            assert ridge is not None
            own = np.flatnonzero(ridge.precision[term.columns])
            if len(own):
                sd = float(np.mean(ridge.alpha[ridge.group[term.columns][own]]) ** -0.5)
                terms.append(TermPrior(noun=_noun(term), sd=sd, acts_on=len(own), of=len(term.labels)))
        if ridge is None or not terms:
            return None
        reason = "where ratings are few, or all alike" if ridge.estimated else "as asked"
        return Regularization(kind="terms", reason=reason, estimated=ridge.estimated, terms=tuple(terms))

    def estimate(self, responses: Responses) -> Estimate:
        """Of the virtual items, with what was found about facets and all parameters."""
        found, facets, loglik = self.found, self.design.facets, self.found.point.loglik
        measures = {name: self.facet(name) for name in facets.facet_names if name in self.subset}
        small = self.covariance is not None and len(self.covariance) <= KEPT_COVARIANCE
        spread = self.covariance if self.covariance is not None and small else self.se**2
        of_columns = self.design.of_columns
        columns = {term.name: term.columns for term in self.design.terms if term.weight is not None}
        effects = {
            "term": of_columns(lambda term: term.name),
            "level": of_columns(lambda term: term.labels),
            "threshold": of_columns(lambda term: 0 if term.level is None else term.level),  # of items alone
            "effect": self.effect,
            "se": self.effect_se,
        }
        return Estimate(
            self.design.matrix @ self.eta,
            self.errors_of(self.design.matrix),
            np.full(responses.n_items, "ok", dtype=object),
            found.evaluations,
            found.move,
            information=responses.thresholds.sum(found.point.information),
            loglik=loglik if np.isfinite(loglik) else None,
            findings=tuple(self.findings()),
            se_method=self.se_method,
            solver=LINEAR_DESIGN + NEWTON,
            regularization=self.regularization(),
            facets=FacetMeasures(
                facets=facets,
                of=measures,
                items=self.items(responses),
                design=self.design.matrix,
                spread=spread,
                columns=columns,
                likeliest=found.beta,
                under_prior=self.under_prior,
                factor={term.name: float(self.factor[k]) for k, term in enumerate(self.design.terms)},
                subset_of_item=self.subset_of_items(),
            ),
            extra={"effects": effects},
        )
