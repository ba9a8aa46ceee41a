"""Cut scores: how many people are in which class, with accuracy and consistency (Lee 2010, Rudner 2005).

Accuracy is the chance that somebody is put in the class that the true ability belongs to, consistency the chance that
two tests of the same kind put somebody in the same class. With w the distribution of ability on a form,

    accuracy = sum_c of w(theta in c) P(class c | theta),      consistency = sum_c of w(theta) P(class c | theta)^2,

where P(class | theta) adds the exact chances of the scores in the class (Lord & Wingersky 1984). w is a normal
distribution by maximum likelihood, and some steps of EM from there, which follow the scores. Of people who share a set
of items with nobody, the true ability is normal around the posterior mean, and scores given it are normal but for being
whole.

`study.cuts` calls `scale_cuts` or `raw_cuts`, then `cut_columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy

from spectral_irt.ability import cached_runs, score_cumulants
from spectral_irt.calibration import Scale
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.code_sums import CodeSums
from spectral_irt.errors import OptionError
from spectral_irt.persons.abilities import Abilities, abilities, known_rows, settle, thresholds_of
from spectral_irt.persons.test_form import Form, Forms
from spectral_irt.tables import Columns

EQUAL = 1e-6  # logits: an ability that is the cut but for rounding is at the cut
# The grid of abilities, over so many standard deviations either way.
NODES = 801
WIDTH = 6.0
EM_STEPS = 20  # from the normal population towards the scores as they are
NORMAL_NODES = 7  # of the rule over a normal posterior
LEAST_OF_FORM = 100  # people on a form from whom its own population is estimated; else it is that of everybody

Normal = tuple[float, float]  # mean and standard deviation


class Decisions(NamedTuple):
    """How people are put into classes, as shares of them; `too_high` and `too_low` are in a class above, and below,
    that of their true ability, and with accuracy they add to one."""

    accuracy: float
    consistency: float
    too_high: float
    too_low: float


class Cuts(NamedTuple):
    """Cuts between classes, increasing: in logits, and as they were asked for, on the scale of report or as scores."""

    logits: Floats
    values: Floats


def class_of(ability: Floats, cuts: Floats) -> Ints:
    """The class of each ability: 0 below the first cut, 1 from it on, ..."""
    return np.searchsorted(cuts - EQUAL, ability, side="right")


def scale_cuts(cuts: Sequence[float], test: Form, scale: Scale) -> Cuts:
    """Cuts on the scale of report; an error where nobody could be on one side."""
    measures = _sort_cuts(cuts)
    logits = (measures - scale.mean) / scale.unit
    n_items = len(test.known_items)
    low = high = 0.0
    if n_items:
        low, high = test.ends()
    worst = "the lowest score"
    best = "the highest"
    if test.layout.binary:
        worst = "nothing right"
        best = "everything right"
    unit = " (in logits)" if scale.is_logits else ""
    for cut, logit in zip(measures.tolist(), logits.tolist(), strict=True):
        if not low < logit <= high + EQUAL:
            raise OptionError(
                f"the cut {cut:g} is outside the scale, on which {scale.measure(low):.4g} is {worst} and "
                f"{scale.measure(high):.4g} {best} on all {n_items:,} items{unit}. Choose one between them."
            )
    return Cuts(logits, measures)


def raw_cuts(
    cuts: Sequence[float],
    test: Form,
    forms: Forms,
    estimates: Abilities,
    sums: Callable[[Ints], CodeSums | None] | None = None,
) -> Cuts:
    """Cuts as raw scores on the whole test, and the abilities that these scores stand for. With `sums`, those of the
    codes of some items, cuts are such sums."""
    whole_numbers = _sort_cuts(cuts)
    whole_forms = list(forms.items)
    if len(whole_forms) != 1:
        whole_forms = [items for items in whole_forms if len(items) == len(test.known_items)]
    if not whole_forms:
        how = "did not answer the same items" if forms.items else "share no form"
        raise OptionError(
            f"a cut in raw scores or sums of codes is about one form, and these people {how} ({len(forms.items):,} "
            "forms). Give the cut on the scale of the abilities: `raw=False`."
        )
    items = whole_forms[0]
    form = test.take(items)
    scores = whole_numbers if sums is None else _scores_of_sums(whole_numbers, sums(items))
    for cut in scores.tolist():
        if cut != int(cut) or not 1 <= cut <= form.max_score:
            raise OptionError(f"the cut {cut:g} is not a raw score from 1 to {form.max_score:,}, which the form has.")
    logits = form.abilities(estimates.method, estimates.prior)[0][scores.astype(np.int64)]
    if not np.isfinite(logits).all():
        raise OptionError(
            f"the highest score ({form.max_score:,}) has no finite ability by maximum likelihood; choose a lower cut, "
            "or `ability='wle'`."
        )
    return Cuts(logits, whole_numbers)


def _scores_of_sums(cuts: Floats, sums: CodeSums | None) -> Floats:
    """The scores of sums of codes; an error where a sum has no score, or several."""
    if sums is None:
        raise OptionError("the codes of some categories are not known, so that cuts cannot be sums of codes.")
    scores = []
    for cut in cuts.tolist():
        score = None
        if cut == int(cut):
            score = sums.score_of(int(cut))
        if score is None or score == 0:
            n_scores = np.sum((sums.low <= cut) & (cut <= sums.high))
            why = "may have several scores, since categories of an item were merged or renumbered"
            if n_scores < 2:
                why = f"is none from {sums.low[1]:,} to {sums.high[-1]:,}, or cannot be reached"
            raise OptionError(f"the cut {cut:g} as a sum of codes {why}. Give it as a raw score: `raw=True`.")
        scores.append(score)
    return np.array(scores, dtype=np.float64)


def _sort_cuts(cuts: Sequence[float]) -> Floats:
    increasing = np.sort(np.asarray(cuts, dtype=np.float64))
    if not len(increasing) or not np.isfinite(increasing).all() or len(np.unique(increasing)) < len(increasing):
        raise OptionError("cuts are one or more different numbers, as in 450,550.")
    return increasing


def cut_columns(
    test: Form,
    responses: Responses,
    cuts: Floats,
    estimates: Abilities,
    forms: Forms,
    prior: Normal | None,
    weights: Floats | None = None,
) -> Columns:
    """`class, ability, se, n, share, accuracy, consistency, too_high, too_low`: a row for each class, and one for all.

    `test` has all items; `cuts` are in logits, increasing, and a class holds its lower cut; people are classified by
    the abilities `estimates`; `prior` are mean and standard deviation of the normal population of everybody, without
    which there is no accuracy. `n` counts people; shares, accuracy and consistency go by their `weights`.

    `ability` is the cut at the lower end of the class, `se` the standard error of an ability there (over people with
    different items a root mean square), and accuracy and consistency are those of the decision at that cut alone: is
    somebody below or not? The last row, `all`, has those of all classes together.
    """
    has_ability = np.isfinite(estimates.ability) | estimates.extreme
    weight = np.ones(len(estimates.ability)) if weights is None else weights
    n_classes = len(cuts) + 1
    class_of_person = class_of(estimates.ability[has_ability], cuts)
    n = np.bincount(class_of_person, minlength=n_classes)
    class_weight = np.bincount(class_of_person, weights=weight[has_ability], minlength=n_classes)
    beta = thresholds_of(responses, test.thresholds)
    error_variance, n_people = responses.entries.sum(_inverse_information, beta, test.layout, cuts)
    cut_sets = [*(cuts[k : k + 1] for k in range(len(cuts))), cuts]  # each cut alone, and all together
    shares = decisions(test, responses, cut_sets, estimates, forms, prior, weights)
    columns: Columns = {
        "class": np.array([*(str(k + 1) for k in range(n_classes)), "all"], dtype=object),
        "ability": np.concatenate([[np.nan], cuts, [np.nan]]),
        "se": np.concatenate([[np.nan], np.sqrt(error_variance / max(n_people, 1)), [np.nan]]),
        "n": np.append(n, n.sum()),
        "share": np.append(class_weight, class_weight.sum()) / (class_weight.sum() or 1.0),
    }
    for k, name in enumerate(Decisions._fields):
        columns[name] = np.append(np.nan, shares[:, k])  # nobody is below the lowest class
    return columns


def lowest_scores(form: Form, cuts: Floats, estimates: Abilities) -> Floats:
    """Of each class, the lowest raw score on a form that puts a person in it who answered the whole form; NaN for a
    class that no score reaches, such as the highest one on an easy form."""
    class_of_score = class_of(form.abilities(estimates.method, estimates.prior)[0], cuts)
    scores = np.full(len(cuts) + 1, np.nan)
    for number in np.unique(class_of_score).tolist():
        scores[number] = float(np.argmax(class_of_score == number))
    return scores


def decisions(
    test: Form,
    responses: Responses,
    cut_sets: list[Floats],
    estimates: Abilities,
    forms: Forms,
    prior: Normal | None,
    weights: Floats | None = None,
) -> Floats:
    """`Decisions` by each of several sets of cuts (rows); people count by their weights."""
    weight = np.ones(len(estimates.ability)) if weights is None else weights
    if prior is None or not (estimates.n > 0).any():
        return np.full((len(cut_sets), len(Decisions._fields)), np.nan)
    part_weight = []
    parts = []
    for k, items in enumerate(forms.items):
        members = forms.form == k
        form = test.take(items)
        ability_of_score = form.abilities(estimates.method, estimates.prior)[0]
        score_weight = np.bincount(
            estimates.score[members], weights=weight[members], minlength=len(ability_of_score)
        ).astype(np.float64)
        has_population = int(members.sum()) >= LEAST_OF_FORM
        part_weight.append(score_weight.sum())
        parts.append(_on_a_form(form.chances, score_weight, ability_of_score, cut_sets, prior, has_population))
    on_no_form = np.flatnonzero((forms.form < 0) & (estimates.n > 0))
    if len(on_no_form):
        part_weight.append(weight[on_no_form].sum())
        parts.append(_on_no_form(test, responses, cut_sets, estimates, on_no_form, prior, weight))
    return np.average(parts, axis=0, weights=part_weight)


def _on_a_form(
    score_chances: Callable[[Floats], Floats],
    score_weight: Floats,
    ability_of_score: Floats,
    cut_sets: list[Floats],
    prior: Normal,
    has_population: bool,
) -> Floats:
    """Of people with these scores, by weight; `has_population`: enough of them for a population of their own."""
    mean, sd = prior
    theta = mean + sd * np.linspace(-WIDTH, WIDTH, NODES)
    chances = score_chances(theta)
    weight = _distribution(theta, chances, score_weight, prior, has_population)
    rows = []
    for cuts in cut_sets:
        in_class = class_of(ability_of_score, cuts)[:, None] == np.arange(len(cuts) + 1)
        observed = chances @ in_class  # P(class | ability)
        joint = _true_class(theta, cuts).T @ (weight[:, None] * observed)  # true class x observed class
        rows.append(
            Decisions(
                accuracy=np.trace(joint),
                consistency=weight @ (observed**2).sum(axis=1),
                too_high=np.triu(joint, 1).sum(),
                too_low=np.tril(joint, -1).sum(),
            )
        )
    return np.array(rows)


def _distribution(theta: Floats, chances: Floats, score_weight: Floats, prior: Normal, has_population: bool) -> Floats:
    """Weights of the abilities on the grid: the mean posterior of the people with these scores."""
    share = score_weight / score_weight.sum()

    def normal(mean: float, sd: float) -> Floats:
        density = np.exp(-(((theta - mean) / sd) ** 2) / 2)
        return density / density.sum()

    def posterior(weight: Floats) -> Floats:
        joint = weight[:, None] * chances
        return joint @ (share / np.maximum(joint.sum(axis=0), np.finfo(float).tiny))

    def em_step(mean_and_log_sd: Floats) -> Floats:
        weight = posterior(normal(mean_and_log_sd[0], float(np.exp(mean_and_log_sd[1]))))
        mean = float(weight @ theta)
        return np.array([mean, np.log(np.mean(weight / weight.mean() * (theta - mean) ** 2)) / 2])

    mean, sd = prior
    if not has_population:
        return posterior(normal(mean, sd))
    mean, log_sd = settle(em_step, np.array([mean, np.log(sd)]))
    sd = max(float(np.exp(log_sd)), float(theta[1] - theta[0]))  # no narrower than the grid
    weight = normal(mean, sd)
    for _ in range(EM_STEPS):
        weight = posterior(weight)
    return weight


def _true_class(theta: Floats, cuts: Floats) -> Floats:
    """The share of the cell around each ability that lies in each class, abilities x classes."""
    step = theta[1] - theta[0]
    above = np.clip((theta[:, None] - cuts) / step + 0.5, 0, 1)
    return -np.diff(np.pad(above, ((0, 0), (1, 1)), constant_values=((0, 0), (1, 0))), axis=1)


def _on_no_form(
    test: Form,
    responses: Responses,
    cut_sets: list[Floats],
    estimates: Abilities,
    people: Ints,
    prior: Normal,
    weight: Floats,
) -> Floats:
    """Of people with items of their own: a normal posterior, and normal scores of another test given the ability."""
    mean, sd = prior
    answers = responses.take_persons(people)
    beta = thresholds_of(answers, test.thresholds)
    posterior = abilities(answers, beta, "eap", prior_mean=mean, prior_sd=sd)
    own_weight = weight[people]
    rows = []
    for cuts in cut_sets:
        own_class = class_of(estimates.ability[people], cuts)
        ends = np.concatenate([[-np.inf], cuts, [np.inf]])
        below = scipy.special.ndtr((ends[own_class] - posterior.ability) / posterior.se)
        below_next = scipy.special.ndtr((ends[own_class + 1] - posterior.ability) / posterior.se)
        same_again = np.asarray(
            answers.entries.gather(
                _same_class,
                beta,
                test.layout,
                cuts,
                estimates.method,
                estimates.prior,
                persons=(posterior.ability, posterior.se, own_class),
            )
        )
        rows.append(
            Decisions(
                accuracy=np.average(below_next - below, weights=own_weight),
                consistency=np.average(same_again, weights=own_weight),
                too_high=np.average(below, weights=own_weight),
                too_low=np.average(1 - below_next, weights=own_weight),
            )
        )
    return np.array(rows)


def _same_class(
    block: Block,
    mean: Floats,
    sd: Floats,
    own_class: Ints,
    beta: Floats,
    layout: Thresholds,
    cuts: Floats,
    method: str,
    prior: Normal | None,
) -> Floats:
    """The chance that another test of the same items puts each person in the same class.

    An ability reaches the cut where the score reaches what the equation of the method asks for there (`ability.py`);
    given the ability, scores are normal but for their whole numbers.
    """
    chance = np.full(block.n_persons, np.nan)
    nodes, node_weights = np.polynomial.hermite_e.hermegauss(NORMAL_NODES)
    for persons, run in cached_runs(known_rows(block, beta, layout), layout, beta):
        n = len(persons)
        moments = score_cumulants(run)
        lowest_score = []  # of each class
        for cut in cuts.tolist():
            expected, variance, third, _ = moments(np.full(n, cut))
            if method == "wle":
                expected = expected - third / (2 * variance)
            elif method == "eap" and prior is not None:
                expected = expected + (cut - prior[0]) / prior[1] ** 2
            lowest_score.append(np.ceil(expected - EQUAL))
        ends = np.stack([np.full(n, -np.inf), *lowest_score, np.full(n, np.inf)])
        low = ends[own_class[persons], np.arange(n)]
        high = ends[own_class[persons] + 1, np.arange(n)]
        same = np.zeros(n)
        for node, node_weight in zip(nodes, node_weights, strict=True):
            expected, variance, *_ = moments(mean[persons] + node * sd[persons])
            spread = np.sqrt(variance)
            reach_low = scipy.special.ndtr((expected - (low - 0.5)) / spread)
            reach_high = scipy.special.ndtr((expected - (high - 0.5)) / spread)
            same += node_weight * (reach_low - reach_high)
        chance[persons] = same / np.sqrt(2 * np.pi)
    return chance


def _inverse_information(block: Block, beta: Floats, layout: Thresholds, cuts: Floats) -> tuple[Floats, int]:
    """Of the people in a block: the sum of the error variances of an ability at each cut, and how many they are."""
    sums = np.zeros(len(cuts))
    n_people = 0
    for persons, run in cached_runs(known_rows(block, beta, layout), layout, beta):
        moments = score_cumulants(run, 2)
        for k, cut in enumerate(cuts.tolist()):
            variance = moments(np.full(len(persons), cut))[1]
            sums[k] += np.sum(1 / variance)
        n_people += len(persons)
    return sums, n_people
