"""What a command says when its work is done: a summary for people, a record for programs, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectral_irt.cli.options import panel
from spectral_irt.cli.progress import Progress
from spectral_irt.cli.reporting import WARNED, complain
from spectral_irt.errors import for_shell

if TYPE_CHECKING:
    from spectral_irt.data import Finding

_machines = panel("For programs")


@dataclass(frozen=True)
class Saying:
    """How much a command says, and when it calls that a failure."""

    quiet: Annotated[bool, _machines("--quiet", "-q", help="Print nothing but errors; no progress, no summary.")] = (
        False
    )
    as_json: Annotated[bool, _machines("--json", help="The record as JSON on standard output, for programs.")] = False
    strict: Annotated[
        bool,
        _machines(
            "--strict", help="End with code 3 where there is a finding of level warning or error; results are written."
        ),
    ] = False

    def begin(self) -> None:
        """Before the work: whether progress is shown."""
        Progress.shown = not self.quiet

    def end(
        self, show: Callable[[], object], record: Callable[[], dict[str, Any]], findings: Iterable[Finding]
    ) -> None:
        """After the work: the summary, or the record; what is serious goes to stderr where nobody has read it."""
        if self.as_json:
            from spectral_irt.tables import json_text

            typer.echo(json_text(record()))
        elif not self.quiet:
            show()
        if not self.strict:
            return
        serious = [finding for finding in findings if finding.severity != "note"]
        if not serious:
            return
        if self.quiet or self.as_json:
            for finding in serious:
                complain(finding.severity, f"{for_shell(finding.sentence)} ({finding.code})", 33)
        count = "1 finding is" if len(serious) == 1 else f"{len(serious)} findings are"
        complain("strict", f"{count} of level warning or above.", 33)
        raise typer.Exit(WARNED)
