"""How able the people of each group are: mean, its standard error, and how much they differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from spectral_irt.data import Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.labels import by_label
from spectral_irt.inference.scores.reliability import marginal_reliability, mean_and_sd
from spectral_irt.persons.abilities import COLLAPSED, Abilities
from spectral_irt.tables import Columns

NO_LABEL = "(no label)"  # people without a group have a row of their own


def group_columns(
    responses: Responses, difficulty: Floats, found: Abilities, labels: Any, name: str, weights: Floats | None = None
) -> Columns:
    """`grouping, group, n, mean, se, sd, latent_mean, latent_se, latent_sd`, a row for each group.

    Parameters
    ----------
    found : Abilities
        Warm's, which hardly depend on the length of the test and are finite for every score.
    labels
        A label for each person, in their order, or a mapping from person to label.
    name : str
        What the grouping is called.
    weights : float array, optional
        How much each person counts.

    Notes
    -----
    `n` people of the group have an ability; `mean` and `sd` are of these numbers, and `se` = sd / sqrt(n). The `sd`
    holds the errors of measurement, and so does the `se`; that of the difficulties, which all groups share, is in
    neither.

    `latent_mean` and `latent_sd` are of the normal population under which the group's answers are most likely, without
    errors of measurement: what to compare where groups took different or short tests. `latent_se` = sd^2 / (sqrt(n)
    sd of the posterior means). They are from a sample of a very large group, and empty where too few people differ.
    """
    split = by_label(responses, labels)
    rows = [(label, split.members(k)) for k, label in enumerate(split.names)]
    known = np.isfinite(found.ability)
    without = split.group < 0
    if (without & known).any():
        rows.append((NO_LABEL, without))
    table = [_row(responses, difficulty, found.ability, members & known, weights) for _, members in rows]
    heads = ("mean", "se", "sd", "latent_mean", "latent_se", "latent_sd")
    return {
        "grouping": np.full(len(rows), name, dtype=object),
        "group": np.array([label for label, _ in rows], dtype=object),
        "n": np.array([np.sum(members & known) for _, members in rows], dtype=np.int64),
        **{head: np.array([row[k] for row in table], dtype=np.float64) for k, head in enumerate(heads)},
    }


def _row(
    responses: Responses, difficulty: Floats, ability: Floats, members: Any, weights: Floats | None
) -> tuple[float, ...]:
    n = int(members.sum())
    if not n:
        return (np.nan,) * 6
    theirs, own = ability[members], None if weights is None else weights[members]
    mean, sd = mean_and_sd(theirs, own)
    worth = n if own is None else float(own.sum() ** 2 / np.sum(own**2))  # people of equal weight
    return (mean, sd / np.sqrt(worth), sd, *_latent(responses.take_persons(members), difficulty, own, worth))


def _latent(people: Responses, difficulty: Floats, weights: Floats | None, worth: float) -> tuple[float, float, float]:
    """Mean of the population, its standard error, and the standard deviation."""
    found = marginal_reliability(people, difficulty, weights)
    if found is None or found.sd <= COLLAPSED:
        return np.nan, np.nan, np.nan
    return found.mean, found.sd**2 / (np.sqrt(found.n if weights is None else worth) * found.eap_sd), found.sd
