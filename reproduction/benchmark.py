"""Tables 1 to 3, real data: split people, fit, predict people who were not fitted, compare rankings.

80% of the people train, of whom nine tenths are fitted and one tenth choose the prior of the predictions among ten; AUC
and mean log-likelihood are those of the other 20%. Top-K accuracy is the share of the K items with the best mean
rating (in all data, among items with enough ratings) that are among the K best by the estimate. The paper measures it
for ratings only; for answers it is the share of the K items most often answered wrong that are among the K hardest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from reproduction import methods
from reproduction.datasets import Dataset, available, open_dataset
from reproduction.datasets.catalog import source_named
from reproduction.experiment import Experiment, Request
from reproduction.figures import benchmark_figure
from reproduction.methods import Found
from reproduction.paper_numbers import Printed, printed
from reproduction.results import grouped, mean_and_error
from reproduction.trials import Row, Task, generator
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats
from spectral_irt.errors import OptionError, ReadError
from spectral_irt.inference.prediction import TEN_PRIORS, evaluate, split_persons

TRAINING, VALIDATION = 0.8, 0.1  # of all people; of those who train
TOPS = (10, 25, 50)

# Splits: five, as many more for the small tables as their chance results ask for, fewer where one takes minutes.
SPLITS, MANY_SPLITS, FEW_SPLITS = 5, 50, 2
SMALL, LARGE = 10_000, 9_000_000  # responses

# The authors' program has only items with more than 100 ratings in its reference ranking; the paper says more than 10.
# The paper's numbers come from the program, so they are compared by its rule; the other has columns of its own.
PROGRAM_RATINGS, TEXT_RATINGS = 100, 10

# What the authors ran, where it is not what their cutoff says: their notebook shows 2,514 items of ML-1M.
AS_RUN = {"ml_1m": "50"}

MEASURES = ("auc", "loglik", "top10", "top25", "top50", "seconds")
BY_TEXT = ("top10_text", "top25_text", "top50_text")

PAPER = "spectral (paper)"
BY_ESTIMATE, BY_LOWER = "spectral (default, by estimate)", "spectral (default, by lower end)"


# -------------------------------------------------------------------------------------- which datasets


def chosen_datasets(request: Request) -> list[str]:
    """The names asked for, or every dataset that is found, each also as the authors cut it."""
    if request.datasets:
        for name in request.datasets:
            base, _, cut = name.partition("@")
            if cut and cut != "authors" and not cut.isdigit():
                raise OptionError(f"{name!r} ends in {cut!r}; after @ comes 'authors' or a number of ratings.")
            source_named(base)
        return [f"{source_named(base).name}{at}{cut}" for base, at, cut in (n.partition("@") for n in request.datasets)]
    names: list[str] = []
    for source in available(request.data):
        if source.found is None:
            continue
        names.append(source.name)
        if source.kind == "ratings" and source.paper and source.least_item:
            names.append(f"{source.name}@{AS_RUN.get(source.name, 'authors')}")
    return names


@lru_cache(maxsize=1)
def opened(name: str, data: Path | None) -> Dataset:
    """The dataset `name`, `name@authors` or `name@50`; the last one stays in memory for its next trial."""
    base, _, cut = name.partition("@")
    return open_dataset(base, data, cutoff="authors" if cut == "authors" else int(cut) if cut else "none")


def number_of_splits(request: Request, n_responses: int | None) -> int:
    if request.trials:
        return request.trials
    if n_responses is not None and n_responses <= SMALL:
        return MANY_SPLITS
    return FEW_SPLITS if n_responses is not None and n_responses > LARGE else SPLITS


# --------------------------------------------------------------------------------------------- trials


@dataclass(frozen=True, eq=False)
class Split:
    """The people of one trial."""

    fit_on: Responses
    validation: Responses
    test: Responses


def split(responses: Responses, seed: int, dataset: str, number: int) -> Split:
    """The same people for every method, and for a dataset whatever its cut."""
    drawn = int(generator(seed, dataset.partition("@")[0], number).integers(2**31))
    shares = [TRAINING * (1 - VALIDATION), TRAINING * VALIDATION, 1 - TRAINING]
    return Split(*split_persons(responses, shares, drawn))


def tuned_mmle(persons: Split) -> Found:
    """MMLE under the prior, of the ten, that makes the validation people likeliest, as the paper tunes it.

    The mean of a prior only shifts all difficulties, so there is one fit for every standard deviation.
    """
    tried = [methods.mmle(persons.fit_on, sd) for sd in sorted({sd for _, sd in TEN_PRIORS})]
    return max(tried, key=lambda found: evaluate(found.difficulty, persons.validation, persons.validation).loglik)


# What is fitted, and the rows it makes: the method's name, and whether it ranks by the lower end.
Fit = Callable[[Split], Found]
FITS: dict[str, tuple[Fit, tuple[tuple[str, bool], ...]]] = {
    "paper": (lambda persons: methods.paper(persons.fit_on), ((PAPER, False),)),
    "default": (lambda persons: methods.default(persons.fit_on), ((BY_ESTIMATE, False), (BY_LOWER, True))),
    "mmle": (tuned_mmle, (("MMLE", False),)),
    "cmle": (lambda persons: methods.cmle(persons.fit_on), (("CMLE", False),)),
    "pmle": (lambda persons: methods.pmle(persons.fit_on), (("PMLE", False),)),
    "jmle": (lambda persons: methods.jmle(persons.fit_on), (("JMLE", False),)),
    "bayes": (lambda persons: methods.bayes(persons.fit_on), (("Bayesian (VB)", False),)),
}


@dataclass(frozen=True)
class Benchmark(Experiment):
    """A table of datasets and methods; `fits` are names in `FITS`."""

    uses_data = True

    fits: tuple[str, ...]

    def plan(self, request: Request) -> list[Task]:
        """A task for every dataset, split and fit."""
        tasks = [
            Task(f"{name} split={number} {fit}", partial(self.trial, request, name, number, fit))
            for name in chosen_datasets(request)
            for number in range(number_of_splits(request, source_named(name.partition("@")[0]).rows))
            for fit in self.fits
        ]
        if not tasks:
            raise ReadError("no dataset was found; say `data=`.")
        for name in request.datasets:
            _must_exist(name, request.data)
        return tasks

    def trial(self, request: Request, name: str, number: int, fit: str) -> list[Row]:
        dataset = opened(name, request.data)
        persons = split(dataset.responses, request.seed, name, number)
        return measure(self.name, name, dataset, number, fit, persons)

    def tables(self, rows: list[Row]) -> dict[str, list[Row]]:
        return {"summary": summary(rows)}

    def draw(self, tables: Mapping[str, list[Row]]) -> Any:
        return benchmark_figure(tables["summary"], self.title)


EXPERIMENTS = {
    each.name: each
    for each in (
        Benchmark("table1", "Real data: spectral, MMLE, CMLE, JMLE", ("paper", "default", "mmle", "cmle", "jmle")),
        Benchmark(
            "table2", "Real data: with the pairwise likelihood", ("paper", "default", "mmle", "cmle", "pmle", "jmle")
        ),
        Benchmark("table3", "Real data: spectral and Bayesian", ("paper", "default", "bayes")),
    )
}


def _must_exist(name: str, data: Path | None) -> None:
    """Complain now, not after an hour, when a dataset that was asked for is not there."""
    base = source_named(name.partition("@")[0])
    if not any(source.name == base.name and source.found for source in available(data)):
        open_dataset(base.name, data)


def measure(table: str, name: str, dataset: Dataset, number: int, fit: str, persons: Split) -> list[Row]:
    """Fit, predict, rank: a row for every name the fit goes by."""
    make, names = FITS[fit]
    start = time.process_time()
    found = make(persons)
    seconds = time.process_time() - start
    held_out = evaluate(found.difficulty, persons.validation, persons.test)
    rows = []
    for method, by_lower in names:
        score = found.lower if by_lower and found.lower is not None else found.difficulty
        program, text = top_shares(dataset, score, PROGRAM_RATINGS), top_shares(dataset, score, TEXT_RATINGS)
        said = printed(table, dataset.paper, method)
        rows.append(
            {
                "dataset": name,
                "method": method,
                "split": number,
                "n_persons": dataset.responses.n_persons,
                "n_items": dataset.responses.n_items,
                "n_responses": dataset.responses.n_responses,
                "auc": held_out.auc,
                "loglik": held_out.loglik,
                **dict(zip(("top10", "top25", "top50"), program, strict=True)),
                "seconds": seconds,
                **_paper_columns(said),
                **dict(zip(BY_TEXT, text, strict=True)),
                "items_without_estimate": int(np.sum(~np.isfinite(found.difficulty))),
                "note": found.note,
            }
        )
    return rows


def _paper_columns(said: Printed | None) -> Row:
    return {f"paper_{name}": float("nan") if said is None else getattr(said, name) for name in MEASURES}


# ------------------------------------------------------------------------------------------ rankings


def top_shares(dataset: Dataset, score: Floats, more_than: int) -> list[float]:
    """For every K the share of the K best by the score that are among the K best by mean rating (answers: most wrong).

    Whoever ties with the K-th by mean rating is among them too; ties in the score are broken by chance, and the share
    is its expectation. Items without a score come last. Data with too few items above the limit use the one of the
    paper's text, and all items if that leaves too few. Of fewer than K items all are among the K best.
    """
    means, ratings = dataset.item_means, dataset.item_ratings
    if means is None or ratings is None:
        ratings = dataset.responses.item_counts
        means = -dataset.responses.item_scores / np.maximum(ratings, 1)
    limits = [limit for limit in (more_than, TEXT_RATINGS, 0) if limit <= more_than]
    limit = next((limit for limit in limits if np.sum(ratings > limit) >= 2 * max(TOPS)), 0)
    merit = np.where(ratings > limit, means, -np.inf)
    rank = np.where(np.isfinite(score), np.round(score, 9), -np.inf)  # what differs by rounding alone is tied
    return [_top_share(merit, rank, min(k, len(means))) for k in TOPS]


def _top_share(merit: Floats, rank: Floats, k: int) -> float:
    best = merit >= np.partition(merit, -k)[-k]
    last = np.partition(rank, -k)[-k]
    above, tied = rank > last, rank == last
    return float((best[above].sum() + (k - above.sum()) * best[tied].mean()) / k)


# ------------------------------------------------------------------------------------------ averages


def summary(rows: Sequence[Row]) -> list[Row]:
    """Mean and standard error over the splits, beside the paper's value."""
    out = []
    for (dataset, method), members in grouped(rows, ["dataset", "method"]).items():
        line: Row = {"dataset": dataset, "method": method, "splits": len(members)}
        line |= {name: members[0][name] for name in ("n_persons", "n_items", "n_responses")}
        for name in (*MEASURES, *BY_TEXT):
            line[name], line[f"{name}_se"] = mean_and_error(row[name] for row in members)
            if name in MEASURES:
                line[f"paper_{name}"] = members[0][f"paper_{name}"]
        line["auc_sd"] = _spread([row["auc"] for row in members])
        line["loglik_sd"] = _spread([row["loglik"] for row in members])
        out.append(line)
    return out


def _spread(values: Sequence[float]) -> float:
    """Standard deviation from split to split."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
