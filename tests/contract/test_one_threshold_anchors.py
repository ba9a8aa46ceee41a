"""Right and wrong is the case of one threshold: anchors and weights of answers in categories do what theirs do."""

import numpy as np
import pytest

from spectral_irt import AnchoredRasch, Responses, SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.chain.operator import Neighbors
from spectral_irt.chain.prior import LocationPrior, Prior
from spectral_irt.conditional.errors import missing_spread
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.newton import Newton
from spectral_irt.errors import OptionError


@pytest.fixture(scope="module")
def credit():
    return simulate.partial_credit(700, 8, categories=4, seed=2)


def anchors_of(data, items):
    layout = data.responses.thresholds
    return {i: data.thresholds[layout.first[i] : layout.first[i] + layout.max_score[i]].tolist() for i in items}


@pytest.mark.parametrize("se", ["dense", "one-pass", "information", "none"])
@pytest.mark.parametrize("regularization", ["auto", 0, 3.0])
def test_the_same_answers_and_anchors_give_the_same_numbers(se, regularization):
    table = simulate.rasch(150, 14, design="sampled", p=0.5, seed=4).responses.to_dense()
    table[:, 5] = np.where(np.isnan(table[:, 5]), np.nan, 1)  # everybody right
    options = {"se": se, "regularization": regularization}
    rasch = AnchoredRasch({0: 0.5, 1: -1.0, 2: 0.2}, **options).fit(table)
    credit = SpectralPartialCredit(**options).fit(Responses.from_wide(table), anchors={0: [0.5], 1: [-1.0], 2: [0.2]})
    np.testing.assert_array_equal(credit.thresholds_, rasch.difficulty_)
    np.testing.assert_array_equal(credit.se_, rasch.se_)
    assert credit.findings_ == rasch.findings_
    assert credit.status_.tolist() == rasch.status_.tolist()
    np.testing.assert_array_equal(credit.calibration_.further["displacement"], rasch.displacement_)


def test_anchors_link_forms_that_share_nobody(credit):
    """Two forms without common people, anchors in each: their data alone have no common scale."""
    table = credit.responses.to_dense()
    table[:350, 4:], table[350:, :4] = np.nan, np.nan
    fit = SpectralPartialCredit(regularization=0).fit(table, anchors=anchors_of(credit, (0, 4)))
    assert np.isfinite(fit.se_).all()
    assert np.max(np.abs(fit.thresholds_ - credit.thresholds)[3:12]) < 0.6
    assert np.max(np.abs(fit.thresholds_ - credit.thresholds)[15:]) < 0.6


@pytest.mark.parametrize("categories", [2, 4])
def test_means_are_taken_as_equal_beside_anchors_where_that_is_said(categories):
    """Four items share nobody with the anchors: of draws from the prior their mean has the variance 1 / (4 alpha)."""
    data = simulate.partial_credit(600, 8, categories=categories, seed=3)
    table, anchors = data.responses.to_dense(), anchors_of(data, (0, 1))
    table[:300, 4:], table[300:, :4] = np.nan, np.nan
    ways = (SpectralPartialCredit(regularization=2.5, assume_equal_means=way) for way in (False, True))
    apart, tied = (fit.fit(table, anchors=anchors) for fit in ways)
    assert np.isinf(apart.se_[4:]).all()
    alone = SpectralPartialCredit(regularization=2.5).fit(table[300:, 4:])
    np.testing.assert_allclose(tied.se_[4:] ** 2 - alone.se_**2, 1 / (4 * 2.5), rtol=0.05)


@pytest.mark.parametrize("categories", [2, 4])
def test_displacement_of_weighted_people_is_that_of_people_repeated(categories):
    data = simulate.partial_credit(300, 8, categories=categories, seed=3)
    table, anchors = data.responses.to_dense(), anchors_of(data, (0, 1, 2))
    many = np.arange(300) < 100
    options = {"anchors": {key: [value + 0.3 * key for value in values] for key, values in anchors.items()}}
    weighted = SpectralPartialCredit().fit(table, weights=np.where(many, 3.0, 1.0), **options)
    repeated = SpectralPartialCredit().fit(np.concatenate([table, table[many], table[many]]), **options)
    one, other = (fit.calibration_.further["displacement"] for fit in (weighted, repeated))
    np.testing.assert_allclose(one[:3], other[:3], atol=2e-3)


def test_a_displaced_anchor_is_found_in_categories(credit):
    anchors = anchors_of(credit, (0, 1, 2, 3))
    anchors[2] = [value + 1.0 for value in anchors[2]]
    fit = AnchoredRasch(anchors).fit(credit.responses)
    assert fit.displacement_[2] == pytest.approx(-1.0, abs=0.3)
    assert np.max(np.abs(fit.displacement_[[0, 1, 3]])) < 0.5
    free = SpectralPartialCredit().fit(credit.responses, anchors={k: anchors[k] for k in (0, 1, 3)})
    moved = free.difficulty_[2] - np.mean(anchors[2])
    assert fit.displacement_[2] == pytest.approx(moved, abs=0.1)  # its thresholds move alike
    assert fit.displacement_se_[2] == pytest.approx(free.se_[2], rel=0.15)
    assert next(one for one in fit.findings_ if one.code == "displaced_anchors").items == (2,)


def test_weights_that_repeat_people_are_people_repeated(credit):
    table = credit.responses.to_dense()[:300]
    weights = np.where(np.arange(300) < 100, 3.0, 1.0)
    weighted = SpectralPartialCredit(regularization=0).fit(table, weights=weights)
    repeated = SpectralPartialCredit(regularization=0).fit(np.repeat(table, weights.astype(int), axis=0))
    np.testing.assert_allclose(weighted.thresholds_, repeated.thresholds_, atol=1e-4)
    assert np.all(weighted.se_ > repeated.se_)  # of fewer people
    probed = SpectralPartialCredit(regularization=0, se="multiplier").fit(table, weights=weights)
    np.testing.assert_allclose(probed.se_, weighted.se_, rtol=0.15)  # noise of the probes


def test_people_of_little_weight_are_not_too_regular():
    """Squared scores go with the square of a weight, the information with the weight itself."""
    data = simulate.rasch(600, 12, design="sampled", p=0.5, seed=3)
    weights = np.where(np.arange(600) < 300, 0.2, 1.8)
    table = data.responses.to_dense()
    table[300:, :6] = np.nan  # these items are answered by people of little weight alone
    responses = Responses.from_wide(table)
    near = LocationPrior(Neighbors(responses), 1.0, np.ones(12))
    prior = Prior(responses.thresholds, near, 0.0, np.zeros(0), False)
    start = data.difficulty - data.difficulty.mean()
    found = Newton(Likelihood(responses, start, weights=weights), prior=prior).solve(start)
    observed = found.point.score_gram().diagonal()[:, None, None]
    lacking = missing_spread(found, observed)[:, 0, 0] ** 2 / np.asarray(found.noise)
    assert np.max(lacking) < 0.35  # by chance; without regard to the weights 0.8
    errors = SpectralRasch(regularization=1.0).fit(responses, weights=weights).se_
    alone = SpectralRasch(regularization=1.0).fit(Responses.from_wide(table[:300])).se_
    assert np.all(errors[:6] < 2.0 * alone[:6])


@pytest.mark.slow
def test_anchored_to_all_but_a_shift_gives_the_free_estimate():
    """One item held where the free estimate has it, moved by 0.7: everything moves by 0.7."""
    data = simulate.partial_credit(1500, 8, categories=3, seed=1).responses
    free = SpectralPartialCredit(regularization=0).fit(data)
    held = free.thresholds_[:2] + 0.7
    anchored = SpectralPartialCredit(regularization=0).fit(data, anchors={0: held})
    np.testing.assert_allclose(anchored.thresholds_, free.thresholds_ + 0.7, atol=1e-4)
    assert anchored.status_.tolist() == ["anchored"] + ["ok"] * 7
    np.testing.assert_allclose(anchored.thresholds_[:2], held, atol=1e-12)


@pytest.mark.slow
def test_anchored_thresholds_are_covered():
    hits = []
    for seed in range(12):
        data = simulate.partial_credit(800, 8, categories=4, seed=seed)
        truth = data.thresholds.reshape(8, 3)
        fit = SpectralPartialCredit().fit(data.responses, anchors={0: truth[0], 3: truth[3], 5: truth[5]})
        free = fit.threshold_se_ > 0
        assert free.sum() == 15
        hits.append(np.mean(np.abs(fit.thresholds_ - data.thresholds)[free] < 1.96 * fit.threshold_se_[free]))
    assert abs(np.mean(hits) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / (12 * 5))


@pytest.mark.slow
def test_anchors_from_a_calibration_and_bad_ones():
    first = simulate.partial_credit(1000, 6, categories=3, seed=1)
    made = SpectralPartialCredit().fit(first.responses).calibration_
    table = first.responses.to_dense()[:500, 2:]
    again = Responses.from_wide(table, items=[2, 3, 4, 5], ordered=True)
    fit = SpectralPartialCredit().fit(again, anchors=made)
    np.testing.assert_allclose(fit.thresholds_, made.thresholds[4:], atol=1e-12)
    for weighting, anchors, message in (
        ("ability", {2: [0.5]}, "has 1 thresholds"),
        ("ability", {"x": [0.5, 1.0]}, "is among the anchors"),
        ("persons", {2: [0.5, 1.0]}, "weight by ability"),
    ):
        with pytest.raises(OptionError, match=message):
            SpectralPartialCredit(weighting=weighting).fit(again, anchors=anchors)
