"""Expected score curves: how the mean answer to an item rises with ability, and what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.calibration import LOGITS, Scale
from spectral_irt.data.block import Floats
from spectral_irt.errors import OptionError
from spectral_irt.inference.fit.strata import STRATA
from spectral_irt.plots.asking import known_abilities
from spectral_irt.plots.categories import AROUND, items_with_curves, mark_thresholds, probabilities, thresholds_of
from spectral_irt.plots.display import Display
from spectral_irt.plots.look import BLUE, dress, note, unit, whole_ticks
from spectral_irt.plots.one_item import dress_small, item_title, mark_strata, strata_table
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis.ordered_analysis import OrderedAnalysis

HALVINGS = 60  # of a stretch of some tens of logits: to the last digit
FAR = 40.0  # logits beyond the thresholds where the curve is at its end in every digit


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ExpectedScore(Display):
    """The model's expected answer to one item, and mean answers in strata of ability with 95% intervals.

    A stratum stands where the model expects the mean that it expects of these very people, given their total scores.
    Under the model the marks then lie on the curve but for chance, in a test of any length.

    Attributes
    ----------
    label
        The item.
    thresholds : float array
        In logits.
    strata : mapping of columns
        `stratum, n, ability, observed, ci_low, ci_high, expected`; see `inference.fit.strata.strata_columns`.
    """

    label: Any
    thresholds: Floats
    strata: Columns
    scale: Scale = LOGITS

    @classmethod
    def of(cls, study: OrderedAnalysis, item: Any, strata: int = STRATA) -> ExpectedScore:
        return expected_scores(study, [item], strata)[0]

    def expected(self, at: Floats) -> Floats:
        """The expected answer at these abilities, in categories counted from 0."""
        p = probabilities(self.thresholds, at)
        return p @ np.arange(p.shape[1])

    @property
    def place(self) -> Floats:
        """Where the strata stand, in logits: by bisection, since the curve rises."""
        wanted = self.strata["expected"]
        low = np.full(len(wanted), self.thresholds.min() - FAR)
        high = np.full(len(wanted), self.thresholds.max() + FAR)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            above = self.expected(middle) > wanted
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return (low + high) / 2

    def columns(self) -> Columns:
        """`item, stratum, n, ability, observed, ci_low, ci_high, expected, place`.

        Answers count from 0, the lowest category. `ability` is the mean of the estimates, `place` where the stratum
        stands in the picture, both as reported.
        """
        return strata_table(self.label, self.strata, self.place, self.scale)

    def draw(self, ax: Axes, *, small: bool = False) -> None:
        table, place, most = self.columns(), self.place, len(self.thresholds)
        low = min(self.thresholds.min() - AROUND, float(place.min(initial=np.inf)) - 0.4)
        high = max(self.thresholds.max() + AROUND, float(place.max(initial=-np.inf)) + 0.4)
        at = np.linspace(low, high, 161)
        x = self.scale.measure(at)
        ax.plot(x, self.expected(at), color=BLUE, linewidth=1.6)
        mark_strata(ax, table, small=small)
        ax.set_ylim(-0.03 * most, 1.03 * most)
        ax.set_xlim(x[0], x[-1])
        whole_ticks(ax, "y")
        if small:
            dress_small(ax, shares=False)
            return
        dress(ax, item_title(self.label), f"ability ({unit(self.scale)})", "mean answer, 0 = lowest category", grid="y")
        mark_thresholds(ax, self.scale.measure(self.thresholds))
        people = count(int(table["n"].sum()), "person")
        groups = count(len(place), "group")
        note(ax, f"line: the model; marks: {people} in {groups} by ability, with 95% intervals; dotted: thresholds")


def expected_scores(study: OrderedAnalysis, items: Sequence[Any], strata: int = STRATA) -> list[ExpectedScore]:
    """The curves of these items, one pass over the answers for all."""
    if strata < 2:
        raise OptionError(f"`strata` is {strata}; it takes two groups of people or more to see a curve.")
    calibration = study.calibration
    place = items_with_curves(calibration, items)
    known_abilities(study)
    found = study.strata_columns(place, strata)
    return [
        ExpectedScore(
            label=calibration.labels[k],
            thresholds=thresholds_of(calibration, k),
            strata={name: values[found["item"] == k] for name, values in found.items()},
            scale=calibration.scale,
            frame_kind=study.responses.frame_kind,
        )
        for k in place.tolist()
    ]
