"""Votes about two contestants: do intervals and ranks hold, and what does a board cost?

    python benchmarks/pairs.py [--parts intervals,cost] [--replicates 200]

intervals: 12 contestants (abilities normal with the given standard deviation), votes with ties and an advantage of
position. Voters look at 6 pairs each, 4 times, and repeat their verdict with a chance of 70%: the share of abilities,
and of the effects of position and ties, in their 95% intervals, with and without `clustered_by`; and the share of data
sets in which all true ranks are in their intervals. cost: CPU seconds after reading.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np
import polars as pl

import harness
import spectral_irt as si
from spectral_irt.calibration import t_quantile
from spectral_irt.pairs.fit import Chances

WINNERS = np.array(["model_b", "tie", "model_a"])
PAIRS_OF_A_VOTER = 6
TIMES = 4
REPEATED = 0.7  # the chance that a voter repeats a verdict
POSITION = 0.2
TIE = -0.5


def points(rng: np.random.Generator, log_odds: np.ndarray, tie: float) -> np.ndarray:
    below = np.cumsum(Chances.of(log_odds, tie).p, axis=1)
    u = rng.random(len(log_odds))
    return (u >= below[:, 0]).astype(int) + (u >= below[:, 1])


def votes(rng: np.random.Generator, ability: np.ndarray, voters: int) -> pl.DataFrame:
    m = len(ability)
    n_pairs = voters * PAIRS_OF_A_VOTER
    first = rng.integers(0, m, n_pairs)
    second = (first + rng.integers(1, m, n_pairs)) % m
    log_odds = ability[first] - ability[second] + POSITION
    verdicts = np.stack([points(rng, log_odds, TIE) for _ in range(TIMES)])
    verdicts = np.where(rng.random(verdicts.shape) < REPEATED, verdicts[0], verdicts)
    return pl.DataFrame(
        {
            "model_a": np.tile(first, TIMES),
            "model_b": np.tile(second, TIMES),
            "winner": WINNERS[verdicts.ravel()],
            "voter": np.tile(np.repeat(np.arange(voters), PAIRS_OF_A_VOTER), TIMES),
        }
    )


def hold(sd: float, voters: int, clustered: bool, seeds: Iterable[int]) -> harness.Row:
    m = 12
    rows = []
    for seed in seeds:
        rng = np.random.default_rng([47, seed])
        ability = sd * rng.normal(size=m)
        board = si.Pairs.read(votes(rng, ability, voters), position=True, clustered_by="voter" if clustered else None)
        table = board.contestant_columns()
        contestant = table["contestant"].astype(int)
        true = (ability - ability.mean())[contestant]
        rank = (m - np.argsort(np.argsort(ability)))[contestant]
        width = t_quantile(board.calibration.provenance.se_df)
        effects = {effect.name: effect for effect in board.effects_found}
        within = [
            abs(effects[name].estimate - x) <= width * effects[name].se
            for name, x in (("position", POSITION), ("tie", TIE))
        ]
        rows.append([
            np.mean((table["ci_low"] <= true) & (true <= table["ci_high"])),
            np.mean(within),
            np.all((table["rank_low"] <= rank) & (rank <= table["rank_high"])),
            np.mean(table["rank_high"] - table["rank_low"] + 1),
        ])  # fmt: skip
    abilities, effect, ranks, width = np.mean(rows, axis=0)
    return {"abilities": abilities, "position and ties": effect, "all ranks": ranks, "width of ranks": width}


def intervals(asked: Namespace) -> Iterator[harness.Row]:
    for sd, voters, clustered in product((1.0, 0.3), (60, 300), (True, False)):
        labels = {"sd": sd, "voters": voters, "clusters": "yes" if clustered else "no"}
        yield labels | hold(sd, voters, clustered, asked.seeds)


def cost(asked: Namespace) -> Iterator[harness.Row]:
    n, m = 139_000, 100
    for tie in (-np.inf, TIE):
        rng = np.random.default_rng(0)
        ability = rng.normal(size=m)
        first = rng.integers(0, m, n)
        second = (first + rng.integers(1, m, n)) % m
        x = rng.normal(size=(n, 4))
        log_odds = ability[first] - ability[second] + x @ [0.3, 0.1, 0.0, -0.2]
        columns = {"model_a": first, "model_b": second, "winner": WINNERS[points(rng, log_odds, tie)]}
        names = [f"x{k}" for k in range(4)]
        frame = pl.DataFrame(columns | dict(zip(names, x.T, strict=True)))
        seconds = []
        for _ in range(2):
            board = si.Pairs.read(frame, covariates=names)
            start = time.process_time()
            board.contestant_columns()
            board.effect_columns()
            seconds.append(time.process_time() - start)
        yield {
            "votes": n,
            "contestants": m,
            "covariates": 4,
            "ties": "no" if tie == -np.inf else "yes",
            "CPU seconds": min(seconds),
        }


def main() -> None:
    asked = harness.arguments(__doc__, parts=("intervals", "cost"), replicates=200)
    titles = {
        "intervals": f"Share of true values in 95% intervals; {asked.replicates} data sets",
        "cost": "From votes to abilities, ranks and effects",
    }
    for part in asked.parts:
        harness.show(titles[part], globals()[part](asked), asked)


if __name__ == "__main__":
    main()
