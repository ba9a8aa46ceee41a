"""Forms: what total scores on a set of items say, and the sets that many people answered, found in the answers.

A form is a set of five items or more (of those that have a difficulty) that at least ten people answered, and nothing
else; or the set that everybody answered. A booklet is a form, and so is the whole test, or a common pattern of what was
answered. On a form the total score is all that an ability depends on, so its people can share a table of scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from spectral_irt.ability import score_abilities
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.design import distinct_keys, items_of_people, set_keys
from spectral_irt.errors import OptionError
from spectral_irt.model import above, category_probabilities, sigmoid
from spectral_irt.numerics import scramble
from spectral_irt.persons.abilities import Abilities, checked, known_rows
from spectral_irt.tables import Columns
from spectral_irt.text import count_are, listed

FEWEST = 10  # people who make a set of items a form: fewer make no percentiles
SHORTEST = 5  # items: fewer are no test, and where people answer what they like many share them
MOST = 100  # forms, those with most people; beyond, nobody looks up a table
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
    def known(self) -> Ints:
        """Positions of the items with an estimate."""
        return np.flatnonzero(np.isfinite(self.layout.mean(self.thresholds)))

    @property
    def max_score(self) -> int:
        return self.layout.n_entries

    def ends(self) -> tuple[float, float]:
        """Warm's abilities of the lowest and the highest score on all items with an estimate."""
        form = self.take(self.known)
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
        for row, count in zip(passed, self.layout.max_score.tolist(), strict=True):
            n = len(log_gamma)
            longer = np.append(log_gamma, np.full(count, -np.inf))
            for k in range(1, count + 1):  # of the items so far; all terms are positive
                longer[k : k + n] = np.logaddexp(longer[k : k + n], log_gamma - row[k])
            log_gamma = longer
        category = np.arange(passed.shape[1])
        away = np.array([np.logaddexp.reduce(at * category - passed, axis=1).sum() for at in theta])
        return np.exp(log_gamma + theta[:, None] * np.arange(len(log_gamma)) - away[:, None])

    def passed(self, theta: Floats) -> tuple[Floats, Floats]:
        """P(X >= k) of every threshold at these abilities, and its derivative: abilities x thresholds."""
        layout = self.layout
        if layout.binary:
            p = sigmoid(theta[:, None] - self.thresholds)
            return p, p * (1 - p)
        cumulated = layout.cumulated(self.thresholds)
        p = category_probabilities(theta[:, None], cumulated)
        k = np.arange(p.shape[2], dtype=float)
        tails, weighted = above(p), above(p * k)
        place = (slice(None), layout.item, layout.level - 1)
        return tails[place], weighted[place] - tails[place] * (p @ k)[:, layout.item]


@dataclass(frozen=True, eq=False)
class Forms:
    """The forms of some responses, in the order of their items."""

    items: tuple[Ints, ...]  # positions of the items of each form
    form: Ints  # of each person, -1 for a person on none
    n_people: int  # with answers
    n_on_forms: int
    n_sets: int  # different sets of items that they answered
    n_long: int = 0  # forms with too many items for a table

    @property
    def names(self) -> list[str]:
        """What the forms are called: `form 1`, `form 2`, ..."""
        return list(map("form {}".format, range(1, len(self.items) + 1)))

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
            shared = f"only {count_are(len(self.items), 'set')}" if self.items else "no set is"
            what = f"{self.n_people:,} people answered {self.n_sets:,} different sets of items, and {shared} shared by "
            what += f"{FEWEST} or more."
        code, sentence = "no_forms", f"There is no table from raw score to ability: {what}"
        if self.items:
            code, few = "few_on_forms", f"{self.n_on_forms:,} of {self.n_people:,} people"
            sentence = f"The tables from raw score to ability are for {few}: {what}"
        return (Finding(code, "note", sentence, "persons.csv has everybody's ability."),)


def find_forms(responses: Responses, difficulty: Floats) -> Forms:
    """The forms that these people answered; answers to items without a difficulty do not count.

    Ten people and five items make a form, unless everybody answered the same; at most 100 forms, those with most
    people, as far as all tables together have no more than 20 million scores x items.

    >>> answers = Responses.from_wide([[1, 0, 1, 1, 0, None]] * 10 + [[None, 1, 0, 1, 1, 0]])
    >>> found = find_forms(answers, np.zeros(6))
    >>> [items.tolist() for items in found.items], found.form.tolist()
    ([[0, 1, 2, 3, 4]], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1])
    """
    beta, layout = checked(responses, difficulty), responses.thresholds
    table = scramble(np.arange(responses.n_items, dtype=np.int32), 1)
    keys, lengths = responses.entries.gather(_keys_of_known, beta, layout, table)
    first, sizes, which = distinct_keys(keys)
    long, answered = lengths[first], int(np.sum(lengths > 0))
    n_sets = int(np.sum(long > 0))
    shared = np.flatnonzero((long > 0) & (((sizes >= FEWEST) & (long >= SHORTEST)) | (n_sets == 1)))
    shared = shared[np.lexsort((first[shared], -sizes[shared]))]
    affordable = np.cumsum((long[shared] + 1.0) * long[shared]) <= CELLS
    kept, known = shared[affordable][:MOST], np.isfinite(layout.mean(beta))
    found = []
    for place, items in zip(kept, items_of_people(responses, first[kept]), strict=True):
        own = items[known[items]]
        found.append(((*own.tolist(), responses.n_items), place, own))
    found.sort(key=itemgetter(0))  # what begins the test comes first, and of those the longer
    code = np.full(len(first), -1, dtype=np.int64)
    for k, (_, place, _) in enumerate(found):
        code[place] = k
    form = code[which]
    on_forms = int(np.count_nonzero(form >= 0))
    return Forms(tuple(map(itemgetter(2), found)), form, answered, on_forms, n_sets, int(np.sum(~affordable)))


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
    tables, n = [np.zeros((2, 0))], [np.zeros(0, dtype=np.int64)]  # also where there is no form
    weighted = [np.zeros(0)]
    for k, items in enumerate(forms.items):
        tables.append(np.stack(test.take(items).abilities(found.method, found.prior)))
        members = forms.form == k
        size = tables[-1].shape[1]
        n.append(np.bincount(found.score[members], minlength=size))
        counts = None if weights is None else weights[members]
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
