"""Arrays and columns of ordered answers in memory -> OrderedResponses; and which categories each item has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from spectral_irt.errors import OptionError, ReadError, ResponseValueError, check_option, listed, option
from spectral_irt.responses.arrays import _as_matrix, _coded, _column, _item_labels, _labeled, is_frame
from spectral_irt.responses.block import Floats, Ints
from spectral_irt.responses.findings import Finding
from spectral_irt.responses.labels import Labels
from spectral_irt.responses.missing import is_missing
from spectral_irt.responses.ordered import OrderedResponses, in_order, ordered_from_codes
from spectral_irt.responses.pack import DUPLICATES, Duplicates

UNUSED = ("collapse", "error", "keep")
# Beyond so many categories a column is a count or a measure; most of its categories would be nobody's.
MOST_CATEGORIES = 101


def ordered_from_wide(
    table: Any,
    *,
    items: Sequence[Any] | None = None,
    users: Sequence[Any] | None = None,
    unused: str = "collapse",
    groups: Any = None,
    missing: ArrayLike = (),
    source: str = "the data",
) -> OrderedResponses:
    """Ordered responses from a table with one row per person and one column per item.

    Parameters
    ----------
    table : 2-D array, dataframe, or scipy sparse matrix
        Whole numbers, 0 the lowest category; NaN, None or masked = not answered. In a sparse matrix what is not stored
        was not answered.
    items, users : sequence, optional
        Labels; the columns of a dataframe, and numbers, by default.
    unused : "collapse", "error" or "keep"
        What becomes of categories that nobody used. "collapse" (default): the answers to the item are numbered anew
        without them, with a finding. "error": refused. "keep": an item has every category that somebody used for any
        item of its group; for rating scales.
    groups : mapping from item to group, or a label for each item, optional
        Items with the same categories, for "keep"; by default all are one group.
    missing : values, optional
        Numbers that mean "not answered".

    Examples
    --------
    >>> answers = ordered_from_wide([[1, 3], [2, 5], [1, 5]])
    >>> answers.to_dense().tolist()
    [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    >>> answers.notes[0].code
    'categories_collapsed'
    """
    if is_frame(table):
        items, table = _of_frame(table, items)
    if sparse.issparse(table):
        stored = sparse.coo_array(table)
        row, column, values, shape = stored.row, stored.col, stored.data.astype(np.float64), stored.shape
    else:
        matrix = _numbers(_as_matrix(table))
        shape = matrix.shape
        row, column = np.divmod(np.arange(matrix.size), max(shape[1], 1))
        values = matrix.ravel()
    labels = _item_labels(items, shape[1])
    people = np.arange(shape[0]) if users is None else np.asarray(users)
    if len(people) != shape[0]:
        raise OptionError(f"users has {len(people)} labels; the table has {shape[0]} rows.")
    return ordered_from_values(
        row, column, values, people, labels, unused=unused, groups=groups, missing=missing, source=source
    )


def ordered_from_long(
    users: ArrayLike,
    items: ArrayLike,
    responses: ArrayLike,
    *,
    duplicates: Duplicates = "error",
    unused: str = "collapse",
    missing: ArrayLike = (),
    source: str = "the data",
) -> OrderedResponses:
    """Ordered responses from three columns of equal length: person, item, and category (or missing: not answered).

    People and items come out in sorted order; the options are those of `Responses.from_long` and `ordered_from_wide`.

    >>> ordered_from_long(["ann", "ann", "bob", "bob"], ["a", "b", "a", "b"], [2, 0, 1, 1], unused="keep").n_thresholds
    array([2, 2])
    """
    check_option("duplicates", duplicates, DUPLICATES)
    columns = [_column(column) for column in (users, items, responses)]
    if len({len(column) for column in columns}) > 1:
        raise OptionError(f"users, items and responses differ in length: {[len(c) for c in columns]}.")
    values = _numbers(columns[2])
    kept = np.isfinite(values) | (_labeled(columns[0]) & _labeled(columns[1]))
    people, user = _coded(columns[0][kept], "users")
    labels, item = _coded(columns[1][kept], "items")
    return ordered_from_values(
        user, item, values[kept], people, labels, unused=unused, missing=missing, duplicates=duplicates, source=source
    )


def ordered_from_values(
    user: NDArray[Any],
    item: NDArray[Any],
    values: Floats,
    users: Labels,
    items: Labels,
    *,
    unused: str = "collapse",
    groups: Any = None,
    missing: ArrayLike = (),
    duplicates: Duplicates = "error",
    source: str = "the data",
    frame_kind: str | None = None,
) -> OrderedResponses:
    """Ordered responses from codes of people and items and raw values, NaN where there is none."""
    check_option("unused", unused, UNUSED)
    there = ~np.isnan(values)
    for code in np.atleast_1d(np.asarray(missing, dtype=float)):
        there &= values != code
    if not there.all():
        user, item, values = user[there], item[there], values[there]
    category = whole_numbers(values, item, items, source)
    user, item, category = in_order(user, item, category, duplicates, users, items, source)
    found = settle_categories(category, item, items, unused, source, groups)
    return ordered_from_codes(
        user,
        item,
        found.category,
        found.n_thresholds,
        users=users,
        items=items,
        source=source,
        notes=found.notes,
        frame_kind=frame_kind,
        codes=found.codes,
    )


# ------------------------------------------------------------------------------------- categories


@dataclass(frozen=True, eq=False)
class Categories:
    """Categories from 0 without gaps, how many thresholds each item has, their codes, and what there is to say."""

    category: Ints
    n_thresholds: Ints
    codes: Floats
    notes: tuple[Finding, ...]


def settle_categories(
    category: Ints, item: NDArray[Any], items: Labels, unused: str, source: str, groups: Any = None
) -> Categories:
    """Categories from 0 to the K of each item; see `ordered_from_wide` for those that nobody used."""
    m = len(items)
    low = int(category.min()) if len(category) else 0
    width = int(category.max()) - low + 1 if len(category) else 1
    used = np.bincount(item.astype(np.int64) * width + (category - low), minlength=m * width).reshape(m, width) > 0
    lowest = np.where(used.any(axis=1), used.argmax(axis=1), 0) + low
    highest = np.where(used.any(axis=1), width - 1 - used[:, ::-1].argmax(axis=1), 0) + low
    wide = highest - lowest + 1 > MOST_CATEGORIES
    if wide.any():
        raise ResponseValueError(
            f"{source}: items with more than {MOST_CATEGORIES} categories: {listed(items[wide])} (the first runs from "
            f"{lowest[wide][0]} to {highest[wide][0]}). That is a count or a measure rather than ordered categories; "
            "group its values into a few categories first, or say ",
            option("threshold", ...),
            " for right and wrong.",
        )
    names = np.array(items.tolist(), dtype=object)
    if unused == "keep":
        used = _used_by_group(used, items, groups)
    n_used = used.sum(axis=1)
    answered = n_used > 0
    gaps = answered & ((lowest > 0) | (n_used < highest + 1)) & ~((n_used == 1) & (highest <= 1))
    if gaps.any() and unused == "error":
        k = int(np.flatnonzero(gaps)[0])
        seen = (np.flatnonzero(used[k]) + low).tolist()
        raise ResponseValueError(
            f"{source}: {_items(gaps)} categories that nobody used: {listed(names[gaps])} (the first was answered "
            f"{listed(seen)}). Number the categories from 0 without gaps, or say ",
            option("unused", "collapse"),
            ".",
        )
    rank = np.cumsum(used, axis=1) - 1
    found: tuple[Finding, ...] = ()
    if gaps.any():
        if not np.any(gaps & (highest - lowest + 1 > n_used)) and len(set(lowest[answered].tolist())) == 1:
            found = _shifted(low, names)
        else:
            found = (
                Finding(
                    "categories_collapsed",
                    "warning",
                    f"{_items(gaps)} categories that nobody used: {listed(names[gaps])}. The answers are numbered anew "
                    "without them.",
                    "A threshold that nobody stands beside cannot be estimated; check the categories of these items.",
                    tuple(names[gaps].tolist()),
                ),
            )
    rank[n_used == 1] = np.minimum(np.arange(width), 1)  # one category only: the lowest of the table, or above it
    n_thresholds = np.maximum(n_used - 1, 1)
    codes = np.full((m, int(n_thresholds.max(initial=1)) + 1), np.nan)
    row, column = np.nonzero(used)
    codes[row, rank[row, column]] = column + low
    return Categories(rank[item, category - low], n_thresholds, codes, found)


def _items(chosen: NDArray[np.bool_]) -> str:
    number = int(chosen.sum())
    return f"{number:,} item{' has' if number == 1 else 's have'}"


def _used_by_group(used: NDArray[np.bool_], items: Labels, groups: Any) -> NDArray[np.bool_]:
    """Items x categories: those that somebody used for an item of the same group."""
    if groups is None:
        return np.broadcast_to(used.any(axis=0), used.shape)
    each = [groups[item] for item in items.tolist()] if isinstance(groups, Mapping) else list(groups)
    codes = np.unique([str(one) for one in each], return_inverse=True)[1]
    total = np.zeros((codes.max() + 1, used.shape[1]), dtype=bool)
    np.logical_or.at(total, codes, used)
    return total[codes]


def _shifted(low: int, names: NDArray[Any]) -> tuple[Finding, ...]:
    return (
        Finding(
            "categories_shifted",
            "note",
            f"The lowest category is {low}; it counts as 0, the next as 1, and so on.",
            "Scores are counted from 0.",
            tuple(names.tolist()),
        ),
    )


def whole_numbers(values: Floats, item: NDArray[Any], items: Labels, source: str) -> Ints:
    """Values as whole numbers from 0; what is not is an error that names it."""
    bad = ~np.isfinite(values) | (values != np.floor(values)) | (values < 0)
    if bad.any():
        k = int(np.flatnonzero(bad)[0])
        one = float(values[k])
        kinds = listed(sorted({float(v) for v in values[bad].tolist()}))
        what = "negative" if one < 0 else "not a whole number"
        remedy: str = "Ordered categories are the whole numbers 0, 1, 2, ...; number them that way."
        if one < 0:
            remedy = (
                f"If {one:g} means 'not answered', say "
                + option("missing", f"{one:g}")
                + "; otherwise "
                + ("number the categories from 0.")
            )
        raise ResponseValueError(
            f"{source}: item {listed([items[item[k]]])} was answered {one:g}, which is {what} "
            f"({int(bad.sum()):,} such values: {kinds}). ",
            remedy,
        )
    return values.astype(np.int64)


# ----------------------------------------------------------------------------------------- values


def _numbers(values: NDArray[Any]) -> Floats:
    """Numbers with NaN for what is missing; text that is a number is one."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    flat = values.ravel().tolist()
    out = np.full(len(flat), np.nan)
    for k, value in enumerate(flat):
        if is_missing(value):
            continue
        try:
            out[k] = float(value)
        except (TypeError, ValueError):
            raise ResponseValueError(
                f"the answer {value!r} is not a number; say which category each label stands for with ",
                option("recode", ...),
                ".",
            ) from None
    return out.reshape(values.shape)


def _of_frame(frame: Any, items: Sequence[Any] | None) -> tuple[list[Any], NDArray[Any]]:
    """The columns of a dataframe of any library, and its cells."""
    import narwhals.stable.v1 as nw

    table = nw.from_native(frame, eager_only=True)
    names = list(table.columns) if items is None else list(items)
    absent = [name for name in names if name not in table.columns]
    if absent:
        raise ReadError(f"the dataframe has no columns {listed(absent)}; it has {listed(table.columns)}.")
    cells = np.empty((len(table), len(names)), dtype=object)
    for k, name in enumerate(names):
        cells[:, k] = table[name].to_list()
    return names, cells
