"""People of several populations: who is in which, whether the groups can be compared, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.data import Finding, Responses
from spectral_irt.data.labels import Split, by_label
from spectral_irt.errors import DisconnectedDesignError, OptionError, listed
from spectral_irt.tables import Columns

EVERYBODY, NOBODYS = "all", "no group"
MOST_GROUPS = 100  # beyond, the labels are more likely names than groups, and a population needs people
FEW = 30  # people; a mean and a standard deviation from fewer say little
SHOWN = 12  # groups named in a sentence


@dataclass(frozen=True, eq=False)
class People:
    """The responses of each group, over the same items."""

    split: Split
    answers: tuple[Responses, ...]
    findings: tuple[Finding, ...] = ()


def people_by_group(responses: Responses, labels: Any) -> People:
    """The people of every group that answered anything; those without a label are a group of their own."""
    if labels is None:
        everyone = Split((EVERYBODY,), np.zeros(responses.n_persons, dtype=np.int64))
        return People(everyone, (responses,))
    split = by_label(responses, labels)
    without = split.group < 0
    if without.any():
        split = Split((*split.names, NOBODYS), np.where(without, split.n_groups, split.group))
    # Somebody without answers is in no population; a place among the others does no harm.
    occupied = np.bincount(split.group[responses.counts > 0], minlength=split.n_groups) > 0
    split = split.keep(occupied)
    split = Split(split.names, np.maximum(split.group, 0))
    if split.n_groups > MOST_GROUPS:
        raise OptionError(
            f"there are {split.n_groups:,} groups ({listed(split.names)}); at most {MOST_GROUPS} can have a population "
            "each. Merge them into a few, each of some hundred people."
        )
    parts = tuple(responses.take_persons(split.members(g)) for g in range(split.n_groups))
    _check_linked(parts, split.names)
    findings = []
    if NOBODYS in split.names:
        n = int(np.sum(without & (responses.counts > 0)))
        findings.append(
            Finding(
                "people_without_group",
                "note",
                f"{n:,} {'person is' if n == 1 else 'people are'} in none of the groups, and taken as one together.",
            )
        )
    return People(split, parts, tuple(findings))


def _check_linked(parts: tuple[Responses, ...], names: tuple[str, ...]) -> None:
    """Means of groups can be compared only through items in common."""
    from scipy.sparse.csgraph import connected_components

    met = sparse.csr_array(np.array([part.item_counts > 0 for part in parts]).astype(np.int8))
    _, label = connected_components(sparse.block_array([[None, met], [met.T, None]]), directed=False)
    label = label[: len(parts)]
    if len(np.unique(label)) > 1:
        first = listed(np.array(names)[label == label[0]])
        rest = listed(np.array(names)[label != label[0]])
        raise DisconnectedDesignError(
            f"{parts[0].source}: the groups {first} have no item in common with {rest}, directly or through others, so "
            "that their abilities cannot be compared. Fit them on their own, or leave the groups out if all people are "
            "from one population."
        )


def population_findings(table: Columns, estimated: bool) -> list[Finding]:
    """The means and standard deviations of the groups, and which groups are small for them."""
    rows = list(zip(table["group"], table["mean"], table["sd"], strict=True))
    said = "; ".join(f"{group}: {mean:z.2f}, {sd:.2f}" for group, mean, sd in rows[:SHOWN])
    more = f"; and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    what = "mean and standard deviation" if estimated else "mean, and the standard deviation that was given,"
    found = [Finding("populations", "note", f"Ability in the {len(rows)} groups, {what}: {said}{more}.")]
    small = np.array(table["group"])[np.array(table["n"]) < FEW]
    if len(small):
        found.append(
            Finding(
                "small_groups",
                "warning",
                f"{listed(small)} {'has' if len(small) == 1 else 'have'} fewer than {FEW} people, too few to tell a "
                "mean and a standard deviation of ability.",
                "Merge small groups.",
            )
        )
    return found
