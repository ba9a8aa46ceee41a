"""`spectral-irt pack`: answers in a file that opens at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectral_irt.cli.categories import Categories
from spectral_irt.cli.options import Files, Reading
from spectral_irt.cli.paths import output_at
from spectral_irt.cli.progress import Progress
from spectral_irt.cli.saying import Saying
from spectral_irt.cli.spread import with_options
from spectral_irt.errors import OptionError

if TYPE_CHECKING:
    from spectral_irt.data import Responses

ENDING = ".packed"


@with_options(Reading, Categories, Saying)
def pack(
    reading: Reading,
    categories: Categories,
    saying: Saying,
    output: Annotated[Path, output_at("FILE.packed", "The packed file.")],
    files: Files = [],  # noqa: B006  # or a query
    group: Annotated[
        list[str],
        typer.Option(metavar="COLUMN", help="A column about people to be kept, for groups, clusters or weights."),
    ] = [],  # noqa: B006
) -> None:
    """Read and score answers once, and keep them in a file that every command opens at once, whatever its size.

    The file holds the answers, four bytes each, labels, columns about people that
    --group names, and what reading had to say; it is mapped, not loaded. How answers
    are read and scored is said here, and not again.

    \b
    Examples
      spectral-irt pack log/*.parquet -o answers.packed
      spectral-irt fit answers.packed -o results
      spectral-irt pack answers.csv --group sex -o answers.packed
    """
    from spectral_irt.data.packed_file import write_packed
    from spectral_irt.files import all_or_nothing, naming

    saying.begin()
    if output.suffix.lower() != ENDING:
        raise OptionError(f"-o names {str(output)!r}; a packed file ends in {ENDING}, so that commands know it.")
    categories.check()
    with all_or_nothing([output], inputs=reading.inputs(files)) as (draft,), Progress() as progress:
        found = reading.read(files, progress, people=group, **categories.how())
        with naming(output):
            write_packed(found, draft, progress.reading)
    saying.end(lambda: _show(found, output), lambda: _record(found, output), found.notes)


def _show(responses: Responses, output: Path) -> None:
    from rich.text import Text

    from spectral_irt.errors import printable
    from spectral_irt.terminal import console, say, show_findings, show_source
    from spectral_irt.text import size_text

    out = console()
    show_source(out, responses)
    if responses.notes:
        show_findings(out, responses.notes)
        say(out)
    size = size_text(output.stat().st_size)
    say(out, Text.assemble("Packed: ", (printable(output), "bold"), f", {size}. Every command takes it for the files."))


def _record(responses: Responses, output: Path) -> dict[str, Any]:
    from spectral_irt.analysis.record import counts_of, finding_record, record_head

    found = [finding_record(finding) for finding in responses.notes]
    head = {**record_head(), "source": responses.source, "counts": counts_of(responses), "findings": found}
    return {**head, "data_digest": responses.digest(), "file": str(output), "bytes": output.stat().st_size}
