"""`python -m reproduction NAME`: the paper's figures and tables, one command each."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from reproduction import NAMES, load
from reproduction.experiment import Request, check, partial_file, run
from reproduction.trials import count_finished
from spectral_irt.cli.help import Command, place
from spectral_irt.cli.terminal import BAD_INPUT, OK, Progress, complain, report, show_warning
from spectral_irt.errors import OptionError
from spectral_irt.files import written
from spectral_irt.text import printable

PROGRAM = "python -m reproduction"
UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # of typer's own copy of click, or of click itself


def _option(metavar: str, help: str, **more: Any) -> Any:
    return typer.Option(metavar=metavar, help=help, show_default=False, **more)


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            show_default=False,
            autocompletion=lambda incomplete: [one for one in (*NAMES, "all", "list") if one.startswith(incomplete)],
            help=f"{', '.join(NAMES)}; all of them; or list.",
        ),
    ],
    data: Annotated[
        Path | None,
        _option(
            "DIR",
            "Where your datasets are; else the directory in SPECTRAL_IRT_DATA. LSAT is always there.",
            parser=place,
        ),
    ] = None,
    trials: Annotated[
        int | None, _option("N", "Trials of a simulation (100, as in the paper), splits of a dataset (5; 50 if small).")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The same seed gives the same table.")] = 0,
    datasets: Annotated[
        str,
        _option("A,B", "Which datasets, for the tables (default: all); ml_1m@50 drops items of fewer than 50 ratings."),
    ] = "",
    output: Annotated[
        Path, typer.Option("--output", "-o", parser=place, metavar="DIR", help="Where to write tables and figures.")
    ] = Path("reproduction"),
) -> None:
    """Run an experiment of the paper: NAME.csv, NAME.parquet, NAME.svg and NAME.png, the paper's numbers beside ours.

    Interrupted, it keeps the finished trials in the output folder, and the same command goes on from there.

    \b
    Examples
      python -m reproduction list
      python -m reproduction figure1c --trials 20
      python -m reproduction table1 --data ~/data --datasets lsat,ml_1m -o results
    """
    said = {"--data": data is not None, "--trials": trials is not None, "--datasets": bool(datasets)}
    _refuse_idle(name, [flag for flag, given in said.items() if given])
    if name == "list":
        for each in NAMES:
            experiment = load(each)
            typer.echo(f"{each:<10} {experiment.title}{' (datasets)' if experiment.uses_data else ''}")
        return
    experiments = [load(each) for each in (NAMES if name == "all" else [name])]
    chosen = tuple(part.strip() for part in datasets.split(",") if part.strip())
    kept = []  # of several experiments, until all are finished
    for experiment in experiments:
        with Progress() as progress:

            def tell(text: str, share: float | None, prefix: str = experiment.name, to: Progress = progress) -> None:
                to.say(f"{prefix}: {text}", share)

            request = Request(output, data, trials, seed, chosen, tell)
            check(request)
            kept.append(partial_file(experiment, request))
            try:
                files = run(experiment, request, keep=len(experiments) > 1)
            except KeyboardInterrupt as interrupt:
                if finished := count_finished(kept[-1]):
                    where = f"in {str(kept[-1])!r}; the same command goes on from there."
                    interrupt.kept = f"{finished:,} finished trials are kept {where}"  # type: ignore[attr-defined]
                elif kept[-1].parent / f"{experiment.name}.csv" not in written:
                    interrupt.kept = "before the first trial was finished."  # type: ignore[attr-defined]
                raise
        for file in files:
            typer.echo(printable(file))
    for path in kept:
        path.unlink(missing_ok=True)


def _refuse_idle(name: str, said: list[str]) -> None:
    """Options that would do nothing: of a list any, of a simulation those about datasets."""
    if name == "list" and said:
        raise OptionError(f"{' and '.join(said)} would do nothing: list runs no experiment.")
    idle = [flag for flag in said if flag != "--trials"]
    if name in NAMES and idle and not load(name).uses_data:
        raise OptionError(f"{' and '.join(idle)} would do nothing: {name} is a simulation and reads no dataset.")


def main(args: Sequence[str]) -> int:
    """Do what the arguments say; the exit code."""
    written.clear()
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, add_completion=False)
    app.command(cls=Command)(reproduce)
    command = typer.main.get_command(app)
    try:
        with warnings.catch_warnings(), command.make_context(PROGRAM, list(args)) as context:
            warnings.showwarning = partial(show_warning, False)
            command.invoke(context)
        return OK
    except typer.Exit as end:
        return int(end.exit_code)
    except UsageError as error:
        complain("error", f"{error.format_message()} See {PROGRAM} --help.")  # type: ignore[attr-defined]
        return BAD_INPUT
    except (Exception, KeyboardInterrupt) as error:
        return report(error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
