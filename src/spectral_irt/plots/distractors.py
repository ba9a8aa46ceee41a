"""Distractor curves: which option people of each ability choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import OptionError
from spectral_irt.inference.items.distractors import STRATA, option_curves, require_options
from spectral_irt.plots.base import Display, check_strata, item_position, known_abilities
from spectral_irt.plots.curves import SHEET, dress_small, item_title, sheet_of
from spectral_irt.plots.labels import apart, as_is, shown
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
LEFT = 0.3  # logits left free beside the first and the last stratum


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DistractorCurves(Display):
    """The share of people who choose each option of one item, in strata of ability with 95% intervals.

    People are put in strata by their other answers, so that choosing the key does not move anybody up. The curve of the
    key should rise, those of the distractors fall, or rise and fall again; where a distractor rises and the key does
    not, the key may be wrong.
    """

    label: Any
    table: Columns  # see `columns`; ability in logits
    suspects: tuple[str, ...] = ()  # options that attract abler people than the key

    def columns(self) -> Columns:
        """`item, option, key, stratum, n, chose, share, ci_low, ci_high, ability`, the ability as reported."""
        return {**self.table, "ability": self.scale.measure(self.table["ability"])}

    @property
    def span(self) -> tuple[float, float]:
        """The abilities that are drawn, in logits."""
        return self.table["ability"].min() - LEFT, self.table["ability"].max() + LEFT

    def draw(self, ax: Axes, *, small: bool = False, span: tuple[float, float] | None = None) -> None:
        table = self.columns()
        options = dict.fromkeys(table["option"].tolist())
        rows = {option: np.flatnonzero(table["option"] == option) for option in options}
        rarer = [option for option in rows if not table["key"][rows[option][0]]]
        rarer.sort(key=lambda option: -int(table["chose"][rows[option]].sum()))
        drawn = [option for option in rows if table["key"][rows[option][0]]] + rarer[: len(LOOKS)]
        looks = [(BLUE, "o", "-"), *LOOKS]
        for option, (color, mark, line) in zip(drawn, looks, strict=False):
            x, y = table["ability"][rows[option]], table["share"][rows[option]]
            wide = (2.2 if color == BLUE else 1.4) * (0.6 if small else 1)
            ax.plot(x, y, color=color, linestyle=line, marker=mark, linewidth=wide, markersize=2.2 if small else 5)
            if not small:
                low, high = table["ci_low"][rows[option]], table["ci_high"][rows[option]]
                ax.vlines(x, low, high, color=color, linewidth=0.8, alpha=0.6)
        ax.set_ylim(-0.03, 1.03)
        ax.set_xlim(*self.scale.measure(np.array(span or self.span)))
        self._name(ax, [(option, rows[option]) for option in drawn], [look[0] for look in looks], small=small)
        if small:
            dress_small(ax)
            return
        others = f"{self.words.trait} on the other items ({unit(self.scale)})"
        dress(ax, item_title(self.label), others, "share who choose it")
        n, strata = int(table["n"][rows[drawn[0]]].sum()), len(rows[drawn[0]])
        text = f"{count(n, 'person')} in {count(strata, 'group')} by {self.words.trait}, with 95% intervals"
        text += "; thick: the key"
        text += f"; {count(len(rarer) - len(LOOKS), 'rarer option')} left out" if len(rarer) > len(LOOKS) else ""
        note(ax, text)

    def _name(
        self, ax: Axes, drawn: Sequence[tuple[str, NDArray[np.int64]]], colors: list[str], *, small: bool
    ) -> None:
        """The options beside the ends of their curves."""
        table = self.table
        size = 5.5 if small else SMALL
        height = ax.get_window_extent().height / root_of(ax).dpi * 72
        gap = 1.06 * 1.3 * size / max(height, 1.0)
        ends = np.array([table["share"][where[-1]] for _, where in drawn])
        places = apart(ends, gap, 0.0, 1.0)
        total = table["n"][drawn[0][1]].sum()
        for k, (option, where) in enumerate(drawn):
            share = table["chose"][where].sum() / max(total, 1)
            text = shown(option, 4 if small else 20)
            if not small:
                key = ", the key" if table["key"][where[0]] else ""
                text += f"{key} ({share:.0%})"
                if option in self.suspects:
                    text += f": higher {self.words.trait} than the key"
            style: dict[str, Any] = {"color": colors[k] if colors[k] != SKY else GRAY, "fontsize": size, **as_is()}
            style["fontweight"] = "bold" if table["key"][where[0]] else "normal"
            ax.text(1.01, places[k], text, transform=ax.get_yaxis_transform(), va="center", **style)


def distractor_curves(study: Analysis, items: Sequence[Any], strata: int = STRATA) -> list[DistractorCurves]:
    """The curves of these items, one pass over the answers for all."""
    check_strata(strata)
    require_options(study.responses)
    known_abilities(study)
    place = np.array([item_position(study.calibration, item) for item in items], dtype=np.int64)
    found = study._distractors()
    tables = option_curves(study.responses, study.calibration.difficulty, study.abilities("wle").ability, place, strata)
    pairs = zip(found.columns["item"][found.suspect], found.columns["option"][found.suspect], strict=True)
    suspects: dict[Any, list[str]] = {}
    for label, option in pairs:
        suspects.setdefault(label, []).append(option)
    every = []
    for k, table in zip(place.tolist(), tables, strict=True):
        label = study.calibration.labels[k]
        if not table["n"].any():
            raise OptionError(f"nobody who answered anything else answered item {label!r}, so there is no curve.")
        every.append(DistractorCurves.about(study, label=label, table=table, suspects=tuple(suspects.get(label, ()))))
    return every


def distractor_sheet(study: Analysis) -> Figure:
    """Small curves of all items, or of the thirty with the weakest keys, the weakest first."""
    labels = study.calibration.labels
    point = study._classical().item_rest
    known = np.flatnonzero(np.isfinite(point))
    if not len(known):
        raise OptionError("no item has both right and wrong answers of people who answered others, so no curve.")
    trait = study._words.trait
    title = f"Which options people choose by {trait}, {count(len(known), 'item')}; thick: the key"
    if len(known) > SHEET:
        known = known[np.argsort(point[known], kind="stable")[:SHEET]]
        title = f"Options by {trait} of the {SHEET} items of {len(labels):,} with the weakest keys; thick: the key"
    every = distractor_curves(study, labels[known].tolist())
    return sheet_of(every, title, f"{trait} on the other items", "share who choose it", names=0.2)
