"""The persons as a table, and the table from raw scores to abilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import OptionError, listed
from spectral_irt.estimators.base import RaschEstimator, make_table
from spectral_irt.persons.abilities import abilities, score_abilities
from spectral_irt.persons.align import align
from spectral_irt.persons.residuals import person_mean_squares
from spectral_irt.responses import Responses, as_responses


def scored(fit: RaschEstimator, data: Any, what: str, ignore_unknown: bool = False) -> Responses:
    """The responses that a method of a fitted estimator was given, in terms of its items."""
    fit._require_fit()
    if data is None:
        raise OptionError(
            f"{what} needs the responses, which a fitted estimator does not keep; "
            f"call fit.{what}(responses) with those it was fitted to, or with new ones."
        )
    return align(fit, as_responses(data, threshold=fit.threshold), ignore_unknown)


def persons(
    fit: RaschEstimator,
    responses: Any = None,
    method: str = "wle",
    *,
    prior_mean: float | None = None,
    prior_sd: float | None = None,
    ignore_unknown: bool = False,
) -> Any:
    """The persons as a table: `user, n, score, ability, se, extreme, infit, outfit, infit_z, outfit_z`.

    Parameters
    ----------
    fit : fitted estimator
    responses : Responses, array or dataframe
        Of the persons who were in the calibration, or of others; items are matched by label.
    method : "wle", "ml" or "eap"
        Warm's weighted likelihood (default), maximum likelihood, or the mean under a normal prior; see `abilities`.
    prior_mean, prior_sd : float, optional
        The prior of "eap"; estimated from the responses unless given.
    ignore_unknown : bool
        Leave out answers to items that the calibration does not have; by default they are an error.

    Notes
    -----
    `n` answers to items with a difficulty, `score` of them right. `extreme`: everything right or everything wrong; the
    ability is then infinite under "ml", and finite but mostly the method's under the others. `infit` and `outfit` are
    mean squares at the reported ability (1 = as the model expects, above: erratic, below: too regular), missing for
    extreme scores.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> answers = datasets.load_lsat()
    >>> table = SpectralRasch().fit(answers).persons(answers)
    >>> table["ability"].to_list()[0] < table["ability"].to_list()[-1]
    True
    """
    answers = scored(fit, responses, "persons", ignore_unknown)
    return make_table(
        person_columns(fit, answers, method, prior_mean=prior_mean, prior_sd=prior_sd), answers.frame_kind
    )


def person_columns(
    fit: RaschEstimator,
    responses: Responses,
    method: str = "wle",
    *,
    prior_mean: float | None = None,
    prior_sd: float | None = None,
) -> dict[str, NDArray[Any]]:
    """The columns of `persons`, for responses that are already aligned with the calibration."""
    beta = fit.difficulty_
    found = abilities(responses, beta, method, prior_mean=prior_mean, prior_sd=prior_sd)
    fits = person_mean_squares(responses, beta, found.ability)
    return {
        "user": responses.users,
        "n": found.n,
        "score": found.score,
        "ability": found.ability,
        "se": found.se,
        "extreme": found.extreme,
        "infit": fits.infit,
        "outfit": fits.outfit,
        "infit_z": fits.infit_z,
        "outfit_z": fits.outfit_z,
    }


def score_table(fit: RaschEstimator, items: Sequence[Any] | None = None) -> Any:
    """From raw score to ability on a complete set of items: `score, ability, se, ability_ml, se_ml`.

    Given the items answered, the score is all that an ability depends on, so this table scores a paper form by hand.

    Parameters
    ----------
    fit : fitted estimator
    items : sequence of labels, optional
        The items of the form; by default all that have a difficulty.

    Notes
    -----
    `ability` is Warm's weighted likelihood estimate, finite for every score; `ability_ml` the maximum likelihood
    estimate, infinite for the lowest and the highest.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> table = SpectralRasch().fit(datasets.load_lsat()).score_table()
    >>> table["score"].to_list()
    [0, 1, 2, 3, 4, 5]
    """
    beta = form_difficulty(fit, items)
    ability, se = score_abilities(beta)
    ability_ml, se_ml = score_abilities(beta, warm=False)
    columns = {
        "score": np.arange(len(beta) + 1),
        "ability": ability,
        "se": se,
        "ability_ml": ability_ml,
        "se_ml": se_ml,
    }
    return make_table(columns, fit.frame_kind_)


def form_difficulty(fit: RaschEstimator, items: Sequence[Any] | None) -> NDArray[np.float64]:
    """Difficulties of the items of a form, all of which must have one; by default of every item that has one."""
    fit._require_fit()
    beta = fit.difficulty_
    if items is None:
        return beta[np.isfinite(beta)]
    chosen = list(items)
    place = fit._places_of(chosen)
    if len(np.unique(place)) < len(chosen):
        raise OptionError("items names the same item more than once; name each once.")
    beta = beta[place]
    without = [label for label, b in zip(chosen, beta, strict=True) if not np.isfinite(b)]
    if without:
        raise OptionError(f"items without a difficulty: {listed(without)}. Leave them out of the form.")
    return beta
