"""The pages of `docs/validation`: what agrees, what does not, and every row."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from spectral_irt import __version__
from validation.rows import AGREES, Row

SHOWN = 40  # rows of a table in the pages; all are in rows.csv


def write_pages(rows: Sequence[Row], folder: Path, command: str) -> None:
    """index.md, a page for each part, and rows.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        for row in rows:
            writer.writerow([_exactly(name, value) for name, value in row._asdict().items()])
    parts = {part: list(own) for part, own in groupby(rows, key=lambda row: row.part)}
    names = {part: file_of(part) for part in parts}
    for part, own in parts.items():
        (folder / f"{names[part]}.md").write_text(part_page(part, own), encoding="utf-8")
    (folder / "results.md").write_text(summary_page(parts, names, command), encoding="utf-8")


def file_of(part: str) -> str:
    """The name of the page of a part.

    >>> file_of("Liking for science (75 children, 25 items)")
    'rows_liking_for_science'
    """
    words = part.partition(" (")[0].lower().replace(",", "").replace("'", "").replace("-", "_")
    return "rows_" + "_".join(words.split())


def summary_page(parts: dict[str, list[Row]], names: dict[str, str], command: str) -> str:
    """How many rows agree, by part; and every row that does not."""
    rows = [row for own in parts.values() for row in own]
    failing = [row for row in rows if row.verdict != AGREES]
    lines = [
        "# The battery: results",
        "",
        f"Written by `{command}` with spectral-irt {__version__}: {len(rows):,} numbers, of which {len(failing):,} "
        "do not agree. [rows.csv](rows.csv) has each with all digits, its source, and the hash of the file it is from.",
        "",
        *table(
            ["part", "numbers", "agree", "largest difference, in tolerances"],
            [
                [
                    f"[{part}]({names[part]}.md)",
                    f"{len(own):,}",
                    f"{sum(row.verdict == AGREES for row in own):,}",
                    f"{max((in_tolerances(row) for row in own), default=0.0):.2g}",
                ]
                for part, own in parts.items()
            ],
        ),
        "",
        "## What does not agree",
        "",
    ]
    if failing:
        lines += _rows_table(failing, with_part=True)
    else:
        lines.append("Nothing.")
    lines += ["", "```{toctree}", ":hidden:", "", *names.values(), "```", ""]
    return "\n".join(lines)


def part_page(part: str, rows: Sequence[Row]) -> str:
    """Every case of a part: how close, how close it has to be and why; and its rows."""
    lines = [f"# {part}", ""]
    for _, group in groupby(rows, key=lambda row: (row.quantity, row.data, row.source)):
        own = list(group)
        first = own[0]
        largest = max((abs(row.difference) for row in own if math.isfinite(row.difference)), default=math.nan)
        agreeing = sum(row.verdict == AGREES for row in own)
        kept = f" (`{first.file}`, SHA-256 {first.sha256}...)" if first.file else ""
        lines += [
            f"## {first.quantity}, {first.data}: {first.source}",
            "",
            f"{agreeing} of {len(own)} agree; largest difference {largest:.2g}, tolerance {first.tolerance:.2g}: "
            f"{first.reason}{kept}.",
            "",
            *_rows_table(own[:SHOWN]),
        ]
        if len(own) > SHOWN:
            lines += ["", f"And {len(own) - SHOWN:,} more in [rows.csv](rows.csv)."]
        lines.append("")
    return "\n".join(lines)


def in_tolerances(row: Row) -> float:
    """A difference over its tolerance."""
    if row.tolerance == 0 or not math.isfinite(row.difference):
        return 0.0 if row.verdict == AGREES else math.inf
    return abs(row.difference) / row.tolerance


def table(heads: Sequence[str], cells: Iterable[Sequence[str]]) -> list[str]:
    """A table of Markdown."""
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    return [*lines, *(f"| {' | '.join(own)} |" for own in cells)]


def _rows_table(rows: Sequence[Row], *, with_part: bool = False) -> list[str]:
    converged = any(math.isfinite(row.converged) for row in rows)
    heads = [
        "of",
        "published or outside",
        *(["converged, outside"] if converged else []),
        "ours",
        "difference",
        "verdict",
    ]
    cells = []
    for row in rows:
        label = row.label or row.quantity
        if with_part:
            label = f"{row.part}: {row.quantity}, {row.data} {row.label}: {row.reason}"
        numbers = [row.outside, *([row.converged] if converged else []), row.ours]
        cells.append([label, *map(_shortly, numbers), f"{row.difference:.1e}", row.verdict])
    return table(heads, cells)


def _shortly(value: float) -> str:
    return f"{value:.6g}"


def _exactly(name: str, value: object) -> object:
    """Ten digits; three of what follows from other numbers; nothing where there is no number."""
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return ""
    return f"{value:.3g}" if name in ("difference", "tolerance") else f"{value:.10g}"
