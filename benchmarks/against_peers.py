"""Ours and other Python packages on the same simulated data: time, memory, error, and what fails.

    .venv-peers/bin/python benchmarks/against_peers.py [--timeout 120] [--sizes small,medium,sparse,large]

`make bench` makes the environment .venv-peers, with every package that installs. Every run is a process of its own:
wall and CPU seconds of the fit alone (after the imports), peak memory above that of one that only loads the data, and
the l2 distance to the true difficulties, both mean-centered over the items that the method estimated. Ratios are to
`spectral` in the same run.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from measure import table

SIZES = {
    "small": ("20 x 1,000 complete", 1000, 20, 1.0),
    "medium": ("100 x 5,000 complete", 5000, 100, 1.0),
    "sparse": ("500 x 5,000, 20% seen", 5000, 500, 0.2),
    "large": ("2,000 x 20,000, 5% seen", 20_000, 2000, 0.05),
}

RESULT = "result: "  # some packages print on their own; this line is ours

# ------------------------------------------------------------------- how each package is called
# Each takes the table (users x items, NaN = not answered) and returns one difficulty an item.


def ours(name: str) -> Callable[[np.ndarray], np.ndarray]:
    def fit(x: np.ndarray) -> np.ndarray:
        from spectral_irt.estimators.by_name import make_estimator

        return make_estimator(name, {}).fit(x).difficulty_

    return fit


def girth(name: str) -> Callable[[np.ndarray], np.ndarray]:
    def fit(x: np.ndarray) -> np.ndarray:
        import girth as package

        coded = np.where(np.isnan(x), package.INVALID_RESPONSE, x).astype(int).T
        return getattr(package, name)(coded)["Difficulty"]

    return fit


def choix_ilsr(x: np.ndarray) -> np.ndarray:
    import choix

    right, wrong = np.nan_to_num(x), np.where(np.isnan(x), 0.0, 1 - np.nan_to_num(x))
    return choix.ilsr_pairwise_dense(wrong.T @ right)  # the item answered wrong "wins": it is harder


def raschpy_slm(x: np.ndarray) -> np.ndarray:
    import pandas as pd
    import raschpy

    model = raschpy.SLM(pd.DataFrame(x))
    model.calibrate()
    items = model.items
    column = next((c for c in getattr(items, "columns", []) if "iffic" in str(c) or "stimate" in str(c)), None)
    return np.asarray(items[column] if column is not None else items, dtype=float)


def mirt_1pl(x: np.ndarray) -> np.ndarray:
    import mirt

    return mirt.fit_mirt(np.where(np.isnan(x), -1, x).astype(int), "1PL").model.parameters["difficulty"]


def py_irt_1pl(x: np.ndarray) -> np.ndarray:
    from py_irt.config import IrtConfig
    from py_irt.dataset import Dataset
    from py_irt.training import IrtModelTrainer

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.jsonlines"
        with path.open("w") as file:
            for user, row in enumerate(x):
                seen = np.flatnonzero(~np.isnan(row))
                answers = {f"i{k}": int(row[k]) for k in seen}
                file.write(json.dumps({"subject_id": f"u{user}", "responses": answers}) + "\n")
        config = IrtConfig(model_type="1pl", epochs=2000, log_every=10_000, priors="hierarchical")
        trainer = IrtModelTrainer(config=config, data_path=path, dataset=Dataset.from_jsonlines(path))
        trainer.train(device="cpu")
        found = trainer.last_params
        codes = {int(label[1:]): k for k, label in found["item_ids"].items()}
        return np.array([found["diff"][codes[k]] if k in codes else np.nan for k in range(x.shape[1])])


METHODS: dict[str, tuple[str | None, Callable[[np.ndarray], np.ndarray]]] = {
    "spectral": (None, ours("spectral")),
    "cml": (None, ours("cml")),
    "mml": (None, ours("mml")),
    "jml": (None, ours("jml")),
    "pml": (None, ours("pml")),
    "girth rasch_mml": ("girth", girth("rasch_mml")),
    "girth rasch_conditional": ("girth", girth("rasch_conditional")),
    "girth rasch_jml": ("girth", girth("rasch_jml")),
    "choix ilsr_pairwise_dense": ("choix", choix_ilsr),
    "RaschPy SLM": ("raschpy", raschpy_slm),
    "mirt 1PL": ("mirt", mirt_1pl),
    "py-irt 1pl": ("py_irt", py_irt_1pl),
}


# --------------------------------------------------------------------------------- one run


def run_one(name: str, folder: Path) -> dict[str, object]:
    import resource

    x = np.load(folder / "responses.npy").astype(float)
    x[x < 0] = np.nan
    truth = np.load(folder / "difficulty.npy")
    package, fit = METHODS[name]
    importlib.import_module(package or "spectral_irt.estimators.by_name")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    warnings.simplefilter("ignore")
    wall, cpu = time.perf_counter(), time.process_time()
    found = np.asarray(fit(x), dtype=float)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    known = np.isfinite(found)
    if found.shape != truth.shape or not known.any():
        return {"failure": f"no usable difficulties (shape {found.shape}, {int(known.sum())} finite)"}
    error = (found - found[known].mean() - truth + truth[known].mean())[known]
    return {
        "wall": wall,
        "cpu": cpu,
        "peak_mb": (peak - before) / 1024,
        "l2": float(np.linalg.norm(error)),
        "items": int(known.sum()),
        "slope": float(np.polyfit(truth[known], found[known], 1)[0]),
    }


def run(name: str, folder: Path, timeout: float) -> dict[str, object]:
    package = METHODS[name][0]
    if package is not None and importlib.util.find_spec(package) is None:
        return {"failure": "not installed"}
    command = [sys.executable, __file__, "--one", name, str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"failure": f"not finished after {timeout:g} s"}
    results = [line for line in done.stdout.splitlines() if line.startswith(RESULT)]
    if done.returncode or not results:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return {"failure": lines[-1][:90]}
    return json.loads(results[-1].removeprefix(RESULT))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timeout", type=float, default=120, help="seconds that a method may take on one data set")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(f"\n{RESULT}{json.dumps(run_one(args.one[0], Path(args.one[1])))}")
        return
    from spectral_irt import simulate

    for size in args.sizes.split(","):
        title, n_users, n_items, p = SIZES[size]
        data = simulate.rasch(n_users, n_items, design="sampled", p=p, seed=1)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            np.save(folder / "responses.npy", np.nan_to_num(data.responses.to_dense(), nan=-1).astype(np.int8))
            np.save(folder / "difficulty.npy", data.difficulty)
            found = {method: run(method, folder, args.timeout) for method in args.methods.split(",")}
        base = found.get("spectral", {})
        rows: list[list[object]] = []
        for method, r in found.items():
            if "failure" in r:
                rows.append([method, "-", "-", "-", "-", "-", r["failure"]])
                continue
            ratio = r["cpu"] / base["cpu"] if "cpu" in base else float("nan")
            note = "" if r["items"] == n_items else f"{r['items']} of {n_items} items"
            numbers = [float(r[k]) for k in ("wall", "cpu", "peak_mb", "l2")]
            rows.append([method, *numbers[:2], ratio, *numbers[2:], f"slope {r['slope']:.2f}  {note}".rstrip()])
        floor = np.sqrt(n_items) * data.floor_rmse()
        print(f"\n{title}: {data.responses.n_responses:,} responses; l2 error with known abilities {floor:.3g}")
        print(table(["method", "wall s", "CPU s", "x CPU", "peak MB", "l2 error", ""], rows))


if __name__ == "__main__":
    main()
