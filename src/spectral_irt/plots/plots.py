"""`study.plot`: every display of an analysis."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.inference.dimensions.q3 import LocalDependence
from spectral_irt.inference.fit.strata import STRATA
from spectral_irt.inference.groups.dif import Differential
from spectral_irt.inference.items.option_curves import STRATA as CURVE
from spectral_irt.plots.agreement import Agreement
from spectral_irt.plots.dependence import ResidualCorrelations
from spectral_irt.plots.dif import DifferentialPlot
from spectral_irt.plots.distractors import DistractorCurves
from spectral_irt.plots.fit_map import FitMap
from spectral_irt.plots.icc import ItemCurve
from spectral_irt.plots.information import TestInformation
from spectral_irt.plots.items import ItemIntervals
from spectral_irt.plots.links import LinkMap
from spectral_irt.plots.ranks import RankIntervals
from spectral_irt.plots.scores import ScoreDistribution
from spectral_irt.plots.wright import WrightMap

if TYPE_CHECKING:
    from spectral_irt.analysis import Analysis


class Plots:
    """The displays of an analysis: each has `frame()`, its table, `plot(ax=None)`, which returns axes, `save(path)`.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> answers = datasets.load_lsat()
    >>> study = SpectralRasch().fit(answers).analyse(answers)
    >>> study.plot.icc("item3").frame()["n"].sum()
    699
    >>> study.plot.wright().plot().get_title(loc="left")
    'People and items on one scale'
    """

    def __init__(self, study: Analysis) -> None:
        self.study = study

    def __repr__(self) -> str:
        names = [name for name in vars(type(self)) if not name.startswith("_")]
        return f"<Pictures of {self.study!r}: {', '.join(names)}>"

    def wright(self) -> WrightMap:
        """People and items on one scale."""
        return WrightMap.of(self.study)

    def items(self) -> ItemIntervals:
        """How hard each item is, with its 95% interval, from the hardest down."""
        return ItemIntervals.of(self.study)

    def icc(self, item: Any, *, strata: int = STRATA) -> ItemCurve:
        """The curve of one item, and the share of right answers in strata of ability with 95% intervals."""
        return ItemCurve.of(self.study, item, strata)

    def distractors(self, item: Any, *, strata: int = CURVE) -> DistractorCurves:
        """Which option of one item people of each ability choose; for answers that were scored with a key."""
        return DistractorCurves.of(self.study, item, strata)

    def fit(self) -> FitMap:
        """Infit against outfit of every item, and which items misfit."""
        return FitMap.of(self.study)

    def information(self) -> TestInformation:
        """Information and standard error of an ability over the scale."""
        return TestInformation.of(self.study)

    def scores(self) -> ScoreDistribution:
        """How many people have which score."""
        return ScoreDistribution.of(self.study)

    def dif(self, groups: Any, group: Any = None, **options: Any) -> DifferentialPlot:
        """How much harder each item is for one group of people than for another.

        Parameters
        ----------
        groups : labels of people, or what `study.dif` returned
        group : label, optional
            The focal group to show, where there are several; the first by default.
        **options
            Of `study.dif`.
        """
        found = groups if isinstance(groups, Differential) else self.study.dif(groups, **options)
        return DifferentialPlot.of(found, group)

    def against(self, other: Any, *, method: str = "robust") -> Agreement:
        """The difficulties of another calibration (or bank, fit, analysis) against these, over the common items.

        Parameters
        ----------
        method : "robust", "mean" or "mean-sigma"
            How the other is brought to this scale; see `link`.
        """
        return Agreement.of(self.study, other, method)

    def dependence(self, found: LocalDependence | None = None, **options: Any) -> ResidualCorrelations:
        """Residual correlations of pairs of items; `found` or the options are those of `study.local_dependence`."""
        return ResidualCorrelations.of(self.study.local_dependence(**options) if found is None else found)

    def ranks(self, top: int = 10) -> RankIntervals:
        """The hardest items with 95% intervals of their ranks, and the chance of being among the `top` hardest."""
        return RankIntervals.of(self.study, top)

    def links(self) -> LinkMap:
        """Groups of items between which few people make a link."""
        return LinkMap.of(self.study)

    def write(self, folder: str | Path) -> list[Path]:
        """Write the standard set to a folder as SVG and PNG, complete or not at all; the paths."""
        from spectral_irt.plots.standard import write_standard

        return write_standard(self.study, Path(folder))
