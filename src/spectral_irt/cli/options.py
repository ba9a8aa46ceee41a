"""Options that several commands share: how the files are to be read, what else is wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectral_irt.cli.places import place
from spectral_irt.errors import OptionError

if TYPE_CHECKING:
    from spectral_irt.cli.progress import Progress
    from spectral_irt.responses import Responses

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="CSV or TSV (plain, .gz, .zst), an Excel or OpenDocument workbook, SPSS, Stata, Parquet, Arrow/Feather or "
        "JSON lines; several files are one table.",
    ),
]


def offered(values: str) -> Callable[[str], list[str]]:
    """What a shell offers for an option that is described as "users|items" or "auto|NUMBER".

    >>> offered("auto|none|NUMBER")("a")
    ['auto']
    """
    words = [value for value in values.split("|") if value.islower()]
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def panel(title: str) -> Callable[..., Any]:
    def described(*flags: str, metavar: str = "", offers: str = "", help: str, **more: Any) -> Any:
        return typer.Option(
            *flags,
            metavar=metavar or None,
            help=help,
            rich_help_panel=title,
            show_default=False,
            autocompletion=offered(offers or metavar) if "|" in offers + metavar else None,
            **more,
        )

    return described


_layout = panel("How the file is laid out")
_scoring = panel("What counts as right")
_analysis = panel("People, fit, and scale")
_exports = panel("Further files")


@dataclass(frozen=True)
class Reading:
    """How files are to be read; the options of `read_responses`."""

    format: Annotated[
        str,
        _layout(
            metavar="wide|long|auto",
            help="Wide: a row for each person, a column for each item. Long: a row for each answer. Detected "
            "from the column names by default.",
        ),
    ] = "auto"
    user: Annotated[
        str | None,
        _layout("--person", "--user", metavar="COLUMN", help="Who answered (long tables), or the row labels."),
    ] = None
    item: Annotated[str | None, _layout(metavar="COLUMN", help="Which item it was (long tables).")] = None
    response: Annotated[str | None, _layout(metavar="COLUMN", help="What the answer was (long tables).")] = None
    orient: Annotated[str, _layout(metavar="users|items", help="What a row of a wide table is; users by default.")] = (
        "users"
    )
    duplicates: Annotated[
        str,
        _layout(
            metavar="error|first|last",
            help="When somebody answered an item twice: complain (default), or keep the first or last answer.",
        ),
    ] = "error"
    ignore: Annotated[
        list[str],
        _layout(metavar="COLUMN,...", help="Columns of a wide table that are not items, such as age."),
    ] = field(default_factory=list)
    items: Annotated[
        list[str],
        _layout(
            metavar="PATTERN,...",
            help="Columns of a wide table that are items, as in 'q*'. By default all but labels and attributes of the "
            "people, such as sex or school; with --key, the items of the key.",
        ),
    ] = field(default_factory=list)
    sheet: Annotated[
        str | None,
        _layout(metavar="NAME|NUMBER", help="Which sheet of a workbook, where several hold something."),
    ] = None
    encoding: Annotated[
        str | None,
        _layout(
            metavar="NAME",
            help="How text files are written, as in cp1252. By default UTF-8 or UTF-16 by their first bytes, else "
            "Windows-1252 with a warning.",
        ),
    ] = None
    largest_component: Annotated[
        bool,
        _layout(
            "--largest-component",
            help="Keep only the largest group of items that have a common scale.",
        ),
    ] = False
    missing: Annotated[
        list[str],
        _scoring(
            metavar="VALUE",
            help="What else means 'not answered', besides the empty cell, NA, NaN and null. Repeat for several.",
        ),
    ] = field(default_factory=list)
    omitted: Annotated[
        str,
        _scoring(
            metavar="missing|wrong",
            help="What a blank before a later answer of the same person is (wide tables); missing by default.",
        ),
    ] = "missing"
    not_reached: Annotated[
        str,
        _scoring(metavar="missing|wrong", help="What the blanks after the last answer are; missing by default."),
    ] = "missing"
    not_presented: Annotated[
        list[str],
        _scoring(
            metavar="VALUE",
            help="What means that the item was not on this person's form: neither of these. '' is the empty cell.",
        ),
    ] = field(default_factory=list)
    key: Annotated[
        str | None, _scoring(metavar="FILE", help="Answer key of a multiple-choice test: columns item and key.")
    ] = None
    key_sheet: Annotated[
        str | None, _scoring(metavar="NAME|NUMBER", help="Which sheet, where the key is in a workbook of several.")
    ] = None
    correct: Annotated[
        list[str], _scoring(metavar="VALUE", help="This answer is right, every other wrong. Repeat for several.")
    ] = field(default_factory=list)
    threshold: Annotated[float | None, _scoring(metavar="NUMBER", help="Values above it are right.")] = None
    above_mean: Annotated[
        str | None,
        _scoring(
            metavar="right|wrong",
            help="Ratings: what a rating above the person's own mean counts as. 'wrong' makes larger difficulty mean "
            "better liked.",
        ),
    ] = None

    def read(self, files: Sequence[str], progress: Progress) -> Responses:
        """The responses in these files, checked: something can be estimated from them."""
        from spectral_irt.responses.usable import check_usable

        responses = self._read(files, progress)
        check_usable(responses)
        return responses.largest_component() if self.largest_component else responses

    def read_any(self, files: Sequence[str], progress: Progress) -> Responses:
        """The responses in these files, be it those of a single person: enough where difficulties are known."""
        if self.largest_component:
            raise OptionError("--largest-component is for a calibration; a bank has a common scale already.")
        return self._read(files, progress)

    def _read(self, files: Sequence[str], progress: Progress) -> Responses:
        from spectral_irt.responses.read import read_responses

        how: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        del how["largest_component"]
        how["correct"] = self.correct or None
        return read_responses(list(files), progress=progress.reading, **how)

    def inputs(self, files: Sequence[str]) -> list[str]:
        """Every file that is read: no result may take its place."""
        return [*files, *([self.key] if self.key is not None else [])]

    def said(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        default = Reading()
        return {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if getattr(self, one.name) != getattr(default, one.name)
        }


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
        str | None,
        _analysis(metavar="NUMBER,...", help="The same at these raw scores on the whole test, as in 20,25."),
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
        Path | None,
        _exports(parser=place, metavar="FILE", help="Everything in one HTML file that needs no network."),
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


Parquet = Annotated[
    bool, typer.Option("--parquet", help="Write every table as Parquet as well; with -o.", show_default=False)
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        parser=place,
        metavar="DIR|FILE.xlsx",
        show_default=False,
        help="Where to write items.csv, persons.csv, scores.csv, item_fit.csv, item_analysis.csv, fit.json and what "
        "else there is, or a workbook with a sheet for each.",
    ),
]
