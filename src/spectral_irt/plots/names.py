"""Names in a picture: shown as plain text whatever they hold, short enough, and clear of each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.errors import printable
from spectral_irt.plots.look import INK, SMALL
from spectral_irt.responses.block import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

LONGEST = 26  # characters of a name that is shown in full
MISSING = "\u25a1"  # in place of a character that the font lacks
NAMED = 8  # points of a cloud that get a name
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}  # an item called $x^2$ is not a formula


def shown(label: object, longest: int = LONGEST) -> str:
    r"""A label as it stands in a picture: on one line, in characters that the font has, long ones without their middle.

    >>> shown("two\nlines"), shown("a very long name of an item, form B")
    ('two\\nlines', 'a very long na…tem, form B')
    """
    text = printable(label)
    if len(text) > longest:
        tail = (longest - 1) * 4 // 9
        text = f"{text[: longest - 1 - tail]}…{text[-tail:]}"
    return "".join(character if character.isascii() or _drawable(character) else MISSING for character in text)


@cache
def _font() -> Any:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return get_font(findfont(FontProperties()))


@lru_cache(maxsize=65_536)
def _drawable(character: str) -> bool:
    return bool(_font().get_char_index(ord(character)))


# ------------------------------------------------------------------------------------- one below the other


def apart(places: Iterable[float], gap: float, low: float = -np.inf, high: float = np.inf) -> Floats:
    """Places at least `gap` apart, in the same order, as near to the given ones as can be (least squares).

    Where neighbors are too close they share the distance: isotonic regression of place - rank * gap.

    >>> apart([0.0, 0.1, 5.0], 1.0).tolist()
    [-0.45, 0.55, 5.0]
    """
    wanted = np.asarray(list(places), dtype=float)
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(wanted))
    pools: list[tuple[float, int]] = []  # mean and size
    for value in (wanted[order] - steps).tolist():
        size = 1
        while pools and pools[-1][0] > value:
            mean, more = pools.pop()
            value, size = (value * size + mean * more) / (size + more), size + more
        pools.append((value, size))
    flat = np.concatenate([np.full(size, mean) for mean, size in pools]) if pools else wanted
    out = np.empty(len(wanted))
    out[order] = np.clip(flat, low, max(high - gap * (len(wanted) - 1), low)) + steps
    return out


def name_rows(ax: Axes, labels: Sequence[object], *, marked: Iterable[bool] = (), longest: int = LONGEST) -> None:
    """Names along the y axis, the first on top; marked ones in bold."""
    ax.set_yticks(range(len(labels)), [shown(label, longest) for label in labels], fontsize=SMALL, **PLAIN)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    for tick, bold in zip(ax.get_yticklabels(), marked, strict=False):
        tick.set_fontweight("bold" if bold else "normal")


# --------------------------------------------------------------------------------------- beside points

# Where a name may stand: shift from its point in points, and which corner of the name is there.
_BESIDE = [
    (dx * step, dy * step, ha, va)
    for step in (1.0, 2.2, 3.6, 5.2)
    for dx, dy, ha, va in (
        (5, 0, "left", "center"),
        (-5, 0, "right", "center"),
        (4, 4, "left", "bottom"),
        (4, -4, "left", "top"),
        (-4, 4, "right", "bottom"),
        (-4, -4, "right", "top"),
        (0, 6, "center", "bottom"),
        (0, -6, "center", "top"),
    )
]


def name_points(ax: Axes, x: Floats, y: Floats, labels: Sequence[object]) -> list[Text]:
    """A name beside each of these points, most important first; one that finds no free place is left out."""
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.transforms import Bbox

    figure: Any = ax.get_figure(root=True)
    figure.draw_without_rendering()  # now the axes are where they will be
    renderer = RendererAgg(16, 16, figure.dpi)
    frame = ax.get_window_extent()
    spots = ax.transData.transform(np.column_stack([x, y])) if len(x) else np.zeros((0, 2))
    taken = [Bbox.from_bounds(px - 3, py - 3, 6, 6) for px, py in spots]
    named: list[Text] = []
    for k, label in enumerate(labels):
        for dx, dy, ha, va in _BESIDE:
            text = ax.annotate(
                shown(label),
                (float(x[k]), float(y[k])),
                (dx, dy),
                textcoords="offset points",
                ha=ha,
                va=va,
                fontsize=SMALL,
                color=INK,
                arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}
                if abs(dx) + abs(dy) > 9
                else None,
                **PLAIN,
            )
            text.set_in_layout(False)
            box = text.get_window_extent(renderer)
            inside = box.x0 >= frame.x0 and box.x1 <= frame.x1 and box.y0 >= frame.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for j, other in enumerate(taken) if j != k or abs(dx) > 9):
                taken.append(box)
                named.append(text)
                break
            text.remove()
    return named
