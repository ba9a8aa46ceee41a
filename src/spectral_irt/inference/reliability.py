"""How well the items tell persons apart, and persons the items: separation, reliability, information, targeting."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.persons.abilities import Abilities
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
    calibration: Calibration,
    responses: Responses,
    found: Abilities,
    *,
    ml: Abilities,
    person_infit: Floats,
    item_infit: Floats,
) -> Reliability:
    """Separation and reliability of persons and items, KR-20, and targeting.

    Parameters
    ----------
    calibration, responses
        The responses in the order of the calibration's items.
    found : Abilities
        Winsteps and eRm use maximum likelihood.
    ml : Abilities
        By maximum likelihood.
    person_infit, item_infit : float arrays
        Mean squares at `found` and at `ml`.

    References
    ----------
    Wright & Masters (1982), Rating Scale Analysis, ch. 5; Kuder & Richardson (1937), Psychometrika 2.
    """
    beta, se, ok = calibration.difficulty, calibration.se, calibration.measured
    mixed = (found.n > 0) & ~found.extreme
    answered = found.n > 0
    eap = None
    if found.method == "eap":
        spread, error = found.ability[answered].var(), np.mean(found.se[answered] ** 2)
        eap = float(spread / (spread + error))
    persons = separation(found.ability[mixed], found.se[mixed])
    real, real_items = found.se * np.sqrt(np.fmax(person_infit, 1)), se * np.sqrt(np.fmax(item_infit, 1))
    return Reliability(
        persons=persons,
        persons_real=separation(found.ability[mixed], real[mixed]),
        persons_with_extremes=separation(found.ability[answered], found.se[answered]),
        items=separation(beta[ok], se[ok]),
        items_real=separation(beta[ok], real_items[ok]),
        sep_rel=separation(ml.ability[mixed], ml.se[mixed]).reliability,
        eap_reliability=eap,
        kr20=kr20(responses),
        n_persons=int(answered.sum()),
        n_lowest=int(np.sum(found.extreme & (found.score == 0))),
        n_highest=int(np.sum(found.extreme & (found.score > 0))),
        targeting=persons.mean - float(beta[ok].mean()) if ok.any() else float("nan"),
        method=found.method,
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
