"""Results on disk: complete or not at all, and never in the place of what is being read.

Files are written under temporary names beside their places and moved there when all of them are complete. An error, an
interrupt or a full disk leaves what was there before."""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import platform
import re
import secrets
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

from spectral_irt.errors import OptionError, OutputError
from spectral_irt.text import listed

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_REMEDIES = {
    errno.ENOSPC: "the disk is full; free some space or choose another place",
    errno.EDQUOT: "your disk quota is used up; free some space or choose another place",
    errno.EFBIG: "the file would be larger than allowed here; choose another place",
    errno.EACCES: "permission denied; choose a place you may write to",
    errno.EPERM: "permission denied; choose a place you may write to",
    errno.EROFS: "the file system is read-only; choose another place",
    errno.ENOTDIR: "a part of the path is a file, not a directory; choose another place",
    errno.EEXIST: "a part of the path is a file, not a directory; choose another place",
    errno.EISDIR: "it is a directory; choose another name",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
}

written: list[Path] = []  # what this process has put in place so far, for an honest last word


@contextmanager
def all_or_nothing(
    targets: Sequence[Path],
    *,
    inputs: Iterable[str | Path] = (),
    folders: Sequence[Path] = (),
    stale: Sequence[Path] = (),
    last: Callable[[], object] | None = None,
) -> Iterator[list[Path]]:
    """Draft paths for these targets; at the end of a block without error they take their places.

    The drafts are made at once, so a place that cannot be written shows before the work. A draft that the block removes
    is a result that did not come about: what was in its place is stale. `stale` files go when the new ones come. `last`
    is done when all drafts are complete and writes the banks in `folders`; if it fails, no draft takes its place."""
    refuse_inputs([*targets, *stale, *folders], inputs)
    if len(set(map(os.path.realpath, targets))) < len(targets):
        raise OptionError("two results would go to the same file; give each a name of its own.")
    made: list[Path] = []
    drafts: list[Path] = []
    try:
        for directory in set(map(attrgetter("parent"), targets)):
            remove_leftovers(directory)
        for folder in folders:
            near = next(above for above in (folder.absolute(), *folder.absolute().parents) if above.exists())
            with naming(folder):
                tempfile.TemporaryFile(dir=near).close()
        for target in targets:
            with naming(target):
                for above in (*reversed(target.parent.parents), target.parent):
                    if not above.exists():
                        made.append(above)
                        above.mkdir()
                if target.is_dir():
                    raise IsADirectoryError(errno.EISDIR, "is a directory")
                if target.exists() and not target.is_file():
                    raise OutputError(f"{str(target)!r} is not an ordinary file; choose another place.")
                drafts.append(draft_beside(target))
                drafts[-1].open("xb").close()
        yield drafts
        draft_of = dict(zip(targets, drafts, strict=True))
        for target, draft in draft_of.items():
            with naming(target), suppress(FileNotFoundError), draft.open("rb") as file:
                os.fsync(file.fileno())  # some file systems complain of lack of space only now
        before = len(written)
        if last is not None:
            last()
        with uninterrupted():
            for target in (*targets, *stale):
                done = listed(map(str, written[before:]))
                with naming(target, f"{done} had been written before." if done else "Nothing was written."):
                    if target in draft_of and draft_of[target].exists():
                        os.replace(draft_of[target], target)
                        written.append(target)
                    else:
                        _remove(target)
            made.clear()
    finally:
        with uninterrupted():
            for draft in drafts:
                with suppress(OSError):
                    _remove(draft)
            for directory in reversed(made):
                with suppress(OSError):
                    directory.rmdir()


def write_each(writers: Mapping[Path, Callable[[Path], object]], **places: Any) -> list[Path]:
    """Write every target with its function of a draft, and the options of `all_or_nothing`; those that came about."""
    targets = list(writers)
    with all_or_nothing(targets, **places) as drafts:
        for draft, target in zip(drafts, targets, strict=True):
            with naming(target):
                writers[target](draft)
        return [target for draft, target in zip(drafts, targets, strict=True) if draft.exists()]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


STOPS = {signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}  # Windows has no SIGHUP


@contextmanager
def uninterrupted() -> Iterator[None]:
    """No signal stops the block, which is meant for moments: what it would have stopped is done."""
    before: dict[int, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for stop in STOPS:
                before[stop] = signal.signal(stop, signal.SIG_IGN)
        yield
    finally:
        for stop, handler in before.items():
            signal.signal(stop, handler or signal.SIG_DFL)


def lock_file(file: int) -> None:
    """Lock an open file for this process alone, or fail at once; the lock ends with the file or the process."""
    if sys.platform == "win32":
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


BUSY = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)  # numbers of an error that means: locked
_HERE = hashlib.sha256(platform.node().encode()).hexdigest()[:6]  # a folder may be shared by several machines
_DRAFT = re.compile(r"\.([0-9a-f]{6})-(\d+)-[0-9a-f]{12}\.partial")


def draft_beside(target: Path) -> Path:
    """A name for a draft of this file or folder; it tells which process on which machine is at work on it."""
    return target.parent / f".{_HERE}-{os.getpid()}-{secrets.token_hex(6)}.partial"


def remove_leftovers(directory: Path) -> None:
    """Remove the drafts of processes that are no more; on Windows there is no harmless way to ask for that."""
    with suppress(OSError):
        for path in list(directory.iterdir()) if os.name == "posix" else ():
            if (found := _DRAFT.fullmatch(path.name)) and found[1] == _HERE:
                try:
                    os.kill(int(found[2]), 0)
                except ProcessLookupError:
                    with suppress(OSError):
                        _remove(path)
                except OSError:  # somebody else's, and alive
                    pass


def refuse_inputs(outputs: Iterable[Path], inputs: Iterable[str | Path]) -> None:
    """An error when a result would take the place of something that is being read, under whatever name it goes. Inputs
    may be patterns; a folder stands for itself and for the files in it."""
    read: dict[tuple[int, int], Path] = {}
    for one in map(os.path.expanduser, inputs):
        for path in [one] if os.path.lexists(one) else glob.glob(one, recursive=True):
            read.update(_keys(Path(path)))
    for output in outputs:
        for key, _ in _keys(output):
            if key in read:
                raise OutputError(
                    f"the results would replace {str(read[key])!r}, which is being read; choose another place. Nothing "
                    "was written."
                )


def refuse_foreign(paths: Iterable[Path], mark: str) -> None:
    """An error where one of these is a file that does not say at its beginning, by a mark, that we made it."""
    foreign = []
    for path in paths:
        with naming(path):
            if path.is_file():
                with path.open("rb") as file:
                    head = file.read(4_000)
                foreign += [str(path)] if head and mark.encode() not in head else []
    if foreign:
        raise OutputError(
            f"{listed(foreign)} exists, and spectral-irt did not make it; choose another place, or move it away. "
            "Nothing was written."
        )


def _keys(path: Path) -> Iterator[tuple[tuple[int, int], Path]]:
    """What is the same for all names of a file; for a folder, of the files in it too."""
    with suppress(OSError, ValueError):
        found = path.stat()
        yield (found.st_dev, found.st_ino), path
        for inner in path.iterdir() if path.is_dir() else ():
            with suppress(OSError):
                found = inner.stat()
                yield (found.st_dev, found.st_ino), inner


@contextmanager
def naming(target: Path, kept: str = "Nothing was written.") -> Iterator[None]:
    try:
        yield
    except OutputError:
        raise
    except Exception as error:
        reason = reason_of(error)
        if reason is None:
            raise
        raise OutputError(f"{str(target)!r} cannot be written: {reason}. {kept}") from error


def reason_of(error: Exception) -> str | None:
    """What the operating system complains of, and what to do; None if the error is of another kind."""
    number = error.errno if isinstance(error, OSError) else None
    if not number and (found := re.search(r"\(os error (\d+)\)", str(error))):  # as polars says it
        number = int(found[1])
    return _REMEDIES.get(number, f"{os.strerror(number)}; choose another place") if number else None
