"""What a picture needs of an analysis, or a sentence that says why it cannot be had."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError, listed

if TYPE_CHECKING:
    from spectral_irt.analysis import Analysis
    from spectral_irt.analysis.ordered_analysis import OrderedAnalysis
    from spectral_irt.calibration import Calibration

CLOSE = 0.5  # likeness from which a name is suggested for another


def item_position(calibration: Calibration, item: Any) -> int:
    """Where this item is; an error that suggests similar names when there is none of this name."""
    place = int(positions([item], calibration.labels)[0])
    if place >= 0:
        return place
    texts = [str(label) for label in calibration.labels.tolist()]
    wanted = str(item)
    by_folded: dict[str, str] = {}
    for text in texts:
        by_folded.setdefault(text.casefold(), text)
    near = difflib.get_close_matches(wanted.casefold(), list(by_folded), n=3, cutoff=CLOSE)
    if near:
        hint = f"did you mean {' or '.join(repr(by_folded[one]) for one in near)}?"
    else:
        hint = f"the items are {listed(calibration.labels)}."
    raise OptionError(f"there is no item {listed([item])}; {hint}")


def on_scale(calibration: Calibration) -> Ints:
    """Positions of the items that have a place on the common scale; an error when there is none."""
    place = np.flatnonzero(calibration.known & (calibration.status != "apart"))
    if not len(place):
        raise OptionError(
            "no item has a finite difficulty on a common scale, so there is nothing to show. Look at the status of the "
            "items; an estimator with a prior gives every answered item a difficulty."
        )
    return place


def with_errors(calibration: Calibration) -> Ints:
    """Those that also have a finite standard error; an error when there is none."""
    place = on_scale(calibration)
    sure = place[np.isfinite(calibration.se[place])]
    if not len(sure):
        raise OptionError(
            "no item has a finite standard error, so there are no intervals to show. Fit with standard errors, and use "
            "items that are linked by people who answered several of them."
        )
    return sure


def known_abilities(study: Analysis | OrderedAnalysis) -> Floats:
    """Finite abilities of the people; an error when there is none."""
    if not study.responses.n_persons:
        raise OptionError("the analysis has no people, so their abilities cannot be shown. Give it responses.")
    found = study.abilities().ability
    known = found[np.isfinite(found)]
    if not len(known):
        raise OptionError(
            "nobody has a finite ability, so people cannot be shown: nobody answered an item that has a difficulty, or "
            "every score is extreme and abilities are by maximum likelihood ('ml'); 'wle' gives finite ones."
        )
    return known
