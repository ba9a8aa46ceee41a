"""docs/reproduction.md from the tables and figures that the experiments wrote: no number in it is typed by hand.

Experiments without a table are left out.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reproduction import load
from reproduction.page import real_data, simulations
from reproduction.page.markdown import Full
from reproduction.results import read_table
from reproduction.trials import Row
from spectral_irt.errors import ReadError
from spectral_irt.files import all_or_nothing, errors_with_target

PAGE, FULL = "reproduction.md", "reproduction_tables.md"
DEFAULT = (
    '"Our default" is that of 0.2.0: conditional maximum likelihood, started from the chain, with a prior where '
    "answers are few."
)
WRITTEN = "<!-- Written by `make reproduce`; edit reproduction/page/ instead. -->"
LARGEST_FIGURE = 300_000  # bytes; an SVG beyond it gives way to its PNG

Rows = list[Row]


def write_page(results: Path, docs: Path) -> Path:
    """Write the page, the page of full tables, and copy the figures; the page's path."""
    told = [section for name in SECTIONS if (section := tell(name, results, docs)) is not None]
    if not told:
        raise ReadError(f"{str(results)!r} holds no table of an experiment; run python -m reproduction all -o there.")
    table1 = read_table(results, "table1_summary")
    page = [
        "# The paper, reproduced",
        WRITTEN,
        "Every figure and table of Nguyen & Zhang, *A Spectral Approach to Item Response Theory* (NeurIPS 2022), with "
        "the command that makes it, what the paper says, and what we found.",
        *findings(results),
        "All numbers are read from the tables that the commands write; `make reproduce` runs everything again and "
        f"rewrites this page and [the full tables]({FULL}). {DEFAULT} Bands in figures and numbers in round brackets "
        "are standard errors of means (bands: two of them). " + simulations.about_settings(),
        *(section.page for section in told),
    ]
    if table1:
        page += ["## Why numbers differ", *real_data.differences(table1)]
        page += ["## What could not be obtained", *real_data.not_obtained(table1)]
    full = ["# The paper, reproduced: full tables", WRITTEN, f"What was found is on [the page]({PAGE})."]
    full += [section.tables for section in told if section.tables]
    docs.mkdir(parents=True, exist_ok=True)
    targets = [docs / PAGE, docs / FULL]
    with all_or_nothing(targets) as drafts:
        for draft, target, parts in zip(drafts, targets, (page, full), strict=True):
            with errors_with_target(target):
                draft.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return targets[0]


@dataclass(frozen=True)
class Section:
    """One experiment: what stands on the page, and its tables."""

    page: str
    tables: str


def tell(name: str, results: Path, docs: Path) -> Section | None:
    """One experiment: heading, command, claim, finding, figure, and tables; None when it was not run."""
    trials = read_table(results, name)
    summary = read_table(results, f"{name}_summary")
    if trials is None or summary is None:
        return None
    heading, write = SECTIONS[name]
    command = f"`python -m reproduction {name}{' --data DIR' if load(name).uses_data else ''}`{_amount(trials)}"
    parts = write(summary, trials, results)
    shown = [part for part in parts if not isinstance(part, Full)]
    tables = [part for part in parts if isinstance(part, Full)]
    figure = _copy_figure(name, results, docs)
    if figure:
        shown.insert(2, f"![{heading}]({figure})")
    if tables:
        shown.append(f"[Its tables]({FULL}#{_anchor(heading)}).")
    return Section(
        "\n\n".join([f"## {heading}", command, *shown]), "\n\n".join([f"## {heading}", *tables]) if tables else ""
    )


def _anchor(heading: str) -> str:
    """What a heading is called in links, on GitHub as on the site.

    >>> _anchor("Figure 1 (a): few items")
    'figure-1-a-few-items'
    """
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def findings(results: Path) -> list[str]:
    """One screen: what holds, what does not, and what the paper's baseline got wrong."""
    holds, fails = [], []
    a, b, c, d = (read_table(results, f"figure1{letter}_summary") for letter in "abcd")
    if a:
        holds.append("Joint maximum likelihood is inconsistent with few items: " + simulations.joint_stays(a))
    if b:
        holds.append("Marginal likelihood with a wrong, fixed prior is inconsistent: " + simulations.prior_stays(b))
    if d:
        holds.append("The spectral method is fast and scales: " + simulations.fast(d))
    if read_table(results, "rates_summary"):
        holds.append(
            "Errors fall at the rates of the theorems (the slopes are in [their section](#the-theorems-rates))."
        )
    if c:
        fails.append("Conditional likelihood does not degrade with missing data: " + simulations.does_not_degrade(c))
        fails.append("What degrades is the paper's baseline of that name: " + simulations.baseline(c))
        fails.append("As printed, the spectral estimator is not the most accurate: " + simulations.printed(c))
    table1 = read_table(results, "table1_summary")
    if table1:
        fails.append("On real data: " + " ".join(real_data.verdicts(table1)))
    out = []
    for title, lines in (("**What holds**", holds), ("**What does not, and why**", fails)):
        if lines:
            out += [title, "\n".join(f"- {line}" for line in lines)]
    return out


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
    "gap": ("The terms of the proof", lambda summary, trials, results: simulations.proof_terms(summary, trials)),
    "variants": ("Readings of the paper's estimator", _only(real_data.readings)),
    "credit": ("Partial credit: the authors' two phases", _only(simulations.credit)),
}
