"""True-score equating: which raw score on one form stands for the same ability as a raw score on another.

The score s stands for the ability theta at which it is expected, sum_i p_i(theta) = s over the thresholds of the form;
there the other form expects e = sum_j p_j(theta), the equated score. With v = dp / dtheta, a change of the thresholds
moves theta by sum_i v_i dbeta_i / sum_i v_i, and de = (sum_j v_j) dtheta - sum_j v_j dbeta_j, from which the standard
errors follow by the delta method (Ogasawara 2001, Psychometrika 66, 373-383). By convention the lowest and the highest
score are equated to those of the other form (Kolen & Brennan 2014, ch. 6.5).

`study.equate` calls `equate_forms`, and `bank/equating.py` `equate_scores`, for forms of two calibrations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import OptionError
from spectral_irt.joint_errors import JointErrors
from spectral_irt.persons.test_form import Form
from spectral_irt.tables import Columns, Table, make_table

LONGEST = 2_000  # items of a form: beyond, errors of every score take too long


@dataclass(frozen=True, eq=False)
class OneWay:
    """Every score on one form: the ability that it stands for (infinite for the lowest and the highest), what it is on
    the other form, and how that moves with the difficulties of each form (scores x items, each in its own unit) and
    with an ability on the second form's scale."""

    ability: Floats
    equated: Floats
    by_first: Floats
    by_second: Floats
    by_ability: Floats


def equate_scores(first: Floats | Form, second: Floats | Form, shift: float = 0.0, slope: float = 1.0) -> OneWay:
    """Every score on the first form, equated to the second, whose abilities are shift + slope * those of the first.

    >>> equate_scores(np.zeros(4), np.zeros(8)).equated.round(6).tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    from_form, to_form = (form if isinstance(form, Form) else Form.of(form) for form in (first, second))
    for form in (from_form, to_form):
        if not 0 < len(form.thresholds) <= LONGEST:
            what = "items" if form.layout.binary else "thresholds"
            raise OptionError(
                f"a form to be equated has 1 to {LONGEST:,} {what}; this one has {len(form.thresholds):,}."
            )
    ability = from_form.abilities("ml")[0]
    finite_ability = np.where(np.isfinite(ability), ability, 0.0)
    _, v = from_form.passed(finite_ability)
    passed, w = to_form.passed(shift + slope * finite_ability)
    score = passed.sum(axis=1)
    score[0] = 0  # by convention
    score[-1] = to_form.max_score
    by_ability = w.sum(axis=1)
    by_first = slope * by_ability[:, None] * v / v.sum(axis=1)[:, None]
    return OneWay(ability, score, by_first, -w, by_ability)


@dataclass(frozen=True, eq=False)
class Equating:
    """Raw scores of two forms, each on the other; pairs of arrays, from the first form to the second and back.

    Every score, what it is on the other form, the standard error of that (NaN for the lowest and the highest, which are
    equated by convention, and where errors are not known), and the ability that it stands for, on the common scale.
    """

    names: tuple[str, str]
    scores: tuple[Ints, Ints]
    equated: tuple[Floats, Floats]
    se: tuple[Floats, Floats]
    ability: tuple[Floats, Floats]
    frame_kind: str | None = None

    def columns(self) -> Columns:
        """`from, to, score, equated, se, ability`: first from the first form to the second, then back."""
        a, b = self.names
        lengths = [len(scores) for scores in self.scores]
        return {
            "from": np.repeat(np.array([a, b], dtype=object), lengths),
            "to": np.repeat(np.array([b, a], dtype=object), lengths),
            "score": np.concatenate(self.scores),
            **{name: np.concatenate(getattr(self, name)) for name in ("equated", "se", "ability")},
        }

    def table(self) -> Table:
        """`columns` as a dataframe."""
        return make_table(self.columns(), self.frame_kind)


def equate_forms(
    difficulty: Floats,
    errors: JointErrors,
    first: Ints,
    second: Ints,
    names: tuple[str, str] = ("A", "B"),
    frame_kind: str | None = None,
    counts: tuple[Ints | None, Ints | None] = (None, None),
) -> Equating:
    """Two forms of one calibration, by the positions of their items, or of their thresholds (`counts` for each item of
    a form); they may share some."""
    first_form, second_form = (
        Form.of(difficulty[place], count) for place, count in zip((first, second), counts, strict=True)
    )
    forward = equate_scores(first_form, second_form)
    back = equate_scores(second_form, first_form)
    variance = errors.of_each(_gradient(forward, first, second, len(difficulty)))
    variance_back = errors.of_each(_gradient(back, second, first, len(difficulty)))
    return both_ways((forward, back), (variance, variance_back), names, (forward.ability, back.ability), frame_kind)


def _gradient(way: OneWay, first: Ints, second: Ints, n_thresholds: int) -> Floats:
    """How equated scores move with each threshold of the calibration, which may be on both forms."""
    gradient = np.zeros((len(way.equated), n_thresholds))
    gradient[:, first] += way.by_first
    gradient[:, second] += way.by_second
    return gradient


Pair = tuple[Floats, Floats]  # from the first form to the second, and back


def both_ways(
    ways: tuple[OneWay, OneWay], variances: Pair, names: tuple[str, str], ability: Pair, frame_kind: str | None = None
) -> Equating:
    """The two directions together, with standard errors where the score is not at an end and an error is known."""
    scores = []
    errors = []
    for way, variance in zip(ways, variances, strict=True):
        se = np.sqrt(np.maximum(variance, 0))
        se[[0, -1]] = np.nan
        se[se == 0] = np.nan
        errors.append(se)
        scores.append(np.arange(len(way.equated)))
    return Equating(
        names=names,
        scores=(scores[0], scores[1]),
        equated=(ways[0].equated, ways[1].equated),
        se=(errors[0], errors[1]),
        ability=ability,
        frame_kind=frame_kind,
    )
