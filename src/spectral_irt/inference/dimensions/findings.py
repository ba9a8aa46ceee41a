"""What is said of dependent items, of a second dimension, and of unequal slopes that explain either.

A size below which it hardly matters makes a note of a warning, however sure it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.data import Finding
from spectral_irt.data.block import Ints
from spectral_irt.errors import Severity
from spectral_irt.inference.results import EACH, first_few
from spectral_irt.text import count, listed, one_or_many, p_value

if TYPE_CHECKING:
    from spectral_irt.inference.dimensions.dimensionality import Dimensionality

MATERIAL_CONTRAST = 2.0  # items: the usual bar for a second dimension (Linacre)
MATERIAL_PAIR = 0.2  # Q3 of a pair above the mean (Christensen et al. 2017)
MATERIAL_SET = 0.3  # the same of an item with all that depend on it, added up
STEEP = 2.0  # times as steep as the flattest item
MOST_DETECTABLE = 0.4  # a residual correlation of two items that should not escape
NAMED_ON_A_SIDE = 5  # items on either side of a contrast
SLOPES_MEAN = (
    "Here that means: the score counts answers to flat and steep items alike, so measures are less precise than they "
    "could be, and the order of difficulty of such items differs between low and high scorers. Review the flattest, or "
    "keep the model where equal weights are wanted."
)


def dimension_findings(result: Dimensionality) -> Iterator[Finding]:
    if result.dependent:
        yield _dependent_items(result)
    if result.two_dimensions:
        yield _second_dimension(result)
    if result.by_slopes:
        yield _unequal_slopes(result)


def _dependent_items(result: Dimensionality) -> Finding:
    pairs = result.dependence.dependent_pairs
    groups = groups_of_pairs(len(result.items), pairs.first, pairs.second)
    what = count(len(pairs.q3), "pair of items", "pairs of items")
    if len(groups) == len(pairs.q3):
        names = zip(result.items[pairs.first].tolist(), result.items[pairs.second].tolist(), strict=True)
        named = [f"{listed(list(pair))} ({q3:.2f})" for pair, q3 in zip(names, pairs.q3, strict=True)]
    else:
        what += f", in {count(len(groups), 'group')}"
        named = [listed(result.items[group]) for group in groups]
    correlation = one_or_many(len(pairs.q3), "residual correlation", "residual correlations up to")
    kind = "Local dependence"
    severity: Severity = "warning"
    remedy = (
        "Unequal slopes do not explain it. Look for similar wording or content, a common text, or copying; score such "
        "items as one, or keep one of them: as they are, they make measures look more precise than they are."
    )
    as_two_scales = result.two_dimensions and not result.weak_contrast and len(groups) <= 2
    if as_two_scales and len(pairs.q3) > len(result.items):
        remedy = (
            "So many pairs are two scales rather than like wording (see the contrast below): judge pairs again in each "
            "scale by itself."
        )
    if result.weak_pairs:
        kind = "Weak local dependence"
        severity = "note"
        remedy = "So weak, it hardly changes measures or their errors."
    sentence = f"{kind} in {what} ({correlation} Q3 = {pairs.q3.max():.2f}): {first_few(named)}."
    items = np.unique(np.concatenate([pairs.first, pairs.second]))
    return Finding("dependent_items", severity, sentence, remedy, tuple(result.items[items].tolist()))


def _second_dimension(result: Dimensionality) -> Finding:
    order = np.argsort(-result.loadings, kind="stable")
    high = order[:NAMED_ON_A_SIDE]
    low = order[::-1][:NAMED_ON_A_SIDE]
    kind = "More than one dimension: a residual contrast"
    severity: Severity = "warning"
    remedy = (
        "If both sides differ in what they ask, make a scale of each; one measure for both is an average that hides "
        "who is strong in what."
    )
    if result.weak_contrast:
        kind = "A weak residual contrast"
        severity = "note"
        remedy = f"Below {MATERIAL_CONTRAST:g} items, cross-validated, it is not usually called a second dimension."
    sentence = (
        f"{kind} with an eigenvalue of {result.contrasts.eigenvalues[0]:.1f} items (cross-validated "
        f"{result.strength:.1f}), that unequal slopes do not explain ({p_value(result.contrast_p)}), with "
        f"{listed(result.items[high])} on one side and {listed(result.items[low])} on the other."
    )
    items = np.sort(np.concatenate([high, low]))
    return Finding("second_dimension", severity, sentence, remedy, tuple(result.items[items].tolist()))


def _unequal_slopes(result: Dimensionality) -> Finding:
    assert result.equal_slopes is not None
    assert result.slopes is not None
    p = result.equal_slopes.contrast_p
    n_pairs = result.equal_slopes.n_pairs
    explained = []
    if p < EACH and not result.contrast:
        explained.append(f"a contrast in the residuals ({p_value(p)}; with slopes {p_value(result.contrast_p)})")
    if n_pairs and not result.dependent:
        explained.append(f"residual correlations of {count(n_pairs, 'pair')} of items")
    flattest, steepest = result.slopes
    sentence = (
        f"Items differ in slope (from {flattest:.1f} to {steepest:.1f} times the mean slope), which explains "
        f"{' and '.join(explained)}: no second dimension is needed. A model with slopes (2PL, generalized partial "
        "credit) would fit better."
    )
    severity: Severity = "warning" if steepest >= STEEP * flattest else "note"
    return Finding("unequal_slopes", severity, sentence, SLOPES_MEAN)


def only_above(detectable: float) -> str:
    """How strong local dependence would have to be to be seen, where that is much."""
    if detectable > MOST_DETECTABLE:
        return f"; only residual correlations above {detectable:.1f} would be seen"
    return ""


def groups_of_pairs(n: int, first: Ints, second: Ints) -> list[Ints]:
    """Items tied to each other by pairs, as groups in the order of their strongest pair."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = coo_array((np.ones(len(first)), (first, second)), shape=(n, n))
    group = connected_components(pairs, directed=False)[1]
    return [np.flatnonzero(group == number) for number in dict.fromkeys(group[first].tolist())]
