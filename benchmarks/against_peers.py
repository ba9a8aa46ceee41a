"""Ours and other Python packages on the same simulated data: time, memory, error, and what fails.

    .venv-peers/bin/python benchmarks/against_peers.py [--timeout 120] [--sizes small,medium,sparse,large]

`make bench` makes the environment .venv-peers, with every package that installs. Every run is a process of its own,
which fits twice, after the imports. "cold" is the first fit, with whatever a package loads or compiles when it is first
used; "warm" is the second. Peak memory is above that of a process that only loads the data; l2 is the distance to the
true difficulties, both mean-centered over the items that the method estimated. Ratios are of warm CPU to `spectral` in
the same run.
"""

from __future__ import annotations

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

import harness
from spectral_irt import simulate
from spectral_irt.estimators.by_name import make_estimator

SIZES = {
    "small": ("20 x 1,000 complete", 1000, 20, 1.0),
    "medium": ("100 x 5,000 complete", 5000, 100, 1.0),
    "sparse": ("500 x 5,000, 20% seen", 5000, 500, 0.2),
    "large": ("2,000 x 20,000, 5% seen", 20_000, 2000, 0.05),
}

RESULT = "result: "  # some packages print on their own; this line is ours

# ------------------------------------------------------------------- how each package is called
# Each takes the table (persons x items, NaN = not answered) and returns one difficulty an item.


def ours(name: str) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: make_estimator(name, {}).fit(x).difficulty_


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


def torch_measure(method: str) -> Callable[[np.ndarray], np.ndarray]:
    def fit(x: np.ndarray) -> np.ndarray:
        import torch
        from torch_measure.models import Rasch

        torch.manual_seed(1)  # it starts anywhere
        model = Rasch(*x.shape)
        model.fit(torch.tensor(x, dtype=torch.float32), method=method, verbose=False)  # NaN is missing
        return model.difficulty.detach().numpy()

    return fit


def scorio_rasch(x: np.ndarray) -> np.ndarray:
    """Joint likelihood, which has no finite estimate with people who are all right or all wrong: they are left out."""
    from scorio import rank

    mixed = (np.nanmin(x, axis=1) == 0) & (np.nanmax(x, axis=1) == 1)
    return rank.rasch(x[mixed], return_item_params=True)[2]["difficulty"]


def scorio_rasch_mml(x: np.ndarray) -> np.ndarray:
    from scorio import rank

    return rank.rasch_mml(x, return_item_params=True)[2]["difficulty"]


def py_irt_1pl(x: np.ndarray) -> np.ndarray:
    from py_irt.config import IrtConfig
    from py_irt.dataset import Dataset
    from py_irt.training import IrtModelTrainer

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.jsonlines"
        with path.open("w") as file:
            for person, row in enumerate(x):
                seen = np.flatnonzero(~np.isnan(row))
                answers = {f"i{k}": int(row[k]) for k in seen}
                file.write(json.dumps({"subject_id": f"u{person}", "responses": answers}) + "\n")
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
    "scorio rasch": ("scorio", scorio_rasch),
    "scorio rasch_mml": ("scorio", scorio_rasch_mml),
    "torch_measure Rasch mle": ("torch_measure", torch_measure("mle")),
    "torch_measure Rasch jml": ("torch_measure", torch_measure("jml")),
    "py-irt 1pl": ("py_irt", py_irt_1pl),
}


# --------------------------------------------------------------------------------- one run


def run_one(name: str, folder: Path) -> None:
    """Say what the first fit took, and then all of it again with what the second took: that may not finish in time."""
    import resource

    x = np.load(folder / "responses.npy").astype(float)
    x[x < 0] = np.nan
    truth = np.load(folder / "difficulty.npy")
    package, fit = METHODS[name]
    if package is None:
        make_estimator(name, {})  # imports it: our package loads an estimator when it is first asked for
    else:
        importlib.import_module(package)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    warnings.simplefilter("ignore")
    found, wall, cpu = timed(fit, x)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    known = np.isfinite(found)
    if found.shape != truth.shape or not known.any():
        say({"failure": f"no usable difficulties (shape {found.shape}, {int(known.sum())} finite)"})
        return
    error = (found - found[known].mean() - truth + truth[known].mean())[known]
    result: dict[str, object] = {
        "cold wall": wall,
        "cold cpu": cpu,
        "peak_mb": (peak - before) / 1024,
        "l2": float(np.linalg.norm(error)),
        "items": int(known.sum()),
        "slope": float(np.polyfit(truth[known], found[known], 1)[0]),
    }
    say(result)
    _, wall, cpu = timed(fit, x)
    say({**result, "warm wall": wall, "warm cpu": cpu})


def timed(fit: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> tuple[np.ndarray, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = np.asarray(fit(x), dtype=float)
    return found, time.perf_counter() - wall, time.process_time() - cpu


def say(result: dict[str, object]) -> None:
    print(f"\n{RESULT}{json.dumps(result)}", flush=True)


def run(name: str, folder: Path, timeout: float) -> harness.Row:
    package = METHODS[name][0]
    if package is not None and importlib.util.find_spec(package) is None:
        return {"failure": "not installed"}
    command = [sys.executable, __file__, "--one", name, str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        said, failed = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late:
        said, failed = (late.stdout or b"").decode(), 0  # of bytes, whatever was asked for
        if RESULT not in said:
            return {"failure": f"not finished after {timeout:g} s"}
    results = [line for line in said.splitlines() if line.startswith(RESULT)]
    if failed or not results:
        lines = done.stderr.strip().splitlines() or [f"exit code {failed}"]
        return {"failure": lines[-1][:90]}
    return json.loads(results[-1].removeprefix(RESULT))


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        run_one(sys.argv[2], Path(sys.argv[3]))
        return
    args = harness.arguments(__doc__, timeout=120.0, sizes=tuple(SIZES), methods=tuple(METHODS))
    for size in args.sizes:
        title, n_persons, n_items, p = SIZES[size]
        data = simulate.rasch(n_persons, n_items, design="sampled", p=p, seed=1)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            np.save(folder / "responses.npy", np.nan_to_num(data.responses.to_dense(), nan=-1).astype(np.int8))
            np.save(folder / "difficulty.npy", data.difficulty)
            found = {method: run(method, folder, args.timeout) for method in args.methods}
        base = found.get("spectral", {})
        rows: list[harness.Row] = []
        for method, r in found.items():
            if "failure" in r:
                rows.append({"method": method, "": r["failure"]})
                continue
            times = {f"{when} s": r.get(when, "-") for when in ("cold wall", "warm wall", "cold cpu", "warm cpu")}
            ratio = r["warm cpu"] / base["warm cpu"] if "warm cpu" in r and "warm cpu" in base else "-"
            note = "" if r["items"] == n_items else f"{r['items']} of {n_items} items"
            errors = {"x CPU": ratio, "peak MB": r["peak_mb"], "l2 error": r["l2"], "slope": r["slope"], "": note}
            rows.append({"method": method, **times, **errors})
        floor = np.sqrt(n_items) * data.floor_rmse()
        title = f"{title}: {data.responses.n_responses:,} responses; l2 error with known abilities {floor:.3g}"
        harness.show(title, rows, args)


if __name__ == "__main__":
    main()
