"""How able every person is, from given thresholds: one number with its standard error, one pass over the blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.ability import cached_runs, estimated
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import CACHED, Floats, Ints, Rows, Thresholds, person_chunks, rows_of
from spectral_irt.data.design import same_rows
from spectral_irt.errors import OptionError, check_option
from spectral_irt.model import above, category_probabilities
from spectral_irt.numerics import Anderson, variances

if TYPE_CHECKING:
    from spectral_irt.data.facets import FacetMeasures

METHODS = ("wle", "ml", "eap")
REPORTS = (*METHODS, "pv")  # how people are reported: plausible values beside the posterior mean
NARROWEST = 0.01  # standard deviation of a population in which abilities do not differ
CHANGE = 1e-6  # in the prior's mean and log sd, at which to stop
FEW = 30  # people from whom no population is estimated when they seem not to differ at all
COLLAPSED = 1.01 * NARROWEST  # the estimate of a spread that these people do not show
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
        some = {name: getattr(self, name)[chosen] for name in ("ability", "se", "extreme", "n", "score")}
        return replace(self, **some)


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
    beta = checked(responses, difficulty)
    prior = population(responses, beta, prior_mean, prior_sd, weights) if method == "eap" else None
    found = responses.entries.gather(_solved, beta, responses.thresholds, method == "wle", prior)
    ability, se, extreme, n, score = found
    return Abilities(ability, se, extreme, n, score, method, prior)


def checked(responses: Responses, difficulty: Floats) -> Floats:
    """A number for each threshold; NaN for those of an item that is not known in full."""
    beta, layout = np.asarray(difficulty, dtype=np.float64), responses.thresholds
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
    known = np.isfinite(beta)
    if known.all() or known[block.items].all():
        return block
    return block.keep_items(np.where(known, np.arange(len(beta)), -1).astype(np.int32))


def known_rows(block: Block, beta: Floats, layout: Thresholds) -> Rows:
    """The answers of a block to items that have a difficulty."""
    return rows_of(answers_with_difficulty(block, beta), layout)


def _solved(
    block: Block, beta: Floats, layout: Thresholds, warm: bool, prior: tuple[float, float] | None = None
) -> tuple[Floats, Floats, NDArray[np.bool_], Ints, Ints]:
    """Ability and se of everybody, by likelihood or under a prior, whose score is extreme, answers, and score.

    An ability depends on the set of items and the score alone, so it is found for one person with each. Right and wrong
    answers are so cheap that it pays where everybody answered all items only.
    """
    rows = some = known_rows(block, beta, layout)
    who: Any = slice(None)
    known = np.flatnonzero(np.isfinite(beta)).astype(np.int32)
    if not layout.binary:
        found = same_rows(rows, layout)
        some, who = found.rows, found.of_person
    elif rows.n_persons and np.all(rows.counts == len(known)):
        scores, who = np.unique(rows.scores, return_inverse=True)
        n = np.full(len(scores), len(known))
        some = Rows(np.arange(len(scores) + 1) * len(known), np.tile(known, len(scores)), n, scores, n)
    mean, sd = prior or (np.nan, np.nan)
    ability, se = np.full(some.n_persons, mean, dtype=float), np.full(some.n_persons, sd, dtype=float)
    for persons, run in cached_runs(some, layout, beta):
        ability[persons], se[persons] = estimated(run, warm, prior)
    extreme = ((rows.scores == 0) | (rows.scores == rows.max_scores)) & (rows.counts > 0)
    return ability[who], se[who], extreme, rows.counts, rows.scores


def population(
    responses: Responses, beta: Floats, mean: float | None, sd: float | None, weights: Floats | None = None
) -> tuple[float, float]:
    """The prior: as given, or the normal population that fits the people who answered something, by EM; they count by
    their weights."""
    if mean is not None and sd is not None:
        return mean, sd

    def image(here: Floats) -> Floats | None:
        prior = float(here[0]), float(np.exp(here[1]))
        ability, error, _, n, _ = responses.entries.gather(_solved, beta, responses.thresholds, False, prior)
        if not n.any():
            return None
        there, someone = here.copy(), n > 0
        counts = None if weights is None else weights[someone]
        if mean is None:
            there[0] = np.average(ability[someone], weights=counts)
        if sd is None:
            squares = error[someone] ** 2 + (ability[someone] - there[0]) ** 2
            there[1] = np.log(np.average(squares, weights=counts)) / 2
        return there

    here = settle(image, np.array([0.0 if mean is None else mean, np.log(1.0 if sd is None else sd)]))
    found = float(here[0]), float(np.exp(here[1]))
    people = int(np.count_nonzero(responses.counts))
    if sd is None and found[1] <= COLLAPSED and 0 < people < FEW:
        who = "1 person is" if people == 1 else f"{people:,} people are"
        raise OptionError(
            f"{responses.source}: {who} too few to estimate the population that 'eap' needs. Give its mean and "
            "standard deviation (prior_mean and prior_sd), or take 'wle', which needs none."
        )
    return found


def with_severities(
    found: Abilities,
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
    posterior = found.method == "eap"
    nodes = POSTERIOR_NODES if posterior else ((0.0, 1.0),)
    width = found.se if posterior else np.zeros(len(found.se))
    levels = [(measures.facets.column(name)[1], variance) for name, variance in (halo or {}).items() if variance > 0]
    args = (thresholds, responses.thresholds, measures.design, measures.spread, nodes, levels)
    score_variance, information = responses.entries.gather(_score_errors, *args, persons=(found.ability, width))
    per_score = np.divide(1.0, information, out=np.zeros(len(information)), where=information > 0)
    if posterior:
        per_score = found.se**2
    return replace(found, se=np.sqrt(found.se**2 + score_variance * per_score**2))


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
    every_information = np.zeros(block.n_persons)
    cumulated = layout.cumulated(beta)
    category = np.arange(layout.widest + 1.0)
    for start, stop in person_chunks(rows.indptr, CACHED // layout.widest):
        some = rows.part(start, stop)
        known = np.isfinite(theta[start:stop])
        person = np.repeat(np.arange(some.n_persons), some.counts)
        items = some.items.astype(np.int64)
        moved = np.zeros((len(items), layout.widest))  # the score by each threshold of the items
        variance = np.zeros(len(items))  # of each rating
        for node, weight in nodes:
            at = np.where(known, theta[start:stop] + node * width[start:stop], 0.0)
            p = category_probabilities(at[person], cumulated[items])
            mean = p @ category
            moved += weight * (above(p * category) - above(p) * mean[:, None])
            variance += weight * (p @ category**2 - mean**2)
        inside = np.arange(layout.widest) < layout.max_score[items][:, None]
        column = (layout.first[items][:, None] + np.arange(layout.widest))[inside]
        row = np.nonzero(inside)[0]
        slopes = sparse.csr_array((moved[inside], (person[row], column)), shape=(some.n_persons, layout.n_entries))
        total = variances(sparse.csr_array(slopes @ design), spread)
        for code, effect in halo:
            cell = person * (code.max(initial=0) + 1) + code[items]
            _, first, own = np.unique(cell, return_index=True, return_inverse=True)
            of_level = np.bincount(own.ravel(), weights=variance)
            total += effect * np.bincount(person[first], weights=of_level**2, minlength=some.n_persons)
        information = np.bincount(person, weights=variance, minlength=some.n_persons)
        score_variance[start:stop] = np.where(known, total, 0.0)
        every_information[start:stop] = np.where(known, information, 0.0)
    return score_variance, every_information


def items_met(responses: Responses, thresholds: Floats) -> Floats:
    """The mean location of the items with thresholds that each person answered; NaN without any."""
    layout, beta = responses.thresholds, checked(responses, thresholds)
    location = beta if layout.binary else layout.mean(beta)
    return np.asarray(responses.entries.gather(_items_met, beta, location, layout))


def _items_met(block: Block, beta: Floats, location: Floats, layout: Thresholds) -> Floats:
    rows = known_rows(block, beta, layout)
    with np.errstate(invalid="ignore", divide="ignore"):
        return rows.sums(location[rows.items]) / rows.counts


def with_thresholds(responses: Responses, thresholds: Floats) -> tuple[Responses, Floats]:
    """The answers to the items that have thresholds, and these."""
    known = np.isfinite(responses.thresholds.mean(thresholds))
    if known.all():
        return responses, thresholds
    return responses.take_items(known), thresholds[responses.thresholds.of_items(np.flatnonzero(known))]


def settle(image: Callable[[Floats], Floats | None], here: Floats) -> Floats:
    """Where EM's step `image` leaves a population as it is, by Anderson's acceleration; its last entry is log sd."""
    speed, narrowest = Anderson(window=3), min(np.log(NARROWEST), here[-1])  # an sd that is given is kept
    for _ in range(200):
        there = image(here)
        if there is None:  # nobody answered anything
            return here
        there[-1] = max(there[-1], narrowest)
        if np.max(np.abs(there - here)) < CHANGE:
            return there
        bold = speed.next(here, there)
        if np.max(np.abs(bold - there)) > 1:  # too bold: start again from the plain step
            speed.forget()
            bold = there
        bold[-1] = max(bold[-1], narrowest)
        here = bold
    return here
