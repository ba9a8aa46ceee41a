"""Options that commands share, in groups: how files are read, what categories there are, how much of the machine.

The first sentence of a help text is what the short help shows; `help TOPIC` and `--help-all` show all of it. An option
whose text says several things has a function that reads it (`parse`), and its group has what that returns. This file
is loaded with every command, be it for a help text, and imports nothing large.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import typer

from spectral_irt.cli.help import option, place
from spectral_irt.cli.terminal import Progress, cluster
from spectral_irt.errors import OptionError, ReadError, ResponseValueError, SpectralIrtError
from spectral_irt.text import listed, one_or_many, without_secrets

if TYPE_CHECKING:
    from spectral_irt.bank import Bank
    from spectral_irt.data import Responses

own = partial(option, None)
# Options by the topics of help.
columns = partial(option, "columns")
scoring = partial(option, "scoring")
people = partial(option, "people")
method = partial(option, "method")
size = partial(option, "size")
results = partial(option, "results")

_FILES = typer.Argument(
    metavar="FILE",
    show_default=False,
    help="CSV or TSV (plain, .gz, .zst), an Excel or OpenDocument workbook, SPSS, Stata, Parquet, Arrow/Feather or "
    "JSON lines; several files, or a folder of them, are one table. Or an address (https://, for Parquet s3:// "
    "and the like), - for standard input, a packed file (see spectral-irt pack), or with --sql a database: "
    "sqlite:FILE, duckdb:FILE or postgresql://USER@HOST/DATABASE.",
)
Files = Annotated[list[str], _FILES]
FilesIfAny = Annotated[list[str] | None, _FILES]


def output_at(metavar: str, help: str, **more: Any) -> Any:
    """The option -o: where results go."""
    return own(metavar, help, "--output", "-o", **more)


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it, with the fields of its option groups as options of its own.

    A group is a dataclass; the command gets it as one argument, made of what was given. A parameter `call` gets the
    `Call`, and `context` that of typer.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    parameters = [_parameter("context", typer.Context, inspect.Parameter.empty)]
    for name, parameter in inspect.signature(command).parameters.items():
        if name in ("call", "context"):
            continue
        if not is_dataclass(hints[name]):
            parameters.append(_parameter(name, hints[name], parameter.default))
            continue
        groups[name] = hints[name]
        types = get_type_hints(hints[name])
        for field in fields(groups[name]):
            if field.metadata:
                parameters.append(_parameter(field.name, types[field.name], field))

    @functools.wraps(command, assigned=("__module__", "__name__", "__doc__"))
    def spread(context: typer.Context, **options: Any) -> None:
        Progress.shown = not options.get("quiet", False)
        arguments = {name: _group_of(group, options) for name, group in groups.items()}
        for name, value in (("context", context), ("call", context.obj)):
            if name in hints:
                arguments[name] = value
        command(**options, **arguments)

    del spread.__wrapped__
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return spread


def _group_of(group: Any, options: dict[str, Any]) -> Any:
    """A group of options, made of those that were given; they are no longer among the others then."""
    values = {}
    for field in fields(group):
        value = options.pop(field.name, None)
        if value is None or value == []:
            continue
        parse = field.metadata.get("parse")
        values[field.name] = value if parse is None else parse(value)
    return group(**values)


def _parameter(name: str, hint: Any, declared: Any) -> inspect.Parameter:
    """The parameter of a command as typer reads it: flags of a switch, values of a choice, paths with `~`."""
    default = declared
    if isinstance(declared, Field):
        info = declared.metadata["option"]
        repeatable = declared.default_factory is not MISSING
        has_parser = declared.metadata["parse"] is not None
        if repeatable:
            default = []
            hint = list[str] if has_parser else hint
        elif has_parser:
            default = None
            hint = str | None
        else:
            default = inspect.Parameter.empty if declared.default is MISSING else declared.default
        for kind in (hint, *get_args(hint)):
            if get_origin(kind) is Literal:
                info.metavar = info.metavar or "|".join(get_args(kind))
            if kind is Path:
                info.parser = place
        has_flags = bool(info.param_decls) or isinstance(info.default, str)  # typer keeps the first flag as a default
        if hint is bool and not has_flags:
            info.param_decls = (f"--{name.replace('_', '-')}",)
        hint = Annotated[hint, info]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


@dataclass(frozen=True)
class Call:
    """The line that called a command, and how much of this machine, or of others, it may use, which changes no result:
    options of the program."""

    memory: str | None = size(
        "SIZE", "Memory to use, such as 4GB (default: half of what is free).", envvar="SPECTRAL_IRT_MEMORY"
    )
    spill: str | None = size(
        "DIR", "Folder for temporary files (default: TMPDIR, or /var/tmp).", envvar="SPECTRAL_IRT_SPILL"
    )
    threads: int | None = size("NUMBER", "Threads to use (default: all).", min=1, envvar="SPECTRAL_IRT_THREADS")
    dask: str | None = size(
        "ADDRESS",
        "Address of the scheduler of a Dask cluster to work on, such as tcp://10.0.0.1:8786.",
        envvar="SPECTRAL_IRT_DASK",
    )
    argv: Sequence[str] = ()


def is_called_a_file(output: Path) -> bool:
    """Whether `-o` names a single table or page, where a folder is meant."""
    return output.suffix.lower() in (".html", ".htm", ".csv", ".json", ".parquet")


def with_sheet(text: str) -> tuple[str, str | None]:
    """A file and the sheet of it that is named after "#".

    >>> with_sheet("key.xlsx#Form A"), with_sheet("key#1.csv")
    (('key.xlsx', 'Form A'), ('key#1.csv', None))
    """
    file, _, sheet = text.rpartition("#")
    named = Path(file).suffix.lower() in (".xlsx", ".xlsm", ".xls", ".ods") and not Path(text).exists()
    return (file, sheet) if named else (text, None)


def item_names(texts: list[str]) -> list[str]:
    return ",".join(texts).split(",")


def _duplicates(text: str) -> tuple[str, str]:
    which, _, order_by = text.partition(":")
    if which not in ("error", "first", "last"):
        raise OptionError(f"--duplicates is {text!r}; it can be error, first, last or last:COLUMN.")
    return which, order_by


def _threshold(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        before = " Compare ratings with the person's mean before they are read." if text.startswith("own-mean") else ""
        raise OptionError(f"--threshold is {text!r}; it is a number.{before}") from None


def _blanks(texts: list[str]) -> dict[str, Any]:
    blanks: dict[str, Any] = {}
    for text in item_names(texts):
        kind, equals, value = text.partition("=")
        name = kind.strip().replace("-", "_")
        if equals and name == "not_presented":
            blanks.setdefault(name, []).append(value)
        elif equals and name in ("omitted", "not_reached") and value in ("missing", "wrong"):
            blanks[name] = value if value == "wrong" else None
        else:
            raise OptionError(
                f"--blanks is {text!r}; it can be omitted=wrong, not-reached=wrong, not-presented=CODE, or several of "
                "them, as in omitted=wrong,not-reached=wrong."
            )
    return blanks


@dataclass(frozen=True)
class Reading:
    """How files are to be read."""

    key: tuple[str, str | None] | None = scoring(
        "FILE[#SHEET]",
        "Answer key of multiple-choice items: columns item, key. A column score gives partial credit.",
        parse=with_sheet,
    )
    missing: list[str] = scoring(
        "CODE",
        "Code of a missing response, such as 9; repeatable. Empty cells, NA, NaN and null are always missing.",
        default=[],
    )
    items: list[str] = columns(
        "PATTERN,...",
        "Columns that are items, such as 'q*' (wide tables). By default all but labels and attributes of persons, such "
        "as sex or school; with --key, the items of the key.",
        default=[],
    )
    ignore: list[str] = columns(
        "COLUMN,...", "Columns that are not items, by name or pattern, such as age or Post* (wide tables).", default=[]
    )
    sheet: str | None = columns("NAME|NUMBER", "Sheet to read, if the workbook has more than one.")
    layout: Literal["auto", "wide", "long", "items-in-rows"] = columns(
        "LAYOUT",
        "wide: a row for each person, a column for each item. long: a row for each response. items-in-rows: a row for "
        "each item, a column for each person. By default recognized by the column names.",
        default="auto",
    )
    person: str | None = columns(
        "COLUMN", "Column with the person of each response (long tables), or the label of each row (wide)."
    )
    item: str | None = columns("COLUMN", "Column with the item of each response (long tables).")
    response: str | None = columns("COLUMN", "Column with the response (long tables).")
    duplicates: tuple[str, str] = columns(
        "error|first|last[:COLUMN]",
        "Several responses of a person to an item: an error (default), or keep the first or the last. In long tables, "
        "last:time orders them by the column 'time'; ties keep the order of rows.",
        default=("error", ""),
        parse=_duplicates,
    )
    encoding: str | None = columns(
        "NAME", "Encoding of text files, such as cp1252. By default UTF-8 or UTF-16, else Windows-1252 with a warning."
    )
    largest_component: bool = columns("", "Keep only the largest group of linked items.", default=False)
    blanks: dict[str, Any] = scoring(
        "KIND=VALUE,...",
        "How blanks count (wide tables): omitted=wrong for blanks before a later response of the same person, "
        "not-reached=wrong for blanks after the last one; both are missing by default. Items that a person's form does "
        "not have (--form, or as found in the responses) stay missing. not-presented=CODE says so of a cell; "
        "not-presented= stands for the empty cell.",
        default={},
        parse=_blanks,
    )
    correct: list[str] = scoring("VALUE", "This response is right, every other one wrong; repeatable.", default=[])
    exact_case: bool = scoring(
        "",
        "Tell upper and lower case apart in answers and key; by default d, D and the full-width letter are one option.",
        default=False,
    )
    round_fractions: bool = scoring(
        "", "Round fractions, such as imputed answers, to whole numbers.", "--round", default=False
    )
    threshold: float | None = scoring(
        "NUMBER", "Values above this number are right, all others wrong.", parse=_threshold
    )
    sql: str | None = size("QUERY", "Query that reads the responses from the database given as FILE.")
    recode: str | None = scoring(
        "LABEL,...", "Ordered categories from lowest to highest, as in 'never,rarely=seldom,often'; = joins categories."
    )
    reverse: list[str] = scoring(
        "ITEM,...", "Items to reverse: the highest category becomes the lowest.", default=[], parse=item_names
    )

    @property
    def recodes(self) -> bool:
        """Whether the options say that answers are in ordered categories."""
        return self.recode is not None or bool(self.reverse)

    def read(
        self, files: Sequence[str], progress: Progress, call: Call, *, known: bool = False, **how: Any
    ) -> Responses:
        """The responses in these files, checked: something can be estimated from them; where difficulties are `known`,
        be it those of a single person. `how` are options of `read` that are not about the files."""
        from spectral_irt.data.design import check_usable
        from spectral_irt.engine import set_memory
        from spectral_irt.estimators.base import work_kind
        from spectral_irt.reading import read

        if known and self.largest_component:
            raise OptionError("--largest-component is for a calibration; a bank has a common scale already.")
        allowed = set_memory(call.memory, call.spill)
        databases = list(filter(is_database, files))
        if self.sql is not None and (len(files) != 1 or not databases):
            raise OptionError("--sql is a query to a database; name that in place of FILE, as in duckdb:school.duckdb.")
        if databases and self.sql is None:
            raise OptionError(
                f"{without_secrets(databases[0])} is a database; say what to read from it with --sql QUERY. A table, "
                "as in duckdb:school.duckdb#answers, is for fit, which calibrates it inside the database."
            )
        source = {"database": files[0]} if databases else {"source": list(files)}
        how = {**self.options_of_read(), **source, **how}
        how.pop("largest_component", None)
        client = None if call.dask is None else cluster(call.dask, progress)
        try:
            responses = read(progress=progress.reading, client=client, **how)
        except ResponseValueError as error:
            if known:
                raise
            problem = self._no_items(files, has_facets=bool(how.get("facets")))
            raise problem or error from error  # perhaps a long table that was taken for a wide one
        noun = "items" if responses.facets is None else f"combinations of {' and '.join(responses.facets.names)}"
        allowed.reserve(
            persons=responses.n_persons,
            items=responses.n_items,
            answers=responses.n_responses,
            kind=work_kind(responses),
            threads=1,
            fit=False,
            noun=noun,
        )
        if known:
            return responses
        check_usable(responses)
        return responses.largest_component() if self.largest_component else responses

    def read_for_bank(self, bank: Bank, files: Sequence[str], progress: Progress, call: Call) -> Responses:
        """Answers to items of a bank, in the kind that the bank has, be it those of a single person."""
        responses = self._read_in_kind(bank, files, progress, call)
        _refuse_items_left_out(responses, bank)
        return responses

    def _read_in_kind(self, bank: Bank, files: Sequence[str], progress: Progress, call: Call) -> Responses:
        try:
            if not bank.right_or_wrong:
                codes = bank.calibration.codes
                codes = codes[codes == codes]
                span = int(codes.min()), int(codes.max())
                return self.read(files, progress, call, known=True, span=span, ordered=True)
            if self.recodes:
                raise OptionError("--recode and --reverse are for ordered categories; the items of this bank are 0/1.")
            responses = self.read(files, progress, call, known=True)
        except (ReadError, ResponseValueError) as error:
            raise self._no_items(files, bank) or error from error
        bank._refuse_ordered(responses)
        return responses

    def _no_items(
        self, files: Sequence[str], bank: Bank | None = None, *, has_facets: bool = False
    ) -> ReadError | None:
        """What is wrong with files that cannot be read because the column that names the items is gone. Without a bank
        the columns must have both a person and a response."""
        from spectral_irt.reading.columns import ROLE_OF, plain, without_items
        from spectral_irt.reading.formats import find_files, open_table
        from spectral_irt.reading.item_columns import rater_advice

        if self.item is not None or self.sql is not None or "-" in files:
            return None
        try:
            first = find_files(list(files), sheet=self.sheet, encoding=self.encoding)[0]
            columns = open_table(first).columns
        except SpectralIrtError:
            return None
        if bank is None:
            roles = {ROLE_OF.get(plain(name)) for name in columns}
            if self.layout != "auto" or not roles >= {"person", "response"} or not without_items(columns, ()):
                return None
            lack = ""
        elif not without_items(columns, bank.items.tolist()):
            return None
        else:
            lack = ", and none is called as an item of the bank"
        remedy = "Name the one with the items by `item=`."
        advice = rater_advice(columns)
        if bank is None and not has_facets and advice:
            remedy = f"{advice} {remedy}"
        return ReadError(
            f"{first.name}: no column names the items (item, question and the like){lack}. Its columns are "
            f"{listed(columns)}. {remedy}"
        )

    def options_of_read(self, files: Sequence[str] = ()) -> dict[str, Any]:
        """The options of `read` that these are, as far as they differ from its defaults; for a record with the database
        among the files."""
        options = {**vars(self), **dict.fromkeys(("layout", "blanks", "model", "duplicates"))}
        for name in ("key", "item_texts"):
            options[name], options[f"{name}_sheet"] = options.get(name) or (None, None)
        if self.layout == "items-in-rows":
            options["orient"] = "items"
        elif self.layout != "auto":
            options["format"] = self.layout
        which, order_by = self.duplicates
        if which != "error":
            options["duplicates"] = which
        options["order_by"] = order_by or None
        options |= self.blanks
        if self.sql is not None and files:
            options["database"] = files[0]
        return {name: value for name, value in options.items() if _was_given(value)}

    def inputs(self, files: Sequence[str]) -> list[str]:
        """Every file that is read: no result may take its place."""
        from spectral_irt.reading.sql import kind_of

        beside = (self.key, vars(self).get("item_texts"))
        inputs = [file for file, _ in filter(None, beside)]
        for file in files:
            if self.sql is None:
                kind, path = kind_of(file.partition("#")[0])  # "#" is before a table
            else:
                kind, path = kind_of(file)
            is_file_of_database = kind in ("sqlite", "duckdb")
            inputs.append(path if is_file_of_database else file)
        return inputs


def _was_given(value: Any) -> bool:
    """Whether an option has a value: 0 is one."""
    return value is not None and value is not False and value != []


def shareable(record: Any) -> Any:
    """What was said, for a record that may be shared: addresses in it have no passwords.

    >>> shareable({"files": ["postgresql://ann:secret@host/tests"], "header": 2})
    {'files': ['postgresql://ann@host/tests'], 'header': 2}
    """
    if isinstance(record, str):
        return without_secrets(record)
    if isinstance(record, Mapping):
        return {name: shareable(value) for name, value in record.items()}
    if isinstance(record, list | tuple):
        return [shareable(value) for value in record]
    return record


def is_database(file: str | os.PathLike[str]) -> bool:
    """Whether FILE is the address of a database, as duckdb:school.duckdb, or a file of one."""
    from spectral_irt.reading.sql import kind_of

    return kind_of(os.fspath(file).partition("#")[0])[0] in ("sqlite", "duckdb", "postgresql")


@dataclass(frozen=True)
class Answers(Reading):
    """How files are to be read, and what categories their answers have."""

    model: Literal["rasch", "pcm", "rsm"] | None = scoring(
        "",
        "Default: rasch for 0/1, pcm for more categories. pcm: the partial credit model, thresholds for each item. "
        "rsm: the rating scale model, thresholds at the same distances in all items.",
    )
    item_texts: tuple[str, str | None] | None = columns(
        "FILE[#SHEET]",
        "Texts of the items, shown beside their labels in report and tables: columns item, text. By default the labels "
        "of variables, of SPSS and Stata.",
        parse=with_sheet,
    )
    unused: Literal["collapse", "error", "keep"] | None = scoring(
        "",
        "Categories of an item that nobody used: renumber the others without them (default), an error, or keep those "
        "that other items have (default of rsm).",
    )

    @property
    def are_ordered(self) -> bool:
        """Whether the options say that answers are in ordered categories."""
        return self.model in ("pcm", "rsm") or (self.recode, self.unused, self.reverse) != (None, None, [])

    def categories(self) -> dict[str, Any]:
        """What `read` is told of categories; where nothing was said, the answers show whether they are ordered."""
        if not self.are_ordered:
            return {"ordered": False if self.model == "rasch" else None}
        if self.model == "rasch":
            raise OptionError("--recode, --reverse and --unused are for ordered categories; leave out --model rasch.")
        by_default = "keep" if self.model == "rsm" else "collapse"
        return {"ordered": True, "unused": self.unused or by_default}


def options_in_use(group: Any) -> list[str]:
    """Options of a group that differ from their defaults."""
    default = type(group)()
    names = [field.name for field in fields(group)]
    return [name for name in names if getattr(group, name) != getattr(default, name)]


def mean_and_sd(text: str, flag: str, example: str) -> tuple[float, float]:
    """What an option says that is a mean and a standard deviation."""
    try:
        mean, sd = map(float, text.split(","))
        if not (abs(mean) < float("inf") and 0 < sd < float("inf")):
            raise ValueError
    except ValueError:
        raise OptionError(
            f"{flag} is {text!r}; it is a mean and a standard deviation above zero, as in {flag} {example}."
        ) from None
    return mean, sd


class AskedScale(NamedTuple):
    """What `--scale` asks for: two numbers, and whose they are."""

    first: float
    second: float
    by: str  # persons, items or formula, as of `study.rescale`


LEFT_OUT = (
    "attribute_columns",
    "total_columns",
    "unlike_columns",
)  # findings about columns that were taken for no items


def _refuse_items_left_out(responses: Responses, bank: Bank) -> None:
    """An error where a column that is called as an item of the bank was taken for something else: a bank would never
    hear of the item again."""
    in_bank = set(map(str, bank.items.tolist()))
    for finding in responses.notes:
        if finding.code not in LEFT_OUT:
            continue
        names = [name for name in finding.items if str(name) in in_bank]
        if names:
            raise ReadError(
                f"{responses.source}: {listed(names)} {one_or_many(len(names), 'is an item', 'are items')} of the "
                f"bank. {finding.sentence} Correct the responses, or name all items with `items=`; to leave out "
                f"{one_or_many(len(names), 'it', 'them')}, say `ignore={','.join(map(str, names))!r}`."
            )


def asked_scale(text: str) -> AskedScale:
    """What `--scale` says: MEAN,SD of the persons, or items:MEAN,UNITS, or formula:A,B."""
    by, colon, numbers = text.partition(":")
    if not colon:
        by = "persons"
        numbers = text
    try:
        first, second = map(float, numbers.split(","))
        usable = abs(first) < float("inf") and 0 < second < float("inf")
        if by not in ("persons", "items", "formula") or not usable:
            raise ValueError
    except ValueError:
        raise OptionError(
            f"--scale is {text!r}; it is the mean and the standard deviation of these persons, as in --scale 500,100, "
            "or formula:A,B for A + B x logit, or items:MEAN,UNITS for the mean of the items and the units per logit."
        ) from None
    return AskedScale(first, second, by)
