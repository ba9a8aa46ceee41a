"""Ratings: are severities, thresholds and adjusted measures of persons as sure as their standard errors say?

    python benchmarks/raters.py [--parts coverage,...,fit,misfit,agreement,halo,subsets,size] [--replicates 20] ...

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
    fit         of raters where the model holds: mean of infit, conventional and given the totals; how often infit,
                outfit and slope given the totals are beyond 1.96 standard errors; how often a rater, or halo, is named
    misfit      one rater of ten who gives some ratings at random, or two whose ratings have a slope of one half, or who
                keep to the middle categories (thresholds 2.5 times as far apart): how often they are named, as what,
                and how often any of the others is
    agreement   where the model holds: share of exact agreement of raters less the share that the model expects, and EAP
                reliability less the true one (the squared correlation of measures with abilities)
    halo        each rater has an impression of each person, of this sd in logits, that moves all ratings at once: H,
                how often it is named; coverage of persons, with and without what is added for halo; EAP reliability,
                said and true (the squared correlation with abilities); agreement. Abilities and thresholds are then
                those of raters on average, which lie nearer together: persons are compared with the truth on that scale
    subsets     two sets of five raters who share no person, one of them 2 logits more severe: coverage of persons by
                themselves, and where each subset is compared within itself, as it should be
    size        CPU seconds and memory of 36,000 persons x 11,000 raters x 9 items of five categories, 4 raters a
                person; `--times 1,10` has ten times as many persons, too. "fit": read and fit with standard errors,
                "everything": the command with all its tables; `--memory 1GB` gives a budget
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import draws
import harness
import spectral_irt as si
from spectral_irt.persons.abilities import abilities, with_severities

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


RATINGS = {
    "2 ratings a person: one item, two raters": (300, 10, 2, 1),
    "8 ratings a person: four items, two raters": (200, 10, 2, 4),
    "20 ratings a person: four items, five raters": (100, 5, 5, 4),
}  # people, raters, raters a person, items
# Raters a person, and what is odd: the share of ratings at random of rater 0; of raters 0 and 1 the slope of their
# ratings, and how many times as far apart their thresholds are.
ODD: dict[str, tuple[int, dict[str, float]]] = {
    "30% at random": (2, {"at_random": 0.3}),
    "50% at random": (2, {"at_random": 0.5}),
    "slope 0.5": (2, {"slope": 0.5}),
    "slope 0.5, four raters a person": (4, {"slope": 0.5}),
    "middle categories": (2, {"stretch": 2.5}),
    "middle categories, four raters a person": (4, {"stretch": 2.5}),
}
AGREEMENT = {
    **RATINGS,
    "2 right or wrong ratings a person: one item, two raters": (300, 10, 2, 1),
    "4 ratings a person by raters of three people: two items, two raters": (300, 200, 2, 2),
}
IMPRESSIONS = {
    "none": (0.0, 200, 10, 2),
    "sd 0.4": (0.4, 200, 10, 2),
    "sd 0.8": (0.8, 200, 10, 2),
    "sd 1.2": (1.2, 200, 10, 2),
    "sd 0.8, five raters of everybody": (0.8, 100, 5, 5),
    "none, 120 raters of seven people each": (0.0, 400, 120, 2),
}  # people, raters, raters a person


@dataclass(frozen=True)
class Drawn:
    """Ratings, and what is true of them."""

    responses: Any
    theta: np.ndarray
    severity: np.ndarray
    thresholds: np.ndarray


def drawn_ratings(
    rng: draws.Rng,
    people: int,
    n_raters: int,
    each: int,
    items: int,
    impression: float = 0.0,
    slope: float = 1.0,
    stretch: float = 1.0,
    at_random: float = 0.0,
    distances: tuple[float, ...] = (-1.2, 0.0, 1.2),
) -> Drawn:
    """So many raters for `each` person; raters 0 and 1 have this slope and stretch, rater 0 some ratings at random."""
    raters = np.array([rng.choice(n_raters, each, replace=False) for _ in range(people)])
    severity = rng.normal(0, 0.6, n_raters)
    location = rng.normal(0, 0.8, items)
    thresholds = draws.around(rng, location, distances)
    thresholds -= thresholds.mean()
    theta = rng.normal(0, 1.3, people)
    level = theta[:, None] + rng.normal(0, impression, raters.shape) - severity[raters]
    slopes, wider = (np.where(np.arange(n_raters) < 2, own, 1.0)[raters][:, :, None, None] for own in (slope, stretch))
    x = draws.categories(rng, slopes * (level[:, :, None, None] - wider * thresholds)).astype(int)
    lot = (raters[:, :, None] == 0) & (rng.random(x.shape) < at_random)
    highest = len(distances)
    x = np.where(lot, rng.integers(0, highest + 1, x.shape), x)
    responses = draws.rated(raters.tolist(), n_raters, highest, x.ravel())
    return Drawn(responses, theta - severity.mean(), severity - severity.mean(), thresholds)


def analyzed(drawn: Drawn) -> Any:
    return si.SpectralPartialCredit().fit(drawn.responses).analyse(drawn.responses)


def beyond(z: np.ndarray) -> float:
    return float(np.mean(np.abs(z[np.isfinite(z)]) > 1.96))


def fit_of_raters(design: str, seed: int) -> dict[str, float]:
    people, n_raters, each, items = RATINGS[design]
    study = analyzed(drawn_ratings(np.random.default_rng([seed, 13]), people, n_raters, each, items))
    table = study.facet("rater").to_dict(as_series=False)
    found = {name: np.array(values) for name, values in table.items()}
    return {
        "conventional infit": float(found["infit"].mean()),
        "infit": float(found["infit_conditional"].mean()),
        "infit beyond 1.96": beyond(found["infit_conditional_z"]),
        "outfit beyond 1.96": beyond(found["outfit_conditional_z"]),
        "slope beyond 1.96": beyond((found["discrimination"] - 1) / found["discrimination_se"]),
        "any rater named": float((found["misfit"] != "").any()),
        "halo named": float("halo" in [finding.code for finding in study.findings()]),
    }


def misfit(kind: str, seed: int) -> dict[str, float]:
    each, odd = ODD[kind]
    study = analyzed(drawn_ratings(np.random.default_rng([seed, 17]), 200, 10, each, 4, **odd))
    table = study.facet("rater")
    verdict = np.array(table["misfit"].to_list())
    n_odd = 1 if "at_random" in odd else 2
    of_odd = verdict[:n_odd]
    return {
        "infit": float(table["infit_conditional"].to_numpy()[:n_odd].mean()),
        "slope": float(table["discrimination"].to_numpy()[:n_odd].mean()),
        "named": float(np.mean(of_odd != "")),
        **{f"as {word}": float(np.mean(of_odd == word)) for word in ("underfit", "overfit", "central")},
        "share of the others named": float(np.mean(verdict[n_odd:] != "")),
    }


def agreement(design: str, seed: int) -> dict[str, float]:
    people, n_raters, each, items = AGREEMENT[design]
    distances = (0.0,) if "right or wrong" in design else (-1.2, 0.0, 1.2)
    rng = np.random.default_rng([seed, 29])
    drawn = drawn_ratings(rng, people, n_raters, each, items, distances=distances)
    study = analyzed(drawn)
    record = study.record()["facets"]["rater"]
    posterior = study.abilities("eap")
    reliability = study.reliability().eap_reliability
    true_reliability = float(np.corrcoef(posterior.ability, drawn.theta)[0, 1] ** 2)
    return {
        "agreement": record["agreement"],
        "less the expected": record["agreement"] - record["expected"],
        "reliability": reliability,
        "less the true": reliability - true_reliability,
    }


def halo(impressions: str, seed: int) -> dict[str, float]:
    sd, people, n_raters, each = IMPRESSIONS[impressions]
    drawn = drawn_ratings(np.random.default_rng([seed, 19]), people, n_raters, each, 4, impression=sd)
    study = analyzed(drawn)
    calibration = study.calibration
    record = study.record()["facets"]["rater"]
    flatter = np.polyfit(drawn.thresholds.ravel(), calibration.facets.items.thresholds, 1)[0]
    truth = drawn.theta * (flatter if sd else 1.0)
    persons, posterior = study.abilities("wle"), study.abilities("eap")
    plain = abilities(drawn.responses, calibration.thresholds)
    without = with_severities(plain, drawn.responses, calibration.thresholds, calibration.facets)

    def covered(found: Any) -> float:
        return float(np.mean(np.abs(found.ability - truth) < 1.96 * found.se))

    return {
        "H": record["halo"],
        "named": float("halo" in [finding.code for finding in study.findings()]),
        "persons": covered(persons),
        "persons (EAP)": covered(posterior),
        "without what halo adds": covered(without),
        "reliability": study.reliability().eap_reliability,
        "true reliability": float(np.corrcoef(posterior.ability, drawn.theta)[0, 1] ** 2),
        "agreement": record["agreement"],
        "expected agreement": record["expected"],
    }


def subsets(comparison: str, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, 23])
    severity = rng.normal(0, 0.6, 10) + np.repeat([0.0, 2.0], 5)
    meets = [(rng.choice(5, 2, replace=False) + 5 * (k % 2)).tolist() for k in range(200)]
    beta, theta = drawn_thresholds(rng), rng.normal(0, 1.2, 200)
    responses = draws.ratings(meets, severity, beta, theta, rng)
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    table = study.tables()["persons"]
    subset = table["subset"]
    center = np.array([severity[:5].mean(), severity[5:].mean()]) if comparison == "within subsets" else severity.mean()
    origin = np.broadcast_to(center, 2)[(np.arange(200) % 2)]
    error = table["ability"] - (theta - origin)
    return {
        "persons": float(np.mean(np.abs(error) < 1.96 * table["se"])),
        "subsets found": float(len(set(subset.tolist()))),
        "mean error of the second": float(error[1::2].mean()),
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
    parts = ("coverage", "assignment", "many", "lenient", "fit", "misfit", "agreement", "halo", "subsets", "size")
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
    if "fit" in asked.parts:
        harness.study("Fit of raters where the model holds", harness.cases(fit_of_raters, design=RATINGS), asked)
    if "misfit" in asked.parts:
        harness.study("Raters who misfit", harness.cases(misfit, ratings=ODD), asked)
    if "agreement" in asked.parts:
        cases = harness.cases(agreement, design=AGREEMENT)
        errors = ("less the expected", "less the true")
        harness.study("Agreement and reliability where the model holds", cases, asked, errors=errors)
    if "halo" in asked.parts:
        harness.study("Halo", harness.cases(halo, impressions=IMPRESSIONS), asked)
    if "subsets" in asked.parts:
        kinds = ("within subsets", "all of them")
        harness.study("Subsets that nothing links", harness.cases(subsets, comparison=kinds), asked)
    if "size" in asked.parts:
        harness.show("Thousands of raters", (size(times, asked.memory) for times in asked.times), asked)
