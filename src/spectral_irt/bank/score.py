"""People scored with the items of a bank: each on the scale that the items have, under the bank's own population.

A score is the analysis of new responses under the bank's thresholds, without a new calibration. Where groups of items
are linked by no responses there is one such analysis for each group, of the people who have most of their responses
there.

`Bank.score` and the command `score` call this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spectral_irt.analysis import Analysis
from spectral_irt.analysis.cache import columns_of
from spectral_irt.bank.bank import FEWEST_PEOPLE, Bank, Population
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints, Mask, Thresholds, rows_of
from spectral_irt.data.labels import Labels, positions
from spectral_irt.errors import BankError, OptionError, check_option
from spectral_irt.inference.scores.reliability import Reliability
from spectral_irt.persons.abilities import REPORTS
from spectral_irt.tables import Columns, Table, make_table
from spectral_irt.text import count, listed

PRIORS = ("eap", "pv")  # ways to report people that need a population
NAMED_SCALES = 5  # that a sentence lists


@dataclass(frozen=True, eq=False)
class Scores:
    """People as columns, the population of "eap" or "pv", reliability (None on several scales), and findings."""

    persons: Columns
    population: Population | None
    reliability: Reliability | None
    findings: list[Finding]
    frame_kind: str | None

    def table(self) -> Table:
        return make_table(self.persons, self.frame_kind)


def score(
    bank: Bank,
    responses: Any,
    ability: str = "wle",
    *,
    population: tuple[float, float] | None = None,
    draws: int = 5,
    seed: int = 0,
    ignore_unknown: bool = False,
) -> Scores:
    """The people who gave these answers: `person, n, score, ability, se, extreme, infit, outfit, infit_z, outfit_z`.

    Parameters
    ----------
    responses : Responses, array or dataframe
        Of anybody; items are matched by label. Answers to items whose difficulty rests on the prior alone do not count.
    ability : "wle", "ml", "eap" or "pv"
        Warm's weighted likelihood (default), maximum likelihood, or the mean under a normal prior; "pv" adds plausible
        values, `pv1, pv2, ...`.
    population : (mean, sd), optional
        The prior of "eap" and "pv" in logits; by default the population that the bank was calibrated with.
    draws, seed : int
        Of plausible values: how many for each person, and their seed.
    ignore_unknown : bool
        Leave out answers to items that the bank does not have; by default they are an error.

    Notes
    -----
    `measure` and `measure_se` follow where the bank has a scale of report. Where groups of items are linked by no
    answers, `scale` says on which of them each person was scored (that of most of their answers; the others do not
    count), and abilities can be compared within a scale only.
    """
    check_option("ability", ability, REPORTS)
    if population is not None and ability not in PRIORS:
        raise OptionError(f"`ability` is {ability!r}, which has no population; leave out `population`.")
    responses = bank._as_responses(responses)
    if not responses.n_responses:
        raise BankError(f"{responses.source}: there is no answer in it, so nobody can be scored.")
    aligned = bank._align(responses, ignore_unknown)
    prior = None
    if ability in PRIORS:
        prior = _population(bank, aligned, population, ability)
    how = _HowToScore(ability, prior, draws, seed)
    reliability: Reliability | None = None
    findings: list[Finding] = []
    if bank.n_groups > 1:
        persons, findings = _scored_by_group(bank, aligned, how)
    else:
        study = _study(bank, bank.estimated, aligned, how)
        persons = columns_of(study.persons, draws=draws, seed=seed)
        reliability = study.reliability()
    if not persons["n"].any():
        raise BankError(
            f"{responses.source}: none of the items answered has a difficulty in the bank, so nobody can be scored."
        )
    return Scores(
        persons,
        population=prior,
        reliability=reliability,
        findings=[*responses.notes, *_findings(bank, responses, persons), *findings],
        frame_kind=responses.frame_kind,
    )


class _HowToScore(NamedTuple):
    """Which estimate of ability, under which population, and how many plausible values from which seed."""

    ability: str
    prior: Population | None
    draws: int
    seed: int


def _thresholds(bank: Bank, items: Mask) -> Floats:
    """Of these items; NaN leaves the others out."""
    calibration = bank.calibration
    return np.where(items[calibration.layout.item], calibration.thresholds, np.nan)


def _study(bank: Bank, items: Mask, aligned: Responses, how: _HowToScore) -> Analysis:
    """The people under these items of the bank."""
    calibration = bank.calibration.replace(thresholds=_thresholds(bank, items))
    population = None
    if how.prior is not None:
        population = (how.prior.mean, how.prior.sd)
    return Analysis(calibration, aligned, ability=how.ability, population=population)


def _population(bank: Bank, aligned: Responses, given: tuple[float, float] | None, ability: str) -> Population:
    """The prior of "eap" and "pv": as given, the bank's, or for a bank without one that of many people."""
    if given is not None:
        mean, sd = (float(number) for number in given)
        if not (np.isfinite(mean) and np.isfinite(sd) and sd > 0):
            raise OptionError(f"`population` is {mean:g},{sd:g}; it is a mean and a standard deviation above zero.")
        return Population(mean, sd)
    if bank.population is not None:
        return bank.population
    if bank.n_groups > 1:
        raise OptionError(
            "the bank has items on several scales that no answers link, and so no common population. Give "
            "`population`, or take `ability='wle'`, which needs none."
        )
    population = Population.of(aligned, _thresholds(bank, bank.estimated))
    if population is None:
        raise OptionError(
            f"{aligned.source}: `ability={ability!r}` needs a population. The bank has none, and from "
            f"{count(aligned.n_persons, 'person')} it cannot be estimated (it "
            f"takes {FEWEST_PEOPLE} or more, who differ). Give its mean and sd with `population`, or take "
            "`ability='wle'`, which needs none."
        )
    return population


class _ScoredByGroup(NamedTuple):
    """People scored within groups of items, and what to know about that."""

    persons: Columns
    findings: list[Finding]


def _scored_by_group(bank: Bank, aligned: Responses, how: _HowToScore) -> _ScoredByGroup:
    """Everybody scored with the items of one group: that of most of their responses."""
    n_groups = int(bank.evidence.link_group.max()) + 1
    group = np.where(bank.estimated, bank.evidence.link_group, -1)
    counts = aligned.entries.gather(_responses_by_group, aligned.thresholds, group, n_groups)
    group_of_person = np.argmax(counts, axis=1)
    columns: Columns = {}
    for g in np.unique(group_of_person).tolist():
        chosen = np.flatnonzero(group_of_person == g)
        study = _study(bank, group == g, aligned.take_persons(chosen), how)
        # A seed for each group: no two people are drawn by the same random numbers.
        of_group = columns_of(study.persons, draws=how.draws, seed=(how.seed, g))
        for name, values in of_group.items():
            column = columns.setdefault(name, np.zeros(aligned.n_persons, dtype=values.dtype))
            column[chosen] = values
    scale = np.array([str(g + 1) for g in group_of_person], dtype=object)
    scale[counts.sum(axis=1) == 0] = ""
    columns["person"] = aligned.persons
    columns["scale"] = scale
    n_by_scale = {g + 1: int(np.sum(scale == str(g + 1))) for g in np.unique(group_of_person).tolist()}
    on_several = aligned.persons[(counts > 0).sum(axis=1) > 1]
    return _ScoredByGroup(columns, [*_several_scales(n_by_scale), *_responses_on_several_scales(on_several)])


def _responses_by_group(block: Block, layout: Thresholds, group: Ints, n_groups: int) -> Ints:
    """People x groups: how many responses each gave to items of each."""
    rows = rows_of(block, layout)
    group_of_response = group[rows.items]
    person = np.repeat(np.arange(block.n_persons), rows.counts)
    cell = person * n_groups + group_of_response
    counts = np.bincount(cell[group_of_response >= 0], minlength=block.n_persons * n_groups)
    return counts.reshape(block.n_persons, n_groups)


def _several_scales(n_by_scale: dict[int, int]) -> Iterator[Finding]:
    """Scales that people are on, with how many there are on each, where there are several."""
    if len(n_by_scale) < 2:
        return
    sizes = [f"{n:,} on scale {scale}" for scale, n in n_by_scale.items()]
    shown = ", ".join(sizes[:NAMED_SCALES])
    if len(sizes) > NAMED_SCALES:
        shown += f" and {len(sizes) - NAMED_SCALES:,} more"
    sentence = (
        f"The people are on {len(sizes):,} scales that no answers link, and their abilities cannot be compared "
        f"across them: {shown}."
    )
    yield Finding("several_scales", "warning", sentence, "Compare within a scale only (column scale).")


def _responses_on_several_scales(persons: Labels) -> Iterator[Finding]:
    if not len(persons):
        return
    who = count(len(persons), "person has", "people have")
    sentence = f"{who} answered items on more than one scale: {listed(persons)}."
    remedy = "Only the answers on the scale with most of theirs count."
    yield Finding("answers_on_several_scales", "warning", sentence, remedy)


def _findings(bank: Bank, responses: Responses, persons: Columns) -> list[Finding]:
    """Items whose responses do not count, by reason, and people without any that do."""
    place = positions(responses.items, bank.items)
    in_bank = place >= 0
    answered = in_bank & (responses.item_counts > 0)
    has_difficulty = bank.calibration.known[place]
    prior_only = has_difficulty & ~bank.estimated[place]
    rests = "a difficulty in the bank that rests on the prior alone"
    findings = [
        *_items_that_do_not_count(
            "unknown_items", responses.items[~in_bank], "is not in the bank", "are not in the bank"
        ),
        *_items_that_do_not_count(
            "items_without_difficulty",
            responses.items[answered & ~has_difficulty],
            "has no difficulty in the bank",
            "have no difficulty in the bank",
        ),
        *_items_that_do_not_count(
            "prior_only_items", responses.items[answered & prior_only], f"has {rests}", f"have {rests}"
        ),
    ]
    without = responses.persons[persons["n"] == 0]
    if len(without):
        sentence = f"{count(len(without), 'person has', 'people have')} no answer that counts: {listed(without)}."
        remedy = "They stay in the table, with the prior's ability or none."
        findings.append(Finding("no_answers", "note", sentence, remedy))
    return findings


def _items_that_do_not_count(code: str, labels: Labels, one: str, several: str) -> Iterator[Finding]:
    """A finding about these items, if there are any: what one of them, or several, are."""
    if not len(labels):
        return
    if len(labels) == 1:
        sentence = f"1 item {one}, and the answers to it do not count: {listed(labels)}."
    else:
        sentence = f"{len(labels):,} items {several}, and the answers to them do not count: {listed(labels)}."
    yield Finding(code, "warning", sentence, "", tuple(labels.tolist()))
