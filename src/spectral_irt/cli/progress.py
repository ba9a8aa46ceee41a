"""What goes on, on a terminal, once it takes longer than a second; nothing on short work, nothing when piped.

SPECTRAL_IRT_PROGRESS_DELAY in the environment is another number of seconds. A program that runs a command can ask to be
told: with SPECTRAL_IRT_PROGRESS=json in its environment, the command writes lines such as
{"doing": "reading", "share": 0.5} to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, ClassVar

from spectral_irt.errors import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Display

DELAY = 1.0  # seconds of silence
PAUSE = 0.1  # seconds between two lines for a program, unless something new is being done
ALMOST = 0.999  # rich stops a task's clock and pulse for good when it is complete, and there is more to come


class Progress:
    """A line on stderr that says what is being done; it vanishes when the work is.

    >>> with Progress() as progress:
    ...     progress.say("reading", 0.5)
    """

    shown: ClassVar[bool] = True  # False under --quiet

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text = "working"
        self._share: float | None = None
        self._display: Display | None = None
        self._task: Any = None
        self._timer: threading.Timer | None = None
        self._start = time.monotonic()
        self._to_program = os.environ.get("SPECTRAL_IRT_PROGRESS") == "json"
        self._told = ("", float("-inf"))

    def __enter__(self) -> Progress:
        if self.shown and sys.stderr.isatty():
            delay = _delay()
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
            self._text, self._share = printable(text), share
            self._update()
            if self._to_program:
                self._tell_program()

    def reading(self, share: float, text: str) -> None:
        """`say`, as `read` calls it."""
        self.say(text, share)

    def _tell_program(self) -> None:
        now, (last, at) = time.monotonic(), self._told
        if self._text != last or now > at + PAUSE:
            self._told = (self._text, now)
            print(json.dumps({"doing": self._text, "share": self._share}), file=sys.stderr, flush=True)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn
        from rich.progress import Progress as Display
        from rich.text import Text

        start = self._start

        class Clock(ProgressColumn):
            """Time since the work began, whatever became of the step that is shown."""

            def render(self, task: Task) -> Text:
                seconds = int(time.monotonic() - start)
                return Text(f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}", style="progress.elapsed")

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(24), Clock())
        with self._lock:
            if self._timer is None:
                return  # the work ended while rich was loading
            self._display = Display(
                *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._task = self._display.add_task(self._text, total=None)
            self._update()
            self._display.start()

    def _update(self) -> None:
        if self._display is not None:
            total = None if self._share is None else 1.0  # None: a bar that only shows life
            self._display.tasks[0].total = total  # `update` takes None for "as before"
            self._display.update(self._task, description=self._text, completed=min(self._share or 0.0, ALMOST))


def _delay() -> float:
    try:
        return float(os.environ.get("SPECTRAL_IRT_PROGRESS_DELAY", DELAY))
    except ValueError:
        return DELAY
