"""Every two models compared on the prompts they share: difference in ability, and exact McNemar beside it.

`Leaderboard` asks for the contrasts (`compare_pairs`), their table (`contrast_columns`) and the tiers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtr, ndtri

from spectral_irt.calibration import Calibration
from spectral_irt.chain.paper import pair_counts
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Mask
from spectral_irt.inference.ranks.intervals import OrderTests
from spectral_irt.inference.results import adjust_p, mcnemar
from spectral_irt.tables import Columns

LEVEL = 0.05
POWER = 0.8416  # standard normal quantile of 80%: the chance with which a difference is to be found
FULL = 0.05  # share of cells with an answer from which dense products are faster than sparse ones
ROWS = 4_000  # prompts multiplied at a time
ALL = 450  # models up to which every pair is listed (100,000 rows); beyond, neighbors and the first against all


@dataclass(frozen=True, eq=False)
class Contrasts:
    """All pairs of models: differences in ability, row minus column, with p adjusted for all pairs; wins."""

    se: Floats
    z: Floats
    p: Floats
    wins: Floats  # prompts that the row has right and the column wrong
    p_mcnemar: Floats  # exact, adjusted by Holm

    @property
    def sure(self) -> NDArray[np.bool_]:
        """Row surely above column."""
        return np.asarray((self.p < LEVEL) & (self.z > 0))

    @property
    def sure_mcnemar(self) -> NDArray[np.bool_]:
        """Row surely more often right than column, by McNemar and Holm."""
        return np.asarray((self.p_mcnemar < LEVEL) & (self.wins > self.wins.T))

    def disagreements(self) -> Disagreements:
        """Pairs that one of the two tells apart and the other does not."""
        by_ability = self.sure | self.sure.T
        by_mcnemar = self.sure_mcnemar | self.sure_mcnemar.T
        return Disagreements(
            ability_alone=int((by_ability & ~by_mcnemar).sum()) // 2,
            mcnemar_alone=int((by_mcnemar & ~by_ability).sum()) // 2,
            opposite=int((self.sure & self.sure_mcnemar.T).sum()),
        )


class Disagreements(NamedTuple):
    """Pairs told apart by ability alone, by McNemar alone, and by both in opposite directions."""

    ability_alone: int
    mcnemar_alone: int
    opposite: int


def compare_pairs(tests: OrderTests, has_estimate: Mask, by_prompt: Responses) -> Contrasts:
    """Contrasts from the differences in ability and the answers (prompts as people, models as items)."""
    se = np.where(np.isinf(tests.se), 0.0, tests.se)  # of a model and itself, or a copy
    se[~has_estimate] = np.nan
    se[:, ~has_estimate] = np.nan
    wins = differing(by_prompt)
    first, second = np.triu_indices(len(wins), 1)
    by_mcnemar = np.ones_like(wins)
    by_mcnemar[first, second] = adjust_p(mcnemar(wins[first, second], wins[second, first]), "holm")
    by_mcnemar[second, first] = by_mcnemar[first, second]
    return Contrasts(se, tests.z, tests.p, wins, by_mcnemar)


def differing(by_prompt: Responses) -> Floats:
    """For every two models, prompts that the row has right and the column wrong: McNemar's counts of all pairs."""
    m = by_prompt.n_items
    if by_prompt.n_responses < FULL * m * by_prompt.n_persons:
        return np.asarray(pair_counts(by_prompt, dense=True), dtype=float)
    answered = by_prompt.gather(dense_block, m)  # prompts x models, a byte each
    is_complete = by_prompt.n_responses == answered.size
    total = np.zeros((m, m))
    for start in range(0, len(answered), ROWS):
        strip = answered[start : start + ROWS]
        right = (strip == 1).astype(np.float32)
        if is_complete:  # wrong is whatever is not right, and a symmetric product is half the work
            total += right.sum(axis=0)[:, None] - right.T @ right
        else:
            total += right.T @ (strip == 0).astype(np.float32)
    return total


def dense_block(block: Block, m: int) -> NDArray[np.int8]:
    """1 for right, 0 for wrong, -1 for no answer."""
    out = np.full((block.n_persons, m), -1, dtype=np.int8)
    out[block.person_of_response(), np.asarray(block.items)] = block.right()
    return out


def listed_pairs(m: int) -> tuple[Ints, Ints]:
    """Pairs of places in the ranking that are listed: all, or of many models neighbors and the first against all."""
    if m <= ALL:
        return np.triu_indices(m, 1)
    first = np.concatenate([np.zeros(m - 1, dtype=int), np.arange(1, m - 1)])
    return first, np.concatenate([np.arange(1, m), np.arange(2, m)])


def shared_prompts(answers: Responses, prompt: Ints, a: Ints, b: Ints) -> Ints:
    """Of pairs of models, how many prompts both answered; runs of a prompt (`prompt` of each item) are one."""
    m = answers.n_persons
    if answers.n_responses == m * len(prompt):  # every model answered every prompt
        return np.full(len(a), len(np.unique(prompt)))
    model, item, _ = answers.answers()
    ones = np.ones(len(item), dtype=np.int64)
    seen = sparse.csc_array((ones, (prompt[item], model)), shape=(int(prompt.max()) + 1, m)).minimum(1)
    if m <= ALL:
        return np.asarray((seen.T @ seen).toarray()[a, b])
    return np.asarray(seen[:, a].multiply(seen[:, b]).sum(axis=0)).ravel()


def contrast_columns(contrasts: Contrasts, order: Ints, answers: Responses, prompt: Ints, ability: Floats) -> Columns:
    """The pairs as a table, better model first."""
    m = len(order)
    first, second = listed_pairs(m)
    a = order[first]
    b = order[second]
    z = contrasts.z[a, b]
    won = contrasts.wins[a, b]
    lost = contrasts.wins[b, a]
    n_prompts = shared_prompts(answers, prompt, a, b)
    critical = float(-ndtri(LEVEL / 2 / (m * (m - 1) / 2)))
    needed = prompts_needed(z, critical, n_prompts)
    more = np.where(np.isfinite(needed), np.maximum(needed - n_prompts, 0), np.nan)  # none shows that equals differ
    return {
        "model": answers.persons[a],
        "other": answers.persons[b],
        "difference": ability[a] - ability[b],
        "se": contrasts.se[a, b],
        "z": z,
        "p": 2 * ndtr(-np.abs(z)),
        "p_adjusted": contrasts.p[a, b],
        "model_only": won.astype(np.int64),
        "other_only": lost.astype(np.int64),
        "mcnemar_p": mcnemar(won, lost),
        "mcnemar_p_holm": contrasts.p_mcnemar[a, b],
        "more_prompts": more,
    }


def prompts_needed(z: Floats, critical: float, n_prompts: int | Ints) -> Floats:
    """Prompts like these with which a difference of this size would be found with a chance of 80%.

    |z| grows with the square root of the number of prompts, and has to pass the critical value by 0.84.

    >>> prompts_needed(np.array([3.8416]), 3.0, 500).tolist()
    [500.0]
    """
    with np.errstate(divide="ignore"):
        return np.ceil(n_prompts * ((critical + POWER) / np.abs(z)) ** 2 - 1e-6)


def tiers(order: Ints, sure: NDArray[np.bool_]) -> Ints:
    """The tier of each model: down the ranking, a new one begins with a model surely below the first of the current.

    >>> tiers(np.array([2, 0, 1]), np.array([[0, 0, 0], [0, 0, 0], [0, 1, 0]], dtype=bool)).tolist()
    [1, 2, 1]
    """
    out = np.ones(len(order), dtype=np.int64)
    leader = order[0]
    tier = 1
    for model in order[1:]:
        if sure[leader, model]:
            leader = model
            tier += 1
        out[model] = tier
    return out


Marks = NDArray[np.uint64]


def answer_marks(block: Block, n_prompts: int) -> tuple[Marks, Marks]:
    """Of each model a number that tells which prompts it answered, and one that tells which it has right: the sum of a
    random number for each prompt, equal for equal sets, and for others only with a chance of 2^-64."""
    of_prompt = np.random.default_rng(0).integers(0, 2**64, n_prompts, dtype=np.uint64)[np.asarray(block.items)]

    def sums(values: Marks) -> Marks:
        total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(values, dtype=np.uint64)])
        return total[block.indptr[1:]] - total[block.indptr[:-1]]

    return sums(of_prompt), sums(of_prompt * block.right().astype(np.uint64))


def numbered(*keys: NDArray[np.generic]) -> Ints:
    """The same number for those whose keys are all equal."""
    rows = np.stack([key.astype(np.uint64) for key in keys], axis=1)
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def made_equal(calibration: Calibration, same_score: Ints, same_answers: Ints) -> Calibration:
    """The difficulties of the same score replaced by their mean; so the errors of those with the same answers."""
    return replace(
        calibration,
        thresholds=_means(calibration.thresholds, same_score),
        threshold_se=_means(calibration.threshold_se, same_answers),
    )


def _means(values: Floats, group: Ints) -> Floats:
    counts = np.bincount(group)
    with np.errstate(invalid="ignore"):
        means = np.bincount(group, values) / counts
    return np.where(counts[group] > 1, means[group], values)
