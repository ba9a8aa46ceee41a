"""How able every person is, from given difficulties: one number with its standard error, one pass over the blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.ability import Answers, cached_runs, likelihoods, score_abilities, solve
from spectral_irt.errors import OptionError, check_option, option
from spectral_irt.persons.posterior import NARROWEST, fit_prior, posterior_moments
from spectral_irt.responses import Block, Responses
from spectral_irt.responses.block import Floats, Ints
from spectral_irt.responses.shared_sets import SharedSets

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
        Everything right or everything wrong: the likelihood has no maximum, and the number rests on the method.
    n, score : int arrays
        Answers to items with a difficulty, and how many of them right.
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
        Larger = harder. Answers to items without a finite one are left out.
    method : "wle", "ml" or "eap"
        Warm's weighted likelihood (default): almost unbiased, and finite for every score. Maximum likelihood: the
        expected score is the observed one; infinite for extreme scores. Posterior mean under a normal prior: least
        error on average, but drawn towards the mean.
    prior_mean, prior_sd : float, optional
        The prior of "eap"; estimated from the responses unless given.

    Notes
    -----
    Standard errors are 1 / sqrt(sum p q) at the estimate for "wle" and "ml", the posterior standard deviation for
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
            option("method"),
            f" is {method!r}, which has no prior; leave out prior_mean and prior_sd, or say 'eap'.",
        )
    if prior_sd is not None and not prior_sd > 0:
        raise OptionError(f"prior_sd is {prior_sd}; it must be above zero.")
    beta = np.asarray(difficulty, dtype=np.float64)
    if beta.shape != (responses.n_items,):
        raise OptionError(
            f"difficulty has shape {beta.shape}; there must be one number for each of the {responses.n_items:,} items."
        )
    if method == "eap":
        prior_mean, prior_sd = population(responses, beta, prior_mean, prior_sd)
        ability, se, n, score = responses.gather(_posterior, beta, prior_mean, prior_sd)
    elif responses.n_responses > FEW_ANSWERS:
        return both_likelihoods(responses, beta)[method]
    else:
        ability, se, n, score = responses.gather(_likelihood, beta, method == "wle")
    return _abilities(ability, se, n, score, method, prior_mean, prior_sd)


def both_likelihoods(responses: Responses, beta: Floats) -> dict[str, Abilities]:
    """Warm's and maximum likelihood from one sweep, which costs a third of two."""
    shared = responses.shared if np.isfinite(beta).all() else None
    if shared is not None and shared.rest is None:
        return {method: _by_score(responses, shared, beta, method) for method in ("wle", "ml")}
    ml, ml_se, wle, wle_se, n, score = responses.gather(_likelihoods, beta)
    return {"wle": _abilities(wle, wle_se, n, score, "wle"), "ml": _abilities(ml, ml_se, n, score, "ml")}


def _by_score(responses: Responses, shared: SharedSets, beta: Floats, method: str) -> Abilities:
    """Where everybody shares a set of items the score is all that an ability depends on."""
    ability, se = np.empty(responses.n_users), np.empty(responses.n_users)
    for number, one in enumerate(shared.sets):
        mine = np.flatnonzero(shared.code == number)
        every = score_abilities(beta[one.items], warm=method == "wle")
        ability[mine], se[mine] = (values[responses.scores[mine]] for values in every)
    return _abilities(ability, se, responses.counts, responses.scores, method)


def _abilities(
    ability: Floats,
    se: Floats,
    n: Ints,
    score: Ints,
    method: str,
    prior_mean: float | None = None,
    prior_sd: float | None = None,
) -> Abilities:
    extreme = ((score == 0) | (score == n)) & (n > 0)
    return Abilities(ability, se, extreme, n, score, method, prior_mean, prior_sd)


def answers_with_difficulty(block: Block, beta: Floats) -> Block:
    """The block without the answers to items that have no difficulty; item codes stay."""
    known = np.isfinite(beta)
    if known.all() or known[block.items].all():
        return block
    return block.keep_items(np.where(known, np.arange(len(beta)), -1).astype(np.int32))


def one_for_each_score(block: Block, beta: Floats) -> tuple[Block, Any]:
    """Where everybody answered all items: somebody for each score, and where in them everybody is.

    Ability depends on nothing else, and so people of the same score have the same one to the last bit.
    """
    known = np.flatnonzero(np.isfinite(beta)).astype(np.int32)
    if not block.n_users or not np.all(block.counts == len(known)):
        return block, slice(None)
    scores, who = np.unique(block.scores, return_inverse=True)
    indptr = np.arange(len(scores) + 1) * len(known)
    return Block(indptr=indptr, split=indptr[:-1] + scores, items=np.tile(known, len(scores))), who


def _likelihood(block: Block, beta: Floats, warm: bool) -> tuple[Floats, Floats, Ints, Ints]:
    block = answers_with_difficulty(block, beta)
    some, who = one_for_each_score(block, beta)
    ability, se = np.full(some.n_users, np.nan), np.full(some.n_users, np.nan)
    for users, answers in cached_runs(some.indptr, some.items, some.scores):
        ability[users], information = solve(answers, beta, warm=warm)
        with np.errstate(divide="ignore"):
            se[users] = 1 / np.sqrt(information)
    return ability[who], se[who], block.counts, block.scores


def _likelihoods(block: Block, beta: Floats) -> tuple[Floats, Floats, Floats, Floats, Ints, Ints]:
    block = answers_with_difficulty(block, beta)
    some, who = one_for_each_score(block, beta)
    found = np.full((4, some.n_users), np.nan)
    there = np.flatnonzero(some.counts)
    if len(there):
        bounds = np.append(some.indptr[there], some.indptr[-1]).astype(np.int32)
        found[:, there] = likelihoods(Answers(bounds, np.asarray(some.items), some.scores[there]), beta)
    with np.errstate(divide="ignore"):
        errors = 1 / np.sqrt(found[1::2])
    ml, ml_se, wle, wle_se = (values[who] for values in (found[0], errors[0], found[2], errors[1]))
    return ml, ml_se, wle, wle_se, block.counts, block.scores


def _posterior(block: Block, beta: Floats, mean: float, sd: float) -> tuple[Floats, Floats, Ints, Ints]:
    block = answers_with_difficulty(block, beta)
    some, who = one_for_each_score(block, beta)
    ability, se = np.full(some.n_users, float(mean)), np.full(some.n_users, float(sd))
    for users, answers in cached_runs(some.indptr, some.items, some.scores):
        ability[users], se[users] = posterior_moments(answers, beta, mean, sd)
    return ability[who], se[who], block.counts, block.scores


def population(responses: Responses, beta: Floats, mean: float | None, sd: float | None) -> tuple[float, float]:
    """The prior: as given, or fitted to the people who answered something."""

    def moments(mean: float, sd: float) -> tuple[Floats, Floats]:
        ability, error, n, _ = responses.gather(_posterior, beta, mean, sd)
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
