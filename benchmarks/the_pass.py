"""One pass over the answers, X0' (w * (X1 v)): how many a fit makes, what one costs, what a compiled kernel would gain.

    python benchmarks/the_pass.py [--responses 5000000]

One thread, CPU seconds, the least of several. "scipy" is the pass as it is: right answers gathered, wrong scattered.
"gathered" has the wrong answers a second time, by item, so that both halves gather. "C" is a plain loop in C over the
same arrays, compiled by `cc -O3 -march=native` where there is one, factors and all. The last line is the CPU of a whole
fit with standard errors, and what would be left of it if every pass cost what it costs in C.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import harness
from spectral_irt import SpectralRasch, simulate
from spectral_irt.chain.operator import Part, flow_in, flow_out, total_rates
from spectral_irt.chain.weights import ABILITY
from spectral_irt.conditional.binary_rows import evaluate
from spectral_irt.data.design import evidence, spread_marks
from spectral_irt.engine import LocalEngine

LOOP = """
void pass(long people, const int *right, const int *right_items, const double *a, const int *wrong,
          const int *wrong_items, const double *b, const double *weight, const double *v, double *out) {
    for (long l = 0; l < people; l++) {
        double won = 0;
        for (int k = right[l]; k < right[l + 1]; k++) won += a[k] * v[right_items[k]];
        won *= weight[l];
        for (int k = wrong[l]; k < wrong[l + 1]; k++) out[wrong_items[k]] += b[k] * won;
    }
}
"""
PASSES = {flow_in: "inflow", flow_out: "outflow", total_rates: "rates", evidence: "evidence", spread_marks: "links"}


class Counting(LocalEngine):
    """One thread that counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__(1)
        self.asked: Counter[Any] = Counter()

    def map(self, kernel: Any, parts: Any, *args: Any, each: Any = ()) -> Any:
        self.asked[kernel] += 1
        return super().map(kernel, parts, *args, each=each)


def compiled() -> Any:
    """The loop in C, or None where there is no compiler."""
    if shutil.which("cc") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "pass.c"), Path(folder, "pass.so")
        source.write_text(LOOP)
        subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library))["pass"]


def in_c(loop: Any, part: Part, v: Any) -> Any:
    out = np.zeros(len(v))
    right, wrong = part.right, part.wrong
    arrays = (right.indptr, right.indices, right.data, wrong.indptr, wrong.indices, wrong.data, part.weight, v, out)
    loop(ctypes.c_long(len(part.weight)), *(ctypes.c_void_p(each.ctypes.data) for each in arrays))
    return out


def main() -> None:
    asked = harness.arguments(__doc__, responses=5_000_000)
    size = asked.responses
    people, items = size // 145, int(1.35 * size**0.5)
    data = simulate.rasch(people, items, design="popularity", n_responses=size, seed=1).responses
    engine = Counting()
    whole = harness.cost(lambda: SpectralRasch().fit(data.using(engine)), 1).cpu
    counts = {name: engine.asked[kernel] for kernel, name in PASSES.items()}
    print(f"{data.n_responses:,} answers, {people:,} people, {items:,} items")
    print("passes before the Newton steps:", ", ".join(f"{count} {name}" for name, count in counts.items()), end="; ")
    print(f"{sum(counts.values())} in all; then {engine.asked[evaluate]} evaluations of the conditional likelihood")

    beta = np.linspace(-2, 2, items)
    parts = list(data.prepare(Part.under, ABILITY, beta, data.thresholds).parts)
    v = np.exp(beta)
    by_item = [part.wrong.tocsc().T.tocsr() for part in parts]  # wrong answers by item

    def gathered() -> Any:
        return sum(turned @ ((part.right @ v) * part.weight) for part, turned in zip(parts, by_item, strict=True))

    ways: dict[str, Callable[[], Any]] = {
        "scipy": lambda: sum(flow_in(part, v) for part in parts),
        "gathered": gathered,
    }
    loop = compiled()
    if loop is not None:
        ways["C"] = lambda: sum(in_c(loop, part, v) for part in parts)
    expected = ways["scipy"]()
    for way in ways.values():
        np.testing.assert_allclose(way(), expected, rtol=1e-9)
    cost = {name: spent.cpu for name, spent in harness.in_turns(ways, 5).items()}
    rows = [{"a pass": name, "ms": 1e3 * c, "ns per answer": 1e9 * c / data.n_responses} for name, c in cost.items()]
    harness.show("One pass", rows, asked)
    best = cost.get("C", cost["gathered"])
    left = whole - sum(counts.values()) * (cost["scipy"] - best)
    print(f"a whole fit: {whole:.2f} s, with passes as fast as the fastest {left:.2f} s: {whole / left:.2f} times")


if __name__ == "__main__":
    main()
