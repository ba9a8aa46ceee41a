"""Raters and other facets: severities with their fit, agreement, and interactions with items and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spectral_irt.analysis.cache import columns_of
from spectral_irt.analysis.facets import facet_lines, facet_tables, severest_first
from spectral_irt.inference.facets import CERTAIN
from spectral_irt.inference.rating_tables import UNEXPECTED as FAR_OFF
from spectral_irt.persons.residuals import UNEXPECTED_OF_ALL
from spectral_irt.report.blocks import Column, DataTable, ReportData, Section, Text, cut_short, picture
from spectral_irt.report.items import closed_if_alike
from spectral_irt.tables import Columns
from spectral_irt.text import count, number, one_or_many, plural, sentence_case

LEVELS = (
    Column("severity", "Severity", 2),
    Column("se", "s.e.", 2),
    Column("n", "Ratings", 0),
    Column("observed_average", "Average", 2),
    Column("fair_average", "Fair", 2),
    Column("infit_conditional", "Infit", 2),
    Column("infit_conditional_z", "Infit z", 1),
    Column("outfit_conditional", "Outfit", 2),
    Column("point_measure", "Point-measure", 2),
    Column("agreement", "Agreement", 2),
    Column("status", "Status"),
    Column("point_measure_expected", "Expected point-measure", 2, closed=True),
    Column("agreement_expected", "Expected agreement", 2, closed=True),
    Column("outfit_conditional_z", "Outfit z", 1, closed=True),
    Column("infit", "Infit at estimated measures", 2, closed=True),
    Column("outfit", "Outfit at estimated measures", 2, closed=True),
    Column("discrimination", "Discrimination (1: the model's)", 2, closed=True),
    Column("discrimination_se", "s.e. of discrimination", 2, closed=True),
    Column("halo", "Halo (1 expected)", 2, closed=True),
    Column("halo_z", "Halo z", 2, closed=True),
    Column("subset", "Subset that can be compared", 0, closed=True),
)
BIAS = (
    Column("n", "Ratings", 0),
    Column("observed_average", "Average", 2),
    Column("expected_average", "Expected", 2),
    Column("bias", "Bias (logits)", 2),
    Column("se", "s.e.", 2),
    Column("z", "z", 2),
    Column("p_holm", "p, adjusted", 3, p=True),
)
CATEGORIES = (
    Column("category", "Category", 0),
    Column("n", "Ratings", 0),
    Column("expected", "Expected", 1),
    Column("share", "Share", 3),
    Column("mean_measure", "Mean measure", 2),
    Column("expected_measure", "Expected measure", 2),
    Column("outfit", "Outfit", 2),
)
UNEXPECTED = (Column("response", "Rating", 0), Column("expected", "Expected", 2), Column("z", "z", 2))
MOST_UNEXPECTED = 20  # rows of a report; the file has all
OF_CATEGORIES = (
    "Expected ratings are those of the model given the totals of the persons. The mean measure is that of person less "
    "location and severity, in logits, over these ratings; it should rise with the category, near what is expected. "
    "Outfit: 1 is expected."
)
MEANING = (
    "Severities are in logits and sum to zero; larger = more severe. The fair average is the mean rating that the "
    "average person would get, in the codes of the data. Infit and outfit are given the totals of the persons: 1 is "
    "expected, above 1 is underfit (noise), below 1 overfit (more regular than the model). Status: a misfit is named "
    "where it is significant (5% for all together) and large. Point-measure: the correlation of the ratings with the "
    "measures. Agreement: the share of equal ratings where two rated the same person on the same item. What the model "
    "expects of both is in each row when it is opened; Rasch-kappa is (agreement - expected) / "
    "(1 - expected). Equal severities: a test of "
    "the hypothesis that all severities are the same."
)
OF_SUBSETS = "Severities, measures and fair averages of subsets that nothing links cannot be compared."


def unexpected_ratings(data: ReportData) -> list[Any]:
    """Single ratings that are far from what is expected; persons are named only where that was asked for."""
    ratings = columns_of(data.study.unexpected_ratings)
    n = len(ratings["z"])
    if not n:
        return [Text(f"No rating is {FAR_OFF:g} or more standard deviations from what the model expects.")]
    how_many = f"{count(n, 'rating')} of {data.record['counts']['responses']:,} {one_or_many(n, 'is', 'are')}"
    if n == UNEXPECTED_OF_ALL:
        how_many = f"at least {how_many}"
    text = f"{how_many} {FAR_OFF:g} or more standard deviations from what the model expects"
    if n > MOST_UNEXPECTED:
        text += f"; the {MOST_UNEXPECTED} farthest"
    names = ["item", *data.study.facets]
    if data.list_persons:
        names.insert(0, "person")
    heads = [Column(name, name.capitalize()) for name in names]
    farthest = {key: values[:MOST_UNEXPECTED] for key, values in ratings.items()}
    columns = in_codes((*heads, *UNEXPECTED), farthest)
    table = DataTable("unexpected", "Unexpected ratings, the farthest first", columns, farthest, noun="ratings")
    return [Text(sentence_case(f"{text}.")), table]


def in_codes(columns: Sequence[Column], values: Columns) -> tuple[Column, ...]:
    """The columns, with two decimals for codes of the data that are no whole numbers."""
    fractions = [name for name in ("category", "response") if name in values and values[name].dtype.kind == "f"]
    return tuple(replace(column, digits=2) if column.name in fractions else column for column in columns)


def category_table(name: str, caption: str, first: Column, values: Columns, file: str) -> list[Any]:
    """How often each category was used, by rater or by item."""
    columns = in_codes((first, *CATEGORIES), values)
    return cut_short(DataTable(name, caption, columns, values, noun="rows"), file)


def facets(data: ReportData) -> Section:
    """A sentence, a picture and a table for each facet; interactions in the appendix; nothing without facets."""
    if not data.study.facets:
        return Section(())
    blocks: list[Any] = []
    appendix: list[Any] = []
    names_of_tables = facet_tables(data.study.facets, data.parts.groups)
    for name, summary in facet_lines(data.study):
        tables = names_of_tables[name]
        blocks.append(Text(f"{summary}."))
        blocks += _picture_of_severities(data, name)
        blocks += _severities(data, name, tables.levels)
        for key in (tables.interactions, *tables.groups.values()):
            crossed_with = "item" if key == tables.interactions else "group"
            blocks.append(_how_many_biases(data.tables[key], name, crossed_with))
            appendix += _biases(data.tables[key], name, crossed_with, key)
        appendix.append(Text(OF_CATEGORIES))
        appendix += category_table(
            tables.categories,
            f"Categories by {name}",
            Column(name, name.capitalize()),
            data.tables[tables.categories],
            f"{tables.categories}.csv",
        )
    blocks += unexpected_ratings(data)
    by_item = columns_of(data.study.category_use, "item")
    appendix += category_table(
        "item_categories", "Categories by item", Column("item", "Item"), by_item, "thresholds.csv"
    )
    title = " and ".join(map(plural, data.study.facets))
    return Section(tuple(blocks), tuple(appendix), sentence_case(title))


def _picture_of_severities(data: ReportData, name: str) -> list[Any]:
    """The severities of a facet with their intervals; nothing where no two can be compared."""
    display = data.study.plot.facet(name)
    if not len(display.labels):
        return []
    first, last = display.labels[[0, -1]].tolist()
    alt = (
        f"Severities of {count(len(display.labels), name)} with 95% intervals, from "
        f"{number(display.difficulty[0])} ({first}) down to {number(display.difficulty[-1])} ({last}) logits."
    )
    return [picture(display, alt)]


def _severities(data: ReportData, name: str, key: str) -> list[Any]:
    """What the columns mean, and every level of a facet, the most severe first."""
    table = data.tables[key]
    order = severest_first(table)
    values = {column: cells[order] for column, cells in table.items()}
    meaning = MEANING
    caption = f"{count(len(order), name)}, the most severe first"
    if table["subset"].max() > 1:
        meaning += f" {OF_SUBSETS}"
        caption += " in each subset"
    columns = (Column(name, name.capitalize()), *(closed_if_alike(column, values) for column in LEVELS))
    levels = DataTable(key, caption, columns, values, filters=("status",), details={}, noun=plural(name))
    return [Text(meaning), *cut_short(levels, f"{key}.csv")]


def _how_many_biases(biases: Columns, name: str, crossed_with: str) -> Text:
    n_significant = int((biases["p_holm"] < CERTAIN).sum())
    n_tested = int(np.isfinite(biases["bias"]).sum())
    n_biases = len(biases["bias"])
    bias = f"{name}-by-{crossed_with} bias"
    if not n_tested:
        return Text(f"No {bias} can be told from the severities here.")
    of_all = count(n_tested, bias, f"{bias}es")
    verb = one_or_many(n_significant, "is", "are")
    others = ""
    if n_tested < n_biases:
        others = f"{n_biases - n_tested:,} more cannot be told from the severities; "
    return Text(f"{n_significant:,} of {of_all} {verb} significant (Holm, 5%); {others}the appendix has all.")


def _biases(biases: Columns, name: str, crossed_with: str, key: str) -> list[Any]:
    caption = f"Bias by {name} and {crossed_with}, the clearest first; positive = more severe there"
    columns = (Column(name, name.capitalize()), Column(crossed_with, crossed_with.capitalize()), *BIAS)
    return cut_short(DataTable(key, caption, columns, biases, noun="combinations"), f"{key}.csv")
