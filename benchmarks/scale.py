"""How cost and accuracy grow with the data: 1 M, 5 M and 20 M simulated popularity-skewed responses.

    python benchmarks/scale.py [--quick]

Prints, for each size, one pass over the responses, the whole fit in units of that pass, memory above the packed data,
and the error of the three weightings against the floor that known abilities would give. Each size runs in a process of
its own, so that one does not inherit the memory of another.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np

from measure import cost, table

SIZES = {"1 M": (1_000_000, 6_040, 3_900), "5 M": (5_000_000, 34_500, 12_000), "20 M": (20_000_000, 138_000, 27_000)}


def measure(name: str) -> dict[str, float]:
    from spectral_irt import SpectralRasch, simulate
    from spectral_irt.chain.operator import ItemChain
    from spectral_irt.chain.weights import PERSONS

    n_responses, n_persons, n_items = SIZES[name]
    data = simulate.rasch(n_persons, n_items, design="popularity", n_responses=n_responses, seed=1)
    responses = data.responses
    packed = 4 * n_responses
    fitted = cost(lambda: SpectralRasch().fit(responses), repeats=1)  # first, while nothing is prepared yet
    again = cost(lambda: SpectralRasch().fit(responses), repeats=3)
    chain = ItemChain.under(responses, PERSONS)
    ones = np.ones(n_items)
    single = cost(lambda: [chain.inflow(ones) for _ in range(10)])
    out = {
        "responses": n_responses,
        "pass_ms": 100 * single.wall,
        "pass_cpu_ms": 100 * single.cpu,
        "fit_s": min(fitted.wall, again.wall),
        "fit_cpu_s": min(fitted.cpu, again.cpu),
        "memory_per_response": (fitted.memory) / n_responses,
        "packed_per_response": packed / n_responses,
        "floor": data.floor_rmse(),
    }
    for weighting in ("pairs", "persons", "ability"):
        fit = SpectralRasch(weighting=weighting).fit(responses)
        error = fit.difficulty_ - data.difficulty
        out[f"rmse_{weighting}"] = float(np.sqrt(np.nanmean(error**2)))
        out[f"covered_{weighting}"] = float(np.nanmean(np.abs(error) < 1.96 * fit.se_))
        out[f"passes_{weighting}"] = fit.n_iter_
    return out


def main() -> None:
    names = ["1 M"] if "--quick" in sys.argv else list(SIZES)
    found = {}
    for name in names:
        run = subprocess.run([sys.executable, __file__, "--one", name], capture_output=True, text=True, check=True)
        found[name] = json.loads(run.stdout.splitlines()[-1])
    rows: list[list[object]] = []
    for name, r in found.items():
        ratio = r["fit_cpu_s"] / (r["pass_cpu_ms"] / 1000)
        rows.append([name, r["pass_ms"], r["fit_s"], r["fit_cpu_s"], ratio, r["memory_per_response"]])
    print("Whole fit, ability weights and standard errors (CPU = all threads)")
    print(table(["responses", "pass ms", "fit s", "fit CPU s", "fit / pass (CPU)", "bytes / response"], rows))
    if len(found) > 1:
        first, last = found[names[0]], found[names[-1]]
        growth = np.log(last["fit_cpu_s"] / first["fit_cpu_s"]) / np.log(last["responses"] / first["responses"])
        print(f"\nCPU time grows as responses^{growth:.2f} from {names[0]} to {names[-1]}")
    print("\nError of the difficulties over the floor sqrt(mean(1 / sum p q)), and share of 95% intervals that cover")
    rows = [
        [name, r["floor"]]
        + [f"{r['rmse_' + w] / r['floor']:.3f} ({r['covered_' + w]:.3f})" for w in ("pairs", "persons", "ability")]
        for name, r in found.items()
    ]
    print(table(["responses", "floor", "pairs (paper)", "persons", "ability"], rows))


if __name__ == "__main__":
    if "--one" in sys.argv:
        print(json.dumps(measure(sys.argv[sys.argv.index("--one") + 1])))
    else:
        main()
