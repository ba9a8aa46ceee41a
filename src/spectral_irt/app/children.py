"""A command in a process of its own: how far it is, what it says, and a way to end it at once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

Tell = Callable[[str, float | None], None]

LONGEST_LINE = 1 << 24  # bytes
SAID = 20  # lines that are remembered
COMMAND = ("spectral_irt",)
LOOK = ("spectral_irt.app.look",)


@dataclass(frozen=True)
class Ended:
    """The exit code, what went to stdout, and why it failed, in a sentence ("" when it did not)."""

    code: int
    out: str
    problem: str = ""


class Child:
    """A process that works, and may be ended at any time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None

    async def run(self, module: Sequence[str], words: Sequence[str], tell: Tell, *, said: object = None) -> Ended:
        """Run a module with these arguments in the folder; `said` goes to its stdin as JSON."""
        # -P: files in the folder are data, whatever they are called, and never imported.
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", *module, *words,
            cwd=self._folder, env=_environment(self._folder), limit=LONGEST_LINE, start_new_session=True,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            with suppress(OSError):
                process.stdin.write(b"" if said is None else json.dumps(said).encode())
                process.stdin.close()
            out, lines = await asyncio.gather(process.stdout.read(), _heard(process.stderr, tell))
            code = await process.wait()
        finally:
            self.stop()
            await process.communicate()  # until it is gone, also when it was stopped
        return Ended(code, out.decode("utf-8", "replace"), _problem(code, lines) if code else "")

    def stop(self) -> None:
        """End the process now, if it is there."""
        if self._process is None or self._process.returncode is not None:
            return
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()


def _environment(folder: Path) -> dict[str, str]:
    own = {"SPECTRAL_IRT_PROGRESS": "json", "NO_COLOR": "1", "PYTHONUTF8": "1", "TMPDIR": str(folder)}
    return {**os.environ, **own}


async def _heard(stream: asyncio.StreamReader, tell: Tell) -> list[str]:
    """What was said on stderr, but for progress, which is told."""
    lines: list[str] = []
    while line := await stream.readline():
        text = line.decode("utf-8", "replace").strip()
        try:
            progress = json.loads(text)
            tell(progress["doing"], progress["share"])
        except (ValueError, TypeError, KeyError):
            lines = [*lines, text][-SAID:]
    return lines


def _problem(code: int, lines: Sequence[str]) -> str:
    said = [line for line in lines if line.partition(":")[0] in ("error", "internal error")]
    if said:
        kind, _, text = said[-1].partition(": ")
        return text if kind == "error" else said[-1]
    if code == -getattr(signal, "SIGKILL", 9):
        return "The work was ended by the operating system, probably because there was not enough memory."
    return f"The work ended unexpectedly (code {code}). This is our mistake; please report it."
