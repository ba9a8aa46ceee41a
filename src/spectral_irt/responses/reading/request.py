"""What the caller wants, checked: how to score, what the columns are, and what to do on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spectral_irt.responses.pack import Duplicates
from spectral_irt.responses.scorer import Scoring


@dataclass(frozen=True)
class Asked:
    """What the caller said about the layout."""

    format: str = "auto"
    user: Any = None
    item: Any = None
    response: Any = None
    orient: str = "users"
    ignore: tuple[Any, ...] = ()
    items: tuple[Any, ...] = ()
    order_by: Any = None


@dataclass(frozen=True)
class Request:
    """Everything the caller wants."""

    scoring: Scoring
    asked: Asked
    duplicates: Duplicates = "error"
    source: str = "the data"
    frame_kind: str | None = None
    progress: Callable[[float, str], None] | None = None
    part: bool = False  # of the data only: what has to be true of all of them together is not asked

    def report(self, share: float) -> None:
        if self.progress is not None:
            self.progress(share, f"reading {self.source}")
