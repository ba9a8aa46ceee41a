"""What the test tells about people of every ability, and how many have which score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectral_irt.ability import form_information
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.errors import OptionError
from spectral_irt.plots.base import Display, on_scale
from spectral_irt.plots.style import BLUE, INK, PALE, RED, SMALL, ability_edges, dress, note, whole_ticks
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis

STEPS = 201
BEYOND = 1.5  # logits shown beyond the items


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TestInformation(Display):
    """I(theta) = the variance of the total score, and 1 / sqrt(I), the standard error of an ability there.

    Of items that are right or wrong I(theta) = sum of p (1 - p); of ratings, each item is rated once.
    """

    __test__ = False  # or pytest takes it for a test

    layout: Thresholds
    thresholds: Floats
    ability: Floats  # of people: shown in gray, for where information is needed

    @classmethod
    def of(cls, study: Analysis) -> TestInformation:
        calibration = study.calibration.own_items
        ability = np.zeros(0)
        if study.responses.n_persons:
            ability = study.abilities().ability
        layout, thresholds = calibration.thresholds_of(on_scale(calibration))
        return cls.about(study, layout=layout, thresholds=thresholds, ability=ability[np.isfinite(ability)])

    def columns(self) -> Columns:
        """`ability, information, se` as they are reported: on another scale, information is per its unit squared."""
        ends = np.array([self.thresholds.min() - BEYOND, self.thresholds.max() + BEYOND])
        if len(self.ability):
            ends = np.concatenate([ends, np.quantile(self.ability, [0.001, 0.999])])
        ability = np.linspace(ends.min(), ends.max(), STEPS)
        information = form_information(self.thresholds, ability, self.layout)
        return {
            "ability": self.scale.measure(ability),
            "information": information / self.scale.unit**2,
            "se": self.scale.width(1 / np.sqrt(information)),
        }

    def draw(self, ax: Axes) -> None:
        table = self.columns()
        ability = table["ability"]
        information = table["information"]
        se = table["se"]
        dress(ax, "Test information and standard error", self.axis, "information (solid)")
        remarks = [f"for a person who answers all {count(self.layout.n_items, 'item')}"]
        if len(self.ability):
            of_persons = np.clip(self.scale.measure(self.ability), ability[0], ability[-1])
            heights, edges = np.histogram(of_persons, ability_edges(of_persons, ability[0], ability[-1]))
            ax.stairs(heights / max(heights.max(), 1) * information.max() * 0.25, edges, fill=True, color=PALE)
            remarks.append(f"gray: {count(len(self.ability), 'person')}")
        ax.plot(ability, information, color=BLUE, linewidth=2)
        ax.set_xlim(ability[0], ability[-1])
        ax.set_ylim(0, information.max() * 1.08)
        ax.yaxis.label.set_color(BLUE)
        other = ax.twinx()
        other.plot(ability, se, "--", color=RED, linewidth=1.6)
        other.set_ylim(0, min(se.max(), 4 * se.min()) * 1.08)  # far off the test it grows without limit
        other.set_ylabel(f"standard error of {self.words.trait} (dashed)", color=RED)
        other.spines["top"].set_visible(False)
        note(ax, *remarks)


WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85}  # behind words
BARS = 60  # scores beyond which neighbors share a bar


class _Bars(NamedTuple):
    """Bars of a histogram: where each begins, how wide all are, persons in each, and those with an extreme score."""

    left: Floats
    width: float
    persons: Ints
    extreme: Ints


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ScoreDistribution(Display):
    """Raw scores where everybody answered the same number of items; otherwise percentages right."""

    score: Ints
    n: Ints  # answers of everybody who answered anything
    highest: Ints  # the highest score that each could have; n, where answers are right or wrong
    noun: str = "item"

    @classmethod
    def of(cls, study: Analysis) -> ScoreDistribution:
        responses = study.responses
        answered = responses.counts > 0
        if not answered.any():
            raise OptionError("the analysis has no people with answers, so there are no scores to show.")
        return cls.about(
            study,
            score=responses.scores[answered],
            n=responses.counts[answered],
            highest=responses.max_scores[answered],
            noun="rating" if study.facets else "item",
        )

    @property
    def binary(self) -> bool:
        return bool((self.highest == self.n).all())

    @property
    def alike(self) -> bool:
        """Whether everybody answered as many items with the same highest score, so that scores can be compared."""
        return bool((self.n == self.n[0]).all() and (self.highest == self.highest[0]).all())

    def columns(self) -> Columns:
        """`score` (or `percent_low, percent_high`), `persons, share, extreme` (the lowest or the highest score).

        Every score has a row; percentages are in twenty steps, of which the last takes in 100.
        """
        extreme = (self.score == 0) | (self.score == self.highest)
        if self.alike:
            rows = int(self.highest[0]) + 1
            row = self.score
            scores: Columns = {"score": np.arange(rows)}
        else:
            rows = 20
            row = np.minimum(self.score * rows // self.highest, rows - 1)
            scores = {"percent_low": np.arange(rows) * 5, "percent_high": np.arange(1, rows + 1) * 5}
        persons = np.bincount(row, minlength=rows)
        return {
            **scores,
            "persons": persons,
            "share": persons / len(self.score),
            "extreme": np.bincount(row[extreme], minlength=rows),
        }

    def draw(self, ax: Axes) -> None:
        bars = self._bars()
        look: dict[str, Any] = {"align": "edge", "edgecolor": "white", "linewidth": 0.5}
        ax.bar(bars.left, bars.persons - bars.extreme, bars.width, color=BLUE, **look)
        ax.bar(bars.left, bars.extreme, bars.width, bars.persons - bars.extreme, color=RED, hatch="////", **look)
        ax.set_ylim(0, 1.16 * bars.persons.max())
        if self.alike:
            whole_ticks(ax, "x")
            mean = float(self.score.mean())
            mean_in_words = f"{mean:.1f}"
            x = f"score on {count(int(self.n[0]), self.noun)}"
        else:
            mean = float((100 * self.score / self.highest).mean())
            mean_in_words = f"{mean:.1f}%"
            part_of_score = "right" if self.binary else "of the highest score"
            x = f"percent {part_of_score} (people answered {self.n.min():,} to {self.n.max():,} {self.noun}s)"
        ax.axvline(mean, color=INK, linestyle="--", linewidth=1)
        dress(ax, "How many people have which score", x, "people", grid="y")
        whole_ticks(ax, "y")
        lines = [f"{count(len(self.score), 'person')}, mean {mean_in_words} (dashed)"]
        if bars.extreme.any():
            extreme = "everything right or wrong" if self.binary else "the lowest or the highest score"
            lines.append(f"{int(bars.extreme.sum()):,} extreme: {extreme} (hatched)")
        ax.text(0.01, 0.985, "\n".join(lines), transform=ax.transAxes, va="top", fontsize=SMALL, color=INK, bbox=WHITE)

    def _bars(self) -> _Bars:
        """Scores as bars; of very many, neighbors share one."""
        table = self.columns()
        if not self.alike:
            return _Bars(table["percent_low"].astype(float), 5.0, table["persons"], table["extreme"])
        step = -(-len(table["persons"]) // BARS)
        starts = np.arange(0, len(table["persons"]), step)
        persons = np.add.reduceat(table["persons"], starts)
        extreme = np.add.reduceat(table["extreme"], starts)
        return _Bars(starts.astype(float) - 0.5, float(step), persons, extreme)
