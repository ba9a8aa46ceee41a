"""What unequal slopes alone make of a comparison of groups of unlike ability.

An item of slope a gains a D from persons who are abler by D, where the average item gains D, and seems easier for them
if it is steep. How much of that reaches its difficulty depends on the items beside it and on its categories: distances
of thresholds shrink with the slope and take most of it, so that (1 - a) D is up to 2.5 times too much. Therefore
responses of each group are drawn from a model with common slopes and without DIF, at the abilities of its persons, and
calibrated as the group itself was:

    P(x = k | theta) ~ exp(k a_i theta - t_i1 - ... - t_ik),      shift_gi = difficulty_gi - difficulty_1i of the draws,

less the same of responses drawn with equal slopes from the same random numbers, which is zero but for chance: most of
the chance in the draws is taken off with it.

Slopes are those within groups, so that an item that is harder for a group at any ability looks no steeper for that;
they are drawn to their mean by as much as their errors explain how they differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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


@dataclass(frozen=True, eq=False)
class _CommonSlopes:
    """Slopes that all groups have in common and the errors of these; intercepts of the thresholds on the scale of the
    first group; and how much abler than on its own scale each group is there."""

    slope: Floats
    slope_se: Floats
    intercepts: Floats
    apart: Floats


def slope_shifts(groups: GroupCalibrations, group: Ints, model: GroupModel, anchors: NDArray[np.bool_]) -> SlopeShifts:
    """The shifts of calibrated groups; `group` is that of each of their persons, and `model` what was calibrated."""
    layout, everyone = groups.layout, groups.everyone
    most = max(1, CELLS // everyone.n_items)
    people, models = [], []
    for g in range(len(groups.names)):
        members = everyone.take_persons(np.flatnonzero((group == g) & everyone.informative))
        some = members.sample(most, np.random.default_rng(g))[0].in_one_block()
        people.append(some)
        models.append(slope_model(some))
    common = _common_slopes(groups, models, people, anchors)
    nothing = np.zeros((len(groups.names), layout.n_items))
    try:
        drawn = np.array([_drawn_shifts(groups, model, people, models, common, draw) for draw in range(DRAWS)])
    except DesignError:  # no calibration of the draws, as of very few persons: nothing is explained by slopes
        return SlopeShifts(nothing, nothing)
    shift = drawn.mean(axis=0)
    # One error for all items of a group: that of a single item would be known from five draws only.
    noise = np.sqrt(drawn.var(axis=0, ddof=1).mean(axis=1, keepdims=True) / DRAWS)
    # A slope that is off by its error moves the shift by as much as slopes do here: the regression of shifts on slopes.
    steeper = common.slope - 1
    spread = float(steeper @ steeper)
    rate = shift @ steeper / spread if spread > 0 else np.zeros(len(shift))
    return SlopeShifts(shift, np.hypot(noise, np.abs(rate)[:, None] * common.slope_se)).centered_on(anchors)


def _common_slopes(
    groups: GroupCalibrations, models: list[SlopeModel], people: list[Responses], anchors: NDArray[np.bool_]
) -> _CommonSlopes:
    layout = groups.layout
    precision = np.array([1 / model.slope_se**2 for model in models])
    slope = (np.array([model.slope for model in models]) * precision).sum(axis=0) / precision.sum(axis=0)
    error = 1 / precision.sum(axis=0)
    differ = max(float(slope.var()) - float(error.mean()), 0.0)
    trust = differ / (differ + error)
    slope = 1 + trust * (slope - slope.mean())
    # a theta - t is the same response curve with theta + d and t + a d: d makes the anchors agree with the first group.
    # An intercept beside a category that next to nobody used may be anywhere, and counts by how many used both.
    own = np.array([model.intercepts for model in models])
    precision = np.array([_used_both(some) for some in people])
    a = slope[layout.item]
    shared = precision * precision[0] / (precision + precision[0]) * anchors[layout.item]
    apart = (shared * a * (own[0] - own)).sum(axis=1) / (shared * a * a).sum(axis=1)
    intercepts = (precision * (own + apart[:, None] * a)).sum(axis=0) / precision.sum(axis=0)
    return _CommonSlopes(slope, np.sqrt(trust * error), intercepts, apart)


def _used_both(people: Responses) -> Floats:
    """Of every threshold, about the precision of its intercept: the harmonic sum of the numbers of persons in the
    category above and in the one below it."""
    layout = people.thresholds
    if layout.binary:
        above, below = people.item_scores + 0.0, people.item_counts - people.item_scores + 0.0
    else:
        counts = np.nan_to_num(people.category_counts)
        above, below = counts[layout.item, layout.level], counts[layout.item, layout.level - 1]
    return np.asarray((above * below + 1e-6) / (above + below + 1e-3))


def _drawn_shifts(
    groups: GroupCalibrations,
    model: GroupModel,
    people: list[Responses],
    models: list[SlopeModel],
    common: _CommonSlopes,
    draw: int,
) -> Floats:
    """Difficulties in each group less those in the first, of one draw with the slopes less one with equal slopes."""
    layout = groups.layout
    equal = replace(common, slope=np.ones_like(common.slope))
    if model.shape is not None:
        # The distances of thresholds that are held in the groups: with others the shifts of equal slopes are not zero.
        origin = layout.mean(common.intercepts).mean() - layout.mean(model.shape).mean()
        equal = replace(equal, intercepts=model.shape + origin)
    location = np.zeros((2, len(people), layout.n_items))
    for which, slopes in enumerate((common, equal)):
        for g, (some, own) in enumerate(zip(people, models, strict=True)):
            seed = np.random.SeedSequence([0, 4, draw, g])
            fit = fit_group(_drawn(some, own, slopes, g, seed), model, groups.design, groups.names[g])
            location[which, g] = layout.mean(fit.thresholds)
    by_slopes, by_chance = location - location[:, :1]
    return np.asarray(by_slopes - by_chance)


def _drawn(
    people: Responses, model: SlopeModel, slopes: _CommonSlopes, group: int, seed: np.random.SeedSequence
) -> Responses:
    """Responses of these persons, several times each, under common slopes."""
    copies = int(np.clip(CELLS // (DRAWS * max(people.n_responses, 1)), 1, COPIES))
    place = np.tile(np.arange(people.n_persons), copies)
    blocks = people.engine.prepare(Block.take, people.blocks, each=[[place]]).parts
    several = replace(people, blocks=blocks, persons=np.arange(len(place)), people=None, raw=None)
    intercepts = slopes.intercepts - slopes.apart[group] * slopes.slope[people.thresholds.item]
    return redraw(several, intercepts, model.ability[place], model.ability_sd[place], seed, slope=slopes.slope)
