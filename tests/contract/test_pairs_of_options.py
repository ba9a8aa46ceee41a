"""Every pair of options is right, by a plain computation of the same (tests/oracle.py), or refused in a sentence.

A row of the table is a pair; how it is run, and what it should give, follows from the two options alone.
"""

from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from drawn import drawn_categories
from oracle import (
    averaging,
    centering,
    conditional_maximum,
    conditional_point,
    covariance_of,
    latent_mean_and_sd,
    marginal_maximum,
    middle_of,
)
from ratings import ratings
from spectral_irt.engine import base as memory
from spectral_irt.engine.dask import connect
from spectral_irt.errors import DesignError, OptionError, SpectralIrtError
from spectral_irt.estimators import linear_fit

OPTIONS = (
    "weights",
    "clusters",
    "anchors",
    "bank",
    "groups",
    "ordered",
    "rating scale",
    "facets",
    "covariates",
    "adaptive",
    "missing",
    "survey",  # means of populations from weighted persons
    "dask",
    "memory",
)
PAIRS = tuple(frozenset(pair) for pair in combinations(OPTIONS, 2))


class Refusal(NamedTuple):
    """The error, and the words by which its sentence names either option."""

    error: type[SpectralIrtError]
    words: tuple[str, str]


REFUSED = {
    ("clusters", "anchors"): Refusal(DesignError, ("cluster-robust", "anchored")),
    ("clusters", "bank"): Refusal(DesignError, ("cluster-robust", "anchored")),
    ("clusters", "facets"): Refusal(OptionError, ("clustered", "these are ratings")),
    ("clusters", "covariates"): Refusal(OptionError, ("do not go with clusters", "properties of items")),
    ("weights", "covariates"): Refusal(OptionError, ("do not go with weights of people", "properties of items")),
    ("survey", "covariates"): Refusal(OptionError, ("do not go with weights of people", "properties of items")),
    ("anchors", "rating scale"): Refusal(OptionError, ("no anchors", "a rating scale")),
    ("bank", "rating scale"): Refusal(OptionError, ("no anchors", "a rating scale")),
    ("anchors", "facets"): Refusal(OptionError, ("anchors", "raters")),
    ("bank", "facets"): Refusal(OptionError, ("to_bank", "these are ratings")),
    ("anchors", "adaptive"): Refusal(OptionError, ("anchors", "'adaptive'")),
    ("bank", "adaptive"): Refusal(OptionError, ("anchors", "'adaptive'")),
    ("groups", "facets"): Refusal(OptionError, ("dif", "these are ratings")),
    ("facets", "covariates"): Refusal(OptionError, ("these are ratings", "item_covariates")),
    ("facets", "adaptive"): Refusal(OptionError, ("facets ('rater')", "with a fixed design")),
    ("rating scale", "covariates"): Refusal(OptionError, ("go with a rating scale model", "properties of items")),
    ("covariates", "adaptive"): Refusal(OptionError, ("properties of items", "an adaptive design")),
}
REFUSALS = {frozenset(pair): refusal for pair, refusal in REFUSED.items()}
MAXIMUM = "maximum"  # of the likelihood of a rating scale, by the estimator that takes no bias off
UNCORRECTED = "uncorrected"  # the same of the default estimator, where the bias is left in for the comparison
ELSEWHERE = ("dask", "memory")  # where the work is done: the numbers are those of the other option alone

N = 240
GROUP = np.array(["a", "b"])[np.arange(N) % 2]
CLUSTER = np.arange(N) // 20 * 2 + np.arange(N) % 2  # whole clusters in each group
WEIGHT = np.random.default_rng(3).choice([0.4, 1.0, 2.5], N)
EVERYBODY = ["everybody"] * N  # a population with a name is normal; else its shape may be free
LOAD = {"load": {f"q{k}": value for k, value in enumerate([0.0, 2.0, 1.0, 3.0, 1.0, 2.0])}}
NUMBER_OF_ERRORS = 2e-3  # a difference in standard errors below which two maxima are the same
ERRORS_AGREE = 2e-3  # relative
# How much bias a rating scale has follows from Newton's matrix, which for four items is some percent off the exact
# information that the plain computation takes; and so is the bias, of .15 standard errors here. The maximum itself, and
# its errors, are compared more closely in `test_a_rating_scale_before_its_bias_is_taken_off`.
NUMBER_OF_ERRORS_OF_A_SCALE = 0.03
ERRORS_OF_A_SCALE = 5e-3
ERRORS_OF_A_BANK = 0.02  # a bank keeps information and standard errors, and joint errors are made of these


def kind_of(options):
    ordered = bool(options & {"ordered", "rating scale"})
    if "facets" in options:
        return "ordered ratings" if ordered else "ratings"
    return "ordered" if ordered else "right or wrong"


@cache
def answers(kind, missing, seed=1):
    """Responses of persons who may have met one of four sets of items."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, 1.2, N)
    ordered = "ordered" in kind
    step = np.array([-0.8, 0.8]) if ordered else np.zeros(1)
    n_raters = 2 if "ratings" in kind else 1
    n_items = 3 if "ratings" in kind else 4 if ordered else 6
    harder = np.linspace(-1, 1, n_items)[:, None] + np.linspace(-0.4, 0.4, n_raters) * (n_raters > 1)
    beta = harder.ravel()[:, None] + step
    logit = np.cumsum(theta[:, None, None] - beta, axis=2)
    x = drawn_categories(rng, np.concatenate([np.zeros((*logit.shape[:2], 1)), logit], axis=2))
    if missing:
        masks = rng.random((4, x.shape[1])) < 0.25
        masks[:, :2] = False
        x[masks[np.arange(N) // 7 % 4]] = np.nan
    if "ratings" not in kind:
        names = [f"q{k}" for k in range(n_items)]
        return si.read(x, items=names, ordered=ordered)
    person, column = np.nonzero(~np.isnan(x))
    item = np.array([f"q{k // n_raters}" for k in range(x.shape[1])])[column]
    rater = np.array([f"r{k % n_raters}" for k in range(x.shape[1])])[column]
    return ratings(person, item, {"rater": rater}, x[person, column].astype(int))


def estimator_of(options):
    if MAXIMUM in options:
        return si.ConditionalRatingScale()
    if "rating scale" in options:
        return si.SpectralRatingScale()
    errors = "dense" if "facets" in options else "auto"  # without the steadying of errors of raters
    if "ordered" in options:
        return si.SpectralPartialCredit(regularization=0, se=errors)
    return si.SpectralRasch(regularization=0, se=errors)


def anchored_items(responses):
    return responses.n_items // 2


def given_anchors(responses):
    """Plain numbers for the first half of the items."""
    most = responses.thresholds.max_score
    return {f"q{k}": (np.linspace(-0.5, 0.5, most[k]) + 0.3 * k).tolist() for k in range(anchored_items(responses))}


def old_answers(options):
    """Answers of others to the first items, of which a bank is made."""
    everything = answers(kind_of(options), False, seed=7)
    return everything.take_items(np.arange(anchored_items(everything)))


def bank_of(options):
    old = old_answers(options)
    anchors = {"q0": [0.2] * int(old.thresholds.max_score[0])} if "anchors" in options else None
    fit = estimator_of(options).fit(old, anchors=anchors)
    return fit.analyse(old).to_bank()


def run(options, responses):
    """What the package has to say, as names and numbers."""
    how = {}
    if options & {"weights", "survey"}:
        how["weights"] = WEIGHT
    if "bank" in options:
        how["anchors"] = bank_of(options)
    elif "anchors" in options:
        how["anchors"] = given_anchors(responses)
    if "adaptive" in options:
        how |= {"design": "adaptive", "groups": EVERYBODY}
    fit = estimator_of(options).fit(responses, **how)
    study = fit.analyse(responses)
    if "clusters" in options:
        study = study.clustered(CLUSTER.tolist(), how.get("groups"))
    made = study.calibration
    numbers = {}
    if "facets" in options:
        of = made.facets.of["rater"]
        numbers["value"] = np.concatenate([of["severity"], made.facets.items.thresholds])
        numbers["se"] = np.concatenate([of["se"], made.facets.items.threshold_se])
    else:
        free = ~made.anchored[made.layout.item]
        numbers["value"] = made.thresholds[free]
        numbers["se"] = made.threshold_se[free]
    numbers["thresholds"] = made.thresholds
    if "covariates" in options:
        effects = study.item_covariates(LOAD).to_dict(as_series=False)
        numbers["effect"], numbers["effect_se"] = np.array(effects["effect"]), np.array(effects["se"])
    if "groups" in options:
        dif = study.dif(GROUP.tolist(), anchors="all", nonuniform=False)
        numbers["contrast"], numbers["contrast_se"] = dif.contrasts["contrast"], dif.contrasts["se"]
    if options & {"groups", "survey"}:
        means = study._group_means("group", GROUP.tolist())
        numbers["latent_mean"], numbers["latent_sd"] = means["latent_mean"], means["latent_sd"]
    return numbers


def scale_design(most):
    """Locations, and offsets that the items share."""
    k = most[0]
    offsets = np.vstack([np.eye(k - 1), -np.ones(k - 1)])
    return np.column_stack([np.repeat(np.eye(len(most)), most, axis=0), np.tile(offsets, (len(most), 1))])


def raters_of(responses, most):
    """Thresholds x raters: 1 for the rater of each."""
    rater = responses.facets.column("rater")[1]
    return np.eye(rater.max() + 1)[np.repeat(rater, most)]


def with_raters(responses, most):
    """The design of items and raters, and how both are centered."""
    facets = responses.facets
    raters = raters_of(responses, most)
    own = most[facets.first].tolist()
    inside = np.concatenate([[0], np.cumsum(own)])
    items = np.zeros((sum(most), sum(own)))
    row = 0
    for virtual, k in enumerate(most):
        for level in range(k):
            items[row, inside[facets.item[virtual]] + level] = 1
            row += 1
    n = raters.shape[1]
    center = np.zeros((n + sum(own), n + sum(own)))
    center[:n, :n] = np.eye(n) - 1 / n
    center[n:, n:] = centering(own)
    return np.column_stack([raters, items]), center


def bias_factors(table, most, *, design, eta, terms, weights):
    """By what the values of each term are multiplied to take the bias of first order off (Firth 1993).

    With u the values of a term, 0 elsewhere, and a = grad 1/2 sum_j log I_jj, the factors are 1 + x where
    (u' I u + diag |u' a|) x = u' a; with weights a counts as often as squared scores exceed the information. Up to .05
    standard errors of the scale nothing is taken off, all from .15 on. The derivative is that half-way to values 5%
    nearer to each other.
    """
    each = np.ones(len(table)) if weights is None else weights
    columns = np.zeros((len(eta), len(terms)))
    for number, term in enumerate(terms):
        columns[term, number] = eta[term]

    def information(at):
        return design.T @ conditional_point(table, most, design @ at, each)[1] @ design

    step = 1e-4
    apart = []
    for values in columns.T:
        middle = eta - 0.025 * values
        closer = np.log(np.diag(information(middle - step * values)))
        wider = np.log(np.diag(information(middle + step * values)))
        apart.append(np.sum(wider - closer) / (2 * step) / 2)
    noise = np.sum(each**2) / np.sum(each)
    target = noise * np.array(apart)
    size = columns.T @ information(eta) @ columns
    share = np.linalg.solve(size + np.diag(np.abs(target)), target)
    in_errors = np.sqrt(share @ size @ share)
    return 1 + np.clip((in_errors - 0.05) / 0.1, 0, 1) * share


def steady_scores(table, most, *, design, found, terms):
    """By what the scores of parameters are multiplied, so that few persons do not decide how far they spread.

    Squared scores are to the information as r_j, known to 2 / n from n persons: drawn towards the mean r of its term.
    """
    factor = np.ones(design.shape[1])
    first = np.concatenate([[0], np.cumsum(most)[:-1]])
    total, seen = np.nansum(table, axis=1), ~np.isnan(table)
    informative = (total > 0) & (total < seen @ np.asarray(most))
    squares = np.sum((found.scores @ design) ** 2, axis=0)
    ratio = squares / np.diag(design.T @ found.information @ design)
    for term in terms:
        met = seen[informative] @ (design[first][:, term] != 0)
        n = np.sum(met > 0, axis=0)
        unbiased = ratio[term] * n / (n - 1)
        mean = np.sum(unbiased * n) / np.sum(n)
        beyond_chance = max(np.sum(((unbiased / mean - 1) ** 2 - 2 / n) * n) / np.sum(n), 0)
        share = beyond_chance / (beyond_chance + 2 / n)
        factor[term] = np.sqrt((share * unbiased + (1 - share) * mean) / ratio[term])
    return factor


def rating_scale(table, most, *, raters, weights, cluster, corrected):
    """Values and errors of the shared offsets and of items, beside raters, with the bias of first order taken off.

    The package does this for rating scales by default, so that its estimates are not the maximum of the likelihood.
    """
    n_items = len(most) // max(raters.shape[1], 1)
    design = np.column_stack([raters, scale_design(most)])
    terms = [slice(0, n_items), slice(n_items, design.shape[1])]
    if raters.shape[1]:
        items = scale_design(most)[:, : len(most)] @ np.repeat(np.eye(n_items), raters.shape[1], axis=0)
        offsets = scale_design(most)[:, len(most) :]
        design = np.column_stack([items, raters, offsets])
        terms = [slice(0, n_items), slice(n_items, n_items + raters.shape[1])]
        terms.append(slice(terms[-1].stop, design.shape[1]))
    found = conditional_maximum(table, most, design=design, weights=weights)
    normal = np.eye(design.shape[1])
    for term in terms[:-1]:
        normal[term, term] -= 1 / (term.stop - term.start)
    eta = normal @ found.eta
    inside = np.linalg.pinv(design.T @ found.information @ design, rcond=1e-10, hermitian=True)
    scores = found.scores @ design
    if raters.shape[1]:
        scores = scores * steady_scores(table, most, design=design, found=found, terms=terms[:-1])
    covariance = normal @ inside @ middle_of(scores, cluster) @ inside @ normal.T
    if raters.shape[1]:  # never below those of the model
        of_model = np.diag(normal @ inside @ normal.T)
        scale = np.sqrt(np.maximum(of_model / np.diag(covariance), 1))
        covariance = scale[:, None] * covariance * scale
    factors = np.ones(design.shape[1])
    each = np.ones(len(terms))
    if corrected:
        each = bias_factors(table, most, design=design, eta=eta, terms=terms, weights=weights)
    for term, factor in zip(terms, each, strict=True):
        factors[term] = factor
    shown = design
    if raters.shape[1]:
        one_of_each = np.repeat(np.arange(len(most)) % raters.shape[1] == 0, most)
        of_items = design[one_of_each].copy()
        of_items[:, terms[1]] = 0
        of_raters = np.eye(design.shape[1])[terms[1]]
        shown = np.concatenate([of_raters, of_items])
    covariance = factors[:, None] * covariance * factors
    return {"value": shown @ (factors * eta), "se": np.sqrt(np.diag(shown @ covariance @ shown.T))}


def plain(options, responses, thresholds):
    """The same numbers by listing patterns; what is given thresholds uses those of the package."""
    table = responses.to_dense()
    most = responses.thresholds.max_score
    weights = WEIGHT / WEIGHT.mean() if options & {"weights", "survey"} else None
    cluster = CLUSTER if "clusters" in options else None
    most_list = most.tolist()
    numbers = {}
    if "rating scale" in options and not options & {"adaptive", MAXIMUM}:
        raters = np.zeros((sum(most_list), 0))
        if "facets" in options:
            raters = raters_of(responses, most)
        corrected = UNCORRECTED not in options
        numbers |= rating_scale(table, most_list, raters=raters, weights=weights, cluster=cluster, corrected=corrected)
    elif "facets" in options:
        design, center = with_raters(responses, most)
        found = conditional_maximum(table, most_list, design=design, weights=weights)
        inside = np.linalg.pinv(design.T @ found.information @ design, rcond=1e-10, hermitian=True)
        covariance = center @ inside @ design.T @ middle_of(found.scores) @ design @ inside @ center.T
        numbers["value"] = center @ found.eta
        numbers["se"] = np.sqrt(np.diag(covariance))
    elif "adaptive" in options:
        design = scale_design(most_list) if "rating scale" in options else np.eye(sum(most_list))
        here, scores, information = marginal_maximum(table, most_list, weights=weights, design=design)
        inverse = np.linalg.inv(information)
        simple = weights is None and cluster is None
        covariance = inverse if simple else inverse @ middle_of(scores, cluster) @ inverse
        to_scale = centering(most_list) @ design
        numbers["value"] = to_scale @ here[:-1]
        numbers["se"] = np.sqrt(np.diag(to_scale @ covariance[:-1, :-1] @ to_scale.T))
    elif options & {"anchors", "bank"}:
        numbers |= beside_anchors(options, responses, table, most_list, weights)
    else:
        design = scale_design(most_list) if MAXIMUM in options else None
        found = conditional_maximum(table, most_list, design=design, weights=weights)
        center = centering(most_list)
        numbers["value"] = center @ found.beta
        robust = MAXIMUM not in options  # that estimator has the errors of the model
        covariance = center @ covariance_of(found, design=design, robust=robust, cluster=cluster) @ center.T
        numbers["se"] = np.sqrt(np.diag(covariance))
    if "covariates" in options:
        numbers |= of_properties(table, most_list)
    if "groups" in options:
        numbers |= between_groups(table, most_list, weights, cluster, thresholds)
    if options & {"groups", "survey"}:
        each = np.ones(N) if weights is None else weights
        populations = [latent_mean_and_sd(table[g == GROUP], most_list, thresholds, each[g == GROUP]) for g in "ab"]
        numbers["latent_mean"], numbers["latent_sd"] = np.array(populations).T
    return numbers


def beside_anchors(options, responses, table, most, weights):
    """Free thresholds beside fixed ones, with the errors that those have in the bank."""
    n_fixed = sum(most[: anchored_items(responses)])
    offset = np.zeros(sum(most))
    errors = np.zeros((n_fixed, n_fixed))
    if "bank" in options:
        old = old_answers(options)
        old_table, old_most = old.to_dense(), old.thresholds.max_score.tolist()
        free = np.eye(n_fixed)
        at = 0.0
        center = centering(old_most)
        if "anchors" in options:
            free = free[:, old_most[0] :]
            at = np.where(np.arange(n_fixed) < old_most[0], 0.2, 0.0)
            center = np.eye(n_fixed)
        found = conditional_maximum(old_table, old_most, design=free, offset=at)
        offset[:n_fixed] = center @ found.beta
        errors = center @ covariance_of(found, design=free) @ center.T
    else:
        offset[:n_fixed] = np.concatenate(list(given_anchors(responses).values()))
    design = np.eye(sum(most))[:, n_fixed:]
    found = conditional_maximum(table, most, design=design, offset=offset, weights=weights)
    covariance = covariance_of(found, design=design)[n_fixed:, n_fixed:]
    information = found.information
    moved = -np.linalg.solve(information[n_fixed:, n_fixed:], information[n_fixed:, :n_fixed])
    return {"value": found.beta[n_fixed:], "se": np.sqrt(np.diag(covariance + moved @ errors @ moved.T))}


def of_properties(table, most):
    """The effect of a property on all thresholds of an item; distances of thresholds are free."""
    load = np.array([LOAD["load"][f"q{k}"] for k in range(len(most))])
    columns = [np.repeat(load - load.mean(), most)[:, None]]
    first = np.concatenate([[0], np.cumsum(most)])
    for item, k in enumerate(most):
        if k > 1:
            block = np.zeros((sum(most), k - 1))
            block[first[item] : first[item + 1]] = np.vstack([np.eye(k - 1), -np.ones(k - 1)])
            columns.append(block)
    design = np.concatenate(columns, axis=1)
    found = conditional_maximum(table, most, design=design)
    inverse = np.linalg.inv(design.T @ found.information @ design)
    return {"effect": found.eta[:1], "effect_se": np.sqrt(np.diag(inverse)[:1])}


def between_groups(table, most, weights, cluster, thresholds):
    """Locations in each group by itself, the distances of thresholds held as they are for all."""
    to_items = averaging(most)
    design = np.repeat(np.eye(len(most)), most, axis=0)
    value, variance = [], np.zeros(len(most))
    for group in "ab":
        own = group == GROUP
        each = None if weights is None else weights[own]
        clusters = None if cluster is None else cluster[own]
        found = conditional_maximum(table[own], most, design=design, offset=thresholds, weights=each)
        robust = each is not None or clusters is not None
        covariance = covariance_of(found, design=design, robust=robust, cluster=clusters)
        center = to_items @ centering(most)
        value.append(center @ found.beta)
        variance += np.diag(center @ covariance @ center.T)
    return {"contrast": value[1] - value[0], "contrast_se": np.sqrt(variance)}


def named(pair):
    return " x ".join(one for one in OPTIONS if one in pair)


def test_every_pair_is_in_the_table():
    table = [*REFUSALS, *COMPUTED, *WITH_MEMORY, *WITH_DASK]
    assert len(table) == len(set(table)) == 91
    assert set(table) == set(PAIRS)


@pytest.mark.parametrize("pair", REFUSALS, ids=named)
def test_refused_in_a_sentence(pair):
    """Of the two options, and not of something else that is amiss."""
    refusal = REFUSALS[pair]
    with pytest.raises(refusal.error) as refused:
        run(pair, answers(kind_of(pair), "missing" in pair))
    sentence = str(refused.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    for word in refusal.words:
        assert word in sentence


@pytest.mark.parametrize("option", sorted(frozenset().union(*REFUSALS)))
def test_what_is_refused_in_a_pair_is_done_alone(option):
    """So that a refusal is about the pair."""
    options = frozenset({option})
    assert np.isfinite(run(options, answers(kind_of(options), False))["value"]).all()


COMPUTED = [pair for pair in PAIRS if pair not in REFUSALS and not pair & set(ELSEWHERE)]


@pytest.mark.parametrize("pair", COMPUTED, ids=named)
def test_right(pair):
    responses = answers(kind_of(pair), "missing" in pair)
    ours = run(pair, responses)
    theirs = plain(pair, responses, ours["thresholds"])
    value_tolerance, error_tolerance = NUMBER_OF_ERRORS, ERRORS_AGREE
    if "bank" in pair:
        error_tolerance = ERRORS_OF_A_BANK
    if "rating scale" in pair and "adaptive" not in pair:
        value_tolerance, error_tolerance = NUMBER_OF_ERRORS_OF_A_SCALE, ERRORS_OF_A_SCALE
    assert np.abs((ours["value"] - theirs["value"]) / theirs["se"]).max() < value_tolerance
    np.testing.assert_allclose(ours["se"], theirs["se"], rtol=error_tolerance)
    for name in ("effect", "contrast"):
        if name in theirs:
            assert np.abs((ours[name] - theirs[name]) / theirs[f"{name}_se"]).max() < NUMBER_OF_ERRORS
            np.testing.assert_allclose(ours[f"{name}_se"], theirs[f"{name}_se"], rtol=ERRORS_AGREE)
    for name in ("latent_mean", "latent_sd"):
        if name in theirs:
            np.testing.assert_allclose(ours[name], theirs[name], atol=2e-3)


RATING_SCALES = [pair for pair in COMPUTED if "rating scale" in pair and "adaptive" not in pair]


@pytest.mark.parametrize("pair", RATING_SCALES, ids=named)
def test_a_rating_scale_before_its_bias_is_taken_off(pair, monkeypatch):
    """As close as other pairs; raters and weights, too."""
    monkeypatch.setattr(linear_fit, "bias_factors", lambda likelihood, optimum, eta, terms, noise: np.ones(len(terms)))
    responses = answers(kind_of(pair), "missing" in pair)
    ours = run(pair, responses)
    theirs = plain(pair | {UNCORRECTED}, responses, ours["thresholds"])
    assert np.abs((ours["value"] - theirs["value"]) / theirs["se"]).max() < NUMBER_OF_ERRORS
    np.testing.assert_allclose(ours["se"], theirs["se"], rtol=ERRORS_AGREE)


@pytest.mark.parametrize("option", ["clusters", "missing", "ordered"])
def test_the_maximum_of_a_rating_scale(option):
    """`ConditionalRatingScale` takes no bias off (and has neither weights nor facets): equal to the last digits."""
    options = frozenset({"rating scale", MAXIMUM, option})
    responses = answers(kind_of(options), option == "missing")
    ours = run(options, responses)
    theirs = plain(options, responses, ours["thresholds"])
    np.testing.assert_allclose(ours["value"], theirs["value"], atol=1e-9)
    np.testing.assert_allclose(ours["se"], theirs["se"], rtol=1e-6)


def same_numbers(one, other):
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_allclose(other[name], values, rtol=1e-7, atol=1e-7, err_msg=name)


def runs_of(option):
    options = frozenset({option} - set(ELSEWHERE))
    return options, answers(kind_of(options), option == "missing")


@pytest.fixture
def nothing_fits(monkeypatch, tmp_path):
    """A limit of memory under which even the smallest array goes to disk."""
    monkeypatch.setattr(memory, "SMALL", 1)
    budget = memory.Budget("1GB", tmp_path)
    budget.explicit, budget.total, budget.room = False, 0, 0
    return budget


WITH_MEMORY = [frozenset({option, "memory"}) for option in OPTIONS if option not in ELSEWHERE]
WITH_DASK = [frozenset({option, "dask"}) for option in OPTIONS if option != "dask"]


@pytest.mark.parametrize("pair", WITH_MEMORY, ids=named)
def test_a_limit_of_memory_changes_no_number(pair, nothing_fits, monkeypatch):
    options, responses = runs_of(next(iter(pair - {"memory"})))
    free = run(options, responses)
    mapped = replace(responses, blocks=tuple(nothing_fits.keep(block, 1.0) for block in responses.blocks))
    monkeypatch.setattr(memory, "_in_force", nothing_fits)
    same_numbers(free, run(options, mapped))


@pytest.fixture(scope="module")
def engine():
    distributed = pytest.importorskip("distributed")
    small = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "silence_logs": 50}
    with distributed.LocalCluster(dashboard_address=None, **small) as cluster, distributed.Client(cluster) as client:
        yield connect(client)


def saved(responses, folder):
    """A packed file of answers, or a table of ratings."""
    if responses.facets is None:
        responses.save(folder / "answers.packed")
        return folder / "answers.packed"
    person, virtual, x = responses.answers()
    facets = responses.facets
    raters, rater = facets.column("rater")
    columns = {"person": person, "item": facets.items[facets.item[virtual]], "rater": raters[rater[virtual]]}
    pl.DataFrame(columns | {"response": x.astype(int)}).write_parquet(folder / "ratings.parquet")
    return folder / "ratings.parquet"


def reading(responses):
    return {} if responses.facets is None else {"facets": ["rater"]}


@pytest.mark.slow
@pytest.mark.parametrize("pair", WITH_DASK, ids=named)
def test_a_cluster_of_workers_changes_no_number(pair, engine, tmp_path, request):
    options, responses = runs_of(next(iter(pair - {"dask"})))
    free = run(options, responses)
    if "memory" in pair:
        patch = request.getfixturevalue("monkeypatch")
        patch.setattr(memory, "_in_force", request.getfixturevalue("nothing_fits"))
    there = si.read(saved(responses, tmp_path), client=engine, **reading(responses))
    assert there.engine is engine
    same_numbers(free, run(options, there))
