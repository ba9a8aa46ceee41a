"""Which parts of an analysis are wanted where everything is shown or written, and which can be afforded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spectral_irt.data import Finding, Responses

QUICK = 1_000_000  # responses up to which people and fit are computed even when nothing is written
LONG = 2e11  # sum over people of squared answers; beyond, conditional fit takes minutes and must be asked for

TOO_LONG = Finding(
    "fit_left_out",
    "note",
    "The fit of the items was left out, because with so many answers per person it takes long.",
    "Say `fit=True` to have it all the same.",
)

NOT_GIVEN_SCORES = Finding(
    "fit_left_out",
    "note",
    "The fit of the items was left out: it looks at answers given the scores, and these answers chose the items.",
    "Say `fit=True` to have it all the same.",
)


@dataclass(frozen=True)
class Parts:
    """What a summary, a record and the files of an analysis hold besides the items.

    Attributes
    ----------
    persons, fit, item_analysis : bool
        People with reliability; the fit of the items, and the checks whether all fits; the classical statistics of the
        items, and with a key who chose which option.
    bootstrap, sample : int, int or None
        Data sets to simulate for the limits of the fit of each item (0: none), and people to take for them.
    top : int, optional
        Items by rank, with the chance of being among so many hardest.
    rank_by : str
        Their order: by "difficulty", or by the "lower" end of its interval.
    groups : mapping
        Names of groupings to the group of every person.
    draws, seed : int
        Of plausible values, where the analysis reports them ("pv"): for each person, and how they are drawn.
    populations : labels, optional
        The population that each person is from, where there are several.
    scores : bool
        Tables from raw score to ability, and unexpected answers: where persons are written.
    described : mapping
        Names of groupings to the group of every person, for the mean ability of each group.
    cuts, cut_raw : tuple of float, bool
        Where people are divided into classes, on the scale of report, or in raw scores.
    notes : tuple of Finding
        What to say about what was left out.
    """

    persons: bool = True
    fit: bool = True
    item_analysis: bool = True
    bootstrap: int = 0
    sample: int | None = None
    top: int | None = None
    rank_by: str = "difficulty"
    groups: Mapping[str, Any] = field(default_factory=dict)
    draws: int = 5
    seed: int = 0
    populations: Any = None
    scores: bool = False
    described: Mapping[str, Any] = field(default_factory=dict)
    cuts: tuple[float, ...] = ()
    cut_raw: bool = False
    notes: tuple[Finding, ...] = ()


def affordable(
    responses: Responses,
    *,
    persons: bool | None = None,
    fit: bool | None = None,
    writing: bool = False,
    adaptive: bool = False,
    **rest: Any,
) -> Parts:
    """The parts that were asked for; where nothing was said, those that do not take long or are to be written."""
    by_default = (writing or responses.n_responses <= QUICK) and responses.pair_work < np.inf
    notes: tuple[Finding, ...] = ()
    if fit is None:
        fit = by_default
        if fit and adaptive:
            fit, notes = False, (NOT_GIVEN_SCORES,)
        elif fit and responses.pair_work > LONG:
            fit, notes = False, (TOO_LONG,)
    persons = by_default if persons is None else persons
    asked = {"scores": persons and writing, **rest}
    return Parts(persons=persons, fit=fit, item_analysis=by_default, notes=notes, **asked)
