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
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

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

MOST_ATTEMPTS = 10  # to make a draft in a folder that other processes make and remove

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
    is done when all drafts are complete and writes the banks in `folders`; if it fails, no draft takes its place.

    Where a target is a symbolic link, the file that it leads to is replaced, and the link stays. A file that is
    replaced keeps its permissions."""
    refuse_addresses([*targets, *folders])
    refuse_inputs([*targets, *stale, *folders], inputs)
    refuse_same_file(targets)
    real_places = [Path(os.path.realpath(target)) for target in targets]
    new_folders: list[Path] = []
    drafts: list[Path] = []
    try:
        for directory in set(map(attrgetter("parent"), real_places)):
            remove_leftovers(directory)
        for folder in folders:
            near = next(above for above in (folder.absolute(), *folder.absolute().parents) if above.exists())
            with errors_with_target(folder):
                tempfile.TemporaryFile(dir=near).close()
        for target, place in zip(targets, real_places, strict=True):
            with errors_with_target(target):
                if place.is_dir():
                    raise IsADirectoryError(errno.EISDIR, "is a directory")
                if place.exists() and not place.is_file():
                    raise OutputError(f"{str(target)!r} is not an ordinary file; choose another place.")
                draft = draft_beside(place)
                drafts.append(draft)
                _create_draft(draft, place, new_folders)
        yield drafts
        draft_of = dict(zip(targets, drafts, strict=True))
        place_of = dict(zip(targets, real_places, strict=True))
        for target, draft in draft_of.items():
            with errors_with_target(target), suppress(FileNotFoundError), draft.open("rb") as file:
                os.fsync(file.fileno())  # some file systems complain of lack of space only now
        before = len(written)
        if last is not None:
            last()
        with without_interruption():
            for target in (*targets, *stale):
                remark = "Nothing was written."
                if written[before:]:
                    remark = f"{listed(map(str, written[before:]))} had been written before."
                with errors_with_target(target, remark):
                    if target in draft_of and draft_of[target].exists():
                        _move_into_place(draft_of[target], place_of[target])
                        written.append(target)
                    else:
                        _remove(target)
            new_folders.clear()
    finally:
        with without_interruption():
            for draft in drafts:
                with suppress(OSError):
                    _remove(draft)
            for directory in reversed(new_folders):
                with suppress(OSError):
                    directory.rmdir()


def write_each(writers: Mapping[Path, Callable[[Path], object]], **places: Any) -> list[Path]:
    """Write every target with its function of a draft, and the options of `all_or_nothing`; those that came about."""
    targets = list(writers)
    with all_or_nothing(targets, **places) as drafts:
        for draft, target in zip(drafts, targets, strict=True):
            with errors_with_target(target):
                writers[target](draft)
        return [target for draft, target in zip(drafts, targets, strict=True) if draft.exists()]


def _make_folders(folder: Path, new_folders: list[Path]) -> None:
    """Make a folder and those above it; `new_folders` gets those that were not there. Others may be at it, too."""
    for above in (*reversed(folder.parents), folder):
        try:
            above.mkdir()
        except OSError:  # of a folder that is there, systems say that it exists, or that it cannot be written
            if not above.is_dir():
                raise
        else:
            new_folders.append(above)


def _create_draft(draft: Path, place: Path, new_folders: list[Path]) -> None:
    """An empty draft that is no more open to others than the file that it is to replace, and the folders above it;
    `new_folders` gets those that were not there."""
    private = stat.S_IRUSR | stat.S_IWUSR
    mode = 0o666  # as for every new file: the umask of the process takes its part away
    for attempt in range(MOST_ATTEMPTS):
        try:
            _make_folders(draft.parent, new_folders)
            if place.exists():
                mode = stat.S_IMODE(place.stat().st_mode) & 0o777 | private
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
            return
        except FileNotFoundError:  # a process that failed has just removed the folder that it had made
            if attempt == MOST_ATTEMPTS - 1:
                raise


def _move_into_place(draft: Path, place: Path) -> None:
    if place.exists():
        draft.chmod(stat.S_IMODE(place.stat().st_mode))
    os.replace(draft, place)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


STOPS = {signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}  # Windows has no SIGHUP


@contextmanager
def without_interruption() -> Iterator[None]:
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
    if os.name != "posix":
        return
    with suppress(OSError):
        for path in list(directory.iterdir()):
            draft = _DRAFT.fullmatch(path.name)
            if draft is not None and draft[1] == _HERE:
                try:
                    os.kill(int(draft[2]), 0)
                except ProcessLookupError:
                    with suppress(OSError):
                        _remove(path)
                except OSError:  # somebody else's, and alive
                    pass


ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:[/\\]")  # s3://logs, and s3:/logs, which is what a path makes of it


def is_address(text: str | Path) -> bool:
    """Whether this is an address such as s3://logs/results, and no path; the C: of Windows is a single letter.

    >>> is_address("s3://logs/results"), is_address(Path("gs://logs")), is_address("C:/results"), is_address("a/b")
    (True, True, False, False)
    """
    return ADDRESS.match(str(text)) is not None


def refuse_addresses(outputs: Iterable[str | Path]) -> None:
    """An error when a result would go to an address: a path of that name would be a folder of this machine."""
    for output in filter(is_address, outputs):
        scheme = str(output).partition(":")[0]
        raise OutputError(
            f"results are written to folders of this machine, and {scheme}:// is an address; name a folder, and copy "
            "the results from there. Nothing was written."
        )


def refuse_same_file(targets: Sequence[Path]) -> None:
    """An error when two results would go to the same file."""
    first: dict[str, Path] = {}
    for target in targets:
        place = os.path.realpath(target)
        if place in first:
            raise OptionError(
                f"two results would go to the same file, {str(first[place])!r} and {str(target)!r}; give each a name "
                "of its own."
            )
        first[place] = target


def local_path(source: str | os.PathLike[str]) -> str | None:
    """The path of an input on this machine, with ~ for the home directory, or of file://; None where it is elsewhere.

    >>> local_path("file:///data/my%20file.csv"), local_path("https://host/a.csv"), local_path("-")
    ('/data/my file.csv', None, None)
    """
    text = os.fsdecode(os.path.expanduser(os.fspath(source)))
    if "://" not in text:
        return None if text == "-" else text
    try:
        parts = urlsplit(text)
    except ValueError:  # no address, as whoever reads it will say
        return None
    return unquote(parts.path) if parts.scheme == "file" else None


def input_paths(source: str | os.PathLike[str]) -> list[Path]:
    """Every file on this machine that an input may mean: itself, all that a pattern matches, all files below a folder.

    Reading chooses among them, and no result may take the place of one of them."""
    path = local_path(source)
    if path is None or "\0" in path:
        return []
    # A file may well be called "answers[1].csv": a pattern is only what is no file itself.
    if not os.path.lexists(path) and glob.has_magic(path):
        return sorted(Path(name) for name in glob.glob(path, recursive=True) if os.path.isfile(name))
    if os.path.isdir(path):
        return sorted(inner for inner in Path(path).rglob("*") if inner.is_file())
    return [Path(path)]


def refuse_inputs(outputs: Iterable[Path], inputs: Iterable[str | Path]) -> None:
    """An error when a result would take the place of something that is being read, under whatever name it goes."""
    sources: dict[tuple[int, int], Path] = {}
    for source in inputs:
        paths = list(input_paths(source))
        place = local_path(source)
        if place is not None:
            paths.insert(0, Path(place))
        for path in paths:
            sources.update(dict.fromkeys(_identity(path), path))
    for output in outputs:
        inside = output.iterdir() if output.is_dir() else ()
        for path in (output, *inside):
            for key in _identity(path):
                if key in sources:
                    raise OutputError(
                        f"the results would replace {str(sources[key])!r}, which is being read; choose another place. "
                        "Nothing was written."
                    )


def _identity(path: Path) -> list[tuple[int, int]]:
    """What is the same for all names of a file; nothing where there is none."""
    try:
        state = path.stat()
    except (OSError, ValueError):
        return []
    return [(state.st_dev, state.st_ino)]


def refuse_foreign(paths: Iterable[Path], mark: str) -> None:
    """An error where one of these is a file that does not say at its beginning, by a mark, that we made it."""
    foreign = []
    for path in paths:
        with errors_with_target(path):
            if path.is_file():
                with path.open("rb") as file:
                    head = file.read(4_000)
                if head and mark.encode() not in head:
                    foreign.append(str(path))
    if foreign:
        raise OutputError(
            f"{listed(foreign)} exists, and spectral-irt did not make it; choose another place, or move it away. "
            "Nothing was written."
        )


@contextmanager
def errors_with_target(target: Path, kept: str = "Nothing was written.") -> Iterator[None]:
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
    if not number:
        return None
    return _REMEDIES.get(number, f"{os.strerror(number)}; choose another place")
