"""The classical statistics of items against loops over their definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import spectral_irt as si
from dense import AWKWARD
from spectral_irt import simulate
from spectral_irt.data import Responses
from spectral_irt.data.block import Block
from spectral_irt.inference.items.classical import (
    Groups,
    abler,
    cronbach_alpha,
    item_analysis,
    item_analysis_columns,
    rises,
)


def rasch(n: int, m: int, seed: int, *, share: float = 1.0, slope: object = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    theta, beta = rng.normal(size=(n, 1)), np.linspace(-1.5, 1.5, m)
    x = (rng.random((n, m)) < 1 / (1 + np.exp(-np.asarray(slope) * (theta - beta)))).astype(float)
    x[rng.random((n, m)) >= share] = np.nan
    return x


def correlation(pairs: list[tuple[float, float]]) -> float:
    if len(pairs) < 2:
        return float("nan")
    a, b = np.array(pairs).T
    if a.std() == 0 or b.std() == 0:
        return float("nan")
    return float(np.mean((a - a.mean()) * (b - b.mean())) / (a.std() * b.std()))


def rests(X: np.ndarray, item: int) -> list[tuple[float, float]]:
    """The answer to this item, and the share right of the person's other answers."""
    found = []
    for row in X:
        others = [row[j] for j in range(len(row)) if j != item and not np.isnan(row[j])]
        if not np.isnan(row[item]) and others:
            found.append((row[item], sum(others) / len(others)))
    return found


def rest_abilities(X: np.ndarray, beta: np.ndarray, item: int, right: float) -> list[float]:
    """PROX on the other items, of the people with this answer."""
    found = []
    for row in X:
        others = [j for j in range(len(row)) if j != item and not np.isnan(row[j])]
        if row[item] != right or not others:
            continue
        b = np.array([beta[j] for j in others])
        s, n = sum(row[j] for j in others), len(others)
        found.append(b.mean() + np.sqrt(1 + b.var() / 2.89) * np.log((s + 0.5) / (n - s + 0.5)))
    return found


@pytest.mark.parametrize("case", ["awkward", "complete", "holes"])
def test_statistics_are_their_definitions(case: str) -> None:
    X = {"awkward": AWKWARD, "complete": rasch(80, 6, 1), "holes": rasch(120, 7, 2, share=0.6)}[case]
    beta = np.linspace(-1, 1, X.shape[1])
    found = item_analysis(Responses.from_wide(X), beta)
    for item in range(X.shape[1]):
        assert found.item_rest[item] == pytest.approx(correlation(rests(X, item)), abs=1e-12, nan_ok=True)
        for right in (0, 1):
            values = rest_abilities(X, beta, item, right)
            assert found.chose.n[item, right] == len(values)
            if len(values) > 1:
                assert found.chose.mean[item, right] == pytest.approx(np.mean(values), abs=1e-12)
                assert found.chose.variance[item, right] == pytest.approx(np.var(values, ddof=1), abs=1e-10)


@pytest.mark.parametrize("categories", [2, 4])
def test_alpha_over_the_people_who_answered_everything(categories: int) -> None:
    """One rule for any number of categories; an answer that is missing leaves its person out, and no more."""
    data = simulate.partial_credit(150, 6, categories=categories, seed=3).responses
    X = data.to_dense()
    X[0, 0] = np.nan
    whole = X[1:]

    def alpha(table: np.ndarray) -> float:
        covariance, k = np.cov(table.T), table.shape[1]
        return float(k / (k - 1) * (1 - np.trace(covariance) / covariance.sum()))

    answers = Responses.from_wide(X, ordered=categories > 2)
    assert cronbach_alpha(answers) == pytest.approx(alpha(whole), abs=1e-12)
    assert cronbach_alpha(answers, np.full(150, 2.0)) == pytest.approx(alpha(whole), abs=1e-12)
    found = item_analysis(answers, np.zeros(answers.thresholds.n_entries)).alpha_if_deleted
    for item in range(6):
        assert found[item] == pytest.approx(alpha(np.delete(whole, item, axis=1)), abs=1e-12)
    two = Responses.from_wide(X[:, :2], ordered=categories > 2)
    assert np.isnan(item_analysis(two, np.zeros(two.thresholds.n_entries)).alpha_if_deleted).all()
    X[: len(X) // 2 + 1, 0] = np.nan  # most of them lack an answer
    assert cronbach_alpha(Responses.from_wide(X, ordered=categories > 2)) is None


def test_ordered_answers_by_hand() -> None:
    X = simulate.partial_credit(300, 5, categories=4, seed=2).responses.to_dense()
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    answers = Responses.from_wide(X, ordered=True)
    layout = answers.thresholds
    beta = np.linspace(-1, 1, layout.n_entries)
    beta[layout.item == 3] = np.nan  # of the rest, but not of the ability that it tells
    found = item_analysis(answers, beta)
    location, known = layout.mean(beta), np.array([0, 1, 2, 4])
    pairs, abilities = [], []
    for row in X:
        if np.isnan(row[0]):
            continue
        others = [k for k in range(1, 5) if not np.isnan(row[k])]
        if others:
            pairs.append((row[0], sum(row[others]) / layout.max_score[others].sum()))
        others = [k for k in others if k in known]
        if others and row[0] == 2:
            b, s, n = location[others], row[others].sum(), layout.max_score[others].sum()
            abilities.append(b.mean() + np.sqrt(1 + b.var() / 2.89) * np.log((s + 0.5) / (n - s + 0.5)))
    assert found.item_rest[0] == pytest.approx(correlation(pairs), abs=1e-12)
    assert found.chose.n[0, 2] == len(abilities)
    assert found.chose.mean[0, 2] == pytest.approx(np.mean(abilities), abs=1e-12)
    assert found.chose.n[3].sum() == 0


def test_blocks_do_not_matter_and_items_without_difficulty_make_nobody_able() -> None:
    X = rasch(60, 8, 4, share=0.7)
    whole = Responses.from_wide(X)
    beta = np.linspace(-1, 1, 8)
    beta[3] = np.inf
    parts = [whole.take_persons(np.arange(a, a + 15)).blocks for a in range(0, 60, 15)]
    many = replace(whole, blocks=tuple(block for part in parts for block in part))
    assert isinstance(many.blocks[0], Block)
    assert len(many.blocks) == 4
    one, other = item_analysis(whole, beta), item_analysis(many, beta)
    np.testing.assert_allclose(one.item_rest, other.item_rest, atol=1e-12)
    np.testing.assert_allclose(one.chose.mean, other.chose.mean, atol=1e-12)
    kept = np.where(np.arange(8) == 3, np.nan, X)
    assert one.chose.mean[0, 1] == pytest.approx(np.mean(rest_abilities(kept, beta, 0, 1.0)), abs=1e-12)
    assert one.item_rest[0] == pytest.approx(correlation(rests(X, 0)), abs=1e-12)  # the share counts all items
    assert one.chose.n[3, 1] == 0


def test_discrimination_is_one_newton_step_of_the_slope() -> None:
    X = rasch(300, 10, 5, share=0.8)
    study = si.SpectralRasch().fit(Responses.from_wide(X)).analyse(Responses.from_wide(X))
    beta, theta = study.calibration.difficulty, study.abilities("ml").ability
    table = study.item_analysis()
    for item in range(10):
        top = bottom = 0.0
        for person, row in enumerate(X):
            given = row[~np.isnan(row)]
            if np.isnan(row[item]) or given.sum() in (0, len(given)):
                continue
            far = theta[person] - beta[item]
            p = 1 / (1 + np.exp(-far))
            top += (row[item] - p) * far
            bottom += p * (1 - p) * far**2
        assert table["discrimination"][item] == pytest.approx(1 + top / bottom, abs=1e-9)


def test_the_table_counts_blanks_and_leaves_out_what_is_not_known() -> None:
    X = np.where(np.isnan(AWKWARD), None, AWKWARD)
    responses = Responses.from_wide(X)
    study = si.SpectralRasch().fit(responses).analyse(responses)
    columns = study._item_analysis(discrimination=False)
    assert list(columns) == ["item", "n", "p_correct", "item_rest", "alpha_if_deleted", "omitted", "not_reached"]
    assert columns["omitted"].tolist() == [2, 1, 1, 0, 4, 5, 0]
    assert columns["not_reached"].tolist() == [0, 0, 0, 1, 2, 2, 2]
    part = responses.take_persons(np.arange(4))  # their blanks were not counted
    assert "omitted" not in item_analysis_columns(study.calibration, part, item_analysis(part, np.zeros(7)))


def test_welch() -> None:
    from scipy.stats import ttest_ind

    values = (np.array([3.0, 4, 5, 6, 9]), np.array([1.0, 2, 2, 4, 1, 2]))
    a, b = (Groups.of(np.array([float(len(v))]), np.array([v.sum()]), np.array([(v**2).sum()])) for v in values)
    expected = ttest_ind(*values, equal_var=False, alternative="greater").pvalue
    assert abler(a, b)[0] == pytest.approx(expected, abs=1e-12)
    assert abler(b, a)[0] == pytest.approx(1 - expected, abs=1e-12)
    assert np.isnan(abler(Groups(np.array([4.0]), a.mean, a.variance), b)[0])  # too few
    both = Groups(*(np.stack([y, x], axis=1) for x, y in zip(vars(a).values(), vars(b).values(), strict=True)))
    assert rises(both)[0] == pytest.approx(expected, abs=1e-12)  # of two groups, a slope is a difference


def test_an_item_that_abler_people_fail_is_found_and_a_good_or_noisy_one_is_not() -> None:
    X = rasch(400, 20, 7)
    X[:, 4] = 1 - X[:, 4]
    X[:, 9] = np.random.default_rng(1).random(400) < 0.5  # noise
    study = si.SpectralRasch().fit(Responses.from_wide(X)).analyse(Responses.from_wide(X))
    (found,) = study._item_findings()
    assert (found.code, found.severity, found.items) == ("reversed_items", "warning", (4,))
    assert "Abler people fail 1 item: 4 (correlation with the other items -0." in found.sentence
    assert found in study.findings()


def test_forms_of_unlike_difficulty_turn_nothing_round() -> None:
    """The able get the hard form: their share of right answers is lower, and common items are easier for them."""
    rng = np.random.default_rng(8)
    able = np.arange(1000) % 2 == 1
    theta = np.where(able, 1.5, -1.5) + 0.3 * rng.normal(size=1000)
    beta = np.concatenate([np.full(10, -3.5), np.zeros(4), np.full(10, 3.5)])
    X = (rng.random((1000, 24)) < 1 / (1 + np.exp(beta - theta[:, None]))).astype(float)
    X[np.ix_(able, range(10))] = np.nan
    X[np.ix_(~able, range(14, 24))] = np.nan
    study = si.SpectralRasch().fit(Responses.from_wide(X)).analyse(Responses.from_wide(X))
    assert (study._classical().item_rest[10:14] < -0.1).any()  # which is why this does not decide
    assert not study._item_findings()
