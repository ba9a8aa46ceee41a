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

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.packing import limits_of, pack_block
from spectral_irt.data.thresholds import Thresholds, answered_items
from spectral_irt.engine import Prepared
from spectral_irt.estimators.estimate import with_missing
from spectral_irt.estimators.spectral import SpectralPartialCredit
from spectral_irt.estimators.spectral_fit import spectral_fit
from spectral_irt.inference.dimensions.residual_pairs import residual_matrices
from spectral_irt.inference.fit.conditional_fit import conditional_statistics
from spectral_irt.inference.fit.ordered_fit import (
    LEAST,
    conditional_item_mean_squares,
    moments_at,
    moments_given_score,
    spread_squares,
)
from spectral_irt.inference.fit.ordered_fit import person_mean_squares as ordered_mean_squares
from spectral_irt.model import category_probabilities, sigmoid
from spectral_irt.numerics import generator
from spectral_irt.persons.abilities import Abilities, Persons
from spectral_irt.persons.residuals import MeanSquares, person_mean_squares, probabilities
from spectral_irt.sparse_kernels import csr
from spectral_irt.total_score import answer_moments


class AnswerKind(Protocol):
    """What is asked of a kind of answers."""

    def person_fit(self, responses: Responses, parameters: Floats, ability: Floats) -> MeanSquares:
        """Infit and outfit of every person at these abilities, by items and score alone."""
        ...

    def redraw(
        self,
        responses: Responses,
        parameters: Floats,
        known: Abilities,
        seed: np.random.SeedSequence,
        slope: Floats | None = None,
    ) -> Responses:
        """The same people shown the same items, with answers drawn from the model; abilities normal(ability, se).

        With a slope for every item, abilities count times it, and parameters are intercepts.
        """
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
    return RightAndWrong() if responses.thresholds.binary else OrderedKind()


class RightAndWrong:
    """Answers that are right or wrong; parameters are difficulties."""

    def person_fit(self, responses: Responses, parameters: Floats, ability: Floats) -> MeanSquares:
        return person_mean_squares(responses, parameters, ability)

    def redraw(
        self,
        responses: Responses,
        parameters: Floats,
        known: Abilities,
        seed: np.random.SeedSequence,
        slope: Floats | None = None,
    ) -> Responses:
        return responses.transform(_redraw, parameters, slope, persons=(known.ability, known.se), seed=seed)

    def refit(self, responses: Responses) -> Floats:
        return spectral_fit(responses, se="none").thresholds

    def item_fit(self, responses: Responses, parameters: Floats) -> tuple[MeanSquares, Floats]:
        found = conditional_statistics(responses, parameters)
        return found.mean_squares, found.infit_se

    def residuals(self, responses: Responses, parameters: Floats, ability: Floats, *, standardized: bool) -> Prepared:
        return residual_matrices(responses, parameters, ability, standardized=standardized)


def _redraw(
    block: Block, ability: Floats, se: Floats, seed: np.random.SeedSequence, difficulty: Floats, slope: Floats | None
) -> Block:
    rng = generator(seed)
    theta = ability + se * rng.standard_normal(block.n_persons)
    # In this order draws belong to the cell (person, item), not to how it was answered: it is the same for any answers.
    slots = (block.person_of_response() << 32) + block.items
    slots.sort()
    shown = Block(block.indptr, block.indptr[:-1], (slots & 0xFFFFFFFF).astype(np.int32))
    known = np.isfinite(difficulty)
    if not known[shown.items].all():
        shown = shown.keep_items(np.where(known, np.arange(len(known)), -1).astype(np.int32))
    if slope is None:
        p = probabilities(shown, difficulty, theta)
    else:
        p = sigmoid(slope[shown.items] * theta[shown.person_of_response()] - difficulty[shown.items])
    right = rng.random(shown.n_responses) < p
    return pack_block(shown.indptr, 2 * shown.items + right)


# --------------------------------------------------------------------------------------- ordered answers


class OrderedKind:
    """Answers in ordered categories; parameters are thresholds."""

    def person_fit(self, responses: Responses, parameters: Floats, ability: Floats) -> MeanSquares:
        people = Persons.of(responses, parameters)
        theta = np.full(len(people.patterns.count), np.nan)
        theta[people.patterns.of_person] = ability
        return ordered_mean_squares(people, moments_at(people, theta))

    def redraw(
        self,
        responses: Responses,
        parameters: Floats,
        known: Abilities,
        seed: np.random.SeedSequence,
        slope: Floats | None = None,
    ) -> Responses:
        steps = responses.thresholds
        there = np.isfinite(steps.mean(parameters))
        cumulated = steps.cumulated(np.nan_to_num(parameters))
        how = {"persons": (known.ability, known.se), "seed": seed}
        drawn = responses.entries.transform(_redraw_ordered, steps, cumulated, there, slope, **how)  # type: ignore[arg-type]
        return replace(responses, blocks=drawn.blocks)

    def refit(self, responses: Responses) -> Floats:
        return SpectralPartialCredit(se="none").fit(responses).thresholds_

    def item_fit(self, responses: Responses, parameters: Floats) -> tuple[MeanSquares, Floats]:
        people = Persons.of(responses, parameters)
        found, infit_se = conditional_item_mean_squares(people, moments_given_score(people))
        known = np.isfinite(responses.thresholds.mean(parameters))
        return spread_squares(found, known), with_missing(infit_se, known)

    def residuals(self, responses: Responses, parameters: Floats, ability: Floats, *, standardized: bool) -> Prepared:
        steps = responses.thresholds
        there = np.isfinite(steps.mean(parameters))
        cumulated = steps.cumulated(np.nan_to_num(parameters))
        return responses.entries.prepare(_ordered_residuals, steps, cumulated, there, standardized, persons=(ability,))


def _redraw_ordered(
    block: Block,
    ability: Floats,
    se: Floats,
    seed: np.random.SeedSequence,
    steps: Thresholds,
    cumulated: Floats,
    there: NDArray[np.bool_],
    slope: Floats | None,
) -> Block:
    rng = generator(seed)
    theta = ability + se * rng.standard_normal(block.n_persons)
    indptr, item, _ = answered_items(block, steps)
    person = np.repeat(np.arange(block.n_persons), np.diff(indptr))
    order = np.lexsort((item, person))
    person, item = person[order], item[order]
    person, item = person[there[item]], item[there[item]]
    p = category_probabilities(theta[person] * (1.0 if slope is None else slope[item]), cumulated[item])
    category = (rng.random(len(item))[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    slots = (item << steps.bits) | np.minimum(category, steps.max_score[item]).astype(np.int32)
    return pack_block(limits_of(np.bincount(person, minlength=block.n_persons)), slots, steps)


def _ordered_residuals(
    block: Block, theta: Floats, steps: Thresholds, cumulated: Floats, there: NDArray[np.bool_], standardized: bool
) -> sparse.csr_array:
    indptr, item, category = answered_items(block, steps)
    person = np.repeat(np.arange(block.n_persons), np.diff(indptr))
    kept = there[item] & np.isfinite(theta)[person]
    person, item, category = person[kept], item[kept], category[kept]
    mean, variance = answer_moments(theta[person], item, cumulated)
    values = category - mean
    if standardized:
        values = values / np.sqrt(np.maximum(variance, LEAST))
    ends = np.concatenate([[0], np.cumsum(np.bincount(person, minlength=block.n_persons))])
    return csr(ends.astype(np.int32), item.astype(np.int32), values, steps.n_items)
