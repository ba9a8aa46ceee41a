"""Display: a table and the picture of it."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.plots.look import new_axes
from spectral_irt.plots.saving import save_figure
from spectral_irt.tables import Columns, make_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Display(ABC):
    """What every display offers: `frame()`, `plot()`, `save()`; a notebook shows the picture."""

    frame_kind: str | None = None

    @abstractmethod
    def columns(self) -> Columns:
        """The columns of `frame`."""

    @abstractmethod
    def draw(self, ax: Axes) -> None:
        """Draw into these axes."""

    def size(self) -> tuple[float, float]:
        """Inches of a figure of its own."""
        return 6.4, 4.6

    def frame(self) -> Any:
        """The numbers of the picture as a dataframe of the library that the data came in."""
        return make_table(self.columns(), self.frame_kind)

    def plot(self, ax: Axes | None = None) -> Axes:
        """The picture, in these axes or in a figure of its own (`.figure` of what is returned)."""
        ax = new_axes(*self.size()) if ax is None else ax
        self.draw(ax)
        return ax

    def save(self, path: str | Path) -> Path:
        """Write the picture as .svg, .png or .pdf; the same data give the same bytes."""
        figure: Any = self.plot().figure
        return save_figure(figure, Path(path))

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {len(next(iter(self.columns().values()))):,} rows; frame(), plot(), save(path)>"
        )

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        figure: Any = self.plot().figure
        figure.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()
