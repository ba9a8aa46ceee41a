"""Time and memory of one piece of work, measured in this process."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Cost:
    """The least wall and CPU seconds over the repeats, and the most memory above what was there before, in bytes."""

    wall: float
    cpu: float
    memory: int


def cost(work: Callable[[], Any], repeats: int = 3) -> Cost:
    """Do the work a few times. Machines are shared and noisy: the least time says most about the work itself."""
    wall, cpu, memory = [], [], 0
    for _ in range(repeats):
        gc.collect()
        before = _memory("VmRSS")
        _forget_peak()
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        result = work()
        cpu.append(time.process_time() - cpu_start)
        wall.append(time.perf_counter() - wall_start)
        memory = max(memory, _memory("VmHWM") - before)
        del result
    return Cost(min(wall), min(cpu), memory)


def _memory(field: str) -> int:
    """A memory figure of this process in bytes, as Linux keeps it; 0 elsewhere."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def _forget_peak() -> None:
    """Set the peak of resident memory back to what is resident now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def table(head: list[str], rows: list[list[object]]) -> str:
    """A plain table, columns right-aligned."""
    cells = [head] + [[f"{x:.3g}" if isinstance(x, float) else str(x) for x in row] for row in rows]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
