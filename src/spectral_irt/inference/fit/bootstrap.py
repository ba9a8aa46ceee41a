"""Critical values by parametric bootstrap: what a statistic does on data like these when the model holds.

Each replicate keeps who was shown what, draws the answers anew from the fitted model, fits the thresholds again by the
estimator of the model, and computes the statistic. Rules of thumb (infit between 0.7 and 1.3) fit no design in
particular; these limits fit this one, item by item. `Analysis.item_fit(bootstrap=...)` asks for them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.estimators.linear_design import SpectralRatingScale
from spectral_irt.estimators.spectral_steps import spectral_fit
from spectral_irt.inference.fit.item_fit import LEVEL, verdict
from spectral_irt.inference.fit.mean_squares import conditional_statistics
from spectral_irt.inference.fit.redraw import redraw
from spectral_irt.numerics import generator
from spectral_irt.persons.abilities import abilities
from spectral_irt.tables import Columns

FEWEST_REPLICATES = int(np.ceil(2 / LEVEL)) - 1  # that have ranks as far out as the limits
FEWEST_PEOPLE = 2  # of a sample


class Band(NamedTuple):
    """Limits between which 95% of good items are, and the two-sided p of the observed values; by rank."""

    low: Floats
    high: Floats
    p: Floats


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
    if replicates < FEWEST_REPLICATES:
        raise OptionError(
            f"`replicates` is {replicates}; critical values at the level {LEVEL:g} need at least {FEWEST_REPLICATES}, "
            "and are steadier with more."
        )
    if sample is not None and sample < FEWEST_PEOPLE:
        raise OptionError(f"`sample` is {sample}; it is a number of people, at least {FEWEST_PEOPLE}.")
    everybody = sample is None or sample >= responses.n_persons
    if sample is not None and not everybody:
        responses, _ = responses.sample(sample, generator(seed, 0))
    posterior = abilities(responses, thresholds, "eap")
    statistics = []
    for k in range(replicates):
        if progress:
            progress(f"replicate {k + 1} of {replicates}")
        seed_of_replicate = np.random.SeedSequence([seed, 1, k])
        replicate = redraw(responses, thresholds, posterior.ability, posterior.se, seed_of_replicate)
        beta = thresholds
        if everybody:
            beta = _fitted_thresholds(replicate, scale_of_item)
        beta = np.where(np.isfinite(thresholds), beta, np.nan)
        statistics.append(conditional_statistics(replicate, beta, scale_of_item=scale_of_item))
    observed = conditional_statistics(responses, thresholds, scale_of_item=scale_of_item)
    return _limit_columns(observed, statistics)


def _limit_columns(observed: Columns, replicates: list[Columns]) -> Columns:
    infits = np.array([statistics["infit"] for statistics in replicates])
    outfits = np.array([statistics["outfit"] for statistics in replicates])
    infit = observed["infit"]
    infit_band = band(infit, infits)
    columns: Columns = {f"infit_conditional_{name}": values for name, values in infit_band._asdict().items()}
    columns |= {
        f"outfit_conditional_{name}": values for name, values in band(observed["outfit"], outfits)._asdict().items()
    }
    off = infit - (infit_band.low + infit_band.high) / 2
    return columns | verdict(student_p(infit, infits), off, infit)


def _fitted_thresholds(responses: Responses, scale_of_item: Ints | None) -> Floats:
    """The thresholds of the same model; NaN of a rating scale with a category that nobody chose in this replicate."""
    if scale_of_item is None:
        return spectral_fit(responses, se="none").thresholds
    try:
        return SpectralRatingScale(groups=scale_of_item.tolist()).fit(responses).thresholds_
    except DesignError:
        return np.full(responses.thresholds.n_entries, np.nan)


def band(observed: Floats, drawn: Floats) -> Band:
    """Limits at the ranks that the observed value would have below with probability 2.5%, and its two-sided p by rank.

    Under the model the observed value is one more replicate: it is equally likely to take any of R + 1 ranks.
    """
    counts = np.isfinite(drawn).sum(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # statistics that no replicate has are NaN
        low, high = np.nanquantile(drawn, (LEVEL / 2, 1 - LEVEL / 2), axis=0, method="weibull")
    too_few = counts < FEWEST_REPLICATES  # for ranks so far out
    below = (drawn <= observed).sum(axis=0)
    above = (drawn >= observed).sum(axis=0)
    p = np.minimum(2 * (np.minimum(below, above) + 1) / (counts + 1), 1.0)
    return Band(
        low=np.where(too_few, np.nan, low),
        high=np.where(too_few, np.nan, high),
        p=np.where(np.isfinite(observed) & (counts > 0), p, np.nan),
    )


def student_p(observed: Floats, drawn: Floats) -> Floats:
    """Two-sided p of a value as far from the mean of the replicates, by Student's distribution; NaN where they are all
    alike. It can be as small as may be, and be adjusted for asking of many items, which ranks among some hundred
    replicates cannot."""
    has_value = np.isfinite(drawn)
    counts = has_value.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(has_value, drawn, 0.0).sum(axis=0) / counts
        variance = np.where(has_value, (drawn - mean) ** 2, 0.0).sum(axis=0) / (counts - 1)
        t = np.abs(observed - mean) / np.sqrt(variance * (1 + 1 / counts))
        return np.where((counts > 1) & (variance > 0), 2 * scipy.special.stdtr(counts - 1.0, -t), np.nan)
