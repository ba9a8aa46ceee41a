"""How able every person is, from given difficulties or thresholds: one number with its standard error, one pass over
the blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.ability import (
    MOST_STEPS,
    STEP,
    beside_a_gap,
    cached_runs,
    score_abilities,
    score_cumulants,
    solve,
    with_answers,
)
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.same_items import SharedSets, same_rows
from spectral_irt.data.thresholds import Rows, Thresholds, rows_of
from spectral_irt.errors import OptionError, check_option
from spectral_irt.model import prox
from spectral_irt.persons.posterior import NARROWEST, fit_prior, posterior_moments
from spectral_irt.sparse_kernels import row_sums, shared_ones

METHODS = ("wle", "ml", "eap")
REPORTS = (*METHODS, "pv")  # how people are reported: plausible values beside the posterior mean
FEW_ANSWERS = 100_000  # up to which maximum and weighted likelihood each take steps of their own, at no cost
FEW = 30  # people from whom no population is estimated when they seem not to differ at all
COLLAPSED = 1.01 * NARROWEST  # the estimate of a spread that these people do not show


@dataclass(frozen=True, eq=False)
class Abilities:
    """What `abilities` found, one number per person, in the order of the responses.

    Attributes
    ----------
    ability, se : float arrays
        On the scale of the difficulties. NaN for a person without answers, except under a prior.
    extreme : bool array
        The lowest or the highest score: the likelihood has no maximum, and the number rests on the method.
    n, score : int arrays
        Answers to items with a difficulty, and their total score: how many are right.
    method : str
    prior_mean, prior_sd : float or None
        Of the normal population, given or estimated; for "eap" only.
    """

    ability: Floats
    se: Floats
    extreme: NDArray[np.bool_]
    n: Ints
    score: Ints
    method: str
    prior_mean: float | None = None
    prior_sd: float | None = None

    @property
    def prior(self) -> tuple[float, float] | None:
        """Mean and standard deviation of the population, where there is one."""
        return None if self.prior_mean is None or self.prior_sd is None else (self.prior_mean, self.prior_sd)


def abilities(
    responses: Responses,
    difficulty: Floats,
    method: str = "wle",
    *,
    prior_mean: float | None = None,
    prior_sd: float | None = None,
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
    if method == "eap":
        prior_mean, prior_sd = population(responses, beta, prior_mean, prior_sd)
        found = responses.entries.gather(_posterior, beta, responses.thresholds, prior_mean, prior_sd)
    elif responses.n_responses > FEW_ANSWERS:
        return both_likelihoods(responses, beta)[method]
    else:
        found = responses.entries.gather(_likelihood, beta, responses.thresholds, method == "wle")
    ability, se, extreme, n, score = found
    return Abilities(ability, se, extreme, n, score, method, prior_mean, prior_sd)


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


def both_likelihoods(responses: Responses, beta: Floats) -> dict[str, Abilities]:
    """Warm's and maximum likelihood from one sweep, which costs a third of two."""
    beta = checked(responses, beta)
    shared = responses.shared if responses.thresholds.binary and np.isfinite(beta).all() else None
    if shared is not None and shared.rest is None:
        return {method: _by_score(responses, shared, beta, method) for method in ("wle", "ml")}
    ml, ml_se, wle, wle_se, extreme, n, score = responses.entries.gather(_likelihoods, beta, responses.thresholds)
    return {
        "wle": Abilities(wle, wle_se, extreme, n, score, "wle"),
        "ml": Abilities(ml, ml_se, extreme, n, score, "ml"),
    }


def _by_score(responses: Responses, shared: SharedSets, beta: Floats, method: str) -> Abilities:
    """Where everybody shares a set of items the score is all that an ability depends on."""
    ability, se = np.empty(responses.n_persons), np.empty(responses.n_persons)
    for number, one in enumerate(shared.sets):
        mine = np.flatnonzero(shared.code == number)
        every = score_abilities(beta[one.items], warm=method == "wle")
        ability[mine], se[mine] = (values[responses.scores[mine]] for values in every)
    n, score = responses.counts, responses.scores
    return Abilities(ability, se, ((score == 0) | (score == n)) & (n > 0), n, score, method)


def answers_with_difficulty(block: Block, beta: Floats) -> Block:
    """The block without the answers to items that have no difficulty; item codes stay."""
    known = np.isfinite(beta)
    if known.all() or known[block.items].all():
        return block
    return block.keep_items(np.where(known, np.arange(len(beta)), -1).astype(np.int32))


def known_rows(block: Block, beta: Floats, layout: Thresholds) -> Rows:
    """The answers of a block to items that have a difficulty."""
    return rows_of(answers_with_difficulty(block, beta), layout)


def _distinct(rows: Rows, beta: Floats, layout: Thresholds) -> tuple[Rows, Any]:
    """Somebody for each set of items and score that people have, and where in them everybody is.

    Ability depends on nothing else, and so people of the same score have the same one to the last bit. Right and wrong
    answers are so cheap that it pays where everybody answered all items only.
    """
    if not layout.binary:
        found = same_rows(rows, layout)
        return found.rows, found.of_person
    known = np.flatnonzero(np.isfinite(beta)).astype(np.int32)
    if not rows.n_persons or not np.all(rows.counts == len(known)):
        return rows, slice(None)
    scores, who = np.unique(rows.scores, return_inverse=True)
    n = np.full(len(scores), len(known))
    return Rows(np.arange(len(scores) + 1) * len(known), np.tile(known, len(scores)), n, scores, n), who


def _about(rows: Rows) -> tuple[NDArray[np.bool_], Ints, Ints]:
    """Whose score is extreme, the number of answers, and the score."""
    return ((rows.scores == 0) | (rows.scores == rows.max_scores)) & (rows.counts > 0), rows.counts, rows.scores


Found = tuple[Floats, Floats, NDArray[np.bool_], Ints, Ints]  # ability, se, and what `_about` tells


def _likelihood(block: Block, beta: Floats, layout: Thresholds, warm: bool) -> Found:
    rows = known_rows(block, beta, layout)
    some, who = _distinct(rows, beta, layout)
    ability, se = np.full(some.n_persons, np.nan), np.full(some.n_persons, np.nan)
    for persons, run in cached_runs(some, layout):
        ability[persons], information = solve(run, layout, beta, warm=warm)
        with np.errstate(divide="ignore"):
            se[persons] = 1 / np.sqrt(information)
    return ability[who], se[who], *_about(rows)


def _likelihoods(
    block: Block, beta: Floats, layout: Thresholds
) -> tuple[Floats, Floats, Floats, Floats, NDArray[np.bool_], Ints, Ints]:
    rows = known_rows(block, beta, layout)
    some, who = _distinct(rows, beta, layout)
    found = np.full((4, some.n_persons), np.nan)
    if not layout.binary:
        for persons, run in cached_runs(some, layout):
            found[:, persons] = likelihoods(run, layout, beta)
    elif len(there := np.flatnonzero(some.counts)):
        found[:, there] = likelihoods(with_answers(some), layout, beta)
    with np.errstate(divide="ignore"):
        errors = 1 / np.sqrt(found[1::2])
    ml, ml_se, wle, wle_se = (values[who] for values in (found[0], errors[0], found[2], errors[1]))
    return ml, ml_se, wle, wle_se, *_about(rows)


def _posterior(block: Block, beta: Floats, layout: Thresholds, mean: float, sd: float) -> Found:
    rows = known_rows(block, beta, layout)
    some, who = _distinct(rows, beta, layout)
    ability, se = np.full(some.n_persons, float(mean)), np.full(some.n_persons, float(sd))
    for persons, run in cached_runs(some, layout):
        ability[persons], se[persons] = posterior_moments(run, layout, beta, mean, sd)
    return ability[who], se[who], *_about(rows)


def population(responses: Responses, beta: Floats, mean: float | None, sd: float | None) -> tuple[float, float]:
    """The prior: as given, or fitted to the people who answered something."""

    def moments(mean: float, sd: float) -> tuple[Floats, Floats]:
        ability, error, _, n, _ = responses.entries.gather(_posterior, beta, responses.thresholds, mean, sd)
        return ability[n > 0], error[n > 0]

    found = fit_prior(moments, mean, sd)
    people = int(np.count_nonzero(responses.counts))
    if sd is None and found[1] <= COLLAPSED and 0 < people < FEW:
        who = "1 person is" if people == 1 else f"{people:,} people are"
        raise OptionError(
            f"{responses.source}: {who} too few to estimate the population that 'eap' needs. Give its mean and "
            "standard deviation (prior_mean and prior_sd), or take 'wle', which needs none."
        )
    return found


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


# --------------------------------------------------------------------- maximum and weighted likelihood at once

NEAR = 0.01  # logits within which the series below is good to the last digits
BOLD = 1.0  # logits that one evaluation may be trusted to tell about
ROUNDS = 8  # evaluations; two are usual for people with many answers, and whoever needs more goes step by step


def likelihoods(rows: Rows, layout: Thresholds, beta: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Maximum likelihood and Warm's estimate of these people, each with the information at it: what `solve` gives.

    One evaluation at theta gives the cumulants k1 to k6 of the score there, and with them the whole neighborhood:

        sum p at theta + d = k1 + k2 d + k3 d^2 / 2 + ... + k6 d^5 / 120,    V = k2 + k3 d + ...,    J = dV / d theta.

    Both equations are solved in that series, without looking at the answers again, and the next evaluation is where
    they lead; one within a hundredth of a logit is final. Ordered answers take steps of their own for each.
    """
    if not layout.binary:
        return *solve(rows, layout, beta), *solve(rows, layout, beta, warm=True)
    n, s = rows.counts, rows.scores
    theta = _prox(rows, beta)
    found = np.full((4, len(n)), np.nan)  # ability and information: maximum likelihood, then Warm's
    endless = (s == 0) | (s == n)
    found[0, endless], found[1, endless] = np.where(s[endless] > 0, np.inf, -np.inf), 0.0
    persons, mine = np.arange(len(n)), rows
    for _ in range(ROUNDS):
        k = score_cumulants(mine, layout, beta, 6)(theta)
        there = [theta]
        for row, warm in ((0, False), (2, True)):
            d, v = _solved_near(mine.scores, k, warm)
            close = (np.abs(d) <= NEAR) & np.isnan(found[row, persons])
            found[row, persons[close]], found[row + 1, persons[close]] = (theta + d)[close], v[close]
            there.append(theta + d)
        ml, warm_one = (np.isnan(found[row, persons]) for row in (0, 2))
        left = np.flatnonzero(ml | warm_one)
        if not len(left):
            break
        # Where one evaluation can serve both it is between them.
        halfway = ml & warm_one & (np.abs(there[1] - there[2]) < NEAR)
        theta = np.where(halfway, (there[1] + there[2]) / 2, np.where(ml, there[1], there[2]))[left]
        if len(left) < len(persons):
            persons, mine = persons[left], mine.take(left)
    for row, warm in ((0, False), (2, True)):
        slow = np.flatnonzero(np.isnan(found[row]))
        if len(slow):
            found[row, slow], found[row + 1, slow] = solve(rows.take(slow), layout, beta, warm=warm)
    several = beside_a_gap(rows, layout, beta)
    if len(several):
        found[2, several], found[3, several] = solve(rows.take(several), layout, beta, warm=True)
    return found[0], found[1], found[2], found[3]


def _prox(rows: Rows, beta: Floats) -> Floats:
    n, s = rows.counts, rows.scores
    cells = len(n), rows.indptr.astype(np.int32), rows.items
    mean, square = (row_sums(cells, shared_ones(len(rows.items)), values) / n for values in (beta, beta * beta))
    return np.asarray(prox(mean, np.maximum(square - mean**2, 0), np.log((s + 0.4) / (n - s + 0.4))))


def _solved_near(s: Ints, k: Floats, warm: bool) -> tuple[Floats, Floats]:
    """How far away the estimate is, at most `BOLD`, and the information there."""
    k1, k2, k3, k4, k5, k6 = k
    d = np.zeros(len(s))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(MOST_STEPS):
            missing = s - (k1 + d * (k2 + d / 2 * (k3 + d / 3 * (k4 + d / 4 * (k5 + d / 5 * k6)))))
            v = k2 + d * (k3 + d / 2 * (k4 + d / 3 * (k5 + d / 4 * k6)))
            slope = -v
            if warm:
                lean = k3 + d * (k4 + d / 2 * (k5 + d / 3 * k6))
                missing = missing + lean / (2 * v)
                bent = slope + ((k4 + d * (k5 + d / 2 * k6)) / v - (lean / v) ** 2) / 2
                slope = np.where(bent < slope / 2, bent, slope)
            step = -missing / slope
            step = np.clip(np.where(np.isfinite(step), step, 0.0), -BOLD - d, BOLD - d)
            d = d + step
            if np.all((np.abs(step) <= STEP) | (np.abs(d) > 2 * NEAR)):
                break
        v = k2 + d * (k3 + d / 2 * (k4 + d / 3 * (k5 + d / 4 * k6)))
    return np.where(np.isfinite(d), d, 0.0), v
