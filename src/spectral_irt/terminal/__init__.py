"""Tables and findings on a terminal, or in a text."""

from spectral_irt.terminal.console import Screen, console, say, show_findings, show_lines, show_source
from spectral_irt.terminal.labels import shorten
from spectral_irt.terminal.tables import (
    BY_PRIOR,
    DIRECTION,
    FIT,
    PEOPLE,
    item_table,
    numbers,
    person_table,
    plain_table,
)

__all__ = ["Screen", "console", "say", "shorten", "show_findings", "show_lines", "show_source"]
__all__ += ["BY_PRIOR", "DIRECTION", "FIT", "PEOPLE", "item_table", "numbers", "person_table", "plain_table"]
