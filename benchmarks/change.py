"""Change between waves: do intervals hold, and how often do the tests of response shift alarm where no item shifts.

Three waves, two arms, items that are right or wrong or in three categories; each wave but the first is missing for a
fifth of the persons at random. The arms differ in ability before, too, which is conditioned out.
"""

from __future__ import annotations

import numpy as np

from harness import arguments, study
from spectral_irt.data import Responses
from spectral_irt.data.block import Thresholds
from spectral_irt.data.facets import Facets
from spectral_irt.inference.groups.change import change

KINDS = ("right or wrong", "ordered")
TREND = np.array([0.0, 0.3, 0.5])
EFFECT = np.array([[0.0, 0.0, 0.0], [0.0, 0.4, 0.7]])  # arms x waves


def trial(kind: str, n: int, n_items: int, missing: float, rng: np.random.Generator) -> tuple[Responses, list[str]]:
    """Responses of persons in waves, and the arm of each person."""
    arm = rng.integers(2, size=n)
    ability = rng.normal(size=n) + 0.5 * arm
    offsets = np.zeros(1) if kind == "right or wrong" else np.array([-0.6, 0.6])
    beta = np.linspace(-1, 1, n_items)[:, None] + offsets
    level = ability[:, None] + TREND + EFFECT[arm]
    cumulated = np.cumsum(level[:, :, None, None] - beta, axis=3)
    p = np.exp(np.concatenate([np.zeros((*cumulated.shape[:3], 1)), cumulated], axis=3))
    p = np.cumsum(p / p.sum(axis=3, keepdims=True), axis=3)
    category = np.minimum((rng.random((n, 3, n_items, 1)) > p).sum(axis=3), len(offsets))
    there = rng.random((n, 3)) >= missing
    there[:, 0] = True
    person, wave, item = np.nonzero(np.broadcast_to(there[:, :, None], (n, 3, n_items)))
    codes = np.array([(i, w) for i in range(n_items) for w in range(3)])
    items = np.array([f"q{k:02}" for k in range(n_items)], dtype=object)
    facets = Facets(("item", "wave"), (items, np.arange(1, 4)), codes)
    responses = Responses.from_codes(
        person, 3 * item + wave, category[person, wave, item], persons=np.arange(n), items=facets.labels(),
        thresholds=Thresholds(np.full(3 * n_items, len(offsets))), facets=facets,
    )  # fmt: skip
    return responses, [("control", "treated")[k] for k in arm]


def one(kind: str, each_item: bool, asked):
    def measured(seed: int) -> dict[str, float]:
        rng = np.random.default_rng([seed, 49])
        responses, arm = trial(kind, asked.persons, asked.items, asked.missing, rng)
        found = change(responses, "wave", arm, each_item=each_item)
        table = found.table_columns
        rows = table["model"] == ("each item" if each_item else "one ability")
        wave = np.searchsorted([1, 2, 3], table["wave"][rows])
        treated = table["arm"][rows] == "treated"
        of_arms = table["against"][rows] != ""
        truth = EFFECT[treated.astype(int), wave] + np.where(of_arms, 0.0, TREND[wave])
        covered = np.abs(table["change"][rows] - truth) <= 1.96 * table["se"][rows]
        shifts = found.shifts
        return {
            "changes covered": float(covered[~of_arms].mean()),
            "differences of arms covered": float(covered[of_arms].mean()),
            "bias": float((table["change"][rows] - truth).mean()),
            "response shift at 5%": float((shifts["p"] < 0.05).mean()),
            "any shift (Holm)": float((shifts["p_holm"] < 0.05).any()),
        }

    return measured


def main() -> None:
    asked = arguments(__doc__, replicates=400, persons=300, items=6, missing=0.2)
    rows = [
        ({"responses": kind, "model": "each item" if each_item else "one ability"}, one(kind, each_item, asked))
        for kind in KINDS
        for each_item in (False, True)
    ]
    study(
        f"Change: {asked.persons} persons, {asked.items} items, 3 waves, 2 arms, {asked.missing:.0%} missing",
        rows,
        asked,
    )


if __name__ == "__main__":
    main()
