"""What the test tells about people of every ability, and how many have which score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
        found = study.abilities().ability if study.responses.n_persons else np.zeros(0)
        layout, thresholds = calibration.thresholds_of(on_scale(calibration))
        return cls.about(study, layout=layout, thresholds=thresholds, ability=found[np.isfinite(found)])

    def columns(self) -> Columns:
        """`ability, information, se` as they are reported: on another scale, information is per its unit squared."""
        ends = np.array([self.thresholds.min() - BEYOND, self.thresholds.max() + BEYOND])
        if len(self.ability):
            ends = np.concatenate([ends, np.quantile(self.ability, [0.001, 0.999])])
        at = np.linspace(ends.min(), ends.max(), STEPS)
        found = form_information(self.thresholds, at, self.layout)
        return {
            "ability": self.scale.measure(at),
            "information": found / self.scale.unit**2,
            "se": self.scale.width(1 / np.sqrt(found)),
        }

    def draw(self, ax: Axes) -> None:
        table = self.columns()
        at, found, se = table["ability"], table["information"], table["se"]
        dress(ax, "Test information and standard error", self.axis, "information (solid)")
        if len(self.ability):
            shown = np.clip(self.scale.measure(self.ability), at[0], at[-1])
            heights, edges = np.histogram(shown, ability_edges(shown, at[0], at[-1]))
            ax.stairs(heights / max(heights.max(), 1) * found.max() * 0.25, edges, fill=True, color=PALE)
        ax.plot(at, found, color=BLUE, linewidth=2)
        ax.set_xlim(at[0], at[-1])
        ax.set_ylim(0, found.max() * 1.08)
        ax.yaxis.label.set_color(BLUE)
        other = ax.twinx()
        other.plot(at, se, "--", color=RED, linewidth=1.6)
        other.set_ylim(0, min(se.max(), 4 * se.min()) * 1.08)  # far off the test it grows without limit
        other.set_ylabel(f"standard error of {self.words.trait} (dashed)", color=RED)
        other.spines["top"].set_visible(False)
        people = f"; gray: {count(len(self.ability), 'person')}" if len(self.ability) else ""
        note(ax, f"to somebody who answers all {count(self.layout.n_items, 'item')}{people}")


WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85}  # behind words
BARS = 60  # scores beyond which neighbors share a bar


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ScoreDistribution(Display):
    """Raw scores where everybody answered the same number of items; otherwise percentages right."""

    score: Ints
    n: Ints  # answers of everybody who answered anything
    highest: Ints  # the highest score that each could have; n, where answers are right or wrong
    noun: str = "item"

    @classmethod
    def of(cls, study: Analysis) -> ScoreDistribution:
        answers = study.responses
        some = answers.counts > 0
        if not some.any():
            raise OptionError("the analysis has no people with answers, so there are no scores to show.")
        noun = "rating" if study.facets else "item"
        values = {"score": answers.scores[some], "n": answers.counts[some], "highest": answers.max_scores[some]}
        return cls.about(study, **values, noun=noun)

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
            place, rows = self.score, int(self.highest[0]) + 1
            where: Columns = {"score": np.arange(rows)}
        else:
            rows = 20
            place = np.minimum(self.score * rows // self.highest, rows - 1)
            where = {"percent_low": np.arange(rows) * 5, "percent_high": np.arange(1, rows + 1) * 5}
        persons = np.bincount(place, minlength=rows)
        return {
            **where,
            "persons": persons,
            "share": persons / len(self.score),
            "extreme": np.bincount(place[extreme], minlength=rows),
        }

    def draw(self, ax: Axes) -> None:
        table = self.columns()
        persons, extreme = table["persons"], table["extreme"]
        if self.alike:
            step = -(-len(persons) // BARS)
            starts = np.arange(0, len(persons), step)
            persons, extreme = np.add.reduceat(persons, starts), np.add.reduceat(extreme, starts)
            left, wide = starts - 0.5, float(step)
            mean, text = float(self.score.mean()), f"score on {count(int(self.n[0]), self.noun)}"
            whole_ticks(ax, "x")
        else:
            left, wide = table["percent_low"].astype(float), 5.0
            mean = float((100 * self.score / self.highest).mean())
            of = "right" if self.binary else "of the highest score"
            text = f"percent {of} (people answered {self.n.min():,} to {self.n.max():,} {self.noun}s)"
        look = {"align": "edge", "edgecolor": "white", "linewidth": 0.5}
        ax.bar(left, persons - extreme, wide, color=BLUE, **look)  # type: ignore[arg-type]
        ax.bar(left, extreme, wide, persons - extreme, color=RED, hatch="////", **look)  # type: ignore[arg-type]
        ax.axvline(mean, color=INK, linestyle="--", linewidth=1)
        ax.set_ylim(0, 1.16 * persons.max())
        dress(ax, "How many people have which score", text, "people", grid="y")
        whole_ticks(ax, "y")
        said = [f"{count(len(self.score), 'person')}, mean {mean:.1f}{'' if self.alike else '%'} (dashed)"]
        if extreme.any():
            what = "everything right or wrong" if self.binary else "the lowest or the highest score"
            said.append(f"{int(extreme.sum()):,} extreme: {what} (hatched)")
        ax.text(0.01, 0.985, "\n".join(said), transform=ax.transAxes, va="top", fontsize=SMALL, color=INK, bbox=WHITE)
