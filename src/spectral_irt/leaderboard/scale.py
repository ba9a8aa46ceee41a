"""The scale on which a board shows abilities: logits with mean zero, Elo, or through a model whose value is given.

On the Elo scale a logit is 400 / ln 10 = 173.7 points: 400 points more are odds of 10 to 1. Without an anchor the mean
is 1000. `Leaderboard` and `Pairs` show their tables by it; ranks, tiers and p-values do not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from spectral_irt.calibration import LOGITS, Scale
from spectral_irt.data.block import Floats
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError, check_option
from spectral_irt.text import did_you_mean, listed

LOGIT = "logit"
ELO = "elo"
ELO_UNIT = 400 / math.log(10)
ELO_MEAN = 1000.0


class Shown(NamedTuple):
    """Abilities and their standard errors as they are shown."""

    ability: Floats
    se: Floats


class BoardScale(NamedTuple):
    """How abilities are shown: `unit` points a logit, and the value of one of them, or of their mean."""

    name: str = LOGIT
    anchor: tuple[Any, float] | None = None

    @classmethod
    def of(cls, name: str, anchor: Mapping[Any, float] | None) -> BoardScale:
        """From the options `scale` and `anchor`."""
        check_option("scale", name, (LOGIT, ELO))
        if not anchor:
            return cls(name)
        if len(anchor) > 1:
            raise OptionError(f"`anchor` gives one value, that of one of them; it names {listed(anchor)}.")
        label, value = next(iter(anchor.items()))
        if not math.isfinite(value):
            raise OptionError(f"`anchor` gives {label!r} the value {value}; it is a number.")
        return cls(name, (label, float(value)))

    @property
    def scale(self) -> Scale:
        return Scale(ELO_MEAN, ELO_UNIT) if self.name == ELO else LOGITS

    def shown(self, labels: Any, ability: Floats, se: Floats, covariance: Floats | None) -> Shown:
        """Abilities in logits, with mean zero, on this scale; beside an anchor, whose error is 0, errors are those of
        differences from it."""
        scale = self.scale
        if self.anchor is None:
            return Shown(scale.measure(ability), scale.width(se))
        label, value = self.anchor
        k = int(positions([label], labels)[0])
        if k < 0:
            names = list(map(str, labels))
            raise OptionError(f"`anchor` names {label!r}, which is not there.{did_you_mean(label, names)}")
        variance = se**2 + se[k] ** 2
        if covariance is not None:
            variance = variance - 2 * covariance[k]
        finite = np.isfinite(se)
        difference_se = np.where(finite, np.sqrt(np.maximum(np.where(finite, variance, 0), 0)), se)
        difference_se[k] = 0.0
        return Shown(value + scale.width(ability - ability[k]), scale.width(difference_se))

    @property
    def words(self) -> str:
        """What the numbers are."""
        unit = "logits"
        if self.name == ELO:
            unit = "Elo points (173.7 a logit: 400 points are odds of 10 to 1)"
        if self.anchor is not None:
            return f"{unit}, with {self.anchor[0]} at {self.anchor[1]:g}"
        return f"{unit}, with mean {self.scale.mean:g}"
