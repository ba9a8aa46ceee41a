"""Forms: what total scores on a set of items say, and the sets that many people answered, found in the answers.

Forms are those of `data/booklets.py`, with the items that have a difficulty: named by a column about the people, or
found in the responses. On a form the total score is all that an ability depends on, so that people who answered all of
its items can share a table of scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_irt.ability import score_abilities
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints, Mask, Thresholds, rows_of
from spectral_irt.data.booklets import FEWEST, SHORTEST, Booklets, booklets_of
from spectral_irt.data.shared_sets import set_keys
from spectral_irt.errors import OptionError
from spectral_irt.model import above, category_probabilities, sigmoid
from spectral_irt.numerics import chosen_or_none, scramble
from spectral_irt.persons.abilities import Abilities, known_rows, thresholds_of
from spectral_irt.tables import Columns
from spectral_irt.text import count_are, listed

CELLS = 20_000_000  # scores x items of all tables together: a second or two
FEW = 0.5  # share of the people; with fewer on any form, a finding says so


@dataclass(frozen=True, eq=False)
class Form:
    """A complete set of items, by their thresholds (NaN without an estimate); scores run from 0 to `max_score`."""

    thresholds: Floats
    layout: Thresholds

    @classmethod
    def of(cls, thresholds: Floats, counts: Ints | None = None) -> Form:
        """Of items with so many thresholds each, by default one."""
        return cls(thresholds, Thresholds.ones(len(thresholds)) if counts is None else Thresholds(counts))

    def take(self, items: Ints) -> Form:
        """The form of these items alone."""
        return Form(self.thresholds[self.layout.of_items(items)], Thresholds(self.layout.max_score[items]))

    @property
    def known_items(self) -> Ints:
        """Positions of the items with an estimate."""
        return np.flatnonzero(np.isfinite(self.layout.mean(self.thresholds)))

    @property
    def max_score(self) -> int:
        return self.layout.n_entries

    def ends(self) -> tuple[float, float]:
        """Warm's abilities of the lowest and the highest score on all items with an estimate."""
        form = self.take(self.known_items)
        low, high = score_abilities(form.thresholds, form.layout, scores=np.array([0, form.max_score]))[0].tolist()
        return low, high

    def abilities(self, method: str = "wle", prior: tuple[float, float] | None = None) -> tuple[Floats, Floats]:
        """Ability and standard error of every total score, as `persons.abilities.abilities` gives them to people.

        >>> Form.of(np.array([-1.0, 0.0, 1.0])).abilities()[0].round(2).tolist()
        [-2.29, -0.64, 0.64, 2.29]
        """
        return score_abilities(self.thresholds, self.layout, warm=method == "wle", prior=prior)

    def chances(self, theta: Floats) -> Floats:
        """P(total score | ability), abilities x scores: gamma_s exp(s theta), over its sum.

        >>> Form.of(np.zeros(2)).chances(np.zeros(1)).round(6).tolist()
        [[0.25, 0.5, 0.25]]
        """
        passed = self.layout.cumulated(self.thresholds)
        log_gamma = np.zeros(1)
        for row, max_score in zip(passed, self.layout.max_score.tolist(), strict=True):
            n = len(log_gamma)
            longer = np.append(log_gamma, np.full(max_score, -np.inf))
            for k in range(1, max_score + 1):  # of the items so far; all terms are positive
                longer[k : k + n] = np.logaddexp(longer[k : k + n], log_gamma - row[k])
            log_gamma = longer
        category = np.arange(passed.shape[1])
        log_normalizer = np.array([np.logaddexp.reduce(at * category - passed, axis=1).sum() for at in theta])
        return np.exp(log_gamma + theta[:, None] * np.arange(len(log_gamma)) - log_normalizer[:, None])

    def passed(self, theta: Floats) -> tuple[Floats, Floats]:
        """P(X >= k) of every threshold at these abilities, and its derivative: abilities x thresholds."""
        layout = self.layout
        if layout.binary:
            p = sigmoid(theta[:, None] - self.thresholds)
            return p, p * (1 - p)
        cumulated = layout.cumulated(self.thresholds)
        p = category_probabilities(theta[:, None], cumulated)
        k = np.arange(p.shape[2], dtype=float)
        tails = above(p)
        weighted = above(p * k)
        place = (slice(None), layout.item, layout.level - 1)
        return tails[place], weighted[place] - tails[place] * (p @ k)[:, layout.item]


@dataclass(frozen=True, eq=False)
class Forms:
    """The forms of some responses, by name."""

    items: tuple[Ints, ...]  # positions of the items of each form, of those with a difficulty
    form: Ints  # of each person who answered all of them, -1 for the others
    n_people: int  # with answers
    n_on_forms: int  # who answered all items of their form
    n_sets: int  # different sets of items that they answered
    n_long: int = 0  # forms with too many items for a table
    names: tuple[str, ...] = ()  # as a column has them, or `form 1`, `form 2`, ...
    named: bool = False  # by a column

    def position(self, name: str) -> int:
        """Which form is called so."""
        if name not in self.names:
            had = listed(self.names) if self.items else "no forms"
            raise OptionError(f"there is no {name!r}; these responses have {had}.")
        return self.names.index(name)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Why there is no table of scores, or not for many."""
        if not self.n_people or self.n_on_forms >= FEW * self.n_people:
            return ()
        if self.n_long:
            what = f"{count_are(self.n_long, 'shared set')} too long for a table."
        else:
            what = f"{self.n_people:,} people answered {self.n_sets:,} different sets of items, and "
            what += f"no set of {SHORTEST} items or more is shared by {FEWEST} people."
        code = "no_forms"
        sentence = f"There is no table from raw score to person measure: {what}"
        if self.items:
            code = "few_on_forms"
            who = f"the {self.n_on_forms:,} of {self.n_people:,} people who answered all items"
            if len(self.items) == 1:
                sentence = f"The table from raw score to person measure is for {who} of it; "
                why = "the others skipped some."
            else:
                forms = f"{len(self.items):,} forms"
                sentence = f"The tables from raw score to person measure are for {who} of one of {forms}; "
                why = "the others skipped some, or are on no form."
            sentence += what if self.n_long else why
        return (Finding(code, "note", sentence, "`study.persons()` has everybody's measure."),)


def find_forms(responses: Responses, difficulty: Floats, booklets: Booklets | None = None) -> Forms:
    """The forms that these people were given; answers to items without a difficulty do not count.

    As far as all tables together have no more than 20 million scores x items. A form that was found in the responses
    has five items and ten people who answered all of them, unless everybody answered the same.

    >>> answers = Responses.from_wide([[1, 0, 1, 1, 0, None]] * 10 + [[None, 1, 0, 1, 1, 0]])
    >>> forms = find_forms(answers, np.zeros(6))
    >>> [items.tolist() for items in forms.items], forms.form.tolist()
    ([[0, 1, 2, 3, 4]], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1])
    """
    booklets = booklets_of(responses) if booklets is None else booklets
    beta = thresholds_of(responses, difficulty)
    layout = responses.thresholds
    has_location = np.isfinite(layout.mean(beta))
    table = scramble(np.arange(responses.n_items, dtype=np.int32), 1)
    keys, lengths = responses.entries.gather(_keys_of_known, beta, layout, table)
    n_sets = len(np.unique(keys[lengths > 0]))
    members = booklets.members(responses.n_items) & has_location[:, None]
    complete = _complete(responses, members, booklets.form, lengths)
    people = np.bincount(complete[complete >= 0], minlength=len(booklets.items))
    n_items = members.sum(axis=0)
    if booklets.column is None:
        usable = ((people >= FEWEST) & (n_items >= SHORTEST)) | ((n_sets == 1) & (people > 0))
        usable &= _first_of_each(members)  # two may differ by items without a difficulty alone
        complete = _complete(responses, members * usable, _first_of_equal_forms(members, booklets.form), lengths)
    else:
        usable = n_items > 0
    affordable = np.cumsum(np.where(usable, (n_items + 1.0) * n_items, 0.0)) <= CELLS
    chosen = np.flatnonzero(usable & affordable)
    code = np.full(len(usable) + 1, -1, dtype=np.int64)
    code[chosen] = np.arange(len(chosen))
    form = code[complete]
    if booklets.column is None:
        names = tuple(f"form {k + 1}" for k in range(len(chosen)))
    else:
        names = tuple(booklets.names[k] for k in chosen)
    return Forms(
        items=tuple(np.flatnonzero(members[:, k]) for k in chosen),
        form=form,
        n_people=int(np.sum(lengths > 0)),
        n_on_forms=int(np.count_nonzero(form >= 0)),
        n_sets=n_sets,
        n_long=int(np.sum(usable & ~affordable)),
        names=names,
        named=booklets.column is not None,
    )


def _first_of_each(members: Mask) -> Mask:
    """Forms with a set of items that no form before them has."""
    _, first = np.unique(members, axis=1, return_index=True)
    mask = np.zeros(members.shape[1], dtype=bool)
    mask[first] = True
    return mask


def _first_of_equal_forms(members: Mask, form: Ints) -> Ints:
    """The form of each person, of equal ones the first."""
    if not members.shape[1]:
        return form
    _, first, which = np.unique(members, axis=1, return_index=True, return_inverse=True)
    return np.append(first[which.ravel()], -1)[form]


def _complete(responses: Responses, members: Mask, form: Ints, lengths: Ints) -> Ints:
    """The form of each person who answered all of its items and no other, -1 for the others."""
    if not members.shape[1]:
        return np.full(responses.n_persons, -1, dtype=np.int64)
    n_items = np.append(members.sum(axis=0), -1)
    full = (lengths > 0) & (lengths == n_items[form])
    if full.any():
        within = responses.entries.gather(_within, responses.thresholds, members, persons=(form,))
        full &= within == lengths
    return np.where(full, form, -1)


def _within(block: Block, form: Ints, layout: Thresholds, members: Mask) -> Ints:
    """How many items of their form people answered."""
    rows = rows_of(block, layout)
    of_response = np.repeat(form, rows.counts)
    return rows.sums(members[rows.items, of_response].astype(np.float64)).astype(np.int64)


def _keys_of_known(
    block: Block, beta: Floats, layout: Thresholds, table: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], Ints]:
    return set_keys(known_rows(block, beta, layout), table)


def form_columns(forms: Forms, labels: NDArray[np.object_], difficulty: Floats) -> Columns:
    """Which items each form has: `form, item, difficulty`."""
    lengths = [len(items) for items in forms.items]
    items = np.concatenate([*forms.items, np.empty(0, dtype=np.int64)])
    return {
        "form": np.repeat(np.array(forms.names, dtype=object), lengths),
        "item": labels[items],
        "difficulty": difficulty[items],
    }


def score_columns(test: Form, forms: Forms, found: Abilities, weights: Floats | None = None) -> Columns:
    """`form, n_items, score, ability, se, n, percentile`: a row for each score on each form of a test.

    The mid-percentile of a score is 100 times the share of the people on the form with a lower score, and half of the
    share with the same; `n` counts people, and shares go by their weights.
    """
    # also where there is no form
    tables = [np.zeros((2, 0))]
    n = [np.zeros(0, dtype=np.int64)]
    weighted = [np.zeros(0)]
    for k, items in enumerate(forms.items):
        tables.append(np.stack(test.take(items).abilities(found.method, found.prior)))
        members = forms.form == k
        size = tables[-1].shape[1]
        n.append(np.bincount(found.score[members], minlength=size))
        counts = chosen_or_none(weights, members)
        weighted.append(np.bincount(found.score[members], weights=counts, minlength=size).astype(np.float64))
    sizes, (ability, se) = list(map(len, n)), np.concatenate(tables, axis=1)
    return {
        "form": np.repeat(np.array(["", *forms.names], dtype=object), sizes),
        "n_items": np.repeat([0, *map(len, forms.items)], sizes),
        "score": np.concatenate(list(map(np.arange, sizes))),
        "ability": ability,
        "se": se,
        "n": np.concatenate(n),
        "percentile": np.concatenate(list(map(percentiles, weighted))),
    }


def percentiles(n: Ints | Floats) -> Floats:
    """Mid-percentiles of scores that so many people have, by weight."""
    return 100 * (np.cumsum(n) - n / 2) / n.sum() if n.any() else np.full(len(n), np.nan)
