"""Designs that hurt: vertical scales, targeted and weakly linked booklets, thin data. Accuracy, coverage, slope.

    python benchmarks/designs.py [--replicates 40] [--designs grades150,thin_t3] [--split] [--ordered] [--seed 0]

For every design: root mean squared error, coverage of 95% intervals (all items; items more than 1.5 logits from the
mean), slope of the estimates on the truth; for the default, the chain alone and CML, which leaves out items without a
finite estimate; and the error of the default over that of CML, on items that CML estimates. With --split also how often
the test of less against more able people rejects a true model at 5%. With --ordered, answers in categories: coverage of
thresholds and locations, slopes of locations and of the thresholds' distances from them, of the default estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import draws
import harness
from draws import Rng
from spectral_irt import ConditionalRasch, Responses, SpectralPartialCredit, SpectralRasch

Data = tuple[np.ndarray, np.ndarray]  # difficulties or thresholds of each item, answers


def answers(rng: Rng, beta: np.ndarray, theta: np.ndarray, seen: np.ndarray) -> Data:
    return beta, np.where(seen, draws.answers(rng, theta[:, None] - beta), np.nan)


def grades(people: int, rng: Rng) -> Data:
    """Five grades a logit apart, 20 items each and 4 common to neighbors; one item answered by 15 people."""
    beta = np.concatenate([rng.normal(g, 1, 20) for g in range(5)] + [rng.normal(g + 0.5, 1, 4) for g in range(4)])
    theta = np.concatenate([rng.normal(g, 1, people) for g in range(5)])
    seen = np.repeat(draws.common_items(5, 20, 4), people, axis=0)
    seen[15:, 7] = False
    return answers(rng, beta, theta, seen)


def targeted(rng: Rng, people: int = 120) -> Data:
    """Eight booklets of 20 items, each sharing 8 with the next, from easy to hard, for people who match them."""
    level = np.linspace(-2.5, 2.5, 8)
    beta = np.linspace(level[0], level[-1], 104) + rng.normal(0, 1, 104)
    theta = np.concatenate([rng.normal(mean, 1, people) for mean in level])
    beta, table = answers(rng, beta, theta, np.array(True))
    return beta, draws.window(table, np.repeat(12 * np.arange(8), people), 20)


def booklets(shift: float, rng: Rng, people: int = 300) -> Data:
    """Two booklets of 20 items with 3 in common, the second for people and items `shift` logits up."""
    beta = np.concatenate([rng.normal(0, 1, 17), rng.normal(shift, 1, 17), rng.normal(shift / 2, 1, 3)])
    theta = np.concatenate([rng.normal(0, 1, people), rng.normal(shift, 1, people)])
    return answers(rng, beta, theta, np.repeat(draws.common_items(2, 17, 3), people, axis=0))


def thin(law: str, rng: Rng, people: int = 300, items: int = 600, each: int = 16) -> Data:
    """Eight answers an item (median), difficulties with standard deviation 1 of some law."""
    beta = draws.SPREADS[law](rng, items)
    popularity = (np.arange(items) + 1.0) ** -0.3
    seen = np.zeros((people, items), dtype=bool)
    for row in seen:
        row[rng.choice(items, each, replace=False, p=popularity / popularity.sum())] = True
    beta, table = answers(rng, beta, rng.normal(0, 1, people), seen)
    return beta[seen.any(axis=0)], table[:, seen.any(axis=0)]


def sampled(people: int, items: int, share: float, rng: Rng) -> Data:
    beta = rng.normal(0, 1, items)
    return answers(rng, beta, rng.normal(0, 1, people), rng.random((people, items)) < share)


def near_ability(rng: Rng, people: int = 500, each: int = 15, spread: float = 1.0, items: int = 60) -> Data:
    """Everybody answers the `each` of 60 items that lie nearest by a guess of their ability (sd 0.7)."""
    beta, theta = rng.normal(0, spread, items), rng.normal(0, 1, people)
    away = np.abs(beta - theta[:, None] + rng.normal(0, 0.7, (people, items)))
    seen = np.argsort(np.argsort(away, axis=1), axis=1) < each
    beta, table = answers(rng, beta, theta, seen)
    return beta[seen.any(axis=0)], table[:, seen.any(axis=0)]


DESIGNS: dict[str, Callable[[Rng], Data]] = {
    **{f"grades{people}": partial(grades, people) for people in (150, 400)},
    "targeted": targeted,
    "booklets": partial(booklets, 0.0),
    "booklets_shifted": partial(booklets, 1.5),
    "thin_normal": partial(thin, "normal"),
    "thin_exponential": partial(thin, "exponential"),
    "thin_t3": partial(thin, "t with 3 degrees of freedom"),
    "random": partial(sampled, 400, 60, 0.2),
    "complete": partial(sampled, 150, 12, 1.1),
    **{f"class{people}": partial(sampled, people, 20, 1.1) for people in (30, 50, 100)},
    "quarter200": partial(sampled, 200, 40, 0.25),
    "near_ability": near_ability,
    "near_ability_wide": partial(near_ability, people=1000, each=20, spread=1.5),
}


def vertical(rng: Rng, people: int = 200) -> Data:
    """Five grades of 12 items with 4 common to neighbors; people are as able as the items of their grade are hard."""
    level = np.concatenate([np.repeat(1.2 * np.arange(5), 12), np.repeat(1.2 * np.arange(4) + 0.6, 4)])
    beta = draws.around(rng, level + 0.7 * rng.normal(size=76), [-1.0, 0, 1.0])
    table = np.full((5 * people, 76), np.nan)
    for g, seen in enumerate(draws.common_items(5, 12, 4)):
        theta = rng.normal(1.2 * g, 1, people)
        table[g * people : (g + 1) * people, seen] = draws.categories(rng, theta[:, None, None] - beta[seen])
    return beta, table


def in_categories(rng: Rng, beta: np.ndarray, theta: np.ndarray) -> np.ndarray:
    return draws.categories(rng, np.nan_to_num(theta[:, None, None] - beta, nan=-np.inf))


def by_ability(rng: Rng) -> Data:
    """Three booklets of 20 of 40 items, the harder the abler the people."""
    beta = draws.around(rng, np.sort(rng.normal(0, 1.3, 40)), [-0.8, 0.8])
    theta = rng.normal(0, 1.3, 900)
    table = in_categories(rng, beta, theta)
    return beta, draws.window(table, np.digitize(theta + 0.5 * rng.normal(size=900), [-0.6, 0.6]) * 10, 20)


def rare(rng: Rng) -> Data:
    """Fifteen items that 500 people answered, five that 10 did."""
    beta = draws.around(rng, rng.normal(size=20), [-0.8, 0.8])
    table = in_categories(rng, beta, rng.normal(size=500))
    for item in range(15, 20):
        table[rng.permutation(500)[10:], item] = np.nan
    return beta, table


def popular(rng: Rng) -> Data:
    """Sixty items of which the first are seen by all, the last by one person in thirty."""
    beta = draws.around(rng, rng.normal(size=60), [-0.8, 0.8])
    table = in_categories(rng, beta, rng.normal(size=800))
    table[rng.random(table.shape) > (1 + np.arange(60)) ** -0.8] = np.nan
    return beta, table


def disordered(rng: Rng) -> Data:
    """Thresholds without regard to their order, in items with 2 to 5 categories."""
    beta = rng.normal(size=(16, 4))
    beta[np.arange(4) > np.arange(16)[:, None] % 4] = np.nan
    return beta, in_categories(rng, beta, rng.normal(size=600))


def complete(people: int, rng: Rng) -> Data:
    """Twenty items with four categories, all of which everybody answers."""
    beta = draws.around(rng, rng.normal(size=20), [-1.0, 0, 1.0])
    return beta, in_categories(rng, beta, rng.normal(size=people))


ORDERED: dict[str, Callable[[Rng], Data]] = {
    "five grades with common items": vertical,
    "targeted booklets": by_ability,
    "five items with 10 answers": rare,
    "popular and rare items": popular,
    "out of order (2 to 5 categories)": disordered,
    **{f"{people} people": partial(complete, people) for people in (50, 100)},
}

ESTIMATORS: dict[str, Callable[[], Any]] = {
    "default": SpectralRasch,
    "chain alone": lambda: SpectralRasch(refine=False),
    "CML": ConditionalRasch,
}


def measured(found: np.ndarray, se: np.ndarray, beta: np.ndarray, kept: np.ndarray) -> dict[str, float]:
    """Over the kept items, both centered there."""
    truth, found = beta[kept] - beta[kept].mean(), found[kept] - found[kept].mean()
    inside, far = np.abs(found - truth) < 1.96 * se[kept], np.abs(beta[kept] - beta.mean()) > 1.5
    return {
        "squared error": float(np.mean((found - truth) ** 2)),
        "coverage": inside.mean(),
        "far out": inside[far].mean() if far.any() else np.nan,
        "slope": np.polyfit(truth, found, 1)[0],
    }


def replicate(name: str, split: bool, seed: int) -> dict[str, float]:
    """All measures of all estimators, under names of both."""
    beta, table = DESIGNS[name](np.random.default_rng(seed))
    responses = Responses.from_wide(table)
    fits = {label: make().fit(responses) for label, make in ESTIMATORS.items()}
    out = {}
    for label, fit in fits.items():
        kept = np.isfinite(fit.difficulty_)
        out |= {f"{label} {what}": x for what, x in measured(fit.difficulty_, fit.se_, beta, kept).items()}
    for label in ("default", "CML"):
        same = measured(fits[label].difficulty_, fits[label].se_, beta, np.isfinite(fits["CML"].difficulty_))
        out[f"{label} same"] = same["squared error"]
    if split and (test := fits["default"].analyse(responses).quick_model_test()) is not None:
        out["rejected"] = float(test.p < 0.05)
    return out


def rows_of(name: str, asked: Any) -> Iterator[harness.Row]:
    found = harness.averages(partial(replicate, name, asked.split), asked.seeds)
    for label in ESTIMATORS:
        row = {"design": name, "estimator": label, "rmse": np.sqrt(found[f"{label} squared error"])}
        row |= {what: found[f"{label} {what}"] for what in ("coverage", "far out", "slope")}
        if label == "default":
            row |= {"rmse / CML's": np.sqrt(found["default same"] / found["CML same"])}
            row |= {what: found[what] for what in ("rejected",) if what in found}
        yield row


def in_order(name: str, seed: int) -> dict[str, float]:
    beta, table = ORDERED[name](np.random.default_rng(seed))
    there = np.isfinite(beta)
    responses = Responses.from_wide(table, ordered=True, unused="keep" if there.all() else "collapse")
    if not np.array_equal(responses.thresholds.max_score, there.sum(axis=1)):
        return {}  # of items with different categories, one that nobody used is not known to be there
    fit = SpectralPartialCredit().fit(responses)
    where, n = np.nanmean(beta, axis=1), there.sum(axis=1)
    zero = where[np.isfinite(fit.difficulty_)].mean()
    away = fit.thresholds_ - beta[there] + zero
    inside, far = np.abs(fit.difficulty_ - where + zero) < 1.96 * fit.se_, np.abs(where - where.mean()) > 1.5
    apart, found = beta[there] - np.repeat(where, n), fit.thresholds_ - np.repeat(fit.difficulty_, n)
    return {
        "rmse": np.sqrt(np.nanmean(away**2)),
        "thresholds": np.mean(np.abs(away) < 1.96 * fit.threshold_se_),
        "locations": np.mean(inside),
        "far out": np.mean(inside[far]) if far.any() else np.nan,
        "slope": np.polyfit(where, fit.difficulty_, 1)[0],
        "slope of distances": np.polyfit(apart, found, 1)[0],
    }


if __name__ == "__main__":
    asked = harness.arguments(__doc__, replicates=40, designs=(*DESIGNS, *ORDERED), split=False, ordered=False)
    names = [name for name in asked.designs if name in (ORDERED if asked.ordered else DESIGNS)]
    if asked.ordered:
        harness.study("Designs, categories", harness.cases(in_order, design=names), asked)
    else:
        rows = (row for name in names for row in rows_of(name, asked))
        harness.show(f"Designs: {asked.replicates} replicates", rows, asked)
