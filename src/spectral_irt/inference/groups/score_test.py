"""Rao's score test of the model between the less and the more able: are items as hard for both?

No half is calibrated on its own. Given the items answered and the score, answers depend on the difficulties alone, so
people may be divided by these. With g_h the sum of 1{x >= k} - P(X >= k | score) over the people of half h, at the
common thresholds, and I_h the information, that is the sum of the conditional covariances,

    u = g_1 - I_1 (I_1 + I_2)^+ (g_1 + g_2),      W = I_1 - I_1 (I_1 + I_2)^+ I_1,      T = u' W^+ u ~ chi-square

under the model (Glas & Verhelst 1995). The second term makes up for thresholds that are not quite the maximum of the
conditional likelihood. On a rating scale, where thresholds are A eta, g becomes A'g and I becomes A'I A. Where few
people of one half met an item, as in vertical designs, Wald's errors are underestimated; here nothing may fail.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt import inference
from spectral_irt.calibration import Calibration
from spectral_irt.conditional.exact_likelihood import ExactLikelihood, information_at
from spectral_irt.conditional.newton import Likelihood
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.engine import one_blas_thread
from spectral_irt.errors import DesignError
from spectral_irt.inference.groups.grouping import by_ability
from spectral_irt.inference.results import EACH, Result, adjusted, chi2_tail, two_sided
from spectral_irt.text import listed, p_value

LEAST = 5.0  # information on a parameter in either half, like the expected count in a cell of a chi-square test
NOTABLE = 0.3  # logits between the halves: below, the finding is a note; of halves 1.6 apart, slopes that differ by 0.2
DIGITS = 1e-9  # eigenvalues below this share of the largest are zero


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RaoTest(Result):
    """What `ability_split` found; `table()` has `item, z, p, p_holm, p_bh`.

    `z` is above 0 if the less able do better on the item than its thresholds say; `sizes` are the people without an
    extreme score in the less and in the more able half; `spread` is the root mean square over the items of the
    difference between the halves, in logits, the errors taken off.
    """

    name = "Score test, less able against more able half"
    z: Floats
    sizes: Ints
    spread: float


@one_blas_thread()  # the matrices are small
def ability_split(calibration: Calibration, responses: Responses) -> RaoTest:
    """Rao's score test between the less and the more able half, for up to some hundreds of items.

    References
    ----------
    Glas & Verhelst (1995), in Fischer & Molenaar, Rasch Models, ch. 5; Rao (1948).
    """
    known = np.flatnonzero(calibration.measured)
    few = DesignError(
        f"{responses.source}: in one half of the people no two items have enough answers to compare the halves."
    )
    if len(known) < 2:
        raise few
    answers, beta = responses.take_items(known), calibration.thresholds[responses.thresholds.of_items(known)]
    layout = answers.thresholds
    design = None if layout.binary else inference.model_like(calibration).design(answers)
    split = by_ability(answers, beta)
    halves = answers.take_persons(split.group == 0), answers.take_persons(split.group == 1)
    sizes = np.array([np.sum(halves[0].informative), np.sum(halves[1].informative)])
    if not sizes.all():
        raise few
    found = list(map(ExactLikelihood, halves))
    exact = found[0].exact_is_affordable() and found[1].exact_is_affordable()
    score, information = [], []
    for half, exact_likelihood in zip(halves, found, strict=True):
        likelihood = exact_likelihood if exact else Likelihood(half, beta)
        g = -likelihood.at(beta).gradient
        i = information_at(likelihood, beta).matrix
        score.append(g if design is None else design.T @ g)  # observed less expected
        information.append(i if design is None else design.T @ i @ design)
    part = information[0] @ np.linalg.pinv(information[0] + information[1], rcond=DIGITS, hermitian=True)
    u, w = score[0] - part @ (score[0] + score[1]), information[0] - part @ information[0]
    # A parameter that one half says next to nothing about is not compared.
    kept = np.minimum(np.diag(information[0]), np.diag(information[1])) >= LEAST
    total = (np.arange(layout.n_items)[:, None] == layout.item).astype(float)  # items x parameters: all its thresholds
    if design is not None:
        total = np.eye(layout.n_items, design.shape[1])  # the first columns of a rating scale are the locations
    enough = (total[:, kept] != 0).any(axis=1)
    if kept.sum() < 2 or enough.sum() < 2:
        raise few
    values, vectors = np.linalg.eigh((w[np.ix_(kept, kept)] + w[np.ix_(kept, kept)].T) / 2)
    real = values > DIGITS * values[-1]
    statistic, df = float(((vectors[:, real].T @ u[kept]) ** 2 / values[real]).sum()), int(real.sum())
    p, total = float(chi2_tail(statistic, df)), total[enough]
    with np.errstate(divide="ignore", invalid="ignore"):
        told = np.einsum("ij,ij->i", total @ w, total)
        z = (total @ u) / np.sqrt(told)
    spread = float(np.sqrt(max(float(np.mean((z**2 - 1)[told > 0] / told[told > 0])), 0.0)))
    item_p, labels = two_sided(z), answers.items[enough]
    return RaoTest(
        statistic=statistic,
        df=df,
        p=p,
        compared=f"{sizes[0]:,} | {sizes[1]:,} people",
        columns={
            "item": labels,
            "z": z,
            "p": item_p,
            "p_holm": adjusted(item_p, "holm"),
            "p_bh": adjusted(item_p, "bh"),
        },
        frame_kind=responses.frame_kind,
        findings=_unequal_halves(p, z, labels, spread) if p < EACH else (),
        z=z,
        sizes=sizes,
        spread=spread,
    )


def _unequal_halves(p: float, z: Floats, labels: Floats, spread: float) -> tuple[Finding, ...]:
    order = np.argsort(-np.abs(z), kind="stable")
    certain = order[adjusted(two_sided(z), "holm")[order] < EACH]
    most = f", above all {listed(labels[certain])}" if len(certain) else ""
    sentence = (
        f"Item difficulties differ between low and high scorers by about {spread:.2f} logits ({p_value(p)}){most}."
    )
    remedy = "Difficulties then depend on who is asked: be careful when forms or groups of unlike ability are compared."
    items = tuple(labels[np.sort(certain)].tolist())
    return (Finding("unequal_halves", "warning" if spread >= NOTABLE else "note", sentence, remedy, items),)
