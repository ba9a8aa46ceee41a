"""The test of conditional against marginal likelihood, by listing patterns, loops over persons and differences of
gradients; and its gates and sentences at their limits."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.special

import spectral_irt as si
from oracle import averaging, centering, conditional_point, marginal_maximum
from spectral_irt.inference.groups import hausman as module
from spectral_irt.inference.groups.hausman import HausmanTest, forms_follow_ability, hausman
from spectral_irt.inference.groups.sampling import Sampling

CLOSE = 5e-3  # relative: the package integrates over fewer points


def answers(categories, n_items, *, missing, seed):
    """Responses of 90 persons, every fifth of them on easy items only; the first items have been met by more."""
    rng = np.random.default_rng(seed)
    n = 90
    location = np.linspace(-1, 1, n_items)
    steps = np.linspace(-0.5, 0.6, categories - 1) if categories > 2 else np.zeros(1)
    beta = location[:, None] + steps + rng.normal(0, 0.2, (n_items, categories - 1))
    theta = rng.exponential(1.2, n) - 1
    log_p = np.concatenate([np.zeros((n, n_items, 1)), np.cumsum(theta[:, None, None] - beta, axis=2)], axis=2)
    p = np.exp(log_p) / np.exp(log_p).sum(axis=2, keepdims=True)
    x = (rng.random((n, n_items, 1)) > np.cumsum(p, axis=2)).sum(axis=2).astype(float)
    if missing:
        x[::5, n_items // 2 + 1 :] = np.nan
        x[1::9, 0] = np.nan
    return x


def plain_directions(x, most, beta):
    """W of the thresholds: each direction what is left of it beside those before, with the sd 1."""
    n_items = len(most)
    owner = np.repeat(np.arange(n_items), most)
    location = averaging(most) @ beta
    met_with = [[] for _ in range(n_items)]
    for row in x:
        seen = np.flatnonzero(~np.isnan(row))
        for item in seen:
            met_with[item].append(location[seen].mean())
    z = (location - location.mean()) / location.std()
    columns = [location - location.mean()]
    candidates = [z**2, z**3, [np.mean(each) for each in met_with], [np.log(len(each)) for each in met_with]]
    for values in candidates:
        if np.ptp(values) < 1e-9 or len(columns) == n_items - 2:
            continue
        before = np.column_stack([np.ones(n_items), *columns])
        left = values - before @ np.linalg.lstsq(before, np.asarray(values), rcond=None)[0]
        columns.append(left / left.std())
    directions = np.column_stack(columns)[owner]
    if max(most) > 1:
        distance = beta - location[owner]
        directions = np.column_stack([directions, distance / distance.std()])
    return directions


@pytest.mark.parametrize("sampled", ["simple", "weights", "clusters"])
@pytest.mark.parametrize(("categories", "n_items", "missing"), [(2, 7, False), (2, 7, True), (3, 4, False)])
def test_every_number_of_the_test(monkeypatch, categories, n_items, missing, sampled):
    monkeypatch.setattr(module, "MARGINAL_TOLERANCE", 1e-9)
    x = answers(categories, n_items, missing=missing, seed=4)
    most = [categories - 1] * n_items
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(x)) if sampled == "weights" else np.ones(len(x))
    weights /= weights.mean()
    cluster = np.arange(len(x)) % 30
    sampling = {"simple": Sampling(), "weights": Sampling(weights=weights), "clusters": Sampling(cluster=cluster)}[
        sampled
    ]
    responses = si.Responses.from_wide(x, ordered=categories > 2)
    test = hausman(responses, np.zeros(sum(most)), sampling=sampling)

    parameters, u, J = marginal_maximum(x, most, weights=weights)
    beta = parameters[:-1]
    g, H = conditional_point(x, most, beta, weights)
    W = plain_directions(x, most, beta)
    r = (g - u @ np.linalg.inv(J)[:, :-1] @ H) @ W
    total = np.nansum(x, axis=1)
    informative = (total > 0) & (total < (~np.isnan(x)) @ np.array(most))
    n_units = int(informative.sum())
    T = r.sum(axis=0)
    if sampled == "clusters":
        sums = np.array([r[cluster == c].sum(axis=0) for c in range(30)])
        n_units = len(sums)
        r = (sums - T / 30) * np.sqrt(30 / 29)
    V = sum(np.outer(one, one) for one in r)
    k = len(T)
    statistic = T @ np.linalg.inv(V) @ T
    along = np.array([w @ H @ w for w in W.T])
    assert (test.df, test.df2) == (k, n_units - k)
    assert test.statistic == pytest.approx(statistic, rel=CLOSE)
    f = statistic * (n_units - k) / (k * (n_units - 1))
    assert test.p == pytest.approx(scipy.special.fdtrc(k, n_units - k, f), rel=CLOSE)
    np.testing.assert_allclose(test.columns["difference"], T / along, rtol=CLOSE, atol=1e-4)
    np.testing.assert_allclose(test.columns["se"], np.sqrt(np.diag(V)) / along, rtol=CLOSE)
    np.testing.assert_allclose(test.columns["z"], T / np.sqrt(np.diag(V)), rtol=CLOSE, atol=1e-2)
    step = averaging(most) @ W @ np.linalg.inv(W.T @ H @ W) @ T
    location = averaging(most) @ centering(most) @ beta
    assert test.size == pytest.approx(np.sqrt(np.mean(step**2)), rel=CLOSE)
    assert test.stretch == pytest.approx(1 + location @ step / (location @ location), abs=1e-3)
    to_locations = averaging(most) @ centering(most)
    variance = np.diag(to_locations @ np.linalg.inv(J)[:-1, :-1] @ to_locations.T)
    assert test.in_errors == pytest.approx(np.sqrt(np.mean(step**2 / variance)), rel=CLOSE)
    assert (test.n_people, test.n_items) == (int(informative.sum()), n_items)


def test_of_a_sample_the_difference_counts_in_the_errors_of_everybody():
    """Errors of all are smaller by the root of the share that was taken."""
    responses = si.Responses.from_wide(answers(2, 7, missing=False, seed=4))
    sample = module._sample(responses, np.zeros(7), None, 0, Sampling())
    everybody, quarter = (module._score_test(sample._replace(share=share)) for share in (1.0, 0.25))
    assert quarter.in_errors == pytest.approx(2 * everybody.in_errors)
    assert quarter.size == everybody.size


A_TEST = HausmanTest(
    statistic=30.0,
    df=3,
    p=0.001,
    df2=80.0,
    compared="",
    columns={},
    frame_kind="polars",
    size=0.2,
    stretch=1.2,
    in_errors=2.0,
    n_people=83,
    n_items=7,
)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, True),
        ({"p": 0.0099}, True),
        ({"p": 0.01}, False),
        ({"size": 0.05}, True),
        ({"size": 0.049}, False),
        ({"in_errors": 0.5}, True),
        ({"in_errors": 0.49}, False),
    ],
)
def test_the_finding_is_about_what_matters(monkeypatch, change, said):
    """Significant, and a notable difference both in logits and in standard errors."""
    monkeypatch.setattr(module, "_score_test", lambda sample: replace(A_TEST, **change))
    x = answers(2, 7, missing=False, seed=4)
    test = hausman(si.Responses.from_wide(x), np.zeros(7))
    assert [finding.severity for finding in test.findings] == ["warning"] * said


@pytest.mark.parametrize(
    ("stretch", "size"),
    [
        (1.2, "about 1.2 times as far apart"),
        (0.8, "about 0.8 times as far apart"),
        (1.04, "0.20 logits off"),
        (0.96, "0.20 logits off"),
    ],
)
@pytest.mark.parametrize("grouped", [False, True])
def test_how_the_difference_is_said(stretch, size, grouped):
    finding = module._finding(replace(A_TEST, stretch=stretch), binary=True, grouped=grouped)
    assert f"those of CML are {size})" in finding.sentence
    assert ("populations of the groups" in finding.sentence) == grouped


def test_too_few_persons_or_items_are_an_error():
    """50 with a choice, and three items."""
    x = answers(2, 7, missing=False, seed=4)
    informative = np.flatnonzero((x.sum(axis=1) > 0) & (x.sum(axis=1) < 7))
    module.hausman(si.Responses.from_wide(x[informative[:50]]), np.zeros(7))
    with pytest.raises(si.errors.DesignError, match="49 people"):
        module.hausman(si.Responses.from_wide(x[informative[:49]]), np.zeros(7))
    three = x[:, 2:5]
    assert module.hausman(si.Responses.from_wide(three), np.zeros(3)).n_items == 3
    with pytest.raises(si.errors.DesignError, match="2 items"):
        module.hausman(si.Responses.from_wide(x[:, 2:4]), np.zeros(2))


def test_the_chance_of_being_ahead():
    rng = np.random.default_rng(2)
    first = rng.integers(0, 5, 13)
    second = rng.integers(1, 7, 9)
    pairs = [(a > b) + (a == b) / 2 for a in first for b in second]
    assert module._chance_ahead(first, second) == pytest.approx(np.mean(pairs))


def two_forms(common_low, common_high, n=40):
    """Two forms of two common items and two of their own, by the scores of each form's persons on the common items."""
    table = np.full((2 * n, 6), np.nan)
    table[:n, :4] = 0
    table[n:, 2:] = 0
    table[:n, 2] = np.arange(n) < common_low * n
    table[n:, 2] = np.arange(n) < common_high * n
    table[::2, 3] = 1
    return si.Responses.from_wide(table)


@pytest.mark.parametrize(
    ("low", "high", "follow"),
    [(0.5, 0.5, False), (0.3, 0.8, True), (0.8, 0.3, True), (0.45, 0.55, False), (0.0, 1.0, True)],
)
def test_forms_of_persons_of_unlike_ability(low, high, follow):
    """The chance of scoring higher: .5 + (high - low) / 4 + ... by a common item of which half are right anyway."""
    responses = two_forms(low, high)
    scores = np.nansum(responses.to_dense()[:, 2:4], axis=1)
    ahead = module._chance_ahead(scores[40:].astype(int), scores[:40].astype(int))
    assert (0.6 < max(ahead, 1 - ahead) < 0.97) == follow
    assert forms_follow_ability(responses) == follow


def test_forms_that_scores_chose_or_that_are_parts_of_others_do_not_follow_ability():
    routed = two_forms(0.0, 1.0).to_dense()
    routed[:40, 3] = 0
    routed[40:, 3] = 1
    assert not forms_follow_ability(si.Responses.from_wide(routed))
    beginning = two_forms(0.3, 0.8).to_dense()
    beginning[:40, :2] = np.nan  # their items are all in the other form
    assert not forms_follow_ability(si.Responses.from_wide(beginning))
    few = two_forms(0.3, 0.8).to_dense()
    assert not forms_follow_ability(si.Responses.from_wide(few[:59]))  # 19 persons on the second form
    assert forms_follow_ability(si.Responses.from_wide(few[:60]))
