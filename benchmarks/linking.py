"""Are the standard errors of a link right, and are drifted items found?

    python benchmarks/linking.py [--replicates 400] [--people 300,1000] [--categories 2] [--keep bank] [--anchors]

Two test forms with items in common and 10 more of their own, answered by people who differ in mean ability by half a
logit. Each is calibrated on its own, and the second is linked to the first. Answers are right or wrong, or in so many
categories. `--keep` is what is linked: fits with their covariance matrices (`fit`), banks with their information
matrices (`bank`), or calibrations of which only standard errors are known (`se`).

covered: the 95% interval of the shift has the truth in it; ratio: mean standard error over the spread of the shifts;
items: the 95% intervals of the second form's items, on the scale of the first, have the truth in them; false: items
that did not drift and are said to have; found: runs in which 4 of 5 drifted items or more are named.

`--anchors` instead: how often 95% intervals of 8 new items have the truth in them, which 2,000 people answer beside 6
anchors from a calibration of 12 items with 130 people, with their errors or as plain numbers.
"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import Any

import numpy as np

import draws
import harness
from spectral_irt import Responses, SpectralPartialCredit, SpectralRasch, anchored_fit, link, simulate
from spectral_irt.bank.build import without_data
from spectral_irt.conditional.likelihood import Likelihood

OWN = 10  # items that only one form has
# name: common items, share of the items of a form that each person answers, common items that drift, by how much
DRIFTS = ((2, 15, 0.8), (5, 15, 0.8), (6, 15, 0.8), (5, 15, 1.2), (6, 15, 1.2), (4, 40, 1.2))
DESIGNS: dict[str, tuple[int, float, int, float]] = {
    **{f"{n} common items": (n, 1.0, 0, 0.0) for n in (4, 15, 40)},
    "15 common items (half answered)": (15, 0.5, 0, 0.0),
    **{f"{some} of {n} drifted by {by}": (n, 1.0, some, by) for some, n, by in DRIFTS},
}


def forms(design: str, people: int, categories: int, seed: int) -> tuple[Any, ...]:
    """Responses to both forms, the true difficulties of each, and which items of the second have drifted."""
    common, share, drifted, by = DESIGNS[design]
    rng = np.random.default_rng([seed, common, people])
    truth = rng.normal(size=common + 2 * OWN)
    a, b = np.arange(common + OWN), np.r_[:common, common + OWN : common + 2 * OWN]
    moved = np.isin(b, rng.permutation(common)[:drifted])
    data = []
    for items, level, shift in ((a, 0.0, 0.0), (b, 0.5, by * moved)):
        options = {"ability_mean": level, "seed": int(rng.integers(2**31))}
        if share < 1:
            options |= {"design": "sampled", "p": share}
        made = draws.simulated(categories, people, truth[items] + shift, **options)
        data.append(replace(made.responses, items=items))
    return data[0], data[1], truth[a], truth[b] + by * moved, moved


def calibrated(data: Responses, keep: str) -> Any:
    fit = (SpectralRasch if data.thresholds.binary else SpectralPartialCredit)().fit(data)
    if keep == "fit":
        return fit
    alone = fit.calibration_.replace(threshold_covariance=None)
    if keep == "se":
        return alone
    # As Bank.from_fit makes it, but for the population, which takes most of the time and has no part in a link.
    bank, at = without_data(alone), alone.thresholds
    return replace(bank, evidence=replace(bank.evidence, matrix=Likelihood(data, at).at(at).dense()))


def study(design: str, people: int, asked: Namespace) -> harness.Row:
    """What came of so many replicates."""
    found = []
    for seed in asked.seeds:
        first, second, a, b, moved = forms(design, people, asked.categories, seed)
        other = calibrated(second, asked.keep)
        made = link(calibrated(first, asked.keep), other)
        truth, covered = b - a.mean(), np.nan  # of the second form, on the scale of the first
        if asked.keep == "bank":
            linked = made.apply(other)
            covered = np.mean(np.abs(linked.difficulty - truth) < 1.96 * linked.se)
        item = np.array([int(str(label).split(" ")[0]) for label in made.item])  # "3 [2]" is a threshold of item 3
        drifted, named = np.isin(item, second.items[moved]), np.unique(item[made.drift])
        off, false = made.shift - truth.mean(), made.drift[~drifted].mean()
        found.append((off, made.shift_se, covered, false, np.isin(named, second.items[moved]).sum()))
    off, errors, items, false, named = np.array(found).T
    drifted = DESIGNS[design][2]
    return {
        "design": design,
        "people": people,
        "covered": float(np.mean(np.abs(off) < 1.96 * errors)),
        "ratio": float(errors.mean() / off.std()),
        "bias": float(off.mean()),
        "items": float(items.mean()),
        "false": float(false.mean()),
        "found": float(np.mean(named >= min(4, drifted - 1))) if drifted else float("nan"),
    }


def anchored(seed: int) -> dict[str, float]:
    """Shares of new items covered: anchors with their errors, and as plain numbers."""
    rng = np.random.default_rng([seed, 12])
    truth = rng.normal(size=20)
    truth[:12] -= truth[:12].mean()
    first = simulate.rasch(130, difficulty=truth[:12], seed=int(rng.integers(2**31))).responses
    old = SpectralRasch(regularization=0).fit(first)
    both = np.r_[:6, 12:20]
    new = simulate.rasch(2000, difficulty=truth[both], seed=int(rng.integers(2**31))).responses
    shares = {}
    for name, anchors in (("with errors", old), ("as numbers", dict(enumerate(old.difficulty_[:6].tolist())))):
        fit = anchored_fit(replace(new, items=both), anchors)
        shares[name] = float(np.mean(np.abs(fit.difficulty_ - truth[both])[6:] < 1.96 * fit.se_[6:]))
    return shares


if __name__ == "__main__":
    options: dict[str, Any] = {"people": (300, 1000), "categories": 2, "keep": "bank", "anchors": False}
    asked = harness.arguments(__doc__, replicates=400, designs=tuple(DESIGNS), **options)
    if asked.keep not in ("fit", "bank", "se"):
        raise SystemExit("--keep is fit, bank or se")
    if asked.anchors:
        harness.study("Coverage of new items", [({"anchors": "6 of 12, 130 people"}, anchored)], asked)
    else:
        rows = (study(design, people, asked) for design in asked.designs for people in asked.people)
        harness.show(f"Links: {asked.replicates} replicates, keeping: {asked.keep}", rows, asked)
