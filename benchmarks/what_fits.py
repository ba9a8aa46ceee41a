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
from functools import partial

import numpy as np

import harness
from draws import Rng, answers
from spectral_irt import Responses, SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.analysis.cache import columns_of

WARNINGS = ("misfitting_items", "unequal_halves", "dependent_items", "second_dimension", "erratic_people")
CAUSES = ("unequal_slopes", "guessing", "last_items")
SHORT = ("items", "halves", "pairs", "contrast", "people", "slopes", "guessing", "last")

Make = Callable[[Rng], Responses]


def under_the_model(n: int, m: int, rng: Rng, **design) -> Responses:
    return simulate.rasch(n, m, seed=int(rng.integers(2**31)), **design).responses


def in_categories(n: int, m: int, rng: Rng, **design) -> Responses:
    return simulate.partial_credit(n, m, categories=4, seed=int(rng.integers(2**31)), **design).responses


def vertical(rng: Rng, n: int = 2000, sets: int = 5, length: int = 12) -> Responses:
    """Four grades a logit apart; each answers the items of its own level and of the next."""
    level = np.repeat(np.arange(sets), length)
    grade = np.arange(n) % (sets - 1)
    theta = grade - 1.5 + rng.normal(size=n)
    x = answers(rng, theta[:, None] - (level - 2 + rng.normal(0, 0.7, sets * length)))
    shown = (level == grade[:, None]) | (level == grade[:, None] + 1)
    return Responses.from_wide(np.where(shown, x, np.nan))


def two_abilities(r: float, rng: Rng, n: int = 2000, m: int = 20) -> Responses:
    theta = rng.multivariate_normal([0, 0], [[1, r], [r, 1]], n)
    return Responses.from_wide(answers(rng, theta[:, np.arange(m) * 2 // m] - rng.normal(size=m)))


def two_traits(r: float, rng: Rng, n: int = 2000, m: int = 12) -> Responses:
    """The same in four categories."""
    theta = rng.multivariate_normal([0, 0], [[1, r], [r, 1]], n)
    halves = [in_categories(n, m // 2, rng, ability=theta[:, k]).to_dense() for k in (0, 1)]
    return Responses.from_wide(np.concatenate(halves, axis=1), ordered=True)


def in_testlets(sd: float, rng: Rng, n: int = 2000, number: int = 5, length: int = 4) -> Responses:
    theta = rng.normal(size=(n, 1)) + np.repeat(rng.normal(0, sd, (n, number)), length, axis=1)
    return Responses.from_wide(answers(rng, theta - rng.normal(size=number * length)))


def copied(share: float, rng: Rng, pairs: int = 3, n: int = 2000, m: int = 20) -> Responses:
    """The answer to the second item of some pairs is that to the first, for a share of the people."""
    x = answers(rng, rng.normal(size=(n, 1)) - rng.normal(size=m))
    for k in range(pairs):
        who = rng.random(n) < share
        x[who, 2 * k + 1] = x[who, 2 * k]
    return Responses.from_wide(x)


def slopes(sd: float, m: int, rng: Rng) -> Responses:
    return under_the_model(2000, m, rng, slopes=np.exp(rng.normal(0, sd, m)))


def guessing(rng: Rng, floor: float = 0.25, n: int = 2000, m: int = 30) -> Responses:
    return Responses.from_wide(answers(rng, rng.normal(0, 1.2, (n, 1)) - rng.normal(0.5, 1, m), floor))


def speed(rng: Rng, share: float = 0.2, n: int = 2000, m: int = 30) -> Responses:
    """A share of the people stops in the last third, and what they did not reach is wrong."""
    x = answers(rng, rng.normal(size=(n, 1)) - rng.normal(size=m))
    stop = np.where(rng.random(n) < share, rng.integers(2 * m // 3, m, n), m)
    return Responses.from_wide(np.where(np.arange(m) < stop[:, None], x, 0.0))


def careless(rng: Rng, share: float = 0.1, n: int = 2000, m: int = 30) -> Responses:
    logit = rng.normal(size=(n, 1)) - rng.normal(size=m)
    logit[: int(share * n)] = 0.0
    return Responses.from_wide(answers(rng, logit))


SEEN = {"design": "sampled", "p": 0.3}
GOOD: dict[str, Make] = {
    **{f"{m} items, {n:,} people": partial(under_the_model, n, m) for m in (5, 20, 60) for n in (500, 2000)},
    "60 items in 6 booklets, 2,000 people": partial(under_the_model, 2000, 60, design="booklets", booklets=6),
    **{f"60 items, 30% seen, {n:,} people": partial(under_the_model, n, 60, **SEEN) for n in (500, 2000)},
    "vertical, 4 grades, 2,000 people": vertical,
    **{f"12 items in 4 categories, {n:,} people": partial(in_categories, n, 12) for n in (500, 2000)},
    "12 items in 4 categories, 80% seen, 2,000 people": partial(in_categories, 2000, 12, design="sampled", p=0.8),
}
MISFIT = ("misfitting_items", "unequal_halves")
BAD: dict[str, tuple[Make, tuple[str, ...]]] = {
    **{f"two abilities, r = {r:g}": (partial(two_abilities, r), ("second_dimension",)) for r in (0, 0.5, 0.8)},
    "two traits, r = 0.5, 4 categories": (partial(two_traits, 0.5), ("second_dimension",)),
    "5 testlets of 4, sd 1": (partial(in_testlets, 1.0), ("dependent_items",)),
    "5 testlets of 4, sd 0.5": (partial(in_testlets, 0.5), ("dependent_items", "second_dimension")),
    **{f"3 pairs, copied by {p:.0%}": (partial(copied, p), ("dependent_items",)) for p in (0.5, 0.25)},
    "unequal slopes": (partial(slopes, 0.5, 30), MISFIT),
    **{f"slopes sd 0.3, {m} items": (partial(slopes, 0.3, m), (*MISFIT, "unequal_slopes")) for m in (20, 60)},
    "guessing": (guessing, MISFIT),
    "speed": (speed, ("dependent_items",)),
    "10% answer at random": (careless, ("erratic_people",)),
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
