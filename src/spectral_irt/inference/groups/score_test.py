"""Rao's score test of the model between the less and the more able: are items as hard for both?

No half is calibrated on its own. Given the items answered and the score, answers depend on the difficulties alone, so
people may be divided by these. With g_h the sum of 1{x >= k} - P(X >= k | score) over the people of half h, at the
common thresholds, and I_h the information, that is the sum of the conditional covariances,

    u = g_1 - I_1 (I_1 + I_2)^+ (g_1 + g_2),      W = I_1 - I_1 (I_1 + I_2)^+ I_1,      T = u' W^+ u ~ chi-square

under the model (Glas & Verhelst 1995). The second term makes up for thresholds that are not quite the maximum of the
conditional likelihood. Where persons have weights w_l or clusters, g and I count by weight, T is judged as in
`model_tests.rao_scott`, and u has the covariance S = f sum_c u_c u_c', with u_c of the persons of a cluster, in the
place of W for single items. On a rating scale, where thresholds are A eta, g becomes A'g and I becomes A'I A. Where few
people of one half met an item, as in vertical designs, Wald's errors are underestimated; here nothing may fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from spectral_irt import inference
from spectral_irt.calibration import Calibration
from spectral_irt.conditional.exact_likelihood import ExactLikelihood, information_at
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.engine import one_blas_thread
from spectral_irt.errors import DesignError
from spectral_irt.inference.groups.grouping import by_ability
from spectral_irt.inference.groups.model_tests import JointTest, rao_scott
from spectral_irt.inference.groups.sampling import SIMPLE, Sampling, cluster_scores, degrees_of_freedom
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
def ability_split(calibration: Calibration, responses: Responses, sampling: Sampling = SIMPLE) -> RaoTest:
    """Rao's score test between the less and the more able half, for up to some hundreds of items; `sampling` has
    weights and clusters of the persons.

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
    members = [split.group == half for half in (0, 1)]
    halves = [answers.take_persons(each) for each in members]
    sizes = np.array([np.sum(halves[0].informative), np.sum(halves[1].informative)])
    if not sizes.all():
        raise few
    samplings = [sampling.take(each) for each in members]
    score, information = _scores_and_information(halves, samplings, beta, design)
    part = information[0] @ np.linalg.pinv(information[0] + information[1], rcond=DIGITS, hermitian=True)
    u, w = score[0] - part @ (score[0] + score[1]), information[0] - part @ information[0]
    spread_of_u, freedom = w, np.inf
    if not sampling.simple:
        spread_of_u, freedom = _sandwich(halves, samplings, beta, design, part)
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
    statistic = float(((vectors[:, real].T @ u[kept]) ** 2 / values[real]).sum())
    test = JointTest(statistic, int(real.sum()), np.inf, float(chi2_tail(statistic, int(real.sum()))))
    if not sampling.simple:
        inverse = (vectors[:, real] / values[real]) @ vectors[:, real].T
        test = rao_scott(statistic, inverse @ spread_of_u[np.ix_(kept, kept)], freedom)
    total = total[enough]
    with np.errstate(divide="ignore", invalid="ignore"):
        told = np.einsum("ij,ij->i", total @ w, total)
        varies = np.einsum("ij,ij->i", total @ spread_of_u, total)
        z = (total @ u) / np.sqrt(varies)
    # The difference between the halves is u / w, of which varies / w^2 is chance.
    apart = (z**2 - 1)[told > 0] * varies[told > 0] / told[told > 0] ** 2
    spread = float(np.sqrt(max(float(np.mean(apart)), 0.0)))
    item_p, labels = two_sided(z, freedom), answers.items[enough]
    return RaoTest(
        statistic=test.statistic,
        df=test.df,
        df2=test.df2,
        p=test.p,
        compared=f"{sizes[0]:,} | {sizes[1]:,} people",
        columns={
            "item": labels,
            "z": z,
            "p": item_p,
            "p_holm": adjusted(item_p, "holm"),
            "p_bh": adjusted(item_p, "bh"),
        },
        frame_kind=responses.frame_kind,
        findings=_unequal_halves(test.p, z, item_p, labels, spread) if test.p < EACH else (),
        z=z,
        sizes=sizes,
        spread=spread,
    )


def _scores_and_information(
    halves: Sequence[Responses], samplings: Sequence[Sampling], beta: Floats, design: Floats | None
) -> tuple[list[Floats], list[Floats]]:
    """g and I of each half; those of A eta = beta, where there is a design A."""
    likelihoods: list[Likelihood] = []
    for half, sampling in zip(halves, samplings, strict=True):
        likelihoods.append(ExactLikelihood(half, weights=sampling.weights))
    if not all(one.exact_is_affordable() for one in likelihoods if isinstance(one, ExactLikelihood)):
        likelihoods = [Likelihood(half, beta, weights=own.weights) for half, own in zip(halves, samplings, strict=True)]
    scores, informations = [], []
    for likelihood in likelihoods:
        g = -likelihood.at(beta).gradient  # observed less expected
        i = information_at(likelihood, beta).matrix
        scores.append(g if design is None else design.T @ g)
        informations.append(i if design is None else design.T @ i @ design)
    return scores, informations


def _sandwich(
    halves: Sequence[Responses], samplings: Sequence[Sampling], beta: Floats, design: Floats | None, part: Floats
) -> tuple[Floats, float]:
    """S of the module's head, and its degrees of freedom."""
    sizes = [half.n_persons for half in halves]
    cluster = samplings[0].cluster
    own = [one.clusters(n) for one, n in zip(samplings, sizes, strict=True)]
    if cluster is None:
        own[1] = own[1] + sizes[0]
    n = 1 + max(int(number.max(initial=0)) for number in own)
    each = []
    for half, one, number in zip(halves, samplings, own, strict=True):
        scores = cluster_scores(half, beta, Sampling(one.weights, number), n)
        each.append(scores if design is None else sparse.csr_array(scores @ sparse.csr_array(design)))
    first, both = each[0], each[0] + each[1]
    cross = (first.T @ both).toarray() @ part.T  # of u_c = first - part both
    squares = (first.T @ first).toarray() - cross - cross.T + part @ (both.T @ both).toarray() @ part.T
    if cluster is None:
        return squares, np.inf
    told = np.concatenate([half.informative for half in halves])
    counts = [half.counts * one.counts(half.n_persons) for half, one in zip(halves, samplings, strict=True)]
    numbers = np.concatenate(own)[told]
    occupied = len(np.unique(numbers))
    return occupied / max(occupied - 1, 1) * squares, degrees_of_freedom(numbers, np.concatenate(counts)[told])


def size_in_words(spread: float, about: str = "") -> str:
    """How far the halves are apart; a significant difference of all items together may be within the error of each.

    >>> size_in_words(0.174, "about "), size_in_words(0.0)
    ('by about 0.17 logits', 'by no more than the error of each')
    """
    apart = f"{spread:.2f}"
    return "by no more than the error of each" if float(apart) == 0 else f"by {about}{apart} logits"


def _unequal_halves(p: float, z: Floats, item_p: Floats, labels: Floats, spread: float) -> tuple[Finding, ...]:
    order = np.argsort(-np.abs(z), kind="stable")
    certain = order[adjusted(item_p, "holm")[order] < EACH]
    most = f", above all {listed(labels[certain])}" if len(certain) else ""
    apart = size_in_words(spread, "about ")
    sentence = f"Item difficulties differ between low and high scorers {apart} ({p_value(p)}){most}."
    remedy = (
        "The items are not invariant between the two: be careful when forms or groups of unlike means are compared."
    )
    items = tuple(labels[np.sort(certain)].tolist())
    return (Finding("unequal_halves", "warning" if spread >= NOTABLE else "note", sentence, remedy, items),)
