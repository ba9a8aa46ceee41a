"""Non-uniform differential functioning: does the difference between two groups depend on ability?

An item may be harder for one group among the less able and easier among the more able, and on the whole show nothing.
Each group is therefore divided at one common ability into a less able and a more able half, by the score on the items
answered, which leaves the estimates of each half consistent; the four parts are calibrated on their own, and

    interaction_i = contrast_i among the more able - contrast_i among the less able,

centered on the items that agree on it (`robust_center.py`), whose variance is the sum of those of the four parts.
Under the model it is zero, whether or not the item has a uniform difference. A positive one says that the item gets
harder for the focal group, compared with the reference group, as ability grows: it discriminates less there.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.labels import positions
from spectral_irt.errors import DesignError, listed
from spectral_irt.inference.groups.calibrations import calibrate_groups, locations_like
from spectral_irt.inference.groups.grouping import Split, divide
from spectral_irt.inference.probability import benjamini_hochberg, two_sided
from spectral_irt.inference.robust_center import robust_center
from spectral_irt.tables import Columns

NAMED = 5  # items that a sentence names
NAMES = ("interaction", "interaction_se", "interaction_p", "interaction_p_bh")


def nonuniform_columns(
    calibration: Calibration, responses: Responses, split: Split, items: NDArray[Any], min_people: int, level: float
) -> Columns:
    """`interaction, interaction_se, interaction_p, interaction_p_bh, nonuniform` of every item in every group but the
    first, the reference.

    NaN where a half has fewer than `min_people` people of mixed success, or an item has no difficulty in one of them.
    """
    values = np.full((3, split.n_groups - 1, len(items)), np.nan)
    cells = _cells(calibration, responses, split)
    inside = responses.informative & (cells.group >= 0)
    sizes = np.bincount(cells.group[inside], minlength=cells.n_groups).reshape(-1, 2)
    enough = sizes.min(axis=1) >= min_people
    if enough[0] and enough[1:].any():
        values[:, enough[1:]] = _interactions(calibration, responses, cells.keep(np.repeat(enough, 2)), items)
    interaction, se, p = values.reshape(3, -1)
    p_bh = benjamini_hochberg(p)
    columns: Columns = dict(zip(NAMES, (interaction, se, p, p_bh), strict=True))
    return {**columns, "nonuniform": p_bh < level}


def _cells(calibration: Calibration, responses: Responses, split: Split) -> Split:
    """The less able and the more able of each group, side by side, cut at the same ability."""
    half = divide(responses, "ability", difficulty=calibration.thresholds)
    code = np.where((split.group >= 0) & (half.group >= 0), 2 * split.group + half.group, -1)
    return Split(tuple(f"{name}, {part}" for name in split.names for part in half.names), code)


def _interactions(calibration: Calibration, responses: Responses, cells: Split, items: NDArray[Any]) -> Floats:
    """Interaction, standard error and p, 3 x focal groups x items, from pairs of cells of which the first is that of
    the reference group."""
    values = np.full((3, cells.n_groups // 2 - 1, len(items)), np.nan)
    kept = np.flatnonzero(positions(responses.items, items) >= 0)
    model = locations_like(calibration).of_items(responses.thresholds, kept)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = calibrate_groups(responses.take_items(kept), cells, model)
    except DesignError:  # the halves are too thin to be calibrated on their own
        return values
    place = positions(found.items, items)
    rise = found.difficulty[1::2] - found.difficulty[::2]
    errors = [found.errors(k) + found.errors(k + 1) for k in range(0, cells.n_groups, 2)]
    for row in range(values.shape[1]):
        apart, error = rise[row + 1] - rise[0], errors[row + 1] + errors[0]
        agreed = robust_center(apart, error, excess=False)
        se = np.sqrt(error.around(agreed.agrees / agreed.agrees.sum()))
        with np.errstate(divide="ignore", invalid="ignore"):
            p = two_sided(np.where(se > 0, (apart - agreed.center) / se, 0.0))
        values[:, row, place] = apart - agreed.center, se, p
    return values


def nonuniform_findings(columns: Columns) -> list[Finding]:
    """The items whose difference depends on ability; or that nobody looked."""
    known = np.isfinite(columns["interaction_p"])
    if not known.any():
        return [
            Finding(
                "nonuniform_not_tested",
                "note",
                "Whether differences depend on ability (non-uniform DIF) was not tested: the less able or the more "
                "able half of a group is too small.",
            )
        ]
    rows = np.flatnonzero(columns["nonuniform"])
    if not len(rows):
        return []
    rows = rows[np.argsort(-np.abs(columns["interaction"][rows]), kind="stable")]
    items = list(dict.fromkeys(columns["item"][rows].tolist()))
    one = len(items) == 1
    parts = []
    for row in rows[:NAMED]:
        pair = columns["group"][row], columns["reference"][row]
        harder, other = pair if columns["interaction"][row] > 0 else pair[::-1]
        size = abs(columns["interaction"][row])
        parts.append(f"{listed([columns['item'][row]])} harder for {harder!r} than for {other!r} by {size:.2f} logits")
    more = f"; and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
    return [
        Finding(
            "nonuniform_items",
            "warning",
            f"The difference depends on ability for {len(items):,} item{'' if one else 's'} (non-uniform DIF). It "
            f"grows from the less to the more able half: {'; '.join(parts)}{more}.",
            "Look whether they measure something else in one of the groups, or can be guessed there.",
            tuple(items),
        )
    ]
