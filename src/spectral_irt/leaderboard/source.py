"""What a leaderboard is made of: answers of models to prompts, and what is known of the prompts.

Logs of a harness, or a table of models and prompts, read with the attributes that were asked for. `Leaderboard.read`
and the command call `read_source`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.data import Responses
from spectral_irt.data.block import Duplicates, Ints
from spectral_irt.data.builder import names_files
from spectral_irt.data.labels import positions
from spectral_irt.errors import DuplicateResponseError, OptionError, ReadError
from spectral_irt.reading import read
from spectral_irt.reading.formats import fetch_addresses, find_files, open_table
from spectral_irt.reading.frame import Table, polars_errors_named, table_of_any_frame
from spectral_irt.text import listed

BENCHMARK = "benchmark"
NAMED_FILES = 3
Progress = Callable[[float, str], None]


@dataclass(frozen=True, eq=False)
class Source:
    """Models and prompts."""

    answers: Responses  # models are the people, prompts the items; each run of a prompt is an item of its own
    prompt: Ints  # which prompt each item is a run of
    attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # of each item; "" where nothing is known
    metrics: tuple[str, ...] = ()  # what said right or wrong, where logs were read

    @classmethod
    def of(cls, answers: Responses, attributes: Mapping[str, Any] | None = None) -> Source:
        """Answers as they are; `attributes` have a label for each prompt, in order, or map prompts to labels."""
        known = {name: labels_of(answers, name, values) for name, values in (attributes or {}).items()}
        return cls(answers, np.arange(answers.n_items), known)

    @property
    def repeated(self) -> bool:
        """Whether some prompt was run more than once."""
        return len(np.unique(self.prompt)) < len(self.prompt)

    def attribute(self, name: str) -> NDArray[Any]:
        """What is known of each item under this name."""
        if name not in self.attributes:
            known = f"known are {listed(self.attributes)}" if self.attributes else "nothing is known of them"
            raise OptionError(f"{self.answers.source}: the prompts have no {name!r}; {known}.")
        return self.attributes[name]


def labels_of(answers: Responses, name: str, values: Any) -> NDArray[Any]:
    """A label for each prompt, from labels in order or by prompt."""
    if isinstance(values, Mapping):
        place = positions(answers.items.tolist(), list(values))
        rows = list(values.values())
        return np.array(["" if k < 0 or rows[k] is None else rows[k] for k in place], dtype=object)
    out = np.array([("" if value is None else value) for value in values], dtype=object)
    n = answers.n_items
    if len(out) != n:
        raise OptionError(f"{name} has {len(out):,} labels, and there are {n:,} prompts; give one for each.")
    return out


def read_source(
    paths: Iterable[Any] | Any,
    *,
    wanted: Sequence[str] = (),
    prompts: Any = None,
    metric: Sequence[str] = (),
    threshold: float | None = None,
    duplicates: Duplicates = "error",
    progress: Progress | None = None,
    **reading: Any,
) -> Source:
    """Answers from logs of a harness, or from a table of models and prompts.

    Parameters
    ----------
    wanted : names
        What has to be known of the prompts: fields of their documents, or columns of the table.
    prompts : path, optional
        A table with a row for each prompt, matched by label: where the rest of what is wanted is found.
    metric
        Of logs; see `eval_logs.collect.collect`.
    reading
        Of tables; options of `read`.
    """
    from spectral_irt.eval_logs.collect import collect, find_logs

    given = fetch_addresses([paths] if isinstance(paths, str | os.PathLike) else paths)
    files = find_logs(given)
    of_file = {} if prompts is None else _columns_by_label(prompts, [name for name in wanted if name != BENCHMARK])
    rest = [name for name in wanted if name not in of_file]
    how: dict[str, Any] = {"threshold": threshold, "duplicates": duplicates, "progress": progress}
    if files is not None:
        if reading:
            raise OptionError(f"`{next(iter(reading))}=` is for tables, and these files are logs of a harness.")
        source = Source(*collect(files, metric=metric, attributes=rest, **how))
    else:
        if metric:
            raise OptionError("`metric=` is for logs of a harness; of a table, say `response=`.")
        known = _columns_of_table(given, rest, reading) if rest else {}
        reading["ignore"] = [*reading.get("ignore", ()), *known]
        source = Source.of(_read_answers(given, {**how, **reading}), known)
    for name, values in of_file.items():
        source.attributes[name] = labels_of(source.answers, name, values)  # type: ignore[index]
        if all(isinstance(value, str) and not value for value in source.attributes[name]):
            some = listed(source.answers.items[:3])
            raise ReadError(f"{prompts}: none of its labels is that of a prompt, such as {some}.")
    return source


def _read_answers(paths: Sequence[Any], reading: dict[str, Any]) -> Responses:
    """Right and wrong answers from tables; where there are several of one model to one prompt, they may be scores of
    judges."""
    try:
        return read(paths, ordered=False, **reading)
    except DuplicateResponseError as error:
        raise DuplicateResponseError(
            error.problem,
            "If they are scores by several judges, spectral-irt leaderboard FILE --judge, with the column of judges, "
            "compares models and judges. If not, say `duplicates='first' or 'last'` to keep one of each.",
        ) from None


def prompt_labels(path: Any) -> list[Any]:
    """The labels in a table of prompts: its first column, or the one called item."""
    return _labels_in(whole_table([path]))


def _labels_in(frame: Any) -> list[Any]:
    called = [name for name in frame.columns if name.lower() in ("item", "prompt", "prompt_id", "item_id")]
    labels: list[Any] = frame[called[0] if called else frame.columns[0]].to_list()
    return labels


def _columns_by_label(path: Any, names: Sequence[str]) -> dict[str, dict[Any, Any]]:
    """Columns of a table of prompts that are wanted, by label."""
    frame = whole_table([path])
    labels = _labels_in(frame)
    in_frame = [name for name in names if name in frame.columns]
    return {name: dict(zip(labels, frame[name].to_list(), strict=True)) for name in in_frame}


def _columns_of_table(paths: Sequence[Any], names: Sequence[str], reading: dict[str, Any]) -> dict[str, dict[Any, Any]]:
    """Columns of a long table of answers: what stands beside each prompt, where it first appears."""
    from spectral_irt.reading.columns import ITEM_NAMES, plain

    frame = whole_table(paths)
    item = reading.get("item") or next((name for name in frame.columns if plain(name) in ITEM_NAMES), None)
    missing = [name for name in names if name not in frame.columns]
    if missing or item is None:
        raise OptionError(
            f"the table has no column {listed(missing or ['item'])}; its columns are {listed(frame.columns)}. What is "
            "known of the prompts can also be in a table of its own: `prompts=`."
        )
    first = frame.unique(item, keep="first", maintain_order=True)
    return {name: dict(zip(first[item].to_list(), first[name].to_list(), strict=True)) for name in names}


def whole_table(paths: Sequence[Any]) -> pl.DataFrame:
    """Tables in memory, one below the other."""
    return frame_of(open_tables(paths)[0])


def paths_of(data: Any) -> list[Any] | None:
    """Files, patterns and folders, of which addresses have been fetched; None where the data are a dataframe."""
    several = [data] if isinstance(data, str | os.PathLike) else data
    if not names_files(data) and not (isinstance(data, list | tuple) and data and all(map(names_files, data))):
        return None
    return fetch_addresses(several)


def open_tables(data: Any) -> tuple[Table, str | None]:
    """A table of scores or votes, of files put one below the other; or a dataframe, with its library."""
    paths = paths_of(data)
    if paths is None:
        return table_of_any_frame(data)
    files = find_files(paths)
    tables = [open_table(file) for file in files]
    if len(tables) == 1:
        return tables[0], None
    with polars_errors_named(files[0].name, "Read the files one by one."):
        joined = pl.concat([frame_of(table) for table in tables], how="diagonal_relaxed")
    names = ", ".join(file.name for file in files[:NAMED_FILES])
    if len(files) > NAMED_FILES:
        names = f"{len(files):,} files"
    notes = tuple(note for table in tables for note in table.notes)
    return replace(table_of_any_frame(joined)[0], name=names, notes=notes), None


def frame_of(table: Table) -> pl.DataFrame:
    """A table in memory, columns by name."""
    frame = table.whole()
    frame.columns = [str(name) for name in table.columns]
    return frame


def coded(texts: pl.Series) -> tuple[list[str], Ints]:
    """The texts that there are, sorted, and the number of each."""
    labels = texts.unique().sort()
    code = texts.cast(pl.Enum(labels)).to_physical()
    return labels.to_list(), code.to_numpy().astype(np.int64)
