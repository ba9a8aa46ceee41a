"""What was changed between the responses and the fit: the ledger of moves, and the sentence of Methods about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spectral_irt.analysis.hold_out import hold_out_of_record
from spectral_irt.analysis.moves import Move
from spectral_irt.errors import for_page
from spectral_irt.report.blocks import Lines, ReportData, Section, Table, Text
from spectral_irt.text import count, printable


def changes(data: ReportData) -> Section:
    """The moves in a table: what was done, what asked for it, and what it changed; nothing where there were none."""
    moves: Sequence[Move] = data.study.moves
    if not moves:
        return Section(())
    rows = tuple(
        (
            str(number),
            printable(move.words),
            printable(move.because.replace("_", " ")) or "not said",
            move.change_in_words,
        )
        for number, move in enumerate(moves, start=1)
    )
    first = f"{count(len(moves), 'change was', 'changes were')} made to these responses before the fit, in this order. "
    if data.study.held_out is None:
        first += (
            "Results after changes that were chosen by looking at the same responses look better than they would on "
            "new ones."
        )
    else:
        first += data.study.held_out.sentence
    again = " ".join(printable(move.option) for move in moves)
    return Section(
        (
            Text(first),
            Table("Ledger of changes", ("", "Change", "Asked for by", "Before and after"), rows),
            *(Text(for_page(str(finding))) for finding in data.study.ledger_findings),
            Lines((again,), "The same as options", program=True),
        )
    )


def sentences_on_changes(record: Mapping[str, Any]) -> list[str]:
    """What the Methods say of the moves of a record: none without any."""
    sentences = []
    ledger = [_move_of_record(move) for move in record.get("moves") or []]
    if ledger:
        words = "; ".join(printable(move.words) for move in ledger)
        sentences.append(f"Before this fit {count(len(ledger), 'change was', 'changes were')} made: {words}.")
    held_out = hold_out_of_record(record.get("hold_out"))
    if held_out is not None:
        sentences.append(held_out.sentence)
    return sentences


def _move_of_record(record: Mapping[str, Any]) -> Move:
    about = ("move", "option", "because", "effect")
    return Move(record["move"], {name: value for name, value in record.items() if name not in about})
