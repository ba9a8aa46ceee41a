"""Designs that look at the answers: each does what its name says, person by person."""

from __future__ import annotations

import numpy as np
import pytest

from spectral_irt import simulate
from spectral_irt.errors import OptionError


def test_stopping_ends_with_the_first_run_of_wrong_answers():
    data = simulate.rasch(300, 25, design="stopping", wrong=3, seed=1)
    order = np.argsort(data.difficulty)
    for row in data.responses.to_dense()[:, order]:
        seen = int(np.sum(~np.isnan(row)))
        answers = row[:seen]
        assert not np.isnan(answers).any(), "items are given from the easiest up, without a gap"
        runs = [k for k in range(2, seen) if answers[k - 2 : k + 1].sum() == 0]
        assert runs == ([seen - 1] if runs else []), "the first run of three wrong answers is the end"
        assert runs or seen == 25
    assert 0.2 < np.mean(data.responses.counts < 25) < 1


def test_two_stages_route_by_the_score_of_the_first():
    data = simulate.rasch(200, 30, design="two-stage", routing=9, seed=2)
    X = data.responses.to_dense()
    rest = 9 + np.argsort(data.difficulty[9:])
    easy, hard = rest[:10], rest[10:]
    assert not np.isnan(X[:, :9]).any()
    able = X[:, :9].sum(axis=1) >= 4.5
    assert 0 < able.sum() < 200
    assert not np.isnan(X[np.ix_(able, hard)]).any()
    assert np.isnan(X[np.ix_(able, easy)]).all()
    assert not np.isnan(X[np.ix_(~able, easy)]).any()
    assert np.isnan(X[np.ix_(~able, hard)]).all()


def test_adaptive_gives_items_near_the_ability():
    data = simulate.rasch(400, 100, design="adaptive", length=15, seed=3)
    assert (data.responses.counts == 15).all()
    person, item, _ = data.responses.answers()
    mean = np.bincount(person, weights=data.difficulty[item]) / 15
    assert np.corrcoef(mean, data.ability)[0, 1] > 0.7
    share = data.responses.scores / 15
    assert share.std() < 0.15, "whoever is able gets harder items, not more right answers"
    again = simulate.rasch(400, 100, design="adaptive", length=15, seed=3)
    assert again.responses.digest() == data.responses.digest()


@pytest.mark.parametrize("options", [{"design": "adaptive", "length": 11}, {"design": "two-stage", "routing": 9}])
def test_what_cannot_be_given(options):
    with pytest.raises(OptionError):
        simulate.rasch(10, 10, **options)
