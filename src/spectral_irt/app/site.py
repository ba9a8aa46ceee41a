"""What the page answers: a start, a page for each file, and what is downloaded from it."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from spectral_irt.app.detect import GROUP, ITEM, MOST_SHOWN, PERSON, RATER, RESPONSE, UNUSED
from spectral_irt.app.pages import Guard, Pages
from spectral_irt.app.runs import PUPIL_PAGES, BusyError, Job
from spectral_irt.errors import ReadError, SpectralIrtError, for_shell
from spectral_irt.installation import please_report
from spectral_irt.reading.formats import FORMATS

FIELDS = 100_000  # of a form: one for each column
LONGEST_NAME = 100  # characters, so that none is too long for a disk
ENDINGS = tuple(ending for family, kind in FORMATS.items() if family != "json" for ending in kind.endings)
ROLES = {"wide": (ITEM, PERSON, GROUP, RATER, UNUSED), "long": (ITEM, PERSON, RESPONSE, GROUP, RATER, UNUSED)}
ROLE_WORDS = {PERSON: "names the person", GROUP: "group to compare", RATER: "says who rated", UNUSED: "not used"}
GONE = "This file has been closed, and nothing of it was kept. Begin again."


class Site:
    """The app of one address. `quit` ends the program."""

    def __init__(self, folder: Path, token: str, port: int, quit: Callable[[], None]) -> None:
        self.base = f"/{token}"
        self.folder = folder
        self.pages = Pages(self.base)
        self.jobs: dict[str, Job] = {}
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
            Route("/job/{id}/again", self.of_job(self.again), methods=["POST"]),
            Route("/job/{id}/{file}", self.of_job(self.file)),
            Route("/job/{id}/fit-{number:int}/{file}", self.of_job(self.file)),
        ]
        kinds: tuple[Any, ...] = (SpectralIrtError, HTTPException, ClientDisconnect, Exception)
        site = Starlette(
            routes=[Mount(self.base, routes=routes)],
            lifespan=self.run,
            exception_handlers=dict.fromkeys(kinds, self.problem),
        )
        # A page for those who may not ask knows no address of ours.
        self.asgi: ASGIApp = Guard(site, token, port, Pages(""))

    @asynccontextmanager
    async def run(self, app: Any) -> AsyncIterator[None]:
        """When the server ends, all files go."""
        yield
        for job in self.jobs.values():
            await job.close()

    async def problem(self, request: Request, error: Exception) -> Response:
        job = self.jobs.get(request.path_params.get("id", ""))
        back = f"{self.base}/" if job is None else self._address(job)
        if isinstance(error, SpectralIrtError):
            status = 409 if isinstance(error, BusyError) else 400
            return self.pages.message("That did not work", for_shell(str(error)), status=status, back=back)
        if isinstance(error, HTTPException):
            text = GONE if error.status_code == 404 else "The page was asked in a way that it does not understand."
            return self.pages.message("Nothing here", text, status=error.status_code, back=f"{self.base}/")
        if isinstance(error, ClientDisconnect):
            return Response(status_code=400)  # the tab was closed; nobody reads this
        text = f"Internal error: {type(error).__name__}. This is our mistake; {please_report()}."
        return self.pages.message("That did not work", text, status=500, back=back)

    def _address(self, job: Job) -> str:
        return f"{self.base}/job/{job.id}/"

    def _to(self, job: Job) -> Response:
        return RedirectResponse(self._address(job), 303)

    def of_job(self, answer: Callable[[Request, Job], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """An answer about the job that the address names."""

        async def answer_job(request: Request) -> Response:
            job = self.jobs.get(request.path_params["id"])
            if job is None:
                raise HTTPException(404)
            return await answer(request, job)

        return answer_job

    async def start(self, request: Request) -> Response:
        jobs = [(self._address(job), job) for job in self.jobs.values()]
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
        now: dict[str, Any] = {"version": job.version, "busy": job.work is not None}
        if job.work is not None:
            now |= {"doing": job.work.doing, "share": job.work.share}
        return JSONResponse(now)

    async def upload(self, request: Request) -> Response:
        async with request.form(max_fields=FIELDS) as form:
            answers = file_in(form, "answers")
            if answers is None:
                raise ReadError("No file was chosen. Choose a file with the answers.")
            job = Job(self.folder, checked_name(answers))
            try:
                await keep(answers, job.inputs / job.name)
                await self._keep_key(job, form)
            except BaseException:
                await job.close()
                raise
        return self._begin(job)

    async def example(self, request: Request) -> Response:
        """The quiz that comes with the package, to try the page with."""
        from spectral_irt.datasets import OMITTED, quiz_files

        answers, key = quiz_files()
        job = Job(self.folder, answers.name)
        for path in (answers, key):
            await asyncio.to_thread(shutil.copy, path, job.inputs)
        job.choice = replace(job.choice, key=key.name, missing=OMITTED)
        return self._begin(job)

    def _begin(self, job: Job) -> Response:
        self.jobs[job.id] = job
        job.start("check", job.detect, job.check)
        return self._to(job)

    async def _keep_key(self, job: Job, form: FormData) -> None:
        key = file_in(form, "key")
        if key is not None:
            name = f"key_{checked_name(key)}" if checked_name(key) == job.name else checked_name(key)
            await keep(key, job.inputs / name)
            job.choice = replace(job.choice, key=name)

    async def columns(self, request: Request, job: Job) -> Response:
        async with request.form(max_fields=FIELDS) as form:
            job.check_idle()
            before = job.choice.layout()
            job.choice = job.choice.with_form({name: value for name, value in form.items() if isinstance(value, str)})
            if "no_key" in form:
                job.choice = replace(job.choice, key="")
            if form.get("key_sheet") in job.seen.get("sheets", ()):
                job.choice = replace(job.choice, key=f"{job.name}#{form['key_sheet']}")
            await self._keep_key(job, form)
            wants_fit = form.get("do") == "fit"
        anew = before != job.choice.layout() or not job.columns
        if wants_fit and not anew:
            job.start("fit", job.fit)
        elif anew:
            job.start("check", job.detect, job.check)
        else:
            job.start("check", job.check)
        return self._to(job)

    async def cancel(self, request: Request, job: Job) -> Response:
        await job.cancel()
        return self._to(job)

    async def score(self, request: Request, job: Job) -> Response:
        async with request.form(max_fields=FIELDS) as form:
            answers = file_in(form, "answers")
            if answers is None:
                raise ReadError("No file was chosen. Choose a file with the answers of the people to score.")
            if job.results is None or not (job.results.folder / "bank").exists():
                raise ReadError("There is no bank; run the calibration first. Ratings have none.")
            job.check_idle()
            name = checked_name(answers)
            if (job.inputs / name).exists():
                name = f"second_{name}"
            await keep(answers, job.inputs / name)
            ignore = "ignore_unknown" in form
        job.start("score", lambda: job.score(name, ignore_unknown=ignore))
        return self._to(job)

    async def again(self, request: Request, job: Job) -> Response:
        """Do what a finding of the last fit proposes, and fit again."""
        async with request.form() as form:
            number = str(form.get("finding", ""))
        job.check_idle()
        moves = {} if job.results is None else {str(k): finding for k, finding in job.results.moves}
        if number not in moves:
            raise ReadError("These results propose no such change; they may be of a later fit. Go back to the page.")
        option = moves[number]["option"]
        job.start("fit", lambda: job.fit_again(option))
        return self._to(job)

    async def close(self, request: Request, job: Job) -> Response:
        await self.jobs.pop(job.id).close()
        return RedirectResponse(f"{self.base}/", 303)

    async def quit(self, request: Request) -> Response:
        self._quit()
        return self.pages.message("Closed", "Nothing was kept. You can close this tab.", status=200)

    async def file(self, request: Request, job: Job) -> Response:
        """What came of the work, as files."""
        name = request.path_params["file"]
        source = job.name  # the file that it is about
        results = job.results
        scored = job.scored
        number = request.path_params.get("number")
        if number is not None:  # a fit before something was changed
            if number >= len(job.earlier):
                raise HTTPException(404)
            results = job.earlier[number]
            scored = None
        if name == "scores.csv" and scored is not None:
            path = scored.folder / "scores" / "persons.csv"
            source = scored.name
        elif results is None:
            raise HTTPException(404)
        elif name == "report.html":
            return FileResponse(results.folder / "report.html", media_type="text/html; charset=utf-8")
        elif name == "report-to-keep.html":
            path = results.folder / "report.html"
            name = "report.html"
        elif name in ("tables.zip", "bank.zip"):
            folder = results.folder / {"tables.zip": "results", "bank.zip": "bank"}[name]
            if not folder.exists():
                raise HTTPException(404)
            path = await _zip_folder(folder)
        elif name == PUPIL_PAGES and (results.folder / PUPIL_PAGES).exists():
            path = results.folder / PUPIL_PAGES
        elif name == "results.xlsx":
            path = await job.workbook(results)
        else:
            raise HTTPException(404)
        return FileResponse(path, filename=f"{Path(source).stem}-{name}", content_disposition_type="attachment")


async def _zip_folder(folder: Path) -> Path:
    """A folder as a zip file beside it, which holds the folder."""
    target = folder.with_suffix(".zip")
    if not target.is_file():
        draft = folder.with_name(secrets.token_hex(4))  # two downloads may be at it
        archive = await asyncio.to_thread(shutil.make_archive, str(draft), "zip", folder.parent, folder.name)
        Path(archive).replace(target)
    return target


def file_in(form: FormData, name: str) -> UploadFile | None:
    """The file in a field of the form, if one was chosen."""
    upload = form.get(name)
    return upload if isinstance(upload, UploadFile) and upload.filename else None


def safe_name(filename: str | None) -> str:
    r"""The name of an uploaded file without folders and without what a disk or a terminal could take amiss.

    >>> [safe_name(name) for name in ("C:\\school\\Class 5.xlsx", "../../etc/test.csv", "a\n<b>.csv", ".csv")]
    ['Class 5.xlsx', 'test.csv', 'a__b_.csv', '_.csv']
    """
    name = PureWindowsPath(PurePosixPath(filename or "").name).name
    name = "".join("_" if sign in '<>:"|?*' or not sign.isprintable() else sign for sign in name).strip()
    path = PurePosixPath(f"_{name}" if name.startswith(".") else name)
    stem = path.name[: -len(path.suffix)] if path.suffix else path.name
    return stem[: LONGEST_NAME - len(path.suffix)] + path.suffix[:10]


def checked_name(upload: UploadFile) -> str:
    """The name of the file; an error when it is not of a kind that is read."""
    name = safe_name(upload.filename)
    if not name.lower().endswith(ENDINGS):
        raise ReadError(
            f"{name or 'The file'} is not a kind of file that this page takes. Give it a CSV file or a workbook "
            "(.csv, .tsv, .xlsx, .xls, .ods), or one of SPSS (.sav), Stata (.dta) or Parquet."
        )
    return name


async def keep(upload: UploadFile, path: Path) -> None:
    """Write an uploaded file to this place."""
    with path.open("wb") as target:
        await asyncio.to_thread(shutil.copyfileobj, upload.file, target, 1 << 20)
