"""Results on disk: complete or not at all, and never in the place of what is being read.

Files are written under temporary names beside their places and moved there when all of them are complete. An error, an
interrupt or a full disk leaves what was there before. A process that is killed outright leaves its drafts; their names
say whose they are, and the next run in the same place removes them.
"""

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
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spectral_irt.errors import OptionError, OutputError, listed

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


# ---------------------------------------------------------------------------------- complete or not at all


@contextmanager
def all_or_nothing(
    targets: Sequence[Path],
    *,
    inputs: Iterable[str | Path] = (),
    folders: Sequence[Path] = (),
    stale: Sequence[Path] = (),
    last: Callable[[], object] = lambda: None,
    parted: Sequence[Path] = (),
) -> Iterator[list[Path]]:
    """Draft paths for these targets; at the end of a block without error they take their places.

    The drafts are made at once, so a place that cannot be written shows before the work, not after it. A draft that the
    block removes is a result that did not come about: what was in its place is stale. `stale` files go when the new
    ones come. `last` is something else to be done when all drafts are complete, before they take their places; if it
    fails, they do not. It writes the banks in `folders`. Nothing of this may be among the `inputs`. Targets that are
    `parted` may be folders of files: so may their drafts, and what is in their places.
    """
    refuse_inputs([*targets, *stale, *folders], inputs)
    if len({os.path.realpath(target) for target in targets}) < len(targets):
        raise OptionError("two results would go to the same file; give each a name of its own.")
    made: list[Path] = []
    drafts: list[Path] = []
    try:
        for directory in {target.parent for target in targets}:
            remove_leftovers(directory)
        for target in targets:
            with naming(target):
                _make_directory(target.parent, made)
                if target.is_dir() and target not in parted:
                    raise IsADirectoryError(errno.EISDIR, "is a directory")
                if target.exists() and not target.is_file() and target not in parted:
                    raise OutputError(f"{str(target)!r} is not an ordinary file; choose another place.")
                draft = draft_beside(target)
                drafts.append(draft)
                draft.open("xb").close()
        yield drafts
        with uninterrupted():
            complete = [(draft, target) for draft, target in zip(drafts, targets, strict=True) if draft.exists()]
            for draft, target in complete:
                with naming(target):
                    _settle(draft)
            last()
            written.extend(folders)
            done: list[Path] = [*folders]
            for draft, target in complete:
                with naming(target, kept_after(done)):
                    _take_place(draft, target)
                done.append(target)
                written.append(target)
            missing = [target for draft, target in zip(drafts, targets, strict=True) if (draft, target) not in complete]
            for old in (*stale, *missing):
                with naming(old, kept_after(done)):
                    _remove(old)
            made.clear()
    finally:
        with uninterrupted():
            for draft in drafts:
                with suppress(OSError):
                    _remove(draft)
            for directory in reversed(made):
                with suppress(OSError):
                    directory.rmdir()


def write_each(
    writers: Mapping[Path, Callable[[Path], object]],
    *,
    inputs: Iterable[str | Path] = (),
    stale: Sequence[Path] = (),
    parted: Sequence[Path] = (),
) -> list[Path]:
    """Write every target with its function of a draft, all or nothing; those that came about."""
    targets = list(writers)
    with all_or_nothing(targets, inputs=inputs, stale=stale, parted=parted) as drafts:
        for draft, target in zip(drafts, targets, strict=True):
            with naming(target):
                writers[target](draft)
        return [target for draft, target in zip(drafts, targets, strict=True) if draft.exists()]


def _make_directory(directory: Path, made: list[Path]) -> None:
    """Make a directory and those above it, and take note of each."""
    missing = []
    while not directory.exists():
        missing.append(directory)
        directory = directory.parent
    for new in reversed(missing):
        made.append(new)
        new.mkdir()


def _settle(draft: Path) -> None:
    """See to it that the bytes are on the disk: some file systems complain of lack of space only now."""
    for path in draft.iterdir() if draft.is_dir() else [draft]:
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _take_place(draft: Path, target: Path) -> None:
    """Move a file or a folder to its place. A folder cannot replace anything, so that is moved aside first."""
    aside = draft_beside(target) if target.exists() and (target.is_dir() or draft.is_dir()) else None
    if aside is not None:
        os.replace(target, aside)
    try:
        os.replace(draft, target)
    except OSError:
        if aside is not None:
            os.replace(aside, target)
        raise
    if aside is not None:
        _remove(aside)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


STOPS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


_put_off: list[dict[int, Any]] = []  # what would answer signals, outside of each `uninterrupted` that we are in
_heard: list[int] = []  # signals that came within


@contextmanager
def uninterrupted() -> Iterator[None]:
    """No signal stops the block, which is meant for moments: what it would have stopped is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if not _put_off:
        _heard.clear()
    _put_off.append({stop: signal.signal(stop, _hear) for stop in STOPS if signal.getsignal(stop) is not None})
    try:
        yield
    finally:
        for stop, handler in _put_off.pop().items():
            signal.signal(stop, handler)


def _hear(number: int, frame: Any) -> None:
    _heard.append(number)


@contextmanager
def interruptible() -> Iterator[None]:
    """Within `uninterrupted` a moment of waiting, before anything is done that should not be stopped."""
    if threading.current_thread() is not threading.main_thread() or not _put_off:
        yield
        return
    outside = _put_off[0]
    for stop, handler in outside.items():
        signal.signal(stop, handler)
    try:
        while _heard:
            signal.raise_signal(_heard.pop())
        yield
    finally:
        for stop in outside:
            signal.signal(stop, _hear)


# ------------------------------------------------------------------------------------------------ locks

try:
    import fcntl

    def lock_file(file: int) -> None:
        """Lock an open file for this process alone, or fail at once; the lock ends with the file or the process."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

except ImportError:  # Windows
    import msvcrt

    def lock_file(file: int) -> None:
        """Lock an open file for this process alone, or fail at once; the lock ends with the file or the process."""
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]


BUSY = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)  # numbers of an error that means: locked


# ----------------------------------------------------------------------------------------------- drafts

_HERE = hashlib.sha256(platform.node().encode()).hexdigest()[:6]  # a folder may be shared by several machines
_DRAFT = re.compile(r"\.([0-9a-f]{6})-(\d+)-[0-9a-f]{12}\.partial")


def draft_beside(target: Path) -> Path:
    """A name for a draft of this file or folder; it tells which process on which machine is at work on it."""
    return target.parent / f".{_HERE}-{os.getpid()}-{secrets.token_hex(6)}.partial"


def remove_leftovers(directory: Path) -> None:
    """Remove the drafts of processes that are no more."""
    with suppress(OSError):
        for path in list(directory.iterdir()):
            found = _DRAFT.fullmatch(path.name)
            if found and found[1] == _HERE and not _is_alive(int(found[2])):
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    if os.name != "posix":
        return True  # there is no harmless way to ask
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


# ----------------------------------------------------------------------------- inputs are never replaced


def refuse_inputs(outputs: Iterable[Path], inputs: Iterable[str | Path]) -> None:
    """An error when a result would take the place of something that is being read, under whatever name it goes.

    Inputs may be patterns; a folder stands for itself and for the files in it.
    """
    read = {key: path for one in inputs for found in _meant(one) for path in _with_files(found) if (key := _key(path))}
    for output in outputs:
        for path in _with_files(output):
            key = _key(path)
            if key in read:
                raise OutputError(
                    f"the results would replace {str(read[key])!r}, which is being read; choose another place. Nothing "
                    "was written."
                )


def _meant(path: str | Path) -> list[Path]:
    """The paths that a path or a pattern means, as the readers take it."""
    text = os.path.expanduser(path)
    return [Path(text)] if os.path.lexists(text) else [Path(found) for found in glob.glob(text, recursive=True)]


def _with_files(path: Path) -> list[Path]:
    with suppress(OSError):
        if path.is_dir():
            return [path, *path.iterdir()]
    return [path]


def _key(path: Path) -> tuple[int, int] | None:
    """What is the same for all names of a file; None if there is none."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


# ------------------------------------------------------------------------------------ errors in sentences


@contextmanager
def naming(target: Path, kept: str = "Nothing was written.") -> Iterator[None]:
    """An operating-system error about this file becomes a sentence with a remedy."""
    try:
        yield
    except OutputError:
        raise
    except Exception as error:
        reason = reason_of(error)
        if reason is None:
            raise
        raise OutputError(f"{str(target)!r} cannot be written: {reason}. {kept}") from error


def kept_after(done: Sequence[Path]) -> str:
    """What to say of the others when one of several results cannot take its place."""
    if not done:
        return "Nothing was written."
    return f"{listed(map(str, done))} had been written before."


def reason_of(error: Exception) -> str | None:
    """What the operating system complains of, and what to do; None if the error is of another kind."""
    number = _error_number(error)
    return None if number is None else _REMEDIES.get(number, f"{os.strerror(number)}; choose another place")


def _error_number(error: Exception) -> int | None:
    """The operating system's number of an error; polars has it in its message only."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    found = re.search(r"\(os error (\d+)\)", str(error))
    return int(found[1]) if found else None
