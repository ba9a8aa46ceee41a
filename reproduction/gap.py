"""Gap: the terms of the paper's proof, measured on simulated chains, beside the bounds of its lemmas.

||pi - pi*||_2 <= ||pi*^T (P - P*)||_2 / (mu*(P*) - ||P - P*||_2), with P the chain of the data, P* the chain of their
expectation, pi* = exp(beta*) / sum exp(beta*) and mu* the spectral gap. Everything is divided by d = 3 m n p^2 / 2, as
in the appendix, where that leaves no negative probability.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from reproduction.bounds import kappa as kappa_of
from reproduction.bounds import least_difference
from reproduction.experiment import Experiment, Request
from reproduction.figures import gap_figure
from reproduction.results import summarize
from reproduction.trials import Row, Task, generator
from spectral_irt.chain.paper import algorithm_2, pair_counts, seen_together
from spectral_irt.data.block import Floats
from spectral_irt.errors import DesignError
from spectral_irt.model import sigmoid
from spectral_irt.simulate import Simulated, rasch

PERSONS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
ITEMS = 20
SHARES = (1.0, 0.5)
REACH = 1.0  # difficulties evenly from -1 to 1, abilities uniform there: the theorems take a bounded range
TRIALS = 50

TERMS = (
    "gap",
    "gap_bound",
    "chain_error",
    "chain_error_bound",
    "projected",
    "projected_bound",
    "projected_bound_many",
    "pi_error",
    "perturbation_bound",
)


class Gap(Experiment):
    def plan(self, request: Request) -> list[Task]:
        return [
            Task(f"n={n} p={p:g} trial={k}", partial(trial, request.seed, n, p, k))
            for p in SHARES
            for n in PERSONS
            for k in range(request.trials or TRIALS)
        ]

    def tables(self, rows: list[Row]) -> dict[str, list[Row]]:
        return {"summary": summarize(rows, ["n", "m", "p"], TERMS)}

    def draw(self, tables: Mapping[str, list[Row]]) -> Any:
        return gap_figure(tables["summary"], SHARES[0])


EXPERIMENTS = {"gap": Gap("gap", "The terms of the proof against the bounds of its lemmas")}


def trial(seed: int, n: int, p: float, number: int) -> list[Row]:
    numbers = generator(seed, "gap", n, p, number)
    design: dict[str, Any] = {"design": "complete"} if p == 1 else {"design": "sampled", "p": p}
    data = rasch(
        n,
        difficulty=np.linspace(-REACH, REACH, ITEMS),
        ability=numbers.uniform(-REACH, REACH, n),
        seed=numbers,
        **design,
    )
    return [{"n": n, "m": ITEMS, "p": float(p), "trial": number, **terms(data, p)}]


def terms(data: Simulated, p: float) -> Row:
    """Every term of the proof for one simulated data set, and what the lemmas say of it."""
    n, m = data.responses.n_persons, data.responses.n_items
    y, together = pair_counts(data.responses, dense=True), seen_together(data.responses, dense=True)
    ideal = expected_counts(data)
    pairs = n * p**2
    off = ~np.eye(m, dtype=bool)
    concentrated = bool(np.all((together[off] >= pairs / 2) & (together[off] <= 1.5 * pairs)))
    d = max(1.5 * m * pairs, float(y.sum(axis=1).max()), float(ideal.sum(axis=1).max()))
    chain, exact = transitions(y, d), transitions(ideal, d)
    weights = np.exp(data.difficulty)
    pi_star = weights / weights.sum()
    try:
        pi = algorithm_2(y).pi
        pi_error = float(np.linalg.norm(pi - pi_star))
    except DesignError:
        pi_error = float("nan")
    kappa, gamma = kappa_of(data.difficulty), least_difference(data.difficulty, data.ability)
    gap, error = spectral_gap(exact, pi_star), float(np.linalg.norm(chain - exact, 2))
    projected = float(np.linalg.norm(pi_star @ (chain - exact)))
    return {
        "d": d,
        "kappa": kappa,
        "gamma": gamma,
        "concentrated": concentrated,
        "gap": gap,
        "gap_bound": float(gamma / (3 * np.exp(2 * kappa))),
        "chain_error": error,
        "chain_error_bound": float(gamma / (6 * np.exp(2 * kappa))),
        "projected": projected,
        "projected_bound": float(2 * np.exp(kappa) * np.sqrt(16 * max(m, np.log(pairs)) / pairs) / m),
        "projected_bound_many": float(np.exp(kappa) * np.sqrt(8 / (m * n * p))),
        "pi_error": pi_error,
        "perturbation_bound": projected / (gap - error) if gap > error else float("nan"),
    }


def expected_counts(data: Simulated) -> Floats:
    """Y*_ij = sum over the people who saw both of P(i right) P(j wrong)."""
    shown = np.isfinite(data.responses.to_dense())
    right = np.where(shown, sigmoid(data.ability[:, None] - data.difficulty[None, :]), 0.0)
    wrong = np.where(shown, sigmoid(data.difficulty[None, :] - data.ability[:, None]), 0.0)
    counts = right.T @ wrong
    np.fill_diagonal(counts, 0)
    return counts


def transitions(rates: Floats, d: float) -> Floats:
    """P_ij = Y_ij / d, and what is left stays."""
    chain = rates / d
    np.fill_diagonal(chain, 0)
    np.fill_diagonal(chain, 1 - chain.sum(axis=1))
    return chain


def spectral_gap(chain: Floats, pi: Floats) -> float:
    """1 - the largest size of an eigenvalue besides the one at 1, for a chain that is reversible under pi."""
    root = np.sqrt(pi)
    values = np.linalg.eigvalsh(root[:, None] * chain / root[None, :])
    return float(1 - max(abs(values[0]), values[-2]))
