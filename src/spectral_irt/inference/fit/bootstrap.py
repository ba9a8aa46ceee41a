"""Critical values by parametric bootstrap: what a statistic does on data like these when the model holds.

Each replicate keeps who was shown what, draws the answers anew from the fitted model, fits the thresholds again by the
estimator of the model, and computes the statistic. Rules of thumb (infit between 0.7 and 1.3) fit no design in
particular; these limits fit this one, item by item.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import AnswerRows, Floats, Ints, Thresholds, answered_items, pack_block
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.estimators.linear_design import SpectralRatingScale
from spectral_irt.estimators.spectral_steps import spectral_fit
from spectral_irt.inference.fit.item_fit import LEVEL, verdict
from spectral_irt.inference.fit.mean_squares import conditional_statistics
from spectral_irt.model import category_probabilities, sigmoid
from spectral_irt.numerics import generator
from spectral_irt.persons.abilities import abilities, checked
from spectral_irt.tables import Columns

FEWEST = int(np.ceil(2 / LEVEL)) - 1  # replicates that have ranks as far out as the limits


def bootstrap_limits(
    responses: Responses,
    thresholds: Floats,
    replicates: int = 200,
    *,
    scale_of_item: Ints | None = None,
    sample: int | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Columns:
    """Critical values of the conditional mean squares of every item from data sets drawn under the model.

    `infit_conditional_low, .._high, .._p` and the same for outfit are about one item: 5% of good items are outside.
    `misfit_p` and `misfit` are those of `verdict`. With a `sample` of people at random only items whose misfit matters
    are off, where with millions every item is; the thresholds, which rest on all the data, then stay as they are.

    Abilities are drawn from each person's posterior, normal(EAP, posterior sd), under a normal population fitted to the
    data: estimated abilities as they stand vary too much, since they contain their errors. `scale_of_item` is that of
    a rating scale model, whose offsets each replicate estimates in common.
    """
    if replicates < FEWEST:
        raise OptionError(
            f"`replicates` is {replicates}; critical values at the level {LEVEL:g} need at least {FEWEST}, and are "
            "steadier with more."
        )
    if sample is not None and sample < 2:
        raise OptionError(f"`sample` is {sample}; it is a number of people, at least 2.")
    refit = sample is None or sample >= responses.n_persons
    if sample is not None and not refit:
        responses, _ = responses.sample(sample, generator(seed, 0))
    known = abilities(responses, thresholds, "eap")
    observed, drawn = conditional_statistics(responses, thresholds, scale_of_item=scale_of_item), []
    for k in range(replicates):
        if progress:
            progress(f"replicate {k + 1} of {replicates}")
        again = redraw(responses, thresholds, known.ability, known.se, np.random.SeedSequence([seed, 1, k]))
        beta = _refitted(again, scale_of_item) if refit else thresholds
        beta = np.where(np.isfinite(thresholds), beta, np.nan)
        drawn.append(conditional_statistics(again, beta, scale_of_item=scale_of_item))
    columns: Columns = {}
    for name in ("infit", "outfit"):
        found = band(observed[name], np.array([one[name] for one in drawn]))
        columns |= dict(zip((f"{name}_conditional_{end}" for end in ("low", "high", "p")), found, strict=True))
    infit, tail = observed["infit"], from_the_mean(observed["infit"], np.array([one["infit"] for one in drawn]))
    off = infit - (columns["infit_conditional_low"] + columns["infit_conditional_high"]) / 2
    return columns | verdict(tail, off, infit)


def _refitted(responses: Responses, scale_of_item: Ints | None) -> Floats:
    """The thresholds of the same model; NaN of a rating scale with a category that nobody chose in this replicate."""
    if scale_of_item is None:
        return spectral_fit(responses, se="none").thresholds
    try:
        return SpectralRatingScale(groups=scale_of_item.tolist()).fit(responses).thresholds_
    except DesignError:
        return np.full(responses.thresholds.n_entries, np.nan)


def band(observed: Floats, drawn: Floats) -> tuple[Floats, Floats, Floats]:
    """Limits at the ranks that the observed value would have below with probability 2.5%, and its two-sided p by rank.

    Under the model the observed value is one more replicate: it is equally likely to take any of R + 1 ranks.
    """
    counts = np.isfinite(drawn).sum(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # statistics that no replicate has are NaN
        low, high = np.nanquantile(drawn, (LEVEL / 2, 1 - LEVEL / 2), axis=0, method="weibull")
    few = counts < FEWEST  # too few for ranks so far out
    below, above = (drawn <= observed).sum(axis=0), (drawn >= observed).sum(axis=0)
    p = np.minimum(2 * (np.minimum(below, above) + 1) / (counts + 1), 1.0)
    p = np.where(np.isfinite(observed) & (counts > 0), p, np.nan)
    return np.where(few, np.nan, low), np.where(few, np.nan, high), p


def from_the_mean(observed: Floats, drawn: Floats) -> Floats:
    """Two-sided p of a value as far from the mean of the replicates, by Student's distribution; NaN where they are all
    alike. It can be as small as may be, and be adjusted for asking of many items, which ranks among some hundred
    replicates cannot."""
    known = np.isfinite(drawn)
    counts = known.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(known, drawn, 0.0).sum(axis=0) / counts
        variance = np.where(known, (drawn - mean) ** 2, 0.0).sum(axis=0) / (counts - 1)
        t = np.abs(observed - mean) / np.sqrt(variance * (1 + 1 / counts))
        return np.where((counts > 1) & (variance > 0), 2 * scipy.special.stdtr(counts - 1.0, -t), np.nan)


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
    seeds = seed.spawn(len(responses.blocks))
    drawn = responses.entries.prepare(_redraw, layout, beta, slope, persons=(ability, se), each=[seeds])
    return replace(responses, blocks=drawn.parts)


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
    return pack_block(AnswerRows(person, slots), range(block.n_persons), layout)
