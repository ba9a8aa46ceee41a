"""An engine on a Dask cluster: parts stay on the workers, parameters go there as arguments of tasks.

A shard of parts makes one task of a pass. Tasks are pure and depend on those that made their shard, down to the one
that read the file: when a worker dies, Dask makes what it held again. Results are added in the order of the parts.
"""

from __future__ import annotations

import os
import pkgutil
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectral_irt import __version__
from spectral_irt.engine.base import Each, Engine, Kernel, Prepared, add_up, identity, one_blas_thread
from spectral_irt.errors import ClusterError, OptionError, SpectralIrtError
from spectral_irt.installation import install_extra
from spectral_irt.text import in_short, without_secrets

if TYPE_CHECKING:
    from distributed import Client, Future

SCHEMES = ("tcp", "tls", "ws", "wss")  # protocols that schedulers speak without further packages
ANSWERS_WITHIN = 5.0  # seconds that a scheduler has to answer at first
WORKERS_WITHIN = 60.0  # seconds without any worker after which the work is given up
LOOKS_EVERY = 5.0  # seconds between two looks at whether the cluster still lives
TASKS_PER_THREAD = 2  # shards for every thread of a worker, of parts that are made here: fewer wait for the slowest
ADDED_TOGETHER = 16  # sums that one task adds on the workers, so that few results travel to this process
LARGE = 65_536  # bytes of arguments from which they travel once, as a task of their own, and not with every task
AT_ONCE = 16  # shards whose results are fetched together

# What a worker does. A shard is a run of parts that are kept together and make one task. Every function is pure: a
# cluster that lost a result makes it again.


def size_of(thing: Any) -> int:
    """About how many bytes a thing holds, so that the scheduler does not take it for something easily moved."""
    if isinstance(thing, np.ndarray):
        return int(thing.nbytes)
    if isinstance(thing, bytes | str):
        return len(thing)
    if isinstance(thing, list | tuple | dict):
        entries = thing.values() if isinstance(thing, dict) else thing
        return 8 * len(thing) + sum(map(size_of, entries))
    attributes = getattr(thing, "__dict__", None)
    if attributes is None or isinstance(thing, type):
        return 64
    return 64 + size_of(attributes)


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
class KernelCall(Sized):
    """A kernel, its arguments that are the same for all parts, and the version of the package that asks."""

    kernel: Kernel
    args: tuple[Any, ...]
    version: str = __version__


@dataclass(frozen=True, eq=False)
class PartArgs(Sized):
    """Which parts of a shard are meant, and the arguments of each."""

    places: Sequence[int]
    each: Sequence[Sequence[Any]]


def task(gather: Callable[[Iterator[Any]], Any], shard: Shard, own: PartArgs, call: KernelCall) -> Any:
    """What is made of what the kernel gives for every part, in their order: a list, a sum, or parts."""
    if call.version != __version__:  # a worker that joined later
        raise ClusterError(other_versions([__version__], call.version))
    with one_blas_thread():  # the worker's threads are all there are
        each = zip(own.places, own.each, strict=True)
        return gather(call.kernel(shard.parts[place], *args, *call.args) for place, args in each)


def keep(results: Iterator[Any]) -> Shard:
    return Shard(list(results))


def advance(results: Iterator[Any]) -> Shard:
    new, sums = zip(*results, strict=True)
    return Shard(new, add_up(sums))


def sum_of(*totals: Any) -> Any:
    return add_up(total.total if isinstance(total, Shard) else total for total in totals)


def other_versions(theirs: Sequence[str], ours: str) -> str:
    return (
        f"the workers run spectral-irt {' and '.join(sorted(set(theirs)))}, and this program is {ours}. Install the "
        f"same version on all of them: pip install spectral-irt=={ours}"
    )


@dataclass(frozen=True, eq=False)
class RemotePart:
    shard: Future[Any]
    place: int


class DaskEngine(Engine):
    """The workers of a Dask cluster; results equal those of `LocalEngine` up to rounding."""

    remote: ClassVar[bool] = True

    def __init__(self, client: Client) -> None:
        self.client = client
        self._own: Client | None = None  # that `connect` made
        self.threads = self._workers()

    def map(self, kernel: Kernel, parts: Sequence[Any], *args: Any, each: Each = ()) -> Iterator[Any]:
        """What the kernel gives for every part, in order; results wait on the workers until they are taken."""
        futures = self._tasks(list, kernel, parts, args, each)
        while futures:
            # a result is let go when it was taken
            some = futures[:AT_ONCE]
            futures = futures[AT_ONCE:]
            for results in self.gather(some):
                yield from results

    def sum(self, kernel: Kernel, parts: Sequence[Any], *args: Any, each: Each = ()) -> Any:
        """The sum of what the kernel gives over the parts; added in their order, by shards first."""
        return self._sum(self._tasks(add_up, kernel, parts, args, each))

    def prepare(self, kernel: Kernel, parts: Sequence[Any], *args: Any, each: Each = ()) -> Prepared:
        return self._prepare(self._tasks(keep, kernel, parts, args, each), parts)

    def map_and_sum(self, kernel: Kernel, parts: Sequence[Any], *args: Any) -> tuple[Prepared, Any]:
        futures = self._tasks(advance, kernel, parts, args, ())
        return self._prepare(futures, parts), self._sum(self.submit_all(sum_of, futures))

    def hold(self, parts: Iterable[Any]) -> Prepared:
        """Parts that were made here, sent to the workers; the scheduler keeps them too, for a worker that dies."""
        parts = tuple(parts)
        return self._prepare(self.submit_all(identity, [shard for shard, _ in self._shards(parts)]), parts)

    def submit_all(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        import dask

        quiet = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}  # parameters are arguments on purpose
        with dask.config.set(quiet), self._errors():
            name = f"spectral-irt-{function.__name__}"
            return list(self.client.map(function, *map(list, arguments), key=name, pure=False))

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """What these tasks gave, in order, when all are done; an error of one of them is raised here."""
        from distributed import KilledWorker

        self._wait(futures)
        for error in (future.exception() for future in futures if future.status == "error"):
            if isinstance(error, KilledWorker):
                raise ClusterError(
                    f"a task ended {error.allowed_failures + 1} workers, one after the other, most likely for want of "
                    "memory. Give the workers more memory, or start more of them."
                ) from error
            raise error
        with self._errors():
            return list(self.client.gather(list(futures)))

    def shards_of(self, futures: Sequence[Any], counts: Sequence[int]) -> tuple[RemotePart, ...]:
        return tuple(RemotePart(future, k) for future, n in zip(futures, counts, strict=True) for k in range(n))

    def sees(self, path: Path) -> bool:
        with self._errors():
            return all(self.client.run(os.path.exists, str(path.absolute())).values())

    def close(self) -> None:
        """End the connection that `connect` began."""
        if self._own is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._own.close()

    def _tasks(
        self, gather: Callable[..., Any], kernel: Kernel, parts: Sequence[Any], args: tuple[Any, ...], each: Each
    ) -> list[Any]:
        arguments = list(zip(*each, strict=True)) if each else [()] * len(parts)
        if len(arguments) != len(parts):
            raise ValueError("each must have one entry for every part")
        call: Any = KernelCall(kernel, args)
        if size_of(vars(call)) > LARGE:  # never as a keyword of `client.map`: its key would be the keyword's name
            (call,) = self.submit_all(identity, [call])
        shards = []
        owns = []
        start = 0
        for source, places in self._shards(parts):
            shards.append(source)
            owns.append(PartArgs(places, arguments[start : start + len(places)]))
            start += len(places)
        return self.submit_all(task, [gather] * len(shards), shards, owns, [call] * len(shards))

    def _shards(self, parts: Sequence[Any]) -> list[tuple[Any, list[int]]]:
        """Runs of parts that lie together, and which of the shard they are; parts of this process in new shards."""
        runs: list[tuple[Any, list[int]]] = []
        most = -(-len(parts) // (TASKS_PER_THREAD * self.threads))
        for far, together in groupby(parts, lambda part: id(part.shard) if isinstance(part, RemotePart) else None):
            neighbors = list(together)
            if far is not None:
                runs.append((neighbors[0].shard, [part.place for part in neighbors]))
                continue
            for k in range(0, len(neighbors), most):
                of_shard = tuple(neighbors[k : k + most])
                runs.append((Shard(of_shard), list(range(len(of_shard)))))
        return runs

    def _prepare(self, futures: Sequence[Any], parts: Sequence[Any]) -> Prepared:
        counts = [len(places) for _, places in self._shards(parts)]
        return Prepared(self.shards_of(futures, counts), self)

    def _sum(self, futures: list[Any]) -> Any:
        while len(futures) > ADDED_TOGETHER:
            groups = [futures[k : k + ADDED_TOGETHER] for k in range(0, len(futures), ADDED_TOGETHER)]
            with self._errors():
                futures = [self.client.submit(sum_of, *group, pure=False) for group in groups]
        return add_up(self.gather(futures))

    def _wait(self, futures: Sequence[Any]) -> None:
        from distributed import wait

        alive = time.monotonic()
        while True:
            with self._errors(), self.client.as_current(), suppress(TimeoutError):
                wait(list(futures), timeout=LOOKS_EVERY)
                return
            with self._errors():
                alive = time.monotonic() if self.client.nthreads() else alive
            if time.monotonic() - alive > WORKERS_WITHIN:
                raise ClusterError(
                    f"the cluster has had no worker for {WORKERS_WITHIN:.0f} seconds, and the work stopped. Start "
                    "workers, and then this again."
                )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What Dask raises when the cluster is gone, said in a sentence."""
        from asyncio import CancelledError
        from concurrent.futures import CancelledError as Cancelled

        try:
            yield
        except SpectralIrtError:
            raise
        except (CancelledError, Cancelled, OSError, RuntimeError) as error:
            raise ClusterError(
                f"the connection to the cluster was lost ({_reason(error)}), and the work stopped. Check the scheduler "
                "and the workers, and start again."
            ) from error

    def _workers(self) -> int:
        """How many threads the workers have, once there is one, and all run this version of the package."""
        with self._errors():
            try:
                self.client.wait_for_workers(1, timeout=WORKERS_WITHIN)
            except TimeoutError:
                address = getattr(self.client.scheduler, "address", "the address")
                raise ClusterError(
                    f"the scheduler at {address} has no workers. Start some, for instance with 'dask worker "
                    f"{address}', and then this again."
                ) from None
            versions = self.client.run(pkgutil.resolve_name, "spectral_irt:__version__", on_error="return")
            threads = sum(self.client.nthreads().values())
        without = [worker for worker, version in versions.items() if not isinstance(version, str)]
        if without:
            raise ClusterError(
                f"{len(without)} of {len(versions)} workers do not have spectral-irt ({without[0]}). Install it there: "
                f"pip install 'spectral-irt[cluster]=={__version__}'"
            )
        others = sorted({version for version in versions.values() if version != __version__})
        if others:
            raise ClusterError(other_versions(others, __version__))
        return max(threads, 1)

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("answers on a Dask cluster cannot be pickled; read them again where they are needed.")


def _reason(error: BaseException) -> str:
    return "its scheduler is gone" if "cancelled" in str(error) else in_short(error)[:200]


def _check_address(address: str) -> None:
    """An error where no scheduler can be at this address, before a client is half made."""
    from distributed import comm

    shown = without_secrets(address)
    try:
        scheme, place = comm.parse_address(address)
        comm.parse_host_port(place)
    except ValueError:
        raise OptionError(f"`dask` is {shown!r}, which is not an address; it looks like tcp://HOST:8786.") from None
    if scheme not in SCHEMES:
        schemes = ", ".join(f"{known}://" for known in SCHEMES)
        raise OptionError(f"`dask` is {shown!r}; the address of a scheduler begins with {schemes}.")


def _client_at(address: str) -> Any:
    """A client of the scheduler at this address."""
    import distributed

    class Client(distributed.Client):
        """A client that did not come about has nothing to close, and does not try when it is thrown away."""

        def __init__(self, *args: Any, **options: Any) -> None:
            try:
                super().__init__(*args, **options)
            except BaseException:
                self.status = "closed"
                raise

    try:
        return Client(address, timeout=ANSWERS_WITHIN, set_as_default=False)
    except OSError:
        raise ClusterError(
            f"no Dask scheduler answers at {without_secrets(address)} within {ANSWERS_WITHIN:.0f} seconds. Check the "
            "address, and that the scheduler runs and can be reached from here."
        ) from None
    except Exception as error:  # of the protocol: certificates that are not there, for instance
        reason = in_short(error).replace("`", "'")  # what is in backticks would be taken for an option of ours
        raise ClusterError(
            f"no connection to a Dask scheduler at {without_secrets(address)}: {reason}. Check the address, and Dask's "
            "settings of this machine."
        ) from None


def connect(where: Any) -> DaskEngine:
    """The engine of a cluster: a client, or the address of a scheduler, whose connection ends with `close()`."""
    try:
        import distributed
    except ImportError:
        raise ClusterError(
            f"a Dask cluster needs two more packages; install them with: {install_extra('cluster')}"
        ) from None
    if isinstance(where, DaskEngine):
        return where
    if isinstance(where, distributed.Client):
        return DaskEngine(where)
    if not isinstance(where, str) or not where.strip():
        raise OptionError(f"`dask` is {where!r}; it can be a distributed.Client or 'tcp://HOST:PORT'.")
    _check_address(where)
    client = _client_at(where)
    try:
        engine = DaskEngine(client)
    except BaseException:
        client.close()
        raise
    engine._own = client
    return engine
