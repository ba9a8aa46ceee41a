"""How near the whole job comes to the speed at which its data can be read, from 1 M to 1,000 M responses.

    python benchmarks/limits.py [--only "1 M"] [--billion] [--engines] [--scratch DIR]

The data have EdNet's shape: 13,169 items, some much more popular than others, and a person for every 121 responses; the
size "EdNet" is its own 95 M of 784,000 people. They are drawn block by block into a packed file, and into Parquet files
of 10 M rows (not for 1,000 M). Every step then runs in a process of its own, with a memory budget (`--memory`):

    read        a plain read of the packed file, from the system's cache where it fits
    pass        one product with the chain on items
    fit         open the packed file, difficulties and standard errors
    difficulties, everything
                the command `fit` from Parquet (1,000 M: from the packed file) to items.csv, and to all tables

The model is passes x 12 bytes a response / the speed of the plain read. Memory is the most that the process could not
give back (RssAnon): mapped files, which the system drops when somebody needs the memory, do not count. 1,000 M need
4 GB of disk in the scratch folder, 10 GB where temporary files go, and about three quarters of an hour.

With `--engines`, a second table has Dask with 1, 2 and 4 workers and DuckDB beside this process, on the same Parquet
files (not for 1,000 M): see `engines.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import engines
import harness

ITEMS, ANSWERS = 13_169, 121
SIZES = {"1 M": 10**6, "10 M": 10**7, "EdNet": 95_000_000, "100 M": 10**8, "1,000 M": 10**9}
MEMORY = {"1,000 M": "8GB"}  # 2GB for the others
PEOPLE = {"EdNet": 784_000}
MINUTES = {"1 M": 1, "10 M": 2, "EdNet": 12, "100 M": 13, "1,000 M": 45}  # roughly, on two cores
SHARD = 10**7
TICKETS = 1 << 20  # items are drawn by lot: each has as many of these as it is popular
TOUCHED = 12  # bytes of a response in a pass: the item and a factor


# ------------------------------------------------------------------------------------------------- the data


def blocks(n_responses: int, n_people: int) -> Iterator[Any]:
    """Blocks of about half a million answers under the Rasch model."""
    from spectral_irt.data.packing import pack_block

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
        indptr = np.concatenate([[0], np.cumsum(np.bincount(person, minlength=n))])
        yield pack_block(indptr, (2 * item + right).astype(np.int32))


def write(name: str, folder: Path) -> None:
    """The packed file, and Parquet files in the order in which the people come."""
    import polars as pl

    from spectral_irt.data.packed_file import PackedWriter

    n_people = PEOPLE.get(name, SIZES[name] // ANSWERS)
    waiting: list[Any] = []
    first = shards = 0
    with (folder / "answers.packed").open("wb") as file:
        writer = PackedWriter(file)
        for block in blocks(SIZES[name], n_people):
            writer.add(block)
            if name != "1,000 M":
                person = (block.person_of_response() + first).astype(np.int32)
                waiting.append({"person": person, "item": block.items, "correct": block.right().astype(np.int8)})
            first += block.n_persons
            if sum(len(one["person"]) for one in waiting) >= SHARD or (waiting and first == n_people):
                pl.concat([pl.DataFrame(one) for one in waiting]).write_parquet(folder / f"{shards:03}.parquet")
                waiting, shards = [], shards + 1
        writer.finish(persons=np.arange(n_people), items=np.arange(ITEMS))
    print(json.dumps({"responses": writer.n_responses, "bytes": (folder / "answers.packed").stat().st_size}))


# ------------------------------------------------------------------------------------- steps, each a process


def read(path: str, threads: int) -> dict[str, float]:
    size, piece = Path(path).stat().st_size, 1 << 24
    ends = np.linspace(0, size, threads + 1).astype(int)

    def part(start: int, stop: int) -> None:
        buffer = memoryview(bytearray(piece))
        with open(path, "rb", buffering=0) as file:
            file.seek(start)
            while start < stop:
                start += file.readinto(buffer[: min(piece, stop - start)]) or stop

    with ThreadPoolExecutor(threads) as pool:
        spent = harness.cost(lambda: list(pool.map(part, ends[:-1], ends[1:])))
    return {"bandwidth": size / spent.wall}


def one_pass(path: str, threads: int) -> dict[str, float]:
    import spectral_irt as si
    from spectral_irt.chain.operator import ItemChain
    from spectral_irt.chain.weights import PERSONS
    from spectral_irt.engine import LocalEngine

    chain = ItemChain.under(si.open_responses(path).using(LocalEngine(threads)), PERSONS)
    return {"pass": harness.cost(lambda: chain.inflow(np.ones(ITEMS))).wall}


def fit(path: str, threads: int) -> dict[str, float]:
    import spectral_irt as si

    begin = time.perf_counter()
    found = si.SpectralRasch(threads=threads).fit(si.open_responses(path))
    return {"fit": time.perf_counter() - begin, "passes": found.n_iter_}


STEPS = {"read": read, "pass": one_pass, "fit": fit}


def step(name: str, path: str, threads: int, memory: str, spill: str) -> None:
    if name != "read":
        import spectral_irt as si

        si.set_memory(memory, spill)
    print(json.dumps(STEPS[name](path, threads)))


# ---------------------------------------------------------------------------------------------- the parent


def watched(command: list[str]) -> tuple[float, int, str]:
    """Seconds, the most memory that it could not give back, and what it printed."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, _anonymous(process.pid))
        time.sleep(0.02)
    assert process.stdout is not None
    said = process.stdout.read()
    process.stdout.close()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return time.perf_counter() - begin, peak, said


def _anonymous(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def measure(name: str, scratch: Path, others: list[harness.Row] | None) -> list[harness.Row]:
    """Rows of the table: two threads, and one; rows of the table of engines are added to the `others`."""
    memory, packed = MEMORY.get(name, "2GB"), scratch / "answers.packed"
    mine = [sys.executable, __file__]
    made, _, said = watched([*mine, "--write", name, str(scratch)])
    drawn = json.loads(said)
    n = drawn["responses"]
    shards = [str(path) for path in sorted(scratch.glob("*.parquet"))]
    rows: list[harness.Row] = []
    bandwidth: dict[int, float] = {}
    for threads in (2, 1):
        found, peak = {}, 0
        for one in STEPS:
            _, most, said = watched([*mine, "--step", one, str(packed), str(threads), memory, str(scratch)])
            found |= json.loads(said.splitlines()[-1])
            peak = max(peak, most)
        bandwidth[threads] = found["bandwidth"]
        model = found["passes"] * TOUCHED * n / found["bandwidth"]
        row = {"responses": name, "threads": threads, "read GB/s": found["bandwidth"] / 1e9}
        row |= {"pass ms": 1e3 * found["pass"], "fit s": found["fit"], "model s": model}
        row |= {"fit ns/resp.": 1e9 * found["fit"] / n, "fit MB": peak / 1e6}
        if threads == 2:
            command = [sys.executable, "-m", "spectral_irt", "fit", *(shards or [str(packed)]), "-q"]
            command += ["--memory", memory, "--spill", str(scratch)]
            for what, more in (("difficulties", ["--skip", "persons,fit"]), ("everything", [])):
                seconds, most, _ = watched([*command, *more, "-o", str(scratch / "out")])
                row |= {f"{what} s": seconds, f"{what} MB": most / 1e6}
        rows.append(row)
    for kind in engines.KINDS if others is not None and shards else ():
        _, _, said = watched(engines.command(kind, scratch))
        others.append(engines.row(kind, name, n, scratch, said, bandwidth))
    print(f"{name}: {n:,} responses drawn in {made:.0f} s, {drawn['bytes'] / 1e6:,.0f} MB packed", file=sys.stderr)
    return rows


def main() -> None:
    if sys.argv[1:2] == ["--write"]:
        write(sys.argv[2], Path(sys.argv[3]))
        return
    if sys.argv[1:2] == ["--step"]:
        name, path, threads, memory, spill = sys.argv[2:]
        step(name, path, int(threads), memory, spill)
        return
    asked = harness.arguments(__doc__, only=str, billion=False, engines=False, scratch="/var/tmp")
    names = [asked.only] if asked.only else [name for name in SIZES if name != "1,000 M" or asked.billion]
    print(f"about {sum(MINUTES[name] for name in names)} minutes on two idle cores", file=sys.stderr)
    rows: list[harness.Row] = []
    others: list[harness.Row] | None = [] if asked.engines else None
    for name in names:
        with tempfile.TemporaryDirectory(prefix="limits-", dir=asked.scratch) as scratch:
            rows += measure(name, Path(scratch), others)
    harness.show("Limits", rows, asked)
    if others:
        harness.show("Engines", others, asked)


if __name__ == "__main__":
    main()
