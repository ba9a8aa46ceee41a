"""Is `--memory` kept, and is no limit refused that would have done?

    python benchmarks/memory.py [--kinds right-wrong,ordered,ratings] [--sizes "0.4 M,1 M"] [--ample] [--scratch DIR]

For each kind of data and each size, a long Parquet file is drawn. Then the command `fit`, to all its tables, runs
under 160MB, and again under what the refusal asks for until it is not refused: `limit` is the smallest that is let in
(in steps of the three digits in which the program says it). `peak` is the most memory that the process had then and
could not give back: anonymous pages in /proc/PID/smaps_rollup, without those that were given back already (LazyFree),
looked at every 10 ms. `--ample`: the same under 8GB.

A limit is kept where peak / limit is at most 1. It is not too careful where that is at least 2/3: any limit above 1.5
times the peak is let in.
"""

from __future__ import annotations

import re
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
CATEGORIES = 5


class Shape(NamedTuple):
    """A data set: each person answers so many of the items, at random; ratings are given by two raters."""

    persons: int
    items: int
    each: int
    raters: int = 0


SHAPES: dict[str, dict[str, Shape]] = {
    "right-wrong": {
        "0.4 M": Shape(4_000, 100, 100),
        "1 M": Shape(20_000, 1_000, 50),
        "2 M": Shape(40_000, 2_000, 50),
        "5 M": Shape(100_000, 5_000, 50),
        "6 M": Shape(60_000, 2_000, 100),
        "10 M": Shape(200_000, 500, 50),
        "20 M": Shape(165_000, 13_169, 121),
    },
    "ordered": {
        "0.4 M": Shape(10_000, 40, 40),
        "1 M": Shape(50_000, 20, 20),
        "2 M": Shape(40_000, 200, 50),
        "5 M": Shape(250_000, 100, 20),
        "10 M": Shape(100_000, 500, 100),
        "20 M": Shape(400_000, 300, 50),
    },
    "ratings": {
        "0.4 M": Shape(40_000, 5, 5, 300),
        "1 M": Shape(100_000, 5, 5, 500),
        "2 M": Shape(200_000, 5, 5, 1_000),
        "5 M": Shape(500_000, 5, 5, 1_000),
        "10 M": Shape(500_000, 10, 10, 2_000),
        "20 M": Shape(1_000_000, 10, 10, 5_000),
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


def unreturnable(pid: int) -> int:
    """Bytes of a process that it cannot give back."""
    kept = 0
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, size = line.split()[:2]
            if name == "Anonymous:":
                kept += int(size)
            elif name == "LazyFree:":
                kept -= int(size)
    return 1024 * kept


def run(command: list[str]) -> Run:
    peak = 0
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        while process.poll() is None:
            peak = max(peak, unreturnable(process.pid))
            time.sleep(SAMPLE)
        errors.seek(0)
        return Run(process.returncode, errors.read(), peak, time.perf_counter() - begin)


def measure(kind: str, size: str, folder: Path, *, ample: bool) -> harness.Row:
    shape = SHAPES[kind][size]
    path = folder / "answers.parquet"
    n_answers = write(path, shape, 2 if kind == "right-wrong" else CATEGORIES)
    command = [sys.executable, "-m", "spectral_irt", "fit", str(path), "-q", "-o", str(folder / "out")]
    command += ["--spill", str(folder), *(["--facet", "rater"] if shape.raters else [])]
    limit = FIRST
    while (found := run([*command, "--memory", limit])).code == 2:
        asked = ASKED.search(" ".join(found.complaint.split()))
        if asked is None or asked[1].replace(" ", "") == limit:
            raise SystemExit(f"{kind}, {size}, {limit}: {found.complaint}")
        limit = asked[1].replace(" ", "")
    if found.code:
        raise SystemExit(f"{kind}, {size}, {limit}: {found.complaint}")
    number, unit = float(limit.rstrip("kMGB")), limit.lstrip("0123456789.")
    megabytes = number * {"kB": 1e-3, "MB": 1, "GB": 1e3}[unit]
    row: harness.Row = {
        "kind": kind,
        "responses": n_answers,
        "persons": shape.persons,
        "items": shape.items,
        "raters": shape.raters,
        "limit MB": megabytes,
        "peak MB": found.peak / 1e6,
        "peak / limit": found.peak / 1e6 / megabytes,
        "s": found.seconds,
    }
    if ample:
        free = run([*command, "--memory", AMPLE])
        row |= {"peak MB, 8GB": free.peak / 1e6, "s, 8GB": free.seconds}
    return row


if __name__ == "__main__":
    asked = harness.arguments(__doc__, kinds=tuple(SHAPES), sizes=SIZES, ample=False, scratch="/var/tmp")
    rows = []
    for kind in asked.kinds:
        for size in asked.sizes:
            if size in SHAPES[kind]:
                with tempfile.TemporaryDirectory(prefix="memory-", dir=asked.scratch) as folder:
                    rows.append(measure(kind, size, Path(folder), ample=asked.ample))
                    print(*rows[-1].values(), file=sys.stderr, flush=True)
    harness.show("Memory: the limit and the peak", rows, asked)
