"""Distractor curves: which option people of each ability choose."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectral_irt.data.block import Ints
from spectral_irt.errors import OptionError
from spectral_irt.inference.items.distractors import STRATA, option_curves, require_options
from spectral_irt.plots.base import Display, check_strata, item_position, known_abilities
from spectral_irt.plots.curves import SHEET, dress_small, item_title, sheet_of
from spectral_irt.plots.labels import as_is, label_text, spread_apart
from spectral_irt.plots.style import BLUE, GRAY, GREEN, RED, SKY, SMALL, dress, note, root_of, unit
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spectral_irt.analysis import Analysis

# Distractors by how often they are chosen; with the key's blue, colors of Okabe and Ito, each with a mark and a line of
# its own.
LOOKS: tuple[tuple[str, str, Any], ...] = (
    (RED, "s", "--"),
    (GREEN, "^", "-."),
    ("#CC79A7", "D", ":"),
    ("#E69F00", "v", (0, (5, 1, 1, 1))),
    (SKY, "P", (0, (1, 1))),
)
KEY_LOOK: tuple[str, str, Any] = (BLUE, "o", "-")
LEFT = 0.3  # logits left free beside the first and the last stratum


class _Option(NamedTuple):
    """An option of an item, the rows of the table about it, and how its curve is drawn."""

    name: str
    rows: Ints
    is_key: bool
    color: str
    mark: str
    line: Any


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DistractorCurves(Display):
    """The share of people who choose each option of one item, in strata of ability with 95% intervals.

    People are put in strata by their other answers, so that choosing the key does not move anybody up. The curve of the
    key should rise, those of the distractors fall, or rise and fall again; where a distractor rises and the key does
    not, the key may be wrong.
    """

    label: Any
    table: Columns  # see `columns`; ability in logits
    suspects: tuple[str, ...] = ()  # options that attract people of higher ability than the key

    def columns(self) -> Columns:
        """`item, option, key, stratum, n, chose, share, ci_low, ci_high, ability`, the ability as reported."""
        return {**self.table, "ability": self.scale.measure(self.table["ability"])}

    @property
    def span(self) -> tuple[float, float]:
        """The abilities that are drawn, in logits."""
        return self.table["ability"].min() - LEFT, self.table["ability"].max() + LEFT

    def draw(self, ax: Axes, *, small: bool = False, span: tuple[float, float] | None = None) -> None:
        options = self._options()
        drawn = options[: 1 + len(LOOKS)]
        for option in drawn:
            self._draw_option(ax, option, small=small)
        ax.set_ylim(-0.03, 1.03)
        ax.set_xlim(*self.scale.measure(np.array(span or self.span)))
        self._name(ax, drawn, small=small)
        if small:
            dress_small(ax)
            return
        others = f"{self.words.trait} on the other items ({unit(self.scale)})"
        dress(ax, item_title(self.label), others, "share who choose it")
        n_persons = int(self.table["n"][drawn[0].rows].sum())
        groups = f"{count(n_persons, 'person')} in {count(len(drawn[0].rows), 'group')} by {self.words.trait}"
        remarks = [f"{groups}, with 95% intervals", "thick: the key"]
        if len(options) > len(drawn):
            remarks.append(f"{count(len(options) - len(drawn), 'rarer option')} left out")
        note(ax, *remarks)

    def _options(self) -> list[_Option]:
        """The key, then the other options from the one chosen most often down, each with its look."""
        rows = {
            option: np.flatnonzero(self.table["option"] == option)
            for option in dict.fromkeys(self.table["option"].tolist())
        }
        keys = [option for option in rows if self.table["key"][rows[option][0]]]
        others = [option for option in rows if option not in keys]
        others.sort(key=lambda option: -int(self.table["chose"][rows[option]].sum()))
        looks = itertools.chain([KEY_LOOK], LOOKS, itertools.repeat(LOOKS[-1]))
        return [
            _Option(option, rows[option], option in keys, *look)
            for option, look in zip([*keys, *others], looks, strict=False)
        ]

    def _draw_option(self, ax: Axes, option: _Option, *, small: bool) -> None:
        table = self.columns()
        x = table["ability"][option.rows]
        width = 1.4
        if option.color == KEY_LOOK[0]:
            width = 2.2
        look: dict[str, Any] = {"linewidth": width, "markersize": 5}
        if small:
            look = {"linewidth": 0.6 * width, "markersize": 2.2}
        ax.plot(x, table["share"][option.rows], color=option.color, linestyle=option.line, marker=option.mark, **look)
        if not small:
            low = table["ci_low"][option.rows]
            high = table["ci_high"][option.rows]
            ax.vlines(x, low, high, color=option.color, linewidth=0.8, alpha=0.6)

    def _name(self, ax: Axes, options: Sequence[_Option], *, small: bool) -> None:
        """The options beside the ends of their curves."""
        size = 5.5 if small else SMALL
        height = ax.get_window_extent().height / root_of(ax).dpi * 72
        gap = 1.06 * 1.3 * size / max(height, 1.0)
        ends = np.array([self.table["share"][option.rows[-1]] for option in options])
        for option, place in zip(options, spread_apart(ends, gap, 0.0, 1.0), strict=True):
            text = (
                label_text(option.name, 4)
                if small
                else self._option_text(option, int(self.table["n"][options[0].rows].sum()))
            )
            style: dict[str, Any] = {"color": option.color, "fontsize": size, **as_is()}
            if option.color == SKY:  # too pale for letters
                style["color"] = GRAY
            style["fontweight"] = "bold" if option.is_key else "normal"
            ax.text(1.01, place, text, transform=ax.get_yaxis_transform(), va="center", **style)

    def _option_text(self, option: _Option, n_persons: int) -> str:
        """An option with how many chose it, such as "B, the key (31%)"."""
        share = self.table["chose"][option.rows].sum() / max(n_persons, 1)
        text = label_text(option.name, 20)
        if option.is_key:
            text += ", the key"
        text += f" ({share:.0%})"
        if option.name in self.suspects:
            text += f": higher {self.words.trait} than the key"
        return text


def distractor_curves(study: Analysis, items: Sequence[Any], strata: int = STRATA) -> list[DistractorCurves]:
    """The curves of these items, one pass over the answers for all."""
    check_strata(strata)
    require_options(study.responses)
    known_abilities(study)
    place = np.array([item_position(study.calibration, item) for item in items], dtype=np.int64)
    distractors = study._distractors()
    tables = option_curves(study.responses, study.calibration.difficulty, study.abilities("wle").ability, place, strata)
    suspect_items = distractors.columns["item"][distractors.suspect]
    suspect_options = distractors.columns["option"][distractors.suspect]
    suspects: dict[Any, list[str]] = {}
    for label, option in zip(suspect_items, suspect_options, strict=True):
        suspects.setdefault(label, []).append(option)
    displays = []
    for k, table in zip(place.tolist(), tables, strict=True):
        label = study.calibration.labels[k]
        if not table["n"].any():
            raise OptionError(f"nobody who answered anything else answered item {label!r}, so there is no curve.")
        of_item = tuple(suspects.get(label, ()))
        displays.append(DistractorCurves.about(study, label=label, table=table, suspects=of_item))
    return displays


def distractor_sheet(study: Analysis) -> Figure:
    """Small curves of all items, or of the thirty with the weakest keys, the weakest first."""
    labels = study.calibration.labels
    item_rest = study._classical().item_rest
    items = np.flatnonzero(np.isfinite(item_rest))
    if not len(items):
        raise OptionError("no item has both right and wrong answers of people who answered others, so no curve.")
    trait = study._words.trait
    title = f"Which options people choose by {trait}, {count(len(items), 'item')}; thick: the key"
    if len(items) > SHEET:
        items = items[np.argsort(item_rest[items], kind="stable")[:SHEET]]
        title = f"Options by {trait} of the {SHEET} items of {len(labels):,} with the weakest keys; thick: the key"
    displays = distractor_curves(study, labels[items].tolist())
    return sheet_of(displays, title, f"{trait} on the other items", "share who choose it", names=0.2)
