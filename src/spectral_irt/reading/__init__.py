"""One way in: files, queries, dataframes and arrays -> Responses.

`read` checks its options and goes through the front door (`tables.py`); only arrays, which have no names, take another
one (`data.builder`). `spectral_irt.read`, `fit` of every estimator and all commands read by this.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from spectral_irt.data.block import DUPLICATES, Duplicates
from spectral_irt.data.booklets import with_blanks_as_wrong
from spectral_irt.data.builder import from_array, is_frame, names_files
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import DERIVED, Blank, Scoring, of_either_kind, several
from spectral_irt.errors import OptionError, ReadError, check_option
from spectral_irt.notebook import progress_line, say

if TYPE_CHECKING:
    from spectral_irt.engine.dask import DaskEngine

Format = Literal["auto", "wide", "long"]
Orient = Literal["persons", "items"]
Progress = Callable[[float, str], None]
Path = str | os.PathLike[str]
Key = Path | Mapping[Any, Any]

__all__ = ["read"]


@dataclass(frozen=True)
class ReadOptions:
    """The options of `read`, checked: how to score, what the columns are, and what to do on the way."""

    scoring: Scoring = field(default_factory=Scoring)
    format: str = "auto"
    person: Any = None
    item: Any = None
    response: Any = None
    orient: str = "persons"
    ignore: tuple[Any, ...] = ()
    items: tuple[Any, ...] = ()
    order_by: Any = None
    people: tuple[str, ...] = ()
    facets: tuple[str, ...] = ()
    duplicates: Duplicates = "error"
    source: str = "the data"
    frame_kind: str | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        check_option("format", self.format, ("auto", "wide", "long"))
        check_option("orient", self.orient, ("persons", "items"))
        for name in ("items", "people", "facets"):
            if getattr(self, name) and self.orient == "items":
                what = f"`{name}=` names columns, and with `orient='items'` a column is a person;"
                raise OptionError(f"{what} leave out one of them.")

    def not_as_by_default(self, *but: str) -> str:
        """The options that are not as they are by default, but for these, as they are written in a call."""
        values = {**vars(self.scoring), **vars(self)}
        defaults = {**vars(Scoring()), **vars(ReadOptions())}
        but += ("scoring", "source", "frame_kind", "progress", *DERIVED)
        differing = [name for name in values if name not in but and _differs(values[name], defaults[name])]
        return ", ".join(f"`{name}=`" for name in differing)

    def report(self, share: float) -> None:
        text = f"reading {self.source}"
        if self.progress is None:
            say(text, share)
        else:
            self.progress(share, text)


def _differs(value: Any, default: Any) -> bool:
    """Whether an option is not as by default; of arrays, which no default is, `!=` would say it of each number."""
    return type(value) is not type(default) or bool(value != default)


def read(
    source: Any = None,
    *,
    sql: str | None = None,
    database: str | None = None,
    format: Format = "auto",
    person: Any = None,
    item: Any = None,
    response: Any = None,
    missing: Any = (),
    key: Key | None = None,
    correct: Any = None,
    exact_case: bool = False,
    round_fractions: bool = False,
    threshold: float | None = None,
    omitted: Blank = "missing",
    not_reached: Blank = "missing",
    not_presented: Any = (),
    form: str | None = None,
    ordered: bool | None = None,
    recode: Any = None,
    reverse: Any = (),
    span: tuple[int, int] | None = None,
    unused: str | None = None,
    groups: Any = None,
    duplicates: Duplicates = "error",
    order_by: Any = None,
    orient: Orient = "persons",
    ignore: Any = (),
    items: Any = (),
    people: Any = (),
    facets: Any = (),
    item_texts: Any = None,
    sheet: str | int | None = None,
    key_sheet: str | int | None = None,
    item_texts_sheet: str | int | None = None,
    encoding: str | None = None,
    progress: Progress | None = None,
    client: Any = None,
) -> Responses:
    """Responses from a file, a query, a dataframe or an array: the one way in.

    Files are CSV, Excel and OpenDocument workbooks, SPSS, Stata, Parquet, JSON lines, packed answers, and logs of
    evaluation harnesses. They are read in pieces; a long table of any size needs the packed responses (four bytes
    each), the labels, and one piece.

    Parameters
    ----------
    source : path, glob, folder, address, "-", or several of them; dataframe; array; sparse matrix; Responses
        Several files are one table: long ones are put one after the other, wide ones stacked, columns matched by name.
        Folders such as `year=2024` above a Parquet file are columns of it. Parquet is also read from s3://, gs:// and
        other stores that polars reads, any kind of file from https://; "-" is standard input. A dataframe of any
        library is read like a file and not changed; tables made from the responses come in the same library, and rows
        without labels have those of its index, or are numbered from 0. In an array and a sparse matrix a row is a
        person, a column an item (`items` are its labels), and NaN, None, masked or not stored is not answered.
    sql, database : str, optional
        Instead of a path: a query, and the database to ask: "sqlite:FILE", "duckdb:FILE" or
        "postgresql://USER@HOST/DATABASE". Rows come in batches. Needs `spectral-irt[database]`.
    format : "auto", "wide" or "long"
        Wide: one row per person, one column per item. Long: one row per answer. By default the column names decide.
    person, item, response : str, optional
        Columns. In a long table all three; by default found by their usual names (user_id, student, model, ...;
        item, question, movie, ...; response, correct, rating, ...). In a wide table `person` is the column of labels:
        by default the first one when its name or values are labels, else people are numbered from 1.
    missing : value or values
        What else means "not answered". The empty cell, null, NaN, "NA", "NaN", "nan" and "null" always do.
    key : path or mapping, optional
        The right answer of every item, for multiple choice: a file with columns item and key, a file with one row of
        right answers under the items' names, or a mapping. "A|C" are two right answers. With a third column, score (or
        a mapping of answers to scores for an item), answers earn partial credit; those not named have 0. By default
        the sheet of a workbook of answers that is called "key" or the like, or a row of a wide table that is called so
        (also "answer key", "solution", "Lösung", "clave"): the row is no person, and a finding says which it is. Where
        a key is given and the row has another, it is an error.
    correct : value or values, optional
        The right answers, whatever the item.
    exact_case : bool
        With a key or right answers, tell upper and lower case and full-width letters apart. By default "d", "D" and
        "Ｄ" are one option, and a finding counts the answers that were written in another way; they are told apart
        where the key itself gives "d" and "D" of an item different scores.
    round_fractions : bool
        Round fractions, as of imputed answers, to the nearest whole number, halves up; a finding counts them.
    threshold : float, optional
        Values above it are right, the others wrong.
    omitted, not_reached : "missing" or "wrong"
        What a blank cell of a wide table is: before a later answer of the same person it was omitted, after the last
        one not reached. Missing by default: whether a blank is a failure depends on the test.
    not_presented : value or values
        What means that the item was not on this person's form, which is neither; "" is the empty cell.
    form : str, optional
        The column that says which form each person was given, where blanks are wrong: items that a form does not have
        stay missing. By default forms are found in the responses (`data.booklets`).
    ordered : bool, optional
        Whether answers are in ordered categories, whole numbers from 0, rather than right or wrong. By default, and
        where no other option decides it, whole numbers without a gap from 0 or 1, at most ten, more than two of them
        in several items, are categories; a finding says so.
    recode : text, sequence or mapping, optional
        Labels from the lowest category to the highest, "never,sometimes,often"; labels that mean the same are joined by
        "=".
    reverse : labels of items, optional
        Items whose highest category is the lowest: they are turned round.
    span : (lowest, highest), optional
        The categories that there are, for `reverse`; by default those of the labels, or those that somebody used.
    unused : "collapse", "error" or "keep"; groups : mapping from item to group, or a label for each item
        What becomes of categories that nobody used. "collapse": the other categories of the item are renumbered,
        with a finding. "error": refused. "keep": an item has every category that somebody used for any item of its
        group, for rating scales.
    duplicates : "error", "first" or "last"
        When a person answered an item twice: refuse, or keep the first or last answer.
    order_by : str, optional
        The column of a long table, times or numbers, that says which answer is first; by default the order of rows.
    orient : "persons" or "items"
        What a row of a wide table is.
    ignore : str or several
        Columns of a wide table that are not items, by name or pattern: "age", "Post*"; "a,b" are two.
    items : str or several
        Columns of a wide table that are items, by name or pattern: "q*" or "q1,q2"; the others are left out. By default
        the items are those of the key, or else every column but the labels, attributes such as sex, group, school and
        total score, and columns unlike the others; `findings()` names them.
    people : str or several
        Columns about people, such as sex, class or a weight: read in the same pass and kept as `responses.people`, so
        that groups, clusters, weights and populations can be asked by name. They are never items.
    facets : str or several
        Columns that say who rated, or when: an answer is given to an item *and* a rater. Each observed combination is
        an item of the responses, and `responses.facets` says of what. In a wide table a row is then a person as one
        rater saw him or her.
    item_texts : path, dataframe or mapping, optional
        The text of each item, which report and tables show beside its label: a table with the columns item and text, or
        a mapping. By default the labels of variables, of SPSS and Stata.
    sheet, key_sheet, item_texts_sheet : str or int, optional
        The sheet of a workbook (.xlsx, .xls, .ods) of answers, of a key, and of texts, by its name or its number from
        1; not needed where only one holds anything, or beside one that is called "key" or the like.
    encoding : str, optional
        How text files (CSV, JSON lines, SPSS, Stata) are written, such as "cp1252". By default UTF-8, or UTF-16 where
        the first bytes show it; a text file that is neither is read as Windows-1252, and a finding says so.
    progress : callable(fraction, text), optional
        Called after every piece with how far reading has come. By default a notebook shows it, where it takes long.
    client : distributed.Client, or str, optional
        A Dask cluster: its client, or the address of its scheduler. Its workers map a packed file that they see, and
        keep the answers of others, which are read here and sent there; they do every sum over people. See the page on
        clusters.

    Returns
    -------
    Responses
        Labels are as in the file: text, or integers where all labels of a kind are whole numbers ("007" stays text).
        People and items of a long table are sorted; those of a wide table keep their order.

    Raises
    ------
    ReadError, ResponseValueError, DuplicateResponseError, OptionError
        In one sentence: what is wrong, where, and what to do.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "answers.csv")
    >>> _ = file.write_text("student,q1,q2\\nann,1,0\\nbob,1,\\n")
    >>> read(file)
    Responses(2 persons x 2 items, 3 responses, 66.7% right)
    >>> _ = file.write_text("person,a,b\\nann,never,often\\nbob,often,sometimes\\ncy,sometimes,never\\n")
    >>> read(file, recode="never,sometimes,often", reverse="b").to_dense().tolist()
    [[0.0, 0.0], [2.0, 1.0], [1.0, 2.0]]
    """
    check_option("duplicates", duplicates, DUPLICATES)
    engine = None
    if client is not None:
        from spectral_irt.engine.dask import connect

        engine = connect(client)
    scoring = scoring_of(
        key=key,
        key_sheet=key_sheet,
        encoding=encoding,
        ordered=ordered,
        unused=unused,
        missing=missing,
        correct=correct,
        threshold=threshold,
        exact_case=exact_case,
        round_fractions=round_fractions,
        omitted=omitted,
        not_reached=not_reached,
        not_presented=not_presented,
        recode=recode,
        reverse=reverse,
        span=span,
        groups=groups,
    )
    options = ReadOptions(
        scoring=scoring,
        format=format,
        person=person,
        item=item,
        response=response,
        orient=orient,
        ignore=several(ignore),
        items=several(items),
        order_by=order_by,
        people=several(people),
        facets=several(facets),
        duplicates=duplicates,
        progress=progress,
    )
    texts = None
    if item_texts is not None:
        from spectral_irt.reading.side_tables import read_item_texts

        texts = read_item_texts(item_texts, item_texts_sheet)
    elif item_texts_sheet is not None:
        raise OptionError("`item_texts_sheet` is a sheet of the workbook that `item_texts=` names.")
    if order_by is not None and duplicates == "error":
        what = "`order_by=` says which of several answers is first or last;"
        raise OptionError(f"{what} say `duplicates='first' or 'last'` too.")
    where = Where(sheet, encoding, sql, database)
    with progress_line(progress):
        responses = _responses(source, where, options, form, engine)
    if texts is not None:
        responses = responses.with_item_texts(texts)
    return responses


class Where(NamedTuple):
    """Where the responses are, beside the name of a file: options of files, and of databases."""

    sheet: str | int | None
    encoding: str | None
    sql: str | None
    database: str | None

    @property
    def in_database(self) -> bool:
        return self.sql is not None or self.database is not None


def _responses(
    source: Any, where: Where, options: ReadOptions, form: str | None, engine: DaskEngine | None
) -> Responses:
    """The responses of any source, under this engine; blanks that are wrong go by the form of each person."""
    if isinstance(source, Responses):
        _refuse_options(options, *where)
        return source.with_engine(engine)
    if source is None and not where.in_database:
        raise ReadError("there is nothing to read: name a file, or a query with `sql=`.")
    if not (where.in_database or is_frame(source) or names_files(source)):
        return _read_array(source, options).with_engine(engine)
    from spectral_irt.reading import tables

    def read_as(options: ReadOptions) -> Responses:
        if where.in_database:
            of_files = where.sheet or where.encoding
            return tables.read_query(source, where.sql, where.database, of_files, options).with_engine(engine)
        if is_frame(source):
            return tables.read_frame(source, options).with_engine(engine)
        return tables.read_files(source, options, where.sheet, where.encoding, engine)

    scoring = options.scoring
    blanks_are_wrong = "wrong" in (scoring.omitted, scoring.not_reached)
    one_table = is_frame(source) or (not where.in_database and _is_one_file(source))
    if blanks_are_wrong and not scoring.not_presented and (form is not None or one_table):
        columns = options.people
        if form is not None:
            columns = tuple(dict.fromkeys([*options.people, form]))
        blanks_missing = replace(scoring, omitted="missing", not_reached="missing")
        responses = with_blanks_as_wrong(
            read_as(replace(options, scoring=blanks_missing, people=columns)),
            form,
            omitted=scoring.omitted == "wrong",
            not_reached=scoring.not_reached == "wrong",
        )
        if responses is not None:
            return responses
    return read_as(options)


def _is_one_file(source: Any) -> bool:
    """Whether this names a single file. Several with different columns say which items were on a form, and a pipe
    cannot be read twice."""
    names = source if isinstance(source, list | tuple) else [source]
    return len(names) == 1 and isinstance(names[0], str | os.PathLike) and os.path.isfile(names[0])


def _refuse_options(options: ReadOptions, *of_files: Any) -> None:
    """An error where options say how to read what has been read already."""
    implied: tuple[str, ...] = ("undecided",)  # not an option, and what goes with it
    if options.scoring.undecided:
        implied = ("ordered", "undecided")
    names = options.not_as_by_default(*implied)
    if not names and any(option is not None for option in of_files):
        names = "an option of files"
    if names:
        raise OptionError(
            f"these are responses, read already, and {names} says how to read; say it where they are read."
        )


def _read_array(table: Any, options: ReadOptions) -> Responses:
    if options.format == "long":
        raise OptionError("this table is an array, wide: a row for each person. `Responses.from_long` takes columns.")
    about_names = options.not_as_by_default("format", "orient", "items", *vars(options.scoring))
    if about_names:
        raise OptionError(f"{about_names} is about columns with names; this table is an array, without names.")
    items = options.items or None
    return of_either_kind(lambda how: from_array(table, how, items, options.orient), options.scoring)


def scoring_of(
    *,
    key: Key | None = None,
    key_sheet: str | int | None = None,
    encoding: str | None = None,
    ordered: bool | None = None,
    unused: str | None = None,
    **options: Any,
) -> Scoring:
    """How to score, every option checked; undecided where no option says whether answers are ordered."""
    of_ordered = ("recode", "reverse", "span", "groups")
    says_ordered = unused is not None or any(several(options.get(name)) for name in of_ordered)
    of_right_and_wrong = (key, options.get("correct"), options.get("threshold"))
    says_right_and_wrong = any(option is not None for option in of_right_and_wrong)
    undecided = ordered is None and not says_ordered and not says_right_and_wrong
    if ordered is None:
        ordered = undecided or says_ordered
    options |= {"ordered": ordered, "unused": unused or "collapse"}
    if key is not None and not isinstance(key, Mapping):
        # Options that exclude each other are an error whether or not the key file can be read.
        Scoring(key={}, **options)
        from spectral_irt.reading.side_tables import read_key

        key = read_key(key, key_sheet, encoding)
    elif key_sheet is not None:
        raise OptionError("`key_sheet` is a sheet of the workbook that `key=` names.")
    return Scoring(key=key, undecided=undecided, **options)
