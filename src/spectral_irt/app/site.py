"""What the page answers: a start, a page for each file, and what is downloaded from it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from spectral_irt.app.guard import Guard
from spectral_irt.app.jobs import BusyError, FullError, Job, Jobs
from spectral_irt.app.look import GROUP, ITEM, MOST_SHOWN, PERSON, RESPONSE, UNUSED
from spectral_irt.app.pages import Pages
from spectral_irt.app.uploads import ENDINGS, TooLargeError, checked_name, file_in, form_of, keep
from spectral_irt.errors import ReadError, SpectralIrtError, for_shell

LOOK_OFTEN = 60.0  # seconds between two looks for jobs that nobody needs any more
ROLES = {"wide": (ITEM, PERSON, GROUP, UNUSED), "long": (ITEM, PERSON, RESPONSE, GROUP, UNUSED)}
ROLE_WORDS = {PERSON: "names the person", GROUP: "group to compare", UNUSED: "not used"}
GONE = "This file has been closed, and nothing of it was kept. Begin again."


class Site:
    """The app of one address. `quit` ends the program."""

    def __init__(self, folder: Path, token: str, port: int, limit: int, quit: Callable[[], None]) -> None:
        self.base = f"/{token}"
        self.limit = limit
        self.pages = Pages(self.base, limit)
        self.jobs = Jobs(folder, limit)
        self._quit = quit
        routes = [
            Route("/", self.start),
            Route("/upload", self.upload, methods=["POST"]),
            Route("/example", self.example, methods=["POST"]),
            Route("/quit", self.quit, methods=["POST"]),
            Route("/job/{id}/", self.of_job(self.show)),
            Route("/job/{id}/status", self.of_job(self.status)),
            Route("/job/{id}/columns", self.of_job(self.columns), methods=["POST"]),
            Route("/job/{id}/cancel", self.of_job(self.cancel), methods=["POST"]),
            Route("/job/{id}/score", self.of_job(self.score), methods=["POST"]),
            Route("/job/{id}/close", self.of_job(self.close), methods=["POST"]),
            Route("/job/{id}/{file}", self.of_job(self.file)),
        ]
        site = Starlette(
            routes=[Mount(self.base, routes=routes)],
            lifespan=self.living,
            exception_handlers={
                SpectralIrtError: self.problem,
                HTTPException: self.not_there,
                ClientDisconnect: self.gone,
                Exception: self.mistake,
            },
        )
        # A page for those who may not ask knows no address of ours.
        self.asgi: ASGIApp = Guard(site, token, port, Pages("", limit))

    @asynccontextmanager
    async def living(self, app: Any) -> AsyncIterator[None]:
        """While the server runs, idle files are removed; when it ends, all of them."""
        sweeping = asyncio.create_task(self._sweep())
        try:
            yield
        finally:
            sweeping.cancel()
            await self.jobs.close_all()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(LOOK_OFTEN)
            await self.jobs.close_idle()

    # --------------------------------------------------------------------------------- what goes wrong

    async def problem(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, SpectralIrtError)
        status = {TooLargeError: 413, BusyError: 409, FullError: 409}.get(type(error), 400)
        return self.pages.message("That did not work", for_shell(str(error)), status=status, back=self._back(request))

    async def not_there(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        text = GONE if error.status_code == 404 else "The page was asked in a way that it does not understand."
        return self.pages.message("Nothing here", text, status=error.status_code, back=f"{self.base}/")

    async def gone(self, request: Request, error: Exception) -> Response:
        return Response(status_code=400)  # the tab was closed; nobody reads this

    async def mistake(self, request: Request, error: Exception) -> Response:
        text = f"Internal error: {type(error).__name__}. This is our mistake; please report it."
        return self.pages.message("That did not work", text, status=500, back=self._back(request))

    def _back(self, request: Request) -> str:
        job = self.jobs.find(request.path_params.get("id", ""))
        return f"{self.base}/" if job is None else self._address(job)

    def _address(self, job: Job) -> str:
        return f"{self.base}/job/{job.id}/"

    def _to(self, job: Job) -> Response:
        return RedirectResponse(self._address(job), 303)

    def of_job(self, answer: Callable[[Request, Job], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """An answer about the job that the address names."""

        async def found(request: Request) -> Response:
            job = self.jobs.find(request.path_params["id"])
            if job is None:
                raise HTTPException(404)
            return await answer(request, job)

        return found

    # ------------------------------------------------------------------------------------------- pages

    async def start(self, request: Request) -> Response:
        jobs = [(self._address(job), job) for job in self.jobs.all()]
        return self.pages.show("start.html", title="Calibrate a test", jobs=jobs, accept=",".join(ENDINGS))

    async def show(self, request: Request, job: Job) -> Response:
        roles = job.choice.now(job.columns)
        # Where there are many, those are shown that are no items, and the first of the others.
        odd = [k for k, column in enumerate(job.columns) if column["role"] != ITEM]
        shown = sorted(dict.fromkeys([*odd[:MOST_SHOWN], *range(min(len(job.columns), MOST_SHOWN))]))
        return self.pages.show(
            "job.html",
            title=job.name,
            job=job,
            at=self._address(job),
            columns=[(k, job.columns[k], roles[k]) for k in shown],
            hidden=len(job.columns) - len(shown),
            roles=ROLES.get(job.kind, ROLES["wide"]),
            words=ROLE_WORDS,
            accept=",".join(ENDINGS),
        )

    async def status(self, request: Request, job: Job) -> Response:
        work = job.work
        if work is None:
            return JSONResponse({"version": job.version, "busy": False})
        return JSONResponse({"version": job.version, "busy": True, "doing": work.doing, "share": work.share})

    # ----------------------------------------------------------------------------------------- actions

    async def upload(self, request: Request) -> Response:
        async with form_of(request, self.limit) as form:
            answers = file_in(form, "answers")
            if answers is None:
                raise ReadError("No file was chosen. Choose a file with the answers.")
            job = self.jobs.new(checked_name(answers))
            try:
                await keep(answers, job.inputs, job.name, self.limit)
                await self._keep_key(job, form)
            except BaseException:
                await self.jobs.close(job)
                raise
        job.start("check", job.look, job.check)
        return self._to(job)

    async def example(self, request: Request) -> Response:
        """The quiz that comes with the package, to try the page with."""
        from spectral_irt.datasets.bundled import OMITTED, quiz_files

        answers, key = quiz_files()
        job = self.jobs.new(answers.name)
        for path in (answers, key):
            await asyncio.to_thread(shutil.copy, path, job.inputs)
        job.choice = replace(job.choice, key=key.name, missing=OMITTED)
        job.start("check", job.look, job.check)
        return self._to(job)

    async def _keep_key(self, job: Job, form: Any) -> None:
        key = file_in(form, "key")
        if key is not None:
            name = f"key_{checked_name(key)}" if checked_name(key) == job.name else checked_name(key)
            await keep(key, job.inputs, name, self.limit)
            job.choice = replace(job.choice, key=name)

    async def columns(self, request: Request, job: Job) -> Response:
        async with form_of(request, self.limit) as form:
            if job.work is not None:
                raise BusyError(f"{job.name} is being worked on. Wait until that is done, or cancel it.")
            before = job.choice.layout()
            job.choice = job.choice.changed({name: value for name, value in form.items() if isinstance(value, str)})
            if "no_key" in form:
                job.choice = replace(job.choice, key="")
            await self._keep_key(job, form)
            wants_fit = form.get("do") == "fit"
        anew = before != job.choice.layout() or not job.columns
        if wants_fit and not anew:
            job.start("fit", job.fit)
        else:
            job.start("check", *([job.look] if anew else []), job.check)
        return self._to(job)

    async def cancel(self, request: Request, job: Job) -> Response:
        await job.cancel()
        return self._to(job)

    async def score(self, request: Request, job: Job) -> Response:
        async with form_of(request, self.limit) as form:
            answers = file_in(form, "answers")
            if answers is None:
                raise ReadError("No file was chosen. Choose a file with the answers of the people to score.")
            if job.results is None:
                raise ReadError("There is no bank yet; run the calibration first.")
            if job.work is not None:
                raise BusyError(f"{job.name} is being worked on. Wait until that is done, or cancel it.")
            name = checked_name(answers)
            if (job.inputs / name).exists():
                name = f"second_{name}"
            await keep(answers, job.inputs, name, self.limit)
            ignore = "ignore_unknown" in form
        job.start("score", lambda: job.score(name, ignore_unknown=ignore))
        return self._to(job)

    async def close(self, request: Request, job: Job) -> Response:
        await self.jobs.close(job)
        return RedirectResponse(f"{self.base}/", 303)

    async def quit(self, request: Request) -> Response:
        self._quit()
        return self.pages.message("Closed", "Nothing was kept. You can close this tab.", status=200)

    # ----------------------------------------------------------------------------------------- downloads

    async def file(self, request: Request, job: Job) -> Response:
        """What came of the work, as files."""
        name, results, scored = request.path_params["file"], job.results, job.scored
        stem = Path(job.name).stem
        if name == "scores.csv" and scored is not None:
            return _download(scored.folder / "scores" / "persons.csv", f"{Path(scored.name).stem}-scores.csv")
        if results is None:
            raise HTTPException(404)
        if name == "report.html":
            return FileResponse(results.folder / "report.html", media_type="text/html; charset=utf-8")
        if name == "report-to-keep.html":
            return _download(results.folder / "report.html", f"{stem}-report.html")
        if name == "tables.zip":
            return _download(await _zipped(results.folder / "results"), f"{stem}-tables.zip")
        if name == "bank.zip":
            return _download(await _zipped(results.folder / "bank"), f"{stem}-bank.zip")
        if name == "results.xlsx":
            return _download(await job.workbook(), f"{stem}-results.xlsx")
        raise HTTPException(404)


def _download(path: Path, name: str) -> Response:
    return FileResponse(path, filename=name, content_disposition_type="attachment")


async def _zipped(folder: Path) -> Path:
    """A folder as a zip file beside it, which holds the folder."""
    target = folder.with_suffix(".zip")
    if not target.is_file():
        draft = folder.with_name(f"{folder.name}-draft")
        with suppress(FileExistsError):
            await asyncio.to_thread(shutil.make_archive, str(draft), "zip", folder.parent, folder.name)
        draft.with_suffix(".zip").replace(target)
    return target
