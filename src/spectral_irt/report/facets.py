"""Raters and other facets: severities with their fit, agreement, and interactions with items and groups."""

from __future__ import annotations

from typing import Any

from spectral_irt.analysis.facets import facet_lines, facet_tables, severest_first
from spectral_irt.inference.facets import CERTAIN
from spectral_irt.report.blocks import Column, DataTable, ReportData, Section, Text, cut_short, picture
from spectral_irt.report.items import closed_if_alike
from spectral_irt.text import count, number

LEVELS = (
    Column("severity", "Severity", 2),
    Column("se", "s.e.", 2),
    Column("n", "Ratings", 0),
    Column("observed_average", "Average", 2),
    Column("fair_average", "Fair average", 2),
    Column("infit_conditional", "Infit", 2),
    Column("outfit_conditional", "Outfit", 2),
    Column("agreement", "Agreement", 2),
    Column("status", "Status"),
    Column("agreement_expected", "Expected agreement", 2, closed=True),
    Column("infit_conditional_z", "Infit z", 2, closed=True),
    Column("outfit_conditional_z", "Outfit z", 2, closed=True),
    Column("infit", "Infit at estimated measures", 2, closed=True),
    Column("outfit", "Outfit at estimated measures", 2, closed=True),
    Column("discrimination", "Discrimination (1: the model's)", 2, closed=True),
    Column("discrimination_se", "s.e. of discrimination", 2, closed=True),
    Column("halo", "Halo (1 expected)", 2, closed=True),
    Column("halo_z", "Halo z", 2, closed=True),
    Column("subset", "Subset that can be compared", 0, closed=True),
)
BIAS = (
    Column("bias", "Bias (logits)", 2),
    Column("se", "s.e.", 2),
    Column("z", "z", 2),
    Column("p_holm", "p, adjusted", 3, p=True),
)
MEANING = (
    "Severities are in logits and sum to zero; larger = more severe. The fair average is the mean rating that the "
    "average person would get, in the codes of the data. Infit and outfit are given the totals of the persons: 1 is "
    "expected, above 1 is underfit (noise), below 1 overfit (more regular than the model). Status: a misfit is named "
    "where it is significant (5% for all together) and large. Agreement: the share of equal ratings where two rated "
    "the same person on the same item, and what the model expects of it given the totals."
)
OF_SUBSETS = "Severities, measures and fair averages of subsets that nothing links cannot be compared."


def facets(data: ReportData) -> Section:
    """A sentence, a picture and a table for each facet; interactions in the appendix."""
    blocks: list[Any] = []
    appendix: list[Any] = []
    names_of_tables = facet_tables(data.study.facets, data.parts.groups)
    for name, said in facet_lines(data.study):
        tables = names_of_tables[name]
        display = data.study.plot.facet(name)
        first, last = display.labels[[0, -1]].tolist()
        alt = (
            f"Severities of {count(len(display.labels), name)} with 95% intervals, from "
            f"{number(display.difficulty[0])} ({first}) down to {number(display.difficulty[-1])} ({last}) logits."
        )
        table = data.tables[tables.levels]
        order = severest_first(table)
        values = {key: column[order] for key, column in table.items()}
        unlinked = table["subset"].max() > 1
        caption = f"{count(len(order), name)}, the most severe first{' in each subset' if unlinked else ''}"
        columns = (Column(name, name.capitalize()), *(closed_if_alike(column, values) for column in LEVELS))
        shown = DataTable(tables.levels, caption, columns, values, filters=("status",), details={}, noun=f"{name}s")
        blocks += [Text(f"{said}."), picture(display, alt), Text(f"{MEANING} {OF_SUBSETS}" if unlinked else MEANING)]
        blocks += cut_short(shown, f"{tables.levels}.csv")
        for key in (tables.interactions, *tables.groups.values()):
            found = data.tables[key]
            what = "item" if key == tables.interactions else "group"
            sure = int((found["p_holm"] < CERTAIN).sum())
            pairs = count(len(found["bias"]), f"pair of {name} and {what}", f"pairs of {name} and {what}")
            rest = "differ from what severity explains (Holm, 5%); the appendix has all."
            blocks.append(Text(f"{sure:,} of {pairs} {rest}"))
            caption = f"Bias by {name} and {what}, the surest first; positive = more severe there"
            heads = (Column(name, name.capitalize()), Column(what, what.capitalize()), *BIAS)
            appendix += cut_short(DataTable(key, caption, heads, found, noun="combinations"), f"{key}.csv")
    title = " and ".join(f"{name}s" for name in data.study.facets)
    return Section(tuple(blocks), tuple(appendix), title[:1].upper() + title[1:])
