"""Do conditional and marginal likelihood agree? A test of what each of them takes for granted.

Conditional likelihood assumes that nobody's items were chosen by that person's answers, marginal likelihood that
abilities are normal (in each group); where one of them fails, the estimates part (Hausman 1978). This is a score test,
so that only one of the two has to be fitted, with a covariance from what each person contributes. At the marginal
estimate b of the thresholds,

    T = W' sum_l r_l,   r_l = g_l - H [J^-1 u_l],   T' (sum_l W' r_l r_l' W)^-1 T ~ Hotelling, K and n - K,

with g_l = P(X_l >= k | s_l) - 1{x_l >= k} the person's score in the conditional likelihood, H its information, u_l the
score in the marginal likelihood, of thresholds and populations, and J its observed information. g and H J^-1 u nearly
cancel, so that H has to be exact. W holds a few directions in which thresholds may part, so that the test keeps its
level with any number of items: in proportion to difficulty (adaptive designs stretch the conditional ones), in its
square and cube (populations that are not normal), with the level of the other items that the same people met (forms for
different people), with the number of answers, and with the distances of thresholds from the location of their item.

References
----------
Hausman (1978), Econometrica 46, 1251-1271. Neyman (1959), on C(alpha) tests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy

from spectral_irt.conditional.errors import centered_covariance, location_covariance
from spectral_irt.conditional.exact import PatternPart, padded, part_given, pattern_parts, threshold_codes
from spectral_irt.conditional.exact_likelihood import ExactLikelihood, information_at
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds, answered_items
from spectral_irt.data.patterns import Patterns, distinct_rows
from spectral_irt.engine import one_blas_thread
from spectral_irt.errors import DesignError
from spectral_irt.estimators.marginal_fit import marginal_difficulty, marginal_information
from spectral_irt.estimators.population import Members, Population, log_denominators, passing, people_by_group
from spectral_irt.inference.groups.grouping import item_sets
from spectral_irt.inference.groups.sampling import SIMPLE, Sampling
from spectral_irt.inference.results import Result, two_sided
from spectral_irt.numerics import csr
from spectral_irt.text import p_value

MOST_THRESHOLDS = 500  # with more a sample of the items: the information of marginal likelihood is a dense matrix
MOST_RESPONSES = 50_000  # with more a sample of the people: enough for power, half a second of work
LEAST_PEOPLE = 50  # with a score between the lowest and the highest; with fewer nothing can be told
STEP, PASSES = 1e-3, 30  # of the marginal likelihood: what is missing to the maximum is accounted for
WIDE = 3.0  # standard deviations to which the directions are cut: no single far item may decide
TOLD = 1e-5  # standard deviations: about what rounding leaves of a direction that those before it make up
CODE = "conditional_against_marginal"
OF_FORM, MOST_FORMS, MOSTLY = 20, 50, 0.9  # people of a form; forms; share of people on them
FOLLOW, ROUTED = 0.6, 0.97  # chance that one of a form scores above one of another on common items: abler; told apart
UNTESTABLE = (DesignError, np.linalg.LinAlgError)  # too few people or items; directions that cannot be told apart
LEVEL = 0.01  # of the finding: adaptive designs are told from others by ten standard errors and more
# The finding is about what matters: root mean squares over the items, in logits and in standard errors.
NOTABLE, OF_ERROR = 0.05, 0.5  # half a standard error off, an interval of 95% holds 92%


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class HausmanTest(Result):
    """What `hausman` found.

    `table()` has, for each direction, `direction, difference, se, z, p`: by how much conditional difficulties exceed
    marginal ones along it; for "difficulty" it is how much farther apart conditional difficulties lie, as a share.
    `size` and `in_errors` are the difference along all directions, as its root mean square over the items, in logits
    (one Newton step of the conditional likelihood) and in standard errors; `stretch` says how many times as far apart
    conditional difficulties lie by that step. `n_people, n_items` are a sample, where there is very much of either.
    """

    name = "Hausman test"

    size: float
    stretch: float
    in_errors: float
    n_people: int
    n_items: int


def hausman(
    responses: Responses, start: Floats, groups: Any = None, seed: int = 0, sampling: Sampling = SIMPLE
) -> HausmanTest:
    """Test conditional against marginal difficulties, or thresholds, from any rough ones, NaN for items to be left out;
    data that do not allow it: `UNTESTABLE`.

    With `groups`, a label for each person, abilities are normal in each group. The seed draws samples where there are
    more than 500 thresholds or 50,000 responses. Persons count by their weights in both likelihoods, and r_l is added
    up within clusters before it is squared; then there must be more clusters than directions.
    """
    sample = _sample(responses, start, groups, seed, sampling)
    people = sample.everyone
    layout = people.thresholds
    n = int(people.informative.sum())
    if n < LEAST_PEOPLE or people.n_items < 3:
        mixed = "have both right and wrong answers to" if layout.binary else "have no extreme score on"
        raise DesignError(
            f"{responses.source}: {n:,} people {mixed} the {people.n_items:,} items that can be compared; a test of "
            f"conditional against marginal likelihood needs {LEAST_PEOPLE} and 3 items."
        )
    with one_blas_thread():  # small matrices, sooner done by one thread than several are woken
        found = _score_test(sample)
    if found.p >= LEVEL or found.size < NOTABLE or found.in_errors < OF_ERROR:
        return found
    finding = _finding(found, layout.binary, groups is not None)
    if forms_follow_ability(responses):
        note = "Here forms are for different people, and their answers did not choose them: CML holds."
        finding = replace(finding, severity="note", sentence=f"{finding.sentence} {note}")
    return replace(found, findings=(finding,))


class _Sample(NamedTuple):
    """Items with somebody in every category, and people who answered them, all together and population by population,
    each with its sampling; a start for these items; and the share of all answers that was taken: a sample of very
    many."""

    everyone: Responses
    weights: Floats | None
    populations: list[Responses]
    samplings: list[Sampling]
    start: Floats
    share: float


def _sample(responses: Responses, start: Floats, groups: Any, seed: int, sampling: Sampling) -> _Sample:
    rng, layout = np.random.default_rng(seed), responses.thresholds
    group = people_by_group(responses, groups)[0].group
    chosen = np.flatnonzero(np.isfinite(layout.mean(start)))
    thresholds = int(layout.max_score[chosen].sum())
    if thresholds > MOST_THRESHOLDS:
        chosen = np.sort(rng.choice(chosen, MOST_THRESHOLDS * len(chosen) // thresholds, replace=False))
    share = min(1.0, MOST_RESPONSES / max(int(responses.item_counts[chosen].sum()), 1))
    some = responses
    if share < 1:
        drawn = rng.random(responses.n_persons) < share
        some, group = responses.take_persons(drawn).in_one_block(), group[drawn]  # tables of a block are made once
        sampling = sampling.take(drawn)
    some = some.take_items(chosen)
    last = some.entries.item_scores.astype(float)  # people whose category is the one above each threshold
    used = np.logical_and.reduceat(last > 0, some.thresholds.first) if len(chosen) else np.zeros(0, dtype=bool)
    used &= some.item_counts > some.thresholds.sum(last)
    chosen, some = chosen[used], some.take_items(used)
    there = np.unique(group[some.counts > 0])
    populations, samplings = [some], [sampling]
    if len(there) > 1:
        populations = [some.take_persons(group == g) for g in there]
        samplings = [sampling.take(group == g) for g in there]
    return _Sample(some, sampling.weights, populations, samplings, start[layout.of_items(chosen)], share)


def _score_test(sample: _Sample) -> HausmanTest:
    everyone, weights, populations, samplings, start, share = sample
    layout, n = everyone.thresholds, int(everyone.informative.sum())
    parts = [Members(one, own.weights) for one, own in zip(populations, samplings, strict=True)]
    start = start - float(layout.averaging() @ start)
    fit = marginal_difficulty(parts, start=start, tol=STEP, max_iter=PASSES)
    beta = fit.difficulty
    patterns = list(map(distinct_rows, populations))
    names, W = _directions(patterns, layout, beta)
    likelihood = ExactLikelihood(everyone, weights=weights)
    HW = information_at(likelihood, beta).matrix @ W
    size = np.sqrt(np.maximum(np.einsum("ik,ik->k", W, HW), 1e-12))
    beyond = np.diag(np.linalg.cholesky(W.T @ HW / np.outer(size, size) + TOLD**2 * np.eye(len(names))))
    kept = np.flatnonzero(np.append(True, beyond[1:] > 3 * TOLD))
    if len(kept) < len(names):  # such as items against others that nobody links to them
        names, W, HW = [names[k] for k in kept], W[:, kept], HW[:, kept]
    found = marginal_information(parts, beta, fit.populations)
    inverse = found.inverse()
    B = inverse[:, : len(beta)] @ HW
    of_populations = np.zeros((2 * len(parts), W.shape[1]))
    of_populations[found.estimated] = B[len(beta) :]
    own = of_populations.reshape(len(parts), 2, -1)  # of the mean and of the log sigma of each
    each = []
    for those in zip(populations, patterns, fit.populations, own, strict=True):
        each.append(_contributions(*those, beta, W, B[: len(beta)]))
    r, units = _by_cluster(each, populations, samplings, n)
    K = len(names)
    if units <= K + 1:
        raise DesignError(
            f"{everyone.source}: {units:,} clusters of people are too few to compare conditional with marginal "
            f"likelihood in {K} directions."
        )
    T = r.sum(axis=0)
    around = r if samplings[0].cluster is None else (r - T / len(r)) * np.sqrt(units / (units - 1))
    V = around.T @ around
    statistic = float(T @ np.linalg.solve(V, T))
    information = np.einsum("ik,ik->k", W, HW)
    difference, se = T / information, np.sqrt(np.diag(V)) / information
    z = difference / se
    step = layout.mean(W @ np.linalg.solve(W.T @ HW, T))
    location = layout.mean(beta)
    # Errors of difficulties as they are shown, around their mean; the inverse has those around the mean ability.
    together = np.zeros(layout.n_items, dtype=np.int64)
    covariance = centered_covariance(layout, inverse[: len(beta), : len(beta)], together)
    variance = np.diag(location_covariance(layout, covariance))
    what = "difficulties" if layout.binary else "thresholds"
    return HausmanTest(
        statistic=statistic,
        df=K,
        p=float(scipy.special.fdtrc(K, units - K, statistic * (units - K) / (K * (units - 1)))),  # upper tail of F
        df2=float(units - K),
        compared=f"conditional against marginal {what} of {layout.n_items:,} items, {n:,} people",
        columns={"direction": np.array(names), "difference": difference, "se": se, "z": z, "p": two_sided(z)},
        frame_kind=everyone.frame_kind,
        size=float(np.sqrt(np.mean(step**2))),
        stretch=1 + float(location @ step / (location @ location)),
        in_errors=float(np.sqrt(np.mean(step**2 / variance) / share)),
        n_people=n,
        n_items=layout.n_items,
    )


def _by_cluster(
    each: list[Floats], populations: list[Responses], samplings: list[Sampling], n: int
) -> tuple[Floats, int]:
    """W' r_l by weight, added up within clusters where there are any; and how many of these, or persons, tell."""
    weighted = []
    for r, people, own in zip(each, populations, samplings, strict=True):
        weighted.append(r * own.counts(people.n_persons)[:, None])
    together = np.concatenate(weighted)
    if samplings[0].cluster is None:
        return together, n
    cluster = np.concatenate([own.clusters(one.n_persons) for one, own in zip(populations, samplings, strict=True)])
    told = np.concatenate([one.informative for one in populations])
    number = np.unique(cluster, return_inverse=True)[1].reshape(-1)
    sums = np.zeros((int(number.max(initial=-1)) + 1, together.shape[1]))
    np.add.at(sums, number, together)
    return sums, len(np.unique(number[told]))


def _directions(patterns: list[Patterns], layout: Thresholds, beta: Floats) -> tuple[list[str], Floats]:
    """Difficulty, its square and cube, the level of the other items, popularity: each without those before it, for all
    thresholds of an item alike; and the thresholds' distances from the location of their item."""
    location = layout.mean(beta)
    counts, levels = np.zeros((2, layout.n_items))
    for one in patterns:
        rows = one.rows
        mean = rows.sums(location[rows.items]) / np.maximum(rows.counts, 1)
        people = np.repeat(one.count.astype(float), rows.counts)
        counts += np.bincount(rows.items, weights=people, minlength=layout.n_items)
        levels += np.bincount(rows.items, weights=people * np.repeat(mean, rows.counts), minlength=layout.n_items)
    z = np.clip((location - location.mean()) / max(float(location.std()), 1e-12), -WIDE, WIDE)
    names, columns = ["difficulty"], [location - location.mean()]
    further = {"its square": z**2, "its cube": z**3}
    further |= {"items met with it": levels / counts, "number of answers": np.log(counts)}
    for name, values in further.items():
        before = np.stack([np.ones(len(location)), *columns], axis=1)
        rest = values - before @ np.linalg.lstsq(before, values, rcond=None)[0]
        if rest.std() > 1e-6 * max(1.0, float(np.abs(values).max())) and len(columns) < len(location) - 2:
            names.append(name)
            columns.append(rest / rest.std())
    W, away = np.stack(columns, axis=1)[layout.item], beta - location[layout.item]
    if away.std() > 0:
        names, W = [*names, "distance of thresholds"], np.column_stack([W, away / away.std()])
    return names, W


def _contributions(
    part: Responses, patterns: Patterns, population: Population, own: Floats, beta: Floats, W: Floats, B: Floats
) -> Floats:
    """W' r_l of every person; `own` has what stands in the place of B for the mean and log sigma of the population."""
    layout, rows = part.thresholds, patterns.rows
    answered = csr(rows.indptr.astype(np.int32), rows.items, np.ones(len(rows.items)), layout.n_items)
    log = rows.scores[:, None] * population.nodes - answered @ log_denominators(beta, population, layout)
    log += population.log_weights
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    passed = passing(beta, population.nodes, layout)
    given_all = np.empty((len(rows.counts), W.shape[1]))
    for k, column in enumerate(B.T):
        of_item = np.add.reduceat(passed * column[:, None], layout.first, axis=0)
        given_all[:, k] = (weight * (answered @ of_item)).sum(axis=1)
    of_population = weight @ population.statistics
    found = -given_all - np.where(rows.counts[:, None] > 0, of_population, 0.0) @ own
    tiles = part.engine.hold(pattern_parts(rows, np.ones(len(rows.counts), dtype=np.int64), layout))
    padding = np.concatenate([W, np.zeros((1, W.shape[1]))])
    for places, given in tiles.map(_given_score, padded(layout, beta), threshold_codes(layout), padding):
        found[places] += given
    both = np.zeros((layout.n_items, layout.widest + 1, 2 * W.shape[1]))
    both[layout.item, layout.level] = np.hstack([W, B])
    observed = part.entries.gather(_observed, layout, np.cumsum(both, axis=1))
    free = rows.informative[patterns.of_person, None]  # the others had no choice, given their score
    return found[patterns.of_person] - np.where(free, observed[:, : W.shape[1]], 0.0) + observed[:, W.shape[1] :]


def _given_score(part: PatternPart, cumulated: Floats, codes: Ints, W: Floats) -> tuple[Ints, Floats]:
    """sum over thresholds of P(X >= k | s) times W, of every pattern."""
    return part.which, np.einsum("kir,rikd->rd", part_given(part, cumulated).passed, W[codes[part.items]])


def _observed(block: Block, layout: Thresholds, passed: Floats) -> Floats:
    """The same of the thresholds passed, of every person; `passed` has the sums up to each category of an item."""
    indptr, item, category = answered_items(block, layout)
    person = np.repeat(np.arange(block.n_persons), np.diff(indptr))
    each, found = passed[item, category], np.empty((block.n_persons, passed.shape[2]))
    for k in range(found.shape[1]):
        found[:, k] = np.bincount(person, weights=each[:, k], minlength=block.n_persons)
    return found


def _finding(test: HausmanTest, binary: bool, grouped: bool) -> Finding:
    things = "Difficulties" if binary else "Thresholds"
    wide = abs(test.stretch - 1) >= 0.05
    wider = f"about {test.stretch:.1f} times as far apart" if wide else f"{test.size:.2f} logits off"
    one = "the people are not from one normal population, as when forms are for different people"
    where = " (with `groups=` where forms are for different people)" if binary else ""
    sentence = (
        f"{things} by conditional and by marginal maximum likelihood (CML, MML) disagree ({p_value(test.p)}; those of "
        f"CML are {wider}). Either items were chosen by the answers (adaptive test, routing, stopping rule), and then "
        f"CML is wrong; or {'the populations of the groups are not normal' if grouped else one}, and then MML is."
    )
    remedy = (
        f"If the answers decided what came next, say `design='adaptive'`{where}. If they did not, keep the "
        f"{things.lower()} by CML, those of the spectral and the conditional estimator."
    )
    return Finding(CODE, "warning", sentence, remedy)


def forms_follow_ability(responses: Responses) -> bool:
    """Whether a few forms were given to people of different ability beforehand, as on a vertical scale.

    Not where answers chose the form: then people of two forms are told apart by their scores on the items of both
    (routing), or one form is the beginning of the other (stopping), or nearly everybody has one of their own.
    """
    own = item_sets(responses)
    number, sizes = np.arange(int(own.max(initial=0)) + 1), np.bincount(own)
    number = number[sizes >= OF_FORM]
    if not 2 <= len(number) <= MOST_FORMS or sizes[number].sum() < MOSTLY * len(own):
        return False
    forms = [responses.take_persons(own == k) for k in number]
    asked = np.array([form.item_counts > 0 for form in forms])
    apart = 0.5
    for a in range(len(forms)):
        for b in range(a):
            common = asked[a] & asked[b]
            if (common == asked[a]).all() or (common == asked[b]).all():
                return False
            if common.any():
                one, other = (np.sort(forms[k].take_items(common).scores) for k in (a, b))
                below = np.searchsorted(other, one) + np.searchsorted(other, one, side="right")
                ahead = float(below.mean()) / (2 * len(other))
                apart = max(apart, ahead, 1 - ahead)
    return FOLLOW < apart < ROUTED
