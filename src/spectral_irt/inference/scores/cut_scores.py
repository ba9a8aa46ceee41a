"""Cut scores: how many people are in which class, with accuracy and consistency (Lee 2010, Rudner 2005).

Accuracy is the chance that somebody is put in the class that the true ability belongs to, consistency the chance that
two tests of the same kind put somebody in the same class. With w the distribution of ability on a form,

    accuracy = sum_c of w(theta in c) P(class c | theta),      consistency = sum_c of w(theta) P(class c | theta)^2,

where P(class | theta) adds the exact chances of the scores in the class (Lord & Wingersky 1984). w is a normal
distribution by maximum likelihood, and some steps of EM from there, which follow the scores. Of people who share a set
of items with nobody, the true ability is normal around the posterior mean, and scores given it are normal but for being
whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy

from spectral_irt.ability import cached_runs, score_cumulants
from spectral_irt.calibration import Scale
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.code_sums import CodeSums
from spectral_irt.errors import OptionError
from spectral_irt.persons.abilities import Abilities, abilities, checked, known_rows, settle
from spectral_irt.persons.test_form import Form, Forms
from spectral_irt.tables import Columns

EQUAL = 1e-6  # logits: an ability that is the cut but for rounding is at the cut
NODES, WIDE = 801, 6.0  # of the grid of abilities, over so many standard deviations either way
STEPS = 20  # of EM from the normal population towards the scores as they are
NORMAL_NODES = 7  # of the rule over a normal posterior
# Of a way to put people into classes, as shares of them; the last two are those in a class above, and below, that of
# their true ability, and with accuracy they add to one.
SHARES = ("accuracy", "consistency", "too_high", "too_low")
Normal = tuple[float, float]  # mean and standard deviation
ENOUGH = 100  # people on a form from whom its own population is estimated; else it is that of everybody


def class_of(ability: Floats, cuts: Floats) -> Ints:
    """The class of each ability: 0 below the first cut, 1 from it on, ..."""
    return np.searchsorted(cuts - EQUAL, ability, side="right")


def scale_cuts(cuts: Sequence[float], test: Form, scale: Scale) -> tuple[Floats, Floats]:
    """Cuts on the scale of report: in logits, and as given, increasing; an error where nobody could be on one side."""
    given = _increasing(cuts)
    at = (given - scale.mean) / scale.unit
    n = len(test.known)
    low, high = test.ends() if n else (0.0, 0.0)
    ends = ("nothing right", "everything right") if test.layout.binary else ("the lowest score", "the highest")
    worst, best = ends
    for cut, logit in zip(given.tolist(), at.tolist(), strict=True):
        if not low < logit <= high + EQUAL:
            raise OptionError(
                f"the cut {cut:g} is outside the scale, on which {scale.measure(low):.4g} is {worst} and "
                f"{scale.measure(high):.4g} {best} on all {n:,} items"
                f"{' (in logits)' if scale.is_logits else ''}. Choose one between them."
            )
    return at, given


def raw_cuts(
    cuts: Sequence[float],
    test: Form,
    forms: Forms,
    found: Abilities,
    sums: Callable[[Ints], CodeSums | None] | None = None,
) -> tuple[Floats, Floats]:
    """Cuts as raw scores on the whole test: the abilities these scores stand for, and the scores, increasing. With
    `sums`, those of the codes of some items, cuts are such sums."""
    given = _increasing(cuts)
    lengths = [len(items) for items in forms.items]
    whole = [k for k, n in enumerate(lengths) if len(lengths) == 1 or n == len(test.known)]
    if not whole:
        how = "did not answer the same items" if len(lengths) else "share no form"
        raise OptionError(
            f"a cut in raw scores or sums of codes is about one form, and these people {how} ({len(lengths):,} forms). "
            "Give the cut on the scale of the abilities: `raw=False`."
        )
    items = forms.items[whole[0]]
    highest = test.take(items).max_score
    scores = given if sums is None else _scores_of_sums(given, sums(items))
    for cut in scores.tolist():
        if cut != int(cut) or not 1 <= cut <= highest:
            raise OptionError(f"the cut {cut:g} is not a raw score from 1 to {highest:,}, which the form has.")
    table = test.take(items).abilities(found.method, found.prior)[0]
    at = table[scores.astype(np.int64)]
    if not np.isfinite(at).all():
        raise OptionError(
            f"the highest score ({highest:,}) has no finite ability by maximum likelihood; choose a lower cut, or "
            "`ability='wle'`."
        )
    return at, given


def _scores_of_sums(given: Floats, sums: CodeSums | None) -> Floats:
    """The scores of sums of codes; an error where a sum has no score, or several."""
    if sums is None:
        raise OptionError("the codes of some categories are not known, so that cuts cannot be sums of codes.")
    scores = []
    for cut in given.tolist():
        score = sums.score_of(int(cut)) if cut == int(cut) else None
        if score is None or score == 0:
            several = (sums.low <= cut) & (cut <= sums.high)
            why = "may have several scores, since categories of an item were merged or renumbered"
            if several.sum() < 2:
                why = f"is none from {sums.low[1]:,} to {sums.high[-1]:,}, or cannot be reached"
            raise OptionError(f"the cut {cut:g} as a sum of codes {why}. Give it as a raw score: `raw=True`.")
        scores.append(score)
    return np.array(scores, dtype=np.float64)


def _increasing(cuts: Sequence[float]) -> Floats:
    given = np.sort(np.asarray(cuts, dtype=np.float64))
    if not len(given) or not np.isfinite(given).all() or len(np.unique(given)) < len(given):
        raise OptionError("cuts are one or more different numbers, as in 450,550.")
    return given


def cut_columns(
    test: Form,
    responses: Responses,
    cuts: Floats,
    found: Abilities,
    forms: Forms,
    prior: Normal | None,
    weights: Floats | None = None,
) -> Columns:
    """`class, ability, se, n, share, accuracy, consistency, too_high, too_low`: a row for each class, and one for all.

    `test` has all items; `cuts` are in logits, increasing, and a class holds its lower cut; people are classified by
    the abilities `found`; `prior` are mean and standard deviation of the normal population of everybody, without which
    there is no accuracy. `n` counts people; shares, accuracy and consistency go by their `weights`.

    `ability` is the cut at the lower end of the class, `se` the standard error of an ability there (over people with
    different items a root mean square), and accuracy and consistency are those of the decision at that cut alone: is
    somebody below or not? The last row, `all`, has those of all classes together.
    """
    known = np.isfinite(found.ability) | found.extreme
    counts = np.ones(len(found.ability)) if weights is None else weights
    own_class = class_of(found.ability[known], cuts)
    n = np.bincount(own_class, minlength=len(cuts) + 1)
    total_weight = np.bincount(own_class, weights=counts[known], minlength=len(cuts) + 1)
    ways = [*(cuts[k : k + 1] for k in range(len(cuts))), cuts]
    total, people = responses.entries.sum(_inverse_information, checked(responses, test.thresholds), test.layout, cuts)
    how = np.vstack([np.full(len(SHARES), np.nan), decisions(test, responses, ways, found, forms, prior, weights)])
    return {
        "class": np.array([*(str(k + 1) for k in range(len(cuts) + 1)), "all"], dtype=object),
        "ability": np.concatenate([[np.nan], cuts, [np.nan]]),
        "se": np.concatenate([[np.nan], np.sqrt(total / max(people, 1)), [np.nan]]),
        "n": np.append(n, n.sum()),
        "share": np.append(total_weight, total_weight.sum()) / (total_weight.sum() or 1.0),
        **dict(zip(SHARES, how.T, strict=True)),
    }


def lowest_scores(form: Form, cuts: Floats, found: Abilities) -> Floats:
    """Of each class, the lowest raw score on a form that puts a person in it who answered the whole form; NaN for a
    class that no score reaches, such as the highest one on an easy form."""
    table = form.abilities(found.method, found.prior)[0]
    classes = class_of(table, cuts)
    scores = np.full(len(cuts) + 1, np.nan)
    for number in np.unique(classes).tolist():
        scores[number] = float(np.argmax(classes == number))
    return scores


def decisions(
    test: Form,
    responses: Responses,
    ways: list[Floats],
    found: Abilities,
    forms: Forms,
    prior: Normal | None,
    weights: Floats | None = None,
) -> Floats:
    """`SHARES` of each of several sets of cuts, ways x shares; people count by their weights."""
    counts = np.ones(len(found.ability)) if weights is None else weights
    if prior is None or not (found.n > 0).any():
        return np.full((len(ways), len(SHARES)), np.nan)
    people, parts = [], []
    for k, items in enumerate(forms.items):
        members = forms.form == k
        scores, form = found.score[members], test.take(items)
        table = form.abilities(found.method, found.prior)[0]
        by_score = np.bincount(scores, weights=counts[members], minlength=len(table)).astype(np.float64)
        people.append(by_score.sum())
        enough = len(scores) >= ENOUGH
        parts.append(_on_a_form(form.chances, by_score, table, ways, prior, enough))
    alone = np.flatnonzero((forms.form < 0) & (found.n > 0))
    if len(alone):
        people.append(counts[alone].sum())
        parts.append(_on_no_form(test, responses, ways, found, alone, prior, counts))
    return np.average(parts, axis=0, weights=people)


def _on_a_form(
    of_scores: Callable[[Floats], Floats],
    counts: Floats,
    table: Floats,
    ways: list[Floats],
    prior: Normal,
    enough: bool,
) -> Floats:
    """`counts` people have each score, by weight; `enough` of them for a population of their own."""
    mean, sd = prior
    theta = mean + sd * np.linspace(-WIDE, WIDE, NODES)
    chances = of_scores(theta)
    weight = _distribution(theta, chances, counts, prior, enough)
    found = []
    for cuts in ways:
        observed = chances @ (class_of(table, cuts)[:, None] == np.arange(len(cuts) + 1))  # P(class | ability)
        joint = _true_class(theta, cuts).T @ (weight[:, None] * observed)  # true class x observed class
        same = weight @ (observed**2).sum(axis=1)
        found.append([np.trace(joint), same, np.triu(joint, 1).sum(), np.tril(joint, -1).sum()])
    return np.array(found)


def _distribution(theta: Floats, chances: Floats, counts: Floats, prior: Normal, enough: bool) -> Floats:
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
        return np.array([mean, np.log(np.mean(after / after.mean() * (theta - mean) ** 2)) / 2])

    mean, sd = prior
    if enough:
        mean, log_sd = settle(image, np.array([mean, np.log(sd)]))
        sd = max(float(np.exp(log_sd)), float(theta[1] - theta[0]))  # no narrower than the grid
        weight = normal(mean, sd)
        for _ in range(STEPS):
            weight = posterior(weight)
        return weight
    return posterior(normal(mean, sd))


def _true_class(theta: Floats, cuts: Floats) -> Floats:
    """The share of the cell around each ability that lies in each class, abilities x classes."""
    step = theta[1] - theta[0]
    above = np.clip((theta[:, None] - cuts) / step + 0.5, 0, 1)
    return -np.diff(np.pad(above, ((0, 0), (1, 1)), constant_values=((0, 0), (1, 0))), axis=1)


def _on_no_form(
    test: Form, responses: Responses, ways: list[Floats], found: Abilities, people: Ints, prior: Normal, counts: Floats
) -> Floats:
    """Of people with items of their own: a normal posterior, and normal scores of another test given the ability."""
    theirs, beta = responses.take_persons(people), checked(responses, test.thresholds)
    posterior = abilities(theirs, beta, "eap", prior_mean=prior[0], prior_sd=prior[1])
    ability, se = posterior.ability, posterior.se
    made, by = [], (found.method, found.prior)
    for cuts in ways:
        mine = class_of(found.ability[people], cuts)
        ends = np.concatenate([[-np.inf], cuts, [np.inf]])
        below, upto = (scipy.special.ndtr((ends[mine + k] - ability) / se) for k in (0, 1))
        persons = (ability, se, mine)
        again = np.asarray(theirs.entries.gather(_same_class, beta, test.layout, cuts, by, persons=persons))
        shares = (upto - below, again, below, 1 - upto)
        made.append([np.average(share, weights=counts[people]) for share in shares])
    return np.array(made)


def _same_class(
    block: Block, mean: Floats, sd: Floats, mine: Ints, beta: Floats, layout: Thresholds, cuts: Floats, by: Any
) -> Floats:
    """The chance that another test of the same items puts each person in the same class.

    An ability reaches the cut where the score reaches what the equation of the method asks for there (`ability.py`);
    given the ability, scores are normal but for their whole numbers.
    """
    out, (method, prior) = np.full(block.n_persons, np.nan), by
    for persons, run in cached_runs(known_rows(block, beta, layout), layout, beta):
        n, moments = len(persons), score_cumulants(run)
        needed = []
        for cut in cuts.tolist():
            expected, variance, lean, _ = moments(np.full(n, cut))
            if method == "wle":
                expected = expected - lean / (2 * variance)
            elif method == "eap" and prior is not None:
                expected = expected + (cut - prior[0]) / prior[1] ** 2
            needed.append(np.ceil(expected - EQUAL))
        limits = np.stack([np.full(n, -np.inf), *needed, np.full(n, np.inf)])
        low, high = (limits[mine[persons] + k, np.arange(n)] for k in (0, 1))
        same = np.zeros(n)
        for node, weight in zip(*np.polynomial.hermite_e.hermegauss(NORMAL_NODES), strict=True):
            expected, variance, *_ = moments(mean[persons] + node * sd[persons])
            spread = np.sqrt(variance)
            inside, above = (scipy.special.ndtr((expected - (end - 0.5)) / spread) for end in (low, high))
            same += weight * (inside - above)
        out[persons] = same / np.sqrt(2 * np.pi)
    return out


def _inverse_information(block: Block, beta: Floats, layout: Thresholds, cuts: Floats) -> tuple[Floats, int]:
    sums, people = np.zeros(len(cuts)), 0
    for persons, run in cached_runs(known_rows(block, beta, layout), layout, beta):
        moments = score_cumulants(run, 2)
        sums += [np.sum(1 / moments(np.full(len(persons), cut))[1]) for cut in cuts.tolist()]
        people += len(persons)
    return sums, people
