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
    return simulate.rasch(n_persons, design=design, seed=seed, **DESIGNS[design] | more)


def deviates(observed, expected, variance):
    return np.abs((observed - expected) / np.sqrt(variance)).max() > WIDE


@pytest.mark.parametrize("design", DESIGNS)
def test_every_design(design, monkeypatch):
    """The same seed gives the same bits; nobody is shown an item twice, nobody is lost in small chunks."""
    one, two, other = drawn(design), drawn(design), drawn(design, seed=2)
    assert one.responses.digest() == two.responses.digest() != other.responses.digest()
    assert one.difficulty.tobytes() == two.difficulty.tobytes() != other.difficulty.tobytes()
    assert one.ability.tobytes() == two.ability.tobytes() != other.ability.tobytes()
    assert isinstance(one.design, simulate.DESIGNS[design])
    assert abs(one.difficulty.mean()) < 1e-12
    monkeypatch.setattr(designs, "CHUNK", 37)
    chunked = drawn(design)
    assert len(chunked.responses.blocks) > 20
    for data in (one, chunked):
        responses = data.responses
        assert responses.persons.tolist() == list(range(200))
        assert responses.items.tolist() == list(range(responses.n_items))
        assert len(data.difficulty) == len(data.slopes) == responses.n_items
        assert len(data.ability) == len(responses.counts) == 200
        assert sum(block.n_persons for block in responses.blocks) == 200
        person, item, _ = responses.answers()
        assert len(set(zip(person.tolist(), item.tolist(), strict=True))) == responses.n_responses


@pytest.mark.parametrize("design", DESIGNS)
def test_answers_follow_the_model(design):
    """Right answers per item, and per fifth of the probability, against the sums of p; and given the ability they are
    independent: the variance of score minus expected score is the sum of p (1 - p)."""
    more = {"n_responses": 50_000} if design == "popularity" else {}
    data = drawn(design, 4000, seed=4, ability_sd=1.3, **more)
    X = data.responses.to_dense()
    P = probabilities(data.ability, data.difficulty)
    P[np.isnan(X)] = np.nan
    V = P * (1 - P)
    assert not deviates(np.nansum(X, axis=0), np.nansum(P, axis=0), np.nansum(V, axis=0))
    fifth = np.digitize(P, [0.2, 0.4, 0.6, 0.8])
    for k in range(5):
        inside = (fifth == k) & ~np.isnan(X)
        assert not deviates(X[inside].sum(), P[inside].sum(), V[inside].sum())
    shown = np.nansum(V, axis=1) > 0
    square = np.nansum(X - P, axis=1)[shown] ** 2 / np.nansum(V, axis=1)[shown]
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
    X, P = data.responses.to_dense(), probabilities(data.ability, data.difficulty, slopes)
    for half in (data.ability > 0, data.ability <= 0):
        assert not deviates(X[half].sum(axis=0), P[half].sum(axis=0), (P * (1 - P))[half].sum(axis=0))
    assert data.information()[0] == 0


def test_sampled_shows_each_item_independently():
    n_persons, n_items, p = 5000, 20, 0.15
    shown = ~np.isnan(simulate.rasch(n_persons, n_items, design=Sampled(p), seed=2).responses.to_dense())
    assert not deviates(shown.sum(axis=0), n_persons * p, n_persons * p * (1 - p))
    both = (shown.T.astype(int) @ shown)[np.triu_indices(n_items, 1)]
    assert not deviates(both, n_persons * p**2, n_persons * p**2 * (1 - p**2))
    square = (shown.sum(axis=1) - n_items * p) ** 2 / (n_items * p * (1 - p))  # counts are binomial, no more, no less
    assert abs(square.mean() - 1) < WIDE * square.std() / np.sqrt(n_persons)


def test_sampled_extremes():
    for p, n in ((1.0, 200), (1e-12, 0), (1e-300, 0)):
        assert simulate.rasch(50, 4, design=Sampled(p), seed=1).responses.n_responses == n


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
    shown = successive(np.random.default_rng(3), shares, np.ones(n_persons, dtype=np.int64))
    assert not deviates(np.bincount(shown, minlength=n_items), expected, expected)


@pytest.mark.parametrize("rounds", [1, 2, 40])
def test_people_are_shown_items_by_successive_sampling(rounds):
    """Exact probabilities of every pair of items, by draws and by the race. With one round most people need the race,
    with forty hardly anybody; the distribution must not notice."""
    n, w = 40_000, np.array([0.5, 0.25, 0.15, 0.07, 0.03])
    pairs = np.sort(successive(np.random.default_rng(7), w, np.full(n, 2), rounds).reshape(n, 2), axis=1)
    for i, j in combinations(range(len(w)), 2):
        p = w[i] * w[j] * (1 / (1 - w[i]) + 1 / (1 - w[j]))
        assert not deviates(np.sum((pairs == [i, j]).all(axis=1)), n * p, n * p * (1 - p))


def test_successive_sampling_keeps_people_in_order():
    counts = np.array([3, 100, 0, 1, 99, 5, 0, 60])
    items = successive(np.random.default_rng(1), np.arange(1.0, 101.0) ** -0.7, counts)
    for part, count in zip(np.split(items, np.cumsum(counts)[:-1]), counts, strict=True):
        assert len(set(part.tolist())) == count
        assert np.all((part >= 0) & (part < 100))


@pytest.mark.parametrize(("n_items", "booklets"), [(24, 3), (25, 4), (7, 7), (10, 1), (100, 2)])
def test_booklets_overlap_and_hold_every_item(n_items, booklets):
    shown = ~np.isnan(simulate.rasch(booklets, n_items, design=Booklets(booklets), seed=1).responses.to_dense())
    assert shown.any(axis=0).all()
    assert len(set(shown.sum(axis=1))) == 1
    assert np.all(np.any(shown & np.roll(shown, 1, axis=0), axis=1))
    shown = ~np.isnan(simulate.rasch(9, 24, design=Booklets(3, length=12), seed=1).responses.to_dense())
    for person in range(9):
        assert set(np.flatnonzero(shown[person])) == {(8 * (person % 3) + k) % 24 for k in range(12)}


def test_linked_forms_share_their_anchors_with_neighbors_only():
    data = simulate.rasch(90, design=LinkedForms(forms=30, length=40, anchors=2), seed=1)
    assert data.responses.n_items == 1142
    shown = ~np.isnan(data.responses.to_dense())
    assert shown.any(axis=0).all()
    np.testing.assert_array_equal(shown[:30], shown[30:60])
    common = shown[:30].astype(int) @ shown[:30].T.astype(int)
    neighbors = np.eye(30, k=1) + np.eye(30, k=-1)
    np.testing.assert_array_equal(common, 40 * np.eye(30) + 2 * neighbors)


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
    assert not deviates(np.bincount(category), p.sum(axis=0), (p * (1 - p)).sum(axis=0))


ADAPTIVE = {"n_persons": 5000, "n_items": 1000, "categories": 3, "design": "adaptive", "length": 2}


@pytest.mark.parametrize(
    ("model", "options", "answers", "most"),
    [
        # 800 million cells, 100 MB even at a bit each; about 400,000 responses
        ("rasch", {"n_persons": 40_000, "n_items": 20_000, "design": Popularity(400_000)}, 400_000, 60e6),
        ("rasch", {"n_persons": 40_000, "n_items": 20_000, "design": Sampled(0.0005)}, 400_000, 60e6),
        # 5 million cells, 40 MB as numbers
        ("partial_credit", ADAPTIVE, 10_000, 30e6),
    ],
)
def test_persons_x_items_is_never_made(model, options, answers, most):
    tracemalloc.start()
    data = getattr(simulate, model)(**options, seed=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert data.responses.n_responses == pytest.approx(answers, rel=0.025)
    assert peak < most


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_persons": 0}, "`n_persons` is 0"),
        ({"n_persons": 2.5}, "`n_persons` is 2.5"),
        ({"n_items": 0}, "`n_items` is 0"),
        ({"n_items": 2**30}, "`n_items` is 1073741824"),
        ({"n_items": None}, "`n_items` is missing"),
        ({"design": "random"}, r"`design` is 'random'; .*'complete', 'sampled'"),
        ({"design": "sampled"}, "'sampled' needs `p`"),
        ({"p": 0.5}, "no parameter `p`; the design 'complete' takes no parameters"),
        ({"design": "sampled", "q": 1}, "no parameter `q`; .* takes `p`"),
        ({"design": Complete(), "p": 0.5}, "inside the design"),
        ({"design": "sampled", "p": 0}, "`p` is 0"),
        ({"design": "sampled", "p": np.nan}, "`p` is nan"),
        ({"design": "popularity", "n_responses": 9}, "give 10 to 25"),
        ({"design": "popularity", "n_responses": 26}, "give 10 to 25"),
        ({"design": "popularity", "n_responses": 20, "exponent": -1}, "`exponent` is -1"),
        ({"design": "booklets", "booklets": 6}, "`booklets` is 6"),
        ({"n_items": 9, "design": "booklets", "booklets": 4, "length": 2}, "`length` is 2; .* 3 to 9"),
        ({"n_items": None, "design": "linked", "length": 4, "anchors": 4}, "`anchors` is 4; .* at most 3"),
        ({"n_items": 7, "design": "linked"}, "hold 1,142"),
        ({"n_items": 10, "design": "adaptive", "length": 11}, "`length` is 11; there are 10 items"),
        ({"n_items": 10, "design": "two-stage", "routing": 9}, "`routing` is 9"),
        ({"ability_sd": -1}, "`ability_sd` is -1"),
        ({"difficulty_sd": np.inf}, "`difficulty_sd` is inf"),
        ({"ability_mean": np.nan}, "`ability` holds values that are not finite"),
        ({"ability": [1, 2]}, r"`ability` has shape \(2,\)"),
        ({"difficulty": np.zeros((5, 1))}, "`difficulty` has shape"),
        ({"n_items": 2, "difficulty": [0, np.inf]}, "not finite"),
        ({"n_items": 2, "slopes": ["a", "b"]}, "`slopes` holds values that are not numbers"),
        ({"seed": -1}, "`seed` is -1"),
        ({"seed": "x"}, "`seed` is 'x'"),
        ({"model": "rating_scale", "difficulty": [0, 1]}, r"`difficulty` has shape \(2,\); it must hold 5"),
        ({"model": "rating_scale", "categories": 102}, "at most 101"),
        ({"model": "rating_scale", "thresholds": np.zeros(101)}, "more than 101 categories"),
        ({"model": "rating_scale", "n_items": None}, "n_items` is missing"),
        ({"model": "partial_credit", "categories": 102}, "at most 101"),
        ({"model": "partial_credit", "n_items": None, "thresholds": [np.zeros(101)]}, "more than 101 categories"),
        ({"model": "partial_credit", "thresholds": [[0], [1]]}, "given for 2 items; there are 5"),
    ],
)
def test_bad_arguments_say_what_is_wrong(arguments, message):
    given = {"model": "rasch", "n_persons": 5, "n_items": 5} | arguments
    with pytest.raises(OptionError, match=message):
        getattr(simulate, given.pop("model"))(**given)
