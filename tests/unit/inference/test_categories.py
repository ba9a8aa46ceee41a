"""Categories of ordered answers, against sums over single answers."""

from __future__ import annotations

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.model import category_probabilities


def test_counts_mean_abilities_and_infit() -> None:
    answers = si.simulate.partial_credit(300, 6, categories=4, seed=4).responses
    study = si.SpectralPartialCredit().fit(answers).analyse(answers)
    found = study.categories()
    person, item, x = answers.answers()
    theta = study.abilities("wle").ability[person]
    mixed = (answers.scores > 0) & (answers.scores < answers.max_scores)
    beta = study.calibration.thresholds.reshape(6, 3)
    p = category_probabilities(theta, np.concatenate([np.zeros((6, 1)), np.cumsum(beta, axis=1)], axis=1)[item])
    e = p @ np.arange(4)
    for k, row in enumerate(found.iter_rows(named=True)):
        own = (item == k // 4) & mixed[person]
        here, category = own & (x == k % 4), k % 4
        assert row["item"] == answers.items[k // 4]
        assert row["category"] == category
        assert row["n"] == np.sum((item == k // 4) & (x == category))
        assert row["mean_ability"] == pytest.approx(theta[here].mean())
        expected = (p[own, category] * (category - e[own]) ** 2).sum()
        assert row["infit"] == pytest.approx(((category - e[here]) ** 2).sum() / expected)
    assert found["share"].sum() == pytest.approx(6)
    assert found["infit"].mean() == pytest.approx(1, abs=0.15)  # the model holds
