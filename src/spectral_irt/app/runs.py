"""Files that were given to the page, each with a folder, an id and one piece of work at a time: a command in a process
of its own."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shlex
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spectral_irt.app.options import Choice
from spectral_irt.errors import OptionError, SpectralIrtError, for_shell
from spectral_irt.installation import please_report

# Modules that processes run.
COMMAND = "spectral_irt"
DETECT = "spectral_irt.app.detect"
LONGEST_LINE = 1 << 24  # bytes that a process may say at once
PUPIL_PAGES = "pupil-pages.html"
ONCE = ("--drop-persons", "--tailor")  # options that are given once
REMEMBERED = 20  # lines that it said

Tell = Callable[[str, float | None], None]


class BusyError(SpectralIrtError):
    """Something else is being done with this file."""


@dataclass
class Work:
    """What is being done, and how far it is."""

    title: str
    doing: str = "starting"
    share: float | None = None


@dataclass(frozen=True)
class Done:
    """A command that is complete: the file, the folder of what it wrote, its record, and the same in a terminal."""

    name: str
    folder: Path
    words: Sequence[str]
    command: str
    record: dict[str, Any]
    changed: str = ""  # the option by which it was fitted again; "" of the first fit

    @property
    def moves(self) -> list[tuple[int, Mapping[str, Any]]]:
        """The findings that propose a move, by number; not what was done already."""
        proposals: list[tuple[int, Mapping[str, Any]]] = []
        for k, finding in enumerate(self.record["findings"]):
            flag, _, value = finding["option"].partition(" ")
            done = flag in self.words if flag in ONCE else value in self.words
            if flag and not done:
                proposals.append((k, finding))
        return proposals


class Job:
    """A file of answers, what was recognized in it, what was said about it, and what came of it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.id = secrets.token_urlsafe(9)
        self.folder = folder / secrets.token_hex(8)
        self.inputs = self.folder / "in"  # what was uploaded
        self.name = name
        self.choice = Choice()
        self.seen: dict[str, Any] = {}
        self.checked: dict[str, Any] = {}
        self.results: Done | None = None
        self.earlier: list[Done] = []  # the fits before, where something was changed and fitted again
        self.compared: dict[str, Any] = {}  # the last two fits, side by side
        self.scored: Done | None = None  # people of a second file
        self.problems: dict[str, str] = {}  # what could not be done, by what it was
        self.work: Work | None = None
        self.version = 0  # grows when a page that shows the job is out of date
        self._task: asyncio.Task[None] | None = None
        self._checked_with: list[str] = []
        self.inputs.mkdir(parents=True)

    @property
    def columns(self) -> list[dict[str, Any]]:
        return list(self.seen.get("columns", ()))

    @property
    def kind(self) -> str:
        return str(self.seen.get("format", ""))

    def check_idle(self) -> None:
        if self.work is not None:
            raise BusyError(f"{self.name} is being worked on. Wait until that is done, or cancel it.")

    def start(self, title: str, *steps: Callable[[], Awaitable[None]]) -> None:
        """Do these steps one after the other, until one of them fails."""
        self.check_idle()
        self.work = Work(title)
        self.problems.clear()
        self.version += 1
        self._task = asyncio.create_task(self._do(title, steps))

    async def _do(self, title: str, steps: tuple[Callable[[], Awaitable[None]], ...]) -> None:
        try:
            for step in steps:
                await step()
        except SpectralIrtError as error:
            self.problems[title] = for_shell(str(error))
        except asyncio.CancelledError:
            self.problems[title] = "Canceled; nothing came of it."
        except OSError as error:
            self.problems[title] = f"The disk or the system refused: {error.strerror or error}."
        except Exception as error:  # nobody waits for this task: what it does not tell, nobody learns
            self.problems[title] = f"Internal error: {type(error).__name__}. This is our mistake; {please_report()}."
        finally:
            self.work = None
            self.version += 1

    async def cancel(self) -> None:
        """Stop what is being done: its process is ended before this returns."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=10)

    def _tell(self, doing: str, share: float | None = None) -> None:
        if self.work is not None:
            self.work.doing = doing
            self.work.share = share

    async def close(self) -> None:
        """Stop the work, and remove everything."""
        await self.cancel()
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    async def detect(self) -> None:
        """What the columns are."""
        self.seen = {}
        self.checked = {}
        self.choice = replace(self.choice, roles={})  # those of another layout
        self.seen = await self._columns_of(self.name)
        if self.seen.get("error"):
            raise OptionError(self.seen["error"])

    async def _columns_of(self, name: str) -> dict[str, Any]:
        self._tell(f"looking at {name}")
        asked = {"file": name, **self.choice.layout()}
        columns: dict[str, Any] = json.loads(await run(DETECT, [], self.inputs, self._tell, asked))
        return columns

    async def check(self) -> None:
        """What is odd in the answers."""
        self.checked = {}
        self._checked_with = words = self.choice.fit_words(self.columns, self.kind)
        self._tell(f"reading {self.name}")
        self.version += 1  # the columns can be shown while all the answers are read
        command = ["fit", _path(self.name), *words, "--dry-run", "--json"]
        self.checked = json.loads(await run(COMMAND, command, self.inputs, self._tell))

    async def fit(self) -> None:
        """Calibrate; earlier results go when there are new ones."""
        words = self.choice.fit_words(self.columns, self.kind)
        if not self.checked or words != self._checked_with:
            await self.check()
        words = [*words, "--all"]
        if self.choice.list_persons:
            words.append("--list-persons")
        results = await self._fit_results(words)
        for done in (*self.earlier, self.results, self.scored):
            if done is not None:
                shutil.rmtree(done.folder, ignore_errors=True)
        self.results = results
        self.scored = None
        self.earlier = []
        self.compared = {}

    async def fit_again(self, option: str) -> None:
        """Do what a finding proposes, and fit again; the results before stay, and are compared."""
        assert self.results is not None
        before = self.results
        flag, _, value = option.partition(" ")
        done = await self._fit_results([*before.words, flag, value])
        try:
            folders = [str(each.folder / "results") for each in (before, done)]
            comparison = await run(COMMAND, ["compare-fits", *folders, "--json"], self.inputs, self._tell)
        except BaseException:
            shutil.rmtree(done.folder, ignore_errors=True)
            raise
        if self.scored is not None:
            shutil.rmtree(self.scored.folder, ignore_errors=True)
        self.earlier.append(before)
        self.results = replace(done, changed=option)
        self.scored = None
        self.compared = json.loads(comparison)
        names = {folders[0]: "the results before", folders[1]: "the results after"}
        self.compared["sentences"] = [_with_names(each, names) for each in self.compared["sentences"]]

    async def _fit_results(self, words: Sequence[str]) -> Done:
        """The results of `fit` with these options, in a folder of their own."""
        places = {"-o": "results", "--report": "report.html"}
        if not any(word.startswith("--facet") for word in words):  # ratings have no bank
            places["--bank"] = "bank"
        if self.choice.pupil_pages:
            places["--pupil-pages"] = PUPIL_PAGES
        return await self._command("fit", self.name, words, places, "results/fit.json")

    async def score(self, name: str, *, ignore_unknown: bool = False) -> None:
        """Score the people of a second file with the bank."""
        assert self.results is not None
        try:
            words = await self._second_words(name)
            if ignore_unknown:
                words.append("--ignore-unknown")
            bank = str(self.results.folder / "bank")
            self.scored = await self._command("score", name, words, {"-o": "scores"}, "scores/score.json", bank)
        finally:
            (self.inputs / name).unlink(missing_ok=True)

    async def _second_words(self, name: str) -> list[str]:
        """How a second file is to be read: like the first, as far as it has the same columns."""
        seen = await self._columns_of(name)
        recognized = {column["name"]: column["role"] for column in seen["columns"]}
        roles = self.choice.now(self.columns)
        in_both = [(column["name"], roles[k]) for k, column in enumerate(self.columns) if column["name"] in recognized]
        columns = [{"name": name, "role": recognized[name]} for name, _ in in_both]
        like_first = replace(self.choice, roles={k: role for k, (_, role) in enumerate(in_both)})
        words: list[str] = []
        if in_both and seen["format"] == self.kind:
            words = like_first.layout_words(columns, seen["format"])
        return [*words, *self.choice.scoring_words()]

    async def _command(
        self, command: str, name: str, words: Sequence[str], places: Mapping[str, str], record: str, bank: str = ""
    ) -> Done:
        """Run a command that writes to these places, in a folder of its own that goes if it fails."""
        folder = self.folder / secrets.token_hex(4)
        folder.mkdir()
        to = [word for flag, place in places.items() for word in (flag, str(folder / place))]
        to_show = [word for flag, place in places.items() for word in (flag, place)]
        if bank:
            to = ["--bank", bank, *to]
            to_show = ["--bank", "bank", *to_show]
        try:
            await run(COMMAND, [command, _path(name), *words, *to], self.inputs, self._tell)
            content = json.loads((folder / record).read_text(encoding="utf-8"))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return Done(name, folder, words, shlex.join(["spectral-irt", command, name, *words, *to_show]), content)

    async def workbook(self, results: Done) -> Path:
        """The tables as a workbook, by the same command, when it is first asked for."""
        target = results.folder / "results.xlsx"
        if not target.is_file():
            words = [word for word in results.words if word != "--list-persons"]
            await run(COMMAND, ["fit", _path(self.name), *words, "-o", str(target)], self.inputs, lambda *_: None)
        return target


def _with_names(sentence: str, names: Mapping[str, str]) -> str:
    """The sentence with names for these folders, which are nobody's business."""
    for folder, name in names.items():
        sentence = sentence.replace(repr(folder), name)
    return sentence


def _path(name: str) -> str:
    """A file of the folder, whatever it is called."""
    return f"./{name}" if name.startswith("-") else name


async def run(module: str, words: Sequence[str], folder: Path, tell: Tell, message: object = None) -> str:
    """What a module with these arguments says on stdout, run in the folder; `message` goes to its stdin as JSON.

    An error where it fails, in its words. When the task that waits for it is canceled, the process is ended.
    """
    # -P: files in the folder are data, whatever they are called, and never imported.
    settings = {"SPECTRAL_IRT_PROGRESS": "json", "NO_COLOR": "1", "PYTHONUTF8": "1", "TMPDIR": str(folder)}
    stdin = b"" if message is None else json.dumps(message).encode()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", module, *words,
        cwd=folder, env={**os.environ, **settings}, limit=LONGEST_LINE, start_new_session=True,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        with suppress(OSError):
            process.stdin.write(stdin)
            process.stdin.close()
        out, lines = await asyncio.gather(process.stdout.read(), _heard(process.stderr, tell))
        code = await process.wait()
    finally:
        with suppress(OSError):
            if process.returncode is None:
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
        await process.communicate()  # until it is gone, also when it was stopped
    if code:
        raise SpectralIrtError(_problem(code, lines))
    return out.decode("utf-8", "replace")


async def _heard(stream: asyncio.StreamReader, tell: Tell) -> list[str]:
    """What was said on stderr, but for progress, which is told."""
    lines: list[str] = []
    while line := await stream.readline():
        text = line.decode("utf-8", "replace").strip()
        try:
            progress = json.loads(text)
            tell(progress["doing"], progress["share"])
        except (ValueError, TypeError, KeyError):
            lines = [*lines, text][-REMEMBERED:]
    return lines


def _problem(code: int, lines: Sequence[str]) -> str:
    errors = [line for line in lines if line.partition(":")[0] in ("error", "internal error")]
    if errors:
        kind, _, text = errors[-1].partition(": ")
        return text if kind == "error" else errors[-1]
    if code == -getattr(signal, "SIGKILL", 9):
        return "The work was ended by the operating system, probably because there was not enough memory."
    return f"The work ended unexpectedly (code {code}). This is our mistake; {please_report()}."
