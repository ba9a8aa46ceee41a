"""Tables and findings on a terminal, or in a text."""

from spectral_irt.terminal.console import Screen, console, say, show_findings, show_lines, show_source
from spectral_irt.terminal.labels import shortened
from spectral_irt.terminal.tables import LEGEND as people_legend
from spectral_irt.terminal.tables import item_table, legend, person_table, plain_table

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
