"""Votes: which of two contestants was better, or that neither was, as a table has them.

A row is a vote: two contestants, and the winner, by name or by place, or a word for a tie. What cannot be counted as a
vote is left out, with a finding that says how many and why. `Pairs.read` and the command call `read_votes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from spectral_irt.data import Finding
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Mask
from spectral_irt.data.labels import NOT_ANSWERED, one_spelling
from spectral_irt.errors import OptionError, ReadError, ResponseValueError, Severity
from spectral_irt.leaderboard.source import coded, open_tables
from spectral_irt.reading.columns import plain
from spectral_irt.reading.frame import Table
from spectral_irt.text import count as count_of
from spectral_irt.text import listed, share

WON, TIED, LOST = 2, 1, 0  # points of the contestant named first, of two that are shared out
MANY_LEFT_OUT = 0.01  # of the rows: that may change what the results are about
MOST_VOTES = 100_000_000  # that counts may stand for
CONTESTANTS = tuple(
    tuple(f"{noun}{place}" for place in places)
    for places in (("a", "b"), ("1", "2"), ("first", "second"), ("left", "right"))
    for noun in ("model", "contestant", "player", "item", "option", "team", "candidate", "response", "system", "")
)
CONTESTANTS += (("firstmodel", "secondmodel"), ("home", "away"), ("hometeam", "awayteam"), ("white", "black"))
WINNERS = ("winner", "verdict", "preference", "preferred", "vote", "choice", "outcome", "result", "better", "label")
JUDGES = ("judge", "judges", "judgeid", "judgename", "judgemodel")
# The winner by place, in the letters and digits of what stands there; the names of both columns count as well.
FIRST = {"first", "modela", "a", "1", "left", "player1", "playera", "assistanta", "responsea", "home", "white"}
SECOND = {"second", "modelb", "b", "2", "right", "player2", "playerb", "assistantb", "responseb", "away", "black"}
TIES = {"tie", "ties", "tied", "draw", "drawn", "equal", "same", "both", "bothbad", "bothgood", "tiebothbad", "neither"}
RESULTS = {"1-0": "first", "0-1": "second", "1/2-1/2": "tie", "½-½": "tie"}  # of chess


class Roles(NamedTuple):
    """The columns of a table of votes, by position."""

    first: int
    second: int
    winner: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Votes:
    """Votes in codes: `first` and `second` are contestants, `points` those of the first, 2 won, 1 tied, 0 lost.

    `covariates` are votes x columns, each the first's advantage; `judge` and `cluster` have a number for each vote.
    """

    contestants: tuple[str, ...]
    first: Ints
    second: Ints
    points: Ints
    covariates: Floats
    covariate_names: tuple[str, ...] = ()
    position: bool = False
    judge: Ints | None = None
    judges: tuple[str, ...] = ()
    cluster: Ints | None = None
    cluster_word: str = ""
    notes: tuple[Finding, ...] = ()
    source: str = "the votes"
    frame_kind: str | None = None

    @property
    def n(self) -> int:
        return len(self.points)

    @property
    def has_ties(self) -> bool:
        return bool((self.points == TIED).any())

    def of(self, codes: Ints) -> Ints:
        """How many votes each contestant had, `codes` of both places."""
        return np.bincount(codes, minlength=len(self.contestants))

    def table(self, values: Floats) -> Floats:
        """Sums of a number of each vote over first x second contestants."""
        m = len(self.contestants)
        sums = np.bincount(self.first * m + self.second, weights=values, minlength=m * m)
        return sums.reshape(m, m).astype(np.float64)


def read_votes(
    data: Any,
    *,
    contestants: Sequence[str] | str | None = None,
    winner: str | None = None,
    position: bool = False,
    covariates: Sequence[str] | str = (),
    judge: str | None = None,
    clustered_by: str | None = None,
    count: str | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> Votes:
    """Votes from files or a dataframe; the parameters are those of `Pairs.read`."""
    table, kind = open_tables(data)
    if progress is not None:
        progress(0.0, f"reading {table.name}")
    roles = _roles(table, contestants, winner)
    names = [covariates] if isinstance(covariates, str) else covariates
    places = {name: table.position("covariate", name) for name in dict.fromkeys(names)}
    taken = {*roles}
    for name, place in places.items():
        if place in taken:
            raise OptionError(f"the column {name!r} cannot be a covariate too; it names contestants or the winner.")
    frame = table.whole()
    if not frame.height:
        raise ReadError(f"{table.name} has no rows below its header, and so no votes.")
    frame.columns = [str(k) for k in range(frame.width)]
    judge_place = _judge_column(table, judge, taken)
    columns = _Columns(frame, table, roles)
    rules = [columns.unnamed(), columns.against_itself(), columns.without_winner()]
    outcome = columns.outcomes()
    rules.append(LeftOut(outcome.odd, "the winner is neither of both, nor a tie", columns.some_winners(outcome.odd)))
    values, without_number = _covariates(frame, table, places)
    rules.append(LeftOut(without_number, f"no number in {listed(places)}"))
    weight = np.ones(frame.height, dtype=np.int64)
    if count is not None:
        weight = _counts(frame, table, table.position("count", count))
        rules.append(LeftOut(weight == 0, f"{count} is 0"))
    usable, notes = _left_out(table.name, frame.height, rules)
    if not usable.any():
        raise ReadError(f"{table.name}: none of its {frame.height:,} rows is a vote: {_reasons(rules)}.")
    times = np.where(usable, weight, 0)
    if times.sum() > MOST_VOTES:
        raise ResponseValueError(
            f"{table.name}: the counts stand for {times.sum():,} votes; up to {MOST_VOTES:,} can be read."
        )
    row = np.repeat(np.arange(frame.height), times)
    both = pl.concat([columns.first, columns.second]).gather(np.concatenate([row, row + frame.height]))
    labels, codes = coded(both)
    judges: list[str] = []
    judge_of_vote = None
    if judge_place is not None:
        judges, judge_of_vote = coded(_texts(frame, judge_place).fill_null("(none)").gather(row))
    cluster = None
    if clustered_by is not None:
        cluster = _clusters(_texts(frame, table.position("clustered_by", clustered_by)))[row]
    return Votes(
        contestants=tuple(labels),
        first=codes[: len(row)],
        second=codes[len(row) :],
        points=outcome.points[row],
        covariates=values[row],
        covariate_names=tuple(map(str, places)),
        position=position,
        judge=judge_of_vote,
        judges=tuple(judges),
        cluster=cluster,
        cluster_word=clustered_by or "",
        notes=(*table.notes, *notes),
        source=table.name,
        frame_kind=kind,
    )


def _roles(table: Table, contestants: Sequence[str] | str | None, winner: str | None) -> Roles:
    """The columns that were named, or that have plain names."""
    called = [plain(name) for name in table.columns]
    if contestants is not None:
        names = [name.strip() for name in contestants.split(",")] if isinstance(contestants, str) else contestants
        if len(names) != 2:
            raise OptionError(f"`contestants` names two columns, as in `contestants='A,B'`, not {len(names)}.")
        both = [table.position("contestants", name) for name in names]
    else:
        pair = next((pair for pair in CONTESTANTS if set(pair) <= set(called)), None)
        if pair is None:
            raise OptionError(
                f"{table.name}: no two columns are named like contestants (model_a and model_b, first and second, "
                f"player1 and player2); its columns are {listed(table.columns)}. Name them with `contestants='A,B'`."
            )
        both = [called.index(name) for name in pair]
    if winner is not None:
        place = table.position("winner", winner)
    else:
        known = [called.index(name) for name in WINNERS if name in called]
        if not known:
            raise OptionError(
                f"{table.name}: no column is named like the winner; its columns are {listed(table.columns)}. Name it "
                "with `winner=`."
            )
        place = known[0]
    if len({*both, place}) < 3:
        raise OptionError("the two contestants and the winner are three different columns; one was named twice.")
    return Roles(both[0], both[1], place)


def _judge_column(table: Table, judge: str | None, taken: set[int]) -> int | None:
    """The column of judges that was named, or that is called so."""
    if judge is not None:
        return table.position("judge", judge)
    called = [k for k, name in enumerate(table.columns) if plain(name) in JUDGES and k not in taken]
    return called[0] if called else None


def _texts(frame: pl.DataFrame, place: int) -> pl.Series:
    """A column as text without blanks around it; null where nothing stands there."""
    texts = one_spelling(frame.to_series(place))
    return texts.set(texts.is_in(list(NOT_ANSWERED)).fill_null(True), None)


def _clusters(texts: pl.Series) -> Ints:
    """The number of each cluster; a vote without one is a cluster alone."""
    _, codes = coded(texts.fill_null(""))
    alone = texts.is_null().to_numpy()
    return np.where(alone, codes.max(initial=0) + 1 + np.cumsum(alone), codes)


class Outcomes(NamedTuple):
    """Points of the first contestant, and which winners say nothing."""

    points: Ints
    odd: Mask


class LeftOut(NamedTuple):
    """Rows that are no votes, and why; `shown` are some of what stood there."""

    rows: Mask
    why: str
    shown: str = ""


@dataclass(frozen=True, eq=False)
class _Columns:
    """The three columns of votes as text."""

    frame: pl.DataFrame
    table: Table
    roles: Roles

    @cached_property
    def first(self) -> pl.Series:
        return _texts(self.frame, self.roles.first)

    @cached_property
    def second(self) -> pl.Series:
        return _texts(self.frame, self.roles.second)

    @cached_property
    def winner(self) -> pl.Series:
        return _texts(self.frame, self.roles.winner)

    def unnamed(self) -> LeftOut:
        rows = (self.first.is_null() | self.second.is_null()).to_numpy()
        return LeftOut(rows, "a contestant has no name")

    def against_itself(self) -> LeftOut:
        return LeftOut((self.first == self.second).fill_null(False).to_numpy(), "both contestants are the same")

    def without_winner(self) -> LeftOut:
        return LeftOut(self.winner.is_null().to_numpy(), "there is no verdict")

    def outcomes(self) -> Outcomes:
        """By the name of a contestant where it is one, else by a word for the place or for a tie."""
        headers = [plain(self.table.columns[place]) for place in self.roles[:2]]
        results = self.winner.replace(list(RESULTS), list(RESULTS.values()))
        word = results.str.to_lowercase().str.replace_all(r"[^a-z0-9.]", "")
        named_first = (self.winner == self.first).fill_null(False)
        named_second = (self.winner == self.second).fill_null(False)
        first = named_first | (~named_second & word.is_in([*FIRST, headers[0]]).fill_null(False))
        second = named_second | (~named_first & word.is_in([*SECOND, headers[1]]).fill_null(False))
        tied = ~first & ~second & word.is_in(list(TIES)).fill_null(False)
        points = np.select([first.to_numpy(), tied.to_numpy()], [WON, TIED], default=LOST)
        odd = ~(first | second | tied) & self.winner.is_not_null()
        self._refuse_unclear(odd)
        return Outcomes(points, odd.to_numpy())

    def _refuse_unclear(self, odd: pl.Series) -> None:
        """An error where most verdicts mean nothing, or 0 and 1 could mean either contestant."""
        n_odd = int(odd.sum())
        where = self.table.where(self.roles.winner)
        zeros = set(self.winner.filter(odd).unique().to_list())
        if zeros and zeros <= {"0", "0.5"}:
            raise ResponseValueError(
                f"{where} holds 0 in {count_of(n_odd, 'row')}, which may be the first contestant or its defeat. Write "
                "the name of the winner there, or first, second and tie."
            )
        if 2 * n_odd > self.winner.count():
            raise ResponseValueError(
                f"{where} names neither contestant in {n_odd:,} of {self.winner.count():,} rows "
                f"({self.some_winners(odd.to_numpy())}). It holds the name of the winner, first or second, model_a or "
                "model_b, 1 or 2, or tie, draw, both_bad; name another column with `winner=`."
            )

    def some_winners(self, odd: Mask) -> str:
        return listed(self.winner.filter(pl.Series(odd)).unique(maintain_order=True).head(6).to_list())


def _covariates(frame: pl.DataFrame, table: Table, places: dict[str, int]) -> tuple[Floats, Mask]:
    """Votes x covariates, and where one is no number."""
    values = np.zeros((frame.height, len(places)))
    for k, (name, place) in enumerate(places.items()):
        column = frame.to_series(place)
        if column.dtype == pl.Boolean:
            column = column.cast(pl.Int8)
        numbers = column.cast(pl.Float64, strict=False)
        if not numbers.is_finite().any():
            shown = listed(column.drop_nulls().unique(maintain_order=True).head(3).to_list())
            raise ResponseValueError(
                f"{table.name}: the covariate {name!r} holds no numbers ({shown}). A covariate is a number for each "
                "vote, by how much the first contestant has more of it than the second."
            )
        values[:, k] = numbers.fill_null(np.nan).to_numpy()
    return values, np.asarray(~np.isfinite(values).all(axis=1))


def _counts(frame: pl.DataFrame, table: Table, place: int) -> Ints:
    """How many votes each row stands for; nothing is none."""
    column = frame.to_series(place)
    numbers = column.cast(pl.Float64, strict=False).to_numpy()
    numbers = np.where(column.is_null().to_numpy(), 0.0, numbers)
    wrong = ~(np.isfinite(numbers) & (numbers >= 0) & (numbers == np.round(numbers)))
    if wrong.any():
        k = int(np.argmax(wrong))
        row = int(table.row_numbers(0, frame.height)[k])
        raise ResponseValueError(
            f"{table.where(place)}, row {row:,} holds {column[k]!r}; a count is a whole number, 0 or more."
        )
    return numbers.astype(np.int64)


def _left_out(source: str, n_rows: int, rules: Sequence[LeftOut]) -> tuple[Mask, list[Finding]]:
    """Which rows are votes, and what is said of the others: each by the first rule that leaves it out."""
    usable = np.ones(n_rows, dtype=bool)
    for rule in rules:
        usable &= ~rule.rows
    n_left_out = int((~usable).sum())
    if not n_left_out:
        return usable, []
    severity: Severity = "note"
    if n_left_out > MANY_LEFT_OUT * n_rows:
        severity = "warning"
    are = "is no vote" if n_left_out == 1 else "are no votes"
    sentence = f"{share(n_left_out, n_rows, 'row')} {are}, and left out: {_reasons(rules)}."
    return usable, [Finding("votes_left_out", severity, sentence, "Correct them if they should count.")]


def _reasons(rules: Sequence[LeftOut]) -> str:
    return "; ".join(_each_reason(rules))


def _each_reason(rules: Sequence[LeftOut]) -> Iterator[str]:
    before = np.zeros(len(rules[0].rows), dtype=bool)
    for rule in rules:
        n = int((rule.rows & ~before).sum())
        before |= rule.rows
        if n:
            shown = f" ({rule.shown})" if rule.shown else ""
            yield f"{n:,} where {rule.why}{shown}"
