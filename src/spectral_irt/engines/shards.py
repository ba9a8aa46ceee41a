"""What a worker of a cluster does: a kernel applied to the parts that lie on it.

A shard is a run of parts that are kept together and make one task. Every function here is pure: it reads a shard and
gives something new, so that a cluster that lost a result makes it again. Nothing here needs Dask.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectral_irt import __version__
from spectral_irt.engines.blas import one_blas_thread
from spectral_irt.engines.engine import Kernel, added
from spectral_irt.errors import ClusterError


def size_of(thing: Any) -> int:
    """About how many bytes a thing holds, so that the scheduler does not take it for something easily moved."""
    if isinstance(thing, np.ndarray):
        return int(thing.nbytes)
    if isinstance(thing, bytes | str):
        return len(thing)
    if isinstance(thing, list | tuple):
        return sum(map(size_of, thing)) + 8 * len(thing)
    if isinstance(thing, dict):
        return sum(map(size_of, thing.values()))
    held = getattr(thing, "__dict__", None)
    return 64 if held is None or isinstance(thing, type) else 64 + size_of(held)


class Sized:
    """Objects whose size Dask asks for (`sys.getsizeof`), and into which it does not look otherwise."""

    def __sizeof__(self) -> int:
        return size_of(vars(self))


@dataclass(frozen=True, eq=False)
class Shard(Sized):
    """Parts that lie together on one worker; and, if they were made in one go with a sum, that sum."""

    parts: Sequence[Any]
    total: Any = None


@dataclass(frozen=True, eq=False)
class Call(Sized):
    """A kernel, its arguments that are the same for all parts, and the version of the package that asks."""

    kernel: Kernel
    args: tuple[Any, ...]
    version: str = __version__


@dataclass(frozen=True, eq=False)
class Own(Sized):
    """Which parts of a shard are meant, and the arguments of each."""

    places: Sequence[int]
    each: Sequence[Sequence[Any]]


def results(shard: Shard, own: Own, call: Call) -> list[Any]:
    """What the kernel gives for every part."""
    return list(_each(shard, own, call))


def total(shard: Shard, own: Own, call: Call) -> Any:
    """The sum of what the kernel gives, in the order of the parts."""
    return added(_each(shard, own, call))


def kept(shard: Shard, own: Own, call: Call) -> Shard:
    """What the kernel gives for every part, as parts."""
    return Shard(list(_each(shard, own, call)))


def advanced(shard: Shard, own: Own, call: Call) -> Shard:
    """New parts and a sum: the kernel gives a pair for every part."""
    new, sums = zip(*_each(shard, own, call), strict=True)
    return Shard(new, added(sums))


def total_of(shard: Shard) -> Any:
    return shard.total


def sum_of(*totals: Any) -> Any:
    return added(totals)


def itself(thing: Any) -> Any:
    return thing


def _each(shard: Shard, own: Own, call: Call) -> Iterator[Any]:
    if call.version != __version__:  # a worker that joined later
        raise ClusterError(other_versions([__version__], call.version))
    with one_blas_thread():  # the worker's threads are all there are
        for place, each in zip(own.places, own.each, strict=True):
            yield call.kernel(shard.parts[place], *each, *call.args)


def other_versions(theirs: Sequence[str], ours: str) -> str:
    """The complaint about workers that run another version of the package."""
    return (
        f"the workers run spectral-irt {' and '.join(sorted(set(theirs)))}, and this program is {ours}. Install the "
        f"same version on all of them: pip install spectral-irt=={ours}"
    )
