"""People and items on one scale, and the table of the items, each with its curve."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from spectral_irt.data.labels import positions
from spectral_irt.plots.wright import WrightMap
from spectral_irt.report.blocks import MOST, Column, DataTable, Missing, Section, Table, Text, short
from spectral_irt.report.commands import how
from spectral_irt.report.material import Material
from spectral_irt.report.pictures import picture
from spectral_irt.tables import Columns
from spectral_irt.text import count, number

COLUMNS: tuple[Column, ...] = (
    Column("item", "Item"),
    Column("difficulty", "Difficulty", 3),
    Column("se", "s.e.", 3),
    Column("measure", "Measure", 1),
    Column("measure_se", "s.e. of measure", 1, closed=True),
    Column("n", "Answers", 0),
    Column("p_correct", "Share right", 3),
    Column("infit_conditional", "Infit", 2),
    Column("outfit_conditional", "Outfit", 2),
    Column("item_rest", "Item-rest r", 2),
    Column("misfit", "Misfit"),
    Column("status", "Status"),
    Column("displacement", "Displacement", 2, closed=True),
    Column("infit_conditional_z", "Infit z", 2, closed=True),
    Column("outfit_conditional_z", "Outfit z", 2, closed=True),
    Column("misfit_p", "p of misfit, adjusted", 4, closed=True, p=True),
    Column("discrimination", "Slope (1: the model's)", 2, closed=True),
    Column("alpha_if_deleted", "KR-20 without the item", 3, closed=True),
    Column("omitted", "Left out", 0, closed=True),
    Column("not_reached", "Not reached", 0, closed=True),
    Column("point_measure", "Correlation with ability", 2, closed=True),
    Column("point_measure_expected", "Expected correlation", 2, closed=True),
)
FIT_COLUMNS = (
    *("infit_conditional", "outfit_conditional", "infit_conditional_z", "outfit_conditional_z"),
    *("misfit", "misfit_p", "point_measure", "point_measure_expected"),
)


CLASSICAL = ("item_rest", "discrimination", "alpha_if_deleted", "omitted", "not_reached")


def wright(material: Material) -> Section | Missing:
    """People and items on one scale."""
    title = "People and items on one scale"
    persons, items = material.tables.get("persons"), material.tables["items"]
    if persons is None:
        return Missing(title, material.missing.get("persons", "People were left out of the analysis."))
    known = persons["ability"][np.isfinite(persons["ability"])]
    place = np.isfinite(items["difficulty"]) & (items["status"] != "unlinked")
    if not len(known) or not place.any():
        return Missing(title, "It takes people with an ability, and items with a difficulty on a common scale.")
    difficulty, labels = items["difficulty"][place], items["item"][place]
    display = WrightMap(
        ability=known,
        labels=labels,
        difficulty=difficulty,
        left_out=len(persons["ability"]) - len(known),
        scale=material.scale,
    )
    hardest, easiest = short(labels[np.argmax(difficulty)], 40), short(labels[np.argmin(difficulty)], 40)
    alt = (
        f"Wright map. Abilities of {count(len(known), 'person', 'people')} to the left: mean {number(known.mean())}, "
        f"middle half from {number(np.quantile(known, 0.25))} to {number(np.quantile(known, 0.75))} logits. "
        f"Difficulties of {count(len(labels), 'item')} to the right: from {number(difficulty.min())} ({easiest}) to "
        f"{number(difficulty.max())} ({hardest}). The table below the picture has the numbers."
    )
    said = "Able people and hard items are on top. Somebody beside an item has an even chance of answering it right."
    return Section("wright", title, (Text(said), picture(display, alt), _numbers(display, material)))


def _numbers(display: WrightMap, material: Material) -> Table:
    table = display.columns()
    digits = 2 if material.scale.is_logits else 1
    rows = tuple(
        (f"{number(low, digits)} to {number(high, digits)}", f"{persons:,}", f"{items:,}", which)
        for low, high, persons, items, which in zip(*(table[name].tolist() for name in table), strict=True)
    )
    rows = tuple((*row[:3], short(row[3], 200)) for row in rows)
    source = how(material.record, "items", "study.plot.wright().frame()", "--plots", "pictures")
    return Table("The numbers of the picture", ("Scale", "People", "Items", "Which items"), rows, source, folded=True)


def item_table(material: Material) -> Section:
    """Every item; a row opens to its curve, its distractors and its fit."""
    items, fit = material.tables["items"], material.tables.get("item_fit")
    values: Columns = dict(items)
    if fit is not None:
        names = FIT_COLUMNS if "infit_conditional" in fit else ("infit", "outfit", "misfit")
        values |= {name: fit[name] for name in names if name in fit}
    classical = material.tables.get("item_analysis", {})
    values |= {name: classical[name] for name in CLASSICAL if name in classical}
    columns = COLUMNS
    if "infit" in values:
        columns = tuple(replace(column, name=column.name.replace("_conditional", "")) for column in COLUMNS)
    columns = tuple(closed_if_alike(column, values) for column in columns)
    table = DataTable(
        "items",
        f"{count(len(items['item']), 'item')}; larger difficulty = harder, in logits",
        columns,
        values,
        how(material.record, "items", "study.calibration.items()"),
        filters=("misfit", "status"),
        details=details(material),
        noun="items",
    )
    lines = ["Click on a column's name to sort, on an item's name to see its curve and its fit."]
    if fit is not None:
        lines.append(
            "Infit and outfit are mean squares given the scores: 1 fits, above 1 is noisier than the model says, below "
            "1 more regular."
        )
    blocks: list[Any] = [Text(" ".join(lines)), table]
    if table.n_rows > MOST:
        blocks.insert(1, Text(f"These are the first {MOST:,} items of {table.n_rows:,}; items.csv has all."))
    for name in ("item_fit", "curves"):
        if name in material.missing:
            blocks.append(Text(material.missing[name]))
    if fit is None and "item_fit" not in material.missing:
        blocks.append(Text("The fit of the items was left out of the analysis."))
    return Section("items", "Items", tuple(blocks))


def closed_if_alike(column: Column, values: Columns) -> Column:
    """A column of words that are all the same says nothing; it is shown in opened rows."""
    words = column.digits is None and column.name != "item" and column.name in values
    return replace(column, closed=True) if words and len(set(values[column.name].tolist())) < 2 else column


def details(material: Material) -> dict[str, Any]:
    """What an opened row shows besides its columns."""
    found: dict[str, Any] = {}
    if material.curves is not None:
        found["strata"] = strata(material, material.curves)
    if "distractors" in material.tables:
        found["tables"] = [options(material, material.tables["distractors"])]
    return found


def strata(material: Material, curves: Columns) -> dict[int, list[int]]:
    """Marks of curves by row, small: people, share right in thousandths, place in hundredths of a logit."""
    p = np.clip(curves["expected"], 1e-4, 1 - 1e-4)
    place = material.tables["items"]["difficulty"][curves["item"]] + np.log(p / (1 - p))
    flat = np.stack([curves["n"], np.rint(1000 * curves["observed"]), np.rint(100 * place)], axis=1)
    found: dict[int, list[int]] = {}
    for row, three in zip(curves["item"].tolist(), flat.astype(np.int64).tolist(), strict=True):
        if row < MOST:
            found.setdefault(row, []).extend(three)
    return found


def options(material: Material, chosen: Columns) -> dict[str, Any]:
    """Who chose which option, by row; the right one has a mark."""
    place = positions(chosen["item"].tolist(), material.tables["items"]["item"])
    columns = ("option", "key", "n", "share", "mean_ability", "point_biserial")
    cells = zip(place.tolist(), *(chosen[name].tolist() for name in columns), strict=True)
    rows: dict[int, list[list[str]]] = {}
    for row, option, key, n, share, ability, r in cells:
        if 0 <= row < MOST:
            name = f"{short(option, 40)}{' (key)' if key else ''}"
            shown = [name, number(n, 0), f"{100 * share:.1f}%", number(ability), number(r)]
            rows.setdefault(row, []).append(shown)
    return {
        "caption": "Options",
        "head": ["Option", "People", "Share", "Mean ability", "r with the rest"],
        "rows": rows,
    }
