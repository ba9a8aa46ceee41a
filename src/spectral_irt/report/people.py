"""People in summary, and what a score means. Nobody is named unless that was asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from spectral_irt.ability import score_abilities
from spectral_irt.inference.fit.person_fit import misfit_sentence
from spectral_irt.plots.scores import ScoreDistribution
from spectral_irt.report.blocks import (
    MOST,
    Column,
    DataTable,
    How,
    Missing,
    Section,
    Table,
    Text,
    picture,
    short,
    within,
)
from spectral_irt.report.commands import fit_command, how, of_groups
from spectral_irt.report.data import Material
from spectral_irt.tables import Columns
from spectral_irt.text import count, number

QUANTILES = ((0.05, "5% are below"), (0.25, "a quarter are below"), (0.5, "half are below (median)"),
             (0.75, "three quarters are below"), (0.95, "95% are below"))  # fmt: skip
LONGEST_FORM = 1_000  # the highest score up to which a table of scores is of use
MOST_GROUPS = 100  # rows of a small table

PERSONS: tuple[Column, ...] = (
    Column("person", "Person"),
    Column("n", "Answers", 0),
    Column("score", "Right", 0),
    Column("max_score", "Highest possible", 0),
    Column("ability", "Ability", 2),
    Column("se", "s.e.", 2),
    Column("measure", "Measure", 1),
    Column("measure_se", "s.e. of measure", 1),
    Column("infit", "Infit", 2),
    Column("outfit", "Outfit", 2),
)


def people(material: Material) -> Section | Missing:
    """Where the people are, how many have which score, and a list of them only where it was asked for."""
    persons = material.tables.get("persons")
    if persons is None:
        return Missing("People", material.missing.get("persons", "People were left out of the analysis."))
    some = persons["n"] > 0
    if not some.any():
        return Missing("People", "There are no people with answers.")
    blocks: list[Any] = [Text(_sentence(material)), _abilities(material, persons)]
    named = ("score", "n", "n" if material.binary else "max_score")
    score, n, highest = (persons[name][some].astype(int) for name in named)
    display = ScoreDistribution(score=score, n=n, highest=highest)
    if display.alike:
        text = f"scores from {score.min():,} to {score.max():,} of {highest[0]:,}, mean {score.mean():.1f}"
    else:
        share, what = 100 * score / highest, "shares right" if material.binary else "shares of the highest score"
        text = f"{what} from {share.min():.0f}% to {share.max():.0f}%"
    alt = f"Bars: how many people have which score. {count(len(score), 'person', 'people')}, {text}."
    blocks.append(picture(display, alt))
    return Section("people", "People", (*blocks, *_listed(material, persons)))


def _listed(material: Material, persons: Columns) -> list[Any]:
    """A table of single people where it was asked for."""
    if not material.list_persons:
        return [Text("Single people are not listed in this report; --list-persons would list them.")]
    columns = PERSONS
    if not material.binary:
        columns = tuple(replace(one, head="Score") if one.name == "score" else one for one in PERSONS)
    table = DataTable(
        "persons",
        f"{count(len(persons['person']), 'person', 'people')}; ability in logits",
        columns,
        persons,
        how(material.record, "persons", "study.persons()"),
        noun="people",
    )
    cut = f"These are the first {MOST:,} people; persons.csv has all."
    return [table, *([Text(cut)] if len(persons["person"]) > MOST else [])]


def _sentence(material: Material) -> str:
    found = within(material.record, "persons") or {}
    erratic = within(material.record, "fit_checks", "erratic_people")
    text = f"{count(found.get('with_ability') or 0, 'person', 'people')} with an ability."
    without = found.get("without_answers")
    if without:
        text += f" {count(without, 'person', 'people')} without answers."
    if erratic:
        said = misfit_sentence(erratic["share"], erratic["chance"], erratic["p"])
        text += f" P{said[1:]}: infit or outfit z above {erratic['limit']:g}."
    return text


def _abilities(material: Material, persons: Columns) -> Table:
    ability = persons["ability"][np.isfinite(persons["ability"])]
    scale = material.scale
    cells = []
    if len(ability):
        said = within(material.record, "persons") or {}  # by the weights of people, where they have any
        mean, sd = said.get("mean", ability.mean()), said.get("sd") or np.nan
        cells = [("mean", number(mean), number(scale.measure(mean), 1))]
        cells += [("standard deviation", number(sd), number(scale.width(sd), 1))]
    weighted = any(one.get("code") == "weights" for one in material.record["findings"])
    if len(ability) and not weighted:  # the shares of people below a number are not known from persons.csv alone
        for share, name in QUANTILES:
            value = np.quantile(ability, share)
            cells.append((name, number(value), number(scale.measure(value), 1)))
    head: tuple[str, ...] = ("", "Ability (logits)", "On the scale of report")
    if scale.is_logits:
        head, cells = head[:2], [row[:2] for row in cells]  # type: ignore[misc]
    return Table("Abilities", head, tuple(cells), how(material.record, "persons", "study.persons()"))


SCORES = (
    Column("score", "Score", 0),
    Column("form", "Form"),
    Column("ability", "Ability", 2),
    Column("se", "s.e.", 2),
    Column("measure", "Measure", 1),
    Column("measure_se", "s.e. of measure", 1),
    Column("n", "People", 0),
    Column("percentile", "Percentile", 1),
)


def scores(material: Material) -> Section | Missing:
    """From raw score to ability: on every form that people answered, or on the whole set of items."""
    title = "From score to ability"
    values = material.tables.get("scores")
    if values is not None and len(values["score"]):
        forms = len(set(values["form"].tolist()))
        said = f"On {count(forms, 'form')} that people answered" if forms > 1 else "On the items that people answered"
        said += "; a percentile is the share of people with a lower score and half of those with the same."
        source = how(material.record, "scores", "study.scores()")
        if forms == 1:
            values = {name: column for name, column in values.items() if name != "form"}
    else:
        items = material.on_scale
        layout, beta = material.thresholds_of(items)
        if not len(items):
            return Missing(title, "No item has a difficulty on a common scale.")
        if len(beta) > LONGEST_FORM:
            why = f"nobody answers {len(beta):,} items" if material.binary else f"{len(beta):,} scores are too many"
            return Missing(title, f"There is no form that many people answered, and {why}.")
        said = f"For somebody who answers all of the {count(len(items), 'item')} with a difficulty."
        source = How(fit_command(material.record), "study.calibration.score_table()")
        ability, se = score_abilities(beta, layout)
        values = {"score": np.arange(len(ability)), "ability": ability, "se": se}
        if not material.scale.is_logits:
            values |= {"measure": material.scale.measure(ability), "measure_se": material.scale.width(se)}
    said += " The standard error is that of one person with this score."
    table = DataTable("scores", title, SCORES, values, source, filters=("form",), noun="scores")
    return Section("scores", title, (Text(said), table))


def groups_and_classes(material: Material) -> Section | None:
    """Means of groups, and classes between cuts, where they were asked for."""
    digits, unit = (2, "") if material.scale.is_logits else (1, "measure_")
    blocks: list[Any] = []
    groups, cuts = material.tables.get("groups"), material.tables.get("cuts")
    if groups is not None:
        columns = [groups[name] for name in ("n", f"{unit}mean", f"{unit}se", f"{unit}sd")]
        labels = [f"{short(a, 40)}: {short(b, 60)}" for a, b in zip(groups["grouping"], groups["group"], strict=True)]
        rows = _rows(labels, columns, (0, digits, digits, digits))
        asked = of_groups(material.record, str(groups["grouping"][0]))
        source = how(material.record, "groups", f"study.group_means({asked})")
        blocks.append(Table("Mean ability of groups", ("Group", "People", "Mean", "s.e.", "s.d."), rows, source))
    if cuts is not None:
        labels = ["all classes" if name == "all" else f"class {short(name, 40)}" for name in cuts["class"].tolist()]
        columns = [cuts[name] for name in ("cut", "n", "share", "accuracy", "consistency")]
        rows = _rows(labels, columns, (2, 0, 2, 2, 2))
        at = [cut for cut in cuts["cut"].tolist() if np.isfinite(cut)]
        known = np.isfinite(cuts["cut"])
        raw = not np.allclose(material.scale.measure(cuts["ability"][known]), cuts["cut"][known])
        python = f"study.cuts([{', '.join(f'{cut:g}' for cut in at)}]{', raw=True' if raw else ''})"
        option = ("--cut-score" if raw else "--cut", ",".join(f"{cut:g}" for cut in at))
        source = how(material.record, "cuts", python, *option)
        head = ("Class", "From", "People", "Share", "Accuracy", "Consistency")
        blocks.append(Table("Classes of people between cuts", head, rows, source))
    return Section("groups", "Groups and classes", tuple(blocks)) if blocks else None


def _rows(labels: list[str], columns: list[Any], digits: tuple[int, ...]) -> tuple[tuple[str, ...], ...]:
    cells = [[number(value, d) for value in column.tolist()] for column, d in zip(columns, digits, strict=True)]
    rows = list(zip(labels, *cells, strict=True))
    more = len(rows) - MOST_GROUPS
    return tuple(rows if more <= 0 else [*rows[:MOST_GROUPS], (f"and {more:,} more", *[""] * len(digits))])
