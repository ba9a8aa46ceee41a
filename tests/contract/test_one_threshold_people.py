"""Right and wrong is the case of one threshold, for people: abilities, population, plausible values, tables of scores.

The same answers go through the Rasch model, through partial credit with the categories 0 and 1, and beside an item of
three categories that nobody answered, which makes the kernels write out categories.
"""

import numpy as np
import pytest
from scipy.special import logsumexp

from spectral_irt.ability import score_abilities
from spectral_irt.data.block import Thresholds
from spectral_irt.data.responses import Responses
from spectral_irt.errors import OptionError
from spectral_irt.persons.abilities import abilities
from spectral_irt.persons.plausible import plausible_values
from spectral_irt.persons.test_form import Form, find_forms

METHODS = ("wle", "ml", "eap")
BETA = np.random.default_rng(3).normal(0, 1.5, 15)


def table(people=120, missing=0.2, seed=4, sd=1.2):
    rng = np.random.default_rng(seed)
    theta = rng.normal(0.3, sd, people)
    right = rng.random((people, len(BETA))) < 1 / (1 + np.exp(BETA - theta[:, None]))
    answers = np.where(rng.random(right.shape) < missing, np.nan, right.astype(float))
    answers[0, :] = np.nan  # somebody who answered nothing
    answers[1, :], answers[2, :] = 1, 0
    return answers


def beside_another(answers):
    """The same answers, and an item with three categories that none of these people answered."""
    person, item = np.nonzero(~np.isnan(answers))
    code = answers[person, item].astype(np.int64)
    thresholds = Thresholds(np.append(np.ones(len(BETA), dtype=np.int64), 2))
    persons, items = np.arange(len(answers)), np.arange(len(BETA) + 1)
    made = Responses.from_codes(person, item, code, thresholds=thresholds, persons=persons, items=items)
    return made, np.append(BETA, [0.5, -0.5])


def both(answers):
    return [(Responses.from_wide(answers), BETA), beside_another(answers)]


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("method", METHODS)
def test_abilities_and_population(method, missing):
    one, other = (abilities(*given, method) for given in both(table(missing=missing)))
    for name in ("ability", "se"):
        assert np.allclose(getattr(one, name), getattr(other, name), rtol=0, atol=1e-7, equal_nan=True)
    for name in ("extreme", "n", "score"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    if method == "eap":
        assert np.allclose(one.prior, other.prior, atol=1e-7)


@pytest.mark.parametrize("given", [None, "groups"])
def test_plausible_values(given):
    answers = table()
    given = None if given is None else np.where(np.arange(len(answers)) % 2, "a", "b")
    one, other = (plausible_values(*each, seed=7, given=given) for each in both(answers))
    assert np.allclose(one.values, other.values, atol=2e-3)  # the grid beside three categories is finer
    assert np.allclose(one.mean, other.mean, atol=1e-6)
    assert one.sd == pytest.approx(other.sd, abs=1e-6)


def test_forms_and_what_their_scores_say():
    answers = table()
    answers[3:40, :8], answers[3:40, 8:] = np.nan_to_num(answers[3:40, :8]), np.nan
    one, other = (find_forms(*given) for given in both(answers))
    assert len(one.items) == 1
    assert np.array_equal(one.form, other.form)
    assert one.n_sets == other.n_sets
    assert all(np.array_equal(*pair) for pair in zip(one.items, other.items, strict=True))
    theta = np.linspace(-4, 4, 9)
    binary = Form.of(BETA)
    beside = Form(np.append(BETA, [0.5, -0.5]), Thresholds(np.append(np.ones(15, dtype=np.int64), 2)))
    two = beside.take(np.arange(15))
    assert two.max_score == binary.max_score
    assert two.ends() == binary.ends()
    assert np.allclose(two.chances(theta), binary.chances(theta), atol=1e-12)
    for method in METHODS:
        assert np.allclose(two.abilities(method, (0.1, 1.3)), binary.abilities(method, (0.1, 1.3)), atol=1e-9)


@pytest.mark.slow
def test_the_highest_of_the_weighted_likelihoods_whatever_the_order_of_thresholds():
    rng = np.random.default_rng(11)
    grid = np.arange(-40, 40, 0.01)
    several = 0
    for _ in range(60):
        counts = rng.integers(1, 4, rng.integers(2, 5))
        counts[0] = 2
        steps = Thresholds(counts)
        beta = rng.normal(0, rng.choice([1.0, 4.0, 7.0]), steps.n_entries)
        k = np.arange(steps.widest + 1)
        x = grid[:, None, None] * k - steps.cumulated(beta)
        size = logsumexp(x, axis=2)
        p = np.exp(x - size[:, :, None])
        variance = (p @ k**2 - (p @ k) ** 2).sum(axis=1)
        found = score_abilities(beta, steps)[0]
        inside = variance > 1e-9  # beyond, rounding decides
        for score in range(1, steps.n_entries):
            height = np.where(inside, score * grid - size.sum(axis=1) + np.log(np.maximum(variance, 1e-300)) / 2, -1e9)
            peaks = np.flatnonzero((height[1:-1] > height[:-2]) & (height[1:-1] > height[2:])) + 1
            several += len(peaks) > 1
            assert np.interp(found[score], grid, height) > height.max() - 1e-3
    assert several > 20


@pytest.mark.slow
def test_posterior_is_right_on_a_long_test_of_ordered_answers():
    rng = np.random.default_rng(5)
    items, people = 150, 20
    thresholds = (rng.normal(0, 1, items)[:, None] + np.array([-1.5, -0.5, 0.5, 1.5])).ravel()
    steps = Thresholds(np.full(items, 4))
    theta = rng.normal(0, 2, people)
    k = np.arange(5)
    x = theta[:, None, None] * k - steps.cumulated(thresholds)
    p = np.exp(x - logsumexp(x, axis=2)[:, :, None])
    answers = (rng.random((people, items, 1)) > np.cumsum(p, axis=2)).sum(axis=2).clip(0, 4)
    person, item = np.indices(answers.shape).reshape(2, -1)
    ids = {"persons": np.arange(people), "items": np.arange(items)}
    given = Responses.from_codes(person, item, answers.ravel(), thresholds=steps, **ids)
    found = abilities(given, thresholds, "eap", prior_mean=0.0, prior_sd=2.0)
    nodes = np.linspace(-12, 12, 24_001)
    size = sum(logsumexp(nodes[:, None] * k - row, axis=1) for row in steps.cumulated(thresholds))
    for each, score in enumerate(answers.sum(axis=1)):
        log = score * nodes - size - nodes**2 / 8
        weight = np.exp(log - log.max())
        mean = weight @ nodes / weight.sum()
        sd = np.sqrt(weight @ (nodes - mean) ** 2 / weight.sum())
        assert found.ability[each] == pytest.approx(mean, abs=1e-6)
        assert found.se[each] == pytest.approx(sd, abs=1e-6)


@pytest.mark.slow
def test_a_narrow_population_is_found_and_too_few_people_are_refused():
    answers = np.random.default_rng(1).integers(0, 2, (1_000, 4)).astype(float)  # all of the same ability
    beta = np.zeros(4)
    ids = {"persons": np.arange(1_000), "items": np.arange(5)}
    person, item = np.indices(answers.shape).reshape(2, -1)
    code, layout = answers.ravel().astype(np.int64), Thresholds(np.array([1, 1, 1, 1, 2]))
    other = Responses.from_codes(person, item, code, thresholds=layout, **ids)
    one = abilities(Responses.from_wide(answers), beta, "eap").prior
    assert one[1] < 0.05
    # Steps end where the mean moves by little: a thirtieth of its standard error, whichever processor adds.
    assert abilities(other, np.append(beta, [0.0, 0.0]), "eap").prior == pytest.approx(one, abs=1e-3)
    with pytest.raises(OptionError, match="too few to estimate the population"):
        abilities(other.take_persons(np.flatnonzero(other.scores == 2)[:10]), np.append(beta, [0.0, 0.0]), "eap")
