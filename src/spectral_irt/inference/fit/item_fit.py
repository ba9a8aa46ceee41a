"""The fit of every item as columns of a table, and the decision which items misfit.

`Analysis.item_fit` shows the columns, with the statistics of `mean_squares.py` and the limits of `critical.py`; raters
and other facets are judged by the same `verdict`.
"""

from __future__ import annotations

import numpy as np
import scipy

from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding
from spectral_irt.data.block import Floats
from spectral_irt.estimators.anchored import DISPLACED
from spectral_irt.inference.results import EACH, adjust_p, two_sided
from spectral_irt.tables import Columns
from spectral_irt.text import listed, one_or_many

LEVEL = 0.05  # of the limits of one item
POWER = 0.8  # with which a misfit of `detectable` size is found
SQUARES = ("infit", "infit_z", "outfit", "outfit_z")
FURTHER = ("point_measure", "point_measure_expected", "exact_match", "exact_match_expected")
DISPLACEMENT = ("displacement", "displacement_se")
MATERIAL = 0.1  # infit closer to 1 than this is not a misfit that matters, however sure it is


def item_fit_columns(
    calibration: Calibration, usual: Columns, given: Columns | None = None, limits: Columns | None = None
) -> Columns:
    """The conventional statistics of every item, the conditional ones and their limits where given, and the verdict;
    with anchors also their displacement.

    An item that was not properly estimated (its status is neither "ok" nor "anchored") has no fit.
    """
    columns: Columns = {name: usual[name] for name in SQUARES}
    if given:
        columns |= {name.replace("fit", "fit_conditional"): given[name] for name in SQUARES}
    columns |= {name: usual[name] for name in FURTHER}
    # How far an anchor is off was found by the fit itself, and is nowhere computed in another way.
    columns |= {name: calibration.further[name] for name in DISPLACEMENT if name in calibration.further}
    columns |= limits or {}
    for name, values in columns.items():
        nothing = "" if values.dtype == object else np.nan
        columns[name] = np.where(calibration.measured, values, nothing)
    if given and limits is None:
        z = columns["infit_conditional_z"]
        p = two_sided(z)
        if "displacement" in columns:
            # z allows for an error of the location, to first order. A drifted anchor is judged once it is set free.
            p = np.where(np.abs(columns["displacement"]) > DISPLACED, np.nan, p)
        columns |= verdict(p, z, columns["infit_conditional"])
    return {"item": calibration.labels, "n": usual["n"].astype(np.int64), **columns}


def verdict(p: Floats, off: Floats, infit: Floats, level: float = EACH) -> Columns:
    """Which items misfit, by the p-values of their conditional infit: `misfit_p`, adjusted for asking of every item
    (Benjamini & Hochberg), and `misfit`: "underfit" (noisier than the model says), "overfit" (steeper) or "".

    An infit off by less than a tenth is no misfit that matters, however sure it is. Outfit has no say: a few surprises
    by chance give an item off target a standardized outfit beyond 5 (15 of 27,000 good items, simulated).
    """
    return misfit_columns(adjust_p(p, "bh"), off, infit, level)


def misfit_columns(misfit_p: Floats, off: Floats, infit: Floats, level: float = EACH) -> Columns:
    """`misfit_p, misfit`, from p-values that are adjusted for all items already."""
    misfit = np.full(len(misfit_p), "", dtype=object)
    flagged = (misfit_p < level) & (np.abs(infit - 1) >= MATERIAL)
    misfit[flagged & (off > 0)] = "underfit"
    misfit[flagged & (off < 0)] = "overfit"
    return {"misfit_p": misfit_p, "misfit": misfit}


def misfit_finding(columns: Columns, draws: int = 0) -> Finding:
    """A warning that names the misfitting items."""
    labels = columns["item"]
    size = np.abs(columns["infit_conditional_z"])
    misfits = []
    for word in ("underfit", "overfit"):
        items = np.flatnonzero(columns["misfit"] == word)
        if len(items):
            worst_first = items[np.argsort(-size[items], kind="stable")]
            misfits.append(f"{word} {listed(labels[worst_first])}")
    flagged = columns["misfit"] != ""
    n_flagged = int(flagged.sum())
    n_judged = int(np.isfinite(columns["infit_conditional"]).sum())
    method = ""
    if draws:
        method = f" ({draws:,} data sets drawn given the scores, adjusted for asking of {n_judged:,} items)"
    verb = one_or_many(n_flagged, "misfits", "misfit")
    sentence = f"{n_flagged:,} of {n_judged:,} items {verb} beyond chance{method}: {'; '.join(misfits)}."
    these = "this item" if n_flagged == 1 else "these items"
    remedy = f"Read {these}; `study.item_fit()` has the numbers."
    return Finding("misfitting_items", "warning", sentence, remedy, tuple(labels[flagged].tolist()))


def detectable(infit_se: Floats) -> Floats:
    """How far from 1 the infit of each item must be to be found with a probability of 80%, all items being asked."""
    n_items = max(int(np.isfinite(infit_se).sum()), 1)
    return float(scipy.special.ndtri(1 - EACH / (2 * n_items)) + scipy.special.ndtri(POWER)) * infit_se
