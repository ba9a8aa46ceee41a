"""Marginal maximum likelihood, abilities integrated out over a population; and designs that the answers decide.

Conditional equations ask which of the items that a person was given were answered right, given how many. An adaptive
test chose these items by the answers, so that the question has its answer built in. The marginal likelihood of all
answers of a person factors: the choice, which depends on observed answers only, drops out (Eggen & Verhelst, 2011,
Psicologica 32, 107; Zwitser & Maris, 2015, Psychometrika 80, 65).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt.calibration import ADAPTIVE_DESIGN, FREE_SHAPE, MARGINAL, PARTIAL_CREDIT
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.design import examine
from spectral_irt.errors import DesignError, OptionError, check_option
from spectral_irt.estimators import marginal_fit
from spectral_irt.estimators.base import ADAPTIVE, DESIGNS, FIXED, Estimate, RaschEstimator, Tell, convergence
from spectral_irt.estimators.chain_alone import start_thresholds
from spectral_irt.estimators.estimable import DENSE_ITEMS, Errors, EstimableItems, person_weights, weights_finding
from spectral_irt.estimators.linear_design import DesignMatrix, RatingScale
from spectral_irt.estimators.marginal_fit import FREE_STEP, NO_SPREAD, WIDE_SPREAD, MarginalErrors, MarginalFit
from spectral_irt.estimators.population import MOST_NODES, Members, enough_nodes, people_by_group
from spectral_irt.tables import Columns
from spectral_irt.text import listed, one_or_many

E = TypeVar("E", bound=RaschEstimator)
FEW_PEOPLE = 30  # of a group; a mean and a standard deviation from fewer say little
SHOWN = 12  # groups named in a sentence
KEPT_FINDINGS = ("no_responses", "disconnected", "many_more_items_than_persons")  # those of the design that hold here
SHARED = ("threads", "threshold", "unused", "groups")  # parameters that a spectral estimator and a marginal one share


@dataclass(kw_only=True, eq=False, repr=False)
class Marginal(RaschEstimator):
    """Marginal maximum likelihood for any number of thresholds."""

    likelihood: ClassVar[str] = MARGINAL

    sigma: float | None = None
    tol: float = 1e-6
    max_iter: int = 500
    threads: int | None = None

    def fit(
        self,
        data: Any,
        y: object = None,
        *,
        groups: Any = None,
        weights: ArrayLike | None = None,
        design: str = FIXED,
        progress: Tell | None = None,
    ) -> Self:
        """Calibrate the items; `data`, `y` and `progress` as in every estimator.

        Parameters
        ----------
        groups : labels or mapping, optional
            The group of each person, in their order or by their label; abilities have a mean and a standard deviation
            for each. People without a label are a group of their own.
        weights : numbers, optional
            How much each person counts, as in `SpectralRasch.fit`.
        design : "fixed" or "adaptive"
            Whether items were chosen by earlier answers: the population may then have any shape, and nothing given the
            scores is asked of the calibration.
        """
        check_option("design", design, DESIGNS)
        return self._fit_design(data, progress, groups=groups, weights=weights, design=design)

    def _estimable(self, responses: Responses) -> tuple[EstimableItems, DesignMatrix | None]:
        """The items that can be placed, and the design where thresholds are A eta."""
        return _used_items(responses), None

    def _estimate(
        self,
        responses: Responses,
        tell: Tell,
        groups: Any = None,
        weights: ArrayLike | None = None,
        design: str = FIXED,
    ) -> Estimate:
        if self.sigma is not None and not (np.isfinite(self.sigma) and self.sigma > 0):
            raise OptionError(f"sigma is {self.sigma!r}; it must be positive, or None to estimate it.")
        items, design_matrix = self._estimable(responses)
        usable = items.responses
        a = None if design_matrix is None else design_matrix.matrix
        weight_of_person = None if weights is None else person_weights(responses, weights)
        split, members, findings = people_by_group(usable, groups, weight_of_person)
        start = start_thresholds(usable)
        fit = marginal_fit.marginal_difficulty(
            members, start=start, sigma=self.sigma, design=a, tol=self.tol, max_iter=self.max_iter
        )
        if design == ADAPTIVE and groups is None and self.sigma is None:
            tell("a free distribution of abilities")
            fit = marginal_fit.free_population(members[0], fit, start, design=a, max_iter=self.max_iter)
        errors = marginal_fit.errors_at(members, fit, with_sigma=self.sigma is None, design=a)
        populations = self._populations(fit, errors, split.names, members)
        if weight_of_person is not None:
            findings.append(weights_finding(weight_of_person))
        findings += _fit_findings(fit, populations["sd"], self.sigma is None, usable, self.tol)
        if groups is not None:
            findings += _population_findings(populations, self.sigma is None)
        if design == ADAPTIVE:
            findings.append(_adaptive_finding(groups is not None, fit.better))
        n_free = usable.thresholds.n_entries if a is None else a.shape[1]
        extra = _population_fields(fit, populations, members, n_free + errors.n_of_populations)
        if weight_of_person is not None:
            extra["weighted"] = (responses.persons, weight_of_person)
        of_thresholds = Errors(np.sqrt(np.maximum(errors.variance, 0)))
        if errors.covariance is not None:
            of_thresholds = Errors.of(usable.thresholds, errors.covariance)
        return items.estimate(
            fit.difficulty, of_thresholds, fit.n_iter, fit.residual, findings=findings, loglik=fit.loglik, extra=extra
        )

    def _populations(
        self, fit: MarginalFit, errors: MarginalErrors, names: Sequence[Any], members: Sequence[Members]
    ) -> Columns:
        """The table of the groups: how many people, mean and standard deviation of their abilities."""
        sd = np.array([self.sigma or population.sd for population in fit.populations])
        return {
            "group": np.array(names, dtype=object),
            "n": np.array([int(np.sum(group.responses.counts > 0)) for group in members]),
            "mean": np.array([population.mean for population in fit.populations]),
            "mean_se": np.sqrt(errors.of_mean),
            "sd": sd,
            "sd_se": sd * np.sqrt(errors.of_log_sd),
        }


@dataclass(kw_only=True, eq=False, repr=False)
class MarginalRasch(Marginal):
    """Difficulties by marginal maximum likelihood (MML): abilities are draws from a population that is estimated too.

    P(answers of person l) = integral of prod_i P(X_li | theta, beta_i) dF(theta),  F = N(mu, sigma^2).

    More efficient than conditional likelihood when the population is what it is taken for, inconsistent when it is not;
    estimating sigma, the default, removes the worst of that, and a population for each group (`fit(responses,
    groups=...)`) the worst where forms are for different people. The one method here for tests that choose the next
    item, or the end, by the answers so far.

    Parameters
    ----------
    sigma : float, optional
        A fixed standard deviation of ability; `sigma=1` is the paper's MMLE on synthetic data.
    tol, max_iter : float, int
        Stop when an EM step changes no parameter by more than `tol`; at most so many passes. (A free distribution
        stops when the gradient is a hundredth of a standard error.)
    threads, threshold
        As in every estimator.

    Attributes
    ----------
    mu_, sigma_, sigma_se_ : float
        Mean and standard deviation of ability on the scale of the difficulties; of everybody, where there are groups.
    population_ : dict of columns
        `group, n, mean, mean_se, sd, sd_se` of every group; the group of everybody is called "all".
    loglik_, aic_, bic_, n_parameters_ : float

    Notes
    -----
    The population is normal; in an adaptive design without groups it is a smooth one of any shape if Akaike's criterion
    prefers that, its log density a polynomial of degree 4 or 6. Quadrature nodes are as many as the person with most
    answers needs, 41 to 401. Standard errors invert the observed information (Louis 1982) of difficulties and
    populations; beyond 5,000 thresholds each one's own information is used alone.

    References
    ----------
    Bock & Aitkin (1981), Psychometrika 46, 443. Liu, Rubin & Wu (1998), Biometrika 85, 755 (parameter expansion).
    Louis (1982), JRSS B 44, 226. Eggen & Verhelst (2011), Psicologica 32, 107 (adaptive designs). Nguyen & Zhang
    (2022), section 4.

    Examples
    --------
    >>> from spectral_irt.datasets import load_lsat
    >>> fit = MarginalRasch().fit(load_lsat())
    >>> fit.difficulty_.round(2).tolist(), round(fit.sigma_, 3), round(fit.loglik_, 2)
    ([-1.26, 0.48, 1.24, 0.17, -0.62], 0.755, -2466.94)
    """

    threshold: float | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class MarginalPartialCredit(Marginal):
    """Thresholds of the partial credit model by marginal maximum likelihood (MML).

    Parameters
    ----------
    sigma, tol, max_iter, threads, unused
        As for `MarginalRasch`, and for `SpectralPartialCredit`.

    Attributes
    ----------
    thresholds_, threshold_se_, difficulty_, se_, mu_, sigma_, population_, loglik_ and others
        As for `MarginalRasch`.

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> fit = MarginalPartialCredit().fit(simulate.partial_credit(500, 5, categories=3, seed=1).responses)
    >>> bool(0.7 < fit.sigma_ < 1.3)
    True
    """

    several: ClassVar[bool] = True
    model: ClassVar[str] = PARTIAL_CREDIT

    unused: str = "collapse"


@dataclass(kw_only=True, eq=False, repr=False)
class MarginalRatingScale(RatingScale, Marginal):
    """The rating scale model by marginal maximum likelihood (MML): what `SpectralRatingScale` has of adaptive designs.

    Parameters
    ----------
    groups, unused
        As for `SpectralRatingScale`; groups of people go to `fit`.
    sigma, tol, max_iter, threads
        As for `MarginalRasch`.

    Attributes
    ----------
    difficulty_, se_, thresholds_, threshold_se_, offsets_, mu_, sigma_, population_, loglik_ and others
        As for `SpectralRatingScale` and `MarginalRasch`.

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> fit = MarginalRatingScale().fit(simulate.rating_scale(500, 5, categories=3, seed=1).responses)
    >>> fit.thresholds_.shape, bool(0.7 < fit.sigma_ < 1.3)
    ((10,), True)
    """


def _population_fields(
    fit: MarginalFit, populations: Columns, members: Sequence[Members], n_parameters: int
) -> dict[str, Any]:
    """What the fitted estimator says of the people, and information criteria."""
    n_persons = int(populations["n"].sum())
    mean = populations["mean"]
    sd = populations["sd"]
    size = np.array([group.size for group in members])
    share = size / size.sum()
    mu = float(share @ mean)
    sigma = float(sd[0])
    sigma_se = float(populations["sd_se"][0])
    if len(members) > 1:  # of everybody
        sigma = float(np.sqrt(share @ (sd**2 + (mean - mu) ** 2)))
        sigma_se = np.nan
    return {
        "mu": mu,
        "sigma": sigma,
        "sigma_se": sigma_se,
        "population": populations,
        "aic": 2 * n_parameters - 2 * fit.loglik,
        "bic": n_parameters * float(np.log(n_persons)) - 2 * fit.loglik,
        "n_parameters": n_parameters,
    }


def _used_items(responses: Responses) -> EstimableItems:
    """Items whose categories were all used; the population links them even where no person does."""
    design = examine(responses)
    counts = responses.category_counts
    included = (responses.item_counts > 0) & ((counts > 0) | np.isnan(counts)).all(axis=1)
    if responses.thresholds.binary:
        what = "both right and wrong answers"
        other = "`SpectralRasch` or `VariationalRasch`"
        why = "answered right by everyone or by no one"
    else:
        what = "answers in all their categories"
        other = "`SpectralPartialCredit`"
        why = "with a category that nobody used"
    if included.sum() < 2:
        raise DesignError(
            f"{responses.source}: fewer than two items have {what}; marginal likelihood needs them. Use {other}, whose "
            "prior on difficulties makes up for it."
        )
    findings = [finding for finding in design.findings if finding.code in KEPT_FINDINGS]
    left_out = responses.items[~included & (responses.item_counts > 0)]
    if len(left_out):
        sentence = f"{len(left_out):,} items {why} have no finite difficulty and are left out: {listed(left_out)}."
        remedy = f"Use {other} for an estimate from a prior, or drop the items."
        findings.append(Finding("items_left_out", "warning", sentence, remedy, tuple(left_out.tolist())))
    usable = responses if included.all() else responses.take_items(included)
    return EstimableItems(usable, included, design.status, tuple(findings), responses.thresholds)


def _fit_findings(
    fit: MarginalFit, sd: Floats, with_sigma: bool, responses: Responses, tol: float
) -> Iterator[Finding]:
    """Whether the iterations ended, and where sigma, the nodes or the standard errors are at a limit."""
    asked = FREE_STEP if fit.populations[0].free else tol
    yield from convergence("the marginal likelihood", fit.n_iter, "passes", "a last step of", fit.residual, asked)
    if with_sigma and sd.min() <= 1.01 * NO_SPREAD:
        sentence = "The data show no spread among the people: sigma went to zero."
        remedy = "Check the scoring; answers of one person seem to have nothing in common."
        yield Finding("no_ability_spread", "warning", sentence, remedy)
    if with_sigma and sd.max() >= 0.95 * WIDE_SPREAD:
        sentence = f"The spread of the people has no finite estimate; sigma is held at {WIDE_SPREAD:g}."
        remedy = "Nearly all people have all answers right or all wrong; difficulties are not to be trusted."
        yield Finding("unbounded_ability_spread", "warning", sentence, remedy)
    longest = int(responses.counts.max(initial=1)) * responses.thresholds.widest**2
    if enough_nodes(max(float(sd.max()), NO_SPREAD), longest) >= MOST_NODES:
        what = f"{MOST_NODES} nodes are the most used"
        sentence = f"{what}, and posteriors of those with most answers are narrower than these."
        yield Finding("coarse_nodes", "note", sentence, "`SpectralRasch` and `ConditionalRasch` need no nodes.")
    if responses.thresholds.n_entries > DENSE_ITEMS:
        sentence = f"With more than {DENSE_ITEMS:,} items standard errors come from each item's own information."
        remedy = "They may be a few per cent low, and more where groups of items are weakly linked."
        yield Finding("approximate_se", "note", sentence, remedy)


def _population_findings(populations: Columns, with_sigma: bool) -> Iterator[Finding]:
    """The means and standard deviations of the groups, and which groups are small for them."""
    rows = list(zip(populations["group"], populations["mean"], populations["sd"], strict=True))
    named = "; ".join(f"{group}: {mean:z.2f}, {sd:.2f}" for group, mean, sd in rows[:SHOWN])
    if len(rows) > SHOWN:
        named += f"; and {len(rows) - SHOWN} more"
    what = "mean and standard deviation" if with_sigma else "mean, and the standard deviation that was given,"
    yield Finding("populations", "note", f"Populations of the {len(rows)} groups, {what}: {named}.")
    small = np.array(populations["group"])[np.array(populations["n"]) < FEW_PEOPLE]
    if len(small):
        have = one_or_many(len(small), "has", "have")
        sentence = (
            f"{listed(small)} {have} fewer than {FEW_PEOPLE} people, too few to tell a mean and a standard deviation."
        )
        yield Finding("small_groups", "warning", sentence, "Merge small groups.")


def fit_adaptive(estimator: E, marginal: type[Marginal], data: Any, **options: Any) -> E:
    """Fit any estimator to an adaptive design: what it learns is what marginal likelihood finds."""
    shared = {name: value for name, value in estimator.get_params().items() if name in SHARED}
    fitted = marginal(**shared).fit(data, design=ADAPTIVE, **options)
    estimator._forget()
    for name, value in vars(fitted).items():
        if name.endswith("_"):
            setattr(estimator, name, value)
    return estimator


def _adaptive_finding(grouped: bool, better: float) -> Finding:
    """What a calibration of an adaptive design says about itself; `better`: AIC of a free distribution below normal."""
    if grouped:
        shape = "takes the population of each group as normal"
    elif better > 0:
        shape = f"{FREE_SHAPE} (AIC {better:.1f} below that of a normal one)"
    else:
        shape = "takes the population as normal (a distribution of free shape fits no better, by AIC)"
    chosen = "Items were chosen by the answers, as was said; difficulties come from marginal maximum likelihood"
    remedy = "" if grouped else "Where people come from several populations, say `groups=`."
    return Finding(ADAPTIVE_DESIGN, "note", f"{chosen}, which {shape} and allows for any such choice.", remedy)
