"""Linear designs: thresholds that are sums of what belongs to items, raters, occasions, properties of items.

delta_(i, r), k = delta_ik + rho_r: the virtual item (i, r) is as hard as the item, and as the rater is severe. Here is
how the matrix A of beta = A eta comes from a formula, and which of the parameters that the answers do not tell apart
are meant. A rating scale is the design of locations and offsets that items have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.calibration import RATING_SCALE
from spectral_irt.chain.stationary import linked_items
from spectral_irt.conditional.linear import subsets, unidentified_directions
from spectral_irt.conditional.penalized import DENSE_PARAMETERS
from spectral_irt.data import Responses, as_responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.categories import Groups, group_codes
from spectral_irt.data.crossing import cross_with_column
from spectral_irt.data.facets import Facets
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.estimators.estimable import DENSE_ITEMS, EstimableItems, scalable_items
from spectral_irt.estimators.spectral import Spectral
from spectral_irt.tables import Columns
from spectral_irt.text import listed

ITEMS = "items"  # the term of the items' thresholds
INTERACTION = ":"
SAME_VALUE = 1e-13  # of the largest value of a property: what differs by less are equal numbers, rounded


class Factor(NamedTuple):
    """What a term, or one side of an interaction, is about: the items, a facet, a facet whose levels are numbers, or a
    property of items by its name. Each may be called as it likes, `items` or `a:b` too: its kind says what it is."""

    kind: Literal["items", "facet", "number", "property"]
    name: str


@dataclass(frozen=True, eq=False)
class Term:
    """Some columns of a design: what one facet, or the items, add to a threshold.

    `labels` has one for each column (of the items' thresholds: the item of each, with its `level`), and `weight` is
    that of each in the mean of the term, which is zero; terms without weights are no facets. `factors` are what the
    columns are about; the offsets of a rating scale are about none.
    """

    name: str
    factors: tuple[Factor, ...]
    labels: NDArray[Any]
    columns: slice
    level: Ints | None = None
    weight: Floats | None = None

    @property
    def interaction(self) -> bool:
        return len(self.factors) > 1

    @property
    def of_facet(self) -> bool:
        """Whether a facet beside the items has a part in it."""
        return any(factor.kind == "facet" for factor in self.factors)


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
    numbers : names of facets, optional
        Facets whose levels are numbers that one effect multiplies, instead of an effect for each level: what is known
        of a combination of item and rater, such as that both are of one family.

    Examples
    --------
    >>> LinearDesign("items + rater").terms
    ['items', 'rater']
    """

    formula: str | None = None
    properties: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)
    anchors: Mapping[str, Mapping[Any, float]] = field(default_factory=dict)
    numbers: Sequence[str] = ()

    @property
    def terms(self) -> list[str]:
        """The terms of the formula; nothing without one."""
        names = []
        for term in (self.formula or "").split("+"):
            if term.strip():
                names.append(INTERACTION.join(factor.strip() for factor in term.split(INTERACTION)))
        return [ITEMS if name == "item" else name for name in dict.fromkeys(names)]

    def of(self, responses: Responses, *, scale: bool = False, groups: Groups = None) -> DesignMatrix:
        """The matrix for these responses; in a rating `scale` the items of each group share their offsets."""
        facets = () if responses.facets is None else responses.facets.facet_names
        return DesignMatrix(self, responses, self.factors(facets), scale=scale, groups=groups)

    def factors(self, facets: Sequence[str]) -> list[tuple[Factor, ...]]:
        """What each term of the formula is about; without a formula, the items and every facet."""
        if not self.terms:
            return [(Factor("items", ITEMS),), *((self._of_facet(name),) for name in facets)]
        return [self._factors_of(term, facets) for term in self.terms]

    def _of_facet(self, name: str) -> Factor:
        return Factor("number" if name in self.numbers else "facet", name)

    def cross_columns(self, responses: Responses) -> Responses:
        """The responses with the columns about persons that the formula names as facets: they enter where they meet a
        facet within persons, as in `wave:arm`. By itself such a column is in the abilities, and conditioned out."""
        facets = () if responses.facets is None else responses.facets.facet_names
        factors = {ITEMS, "item", *facets, *self.properties}
        names = dict.fromkeys(name for term in self.terms if term not in factors for name in term.split(INTERACTION))
        for name in names:
            if name in factors or name not in (responses.people or {}):
                continue
            of_facets = [term for term in self.terms if name in term.split(INTERACTION)]
            if any(not set(term.split(INTERACTION)) & {*facets, ITEMS, "item"} for term in of_facets):
                raise OptionError(
                    f"{name!r} is a column about persons, whose main effect is in their abilities; it enters a design "
                    f"with what persons meet on both sides, as in `wave:{name}`."
                )
            responses = cross_with_column(responses, name)
        return responses

    def _factors_of(self, term: str, facets: Sequence[str]) -> tuple[Factor, ...]:
        columns = [ITEMS, *facets, *self.properties]
        names = term.split(INTERACTION)
        if term in columns:
            if len(names) > 1 and set(names) <= set(columns):
                raise OptionError(f"{term!r} is a column, and an interaction of two others; rename the column.")
            names = [term]
        factors = []
        for name in names:
            if columns.count(name) > 1:
                raise OptionError(f"{name!r} stands for two things of {listed(columns)}; rename one of them.")
            if name in (ITEMS, "item"):
                factors.append(Factor("items", ITEMS))
            elif name in facets:
                factors.append(self._of_facet(name))
            elif name in self.properties:
                factors.append(Factor("property", name))
            else:
                raise OptionError(
                    f"the design names {name!r}, which is no column of the answers; there are {listed(columns)}."
                )
        return tuple(factors)


def property_numbers(values: Sequence[Any]) -> Floats | None:
    """The values of a property as numbers; None where one is none, so that all count as words."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def without_mean(values: Floats) -> Floats:
    """Values less their mean; zero where they differ by no more than rounding."""
    size = float(np.abs(values).max(initial=0.0))
    centered = values / size - np.mean(values / size) if size > 0 else values
    return size * np.where(np.abs(centered) > SAME_VALUE, centered, 0.0)


def design_of_properties(responses: Responses, properties: Mapping[str, Mapping[Any, Any]]) -> DesignMatrix:
    """The design of items that are as hard as their properties say: a term for each, whatever it is called."""
    terms = [(Factor("property", name),) for name in properties]
    return DesignMatrix(LinearDesign(properties=properties), responses, terms)


class FactorLevels(NamedTuple):
    """The levels of a factor and the level of each virtual item; a property in numbers has one level, and its value
    for each virtual item."""

    labels: NDArray[Any]
    code: Ints
    slope: Floats | None = None


class OpenDirections(NamedTuple):
    """Directions of the parameters that the answers leave open, orthonormal; and for each facet which of its levels can
    be compared."""

    directions: Floats
    subset: dict[str, Ints]


class DesignMatrix:
    """A of a design, its terms, the thresholds of the items themselves (`real`), which of these each row is about, and
    the parameters that are known."""

    def __init__(
        self,
        design: LinearDesign,
        responses: Responses,
        terms: Sequence[tuple[Factor, ...]],
        *,
        scale: bool = False,
        groups: Groups = None,
    ) -> None:
        facets = responses.facets or Facets(("item",), (responses.items,), np.arange(responses.n_items)[:, None])
        self.facets = facets
        self.layout = responses.thresholds
        self.properties = design.properties
        self.real = Thresholds(self.layout.max_score[facets.first])
        self.place = self.real.first[facets.item][self.layout.item] + self.layout.level - 1
        self.terms: list[Term] = []
        self.matrix = sparse.csr_array((self.layout.n_entries, 0))
        self.unit = np.empty(0)  # of each column, in the unit of its property: the effect of that is eta / unit
        items_alone = (Factor("items", ITEMS),)
        for factors in terms:
            if factors == items_alone and not scale:  # a column for each threshold of the items
                block = sparse.eye_array(self.real.n_entries, format="csr")[self.place]
                self._append(
                    ITEMS, factors, facets.items[self.real.item], block, self.real.level, self.real.mean_weights()
                )
            else:
                self._add(factors)
        self.scale_of_item: Ints | None = None  # of a rating scale
        if scale:
            labels, self.scale_of_item = group_codes(facets.items, groups)
            self._offsets(labels, self.scale_of_item)
        elif items_alone not in terms and not self.layout.binary:  # every item has offsets of its own
            self._offsets(facets.items, np.arange(len(facets.items)))
        self.fixed = np.zeros(self.matrix.shape[1], dtype=bool)
        self.value = np.zeros(self.matrix.shape[1])
        for name, known in design.anchors.items():
            self._anchor(name, known)

    def _add(self, factors: tuple[Factor, ...]) -> None:
        """The columns of a facet, a property or an interaction of such."""
        sides = [self._levels_of(factor) for factor in factors]
        labels = sides[0].labels
        code = sides[0].code
        if len(sides) > 1:
            codes = np.stack([side.code for side in sides], axis=1)
            combinations, code = np.unique(codes, axis=0, return_inverse=True)
            code = code.ravel()
            labels = Facets((), tuple(side.labels for side in sides), combinations).labels()
        block = sparse.eye_array(len(labels), format="csr")[code[self.layout.item]]
        numbers = [side.slope for side in sides if side.slope is not None]
        unit = 1.0
        if numbers:
            values = np.prod(numbers, axis=0)
            if len(factors) == 1:  # a shift of all thresholds alike changes nothing but digits
                values = without_mean(values)
            unit = float(np.abs(values).max(initial=0.0)) or 1.0
            block = sparse.diags_array((values / unit)[self.layout.item]) @ block
        weight = None
        if len(sides) == 1 and not numbers:
            weight = np.full(len(labels), 1 / len(labels))
        name = INTERACTION.join(factor.name for factor in factors)
        self._append(name, factors, labels, block, weight=weight, unit=unit)

    def _levels_of(self, factor: Factor) -> FactorLevels:
        """What a factor is for each virtual item."""
        facets = self.facets
        if factor.kind == "items":
            return FactorLevels(facets.items, facets.item)
        if factor.kind == "facet":
            labels, code = facets.column(factor.name)
            return FactorLevels(labels, code)
        one_level = np.array([factor.name], dtype=object)
        if factor.kind == "number":
            labels, code = facets.column(factor.name)
            return FactorLevels(one_level, np.zeros_like(code), labels.astype(np.float64)[code])
        values = self._values_of(factor.name)
        numbers = property_numbers(values)
        if numbers is None:
            labels, code = np.unique([str(value) for value in values], return_inverse=True)
            return FactorLevels(labels.astype(object), code.ravel()[facets.item])
        if not np.isfinite(numbers).all():
            k = int(np.argmin(np.isfinite(numbers)))
            raise OptionError(
                f"the property {factor.name!r} of item {listed([facets.items[k]])} is {values[k]}, which is no number "
                "that an effect can multiply. Correct it, or leave out the item."
            )
        return FactorLevels(one_level, np.zeros(len(facets.item), dtype=np.int64), numbers[facets.item])

    def _values_of(self, name: str) -> list[Any]:
        """The value of a property of each item; an error for an item without one."""
        items = self.facets.items
        value_of_item = {
            item: value for item, value in self.properties[name].items() if value is not None and value == value
        }
        place = positions(items, value_of_item)
        if (place < 0).any():
            absent = items[place < 0]
            raise OptionError(f"the property {name!r} is not known of {len(absent):,} items: {listed(absent)}.")
        values = list(value_of_item.values())
        return [values[k] for k in place.tolist()]

    def _offsets(self, labels: NDArray[Any], group: Ints) -> None:
        """Columns for how far thresholds lie from their location, in common for the items of a group; sums are zero."""
        highest = np.zeros(len(labels), dtype=np.int64)
        np.maximum.at(highest, group, self.real.max_score)
        fewer = self.real.max_score < highest[group]
        if fewer.any():
            g = int(group[fewer][0])
            raise OptionError(
                f"the items of a rating scale have the same categories, but in group {labels[g]!r} "
                f"{listed(self.facets.items[fewer & (group == g)])} have fewer than {highest[g] + 1}. Give them a "
                "group of their own, keep categories that nobody used (`unused='keep'`), or fit a partial credit model."
            )
        shared = Thresholds(highest)
        if shared.binary:
            return
        # The last offset of each group is minus the sum of the others.
        contrasts = [np.vstack([np.eye(k), -np.ones(k)]) for k in (highest - 1).tolist()]
        sums = sparse.block_diag(contrasts, format="csr")
        group_of_threshold = group[self.facets.item[self.layout.item]]
        block = sums[shared.first[group_of_threshold] + self.layout.level - 1]
        last = np.cumsum(highest) - 1
        group_of_column = np.delete(shared.item, last)
        level = np.delete(shared.level, last)
        self._append("offsets", (), labels[group_of_column], block, level)

    def _append(
        self,
        name: str,
        factors: tuple[Factor, ...],
        labels: NDArray[Any],
        block: Any,
        level: Any = None,
        weight: Any = None,
        unit: float = 1.0,
    ) -> None:
        start = self.matrix.shape[1]
        self.matrix = sparse.hstack([self.matrix, block], format="csr")
        self.unit = np.append(self.unit, np.full(block.shape[1], unit))
        self.terms.append(Term(name, factors, labels, slice(start, self.matrix.shape[1]), level, weight))

    def _anchor(self, name: str, known: Mapping[Any, float]) -> None:
        """Fix the parameters of these levels."""
        named = {term.name: term for term in self.terms if term.factors}
        term = named.get(ITEMS if name == "item" else name)
        if term is None or (term.level is not None and term.level.max(initial=1) > 1):
            raise OptionError(
                f"anchors are for facets, and for items with one threshold; {name!r} is neither. The design has "
                f"{listed([term.name for term in self.terms])}."
            )
        place = positions(known, term.labels)
        absent = [label for label, k in zip(known, place.tolist(), strict=True) if k < 0]
        if absent:
            raise OptionError(f"anchors of {name!r} name levels that the answers do not have: {listed(absent)}.")
        columns = term.columns.start + place
        self.fixed[columns] = True
        self.value[columns] = self.unit[columns] * [float(number) for number in known.values()]

    def of_columns(self, what: Callable[[Term], Any]) -> NDArray[Any]:
        """What is to be said of each term, for every column."""
        return np.concatenate([np.broadcast_to(what(term), len(term.labels)) for term in self.terms])

    def alike(self, what: Callable[[Term], Any]) -> Ints:
        """The same number for columns of one term of which the same is to be said."""
        both = np.stack([self.of_columns(self.terms.index), self.of_columns(what)])
        return np.unique(both, axis=1, return_inverse=True)[1].ravel()

    def term(self, name: str) -> Term:
        """The term of the items or of a facet."""
        return next(term for term in self.terms if term.name == name and term.weight is not None)

    def largest(self, most: int) -> slice | None:
        """Where there are more parameters: the columns of the largest term with a single one in each row."""
        if self.matrix.shape[1] <= most:
            return None
        return max((term for term in self.terms if term.weight is not None), key=lambda term: len(term.labels)).columns

    def open_directions(self, parts: Ints) -> OpenDirections:
        """What the answers leave open, where they link the thresholds of each part.

        Interactions leave all main effects open; by convention they sum to zero, so that these are compared without.
        """
        directions = unidentified_directions(self.matrix, parts, self.fixed, self.largest(DENSE_PARAMETERS // 2))
        of_main_effects = directions
        is_interaction = self.of_columns(lambda term: term.interaction)
        if is_interaction.any():
            of_main_effects = unidentified_directions(self.matrix, parts, self.fixed | is_interaction)
        facets = [term for term in self.terms if term.weight is not None]
        return OpenDirections(directions, {term.name: subsets(of_main_effects[term.columns]) for term in facets})

    def scale_of_items(self, directions: Floats) -> Ints:
        """The same number for virtual items whose thresholds can be compared, by the directions left open."""
        shift = self.matrix[self.layout.first] @ directions  # of each combination, that no answer notices
        return subsets(shift)

    def normalization(self, directions: Floats, subset: Mapping[str, Ints]) -> Callable[[Floats], Floats]:
        """Chooses among the parameters, or columns of them, that the answers do not tell apart.

        Every facet has the mean zero within each subset of levels that can be compared; interactions are as small as
        can be.
        """
        part = self.alike(lambda term: 0 if term.weight is None else subset[term.name])
        weight = self.of_columns(lambda term: 0.0 if term.weight is None else term.weight)
        free = np.bincount(part, self.fixed) == 0
        total = np.bincount(part, weight)
        weight = np.divide(free[part] * weight, total[part], out=np.zeros(len(part)), where=weight > 0)
        means = sparse.csr_array((weight, (part, np.arange(len(part)))))
        is_interaction = self.of_columns(lambda term: term.interaction)
        small = is_interaction if is_interaction.any() else ~is_interaction
        moved_means = means @ directions
        _, size, right = np.linalg.svd(moved_means)
        without_means = directions @ right[int((size > 1e-9).sum()) :].T  # moves no mean
        to_means = np.linalg.pinv(moved_means, rcond=1e-9)
        to_small = np.linalg.pinv(without_means[small], rcond=1e-9)

        def normalize(eta: Floats) -> Floats:
            eta = eta - directions @ (to_means @ (means @ eta))
            return eta - without_means @ (to_small @ eta[small])

        return normalize


def combinations_on_one_scale(responses: Responses) -> Ints:
    """The same number for combinations of items and raters whose thresholds can be compared, as the design needs it.

    Persons link the combinations on which they were rated, and so do an item or a rater that two of them have in
    common: two groups without a common person are one scale where what they share leaves no shift between them.
    """
    design = LinearDesign().of(responses)
    linked_by_persons, _ = linked_items(responses, mixed=True)
    directions, _ = design.open_directions(linked_by_persons[responses.thresholds.item])
    return design.scale_of_items(directions)


@dataclass(kw_only=True, eq=False, repr=False)
class RatingScale(RaschEstimator):
    """What the rating scale estimators share: tables keep the categories that all items of a group have."""

    several: ClassVar[bool] = True
    model: ClassVar[str] = RATING_SCALE
    groups: Groups = None
    unused: str = "keep"

    def _read(self, data: Any) -> Responses:
        groups = self.groups if self.unused == "keep" else None
        return as_responses(data, ordered=True, unused=self.unused, groups=groups)

    def _scale_of_item(self, responses: Responses) -> Ints:
        if responses.facets is None:
            return group_codes(responses.items, self.groups)[1]
        return group_codes(responses.facets.items, self.groups)[1][responses.facets.item]

    def _estimable(self, responses: Responses) -> tuple[EstimableItems, DesignMatrix]:
        """The items that a rating scale can place, and the design of their thresholds."""
        n = responses.thresholds.n_entries
        if n > DENSE_ITEMS:
            raise OptionError(
                f"the rating scale is fitted with the covariance of all thresholds, up to {DENSE_ITEMS:,}; there are "
                f"{n:,}. Fit SpectralPartialCredit, or fewer items."
            )
        design = LinearDesign(ITEMS).of(responses, scale=True, groups=self.groups)  # errors before work
        labels, group = group_codes(responses.items, self.groups)
        items = scalable_items(responses, labels, group)
        if not items.included.all():
            groups = labels[group[items.included]].tolist()
            design = LinearDesign(ITEMS).of(items.responses, scale=True, groups=groups)
        return items, design

    @property
    def offsets_(self) -> Columns:
        """tau_k of every group as columns `group, category, offset, se`."""
        learned = self._fitted_calibration
        layout = learned.layout
        labels, group = group_codes(learned.labels, self.groups)
        known_items = np.flatnonzero(learned.known)
        _, first = np.unique(group[known_items], return_index=True)  # any item of a group has them
        places = layout.of_items(known_items[first])
        group_of_offset = group[layout.item[places]]
        same_group = group_of_offset[:, None] == group_of_offset
        center = np.eye(len(places)) - same_group / np.bincount(group_of_offset)[group_of_offset]
        se = np.full(len(places), np.nan)
        covariance = getattr(self, "covariance_within_parts_", None)
        if covariance is None:
            covariance = self.covariance_
        if covariance is not None:
            se = np.sqrt(np.maximum(np.diag(center @ covariance[np.ix_(places, places)] @ center), 0))
        return {
            "group": np.array(labels.tolist())[group_of_offset],
            "category": layout.level[places],
            "offset": center @ learned.thresholds[places],
            "se": se,
        }


@dataclass(kw_only=True, eq=False, repr=False)
class SpectralRatingScale(RatingScale, Spectral):
    """The rating scale model by conditional likelihood: difficulties, and category offsets that all items share.

    beta_ik = delta_i + tau_k = (A eta)_ik: a linear design, by Newton's steps for eta. No threshold needs an estimate
    by itself, so that a category that some items never saw does no harm.

    Parameters
    ----------
    groups : mapping from item to group, or a label for each item, optional
        Items with a rating scale of their own; one scale for all by default.
    unused : "keep", "collapse" or "error"
        What becomes of categories that nobody used, where `fit` is given a table. "keep" (default): an item has the
        categories of its group.
    max_iter : int
        Most Newton steps.
    threads
        As for `SpectralPartialCredit`.

    Attributes
    ----------
    difficulty_, se_ : float arrays
        delta_i; mean zero.
    offsets_ : columns
        tau_k of every group: `group, category, offset, se`.
    thresholds_, threshold_se_ : float arrays

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> fit = SpectralRatingScale().fit(simulate.rating_scale(800, 6, categories=4, seed=1).responses)
    >>> fit.offsets_["offset"].round(0).tolist()
    [-1.0, 0.0, 1.0]
    """

    scaled: ClassVar[bool] = True
    marginal: ClassVar[str] = "MarginalRatingScale"

    max_iter: int = 30
    threads: int | None = None
