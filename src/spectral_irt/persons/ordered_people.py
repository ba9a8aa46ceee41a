"""How able every person is, from thresholds and answers in ordered categories; and responses put in terms of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import OptionError, ResponseValueError, check_option, listed, option
from spectral_irt.ordered_ability import fit_population, ordered_abilities, posterior
from spectral_irt.ordered_calibration import OrderedCalibration
from spectral_irt.persons.abilities import METHODS, Abilities
from spectral_irt.responses.block import Floats, Ints
from spectral_irt.responses.labels import positions
from spectral_irt.responses.ordered import OrderedResponses, Steps, ordered_from_codes
from spectral_irt.responses.ordered_patterns import Patterns, distinct_rows


def align_ordered(
    calibration: OrderedCalibration, responses: OrderedResponses, ignore_unknown: bool = False
) -> OrderedResponses:
    """The responses with the items and categories of a calibration; both are matched by what they are called."""
    mine, theirs = responses.category_codes(), calibration.codes
    if responses.items.tolist() == calibration.labels.tolist() and np.array_equal(mine, theirs, equal_nan=True):
        return responses
    place = positions(responses.items, calibration.labels)
    unknown = responses.items[place < 0]
    if len(unknown) == len(place) or (len(unknown) and not ignore_unknown):
        raise OptionError(
            f"{responses.source}: {len(unknown):,} items are not in the calibration: {listed(unknown)}. It has "
            f"{listed(calibration.labels)}. Check the labels, or say ",
            option("ignore_unknown", True),
            " to leave the answers to these items out.",
        )
    return _matched(responses, Coded(calibration.labels, calibration.steps.counts, theirs), place)


def _matched(responses: OrderedResponses, known: Coded, place: Ints) -> OrderedResponses:
    """The answers in known categories; `place` is that of each item of the data, or -1 to leave it out."""
    mine, theirs = responses.category_codes(), known.codes
    # For every item and category of the data, the category of the calibration with the same code.
    there = np.where(place >= 0, place, 0)
    same = mine[:, :, None] == theirs[there][:, None, :]
    new = np.where(same.any(axis=2), same.argmax(axis=2), -1)
    person, item, category = responses.answers()
    kept = place[item] >= 0
    person, item, given = person[kept], item[kept], category[kept]
    category = new[item, given]
    if (category < 0).any():
        bad = np.unique(item[category < 0])
        first = int(np.flatnonzero(category < 0)[0])
        value, own = mine[item[first], given[first]], theirs[place[item[first]]]
        raise ResponseValueError(
            f"{responses.source}: {len(bad):,} item{' has' if len(bad) == 1 else 's have'} answers in a category that "
            f"nobody used at calibration: {listed(responses.items[bad])} ({listed([responses.users[person[first]]])} "
            f"answered {listed([responses.items[item[first]]])} with {value:g}; it has "
            f"{', '.join(f'{code:g}' for code in own[np.isfinite(own)])}). Leave these answers out, or calibrate again."
        )
    return ordered_from_codes(
        person,
        place[item],
        category,
        known.counts,
        users=responses.users,
        items=known.labels,
        source=responses.source,
        frame_kind=responses.frame_kind,
        codes=theirs,
    ).using(responses.engine)  # type: ignore[return-value]


def in_categories_of(known: Coded, responses: OrderedResponses) -> OrderedResponses:
    """The responses with the categories that known items have there; other items keep their own."""
    mine, theirs = responses.category_codes(), known.codes
    place = positions(responses.items, known.labels)
    shared = np.flatnonzero(place >= 0)
    counts = responses.steps.counts.copy()
    counts[shared] = known.counts[place[shared]]
    codes = np.full((len(place), int(counts.max(initial=1)) + 1), np.nan)
    own = np.flatnonzero(place < 0)
    codes[own, : mine.shape[1]] = mine[own][:, : codes.shape[1]]
    codes[shared, : theirs.shape[1]] = theirs[place[shared]][:, : codes.shape[1]]
    wanted = Coded(responses.items, counts, codes)
    return _matched(responses, wanted, np.arange(len(place)))


@dataclass(frozen=True, eq=False)
class Coded:
    """Items, how many thresholds each has, and what stands for their categories in data."""

    labels: NDArray[Any]
    counts: Ints
    codes: Floats


@dataclass(frozen=True, eq=False)
class OrderedPeople:
    """Responses to items that have thresholds, and who has the same items and score: abilities are found once for them.

    Attributes
    ----------
    responses : OrderedResponses
        To the items with an estimate only.
    thresholds : float array
    """

    responses: OrderedResponses
    thresholds: Floats

    @classmethod
    def of(cls, calibration: OrderedCalibration, responses: OrderedResponses) -> OrderedPeople:
        """The aligned responses of a calibration."""
        known = calibration.known
        place = calibration.steps.of_items(np.flatnonzero(known))
        rest = responses if known.all() else responses.take_items(known)
        return cls(rest, calibration.thresholds[place])

    @property
    def steps(self) -> Steps:
        return self.responses.steps

    @cached_property
    def patterns(self) -> Patterns:
        return distinct_rows(self.responses)

    @property
    def extreme(self) -> NDArray[np.bool_]:
        """People with the lowest or the highest score that they could have."""
        rows = self.patterns.rows
        at_end = (rows.counts > 0) & ((rows.scores == 0) | (rows.scores == rows.most))
        return at_end[self.patterns.of_person]

    def levels(self) -> Floats:
        """The mean location of the items that each person answered; 0 without answers."""
        rows = self.patterns.rows
        total = rows.sums(self.steps.mean(self.thresholds)[rows.items])
        return (total / np.maximum(rows.counts, 1))[self.patterns.of_person]

    def abilities(self, method: str = "wle", population: tuple[float, float] | None = None) -> Abilities:
        """The ability of every person: Warm's estimate, maximum likelihood, or the posterior mean."""
        check_option("method", method, METHODS)
        patterns = self.patterns
        rows = patterns.rows
        prior: tuple[float, float] | None = None
        if method == "eap":
            prior = population or fit_population(rows, self.steps, self.thresholds, patterns.count.astype(float))
            ability, se = posterior(rows, self.steps, self.thresholds, *prior)
        else:
            ability, se = ordered_abilities(rows, self.steps, self.thresholds, warm=method == "wle")
        of = patterns.of_person
        return Abilities(
            ability[of], se[of], self.extreme, rows.counts[of], rows.scores[of], method, *(prior or (None, None))
        )
