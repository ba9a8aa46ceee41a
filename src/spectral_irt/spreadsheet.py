"""Text in CSV that a spreadsheet would take for a formula, written so that it does not, and read back as it was.

A spreadsheet computes what begins with = + - @, a tab or a carriage return; with data from strangers that can mean
running their commands. Such a text gets an apostrophe before it, and one that has apostrophes there already gets one
more, so that taking one away always gives the text that was meant. Plain numbers are left as they are.
"""

from __future__ import annotations

import re

RUNS = re.compile(r"'*[=+\-@\t\r]")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
GUARDED = r"^'('*[=+\-@\t\r])"  # for polars as well as for Python


def guarded(text: str) -> str:
    """The text as it goes into a cell.

    >>> [guarded(text) for text in ("=1+1", "'=1+1", "-1", "-q", "q-1", "'twas")]
    ["'=1+1", "''=1+1", '-1', "'-q", 'q-1', "'twas"]
    """
    return f"'{text}" if RUNS.match(text) and not NUMBER.fullmatch(text) else text


def unguarded(cell: str) -> str:
    """The text that a cell means.

    >>> [unguarded(cell) for cell in ("'=1+1", "''=1+1", "-1", "'-q", "q-1", "'twas")]
    ['=1+1', "'=1+1", '-1', '-q', 'q-1', "'twas"]
    """
    return re.sub(GUARDED, r"\1", cell)
