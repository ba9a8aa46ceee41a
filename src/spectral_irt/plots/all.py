"""`study.plot`: every picture of an analysis, and the standard set of them as files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.errors import OptionError, for_shell
from spectral_irt.files import refuse_foreign, write_each
from spectral_irt.inference.fit.strata import STRATA
from spectral_irt.inference.items.distractors import STRATA as CURVE
from spectral_irt.plots.base import PROGRAM, Display, write_figure
from spectral_irt.plots.category_means import CategoryMeans
from spectral_irt.plots.curves import SHEET, CategoryCurves, ItemCurve, category_curves, curves, sheet_of
from spectral_irt.plots.distractors import DistractorCurves, distractor_curves, distractor_sheet
from spectral_irt.plots.fit import FitMap, ResidualCorrelations
from spectral_irt.plots.guttman import ScalogramPlot
from spectral_irt.plots.items import Agreement, ItemIntervals, RankIntervals
from spectral_irt.plots.kidmap import KidMap
from spectral_irt.plots.pathway import PathwayChart
from spectral_irt.plots.people import ScoreDistribution, TestInformation
from spectral_irt.plots.wright import WrightMap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spectral_irt.analysis import Analysis, Parts
    from spectral_irt.inference.dimensions.local_dependence import LocalDependence
    from spectral_irt.inference.groups.dif import Differential
    from spectral_irt.plots.change import ChangePlot, PersonChangePlot
    from spectral_irt.plots.dif import DifferentialPlot
    from spectral_irt.plots.tree import TreePlot

EVERY = ("wright", "items", "fit", "information", "scores")  # what every analysis has
CHANGE = ("change", "person_change")  # of several waves
COMPARED = 4  # comparisons of groups, and facets, that are drawn
DIF, FACETS = (tuple(f"{name}{k}" for k in ("", *range(2, COMPARED + 1))) for name in ("dif", "facet"))
NAMES = (*EVERY, "icc", "categories", "distractors", *DIF, *FACETS, "dif_tree", *CHANGE)  # of the standard set
KINDS = ("svg", "png")


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

    def wright(self, *, thresholds: bool = True) -> WrightMap:
        """People and items on one scale: where items have several thresholds these, or with `thresholds=False` the
        locations of the items."""
        return WrightMap.of(self.study, thresholds=thresholds)

    def items(self) -> ItemIntervals:
        """How hard each item is, with its 95% interval, from the hardest down."""
        return ItemIntervals.of(self.study)

    def facet(self, name: str | None = None) -> ItemIntervals:
        """How severe each rater (level of a facet) is, with its 95% interval, from the most severe down."""
        return ItemIntervals.of(self.study, self.study._facet(name))

    def icc(self, item: Any, *, strata: int = STRATA) -> ItemCurve:
        """The expected answer to one item, and mean answers in strata of ability with 95% intervals.

        Not for items that were chosen by the answers: the strata go by scores.
        """
        return curves(self.study, [item], strata)[0]

    def categories(self, item: Any) -> CategoryCurves:
        """The probability of each answer to one item, over the scale."""
        return category_curves(self.study, [item])[0]

    def distractors(self, item: Any, *, strata: int = CURVE) -> DistractorCurves:
        """Which option of one item people of each ability choose; for answers that were scored with a key."""
        return distractor_curves(self.study, [item], strata)[0]

    def fit(self, critical: int = 0) -> FitMap:
        """Infit against outfit of every item, and which items misfit; with the band of so many data sets drawn given
        the scores."""
        return FitMap.of(self.study, critical)

    def pathway(self) -> PathwayChart:
        """Infit against difficulty of every item, in bubbles as wide as its standard error."""
        return PathwayChart.of(self.study)

    def category_means(self) -> CategoryMeans:
        """Mean ability of the persons in each category of every item, observed and expected."""
        return CategoryMeans.of(self.study)

    def kidmap(self, person: Any) -> KidMap:
        """What one person passed and did not pass, on the scale; what was unexpected is marked."""
        return KidMap.of(self.study, person)

    def guttman(self, persons: Sequence[Any] | None = None) -> ScalogramPlot:
        """Every response in a table of persons (highest on top) by items (easiest left); unexpected ones are marked.

        Parameters
        ----------
        persons : sequence of labels, optional
            Whose responses; by default everybody's, where these are not too many to be seen.
        """
        return ScalogramPlot.of(self.study, persons)

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
        from spectral_irt.inference.groups.dif import Differential
        from spectral_irt.plots.dif import DifferentialPlot

        if isinstance(groups, Differential):
            return DifferentialPlot.of(groups, group, self.study._words)
        return DifferentialPlot.of(self.study.dif(groups, **options), group, self.study._words)

    def dif_tree(self, columns: Any, **options: Any) -> TreePlot:
        """A tree of groups for whom items work differently, with the difficulties of the items in its leaves.

        `columns` are columns about persons, or what `study.dif_tree` returned; the options are those of it.
        """
        from spectral_irt.inference.groups.tree import DifTree
        from spectral_irt.plots.tree import TreePlot

        tree = columns if isinstance(columns, DifTree) else self.study.dif_tree(columns, **options)
        return TreePlot.of(tree, self.study._words)

    def change(self) -> ChangePlot:
        """Mean measures by wave and arm, of an analysis by `si.change`."""
        from spectral_irt.plots.change import ChangePlot

        return ChangePlot.of(self.study)

    def person_change(self) -> PersonChangePlot:
        """Each person's first measure against the last, with the band of changes that may be error alone."""
        from spectral_irt.plots.change import PersonChangePlot

        return PersonChangePlot.of(self.study)

    def against(self, other: Any, *, method: str = "robust") -> Agreement:
        """The difficulties of another calibration (or bank, fit, analysis) against these, over the common items.

        Parameters
        ----------
        method : "robust" or "mean"
            How the other is brought to this scale; see `link`.
        """
        return Agreement.of(self.study, other, method)

    def dependence(self, found: LocalDependence | None = None, **options: Any) -> ResidualCorrelations:
        """Residual correlations of pairs of items; `found` or the options are those of `study.local_dependence`."""
        if found is None:
            found = self.study.local_dependence(**options)
        return ResidualCorrelations.of(found)

    def ranks(self, top: int = 10) -> RankIntervals:
        """The hardest items with 95% intervals of their ranks, and the chance of being among the `top` hardest."""
        return RankIntervals.of(self.study, top)

    def write(self, folder: str | Path) -> list[Path]:
        """Write the standard set to a folder as SVG and PNG, complete or not at all; the paths."""
        return write_each(Pictures.of(self.study).writers(standard_paths(Path(folder))))


def standard_paths(folder: Path) -> list[Path]:
    """Where the pictures go; an error when one would take the place of a file that is not such a picture."""
    targets = [folder / f"{name}.{kind}" for name in NAMES for kind in KINDS]
    refuse_foreign(targets, PROGRAM)
    return targets


@dataclass(frozen=True, eq=False)
class Pictures:
    """Figures by name, and why others could not be drawn."""

    figures: dict[str, Figure]
    left_out: dict[str, str]

    @classmethod
    def of(cls, study: Analysis, parts: Parts | None = None) -> Pictures:
        """The standard set. What the data do not allow, such as intervals without standard errors, is left out."""
        plot = Plots(study)
        displays: dict[str, Callable[[], Any]] = {name: getattr(plot, name) for name in EVERY}
        if not study.facets:  # an item has a curve for each rater there
            displays["icc"] = lambda: curve_sheet(study)
        if not study.calibration.layout.binary:
            displays["categories"] = lambda: category_sheet(study)
        elif study._multiple_choice:
            displays["distractors"] = lambda: distractor_sheet(study)
        if parts is not None:
            comparisons = zip(DIF, comparisons_of(study, parts), strict=False)
            displays |= {name: partial(plot.dif, *comparison) for name, comparison in comparisons}
            if parts.tree is not None:
                displays["dif_tree"] = partial(plot.dif_tree, study._tree(parts))
        if study._change is not None:
            displays |= {name: getattr(plot, name) for name in CHANGE}
        displays |= {name: partial(plot.facet, facet) for name, facet in zip(FACETS, study.facets, strict=False)}
        figures: dict[str, Any] = {}
        left_out: dict[str, str] = {}
        for name, draw in displays.items():
            try:
                display = draw()
                if isinstance(display, Display):
                    figures[name] = display.plot().figure
                else:  # a sheet of many is a figure already
                    figures[name] = display
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


def curve_sheet(study: Analysis) -> Figure:
    """Curves of all items that have a fit, or of the thirty that fit worst, and what was observed."""
    labels, which = items_of_a_sheet(study)
    y = "share of right answers" if study.calibration.layout.binary else "mean answer"
    return sheet_of(curves(study, labels), f"{which}: curves, and what was observed", study._words.trait, y)


def category_sheet(study: Analysis) -> Figure:
    """Category curves of the same items."""
    labels, which = items_of_a_sheet(study)
    title = f"{which}: probability of each answer"
    return sheet_of(category_curves(study, labels), title, study._words.trait, "probability")


def comparisons_of(study: Analysis, parts: Parts) -> list[tuple[Differential, Any]]:
    """Every comparison of a group of people with a reference group."""
    return [
        (differential, group)
        for differential in study._comparisons_of_groups(parts).values()
        for group in dict.fromkeys(differential.contrasts["group"].tolist())
    ]


def items_of_a_sheet(study: Analysis) -> tuple[list[Any], str]:
    """The items of a sheet, and which these are in words: all that have a fit, or the thirty that fit worst, to which
    anchors that are not where they were belong."""
    if study.facets:
        labels = study.calibration.own_items.labels[:SHEET]
        return labels.tolist(), f"The {'first ' if len(labels) == SHEET else ''}{len(labels)} items"
    fit = FitMap.of(study)
    labels = fit.table["item"]
    if len(labels) <= SHEET:
        return labels.tolist(), f"The {len(labels)} items"
    displaced = study.calibration.items_named_by("displaced_anchors")
    others = [label for label in labels[fit.worst(len(labels))].tolist() if label not in displaced]
    which = "that fit worst" if not displaced else "that fit worst, displaced anchors first"
    return [*displaced, *others][:SHEET], f"The {SHEET} items of {len(labels):,} {which}"
