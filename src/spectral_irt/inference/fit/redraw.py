"""Answers drawn anew from a fitted model: the same people shown the same items.

The theta of a person is drawn from normal(ability, se), and with it each answer from the partial credit model

    P(x = k) ~ exp(k a theta - t_1 - ... - t_k),    a = 1 unless a slope is given.

The share of people who misfit by chance (`person_fit.py`) and what unequal slopes
explain (`inference/items/slope_model.py`) rest on such data sets.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import AnswerRows, Floats, Thresholds, answered_items, pack_block
from spectral_irt.model import category_probabilities, sigmoid
from spectral_irt.numerics import generator
from spectral_irt.persons.abilities import thresholds_of


def redraw(
    responses: Responses,
    thresholds: Floats,
    ability: Floats,
    se: Floats,
    seed: np.random.SeedSequence,
    *,
    slope: Floats | None = None,
) -> Responses:
    """The same people shown the same items, with answers drawn from the model; abilities normal(ability, se).

    Items without thresholds are left out. With a slope for every item, abilities count times it, and thresholds are
    intercepts.
    """
    layout = responses.thresholds
    beta = thresholds_of(responses, thresholds)
    seeds = seed.spawn(len(responses.blocks))
    drawn = responses.entries.prepare(_redrawn_block, layout, beta, slope, persons=(ability, se), each=[seeds])
    return replace(responses, blocks=drawn.parts)


def _redrawn_block(
    block: Block,
    ability: Floats,
    se: Floats,
    seed: np.random.SeedSequence,
    layout: Thresholds,
    beta: Floats,
    slope: Floats | None,
) -> Block:
    rng = generator(seed)
    theta = ability + se * rng.standard_normal(block.n_persons)
    # In this order draws belong to the cell (person, item), not to how it was answered: it is the same for any answers.
    indptr, item, _ = answered_items(block, layout)
    cells = np.sort((np.repeat(np.arange(block.n_persons), np.diff(indptr)) << 32) + item)
    item = (cells & 0xFFFFFFFF).astype(np.int32)
    has_thresholds = np.isfinite(layout.mean(beta))[item]
    person = (cells >> 32)[has_thresholds]
    item = item[has_thresholds]
    theta_of_answer = theta[person]
    if slope is not None:
        theta_of_answer = slope[item] * theta_of_answer
    chance = rng.random(len(item))
    if layout.binary:
        category = chance < sigmoid(theta_of_answer - beta[item])
    else:
        p = category_probabilities(theta_of_answer, layout.cumulated(np.nan_to_num(beta))[item])
        category = np.minimum((chance[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1), layout.max_score[item])
    slots = (item << layout.bits) | category.astype(np.int32)
    return pack_block(AnswerRows(person, slots), range(block.n_persons), layout)
