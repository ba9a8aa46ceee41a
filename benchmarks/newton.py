"""Newton steps: how exact their probabilities are, where they end on data that misfit, and what they cost.

    python benchmarks/newton.py [--parts series,misfit,cost,pass] [--data DIR] [--responses 1000000] [--pictures DIR]

series   largest and signed error of P(X = 1 | score) by the Edgeworth series, against the exact contour sum
misfit   distance from exact CML in its standard errors, of the chain alone and of the default; items out of order
         with their shares of right answers. Simulated tables, and language models x prompts with --data. A prior
         moves items with few answers on purpose, so the default and the chain are compared without one
cost     CPU of a whole fit with standard errors over that of the chain alone, and (at the size of --responses) the
         distance of a sample of items from exact CML, by the exact score
pass     one pass over the answers, X0' (w * (X1 v)): how many a fit makes, what one costs, what a compiled kernel would
         gain. "scipy" is the pass as it is: right answers gathered, wrong scattered. "gathered" has the wrong answers a
         second time, by item. "C" is a plain loop over the same arrays, compiled by `cc -O3 -march=native` where there
         is one. Then the CPU of a whole fit with standard errors, and what would be left of it with passes as in C
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import harness
from spectral_irt import ConditionalRasch, Responses, SpectralRasch, simulate
from spectral_irt.chain.operator import Part, flow_in, flow_out, total_rates
from spectral_irt.chain.weights import ABILITY
from spectral_irt.conditional.binary_rows import evaluate
from spectral_irt.conditional.exact import Contour, tilt
from spectral_irt.conditional.given_score import conditional_probabilities
from spectral_irt.conditional.series_binary import fill_given_score
from spectral_irt.data.block import Block
from spectral_irt.data.design import evidence, spread_marks
from spectral_irt.engine import LocalEngine
from spectral_irt.model import prox, sigmoid

BANDS = ((1, 2), (2, 4), (4, 10), (10, 40), (40, 1000))


def series(asked: Namespace) -> None:
    rng = np.random.default_rng(1)
    errors: dict[tuple[int, int], list[np.ndarray]] = {band: [] for band in BANDS}
    signed: dict[tuple[int, int], list[tuple[np.ndarray, np.ndarray]]] = {band: [] for band in BANDS}
    for n in (8, 12, 20, 40, 80, 200, 500):
        for sd in (0.7, 1.0, 2.0):
            people = 1000 if n < 100 else 300
            b, theta = rng.normal(0, sd, (n, people)), rng.normal(0, 1.2, people)
            s = (rng.random((n, people)) < sigmoid(theta - b)).sum(axis=0)
            b, s = b[:, (s > 0) & (s < n)], s[(s > 0) & (s < n)]
            counts = np.full(len(s), n)
            p = tilt(b[None], s, counts)[1][1]
            information = (p * (1 - p)).sum(axis=0)
            start = prox(b.mean(axis=0), b.var(axis=0), np.log(s / (n - s)))
            found, link = np.empty(b.size), np.empty(b.size)
            indptr = np.arange(0, b.size + 1, n, dtype=np.int32)
            with np.errstate(all="ignore"):
                fill_given_score(indptr, np.arange(b.size, dtype=np.int32), s, start, b.T.ravel(), found, link)
            error = found.reshape(-1, n).T - Contour.of(b[None], s, counts).given.p[0]
            for band in BANDS:
                inside = (information >= band[0]) & (information < band[1])
                errors[band].append(np.abs(error[:, inside]).ravel())
                signed[band].append(
                    (np.digitize(p[:, inside], [0.1, 0.3, 0.5, 0.7, 0.9]).ravel(), error[:, inside].ravel())
                )
    rows = []
    for band in BANDS:
        sizes = np.concatenate(errors[band])
        kinds, values = (np.concatenate(each) for each in zip(*signed[band], strict=True))
        worst = max(abs(values[kinds == k].mean()) for k in np.unique(kinds))
        rows.append({"V": f"{band[0]} to {band[1]}", "largest": sizes.max(), "mean with sign, at most": worst})
    harness.show("series: error of P(X = 1 | score) by a person's information V", rows, asked)


def misfitting(seed: int, n: int = 4000, m: int = 40, slope: float = 0.35, spread: float = 1.5) -> np.ndarray:
    """Two unrelated abilities, one for the easy and one for the hard items, and slopes that follow difficulty."""
    rng = np.random.default_rng(seed)
    beta = np.linspace(-2, 2, m)
    abilities = spread * rng.normal(size=(n, 2))[:, (np.arange(m) >= m // 2).astype(int)]
    return (rng.random((n, m)) < sigmoid(np.exp(slope * beta) * (abilities - beta))).astype(float)


def misfit(asked: Namespace) -> None:
    tables = {
        "two abilities, steeper where harder": misfitting(1),
        "two abilities, flatter where harder": misfitting(2, slope=-0.5),
        "two abilities, much steeper where harder": misfitting(3, m=60, slope=0.8, spread=2.0),
    }
    found = {name: Responses.from_wide(table) for name, table in tables.items()}
    if asked.data is not None:
        found |= real_tables(asked.data)
    rows = []
    for name, responses in found.items():
        exact = ConditionalRasch(se="sandwich").fit(responses)
        fits = {
            "chain alone": SpectralRasch(refine=False, regularization=0),
            "default": SpectralRasch(regularization=0),
            "with its prior": SpectralRasch(),
        }
        share = responses.item_scores / responses.item_counts
        row: harness.Row = {"data": name, "people": responses.n_persons, "items": responses.n_items}
        for label, estimator in fits.items():
            fit = estimator.fit(responses)
            known = np.isfinite(exact.difficulty_) & np.isfinite(fit.difficulty_)
            distance = np.max(np.abs(fit.difficulty_ - exact.difficulty_)[known] / exact.se_[known])
            order = np.flatnonzero(known)[np.lexsort((fit.difficulty_[known], -share[known]))]
            wrong = int(np.sum(np.diff(fit.difficulty_[order]) < -1e-5))
            row |= {label: distance, f"{label}: out of order": f"{wrong} of {len(order) - 1}"}
        rows.append(row)
    harness.show(
        "misfit: largest distance from exact CML in its standard errors; neighbors by share out of order", rows, asked
    )
    if asked.pictures is not None:
        picture(found, asked.pictures)


def real_tables(data: Path) -> dict[str, Responses]:
    import json

    import polars as pl

    def table(name: str) -> Responses:
        frame = pl.read_parquet(data / f"{name}.parquet")
        return Responses.from_long(*(frame[column].to_numpy() for column in ("person", "item", "response")))

    out = {"metabench_gsm8k": table("metabench_gsm8k")}
    whole = table("nlu_test_sets")
    places = whole.items.astype(int)
    for name, first, last, *_ in json.loads((data / "blocks.json").read_text())["nlu_test_sets"]["blocks"][:6]:
        out[f"nlu_test_sets, {name}"] = whole.take_items((places >= first) & (places <= last))
    return out


def picture(found: dict[str, Responses], pictures: Path) -> None:
    """Chain and default against the share of right answers, for the table where they differ most."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    responses = found["two abilities, much steeper where harder"]
    share = responses.item_scores / responses.item_counts
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    FigureCanvasSVG(figure)
    for ax, (label, estimator) in zip(
        figure.subplots(1, 2, sharey=True),
        {"the chain alone": SpectralRasch(refine=False), "landed": SpectralRasch()}.items(),
        strict=True,
    ):
        fit = estimator.fit(responses)
        order = np.argsort(share)
        ax.errorbar(share[order], fit.difficulty_[order], 1.96 * fit.se_[order], fmt="o", ms=3, lw=0.8, color="#0072B2")
        ax.set_title(label)
        ax.set_xlabel("share of right answers")
    figure.axes[0].set_ylabel("difficulty, logits")
    pictures.mkdir(parents=True, exist_ok=True)
    figure.savefig(pictures / "landing.svg", metadata={"Date": None})


def cost(asked: Namespace) -> None:
    n = asked.responses
    data = simulate.rasch(n // 50, 5000, design="popularity", n_responses=n, seed=3).responses
    works = {"chain alone": lambda: SpectralRasch(refine=False).fit(data), "default": lambda: SpectralRasch().fit(data)}
    spent = {label: found.cpu for label, found in harness.in_turns(works).items()}
    rows = [{"fit": label, "CPU s": c, "ratio": c / spent["chain alone"]} for label, c in spent.items()]
    harness.show(f"cost: {asked.responses:,} responses, popularity design, whole fit with standard errors", rows, asked)
    plain = SpectralRasch(regularization=0).fit(data)
    known = np.isfinite(plain.difficulty_)
    rest = data if known.all() else data.take_items(known)
    score, information = rest.sum(_exact_score, plain.difficulty_[known])
    print(
        f"  without a prior, an exact Newton step by each item's own information would move no item by more than "
        f"{np.max(np.abs(score) / np.sqrt(information)):.3f} standard errors"
    )


def _exact_score(block: Block, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    p = conditional_probabilities(block, beta)
    right = block.right()
    score = np.bincount(block.items, weights=p - right, minlength=len(beta))
    return score, np.bincount(block.items, weights=p * (1 - p), minlength=len(beta))


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


def the_pass(asked: Namespace) -> None:
    """One thread, CPU seconds, the least of several."""
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
    harness.show("pass: one over all answers", rows, asked)
    best = cost.get("C", cost["gathered"])
    left = whole - sum(counts.values()) * (cost["scipy"] - best)
    print(f"a whole fit: {whole:.2f} s, with passes as fast as the fastest {left:.2f} s: {whole / left:.2f} times")


PARTS = {"series": series, "misfit": misfit, "cost": cost, "pass": the_pass}

if __name__ == "__main__":
    asked = harness.arguments(__doc__, parts=tuple(PARTS), data=Path, responses=1_000_000, pictures=Path)
    for part in asked.parts:
        PARTS[part](asked)
