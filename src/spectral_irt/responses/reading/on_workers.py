"""Long tables read by the workers of a cluster: every task reads a few files, and the answers stay where they are.

This process sees labels and counts only. Item codes are made the same everywhere. People are brought into order, and
those who are in several files together: each has a place among all, and each shard gets a run of places. Files that are
sorted by person, one after the other, stay as they are.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.engines.shards import Shard, Sized, total_of
from spectral_irt.errors import ClusterError, OptionError, ReadError, option
from spectral_irt.responses.block import Block, Ints
from spectral_irt.responses.labels import Labels, label_array
from spectral_irt.responses.pack import Duplicates, Repeats, Rows, pack_block, pack_rows
from spectral_irt.responses.reading.files import File, changed, find_files, open_table, source_name
from spectral_irt.responses.reading.layout import Long, find_layout
from spectral_irt.responses.reading.request import Asked
from spectral_irt.responses.reading.tabular import polars_errors_named
from spectral_irt.responses.responses import Responses
from spectral_irt.responses.scorer import Scoring

if TYPE_CHECKING:
    from spectral_irt.engines.dask import DaskEngine
    from spectral_irt.responses.findings import Finding

COLUMNAR = ("parquet", "arrow")
READ_TOGETHER = 256 * 2**20  # bytes of small files that one task reads
LOADS_PER_THREAD = 4  # tasks for every thread of a worker, where there are as many files
EXCHANGES = 40_000  # tasks that may bring people together; a scheduler handles some thousand a second


@dataclass(frozen=True)
class Order:
    """Which files a task reads, and how."""

    files: tuple[tuple[str, int, int], ...]  # path, bytes, time of the last change
    scoring: Scoring
    asked: Asked
    duplicates: Duplicates


class Census(NamedTuple):
    """Labels, answers of each person, how many blocks there are, and what reading has to say."""

    items: Labels
    users: Labels
    counts: Ints
    n_blocks: int
    words: tuple[str, str]
    notes: tuple[Finding, ...]


def readable_by_workers(files: Sequence[File], scoring: Scoring, asked: Asked) -> bool:
    """Whether workers can read the files: columns of known types, a row for each answer, no key to be checked."""
    if files[0].family not in COLUMNAR or scoring.key is not None or asked.order_by is not None:
        return False
    if any(file.uri is not None or file.partitions for file in files):  # more than a path says what they hold
        return False
    with polars_errors_named(files[0].name):
        return isinstance(find_layout(open_table(files[0]), asked, ()), Long)


def read_by_workers(
    files: Sequence[File],
    scoring: Scoring,
    asked: Asked,
    duplicates: Duplicates,
    progress: Callable[[float, str], None] | None,
    engine: DaskEngine,
) -> Responses:
    """Responses on the workers; people and items in sorted order, as when this process reads them."""
    source = source_name(list(files))
    asked = replace(asked, format="long")  # as the first file is
    orders = [Order(group, scoring, asked, duplicates) for group in _groups(files, engine.threads)]

    def tell(done: int) -> None:
        if progress is not None:
            progress(done / len(orders), f"reading {source} on the cluster")

    loads = engine.submit_all(load, orders)
    all_found = engine.gather(engine.submit_all(census, loads), tell)
    loads = [one for one, found in zip(loads, all_found, strict=True) if found is not None]
    found: list[Census] = [one for one in all_found if one is not None]
    if not found:
        raise ReadError(f"{source}: no rows at all; check that whatever wrote the files had finished.")
    items, codes = union([one.items for one in found])
    users, places = union([one.users for one in found])
    counts = np.bincount(np.concatenate(places), np.concatenate([one.counts for one in found]), len(users))
    if scoring.above_mean is not None and len(users) < sum(map(len, places)):
        raise ReadError(
            f"{source}: some people are in several files, and ",
            option("above_mean", ...),
            " goes by all ratings of a person. Write the files so that each person is in one of them.",
        )
    order = sorted(range(len(loads)), key=lambda k: int(places[k][0]))
    sorted_files = bool(np.all(np.diff(np.concatenate([places[k] for k in order])) > 0))
    if sorted_files and len(loads) >= engine.threads:
        shards = engine.submit_all(recoded, [loads[k] for k in order], [codes[k] for k in order])
        sizes = [found[k].n_blocks for k in order]
    else:
        shards, sizes = _brought_together(loads, codes, places, counts, duplicates, engine, (users, items, source))
    notes = tuple(dict.fromkeys(note for one in found for note in one.notes))
    responses = Responses(
        engine.shards_of(shards, sizes),  # type: ignore[arg-type]
        items,
        users,
        source=source,
        notes=notes,
        words=found[0].words,
        engine=engine,
    )
    _check_threshold(responses, scoring)
    return responses


def _groups(files: Sequence[File], threads: int) -> Iterator[tuple[tuple[str, int, int], ...]]:
    """Files that one task reads: several small ones, so that there are not many more tasks than threads."""
    marks = [_mark(str(file.path.absolute())) for file in files]
    enough = min(READ_TOGETHER, sum(size for _, size, _ in marks) / (LOADS_PER_THREAD * threads))
    group: list[tuple[str, int, int]] = []
    size = 0
    for mark in marks:
        group.append(mark)
        size += mark[1]
        if size >= enough:
            yield tuple(group)
            group, size = [], 0
    if group:
        yield tuple(group)


def _mark(path: str) -> tuple[str, int, int]:
    found = os.stat(path)
    return path, found.st_size, found.st_mtime_ns


def union(labels: Sequence[Labels]) -> tuple[Labels, list[Ints]]:
    """All labels, sorted, and the place of each among them; text where they are text in some source.

    >>> union([np.array([10, 9]), np.array(["x"], dtype=object)])
    (array(['10', '9', 'x'], dtype=object), [array([0, 1]), array([2])])
    """
    cuts = np.cumsum([len(one) for one in labels])[:-1]
    if all(one.dtype.kind == "i" for one in labels):
        every, place = np.unique(np.concatenate(labels), return_inverse=True)
        return every, np.split(place, cuts)
    import polars as pl

    texts = pl.concat([pl.Series([str(label) for label in one.tolist()], dtype=pl.String) for one in labels])
    place = texts.rank("dense").to_numpy().astype(np.int64) - 1
    return label_array(texts.unique().sort().to_list()), np.split(place, cuts)


def _check_threshold(responses: Responses, scoring: Scoring) -> None:
    """Refuse a rule by which every answer is right, or wrong: one file alone may well be like that."""
    rule = "threshold" if scoring.threshold is not None else "correct"
    right = int(responses.item_scores.sum())
    if getattr(scoring, rule) is not None and right in (0, responses.n_responses):
        said = getattr(scoring, rule)
        raise OptionError(option(rule), f" is {said!r}, by which {'no' if right == 0 else 'every'} response is right.")


# ---------------------------------------------------------------------------------- people in several files


def _brought_together(
    loads: Sequence[Any],
    codes: Sequence[Ints],
    places: Sequence[Ints],
    counts: NDArray[Any],
    duplicates: Duplicates,
    engine: DaskEngine,
    names: tuple[Labels, Labels, str],
) -> tuple[list[Any], list[int]]:
    """Shards of people by their places, about as many answers in each; and how many blocks each has."""
    n = max(2 * engine.threads, len(loads))
    n = min(n, max(engine.threads, EXCHANGES // len(loads)), len(counts))
    answers = np.cumsum(counts)
    cuts = np.searchsorted(answers, answers[-1] * np.arange(1, n) / n, side="left") + 1
    cuts = np.unique(np.concatenate([[0], cuts, [len(counts)]]))
    runs = list(range(len(cuts) - 1))
    split = engine.submit_all(divided, loads, codes, places, [cuts] * len(loads))
    pieces = engine.submit_all(one_run, [one for one in split for _ in runs], runs * len(split))
    of_run = [pieces[k :: len(runs)] for k in runs]
    merged = engine.submit_all(joined, of_run, np.diff(cuts).tolist(), [duplicates] * len(runs))
    repeats, sizes = Repeats(), []
    for start, (found, size) in zip(
        cuts[:-1].tolist(), engine.gather(engine.submit_all(total_of, merged)), strict=True
    ):
        sizes.append(size)
        repeats.join(found, start)
    if duplicates == "error":
        repeats.complain(*names)
    return merged, sizes


# ---------------------------------------------------------------------------------- what the workers do


@dataclass(frozen=True, eq=False)
class Read(Sized):
    """What a task has read; it stays on the worker. None when there were no rows."""

    answers: Responses | None


def load(order: Order) -> Read:
    """What these files hold."""
    from spectral_irt.responses.read import read_files

    unseen = [path for path, *_ in order.files if not os.path.isfile(path)]
    if unseen:
        raise ClusterError(
            f"a worker on {socket.gethostname()} cannot see {unseen[0]!r}. The files must be at the same place on all "
            "machines of the cluster: on a shared file system."
        )
    for mark in order.files:  # a worker that died may be the reason to read it again
        if _mark(mark[0]) != mark:
            raise changed(os.path.basename(mark[0]))
    files = [file for file in find_files([path for path, *_ in order.files]) if len(open_table(file).head(0))]
    if not files:
        return Read(None)
    paths = [file.path for file in files]
    return Read(read_files(paths, order.scoring, order.asked, order.duplicates, None, part=True))


def census(loaded: Read) -> Census | None:
    """What the process that asks has to know about files; None of those without rows."""
    read = loaded.answers
    if read is None:
        return None
    return Census(read.items, read.users, read.counts, len(read.blocks), read.words, read.notes)


def recoded(loaded: Read, code: Ints) -> Shard:
    """The blocks, item `i` renamed `code[i]`."""
    assert loaded.answers is not None
    return Shard(list(loaded.answers.map(_renamed, code)))


def _renamed(block: Block, code: Ints) -> Block:
    if np.all(np.diff(code) > 0):  # the order of the items stays
        return replace(block, items=code.astype(np.int32)[block.items], _cache={})
    return pack_block(block.indptr, _slots(block, code))


def _slots(block: Block, code: Ints) -> NDArray[np.int32]:
    """The answers as they are on their way in: `2 * item + wrong`."""
    return (2 * code[block.items] + ~block.right()).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Runs(Sized):
    """The answers of files, run by run."""

    every: list[Rows]


def divided(loaded: Read, code: Ints, place: Ints, cuts: Ints) -> Runs:
    """The answers of the people of each run of places."""
    read = loaded.answers
    assert read is not None
    person, slots = np.repeat(place, read.counts), read.gather(_slots, code)
    run = np.searchsorted(cuts, person, side="right") - 1
    if np.any(run[1:] < run[:-1]):
        order = np.argsort(run, kind="stable")
        run, person, slots = run[order], person[order], slots[order]
    ends = np.searchsorted(run, np.arange(len(cuts)))
    own = zip(ends[:-1], ends[1:], cuts[:-1], strict=True)
    return Runs([Rows((person[a:b] - start).astype(np.int32), slots[a:b]) for a, b, start in own])


def one_run(runs: Runs, number: int) -> Rows:
    return runs.every[number]


def joined(pieces: Sequence[Rows], n_users: int, duplicates: Duplicates) -> Shard:
    """The blocks of a run of places from what each file has of it; and the repeated answers among them."""
    counts = np.bincount(np.concatenate([piece.person for piece in pieces]), minlength=n_users)
    repeats = Repeats()
    blocks = list(pack_rows(pieces, counts, duplicates=duplicates, repeats=repeats))
    return Shard(blocks, (repeats, len(blocks)))
