"""Does the model hold: the checks, the fit of the items, dimensions, and differential item functioning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.errors import Finding, OptionError
from spectral_irt.inference.dimensions.findings import only_above
from spectral_irt.inference.fit.checks import not_significant
from spectral_irt.inference.results import EACH, MIN_PAIRED
from spectral_irt.plots.all import COMPARED, comparisons_of
from spectral_irt.plots.fit import FitMap
from spectral_irt.report.blocks import (
    ITEM_TEXT,
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
from spectral_irt.text import NONE, count, number, p_value, sentence_case, short, within

if TYPE_CHECKING:
    from spectral_irt.plots.dif import DifferentialPlot

LARGE = 1000  # persons from which on small departures are found, too
OF_DIMENSIONS = ("second_dimension", "dependent_items")
CONTRASTS = (
    Column("item", "Item"),
    ITEM_TEXT,
    Column("grouping", "By"),
    Column("group", "Group"),
    Column("reference", "Against"),
    Column("contrast", "Contrast", 2),
    Column("se", "s.e.", 2),
    Column("p_bh", "p, adjusted", 3, p=True),
    Column("class", "Class"),
    Column("interaction_p_bh", "p, nonuniform", 3, p=True),
    Column("mh_delta", "MH delta", 2),
)
FEW_PAIRS, MANY_PAIRS = 5, 20  # pairs shown where none, and where many are dependent; the appendix has all
PARTS = {
    "total": "Total",
    "measures": "Explained by measures",
    "persons": "Explained by persons",
    "items": "Explained by items",
    "unexplained": "Unexplained",
    "contrast_1": "Unexplained, first contrast",
    "contrast_2": "Unexplained, second contrast",
    "contrast_3": "Unexplained, third contrast",
    "contrast_4": "Unexplained, fourth contrast",
    "contrast_5": "Unexplained, fifth contrast",
}
LOADINGS = (Column("item", "Item"), ITEM_TEXT, *(Column(f"contrast_{k}", f"Contrast {k}", 2) for k in range(1, 6)))
PAIRS = (
    Column("item_1", "Item"),
    Column("item_2", "and item"),
    Column("n", "People", 0),
    Column("q3", "Q3", 3),
    Column("q3_above_mean", "Above the mean", 3),
    Column("q3_critical", "Critical value", 3),
    Column("z", "z", 2),
    Column("p", "p", 4, p=True),
    Column("p_adjusted", "p, adjusted", 4, p=True),
    Column("p_slopes", "p, given slopes", 4, p=True),
    Column("dependent", "Dependent"),
)
CLASSES = (
    Column("item", "Item"),
    ITEM_TEXT,
    Column("n", "People", 0),
    Column("chi2", "χ², corrected", 2),
    Column("df", "df", 0),
    Column("p", "p", 3, p=True),
    Column("p_adjusted", "p, adjusted", 3, p=True),
    Column("chi2_rumm", "χ², as in RUMM", 2),
    Column("p_rumm", "p, as in RUMM", 3, p=True),
    Column("f", "F", 2),
    Column("p_f", "p of F", 3, p=True),
)
BY_THRESHOLD = (CONTRASTS[0], Column("category", "Threshold", 0), *CONTRASTS[2:8])
WHY_NOT_Q3 = (
    "Verdicts are by the p-values. They compare what two items share, given the scores, with what the model expects of "
    "these two; Q3 less the mean compares them with other pairs. The two can differ, most where items are few or "
    "answers are near the floor or the ceiling."
)


def fit(data: ReportData) -> Section:
    """The checks in one table, and infit against outfit."""
    record = data.record
    if data.study.facets:
        raise OptionError("See the infit and outfit columns in the tables of items and of each facet.")
    if not record.get("item_fit"):
        raise OptionError("The fit of the items was left out of the analysis.")
    rows = check_rows(record)
    heads = ("Check", "Result", "p-value")
    table = Table("Tests of model fit", heads, tuple(rows))
    return Section(
        (Text(_about_checks(record, len(rows))), table, _map(data), *_of_classes(record)), _class_table(data)
    )


def _of_classes(record: Mapping[str, Any]) -> list[Any]:
    """The item-trait test of all items."""
    item_trait = record.get("item_trait")
    if not item_trait:
        return []
    sizes = item_trait["intervals"]
    intervals = f"{count(len(sizes), 'class interval')} of {min(sizes):,} to {max(sizes):,} persons"
    chi2 = f"χ²({item_trait['df']}) = {number(item_trait['chi2'], 1)}, {p_value(item_trait['p'])}"
    text = (
        f"Item-trait interaction over {intervals}: {chi2}, given the scores and corrected for the estimated "
        "thresholds. The appendix has each item, with the uncorrected figures of RUMM beside it."
    )
    return [Text(text)]


def _class_table(data: ReportData) -> list[Any]:
    columns = data.tables.get("item_trait")
    if columns is None:
        return []
    at_estimates = f"at estimated {data.words.traits} without a correction, as in RUMM"
    caption = (
        f"Item-trait tests over class intervals: corrected for the estimated thresholds; {at_estimates}; and the "
        "analysis of variance of residuals. p, adjusted: Holm"
    )
    return cut_short(
        DataTable("item_trait", caption, CLASSES, data.with_texts(columns), noun="items"), "item_trait.csv"
    )


def _about_checks(record: Mapping[str, Any], n_rows: int) -> str:
    """At which level the checks in a table of so many rows are made, and what that means for all of them."""
    level = within(record, "fit_checks", "level_each") or 0.01
    beside = bool(record.get("conditional_against_marginal"))
    n_checks = n_rows - beside
    if n_checks == 1:
        text = f"The check is made at {100 * level:g}%."
    else:
        text = (
            f"Each of the {n_checks} checks is made at {100 * level:g}%, so that any of them alarms in at most "
            f"{100 * n_checks * level:g}% of data sets that fit the model."
        )
    if beside:
        text += (
            " The last row is about the population, not the items, and is not counted among them: whether people are "
            "of one population with a normal distribution, and their answers did not choose the items. It looks in a "
            "few directions only, as many as its degrees of freedom."
        )
    if (within(record, "counts", "persons") or 0) >= LARGE:
        text += " In large data small departures are found too: look at how large they are."
    return text


def check_rows(record: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """A row for each check that was made."""
    return [
        _misfit_row(record["item_fit"], record.get("findings") or ()),
        *_test_rows("Item invariance between low and high scorers", record.get("model_test")),
        *_dependence_rows(within(record, "fit_checks", "shared")),
        *_person_rows(within(record, "fit_checks", "erratic_people")),
        *_test_rows("Conditional against marginal likelihood (Hausman)", record.get("conditional_against_marginal")),
    ]


def _misfit_row(item_fit: Mapping[str, Any], findings: Iterable[Mapping[str, Any]]) -> tuple[str, str, str]:
    n_misfits = (item_fit.get("underfit") or 0) + (item_fit.get("overfit") or 0)
    result = f"{n_misfits:,} of {count(item_fit.get('judged') or 0, 'item')}"
    if n_misfits:
        underfit = f"{item_fit.get('underfit'):,} underfit (noise)"
        result += f": {underfit}, {item_fit.get('overfit'):,} overfit (too regular)"
    result += " (adjusted for all items)"
    for finding in findings:
        if finding["code"] == "misfit_not_visible":
            result += f"; misfit of {finding['n_items']:,} could not be seen"
    return "Items that misfit", result, NONE


def _test_rows(name: str, test: Mapping[str, Any] | None) -> Iterator[tuple[str, str, str]]:
    """The row of a chi-squared test, if it was made."""
    if test:
        yield name, f"χ²({test['df']}) = {number(test['statistic'], 1)}", p_value(test.get("p"))


def _dependence_rows(shared: Mapping[str, Any] | None) -> Iterator[tuple[str, str, str]]:
    """What items share beyond the ability: by pairs, and in a contrast of all."""
    if shared:
        pairs = f"{shared.get('dependent_pairs') or 0:,} of {count(shared.get('n_pairs') or 0, 'pair')}"
        yield "Local dependence of pairs of items", pairs, p_value(shared.get("pairs_p"))
        contrast = f"first contrast: eigenvalue {number(shared.get('eigenvalue'))}"
        yield "A second dimension", contrast, p_value(shared.get("contrast_p"))


def _person_rows(misfits: Mapping[str, Any] | None) -> Iterator[tuple[str, str, str]]:
    if misfits:
        n_people = misfits["n_people"]
        expected = f"{number(misfits['chance'] * n_people, 1)} expected"
        result = f"{misfits['share'] * n_people:,.0f} of {n_people:,} persons, {expected}"
        yield "Person misfit", result, p_value(misfits.get("p"))


def _map(data: ReportData) -> Any:
    try:
        display = FitMap.of_columns(data.tables["item_fit"], conditional=True)
    except OptionError:
        return Text("No item has answers that could misfit.")
    labels = display.table["item"]
    infit = display.table["infit"]
    outfit = display.table["outfit"]
    worst = [short(item, 40) for item in labels[display.worst(3)].tolist()]
    alt = (
        f"Infit against outfit of {count(len(labels), 'item')}: infit from {number(infit.min())} to "
        f"{number(infit.max())}, outfit from {number(outfit.min())} to {number(outfit.max())}; 1 fits. Farthest from "
        f"the model: {', '.join(worst)}."
    )
    caption = (
        "Mean squares conditional on the scores; each row of the table of items has them when it is opened (infit and "
        "outfit, conditional). The columns infit and outfit of that table are the conventional ones, at maximum "
        f"likelihood {data.words.traits}."
    )
    return picture(display, alt, caption)


def dimensions(data: ReportData) -> Section:
    """Whether items share more than one ability."""
    shared = within(data.record, "fit_checks", "shared")
    if not shared:
        if data.study.facets:
            raise OptionError("It is not looked at where answers are ratings.")
        if within(data.record, "item_fit") is None:
            raise OptionError("It is looked at with the fit of the items, which was left out.")
        raise OptionError("There are too few people or items to see a second dimension or dependent items.")
    findings = [finding for finding in data.record["findings"] if finding.get("code") in OF_DIMENSIONS]
    sentences = [f"{finding.get('sentence', '')} {finding.get('remedy') or ''}".strip() for finding in findings]
    codes = {finding.get("code") for finding in findings}
    if "second_dimension" not in codes and shared["contrast_p"] < EACH:
        sentences.append(f"The first contrast ({p_value(shared['contrast_p'])}) is that of the dependent items.")
    elif "second_dimension" not in codes:
        sentences.append(sentence_case(f"{not_significant('second dimension', shared['contrast_p'])}."))
    if "dependent_items" not in codes:
        sentence = not_significant("local dependence", shared["pairs_p"], only_above(shared["detectable"]))
        sentences.append(sentence_case(f"{sentence}."))
    blocks: list[Any] = [
        Text(short(" ".join(sentences), 2_000)),
        _variance(data),
        _contrast(shared),
        _residuals(shared),
        *_smith(data.record),
    ]
    pairs = data.tables["local_dependence"]
    dependent = int(pairs["dependent"].sum())
    shown = max(dependent, FEW_PAIRS)
    if dependent <= MANY_PAIRS:
        blocks.append(_strongest_pairs(data, pairs, shown))
    if _disagrees_with_q3(shared, pairs):
        blocks.append(Text(WHY_NOT_Q3))
    tables: list[Any] = [
        DataTable(
            "residual_loadings",
            "Loadings on residual contrasts",
            LOADINGS,
            data.with_texts(data.tables["residual_loadings"]),
        )
    ]
    tables += cut_short(
        DataTable("local_dependence", "Residual correlations of pairs of items", PAIRS, pairs, noun="pairs"),
        "local_dependence.csv",
    )
    return Section(tuple(blocks), tuple(tables))


def _disagrees_with_q3(shared: Mapping[str, Any], pairs: Columns) -> bool:
    """Whether Q3 and its critical value say something else of a pair than the test does."""
    critical = shared.get("q3_star_critical")
    if critical is None or not len(pairs["n"]):
        return False
    significant = pairs["p_adjusted"] < EACH
    return bool(np.any((pairs["q3_above_mean"] > critical) != significant))


def _variance(data: ReportData) -> Table:
    """Winsteps' table 23."""
    columns = data.tables["dimensionality"]
    rows = [
        (PARTS.get(part, part), number(units), f"{number(percent, 1)}%")
        for part, units, percent in zip(columns["part"], columns["eigenvalue"], columns["percent"], strict=True)
    ]
    return Table("Variance of the responses", ("", "Eigenvalue (items)", "Percent"), tuple(rows))


def _contrast(shared: Mapping[str, Any]) -> Table:
    rows = [
        ("Eigenvalue of the first contrast (items)", number(shared.get("eigenvalue"))),
        (f"Critical value at {EACH:.0%}", number(shared.get("eigenvalue_critical"))),
        ("p-value", p_value(shared.get("contrast_p"))),
        (
            "Cross-validated: found in one half of the people, measured in the other (items; 1 if none)",
            number(shared.get("strength")),
        ),
    ]
    return Table("First residual contrast", ("", "Value"), tuple(rows))


def _residuals(shared: Mapping[str, Any]) -> Table:
    draws = shared.get("draws")
    judged = f"{draws:,} data sets drawn given the scores" if draws else "normal distribution (large sample)"
    n_items = shared.get("n_items") or 0
    n_pairs = shared.get("n_pairs") or 0
    rows = [
        ("People and items", f"{number(shared.get('n_people'), 0)} and {number(n_items, 0)}"),
        ("Dependent pairs", f"{shared.get('dependent_pairs') or 0:,} of {n_pairs:,}"),
    ]
    n_not_judged = n_items * (n_items - 1) // 2 - n_pairs
    if n_not_judged > 0:
        name = f"Pairs that are not judged: fewer than {MIN_PAIRED} people answered both items"
        rows.append((name, f"{n_not_judged:,}"))
    rows += [
        ("p-value, adjusted for all pairs", p_value(shared.get("pairs_p"))),
        ("Judged by", judged),
        ("Mean Q3", number(shared.get("mean_q3"), 3)),
        ("Q3*, the largest Q3 less the mean", number(shared.get("q3_star"), 3)),
        (f"Critical value of Q3* at {EACH:.0%}", number(shared.get("q3_star_critical"), 3)),
        ("Q3 above the mean that would be found with probability 80%", number(shared.get("detectable"))),
    ]
    return Table("Residual correlations (Q3)", ("", "Value"), tuple(rows))


def _smith(record: Mapping[str, Any]) -> list[Any]:
    """Smith's test, where it was made."""
    smith_test = record.get("smith_test")
    if not smith_test:
        return []
    interval = f"{100 * smith_test['ci_low']:.1f}% to {100 * smith_test['ci_high']:.1f}%"
    rows = (
        ("Items in the two subsets", f"{smith_test['items_first']} and {smith_test['items_second']}"),
        ("Persons with a score between the ends on both", f"{smith_test['n_people']:,}"),
        ("Significant t-tests (5%)", f"{smith_test['significant']:,}, {100 * smith_test['share']:.1f}%"),
        ("Exact 95% interval of the share; 5% or less is expected", interval),
        ("Correlation of the two measures", number(smith_test["correlation"])),
    )
    return [Table("Smith's test: measures by two subsets of items", ("", "Value"), rows)]


def _strongest_pairs(data: ReportData, pairs: Columns, most: int) -> Table:
    """The pairs that are dependent, or those that come next to it."""
    rows = []
    for k in range(min(most, len(pairs["n"]))):
        verdict = "yes" if pairs["dependent"][k] else "no"
        if verdict == "no" and np.isfinite(pairs["p_slopes"][k]):
            verdict = "no: slopes explain it"
        names = (data.label_and_text(pairs["item_1"][k]), data.label_and_text(pairs["item_2"][k]))
        q3 = (number(float(pairs["q3"][k])), number(float(pairs["q3_above_mean"][k])))
        rows.append((*names, *q3, p_value(float(pairs["p_adjusted"][k])), verdict))
    head = ("Item", "and item", "Q3", "Q3 above the mean", "p-value, adjusted", "Dependent")
    return Table("Pairs with the most significant residual correlations", head, tuple(rows))


def differential(data: ReportData) -> Section:
    """A sentence and a picture for the comparisons of groups that were made; their tables are in the appendix."""
    if data.study.facets:
        raise OptionError("Of ratings, the bias of raters by group is in the appendix, where groups were compared.")
    if not data.parts.groups:
        raise OptionError("No groups of people were compared.")
    comparisons = data.study._comparisons(data.parts)
    why_left_out = [finding.sentence for finding in comparisons.values() if isinstance(finding, Finding)]
    if len(why_left_out) == len(comparisons):
        raise OptionError(" ".join(why_left_out))
    blocks: list[Any] = [Text(_comparison_in_words(comparison)) for comparison in groupings(data.record)]
    blocks += [Text(sentence) for sentence in why_left_out]
    blocks.append(Text("Classes of the Educational Testing Service: A negligible, B moderate, C large."))
    pairs = comparisons_of(data.study, data.parts)
    for comparison, group in pairs[:COMPARED]:
        with suppress(OptionError):  # no item has a finite contrast
            blocks.append(_contrasts(data.study.plot.dif(comparison, group)))
    if len(pairs) > COMPARED:
        blocks.append(Text(f"The first {COMPARED} of {len(pairs)} comparisons are drawn; the appendix has all."))
    appendix = [
        *_contrast_table(data, "dif", CONTRASTS, "items"),
        *_contrast_table(data, "dif_thresholds", BY_THRESHOLD, "thresholds"),
    ]
    return Section(tuple(blocks), tuple(appendix))


def _contrast_table(data: ReportData, name: str, columns: tuple[Column, ...], what: str) -> list[Any]:
    """All contrasts of items, or of thresholds; nothing where none were made."""
    if name not in data.tables:
        return []
    caption = f"Contrasts of {what} between groups in logits, the largest first; positive = harder for the group"
    if "mh_delta" in data.tables[name]:
        caption += "; of MH delta, on the scale of the classes, negative = harder for the group"
    contrasts = data.with_texts(largest_first(data.tables[name]))
    filters = ("class", "grouping", "group")
    table = DataTable(name, caption, columns, contrasts, filters=filters, noun="comparisons")
    return cut_short(table, f"{name}.csv")


def largest_first(contrasts: Columns) -> Columns:
    """The rows by the size of the contrast; those without one last."""
    size = np.abs(contrasts["contrast"])
    order = np.argsort(-np.where(np.isnan(size), -1.0, size), kind="stable")
    return {name: values[order] for name, values in contrasts.items()}


def groupings(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The comparisons of groups in the record, which holds one as it is and several as a list."""
    comparisons = record.get("dif")
    if not comparisons:
        return []
    return comparisons if isinstance(comparisons, list) else [comparisons]


def _comparison_in_words(comparison: Mapping[str, Any]) -> str:
    """Which groups were compared, and how many items are harder for some of them."""
    groups = comparison.get("groups") or {}
    sizes = ", ".join(f"{short(name, 40)} ({n:,})" for name, n in groups.items())
    reference = short(comparison.get("reference"), 40)
    classes = comparison.get("classes") or {}
    in_classes = f"{classes.get('B', 0):,} in class B and {classes.get('C', 0):,} in class C"
    remark = ""
    if len(groups) > 2:
        in_classes += " in any comparison of two groups"
        remark = f" Pictures and table compare each group with {reference} alone."
    by_slope = comparison.get("by_slope") or 0
    if by_slope:
        differ = count(by_slope, "item differs as its slope predicts", "items differ as their slopes predict")
        remark += f" {differ}, which is not counted as DIF."
    return (
        f"By {short(comparison.get('column'), 60)}: {sizes}; compared with {reference}. Of "
        f"{count(comparison.get('items_compared') or 0, 'item')}, {in_classes}; {comparison.get('flagged') or 0:,} "
        f"flagged after adjustment for all. All items together: {p_value(comparison.get('p'))}.{remark}"
    )


def _contrasts(display: DifferentialPlot) -> Any:
    labels = display.table["item"]
    contrast = display.table["contrast"]
    first = ", ".join(
        f"{short(item, 40)} {number(value)}" for item, value in zip(labels[:3], contrast[:3], strict=True)
    )
    alt = (
        f"Contrasts of {count(len(labels), 'item')} between {short(display.group, 40)} and "
        f"{short(display.reference, 40)} with 95% intervals. The largest, in logits: {first}."
    )
    return picture(display, alt)
