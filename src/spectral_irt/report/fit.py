"""Does the model hold: the checks, the fit of the items, and dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectral_irt.errors import OptionError
from spectral_irt.inference.dimensions.dimensionality import unseen_dependence
from spectral_irt.plots.fit import FitMap
from spectral_irt.report.blocks import How, Missing, Section, Table, Text, picture, short, within
from spectral_irt.report.commands import fit_command, how
from spectral_irt.report.data import Material
from spectral_irt.tables import Columns
from spectral_irt.text import count, number, p_value

OF_DIMENSIONS = ("second_dimension", "dependent_items")


def fit(material: Material) -> Section | Missing:
    """The checks in one table, and infit against outfit."""
    title = "Does the model fit?"
    record, columns = material.record, material.tables.get("item_fit")
    if not record.get("item_fit"):
        return Missing(title, material.missing.get("item_fit", "The fit of the items was left out of the analysis."))
    table = checks_table(record, How(fit_command(record, "--fit"), "study.checks()"))
    blocks: list[Any] = [Text(checked(record)), table]
    if columns is not None:
        blocks += _map(material)
    elif "item_fit" in material.missing:
        blocks.append(Text(material.missing["item_fit"]))
    return Section("fit", title, tuple(blocks))


def checked(record: Mapping[str, Any]) -> str:
    """At which level the checks are made, in words."""
    level = within(record, "fit_checks", "level_each") or 0.01
    return (
        f"Each of the five checks is made at {100 * level:g}%, so that one of them alarms in at most 5% of data sets "
        "that fit the model. In large data small departures are found too: look at how large they are."
    )


def checks_table(record: Mapping[str, Any], source: How) -> Table:
    """The checks and what came of them."""
    heads = ("Check", "Result", "Chance of that under the model")
    return Table("What was checked, and what came of it", heads, tuple(check_rows(record)), source)


def check_rows(record: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """A row for each check that was made."""
    found, rows = record["item_fit"], []
    bad = (found.get("underfit") or 0) + (found.get("overfit") or 0)
    what = f"{bad:,} of {count(found.get('judged') or 0, 'item')}"
    if bad:
        what += f": {found.get('underfit'):,} underfit (noise), {found.get('overfit'):,} overfit (too regular)"
    rows.append(("Items that misfit", what, "adjusted for all items"))
    test = record.get("model_test")
    if test:
        rows.append(
            ("Items harder for the less or the more able", f"χ²({test['df']}) = {number(test['statistic'], 1)}",
             p_value(test.get("p")))
        )  # fmt: skip
    shared = within(record, "fit_checks", "shared")
    if shared:
        pairs = shared.get("dependent_pairs") or 0
        rows.append(
            ("Local dependence of pairs of items",
             f"{pairs:,} of {count(shared.get('n_pairs') or 0, 'pair')}", p_value(shared.get("pairs_p")))
        )  # fmt: skip
        rows.append(
            ("A second dimension", f"contrast of the strength of {number(shared.get('strength'), 1)} items",
             p_value(shared.get("contrast_p")))
        )  # fmt: skip
    people = within(record, "fit_checks", "erratic_people")
    if people:
        rows.append(
            ("Person misfit", f"{100 * people['share']:.1f}%, expected {100 * people['chance']:.1f}%",
             p_value(people.get("p")))
        )  # fmt: skip
    test = record.get("conditional_against_marginal")
    if test:
        rows.append(
            ("Conditional against marginal likelihood (Hausman)", f"χ²({test['df']}) = {number(test['statistic'], 1)}",
             p_value(test.get("p")))
        )  # fmt: skip
    return rows


def fit_map(columns: Columns) -> FitMap:
    """Infit against outfit, given the score where they are known so; an error where no item has them."""
    return FitMap.of_columns(columns, conditional="infit_conditional_z" in columns)


def _map(material: Material) -> list[Any]:
    try:
        display = fit_map(material.tables["item_fit"])
    except OptionError:
        return [Text("No item has answers that could misfit.")]
    labels, infit, outfit = (display.table[name] for name in ("item", "infit", "outfit"))
    worst = [short(item, 40) for item in labels[display.worst(3)].tolist()]
    alt = (
        f"Infit against outfit of {count(len(labels), 'item')}: infit from {number(infit.min())} to "
        f"{number(infit.max())}, outfit from {number(outfit.min())} to {number(outfit.max())}; 1 fits. Farthest from "
        f"the model: {', '.join(worst)}."
    )
    source = how(material.record, "item_fit", "study.item_fit()")
    return [picture(display, alt, "The numbers of every item are in the table of the items."), source]


def dimensions(material: Material) -> Section | Missing:
    """Whether items share more than one ability."""
    title = "Dimensionality"
    shared = within(material.record, "fit_checks", "shared")
    if not shared:
        if within(material.record, "item_fit") is None:
            return Missing(title, "It is looked at with the fit of the items, which was left out.")
        return Missing(title, "There are too few people or items to see a second dimension or dependent items.")
    found = [one for one in material.record["findings"] if one.get("code") in OF_DIMENSIONS]
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
    source = How(fit_command(material.record, "--fit"), "study.local_dependence()")
    table = Table("What items share beyond the ability", ("", "Value"), rows, source)
    return Section("dimensions", title, (Text(short(said, 2_000)), table))
