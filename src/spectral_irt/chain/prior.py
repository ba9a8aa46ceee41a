"""What is added to the data so that every difficulty exists, when, and how much: a prior.

The prior of an item is centered on the other items that its people met: (W beta)_i is the mean of what these met
(`Neighbors`), and L beta = beta - W beta. In linked forms the direction in which forms shift against each other hardly
moves L beta, so such a prior leaves it to the data, where one around a single mean would flatten a vertical scale.

d = D^-1 L beta with D = diag(1 - W_ii) is how far an item lies from the *other* items that its people met, and the
prior is d ~ N(0, 1 / alpha). It fades where the answers know better (`share_of_prior`): item i counts s_i, from 1 to
0. The penalty's matrix is P = alpha L D^-1 S D^-1 L; its pull has the covariance alpha L D^-1 S^2 D^-1 L where
deviations are drawn from the prior.

Thresholds are beta_ik = delta_i + t_ik, a location, with the prior above, and offsets that add to zero. Offsets differ
from the mean offsets of the items with as many categories, and of one more with equal thresholds, by a normal deviation
of a precision of its own: with Q = (I - 1/K) (I - rho M), M the mean over those items and rho = n / (n + 1), the
penalty is alpha / 2 sum_ik f_ik (Q beta)_ik^2.

Where the chain stands alone its prior is a virtual item: every item also meets one of average difficulty, at a rate
that pulls its log pi towards the average as a normal prior of precision alpha does. The paper's way: nu on every pair
that met.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.chain.operator import COUNTED, Neighbors, as_columns, weighting_named
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.design import Design, Mask
from spectral_irt.errors import OptionError, check_option
from spectral_irt.model import LOGISTIC_VARIANCE
from spectral_irt.numerics import safe_divide
from spectral_irt.text import count, one_or_many, share

# Below this information an item's standard error exceeds 0.2 logits, and what the other items tell about the spread of
# difficulties is worth having. A judgment, not a theorem.
ENOUGH_INFORMATION = 25.0
AMPLE_INFORMATION = 2 * ENOUGH_INFORMATION  # from here on the prior never counts; see `share_of_prior`
LITTLE_INFORMATION = 3.0  # up to here it counts in full, where the data are not thin as a whole

FEW_ANSWERS = "{}s with few answers"  # why there is a prior

NU_RULES = ("differed", "together")
LEAST_STRENGTH = 1e-6  # of alpha and nu, other than 0: arithmetic cannot weigh less, or more, against data
MOST_STRENGTH = 1e9

QUADRATURE_POINTS = 1_000  # of a skewed posterior, which go ...
SPREADS = 8.0  # ... as many standard deviations of the prior from the mode ...
FALLEN = 40.0  # ... and no farther than where the likelihood has fallen by exp(-40)
RARELY_USED = 3  # persons in a category: with more, what is known of its log odds is about normal
MANY_EXPECTED = 30.0  # persons in a category, as where its item is anchored: the same
NOTHING = 1e-9  # of an information or a precision: up to so little is rounding
BAYES_STEPS = 10  # of empirical Bayes: the precision is wanted to a few per cent
_NODES = np.linspace(-8, 8, 41)  # in standard deviations of the normal approximation
IMAGINARY_ITEMS = 2.0  # of spread 1, that the empirical Bayes step starts from

# The prior is for items of information 25 or less, about a hundred answers where the item is on target: these tell at
# most that an item lies log(100) logits from its people.
REACH = float(np.log(4 * ENOUGH_INFORMATION))


@dataclass(frozen=True)
class TermPrior:
    """The prior on one term of a linear design: on `acts_on` of its `of` parameters, around their mean, with the
    standard deviation `sd` in logits. `noun` says what they are, such as "rater severities"."""

    noun: str
    sd: float
    acts_on: int
    of: int

    def __str__(self) -> str:
        return f"sd {self.sd:.2f} logits on {self.acts_on:,} of {self.of:,} {self.noun}"


@dataclass(frozen=True)
class Regularization:
    """What was added to the data, and why.

    `kind` is "none"; "neighbors" (each item is like the items of its own people, precision `alpha`, chosen by empirical
    Bayes when `estimated`); "virtual item" (the chain alone: every item meets one of average difficulty); or "pairs"
    (the paper's `nu` with its `rule`). It is `fixed` where alpha, or that there is none, was asked for. The neighbors'
    prior has the standard deviation `sd` in logits and acts on `items` of so many (`of`), of which `alone` have no
    finite difficulty without it; it moves the item `moved` most, by about `shift` logits. Of items with several
    thresholds it acts on thresholds, with precision `offsets` and standard deviation `offset_sd`; `alpha` and `sd` are
    those of the locations, of which `located` have a prior. `unlinked` of those it acts on are of items that nothing
    links with the others.
    """

    kind: str
    reason: str
    alpha: float = 0.0
    estimated: bool = False
    nu: float = 0.0
    rule: str = ""
    mean: float = 0.0
    sd: float = 0.0
    items: int = 0
    of: int = 0
    alone: int = 0
    unlinked: int = 0
    shift: float = 0.0
    moved: str = ""
    offsets: float = 0.0
    offset_sd: float = 0.0
    located: int = 0
    fixed: bool = False
    terms: tuple[TermPrior, ...] = ()

    def __str__(self) -> str:
        """What was added, in a sentence."""
        if self.kind == "none":
            return f"Prior: none ({self.reason})."
        if self.kind == "pairs":
            pairs = "differed" if self.rule == "differed" else "were seen together"
            return f"Regularization: nu = {self.nu:g} on pairs that {pairs}."
        origin = "by empirical Bayes" if self.estimated else "as asked"
        if self.kind == "terms":
            return f"Prior: normal, {origin}, {'; '.join(map(str, self.terms))} ({self.reason})."
        if self.kind == "virtual item":
            sd = 1 / np.sqrt(self.alpha)
            return f"Prior: virtual item of average difficulty, a prior with sd {sd:.3g} {origin} ({self.reason})."
        prior = "A prior"
        few = ""
        if self.estimated:
            prior = "A weak prior"
            few = self._why_in_words
        return f"{prior} ({self._sd_in_words}) acts on {self._acted_on_in_words}{few}{self._effect_in_words}."

    @property
    def _why_in_words(self) -> str:
        """Why it acts on what it acts on."""
        if not self.unlinked:
            return " with few responses"
        if self.unlinked == self.items:
            return " that nothing links with the others"
        return " with few responses, or that nothing links with the others"

    @property
    def _sd_in_words(self) -> str:
        """The standard deviation of the neighbors' prior: of locations, or of offsets and locations."""
        if not self.offsets:
            return f"sd {self.sd:.2f} logits"
        words = f"sd of offsets {self.offset_sd:.2f} logits"
        if self.located:
            words += f", of the locations of {count(self.located, 'item')} {self.sd:.2f}"
        return words

    @property
    def _acted_on_in_words(self) -> str:
        noun = "threshold" if self.offsets else "item"
        return share(self.items, self.of, noun)

    @property
    def _effect_in_words(self) -> str:
        """What the neighbors' prior changed: which estimates exist only with it, and which it moved most."""
        movement = f"it moves {self.moved} most, by about {self.shift:.2f} logits"
        if not self.alone:
            return f"; {movement}" if self.moved else ""
        have = one_or_many(self.alone, "has", "have")
        words = f", of which {self.alone:,} {have} no finite estimate without it"
        if self.moved:
            words += f"; of the others {movement}"
        return words


def plan_prior(
    design: Design, regularization: str | float, noun: str, kind: str = "neighbors", enough: float = AMPLE_INFORMATION
) -> Regularization:
    """Whether there may be a prior of this kind, and why: not where all are connected and have enough information. A
    `noun` is what has a number each."""
    if not isinstance(regularization, str):
        if regularization > 0:
            return Regularization(kind, "as asked", alpha=float(regularization), fixed=True)
        return Regularization("none", "as asked", fixed=True)
    if not design.connected:
        return Regularization(kind, f"the data alone do not tie all {noun}s together", 1.0, True)
    information = design.information[design.answered]
    if information.min() < enough:
        return Regularization(kind, FEW_ANSWERS.format(noun), 1.0, True)
    return enough_is_known(information, noun)


def enough_is_known(information: Floats, noun: str = "item", several_parts: bool = False) -> Regularization:
    """No prior, for the answers tell enough: of all together, or of each of several parts that nothing links."""
    linked = "is linked within its group" if several_parts else "is linked"
    reason = f"every {noun} {linked} and has enough responses; smallest information {information.min():.0f}"
    return Regularization("none", reason)


def prior_precision(beta: Floats, information: Floats, alpha: float, fade: Floats | float = 1.0) -> float:
    """One empirical-Bayes step for the precision of the difficulties (docs/explanation/newton.md).

    alpha = (sum_i s_i gamma_i + 2) / (sum_i s_i beta_i^2 + 2) with gamma_i = information_i / (information_i + alpha),
    the share of each estimate that the data determine (MacKay 1992). The twos are two imaginary items of spread 1: a
    handful of items that happen to look alike must not pass for proof that all items are alike. `fade` is s_i, how
    much the prior counts for each item: an item that it does not act on does not tell how far out those lie that it
    acts on.

    What is known of an item with few answers is not normal, so E(beta^2) has terms from the third and fourth derivative
    of the log-likelihood, with information that falls off as a normal density of variance 2.89 + 1: without them alpha
    would be a fifth too large with ten answers an item.
    """
    variance = 1 / (information + alpha)
    far = beta / (LOGISTIC_VARIANCE + 1)
    third = information * np.clip(far, -1, 1)
    fourth = information * np.maximum(1 / (LOGISTIC_VARIANCE + 1) - far**2, -1)
    beyond = beta * third * variance**2 + fourth * variance**3 / 2 + 1.25 * third**2 * variance**4
    share = np.sum(fade * (information * variance - alpha * beyond))
    return precision_step(share, np.sum(fade * beta**2), least_precision(beta, information))


def precision_step(share: float, squares: float, least: float) -> float:
    """(share + 2) / (sum of squares + 2), or the smallest precision that answers can speak for."""
    return float(max((max(share, 0.0) + IMAGINARY_ITEMS) / (squares + IMAGINARY_ITEMS), least))


def least_precision(beta: Floats, information: Floats) -> float:
    """The smallest precision that answers can speak for.

    Where hardly an item was answered both right and wrong, a wider prior moves the estimates farther out, which asks
    for a wider one. So 1 / alpha is at most the mean square of the difficulties that were measured (each counts
    I / (I + 1), and as no farther out than `REACH`) plus the square of the farthest that answers reach beyond them.
    """
    counts = information / (information + 1)
    near = np.minimum(beta**2, REACH**2)
    measured = (np.sum(counts * near) + IMAGINARY_ITEMS) / (counts.sum() + IMAGINARY_ITEMS)
    return float(1 / (measured + REACH**2))


class SkewedPosterior(NamedTuple):
    """Mean and mean square of the distance from the mode."""

    mean: Floats
    mean_square: Floats


def skewed_posterior(information: Floats, precision: Floats, rate: Floats) -> SkewedPosterior:
    """What is known of a contrast of thresholds that only a category nobody used would hold together: the normal of the
    prior on one side, cut off by the likelihood on the other. With y the distance from its mode, P the precision of the
    prior, D the information and k the rate at which the chance of the category falls, by quadrature,

        q(y) ~ exp(-P y^2 / 2 - (D / k) y - (D / k^2) exp(-k y)).
    """
    depth = information / rate**2
    lowest = -np.minimum(np.log(FALLEN / depth + 2) / rate, SPREADS / np.sqrt(precision))
    y = np.linspace(lowest, SPREADS / np.sqrt(precision), QUADRATURE_POINTS)
    log_q = -precision * y**2 / 2 - depth * (rate * y + np.exp(-rate * y))
    q = np.exp(log_q - log_q.max(axis=0))
    total = q.sum(axis=0)  # evenly spaced, and nothing at the ends
    return SkewedPosterior((q * y).sum(axis=0) / total, (q * y**2).sum(axis=0) / total)


def renewed_precision(d: Floats, information: Floats, share: Floats, alpha: float, fade: Floats) -> float:
    """One step of empirical Bayes from these deviations.

    alpha = (sum_i s_i g_i + 2) / (sum_i s_i d_i^2 + 2) with g_i = 1 - alpha (E d_i^2 - d_i^2), the share of each
    deviation that the answers determine (MacKay 1992), and `fade` s_i; the twos and a bound of 1 / alpha are those of
    `prior_precision`. Items with little information are those far from their people, the more so where people were
    given items near to them: the others, on which the prior does not act, would say that all items lie near.

    E d^2 under the prior and the answers, of which d is the most likely value, is integrated. An item's answers are
    taken for those of people of one ability: log-likelihood -r u - n log(1 - p + p exp(-u)) where the item is harder by
    u, with n by its information, and r = n p - alpha d, such that d is the most likely value.
    """
    least = least_precision(d, information)
    acts = fade > 0
    d = d[acts]
    information = information[acts]
    fade = fade[acts]
    p = np.clip(share[acts], 1e-3, 1 - 1e-3)
    n = information / (p * (1 - p))
    u = _NODES[:, None] / np.sqrt(information + alpha)
    weight = np.exp(-n * (p * u + np.log(1 - p + p * np.exp(-u))) - alpha / 2 * u * u)
    beyond = np.sum(weight * u * (2 * d + u), axis=0) / weight.sum(axis=0)  # E d^2 - d^2
    return precision_step(np.sum(fade * (1 - alpha * beyond)), np.sum(fade * d**2), least)


def share_of_prior(information: Floats, tied: Mask, alpha: float) -> Floats:
    """How much the prior counts for items with this information: in full up to a limit, not at all from twice that on.

    The limit is 3, where the error of a difficulty (0.6 logits) is of the order of the spread of difficulties. Where
    the typical item is not told from the others (its information is below alpha), items far out are mostly noise, and
    it is 25; from twice alpha on it is 3. It counts in full where the data alone do not tie an item to the others.
    """
    positive = information[information > 0]
    thinness = 0.0  # of the data as a whole: 1 where the typical item is not told from the others
    if alpha > 0 and len(positive):
        thinness = np.clip(2 - np.median(positive) / alpha, 0.0, 1.0)
    limit = LITTLE_INFORMATION + thinness * (ENOUGH_INFORMATION - LITTLE_INFORMATION)
    return np.where(tied, np.clip(2 - information / limit, 0.0, 1.0), 1.0)


def precision_of(values: Floats, information: Floats) -> float:
    """The precision of what was estimated without a prior by these values, by empirical Bayes."""
    alpha = 1.0
    deviation = values - values.mean()
    for _ in range(BAYES_STEPS):
        shrunken = deviation * information / (information + alpha)  # about what a prior would make of them
        alpha = prior_precision(shrunken, information, alpha)
    return alpha


def precision_of_some(beta: Floats, information: Floats, alpha: float, fade: Floats) -> float:
    """The precision of those that a prior acts on, where all values were estimated under one of precision alpha."""
    precision = alpha
    for _ in range(BAYES_STEPS):
        values = beta * (information + alpha) / (information + precision)  # about what they are under the other prior
        precision = prior_precision(values, information, precision, fade)
    return precision


def check_strength(name: str, value: float, other: str = "") -> None:
    """Refuse a strength of regularization that is no number, or beyond what arithmetic can weigh against data."""
    if value != 0 and not LEAST_STRENGTH <= value <= MOST_STRENGTH:  # false for NaN too
        limits = f"a number from {LEAST_STRENGTH:g} to {MOST_STRENGTH:g}"
        raise OptionError(f"`{name}` is {value:g}; it can be {other}0, or {limits}.")


def check_regularization(regularization: str | float, nu: float, rule: str, weighting: str) -> None:
    if rule not in NU_RULES:
        check_option("nu_rule", rule, NU_RULES)
    if not isinstance(regularization, str):
        check_strength("regularization", regularization, "'auto', ")
    elif regularization != "auto":
        check_option("regularization", regularization, ("auto",))
    if nu == 0:
        return
    check_strength("nu", nu)
    if weighting_named(weighting).moving:
        which = " or ".join(f"`weighting={name!r}`" for name in reversed(COUNTED))
        raise OptionError(f"`nu` adds to pair counts, so it goes with {which}.")
    if not isinstance(regularization, str) and regularization > 0:
        raise OptionError("give `nu` (pairs) or `regularization` (virtual item), not both.")


@dataclass(frozen=True, eq=False)
class LocationPrior:
    """Precision alpha of the deviations, and how much it counts for each item."""

    neighbors: Neighbors
    alpha: float
    fade: Floats

    def deviation(self, beta: Floats) -> Floats:
        """d: how far each item lies from the other items that its people met."""
        return self._per_other * self.neighbors.deviation(beta)

    def spread(self, v: Floats, power: int = 2) -> Floats:
        """The covariance of the pull, times v; or P v, with the first power of the fading."""
        weight = self.alpha * self.fade**power * self._per_other**2
        return self._near.deviation(as_columns(weight, v) * self._near.deviation(v))

    @property
    def _near(self) -> Neighbors:
        """All that deviations of items with a prior have to do with."""
        return self.neighbors.around(self.fade > 0)

    @property
    def _per_other(self) -> Floats:
        """1 / (1 - W_ii); 0 for items without neighbors."""
        others = 1 - self.neighbors.self_weight
        return safe_divide(1.0, others, where_above=1e-9)

    def diagonal(self, power: int = 1) -> Floats:
        """P_ii, about: alpha s_i, and what the deviations of others add: much, where many rare items met a popular one.

        That is sum_j G_ji^2 with G = sqrt(S) D^-1 L, by random signs: known to a quarter of itself, which is enough. Or
        that of the covariance of the pull, of items that others add to a little too large.
        """
        fade_of_item = self.fade * (self._per_other > 0)
        squares_of_column = self._near.mean_squares(np.sqrt(self.fade) * self._per_other)
        penalty = self.alpha * np.maximum(fade_of_item, squares_of_column)
        if power == 1:
            return penalty
        return np.maximum(self.alpha * self.fade * fade_of_item, penalty * self.fade)

    def draw(self, noise: np.random.Generator, columns: int) -> Floats:
        """Columns of random pulls."""
        normal = noise.standard_normal((len(self.fade), columns))
        return np.sqrt(self.alpha) * self._near.deviation((self.fade * self._per_other)[:, None] * normal)

    def dense(self) -> tuple[Floats, Floats]:
        """P and the covariance of its pull, m x m each."""
        acts = self.fade > 0
        fade = self.fade[acts]
        scaled = self.neighbors.dense()[:, acts] * self._per_other[acts]  # L D^-1
        return self.alpha * (scaled * fade) @ scaled.T, self.alpha * (scaled * fade**2) @ scaled.T


def fading_of_both(layout: Thresholds, information: Floats, tied: Mask, beta: Floats) -> tuple[Floats, Floats]:
    """How much the prior counts for each location, and for each threshold's offset, where thresholds lie about here.

    What the answers tell about a location is taken for the sum over its thresholds.
    """
    item_information = layout.mean(information) * layout.max_score
    item_tied = layout.mean(tied.astype(np.float64)) > 0
    location_precision = precision_of(layout.mean(beta), item_information)
    prior_on_offsets = Prior(layout, location=None, alpha=1.0, fade=np.ones(layout.n_entries), estimated=True)
    offset_precision = precision_of(prior_on_offsets.deviation(beta), information)
    locations = share_of_prior(item_information, item_tied, location_precision)
    return locations, share_of_prior(information, tied, offset_precision)


class RareCategories(NamedTuple):
    """Categories that at most `RARELY_USED` persons used: the item and the category of each."""

    item: Ints
    category: Ints

    @classmethod
    def of(cls, layout: Thresholds, n_below: Floats, n_above: Floats) -> RareCategories:
        """By the numbers of responses in the categories below and above each threshold."""
        is_last = layout.level == layout.max_score[layout.item]
        item = np.concatenate([layout.item, layout.item[is_last]])
        category = np.concatenate([layout.level - 1, layout.level[is_last]])
        rare = np.concatenate([n_below, n_above[is_last]]) <= RARELY_USED
        return cls(item[rare], category[rare])


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior of the locations, if any; the precision of the offsets, and how much it counts for each threshold."""

    layout: Thresholds
    location: LocationPrior | None
    alpha: float
    fade: Floats
    estimated: bool
    rare: RareCategories | None = None

    @property
    def precisions(self) -> Floats:
        """Of the locations and of the offsets, where there are any."""
        precisions = []
        if self.location:
            precisions.append(self.location.alpha)
        if not self.layout.binary:
            precisions.append(self.alpha)
        return np.array(precisions)

    @property
    def counts(self) -> Floats:
        """How much the prior counts for each threshold, by its offset or by its location."""
        if self.location is None:
            return self.fade
        if self.layout.binary:
            return self.location.fade
        return np.maximum(self.fade, self.location.fade[self.layout.item])

    @cached_property
    def average(self) -> sparse.csr_array:
        """Items x thresholds: the mean of an item's thresholds."""
        layout = self.layout
        indptr = np.append(layout.first, layout.n_entries)
        shape = (layout.n_items, layout.n_entries)
        return sparse.csr_array((1 / layout.max_score[layout.item], np.arange(layout.n_entries), indptr), shape=shape)

    @cached_property
    def _alike(self) -> tuple[sparse.csr_array, Ints]:
        """(Thresholds of the same level of items with as many) x thresholds: their mean, times rho; which each is."""
        layout = self.layout
        length_and_place = layout.max_score[layout.item] * (layout.widest + 1) + layout.level
        _, code, count = np.unique(length_and_place, return_inverse=True, return_counts=True)
        # Of n items alike, and one more whose offset is 0, the mean is the sum over n + 1.
        entries = (1 / (count[code] + 1.0), (code, np.arange(layout.n_entries)))
        return sparse.csr_array(entries, shape=(len(count), layout.n_entries)), code

    def deviation(self, v: Floats) -> Floats:
        """Q v, for one vector or for the columns of a matrix; Q is symmetric."""
        alike, code = self._alike
        offset = v - (self.average @ v)[self.layout.item]
        return offset - (alike @ offset)[code]

    def __matmul__(self, v: Floats) -> Floats:
        """The penalty's matrix times v."""
        return self.spread(v, 1)

    def spread(self, v: Floats, power: int = 2) -> Floats:
        """The covariance of the pull where deviations are drawn from the prior, times v; or the penalty's matrix."""
        if self.layout.binary and self.location:
            return self.location.spread(v, power)
        weight = self.alpha * self.fade**power
        product = self.deviation(as_columns(weight, v) * self.deviation(v))
        if self.location:
            product = product + self.average.T @ self.location.spread(self.average @ v, power)
        return product

    def within(self, power: int = 1) -> Floats:
        """Of the penalty's matrix, the part of each item, levels x levels; or of the covariance of the pull."""
        diagonal = np.zeros(self.layout.n_items)
        if self.location:
            diagonal = self.location.diagonal(power)
        return self._blocks(diagonal, self.fade**power)

    def _blocks(self, diagonal: Floats, fade: Floats) -> Floats:
        """Each item's block, from the diagonal of the locations' part and the fading of the offsets' part."""
        layout = self.layout
        if layout.binary:
            return diagonal[:, None, None]
        inside = layout.table(np.ones(layout.n_entries), 0.0)
        k = layout.max_score[:, None, None]
        pairs = inside[:, :, None] * inside[:, None, :]
        center = inside[:, :, None] * np.eye(layout.widest) - pairs / k
        scaled = center * layout.table(self.alpha * fade, 0.0)[:, None, :]
        return pairs * (diagonal[:, None, None] / k**2) + scaled @ center

    def dense(self) -> tuple[Floats, Floats]:
        """The penalty's matrix and the covariance of its pull."""
        if self.layout.binary and self.location:
            return self.location.dense()
        acts = self.fade > 0
        fade = self.fade[acts]
        q = self.deviation(np.eye(self.layout.n_entries)[:, acts])  # columns of a symmetric matrix
        penalty = self.alpha * (q * fade) @ q.T
        pull = self.alpha * (q * fade**2) @ q.T
        if self.location is None:
            return penalty, pull
        a = self.average
        location_penalty, location_pull = self.location.dense()
        penalty = penalty + a.T @ (a.T @ location_penalty.T).T
        pull = pull + a.T @ (a.T @ location_pull.T).T
        return penalty, pull

    def draw(self, noise: np.random.Generator, columns: int) -> Floats:
        """Columns of random pulls."""
        if self.layout.binary and self.location:
            return self.location.draw(noise, columns)
        normal = noise.standard_normal((self.layout.n_entries, columns))
        pull = np.sqrt(self.alpha) * self.deviation(self.fade[:, None] * normal)
        if self.location:
            pull = pull + self.average.T @ self.location.draw(noise, columns)
        return pull

    def with_new_precision(self, beta: Floats, item_blocks: Floats, share: Floats) -> Prior:
        """With the precisions that the deviations at these thresholds speak for (one step of empirical Bayes).

        `item_blocks` are the items' blocks of the information, `share` is the share of people who pass each threshold.
        """
        if self.layout.binary and self.location:
            deviation = self.location.deviation(beta)
            information = item_blocks[:, 0, 0]
            alpha = renewed_precision(deviation, information, share, self.location.alpha, self.location.fade)
            return replace(self, location=replace(self.location, alpha=alpha))
        return self._renewed_of_several(beta, item_blocks)

    def _renewed_of_several(self, beta: Floats, item_blocks: Floats) -> Prior:
        """The same where items have several thresholds: one precision for locations, one for offsets."""
        layout = self.layout
        location = self.location
        location_alpha = location.alpha if location else 0.0
        covariance = self._posterior_covariance(item_blocks, location_alpha)
        location_variance, offset_trace = self._posterior_variances(covariance)
        information = np.maximum(1 / np.maximum(location_variance, 1e-12) - location_alpha, 0.0)
        if location:
            d = location.deviation(self.average @ beta)
            determined = np.sum(location.fade * np.clip(1 - location_alpha * location_variance, 0.0, 1.0))
            squares = np.sum(location.fade * d**2)
            location = replace(location, alpha=precision_step(determined, squares, least_precision(d, information)))
        # Nobody is given items by how their thresholds lie around them: all thresholds tell how far offsets spread.
        offset_deviation = self.deviation(beta)
        degrees = (layout.max_score - 1).astype(float)
        determined = np.sum(np.clip(degrees - self.alpha * offset_trace, 0.0, degrees))
        least = least_precision(offset_deviation, information[layout.item])
        squares = np.sum(offset_deviation**2) + self._squares_beside_rare(offset_deviation, item_blocks, covariance)
        alpha = precision_step(determined, squares, least)
        return replace(self, location=location, alpha=alpha)

    def _squares_beside_rare(self, deviation: Floats, item_blocks: Floats, covariance: Floats) -> float:
        """By how much squared offsets beside rare categories are expected to exceed those of a normal posterior.

        With x = a'delta by how much the log odds of category c fall, and m the number expected in it, the responses say
        exp(-n x - m exp(-x)) where n used it: a `skewed_posterior`, whose mode is at zero whatever n is. The thresholds
        of the item follow x by b = C a / a'Ca, with C the normal covariance: E delta = b E x,
        E delta delta' = C + b b' (E x^2 - a'Ca).
        """
        if self.rare is None or not len(self.rare.item):
            return 0.0
        layout = self.layout
        item, category = self.rare
        places = np.arange(1, layout.widest + 1)
        highest = layout.max_score[item][:, None]
        below = (places == category[:, None]).astype(float)
        above = ((places == category[:, None] + 1) & (places <= highest)).astype(float)
        move = below - above  # moves the log odds of the category, and of no other
        expected = np.einsum("nu,nuv,nv->n", move, item_blocks[item], move)
        inside = (category > 0) & (category < highest[:, 0])
        log_odds = np.where(inside[:, None], move / 2, move)
        follow = np.einsum("nuv,nv->nu", covariance[item], log_odds)
        variance = np.einsum("nu,nu->n", log_odds, follow)
        precision = safe_divide(1.0, variance) - expected  # without the category
        skewed = (expected > NOTHING) & (expected < MANY_EXPECTED) & (precision > NOTHING)
        if not skewed.any():
            return 0.0
        x = skewed_posterior(expected[skewed], precision[skewed], np.ones(int(skewed.sum())))
        follow = follow[skewed] / variance[skewed][:, None]
        follow = np.where(places <= highest[skewed], follow - (follow.sum(axis=1) / highest[skewed, 0])[:, None], 0.0)
        offsets = layout.table(deviation, 0.0)[item[skewed]]
        beyond = 2 * x.mean * np.einsum("nu,nu->n", follow, offsets)
        beyond += np.einsum("nu,nu->n", follow, follow) * (x.mean_square - variance[skewed])
        return float(beyond.sum())

    def _posterior_covariance(self, item_blocks: Floats, location_alpha: float) -> Floats:
        """Of the thresholds of each item under data and prior, were the posterior normal."""
        layout = self.layout
        inside = layout.table(np.ones(layout.n_entries), 0.0)
        prior_blocks = self._blocks(np.full(layout.n_items, location_alpha), np.ones(layout.n_entries))
        padding = np.eye(layout.widest) * (1 - inside)[:, None, :]  # ones where an item has no more thresholds
        covariance = np.linalg.inv(item_blocks + prior_blocks + padding)
        return np.asarray(covariance * inside[:, :, None] * inside[:, None, :])

    def _posterior_variances(self, covariance: Floats) -> tuple[Floats, Floats]:
        """Of each item, the variance of its location, and the sum of the variances of its offsets."""
        layout = self.layout
        location_variance = covariance.sum(axis=(1, 2)) / layout.max_score**2
        offset_trace = np.einsum("ikk->i", covariance) - location_variance * layout.max_score
        return location_variance, offset_trace


def with_effect(
    plan: Regularization,
    prior: Prior,
    labels: NDArray[Any],
    acts: Mask,
    finite_without: Mask,
    shift: Floats,
    unlinked: Mask | None = None,
) -> Regularization:
    """The plan with what its prior did to the items of these labels.

    `acts` is what it acts on, `finite_without` what has a finite estimate without it, `shift` by how many logits it
    moved each threshold, NaN where that is not known, `unlinked` which thresholds are of items without a link.
    """
    layout = prior.layout
    location = prior.location
    comparable = np.flatnonzero(acts & finite_without & np.isfinite(shift))
    n_acted_on = int(acts.sum())
    n_unlinked = 0 if unlinked is None else int((acts & unlinked).sum())
    n_alone = n_acted_on - len(comparable) - n_unlinked
    plan = replace(plan, items=n_acted_on, of=len(acts), alone=n_alone, unlinked=n_unlinked, alpha=0.0, sd=0.0)
    if location:
        plan = replace(plan, alpha=location.alpha, sd=precision_to_sd(location.alpha))
    if prior.alpha:
        located = 0
        if location:
            located = len(np.unique(layout.item[acts & (location.fade[layout.item] > 0)]))
        plan = replace(plan, offsets=prior.alpha, offset_sd=precision_to_sd(prior.alpha), located=located)
    if len(comparable):
        most_moved = comparable[np.argmax(np.abs(shift[comparable]))]
        moved = _threshold_in_words(layout, labels, most_moved)
        plan = replace(plan, shift=float(np.abs(shift[most_moved])), moved=moved)
    return plan


def precision_to_sd(precision: float) -> float:
    """The standard deviation; 0 where there is no prior."""
    if precision == 0:
        return 0.0
    return float(precision**-0.5)


def shift_by_prior(step: Floats, share: Floats) -> Floats:
    """About how far the prior moved thresholds, in logits, from Newton's step without it and the share that passed.

    The step alone is too short for a threshold far out. So all its people are taken for of one ability: with the share
    q of the higher kind, and p where the prior holds it, the step is (p - q) / (p (1 - p)), which gives p, and the way
    is logit p - logit q, to 15%.
    """
    q = share
    s = np.where(np.abs(step) < 1e-6, 1e-6, step)
    p = (s - 1 + np.sqrt((1 - s) ** 2 + 4 * s * q)) / (2 * s)
    return np.abs(np.log(p / (1 - p)) - np.log(q / (1 - q)))


def shift_of_step(step: Floats, low: Floats, high: Floats) -> Floats:
    """About how far the prior moved each threshold, signed, from Newton's step without it and the responses of the
    lower and of the higher kind; NaN where one kind is missing."""
    shift = np.full(len(step), np.nan)
    both = (low > 0) & (high > 0)
    share = high[both] / (low + high)[both]
    shift[both] = -np.sign(step[both]) * shift_by_prior(step[both], share)
    return shift


def _threshold_in_words(layout: Thresholds, labels: NDArray[Any], threshold: int) -> str:
    item = layout.item[threshold]
    label = labels.item(item)
    name = f"item {label}"
    if isinstance(label, str):
        name = f"item {label!r}"
    if layout.max_score[item] > 1:
        return f"threshold {layout.level[threshold]} of {name}"
    return name
