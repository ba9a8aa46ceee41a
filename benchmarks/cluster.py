"""Dask with 1, 2 and 4 workers against this process: seconds, the same numbers, and what more responses would take.

    python benchmarks/cluster.py
    python benchmarks/cluster.py --persons 200000 --per-person 100 --workers 1 2 4

The model: a stage takes its CPU seconds per response, times the responses, divided by the processors that the workers
have; and every pass waits once for the slowest task and the scheduler, whatever the number of responses. The first
number is measured in this process with one thread, the second with a pass over hardly anybody.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import spectral_irt as si
from measure import table
from spectral_irt.data.block import item_counts
from spectral_irt.engine import LocalEngine
from spectral_irt.engine.dask import DaskEngine, connect

STAGES = ("read", "fit", "persons", "item fit")
FAR = 10**11


def write(folder: Path, persons: int, items: int, per_person: int, files: int) -> list[str]:
    """Long Parquet files, sorted by person."""
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=items)
    paths = []
    for k, people in enumerate(np.array_split(np.arange(persons), files)):
        item = np.argsort(rng.random((len(people), items)), axis=1)[:, :per_person]
        right = rng.random(item.shape) < 1 / (1 + np.exp(difficulty[item] - rng.normal(size=(len(people), 1))))
        frame = {"person": np.repeat(people, per_person), "item": item.ravel(), "response": right.ravel().astype("i1")}
        paths.append(str(folder / f"part{k:03}.parquet"))
        pl.DataFrame(frame).write_parquet(paths[-1])
    return paths


def stages(read: Callable[[], Any]) -> tuple[dict[str, float], dict[str, float], np.ndarray]:
    """Wall and CPU seconds of this process for every stage, and the difficulties."""
    wall: dict[str, float] = {}
    cpu: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start, used = time.perf_counter(), time.process_time()
        result = work()
        wall[name], cpu[name] = time.perf_counter() - start, time.process_time() - used
        return result

    answers = timed("read", read)
    fit = timed("fit", lambda: si.SpectralRasch().fit(answers))
    study = fit.analyse(answers)
    timed("persons", study.persons)
    timed("item fit", study.item_fit)
    return wall, cpu, fit.calibration_.difficulty


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


def peak(engine: DaskEngine) -> int:
    """The most memory that the workers have taken, in bytes."""
    return sum(1024 * used for used in engine.client.run(_peak).values())


def _peak() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def latency(engine: DaskEngine) -> float:
    """Seconds of a pass over hardly anybody."""
    few = si.Responses.from_wide(np.eye(4)).using(engine)
    few.sum(item_counts, few.n_items)
    start = time.perf_counter()
    for _ in range(20):
        few.sum(item_counts, few.n_items)
    return (time.perf_counter() - start) / 20


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    options.add_argument("--persons", type=int, default=20_000)
    options.add_argument("--items", type=int, default=500)
    options.add_argument("--per-person", type=int, default=100)
    options.add_argument("--files", type=int, default=16)
    options.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    asked = options.parse_args()
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    n = asked.persons * asked.per_person
    with tempfile.TemporaryDirectory() as folder:
        files = write(Path(folder), asked.persons, asked.items, asked.per_person, asked.files)
        packed = Path(folder, "answers.packed")  # which workers map; other files are read by one process
        si.read(files).save(packed)
        print(f"{n:,} responses of {asked.persons:,} people to {asked.items:,} items; {processors} processors\n")
        wall, cpu, here = stages(lambda: si.read(packed).using(LocalEngine(1)))
        rows: list[list[object]] = [["this process", *(wall[one] for one in STAGES), sum(wall.values()), "", ""]]
        passes, delay, grown = 0, 0.0, 0
        for workers in asked.workers:
            engine = connect(f"local:{workers}")
            try:
                delay = latency(engine)
                grown = -peak(engine)
                counted = passes_counted(DaskEngine)
                there, _, found = stages(lambda engine=engine: si.read(packed, client=engine))  # type: ignore[misc]
                passes = len(counted)
                grown += peak(engine)
            finally:
                engine.close()
            model = sum(cpu.values()) / min(workers, processors) + passes * delay
            times = [*(there[one] for one in STAGES), sum(there.values())]
            rows.append([f"{workers} workers", *times, model, f"{np.abs(found - here).max():.0e}"])
    print(table(["", *STAGES, "all", "model", "differ by"], rows))
    each = sum(cpu.values()) / n
    shares = ", ".join(f"{one} {1e9 * cpu[one] / n:,.0f}" for one in STAGES)
    print(f"\nA response costs {1e9 * each:,.0f} ns of CPU: {shares}")
    print(f"Memory of all workers at its peak: {grown / n:.0f} bytes for each response")
    print(f"{passes} passes; one over hardly anybody takes {1e3 * delay:.0f} ms")
    for threads in (256, 1024):
        minutes = (each * FAR / threads + passes * delay) / 60
        print(f"{FAR:.0e} responses on {threads:,} processors: {minutes:.1f} minutes by the model")


if __name__ == "__main__":
    main()
