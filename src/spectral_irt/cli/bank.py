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
        "FILE|DIR",
        "Write the table as .csv, .parquet, .xlsx, .sav or .dta; or a folder with persons.csv and a record "
        "(score.json).",
    ),
    population: str | None = own(
        "MEAN,SD", "Population assumed for --ability eap and pv, in logits (default: that of the calibration)."
    ),
    ignore_unknown: bool = own("", "Ignore responses to items that are not in the bank.", default=False),
) -> None:
    """Score persons with a bank: ability with its standard error, and person fit.

    Items are matched by label; items whose difficulty rests on the prior alone are ignored. If the bank has a scale
    (fit --scale), measures are given on that scale and in logits.

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
        "",
        "If the same data were loaded before: error (default), or skip, which leaves the bank unchanged.",
        default="error",
    ),
    undo: bool = own("", "Undo the last load (one step).", default=False),
    history: bool = own("", "List the loads of the bank with their checksums; nothing changes.", default=False),
) -> None:
    """Update a bank with responses of new persons to its items and to new items. The old responses are not needed.

    The scale does not change. The new responses are first compared with the bank: items that they put elsewhere,
    significantly (Holm, 5%) and by 0.3 logits or more, are reported as drifted. With --strict the bank is then left
    unchanged, and the exit code is 3.

    The update is atomic; concurrent updates are queued.

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
        "", "Mean difference without drifted items (default), or over all common items.", default="robust"
    ),
    common_items: Path | None = own("FILE", "Write all common items: .csv, .parquet or .xlsx."),
    equate: Path | None = own(
        "FILE", "Write equivalent raw scores of forms of A and B, both ways: .csv, .parquet or .xlsx."
    ),
    forms: str | None = own(
        "FORM,FORM",
        "The form of A and the form of B for --equate, as in all,C. all (or 'all items', where a form is called all): "
        "all items. By default each form of A with each of B.",
    ),
) -> None:
    """Link two banks by the items they share: how far apart the scales are, and which items have drifted.

    Up to 40% of the common items may have drifted. Standard errors of the linked bank include the error of the link.

    --equate gives, for each raw score on a form of one bank, the expected score of persons of the same ability on a
    form of the other. Forms are the booklets that persons were given (fit --form). Zero and perfect scores are equated
    to each other by convention.

    \b
    Examples
      spectral-irt link bank2024 bank2025
      spectral-irt link bank2024 bank2025 -o bank2025-on-2024
      spectral-irt link form_a form_b --equate equating.csv
      spectral-irt link exam2025 exam2026 --equate equating.csv --forms all,C
    """
    from spectral_irt.cli.bank_work import link_banks

    link_banks(a, b, mode, output=output, method=method, common_items=common_items, equate=equate, forms=forms)
