"""The kidmap of one person: what was reached and what was not, on the scale of the items (Wright, Mead & Ludlow 1980).

Items (or thresholds) that the person passed stand to the left of the scale, those not passed to the right, hard ones on
top. A line is at the person's ability, with its 95% interval; what was passed above the interval, and what was not
passed below it, is unexpected. `study.plot.kidmap(person)` makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.calibration import Z95
from spectral_irt.data.block import Floats, Mask
from spectral_irt.data.responses import Labels
from spectral_irt.errors import OptionError
from spectral_irt.persons.residuals import people_at
from spectral_irt.plots.base import Display
from spectral_irt.plots.labels import as_is, label_text
from spectral_irt.plots.style import BLUE, INK, PALE, RED, ROWS, SMALL, dress, finite_range, note, unit
from spectral_irt.plots.wright import LabelLines, threshold_labels
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis

SIDE_LETTERS = 64  # of a line of labels on either side; where it would be longer, expected items are marks alone
LETTER_SHARE = 1 / (SIDE_LETTERS + 6)  # of the width of a side that a letter takes, with room for the marks
MARGIN = 1.5  # inches for the title, the axis and the note


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KidMap(Display):
    """What one person passed and did not pass, at the heights of the items or their thresholds."""

    person: str
    labels: Labels
    difficulty: Floats
    passed: Mask
    ability: float
    se: float
    thresholds: bool = False

    @classmethod
    def of(cls, study: Analysis, person: Any) -> KidMap:
        if study.facets:
            raise OptionError(
                "a kidmap shows the items that a person answered, and these are ratings; "
                "`study.unexpected_answers([person])` has the ratings that were least expected."
            )
        position = int(people_at(study.responses, [person])[0])
        name = str(study.responses.persons[position])
        estimates = study.abilities()
        ability = float(estimates.ability[position])
        if not np.isfinite(ability):
            raise OptionError(
                f"{name!r} has no finite ability, so there is no place on the scale: no response to an item that has a "
                "difficulty, or an extreme score with abilities by maximum likelihood (`ability='wle'` gives finite "
                "ones)."
            )
        layout = study.calibration.layout
        _, items, categories = study.responses.take_persons([position]).answers()
        slots = layout.of_items(items.astype(np.int64))
        # A response in category x has passed thresholds 1 to x of its item, and none of the others.
        category_of_slot = np.repeat(categories, layout.max_score[items])
        labels = study.calibration.labels[items]
        if not layout.binary:
            labels = threshold_labels(study.calibration, slots)
        difficulty = study.calibration.thresholds[slots]
        has_difficulty = np.isfinite(difficulty)
        return cls.about(
            study,
            person=name,
            labels=labels[has_difficulty],
            difficulty=difficulty[has_difficulty],
            passed=(layout.level[slots] <= category_of_slot)[has_difficulty],
            ability=ability,
            se=float(estimates.se[position]),
            thresholds=not layout.binary,
        )

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the ability, in logits."""
        return self.ability - Z95 * self.se, self.ability + Z95 * self.se

    @property
    def unexpected(self) -> Mask:
        """What was passed above the interval of the ability, or not passed below it."""
        low, high = self.interval
        return np.where(self.passed, self.difficulty > high, self.difficulty < low)

    def columns(self) -> Columns:
        """`item` (or `threshold`), `difficulty`, `passed`, `p_passed`, `unexpected`, the hardest first.

        Of ordered responses `p_passed` is the probability of the upper of the two categories that meet at the
        threshold, given that it is one of them.
        """
        order = np.argsort(-self.difficulty, kind="stable")
        columns: Columns = {
            "item": self.labels,
            "difficulty": self.scale.measure(self.difficulty),
            "passed": self.passed,
            "p_passed": 1 / (1 + np.exp(self.difficulty - self.ability)),
            "unexpected": self.unexpected,
        }
        if self.thresholds:
            columns = {"threshold": columns.pop("item"), **columns}
        return {name: values[order] for name, values in columns.items()}

    def size(self) -> tuple[float, float]:
        return 7.6, 5.2 + 2.8 * min(len(self.labels) / ROWS, 1)

    def draw(self, ax: Axes) -> None:
        low, high = self.interval
        limits = finite_range(self.difficulty, np.array([low, high]))
        ax.set_xlim(-1, 1)
        bottom, top = sorted(self.scale.measure(np.array(limits)).tolist())
        ax.set_ylim(bottom, top)
        ax.axhspan(*self.scale.measure(np.array([low, high])).tolist(), color=PALE, alpha=0.6, linewidth=0, zorder=0)
        ax.axhline(float(self.scale.measure(np.array([self.ability]))[0]), color=BLUE, linewidth=1.4)
        ax.axvline(0, color=INK, linewidth=0.8)
        passed, failed = self._words_of_sides()
        self._side(ax, -1, self.passed, limits)
        self._side(ax, 1, ~self.passed, limits)
        dress(ax, f"{label_text(self.person)}: what was expected and what was not", "", self._axis(), grid="")
        ax.set_xticks([-0.5, 0.5], [passed, failed], color=INK)
        ax.tick_params(axis="x", length=0)
        n_unexpected = int(self.unexpected.sum())
        note(
            ax,
            f"line: {self.words.trait} {float(self.scale.measure(np.array([self.ability]))[0]):.2f}; "
            f"gray: its 95% interval; bold with a diamond: unexpected ({n_unexpected})",
        )

    def _axis(self) -> str:
        measured = "threshold" if self.thresholds else "difficulty"
        return f"{self.words.trait}, {measured} ({unit(self.scale)})"

    def _words_of_sides(self) -> tuple[str, str]:
        """What stands under the two sides, such as "12 items right"."""
        n_passed = int(self.passed.sum())
        n_failed = len(self.passed) - n_passed
        if self.thresholds:
            return f"{count(n_passed, 'threshold')} passed", f"{count(n_failed, 'threshold')} not passed"
        return f"{count(n_passed, 'item')} right", f"{count(n_failed, 'item')} wrong"

    def _side(self, ax: Axes, side: int, members: Mask, limits: tuple[float, float]) -> None:
        """The labels of one side (-1: left) at their heights; expected ones are marks alone where there is no room."""
        rows = max(int((self.size()[1] - MARGIN) * 72 / (1.3 * SMALL)), 1)
        for unexpected, color, mark, weight in ((False, INK, "o", "normal"), (True, RED, "D", "bold")):
            chosen = members & (self.unexpected == unexpected)
            if not chosen.any():
                continue
            heights = self.scale.measure(self.difficulty[chosen])
            ax.plot(np.full(len(heights), side * 0.04), heights, mark, color=color, markersize=4, mew=0)
            lines = LabelLines.of(self.labels[chosen], self.difficulty[chosen], limits, rows)
            if lines.width > SIDE_LETTERS:
                if not unexpected:
                    continue
                lines = LabelLines.of(
                    self.labels[chosen], self.difficulty[chosen], limits, rows, letters=2 * SIDE_LETTERS
                )
            for height, text in zip(self.scale.measure(lines.height).tolist(), lines.text, strict=True):
                ax.text(
                    side * 5 * LETTER_SHARE,
                    height,
                    text,
                    fontsize=SMALL,
                    color=color,
                    weight=weight,
                    va="center",
                    ha="left" if side > 0 else "right",
                    **as_is(),
                )
