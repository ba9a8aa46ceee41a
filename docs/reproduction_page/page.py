"""docs/reproduction.md from the tables and figures that the experiments wrote: no number in it is typed by hand.

Experiments without a table are left out.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from reproduction_page import real_data, simulations
from spectral_irt import __version__
from spectral_irt.errors import ReadError
from spectral_irt.experiments import load
from spectral_irt.experiments.results import read_table
from spectral_irt.experiments.trials import Row
from spectral_irt.writing import all_or_nothing, naming

LARGEST_FIGURE = 300_000  # bytes; an SVG beyond it gives way to its PNG

Rows = list[Row]


def write_page(results: Path, docs: Path) -> Path:
    """Write the page and copy its figures; the page's path."""
    sections = [text for name in SECTIONS if (text := section(name, results, docs)) is not None]
    if not sections:
        raise ReadError(f"{str(results)!r} holds no table of an experiment; run spectral-irt reproduce all -o there.")
    table1 = read_table(results, "table1_summary")
    page = [
        "# The paper, reproduced",
        "<!-- Written by `make reproduce`; edit docs/reproduction_page/ instead. -->",
        "Every figure and table of Nguyen & Zhang, *A Spectral Approach to Item Response Theory* (NeurIPS 2022), with "
        "the command that makes it, what the paper says, and what we found. All numbers are read from the tables that "
        f"the commands write (spectral-irt {__version__}); `make reproduce` runs everything again and rewrites this "
        "page. Bands in figures and numbers in round brackets are standard errors of means (bands: two of them).",
        simulations.about_settings(),
        *sections,
    ]
    if table1:
        page += ["## Why numbers differ", *real_data.differences(table1)]
        page += ["## What could not be obtained", *real_data.not_obtained(table1)]
    target = docs / "reproduction.md"
    docs.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(page) + "\n"
    with all_or_nothing([target]) as (draft,), naming(target):
        draft.write_text(text, encoding="utf-8")
    return target


def section(name: str, results: Path, docs: Path) -> str | None:
    """One experiment: heading, command, claim, finding, table, figure; None when it was not run."""
    trials = read_table(results, name)
    summary = read_table(results, f"{name}_summary")
    if trials is None or summary is None:
        return None
    heading, tell = SECTIONS[name]
    parts = [
        f"## {heading}",
        f"`spectral-irt reproduce {name}{' --data DIR' if load(name).uses_data else ''}`{_amount(trials)}",
        *tell(summary, trials, results),
    ]
    figure = _copy_figure(name, results, docs)
    if figure:
        parts.insert(4, f"![{heading}]({figure})")
    return "\n\n".join(parts)


def _amount(trials: Sequence[Row]) -> str:
    if "trial" not in trials[0]:
        return ""
    return f" ({1 + max(row['trial'] for row in trials)} trials)"


def _copy_figure(name: str, results: Path, docs: Path) -> str | None:
    svg, png = results / f"{name}.svg", results / f"{name}.png"
    chosen = svg if svg.is_file() and svg.stat().st_size <= LARGEST_FIGURE else png
    if not chosen.is_file():
        return None
    folder = docs / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for old in (svg, png):
        (folder / old.name).unlink(missing_ok=True)
    shutil.copyfile(chosen, folder / chosen.name)
    return f"figures/{chosen.name}"


Tell = Callable[[Rows, Rows, Path], list[str]]


def _only(write: Callable[[Rows], list[str]]) -> Tell:
    return lambda summary, trials, results: write(summary)


def _rates(summary: Rows, trials: Rows, results: Path) -> list[str]:
    return simulations.error_rates(summary, read_table(results, "rates_slopes") or [])


def _table_1(summary: Rows, trials: Rows, results: Path) -> list[str]:
    claim, found, *rest = real_data.table_1(summary)
    authors, paired = real_data.as_the_authors_ran(summary), real_data.against_the_papers(trials)
    return [claim, found, *authors, *paired, *rest]


SECTIONS: dict[str, tuple[str, Tell]] = {
    "figure1a": ("Figure 1 (a): few items", _only(simulations.figure_1a)),
    "figure1b": ("Figure 1 (b): a wrong prior", _only(simulations.figure_1b)),
    "figure1c": ("Figure 1 (c): missing data", _only(simulations.figure_1c)),
    "figure1d": ("Figure 1 (d): time", _only(simulations.figure_1d)),
    "figure2": ("Figure 2: older matrix methods", _only(simulations.figure_2)),
    "table1": ("Table 1: real data", _table_1),
    "table2": ("Table 2: with the pairwise likelihood", _only(real_data.table_2)),
    "table3": ("Table 3: with a Bayesian method", _only(real_data.table_3)),
    "rates": ("The theorems' rates", _rates),
    "gap": (
        "The terms of the proof",
        lambda summary, trials, results: simulations.proof_terms(summary, trials),
    ),
    "variants": ("Readings of the paper's estimator", _only(real_data.readings)),
}
