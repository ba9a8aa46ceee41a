"""What a fit costs in a running process, up to 20 million answers, and beside other estimators.

    python benchmarks/speed.py [--parts scale,rivals,reading] [--quick] [--responses 1000000]

scale    1 M, 5 M and 20 M popularity-skewed responses (with --quick the first): one pass over them, the whole fit in
         units of that pass, memory, and the error of three weightings against that of known abilities (the floor)
rivals   every estimator on the same data, with its standard errors (not the reciprocal methods, which need every pair
         of items to have met); and conditional maximum likelihood where other programs fail
reading  2.4 M and 12 M rows of a Parquet file (with --quick the first), one for each answer and in no order, of two
         and of five categories: CPU, and bytes a row at most beyond the responses

CPU is of all threads together. `limits.py` has whole commands, up to a billion responses.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from argparse import Namespace
from itertools import product

import numpy as np
import polars as pl

import harness
from spectral_irt import ConditionalRasch, SpectralRasch, read, simulate
from spectral_irt.chain.operator import PERSONS, ItemChain
from spectral_irt.data import Block, Responses
from spectral_irt.estimators.by_name import METHODS, make_estimator

SIZES = {"1 M": (1_000_000, 6_040, 3_900), "5 M": (5_000_000, 34_500, 12_000), "20 M": (20_000_000, 138_000, 27_000)}
WEIGHTINGS = {"pairs": "pairs (paper)", "persons": "persons", "ability": "ability"}


def fresh(packed: Responses) -> Responses:
    """The same packed answers, of which nothing is known yet: every run pays for its own set-up."""
    blocks = tuple(Block(block.indptr, block.split, block.items) for block in packed.blocks)
    return Responses(blocks, packed.items, packed.persons)


def alone(what: str) -> dict[str, float]:
    """A size or a file in a process of its own."""
    run = [sys.executable, __file__, "--one", what]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    return json.loads(said.splitlines()[-1])


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
    rows = [{"responses": name, **alone(name)} for name in list(SIZES)[: 1 if asked.quick else None]]
    cost = ("responses", "pass ms", "fit s", "fit CPU s", "fit / pass (CPU)", "bytes / response")
    harness.show("Whole fit, ability weights and standard errors", ({k: row[k] for k in cost} for row in rows), asked)
    if len(rows) > 1:
        growth = np.log(rows[-1]["fit CPU s"] / rows[0]["fit CPU s"]) / np.log(20)
        print(f"\nCPU time grows as responses^{growth:.2f} from 1 M to 20 M")
    rest = ({"responses": row["responses"]} | {k: row[k] for k in row if k not in cost} for row in rows)
    harness.show("Error over the floor sqrt(mean(1 / sum p q)), and share of 95% intervals that cover", rest, asked)


def rivals(asked: Namespace) -> None:
    data = simulate.rasch(6_040, 3_700, design="popularity", n_responses=asked.responses, seed=1)  # as MovieLens 1M
    rows, fits = [], []
    for name in METHODS:
        if name not in ("choppin", "eigenvector"):
            spent = harness.cost(lambda name=name: fits.append(make_estimator(name, {}).fit(fresh(data.responses))), 1)
            error = fits[-1].difficulty_ - data.difficulty
            found = {"iterations": fits[-1].n_iter_, "items": int(np.isfinite(error).sum())}
            rmse = float(np.sqrt(np.nanmean(error**2))) / data.floor_rmse()
            costs = {"wall s": spent.wall, "CPU s": spent.cpu, "MB": spent.memory / 1e6}
            rows.append({"estimator": name, **costs, **found, "rmse / floor": rmse})
    harness.show(f"{data.responses!r}", rows, asked)
    rows = []
    for people, items, share in ((2000, 1500, 1.0), (20_000, 2000, 0.05)):
        seen = {"design": "sampled", "p": share} if share < 1 else {}
        title = f"{items:,} items x {people:,} people, {f'{share:.0%} seen' if seen else 'complete'}"
        responses = simulate.rasch(people, items, seed=1, **seen).responses
        spent = harness.cost(lambda responses=responses: fits.append(ConditionalRasch().fit(responses)), 1)
        found = {"passes": fits[-1].n_iter_, "largest gradient": float(fits[-1].residual_)}
        rows.append({"data": title, "wall s": spent.wall, "CPU s": spent.cpu, **found})
    harness.show("Conditional maximum likelihood, exact", rows, asked)


def one_file(path: str) -> dict[str, float]:
    """What reading a file costs, after another was read: libraries take their memory with the first."""
    small = pl.DataFrame({"person": [1, 1, 2, 2], "item": list("abab"), "response": [0, 1, 1, 0]})
    small.write_parquet(f"{path}.small")
    read(f"{path}.small")
    found: list[Responses] = []
    spent = harness.cost(lambda: found.append(read(path)), 1)
    held = sum(block.indptr.nbytes + block.split.nbytes + block.items.nbytes for block in found[0].blocks)
    rows = found[0].n_responses
    return {"CPU s": spent.cpu, "bytes of a row kept": held / rows, "bytes beyond": (spent.memory - held) / rows}


def reading(asked: Namespace) -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for people, categories in product((60_000,) if asked.quick else (60_000, 300_000), (2, 5)):
            sizes = {"categories": categories, "design": "sampled", "p": 0.1, "seed": 1}
            person, item, answer = simulate.partial_credit(people, 400, **sizes).responses.answers()
            names = pl.Series([f"q{k}" for k in range(400)]).gather(item)
            table = pl.DataFrame({"person": person, "item": names, "response": answer.astype(np.int8)})
            path = f"{folder}/{people}-{categories}.parquet"
            table.sample(fraction=1, shuffle=True, seed=1).write_parquet(path)
            rows.append({"rows": len(table), "categories": categories, **alone(path)})
    harness.show("Reading a long Parquet file, rows in no order", rows, asked)


PARTS = {"scale": scale, "rivals": rivals, "reading": reading}

if __name__ == "__main__":
    asked = harness.arguments(__doc__, parts=tuple(PARTS), quick=False, responses=1_000_000, one=str)
    if asked.one:
        print(json.dumps(one_size(asked.one) if asked.one in SIZES else one_file(asked.one)))
    else:
        for part in asked.parts:
            PARTS[part](asked)
