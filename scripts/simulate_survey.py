"""Draw the questionnaire that comes with the package: `python scripts/simulate_survey.py` writes survey.csv anew.

The answers are simulated; no person and no questionnaire stands behind them. 600 people answer ten items with never,
rarely, sometimes, often or always, now and then with nothing. Answers follow a rating scale model, with two faults put
in for an analysis to find: q4 is worded the other way round, and q7 is harder to agree with for men than for women of
the same measure.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

SEED = 7
PEOPLE = 600
LOCATIONS = np.linspace(-1.4, 1.4, 10)
OFFSETS = np.array([-1.6, -0.5, 0.5, 1.6])  # of the thresholds, the same for every item
MEAN, SD = 0.3, 1.3  # of the people, in logits
REVERSED = 3  # q4
BIASED, BY = 6, 0.9  # q7; logits, for men
MISSING = 0.02
WORDS = ("never", "rarely", "sometimes", "often", "always")
TARGET = Path(__file__).parents[1] / "src" / "spectral_irt" / "datasets" / "survey.csv"


def rows() -> list[list[str]]:
    """The header, and a row for each person."""
    rng = np.random.default_rng(SEED)
    n_items = len(LOCATIONS)
    sex = rng.choice(["female", "male"], PEOPLE)
    measure = rng.normal(MEAN, SD, PEOPLE)
    shift = np.zeros((PEOPLE, n_items))
    shift[:, BIASED] = BY * (sex == "male")
    logits = np.cumsum(measure[:, None, None] - (LOCATIONS + shift)[:, :, None] - OFFSETS, axis=2)
    weights = np.exp(np.concatenate([np.zeros((PEOPLE, n_items, 1)), logits], axis=2))
    probabilities = weights / weights.sum(axis=2, keepdims=True)
    categories = (rng.random((PEOPLE, n_items, 1)) > np.cumsum(probabilities, axis=2)).sum(axis=2)
    categories[:, REVERSED] = len(OFFSETS) - categories[:, REVERSED]
    table = [["id", "sex", *(f"q{k + 1}" for k in range(n_items))]]
    for person in range(PEOPLE):
        answers = ["" if rng.random() < MISSING else WORDS[category] for category in categories[person]]
        table.append([f"p{person + 1}", str(sex[person]), *answers])
    return table


def main() -> None:
    with TARGET.open("w", encoding="ascii", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows())


if __name__ == "__main__":
    main()
