"""Options that several commands share: which files, how they are to be read, where results go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectral_irt.cli.clusters import cluster
from spectral_irt.cli.paths import output_at
from spectral_irt.errors import OptionError

if TYPE_CHECKING:
    from spectral_irt.cli.progress import Progress
    from spectral_irt.data import Responses

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="CSV or TSV (plain, .gz, .zst), an Excel or OpenDocument workbook, SPSS, Stata, Parquet, Arrow/Feather or "
        "JSON lines; several files, or a folder of them, are one table. Or an address (https://, for Parquet s3:// "
        "and the like), - for standard input, or a packed file (see spectral-irt pack).",
    ),
]


def offered(values: str) -> Callable[[str], list[str]]:
    """What a shell offers for an option that is described as "persons|items" or "auto|NUMBER".

    >>> offered("auto|none|NUMBER")("a")
    ['auto']
    """
    words = [value for value in values.split("|") if value.islower()]
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def panel(title: str) -> Callable[..., Any]:
    def described(*flags: str, metavar: str = "", offers: str = "", help: str, **more: Any) -> Any:
        return typer.Option(
            *flags,
            metavar=metavar or None,
            help=help,
            rich_help_panel=title,
            show_default=False,
            autocompletion=offered(offers or metavar) if "|" in offers + metavar else None,
            **more,
        )

    return described


_layout = panel("How the file is laid out")
_scoring = panel("What counts as right")
_database = panel("Answers in a database")
_large = panel("Data larger than memory, or than one machine")
MEMORY = ("memory", "spill", "dask")  # options that say how, and change nothing in the results


@dataclass(frozen=True)
class Reading:
    """How files are to be read; the options of `read`."""

    format: Annotated[
        str,
        _layout(
            metavar="wide|long|auto",
            help="Wide: a row for each person, a column for each item. Long: a row for each answer. Detected "
            "from the column names by default.",
        ),
    ] = "auto"
    person: Annotated[
        str | None,
        _layout("--person", "--user", metavar="COLUMN", help="Who answered (long tables), or the row labels."),
    ] = None
    item: Annotated[str | None, _layout(metavar="COLUMN", help="Which item it was (long tables).")] = None
    response: Annotated[str | None, _layout(metavar="COLUMN", help="What the answer was (long tables).")] = None
    orient: Annotated[
        str, _layout(metavar="persons|items", help="What a row of a wide table is; persons by default.")
    ] = "persons"
    duplicates: Annotated[
        str,
        _layout(
            metavar="error|first|last",
            help="When somebody answered an item twice: complain (default), or keep the first or last answer.",
        ),
    ] = "error"
    order_by: Annotated[
        str | None,
        _layout(
            metavar="COLUMN",
            help="Which answer is first, which last (long tables): a column of times or numbers, with --duplicates; "
            "equal ones go by the order of the rows.",
        ),
    ] = None
    ignore: Annotated[
        list[str], _layout(metavar="COLUMN,...", help="Columns of a wide table that are not items, such as age.")
    ] = field(default_factory=list)
    items: Annotated[
        list[str],
        _layout(
            metavar="PATTERN,...",
            help="Columns of a wide table that are items, as in 'q*'. By default all but labels and attributes of the "
            "people, such as sex or school; with --key, the items of the key.",
        ),
    ] = field(default_factory=list)
    sheet: Annotated[
        str | None, _layout(metavar="NAME|NUMBER", help="Which sheet of a workbook, where several hold something.")
    ] = None
    encoding: Annotated[
        str | None,
        _layout(
            metavar="NAME",
            help="How text files are written, as in cp1252. By default UTF-8 or UTF-16 by their first bytes, else "
            "Windows-1252 with a warning.",
        ),
    ] = None
    max_unpacked: Annotated[
        str | None,
        _layout(
            metavar="SIZE",
            help="What a packed file (.gz, .zst, .xlsx, .eval) may unpack to, as in 20GB; 4GB by default.",
        ),
    ] = None
    largest_component: Annotated[
        bool, _layout("--largest-component", help="Keep only the largest group of items that have a common scale.")
    ] = False
    missing: Annotated[
        list[str],
        _scoring(
            metavar="VALUE",
            help="What else means 'not answered', besides the empty cell, NA, NaN and null. Repeat for several.",
        ),
    ] = field(default_factory=list)
    omitted: Annotated[
        str,
        _scoring(
            metavar="missing|wrong",
            help="What a blank before a later answer of the same person is (wide tables); missing by default.",
        ),
    ] = "missing"
    not_reached: Annotated[
        str, _scoring(metavar="missing|wrong", help="What the blanks after the last answer are; missing by default.")
    ] = "missing"
    not_presented: Annotated[
        list[str],
        _scoring(
            metavar="VALUE",
            help="What means that the item was not on this person's form: neither of these. '' is the empty cell.",
        ),
    ] = field(default_factory=list)
    key: Annotated[
        str | None, _scoring(metavar="FILE", help="Answer key of a multiple-choice test: columns item and key.")
    ] = None
    key_sheet: Annotated[
        str | None, _scoring(metavar="NAME|NUMBER", help="Which sheet, where the key is in a workbook of several.")
    ] = None
    correct: Annotated[
        list[str], _scoring(metavar="VALUE", help="This answer is right, every other wrong. Repeat for several.")
    ] = field(default_factory=list)
    threshold: Annotated[float | None, _scoring(metavar="NUMBER", help="Values above it are right.")] = None
    above_mean: Annotated[
        str | None,
        _scoring(
            metavar="right|wrong",
            help="Ratings: what a rating above the person's own mean counts as. 'wrong' makes larger difficulty mean "
            "better liked.",
        ),
    ] = None
    sql: Annotated[
        str | None,
        _database(metavar="QUERY", help="What to ask a database for, instead of FILE; rows come in batches."),
    ] = None
    database: Annotated[
        str | None,
        _database(metavar="URI", help="The database: sqlite:FILE, duckdb:FILE or postgresql://USER@HOST/DATABASE."),
    ] = None
    memory: Annotated[
        str | None,
        _large(
            metavar="SIZE",
            help="How much memory to use, as in 4GB; half of what is free by default. What goes beyond it is kept in "
            "temporary files, and the results are the same.",
        ),
    ] = None
    spill: Annotated[
        str | None,
        _large(metavar="DIR", help="Folder of these temporary files; by default that of TMPDIR, or /var/tmp."),
    ] = None

    dask: Annotated[
        str | None,
        _large(
            metavar="ADDRESS|local:N",
            help="Do the work on a Dask cluster, by the address of its scheduler, as in tcp://10.0.0.1:8786, or in N "
            "processes of this machine. Its workers map packed files that they see.",
        ),
    ] = None

    def read(self, files: Sequence[str], progress: Progress, **how: Any) -> Responses:
        """The responses in these files, checked: something can be estimated from them. `how` are options of `read` that
        are not about the files: `people`, and what is said of categories."""
        from spectral_irt.data.design import check_usable

        responses = self._read(files, progress, **how)
        check_usable(responses)
        return responses.largest_component() if self.largest_component else responses

    def read_any(self, files: Sequence[str], progress: Progress, **how: Any) -> Responses:
        """The responses in these files, be it those of a single person: enough where difficulties are known."""
        if self.largest_component:
            raise OptionError("--largest-component is for a calibration; a bank has a common scale already.")
        return self._read(files, progress, **how)

    def _read(self, files: Sequence[str], progress: Progress, **how: Any) -> Responses:
        from spectral_irt.engine import set_memory
        from spectral_irt.reading import read

        allowed = set_memory(self.memory, self.spill)
        how |= {
            one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("largest_component", *MEMORY)
        }
        how["correct"] = self.correct or None
        responses = read(self.source(files), progress=progress.reading, client=cluster(self.dask, progress), **how)
        counts = {"persons": responses.n_persons, "items": responses.n_items, "answers": responses.n_responses}
        allowed.reserve(**counts, threads=1, fit=False)
        return responses

    def source(self, files: Sequence[str]) -> list[str] | None:
        """The files, or None where a query is read; an error where there is neither."""
        if not files and self.sql is None and self.database is None:
            raise OptionError("missing argument 'FILE', or --sql with --database; see --help.")
        return list(files) or None

    def inputs(self, files: Sequence[str]) -> list[str]:
        """Every file that is read: no result may take its place."""
        return [*files, *([self.key] if self.key is not None else [])]

    def said(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        from spectral_irt.reading.sql import without_password

        default = Reading()
        shown = self if self.database is None else replace(self, database=without_password(self.database))
        return {
            one.name: getattr(shown, one.name)
            for one in fields(self)
            if one.name not in MEMORY and getattr(self, one.name) != getattr(default, one.name)
        }


Parquet = Annotated[
    bool,
    typer.Option(
        "--parquet",
        help="Write every table as Parquet as well; with -o. People on a cluster are in Parquet only.",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    output_at(
        "DIR|FILE.xlsx",
        "Where to write items.csv, persons.csv, scores.csv, item_fit.csv, item_analysis.csv, fit.json and what "
        "else there is, or a workbook with a sheet for each.",
    ),
]
