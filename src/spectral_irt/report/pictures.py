"""Pictures for the page: SVG with its words as text, in an address of its own, so that nothing in it can run."""

from __future__ import annotations

import base64
import io
import re
from typing import TYPE_CHECKING, Any

from spectral_irt.report.blocks import Picture

if TYPE_CHECKING:
    from spectral_irt.plots.base import Display


def picture(display: Display, alt: str, caption: str = "") -> Picture:
    """The display as a picture of the page."""
    figure: Any = display.plot().figure
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")  # or saving would draw it once more, only to lay it out
    return figure_picture(figure, alt, caption)


def figure_picture(figure: Any, alt: str, caption: str = "") -> Picture:
    """A figure as a picture of the page. Its background is the page's, so that dark pages can show it too."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "spectral-irt", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = small(buffer.getvalue())
    wide, high = (round(96 * inches) for inches in figure.get_size_inches())
    data = base64.b64encode(svg.encode()).decode("ascii")
    return Picture(f"data:image/svg+xml;base64,{data}", alt=alt, width=wide, height=high, caption=caption)


def small(svg: str) -> str:
    """The picture without what no reader needs: the prologue, remarks, digits beyond a hundredth of a point."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), svg)
    return re.sub(r"\n\s*", "\n", svg)
