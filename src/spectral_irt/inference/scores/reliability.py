"""How well the items tell persons apart, and persons the items: reliability, separation, targeting.

EAP (marginal) reliability is the squared correlation of posterior means with the abilities that they estimate,

    rho = var(EAP) / (var(EAP) + mean posterior variance),

and separation compares the standard deviation of estimates with the root mean square of their errors (`Separation`).

`study.reliability` calls `reliability`; banks, groups and scales of report ask for `marginal_reliability`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import OptionError
from spectral_irt.inference.items.classical import cronbach_alpha
from spectral_irt.numerics import chosen_or_none
from spectral_irt.persons.abilities import Abilities, abilities, items_met
from spectral_irt.text import count, whole_percent

SAME_LEVEL = 1e-9  # logits: people whose items differ by less met the same
LEVEL_DIGITS = 9  # of a mean difficulty: two sets of items do not agree in so many by chance
MOSTLY_SHARED = 0.5  # of the people met the same items as somebody else: else there are no forms to speak of
TARGETED = 0.3  # a correlation of ability with the difficulty of the items met from which it is said
LEAST_CORRELATED = 30  # people from whom that is worth saying
# Beyond so many responses a sample of the people is asked. From n of them the population is known to about a hundredth,
# and the reliability rho to (1 - rho) sqrt(2 / n): where people are few each has many answers, and rho is near 1.
ENOUGH_RESPONSES = 100_000
LEAST_SAMPLE = 200  # people, however many answers each has
LEAST_KEPT = 1e-9  # share of a deviation that a posterior mean keeps, where answers say nothing
NOT_DEFINED = "not defined: the measures differ no more than their errors"


@dataclass(frozen=True)
class Separation:
    """How far `n` measures of this mean and standard deviation (with n - 1) differ beyond their errors, whose root mean
    square is `rmse`: `true_sd` = sqrt(sd^2 - rmse^2), 0 if errors explain all of it; `separation` = true_sd / rmse;
    `strata` = (4 separation + 1) / 3, levels that can be told apart; `reliability` = (sd^2 - rmse^2) / sd^2,
    as eRm and TAM have it: below zero it is none, and texts say so (`unseen`)."""

    n: int
    mean: float
    sd: float
    rmse: float
    true_sd: float
    separation: float
    strata: float
    reliability: float

    @property
    def unseen(self) -> bool:
        """Whether the measures differ less than their errors would make them differ."""
        return self.sd < self.rmse


def separation(measure: Floats, se: Floats, weights: Floats | None = None) -> Separation:
    """Separation of measures with these standard errors, and perhaps weights; those that are not finite are left out.

    With maximum likelihood abilities of people without extreme scores, `reliability` is eRm's `SepRel`.
    """
    has_error = np.isfinite(measure) & np.isfinite(se)
    measure = measure[has_error]
    se = se[has_error]
    if weights is not None:
        weights = weights[has_error]
    n = len(measure)
    if n < 2:
        return Separation(n, *(float("nan") for _ in range(7)))
    mean, sd = mean_and_sd(measure, weights)
    variance = sd**2
    error_variance = float(np.average(se**2, weights=weights))
    rmse = error_variance**0.5
    true_sd = max(variance - error_variance, 0.0) ** 0.5
    ratio = true_sd / rmse if error_variance > 0 else float("inf")
    return Separation(
        n=n,
        mean=mean,
        sd=sd,
        rmse=rmse,
        true_sd=true_sd,
        separation=ratio,
        strata=(4 * ratio + 1) / 3,
        reliability=(variance - error_variance) / variance if variance > 0 else float("nan"),
    )


@dataclass(frozen=True)
class Reliability:
    """What `reliability` found. To quote one number, take `eap_reliability`.

    Attributes
    ----------
    eap_reliability : float or None
        var(EAP) / (var(EAP) + mean posterior variance), whatever the method of the abilities: what to expect of the
        squared correlation between posterior means and abilities. Extreme scores count. None where no population can be
        estimated: too few people, who do not differ.
    eap_people, population_mean, population_sd : int, float or None, float or None
        People it was computed from (a sample where there are very many), and the normal population estimated from them.
    kr20, alpha : float or None
        Kuder-Richardson 20 of right and wrong, Cronbach's alpha of ordered answers: the reliability of the raw score,
        over the people who answered every item; None where these are fewer than half.
    persons, items, persons_real, items_real, persons_with_extremes : Separation
        "Model" separation: with standard errors that hold if the data fit the model; "real": each of them times
        sqrt(infit) where infit is above 1, as if all misfit were noise. Extreme scores are left out of the first four.
    sep_rel : float
        eRm's SepRel: person reliability with maximum likelihood abilities.
    n_persons, n_lowest, n_highest : int
        Persons with answers, and of these with everything wrong, everything right.
    targeting : float
        Mean ability minus mean difficulty: near 0 the items are about as hard as the persons are able.
    form_correlation : float or None
        Of abilities with the mean difficulty of the items that each person met; None where everybody met the same.
        Where it is high (a vertical scale, targeted forms) people differ between forms, and all of these numbers are
        about everybody together: among people who met the same items reliability is lower.
    same_items : float or None
        The share of people who met the same items as somebody else; None of an adaptive design, and where all met the
        same.
    method : str
        Of the abilities whose separation this is.
    """

    eap_reliability: float | None
    eap_people: int
    population_mean: float | None
    population_sd: float | None
    kr20: float | None
    persons: Separation
    persons_real: Separation
    persons_with_extremes: Separation
    items: Separation
    items_real: Separation
    sep_rel: float
    n_persons: int
    n_lowest: int
    n_highest: int
    targeting: float
    form_correlation: float | None
    method: str
    alpha: float | None = None
    same_items: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def within_forms(self) -> float | None:
        """About the EAP reliability among people who met equally hard items: the spread that goes with these taken off.

        With v the variance of abilities, and e = v (1 - reliability) / reliability that of errors, it is w / (w + e)
        for w = v - r^2 variance of the measures, r their correlation with the difficulty of the items met. None where
        most people met items of their own, as in an adaptive test: these follow the answers, so that nobody could have
        met the same with another ability.
        """
        r = self.form_correlation
        rho = self.eap_reliability
        sd = self.population_sd
        if r is None or rho is None or sd is None or not 0 < rho < 1:
            return None
        if self.same_items is None or self.same_items < MOSTLY_SHARED:
            return None
        variance_within = max(sd**2 - r**2 * self.persons_with_extremes.sd**2, 0.0)
        return variance_within / (variance_within + sd**2 * (1 - rho) / rho)

    def extremes(self) -> str:
        """How many persons have an extreme score, with floor and ceiling in percent of the persons with answers."""
        text = count(self.n_lowest + self.n_highest, "extreme score")
        effects = {"floor": self.n_lowest, "ceiling": self.n_highest}
        shares = [f"{name} {whole_percent(n, self.n_persons)}" for name, n in effects.items() if n]
        if shares:
            text += f" ({', '.join(shares)})"
        return text

    def _coefficients_in_words(self, digits: int) -> str:
        coefficients = {"EAP reliability": self.eap_reliability, "KR-20": self.kr20, "alpha": self.alpha}
        return ", ".join(f"{name} {value:.{digits}f}" for name, value in coefficients.items() if value is not None)

    def text(self) -> str:
        """Every reliability of the people under its name, the one to quote first; what does not exist is left out."""
        parts = [self._coefficients_in_words(2), self._separation_text()]
        r = self.form_correlation
        if r is not None and r > TARGETED and self.n_persons >= LEAST_CORRELATED:
            text = f"high scorers met harder items (r = {r:.2f})"
            if self.within_forms is not None:
                text += f": about {self.within_forms:.2f} among people with the same items"
            parts.append(text)
        return "; ".join(filter(None, parts))

    def _separation_text(self) -> str:
        name = f"{self.method.upper()} separation reliability"
        if self.method == "eap":  # of posterior means, spread less error says nothing
            return ""
        if self.persons.unseen:
            return f"{name} {NOT_DEFINED}"
        if not np.isfinite(self.persons.reliability):
            return ""
        text = f"{name} {self.persons.reliability:.2f} without extreme scores"
        if self.method == "wle" and not self.persons_with_extremes.unseen:  # under "ml" extreme scores are infinite
            text += f", {self.persons_with_extremes.reliability:.2f} with them"
        return text

    def __repr__(self) -> str:
        separations = {
            "persons": self.persons,
            "with extremes": self.persons_with_extremes,
            "persons, real": self.persons_real,
            "items": self.items,
            "items, real": self.items_real,
        }
        lines = [
            self._coefficients_in_words(3) or "no EAP reliability",
            f"{'':14}{'n':>9}{'mean':>8}{'sd':>7}{'rmse':>7}{'separation':>12}{'strata':>8}{'reliability':>13}",
        ]
        for name, s in separations.items():
            lines.append(
                f"{name:14}{s.n:>9,}{s.mean:>8.2f}{s.sd:>7.2f}{s.rmse:>7.2f}{s.separation:>12.2f}{s.strata:>8.2f}"
                f"{s.reliability:>13.3f}"
            )
        extreme = f"{self.n_lowest:,} all wrong, {self.n_highest:,} all right of {self.n_persons:,}"
        lines.append(f"SepRel {self.sep_rel:.3f}, targeting {self.targeting:+.2f}, {extreme}")
        return "\n".join(lines)


def reliability(
    calibration: Calibration,
    responses: Responses,
    estimates: Abilities,
    *,
    ml: Abilities,
    eap: Marginal | None,
    person_infit: Floats,
    item_infit: Floats,
    weights: Floats | None = None,
) -> Reliability:
    """EAP reliability, KR-20, separation of persons and items, and targeting; with person infit at the abilities
    `estimates`, item infit at those by maximum likelihood (`ml`), and perhaps weights of the people.

    EAP reliability is what a reliability should be, the squared correlation of estimates with the truth, on short tests
    too. The separation reliability of likelihood estimates (WLE, ML) is not: its errors come from the information at
    each estimate, and exceed the spread where few items lie near (docs/explanation/analysis.md has simulations). All of
    them depend on how much these people differ: for a grade, analyze its people alone.

    References
    ----------
    Adams (2005), Studies in Educational Evaluation 31, 162-172; Wright & Masters (1982), Rating Scale Analysis, ch. 5;
    Kuder & Richardson (1937), Psychometrika 2.
    """
    items = calibration.own_items
    measured = items.measured
    answered = estimates.n > 0
    mixed = answered & ~estimates.extreme
    # What is left out of a separation has no error there.
    person_se = np.where(mixed, estimates.se, np.nan)
    item_se = np.where(measured & (items.status != "anchored"), items.se, np.nan)  # anchors have no error here
    persons = separation(estimates.ability, person_se, weights)
    targeting = float("nan")
    if measured.any():
        targeting = persons.mean - float(items.difficulty[measured].mean())
    alpha = cronbach_alpha(responses, weights)[0]
    forms = _forms(calibration, responses, estimates.ability)
    return Reliability(
        eap_reliability=None if eap is None else eap.reliability,
        eap_people=0 if eap is None else eap.n,
        population_mean=None if eap is None else eap.mean,
        population_sd=None if eap is None else eap.sd,
        kr20=alpha if calibration.layout.binary else None,
        alpha=None if calibration.layout.binary else alpha,
        persons=persons,
        persons_real=separation(estimates.ability, person_se * np.sqrt(np.fmax(person_infit, 1)), weights),
        persons_with_extremes=separation(estimates.ability, np.where(answered, estimates.se, np.nan), weights),
        items=separation(items.difficulty, item_se),
        items_real=separation(items.difficulty, item_se * np.sqrt(np.fmax(item_infit, 1))),
        sep_rel=separation(ml.ability, np.where(mixed, ml.se, np.nan), weights).reliability,
        n_persons=int(answered.sum()),
        n_lowest=int(np.sum(estimates.extreme & (estimates.score == 0))),
        n_highest=int(np.sum(estimates.extreme & (estimates.score > 0))),
        targeting=targeting,
        form_correlation=forms.correlation,
        method=estimates.method,
        same_items=forms.same_items,
    )


class _FormStatistics(NamedTuple):
    """`form_correlation` and `same_items` of `Reliability`."""

    correlation: float | None
    same_items: float | None


def _forms(calibration: Calibration, responses: Responses, ability: Floats) -> _FormStatistics:
    met = items_met(responses, calibration.thresholds)
    both = np.isfinite(met) & np.isfinite(ability)
    met = met[both]
    ability = ability[both]
    if len(met) < 2 or np.ptp(met) < SAME_LEVEL or np.ptp(ability) < SAME_LEVEL:
        return _FormStatistics(None, None)
    correlation = float(np.corrcoef(met, ability)[0, 1])
    if calibration.adaptive:
        return _FormStatistics(correlation, None)
    # People with the same items have the same mean difficulty of these, to the last digits.
    _, form, n_people = np.unique(met.round(LEVEL_DIGITS), return_inverse=True, return_counts=True)
    return _FormStatistics(correlation, float(np.mean(n_people[form] > 1)))


def mean_and_sd(values: Floats, weights: Floats | None = None) -> tuple[float, float]:
    """Mean and standard deviation (with n - 1), each value counting by its weight."""
    n = len(values)
    mean = float(np.average(values, weights=weights))
    if n < 2:
        return mean, np.nan
    variance = np.average((values - mean) ** 2, weights=weights) * n / (n - 1)
    return mean, float(np.sqrt(variance))


@dataclass(frozen=True)
class Marginal:
    """What `marginal_reliability` found, from n people: var(EAP) / (var(EAP) + mean posterior variance), the normal
    population under which the answers are most likely, and the standard deviation of the posterior means."""

    reliability: float
    mean: float
    sd: float
    n: int
    eap_sd: float

    def with_rater_errors(
        self, plain: Abilities, severities: Abilities, all_errors: Abilities, weights: Floats | None
    ) -> Marginal:
        """The same from ratings, with what errors of severities and halo add to the errors of posterior means.

        `plain` have posterior standard deviations only, `severities` the errors of severities too, `all_errors` halo as
        well. With s^2 the variance of the population, and c = 1 - posterior variance / s^2 the share of a deviation
        that a posterior mean keeps, errors of severities add a / s^2, a their variance in posterior means. Halo is
        among the variance s^2 too, for people seem to differ by it: it takes a / (c s^2).
        """
        rated = plain.n > 0
        rated_weights = chosen_or_none(weights, rated)

        def error_variance(estimates: Abilities) -> float:
            return float(np.average(estimates.se[rated] ** 2, weights=rated_weights))

        posterior = error_variance(plain)
        with_severities = error_variance(severities)
        with_halo = error_variance(all_errors)
        variance = self.sd**2
        c = max(1 - posterior / variance, LEAST_KEPT)
        lost = (with_severities - posterior) / variance + (with_halo - with_severities) / (c * variance)
        return replace(self, reliability=max(self.reliability - lost, 0.0))


def sample_of_people(responses: Responses) -> Ints:
    """Positions of the people who answered something; of very many, a sample that is taken evenly over the data."""
    people = np.flatnonzero(responses.counts)
    if not len(people):
        return people
    most = max(LEAST_SAMPLE, int(ENOUGH_RESPONSES / max(responses.counts[people].mean(), 1)))
    if len(people) <= most:
        return people
    return people[np.linspace(0, len(people) - 1, most).astype(np.int64)]


def marginal_reliability(responses: Responses, difficulty: Floats, weights: Floats | None = None) -> Marginal | None:
    """EAP reliability under a normal population estimated from these people by marginal maximum likelihood.

    Everybody with answers counts, extreme scores too, by their weights. Where there are very many people it comes from
    a sample of them, taken evenly over the data. None where a population cannot be estimated: too few people, who do
    not differ.

    References
    ----------
    Bechger, Maris, Verstralen & Béguin (2003), Applied Psychological Measurement 27, 319-334; Adams (2005), Studies in
    Educational Evaluation 31, 162-172.
    """
    chosen = sample_of_people(responses)
    people = responses
    if len(chosen) < responses.n_persons:
        people = responses.take_persons(chosen)
        if len(chosen) < np.count_nonzero(responses.counts):  # a sample
            people = people.in_one_block()
    if weights is not None:
        weights = weights[chosen]
    try:
        posterior = abilities(people, difficulty, "eap", weights=weights)
    except OptionError:  # too few people, who do not differ
        return None
    answered = posterior.n > 0
    if posterior.prior is None or answered.sum() < 2:
        return None
    if weights is not None:
        weights = weights[answered]
    ability = posterior.ability[answered]
    eap_variance = float(np.average((ability - np.average(ability, weights=weights)) ** 2, weights=weights))
    error_variance = float(np.average(posterior.se[answered] ** 2, weights=weights))
    mean, sd = posterior.prior
    return Marginal(
        reliability=eap_variance / (eap_variance + error_variance),
        mean=mean,
        sd=sd,
        n=int(answered.sum()),
        eap_sd=eap_variance**0.5,
    )
