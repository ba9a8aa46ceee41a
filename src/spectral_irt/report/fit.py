"""Does the model hold: the checks, the fit of the items, dimensions, and differential item functioning."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from spectral_irt.errors import Finding, OptionError
from spectral_irt.inference.dimensions.dimensionality import unseen_dependence
from spectral_irt.plots.all import COMPARED, compared
from spectral_irt.plots.fit import FitMap
from spectral_irt.report.blocks import Column, DataTable, ReportData, Section, Table, Text, cut_short, picture
from spectral_irt.text import NONE, count, number, p_value, short, within

if TYPE_CHECKING:
    from spectral_irt.plots.dif import DifferentialPlot

OF_DIMENSIONS = ("second_dimension", "dependent_items")
CONTRASTS = (
    Column("item", "Item"),
    Column("grouping", "Grouping"),
    Column("group", "Group"),
    Column("reference", "Against"),
    Column("contrast", "Contrast (logits)", 2),
    Column("se", "s.e.", 2),
    Column("p_bh", "p, adjusted", 3, p=True),
    Column("class", "Class"),
    Column("interaction_p_bh", "p, nonuniform", 3, p=True),
    Column("mh_delta", "Mantel-Haenszel delta", 2),
)
BY_THRESHOLD = (CONTRASTS[0], Column("category", "Threshold", 0), *CONTRASTS[1:7])


def fit(data: ReportData) -> Section:
    """The checks in one table, and infit against outfit."""
    record = data.record
    if data.study.facets:
        raise OptionError("See the infit and outfit columns in the tables of items, of each facet and of people.")
    if not record.get("item_fit"):
        raise OptionError("The fit of the items was left out of the analysis.")
    rows = check_rows(record)
    heads = ("Check", "Result", "p-value")
    table = Table("Tests of model fit", heads, tuple(rows))
    return Section((Text(_about_checks(record, len(rows))), table, _map(data)))


def _about_checks(record: Mapping[str, Any], n_rows: int) -> str:
    """At which level the checks in a table of so many rows are made, and what that means for all of them."""
    level = within(record, "fit_checks", "level_each") or 0.01
    beside = bool(record.get("conditional_against_marginal"))
    n_checks = n_rows - beside
    if n_checks == 1:
        said = f"The check is made at {100 * level:g}%."
    else:
        said = (
            f"Each of the {n_checks} checks is made at {100 * level:g}%, so that any of them alarms in at most "
            f"{100 * n_checks * level:g}% of data sets that fit the model."
        )
    if beside:
        said += " The last row is about the population, not the items, and is not counted among them."
    return f"{said} In large data small departures are found too: look at how large they are."


def check_rows(record: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """A row for each check that was made."""
    found, shared = record["item_fit"], within(record, "fit_checks", "shared")
    people = within(record, "fit_checks", "erratic_people")
    bad = (found.get("underfit") or 0) + (found.get("overfit") or 0)
    what = f"{bad:,} of {count(found.get('judged') or 0, 'item')}"
    if bad:
        what += f": {found.get('underfit'):,} underfit (noise), {found.get('overfit'):,} overfit (too regular)"
    rows = [("Items that misfit", f"{what} (adjusted for all items)", NONE)]

    def chi_squared(name: str, test: Mapping[str, Any] | None) -> None:
        if test:
            said = f"χ²({test['df']}) = {number(test['statistic'], 1)}"
            rows.append((name, said, p_value(test.get("p"))))

    chi_squared("Items harder for low or for high scorers", record.get("model_test"))
    if shared:
        pairs = f"{shared.get('dependent_pairs') or 0:,} of {count(shared.get('n_pairs') or 0, 'pair')}"
        strength = f"contrast of the strength of {number(shared.get('strength'), 1)} items"
        rows.append(("Local dependence of pairs of items", pairs, p_value(shared.get("pairs_p"))))
        rows.append(("A second dimension", strength, p_value(shared.get("contrast_p"))))
    if people:
        said = f"{100 * people['share']:.1f}%, expected {100 * people['chance']:.1f}%"
        rows.append(("Person misfit", said, p_value(people.get("p"))))
    chi_squared("Conditional against marginal likelihood (Hausman)", record.get("conditional_against_marginal"))
    return rows


def _map(data: ReportData) -> Any:
    try:
        display = FitMap.of_columns(data.tables["item_fit"], conditional=True)
    except OptionError:
        return Text("No item has answers that could misfit.")
    labels, infit, outfit = (display.table[name] for name in ("item", "infit", "outfit"))
    worst = [short(item, 40) for item in labels[display.worst(3)].tolist()]
    alt = (
        f"Infit against outfit of {count(len(labels), 'item')}: infit from {number(infit.min())} to "
        f"{number(infit.max())}, outfit from {number(outfit.min())} to {number(outfit.max())}; 1 fits. Farthest from "
        f"the model: {', '.join(worst)}."
    )
    return picture(display, alt, "The numbers of every item are in the table of the items.")


def dimensions(data: ReportData) -> Section:
    """Whether items share more than one ability."""
    shared = within(data.record, "fit_checks", "shared")
    if not shared:
        if data.study.facets:
            raise OptionError("It is not looked at where answers are ratings.")
        if within(data.record, "item_fit") is None:
            raise OptionError("It is looked at with the fit of the items, which was left out.")
        raise OptionError("There are too few people or items to see a second dimension or dependent items.")
    found = [one for one in data.record["findings"] if one.get("code") in OF_DIMENSIONS]
    if found:
        said = " ".join(f"{one.get('sentence', '')} {one.get('remedy') or ''}".strip() for one in found)
    else:
        said = f"No second dimension seen; {unseen_dependence(shared['detectable'])}."
    rows = (
        ("People and items looked at", f"{number(shared.get('n_people'), 0)} and {number(shared.get('n_items'), 0)}"),
        ("Strength of the first contrast, in items", number(shared.get("strength"))),
        ("Chance of such a contrast under the model", p_value(shared.get("contrast_p"))),
        ("Dependent pairs", number(shared.get("dependent_pairs") or 0, 0)),
        ("Residual correlation of the strongest pair", number(shared.get("correlation"))),
        ("Chance of such a pair under the model", p_value(shared.get("pairs_p"))),
        ("Residual correlation that would be found, with probability 80%", number(shared.get("detectable"))),
    )
    table = Table(f"What items share beyond the {data.words.trait}", ("", "Value"), rows)
    return Section((Text(short(said, 2_000)), table))


def differential(data: ReportData) -> Section:
    """A sentence and a picture for the comparisons of groups that were made; their tables are in the appendix."""
    if data.study.facets:
        raise OptionError("Of ratings, raters are compared by group with --group COLUMN: see the appendix.")
    if not data.parts.groups:
        raise OptionError("No groups of people were compared; --group COLUMN does.")
    comparisons = data.study._comparisons(data.parts)
    left_out = [one.sentence for one in comparisons.values() if isinstance(one, Finding)]
    if len(left_out) == len(comparisons):
        raise OptionError(" ".join(left_out))
    blocks: list[Any] = [Text(_sentence(one)) for one in groupings(data.record)]
    blocks += [Text(sentence) for sentence in left_out]
    blocks.append(Text("Classes of the Educational Testing Service: A negligible, B moderate, C large."))
    pairs = compared(data.study, data.parts)
    for found, group in pairs[:COMPARED]:
        with suppress(OptionError):  # no item has a finite contrast
            blocks.append(_contrasts(data.study.plot.dif(found, group)))
    if len(pairs) > COMPARED:
        blocks.append(Text(f"The first {COMPARED} of {len(pairs)} comparisons are drawn; the appendix has all."))
    tables = []
    for name, columns, what in (("dif", CONTRASTS, "items"), ("dif_thresholds", BY_THRESHOLD, "thresholds")):
        if name in data.tables:
            caption = f"Contrasts of {what} between groups; positive = harder for the group"
            filters = ("class", "grouping", "group")
            table = DataTable(name, caption, columns, data.tables[name], filters=filters, noun="comparisons")
            tables += cut_short(table, f"{name}.csv")
    return Section(tuple(blocks), tuple(tables))


def groupings(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The comparisons of groups in the record, which holds one as it is and several as a list."""
    found = record.get("dif")
    return list(found) if isinstance(found, list) else [found] if found else []


def _sentence(one: Mapping[str, Any]) -> str:
    classes = one.get("classes") or {}
    sizes = ", ".join(f"{short(name, 40)} ({n:,})" for name, n in (one.get("groups") or {}).items())
    found = f"{classes.get('B', 0):,} in class B and {classes.get('C', 0):,} in class C"
    several = len(one.get("groups") or ()) > 2
    more = " in any comparison of two groups" if several else ""
    each = f" Pictures and table compare each group with {short(one.get('reference'), 40)} alone." if several else ""
    return (
        f"By {short(one.get('column'), 60)}: {sizes}; compared with {short(one.get('reference'), 40)}. Of "
        f"{count(one.get('items_compared') or 0, 'item')}, {found}{more}; {one.get('flagged') or 0:,} flagged after "
        f"adjustment for all. All items together: {p_value(one.get('p'))}.{each}"
    )


def _contrasts(display: DifferentialPlot) -> Any:
    labels, contrast = display.table["item"], display.table["contrast"]
    first = ", ".join(
        f"{short(item, 40)} {number(value)}" for item, value in zip(labels[:3], contrast[:3], strict=True)
    )
    alt = (
        f"Contrasts of {count(len(labels), 'item')} between {short(display.group, 40)} and "
        f"{short(display.reference, 40)} with 95% intervals. The largest, in logits: {first}."
    )
    return picture(display, alt)
