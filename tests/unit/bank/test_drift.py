"""Drift of a bank's items: against brute force, its level and power, and what an update says about it."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from changed_bank import bank_of, changed
from dense_ordered import conditional
from drawn import drawn_categories
from spectral_irt import SpectralPartialCredit
from spectral_irt.bank import Bank
from spectral_irt.bank.drift import LEAST_DRIFT, LEVEL, drift
from spectral_irt.data import Responses, as_responses
from spectral_irt.inference.results import adjust_p


def bank_from(table, categories=2):
    if categories == 2:
        return bank_of(Responses.from_wide(table))
    ordered = as_responses(table, ordered=True, unused="keep")
    return Bank.from_fit(SpectralPartialCredit().fit(ordered), ordered)


def simulated(rng, people, thresholds, missing=0.0):
    """Responses of people whose abilities are standard normal."""
    sums = np.cumsum(np.column_stack([np.zeros(len(thresholds)), np.array(thresholds)]), axis=1)
    theta = rng.normal(size=(people, 1, 1))
    table = drawn_categories(rng, theta * np.arange(sums.shape[1]) - sums)
    table[rng.random(table.shape) < missing] = np.nan
    return table


def items(rng, number, categories=2):
    """Thresholds of some items."""
    location = rng.normal(size=(number, 1))
    return list(location + np.sort(rng.normal(size=(number, categories - 1)), axis=1) * (categories > 2))


def given_score(thresholds, score):
    """P(X_i = c | score), a list by items, by going through all patterns."""
    patterns, p = conditional(thresholds, score)
    return [np.bincount(x, weights=p, minlength=len(own) + 1) for x, own in zip(patterns.T, thresholds, strict=True)]


@pytest.mark.parametrize("categories", [2, 4])
def test_displacement_and_root_are_those_of_the_likelihood_of_each_item(categories):
    """Of a bank that is certain of its thresholds, which nobody's responses to the other items tell otherwise."""
    rng = np.random.default_rng(5)
    thresholds = items(rng, 5, categories)
    bank = bank_from(simulated(rng, 500, thresholds), categories)
    certain = changed(
        bank,
        matrix=1e12 * bank.evidence.matrix,
        threshold_se=1e-6 * bank.calibration.threshold_se,
        location_se=None if categories == 2 else 1e-6 * bank.se,
    )
    table = simulated(rng, 60, thresholds, missing=0.2)
    made = bank.calibration
    own = np.split(made.thresholds, made.layout.first[1:])
    everyone = []
    for row in table:
        seen = np.flatnonzero(~np.isnan(row))
        score, most = int(np.nansum(row)), (categories - 1) * len(seen)
        if len(seen) > 1 and 0 < score < most:
            everyone.append((seen, row, given_score([own[i] for i in seen], score)))
    found = certain.drift(table)
    for item in range(5):
        p = np.array([given[seen.tolist().index(item)] for seen, _, given in everyone if item in seen])
        x = sum(row[item] for seen, row, _ in everyone if item in seen)
        score = np.arange(categories)

        def minus_log(d, at, p=p, score=score):
            return d * at + np.log((p * np.exp(-score * d)).sum(axis=1)).sum()

        best = minimize_scalar(minus_log, args=(x,), bracket=(-1, 1), options={"xtol": 1e-10}).x
        assert found.displacement[item] == pytest.approx(best, abs=0.02)
        expected = (p @ score).sum()
        nearer = x + np.sign(expected - x) * min(0.5, abs(expected - x))
        best = minimize_scalar(minus_log, args=(nearer,), bracket=(-1, 1), options={"xtol": 1e-10}).x
        root = np.sign(expected - x) * np.sqrt(max(2 * (minus_log(0, nearer) - minus_log(best, nearer)), 0))
        assert found.z[item] == pytest.approx(root, abs=2e-3)
    np.testing.assert_allclose(found.p, 2 * norm.sf(np.abs(found.z)))
    np.testing.assert_allclose(found.p_adjusted, adjust_p(found.p, "holm"))


@pytest.mark.slow
def test_errors_of_the_bank_are_in_the_errors_of_the_displacement():
    """Spread of displacements over banks and new people, where both are small."""
    rng = np.random.default_rng(6)
    thresholds = items(rng, 8)
    found = [bank_from(simulated(rng, 300, thresholds)).drift(simulated(rng, 600, thresholds)) for _ in range(50)]
    spread = np.array([one.displacement for one in found]).std(axis=0)
    errors = np.array([one.se for one in found]).mean(axis=0)
    np.testing.assert_allclose(spread / errors, 1, atol=0.4)  # four standard errors of a spread of 50
    z = np.array([one.z for one in found])
    assert np.sqrt(np.mean(z**2)) == pytest.approx(1, abs=0.1)  # of 400


def test_items_that_drifted_are_named_and_no_others():
    """Eight of thirty, all in one direction: the others seem to go the other way."""
    rng = np.random.default_rng(7)
    thresholds = items(rng, 30)
    bank = bank_from(simulated(rng, 2000, thresholds))
    moved = [own + 1.0 if k < 8 else own for k, own in enumerate(thresholds)]
    found = bank.drift(simulated(rng, 1500, moved))
    assert set(found.item[found.drifted].tolist()) == set(range(8))
    np.testing.assert_allclose(found.displacement, [1.0] * 8 + [0.0] * 22, atol=0.45)
    [finding] = found.findings
    assert (finding.code, finding.severity, set(finding.items)) == ("drifted_items", "warning", set(range(8)))
    assert {one["item"] for one in found.records()} == set(range(8))


@pytest.mark.parametrize("keep", ["matrix", "no matrix"])
@pytest.mark.parametrize("categories", [2, 3])
def test_an_update_says_which_items_have_drifted(categories, keep):
    rng = np.random.default_rng(8)
    thresholds = items(rng, 12, categories)
    first = simulated(rng, 800, thresholds)
    bank = bank_from(first, categories)
    if keep == "no matrix":
        blocks = (
            None
            if categories == 2
            else np.linalg.inv(
                np.array([np.eye(2) * se**2 for se in bank.calibration.threshold_se.reshape(12, 2).mean(axis=1)])
            )
        )
        bank = changed(bank, matrix=None, blocks=blocks)
    moved = [own - 1.2 if k == 3 else own for k, own in enumerate(thresholds)]
    updated = bank.update(simulated(rng, 400, moved))
    [finding] = [finding for finding in updated.findings if finding.code == "drifted_items"]
    assert finding.items == (3,)
    assert "drifted_items" not in [one.code for one in updated.update(simulated(rng, 60, thresholds)).findings]
    assert updated.n_persons == 1200  # all the same, it is an update


def test_what_is_not_compared():
    """Items that the bank has not measured, new ones, and responses that tell nothing."""
    rng = np.random.default_rng(9)
    thresholds = items(rng, 6)
    first = simulated(rng, 400, thresholds)
    first[:, 5] = 1  # everybody has it right
    bank = bank_from(first)
    new = Responses.from_wide(np.column_stack([simulated(rng, 200, thresholds), rng.integers(0, 2, 200)]))
    assert bank.drift(new).item.tolist() == [0, 1, 2, 3, 4]
    one = np.full((40, 6), np.nan)
    one[:, 0] = rng.integers(0, 2, 40)
    assert len(bank.drift(one).item) == 0
    assert bank.drift(np.ones((40, 5))).findings == []


def any_drift(rng, *, bank_people, new_people, number, categories=2, missing=0.0, by=0.0):
    """Whether any item without drift is named, and whether the first one, moved by so much, is."""
    thresholds = items(rng, number, categories)
    bank = bank_from(simulated(rng, bank_people, thresholds, missing), categories)
    moved = [own + by if k == 0 else own for k, own in enumerate(thresholds)]
    table = simulated(rng, new_people, moved, missing)
    answers = bank._align(bank._as_responses(table))
    found = drift(bank, answers, screen=True)
    named = set(found.item[found.drifted].tolist())
    return bool(named - {0} if by else named), 0 in named


LEVELS = {
    "five people": {"bank_people": 500, "new_people": 5, "number": 20},
    "thirty people": {"bank_people": 500, "new_people": 30, "number": 20},
    "as many as the bank": {"bank_people": 300, "new_people": 300, "number": 20},
    "more than the bank": {"bank_people": 200, "new_people": 1500, "number": 12},
    "five items": {"bank_people": 300, "new_people": 200, "number": 5},
    "many missing": {"bank_people": 1000, "new_people": 200, "number": 30, "missing": 0.6},
    "ordered": {"bank_people": 400, "new_people": 300, "number": 8, "categories": 4},
}


@pytest.mark.slow
def test_clean_loads_raise_no_alarm_beyond_the_level():
    """Any alarm in 20 clean loads of each design: at most 5%, within three standard errors of a share; within two and a
    half over all designs."""
    shares = []
    for number, design in enumerate(LEVELS.values()):
        rng = np.random.default_rng([10, number])
        shares.append(np.mean([any_drift(rng, **design)[0] for _ in range(20)]))
    error = np.sqrt(LEVEL * (1 - LEVEL) / 20)
    assert max(shares) <= LEVEL + 3 * error, dict(zip(LEVELS, shares, strict=True))
    assert np.mean(shares) <= LEVEL + 2.5 * error / np.sqrt(len(shares))


@pytest.mark.slow
@pytest.mark.parametrize(("categories", "new_people"), [(2, 800), (4, 400)])
def test_half_a_logit_is_found(categories, new_people):
    rng = np.random.default_rng([11, categories])
    found = [
        any_drift(rng, bank_people=2000, new_people=new_people, number=20, categories=categories, by=0.5)
        for _ in range(20)
    ]
    assert np.mean([moved for _, moved in found]) > 0.85
    assert np.mean([others for others, _ in found]) <= LEVEL + 2.5 * np.sqrt(LEVEL * (1 - LEVEL) / 20)
    assert LEAST_DRIFT < 0.5
