"""People scored with the items of a bank: each on the scale that the items have, under the bank's own population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.analysis import Analysis
from spectral_irt.analysis.cache import columns_of
from spectral_irt.bank.bank import FEWEST_PEOPLE, Bank, Population
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds, rows_of
from spectral_irt.data.labels import positions
from spectral_irt.errors import BankError, OptionError, check_option
from spectral_irt.inference.scores.reliability import Reliability
from spectral_irt.persons.abilities import REPORTS
from spectral_irt.tables import Columns, Table, make_table
from spectral_irt.text import count, listed

PRIORS = ("eap", "pv")  # ways to report people that need a population


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
    given = bank._read(responses)
    if not given.n_responses:
        raise BankError(f"{given.source}: there is no answer in it, so nobody can be scored.")
    aligned = bank._align(given, ignore_unknown)
    people = _population(bank, aligned, population, ability) if ability in PRIORS else None
    if bank.n_groups < 2:
        study = _study(bank, bank.estimated, aligned, ability, people)
        persons = columns_of(study.persons, draws=draws, seed=seed)
        found: Reliability | None = study.reliability()
        findings: list[Finding] = []
    else:
        persons, findings = _by_group(bank, aligned, ability, people, draws, seed)
        found = None
    if not persons["n"].any():
        raise BankError(
            f"{given.source}: none of the items answered has a difficulty in the bank, so nobody can be scored."
        )
    return Scores(persons, people, found, [*given.notes, *_findings(bank, given, persons), *findings], given.frame_kind)


def _thresholds(bank: Bank, chosen: NDArray[np.bool_]) -> Floats:
    """Of these items; NaN leaves the others out."""
    made = bank.calibration
    return np.where(chosen[made.layout.item], made.thresholds, np.nan)


def _study(
    bank: Bank, chosen: NDArray[np.bool_], aligned: Responses, ability: str, people: Population | None
) -> Analysis:
    """The people under these items of the bank."""
    calibration = bank.calibration.replace(thresholds=_thresholds(bank, chosen))
    prior = None if people is None else (people.mean, people.sd)
    return Analysis(calibration, aligned, ability=ability, population=prior)


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
    found = Population.of(aligned, _thresholds(bank, bank.estimated))
    if found is None:
        raise OptionError(
            f"{aligned.source}: `ability={ability!r}` needs a population. The bank has none, and from "
            f"{count(aligned.n_persons, 'person')} it cannot be estimated (it "
            f"takes {FEWEST_PEOPLE} or more, who differ). Give its mean and sd with `population`, or take "
            "`ability='wle'`, which needs none."
        )
    return found


def _by_group(
    bank: Bank, aligned: Responses, ability: str, people: Population | None, draws: int, seed: int
) -> tuple[Columns, list[Finding]]:
    """Everybody scored with the items of one group: that of most of their answers."""
    number = int(bank.evidence.link_group.max()) + 1
    group = np.where(bank.estimated, bank.evidence.link_group, -1)
    counts = aligned.entries.gather(_answers_by_group, aligned.thresholds, group, number)
    home = np.argmax(counts, axis=1)
    columns: Columns = {}
    for g in np.unique(home):
        chosen = np.flatnonzero(home == g)
        study = _study(bank, group == g, aligned.take_persons(chosen), ability, people)
        some = columns_of(study.persons, draws=draws, seed=(seed, int(g)))  # no two people with the same chance
        for name, values in some.items():
            columns.setdefault(name, np.zeros(aligned.n_persons, dtype=values.dtype))[chosen] = values
    scale = np.array([str(g + 1) for g in home], dtype=object)
    scale[counts.sum(axis=1) == 0] = ""
    columns["person"] = aligned.persons
    columns["scale"] = scale
    findings = []
    sizes = [f"{int(np.sum(scale == str(g + 1))):,} on scale {g + 1}" for g in np.unique(home)]
    if len(sizes) > 1:
        sentence = (
            f"The people are on {len(sizes):,} scales that no answers link, and their abilities cannot be compared "
            f"across them: {', '.join(sizes[:5])}{f' and {len(sizes) - 5:,} more' if len(sizes) > 5 else ''}."
        )
        findings.append(Finding("several_scales", "warning", sentence, "Compare within a scale only (column scale)."))
    both = aligned.persons[(counts > 0).sum(axis=1) > 1]
    if len(both):
        sentence = (
            f"{count(len(both), 'person has', 'people have')} answered items on more than one scale: {listed(both)}."
        )
        remedy = "Only the answers on the scale with most of theirs count."
        findings.append(Finding("answers_on_several_scales", "warning", sentence, remedy))
    return columns, findings


def _answers_by_group(block: Block, layout: Thresholds, group: Ints, number: int) -> Ints:
    """People x groups: how many answers each gave to items of each."""
    rows = rows_of(block, layout)
    of = group[rows.items]
    slot = np.repeat(np.arange(block.n_persons), rows.counts) * number + of
    return np.bincount(slot[of >= 0], minlength=block.n_persons * number).reshape(block.n_persons, number)


def _findings(bank: Bank, responses: Responses, persons: Columns) -> list[Finding]:
    out = []
    place = positions(responses.items, bank.items)
    answered = responses.item_counts > 0

    def about(code: str, mask: NDArray[np.bool_], one: str, several: str) -> None:
        names = responses.items[mask]
        if len(names):
            verb = f"item {one}" if len(names) == 1 else f"items {several}"
            sentence = f"{len(names):,} {verb}, and the answers to {'it' if len(names) == 1 else 'them'} do not count"
            out.append(Finding(code, "warning", f"{sentence}: {listed(names)}.", "", tuple(names.tolist())))

    there = place >= 0
    about("unknown_items", ~there, "is not in the bank", "are not in the bank")
    bare = there & ~bank.calibration.known[place] & answered
    about("items_without_difficulty", bare, "has no difficulty in the bank", "have no difficulty in the bank")
    guessed = there & bank.calibration.known[place] & ~bank.estimated[place] & answered
    rests = "a difficulty in the bank that rests on the prior alone"
    about("prior_only_items", guessed, f"has {rests}", f"have {rests}")
    empty = responses.persons[persons["n"] == 0]
    if len(empty):
        sentence = f"{count(len(empty), 'person has', 'people have')} no answer that counts: {listed(empty)}."
        out.append(Finding("no_answers", "note", sentence, "They stay in the table, with the prior's ability or none."))
    return out
