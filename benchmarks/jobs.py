"""Whole commands from files: seconds, memory, and the least that reading such a file can take.

    python benchmarks/jobs.py [--parts startup,report,whole,packing] [--rows 1000000,10000000] [--text]

startup  commands on LSAT and on a CSV of a million rows, in units of a Python that only imports what they stand on
report   from answers to an open report: 1,000 people x 40 multiple-choice items with their key, and 5,000 items of
         which each of 4,000 people answered some 150; opened in a headless Chromium (`make test` installs it)
whole    `spectral-irt simulate` writes a skewed Parquet file of so many rows, and `fit` reads it, estimates, scores
         everybody, judges every item and writes the results; then with difficulties only. Beside them processes in
         which polars loads the columns, and groups them. With --text people and items have names, in no order
packing  `spectral_irt.read` (or `Responses.from_wide`) in a process of its own, without what importing costs, against
         one in which polars loads the columns and groups them by a person code that is an integer already
"""

from __future__ import annotations

import csv
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import draws
import harness
from spectral_irt import datasets

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browser import Browser, chromium

PYTHON = [sys.executable, "-c"]
PROGRAM = [sys.executable, "-m", "spectral_irt"]
COLUMNS = "columns=['person', 'item', 'response']"
GROUP = """
import sys
import polars as pl
rows = pl.read_parquet(sys.argv[1], columns=["person", "item", "response"])
codes = [pl.col(name).cast(pl.String).cast(pl.Categorical).to_physical() for name in ("person", "item")]
print(rows.with_columns(codes).group_by("person").agg("item", "response").height)
"""
SHUFFLE = """
import sys
import polars as pl
rows = pl.read_parquet(sys.argv[1])
named = [pl.format("{}-{}", pl.lit(name), pl.col(name)).alias(name) for name in ("person", "item")]
rows.with_columns(named).sample(fraction=1, shuffle=True, seed=1).write_parquet(sys.argv[1])
"""
IMPORT = "import polars, numpy, scipy.sparse, spectral_irt as si, sys; "
LOAD = IMPORT + f"polars.read_parquet(sys.argv[1], {COLUMNS}).group_by('person').agg('item', 'response')"


def simulated(file: Path, rows: int, people: int, items: int) -> Path:
    size = ["--responses", rows, "--persons", people, "--items", items, "--seed", 1]
    harness.command([*PROGRAM, "simulate", "-o", file, "--design", "popularity", *map(str, size)])
    return file


def startup(asked: Namespace, folder: Path) -> Iterator[harness.Row]:
    lsat = folder / "lsat.csv"
    pl.DataFrame(datasets.load_lsat().to_dense().astype(int), schema=list("abcde")).write_csv(lsat)
    big = simulated(folder / "big.csv", 1_000_000, 6_040, 3_900)
    base = harness.command([*PYTHON, "import numpy, scipy.sparse, polars, typer, rich"], 3).wall
    for title, arguments in {
        "--help": ["--help"],
        "fit, LSAT": ["fit", lsat, "-o", folder / "one"],
        "fit, 1 M rows": ["fit", big, "-o", folder / "two"],
        "fit, 1 M rows, difficulties only": ["fit", big, "-o", folder / "three", "--skip", "persons,fit"],
    }.items():
        spent = harness.command([*PROGRAM, *arguments], 3)
        yield {"command": title, "wall s": spent.wall, "x imports alone": spent.wall / base}


def choices(folder: Path, people: int = 1_000, items: int = 40) -> list[str | Path]:
    """Multiple choice with a key."""
    rng = np.random.default_rng(3)
    right = draws.answers(rng, rng.normal(size=(people, 1)) - np.linspace(-2, 2, items))
    key = rng.integers(4, size=items)
    chosen = np.where(right == 1, key, (key + rng.integers(1, 4, size=(people, items))) % 4)
    names, letters = [f"q{k + 1}" for k in range(items)], np.array(list("ABCD"))
    with (folder / "choices.csv").open("w", newline="") as file:
        csv.writer(file).writerows([names, *letters[chosen].tolist()])
    with (folder / "key.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("item", "key"), *zip(names, letters[key].tolist(), strict=True)])
    return [folder / "choices.csv", "--key", folder / "key.csv"]


def report(asked: Namespace, folder: Path) -> Iterator[harness.Row]:
    many, page = folder / "many.parquet", folder / "report.html"
    design = ["--persons", "4000", "--items", "5000", "--design", "sampled", "--p", "0.03", "--seed", "2"]
    harness.command([*PROGRAM, "simulate", "-o", many, *design])
    for what, data in (("1,000 x 40 with a key", choices(folder)), ("5,000 items", [many])):
        page.unlink(missing_ok=True)
        spent = harness.command([*PROGRAM, "fit", *data, "-q", "--report", page])
        row = {"data": what, "CPU s": spent.cpu, "page MB": page.stat().st_size / 1e6}
        if chromium() is not None:
            with Browser(folder / what.split()[0].replace(",", "")) as browser:
                browser.open(page)
                start = time.perf_counter()
                browser.open(page)
                row["opened in, s"] = time.perf_counter() - start
        yield row


def whole(asked: Namespace, folder: Path) -> Iterator[harness.Row]:
    for size in asked.rows:
        file = simulated(folder / f"{size}.parquet", size, size // 145, max(100, int(6 * size**0.5)))
        if asked.text:
            harness.command([*PYTHON, SHUFFLE, file])
        runs = {
            "loaded by polars": [*PYTHON, f"import sys, polars; polars.read_parquet(sys.argv[1], {COLUMNS})", file],
            "and grouped": [*PYTHON, GROUP, file],
            "fit": [*PROGRAM, "fit", file, "-o", folder / f"whole{size}"],
            "difficulties only": [*PROGRAM, "fit", file, "-o", folder / f"bare{size}", "--skip", "persons,fit"],
        }
        spent = {title: harness.command(run) for title, run in runs.items()}
        for title, c in spent.items():
            ratios = {f"x {base} (CPU)": c.cpu / spent[base].cpu for base in spent if base != "fit"}
            yield {"rows": size, "what": title, "wall s": c.wall, "CPU s": c.cpu, **ratios, "peak GB": c.memory / 1e9}


def distinct(n_rows: int, rng: draws.Rng) -> pl.DataFrame:
    """Distinct (person, item) pairs in any order; items differ in how often they are met."""
    n_persons, n_items = max(n_rows // 145, 10), max(100, int(6 * n_rows**0.5))
    share = np.cumsum(1 / np.arange(1, n_items + 1) ** 0.6)
    n = int(1.12 * n_rows)
    item = np.minimum(np.searchsorted(share / share[-1], rng.random(n)), n_items - 1)
    pairs = rng.permutation(np.unique(rng.integers(0, n_persons, n) * n_items + item))[:n_rows]
    right = (rng.random(len(pairs)) < 0.6).astype(np.int8)
    return pl.DataFrame({"person": pairs // n_items, "item": pairs % n_items, "response": right})


def named(frame: pl.DataFrame, rng: draws.Rng) -> pl.DataFrame:
    """The same with texts for people and items, whose order is another."""
    columns = {}
    for name, form in (("person", "user-{:08d}"), ("item", "item-{:06d}")):
        labels = [form.format(k) for k in rng.permutation(int(frame[name].max()) + 1)]  # type: ignore[arg-type]
        columns[name] = pl.Series(labels).gather(frame[name])
    return frame.with_columns(**columns)


def packing(asked: Namespace, folder: Path) -> Iterator[harness.Row]:
    bare = harness.command([*PYTHON, IMPORT], 3).cpu
    rng, unit = np.random.default_rng(1), np.nan
    for size in asked.rows:
        frame = distinct(size, rng)
        texts = named(frame, rng)
        graded = frame.with_columns(response=pl.Series(rng.integers(0, 5, frame.height), dtype=pl.Int8))
        for title, made in {
            "polars: load and group by an integer": frame,
            "integer labels, any order": frame,
            "the same in five categories": graded,
            "text labels, any order": texts,
            "text labels, rows of a person together": texts.sort("person"),
        }.items():
            file = folder / "answers.parquet"
            made.write_parquet(file)
            spent = harness.command([*PYTHON, LOAD if "polars" in title else IMPORT + "si.read(sys.argv[1])", file])
            unit = spent.cpu - bare if "polars" in title else unit
            yield packed(title, size, spent, bare) | {"x polars": (spent.cpu - bare) / unit}
    for n_persons, n_items in ((5_000, 100), (100_000, 50)):
        x = (rng.random((n_persons, n_items)) < 0.6).astype(np.float64)
        sheet, array, shape = folder / "sheet.csv", folder / "array.npy", f"{n_persons:,} x {n_items}"
        columns = {f"q{k}": x[:, k].astype(np.int8) for k in range(n_items)}
        pl.DataFrame({"person": [f"p{k}" for k in range(n_persons)], **columns}).write_csv(sheet)
        yield packed(f"CSV, {shape}", x.size, harness.command([*PYTHON, IMPORT + "si.read(sys.argv[1])", sheet]), bare)
        np.save(array, x)
        load = IMPORT + "X = numpy.load(sys.argv[1])"
        spent = harness.command([*PYTHON, load + "; si.Responses.from_wide(X)", array])
        yield packed(f"array, {shape}", x.size, spent, harness.command([*PYTHON, load, array]).cpu)


def packed(title: str, n: int, spent: harness.Cost, less: float) -> harness.Row:
    seconds = spent.cpu - less
    return {
        "what": title,
        "responses": n,
        "CPU s": seconds,
        "µs each": 1e6 * seconds / n,
        "peak GB": spent.memory / 1e9,
    }


PARTS = {"startup": startup, "report": report, "whole": whole, "packing": packing}

if __name__ == "__main__":
    asked = harness.arguments(__doc__, parts=tuple(PARTS), rows=(1_000_000, 10_000_000), text=False)
    for part in asked.parts:
        with tempfile.TemporaryDirectory() as name:
            harness.show(part, PARTS[part](asked, Path(name)), asked)
