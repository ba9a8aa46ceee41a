"""`spectral-irt score`, `update` and `link`: what is done with banks.

Help reads this file, which declares the commands; what they need to do the work is loaded when they do it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from spectral_irt.cli.fit_options import Abilities
from spectral_irt.cli.help import argument
from spectral_irt.cli.options import Call, Files, FilesIfAny, Reading, output_at, own
from spectral_irt.cli.terminal import Mode


def score(
    reading: Reading,
    abilities: Abilities,
    mode: Mode,
    call: Call,
    files: Files,
    bank: Path = own("DIR", "The bank, as fit --bank made it; or the folder of a short list.", required=True),
    output: Path | None = output_at(
        "FILE|DIR", "The table as .csv, .parquet or .xlsx; or a directory for persons.csv and a record, score.json."
    ),
    population: str | None = own(
        "MEAN,SD", "Population assumed for --ability eap and pv, in logits. By default that of the calibration."
    ),
    ignore_unknown: bool = own("", "Ignore answers to items that are not in the bank.", default=False),
) -> None:
    """Score people with the items of a bank: ability with its standard error, and person fit.

    Only items that answers have placed in the bank count, matched by their labels. On a bank with a scale (fit --scale)
    the measures on that scale come with the logits.

    \b
    Examples
      spectral-irt fit answers.csv --bank mybank
      spectral-irt score new.csv --bank mybank -o scores.csv
    """
    from spectral_irt.cli.bank_work import score_people

    score_people(
        files,
        reading,
        abilities,
        mode,
        call,
        bank=bank,
        output=output,
        population=population,
        ignore_unknown=ignore_unknown,
    )


def update(
    bank: Path = argument("DIR", "The bank."),
    *,
    reading: Reading,
    mode: Mode,
    call: Call,
    files: FilesIfAny = None,
    output: Path | None = output_at("DIR", "Write the new bank there and keep the old one."),
    repeats: Literal["error", "skip"] = own(
        "", "The very same data again: error (default), or skip, which leaves the bank as it is.", default="error"
    ),
    undo: bool = own("", "Take back the last load: the bank as it was before, once.", default=False),
    history: bool = own("", "Print the loads of the bank and their checksums; change nothing.", default=False),
) -> None:
    """Update a bank with new answers, of new people, to its items and to new ones. The old answers are not needed.

    The scale stays. The new answers are compared with the bank first: items that they put elsewhere, significantly
    (Holm, 5%) and by 0.3 logits or more, are named as drifted. With --strict the bank then stays as it was, with exit
    code 3.

    The bank is replaced when the new one is complete, and not otherwise. Updates at the same time follow one another.

    \b
    Examples
      spectral-irt update mybank june.csv
      spectral-irt update mybank log/*.parquet -o mybank-new
      spectral-irt update mybank --undo
    """
    from spectral_irt.cli.bank_work import update_bank

    update_bank(bank, files or [], reading, mode, call, output=output, repeats=repeats, undo=undo, history=history)


def link(
    mode: Mode,
    a: Path = argument("A", "The bank whose scale is kept."),
    b: Path = argument("B", "The bank to bring to that scale."),
    output: Path | None = output_at("DIR", "Write B on A's scale, as a bank."),
    method: Literal["robust", "mean"] = own(
        "", "Mean difference without drifted items (default), or of all common items.", default="robust"
    ),
    common_items: Path | None = own("FILE", "Write all common items: .csv, .parquet or .xlsx."),
    equate: Path | None = own(
        "FILE", "Write raw scores on forms of A, what they are on forms of B, and back: .csv, .parquet or .xlsx."
    ),
    forms: str | None = own(
        "FORM,FORM",
        "The form of A and the form of B for --equate, as in all,C; all: all items. By default each form of A with "
        "each of B.",
    ),
) -> None:
    """Link two banks by the items they share: how far apart the scales are, and which items have drifted.

    Up to 40% of the common items may have drifted. The error of the link is in the standard errors of the linked bank.

    With --equate a raw score on a form of one bank is worth the score that people of the same ability are expected to
    have on a form of the other. Forms are the booklets that people were given (fit --form). Nothing right and
    everything right are the same on both, by convention.

    \b
    Examples
      spectral-irt link bank2024 bank2025
      spectral-irt link bank2024 bank2025 -o bank2025-on-2024
      spectral-irt link form_a form_b --equate equating.csv
      spectral-irt link exam2025 exam2026 --equate equating.csv --forms all,C
    """
    from spectral_irt.cli.bank_work import link_banks

    link_banks(a, b, mode, output=output, method=method, common_items=common_items, equate=equate, forms=forms)
