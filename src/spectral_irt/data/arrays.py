"""Arrays, sparse matrices and columns in memory -> Responses."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from spectral_irt.data.block import BLOCK_RESPONSES
from spectral_irt.data.builder import Piece, ResponsesBuilder, refuse_blanks
from spectral_irt.data.labels import Labels, label_array
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import Scoring
from spectral_irt.data.value_check import Place
from spectral_irt.errors import OptionError, ReadError, ResponseValueError, listed

if TYPE_CHECKING:
    import polars as pl

SOURCE = "the data"


def is_frame(table: Any) -> bool:
    """Whether this is a dataframe of some library."""
    return hasattr(type(table), "columns") or hasattr(table, "__arrow_c_stream__")


def from_array(table: Any, items: Sequence[Any] | None, scoring: Scoring, *, orient: str) -> Responses:
    """Responses from a matrix, dense or sparse, with one row per person, or per item."""
    matrix = table if sparse.issparse(table) else _as_matrix(table)
    if orient == "items":
        matrix = matrix.T
    labels = _item_labels(items, matrix.shape[1])
    builder = ResponsesBuilder(scoring, SOURCE, labels.tolist)
    for piece, persons in _of_sparse(matrix, labels, scoring) if sparse.issparse(matrix) else _of_dense(matrix, labels):
        builder.add(piece)
        builder.whole_people(persons.stop, persons, labels)
    return builder.responses(np.arange(matrix.shape[0]), labels)


def long_frame(*columns: ArrayLike) -> pl.DataFrame:
    """Columns of people, items and responses as a dataframe."""
    import polars as pl

    arrays = [_column(column) for column in columns]
    if len({len(array) for array in arrays}) > 1:
        raise OptionError(f"persons, items and responses differ in length: {[len(array) for array in arrays]}.")
    return pl.DataFrame(
        {name: _plain_values(array) for name, array in zip(("person", "item", "response"), arrays, strict=True)}
    )


def _of_dense(matrix: NDArray[Any], labels: Labels) -> Iterator[tuple[Piece, range]]:
    n_persons, n_items = matrix.shape
    rows = max(1, BLOCK_RESPONSES // max(n_items, 1))
    for start in range(0, n_persons, rows):
        part = matrix[start : start + rows]

        def place(k: int, start: int = start) -> Place:
            return Place(SOURCE, labels[k % n_items], start + k // n_items)

        persons = range(start, start + len(part))
        person = np.repeat(np.array(persons, dtype=np.int32), n_items)
        item = np.tile(np.arange(n_items, dtype=np.int32), len(part))
        yield Piece(person, item, _plain_values(part.ravel()), place, n_items), persons


def _of_sparse(matrix: Any, labels: Labels, scoring: Scoring) -> Iterator[tuple[Piece, range]]:
    refuse_blanks(scoring, "a sparse matrix holds answers only")
    stored = sparse.coo_array(matrix)  # keeps stored zeros: they are wrong answers
    row, column = stored.row, stored.col
    if (scoring.expects_01 or scoring.undecided) and len(stored.data) and np.all(stored.data == 1):
        raise ResponseValueError(
            "every stored response of the sparse matrix is 1: its zeros, the wrong answers, were dropped on the way. "
            "Store them explicitly (for instance with Responses.from_long), or pass a dense array."
        )
    values = _plain_values(stored.data)
    yield (Piece(row, column, values, lambda k: Place(SOURCE, labels[column[k]], int(row[k]))), range(stored.shape[0]))


def _item_labels(items: Sequence[Any] | None, n_items: int) -> Labels:
    labels = label_array(np.arange(n_items) if items is None else items)
    if len(labels) != n_items:
        raise OptionError(f"`items` has {len(labels)} labels; the table has {n_items} columns.")
    if len(_different(labels.tolist(), "items")) < n_items:
        seen: set[Any] = set()
        twice = [x for x in labels.tolist() if x in seen or seen.add(x)]  # type: ignore[func-returns-value]
        raise ReadError(f"item labels must differ; repeated: {listed(twice)}.")
    return labels


def _different(labels: list[Any], name: str) -> set[Any]:
    try:
        return set(labels)
    except TypeError:
        wrong = next(label for label in labels if not isinstance(label, Hashable))
        raise ReadError(
            f"labels of {name} are numbers or texts, and one is {wrong!r} ({type(wrong).__name__})."
        ) from None


def _as_matrix(table: Any) -> NDArray[Any]:
    """A 2-D array of any type."""
    if isinstance(table, np.ma.MaskedArray):
        table = _unmasked(table)
    try:
        values = np.asarray(table)
    except ValueError as error:
        raise ReadError(f"expected a 2-D table, people x items, with rows of one length ({error}).") from None
    if values.dtype.kind == "c":
        raise ReadError("Complex data not supported: responses are 0 or 1.")
    if values.ndim != 2:
        raise ReadError(
            f"expected a 2-D table, people x items, not {values.ndim}-D with shape {values.shape}. Reshape your data: "
            "one row per person, one column per item."
        )
    return values


def _unmasked(values: Any) -> NDArray[Any]:
    return np.where(np.ma.getmaskarray(values), np.array(None), values.data)


def _plain_values(values: NDArray[Any]) -> Any:
    """Numbers as an array, and anything else as a polars Series."""
    if values.dtype.kind in "biuf":
        return values
    from spectral_irt.reading.frame import series_of

    return series_of(values.tolist())


def _column(values: ArrayLike) -> NDArray[Any]:
    """A column as an array; text as Python strings, since numpy's own would drop a label's trailing NULs."""
    if isinstance(values, np.ma.MaskedArray):
        return _unmasked(values)
    array = np.asarray(values)
    if array.dtype.kind in "US":
        plain = array.tolist() if isinstance(values, np.ndarray) else list(values)  # type: ignore[arg-type]
        array = np.empty(array.shape, dtype=object)
        array[...] = plain
    if array.ndim != 1:
        raise OptionError(f"persons, items and responses are columns, 1-D; one of them is {array.ndim}-D.")
    return array


def as_responses(data: Any, *, ordered: bool = False, **how: Any) -> Responses:
    """What an estimator's `fit` makes of its argument: Responses as they are; a dataframe, long or wide, or an array as
    `read` takes it."""
    from spectral_irt.reading import names_files, options_going_to, read

    if isinstance(data, Responses):
        return data
    if names_files(data):
        raise ReadError(
            f"fit takes responses, an array or a dataframe, not the text {data!r}; "
            "read a file with spectral_irt.read(path) first."
        )
    with options_going_to("spectral_irt.read, and what it returns to fit"):
        return read(data, ordered=ordered, **how)


def turned(responses: Responses) -> Responses:
    """The same answers with people and items exchanged.

    >>> answers = Responses.from_wide([[1, 0, None], [1, 1, 0]])
    >>> turned(answers)
    Responses(3 persons x 2 items, 5 responses, 60.0% right)
    """
    responses.right_and_wrong_only()
    person, item, right = responses.answers()
    names = ("source", "frame_kind", "notes", "raw", "engine")
    known = {name: getattr(responses, name) for name in names} | {"words": responses.words[::-1]}
    return Responses.from_codes(item, person, right, persons=responses.items, items=responses.persons, **known)
