"""People and items on one scale, the table of the items, each with its curve, and their thresholds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.analysis.cache import columns_of
from spectral_irt.calibration import MOVED, Calibration
from spectral_irt.data.block import Ints
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError, for_page
from spectral_irt.inference.groups.dif import highest_class
from spectral_irt.plots.all import category_sheet, curve_sheet
from spectral_irt.plots.curves import where_expected
from spectral_irt.plots.distractors import distractor_sheet
from spectral_irt.plots.wright import WrightMap
from spectral_irt.report.blocks import (
    ITEM_TEXT,
    MOST,
    Column,
    DataTable,
    ReportData,
    Section,
    Table,
    Text,
    cut_short,
    picture,
)
from spectral_irt.tables import Columns
from spectral_irt.text import count, number, rounded, short

COLUMNS: tuple[Column, ...] = (
    Column("item", "Item"),
    ITEM_TEXT,
    Column("difficulty", "Difficulty", 3),
    Column("se", "s.e.", 3),
    Column("measure", "Measure", 1),
    Column("measure_se", "s.e. of measure", 1, closed=True),
    Column("n", "Answers", 0),
    Column("p_correct", "p correct", 3),
    Column("mean_score", "Mean answer", 2),
    Column("max_score", "Highest", 0, closed=True),
    Column("infit", "Infit", 2),
    Column("outfit", "Outfit", 2),
    Column("item_rest", "Item-rest r", 2),
    Column("misfit", "Misfit"),
    Column("prior", "Prior"),
    Column("dif", "DIF"),
    Column("displacement", "Displacement", 2),
    Column("displacement_se", "s.e. of displacement", 2, closed=True),
    Column("status", "Status"),
    Column("infit_z", "Infit z", 2, closed=True),
    Column("outfit_z", "Outfit z", 2, closed=True),
    Column("infit_conditional", "Infit, conditional", 2, closed=True),
    Column("infit_conditional_z", "Infit z, conditional", 2, closed=True),
    Column("outfit_conditional", "Outfit, conditional", 2, closed=True),
    Column("misfit_p", "p of misfit, adjusted", 4, closed=True, p=True),
    Column("discrimination", "Slope (1: the model's)", 2, closed=True),
    Column("alpha_if_deleted", "KR-20 without the item", 3, closed=True),
    Column("omitted", "Left out", 0, closed=True),
    Column("not_reached", "Not reached", 0, closed=True),
    Column("point_measure", "Correlation with {trait}", 2, closed=True),
    Column("point_measure_expected", "Expected correlation", 2, closed=True),
)
# Of ratings the fit given the totals is shown, of which 1 is expected, and the conventional one in a row that is open.
OF_RATINGS = tuple(
    {
        "n": Column("n", "Ratings", 0),
        "mean_score": Column("observed_average", "Mean rating", 2),
        "max_score": Column("max_score", "Thresholds", 0, closed=True),
        "infit": Column("infit_conditional", "Infit", 2),
        "outfit": Column("outfit_conditional", "Outfit", 2),
        "infit_z": Column("infit_conditional_z", "Infit z", 2, closed=True),
        "outfit_z": Column("outfit_conditional_z", "Outfit z", 2, closed=True),
        "infit_conditional": Column("infit", "Infit at estimated measures", 2, closed=True),
        "infit_conditional_z": Column("infit_z", "Infit z at estimated measures", 2, closed=True),
        "outfit_conditional": Column("outfit", "Outfit at estimated measures", 2, closed=True),
    }.get(column.name, column)
    for column in COLUMNS
)
NEAR_END = 1e-4  # a mark is drawn no nearer to the ends of its curve, which would be far away
# Other heads where items have several thresholds.
OF_CATEGORIES = {"difficulty": "Location", "alpha_if_deleted": "Alpha without the item"}
CATEGORIES: tuple[Column, ...] = (
    Column("item", "Item"),
    Column("answer", "Answer"),
    Column("n", "People", 0),
    Column("share", "Share", 3, closed=True),
    Column("mean_ability", "Mean {trait}", 2),
    Column("infit", "Infit", 2),
    Column("threshold", "Threshold", 2),
    Column("without_prior", "Without prior", 2),
    Column("se", "s.e.", 2),
    Column("ci_low", "95% from", 2, closed=True),
    Column("ci_high", "to", 2, closed=True),
)


def wright(data: ReportData) -> Section:
    """People and items, or their thresholds, on one scale."""
    if not data.parts.persons:
        raise OptionError("People were left out of the analysis.")
    display = data.study.plot.wright()
    return Section(
        (
            Text(_how_to_read(data, display.facets)),
            picture(display, _wright_map_in_words(display), narrow=display.on_a_phone),
            _numbers_of_wright_map(display),
        )
    )


def _how_to_read(data: ReportData, facets: Iterable[str]) -> str:
    """What it means to stand high on the map, and level with an item."""
    trait = data.words.trait
    if data.binary:
        text = (
            f"High {trait} and high difficulty are at the top. A person level with an item has a 50% chance of a right "
            "answer to it."
        )
        if data.scale.is_logits:
            text += " Logits are the unit: one logit above the item the chance is 73%, one below it 27%."
    else:
        text = (
            f"High {trait} and high thresholds are at the top. At threshold (2) of an item, its second and its third "
            "category are equally likely."
        )
    for facet in facets:
        text += f" A {facet} high up is severe."
    if data.study._comparable() is not None:
        text += " People of different subsets, which nothing links, cannot be compared on it."
    return text


def _wright_map_in_words(display: WrightMap) -> str:
    ability = display.ability
    difficulty = display.difficulty
    hardest = short(display.labels[np.argmax(difficulty)], 40)
    easiest = short(display.labels[np.argmin(difficulty)], 40)
    return (
        f"Wright map, {count(len(ability), 'person')} to the left: mean {number(ability.mean())}, "
        f"middle half from {number(np.quantile(ability, 0.25))} to {number(np.quantile(ability, 0.75))} logits. "
        f"{count(len(difficulty), display.what)} to the right: from {number(difficulty.min())} ({easiest}) to "
        f"{number(difficulty.max())} ({hardest}). The table below the picture has the numbers."
    )


def _numbers_of_wright_map(display: WrightMap) -> Table:
    """A row for each stretch of the scale: how many people, how many items, and which."""
    digits = 2 if display.scale.is_logits else 1
    rows = []
    for low, high, n_people, n_items, *labels in zip(
        *(column.tolist() for column in display.columns().values()), strict=True
    ):
        stretch = f"{number(low, digits)} to {number(high, digits)}"
        rows.append((stretch, f"{n_people:,}", f"{n_items:,}", *(short(label, 200) for label in labels)))
    head = ("Scale", "People", f"{display.what.capitalize()}s", f"Which {display.what}s", *display.facets)
    return Table("The numbers of the picture", head, tuple(rows), folded=True)


def item_table(data: ReportData) -> Section:
    """Every item, the hardest first; a row opens to its curve, its options or thresholds, and its fit."""
    values = item_values(data)
    unknown = np.isnan(values["difficulty"])
    order = np.lexsort((-np.where(unknown, 0.0, values["difficulty"]), unknown))
    values = {name: column[order] for name, column in values.items()}
    heads = OF_RATINGS if data.study.facets else COLUMNS
    columns = [closed_if_alike(column, values) for column in data.heads(heads)]
    if data.binary:
        meaning = "larger difficulty = harder"
        row_opens_to = "its curve and its fit"
    else:
        meaning = "location: mean of the thresholds"
        row_opens_to = "its curve, its categories and its fit"
        columns = [replace(column, head=OF_CATEGORIES.get(column.name, column.head)) for column in columns]
    table = DataTable(
        "items",
        f"{count(len(order), 'item')}, the hardest first; {meaning}, in logits",
        tuple(columns),
        values,
        filters=("misfit", "status"),
        details=details(data, order),
        noun="items",
    )
    how_to_use = f"Click on a column's name to sort, on an item's name to see {row_opens_to}."
    meaning_of_columns = _about_fit(data)
    if "prior" in values:
        meaning_of_columns += _about_prior_marks(data)
    blocks = (Text(how_to_use, screen=True), Text(meaning_of_columns), *cut_short(table, "items.csv"))
    return Section(blocks, tuple(categories(data)))


def item_values(data: ReportData) -> Columns:
    """The columns of the table of items: those of its file, of fit and of the classical analysis, and marks."""
    values: Columns = dict(data.tables["items"])
    for name in ("item_fit", "item_analysis"):
        values |= {key: column for key, column in data.tables.get(name, {}).items() if key not in values}
    if "mean_score" in values and not data.study.facets:
        values["mean_score"] = data.items.mean_in_codes(values["mean_score"])
    marks = dif_marks(data)
    if marks.any():
        values["dif"] = marks
    if data.items.moved_by_prior.any():
        values["prior"] = prior_marks(data.items)
    if "anchored" in values:  # an anchor is given, not estimated
        anchored = values["anchored"].astype(bool)
        for name in ("se", "measure_se"):
            if name in values and anchored.any():
                values[name] = np.where(anchored, np.nan, values[name])
    return values


def _about_fit(data: ReportData) -> str:
    """What infit and outfit are in this table."""
    if data.study.facets:
        return (
            "Infit and outfit are mean squares given the totals of the persons: 1 fits, above 1 is underfit (noise), "
            "below 1 overfit (more regular than the model)."
        )
    if data.parts.fit:
        return (
            "Infit and outfit are mean squares at the maximum likelihood measures: 1 fits, above 1 is underfit "
            "(noise), below 1 overfit (more regular than the model). Which items misfit is decided by infit given the "
            "scores (conditional)."
        )
    return f"The fit of the items was left out of the analysis, and with it what was observed by {data.words.trait}."


def _about_prior_marks(data: ReportData) -> str:
    moved = f"thresholds that the prior moved by more than {MOVED:g} logits"
    if data.binary:
        moved = f"items that the prior moved by more than {MOVED:g} logits, and by how much"
    return f" Prior: {moved}; alone: no finite estimate without it."


def dif_marks(data: ReportData) -> NDArray[Any]:
    """For every item the class of its DIF and by which column, where it is B or C and significant."""
    marks = np.full(data.items.n_items, "", dtype=object)
    if data.study.facets:
        return marks
    for column, comparison in data.study._comparisons_of_groups(data.parts).items():
        items, contrasts = comparison.items, comparison.contrasts
        flagged_in_contrast = contrasts["flagged"].reshape(-1, len(items["item"])).any(axis=0)
        flagged = items["flagged"] | flagged_in_contrast
        place = positions(items["item"].tolist(), data.items.labels)
        letters = highest_class(items, contrasts)
        for k, letter in zip(place[flagged].tolist(), letters[flagged], strict=True):
            mark = f"{letter} ({column})"
            if marks[k]:
                mark = f"{marks[k]}, {mark}"
            marks[k] = mark
    return marks


def prior_marks(calibration: Calibration) -> NDArray[Any]:
    """For every item what the prior did to it, in a word or two; nothing where that is next to nothing.

    Of an item that is right or wrong by how much it moved, of thresholds which: "2, 3", "4 alone", "3, 4 (4 alone)".
    """
    layout = calibration.layout
    assert calibration.without_prior is not None
    only_by_prior = calibration.moved_by_prior & ~np.isfinite(calibration.without_prior)
    shift = calibration.thresholds - calibration.without_prior
    marks = np.full(layout.n_items, "", dtype=object)
    for item in np.unique(layout.item[calibration.moved_by_prior]).tolist():
        moved = np.flatnonzero((layout.item == item) & calibration.moved_by_prior)  # thresholds of the item
        of_prior = moved[only_by_prior[moved]]
        if layout.binary:
            marks[item] = "alone" if len(of_prior) else f"{shift[moved[0]]:+.2f}"
            continue
        marks[item] = ", ".join(map(str, layout.level[moved].tolist()))
        if len(of_prior) == len(moved):
            marks[item] += " alone"
        elif len(of_prior):
            marks[item] += f" ({', '.join(map(str, layout.level[of_prior].tolist()))} alone)"
    return marks


def closed_if_alike(column: Column, values: Columns) -> Column:
    """A column of words that are all the same says nothing; it is shown in opened rows."""
    if column.name not in ("misfit", "status", "dif") or column.name not in values:
        return column
    if len(set(values[column.name].tolist())) > 1:
        return column
    return replace(column, closed=True)


def details(data: ReportData, order: Ints) -> dict[str, Any]:
    """What an opened row shows besides its columns; `order` has the items (positions) of the rows."""
    row = np.empty(len(order), dtype=np.int64)
    row[order] = np.arange(len(order))
    details: dict[str, Any] = {"trait": data.words.trait}
    if data.strata is not None:
        details["strata"] = strata(data, data.strata, row)
    if not data.binary:
        thresholds = np.split(data.items.thresholds, np.cumsum(data.items.layout.max_score)[:-1])
        details["thresholds"] = [
            [rounded(value, 3) for value in thresholds[item].tolist()] for item in order[:MOST].tolist()
        ]
    if data.study.facets:
        details["tables"] = [use_of_categories(data, row)]
    elif not data.binary:
        details["tables"] = [categories_of_items(data, row)]
    elif "distractors" in data.tables:
        details["tables"] = [options(data, row)]
    return details


def categories_of_items(data: ReportData, row: Ints) -> dict[str, Any]:
    """The categories of ordered answers, by row."""
    values = category_values(data)
    head = ["Answer", "People", f"Mean {data.words.trait}", "Infit", "Threshold", "s.e."]
    cells = [values["answer"].tolist(), *_numbers_of(values, n=0, mean_ability=2, infit=2, threshold=2, se=2)]
    if "without_prior" in values:
        head.append("Without prior")
        cells += _numbers_of(values, without_prior=2)
    n_categories = data.items.layout.max_score + 1
    return _inner("Categories", head, row[np.repeat(np.arange(len(row)), n_categories)], cells)


def use_of_categories(data: ReportData, row: Ints) -> dict[str, Any]:
    """How the categories of ratings were used, by row."""
    used = columns_of(data.study.category_use, "item")
    head = ["Category", "Ratings", "Expected", "Mean measure", "Expected measure", "Outfit"]
    codes = [f"{code:g}" for code in used["category"].tolist()]
    cells = [codes, *_numbers_of(used, n=0, expected=1, mean_measure=2, expected_measure=2, outfit=2)]
    return _inner("Categories", head, row[positions(used["item"].tolist(), data.tables["items"]["item"])], cells)


def strata(data: ReportData, curves: Columns, row: Ints) -> dict[int, list[int]]:
    """Marks of curves by row, small: people, mean answer in thousandths, place in hundredths of a logit, interval."""
    items, layout = curves["item"], data.study.calibration.layout
    table = layout.table(data.study.calibration.thresholds, np.inf)[items]
    place = where_expected(np.clip(curves["expected"], NEAR_END, layout.max_score[items] - NEAR_END), table)
    values = (curves["n"], 1000 * curves["observed"], 100 * place, 1000 * curves["ci_low"], 1000 * curves["ci_high"])
    flat = np.rint(np.stack(values, axis=1)).astype(np.int64)
    marks_of_row: dict[int, list[int]] = {}
    for k, mark in zip(row[items].tolist(), flat.tolist(), strict=True):
        if k < MOST:
            marks_of_row.setdefault(k, []).extend(mark)
    return marks_of_row


def options(data: ReportData, row: Ints) -> dict[str, Any]:
    """Who chose which option, by row; the right one has a mark."""
    table = data.tables["distractors"]
    names = []
    for option, is_key in zip(table["option"].tolist(), table["key"].tolist(), strict=True):
        name = short(option, 40)
        if is_key:
            name += " (key)"
        names.append(name)
    shares = [f"{100 * share:.1f}%" for share in table["share"].tolist()]
    n, ability, r = _numbers_of(table, n=0, mean_ability=2, point_biserial=2)
    head = ["Option", "People", "Share", f"Mean {data.words.trait}", "r with the rest"]
    rows = row[positions(table["item"].tolist(), data.tables["items"]["item"])]
    return _inner("Options", head, rows, [names, n, shares, ability, r])


def _numbers_of(columns: Columns, **digits: int) -> list[list[str]]:
    return [[number(value, after) for value in columns[name].tolist()] for name, after in digits.items()]


def _inner(caption: str, head: list[str], rows: Ints, cells: Iterable[Iterable[str]]) -> dict[str, Any]:
    """A small table of each opened row, from its cells and the rows that they belong to."""
    rows_of_tables: dict[int, list[list[str]]] = {}
    for row, *texts in zip(rows.tolist(), *cells, strict=True):
        if row < MOST:
            rows_of_tables.setdefault(row, []).append(texts)
    return {"caption": caption, "head": head, "rows": rows_of_tables}


def curves(data: ReportData) -> Section:
    """Expected answers with what was observed, and category curves or options, of all items or of the worst fit."""
    if not data.parts.fit and (data.binary or not data.study.facets):
        raise OptionError("They come with the fit of the items, which was left out.")
    what = "share of right answers" if data.binary else "mean answer"
    trait = data.words.trait
    sheets = {
        curve_sheet: f"Line: the {what} that the model expects by {trait}. Marks: what was observed in groups of "
        f"people by {trait}, with 95% intervals; under the model they lie on the line but for chance."
    }
    if not data.binary and data.items.has_codes:
        sheets[curve_sheet] += " Here answers are counted from 0, whatever their codes are."
    if data.study.facets:  # what was observed is in the tables
        sheets.clear()
    if not data.binary:
        sheets[category_sheet] = (
            "The probability of each answer, from the lowest at the left to the highest at the right: neighbors cross "
            "at the thresholds. Where a threshold lies below the one before it, the category between them is never the "
            "most likely answer."
        )
        labels_of_items = list(data.study.responses.answer_labels.values())
        if labels_of_items and all(labels == labels_of_items[0] for labels in labels_of_items):
            answers = ", ".join(f"{code:g} = {text}" for code, text in labels_of_items[0].items())
            sheets[category_sheet] += f" The answers: {answers}."
    elif "distractors" in data.tables:
        sheets[distractor_sheet] = (
            f"The share of people who choose each option, by {trait} on the other items: the curve of the key, which "
            "is thick, should rise."
        )
    blocks: list[Any] = []
    for draw, text in sheets.items():
        try:
            blocks += [picture(draw(data.study), f"Small curves of items. {text}"), Text(text)]
        except OptionError as error:
            blocks.append(Text(for_page(str(error))))
    return Section(tuple(blocks))


def category_values(data: ReportData) -> Columns:
    """A row for each category: people, their mean ability, infit, and the threshold between it and the one below."""
    values = dict(columns_of(data.study.categories))
    above = values["category"] > 0
    for name in ("threshold", "se", "ci_low", "ci_high", "without_prior"):
        if name not in data.tables["thresholds"]:
            continue
        values[name] = np.full(len(above), np.nan)
        values[name][above] = data.tables["thresholds"][name]
    values["se"][values["se"] == 0] = np.nan  # of anchors
    answers = []
    for item, code in zip(values["item"].tolist(), values["code"].tolist(), strict=True):
        answers += data.study.responses.answer_names(item, [code])
    values["answer"] = np.array(answers, dtype=object)
    return values


def categories(data: ReportData) -> list[Any]:
    """Every category, with its threshold; nothing where answers are right or wrong."""
    if data.binary or data.study.facets:
        return []
    meaning = (
        f"Mean {data.words.trait}, of people without extreme scores, should rise with the category, and infit be near "
        "1. A threshold, in logits, is where the category and the one below it are equally likely."
    )
    values = category_values(data)
    caption = f"{count(len(values['item']), 'category', 'categories')} of the items"
    table = DataTable("categories", caption, data.heads(CATEGORIES), values, details={}, noun="categories")
    return [Text(meaning), *cut_short(table, "thresholds.csv")]
