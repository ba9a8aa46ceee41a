"""What goes wrong, said in one line on stderr, in the words of the command line; and what the process returns."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from typing import Any

from spectral_irt.errors import ConvergenceWarning, ReadWarning, SpectralIrtError, for_shell, listed, printable
from spectral_irt.files import reason_of, written

OK, INTERNAL, BAD_INPUT = 0, 1, 2
WARNED = 3  # under --strict: done, and something is odd
INTERRUPTED = 130  # 128 and the number of the signal, as shells have it


def complain(kind: str, sentence: str, color: int = 31) -> None:
    """One line on stderr: `error: ...`."""
    colorful = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    head = f"\x1b[1;{color}m{kind}:\x1b[0m" if colorful else f"{kind}:"
    with suppress(OSError):  # nobody can be told
        print(f"{head} {printable(sentence)}", file=sys.stderr, flush=True)


def report(error: BaseException, *, debug: bool = False) -> int:
    """Say what happened and return the exit code; with `debug` the traceback goes before it."""
    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, SpectralIrtError):
        complain("error", for_shell(str(error)))
        return BAD_INPUT
    if isinstance(error, KeyboardInterrupt):
        done = f"too late to stop anything; all of this had been written: {listed(map(str, written))}."
        kept = getattr(error, "kept", "")  # what an experiment has to say
        complain("interrupted", kept or (done if written else "nothing was written."), 33)
        return 128 + getattr(error, "signal", INTERRUPTED - 128)
    if isinstance(error, OSError) and error.filename is None and (reason := reason_of(error)):
        # Every file has a name by now; what has none is the terminal, or where it was led.
        done = f"{listed(map(str, written))} had been written before." if written else "Nothing was written."
        complain("error", f"what was to be shown cannot be written: {reason}. {done}")
        return BAD_INPUT
    if isinstance(error, MemoryError):
        complain(
            "error",
            "there is not enough memory for this; try --memory 1GB (what goes beyond it is kept in temporary files), "
            "fewer --threads or --se none.",
        )
        return BAD_INPUT
    first, *_ = str(error).strip().splitlines() or [""]
    hint = "" if debug else ", with the traceback that --debug shows"
    complain("internal error", f"{type(error).__name__}: {first} -- this is our mistake; please report it{hint}.")
    return INTERNAL


def quiet_warnings(*, debug: bool = False) -> None:
    """Warnings that are meant for users become one line; the others are for developers, and shown with `debug`."""

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, UserWarning) or debug:
            complain(
                "warning",
                for_shell(str(message)) if isinstance(message, ConvergenceWarning | ReadWarning) else str(message),
                33,
            )

    warnings.showwarning = show
