"""Tables and findings on a terminal, or in a text."""

from spectral_irt.display.console import Screen, console, say, show_findings, show_lines, show_source
from spectral_irt.display.items import item_table, legend
from spectral_irt.display.people import LEGEND as people_legend
from spectral_irt.display.people import person_table
from spectral_irt.display.shortening import shortened
from spectral_irt.display.table import plain_table

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
