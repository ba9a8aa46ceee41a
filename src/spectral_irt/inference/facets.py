"""Raters and other facets: fit of every level, averages, separation, agreement, interactions.

What is summed over the answers to an item is summed over the answers of a rater here: the items of the responses are
combinations of both, and a level is the sum of its combinations.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.calibration import Calibration
from spectral_irt.conditional.exact import Contour, PatternPart, padded, pattern_parts
from spectral_irt.conditional.exact_likelihood import information_at
from spectral_irt.conditional.information import Point, by_item
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.penalized import DENSE_PARAMETERS
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, answered_items, rows_of
from spectral_irt.data.design import Mask
from spectral_irt.data.facets import FacetMeasures
from spectral_irt.data.labels import by_label
from spectral_irt.data.patterns import distinct_rows
from spectral_irt.errors import OptionError
from spectral_irt.inference.fit.halo import Halo
from spectral_irt.inference.fit.item_fit import SQUARES, verdict
from spectral_irt.inference.fit.level_fit import at_points, level_fit
from spectral_irt.inference.fit.mean_squares import item_statistics
from spectral_irt.inference.fit.moments import GivenScore
from spectral_irt.inference.rating_tables import Averages, cell_averages
from spectral_irt.inference.results import adjusted, two_sided
from spectral_irt.numerics import conjugate_gradients
from spectral_irt.tables import Columns
from spectral_irt.text import listed, plural

FLAT, STEEP = 0.8, 1.25  # slopes beyond which a rater keeps to the middle categories, or to the lowest and highest
SURE = 3.0  # standard errors
FAR = 1.0  # logits from the mean of the raters
FEW = 10  # ratings
CERTAIN = 0.05  # of an adjusted p below which something is said of a rater, or of an interaction
OF_EACH_TEST = CERTAIN / 2  # the two tests of a rater, of infit and of slope, have this together (Bonferroni)
HALO = 0.01  # of the one p of a facet below which halo is a warning
ROWS = 2_000  # interactions at a time
CENTRAL, SHARP = "central", "extreme ratings"  # misfits that the slope of a rater says


def facet_table(
    calibration: Calibration,
    responses: Responses,
    ability: Floats,
    name: str,
    given: GivenScore | None = None,
    impressions: Halo | None = None,
) -> Columns:
    """A row for each level of a facet, with the columns of `Analysis.facet` but for agreement."""
    rated = calibration.facets
    assert rated is not None
    labels, code = rated.facets.column(name)
    own = rated.of[name]
    codes = np.nan_to_num(rated.items.codes)[rated.facets.item]
    rating = (np.nan_to_num(responses.category_counts) * codes).sum(axis=1)  # as they were given
    n, score = (np.bincount(code, each, len(labels)) for each in (responses.item_counts, rating))
    with np.errstate(divide="ignore", invalid="ignore"):
        average = score / n
    fit = fit_by_level(calibration, responses, ability, code, len(labels), given)
    ratio = halo_z = np.full(len(labels), np.nan)
    if impressions is not None:
        ratio, halo_z = impressions.of_level, impressions.of_level_z
        fit["discrimination_se"] = fit["discrimination_se"] * max(impressions.ratio, 1.0) ** 0.5
    misfit = level_verdict(fit)
    mean = mean_of_subsets(rated, responses, ability)[first_of_levels(rated.subset_of_item, code, len(labels))]
    return {
        name: labels,
        "severity": own["severity"],
        "se": own["se"],
        "n": n.astype(np.int64),
        **fit,
        "halo": ratio,
        "halo_z": halo_z,
        "observed_average": average,
        "fair_average": fair_average(calibration, mean - own["severity"]),
        "subset": own["subset"] + 1,
        "misfit": misfit,
        "status": np.where((own["status"] == "ok") & (misfit != ""), misfit, own["status"]),
    }


def fit_by_level(
    calibration: Calibration,
    responses: Responses,
    ability: Floats,
    level: Ints,
    n_levels: int,
    given: GivenScore | None = None,
) -> Columns:
    """Infit and outfit of the levels of a facet, or of the items, conventional and given the totals, and slopes."""
    rated = calibration.facets
    assert rated is not None
    usual = item_statistics(responses, calibration.thresholds, ability, level, n_levels)
    # At the maximum of the likelihood: a correction of the bias of first order draws ratings of one person together.
    given = GivenScore.of(responses, rated.likeliest) if given is None else given
    variance = rated.spread if rated.spread.ndim == 1 else np.diag(rated.spread)
    estimated = rated.design[:, np.flatnonzero(variance != 0)]  # anchors take up nothing
    conditional = level_fit(responses, given, ability, level, n_levels, estimated)
    columns: Columns = {name: usual[name] for name in SQUARES}
    columns |= {name.replace("fit", "fit_conditional"): conditional[name] for name in SQUARES}
    return columns | {name: conditional[name] for name in ("discrimination", "discrimination_se")}


def level_verdict(fit: Columns) -> NDArray[Any]:
    """Which levels misfit: "underfit" or "overfit" by the conditional infit, as of items; "central" or "extreme
    ratings" by the slope (Holm); at 5% for both tests of all levels, and only where it is large enough to matter.

    Ratings at random are flat as well, so that underfit comes first. Slopes are tested against the model's 1, which is
    their average; how large they are goes by their median: where some raters are flat, all others are steeper than the
    average. The median has an error of its own, so that a test against it would name raters too often.
    """
    z = fit["infit_conditional_z"]
    misfit = verdict(two_sided(z), z, fit["infit_conditional"], OF_EACH_TEST)["misfit"]
    known = np.isfinite(fit["discrimination"])
    if not known.any():
        return misfit
    slope_z = (fit["discrimination"] - 1) / fit["discrimination_se"]
    certain = adjusted(two_sided(slope_z), "holm") < OF_EACH_TEST
    certain &= misfit != "underfit"
    beside_median = fit["discrimination"] / max(float(np.median(fit["discrimination"][known])), FLAT)
    misfit[certain & (slope_z < 0) & (beside_median < FLAT)] = CENTRAL
    misfit[certain & (slope_z > 0) & (beside_median > STEEP)] = SHARP
    return misfit


def fair_average(calibration: Calibration, theta: Floats) -> Floats:
    """The mean over all items of the rating that is expected there from a rater of average severity, in the codes of
    the data."""
    items = calibration.own_items
    average = np.zeros(len(theta))
    for item, codes in zip(items.labels.tolist(), np.nan_to_num(items.codes), strict=True):
        p = items.category_probability(theta, item)
        average += p @ codes[: p.shape[1]]
    return average / items.n_items


def first_of_levels(values: Ints, code: Ints, n_levels: int) -> Ints:
    """Of each level what its first virtual item has; 0 where it has none."""
    found = np.zeros(n_levels, dtype=np.int64)
    found[code[::-1]] = values[::-1]
    return found


def mean_of_subsets(rated: FacetMeasures, responses: Responses, ability: Floats) -> Floats:
    """The mean ability of the people of each subset."""
    subset = subset_of_persons(rated, responses)
    known = np.isfinite(ability) & (subset >= 0)
    size = rated.subset_of_item.max(initial=0) + 1
    total = np.bincount(subset[known], weights=ability[known], minlength=size)
    with np.errstate(invalid="ignore"):
        return total / np.bincount(subset[known], minlength=size)


def subset_of_persons(rated: FacetMeasures, responses: Responses) -> Ints:
    """The subset in which each person was rated; -1 without ratings."""
    return np.asarray(responses.entries.gather(_first_subset, responses.thresholds, rated.subset_of_item))


def _first_subset(block: Block, layout: Thresholds, subset: Ints) -> Ints:
    indptr, items, _ = answered_items(block, layout)
    found = np.full(block.n_persons, -1, dtype=np.int64)
    some = np.flatnonzero(np.diff(indptr))
    found[some] = subset[items[indptr[some]]]
    return found


def agreement(calibration: Calibration, responses: Responses, name: str) -> Columns:
    """How often two levels of a facet gave the same rating where they met, over the same person and item.

    For each level: `pairs`, `agreement` (share of pairs that are exactly alike) and `expected`, by the model given the
    person's total: P(X_a = X_b | total) is a contour sum of q_ac q_bc, as of `inference.fit.level_fit`.
    """
    assert calibration.facets is not None
    facets = calibration.facets.facets
    layout = responses.thresholds
    beta = np.nan_to_num(calibration.facets.likeliest)
    labels, code = facets.column(name)
    rest = [k for k, one in enumerate(facets.names) if one != name]
    same = np.unique(facets.codes[:, rest], axis=0, return_inverse=True)[1].ravel()
    pairs, alike, extreme = responses.entries.sum(_observed_pairs, layout, same, code, len(labels))
    patterns = distinct_rows(responses)
    rows, _ = by_item(patterns.rows)
    parts = responses.engine.hold(pattern_parts(rows, patterns.count, layout))
    padding = (np.append(same, same.max(initial=-1) + 1), np.append(code, len(labels)))
    expected = extreme  # where the total is the lowest or the highest, all ratings are alike
    for part in parts.map(_expected_pairs, padded(layout, beta), *padding):
        expected = expected + part[:-1]
    with np.errstate(invalid="ignore"):
        return {"pairs": pairs.astype(np.int64), "agreement": alike / pairs, "expected": expected / pairs}


def _observed_pairs(block: Block, layout: Thresholds, same: Ints, code: Ints, n_levels: int) -> Floats:
    """Pairs of ratings of one person and thing by two levels, by level: how many, how many alike, and how many of
    people with an extreme total."""
    rows = rows_of(block, layout)
    indptr, items, x = answered_items(block, layout)
    person = np.repeat(np.arange(block.n_persons), np.diff(indptr))
    _, thing = np.unique(person * np.int64(same.max(initial=0) + 1) + same[items], return_inverse=True)
    thing = thing.ravel()
    others = np.bincount(thing)[thing] - 1.0
    alike = np.unique(thing * np.int64(layout.widest + 1) + x, return_inverse=True)[1].ravel()
    others_alike = np.bincount(alike)[alike] - 1.0
    extreme = np.where(rows.informative[person], 0.0, others_alike)
    return np.array([np.bincount(code[items], each, n_levels) for each in (others, others_alike, extreme)])


def _expected_pairs(part: PatternPart, cumulated: Floats, same: Ints, code: Ints) -> Floats:
    """Pairs that are expected to be alike given the total, by level; the last is that of the padding."""
    items = part.items.T
    contour = Contour.of(cumulated.T[1:, items], part.scores, part.max_scores)
    person = np.arange(items.shape[1])
    cell = (person * (same.max(initial=0) + 1) + same[items]).ravel()
    thing = np.unique(cell, return_inverse=True)[1].ravel()
    alike = np.zeros(items.shape)
    for weight, q in zip(contour.weight, at_points(contour), strict=True):
        for own in q:  # one category
            flat = own.ravel()
            together = np.bincount(thing, flat.real) + 1j * np.bincount(thing, flat.imag)
            alike += (weight * own * (together[thing].reshape(own.shape) - own)).real
    by_level = np.bincount(code[items].ravel(), (alike * part.people).ravel(), minlength=int(code.max()) + 1)
    return by_level.astype(np.float64)


def interactions(calibration: Calibration, responses: Responses, name: str, groups: Any = None) -> Columns:
    """Score tests of every level of a facet with every item; or, with the groups of people, with every group.

    The columns are those of `Analysis.interactions`. Nothing is fitted again: `bias` is one Newton step, and the
    information that the parameters of the model take up is subtracted. What is expected is so given the totals.
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
        cell = cell.ravel()
        parts = [_beside(point, main, cell, level)]
        means = [cell_averages(rated, responses, point.gradient, cell, len(level))]
    else:
        split, each = by_label(responses, groups), np.arange(len(labels))
        some = [responses.take_persons(split.group == k) for k in range(split.n_groups)]
        parts = []
        means = []
        for one in some:
            at_group = Likelihood(one, beta).at(beta)
            parts.append(_beside(at_group, a, code, each))
            means.append(cell_averages(rated, one, at_group.gradient, code, len(labels)))
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
    averages = Averages(*(np.concatenate(values) for values in zip(*means, strict=True)))
    columns = {
        name: labels[level],
        other: second,
        "n": averages.n,
        "observed_average": averages.observed,
        "expected_average": averages.expected,
        "bias": bias,
        "se": se,
        "z": z,
        "p": p,
        "p_holm": adjusted(p, "holm"),
    }
    return {key: values[order] for key, values in columns.items()}


def item_contrasts(calibration: Calibration, responses: Responses, name: str) -> Columns:
    """Of every level of a facet each two of its items: the columns of `Analysis.contrasts`.

    Two columns are added to the design at a time, the level on either item, and one Newton step d = V^-1 g is taken,
    with V their information less what the parameters of the model take up. The contrast is d_1 - d_2.
    """
    rated = calibration.facets
    assert rated is not None
    labels, code = rated.facets.column(name)
    cells, cell = np.unique(np.stack([code, rated.facets.item], axis=1), axis=0, return_inverse=True)
    n = len(cells)
    if n > DENSE_PARAMETERS:
        raise OptionError(f"there are {n:,} pairs of {name} and item; contrasts are for up to {DENSE_PARAMETERS:,}.")
    spread = rated.spread if rated.spread.ndim == 1 else np.diag(rated.spread)
    likelihood, beta = Likelihood(responses, rated.likeliest), rated.likeliest
    further = sparse.eye_array(n, format="csr")[cell.ravel()[responses.thresholds.item]]
    every = sparse.csr_array(sparse.hstack([further, rated.design[:, np.flatnonzero(spread != 0)]]))
    gradient = every.T @ likelihood.at(beta).gradient
    matrix = information_at(likelihood, beta, every).matrix
    taken = matrix[:n, n:] @ np.linalg.pinv(matrix[n:, n:], rcond=1e-10, hermitian=True)
    left, score = matrix[:n, :n] - taken @ matrix[n:, :n], gradient[:n] - taken @ gradient[n:]
    first, second = (
        np.array(
            [pair for k in range(len(labels)) for pair in combinations(np.flatnonzero(cells[:, 0] == k).tolist(), 2)],
            dtype=np.int64,
        )
        .reshape(-1, 2)
        .T
    )
    both = np.stack([first, second], axis=1)
    # Where a level has two items only, both together are its severity: V has rank 1, and the difference is known.
    inverse = np.linalg.pinv(left[both[:, :, None], both[:, None, :]], rcond=1e-6, hermitian=True)
    contrast = np.einsum("rij,rj->ri", inverse, score[both]) @ [1.0, -1.0]
    variance = inverse[:, 0, 0] + inverse[:, 1, 1] - 2 * inverse[:, 0, 1]
    se = np.sqrt(np.where(variance > 0, variance, np.nan))
    z = contrast / se
    p = two_sided(z)
    columns = {
        name: labels[cells[first, 0]],
        "item": rated.facets.items[cells[first, 1]],
        "other_item": rated.facets.items[cells[second, 1]],
        "contrast": np.where(np.isfinite(se), contrast, np.nan),
        "se": se,
        "z": z,
        "p": p,
        "p_holm": adjusted(p, "holm"),
    }
    order = np.argsort(np.where(np.isfinite(p), p, 2.0), kind="stable")
    return {key: values[order] for key, values in columns.items()}


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


def facet_findings(
    responses: Responses, name: str, table: Columns, pairs: Columns, impressions: Halo | None = None
) -> list[Finding]:
    """What is odd about the levels of a facet, by their table (too severe, misfitting, hardly seen), by whom they
    rated, by their interactions with items, and whether ratings of one level depend on each other."""
    found = []
    far = np.abs(table["severity"]) > np.maximum(FAR, SURE * table["se"])
    misfit = table["misfit"]
    trained = "The measures of people allow for it; look at how they were trained."
    single = "Their ratings say less than the model takes them to say; look at single ratings."
    regular = "Look whether they saw the ratings of others, or rated one item by another."
    prior = "What is said about them rests on the prior in part."
    for code, chosen, what, remedy in (
        ("severe_levels", far, f"more than {FAR:g} logit from the mean", trained),
        ("erratic_levels", misfit == "underfit", "less predictable than the model says (underfit)", single),
        ("regular_levels", misfit == "overfit", "more predictable than the model says (overfit)", regular),
        (
            "central_levels",
            misfit == CENTRAL,
            "overusing the middle categories (central tendency)",
            "Their ratings make people look more alike than they are.",
        ),
        (
            "extreme_levels",
            misfit == SHARP,
            "overusing the lowest and highest categories",
            "Their ratings make people look more different than they are.",
        ),
        ("few_ratings", table["n"] < FEW, f"with fewer than {FEW} ratings", prior),
    ):
        names = table[name][chosen]
        if len(names):
            sentence = f"{name.capitalize()}: {len(names):,} of {len(far):,} {what}: {listed(names)}."
            note = code in ("severe_levels", "regular_levels", "few_ratings")
            found.append(Finding(code, "note" if note else "warning", sentence, remedy, tuple(names.tolist())))
    if impressions is not None and two_sided(impressions.z) / 2 < HALO and impressions.z > 0:
        sentence = (
            f"Ratings of the same person by one {name} depend on each other (halo): their sums vary "
            f"{impressions.ratio:.2f} times as much as the model expects (z = {impressions.z:.1f}), as if each {name} "
            f"had an impression of each person with an sd of {impressions.variance**0.5:.2f} logits."
        )
        remedy = (
            "Standard errors of persons and the EAP reliability allow for it. More ratings of a person by the same "
            f"{name} tell little; more {plural(name)} do."
        )
        clear = adjusted(two_sided(impressions.of_level_z), "holm") < CERTAIN
        clear &= impressions.of_level > 1
        only_some = bool(0 < 2 * clear.sum() <= len(clear))
        if only_some:
            sentence += f" It is clear in {clear.sum():,} of {len(clear):,} (Holm, 5%): {listed(table[name][clear])}."
        noisy = clear & (misfit == "underfit")
        if only_some and noisy.any():
            remedy = (
                f"Look at {listed(table[name][noisy])} first: unpredictable ratings make such sums vary without any "
                f"impression. {remedy}"
            )
        found.append(Finding("halo", "warning", sentence, remedy))
    assert responses.facets is not None
    labels, level = responses.facets.column(name)
    met = np.asarray(responses.entries.gather(_met, responses.thresholds, level, len(labels)))
    n, rated = int(np.sum(met == 1)), int(np.sum(met > 0))
    if n and len(labels) > 1:
        sentence = (
            f"{n:,} of {rated:,} people {'has' if n == 1 else 'have'} ratings of one {name} only: they do not tell how "
            f"severe that {name} is, and their own measures rest on it."
        )
        remedy = f"Have people rated by two {plural(name)} or more where severities matter."
        found.append(Finding("one_rater", "warning" if n > rated / 2 else "note", sentence, remedy))
    certain = int(np.sum(pairs["p_holm"] < CERTAIN))
    if certain:
        largest = pairs["bias"][0]
        side = "severe" if largest > 0 else "lenient"
        sentence = (
            f"{certain:,} of {len(pairs['p']):,} combinations of {name} and item "
            f"{'departs' if certain == 1 else 'depart'} from the {name}'s own severity (Holm, 5%); clearest: {name} "
            f"{pairs[name][0]} is {abs(largest):.2f} logits more {side} on {pairs['item'][0]}."
        )
        remedy = "Look at how these items are rated."
        found.append(Finding("interactions", "warning", sentence, remedy))
    return found


def _met(block: Block, layout: Thresholds, code: Ints, n_levels: int) -> Ints:
    """How many levels of a facet each person met."""
    indptr, items, _ = answered_items(block, layout)
    person = np.repeat(np.arange(block.n_persons, dtype=np.int64), np.diff(indptr))
    return np.bincount(np.unique(person * n_levels + code[items]) // n_levels, minlength=block.n_persons)
