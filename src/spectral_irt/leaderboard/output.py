"""The leaderboard as files: tables, Markdown, JSON and the plot; complete or not at all.

`Leaderboard.write` and the command `leaderboard` call `write_board`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from spectral_irt.analysis.folder import files_of_run, finding_record, record_head
from spectral_irt.errors import OptionError, OutputError
from spectral_irt.files import write_each
from spectral_irt.leaderboard.findings import markdown
from spectral_irt.leaderboard.page import page
from spectral_irt.plots.base import write_figure
from spectral_irt.report.page import ENDINGS, check_place
from spectral_irt.tables import Columns, write_csv, write_json
from spectral_irt.text import listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spectral_irt.leaderboard.board import Leaderboard

COMMAND = "leaderboard"
RECORD = "leaderboard.json"
TEXT = "leaderboard.md"
PICTURE = "ranks.svg"


def tables_of(board: Leaderboard) -> dict[str, Columns]:
    """The tables that are written, by the names of their files."""
    tables = {"models": board.model_columns(), "contrasts": board.contrast_columns(), "prompts": board.prompt_columns}
    if board.subject_columns is not None:
        tables["subjects"] = board.subject_columns
    if board.cohort_columns is not None:
        tables["cohorts"] = board.cohort_columns
    if board.against_columns is not None:
        tables["against"] = board.against_columns
    return tables


def record(board: Leaderboard) -> dict[str, Any]:
    """What was compared, how, and what came of it."""
    answers = board.answers
    models = board.model_columns()
    rows = zip(*(values.tolist() for values in models.values()), strict=True)
    slopes = board.slopes
    share_below_zero = None
    if np.isfinite(slopes.slope).any():
        share_below_zero = float(np.nanmean(slopes.slope < 0))
    return {
        **record_head(),
        "command": COMMAND,
        "outputs": [],
        "input": {
            "source": answers.source,
            "metrics": list(board.source.metrics),
            "clustered_by": None if board._clusters is None else board.cluster_word,
            "by": None if board._subjects is None else board.subject_word,
            "cohorts": None if board.cohorts is None else [board.cohorts.old, board.cohorts.new],
            "repeated_prompts": board.source.repeated,
            "seed": board.seed,
        },
        "counts": {
            "models": answers.n_persons,
            "prompts": answers.n_items,
            "answers": answers.n_responses,
            "tiers": int(board.tier.max()),
        },
        "data_digest": answers.digest(),
        "scale": board.scale.words,
        "se_method": board.calibration.provenance.se_method,
        "models": [dict(zip(models, row, strict=True)) for row in rows],
        "mcnemar": board.contrasts_found.disagreements()._asdict(),
        "slopes": {
            "chi2": slopes.chi2,
            "df": slopes.df,
            "p": slopes.p,
            "spread": slopes.spread,
            "share_below_zero": share_below_zero,
            "surely_below_zero": int(slopes.negative.sum()),
            "sentence": slopes.sentence,
        },
        "families": [[answers.persons[k] for k in group] for group in board.families],
        "findings": [finding_record(finding) for finding in board.findings],
    }


def write_board(
    board: Leaderboard, folder: Path | None, report: Path | None = None, *, inputs: Iterable[str | Path] = ()
) -> list[Path]:
    """All files of a leaderboard in a folder, and its page: everything or nothing. A folder that is called .html is the
    page."""

    def contents() -> Contents:
        about = record(board)
        texts = {TEXT: markdown(board)}
        return Contents(tables_of(board), RECORD, about, texts, cast("Figure", board.plot.plot().figure))

    return write_results(contents, lambda: page(board), folder, report, inputs=inputs)


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
