"""Updates: pieces against everything at once, new items, the prior of a bank, and parts that share no people."""

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from changed_bank import bank_of, changed
from drawn import drawn
from spectral_irt import SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.bank import Bank, anchored_fit
from spectral_irt.bank.components import parts_before
from spectral_irt.bank.evidence import Posterior, Precisions, Quadratic
from spectral_irt.bank.merge import merge_banks
from spectral_irt.data import Responses
from spectral_irt.data.block import Thresholds
from spectral_irt.errors import BankError

CLOSE = 0.1  # standard errors, root mean square: an update is as good as a fit to all

DESIGNS = {
    "complete": (5000, 60, {}),
    "sampled": (5000, 60, {"p": 0.2}),
    "popularity": (5000, 300, {"n_responses": 100_000}),
    "booklets": (5000, 60, {"booklets": 6}),
    "linked": (6000, None, {"forms": 6, "length": 20, "anchors": 4}),
    "misfit": (4000, 12, {}),  # the update goes where the fit to all goes, not where another equation would
}


def pieces(responses, number=10):
    order = np.random.default_rng(1).permutation(responses.n_persons)
    return [responses.take_persons(np.sort(part)) for part in np.array_split(order, number)]


def distance(bank, fit):
    """Root mean square distance in standard errors, after a common shift."""
    place = {label: k for k, label in enumerate(bank.items.tolist())}
    order = [place[label] for label in fit.item_labels_.tolist()]
    off = bank.difficulty[order] - fit.difficulty_
    return float(np.sqrt(np.mean(((off - off.mean()) / fit.se_) ** 2)))


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_ten_pieces_are_as_good_as_all_at_once(design):
    n, m, options = DESIGNS[design]
    if design == "misfit":
        rng = np.random.default_rng(2)
        slope, guess = np.exp(rng.normal(0, 0.5, m)), np.where(rng.random(m) < 0.4, 0.25, 0.0)
        right = drawn(rng, slope * (rng.normal(0, 1.2, (n, 1)) - np.linspace(-2.5, 2.5, m)))
        right = np.maximum(right, rng.random(right.shape) < guess)
        responses = Responses.from_wide(np.where(rng.random(right.shape) < 0.3, np.nan, right))
    else:
        responses = simulate.rasch(n, m, design=design, seed=3, **options).responses
    fit = SpectralRasch().fit(responses)
    first, *rest = pieces(responses)
    bank = bank_of(first)
    diagonal = changed(bank, matrix=None)  # as banks of more than 2,000 items are
    assert distance(bank, fit) > 1  # there is something to learn
    for piece in rest:
        bank = bank.update(piece)
        diagonal = diagonal.update(piece) if design == "sampled" else diagonal
    assert design != "sampled" or distance(diagonal, fit) < CLOSE
    assert np.sqrt(np.mean(((bank.difficulty - fit.difficulty_) / fit.se_) ** 2)) < CLOSE  # same scale, too
    assert np.median(bank.se / fit.se_) == pytest.approx(1, abs=0.05)
    assert np.array_equal(bank.n, responses.item_counts)
    assert np.array_equal(bank.calibration.score, responses.item_scores)
    assert bank.n_persons == n
    assert [data.how for data in bank.data] == ["fit"] + 9 * ["update"]


@pytest.mark.slow
@pytest.mark.parametrize("size", [2000, 0])
def test_ordered_answers_whole_or_in_blocks(tmp_path, monkeypatch, size):
    """The outer thresholds of rare categories rest on the prior of a fit, not on one that draws to the middle."""
    monkeypatch.setattr("spectral_irt.bank.evidence.MATRIX_SIZE", size)
    monkeypatch.setattr("spectral_irt.bank.merge.MATRIX_SIZE", size)
    responses = simulate.partial_credit(1200, 60, categories=5, design="sampled", p=0.3, seed=2).responses
    fit = SpectralPartialCredit().fit(responses).calibration_
    first, *rest = pieces(responses, 3)
    bank = Bank.from_fit(SpectralPartialCredit().fit(first), first)
    for piece in rest:
        bank = Bank.load(bank.update(piece).save(tmp_path / "bank"))
    assert (bank.evidence.matrix is None, bank.evidence.blocks is None) == (size == 0, size > 0)
    made = bank.calibration
    assert np.sqrt(np.mean(((made.thresholds - fit.thresholds) / fit.threshold_se) ** 2)) < CLOSE
    assert np.median(made.threshold_se / fit.threshold_se) == pytest.approx(1, abs=0.05)
    assert np.median(made.se / fit.se) == pytest.approx(1, abs=0.05)


def test_without_the_matrix_weak_links_are_said():
    responses = simulate.rasch(3000, design="linked", forms=6, length=20, anchors=1, seed=5).responses
    first, second = pieces(responses, 2)
    bank = changed(bank_of(first), matrix=None).update(second)
    assert "weak_links" in [finding.code for finding in bank.findings]


def test_new_forms_with_new_items_arrive_one_after_another():
    responses = simulate.rasch(6000, design="linked", forms=6, length=20, anchors=4, seed=6).responses
    fit = SpectralRasch().fit(responses)
    start = np.argmax(~np.isnan(responses.to_dense()), axis=1)  # the first item of everyone's form
    bank = None
    for form in np.unique(start):
        piece = responses.take_persons(start == form)
        piece = piece.take_items(piece.item_counts > 0)
        bank = bank_of(piece) if bank is None else bank.update(piece)
    assert bank.n_items == responses.n_items
    assert distance(bank, fit) < CLOSE
    assert [len(finding.items) for finding in bank.findings if finding.code == "new_items"] == [16]


def test_the_scale_is_kept():
    data = simulate.rasch(2000, 20, seed=7)
    first, second = pieces(data.responses, 2)
    bank = bank_of(first.take_items(np.arange(15)))
    updated = changed(bank, thresholds=bank.difficulty + 5).update(second)
    assert updated.difficulty[:15].mean() == pytest.approx(5)
    assert np.array_equal(updated.items, np.arange(20))
    truth = data.difficulty - data.difficulty[:15].mean() + 5
    assert np.max(np.abs(updated.difficulty - truth) / updated.se) < 4.5


def test_unanswered_and_extreme_items():
    rng = np.random.default_rng(10)
    first = (rng.random((300, 8)) < 0.5).astype(float)
    first[:, 5], first[40:, 6], first[:40, 6] = np.nan, np.nan, 1
    bank = bank_of(Responses.from_wide(first))
    assert np.isnan(bank.difficulty[5])
    assert bank.status[6] == "all right"
    second = (rng.random((300, 8)) < 0.5).astype(float)
    second[:, [5, 7]] = np.nan
    updated = bank.update(second)
    assert np.isnan(updated.difficulty[5])
    assert updated.status.tolist() == ["ok"] * 5 + ["no responses", "ok", "ok"]
    assert updated.evidence.prior_precision == 0
    assert updated.difficulty[6] < 0
    third = np.column_stack([second[:, :4], np.full((300, 2), np.nan), np.ones(300), second[:, 4]])
    assert bank.update(third).status[6] == "all right"


def test_the_same_data_again_and_the_same_bits_whatever_the_threads():
    first, second = pieces(simulate.rasch(400, 12, seed=12).responses, 2)
    bank = bank_of(first)
    updated = bank.update(second, threads=1)
    assert np.array_equal(updated.difficulty, bank.update(second, threads=2).difficulty)
    for each, data in ((bank, first), (updated, second)):
        with pytest.raises(BankError, match="these very data are in the bank already"):
            each.update(data)
    assert updated.update(second, repeats="skip") is updated
    some = second.take_persons(np.arange(29))  # of so few people guesses could be tried against a checksum
    assert bank.update(some).data[-1].digest == ""
    bank.update(some).update(some)


def five_grades(seed, people=60):
    """Answers of five grades a logit apart, 12 items each of which 3 are the next grade's too; and everyone's grade."""
    rng = np.random.default_rng(seed)
    beta = np.repeat(np.arange(6) - 2.0, 9)[:48] + rng.normal(0, 0.7, 48)
    grade = np.repeat(np.arange(5), people)
    table = np.full((len(grade), 48), np.nan)
    for k, own in enumerate(grade):
        items = slice(9 * own, 9 * own + 12)
        table[k, items] = drawn(rng, rng.normal(own - 2.0, 1) - beta[items])
    return table, grade


@pytest.mark.parametrize("seed", [0, pytest.param(3, marks=pytest.mark.slow)])
def test_an_update_of_one_grade_keeps_the_distances_of_grades(seed):
    table, grade = five_grades(seed)
    order = np.random.default_rng(9).permutation(len(table))
    first, later = np.sort(order[:200]), np.sort(order[200:])
    later = later[grade[later] == 4]
    old, new = Responses.from_wide(table[first]), Responses.from_wide(table[later])
    whole = SpectralRasch().fit(Responses.from_wide(table[np.r_[first, later]]))
    bank = bank_of(old)
    assert bank.evidence.prior_precision > 0  # the items are thin
    level = bank.evidence.prior_mean
    assert level[-9:].mean() - level[:9].mean() > 2  # each item has the level of its own grade
    updated = bank.update(new)
    assert distance(updated, whole) < 0.2
    grades = [each[-9:].mean() - each[:9].mean() for each in (updated.difficulty, whole.difficulty_)]
    assert grades[0] == pytest.approx(grades[1], abs=0.1)
    assert np.median(updated.se / whole.se_) == pytest.approx(1, abs=0.05)
    # Without the matrix the distance hardly moves, but no item is pulled out of its grade.
    assert distance(changed(bank, matrix=None).update(new), whole) < 0.3


def test_new_items_start_from_the_level_of_their_people():
    table, grade = five_grades(1, people=150)
    few = np.flatnonzero(grade == 4)[:12]
    bank = bank_of(Responses.from_wide(np.delete(table, few, axis=0)[:, :47]))
    updated = bank.update(Responses.from_wide(table[few]))
    top = bank.difficulty[36:47].mean()
    assert updated.evidence.prior_mean[47] == pytest.approx(top, abs=0.6)
    assert abs(updated.difficulty[47] - top) < 1.5
    assert top > bank.difficulty.mean() + 1.5


def test_the_prior_comes_off_without_the_data():
    """A Newton step from what the bank keeps is the estimate without a prior, but for what curvature changes on it."""
    data = simulate.rasch(150, 12, seed=4).responses
    bank = bank_of(data, regularization=1.0)
    assert bank.evidence.prior_precision > 0
    assert bank.evidence.matrix is not None
    bare = SpectralRasch(regularization=0).fit(data)
    step = np.linalg.pinv(bank.evidence.matrix) @ bank.evidence.prior_gradient
    pulled = bare.difficulty_ - bank.difficulty
    assert np.max(np.abs(pulled) / bare.se_) > 0.2  # it did something
    np.testing.assert_allclose(step, pulled, atol=0.1 * np.max(np.abs(pulled)))


@pytest.mark.parametrize("regularization", [0, 2.0])
def test_a_bank_has_the_pull_of_its_prior(regularization):
    """On complete data d_i = (beta_i - mean) / (1 - 1/m), and (P beta)_i = alpha (beta_i - mean) / (1 - 1/m)^2."""
    data = simulate.rasch(300, 10, seed=5).responses
    bank = bank_of(data, regularization=regularization)
    wanted = regularization * (bank.difficulty - bank.difficulty.mean()) / 0.9**2
    np.testing.assert_allclose(bank.evidence.prior_gradient, wanted, atol=1e-2)


def test_an_anchored_bank_with_thin_items():
    data = simulate.rasch(200, 16, design="sampled", p=0.5, seed=6)
    first, second = pieces(data.responses, 2)
    anchors = dict(enumerate(data.difficulty[:4] + 2))
    whole = anchored_fit(data.responses, anchors)
    bank = Bank.from_fit(anchored_fit(first, anchors), first)
    assert bank.evidence.prior_precision > 0
    assert not bank.evidence.prior_gradient[:4].any()
    updated = bank.update(second)
    assert set(updated.status[:4]) == {"anchored"}
    for each in (updated, changed(bank, matrix=None).update(second)):
        assert np.array_equal(each.difficulty[:4], data.difficulty[:4] + 2)
    off = (updated.difficulty - whole.difficulty_)[4:] / whole.se_[4:]
    assert np.sqrt(np.mean(off**2)) < 0.15
    assert np.median((updated.se / whole.se_)[4:]) == pytest.approx(1, abs=0.06)


def test_an_anchored_calibration_brings_level_and_pull_into_the_bank():
    data = simulate.rasch(260, 14, seed=8)
    old = data.responses.take_persons(np.arange(200)).take_items(np.arange(10))
    new = data.responses.take_persons(np.arange(200, 220)).take_items(np.arange(4, 14))
    bank = bank_of(old)
    found = Bank.from_fit(anchored_fit(new, bank), new)
    both = merge_banks(bank, found, new)
    for name in ("prior_gradient", "prior_mean"):
        old, new = getattr(bank.evidence, name), getattr(found.evidence, name)[6:]
        np.testing.assert_array_equal(getattr(both.evidence, name), [*old, *new])
    assert found.evidence.prior_gradient[6:].any()
    updated = both.update(simulate.rasch(400, 14, difficulty=data.difficulty, seed=9).responses)
    off = updated.difficulty - data.difficulty
    assert np.max(np.abs(off - off.mean()) / updated.se) < 4


def two_parts(n, seed):
    rng = np.random.default_rng(seed)
    table = drawn(rng, rng.normal(size=(n, 1)) - np.linspace(-1, 1, 10))
    table[: n // 2, 6:], table[n // 2 :, :6] = np.nan, np.nan
    return table


@pytest.mark.parametrize("matrix", [True, False])
def test_nothing_is_known_between_parts_until_people_link_them(tmp_path, matrix):
    bank = bank_of(Responses.from_wide(two_parts(400, 1)))
    bank = Bank.load((bank if matrix else changed(bank, matrix=None)).save(tmp_path / "bank"))
    still = bank.update(Responses.from_wide(two_parts(300, 2)))
    for each in (bank, still):
        assert np.isinf(each.se).tolist() == [False] * 6 + [True] * 4
    means = [each[part].mean() for each in (bank.difficulty, still.difficulty) for part in (slice(6), slice(6, 10))]
    assert means[:2] == pytest.approx(means[2:], abs=1e-6)
    both = simulate.rasch(600, difficulty=np.linspace(-1, 1, 10), seed=3).responses.to_dense()
    linked = still.update(Responses.from_wide(both))
    assert np.isfinite(linked.se).all()
    assert set(linked.status) == {"ok"}
    assert ["disconnected" in {one.code for one in each.findings} for each in (still, linked)] == [True, False]
    assert linked.difficulty[:6].mean() == pytest.approx(bank.difficulty[:6].mean(), abs=1e-6)  # the scale that was
    if matrix:
        whole = SpectralRasch().fit(Responses.from_wide(np.vstack([two_parts(400, 1), two_parts(300, 2), both])))
        assert distance(linked, whole) < 0.15


@pytest.mark.parametrize("matrix", [True, False])
def test_new_items_that_share_no_people_have_no_place(matrix):
    data = simulate.rasch(300, 6, seed=7).responses
    bank = bank_of(data) if matrix else changed(bank_of(data), matrix=None)
    updated = bank.update(Responses.from_wide(two_parts(200, 4)))
    assert np.isinf(updated.se).tolist() == [False] * 6 + [True] * 4
    said = [finding for finding in updated.findings if finding.code == "prior_only"]
    assert "infinite" in said[0].sentence


@pytest.mark.parametrize("people", [40, 400])
def test_errors_under_a_prior_that_fades_are_the_sandwich(people):
    """B^-1 (M + pull) B^-1 with B = M + penalty, by the whole matrices."""
    responses = simulate.rasch(people, 12, design="sampled", p=0.4, seed=5).responses
    bank = bank_of(responses)
    kept, layout = bank.evidence, bank.calibration.layout
    m, nobody = len(kept.matrix), np.zeros(12, dtype=bool)
    state = Quadratic(bank.difficulty, kept.matrix, kept.prior_gradient, kept.prior_mean, np.ones(m))
    here = Posterior(
        layout, state, None, bank.difficulty, Precisions(0.8, 0.0), ~nobody, nobody, np.zeros(12, dtype=int)
    )
    fade = here.location_prior.fade
    assert (people == 400) == (not fade.any())  # a prior that acts on some of them, or on none
    penalty, pull = here.prior.dense()
    inverse = np.linalg.pinv(kept.matrix + penalty)
    np.testing.assert_allclose(here.variance()[0], np.diag(inverse @ (kept.matrix + pull) @ inverse), rtol=1e-8)
    average = kept.matrix / np.diag(kept.matrix)  # L D^-1, of every item
    np.testing.assert_allclose(penalty, 0.8 * (average * fade) @ average.T, atol=1e-10)


def test_parts_of_a_matrix_are_its_connected_components():
    rng = np.random.default_rng(4)
    for links in (0, 10, 25, 60):
        shared = np.zeros((40, 40), dtype=bool)
        row, column = rng.integers(0, 40, (2, links))
        shared[row, column] = shared[column, row] = True
        parts = parts_before(
            shared * 1.0, Thresholds.ones(40), np.zeros(40, int), np.ones(40, bool), np.zeros(40, bool)
        )
        other = connected_components(shared, directed=False)[1]
        assert np.array_equal(parts[:, None] == parts, other[:, None] == other)


@pytest.mark.parametrize("categories", [2, 4])
def test_a_bank_with_nothing_but_anchors_counts_new_answers_and_stays(categories):
    data = simulate.partial_credit(400, 6, categories=categories, seed=12).responses
    if categories == 2:
        data = simulate.rasch(400, 6, seed=12).responses
    first, second = data.take_persons(range(200)), data.take_persons(range(200, 400))
    estimator = SpectralRasch if categories == 2 else SpectralPartialCredit
    old = Bank.from_fit(estimator().fit(first), first)
    bank = Bank.from_fit(anchored_fit(first, old), first)
    updated = bank.update(second)
    np.testing.assert_array_equal(updated.calibration.thresholds, bank.calibration.thresholds)
    np.testing.assert_array_equal(updated.se, bank.se)
    np.testing.assert_array_equal(updated.n, data.item_counts)
