"""Critical values by parametric bootstrap: what a statistic does on data like these when the model holds.

Each replicate keeps who was shown what, draws right and wrong anew from the fitted model, fits the difficulties again
by the spectral estimator, and computes the statistic. Rules of thumb (infit between 0.7 and 1.3) fit no design in
particular; these limits fit this one, item by item.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.packing import limits_of, pack_block
from spectral_irt.data.thresholds import Thresholds, answered_items
from spectral_irt.errors import OptionError
from spectral_irt.estimators.spectral_fit import spectral_fit
from spectral_irt.inference.probability import student_two_sided
from spectral_irt.model import category_probabilities, sigmoid
from spectral_irt.numerics import generator
from spectral_irt.persons.abilities import abilities, checked

Statistic = Callable[[Responses, Floats], dict[str, Floats]]


@dataclass(frozen=True, eq=False)
class Band:
    """Where a statistic lies when the model holds, one of each number an item.

    Attributes
    ----------
    observed : float array
    low, high : float arrays
        Under the model the statistic falls outside with probability `level`, half of it on either side.
    p : float array
        Two-sided, from the rank of the observed value among the replicates: at least 2 / (replicates + 1).
    tail : float array
        Two-sided, from their mean and standard deviation by Student's distribution: as small as may be, so that it can
        be adjusted for asking of many items, which ranks among some hundred replicates cannot.
    """

    observed: Floats
    low: Floats
    high: Floats
    p: Floats
    tail: Floats


def bootstrap(
    responses: Responses,
    difficulty: Floats,
    statistic: Statistic,
    *,
    replicates: int = 200,
    level: float = 0.05,
    sample: int | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Band]:
    """Observed values and critical values of some statistics under the Rasch model.

    Parameters
    ----------
    responses : Responses
        Item codes are positions in `difficulty`; for ordered answers these are thresholds.
    statistic : callable
        `statistic(responses, difficulty)` gives named arrays, one number an item (or whatever it is about).
    replicates : int
        200: limits at the 5% level are the fifth value from either end.
    level : float
        Share of good items outside the limits, both sides together.
    sample : int, optional
        Take so many people at random. With millions every item is "significantly" off; with a thousand only those
        whose misfit matters are. The difficulties, which rest on all the data, then stay as they are.
    seed : int
        Replicates do not depend on the number of threads.

    Notes
    -----
    Abilities are drawn from each person's posterior, normal(EAP, posterior sd), under a normal population fitted to the
    data: estimated abilities as they stand vary too much, since they contain their errors.
    """
    _check(replicates, level, sample)
    refit = sample is None or sample >= responses.n_persons
    if sample is not None and not refit:
        responses, _ = responses.sample(sample, generator(seed, 0))
    observed = statistic(responses, difficulty)
    known = abilities(responses, difficulty, "eap")
    drawn: dict[str, list[Floats]] = {name: [] for name in observed}
    for k in range(replicates):
        if progress:
            progress(f"replicate {k + 1} of {replicates}")
        again = redraw(responses, difficulty, known.ability, known.se, np.random.SeedSequence([seed, 1, k]))
        beta = spectral_fit(again, se="none").thresholds if refit else difficulty
        beta = np.where(np.isfinite(difficulty), beta, np.nan)
        for name, values in statistic(again, beta).items():
            drawn[name].append(values)
    return {name: band(values, np.array(drawn[name]), level) for name, values in observed.items()}


def redraw(
    responses: Responses,
    thresholds: Floats,
    ability: Floats,
    se: Floats,
    seed: np.random.SeedSequence,
    *,
    slope: Floats | None = None,
) -> Responses:
    """The same people shown the same items, with answers drawn from the model; abilities normal(ability, se).

    Items without thresholds are left out. With a slope for every item, abilities count times it, and thresholds are
    intercepts.
    """
    layout, beta = responses.thresholds, checked(responses, thresholds)
    drawn = responses.entries.transform(_redraw, layout, beta, slope, persons=(ability, se), seed=seed)
    return replace(responses, blocks=drawn.blocks)


def _redraw(
    block: Block,
    ability: Floats,
    se: Floats,
    seed: np.random.SeedSequence,
    layout: Thresholds,
    beta: Floats,
    slope: Floats | None,
) -> Block:
    rng = generator(seed)
    theta = ability + se * rng.standard_normal(block.n_persons)
    # In this order draws belong to the cell (person, item), not to how it was answered: it is the same for any answers.
    indptr, item, _ = answered_items(block, layout)
    cells = np.sort((np.repeat(np.arange(block.n_persons), np.diff(indptr)) << 32) + item)
    known = np.isfinite(beta if layout.binary else layout.mean(beta))
    item = (cells & 0xFFFFFFFF).astype(np.int32)
    person, item = (cells >> 32)[known[item]], item[known[item]]
    able = theta[person] if slope is None else slope[item] * theta[person]
    chance = rng.random(len(item))
    if layout.binary:
        category = chance < sigmoid(able - beta[item])
    else:
        p = category_probabilities(able, layout.cumulated(np.nan_to_num(beta))[item])
        category = np.minimum((chance[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1), layout.max_score[item])
    slots = (item << layout.bits) | category.astype(np.int32)
    return pack_block(limits_of(np.bincount(person, minlength=block.n_persons)), slots, layout)


def _check(replicates: int, level: float, sample: int | None) -> None:
    if not 0 < level < 1:
        raise OptionError(f"`level` is {level}; it must be between 0 and 1, for example 0.05.")
    least = int(np.ceil(2 / level)) - 1
    if replicates < least:
        raise OptionError(
            f"`replicates` is {replicates}; critical values at the level {level:g} need at least {least:,}, and are "
            "steadier with more."
        )
    if sample is not None and sample < 2:
        raise OptionError(f"`sample` is {sample}; it is a number of people, at least 2.")


def band(observed: Floats, drawn: Floats, level: float) -> Band:
    """Limits at the ranks that the observed value would have below with probability level / 2, and the p-value.

    Under the model the observed value is one more replicate: it is equally likely to take any of R + 1 ranks.
    """
    counts = np.isfinite(drawn).sum(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # statistics that no replicate has are NaN
        low, high = np.nanquantile(drawn, (level / 2, 1 - level / 2), axis=0, method="weibull")
    few = counts < np.ceil(2 / level) - 1  # too few for ranks so far out
    low, high = np.where(few, np.nan, low), np.where(few, np.nan, high)
    below, above = (drawn <= observed).sum(axis=0), (drawn >= observed).sum(axis=0)
    p = np.minimum(2 * (np.minimum(below, above) + 1) / (counts + 1), 1.0)
    p = np.where(np.isfinite(observed) & (counts > 0), p, np.nan)
    return Band(observed, low, high, p, _student(observed, drawn, counts))


def _student(observed: Floats, drawn: Floats, counts: Floats) -> Floats:
    """Two-sided chance of a further draw as far from the mean of the replicates; NaN where they do not vary."""
    known = np.isfinite(drawn)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(known, drawn, 0.0).sum(axis=0) / counts
        variance = np.where(known, (drawn - mean) ** 2, 0.0).sum(axis=0) / (counts - 1)
        t = np.abs(observed - mean) / np.sqrt(variance * (1 + 1 / counts))
        return np.where((counts > 1) & (variance > 0), student_two_sided(t, counts - 1.0), np.nan)
