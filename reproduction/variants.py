"""Variants: what the paper leaves open about its own estimator, and what each choice does.

Its text adds nu to every pair of items that some person answered both of, its program to pairs that somebody answered
differently; its experiments use nu = 1, its listing has 0.1 as another default; its program stops when a step of the
power iteration is shorter than 1e-6 in the l2 norm, which is not small beside stationary probabilities of 1 / m.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from reproduction.benchmark import AS_RUN, PROGRAM_RATINGS, chosen_datasets, opened, split, top_shares
from reproduction.datasets import available
from reproduction.experiment import Experiment, Request
from reproduction.figures import variants_figure
from reproduction.methods import largest_met
from reproduction.results import summarize
from reproduction.trials import Row, Task
from spectral_irt.chain.paper import PaperFit, algorithm_2, pair_counts, regularize, seen_together
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats
from spectral_irt.inference.prediction import evaluate

SPLITS = 5
MEASURES = ("auc", "loglik", "top10", "top25", "top50", "from_exact", "seconds")
MOST_ITEMS = 4_000  # of a dense matrix of pairs


@dataclass(frozen=True)
class Variant:
    """One reading of the paper."""

    name: str
    nu: float = 1.0
    rule: str = "differed"
    stop: str = "residual"
    tol: float = 1e-10


VARIANTS = (
    Variant("program: nu = 1 where answers differed"),
    Variant("text: nu = 1 where both were answered", rule="together"),
    Variant("listing: nu = 0.1 where answers differed", nu=0.1),
    Variant("stopped at a step below 1e-6", stop="step", tol=1e-6),
)


class Variants(Experiment):
    uses_data = True

    def plan(self, request: Request) -> list[Task]:
        return [
            Task(f"{name} split={number} {variant.name}", partial(trial, request, name, number, variant))
            for name in datasets(request)
            for number in range(request.trials or SPLITS)
            for variant in VARIANTS
        ]

    def tables(self, rows: list[Row]) -> dict[str, list[Row]]:
        return {"summary": summarize(rows, ["dataset", "variant"], MEASURES)}

    def draw(self, tables: Mapping[str, list[Row]]) -> Any:
        return variants_figure(tables["summary"])


EXPERIMENTS = {"variants": Variants("variants", "What the paper leaves open: nu, its rule, when to stop")}


def datasets(request: Request) -> list[str]:
    """Ratings in the paper's tables that are found, as the authors cut them; or what was asked for."""
    if request.datasets:
        return chosen_datasets(request)
    found = [s for s in available(request.data) if s.found and s.paper and (s.kind == "ratings" or s.name == "lsat")]
    names = [s.name if s.kind == "answers" else f"{s.name}@{AS_RUN.get(s.name, 'authors')}" for s in found]
    return [name for name in names if name.partition("@")[0] not in ("ml_10m", "ml_20m", "book_genome", "bx")]


def trial(request: Request, name: str, number: int, variant: Variant) -> list[Row]:
    dataset = opened(name, request.data)
    persons = split(dataset.responses, request.seed, name, number)
    start = time.process_time()
    beta, fit = estimate(persons.fit_on, variant)
    seconds = time.process_time() - start
    exact = beta
    if variant.stop == "step":
        exact = estimate(persons.fit_on, Variant("", variant.nu, variant.rule))[0]
    held_out = evaluate(beta, persons.validation, persons.test)
    tops = top_shares(dataset, beta, PROGRAM_RATINGS)
    return [
        {
            "dataset": name,
            "variant": variant.name,
            "split": number,
            "auc": held_out.auc,
            "loglik": held_out.loglik,
            **dict(zip(("top10", "top25", "top50"), tops, strict=True)),
            "from_exact": float(np.nanmax(np.abs(beta - exact))),
            "iterations": fit.n_iter,
            "seconds": seconds,
        }
    ]


def estimate(responses: Responses, variant: Variant) -> tuple[Floats, PaperFit]:
    """The paper's accelerated algorithm on the largest part of the design; NaN for the other items."""
    part = largest_met(responses)
    rest = responses.take_items(part)
    dense = rest.n_items <= MOST_ITEMS
    together = seen_together(rest, dense=dense) if variant.rule == "together" else None
    y = regularize(pair_counts(rest, dense=dense), variant.nu, rule=variant.rule, b=together)
    fit = algorithm_2(y, tol=variant.tol, stop=variant.stop)
    beta = np.full(len(part), np.nan)
    beta[part] = fit.difficulty
    return beta, fit
