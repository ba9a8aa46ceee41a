"""Options that change items or persons after a first fit, and the moves that they ask for (`analysis/moves.py`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from spectral_irt.cli.help import option
from spectral_irt.cli.options import item_names
from spectral_irt.errors import OptionError

if TYPE_CHECKING:
    from spectral_irt.analysis.ledger import Division, Ledger
    from spectral_irt.analysis.moves import Move

move = partial(option, "moves")
# Items joined by +, and perhaps a name after =, which does not stand in brackets as in q7[sex=f].
_JOINED = re.compile(r"(?P<items>.*?)(?:=(?P<name>[^\]=+]+))?")


def column_and_cuts(text: str) -> tuple[str, tuple[float, ...]]:
    """The column of `COLUMN:CUT,...`, and the cuts; none where what follows the colon is no number."""
    column, colon, numbers = text.rpartition(":")
    try:
        cuts = tuple(map(float, numbers.split(",")))
    except ValueError:
        return text, ()
    return (column, cuts) if colon and column else (text, ())


def _split(text: str) -> tuple[str, str, tuple[float, ...]]:
    """The item, the column and the cuts of `ITEM:COLUMN[:CUT,...]`."""
    item_and_column, cuts = column_and_cuts(text)
    if ":" not in item_and_column:
        item_and_column = text
        cuts = ()
    item, colon, column = item_and_column.rpartition(":")
    if not (item and colon and column):
        raise OptionError(f"--split is {text!r}; it is ITEM:COLUMN, as in q7:sex, or with cuts, q7:age:40,65.")
    return item, column, cuts


def _collapse(text: str) -> tuple[str, list[int]]:
    item, colon, numbers = text.rpartition(":")
    try:
        categories = [int(number) for number in numbers.split(",")]
    except ValueError:
        categories = []
    rises = all(later - earlier in (0, 1) for earlier, later in pairwise(categories))
    if not (item and colon) or len(categories) < 2 or categories[0] != 0 or not rises:
        raise OptionError(
            f"--collapse is {text!r}; it is ITEM:NEW,..., the new category of each code from the lowest to the "
            "highest, from 0 up, as in q5:0,1,1,2, or '*:0,1,1,2' for all items."
        )
    return item, categories


def _each(parse: Any, texts: list[str]) -> list[Any]:
    return [parse(text) for text in texts]


@dataclass(frozen=True)
class MoveOptions:
    """What is changed before the fit."""

    drop: list[str] = move(
        "ITEM,...", "Leave out these items; repeatable. The record of the fit says so.", default=[], parse=item_names
    )
    drop_persons: str | None = move(
        "misfit|FILE",
        "Leave out persons: those in the first column of a table, or misfit for all with an infit or outfit, "
        "standardized, above 2. They are counted in every result.",
    )
    split: list[tuple[str, str, tuple[float, ...]]] = move(
        "ITEM:COLUMN[:CUT,...]",
        "Make one item for each group of persons of this one, as after DIF: q7:sex makes q7[sex=f] and q7[sex=m], "
        "linked through the other items; repeatable.",
        default=[],
        parse=partial(_each, _split),
    )
    join: list[str] = move(
        "ITEM+ITEM[=NAME]",
        "Make one super-item of these, as after local dependence: its category is the sum of theirs; repeatable. Who "
        "lacks a response to one of them has none to the super-item.",
        default=[],
    )
    collapse: list[tuple[str, list[int]]] = move(
        "ITEM:NEW,...",
        "Merge categories: the new category of each code from the lowest to the highest, as in q5:0,1,1,2, or "
        "'*:0,1,1,2' for all items; repeatable. Tables of scores keep the sums of the old codes.",
        default=[],
        parse=partial(_each, _collapse),
    )
    tailor: float | None = move(
        "CHANCE",
        "Right or wrong responses only: make responses missing whose chance of being right is below this by the fit, "
        "and compare the difficulties with those of all responses (tailored.csv). With four options, 0.5 takes out "
        "more than half of the bias of guessing, 0.25 a quarter.",
    )
    dif_resolve: list[str] = move(
        "COLUMN,...",
        "Split the item with the largest DIF by these columns, test all others again, and so on until none differs or "
        "fewer than a third of the items are unsplit.",
        default=[],
        parse=item_names,
    )
    moves: str | None = move("FILE", "Do all moves of a moves.toml, which every folder of results with moves has.")

    hold_out: float | None = move(
        "SHARE",
        "Hold this share of the persons out, such as 0.5, drawn at random (--seed): --dif-resolve and what asks for "
        "moves look at the others, and all numbers are from those held out. Without moves, the fit of the others.",
    )

    @property
    def persons_file(self) -> str | None:
        """The table of persons to leave out, if it was named."""
        return None if self.drop_persons == "misfit" else self.drop_persons

    @property
    def has_moves(self) -> bool:
        """Whether anything is to be changed."""
        of_items = self.drop or self.split or self.join or self.collapse
        return bool(of_items or self.drop_persons or self.tailor is not None or self.dif_resolve or self.moves)

    @property
    def tailors(self) -> bool:
        """Whether responses are to be tailored."""
        return any(each.name == "tailor" for each in self.moves_to_make())

    def held_out(self, seed: int | None) -> Division | None:
        """The share of persons that are held out, and the seed; by the options or by the file of moves."""
        from spectral_irt.analysis.hold_out import check_share
        from spectral_irt.analysis.ledger import Division

        ledger = self.ledger()
        of_file = None if ledger is None else ledger.hold_out
        if self.hold_out is None:
            return of_file
        check_share(self.hold_out)
        division = Division(self.hold_out, seed or 0)
        if of_file is not None and division != of_file:
            raise OptionError(
                f"--hold-out {division.share:g} with seed {division.seed} differs from the moves in {self.moves!r}, "
                f"which were made with {of_file.share:g} and seed {of_file.seed}. Leave --hold-out out."
            )
        return division

    def ledger(self) -> Ledger | None:
        """The moves of the file, if one was named."""
        from spectral_irt.analysis.ledger import read_ledger

        if self.moves is None:
            return None
        return read_ledger(self.moves)

    def columns(self) -> list[str]:
        """The columns about people that moves go by."""
        ledger = self.ledger()
        of_file = [] if ledger is None else [each.arguments.get("by") for each in ledger.moves]
        named = [column for each in of_file if each for column in ([each] if isinstance(each, str) else each)]
        return [*named, *(column for _, column, _ in self.split), *self.dif_resolve]

    def moves_to_make(self) -> list[Move]:
        """The moves that the options ask for, after those of the file: each where its items are there."""
        from spectral_irt.analysis.moves import MISFIT, Move

        ledger = self.ledger()
        wanted = list(ledger.moves) if ledger is not None else []
        if self.drop:
            wanted.append(Move("drop", {"items": self.drop}))
        if self.persons_file is not None:
            wanted.append(Move("drop_persons", {"persons": _persons_in(self.persons_file)}))
        joined = []
        for text in self.join:
            match = _JOINED.fullmatch(text)
            assert match is not None
            if "+" not in match["items"]:
                joined_by_plus = "+".join(match["items"].split(","))
                example = joined_by_plus if "+" in joined_by_plus else "q3+q4"
                raise OptionError(f"--join is {text!r}; it is two items or more joined by +, as in --join {example}.")
            name = {} if match["name"] is None else {"name": match["name"]}
            joined.append(Move("join", {"items": match["items"].split("+"), **name}))
        names = {each.arguments.get("name") or "+".join(each.arguments["items"]) for each in joined}
        collapsed = [Move("collapse", {"item": item, "categories": new}) for item, new in self.collapse]
        wanted += [each for each in collapsed if each.arguments["item"] not in names]
        wanted += joined
        wanted += [each for each in collapsed if each.arguments["item"] in names]
        for item, column, cuts in self.split:
            wanted.append(Move("split", {"item": item, "by": column, **({"cuts": list(cuts)} if cuts else {})}))
        if self.drop_persons == MISFIT:
            wanted.append(Move("drop_persons", {"persons": MISFIT}))
        if self.dif_resolve:
            wanted.append(Move("dif_resolve", {"by": self.dif_resolve}))
        if self.tailor is not None:
            wanted.append(Move("tailor", {"below": self.tailor}))
        return wanted


def _persons_in(file: str) -> list[str]:
    """The labels in the first column of a table."""
    from spectral_irt.reading.formats import read_one
    from spectral_irt.reading.frame import plain_labels

    def labels(table: Any) -> list[str]:
        series = table.whole().to_series(0)
        texts: list[str] = plain_labels(series, text=True, name=table.where(0)).drop_nulls().to_list()
        return texts

    persons = read_one(file, "a table of persons", labels, sheet_option="drop_persons", sheet=None)
    if not persons:
        raise OptionError(f"{file!r} names no person in its first column; --drop-persons takes one in each row.")
    return persons
