"""Differential functioning: items that are harder for one group than for another of the same ability."""

from __future__ import annotations

from typing import Any

import numpy as np

from spectral_irt.calibration import Z95
from spectral_irt.plots.dif import DifferentialPlot
from spectral_irt.report.blocks import Column, DataTable, Missing, Section, Text, picture, short
from spectral_irt.report.commands import groupings, how, of_groups
from spectral_irt.report.data import Material
from spectral_irt.tables import Columns
from spectral_irt.text import count, number, p_value

PICTURES = 4  # of comparisons; the table has all

COLUMNS = (
    Column("item", "Item"),
    Column("grouping", "Grouping"),
    Column("group", "Group"),
    Column("reference", "Against"),
    Column("contrast", "Contrast (logits)", 2),
    Column("se", "s.e.", 2),
    Column("p_bh", "p, adjusted", 3, p=True),
    Column("class", "Class"),
    Column("nonuniform_p", "p, nonuniform", 3, p=True),
    Column("mh_delta", "Mantel-Haenszel delta", 2),
)


def groups(material: Material) -> Section | Missing:
    """A sentence, a picture and a table for the comparisons that were made."""
    title = "Differential item functioning"
    rows, said = material.tables.get("dif"), groupings(material.record)
    if not said:
        return Missing(title, "No groups of people were compared; --group COLUMN does.")
    blocks: list[Any] = [Text(_sentence(one)) for one in said]
    if rows is None:
        return Section("dif", title, (*blocks, Text(material.missing.get("dif", "dif.csv is not there."))))
    comparisons = list(dict.fromkeys(zip(_grouping(rows), rows["group"].tolist(), strict=True)))
    for grouping, group in comparisons[:PICTURES]:
        blocks += _drawn(rows, grouping, group)
    if len(comparisons) > PICTURES:
        blocks.append(Text(f"The first {PICTURES} of {len(comparisons)} comparisons are drawn; the table has all."))
    values = {**rows, "nonuniform_p": rows["interaction_p_bh"]} if "interaction_p_bh" in rows else dict(rows)
    table = DataTable(
        "dif",
        "Contrasts between groups; positive = harder for the group",
        COLUMNS,
        values,
        how(material.record, "dif", f"study.dif({of_groups(material.record, str(said[0].get('column')))}).table()"),
        filters=("class", "grouping", "group"),
        noun="comparisons",
    )
    meaning = "Classes of the Educational Testing Service: A negligible, B moderate, C large."
    return Section("dif", title, (*blocks, Text(meaning), table))


def _grouping(rows: Columns) -> list[Any]:
    return rows["grouping"].tolist() if "grouping" in rows else [""] * len(rows["item"])


def _sentence(one: Any) -> str:
    classes = one.get("classes") or {}
    sizes = ", ".join(f"{short(name, 40)} ({n:,})" for name, n in (one.get("groups") or {}).items())
    found = f"{classes.get('B', 0):,} in class B and {classes.get('C', 0):,} in class C"
    return (
        f"By {short(one.get('column'), 60)}: {sizes}; compared with {short(one.get('reference'), 40)}. Of "
        f"{count(one.get('items_compared') or 0, 'item')}, {found}; {one.get('flagged') or 0:,} flagged after "
        f"adjustment for all. All items together: {p_value(one.get('p'))}."
    )


def _drawn(rows: Columns, grouping: Any, group: Any) -> list[Any]:
    mine = np.array([a == grouping and b == group for a, b in zip(_grouping(rows), rows["group"], strict=True)])
    mine &= np.isfinite(rows["contrast"]) & np.isfinite(rows["se"])
    place = np.flatnonzero(mine)
    if not len(place):
        return []
    place = place[np.argsort(-np.abs(rows["contrast"][place]), kind="stable")]
    contrast, se = rows["contrast"][place], rows["se"][place]
    table = {name: rows[name][place] for name in ("item", "contrast", "se", "p_bh", "class", "flagged")}
    table |= {"ci_low": contrast - Z95 * se, "ci_high": contrast + Z95 * se}
    display = DifferentialPlot(table=table, group=str(group), reference=str(rows["reference"][place[0]]))
    first = ", ".join(
        f"{short(item, 40)} {number(value)}" for item, value in zip(table["item"][:3], contrast[:3], strict=True)
    )
    alt = (
        f"Contrasts of {count(len(place), 'item')} between {short(group, 40)} and {short(display.reference, 40)} with "
        f"95% intervals. The largest, in logits: {first}."
    )
    return [picture(display, alt)]
