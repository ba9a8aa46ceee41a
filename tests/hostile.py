"""Names of items that no page, file or picture may take for anything but text."""

import csv
from pathlib import Path

import numpy as np

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    '"><img src=x onerror=alert(3)>',
    "{{ 7 * 7 }}",
    "a\u202egnp.exe",
    "two\nlines",
    "]]>--><!--",
    '=HYPERLINK("http://evil")',
    "x" * 10_000,
    "&lt;b&gt;",
    "\u2028line",
    "$x^2$",
]


def hostile_table(path: Path, people: int = 120) -> None:
    """Answers to items with such names, by people with such names, in groups with such names."""
    rng = np.random.default_rng(5)
    right = (rng.random((people, len(HOSTILE))) < 0.5).astype(int).tolist()
    groups = ["<i>one</i>", "</script>two"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["student", *HOSTILE, "<u>sex</u>"])
        writer.writerows([f"<b>p{k}</b>", *row, groups[k % 2]] for k, row in enumerate(right))
