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


def output_at(metavar: str, help: str, **more: Any) -> Any:
    """The option -o: where results go."""
    return own(metavar, help, "--output", "-o", **more)


@dataclass(frozen=True)
class Machine:
    """How much of this machine, or of others, a command may use: options of the program, which change no result."""

    memory: str | None = size(
        "SIZE", "Memory to use, such as 4GB; half of what is free by default.", envvar="SPECTRAL_IRT_MEMORY"
    )
    spill: str | None = size(
        "DIR", "Folder of temporary files; that of TMPDIR, or /var/tmp, by default.", envvar="SPECTRAL_IRT_SPILL"
    )
    threads: int | None = size("NUMBER", "Threads to use; all by default.", min=1, envvar="SPECTRAL_IRT_THREADS")
    dask: str | None = size(
        "ADDRESS",
        "Work on a Dask cluster: the address of its scheduler, such as tcp://10.0.0.1:8786.",
        envvar="SPECTRAL_IRT_DASK",
    )


@dataclass
class Call:
    """What a command may need to know of the line that called it."""

    argv: Sequence[str] = ()
    machine: Machine = field(default_factory=Machine)


@dataclass(frozen=True)
class Reading:
    """How files are to be read."""

    key: str | None = scoring(
        "FILE[#SHEET]", "Score multiple choice by a key: columns item, key. A column score gives partial credit."
    )
    missing: list[str] = scoring(
        "CODE", "Code for 'not answered', such as 9; repeatable. Empty cells, NA, NaN and null always are.", default=[]
    )
    items: list[str] = columns(
        "PATTERN,...",
        "Columns that are items, such as 'q*' (wide tables). By default all but labels and attributes of people, such "
        "as sex or school; with --key, the items of the key.",
        default=[],
    )
    ignore: list[str] = columns("COLUMN,...", "Columns that are not items, such as age (wide tables).", default=[])
    sheet: str | None = columns("NAME|NUMBER", "Sheet of a workbook, where several hold something.")
    layout: Literal["auto", "wide", "long", "items-in-rows"] = columns(
        "LAYOUT",
        "wide: a row for each person, a column for each item. long: a row for each answer. items-in-rows: a row for "
        "each item, a column for each person. Recognized by the names of the columns by default.",
        default="auto",
    )
    person: str | None = columns("COLUMN", "Who answered (long tables), or the labels of rows (wide).")
    item: str | None = columns("COLUMN", "Which item it was (long tables).")
    response: str | None = columns("COLUMN", "What the answer was (long tables).")
    duplicates: str = columns(
        "error|first|last[:COLUMN]",
        "When a person answered an item twice: an error (default), or keep the first or last answer. In long tables, "
        "last:time lets the column 'time' decide; ties keep the order of rows.",
        default="error",
    )
    encoding: str | None = columns(
        "NAME", "Encoding of text files, such as cp1252. By default UTF-8 or UTF-16, else Windows-1252 with a warning."
    )
    largest_component: bool = columns("", "Keep only the largest group of items that are linked.", default=False)
    blanks: list[str] = scoring(
        "KIND=VALUE,...",
        "What blanks are (wide tables): omitted=wrong, before a later answer of the same person; not-reached=wrong, "
        "after the last answer; both are missing by default. not-presented=CODE: the item was not on this person's "
        "form; not-presented= is the empty cell.",
        default=[],
    )
    correct: list[str] = scoring("VALUE", "This answer is right, every other wrong; repeatable.", default=[])
    threshold: str | None = scoring(
        "NUMBER|own-mean[:wrong]",
        "Values above this number are right. own-mean: ratings above the person's own mean are right, or with "
        "own-mean:wrong wrong, so that a larger difficulty means better liked.",
    )
    sql: str | None = size("QUERY", "Read the answers by a query to the database that FILE names.")

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
            raise OptionError("--recode and --reverse are for ordered categories; the items of this bank are 0/1.")
        responses = self.read_any(files, progress, machine)
        bank._refuse_ordered(responses)
        return responses

    def read_any(self, files: Sequence[str], progress: Progress, machine: Machine, **how: Any) -> Responses:
        """The responses in these files, be it those of a single person: enough where difficulties are known."""
        if self.largest_component:
            raise OptionError("--largest-component is for a calibration; a bank has a common scale already.")
        return self._read(files, progress, machine, **how)

    def _read(self, files: Sequence[str], progress: Progress, machine: Machine, **how: Any) -> Responses:
        from spectral_irt.engine import set_memory
        from spectral_irt.reading import read
        from spectral_irt.reading.sql import without_password

        allowed = set_memory(machine.memory, machine.spill)
        databases = [file for file in files if is_database(file)]
        if self.sql is not None and (len(files) != 1 or not databases):
            raise OptionError("--sql is a query to a database; name that in place of FILE, as in duckdb:school.duckdb.")
        if databases and self.sql is None:
            raise OptionError(
                f"{without_password(databases[0])} is a database; say what to read from it with --sql QUERY. A table, "
                "as in duckdb:school.duckdb#answers, is for fit, which calibrates it inside the database."
            )
        source = {"sql": self.sql, "database": files[0]} if databases else {"source": list(files)}
        how |= {**self.given(), **source}
        how.pop("largest_component", None)
        client = None if machine.dask is None else cluster(machine.dask, progress)
        responses = read(progress=progress.reading, client=client, **how)
        counts = {"persons": responses.n_persons, "items": responses.n_items, "answers": responses.n_responses}
        noun = "items" if responses.facets is None else f"combinations of {' and '.join(responses.facets.names)}"
        allowed.reserve(**counts, threads=1, fit=False, noun=noun)
        return responses

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
        from spectral_irt.reading.sql import without_password

        asked = {} if self.sql is None else {"sql": self.sql, "database": without_password(files[0])}
        return {**self.given(), **asked}

    def inputs(self, files: Sequence[str]) -> list[str]:
        """Every file that is read: no result may take its place."""
        from spectral_irt.reading.sql import kind_of

        key = with_sheet(self.key)[0]
        named = [kind_of(file)[1] if is_database(file) and "://" not in file else file for file in files]
        return [*named, *([key] if key is not None else [])]

    def _threshold(self) -> dict[str, Any]:
        if self.threshold is None:
            return {}
        name, _, counts_as = self.threshold.partition(":")
        if name == "own-mean":
            return {"above_mean": counts_as or "right"}
        try:
            return {"threshold": float(self.threshold)}
        except ValueError:
            raise OptionError(f"--threshold is {self.threshold!r}; it is a number, own-mean, own-mean:wrong.") from None

    def _blanks(self) -> dict[str, Any]:
        said: dict[str, Any] = {}
        for one in (part for text in self.blanks for part in text.split(",")):
            kind, equals, value = one.partition("=")
            name = kind.strip().replace("-", "_")
            if equals and name == "not_presented":
                said.setdefault(name, []).append(value)
            elif equals and name in ("omitted", "not_reached") and value in ("missing", "wrong"):
                said[name] = value if value == "wrong" else None
            else:
                raise OptionError(
                    f"--blanks is {one!r}; it can be omitted=wrong, not-reached=wrong, not-presented=CODE, or several "
                    "of them, as in omitted=wrong,not-reached=wrong."
                )
        return said


def is_database(file: str) -> bool:
    """Whether FILE is the address of a database, as duckdb:school.duckdb, or a file of one."""
    from spectral_irt.reading.sql import kind_of

    return kind_of(file.partition("#")[0])[0] in ("sqlite", "duckdb", "postgresql")


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

    recode: str | None = scoring(
        "LABEL,...", "Ordered answers from lowest to highest, as in 'never,rarely=seldom,often'; = joins categories."
    )
    reverse: list[str] = scoring("ITEM,...", "Items to reverse: their highest category becomes the lowest.", default=[])

    @property
    def said(self) -> bool:
        """Whether the options say that answers are in ordered categories."""
        return self.recode is not None or bool(self.reverse)

    def options(self, ordered: bool | None) -> dict[str, Any]:
        """Options of `read`: whether answers are ordered, where that is known, and what was said of categories."""
        reversed_items = [name for names in self.reverse for name in names.split(",")]
        return {"ordered": ordered, "recode": self.recode, "reverse": reversed_items}


@dataclass(frozen=True)
class Categories(Recoding):
    """How answers in ordered categories are read and modeled."""

    model: Literal["rasch", "pcm", "rsm"] | None = scoring(
        "",
        "Default: rasch for 0/1, pcm for more categories. pcm: the partial credit model, thresholds for each item. "
        "rsm: the rating scale model, thresholds at the same distances in all items.",
    )
    unused: Literal["collapse", "error", "keep"] | None = scoring(
        "",
        "Categories of an item that nobody used: renumber the others without them (default), an error, or keep those "
        "that other items have (default of rsm).",
    )

    @property
    def said(self) -> bool:
        """Whether the options say that answers are in ordered categories."""
        return self.model in ("pcm", "rsm") or super().said or self.unused is not None

    def how(self) -> dict[str, Any]:
        """Options of `read`; where nothing was said of categories, the answers show whether they are ordered."""
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
