"""Files that were given to the page, each with a folder, an id and one piece of work at a time."""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spectral_irt.app.children import COMMAND, LOOK, Child, Ended
from spectral_irt.app.choices import Choice, shown_command
from spectral_irt.errors import OptionError, SpectralIrtError, for_shell

MOST_JOBS = 20  # more open files are more likely forgotten than needed
AT_ONCE = 2  # processes that work at the same time; the others wait
IDLE = 3600.0  # seconds after which a file that no page shows any more is removed
RIGHT_AND_WRONG = ["--model", "rasch"]  # the page is for these
UNPACKED = 10  # times the limit of an upload is what a workbook may unpack to


class BusyError(SpectralIrtError):
    """Something else is being done with this file."""


class FullError(SpectralIrtError):
    """Too many files are open."""


@dataclass
class Work:
    """What is being done, and how far it is."""

    title: str
    doing: str = "waiting"
    share: float | None = None
    begun: float = field(default_factory=time.monotonic)


@dataclass
class Results:
    """A fit that is complete: the folder of its files, its options, its record, and the command that does it again."""

    folder: Path
    words: list[str]
    command: str
    record: dict[str, Any]
    seconds: float


@dataclass
class Scored:
    """People of a second file that were scored with the bank."""

    folder: Path
    name: str
    command: str
    record: dict[str, Any]


class Job:
    """A file of answers, what was recognized in it, what was said about it, and what came of it."""

    def __init__(self, folder: Path, name: str, slots: asyncio.Semaphore, unpacked: float) -> None:
        self.id = secrets.token_urlsafe(9)
        self.folder = folder
        self.name = name
        self.choice = Choice()
        self.seen: dict[str, Any] = {}
        self.checked: dict[str, Any] = {}
        self.results: Results | None = None
        self.scored: Scored | None = None
        self.problems: dict[str, str] = {}  # what could not be done, by what it was
        self.work: Work | None = None
        self.version = 0  # grows when a page that shows the job is out of date
        self.touched = time.monotonic()
        self._slots = slots
        self._unpacked = unpacked
        self._child: Child | None = None
        self._task: asyncio.Task[None] | None = None
        self._runs = 0
        self._checked_with: list[str] = []
        self.inputs.mkdir(parents=True)

    @property
    def inputs(self) -> Path:
        """The folder of what was uploaded."""
        return self.folder / "in"

    @property
    def columns(self) -> list[dict[str, Any]]:
        return list(self.seen.get("columns", ()))

    @property
    def kind(self) -> str:
        return str(self.seen.get("format", ""))

    # ------------------------------------------------------------------------------------------- work

    def start(self, title: str, *steps: Callable[[], Awaitable[None]]) -> None:
        """Do these steps one after the other, until one of them fails."""
        if self.work is not None:
            raise BusyError(f"{self.name} is being worked on. Wait until that is done, or cancel it.")
        self.work = Work(title)
        self.problems.clear()
        self._changed()
        self._task = asyncio.create_task(self._do(title, steps))

    async def _do(self, title: str, steps: tuple[Callable[[], Awaitable[None]], ...]) -> None:
        try:
            async with self._slots:
                self._tell("starting")
                for step in steps:
                    await step()
        except SpectralIrtError as error:
            self.problems[title] = for_shell(str(error))
        except asyncio.CancelledError:
            self.problems[title] = "Canceled; nothing came of it."
        except OSError as error:
            self.problems[title] = f"The disk or the system refused: {error.strerror or error}."
        finally:
            self.work = None
            self._changed()

    async def cancel(self) -> None:
        """Stop what is being done: its process is ended before this returns."""
        task = self._task
        if self._child is not None:
            self._child.stop()
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=10)

    async def _run(self, module: tuple[str, ...], words: list[str], said: object = None) -> Ended:
        self._child = Child(self.inputs)
        try:
            ended = await self._child.run(module, words, self._tell, said=said)
        finally:
            self._child = None
        if ended.problem:
            raise SpectralIrtError(ended.problem)
        return ended

    def _tell(self, doing: str, share: float | None = None) -> None:
        if self.work is not None:
            self.work.doing, self.work.share = doing, share

    def _changed(self) -> None:
        self.version += 1

    # ------------------------------------------------------------------------------------------ steps

    async def look(self) -> None:
        """What the columns are."""
        self.seen, self.checked = {}, {}
        self.choice = self.choice.recognized_anew()
        self.seen = await self._look_at(self.name)
        if self.seen.get("error"):
            raise OptionError(self.seen["error"])

    async def _look_at(self, name: str) -> dict[str, Any]:
        self._tell(f"looking at {name}")
        said = {"format": self.choice.format, "orient": self.choice.orient, "key": self.choice.key or None,
                "sheet": self.choice.sheet or None, "encoding": self.choice.encoding or None}  # fmt: skip
        ended = await self._run(LOOK, [], {"file": name, "unpacked": self._unpacked, **said})
        found: dict[str, Any] = json.loads(ended.out)
        return found

    async def check(self) -> None:
        """What is odd in the answers."""
        self.checked = {}
        self._checked_with = words = self.choice.fit_words(self.columns, self.kind)
        self._tell(f"reading {self.name}")
        self._changed()  # the columns can be shown while all the answers are read
        ended = await self._run(COMMAND, ["check", _path(self.name), *words, *RIGHT_AND_WRONG, "--json"])
        self.checked = json.loads(ended.out)

    async def fit(self) -> None:
        """Calibrate; earlier results go."""
        words = self.choice.fit_words(self.columns, self.kind)
        if not self.checked or words != self._checked_with:
            await self.check()
        self._drop(self.results)
        self._drop(self.scored)
        self.results = self.scored = None
        run = self._new_folder()
        begun = time.monotonic()
        listed = ["--list-persons"] if self.choice.list_persons else []
        places = ["-o", str(run / "results"), "--report", str(run / "report.html"), "--bank", str(run / "bank")]
        try:
            await self._run(COMMAND, ["fit", _path(self.name), *words, *RIGHT_AND_WRONG, *listed, *places])
            record = json.loads((run / "results" / "fit.json").read_text(encoding="utf-8"))
        except BaseException:
            shutil.rmtree(run, ignore_errors=True)
            raise
        shown = ["-o", "results", "--report", "report.html", "--bank", "bank"]
        command = shown_command("fit", self.name, *words, *listed, *shown)
        self.results = Results(run, words, command, record, time.monotonic() - begun)

    async def score(self, name: str, *, ignore_unknown: bool = False) -> None:
        """Score the people of a second file with the bank."""
        results = self.results
        assert results is not None
        self._drop(self.scored)
        self.scored = None
        run = self._new_folder()
        try:
            words = [*await self._second_words(name), *(["--ignore-unknown"] if ignore_unknown else [])]
            bank, output = ["--bank", str(results.folder / "bank")], ["-o", str(run / "scores")]
            await self._run(COMMAND, ["score", _path(name), *words, *bank, *output])
            record = json.loads((run / "scores" / "score.json").read_text(encoding="utf-8"))
        except BaseException:
            shutil.rmtree(run, ignore_errors=True)
            raise
        finally:
            (self.inputs / name).unlink(missing_ok=True)
        command = shown_command("score", name, *words, "--bank", "bank", "-o", "scores")
        self.scored = Scored(run, name, command, record)

    async def _second_words(self, name: str) -> list[str]:
        """How a second file is to be read: like the first, as far as it has the same columns."""
        seen = await self._look_at(name)
        recognized = {column["name"]: column["role"] for column in seen["columns"]}
        roles = self.choice.now(self.columns)
        known = [(column["name"], roles[k]) for k, column in enumerate(self.columns) if column["name"] in recognized]
        columns = [{"name": name, "role": recognized[name]} for name, _ in known]
        like_first = replace(self.choice, roles={k: role for k, (_, role) in enumerate(known)})
        own = like_first.layout_words(columns, seen["format"]) if known and seen["format"] == self.kind else []
        return [*own, *self.choice.scoring_words()]

    async def workbook(self) -> Path:
        """The tables as a workbook, made by the same command when it is first asked for."""
        assert self.results is not None
        target = self.results.folder / "results.xlsx"
        if not target.is_file():
            words = [_path(self.name), *self.results.words, *RIGHT_AND_WRONG, "-o", str(target)]
            ended = await Child(self.inputs).run(COMMAND, ["fit", *words], lambda doing, share: None)
            if ended.problem:
                raise SpectralIrtError(ended.problem)
        return target

    def _new_folder(self) -> Path:
        self._runs += 1
        run = self.folder / f"run{self._runs}"
        run.mkdir()
        return run

    def _drop(self, one: Results | Scored | None) -> None:
        if one is not None:
            shutil.rmtree(one.folder, ignore_errors=True)

    async def close(self) -> None:
        """Stop the work, and remove everything."""
        await self.cancel()
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


def _path(name: str) -> str:
    """A file of the folder, whatever it is called."""
    return f"./{name}" if name.startswith("-") else name


class Jobs:
    """All files that are open."""

    def __init__(self, folder: Path, limit: float) -> None:
        self.folder = folder
        self.limit = limit
        self._jobs: dict[str, Job] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    def new(self, name: str) -> Job:
        """A job for a file of this name, which has yet to be put into its folder."""
        if len(self._jobs) >= MOST_JOBS:
            raise FullError(f"{MOST_JOBS} files are open; close one of them first.")
        place = self.folder / secrets.token_hex(8)
        job = Job(place, name, self._slots, UNPACKED * self.limit)
        self._jobs[job.id] = job
        return job

    def find(self, id: str) -> Job | None:
        job = self._jobs.get(id)
        if job is not None:
            job.touched = time.monotonic()
        return job

    def all(self) -> list[Job]:
        return list(self._jobs.values())

    async def close(self, job: Job) -> None:
        self._jobs.pop(job.id, None)
        await job.close()

    async def close_all(self) -> None:
        for job in self.all():
            await self.close(job)

    async def close_idle(self, idle: float = IDLE) -> None:
        """Remove what no page has asked for in a long time; a page that is open asks every minute."""
        for job in self.all():
            if time.monotonic() - job.touched > idle:
                await self.close(job)
