"""The standard set of pictures: those that every analysis can have, as files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.errors import OptionError
from spectral_irt.inference.distractors import has_options
from spectral_irt.plots.distractors import distractor_sheet
from spectral_irt.plots.fit_map import FitMap
from spectral_irt.plots.icc import SHEET, curve_sheet, curves
from spectral_irt.plots.information import TestInformation
from spectral_irt.plots.items import ItemIntervals
from spectral_irt.plots.saving import refuse_foreign, write_figure
from spectral_irt.plots.scores import ScoreDistribution
from spectral_irt.plots.wright import WrightMap
from spectral_irt.writing import all_or_nothing, naming

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spectral_irt.analysis import Analysis

NAMES = ("wright", "items", "fit", "information", "scores", "icc", "distractors")
KINDS = ("svg", "png")


def standard_paths(folder: Path) -> list[Path]:
    """Where the pictures go; an error when one would take the place of a file that is not such a picture."""
    targets = [folder / f"{name}.{kind}" for name in NAMES for kind in KINDS]
    refuse_foreign(targets)
    return targets


def write_standard(study: Analysis, folder: Path) -> list[Path]:
    """Write the standard set as SVG and PNG, complete or not at all; the paths of what could be drawn."""
    targets = standard_paths(folder)
    with all_or_nothing(targets) as drafts:
        pictures = Pictures.of(study)
        for draft, target in zip(drafts, targets, strict=True):
            with naming(target):
                pictures.write(draft, target)
    return [path for path in targets if path.stem in pictures.figures]


@dataclass(frozen=True, eq=False)
class Pictures:
    """Figures by name, and why others could not be drawn."""

    figures: dict[str, Figure]
    left_out: dict[str, str]

    @classmethod
    def of(cls, study: Analysis) -> Pictures:
        """The standard set. What the data do not allow, such as intervals without standard errors, is left out."""
        displays: dict[str, Callable[[], Any]] = {
            "wright": lambda: WrightMap.of(study).plot().figure,
            "items": lambda: ItemIntervals.of(study).plot().figure,
            "fit": lambda: FitMap.of(study).plot().figure,
            "information": lambda: TestInformation.of(study).plot().figure,
            "scores": lambda: ScoreDistribution.of(study).plot().figure,
            "icc": lambda: _sheet(study),
        }
        if has_options(study.responses):
            displays["distractors"] = lambda: distractor_sheet(study)
        figures, left_out = {}, {}
        for name, draw in displays.items():
            try:
                figures[name] = draw()
            except OptionError as error:
                left_out[name] = error.for_shell()
        if not figures:
            raise OptionError(next(iter(left_out.values())))
        return cls(figures, left_out)

    def write(self, draft: Path, target: Path) -> None:
        """Write the figure that the target is named after; where it could not be drawn, remove the draft."""
        if target.stem in self.figures:
            write_figure(self.figures[target.stem], draft, target)
        else:
            draft.unlink()


def _sheet(study: Analysis) -> Figure:
    """Curves of all items that have a fit, or of the thirty that fit worst."""
    fit = FitMap.of(study)
    labels = fit.table["item"]
    if len(labels) <= SHEET:
        return curve_sheet(curves(study, labels.tolist()), f"The curves of {len(labels)} items, and what was observed")
    worst = labels[fit.worst(SHEET)]
    title = f"The {SHEET} items of {len(labels):,} that fit worst: curves, and what was observed"
    return curve_sheet(curves(study, worst.tolist()), title)
