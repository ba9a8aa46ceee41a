"""Tailoring: difficulties without responses that may be guesses (Andrich, Marais & Humphry 2012, 2016).

A right response by knowledge is unlikely where a person is far below an item, and there a guess shows. A response goes
where its chance of being right,

    p = 1 / (1 + exp(beta_i - theta_l)),

is below a limit, whether it is right or wrong. Guesses make hard items look easier and raise the ability of the persons
who made them, so that the first fit takes out too little. Therefore every person is measured again by the responses
that are left, and loses what is below the limit now, until nothing is; then everything is fitted again, and so on until
a fit takes out no more. `benchmarks/moves.py tailoring` measures how much of the bias that removes.

Where nobody guesses, the conditional likelihood of the responses that are left is still the right one: what a person
loses in a step depends on his score in the responses before it, and given that score all patterns of it are as likely
as the model says. This needs that responses only go, and that a step never looks at single responses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.labels import positions
from spectral_irt.inference.nested import Calibrated, centered_on, nested_covariance
from spectral_irt.inference.results import adjust_p, two_sided
from spectral_irt.numerics import chosen_or_none
from spectral_irt.persons.abilities import abilities
from spectral_irt.persons.residuals import probabilities
from spectral_irt.tables import Columns
from spectral_irt.text import count, listed

if TYPE_CHECKING:
    from spectral_irt.analysis.analysis import Analysis

MOST_ROUNDS = 20  # fits, and steps within one; some three are needed
SETTLED = 0.001  # of the responses: a round that takes out no more is the last, as difficulties hardly move after it
LEVEL = 0.05
ORIGIN = 0.25  # of the items, those that lost fewest responses, on whose mean two fits are compared
FEW_REMOVED = 0.01  # of its responses: an item that lost no more is among them
ENOUGH = 60  # responses removed of an item that is tested: of fewer, unlikely right ones, the difference is too skewed


def without_unlikely(responses: Responses, thresholds: Floats, below: float) -> Responses:
    """The responses without those whose chance of being right is below the limit, by the abilities that the others
    give; difficulties are given."""
    ability = np.array(abilities(responses, thresholds).ability)
    for _ in range(MOST_ROUNDS):
        of_blocks = np.split(ability, responses.ends[1:-1])
        blocks = responses.engine.prepare(
            _block_without_unlikely, responses.blocks, thresholds, below, each=[of_blocks]
        ).parts
        fewer = replace(responses, blocks=blocks)
        lost = np.flatnonzero(fewer.counts < responses.counts)
        if not len(lost):
            break
        responses = fewer
        # The others have the responses that they had, and lose no more.
        ability[lost] = abilities(responses.take_persons(lost), thresholds).ability
    return responses


def _block_without_unlikely(block: Block, ability: Floats, thresholds: Floats, below: float) -> Block:
    stays = ~(probabilities(block, thresholds, ability) < below)  # also where no ability is known
    before = np.concatenate([[0], np.cumsum(stays)])
    options = chosen_or_none(block.options, stays)
    return Block(before[block.indptr], before[block.split], block.items[stays], options)


def tailored_columns(first: Analysis, second: Analysis) -> Columns:
    """Difficulties with and without likely guesses; see `AnalysisWithMoves.tailored`."""
    before = first.calibration
    after = second.calibration
    place = positions(after.labels, before.labels)
    in_both = np.flatnonzero(after.measured & (place >= 0) & before.measured[place])
    place = place[in_both]
    removed = before.n[place] - after.n[in_both]
    origin = _is_origin(removed / np.maximum(before.n[place], 1))
    weights = origin / origin.sum()
    shift = weights @ (after.difficulty[in_both] - before.difficulty[place])
    difficulty_all = before.difficulty[place] + shift
    difference = after.difficulty[in_both] - difficulty_all
    se = np.full(len(in_both), np.nan)
    covariance = nested_covariance(_calibrated_part(first), _calibrated_part(second), (place, in_both))
    if covariance is not None:
        se = np.sqrt(np.maximum(np.diag(centered_on(covariance, weights)), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where((se > 0) & (removed >= ENOUGH), difference / se, np.nan)
    p = two_sided(z)
    return {
        "item": after.labels[in_both],
        "n": after.n[in_both],
        "removed": removed,
        "difficulty_all": difficulty_all,
        "difficulty": after.difficulty[in_both],
        "difference": difference,
        "se": se,
        "z": z,
        "p": p,
        "p_holm": adjust_p(p, "holm"),
    }


def _is_origin(share_removed: Floats) -> Floats:
    """Which items have the mean that both fits share: those that lost the smallest shares of their responses."""
    n_origin = max(2, int(np.ceil(ORIGIN * len(share_removed))))
    limit = max(np.sort(share_removed)[:n_origin][-1], FEW_REMOVED)
    return share_removed <= limit


def _calibrated_part(study: Analysis) -> Calibrated:
    return Calibrated(study.calibration, study.responses, study.sampling)


def tailored_finding(columns: Columns) -> Finding:
    """How many responses were left out, and what that changed."""
    changed = np.flatnonzero(columns["p_holm"] < LEVEL)
    removed = int(columns["removed"].sum())
    sentence = f"{removed:,} responses that may be guesses were left out. No difficulty changed significantly."
    if len(changed):
        largest = changed[np.argmax(np.abs(columns["difference"][changed]))]
        sentence = (
            f"{removed:,} responses that may be guesses were left out. Without them "
            f"{count(len(changed), 'difficulty', 'difficulties')} changed significantly (Holm, 5%); largest: "
            f"{listed(columns['item'][[largest]])}, by {columns['difference'][largest]:.2f}."
        )
    remedy = "`study.tailored()` has all items."
    return Finding("tailored_items", "note", sentence, remedy, tuple(columns["item"][changed]))
