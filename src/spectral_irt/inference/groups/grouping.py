"""How people are divided into groups, for tests that ask whether items are as hard in one group as in another; and how
able the people of each group are.

A group may depend on anything known about a person before the answers (a person column), and on the items answered and
the score: given these the model leaves the answers free, so estimates from each group are consistent and the tests
have their level. It may not depend on single answers.

`divide` serves the tests of `model_tests.py`, `by_ability` those of `score_test.py` and `dif_details.py`,
`large_enough` the comparison of `dif.py`; `study.group_means` calls `group_columns`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, rows_of
from spectral_irt.data.labels import Split as Split
from spectral_irt.data.labels import by_label as by_label
from spectral_irt.data.patterns import row_keys
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.groups.mean_differences import mean_differences
from spectral_irt.inference.groups.sampling import SIMPLE, SampledPersons, Sampling, cluster_factor, degrees_of_freedom
from spectral_irt.inference.scores.reliability import marginal_reliability, mean_and_sd
from spectral_irt.model import prox
from spectral_irt.persons.abilities import COLLAPSED, Abilities, abilities, items_met
from spectral_irt.tables import Columns
from spectral_irt.text import first_of, p_value

NO_LABEL = "(no label)"  # people without a group have a row of their own
SPLITS = ("median", "mean", "ability", "scores")
MEANS_LEVEL = 0.05  # of the test of equal means
FORMS = 0.1  # share of the variance of abilities from which forms count as made for people of some ability
EQUAL = 1e-9  # logits, or mean scores: what differs by less is equal but for rounding
SAME_LEVEL = 1e-6  # logits between the mean difficulties that people met: there are no forms of different level


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
        return _by_score(responses)
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
    if split.n_groups < 2:
        what = f"a single level, {split.names[0]!r}" if split.names else "no level at all, only missing values"
        raise DesignError(
            f"{data.source}: the groups have {what}; differential functioning needs two groups or more. Check the "
            "column of groups."
        )
    n_without = int((split.group < 0).sum())
    if n_without:
        sentence = f"{n_without:,} of {data.n_persons:,} people are in no group and were left out of the comparison."
        findings.append(Finding("persons_without_group", "note", sentence))
    sizes = np.bincount(split.group[data.informative & (split.group >= 0)], minlength=split.n_groups)
    small = sizes < min_people
    if not small.any():
        return split, findings
    named = first_of(f"{split.names[k]!r} ({sizes[k]})" for k in np.flatnonzero(small))
    why = f"fewer than {min_people} people whose score is not extreme"
    n_left = int((~small).sum())
    if n_left < 2:
        raise DesignError(
            f"{data.source}: {why} in {named}, which leaves {n_left} of {split.n_groups} groups; two are needed. Merge "
            "groups, or collect more answers."
        )
    sentence = f"{int(small.sum())} of {split.n_groups} groups have {why} and were left out: {named}."
    findings.append(Finding("small_groups", "warning", sentence, "Merge them with others."))
    return split.keep(~small), findings


def _by_score(responses: Responses) -> Split:
    """A group for every raw score between the lowest and the highest."""
    scores = responses.scores
    inside = (scores > 0) & (scores < responses.max_scores.max(initial=0))
    distinct = np.unique(scores[inside])
    names = tuple(f"raw score = {score}" for score in distinct)
    return Split(names, np.where(inside, np.searchsorted(distinct, scores), -1))


def _by_typical_score(responses: Responses, split: str) -> Split:
    """Each person beside the mean or the median score of those who answered the same items."""
    scores = responses.scores
    item_set = item_sets(responses)
    sizes = np.bincount(item_set)
    if split == "mean":
        # A mean is rounded, and a score at the mean must not fall below it for that.
        mean = np.bincount(item_set, weights=scores) / sizes - EQUAL
        names = ("raw score < mean", "raw score >= mean")
        return Split(names, (scores >= mean[item_set]).astype(np.int64))
    rising = scores[np.lexsort((scores, item_set))]  # within each set of items
    first = np.cumsum(sizes) - sizes
    median = (rising[first + (sizes - 1) // 2] + rising[first + sizes // 2]) / 2
    names = ("raw score <= median", "raw score > median")
    return Split(names, (scores > median[item_set]).astype(np.int64))


def item_sets(responses: Responses) -> Ints:
    """A number for the set of items each person answered: equal numbers, equal sets."""
    keys = responses.entries.gather(_keys, responses.thresholds)
    return np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _keys(block: Block, layout: Thresholds) -> NDArray[np.uint64]:
    rows = rows_of(block, layout)
    return row_keys(rows, layout, rows.counts)


def by_ability(responses: Responses, difficulty: Floats) -> Split:
    """The less and the more able half: "ability" of `divide`."""
    if responses.thresholds.binary:
        ability, level = responses.gather(ability_and_level, difficulty)
    else:
        ability = np.nan_to_num(abilities(responses, difficulty).ability)
        level = np.nan_to_num(items_met(responses, difficulty))
    informative = responses.informative
    ability = _beside_their_form(ability, level, informative)
    median = np.median(ability[informative]) if informative.any() else 0.0
    # Equal abilities differ in their last digits by the order of the answers, which must not decide on the group. Those
    # at the median, many on a short test, go together to the side that makes the halves more equal.
    above = ability > median + EQUAL
    below = ability < median - EQUAL
    upper = ~below
    if np.sum(above & informative) >= np.sum(below & informative):
        upper = above
    group = np.where(responses.counts > 0, upper, -1).astype(np.int64)
    return Split(("less able half", "more able half"), group)


def _beside_their_form(ability: Floats, level: Floats, informative: NDArray[np.bool_]) -> Floats:
    """Abilities beside those of people who met items as hard (`level`), where forms follow ability.

    There (grades, targeted booklets) halves of all people would share few items, each answered by hardly anyone in one
    of them. Compared with those who met items like theirs, every form has both: so what the level of the items says
    about ability, the regression on it, is taken off where it is steep.
    """
    x = level[informative]
    y = ability[informative]
    if len(x) <= 2 or np.ptp(x) < SAME_LEVEL:
        return ability
    slope = float(np.clip(np.cov(x, y)[0, 1] / x.var(ddof=1), 0, 1))
    if np.var(slope * x) <= FORMS * np.var(y):
        return ability
    return ability - slope * level


def ability_and_level(block: Block, difficulty: Floats) -> tuple[Floats, Floats]:
    """PROX over the person's items, with half an answer each way; and the mean difficulty of these."""
    has_difficulty = np.isfinite(difficulty)
    beta = np.where(has_difficulty, difficulty, 0.0)
    pattern = block.pattern(len(beta))
    # Of each person the number of items, the sum and the sum of squares of their difficulties: right, and wrong.
    by_answer = (pattern @ np.stack([has_difficulty, beta, beta**2], axis=1)).reshape(-1, 2, 3)
    score = by_answer[:, 0, 0]
    n_items, total, squares = by_answer.sum(axis=1).T
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(n_items > 0, total / n_items, 0.0)
        variance = np.where(n_items > 0, np.maximum(squares / n_items - mean**2, 0.0), 0.0)
    return prox(mean, variance, np.log((score + 0.5) / (n_items - score + 0.5))), mean


def group_columns(
    responses: Responses, difficulty: Floats, estimates: Abilities, labels: Any, name: str, sampling: Sampling = SIMPLE
) -> Columns:
    """`grouping, group, n, mean, se, sd, latent_mean, latent_se, latent_sd`, and tests of means: a row for each group.

    `estimates` are Warm's abilities, which hardly depend on the length of the test and are finite for every score, and
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
    has_ability = np.isfinite(estimates.ability)
    rows = [(label, split.group == k) for k, label in enumerate(split.names)]
    in_no_group = split.group < 0
    if (in_no_group & has_ability).any():
        rows.append((NO_LABEL, in_no_group))
    persons = SampledPersons(responses, sampling)
    means = []
    for _, members in rows:
        of_row = members & has_ability
        means.append(_group_mean(persons.take(of_row), difficulty, estimates.ability[of_row]))
    columns: Columns = {
        "grouping": np.full(len(rows), name, dtype=object),
        "group": np.array([label for label, _ in rows], dtype=object),
        "n": np.array([mean.n for mean in means], dtype=np.int64),
    }
    for column in MEANS:
        columns[column] = np.array([getattr(mean, column) for mean in means], dtype=np.float64)
    if sampling.cluster is not None:
        columns["clusters"] = np.array([mean.clusters for mean in means], dtype=np.int64)
        columns["df"] = np.array([mean.df for mean in means], dtype=np.float64)
    test = mean_differences(estimates.ability, split.group, split.n_groups, sampling)
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
    is_tested = False
    if "equal_means_p" not in table:
        return sentences
    for name in dict.fromkeys(table["grouping"].tolist()):
        rows = np.flatnonzero((table["grouping"] == name) & np.isfinite(table["equal_means_p"]))
        if not len(rows):
            if not linked and np.sum(table["grouping"] == name) > 1:
                sentences.append(f"{name}: means cannot be compared: nothing links the subsets of these groups.")
            continue
        is_tested = True
        p = float(table["equal_means_p"][rows[0]])
        verdict = "differ significantly" if p < MEANS_LEVEL else "do not differ significantly"
        sentence = f"{name}: means {verdict} at {MEANS_LEVEL:.0%} ({p_value(p)})"
        compared = [row for row in rows.tolist() if np.isfinite(table["difference_se"][row])]
        if len(rows) == 2 and len(compared) == 1:
            row = compared[0]
            difference = table[f"{unit}difference"][row]
            se = table[f"{unit}difference_se"][row]
            pair = f"{table['group'][row]!s} less {table['group'][rows[0]]!s}"
            sentence += f"; {pair}: {difference:z.{places}f}, se {se:.{places}f}"
        sentences.append(f"{sentence}.")
    if is_tested and not linked:
        sentences[-1] += (
            " Subsets that nothing links are in these means: they compare only groups spread evenly over all."
        )
    return sentences


def without_tests_across_subsets(table: Columns, split: Split, subset: Ints) -> Columns:
    """The columns of `group_columns` without tests between groups that have no subset in common: nothing links their
    measures. `subset` is that of each person, from 1, or 0 without one."""
    in_group = split.group >= 0
    is_met = np.zeros((split.n_groups, int(subset.max(initial=0)) + 1), dtype=bool)
    is_met[split.group[in_group], subset[in_group]] = True
    in_common = is_met[:, 1:].astype(np.int64) @ is_met[:, 1:].T.astype(np.int64) > 0
    cleared = dict(table)
    without_group = len(table["n"]) - split.n_groups
    with_first = np.append(in_common[:, 0], np.ones(without_group, dtype=bool))
    for name in ("difference", "difference_se", "difference_p"):
        cleared[name] = np.where(with_first, table[name], np.nan)
    if not in_common.all():
        cleared["equal_means_p"] = np.full(len(table["n"]), np.nan)
    return cleared


class GroupMean(NamedTuple):
    """A row of `group_columns`: NaN for what cannot be estimated, and `df` infinite without clusters."""

    n: int
    mean: float = np.nan
    se: float = np.nan
    sd: float = np.nan
    latent_mean: float = np.nan
    latent_se: float = np.nan
    latent_sd: float = np.nan
    clusters: int = 0
    df: float = np.nan


MEANS = GroupMean._fields[1:7]


def _group_mean(persons: SampledPersons, difficulty: Floats, ability: Floats) -> GroupMean:
    """Of people with these abilities, their mean, and that of the normal population that they come from."""
    n = len(ability)
    if not n:
        return GroupMean(0)
    weight = persons.weight
    weights = persons.sampling.weights
    clustered = persons.sampling.cluster is not None
    n_clusters = len(np.unique(persons.cluster))
    mean, sd = mean_and_sd(ability, weights)
    n_equal = weight.sum() ** 2 / np.sum(weight**2)  # people of equal weight that they are worth
    se = sd / np.sqrt(n_equal)
    df = np.inf
    if clustered:
        se = _se_of_mean(ability - mean, persons, n_clusters)
        df = degrees_of_freedom(persons.cluster, weight)
    group_mean = GroupMean(n, mean, se, sd, clusters=n_clusters, df=df)
    population = marginal_reliability(persons.responses, difficulty, weights)
    if population is None or population.sd <= COLLAPSED:
        return group_mean
    n_population = population.n if weights is None else n_equal
    latent_se = population.sd**2 / (np.sqrt(n_population) * population.eap_sd)
    if clustered:
        posterior = abilities(persons.responses, difficulty, "eap", prior_mean=population.mean, prior_sd=population.sd)
        deviation = (posterior.ability - population.mean) * population.sd**2 / population.eap_sd**2
        latent_se = _se_of_mean(deviation, persons, n_clusters)
    return group_mean._replace(latent_mean=population.mean, latent_se=latent_se, latent_sd=population.sd)


def _se_of_mean(deviation: Floats, persons: SampledPersons, n_clusters: int) -> float:
    """The standard error of a mean, from deviations that are added up within clusters; none from a single cluster."""
    if n_clusters < 2:
        return np.nan
    weight = persons.weight
    sums = np.bincount(persons.cluster, weights=weight * deviation)
    return float(np.sqrt(cluster_factor(n_clusters) * np.sum(sums**2)) / weight.sum())
