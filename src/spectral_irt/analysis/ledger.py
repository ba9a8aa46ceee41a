"""The ledger of moves as a file, moves.toml, that does them again on the same data or on others:

    data = "9e107d9d372bb682..."

    [[move]]
    do = "split"
    item = "q7"
    by = "sex"
    because = "differential_items"

`data` is the fingerprint of the responses before any move; where it differs from those at hand, a finding says so.
With `hold_out = 0.5` and `seed = 0` below it, moves were chosen on one part of the persons and made on the other.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spectral_irt.analysis.hold_out import HoldOut
from spectral_irt.analysis.moves import Move
from spectral_irt.errors import Finding, OptionError, ReadError
from spectral_irt.files import reason_of
from spectral_irt.text import in_short

MOVES_FILE = "moves.toml"
HEAD = """\
# What was changed between the responses and this fit, in order. The same again:
#   spectral-irt fit FILE --moves moves.toml
"""


class Division(NamedTuple):
    """The share of persons that were held out, and the seed."""

    share: float
    seed: int


class Ledger(NamedTuple):
    """Moves of a file, and the fingerprint of the responses that they were made on ("" where it is not known)."""

    moves: tuple[Move, ...]
    data: str
    file: str
    hold_out: Division | None = None

    def findings(self, digest: str) -> tuple[Finding, ...]:
        """A warning where these moves were made on other responses."""
        if not self.data or self.data == digest:
            return ()
        sentence = (
            f"The moves in {self.file!r} were made on other responses: their fingerprint is {self.data[:12]}, that of "
            f"these is {digest[:12]}."
        )
        remedy = "Check that what asked for them holds for these responses, too."
        return (Finding("moves_of_other_data", "warning", sentence, remedy),)


def ledger_text(moves: Sequence[Move], digest: str, held_out: HoldOut | None = None) -> str:
    """The ledger as TOML."""
    lines = [HEAD, f"data = {_value(digest)}"]
    if held_out is not None:
        lines += [f"hold_out = {held_out.share!r}", f"seed = {held_out.seed}"]
    lines.append("")
    for move in moves:
        lines += ["[[move]]", f"do = {_value(move.name)}"]
        lines += [f"{name} = {_value(value)}" for name, value in move.arguments.items()]
        if move.because:
            lines.append(f"because = {_value(move.because)}")
        lines.append("")
    return "\n".join(lines)


def _value(value: Any) -> str:
    """A text, a number or a list of these, which TOML writes as JSON does."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value)


def read_ledger(file: str | Path) -> Ledger:
    """The moves in a file; an error that says which entry is none."""
    path = Path(file)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ReadError(f"there is no file {str(file)!r}; check the name and the directory.") from None
    except OSError as error:
        raise ReadError(f"the moves in {str(file)!r} cannot be read: {reason_of(error)}.") from None
    except ValueError as error:
        raise ReadError(f"{str(file)!r} is no file of moves: {in_short(error)}.") from None
    entries = content.get("move", [])
    if not entries or not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise ReadError(f"{str(file)!r} is no file of moves: it holds none, each of which begins with a line [[move]].")
    moves = []
    for number, entry in enumerate(entries, start=1):
        arguments = {name: value for name, value in entry.items() if name not in ("do", "because")}
        try:
            moves.append(Move(str(entry.get("do", "")), arguments, str(entry.get("because", ""))))
        except OptionError as error:
            raise ReadError(f"{str(file)!r}, move {number}: {error}") from None
    return Ledger(tuple(moves), str(content.get("data", "")), str(file), _division(content, str(file)))


def _division(content: Mapping[str, Any], file: str) -> Division | None:
    share = content.get("hold_out")
    if share is None:
        return None
    seed = content.get("seed", 0)
    if not isinstance(share, float) or not 0 < share < 1 or type(seed) is not int or seed < 0:
        raise ReadError(f"{file!r}: hold_out is a share such as 0.5, and seed a whole number from 0.")
    return Division(share, seed)
