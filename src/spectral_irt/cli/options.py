"""Options that commands share, in groups: how files are read, what categories there are, how much of the machine.

The first sentence of a help text is what the short help shows; `help TOPIC` and `--help-all` show all of it. This file
is loaded with every command, be it for a help text, and imports nothing large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spectral_irt.cli.help import option
from spectral_irt.cli.terminal import Progress, cluster
from spectral_irt.errors import OptionError

if TYPE_CHECKING:
    from spectral_irt.bank import Bank
    from spectral_irt.data import Responses

BLANKS = ("omitted", "not_reached", "not_presented")
OWN_MEAN = "own-mean"
DATABASES = ("sqlite", "duckdb", "postgresql")


own = partial(option, None)
columns, scoring, people = partial(option, "columns"), partial(option, "scoring"), partial(option, "people")
method, size, results = partial(option, "method"), partial(option, "size"), partial(option, "results")

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="CSV or TSV (plain, .gz, .zst), an Excel or OpenDocument workbook, SPSS, Stata, Parquet, Arrow/Feather or "
        "JSON lines; several files, or a folder of them, are one table. Or an address (https://, for Parquet s3:// "
        "and the like), - for standard input, a packed file (see spectral-irt pack), or with --sql a database: "
        "sqlite:FILE, duckdb:FILE or postgresql://USER@HOST/DATABASE.",
    ),
]


@dataclass(frozen=True)
class Machine:
    """How much of this machine, or of others, a command may use: options of the program, which change no result."""

    memory: Annotated[
        str | None,
        size(
            metavar="SIZE",
            envvar="SPECTRAL_IRT_MEMORY",
            help="Memory to use, such as 4GB; half of what is free by default. What goes beyond it is kept in "
            "temporary files, and the results are the same.",
        ),
    ] = None
    spill: Annotated[
        str | None,
        size(
            metavar="DIR",
            envvar="SPECTRAL_IRT_SPILL",
            help="Folder of these temporary files; by default that of TMPDIR, or /var/tmp.",
        ),
    ] = None
    threads: Annotated[
        int | None, size(metavar="NUMBER", min=1, envvar="SPECTRAL_IRT_THREADS", help="Threads to use; all by default.")
    ] = None
    dask: Annotated[
        str | None,
        size(
            metavar="ADDRESS|local:N",
            envvar="SPECTRAL_IRT_DASK",
            help="Work on a Dask cluster. By the address of its scheduler, such as tcp://10.0.0.1:8786, or in N "
            "processes of this machine. Its workers map packed files that they see.",
        ),
    ] = None

    def check(self) -> None:
        """An error when two of them do not go together."""
        if self.dask is not None and self.threads is not None:
            raise OptionError("--threads is about this process; with --dask the workers have threads of their own.")


@dataclass
class Call:
    """What a command may need to know of the line that called it."""

    argv: Sequence[str] = ()
    machine: Machine = field(default_factory=Machine)
    exports: dict[str, Path] = field(default_factory=dict)  # by options of `fit` that are a command of their own now


@dataclass(frozen=True)
class Reading:
    """How files are to be read."""

    key: Annotated[
        str | None,
        scoring(
            metavar="FILE[#SHEET]",
            help="Score multiple choice by a key: columns item, key. With a third column, score, answers earn partial "
            "credit. In a workbook of several sheets, key.xlsx#Key names one.",
        ),
    ] = None
    missing: Annotated[
        list[str],
        scoring(
            metavar="CODE",
            help="Code for 'not answered', such as 9; repeatable. The empty cell, NA, NaN and null always are.",
        ),
    ] = field(default_factory=list)
    items: Annotated[
        list[str],
        columns(
            metavar="PATTERN,...",
            help="Columns that are items, such as 'q*'. By default all but labels and attributes of people, such as "
            "sex or school; with --key, the items of the key. For wide tables.",
        ),
    ] = field(default_factory=list)
    ignore: Annotated[
        list[str], columns(metavar="COLUMN,...", help="Columns that are not items, such as age. For wide tables.")
    ] = field(default_factory=list)
    sheet: Annotated[
        str | None, columns(metavar="NAME|NUMBER", help="Sheet of a workbook, where several hold something.")
    ] = None
    layout: Annotated[
        Literal["auto", "wide", "long", "items-in-rows"],
        columns(
            metavar="LAYOUT",
            help="wide: a row for each person, a column for each item. long: a row for each answer. items-in-rows: a "
            "row for each item, a column for each person. Recognized by the names of the columns by default.",
        ),
    ] = "auto"
    person: Annotated[
        str | None, columns(metavar="COLUMN", help="Who answered (long tables), or the labels of rows (wide).")
    ] = None
    item: Annotated[str | None, columns(metavar="COLUMN", help="Which item it was (long tables).")] = None
    response: Annotated[str | None, columns(metavar="COLUMN", help="What the answer was (long tables).")] = None
    duplicates: Annotated[
        str,
        columns(
            metavar="error|first|last[:COLUMN]",
            help="When a person answered an item twice: an error (default), or keep the first or last answer. In long "
            "tables, last:time lets the column 'time' (times or numbers) decide; ties keep the order of rows.",
        ),
    ] = "error"
    encoding: Annotated[
        str | None,
        columns(
            metavar="NAME",
            help="Encoding of text files, such as cp1252. By default UTF-8 or UTF-16 by their first bytes, else "
            "Windows-1252 with a warning.",
        ),
    ] = None
    largest_component: Annotated[
        bool, columns("--largest-component", help="Keep only the largest group of items that are linked.")
    ] = False
    blanks: Annotated[
        list[str],
        scoring(
            metavar="KIND=VALUE,...",
            help="What blanks are (wide tables): omitted=wrong, before a later answer of the same person; "
            "not-reached=wrong, after the last answer; both are missing by default. not-presented=CODE: the item was "
            "not on this person's form; not-presented= is the empty cell.",
        ),
    ] = field(default_factory=list)
    correct: Annotated[
        list[str], scoring(metavar="VALUE", help="This answer is right, every other wrong; repeatable.")
    ] = field(default_factory=list)
    threshold: Annotated[
        str | None,
        scoring(
            metavar="NUMBER|own-mean[:wrong]",
            help="Values above this number are right. own-mean: ratings above the person's own mean are right, or with "
            "own-mean:wrong wrong, so that a larger difficulty means better liked.",
        ),
    ] = None
    sql: Annotated[
        str | None, size(metavar="QUERY", help="Read the answers by a query to the database that FILE names.")
    ] = None

    def read(self, files: Sequence[str], progress: Progress, machine: Machine, **how: Any) -> Responses:
        """The responses in these files, checked: something can be estimated from them. `how` are options of `read` that
        are not about the files: `people`, and what is said of categories."""
        from spectral_irt.data.design import check_usable

        responses = self._read(files, progress, machine, **how)
        check_usable(responses)
        return responses.largest_component() if self.largest_component else responses

    def read_for_bank(
        self, bank: Bank, files: Sequence[str], recoding: Recoding, progress: Progress, machine: Machine
    ) -> Responses:
        """Answers to items of a bank, in the kind that the bank has, be it those of a single person."""
        if not bank.right_or_wrong:
            codes = bank.calibration.codes
            codes = codes[codes == codes]
            span = int(codes.min()), int(codes.max())
            return self.read_any(files, progress, machine, span=span, **recoding.options(True))
        if recoding.said:
            raise OptionError(
                "--recode and --reverse are for ordered categories, and the bank has right and wrong items."
            )
        responses = self.read_any(files, progress, machine)
        bank.refuse_ordered(responses)
        return responses

    def read_any(self, files: Sequence[str], progress: Progress, machine: Machine, **how: Any) -> Responses:
        """The responses in these files, be it those of a single person: enough where difficulties are known."""
        if self.largest_component:
            raise OptionError("--largest-component is for a calibration; a bank has a common scale already.")
        return self._read(files, progress, machine, **how)

    def _read(self, files: Sequence[str], progress: Progress, machine: Machine, **how: Any) -> Responses:
        from spectral_irt.engine import set_memory
        from spectral_irt.reading import read

        allowed = set_memory(machine.memory, machine.spill)
        source = self._source(files)
        how |= {**self.given(), **source}
        how.pop("largest_component", None)
        responses = read(progress=progress.reading, client=cluster(machine.dask, progress), **how)
        counts = {"persons": responses.n_persons, "items": responses.n_items, "answers": responses.n_responses}
        allowed.reserve(**counts, threads=1, fit=False)
        return responses

    def _source(self, files: Sequence[str]) -> dict[str, Any]:
        """The files, or the database and the query; an error where there is neither."""
        databases = [file for file in files if is_database(file)]
        if self.sql is not None and (len(files) != 1 or not databases):
            raise OptionError("--sql is a query to a database; name that in place of FILE, as in duckdb:school.duckdb.")
        if self.sql is not None:
            return {"sql": self.sql, "database": files[0]}
        if databases:
            raise OptionError(
                f"{without_password(databases[0])} is a database; say what to read from it with --sql QUERY. A table, "
                "as in duckdb:school.duckdb#answers, is for fit, which calibrates it inside the database."
            )
        return {"source": list(files)}

    def given(self) -> dict[str, Any]:
        """The options of `read` that these are, as far as they differ from its defaults."""
        turned = self.layout == "items-in-rows"
        duplicates, _, order_by = self.duplicates.partition(":")
        if duplicates not in ("error", "first", "last"):
            raise OptionError(f"--duplicates is {self.duplicates!r}; it can be error, first, last or last:COLUMN.")
        key, key_sheet = with_sheet(self.key)
        said: dict[str, Any] = {
            "format": None if self.layout == "auto" or turned else self.layout,
            "orient": "items" if turned else None,
            "duplicates": None if duplicates == "error" else duplicates,
            "order_by": order_by or None,
            "key": key,
            "key_sheet": key_sheet,
            "correct": self.correct,
            **self._threshold(),
            **self._blanks(),
        }
        same = ("missing", "items", "ignore", "sheet", "person", "item", "response", "encoding", "largest_component")
        said |= {name: getattr(self, name) for name in same}
        return {name: value for name, value in said.items() if value not in (None, [], False)}

    def said(self, files: Sequence[str] = ()) -> dict[str, Any]:
        """`given`, and the query, for a record: without a password."""
        asked = {} if self.sql is None else {"sql": self.sql, "database": without_password(files[0])}
        return {**self.given(), **asked}

    def inputs(self, files: Sequence[str]) -> list[str]:
        """Every file that is read: no result may take its place."""
        key = with_sheet(self.key)[0]
        return [*(_file(file) for file in files), *([key] if key is not None else [])]

    def _threshold(self) -> dict[str, Any]:
        if self.threshold is None:
            return {}
        if self.threshold.partition(":")[0] == OWN_MEAN:
            counts_as = self.threshold.partition(":")[2] or "right"
            return {"above_mean": counts_as}
        try:
            return {"threshold": float(self.threshold)}
        except ValueError:
            raise OptionError(
                f"--threshold is {self.threshold!r}; it is a number, {OWN_MEAN} or {OWN_MEAN}:wrong."
            ) from None

    def _blanks(self) -> dict[str, Any]:
        said: dict[str, Any] = {}
        for one in (part for text in self.blanks for part in text.split(",")):
            kind, is_said, value = one.partition("=")
            name = kind.strip().replace("-", "_")
            if not is_said or name not in BLANKS or (name != BLANKS[2] and value not in ("missing", "wrong")):
                raise OptionError(
                    f"--blanks is {one!r}; it can be omitted=wrong, not-reached=wrong, not-presented=CODE, or several "
                    "of them, as in omitted=wrong,not-reached=wrong."
                )
            if name == BLANKS[2]:
                said[name] = [*said.get(name, []), value]
            elif value != "missing":
                said[name] = value
        return said


def is_database(file: str) -> bool:
    """Whether FILE is the address of a database, or a file of one.

    >>> is_database("duckdb:school.duckdb"), is_database("school.sqlite"), is_database("s3://bucket/a.parquet")
    (True, True, False)
    """
    from spectral_irt.reading.sql import kind_of

    return kind_of(file.partition("#")[0])[0] in DATABASES


def without_password(uri: str) -> str:
    """The address as it may be shown."""
    from spectral_irt.reading import sql

    return sql.without_password(uri)


def _file(file: str) -> str:
    from spectral_irt.reading.sql import kind_of

    return kind_of(file)[1] if is_database(file) and "://" not in file else file


def with_sheet(text: str | None) -> tuple[str | None, str | None]:
    """A file and the sheet of it that is named after "#".

    >>> with_sheet("key.xlsx#Form A"), with_sheet("key#1.csv")
    (('key.xlsx', 'Form A'), ('key#1.csv', None))
    """
    if text is None:
        return None, None
    file, _, sheet = text.rpartition("#")
    named = Path(file).suffix.lower() in (".xlsx", ".xlsm", ".xls", ".ods") and not Path(text).exists()
    return (file, sheet) if named else (text, None)


@dataclass(frozen=True)
class Recoding:
    """What answers in ordered categories are called."""

    recode: Annotated[
        str | None,
        scoring(
            metavar="LABEL,...",
            help="Labels of ordered answers from the lowest to the highest, as in 'never,sometimes,often'; labels that "
            "mean the same are joined by =.",
        ),
    ] = None
    reverse: Annotated[
        list[str], scoring(metavar="ITEM,...", help="Items to turn round: their highest category becomes the lowest.")
    ] = field(default_factory=list)

    @property
    def said(self) -> bool:
        """Whether the options say that answers are in ordered categories."""
        return self.recode is not None or bool(self.reverse)

    def options(self, ordered: bool | None) -> dict[str, Any]:
        """Options of `read`: whether answers are ordered, where that is known, and what was said of categories."""
        turned = [name for names in self.reverse for name in names.split(",")]
        return {"ordered": ordered, "recode": self.recode, "reverse": turned}


@dataclass(frozen=True)
class Categories(Recoding):
    """How answers in ordered categories are read and modeled."""

    model: Annotated[
        Literal["rasch", "pcm", "rsm"] | None,
        scoring(
            help="Default: rasch for 0/1, pcm for more categories. rasch: right and wrong. pcm: the partial credit "
            "model, thresholds for each item. rsm: the rating scale model, thresholds at the same distances in all "
            "items."
        ),
    ] = None
    unused: Annotated[
        Literal["collapse", "error", "keep"] | None,
        scoring(
            help="Categories of an item that nobody used: renumber the others without them (default), an error, or "
            "keep those that other items have (default of rsm)."
        ),
    ] = None

    @property
    def said(self) -> bool:
        """Whether the options say that answers are in ordered categories."""
        return self.model in ("pcm", "rsm") or super().said or self.unused is not None

    def how(self) -> dict[str, Any]:
        """Options of `read`; where nothing was said of categories, the answers tell whether they are ordered."""
        if not self.said:
            return {"ordered": False if self.model == "rasch" else None}
        if self.model == "rasch":
            raise OptionError("--recode, --reverse and --unused are for ordered categories; leave out --model rasch.")
        return {**self.options(True), "unused": self.unused or ("keep" if self.model == "rsm" else "collapse")}


def changed(group: Any) -> list[str]:
    """Options of a group that differ from their defaults."""
    default = type(group)()
    return [one.name for one in fields(group) if getattr(group, one.name) != getattr(default, one.name)]


def mean_and_sd(flag: str, text: str | None, example: str) -> tuple[float, float] | None:
    """What an option says that is a mean and a standard deviation."""
    if text is None:
        return None
    try:
        mean, sd = (float(part) for part in text.split(","))
        if not (abs(mean) < float("inf") and 0 < sd < float("inf")):
            raise ValueError
    except ValueError:
        raise OptionError(
            f"{flag} is {text!r}; it is a mean and a standard deviation above zero, as in {flag} {example}."
        ) from None
    return mean, sd
