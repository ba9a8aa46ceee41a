"""How many people have which ability: stretches of the scale that show it without gaps."""

from __future__ import annotations

import numpy as np

from spectral_irt.data.block import Floats

MOST = 36  # bars


def ability_edges(ability: Floats, low: float, high: float) -> Floats:
    """Limits of the bars from `low` to `high`: equal ones, or a bar for each ability where those are few.

    On a short test everybody with the same score has the same ability; bars of equal width would hold one score here
    and two there.

    >>> ability_edges(np.array([-1.0, 0.0, 0.0, 2.0]), -3.0, 3.0).tolist()
    [-3.0, -0.5, 1.0, 3.0]
    """
    different = np.unique(np.clip(ability, low, high).round(4))
    if len(different) > MOST:
        return np.linspace(low, high, MOST + 1)
    between = (different[1:] + different[:-1]) / 2
    return np.concatenate([[low], between, [high]])
