"""Files and dataframes of ordered answers -> OrderedResponses, by the same readers as right and wrong answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spectral_irt.errors import OptionError, check_option, listed, option
from spectral_irt.responses.block import Block, Ints
from spectral_irt.responses.labels import positions
from spectral_irt.responses.ordered import OrderedResponses, ordered_from_codes
from spectral_irt.responses.ordered_arrays import UNUSED, settle_categories
from spectral_irt.responses.ordered_scoring import WIDTH, OrderedScoring, recoding
from spectral_irt.responses.pack import DUPLICATES
from spectral_irt.responses.read import asked_for, check_order_by, check_query, from_tables, read_files, read_query
from spectral_irt.responses.responses import Responses
from spectral_irt.responses.scorer import scoring


def read_ordered(
    path: Any = None,
    *,
    sql: str | None = None,
    database: str | None = None,
    format: str = "auto",
    person: Any = None,
    item: Any = None,
    response: Any = None,
    missing: Any = (),
    recode: Any = None,
    reverse: Any = (),
    unused: str = "collapse",
    groups: Any = None,
    duplicates: Any = "error",
    order_by: Any = None,
    orient: Any = "users",
    ignore: Any = (),
    items: Any = (),
    progress: Any = None,
    client: Any = None,
    sheet: str | int | None = None,
    encoding: str | None = None,
    user: Any = None,
    span: tuple[int, int] | None = None,
) -> OrderedResponses:
    """Read answers in ordered categories from a file, several files, or a dataframe.

    Parameters
    ----------
    path : path, paths, or dataframe
    recode : text, sequence or mapping, optional
        Labels from the lowest category to the highest, "never,sometimes,often"; labels that mean the same are joined by
        "=". Without it answers are whole numbers from 0 (or from another lowest one, with a finding).
    reverse : labels of items, optional
        Items whose highest category is the lowest: they are turned round.
    span : (lowest, highest), optional
        The categories that there are, for `reverse`; by default those of the labels, or those that somebody used.
    unused : "collapse", "error" or "keep"; groups
        What becomes of categories that nobody used; see `ordered_from_wide`.

    The others are those of `read_responses`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "survey.csv")
    >>> _ = file.write_text("who,a,b\\nann,never,often\\nbob,often,sometimes\\ncy,sometimes,never\\n")
    >>> read_ordered(file, recode="never,sometimes,often", reverse="b").to_dense().tolist()
    [[0.0, 0.0], [2.0, 1.0], [1.0, 2.0]]
    """
    from spectral_irt.engines.dask import connect
    from spectral_irt.responses.arrays import is_frame
    from spectral_irt.responses.reading.frames import table_of_any_frame
    from spectral_irt.responses.reading.request import Request
    from spectral_irt.responses.reading.tabular import polars_errors_named

    check_option("duplicates", duplicates, DUPLICATES)
    check_option("unused", unused, UNUSED)
    engine = None if client is None else connect(client)
    plain = scoring(missing=missing)
    how = OrderedScoring(missing=plain.missing, recode=recoding(recode))
    asked = asked_for(format, user if person is None else person, item, response, orient, ignore, items, order_by)
    check_order_by(order_by, duplicates)
    if sql is not None or database is not None:
        check_query(path, sql, database, sheet, encoding)
        coded = read_query(str(sql), str(database), how, asked, duplicates, progress)
    elif is_frame(path):
        with polars_errors_named("the dataframe"):
            table, kind = table_of_any_frame(path)
            coded = from_tables([table], Request(how, asked, duplicates, "the data", kind, progress))
    else:
        coded = read_files(path, how, asked, duplicates, progress, sheet=sheet, encoding=encoding)
        if isinstance(coded, OrderedResponses):  # a packed file
            if len(_several(reverse)):
                raise OptionError(option("reverse", ...), " is said when answers are packed; leave it out.")
            return coded.using(engine)  # type: ignore[return-value]
    if how.recode is not None:
        span = 0, int(max(how.recode.values()))
    found: OrderedResponses = decoded(coded, reverse=_several(reverse), unused=unused, groups=groups, span=span)
    return found.using(engine)  # type: ignore[return-value]


def decoded(
    coded: Responses,
    *,
    reverse: Sequence[Any] = (),
    unused: str = "collapse",
    groups: Any = None,
    span: tuple[int, int] | None = None,
) -> Any:
    """Responses whose items are WIDTH times the item plus the category, as ordered ones."""
    user, code = _entries(coded)
    item, category = code // WIDTH, code % WIDTH
    labels = coded.items
    if len(reverse):
        place = positions(reverse, labels)
        unknown = [one for one, k in zip(reverse, place.tolist(), strict=True) if k < 0]
        if unknown:
            raise OptionError(
                option("reverse"), f" names {listed(unknown)}, which are not items; these are {listed(labels)}."
            )
        turned = np.isin(item, place)
        low, high = span or (int(category.min(initial=WIDTH)), int(category.max(initial=0)))
        category = np.where(turned, low + high - category, category)
    found = settle_categories(category, item, labels, unused, coded.source, groups)
    return ordered_from_codes(
        user,
        item,
        found.category,
        found.n_thresholds,
        users=coded.users,
        items=labels,
        source=coded.source,
        notes=(*coded.notes, *found.notes),
        frame_kind=coded.frame_kind,
        codes=found.codes,
        words=coded.words,
    )


def _entries(coded: Responses) -> tuple[Ints, Ints]:
    user, code = coded.gather(_codes, persons=(np.arange(coded.n_users),))
    return user, code


def _codes(block: Block, person: Ints) -> tuple[Ints, Ints]:
    return np.repeat(person, block.counts), np.asarray(block.items, dtype=np.int64)


def _several(given: Any) -> list[Any]:
    if isinstance(given, str):
        return [one.strip() for one in given.split(",") if one.strip()]
    return [] if given is None else list(given)


def looks_ordered(responses: OrderedResponses) -> bool:
    """Whether answers that are not all 0 and 1 look like ordered categories, so that nobody need say so.

    Whole numbers without a gap over all items, from 0 or 1, at most ten, and more than two in at least two items and a
    tenth of them: codes for missing answers (9, 99) leave a gap, and ages or grades stand in a single column.
    """
    codes = responses.category_codes()
    seen = np.unique(codes[np.isfinite(codes)])
    whole = len(seen) and seen[0] in (0, 1) and seen[-1] - seen[0] == len(seen) - 1
    several = int(np.sum(np.sum(responses.category_counts > 0, axis=1) > 2))
    return bool(whole and len(seen) <= 10 and several >= 2 and 10 * several >= responses.n_items)
