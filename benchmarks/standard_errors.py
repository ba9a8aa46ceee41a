"""Do standard errors hold where little is known: in short tests, across few linking people, beside empty categories?

python benchmarks/standard_errors.py [--parts short,links,empty] [--replicates 200] [--seed 0] [--save NAME]

short   tests of 2 to 9 items, and rating scales of few people, of 20,500 responses, and with weights (lognormal, sd
        1 of the logarithm): coverage of the 95% intervals of thresholds and of locations, their standard errors
        over their errors (root mean squares), and slopes of estimates on the truth, with standard errors over
        replicates. Data sets in which an item lost a category are left out, but for rating scales
links   two forms of four items for a hundred people each, and a few who took both: coverage of the difference of
        the two means
empty   40 items of four categories, whose thresholds lie far from a regular order (sd of offsets 3), 250 people:
        thresholds beside a category that nobody used (`unused="keep"`) and the others: coverage and root mean
        square of z. Items whose highest category nobody used are left out: it is not known to be there
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

import draws
import harness
import spectral_irt as si
from spectral_irt.calibration import Z95


class Short(NamedTuple):
    """A short test: its model, size, and the people who take it."""

    model: str
    people: int
    items: int
    categories: int
    weighted: bool = False
    floor: bool = False  # people are low, and their abilities skew


SHORT = {
    "5 items, right or wrong": Short("free", 500, 5, 2),
    "2 items, 5 categories": Short("free", 1500, 2, 5),
    "3 items, 3 categories": Short("free", 500, 3, 3),
    "3 items, 5 categories": Short("free", 500, 3, 5),
    "5 items, 5 categories": Short("free", 500, 5, 5),
    "rating scale: 6 items, 4 categories, 20 people": Short("scale", 20, 6, 4),
    "rating scale: 9 items, 4 categories, 30 people, floor": Short("scale", 30, 9, 4, floor=True),
    "rating scale: 5 items, 4 categories, 4,100 people": Short("scale", 4100, 5, 4),
    "rating scale: 5 items, 4 categories, 500 people, weights": Short("scale", 500, 5, 4, weighted=True),
}
STEP = 1.2  # logits between the first threshold of an item, or the last, and its location


def thresholds(rng: draws.Rng, test: Short) -> np.ndarray:
    steps = np.zeros(1) if test.categories == 2 else np.linspace(-STEP, STEP, test.categories - 1)
    beta = rng.normal(0, 0.7, test.items)[:, None] + steps
    if test.model == "free" and test.categories > 2:
        beta += rng.normal(0, 0.3, beta.shape)
    centered: np.ndarray = beta - beta.mean()
    return centered


def short(name: str, seed: int) -> Mapping[str, float]:
    test = SHORT[name]
    rng = np.random.default_rng([seed, 41, test.people, test.items])
    beta = thresholds(rng, test)
    theta = rng.normal(0, 1.2, test.people)
    if test.floor:
        theta = 1.2 * draws.SPREADS["exponential"](rng, test.people) - 1.5
    table = draws.categories(rng, theta[:, None, None] - beta)
    unused: Any = "keep" if test.model == "scale" else "collapse"
    responses = si.Responses.from_wide(table, ordered=test.categories > 2, unused=unused)
    if np.any(responses.thresholds.max_score != test.categories - 1):
        return {}
    weights = np.exp(rng.normal(size=test.people)) if test.weighted else None
    estimator = si.SpectralRatingScale() if test.model == "scale" else si.SpectralPartialCredit()
    fit = estimator.fit(responses, weights=weights)
    location = beta.mean(axis=1)
    away = fit.thresholds_ - beta.ravel()
    off = fit.difficulty_ - location
    found = {
        "thresholds": np.mean(np.abs(away) < Z95 * fit.threshold_se_),
        "locations": np.mean(np.abs(off) < Z95 * fit.se_),
        "squared se": np.mean(fit.threshold_se_**2),
        "squared error": np.mean(away**2),
        "slope of thresholds": np.polyfit(beta.ravel(), fit.thresholds_, 1)[0],
    }
    if test.items > 2:
        found["slope of locations"] = np.polyfit(location, fit.difficulty_, 1)[0]
    return found


FORMS = np.tile([-1.0, -0.3, 0.3, 1.0], 2)
DIFFERENCE = np.repeat([0.25, -0.25], 4)  # of the means of the two forms


def links(people_on_both: int, seed: int) -> Mapping[str, float]:
    rng = np.random.default_rng([seed, 43, people_on_both])
    theta = rng.normal(0, 1, 200 + people_on_both)
    table = draws.answers(rng, theta[:, None] - FORMS)
    table[:100, 4:] = np.nan
    table[100:200, :4] = np.nan
    fit = si.SpectralRasch().fit(table)
    se = np.sqrt(DIFFERENCE @ fit.covariance() @ DIFFERENCE)
    return {"covered": float(np.abs(DIFFERENCE @ fit.difficulty_) < Z95 * se)}


@cache
def beside_empty_categories(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(Estimate - truth) / se of every threshold, and which of them are beside an empty category."""
    rng = np.random.default_rng([seed, 47])
    offsets = rng.normal(0, 3, (40, 3))
    beta = rng.normal(0, 1, 40)[:, None] + offsets - offsets.mean(axis=1, keepdims=True)
    table = draws.categories(rng, rng.normal(0, 1, 250)[:, None, None] - beta)
    highest = table.max(axis=0) == 3
    table = table[:, highest]
    beta = beta[highest]
    counts = np.stack([(table == category).sum(axis=0) for category in range(4)], axis=1)
    responses = si.Responses.from_wide(table, ordered=True, unused="keep")
    fit = si.SpectralPartialCredit(unused="keep").fit(responses)
    z = (fit.thresholds_.reshape(-1, 3) - beta + beta.mean()) / fit.threshold_se_.reshape(-1, 3)
    return z, np.minimum(counts[:, :-1], counts[:, 1:]) == 0


def empty(where: str, seed: int) -> Mapping[str, float]:
    z, beside = beside_empty_categories(seed)
    chosen = z[beside if where == "beside an empty category" else ~beside]
    return {"covered": np.mean(np.abs(chosen) < Z95), "squared z": np.mean(chosen**2)}


def with_roots(one: Callable[[int], Mapping[str, float]], asked: Any) -> harness.Row:
    """Averages, with root mean squares in the place of mean squares."""
    shares = ("thresholds", "locations", "covered", "slope of thresholds", "slope of locations")
    row = harness.averages(one, asked.seeds, errors=shares)
    if "squared se" in row:
        row["se / error"] = np.sqrt(row.pop("squared se") / row.pop("squared error"))
    if "squared z" in row:
        row["rms z"] = np.sqrt(row.pop("squared z"))
    return row


if __name__ == "__main__":
    asked = harness.arguments(__doc__, replicates=200, parts=("short", "links", "empty"))
    tables = {
        "short": ("Short tests", "test", short, SHORT),
        "links": ("Few people link two forms", "people on both", links, (2, 3, 5, 8, 15)),
        "empty": (
            "Thresholds of items of four categories",
            "thresholds",
            empty,
            ("beside an empty category", "others"),
        ),
    }
    for part in asked.parts:
        title, head, one, names = tables[part]
        rows = ({head: name} | with_roots(partial(one, name), asked) for name in names)
        harness.show(f"{title}: {asked.replicates} replicates", rows, asked)
