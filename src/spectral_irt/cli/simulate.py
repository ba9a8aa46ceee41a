"""`spectral-irt simulate`: draw answers under a Rasch model, and write them with the truth behind them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectral_irt.cli.options import offered
from spectral_irt.cli.paths import output_at, place
from spectral_irt.cli.progress import Progress
from spectral_irt.cli.spread import with_options
from spectral_irt.errors import OptionError, check_option, printable
from spectral_irt.estimators.by_name import MODELS

if TYPE_CHECKING:
    import polars as pl

    from spectral_irt.data import Responses
    from spectral_irt.simulate import Simulated


def _option(metavar: str, help: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=panel, show_default=False, **more)


_DESIGN = "Details of the design"


@dataclass(frozen=True)
class Details:
    """Parameters of the designs; None leaves them at their defaults."""

    p: Annotated[float | None, _option("NUMBER", "sampled: probability that an item is shown.", _DESIGN)] = None
    responses: Annotated[int | None, _option("NUMBER", "popularity: responses in all.", _DESIGN)] = None
    exponent: Annotated[float | None, _option("NUMBER", "popularity: how unequal the items are; 0.7.", _DESIGN)] = None
    activity_sd: Annotated[float | None, _option("NUMBER", "popularity: how unequal people are; 1.", _DESIGN)] = None
    booklets: Annotated[int | None, _option("NUMBER", "booklets: how many.", _DESIGN)] = None
    forms: Annotated[int | None, _option("NUMBER", "linked: how many forms; 30.", _DESIGN)] = None
    length: Annotated[int | None, _option("NUMBER", "booklets, linked, adaptive: items in each.", _DESIGN)] = None
    anchors: Annotated[int | None, _option("NUMBER", "linked: items shared with the form before; 2.", _DESIGN)] = None
    routing: Annotated[int | None, _option("NUMBER", "two-stage: items of the first stage; 10.", _DESIGN)] = None
    wrong: Annotated[int | None, _option("NUMBER", "stopping: wrong answers that end it; 3.", _DESIGN)] = None

    def said(self) -> dict[str, Any]:
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        given["n_responses"] = given.pop("responses")
        return {name: value for name, value in given.items() if value is not None}


@with_options(Details)
def simulate(
    output: Annotated[Path, output_at("FILE", "Where to write: .csv or .parquet.")],
    persons: Annotated[int, _option("NUMBER", "How many people; 1000 by default.")] = 1000,
    items: Annotated[int | None, _option("NUMBER", "How many items; the design 'linked' says it itself.")] = None,
    design: Annotated[
        str,
        _option(
            "NAME",
            "Who is shown what: complete (default), sampled, popularity, booklets or linked; by the answers so far: "
            "adaptive, two-stage or stopping.",
            autocompletion=offered("complete|sampled|popularity|booklets|linked|adaptive|two-stage|stopping"),
        ),
    ] = "complete",
    seed: Annotated[int | None, _option("NUMBER", "The same seed gives the same data.")] = None,
    truth: Annotated[
        Path | None, _option("FILE", "Write the true difficulties there: .csv or .parquet.", parser=place)
    ] = None,
    ability_mean: Annotated[float, _option("NUMBER", "Mean ability; 0.")] = 0.0,
    ability_sd: Annotated[float, _option("NUMBER", "Standard deviation of ability; 1.")] = 1.0,
    difficulty_sd: Annotated[float, _option("NUMBER", "Standard deviation of difficulty; 1.")] = 1.0,
    model: Annotated[
        str,
        _option(
            "|".join(MODELS),
            "rasch: right and wrong (default). Ordered categories: pcm, the partial credit model; rsm, the rating "
            "scale model.",
            autocompletion=offered("|".join(MODELS)),
        ),
    ] = "rasch",
    categories: Annotated[int | None, _option("NUMBER", "pcm, rsm: categories of each item; 5.")] = None,
    *,
    details: Details,
) -> None:
    """Draw answers under the Rasch model or one for ordered categories, and write a row for each.

    \b
    Examples
      spectral-irt simulate -o answers.csv --items 40 --seed 1 --truth truth.csv
      spectral-irt simulate -o some.csv --items 200 --design sampled --p 0.1
      spectral-irt simulate -o log.parquet --persons 6000 --items 3900 \\
          --design popularity --responses 1000000
      spectral-irt simulate -o forms.parquet --persons 9000 --design linked
      spectral-irt simulate -o survey.csv --items 12 --model rsm --categories 4
    """
    from spectral_irt import simulate as draw
    from spectral_irt.files import all_or_nothing, naming

    check_option("model", model, MODELS)
    if model == "rasch" and categories is not None:
        raise OptionError("--categories is for ordered answers; say --model pcm or --model rsm.")
    models: dict[str, Any] = {"rasch": draw.rasch, "pcm": draw.partial_credit, "rsm": draw.rating_scale}
    more = {} if model == "rasch" else {"categories": 5 if categories is None else categories}
    targets = [path for path in (output, truth) if path is not None]
    for path in targets:
        if path.suffix.lower() not in (".csv", ".parquet"):
            raise OptionError(f"{str(path)!r} ends in neither .csv nor .parquet; name the file after what it shall be.")
    with Progress() as progress, all_or_nothing(targets) as drafts:
        progress.say("drawing answers")
        data = models[model](
            persons,
            items,
            design=design,
            ability_mean=ability_mean,
            ability_sd=ability_sd,
            difficulty_sd=difficulty_sd,
            seed=seed,
            **more,
            **details.said(),
        )
        for draft, target, write in zip(drafts, targets, (write_answers, write_truth), strict=False):
            progress.say(f"writing {target.name}")
            with naming(target):
                write(data, draft, target.suffix.lower())
    found = data.responses
    counts = f"{found.n_persons:,} people, {found.n_items:,} items, {found.n_responses:,} responses"
    typer.echo(f"{counts}: {printable(' and '.join(map(str, targets)))}")


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

    items, steps = data.responses.items, data.responses.thresholds
    if steps.binary:
        columns = {"item": items, "difficulty": data.difficulty}
    else:
        columns = {"item": items[steps.item], "category": steps.level, "threshold": data.thresholds}
    (write_parquet if suffix == ".parquet" else write_csv)(path, columns)


def _pieces(responses: Responses) -> Iterator[pl.DataFrame]:
    import polars as pl

    for person, item, answer in responses.answers_by_block():
        columns = {
            "person": responses.persons[person],
            "item": responses.items[item],
            "response": answer.astype("int8"),
        }
        yield pl.DataFrame(columns)
