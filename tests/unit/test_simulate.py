"""Simulated data follow the model they claim, show what their design says, and repeat to the bit.

Frequencies are compared with their expectation in units of their standard error. Seeds are fixed, so a test either
always passes or always fails; 4.5 leaves room for the largest of some hundred such deviations.
"""

import tracemalloc
from itertools import combinations

import numpy as np
import pytest

from dense import probabilities
from spectral_irt import simulate
from spectral_irt.errors import OptionError
from spectral_irt.simulate import Booklets, Complete, LinkedForms, Popularity, Sampled, designs
from spectral_irt.simulate.designs import successive

pytestmark = pytest.mark.slow  # many short ones: seconds together

WIDE = 4.5

DESIGNS = {
    "complete": {"n_items": 12},
    "sampled": {"n_items": 30, "p": 0.2},
    "popularity": {"n_items": 60, "n_responses": 2500},
    "booklets": {"n_items": 24, "booklets": 3},
    "linked": {"forms": 4, "length": 10, "anchors": 2},
}


def drawn(design, n_persons=200, seed=1, **more):
    return simulate.rasch(n_persons, design=design, seed=seed, **DESIGNS[design], **more)


def assert_no_user_is_shown_an_item_twice(data):
    for block in data.responses.blocks:
        pairs = block.person_of_response() * data.responses.n_items + block.items
        assert len(np.unique(pairs)) == len(pairs)


# ------------------------------------------------------------------- every design


@pytest.mark.parametrize("design", DESIGNS)
def test_the_same_seed_gives_the_same_bits(design):
    one, two, other = drawn(design), drawn(design), drawn(design, seed=2)
    assert one.responses.digest() == two.responses.digest() != other.responses.digest()
    assert one.difficulty.tobytes() == two.difficulty.tobytes() != other.difficulty.tobytes()
    assert one.ability.tobytes() == two.ability.tobytes() != other.ability.tobytes()


@pytest.mark.parametrize("design", DESIGNS)
def test_shape_labels_and_no_repeats(design):
    data = drawn(design)
    responses = data.responses
    assert responses.persons.tolist() == list(range(200))
    assert responses.items.tolist() == list(range(responses.n_items))
    assert len(data.difficulty) == len(data.slopes) == responses.n_items
    assert len(data.ability) == 200
    assert abs(data.difficulty.mean()) < 1e-12
    assert_no_user_is_shown_an_item_twice(data)
    assert isinstance(data.design, simulate.DESIGNS[design])


@pytest.mark.parametrize("design", DESIGNS)
def test_small_chunks_keep_every_user(design, monkeypatch):
    monkeypatch.setattr(designs, "CHUNK", 37)
    data = drawn(design)
    assert len(data.responses.counts) == 200
    assert sum(block.n_persons for block in data.responses.blocks) == 200
    assert len(data.responses.blocks) > 20
    assert_no_user_is_shown_an_item_twice(data)


@pytest.mark.parametrize("design", DESIGNS)
def test_answers_follow_the_model(design):
    """Right answers per item, and per fifth of the probability, against the sums of p."""
    counts = {"n_responses": 50_000} if design == "popularity" else {}
    data = simulate.rasch(4000, design=design, ability_sd=1.3, seed=4, **{**DESIGNS[design], **counts})
    X = data.responses.to_dense()
    P = probabilities(data.ability, data.difficulty)
    P[np.isnan(X)] = np.nan
    z = np.nansum(X - P, axis=0) / np.sqrt(np.nansum(P * (1 - P), axis=0))
    assert np.abs(z).max() < WIDE
    fifth = np.digitize(P, [0.2, 0.4, 0.6, 0.8])
    for k in range(5):
        inside = (fifth == k) & ~np.isnan(X)
        z = np.sum((X - P)[inside]) / np.sqrt(np.sum((P * (1 - P))[inside]))
        assert abs(z) < WIDE


@pytest.mark.parametrize("design", DESIGNS)
def test_answers_of_a_user_are_independent(design):
    """The variance of score minus expected score is the sum of p (1 - p): nothing but ability links the answers."""
    data = drawn(design, n_persons=1200, seed=6)
    X = data.responses.to_dense()
    P = probabilities(data.ability, data.difficulty)
    V = np.nansum(np.where(np.isnan(X), np.nan, P * (1 - P)), axis=1)
    shown = V > 0
    square = np.nansum(X - P, axis=1)[shown] ** 2 / V[shown]
    assert abs(square.mean() - 1) < WIDE * square.std() / np.sqrt(shown.sum())


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("slopes", [None, 1.7])
def test_information_and_floor(design, slopes):
    data = drawn(design, slopes=slopes)
    a = 1.0 if slopes is None else slopes
    P = probabilities(data.ability, data.difficulty, np.full(data.responses.n_items, a))
    expected = np.nansum(np.where(np.isnan(data.responses.to_dense()), np.nan, a**2 * P * (1 - P)), axis=0)
    np.testing.assert_allclose(data.information(), expected, rtol=1e-12)
    assert data.floor_rmse() == pytest.approx(np.sqrt(np.mean(1 / expected)), rel=1e-12)


# -------------------------------------------------------------------- the truth


def test_truth_does_not_depend_on_the_design_or_the_number_of_people():
    complete, sampled = (simulate.rasch(200, 30, design=design, seed=3) for design in (Complete(), Sampled(0.1)))
    np.testing.assert_array_equal(complete.ability, sampled.ability)
    for other in (sampled, simulate.rasch(999, 30, seed=3)):
        np.testing.assert_array_equal(complete.difficulty, other.difficulty)


def test_spread_of_the_truth():
    spread = {"ability_mean": 0.7, "ability_sd": 2.0, "difficulty_sd": 0.5}
    data = simulate.rasch(20_000, 5000, design=Sampled(0.001), seed=1, **spread)
    assert abs(data.ability.mean() - 0.7) < WIDE * 2 / np.sqrt(20_000)
    assert abs(data.ability.std() - 2) < WIDE * 2 / np.sqrt(2 * 20_000)
    assert abs(data.difficulty.std() - 0.5) < WIDE * 0.5 / np.sqrt(2 * 5000)
    assert abs(data.difficulty.mean()) < 1e-12


def test_given_truth_is_shifted_as_a_whole():
    beta, theta = np.array([1.0, 2.0, 6.0]), np.linspace(-1, 9, 50)
    data = simulate.rasch(50, difficulty=beta, ability=theta, seed=1)
    np.testing.assert_allclose(data.difficulty, beta - 3)
    np.testing.assert_allclose(data.ability, theta - 3)
    moved = simulate.rasch(50, difficulty=beta + 10, ability=theta + 10, seed=1)
    assert moved.responses.digest() == data.responses.digest()
    assert (beta[0], theta[0]) == (1.0, -1.0)


def test_slopes():
    """A flat item is a coin; a steep one follows its own curve; a negative one is turned round."""
    slopes = np.array([0.0, 3.0, -1.0, 1.0])
    data = simulate.rasch(20_000, 4, slopes=slopes, seed=8)
    X = data.responses.to_dense()
    P = probabilities(data.ability, data.difficulty, slopes)
    for half in (data.ability > 0, data.ability <= 0):
        z = np.sum((X - P)[half], axis=0) / np.sqrt(np.sum((P * (1 - P))[half], axis=0))
        assert np.abs(z).max() < WIDE
    assert data.information()[0] == 0


# ------------------------------------------------------------------ each design


def test_sampled_shows_each_item_independently():
    n_persons, n_items, p = 5000, 20, 0.15
    shown = ~np.isnan(simulate.rasch(n_persons, n_items, design=Sampled(p), seed=2).responses.to_dense())
    z = (shown.sum(axis=0) - n_persons * p) / np.sqrt(n_persons * p * (1 - p))
    assert np.abs(z).max() < WIDE
    for i, j in combinations(range(n_items), 2):
        both = np.sum(shown[:, i] & shown[:, j])
        assert abs(both - n_persons * p**2) < WIDE * np.sqrt(n_persons * p**2 * (1 - p**2))
    n = shown.sum(axis=1)
    square = (n - n_items * p) ** 2 / (n_items * p * (1 - p))  # counts are binomial, no more, no less
    assert abs(square.mean() - 1) < WIDE * square.std() / np.sqrt(n_persons)


def test_sampled_extremes():
    assert simulate.rasch(50, 4, design=Sampled(1.0), seed=1).responses.n_responses == 200
    assert simulate.rasch(50, 4, design=Sampled(1e-12), seed=1).responses.counts.tolist() == [0] * 50
    assert simulate.rasch(50, 4, design=Sampled(1e-300), seed=1).responses.n_responses == 0


@pytest.mark.parametrize("each", [2, 25, 99])
def test_popularity_counts(each):
    design = Popularity(n_responses=each * 400 + 1, activity_sd=1.2)
    counts = simulate.rasch(400, 100, design=design, seed=5).responses.counts
    assert counts.sum() == each * 400 + 1
    assert counts.min() >= 2
    assert counts.max() <= 100


def test_popularity_activity_is_lognormal():
    counts = Popularity(10_000_000, activity_sd=0.5).counts(np.random.default_rng(1), 20_000, 100_000)
    log = np.log(counts)
    assert abs(log.std() - 0.5) < WIDE * 0.5 / np.sqrt(2 * 20_000)
    skewness = np.mean(((log - log.mean()) / log.std()) ** 3)
    assert abs(skewness) < WIDE * np.sqrt(6 / 20_000)


@pytest.mark.parametrize("exponent", [0.0, 0.7, 1.5])
def test_popularity_is_as_skewed_as_said(exponent):
    """Of the first answer of a person, the item is drawn in proportion to rank^-exponent."""
    n_persons, n_items = 40_000, 50
    shares = np.arange(1, n_items + 1) ** -exponent
    expected = n_persons * shares / shares.sum()
    shown = designs.successive(np.random.default_rng(3), shares, np.ones(n_persons, dtype=np.int64))
    item_counts = np.bincount(shown, minlength=n_items)
    assert np.abs((item_counts - expected) / np.sqrt(expected)).max() < WIDE


# Successive sampling: exact probabilities of every pair of items, by draws and by the race.

WEIGHTS = np.array([0.5, 0.25, 0.15, 0.07, 0.03])


def check_pairs(items, n_persons):
    drawn_pairs = np.sort(items.reshape(n_persons, 2), axis=1)
    for i, j in combinations(range(len(WEIGHTS)), 2):
        p = WEIGHTS[i] * WEIGHTS[j] * (1 / (1 - WEIGHTS[i]) + 1 / (1 - WEIGHTS[j]))
        z = (np.sum((drawn_pairs == [i, j]).all(axis=1)) - n_persons * p) / np.sqrt(n_persons * p * (1 - p))
        assert abs(z) < WIDE


@pytest.mark.parametrize("rounds", [1, 2, 40])
def test_people_are_shown_items_by_successive_sampling(rounds):
    """With one round most people need the race, with forty hardly anybody; the distribution must not notice."""
    n_persons = 40_000
    check_pairs(successive(np.random.default_rng(7), WEIGHTS, np.full(n_persons, 2), rounds), n_persons)


def test_successive_sampling_keeps_people_in_order():
    counts = np.array([3, 100, 0, 1, 99, 5, 0, 60])
    items = successive(np.random.default_rng(1), np.arange(1.0, 101.0) ** -0.7, counts)
    for part, count in zip(np.split(items, np.cumsum(counts)[:-1]), counts, strict=True):
        assert len(set(part.tolist())) == count
        assert np.all((part >= 0) & (part < 100))


def test_booklets():
    data = simulate.rasch(9, 24, design=Booklets(3, length=12), seed=1)
    shown = ~np.isnan(data.responses.to_dense())
    for person in range(9):
        start = 8 * (person % 3)
        assert set(np.flatnonzero(shown[person])) == {(start + k) % 24 for k in range(12)}


@pytest.mark.parametrize(("n_items", "booklets"), [(24, 3), (25, 4), (7, 7), (10, 1), (100, 2)])
def test_booklets_overlap_and_hold_every_item(n_items, booklets):
    shown = ~np.isnan(simulate.rasch(booklets, n_items, design=Booklets(booklets), seed=1).responses.to_dense())
    assert shown.any(axis=0).all()
    assert len(set(shown.sum(axis=1))) == 1
    for b in range(booklets):
        assert np.any(shown[b] & shown[(b + 1) % booklets])


def test_linked_forms_share_their_anchors_with_neighbors_only():
    data = simulate.rasch(90, design=LinkedForms(forms=30, length=40, anchors=2), seed=1)
    assert data.responses.n_items == 1142
    shown = ~np.isnan(data.responses.to_dense())
    assert (shown.sum(axis=1) == 40).all()
    assert shown.any(axis=0).all()
    np.testing.assert_array_equal(shown[:30], shown[30:60])
    common = shown[:30].astype(int) @ shown[:30].T.astype(int)
    for f in range(30):
        for g in range(30):
            assert common[f, g] == {0: 40, 1: 2}.get(abs(f - g), 0)


# ------------------------------------------------------------------- ordered categories


@pytest.mark.parametrize("design", ["complete", "adaptive", "two-stage", "stopping"])
def test_two_categories_are_right_and_wrong(design):
    beta = np.linspace(-1.5, 1.5, 24)
    one = simulate.rasch(150, design=design, difficulty=beta, seed=5)
    two = simulate.partial_credit(150, design=design, thresholds=beta[:, None], seed=5)
    assert one.responses.digest() == two.responses.digest()
    np.testing.assert_array_equal(one.information(), two.information())


def of_categories(n_persons, n_items, categories, **options):
    data = simulate.partial_credit(n_persons, n_items, categories=categories, **options)
    return data, data.responses.to_dense()


@pytest.mark.parametrize("categories", [2, 3])
def test_stopping_ends_with_the_first_run_of_wrong_answers(categories):
    data, X = of_categories(300, 25, categories, design="stopping", wrong=3, seed=1)
    for row in X[:, np.argsort(data.difficulty)]:
        answers = row[: int(np.sum(~np.isnan(row)))]
        assert not np.isnan(answers).any(), "items are given from the easiest up, without a gap"
        runs = [k for k in range(2, len(answers)) if answers[k - 2 : k + 1].sum() == 0]
        assert runs == ([len(answers) - 1] if runs else []), "the first run of three wrong answers is the end"
        assert runs or len(answers) == 25
    assert 0.05 < np.mean(data.responses.counts < 25) < 1


@pytest.mark.parametrize("categories", [2, 3])
def test_two_stages_route_by_the_score_of_the_first(categories):
    data, X = of_categories(200, 30, categories, design="two-stage", routing=9, seed=2)
    rest = 9 + np.argsort(data.difficulty[9:])
    able = X[:, :9].sum(axis=1) >= 4.5 * (categories - 1)
    assert 0 < able.sum() < 200
    assert not np.isnan(X[:, :9]).any()
    for takers, given, others in ((able, rest[10:], rest[:10]), (~able, rest[:10], rest[10:])):
        assert not np.isnan(X[np.ix_(takers, given)]).any()
        assert np.isnan(X[np.ix_(takers, others)]).all()


def test_adaptive_gives_items_near_the_ability():
    data = simulate.rasch(400, 100, design="adaptive", length=15, seed=3)
    assert (data.responses.counts == 15).all()
    person, item, _ = data.responses.answers()
    mean = np.bincount(person, weights=data.difficulty[item]) / 15
    assert np.corrcoef(mean, data.ability)[0, 1] > 0.7
    assert (data.responses.scores / 15).std() < 0.15, "whoever is able gets harder items, not more right answers"


@pytest.mark.parametrize("design", ["complete", "adaptive"])
def test_categories_follow_the_model(design):
    data = simulate.partial_credit(4000, 20, categories=4, design=design, seed=3)
    person, item, category = data.responses.answers()
    beta = data.thresholds.reshape(20, 3)[item]
    x = data.ability[person, None] * np.arange(4) - np.cumsum(np.insert(beta, 0, 0, axis=1), axis=1)
    p = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    for k in range(4):
        z = np.sum((category == k) - p[:, k]) / np.sqrt(np.sum(p[:, k] * (1 - p[:, k])))
        assert abs(z) < WIDE


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        ("rating_scale", {"n_items": 5, "difficulty": [0, 1]}, r"`difficulty` has shape \(2,\); it must hold 5"),
        ("rating_scale", {"n_items": 5, "categories": 102}, "at most 101"),
        ("rating_scale", {"n_items": 5, "thresholds": np.zeros(101)}, "more than 101 categories"),
        ("rating_scale", {}, "n_items` is missing"),
        ("partial_credit", {"n_items": 5, "categories": 102}, "between 2 and 101"),
        ("partial_credit", {"thresholds": [np.zeros(101)]}, "more than 101 categories"),
        ("partial_credit", {"n_items": 5, "thresholds": [[0], [1]]}, "given for 2 items; there are 5"),
    ],
)
def test_bad_arguments_of_ordered_models(model, arguments, message):
    with pytest.raises(OptionError, match=message):
        getattr(simulate, model)(50, **arguments)


# -------------------------------------------------------------------------- size


@pytest.mark.parametrize("design", [Popularity(400_000), Sampled(0.0005)])
def test_users_x_items_is_never_made(design):
    """40,000 x 20,000: 800 million cells, 100 MB even at a bit each; about 400,000 responses."""
    tracemalloc.start()
    data = simulate.rasch(40_000, 20_000, design=design, seed=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 390_000 < data.responses.n_responses < 410_000
    assert peak < 60e6


def test_adaptive_tests_of_ordered_items_never_make_users_x_items():
    """5,000 x 1,000: 5 million cells, 40 MB as numbers."""
    tracemalloc.start()
    simulate.partial_credit(5000, 1000, categories=3, design="adaptive", length=2, seed=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_persons": 0, "n_items": 5}, "`n_persons` is 0"),
        ({"n_persons": 2.5, "n_items": 5}, "`n_persons` is 2.5"),
        ({"n_persons": 5, "n_items": 0}, "`n_items` is 0"),
        ({"n_persons": 5, "n_items": 2**30}, "`n_items` is 1073741824"),
        ({"n_persons": 5}, "`n_items` is missing"),
        ({"n_persons": 5, "n_items": 5, "design": "random"}, r"`design` is 'random'; .*'complete', 'sampled'"),
        ({"n_persons": 5, "n_items": 5, "design": "sampled"}, "'sampled' needs `p`"),
        ({"n_persons": 5, "n_items": 5, "p": 0.5}, "no parameter `p`; the design 'complete' takes no parameters"),
        ({"n_persons": 5, "n_items": 5, "design": "sampled", "q": 1}, "no parameter `q`; .* takes `p`"),
        ({"n_persons": 5, "n_items": 5, "design": Complete(), "p": 0.5}, "inside the design"),
        ({"n_persons": 5, "n_items": 5, "design": "sampled", "p": 0}, "`p` is 0"),
        ({"n_persons": 5, "n_items": 5, "design": "sampled", "p": np.nan}, "`p` is nan"),
        ({"n_persons": 5, "n_items": 5, "design": "popularity", "n_responses": 9}, "give 10 to 25"),
        ({"n_persons": 5, "n_items": 5, "design": "popularity", "n_responses": 26}, "give 10 to 25"),
        ({"n_persons": 5, "n_items": 5, "design": "popularity", "n_responses": 20, "exponent": -1}, "`exponent` is -1"),
        ({"n_persons": 5, "n_items": 5, "design": "booklets", "booklets": 6}, "`booklets` is 6"),
        ({"n_persons": 5, "n_items": 9, "design": "booklets", "booklets": 4, "length": 2}, "`length` is 2; .* 3 to 9"),
        ({"n_persons": 5, "design": "linked", "length": 4, "anchors": 4}, "`anchors` is 4; .* at most 3"),
        ({"n_persons": 5, "n_items": 7, "design": "linked"}, "hold 1,142"),
        ({"n_persons": 5, "n_items": 10, "design": "adaptive", "length": 11}, "`length` is 11; there are 10 items"),
        ({"n_persons": 5, "n_items": 10, "design": "two-stage", "routing": 9}, "`routing` is 9"),
        ({"n_persons": 5, "n_items": 5, "ability_sd": -1}, "`ability_sd` is -1"),
        ({"n_persons": 5, "n_items": 5, "difficulty_sd": np.inf}, "`difficulty_sd` is inf"),
        ({"n_persons": 5, "n_items": 5, "ability_mean": np.nan}, "`ability` holds values that are not finite"),
        ({"n_persons": 5, "n_items": 5, "ability": [1, 2]}, r"`ability` has shape \(2,\)"),
        ({"n_persons": 5, "n_items": 5, "difficulty": np.zeros((5, 1))}, "`difficulty` has shape"),
        ({"n_persons": 5, "n_items": 2, "difficulty": [0, np.inf]}, "not finite"),
        ({"n_persons": 5, "n_items": 2, "slopes": ["a", "b"]}, "`slopes` holds values that are not numbers"),
        ({"n_persons": 5, "n_items": 5, "seed": -1}, "`seed` is -1"),
        ({"n_persons": 5, "n_items": 5, "seed": "x"}, "`seed` is 'x'"),
    ],
)
def test_bad_arguments_say_what_is_wrong(arguments, message):
    with pytest.raises(OptionError, match=message):
        simulate.rasch(**arguments)
