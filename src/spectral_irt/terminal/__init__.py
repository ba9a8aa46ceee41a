"""Tables and findings on a terminal, or in a text."""

from spectral_irt.terminal.console import Screen, console, say, show_findings, show_lines, show_source
from spectral_irt.terminal.items import item_table, legend
from spectral_irt.terminal.people import LEGEND as people_legend
from spectral_irt.terminal.people import person_table
from spectral_irt.terminal.shortening import shortened
from spectral_irt.terminal.table import plain_table

__all__ = [
    "Screen",
    "console",
    "item_table",
    "legend",
    "people_legend",
    "person_table",
    "plain_table",
    "say",
    "shortened",
    "show_findings",
    "show_lines",
    "show_source",
]
