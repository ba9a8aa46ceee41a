"""Designs that hurt: vertical scales, targeted and weakly linked booklets, thin data. Accuracy, coverage, slope.

    python benchmarks/designs.py [--replicates 40] [--designs grades150,thin_t3] [--split] [--seed 0]

For every design: root mean squared error, coverage of 95% intervals (all items; items more than 1.5 logits from the
mean), slope of the estimates on the truth; for the default, the chain alone (version 0.1's estimate) and CML, which
leaves out items without a finite estimate. With --split also how often the test of less against more able people
rejects a true model at 5%.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np

from spectral_irt import ConditionalRasch, Responses, SpectralRasch

Rng = np.random.Generator
Data = tuple[np.ndarray, np.ndarray]


def answers(rng: Rng, beta: np.ndarray, theta: np.ndarray, seen: np.ndarray) -> Data:
    table = (rng.random(seen.shape) < 1 / (1 + np.exp(beta - theta[:, None]))).astype(float)
    table[~seen] = np.nan
    return beta, table


def grades(rng: Rng, people: int) -> Data:
    """Five grades a logit apart, 20 items each and 4 common to neighbors; one item answered by 15 people."""
    n, own, common = 5, 20, 4
    beta = np.concatenate(
        [rng.normal(g, 1, own) for g in range(n)] + [rng.normal(g + 0.5, 1, common) for g in range(n - 1)]
    )
    seen, theta = np.zeros((n * people, len(beta)), dtype=bool), np.empty(n * people)
    for g in range(n):
        rows = slice(g * people, (g + 1) * people)
        theta[rows] = rng.normal(g, 1, people)
        seen[rows, g * own : (g + 1) * own] = True
        for link in (g - 1, g):
            if 0 <= link < n - 1:
                seen[rows, n * own + link * common : n * own + (link + 1) * common] = True
    seen[15:, 7] = False
    return answers(rng, beta, theta, seen)


def targeted(rng: Rng, people: int = 120) -> Data:
    """Eight booklets of 20 items, each sharing 8 with the next, from easy to hard, for people who match them."""
    n, length, step = 8, 20, 12
    level = np.linspace(-2.5, 2.5, n)
    m = step * (n - 1) + length
    place = np.linspace(level[0], level[-1], m)
    beta = place + rng.normal(0, 1, m)
    seen, theta = np.zeros((n * people, m), dtype=bool), np.empty(n * people)
    for b in range(n):
        rows = slice(b * people, (b + 1) * people)
        theta[rows] = rng.normal(level[b], 1, people)
        seen[rows, b * step : b * step + length] = True
    return answers(rng, beta, theta, seen)


def booklets(rng: Rng, shift: float, people: int = 300) -> Data:
    """Two booklets of 20 items with 3 in common, the second for people and items `shift` logits up."""
    beta = np.concatenate([rng.normal(0, 1, 17), rng.normal(shift, 1, 17), rng.normal(shift / 2, 1, 3)])
    seen = np.zeros((2 * people, 37), dtype=bool)
    seen[:people, :17] = seen[people:, 17:34] = seen[:, 34:] = True
    theta = np.concatenate([rng.normal(0, 1, people), rng.normal(shift, 1, people)])
    return answers(rng, beta, theta, seen)


def thin(rng: Rng, law: str, people: int = 300, items: int = 600, each: int = 16) -> Data:
    """Eight answers an item (median), difficulties with standard deviation 1 of some law."""
    beta = {
        "normal": lambda: rng.normal(0, 1, items),
        "exponential": lambda: rng.exponential(1, items) - 1,
        "t3": lambda: rng.standard_t(3, items) / np.sqrt(3),
    }[law]()
    popularity = (np.arange(items) + 1.0) ** -0.3
    seen = np.zeros((people, items), dtype=bool)
    for row in seen:
        row[rng.choice(items, each, replace=False, p=popularity / popularity.sum())] = True
    met = seen.any(axis=0)
    beta, table = answers(rng, beta, rng.normal(0, 1, people), seen)
    return beta[met], table[:, met]


def sampled(rng: Rng, people: int, items: int, share: float) -> Data:
    beta = rng.normal(0, 1, items)
    return answers(rng, beta, rng.normal(0, 1, people), rng.random((people, items)) < share)


def near_ability(rng: Rng, people: int = 500, items: int = 60, each: int = 15) -> Data:
    """Everybody answers the 15 of 60 items that lie nearest by a guess of their ability (sd 0.7)."""
    beta, theta = rng.normal(0, 1, items), rng.normal(0, 1, people)
    away = np.abs(beta - theta[:, None] + rng.normal(0, 0.7, (people, items)))
    seen = np.argsort(np.argsort(away, axis=1), axis=1) < each
    beta, table = answers(rng, beta, theta, seen)
    met = seen.any(axis=0)
    return beta[met], table[:, met]


DESIGNS: dict[str, Callable[[Rng], Data]] = {
    "grades150": lambda rng: grades(rng, 150),
    "grades400": lambda rng: grades(rng, 400),
    "targeted": targeted,
    "booklets": lambda rng: booklets(rng, 0.0),
    "booklets_shifted": lambda rng: booklets(rng, 1.5),
    "thin_normal": lambda rng: thin(rng, "normal"),
    "thin_exponential": lambda rng: thin(rng, "exponential"),
    "thin_t3": lambda rng: thin(rng, "t3"),
    "random": lambda rng: sampled(rng, 400, 60, 0.2),
    "complete": lambda rng: sampled(rng, 150, 12, 1.1),
    "class50": lambda rng: sampled(rng, 50, 20, 1.1),
    "class100": lambda rng: sampled(rng, 100, 20, 1.1),
    "quarter200": lambda rng: sampled(rng, 200, 40, 0.25),
    "near_ability": near_ability,
}
ESTIMATORS: dict[str, Callable[[], SpectralRasch | ConditionalRasch]] = {
    "default": SpectralRasch,
    "chain alone": lambda: SpectralRasch(refine=False),
    "CML": ConditionalRasch,
}


def measured(found: np.ndarray, se: np.ndarray, beta: np.ndarray, kept: np.ndarray) -> list[float]:
    """Squared error, coverage, slope, and coverage of items far out; over the kept items, both centered there."""
    truth, found = beta[kept] - beta[kept].mean(), found[kept] - found[kept].mean()
    inside, far = np.abs(found - truth) < 1.96 * se[kept], np.abs(beta[kept] - beta.mean()) > 1.5
    slope = np.polyfit(truth, found, 1)[0]
    return [float(np.mean((found - truth) ** 2)), inside.mean(), slope, inside[far].mean() if far.any() else np.nan]


def study(name: str, replicates: int, split: bool, seed: int) -> None:
    rows: dict[str, list[list[float]]] = {label: [] for label in ESTIMATORS}
    same: list[tuple[float, float]] = []
    rejected: list[bool] = []
    for replicate in range(replicates):
        beta, table = DESIGNS[name](np.random.default_rng(seed + replicate))
        responses = Responses.from_wide(table)
        fits = {label: make().fit(responses) for label, make in ESTIMATORS.items()}
        everywhere = np.isfinite(fits["CML"].difficulty_)
        for label, fit in fits.items():
            rows[label].append(measured(fit.difficulty_, fit.se_, beta, np.isfinite(fit.difficulty_)))
        pair = [measured(fits[label].difficulty_, fits[label].se_, beta, everywhere)[0] for label in ("default", "CML")]
        same.append((pair[0], pair[1]))
        if split:
            test = fits["default"].analyse(responses).quick_model_test()
            rejected += [] if test is None else [test.p < 0.05]
    ratio = np.sqrt(np.mean([a for a, _ in same]) / np.mean([b for _, b in same]))
    print(f"{name}: {(DESIGNS[name].__doc__ or '').strip()}")
    for label, values in rows.items():
        squared, cover, slope, far = np.nanmean(values, axis=0)
        print(f"  {label:12} rmse {np.sqrt(squared):.3f}  coverage {cover:.3f} (far out {far:.3f})  slope {slope:.3f}")
    print(f"  default / CML, on the items that CML estimates: rmse {ratio:.3f}")
    if split:
        print(f"  the test of less against more able people rejects {np.mean(rejected):.3f} of {len(rejected)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=40)
    parser.add_argument("--designs", default=",".join(DESIGNS))
    parser.add_argument("--split", action="store_true")
    parser.add_argument("--seed", type=int, default=0, help="of the first replicate")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.designs.split(","):
        study(name, options.replicates, options.split, options.seed)


if __name__ == "__main__":
    main()
