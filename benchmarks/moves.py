"""What moves after a first fit do: bias of guessing that tailoring removes, DIF that is resolved step by step, and an
item split by a coin.

    python benchmarks/moves.py [--parts tailoring,level,dif,coin] [--replicates 100] [--seed 0]

Tailoring: 1,000 people N(0, 1.2), items from -2 to 2.5, every response right by chance where it is not known with
probability c (3PL, equal slopes). Bias of the five hardest items against the sixth of the items that is easiest, in the
first fit and after tailoring; taken out: the share of the first that is gone; left out: the share of responses; and by
the true chances: what the same limit takes out where abilities and difficulties are known.
Level: the same without guessing (c = 0). Moved: data sets in which a difficulty changed significantly (Holm, 5%); z:
standard deviation of the differences over their errors, of items that lost 60 responses or more.
DIF: 20 items, of which 4 are harder for the second group by 0.8 logits, 500 people in each, who differ by 0.5 on
average. All four: data sets in which all four were split; clean: in which another item was; covered: in which the
interval of the difference of the means has 0.5; items known: the same where these four are split, and no others.
Coin: 300 people, 8 items, one split by a coin. Covered: the interval of the difference of the two has 0; shift: the
range of the changes of three other items, in standard errors.
"""

from __future__ import annotations

import numpy as np

import harness
from spectral_irt import Responses, SpectralRasch, simulate
from spectral_irt.analysis.analysis import Analysis
from spectral_irt.analysis.moves import Move

PARTS = ("tailoring", "level", "dif", "coin")
LIMITS = (0.25, 0.35, 0.5, 0.6)
DIFFER = (3, 8, 12, 16)
BY = 0.8
IMPACT = -0.5


def first_fit(x: np.ndarray, columns: dict[str, np.ndarray] | None = None) -> Analysis:
    import polars as pl

    responses = Responses.from_wide(x, items=[f"q{k + 1}" for k in range(x.shape[1])])
    if columns:
        table = pl.DataFrame({"person": responses.persons, **columns})
        responses = responses.with_people(table)
    return SpectralRasch().fit(responses).analyse(responses)


def guessed(guessing: float, people: int, items: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Right and wrong responses, difficulties, and the chance of knowing."""
    rng = np.random.default_rng([seed, items, int(100 * guessing)])
    difficulty = np.linspace(-2, 2.5, items)
    ability = rng.normal(0, 1.2, people)
    known = 1 / (1 + np.exp(difficulty - ability[:, None]))
    x = rng.random(known.shape) < guessing + (1 - guessing) * known
    return x.astype(float), difficulty, known


def bias_of_hardest(estimate: np.ndarray, difficulty: np.ndarray) -> float:
    error = estimate - difficulty
    easiest = len(error) // 6
    return float(error[-5:].mean() - error[:easiest].mean())


def tailoring(items: int, limit: float, seed: int) -> dict[str, float]:
    x, difficulty, known = guessed(0.25, 1000, items, seed)
    first = first_fit(x)
    tailored = first.with_moves([Move("tailor", {"below": limit}, "a study")])
    true = SpectralRasch().fit(np.where(known < limit, np.nan, x))
    return {
        "bias": bias_of_hardest(first.calibration.difficulty, difficulty),
        "tailored": bias_of_hardest(tailored.calibration.difficulty, difficulty),
        "true chances": bias_of_hardest(true.difficulty_, difficulty),
        "left out": 1 - tailored.responses.n_responses / x.size,
    }


def level(items: int, limit: float, seed: int) -> dict[str, float]:
    x, _, _ = guessed(0.0, 1000, items, seed)
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


if __name__ == "__main__":
    asked = harness.arguments(__doc__, parts=PARTS, replicates=100)
    if "tailoring" in asked.parts:
        cases = harness.cases(tailoring, items=(24, 48), limit=LIMITS)
        rows = [labels | harness.averages(one, asked.seeds) for labels, one in cases]
        for row in rows:
            row["taken out"] = 1 - row["tailored"] / row["bias"]
            row["by the true chances"] = 1 - row.pop("true chances") / row["bias"]
        harness.show(f"Guessing, c = 0.25: {asked.replicates} replicates", rows, asked)
    if "level" in asked.parts:
        harness.study("No guessing", harness.cases(level, items=(24,), limit=LIMITS), asked)
    if "dif" in asked.parts:
        harness.study("DIF of four items of 20, resolved", [({"people": "500 + 500"}, resolved)], asked)
    if "coin" in asked.parts:
        harness.study("An item split by a coin", [({"people": 300, "items": 8}, coin)], asked)
