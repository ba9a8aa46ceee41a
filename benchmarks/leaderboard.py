"""Leaderboards and short lists: do ranks hold, do tests and errors agree with others, do predictions hold; cost.

    python benchmarks/leaderboard.py [--parts ranks,spreads,mcnemar,bootstrap,shortlist,size] [--replicates 40]
        [--data DIR]

ranks: simulated leaderboards of 30 models (abilities normal with the given standard deviation), with and without
clusters of prompts whose models have abilities of their own (passages of five prompts); the share in which all true
ranks are in their intervals, their mean width as a share of the models, and the number of models whose ranks are wholly
below those of their tier's first. spreads: the same where abilities are not normal, or models come in families.
mcnemar: share of pairs that abilities and McNemar's test with Holm's correction decide alike, under the Rasch model.
bootstrap: standard errors of differences between models over those of a bootstrap of prompts, on tables of real models.
shortlist: models left out of real tables; how often the interval of the whole score holds, and the errors of the list
and of random ones. size: seconds of CPU and memory from files to page for so many models and prompts (--models,
--prompts), logs in lighteval's layout.

Real tables are Parquet files with the columns person, item and response in --data: helm_lite.parquet (30 models) and
metabench_gsm8k.parquet (5,041 models); parts that need them are left out without --data.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl

import draws
import harness
import spectral_irt as si
from spectral_irt.data import Responses

REAL = ("helm_lite", "metabench_gsm8k")


def table(ability: np.ndarray, n: int, rng: np.random.Generator, passages: int = 0) -> np.ndarray:
    """Models x prompts; with passages, models differ in how they do on each."""
    logit = ability[:, None] - rng.normal(0, 1.5, n)
    if passages:
        logit = logit + rng.normal(0, 0.7, (len(ability), passages))[:, np.arange(n) * passages // n]
    return draws.answers(rng, logit)


def families(size: int, within: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, m: np.repeat(rng.normal(size=m // size), size) + rng.normal(0, within, m)


# Of abilities, with mean 0 and variance 1 or so.
SPREADS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": draws.SPREADS["normal"],
    "a few far ahead (exponential)": draws.SPREADS["exponential"],
    "many at the top (exponential)": draws.SPREADS["exponential, crowded above"],
    "t with 3 degrees of freedom": draws.SPREADS["t with 3 degrees of freedom"],
    "two tight groups, 6 and 24": lambda rng, m: np.where(np.arange(m) < m / 5, 2.0, -0.5) + rng.normal(0, 0.05, m),
    "six families of five": families(5, 0.05),
    "six families of five, within 0.03": families(5, 0.03),
    "three families of ten, within 0.02": families(10, 0.02),
    "nearly equal (sd / 50)": lambda rng, m: rng.normal(0, 0.02, m),
}
SEEDS = 31


def hold(spread: str, sd: float, n: int, passages: int, replicates: int) -> harness.Row:
    """How often all true ranks are in their intervals, how wide these are, and models that contradict their tier."""
    m, rows = 30, []
    for seed in range(replicates):
        rng = np.random.default_rng([SEEDS, seed])
        ability = sd * SPREADS[spread](rng, m)
        x = table(ability, n, rng, passages)
        clusters = (np.arange(n) * passages // n).tolist() if passages else None
        found = si.Leaderboard(x, clustered_by=clusters).model_columns()
        true = (m - np.argsort(np.argsort(ability)))[found["model"].astype(int)]
        low, high, tier = found["rank_low"], found["rank_high"], found["tier"]
        first = np.searchsorted(tier, tier)  # the first of each model's tier
        rows.append([np.all((low <= true) & (true <= high)), np.mean(high - low + 1) / m, np.sum(low > high[first])])
    held, width, contradictions = np.mean(rows, axis=0)
    return {"hold": held, "width": width, "below their tier": round(contradictions * replicates)}


def ranks(options: Namespace) -> Iterator[harness.Row]:
    for n in options.sizes:
        for sd in (1.0, 0.3):
            for passages in (0, n // 5):
                labels = {"prompts": n, "sd of abilities": sd, "clusters": "yes" if passages else "no"}
                yield labels | hold("normal", sd, n, passages, options.replicates)


def spreads(options: Namespace) -> Iterator[harness.Row]:
    for n in options.sizes:
        for sd in (1.0, 0.3):
            for spread in SPREADS:
                labels = {"abilities": spread, "prompts": n, "sd": sd}
                yield labels | hold(spread, sd, n, 0, options.replicates)


def mcnemar(options: Namespace) -> Iterator[harness.Row]:
    from spectral_irt.leaderboard.pairs import tiers

    for n in options.sizes:
        rows = []
        for seed in range(max(options.replicates // 4, 3)):
            rng = np.random.default_rng([12, seed])
            board = si.Leaderboard(table(rng.normal(size=30), n, rng))
            ours, theirs, opposite = board.contrasts_found.disagreements()
            same = np.mean(tiers(board.order, board.contrasts_found.sure_mcnemar) == board.tier)
            rows.append([1 - (ours + theirs + opposite) / 435, ours / 435, theirs / 435, opposite / 435, same])
        head = ("pairs decided alike", "by ability alone", "by McNemar alone", "opposite directions", "same tiers")
        yield {"prompts": n} | dict(zip(head, np.mean(rows, axis=0), strict=True))


def real(folder: Path, name: str) -> np.ndarray:
    frame = pl.read_parquet(folder / f"{name}.parquet")
    person, row = np.unique(frame["person"].to_numpy(), return_inverse=True)
    item, column = np.unique(frame["item"].to_numpy(), return_inverse=True)
    x = np.full((len(person), len(item)), np.nan)
    x[row, column] = frame["response"].to_numpy()
    return x


def bootstrap(options: Namespace) -> Iterator[harness.Row]:
    for name in REAL:
        x = real(options.data, name)
        share = x.mean(axis=1)
        x = x[(share > 0.05) & (share < 0.95)]  # errors of models with nothing right are those of a prior
        x = x[:: max(1, len(x) // 30)][:30]  # of very many models, thirty
        rng = np.random.default_rng(0)
        board = si.Leaderboard(x)
        draws = []
        for _ in range(options.replicates):
            again = x[:, rng.integers(0, x.shape[1], x.shape[1])]
            draws.append(-si.SpectralRasch(se="none", regularization=0).fit(again.T).difficulty_)
        first, second = np.triu_indices(len(x), 1)
        a, b = board.order[first], board.order[second]
        apart = np.array(draws)[:, a] - np.array(draws)[:, b]
        ratio = board.contrast_columns()["se"] / apart.std(axis=0, ddof=1)
        low, high = np.quantile(ratio, [0.05, 0.95])
        labels = {"table": name, "models": len(x), "prompts": x.shape[1], "bootstrap samples": options.replicates}
        yield labels | {"ratio of standard errors": np.mean(ratio), "middle 90%": f"{low:.3f} to {high:.3f}"}


def shortlist(options: Namespace) -> Iterator[harness.Row]:
    from spectral_irt.leaderboard.shortlist import Predictor, calibrated

    for name in REAL:
        x = real(options.data, name)
        for n in (30, 100, 300):
            if n >= x.shape[1]:
                continue
            rng = np.random.default_rng(1)
            inside, width, error, chance = [], [], [], []
            if len(x) < 100:  # each model in turn
                splits = [(np.delete(np.arange(len(x)), k), np.array([k])) for k in range(len(x))]
            else:
                drawn = [rng.permutation(len(x)) for _ in range(options.splits)]
                splits = [(order[:300], order[300:2300]) for order in drawn]
            for train, test in splits:
                made = si.ShortList.choose(Responses.from_wide(x[train]), n)
                found = made.score_columns(Responses.from_wide(x[test]))
                whole = x[test].mean(axis=1)
                inside.append((found["score_low"] <= whole) & (whole <= found["score_high"]))
                width.append(found["score_high"] - found["score_low"])
                error.append(found["score"] - whole)
                ability, difficulty = calibrated(x[train])
                for _ in range(3):
                    list_ = rng.choice(x.shape[1], n, replace=False)
                    other = Predictor.of(x[train], list_, ability, difficulty)
                    chance.append(other.score(x[test][:, list_]) - whole)
            labels = {"table": name, "prompts in the list": n, "models": sum(map(len, inside))}
            held = {"interval holds": np.mean(np.concatenate(inside)), "mean width": np.mean(np.concatenate(width))}
            errors = [100 * np.sqrt(np.mean(np.concatenate(part) ** 2)) for part in (error, chance)]
            yield labels | held | {"error, points": errors[0], "random, points": errors[1]}


def size(options: Namespace) -> Iterator[harness.Row]:
    m, n = options.models, options.prompts
    rng = np.random.default_rng(0)
    ability, difficulty = rng.normal(size=m), rng.normal(0, 1.3, n)
    date = "2025-11-05T14-43-47.148527"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        docs = pl.DataFrame({"query": [f"What is {k}?" for k in range(n)], "id": [str(k) for k in range(n)]}).to_struct(
            "doc"
        )
        for k in range(m):
            right = (rng.random(n) < 1 / (1 + np.exp(difficulty - ability[k]))).astype(float)
            place = folder / "details" / f"org/model{k}" / date
            place.mkdir(parents=True)
            score = pl.DataFrame({"em": right}).to_struct("metric")
            pl.DataFrame([docs, score]).write_parquet(place / f"details_mmlu_pro|5_{date}.parquet")
        cpu, wall = time.process_time(), time.perf_counter()
        board = si.Leaderboard.read(folder)
        read = time.process_time() - cpu, time.perf_counter() - wall
        board.write(folder / "board")
        board.report(folder / "board.html")
        total = time.process_time() - cpu, time.perf_counter() - wall
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)
        times = {"reading, s of CPU": read[0], "reading, s": read[1], "all, s of CPU": total[0], "all, s": total[1]}
        yield {"models": m, "prompts": n, **times, "peak GB": peak}


NEEDED = (bootstrap, shortlist)  # tables of real models
PARTS = {part.__name__: part for part in (ranks, spreads, mcnemar, bootstrap, shortlist, size)}

if __name__ == "__main__":
    sizes = {"sizes": (500,), "splits": 3, "models": 200, "prompts": 2000}
    asked = harness.arguments(__doc__, parts="ranks,mcnemar", replicates=40, data=Path, **sizes)
    for part in map(PARTS.__getitem__, asked.parts.split(",")):
        if part in NEEDED and asked.data is None:
            print(f"\n{part.__name__}: needs --data")
        else:
            harness.show(part.__name__, part(asked), asked)
