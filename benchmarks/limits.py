"""What a fit takes from 1 M to 1,000 M responses, in time and memory.

    python benchmarks/limits.py [--sizes "1 M,10 M,EdNet,100 M"] [--billion] [--scratch DIR]

The data have EdNet's shape: 13,169 items, some much more popular than others, and a person for every 121 responses; the
size "EdNet" is its own 95 M of 784,000 people. They are drawn block by block into a packed file, and into Parquet files
of 10 M rows (not for 1,000 M). Then three processes with a memory budget (2GB, 8GB for 1,000 M):

    fit             open the packed file, difficulties and standard errors
    difficulties, everything
                    the command `fit` from Parquet (1,000 M: from the packed file) to items.csv, and to all tables

Memory is the most that the process could not give back (RssAnon). 1,000 M need 4 GB of disk and more in --scratch.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import harness
from spectral_irt.data.block import pack_block
from spectral_irt.data.packed_file import PackedWriter

ITEMS, ANSWERS = 13_169, 121
BILLION = "1,000 M"
SIZES = {"1 M": 10**6, "10 M": 10**7, "EdNet": 95_000_000, "100 M": 10**8, BILLION: 10**9}
SHARD = 10**7
TICKETS = 1 << 20  # items are drawn by lot: each has as many of these as it is popular
FIT = """
import sys, spectral_irt as si
si.set_memory(*sys.argv[2:])
si.SpectralRasch().fit(si.open_responses(sys.argv[1]))
"""


def blocks(n_responses: int, n_people: int) -> Iterator[Any]:
    """Blocks of about half a million answers under the Rasch model."""
    rng = np.random.default_rng(15)
    beta = rng.normal(size=ITEMS)
    ends = np.cumsum((1 + np.arange(ITEMS)) ** -0.5)
    tickets = rng.permutation(ITEMS)[np.searchsorted(ends / ends[-1], (np.arange(TICKETS) + 0.5) / TICKETS)]
    left, mean = n_people, n_responses / n_people
    while left:
        n = min(left, int(500_000 / mean))
        left -= n
        # Items that a person draws twice count once; so a few more are drawn.
        counts = np.maximum(rng.gamma(2.0, mean / 2.0 * 1.035, size=n).astype(np.int64), 2)
        person = np.repeat(np.arange(n), counts)
        key = np.sort(person * ITEMS + tickets[rng.integers(0, TICKETS, size=len(person))])
        person, item = np.divmod(key[np.diff(key, prepend=-1) > 0], ITEMS)
        theta = rng.normal(size=n)
        right = rng.random(len(person)) < 1 / (1 + np.exp(beta[item] - theta[person]))
        yield pack_block((person, (2 * item + right).astype(np.int32), None, None), range(n))


def write(name: str, folder: Path) -> int:
    """The packed file, and Parquet files in the order in which the people come; how many responses there are."""
    n_people = 784_000 if name == "EdNet" else SIZES[name] // ANSWERS
    waiting: list[Any] = []
    first = shards = 0
    with (folder / "answers.packed").open("wb") as file:
        writer = PackedWriter(file)
        for block in blocks(SIZES[name], n_people):
            writer.add(block)
            if name != BILLION:
                person = (block.person_of_response() + first).astype(np.int32)
                waiting.append({"person": person, "item": block.items, "correct": block.right().astype(np.int8)})
            first += block.n_persons
            if sum(len(one["person"]) for one in waiting) >= SHARD or (waiting and first == n_people):
                pl.concat([pl.DataFrame(one) for one in waiting]).write_parquet(folder / f"{shards:03}.parquet")
                waiting, shards = [], shards + 1
        writer.finish(persons=np.arange(n_people), items=np.arange(ITEMS))
    return writer.n_responses


def watched(command: list[str]) -> tuple[float, int]:
    """Seconds, and the most memory that the process could not give back."""
    begin, peak = time.perf_counter(), 0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        try:
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        except OSError:
            lines = []
        peak = max(peak, 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")))
        time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return time.perf_counter() - begin, peak


def measure(name: str, scratch: Path) -> harness.Row:
    n, packed, memory = write(name, scratch), str(scratch / "answers.packed"), "8GB" if name == BILLION else "2GB"
    shards = [str(path) for path in sorted(scratch.glob("*.parquet"))] or [packed]
    command = [sys.executable, "-m", "spectral_irt", "fit", *shards, "-q", "-o", str(scratch / "out")]
    command += ["--memory", memory, "--spill", str(scratch)]
    seconds, peak = watched([sys.executable, "-c", FIT, packed, memory, str(scratch)])
    row: harness.Row = {"responses": name, "fit s": seconds, "fit ns/resp.": 1e9 * seconds / n, "fit MB": peak / 1e6}
    for what, more in (("difficulties", ["--skip", "persons,fit"]), ("everything", [])):
        seconds, peak = watched([*command, *more])
        row |= {f"{what} s": seconds, f"{what} MB": peak / 1e6}
    return row


if __name__ == "__main__":
    sizes = tuple(name for name in SIZES if name != BILLION)
    asked = harness.arguments(__doc__, sizes=sizes, billion=False, scratch="/var/tmp")
    rows = []
    for name in [*asked.sizes, *([BILLION] if asked.billion else [])]:
        with tempfile.TemporaryDirectory(prefix="limits-", dir=asked.scratch) as scratch:
            rows.append(measure(name, Path(scratch)))
    harness.show("Limits", rows, asked)
