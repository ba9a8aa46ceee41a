"""The numbers of the experiments against closed forms."""

import itertools
import math

import numpy as np
import pytest

from reproduction import NAMES, benchmark, gap, load, rates, simulations
from reproduction.bounds import floor, floor_of_thresholds
from reproduction.page import real_data
from reproduction.results import mean_and_error
from spectral_irt import simulate
from spectral_irt.errors import OptionError
from spectral_irt.model import category_probabilities


def standard_error(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def test_mean_and_error() -> None:
    values = np.random.default_rng(1).normal(3, 2, 17)
    assert mean_and_error(values.tolist()) == pytest.approx((values.mean(), standard_error(values)))
    assert math.isnan(mean_and_error([1.0])[1])


@pytest.mark.parametrize(("a", "b"), [(0.3, 0.2), (0.9, 0.8), (0.05, 0.01)])
def test_gap_of_two_states(a: float, b: float) -> None:
    """The chain that leaves its states with probabilities a and b has the eigenvalues 1 and 1 - a - b."""
    chain = np.array([[1 - a, a], [b, 1 - b]])
    assert gap.spectral_gap(chain, np.array([b, a]) / (a + b)) == pytest.approx(1 - abs(1 - a - b))


def test_expected_chain_has_the_truth_for_its_distribution() -> None:
    """exp(beta) is stationary, and in detailed balance, for the chain of expected counts: the paper's first lemma."""
    data = simulate.rasch(60, 8, design="sampled", p=0.7, seed=4)
    chain = gap.transitions(gap.expected_counts(data), 500.0)
    pi = np.exp(data.difficulty) / np.exp(data.difficulty).sum()
    np.testing.assert_allclose(chain.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(pi @ chain, pi, rtol=1e-12)
    moduli = np.sort(np.abs(np.linalg.eigvals(chain)))
    assert gap.spectral_gap(chain, pi) == pytest.approx(1 - moduli[-2], rel=1e-9)


def test_terms_of_the_proof_keep_their_inequality() -> None:
    found = gap.terms(simulate.rasch(2000, 6, difficulty_sd=0.5, ability_sd=0.5, seed=1), 1.0)
    assert found["concentrated"]
    assert 0 < found["pi_error"] <= found["perturbation_bound"]
    assert found["gap"] > found["gap_bound"] > 0
    assert found["projected"] < found["projected_bound"]


@pytest.mark.parametrize(
    "experiment", [*simulations.EXPERIMENTS.values(), *rates.EXPERIMENTS.values()], ids=lambda each: each.name
)
def test_titles_say_what_was_simulated(experiment: simulations.Simulation) -> None:
    assert set(experiment.methods) <= set(simulations.METHODS)
    assert {setting.panel for setting in experiment.settings} == {panel.name for panel in experiment.panels}
    for panel in experiment.panels:
        settings = [setting for setting in experiment.settings if setting.panel == panel.name]
        first = settings[0]
        same = {tuple(getattr(s, name) for name in ("n", "m", "p", "sigma") if name != panel.axis) for s in settings}
        assert len(same) == 1
        if panel.axis == "m":
            assert panel.title == f"{first.n:,} persons, each item shown with probability {first.p:g}"
            continue
        shown = "complete" if first.p == 1 else f"each shown with probability {first.p:g}"
        fixed = f"{first.m} items, " + (shown if panel.axis == "n" else f"{first.n:,} persons")
        abilities = f", abilities N(0, {first.sigma**2:g})"
        assert panel.title == fixed + (abilities if "abilities" in panel.title or first.sigma != 1 else "")


def test_names_are_found_where_they_are_said_to_be() -> None:
    assert len(NAMES) == 12
    assert [load(name).name for name in NAMES] == list(NAMES)
    with pytest.raises(OptionError, match="figure9"):
        load("figure9")


def test_slopes_of_power_laws_are_their_powers() -> None:
    table = []
    for panel, method, n in itertools.product(rates.PANELS, rates.METHODS, (100, 300, 1000)):
        row = {"panel": panel.name, "method": method, "n": n, "m": n, "p": n / 1000}
        table.append({**row, "error": 3.0 * row[panel.axis] ** -0.7, "largest": 2.0 * row[panel.axis] ** 0.3})
    for row in rates.slopes(table):
        measured = {"error": -0.7, "largest": 0.3}[next(p.measure for p in rates.PANELS if p.name == row["panel"])]
        assert row["slope"] == pytest.approx(measured)
        assert row["slope_worst_item"] == pytest.approx(0.3)


def test_the_worst_item_and_the_floor_of_thresholds() -> None:
    estimate, truth = np.array([1.0, 2.0, 6.0]), np.array([0.0, 0.0, 0.0])
    assert simulations.largest_distance(estimate, truth) == 3  # 6 is 3 above the mean
    binary = simulate.rasch(300, 6, design="sampled", p=0.7, seed=1)
    every = np.ones(6, dtype=bool)
    expected = math.sqrt(floor(binary.information(), centered=True))
    assert floor_of_thresholds(binary, every) == pytest.approx(expected)


def test_the_floor_of_thresholds_has_the_curvature_of_the_likelihood() -> None:
    """The information about all thresholds by differences of the expected log-likelihood, everyone answering all."""
    data = simulate.partial_credit(5, 3, categories=[2, 3, 4], seed=2)
    layout = data.responses.thresholds
    n = layout.n_entries

    def expected(beta: np.ndarray) -> float:
        total = 0.0
        for theta, i in itertools.product(data.ability, range(3)):
            true, other = (category_probabilities(theta, layout.cumulated(b)[i]) for b in (data.thresholds, beta))
            used = true > 0
            total += float(true[used] @ np.log(other[used]))
        return total

    step = 1e-3 * np.eye(n)
    base = data.thresholds
    hessian = [
        [
            (expected(base + a + b) - expected(base + a - b) - expected(base - a + b) + expected(base - a - b)) / 4e-6
            for b in step
        ]
        for a in step
    ]
    free = np.linalg.inv(-np.array(hessian))
    centered = free - np.outer(free.sum(axis=1), free.sum(axis=0)) / free.sum()
    found = floor_of_thresholds(data, np.ones(n, dtype=bool))
    assert found == pytest.approx(math.sqrt(np.trace(centered)), rel=1e-4)


def test_our_default_is_compared_with_the_paper_s_split_by_split() -> None:
    ours, paper = [0.70, 0.72, 0.71], [0.69, 0.70, 0.72]
    trials = [
        {"dataset": "ml_1m", "method": method, "split": k, "auc": auc, "top10": 1.0, "top25": 0.5, "top50": 0.5}
        for method, column in ((benchmark.BY_LOWER, ours), (benchmark.PAPER, paper))
        for k, auc in enumerate(column)
    ]
    trials += [{**row, "dataset": "lsat"} for row in trials]  # tests are left out
    _, table = real_data.against_the_papers(trials)
    difference = np.subtract(ours, paper)
    assert f"| `ml_1m` | {difference.mean():.4f} ({standard_error(difference):.4f}) | 0.000 (0.000) |" in table
    assert "lsat" not in table
