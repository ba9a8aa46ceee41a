"""Who is shown what: the sampling designs of the paper and of practice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.packing import limits_of, person_chunks
from spectral_irt.errors import OptionError, check_option

Shown = tuple[Ints, NDArray[np.int32]]

# Responses drawn at a time. Not tied to the size of a block: a seed must keep its data when that is tuned.
CHUNK = 500_000
# Standard deviations in logits and exponents of popularity beyond this are slips of the pen, and would overflow.
WIDEST = 10
FEWEST = 2  # answers of a person under `Popularity`


@dataclass(frozen=True)
class Design:
    """Which items each person is shown, independently of ability and difficulty (missing completely at random)."""

    def __post_init__(self) -> None:
        """Numbers of something are whole and above 0, of anchors from 0 on; other numbers are spreads."""
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and str(each.type).startswith("int"):
                as_count(each.name, value, least=0 if each.name == "anchors" else 1)
            elif value is not None:
                check_spread(each.name, value)

    @property
    def n_items(self) -> int | None:
        """The number of items, where the design fixes it."""
        return None

    def check(self, n_persons: int, n_items: int) -> None:
        """Refuse what cannot be done with so many people and items."""

    def shown(self, rng: np.random.Generator, n_persons: int, n_items: int) -> Iterator[Shown]:
        """For runs of consecutive people: how many items each is shown, and these items, person after person."""
        raise NotImplementedError


@dataclass(frozen=True)
class Complete(Design):
    """Every person is shown every item."""

    def shown(self, rng: np.random.Generator, n_persons: int, n_items: int) -> Iterator[Shown]:
        yield from _spiralled(np.arange(n_items, dtype=np.int32)[None, :], n_persons)


@dataclass(frozen=True)
class Sampled(Design):
    """The paper's sampling model: every person is shown every item with probability `p`, independently.

    Parameters
    ----------
    p : float
        0 < p <= 1. With a small p some people are shown one item or none; they stay in the data.

    References
    ----------
    Nguyen & Zhang (2022), section 4.
    """

    p: float

    def __post_init__(self) -> None:
        if not 0 < self.p <= 1:
            raise OptionError(f"`p` is {self.p}; the probability of showing an item must be above 0 and at most 1.")

    def shown(self, rng: np.random.Generator, n_persons: int, n_items: int) -> Iterator[Shown]:
        # The gaps between the cells shown of a row-by-row walk are geometric: only cells shown cost anything.
        # A little under a chunk on average, so that it rarely spills over into a second, tiny block.
        rows = max(1, int(0.99 * CHUNK / (n_items * self.p)))
        for start in range(0, n_persons, rows):
            n_rows = min(rows, n_persons - start)
            cell = _hits(rng, self.p, n_rows * n_items)
            person = cell // n_items
            yield np.bincount(person, minlength=n_rows), (cell - person * n_items).astype(np.int32)


@dataclass(frozen=True)
class Popularity(Design):
    """Some items are seen by many, most by few; some people answer much, most little. Ratings and logs look like this.

    Person `l` is shown n_l items. n_l is lognormal, scaled so that the total is exactly `n_responses`, and kept between
    2, since a single answer carries no information, and all items. The items come by successive sampling: one after the
    other, each time with probability proportional to `rank^-exponent` among the items the person has not been shown
    yet. Item 0 has rank 1.

    Time follows `n_responses` while most people see a small part of the items and the exponent is moderate (below 1,
    say); people for whom this fails cost the time of one number per item each, and no more memory.

    Parameters
    ----------
    n_responses : int
        The total number of responses.
    exponent : float
        0: all items equally popular. 0.7: of a person's first answers, 43% (of 500 items) to 48% (of 27,000) go to
        the most popular tenth of the items.
    activity_sd : float
        Standard deviation of log n_l before the limits apply. 1: the busiest tenth give about 40% of the answers.
    """

    n_responses: int
    exponent: float = 0.7
    activity_sd: float = 1.0

    def check(self, n_persons: int, n_items: int) -> None:
        if not n_persons * FEWEST <= self.n_responses <= n_persons * n_items:
            raise OptionError(
                f"`n_responses` is {self.n_responses:,}; {n_persons:,} people with {FEWEST} to {n_items} answers each "
                f"give {n_persons * FEWEST:,} to {n_persons * n_items:,}."
            )

    def shown(self, rng: np.random.Generator, n_persons: int, n_items: int) -> Iterator[Shown]:
        counts = self.counts(rng, n_persons, n_items)
        weights = np.arange(1, n_items + 1, dtype=np.float64) ** -self.exponent
        for start, stop in person_chunks(limits_of(counts), CHUNK):
            yield counts[start:stop], successive(rng, weights, counts[start:stop])

    def counts(self, rng: np.random.Generator, n_persons: int, n_items: int) -> Ints:
        """n_l: lognormal, between the limits, summing to `n_responses`."""
        activity = np.exp(self.activity_sd * rng.standard_normal(n_persons))
        low, high = 0.0, n_items / activity.min()
        for _ in range(64):  # bisect for the scale until the total is right to a small part of one response
            scale = (low + high) / 2
            if np.clip(scale * activity, FEWEST, n_items).sum() < self.n_responses:
                low = scale
            else:
                high = scale
        wanted = np.clip(high * activity, FEWEST, n_items)
        counts = np.floor(wanted).astype(np.int64)
        short = self.n_responses - int(counts.sum())
        rest = np.where(counts < n_items, wanted - counts, -1.0)
        counts[np.argsort(-rest, kind="stable")[: max(short, 0)]] += 1
        return counts


@dataclass(frozen=True)
class Booklets(Design):
    """Overlapping booklets, dealt out in turn: person `l` takes booklet `l mod booklets`.

    The items stand in a circle; booklet `b` holds `length` consecutive items from item `b * n_items / booklets` on.

    Parameters
    ----------
    booklets : int
        How many.
    length : int, optional
        Items in a booklet; by default one and a half times its share of the items, so that each booklet has a third
        of its items in common with each neighbor. At exactly `n_items / booklets` nothing links them.
    """

    booklets: int
    length: int | None = None

    def _length(self, n_items: int) -> int:
        return min(n_items, -(-3 * n_items // (2 * self.booklets))) if self.length is None else self.length

    def check(self, n_persons: int, n_items: int) -> None:
        if self.booklets > n_items:
            raise OptionError(f"`booklets` is {self.booklets}; it can be 1 to {n_items}, the number of items.")
        if not -(-n_items // self.booklets) <= self._length(n_items) <= n_items:
            raise OptionError(
                f"`length` is {self.length}; {self.booklets} booklets that hold all {n_items} items need "
                f"{-(-n_items // self.booklets)} to {n_items} items each."
            )

    def shown(self, rng: np.random.Generator, n_persons: int, n_items: int) -> Iterator[Shown]:
        first = np.arange(self.booklets) * n_items // self.booklets
        forms = (first[:, None] + np.arange(self._length(n_items))) % n_items
        yield from _spiralled(forms.astype(np.int32), n_persons)


@dataclass(frozen=True)
class LinkedForms(Design):
    """Test forms in a line, each sharing `anchors` items with the one before; person `l` takes form `l mod forms`.

    The chain on items mixes slowly on such data (two anchors between 30 forms: contraction 0.996), which makes it the
    hard case for solvers. There are `forms * length - (forms - 1) * anchors` items: 1,142 by default.

    Parameters
    ----------
    forms, length : int
        How many forms, and items in each.
    anchors : int
        Items a form shares with the form before. 0: forms without a link, hence without a common scale.
    """

    forms: int = 30
    length: int = 40
    anchors: int = 2

    @property
    def n_items(self) -> int:
        return self.forms * self.length - (self.forms - 1) * self.anchors

    def check(self, n_persons: int, n_items: int) -> None:
        as_count("anchors", self.anchors, least=0, most=self.length - 1)
        if n_items != self.n_items:
            raise OptionError(
                f"`n_items` is {n_items:,}; {self.forms} forms of {self.length} items with {self.anchors} anchors "
                f"hold {self.n_items:,}. Leave `n_items` out."
            )

    def shown(self, rng: np.random.Generator, n_persons: int, n_items: int) -> Iterator[Shown]:
        first = np.arange(self.forms) * (self.length - self.anchors)
        forms = first[:, None] + np.arange(self.length)
        yield from _spiralled(forms.astype(np.int32), n_persons)


DESIGNS: dict[str, type[Design]] = {
    "complete": Complete,
    "sampled": Sampled,
    "popularity": Popularity,
    "booklets": Booklets,
    "linked": LinkedForms,
}


def as_design(design: str | Design, options: dict[str, Any]) -> Design:
    if isinstance(design, Design):
        if options:
            raise OptionError(f"{', '.join(options)}: say this inside the design, {design}.")
        return design
    check_option("design", design, DESIGNS)
    kind = DESIGNS[design]
    known = {f.name: f.default is MISSING for f in fields(kind)}
    unknown = [name for name in options if name not in known]
    if unknown:
        takes = _names(known) or "no parameters"
        raise OptionError(f"there is no parameter {_names(unknown)}; the design {design!r} takes {takes}.")
    missing = [name for name, required in known.items() if required and name not in options]
    if missing:
        raise OptionError(f"the design {design!r} needs {_names(missing)}.")
    return kind(**options)


def _names(options: Iterable[str]) -> str:
    return ", ".join(f"`{one}`" for one in options)


def _spiralled(forms: NDArray[np.int32], n_persons: int) -> Iterator[Shown]:
    """Person `l` is shown the items of row `l mod rows` of `forms`."""
    n_forms, length = forms.shape
    rows = max(1, CHUNK // length)
    for start in range(0, n_persons, rows):
        form = np.arange(start, min(start + rows, n_persons)) % n_forms
        yield np.full(len(form), length), forms[form].ravel()


def _hits(rng: np.random.Generator, p: float, n_cells: int) -> Ints:
    """Which of `n_cells` cells are hit, each with probability `p`, in order."""
    enough = int(n_cells * p + 4 * np.sqrt(n_cells * p * (1 - p))) + 1
    # Gaps are cut at the number of cells: beyond it they end the walk all the same, and a tiny p would overflow sums.
    cell = np.cumsum(np.minimum(rng.geometric(p, enough), n_cells + 1)) - 1
    while cell[-1] < n_cells:
        gaps = np.minimum(rng.geometric(p, enough), n_cells + 1)
        cell = np.concatenate([cell, cell[-1] + np.cumsum(gaps)])
    return cell[: np.searchsorted(cell, n_cells)]


def successive(rng: np.random.Generator, weights: Floats, counts: Ints, rounds: int = 8) -> NDArray[np.int32]:
    """`counts[l]` different items for every person `l`, in order of person and item, by successive sampling.

    Items are drawn with probability proportional to weight, and again where the person has them. Whoever lacks items
    after `rounds` of this gets the others by a race, the same distribution at the cost of all items once: item `i`
    arrives after an exponential time with rate `weights[i]`, and the first win. Sorting makes the data independent of
    the partition."""
    n_items = len(weights)
    cumulative = np.cumsum(weights / weights.sum())
    done: list[Ints] = []
    held: Ints = np.zeros(0, dtype=np.int64)  # person * n_items + item, of people who lack items
    has, lacking = np.zeros(len(counts), dtype=np.int64), np.flatnonzero(counts)
    for _ in range(rounds):
        person = np.repeat(lacking, counts[lacking] - has[lacking])
        item = np.searchsorted(cumulative, rng.random(len(person)), side="right")
        held = np.sort(np.concatenate([held, person * n_items + np.minimum(item, n_items - 1)]))
        held = held[np.diff(held, prepend=-1) > 0]
        owner = held // n_items
        has = np.bincount(owner, minlength=len(counts))
        complete = (has == counts)[owner]
        done.append(held[complete])
        held = held[~complete]
        lacking = np.flatnonzero((has > 0) & (has < counts))
    for who in lacking:
        own = held[np.searchsorted(held, who * n_items) : np.searchsorted(held, (who + 1) * n_items)]
        arrival = rng.standard_exponential(n_items) / weights
        arrival[own - who * n_items] = 0  # what the person has is there already
        done.append(who * n_items + np.argpartition(arrival, counts[who] - 1)[: counts[who]])
    return (np.sort(np.concatenate(done)) % n_items).astype(np.int32)


def as_count(name: str, value: Any, *, least: int = 1, most: int | None = None) -> int:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        limit = f" and at most {most:,}" if most is not None else ""
        raise OptionError(f"`{name}` is {value!r}; it must be a whole number, at least {least}{limit}.")
    return int(value)


def check_spread(name: str, value: float) -> None:
    if not 0 <= value <= WIDEST:
        raise OptionError(f"`{name}` is {value}; it must be a number from 0 to {WIDEST}.")
