"""What is added to the data so that every difficulty exists, and when.

The virtual item: every item also meets an item of average difficulty, at a rate that pulls its log pi towards the
average as a normal prior of precision alpha does. The paper's way: nu on every pair that met.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.chain.operator import COUNTED, weighting_named
from spectral_irt.data import Responses
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, rows_of
from spectral_irt.data.design import Design, Mask, describe_split
from spectral_irt.errors import LARGEST_COMPONENT, DesignError, OptionError, unknown_option
from spectral_irt.model import LOGISTIC_VARIANCE
from spectral_irt.text import share

# Below this information an item's standard error exceeds 0.2 logits, and what the other items tell about the spread of
# difficulties is worth having. A judgment, not a theorem.
ENOUGH_INFORMATION = 25.0
AMPLE_INFORMATION = 2 * ENOUGH_INFORMATION  # from here on the prior never counts; see `fading`
LITTLE_INFORMATION = 3.0  # up to here it counts in full, where the data are not thin as a whole

FEW_ANSWERS = "{}s with few answers"  # why there is a prior

NuRule = Literal["differed", "together"]
NU_RULES = get_args(NuRule)
LEAST, MOST = 1e-6, 1e9  # of alpha and nu, other than 0

SETTLING = 10  # steps of empirical Bayes: it is wanted to a few per cent
_NODES = np.linspace(-8, 8, 41)  # in standard deviations of the normal approximation
IMAGINARY = 2.0  # items of spread 1 that the empirical Bayes step starts from

# The prior is for items of information 25 or less, about a hundred answers where the item is on target: these tell at
# most that an item lies log(100) logits from its people.
REACH = float(np.log(4 * ENOUGH_INFORMATION))


@dataclass(frozen=True)
class Regularization:
    """What was added to the data, and why.

    `kind` is "none"; "neighbors" (each item is like the items of its own people, precision `alpha`, chosen by empirical
    Bayes when `estimated`); "virtual item" (the chain alone: every item meets one of average difficulty); or "pairs"
    (the paper's `nu` with its `rule`). The neighbors' prior has the standard deviation `sd` in logits and acts on
    `items` of so many (`of`), of which `alone` have no finite difficulty without it; it moves the item `moved` most, by
    about `shift` logits. Of items with several thresholds it acts on thresholds, with precision `offsets` and standard
    deviation `offset_sd`; `alpha` and `sd` are those of the locations, of which `located` have a prior.
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
    shift: float = 0.0
    moved: str = ""
    offsets: float = 0.0
    offset_sd: float = 0.0
    located: int = 0

    def __str__(self) -> str:
        few = " with few answers" if self.estimated else ""
        if self.kind == "neighbors" and self.offsets:
            sd = f"sd of offsets {self.offset_sd:.2f} logits"
            if self.located:
                items = "item" if self.located == 1 else "items"
                sd += f", of the locations of {self.located:,} {items} {self.sd:.2f}"
            return f"a prior ({sd}) acts on {share(self.items, self.of, 'threshold')}{few}{self._moves()}"
        if self.kind == "neighbors":
            return f"a prior (sd {self.sd:.2f} logits) acts on {share(self.items, self.of, 'item')}{few}{self._moves()}"
        if self.kind == "virtual item":
            how = "by empirical Bayes" if self.estimated else "as asked"
            sd = 1 / np.sqrt(self.alpha)
            return f"virtual item of average difficulty, a prior with sd {sd:.3g} {how} ({self.reason})"
        if self.kind == "pairs":
            return f"nu = {self.nu:g} on pairs that {'differed' if self.rule == 'differed' else 'were seen together'}"
        return f"none ({self.reason})"

    @property
    def sentence(self) -> str:
        """What was added, with its name."""
        if self.kind == "neighbors":
            return f"A{str(self)[1:]}."  # a prior (sd ...) acts on ...
        return f"{'Regularization' if self.kind == 'pairs' else 'Prior'}: {self}."

    def _moves(self) -> str:
        """How far it moves what it acts on."""
        most = f"it moves {self.moved} most, by about {self.shift:.2f} logits"
        if not self.alone:
            return f"; {most}"
        have = "has" if self.alone == 1 else "have"
        alone = f"{self.alone:,} {have} no finite estimate without it"
        return f", of which {alone}" + (f"; of the others {most}" if self.moved else "")


def acted(
    plan: Regularization, acts: Mask, own: Mask, step: Floats, counts: tuple[Floats, Floats], name: Callable[[int], str]
) -> Regularization:
    """The plan with what its prior did.

    `acts` is what it acts on, `own` what has a finite estimate without it, `step` where Newton's method leads without
    it, item by item; `counts` are answers of the lower and of the higher kind. The step is too short for an item far
    out. So all its people are taken for of one ability: with the share q of the higher kind, and p where the prior
    holds it, the step is (p - q) / (p (1 - p)), which gives p, and the way is logit p - logit q, to 15%.
    """
    low, high = counts
    there = np.flatnonzero(acts & own & (low > 0) & (high > 0))
    plan = replace(plan, sd=float(plan.alpha and plan.alpha**-0.5), items=int(acts.sum()), of=len(acts))
    plan = replace(plan, alone=plan.items - len(there))
    if not len(there):
        return plan
    q, s = high[there] / (low + high)[there], np.where(np.abs(step[there]) < 1e-6, 1e-6, step[there])
    p = (s - 1 + np.sqrt((1 - s) ** 2 + 4 * s * q)) / (2 * s)
    shift = np.abs(np.log(p / (1 - p)) - np.log(q / (1 - q)))
    most = int(np.argmax(shift))
    return replace(plan, shift=float(shift[most]), moved=name(int(there[most])))


def plan_regularization(design: Design, regularization: str | float, nu: float, rule: str, noun: str) -> Regularization:
    """What to add to the data where the chain stands alone, and why; a `noun` is what has a number each."""
    if nu > 0:
        return Regularization("pairs", "as asked", nu=float(nu), rule=rule)
    return plan_prior(design, regularization, noun, kind="virtual item", enough=ENOUGH_INFORMATION)


def plan_prior(
    design: Design,
    regularization: str | float,
    noun: str,
    *,
    kind: str = "neighbors",
    enough: float = AMPLE_INFORMATION,
) -> Regularization:
    """Whether there may be a prior of this kind, and why: not where all are connected and have enough information."""
    if not isinstance(regularization, str):
        if regularization > 0:
            return Regularization(kind, "as asked", alpha=float(regularization))
        return Regularization("none", "as asked")
    if not design.connected:
        return Regularization(kind, f"the data alone do not tie all {noun}s together", 1.0, True)
    information = design.information[design.answered]
    if information.min() < enough:
        return Regularization(kind, FEW_ANSWERS.format(noun), 1.0, True)
    return enough_is_known(information, noun)


def enough_is_known(information: Floats, noun: str = "item") -> Regularization:
    """No prior, for the answers tell enough."""
    reason = f"all {noun}s are connected and known well enough"
    return Regularization("none", f"{reason}; the least information is {information.min():.0f}")


def prior_precision(beta: Floats, information: Floats, alpha: float) -> float:
    """One empirical-Bayes step for the precision of the difficulties (docs/explanation/newton.md).

    alpha = (sum_i gamma_i + 2) / (sum_i beta_i^2 + 2) with gamma_i = information_i / (information_i + alpha), the share
    of each estimate that the data determine (MacKay 1992). The twos are two imaginary items of spread 1: a handful of
    items that happen to look alike must not pass for proof that all items are alike.

    What is known of an item with few answers is not normal, so E(beta^2) has terms from the third and fourth derivative
    of the log-likelihood, with information that falls off as a normal density of variance 2.89 + 1: without them alpha
    would be a fifth too large with ten answers an item.
    """
    variance = 1 / (information + alpha)
    far = beta / (LOGISTIC_VARIANCE + 1)
    third = information * np.clip(far, -1, 1)
    fourth = information * np.maximum(1 / (LOGISTIC_VARIANCE + 1) - far**2, -1)
    beyond = beta * third * variance**2 + fourth * variance**3 / 2 + 1.25 * third**2 * variance**4
    return precision_step(np.sum(information * variance - alpha * beyond), beta, information)


def precision_step(share: float, beta: Floats, information: Floats) -> float:
    """(share + 2) / (sum_i beta_i^2 + 2), or the smallest precision that answers can speak for.

    Where hardly an item was answered both right and wrong, a wider prior moves the estimates farther out, which asks
    for a wider one. So 1 / alpha is at most the mean square of the difficulties that were measured (each counts
    I / (I + 1), and as no farther out than `REACH`) plus the square of the farthest that answers reach beyond them.
    """
    counts = information / (information + 1)
    near = np.minimum(beta**2, REACH**2)
    measured = (np.sum(counts * near) + IMAGINARY) / (counts.sum() + IMAGINARY)
    step = (max(share, 0.0) + IMAGINARY) / (np.sum(beta**2) + IMAGINARY)
    return float(max(step, 1 / (measured + REACH**2)))


def renewed_precision(d: Floats, information: Floats, share: Floats, alpha: float) -> float:
    """One step of empirical Bayes from these deviations; see `LocationPrior.renewed`.

    E d^2 under the prior and the answers, of which d is the most likely value, is integrated. An item's answers are
    taken for those of people of one ability: log-likelihood -r u - n log(1 - p + p exp(-u)) where the item is harder by
    u, with n by its information, and r = n p - alpha d, such that d is the most likely value.
    """
    p = np.clip(share, 1e-3, 1 - 1e-3)
    n = information / (p * (1 - p))
    u = _NODES[:, None] / np.sqrt(information + alpha)
    weight = np.exp(-n * (p * u + np.log(1 - p + p * np.exp(-u))) - alpha / 2 * u * u)
    beyond = np.sum(weight * u * (2 * d + u), axis=0) / weight.sum(axis=0)  # E d^2 - d^2
    return precision_step(np.sum(1 - alpha * beyond), d, information)


def fading(information: Floats, tied: Mask, alpha: float) -> Floats:
    """How much the prior counts for items with this information: in full up to a limit, not at all from twice that on.

    The limit is 3, where the error of a difficulty (0.6 logits) is of the order of the spread of difficulties. Where
    the typical item is not told from the others (its information is below alpha), items far out are mostly noise, and
    it is 25; from twice alpha on it is 3. It counts in full where the data alone do not tie an item to the others.
    """
    known = information[information > 0]
    thin = np.clip(2 - np.median(known) / alpha, 0.0, 1.0) if alpha > 0 and len(known) else 0.0
    limit = LITTLE_INFORMATION + thin * (ENOUGH_INFORMATION - LITTLE_INFORMATION)
    return np.where(tied, np.clip(2 - information / limit, 0.0, 1.0), 1.0)


def precision_of(values: Floats, information: Floats) -> float:
    """The precision of what was estimated without a prior by these values, by empirical Bayes."""
    alpha, away = 1.0, values - values.mean()
    for _ in range(SETTLING):
        alpha = prior_precision(away * information / (information + alpha), information, alpha)
    return alpha


def check_strength(name: str, value: float, other: str = "") -> None:
    """Refuse a strength of regularization that is no number, or beyond what arithmetic can weigh against data."""
    if value != 0 and not LEAST <= value <= MOST:  # false for NaN too
        raise OptionError(f"`{name}` is {value:g}; it can be {other}0, or a number from {LEAST:g} to {MOST:g}.")


def check_regularization(regularization: str | float, nu: float, rule: str, weighting: str) -> None:
    counted = not weighting_named(weighting).moving
    options: dict[str, tuple[str, tuple[str, ...]]] = {"nu_rule": (rule, NU_RULES)}
    if isinstance(regularization, str):
        options["regularization"] = (regularization, ("auto",))
    for name, (value, allowed) in options.items():
        if value not in allowed:
            raise unknown_option(name, value, allowed)
    if not isinstance(regularization, str):
        check_strength("regularization", regularization, "'auto', ")
    check_strength("nu", nu)
    if nu > 0 and not counted:
        which = " or ".join(f"`weighting={name!r}`" for name in reversed(COUNTED))
        raise OptionError(f"`nu` adds to pair counts, so it goes with {which}.")
    if nu > 0 and not isinstance(regularization, str) and regularization > 0:
        raise OptionError("give `nu` (pairs) or `regularization` (virtual item), not both.")


def linked_items(responses: Responses, mixed: bool = False) -> tuple[Ints, Mask]:
    """Which group each item is in, linked by people who answered two, numbered from 0 by falling size; and which of
    them such people answered. With a `mixed` score only, where the others say nothing."""
    from scipy.sparse.csgraph import connected_components

    links = responses.entries.sum(_links, responses.thresholds, mixed)
    return by_size(connected_components(links, directed=False)[1]), np.diff(sparse.csr_array(links).indptr) > 0


def by_size(groups: Ints) -> Ints:
    """The groups numbered from 0 by falling size."""
    return np.argsort(np.argsort(-np.bincount(groups), kind="stable"))[groups]


def _links(block: Block, layout: Thresholds, mixed: bool) -> sparse.csr_array:
    """Items x items: an entry for each item that was answered and the first of its group, by people of this block."""
    from scipy.sparse.csgraph import connected_components

    rows, m = rows_of(block, layout), layout.n_items
    some = rows.take(np.flatnonzero(rows.informative if mixed else rows.counts > 1))
    other = np.repeat(some.items[some.indptr[:-1]], some.counts)
    graph = sparse.csr_array((np.ones(len(other), dtype=np.int32), (some.items, other)), shape=(m, m))
    labels = connected_components(graph, directed=False)[1]
    first, met = np.unique(labels, return_index=True)[1], np.unique(some.items)
    return sparse.csr_array((np.ones(len(met), dtype=np.int32), (met, first[labels[met]])), shape=(m, m))


def met_items(design: Design, rule: str) -> NDArray[np.bool_]:
    """The items that nu ties to others: some person answered it and another one, differently ("differed") or at all.

    They must be connected, directly or through others; if not, the error says how they fall apart.
    """
    responses = design.answers.entries
    groups, met = linked_items(responses, mixed=rule == "differed")
    if groups[met].any():
        raise DesignError(
            f"{responses.source}: {describe_split(responses.take_items(met), groups[met])} `nu` cannot tie them. "
            f"Use {LARGEST_COMPONENT}, or `regularization='auto'` without `nu`."
        )
    return met
