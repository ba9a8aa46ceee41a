"""Where a dataset is: in a directory of your own, as its publisher ships it, zipped or not, or as neutral Parquet."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from reproduction.datasets.catalog import Source
from spectral_irt import datasets as bundled
from spectral_irt.errors import ReadError

VARIABLE = "SPECTRAL_IRT_DATA"

Data = str | os.PathLike[str] | None


@dataclass(frozen=True)
class Found:
    """A file, or a member of a zip file (of a zip file inside it, if there are two members)."""

    path: Path
    members: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """For messages."""
        return " in ".join(PurePosixPath(part).name for part in [*reversed(self.members), str(self.path)])


def data_path(data: Data) -> Path | None:
    """The directory (or file) that the person named, or the one in the environment; None when there is neither."""
    said = data if data is not None else os.environ.get(VARIABLE) or None
    if said is None:
        return None
    path = Path(said).expanduser()
    if not path.exists():
        how = "" if data is not None else f", which {VARIABLE} names"
        raise ReadError(f"there is no directory {str(path)!r}{how}; name the one with the datasets.")
    return path


def find(source: Source, place: Path | None) -> Found | None:
    """The dataset's file at this place, or None."""
    if source.layout == "bundled":
        return Found(bundled.HERE / "lsat6.csv")
    if place is None:
        return None
    if place.is_file():
        return Found(place) if not zipfile.is_zipfile(place) else _inside(place, source)
    neutral = place / f"{source.name}.parquet"
    if neutral.is_file():
        return Found(neutral)
    for candidate in _candidates(source, place):
        if candidate.is_file():
            return Found(candidate)
    for archive in source.archives:
        path = place / archive
        if path.is_file() and (found := _inside(path, source)):
            return found
    return None


def _candidates(source: Source, place: Path) -> Iterator[Path]:
    """Where the publisher's file may lie: under the publisher's folders, ours, or any folder if its name is its own."""
    for file in source.files:
        folder, _, name = file.rpartition("/")
        yield place / file
        yield place / source.name / name
        if folder and place.name.lower() == folder.split("/")[0].lower():
            yield place.parent / file
        if not folder:
            yield from (below / name for below in _folders(place))


def _folders(place: Path) -> list[Path]:
    try:
        return sorted(below for below in place.iterdir() if below.is_dir())
    except OSError:  # not ours to look into
        return []


def _inside(archive: Path, source: Source) -> Found | None:
    names = [file.rpartition("/")[2].lower() for file in source.files]
    try:
        with zipfile.ZipFile(archive) as opened:
            for members in _members(opened):
                if PurePosixPath(members[-1]).name.lower() in names:
                    return Found(archive, members)
    except (zipfile.BadZipFile, OSError) as error:
        raise ReadError(f"{archive.name} cannot be opened ({error}); download it again.") from None
    return None


def _members(archive: zipfile.ZipFile) -> Iterator[tuple[str, ...]]:
    """The files in an archive, then those in archives inside it (UCI ships one within another)."""
    names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX")]
    yield from ((name,) for name in names)
    for name in names:
        if name.lower().endswith(".zip"):
            with archive.open(name) as inner, zipfile.ZipFile(inner) as opened:
                yield from ((name, below) for below in opened.namelist() if not below.endswith("/"))


@contextmanager
def unpacked(found: Found) -> Iterator[Path]:
    """The plain file: as it is, or taken out of its archive to a temporary directory for the time of the block."""
    if not found.members:
        yield found.path
        return
    with tempfile.TemporaryDirectory(prefix="spectral-irt-") as directory:
        target = Path(directory) / PurePosixPath(found.members[-1]).name
        try:
            with ExitStack() as opened, target.open("wb") as file:
                member: Any = found.path
                for name in found.members:
                    member = opened.enter_context(opened.enter_context(zipfile.ZipFile(member)).open(name))
                shutil.copyfileobj(member, file, 1 << 20)
        except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            raise ReadError(f"{found.name} cannot be unpacked ({error}); download it again.") from None
        yield target
