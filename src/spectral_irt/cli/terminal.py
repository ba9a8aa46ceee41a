"""What a command says on the way and at the end: progress, errors, a summary or a record; and what the process returns.

Progress is shown on a terminal once work takes longer than a second (SPECTRAL_IRT_PROGRESS_DELAY), never when piped.
For programs, SPECTRAL_IRT_PROGRESS=json writes lines such as {"doing": "reading", "share": 0.5} to stderr.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from spectral_irt.cli.help import option
from spectral_irt.errors import ConvergenceWarning, ReadWarning, SpectralIrtError, for_shell
from spectral_irt.files import reason_of, written
from spectral_irt.installation import please_report
from spectral_irt.text import and_list, count_are, listed, printable

if TYPE_CHECKING:
    from rich.progress import Progress as Display

    from spectral_irt.data import Finding
    from spectral_irt.engine.dask import DaskEngine

OK = 0
INTERNAL = 1
BAD_INPUT = 2
WARNED = 3  # under --strict: done, and something is odd
INTERRUPTED = 130  # 128 and the number of the signal, as shells have it

DELAY = 1.0  # seconds of silence
PAUSE = 0.1  # seconds between two lines for a program, unless something new is being done
ALMOST = 0.999  # rich stops a task's clock and pulse for good when it is complete, and there is more to come


class Progress:
    """A line on stderr that says what is being done; it vanishes when the work is done."""

    shown: ClassVar[bool] = True  # False under --quiet

    _text = "working"
    _share: float | None = None
    _display: Display | None = None
    _task: Any = None
    _timer: threading.Timer | None = None
    _told = ("", float("-inf"))

    def __enter__(self) -> Progress:
        self._lock = threading.Lock()
        self._to_program = os.environ.get("SPECTRAL_IRT_PROGRESS") == "json"
        if self.shown and sys.stderr.isatty():
            try:
                delay = float(os.environ.get("SPECTRAL_IRT_PROGRESS_DELAY", DELAY))
            except ValueError:
                delay = DELAY
            self._timer = threading.Timer(delay, self._show)
            self._timer.daemon = True
            if delay > 0:
                self._timer.start()
            else:
                self._show()
        return self

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._timer = None
            if self._display is not None:
                self._display.stop()
                self._display = None

    def say(self, text: str, share: float | None = None) -> None:
        """What is being done now, and the share of it that is done, if known."""
        with self._lock:
            self._text = printable(text)
            self._share = share
            if self._display is not None:
                self._update(self._display)
            now = time.monotonic()
            last, at = self._told
            if self._to_program and (self._text != last or now > at + PAUSE):
                self._told = (self._text, now)
                print(json.dumps({"doing": self._text, "share": self._share}), file=sys.stderr, flush=True)

    def reading(self, share: float, text: str) -> None:
        """`say`, as `read` calls it."""
        self.say(text, share)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Display

        text = TextColumn("{task.description}", markup=False)
        columns = (SpinnerColumn(), text, BarColumn(24), TimeElapsedColumn())
        with self._lock:
            if self._timer is None:
                return  # the work ended while rich was loading
            self._display = Display(
                *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._task = self._display.add_task(self._text, total=None)
            self._update(self._display)
            self._display.start()

    def _update(self, display: Display) -> None:
        total = None if self._share is None else 1.0  # None: a bar that only shows life
        display.tasks[0].total = total  # `update` takes None for "as before"
        display.update(self._task, description=self._text, completed=min(self._share or 0.0, ALMOST))


def complain(kind: str, sentence: str, color: int = 31) -> None:
    """One line on stderr: `error: ...`."""
    colorful = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    head = f"\x1b[1;{color}m{kind}:\x1b[0m" if colorful else f"{kind}:"
    with suppress(OSError):  # nobody can be told
        print(f"{head} {printable(sentence)}", file=sys.stderr, flush=True)


def report(error: BaseException, *, debug: bool = False) -> int:
    """Say what happened and return the exit code; with `debug` the traceback goes before it."""
    if debug:
        traceback.print_exception(error)
    if isinstance(error, SpectralIrtError):
        complain("error", for_shell(str(error)))
        return BAD_INPUT
    if isinstance(error, KeyboardInterrupt):
        remark = "nothing was written."
        if written:
            remark = f"interrupted after all of this had been written: {listed(map(str, written))}."
        of_experiment = getattr(error, "kept", "")  # what an experiment has to say
        complain("interrupted", of_experiment or remark, 33)
        return 128 + getattr(error, "signal", INTERRUPTED - 128)
    if isinstance(error, OSError) and error.filename is None and (reason := reason_of(error)):
        # Every file has a name by now; what has none is the terminal, or where it was led.
        done = f"{listed(map(str, written))} had been written before." if written else "Nothing was written."
        complain("error", f"cannot write to standard output: {reason}. {done}")
        return BAD_INPUT
    if isinstance(error, MemoryError):
        beyond = "what goes beyond it is kept in temporary files"
        advice = f"try --memory 1GB ({beyond}), fewer --threads or --set se=none"
        complain("error", f"there is not enough memory for this; {advice}.")
        return BAD_INPUT
    first, *_ = str(error).strip().splitlines() or [""]
    hint = "" if debug else ", with the traceback that --debug shows"
    complain("internal error", f"{type(error).__name__}: {first} -- this is our mistake; {please_report()}{hint}.")
    return INTERNAL


def show_warning(debug: bool, message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
    """A warning that is meant for users is one line; the others are for developers, and shown with `debug`."""
    if issubclass(category, UserWarning) or debug:
        text = str(message)
        if isinstance(message, ConvergenceWarning | ReadWarning):
            text = for_shell(text)
        complain("warning", text, 33)


@dataclass(frozen=True)
class Mode:
    """How much a command says, and when it calls that a failure."""

    quiet: bool = option("results", "", "Print nothing but errors.", "--quiet", "-q", default=False)
    as_json: bool = option(
        "results", "", "Print the record of the results as JSON, for programs.", "--json", default=False
    )
    strict: bool = option(
        "results", "", "Exit with code 3 if a finding is a warning or an error; results are kept.", default=False
    )

    def end(
        self, show: Callable[[], object], record: Callable[[], dict[str, Any]], findings: Iterable[Finding] = ()
    ) -> None:
        """After the work: the summary, or the record; what is serious goes to stderr where nobody has read it."""
        findings = list(findings)
        if self.as_json:
            from spectral_irt.tables import json_text

            typer.echo(json_text(whole_record(record(), findings)))
        elif not self.quiet:
            show()
        serious = [finding for finding in findings if finding.severity != "note"] if self.strict else []
        if not serious:
            return
        if self.quiet or self.as_json:
            for finding in serious:
                complain(finding.severity, f"{for_shell(finding.sentence)} ({finding.code})", 33)
        complain("strict", f"{count_are(len(serious), 'finding')} of level warning or above.", 33)
        raise typer.Exit(WARNED)


def whole_record(record: dict[str, Any], findings: Iterable[Finding]) -> dict[str, Any]:
    """A record with what every record has: the program, and the findings."""
    from spectral_irt.analysis.folder import finding_record, record_head

    return {
        **record_head(),
        **record,
        "findings": record.get("findings", [finding_record(finding) for finding in findings]),
    }


def say_written(paths: Iterable[Path | str | None], nothing: str = "") -> None:
    """Which files were written, in a line; or what to add so that some are."""
    from rich.text import Text

    from spectral_irt.terminal import console, say

    names = [printable(path) for path in paths if path is not None]
    if names:
        say(console(), Text.assemble("Written: ", (and_list(names), "bold"), "."))
    elif nothing:
        say(console(), Text(f"Nothing was saved; {nothing}"))


reached: dict[str, DaskEngine] = {}  # clusters, until the command ends


def cluster(address: str, progress: Progress) -> DaskEngine:
    """The cluster at this address, or in processes of this machine, reached when it is first needed."""
    if address not in reached:
        from spectral_irt.engine.dask import connect

        progress.say("connecting to the cluster")
        reached[address] = connect(address)
        for name in list(logging.root.manager.loggerDict):  # what they say in pages is said here in a sentence
            if name.split(".")[0] in ("distributed", "tornado", "asyncio"):
                logging.getLogger(name).setLevel(logging.CRITICAL)
    return reached[address]
