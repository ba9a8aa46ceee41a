"""Which group each person is in: a column of the answers themselves, or of a table of people beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectral_irt.errors import DesignError, OptionError, listed
from spectral_irt.responses.labels import positions

if TYPE_CHECKING:
    import polars as pl

    from spectral_irt.cli.options import Reading
    from spectral_irt.responses import Responses
    from spectral_irt.responses.reading.files import File
    from spectral_irt.responses.reading.tabular import Table

MOST_LEVELS = 100  # beyond, the column is more likely an age or a name than a group


@dataclass(frozen=True)
class Groups:
    """The group of each person, by the person's label as text."""

    column: str
    source: str
    of_user: dict[str, Any]

    def of(self, responses: Responses) -> list[Any]:
        """The group of every person of these responses, None for those who have none."""
        place, groups = positions(responses.users, self.of_user), list(self.of_user.values())
        found = [groups[k] if k >= 0 else None for k in place.tolist()]
        if self.of_user and all(group is None for group in found):
            raise OptionError(
                f"none of the {len(self.of_user):,} people in {self.source} ({listed(self.of_user)}) is in "
                f"{responses.source} ({listed(responses.users)}). Check that both name people alike."
            )
        return found


def read_groups(
    columns: Sequence[str],
    group_file: str | None,
    files: Sequence[str],
    reading: Reading,
    *,
    many: Sequence[str] = (),
    group_sheet: str | None = None,
) -> list[Groups]:
    """The groups that columns (of `--group` and its like) and `--group-file` mean; the rest is about the answers.

    A column among `many` may have any number of values.
    """
    from spectral_irt.responses.reading.files import find_files, source_name
    from spectral_irt.responses.reading.tabular import polars_errors_named
    from spectral_irt.responses.reading.text_encodings import read_as_written

    if group_file is None and group_sheet is not None:
        raise OptionError("--group-sheet is a sheet of the workbook that --group-file names.")
    if group_file is None and reading.orient == "items":
        raise OptionError(
            "a group is named in a column, and with --orient items a column is a person; use --group-file."
        )
    if group_file is None and reading.sql is not None:
        raise OptionError("what people have in common stands in a file here; use --group-file with --sql.")
    if group_file is None:
        found = find_files(list(files), sheet=reading.sheet, encoding=reading.encoding)
    else:
        found = find_files([group_file], sheet=group_sheet, sheet_option="group_sheet", encoding=reading.encoding)
    source = source_name(found)

    def read(found: list[File]) -> list[Groups]:
        groups = []
        if group_file is None:
            for column in dict.fromkeys(columns):
                groups.append(_gathered(column, source, _of_answers(found, column, columns, reading), column in many))
        else:
            for asked in dict.fromkeys(columns) or [None]:
                column, pieces = _of_people(found, asked, reading.user)
                groups.append(_gathered(column, source, pieces, column in many))
        return groups

    with polars_errors_named(source):
        return read_as_written(found, read)


Pieces = Iterator[tuple["pl.Series", "pl.Series"]]  # labels of people, and their groups, as text


def _gathered(column: str, source: str, pieces: Pieces, many: bool) -> Groups:
    import polars as pl

    from spectral_irt.responses.missing import NOT_ANSWERED
    from spectral_irt.responses.reading.numbering import all_whole

    seen = pl.DataFrame({"user": pl.Series([], dtype=pl.String), "group": pl.Series([], dtype=pl.String)})
    missing = NOT_ANSWERED
    for users, groups in pieces:
        piece = pl.DataFrame({"user": users, "group": groups.str.strip_chars()})
        known = pl.col("user").is_not_null() & pl.col("group").is_not_null() & ~pl.col("group").is_in(missing)
        seen = pl.concat([seen, piece.filter(known)]).unique(maintain_order=True)
    twice = seen.filter(pl.col("user").is_duplicated())["user"].unique(maintain_order=True)
    if len(twice):
        noun = "person is" if len(twice) == 1 else "people are"
        raise OptionError(
            f"{source}: {len(twice):,} {noun} in more than one group by the column {column!r}: "
            f"{listed(twice.to_list())}. Give each person one."
        )
    levels = seen["group"].unique().sort()
    if len(levels) < 2:
        what = f"a single value, {levels[0]!r}" if len(levels) else "no value at all"
        raise DesignError(f"{source}: the column {column!r} has {what}; groups are two or more. Check the column.")
    if len(levels) > MOST_LEVELS and not many:
        raise OptionError(
            f"{source}: the column {column!r} has {len(levels):,} different values ({listed(levels.to_list())}); at "
            f"most {MOST_LEVELS} groups are compared. Merge them into a few, each of some hundred people."
        )
    groups = seen["group"].cast(pl.Int64) if all_whole(levels) else seen["group"]  # 2 comes before 10
    return Groups(column, source, dict(zip(seen["user"].to_list(), groups.to_list(), strict=True)))


def _texts(values: pl.Series, name: str) -> pl.Series:
    import polars as pl

    from spectral_irt.responses.reading.numbering import plain_labels

    return plain_labels(values, text=True, name=name).cast(pl.String)


# -------------------------------------------------------------------------------- a table of people


def _of_people(files: list[File], column: str | None, user: str | None) -> tuple[str, Pieces]:
    """The column and its values in a table with a row for each person."""
    from spectral_irt.responses.reading.files import open_table
    from spectral_irt.responses.reading.layout import position_of
    from spectral_irt.responses.reading.text_encodings import warn_of

    tables = [open_table(file) for file in files]
    table, *others = tables
    if others:
        raise OptionError(f"--group-file names {len(tables)} files; a table of people is one file.")
    warn_of(table.notes)
    people = _label_column(table, column, user)
    if column is None:
        rest = [k for k in range(len(table.columns)) if k != people]
        if len(rest) != 1:
            raise OptionError(f"say which column of {table.name} with --group; it has {listed(table.columns)}.")
        column = str(table.columns[rest[0]])
    position = position_of(table, "group", column)
    assert position is not None
    if position == people:
        raise OptionError(f"{table.name}: column {column!r} names the people; --group is another one.")
    return column, _columns(table, people, position)


def _label_column(table: Table, column: str | None, user: str | None) -> int:
    """The column that names the people: as said for the answers, by a usual name, or the first."""
    from spectral_irt.responses.reading.layout import ID_NAMES, USER_NAMES, plain

    names = [str(name) for name in table.columns]
    if user is not None and str(user) in names:
        return names.index(str(user))
    others = [k for k, name in enumerate(names) if name != column]
    for known in (USER_NAMES, ID_NAMES):
        usual = [k for k in others if plain(names[k]) in known]
        if usual:
            return usual[0]
    return others[0] if others else 0


def _columns(table: Table, people: int, group: int) -> Pieces:
    for piece, _ in table.pieces([people, group]):
        yield _texts(piece.to_series(0), table.name), _texts(piece.to_series(1), table.name)


# ----------------------------------------------------------------------------------- in the answers


def _of_answers(files: list[File], column: str, columns: Sequence[str], reading: Reading) -> Pieces:
    """The column's values in the files of answers, long or wide; no other of the `columns` is an item either."""
    from spectral_irt.responses.reading.files import open_table
    from spectral_irt.responses.reading.json_lines import is_long, open_json
    from spectral_irt.responses.reading.layout import Asked, Long, find_layout, position_of

    asked = Asked(
        reading.format,
        reading.user,
        reading.item,
        reading.response,
        reading.orient,
        tuple(reading.ignore),
        tuple(reading.items),
    )
    number = 1
    for file in files:
        if file.family == "json":
            opened = open_json(file)
            if not is_long(opened, asked):
                for users, groups in _of_objects(opened, column, asked, number):
                    number += len(users)
                    yield users, groups
                continue
        table = open_table(file)
        group = {name: position_of(table, "group", name) for name in columns}[column]
        layout = find_layout(table, asked)
        people = layout.user if isinstance(layout, Long) else layout.label
        assert group is not None
        if people is not None:
            yield from _columns(table, people, group)
            continue
        for piece, _ in table.pieces([group]):
            yield _numbers(number, piece.height), _texts(piece.to_series(0), table.name)
            number += piece.height


def _of_objects(opened: Any, column: str, asked: Any, number: int) -> Pieces:
    """The same, where a line is an object with all the answers of a person."""
    import polars as pl

    from spectral_irt.responses.reading.json_lines import find_fields

    names = [name for name, _ in opened.first]
    if column not in names:
        raise OptionError(f"{opened.file.name} has no field {column!r} for group; its fields are {listed(names)}.")
    field = find_fields(opened, asked)
    for lines, _ in opened.lines():
        people = [dict(one) for _, one in lines]
        groups = [_text(one.get(column)) for one in people]
        if field.user is None:
            users = _numbers(number, len(people))
        else:
            users = pl.Series([_text(one.get(field.user)) for one in people], dtype=pl.String)
        number += len(people)
        yield users, pl.Series(groups, dtype=pl.String)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _numbers(first: int, size: int) -> pl.Series:
    """Rows without labels are numbered from 1, as `read_responses` numbers them."""
    import polars as pl

    return pl.Series([str(k) for k in range(first, first + size)], dtype=pl.String)
