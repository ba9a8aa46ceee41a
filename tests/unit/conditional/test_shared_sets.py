"""Newton steps by tables of repeated designs, against those person by person: the same numbers."""

import numpy as np
import pytest

from spectral_irt import SpectralRasch
from spectral_irt.conditional import exact, likelihood, newton
from spectral_irt.conditional.errors import Matrices, standard_errors
from spectral_irt.data import Responses
from spectral_irt.data import shared_sets as sets_room
from spectral_irt.data.shared_sets import shared_sets


def finest(monkeypatch):
    monkeypatch.setattr(likelihood, "FINE_SERIES_SHIFT", 1e-10)
    monkeypatch.setattr(newton, "CLOSER", 1e-10)


def fitted(responses, shared):
    start = np.zeros(responses.n_items)
    return newton.Newton(likelihood.Likelihood(responses, start, shared=shared)).solve(start)


def answers(design, people: int = 300, items: int = 14) -> Responses:
    """Answers that misfit a little, so that the sandwich is not the inverse information."""
    rng = np.random.default_rng(5)
    slope, beta = rng.uniform(0.6, 1.6, items), np.linspace(-1.5, 1.5, items)
    x = (rng.random((people, items)) < 1 / (1 + np.exp(slope * (beta - rng.normal(size=(people, 1)))))).astype(float)
    if design.startswith("booklets"):
        x[::2, :4] = np.nan
        x[1::2, -5:] = np.nan
    if design.endswith("some missing"):
        x[rng.random(x.shape) < 0.02] = np.nan
    if design == "one set per person":
        x[rng.random(x.shape) < 0.4] = np.nan
    return Responses.from_wide(x)


@pytest.mark.parametrize("design", ["complete", "booklets", "booklets, some missing", "one set per person"])
def test_the_same_numbers(design, monkeypatch):
    finest(monkeypatch)  # exact sums for everybody, steps until nothing moves
    responses = answers(design, people=60 if design == "one set per person" else 300)
    shared = shared_sets(responses, per_item=0, per_block=0, shared=0)
    one, other = fitted(responses, None), fitted(responses, shared)
    assert shared is not None
    np.testing.assert_allclose(other.beta, one.beta, atol=1e-9)
    np.testing.assert_allclose(other.point.information, one.point.information, rtol=1e-9)
    a, b = Matrices.of(one), Matrices.of(other)
    np.testing.assert_allclose(b.bread, a.bread, atol=1e-9 * np.abs(a.bread).max())
    np.testing.assert_allclose(b.meat, a.meat, atol=1e-9 * np.abs(a.meat).max())
    np.testing.assert_allclose(b.covariance(), a.covariance(), atol=1e-9 * np.abs(a.covariance()).max())
    np.testing.assert_allclose(standard_errors(other, "one-pass"), standard_errors(one, "one-pass"), rtol=1e-9)


def test_people_off_the_shared_sets_are_taken_one_by_one(monkeypatch):
    finest(monkeypatch)
    responses = answers("booklets, some missing")
    shared = shared_sets(responses, per_item=2, per_block=0, shared=0)
    assert shared.rest is not None
    assert len(shared.sets) == 2
    one, other = (fitted(responses, how) for how in (None, shared))
    np.testing.assert_allclose(other.beta, one.beta, atol=1e-9)
    np.testing.assert_allclose(Matrices.of(other).covariance(), Matrices.of(one).covariance(), atol=1e-12)


@pytest.mark.parametrize("design", ["complete", "booklets", "booklets, some missing"])
def test_a_fit_chooses_it_by_itself(design, monkeypatch):
    responses = answers(design, people=1500)
    assert responses.shared is not None
    chosen = SpectralRasch().fit(responses)
    plain = responses.take_persons(np.arange(responses.n_persons))
    monkeypatch.setitem(vars(plain), "shared", None)
    other = SpectralRasch().fit(plain)
    np.testing.assert_allclose(chosen.difficulty_, other.difficulty_, atol=2e-4 * other.se_.min())
    np.testing.assert_allclose(chosen.se_, other.se_, rtol=1e-4)
    assert chosen.status_.tolist() == other.status_.tolist()
    assert [f.code for f in chosen.findings_] == [f.code for f in other.findings_]


def on_sets(*sizes, n_items=8):
    """So many people on each of some sets of items, of 2, 3, 4 ... items; answers do not matter."""
    table = np.full((sum(sizes), n_items), np.nan)
    row = 0
    for k, size in enumerate(sizes):
        table[row : row + size, k : 2 * k + 2] = np.arange(size)[:, None] % 2
        row += size
    return Responses.from_wide(table)


def found(responses, **limits):
    sets = shared_sets(responses, **{"per_item": 0, "per_block": 0, "shared": 0, **limits})
    return None if sets is None else [len(one.items) for one in sets.sets]


def test_which_sets_are_worth_tables_of_their_own():
    """By people for each item, answers for each block, items, and the share of all answers on such sets."""
    responses = on_sets(20, 9, 20)  # 40, 27 and 80 answers
    assert found(responses) == [2, 3, 4]
    assert found(responses, per_item=3.5) == [2, 4]
    assert found(responses, per_item=6) == [2]
    assert found(responses, per_item=11) is None
    assert found(responses, per_block=41) == [4]
    assert found(responses, per_block=81) is None
    assert found(responses, per_item=6, shared=39.9 / 147) == [2]
    assert found(responses, per_item=6, shared=40.1 / 147) is None


def test_sets_of_one_item_or_very_many_have_no_tables(monkeypatch):
    table = np.full((30, 6), np.nan)
    table[:10, 0] = 1
    table[10:20, :3] = np.arange(10)[:, None] % 2
    table[20:] = np.arange(10)[:, None] % 2
    responses = Responses.from_wide(table)
    assert found(responses) == [3, 6]
    monkeypatch.setattr(sets_room, "LONGEST", 5)
    assert found(responses) == [3]


def test_where_most_of_the_first_people_differ_nothing_is_shared(monkeypatch):
    rng = np.random.default_rng(2)
    table = np.where(rng.random((60, 12)) < 0.5, 1.0, np.nan)
    table[::4] = 1  # 15 of 60 share a set
    responses = Responses.from_wide(table)
    assert sets_room._most_are_alike(responses, 0.5)  # all people were looked at: fewer sets than people
    monkeypatch.setattr(sets_room, "SAMPLE", 59)
    assert not sets_room._most_are_alike(responses, 0.5)
    assert sets_room._most_are_alike(responses, 0)
    table[::2] = 1
    assert sets_room._most_are_alike(Responses.from_wide(table), 0.5) == (1 + 30 <= 59 / 2)
    table[np.arange(60) % 5 > 0] = 1
    assert sets_room._most_are_alike(Responses.from_wide(table), 0.5)


@pytest.mark.parametrize("width", [1, 3])
def test_tiles_have_people_of_like_lengths_and_orders(width):
    """All are in one tile each, in order; of short ones orders are near, of long ones lengths within a factor."""
    short = exact.SHORT_ORDER * width
    orders = np.array([short - 2, short - 1, short, short + 1, short + 2, short + 3, 2 * short, 2 * short])
    counts = np.array([50, 50, 50, 50, 60, 60, 60, 100])
    found = list(exact.tiles(counts, orders, width))
    assert found == [(0, 3), (3, 6), (6, 7), (7, 8)]
    assert list(exact.tiles(np.full(4, 9), np.array([1, 1 + 2 * width, 2 + 2 * width, short]), width)) == [
        (0, 2),
        (2, 3 if short > 2 + 4 * width else 4),
        *([(3, 4)] if short > 2 + 4 * width else []),
    ]
    many = list(exact.tiles(np.full(10_000, 1_000), np.full(10_000, 7), width))
    size = exact.TILE_CELLS // (1_000 * 8)
    assert many[0] == (0, max(exact.MANY, size))
    far = list(exact.tiles(np.full(10_000, 1_000), np.full(10_000, short + 1), width))
    assert far[0] == (0, max(exact.MANY, exact.TILE_CELLS // (1_000 * 4 * (width + 1))))
