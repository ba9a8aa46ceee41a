"""People in groups: one label for each, in their order or by their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import OptionError, listed
from spectral_irt.responses.block import Ints
from spectral_irt.responses.labels import positions
from spectral_irt.responses.responses import Responses


@dataclass(frozen=True, eq=False)
class Split:
    """People in groups.

    Attributes
    ----------
    names : tuple of str
        What each group is called.
    group : int array
        Each person's group: a position in `names`, or -1 for a person in none.
    """

    names: tuple[str, ...]
    group: Ints

    @property
    def n_groups(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> Ints:
        """People in each group."""
        return np.bincount(self.group[self.group >= 0], minlength=self.n_groups)

    def members(self, group: int) -> NDArray[np.bool_]:
        """Which people are in this group."""
        return self.group == group

    def keep(self, groups: NDArray[np.bool_]) -> Split:
        """These groups only; people of the others are in none."""
        code = np.append(np.where(groups, np.cumsum(groups) - 1, -1), -1)
        return Split(tuple(np.array(self.names, dtype=object)[groups]), code[self.group])


def by_label(responses: Responses, labels: Any) -> Split:
    """Groups of equal labels: one for each person in order, or a mapping from person to label.

    >>> by_label(Responses.from_wide([[1, 0], [0, 1], [1, 1]]), ["b", None, "a"])
    Split(names=('a', 'b'), group=array([ 1, -1,  0]))
    """
    if isinstance(labels, Mapping):
        known = responses.users.tolist()
        place = positions(known, labels)
        if not (place >= 0).any():
            raise OptionError(
                f"none of the {len(labels):,} people in the groups ({listed(labels)}) is in {responses.source} "
                f"({listed(known)}). Check that both name people alike."
            )
        values = list(labels.values())
        column = [values[k] if k >= 0 else None for k in place]
    else:
        array = np.asarray(labels, dtype=object) if isinstance(labels, list | tuple) else np.asarray(labels)
        if array.ndim != 1 or len(array) != responses.n_users:
            shape = f"{len(array):,} labels" if array.ndim == 1 else f"an array of shape {array.shape}"
            raise OptionError(
                f"the groups are {shape}, and {responses.source} has {responses.n_users:,} people; give one label for "
                "each person, in their order, or a mapping from person to label."
            )
        column = array.tolist()
    missing = np.array([_is_missing(label) for label in column], dtype=bool)
    levels = sorted({label for label, gone in zip(column, missing, strict=True) if not gone}, key=_order)
    group = np.full(len(column), -1, dtype=np.int64)
    group[~missing] = positions((label for label, gone in zip(column, missing, strict=True) if not gone), levels)
    return Split(tuple(map(str, levels)), group)


def _is_missing(label: Any) -> bool:
    if label is None or str(label) in ("", "<NA>"):  # pandas' missing value compares to nothing
        return True
    return bool(label != label)  # NaN is the value that differs from itself


def _order(label: Any) -> tuple[bool, Any]:
    return (isinstance(label, str), label)
