"""What unequal slopes alone make of a comparison of groups of unlike ability.

An item of slope a gains a D from persons whose ability is higher by D, where the average item gains D, and seems easier
for them if it is steep. How much of that reaches its difficulty depends on the items beside it and on its categories:
distances of thresholds shrink with the slope and take most of it, so that (1 - a) D is up to 2.5 times too much.
Therefore responses of each group are drawn from a model with common slopes and without DIF, at the abilities of its
persons, and calibrated as the group itself was:

    P(x = k | theta) ~ exp(k a_i theta - t_i1 - ... - t_ik),      shift_gi = difficulty_gi - difficulty_1i of the draws,

less the same of responses drawn with equal slopes from the same random numbers, which is zero but for chance: most of
the chance in the draws is taken off with it.

Slopes are those within groups, so that an item that is harder for a group at any ability looks no steeper for that;
they are drawn to their mean by as much as their errors explain how they differ.

`dif.differential` calls `slope_shifts` where an item is flagged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import DesignError
from spectral_irt.inference.fit.redraw import redraw
from spectral_irt.inference.groups.calibrations import GroupCalibrations, GroupModel, fit_group
from spectral_irt.inference.items.slope_model import CELLS, SlopeModel, slope_model

DRAWS = 5  # of the responses of everybody, whose scatter says how far off their mean may be
COPIES = 4  # of each person in a draw, at most: so that no item is extreme in it, and small samples have no bias


@dataclass(frozen=True, eq=False)
class SlopeShifts:
    """How much harder each item seems in each group than in the first by its slope alone, and the standard error of
    that: groups x items. The mean shift of the anchors is zero."""

    shift: Floats
    se: Floats

    def centered_on(self, anchors: NDArray[np.bool_]) -> SlopeShifts:
        """With the mean shift of these anchors at zero."""
        mean = self.shift[:, anchors].mean(axis=1, keepdims=True)
        return replace(self, shift=self.shift - mean)


class _GroupSlopes(NamedTuple):
    """A group: its persons, or a sample of them, and the model with slopes that fits their responses."""

    responses: Responses
    model: SlopeModel


@dataclass(frozen=True, eq=False)
class _CommonSlopes:
    """Slopes that all groups have in common and the errors of these; intercepts of the thresholds on the scale of the
    first group; and how much higher than on its own scale the ability of each group is there."""

    slope: Floats
    slope_se: Floats
    intercepts: Floats
    origin: Floats


def slope_shifts(
    calibrations: GroupCalibrations, group: Ints, model: GroupModel, anchors: NDArray[np.bool_]
) -> SlopeShifts:
    """The shifts of calibrated groups; `group` is that of each of their persons, and `model` what was calibrated."""
    everyone = calibrations.everyone
    most_persons = max(1, CELLS // everyone.n_items)
    groups = []
    for g in range(len(calibrations.names)):
        members = everyone.take_persons(np.flatnonzero((group == g) & everyone.informative))
        sample = members.sample(most_persons, np.random.default_rng(g))[0].in_one_block()
        groups.append(_GroupSlopes(sample, slope_model(sample)))
    common = _common_slopes(groups, anchors)
    try:
        draws = np.array([_shifts_of_draw(calibrations, model, groups, common, draw) for draw in range(DRAWS)])
    except DesignError:  # no calibration of the draws, as of very few persons: nothing is explained by slopes
        no_shift = np.zeros((len(groups), everyone.n_items))
        return SlopeShifts(no_shift, no_shift)
    shift = draws.mean(axis=0)
    # One error for all items of a group: that of a single item would be known from five draws only.
    noise = np.sqrt(draws.var(axis=0, ddof=1).mean(axis=1, keepdims=True) / DRAWS)
    # A slope that is off by its error moves the shift by as much as slopes do here: the regression of shifts on slopes.
    steeper = common.slope - 1
    squares = float(steeper @ steeper)
    rate = np.zeros(len(shift))
    if squares > 0:
        rate = shift @ steeper / squares
    by_slope_error = np.abs(rate)[:, None] * common.slope_se
    return SlopeShifts(shift, np.hypot(noise, by_slope_error)).centered_on(anchors)


def _common_slopes(groups: Sequence[_GroupSlopes], anchors: NDArray[np.bool_]) -> _CommonSlopes:
    layout = groups[0].responses.thresholds
    slopes = np.array([group.model.slope for group in groups])
    precision = np.array([1 / group.model.slope_se**2 for group in groups])
    slope = (slopes * precision).sum(axis=0) / precision.sum(axis=0)
    variance = 1 / precision.sum(axis=0)
    true_variance = max(float(slope.var()) - float(variance.mean()), 0.0)
    reliability = true_variance / (true_variance + variance)
    slope = 1 + reliability * (slope - slope.mean())
    # a theta - t is the same response curve with theta + d and t + a d: d makes the anchors agree with the first group.
    # An intercept beside a category that next to nobody used may be anywhere, and counts by how many used both.
    intercepts = np.array([group.model.intercepts for group in groups])
    precision = np.array([_used_both(group.responses) for group in groups])
    a = slope[layout.item]
    weight = precision * precision[0] / (precision + precision[0]) * anchors[layout.item]
    d = (weight * a * (intercepts[0] - intercepts)).sum(axis=1) / (weight * a * a).sum(axis=1)
    common_intercepts = (precision * (intercepts + d[:, None] * a)).sum(axis=0) / precision.sum(axis=0)
    return _CommonSlopes(slope, np.sqrt(reliability * variance), common_intercepts, origin=d)


def _used_both(people: Responses) -> Floats:
    """Of every threshold, about the precision of its intercept: the harmonic sum of the numbers of persons in the
    category above and in the one below it."""
    layout = people.thresholds
    if layout.binary:
        above = people.item_scores + 0.0
        below = people.item_counts - people.item_scores + 0.0
    else:
        counts = np.nan_to_num(people.category_counts)
        above = counts[layout.item, layout.level]
        below = counts[layout.item, layout.level - 1]
    return np.asarray((above * below + 1e-6) / (above + below + 1e-3))


def _shifts_of_draw(
    calibrations: GroupCalibrations, model: GroupModel, groups: Sequence[_GroupSlopes], common: _CommonSlopes, draw: int
) -> Floats:
    """Difficulties in each group less those in the first, of one draw with the slopes less one with equal slopes."""
    layout = calibrations.layout
    equal = replace(common, slope=np.ones_like(common.slope))
    if model.shape is not None:
        # The distances of thresholds that are held in the groups: with others the shifts of equal slopes are not zero.
        origin = layout.mean(common.intercepts).mean() - layout.mean(model.shape).mean()
        equal = replace(equal, intercepts=model.shape + origin)
    shifts = []
    for slopes in (common, equal):
        location = np.zeros((len(groups), layout.n_items))
        for g, group in enumerate(groups):
            seed = np.random.SeedSequence([0, 4, draw, g])  # the same random numbers for both
            responses = _draw_responses(group, slopes, g, seed)
            fit = fit_group(responses, model, calibrations.design, calibrations.names[g])
            location[g] = layout.mean(fit.thresholds)
        shifts.append(location - location[0])
    by_slopes, by_chance = shifts
    return np.asarray(by_slopes - by_chance)


def _draw_responses(group: _GroupSlopes, slopes: _CommonSlopes, number: int, seed: np.random.SeedSequence) -> Responses:
    """Responses of these persons, several times each, under common slopes."""
    people = group.responses
    copies = int(np.clip(CELLS // (DRAWS * max(people.n_responses, 1)), 1, COPIES))
    place = np.tile(np.arange(people.n_persons), copies)
    blocks = people.engine.prepare(Block.take, people.blocks, each=[[place]]).parts
    copied = replace(people, blocks=blocks, persons=np.arange(len(place)), people=None, raw=None)
    intercepts = slopes.intercepts - slopes.origin[number] * slopes.slope[people.thresholds.item]
    model = group.model
    return redraw(copied, intercepts, model.ability[place], model.ability_sd[place], seed, slope=slopes.slope)
