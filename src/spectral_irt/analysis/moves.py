"""What an analyst changes between one fit and the next, and the ledger of it.

A move takes responses to responses: items and persons dropped, an item split by groups of people, items joined to a
super-item, categories merged. It is a name with arguments, so that the same moves can be said on the command line, in
Python and in a file (moves.toml), and done again:

    --split q7:sex        study.split("q7", by="sex")        [[move]] do = "split"  item = "q7"  by = "sex"

`Changes` does moves one after the other and keeps the record of each: what asked for it, and how many persons, items
and responses there were before and after. The functions on blocks are in `data/item_changes.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.analysis.hold_out import HoldOut
from spectral_irt.analysis.tailoring import MOST_ROUNDS, SETTLED, without_unlikely
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Ints
from spectral_irt.data.groupings import grouping_of
from spectral_irt.data.item_changes import (
    collapse_items,
    has_answered,
    identity_of_categories,
    join_items,
    split_item,
    without_unused,
)
from spectral_irt.data.labels import Labels, by_label, column_of, positions, text_of
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.estimators.by_name import estimator_name
from spectral_irt.text import and_list, count, did_you_mean, listed, one_or_many

if TYPE_CHECKING:
    from spectral_irt.analysis.analysis import Analysis

MISFIT = "misfit"  # of drop_persons: whose responses are too unexpected
MISFIT_Z = 2.0  # infit or outfit, standardized: as of the persons in unexpected.csv
EVERY_ITEM = "*"
MARGINAL = ("mml", "vb")  # estimators that take responses which are missing as missing at random
# Of the test (Holm) by which DIF is resolved: twice the usual 5%, since a difference that is left moves all the others,
# and an item that is split for nothing costs a little precision only.
RESOLVED = 0.10
MOST_SPLIT = 20  # items that one becomes; more are likely a column of numbers or names
TAILORED = 0.5  # the limit that a finding on guessing proposes: it takes out more than half of the bias
# What a remedy says of the move that it proposes.
WHAT_IT_DOES = {
    "split": "gives it a difficulty for each group.",
    "join": "does so.",
    "drop": "shows what changes without it.",
    "drop_persons": "shows what changes without them.",
    "collapse": "does so for one item.",
    "tailor": "leaves out responses that may be guesses, and compares.",
}
WHAT_IT_TAKES = {  # of arguments by name, where the value that was given does not tell
    "below": " It is a chance between 0 and 1, as 0.5.",
    "categories": " It is the new category of each code from the lowest to the highest, from 0 up, as 0, 1, 1, 2.",
    "cuts": " They are numbers.",
}
# Findings that ask for a move, by its name.
ASKED_BY = {
    "drop": ("misfitting_items", "reversed_items", "wrong_key", "extreme_items", "displaced_anchors"),
    "drop_persons": ("erratic_people",),
    "split": ("differential_items", "nonuniform_items", "displaced_anchors"),
    "join": ("dependent_items",),
    "collapse": ("thresholds_out_of_order", "empty_categories", "categories_collapsed"),
    "tailor": ("guessing",),
}


class Effect(NamedTuple):
    """How many there were before and after a move."""

    persons: tuple[int, int]
    items: tuple[int, int]
    responses: tuple[int, int]

    @property
    def words(self) -> str:
        """What changed, as "responses 5,000 to 4,980"."""
        changes = []
        for name, (before, after) in zip(self._fields, self, strict=True):
            if before != after:
                changes.append(f"{name} {before:,} to {after:,}")
        return ", ".join(changes) or "numbers of persons, items and responses as before"


@dataclass(frozen=True)
class Move:
    """One line of the ledger: what was done, what asked for it, and what it changed."""

    name: str
    arguments: Mapping[str, Any]
    because: str = ""
    effect: Effect | None = None

    def __post_init__(self) -> None:
        check_arguments(self.name, self.arguments)

    @property
    def option(self) -> str:
        """The move as the command line has it.

        >>> Move("split", {"item": "q7", "by": "sex"}).option
        '--split q7:sex'
        """
        return f"--{self.name.replace('_', '-')} {KINDS[self.name].text(self.arguments)}"

    @property
    def words(self) -> str:
        """The move as a sentence has it, as "q7 split by sex"."""
        return KINDS[self.name].words(self.arguments)

    @property
    def change_in_words(self) -> str:
        """What it changed, as "responses 5,000 to 4,980"; nothing of a move that was not made yet."""
        return "" if self.effect is None else self.effect.words

    @property
    def items(self) -> tuple[Any, ...]:
        """Labels of the items that it is about."""
        named = self.arguments.get("items", [self.arguments[key] for key in ("item",) if key in self.arguments])
        return tuple(named)

    def to_dict(self) -> dict[str, Any]:
        effect = None if self.effect is None else self.effect._asdict()
        return {"move": self.name, **self.arguments, "option": self.option, "because": self.because, "effect": effect}


@dataclass
class Changes:
    """Responses, and the moves that were made on them. `fit` makes an analysis of responses, for moves that need one;
    `keep_unused` says that items keep categories that nobody used."""

    responses: Responses
    fit: Callable[[Responses], Analysis]
    keep_unused: bool = False
    moves: tuple[Move, ...] = ()
    positions: Ints | None = None  # of the persons that are left, among those at first; None: all
    first: Responses = field(init=False)  # as they were before the changes
    untailored: Analysis | None = None  # by which responses were tailored
    held_out: HoldOut | None = None  # where these are a part of the persons
    everybody: Labels | None = None  # labels of the persons of both parts: a list of persons names some of each

    def __post_init__(self) -> None:
        self.first = self.responses

    def take_part(self, place: Ints, held_out: HoldOut) -> None:
        """Go on with a part of the persons."""
        self.everybody = self.responses.persons
        self.positions = place
        self.responses = self.responses.take_persons(place)
        self.held_out = held_out

    def apply(self, moves: Iterable[Move], findings: Sequence[Finding] = ()) -> None:
        """Make these moves, one after the other; what asked for one that does not say is looked for in the findings."""
        for move in moves:
            before = _counts(self.responses)
            steps = KINDS[move.name].apply(self, **move.arguments)
            if self.responses.n_items < 2:
                raise DesignError(
                    f"`{move.name}` leaves {count(self.responses.n_items, 'item')}; a scale takes two or more. Leave "
                    f"{move.option} out."
                )
            if steps is None:  # else it was made of steps, each with an effect of its own
                steps = (replace(move, effect=Effect(*zip(before, _counts(self.responses), strict=True))),)
            for step in steps:
                self.moves += (replace(step, because=step.because or asked_by(step, findings)),)

    def place_of(self, label: Any, move: str) -> int:
        """Where an item is; an error that says which items there are, or which earlier move took it away."""
        place = int(positions([label], self.responses.items)[0])
        if place >= 0:
            return place
        for earlier in self.moves:
            if text_of(label) in map(text_of, earlier.items):
                raise OptionError(
                    f"`{move}` names the item {listed([label])}, which an earlier move took away: {earlier.words}. "
                    "Leave out one of the two."
                )
        near = did_you_mean(label, self.responses.items.tolist(), 3)
        raise OptionError(
            f"`{move}` names {listed([label])}, which is no item; the items are {listed(self.responses.items)}.{near}"
        )

    def places_of(self, labels: Sequence[Any], move: str) -> list[int]:
        places = [self.place_of(label, move) for label in labels]
        if len(set(places)) < len(places):
            raise OptionError(f"`{move}` names an item twice ({listed(labels)}); name each once.")
        return places

    def only_items(self, move: str) -> None:
        """An error where items are combinations with raters, of which a move would be about many at once."""
        if self.responses.facets is not None:
            facets = and_list(list(self.responses.facets.facet_names))
            raise OptionError(
                f"`{move}` is for responses to items, and these are ratings with the facet {facets}; drop items or "
                "persons, or leave it out."
            )

    def _drop(self, items: Sequence[Any]) -> None:
        responses = self.responses
        facets = responses.facets
        if facets is None:
            chosen = self.places_of(items, "drop")
        else:
            unknown = [label for label, k in zip(items, positions(items, facets.items), strict=True) if k < 0]
            if unknown:
                raise OptionError(f"`drop` names {listed(unknown)}, no item; the items are {listed(facets.items)}.")
            chosen = np.flatnonzero(np.isin(facets.item, positions(items, facets.items))).tolist()
        merged = [move for move in self.moves if move.name == "collapse" and set(move.items) & set(items)]
        if merged:
            raise OptionError(
                f"`drop` names an item whose categories an earlier move merged ({merged[0].words}); leave out that one."
            )
        left = np.setdiff1d(np.arange(responses.n_items), chosen)
        if not len(left):
            raise DesignError(f"`drop` names all {responses.n_items:,} items; none would be left.")
        self.responses = responses.take_items(left)

    def _drop_persons(self, persons: str | Sequence[Any]) -> None:
        responses = self.responses
        if persons == MISFIT:
            fit = self.fit(responses)._person_fit("wle")
            with np.errstate(invalid="ignore"):
                out = np.maximum(fit.infit_z, fit.outfit_z) > MISFIT_Z
            if not out.any():
                raise OptionError(
                    "`drop_persons='misfit'`: nobody has an infit or outfit, standardized, above "
                    f"{MISFIT_Z:g}. Leave it out."
                )
            left = np.flatnonzero(~out)
        else:
            place = positions(persons, responses.persons)
            among_persons = place >= 0
            if self.everybody is not None:
                among_persons = positions(persons, self.everybody) >= 0
            unknown = [label for label, is_known in zip(persons, among_persons.tolist(), strict=True) if not is_known]
            if unknown:
                are = one_or_many(len(unknown), "is", "are")
                raise OptionError(
                    f"`drop_persons` names {listed(unknown)}, who {are} not among the persons; these are "
                    f"{listed(responses.persons)}."
                )
            stays = np.ones(responses.n_persons, dtype=bool)
            stays[place[place >= 0]] = False
            left = np.flatnonzero(stays)
        if not len(left):
            raise DesignError("`drop_persons` leaves nobody. Leave it out.")
        self.positions = left if self.positions is None else self.positions[left]
        self.responses = responses.take_persons(left)

    def _split(self, item: Any, by: str, cuts: Sequence[float] = ()) -> None:
        self.only_items("split")
        place = self.place_of(item, "split")
        responses = self.responses
        labels = grouping_of(by, column_of(responses, by), cuts).labels
        split = by_label(responses, labels)
        has_response = has_answered(responses, place)
        used = np.bincount(split.group[has_response & (split.group >= 0)], minlength=split.n_groups) > 0
        if used.sum() < 2:
            groups = listed(np.array(split.names, dtype=object)[used].tolist()) or "no group"
            raise OptionError(
                f"`split` of {listed([item])} by {by!r}: responses to it are from {groups} only; it takes two groups."
            )
        if used.sum() > MOST_SPLIT:
            raise OptionError(
                f"`split` of {listed([item])} by {by!r} makes {int(used.sum()):,} items, more than {MOST_SPLIT}; merge "
                "the groups, or cut numbers as in age:40,65."
            )
        split = split.keep(used)
        names = [f"{text_of(item)}[{by}={name}]" for name in split.names]
        self._check_new(names, "split")
        changed = split_item(responses, place, names, split.group)
        if not self.keep_unused:  # else the new items share a rating scale with others
            changed = without_unused(changed, range(place, place + len(names)))
        self.responses = changed

    def _join(self, items: Sequence[Any], name: str | None = None) -> None:
        self.only_items("join")
        places = self.places_of(items, "join")
        if len(places) < 2:
            raise OptionError(f"`join` names {listed(items)}; a super-item is made of two items or more, as in q3+q4.")
        name = joined_name(items) if name is None else name
        self._check_new([name], "join", allowed=items)
        joined = join_items(self.responses, places, name)
        place = int(positions([name], joined.items)[0])
        if not joined.item_counts[place]:
            raise DesignError(
                f"`join` of {listed(items)}: no person answered all of them, so that there is no super-item. Join "
                "items that were answered together."
            )
        self.responses = without_unused(joined, [place])

    def _collapse(self, item: Any, categories: Sequence[int]) -> None:
        self.only_items("collapse")
        responses = self.responses
        every = item == EVERY_ITEM
        places = list(range(responses.n_items)) if every else [self.place_of(item, "collapse")]
        codes = responses.category_codes()[places]
        if int(responses.thresholds.max_score[places].max()) < 2:
            which = "all items" if every else listed([responses.items[places[0]]])
            raise OptionError(
                f"`collapse` of {which}: right or wrong are two categories, and an item has at least two."
            )
        low, high = np.nanmin(codes), np.nanmax(codes)
        new_category = identity_of_categories(responses.thresholds)
        for place, own_codes in zip(places, codes, strict=True):
            n_categories = int(responses.thresholds.max_score[place]) + 1
            used = own_codes[:n_categories]
            if len(categories) == n_categories and not every:
                new = np.asarray(categories)
            elif len(categories) == high - low + 1:
                new = np.asarray(categories)[(used - low).astype(np.int64)]
            else:
                label = listed([responses.items[place]])
                n_in_words = count(len(categories), "new category", "new categories")
                example = ",".join(map(str, [*range(int(high - low)), int(high - low) - 1]))
                coded = ", ".join(responses.answer_names(responses.items[place], used.tolist()))
                raise OptionError(
                    f"`collapse` of {'all items' if every else label} gives {n_in_words}, and the codes run from "
                    f"{low:g} to {high:g} ({label} has {coded}); give one for each, as in {example}."
                )
            new = np.unique(new, return_inverse=True)[1]  # without those that no category of the item becomes
            if new.max() < 1:
                raise OptionError(
                    f"`collapse` leaves the item {listed([responses.items[place]])} with a single category; it takes "
                    "two."
                )
            new_category[place, :n_categories] = new
        if np.array_equal(new_category, identity_of_categories(responses.thresholds)):
            raise OptionError("`collapse` merges no categories: each old one has a new one of its own. Leave it out.")
        merged = collapse_items(responses, new_category)
        self.responses = merged if self.keep_unused and every else without_unused(merged, places)

    def _tailor(self, below: float) -> None:
        """Responses of persons whose chance of a right one is below the limit become missing."""
        self.only_items("tailor")
        if not self.responses.thresholds.binary:
            raise OptionError(
                "`tailor` is about guessing, and for right and wrong responses only; these are in ordered categories."
            )
        all_responses = self.responses
        untailored = self.fit(all_responses)
        study = untailored
        if study.calibration.adaptive or estimator_name(type(study._estimator).__name__) in MARGINAL:
            raise OptionError(
                "`tailor` leaves responses out by the person's own score, for which conditional likelihood allows, and "
                "marginal likelihood (`design='adaptive'`, the estimators mml and vb) does not; use another estimator, "
                "or leave it out."
            )
        for _ in range(MOST_ROUNDS):
            before = self.responses.n_responses
            self.responses = without_unlikely(self.responses, study.calibration.thresholds, below)
            if before - self.responses.n_responses <= SETTLED * all_responses.n_responses:
                break
            study = self._fit_of_tailored(below)
        if self.responses.n_responses == all_responses.n_responses:
            raise OptionError(f"`tailor`: nobody has a chance below {below:g} on an item. Leave it out.")
        self.untailored = untailored  # the last fit only is compared with it

    def _fit_of_tailored(self, below: float) -> Analysis:
        try:
            return self.fit(self.responses)
        except DesignError as error:
            raise DesignError(
                f"`tailor` below {below:g} leaves too few responses ({error}) Choose a lower limit."
            ) from None

    def _dif_resolve(self, by: Sequence[str]) -> tuple[Move, ...]:
        """The item with the largest DIF is split, and all others are tested again, until none is left that differs, or
        fewer than a third of the items are as they were."""
        self.only_items("dif_resolve")
        original_items = set(map(text_of, self.responses.items.tolist()))
        fewest = len(original_items) / 3
        steps: list[Move] = []
        while len(original_items) - 1 >= fewest:
            study = self.fit(self.responses)
            worst = max((_largest_dif(study, column, original_items) for column in by), key=lambda found: found.size)
            if not worst.item:
                break
            because = f"DIF by {worst.column}, {worst.size:.2f} logits, step {len(steps) + 1}"
            step = Move("split", {"item": worst.item, "by": worst.column}, because)
            before = _counts(self.responses)
            self._split(worst.item, worst.column)
            effect = Effect(*zip(before, _counts(self.responses), strict=True))
            steps.append(replace(step, effect=effect))
            original_items.discard(worst.item)
        return tuple(steps)

    def _check_new(self, names: Sequence[str], move: str, allowed: Sequence[Any] = ()) -> None:
        others = [label for label in self.responses.items.tolist() if label not in allowed]
        used_names = set(map(text_of, others)) & set(names)
        if used_names:
            raise OptionError(
                f"`{move}` makes an item {listed(sorted(used_names))}, and there is one of that name already."
            )


def parts_of_split_items(moves: Sequence[Move], labels: NDArray[np.object_]) -> list[Ints]:
    """Positions of the parts of each item that was split, also where a part was split again: no person has two."""
    texts = [text_of(label) for label in labels]
    splits = [f"{text_of(move.arguments['item'])}[{move.arguments['by']}=" for move in moves if move.name == "split"]
    first = [start for start in splits if not any(start != other and start.startswith(other) for other in splits)]
    parts = (np.flatnonzero([text.startswith(start) for text in texts]) for start in first)
    return [positions for positions in parts if len(positions) > 1]


class LargestDif(NamedTuple):
    """The item that differs most by a column, of those that may be split; no item where none does."""

    column: str
    item: str
    size: float


def _largest_dif(study: Analysis, column: str, items: set[str]) -> LargestDif:
    labels = grouping_of(column, column_of(study.responses, column)).labels
    table = study.dif(labels, nonuniform=False, level=RESOLVED).items
    largest = LargestDif(column, "", 0.0)
    for item, flagged, size in zip(table["item"].tolist(), table["flagged"], table["largest"], strict=True):
        if flagged and text_of(item) in items and abs(size) > largest.size:
            largest = LargestDif(column, text_of(item), float(abs(size)))
    return largest


class Kind(NamedTuple):
    """A kind of move: its arguments by name (those after `*` may be left out), how it is done, and how it is said."""

    arguments: Mapping[str, Callable[[Any], bool]]
    optional: Mapping[str, Callable[[Any], bool]]
    apply: Callable[..., tuple[Move, ...] | None]
    text: Callable[[Mapping[str, Any]], str]  # the value of the option
    words: Callable[[Mapping[str, Any]], str]


def joined_name(items: Iterable[Any]) -> str:
    return "+".join(map(text_of, items))


def check_arguments(name: str, arguments: Mapping[str, Any]) -> None:
    """An error where a move has another name or other arguments than there are."""
    if name not in KINDS:
        raise OptionError(f"there is no move {name!r}; moves are {', '.join(KINDS)}.")
    kind = KINDS[name]
    check_of_argument = {**kind.arguments, **kind.optional}
    for key, value in arguments.items():
        if key not in check_of_argument:
            raise OptionError(f"the move {name!r} has no {key!r}; it has {', '.join(check_of_argument)}.")
        if not check_of_argument[key](value):
            raise OptionError(
                f"the move {name!r} has {key} = {value!r}, which it cannot be.{WHAT_IT_TAKES.get(key, '')}"
            )
    absent = [key for key in kind.arguments if key not in arguments]
    if absent:
        raise OptionError(f"the move {name!r} lacks {', '.join(absent)}.")


def asked_by(move: Move, findings: Sequence[Finding]) -> str:
    """The code of the first finding that asks for such a move on one of these items; "" if none does."""
    named = set(map(text_of, move.items))
    for code in ASKED_BY.get(move.name, ()):
        for finding in findings:
            about = set(map(text_of, finding.items))
            if finding.code == code and (not named or not about or named & about or EVERY_ITEM in named):
                return code
    return ""


def move_for(finding: Finding, column: str = "") -> Move | None:
    """The move that does what the remedy of a finding says; None where it is none. DIF is by a column."""
    labels = list(finding.items)
    if finding.code == "differential_items" and column and labels:
        return Move("split", {"item": labels[0], "by": column})
    if finding.code == "dependent_items" and finding.severity != "note" and len(labels) == 2:
        return Move("join", {"items": labels})
    if finding.code == "misfitting_items" and labels:
        return Move("drop", {"items": labels[:1]})
    if finding.code == "erratic_people" and finding.severity != "note":
        return Move("drop_persons", {"persons": MISFIT})
    if finding.code == "guessing":
        return Move("tailor", {"below": TAILORED})
    return None


def merge_for(finding: Finding, study: Analysis) -> Move | None:
    """The move that merges two categories of the item whose thresholds are most out of order: the category between
    these thresholds, and the one beside it with fewer responses."""
    responses = study.responses
    if finding.code != "thresholds_out_of_order" or finding.severity == "note" or responses.facets is not None:
        return None
    calibration = study.calibration
    joined = super_items(study.moves)
    largest = 0.0
    move = None
    for label in finding.items:
        if text_of(label) in joined:
            continue
        place = calibration.positions([label])
        drop = -np.diff(calibration.thresholds[calibration.layout.of_items(place)])
        if drop.max() <= largest:
            continue
        largest = drop.max()
        between = int(np.argmax(drop)) + 1
        counts = responses.category_counts[int(positions([label], responses.items)[0])]
        lower = between
        if counts[between - 1] <= counts[between + 1]:
            lower = between - 1
        categories = np.arange(len(drop) + 2)
        categories[lower + 1 :] -= 1
        move = Move("collapse", {"item": label, "categories": categories.tolist()})
    return move


def pointing_at_move(finding: Finding, move: Move | None) -> Finding:
    """The finding with the move that does what its remedy says: a call in the remedy, and the option for programs."""
    if move is None:
        return finding
    arguments = list(move.arguments.values())
    if move.name in ("drop", "join"):
        arguments = [text_of(label) for label in move.items]
    elif move.name in ("split", "collapse"):
        arguments[0] = text_of(arguments[0])
    call = f"`study.{move.name}({', '.join(map(repr, arguments))})`"
    option = move.option if _can_be_typed(move) else ""
    return replace(finding, remedy=f"{finding.remedy} {call} {WHAT_IT_DOES[move.name]}", option=option)


def _can_be_typed(move: Move) -> bool:
    """Whether the option names the same items: none of their labels has a sign that divides the option."""
    labels = "".join(map(text_of, move.items))
    return not set(labels) & set(",+=:") and not labels.startswith("-")


def super_items(moves: Iterable[Move]) -> set[str]:
    """The names of items that were joined of others."""
    joins = [move.arguments for move in moves if move.name == "join"]
    return {join.get("name") or joined_name(join["items"]) for join in joins}


def about_super_items(finding: Finding, moves: Iterable[Move]) -> Finding:
    """The finding on disordered thresholds, where some are those of a super-item: they are out of order because its
    parts depend on each other, for which they were joined, and no category of it should be merged."""
    if finding.code != "thresholds_out_of_order":
        return finding
    names = super_items(moves)
    joined = [item for item in finding.items if text_of(item) in names]
    if not joined:
        return finding
    are = one_or_many(len(joined), "is a super-item", "are super-items")
    its = one_or_many(len(joined), "its", "their")
    why = f"{listed(joined)} {are}: parts that depend on each other put {its} thresholds out of order, as expected."
    if len(joined) == len(finding.items):
        return replace(finding, severity="note", remedy=f"{why} Leave {its} categories as they are.")
    return replace(finding, remedy=f"{finding.remedy} {why}")


def _counts(responses: Responses) -> tuple[int, int, int]:
    n_items = responses.n_items if responses.facets is None else len(responses.facets.items)
    return responses.n_persons, n_items, responses.n_responses


def _is_label(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _is_labels(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(map(_is_label, value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_persons(value: Any) -> bool:
    return value == MISFIT or _is_labels(value)


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, int | float) for one in value)


def _is_rising_categories(value: Any) -> bool:
    """New categories of the old ones: whole numbers from 0 that rise by steps of 0 or 1."""
    is_list_of_numbers = isinstance(value, list | tuple) and len(value) > 1 and all(type(one) is int for one in value)
    return is_list_of_numbers and value[0] == 0 and set(np.diff(value).tolist()) <= {0, 1}


def _is_chance(value: Any) -> bool:
    return isinstance(value, float) and 0 < value < 1


def _persons_text(arguments: Mapping[str, Any]) -> str:
    return MISFIT if arguments["persons"] == MISFIT else "FILE"


def _persons_words(arguments: Mapping[str, Any]) -> str:
    if arguments["persons"] == MISFIT:
        return f"persons with an infit or outfit, standardized, above {MISFIT_Z:g} dropped"
    return f"{count(len(arguments['persons']), 'person')} dropped, as listed"


def _split_text(arguments: Mapping[str, Any]) -> str:
    cuts = ",".join(f"{cut:g}" for cut in arguments.get("cuts", ()))
    return f"{text_of(arguments['item'])}:{arguments['by']}" + (f":{cuts}" if cuts else "")


def _join_text(arguments: Mapping[str, Any]) -> str:
    name = arguments.get("name")
    return joined_name(arguments["items"]) + (f"={name}" if name else "")


def _collapse_text(arguments: Mapping[str, Any]) -> str:
    return f"{text_of(arguments['item'])}:{','.join(map(str, arguments['categories']))}"


def _collapse_words(arguments: Mapping[str, Any]) -> str:
    which = "all items" if arguments["item"] == EVERY_ITEM else text_of(arguments["item"])
    return f"categories of {which} merged to {','.join(map(str, arguments['categories']))}"


KINDS: dict[str, Kind] = {
    "drop": Kind(
        {"items": _is_labels},
        {},
        Changes._drop,
        lambda given: ",".join(map(text_of, given["items"])),
        lambda given: f"{and_list(list(map(text_of, given['items'])))} dropped",
    ),
    "drop_persons": Kind({"persons": _is_persons}, {}, Changes._drop_persons, _persons_text, _persons_words),
    "split": Kind(
        {"item": _is_label, "by": _is_text},
        {"cuts": _is_numbers},
        Changes._split,
        _split_text,
        lambda given: f"{text_of(given['item'])} split by {given['by']}",
    ),
    "join": Kind(
        {"items": _is_labels},
        {"name": _is_text},
        Changes._join,
        _join_text,
        lambda given: f"{and_list(list(map(text_of, given['items'])))} joined",
    ),
    "collapse": Kind(
        {"item": _is_label, "categories": _is_rising_categories}, {}, Changes._collapse, _collapse_text, _collapse_words
    ),
    "tailor": Kind(
        {"below": _is_chance},
        {},
        Changes._tailor,
        lambda given: f"{given['below']:g}",
        lambda given: f"responses with a chance below {given['below']:g} made missing",
    ),
    "dif_resolve": Kind(
        {"by": _is_labels},
        {},
        Changes._dif_resolve,
        lambda given: ",".join(given["by"]),
        lambda given: f"items with DIF by {and_list(list(given['by']))} split one after the other",
    ),
}
