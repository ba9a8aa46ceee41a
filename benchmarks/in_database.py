"""How long a calibration inside DuckDB takes: answers are drawn there under the Rasch model, and calibrated there.

python benchmarks/in_database.py --rows 1e8 [--folder DIR] [--threads N]
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

import harness
import spectral_irt as si

N_ITEMS, PER_PERSON = 2003, 100  # a prime, so that every step through the items meets each once

DRAW = """
CREATE TABLE answers AS
WITH people AS (
  SELECT p, sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()) AS ability,
    (random() * {m})::INT AS start, 1 + (random() * ({m} - 2))::INT AS step
  FROM range({n}) t(p)
), met AS (SELECT p, ability, (start + k * step) % {m} AS i FROM people, range({per}) t(k))
SELECT 'person' || p AS person, 'item' || i AS item, (random() < 1 / (1 + exp(b - ability)))::TINYINT AS response
FROM met JOIN items USING (i)
"""


def main() -> None:
    asked = harness.arguments(__doc__, rows=1e7, folder=str, threads=int)
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        file = Path(folder) / "answers.duckdb"
        difficulty = np.random.default_rng(1).normal(0, 1.2, N_ITEMS)
        start = time.perf_counter()
        draw(file, difficulty, int(asked.rows) // PER_PERSON)
        print(f"drawn {asked.rows:,.0f} answers in {time.perf_counter() - start:.1f} s")
        start, used = time.perf_counter(), time.process_time()
        fit = si.fit_in_database(f"duckdb:{file}", "answers", threads=asked.threads)
        print(
            f"calibrated in {time.perf_counter() - start:.1f} s ({time.process_time() - used:.0f} s of processors): "
            f"{fit.n_iter_} passes, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB at most"
        )
        truth = difficulty[[int(label.removeprefix("item")) for label in fit.item_labels_]]
        error = fit.difficulty_ - (truth - truth.mean())
        covered = np.mean(np.abs(error) < 1.96 * fit.se_)
        print(f"rmse {np.sqrt(np.mean(error**2)):.4f} logits; 95% intervals cover {100 * covered:.1f}%")


def draw(file: Path, difficulty: np.ndarray, n: int) -> None:
    with duckdb.connect(str(file)) as connection:
        connection.execute("SELECT setseed(0.5)").fetchall()
        connection.register("given", pl.DataFrame({"i": range(len(difficulty)), "b": difficulty}).to_arrow())
        connection.execute("CREATE TABLE items AS SELECT * FROM given").fetchall()
        connection.execute(DRAW.format(m=N_ITEMS, n=n, per=PER_PERSON)).fetchall()


if __name__ == "__main__":
    main()
