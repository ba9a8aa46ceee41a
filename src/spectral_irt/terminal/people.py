"""People on a terminal: all of a few, the extremes of many."""

from __future__ import annotations

import numpy as np
from rich.table import Table

from spectral_irt.model import ALIKE
from spectral_irt.tables import Columns
from spectral_irt.terminal.items import INTERVAL, SHOW_EACH, numbers
from spectral_irt.terminal.table import APART, COMFORT, Column, labelled

SHOW_ALL = 15  # so many people are shown whole
SHOW_RANKED = 60  # or so many where they are ranked: language models, say
SHOW_SCALES = 3  # scales whose people are shown, where no answers link the items


LEGEND = "larger = abler; 95% intervals of each ability, and of the ranks of all at once"


def choose(persons: Columns) -> list[tuple[str, list[int]]]:
    """Which people to show, under which heading; those on different scales never in one order."""
    scales = sorted({str(scale) for scale in persons.get("scale", np.empty(0)) if scale}, key=int)
    if len(scales) < 2:
        return _choose(persons)
    groups = []
    for scale in scales[:SHOW_SCALES]:
        there = np.flatnonzero(persons["scale"] == scale)
        some = {name: values[there] for name, values in persons.items()}
        for name, rows in _choose(some):
            head = f"scale {scale}" + (f": {name}" if name else "")
            groups.append((head, there[rows].tolist()))
    return groups


def _choose(persons: Columns) -> list[tuple[str, list[int]]]:
    ability = persons["ability"]
    known = np.flatnonzero(~np.isnan(ability))
    ablest = known[np.argsort(-np.round(ability[known], ALIKE), kind="stable")]
    if len(ability) <= (SHOW_RANKED if "rank" in persons else SHOW_ALL):
        return [("", [*ablest.tolist(), *np.flatnonzero(np.isnan(ability)).tolist()])]
    z = persons["outfit_z"]
    odd = np.flatnonzero(np.isfinite(z))
    odd = odd[np.argsort(-z[odd], kind="stable")]
    groups = [("ablest", ablest[:SHOW_EACH]), ("least able", ablest[::-1][:SHOW_EACH])]
    groups.append(("most erratic", odd[:SHOW_EACH]))
    return [(name, rows.tolist()) for name, rows in groups if len(rows)]


def person_table(
    persons: Columns, width: int, *, name: str = "person", whole: bool = False, points: bool = False
) -> Table:
    """Ability with its error, score, and how regular the answers are; ranks where they were computed.

    Parameters
    ----------
    persons
        The columns of `Analysis.persons`, or of `Analysis.person_ranking`.
    name : str
        What a person is called.
    whole : bool
        Never cut a label.
    points : bool
        Whether scores add categories, rather than count right answers.
    """
    groups = choose(persons)
    rows = [k for _, chosen in groups for k in chosen]
    shown = {key: values[rows] for key, values in persons.items()}
    table = []
    if "rank" in shown:
        ranks = zip(*(shown[key].tolist() for key in ("rank", "rank_low", "rank_high")), strict=True)
        texts = [
            ("", "") if rank == 0 else (f"{rank:,}", f"{low:,} to {high:,}" if low < high else f"{low:,}")
            for rank, low, high in ranks
        ]
        table.append(Column("rank", [rank for rank, _ in texts]))
        table.append(Column("rank\ninterval", [interval for _, interval in texts]))
    table += [Column("ability", numbers(shown["ability"], 2)), Column("se", numbers(shown["se"], 2))]
    if "ci_low" in shown:
        ends = zip(shown["ci_low"].tolist(), shown["ci_high"].tolist(), strict=True)
        intervals = [f"{low:z.2f} to {high:z.2f}" if np.isfinite(low) else "" for low, high in ends]
        table.append(Column(INTERVAL, intervals, spare=APART))
    if "measure" in shown:
        table.append(Column("measure", numbers(shown["measure"], 1), spare=APART))
        table.append(Column("± se", numbers(shown["measure_se"], 1), spare=APART))
    scores = zip(shown["score"].tolist(), shown["n"].tolist(), strict=True)
    if points:
        table.append(Column("score", [f"{score:,}" for score, _ in scores], spare=COMFORT))
    else:
        table.append(Column("right", [f"{score:,} of {n:,}" for score, n in scores], spare=COMFORT))
    table.append(Column("outfit", numbers(shown["outfit"], 2), spare=APART))
    marks = ["extreme" if extreme else "" for extreme in shown["extreme"]]
    if any(marks):
        table.append(Column("", marks, left=True, style="yellow"))
    return labelled(
        name,
        shown["person"].tolist(),
        table,
        width,
        groups=[(head, len(chosen)) for head, chosen in groups] if len(groups) > 1 else (),
        spared=["right", "outfit", "± se", "measure", INTERVAL],
        whole=whole,
    )
