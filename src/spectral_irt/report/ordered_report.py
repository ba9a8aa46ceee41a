"""The report of answers in ordered categories: the same page with sections of its own."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.errors import OptionError, printable
from spectral_irt.estimators.by_name import ORDERED
from spectral_irt.plots.ordered_plots import OrderedPlots, curve_sheet, score_sheet
from spectral_irt.report.about import ABILITIES, errors, finding_blocks, regularization
from spectral_irt.report.blocks import MOST, Column, DataTable, How, Lines, Missing, Section, Table, Text
from spectral_irt.report.commands import fit_command
from spectral_irt.report.fit import checked, checks_table
from spectral_irt.report.groups import groups
from spectral_irt.report.material import Material
from spectral_irt.report.page import check_place, rendered
from spectral_irt.report.people import LONGEST_FORM, PERSONS, QUANTILES
from spectral_irt.report.pictures import figure_picture, picture
from spectral_irt.report.sections import with_missing
from spectral_irt.report.words import count, number, within
from spectral_irt.tables import Columns, plain
from spectral_irt.writing import write_each

if TYPE_CHECKING:
    from spectral_irt.analysis.ordered_analysis import OrderedAnalysis
    from spectral_irt.analysis.parts import Parts

MODELS = {
    "pcm": "partial credit model: every item has thresholds of its own between neighboring categories",
    "rsm": "rating scale model: thresholds at the same distances in all items",
}
ESTIMATORS = {
    "spectral": "spectral estimate",
    "cml": "conditional maximum likelihood",
    "mml": "marginal maximum likelihood",
}
ITEMS: tuple[Column, ...] = (
    Column("item", "Item"),
    Column("difficulty", "Location", 3),
    Column("se", "s.e.", 3),
    Column("n", "Answers", 0),
    Column("mean_score", "Mean answer", 2),
    Column("most", "Highest", 0),
    Column("infit_conditional", "Infit", 2),
    Column("outfit_conditional", "Outfit", 2),
    Column("misfit", "Misfit"),
    Column("status", "Status"),
    Column("infit_conditional_z", "Infit z", 2, closed=True),
    Column("outfit_conditional_z", "Outfit z", 2, closed=True),
    Column("misfit_p", "p of misfit, adjusted", 4, closed=True, p=True),
)
FIT_COLUMNS = tuple(column.name for column in ITEMS if "fit" in column.name)


def ordered_page(
    study: OrderedAnalysis,
    parts: Parts | None = None,
    record: Mapping[str, Any] | None = None,
    *,
    list_persons: bool = False,
) -> str:
    """The report as HTML; `record` is that of the analysis where more is known about the files."""
    study.tell("report")
    parts = parts or study.parts(writing=True)
    persons, fit = parts.persons, parts.fit
    said = plain(record or study.record(parts))
    found: list[Section | Missing] = [_fitted(said), _findings(said), _summary(said, persons=persons)]
    if persons:
        found += [_wright(study, said)]
    found += [_items(study, said, fit=fit), _curves(study, said, fit=fit)]
    found += [_people(study, said, list_persons=list_persons)] if persons else []
    found += [_scores(study, said), _fit(study, said, fit=fit)]
    tables = {"dif": study.tables(parts)["dif"]} if parts.groups else {}
    found += [groups(Material(said, tables))]
    source = printable(within(said, "input", "source") or "a calibration")
    return rendered(f"Report: {source}", with_missing(found), within(said, "versions", "spectral_irt") or "")


def write_ordered_report(
    study: OrderedAnalysis, path: Path, parts: Parts | None = None, *, list_persons: bool = False
) -> Path:
    """The report as an HTML file, complete or not at all."""
    check_place(path)
    text = ordered_page(study, parts, list_persons=list_persons)
    write_each({path: lambda draft: draft.write_text(text, encoding="utf-8", newline="\n")})
    return path


# -------------------------------------------------------------------------------------------- how it was made


def model_and_estimator(record: Mapping[str, Any]) -> tuple[str, str]:
    """What `--model` and `--estimator` are called that made this."""
    made = str(record["estimator"])
    for model, methods in ORDERED.items():
        for name, method in methods.items():
            if method.where.partition(":")[2] == made:
                return model, name
    return "pcm", "spectral"


def ordered_command(record: Mapping[str, Any], *options: str) -> str:
    """The command that fits these data in this way."""
    model, name = model_and_estimator(record)
    words = ["--model", model, *(["--estimator", name] if name != "spectral" else [])]
    method = ORDERED[model][name]
    module, _, maker = method.where.partition(":")
    defaults = inspect.signature(getattr(import_module(f"spectral_irt.estimators.{module}"), maker)).parameters
    for parameter, value in (record.get("settings") or {}).items():
        known = parameter in method.takes.split() and parameter not in ("threads", "unused")
        if known and value != defaults[parameter].default:
            flag = parameter.replace("_", "-")
            words += [f"--{'' if value else 'no-'}{flag}"] if isinstance(value, bool) else [f"--{flag}", f"{value}"]
    return fit_command(record, *words, *options)


def _how(record: Mapping[str, Any], table: str, python: str, *options: str) -> How:
    return How(f"{ordered_command(record, *options)} -o results", python, f"results/{table}.csv")


def _fitted(record: Mapping[str, Any]) -> Section:
    counts = record["counts"]
    model, estimator = model_and_estimator(record)
    people, items = count(counts.get("users", 0), "person", "people"), count(counts.get("items", 0), "item")
    source = printable(within(record, "input", "source") or "the data given")
    answers, thresholds = count(counts.get("responses") or 0, "answer"), count(counts["thresholds"], "threshold")
    rows = (
        ("Model", MODELS[model]),
        ("Thresholds", f"{ESTIMATORS[estimator]}; {count(record.get('iterations') or 0, 'pass', 'passes')}"),
        ("Standard errors", errors(record)),
        ("Regularization", regularization(record)),
        ("Abilities", ABILITIES.get(str(within(record, "persons", "ability")), "not computed")),
        ("Program", f"spectral-irt {record['versions'].get('spectral_irt', '')}"),
        ("Fingerprint of the data", str(record.get("data_digest", "–"))),
    )
    blocks = (
        Text(f"{people} gave {answers} to {items} with {thresholds}. The data: {source}."),
        Table("How the calibration was made", ("", "Value"), rows),
        Lines((f"{ordered_command(record)} -o results",), "The same on the command line", program=True),
    )
    return Section("fitted", "What was fitted", blocks)


def _findings(record: Mapping[str, Any]) -> Section:
    how = How(ordered_command(record), "study.findings()")
    return Section("findings", "Findings", finding_blocks(record["findings"], how))


def _summary(record: Mapping[str, Any], *, persons: bool) -> Section:
    counts, found = record["counts"], record.get("reliability") or {}
    with_estimate = f"{number(counts.get('items_with_estimate'), 0)} of them with an estimate"
    rows = [
        ("People", number(counts.get("users"), 0), ""),
        ("Items", number(counts.get("items"), 0), with_estimate),
        ("Thresholds", number(counts.get("thresholds"), 0), "between neighboring categories"),
        ("Answers", number(counts.get("responses"), 0), ""),
    ]
    if persons:
        eap = "share of the spread in abilities that the test sees; quote this one"
        rows.append(("EAP reliability", number(found.get("eap_reliability")), eap))
        rows.append(("Cronbach's alpha", number(found.get("alpha")), "of the total score, for complete answers"))
        rows.append(
            ("Person separation reliability", number(within(found, "persons", "reliability")), "without extremes")
        )
    how = How(ordered_command(record), "study.reliability()")
    return Section(
        "summary", "Summary", (Table("Counts and reliability", ("", "Value", "What it says"), tuple(rows), how),)
    )


# ------------------------------------------------------------------------------------------ items and people


def _wright(study: OrderedAnalysis, record: Mapping[str, Any]) -> Section | Missing:
    title = "People and thresholds on one scale"
    try:
        display = OrderedPlots(study).wright()
    except OptionError as error:
        return Missing(title, str(error))
    known, beta = display.ability, display.difficulty
    alt = (
        f"Wright map. Abilities of {count(len(known), 'person', 'people')} to the left: mean {number(known.mean())}; "
        f"{count(len(beta), 'threshold')} to the right, from {number(beta.min())} to {number(beta.max())} logits."
    )
    said = (
        "Able people and high thresholds are on top. Somebody beside the second threshold of an item, (2), is as "
        "likely to answer in its second category as in the one below."
    )
    how = How(ordered_command(record, "--plots", "pictures"), "study.plot.wright().frame()")
    return Section("wright", title, (Text(said), picture(display, alt), how))


def _items(study: OrderedAnalysis, record: Mapping[str, Any], *, fit: bool) -> Section:
    values: Columns = dict(study.calibration.item_columns())
    if fit:
        found = study.item_fit_columns()
        values |= {name: found[name] for name in FIT_COLUMNS if name in found}
    steps, columns = study.calibration.steps, study.calibration.threshold_columns()
    rows: dict[int, list[list[str]]] = {}
    named = ("category", "threshold", "se", "n_below", "n")
    for row, category, threshold, se, below, n in zip(
        steps.item.tolist(), *(columns[name].tolist() for name in named), strict=True
    ):
        if row < MOST:
            shown = [f"{category - 1} to {category}", number(threshold), number(se), number(below, 0), number(n, 0)]
            rows.setdefault(row, []).append(shown)
    head = ["Categories", "Threshold", "s.e.", "People below", "People above"]
    details = {"strata": {}, "tables": [{"caption": "Thresholds", "head": head, "rows": rows}]}  # no Rasch curves
    table = DataTable(
        "items",
        f"{count(steps.n_items, 'item')}; location: mean of the thresholds, in logits",
        ITEMS,
        values,
        _how(record, "items", "study.calibration.items()"),
        filters=("misfit", "status"),
        details=details,
        noun="items",
    )
    said = "Click on a column's name to sort, on an item's name to see its thresholds."
    said += " Infit and outfit are mean squares given the total scores: 1 fits, above 1 is noisier." if fit else ""
    cut = f"These are the first {MOST:,} items; items.csv has all."
    return Section("items", "Items", (Text(said), *([Text(cut)] if steps.n_items > MOST else []), table))


def _curves(study: OrderedAnalysis, record: Mapping[str, Any], *, fit: bool) -> Section | Missing:
    title = "Curves of the items"
    if not fit:
        return Missing(title, "The curves come with the fit of the items, which was left out.")
    try:
        pictures = (
            figure_picture(curve_sheet(study), "Small curves: the probability of each answer to an item by ability."),
            figure_picture(score_sheet(study), "Small curves: the expected answer by ability, and means observed."),
        )
    except OptionError as error:
        return Missing(title, str(error))
    said = (
        "Above, the probability of each answer: neighbors cross at the thresholds. Below, the expected answer (line) "
        "and the mean answers of groups of people by ability, with 95% intervals, which lie on it but for chance if "
        "the model holds."
    )
    how = How(ordered_command(record, "--plots", "pictures"), "study.plot.icc(item), study.plot.categories(item)")
    return Section("curves", title, (Text(said), *pictures, how))


def _people(study: OrderedAnalysis, record: Mapping[str, Any], *, list_persons: bool) -> Section | Missing:
    persons = study.person_columns()
    ability = persons["ability"][np.isfinite(persons["ability"])]
    if not len(ability):
        return Missing("People", "There are no people with an ability.")
    spread = ability.std(ddof=1) if len(ability) > 1 else np.nan
    rows = [("mean", number(ability.mean())), ("standard deviation", number(spread))]
    rows += [(name, number(np.quantile(ability, share))) for share, name in QUANTILES]
    display = OrderedPlots(study).scores()
    alt = f"Bars: how many people have which total score. {count(len(display.score), 'person', 'people')}."
    how = _how(record, "persons", "study.persons()")
    head = ("", "Ability (logits)")
    blocks: list[Any] = [Table("Abilities", head, tuple(rows), how), picture(display, alt)]
    if list_persons:
        caption = f"{count(len(persons['person']), 'person', 'people')}; ability in logits"
        columns = tuple(Column("score", "Score", 0) if one.name == "score" else one for one in PERSONS)
        blocks.append(DataTable("persons", caption, columns, persons, how, noun="people"))
    else:
        blocks.append(Text("Single people are not listed in this report; --list-persons would list them."))
    return Section("people", "People", tuple(blocks))


def _scores(study: OrderedAnalysis, record: Mapping[str, Any]) -> Section | Missing:
    title, calibration = "From score to ability", study.calibration
    if not calibration.known.any() or calibration.steps.n_steps > LONGEST_FORM:
        return Missing(title, "A table of total scores is for tests with a highest score of at most 1,000.")
    table: Any = calibration.replace(frame_kind=None).score_table()
    values = {name: table[name].to_numpy() for name in ("score", "ability", "se")}
    columns = (Column("score", "Score", 0), Column("ability", "Ability", 2), Column("se", "s.e.", 2))
    how = How(ordered_command(record), "study.score_table()")
    said = "For somebody who answers all items: the total score, and the ability (Warm's estimate) that goes with it."
    shown = DataTable("scores", "Total scores; ability in logits", columns, values, how, noun="scores")
    return Section("scores", title, (Text(said), shown))


def _fit(study: OrderedAnalysis, record: Mapping[str, Any], *, fit: bool) -> Section | Missing:
    title = "Does the model fit?"
    if not fit:
        return Missing(title, "The fit of the items was left out of the analysis.")
    try:
        display = OrderedPlots(study).fit()
    except OptionError as error:
        return Missing(title, str(error))
    alt = f"Infit against outfit of {count(len(display.table['item']), 'item')}; 1 fits."
    blocks = (
        Text(checked(record)),
        checks_table(record, How(ordered_command(record, "--fit"), "study.checks()")),
        picture(display, alt),
        _how(record, "item_fit", "study.item_fit()"),
    )
    return Section("fit", title, blocks)
