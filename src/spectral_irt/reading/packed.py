"""Packed files among those that can be read: everything about them was said when they were packed."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from spectral_irt.data.packed_file import mapped_blocks, open_packed
from spectral_irt.data.responses import Responses
from spectral_irt.engine.dask import TASKS_PER_THREAD
from spectral_irt.errors import OptionError, ReadError, ResponseValueError

if TYPE_CHECKING:
    from spectral_irt.engine.dask import DaskEngine
    from spectral_irt.reading.formats import File
    from spectral_irt.reading.request import Request


def open_table(file: File) -> NoReturn:
    """A packed file has no columns to be asked for."""
    raise ReadError(
        f"{file.name} is a packed file, and no table. Give what is known of the people in a table of their own, "
        "`group_file=`."
    )


def responses_of_packed(files: list[File], request: Request, engine: DaskEngine | None = None) -> Responses:
    """The responses of a packed file; an error if it is one of several, or if anything was said about its layout."""
    name, how, asked, duplicates = files[0].name, request.scoring, request.asked, request.duplicates
    if len(files) > 1:
        raise ReadError(
            f"a packed file is read alone, and here are {len(files)}; pack together the files that they were made from."
        )
    said = [f"`{one}=`" for group in (how, asked) for one in _said(group)]
    said += [f"`duplicates={duplicates!r}`"] if duplicates != "error" else []
    if said:
        raise OptionError(
            f"{name} is a packed file, whose answers were read and scored when it was packed; leave out "
            f"{', '.join(said)}, or say it when packing."
        )
    found = open_packed(files[0].path)
    absent = [one for one in asked.people if found.people is None or one not in found.people]
    if absent:
        raise OptionError(
            f"{name} is a packed file, and no column {absent[0]!r} about people was packed with the answers. Name it "
            "when packing, `group=`, or give a table of people, `group_file=`."
        )
    if not (found.thresholds.binary or how.ordered):
        raise ResponseValueError(f"{name} holds answers in ordered categories; fit `SpectralPartialCredit`.")
    return found if engine is None else _on_workers(found, files[0].path.absolute(), engine)


def _on_workers(found: Responses, path: Path, engine: DaskEngine) -> Responses:
    """The same responses, whose blocks the workers map from the file themselves, where all of them see it."""
    if not found.n_responses or not engine.sees(path):
        return found.using(engine)
    n = len(found.blocks)
    cuts = np.linspace(0, n, min(n, TASKS_PER_THREAD * engine.threads) + 1).astype(int).tolist()
    same = [[value] * (len(cuts) - 1) for value in (str(path), path.stat().st_mtime_ns)]
    shards = engine.submit_all(mapped_blocks, *same, cuts[:-1], cuts[1:])
    return replace(found, blocks=engine.shards_of(shards, np.diff(cuts).tolist()), engine=engine)  # type: ignore[arg-type]


def _said(group: Any) -> list[str]:
    default, unsaid = type(group)(), ("people", "ordered", "undecided", "unused", "groups", "span")
    names = [one.name for one in fields(group) if one.name not in unsaid]
    return [name for name in names if getattr(group, name) != getattr(default, name)]
