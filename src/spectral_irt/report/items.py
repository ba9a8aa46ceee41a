"""People and items on one scale, the table of the items, each with its curve, and their thresholds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError
from spectral_irt.plots.all import worth_a_look
from spectral_irt.plots.curves import CategoryCurves, ItemCurve, sheet_of, where_expected
from spectral_irt.plots.wright import WrightMap
from spectral_irt.report.blocks import (
    MOST,
    Column,
    DataTable,
    How,
    Missing,
    Section,
    Table,
    Text,
    figure_picture,
    picture,
    rounded,
    short,
)
from spectral_irt.report.commands import fit_command, how
from spectral_irt.report.data import Material
from spectral_irt.report.fit import fit_map
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
    Column("mean_score", "Mean answer", 2),
    Column("max_score", "Highest", 0),
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
NEAR_END = 1e-4  # a mark is drawn no nearer to the ends of its curve, which would be far away
FIT_COLUMNS = (
    *("infit_conditional", "outfit_conditional", "infit_conditional_z", "outfit_conditional_z"),
    *("misfit", "misfit_p", "point_measure", "point_measure_expected"),
)
CLASSICAL = ("item_rest", "discrimination", "alpha_if_deleted", "omitted", "not_reached")
# Other heads where items have several thresholds.
OF_CATEGORIES = {"difficulty": "Location", "alpha_if_deleted": "Alpha without the item"}
THRESHOLDS: tuple[Column, ...] = (
    Column("item", "Item"),
    Column("between", "Between"),
    Column("threshold", "Threshold", 2),
    Column("se", "s.e.", 2),
    Column("ci_low", "95% from", 2),
    Column("ci_high", "to", 2),
    Column("measure", "Measure", 1),
    Column("n_below", "People below", 0),
    Column("n", "People above", 0),
)


def wright(material: Material) -> Section | Missing:
    """People and items, or their thresholds, on one scale."""
    what = "item" if material.binary else "threshold"
    title = f"People and {what}s on one scale"
    persons, items = material.tables.get("persons"), material.tables["items"]
    if persons is None:
        return Missing(title, material.missing.get("persons", "People were left out of the analysis."))
    known = persons["ability"][np.isfinite(persons["ability"])]
    place = material.on_scale
    if not len(known) or not len(place):
        return Missing(title, "It takes people with an ability, and items with a difficulty on a common scale.")
    layout, difficulty = material.thresholds_of(place)
    labels = items["item"][place[layout.item]].astype(object)
    if not material.binary:
        labels[:] = [f"{label} ({level})" for label, level in zip(labels, layout.level.tolist(), strict=True)]
    display = WrightMap(
        ability=known,
        labels=labels,
        difficulty=difficulty,
        left_out=len(persons["ability"]) - len(known),
        scale=material.scale,
        what=what,
    )
    hardest, easiest = short(labels[np.argmax(difficulty)], 40), short(labels[np.argmin(difficulty)], 40)
    alt = (
        f"Wright map. Abilities of {count(len(known), 'person', 'people')} to the left: mean {number(known.mean())}, "
        f"middle half from {number(np.quantile(known, 0.25))} to {number(np.quantile(known, 0.75))} logits. "
        f"{count(len(labels), what)} to the right: from {number(difficulty.min())} ({easiest}) to "
        f"{number(difficulty.max())} ({hardest}). The table below the picture has the numbers."
    )
    if material.binary:
        said = (
            "Able people and hard items are on top. Somebody beside an item has an even chance of answering it right."
        )
    else:
        said = (
            "Able people and high thresholds are on top. Somebody beside the second threshold of an item, (2), is as "
            "likely to answer in its second category above the lowest as in the one below it."
        )
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
    head = ("Scale", "People", f"{display.what.capitalize()}s", f"Which {display.what}s")
    return Table("The numbers of the picture", head, rows, source, folded=True)


def item_table(material: Material) -> Section:
    """Every item; a row opens to its curve, its distractors or thresholds, and its fit."""
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
    if not material.binary:
        columns = tuple(replace(column, head=OF_CATEGORIES.get(column.name, column.head)) for column in columns)
    columns = tuple(closed_if_alike(column, values) for column in columns)
    meaning = "larger difficulty = harder" if material.binary else "location: mean of the thresholds"
    table = DataTable(
        "items",
        f"{count(len(items['item']), 'item')}; {meaning}, in logits",
        columns,
        values,
        how(material.record, "items", "study.calibration.items()"),
        filters=("misfit", "status"),
        details=details(material),
        noun="items",
    )
    more = "its curve and its fit" if material.binary else "its curve, its thresholds and its fit"
    lines = [f"Click on a column's name to sort, on an item's name to see {more}."]
    if fit is not None:
        lines.append(
            "Infit and outfit are mean squares given the scores: 1 fits, above 1 is underfit (noise), below 1 overfit "
            "(more regular than the model)."
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
    if material.strata is not None:
        found["strata"] = strata(material, material.strata)
    if not material.binary:
        every = [rounded(value, 3) for value in material.tables["thresholds"]["threshold"].tolist()]
        ends = np.cumsum(material.layout.max_score)[:MOST].tolist()
        found["thresholds"] = [every[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        found["tables"] = [_thresholds_by_row(material)]
    elif "distractors" in material.tables:
        found["tables"] = [options(material, material.tables["distractors"])]
    return found


def strata(material: Material, curves: Columns) -> dict[int, list[int]]:
    """Marks of curves by row, small: people, mean answer in thousandths, place in hundredths of a logit, interval."""
    items, layout = curves["item"], material.layout
    table = layout.table(material.thresholds_of(np.arange(layout.n_items))[1], np.inf)[items]
    place = where_expected(np.clip(curves["expected"], NEAR_END, layout.max_score[items] - NEAR_END), table)
    values = (curves["n"], 1000 * curves["observed"], 100 * place, 1000 * curves["ci_low"], 1000 * curves["ci_high"])
    flat = np.rint(np.stack(values, axis=1)).astype(np.int64)
    found: dict[int, list[int]] = {}
    for row, mark in zip(items.tolist(), flat.tolist(), strict=True):
        if row < MOST:
            found.setdefault(row, []).extend(mark)
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


def _between(category: float) -> str:
    return f"{category - 1:.0f} and {category:.0f}"


def _thresholds_by_row(material: Material) -> dict[str, Any]:
    columns = material.tables["thresholds"]
    named = ("category", "threshold", "se", "n_below", "n")
    rows: dict[int, list[list[str]]] = {}
    for row, category, threshold, se, below, n in zip(
        material.layout.item.tolist(), *(columns[name].tolist() for name in named), strict=True
    ):
        if row < MOST:
            shown = [_between(category), number(threshold), number(se), number(below, 0), number(n, 0)]
            rows.setdefault(row, []).append(shown)
    head = ["Categories", "Threshold", "s.e.", "Below", "Above"]
    return {"caption": "Thresholds", "head": head, "rows": rows}


def thresholds(material: Material) -> Section | None:
    """Every threshold, with its interval; None where answers are right or wrong."""
    if material.binary:
        return None
    columns = dict(material.tables["thresholds"])
    between = np.empty(len(columns["item"]), dtype=object)
    between[:] = [_between(one) for one in columns["category"].tolist()]
    table = DataTable(
        "thresholds",
        f"{count(len(between), 'threshold')}, in logits; categories are counted from 0, the lowest",
        THRESHOLDS,
        {**columns, "between": between},
        how(material.record, "thresholds", "study.calibration.threshold_table()"),
        noun="thresholds",
    )
    said = (
        "The ability at which the two categories are equally likely. Where a threshold lies below the one before it, "
        "the category between them is nowhere the most likely answer."
    )
    blocks: list[Any] = [Text(said), table]
    if table.n_rows > MOST:
        blocks.insert(1, Text(f"These are the first {MOST:,} thresholds of {table.n_rows:,}; thresholds.csv has all."))
    return Section("thresholds", "Thresholds", tuple(blocks))


def curves(material: Material) -> Section | Missing | None:
    """Category curves and expected answers, with means observed, of all items or of those that fit worst; None where
    answers are right or wrong, whose curves are in the table of the items."""
    if material.binary:
        return None
    title = "Curves of the items"
    fit = material.tables.get("item_fit")
    if fit is None:
        why = material.missing.get("item_fit", "The curves come with the fit of the items, which was left out.")
        return Missing(title, why)
    try:
        labels, which = worth_a_look(fit_map(fit))
    except OptionError as error:
        return Missing(title, str(error))
    place = positions(labels, material.tables["items"]["item"])
    place = place[np.isin(place, material.on_scale)]
    strata, scale = material.strata, material.scale
    likely, expected = [], []
    for k in place.tolist():
        label, beta = material.tables["items"]["item"][k], material.thresholds_of(np.array([k]))[1]
        likely.append(CategoryCurves(label=label, thresholds=beta, codes=np.arange(len(beta) + 1.0), scale=scale))
        expected.append(ItemCurve(label=label, thresholds=beta, se=0.0, strata=_strata_of(strata, k), scale=scale))
    pictures = (
        figure_picture(
            sheet_of(likely, f"{which}: probability of each answer", "ability", "probability", scale),
            "Small curves: the probability of each answer to an item by ability.",
        ),
        figure_picture(
            sheet_of(expected, f"{which}: mean answers", "ability", "mean answer", scale),
            f"Small curves: the expected answer by ability{'' if strata is None else ', and means observed'}.",
        ),
    )
    said = (
        "Above, the probability of each answer, from the lowest (dark) to the highest (light): neighbors cross at the "
        "thresholds. Below, the expected answer (line)"
    )
    if strata is None:
        said += f". {material.missing.get('curves', 'There are no mean answers beside it.')}"
    else:
        said += (
            " and the mean answers of groups of people by ability, with 95% intervals, which lie on it but for chance "
            "if the model holds."
        )
    source = How(
        fit_command(material.record, "--plots", "pictures"), "study.plot.icc(item), study.plot.categories(item)"
    )
    return Section("curves", title, (Text(said), *pictures, source))


def _strata_of(strata: Columns | None, k: int) -> Columns:
    names = ("stratum", "n", "ability", "observed", "ci_low", "ci_high", "expected")
    if strata is None:
        return {name: np.zeros(0) for name in names}
    mine = strata["item"] == k
    return {name: strata[name][mine] for name in names}
