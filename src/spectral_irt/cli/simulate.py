"""`spectral-irt simulate`: answers under a Rasch model, with the truth behind them; and `demo`, on bundled data."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from spectral_irt.cli.fit_options import Method, Results
from spectral_irt.cli.options import Answers, Call, output_at, own
from spectral_irt.cli.terminal import Mode, Progress
from spectral_irt.errors import OptionError
from spectral_irt.files import all_or_nothing, errors_with_target, write_each
from spectral_irt.text import printable

if TYPE_CHECKING:
    import polars as pl

    from spectral_irt.data import Responses
    from spectral_irt.simulate import Simulated

ABOUT = "A quiz of 30 multiple-choice items in two booklets, simulated: one wrong key, one item easier on the coast."
BUNDLED = "a quiz with its key, LSAT 6, a questionnaire, ratings of essays, and logs of nine models"
NEXT = (
    "fit quiz.csv --key quiz_key.csv --missing 9 --group region -o results",
    "fit lsat.csv -o lsat-results",
    "fit survey.csv --recode never,rarely,sometimes,often,always --reverse q4 --group sex -o survey-results",
    "fit ratings.csv --facet rater --group language -o ratings-results",
    "leaderboard runs -o board",
)


@dataclass(frozen=True)
class Details:
    """Parameters of the designs; None leaves them at their defaults."""

    p: float | None = own("NUMBER", "sampled: probability that an item is shown.")
    responses: int | None = own("NUMBER", "popularity: responses in all.")
    exponent: float | None = own("NUMBER", "popularity: exponent of the items' popularity (default 0.7).")
    activity_sd: float | None = own("NUMBER", "popularity: sd of the persons' log activity (default 1).")
    booklets: int | None = own("NUMBER", "booklets: how many.")
    forms: int | None = own("NUMBER", "linked: number of forms (default 30).")
    length: int | None = own("NUMBER", "booklets, linked, adaptive: items in each.")
    anchors: int | None = own("NUMBER", "linked: items shared with the form before (default 2).")
    routing: int | None = own("NUMBER", "two-stage: items of the first stage (default 10).")
    wrong: int | None = own("NUMBER", "stopping: wrong responses that end the test (default 3).")

    def parameters(self) -> dict[str, Any]:
        """The parameters of the design that were given, by their names in `simulate`."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["n_responses"] = values.pop("responses")
        return {name: value for name, value in values.items() if value is not None}


def simulate(
    mode: Mode,
    output: Path = output_at("FILE", "Where to write: .csv or .parquet.", required=True),
    persons: int = own("NUMBER", "Number of persons (default 1000).", default=1000),
    items: int | None = own("NUMBER", "Number of items (with --design linked it follows from forms and length)."),
    design: Literal[
        "complete", "sampled", "popularity", "booklets", "linked", "adaptive", "two-stage", "stopping"
    ] = own(
        "NAME",
        "Who is shown what: complete (default), sampled, popularity, booklets or linked; by the answers so far: "
        "adaptive, two-stage or stopping.",
        default="complete",
    ),
    seed: int | None = own("NUMBER", "The same seed gives the same data."),
    truth: Path | None = own("FILE", "Write the true difficulties: .csv or .parquet."),
    ability_mean: float = own("NUMBER", "Mean ability (default 0).", default=0.0),
    ability_sd: float = own("NUMBER", "Standard deviation of ability (default 1).", default=1.0),
    difficulty_sd: float = own("NUMBER", "Standard deviation of difficulty (default 1).", default=1.0),
    model: Literal["rasch", "pcm", "rsm"] = own(
        "", "rasch: right and wrong (default); pcm, rsm: partial credit and rating scale model.", default="rasch"
    ),
    categories: int | None = own("NUMBER", "pcm, rsm: categories of each item (default 5)."),
    *,
    details: Details,
) -> None:
    """Simulate responses under the Rasch, partial credit or rating scale model; one row for each response.

    \b
    Examples
      spectral-irt simulate -o answers.csv --items 40 --seed 1 --truth truth.csv
      spectral-irt simulate -o some.csv --items 200 --design sampled --p 0.1
      spectral-irt simulate -o forms.parquet --persons 9000 --design linked
      spectral-irt simulate -o survey.csv --items 12 --model rsm --categories 4
    """
    from spectral_irt import simulate as draw
    from spectral_irt.analysis.folder import counts_of

    if model == "rasch" and categories is not None:
        raise OptionError("--categories is for ordered answers; say --model pcm or --model rsm.")
    models: dict[str, Any] = {"rasch": draw.rasch, "pcm": draw.partial_credit, "rsm": draw.rating_scale}
    parameters = {
        "ability_mean": ability_mean,
        "ability_sd": ability_sd,
        "difficulty_sd": difficulty_sd,
        **details.parameters(),
    }
    if model != "rasch":
        parameters["categories"] = categories or 5
    targets = [path for path in (output, truth) if path is not None]
    for path in targets:
        if path.suffix.lower() not in (".csv", ".parquet"):
            raise OptionError(f"{str(path)!r} ends in neither .csv nor .parquet; use a name that does.")
    with Progress() as progress, all_or_nothing(targets) as drafts:
        progress.say("drawing answers")
        data = models[model](persons, items, design=design, seed=seed, **parameters)
        for draft, target, write in zip(drafts, targets, (write_answers, write_truth), strict=False):
            progress.say(f"writing {target.name}")
            with errors_with_target(target):
                write(data, draft, target.suffix.lower())
    responses = data.responses
    counts = f"{responses.n_persons:,} people, {responses.n_items:,} items, {responses.n_responses:,} responses"
    mode.end(
        lambda: typer.echo(f"{counts}: {printable(' and '.join(map(str, targets)))}"),
        lambda: {"seed": seed, "counts": counts_of(responses), "outputs": list(map(str, targets))},
    )


def write_answers(data: Simulated, path: Path, suffix: str) -> None:
    """A row for each answer: person, item, response."""
    import polars as pl

    if suffix == ".parquet":
        pl.concat(_pieces(data.responses)).write_parquet(path)
        return
    with path.open("wb") as file:
        for k, piece in enumerate(_pieces(data.responses)):
            piece.write_csv(file, include_header=k == 0)


def write_truth(data: Simulated, path: Path, suffix: str) -> None:
    """A row for each item: item, difficulty; or for each threshold: item, category, threshold."""
    from spectral_irt.tables import write_csv, write_parquet

    items = data.responses.items
    layout = data.responses.thresholds
    if layout.binary:
        columns = {"item": items, "difficulty": data.difficulty}
    else:
        columns = {"item": items[layout.item], "category": layout.level, "threshold": data.thresholds}
    write = write_parquet if suffix == ".parquet" else write_csv
    write(path, columns)


def _from_here(path: Path) -> str:
    """A path as one would type it in this folder."""
    folder = Path.cwd()
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)


def _pieces(responses: Responses) -> Iterator[pl.DataFrame]:
    import polars as pl

    for person, item, answer in responses.answers_by_block():
        labels = {"person": responses.persons[person], "item": responses.items[item]}
        yield pl.DataFrame({**labels, "response": answer.astype("int8")})


def demo(
    mode: Mode,
    call: Call,
    output: Path = output_at("DIR", "Where to write the results (default demo-results).", default=Path("demo-results")),
    files: Path | None = own("DIR", f"Only copy the data there: {BUNDLED}."),
) -> None:
    """Analyze a simulated quiz of multiple choice.

    The quiz has two faults to find: a wrong key, and an item that is harder for some people than for others of the same
    ability. The command that finds them is shown first; the files that it reads come with the program.

    \b
    Examples
      spectral-irt demo -o demo-results
      spectral-irt demo --files here
    """
    if files is not None:
        copied = _copy(files)
        mode.end(partial(_show_copied, files), lambda: {"folder": str(files), "outputs": list(map(str, copied))})
        return
    from rich.text import Text

    from spectral_irt import datasets
    from spectral_irt.cli.calibrate import calibrate
    from spectral_irt.cli.fit_job import FitJob
    from spectral_irt.terminal import console, say

    omitted = datasets.OMITTED
    answers, key = map(_from_here, datasets.quiz_files())
    argv = ["fit", answers, "--key", key, "--missing", omitted, "--group", "region", "-o", str(output)]
    shown = not (mode.quiet or mode.as_json)
    if shown:
        out = console()
        say(out, Text(ABOUT, style="dim"))
        say(out)
        command = shlex.join(["spectral-irt", *argv])
        say(out, Text(f"  {command}", style="bold", no_wrap=True, overflow="ignore"))
        say(out)
    job = FitJob(
        files=[answers],
        reading=Answers(key=(key, None), missing=[omitted]),
        method=Method(),
        results=Results(group={"region": ()}, output=output),
        call=replace(call, argv=argv),
    )
    calibrate(job, mode)
    if shown:
        typer.echo("With your own answers: spectral-irt fit answers.csv -o results")


def _copy(folder: Path) -> list[Path]:
    """Put the bundled data into a folder: the files that this makes."""
    from spectral_irt import datasets

    texts = {folder / path.name: path.read_text(encoding="utf-8") for path in datasets.quiz_files()}
    texts[folder / "lsat.csv"] = datasets.lsat_text()
    texts[folder / "survey.csv"] = datasets.survey_file().read_text(encoding="ascii")
    texts[folder / "ratings.csv"] = datasets.writing_file().read_text(encoding="ascii")
    texts |= {folder / "runs" / path: text for path, text in datasets.log_texts()}
    return write_each(
        {path: partial(Path.write_text, data=text, encoding="utf-8", newline="") for path, text in texts.items()}
    )


def _show_copied(folder: Path) -> None:
    """Where the bundled data are, and what to do with them."""
    from spectral_irt.terminal import console, say

    say(console(), f"In {printable(folder)}: {BUNDLED}. There, try:")
    for command in NEXT:
        typer.echo(f"  spectral-irt {command}")
