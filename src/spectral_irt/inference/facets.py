"""Raters and other facets: fit of every level, averages, separation, agreement, interactions.

What is summed over the answers to an item is summed over the answers of a rater here: the items of the responses are
combinations of both, and a level is the sum of its combinations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.calibration import Calibration
from spectral_irt.conditional.information import Point
from spectral_irt.conditional.newton import DENSE_PARAMETERS, Likelihood
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, answered_items
from spectral_irt.data.design import Mask
from spectral_irt.data.labels import by_label
from spectral_irt.inference.fit.item_fit import SQUARES
from spectral_irt.inference.fit.mean_squares import item_statistics
from spectral_irt.inference.results import adjusted, two_sided
from spectral_irt.model import category_probabilities
from spectral_irt.numerics import conjugate_gradients
from spectral_irt.tables import Columns
from spectral_irt.text import count, listed

FIT = (*SQUARES, "discrimination")
ERRATIC = 1.5  # infit beyond which a rater is erratic
FLAT, STEEP = 0.7, 1.3  # slopes beyond which ratings crowd in the middle, or at the ends
SURE = 3.0  # standard errors
FAR = 1.0  # logits from the mean of the raters
FEW = 10  # ratings
CERTAIN = 0.05  # of an adjusted p below which an interaction is said to be there
ROWS = 2_000  # interactions at a time


def facet_table(calibration: Calibration, responses: Responses, ability: Floats, name: str) -> Columns:
    """A row for each level of a facet, with the columns of `Analysis.facet`."""
    rated = calibration.facets
    assert rated is not None
    (labels, code), own = rated.facets.column(name), rated.of[name]
    codes = np.nan_to_num(rated.items.codes)[rated.facets.item]
    rating = (np.nan_to_num(responses.category_counts) * codes).sum(axis=1)  # as they were given
    n, score = (np.bincount(code, each, len(labels)) for each in (responses.item_counts, rating))
    fit = item_statistics(responses, calibration.thresholds, ability, code, len(labels))
    known = ability[np.isfinite(ability)]
    with np.errstate(divide="ignore", invalid="ignore"):
        average, mean = score / n, known.sum() / np.float64(len(known))
    return {
        name: labels,
        "severity": own["severity"],
        "se": own["se"],
        "n": n.astype(np.int64),
        **{key: fit[key] for key in (*FIT, "discrimination_se")},
        "observed_average": average,
        "fair_average": fair_average(calibration, mean - own["severity"]),
        "subset": own["subset"] + 1,
        "status": own["status"],
    }


def fair_average(calibration: Calibration, theta: Floats) -> Floats:
    """The mean over all items of the rating that is expected there from a rater of average severity, in the codes of
    the data."""
    items = calibration.own_items
    average = np.zeros(len(theta))
    for item, codes in zip(items.labels.tolist(), np.nan_to_num(items.codes), strict=True):
        p = items.category_probability(theta, item)
        average += p @ codes[: p.shape[1]]
    return average / items.n_items


def agreement(calibration: Calibration, responses: Responses, ability: Floats, name: str) -> Columns:
    """How often two levels of a facet gave the same rating where they met, over the same person and item.

    For each level: `pairs`, `agreement` (share of pairs that are exactly alike) and `expected`, by the model at the
    person's ability.
    """
    assert calibration.facets is not None
    facets, beta = calibration.facets.facets, np.nan_to_num(calibration.thresholds)
    labels, code = facets.column(name)
    rest = [k for k, one in enumerate(facets.names) if one != name]
    same = np.unique(facets.codes[:, rest], axis=0, return_inverse=True)[1].ravel()
    args = responses.thresholds, beta, same, code, len(labels)
    pairs, alike, expected = responses.entries.sum(_pairs, *args, persons=(ability,))
    with np.errstate(invalid="ignore"):
        return {"pairs": pairs.astype(np.int64), "agreement": alike / pairs, "expected": expected / pairs}


def _pairs(
    block: Block, ability: Floats, layout: Thresholds, beta: Floats, same: Ints, code: Ints, n_levels: int
) -> Floats:
    """Pairs of ratings of one person and thing by two levels: how many, how many alike, how many expected; by level.

    Each is a product of what two ratings have: one, what they are, and how likely that is, category by category.
    """
    indptr, items, x = answered_items(block, layout)
    person = np.repeat(np.arange(block.n_persons), np.diff(indptr))
    some = np.flatnonzero(np.isfinite(ability[person]))
    person, items = person[some], items[some]
    _, thing = np.unique(person * np.int64(same.max() + 1) + same[items], return_inverse=True)
    size = (len(thing), len(thing))
    together = sparse.csr_array((np.ones(len(thing)), (thing, np.arange(len(thing)))), shape=size)
    p = category_probabilities(ability[person], layout.cumulated(beta)[items])
    total = []
    for has in (np.ones((len(thing), 1)), np.eye(layout.widest + 1)[x[some]], p):
        others = (together @ has)[thing] - has
        total.append(np.bincount(code[items], (has * others).sum(axis=1), n_levels))
    return np.array(total)


def interactions(calibration: Calibration, responses: Responses, name: str, groups: Any = None) -> Columns:
    """Score tests of every level of a facet with every item; or, with the groups of people, with every group.

    The columns are those of `Analysis.interactions`. Nothing is fitted again: `bias` is one Newton step, and the
    information that the parameters of the model take up is subtracted.
    """
    rated = calibration.facets
    assert rated is not None
    facets, beta = rated.facets, rated.likeliest  # there the scores of the model's own parameters are zero
    labels, code = facets.column(name)
    free = (rated.spread if rated.spread.ndim == 1 else np.diag(rated.spread)) != 0  # anchors take up nothing
    a, point = rated.design[:, np.flatnonzero(free)], Likelihood(responses, beta).at(beta)
    matrix = against = point.of_parameters(a)
    few = np.ones(len(free), dtype=bool)
    if len(free) > DENSE_PARAMETERS:
        few[max(rated.columns.values(), key=lambda own: own.stop - own.start)] = False
    few = few[free]
    if groups is None:
        pairs, cell = np.unique(np.stack([code, facets.item], axis=1), axis=0, return_inverse=True)
        against, main = (sparse.csr_array(one @ sparse.diags_array(few.astype(float))) for one in (matrix, a))
        level, second, other = pairs[:, 0], facets.items[pairs[:, 1]], "item"
        parts = [_beside(point, main, cell.ravel(), level)]
    else:
        split, each = by_label(responses, groups), np.arange(len(labels))
        some = [responses.take_persons(split.group == k) for k in range(split.n_groups)]
        parts = [_beside(Likelihood(one, beta).at(beta), a, code, each) for one in some]
        level, other = np.tile(each, split.n_groups), "group"
        second = np.repeat(np.array(split.names, dtype=object), len(labels))
    score, own, whole = (np.concatenate([part[k] for part in parts]) for k in range(3))
    cross = sparse.csr_array(sparse.vstack([part[3] for part in parts]))
    own_column = rated.columns[name].start + level
    column = np.maximum(np.cumsum(free)[own_column] - 1, 0)
    share = np.where(free[own_column], whole / np.maximum(matrix.diagonal()[column], 1e-12), 0.0)
    score = score - share * np.bincount(level, score)[level]  # that of the level itself is 0 at the maximum

    def rest(some: slice) -> sparse.csr_array:
        return sparse.csr_array(cross[some] - sparse.diags_array(share[some]) @ against[column[some]])

    left = own - share * whole - _taken_up(matrix, few, rest, len(column))
    good = left > 1e-6 * np.maximum(own, 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias, se = np.where(good, score / left, np.nan), np.where(good, 1 / np.sqrt(left), np.nan)
    z = bias / se
    p = two_sided(z)
    order = np.argsort(np.where(np.isfinite(p), p, 2.0), kind="stable")
    columns = {name: labels[level], other: second, "bias": bias, "se": se, "z": z, "p": p}
    return {key: values[order] for key, values in (columns | {"p_holm": adjusted(p, "holm")}).items()}


def _beside(
    point: Point, a: sparse.csr_array, code: Ints, level: Ints
) -> tuple[Floats, Floats, Floats, sparse.csr_array]:
    """The score of a column for each code of the virtual items, its information, that with the column of its level,
    and that with these parameters."""
    n = len(level)
    c = sparse.eye_array(n, format="csr")[code[point.layout.item]]
    sums = sparse.csr_array((np.ones(n), (np.arange(n), level)))
    return c.T @ point.gradient, *point.of_columns(c, sums, a)


def _taken_up(matrix: sparse.csr_array, few: Mask, rows: Callable[[slice], sparse.csr_array], n: int) -> Floats:
    """The diagonal of E M^-1 E', the information of further columns that parameters beside their own level take up.

    X, what further columns have in common with the parameters, is a share of the rows of M that belong to their own
    level, where X M^-1 X' is exact, and a rest E of n `rows`. `few` are all parameters but the levels of the largest
    facet. Any two of those share few people, so that their part of M^-1 is about diagonal in E; where the rows leave
    them out, they are taken for zero.
    """
    rest, levels = np.flatnonzero(few), np.flatnonzero(~few)
    part, between = sparse.csr_array(matrix[levels][:, levels]), matrix[levels][:, rest].toarray()
    solved = conjugate_gradients(part.__matmul__, part.diagonal(), between, tol=1e-6)[0] if len(levels) else between
    inverse = np.linalg.pinv(matrix[rest][:, rest].toarray() - between.T @ solved, rcond=1e-10, hermitian=True)
    scale = np.divide(1.0, part.diagonal(), out=np.zeros(len(levels)), where=part.diagonal() > 0)
    taken = []
    for start in range(0, n, ROWS):
        some = rows(slice(start, start + ROWS))
        beyond = some[:, levels]
        x = some[:, rest].toarray() - beyond @ solved
        taken.append(beyond.multiply(beyond) @ scale + np.einsum("ij,ij->i", x @ inverse, x))
    return np.concatenate(taken)


def facet_findings(responses: Responses, name: str, table: Columns, pairs: Columns) -> list[Finding]:
    """What is odd about the levels of a facet, by their table (too severe, erratic, crowded, hardly seen), by whom they
    rated, and by their interactions with items."""
    found = []
    far = np.abs(table["severity"]) > np.maximum(FAR, SURE * table["se"])
    sure = np.abs(table["discrimination"] - 1) > SURE * table["discrimination_se"]
    erratic = (table["infit"] > ERRATIC) & (table["infit_z"] > 2)
    flat, steep = (sure & (table["discrimination"] < FLAT)), (sure & (table["discrimination"] > STEEP))
    trained = "The measures of people allow for it; look at how they were trained."
    single = "Their ratings say less than the model believes; look at single ratings."
    prior = "What is said about them rests on the prior in part."
    for code, chosen, what, remedy in (
        ("severe_levels", far, f"more than {FAR:g} logit from the mean", trained),
        ("erratic_levels", erratic, f"erratic (infit above {ERRATIC:g})", single),
        ("central_levels", flat, "crowding in the middle categories", "Central tendency draws people together."),
        ("extreme_levels", steep, "crowding in the lowest and highest categories", "They part people too sharply."),
        ("few_ratings", table["n"] < FEW, f"with fewer than {FEW} ratings", prior),
    ):
        names = table[name][chosen]
        if len(names):
            sentence = f"{name.capitalize()}: {len(names):,} of {len(far):,} {what}: {listed(names)}."
            note = code in ("severe_levels", "few_ratings")
            found.append(Finding(code, "note" if note else "warning", sentence, remedy, tuple(names.tolist())))
    assert responses.facets is not None
    labels, level = responses.facets.column(name)
    met = np.asarray(responses.entries.gather(_met, responses.thresholds, level, len(labels)))
    n, rated = int(np.sum(met == 1)), int(np.sum(met > 0))
    if n and len(labels) > 1:
        sentence = (
            f"{n:,} of {rated:,} people {'has' if n == 1 else 'have'} ratings of one {name} only: they do not tell how "
            f"severe that {name} is, and their own measures rest on it."
        )
        remedy = f"Have people rated by two {name}s or more where severities matter."
        found.append(Finding("one_rater", "warning" if n > rated / 2 else "note", sentence, remedy))
    certain = int(np.sum(pairs["p_holm"] < CERTAIN))
    if certain:
        sentence = (
            f"{count(certain, 'combination')} of {name} and item of {len(pairs['p']):,} "
            f"{'is' if certain == 1 else 'are'} more than chance (Holm, 5%); the surest: {name} {pairs[name][0]} on "
            f"{pairs['item'][0]}, {pairs['bias'][0]:+.2f} logits."
        )
        remedy = f"A {name} is severe on some items only; look at how these are rated."
        found.append(Finding("interactions", "warning", sentence, remedy))
    return found


def _met(block: Block, layout: Thresholds, code: Ints, n_levels: int) -> Ints:
    """How many levels of a facet each person met."""
    indptr, items, _ = answered_items(block, layout)
    person = np.repeat(np.arange(block.n_persons, dtype=np.int64), np.diff(indptr))
    return np.bincount(np.unique(person * n_levels + code[items]) // n_levels, minlength=block.n_persons)
