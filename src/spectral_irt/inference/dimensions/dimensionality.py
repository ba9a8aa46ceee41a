"""Do the items share more than one ability? Pairs of items, and a contrast between sets of items, by default and fast.

- Is a pair of items locally dependent (the same text, a clue from one to the other, copying)? See
  `local_dependence.py`: Q3 of every pair, and a p-value that is adjusted for all pairs.
- Does a contrast between two sets of items run through the residuals (a second dimension)? The eigenvalue of the first
  contrast (`contrast.py`), compared with those of data sets drawn given the scores.

Where draws would take long, both come from sums over people that are normal in large samples (`pairs.py`): z of every
pair; and the strongest contrast of one half of the people, the first eigenvector of their z, which is a direction fixed
in advance for the other half, where its strength is a sum over people, compared with its own standard error. Either
half may look for it: p is doubled. The strength found so, in items, is free of what chance adds to an eigenvalue.

Steep items share more with steep ones than the Rasch model says, and less with flat ones, with one ability behind them
all. Where either test alarms, both are therefore made again against what answers drawn from a model with a slope for
every item share (`items.slopes.slope_model`); what that explains is called by its name.

Some thousands of people and some hundreds of items suffice for what matters, so more are sampled: people at random,
items by how often they were answered. Neither depends on how they were answered, so the level stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from spectral_irt import inference
from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints, Mask
from spectral_irt.engine import Prepared
from spectral_irt.engine.base import one_blas_thread
from spectral_irt.errors import OptionError
from spectral_irt.inference.dimensions.contrast import Contrasts, eigenvalues_and_loadings, variance_explained
from spectral_irt.inference.dimensions.local_dependence import (
    DrawnPairs,
    LocalDependence,
    PairTest,
    normal_test,
    share_as_large,
)
from spectral_irt.inference.dimensions.pairs import along, apart, correlation, pair_sums
from spectral_irt.inference.dimensions.residual_table import Correlations, ResidualTable, with_mixed_scores
from spectral_irt.inference.results import EACH, MIN_PAIRED, first_few
from spectral_irt.numerics import generator
from spectral_irt.tables import Table, make_table
from spectral_irt.text import count, listed, p_value

if TYPE_CHECKING:
    from spectral_irt.inference.items.slopes import SlopeModel

PEOPLE, ITEMS = 4_000, 200  # 0.6 s of CPU at most: some products of people x items^2
FEWEST_PEOPLE, FEWEST_ITEMS = 30, 4  # below, correlations are chance; three items leave nothing to test
FEWEST = 10  # people in common: below, a correlation of 0.6 is chance
FEWEST_DRAWS, MOST_DRAWS = 200, 1_000  # by default: a p-value of 1% has a standard error of 0.7% to 0.3%
LEAST_DRAWS = 199  # of which one or none is beyond a p-value of 1%
DRAWS_WORK = 3e9  # of draws by default, as `_work_of_a_draw` counts: 0.6 s of CPU
FEWEST_DRAWN, MOST_DRAWN, WORK = 4, 16, 4e7  # tables from the model with slopes, by people x items^2: 3 s at most
FEWEST_RANKED, MOST_RANKED = 39, 99  # such tables among which the observed one has a rank
AGAIN = 0.05  # level of the tests against that model: what is asked there has already alarmed
SLOPES_MEAN = (
    "Here that means: the score counts answers to flat and steep items alike, so measures are less precise than they "
    "could be, and the order of difficulty of such items differs between low and high scorers. Review the flattest, or "
    "keep the model where equal weights are wanted."
)
CORRELATION = 0.4  # a residual correlation of two items that should not escape
# Sizes below which a finding is a note, however sure it is.
CONTRAST = 2.0  # items: the usual bar for a second dimension (Linacre)
PAIR, SET = 0.2, 0.3  # Q3 above the mean of a pair (Christensen et al. 2017); of an item with its set, added up
STEEP = 2.0  # times as steep as the flattest item
FEW_LOADED = 4  # a contrast of fewer items than this is a dependent pair or three
MOST_OF_IT = 0.5  # of the squared loadings on a contrast


@dataclass(frozen=True, eq=False, repr=False)
class Dimensionality:
    """What `dimensionality` found.

    Attributes
    ----------
    items, n_people : labels, int
        The items looked at and people with a mixed score on them; `sampled` where there are more people or items.
    dependence, contrasts : LocalDependence, Contrasts
        Q3 of every pair, with the verdict on each; eigenvalues and loadings of residual contrasts, with the variance
        that the measures explain.
    pairs_p, contrast_p : float
        p-values of the most significant pair, adjusted for all pairs, and of the first contrast; of an alarm that
        unequal slopes explain, those that allow for slopes.
    strength : float
        Of the first contrast, in items: what its eigenvalue would be without what chance adds to it.
    equal_slopes, slopes : (float, int), (float, float), or None
        Of tests that alarmed: p of the contrast and the significant pairs, had all items one slope; and the flattest
        and the steepest, in units of the mean one.
    dependent, contrast, two_dimensions, by_slopes : bool
        Whether some pair is locally dependent; there is a contrast that unequal slopes do not explain, and of more
        items than some dependent pairs have; a test alarmed, and does no longer with a slope for every item.
    findings : tuple of Finding
        What alarmed, with what to do about it.
    """

    items: NDArray[Any]
    n_people: int
    dependence: LocalDependence
    contrasts: Contrasts
    pairs_p: float
    contrast_p: float
    strength: float
    sampled: bool
    level: float = EACH
    equal_slopes: tuple[float, int] | None = None
    slopes: tuple[float, float] | None = None
    contrast: bool = False
    two_dimensions: bool = False
    by_slopes: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def dependent(self) -> bool:
        return bool(self.dependence.dependent.any())

    @property
    def loadings(self) -> Floats:
        """Of the items on the first contrast."""
        return self.contrasts.loadings[:, 0]

    @property
    def weak_contrast(self) -> bool:
        return self.strength < CONTRAST

    @property
    def weak_pairs(self) -> bool:
        first, second, q3 = self.dependence.dependent_pairs
        above = q3 - self.dependence.mean
        together = np.bincount(np.concatenate([first, second]), np.tile(above, 2), minlength=1)
        return float(above.max(initial=0.0)) < PAIR and float(together.max()) < SET

    def table(self) -> Table:
        """Winsteps' table 23: `part, eigenvalue, percent` of the variance of responses, and of the first contrasts."""
        return make_table(self.contrasts.variance_columns, self.dependence.frame_kind)

    def loadings_table(self) -> Table:
        """`item, contrast_1, ...`: loadings of the items on the contrasts, from the highest on the first down."""
        return make_table(self.contrasts.loading_columns, self.dependence.frame_kind)

    def to_dict(self) -> dict[str, Any]:
        """The result as data."""
        p, pairs = self.equal_slopes or (self.contrast_p, int(self.dependence.dependent.sum()))
        strongest = self.dependence.strongest[0]
        return {
            "n_items": len(self.items),
            "n_people": self.n_people,
            "n_pairs": len(self.dependence.first),
            "dependent_pairs": int(self.dependence.dependent.sum()),
            "pairs_p": self.pairs_p,
            "correlation": float(self.dependence.q3[strongest]),
            "detectable": self.dependence.detectable,
            **self.dependence.to_dict(),
            "contrast_p": self.contrast_p,
            "strength": self.strength,
            **self.contrasts.to_dict(),
            "level": self.level,
            "contrast_p_equal_slopes": p,
            "dependent_pairs_equal_slopes": pairs,
        }

    def __repr__(self) -> str:
        eigenvalue = self.contrasts.eigenvalues[0]
        return f"<Dimensionality: first contrast {eigenvalue:.2f} items, {p_value(self.contrast_p)}>"


class _Both(NamedTuple):
    """Both tests: of every pair, and the p-value of the first contrast."""

    pairs: PairTest
    contrast_p: float


@one_blas_thread()  # the matrices are small
def dimensionality(
    calibration: Calibration,
    responses: Responses,
    *,
    min_people: int = MIN_PAIRED,
    sample: int | None = None,
    draws: int | None = None,
    seed: int = 0,
) -> Dimensionality | None:
    """Locally dependent pairs of items, and the first contrast between items; None with too few data.

    Parameters
    ----------
    calibration, responses : Calibration, Responses
    min_people : int
        People who answered both items of a pair; pairs with fewer are left out (default 30).
    sample : int, optional
        People to take at random (default 4,000 at most).
    draws : int, optional
        Data sets to draw given the scores; 0: none, and the normal distribution of large samples. By default as many as
        take half a second, up to 1,000, and none where those would be fewer than 200.
    seed : int
        Random seed of sample and draws (default 0).

    References
    ----------
    Yen (1984), Appl. Psych. Meas. 8, 125-145; Christensen, Makransky & Horton (2017), Appl. Psych. Meas. 41, 178-194;
    Westfall & Young (1993), Resampling-based multiple testing. Sums over pairs: van den Wollenberg (1982),
    Psychometrika 47, 123-140, given the score. Contrasts: Linacre (1998), J. Outcome Meas. 2, 266-283.
    """
    _check_options(min_people, sample, draws, seed)
    answers, beta, sampled = _sample(calibration, responses, PEOPLE if sample is None else sample, seed)
    if answers.n_items < FEWEST_ITEMS or answers.n_persons < FEWEST_PEOPLE:
        return None
    table = ResidualTable.of(answers, beta)
    observed = table.correlations(min_people)
    half = np.random.default_rng(1).permutation(answers.n_persons) % 2
    people, halves = pair_sums(answers, apart(beta) if answers.thresholds.binary else beta, half)
    variance = halves[:, 1].sum(axis=0)
    first, second = np.nonzero(np.triu(np.isfinite(observed.q3) & (variance > 0), 1))
    if not len(first):
        return None
    evidence = _Evidence(table, observed, people, halves, half, first, second, min_people)
    number = _number_of_draws(*table.seen.shape) if draws is None else draws
    reference = _drawn(evidence, number, seed) if number else None
    both = _against_draws(evidence, reference) if reference else _against_normal(evidence)
    result = _described(evidence, both, reference, sampled)
    if result.contrast_p >= EACH and not result.dependent:
        return result
    return _allowing_for_slopes(evidence, result, reference)


def _check_options(min_people: int, sample: int | None, draws: int | None, seed: int) -> None:
    generator(seed, 0)  # refuses what is no seed
    if min_people < FEWEST:
        raise OptionError(f"`min_people` is {min_people}; a correlation of fewer than {FEWEST} people says nothing.")
    if sample is not None and sample < min_people:
        raise OptionError(f"`sample` is {sample}; it is a number of people, at least `min_people={min_people}`.")
    if draws is not None and draws != 0 and draws < LEAST_DRAWS:
        raise OptionError(f"`draws` is {draws}; a p-value of 1% takes {LEAST_DRAWS} or more; 0 is none at all.")


def too_few(responses: Responses, min_people: int = MIN_PAIRED) -> str:
    """Why there is nothing to tell."""
    mixed = int(responses.informative.sum())
    if responses.n_items < FEWEST_ITEMS:
        return f"{responses.source}: residuals of fewer than {FEWEST_ITEMS} items have nothing to tell."
    if mixed < FEWEST_PEOPLE:
        return (
            f"{responses.source}: {count(mixed, 'person has', 'people have')} a score between the ends of the scale; "
            f"correlations of residuals take {FEWEST_PEOPLE} or more."
        )
    return (
        f"{responses.source}: no two items have {min_people} people in common, so no residuals can be correlated. "
        "Lower min_people, or collect more answers."
    )


@dataclass(frozen=True, eq=False)
class _Evidence:
    """What both tests look at: the residuals, their correlations, sums of pairs in either half of the people, and the
    pairs (positions of their items) that enough people answered."""

    table: ResidualTable
    observed: Correlations
    people: list[Prepared]
    halves: Floats
    half: Ints
    first: Ints
    second: Ints
    min_people: int

    @property
    def q3(self) -> Floats:
        return self.observed.q3[self.first, self.second]

    @property
    def eigenvalue(self) -> float:
        return float(np.linalg.eigvalsh(self.observed.standardized)[-1])


@dataclass(frozen=True, eq=False)
class _Reference:
    """The same statistics in data sets drawn given the scores."""

    pairs: DrawnPairs
    eigenvalue: Floats

    @property
    def draws(self) -> int:
        return len(self.eigenvalue)


def _number_of_draws(people: int, items: int) -> int:
    """How many are affordable by default; 0 where they are too few."""
    affordable = int(DRAWS_WORK / _work_of_a_draw(people, items))
    return min(affordable, MOST_DRAWS) if affordable >= FEWEST_DRAWS else 0


def _work_of_a_draw(people: int, items: int) -> float:
    """A response costs as much to draw as 50 products of residuals; eigenvalues come besides. 5e6 are a millisecond."""
    return people * items * (50.0 + items) + items**3


def _drawn(evidence: _Evidence, draws: int, seed: int) -> _Reference:
    q3, eigenvalues = [], []
    for batch in evidence.table.drawn(range(draws), seed, evidence.min_people):
        # Where a residual happens not to vary in a draw, the pair shares nothing there.
        q3.append(np.nan_to_num(batch.q3[:, evidence.first, evidence.second]))
        eigenvalues.append(np.linalg.eigvalsh(batch.standardized)[:, -1])
    return _Reference(DrawnPairs.of(evidence.q3, np.concatenate(q3)), np.concatenate(eigenvalues))


def _against_draws(evidence: _Evidence, reference: _Reference) -> _Both:
    p = float(share_as_large(reference.eigenvalue, np.array([evidence.eigenvalue]))[0])
    return _Both(reference.pairs.test(evidence.q3), p)


def _against_normal(evidence: _Evidence, halves: Floats | None = None, unsure: float = 1.0) -> _Both:
    """The tests for large samples; `halves` and `unsure`: sums that allow for slopes, and by how much the variances of
    the contrast are larger for that."""
    halves = evidence.halves if halves is None else halves
    shared, variance, _, n = halves.sum(axis=0)
    pairs = (evidence.first, evidence.second)
    one_p, _ = _validated(evidence.people[0], halves[1], halves[0], unsure)
    other_p, _ = _validated(evidence.people[1], halves[0], halves[1], unsure)
    return _Both(normal_test(shared[pairs], variance[pairs], n[pairs]), min(1.0, 2 * one_p, 2 * other_p))


def _described(evidence: _Evidence, both: _Both, reference: _Reference | None, sampled: bool) -> Dimensionality:
    """Both tests with what is reported beside them; pairs that are significant count as dependent."""
    table = evidence.table
    items = table.responses.items
    matrix = evidence.observed.q3.copy()
    np.fill_diagonal(matrix, 1.0)
    critical = np.nan
    eigenvalue_critical = np.nan
    p_of_draws = np.nan
    if reference is not None:
        critical = float(np.quantile(reference.pairs.q3_star, 1 - EACH))
        eigenvalue_critical = float(np.quantile(reference.eigenvalue, 1 - EACH))
        p_of_draws = both.contrast_p
    dependence = LocalDependence(
        items=items,
        matrix=matrix,
        n=table.n_both.astype(np.int64),
        first=evidence.first,
        second=evidence.second,
        test=both.pairs,
        p_slopes=np.full(len(evidence.first), np.nan),
        dependent=both.pairs.p < EACH,
        q3_star_critical=critical,
        draws=0 if reference is None else reference.draws,
        frame_kind=table.responses.frame_kind,
    )
    contrasts = Contrasts(
        items,
        *eigenvalues_and_loadings(evidence.observed.standardized),
        critical=eigenvalue_critical,
        p=p_of_draws,
        variance=variance_explained(table),
    )
    return Dimensionality(
        items=items,
        n_people=len(table.seen),
        dependence=dependence,
        contrasts=contrasts,
        pairs_p=float(both.pairs.p.min()),
        contrast_p=both.contrast_p,
        strength=_strength(evidence),
        sampled=sampled,
    )


def _allowing_for_slopes(evidence: _Evidence, result: Dimensionality, reference: _Reference | None) -> Dimensionality:
    """What is left of an alarm after the same tests against a model with slopes, and what to say about either."""
    responses = evidence.table.responses
    model = inference.slope_model(responses)
    if reference is None:
        again = _normal_with_slopes(evidence, model)
    else:
        again = _draws_with_slopes(evidence, model, reference)
    significant = result.dependence.dependent
    dependent = significant & (again.pairs.p < AGAIN)
    alarm = result.contrast_p < EACH
    contrast = alarm and again.contrast_p < AGAIN
    of_pairs = contrast and _is_of_pairs(result.loadings, result.dependence.first, result.dependence.second, dependent)
    # What slopes explain has the p-value that allows for them; what they do not keeps the one that alarmed.
    pairs_p = np.where(dependent, result.dependence.test.p, np.maximum(result.dependence.test.p, again.pairs.p))
    judged = replace(
        result,
        dependence=replace(
            result.dependence, p_slopes=np.where(significant, again.pairs.p, np.nan), dependent=dependent
        ),
        pairs_p=float(pairs_p.min()),
        contrast_p=result.contrast_p if contrast else max(result.contrast_p, again.contrast_p),
        equal_slopes=(result.contrast_p, int(significant.sum())),
        slopes=(float(model.slope.min()), float(model.slope.max())),
        contrast=contrast,
        two_dimensions=contrast and not of_pairs,
        by_slopes=(alarm and not contrast) or (bool(significant.any()) and not dependent.any()),
    )
    findings = [_dependent_items(judged)] if judged.dependent else []
    findings += [_second_dimension(judged)] if judged.two_dimensions else []
    findings += [_unequal_slopes(judged)] if judged.by_slopes else []
    return replace(judged, findings=tuple(findings))


def _is_of_pairs(loadings: Floats, first: Ints, second: Ints, dependent: Mask) -> bool:
    """Whether a contrast is that of a dependent pair or three: few items load on it, or the dependent ones, few as they
    are, have most of it."""
    items = np.unique(np.concatenate([first[dependent], second[dependent]]))
    share = loadings**2 / (loadings**2).sum()
    few_loaded = 1 / float((share**2).sum()) < FEW_LOADED
    few_dependent = len(items) < FEW_LOADED and float(share[items].sum()) > MOST_OF_IT
    return len(items) > 0 and (few_loaded or few_dependent)


def _tables_with_slopes(evidence: _Evidence, model: SlopeModel, fewest: int, most: int) -> Iterator[Responses]:
    """Data sets drawn from the model with slopes, as many as are affordable between these numbers."""
    people, items = evidence.table.seen.shape
    number = int(np.clip(WORK / (people * items**2), fewest, most))
    for seed in np.random.SeedSequence([0, 3]).spawn(number):
        yield model.redraw(evidence.table.responses, seed)


def _normal_with_slopes(evidence: _Evidence, model: SlopeModel) -> _Both:
    beta = evidence.table.thresholds
    if evidence.table.responses.thresholds.binary:
        beta = apart(beta)
    shared = []
    for responses in _tables_with_slopes(evidence, model, FEWEST_DRAWN, MOST_DRAWN):
        shared.append(pair_sums(responses, beta, evidence.half)[1][:, 0])
    unsure = 1 + 1 / len(shared)
    halves = evidence.halves.copy()
    halves[:, 0] -= np.mean(shared, axis=0)
    halves[:, 1] *= unsure
    return _against_normal(evidence, halves, unsure)


def _draws_with_slopes(evidence: _Evidence, model: SlopeModel, reference: _Reference) -> _Both:
    q3, eigenvalues = [], []
    for responses in _tables_with_slopes(evidence, model, FEWEST_RANKED, MOST_RANKED):
        table = ResidualTable.of(with_mixed_scores(responses), evidence.table.thresholds)
        drawn = table.correlations(evidence.min_people)
        q3.append(drawn.q3[evidence.first, evidence.second])
        eigenvalues.append(np.linalg.eigvalsh(drawn.standardized)[-1])
    mean = np.nan_to_num(q3).mean(axis=0)
    pairs = reference.pairs.test(evidence.q3, mean, unsure=1 + 1 / len(q3))
    p = share_as_large(np.array(eigenvalues), np.array([evidence.eigenvalue]))
    return _Both(pairs, float(p[0]))


def _strength(evidence: _Evidence) -> float:
    """Of the strongest contrast of either half of the people in the other half, in items."""
    one = _validated(evidence.people[0], evidence.halves[1], evidence.halves[0], 1.0)[1]
    other = _validated(evidence.people[1], evidence.halves[0], evidence.halves[1], 1.0)[1]
    return (one + other) / 2


def _sample(calibration: Calibration, responses: Responses, most: int, seed: int) -> tuple[Responses, Floats, bool]:
    """The answers of some people with a mixed score to some items, and the difficulties, or thresholds, of these."""
    known = np.flatnonzero(calibration.measured)
    often = np.argsort(-responses.item_counts[known], kind="stable")[:ITEMS]
    items = np.sort(known[often])
    informed = np.flatnonzero(responses.informative)
    fewer = len(informed) > most
    answers = responses.sample(most, generator(seed, 0), informed)[0] if fewer else responses
    if len(items) < responses.n_items:
        answers = answers.take_items(items)
    answers = with_mixed_scores(answers)
    beta = calibration.thresholds[responses.thresholds.of_items(items)]
    return answers.in_one_block(), beta, fewer or len(items) < len(known)


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


def _dependent_items(result: Dimensionality) -> Finding:
    first, second, q3 = result.dependence.dependent_pairs
    groups = clusters(len(result.items), first, second)
    what = count(len(q3), "pair of items", "pairs of items")
    if len(groups) == len(q3):
        pairs = zip(result.items[first].tolist(), result.items[second].tolist(), q3, strict=True)
        named = first_few([f"{listed([one, other])} ({value:.2f})" for one, other, value in pairs])
    else:
        what += f", in {count(len(groups), 'group')}"
        named = first_few([listed(result.items[group]) for group in groups])
    how_much = f"residual correlation{'' if len(q3) == 1 else 's up to'} Q3 = {q3.max():.2f}"
    sentence = f"{'Weak local' if result.weak_pairs else 'Local'} dependence in {what} ({how_much}): {named}."
    remedy = (
        "Unequal slopes do not explain it. Look for similar wording or content, a common text, or copying; score such "
        "items as one, or keep one of them: as they are, they make measures look more precise than they are."
    )
    if result.weak_pairs:
        remedy = "So weak, it hardly changes measures or their errors."
    codes = np.unique(np.concatenate([first, second]))
    items = tuple(result.items[codes].tolist())
    return Finding("dependent_items", "note" if result.weak_pairs else "warning", sentence, remedy, items)


def _second_dimension(result: Dimensionality) -> Finding:
    order = np.argsort(-result.loadings, kind="stable")
    high, low = order[:5], order[::-1][:5]
    sentence = (
        f"{'A weak' if result.weak_contrast else 'More than one dimension: a'} residual contrast of the strength of "
        f"{result.strength:.1f} items (eigenvalue {result.contrasts.eigenvalues[0]:.1f}), that unequal slopes do "
        f"not explain ({p_value(result.contrast_p)}), with "
        f"{listed(result.items[high])} on one side and {listed(result.items[low])} on the other."
    )
    remedy = (
        "If both sides differ in what they ask, make a scale of each; one measure for both is an average that hides "
        "who is strong in what."
    )
    if result.weak_contrast:
        remedy = f"Below the strength of {CONTRAST:g} items it is not usually called a second dimension."
    items = tuple(result.items[np.sort(np.concatenate([high, low]))].tolist())
    return Finding("second_dimension", "note" if result.weak_contrast else "warning", sentence, remedy, items)


def _unequal_slopes(result: Dimensionality) -> Finding:
    assert result.equal_slopes is not None
    assert result.slopes is not None
    p, pairs = result.equal_slopes
    shown = []
    if p < result.level and not result.contrast:
        shown.append(f"a contrast in the residuals ({p_value(p)}; with slopes {p_value(result.contrast_p)})")
    if pairs and not result.dependent:
        shown.append(f"residual correlations of {count(pairs, 'pair')} of items")
    low, high = result.slopes
    sentence = (
        f"Items differ in slope (from {low:.1f} to {high:.1f} times the mean slope), which explains "
        f"{' and '.join(shown)}: no second dimension is needed. A model with slopes (2PL, generalized partial credit) "
        "would fit better."
    )
    return Finding("unequal_slopes", "warning" if high >= STEEP * low else "note", sentence, SLOPES_MEAN)


def only_above(detectable: float) -> str:
    """How strong local dependence would have to be to be seen, where that is much."""
    return f"; only residual correlations above {detectable:.1f} would be seen" if detectable > CORRELATION else ""


def clusters(n: int, first: Ints, second: Ints) -> list[Ints]:
    """Items tied to each other by pairs, as groups in the order of their strongest pair."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    label = connected_components(coo_array((np.ones(len(first)), (first, second)), shape=(n, n)), directed=False)[1]
    return [np.flatnonzero(label == own) for own in dict.fromkeys(label[first].tolist())]
