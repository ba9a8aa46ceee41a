"""How often tests of fit alarm at 5% in data that fit: by draws given the score, and by large-sample distributions.

    python benchmarks/critical.py [--parts ordered,few,missing] [--draws-alone] [--replicates 500] [--seed 0]

Shares of items, pairs and persons with a p-value of 5% or less; shares of data sets where that of any item, adjusted
for all, is, that of any pair, of the first contrast, of Martin-Löf's test (complete right and wrong answers), and of
the number of persons who misfit. 199 draws in each data set: p-values by rank keep the level with any number. Each data
set has draws of its own: with the same ones for all, a level is that of one sample of draws, .05 with a standard error
of .015. `--draws-alone` leaves out what is compared with a chi-squared distribution.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import harness
from draws import Rng, simulated
from spectral_irt import Responses, SpectralPartialCredit, SpectralRasch
from spectral_irt.analysis.analysis import Analysis
from spectral_irt.analysis.cache import columns_of
from spectral_irt.inference.groups.martin_loef import martin_loef
from spectral_irt.inference.results import adjust_p, two_sided

DRAWS = 199
LEVEL = 0.05
DESIGNS = {
    "150 x 10 x 4 categories": (150, 10, 4, 0.0),
    "60 x 8": (60, 8, 2, 0.0),
    "1,000 x 20, 30% missing": (1000, 20, 2, 0.3),
}
PARTS = dict(zip(("ordered", "few", "missing"), DESIGNS, strict=True))


def responses_of(design: str, rng: Rng) -> Responses:
    people, items, categories, missing = DESIGNS[design]
    location = np.linspace(-1.5, 1.5, items)
    data = simulated(categories, people, location, seed=int(rng.integers(2**31))).responses
    x = data.to_dense()
    x[rng.random(x.shape) < missing] = np.nan
    return Responses.from_wide(x, ordered=categories > 2)


def replicate(design: str, alone: bool, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, list(DESIGNS).index(design)])
    responses = responses_of(design, rng)
    estimator = SpectralRasch if responses.thresholds.binary else SpectralPartialCredit
    study = estimator(se="none").fit(responses).analyse(responses)
    found = by_draws(study, seed)
    if not alone:
        found |= by_chi_squared(study, seed)
    return found


def by_draws(study: Analysis, seed: int) -> dict[str, Any]:
    """Fit of items and persons, pairs and the first contrast."""
    critical = study._critical(DRAWS, None, seed)
    found: dict[str, Any] = {}
    for name in ("infit_conditional", "outfit_conditional", "item_rest"):
        short = name.removesuffix("_conditional")
        found[f"{short} one item"] = float(np.mean(critical.items[f"{name}_p"] <= LEVEL))
        found[f"{short} any item"] = float(np.nanmin(critical.items[f"{name}_p_family"]) <= LEVEL)
    shared = study._dimensionality(draws=DRAWS, seed=seed)
    found["Q3 any pair"] = float(shared.dependence.test.p.min() <= LEVEL)
    found["Q3 one pair"] = float(np.mean(shared.dependence.test.p_alone <= LEVEL))
    found["first contrast"] = float(shared.contrasts.p[0] <= LEVEL)
    for name in ("infit_p", "outfit_p"):
        found[f"{name[:-2]} one person"] = float(np.nanmean(critical.persons[name] <= LEVEL))
    if critical.misfit is not None:
        found["misfitting persons"] = float(critical.misfit.p <= LEVEL)
    return found


def by_chi_squared(study: Analysis, seed: int) -> dict[str, Any]:
    """Normal and chi-squared distributions, beside draws where these take their place; and Smith's t-tests."""
    responses = study.responses
    fit = columns_of(study.item_fit)
    found: dict[str, Any] = {}
    for name in ("infit", "outfit"):
        p = two_sided(fit[f"{name}_conditional_z"])
        found[f"{name} one item normal"] = float(np.mean(p <= LEVEL))
        found[f"{name} any item normal"] = float(np.nanmin(adjust_p(p, "holm")) <= LEVEL)
    for method, draws in (("", DRAWS), (" chi-squared", 0)):
        classes = study._item_trait(critical=draws, seed=seed)
        found[f"item-trait one item{method}"] = float(np.nanmean(classes.columns["p"] <= LEVEL))
        found[f"item-trait all items{method}"] = float(classes.p <= LEVEL)
    found["item-trait one item RUMM"] = float(np.nanmean(classes.columns["p_rumm"] <= LEVEL))
    found["item-trait one item F"] = float(np.nanmean(classes.columns["p_f"] <= LEVEL))
    smith = study._smith(study.parts(fit=True))
    if smith is not None:
        found["t-tests (Smith)"] = smith.share
        found["interval above 5% (Smith)"] = float(smith.ci_low > LEVEL)
    if responses.thresholds.binary and (responses.counts == responses.n_items).all():
        split = np.arange(responses.n_items) % 2
        test = martin_loef(responses, split, draws=DRAWS, seed=seed)
        found["Martin-Löf"] = float(test.p <= LEVEL)
        found["Martin-Löf chi-squared"] = float(test.p_chi2 <= LEVEL)
    return found


if __name__ == "__main__":
    asked = harness.arguments(__doc__, parts=tuple(PARTS), draws_alone=False, replicates=500)
    designs = [PARTS[part] for part in asked.parts]
    cases = [({"data": design}, partial(replicate, design, asked.draws_alone)) for design in designs]
    harness.study("Alarms at 5% in data that fit", cases, asked)
