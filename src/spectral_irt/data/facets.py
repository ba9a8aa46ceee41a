"""Facets: of which item, rater, occasion, ... each virtual item is a combination.

An answer that a rater gave to a person's work on an item is an answer to the virtual item (item, rater): one of those
that were met, so never more than there are answers. What a model says about raters and items is a design on these.

Readers of long tables make them (`facets=`); `estimators/linear_design.py` makes the design, `analysis/facets.py` the
tables of raters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import OptionError

SEPARATOR = " × "
MANY_COMBINATIONS = 20_000  # of items and raters, whose tables would take a gigabyte
# Columns of the tables about facets (a row for each level, interactions, the Wright map), and words for the items and
# the persons: a facet of such a name would be two columns of one table.
TAKEN_NAMES = frozenset({
    "item", "items", "person", "persons", "group", "threshold", "thresholds", "severity", "se", "n", "infit", "infit_z",
    "outfit", "outfit_z", "discrimination", "discrimination_se", "point_measure", "point_measure_expected",
    "observed_average", "fair_average", "subset", "status",
    "infit_conditional", "infit_conditional_z", "outfit_conditional", "outfit_conditional_z", "halo", "halo_z",
    "misfit", "agreement", "agreement_expected", "bias", "z", "p", "p_holm", "low", "high", "which", "expected_average",
    "category", "share", "expected", "mean_measure", "expected_measure", "response", "ability", "contrast",
    "other_item",
})  # fmt: skip


def check_facet_names(names: Sequence[str]) -> None:
    """An error where a column is named twice, or where results would have two columns of that name."""
    for k, name in enumerate(names):
        if name in names[:k]:
            raise OptionError(f"`facets` names the column {name!r} twice; name it once.")
        if name in TAKEN_NAMES:
            raise OptionError(
                f"the facet {name!r} has the name of a column of the results; rename it in the data, for instance to "
                f"{f'{name}_facet'!r}."
            )


@dataclass(frozen=True, eq=False)
class Facets:
    """Columns of the virtual items: names, "item" first; sorted levels; and codes, virtual items x columns."""

    names: tuple[str, ...]
    levels: tuple[NDArray[Any], ...]
    codes: Ints

    @property
    def item(self) -> Ints:
        return self.codes[:, 0]

    @property
    def items(self) -> NDArray[Any]:
        return self.levels[0]

    @property
    def first(self) -> Ints:
        """The first virtual item of each item: all have the same categories."""
        return np.unique(self.item, return_index=True)[1]

    @property
    def tables_fit(self) -> bool:
        """Whether each combination has tables of its own; the likelihood of more of them goes pattern by pattern."""
        return len(self.codes) <= MANY_COMBINATIONS

    @property
    def facet_names(self) -> tuple[str, ...]:
        """Those beside the items."""
        return self.names[1:]

    def column(self, name: str) -> tuple[NDArray[Any], Ints]:
        """The levels of a facet beside the items, and the level of each virtual item."""
        k = 1 + self.facet_names.index(name)
        return self.levels[k], self.codes[:, k]

    def check_distinct(self, source: str) -> None:
        """An error where two columns go together one to one: no ratings could tell what belongs to which of them."""
        for first, second in combinations(range(len(self.names)), 2):
            n_levels = len(self.levels[first])
            n_pairs = len(np.unique(self.codes[:, [first, second]], axis=0))
            if n_levels == len(self.levels[second]) == n_pairs > 1:
                other = "the item" if first == 0 else f"column {self.names[first]!r}"
                raise OptionError(
                    f"{source}: column {self.names[second]!r} says the same as {other}, a level of one for each of the "
                    "other, so that their effects cannot be told apart. Leave it out of `facets`."
                )

    def by_item(self, values: NDArray[Any]) -> NDArray[Any]:
        """The sum over the virtual items of each item; of numbers, or of rows."""
        total = np.zeros((len(self.items), *values.shape[1:]), dtype=values.dtype)
        np.add.at(total, self.item, values)
        return total

    def n_parameters(self, thresholds: int) -> int:
        """Of the design of items with so many thresholds each, and of every level of the others."""
        return thresholds * len(self.items) + sum(map(len, self.levels[1:]))

    def take(self, chosen: Ints) -> Facets:
        """Some of the virtual items, with the levels that are left."""
        levels_and_codes = [np.unique(codes, return_inverse=True) for codes in self.codes[chosen].T]
        levels = tuple(known[left] for known, (left, _) in zip(self.levels, levels_and_codes, strict=True))
        return Facets(self.names, levels, np.stack([code for _, code in levels_and_codes], axis=1))

    def labels(self) -> NDArray[Any]:
        columns = [levels[codes] for levels, codes in zip(self.levels, self.codes.T, strict=True)]
        return np.array([SEPARATOR.join(map(str, row)) for row in zip(*columns, strict=True)], dtype=object)


@dataclass(frozen=True, eq=False)
class FacetMeasures:
    """What was found about all facets: `of` each but the items, and the `items` themselves, a `Calibration`. Thresholds
    are `design` times parameters, which have the covariance `spread`, or these variances if they are many; `columns`
    are those of the items and of each facet in the design; `likeliest` are the thresholds at the maximum of the
    likelihood, with the prior if there is one, where score tests are made. `under_prior` says for each term of the
    design on which parameters a prior acts, whose values are posterior means, and `factor` by what the values of each
    term and their errors were multiplied to take off the bias of first order.

    Of each facet, in the order of its levels: `severity` in logits, larger = more severe; `se`; `status`, "ok",
    "anchored", "extreme" (placed by the prior) or "unlinked"; `subset`: who can be compared, 0 the largest.

    `subset_of_item` says which virtual items can be compared, and so which people: those rated on items of one subset.
    """

    facets: Facets
    of: Mapping[str, Mapping[str, NDArray[Any]]]
    items: Any
    design: Any
    spread: Floats
    columns: Mapping[str, slice]
    likeliest: Floats
    subset_of_item: Ints
    under_prior: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    factor: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_estimated(self) -> NDArray[np.bool_]:
        """Which parameters have an error: anchors have none."""
        variance = self.spread if self.spread.ndim == 1 else np.diag(self.spread)
        return np.asarray(variance != 0)

    @property
    def estimated_design(self) -> Any:
        """The columns of the design whose parameters take up something of what is looked at."""
        return self.design[:, np.flatnonzero(self.is_estimated)]
