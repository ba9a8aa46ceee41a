"""A population of abilities on nodes, and what a block of people says given it: the kernels of marginal likelihood.

`beta` are thresholds, item after item, and `layout` says which belongs to which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import Split, by_label
from spectral_irt.data.thresholds import Thresholds, answered_items, rows_of
from spectral_irt.errors import DisconnectedDesignError, OptionError, listed
from spectral_irt.estimators.estimate import answered, person_slices
from spectral_irt.model import above, category_probabilities, sigmoid
from spectral_irt.sparse_kernels import csr
from spectral_irt.tables import Columns

REACH = 6.0  # nodes cover mu +- 6 sigma: 2e-9 of a normal distribution lies outside
# Even nodes 1.25 posterior standard deviations apart integrate a normal posterior to 1e-5, and all wider
# posteriors (of fewer answers) far better: the trapezoidal rule errs by 2 exp(-2 pi^2 / 1.25^2).
SPACING = 1.25
FEWEST, MOST = 41, 401
CELLS = 2_000_000  # people x nodes worked on at a time
EVERYBODY, NOBODYS = "all", "no group"
MOST_GROUPS = 100  # beyond, the labels are more likely names than groups, and a population needs people
FEW = 30  # people; a mean and a standard deviation from fewer say little
SHOWN = 12  # groups named in a sentence


@dataclass(frozen=True, eq=False)
class Population:
    """A distribution of abilities on nodes.

    Where its shape was estimated, log weight = constant + a' basis: `basis`, nodes x parameters, has the statistics.
    """

    nodes: Floats
    log_weights: Floats
    basis: Floats | None = None

    @property
    def mean(self) -> float:
        return float(np.exp(self.log_weights) @ self.nodes)

    @property
    def sd(self) -> float:
        weights = np.exp(self.log_weights)
        return float(np.sqrt(weights @ (self.nodes - weights @ self.nodes) ** 2))


def normalized(log_weights: Floats) -> Floats:
    """Logarithms of weights that add to one."""
    top = log_weights.max()
    return log_weights - (top + np.log(np.sum(np.exp(log_weights - top))))


def normal_population(sigma: float, n_nodes: int, mu: float = 0.0) -> Population:
    """N(mu, sigma^2) on evenly spaced nodes (trapezoidal rule).

    They lie closer together than those of Gauss and Hermite: 121 are 0.1 sigma apart, not 0.29 sigma, and a person with
    n answers has a posterior only about 2 / sqrt(n) wide.
    """
    z = np.linspace(-REACH, REACH, n_nodes)
    return Population(mu + sigma * z, normalized(-(z**2) / 2))


def enough_nodes(sigma: float, longest: int) -> int:
    """Even nodes that resolve the posterior of the person with most answers, whose information is at most n / 4."""
    narrowest = 1 / np.sqrt(1 / sigma**2 + longest / 4)
    wanted = int(np.ceil(2 * REACH * sigma / (SPACING * narrowest))) + 1
    return int(np.clip(wanted + 1 - wanted % 2, FEWEST, MOST))


# --------------------------------------------------------------------------------- kernels


def posterior(
    block: Block, start: int, stop: int, beta: Floats, population: Population, table: Floats, layout: Thresholds
) -> tuple[Floats, Floats]:
    """P(node | answers) of people `start` to `stop`, people x nodes, and the log-likelihood of each.

    log P(answers | theta) = s theta - sum of beta over thresholds passed - sum over all items answered of
    log(1 + exp(theta - beta_1) + ...): one sparse product with the table of these, items x nodes.
    """
    passed = (block.pattern(len(beta)) @ _summed(beta, layout))[2 * start : 2 * stop : 2]
    met, score = answers_of(block, start, stop, len(table), layout)
    log_p = score[:, None] * population.nodes + population.log_weights
    log_p -= met @ table
    top = log_p.max(axis=1)
    np.exp(log_p - top[:, None], out=log_p)
    total = log_p.sum(axis=1)
    log_p /= total[:, None]
    return log_p, top + np.log(total) - passed


def answers_of(block: Block, start: int, stop: int, n_items: int, layout: Thresholds) -> tuple[Any, Ints]:
    """People `start` to `stop` x items, 1 where there is an answer; and their total scores."""
    if layout.binary:
        return answered(block, start, stop, n_items), block.scores[start:stop]
    rows = rows_of(block, layout).part(start, stop)
    return csr(rows.indptr.astype(np.int32), rows.items, np.ones(len(rows.items)), n_items), rows.scores


def _summed(beta: Floats, layout: Thresholds) -> Floats:
    """The thresholds up to each one, of the same item."""
    return beta if layout.binary else layout.cumulated(beta)[layout.item, layout.level]


def log_denominators(beta: Floats, population: Population, layout: Thresholds) -> Floats:
    """log(1 + exp(theta - beta_1) + exp(2 theta - beta_1 - beta_2) + ...), items x nodes."""
    if layout.binary:
        return np.logaddexp(0, population.nodes - beta[:, None])
    cumulated = layout.cumulated(beta)
    x = population.nodes[:, None] * np.arange(cumulated.shape[1]) - cumulated[:, None, :]
    return np.asarray(np.logaddexp.reduce(x, axis=2))


def passing(beta: Floats, population: Population, layout: Thresholds) -> Floats:
    """P(X >= k) of every threshold k at every node."""
    if layout.binary:
        return sigmoid(population.nodes - beta[:, None])
    at = np.broadcast_to(population.nodes, (layout.n_items, len(population.nodes)))
    p = category_probabilities(at, layout.cumulated(beta)[:, None, :])
    return np.asarray(above(p)[layout.item, :, layout.level - 1])


def expected_counts(
    block: Block, weight: Floats | None, beta: Floats, population: Population, layout: Thresholds
) -> tuple[Floats, Floats, Floats]:
    """The E step: expected answers to each item from each node, expected people at each node, log-likelihood.

    People count by their weight, if they have one.
    """
    table = log_denominators(beta, population, layout)
    m, k = table.shape
    counts, persons, loglik = np.zeros((m, k)), np.zeros(k), 0.0
    for start, stop in person_slices(block, CELLS // k):
        post, each = posterior(block, start, stop, beta, population, table, layout)
        present = (block.counts[start:stop] > 0).astype(float)  # who has no answers says nothing about the population
        if weight is not None:
            present *= weight[start:stop]
            post *= weight[start:stop, None]
        counts += answers_of(block, start, stop, m, layout)[0].T @ post
        persons += (present > 0) @ post
        loglik += float(each @ present)
    return counts, persons, np.array(loglik)


def abilities(block: Block, beta: Floats, population: Population, layout: Thresholds) -> tuple[Floats, Floats]:
    """Posterior mean (EAP) and standard deviation of the ability of every person."""
    table = log_denominators(beta, population, layout)
    mean, sd = np.empty(block.n_persons), np.empty(block.n_persons)
    for start, stop in person_slices(block, CELLS // len(population.nodes)):
        post, _ = posterior(block, start, stop, beta, population, table, layout)
        mean[start:stop] = post @ population.nodes
        variance = post @ population.nodes**2 - mean[start:stop] ** 2
        sd[start:stop] = np.sqrt(np.maximum(variance, 0))
    return mean, sd


def thresholds_met(block: Block, start: int, stop: int, layout: Thresholds) -> tuple[Ints, NDArray[np.int32]]:
    """All thresholds of the items that people `start` to `stop` answered: where those of each begin, and which."""
    if layout.binary:
        first, last = block.indptr[start], block.indptr[stop]
        return block.indptr[start : stop + 1] - first, np.asarray(block.items[first:last])
    rows = rows_of(block, layout).part(start, stop)
    number = layout.max_score[rows.items]
    ends = np.concatenate([[0], np.cumsum(number)])
    of_item = np.repeat(layout.first[rows.items] - ends[:-1], number)
    return ends[rows.indptr], (of_item + np.arange(ends[-1])).astype(np.int32)


def expected_passes(block: Block, start: int, stop: int, p: Floats, q: Floats, layout: Thresholds) -> Any:
    """sum over nodes of p_k q_l, people x thresholds, for the thresholds k of the items that person l answered."""
    indptr, index = thresholds_met(block, start, stop, layout)
    person = np.repeat(np.arange(stop - start), np.diff(indptr))
    out = np.empty(len(index))
    size = max(1, CELLS // (4 * p.shape[1]))
    for a in range(0, len(out), size):
        rows = slice(a, a + size)
        out[rows] = np.einsum("nk,nk->n", p[index[rows]], q[person[rows]])
    return csr(indptr.astype(np.int32), index, out, len(p))


# ------------------------------------------------------------------------------------- scores of people


def population_scores(population: Population) -> Floats:
    """But for a constant the scores of the population's parameters at every node, given the ability.

    z / sigma and z^2, of the mean and of log sigma; or the statistics of a free population.
    """
    if population.basis is not None:
        return population.basis
    z = (population.nodes - population.mean) / population.sd
    return np.stack([z / population.sd, z**2], axis=1)


def marginal_scores(block: Block, beta: Floats, population: Population, layout: Thresholds) -> tuple[Any, Floats]:
    """What each person adds to the gradient of the marginal likelihood: people x thresholds, and of the population.

    E[P(X_li >= k) | answers of l] - 1{X_li >= k}; and E[z] / sigma and E[z^2] - 1, with z = (theta - mu) / sigma, for
    mean and log sigma, or the statistics of a free population.
    """
    table, p = log_denominators(beta, population, layout), passing(beta, population, layout)
    scores = population_scores(population)
    scores = scores - ([0.0, 1.0] if population.basis is None else np.exp(population.log_weights) @ scores)
    found, of_population = [], np.zeros((block.n_persons, scores.shape[1]))
    for start, stop in person_slices(block, CELLS // len(population.nodes)):
        post, _ = posterior(block, start, stop, beta, population, table, layout)
        found.append(expected_passes(block, start, stop, p, post, layout))
        of_population[start:stop] = post @ scores
    of_population[block.counts == 0] = 0
    expected = found[0] if len(found) == 1 else sparse.vstack(found, format="csr")
    expected.data -= _passed_or_not(block, layout)
    return expected, of_population


def _passed_or_not(block: Block, layout: Thresholds) -> NDArray[np.bool_]:
    """Of every threshold of the items answered, in the order of `thresholds_met`."""
    if layout.binary:
        return block.right()
    _, items, category = answered_items(block, layout)
    _, met = thresholds_met(block, 0, block.n_persons, layout)
    passed: NDArray[np.bool_] = layout.level[met] <= np.repeat(category, layout.max_score[items])
    return passed


# ------------------------------------------------------------------------------------- several populations


@dataclass(frozen=True, eq=False)
class Members:
    """The people of one population: their answers, and how much each counts."""

    responses: Responses
    weights: Floats | None = None

    @property
    def layout(self) -> Thresholds:
        return self.responses.thresholds

    @property
    def size(self) -> float:
        """How many answered anything, by their weights."""
        there = self.responses.counts > 0
        return float(there.sum() if self.weights is None else there @ self.weights)

    def counts(self, beta: Floats, population: Population) -> tuple[Floats, Floats, Floats]:
        """The E step over all of them; see `expected_counts`."""
        return self.sum(expected_counts, beta, population, self.layout)

    def passed(self) -> Floats:
        """How many passed each threshold: are in its category or above."""
        entries, layout = self.responses.entries, self.layout
        last = entries.item_scores.astype(float) if self.weights is None else self.sum(_passed_last, entries.n_items)
        if layout.binary:
            return last
        total = np.append(np.cumsum(last[::-1])[::-1], 0.0)
        return total[:-1] - total[(layout.first + layout.max_score)[layout.item]]

    def sum(self, kernel: Any, *args: Any) -> Any:
        """A kernel over all blocks, which is given the weights, or None."""
        return self.responses.entries.sum(kernel, *args, persons=(self.weights,))


def _passed_last(block: Block, weight: Floats, n: int) -> Floats:
    """How many passed each threshold and not the next."""
    return block.halves(n)[0].T @ weight


Several = Responses | Members | Sequence[Responses | Members]


def members(responses: Several) -> list[Members]:
    """The people of each population."""
    several = [responses] if isinstance(responses, Responses | Members) else responses
    return [one if isinstance(one, Members) else Members(one) for one in several]


@dataclass(frozen=True, eq=False)
class People:
    """The responses of each group, over the same items."""

    split: Split
    answers: tuple[Responses, ...]
    findings: tuple[Finding, ...] = ()


def people_by_group(responses: Responses, labels: Any) -> People:
    """The people of every group that answered anything; those without a label are a group of their own."""
    if labels is None:
        everyone = Split((EVERYBODY,), np.zeros(responses.n_persons, dtype=np.int64))
        return People(everyone, (responses,))
    split = by_label(responses, labels)
    without = split.group < 0
    if without.any():
        split = Split((*split.names, NOBODYS), np.where(without, split.n_groups, split.group))
    # Somebody without answers is in no population; a place among the others does no harm.
    occupied = np.bincount(split.group[responses.counts > 0], minlength=split.n_groups) > 0
    split = split.keep(occupied)
    split = Split(split.names, np.maximum(split.group, 0))
    if split.n_groups > MOST_GROUPS:
        raise OptionError(
            f"there are {split.n_groups:,} groups ({listed(split.names)}); at most {MOST_GROUPS} can have a population "
            "each. Merge them into a few, each of some hundred people."
        )
    parts = tuple(responses.take_persons(split.members(g)) for g in range(split.n_groups))
    _check_linked(parts, split.names)
    findings = []
    if NOBODYS in split.names:
        n = int(np.sum(without & (responses.counts > 0)))
        findings.append(
            Finding(
                "people_without_group",
                "note",
                f"{n:,} {'person is' if n == 1 else 'people are'} in none of the groups, and taken as one together.",
            )
        )
    return People(split, parts, tuple(findings))


def _check_linked(parts: tuple[Responses, ...], names: tuple[str, ...]) -> None:
    """Means of groups can be compared only through items in common."""
    from scipy.sparse.csgraph import connected_components

    met = sparse.csr_array(np.array([part.item_counts > 0 for part in parts]).astype(np.int8))
    _, label = connected_components(sparse.block_array([[None, met], [met.T, None]]), directed=False)
    label = label[: len(parts)]
    if len(np.unique(label)) > 1:
        first = listed(np.array(names)[label == label[0]])
        rest = listed(np.array(names)[label != label[0]])
        raise DisconnectedDesignError(
            f"{parts[0].source}: the groups {first} have no item in common with {rest}, directly or through others, so "
            "that their abilities cannot be compared. Fit them on their own, or leave the groups out if all people are "
            "from one population."
        )


def population_findings(table: Columns, estimated: bool) -> list[Finding]:
    """The means and standard deviations of the groups, and which groups are small for them."""
    rows = list(zip(table["group"], table["mean"], table["sd"], strict=True))
    said = "; ".join(f"{group}: {mean:z.2f}, {sd:.2f}" for group, mean, sd in rows[:SHOWN])
    more = f"; and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    what = "mean and standard deviation" if estimated else "mean, and the standard deviation that was given,"
    found = [Finding("populations", "note", f"Ability in the {len(rows)} groups, {what}: {said}{more}.")]
    small = np.array(table["group"])[np.array(table["n"]) < FEW]
    if len(small):
        found.append(
            Finding(
                "small_groups",
                "warning",
                f"{listed(small)} {'has' if len(small) == 1 else 'have'} fewer than {FEW} people, too few to tell a "
                "mean and a standard deviation of ability.",
                "Merge small groups.",
            )
        )
    return found
