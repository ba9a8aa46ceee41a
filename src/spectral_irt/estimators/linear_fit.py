"""The fit of a linear design: what raters, items and properties add to thresholds, with standard errors.

With beta = A eta the steps of `conditional.newton` find eta on the likelihood given the person's total over all
ratings: abilities drop out, whoever rated whom.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.calibration import Calibration
from spectral_irt.chain.regularization import AMPLE_INFORMATION
from spectral_irt.conditional.errors import parameter_covariance, parameter_variance, steadied
from spectral_irt.conditional.likelihood import ExactLikelihood, Likelihood
from spectral_irt.conditional.linear import Ridge, linked_parts
from spectral_irt.conditional.newton import CLOSE, DENSE_PARAMETERS, NEWTON, Newton, newton, parameters
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Block, Floats, Ints
from spectral_irt.data.design import Mask
from spectral_irt.data.facets import FacetMeasures, Measures
from spectral_irt.data.thresholds import Thresholds, rows_of
from spectral_irt.errors import DesignError, OptionError, first_of, listed
from spectral_irt.estimators.base import Tell
from spectral_irt.estimators.conditional import conditional_thresholds
from spectral_irt.estimators.estimate import Estimate, convergence, keep_estimable, person_weights
from spectral_irt.estimators.linear_design import ITEMS, DesignMatrix, LinearDesign, Normalization
from spectral_irt.text import p_value

SURE = 0.05  # of a test
EXACT_ANSWERS = 20_000  # up to so many the likelihood is exact to the last digit


def linear_fit(
    responses: Responses,
    design: LinearDesign,
    *,
    common_offsets: bool = False,
    regularization: str | float = "auto",
    weights: Any = None,
    se: str = "auto",
    seed: int = 0,
    progress: Tell | None = None,
) -> Estimate:
    """Thresholds of virtual items, and what makes them: severities of raters, difficulties of items, their errors."""
    tell = progress or (lambda text: None)
    tell("looking at the design")
    made = design.of(responses, common_offsets=common_offsets)
    layout, a = responses.thresholds, made.matrix
    each = None if weights is None else person_weights(responses, weights)
    parts = linked_parts(responses)
    levels, subset = made.open_directions(parts[layout.item])
    normal = Normalization.of(made, levels, subset)
    exact = each is None and responses.n_responses <= EXACT_ANSWERS
    below, above = _beside(responses, made)
    place = made.real.first[made.facets.item][layout.item] + layout.level - 1  # of its item's threshold, for each row
    pooled = np.log((below + 0.5) / (above + 0.5))[place]
    start = np.where(made.fixed, made.value, parameters(a, pooled))
    likelihood = ExactLikelihood(responses) if exact else Likelihood(responses, a @ start, weights=each)
    ridge, tied = _ridge(responses, made, regularization, likelihood, start)
    fixed = made.fixed if made.fixed.any() else None
    found = newton(
        likelihood, start, design=a, fixed=fixed, parts=parts[layout.item], levels=levels, ridge=ridge, tell=tell
    )
    tell("standard errors")
    eta = normal(found.eta)
    covariance, variance = None, np.full(len(eta), np.nan)
    if se != "none" and len(eta) <= DENSE_PARAMETERS:
        information = None
        if isinstance(likelihood, ExactLikelihood) and likelihood.exact_is_affordable():
            information = a.T @ (likelihood.information(found.point.beta, exact=True) @ a)
        factor = None if se in ("dense", "information") else _steadied(responses, made, found)[1]
        covariance = parameter_covariance(found, se != "information", information, factor)
        covariance = normal(normal(covariance).T)
        variance = np.diag(covariance)
    elif se != "none":
        variance = parameter_variance(found, normal, *_steadied(responses, made, found), seed)
    result = DesignResult(made, eta, np.sqrt(np.maximum(variance, 0)), covariance, subset, tied, found, parts)
    return result.estimate(responses)


@dataclass(frozen=True, eq=False)
class Explained:
    """The linear logistic test model: what properties add to the difficulty of items, beside items that are free.

    `effects` has the columns `property, level, effect, se, z, p`: logits for one unit of a number, or for each word
    (mean zero). `chi2` is twice the gain in log-likelihood of free items, `explained` the squared correlation of both
    kinds of difficulty.
    """

    effects: dict[str, NDArray[Any]]
    n_items: int
    loglik: float
    loglik_free: float
    df: int
    explained: float

    def to_dict(self) -> dict[str, Any]:
        """Of fit.json."""
        from scipy.special import chdtrc

        chi2 = max(2 * (self.loglik_free - self.loglik), 0.0)
        own = {name: getattr(self, name) for name in ("n_items", "loglik", "loglik_free", "df", "explained")}
        return own | {"chi2": chi2, "p": float(chdtrc(self.df, chi2)) if self.df else None}

    @property
    def sentence(self) -> str:
        """The first effects, how much they explain, and the test."""
        named = zip(*(self.effects[key].tolist() for key in ("property", "level", "effect", "se")), strict=True)
        shown = [
            f"{name}{f' {level}' if level else ''} {effect:+.2f} (SE {se:.2f})" for name, level, effect, se in named
        ]
        test = self.to_dict()
        against = "" if test["p"] is None else f" (chi2 = {test['chi2']:.1f}, df = {self.df}, {p_value(test['p'])})"
        return (
            f"{first_of(shown)}; they explain {self.explained:.0%} of the variance of {self.n_items:,} difficulties, "
            f"likelihood ratio test against free items{against}."
        )

    @property
    def findings(self) -> list[Finding]:
        p = self.to_dict()["p"]
        if p is None or p >= SURE:
            return []
        return [
            Finding(
                "covariates_incomplete",
                "note",
                f"The properties explain {self.explained:.0%} of the variance of difficulties, but free items fit "
                f"better ({p_value(p)}).",
                "Items differ for other reasons too, of which the standard errors of the effects know nothing: read "
                "them as a description of these items.",
            )
        ]


def explain_items(responses: Responses, properties: Mapping[str, Mapping[Any, Any]]) -> Explained:
    """How far properties say how hard items are, by conditional likelihood; offsets of thresholds are free.

    Only items with a finite estimate of their own count, so that both likelihoods are of the same answers.
    """
    from scipy.special import ndtr

    kept = keep_estimable(responses)
    rest, names = kept.responses, list(properties)
    terms = {
        " ".join(re.split(r"[+:\s]+", str(name))): properties[name] for name in names
    }  # as a formula can name them
    design = LinearDesign("+".join(terms), terms)
    made = design.of(rest)
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
    found: DesignResult = linear_fit(rest, design, regularization=0, se="information").extra["design"]
    beta, free = made.matrix @ found.eta, conditional_thresholds(rest, se="none")
    exact = ExactLikelihood(rest)
    columns: dict[str, list[Any]] = {"property": [], "level": [], "effect": [], "se": []}
    for name, term in zip(names, found.design.terms, strict=False):
        columns["property"] += [name] * term.size
        columns["level"] += [""] if term.weight is None else term.labels.tolist()
        columns["effect"] += found.eta[term.columns].tolist()
        columns["se"] += found.se[term.columns].tolist()
    effects = {
        key: np.array(values, dtype=object if key in ("property", "level") else float)
        for key, values in columns.items()
    }
    with np.errstate(divide="ignore", invalid="ignore"):
        effects["z"] = effects["effect"] / effects["se"]
    effects["p"] = 2 * ndtr(-np.abs(effects["z"]))
    locations = (rest.thresholds.mean(beta), rest.thresholds.mean(free.thresholds))
    return Explained(
        effects, rest.n_items, exact.at(beta).loglik, free.loglik, df, float(np.corrcoef(*locations)[0, 1] ** 2)
    )


def _beside(responses: Responses, made: DesignMatrix) -> tuple[Floats, Floats]:
    """How many ratings are in the category below and in that above each threshold of the items, whoever rated."""
    counts, real = np.nan_to_num(responses.category_counts), made.real
    total = np.zeros((real.n_items, counts.shape[1]))
    np.add.at(total, made.facets.item, counts)
    return total[real.item, real.level - 1], total[real.item, real.level]


def _ridge(
    responses: Responses, made: DesignMatrix, regularization: str | float, likelihood: Any, start: Floats
) -> tuple[Ridge | None, Mask]:
    """The prior, where a parameter has few answers or all alike; and which parameters the answers tie to the others."""
    a, layout = made.matrix, responses.thresholds
    met = responses.entries.sum(_met, layout)[layout.item]
    passed, most = a.T @ likelihood.passed, a.T @ (met * 1.0)
    plain = np.concatenate([np.full(term.size, term.weight is not None or term.interaction) for term in made.terms])
    tied = ~plain | ((passed > 1e-9) & (passed < most - 1e-9))
    for term in made.terms:
        if term.level is not None and term.weight is not None:  # the threshold beside a category that nobody used
            tied[term.columns] &= np.minimum(*_beside(responses, made)) > 0
    if not isinstance(regularization, str) and regularization == 0:
        loose = plain & ~tied & ~made.fixed
        if loose.any():
            names = np.concatenate([term.labels for term in made.terms])[loose]
            raise DesignError(
                f"{responses.source}: without a prior no finite value exists where all ratings are the lowest or all "
                f"are the highest, or beside a category that nobody used: {listed(dict.fromkeys(names.tolist()))}. "
                "Leave out `regularization=0`, or drop them."
            )
        return None, tied
    alpha = None if isinstance(regularization, str) else float(regularization)
    ridge = Ridge.of(np.where(made.fixed, -1, made.group), tied, alpha)
    if alpha is None:
        told = likelihood.at(a @ start).of_parameters(a).diagonal()
        if not np.any((ridge.group >= 0) & ((told < AMPLE_INFORMATION) | ~tied)):
            return None, tied
    return ridge, tied


def _met(block: Block, layout: Thresholds) -> Floats:
    """How many people without an extreme score answered each item."""
    rows = rows_of(block, layout)
    some = np.repeat(rows.informative, rows.counts)
    return np.bincount(rows.items[some], minlength=layout.n_items).astype(float)


def _steadied(responses: Responses, made: DesignMatrix, found: Newton) -> tuple[Floats, Floats]:
    """Sums of squared scores of the parameters, and by what to multiply their scores."""
    layout, a = responses.thresholds, sparse.csr_array(made.matrix)
    meets = sparse.csr_array((np.abs(a[layout.first]) > 0).astype(np.float64))
    people = responses.entries.sum(_people, layout, meets)
    squares = found.point.score_gram(design=a).diagonal()
    group = np.concatenate([np.full(t.size, k if t.weight is not None else -1) for k, t in enumerate(made.terms)])
    return squares, steadied(found.matrix.diagonal(), squares, people, group)


def _people(block: Block, layout: Thresholds, meets: sparse.csr_array) -> Floats:
    """How many people without an extreme score met each parameter."""
    rows = rows_of(block, layout)
    some = rows.take(np.flatnonzero(rows.informative))
    ones = np.ones(len(some.items))
    met = sparse.csr_array((ones, some.items, some.indptr), shape=(some.n_persons, layout.n_items)) @ meets
    return np.bincount(met.indices, minlength=meets.shape[1]).astype(float)


@dataclass(frozen=True, eq=False)
class DesignResult:
    """What a linear design found: the parameters of every term, with errors, and what can be compared."""

    design: DesignMatrix
    eta: Floats
    se: Floats
    covariance: Floats | None
    subset: Mapping[str, Ints]
    tied: Mask
    found: Newton
    parts: Ints

    def facet(self, name: str) -> Measures:
        """What was found about a facet."""
        term = self.design.term(name)
        own = term.columns
        status = np.full(term.size, "ok", dtype=object)
        status[self.subset[name] > 0] = "unlinked"
        status[~self.tied[own]] = "extreme"
        status[self.design.fixed[own]] = "anchored"
        se = np.where(self.subset[name] > 0, np.inf, self.se[own])
        return Measures(self.eta[own], se, status, self.subset[name])

    def measures(self, responses: Responses) -> FacetMeasures:
        """What a calibration keeps of it."""
        facets, real = self.design.facets, self.design.real
        beta, se, _, location_se = self.item_thresholds()
        n, counts = np.zeros(real.n_items, dtype=np.int64), np.nan_to_num(responses.category_counts)
        np.add.at(n, facets.item, responses.item_counts)
        score, category_n = np.zeros_like(n), np.zeros((real.n_items, counts.shape[1]))
        np.add.at(score, facets.item, responses.item_scores)
        np.add.at(category_n, facets.item, counts)
        inside = np.arange(counts.shape[1]) <= real.max_score[:, None]
        codes = np.full(inside.shape, np.nan)
        codes[facets.item] = responses.category_codes()[:, : inside.shape[1]]
        information = np.zeros(real.n_items)
        np.add.at(information, facets.item, responses.thresholds.sum(self.found.information))
        subset = self.subset.get(ITEMS, np.zeros(real.n_entries, dtype=np.int64))
        subset = subset if len(subset) == real.n_items else subset[real.first]
        items = Calibration(
            labels=facets.items,
            layout=real,
            thresholds=beta,
            threshold_se=se,
            location_se=np.where(subset > 0, np.inf, location_se),
            status=np.where(subset > 0, "unlinked", "ok").astype(object),
            n=n,
            score=score,
            item_information=information,
            category_n=np.where(inside, category_n, np.nan),
            codes=codes,
            frame_kind=responses.frame_kind,
        )
        names = [name for name in facets.names[1:] if name in self.subset]
        return FacetMeasures(facets, {name: self.facet(name) for name in names}, items)

    def item_thresholds(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Thresholds of the items themselves and their errors; their locations and theirs."""
        real, design = self.design.real, self.design
        first = np.full(real.n_items, -1)
        first[design.facets.item[::-1]] = np.arange(len(design.facets.item))[::-1]
        rows = _first_rows(real, first, design)
        own = np.concatenate(
            [
                np.full(t.size, t.name in (ITEMS, "offsets") or (t.weight is None and not t.interaction))
                for t in design.terms
            ]
        )
        b = sparse.csr_array(design.matrix[rows] * own)
        mean = sparse.csr_array((1 / real.max_score[real.item], (real.item, np.arange(real.n_entries))))
        beta = b @ self.eta
        if self.covariance is None:
            spread = b.multiply(b) @ self.se**2
            return beta, np.sqrt(spread), mean @ beta, np.sqrt(mean.multiply(mean) @ spread)
        c = b @ (b @ self.covariance).T
        location = mean @ (mean @ c).T
        return beta, np.sqrt(np.maximum(np.diag(c), 0)), mean @ beta, np.sqrt(np.maximum(np.diag(location), 0))

    def findings(self, responses: Responses) -> list[Finding]:
        found = []
        for name, subset in self.subset.items():
            term = self.design.term(name)
            if subset.max(initial=0) == 0:
                continue
            n = int(subset.max()) + 1
            shown = " | ".join(listed(term.labels[subset == k]) for k in range(min(n, 4)))
            outside = np.unique(term.labels[subset > 0])
            found.append(
                Finding(
                    "disjoint_subsets",
                    "warning",
                    f"The {name}s fall into {n:,} subsets that nothing links: {shown}"
                    f"{' | ...' if n > 4 else ''}. Each subset has a mean of zero of its own; values of different "
                    "subsets cannot be compared.",
                    f"Have some people rated by members of two subsets, anchor one {name} of each subset, or analyze "
                    "each subset by itself.",
                    tuple(outside.tolist()),
                )
            )
        return found

    def estimate(self, responses: Responses) -> Estimate:
        found, a, layout = self.found, self.design.matrix, responses.thresholds
        if self.covariance is None:
            se = np.sqrt(a.multiply(a) @ np.where(np.isfinite(self.se), self.se, 0.0) ** 2)
        else:
            c = a @ self.covariance
            se = np.sqrt(np.maximum(np.asarray(a.multiply(c).sum(axis=1)).ravel(), 0))
        findings = self.findings(responses)
        findings += convergence("the Newton steps", found.evaluations, "passes", "a step of", found.move, CLOSE)
        loglik = found.point.loglik
        return Estimate(
            a @ self.eta,
            se,
            np.full(layout.n_items, "ok", dtype=object),
            found.evaluations,
            found.move,
            information=layout.sum(found.information),
            loglik=loglik if np.isfinite(loglik) else None,
            findings=tuple(findings),
            se_method="dense" if self.covariance is not None else "multiplier",
            solver="linear design" + NEWTON,
            facets=self.measures(responses),
            extra={"design": self},
        )


def _first_rows(real: Thresholds, first: Ints, design: DesignMatrix) -> Ints:
    """A row of the design for every threshold of the items themselves: that of the first virtual item of each."""
    highest = real.max_score[design.facets.item]
    start = np.cumsum(highest) - highest
    return start[first][real.item] + real.level - 1
