"""Which fit a checkpoint belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from spectral_irt.engines.checkpoint import Checkpoint, CheckpointEngine, digest_of
from spectral_irt.responses import Responses

Folder = str | Path | None
R = TypeVar("R", bound=Responses)


def checkpoint_of(folder: str | Path, estimator: Any, responses: Responses, design: Mapping[str, Any]) -> Checkpoint:
    """The checkpoint of this fit: an error if the folder has that of another. Threads make no difference."""
    options = {name: repr(value) for name, value in estimator.get_params().items() if name != "threads"}
    options["estimator"] = type(estimator).__name__
    options |= {name: digest_of(_plain(value)) for name, value in design.items() if value is not None}
    return Checkpoint(folder, {"data": responses.digest(), "options": options})


def _plain(value: Any) -> Any:
    return value.tolist() if getattr(getattr(value, "dtype", None), "hasobject", False) else value


@contextmanager
def checkpointed(folder: Folder, estimator: Any, responses: R, design: Mapping[str, Any]) -> Iterator[R]:
    """The same responses, whose sums are written down where a folder is named; it is removed when all went well."""
    if folder is None:
        yield responses
        return
    with checkpoint_of(folder, estimator, responses, design) as opened:
        yield replace(responses, engine=CheckpointEngine(responses.engine, opened))
        opened.remove()
