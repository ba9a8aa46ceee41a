"""Files as they come from a browser: no larger than allowed, under a harmless name, complete or not at all."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.requests import ClientDisconnect, Request

from spectral_irt.errors import ReadError, SpectralIrtError
from spectral_irt.reading.formats import FORMATS
from spectral_irt.text import size_text

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
FORM = 10**6  # bytes that the rest of a form may take
FIELDS = 100_000  # of a form: one for each column
LONGEST_NAME = 100  # characters, so that none is too long for a disk
ENDINGS = tuple(ending for family, kind in FORMATS.items() if family != "json" for ending in kind.endings)


class TooLargeError(SpectralIrtError):
    """More than the limit was sent."""


@asynccontextmanager
async def form_of(request: Request, limit: int) -> AsyncIterator[FormData]:
    """The form with its files; an error, when all was heard, if there is more than the limit."""
    most, heard = limit + FORM, 0

    async def receive() -> Any:
        nonlocal heard
        message = await request.receive()
        heard += len(message.get("body", b""))
        if heard > most:
            await _to_the_end(request)
            raise TooLargeError(
                f"The file is larger than {size_text(limit)}, the most that this page takes. Start the app with a "
                "larger --limit, or use 'spectral-irt fit' in a terminal."
            )
        return message

    bounded = Request(request.scope, receive)
    async with bounded.form(max_files=2, max_fields=FIELDS, max_part_size=FORM) as form:
        yield form


async def _to_the_end(request: Request) -> None:
    """Hear the rest and forget it: a browser that is still sending would not see the answer."""
    with suppress(ClientDisconnect):
        while True:
            message = await request.receive()
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                return


def file_in(form: FormData, name: str) -> UploadFile | None:
    """The file in a field of the form, if one was chosen."""
    found = form.get(name)
    return found if isinstance(found, UploadFile) and found.filename else None


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


async def keep(upload: UploadFile, folder: Path, name: str, limit: int) -> None:
    """Put the file into the folder."""
    if upload.size is not None and upload.size > limit:
        raise TooLargeError(f"{name} is larger than {size_text(limit)}, the most that this page takes.")

    def copy() -> None:
        with (folder / name).open("wb") as target:
            shutil.copyfileobj(upload.file, target, 1 << 20)

    await asyncio.to_thread(copy)
