"""`study.plot` of answers in ordered categories."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.calibration import form_information
from spectral_irt.data.block import Floats
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.errors import OptionError
from spectral_irt.files import write_each
from spectral_irt.inference.fit.strata import STRATA
from spectral_irt.plots.asking import known_abilities, on_scale
from spectral_irt.plots.categories import CategoryCurves, category_curves
from spectral_irt.plots.expected import ExpectedScore, expected_scores
from spectral_irt.plots.fit_map import FitMap
from spectral_irt.plots.icc import sheet_of
from spectral_irt.plots.information import TestInformation
from spectral_irt.plots.items import ItemIntervals
from spectral_irt.plots.scores import ScoreDistribution
from spectral_irt.plots.standard import Pictures, standard_paths, worth_a_look
from spectral_irt.plots.wright import WrightMap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spectral_irt.analysis.ordered_analysis import OrderedAnalysis

NAMES = ("wright", "items", "fit", "information", "scores", "icc", "categories")


class OrderedPlots:
    """The displays of an analysis: each has `frame()`, its table, `plot(ax=None)`, which returns axes, `save(path)`.

    Examples
    --------
    >>> from spectral_irt import SpectralPartialCredit, simulate
    >>> answers = simulate.partial_credit(300, 5, categories=3, seed=1).responses
    >>> study = SpectralPartialCredit().fit(answers).analyse(answers)
    >>> study.plot.wright().plot().get_title(loc="left")
    'People and thresholds on one scale'
    """

    def __init__(self, study: OrderedAnalysis) -> None:
        self.study = study

    def __repr__(self) -> str:
        names = [name for name in vars(type(self)) if not name.startswith("_")]
        return f"<Pictures of {self.study!r}: {', '.join(names)}>"

    def wright(self) -> WrightMap:
        """People and thresholds on one scale; "q7 (2)" is the second threshold of item q7."""
        calibration, ability = self.study.calibration, known_abilities(self.study)
        steps = calibration.layout
        place = steps.of_items(on_scale(calibration))
        labels = np.empty(len(place), dtype=object)
        labels[:] = [f"{calibration.labels[steps.item[k]]} ({steps.level[k]})" for k in place.tolist()]
        return WrightMap(
            ability=ability,
            labels=labels,
            difficulty=calibration.thresholds[place],
            left_out=self.study.responses.n_persons - len(ability),
            scale=calibration.scale,
            what="threshold",
            frame_kind=self.study.responses.frame_kind,
        )

    def items(self) -> ItemIntervals:
        """The location of each item, the mean of its thresholds, with its 95% interval, from the highest down."""
        return ItemIntervals.of(self.study)

    def icc(self, item: Any, *, strata: int = STRATA) -> ExpectedScore:
        """The expected answer to one item, and mean answers in strata of ability with 95% intervals."""
        return ExpectedScore.of(self.study, item, strata)

    def categories(self, item: Any) -> CategoryCurves:
        """The probability of each answer to one item, over the scale."""
        return CategoryCurves.of(self.study, item)

    def fit(self) -> FitMap:
        """Infit against outfit of every item, and which items misfit."""
        found = self.study.item_fit_columns()
        return FitMap.of_columns(found, conditional=True, frame_kind=self.study.responses.frame_kind)

    def information(self) -> TestInformation:
        """Information and standard error of an ability over the scale."""
        calibration, found = self.study.calibration, self.study.abilities().ability
        place = on_scale(calibration)
        return OrderedInformation(
            difficulty=calibration.difficulty[place],
            steps=Thresholds(calibration.layout.max_score[place]),
            thresholds=calibration.thresholds[calibration.layout.of_items(place)],
            ability=found[np.isfinite(found)],
            scale=calibration.scale,
            frame_kind=self.study.responses.frame_kind,
        )

    def scores(self) -> ScoreDistribution:
        """How many people have which total score."""
        people = self.study.people
        rows, of = people.patterns.rows, people.patterns.of_person
        some = of[rows.counts[of] > 0]
        if not len(some):
            raise OptionError("the analysis has no people with answers, so there are no scores to show.")
        kind = self.study.responses.frame_kind
        return ScoreDistribution(score=rows.scores[some], n=rows.counts[some], most=rows.most[some], frame_kind=kind)

    def write(self, folder: str | Path) -> list[Path]:
        """Write the standard set to a folder as SVG and PNG, complete or not at all; the paths."""
        targets = standard_paths(Path(folder), NAMES)
        return write_each(ordered_pictures(self.study).writers(targets))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OrderedInformation(TestInformation):
    """I(theta) = the variance of the total score, and 1 / sqrt(I), the standard error of an ability there."""

    steps: Thresholds
    thresholds: Floats

    def places(self) -> Floats:
        return self.thresholds

    def informs(self, at: Floats) -> Floats:
        return form_information(self.thresholds, at, self.steps)


def ordered_pictures(study: OrderedAnalysis) -> Pictures:
    """The standard set. What the data do not allow is left out."""
    plot = OrderedPlots(study)
    return Pictures.drawn(
        {
            "wright": lambda: plot.wright().plot().figure,
            "items": lambda: plot.items().plot().figure,
            "fit": lambda: plot.fit().plot().figure,
            "information": lambda: plot.information().plot().figure,
            "scores": lambda: plot.scores().plot().figure,
            "icc": lambda: score_sheet(study),
            "categories": lambda: curve_sheet(study),
        }
    )


def score_sheet(study: OrderedAnalysis) -> Figure:
    """Expected scores of all items, or of the thirty that fit worst, and what was observed."""
    labels, which = worth_a_look(OrderedPlots(study).fit())
    title = f"{which}: mean answers, the model's and those observed"
    return sheet_of(expected_scores(study, labels), title, "ability", "mean answer", study.calibration.scale)


def curve_sheet(study: OrderedAnalysis) -> Figure:
    """Category curves of the same items."""
    labels, which = worth_a_look(OrderedPlots(study).fit())
    title = f"{which}: probability of each answer"
    return sheet_of(category_curves(study, labels), title, "ability", "probability", study.calibration.scale)
