"""Ratings: are severities, thresholds and adjusted measures of persons as sure as their standard errors say?

    python benchmarks/raters.py [--parts coverage,assignment,many,lenient,size] [--replicates 20] [--designs ...]

Five items in four categories, raters whose severities have a standard deviation of 0.6 logits; new ones, new persons
and new ratings in every replicate.

    coverage    of 95% intervals of severities, of the items' thresholds and of persons' measures (Warm's, of everybody:
                leaving out extreme scores flattens the slope by itself); the slopes of estimates on the truth, with
                standard errors over replicates, and that of persons' measures where all else is known
    assignment  of the second rater by lot, by an earlier test, or by the first rating, which breaks the conditional
                likelihood: how much more severe raters of the better half seem than those of the others
    many        20 to 400 raters of 4, 7 or 14 persons each, two a person, four items: coverage, slopes, the root mean
                squared error of severities, by what severities and thresholds were multiplied to take off their bias of
                first order, and the share of raters on whom a prior acts
    lenient     one rater at -2.5 logits who rated six persons, among seven of 40 persons each: coverage of that rater
    size        CPU seconds and memory of 36,000 persons x 11,000 raters x 9 items of five categories, 4 raters a
                person; `--times 1,10` has ten times as many persons, too. "fit": read and fit with standard errors,
                "everything": the command with all its tables; `--memory 1GB` gives a budget
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import draws
import harness
import spectral_irt as si
from spectral_irt.persons.abilities import abilities

ITEMS, CATEGORIES, RATERS = 5, 4, 11_000
SLOPES = ("slope of severities", "slope of thresholds", "slope of persons", "slope of persons (all else known)")
FIT = """
import sys, spectral_irt as si
if sys.argv[2:]:
    si.set_memory(*sys.argv[2:])
si.SpectralPartialCredit().fit(si.read(sys.argv[1], facets="rater"))
"""


def two_each(rng: draws.Rng, people: int = 300, raters: int = 12) -> list[list[int]]:
    return [rng.choice(raters, 2, replace=False).tolist() for _ in range(people)]


def nested(people: int = 300, groups: int = 4, common: int = 10) -> list[list[int]]:
    """Three raters a school rate its own persons; ten persons are rated by a rater of each."""
    own = [[3 * (k % groups) + j for j in range(3)] for k in range(people)]
    return own + [[3 * g for g in range(groups)] for _ in range(common)]


def few_by_severe(rng: draws.Rng, people: int = 300) -> list[list[int]]:
    """Ten raters in pairs; two more, who are severe, rate eight persons each."""
    meets = two_each(rng, people, 10)
    for k in range(16):
        meets[k].append(10 + k % 2)
    return meets


DESIGNS: dict[str, Any] = {
    "everybody by every rater": lambda rng: [list(range(6)) for _ in range(150)],
    "two raters a person": two_each,
    "in a spiral: each rater with two neighbors": lambda rng: [[k % 12, (k + 1) % 12] for k in range(300)],
    "four groups of three raters linked by ten people": lambda rng: nested(),
    "ten raters and two severe ones of eight people each": few_by_severe,
    "600 raters of seven people each, two a person": lambda rng: two_each(rng, 2100, 600),
}
CHOSEN = ("by lot", "by an earlier test", "by the first rating")


def drawn_thresholds(rng: draws.Rng, items: int = ITEMS, categories: int = CATEGORIES) -> np.ndarray:
    beta = np.sort(rng.normal(size=(items, categories - 1)), axis=1)
    return beta - beta.mean()


def coverage(design: str, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, 7])
    meets = DESIGNS[design](rng)
    severity = rng.normal(0, 0.6, 1 + max(map(max, meets)))
    if "severe" in design:
        severity[-2:] = 2.0
    severity -= severity.mean()
    beta, theta = drawn_thresholds(rng), rng.normal(0, 1.2, len(meets))
    responses = draws.ratings(meets, severity, beta, theta, rng)
    fit = si.SpectralPartialCredit().fit(responses)
    found, items = fit.calibration_.facets.of["rater"], fit.calibration_.facets.items
    persons = fit.analyse(responses).abilities()
    item, rater = responses.facets.codes.T
    known = abilities(responses, (beta[item] + severity[rater][:, None]).ravel())
    pairs = [(severity, found["severity"]), (beta.ravel(), items.thresholds)]
    pairs += [(theta, persons.ability), (theta, known.ability)]
    return {
        "severities": float(np.mean(np.abs(found["severity"] - severity) < 1.96 * found["se"])),
        "thresholds": float(np.mean(np.abs(items.thresholds - beta.ravel()) < 1.96 * items.threshold_se)),
        "persons": float(np.mean(np.abs(persons.ability - theta) < 1.96 * persons.se)),
        **{name: np.polyfit(*each, 1)[0] for name, each in zip(SLOPES, pairs, strict=True)},
    }


def balanced(rng: draws.Rng, raters: int, persons_each: int) -> list[list[int]]:
    """Two raters a person by lot, so many persons a rater; the few who drew the same rater twice are left out."""
    seats = rng.permutation(np.repeat(np.arange(raters), persons_each)).reshape(-1, 2)
    return seats[seats[:, 0] != seats[:, 1]].tolist()


def many(raters: int, persons_each: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, 13, raters, persons_each])
    meets = balanced(rng, raters, persons_each)
    severity = rng.normal(0, 0.6, raters)
    severity -= severity.mean()
    beta = drawn_thresholds(rng, items=4)
    responses = draws.ratings(meets, severity, beta, rng.normal(0, 1.3, len(meets)), rng)
    rated = si.SpectralPartialCredit().fit(responses).calibration_.facets
    raters_found, items = rated.of["rater"], rated.items
    error = raters_found["severity"] - severity
    return {
        "severities": float(np.mean(np.abs(error) < 1.96 * raters_found["se"])),
        "thresholds": float(np.mean(np.abs(items.thresholds - beta.ravel()) < 1.96 * items.threshold_se)),
        "slope of severities": np.polyfit(severity, raters_found["severity"], 1)[0],
        "slope of thresholds": np.polyfit(beta.ravel(), items.thresholds, 1)[0],
        "rms error of severities": float(np.sqrt(np.mean(error**2))),
        "factor of severities": rated.factor["rater"],
        "factor of thresholds": rated.factor["items"],
        "raters under a prior": float(rated.under_prior["rater"].mean()),
    }


def lenient(persons: int, seed: int) -> dict[str, float]:
    """Three items; two raters a person by lot, of which the lenient one keeps so many persons."""
    rng = np.random.default_rng([seed, 17])
    severity = np.append(-2.5, rng.normal(0, 0.6, 7))
    severity -= severity.mean()
    meets = two_each(rng, 160, 8)
    met = [k for k, own in enumerate(meets) if 0 in own]
    for k in rng.permutation(met)[persons:].tolist():
        meets[k].remove(0)
    beta = drawn_thresholds(rng, items=3)
    responses = draws.ratings(meets, severity, beta, rng.normal(0, 1.3, len(meets)), rng)
    found = si.SpectralPartialCredit().fit(responses).calibration_.facets.of["rater"]
    error = found["severity"] - severity
    inside = np.abs(error) < 1.96 * found["se"]
    return {
        "the lenient rater": float(inside[0]),
        "drawn in by": float(error[0]),
        "the others": float(inside[1:].mean()),
        "rms error of severities": float(np.sqrt(np.mean(error**2))),
    }


def assignment(chosen: str, seed: int, people: int = 300) -> dict[str, float]:
    """The first rater is one of six by lot; the second one of three for the better half, or of three for the others."""
    rng = np.random.default_rng([seed, 11])
    severity = rng.normal(0, 0.6, 12)
    severity -= severity.mean()
    beta, theta = drawn_thresholds(rng), rng.normal(0, 1.2, people)
    raters = np.stack([rng.integers(0, 6, people), rng.integers(6, 9, people), rng.integers(9, 12, people)], axis=1)
    x = draws.categories(rng, (theta[:, None] - severity[raters])[:, :, None, None] - beta).astype(int)
    half = {"by lot": rng.random(people), "by an earlier test": theta + rng.normal(0, 0.6, people)}
    half["by the first rating"] = x[:, 0].sum(axis=1) + 1e-6 * rng.random(people)
    second = np.where(half[chosen] > np.median(half[chosen]), 1, 2)
    seen = np.stack([np.zeros(people, dtype=int), second], axis=1)
    who = np.arange(people)[:, None]
    responses = draws.rated(raters[who, seen].tolist(), 12, CATEGORIES - 1, x[who, seen].ravel())
    found = si.SpectralPartialCredit().fit(responses).calibration_.facets.of["rater"]
    error = found["severity"] - severity
    return {
        "severities": float(np.mean(np.abs(error) < 1.96 * found["se"])),
        "raters of the better half too severe by": float(error[6:9].mean() - error[9:].mean()),
    }


def write(path: Path, times: int) -> int:
    """The table of the size, a row for each rating; how many there are."""
    rng = np.random.default_rng(31)
    people, n_raters, n_items, each = 36_000 * times, RATERS, 9, 4
    severity, beta = rng.normal(0, 0.5, n_raters), drawn_thresholds(rng, n_items, 5)
    tables = []
    for start in range(0, people, 6_000):
        person = np.arange(start, min(start + 6_000, people))
        # Four raters a person that differ: one from each quarter.
        raters = rng.integers(0, n_raters // each, (len(person), each)) + np.arange(each) * (n_raters // each)
        logit = (rng.normal(0, 1.2, len(person))[:, None] - severity[raters])[:, :, None, None] - beta
        x = draws.categories(rng, logit)
        columns = (person[:, None, None], np.arange(n_items), raters[:, :, None], x)
        named = zip(("person", "item", "rater", "rating"), columns, strict=True)
        tables.append(pl.DataFrame({name: np.broadcast_to(one, x.shape).ravel().astype("i4") for name, one in named}))
    pl.concat(tables).write_parquet(path)
    return people * each * n_items


def size(times: int, memory: str) -> harness.Row:
    with tempfile.TemporaryDirectory(prefix="raters-", dir="/var/tmp") as scratch:
        path = Path(scratch) / "ratings.parquet"
        row: harness.Row = {"ratings": write(path, times), "raters": RATERS, "memory": memory or "no budget"}
        command = [sys.executable, "-m", "spectral_irt", "fit", path, "--facet", "rater", "-q", "-o", f"{scratch}/out"]
        budget = ["--memory", memory, "--spill", scratch] if memory else []
        script = [sys.executable, "-c", FIT, path, *([memory, scratch] if memory else [])]
        for what, argv in (("fit", script), ("everything", [*command, *budget])):
            used = harness.command(argv)
            row |= {f"{what} CPU s": used.cpu, f"{what} GB": used.memory / 1e9}
    return row


if __name__ == "__main__":
    parts = ("coverage", "assignment", "many", "lenient", "size")
    asked = harness.arguments(__doc__, replicates=20, parts=parts, designs=tuple(DESIGNS), times=(1,), memory="")
    if "coverage" in asked.parts:
        cases = harness.cases(coverage, design=asked.designs)
        harness.study("Coverage of 95% intervals of ratings", cases, asked, errors=SLOPES)
    if "assignment" in asked.parts:
        harness.study("Who is rated by whom", harness.cases(assignment, second_rater=CHOSEN), asked)
    if "many" in asked.parts:
        cases = harness.cases(many, raters=(20, 60, 80, 100, 200), persons_each=(4, 7, 14))
        cases += harness.cases(many, raters=(400,), persons_each=(4,))
        harness.study("Many raters of few persons", cases, asked, errors=SLOPES[:2])
    if "lenient" in asked.parts:
        harness.study("A lenient rater of few persons", harness.cases(lenient, persons=(6, 12)), asked)
    if "size" in asked.parts:
        harness.show("Thousands of raters", (size(times, asked.memory) for times in asked.times), asked)
