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

`study.quick_model_test` calls `ability_split`, and by it `study.checks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.calibration import Calibration
from spectral_irt.conditional.exact_likelihood import ExactLikelihood, information_at
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.engine import one_blas_thread
from spectral_irt.errors import DesignError
from spectral_irt.inference.groups.calibrations import RANK_DIGITS, model_like
from spectral_irt.inference.groups.grouping import by_ability
from spectral_irt.inference.groups.model_tests import JointTest, rao_scott
from spectral_irt.inference.groups.sampling import (
    SIMPLE,
    SampledPersons,
    Sampling,
    cluster_factor,
    cluster_scores,
    joint_degrees_of_freedom,
)
from spectral_irt.inference.results import EACH, Result, adjust_p, chi2_tail, p_columns, two_sided
from spectral_irt.text import listed, p_value

LEAST_INFORMATION = (
    5.0  # information on a parameter in either half, like the expected count in a cell of a chi-square test
)
NOTABLE = 0.3  # logits between the halves: below, the finding is a note; of halves 1.6 apart, slopes that differ by 0.2


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
    few = DesignError(
        f"{responses.source}: in one half of the people no two items have enough answers to compare the halves."
    )
    measured = np.flatnonzero(calibration.measured)
    if len(measured) < 2:
        raise few
    answers = responses.take_items(measured)
    beta = calibration.thresholds[responses.thresholds.of_items(measured)]
    layout = answers.thresholds
    design = None if layout.binary else model_like(calibration).design(answers)
    split = by_ability(answers, beta)
    persons = SampledPersons(answers, sampling)
    halves = [persons.take(split.group == half) for half in (0, 1)]
    sizes = np.array([np.sum(half.responses.informative) for half in halves])
    if not sizes.all():
        raise few
    comparison = _compare(halves, beta, design)
    compared = np.minimum(*(np.diag(information) for information in comparison.informations)) >= LEAST_INFORMATION
    of_item = _parameters_of_items(layout, design)
    enough = (of_item[:, compared] != 0).any(axis=1)
    if compared.sum() < 2 or enough.sum() < 2:
        raise few
    joint = _joint_test(comparison, compared, simple=sampling.simple)
    items = _item_differences(comparison, of_item[enough])
    item_p = two_sided(items.z, comparison.df)
    labels = answers.items[enough]
    findings: tuple[Finding, ...] = ()
    if joint.p < EACH:
        findings = (_unequal_halves(joint.p, items, item_p, labels),)
    return RaoTest(
        statistic=joint.statistic,
        df=joint.df,
        df2=joint.df2,
        p=joint.p,
        compared=f"{sizes[0]:,} | {sizes[1]:,} people",
        columns={"item": labels, "z": items.z, **p_columns(item_p)},
        frame_kind=responses.frame_kind,
        findings=findings,
        z=items.z,
        sizes=sizes,
        spread=items.spread,
    )


class _Comparison(NamedTuple):
    """u and W of the module's head; S, the covariance of u, which is W of persons who count alike and came one by one;
    the degrees of freedom of S; and the information I_h in each half."""

    u: Floats
    w: Floats
    covariance: Floats
    df: float
    informations: list[Floats]


def _compare(halves: Sequence[SampledPersons], beta: Floats, design: Floats | None) -> _Comparison:
    scores, informations = _scores_and_information(halves, beta, design)
    both = informations[0] + informations[1]
    share = informations[0] @ np.linalg.pinv(both, rcond=RANK_DIGITS, hermitian=True)  # I_1 (I_1 + I_2)^+
    u = scores[0] - share @ (scores[0] + scores[1])
    w = informations[0] - share @ informations[0]
    if halves[0].sampling.simple:
        return _Comparison(u, w, w, np.inf, informations)
    covariance, df = _sandwich(halves, beta, design, share)
    return _Comparison(u, w, covariance, df, informations)


def _scores_and_information(
    halves: Sequence[SampledPersons], beta: Floats, design: Floats | None
) -> tuple[list[Floats], list[Floats]]:
    """g and I of each half; those of A eta = beta, where there is a design A."""
    exact = [ExactLikelihood(half.responses, weights=half.sampling.weights) for half in halves]
    likelihoods: Sequence[Likelihood] = exact
    if not all(likelihood.exact_is_affordable() for likelihood in exact):
        likelihoods = [Likelihood(half.responses, beta, weights=half.sampling.weights) for half in halves]
    scores = []
    informations = []
    for likelihood in likelihoods:
        score = -likelihood.at(beta).gradient  # observed less expected
        information = information_at(likelihood, beta).matrix
        if design is not None:
            score = design.T @ score
            information = design.T @ information @ design
        scores.append(score)
        informations.append(information)
    return scores, informations


def _sandwich(
    halves: Sequence[SampledPersons], beta: Floats, design: Floats | None, share: Floats
) -> tuple[Floats, float]:
    """S of the module's head, and its degrees of freedom."""
    clustered = halves[0].sampling.cluster is not None
    clusters = [half.cluster for half in halves]
    if not clustered:  # everybody is a cluster, with a number of his own in both halves
        clusters[1] = clusters[1] + halves[0].responses.n_persons
    n_clusters = 1 + max(int(cluster.max(initial=0)) for cluster in clusters)
    scores = []
    for half, cluster in zip(halves, clusters, strict=True):
        by_cluster = cluster_scores(half.responses, beta, Sampling(half.sampling.weights, cluster), n_clusters)
        if design is not None:
            by_cluster = sparse.csr_array(by_cluster @ sparse.csr_array(design))
        scores.append(by_cluster)
    # The sum of u_c u_c', with u_c = first - share both.
    first = scores[0]
    both = scores[0] + scores[1]
    cross = (first.T @ both).toarray() @ share.T
    squares = (first.T @ first).toarray() - cross - cross.T + share @ (both.T @ both).toarray() @ share.T
    if not clustered:
        return squares, np.inf
    informative = [cluster[half.responses.informative] for half, cluster in zip(halves, clusters, strict=True)]
    n_occupied = len(np.unique(np.concatenate(informative)))
    return cluster_factor(n_occupied) * squares, joint_degrees_of_freedom(halves)


def _parameters_of_items(layout: Thresholds, design: Floats | None) -> Floats:
    """Items x parameters: 1 for what says how hard the item is as a whole."""
    if design is not None:
        return np.eye(layout.n_items, design.shape[1])  # the first columns of a rating scale are the locations
    return (np.arange(layout.n_items)[:, None] == layout.item).astype(float)  # all thresholds of the item


def _joint_test(comparison: _Comparison, compared: NDArray[np.bool_], *, simple: bool) -> JointTest:
    """T of the parameters about which both halves say enough to be compared."""
    among = np.ix_(compared, compared)
    w = comparison.w[among]
    values, vectors = np.linalg.eigh((w + w.T) / 2)
    positive = values > RANK_DIGITS * values[-1]
    df = int(positive.sum())
    statistic = float(((vectors[:, positive].T @ comparison.u[compared]) ** 2 / values[positive]).sum())
    if simple:
        return JointTest(statistic, df, np.inf, float(chi2_tail(statistic, df)))
    inverse = (vectors[:, positive] / values[positive]) @ vectors[:, positive].T
    return rao_scott(statistic, inverse @ comparison.covariance[among], comparison.df)


class _ItemDifferences(NamedTuple):
    """Of every item the difference between the halves in standard errors; and of all items its root mean square in
    logits, the errors taken off."""

    z: Floats
    spread: float


def _item_differences(comparison: _Comparison, of_item: Floats) -> _ItemDifferences:
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.einsum("ij,ij->i", of_item @ comparison.w, of_item)
        variance = np.einsum("ij,ij->i", of_item @ comparison.covariance, of_item)
        z = (of_item @ comparison.u) / np.sqrt(variance)
    # The difference between the halves is u / w, of which variance / w^2 is chance.
    informed = information > 0
    beyond_chance = (z**2 - 1)[informed] * variance[informed] / information[informed] ** 2
    spread = float(np.sqrt(max(float(np.mean(beyond_chance)), 0.0)))
    return _ItemDifferences(z, spread)


def size_in_words(spread: float, about: str = "") -> str:
    """How far the halves are apart; a significant difference of all items together may be within the error of each.

    >>> size_in_words(0.174, "about "), size_in_words(0.0)
    ('by about 0.17 logits', 'by no more than the error of each')
    """
    size = f"{spread:.2f}"
    if float(size) == 0:
        return "by no more than the error of each"
    return f"by {about}{size} logits"


def _unequal_halves(p: float, items: _ItemDifferences, item_p: Floats, labels: NDArray[Any]) -> Finding:
    by_size = np.argsort(-np.abs(items.z), kind="stable")
    significant = by_size[adjust_p(item_p, "holm")[by_size] < EACH]
    which = f", above all {listed(labels[significant])}" if len(significant) else ""
    size = size_in_words(items.spread, "about ")
    return Finding(
        code="unequal_halves",
        severity="warning" if items.spread >= NOTABLE else "note",
        sentence=f"Item difficulties differ between low and high scorers {size} ({p_value(p)}){which}.",
        remedy="Difficulties are not invariant across the scale; interpret comparisons between groups or forms of "
        "different means with caution.",
        items=tuple(labels[np.sort(significant)].tolist()),
    )
