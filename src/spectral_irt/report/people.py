"""People in summary, and what a score means. Nobody is named unless that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from spectral_irt.ability import score_abilities
from spectral_irt.data.block import Floats
from spectral_irt.errors import OptionError
from spectral_irt.inference.fit.person_fit import PersonMisfit, misfit_sentence
from spectral_irt.inference.groups.grouping import mean_sentences
from spectral_irt.plots.base import on_scale
from spectral_irt.report.blocks import Column, DataTable, ReportData, Section, Table, Text, cut_short, picture
from spectral_irt.report.overview import in_first_subset
from spectral_irt.tables import Columns
from spectral_irt.text import NONE, count, number, short, within

QUANTILES = ((0.05, "5% are below"), (0.25, "a quarter are below"), (0.5, "half are below (median)"),
             (0.75, "three quarters are below"), (0.95, "95% are below"))  # fmt: skip
LONGEST_FORM = 1_000  # the highest score up to which a table of scores is of use
LONG = 60  # scores, beyond which the table is more than a page on paper
MOST_GROUPS = 100  # rows of a small table

PERSONS: tuple[Column, ...] = (
    Column("person", "Person"),
    Column("n", "Answers", 0),
    Column("score", "Right", 0),
    Column("max_score", "Highest possible", 0),
    Column("ability", "{Trait}", 2),
    Column("se", "s.e.", 2),
    Column("measure", "Measure", 1),
    Column("measure_se", "s.e. of measure", 1),
    Column("fair_average", "Fair average", 2),
    Column("infit", "Infit", 2),
    Column("outfit", "Outfit", 2),
)


def people(data: ReportData) -> Section:
    """Where the people are, how many have which score, and a list of them only where it was asked for."""
    persons = data.tables.get("persons")
    if persons is None:
        raise OptionError("People were left out of the analysis.")
    display = data.study.plot.scores()
    score = display.score
    highest = display.highest
    if display.alike:
        text = f"scores from {score.min():,} to {score.max():,} of {highest[0]:,}, mean {score.mean():.1f}"
    else:
        percent = 100 * score / highest
        shares = "shares right" if data.binary else "shares of the highest score"
        text = f"{shares} from {percent.min():.0f}% to {percent.max():.0f}%"
    alt = f"Bars: how many people have which score. {count(len(score), 'person')}, {text}."
    blocks: list[Any] = [Text(_sentence(data)), _abilities(data, persons), picture(display, alt)]
    if not data.list_persons:
        return Section((*blocks, Text("Single people are not listed in this report.")))
    columns = data.heads(PERSONS) + tuple(Column(name, short(name, 40)) for name in data.study._about_persons())
    if not data.binary:
        columns = tuple(replace(column, head=column.head.replace("Right", "Score")) for column in columns)
    caption = f"{count(len(persons['person']), 'person')}; {data.words.trait} in logits"
    table = DataTable("persons", caption, columns, persons, noun="people")
    return Section(tuple(blocks), cut_short(table, "persons.csv"))


def _sentence(data: ReportData) -> str:
    persons = within(data.record, "persons") or {}
    erratic = within(data.record, "fit_checks", "erratic_people")
    text = f"{count(persons.get('with_ability') or 0, 'person')} with a measure."
    n_without_answers = persons.get("without_answers")
    if n_without_answers:
        text += f" {count(n_without_answers, 'person')} without answers."
    if erratic:
        misfit = PersonMisfit(erratic["n_people"], erratic["share"], erratic["chance"], erratic["p"])
        text += f" {misfit_sentence(misfit)}: infit or outfit z above {erratic['limit']:g}."
    return text


def _abilities(data: ReportData, persons: Columns) -> Table:
    scale = data.scale
    chosen = np.isfinite(persons["ability"])
    comparable = data.study._comparable()
    if comparable is not None:
        chosen &= comparable
    ability = persons["ability"][chosen]
    moments = within(data.record, "persons") or {}  # by the weights of people, where they have any
    rows = [
        _on_both_scales("mean", moments.get("mean"), scale.measure),
        _on_both_scales("standard deviation", moments.get("sd"), scale.width),
    ]
    if len(ability) and data.study.weights is None:
        rows += [_on_both_scales(name, float(np.quantile(ability, share)), scale.measure) for share, name in QUANTILES]
    head: tuple[str, ...] = ("", data.words.fill("{Trait} (logits)"), "On the scale of report")
    if scale.is_logits:
        head = head[:2]
        rows = [row[:2] for row in rows]
    caption = data.words.fill("{Traits}")
    subset = in_first_subset(data)
    if subset:
        caption += f" of {subset}"
    return Table(caption, head, tuple(rows))


def _on_both_scales(name: str, logits: float | None, as_reported: Callable[[float], Floats]) -> tuple[str, ...]:
    """A name, the value in logits, and on the scale of report."""
    if logits is None:
        return name, NONE, NONE
    return name, number(logits), number(as_reported(logits), 1)


SCORES = (
    Column("score", "Score", 0),
    Column("code_sum", "Raw score as coded", 0),
    Column("form", "Form"),
    Column("ability", "{Trait}", 2),
    Column("se", "s.e.", 2),
    Column("measure_100", "0 to 100", 1),
    Column("measure", "Measure", 1),
    Column("measure_se", "s.e. of measure", 1),
    Column("n", "People", 0),
    Column("percentile", "Percentile", 1),
)


SIDE_BY_SIDE = 4  # forms: more columns do not fit on a sheet


def _side_by_side(values: Columns, scale: bool) -> tuple[tuple[Column, ...], Columns]:
    """A row for each score, and for each form the ability (or measure), its standard error and the percentile."""
    names = list(dict.fromkeys(values["form"].tolist()))
    highest = int(values["score"].max())
    columns = [Column("score", "Score", 0)]
    table: Columns = {"score": np.arange(highest + 1)}
    of_form = [("percentile", "%ile", 1)]
    if scale:
        of_form = [("measure", "Measure", 1), ("measure_se", "s.e.", 1), *of_form]
    else:
        of_form = [("ability", "{Trait}", 2), ("se", "s.e.", 2), *of_form]
    if "code_sum" in values:
        of_form.insert(0, ("code_sum", "as coded", 0))
    for k, name in enumerate(names):
        rows = values["form"] == name
        for source, head, digits in of_form:
            cells = np.full(highest + 1, np.nan)
            cells[values["score"][rows]] = values[source][rows]
            table[f"{source}_{k + 1}"] = cells
            columns.append(Column(f"{source}_{k + 1}", f"{short(name, 24)}: {head}", digits))
    return tuple(columns), table


class ScoreRows(NamedTuple):
    """The rows of a table from score to ability, and whose they are."""

    whose: str
    values: Columns


def scores(data: ReportData) -> Section:
    """From raw score to ability: on every form that people answered, or on the whole set of items."""
    if data.study.facets:
        raise OptionError("No table of raw scores: what a score means depends on the raters. Use the measures.")
    by_form = data.tables.get("scores")
    if by_form is not None and len(by_form["score"]):
        whose, values = _scores_of_forms(data, by_form)
    else:
        whose, values = _scores_of_all_items(data)
    text = f"{whose} The standard error is that of one person with this score."
    if 1 < _number_of_forms(values) <= SIDE_BY_SIDE:  # which have no room for it
        values = {name: column for name, column in values.items() if name != "measure_100"}
    text += _about_codes(values, merged=data.study.calibration.codes_high is not None)
    for finding in data.study._code_findings():
        if finding.code == "codes_without_responses":
            text += f" {finding.sentence}"
    table = _score_table(data, values)
    if table.n_rows <= LONG:
        return Section((Text(text), table))
    return Section((Text(f"{text} The table is in the appendix."),), (table,))


def _scores_of_forms(data: ReportData, values: Columns) -> ScoreRows:
    """The table of the analysis, without the column of forms where there is one form only."""
    n_forms = _number_of_forms(values)
    if n_forms > 1:
        which = f"On {count(n_forms, 'form')} that people answered"
        all_of_them = "their whole form"
    else:
        which = "On the items that people answered"
        all_of_them = "all of them"
        values = {name: column for name, column in values.items() if name != "form"}
    whose = (
        f"{which}; a percentile is the share of people with a lower score and half of those with the same, among the "
        f"{_who_answered_all(data)} who answered {all_of_them}."
    )
    return ScoreRows(whose, values)


def _scores_of_all_items(data: ReportData) -> ScoreRows:
    """The abilities of a person who answers every item that has a difficulty."""
    calibration = data.study.calibration
    place = on_scale(calibration)
    layout, beta = calibration.thresholds_of(place)
    if len(beta) > LONGEST_FORM:
        why = f"{len(beta):,} scores are too many"
        if data.binary:
            why = f"nobody answers {len(beta):,} items"
        raise OptionError(f"There is no form that many people answered, and {why}.")
    ability, se = score_abilities(beta, layout)
    values = {"score": np.arange(len(ability)), **calibration.code_columns([place])}
    values |= {"ability": ability, "se": se, **data.study._from_0_to_100(ability)}
    if not data.scale.is_logits:
        values |= {"measure": data.scale.measure(ability), "measure_se": data.scale.width(se)}
    return ScoreRows(f"For a person who answers all of the {count(layout.n_items, 'item')} with a difficulty.", values)


def _score_table(data: ReportData, values: Columns) -> DataTable:
    """A few forms stand side by side; of others, a row says which form it is about."""
    caption = f"From score to {data.words.trait}"
    n_forms = _number_of_forms(values)
    if 1 < n_forms <= SIDE_BY_SIDE:
        columns, values = _side_by_side(values, not data.scale.is_logits)
        return DataTable("scores", caption, data.heads(columns), values, noun="scores")
    columns = SCORES
    if "code_sum_high" in values and n_forms == 1:
        values = values | {"code_sum": _in_words(values["code_sum"], values["code_sum_high"])}
        columns = tuple(replace(column, digits=None) if column.name == "code_sum" else column for column in SCORES)
    return DataTable("scores", caption, data.heads(columns), values, filters=("form",), noun="scores")


def _number_of_forms(values: Columns) -> int:
    return len(set(values["form"].tolist())) if "form" in values else 1


def _who_answered_all(data: ReportData) -> str:
    """How many people answered their whole form, of all with answers: those whom the table counts."""
    forms = data.study.forms()
    return f"{forms.n_on_forms:,} of {count(forms.n_people, 'person')}"


def _about_codes(values: Columns, *, merged: bool) -> str:
    """What the columns of sums of codes, and from 0 to 100, mean; whether categories were `merged` on request."""
    text = ""
    if "code_sum" in values:
        text += " The raw score as coded is the sum of the responses with the codes that they have in the data"
        text += ", items that were turned round as turned; the score counts every item from 0."
    if "code_sum_high" in values:
        why_several = "Categories were merged" if merged else "Categories that nobody used were renumbered"
        text += f" {why_several}, so that a score can go with several sums."
    if "measure_100" in values:
        text += " From 0 to 100: 100 (measure - lowest) / (highest - lowest), over the scores on all items."
    return text


def _in_words(low: Any, high: Any) -> Any:
    """The sums of codes of each score: one, or from one to another."""
    return np.array([_range_in_words(a, b) for a, b in zip(low, high, strict=True)], dtype=object)


def _range_in_words(low: Any, high: Any) -> str:
    if low == high:
        return str(low)
    between = "or" if high == low + 1 else "to"
    return f"{low} {between} {high}"


def groups_and_classes(data: ReportData) -> Section:
    """Means of groups, and classes between cuts, where they were asked for."""
    blocks: list[Any] = []
    groups = data.tables.get("groups")
    cuts = data.tables.get("cuts")
    if groups is not None:
        blocks += _means_of_groups(data, groups)
    if cuts is not None:
        blocks += _classes(cuts)
    return Section(tuple(blocks))


def _means_of_groups(data: ReportData, groups: Columns) -> list[Any]:
    """The mean of every group, and the tests of equal means."""
    digits, unit = (2, "") if data.scale.is_logits else (1, "measure_")
    columns = [groups[name] for name in ("n", f"{unit}mean", f"{unit}se", f"{unit}sd", f"{unit}latent_sd")]
    labels = [
        f"{short(grouping, 40)}: {short(group, 60)}"
        for grouping, group in zip(groups["grouping"], groups["group"], strict=True)
    ]
    rows = _rows(labels, columns, (0, digits, digits, digits, digits))
    heads = ("Group", "People", "Mean", "s.e.", "s.d.", "Latent s.d.")
    blocks: list[Any] = [
        Table(f"Mean {data.words.trait} of groups", heads, rows),
        Text("s.d.: of the measures, errors and all; latent s.d.: of the population, without their errors."),
    ]
    tests = mean_sentences(groups, unit, digits, linked=data.study._comparable() is None)
    if tests:
        method = "with errors that allow for clusters" if "clusters" in groups else "Welch, variances may differ"
        blocks.append(Text(f"Tests of equal means ({method}). {' '.join(tests)}"))
    return blocks


def _classes(cuts: Columns) -> list[Any]:
    """Classes of everybody, and of the people on each form, with the raw score at which a class begins there."""
    labels = ["all classes" if name == "all" else f"class {name}" for name in cuts["class"].tolist()]
    forms = [short(form, 40) for form in cuts["form"].tolist()]
    columns = [cuts[name] for name in ("cut", "score", "n", "share", "accuracy", "consistency")]
    head = ("Class", "From", "Raw score from", "People", "Share", "Accuracy", "Consistency")
    digits = (2, 0, 0, 2, 2, 2)
    everybody = [k for k, form in enumerate(forms) if not form]
    blocks: list[Any] = [
        Table(
            "Classes of people between cuts",
            head,
            _rows([labels[k] for k in everybody], [column[everybody] for column in columns], digits),
        )
    ]
    on_forms = [k for k, form in enumerate(forms) if form and labels[k] != "all classes"]
    if on_forms:
        forms_and_classes = [f"{forms[k]}: {labels[k]}" for k in on_forms]
        rows = _rows(forms_and_classes, [column[on_forms] for column in columns], digits)
        remark = "A raw score holds for a person who answered the whole form; others are classified by their measure."
        blocks += [Table("Classes form by form", ("Form and class", *head[1:]), rows), Text(remark)]
    return blocks


def _rows(labels: list[str], columns: list[Any], digits: tuple[int, ...]) -> tuple[tuple[str, ...], ...]:
    """The first rows as text, and how many more there are."""
    cells = [[number(value, d) for value in column.tolist()] for column, d in zip(columns, digits, strict=True)]
    rows = list(zip(labels, *cells, strict=True))
    n_left = len(rows) - MOST_GROUPS
    if n_left > 0:
        rows = [*rows[:MOST_GROUPS], (f"and {n_left:,} more", *[""] * len(digits))]
    return tuple(rows)
