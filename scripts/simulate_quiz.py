"""Draw the quiz that comes with the package: `python scripts/simulate_quiz.py` writes quiz.csv and quiz_key.csv anew.

The answers are simulated; no person and no test stands behind them. 800 people meet 20 of 30 multiple-choice items
each, in two booklets with ten items in common. Answers follow the Rasch model, with two faults put in for a calibration
to find: the key of one item names a wrong answer, and one item is easier for people from the coast than for others as
able. Those who do not know the answer choose a wrong one, plausible ones oftener than others, or now and then none.
Items that are not in somebody's booklet are empty, those left out are 9.

The draw is a clear example, not a typical one: with this seed just the two faults are found, where other seeds may show
a third item or miss one.

Only `random.random` of the standard library is used, which gives the same numbers in every version of Python.
"""

from __future__ import annotations

import math
import random
from pathlib import Path
from statistics import NormalDist

SEED = 2024
PEOPLE = 800
OMITTED = "9"
OMITS = 0.04  # of those who do not know the answer
REGIONS = {"coast": 0.1, "inland": 0.0}  # mean abilities
PULL = 2.0  # how much the most plausible wrong answer is preferred to the least, in logits
SPREAD = 1.1  # standard deviation of ability
WRONG_KEY = "density"  # its key names a wrong answer
EASIER, BY = "tides", 1.0  # logits, for people from the coast

# Items of both booklets, of the first, of the second: from easy to hard in each.
COMMON = ["seasons", "magnets", "food_chain", "tides", "boiling", "density", "echo", "fossils", "circuits", "half_life"]
FIRST = ["moon", "plants", "friction", "rust", "lenses", "weather", "cells", "levers", "acids", "isotopes"]
SECOND = ["planets", "blood", "gravity", "salt", "mirrors", "clouds", "genes", "pulleys", "alloys", "entropy"]
EASIEST, HARDEST = -1.9, 1.9
TARGET = Path(__file__).parents[1] / "src" / "spectral_irt" / "datasets"


def difficulties() -> dict[str, float]:
    """Of every item, evenly spread in each part of the test."""
    step = (HARDEST - EASIEST) / (len(COMMON) - 1)
    return {item: EASIEST + step * k for part in (COMMON, FIRST, SECOND) for k, item in enumerate(part)}


def simulate(seed: int = SEED) -> tuple[str, str]:
    """The answers and the key, as the text of two files."""
    draw = random.Random(seed).random
    difficulty = difficulties()
    answer = {item: "ABCD"[int(4 * draw())] for item in difficulty}
    pull = {item: {letter: draw() for letter in "ABCD" if letter != answer[item]} for item in difficulty}
    key = dict(answer)
    plausible = max(pull[WRONG_KEY], key=lambda letter: pull[WRONG_KEY][letter])
    key[WRONG_KEY] = plausible

    lines = [",".join(["person", "region", "booklet", *difficulty])]
    for number in range(1, PEOPLE + 1):
        region = "coast" if draw() < 0.5 else "inland"
        booklet = number % 2 + 1
        ability = REGIONS[region] + SPREAD * NormalDist().inv_cdf(draw())
        items = set(COMMON) | set(FIRST if booklet == 1 else SECOND)
        cells = []
        for item, hard in difficulty.items():
            if item not in items:
                cells.append("")
                continue
            easier = BY if item == EASIER and region == "coast" else 0.0
            cells.append(_answer(ability - hard + easier, answer[item], pull[item], draw(), draw(), draw()))
        lines.append(",".join([f"p{number:03d}", region, str(booklet), *cells]))
    keys = ["item,key", *(f"{item},{letter}" for item, letter in key.items())]
    return "\n".join(lines) + "\n", "\n".join(keys) + "\n"


def _answer(ahead: float, right: str, pull: dict[str, float], known: float, omitted: float, choice: float) -> str:
    """Right as the Rasch model says; else left out, or a wrong answer, the plausible ones oftener."""
    if known < 1 / (1 + math.exp(-ahead)):
        return right
    if omitted < OMITS:
        return OMITTED
    weight = {letter: math.exp(PULL * strength) for letter, strength in pull.items()}
    left = choice * sum(weight.values())
    for letter, part in weight.items():
        left -= part
        if left < 0:
            return letter
    return letter


if __name__ == "__main__":
    answers, key = simulate()
    (TARGET / "quiz.csv").write_text(answers, encoding="ascii", newline="")
    (TARGET / "quiz_key.csv").write_text(key, encoding="ascii", newline="")
    print(f"{TARGET / 'quiz.csv'}: {len(answers):,} bytes; {TARGET / 'quiz_key.csv'}: {len(key):,} bytes")
