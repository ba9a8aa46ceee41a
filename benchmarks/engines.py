"""The same Parquet files on every engine: this process, Dask with 1, 2 and 4 workers, and DuckDB.

    python benchmarks/limits.py --only "1 M" --engines

`limits.py` draws the files and measures how fast they can be read; then every engine runs in a process of its own:

    read    from Parquet to where the passes are: this process, the workers, a table of DuckDB
    fit     difficulties and standard errors. DuckDB has the chain alone, which this process does too, to compare
    CPU     seconds of processors that the fit took, those of the workers too
    calls   what is asked of the workers during the fit; each waits for the slowest of them and for the scheduler
    model   of the fit: passes x 12 bytes a response / the speed of a plain read with as many threads as work at once,
            and calls x the time of one over hardly anybody. That is the least it can take: it has no arithmetic in it
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import harness
import spectral_irt as si
from spectral_irt.data.block import item_counts

CHAIN = " (chain)"
KINDS = ("this process", "Dask 1", "Dask 2", "Dask 4", "this process" + CHAIN, "DuckDB" + CHAIN)
TOUCHED = 12  # bytes of a response in a pass: the item and a factor
THREADS = 2  # of this process and of DuckDB; workers have one each


def command(kind: str, folder: Path) -> list[str]:
    return [sys.executable, __file__, kind, str(folder)]


def row(kind: str, name: str, n: int, folder: Path, said: str, bandwidth: dict[int, float]) -> harness.Row:
    """What a run said, beside the model, and how far its difficulties are from those of this process."""
    found = json.loads(said.splitlines()[-1])
    at_once = int(kind[5:]) if kind.startswith("Dask") else THREADS
    speed = bandwidth[min(at_once, max(bandwidth))]
    calls = found.get("calls", "")
    model = found["passes"] * TOUCHED * n / speed + (calls or 0) * found.get("latency", 0.0)
    here = np.load(folder / f"{'this process' + (CHAIN if kind.endswith(CHAIN) else '')}.npy")
    differ = float(np.nanmax(np.abs(np.load(folder / f"{kind}.npy") - here)))
    alone = kind.startswith("this process")
    times = {"read s": found["read"], "fit s": found["fit"], "CPU s": found["cpu"], "passes": found["passes"]}
    more = {"calls": calls, "model s": model, "differ by": "" if alone else f"{differ:.0e}"}
    return {"responses": name, "engine": kind, **times, **more}


# ------------------------------------------------------------------------------------ one run, in its process


def run(kind: str, folder: Path) -> None:
    files = [str(path) for path in sorted(folder.glob("*.parquet"))]
    if kind.startswith("DuckDB"):
        found, fit = in_duckdb(files, folder / "answers.duckdb")
    else:
        found, fit = here_or_on_workers(files, kind)
    found["passes"] = fit.n_iter_
    order = np.argsort(fit.item_labels_.astype(np.int64))
    np.save(folder / f"{kind}.npy", fit.difficulty_[order])
    print(json.dumps(found))


def here_or_on_workers(files: list[str], kind: str) -> tuple[dict[str, float], Any]:
    from spectral_irt.engine import LocalEngine
    from spectral_irt.engine.dask import DaskEngine, connect

    found: dict[str, float] = {}
    client = connect(f"local:{kind[5:]}") if kind.startswith("Dask") else None
    try:
        if client is not None:
            found["latency"] = latency(client)
        start = time.perf_counter()
        responses = si.read(files, client=client) if client is not None else si.read(files).using(LocalEngine(THREADS))
        found["read"] = time.perf_counter() - start
        calls, used = passes_counted(DaskEngine), processors(client)
        alone: dict[str, Any] = {"refine": False, "se": "one-pass"} if kind.endswith(CHAIN) else {}
        fit = si.SpectralRasch(**alone).fit(responses)
        found["fit"] = time.perf_counter() - start - found["read"]
        found["cpu"] = processors(client) - used
        if client is not None:
            found["calls"] = len(calls)
    finally:
        if client is not None:
            client.close()
    return found, fit


def in_duckdb(files: list[str], file: Path) -> tuple[dict[str, float], Any]:
    import duckdb

    start = time.perf_counter()
    with duckdb.connect(str(file)) as connection:
        connection.execute(f"SET threads = {THREADS}")
        connection.execute("CREATE TABLE answers AS SELECT * FROM read_parquet(?)", [files])
    read, used = time.perf_counter() - start, time.process_time()
    fit = si.fit_in_database(f"duckdb:{file}", "answers", threads=THREADS)
    return {"read": read, "fit": time.perf_counter() - start - read, "cpu": time.process_time() - used}, fit


def passes_counted(engine: type) -> list[str]:
    """What is asked of engines of this kind from now on: every sum, and every step with a sum."""
    asked: list[str] = []
    for name in ("sum", "map_and_sum", "map"):
        usual = getattr(engine, name)

        def counting(self: Any, *args: Any, usual: Any = usual, name: str = name, **more: Any) -> Any:
            asked.append(name)
            return usual(self, *args, **more)

        setattr(engine, name, counting)
    return asked


def latency(engine: Any) -> float:
    """Seconds of a pass over hardly anybody."""
    few = si.Responses.from_wide(np.eye(4)).using(engine)
    few.sum(item_counts, few.n_items)
    return harness.cost(lambda: [few.sum(item_counts, few.n_items) for _ in range(20)], 1).wall / 20


def processors(engine: Any) -> float:
    """Seconds of processors so far: of this process, and of the workers of a cluster."""
    return time.process_time() + (0.0 if engine is None else sum(engine.client.run(time.process_time).values()))


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]))
