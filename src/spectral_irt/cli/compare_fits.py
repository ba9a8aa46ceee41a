"""`spectral-irt compare-fits`: the results of two fits side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.cli.help import argument
from spectral_irt.cli.options import is_called_a_file, output_at, own
from spectral_irt.cli.terminal import Mode, say_written
from spectral_irt.errors import OptionError

if TYPE_CHECKING:
    from spectral_irt.analysis.comparison import Comparison, Fitted

SHOWN = 12  # items that are shown: those that moved most


def _cuts(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        raise OptionError(f"--cut is {text!r}; it is numbers, as in --cut 450,550.") from None


def compare_fits(
    before: Path = argument("BEFORE", "The results of the first fit: what fit -o wrote."),
    after: Path = argument("AFTER", "The results of the later fit."),
    *,
    mode: Mode,
    cut: str | None = own("NUMBER,...", "Count persons who change class at these points of the first fit's scale."),
    output: Path | None = output_at(
        "DIR", "Write items.csv and persons.csv of both fits, and a picture of the persons, to this folder."
    ),
) -> None:
    """Compare two fits: items, persons, reliability, targeting, fit and findings, before and after a change.

    Difficulties and abilities of the later fit are shifted by the mean difference of the items that both have. In
    Python, study.compare(other) has standard errors of the differences, and likelihoods, too.

    \b
    Examples
      spectral-irt fit quiz.csv --key key.csv -o first
      spectral-irt fit quiz.csv --key key.csv --split tides:region -o second
      spectral-irt compare-fits first second
    """
    import numpy as np

    from spectral_irt.analysis.comparison import comparison_of
    from spectral_irt.analysis.folder import is_one_file
    from spectral_irt.files import all_or_nothing
    from spectral_irt.plots.base import write_figure
    from spectral_irt.tables import write_csv

    if output is not None and (is_called_a_file(output) or is_one_file(output)):
        raise OptionError(f"-o names a folder for items.csv and persons.csv, and is {str(output)!r}.")
    cuts = () if cut is None else _cuts(cut)
    comparison = comparison_of(_fitted_in(before), _fitted_in(after), cuts=cuts)
    if output is not None:
        tables = {"items": comparison.items, "persons": comparison.persons}
        targets = [output / f"{name}.csv" for name in tables]
        has_persons = np.isfinite(comparison.persons["difference"]).sum() > 1
        if has_persons:
            targets.append(output / "persons.svg")
        with all_or_nothing(targets, inputs=[before, after]) as drafts:
            for draft, columns in zip(drafts, tables.values(), strict=False):
                write_csv(draft, columns)
            if has_persons:
                figure: Any = comparison.plot().plot().figure
                write_figure(figure, drafts[-1], targets[-1])

    def record() -> dict[str, Any]:
        return {
            "before": str(before),
            "after": str(after),
            "shift": comparison.shift,
            "lines": [line._asdict() for line in comparison.lines],
            "sentences": list(comparison.sentences),
        }

    mode.end(lambda: _show(comparison, output), record)


def _fitted_in(folder: Path) -> Fitted:
    """The fit that wrote its results to a folder."""
    import numpy as np

    from spectral_irt.analysis.comparison import Fitted
    from spectral_irt.bank.results_folder import is_results, results_in

    if not is_results(folder):
        raise OptionError(f"{str(folder)!r} is not the results of a fit; say where fit -o wrote them.")
    calibration, tables, record = results_in(folder)
    infit = tables["items"].get("infit", np.full(calibration.n_items, np.nan))
    return Fitted(str(folder), calibration, infit, tables.get("persons"), record)


def _show(comparison: Comparison, output: Path | None) -> None:
    import numpy as np
    from rich.text import Text

    from spectral_irt.terminal import console, numbers, plain_table, say

    out = console()
    lines = list(zip(*comparison.lines, strict=True))
    say(out, plain_table(["", "before", "after"], [list(column) for column in lines], out.width, whole=out.whole))
    say(out)
    items = comparison.items
    order = np.argsort(-np.abs(items["difference"]), kind="stable")[:SHOWN]
    heads = ["item", "before", "after", "difference", "infit before", "infit after"]
    names = ["difficulty_before", "difficulty_after", "difference", "infit_before", "infit_after"]
    cells = [numbers(items[name][order], 2) for name in names]
    labels = [str(label) for label in items["item"][order].tolist()]
    say(out, plain_table(heads, [labels, *cells], out.width, whole=out.whole))
    say(out)
    for sentence in comparison.sentences:
        say(out, Text(sentence))
    say_written([output])
