"""An analysis of change: the items that all waves have in common, and what persons gave on each occasion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spectral_irt.analysis.analysis import Analysis
from spectral_irt.data import Responses
from spectral_irt.data.labels import People, column_of
from spectral_irt.estimators.by_name import make_estimator
from spectral_irt.inference.groups import change as model
from spectral_irt.inference.groups.sampling import Sampling


def change(
    responses: Responses,
    wave: str,
    *,
    arm: Any = None,
    order: Sequence[Any] = (),
    each_item: bool = False,
    rating_scale: bool = False,
    **options: Any,
) -> Analysis:
    """How much persons change between waves, and how the arms differ in that: an analysis whose `change` has it.

    What the analysis calls a person is a person on one occasion: items have the same difficulty in all waves, and
    errors and tests allow for what occasions of a person have in common. `study.change` has the changes
    (`table_columns`), the response shift (`shifts`), and the persons with a measure for each wave (`person_columns`).

    Parameters
    ----------
    responses : Responses
        Read with the column of waves as a facet: `si.read("trial.csv", facets=["wave"], people=["arm"])`.
    wave : str
        That column.
    arm : str, or labels of persons, optional
        The column about persons, or a label for each, that says who is in which arm.
    order : sequence of labels, optional
        The waves from the first to the last; by default as they sort.
    each_item : bool
        Whether to fit Fischer's linear logistic model of change (LLRA) too: each item of a person for itself.
    rating_scale : bool
        Whether items share the distances of their thresholds.
    **options
        Of `Analysis`, such as `ability` and `trait`.

    Examples
    --------
    >>> import numpy as np
    >>> import spectral_irt as si
    >>> rng = np.random.default_rng(1)
    >>> right = rng.random((2, 400, 5)) < 1 / (1 + np.exp(-rng.normal(size=(400, 1)) - np.array([0, 1])[:, None, None]))
    >>> import polars as pl
    >>> waves = [pl.DataFrame(right[w].astype(int), schema=list("abcde")).with_columns(wave=w) for w in (0, 1)]
    >>> table = pl.concat([wave.with_row_index("person") for wave in waves])
    >>> study = si.change(si.read(table, facets=["wave"]), "wave")
    >>> bool(abs(study.change.table_columns["change"][0] - 1) < 0.3)
    True
    """
    labels = arm
    arm_name = "arm"
    if isinstance(arm, str):
        labels = column_of(responses, arm)
        arm_name = arm
    kind = "pcm"
    if responses.thresholds.binary:
        kind = "rasch"
    elif rating_scale:
        kind = "rsm"
    estimator = type(make_estimator("spectral", {}, kind)).__name__
    latent_change = model.change(
        responses,
        wave,
        labels,
        arm_name=arm_name,
        order=order,
        each_item=each_item,
        scale=rating_scale and kind == "rsm",
        estimator=estimator,
    )
    stacked = latent_change.stacked.responses
    columns = dict(stacked.people or {})
    columns[wave] = latent_change.occasions.waves.astype(object)[latent_change.stacked.level]
    stacked = replace(stacked, people=People(stacked.persons, columns, stacked.source), words=("occasions", "items"))
    study = Analysis(latent_change.calibration, stacked, **options)
    study._change = latent_change
    study.sampling = Sampling(cluster=latent_change.stacked.person, name="occasions of persons")
    return study
