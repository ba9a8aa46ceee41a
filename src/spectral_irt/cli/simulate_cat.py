"""`spectral-irt simulate-cat`: how long an adaptive test over a bank has to be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spectral_irt.cli.paths import output_at, place

_PLACE = {"parser": place, "metavar": "FILE", "show_default": False, "rich_help_panel": "The items for other programs"}


def simulate_cat(
    bank: Annotated[Path, typer.Option("--bank", parser=place, metavar="DIR", show_default=False, help="The bank.")],
    people: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Simulated people.")] = 1000,
    se: Annotated[float, typer.Option("--se", metavar="NUMBER", help="Stop at this standard error, in logits.")] = 0.3,
    most: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Items at most.")] = 50,
    least: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Items at least.")] = 1,
    seed: Annotated[int, typer.Option(metavar="NUMBER", min=0, help="Of the people and their answers.")] = 0,
    output: Annotated[Path | None, output_at("FILE", "The people as CSV.")] = None,
    catsim: Annotated[Path | None, typer.Option("--catsim", help="CSV for catsim.", **_PLACE)] = None,
    adaptivetesting: Annotated[Path | None, typer.Option("--adaptivetesting", help="CSV.", **_PLACE)] = None,
    jscat: Annotated[Path | None, typer.Option("--jscat", help="JSON for jsCAT.", **_PLACE)] = None,
    mirtcat: Annotated[Path | None, typer.Option("--mirtcat", help="CSV for mirtCAT.", **_PLACE)] = None,
) -> None:
    """Run an adaptive test over a bank with simulated people, and say how long it takes and how well it measures.

    \b
    Examples
      spectral-irt simulate-cat --bank mybank --se 0.3 --most 40
      spectral-irt simulate-cat --bank mybank --jscat items.json
    """
    from rich.text import Text

    from spectral_irt.bank import Bank
    from spectral_irt.bank.adaptive import simulate_cat as run
    from spectral_irt.bank.export import adaptive_text
    from spectral_irt.files import all_or_nothing, naming
    from spectral_irt.tables import write_csv
    from spectral_irt.terminal import console, say

    known = Bank.load(bank)
    texts = {"catsim": catsim, "adaptivetesting": adaptivetesting, "jscat": jscat, "mirtcat": mirtcat}
    files = {name: path for name, path in texts.items() if path is not None}
    targets = [*files.values(), *([] if output is None else [output])]
    with all_or_nothing(targets, inputs=[bank]) as drafts:
        found = run(known, people, se=se, most=most, least=least, seed=seed)
        for draft, target in zip(drafts, targets, strict=True):
            with naming(target):
                if target == output:
                    write_csv(draft, found.columns())
                else:
                    name = next(name for name, path in files.items() if path == target)
                    draft.write_text(adaptive_text(known, name), encoding="utf-8", newline="\n")
    out = console()
    say(out, Text(found.sentence))
    if targets:
        say(out, Text(f"Written: {', '.join(map(str, targets))}."))
