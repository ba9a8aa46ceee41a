"""Arrays, sparse matrices and dataframes in memory -> Responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from spectral_irt.errors import OptionError, ReadError, ResponseValueError, check_option, listed, option
from spectral_irt.responses.block import BLOCK_RESPONSES, Block
from spectral_irt.responses.labels import check_people, is_missing, item_label, positions
from spectral_irt.responses.pack import Duplicates
from spectral_irt.responses.responses import Labels, Responses

# What people write for "not answered". Named in the error when such a value turns up, never assumed.
MISSING_CODES = {
    "-1",
    "9",
    "99",
    "-9",
    "-99",
    "999",
    "-999",
    "-99999",
    "",
    "NA",
    "N/A",
    ".",
    "NaN",
    "nan",
    "null",
}


def from_wide(
    cls: type[Responses],
    table: Any,
    *,
    user: str | None,
    items: Sequence[Any] | None,
    threshold: float | None,
    orient: str,
) -> Responses:
    check_option("orient", orient, ("users", "items"))
    check_threshold(threshold)
    frame = is_frame(table)
    if user is not None and not frame:
        raise OptionError(
            option("user", user), " names a column of a dataframe; this table is an array, without names."
        )
    if sparse.issparse(table):
        return _from_sparse(cls, table.T if orient == "items" else table, items, threshold)
    kind = None
    users: Labels | None = None
    if frame:
        if orient == "items":
            raise OptionError(
                option("orient", "items"), " is for arrays; transpose the dataframe so that a row is a user."
            )
        values, items, users, kind = _from_frame(table, user, items)
    else:
        values = _as_matrix(table)
        if orient == "items":
            values = values.T
    n_users, n_items = values.shape
    labels = _item_labels(items, n_items)
    blocks = []
    rows = max(1, BLOCK_RESPONSES // max(n_items, 1))
    for start in range(0, n_users, rows):
        right, wrong = judge(values[start : start + rows], threshold, labels, first_row=start)
        blocks.append(block_of_masks(right, wrong))
    return cls(tuple(blocks), labels, np.arange(n_users) if users is None else users, kind)


def is_frame(table: Any) -> bool:
    """Whether this is a dataframe of some library."""
    return hasattr(type(table), "columns") or hasattr(table, "__arrow_c_stream__")


def from_long(
    cls: type[Responses],
    users: ArrayLike,
    items: ArrayLike,
    responses: ArrayLike,
    *,
    duplicates: Duplicates,
    threshold: float | None,
) -> Responses:
    check_threshold(threshold)
    columns = [_column(column) for column in (users, items, responses)]
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise OptionError(f"users, items and responses differ in length: {[len(c) for c in columns]}.")
    values = _as_matrix(columns[2][:, None])
    right, wrong = judge(values, threshold, np.array(["response"], dtype=object))
    answered = (right | wrong)[:, 0]
    rows = answered | (_labelled(columns[0]) & _labelled(columns[1]))
    answered = answered[rows]
    if columns[0].dtype.kind not in "iub":
        check_people(columns[0].tolist(), "users", rows)
    user_labels, user = _coded(columns[0][rows], "users")
    item_labels, item = _coded(columns[1][rows], "items")
    return cls.from_codes(
        user[answered],
        item[answered],
        right[rows, 0][answered],
        users=user_labels,
        items=item_labels,
        duplicates=duplicates,
    )


def check_threshold(threshold: float | None) -> None:
    if threshold is not None and not np.isfinite(threshold):
        raise OptionError(option("threshold"), f" is {threshold}; it must be a finite number.")


def check_one_level(columns: Sequence[Any]) -> None:
    """Refuse pandas columns of several levels: an item has one label."""
    levels = [name for name in columns if isinstance(name, tuple)]
    if levels:
        raise ReadError(
            f"the dataframe's column labels have several levels, as in {levels[0]!r} (MultiIndex), and an item has one "
            "label. Join them first: df.columns = ['_'.join(map(str, c)) for c in df.columns]."
        )


def _item_labels(items: Sequence[Any] | None, n_items: int) -> Labels:
    labels = as_labels(np.arange(n_items) if items is None else items)
    if len(labels) != n_items:
        raise OptionError(f"items has {len(labels)} labels; the table has {n_items} columns.")
    if len(set(labels.tolist())) < n_items:
        seen: set[Any] = set()
        twice = [x for x in labels.tolist() if x in seen or seen.add(x)]  # type: ignore[func-returns-value]
        raise ReadError(f"item labels must differ; repeated: {listed(twice)}.")
    return labels


def as_labels(labels: Any) -> Labels:
    """Labels as an int64 array, or Python objects: never fixed-width strings, which pad and cut, or wrapped numbers."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind == "i":
        return labels.astype(np.int64)
    plain = [label.item() if isinstance(label, np.integer) else label for label in labels]
    if plain and all(type(label) is int and abs(label) < 2**63 for label in plain):
        return np.array(plain, dtype=np.int64)
    out = np.empty(len(plain), dtype=object)
    for k, label in enumerate(plain):  # one by one: a label may be a tuple
        out[k] = label
    return out


def judge(
    values: NDArray[Any], threshold: float | None, items: Labels, first_row: int = 0
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Masks of right and wrong answers; whatever is neither, nor missing, is an error that names it."""
    if threshold is not None:
        missing = np.isnan(values)
        right = (values > threshold) & ~missing
        return right, ~right & ~missing
    right, wrong = values == 1, values == 0
    odd = ~(right | wrong | np.isnan(values))
    if odd.any():
        row, column = (int(x[0]) for x in np.nonzero(odd))
        found = np.unique(values[odd])
        texts = [f"{value:g}" for value in found[:5]]
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        codes = sorted(MISSING_CODES & set(texts))
        hint = f" If {' and '.join(codes)} mean 'not answered', replace them by NaN." if codes else ""
        raise ResponseValueError(
            f"column {listed([items[column]])}, row {first_row + row} holds {values[row, column]:g}; "
            f"a Rasch fit needs 0/1 ({int(odd.sum()):,} such values: {', '.join(texts)}{more}). "
            "Pass ",
            option("threshold", ...),
            f" to say what counts as right.{hint}",
        )
    return right, wrong


def block_of_masks(right: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> Block:
    """A block from users x items masks."""
    rights, wrongs = right.sum(axis=1), wrong.sum(axis=1)
    indptr = np.concatenate([[0], np.cumsum(rights + wrongs)]).astype(np.int64)
    split = indptr[:-1] + rights
    items = np.empty(indptr[-1], dtype=np.int32)
    for mask, starts, sizes in ((right, indptr[:-1], rights), (wrong, split, wrongs)):
        where = np.nonzero(mask)[1]
        offset = np.repeat(starts - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
        items[offset + np.arange(len(where))] = where
    return Block(indptr, split.astype(np.int64), items)


def _as_matrix(table: Any) -> NDArray[Any]:
    """A 2-D float array with NaN for every way of saying "not answered"."""
    if isinstance(table, np.ma.MaskedArray):
        table = np.where(np.ma.getmaskarray(table), np.nan, table.data.astype(float))
    try:
        values = np.asarray(table)
    except ValueError as error:
        raise ReadError(f"expected a 2-D table, users x items, with rows of one length ({error}).") from None
    if values.dtype == object:
        absent = np.array([is_missing(x) for x in values.ravel()], dtype=bool).reshape(values.shape)
        values = np.where(absent, np.nan, values)
    if values.dtype.kind == "c":
        raise ReadError("Complex data not supported: responses are 0 or 1.")
    try:
        values = values.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ResponseValueError(
            f"the table holds values that are not numbers ({error}); score raw answers first, with a key, ",
            option("correct", ...),
            " or ",
            option("threshold", ...),
            ".",
        ) from None
    if values.ndim != 2:
        raise ReadError(
            f"expected a 2-D table, users x items, not {values.ndim}-D with shape {values.shape}. Reshape your data: "
            "one row a user, one column an item."
        )
    return values


def _from_frame(
    table: Any, user: str | None, items: Sequence[Any] | None
) -> tuple[NDArray[Any], list[Any], Labels | None, str]:
    import narwhals as nw

    try:
        frame: Any = nw.from_native(table)
        frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        columns = frame.columns
    except TypeError:
        raise ReadError(f"expected a 2-D table, users x items, not a {type(table).__name__}.") from None
    except nw.exceptions.DuplicateError as error:
        repeated = " ".join(str(error).split())
        raise ReadError(f"column names must differ, since each names an item ({repeated}).") from None
    check_one_level(columns)
    if user is not None and user not in columns:
        raise OptionError(f"there is no column {user!r}; the columns are {listed(columns)}.")
    chosen = [c for c in columns if user is None or c != user] if items is None else list(items)
    absent = [c for c in chosen if c not in columns]
    if absent:
        raise OptionError(f"there is no column {listed(absent)}; the columns are {listed(columns)}.")
    series = [frame.get_column(name) for name in chosen]
    values = np.empty((len(frame), len(chosen)))
    for k, one in enumerate(series):
        try:
            values[:, k] = one.cast(nw.Float64).to_numpy()
        except Exception:
            first = next((x for x in one.to_list() if not _is_number(x)), None)
            raise ResponseValueError(
                f"column {chosen[k]!r} holds {first!r}, not a number. If it labels the users, say ",
                option("user", chosen[k]),
                "; if it is raw answers, score them first.",
            ) from None
    labels = None
    if user is not None:
        labels = as_labels(frame.get_column(user).to_list())
        check_people(labels, f"column {user!r}")
        if len(set(labels.tolist())) < len(labels):
            raise ReadError(f"column {user!r} names the same user more than once; a wide table has one row a user.")
    else:
        index = nw.maybe_get_index(frame)
        if index is not None and len(set(index)) == len(frame):
            labels = as_labels(list(index))
            check_people(labels, "the index")
    return values, [item_label(name) for name in chosen], labels, frame.implementation.value


def _from_sparse(cls: type[Responses], table: Any, items: Sequence[Any] | None, threshold: float | None) -> Responses:
    stored = sparse.coo_array(table)  # keeps stored zeros: they are wrong answers
    values = stored.data.astype(np.float64)
    labels = _item_labels(items, table.shape[1])
    if threshold is None and len(values) and np.all(values == 1):
        raise ResponseValueError(
            "every stored response of the sparse matrix is 1: its zeros, the wrong answers, were dropped on the way. "
            "Store them explicitly (for instance with Responses.from_long), or pass a dense array."
        )
    right, wrong = judge(values[:, None], threshold, np.array(["data"], dtype=object))
    kept = (right | wrong)[:, 0]
    return cls.from_codes(
        stored.row[kept].astype(np.int64),
        stored.col[kept].astype(np.int64),
        right[kept, 0],
        users=np.arange(table.shape[0]),
        items=labels,
    )


def _column(values: ArrayLike) -> NDArray[Any]:
    """A column as an array; text as Python strings, since numpy's own would drop a label's trailing NULs."""
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), np.array(None), values.data)
    array = np.asarray(values)
    if array.dtype.kind in "US":
        plain = array.tolist() if isinstance(values, np.ndarray) else list(values)  # type: ignore[arg-type]
        array = np.empty(array.shape, dtype=object)
        array[...] = plain
    if array.ndim != 1:
        raise OptionError(f"users, items and responses are columns, 1-D; one of them is {array.ndim}-D.")
    return array


def _labelled(column: NDArray[Any]) -> NDArray[np.bool_]:
    if column.dtype.kind in "iub":
        return np.ones(len(column), dtype=bool)
    return np.array([not is_missing(label) for label in column.tolist()], dtype=bool)


def _coded(column: NDArray[Any], name: str) -> tuple[Labels, NDArray[np.int64]]:
    """The different labels in sorted order, and the code of every row."""
    if column.dtype.kind in "iub":
        labels, codes = np.unique(column, return_inverse=True)
        return as_labels(labels), codes
    missing = np.sum(~_labelled(column))
    if missing:
        raise ReadError(f"{missing:,} answers have no label in {name}; leave them out or say whose they are.")
    plain = column.tolist()
    known = set(plain)
    try:
        ordered = sorted(known)
    except TypeError:  # of several kinds
        ordered = sorted(known, key=lambda label: (type(label).__name__, str(label)))
    return as_labels(ordered), positions(plain, ordered)


def _is_number(value: Any) -> bool:
    try:
        return is_missing(value) or float(value) is not None
    except (TypeError, ValueError):
        return False
