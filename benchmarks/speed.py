"""What a fit costs in a running process, from ordinary tests to 20 million answers, and beside other estimators.

    python benchmarks/speed.py [--parts small,scale,paper,rivals] [--quick] [--responses 1000000]

small    from a numpy array to difficulties with standard errors: 50 items x 100,000 people and 100 x 5,000, complete;
         500 x 5,000 with a fifth of the cells seen. "first" is the first fit of the process; "one by one" is what a fit
         takes when people who share their items are taken one by one all the same
scale    1 M, 5 M and 20 M popularity-skewed responses (with --quick the first): one pass over them, the whole fit in
         units of that pass, memory, and the error of three weightings against the floor that known abilities would
         give. Each size runs in a process of its own
paper    data of the size of ML-1M: "dense product" is the printed program, an items x persons times persons x items
         product for the pair counts, then power iteration; "sparse pairs" forms the same counts from sparse matrices
rivals   every estimator on the same data, with its standard errors; the reciprocal methods, which need every pair of
         items to have met, are left out. And conditional maximum likelihood where other programs fail

CPU is of all threads together. `jobs.py` has whole commands, `limits.py` up to a billion responses.
"""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from typing import Any

import numpy as np

import draws
import harness
from spectral_irt import ConditionalRasch, SpectralRasch, simulate
from spectral_irt.chain.operator import ItemChain
from spectral_irt.chain.paper import algorithm_2, pair_counts
from spectral_irt.chain.weights import PERSONS
from spectral_irt.data import Block, Responses
from spectral_irt.estimators.by_name import METHODS, make_estimator

SIZES = {"1 M": (1_000_000, 6_040, 3_900), "5 M": (5_000_000, 34_500, 12_000), "20 M": (20_000_000, 138_000, 27_000)}
WEIGHTINGS = {"pairs": "pairs (paper)", "persons": "persons", "ability": "ability"}


def fresh(packed: Responses, *, shared: bool = True) -> Responses:
    """The same packed answers, of which nothing is known yet: every run pays for its own set-up."""
    blocks = tuple(Block(block.indptr, block.split, block.items) for block in packed.blocks)
    again = Responses(blocks, packed.items, packed.persons)
    if not shared:
        vars(again)["shared"] = None
    return again


def small(asked: Namespace) -> None:
    rows = []
    for n_items, n_people, seen in ((50, 100_000, 1.0), (100, 5_000, 1.0), (500, 5_000, 0.2)):
        rng = np.random.default_rng(1)
        x: Any = draws.answers(rng, rng.normal(size=(n_people, 1)) - np.linspace(-2, 2, n_items)).astype(np.int8)
        x = x if seen == 1 else np.where(rng.random(x.shape) < seen, x, np.nan)
        first = harness.cost(lambda x=x: SpectralRasch().fit(x), 1)
        packed = Responses.from_wide(x)
        works = {
            "array, then": lambda x=x: SpectralRasch().fit(x),
            "packed": lambda packed=packed: SpectralRasch().fit(fresh(packed)),
            "one by one": lambda packed=packed: SpectralRasch().fit(fresh(packed, shared=False)),
        }
        rest = {name: spent.cpu for name, spent in harness.in_turns(works, 5).items()}
        rows.append(
            {"items x people": f"{n_items} x {n_people:,}", "seen": f"{seen:.0%}", "array, first": first.cpu, **rest}
        )
    harness.show("CPU seconds of a fit", rows, asked)


def one_size(name: str) -> dict[str, float]:
    n_responses, n_persons, n_items = SIZES[name]
    data = simulate.rasch(n_persons, n_items, design="popularity", n_responses=n_responses, seed=1)
    fitted = harness.cost(lambda: SpectralRasch().fit(data.responses), 1)  # first, while nothing is prepared yet
    again = harness.cost(lambda: SpectralRasch().fit(data.responses))
    chain, ones = ItemChain.under(data.responses, PERSONS), np.ones(n_items)
    single = harness.cost(lambda: [chain.inflow(ones) for _ in range(10)])
    out = {
        "pass ms": 100 * single.wall,
        "fit s": min(fitted.wall, again.wall),
        "fit CPU s": min(fitted.cpu, again.cpu),
        "fit / pass (CPU)": 10 * min(fitted.cpu, again.cpu) / single.cpu,
        "bytes / response": fitted.memory / n_responses,
        "floor": data.floor_rmse(),
    }
    for weighting, said in WEIGHTINGS.items():
        fit = SpectralRasch(weighting=weighting).fit(data.responses)
        error = fit.difficulty_ - data.difficulty
        out[f"rmse / floor, {said}"] = float(np.sqrt(np.nanmean(error**2))) / data.floor_rmse()
        out[f"covered, {said}"] = float(np.nanmean(np.abs(error) < 1.96 * fit.se_))
    return out


def scale(asked: Namespace) -> None:
    rows = []
    for name in list(SIZES)[: 1 if asked.quick else None]:
        run = [sys.executable, __file__, "--one", name]
        said = subprocess.run(run, capture_output=True, text=True, check=True).stdout
        rows.append({"responses": name, **json.loads(said.splitlines()[-1])})
    cost = ("responses", "pass ms", "fit s", "fit CPU s", "fit / pass (CPU)", "bytes / response")
    harness.show("Whole fit, ability weights and standard errors", ({k: row[k] for k in cost} for row in rows), asked)
    if len(rows) > 1:
        growth = np.log(rows[-1]["fit CPU s"] / rows[0]["fit CPU s"]) / np.log(20)
        print(f"\nCPU time grows as responses^{growth:.2f} from 1 M to 20 M")
    rest = ({"responses": row["responses"]} | {k: row[k] for k in row if k not in cost} for row in rows)
    harness.show("Error over the floor sqrt(mean(1 / sum p q)), and share of 95% intervals that cover", rest, asked)


def of_ml_1m(asked: Namespace) -> Any:
    return simulate.rasch(6_040, 3_700, design="popularity", n_responses=asked.responses, seed=1)


def printed_program(x: np.ma.MaskedArray) -> np.ndarray:
    """The steps of the paper's listing: masked products, a row-stochastic matrix, power iteration to 1e-6."""
    y = x.filled(0.0).T @ (1.0 - x).filled(0.0)
    np.fill_diagonal(y, 0)
    y = np.where((y != 0) | (y.T != 0), y + 1.0, y)
    return algorithm_2(y, tol=1e-6, stop="step").difficulty


def paper(asked: Namespace) -> None:
    responses = of_ml_1m(asked).responses
    dense = responses.to_dense()
    masked = np.ma.masked_array(np.nan_to_num(dense), np.isnan(dense))
    ways = harness.in_turns(
        {
            "dense product (the printed program)": lambda: printed_program(masked),
            "sparse pairs, then the chain": lambda: algorithm_2(pair_counts(fresh(responses)) + 0.0),
            "matrix-free, pairs": lambda: SpectralRasch(weighting="pairs", se="none").fit(fresh(responses)),
            "matrix-free, ability": lambda: SpectralRasch(se="none").fit(fresh(responses)),
            "matrix-free, ability, with standard errors": lambda: SpectralRasch().fit(fresh(responses)),
        },
        repeats=1 if responses.n_responses > 500_000 else 3,
    )
    base = ways["matrix-free, ability, with standard errors"]
    rows = [
        {"way": name, **costs(c), "x wall": c.wall / base.wall, "x CPU": c.cpu / base.cpu} for name, c in ways.items()
    ]
    harness.show(f"{responses!r}", rows, asked)


def costs(spent: harness.Cost) -> dict[str, float]:
    return {"wall s": spent.wall, "CPU s": spent.cpu, "MB": spent.memory / 1e6}


def rivals(asked: Namespace) -> None:
    data, rows, fits = of_ml_1m(asked), [], []
    for name in METHODS:
        if name not in ("choppin", "eigenvector"):
            spent = harness.cost(lambda name=name: fits.append(make_estimator(name, {}).fit(fresh(data.responses))), 1)
            error = fits[-1].difficulty_ - data.difficulty
            found = {"iterations": fits[-1].n_iter_, "items": int(np.isfinite(error).sum())}
            rmse = float(np.sqrt(np.nanmean(error**2))) / data.floor_rmse()
            rows.append({"estimator": name, **costs(spent), **found, "rmse / floor": rmse})
    harness.show(f"{data.responses!r}", rows, asked)
    rows = []
    for title, options in {
        "1,500 items x 2,000 people, complete": {"n_persons": 2000, "n_items": 1500},
        "2,000 items x 20,000 people, 5% seen": {"n_persons": 20_000, "n_items": 2000, "design": "sampled", "p": 0.05},
    }.items():
        responses = simulate.rasch(**options, seed=1).responses
        spent = harness.cost(lambda responses=responses: fits.append(ConditionalRasch().fit(responses)), 1)
        found = {"passes": fits[-1].n_iter_, "largest gradient": float(fits[-1].residual_)}
        rows.append({"data": title, "wall s": spent.wall, "CPU s": spent.cpu, **found})
    harness.show("Conditional maximum likelihood, exact", rows, asked)


PARTS = {"small": small, "scale": scale, "paper": paper, "rivals": rivals}

if __name__ == "__main__":
    asked = harness.arguments(__doc__, parts=tuple(PARTS), quick=False, responses=1_000_000, one=str)
    if asked.one:
        print(json.dumps(one_size(asked.one)))
    else:
        for part in asked.parts:
            PARTS[part](asked)
