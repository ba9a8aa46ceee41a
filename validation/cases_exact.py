"""Closed forms, and exact enumeration of all patterns of answers: the definitions, computed in the plainest way."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

import spectral_irt as si
from spectral_irt.ability import form_information, score_abilities
from spectral_irt.conditional.draw import draws_given_score
from spectral_irt.conditional.exact_likelihood import information_at
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.data.block import Thresholds
from spectral_irt.persons import abilities
from validation.cases_programs import enumerate_thresholds, loglik
from validation.lab import Lab, by_label, number
from validation.plain_cml import maximum
from validation.rows import Case, Values

PART = "Closed forms and exact enumeration"
FORMULA, ENUMERATION, PLAIN = "closed form", "enumeration of all patterns", "plain conditional likelihood, scipy BFGS"
ROUNDING = "rounding of both"
OPTIMIZER = "the optimizer stops at a gradient of 1e-7"
DIFFICULTY = np.array([-1.3, -0.4, 0.1, 0.7, 1.6])  # of a test whose patterns are enumerated
THRESHOLDS = [np.array([-1.0, 0.5]), np.array([0.2, -0.3, 1.1]), np.array([0.4]), np.array([-0.8, 1.2])]


class Patterns:
    """Every pattern of answers to a test, with its score and its chance at an ability."""

    def __init__(self, thresholds: list[NDArray[np.float64]]) -> None:
        self.thresholds = thresholds
        self.categories = np.array(list(product(*(range(len(own) + 1) for own in thresholds))))
        self.score = self.categories.sum(axis=1)
        sums = [np.concatenate([[0.0], np.cumsum(own)]) for own in thresholds]
        self.difficulty = sum(own[column] for own, column in zip(sums, self.categories.T, strict=True))

    def chance(self, ability: float) -> NDArray[np.float64]:
        weight = np.exp(self.score * ability - self.difficulty)
        result: NDArray[np.float64] = weight / weight.sum()
        return result

    def given_score(self, score: int) -> NDArray[np.float64]:
        """The chance of each pattern given the score; no ability is in it."""
        weight = np.where(self.score == score, np.exp(-self.difficulty), 0.0)
        result: NDArray[np.float64] = weight / weight.sum()
        return result

    def moments(self, ability: float) -> tuple[float, float, float]:
        """Mean, variance and third central moment of the score."""
        p = self.chance(ability)
        mean = float(p @ self.score)
        deviation = self.score - mean
        return mean, float(p @ deviation**2), float(p @ deviation**3)


BINARY = Patterns([np.array([each]) for each in DIFFICULTY])
SEVERAL = Patterns(THRESHOLDS)
LAYOUT = Thresholds(np.array([len(own) for own in THRESHOLDS]))
BETA = np.concatenate(THRESHOLDS)
ABILITIES = (-2.0, -0.5, 0.0, 1.0, 2.5)


def two_items(lab: Lab, data: str) -> Values:
    """Of two items, the difference is the log of a ratio of counts, with the error of that."""
    table = np.repeat([[1, 0], [0, 1], [1, 1], [0, 0]], [30, 12, 9, 7], axis=0)
    fit = si.ConditionalRasch().fit(table)
    covariance = fit.covariance()
    return {
        "difference": float(fit.difficulty_[1] - fit.difficulty_[0]),
        "error": float(np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])),
        "log-likelihood": float(fit.loglik_),
    }


def two_items_by_hand(lab: Lab, data: str) -> Values:
    p = 30 / 42
    log_likelihood = 30 * np.log(p) + 12 * np.log(1 - p)
    return {"difference": np.log(30 / 12), "error": np.sqrt(1 / 30 + 1 / 12), "log-likelihood": log_likelihood}


def enumerated_loglik(lab: Lab, data: str) -> Values:
    """The conditional log-likelihood at our difficulties, pattern by pattern."""
    calibration = lab.study("conditional", data).calibration
    patterns = Patterns([np.array([each]) for each in calibration.difficulty])
    answers = lab.items(data).to_numpy()
    place = answers @ 2 ** np.arange(answers.shape[1])[::-1]  # patterns count in binary
    chances = np.stack([patterns.given_score(score) for score in range(answers.shape[1] + 1)])
    return number(float(np.log(chances[answers.sum(axis=1), place]).sum()))


def enumerated_errors(lab: Lab, data: str) -> Values:
    """Standard errors by the covariance of all patterns given each score."""
    calibration = lab.study("conditional", data).calibration
    patterns = Patterns([np.array([each]) for each in calibration.difficulty])
    answers = lab.items(data).to_numpy()
    information = np.zeros((answers.shape[1], answers.shape[1]))
    for score, count in enumerate(np.bincount(answers.sum(axis=1))):
        p = patterns.given_score(score)
        centered = patterns.categories - p @ patterns.categories
        information += count * (centered.T * p) @ centered
    return by_label(calibration.labels, np.sqrt(np.diag(np.linalg.pinv(information))))


def our_errors(lab: Lab, data: str) -> Values:
    calibration = lab.study("conditional", data).calibration
    return by_label(calibration.labels, calibration.se)


def information_matrix(lab: Lab, data: str) -> Values:
    """The information of all thresholds, of persons who answered a test in categories."""
    responses = si.Responses.from_wide(SEVERAL.categories, ordered=True)
    matrix = information_at(Likelihood(responses, BETA), BETA).matrix
    return {f"{i}, {j}": float(matrix[i, j]) for i in range(len(BETA)) for j in range(i, len(BETA))}


def enumerated_information(lab: Lab, data: str) -> Values:
    passed = np.concatenate(
        [(column[:, None] > np.arange(len(own))) for own, column in zip(THRESHOLDS, SEVERAL.categories.T, strict=True)],
        axis=1,
    ).astype(float)
    matrix = np.zeros((len(BETA), len(BETA)))
    for score, count in enumerate(np.bincount(SEVERAL.score)):
        p = SEVERAL.given_score(score)
        centered = passed - p @ passed
        matrix += count * (centered.T * p) @ centered
    return {f"{i}, {j}": float(matrix[i, j]) for i in range(len(BETA)) for j in range(i, len(BETA))}


def test_information(lab: Lab, data: str) -> Values:
    return by_label(ABILITIES, form_information(BETA, np.array(ABILITIES), LAYOUT))


def enumerated_test_information(lab: Lab, data: str) -> Values:
    return {str(ability): SEVERAL.moments(ability)[1] for ability in ABILITIES}


def zero(lab: Lab, data: str) -> Values:
    return {f"score {score}": 0.0 for score in range(1, BINARY.score.max())}


def likelihood_equation(lab: Lab, data: str) -> Values:
    """Score less expected score at the maximum likelihood ability: zero."""
    ability, _ = score_abilities(DIFFICULTY, warm=False)
    return {f"score {score}": score - BINARY.moments(ability[score])[0] for score in range(1, len(DIFFICULTY))}


def warm_equation(lab: Lab, data: str) -> Values:
    """r - E + J / (2 I) at Warm's ability: zero, where J is the third central moment of the score, by enumeration."""
    ability, _ = score_abilities(DIFFICULTY, warm=True)
    found = {}
    for score in range(1, len(DIFFICULTY)):
        mean, variance, third = BINARY.moments(ability[score])
        found[f"score {score}"] = score - mean + third / (2 * variance)
    return found


def posterior(lab: Lab, data: str) -> Values:
    """EAP abilities of every pattern of a test in categories, with a given population."""
    responses = si.Responses.from_wide(SEVERAL.categories, ordered=True)
    found = abilities(responses, BETA, "eap")
    assert found.prior is not None
    _, first = np.unique(SEVERAL.score, return_index=True)
    values = by_label([f"score {score}" for score in range(len(first))], found.ability[first])
    return {**values, **by_label([f"error {score}" for score in range(len(first))], found.se[first])}


def integrated_posterior(lab: Lab, data: str) -> Values:
    """The same by a sum over 20,001 points, with the population that was estimated."""
    responses = si.Responses.from_wide(SEVERAL.categories, ordered=True)
    population = abilities(responses, BETA, "eap").prior
    assert population is not None
    mean, sd = population[0], population[1]
    theta = np.linspace(mean - 12 * sd, mean + 12 * sd, 20_001)
    levels = np.arange(SEVERAL.score.max() + 1)
    log_total = np.log(np.exp(theta[:, None] * SEVERAL.score - SEVERAL.difficulty).sum(axis=1))
    log_posterior = theta * levels[:, None] - log_total - 0.5 * ((theta - mean) / sd) ** 2
    weight = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    eap = weight @ theta
    error = np.sqrt(weight @ theta**2 - eap**2)
    values = by_label([f"score {score}" for score in levels], eap)
    return {**values, **by_label([f"error {score}" for score in levels], error)}


DRAWN = 4_000  # draws of each person


def drawn_frequencies(lab: Lab, data: str) -> Values:
    """How often each pattern of score 2 is drawn given the score."""
    of_two = BINARY.categories[BINARY.score == 2]
    responses = si.Responses.from_wide(of_two.astype(float))
    drawn = np.concatenate(
        [
            block.categories.reshape(-1, 5)
            for block in draws_given_score(responses, DIFFICULTY, draws=range(DRAWN // 10), seed=5)
        ]
    )
    patterns, counts = np.unique(drawn, axis=0, return_counts=True)
    return {"".join(map(str, own)): count / len(drawn) for own, count in zip(patterns, counts, strict=True)}


def chances_given_score(lab: Lab, data: str) -> Values:
    p = BINARY.given_score(2)
    return {
        "".join(map(str, own)): float(chance) for own, chance in zip(BINARY.categories, p, strict=True) if chance > 0
    }


def plain_thresholds(lab: Lab, data: str) -> Values:
    """Thresholds, mean zero, by a plain optimizer."""
    answers = lab.items(data).to_numpy().astype(np.int64)
    sizes = answers.max(axis=0)
    design = list(np.split(np.eye(sizes.sum()), np.cumsum(sizes)[:-1]))
    parameters, largest = maximum(design, answers)
    labels = [
        f"{item}.{level + 1}"
        for item, size in zip(lab.items(data).columns, sizes, strict=True)
        for level in range(size)
    ]
    return {**by_label(labels, parameters - parameters.mean()), "log-likelihood": largest}


def our_thresholds(lab: Lab, data: str) -> Values:
    calibration = lab.study("partial credit", data).calibration
    values = dict(enumerate_thresholds(calibration, calibration.thresholds))
    return {**values, "log-likelihood": loglik("partial credit")(lab, data)[""]}


def equated(lab: Lab, data: str) -> Values:
    """The score on the last six items that stands for the same ability as a score on the first nine."""
    study = lab.study("conditional", data)
    items = list(study.calibration.labels)
    found = study.equate(items[:9], items[9:])
    scores = found.scores[0]
    return {f"score {score}": float(found.equated[0][score]) for score in scores[1:-1].tolist()}


def equated_by_bisection(lab: Lab, data: str) -> Values:
    difficulty = lab.study("conditional", data).calibration.difficulty

    def expected(ability: float, own: NDArray[np.float64]) -> float:
        return float((1 / (1 + np.exp(own - ability))).sum())

    found = {}
    for score in range(1, 9):
        low, high = -20.0, 20.0
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if expected(middle, difficulty[:9]) < score else (low, middle)
        found[f"score {score}"] = expected(low, difficulty[9:])
    return found


# Seven persons and four items; whom two labels set apart, and the items that T2 looks at.
TABLE = np.array(
    [[1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 0], [0, 1, 0, 0], [1, 1, 0, 1], [0, 0, 1, 0], [1, 0, 0, 1]], dtype=bool
)
FIRST_GROUP = np.array([True, False, True, True, False, False, True])
TABLES_DRAWN = 5_000


def tables_with_the_same_margins() -> NDArray[np.bool_]:
    """All of them, one person after the other: tables x persons x items."""
    rows = np.array(list(product([False, True], repeat=TABLE.shape[1])))
    tables = np.zeros((1, 0, TABLE.shape[1]), dtype=bool)
    for score in TABLE.sum(axis=1):
        choices = rows[rows.sum(axis=1) == score]
        longer = np.repeat(tables, len(choices), axis=0)
        last = np.tile(choices, (len(tables), 1))[:, None]
        tables = np.concatenate([longer, last], axis=1)
        tables = tables[(tables.sum(axis=1) <= TABLE.sum(axis=0)).all(axis=1)]
    return tables[(tables.sum(axis=1) == TABLE.sum(axis=0)).all(axis=1)]


def difference_of_groups(table: NDArray[np.bool_]) -> float:
    """T10: how differently pairs of items go in two groups."""
    total = 0.0
    for i, j in product(range(TABLE.shape[1]), repeat=2):
        only_i = table[:, i] & ~table[:, j]
        only_j = table[:, j] & ~table[:, i]
        total += abs(
            (only_i & FIRST_GROUP).sum() * (only_j & ~FIRST_GROUP).sum()
            - (only_j & FIRST_GROUP).sum() * (only_i & ~FIRST_GROUP).sum()
        )
    return total


def enumerated_p(lab: Lab, data: str) -> Values:
    """The share of all tables with a statistic as large as the observed one. (T11 has no place here: it takes its mean
    correlations from the draws, which break ties that small tables are full of.)"""
    tables = tables_with_the_same_margins()
    observed = int(np.flatnonzero((tables == TABLE).all(axis=(1, 2)))[0])
    statistics = {
        "T2": tables[:, :, :2].sum(axis=2).var(axis=1),
        "T10": np.array([difference_of_groups(table) for table in tables]),
    }
    return {name: float(np.mean(values >= values[observed] - 1e-9)) for name, values in statistics.items()}


def drawn_p(lab: Lab, data: str) -> Values:
    responses = si.Responses.from_wide(TABLE.astype(float))
    options = {"T2": {"items": list(responses.items[:2])}, "T10": {"split": FIRST_GROUP.tolist()}}
    return {test: si.exact_test(responses, test, draws=TABLES_DRAWN, seed=6, **own).p for test, own in options.items()}


MERGED = [0, 1, 1, 2]  # categories of an item after the move


def changed_by_hand(data: str, answers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The table as a move makes it: without an item, with two items added up, or with categories merged."""
    if data.endswith("without an item"):
        return answers[:, 1:]
    if data.endswith("two items joined"):
        return np.column_stack([answers[:, 2:], answers[:, 0] + answers[:, 1]])
    return np.column_stack([np.asarray(MERGED)[answers[:, 0]], answers[:, 1:]])


def thresholds_of_changed_table(lab: Lab, data: str) -> Values:
    """Of the table changed by hand, by a plain optimizer; items one after the other, locations of mean zero."""
    answers = changed_by_hand(data, lab.items("credit6").to_numpy().astype(np.int64))
    sizes = answers.max(axis=0)
    parameters, _ = maximum(list(np.split(np.eye(sizes.sum()), np.cumsum(sizes)[:-1])), answers)
    origin = np.mean([own.mean() for own in np.split(parameters, np.cumsum(sizes)[:-1])])
    return by_label(range(len(parameters)), parameters - origin)


def thresholds_after_move(lab: Lab, data: str) -> Values:
    study = lab.study("partial credit", "credit6")
    items = study.calibration.labels.tolist()
    moves = {
        "without an item": lambda: study.drop(items[0]),
        "two items joined": lambda: study.join(*items[:2]),
        "categories merged": lambda: study.collapse(items[0], MERGED),
    }
    changed = moves[data.partition(", ")[2]]().calibration
    # The items in the order of the table by hand: the joined one at its end.
    order = [name for name in changed.labels.tolist() if name in items] + [
        name for name in changed.labels.tolist() if name not in items
    ]
    of_item = {name: changed.thresholds[changed.layout.item == k] for k, name in enumerate(changed.labels.tolist())}
    thresholds = np.concatenate([of_item[name] for name in order])
    return by_label(range(len(thresholds)), thresholds)


def cases() -> Iterator[Case]:
    case = partial(Case, PART)
    yield case("two items", "58 persons", FORMULA, two_items_by_hand, two_items, 1e-9, ROUNDING)
    name = "conditional log-likelihood"
    yield case(name, "lsat6", ENUMERATION, enumerated_loglik, loglik("conditional"), 1e-8, ROUNDING)
    yield case("standard error", "lsat6", ENUMERATION, enumerated_errors, our_errors, 1e-9, ROUNDING)
    name = "information of thresholds"
    yield case(name, "four items", ENUMERATION, enumerated_information, information_matrix, 1e-9, ROUNDING)
    yield case(
        "test information", "four items", ENUMERATION, enumerated_test_information, test_information, 1e-10, ROUNDING
    )
    yield case("likelihood equation", "five items", ENUMERATION, zero, likelihood_equation, 1e-8, ROUNDING)
    yield case("Warm's equation", "five items", ENUMERATION, zero, warm_equation, 1e-8, ROUNDING)
    yield case(
        "posterior mean and sd", "four items", "sum over 20,001 points", integrated_posterior, posterior, 1e-6, ROUNDING
    )
    reason = "three Monte Carlo errors of the most frequent pattern"
    name = "chance of a pattern given the score"
    yield case(name, "five items", ENUMERATION, chances_given_score, drawn_frequencies, 3 * 0.5 / DRAWN**0.5, reason)
    yield case("thresholds", "credit6", PLAIN, plain_thresholds, our_thresholds, 1e-6, OPTIMIZER)
    yield case("true-score equating", "test15", "bisection", equated_by_bisection, equated, 1e-6, ROUNDING)
    name = "p-value given both margins"
    all_tables = "enumeration of all tables"
    reason = "three Monte Carlo errors of a p-value of one half"
    tolerance = 3 * 0.5 / np.sqrt(TABLES_DRAWN)
    yield case(name, "7 persons, 4 items", all_tables, enumerated_p, drawn_p, tolerance, reason, slow=True)
    for what in ("without an item", "two items joined", "categories merged"):
        name = "threshold after a move"
        data = f"credit6, {what}"
        yield case(name, data, PLAIN, thresholds_of_changed_table, thresholds_after_move, 1e-6, OPTIMIZER, slow=True)
