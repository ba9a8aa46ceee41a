"""A command on a real pseudo-terminal, and what its screen looks like meanwhile and afterwards."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyte

WIDTH, HEIGHT = 100, 120
NO_WIDTH = "\u200e".encode()  # ends text from right to left; pyte would leave out the rest of the line
CLOCK = re.compile(r"\d:\d\d:\d\d")


@dataclass
class Shown:
    """What was to be seen."""

    code: int = -1
    screen: list[str] = field(default_factory=list)
    cursor_hidden: bool = False
    # Each state of the line with the clock: its text, the colors of its characters.
    progress: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.screen)


def on_terminal(
    *args: object,
    cwd: Path,
    program: str | None = None,
    when: tuple[str, Callable[[int], object]] | None = None,
    size: tuple[int, int] = (WIDTH, HEIGHT),
    delay: float = 0,
    limit: float = 600,
) -> Shown:
    """Run `spectral-irt` (or a Python program) with a terminal as its input, output and error.

    `when`: a text, and what to do once it is on the screen; it gets the terminal, to press keys. `delay`: seconds
    before progress is shown; at once by default, so that no work is too quick for it.
    """
    ours, theirs = pty.openpty()
    command = [sys.executable, *(["-c", program] if program else ["-m", "spectral_irt"]), *map(str, args)]
    hidden = ("NO_COLOR", "COLUMNS", "LINES", "CI", "GITHUB_ACTIONS", "FORCE_COLOR", "TTY_COMPATIBLE")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"TERM": "xterm-256color", "SPECTRAL_IRT_PROGRESS_DELAY": str(delay)}
    width, height = size
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    screen = pyte.Screen(width, height)
    stream = pyte.ByteStream(screen)
    shown = Shown()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    running = subprocess.Popen(
        command, cwd=cwd, env=environment, start_new_session=True, preexec_fn=lambda: _take(0), **streams
    )
    os.close(theirs)
    end = time.monotonic() + limit
    try:
        while time.monotonic() < end:
            if not select.select([ours], [], [], 1.0)[0]:
                continue
            try:
                data = os.read(ours, 1 << 16)
            except OSError:  # the other side is closed
                data = b""
            if not data:
                break
            for part in re.split(rb"(?=\r)", data.replace(NO_WIDTH, b"")):  # a state of the line before the next
                stream.feed(part)
                _look(screen, shown)
            if when is not None and when[0] in " ".join(screen.display):
                when[1](ours)
                when = None
        shown.code = running.wait(timeout=limit)
    finally:
        if running.poll() is None:
            running.kill()
            running.wait()
        os.close(ours)
    shown.screen = [line.rstrip() for line in screen.display]
    shown.cursor_hidden = screen.cursor.hidden
    return shown


def interrupt(terminal: int) -> None:
    """Press Ctrl-C."""
    os.write(terminal, b"\x03")


def _take(terminal: int) -> None:
    """In the child: this is its terminal, whose Ctrl-C it hears."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background ignores it
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def _look(screen: pyte.Screen, shown: Shown) -> None:
    for number, line in enumerate(screen.display):
        if CLOCK.search(line):
            colors = tuple(str(screen.buffer[number][k].fg) for k in range(screen.columns))
            shown.progress.append((line.rstrip(), colors))
