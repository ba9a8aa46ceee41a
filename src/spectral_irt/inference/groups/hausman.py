"""Do conditional and marginal likelihood agree? A test of what each of them takes for granted.

Conditional likelihood assumes that nobody's items were chosen by that person's answers, marginal likelihood that
abilities are normal (in each group). Where both hold they estimate the same difficulties; where one fails they part.
Hausman's test (1978) compares two such estimates. His covariance of the difference, V_conditional - V_marginal, need
not be positive in a sample. Here it comes from what each person contributes, which is right in general; and it is a
score test, so that only one of the two has to be fitted. At the marginal estimate b of the difficulties,

    T = W' sum_l r_l,   r_l = g_l - H [J^-1 u_l],   T' (sum_l W' r_l r_l' W)^-1 T ~ Hotelling, K and n - K,

with g_l = P(X_l | s_l) - X_l the person's score in the conditional likelihood, H its information, u_l the score in the
marginal likelihood, of difficulties and populations, and J its observed information. It does not matter to first order
that b is not quite the maximum. W holds a few directions in which difficulties may part: in proportion to difficulty
(adaptive designs stretch the conditional ones), in its square and cube (populations that are not normal), with the
level of the other items that the same people met (forms for different people), and with the number of answers; so the
test keeps its level with any number of items.

References
----------
Hausman (1978), Econometrica 46, 1251-1271. Neyman (1959), on C(alpha) tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.conditional.given_score import SERIES_FROM, conditional_probabilities, pattern_sums
from spectral_irt.conditional.information import Information
from spectral_irt.conditional.patterns import pattern_parts
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.same_items import distinct_rows
from spectral_irt.engine import one_blas_thread
from spectral_irt.errors import DesignError
from spectral_irt.estimators.marginal_em import marginal_difficulty
from spectral_irt.estimators.marginal_groups import People, people_by_group
from spectral_irt.estimators.marginal_information import marginal_information
from spectral_irt.estimators.marginal_scores import marginal_scores
from spectral_irt.estimators.population import enough_nodes
from spectral_irt.inference.groups.grouping import ability_and_level, item_sets
from spectral_irt.inference.probability import f_tail, two_sided
from spectral_irt.inference.results import Result

MOST_ITEMS = 500  # with more a sample of them is compared: the information of marginal likelihood is a dense matrix
MOST_RESPONSES = 50_000  # with more a sample of the people: enough for power, half a second of work
LEAST_PEOPLE = 50  # with both right and wrong answers; with fewer nothing can be told
STEP, PASSES = 1e-3, 30  # of the marginal likelihood: what is missing to the maximum is accounted for
WIDE = 3.0  # standard deviations to which the directions are cut: no single far item may decide
CODE = "conditional_against_marginal"
OF_FORM, MOST_FORMS, MOSTLY = 20, 50, 0.9  # people of a form; forms; share of people on them
FOLLOW, ROUTED = 0.6, 0.97  # chance that one of a form scores above one of another on common items: abler; told apart
LEVEL = 0.01  # of the finding: adaptive designs are told from others by ten standard errors and more
# The finding is about what matters: root mean squares over the items, in logits and in standard errors.
NOTABLE, OF_ERROR = 0.05, 0.5  # half a standard error off, an interval of 95% holds 92%


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class HausmanTest(Result):
    """What `hausman` found.

    `table()` has, for each direction, `direction, difference, se, z, p`: by how much conditional difficulties exceed
    marginal ones along it; for "difficulty" it is how much farther apart conditional difficulties lie, as a share.

    Attributes
    ----------
    size : float
        The difference along all directions, as its root mean square over the items, in logits: one Newton step of the
        conditional likelihood away from the marginal estimate.
    stretch : float
        How many times as far apart the conditional difficulties lie, by the same step.
    in_errors : float
        `size` in standard errors of the difficulties.
    n_people, n_items : int
        Who and what was compared: a sample, where there is very much of either.
    """

    name = "Hausman test"

    size: float
    stretch: float
    in_errors: float
    n_people: int
    n_items: int


def hausman(calibration: Calibration, responses: Responses, groups: Any = None, *, seed: int = 0) -> HausmanTest:
    """Test conditional against marginal difficulties.

    Parameters
    ----------
    calibration, responses
        The data that were calibrated, in the order of the calibration's items.
    groups : labels or mapping, optional
        The group of each person; abilities are then normal in each group, not over all.
    seed : int
        Draws the samples of items (more than 500) and of people (more than 50,000 responses).

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, simulate
    >>> answers = simulate.rasch(500, 60, design="adaptive", length=15, seed=1).responses
    >>> hausman(SpectralRasch().fit(answers).calibration_, answers).p < 0.001
    True
    """
    return compare_likelihoods(responses, np.where(calibration.measured, calibration.difficulty, np.nan), groups, seed)


def quick_hausman(responses: Responses, start: Floats, groups: Any = None) -> HausmanTest | None:
    """`compare_likelihoods` where the data allow it; None otherwise."""
    try:
        return compare_likelihoods(responses, start, groups)
    except (DesignError, np.linalg.LinAlgError):  # too few people or items, or directions that cannot be told apart
        return None


def compare_likelihoods(responses: Responses, start: Floats, groups: Any = None, seed: int = 0) -> HausmanTest:
    """`hausman` from any rough difficulties, NaN for items to be left out."""
    chosen, people, share = _sample(responses, np.flatnonzero(np.isfinite(start)), groups, seed)
    with one_blas_thread():  # small matrices, sooner done by one thread than several are woken
        return by_design(_tested(responses, start[chosen], people, share, groups is not None), responses)


def _tested(responses: Responses, difficulty: Floats, people: People, share: float, grouped: bool) -> HausmanTest:
    parts = people.answers
    n = sum(int(np.sum((part.scores > 0) & (part.scores < part.counts))) for part in parts)
    if n < LEAST_PEOPLE or len(difficulty) < 3:
        raise DesignError(
            f"{responses.source}: {n:,} people have both right and wrong answers to the {len(difficulty):,} items that "
            f"can be compared; a test of conditional against marginal likelihood needs {LEAST_PEOPLE} and 3 items."
        )
    start = difficulty - difficulty.mean()
    fit = marginal_difficulty(parts, start=start, nodes=_nodes(parts, start), tol=STEP, max_iter=PASSES)
    beta = fit.difficulty
    counts = np.sum([part.item_counts for part in parts], axis=0).astype(float)
    levels = np.sum([part.sum(_levels, beta) for part in parts], axis=0) / counts
    names, W = directions(beta, levels, np.log(counts))
    HW = _conditional_information(parts, beta, W)
    found = marginal_information(parts, beta, fit.populations, with_sigma=True)
    inverse: Any = np.linalg.inv(found.whole())
    B = inverse[:, : len(beta)] @ HW
    of_populations = np.zeros((2 * len(parts), W.shape[1]))
    of_populations[found.there] = B[len(beta) :]
    r = _contributions(people, beta, fit.populations, W, B[: len(beta)], of_populations)
    of_items = np.diag(inverse)[: len(beta)]
    what = f"conditional against marginal difficulties of {len(beta):,} items, {n:,} people"
    finding = _finding(grouped)
    return Compared(names, W, HW, beta, of_items, n, share, what, finding, responses.frame_kind).concluded(r)


@dataclass(frozen=True, eq=False)
class Compared:
    """Two likelihoods compared in some directions W of their parameters; see the top of the module.

    Attributes
    ----------
    HW : float array
        The information of the conditional likelihood in these directions.
    difficulty, variance : float arrays
        Of the items, and of their estimates.
    n : int
        People.
    share : float
        Which share of all answers was compared.
    finding : function of p, size and stretch
    to_items : float array, optional
        What a step of the parameters is for the items, where these have several.
    """

    names: list[str]
    W: Floats
    HW: Floats
    difficulty: Floats
    variance: Floats
    n: int
    share: float
    what: str
    finding: Callable[[float, float, float], Finding]
    frame_kind: str | None
    to_items: Floats | None = None

    def concluded(self, r: Floats) -> HausmanTest:
        """The test, from what every person contributes."""
        T, V = r.sum(axis=0), r.T @ r
        K, n, W = len(self.names), self.n, self.W
        statistic = float(T @ np.linalg.solve(V, T))
        p = float(f_tail(statistic * (n - K) / (K * (n - 1)), K, n - K))
        information = np.einsum("ik,ik->k", W, self.HW)
        difference, se = T / information, np.sqrt(np.diag(V)) / information
        step = W @ np.linalg.solve(W.T @ self.HW, T)
        step = step if self.to_items is None else self.to_items @ step
        beta = self.difficulty - (0.0 if self.to_items is None else self.difficulty.mean())
        size, stretch = float(np.sqrt(np.mean(step**2))), 1 + float(beta @ step / (beta @ beta))
        in_errors = float(np.sqrt(np.mean(step**2 / self.variance) / self.share))
        notable = p < LEVEL and size >= NOTABLE and in_errors >= OF_ERROR
        return HausmanTest(
            statistic=statistic,
            df=K,
            p=p,
            df2=float(n - K),
            compared=self.what,
            columns={
                "direction": np.array(self.names),
                "difference": difference,
                "se": se,
                "z": difference / se,
                "p": two_sided(difference / se),
            },
            frame_kind=self.frame_kind,
            findings=(self.finding(p, size, stretch),) if notable else (),
            size=size,
            stretch=stretch,
            in_errors=in_errors,
            n_people=n,
            n_items=len(self.difficulty),
        )


def _sample(responses: Responses, chosen: Ints, groups: Any, seed: int) -> tuple[Ints, People, float]:
    """Items with right and wrong answers, people who answered them, and which share of all: a sample of very many."""
    rng = np.random.default_rng(seed)
    people = people_by_group(responses, groups)
    if len(chosen) > MOST_ITEMS:
        chosen = np.sort(rng.choice(chosen, MOST_ITEMS, replace=False))
    share = min(1.0, MOST_RESPONSES / max(int(responses.item_counts[chosen].sum()), 1))
    parts = []
    for part in people.answers:
        some = part if share == 1 else part.take_persons(rng.random(part.n_persons) < share)
        some = some if len(chosen) == responses.n_items else some.take_items(chosen)
        parts.append(some if share == 1 else some.in_one_block())  # tables that each block makes are made once
    right = np.sum([part.item_scores for part in parts], axis=0)
    mixed = (right > 0) & (right < np.sum([part.item_counts for part in parts], axis=0))
    if not mixed.all():
        chosen, parts = chosen[mixed], [part.take_items(mixed) for part in parts]
    return chosen, People(people.split, tuple(parts)), share


def _nodes(parts: tuple[Responses, ...], start: Floats) -> int:
    """Quadrature nodes that are enough for abilities as far apart as they seem, which is a little too far."""
    rough = np.concatenate([part.gather(ability_and_level, start)[0] for part in parts])
    longest = max(int(part.counts.max(initial=1)) for part in parts)
    return enough_nodes(float(np.clip(rough.std(), 0.5, 10)), longest)


def _levels(block: Block, beta: Floats) -> Floats:
    """Sum over the answers to each item of the mean difficulty of all items that the person answered."""
    totals = block.pattern(len(beta)) @ beta
    mean = (totals[0::2] + totals[1::2]) / np.maximum(block.counts, 1)
    return block.pattern(len(beta)).T @ np.repeat(mean, 2)


def directions(beta: Floats, levels: Floats, popularity: Floats) -> tuple[list[str], Floats]:
    """Difficulty, its square and cube, the level of the other items, popularity: each without those before it."""
    z = np.clip((beta - beta.mean()) / max(float(beta.std()), 1e-12), -WIDE, WIDE)
    names, columns = ["difficulty"], [beta - beta.mean()]
    further = {"its square": z**2, "its cube": z**3, "items met with it": levels, "number of answers": popularity}
    for name, values in further.items():
        before = np.stack([np.ones(len(beta)), *columns], axis=1)
        rest = values - before @ np.linalg.lstsq(before, values, rcond=None)[0]
        if rest.std() > 1e-6 * max(1.0, float(np.abs(values).max())) and len(columns) < len(beta) - 2:
            names.append(name)
            columns.append(rest / rest.std())
    return names, np.stack(columns, axis=1)


def _conditional_information(parts: tuple[Responses, ...], beta: Floats, W: Floats) -> Floats:
    """H W for the information H of the conditional likelihood."""
    total = np.zeros_like(W)
    for part in parts:
        patterns = distinct_rows(part)
        tiles = part.engine.hold(pattern_parts(patterns.rows, patterns.count, part.thresholds))
        total += Information(tiles.map_and_sum(pattern_sums, beta)[0], len(beta)) @ W
    return total


def _contributions(
    people: People, beta: Floats, populations: Any, W: Floats, B: Floats, of_populations: Floats
) -> Floats:
    """W' r_l of every person."""
    n_groups = len(people.answers)
    rows = []
    for g, (part, population) in enumerate(zip(people.answers, populations, strict=True)):
        own = of_populations[[g, n_groups + g]]  # of its mean and of its log sigma
        rows.append(part.gather(_contribution, beta, population, W, B, own))
    return np.concatenate(rows)


def _contribution(block: Block, beta: Floats, population: Any, W: Floats, B: Floats, own: Floats) -> Floats:
    given_score = conditional_probabilities(block, beta, series_from=SERIES_FROM) - block.right()
    given_all, of_population = marginal_scores(block, beta, population)
    total = np.empty((block.n_persons, W.shape[1]))
    person = block.person_of_response()
    for k in range(W.shape[1]):
        each = given_score * W[block.items, k] - given_all * B[block.items, k]
        total[:, k] = np.bincount(person, weights=each, minlength=block.n_persons)
    return total - of_population @ own


def _finding(grouped: bool) -> Callable[[float, float, float], Finding]:
    one = "abilities are not from one normal population, as when forms are for different people"
    population = "abilities in the groups are not normal" if grouped else one
    where = " (with `groups=` where forms are for different people)"
    return partial(parted, "Difficulties", population, where)


def parted(things: str, population: str, where: str, p: float, size: float, stretch: float) -> Finding:
    """What to say where the likelihoods disagree; `things` are what they estimate."""
    wider = f"about {stretch:.1f} times as far apart" if abs(stretch - 1) >= 0.05 else f"{size:.2f} logits off"
    said = "< 0.001" if p < 0.001 else f"= {p:.3f}"
    return Finding(
        CODE,
        "warning",
        f"{things} by conditional and by marginal maximum likelihood (CML, MML) disagree (p {said}; those of CML are "
        f"{wider}). Either items were chosen by the answers (adaptive test, routing, stopping rule), and then CML is "
        f"wrong; or {population}, and then MML is.",
        f"If the answers decided what came next, say `design='adaptive'`{where}. If they did not, keep the "
        f"{things.lower()} by CML, those of the spectral and the conditional estimator.",
    )


def by_design(test: HausmanTest, responses: Responses) -> HausmanTest:
    """The test with a note in place of the warning where people got forms for their level, which explains it."""
    if not test.findings or not forms_follow_ability(responses):
        return test
    note = "Here forms are for people of different ability, and their answers did not choose them: CML holds."
    findings = tuple(replace(one, severity="note", sentence=f"{one.sentence} {note}") for one in test.findings)
    return replace(test, findings=findings)


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
