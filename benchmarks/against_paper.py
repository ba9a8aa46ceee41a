"""The same estimate by explicit pair counts, as the paper's program does it, and matrix-free: one run, one machine.

    python benchmarks/against_paper.py [--responses N]

Simulated data of the size of ML-1M: 1 M responses, 6,040 people, 3,700 items. "dense product" is the printed program:
a dense items x persons times persons x items product for the pair counts, then power iteration on the row-normalized
matrix. "sparse pairs" forms the same counts from sparse matrices, the best one can do with an explicit matrix.
"""

from __future__ import annotations

import sys

import numpy as np

from measure import cost, table
from spectral_irt import SpectralRasch, simulate
from spectral_irt.chain.paper import algorithm_2, pair_counts
from spectral_irt.data import Responses


def printed_program(x: np.ma.MaskedArray) -> np.ndarray:
    """The steps of the paper's listing: masked products, a row-stochastic matrix, power iteration to 1e-6."""
    right = x.filled(0.0)
    wrong = (1.0 - x).filled(0.0)
    y = right.T @ wrong
    np.fill_diagonal(y, 0)
    y = np.where((y != 0) | (y.T != 0), y + 1.0, y)
    return algorithm_2(y, tol=1e-6, stop="step").difficulty


def fresh(responses: Responses) -> Responses:
    """The same responses with nothing prepared: every run pays for its own set-up."""
    return responses.take_persons(np.arange(responses.n_persons))


def main() -> None:
    n = int(sys.argv[sys.argv.index("--responses") + 1]) if "--responses" in sys.argv else 1_000_000
    data = simulate.rasch(6_040, 3_700, design="popularity", n_responses=n, seed=1)
    responses = data.responses
    dense = responses.to_dense()
    masked = np.ma.masked_array(np.nan_to_num(dense), np.isnan(dense))

    ways = {
        "dense product (the printed program)": cost(lambda: printed_program(masked), repeats=1),
        "sparse pairs, then the chain": cost(lambda: algorithm_2(pair_counts(fresh(responses)) + 0.0), repeats=1),
        "matrix-free, pairs": cost(lambda: SpectralRasch(weighting="pairs", se="none").fit(fresh(responses))),
        "matrix-free, ability": cost(lambda: SpectralRasch(se="none").fit(fresh(responses))),
        "matrix-free, ability, with standard errors": cost(lambda: SpectralRasch().fit(fresh(responses))),
    }
    base = ways["matrix-free, ability, with standard errors"]
    rows: list[list[object]] = [
        [name, c.wall, c.cpu, c.memory / 1e6, c.wall / base.wall, c.cpu / base.cpu] for name, c in ways.items()
    ]
    print(f"{responses!r}")
    print(table(["way", "wall s", "CPU s", "MB", "x wall", "x CPU"], rows))


if __name__ == "__main__":
    main()
