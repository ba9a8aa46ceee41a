"""People in summary, and what a score means. Nobody is named unless that was asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from spectral_irt.ability import score_abilities
from spectral_irt.plots.scores import ScoreDistribution
from spectral_irt.report.blocks import MOST, Column, DataTable, Missing, Section, Table, Text
from spectral_irt.report.commands import how
from spectral_irt.report.material import Material
from spectral_irt.report.pictures import picture
from spectral_irt.report.words import count, number, within
from spectral_irt.tables import Columns

QUANTILES = ((0.05, "5% are below"), (0.25, "a quarter are below"), (0.5, "half are below (median)"),
             (0.75, "three quarters are below"), (0.95, "95% are below"))  # fmt: skip
LONGEST_FORM = 1_000  # items up to which a table of scores is of use

PERSONS = (
    Column("person", "Person"),
    Column("n", "Answers", 0),
    Column("score", "Right", 0),
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
    display = ScoreDistribution(score=persons["score"][some].astype(int), n=persons["n"][some].astype(int))
    score, n = display.score, display.n
    if display.alike:
        text = f"scores from {score.min()} to {score.max()} of {n[0]:,}, mean {score.mean():.1f}"
    else:
        text = f"shares right from {100 * (score / n).min():.0f}% to {100 * (score / n).max():.0f}%"
    alt = f"Bars: how many people have which score. {count(len(score), 'person', 'people')}, {text}."
    blocks.append(picture(display, alt))
    if material.list_persons:
        blocks.append(
            DataTable(
                "persons",
                f"{count(len(persons['person']), 'person', 'people')}; ability in logits",
                PERSONS,
                persons,
                how(material.record, "persons", "study.persons()"),
                noun="people",
            )
        )
        if len(persons["person"]) > MOST:
            blocks.append(Text(f"These are the first {MOST:,} people; persons.csv has all."))
    else:
        blocks.append(Text("Single people are not listed in this report; --list-persons would list them."))
    return Section("people", "People", tuple(blocks))


def _sentence(material: Material) -> str:
    found = within(material.record, "persons") or {}
    erratic = within(material.record, "fit_checks", "erratic_people")
    text = f"{count(found.get('with_ability') or 0, 'person', 'people')} with an ability."
    without = found.get("without_answers")
    if without:
        text += f" {count(without, 'person', 'people')} without answers."
    if erratic:
        text += (
            f" {100 * erratic['share']:.1f}% answer erratically (outfit above {erratic['limit']:g}), where chance has "
            f"{100 * erratic['chance']:.1f}%."
        )
    return text


def _abilities(material: Material, persons: Columns) -> Table:
    ability = persons["ability"][np.isfinite(persons["ability"])]
    scale = material.scale
    rows = [("mean", ability.mean()), ("standard deviation", None)] if len(ability) else []
    cells = []
    for name, value in rows:
        if value is None:
            spread = ability.std(ddof=1) if len(ability) > 1 else np.nan
            cells.append((name, number(spread), number(scale.width(spread), 1)))
        else:
            cells.append((name, number(value), number(scale.measure(value), 1)))
    if len(ability):
        for share, name in QUANTILES:
            value = np.quantile(ability, share)
            cells.append((name, number(value), number(scale.measure(value), 1)))
    head: tuple[str, ...] = ("", "Ability (logits)", "On the scale of report")
    if scale.is_logits:
        head, cells = head[:2], [row[:2] for row in cells]  # type: ignore[misc]
    return Table("Abilities", head, tuple(cells), how(material.record, "persons", "study.persons()"))


SCORES = (
    Column("score", "Score", 0),
    Column("ability", "Ability", 2),
    Column("se", "s.e.", 2),
    Column("measure", "Measure", 1),
    Column("measure_se", "s.e. of measure", 1),
    Column("people", "People", 0),
    Column("percent_below", "% below", 1),
)


def scores(material: Material) -> Section | Missing:
    """From raw score to ability on the whole set of items."""
    title = "From score to ability"
    items = material.tables["items"]
    place = np.isfinite(items["difficulty"]) & (items["status"] != "apart")
    beta = items["difficulty"][place]
    if not len(beta):
        return Missing(title, "No item has a difficulty on a common scale.")
    if len(beta) > LONGEST_FORM:
        return Missing(title, f"Nobody answers all of {len(beta):,} items; bank.score_table(form) has it for a form.")
    values = score_values(material, beta)
    whole = "everybody answered all of them" if "people" in values else "for somebody who answered all of them"
    said = (
        f"The score on the {count(len(beta), 'item')} with a difficulty, {whole}; the ability is Warm's estimate, "
        "finite for every score, and the standard error is that of one person with this score."
    )
    source = how(material.record, "items", "study.calibration.score_table()")
    table = DataTable("scores", "From score to ability", SCORES, values, source, noun="scores")
    return Section("scores", title, (Text(said), table))


def score_values(material: Material, beta: np.ndarray) -> Columns:
    """Every score with its ability, and where all answered all items how many people have it."""
    ability, se = score_abilities(beta)
    values: Columns = {"score": np.arange(len(beta) + 1), "ability": ability, "se": se}
    if not material.scale.is_logits:
        values |= {"measure": material.scale.measure(ability), "measure_se": material.scale.width(se)}
    persons = material.tables.get("persons")
    if persons is not None and len(persons["n"]) and (persons["n"] == len(beta)).all():
        having = np.bincount(persons["score"].astype(int), minlength=len(beta) + 1)
        below = 100 * (np.cumsum(having) - having) / having.sum()
        values |= {"people": having, "percent_below": below}
    return values
