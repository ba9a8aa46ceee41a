"""Every experiment at toy size: tables, figures, going on after an interrupt, and the page made of them."""

import csv
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from reproduction import (
    NAMES,
    benchmark,
    datasets,
    gap,
    load,
    methods,
    partial_credit,
    rates,
    simulations,
    without_pairs,
)
from reproduction.__main__ import main
from reproduction.datasets import catalog, opening
from reproduction.experiment import Request, partial_file, run
from reproduction.page.page import write_page
from reproduction.paper_numbers import all_printed, printed
from reproduction.partial_credit import CreditSetting
from reproduction.results import read_table
from reproduction.simulations import Setting, at
from reproduction.trials import Task, run_trials
from spectral_irt import PairwiseRasch, SpectralRasch, simulate
from spectral_irt.data import Responses
from spectral_irt.errors import OptionError

Patch, Said = pytest.MonkeyPatch, pytest.CaptureFixture[str]
pytestmark = pytest.mark.slow  # seconds each: left out of the quick part

SMALL = {
    "figure1a": at((60, 120), 5),
    "figure1b": at((60, 120), 5, sigma=2),
    "figure1c": at((150, 300), 12, 0.6, panel="persons")
    + tuple(Setting(200, 12, p, 1, "share shown") for p in (0.5, 1)),
    "figure1d": at((60, 120), 12, 0.7),
    "figure2": at((300, 600), 8),
    "rates": at((200, 400), 5, panel="n")
    + tuple(Setting(900, 5, p, panel="p, few items") for p in (0.5, 1.0))
    + tuple(Setting(200, 15, p, panel="p, many items") for p in (0.6, 1))
    + tuple(rates.BoundedSetting(300, m, 0.7, panel="worst item") for m in (8, 16)),
    "credit": (
        CreditSetting(200, 5, panel="complete", max_score=2),
        CreditSetting(400, 5, panel="complete", max_score=2),
        CreditSetting(300, 6, 0.8, panel="share", max_score=2),
    ),
}


@pytest.fixture(scope="module", autouse=True)
def toy() -> Iterator[None]:
    """Sizes that run in moments."""
    with pytest.MonkeyPatch.context() as patch:
        modules = {"rates": rates, "credit": partial_credit}
        for name, settings in SMALL.items():
            module = modules.get(name, simulations)
            patch.setitem(module.EXPERIMENTS, name, replace(module.EXPERIMENTS[name], settings=settings))
        patch.setattr(gap, "PERSONS", (100, 200))
        patch.setattr(gap, "ITEMS", 6)
        yield


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small stand-in for ML-100K: stars 1 to 5 that rise with ability and quality."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(5)
    persons, items = 120, 60
    shown = rng.random((persons, items)) < np.linspace(0.9, 0.15, items)
    liking = rng.normal(size=(persons, 1)) + np.linspace(1.5, -1.5, items)[rng.permutation(items)]
    stars = np.clip(np.round(3 + liking + rng.logistic(size=(persons, items))), 1, 5)
    person, item = np.nonzero(shown)
    table = pl.DataFrame({"person": person, "item": item, "rating": stars[shown]})
    table.cast({"person": pl.Int32, "item": pl.Int32, "rating": pl.Float32}).write_parquet(folder / "ml_100k.parquet")
    datasets.available(folder)
    benchmark.opened.cache_clear()
    return folder


def request_for(folder: Path, name: str, data: Path | None = None, **more: Any) -> Request:
    chosen = ("lsat", "ml_100k", "ml_100k@15") if load(name).uses_data else ()
    return Request(folder, data=data, trials=2, datasets=chosen, **more)


def without_times(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [{k: v for k, v in row.items() if not k.startswith("seconds")} for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def out(ratings: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every experiment was run."""
    folder = tmp_path_factory.mktemp("out")
    for name in NAMES:
        files = run(load(name), request_for(folder, name, ratings))
        assert {folder / f"{name}.{kind}" for kind in ("csv", "parquet", "svg", "png")} <= set(files)
        assert all(file.stat().st_size > 0 for file in files)
    assert not list(folder.glob("*partial*"))
    return folder


def test_every_experiment_has_a_table_and_a_place_on_the_page(out: Path, tmp_path: Path) -> None:
    for name in NAMES:
        rows = read_table(out, name)
        assert len(rows) == len(without_times(out / f"{name}.csv")) > 0
        told = [(k, v) for row in rows for k, v in row.items() if not k.startswith(("paper", "top"))]
        assert all(math.isfinite(v) for _, v in told if isinstance(v, float)), name
    page = write_page(out, tmp_path).read_text(encoding="utf-8")
    assert page.count("\n## ") == len(NAMES) + 2
    assert all(f"python -m reproduction {name}" in page for name in NAMES)
    assert "nan" not in page
    assert all((tmp_path / "figures" / f"{name}.svg").is_file() for name in NAMES)
    for line in page.splitlines():
        if line.startswith("!["):
            assert (tmp_path / line.partition("](")[2].rstrip(")")).is_file()


def stop_after(tasks: int) -> Any:
    """A `tell` that interrupts."""
    told = []

    def tell(text: str, share: float | None = None) -> None:
        told.append(text)
        if len(told) > tasks:
            raise KeyboardInterrupt

    return tell


@pytest.mark.parametrize("name", ["figure1a", "table1"])
def test_interrupted_and_restarted_gives_the_same_table(name: str, out: Path, ratings: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    interrupted = request_for(broken, name, ratings, tell=stop_after(3))
    with pytest.raises(KeyboardInterrupt):
        run(load(name), interrupted)
    kept = partial_file(load(name), interrupted)
    assert len(kept.read_text().splitlines()) == 1 + 3
    assert not (broken / f"{name}.csv").exists()
    with kept.open("a") as file:
        file.write('{"key": "torn')  # as a power cut leaves it
    run(load(name), request_for(broken, name, ratings))
    assert without_times(out / f"{name}.csv") == without_times(broken / f"{name}.csv")


def test_all_interrupted_go_on_without_those_that_were_finished(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr("reproduction.__main__.NAMES", ("figure1a", "gap"))
    out = tmp_path / "out"
    command = ["all", "--trials", "1", "-o", str(out)]
    with monkeypatch.context() as first:
        first.setattr(gap, "terms", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert main(command) == 130
    finished = (out / "figure1a.csv").read_bytes()
    with monkeypatch.context() as second:
        second.setattr(simulations, "rasch", None)  # figure1a can draw no more data
        assert main(command) == 0
    assert (out / "figure1a.csv").read_bytes() == finished
    assert (out / "gap.csv").is_file()
    assert not list(out.glob("*partial*"))


def test_the_same_seed_gives_the_same_table_and_another_does_not(tmp_path: Path) -> None:
    tables = []
    for k, seed in enumerate((1, 1, 2)):
        run(load("gap"), request_for(tmp_path / str(k), "gap", seed=seed))
        tables.append((tmp_path / str(k) / "gap.csv").read_bytes())
    assert tables[0] == tables[1] != tables[2]


def test_finished_trials_are_not_done_again_unless_about_something_else(tmp_path: Path) -> None:
    done = []

    def tasks(n: int) -> list[Task]:
        return [Task(str(k), lambda k=k: done.append(k) or [{"k": k, "x": math.nan}]) for k in range(n)]

    path = tmp_path / "x.partial.jsonl"
    quiet = lambda text, share: None  # noqa: E731
    run_trials(path, {"seed": 1}, tasks(2), quiet)
    rows = run_trials(path, {"seed": 1}, tasks(4), quiet)
    assert done == [0, 1, 2, 3]
    assert [row["k"] for row in rows] == [0, 1, 2, 3]
    assert math.isnan(rows[0]["x"])
    run_trials(path, {"seed": 2}, tasks(1), quiet)
    assert done == [0, 1, 2, 3, 0]


def test_table1_has_the_columns_that_were_asked_for(out: Path) -> None:
    rows = without_times(out / "table1.csv")
    found = ["auc", "loglik", "top10", "top25", "top50"]
    columns = ["dataset", "method", "split", "n_persons", "n_items", "n_responses", *found]
    assert list(rows[0])[:17] == [*columns, *(f"paper_{name}" for name in [*found, "seconds"])]
    names = {benchmark.PAPER, benchmark.BY_ESTIMATE, benchmark.BY_LOWER, "MMLE", "CMLE", "JMLE"}
    assert {row["method"] for row in rows} == names
    for row in rows:
        assert all(row[name] for name in ("auc", "loglik", "top10"))
        assert float(row["top10"]) == 1 or row["dataset"] != "lsat"  # five items, all of them among the first ten
    assert {row["paper_auc"] for row in rows if row["dataset"] == "lsat"} == {"0.707"}
    assert len(without_times(out / "table1_summary.csv")) * 2 == len(rows)


def test_all_that_is_found_is_run_also_as_the_authors_cut_it(ratings: Path, tmp_path: Path) -> None:
    assert benchmark.chosen_datasets(Request(tmp_path, data=ratings)) == ["lsat", "ml_100k", "ml_100k@authors"]
    with pytest.raises(OptionError, match="after @ comes"):
        benchmark.chosen_datasets(Request(tmp_path, datasets=("lsat@few",)))
    assert benchmark.number_of_splits(Request(tmp_path), 5_000) == 50
    assert benchmark.number_of_splits(Request(tmp_path), 1_000_000) == 5
    assert benchmark.number_of_splits(Request(tmp_path, trials=3), 5_000) == 3


def test_a_ranking_is_compared_with_mean_ratings(ratings: Path) -> None:
    dataset = datasets.open_dataset("ml_100k", ratings)
    assert dataset.item_means is not None
    assert benchmark.top_shares(dataset, dataset.item_means, 10) == [1, 1, 1]
    hidden = dataset.item_means.copy()
    hidden[np.argsort(-hidden)[:10]] = np.nan  # without an estimate: last
    assert benchmark.top_shares(dataset, hidden, 10)[0] == 0


def test_a_ranking_of_answers_is_compared_with_shares_wrong() -> None:
    responses = simulate.rasch(2_000, 80, seed=5).responses
    answers = datasets.Dataset("a", "a", responses, "answers", None, None, None)
    wrong = 1 - responses.item_scores / responses.item_counts
    assert benchmark.top_shares(answers, wrong, 100) == [1, 1, 1]
    assert benchmark.top_shares(answers, -wrong, 100) == pytest.approx([0, 0, 0.4])  # 20 of 80 are in both halves of 50


def test_ties_in_a_ranking_are_broken_by_chance() -> None:
    wide = np.zeros((20, 120))
    wide[:10, 40:] = 1  # 40 items that nobody got right, 80 that half did
    answers = datasets.Dataset("a", "a", Responses.from_wide(wide), "answers", None, None, None)
    hard = np.arange(120) < 40
    assert benchmark.top_shares(answers, hard.astype(float), 10) == [1, 1, 1]  # the 50th ties with all the others
    assert benchmark.top_shares(answers, np.zeros(120), 10) == pytest.approx([1 / 3, 1 / 3, 1])
    some = np.where(np.arange(120) < 115, np.nan, 1.0)  # five of those, the rest by chance among 40 in 115
    assert benchmark.top_shares(answers, some, 10)[0] == pytest.approx(5 * 40 / 115 / 10)


def test_the_paper_s_numbers_are_as_printed() -> None:
    assert [len(all_printed(name)) for name in ("table1", "table2", "table3")] == [12 * 4, 12 * 5, 4 * 2]
    cell = printed("table1", "ML-1M", "CMLE")
    assert cell is not None
    assert (cell.auc, cell.loglik, cell.top10, cell.seconds) == (0.468, -1.166, 0.0, 156_000)
    assert printed("table1", "ML-1M", "PMLE") is None
    assert printed("table1", None, "CMLE") is None


def test_the_paper_s_cmle_counts_missing_answers_as_wrong() -> None:
    """Its likelihood, written out: the symmetric function of order s_l over all items, for every person."""
    data = simulate.rasch(200, 5, design="sampled", p=0.6, seed=2).responses
    beta = simulations.missing_as_wrong(data)
    answers = data.to_dense()
    right, scores = np.nansum(answers, axis=0), np.nansum(answers, axis=1).astype(int)

    def loglik(beta: np.ndarray) -> float:
        gamma = np.array([1.0])
        for x in np.exp(-beta):
            gamma = np.convolve(gamma, [1, x])
        return float(-right @ beta - np.log(gamma[scores]).sum())

    best = loglik(beta)
    for k in range(5):
        step = np.zeros(5)
        step[k] = 1e-3
        assert loglik(beta + step) < best
        assert loglik(beta - step) < best


def test_methods_without_the_matrix_of_pairs_agree_with_those_that_have_it() -> None:
    complete = simulate.rasch(40, 90, seed=3).responses
    explicit = SpectralRasch.paper(se="none").fit(complete).difficulty_
    assert np.allclose(without_pairs.complete_paper_difficulty(complete), explicit, atol=1e-8)
    sparse = simulate.rasch(300, 40, design="sampled", p=0.5, seed=4).responses
    found = without_pairs.pairwise_without_pairs(sparse, start=np.zeros(40), tol=1e-8)
    assert np.allclose(found, PairwiseRasch().fit(sparse).difficulty_, atol=1e-6)


def test_designs_that_fall_apart_are_fitted_in_their_largest_part() -> None:
    rng = np.random.default_rng(0)
    table = np.full((90, 9), np.nan)
    table[:60, :6] = rng.random((60, 6)) < 0.5
    table[60:, 6:] = rng.random((30, 3)) < 0.5
    responses = Responses.from_wide(table)
    for method in (methods.paper, methods.cmle, methods.jmle, methods.pmle):
        found = method(responses)
        assert np.isfinite(found.difficulty).tolist() == [True] * 6 + [False] * 3
        assert found.note == "largest part of the design"


def test_the_command_lists_runs_and_refuses(tmp_path: Path, capsys: Said) -> None:
    assert main(["list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(NAMES)
    assert main(["figure1a", "--trials", "1", "--seed", "3", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "figure1a.csv").is_file()
    page = write_page(tmp_path / "out", tmp_path / "docs").read_text(encoding="utf-8")
    assert page.count("\n## ") == 1  # what was run, and nothing else
    for args, words in (
        (["figure9"], "'figure9'"),
        (["table1", "--data", str(tmp_path / "nowhere")], "there is no directory"),
        (["table1", "--datasets", "ml_1m", "--data", str(tmp_path)], "ML-1M is not in"),
        (["table1", "--datasets", "nothing"], "there is no dataset 'nothing'"),
        (["gap", "--trials", "0"], "at least 1"),
        (["gap", "--seed", "-1"], "seed"),
        (["gap", "-o", str(tmp_path / "out" / "figure1a.csv")], "cannot be written"),
    ):
        capsys.readouterr()
        assert main([*args]) == 2, args
        said = capsys.readouterr()
        assert words in said.err
        assert said.err.count("\n") == 1


def test_a_dataset_that_cannot_be_read_leaves_nothing_behind(tmp_path: Path, capsys: Said, monkeypatch: Patch) -> None:
    monkeypatch.delenv("SPECTRAL_IRT_DATA", raising=False)
    (tmp_path / "ml_1m.parquet").write_text("garbage")
    out = tmp_path / "out"
    command = ["table1", "--datasets", "ml_1m", "-o", str(out)]
    assert main([*command, "--data", str(tmp_path)]) == 2
    assert "ml_1m.parquet cannot be read" in capsys.readouterr().err
    assert not out.exists()
    assert main(command) == 2
    assert "say --data" in capsys.readouterr().err


def test_an_interrupt_says_that_trials_are_kept(tmp_path: Path, monkeypatch: Patch, capsys: Said) -> None:
    calls: list[int] = []
    original = simulations.measure

    def measure(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*args)

    monkeypatch.setattr(simulations, "measure", measure)
    assert main(["figure1a", "--trials", "2", "-o", str(tmp_path)]) == 130
    assert "2 finished trials are kept" in capsys.readouterr().err
    assert main(["figure1a", "--trials", "2", "-o", str(tmp_path)]) == 0


def test_from_an_empty_folder_to_the_page_as_make_does_it(tmp_path: Path) -> None:
    def run_module(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", *args]
        return subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)

    results, docs = str(tmp_path / "results"), str(tmp_path / "docs")
    refused = run_module("reproduction.page", results, docs)
    assert (refused.returncode, "Traceback" in refused.stderr) == (1, False)
    assert "holds no table of an experiment" in refused.stderr
    assert not (tmp_path / "docs").exists()
    done = run_module("reproduction", "table1", "--datasets", "lsat", "--trials", "1", "-o", results)
    assert str(tmp_path / "results" / "table1.csv") in done.stdout
    written = run_module("reproduction.page", results, docs)
    assert written.stdout.strip() == str(tmp_path / "docs" / "reproduction.md")
    assert "Table 1: real data" in (tmp_path / "docs" / "reproduction.md").read_text(encoding="utf-8")


def test_no_file_of_the_data_is_overwritten(tmp_path: Path, monkeypatch: Patch, capsys: Said) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("data/table1.csv").write_text("somebody's data\n")
    lsat, another = catalog.source_named("lsat"), next(one for one in catalog.sources() if one.layout != "bundled")
    found = (lsat, replace(another, files=("table1.csv",)))
    for module in (catalog, opening):
        monkeypatch.setattr(module, "sources", lambda: found)
    for place in ("data", "./data", str(Path("data").absolute())):
        assert main(["table1", "--data", "data", "--datasets", "lsat", "--trials", "1", "-o", place]) == 2
        assert "which is being read" in capsys.readouterr().err
    assert [path.read_text() for path in tmp_path.rglob("*.*")] == ["somebody's data\n"]
