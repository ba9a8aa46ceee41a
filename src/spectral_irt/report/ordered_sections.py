"""The sections of a report of answers in ordered categories: of an analysis, or of a folder that a fit wrote."""

from __future__ import annotations

from typing import Any

import numpy as np

from spectral_irt.ability import score_abilities
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import positions
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.errors import OptionError
from spectral_irt.plots.all import worth_a_look
from spectral_irt.plots.curves import CategoryCurves, ItemCurve, sheet_of
from spectral_irt.plots.fit import FitMap
from spectral_irt.plots.scores import ScoreDistribution
from spectral_irt.plots.wright import WrightMap
from spectral_irt.report.about import how_it_was_made, reliability_rows, share_missing
from spectral_irt.report.blocks import MOST, Column, DataTable, How, Missing, Section, Table, Text, short
from spectral_irt.report.commands import fit_command, how
from spectral_irt.report.fit import checked, checks_table
from spectral_irt.report.items import closed_if_alike
from spectral_irt.report.material import Material
from spectral_irt.report.people import LONGEST_FORM, SCORES, listed_people, spread_of_abilities
from spectral_irt.report.people import scores as scores_of_forms
from spectral_irt.report.pictures import figure_picture, picture
from spectral_irt.tables import Columns
from spectral_irt.text import count, number

ITEMS: tuple[Column, ...] = (
    Column("item", "Item"),
    Column("difficulty", "Location", 3),
    Column("se", "s.e.", 3),
    Column("measure", "Measure", 1),
    Column("n", "Answers", 0),
    Column("mean_score", "Mean answer", 2),
    Column("max_score", "Highest", 0),
    Column("infit_conditional", "Infit", 2),
    Column("outfit_conditional", "Outfit", 2),
    Column("item_rest", "Item-rest r", 2),
    Column("misfit", "Misfit"),
    Column("status", "Status"),
    Column("measure_se", "s.e. of measure", 1, closed=True),
    Column("infit_conditional_z", "Infit z", 2, closed=True),
    Column("outfit_conditional_z", "Outfit z", 2, closed=True),
    Column("misfit_p", "p of misfit, adjusted", 4, closed=True, p=True),
    Column("alpha_if_deleted", "Alpha without the item", 3, closed=True),
)
OF_FIT = tuple(column.name for column in ITEMS if "fit" in column.name)
OF_ANALYSIS = ("item_rest", "alpha_if_deleted")
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


# ------------------------------------------------------------------------------------------ what the tables say


def steps_of(material: Material) -> Thresholds:
    """How many thresholds every item has."""
    items, thresholds = material.tables["items"], material.tables["thresholds"]
    place = positions(thresholds["item"].tolist(), items["item"])
    return Thresholds(np.bincount(place, minlength=len(items["item"])).astype(np.int64))


def on_the_scale(material: Material) -> Ints:
    """Positions of the items that have a place on the common scale."""
    items = material.tables["items"]
    return np.flatnonzero(np.isfinite(items["difficulty"]) & (items["status"] != "unlinked"))


def form_of(material: Material, items: Ints) -> tuple[Thresholds, Floats]:
    """The thresholds of these items."""
    steps = steps_of(material)
    return Thresholds(steps.max_score[items]), material.tables["thresholds"]["threshold"][steps.of_items(items)]


# --------------------------------------------------------------------------------------------------- sections


def what_was_fitted(material: Material) -> Section:
    """The data, the method, and how to do it again."""
    thresholds = count(material.record["counts"].get("thresholds") or 0, "threshold")
    return how_it_was_made(material, f" with {thresholds}", "Thresholds")


def summary(material: Material) -> Section:
    """Counts, reliability, targeting."""
    record = material.record
    counts, found = record["counts"], record.get("reliability")
    rows = [
        ("People", number(counts.get("persons"), 0), ""),
        ("Items", number(counts.get("items"), 0),
         f"{number(counts.get('items_with_estimate'), 0)} of them with an estimate"),
        ("Thresholds", number(counts.get("thresholds"), 0), "between neighboring categories"),
        ("Answers", number(counts.get("responses"), 0), share_missing(counts)),
    ]  # fmt: skip
    if found:
        ends = (found.get("n_lowest") or 0, found.get("n_highest") or 0)
        extreme = f"{number(ends[1], 0)} with the highest score that they could have, {number(ends[0], 0)} the lowest"
        rows += [*reliability_rows(found), ("Extreme scores", number(sum(ends), 0), extreme)]
    source = How(fit_command(record), "study.reliability()")
    blocks: list[Any] = [Table("Counts, reliability and targeting", ("", "Value", "What it says"), tuple(rows), source)]
    if not found:
        blocks.append(Text("Reliability and targeting are not here: people were left out of the analysis."))
    return Section("summary", "Summary", tuple(blocks))


def wright(material: Material) -> Section | Missing:
    """People and thresholds on one scale."""
    title = "People and thresholds on one scale"
    persons, items = material.tables.get("persons"), material.tables["items"]
    if persons is None:
        return Missing(title, material.missing.get("persons", "People were left out of the analysis."))
    known, place = persons["ability"][np.isfinite(persons["ability"])], on_the_scale(material)
    if not len(known) or not len(place):
        return Missing(title, "It takes people with an ability, and items with thresholds on a common scale.")
    steps, beta = form_of(material, place)
    labels = np.empty(steps.n_entries, dtype=object)
    named = zip(items["item"][place[steps.item]].tolist(), steps.level.tolist(), strict=True)
    labels[:] = [f"{label} ({level})" for label, level in named]
    display = WrightMap(
        ability=known,
        labels=labels,
        difficulty=beta,
        left_out=len(persons["ability"]) - len(known),
        scale=material.scale,
        what="threshold",
    )
    alt = (
        f"Wright map. Abilities of {count(len(known), 'person', 'people')} to the left: mean {number(known.mean())}; "
        f"{count(len(beta), 'threshold')} to the right, from {number(beta.min())} to {number(beta.max())} logits."
    )
    said = (
        "Able people and high thresholds are on top. Somebody beside the second threshold of an item, (2), is as "
        "likely to answer in its second category above the lowest as in the one below it."
    )
    source = How(fit_command(material.record, "--plots", "pictures"), "study.plot.wright().frame()")
    return Section("wright", title, (Text(said), picture(display, alt), source))


def item_table(material: Material) -> Section:
    """Every item; a row opens to its thresholds."""
    items, fit = material.tables["items"], material.tables.get("item_fit", {})
    classical = material.tables.get("item_analysis", {})
    values: Columns = dict(items)
    values |= {name: fit[name] for name in OF_FIT if name in fit}
    values |= {name: classical[name] for name in OF_ANALYSIS if name in classical}
    table = DataTable(
        "items",
        f"{count(len(items['item']), 'item')}; location: mean of the thresholds, in logits",
        tuple(closed_if_alike(column, values) for column in ITEMS),
        values,
        how(material.record, "items", "study.calibration.items()"),
        filters=("misfit", "status"),
        details={"strata": {}, "tables": [_thresholds_by_row(material)]},  # no curves of right and wrong answers
        noun="items",
    )
    said = "Click on a column's name to sort, on an item's name to see its thresholds."
    said += " Infit and outfit are mean squares given the total scores: 1 fits, above 1 is noisier." if fit else ""
    blocks: list[Any] = [Text(said), table]
    if table.n_rows > MOST:
        blocks.insert(1, Text(f"These are the first {MOST:,} items of {table.n_rows:,}; items.csv has all."))
    if "item_fit" in material.missing:
        blocks.append(Text(material.missing["item_fit"]))
    return Section("items", "Items", tuple(blocks))


def _between(category: float) -> str:
    return f"{category - 1:.0f} and {category:.0f}"


def _thresholds_by_row(material: Material) -> dict[str, Any]:
    columns, steps = material.tables["thresholds"], steps_of(material)
    named = ("category", "threshold", "se", "n_below", "n")
    rows: dict[int, list[list[str]]] = {}
    for row, category, threshold, se, below, n in zip(
        steps.item.tolist(), *(columns[name].tolist() for name in named), strict=True
    ):
        if row < MOST:
            shown = [_between(category), number(threshold), number(se), number(below, 0), number(n, 0)]
            rows.setdefault(row, []).append(shown)
    head = ["Categories", "Threshold", "s.e.", "Below", "Above"]
    return {"caption": "Thresholds", "head": head, "rows": rows}


def thresholds(material: Material) -> Section:
    """Every threshold, with its interval."""
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


def curves(material: Material) -> Section | Missing:
    """Category curves and expected scores, with means observed, of all items or of those that fit worst."""
    title = "Curves of the items"
    fit = material.tables.get("item_fit")
    if fit is None:
        why = material.missing.get("item_fit", "The curves come with the fit of the items, which was left out.")
        return Missing(title, why)
    try:
        labels, which = worth_a_look(FitMap.of_columns(fit, conditional=True, frame_kind=None))
    except OptionError as error:
        return Missing(title, str(error))
    place = positions(labels, material.tables["items"]["item"])
    place = place[np.isin(place, on_the_scale(material))]
    strata = material.tables.get("curves")
    likely = [_category_curves(material, k) for k in place.tolist()]
    expected = [_expected(material, k, strata) for k in place.tolist()]
    pictures = (
        figure_picture(
            sheet_of(likely, f"{which}: probability of each answer", "ability", "probability", material.scale),
            "Small curves: the probability of each answer to an item by ability.",
        ),
        figure_picture(
            sheet_of(expected, f"{which}: mean answers", "ability", "mean answer", material.scale),
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


def _category_curves(material: Material, k: int) -> CategoryCurves:
    _, beta = form_of(material, np.array([k]))
    label = material.tables["items"]["item"][k]
    return CategoryCurves(label=label, thresholds=beta, codes=np.arange(len(beta) + 1.0), scale=material.scale)


def _expected(material: Material, k: int, strata: Columns | None) -> ItemCurve:
    _, beta = form_of(material, np.array([k]))
    label = material.tables["items"]["item"][k]
    names = ("stratum", "n", "ability", "observed", "ci_low", "ci_high", "expected")
    if strata is None:
        own: Columns = {name: np.zeros(0) for name in names}
    else:
        mine = np.flatnonzero(strata["item"] == label)
        own = {name: strata[name][mine] for name in names}
    return ItemCurve(label=label, thresholds=beta, se=0.0, strata=own, scale=material.scale)


def people(material: Material) -> Section | Missing:
    """Where the people are, how many have which total score, and a list of them only where it was asked for."""
    persons = material.tables.get("persons")
    if persons is None:
        return Missing("People", material.missing.get("persons", "People were left out of the analysis."))
    some = persons["n"] > 0
    if not some.any():
        return Missing("People", "There are no people with answers.")
    score, n, most = (persons[name][some].astype(int) for name in ("score", "n", "max_score"))
    display = ScoreDistribution(score=score, n=n, highest=most)
    alt = f"Bars: how many people have which total score. {count(len(score), 'person', 'people')}"
    alt += f", scores from {score.min():,} to {score.max():,} of {most[0]:,}." if display.alike else "."
    blocks = [*spread_of_abilities(material, persons), picture(display, alt)]
    return Section("people", "People", (*blocks, *listed_people(material, persons)))


def scores(material: Material) -> Section | Missing:
    """From total score to ability: on every form that people answered, or on the whole set of items."""
    if len(material.tables.get("scores", {}).get("score", ())):
        return scores_of_forms(material)
    title, place = "From score to ability", on_the_scale(material)
    steps, beta = form_of(material, place)
    if not len(place) or steps.n_entries > LONGEST_FORM:
        return Missing(title, f"A table of total scores is for tests with a highest score of at most {LONGEST_FORM:,}.")
    ability, se = score_abilities(beta, steps)
    values: Columns = {"score": np.arange(len(ability)), "ability": ability, "se": se}
    if not material.scale.is_logits:
        values |= {"measure": material.scale.measure(ability), "measure_se": material.scale.width(se)}
    source = How(fit_command(material.record), "study.score_table()")
    said = "For somebody who answers all items: the total score, and the ability (Warm's estimate) that goes with it."
    table = DataTable("scores", "Total scores; ability in logits", SCORES, values, source, noun="scores")
    return Section("scores", title, (Text(said), table))


def fit(material: Material) -> Section | Missing:
    """The checks in one table, and infit against outfit."""
    title, record = "Does the model fit?", material.record
    columns = material.tables.get("item_fit")
    if not record.get("item_fit"):
        return Missing(title, material.missing.get("item_fit", "The fit of the items was left out of the analysis."))
    table = checks_table(record, How(fit_command(record, "--fit"), "study.checks()"))
    blocks: list[Any] = [Text(checked(record)), table]
    if columns is not None:
        try:
            display = FitMap.of_columns(columns, conditional=True, frame_kind=None)
        except OptionError as error:
            blocks.append(Text(str(error)))
        else:
            worst = ", ".join(short(item, 40) for item in display.table["item"][display.worst(3)].tolist())
            alt = f"Infit against outfit of {count(len(display.table['item']), 'item')}; 1 fits. Farthest: {worst}."
            blocks += [picture(display, alt), how(record, "item_fit", "study.item_fit()")]
    elif "item_fit" in material.missing:
        blocks.append(Text(material.missing["item_fit"]))
    return Section("fit", title, tuple(blocks))
