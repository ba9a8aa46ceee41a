"""Do the items share more than one ability? Pairs of items, and a contrast between sets of items, by default and fast.

Two questions of the same sums (`pairs.py`), each with a known level in any design:

- is a pair of items locally dependent (the same text, a clue from one to the other, copying)? The largest
  z of all pairs against the normal distribution, times the number of pairs (Bonferroni);
- does a contrast between two sets of items run through the residuals (a second dimension)? The strongest contrast of
  one half of the people, the first eigenvector of their z, is a direction fixed in advance for the other half, where
  its strength is a sum over people, compared with its own standard error. Either half may look for it: p is doubled.

Steep items share more with steep ones than the Rasch model says, and less with flat ones, with one ability behind them
all. Where either test alarms, both are therefore made again against what answers drawn from a model with a slope for
every item share (`items.slopes.slope_model`); what that explains is called by its name.

Some thousands of people and some hundreds of items suffice for what matters, so more are sampled: people at random,
items by how often they were answered. Neither depends on how they were answered, so the level stays.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from spectral_irt import inference
from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.engine import Prepared
from spectral_irt.engine.base import one_blas_thread
from spectral_irt.inference.dimensions.pairs import along, apart, correlation, pair_sums
from spectral_irt.inference.results import EACH, first_few
from spectral_irt.text import count, listed, p_value

PEOPLE, ITEMS = 4_000, 200  # 0.6 s of CPU at most: some products of people x items^2
FEWEST_PEOPLE, FEWEST_ITEMS = 100, 4  # below, the sums are not normal; three items leave nothing to test
IN_COMMON = 30  # people who answered both items of a pair
POWER = 0.8
FEWEST_DRAWN, MOST_DRAWN, WORK = 4, 16, 4e7  # tables from the model with slopes, by people x items^2: 3 s at most
AGAIN = 0.05  # level of the tests against that model: what is asked there has already alarmed
SLOPES_MEAN = (
    "Here that means: the score counts answers to flat and steep items alike, so measures are less precise than they "
    "could be, and the order of difficulty of such items differs between low and high scorers. Review the flattest, or "
    "keep the model where equal weights are wanted."
)
CORRELATION = 0.4  # a residual correlation of two items that should not escape
# Sizes below which a finding is a note, however sure it is.
CONTRAST = 2.0  # items: the usual bar for a second dimension (Linacre)
PAIR, SET = 0.2, 0.3  # residual correlation of a pair (Christensen et al. 2017); of an item with its set, added up
STEEP = 2.0  # times as steep as the flattest item
FEW_LOADED = 4  # a contrast of fewer items than this is a dependent pair or three


@dataclass(frozen=True, eq=False)
class Dimensionality:
    """What `dimensionality` found.

    Attributes
    ----------
    items, n_people, n_pairs : labels, int, int
        The items looked at, people with a mixed score on them, and pairs of items that enough of these answered;
        `sampled` where there are more people or items than that.
    first, second, correlations, pairs_p, correlation : int arrays, float array, float, float
        Pairs that are locally dependent, strongest first (positions in `items`), and their residual correlations;
        the chance that the strongest of all pairs is as strong as here under the model, and its residual correlation.
    detectable : float
        Residual correlation of a pair that would be found with a probability of 80%.
    contrast_p, strength, loadings : float, float, float array
        Chance of a contrast as strong as here under the model; its strength in items, what the first eigenvalue of
        residual correlations would be without chance; and the loading of each item on it.
    equal_slopes, slopes : (float, int), (float, float), or None
        Of tests that alarmed: p of the contrast and the dependent pairs, had all items one slope (the other numbers
        allow for slopes); and the flattest and the steepest, in units of the mean one.
    dependent, contrast, two_dimensions, by_slopes : bool
        Whether some pair is locally dependent; there is a contrast that unequal slopes do not explain, and of more
        items than some dependent pairs have; a test alarmed, and does no longer with a slope for every item.
    findings : tuple of Finding
        What alarmed, with what to do about it.
    """

    items: NDArray[Any]
    n_people: int
    n_pairs: int
    first: Ints
    second: Ints
    correlations: Floats = field(repr=False)
    pairs_p: float
    correlation: float
    detectable: float
    contrast_p: float
    strength: float
    loadings: Floats = field(repr=False)
    level: float
    sampled: bool
    equal_slopes: tuple[float, int] | None = None
    slopes: tuple[float, float] | None = None
    dependent: bool = False
    contrast: bool = False
    two_dimensions: bool = False
    by_slopes: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def weak_contrast(self) -> bool:
        return self.strength < CONTRAST

    @property
    def weak_pairs(self) -> bool:
        ends = np.concatenate([self.first, self.second])
        together = np.bincount(ends, np.tile(self.correlations, 2)) if len(ends) else np.zeros(1)
        return self.correlation < PAIR and float(together.max()) < SET

    def to_dict(self) -> dict[str, Any]:
        """The result as data."""
        found: dict[str, Any] = {"n_items": len(self.items), "dependent_pairs": len(self.first)}
        for name in ("n_people", "n_pairs", "pairs_p", "correlation", "detectable", "contrast_p", "strength", "level"):
            found[name] = getattr(self, name)
        p, pairs = self.equal_slopes or (self.contrast_p, len(self.first))
        return found | {"contrast_p_equal_slopes": p, "dependent_pairs_equal_slopes": pairs}


@one_blas_thread()  # the matrices are small
def dimensionality(calibration: Calibration, responses: Responses) -> Dimensionality | None:
    """Locally dependent pairs of items, and the first contrast between items; None with too few data.

    References
    ----------
    The pairs are those of van den Wollenberg (1982), Psychometrika 47, 123-140, given the score; the contrast is the
    first of Linacre (1998), J. Outcome Meas. 2, 266-283, validated across halves of the people.
    """
    answers, beta, sampled = _sample(calibration, responses)
    mixed = answers.informative
    if answers.n_items < FEWEST_ITEMS or mixed.sum() < FEWEST_PEOPLE:
        return None
    half = np.random.default_rng(1).permutation(answers.n_persons) % 2
    beta = apart(beta) if answers.thresholds.binary else beta
    people, halves = pair_sums(answers, beta, half)
    found = _both_tests(answers, people, halves, EACH, sampled)
    if found is None or (found.contrast_p >= EACH and not len(found.first)):
        return found
    model = inference.slope_model(answers)
    number = int(np.clip(WORK / (answers.n_persons * answers.n_items**2), FEWEST_DRAWN, MOST_DRAWN))
    seeds = np.random.SeedSequence([0, 3]).spawn(number)
    halves[:, 0] -= sum(pair_sums(model.redraw(answers, seed), beta, half)[1][:, 0] for seed in seeds) / number
    halves[:, 1] *= 1 + 1 / number
    again = _both_tests(answers, people, halves, AGAIN, sampled, 1 + 1 / number)
    assert again is not None
    return _allowing_for_slopes(found, again, (float(model.slope.min()), float(model.slope.max())))


def _allowing_for_slopes(found: Dimensionality, again: Dimensionality, slopes: tuple[float, float]) -> Dimensionality:
    """What is left of an alarm after the same tests against a model with slopes, and what to say about either."""
    pairs = set(zip(found.first.tolist(), found.second.tolist(), strict=True))
    kept = [k for k, pair in enumerate(zip(again.first.tolist(), again.second.tolist(), strict=True)) if pair in pairs]
    alarm = found.contrast_p < EACH
    contrast, dependent = alarm and again.contrast_p < AGAIN, len(kept) > 0
    few = 1 / float((again.loadings**4).sum()) < FEW_LOADED
    judged = replace(
        again,
        first=again.first[kept],
        second=again.second[kept],
        correlations=again.correlations[kept],
        level=EACH,
        equal_slopes=(found.contrast_p, len(found.first)),
        slopes=slopes,
        dependent=dependent,
        contrast=contrast,
        two_dimensions=contrast and not (few and dependent),
        by_slopes=(alarm and not contrast) or (len(pairs) > 0 and not dependent),
    )
    findings = [_dependent_items(judged)] if dependent else []
    findings += [_second_dimension(judged)] if judged.two_dimensions else []
    findings += [_unequal_slopes(judged)] if judged.by_slopes else []
    return replace(judged, findings=tuple(findings))


def _both_tests(
    answers: Responses, people: list[Prepared], halves: Floats, level: float, sampled: bool, unsure: float = 1.0
) -> Dimensionality | None:
    """Both tests; None where no pair has enough people. `unsure`: by how much variances of the contrast are larger."""
    shared, variance, scale, n = halves.sum(axis=0)
    first, second = np.triu_indices(answers.n_items, 1)
    tested = ((n >= IN_COMMON) & (variance > 0))[first, second]
    if not tested.any():
        return None
    first, second = first[tested], second[tested]
    z = shared[first, second] / np.sqrt(variance[first, second])
    p = np.minimum(scipy.special.ndtr(-z) * len(z), 1.0)
    order = np.argsort(-z, kind="stable")
    flagged = order[p[order] < level]
    correlations = correlation(shared, scale)
    one_p, one = _validated(people[0], halves[1], halves[0], unsure)
    other_p, other = _validated(people[1], halves[0], halves[1], unsure)
    limit = float(scipy.special.ndtri(1 - level / len(z)) + scipy.special.ndtri(POWER))
    return Dimensionality(
        items=answers.items,
        n_people=int(answers.informative.sum()),
        n_pairs=len(z),
        first=first[flagged],
        second=second[flagged],
        correlations=correlations[first[flagged], second[flagged]],
        pairs_p=float(p.min()),
        correlation=float(correlations[first[order[0]], second[order[0]]]),
        detectable=limit / float(np.sqrt(np.median(n[first, second]))),
        contrast_p=min(1.0, 2 * one_p, 2 * other_p),
        strength=(one + other) / 2,
        loadings=_strongest(correlations),
        level=level,
        sampled=sampled,
    )


def _sample(calibration: Calibration, responses: Responses) -> tuple[Responses, Floats, bool]:
    """The answers of some people to some items, and the difficulties, or thresholds, of these."""
    known = np.flatnonzero(calibration.measured)
    often = np.argsort(-responses.item_counts[known], kind="stable")[:ITEMS]
    items = np.sort(known[often])
    informed = np.flatnonzero(responses.informative)
    fewer = len(informed) > PEOPLE
    answers = responses.sample(PEOPLE, np.random.default_rng(0), informed)[0] if fewer else responses
    if len(items) < responses.n_items:
        answers = answers.take_items(items)
    if fewer:
        answers = answers.in_one_block()
    beta = calibration.thresholds[responses.thresholds.of_items(items)]
    return answers, beta, fewer or len(items) < len(known)


def _strongest(matrix: Floats) -> Floats:
    """The eigenvector of the largest eigenvalue, its larger side positive."""
    vector = np.linalg.eigh(matrix)[1][:, -1]
    return np.asarray(vector * np.where((vector**3).sum() < 0, -1.0, 1.0))


def _validated(people: Prepared, found: Floats, tested: Floats, unsure: float) -> tuple[float, float]:
    """The strongest contrast that one half of the people found, in the other: the chance of so strong a one, and its
    strength.

    The strength is what an eigenvalue would be, 1 on average if there is no contrast: the eigenvalue of the half that
    chose the direction is larger by chance, much so where few people answered the same items.
    """
    shared, variance, scale, _ = found
    spread = np.sqrt(np.diag(scale))  # items that vary little must not count for less
    vector = _strongest(np.divide(shared, np.sqrt(variance), out=np.zeros_like(shared), where=variance > 0))
    direction = vector * np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    squares = unsure * float(people.sum(along, direction))
    p = float(scipy.special.ndtr(-(direction @ tested[0] @ direction) / np.sqrt(squares))) if squares > 0 else 1.0
    return p, 1 + float(vector @ correlation(tested[0], tested[2]) @ vector)


def _dependent_items(found: Dimensionality) -> Finding:
    groups, pairs = clusters(len(found.items), found.first, found.second), len(found.first)
    told = first_few([listed(found.items[group]) for group in groups])
    what = count(pairs, "pair of items", "pairs of items")
    what += "" if len(groups) == pairs else f", in {count(len(groups), 'group')}"
    how_much = f"residual correlation{'' if pairs == 1 else 's up to'} {found.correlation:.2f}"
    sentence = f"{'Weak local' if found.weak_pairs else 'Local'} dependence in {what} ({how_much}): {told}."
    remedy = (
        "Unequal slopes do not explain it. Look for a common text, a clue from one to the other, or copying; score "
        "such items as one, or keep one of them: as they are, they make measures look more precise than they are."
    )
    if found.weak_pairs:
        remedy = "So weak, it hardly changes measures or their errors."
    codes = np.unique(np.concatenate([found.first, found.second]))
    items = tuple(found.items[codes].tolist())
    return Finding("dependent_items", "note" if found.weak_pairs else "warning", sentence, remedy, items)


def _second_dimension(found: Dimensionality) -> Finding:
    order = np.argsort(-found.loadings, kind="stable")
    high, low = order[:5], order[::-1][:5]
    sentence = (
        f"{'A weak' if found.weak_contrast else 'More than one dimension: a'} residual contrast of the strength of "
        f"{found.strength:.1f} items, that unequal slopes do not explain ({p_value(found.contrast_p)}), with "
        f"{listed(found.items[high])} on one side and {listed(found.items[low])} on the other."
    )
    remedy = (
        "If both sides differ in what they ask, make a scale of each; one measure for both is an average that hides "
        "who is strong in what."
    )
    if found.weak_contrast:
        remedy = f"Below the strength of {CONTRAST:g} items it is not usually called a second dimension."
    items = tuple(found.items[np.sort(np.concatenate([high, low]))].tolist())
    return Finding("second_dimension", "note" if found.weak_contrast else "warning", sentence, remedy, items)


def _unequal_slopes(found: Dimensionality) -> Finding:
    assert found.equal_slopes is not None
    assert found.slopes is not None
    p, pairs = found.equal_slopes
    shown = []
    if p < found.level and not found.contrast:
        shown.append(f"a contrast in the residuals ({p_value(p)}; with slopes {p_value(found.contrast_p)})")
    if pairs and not found.dependent:
        shown.append(f"residual correlations of {count(pairs, 'pair')} of items")
    low, high = found.slopes
    sentence = (
        f"Items differ in slope (from {low:.1f} to {high:.1f} times the mean slope), which explains "
        f"{' and '.join(shown)}: no second dimension is needed. A model with slopes (2PL, generalized partial credit) "
        "would fit better."
    )
    return Finding("unequal_slopes", "warning" if high >= STEEP * low else "note", sentence, SLOPES_MEAN)


def unseen_dependence(detectable: float) -> str:
    """That no local dependence was seen, and how strong it would have to be where that is much."""
    seen = f" (only residual correlations above {detectable:.1f} would be seen)" if detectable > CORRELATION else ""
    return f"no local dependence seen{seen}"


def clusters(n: int, first: Ints, second: Ints) -> list[Ints]:
    """Items tied to each other by pairs, as groups in the order of their strongest pair."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    label = connected_components(coo_array((np.ones(len(first)), (first, second)), shape=(n, n)), directed=False)[1]
    return [np.flatnonzero(label == own) for own in dict.fromkeys(label[first].tolist())]
