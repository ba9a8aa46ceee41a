"""Looking at pictures: what stands in them, where, and whether anything does."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from numpy.typing import NDArray

TOUCH = 1.0  # pixels by which the boxes of two texts may overlap: boxes are a little larger than the letters


class Picture:
    """A figure, drawn once without any window."""

    def __init__(self, ax: Any) -> None:
        self.figure = ax.figure
        canvas = FigureCanvasAgg(self.figure)
        canvas.draw()
        self.pixels: NDArray[np.uint8] = np.asarray(canvas.buffer_rgba())[..., :3].copy()

    @property
    def ink(self) -> float:
        """Share of the picture that is not white."""
        return float((self.pixels.min(axis=2) < 245).mean())

    @cached_property
    def fingerprint(self) -> NDArray[np.bool_]:
        """A coarse hash: which of 16 x 16 tiles are darker than the median tile."""
        rows = np.array_split(self.pixels.mean(axis=2), 16, axis=0)
        tiles = np.array([[tile.mean() for tile in np.array_split(row, 16, axis=1)] for row in rows])
        return tiles < np.median(tiles)

    def likeness(self, other: Picture) -> float:
        """Share of the tiles that agree."""
        return float((self.fingerprint == other.fingerprint).mean())

    @cached_property
    def texts(self) -> list[Text]:
        """Every text that is seen."""
        hidden: set[Text] = set()
        for axes in self.figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                low, high = sorted(axis.get_view_interval())
                slack = 1e-9 * max(abs(low), abs(high), 1)
                for tick in axis.get_major_ticks() + axis.get_minor_ticks():
                    if not axes.axison or not low - slack <= tick.get_loc() <= high + slack:
                        hidden |= {tick.label1, tick.label2}  # they exist and are not drawn
        every = self.figure.findobj(Text)
        return [text for text in every if text.get_visible() and text.get_text().strip() and text not in hidden]

    @cached_property
    def boxes(self) -> list[tuple[str, Any]]:
        return [(text.get_text(), Text.get_window_extent(text)) for text in self.texts]  # without arrows

    def overlaps(self) -> list[tuple[str, str]]:
        """Pairs of texts of which one lies on the other."""
        found = []
        for i, (text, a) in enumerate(self.boxes):
            for other, b in self.boxes[:i]:
                wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
                if wide > TOUCH and high > TOUCH:
                    found.append((other, text))
        return found

    def cut(self) -> list[str]:
        """Texts that the edge of the figure cuts."""
        width, height = self.figure.bbox.size
        return [
            text
            for text, box in self.boxes
            if box.x0 < -TOUCH or box.y0 < -TOUCH or box.x1 > width + TOUCH or box.y1 > height + TOUCH
        ]
