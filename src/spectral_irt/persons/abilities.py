"""How able every person is, from given thresholds: one number with its standard error, one pass over the blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.ability import cached_runs, estimate_abilities
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import CACHED, Floats, Ints, Rows, Thresholds, person_chunks, rows_of
from spectral_irt.data.patterns import same_rows
from spectral_irt.errors import OptionError, check_option
from spectral_irt.model import above, category_probabilities
from spectral_irt.numerics import Anderson, chosen_or_none, safe_divide, variances

if TYPE_CHECKING:
    from spectral_irt.data.facets import FacetMeasures

METHODS = ("wle", "ml", "eap")
REPORTS = (*METHODS, "pv")  # how people are reported: plausible values beside the posterior mean
NARROWEST_SD = 0.01  # of a population in which abilities do not differ
EM_TOLERANCE = 1e-6  # change of the prior's mean and log sd at which to stop
EM_STEPS = 200  # at most; with the acceleration some ten are needed
FEW_PERSONS = 30  # from whom no population is estimated when they seem not to differ at all
COLLAPSED = 1.01 * NARROWEST_SD  # the estimate of a spread that these people do not show
POSTERIOR_NODES = ((-(3**0.5), 1 / 6), (0.0, 2 / 3), (3**0.5, 1 / 6))  # of a normal distribution (Gauss-Hermite)


@dataclass(frozen=True, eq=False)
class Abilities:
    """What `abilities` found, one number per person, in the order of the responses.

    `ability` and `se` are on the scale of the difficulties, NaN for a person without answers, except under a prior.
    `extreme`: the lowest or the highest score; the likelihood has no maximum, and the number rests on the method. `n`
    and `score` count answers to items with a difficulty, and right ones. `prior` is for "eap": mean and sd.
    """

    ability: Floats
    se: Floats
    extreme: NDArray[np.bool_]
    n: Ints
    score: Ints
    method: str
    prior: tuple[float, float] | None = None

    def take(self, chosen: NDArray[Any]) -> Abilities:
        """Of some of the people."""
        return replace(
            self,
            ability=self.ability[chosen],
            se=self.se[chosen],
            extreme=self.extreme[chosen],
            n=self.n[chosen],
            score=self.score[chosen],
        )


def abilities(
    responses: Responses,
    difficulty: Floats,
    method: str = "wle",
    *,
    prior_mean: float | None = None,
    prior_sd: float | None = None,
    weights: Floats | None = None,
) -> Abilities:
    """The ability of every person.

    Parameters
    ----------
    responses : Responses
        Item codes are positions in `difficulty`; see `align`.
    difficulty : float array
        Larger = harder. Of ordered answers the thresholds, item after item. Answers to items without finite ones are
        left out.
    method : "wle", "ml" or "eap"
        Warm's weighted likelihood (default): almost unbiased, and finite for every score. Maximum likelihood: the
        expected score is the observed one; infinite for extreme scores. Posterior mean under a normal prior: least
        error on average, but drawn towards the mean.
    prior_mean, prior_sd : float, optional
        The prior of "eap"; estimated from the responses unless given.
    weights : float array, optional
        How much each person counts in that estimate.

    Notes
    -----
    Standard errors are 1 / sqrt(information) at the estimate for "wle" and "ml", the posterior standard deviation for
    "eap". The uncertainty of the difficulties is not in them.

    References
    ----------
    Warm (1989), Psychometrika 54, 427-450.

    Examples
    --------
    >>> answers = Responses.from_wide([[1, 1, 0], [1, 1, 1]])
    >>> abilities(answers, np.array([-1.0, 0.0, 1.0])).ability.round(2).tolist()
    [0.64, 2.29]
    """
    check_option("method", method, METHODS)
    if method != "eap" and (prior_mean is not None or prior_sd is not None):
        raise OptionError(
            f"`method` is {method!r}, which has no prior; leave out prior_mean and prior_sd, or say 'eap'."
        )
    if prior_sd is not None and not prior_sd > 0:
        raise OptionError(f"`prior_sd` is {prior_sd}; it must be above zero.")
    beta = thresholds_of(responses, difficulty)
    prior = None
    if method == "eap":
        prior = population(responses, beta, prior_mean, prior_sd, weights)
    estimates = responses.entries.gather(_estimates, beta, responses.thresholds, method == "wle", prior)
    ability, se, extreme, n, score = estimates
    return Abilities(ability, se, extreme, n, score, method, prior)


def thresholds_of(responses: Responses, difficulty: Floats) -> Floats:
    """A number for each threshold; NaN for those of an item that is not known in full."""
    beta = np.asarray(difficulty, dtype=np.float64)
    layout = responses.thresholds
    if beta.shape != (layout.n_entries,):
        if beta.shape == (layout.n_items,):
            responses.right_and_wrong_only()
        what = "items" if layout.binary else "thresholds"
        raise OptionError(
            f"difficulty has shape {beta.shape}; there must be one number for each of the {layout.n_entries:,} {what}."
        )
    if layout.binary or np.isfinite(beta).all():
        return beta
    return np.where(np.isfinite(layout.mean(beta))[layout.item], beta, np.nan)


def answers_with_difficulty(block: Block, beta: Floats) -> Block:
    """The block without the answers to items that have no difficulty; item codes stay."""
    has_difficulty = np.isfinite(beta)
    if has_difficulty.all() or has_difficulty[block.items].all():
        return block
    return block.keep_items(np.where(has_difficulty, np.arange(len(beta)), -1).astype(np.int32))


def known_rows(block: Block, beta: Floats, layout: Thresholds) -> Rows:
    """The answers of a block to items that have a difficulty."""
    return rows_of(answers_with_difficulty(block, beta), layout)


def _estimates(
    block: Block, beta: Floats, layout: Thresholds, warm: bool, prior: tuple[float, float] | None = None
) -> tuple[Floats, Floats, NDArray[np.bool_], Ints, Ints]:
    """Ability and se of everybody, by likelihood or under a prior, whose score is extreme, answers, and score.

    An ability depends on the set of items and the score alone, so it is found for one person with each. Right and wrong
    answers are so cheap that it pays where everybody answered all items only.
    """
    rows = known_rows(block, beta, layout)
    distinct = rows  # one row for each set of items and score
    row_of_person: Any = slice(None)
    items = np.flatnonzero(np.isfinite(beta)).astype(np.int32)
    if not layout.binary:
        patterns = same_rows(rows, layout)
        distinct = patterns.rows
        row_of_person = patterns.of_person
    elif rows.n_persons and np.all(rows.counts == len(items)):
        scores, row_of_person = np.unique(rows.scores, return_inverse=True)
        n = np.full(len(scores), len(items))
        distinct = Rows(np.arange(len(scores) + 1) * len(items), np.tile(items, len(scores)), n, scores, n)
    mean, sd = prior or (np.nan, np.nan)  # what people without responses have
    ability = np.full(distinct.n_persons, mean, dtype=float)
    se = np.full(distinct.n_persons, sd, dtype=float)
    for persons, run in cached_runs(distinct, layout, beta):
        ability[persons], se[persons] = estimate_abilities(run, warm, prior)
    extreme = ((rows.scores == 0) | (rows.scores == rows.max_scores)) & (rows.counts > 0)
    return ability[row_of_person], se[row_of_person], extreme, rows.counts, rows.scores


def population(
    responses: Responses, beta: Floats, mean: float | None, sd: float | None, weights: Floats | None = None
) -> tuple[float, float]:
    """The prior: as given, or the normal population that fits the people who answered something, by EM; they count by
    their weights."""
    if mean is not None and sd is not None:
        return mean, sd

    def em_step(mean_and_log_sd: Floats) -> Floats | None:
        prior = float(mean_and_log_sd[0]), float(np.exp(mean_and_log_sd[1]))
        ability, error, _, n, _ = responses.entries.gather(_estimates, beta, responses.thresholds, False, prior)
        answered = n > 0
        if not answered.any():
            return None
        image = mean_and_log_sd.copy()
        counts = chosen_or_none(weights, answered)
        if mean is None:
            image[0] = np.average(ability[answered], weights=counts)
        if sd is None:
            squares = error[answered] ** 2 + (ability[answered] - image[0]) ** 2
            image[1] = np.log(np.average(squares, weights=counts)) / 2
        return image

    start_mean = 0.0 if mean is None else mean
    start_sd = 1.0 if sd is None else sd
    fixed_point = settle(em_step, np.array([start_mean, np.log(start_sd)]))
    fitted_mean = float(fixed_point[0])
    fitted_sd = float(np.exp(fixed_point[1]))
    n_people = int(np.count_nonzero(responses.counts))
    if sd is None and fitted_sd <= COLLAPSED and 0 < n_people < FEW_PERSONS:
        who = "1 person is" if n_people == 1 else f"{n_people:,} people are"
        raise OptionError(
            f"{responses.source}: {who} too few to estimate the population that 'eap' needs. Give its mean and "
            "standard deviation (prior_mean and prior_sd), or take 'wle', which needs none."
        )
    return fitted_mean, fitted_sd


def with_severities(
    estimates: Abilities,
    responses: Responses,
    thresholds: Floats,
    measures: FacetMeasures,
    halo: Mapping[str, float] | None = None,
) -> Abilities:
    """Abilities from ratings, with standard errors that allow for those of severities and thresholds, and for ratings
    of one rater that depend on each other.

    A score that is off by u moves an ability by u / I, I the information, or by u times the posterior variance, for the
    prior of a posterior mean does not move. What is off has the variance J C J' by the errors of the parameters, C
    their covariance and J_ik = Cov(X_i, 1{X_i >= k}); and the sum over raters of w V^2, V the variance of all ratings
    of one rater, where each rater has an impression of each person of variance w, which is `halo` by facet.
    """
    # A posterior is about normal; what it says about J is a mean over three nodes, exact for polynomials of degree 5.
    posterior = estimates.method == "eap"
    nodes = POSTERIOR_NODES if posterior else ((0.0, 1.0),)
    width = estimates.se if posterior else np.zeros(len(estimates.se))
    halo_effects = []
    for name, variance in (halo or {}).items():
        if variance > 0:
            level_of_combination = measures.facets.column(name)[1]
            halo_effects.append((level_of_combination, variance))
    score_variance, information = responses.entries.gather(
        _score_errors,
        thresholds,
        responses.thresholds,
        measures.design,
        measures.spread,
        nodes,
        halo_effects,
        persons=(estimates.ability, width),
    )
    ability_per_score = safe_divide(1.0, information)
    if posterior:
        ability_per_score = estimates.se**2
    return replace(estimates, se=np.sqrt(estimates.se**2 + score_variance * ability_per_score**2))


def _score_errors(
    block: Block,
    theta: Floats,
    width: Floats,
    beta: Floats,
    layout: Thresholds,
    design: sparse.csr_array,
    spread: Floats,
    nodes: Sequence[tuple[float, float]],
    halo: Sequence[tuple[Ints, float]],
) -> tuple[Floats, Floats]:
    """Of each person the variance of what the score is off by, beyond the model's own, and the information on the
    ability; zero for people without a finite ability. Both are means over nodes, in units of `width` around theta."""
    rows = rows_of(block, layout)
    score_variance = np.zeros(block.n_persons)
    information = np.zeros(block.n_persons)
    cumulated = layout.cumulated(beta)
    category = np.arange(layout.widest + 1.0)
    for start, stop in person_chunks(rows.indptr, CACHED // layout.widest):
        chunk = rows.part(start, stop)
        n_persons = chunk.n_persons
        has_ability = np.isfinite(theta[start:stop])
        person = np.repeat(np.arange(n_persons), chunk.counts)
        items = chunk.items.astype(np.int64)
        score_slope = np.zeros((len(items), layout.widest))  # by each threshold of the items
        variance = np.zeros(len(items))  # of each rating
        for node, weight in nodes:
            at = np.where(has_ability, theta[start:stop] + node * width[start:stop], 0.0)
            p = category_probabilities(at[person], cumulated[items])
            mean = p @ category
            score_slope += weight * (above(p * category) - above(p) * mean[:, None])
            variance += weight * (p @ category**2 - mean**2)
        inside = np.arange(layout.widest) < layout.max_score[items][:, None]
        column = (layout.first[items][:, None] + np.arange(layout.widest))[inside]
        row = np.nonzero(inside)[0]
        slopes = sparse.csr_array((score_slope[inside], (person[row], column)), shape=(n_persons, layout.n_entries))
        total = variances(sparse.csr_array(slopes @ design), spread)
        for level, effect_variance in halo:
            person_and_level = person * (level.max(initial=0) + 1) + level[items]
            _, first, pair = np.unique(person_and_level, return_index=True, return_inverse=True)
            variance_of_pair = np.bincount(pair.ravel(), weights=variance)
            by_person = np.bincount(person[first], weights=variance_of_pair**2, minlength=n_persons)
            total += effect_variance * by_person
        score_variance[start:stop] = np.where(has_ability, total, 0.0)
        person_information = np.bincount(person, weights=variance, minlength=n_persons)
        information[start:stop] = np.where(has_ability, person_information, 0.0)
    return score_variance, information


def items_met(responses: Responses, thresholds: Floats) -> Floats:
    """The mean location of the items with thresholds that each person answered; NaN without any."""
    layout = responses.thresholds
    beta = thresholds_of(responses, thresholds)
    location = beta if layout.binary else layout.mean(beta)
    return np.asarray(responses.entries.gather(_items_met, beta, location, layout))


def _items_met(block: Block, beta: Floats, location: Floats, layout: Thresholds) -> Floats:
    rows = known_rows(block, beta, layout)
    with np.errstate(invalid="ignore", divide="ignore"):
        return rows.sums(location[rows.items]) / rows.counts


def with_thresholds(responses: Responses, thresholds: Floats) -> tuple[Responses, Floats]:
    """The answers to the items that have thresholds, and these."""
    layout = responses.thresholds
    has_thresholds = np.isfinite(layout.mean(thresholds))
    if has_thresholds.all():
        return responses, thresholds
    return responses.take_items(has_thresholds), thresholds[layout.of_items(np.flatnonzero(has_thresholds))]


def settle(em_step: Callable[[Floats], Floats | None], start: Floats) -> Floats:
    """Where a step of EM leaves a population as it is, by Anderson's acceleration; its last entry is log sd."""
    accelerate = Anderson(window=3)
    narrowest = min(np.log(NARROWEST_SD), start[-1])  # an sd that is given is kept
    current = start
    for _ in range(EM_STEPS):
        image = em_step(current)
        if image is None:  # nobody answered anything
            return current
        image[-1] = max(image[-1], narrowest)
        if np.max(np.abs(image - current)) < EM_TOLERANCE:
            return image
        trial = accelerate.next(current, image)
        if np.max(np.abs(trial - image)) > 1:  # too bold: start again from the plain step
            accelerate.forget()
            trial = image
        trial[-1] = max(trial[-1], narrowest)
        current = trial
    return current
