"""The command `spectral-irt`, also as `python -m spectral_irt`: what must hold before anything large is imported."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from typing import Any, NoReturn

BROKEN_PIPE = 141  # what a shell reports for a program that SIGPIPE ended


def run() -> NoReturn:
    """Do what the command line says, and end the process."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_closed_streams()
    code = 1
    sys.unraisablehook = _again
    try:
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, _stop)
        from spectral_irt.cli.main import main

        code = main(sys.argv[1:])
        _hear_no_more()
    except BrokenPipeError:  # the reader of our output has gone (`| head`): leave without a word
        code = BROKEN_PIPE
    except KeyboardInterrupt as error:  # while importing, or while saying the last word
        _hear_no_more()
        code = 128 + getattr(error, "signal", signal.SIGINT)
        print("interrupted.", file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            _to_nowhere(stream.fileno())
    sys.exit(code)


def _stop(number: int, frame: Any) -> NoReturn:
    """A signal that asks to end is an interrupt with a number of its own."""
    error = KeyboardInterrupt()
    error.signal = number  # type: ignore[attr-defined]
    raise error


def _again(unraisable: Any) -> None:
    """An interrupt that fell into a place where Python drops errors (the callback of an import) comes again."""
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    number = getattr(unraisable.exc_value, "signal", signal.SIGINT)
    later = threading.Timer(0.01, _thread.interrupt_main, (number,))
    later.daemon = True
    later.start()


def _hear_no_more() -> None:
    """What is left to do takes no time, and a signal in the midst of it would only leave a traceback."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def _open_closed_streams() -> None:
    """Lead standard streams that are closed (`>&-`) to nowhere, before a file gets their number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            _to_nowhere(number)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _to_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)


if __name__ == "__main__":
    run()
