"""Right and wrong answers, and ordered ones: what the same inference asks of either kind.

`parameters` are the difficulties of the items, or the thresholds of all items one after the other: `thresholds` of a
calibration is both. NaN leaves an item out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.engines import Prepared
from spectral_irt.estimators.ordered_anchors import spread
from spectral_irt.estimators.partial_credit import SpectralPartialCredit
from spectral_irt.estimators.spectral import spectral_difficulty
from spectral_irt.inference.conditional_fit import conditional_statistics
from spectral_irt.inference.ordered_fit import (
    LEAST,
    conditional_item_mean_squares,
    moments_at,
    moments_given_score,
    spread_squares,
)
from spectral_irt.inference.ordered_fit import person_mean_squares as ordered_mean_squares
from spectral_irt.inference.residual_pairs import residual_matrices
from spectral_irt.model import category_probabilities
from spectral_irt.ordered_ability import answer_moments
from spectral_irt.persons.abilities import Abilities, abilities
from spectral_irt.persons.ordered_people import OrderedPeople
from spectral_irt.persons.residuals import MeanSquares, person_mean_squares, probabilities
from spectral_irt.responses import Block, Responses
from spectral_irt.responses.block import Floats, csr
from spectral_irt.responses.ordered import OrderedResponses, Steps, answered_items, step_slots
from spectral_irt.responses.pack import pack_block


class AnswerKind(Protocol):
    """What is asked of a kind of answers."""

    def abilities(self, responses: Responses, parameters: Floats, method: str) -> Abilities:
        """The ability of every person."""
        ...

    def person_fit(self, responses: Responses, parameters: Floats, ability: Floats) -> MeanSquares:
        """Infit and outfit of every person at these abilities, by items and score alone."""
        ...

    def redraw(
        self, responses: Responses, parameters: Floats, known: Abilities, seed: np.random.SeedSequence
    ) -> Responses:
        """The same people shown the same items, with answers drawn from the model; abilities normal(ability, se)."""
        ...

    def refit(self, responses: Responses) -> Floats:
        """The parameters by the spectral estimator."""
        ...

    def item_fit(self, responses: Responses, parameters: Floats) -> tuple[MeanSquares, Floats]:
        """Infit and outfit of every item given the scores, and the standard error of the infit."""
        ...

    def residuals(self, responses: Responses, parameters: Floats, ability: Floats, *, standardized: bool) -> Prepared:
        """Residuals, people x items, one sparse matrix a block; a residual of zero is stored like any other."""
        ...


def kind_of(responses: Responses) -> AnswerKind:
    """That of these responses."""
    return OrderedKind() if isinstance(responses, OrderedResponses) else RightAndWrong()


class RightAndWrong:
    """Answers that are right or wrong; parameters are difficulties."""

    def abilities(self, responses: Responses, parameters: Floats, method: str) -> Abilities:
        return abilities(responses, parameters, method)

    def person_fit(self, responses: Responses, parameters: Floats, ability: Floats) -> MeanSquares:
        return person_mean_squares(responses, parameters, ability)

    def redraw(
        self, responses: Responses, parameters: Floats, known: Abilities, seed: np.random.SeedSequence
    ) -> Responses:
        return responses.transform(_redraw, parameters, persons=(known.ability, known.se), seed=seed)

    def refit(self, responses: Responses) -> Floats:
        return spectral_difficulty(responses, se="none").difficulty

    def item_fit(self, responses: Responses, parameters: Floats) -> tuple[MeanSquares, Floats]:
        found = conditional_statistics(responses, parameters)
        return found.mean_squares, found.infit_se

    def residuals(self, responses: Responses, parameters: Floats, ability: Floats, *, standardized: bool) -> Prepared:
        return residual_matrices(responses, parameters, ability, standardized=standardized)


def _redraw(block: Block, ability: Floats, se: Floats, seed: np.random.SeedSequence, difficulty: Floats) -> Block:
    rng = np.random.default_rng(seed)
    theta = ability + se * rng.standard_normal(block.n_users)
    # In this order draws belong to the cell (person, item), not to how it was answered: it is the same for any answers.
    slots = (block.user_of_response() << 32) + block.items
    slots.sort()
    shown = Block(block.indptr, block.indptr[:-1], (slots & 0xFFFFFFFF).astype(np.int32))
    known = np.isfinite(difficulty)
    if not known[shown.items].all():
        shown = shown.keep_items(np.where(known, np.arange(len(known)), -1).astype(np.int32))
    wrong = rng.random(shown.n_responses) >= probabilities(shown, difficulty, theta)
    return pack_block(shown.indptr, 2 * shown.items + wrong)


# --------------------------------------------------------------------------------------- ordered answers


class OrderedKind:
    """Answers in ordered categories; parameters are thresholds."""

    def abilities(self, responses: Responses, parameters: Floats, method: str) -> Abilities:
        return people_with(responses, parameters).abilities(method)

    def person_fit(self, responses: Responses, parameters: Floats, ability: Floats) -> MeanSquares:
        people = people_with(responses, parameters)
        theta = np.full(len(people.patterns.count), np.nan)
        theta[people.patterns.of_person] = ability
        return ordered_mean_squares(people, moments_at(people, theta))

    def redraw(
        self, responses: Responses, parameters: Floats, known: Abilities, seed: np.random.SeedSequence
    ) -> Responses:
        assert isinstance(responses, OrderedResponses)
        steps = responses.steps
        there = np.isfinite(steps.mean(parameters))
        cumulated = steps.cumulated(np.nan_to_num(parameters))
        how = {"persons": (known.ability, known.se), "seed": seed}
        drawn = responses.thresholds.transform(_redraw_ordered, steps, cumulated, there, **how)  # type: ignore[arg-type]
        return replace(responses, blocks=drawn.blocks)

    def refit(self, responses: Responses) -> Floats:
        return SpectralPartialCredit(se="none").fit(responses).thresholds_

    def item_fit(self, responses: Responses, parameters: Floats) -> tuple[MeanSquares, Floats]:
        people = people_with(responses, parameters)
        found, infit_se = conditional_item_mean_squares(people, moments_given_score(people))
        assert isinstance(responses, OrderedResponses)
        known = np.isfinite(responses.steps.mean(parameters))
        return spread_squares(found, known), spread(infit_se, known)

    def residuals(self, responses: Responses, parameters: Floats, ability: Floats, *, standardized: bool) -> Prepared:
        assert isinstance(responses, OrderedResponses)
        steps = responses.steps
        there = np.isfinite(steps.mean(parameters))
        cumulated = steps.cumulated(np.nan_to_num(parameters))
        return responses.thresholds.prepare(
            _ordered_residuals, steps, cumulated, there, standardized, persons=(ability,)
        )


def people_with(responses: Responses, thresholds: Floats) -> OrderedPeople:
    """The people, with their answers to the items that have thresholds."""
    assert isinstance(responses, OrderedResponses)
    known = np.isfinite(responses.steps.mean(thresholds))
    if known.all():
        return OrderedPeople(responses, thresholds)
    place = responses.steps.of_items(np.flatnonzero(known))
    return OrderedPeople(responses.take_items(known), thresholds[place])


def _redraw_ordered(
    block: Block,
    ability: Floats,
    se: Floats,
    seed: np.random.SeedSequence,
    steps: Steps,
    cumulated: Floats,
    there: NDArray[np.bool_],
) -> Block:
    rng = np.random.default_rng(seed)
    theta = ability + se * rng.standard_normal(block.n_users)
    indptr, item, _ = answered_items(block, steps)
    person = np.repeat(np.arange(block.n_users), np.diff(indptr))
    order = np.lexsort((item, person))
    person, item = person[order], item[order]
    person, item = person[there[item]], item[there[item]]
    p = category_probabilities(theta[person], cumulated[item])
    category = (rng.random(len(item))[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    slots, entries = step_slots(item, np.minimum(category, steps.counts[item]), steps)
    counts = np.bincount(person, weights=entries.sum(axis=1), minlength=block.n_users).astype(np.int64)
    return pack_block(np.concatenate([[0], np.cumsum(counts)]), slots[entries].astype(np.int32))


def _ordered_residuals(
    block: Block, theta: Floats, steps: Steps, cumulated: Floats, there: NDArray[np.bool_], standardized: bool
) -> sparse.csr_array:
    indptr, item, category = answered_items(block, steps)
    person = np.repeat(np.arange(block.n_users), np.diff(indptr))
    kept = there[item] & np.isfinite(theta)[person]
    person, item, category = person[kept], item[kept], category[kept]
    mean, variance, _ = answer_moments(theta[person], item, cumulated)
    values = category - mean
    if standardized:
        values = values / np.sqrt(np.maximum(variance, LEAST))
    ends = np.concatenate([[0], np.cumsum(np.bincount(person, minlength=block.n_users))])
    return csr(ends.astype(np.int32), item.astype(np.int32), values, steps.n_items)
