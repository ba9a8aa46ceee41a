"""Cut scores: how many people are in which class, and how sure that is.

Two questions about a decision (Lee 2010, Rudner 2005). Accuracy: the chance that somebody is put in the class that the
true ability belongs to. Consistency: the chance that two tests of the same kind put somebody in the same class.

People on a form (`persons/forms.py`) have a class for every raw score. With w the distribution of ability on the form,

    accuracy = sum_c of w(theta in c) P(class c | theta),      consistency = sum_c of w(theta) P(class c | theta)^2,

where P(class | theta) adds the exact chances of the scores in the class, from the elementary symmetric functions. w is
what the scores on the form say: a normal distribution by maximum likelihood, and some steps of EM from there, which
follow the scores where abilities are not normal.

Of people who share a set of items with nobody, the true ability is taken to be normal around the posterior mean under a
normal population; and given the ability, the score on another test of the same items is normal but for its steps.

References
----------
Lee (2010), Journal of Educational Measurement 47, 1-17; Rudner (2005), Practical Assessment, Research & Evaluation
10(13); Lord & Wingersky (1984), Applied Psychological Measurement 8, 453-461.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Scale
from spectral_irt.errors import OptionError, Words, option
from spectral_irt.inference.tails import upper
from spectral_irt.ordered_ability import posterior, score_moments
from spectral_irt.persons.abilities import Abilities, abilities, answers_with_difficulty
from spectral_irt.persons.forms import Forms
from spectral_irt.persons.ordered_people import OrderedPeople
from spectral_irt.persons.posterior import log_spread, settle
from spectral_irt.persons.residuals import probabilities
from spectral_irt.persons.taken import Taken
from spectral_irt.responses import Block, Responses
from spectral_irt.responses.block import Floats, Ints
from spectral_irt.tables import Columns

EQUAL = 1e-6  # logits: an ability that is the cut but for rounding is at the cut
NODES, WIDE = 801, 6.0  # of the grid of abilities, over so many standard deviations either way
STEPS = 20  # of EM from the normal population towards the scores as they are
NORMAL_NODES = 7  # of the rule over a normal posterior
ENOUGH = 100  # people on a form from whom its own population is estimated; else it is that of everybody


@dataclass(frozen=True)
class Decision:
    """What to expect of one way to put people into classes, each a share of the people.

    Attributes
    ----------
    accuracy, consistency : float
    too_high, too_low : float
        People in a class above, and below, that of their true ability; with accuracy these add to one.
    """

    accuracy: float = float("nan")
    consistency: float = float("nan")
    too_high: float = float("nan")
    too_low: float = float("nan")


def class_of(ability: Floats, cuts: Floats) -> Ints:
    """The class of each ability: 0 below the first cut, 1 from it on, ..."""
    return np.searchsorted(cuts - EQUAL, ability, side="right")


def scale_cuts(cuts: Sequence[float], test: Taken, scale: Scale) -> tuple[Floats, Floats]:
    """Cuts on the scale of report: in logits, and as given, increasing; an error where nobody could be on one side."""
    given = _increasing(cuts)
    at = (given - scale.mean) / scale.unit
    n = len(test.known)
    low, high = test.ends() if n else (0.0, 0.0)
    worst, best = test.ends_are
    for cut, logit in zip(given.tolist(), at.tolist(), strict=True):
        if not low < logit <= high + EQUAL:
            raise OptionError(
                f"the cut {cut:g} is outside the scale, on which {scale.measure(low):.4g} is {worst} and "
                f"{scale.measure(high):.4g} {best} on all {n:,} items"
                f"{' (in logits)' if scale.is_logits else ''}. Choose one between them."
            )
    return at, given


def raw_cuts(cuts: Sequence[float], test: Taken, forms: Forms, found: Abilities) -> tuple[Floats, Floats]:
    """Cuts as raw scores on the whole test: the abilities these scores stand for, and the scores, increasing."""
    given = _increasing(cuts)
    lengths = [len(items) for items in forms.items]
    whole = [k for k, n in enumerate(lengths) if len(lengths) == 1 or n == len(test.known)]
    if not whole:
        how = "did not answer the same items" if len(lengths) else "share no form"
        raise OptionError(
            f"a cut in raw scores is about one form, and these people {how} ({len(lengths):,} forms). Give the cut on "
            "the scale of the abilities: ",
            Words("leave out raw=True.", "--cut instead of --cut-score."),
        )
    items = forms.items[whole[0]]
    most = test.most(items)
    for cut in given.tolist():
        if cut != int(cut) or not 1 <= cut <= most:
            raise OptionError(f"the cut {cut:g} is not a raw score from 1 to {most:,}, which the form has.")
    table = test.of_scores(items, found.method, found.prior)[0]
    at = table[given.astype(np.int64)]
    if not np.isfinite(at).all():
        raise OptionError(
            f"the highest score ({most:,}) has no finite ability by maximum likelihood; choose a lower cut, or ",
            option("ability", "wle"),
            ".",
        )
    return at, given


def _increasing(cuts: Sequence[float]) -> Floats:
    given = np.sort(np.asarray(cuts, dtype=np.float64))
    if not len(given) or not np.isfinite(given).all() or len(np.unique(given)) < len(given):
        raise OptionError("cuts are one or more different numbers, as in 450,550.")
    return given


def cut_columns(
    test: Taken,
    others: Others,
    cuts: Floats,
    found: Abilities,
    forms: Forms,
    prior: tuple[float, float] | None,
) -> Columns:
    """`class, ability, se, n, share, accuracy, consistency, too_high, too_low`: a row for each class, and one for all.

    Parameters
    ----------
    test : Taken
    others : Others
        People on no form, and the errors at the cuts.
    cuts : float array
        In logits, increasing. A class holds its lower cut.
    found : Abilities
        By which people are classified.
    forms : Forms
    prior : (float, float) or None
        Mean and standard deviation of the normal population of everybody; None where none can be estimated, and then
        there is no accuracy.

    Notes
    -----
    `ability` is the cut at the lower end of the class, `se` the standard error of an ability there (over people with
    different items a root mean square), and accuracy and consistency are those of the decision at that cut alone: is
    somebody below or not? The last row, `all`, has those of all classes together.
    """
    known = np.isfinite(found.ability) | found.extreme
    n = np.bincount(class_of(found.ability[known], cuts), minlength=len(cuts) + 1)
    ways = [*(cuts[k : k + 1] for k in range(len(cuts))), cuts]
    how = decisions(test, others, ways, found, forms, prior)
    nothing = Decision()
    rows = [nothing, *how]
    return {
        "class": np.array([*(str(k + 1) for k in range(len(cuts) + 1)), "all"], dtype=object),
        "ability": np.concatenate([[np.nan], cuts, [np.nan]]),
        "se": np.concatenate([[np.nan], others.error_at(cuts), [np.nan]]),
        "n": np.append(n, n.sum()),
        "share": np.append(n, n.sum()) / max(int(n.sum()), 1),
        **{
            name: np.array([getattr(row, name) for row in rows])
            for name in ("accuracy", "consistency", "too_high", "too_low")
        },
    }


def decisions(
    test: Taken,
    others: Others,
    ways: list[Floats],
    found: Abilities,
    forms: Forms,
    prior: tuple[float, float] | None,
) -> list[Decision]:
    """Accuracy and consistency of each of several sets of cuts."""
    if prior is None:
        return [Decision() for _ in ways]
    parts: list[tuple[int, list[Decision]]] = []
    for k, items in enumerate(forms.items):
        scores = found.score[forms.form == k]
        table = test.of_scores(items, found.method, found.prior)[0]
        counts = np.bincount(scores, minlength=len(table))
        parts.append((len(scores), _on_a_form(partial(test.chances, items), counts, table, ways, prior)))
    alone = np.flatnonzero((forms.form < 0) & (found.n > 0))
    if len(alone):
        parts.append((len(alone), _of_others(others, ways, found, alone, prior)))
    total = sum(n for n, _ in parts)
    return [_mean([(n / total, each[k]) for n, each in parts]) for k in range(len(ways))]


def _mean(parts: list[tuple[float, Decision]]) -> Decision:
    names = ("accuracy", "consistency", "too_high", "too_low")
    return Decision(**{name: sum(share * getattr(one, name) for share, one in parts) for name in names})


# ---------------------------------------------------------------------------------------------- on a form


def _on_a_form(
    of_scores: Callable[[Floats], Floats], counts: Ints, table: Floats, ways: list[Floats], prior: tuple[float, float]
) -> list[Decision]:
    mean, sd = prior
    theta = mean + sd * np.linspace(-WIDE, WIDE, NODES)
    chances = of_scores(theta)
    weight = _distribution(theta, chances, counts, prior)
    found = []
    for cuts in ways:
        observed = _in_classes(chances, class_of(table, cuts), len(cuts) + 1)
        true = _true_class(theta, cuts)
        joint = true.T @ (weight[:, None] * observed)  # true class x observed class
        found.append(
            Decision(
                float(np.trace(joint)),
                float(weight @ (observed**2).sum(axis=1)),
                float(np.triu(joint, 1).sum()),
                float(np.tril(joint, -1).sum()),
            )
        )
    return found


def _distribution(theta: Floats, chances: Floats, counts: Ints, prior: tuple[float, float]) -> Floats:
    """Weights of the abilities on the grid: the mean posterior of the people with these scores."""
    share = counts / counts.sum()

    def normal(mean: float, sd: float) -> Floats:
        density = np.exp(-(((theta - mean) / sd) ** 2) / 2)
        return density / density.sum()

    def posterior(weight: Floats) -> Floats:
        joint = weight[:, None] * chances
        return joint @ (share / np.maximum(joint.sum(axis=0), np.finfo(float).tiny))

    def image(here: Floats) -> Floats:
        after = posterior(normal(here[0], float(np.exp(here[1]))))
        mean = float(after @ theta)
        return np.array([mean, log_spread(np.sqrt(after / after.mean()) * (theta - mean), np.zeros(1))])

    mean, sd = prior
    if counts.sum() >= ENOUGH:
        mean, log_sd = settle(image, np.array([mean, np.log(sd)]))
        sd = max(float(np.exp(log_sd)), float(theta[1] - theta[0]))  # no narrower than the grid
        weight = normal(mean, sd)
        for _ in range(STEPS):
            weight = posterior(weight)
        return weight
    return posterior(normal(mean, sd))


def _in_classes(chances: Floats, of_score: Ints, n_classes: int) -> Floats:
    """P(class | ability), abilities x classes."""
    return chances @ (of_score[:, None] == np.arange(n_classes))


def _true_class(theta: Floats, cuts: Floats) -> Floats:
    """The share of the cell around each ability that lies in each class, abilities x classes."""
    step = theta[1] - theta[0]
    above = np.clip((theta[:, None] - cuts) / step + 0.5, 0, 1)
    return -np.diff(np.pad(above, ((0, 0), (1, 1)), constant_values=((0, 0), (1, 0))), axis=1)


# ------------------------------------------------------------------------------------------------- others


class Others(Protocol):
    """People on no form, and the errors of everybody at the cuts."""

    def posterior(self, people: Ints, prior: tuple[float, float]) -> tuple[Floats, Floats]:
        """Posterior mean and standard deviation of these people."""
        ...

    def again(self, people: Ints, ability: Floats, se: Floats, mine: Ints, cuts: Floats, found: Abilities) -> Floats:
        """The chance that another test of the same items puts each of them in the same class."""
        ...

    def error_at(self, cuts: Floats) -> Floats:
        """Standard error of an ability at each cut: the root of the mean of 1 / information over all with answers."""
        ...


def _of_others(
    others: Others, ways: list[Floats], found: Abilities, people: Ints, prior: tuple[float, float]
) -> list[Decision]:
    """Of people with items of their own: a normal posterior, and normal scores of another test given the ability."""
    ability, se = others.posterior(people, prior)
    made = []
    for cuts in ways:
        mine = class_of(found.ability[people], cuts)
        below, upto = (upper((ability - np.concatenate([[-np.inf], cuts, [np.inf]])[mine + k]) / se) for k in (0, 1))
        again = others.again(people, ability, se, mine, cuts, found)
        shares = (upto - below, again, below, 1 - upto)
        made.append(Decision(*(float(np.mean(share)) for share in shares)))
    return made


Moments = Callable[[Floats], tuple[Floats, Floats, Floats]]


def same_class(
    sums: Moments,
    mean: Floats,
    sd: Floats,
    mine: Ints,
    cuts: Floats,
    method: str,
    prior: tuple[float, float] | None,
) -> Floats:
    """The chance that another test of the same items puts each person in the same class.

    An ability reaches the cut where the score reaches what the equation of the method asks for there (`ability.py`);
    given the ability, scores are normal but for their steps. `sums` has mean, variance and third moment of the total
    score of each person at these abilities.
    """
    needed = []
    for cut in cuts.tolist():
        expected, variance, lean = sums(np.full(len(mean), cut))
        if method == "wle":
            expected = expected - lean / (2 * variance)
        elif method == "eap" and prior is not None:
            expected = expected + (cut - prior[0]) / prior[1] ** 2
        needed.append(np.ceil(expected - EQUAL))
    limits = np.stack([np.full(len(mean), -np.inf), *needed, np.full(len(mean), np.inf)])
    low, high = (limits[mine + k, np.arange(len(mean))] for k in (0, 1))
    same = np.zeros(len(mean))
    for node, weight in zip(*np.polynomial.hermite_e.hermegauss(NORMAL_NODES), strict=True):
        expected, variance, _ = sums(mean + node * sd)
        spread = np.sqrt(variance)
        same += weight * (upper((low - 0.5 - expected) / spread) - upper((high - 0.5 - expected) / spread))
    return same / np.sqrt(2 * np.pi)


@dataclass(frozen=True, eq=False)
class RightOrWrongPeople:
    """`Others` with right and wrong answers."""

    responses: Responses
    difficulty: Floats

    def posterior(self, people: Ints, prior: tuple[float, float]) -> tuple[Floats, Floats]:
        theirs = self.responses.take_users(people)
        found = abilities(theirs, self.difficulty, "eap", prior_mean=prior[0], prior_sd=prior[1])
        return found.ability, found.se

    def again(self, people: Ints, ability: Floats, se: Floats, mine: Ints, cuts: Floats, found: Abilities) -> Floats:
        theirs, how = self.responses.take_users(people), (cuts, found.method, found.prior)
        return np.asarray(theirs.gather(_same_class, self.difficulty, *how, persons=(ability, se, mine)))

    def error_at(self, cuts: Floats) -> Floats:
        total, people = self.responses.sum(_inverse_information, self.difficulty, cuts)
        return np.sqrt(total / max(people, 1))


def _same_class(
    block: Block,
    mean: Floats,
    sd: Floats,
    mine: Ints,
    difficulty: Floats,
    cuts: Floats,
    method: str,
    prior: tuple[float, float] | None,
) -> Floats:
    block = answers_with_difficulty(block, difficulty)
    users = np.flatnonzero(block.counts)
    every = np.zeros(block.n_users)

    def sums(theta: Floats) -> tuple[Floats, Floats, Floats]:
        every[users] = theta
        p = probabilities(block, difficulty, every)
        v = p * (1 - p)
        expected, variance, lean = (np.add.reduceat(x, block.indptr[users]) for x in (p, v, v * (1 - 2 * p)))
        return expected, variance, lean

    out = np.full(block.n_users, np.nan)
    out[users] = same_class(sums, mean[users], sd[users], mine[users], cuts, method, prior)
    return out


@dataclass(frozen=True, eq=False)
class PeopleInCategories:
    """`Others` with ordered answers."""

    people: OrderedPeople

    def posterior(self, people: Ints, prior: tuple[float, float]) -> tuple[Floats, Floats]:
        patterns = self.people.patterns
        ability, se = posterior(patterns.rows, self.people.steps, self.people.thresholds, *prior)
        of = patterns.of_person[people]
        return ability[of], se[of]

    def again(self, people: Ints, ability: Floats, se: Floats, mine: Ints, cuts: Floats, found: Abilities) -> Floats:
        patterns = self.people.patterns
        rows = patterns.rows.take(patterns.of_person[people])
        cumulated = self.people.steps.cumulated(self.people.thresholds)
        sums = partial(score_moments, rows, cumulated=cumulated)
        return same_class(sums, ability, se, mine, cuts, found.method, found.prior)

    def error_at(self, cuts: Floats) -> Floats:
        patterns = self.people.patterns
        some = np.flatnonzero(patterns.rows.counts)
        rows, people = patterns.rows.take(some), patterns.count[some]
        cumulated = self.people.steps.cumulated(self.people.thresholds)
        total = [people @ (1 / score_moments(rows, np.full(len(some), cut), cumulated)[1]) for cut in cuts.tolist()]
        return np.sqrt(np.array(total) / max(int(people.sum()), 1))


def _inverse_information(block: Block, difficulty: Floats, cuts: Floats) -> tuple[Floats, int]:
    block = answers_with_difficulty(block, difficulty)
    users: NDArray[np.int64] = np.flatnonzero(block.counts)
    sums = np.zeros(len(cuts))
    for k, cut in enumerate(cuts.tolist()):
        p = probabilities(block, difficulty, np.full(block.n_users, cut))
        if len(users):
            sums[k] = np.sum(1 / np.add.reduceat(p * (1 - p), block.indptr[users]))
    return sums, len(users)
