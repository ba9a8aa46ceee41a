"""How often does a comparison of groups blame items that do not differ, and find those that do?

    python benchmarks/differential.py [--replicates 200] [--people 500] [--designs A,B] [--categories 2] [--seed 0]

20 items, two groups of so many people; answers are right or wrong, or in so many categories. In some designs 4 items
are harder for the second group by 0.8 logits, or that group is abler by a logit; in some, everybody answers half of the
items at random, or one of four booklets of ten; in some, items have unequal slopes, the same in both groups. In the
last ones an item is half or twice as steep in the second group, and as hard on the whole.

Shares with p < 0.05: clean: of items that do not differ, by default (anchors purified); all anchors: with all items as
anchors; clean MH: by Mantel and Haenszel's statistic; power: of items that differ; named: those named in the summary
(class B or C, adjusted p < 0.05); falsely: data sets in which a clean item is named; interaction, steep: by the
interaction with ability, of items without one and with one.
"""

from __future__ import annotations

import numpy as np

import draws
import harness
from spectral_irt import Responses, SpectralPartialCredit, SpectralRasch

ITEMS, DIFFER, BY, SLOPES = 20, 4, 0.8, 0.3  # the last is the standard deviation of the logarithms of slopes
# items that differ, impact, what is answered, discrimination of an item in the second group
DESIGNS: dict[str, tuple[bool, float, str, float]] = {
    "no difference": (False, 0.0, "all", 1.0),
    "no difference; abler by 1": (False, 1.0, "all", 1.0),
    "no difference; half answered": (False, 0.0, "half", 1.0),
    "no difference; booklets; abler by 1": (False, 1.0, "booklets", 1.0),
    "4 of 20": (True, 0.0, "all", 1.0),
    "4 of 20; abler by 1": (True, 1.0, "all", 1.0),
    "4 of 20; half answered": (True, 0.0, "half", 1.0),
    "4 of 20; booklets; abler by 1": (True, 1.0, "booklets", 1.0),
    "slopes sd 0.3": (False, 0.0, "slopes", 1.0),
    "slopes sd 0.3; abler by 1": (False, 1.0, "slopes", 1.0),
    "slopes sd 0.3; 4 of 20; abler by 1": (True, 1.0, "slopes", 1.0),
    "half as steep": (False, 0.0, "all", 0.5),
    "twice as steep": (False, 0.0, "all", 2.0),
}


def draw(design: str, people: int, seed: int, categories: int) -> tuple[Responses, np.ndarray, np.ndarray, np.ndarray]:
    """Answers, groups, which items differ, and which do so by ability."""
    differ, impact, answered, steep = DESIGNS[design]
    rng = np.random.default_rng([seed, people])
    beta = rng.normal(size=ITEMS)
    moved = np.isin(np.arange(ITEMS), rng.permutation(ITEMS)[:DIFFER]) & differ
    one = (np.arange(ITEMS) == np.argmin(np.abs(beta))) & (steep != 1)
    second = np.repeat([False, True], people)[:, None]
    theta = rng.normal(size=(2 * people, 1)) + impact * second
    slope = np.where(second & one, steep, 1.0)
    if answered == "slopes":
        slope = slope * np.exp(SLOPES * rng.normal(size=ITEMS))
    logit = slope * (theta - beta - BY * (moved & second))
    if categories == 2:
        table = draws.answers(rng, logit)
    else:  # thresholds as far apart for every item
        table = draws.categories(rng, logit[..., None] - np.linspace(-0.8, 0.8, categories - 1))
    if answered == "half":
        table[rng.random(table.shape) < 0.5] = np.nan
    if answered == "booklets":  # items 0-9, 5-14, 10-19, and 15-19 with 0-4
        start = 5 * rng.integers(4, size=(2 * people, 1))
        table[(np.arange(ITEMS) - start) % ITEMS >= ITEMS // 2] = np.nan
    return Responses.from_wide(table, ordered=categories > 2), np.where(second[:, 0], "B", "A"), moved, one


def study(design: str, people: int, replicates: int, categories: int = 2, first: int = 0) -> dict[str, float]:
    """Shares over so many replicates."""
    rows: dict[str, list[float]] = {}
    estimator = SpectralRasch if categories == 2 else SpectralPartialCredit
    for seed in range(first, first + replicates):
        data, groups, moved, one = draw(design, people, seed, categories)
        analysis = estimator(regularization=0).fit(data).analyse(data)
        found = analysis.dif(groups).contrasts
        every = analysis.dif(groups, anchors="all", nonuniform=False).contrasts
        place = found["item"].astype(int)
        differs, by_ability = moved[place], one[place]
        same, tested = ~differs & ~by_ability, np.isfinite(found["interaction_p"])
        measured = {
            "clean": found["p"][same] < 0.05,
            "all anchors": every["p"][same] < 0.05,
            "clean MH": found["mh_p"][same & np.isfinite(found["mh_p"])] < 0.05,
            "power": found["p"][differs] < 0.05,
            "named": found["flagged"][differs],
            "falsely": [found["flagged"][same].any()],
            "interaction": found["interaction_p"][tested & ~by_ability] < 0.05,
            "steep": found["interaction_p"][tested & by_ability] < 0.05,
        }
        for name, values in measured.items():
            rows.setdefault(name, []).extend(values)
    return {name: float(np.mean(values)) if values else float("nan") for name, values in rows.items()}


if __name__ == "__main__":
    asked = harness.arguments(__doc__, replicates=200, people=500, designs=tuple(DESIGNS), categories=2)
    options = asked.people, asked.replicates, asked.categories, asked.seed
    rows = ({"design": design} | study(design, *options) for design in asked.designs)
    harness.show(f"{asked.replicates} replicates, groups of {asked.people}, {asked.categories} categories", rows, asked)
