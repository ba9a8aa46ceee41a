"""What a calibration keeps of its responses and of its prior, and updates of banks that were made with it."""

import numpy as np
import pytest

import spectral_irt as si
from dense_ordered import scores_and_information
from spectral_irt import simulate
from spectral_irt.bank.storage import bank_of, record_of, tables_of


def answers(kind, seed):
    """Two halves of the same people, and all of them; half of the items seen by each."""
    draw = simulate.rasch if kind == "binary" else simulate.partial_credit
    categories = {} if kind == "binary" else {"categories": 4}
    responses = draw(600, 20, design="sampled", p=0.5, seed=seed, **categories).responses
    table, ordered = responses.to_dense(), {} if kind == "binary" else {"ordered": True, "unused": "keep"}
    rows = slice(0, 300), slice(300, 600), slice(0, 600)
    return [si.Responses.from_wide(table[some], items=responses.items, **ordered) for some in rows]


def estimator(kind, **options):
    return (si.SpectralRasch if kind == "binary" else si.SpectralPartialCredit)(**options)


def distances(bank, joint):
    """Between the thresholds of a bank and of a fit to all its responses, in standard errors."""
    ours, theirs = bank.calibration, joint.calibration_
    apart = ours.thresholds - ours.difficulty.mean() - theirs.thresholds + theirs.difficulty.mean()
    return np.abs(apart) / theirs.threshold_se


def saved(fit, responses, folder, *, data):
    if data:
        return si.Bank.from_fit(fit, responses)
    return si.Bank.load(fit.calibration_.save(folder))


def test_information_and_score_are_those_of_the_responses():
    """By enumeration of all answers with the same score; under a prior, which both know nothing of."""
    rng = np.random.default_rng(4)
    table = rng.integers(0, 3, (40, 4)).astype(float)
    table[rng.random(table.shape) < 0.2] = np.nan
    fit = si.SpectralPartialCredit(regularization=3.0).fit(table)
    calibration = fit.calibration_
    scores, information = scores_and_information(table, [2, 2, 2, 2], fit.thresholds_)
    for item in range(4):
        own = slice(2 * item, 2 * item + 2)
        np.testing.assert_allclose(calibration.threshold_information[item], information[own, own], rtol=0.02)
    score = scores.sum(axis=0)
    np.testing.assert_allclose(np.abs(calibration.threshold_score), np.abs(score), rtol=0.02, atol=1e-3)
    assert np.abs(score).max() > 0.3
    free = si.SpectralPartialCredit(regularization=0).fit(table).calibration_
    np.testing.assert_array_equal(free.threshold_score, 0)


@pytest.mark.parametrize("data", [True, False])
@pytest.mark.parametrize("kind", ["binary", "ordered"])
def test_a_prior_that_was_asked_for_stays(kind, data, tmp_path):
    """The default prior, by empirical Bayes and only where responses are few, is 0.8 standard errors and more away."""
    first, second, both = answers(kind, 101)
    bank = saved(estimator(kind, regularization=2.0).fit(first), first, tmp_path / "bank", data=data).update(second)
    joint = estimator(kind, regularization=2.0).fit(both)
    assert np.quantile(distances(bank, joint), 0.9) < 0.15
    assert distances(bank, joint).max() < 0.3
    assert distances(bank, estimator(kind).fit(both)).max() > 0.6
    np.testing.assert_allclose(np.median(bank.calibration.threshold_se / joint.threshold_se_), 1, atol=0.06)
    assert bank.evidence.fixed_prior
    assert bank.evidence.prior_precision == pytest.approx(2.0)
    again = bank_of(record_of(bank), tables_of(bank), ("", ""))
    assert again.evidence.fixed_prior


def test_no_prior_as_asked_for(tmp_path):
    first, second, both = answers("binary", 102)
    bank = si.Bank.from_fit(si.SpectralRasch(regularization=0).fit(first), first).update(second)
    assert distances(bank, si.SpectralRasch(regularization=0).fit(both)).max() < 0.1
    assert bank.evidence.prior_precision == 0
    assert bank.evidence.fixed_prior
    # An item that everybody gets right has no place without a prior: the bank goes on with one.
    new = np.column_stack([second.to_dense(), np.ones(300)])
    bank = bank.update(si.Responses.from_wide(new, items=[*second.items.tolist(), "new"]))
    assert np.isfinite(bank.difficulty).all()
    assert bank.evidence.prior_precision > 0
    assert not bank.evidence.fixed_prior


def test_a_bank_of_before_has_a_prior_by_empirical_bayes():
    first, *_ = answers("binary", 103)
    bank = si.Bank.from_fit(si.SpectralRasch(regularization=2.0).fit(first), first)
    record = record_of(bank)
    del record["prior"]["fixed"]
    assert not bank_of(record, tables_of(bank), ("", "")).evidence.fixed_prior


@pytest.mark.parametrize("seed", [104, 105])
def test_a_calibration_alone_is_updated_as_with_its_data(seed, tmp_path):
    """Ordered responses under the default prior: a bank without data lies as near to a fit to all as one with them."""
    first, second, both = answers("ordered", seed)
    fit, joint = si.SpectralPartialCredit().fit(first), si.SpectralPartialCredit().fit(both)
    far = [
        np.quantile(distances(saved(fit, first, tmp_path / str(data), data=data).update(second), joint), 0.9)
        for data in (True, False)
    ]
    assert far[1] < far[0] + 0.03
    assert far[1] < 0.15


@pytest.mark.slow
@pytest.mark.parametrize(("number", "farthest"), [(3, 1 / 3), (8, 1 / 2)])
def test_pieces_of_ordered_responses_are_as_good_as_all_at_once(number, farthest):
    for seed in range(300, 303):
        responses = simulate.partial_credit(800, 12, categories=4, design="sampled", p=0.7, seed=seed).responses
        table = responses.to_dense()
        first, *rest = [
            si.Responses.from_wide(piece, items=responses.items, ordered=True, unused="keep")
            for piece in np.array_split(table, number)
        ]
        bank = si.Bank.from_fit(si.SpectralPartialCredit().fit(first), first)
        for piece in rest:
            bank = bank.update(piece)
        apart = distances(bank, si.SpectralPartialCredit().fit(responses))
        assert np.sqrt(np.mean(apart**2)) < 0.11
        assert apart.max() < farthest
