"""The fit of every item as columns of a table, and the decision which items misfit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.errors import listed
from spectral_irt.inference.fit.bootstrap import bootstrap as run_bootstrap
from spectral_irt.inference.fit.mean_squares import ConditionalStatistics, ItemStatistics, conditional_statistics
from spectral_irt.inference.probability import benjamini_hochberg, quantile, two_sided
from spectral_irt.inference.results import EACH
from spectral_irt.tables import Columns

LEVEL = 0.05
MATERIAL = 0.1  # infit closer to 1 than this is not a misfit that matters, however sure it is


def item_fit_columns(
    calibration: Calibration,
    usual: ItemStatistics,
    given: ConditionalStatistics | None = None,
    limits: Columns | None = None,
) -> Columns:
    """The conventional statistics of every item, the conditional ones and their limits where given, and the verdict.

    An item that was not properly estimated (its status is neither "ok" nor "anchored") has no fit.
    """
    squares = usual.mean_squares
    columns: Columns = {
        "infit": squares.infit,
        "infit_z": squares.infit_z,
        "outfit": squares.outfit,
        "outfit_z": squares.outfit_z,
    }
    if given:
        columns |= {
            "infit_conditional": given.mean_squares.infit,
            "infit_conditional_z": given.mean_squares.infit_z,
            "outfit_conditional": given.mean_squares.outfit,
            "outfit_conditional_z": given.mean_squares.outfit_z,
        }
    columns |= {
        "point_measure": usual.point_measure,
        "point_measure_expected": usual.point_measure_expected,
        "exact_match": usual.exact_match,
        "exact_match_expected": usual.exact_match_expected,
        "displacement": usual.displacement,
    }
    if given:
        columns["displacement_conditional"] = given.displacement
    columns |= limits or {}
    for name, values in columns.items():
        columns[name] = np.where(calibration.measured, values, "" if values.dtype == object else np.nan)
    if given and limits is None:
        columns |= judged(columns)
    return {"item": calibration.labels, "n": squares.n.astype(np.int64), **columns}


def judged(columns: Columns) -> Columns:
    """Which items misfit, by the standardized conditional infit: `misfit_p`, `misfit`.

    `misfit_p` is its two-sided p, adjusted for asking of every item (Benjamini & Hochberg). Below 1% (this is one of
    five checks, which are to alarm in 5% of good data sets together) the item is noisier than the model says
    ("underfit") or steeper ("overfit"), provided that the infit is off by a tenth or more: with very many answers the
    slightest misfit is sure, and matters no more for that. Outfit has no say: a few surprises by chance give an item
    off target a standardized outfit beyond 5 (15 of 27,000 good items, simulated).
    """
    infit, z = columns["infit_conditional"], columns["infit_conditional_z"]
    return _verdict(benjamini_hochberg(two_sided(z)), z, np.abs(infit - 1) >= MATERIAL)


def _verdict(p: Floats, off: Floats, material: NDArray[np.bool_]) -> Columns:
    misfit = np.full(len(p), "", dtype=object)
    flagged = (p < EACH) & material
    misfit[flagged & (off > 0)] = "underfit"
    misfit[flagged & (off < 0)] = "overfit"
    return {"misfit_p": p, "misfit": misfit}


def misfit_findings(columns: Columns, bootstrap: int = 0) -> tuple[Finding, ...]:
    """A warning that names the misfitting items, if there are any."""
    labels, flagged = columns["item"], columns["misfit"] != ""
    if not flagged.any():
        return ()
    parts = []
    for word in ("underfit", "overfit"):
        chosen = np.flatnonzero(columns["misfit"] == word)
        if len(chosen):
            first = np.argsort(-np.abs(columns["infit_conditional_z"][chosen]), kind="stable")
            parts.append(f"{word} {listed(labels[chosen[first]])}")
    number, known = int(flagged.sum()), int(np.isfinite(columns["infit_conditional"]).sum())
    drawn = f" ({bootstrap:,} simulated data sets, adjusted for asking of {known:,} items)" if bootstrap else ""
    verb = "misfits" if number == 1 else "misfit"
    return (
        Finding(
            "misfitting_items",
            "warning",
            f"{number:,} of {known:,} items {verb} beyond chance{drawn}: {'; '.join(parts)}.",
            "Read these items; item_fit.csv has the numbers.",
            tuple(labels[flagged].tolist()),
        ),
    )


def bootstrap_limits(
    responses: Responses,
    beta: Floats,
    replicates: int,
    *,
    level: float = LEVEL,
    sample: int | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Columns:
    """Critical values of the conditional mean squares of every item from data sets drawn under the model.

    `infit_conditional_low, .._high, .._p` and the same for outfit are about one item: 5% of good items are outside.
    `misfit_p` is adjusted for asking of all of them (Benjamini & Hochberg), and `misfit` goes by it where the infit is
    off by a tenth or more, as in `judged`: "underfit" (noisier than the model), "overfit" (steeper), or "".
    """

    def statistic(answers: Responses, difficulty: Floats) -> dict[str, Floats]:
        squares = conditional_statistics(answers, difficulty).mean_squares
        return {"infit_conditional": squares.infit, "outfit_conditional": squares.outfit}

    bands = run_bootstrap(
        responses, beta, statistic, replicates=replicates, level=level, sample=sample, seed=seed, progress=progress
    )
    columns: Columns = {}
    for name, found in bands.items():
        columns |= {f"{name}_low": found.low, f"{name}_high": found.high, f"{name}_p": found.p}
    infit = bands["infit_conditional"]
    off = infit.observed - (infit.low + infit.high) / 2
    return columns | _verdict(benjamini_hochberg(infit.tail), off, np.abs(infit.observed - 1) >= MATERIAL)


def outside_limits(columns: Columns) -> tuple[int, float]:
    """Items whose infit is outside its own bootstrap limits, and how many good items would be."""
    infit, low, high = (columns[f"infit_conditional{end}"] for end in ("", "_low", "_high"))
    known = np.isfinite(infit) & np.isfinite(low) & np.isfinite(high)
    return int(np.sum(known & ((infit < low) | (infit > high)))), LEVEL * int(known.sum())


def detectable(infit_se: Floats) -> Floats:
    """How far from 1 the infit of each item must be to be found with a probability of 80%, all items being asked."""
    asked = max(int(np.isfinite(infit_se).sum()), 1)
    return float(quantile(1 - EACH / (2 * asked)) + quantile(0.8)) * infit_se
