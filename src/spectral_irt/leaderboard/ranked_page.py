"""A board as files and as one HTML page in the look of the report: what pages of models and of contestants share.

A kind of board says which sections, tables and record it has (`RankedPage`); the plot of ranks, the findings and the
writing, complete or not at all, are here. `race.py` writes its results by `write_results`, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from spectral_irt import __version__
from spectral_irt.analysis.folder import files_of_run, finding_record, record_head
from spectral_irt.errors import OptionError, OutputError
from spectral_irt.files import write_each
from spectral_irt.leaderboard.ranked import RankedBoard
from spectral_irt.leaderboard.scale import ELO, BoardScale
from spectral_irt.plots.base import Display, write_figure
from spectral_irt.plots.items import rank_rows
from spectral_irt.plots.style import GRAY, INK, dress, note, rows_height, whole_ticks
from spectral_irt.report.blocks import MOST, Column, DataTable, Lines, Section, Text, picture
from spectral_irt.report.overview import finding_blocks
from spectral_irt.report.page import ENDINGS, check_place, rendered
from spectral_irt.tables import Columns, write_csv, write_json
from spectral_irt.text import listed, percent, plural, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE = "ranks.svg"
DRAWN = 60  # rows of the plot
# rows in the page; the files have all
PAIRS = 5_000
PROMPTS = 10_000
SUBJECTS = 5_000
OF_SCALE = ("ability", "se", "ci_low", "ci_high")  # columns on the scale of the board
RANKED = [Column("rank", "rank", 0), Column("ability", "ability", 2), Column("se", "se", 3)]
RANKED += [Column("rank_low", "ranks from", 0), Column("rank_high", "to", 0), Column("tier", "tier", 0)]
INTERVAL = [Column("ci_low", "95% from", 2, closed=True), Column("ci_high", "95% to", 2, closed=True)]
STATUS = [Column("status", "status", closed=True)]


Board = TypeVar("Board", bound=RankedBoard)


class RankedPage(ABC, Generic[Board]):
    """The files and the page of a board."""

    command: ClassVar[str] = "leaderboard"
    record_name: ClassVar[str] = "leaderboard.json"
    title: ClassVar[str] = "Leaderboard"
    columns: ClassVar[Sequence[Column]]  # of the main table
    findings_elsewhere: ClassVar[tuple[str, Collection[str]]]  # another section, and the codes of findings about it

    def __init__(self, board: Board) -> None:
        self.board = board

    @property
    @abstractmethod
    def source(self) -> str:
        """What the board is of."""

    @abstractmethod
    def counts(self) -> str:
        """How many are compared, by how many observations."""

    @abstractmethod
    def how_to_read(self) -> list[str]:
        """The columns in words."""

    @abstractmethod
    def beside(self) -> tuple[str, NDArray[Any]]:
        """What the plot has beside each of them, and its name."""

    @abstractmethod
    def more_sections(self) -> Iterator[Section]:
        """After the main table, the ranks and the findings."""

    @abstractmethod
    def tables(self) -> dict[str, Columns]:
        """What is written, by the names of the files."""

    @abstractmethod
    def contents(self) -> dict[str, Any]:
        """What was compared, how, and what came of it."""

    def texts(self) -> dict[str, str]:
        """Files of text, by their names."""
        return {}

    @property
    def place(self) -> str:
        """The section of the main table."""
        return plural(self.board.noun)

    def headline(self) -> str:
        """Who is first, and by how much."""
        table = self.board.main_columns()
        best = table[self.board.noun][0]
        n_first = int(np.sum(table["tier"] == 1))
        lead = f"{best} is first, significantly ahead of all others"
        if n_first > 1:
            lead = f"{n_first:,} {self.place} share the first tier: none of them is significantly worse than {best}"
        n_tiers = int(table["tier"].max())
        tiers = "One tier" if n_tiers == 1 else f"{n_tiers:,} tiers"
        return f"{self.counts()}. {lead}. {tiers}."

    def sections(self) -> list[Section]:
        """Those of every board, and then those of its kind."""
        return [self._main(), self._ranks(), self._findings(), *self.more_sections()]

    def _main(self) -> Section:
        scale = self.board.scale
        name = self.place.capitalize()
        table = DataTable(
            self.place,
            f"{name} from the best down; ability in {scale.words}",
            scaled_columns(self.columns, scale),
            self.board.main_columns(),
            filters=("tier",),
            noun=self.place,
        )
        return Section((Text(self.headline()), table, Lines(tuple(self.how_to_read()))), (), name, self.place)

    def _ranks(self) -> Section:
        table = self.board.main_columns()
        spans = table["rank_high"] - table["rank_low"] + 1
        alt = (
            f"Ranks of the {self.place} with intervals. First: {short(table[self.board.noun][0], 40)}, ranks "
            f"{table['rank_low'][0]} to {table['rank_high'][0]}. An interval has {np.median(spans):.0f} ranks in the "
            f"middle of all. The table of {self.place} has the numbers."
        )
        return Section((picture(self.rank_plot(), alt),), (), "How sure the ranks are", "ranks")

    def _findings(self) -> Section:
        section, codes = self.findings_elsewhere
        records = [finding_record(finding) for finding in self.board.findings]
        blocks = finding_blocks(records, lambda code: section if code in codes else self.place)
        return Section(blocks, (), "Findings", "findings")

    def rank_plot(self) -> RankPlot:
        """Everybody with the interval of the rank."""
        name, values = self.beside()
        table = {**self.board.main_columns(), name: values}
        return RankPlot(table=table, noun=self.board.noun, beside=name, frame_kind=self.board.frame_kind)

    def record(self) -> dict[str, Any]:
        """The content of the JSON file; `outputs` are named when they are written."""
        return {
            **record_head(),
            "command": self.command,
            "outputs": [],
            **self.contents(),
            "findings": [finding_record(finding) for finding in self.board.findings],
        }

    def html(self) -> str:
        """The page."""
        return rendered(f"{self.title}: {self.source}", self.sections(), __version__)

    def write(
        self, folder: Path | None, report: Path | None = None, *, inputs: Iterable[str | Path] = ()
    ) -> list[Path]:
        """All files in a folder, and the page: everything or nothing. A folder that is called .html is the page."""

        def contents() -> Contents:
            figure = cast("Figure", self.rank_plot().plot().figure)
            return Contents(self.tables(), self.record_name, self.record(), self.texts(), figure)

        return write_results(contents, self.html, folder, report, inputs=inputs)


def scaled_columns(columns: Sequence[Column], scale: BoardScale) -> tuple[Column, ...]:
    """The columns with as many digits of abilities as the scale needs."""
    if scale.name != ELO:
        return tuple(columns)
    return tuple(replace(column, digits=0) if column.name in OF_SCALE else column for column in columns)


def page_table(
    name: str, caption: str, columns: Sequence[Column], values: Columns, most: int, filters: tuple[str, ...] = ()
) -> tuple[Any, ...]:
    """A table of the first rows, and a word where there are more."""
    rows = len(next(iter(values.values())))
    most = min(most, MOST)
    first = {key: column[:most] for key, column in values.items()}
    table = DataTable(name, caption, tuple(columns), first, filters=filters)
    if rows <= most:
        return (table,)
    return (Text(f"The first {most:,} rows of {rows:,}; {name}.csv has all."), table)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankPlot(Display):
    """The first labels of a board, each with the interval of its rank; `noun` is their column. Beside each stands its
    `beside`, in percent if it is a number."""

    table: Columns
    noun: str = "model"
    beside: str = "accuracy"

    def columns(self) -> Columns:
        return self.table

    def size(self) -> tuple[float, float]:
        return 7.2, rows_height(min(DRAWN, len(self.table[self.noun])))

    def draw(self, ax: Axes) -> None:
        m = len(self.table[self.noun])
        rows = min(m, DRAWN)
        one = {name: values[:rows] for name, values in self.table.items()}
        which = f"The first {rows} of {m:,} {self.noun}s" if rows < m else f"{m:,} {self.noun}s"
        dress(ax, f"{which}: ranks that hold for all at once, 95%", "rank, 1 = best", "", grid="x")
        words = [word if isinstance(word, str) else percent(word) for word in one[self.beside].tolist()]
        rank_rows(ax, one[self.noun].tolist(), one["rank_low"], one["rank_high"], words)
        ax.plot(one["rank"], np.arange(rows), "o", color=INK, markersize=3.2)
        for k in np.flatnonzero(np.diff(one["tier"])).tolist():
            ax.axhline(k + 0.5, color=GRAY, linewidth=0.8, linestyle=(0, (3, 3)))
        ax.set_xlim(0.3, float(np.max(one["rank_high"])) + 0.7)
        whole_ticks(ax, "x")
        note(ax, f"dashed: tiers; at the right: {self.beside}")


class Contents(NamedTuple):
    """What is written to a folder: tables, a record under its name, texts, and the plot of ranks."""

    tables: Mapping[str, Columns]
    record_name: str
    record: Mapping[str, Any]
    texts: Mapping[str, str]
    figure: Figure
    picture: str = PICTURE


def write_results(
    contents: Callable[[], Contents],
    html: Callable[[], str],
    folder: Path | None,
    report: Path | None,
    *,
    inputs: Iterable[str | Path] = (),
) -> list[Path]:
    """A folder of results and a page, each where it was asked for: everything or nothing. A folder that is called .html
    is the page."""
    if folder is not None and folder.suffix.lower() in ENDINGS:
        if report is not None:
            raise OptionError(f"{str(folder)!r} and {str(report)!r} are both pages; leave out one of them.")
        report = folder
        folder = None
    if report is not None:
        check_place(report)
    writers: dict[Path, Callable[[Path], object]] = {}
    stale: list[Path] = []
    if folder is not None:
        files = contents()
        writers = {
            folder / f"{name}.csv": partial(write_csv, columns=columns) for name, columns in files.tables.items()
        }
        names = [*(path.name for path in writers), files.record_name, *files.texts, files.picture]
        writers[folder / files.record_name] = partial(write_json, record={**files.record, "outputs": names})
        for name, text in files.texts.items():
            writers[folder / name] = partial(_write_text, text=text)
        place = folder / files.picture
        writers[place] = lambda draft: write_figure(files.figure, draft, place)
        stale = _stale(folder, files.record_name, list(writers))
    if report is not None:
        writers[report] = lambda draft: _write_text(draft, html())
    return write_each(writers, inputs=inputs, stale=stale)


def _write_text(draft: Path, text: str) -> None:
    draft.write_text(text, encoding="utf-8", newline="\n")


def _stale(folder: Path, record_name: str, targets: list[Path]) -> list[Path]:
    """Files of earlier results of this kind that the new ones have not; an error where somebody else's file is in the
    way."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{str(folder)!r} is a file, not a directory; choose another place. Nothing was written.")
    ours = files_of_run(folder / record_name)
    foreign = [path.name for path in targets if path.exists() and path.name not in ours]
    if foreign:
        raise OutputError(
            f"{str(folder)!r} holds {listed(foreign)}, which were not written there with {record_name}; choose another "
            "directory, or move it away. Nothing was written."
        )
    return [folder / name for name in sorted(ours) if (folder / name).is_file() and folder / name not in targets]
