"""Item-restscore gamma pair by pair, and under the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dense import AWKWARD
from spectral_irt import Responses, SpectralRasch, datasets, simulate
from spectral_irt.conditional.given_score import conditional_probabilities
from spectral_irt.inference.items import rest_score as restscore


def rest_scores(table, beta):
    """The columns at these difficulties."""
    study = SpectralRasch(se="none").fit(Responses.from_wide(table)).calibration_
    return restscore.restscore_columns(replace(study, thresholds=beta), Responses.from_wide(table))


def gamma_of_pairs(ones, zeros):
    """ones, zeros: lists of (rest, weight)."""
    agree = sum(a * b for r, a in ones for t, b in zeros if r > t + 1e-9)
    differ = sum(a * b for r, a in ones for t, b in zeros if r < t - 1e-9)
    return (agree - differ) / (agree + differ) if agree + differ else np.nan


def test_complete_data_pair_by_pair():
    table = simulate.rasch(60, 6, seed=1).responses.to_dense()
    beta = np.linspace(-1, 1, 6)
    found = rest_scores(table, beta)
    gamma, expected = found["gamma"], found["gamma_expected"]
    block = Responses.from_wide(table).blocks[0]
    P = np.empty((60, 6))
    P[block.person_of_response(), block.items] = conditional_probabilities(block, beta)
    score = table.sum(axis=1)
    for item in range(6):
        x = table[:, item]
        ones = [(s - 1, 1.0) for s, right in zip(score, x, strict=True) if right]
        zeros = [(s, 1.0) for s, right in zip(score, x, strict=True) if not right]
        np.testing.assert_allclose(gamma[item], gamma_of_pairs(ones, zeros))
        ones = [(s - 1, p) for s, p in zip(score, P[:, item], strict=True)]
        zeros = [(s, 1 - p) for s, p in zip(score, P[:, item], strict=True)]
        np.testing.assert_allclose(expected[item], gamma_of_pairs(ones, zeros))


def rest_measure(row, item, beta):
    others = ~np.isnan(row)
    others[item] = False
    n, right = others.sum(), row[others].sum()
    spread = np.sqrt(1 + beta[others].var() / 2.89)
    return beta[others].mean() + spread * np.log((right + 0.5) / (n - right + 0.5))


def test_awkward_data_pair_by_pair():
    beta = np.linspace(-1, 1, 7)
    found = rest_scores(AWKWARD, beta)
    gamma, n = found["gamma"], found["n"]
    for item in range(7):
        persons = [
            u for u in range(len(AWKWARD)) if not np.isnan(AWKWARD[u, item]) and np.sum(~np.isnan(AWKWARD[u])) > 1
        ]
        assert n[item] == len(persons)
        rest = [(rest_measure(AWKWARD[u], item, beta), 1.0, AWKWARD[u, item]) for u in persons]
        expected = gamma_of_pairs([r[:2] for r in rest if r[2]], [r[:2] for r in rest if not r[2]])
        np.testing.assert_allclose(gamma[item], expected)


def test_table():
    answers = datasets.load_lsat()
    fit = SpectralRasch().fit(answers)
    table = fit.analyse(answers).item_restscore()
    assert table.columns == ["item", "n", "gamma", "gamma_expected", "se", "z", "p"]
    assert (table["p"] > 0.05).all()  # LSAT section 6 fits


def test_of_very_many_answers_a_sample_is_taken(monkeypatch):
    answers = datasets.load_lsat()
    monkeypatch.setattr(restscore, "MOST_RESPONSES", 1000)
    assert SpectralRasch().fit(answers).analyse(answers).item_restscore()["n"].max() == 200


@pytest.mark.slow
def test_level():
    z = []
    for seed in range(60):
        responses = simulate.rasch(600, 20, design="sampled", p=0.7, seed=seed).responses
        z.append(SpectralRasch(se="none").fit(responses).analyse(responses).item_restscore()["z"].to_numpy())
    z = np.concatenate(z)
    assert abs(z.mean()) < 0.15
    assert 0.03 < np.mean(np.abs(z) > 1.96) < 0.07
