"""Linear designs: thresholds that are sums of what belongs to items, raters, occasions, properties of items.

delta_(i, r), k = delta_ik + rho_r: the virtual item (i, r) is as hard as the item, and as the rater is severe. Here is
how the matrix A of beta = A eta comes from a formula, and which of the parameters that the answers do not tell apart
are meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.conditional.linear import subsets, unidentified
from spectral_irt.conditional.newton import DENSE_PARAMETERS
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Mask
from spectral_irt.data.facets import Facets
from spectral_irt.data.labels import positions
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.errors import OptionError, listed

ITEMS = "items"  # the term of the items' thresholds
INTERACTION = ":"


@dataclass(frozen=True, eq=False)
class Term:
    """Some columns of a design: what one facet, or the items, add to a threshold.

    `labels` has one for each column (of the items' thresholds: the item of each, with its `level`). `group` says which
    columns have a common prior; -1 for none.
    """

    name: str
    labels: NDArray[Any]
    columns: slice
    group: Ints
    level: Ints | None = None
    weight: Floats | None = None  # of each column in the mean of the term, which is zero; None: it is no facet

    @property
    def size(self) -> int:
        return self.columns.stop - self.columns.start

    @property
    def interaction(self) -> bool:
        return INTERACTION in self.name


@dataclass(frozen=True)
class LinearDesign:
    """Thresholds as sums of terms, beta = A eta: items, raters, occasions, properties of items, interactions.

    Parameters
    ----------
    formula : str, optional
        Terms joined by `+`: `items` (the thresholds of every item), the name of a facet (`rater`), of a column of
        `properties`, or two of them joined by `:` (`items:rater`). By default `items` and every facet of the responses.
    properties : mapping from column to mapping from item to value, optional
        What is known of the items. Numbers count as they are, words each have an effect of their own. A formula
        without `items` is the linear logistic test model: properties alone say how hard an item is.
    anchors : mapping from term to mapping from level to value, optional
        Known severities of a facet, or difficulties of items with one threshold.

    Examples
    --------
    >>> LinearDesign("items + rater").terms
    ['items', 'rater']
    """

    formula: str | None = None
    properties: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)
    anchors: Mapping[str, Mapping[Any, float]] = field(default_factory=dict)

    @property
    def terms(self) -> list[str]:
        """The terms of the formula; nothing without one."""
        found = [part.strip() for part in (self.formula or "").split("+")]
        found = [":".join(one.strip() for one in part.split(INTERACTION)) for part in found if part]
        return [ITEMS if name == "item" else name for name in dict.fromkeys(found)]

    def of(self, responses: Responses, *, common_offsets: bool = False) -> DesignMatrix:
        """The matrix for these responses; with `common_offsets` items share the distances of their thresholds."""
        facets = responses.facets or alone(responses)
        names = self.terms or [ITEMS, *facets.names[1:]]
        made = _Columns(facets, responses.thresholds, self.properties)
        for name in names:
            made.add(name, common_offsets)
        if ITEMS not in names and not responses.thresholds.binary:
            made.add_offsets(common_offsets)
        matrix = sparse.csr_array(sparse.hstack(made.blocks))
        return DesignMatrix(matrix, tuple(made.terms), facets, made.real, *self._known(made.terms, matrix.shape[1]))

    def _known(self, terms: list[Term], size: int) -> tuple[Mask, Floats]:
        fixed, value = np.zeros(size, dtype=bool), np.zeros(size)
        for name, known in self.anchors.items():
            term = next((one for one in terms if one.name == (ITEMS if name == "item" else name)), None)
            if term is None or (term.level is not None and term.level.max(initial=1) > 1):
                raise OptionError(
                    f"there is no term {name!r} of single values to anchor; the design has "
                    f"{listed([one.name for one in terms])}."
                )
            place = positions(known, term.labels)
            absent = [label for label, k in zip(known, place.tolist(), strict=True) if k < 0]
            if absent:
                raise OptionError(f"anchors of {name!r} name levels that the answers do not have: {listed(absent)}.")
            fixed[term.columns.start + place] = True
            value[term.columns.start + place] = [float(number) for number in known.values()]
        return fixed, value


def alone(responses: Responses) -> Facets:
    """Responses without facets: each item is itself."""
    return Facets(("item",), (responses.items,), np.arange(responses.n_items)[:, None])


class _Columns:
    """The columns of a design, term by term."""

    def __init__(self, facets: Facets, layout: Thresholds, properties: Mapping[str, Mapping[Any, Any]]) -> None:
        self.facets, self.layout, self.properties = facets, layout, properties
        highest = np.zeros(len(facets.items), dtype=np.int64)
        np.maximum.at(highest, facets.item, layout.max_score)
        self.real = Thresholds(np.maximum(highest, 1))
        self.terms: list[Term] = []
        self.blocks: list[Any] = []
        self.groups = 0

    def add(self, name: str, common_offsets: bool) -> None:
        if name == ITEMS and common_offsets:
            self._indicators(ITEMS, self.facets.items, self.facets.item)
            self.add_offsets(True)
        elif name == ITEMS:
            real, layout = self.real, self.layout
            column = real.first[self.facets.item][layout.item] + layout.level - 1
            weight = 1 / (real.n_items * real.max_score[real.item])
            group = np.unique(real.max_score[real.item] * (real.widest + 1) + real.level, return_inverse=True)[1]
            self._append(name, self.facets.items[real.item], column, None, group, real.level, weight)
        elif INTERACTION in name:
            self._interaction(name)
        else:
            labels, code, values = self._factor(name)
            if values is None:
                self._indicators(name, labels, code)
            else:
                self._append(name, np.array([name], dtype=object), None, values, np.array([-1]), None, None)

    def _indicators(self, name: str, labels: NDArray[Any], code: Ints) -> None:
        weight = np.full(len(labels), 1 / len(labels))
        self._append(name, labels, code[self.layout.item], None, np.zeros(len(labels), dtype=np.int64), None, weight)

    def _factor(self, name: str) -> tuple[NDArray[Any], Ints, Floats | None]:
        """The levels of a facet and the level of each virtual item; or the values of a property."""
        facets = self.facets
        if name in (ITEMS, "item"):
            return facets.items, facets.item, None
        if name in facets.names:
            return *facets.column(name), None
        if name not in self.properties:
            there = [ITEMS, *facets.names[1:], *self.properties]
            raise OptionError(
                f"the design names {name!r}, which is no column of the answers; there are {listed(there)}."
            )
        known = {item: value for item, value in self.properties[name].items() if value is not None and value == value}
        place = positions(facets.items, known)
        if (place < 0).any():
            absent = facets.items[place < 0]
            raise OptionError(f"the property {name!r} is not known of {len(absent):,} items: {listed(absent)}.")
        values = [list(known.values())[k] for k in place.tolist()]
        try:
            return facets.items, facets.item, np.array(values, dtype=np.float64)[facets.item]
        except (TypeError, ValueError):
            labels, code = np.unique([str(value) for value in values], return_inverse=True)
            return labels.astype(object), code.ravel()[facets.item], None

    def _interaction(self, name: str) -> None:
        first, second = (self._factor(one) for one in name.split(INTERACTION))
        values: Floats | None
        if first[2] is not None and second[2] is not None:
            values = first[2] * second[2]
            self._append(name, np.array([name], dtype=object), None, values, np.array([-1]), None, None)
            return
        if first[2] is not None or second[2] is not None:
            (labels, code, _), values = (second, first[2]) if first[2] is not None else (first, second[2])
        else:
            both, code = np.unique(np.stack([first[1], second[1]], axis=1), axis=0, return_inverse=True)
            labels, code, values = np.empty(len(both), dtype=object), code.ravel(), None
            labels[:] = [f"{first[0][i]} × {second[0][j]}" for i, j in both]
        group = np.zeros(len(labels), dtype=np.int64)
        self._append(name, labels, code[self.layout.item], values, group, None, None)

    def add_offsets(self, common: bool) -> None:
        """Columns for how far thresholds lie from their location: of all items, or of each; sums are zero."""
        layout, of_item = self.layout, self.facets.item[self.layout.item]
        if common and len(np.unique(self.real.max_score)) > 1:
            fewer = self.facets.items[self.real.max_score < self.real.widest]
            raise OptionError(
                f"the items of a rating scale have the same categories, but {listed(fewer)} have fewer than "
                f"{self.real.widest + 1}. Fit a partial credit model."
            )
        highest = self.real.max_score[of_item]
        start = (
            np.zeros(self.real.n_items, dtype=np.int64) if common else self.real.first - np.arange(self.real.n_items)
        )
        size = self.real.widest - 1 if common else self.real.n_entries - self.real.n_items
        if not size:
            return
        last = layout.level == highest
        row, column = np.flatnonzero(~last), (start[of_item] + layout.level - 1)[~last]
        times = (highest - 1)[last]
        more = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        rows = np.concatenate([row, np.repeat(np.flatnonzero(last), times)])
        columns = np.concatenate([column, np.repeat(start[of_item][last], times) + more])
        values = np.concatenate([np.ones(len(row)), -np.ones(len(more))])
        block = sparse.csr_array((values, (rows, columns)), shape=(layout.n_entries, size))
        labels = (
            np.array(["all"] * size, dtype=object) if common else np.repeat(self.facets.items, self.real.max_score - 1)
        )
        level = np.arange(size) + 1 if common else np.arange(size) - np.repeat(start, self.real.max_score - 1) + 1
        self._keep("offsets", labels, block, np.full(size, -1), level, None)

    def _append(
        self,
        name: str,
        labels: NDArray[Any],
        column: Ints | None,
        values: Floats | None,
        group: Ints,
        level: Ints | None,
        weight: Floats | None,
    ) -> None:
        n = self.layout.n_entries
        where = np.zeros(n, dtype=np.int64) if column is None else column
        data = np.ones(n) if values is None else values[self.layout.item]
        block = sparse.csr_array((data, (np.arange(n), where)), shape=(n, len(labels)))
        self._keep(name, labels, block, group, level, weight)

    def _keep(
        self, name: str, labels: NDArray[Any], block: Any, group: Ints, level: Ints | None, weight: Floats | None
    ) -> None:
        start = self.terms[-1].columns.stop if self.terms else 0
        group = np.where(group >= 0, group + self.groups, -1)
        self.groups = max(self.groups, int(group.max(initial=-1)) + 1)
        self.terms.append(Term(name, labels, slice(start, start + block.shape[1]), group, level, weight))
        self.blocks.append(block)


@dataclass(frozen=True, eq=False)
class DesignMatrix:
    """A, its terms, the thresholds of the items themselves, and the parameters that are known."""

    matrix: sparse.csr_array
    terms: tuple[Term, ...]
    facets: Facets
    real: Thresholds
    fixed: Mask
    value: Floats

    @property
    def group(self) -> Ints:
        return np.concatenate([term.group for term in self.terms])

    def term(self, name: str) -> Term:
        return next(term for term in self.terms if term.name == name)

    def largest(self, terms: tuple[Term, ...]) -> slice | None:
        """The largest term with a single one in each row, where the design is too large without."""
        if sum(term.size for term in terms) <= DENSE_PARAMETERS // 2:
            return None
        return max((term for term in terms if term.weight is not None), key=lambda term: term.size).columns

    def open_directions(self, parts: Ints) -> tuple[Floats, dict[str, Ints]]:
        """The directions that are left open, and for each facet which of its levels can be compared.

        Interactions leave all main effects open; by convention they sum to zero, so that these are compared without.
        """
        levels = unidentified(self.matrix, parts, self.fixed, self.largest(self.terms))
        main, found = tuple(term for term in self.terms if not term.interaction), levels
        if len(main) < len(self.terms):
            some = np.concatenate([np.arange(self.matrix.shape[1])[term.columns] for term in main])
            found = np.zeros((self.matrix.shape[1], 0))
            own = unidentified(sparse.csr_array(self.matrix[:, some]), parts, self.fixed[some])
            found = np.zeros((self.matrix.shape[1], own.shape[1]))
            found[some] = own
        return levels, {term.name: subsets(found[term.columns]) for term in main if term.weight is not None}


@dataclass(frozen=True, eq=False)
class Normalization:
    """Chooses among the parameters that the answers do not tell apart: every facet has the mean zero.

    Within each subset of levels that can be compared; interactions are as small as can be.
    """

    levels: Floats
    means: sparse.csr_array
    small: Ints

    @classmethod
    def of(cls, design: DesignMatrix, levels: Floats, subset: Mapping[str, Ints]) -> Normalization:
        rows, columns, values = [], [], []
        k = 0
        for term in design.terms:
            if term.weight is None:
                continue
            for part in range(int(subset[term.name].max()) + 1):
                own = np.flatnonzero(subset[term.name] == part)
                if not design.fixed[term.columns][own].any():
                    rows.append(np.full(len(own), k))
                    columns.append(term.columns.start + own)
                    values.append(term.weight[own] / term.weight[own].sum())
                    k += 1
        where = (np.concatenate(rows), np.concatenate(columns)) if rows else ([], [])
        data = np.concatenate(values) if values else np.zeros(0)
        means = sparse.csr_array((data, where), shape=(k, design.matrix.shape[1]))
        inter = [np.arange(design.matrix.shape[1])[term.columns] for term in design.terms if term.interaction]
        return cls(levels, means, np.concatenate(inter) if inter else np.arange(design.matrix.shape[1]))

    def __call__(self, eta: Floats) -> Floats:
        """One vector, or the columns of a matrix."""
        if not self.levels.shape[1]:
            return eta
        moved = self.means @ self.levels
        eta = eta - self.levels @ (np.linalg.pinv(moved, rcond=1e-9) @ (self.means @ eta))
        _, size, right = np.linalg.svd(moved)
        rank = int((size > 1e-9).sum())
        if rank < self.levels.shape[1]:
            left = self.levels @ right[rank:].T
            eta = eta - left @ (np.linalg.pinv(left[self.small], rcond=1e-9) @ eta[self.small])
        return eta
