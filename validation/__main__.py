"""`python -m validation`: compute every row of the battery again, and write docs/validation."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from validation import cases_book, cases_exact, cases_programs, cases_studies
from validation.lab import ROOT, Lab
from validation.page import write_pages
from validation.rows import AGREES, Case, Row, run

# Every table of cases. A feature gets its rows by a function in one of them.
TABLES = (cases_programs, cases_book, cases_exact, cases_studies)
DRAWS = 200  # data sets of each simulation


def all_cases(*, quick: bool) -> Iterator[Case]:
    """The cases; with `quick` those that take no longer than a second."""
    for module in TABLES:
        for case in module.cases():
            if not (quick and case.slow):
                yield case


def main(arguments: list[str] | None = None) -> int:
    """Run the battery; 1 where a row does not agree."""
    parser = argparse.ArgumentParser(prog="python -m validation", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="without simulations and what is slow; writes pages only with -o"
    )
    parser.add_argument("--draws", type=int, default=DRAWS, help=f"data sets of each simulation (default {DRAWS})")
    parser.add_argument("-o", "--output", type=Path, help="where pages go (default docs/validation)")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    lab = Lab(draws=options.draws)
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in run(all_cases(quick=options.quick), lab):
            rows.append(row)
            if row.verdict != AGREES:
                print(f"{row.verdict}: {row.part}, {row.quantity}, {row.data} {row.label}: {row.reason}")
                print(f"  outside {row.outside}, converged {row.converged}, ours {row.ours}")
    failing = sum(row.verdict != AGREES for row in rows)
    print(f"{len(rows):,} numbers, {failing:,} do not agree; {time.perf_counter() - start:.0f} s.")
    output = options.output
    if output is None and not options.quick:
        output = ROOT / "docs" / "validation"
    if output is not None:
        command = "python -m validation --quick" if options.quick else f"python -m validation --draws {options.draws}"
        write_pages(rows, output, command)
    return int(failing > 0)


if __name__ == "__main__":
    sys.exit(main())
