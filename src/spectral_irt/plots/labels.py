"""Names in a picture: shown as plain text whatever they hold, short enough, and clear of each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Floats
from spectral_irt.plots.style import INK, SMALL, load_matplotlib, root_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


def label_text(label: object, longest: int = LONGEST) -> str:
    r"""A label as it stands in a picture: on one line, in characters that the font has, long ones without their middle.

    >>> label_text("two\nlines"), label_text("a very long name of an item, form B")
    ('two\\nlines', 'a very long … item, form B')
    """
    return all_shown([label], longest)[0]


def all_shown(labels: Iterable[object], longest: int = LONGEST) -> list[str]:
    """Labels that stand in one picture: cut where they are alike, and never so that two of them look the same.

    >>> all_shown(["a very long name of an item, form A", "a very long name of an item, form B"], 16)
    ['a very long na…A', 'a very long na…B']
    """
    from spectral_irt.terminal.labels import shorten

    return [
        "".join(character if character.isascii() or _drawable(character) else MISSING for character in text)
        for text in shorten(labels, longest, "…")
    ]


def as_is() -> dict[str, Any]:
    """How a name is drawn: an item called $x^2$ is not a formula, and one in another script finds its font."""
    return {"parse_math": False, "usetex": False, "fontfamily": list(_families())}


@cache
def _families() -> tuple[str, ...]:
    load_matplotlib()
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return ("DejaVu Sans", *(name for name in FURTHER if name in installed))  # the first comes with matplotlib


@cache
def _fonts() -> tuple[Any, ...]:
    from matplotlib.font_manager import findfont, get_font

    return tuple(get_font(findfont(family)) for family in _families())


@lru_cache(maxsize=65_536)
def _drawable(character: str) -> bool:
    return any(font.get_char_index(ord(character)) for font in _fonts())


def spread_apart(places: Iterable[float], gap: float, low: float = -np.inf, high: float = np.inf) -> Floats:
    """Places at least `gap` apart, in the same order, as near to the given ones as can be (least squares).

    Where neighbors are too close they share the distance: isotonic regression of place - rank * gap.

    >>> spread_apart([0.0, 0.1, 5.0], 1.0).tolist()
    [-0.45, 0.55, 5.0]
    """
    from scipy.optimize import isotonic_regression

    nearest = np.asarray(list(places), dtype=float)
    if not len(nearest):
        return nearest
    order = np.argsort(nearest, kind="stable")
    steps = gap * np.arange(len(nearest))
    shifted = isotonic_regression(nearest[order] - steps).x
    out = np.empty(len(nearest))
    out[order] = np.clip(shifted, low, max(high - steps[-1], low)) + steps
    return out


def name_rows(ax: Axes, labels: Sequence[object], *, marked: Iterable[bool] = (), longest: int = LONGEST) -> None:
    """Names along the y axis, the first on top; marked ones in bold."""
    ax.set_yticks(range(len(labels)), all_shown(labels, longest), fontsize=SMALL, **as_is())
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    for tick, bold in zip(ax.get_yticklabels(), marked, strict=False):
        tick.set_fontweight("bold" if bold else "normal")


def interval_rows(
    ax: Axes,
    labels: Sequence[object],
    middle: Floats,
    low: Floats,
    high: Floats,
    kinds: Sequence[tuple[NDArray[np.bool_], str, str]],
    **how: Any,
) -> None:
    """Names down the y axis, each with its interval; `kinds` are which rows have which color and mark."""
    y = np.arange(len(labels))
    for chosen, color, mark in kinds:
        if chosen.any():
            ax.hlines(y[chosen], low[chosen], high[chosen], color=color, linewidth=1.5)
            ax.plot(middle[chosen], y[chosen], mark, color=color, markersize=5, mec="white", mew=0.4)
    name_rows(ax, labels, **how)


# Where a name may stand: shift from its point in points, and which corner of the name is there.
_BESIDE = [
    (dx * far, dy * far, ha, va)
    for far in (1.0, 2.2, 3.6, 5.2)
    for dx, dy, ha, va in (
        *((5, 0, "left", "center"), (-5, 0, "right", "center")),
        *((4, 4, "left", "bottom"), (4, -4, "left", "top"), (-4, 4, "right", "bottom"), (-4, -4, "right", "top")),
        *((0, 6, "center", "bottom"), (0, -6, "center", "top")),
    )
]
_LINE = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}


def name_points(
    ax: Axes, x: Floats, y: Floats, labels: Sequence[object], *, among: tuple[Floats, Floats] | None = None
) -> None:
    """A name beside each of these points, most important first; one that finds no free place is left out.

    Names keep clear of each other and of the points that they are `among`; in a crowd, of the named ones only.
    """
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.patheffects import withStroke

    if not len(labels):
        return
    figure = root_of(ax)
    figure.draw_without_rendering()  # now the axes are where they will be
    renderer = RendererAgg(16, 16, figure.dpi)
    named_points = ax.transData.transform(np.column_stack([x, y]))
    all_points = named_points
    if among is not None:
        all_points = ax.transData.transform(np.column_stack(among))
    free_place = _FreePlace(ax.get_window_extent(), [])
    style = {"textcoords": "offset points", "fontsize": SMALL, "color": INK, "zorder": 6, **as_is()}
    for k, name in enumerate(all_shown(labels)):
        point = (float(x[k]), float(y[k]))
        text = ax.annotate(name, point, xytext=(0, 0), **style)
        place = free_place.of(text, renderer, [all_points, named_points])
        if place is None:
            text.remove()
            continue
        dx, dy, ha, va = place
        if abs(dx) + abs(dy) > FAR:
            text.remove()
            text = ax.annotate(name, point, xytext=(dx, dy), ha=ha, va=va, arrowprops=_LINE, **style)
        text.set_in_layout(False)
        text.set_path_effects([withStroke(linewidth=2, foreground="white")])  # readable on a cloud


class _FreePlace(NamedTuple):
    """Where names may still stand: within the frame, beside the names that have a place."""

    frame: Any
    taken: list[Any]

    def of(self, text: Any, renderer: Any, crowds: Sequence[Floats]) -> tuple[float, float, str, str] | None:
        """The first place beside its point at which the text is clear of the first crowd of points, or else of the
        second; it stands there then. None where no place is free."""
        for crowd in crowds:
            for dx, dy, ha, va in _BESIDE:
                text.set(position=(dx, dy), ha=ha, va=va)
                box = text.get_window_extent(renderer)
                if self._is_free(box, crowd):
                    self.taken.append(box)
                    return dx, dy, ha, va
        return None

    def _is_free(self, box: Any, crowd: Floats) -> bool:
        frame = self.frame
        inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
        if not inside or any(box.overlaps(other) for other in self.taken):
            return False
        px = crowd[:, 0]
        py = crowd[:, 1]
        near = (px > box.x0 - MARK) & (px < box.x1 + MARK) & (py > box.y0 - MARK) & (py < box.y1 + MARK)
        return not near.any()
