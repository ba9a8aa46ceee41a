"""Which group each person is in: columns of the answers themselves, or of a table of people beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spectral_irt.errors import DesignError, OptionError, listed

if TYPE_CHECKING:
    from spectral_irt.cli.options import Reading
    from spectral_irt.data import Responses
    from spectral_irt.data.labels import People
    from spectral_irt.reading.formats import File
    from spectral_irt.reading.frame import Table

MOST_LEVELS = 100  # beyond, the column is more likely an age or a name than a group


def groups_of(responses: Responses, people: People | None, many: Sequence[str | None] = ()) -> dict[str, list[Any]]:
    """The group of every person by each column, None for those who have none: columns of `people`, a table of their
    own, or those read with the answers. A column among `many` may have any number of values."""
    if people is None:
        found: Mapping[str, Any] = responses.people or {}
        source = responses.source
    else:
        found, source = people.of(responses.persons), people.source
        if len(people.labels) and all(value is None for values in found.values() for value in values.tolist()):
            raise OptionError(
                f"none of the {len(people.labels):,} people in {source} ({listed(people.labels)}) is in "
                f"{responses.source} ({listed(responses.persons)}). Check that both name people alike."
            )
    for column, values in found.items():
        _check_levels(sorted({str(value) for value in values.tolist() if value is not None}), column, source, many)
    return {column: values.tolist() for column, values in found.items()}


def _check_levels(levels: list[str], column: str, source: str, many: Sequence[str | None]) -> None:
    if len(levels) < 2:
        what = f"a single value, {levels[0]!r}" if levels else "no value at all"
        raise DesignError(f"{source}: the column {column!r} has {what}; groups are two or more. Check the column.")
    if len(levels) > MOST_LEVELS and column not in many:
        raise OptionError(
            f"{source}: the column {column!r} has {len(levels):,} different values ({listed(levels)}); at most "
            f"{MOST_LEVELS} groups are compared. Merge them into a few, each of some hundred people."
        )


def read_groups(
    columns: Sequence[str],
    group_file: str | None,
    reading: Reading,
    *,
    many: Sequence[str | None] = (),
    group_sheet: str | None = None,
) -> Callable[[Responses], dict[str, list[Any]]]:
    """What `--group` and its like mean, of the answers when they are read; `--group-file` is read at once."""
    if group_file is None:
        if group_sheet is not None:
            raise OptionError("--group-sheet is a sheet of the workbook that --group-file names.")
        if reading.orient == "items":
            raise OptionError(
                "a group is named in a column, and with --orient items a column is a person; use --group-file."
            )
        return lambda responses: groups_of(responses, None, many)
    people = read_people(group_file, columns, person=reading.person, sheet=group_sheet, encoding=reading.encoding)
    return lambda responses: groups_of(responses, people, many)


# -------------------------------------------------------------------------------- a table of people


def read_people(
    group_file: str, columns: Sequence[str], *, person: str | None, sheet: str | None, encoding: str | None
) -> People:
    """Columns of a table with a row for each person, `--group-file`; its only one where none is named."""
    import numpy as np
    import polars as pl

    from spectral_irt.reading.attributes import PersonColumns
    from spectral_irt.reading.formats import find_files, open_table, warn_of
    from spectral_irt.reading.frame import polars_errors_named
    from spectral_irt.reading.text_pieces import read_as_written

    files = find_files([group_file], sheet=sheet, sheet_option="group_sheet", encoding=encoding)
    if len(files) > 1:
        raise OptionError(f"--group-file names {len(files)} files; a table of people is one file.")

    def read(files: list[File]) -> People:
        table = open_table(files[0])
        warn_of(table.notes)
        label = _label_column(table, columns, person)
        names = list(columns) or [str(name) for k, name in enumerate(table.columns) if k != label]
        if not columns and len(names) != 1:
            raise OptionError(f"say which column of {table.name} with --group; it has {listed(table.columns)}.")
        for name in names:
            if table.position("people", name) == label:
                raise OptionError(f"{table.name}: column {name!r} names the people; --group is another one.")
        about = PersonColumns(names, table.name, 1)
        labels: list[Any] = []
        for piece, _ in about.beside(table, label).pieces([label]):
            labels += piece.to_series(0).cast(pl.String).drop_nulls().to_list()
        return about.people(np.array(list(dict.fromkeys(labels)), dtype=object))

    with polars_errors_named(files[0].name):
        return read_as_written(files, read)


def _label_column(table: Table, columns: Sequence[str], person: str | None) -> int:
    """The column that names the people: as said for the answers, by a usual name, or the first."""
    from spectral_irt.reading.columns import ID_NAMES, PERSON_NAMES, plain

    names = [str(name) for name in table.columns]
    if person is not None and str(person) in names:
        return names.index(str(person))
    others = [k for k, name in enumerate(names) if name not in columns]
    for known in (PERSON_NAMES, ID_NAMES):
        usual = [k for k in others if plain(names[k]) in known]
        if usual:
            return usual[0]
    return others[0] if others else 0
