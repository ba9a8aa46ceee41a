"""From answers to an open report: CPU seconds, bytes, and seconds until the page can be worked with.

    python benchmarks/report.py

A CSV of 1,000 people x 40 multiple-choice items with its key, and 5,000 items of which each of 4,000 people answered
some 150. The page is opened in a headless Chromium where there is one (`make test` installs it).
"""

from __future__ import annotations

import csv
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from measure import table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from browser import Browser, chromium  # noqa: E402


def choices(folder: Path, people: int = 1_000, items: int = 40) -> list[str]:
    """Multiple choice with a key."""
    rng = np.random.default_rng(3)
    chance = 1 / (1 + np.exp(np.linspace(-2, 2, items) - rng.normal(size=(people, 1))))
    key = rng.integers(4, size=items)
    chosen = np.where(rng.random((people, items)) < chance, key, (key + rng.integers(1, 4, size=(people, items))) % 4)
    names = [f"q{k + 1}" for k in range(items)]
    with (folder / "choices.csv").open("w", newline="") as file:
        csv.writer(file).writerows([names, *np.array(list("ABCD"))[chosen].tolist()])
    with (folder / "key.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("item", "key"), *zip(names, np.array(list("ABCD"))[key].tolist(), strict=True)])
    return [str(folder / "choices.csv"), "--key", str(folder / "key.csv")]


def many(folder: Path) -> list[str]:
    """Many items, few of them answered by each."""
    path = str(folder / "many.parquet")
    design = ["--persons", "4000", "--items", "5000", "--design", "sampled", "--p", "0.03", "--seed", "2"]
    run(["simulate", "-o", path, *design])
    return [path]


def run(arguments: list[str]) -> float:
    """CPU seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "spectral_irt", *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, make in (("1,000 x 40 with a key", choices), ("5,000 items", many)):
            data = make(folder)
            page = folder / "report.html"
            page.unlink(missing_ok=True)
            cpu = run(["fit", *data, "--report", str(page)])
            opened = "no browser"
            if chromium() is not None:
                with Browser(folder / what.split()[0].replace(",", "")) as browser:
                    browser.open(page)
                    opened = f"{browser.open(page):.2f} s"
            rows.append((what, f"{cpu:.1f} s", f"{page.stat().st_size / 1e6:.2f} MB", opened))
    print(table(("data", "CPU", "page", "opened in"), rows))


if __name__ == "__main__":
    main()
