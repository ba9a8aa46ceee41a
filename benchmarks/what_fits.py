"""What the summary says of data that fit, and of data that do not: how often it raises which warning.

    python benchmarks/what_fits.py [--replicates 100] [--settings all] [--seed 0]

Under the model, the share of data sets with any finding of the checks of fit should be about 5%; where two abilities,
testlets or copied answers are in the data, the finding that names the trouble should be there (`share`), and be a
warning where it is large (`warning`). The last columns are CPU seconds of the fit and of the checks (dimensions,
dependent items, halves, people; not the fit of the items).
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np

import harness
from draws import Rng, answers
from spectral_irt import SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.analysis.cache import columns_of
from spectral_irt.data import Responses

WARNINGS = ("misfitting_items", "unequal_halves", "dependent_items", "second_dimension", "erratic_people")
CAUSES = ("unequal_slopes", "guessing", "last_items")
SHORT = ("items", "halves", "pairs", "contrast", "people", "slopes", "guessing", "last")

Make = Callable[[Rng], Responses]


def under_the_model(n: int, m: int, **design) -> Make:
    return lambda rng: simulate.rasch(n, m, seed=int(rng.integers(2**31)), **design).responses


def in_categories(n: int, m: int, **design) -> Make:
    return lambda rng: simulate.partial_credit(n, m, categories=4, seed=int(rng.integers(2**31)), **design).responses


def vertical(n: int = 2000, sets: int = 5, length: int = 12) -> Make:
    """Four grades a logit apart; each answers the items of its own level and of the next."""

    def make(rng: Rng) -> Responses:
        level = np.repeat(np.arange(sets), length)
        grade = np.arange(n) % (sets - 1)
        theta = grade - 1.5 + rng.normal(size=n)
        x = answers(rng, theta[:, None] - (level - 2 + rng.normal(0, 0.7, sets * length)))
        shown = (level == grade[:, None]) | (level == grade[:, None] + 1)
        return Responses.from_wide(np.where(shown, x, np.nan))

    return make


def two_abilities(r: float, n: int = 2000, m: int = 20) -> Make:
    def make(rng: Rng) -> Responses:
        theta = rng.multivariate_normal([0, 0], [[1, r], [r, 1]], n)
        return Responses.from_wide(answers(rng, theta[:, np.arange(m) * 2 // m] - rng.normal(size=m)))

    return make


def two_traits(r: float, n: int = 2000, m: int = 12) -> Make:
    """The same in four categories."""

    def make(rng: Rng) -> Responses:
        theta = rng.multivariate_normal([0, 0], [[1, r], [r, 1]], n)
        halves = [in_categories(n, m // 2, ability=theta[:, k])(rng).to_dense() for k in (0, 1)]
        return Responses.from_wide(np.concatenate(halves, axis=1), ordered=True)

    return make


def in_testlets(sd: float = 1.0, n: int = 2000, number: int = 5, length: int = 4) -> Make:
    def make(rng: Rng) -> Responses:
        theta = rng.normal(size=(n, 1)) + np.repeat(rng.normal(0, sd, (n, number)), length, axis=1)
        return Responses.from_wide(answers(rng, theta - rng.normal(size=number * length)))

    return make


def copied(share: float, pairs: int = 3, n: int = 2000, m: int = 20) -> Make:
    """The answer to the second item of some pairs is that to the first, for a share of the people."""

    def make(rng: Rng) -> Responses:
        x = answers(rng, rng.normal(size=(n, 1)) - rng.normal(size=m))
        for k in range(pairs):
            who = rng.random(n) < share
            x[who, 2 * k + 1] = x[who, 2 * k]
        return Responses.from_wide(x)

    return make


def slopes(sd: float = 0.5, n: int = 2000, m: int = 30) -> Make:
    return lambda rng: under_the_model(n, m, slopes=np.exp(rng.normal(0, sd, m)))(rng)


def guessing(floor: float = 0.25, n: int = 2000, m: int = 30) -> Make:
    return lambda rng: Responses.from_wide(answers(rng, rng.normal(0, 1.2, (n, 1)) - rng.normal(0.5, 1, m), floor))


def speed(share: float = 0.2, n: int = 2000, m: int = 30) -> Make:
    """A share of the people stops in the last third, and what they did not reach is wrong."""

    def make(rng: Rng) -> Responses:
        x = answers(rng, rng.normal(size=(n, 1)) - rng.normal(size=m))
        stop = np.where(rng.random(n) < share, rng.integers(2 * m // 3, m, n), m)
        return Responses.from_wide(np.where(np.arange(m) < stop[:, None], x, 0.0))

    return make


def careless(share: float = 0.1, n: int = 2000, m: int = 30) -> Make:
    def make(rng: Rng) -> Responses:
        logit = rng.normal(size=(n, 1)) - rng.normal(size=m)
        logit[: int(share * n)] = 0.0
        return Responses.from_wide(answers(rng, logit))

    return make


GOOD: dict[str, Make] = {
    "5 items, 500 people": under_the_model(500, 5),
    "5 items, 2,000 people": under_the_model(2000, 5),
    "20 items, 500 people": under_the_model(500, 20),
    "20 items, 2,000 people": under_the_model(2000, 20),
    "60 items, 500 people": under_the_model(500, 60),
    "60 items, 2,000 people": under_the_model(2000, 60),
    "60 items in 6 booklets, 2,000 people": under_the_model(2000, 60, design="booklets", booklets=6),
    "60 items, 30% seen, 500 people": under_the_model(500, 60, design="sampled", p=0.3),
    "60 items, 30% seen, 2,000 people": under_the_model(2000, 60, design="sampled", p=0.3),
    "vertical, 4 grades, 2,000 people": vertical(),
    "12 items in 4 categories, 500 people": in_categories(500, 12),
    "12 items in 4 categories, 2,000 people": in_categories(2000, 12),
    "12 items in 4 categories, 80% seen, 2,000 people": in_categories(2000, 12, design="sampled", p=0.8),
}
BAD: dict[str, tuple[Make, tuple[str, ...]]] = {
    "two abilities, r = 0": (two_abilities(0.0), ("second_dimension",)),
    "two abilities, r = 0.5": (two_abilities(0.5), ("second_dimension",)),
    "two abilities, r = 0.8": (two_abilities(0.8), ("second_dimension",)),
    "two traits, r = 0.5, 4 categories": (two_traits(0.5), ("second_dimension",)),
    "5 testlets of 4, sd 1": (in_testlets(), ("dependent_items",)),
    "5 testlets of 4, sd 0.5": (in_testlets(0.5), ("dependent_items", "second_dimension")),
    "3 pairs, copied by 50%": (copied(0.5), ("dependent_items",)),
    "3 pairs, copied by 25%": (copied(0.25), ("dependent_items",)),
    "unequal slopes": (slopes(), ("misfitting_items", "unequal_halves")),
    "slopes sd 0.3, 20 items": (slopes(0.3, m=20), ("misfitting_items", "unequal_halves", "unequal_slopes")),
    "slopes sd 0.3, 60 items": (slopes(0.3, m=60), ("misfitting_items", "unequal_halves", "unequal_slopes")),
    "guessing": (guessing(), ("misfitting_items", "unequal_halves")),
    "speed": (speed(), ("dependent_items",)),
    "10% answer at random": (careless(), ("erratic_people",)),
}


def measure(make: Make, replicates: int, seed: int) -> tuple[list[dict[str, str]], float, float]:
    """The codes of the findings in every data set, with severities; CPU seconds of a fit and of the checks."""
    found, fitting, checking = [], 0.0, 0.0
    for k in range(replicates):
        responses = make(np.random.default_rng([seed, k]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.process_time()
            fit = (SpectralRasch if responses.thresholds.binary else SpectralPartialCredit)().fit(responses)
            fitting += time.process_time() - start
            study = fit.analyse(responses)
            columns_of(study.item_fit)
            start = time.process_time()
            found.append({finding.code: finding.severity for finding in study.checks().findings})
            checking += time.process_time() - start
    return found, fitting / replicates, checking / replicates


def row(name: str, make: Make, wanted: tuple[str, ...], replicates: int, seed: int) -> harness.Row:
    found, fitting, checking = measure(make, replicates, seed)
    count = Counter(code for codes in found for code in codes)
    share = np.mean([bool(codes.keys() & set(wanted)) for codes in found])
    warned = np.mean([any(codes.get(code) == "warning" for code in wanted) for codes in found])
    each = {short: count[code] / replicates for short, code in zip(SHORT, WARNINGS + CAUSES, strict=True)}
    return {"data": name, "share": share, "warning": warned, **each, "fit s": fitting, "checks s": checking}


if __name__ == "__main__":
    asked = harness.arguments(__doc__, replicates=100, settings="all")
    good = {name: (make, WARNINGS) for name, make in GOOD.items()}
    for title, group in (("the model holds: any finding", good), ("it does not: the finding wanted", BAD)):
        chosen = {name: group[name] for name in group if asked.settings == "all" or asked.settings in name}
        rows = (row(name, *how, asked.replicates, asked.seed) for name, how in chosen.items())
        harness.show(f"{title}, {asked.replicates} replicates", rows, asked)
