"""How well the items tell persons apart, and persons the items: separation, reliability, information, targeting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt.errors import OptionError
from spectral_irt.estimators.base import RaschEstimator, make_table
from spectral_irt.inference.fit_statistics import WITH_FIT, item_statistics
from spectral_irt.persons.abilities import abilities
from spectral_irt.persons.residuals import person_mean_squares
from spectral_irt.persons.table import form_difficulty, scored
from spectral_irt.responses import Responses
from spectral_irt.responses.block import Floats


@dataclass(frozen=True)
class Separation:
    """How far measures differ beyond their errors.

    Attributes
    ----------
    n : int
        Measures counted.
    mean, sd : float
        Of the measures (sd with n - 1).
    rmse : float
        Root mean square of the standard errors.
    true_sd : float
        sqrt(sd^2 - rmse^2): the spread without the errors; 0 if these explain all of it.
    separation : float
        true_sd / rmse: the spread in units of error.
    strata : float
        (4 separation + 1) / 3: levels that can be told apart, three errors from each other.
    reliability : float
        (sd^2 - rmse^2) / sd^2: the share of the spread that is not error. Negative if errors exceed the spread.
    """

    n: int
    mean: float
    sd: float
    rmse: float
    true_sd: float
    separation: float
    strata: float
    reliability: float


def separation(measure: Floats, se: Floats) -> Separation:
    """Separation of measures with these standard errors; those that are not finite are left out.

    With maximum likelihood abilities of users without extreme scores, `reliability` is eRm's `SepRel`.

    >>> separation(np.array([-1.0, 0.0, 1.0]), np.array([0.5, 0.5, 0.5])).reliability
    0.75
    """
    known = np.isfinite(measure) & np.isfinite(se)
    measure, se = measure[known], se[known]
    if len(measure) < 2:
        return Separation(len(measure), *(float("nan") for _ in range(7)))
    variance, error = float(measure.var(ddof=1)), float(np.mean(se**2))
    true_sd = max(variance - error, 0.0) ** 0.5
    ratio = true_sd / error**0.5 if error > 0 else float("inf")
    return Separation(
        n=len(measure),
        mean=float(measure.mean()),
        sd=variance**0.5,
        rmse=error**0.5,
        true_sd=true_sd,
        separation=ratio,
        strata=(4 * ratio + 1) / 3,
        reliability=(variance - error) / variance if variance > 0 else float("nan"),
    )


@dataclass(frozen=True)
class Reliability:
    """What `reliability` found.

    Attributes
    ----------
    persons, items : Separation
        "Model" separation: with standard errors that hold if the data fit the model. Extreme scores are left out.
    persons_real, items_real : Separation
        "Real": each standard error times sqrt(infit) where infit is above 1, as if all misfit were noise.
    persons_with_extremes : Separation
        Model separation of everybody who has a finite measure.
    sep_rel : float
        eRm's SepRel: person reliability with maximum likelihood abilities.
    eap_reliability : float or None
        var(EAP) / (var(EAP) + mean posterior variance); for method "eap".
    kr20 : float or None
        Kuder-Richardson 20, which is Cronbach's alpha of right and wrong; for complete data only.
    n_persons, n_lowest, n_highest : int
        Persons with answers, and of these with everything wrong, everything right.
    targeting : float
        Mean ability minus mean difficulty: near 0 the items are about as hard as the persons are able.
    method : str
        Of the abilities.
    """

    persons: Separation
    persons_real: Separation
    persons_with_extremes: Separation
    items: Separation
    items_real: Separation
    sep_rel: float
    eap_reliability: float | None
    kr20: float | None
    n_persons: int
    n_lowest: int
    n_highest: int
    targeting: float
    method: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __repr__(self) -> str:
        rows = [("persons", self.persons), ("persons, real", self.persons_real)]
        rows += [("items", self.items), ("items, real", self.items_real)]
        lines = [f"{'':14}{'n':>9}{'mean':>8}{'sd':>7}{'rmse':>7}{'separation':>12}{'strata':>8}{'reliability':>13}"]
        lines += [
            f"{name:14}{s.n:>9,}{s.mean:>8.2f}{s.sd:>7.2f}{s.rmse:>7.2f}{s.separation:>12.2f}{s.strata:>8.2f}"
            f"{s.reliability:>13.3f}"
            for name, s in rows
        ]
        extra = [f"KR-20 {self.kr20:.3f}"] if self.kr20 is not None else []
        extra += [f"EAP reliability {self.eap_reliability:.3f}"] if self.eap_reliability is not None else []
        extra += [
            f"SepRel {self.sep_rel:.3f}",
            f"targeting {self.targeting:+.2f}",
            f"{self.n_lowest:,} all wrong",
            f"{self.n_highest:,} all right of {self.n_persons:,}",
        ]
        return "\n".join([*lines, ", ".join(extra)])


def reliability(
    fit: RaschEstimator,
    responses: Any = None,
    method: str = "wle",
    *,
    prior_mean: float | None = None,
    prior_sd: float | None = None,
    ignore_unknown: bool = False,
) -> Reliability:
    """Separation and reliability of persons and items, KR-20, and targeting.

    Parameters
    ----------
    fit : fitted estimator
    responses : Responses, array or dataframe
    method : "wle", "ml" or "eap"
        Of the abilities. Winsteps and eRm use maximum likelihood.
    prior_mean, prior_sd : float, optional
        The prior of "eap"; estimated from the responses unless given.
    ignore_unknown : bool
        Leave out answers to items that the calibration does not have; by default they are an error.

    References
    ----------
    Wright & Masters (1982), Rating Scale Analysis, ch. 5; Kuder & Richardson (1937), Psychometrika 2.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> answers = datasets.load_lsat()
    >>> round(SpectralRasch().fit(answers).reliability(answers).kr20, 3)
    0.295
    """
    answers = scored(fit, responses, "reliability", ignore_unknown)
    beta = fit.difficulty_
    ml = abilities(answers, beta, "ml")
    prior = {"prior_mean": prior_mean, "prior_sd": prior_sd}
    found = ml if method == "ml" else abilities(answers, beta, method, **prior)
    mixed = (found.n > 0) & ~found.extreme
    infit = person_mean_squares(answers, beta, found.ability).infit
    person_infit = np.sqrt(np.fmax(infit, 1))
    ok = np.isfinite(beta) & np.isin(fit.status_, WITH_FIT)
    item_infit = np.sqrt(np.fmax(item_statistics(answers, beta, ml.ability).mean_squares.infit, 1))
    answered = found.n > 0
    eap = None
    if method == "eap":
        spread, error = found.ability[answered].var(), np.mean(found.se[answered] ** 2)
        eap = float(spread / (spread + error))
    persons = separation(found.ability[mixed], found.se[mixed])
    items = separation(beta[ok], fit.se_[ok])
    return Reliability(
        persons=persons,
        persons_real=separation(found.ability[mixed], (found.se * person_infit)[mixed]),
        persons_with_extremes=separation(found.ability[answered], found.se[answered]),
        items=items,
        items_real=separation(beta[ok], (fit.se_ * item_infit)[ok]),
        sep_rel=separation(ml.ability[mixed], ml.se[mixed]).reliability,
        eap_reliability=eap,
        kr20=kr20(answers),
        n_persons=int(answered.sum()),
        n_lowest=int(np.sum(found.extreme & (found.score == 0))),
        n_highest=int(np.sum(found.extreme & (found.score > 0))),
        targeting=persons.mean - float(beta[ok].mean()) if ok.any() else float("nan"),
        method=method,
    )


def kr20(responses: Responses) -> float | None:
    """Kuder-Richardson 20 where everybody with answers answered every item; None otherwise.

    m / (m - 1) (1 - sum p (1 - p) / variance of the scores)
    """
    asked = responses.item_counts > 0
    m, n = int(asked.sum()), int(np.sum(responses.counts > 0))
    if m < 2 or n < 2 or responses.n_responses != m * n:
        return None
    share = responses.item_scores[asked] / n
    variance = float(responses.scores[responses.counts > 0].var())
    if variance == 0:
        return None
    return float(m / (m - 1) * (1 - np.sum(share * (1 - share)) / variance))


# --------------------------------------------------------------------------- test information


def information(difficulty: Floats, theta: ArrayLike) -> Floats:
    """sum_i p_i (1 - p_i) at each ability: what the items tell about somebody there.

    >>> information(np.zeros(4), [0.0]).tolist()
    [1.0]
    """
    at = np.atleast_1d(np.asarray(theta, dtype=np.float64))
    if at.ndim > 1:
        raise OptionError(f"theta has {at.ndim} dimensions; give one ability or a list of them.")
    total = np.empty(len(at))
    rows = max(1, 1_000_000 // max(len(difficulty), 1))
    for start in range(0, len(at), rows):
        small = np.exp(-np.abs(difficulty - at[start : start + rows, None]))
        total[start : start + rows] = (small / (1 + small) ** 2).sum(axis=1)
    return total


def test_information(
    fit: RaschEstimator,
    theta: ArrayLike | None = None,  # noqa: PT028
    items: Sequence[Any] | None = None,  # noqa: PT028
) -> Any:
    """The test information function as a table: `ability, information, se`.

    I(theta) = sum_i p_i (1 - p_i), and 1 / sqrt(I) is the standard error of an ability there.

    Parameters
    ----------
    fit : fitted estimator
    theta : array, optional
        Abilities; by default 121 of them, from two logits below the easiest item to two above the hardest.
    items : sequence of labels, optional
        The items of a form; by default all that have a difficulty.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> fit = SpectralRasch().fit(datasets.load_lsat())
    >>> fit.test_information([0.0])["information"].round(2).to_list()
    [1.06]
    """
    beta = form_difficulty(fit, items)
    if theta is None:
        theta = np.linspace(beta.min() - 2, beta.max() + 2, 121)
    at = np.atleast_1d(np.asarray(theta, dtype=np.float64))
    found = information(beta, at)
    with np.errstate(divide="ignore"):
        return make_table({"ability": at, "information": found, "se": 1 / np.sqrt(found)}, fit.frame_kind_)


test_information.__test__ = False  # type: ignore[attr-defined]  # or pytest collects it
