"""Names in a picture: shown as plain text whatever they hold, short enough, and clear of each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.data.block import Floats
from spectral_irt.errors import printable
from spectral_irt.plots.style import INK, SMALL, root_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

LONGEST = 26  # characters of a name that is shown in full
MISSING = "\u25a1"  # in place of a character that the font lacks
NAMED = 8  # points of a cloud that get a name
FAR = 9.0  # points from which a line leads from a name to its point
MARK = 3.0  # pixels around the middle of a point that names keep clear of
# Fonts that have what matplotlib's own lacks (East Asian, Indic and Arabic scripts, symbols), where they are installed.
FURTHER = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Source Han Sans SC", "WenQuanYi Zen Hei"),
    *("PingFang SC", "Hiragino Sans", "Apple SD Gothic Neo", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic"),
    *("Noto Sans Devanagari", "Nirmala UI", "Noto Sans Arabic", "Noto Sans Thai", "Arial Unicode MS", "Noto Sans"),
    *("Noto Sans Symbols2", "Noto Emoji", "Segoe UI Symbol"),
)


def shown(label: object, longest: int = LONGEST) -> str:
    r"""A label as it stands in a picture: on one line, in characters that the font has, long ones without their middle.

    >>> shown("two\nlines"), shown("a very long name of an item, form B")
    ('two\\nlines', 'a very long na…tem, form B')
    """
    text = printable(label)
    if len(text) > longest:
        tail = (longest - 1) * 4 // 9
        text = f"{text[: longest - 1 - tail]}…{text[-tail:]}"
    return _in_the_font(text)


def _in_the_font(text: str) -> str:
    return "".join(character if character.isascii() or _drawable(character) else MISSING for character in text)


def all_shown(labels: Iterable[object], longest: int = LONGEST) -> list[str]:
    """Labels that stand in one picture: cut where they are alike, and never so that two of them look the same.

    >>> all_shown(["a very long name of an item, form A", "a very long name of an item, form B"], 16)
    ['a very long na…A', 'a very long na…B']
    """
    from spectral_irt.terminal.labels import shortened

    return [_in_the_font(text) for text in shortened(labels, longest, "…")]


def as_is() -> dict[str, Any]:
    """How a name is drawn: an item called $x^2$ is not a formula, and one in another script finds its font."""
    return {"parse_math": False, "usetex": False, "fontfamily": list(_families())}


@cache
def _families() -> tuple[str, ...]:
    from matplotlib.font_manager import fontManager

    there = set(fontManager.get_font_names())
    return ("DejaVu Sans", *(name for name in FURTHER if name in there))  # the first comes with matplotlib


@cache
def _fonts() -> tuple[Any, ...]:
    from matplotlib.font_manager import findfont, get_font

    return tuple(get_font(findfont(family)) for family in _families())


@lru_cache(maxsize=65_536)
def _drawable(character: str) -> bool:
    return any(font.get_char_index(ord(character)) for font in _fonts())


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
    ax.set_yticks(range(len(labels)), all_shown(labels, longest), fontsize=SMALL, **as_is())
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


def name_points(
    ax: Axes, x: Floats, y: Floats, labels: Sequence[object], *, among: tuple[Floats, Floats] | None = None
) -> list[Text]:
    """A name beside each of these points, most important first; one that finds no free place is left out.

    Names keep clear of each other and of the points that they are `among`; in a crowd, of the named ones only.
    """
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.patheffects import withStroke

    figure = root_of(ax)
    figure.draw_without_rendering()  # now the axes are where they will be
    renderer = RendererAgg(16, 16, figure.dpi)
    own = np.column_stack([x, y])
    every = own if among is None else np.column_stack(among)
    spots, crowd = (ax.transData.transform(each) if len(each) else each for each in (own, every))
    free = _Free(ax.get_window_extent(), spots, crowd)
    named: list[Text] = []
    for k, name in enumerate(all_shown(labels)):
        style = {"xy": (float(x[k]), float(y[k])), "textcoords": "offset points", **_STYLE, **as_is()}
        probe = ax.annotate(name, xytext=(0, 0), **style)
        for clear, (dx, dy, ha, va) in ((clear, way) for clear in (True, False) for way in _BESIDE):
            probe.set(position=(dx, dy), ha=ha, va=va)
            if free.take(probe.get_window_extent(renderer), of_all=clear):
                line = _LINE if abs(dx) + abs(dy) > FAR else None
                text = ax.annotate(name, xytext=(dx, dy), ha=ha, va=va, arrowprops=line, **style)
                text.set_in_layout(False)
                text.set_path_effects([withStroke(linewidth=2, foreground="white")])  # readable on a cloud
                named.append(text)
                break
        probe.remove()
    return named


_STYLE: dict[str, Any] = {"fontsize": SMALL, "color": INK, "zorder": 6}
_LINE = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}


class _Free:
    """Where in the axes there is still room for a name."""

    def __init__(self, frame: Any, spots: Floats, crowd: Floats) -> None:
        self.frame, self.spots, self.crowd = frame, spots, crowd
        self.taken: list[Any] = []

    def take(self, box: Any, *, of_all: bool) -> bool:
        """Take this place, if it is in the axes and clear of names and points."""
        inside = self.frame.x0 <= box.x0 and box.x1 <= self.frame.x1
        inside = inside and self.frame.y0 <= box.y0 and box.y1 <= self.frame.y1
        if not inside or any(box.overlaps(other) for other in self.taken):
            return False
        x, y = (self.crowd if of_all else self.spots).T
        near = (x > box.x0 - MARK) & (x < box.x1 + MARK) & (y > box.y0 - MARK) & (y < box.y1 + MARK)
        if near.any():
            return False
        self.taken.append(box)
        return True
