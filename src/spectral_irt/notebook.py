"""Progress in a notebook: a line under the cell while work takes longer than a second, gone when the work is done.

It needs nothing but Jupyter's own displays. Elsewhere, and where `progress=` was given, nothing is shown.
"""

from __future__ import annotations

import contextvars
import html
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

DELAY = 1.0  # seconds of silence
PAUSE = 0.2  # seconds between two texts, which come by the thousand


class Line:
    """The line of the work that is going on: what is being done, and the share of it that is done, if known."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text = "working"
        self._share: float | None = None
        self._ended = False
        self._updated = 0.0
        self._display: Any = None
        # The timer's thread has no cell of its own: it shows its line under the one that began the work.
        cell = contextvars.copy_context()
        self._timer = threading.Timer(DELAY, cell.run, (self._show,))
        self._timer.daemon = True
        self._timer.start()

    def say(self, text: str, share: float | None = None) -> None:
        with self._lock:
            self._text = text
            self._share = share
            if self._display is not None and time.monotonic() > self._updated + PAUSE:
                self._update()

    def end(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._display is not None:
                self._display.update({"text/plain": "", "text/html": ""}, raw=True)

    def _show(self) -> None:
        from IPython.display import display

        with self._lock:
            if not self._ended:
                self._display = display(self._content(), raw=True, display_id=True)
                self._updated = time.monotonic()

    def _update(self) -> None:
        self._display.update(self._content(), raw=True)
        self._updated = time.monotonic()

    def _content(self) -> dict[str, str]:
        """The line for a browser, and for notebooks that are shown as text."""
        value = ""
        percent = ""
        if self._share is not None:
            value = f' value="{self._share:.3f}"'
            percent = f" {self._share:.0%}"
        return {
            "text/plain": f"{self._text}{percent}",
            "text/html": f"<progress{value}></progress> {html.escape(self._text)}",
        }


_line: Line | None = None


@contextmanager
def progress_line(listener: Callable[..., object] | None = None) -> Iterator[None]:
    """In a notebook, a line for the work inside, if it takes long; within such work it is the same line. None where
    the work has another listener than `say`."""
    global _line
    if _line is not None or listener not in (None, say) or not in_notebook():
        yield
        return
    _line = Line()
    try:
        yield
    finally:
        _line.end()
        _line = None


def say(text: str, share: float | None = None) -> None:
    """What is being done now."""
    if _line is not None:
        _line.say(text, share)


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook; a terminal with IPython is none."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
