"""Ordered answers: error of the landed estimate and of the chain against their rivals, intervals, and speed.

    python benchmarks/ordered.py [--replicates 40] [--parts rate,efficiency,coverage,designs,fit,speed] [--seed 0]

Thresholds are standard normal and independent ("normal") or a logit apart around a normal location ("steps"), drawn
once for a setting; people and answers are new in every replicate. Errors in brackets are standard errors over
replicates. The speed part takes five million answers of either kind.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from measure import cost
from spectral_irt import SpectralRasch, simulate
from spectral_irt.data import Responses
from spectral_irt.errors import DesignError
from spectral_irt.estimators.conditional import ConditionalPartialCredit
from spectral_irt.estimators.rating_scale import ConditionalRatingScale, SpectralRatingScale
from spectral_irt.estimators.spectral import SpectralPartialCredit
from two_phase import TwoPhase

RATE = {
    "10 items, 4 categories, complete": (10, 3, {}, (500, 2000, 8000)),
    "20 items, 5 categories, 40% seen": (20, 4, {"design": "sampled", "p": 0.4}, (2000, 8000)),
}
EFFICIENCY = {"8 items, 3 categories": (8, 2), "8 items, 4 categories": (8, 3), "10 items, 5 categories": (10, 4)}
PEOPLE = 800  # of the efficiency and coverage settings

CHAINS = {
    "landed": lambda: SpectralPartialCredit(regularization=0, se="none"),
    "joint, ability": lambda: SpectralPartialCredit(regularization=0, refine=False, se="none"),
    "joint, persons": lambda: SpectralPartialCredit(weighting="persons", regularization=0, se="none"),
    "two-phase": TwoPhase,
}


def truth(kind: str, items: int, k: int) -> list[np.ndarray]:
    rng = np.random.default_rng(items * 10 + k)
    if kind == "normal":
        return list(rng.normal(size=(items, k)))
    return list(rng.normal(size=(items, 1)) + np.arange(k) - (k - 1) / 2 + 0.3 * rng.normal(size=(items, k)))


def fitted(make, responses):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make().fit(responses)


def rate(replicates: int) -> None:
    print("\nl2 error of the thresholds")
    for kind in ("normal", "steps"):
        for name, (items, k, design, sizes) in RATE.items():
            thresholds = truth(kind, items, k)
            for n in sizes:
                squares: dict[str, list[float]] = {one: [] for one in CHAINS}
                for seed in range(replicates):
                    data = simulate.partial_credit(n, thresholds=thresholds, seed=seed, **design)
                    found = {one: fitted(make, data.responses).thresholds_ for one, make in CHAINS.items()}
                    there = np.all([np.isfinite(beta) for beta in found.values()], axis=0)
                    for one, beta in found.items():
                        squares[one].append(float(np.sum((beta - data.thresholds)[there] ** 2)))
                shown = ", ".join(f"{one} {np.sqrt(np.mean(v)):.3f}" for one, v in squares.items())
                gain = np.mean(squares["two-phase"]) / np.mean(squares["joint, ability"])
                rest = np.mean(squares["two-phase"]) / np.mean(squares["joint, persons"])
                print(f"{kind}, {name}, {n:,} people: {shown}; two-phase / joint {gain:.2f} (persons {rest:.2f})")


def efficiency(replicates: int) -> None:
    print(f"\nefficiency: mean squared error of CML over that of the estimator ({PEOPLE} people, complete)")
    for kind in ("normal", "steps"):
        for name, (items, k) in EFFICIENCY.items():
            thresholds = truth(kind, items, k)
            cml, squares = [], {one: [] for one in CHAINS}
            for seed in range(replicates):
                data = simulate.partial_credit(PEOPLE, thresholds=thresholds, seed=seed)
                best = fitted(lambda: ConditionalPartialCredit(se="none"), data.responses).thresholds_
                cml.append(np.nansum((best - data.thresholds) ** 2))
                for one, make in CHAINS.items():
                    try:
                        found = fitted(make, data.responses).thresholds_
                    except DesignError:  # a level by itself need not be connected where all levels together are
                        found = np.full(items * k, np.nan)
                    squares[one].append(np.sum((found - data.thresholds) ** 2))
            shown = ", ".join(f"{one} {ratio(cml, v)}" for one, v in squares.items())
            print(f"{kind}, {name}: {shown}")


def ratio(top: list[float], bottom: list[float]) -> str:
    """A ratio of means with its jackknife standard error."""
    a, b = np.array(top), np.array(bottom)
    a, b = a[np.isfinite(b)], b[np.isfinite(b)]
    n = len(a)
    each = (a.sum() - a) / (b.sum() - b)
    return f"{a.sum() / b.sum():.3f} ({np.sqrt((n - 1) / n * np.sum((each - each.mean()) ** 2)):.3f})"


def coverage(replicates: int) -> None:
    print(f"\ncoverage of 95% intervals: thresholds, locations ({PEOPLE} people, complete)")
    estimators = {
        "spectral": SpectralPartialCredit,
        "spectral, no prior": lambda: SpectralPartialCredit(regularization=0),
        "conditional": ConditionalPartialCredit,
    }
    for name, (items, k) in EFFICIENCY.items():
        thresholds = truth("steps", items, k)
        hits: dict[str, list[tuple[float, float]]] = {one: [] for one in estimators}
        for seed in range(replicates):
            data = simulate.partial_credit(PEOPLE, thresholds=thresholds, seed=seed)
            location = data.responses.thresholds.mean(data.thresholds)
            for one, make in estimators.items():
                fit = fitted(make, data.responses)
                ok, zero = fit.status_ == "ok", location[np.isfinite(fit.difficulty_)].mean()
                each = ok[data.responses.thresholds.item]
                away, moved = fit.thresholds_ - data.thresholds + zero, fit.difficulty_ - location + zero
                hits[one].append(
                    (
                        np.mean(np.abs(away[each]) < 1.96 * fit.threshold_se_[each]),
                        np.mean(np.abs(moved[ok]) < 1.96 * fit.se_[ok]),
                    )
                )
        shown = "; ".join(f"{one} {np.mean(v, axis=0).round(3).tolist()}" for one, v in hits.items())
        print(f"{name}: {shown}")
    print("rating scale, 8 items, 5 categories, 400 people: coverage, and efficiency against CML")
    squares: dict[str, list[float]] = {}
    inside: dict[str, list[float]] = {}
    scales = {"conditional": ConditionalRatingScale, "tied": SpectralRatingScale}
    for seed in range(replicates):
        data = simulate.rating_scale(400, difficulty=np.linspace(-1.2, 1.2, 8), categories=5, seed=seed)
        for one, make in scales.items():
            fit = fitted(make, data.responses)
            if not np.isfinite(fit.thresholds_).all():
                continue
            squares.setdefault(one, []).append(float(np.sum((fit.thresholds_ - data.thresholds) ** 2)))
            inside.setdefault(one, []).append(
                float(np.mean(np.abs(fit.thresholds_ - data.thresholds) < 1.96 * fit.threshold_se_))
            )
    for one in scales:
        share = np.mean(squares["conditional"]) / np.mean(squares[one])
        print(f"  {one}: coverage {np.mean(inside[one]):.3f}, efficiency {share:.3f}")


def vertical(seed: int, people: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Five grades of 12 items with 4 common to neighbors; people are as able as the items of their grade are hard."""
    rng = np.random.default_rng(seed)
    level = np.concatenate([np.repeat(1.2 * np.arange(5), 12), np.repeat(1.2 * np.arange(4) + 0.6, 4)])
    beta = level[:, None] + 0.7 * rng.normal(size=(76, 1)) + np.array([-1.0, 0, 1.0]) + 0.3 * rng.normal(size=(76, 3))
    table = np.full((5 * people, 76), np.nan)
    for g in range(5):
        mine = [*range(12 * g, 12 * g + 12), *(60 + 4 * h + k for h in (g - 1, g) if 0 <= h < 4 for k in range(4))]
        table[g * people : (g + 1) * people, mine] = answers(rng, rng.normal(1.2 * g, 1, people), beta[mine])
    return table, beta


def targeted(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three booklets of 20 of 40 items, the harder the abler the people."""
    rng = np.random.default_rng(seed)
    beta = np.sort(rng.normal(0, 1.3, 40))[:, None] + np.array([-0.8, 0.8]) + 0.3 * rng.normal(size=(40, 2))
    theta = rng.normal(0, 1.3, 900)
    table = answers(rng, theta, beta)
    first = np.digitize(theta + 0.5 * rng.normal(size=900), [-0.6, 0.6]) * 10
    for person, start in enumerate(first):
        table[person, :start] = table[person, start + 20 :] = np.nan
    return table, beta


def thin(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Fifteen items that 500 people answered, five that 10 did."""
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=(20, 1)) + np.array([-0.8, 0.8]) + 0.3 * rng.normal(size=(20, 2))
    table = answers(rng, rng.normal(size=500), beta)
    for item in range(15, 20):
        table[rng.permutation(500)[10:], item] = np.nan
    return table, beta


def popular(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sixty items of which the first are seen by all, the last by one person in thirty."""
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=(60, 1)) + np.array([-0.8, 0.8]) + 0.3 * rng.normal(size=(60, 2))
    table = answers(rng, rng.normal(size=800), beta)
    table[rng.random(table.shape) > (1 + np.arange(60)) ** -0.8] = np.nan
    return table, beta


def disordered(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Thresholds without regard to their order, in items with 2 to 5 categories."""
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=(16, 4))
    for item in range(16):
        beta[item, 1 + item % 4 :] = np.nan
    return answers(rng, rng.normal(size=600), beta), beta


def complete(seed: int, people: int) -> tuple[np.ndarray, np.ndarray]:
    """Twenty items with four categories, all of which everybody answers."""
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=(20, 1)) + np.array([-1.0, 0, 1.0]) + 0.3 * rng.normal(size=(20, 3))
    return answers(rng, rng.normal(size=people), beta), beta


def answers(rng: np.random.Generator, theta: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Categories of the partial credit model; NaN thresholds are none."""
    cumulated = np.cumsum(np.where(np.isfinite(beta), beta, np.inf), axis=1)
    log = np.concatenate(
        [np.zeros((len(theta), len(beta), 1)), np.arange(1, beta.shape[1] + 1) * theta[:, None, None] - cumulated], 2
    )
    p = np.exp(log - log.max(axis=2, keepdims=True))
    total = np.cumsum(p / p.sum(axis=2, keepdims=True), axis=2)
    return (rng.random((*total.shape[:2], 1)) > total).sum(axis=2).astype(float)


DESIGNS = {
    "five grades with common items": vertical,
    "targeted booklets": targeted,
    "five items with 10 answers": thin,
    "popular and rare items": popular,
    "out of order, 2 to 5 categories": disordered,
    "50 people": lambda seed: complete(seed, 50),
    "100 people": lambda seed: complete(seed, 100),
}


def designs(replicates: int, first: int) -> None:
    print(
        "\nhard designs, default estimate: error, coverage of 95% intervals (thresholds, locations, those over 1.5 "
        "logits out), slope on the truth (locations, steps)"
    )
    for name, make in DESIGNS.items():
        found = []
        for seed in range(first, first + replicates):
            table, beta = make(seed)
            responses = Responses.from_wide(
                table, ordered=True, unused="keep" if np.isfinite(beta).all() else "collapse"
            )
            if not np.array_equal(responses.thresholds.max_score, np.isfinite(beta).sum(axis=1)):
                continue  # of items with different categories, one that nobody used is not known to be there
            fit = fitted(SpectralPartialCredit, responses)
            where = np.nanmean(beta, axis=1)
            zero = where[np.isfinite(fit.difficulty_)].mean()
            away = fit.thresholds_ - beta[np.isfinite(beta)] + zero
            moved = fit.difficulty_ - where + zero
            far, steps = np.abs(where - where.mean()) > 1.5, np.isfinite(beta).sum(axis=1)
            inside = np.abs(moved) < 1.96 * fit.se_
            step, its = (
                beta[np.isfinite(beta)] - np.repeat(where, steps),
                fit.thresholds_ - np.repeat(fit.difficulty_, steps),
            )
            found.append(
                (
                    np.sqrt(np.nanmean(away**2)),
                    np.mean(np.abs(away) < 1.96 * fit.threshold_se_),
                    np.mean(inside),
                    np.mean(inside[far]) if far.any() else np.nan,
                    np.polyfit(where, fit.difficulty_, 1)[0],
                    np.polyfit(step, its, 1)[0],
                )
            )
        error, thresholds, locations, far_out, slope, of_steps = np.nanmean(found, axis=0)
        covered = f"{thresholds:.3f}, {locations:.3f}, {far_out:.3f}"
        print(f"{name}: {error:.3f}; {covered}; {slope:.3f}, {of_steps:.3f} ({len(found)} replicates)")


def fit(replicates: int) -> None:
    print("\nconditional infit of items under the model: mean, standard deviation")
    for name, (items, k) in EFFICIENCY.items():
        thresholds, infit = truth("steps", items, k), []
        for seed in range(replicates):
            data = simulate.partial_credit(PEOPLE, thresholds=thresholds, seed=seed)
            study = fitted(SpectralPartialCredit, data.responses).analyse(data.responses)
            infit.append(study._conditional()["infit"])
        print(f"{name}: {np.nanmean(infit):.3f}, {np.nanstd(infit):.3f}")


def speed() -> None:
    print("\nfive million answers, 2,000 items, whole fit with standard errors")
    people, items = 50_000, 2000
    design = {"design": "sampled", "p": 0.05}
    binary = simulate.rasch(people, items, seed=1, **design).responses
    ordered = simulate.partial_credit(people, items, categories=5, seed=1, **design).responses
    print(f"{binary.n_responses:,} right or wrong, {ordered.n_responses:,} in five categories")
    one, many = cost(lambda: SpectralRasch().fit(binary)), cost(lambda: SpectralPartialCredit().fit(ordered))
    print(f"right or wrong: {one.wall:.2f} s ({one.cpu:.2f} CPU)")
    print(f"five categories: {many.wall:.2f} s ({many.cpu:.2f} CPU)")
    print(f"five categories / two, CPU: {many.cpu / one.cpu:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=40)
    parser.add_argument("--parts", default="rate,efficiency,coverage,designs,fit,speed")
    parser.add_argument("--seed", type=int, default=0, help="of the first replicate of designs")
    chosen = parser.parse_args()
    for part in chosen.parts.split(","):
        if part == "speed":
            speed()
        elif part == "designs":
            designs(chosen.replicates, chosen.seed)
        else:
            {"rate": rate, "efficiency": efficiency, "coverage": coverage, "fit": fit}[part](chosen.replicates)


if __name__ == "__main__":
    main()
