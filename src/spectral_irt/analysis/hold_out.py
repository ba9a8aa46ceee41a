"""Persons held out while changes are chosen: moves are chosen on some persons, all numbers are from the others.

Who looks for the item with the largest DIF, splits it, and tests again on the same responses finds what chance put
there. With a hold-out the looking is done on one part of the persons, drawn at random, and the fit that is reported is
of the other part, with the moves made there as they were chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectral_irt.data import Responses
from spectral_irt.data.block import Ints
from spectral_irt.errors import DesignError, Finding, OptionError
from spectral_irt.inference.groups.sampling import cluster_numbers
from spectral_irt.text import count

if TYPE_CHECKING:
    from spectral_irt.analysis.analysis import Analysis

FEWEST = 20  # persons in a part; fewer are surely a mistake


class HoldOut(NamedTuple):
    """How persons were divided: the share held out for the results, the seed, and how many are in each part.

    `for_choice` says that the fit is of the persons on whom changes may be chosen.
    """

    share: float
    seed: int
    n_for_choice: int
    n_for_results: int
    for_choice: bool = False

    @property
    def sentence(self) -> str:
        """What Methods and report say."""
        everybody = count(self.n_for_choice + self.n_for_results, "person", "persons")
        if self.for_choice:
            return (
                f"This is the fit of {self.n_for_choice:,} of {everybody}, drawn at random (seed {self.seed}), on whom "
                f"changes may be chosen; the other {self.n_for_results:,} are held out for the results."
            )
        return (
            f"All numbers are from {self.n_for_results:,} of {everybody}, drawn at random (seed {self.seed}), who were "
            f"held out while changes were chosen on the other {self.n_for_choice:,}."
        )

    @property
    def finding(self) -> Finding:
        remedy = ""
        if self.for_choice:
            remedy = "Name the changes, with the same `hold_out` and seed, to have the results of the others."
        return Finding("held_out", "note", self.sentence, remedy)


class Parts(NamedTuple):
    """Positions of the persons on whom changes are chosen, and of those who give the results."""

    for_choice: Ints
    for_results: Ints

    def hold_out(self, share: float, seed: int) -> HoldOut:
        return HoldOut(share, seed, len(self.for_choice), len(self.for_results))


class Halves(NamedTuple):
    """The analysis on which changes are chosen, and the one that gives the results."""

    for_choice: Analysis
    for_results: Analysis


def check_share(share: float) -> None:
    if not 0 < share < 1:
        raise OptionError(f"`hold_out` is {share:g}; it is the share of persons held out, as in 0.5.")


def divide_persons(n_persons: int, share: float, seed: int, cluster: Ints | None = None) -> Parts:
    """The persons in two parts at random. Persons of a cluster (a class) stay together: else the choice would know
    something of the others."""
    check_share(share)
    if cluster is None:
        cluster = np.arange(n_persons)
    names, cluster_of_person = np.unique(np.asarray(cluster), return_inverse=True)
    n_held_out = round(share * len(names))
    held_out = np.zeros(len(names), dtype=bool)
    held_out[np.random.default_rng(seed).permutation(len(names))[:n_held_out]] = True
    is_held_out = held_out[cluster_of_person]
    parts = Parts(np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out))
    if min(map(len, parts)) < FEWEST:
        raise DesignError(
            f"`hold_out` of {share:g} leaves {len(parts.for_choice):,} persons to choose changes on and "
            f"{len(parts.for_results):,} for the results; it takes {FEWEST} in each part."
        )
    return parts


def divided_by_label(responses: Responses, share: float, seed: int, clusters: Sequence[Any] | None) -> Parts:
    """The same of responses, where clusters have labels; a person without one is a cluster alone."""
    if clusters is None:
        return divide_persons(responses.n_persons, share, seed)
    return divide_persons(responses.n_persons, share, seed, cluster_numbers(responses, clusters))


def hold_out_of_record(record: Any) -> HoldOut | None:
    """Who was held out, as a record of a fit has it."""
    return None if not record else HoldOut(**record)
