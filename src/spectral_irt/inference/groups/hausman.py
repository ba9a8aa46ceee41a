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

`study.hausman` calls `hausman`, and so does the command `fit`, which asks whether the answers chose the items.

References
----------
Hausman (1978), Econometrica 46, 1251-1271. Neyman (1959), on C(alpha) tests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from spectral_irt.conditional.errors import centered_covariance, location_covariance
from spectral_irt.conditional.exact import PatternPart, padded_sums, part_given, pattern_parts, threshold_codes
from spectral_irt.conditional.exact_likelihood import ExactLikelihood, information_at
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds, answered_items
from spectral_irt.data.patterns import Patterns, distinct_rows
from spectral_irt.engine import one_blas_thread
from spectral_irt.errors import DesignError
from spectral_irt.estimators.marginal_fit import marginal_difficulty, marginal_information
from spectral_irt.estimators.population import (
    Members,
    Population,
    chances_of_passing,
    log_denominators,
    people_by_group,
    posterior_of,
)
from spectral_irt.inference.groups.grouping import item_sets
from spectral_irt.inference.groups.sampling import SIMPLE, SampledPersons, Sampling
from spectral_irt.inference.results import Result, two_sided
from spectral_irt.text import p_value

MOST_THRESHOLDS = 500  # with more a sample of the items: the information of marginal likelihood is a dense matrix
MOST_RESPONSES = 50_000  # with more a sample of the people: enough for power, half a second of work
LEAST_PEOPLE = 50  # with a score between the lowest and the highest; with fewer nothing can be told
# Of the marginal likelihood: what is missing to the maximum is accounted for.
MARGINAL_TOLERANCE = 1e-3
MARGINAL_STEPS = 30
WIDEST = 3.0  # standard deviations to which the directions are cut: no single far item may decide
NEW = 1e-5  # standard deviations: about what rounding leaves of a direction that those before it make up
CODE = "conditional_against_marginal"
# Forms that were given to people beforehand (`forms_follow_ability`).
LEAST_OF_FORM = 20  # people
MOST_FORMS = 50
LEAST_ON_FORMS = 0.9  # share of the people
# Chance that a person on one form scores above one on another on common items.
UNLIKE_ABILITIES = 0.6  # above: forms are for people of different ability
ROUTED = 0.97  # above: the scores on common items chose the form
UNTESTABLE = (DesignError, np.linalg.LinAlgError)  # too few people or items; directions that cannot be told apart
LEVEL = 0.01  # of the finding: adaptive designs are told from others by ten standard errors and more
# The finding is about what matters: root mean squares over the items.
NOTABLE = 0.05  # logits
NOTABLE_ERRORS = 0.5  # standard errors: half a one off, an interval of 95% holds 92%
NOTABLE_STRETCH = 0.05  # of the distances between difficulties: said as such, else in logits


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
    people = sample.everyone.responses
    layout = people.thresholds
    n_informative = int(people.informative.sum())
    if n_informative < LEAST_PEOPLE or people.n_items < 3:
        mixed = "have no extreme score on"
        if layout.binary:
            mixed = "have both right and wrong answers to"
        raise DesignError(
            f"{responses.source}: {n_informative:,} people {mixed} the {people.n_items:,} items that can be compared; "
            f"a test of conditional against marginal likelihood needs {LEAST_PEOPLE} and 3 items."
        )
    with one_blas_thread():  # small matrices, sooner done by one thread than several are woken
        test = _score_test(sample)
    if test.p >= LEVEL or test.size < NOTABLE or test.in_errors < NOTABLE_ERRORS:
        return test
    finding = _finding(test, layout.binary, groups is not None)
    if forms_follow_ability(responses):
        note = "Here forms are for different people, and their answers did not choose them: CML holds."
        finding = replace(finding, severity="note", sentence=f"{finding.sentence} {note}")
    return replace(test, findings=(finding,))


class _Sample(NamedTuple):
    """Items with somebody in every category, and people who answered them, all together and population by population; a
    start for the thresholds of these items; and the share of all answers that was taken: a sample of very many."""

    everyone: SampledPersons
    populations: list[SampledPersons]
    start: Floats
    share: float


def _sample(responses: Responses, start: Floats, groups: Any, seed: int, sampling: Sampling) -> _Sample:
    rng = np.random.default_rng(seed)
    layout = responses.thresholds
    group = people_by_group(responses, groups)[0].group
    items = np.flatnonzero(np.isfinite(layout.mean(start)))
    n_thresholds = int(layout.max_score[items].sum())
    if n_thresholds > MOST_THRESHOLDS:
        items = np.sort(rng.choice(items, MOST_THRESHOLDS * len(items) // n_thresholds, replace=False))
    share = min(1.0, MOST_RESPONSES / max(int(responses.item_counts[items].sum()), 1))
    people = SampledPersons(responses, sampling)
    if share < 1:
        drawn = rng.random(responses.n_persons) < share
        group = group[drawn]
        people = people.take(drawn)
        people = replace(people, responses=people.responses.in_one_block())  # tables of a block are made once
    people = people.take_items(items)
    used = _in_every_category(people.responses)
    items = items[used]
    people = people.take_items(used)
    groups_with_answers = np.unique(group[people.responses.counts > 0])
    populations = [people]
    if len(groups_with_answers) > 1:
        populations = [people.take(group == g) for g in groups_with_answers]
    return _Sample(people, populations, start[layout.of_items(items)], share)


def _in_every_category(responses: Responses) -> NDArray[np.bool_]:
    """Items with somebody in every category."""
    layout = responses.thresholds
    if not layout.n_items:
        return np.zeros(0, dtype=bool)
    n_above = responses.entries.item_scores.astype(float)  # people whose category is the one above each threshold
    all_above = np.logical_and.reduceat(n_above > 0, layout.first)
    some_in_lowest = responses.item_counts > layout.sum(n_above)
    return np.asarray(all_above & some_in_lowest)


class _Projection(NamedTuple):
    """Directions W (thresholds x directions) by name, and H W, with H the information of the conditional likelihood."""

    names: list[str]
    W: Floats
    HW: Floats

    @property
    def information(self) -> Floats:
        """Along each direction, w' H w."""
        return np.asarray(np.einsum("ik,ik->k", self.W, self.HW))


def _score_test(sample: _Sample) -> HausmanTest:
    everyone = sample.everyone.responses
    layout = everyone.thresholds
    n_informative = int(everyone.informative.sum())
    parts = [Members(people.responses, people.sampling.weights) for people in sample.populations]
    start = sample.start - float(layout.mean_weights() @ sample.start)
    fit = marginal_difficulty(parts, start=start, tol=MARGINAL_TOLERANCE, max_iter=MARGINAL_STEPS)
    beta = fit.difficulty
    patterns = [distinct_rows(people.responses) for people in sample.populations]
    likelihood = ExactLikelihood(everyone, weights=sample.everyone.sampling.weights)
    along = _without_redundant(*_directions(patterns, layout, beta), information_at(likelihood, beta).matrix)
    n_directions = len(along.names)
    marginal = marginal_information(parts, beta, fit.populations)
    inverse = marginal.inverse()
    B = inverse[:, : len(beta)] @ along.HW  # J^-1 H W: of the thresholds, then of mean and log sigma of populations
    of_populations = np.zeros((2 * len(parts), n_directions))
    of_populations[marginal.estimated] = B[len(beta) :]
    residuals = []
    for people, pattern, population, of_population in zip(
        sample.populations, patterns, fit.populations, of_populations.reshape(len(parts), 2, -1), strict=True
    ):
        W_and_B = _Weights(along.W, B[: len(beta)], of_population)
        residuals.append(_person_residuals(people.responses, pattern, population, beta, W_and_B))
    units = _units(residuals, sample.populations, n_informative)
    n_units = units.number
    if n_units <= n_directions + 1:
        raise DesignError(
            f"{everyone.source}: {n_units:,} clusters of people are too few to compare conditional with marginal "
            f"likelihood in {n_directions} directions."
        )
    T = units.residuals.sum(axis=0)
    V = units.covariance(T)
    statistic = float(T @ np.linalg.solve(V, T))
    difference = T / along.information
    se = np.sqrt(np.diag(V)) / along.information
    z = difference / se
    step = layout.mean(along.W @ np.linalg.solve(along.W.T @ along.HW, T))  # one Newton step, by item
    location = layout.mean(beta)
    # Errors of difficulties as they are shown, around their mean; the inverse has those around the mean ability.
    one_scale = np.zeros(layout.n_items, dtype=np.int64)
    covariance = centered_covariance(layout, inverse[: len(beta), : len(beta)], one_scale)
    variance = np.diag(location_covariance(layout, covariance))
    things = "difficulties" if layout.binary else "thresholds"
    f = statistic * (n_units - n_directions) / (n_directions * (n_units - 1))  # of Hotelling's distribution
    return HausmanTest(
        statistic=statistic,
        df=n_directions,
        p=float(scipy.special.fdtrc(n_directions, n_units - n_directions, f)),
        df2=float(n_units - n_directions),
        compared=f"conditional against marginal {things} of {layout.n_items:,} items, {n_informative:,} people",
        columns={"direction": np.array(along.names), "difference": difference, "se": se, "z": z, "p": two_sided(z)},
        frame_kind=everyone.frame_kind,
        size=float(np.sqrt(np.mean(step**2))),
        stretch=1 + float(location @ step / (location @ location)),
        in_errors=float(np.sqrt(np.mean(step**2 / variance) / sample.share)),
        n_people=n_informative,
        n_items=layout.n_items,
    )


def _without_redundant(names: list[str], W: Floats, information: Floats) -> _Projection:
    """The directions that those before them do not make up; others are such as items against some that nobody links to
    them."""
    HW = information @ W
    size = np.sqrt(np.maximum(np.einsum("ik,ik->k", W, HW), 1e-12))
    correlation = W.T @ HW / np.outer(size, size)
    beyond = np.diag(np.linalg.cholesky(correlation + NEW**2 * np.eye(len(names))))
    new = np.flatnonzero(np.append(True, beyond[1:] > 3 * NEW))
    if len(new) == len(names):
        return _Projection(names, W, HW)
    return _Projection([names[k] for k in new], W[:, new], HW[:, new])


class _Units(NamedTuple):
    """W' r of the persons, or of the clusters of them, by weight (units x directions); how many of them tell something;
    and whether they are clusters."""

    residuals: Floats
    number: int
    clustered: bool

    def covariance(self, total: Floats) -> Floats:
        """Of the sum of the residuals."""
        residuals = self.residuals
        if self.clustered:
            residuals = (residuals - total / len(residuals)) * np.sqrt(self.number / (self.number - 1))
        return np.asarray(residuals.T @ residuals)


def _units(residuals: list[Floats], populations: list[SampledPersons], n_informative: int) -> _Units:
    weighted = []
    for r, people in zip(residuals, populations, strict=True):
        weighted.append(r * people.weight[:, None])
    of_persons = np.concatenate(weighted)
    if populations[0].sampling.cluster is None:
        return _Units(of_persons, n_informative, clustered=False)
    cluster = np.concatenate([people.cluster for people in populations])
    informative = np.concatenate([people.responses.informative for people in populations])
    number = np.unique(cluster, return_inverse=True)[1].reshape(-1)
    of_clusters = np.zeros((int(number.max(initial=-1)) + 1, of_persons.shape[1]))
    np.add.at(of_clusters, number, of_persons)
    return _Units(of_clusters, len(np.unique(number[informative])), clustered=True)


def _directions(patterns: list[Patterns], layout: Thresholds, beta: Floats) -> tuple[list[str], Floats]:
    """Difficulty, its square and cube, the level of the other items, popularity: each without those before it, for all
    thresholds of an item alike; and the thresholds' distances from the location of their item."""
    location = layout.mean(beta)
    n_answers = np.zeros(layout.n_items)
    level_sum = np.zeros(layout.n_items)  # of the mean locations of the items that each person met, over the persons
    for pattern in patterns:
        rows = pattern.rows
        mean_met = rows.sums(location[rows.items]) / np.maximum(rows.counts, 1)
        n_people = np.repeat(pattern.count.astype(float), rows.counts)
        of_people = n_people * np.repeat(mean_met, rows.counts)
        n_answers += np.bincount(rows.items, weights=n_people, minlength=layout.n_items)
        level_sum += np.bincount(rows.items, weights=of_people, minlength=layout.n_items)
    centered = location - location.mean()
    z = np.clip(centered / max(float(location.std()), 1e-12), -WIDEST, WIDEST)
    candidates = {
        "its square": z**2,
        "its cube": z**3,
        "items met with it": level_sum / n_answers,
        "number of answers": np.log(n_answers),
    }
    names = ["difficulty"]
    columns = [centered]
    for name, values in candidates.items():
        before = np.stack([np.ones(len(location)), *columns], axis=1)
        beyond = values - before @ np.linalg.lstsq(before, values, rcond=None)[0]
        differs = beyond.std() > 1e-6 * max(1.0, float(np.abs(values).max()))
        if differs and len(columns) < len(location) - 2:
            names.append(name)
            columns.append(beyond / beyond.std())
    W = np.stack(columns, axis=1)[layout.item]
    distance = beta - location[layout.item]
    if distance.std() > 0:
        names.append("distance of thresholds")
        W = np.column_stack([W, distance / distance.std()])
    return names, W


class _Weights(NamedTuple):
    """What residuals given the score, and residuals given the population, are added up with: W, and B = J^-1 H W of the
    thresholds, and of mean and log sigma of the population."""

    W: Floats
    B: Floats
    of_population: Floats


def _person_residuals(
    responses: Responses, patterns: Patterns, population: Population, beta: Floats, weights: _Weights
) -> Floats:
    """W' r_l of every person of a population, persons x directions: expected given the score less expected in the
    population, by pattern, less the same of the answers that were given."""
    layout = responses.thresholds
    rows = patterns.rows
    n_directions = weights.W.shape[1]
    expected = -_expected_in_population(patterns, population, beta, layout, weights)
    n_each = np.ones(len(rows.counts), dtype=np.int64)
    tiles = responses.engine.hold(pattern_parts(rows, n_each, layout))
    padding = np.concatenate([weights.W, np.zeros((1, n_directions))])
    for places, given_score in tiles.map(_given_score, padded_sums(layout, beta), threshold_codes(layout), padding):
        expected[places] += given_score
    by_category = np.zeros((layout.n_items, layout.widest + 1, 2 * n_directions))
    by_category[layout.item, layout.level] = np.hstack([weights.W, weights.B])
    observed = responses.entries.gather(_observed_sums, layout, np.cumsum(by_category, axis=1))
    observed_W = observed[:, :n_directions]
    observed_B = observed[:, n_directions:]
    had_choice = rows.informative[patterns.of_person, None]  # the others had none, given their score
    return expected[patterns.of_person] - np.where(had_choice, observed_W, 0.0) + observed_B


def _expected_in_population(
    patterns: Patterns, population: Population, beta: Floats, layout: Thresholds, weights: _Weights
) -> Floats:
    """u_l' B of every pattern but for what was observed: expectations under the posterior of its persons."""
    rows = patterns.rows
    answered, posterior, _ = posterior_of(rows, log_denominators(beta, population, layout), population)
    passed = chances_of_passing(beta, population.nodes, layout)
    of_thresholds = np.empty((len(rows.counts), weights.B.shape[1]))
    for k, column in enumerate(weights.B.T):
        of_item = np.add.reduceat(passed * column[:, None], layout.first, axis=0)
        of_thresholds[:, k] = (posterior * (answered @ of_item)).sum(axis=1)
    statistics = np.where(rows.counts[:, None] > 0, posterior @ population.statistics, 0.0)
    return np.asarray(of_thresholds + statistics @ weights.of_population)


def _given_score(part: PatternPart, cumulated: Floats, codes: Ints, W: Floats) -> tuple[Ints, Floats]:
    """sum over thresholds of P(X >= k | s) times W, of every pattern."""
    return part.which, np.einsum("kir,rikd->rd", part_given(part, cumulated).passed, W[codes[part.items]])


def _observed_sums(block: Block, layout: Thresholds, passed: Floats) -> Floats:
    """The same of the thresholds passed, of every person; `passed` has the sums up to each category of an item."""
    indptr, item, category = answered_items(block, layout)
    person = np.repeat(np.arange(block.n_persons), np.diff(indptr))
    of_answers = passed[item, category]
    sums = np.empty((block.n_persons, passed.shape[2]))
    for k in range(sums.shape[1]):
        sums[:, k] = np.bincount(person, weights=of_answers[:, k], minlength=block.n_persons)
    return sums


def _finding(test: HausmanTest, binary: bool, grouped: bool) -> Finding:
    things = "Difficulties" if binary else "Thresholds"
    size = f"{test.size:.2f} logits off"
    if abs(test.stretch - 1) >= NOTABLE_STRETCH:
        size = f"about {test.stretch:.1f} times as far apart"
    not_normal = "the people are not from one normal population, as when forms are for different people"
    if grouped:
        not_normal = "the populations of the groups are not normal"
    where = " (with `groups=` where forms are for different people)" if binary else ""
    sentence = (
        f"{things} by conditional and by marginal maximum likelihood (CML, MML) disagree ({p_value(test.p)}; those of "
        f"CML are {size}). Either items were chosen by the answers (adaptive test, routing, stopping rule), and then "
        f"CML is wrong; or {not_normal}, and then MML is."
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
    form_of_person = item_sets(responses)
    sizes = np.bincount(form_of_person)
    large = np.flatnonzero(sizes >= LEAST_OF_FORM)
    if not 2 <= len(large) <= MOST_FORMS or sizes[large].sum() < LEAST_ON_FORMS * len(form_of_person):
        return False
    forms = [responses.take_persons(form_of_person == k) for k in large]
    has_item = np.array([form.item_counts > 0 for form in forms])
    most_unlike = 0.5
    for a in range(len(forms)):
        for b in range(a):
            common = has_item[a] & has_item[b]
            if (common == has_item[a]).all() or (common == has_item[b]).all():
                return False
            if common.any():
                ahead = _chance_ahead(forms[a].take_items(common).scores, forms[b].take_items(common).scores)
                most_unlike = max(most_unlike, ahead, 1 - ahead)
    return UNLIKE_ABILITIES < most_unlike < ROUTED


def _chance_ahead(first: Ints, second: Ints) -> float:
    """That a score of the first kind is above one of the second; a tie counts half."""
    scores = np.sort(second)
    below = np.searchsorted(scores, first) + np.searchsorted(scores, first, side="right")
    return float(below.mean()) / (2 * len(scores))
