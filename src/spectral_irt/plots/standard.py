"""The standard set of pictures: those that every analysis can have, as files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.errors import OptionError, for_shell
from spectral_irt.files import write_each
from spectral_irt.inference.items.distractors import has_options
from spectral_irt.plots.distractors import distractor_sheet
from spectral_irt.plots.fit_map import FitMap
from spectral_irt.plots.icc import SHEET, curve_sheet, curves
from spectral_irt.plots.information import TestInformation
from spectral_irt.plots.items import ItemIntervals
from spectral_irt.plots.saving import refuse_foreign, write_figure
from spectral_irt.plots.scores import ScoreDistribution
from spectral_irt.plots.wright import WrightMap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spectral_irt.analysis import Analysis

NAMES = ("wright", "items", "fit", "information", "scores", "icc", "distractors")
KINDS = ("svg", "png")


def standard_paths(folder: Path, names: Sequence[str] = NAMES) -> list[Path]:
    """Where the pictures go; an error when one would take the place of a file that is not such a picture."""
    targets = [folder / f"{name}.{kind}" for name in names for kind in KINDS]
    refuse_foreign(targets)
    return targets


def write_standard(study: Analysis, folder: Path) -> list[Path]:
    """Write the standard set as SVG and PNG, complete or not at all; the paths of what could be drawn."""
    targets = standard_paths(folder)
    return write_each(Pictures.of(study).writers(targets))


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
        return cls.drawn(displays)

    @classmethod
    def drawn(cls, displays: Mapping[str, Callable[[], Any]]) -> Pictures:
        """Those that can be drawn, each by its function."""
        figures, left_out = {}, {}
        for name, draw in displays.items():
            try:
                figures[name] = draw()
            except OptionError as error:
                left_out[name] = for_shell(str(error))
        if not figures:
            raise OptionError(next(iter(left_out.values())))
        return cls(figures, left_out)

    def writers(self, targets: Iterable[Path]) -> dict[Path, Callable[[Path], None]]:
        """What writes each of the targets, as a function of its draft."""
        return {target: partial(self.write, target=target) for target in targets}

    def write(self, draft: Path, target: Path) -> None:
        """Write the figure that the target is named after; where it could not be drawn, remove the draft."""
        if target.stem in self.figures:
            write_figure(self.figures[target.stem], draft, target)
        else:
            draft.unlink()


def _sheet(study: Analysis) -> Figure:
    """Curves of all items that have a fit, or of the thirty that fit worst."""
    labels, which = worth_a_look(FitMap.of(study))
    return curve_sheet(curves(study, labels), f"{which}: curves, and what was observed")


def worth_a_look(fit: FitMap) -> tuple[list[Any], str]:
    """The items of a sheet, and which these are in words: all that have a fit, or the thirty that fit worst."""
    labels = fit.table["item"]
    if len(labels) <= SHEET:
        return labels.tolist(), f"The {len(labels)} items"
    return labels[fit.worst(SHEET)].tolist(), f"The {SHEET} items of {len(labels):,} that fit worst"
