"""What every study needs: its options, averages over replicates, time and memory, a table, and the rows as JSON.

A study is a list of cases. A case is a row: what it is called, and a function of a seed that measures one data set.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
Case = tuple[Row, Callable[[int], Mapping[str, Any]]]
RESULTS = Path(__file__).parents[1] / "docs" / "results"


def arguments(doc: str | None, **defaults: Any) -> argparse.Namespace:
    """The options of a script: one for each default, and of its type; tuples are lists with commas, False a flag.

    A tuple of texts has all that are allowed. A type stands for itself, without a default. Every script has `--save
    NAME`, which keeps its tables for the pages as docs/results/NAME.json; with `replicates`, `--seed` and `seeds`.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if "replicates" in defaults:
        defaults = {"seed": 0, **defaults}
    for name, default in {"save": str, **defaults}.items():
        flag = "--" + name.replace("_", "-")
        if default is False:
            parser.add_argument(flag, action="store_true")
        elif isinstance(default, tuple):
            parser.add_argument(flag, type=partial(_several, default), default=[*default])
        elif isinstance(default, type):
            parser.add_argument(flag, type=default)
        else:
            parser.add_argument(flag, type=type(default), default=default)
    asked = parser.parse_args()
    if "replicates" in defaults:
        asked.seeds = range(asked.seed, asked.seed + asked.replicates)
    asked.tables = {}
    warnings.simplefilter("ignore")
    return asked


def _several(default: tuple[Any, ...], text: str) -> list[Any]:
    found = [type(default[0])(part) for part in text.split(",")]
    if wrong := [value for value in found if isinstance(value, str) and value not in default]:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is none of {', '.join(default)}")
    return found


def averages(one: Callable[[int], Mapping[str, Any]], seeds: Iterable[int], errors: Sequence[str] = ()) -> Row:
    """The mean of each measure over the seeds, without those that a data set does not have; and of some, its error."""
    found = [one(seed) for seed in seeds]
    row: Row = {}
    for name in dict.fromkeys(name for each in found for name in each):
        x = np.array([each.get(name, np.nan) for each in found], dtype=float)
        row[name] = float(np.nanmean(x)) if np.isfinite(x).any() else np.nan
        if name in errors:
            n = np.isfinite(x).sum()
            row[f"{name} (s.e.)"] = float(np.nanstd(x, ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    return row


def cases(one: Callable[..., Mapping[str, Any]], **levels: Iterable[Any]) -> list[Case]:
    """A case for each combination of levels, which are the first arguments of `one`; _ in a name is a space."""
    names = [name.replace("_", " ") for name in levels]
    return [(dict(zip(names, each, strict=True)), partial(one, *each)) for each in product(*levels.values())]


def study(title: str, cases: Iterable[Case], asked: argparse.Namespace, errors: Sequence[str] = ()) -> list[Row]:
    """A row for each case: its name beside the averages over replicates, with standard errors of those in `errors`."""
    rows = (labels | averages(one, asked.seeds, errors) for labels, one in cases)
    return show(f"{title}: {asked.replicates} replicates", rows, asked)


def show(title: str, rows: Iterable[Row], asked: argparse.Namespace | None = None) -> list[Row]:
    """Print the rows as a table when all are there (each is said to a terminal as it comes), and keep them as JSON."""
    found = []
    for row in rows:
        found.append(row)
        if sys.stderr.isatty():
            print(*(_cell(value) for value in row.values()), file=sys.stderr)
    print(f"\n{title}\n\n{table(found)}", flush=True)
    if asked is not None:
        save(title, found, asked)
    return found


def save(title: str, rows: Iterable[Row], asked: argparse.Namespace) -> None:
    """Keep the rows as JSON, if that was asked for. What a run may go on from is no part of its command."""
    if not asked.save:
        return
    asked.tables[title] = [{name: _plain(value) for name, value in row.items()} for row in rows]
    words = [word for word in sys.argv[1:] if word not in ("--save", asked.save, "--go-on")]
    content = {"command": f"python benchmarks/{shlex.join([Path(sys.argv[0]).name, *words])}", "tables": asked.tables}
    (RESULTS / f"{asked.save}.json").write_text(json.dumps(content, indent=1) + "\n")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A Markdown table of all columns that a row has."""
    head = list(dict.fromkeys(name for row in rows for name in row))
    cells = [head] + [[_cell(row.get(name, "")) for name in head] for row in rows]
    widths = [max(3, *(len(line[k]) for line in cells)) for k in range(len(head))]
    lines = [" | ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    lines.insert(1, " | ".join("-" * (width - 1) + ":" for width in widths))
    return "\n".join(f"| {line} |" for line in lines)


def _plain(value: Any) -> Any:
    """As JSON has it: six digits of a number are more than a study can tell."""
    if isinstance(value, float | np.floating):
        return None if np.isnan(value) else float(f"{value:.6g}")
    return value.item() if isinstance(value, np.generic) else value


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "-" if np.isnan(value) else f"{value:.3f}" if value == 0 or 0.001 <= abs(value) < 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Cost:
    """The least wall and CPU seconds over the repeats, and the most memory above what was there before, in bytes."""

    wall: float
    cpu: float
    memory: int


def cost(work: Callable[[], Any], repeats: int = 3) -> Cost:
    """Do the work a few times. Machines are shared and noisy: the least time says most about the work itself."""
    return in_turns({"": work}, repeats)[""]


def in_turns(works: Mapping[str, Callable[[], Any]], repeats: int = 3) -> dict[str, Cost]:
    """What each costs, done by turns, so that a machine that is busy for a while is so for all of them."""
    found: dict[str, list[Cost]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            gc.collect()
            before = _memory("VmRSS")
            with contextlib.suppress(OSError):  # sets the peak back to what is resident now
                Path("/proc/self/clear_refs").write_text("5")
            wall, cpu = time.perf_counter(), time.process_time()
            result = work()
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            found[name].append(Cost(wall, cpu, _memory("VmHWM") - before))
            del result
    return {
        name: Cost(min(c.wall for c in costs), min(c.cpu for c in costs), max(c.memory for c in costs))
        for name, costs in found.items()
    }


def command(argv: Sequence[str | Path]) -> Cost:
    """The same of a command in a process of its own; its memory is all that it had."""
    start = time.perf_counter()
    process = subprocess.Popen([*map(str, argv)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, argv))} failed")
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def _memory(field: str) -> int:
    """A memory figure of this process in bytes, as Linux keeps it; 0 elsewhere."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024
