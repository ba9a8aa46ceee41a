"""Tests of the model for ordered answers: Wald's and Andersen's between groups, Rao's between halves of ability.

The same questions as for right and wrong answers (`wald.py`, `andersen.py`, `rao.py`), asked of thresholds: a group of
people has thresholds of its own, and under the model they differ from those of another group by chance only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.conditional.ordered_likelihood import OrderedLikelihood
from spectral_irt.data.block import Floats
from spectral_irt.data.responses import Responses
from spectral_irt.engine.threads import one_blas_thread
from spectral_irt.errors import DesignError
from spectral_irt.estimators.conditional_ordered import conditional_thresholds
from spectral_irt.estimators.ordered_base import as_ordered
from spectral_irt.inference.groups.andersen import AndersenTest
from spectral_irt.inference.groups.grouping import divide
from spectral_irt.inference.groups.ordered_groups import (
    StepGroups,
    Tied,
    calibrate_step_groups,
    design_matrix,
    tied_like,
)
from spectral_irt.inference.groups.score_test import DIGITS, LEAST, RaoTest, unequal_halves
from spectral_irt.inference.groups.wald import WaldTest, weighted_spread
from spectral_irt.inference.probability import benjamini_hochberg, chi2_tail, holm, two_sided
from spectral_irt.inference.results import EACH
from spectral_irt.tables import Columns, make_table


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class StepWaldTest(WaldTest):
    """What `ordered_score_split` found.

    `table()` has a row for each item: `item, contrast, se, z` of its location (two groups), `statistic, df` of all its
    thresholds, then `p, p_holm, p_bh` of these. `threshold_table()`: `item, category, contrast, se, z, p` (two groups)
    or `item, category, statistic, p`.
    """

    of_steps: Columns

    def threshold_table(self) -> Any:
        """The thresholds one by one."""
        return make_table(self.of_steps, self.frame_kind)


def ordered_score_split(calibration: Calibration, responses: Responses, split: Any = "ability") -> StepWaldTest:
    """Do thresholds lie alike for people of high and of low score? Wald's test, of all at once and one by one.

    Parameters
    ----------
    calibration, responses
        The responses in the order of the calibration's items.
    split : "ability", "median", "mean", "scores", or labels
        See `divide`.
    """
    answers, thresholds = measured_part(calibration, responses)
    groups = divide(answers, split, difficulty=thresholds)
    return compare_step_groups(calibrate_step_groups(answers, groups, tied_like(calibration)))


def measured_part(calibration: Calibration, responses: Responses) -> tuple[Responses, Floats]:
    """The answers to items that were properly estimated, and the thresholds of these."""
    chosen = calibration.measured
    place = responses.thresholds.of_items(np.flatnonzero(chosen))
    return responses if chosen.all() else responses.take_items(chosen), calibration.thresholds[place]


def compare_step_groups(groups: StepGroups) -> StepWaldTest:
    """Wald's statistic of all thresholds, of those of each item, and of each."""
    steps, where, n_groups = groups.steps, groups.locations(), len(groups.names)
    if groups.tied:  # the steps are common to all items, which differ by their locations alone
        each = np.full(steps.n_items, n_groups - 1)
        item_statistic = weighted_spread(where.difficulty, where.se**2)
    else:
        each = (n_groups - 1) * steps.max_score
        mine = [np.arange(first, first + count) for first, count in zip(steps.first, steps.max_score, strict=True)]
        item_statistic = np.array([_spread(groups, chosen) for chosen in mine])
    item_p = chi2_tail(item_statistic, each)
    statistic = _spread(groups, np.arange(steps.n_entries))
    df = (n_groups - 1) * groups.n_parameters
    variance = np.array([np.diag(c) for c in groups.covariances])
    columns: Columns = {"item": where.items}
    by_step: Columns = {"item": where.items[steps.item], "category": steps.level}
    z = np.full(steps.n_items, np.nan)
    if n_groups == 2:
        contrast, se = where.difficulty[1] - where.difficulty[0], np.hypot(where.se[0], where.se[1])
        z = contrast / se
        columns |= {"contrast": contrast, "se": se, "z": z}
        apart, error = groups.thresholds[1] - groups.thresholds[0], np.sqrt(variance.sum(axis=0))
        by_step |= {"contrast": apart, "se": error, "z": apart / error, "p": two_sided(apart / error)}
    else:
        spread = np.array([_spread(groups, np.array([k])) for k in range(steps.n_entries)])
        by_step |= {"statistic": spread, "p": chi2_tail(spread, n_groups - 1)}
    columns |= {"statistic": item_statistic, "df": each, "p": item_p}
    return StepWaldTest(
        statistic=statistic,
        df=df,
        p=float(chi2_tail(statistic, df)),
        compared=str(where),
        columns={**columns, "p_holm": holm(item_p), "p_bh": benjamini_hochberg(item_p)},
        frame_kind=groups.everyone.frame_kind,
        findings=where.findings,
        z=z,
        item_statistic=item_statistic,
        item_df=int(each.max(initial=0)),
        item_p=item_p,
        groups=where,
        of_steps=by_step,
    )


def _spread(groups: StepGroups, chosen: Any) -> float:
    """sum_g (b_g - b)' V_g^+ (b_g - b) at the b that makes it smallest, for some thresholds."""
    part = np.ix_(chosen, chosen)
    weights = [np.linalg.pinv(c[part], rcond=DIGITS, hermitian=True) for c in groups.covariances]
    values = groups.thresholds[:, chosen]
    total = sum(w @ b for w, b in zip(weights, values, strict=True))
    middle = np.linalg.pinv(np.sum(weights, axis=0), rcond=DIGITS, hermitian=True) @ total
    return float(sum((b - middle) @ w @ (b - middle) for w, b in zip(weights, values, strict=True)))


def ordered_andersen(data: Any, split: Any = "median", *, model: str = "pcm", item_groups: Any = None) -> AndersenTest:
    """Andersen's likelihood ratio test for ordered answers; see `andersen`, which calls it for them.

    LR = 2 (sum of the groups' conditional log-likelihoods - that of all) ~ chi-square with (groups - 1) times the
    number of free parameters: thresholds less one (pcm), or items less one and the common steps (rsm).
    """
    responses = as_ordered(data, "collapse" if model == "pcm" else "keep")
    tied = None if model == "pcm" else Tied.of(item_groups, responses.items)
    thresholds = None
    if isinstance(split, str) and split == "ability":
        thresholds = conditional_thresholds(responses, _tying(responses, tied)).thresholds
    groups = calibrate_step_groups(responses, divide(responses, split, difficulty=thresholds), tied)
    rest = groups.everyone
    common = conditional_thresholds(rest, _tying(rest, tied), se="none")
    statistic = 2 * (sum(groups.loglik) - common.loglik)
    df = (len(groups.names) - 1) * groups.n_parameters
    steps, where = groups.steps, groups.locations()
    errors = np.sqrt([np.diag(c) for c in groups.covariances])
    return AndersenTest(
        statistic=statistic,
        df=df,
        p=float(chi2_tail(max(statistic, 0.0), df)),
        compared=str(where),
        columns={
            "group": np.repeat(np.array(groups.names, dtype=object), steps.n_entries),
            "item": np.tile(rest.items[steps.item], len(groups.names)),
            "category": np.tile(steps.level, len(groups.names)),
            "threshold": groups.thresholds.ravel(),
            "se": errors.ravel(),
        },
        frame_kind=responses.frame_kind,
        findings=where.findings,
        loglik=common.loglik,
        groups=where,
    )


def _tying(responses: Responses, tied: Tied | None) -> Floats | None:
    return None if tied is None else design_matrix(responses, tied)


# --------------------------------------------------------------------------- less against more able half


@one_blas_thread()  # the matrices are small
def ordered_halves(calibration: Calibration, responses: Responses, *, level: float = EACH) -> RaoTest:
    """Rao's score test between the less and the more able half; see `rao.py`. Nothing is estimated in the halves.

    The joint statistic is about all thresholds; `z` of an item about its total: above 0 if the less able half has
    higher answers than the thresholds say.
    """
    answers, thresholds = measured_part(calibration, responses)
    few = DesignError(
        f"{responses.source}: in one half of the people no two items have enough answers to compare the halves."
    )
    if answers.n_items < 2:
        raise few
    steps = answers.thresholds
    split = divide(answers, "ability", difficulty=thresholds)
    matrix = design_matrix(answers, tied_like(calibration))
    halves = [answers.take_persons(split.members(k)) for k in (0, 1)]
    sizes = np.array([int(half.mixed.sum()) for half in halves])
    if not sizes.all():
        raise few
    found = [OrderedLikelihood(half) for half in halves]
    exact = all(one.exact_is_affordable() for one in found)
    score = [one.at(thresholds).gradient for one in found]
    information = [one.information(thresholds, exact=exact) for one in found]
    gradient = [-matrix.T @ g for g in score]  # observed less expected
    both = [matrix.T @ i @ matrix for i in information]
    part = both[0] @ np.linalg.pinv(both[0] + both[1], rcond=DIGITS, hermitian=True)
    u, w = gradient[0] - part @ (gradient[0] + gradient[1]), both[0] - part @ both[0]
    # A parameter that one half says next to nothing about is not compared.
    kept = np.flatnonzero(np.minimum(np.diag(both[0]), np.diag(both[1])) >= LEAST)
    total = _totals(steps, matrix)
    enough = np.array([np.isin(np.flatnonzero(row), kept).any() for row in total])
    if len(kept) < 2 or enough.sum() < 2:
        raise few
    values, vectors = np.linalg.eigh((w[np.ix_(kept, kept)] + w[np.ix_(kept, kept)].T) / 2)
    real = values > DIGITS * values[-1]
    statistic = float(((vectors[:, real].T @ u[kept]) ** 2 / values[real]).sum())
    p = float(chi2_tail(statistic, int(real.sum())))
    total = total[enough]
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (total @ u) / np.sqrt(np.einsum("ij,jk,ik->i", total, w, total))
    item_p, labels = two_sided(z), answers.items[enough]
    return RaoTest(
        statistic=statistic,
        df=int(real.sum()),
        p=p,
        compared=f"{sizes[0]:,} | {sizes[1]:,} people",
        columns={"item": labels, "z": z, "p": item_p, "p_holm": holm(item_p), "p_bh": benjamini_hochberg(item_p)},
        frame_kind=responses.frame_kind,
        findings=unequal_halves(p, z, labels) if p < level else (),
        z=z,
        sizes=sizes,
    )


def _totals(steps: Any, matrix: Floats) -> Floats:
    """Items x parameters: what moves all thresholds of an item, in terms of the parameters."""
    if matrix.shape[0] == matrix.shape[1]:
        out = np.zeros((steps.n_items, steps.n_entries))
        out[steps.item, np.arange(steps.n_entries)] = 1.0
        return out
    return np.eye(steps.n_items, matrix.shape[1])  # the first columns of a rating scale are the locations
