"""The fit of every item as a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.estimators.base import RaschEstimator, make_table
from spectral_irt.inference.bootstrap import bootstrap as run_bootstrap
from spectral_irt.inference.conditional_fit import conditional_statistics
from spectral_irt.inference.fit_statistics import WITH_FIT, item_statistics
from spectral_irt.persons.abilities import abilities
from spectral_irt.persons.table import scored
from spectral_irt.responses import Responses
from spectral_irt.responses.block import Floats


def item_fit(
    fit: RaschEstimator,
    responses: Any = None,
    *,
    conditional: bool = True,
    bootstrap: int = 0,
    level: float = 0.05,
    sample: int | None = None,
    seed: int = 0,
    ignore_unknown: bool = False,
) -> Any:
    """The fit of every item as a table.

    `item, n, infit, infit_z, outfit, outfit_z, infit_conditional, infit_conditional_z, outfit_conditional,
    outfit_conditional_z, point_measure, point_measure_expected, exact_match, exact_match_expected, displacement,
    displacement_conditional`.

    Parameters
    ----------
    fit : fitted estimator
    responses : Responses, array or dataframe
        Those of the calibration, or others; items are matched by label.
    conditional : bool
        Compute the conditional statistics too (default); they cost a few times the others.
    bootstrap : int
        Replicates for critical values of the conditional mean squares; 0 (default): none. 200 is a good number. Adds
        `infit_conditional_low, .._high, .._p`, the same for outfit, and `misfit`: "underfit" (infit above its limit:
        noisier than the model), "overfit" (below: steeper than the model), or "".
    level : float
        Share of good items that these limits flag.
    sample : int, optional
        Users to take at random for the bootstrap. With very many users every item is "significantly" off.
    seed : int
        Of sample and bootstrap.
    ignore_unknown : bool
        Leave out answers to items that the calibration does not have; by default they are an error.

    Notes
    -----
    Mean squares are 1 when the item fits; above 1 answers are more erratic than the model says, below more regular.
    Decide by the conditional ones: the conventional ones, at maximum likelihood abilities as in eRm and Winsteps, have
    a mean below 1. `n` counts answers of users with a mixed score, who alone can tell. An item that was not properly
    estimated (its status is neither "ok" nor "anchored") has no fit.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> answers = datasets.load_lsat()
    >>> table = SpectralRasch().fit(answers).item_fit(answers)
    >>> table["infit_conditional"].round(2).to_list()
    [1.01, 1.0, 0.99, 1.01, 1.01]
    """
    answers = scored(fit, responses, "item_fit", ignore_unknown)
    columns = item_fit_columns(
        fit,
        answers,
        conditional=conditional,
        bootstrap=bootstrap,
        level=level,
        sample=sample,
        seed=seed,
    )
    return make_table(columns, answers.frame_kind)


def item_fit_columns(
    fit: RaschEstimator,
    responses: Responses,
    *,
    conditional: bool = True,
    bootstrap: int = 0,
    level: float = 0.05,
    sample: int | None = None,
    seed: int = 0,
) -> dict[str, NDArray[Any]]:
    """The columns of `item_fit`, for responses that are already aligned with the calibration."""
    beta = fit.difficulty_
    theta = abilities(responses, beta, "ml").ability
    usual = item_statistics(responses, beta, theta)
    squares = usual.mean_squares
    columns: dict[str, NDArray[Any]] = {
        "infit": squares.infit,
        "infit_z": squares.infit_z,
        "outfit": squares.outfit,
        "outfit_z": squares.outfit_z,
    }
    given = conditional_statistics(responses, beta) if conditional else None
    if given:
        columns |= {
            "infit_conditional": given.mean_squares.infit,
            "infit_conditional_z": given.mean_squares.infit_z,
            "outfit_conditional": given.mean_squares.outfit,
            "outfit_conditional_z": given.mean_squares.outfit_z,
        }
    columns |= {
        "point_measure": usual.point_measure,
        "point_measure_expected": usual.point_measure_expected,
        "exact_match": usual.exact_match,
        "exact_match_expected": usual.exact_match_expected,
        "displacement": usual.displacement,
    }
    if given:
        columns["displacement_conditional"] = given.displacement
    if bootstrap:
        columns |= _limits(responses, beta, bootstrap, level, sample, seed, fit._progress)
    estimated = np.isin(fit.status_, WITH_FIT)
    for name, values in columns.items():
        columns[name] = np.where(estimated, values, "" if values.dtype == object else np.nan)
    return {"item": fit.item_labels_, "n": squares.n.astype(np.int64), **columns}


def _limits(
    responses: Responses,
    beta: Floats,
    replicates: int,
    level: float,
    sample: int | None,
    seed: int,
    progress: Callable[[str], None] | None,
) -> dict[str, NDArray[Any]]:
    def statistic(answers: Responses, difficulty: Floats) -> dict[str, Floats]:
        squares = conditional_statistics(answers, difficulty).mean_squares
        return {"infit_conditional": squares.infit, "outfit_conditional": squares.outfit}

    bands = run_bootstrap(
        responses,
        beta,
        statistic,
        replicates=replicates,
        level=level,
        sample=sample,
        seed=seed,
        progress=progress,
    )
    columns: dict[str, NDArray[Any]] = {}
    for name, found in bands.items():
        columns |= {f"{name}_low": found.low, f"{name}_high": found.high, f"{name}_p": found.p}
    infit = bands["infit_conditional"]
    misfit = np.full(len(beta), "", dtype=object)
    misfit[infit.observed > infit.high] = "underfit"
    misfit[infit.observed < infit.low] = "overfit"
    return {**columns, "misfit": misfit}
