"""What is odd about raters, or the levels of any facet: the sentences of `Analysis.findings` about them.

Each rule is a function that yields its finding, or none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Block, Ints, Mask, Thresholds, answered_items
from spectral_irt.errors import Severity
from spectral_irt.inference.facets import CENTRAL, CERTAIN, SHARP
from spectral_irt.inference.fit.halo import Halo
from spectral_irt.inference.results import adjust_p, two_sided
from spectral_irt.tables import Columns
from spectral_irt.text import and_list, listed, one_or_many, plural

SURE = 3.0  # standard errors from the mean of the raters
FAR = 1.0  # logits from there
FEW = 10  # ratings
HALO = 0.01  # of the one p of a facet below which halo is a warning


class Oddity(NamedTuple):
    """Levels of a facet of which the same is to be said."""

    code: str
    severity: Severity
    levels: Mask
    what: str
    remedy: str


def facet_findings(
    responses: Responses,
    name: str,
    table: Columns,
    pairs: Columns,
    impressions: Halo | None = None,
    without_misfits: Halo | None = None,
) -> list[Finding]:
    """What is odd about the levels of a facet, by their table (too severe, misfitting, hardly seen), by whom they
    rated, by their interactions with items, and whether ratings of one level depend on each other: `impressions`, and
    `without_misfits` those of the levels that `are_no_cause_of_halo`."""
    return [
        *_odd_levels(name, table),
        *_halo(responses, name, table, impressions, without_misfits),
        *_one_rater(responses, name),
        *_interactions(name, pairs),
    ]


def _odd_levels(name: str, table: Columns) -> Iterator[Finding]:
    for oddity in _oddities(table):
        names = table[name][oddity.levels]
        if len(names):
            of_all = f"{len(names):,} of {len(oddity.levels):,}"
            sentence = f"{name.capitalize()}: {of_all} {oddity.what}: {listed(names)}."
            yield Finding(oddity.code, oddity.severity, sentence, oddity.remedy, tuple(names.tolist()))


def _oddities(table: Columns) -> list[Oddity]:
    misfit = table["misfit"]
    return [
        Oddity(
            "severe_levels",
            "note",
            np.abs(table["severity"]) > np.maximum(FAR, SURE * table["se"]),
            f"more than {FAR:g} logit from the mean",
            "The measures of people allow for it; look for the reason.",
        ),
        Oddity(
            "erratic_levels",
            "warning",
            misfit == "underfit",
            "less predictable than the model says (underfit)",
            "Their ratings say less than the model takes them to say; look at their interactions with items, and at "
            "single ratings.",
        ),
        Oddity(
            "regular_levels",
            "note",
            misfit == "overfit",
            "more predictable than the model says (overfit)",
            "Look whether they used few categories, saw the ratings of others, or rated one item by another.",
        ),
        Oddity(
            "central_levels",
            "warning",
            misfit == CENTRAL,
            "keeping ratings closer together than the model says (central tendency)",
            "Their ratings make people look more alike than they are.",
        ),
        Oddity(
            "extreme_levels",
            "warning",
            misfit == SHARP,
            "spreading ratings further apart than the model says (extreme ratings)",
            "Their ratings make people look more different than they are.",
        ),
        Oddity(
            "few_ratings",
            "note",
            table["n"] < FEW,
            f"with fewer than {FEW} ratings",
            "What is said about them rests on the prior in part.",
        ),
    ]


def is_significant(halo: Halo | None) -> bool:
    """Do sums of one level's ratings of a person vary more than the model expects?"""
    return halo is not None and halo.z > 0 and bool(two_sided(halo.z) / 2 < HALO)


def are_no_cause_of_halo(table: Columns) -> Mask:
    """Levels whose sums vary as the model says but for impressions. Where ratings are flat, steep or at random, sums of
    a person's ratings vary more without any."""
    return ~np.isin(table["misfit"], ("underfit", CENTRAL, SHARP))


def _halo(
    responses: Responses, name: str, table: Columns, halo: Halo | None, without_misfits: Halo | None
) -> Iterator[Finding]:
    if halo is None or not is_significant(halo):
        return
    if without_misfits is not None and not is_significant(without_misfits):
        yield _sums_of_misfits(name, table, halo, without_misfits)
        return
    sentence = (
        f"Ratings of the same person by one {name} depend on each other (halo): their sums vary "
        f"{halo.ratio:.2f} times as much as the model expects (z = {halo.z:.1f}), as if each {name} "
        f"had an impression of each person with an sd of {halo.variance**0.5:.2f} logits."
    )
    remedy = (
        "Standard errors of persons and the EAP reliability allow for it. More ratings of a person by the same "
        f"{name} tell little; more {plural(name)} do."
    )
    if without_misfits is not None:
        sentence += f" Without {_misfits(name, table)} they vary {without_misfits.ratio:.2f} times as much."
    clear = (adjust_p(two_sided(halo.of_level_z), "holm") < CERTAIN) & (halo.of_level > 1)
    only_some = bool(0 < 2 * clear.sum() <= len(clear))
    if only_some:
        sentence += f" It is clear in {clear.sum():,} of {len(clear):,} (Holm, 5%): {listed(table[name][clear])}."
        n_met = _levels_met_by_persons(responses, name)
        # Given the total of two, the sums vary alike.
        if clear.sum() > 1 and 2 * np.sum(n_met == 2) > np.sum(n_met > 1):
            sentence += f" Where a person has two {plural(name)}, halo of one shows in the sums of the other, too."
    misfitting = clear & ~are_no_cause_of_halo(table)
    if only_some and misfitting.any():
        remedy = (
            f"Look at {listed(table[name][misfitting])} first: ratings that misfit make such sums vary without any "
            f"impression. {remedy}"
        )
    yield Finding("halo", "warning", sentence, remedy)


def _sums_of_misfits(name: str, table: Columns, halo: Halo, without_misfits: Halo) -> Finding:
    """No halo: the levels that misfit make the sums vary."""
    sentence = (
        f"Sums of the ratings of one person by one {name} vary {halo.ratio:.2f} times as much as the model expects "
        f"(z = {halo.z:.1f}), because of {_misfits(name, table)}: without, {without_misfits.ratio:.2f} times "
        f"(z = {without_misfits.z:.1f}). So no halo is seen."
    )
    return Finding("halo", "note", sentence, "Standard errors of persons and the EAP reliability allow for these sums.")


def _misfits(name: str, table: Columns) -> str:
    """The levels whose misfit makes sums vary, with what it is: 'Greco' (underfit) and 'Eklund' (central)."""
    misfitting = ~are_no_cause_of_halo(table)
    kinds = dict.fromkeys(table["misfit"][misfitting].tolist())
    return and_list([f"{listed(table[name][table['misfit'] == kind])} ({kind})" for kind in kinds])


def _one_rater(responses: Responses, name: str) -> Iterator[Finding]:
    """People with ratings of one level only."""
    n_met = _levels_met_by_persons(responses, name)
    n_one = int(np.sum(n_met == 1))
    n_rated = int(np.sum(n_met > 0))
    if not n_one or _n_levels(responses, name) < 2:
        return
    have = one_or_many(n_one, "has", "have")
    sentence = (
        f"{n_one:,} of {n_rated:,} people {have} ratings of one {name} only: they do not tell how severe that {name} "
        "is, and their own measures rest on it."
    )
    remedy = f"Where severities matter, let people have ratings of two {plural(name)} or more."
    yield Finding("one_rater", "warning" if n_one > n_rated / 2 else "note", sentence, remedy)


def _interactions(name: str, pairs: Columns) -> Iterator[Finding]:
    n_significant = int(np.sum(pairs["p_holm"] < CERTAIN))
    if not n_significant:
        return
    bias = pairs["bias"][0]
    side = "severe" if bias > 0 else "lenient"
    depart = one_or_many(n_significant, "departs", "depart")
    sentence = (
        f"{n_significant:,} of {len(pairs['p']):,} combinations of {name} and item {depart} from the {name}'s own "
        f"severity (Holm, 5%); clearest: {name} {pairs[name][0]} is {abs(bias):.2f} logits more {side} on "
        f"{pairs['item'][0]}."
    )
    yield Finding("interactions", "warning", sentence, "Look at how these items are rated.")


def _n_levels(responses: Responses, name: str) -> int:
    assert responses.facets is not None
    return len(responses.facets.column(name)[0])


def _levels_met_by_persons(responses: Responses, name: str) -> Ints:
    """How many levels of a facet each person met."""
    assert responses.facets is not None
    labels, level = responses.facets.column(name)
    return np.asarray(responses.entries.gather(_levels_met, responses.thresholds, level, len(labels)))


def _levels_met(block: Block, layout: Thresholds, level: Ints, n_levels: int) -> Ints:
    """How many levels of a facet each person met."""
    indptr, items, _ = answered_items(block, layout)
    person = np.repeat(np.arange(block.n_persons, dtype=np.int64), np.diff(indptr))
    met = np.unique(person * n_levels + level[items])
    return np.bincount(met // n_levels, minlength=block.n_persons)
