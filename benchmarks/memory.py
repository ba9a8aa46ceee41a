"""Is `--memory` kept, and is no limit refused that would have done?

    python benchmarks/memory.py [--kinds right-wrong,ordered,ratings] [--sizes "0.4 M,1 M"] [--ample] [--scratch DIR]
                                [--go-on] [--most 1800]

For each kind of data and each size, a long Parquet file is drawn, of another shape than those from which the constants
of the reckoning (`engine/base.py`) come. Then the command `fit`, to all its tables, runs
under 160MB, and again under what the refusal asks for until it is not refused: `limit` is the smallest that is let in
(in steps of the three digits in which the program says it). `peak` is the most memory that the process had then and
could not give back: anonymous pages in /proc/PID/smaps_rollup, without those that were given back already (LazyFree),
looked at every 10 ms while all of its anonymous memory is more than the peak so far. `--ample`: the same under 8GB.
With `--save`, rows are kept as they come, and `--go-on` leaves out those that are there already. A command that takes
more than `--most` CPU seconds is ended: it has no peak.

A limit is kept where peak / limit is at most 1. It is not too careful where that is at least 2/3: any limit above 1.5
times the peak is let in.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import harness

FIRST = "160MB"  # refused for whatever is in memory with two threads
AMPLE = "8GB"
ASKED = re.compile(r"need at\s+least ([\d.]+ [kMG]?B)")
SAMPLE = 0.01  # seconds between two looks at the process
INEXACT = 2 * 10**6  # bytes: the system counts the pages of each processor apart, and adds them now and then
CATEGORIES = 5
TITLE = "Memory: the limit and the peak"


class Shape(NamedTuple):
    """A data set: each person answers so many of the items, at random; ratings are given by two raters."""

    persons: int
    items: int
    each: int
    raters: int = 0


SHAPES: dict[str, dict[str, Shape]] = {
    "right-wrong": {
        "0.4 M": Shape(8_000, 50, 50),
        "1 M": Shape(25_000, 400, 40),
        "2 M": Shape(25_000, 3_000, 80),
        "5 M": Shape(50_000, 1_000, 100),
        "10 M": Shape(125_000, 1_500, 80),
        "20 M": Shape(250_000, 8_000, 80),
    },
    "ordered": {
        "0.4 M": Shape(20_000, 20, 20),
        "1 M": Shape(25_000, 100, 40),
        "2 M": Shape(100_000, 20, 20),
        "5 M": Shape(50_000, 400, 100),
        "10 M": Shape(500_000, 40, 20),
        "20 M": Shape(200_000, 600, 100),
    },
    "ratings": {
        "0.4 M": Shape(20_000, 10, 10, 200),
        "1 M": Shape(125_000, 4, 4, 400),
        "2 M": Shape(100_000, 10, 10, 800),
        "5 M": Shape(625_000, 4, 4, 1_500),
        "10 M": Shape(1_000_000, 5, 5, 3_000),
        "20 M": Shape(800_000, 12, 12, 4_000),
    },
}
SIZES = tuple(dict.fromkeys(size for shapes in SHAPES.values() for size in shapes))


def drawn_items(rng: np.random.Generator, n: int, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Person and item of each answer of `n` persons: all items, or some at random."""
    if shape.each == shape.items:
        return np.repeat(np.arange(n), shape.items), np.tile(np.arange(shape.items), n)
    person = np.repeat(np.arange(n), shape.each)
    key = np.sort(person * shape.items + rng.integers(0, shape.items, len(person)))
    person, item = np.divmod(key[np.diff(key, prepend=-1) > 0], shape.items)  # an item drawn twice counts once
    return person, item


def pieces(shape: Shape, categories: int) -> Iterator[pl.DataFrame]:
    """Answers under the partial credit model, person by person."""
    rng = np.random.default_rng([shape.persons, shape.items, categories])
    difficulty = rng.normal(size=shape.items)
    severity = rng.normal(scale=0.6, size=max(shape.raters, 1))
    steps = np.linspace(-1.0, 1.0, categories - 1) if categories > 2 else np.zeros(1)
    at_once = max(1, 500_000 // shape.each)
    for start in range(0, shape.persons, at_once):
        n = min(at_once, shape.persons - start)
        person, item = drawn_items(rng, n, shape)
        theta = rng.normal(size=n)
        columns: dict[str, Any] = {}
        location = difficulty[item]
        if shape.raters:
            first = rng.integers(0, shape.raters, n)
            second = (first + rng.integers(1, shape.raters, n)) % shape.raters
            rater = np.concatenate([first[person], second[person]])
            person, item = np.tile(person, 2), np.tile(item, 2)
            location = difficulty[item] + severity[rater]
            columns["rater"] = rater.astype(np.int32)
        columns["person"] = (start + person).astype(np.int32)
        columns["item"] = item.astype(np.int32)
        distance = theta[person] - location
        logits = np.concatenate([0 * distance[None], np.cumsum(distance - steps[:, None], axis=0)])
        odds = np.exp(logits - logits.max(axis=0))
        below = np.cumsum(odds, axis=0) / odds.sum(axis=0)
        response = (rng.random(len(distance)) > below).sum(axis=0)
        columns["response"] = np.minimum(response, categories - 1).astype(np.int8)
        yield pl.DataFrame(columns)


def write(path: Path, shape: Shape, categories: int) -> int:
    """The answers as a Parquet file; how many there are."""
    answers = pl.concat(pieces(shape, categories))
    answers.write_parquet(path, row_group_size=1 << 20)
    return answers.height


class Run(NamedTuple):
    """How a command ended: its exit code, what it complained of, and its peak of memory in bytes."""

    code: int
    complaint: str
    peak: int
    seconds: float
    cpu: float


def anonymous(pid: int) -> int:
    """Bytes of a process that are no file's, whether given back already or not; at no cost to the process."""
    with suppress(OSError):
        _, resident, of_files = Path(f"/proc/{pid}/statm").read_text().split()[:3]
        return (int(resident) - int(of_files)) * resource.getpagesize()
    return 0


def unreturnable(pid: int) -> int:
    """Bytes of a process that it cannot give back. While they are counted it cannot change its mappings, and waits."""
    kept = 0
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, size = line.split()[:2]
            if name == "Anonymous:":
                kept += int(size)
            elif name == "LazyFree:":
                kept -= int(size)
    return 1024 * kept


def run(command: list[str], most: int) -> Run:
    """The command, at most so many CPU seconds of it."""
    peak = 0
    begin = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    def cap() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))

    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=cap)
        while process.poll() is None:
            if anonymous(process.pid) + INEXACT > peak:
                peak = max(peak, unreturnable(process.pid))
            time.sleep(SAMPLE)
        errors.seek(0)
        complaint = errors.read()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(process.returncode, complaint, peak, time.perf_counter() - begin, cpu)


def in_megabytes(limit: str) -> float:
    """Such as 600MB."""
    number = float(limit.rstrip("kMGB"))
    unit = limit.lstrip("0123456789.")
    return number * {"kB": 1e-3, "MB": 1, "GB": 1e3}[unit]


def smallest_limit(command: list[str], most: int) -> tuple[str, Run]:
    """The smallest limit that is let in, and what happened under it."""
    limit = FIRST
    while True:
        result = run([*command, "--memory", limit], most)
        if result.code != 2:
            return limit, result
        asked = ASKED.search(" ".join(result.complaint.split()))
        if asked is None or asked[1].replace(" ", "") == limit:
            raise SystemExit(f"{limit}: {result.complaint}")
        limit = asked[1].replace(" ", "")


def measure(kind: str, size: str, folder: Path, *, ample: bool, most: int) -> harness.Row:
    shape = SHAPES[kind][size]
    path = folder / "answers.parquet"
    n_answers = write(path, shape, 2 if kind == "right-wrong" else CATEGORIES)
    command = [sys.executable, "-m", "spectral_irt", "fit", str(path), "-q", "-o", str(folder / "out")]
    command += ["--spill", str(folder), *(["--facet", "rater"] if shape.raters else [])]
    limit, result = smallest_limit(command, most)
    if result.code > 0:
        raise SystemExit(f"{kind}, {size}, {limit}: {result.complaint}")
    ended = result.code == 0
    row: harness.Row = {
        "kind": kind,
        "size": size,
        "responses": n_answers,
        "persons": shape.persons,
        "items": shape.items,
        "raters": shape.raters,
        "limit MB": in_megabytes(limit),
        "peak MB": result.peak / 1e6 if ended else np.nan,
        "peak / limit": result.peak / 1e6 / in_megabytes(limit) if ended else np.nan,
        "CPU s": result.cpu,
        "s": result.seconds,
    }
    if ample:
        free = run([*command, "--memory", AMPLE], most)
        row |= {"peak MB, 8GB": free.peak / 1e6, "s, 8GB": free.seconds}
    return row


def saved_rows(name: str) -> list[harness.Row]:
    """Those of docs/results/NAME.json, if there is such a file."""
    path = harness.RESULTS / f"{name}.json"
    if not path.exists():
        return []
    return list(json.loads(path.read_text())["tables"][TITLE])


if __name__ == "__main__":
    asked = harness.arguments(
        __doc__, kinds=tuple(SHAPES), sizes=SIZES, ample=False, scratch="/var/tmp", go_on=False, most=1800
    )
    rows = []
    if asked.go_on:
        rows = saved_rows(asked.save)
    there = {(row["kind"], row["size"]) for row in rows}
    for size in asked.sizes:  # the small ones of all kinds first
        for kind in asked.kinds:
            if size in SHAPES[kind] and (kind, size) not in there:
                with tempfile.TemporaryDirectory(prefix="memory-", dir=asked.scratch) as folder:
                    rows.append(measure(kind, size, Path(folder), ample=asked.ample, most=asked.most))
                print(*rows[-1].values(), file=sys.stderr, flush=True)
                harness.save(TITLE, rows, asked)
    rows.sort(key=lambda row: (tuple(SHAPES).index(row["kind"]), SIZES.index(row["size"])))
    harness.show(TITLE, rows, asked)
