"""How people are divided into groups, for tests that ask whether items are as hard in one group as in another; and how
able the people of each group are.

A group may depend on anything known about a person before the answers (a person column), and on the items answered and
the score: given these the model leaves the answers free, so estimates from each group are consistent and the tests
have their level. It may not depend on single answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, rows_of
from spectral_irt.data.labels import Split as Split
from spectral_irt.data.labels import by_label as by_label
from spectral_irt.data.patterns import row_keys
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.groups.mean_differences import mean_differences
from spectral_irt.inference.groups.sampling import SIMPLE, Sampling, degrees_of_freedom
from spectral_irt.inference.scores.reliability import marginal_reliability, mean_and_sd
from spectral_irt.model import prox
from spectral_irt.persons.abilities import COLLAPSED, Abilities, abilities, items_met
from spectral_irt.tables import Columns
from spectral_irt.text import first_of, p_value

MEANS = ("mean", "se", "sd", "latent_mean", "latent_se", "latent_sd")
NO_LABEL = "(no label)"  # people without a group have a row of their own
SPLITS = ("median", "mean", "ability", "scores")
MEANS_LEVEL = 0.05  # of the test of equal means
FORMS = 0.1  # share of the variance of abilities from which forms count as made for people of some ability


def divide(responses: Responses, split: Any, *, difficulty: Floats | None = None) -> Split:
    """Groups of people by "median", "mean", "ability" or "scores", an array of labels, or a map from person to label.

    "median": raw score up to the median, or above it. "mean": below the mean, or not. Where answers are missing, scores
    are compared among people who answered the same items, as eRm does; that needs many people for each set of items.
    "ability": the raw score seen against the difficulty of the items answered (`difficulty`, or thresholds), cut at its
    median among people with both right and wrong answers, those at the median going to the smaller side; where forms
    follow ability, among those who met items like theirs. Right for any pattern of missing answers. "scores": a group
    for every raw score. Labels say the group of each person (None, NaN or "": none).
    """
    if not isinstance(split, str) or (responses.people is not None and split in responses.people):
        return by_label(responses, split)
    if split in ("median", "mean"):
        return _by_typical_score(responses, split)
    if split == "scores":
        scores = responses.scores
        inside = (scores > 0) & (scores < responses.max_scores.max(initial=0))
        levels = np.unique(scores[inside])
        names = tuple(f"raw score = {level}" for level in levels)
        return Split(names, np.where(inside, np.searchsorted(levels, scores), -1))
    if split == "ability":
        if difficulty is None:
            raise OptionError("`split='ability'` needs difficulties; pass a fit, or use `split='median'`.")
        return by_ability(responses, difficulty)
    raise OptionError(
        f"`split` is {split!r}; it can be {', '.join(map(repr, SPLITS))}, or labels: one for each person, or a mapping "
        "from person to label."
    )


def large_enough(data: Responses, split: Split, min_people: int) -> tuple[Split, list[Finding]]:
    """The groups with enough people to be compared, and findings about the others."""
    findings = []
    alone = int((split.group < 0).sum())
    if split.n_groups < 2:
        what = f"a single level, {split.names[0]!r}" if split.names else "no level at all, only missing values"
        raise DesignError(
            f"{data.source}: the groups have {what}; differential functioning needs two groups or more. Check the "
            "column of groups."
        )
    if alone:
        sentence = f"{alone:,} of {data.n_persons:,} people are in no group and were left out of the comparison."
        findings.append(Finding("persons_without_group", "note", sentence))
    sizes = np.bincount(split.group[data.informative & (split.group >= 0)], minlength=split.n_groups)
    small = sizes < min_people
    if not small.any():
        return split, findings
    told = first_of(f"{name!r} ({size})" for name, size, few in zip(split.names, sizes, small, strict=True) if few)
    why = f"fewer than {min_people} people whose score is not extreme"
    if (~small).sum() < 2:
        raise DesignError(
            f"{data.source}: {why} in {told}, which leaves {int((~small).sum())} of {split.n_groups} groups; two are "
            "needed. Merge groups, or collect more answers."
        )
    sentence = f"{int(small.sum())} of {split.n_groups} groups have {why} and were left out: {told}."
    return split.keep(~small), [*findings, Finding("small_groups", "warning", sentence, "Merge them with others.")]


def _by_typical_score(responses: Responses, split: str) -> Split:
    scores, same = responses.scores, item_sets(responses)
    sizes = np.bincount(same)
    if split == "mean":
        # A mean is rounded, and a score at the mean must not fall below it for that.
        typical = np.bincount(same, weights=scores) / sizes - 1e-9
        return Split(("raw score < mean", "raw score >= mean"), (scores >= typical[same]).astype(np.int64))
    rising, starts = scores[np.lexsort((scores, same))], np.cumsum(sizes) - sizes
    typical = (rising[starts + (sizes - 1) // 2] + rising[starts + sizes // 2]) / 2
    return Split(("raw score <= median", "raw score > median"), (scores > typical[same]).astype(np.int64))


def item_sets(responses: Responses) -> Ints:
    """A number for the set of items each person answered: equal numbers, equal sets."""
    keys = responses.entries.gather(_keys, responses.thresholds)
    return np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _keys(block: Block, layout: Thresholds) -> NDArray[np.uint64]:
    rows = rows_of(block, layout)
    return row_keys(rows, layout, rows.counts)


def by_ability(responses: Responses, difficulty: Floats) -> Split:
    """The less and the more able half: "ability" of `divide`."""
    if not responses.thresholds.binary:
        ability = np.nan_to_num(abilities(responses, difficulty).ability)
        level = np.nan_to_num(items_met(responses, difficulty))
    else:
        ability, level = responses.gather(ability_and_level, difficulty)
    counts, informed = responses.counts, responses.informative
    # Where forms follow ability (grades, targeted booklets) halves of all people would share few items, each answered
    # by hardly anyone in one of them. Compared with those who met items like theirs, every form has both: so what the
    # level of the items says about ability, the regression on it, is taken off where it is steep.
    x, y = level[informed], ability[informed]
    if len(x) > 2 and np.ptp(x) >= 1e-6:
        slope = float(np.clip(np.cov(x, y)[0, 1] / x.var(ddof=1), 0, 1))
        ability = ability - slope * level if np.var(slope * x) > FORMS * np.var(y) else ability
    cut = np.median(ability[informed]) if informed.any() else 0.0
    # Equal abilities differ in their last digits by the order of the answers, which must not decide on the group. Those
    # at the median, many on a short test, go together to the side that makes the halves more equal.
    above, below = ability > cut + 1e-9, ability < cut - 1e-9
    upper = above if np.sum(above & informed) >= np.sum(below & informed) else ~below
    group = np.where(counts > 0, upper, -1).astype(np.int64)
    return Split(("less able half", "more able half"), group)


def ability_and_level(block: Block, difficulty: Floats) -> tuple[Floats, Floats]:
    """PROX over the person's items, with half an answer each way; and the mean difficulty of these."""
    known = np.isfinite(difficulty)
    beta = np.where(known, difficulty, 0.0)
    pattern = block.pattern(len(beta))
    halves = (pattern @ np.stack([known, beta, beta**2], axis=1)).reshape(-1, 2, 3)  # right, and wrong
    s, (n, total, square) = halves[:, 0, 0], halves.sum(axis=1).T
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(n > 0, total / n, 0.0)
        variance = np.where(n > 0, np.maximum(square / n - mean**2, 0.0), 0.0)
    return prox(mean, variance, np.log((s + 0.5) / (n - s + 0.5))), mean


def group_columns(
    responses: Responses, difficulty: Floats, found: Abilities, labels: Any, name: str, sampling: Sampling = SIMPLE
) -> Columns:
    """`grouping, group, n, mean, se, sd, latent_mean, latent_se, latent_sd`, and tests of means: a row for each group.

    `found` are Warm's abilities, which hardly depend on the length of the test and are finite for every score, and
    `sampling` has weights and clusters of the persons. `n` people of the group have an ability; `mean` and `sd` are of
    these numbers, and `se` = sd / sqrt(n). The `sd` holds the errors of measurement, and so does the `se`; that of the
    difficulties, which all groups share, is in neither.

    `latent_mean` and `latent_sd` are of the normal population under which the group's answers are most likely, without
    errors of measurement: what to compare where groups took different or short tests. `latent_se` = sd^2 / (sqrt(n)
    sd of the posterior means). They are from a sample of a very large group, and empty where too few people differ.

    Where people come in clusters, both errors add up deviations x_l - mean within these, C / (C - 1) sum_c (sum over l
    in c of w_l (x_l - mean))^2 / (sum w)^2; for the latent mean x_l is the posterior mean, and the sum is multiplied by
    latent sd^2 / its variance. `clusters` says how many there are, and `df` the degrees of freedom of the errors:
    intervals reach as far as Student's t.

    `difference` is the mean less that of the first group, with `difference_se` and `difference_p`, Holm's p within the
    grouping; `equal_means_p` that of all means being equal, the same in every row; see `mean_differences`.
    """
    split = by_label(responses, labels)
    rows = [(label, split.group == k) for k, label in enumerate(split.names)]
    known = np.isfinite(found.ability)
    without = split.group < 0
    if (without & known).any():
        rows.append((NO_LABEL, without))
    table = [_row(responses, difficulty, found.ability, members & known, sampling) for _, members in rows]
    heads = MEANS if sampling.cluster is None else (*MEANS, "clusters", "df")
    columns: Columns = {
        "grouping": np.full(len(rows), name, dtype=object),
        "group": np.array([label for label, _ in rows], dtype=object),
        "n": np.array([np.sum(members & known) for _, members in rows], dtype=np.int64),
        **{head: np.array([row[k] for row in table], dtype=np.float64) for k, head in enumerate(heads)},
    }
    if "clusters" in columns:
        columns["clusters"] = np.nan_to_num(columns["clusters"]).astype(np.int64)
    test = mean_differences(found.ability, split.group, split.n_groups, sampling)
    without_test = np.full(len(rows) - split.n_groups, np.nan)
    columns["difference"] = np.append(test.difference, without_test)
    columns["difference_se"] = np.append(test.se, without_test)
    columns["difference_p"] = np.append(test.p_holm, without_test)
    columns["equal_means_p"] = np.append(np.full(split.n_groups, test.p_equal), without_test)
    return columns


def mean_sentences(table: Columns, unit: str = "", places: int = 2, *, linked: bool = True) -> list[str]:
    """Whether the means of each grouping differ, from the columns of `group_columns`; in logits, or in the columns
    that begin with `unit`. Not `linked`: measures of several subsets are in them."""
    sentences: list[str] = []
    if "equal_means_p" not in table:
        return sentences
    for name in dict.fromkeys(table["grouping"].tolist()):
        rows = np.flatnonzero((table["grouping"] == name) & np.isfinite(table["equal_means_p"]))
        if not len(rows):
            continue
        p = float(table["equal_means_p"][rows[0]])
        verdict = "differ significantly" if p < MEANS_LEVEL else "do not differ significantly"
        sentence = f"{name}: means {verdict} at {MEANS_LEVEL:.0%} ({p_value(p)})"
        compared = [k for k in rows.tolist() if np.isfinite(table["difference_se"][k])]
        if len(rows) == 2 and len(compared) == 1:
            k = compared[0]
            size = f"{table[f'{unit}difference'][k]:z.{places}f}, se {table[f'{unit}difference_se'][k]:.{places}f}"
            sentence += f"; {table['group'][k]!s} less {table['group'][rows[0]]!s}: {size}"
        sentences.append(f"{sentence}.")
    if sentences and not linked:
        sentences[-1] += (
            " Subsets that nothing links are in these means: they compare only groups spread evenly over all."
        )
    return sentences


def _row(
    responses: Responses, difficulty: Floats, ability: Floats, members: NDArray[np.bool_], sampling: Sampling
) -> tuple[float, ...]:
    """The columns of `MEANS`, the number of clusters, and the degrees of freedom of the errors."""
    n = int(members.sum())
    if not n:
        return (np.nan,) * (len(MEANS) + 2)
    own = sampling.take(members)
    counts, cluster = own.counts(n), own.clusters(n)
    mean, sd = mean_and_sd(ability[members], own.weights)
    occupied = len(np.unique(cluster))
    df = np.inf if own.cluster is None else degrees_of_freedom(cluster, counts)
    factor = 1.0 if own.cluster is None else occupied / max(occupied - 1, 1)
    worth = counts.sum() ** 2 / np.sum(counts**2)  # people of equal weight
    se = sd / np.sqrt(worth) if own.cluster is None else _of_the_mean(ability[members] - mean, counts, cluster, factor)
    if own.cluster is not None and occupied < 2:
        se = np.nan
    theirs = responses.take_persons(members)
    latent = marginal_reliability(theirs, difficulty, own.weights)
    if latent is None or latent.sd <= COLLAPSED:
        return mean, se, sd, np.nan, np.nan, np.nan, occupied, df
    latent_se = latent.sd**2 / (np.sqrt(latent.n if own.weights is None else worth) * latent.eap_sd)
    if own.cluster is not None:
        posterior = abilities(theirs, difficulty, "eap", prior_mean=latent.mean, prior_sd=latent.sd).ability
        apart = (posterior - latent.mean) * latent.sd**2 / latent.eap_sd**2
        latent_se = _of_the_mean(apart, counts, cluster, factor) if occupied > 1 else np.nan
    return mean, se, sd, latent.mean, latent_se, latent.sd, occupied, df


def _of_the_mean(apart: Floats, counts: Floats, cluster: Ints, factor: float) -> float:
    """The standard error of a mean, from deviations that are added up within clusters."""
    sums = np.bincount(cluster, weights=counts * apart)
    return float(np.sqrt(factor * np.sum(sums**2)) / counts.sum())
