"""What moves after a first fit do: bias of guessing that tailoring removes, DIF that is resolved step by step, and an
item split by a coin; and whether differences of two fits have the errors that `compare-fits` says.

    python benchmarks/moves.py [--parts tailoring,wide,level,dif,coin,compared] [--replicates 100] [--seed 0]

Tailoring: 1,000 people N(0, 1.2), items from -2 to 2.5 (wide: 2,000 people N(0, 1.5), from -2 to 3), every response
right by chance where it is not known with probability c (3PL, equal slopes). Bias of the five hardest items against the
sixth of the items that is easiest, in the first fit and after tailoring; taken out: the share of the first that is
gone; left out: the share of responses; and by the true chances: what the same limit takes out where abilities and
difficulties are known.
Level: the same without guessing (c = 0). Moved: data sets in which a difficulty changed significantly (Holm, 5%); z:
standard deviation of the differences over their errors, of items that lost 60 responses or more.
DIF: 20 items, of which 4 are harder for the second group by 0.8 logits, 500 people in each, who differ by 0.5 on
average. All four: data sets in which all four were split; clean: in which another item was; covered: in which the
interval of the difference of the means has 0.5; items known: the same where these four are split, and no others.
Coin: 300 people, 8 items, one split by a coin. Covered: the interval of the difference of the two has 0; shift: the
range of the changes of three other items, in standard errors.
Compared: 300 people, 8 items, right and wrong or in four categories; a second fit of two thirds of the people, without
one item, or with two items joined. z squared: of the differences of the difficulties of all items that both fits have
over their standard errors; covered: differences within 1.96 of these. (Where categories are merged the model holds for
one of the fits at most.)
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

import harness
from draws import simulated
from spectral_irt import Responses, SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.analysis.analysis import Analysis
from spectral_irt.analysis.moves import Move

PARTS = ("tailoring", "wide", "level", "dif", "coin", "compared")
LIMITS = (0.25, 0.35, 0.5, 0.6)
HARDEST = {1.2: 2.5, 1.5: 3.0}  # item, by the spread of the abilities
ITEMS = [f"q{k + 1}" for k in range(8)]
DIFFER = (3, 8, 12, 16)
BY = 0.8
IMPACT = -0.5


SECOND_FITS = {
    "two thirds of the people": Move("drop_persons", {"persons": list(range(100))}, "a study"),
    "without an item": Move("drop", {"items": ["q4"]}, "a study"),
    "two items joined": Move("join", {"items": ["q4", "q5"]}, "a study"),
}


def first_fit(x: np.ndarray, columns: dict[str, np.ndarray] | None = None) -> Analysis:
    import polars as pl

    responses = Responses.from_wide(x, items=[f"q{k + 1}" for k in range(x.shape[1])])
    if columns:
        table = pl.DataFrame({"person": responses.persons, **columns})
        responses = responses.with_people(table)
    return SpectralRasch().fit(responses).analyse(responses)


def guessed(
    guessing: float, people: int, items: int, spread: float, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Right and wrong responses, difficulties, and the chance of knowing."""
    rng = np.random.default_rng([seed, items, int(100 * guessing)])
    difficulty = np.linspace(-2, HARDEST[spread], items)
    ability = rng.normal(0, spread, people)
    known = 1 / (1 + np.exp(difficulty - ability[:, None]))
    x = rng.random(known.shape) < guessing + (1 - guessing) * known
    return x.astype(float), difficulty, known


def bias_of_hardest(estimate: np.ndarray, difficulty: np.ndarray) -> float:
    error = estimate - difficulty
    easiest = len(error) // 6
    return float(error[-5:].mean() - error[:easiest].mean())


def tailoring(people: int, spread: float, items: int, limit: float, seed: int) -> dict[str, float]:
    x, difficulty, known = guessed(0.25, people, items, spread, seed)
    first = first_fit(x)
    tailored = first.with_moves([Move("tailor", {"below": limit}, "a study")])
    true = SpectralRasch().fit(np.where(known < limit, np.nan, x))
    return {
        "bias": bias_of_hardest(first.calibration.difficulty, difficulty),
        "tailored": bias_of_hardest(tailored.calibration.difficulty, difficulty),
        "true chances": bias_of_hardest(true.difficulty_, difficulty),
        "left out": 1 - tailored.responses.n_responses / x.size,
    }


def show_tailoring(cases: list[harness.Case], asked: argparse.Namespace) -> None:
    rows = [labels | harness.averages(one, asked.seeds) for labels, one in cases]
    for row in rows:
        row["taken out"] = 1 - row["tailored"] / row["bias"]
        row["by the true chances"] = 1 - row.pop("true chances") / row["bias"]
    harness.show(f"Guessing, c = 0.25: {asked.replicates} replicates", rows, asked)


def level(items: int, limit: float, seed: int) -> dict[str, float]:
    x, _, _ = guessed(0.0, 1000, items, 1.2, seed)
    changed = first_fit(x).with_moves([Move("tailor", {"below": limit}, "a study")])
    columns = changed._tailored
    assert columns is not None
    z = columns["z"][np.isfinite(columns["z"])]
    return {
        "moved": float(np.nanmin(columns["p_holm"]) < 0.05),
        "mean of z": float(z.mean()),
        "z squared": float(np.mean(z**2)),
        "left out": 1 - changed.responses.n_responses / x.size,
    }


def resolved(seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    second = np.repeat([False, True], 500)
    ability = rng.normal(0, 1, 1000) + IMPACT * second
    difficulty = np.tile(np.linspace(-1.5, 1.5, 20), (1000, 1))
    difficulty[np.ix_(second, DIFFER)] += BY
    x = (rng.random(difficulty.shape) < 1 / (1 + np.exp(difficulty - ability[:, None]))).astype(float)
    first = first_fit(x, {"sex": np.where(second, "m", "f")})
    changed = first.dif_resolve("sex")
    known = first.with_moves([Move("split", {"item": f"q{k + 1}", "by": "sex"}, "known") for k in DIFFER])
    split = {move.arguments["item"] for move in changed.moves}
    differ = {f"q{k + 1}" for k in DIFFER}
    means = changed.group_means("sex")
    off, error = difference_of_means(changed)
    known_off, known_error = difference_of_means(known)
    return {
        "all four": float(differ <= split),
        "found": len(differ & split) / 4,
        "clean": float(bool(split - differ)),
        "covered": float(abs(off) < 1.96 * error),
        "off": off,
        "z squared": float((off / error) ** 2),
        "covered, items known": float(abs(known_off) < 1.96 * known_error),
        "z squared, items known": float((known_off / known_error) ** 2),
        "difference_se / error": float(means["difference_se"][1] / error),
        "difference off": float(means["difference"][1]) - IMPACT,
    }


def difference_of_means(study: Analysis) -> tuple[float, float]:
    """How far the difference of the groups is from the truth, and its standard error."""
    means = study.group_means("sex")
    error = float(np.hypot(*means["latent_se"]))
    return float(means["latent_mean"][1] - means["latent_mean"][0]) - IMPACT, error


def coin(seed: int) -> dict[str, float]:
    data = simulate.rasch(300, 8, seed=seed)
    sides = np.random.default_rng(10_000 + seed).choice(["a", "b"], 300)
    first = first_fit(data.responses.to_dense(), {"coin": sides})
    changed = first.with_moves([Move("split", {"item": "q4", "by": "coin"}, "a coin")])
    calibration = changed.calibration
    one, other = calibration.positions(["q4[coin=a]", "q4[coin=b]"])
    covariance = changed.threshold_covariance()
    se = np.sqrt(covariance[one, one] + covariance[other, other] - 2 * covariance[one, other])
    others = ["q1", "q2", "q8"]
    after = calibration.difficulty[calibration.positions(others)]
    before = first.calibration.difficulty[first.calibration.positions(others)]
    return {
        "covered": float(abs(calibration.difficulty[one] - calibration.difficulty[other]) < 1.96 * se),
        "shift": float(np.ptp(after - before) / first.calibration.se.mean()),
    }


def compared(categories: int, second_fit: str, seed: int) -> dict[str, float]:
    data = simulated(categories, 300, np.linspace(-1.5, 1.5, 8), seed=seed)
    responses = Responses.from_wide(data.responses.to_dense(), items=ITEMS, ordered=categories > 2)
    estimator = SpectralRasch if categories == 2 else SpectralPartialCredit
    first = estimator().fit(responses).analyse(responses)
    z = first.compare(first.with_moves([SECOND_FITS[second_fit]])).items["z"]
    z = z[np.isfinite(z)]
    return {"z squared": float(np.mean(z**2)), "covered": float(np.mean(np.abs(z) < 1.96)), "items": len(z)}


if __name__ == "__main__":
    asked = harness.arguments(__doc__, parts=PARTS, replicates=100)
    if "tailoring" in asked.parts:
        show_tailoring(harness.cases(partial(tailoring, 1000, 1.2), items=(24, 48), limit=LIMITS), asked)
    if "wide" in asked.parts:
        show_tailoring(harness.cases(partial(tailoring, 2000, 1.5), items=(30,), limit=LIMITS), asked)
    if "level" in asked.parts:
        harness.study("No guessing", harness.cases(level, items=(24,), limit=LIMITS), asked)
    if "dif" in asked.parts:
        harness.study("DIF of four items of 20, resolved", [({"people": "500 + 500"}, resolved)], asked)
    if "coin" in asked.parts:
        harness.study("An item split by a coin", [({"people": 300, "items": 8}, coin)], asked)
    if "compared" in asked.parts:
        harness.study(
            "Differences of two fits", harness.cases(compared, categories=(2, 4), second_fit=SECOND_FITS), asked
        )
