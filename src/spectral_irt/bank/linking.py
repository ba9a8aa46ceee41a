"""Two calibrations with items in common, brought to one scale; the items that have drifted; raw scores equated.

With difficulties x in b and y in a of the common items, the shift is the mean of y - x over the items that agree on it
(`inference/robust_center.py` finds them). Its variance takes the covariances of both calibrations,

    var(shift) = w' V_a w + w' V_b w,   w = 1 / k on the k items used,

because the errors of centered difficulties are correlated: of items that make up the whole of both calibrations the
mean is known exactly. An item of b on a's scale is b_i + shift, and both parts have b's errors in them:

    var(b_i + shift) = V_b,ii - 2 (V_b w)_i + w' V_b w + w' V_a w + excess^2 / k,

where the excess is the standard deviation by which the items that agree differ beyond their errors, if they do. Which
items agree is decided from the same data: what another choice among those near the limit would change is added to all
of these variances (`choice_variance`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank
from spectral_irt.bank.covariance import KINDS, LINKED, Side, errors_of_bank, threshold_labels
from spectral_irt.calibration import Calibration, Scale
from spectral_irt.data import Finding
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import label_array, positions
from spectral_irt.data.responses import Labels
from spectral_irt.errors import BankError, OptionError, Severity, check_option
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.inference.joint_errors import JointErrors
from spectral_irt.inference.robust_center import LIMIT, center_of_items, scatter
from spectral_irt.inference.scores.equating import Equating, OneWay, both_ways, equated
from spectral_irt.persons.test_form import Form
from spectral_irt.tables import Table, make_table
from spectral_irt.text import listed, p_value

Made = Bank | Calibration | RaschEstimator

FEWEST = {"mean": 2, "robust": 3}  # common items, by method
DRIFT = LIMIT  # robust z beyond which an item has drifted: 0.3% of the items that have not
MOST_DRIFT = 0.4  # share of the common items beyond which nobody can tell who has drifted from whom
LEVEL = 0.05  # of the test of heterogeneity
ALL = "all"  # the name of the form of all items
SAME = 1e-9  # logits: differences of anchored items from their anchors are those of rounding
NAMED = 5  # drifted items that the sentence names


@dataclass(frozen=True, eq=False)
class Link:
    """How b's difficulties become a's: difficulty + shift.

    Attributes
    ----------
    shift, shift_se : float
        The standard error is from the covariances of both calibrations: what other people's answers to the same items
        would have changed, the choice of items that have not drifted in it (`choice`, its variance).
    link_error : float
        Standard error of the shift if the common items are a sample of those that could have been used: with what they
        differ by beyond their errors (`excess`). It goes into the standard errors of the linked items.
    statistic, df, p : float, int, float
        Cochran's Q: do the items used differ by more than their errors explain?
    excess : float
        By how much (standard deviation, logits); 0 where p is 0.05 or more.
    basis : (str, str)
        What the errors of a and of b were taken from: "covariance", "information" (both whole matrices), "independent"
        (standard errors only) or "none".
    item, difficulty_a, difficulty_b, difference, se, z, robust_z, drift, used : arrays
        The common items: a's difficulty, b's on a's scale, b minus a, its standard error with that of both calibrations
        and of the shift, their ratio; the distance from the items that agree over its standard error, the excess in it,
        and whether that is beyond 3; whether the item counts for the shift. Of items with several thresholds each of
        these has a row, "item [2]".
    scale : Scale
        Of a.
    left_out : labels
        Items that both have, with another number of categories.
    item_of : labels
        The item that each row belongs to.
    errors_a : JointErrors
        Of the common thresholds in a.
    given : bool array
        Whether the item was anchored, in a or b, at the difficulty that it has in the other one: it cannot show drift.
    """

    method: str
    shift: float
    shift_se: float
    link_error: float
    statistic: float
    df: int
    p: float
    excess: float
    basis: tuple[str, str]
    item: Labels
    difficulty_a: Floats
    difficulty_b: Floats
    se: Floats
    robust_z: Floats
    used: NDArray[np.bool_]
    scale: Scale
    errors_a: JointErrors = field(repr=False)
    left_out: Labels
    choice: float
    item_of: Labels
    given: NDArray[np.bool_]

    @property
    def difference(self) -> Floats:
        return self.difficulty_b - self.difficulty_a

    @property
    def z(self) -> Floats:
        return np.divide(self.difference, self.se, out=np.full(len(self.se), np.nan), where=self.se > 0)

    @property
    def drift(self) -> NDArray[np.bool_]:
        return np.abs(self.robust_z) > DRIFT

    @property
    def weights(self) -> Floats:
        """Of the common thresholds in the shift."""
        return self.used / self.used.sum()

    def columns(self) -> dict[str, NDArray[Any]]:
        """The common items, in logits of a."""
        names = ("item", "difficulty_a", "difficulty_b", "difference", "se", "z", "robust_z", "drift", "used")
        return {name: getattr(self, name) for name in names}

    def table(self, frame_kind: str | None = None) -> Table:
        """The common items as a dataframe."""
        return make_table(self.columns(), frame_kind)

    @property
    def n_items(self) -> int:
        """How many items the common thresholds belong to."""
        return len(set(self.item_of.tolist()))

    @property
    def drifted(self) -> dict[Any, float]:
        """By how much what has drifted did, farthest first: items as a whole, or single thresholds of them."""
        moved = {}
        for label in dict.fromkeys(self.item_of[self.drift].tolist()):
            rows = self.item_of == label
            if self.drift[rows].all():
                moved[label] = float(self.difference[rows].mean())
            else:
                rows &= self.drift
                moved |= dict(zip(self.item[rows].tolist(), self.difference[rows].tolist(), strict=True))
        return dict(sorted(moved.items(), key=lambda each: -abs(each[1])))

    @property
    def common(self) -> str:
        """What was compared: how many items, or thresholds of how many items."""
        items = f"{self.n_items:,} common item{'s' if self.n_items != 1 else ''}"
        return items if len(self.item) == self.n_items else f"{len(self.item):,} thresholds of {items}"

    @property
    def agreement(self) -> str:
        """Whether the items used agree on the shift, in words."""
        what = "items" if len(self.item) == self.n_items else "thresholds"
        which = "the others" if self.drift.any() and self.method == "robust" else f"the common {what}"
        if not self.df:
            return f"whether {which} agree cannot be told without standard errors"
        test = f"Q = {self.statistic:.1f}, df = {self.df}, {p_value(self.p)}"
        if self.excess == 0:
            return f"{which} agree within their errors ({test})"
        return (
            f"{which} differ by more than their errors explain ({test}): by a standard deviation of {self.excess:.2f} "
            "logits beyond chance"
        )

    @property
    def by_design(self) -> str:
        """What to say where common items agree because one calibration was anchored to the other; else nothing."""
        n = len(set(self.item_of[self.given].tolist()))
        if not n:
            return ""
        which = self.common if n == self.n_items else f"{n:,} of {self.common}"
        return (
            f"{which} {'was' if n == 1 else 'were'} anchored at the difficulty in the other calibration and "
            f"agree{'s' if n == 1 else ''} by design: whether items have drifted is in the displacements of the fit "
            "with anchors (items.csv)"
        )

    @property
    def doubtful(self) -> str:
        """What to say where too many items have drifted for a link; else nothing."""
        if self.drift.mean() <= MOST_DRIFT:
            return ""
        return (
            f"more than {100 * MOST_DRIFT:.0f}% of {self.common} have drifted, and these data cannot tell which ones "
            "moved and which stayed"
        )

    @property
    def finding(self) -> Finding:
        """What the link is, in a sentence or two."""
        sentence = (
            f"Linked over {self.common} ({self.method}): shift {self.shift:z.3f} logits (se {self.shift_se:.3f})."
        )
        if len(self.left_out):
            sentence += f" Left out, with other categories in B than in A: {listed(self.left_out)}."
        drifted = self.drifted
        remedies: list[str] = []
        if drifted:
            verb = "has" if len(drifted) == 1 else "have"
            named = ", ".join(f"{listed([label])} {drifted[label]:+.2f}" for label in list(drifted)[:NAMED])
            more = f" and {len(drifted) - NAMED:,} more" if len(drifted) > NAMED else ""
            sentence += f" {len(drifted):,} of them {verb} drifted (+: harder in B): {named}{more}."
            if self.method != "robust":
                remedies.append("Use `method='robust'`, which leaves drifted items out of the shift.")
        if not self.given.all():
            sentence += f" {_sentence(self.agreement)}"
        if self.by_design:
            sentence += f" {_sentence(self.by_design)}"
        if self.excess:
            remedies.append("The link error has that in it; more common items make it smaller.")
        if self.doubtful:
            sentence += f" {_sentence(self.doubtful)}"
            remedies.append("Look for what happened to these items before using the link.")
        severity: Severity = "warning" if drifted or self.excess else "note"
        return Finding(LINKED, severity, sentence, " ".join(remedies), tuple(drifted))

    def apply(self, bank: Made) -> Bank:
        """The bank b on a's scale, the error of the link in its standard errors."""
        if not isinstance(bank, Bank):
            raise BankError("a link is applied to a bank; make one with Bank.from_fit(fit, responses).")
        people, made, kept = bank.population, bank.calibration, bank.evidence
        threshold_se, location_se = self._errors_of(bank)
        return replace(
            bank,
            calibration=made.replace(
                thresholds=made.thresholds + self.shift,
                threshold_se=threshold_se,
                location_se=None if made.layout.binary else location_se,
                scale=self.scale,
                findings=(*made.findings, self.finding),
            ),
            evidence=replace(kept, prior_mean=kept.prior_mean + self.shift),
            population=None if people is None else replace(people, mean=people.mean + self.shift),
        )

    def _errors_of(self, bank: Bank) -> tuple[Floats, Floats]:
        """Standard errors of b + shift, of thresholds and of locations; NaN where b has none.

        The bank's own standard errors stay; the errors of both calibrations say what the link adds to them.
        """
        made, errors, mean = bank.calibration, errors_of_bank(bank)[0], bank.calibration.layout.mean
        place = positions(self.item, threshold_labels(made))
        added, moved = np.zeros(len(errors.own)) + self.shift_se**2 - self.choice, np.zeros(len(errors.own))
        if (place >= 0).all():
            w = np.zeros(len(errors.own))
            w[place] = self.weights
            moved = errors.times(w)
            added[:] = w @ moved + self.errors_a.of(self.weights)
        added += self.link_error**2 - self.shift_se**2 + self.choice
        with np.errstate(invalid="ignore"):
            of_thresholds = made.threshold_se**2 + added - 2 * moved
            of_locations = made.se**2 + mean(added) - 2 * mean(moved)
            return np.sqrt(np.maximum(of_thresholds, 0)), np.sqrt(np.maximum(of_locations, 0))


def link(a: Made, b: Made, method: str = "robust") -> Link:
    """Bring calibration b to the scale of calibration a by the items they share.

    Parameters
    ----------
    a, b : Bank, Calibration or fitted estimator
        Of different people: the errors of the two count as independent.
    method : "robust" or "mean"
        "robust" (default): the mean of the differences of the items that agree, which up to 40% of drifted items do not
        move. "mean": of all common items.

    Notes
    -----
    Only items with the status "ok" or "anchored" on both sides count: others rest on a prior, or are on another scale.
    An item has drifted when its difference is more than 3 standard errors from the mean of the items that agree; of
    ordered answers, when the mean of its thresholds has, and a threshold when it has moved by itself.
    Where these differ beyond doubt by more than their errors explain (p < 0.001), that excess counts as error too, so
    that in large samples small differences everywhere are not drift of every item.

    Errors come from covariance matrices where there are any: of a fit, or from a bank's information matrix (both up to
    2,000 items). Otherwise they count as independent before centering, which is right where everybody answers the same
    items, and too small where forms are connected by few; `Link.basis` says which it was.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, simulate
    >>> data = simulate.rasch(1000, 10, seed=1).responses
    >>> odd, even = (SpectralRasch().fit(data.take_persons(range(k, 1000, 2))) for k in (1, 0))
    >>> bool(abs(link(odd, even).shift) < 1e-9)
    True

    References
    ----------
    Kolen & Brennan (2014), Test Equating, Scaling, and Linking, ch. 6. Huynh & Meyer (2010), Use of robust z in
    detecting unstable items in item response theory models, Practical Assessment, Research & Evaluation 15(2).
    """
    check_option("method", method, tuple(FEWEST))
    first, second, left_out = _alike(Side.of(a), Side.of(b))
    place = positions(second.labels, first.labels)
    shared = np.flatnonzero(place >= 0)
    common = label_array(dict.fromkeys(second.item[shared].tolist()))
    if len(shared) < FEWEST[method]:
        others = f"{listed(left_out)} have other categories in one than in the other. " if len(left_out) else ""
        raise BankError(
            f"the two calibrations share {len(common):,} items{': ' if len(common) else ''}{listed(common)}; "
            f"`method={method!r}` needs at least {FEWEST[method]}. The first has {listed(first.labels)}, the second "
            f"{listed(second.labels)}. {others}Check the labels."
        )
    x, y = second.threshold[shared], first.threshold[place[shared]]
    errors_x, errors_y = second.errors.take(shared), first.errors.take(place[shared])
    raw, errors = x - y, errors_x + errors_y
    given = second.anchored[shared] | first.anchored[place[shared]]
    if given.any():
        given &= np.abs(raw - np.median(raw[given])) < SAME
    found, choice = center_of_items(raw, errors, positions(second.item[shared], common), LEVEL)
    if method == "robust":
        used, excess = found.agrees, found.excess
        test = found.statistic, found.df, found.p
    else:
        every = scatter(raw, errors, LEVEL)
        used, excess, choice = np.ones(len(raw), dtype=bool), float(np.sqrt(every.beyond)), 0.0
        test = every.statistic, every.df, every.p
    shift, w = -float(raw[used].mean()), used / used.sum()
    shift_variance = max(errors_x.of(w) + errors_y.of(w), 0.0) + choice
    variance = errors_x.around(w) + errors_y.around(w) + choice  # of b minus a, on a's scale
    return Link(
        method=method,
        shift=shift,
        shift_se=float(np.sqrt(shift_variance)),
        link_error=float(np.sqrt(shift_variance + excess**2 * (w @ w))),
        statistic=test[0],
        df=test[1],
        p=test[2],
        excess=excess,
        basis=(first.kind, second.kind),
        item=second.labels[shared],
        difficulty_a=y,
        difficulty_b=x + shift,
        se=np.sqrt(np.where(variance > 1e-15, variance, 0.0)),
        robust_z=found.z,
        used=used,
        scale=first.scale,
        errors_a=errors_y,
        left_out=left_out,
        choice=choice,
        item_of=second.item[shared],
        given=given,
    )


def _alike(first: Side, second: Side) -> tuple[Side, Side, Labels]:
    """Both without items that have another number of categories in the other one, and which these are."""
    place = positions(second.item, first.item)
    differs = (place >= 0) & (first.size[place] != second.size)
    if not differs.any():
        return first, second, second.item[:0]
    names = label_array(dict.fromkeys(second.item[differs].tolist()))
    return first.take(positions(first.item, names) < 0), second.take(~differs), names


def told_errors(basis: tuple[str, str]) -> str:
    """What the errors of a link rest on, in words."""
    a, b = (KINDS[kind] for kind in basis)
    return f"the {a} of each" if a == b else f"A's {a} and B's {b}"


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:] + "."


def equate(
    a: Made,
    b: Made,
    method: str = "robust",
    *,
    form_a: str | None = None,
    form_b: str | None = None,
    items_a: Sequence[Any] | None = None,
    items_b: Sequence[Any] | None = None,
    linked: Link | None = None,
) -> Equating:
    """Raw scores on a form of a, and the scores on a form of b that stand for the same ability; and back.

    True-score equating on a's scale, to which b is brought by the items that both have (`link`). Of ordered answers
    raw scores are total scores.

    Parameters
    ----------
    a, b : Bank, Calibration or fitted estimator
        Of different people.
    method : "robust" or "mean"
        Of the link.
    form_a, form_b : str, optional
        The form of each bank by its name (`bank.forms`), or "all" for all items with the status "ok" or "anchored". By
        default the only form of a bank; a bank with several forms has no default, as nobody took all of its items.
    items_a, items_b : sequences of labels, optional
        Instead of a name: the items of each form.
    linked : Link, optional
        `link(a, b)`, where it has been computed.

    Notes
    -----
    Standard errors hold the errors of the difficulties on both sides and that of the link: what other people in the
    calibrations would have changed and, where the common items differ by more than their errors, other common items.
    How far a person's score is off from the person's true score is not in them.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> fit = SpectralRasch().fit(datasets.load_lsat())
    >>> equate(fit, fit).columns()["equated"].round(3).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    """
    found = link(a, b, method) if linked is None else linked
    sides = Side.of(a), Side.of(b)
    first = _asked_form(a, "a", form_a, items_a)
    second = _asked_form(b, "b", form_b, items_b)
    places = _form(sides[0], first.items, "items_a"), _form(sides[1], second.items, "items_b")
    one, other = (
        Form.of(side.threshold[form], side.size[form][side.level[form] == 1])
        for side, form in zip(sides, places, strict=True)
    )
    there, back = equated(one, other, -found.shift), equated(other, one, found.shift)
    to_b = _variance(there, (0, 1), sides, places, found, -there.by_ability)
    to_a = _variance(back, (1, 0), sides, places, found, back.by_ability)
    if "none" in found.basis:  # part of an error would be taken for all of it
        to_b, to_a = np.zeros(len(to_b)), np.zeros(len(to_a))
    return both_ways(
        (there, back), (to_b, to_a), (first.name, second.name), (there.ability, found.shift + back.ability)
    )


class AskedForm(NamedTuple):
    """A form to be equated: what it is called, and its items, None for all that can be equated."""

    name: str
    items: Sequence[Any] | None


def _asked_form(given: Made, side: str, name: str | None, items: Sequence[Any] | None) -> AskedForm:
    """The form of one side: by name, by its items, or the only one there is."""
    letter = side.upper()
    if items is not None:
        if name is not None:
            raise OptionError(
                f"`form_{side}=` and `items_{side}=` both say which items the form has; give one of them."
            )
        return AskedForm(letter, items)
    forms = given.forms if isinstance(given, Bank) else ()
    names = [form.name for form in forms]
    if name is None:
        if len(forms) > 1:
            raise OptionError(
                f"{letter} has {len(forms):,} forms ({listed(names)}), and nobody was given all of its items; say "
                f"which one to equate with `form_{side}=`, or `form_{side}='{ALL}'` for all items."
            )
        return AskedForm(letter, None)
    if name in names:
        return AskedForm(f"{letter}: {name}", forms[names.index(name)].items)
    if name == ALL:
        return AskedForm(letter if len(forms) < 2 else f"{letter}: {ALL} items", None)
    known = f"it has {listed(names)}, and {ALL!r}" if names else f"it keeps no names of forms; say {ALL!r}"
    raise OptionError(f"{letter} has no form {name!r}; {known}.")


def pairs_of_forms(a: Bank, b: Bank, asked: str | None = None) -> list[tuple[str | None, str | None]]:
    """Which form of a with which form of b: as asked, "FORM OF A,FORM OF B", or each with each.

    A name may hold a comma: the text is divided where both sides are forms.
    """
    sides = [[form.name for form in bank.forms] for bank in (a, b)]
    if asked is None:
        default: list[list[str | None]] = [[*names] if len(names) > 1 else [None] for names in sides]
        return [(one, other) for one in default[0] for other in default[1]]
    parts = asked.split(",")
    for k in range(1, len(parts)):
        first = ",".join(parts[:k]).strip()
        second = ",".join(parts[k:]).strip()
        if first in (*sides[0], ALL) and second in (*sides[1], ALL):
            return [(first, second)]
    known = [f"{letter} has {listed([*names, ALL])}" for letter, names in zip("AB", sides, strict=True)]
    raise OptionError(f"`forms` is {asked!r}; it is a form of A and a form of B, as in all,all. {'; '.join(known)}.")


def _form(side: Side, items: Sequence[Any] | None, name: str) -> Ints:
    """Positions of the thresholds of a form, item after item."""
    if items is None:
        return np.arange(len(side.labels))
    first = np.flatnonzero(side.level == 1)
    place = positions(items, side.item[first])
    unknown = [label for label, k in zip(items, place.tolist(), strict=True) if k < 0]
    if unknown:
        raise OptionError(
            f"{name} names {listed(unknown)}, without a difficulty from answers to them; "
            f"it can name {listed(side.item[first])}."
        )
    if len(np.unique(place)) < len(place):
        raise OptionError(f"{name} names the same item more than once; name each once.")
    counts = side.size[first[place]]
    return np.repeat(first[place] - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())


def _variance(
    way: OneWay,
    order: tuple[int, int],
    sides: tuple[Side, Side],
    places: tuple[Ints, Ints],
    found: Link,
    by_shift: Floats,
) -> Floats:
    """Variance of each equated score: from both calibrations, the link, and what the common items differ by."""
    total = by_shift**2 * (found.excess**2 * (found.weights @ found.weights))
    for side, own in zip(order, (way.by_first, way.by_second), strict=True):
        gradient = np.zeros((len(total), len(sides[side].labels)))
        gradient[:, places[side]] = own
        of_shift = by_shift[:, None] * (-found.weights if side else found.weights)
        gradient[:, positions(found.item, sides[side].labels)] += of_shift
        total += sides[side].errors.of_each(gradient)
    return total
