"""Conventional statistics of items, and of levels of ratings, by loops over answers."""

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.inference.fit.mean_squares import item_statistics

LEVEL = np.array([0, 1, 0, 1, 1])


def by_loops(x, thresholds, theta, level, n_levels):
    """Sums over the answers of persons with a mixed score; the slope of an item turns on its own location."""
    sums = {name: np.zeros(n_levels) for name in ("score", "information", "squares", "v", "infit_variance")}
    answers = [[] for _ in range(n_levels)]
    for person, row in enumerate(x):
        seen = np.flatnonzero(~np.isnan(row))
        most = sum(len(thresholds[i]) for i in seen)
        if not 0 < row[seen].sum() < most:
            continue
        for item in seen:
            log_p = np.concatenate([[0.0], np.cumsum(theta[person] - thresholds[item])])
            p = np.exp(log_p) / np.exp(log_p).sum()
            k = np.arange(len(p))
            e = p @ k
            v = p @ (k - e) ** 2
            fourth = p @ (k - e) ** 4
            at = level[item]
            from_location = theta[person] - np.mean(thresholds[item])
            sums["score"][at] += (row[item] - e) * from_location
            sums["information"][at] += v * from_location**2
            sums["squares"][at] += (row[item] - e) ** 2
            sums["v"][at] += v
            sums["infit_variance"][at] += fourth - v**2
            within = p @ (np.abs(k - e) < 0.5)
            answers[at].append((row[item], e, v, theta[person], abs(row[item] - e) < 0.5, within))
    return sums, [np.array(each, dtype=float) for each in answers]


@pytest.mark.parametrize("categories", [2, 4])
@pytest.mark.parametrize("by_level", [False, True])
def test_statistics_of_items(categories, by_level):
    data = si.simulate.partial_credit(60, 5, categories=categories, design="sampled", p=0.8, seed=3)
    responses = data.responses
    x = responses.to_dense()
    rng = np.random.default_rng(1)
    theta = data.ability + rng.normal(0, 0.2, 60) + 0.4
    layout = responses.thresholds
    own = [data.thresholds[layout.item == item] for item in range(5)]
    level = LEVEL if by_level else np.arange(5)
    n_levels = int(level.max()) + 1
    found = item_statistics(responses, data.thresholds, theta, *((LEVEL, 2) if by_level else ()))
    sums, answers = by_loops(x, own, theta, level, n_levels)
    np.testing.assert_allclose(found["n"], [len(each) for each in answers])
    np.testing.assert_allclose(found["infit"], sums["squares"] / sums["v"])
    np.testing.assert_allclose(found["outfit"], [np.mean((a[:, 0] - a[:, 1]) ** 2 / a[:, 2]) for a in answers])
    np.testing.assert_allclose(found["discrimination"], 1 + sums["score"] / sums["information"])
    np.testing.assert_allclose(found["discrimination_se"], 1 / np.sqrt(sums["information"]))
    for place, each in enumerate(answers):
        value, e, v, ability, match, likely = each.T
        assert found["point_measure"][place] == pytest.approx(np.corrcoef(value, ability)[0, 1])
        deviation = ability - ability.mean()
        spread = np.sqrt(np.sum(deviation**2) * (np.sum(e**2 + v) - np.sum(e) ** 2 / len(e)))
        assert found["point_measure_expected"][place] == pytest.approx(e @ deviation / spread)
        assert found["exact_match"][place] == pytest.approx(100 * match.mean())
        assert found["exact_match_expected"][place] == pytest.approx(100 * likely.mean())
