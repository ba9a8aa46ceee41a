"""A population of abilities on nodes, and the kernels of marginal likelihood over a block of people given it.

P(answers of person l) = sum_q w_q P(answers of l | node_q): `marginal_fit` maximizes it over thresholds and
populations, and `hausman` and `cluster_errors` take its scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Rows, Thresholds, answered_items, rows_of
from spectral_irt.data.labels import Split, by_label
from spectral_irt.errors import DisconnectedDesignError, OptionError
from spectral_irt.model import above, category_probabilities, sigmoid
from spectral_irt.numerics import chosen_or_none, csr
from spectral_irt.text import count_are, listed

REACH = 6.0  # nodes cover mu +- 6 sigma: 2e-9 of a normal distribution lies outside
# Even nodes 1.25 posterior standard deviations apart integrate a normal posterior to 1e-5, and all wider
# posteriors (of fewer answers) far better: the trapezoidal rule errs by 2 exp(-2 pi^2 / 1.25^2).
SPACING = 1.25
FEWEST_NODES = 41
MOST_NODES = 401
CELLS = 2_000_000  # people x nodes worked on at a time
EVERYBODY = "all"  # the name of the only group
NOBODYS = "no group"  # of those without a label
MOST_GROUPS = 100  # beyond, the labels are more likely names than groups, and a population needs people


@dataclass(frozen=True, eq=False)
class Population:
    """A distribution of abilities on nodes, one of a family: log weight = constant + a' statistics.

    `statistics`, nodes x parameters, are less their mean: the score of each parameter at every node, given the ability.
    Of a normal population z / sigma and z^2 - 1, which are the scores of its mean and of log sigma as well; else the
    shape is `free`.
    """

    nodes: Floats
    log_weights: Floats
    mean: float
    sd: float
    statistics: Floats
    free: bool


def distribution(nodes: Floats, log_weights: Floats, basis: Floats | None = None) -> Population:
    """With these weights, up to a factor; `basis`, nodes x parameters, has the statistics of a free shape."""
    top = log_weights.max()
    log_weights = log_weights - (top + np.log(np.sum(np.exp(log_weights - top))))
    weights = np.exp(log_weights)
    mean = float(weights @ nodes)
    sd = float(np.sqrt(weights @ (nodes - mean) ** 2))
    if basis is not None:
        return Population(nodes, log_weights, mean, sd, basis - weights @ basis, True)
    z = (nodes - mean) / sd
    return Population(nodes, log_weights, mean, sd, np.stack([z / sd, z**2 - 1], axis=1), False)


def normal_population(sigma: float, n_nodes: int, mu: float = 0.0) -> Population:
    """N(mu, sigma^2) on even nodes (trapezoidal rule): closer together than those of Gauss and Hermite, and a person
    with n answers has a posterior only about 2 / sqrt(n) wide."""
    z = np.linspace(-REACH, REACH, n_nodes)
    return distribution(mu + sigma * z, -(z**2) / 2)


def enough_nodes(sigma: float, longest: int) -> int:
    """Even nodes that resolve the posterior of the person with most answers, whose information is at most n / 4."""
    narrowest = 1 / np.sqrt(1 / sigma**2 + longest / 4)
    n_nodes = int(np.ceil(2 * REACH * sigma / (SPACING * narrowest))) + 1
    return int(np.clip(n_nodes + 1 - n_nodes % 2, FEWEST_NODES, MOST_NODES))


class Posteriors(NamedTuple):
    """Of some people of a block: their rows, people x items with 1 where there is an answer, P(node | answers), people
    x nodes, log-likelihoods, and how much each counts: not at all without answers."""

    rows: Rows
    answered: sparse.csr_array
    p: Floats
    loglik: Floats
    weight: Floats


def posteriors(
    block: Block, weight: Floats | None, beta: Floats, population: Population, layout: Thresholds
) -> Iterator[Posteriors]:
    """Some people of a block at a time, given their answers.

    log P(answers | theta) = s theta - sum of beta over thresholds passed - sum over all items answered of
    log(1 + exp(theta - beta_1) + ...).
    """
    denominators = log_denominators(beta, population, layout)
    rows = rows_of(block, layout)
    up_to = beta if layout.binary else layout.cumulated(beta)[layout.item, layout.level]
    passed = (block.pattern(len(beta)) @ up_to)[::2]
    size = max(1, CELLS // len(population.nodes))
    for start in range(0, block.n_persons, size):
        some = rows.part(start, min(start + size, block.n_persons))
        where = slice(start, start + size)
        answered, p, loglik = posterior_of(some, denominators, population)
        counts = np.where(some.counts > 0, 1.0 if weight is None else weight[where], 0.0)
        yield Posteriors(some, answered, p, loglik - passed[where], counts)


def posterior_of(rows: Rows, denominators: Floats, population: Population) -> tuple[sparse.csr_array, Floats, Floats]:
    """Of rows of answers: people x items with 1 where there is an answer, P(node | answers), people x nodes, and the
    log-likelihood but for the thresholds passed."""
    answered = csr(rows.indptr.astype(np.int32), rows.items, np.ones(len(rows.items)), len(denominators))
    log_p = rows.scores[:, None] * population.nodes + population.log_weights
    log_p -= answered @ denominators
    highest = log_p.max(axis=1)
    p = np.exp(log_p - highest[:, None], out=log_p)
    total = p.sum(axis=1)
    p /= total[:, None]
    return answered, p, highest + np.log(total)


def log_denominators(beta: Floats, population: Population, layout: Thresholds) -> Floats:
    """log(1 + exp(theta - beta_1) + exp(2 theta - beta_1 - beta_2) + ...), items x nodes."""
    if layout.binary:
        return np.logaddexp(0, population.nodes - beta[:, None])
    cumulated = layout.cumulated(beta)
    x = population.nodes[:, None] * np.arange(cumulated.shape[1]) - cumulated[:, None, :]
    return np.asarray(np.logaddexp.reduce(x, axis=2))


def chances_of_passing(beta: Floats, nodes: Floats, layout: Thresholds) -> Floats:
    """P(X >= k) of every threshold k at every node."""
    if layout.binary:
        return sigmoid(nodes - beta[:, None])
    p = category_probabilities(nodes, layout.cumulated(beta)[:, None, :])
    return np.asarray(above(p)[layout.item, :, layout.level - 1])


class ExpectedCounts(NamedTuple):
    """Expected answers to each item from each node, expected people at each node, and the log-likelihood."""

    answers: Floats
    persons: Floats
    loglik: Floats


def expected_counts(
    block: Block, weight: Floats | None, beta: Floats, population: Population, layout: Thresholds
) -> ExpectedCounts:
    """The E step of a block."""
    n_nodes = len(population.nodes)
    answers = np.zeros((layout.n_items, n_nodes))
    persons = np.zeros(n_nodes)
    loglik = 0.0
    for some in posteriors(block, weight, beta, population, layout):
        answers += some.answered.T @ (some.p if weight is None else some.p * some.weight[:, None])
        persons += some.weight @ some.p
        loglik += float(some.loglik @ some.weight)
    return ExpectedCounts(answers, persons, np.array(loglik))


def expected_passes(rows: Rows, p: Floats, q: Floats, layout: Thresholds) -> sparse.csr_array:
    """sum over nodes of p_k q_l, people x thresholds, for the thresholds k of the items that person l answered."""
    indptr = rows.indptr
    index = rows.items
    if not layout.binary:
        ends = np.concatenate([[0], np.cumsum(layout.max_score[rows.items])])
        indptr = ends[rows.indptr]
        index = layout.of_items(rows.items.astype(np.int64)).astype(np.int32)
    person = np.repeat(np.arange(rows.n_persons), np.diff(indptr))
    sums = np.empty(len(index))
    size = max(1, CELLS // (4 * p.shape[1]))
    for start in range(0, len(sums), size):
        some = slice(start, start + size)
        sums[some] = np.einsum("nk,nk->n", p[index[some]], q[person[some]])
    return csr(indptr.astype(np.int32), index, sums, len(p))


def marginal_scores(
    block: Block, beta: Floats, population: Population, layout: Thresholds, others: Floats
) -> sparse.csr_array:
    """What each person adds to the gradient of the marginal likelihood: E[P(X_li >= k) | answers of l] - 1{X_li >= k},
    people x thresholds; then the expected statistics of the population, times `others`: where these stand among the
    parameters of all populations."""
    p = chances_of_passing(beta, population.nodes, layout)
    statistics = population.statistics @ others
    passes = []
    of_population = []
    for some in posteriors(block, None, beta, population, layout):
        passes.append(expected_passes(some.rows, p, some.p, layout))
        of_population.append(some.weight[:, None] * (some.p @ statistics))
    scores = passes[0] if len(passes) == 1 else sparse.vstack(passes, format="csr")
    if layout.binary:
        scores.data -= block.right()
    else:
        _, items, category = answered_items(block, layout)
        scores.data -= layout.level[scores.indices] <= np.repeat(category, layout.max_score[items])
    return sparse.csr_array(sparse.hstack([scores, sparse.csr_array(np.concatenate(of_population))]))


@dataclass(frozen=True, eq=False)
class Members:
    """The people of one population: their answers, and how much each counts."""

    responses: Responses
    weights: Floats | None = None

    @property
    def size(self) -> float:
        """How many answered anything, by weight."""
        has_answers = self.responses.counts > 0
        return float(has_answers.sum() if self.weights is None else has_answers @ self.weights)

    def sum(self, kernel: Any, *args: Any) -> Any:
        """A kernel over all blocks, which is given the weights, or None."""
        return self.responses.entries.sum(kernel, *args, persons=(self.weights,))


def passed_last(block: Block, weight: Floats | None, n: int) -> Floats:
    """How many passed each threshold and not the next."""
    return block.halves(n)[0].T @ (np.ones(block.n_persons) if weight is None else weight)


class Groups(NamedTuple):
    """Who is in which group, the people of each that answered anything, and a note on those without a label."""

    split: Split
    members: tuple[Members, ...]
    findings: list[Finding]


def people_by_group(responses: Responses, labels: Any, weights: Floats | None = None) -> Groups:
    """The people of each group; those without a label are a group of their own."""
    if labels is None:
        everyone = Split((EVERYBODY,), np.zeros(responses.n_persons, dtype=np.int64))
        return Groups(everyone, (Members(responses, weights),), [])
    split = by_label(responses, labels)
    without_label = split.group < 0
    if without_label.any():
        split = Split((*split.names, NOBODYS), np.where(without_label, split.n_groups, split.group))
    # Somebody without answers is in no population; a place among the others does no harm.
    has_answers = responses.counts > 0
    split = split.keep(np.bincount(split.group[has_answers], minlength=split.n_groups) > 0)
    split = Split(split.names, np.maximum(split.group, 0))
    if split.n_groups > MOST_GROUPS:
        raise OptionError(
            f"there are {split.n_groups:,} groups ({listed(split.names)}); at most {MOST_GROUPS} can have a population "
            "each. Merge them into a few, each of some hundred people."
        )
    members = []
    for g in range(split.n_groups):
        in_group = split.group == g
        weights_of_group = chosen_or_none(weights, in_group)
        members.append(Members(responses.take_persons(in_group), weights_of_group))
    _check_linked(members, split.names)
    findings = []
    if NOBODYS in split.names:
        who = count_are(int(np.sum(without_label & has_answers)), "person")
        sentence = f"{who} in none of the groups, and taken as one together."
        findings.append(Finding("people_without_group", "note", sentence))
    return Groups(split, tuple(members), findings)


def _check_linked(members: Sequence[Members], names: tuple[str, ...]) -> None:
    """Means of groups can be compared only through items in common."""
    from scipy.sparse.csgraph import connected_components

    met = sparse.csr_array(np.array([group.responses.item_counts > 0 for group in members]).astype(np.int32))
    n_parts, part = connected_components(met @ met.T, directed=False)
    if n_parts > 1:
        with_first = part == part[0]
        names_with_first = listed(np.array(names)[with_first])
        names_of_others = listed(np.array(names)[~with_first])
        raise DisconnectedDesignError(
            f"{members[0].responses.source}: the groups {names_with_first} have no item in common with "
            f"{names_of_others}, directly or through others, so that their abilities cannot be compared. Fit them on "
            "their own, or leave the groups out if all people are from one population."
        )
