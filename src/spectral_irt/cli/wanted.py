"""Options of what a calibration is to give besides difficulties."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from spectral_irt.cli.options import panel
from spectral_irt.cli.paths import place
from spectral_irt.errors import OptionError

_analysis = panel("People, fit, and scale")
_exports = panel("Further files")

ABILITIES = ("wle", "ml", "eap", "pv")
Ability = Annotated[
    str,
    _analysis(
        metavar="wle|ml|eap|pv",
        help="Abilities by Warm's weighted likelihood (default), maximum likelihood, or the mean under a prior; pv: "
        "that and plausible values, draws of ability for statements about populations.",
    ),
]
Draws = Annotated[
    int | None,
    _analysis(metavar="NUMBER", min=1, help="Plausible values for each person (--ability pv): pv1, pv2, ...; 5."),
]
Seed = Annotated[
    int | None,
    _analysis(metavar="NUMBER", min=0, help="The seed of plausible values; 0. The same seed gives the same values."),
]


@dataclass(frozen=True)
class Wanted:
    """What to compute and write beside the difficulties; None leaves a choice to the size of the data."""

    persons: Annotated[
        bool | None,
        _analysis(
            "--persons/--no-persons",
            help="Abilities of the people: persons.csv; raw scores: scores.csv. Written by default with -o.",
        ),
    ] = None
    ability: Ability = "wle"
    draws: Draws = None
    seed: Seed = None
    fit: Annotated[
        bool | None,
        _analysis("--fit/--no-fit", help="How well each item fits: item_fit.csv. Written by default with -o."),
    ] = None
    bootstrap: Annotated[
        int | None,
        _analysis(
            metavar="NUMBER", min=1, help="Critical values of the fit of each item from so many simulated data sets."
        ),
    ] = None
    sample: Annotated[
        int | None,
        _analysis(metavar="NUMBER", min=2, help="People to take at random for --bootstrap, where there are very many."),
    ] = None
    group: Annotated[
        list[str] | None,
        _analysis(
            metavar="COLUMN",
            help="Are items as hard for one group of people as for another? By this column: dif.csv; mean abilities: "
            "groups.csv. May be repeated.",
        ),
    ] = None
    group_file: Annotated[
        str | None,
        _analysis(
            metavar="FILE",
            help="A table of people with the columns of --group, --population-by and --clustered-by, where the answers "
            "do not have them.",
        ),
    ] = None
    group_sheet: Annotated[
        str | None, _analysis(metavar="NAME|NUMBER", help="Which sheet, where --group-file is a workbook of several.")
    ] = None
    anchors: Annotated[
        str | None,
        _analysis(
            metavar="DIR|FILE",
            help="Keep items at known difficulties: a bank, or a CSV file or workbook with the columns item and "
            "difficulty.",
        ),
    ] = None
    scale: Annotated[
        str | None,
        _analysis(
            metavar="MEAN,SD",
            help="Report also on a scale where these people have this mean and standard deviation, as in 500,100.",
        ),
    ] = None
    cut: Annotated[
        str | None,
        _analysis(
            metavar="NUMBER,...",
            help="Divide people into classes at these points of the --scale (without one, of the logits), as in "
            "450,550: cuts.csv, how many are in each, and how accurate and consistent that is.",
        ),
    ] = None
    cut_score: Annotated[
        str | None, _analysis(metavar="NUMBER,...", help="The same at these raw scores on the whole test, as in 20,25.")
    ] = None
    rank: Annotated[
        int | None,
        _exports(
            metavar="[K]", min=1, help="Items by rank: ranking.csv, with the chance of being among the K hardest; 10."
        ),
    ] = None
    rank_by: Annotated[
        str | None,
        _exports(
            metavar="difficulty|lower",
            help="Order of --rank: by difficulty to find the hardest items (default), by the lower end of its 95% "
            "interval to recommend.",
        ),
    ] = None
    ifile: Annotated[
        Path | None,
        _exports(parser=place, metavar="FILE", help="Items with the column names of Winsteps: .csv, .tsv or .txt."),
    ] = None
    sfile: Annotated[
        Path | None, _exports(parser=place, metavar="FILE", help="Thresholds of ordered answers, likewise (SFILE=).")
    ] = None
    pfile: Annotated[Path | None, _exports(parser=place, metavar="FILE", help="People, likewise.")] = None
    catsim: Annotated[
        Path | None, _exports(parser=place, metavar="FILE", help="Items for catsim: item, a, b, c, d.")
    ] = None
    plots: Annotated[
        Path | None,
        _exports(
            parser=place,
            metavar="DIR",
            help="Pictures as SVG and PNG: people and items, fit, curves, scores; options, with --key.",
        ),
    ] = None
    report: Annotated[
        Path | None, _exports(parser=place, metavar="FILE", help="Everything in one HTML file that needs no network.")
    ] = None
    list_persons: Annotated[
        bool,
        _exports("--list-persons", help="With --report: a table of single people in it; by default nobody is named."),
    ] = False
    bank: Annotated[
        Path | None,
        _exports(parser=place, metavar="DIR", help="Keep the calibration, for score, link, update and --anchors."),
    ] = None
    salt_file: Annotated[
        Path | None,
        _exports(
            metavar="FILE",
            help="With --bank: your secret by which updates recognize people who come again; made if it does not "
            "exist. Without it the bank keeps nothing about single people.",
        ),
    ] = None

    def check(self, output: Path | None) -> None:
        """Refuse at once what could only fail after the work, and what would do nothing."""
        from spectral_irt.errors import check_option

        check_option("ability", self.ability, ABILITIES)
        check_draws(self.ability, self.draws, self.seed)
        self.mean_and_sd()
        if self.cuts() and self.persons is False:
            raise OptionError("--cut and --cut-score are about people; leave out --no-persons.")
        if self.persons is False and self.pfile is not None:
            raise OptionError("--pfile is a file of people; leave out --no-persons.")
        if self.plots is not None and (self.persons is False or self.fit is False):
            unwanted = "--no-persons" if self.persons is False else "--no-fit"
            raise OptionError(f"--plots shows people and the fit of items; leave out {unwanted}.")
        if self.report is not None:
            from spectral_irt.report.page import check_place

            check_place(self.report)
        if self.list_persons and (self.report is None or self.persons is False):
            needs = "say where with --report FILE" if self.report is None else "leave out --no-persons"
            raise OptionError(f"--list-persons lists people in a report; {needs}.")
        if self.fit is False and self.bootstrap is not None:
            raise OptionError("--bootstrap is about the fit of items; leave out --no-fit.")
        if self.sample is not None and self.bootstrap is None:
            raise OptionError("--sample takes people for --bootstrap; say how many data sets with --bootstrap 200.")
        if self.salt_file is not None and self.bank is None:
            raise OptionError("--salt-file is for a bank; say where to keep it with --bank DIR.")
        if self.rank is not None and output is None:
            raise OptionError("--rank writes a table beside items.csv; say where with -o DIR.")
        if self.rank_by is not None:
            check_option("rank_by", self.rank_by, ("difficulty", "lower"))
            if self.rank is None:
                raise OptionError("--rank-by is the order of --rank; say --rank too.")
        elsewhere = self.ifile or self.pfile or self.report or self.bank or self.cut
        if self.scale is not None and output is None and not elsewhere:
            raise OptionError("--scale is for what is written: -o DIR, --ifile, --pfile, --report or --bank.")
        if self.ability != "wle" and self.persons is False and self.scale is None:
            raise OptionError("--ability is about people; leave it out, or leave out --no-persons.")

    def cuts(self) -> tuple[float, ...]:
        """What `--cut` or `--cut-score` says."""
        if self.cut is not None and self.cut_score is not None:
            raise OptionError("--cut is on the scale of the abilities and --cut-score in raw scores; give one of them.")
        flag, text = ("--cut", self.cut) if self.cut_score is None else ("--cut-score", self.cut_score)
        if text is None:
            return ()
        try:
            return tuple(float(part) for part in text.split(","))
        except ValueError:
            raise OptionError(f"{flag} is {text!r}; it is one or more numbers, as in {flag} 20,25.") from None

    def mean_and_sd(self) -> tuple[float, float] | None:
        """What `--scale` says."""
        if self.scale is None:
            return None
        try:
            mean, sd = (float(part) for part in self.scale.split(","))
            if not (abs(mean) < float("inf") and 0 < sd < float("inf")):
                raise ValueError
        except ValueError:
            raise OptionError(
                f"--scale is {self.scale!r}; it is a mean and a standard deviation above zero, as in --scale 500,100."
            ) from None
        return mean, sd


def check_draws(ability: str, draws: int | None, seed: int | None) -> None:
    """Refuse options of plausible values where there are none."""
    for name, value in (("--draws", draws), ("--seed", seed)):
        if value is not None and ability != "pv":
            raise OptionError(f"{name} is about plausible values; say --ability pv, or leave it out.")


def check_styles(wanted: Wanted) -> None:
    """An error where a file for Winsteps is not named after what it shall be."""
    from spectral_irt.bank.export import WINSTEPS_STYLES

    for path in (wanted.ifile, wanted.sfile, wanted.pfile):
        if path is not None and path.suffix.lower() not in WINSTEPS_STYLES:
            raise OptionError(
                f"{str(path)!r} ends in none of {', '.join(WINSTEPS_STYLES)}; they mean commas, tabs (.tsv, .tab) or "
                "fixed columns (.txt)."
            )
