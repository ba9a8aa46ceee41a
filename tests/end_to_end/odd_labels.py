"""Labels that hold everything a label may hold, in files of several kinds."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import polars as pl

# Everything a label may hold: scripts, separators, quotes, line breaks, markup of several kinds, control characters.
LABELS = [
    "Ünï✓ 漢字",
    "a,b;c",
    'quo"te',
    "it's",
    "new\nline",
    "cr\rx",
    "crlf\r\ny",
    "tab\there",
    "<script>alert(1)</script>",
    "&amp;",
    "[red]x[/red]",
    "[/]",
    ":smile:",
    "=1+1",
    " before",
    "after ",
    "\x1b[31mred",
    "\u202eright to left",
    "\\n",
    "007",
    "null",
    "x" * 300,
]


def odd_labels(kind: str) -> Path:
    rng = np.random.default_rng(1)
    answers = (rng.random((80, len(LABELS))) < 0.6).astype(int)
    path = Path(f"odd.{kind}")
    if kind == "csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerow(["person", *LABELS])
            writer.writerows([f"p{k}", *row] for k, row in enumerate(answers.tolist()))
    elif kind == "jsonl":
        lines = (
            {"subject_id": f"p{k}", "responses": dict(zip(LABELS, row, strict=True))}
            for k, row in enumerate(answers.tolist())
        )
        path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    else:
        person, item = np.divmod(np.arange(answers.size), len(LABELS))
        columns = {"person": person, "item": [LABELS[k] for k in item], "response": answers.ravel()}
        pl.DataFrame(columns).write_parquet(path)
    return path
