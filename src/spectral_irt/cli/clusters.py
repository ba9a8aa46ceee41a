"""The cluster that a command works on: reached when it is first needed, left when the command ends."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spectral_irt.cli.progress import Progress
    from spectral_irt.engine.dask import DaskEngine

_reached: dict[str, DaskEngine] = {}


def cluster(address: str | None, progress: Progress) -> DaskEngine | None:
    """The cluster at this address, or in processes of this machine; None where no cluster was named."""
    if address is None:
        return None
    if address not in _reached:
        from spectral_irt.engine.dask import connect

        progress.say("connecting to the cluster")
        _reached[address] = connect(address)
        for name in list(logging.root.manager.loggerDict):  # what they say in pages is said here in a sentence
            if name.split(".")[0] in ("distributed", "tornado", "asyncio"):
                logging.getLogger(name).setLevel(logging.CRITICAL)
    return _reached[address]


def leave_clusters() -> None:
    """Close connections, and end the processes that were started."""
    while _reached:
        _reached.popitem()[1].close()
