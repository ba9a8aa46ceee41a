"""People on the terminal: all of a few, the extremes of many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.display import LEAST_LABEL, SHOW_ALL, SHOW_EACH, room_for, shortened

if TYPE_CHECKING:
    from rich.table import Table

    from spectral_irt.tables import Columns


SHOW_SCALES = 3  # scales whose people are shown, where no answers link the items


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
    ablest = known[np.argsort(-ability[known], kind="stable")]
    if len(ability) <= SHOW_ALL:
        return [("", [*ablest.tolist(), *np.flatnonzero(np.isnan(ability)).tolist()])]
    z = persons["outfit_z"]
    odd = np.flatnonzero(np.isfinite(z))
    odd = odd[np.argsort(-z[odd], kind="stable")]
    groups = [("ablest", ablest[:SHOW_EACH]), ("least able", ablest[::-1][:SHOW_EACH])]
    groups.append(("most erratic", odd[:SHOW_EACH]))
    return [(name, rows.tolist()) for name, rows in groups if len(rows)]


def person_table(persons: Columns, width: int) -> Table:
    """Ability with its error, score, and how regular the answers are."""
    from rich.table import Table
    from rich.text import Text

    groups = choose(persons)
    rows = [k for _, chosen in groups for k in chosen]
    texts = {"ability": _numbers(persons, "ability", rows, 2), "se": _numbers(persons, "se", rows, 2)}
    if "measure" in persons:
        texts["measure"] = _numbers(persons, "measure", rows, 1)
        texts["± se"] = _numbers(persons, "measure_se", rows, 1)
    texts["right"] = [f"{persons['score'][k]:,} of {persons['n'][k]:,}" for k in rows]
    texts["outfit"] = _numbers(persons, "outfit", rows, 2)
    texts[""] = ["extreme" if persons["extreme"][k] else "" for k in rows]
    heads = [name if k == 0 else "" for name, chosen in groups for k in range(len(chosen))]
    first = 2 + max(map(len, heads)) if len(groups) > 1 else 0
    users = [persons["person"][k] for k in rows]
    least = max(room_for(users), LEAST_LABEL)
    for spare in ("outfit", "± se", "measure"):
        if _room(texts, width - first) >= least:
            break
        texts.pop(spare, None)
    names = shortened(users, max(_room(texts, width - first), LEAST_LABEL))

    table = Table(box=None, padding=(0, 1), header_style="bold", pad_edge=False, show_edge=False)
    if first:
        table.add_column("", no_wrap=True, style="cyan")
    table.add_column("person", no_wrap=True)
    for head in texts:
        table.add_column(head, justify="right" if head else "left", no_wrap=True, style=None if head else "yellow")
    ends = set(np.cumsum([len(chosen) for _, chosen in groups])[:-1].tolist())
    for k, cells in enumerate(zip(*texts.values(), strict=True)):
        if k in ends:
            table.add_row()
        table.add_row(*map(Text, [*([heads[k]] if first else []), names[k], *cells]))
    return table


def _room(texts: dict[str, list[str]], width: int) -> int:
    """Columns of the terminal that are left for the names."""
    return width - sum(2 + max(map(len, [head, *cells])) for head, cells in texts.items())


def _numbers(persons: Columns, name: str, rows: list[int], digits: int) -> list[str]:
    values = persons[name][rows].tolist()
    return ["" if np.isnan(x) else f"{x:z.{digits}f}" if np.isfinite(x) else str(x) for x in values]
