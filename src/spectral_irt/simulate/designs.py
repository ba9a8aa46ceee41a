"""Who is shown what: the sampling designs of the paper and of practice.

A design says which items each person is shown, run by run of people (`assign`); where the answers decide what comes
next, it answers at once (`administer_run`). `draw.py` asks for `administer`, which has both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Floats, Ints, person_chunks
from spectral_irt.errors import OptionError, check_option
from spectral_irt.model import category_probabilities, sigmoid

Rng = np.random.Generator
NODES = np.linspace(-4, 4, 41)  # abilities among which an adaptive test looks for that of a person
# Decimals that count when the next item is chosen: of items that tell equally much it is the first.
TIES = 9

# Responses drawn at a time. Not tied to the size of a block: a seed must keep its data when that is tuned.
CHUNK = 500_000
NEARLY_FULL = 0.99  # of a chunk that is filled on average, so that few spill over into a second, tiny block
# Standard deviations in logits and exponents of popularity beyond this are slips of the pen, and would overflow.
WIDEST = 10
FEWEST = 2  # answers of a person under `Popularity`
HALVINGS = 64  # of the interval for a scale of activity: to the last digits


class Shown(NamedTuple):
    """Of a run of people: how many items each is shown, and these items, person after person."""

    counts: Ints
    items: NDArray[np.int32]


class Answers(NamedTuple):
    """Of a run of people: how many items each is given, these items, and the categories of the answers."""

    counts: Ints
    items: NDArray[np.int32]
    categories: Ints


@dataclass(frozen=True)
class Design:
    """Which items each person is shown, independently of ability and difficulty (missing completely at random)."""

    def __post_init__(self) -> None:
        """Counts are whole and above 0 (anchors from 0 on); other numbers are spreads."""
        for parameter in fields(self):
            value = getattr(self, parameter.name)
            if value is not None and str(parameter.type).startswith("int"):
                as_count(parameter.name, value, least=0 if parameter.name == "anchors" else 1)
            elif value is not None:
                check_spread(parameter.name, value)

    @property
    def n_items(self) -> int | None:
        """Where the design says it."""
        return None

    def check(self, n_persons: int, n_items: int) -> None:
        """Refuse what cannot be done with so many people and items."""

    def assign(self, rng: Rng, n_persons: int, n_items: int) -> Iterator[Shown]:
        """What is shown to runs of consecutive people."""
        raise NotImplementedError

    def administer(self, for_design: Rng, for_answers: Rng, items: Items, ability: Floats) -> Iterator[Answers]:
        """What is answered by runs of consecutive people."""
        start = 0
        for counts, shown in self.assign(for_design, len(ability), len(items.slopes)):
            theta = np.repeat(ability[start : start + len(counts)], counts)
            categories = items.at(shown).answers(for_answers.random(len(shown)), theta)
            yield Answers(counts, shown, categories)
            start += len(counts)


@dataclass(frozen=True)
class Complete(Design):
    """Everybody is shown every item."""

    def assign(self, rng: Rng, n_persons: int, n_items: int) -> Iterator[Shown]:
        yield from _in_turn(np.arange(n_items, dtype=np.int32)[None, :], n_persons)


@dataclass(frozen=True)
class Sampled(Design):
    """The sampling of the paper (section 4): every person is shown every item with probability `p`, independently."""

    p: float

    def __post_init__(self) -> None:
        if not 0 < self.p <= 1:
            raise OptionError(f"`p` is {self.p}; the probability of showing an item must be above 0 and at most 1.")

    def assign(self, rng: Rng, n_persons: int, n_items: int) -> Iterator[Shown]:
        # The gaps between the cells shown of a row-by-row walk are geometric: only cells shown cost anything.
        rows = max(1, int(NEARLY_FULL * CHUNK / (n_items * self.p)))
        for start in range(0, n_persons, rows):
            n_rows = min(rows, n_persons - start)
            cell = _hits(rng, self.p, n_rows * n_items)
            person = cell // n_items
            yield Shown(np.bincount(person, minlength=n_rows), (cell - person * n_items).astype(np.int32))


@dataclass(frozen=True)
class Popularity(Design):
    """Some items are seen by many, most by few; some people answer much, most little. Ratings and logs look like this.

    Person `l` is shown n_l items, lognormal with `activity_sd`, between 2 and all items, `n_responses` in all (with sd
    1 the busiest tenth give about 40% of the answers). The items come by successive sampling, each time with
    probability proportional to `rank^-exponent` among those not shown yet; 0 makes all equally popular."""

    n_responses: int
    exponent: float = 0.7
    activity_sd: float = 1.0

    def check(self, n_persons: int, n_items: int) -> None:
        if not n_persons * FEWEST <= self.n_responses <= n_persons * n_items:
            raise OptionError(
                f"`n_responses` is {self.n_responses:,}; {n_persons:,} people with {FEWEST} to {n_items} answers each "
                f"give {n_persons * FEWEST:,} to {n_persons * n_items:,}."
            )

    def assign(self, rng: Rng, n_persons: int, n_items: int) -> Iterator[Shown]:
        counts = self.counts(rng, n_persons, n_items)
        weights = np.arange(1, n_items + 1, dtype=np.float64) ** -self.exponent
        for start, stop in person_chunks(np.append(0, np.cumsum(counts)), CHUNK):
            yield Shown(counts[start:stop], successive(rng, weights, counts[start:stop]))

    def counts(self, rng: Rng, n_persons: int, n_items: int) -> Ints:
        """How many items each person is shown."""
        activity = np.exp(self.activity_sd * rng.standard_normal(n_persons))
        low = 0.0
        high = n_items / activity.min()
        for _ in range(HALVINGS):  # bisect for the scale until the total is right to a small part of one response
            scale = (low + high) / 2
            if np.clip(scale * activity, FEWEST, n_items).sum() < self.n_responses:
                low = scale
            else:
                high = scale
        expected = np.clip(high * activity, FEWEST, n_items)
        counts = np.floor(expected).astype(np.int64)
        n_missing = self.n_responses - int(counts.sum())
        fraction = np.where(counts < n_items, expected - counts, -1.0)
        counts[np.argsort(-fraction, kind="stable")[: max(n_missing, 0)]] += 1
        return counts


@dataclass(frozen=True)
class Booklets(Design):
    """Overlapping booklets, dealt out in turn: person `l` takes booklet `l mod booklets`.

    The items stand in a circle; booklet `b` holds `length` consecutive items from item `b * n_items / booklets` on; by
    default one and a half times its share, so that it has a third of its items in common with each neighbor."""

    booklets: int
    length: int | None = None

    def _length(self, n_items: int) -> int:
        if self.length is not None:
            return self.length
        return min(n_items, -(-3 * n_items // (2 * self.booklets)))

    def check(self, n_persons: int, n_items: int) -> None:
        least = -(-n_items // self.booklets)
        if self.booklets > n_items:
            raise OptionError(f"`booklets` is {self.booklets}; it can be 1 to {n_items}, the number of items.")
        if not least <= self._length(n_items) <= n_items:
            raise OptionError(
                f"`length` is {self.length}; {self.booklets} booklets that hold all {n_items} items need {least} to "
                f"{n_items} items each."
            )

    def assign(self, rng: Rng, n_persons: int, n_items: int) -> Iterator[Shown]:
        first = np.arange(self.booklets) * n_items // self.booklets
        forms = (first[:, None] + np.arange(self._length(n_items))) % n_items
        yield from _in_turn(forms.astype(np.int32), n_persons)


@dataclass(frozen=True)
class LinkedForms(Design):
    """Test forms in a line, each sharing `anchors` items with the one before; person `l` takes form `l mod forms`.

    There are `forms * length - (forms - 1) * anchors` items: 1,142 by default. The chain on items mixes slowly on such
    data. With 0 anchors forms have no link, hence no common scale."""

    forms: int = 30
    length: int = 40
    anchors: int = 2

    @property
    def n_items(self) -> int:
        """Of all forms together."""
        return self.forms * self.length - (self.forms - 1) * self.anchors

    def check(self, n_persons: int, n_items: int) -> None:
        as_count("anchors", self.anchors, least=0, most=self.length - 1)
        if n_items != self.n_items:
            raise OptionError(
                f"`n_items` is {n_items:,}; {self.forms} forms of {self.length} items with {self.anchors} anchors "
                f"hold {self.n_items:,}. Leave `n_items` out."
            )

    def assign(self, rng: Rng, n_persons: int, n_items: int) -> Iterator[Shown]:
        first = np.arange(self.forms) * (self.length - self.anchors)
        forms = first[:, None] + np.arange(self.length)
        yield from _in_turn(forms.astype(np.int32), n_persons)


# Designs in which the answers so far decide what comes next. What is missing depends on answers that were given: the
# likelihood of all answers of a person may be used as it is, a likelihood given the score may not.


@dataclass(frozen=True, eq=False)
class Items:
    """The true items: sums of the thresholds up to each category, as `Thresholds.cumulated` has them, and slopes."""

    cumulated: Floats
    slopes: Floats

    @property
    def max_score(self) -> Ints:
        """Of each item."""
        return np.isfinite(self.cumulated).sum(axis=1) - 1

    @property
    def difficulty(self) -> Floats:
        """The mean of the thresholds of each item."""
        last = self.max_score
        return self.cumulated[np.arange(len(last)), last] / last

    def at(self, items: Ints | NDArray[np.int32]) -> Items:
        """Those of one answer after another."""
        return Items(self.cumulated[items], self.slopes[items])

    def probabilities(self, theta: Floats) -> Floats:
        """Of every category (the last axis); the axes of `theta` go with the items."""
        return category_probabilities(self.slopes * theta, self.slopes[:, None] * self.cumulated)

    def answers(self, luck: Floats, theta: Floats) -> Ints:
        """The category in which a person of this ability answers, by a number between 0 and 1."""
        if self.cumulated.shape[1] == 2:  # right where luck is below the chance; the other end than below
            return (luck < sigmoid(self.slopes * (theta - self.cumulated[:, 1]))).astype(np.int64)
        above = luck[..., None] > np.cumsum(self.probabilities(theta), axis=-1)[..., :-1]
        return np.minimum(above.sum(axis=-1), self.max_score)  # sums of probabilities may end below 1 by rounding

    def information(self, theta: Floats) -> Floats:
        """a_i^2 Var(X_i | theta), which for right and wrong answers is a_i^2 p (1 - p)."""
        if self.cumulated.shape[1] == 2:
            p = sigmoid(self.slopes * (theta - self.cumulated[:, 1]))
            return self.slopes**2 * p * (1 - p)
        p = self.probabilities(theta)
        k = np.arange(self.cumulated.shape[1])
        return self.slopes**2 * (p @ k**2.0 - (p @ k) ** 2)


@dataclass(frozen=True)
class Responsive(Design):
    """The answers so far decide what comes next."""

    def administer_run(self, luck: Floats, items: Items, ability: Floats) -> Answers:
        """What a run of people is given, and answers, which follows from `luck`, a number between 0 and 1 for every
        person and item."""
        raise NotImplementedError

    def administer(self, for_design: Rng, for_answers: Rng, items: Items, ability: Floats) -> Iterator[Answers]:
        rows = max(1, CHUNK // items.cumulated.size)
        for start in range(0, len(ability), rows):
            theta = ability[start : start + rows]
            yield self.administer_run(for_answers.random((len(theta), len(items.slopes))), items, theta)


@dataclass(frozen=True)
class Adaptive(Responsive):
    """A computerized adaptive test: the next of `length` items is the one that tells most at the ability estimated so
    far, the posterior mean under a standard normal population and the true thresholds."""

    length: int = 20

    def check(self, n_persons: int, n_items: int) -> None:
        if self.length > n_items:
            raise OptionError(f"`length` is {self.length}; there are {n_items} items.")

    def administer_run(self, luck: Floats, items: Items, ability: Floats) -> Answers:
        n = len(ability)
        person = np.arange(n)
        used = np.zeros(luck.shape, dtype=bool)
        log_posterior = np.tile(-(NODES**2) / 2, (n, 1))
        chosen = np.empty((n, self.length), dtype=np.int32)
        categories = np.empty((n, self.length), dtype=np.int64)
        for k in range(self.length):
            weight = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
            estimate = np.round(weight @ NODES / weight.sum(axis=1), TIES)
            information = np.round(items.information(estimate[:, None]), TIES)
            item = np.argmax(np.where(used, -1.0, information), axis=1)
            used[person, item] = True
            next_items = items.at(item)
            category = next_items.answers(luck[person, item], ability)
            chosen[:, k] = item
            categories[:, k] = category
            log_posterior += np.log(next_items.probabilities(NODES[:, None])[:, person, category]).T
        return Answers(np.full(n, self.length), chosen.ravel(), categories.ravel())


@dataclass(frozen=True)
class TwoStage(Responsive):
    """A routing test for everybody, the first `routing` items, then the harder half of the others for half of its
    highest score or more, else the easier half."""

    routing: int = 10

    def check(self, n_persons: int, n_items: int) -> None:
        n = self.routing
        if n > n_items - 2:
            raise OptionError(f"`routing` is {n}; of {n_items} items at least two must be left to choose from.")

    def administer_run(self, luck: Floats, items: Items, ability: Floats) -> Answers:
        categories = items.answers(luck, ability[:, None])
        takes_hard = 2 * categories[:, : self.routing].sum(axis=1) >= items.max_score[: self.routing].sum()
        by_difficulty = self.routing + np.argsort(items.difficulty[self.routing :], kind="stable")
        half = len(by_difficulty) // 2
        shown = np.zeros(luck.shape, dtype=bool)
        shown[:, : self.routing] = True
        shown[np.ix_(~takes_hard, by_difficulty[:half])] = True
        shown[np.ix_(takes_hard, by_difficulty[half:])] = True
        return Answers(shown.sum(axis=1), np.nonzero(shown)[1].astype(np.int32), categories[shown])


@dataclass(frozen=True)
class Stopping(Responsive):
    """From the easiest item up, until so many answers in a row are `wrong`, that is in the lowest category; as
    individual tests of children do it."""

    wrong: int = 3

    def administer_run(self, luck: Floats, items: Items, ability: Floats) -> Answers:
        order = np.argsort(items.difficulty, kind="stable")
        categories = items.answers(luck, ability[:, None])[:, order]
        n_wrong_in_a_row = np.zeros(len(ability), dtype=np.int64)
        goes_on = np.ones(len(ability), dtype=bool)
        shown = np.zeros(luck.shape, dtype=bool)
        for k in range(len(order)):
            shown[:, k] = goes_on
            n_wrong_in_a_row = np.where(categories[:, k] > 0, 0, n_wrong_in_a_row + 1)
            goes_on &= n_wrong_in_a_row < self.wrong
        return Answers(shown.sum(axis=1), order[np.nonzero(shown)[1]].astype(np.int32), categories[shown])


DESIGNS: dict[str, type[Design]] = {
    "complete": Complete,
    "sampled": Sampled,
    "popularity": Popularity,
    "booklets": Booklets,
    "linked": LinkedForms,
    "adaptive": Adaptive,
    "two-stage": TwoStage,
    "stopping": Stopping,
}


def as_design(design: str | Design, options: dict[str, Any]) -> Design:
    """A design, or the one of this name with these parameters."""
    if isinstance(design, Design):
        if options:
            raise OptionError(f"{', '.join(options)}: say this inside the design, {design}.")
        return design
    check_option("design", design, DESIGNS)
    kind = DESIGNS[design]
    parameters = [f"`{parameter.name}`" for parameter in fields(kind)]
    required = [f"`{parameter.name}`" for parameter in fields(kind) if parameter.default is MISSING]
    options_given = [f"`{name}`" for name in options]
    unknown = [name for name in options_given if name not in parameters]
    if unknown:
        takes = ", ".join(parameters) or "no parameters"
        raise OptionError(f"there is no parameter {', '.join(unknown)}; the design {design!r} takes {takes}.")
    missing = [name for name in required if name not in options_given]
    if missing:
        raise OptionError(f"the design {design!r} needs {', '.join(missing)}.")
    return kind(**options)


def _in_turn(forms: NDArray[np.int32], n_persons: int) -> Iterator[Shown]:
    """Person `l` is shown the items of row `l mod rows` of `forms`."""
    n_forms, length = forms.shape
    rows = max(1, CHUNK // length)
    for start in range(0, n_persons, rows):
        form = np.arange(start, min(start + rows, n_persons)) % n_forms
        yield Shown(np.full(len(form), length), forms[form].ravel())


def _hits(rng: Rng, p: float, n_cells: int) -> Ints:
    """Which of `n_cells` cells are hit, each with probability `p`, in order."""
    enough = int(n_cells * p + 4 * np.sqrt(n_cells * p * (1 - p))) + 1
    cell = np.zeros(0, dtype=np.int64)
    last = -1
    while last < n_cells:
        # Gaps are cut at the number of cells: beyond it they end the walk all the same, and a tiny p would overflow.
        gaps = np.minimum(rng.geometric(p, enough), n_cells + 1)
        cell = np.concatenate([cell, last + np.cumsum(gaps)])
        last = int(cell[-1])
    return cell[: np.searchsorted(cell, n_cells)]


def successive(rng: Rng, weights: Floats, counts: Ints, rounds: int = 8) -> NDArray[np.int32]:
    """`counts[l]` different items for every person `l`, in order of person and item, by successive sampling.

    Items are drawn with probability proportional to weight, and again where the person has them. Whoever lacks items
    after `rounds` of this gets the others by a race, the same distribution at the cost of all items once: item `i`
    arrives after an exponential time with rate `weights[i]`, and the first win. Sorting makes the data independent of
    the partition."""
    n_items = len(weights)
    cumulative = np.cumsum(weights / weights.sum())
    complete: list[Ints] = []  # person * n_items + item, of people who have all their items
    incomplete: Ints = np.zeros(0, dtype=np.int64)  # the same of the others
    n_held = np.zeros(len(counts), dtype=np.int64)
    lacking = np.flatnonzero(counts)
    for _ in range(rounds):
        person = np.repeat(lacking, counts[lacking] - n_held[lacking])
        item = np.searchsorted(cumulative, rng.random(len(person)), side="right")
        incomplete = np.sort(np.concatenate([incomplete, person * n_items + np.minimum(item, n_items - 1)]))
        incomplete = incomplete[np.diff(incomplete, prepend=-1) > 0]
        owner = incomplete // n_items
        n_held = np.bincount(owner, minlength=len(counts))
        is_complete = (n_held == counts)[owner]
        complete.append(incomplete[is_complete])
        incomplete = incomplete[~is_complete]
        lacking = np.flatnonzero((n_held > 0) & (n_held < counts))
    for who in lacking:
        first = who * n_items
        held = incomplete[np.searchsorted(incomplete, first) : np.searchsorted(incomplete, first + n_items)]
        arrival = rng.standard_exponential(n_items) / weights
        arrival[held - first] = 0  # what the person has is there already
        complete.append(first + np.argpartition(arrival, counts[who] - 1)[: counts[who]])
    return (np.sort(np.concatenate(complete)) % n_items).astype(np.int32)


def as_count(name: str, value: Any, *, least: int = 1, most: int | None = None) -> int:
    """A whole number within its limits, or an error."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):
        limit = f" and at most {most:,}" if most is not None else ""
        raise OptionError(f"`{name}` is {value!r}; it must be a whole number, at least {least}{limit}.")
    return int(value)


def check_spread(name: str, value: float) -> None:
    """An error for a standard deviation, or an exponent, out of any reasonable range."""
    if not 0 <= value <= WIDEST:
        raise OptionError(f"`{name}` is {value}; it must be a number from 0 to {WIDEST}.")
