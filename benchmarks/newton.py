"""Newton steps: how exact their probabilities are, where they end on data that misfit, and what they cost.

    python benchmarks/newton.py [--parts series,misfit,cost] [--responses 1000000]

series   largest and signed error of P(X = 1 | score) by the Edgeworth series, against the exact contour sum
misfit   distance from exact CML in its standard errors, of the chain alone and of the default; items out of order
         with their shares of right answers. A prior moves items with few answers on purpose, so the default and the
         chain are compared without one
cost     CPU of a whole fit with standard errors over that of the chain alone, and (at the size of --responses) the
         distance of a sample of items from exact CML, by the exact score
"""

from __future__ import annotations

from argparse import Namespace
from itertools import product

import numpy as np

import harness
from spectral_irt import ConditionalRasch, Responses, SpectralRasch, simulate
from spectral_irt.conditional.exact import Contour, tilt
from spectral_irt.conditional.exact_likelihood import conditional_probabilities
from spectral_irt.conditional.series_binary import fill_given_score
from spectral_irt.data.block import Block
from spectral_irt.model import prox, sigmoid

BANDS = ((1, 2), (2, 4), (4, 10), (10, 40), (40, 1000))


def series(asked: Namespace) -> None:
    rng = np.random.default_rng(1)
    signed: dict[tuple[int, int], list[tuple[np.ndarray, np.ndarray]]] = {band: [] for band in BANDS}
    for n, sd in product((8, 12, 20, 40, 80, 200, 500), (0.7, 1.0, 2.0)):
        people = 1000 if n < 100 else 300
        b, theta = rng.normal(0, sd, (n, people)), rng.normal(0, 1.2, people)
        s = (rng.random((n, people)) < sigmoid(theta - b)).sum(axis=0)
        b, s = b[:, (s > 0) & (s < n)], s[(s > 0) & (s < n)]
        counts = np.full(len(s), n)
        p = tilt(b[None], s, counts)[1][1]
        information = (p * (1 - p)).sum(axis=0)
        start = prox(b.mean(axis=0), b.var(axis=0), np.log(s / (n - s)))
        found, link = np.empty(b.size), np.empty(b.size)
        indptr = np.arange(0, b.size + 1, n, dtype=np.int32)
        with np.errstate(all="ignore"):
            fill_given_score(indptr, np.arange(b.size, dtype=np.int32), s, start, b.T.ravel(), found, link)
        error = found.reshape(-1, n).T - Contour.of(b[None], s, counts).given.p[0]
        for band in BANDS:
            inside = (information >= band[0]) & (information < band[1])
            kind = np.digitize(p[:, inside], [0.1, 0.3, 0.5, 0.7, 0.9])
            signed[band].append((kind.ravel(), error[:, inside].ravel()))
    rows = []
    for band in BANDS:
        kinds, values = (np.concatenate(each) for each in zip(*signed[band], strict=True))
        worst = max(abs(values[kinds == k].mean()) for k in np.unique(kinds))
        rows.append({"V": f"{band[0]} to {band[1]}", "largest": np.abs(values).max(), "mean with sign": worst})
    harness.show("series: error of P(X = 1 | score) by a person's information V", rows, asked)


def misfitting(seed: int, n: int = 4000, m: int = 40, slope: float = 0.35, spread: float = 1.5) -> np.ndarray:
    """Two unrelated abilities, one for the easy and one for the hard items, and slopes that follow difficulty."""
    rng = np.random.default_rng(seed)
    beta = np.linspace(-2, 2, m)
    abilities = spread * rng.normal(size=(n, 2))[:, (np.arange(m) >= m // 2).astype(int)]
    return (rng.random((n, m)) < sigmoid(np.exp(slope * beta) * (abilities - beta))).astype(float)


def misfit(asked: Namespace) -> None:
    tables = {
        "two abilities, steeper where harder": misfitting(1),
        "two abilities, flatter where harder": misfitting(2, slope=-0.5),
        "two abilities, much steeper where harder": misfitting(3, m=60, slope=0.8, spread=2.0),
    }
    default, chain = SpectralRasch(regularization=0), SpectralRasch(refine=False, regularization=0)
    fits = {"chain alone": chain, "default": default, "with its prior": SpectralRasch()}
    rows = []
    for name, table in tables.items():
        responses = Responses.from_wide(table)
        exact = ConditionalRasch(se="sandwich").fit(responses)
        share = responses.item_scores / responses.item_counts
        row: harness.Row = {"data": name, "people": responses.n_persons, "items": responses.n_items}
        for label, estimator in fits.items():
            fit = estimator.fit(responses)
            known = np.isfinite(exact.difficulty_) & np.isfinite(fit.difficulty_)
            distance = np.max(np.abs(fit.difficulty_ - exact.difficulty_)[known] / exact.se_[known])
            order = np.flatnonzero(known)[np.lexsort((fit.difficulty_[known], -share[known]))]
            wrong = int(np.sum(np.diff(fit.difficulty_[order]) < -1e-5))
            row |= {label: distance, f"{label}: out of order": f"{wrong} of {len(order) - 1}"}
        rows.append(row)
    title = "misfit: largest distance from exact CML in its standard errors; neighbors by share out of order"
    harness.show(title, rows, asked)


def cost(asked: Namespace) -> None:
    n = asked.responses
    data = simulate.rasch(n // 50, 5000, design="popularity", n_responses=n, seed=3).responses
    works = {"chain alone": lambda: SpectralRasch(refine=False).fit(data), "default": lambda: SpectralRasch().fit(data)}
    spent = {label: found.cpu for label, found in harness.in_turns(works).items()}
    rows = [{"fit": label, "CPU s": c, "ratio": c / spent["chain alone"]} for label, c in spent.items()]
    harness.show(f"cost: {asked.responses:,} responses, popularity design, whole fit with standard errors", rows, asked)
    plain = SpectralRasch(regularization=0).fit(data)
    known = np.isfinite(plain.difficulty_)
    rest = data if known.all() else data.take_items(known)
    score, information = rest.sum(_exact_score, plain.difficulty_[known])
    print(
        f"  without a prior, an exact Newton step by each item's own information would move no item by more than "
        f"{np.max(np.abs(score) / np.sqrt(information)):.3f} standard errors"
    )


def _exact_score(block: Block, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    p = conditional_probabilities(block, beta)
    score = np.bincount(block.items, weights=p - block.right(), minlength=len(beta))
    return score, np.bincount(block.items, weights=p * (1 - p), minlength=len(beta))


PARTS = {"series": series, "misfit": misfit, "cost": cost}

if __name__ == "__main__":
    asked = harness.arguments(__doc__, parts=tuple(PARTS), responses=1_000_000)
    for part in asked.parts:
        PARTS[part](asked)
