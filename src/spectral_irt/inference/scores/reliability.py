"""How well the items tell persons apart, and persons the items: reliability, separation, targeting.

EAP (marginal) reliability is the squared correlation of posterior means with the abilities that they estimate.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import OptionError
from spectral_irt.inference.items.classical import cronbach_alpha
from spectral_irt.persons.abilities import Abilities, abilities, items_met
from spectral_irt.text import count, whole_percent

SAME = 1e-9  # logits: people whose items differ by less met the same
DIGITS = 9  # of a mean difficulty: two sets of items do not agree in so many by chance
MOSTLY_SHARED = 0.5  # of the people met the same items as somebody else: else there are no forms to speak of
TARGETED, FEW = 0.3, 30  # a correlation that is said, and people from whom it is worth saying
# Beyond so many responses a sample of the people is asked. From n of them the population is known to about a hundredth,
# and the reliability rho to (1 - rho) sqrt(2 / n): where people are few each has many answers, and rho is near 1.
ENOUGH = 100_000
NOT_DEFINED = "not defined: the measures differ no more than their errors"
LEAST_SAMPLE = 200  # people, however many answers each has


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
    known = np.isfinite(measure) & np.isfinite(se)
    weights = None if weights is None else weights[known]
    measure, se = measure[known], se[known]
    if len(measure) < 2:
        return Separation(len(measure), *(float("nan") for _ in range(7)))
    mean, sd = mean_and_sd(measure, weights)
    variance, error = sd**2, float(np.average(se**2, weights=weights))
    true_sd = max(variance - error, 0.0) ** 0.5
    ratio = true_sd / error**0.5 if error > 0 else float("inf")
    reliable = (variance - error) / variance if variance > 0 else float("nan")
    return Separation(len(measure), mean, sd, error**0.5, true_sd, ratio, (4 * ratio + 1) / 3, reliable)


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
        r, rho, sd = self.form_correlation, self.eap_reliability, self.population_sd
        if r is None or rho is None or sd is None or not 0 < rho < 1:
            return None
        if self.same_items is None or self.same_items < MOSTLY_SHARED:
            return None
        rest = max(sd**2 - r**2 * self.persons_with_extremes.sd**2, 0.0)
        return rest / (rest + sd**2 * (1 - rho) / rho)

    def extremes(self) -> str:
        """How many persons have an extreme score, with floor and ceiling in percent of the persons with answers."""
        n = self.n_lowest + self.n_highest
        effects = (("floor", self.n_lowest), ("ceiling", self.n_highest))
        shares = [f"{name} {whole_percent(number, self.n_persons)}" for name, number in effects if number]
        return count(n, "extreme score") + (f" ({', '.join(shares)})" if shares else "")

    def _quoted(self, digits: int) -> str:
        parts = []
        for name, value in (("EAP reliability", self.eap_reliability), ("KR-20", self.kr20), ("alpha", self.alpha)):
            parts += [] if value is None else [f"{name} {value:.{digits}f}"]
        return ", ".join(parts)

    def text(self) -> str:
        """Every reliability of the people under its name, the one to quote first; what does not exist is left out."""
        parts = [self._quoted(2)]
        without, everybody = self.persons.reliability, self.persons_with_extremes.reliability
        name = f"{self.method.upper()} separation reliability"
        if self.method == "eap":  # of posterior means, spread less error says nothing
            pass
        elif self.persons.unseen:
            parts.append(f"{name} {NOT_DEFINED}")
        elif np.isfinite(without):
            comparable = self.method == "wle" and not self.persons_with_extremes.unseen  # under "ml" they are infinite
            with_them = f", {everybody:.2f} with them" if comparable else ""
            parts.append(f"{name} {without:.2f} without extreme scores{with_them}")
        r = self.form_correlation
        if r is not None and r > TARGETED and self.n_persons >= FEW:
            within = self.within_forms
            about = "" if within is None else f": about {within:.2f} among people with the same items"
            parts.append(f"high scorers met harder items (r = {r:.2f}){about}")
        return "; ".join(filter(None, parts))

    def __repr__(self) -> str:
        rows = [("persons", self.persons), ("with extremes", self.persons_with_extremes)]
        rows += [("persons, real", self.persons_real), ("items", self.items), ("items, real", self.items_real)]
        lines = [self._quoted(3) or "no EAP reliability"]
        lines += [f"{'':14}{'n':>9}{'mean':>8}{'sd':>7}{'rmse':>7}{'separation':>12}{'strata':>8}{'reliability':>13}"]
        lines += [
            f"{name:14}{s.n:>9,}{s.mean:>8.2f}{s.sd:>7.2f}{s.rmse:>7.2f}{s.separation:>12.2f}{s.strata:>8.2f}"
            f"{s.reliability:>13.3f}"
            for name, s in rows
        ]
        extreme = f"{self.n_lowest:,} all wrong, {self.n_highest:,} all right of {self.n_persons:,}"
        return "\n".join([*lines, f"SepRel {self.sep_rel:.3f}, targeting {self.targeting:+.2f}, {extreme}"])


def reliability(
    calibration: Calibration,
    responses: Responses,
    found: Abilities,
    *,
    ml: Abilities,
    eap: Marginal | None,
    person_infit: Floats,
    item_infit: Floats,
    weights: Floats | None = None,
) -> Reliability:
    """EAP reliability, KR-20, separation of persons and items, and targeting; with person infit at the abilities
    `found`, item infit at those by maximum likelihood (`ml`), and perhaps weights of the people.

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
    beta, se, ok = items.difficulty, items.se, items.measured
    answered = found.n > 0
    mixed = answered & ~found.extreme
    # What is left out of a separation has no error there.
    of_persons, of_items = np.where(mixed, found.se, np.nan), np.where(ok, se, np.nan)
    persons, alpha = separation(found.ability, of_persons, weights), cronbach_alpha(responses, weights)[0]
    real, real_items = of_persons * np.sqrt(np.fmax(person_infit, 1)), of_items * np.sqrt(np.fmax(item_infit, 1))
    met = items_met(responses, calibration.thresholds)
    both = np.isfinite(met) & np.isfinite(found.ability)
    met, able = met[both], found.ability[both]
    same = len(met) < 2 or np.ptp(met) < SAME or np.ptp(able) < SAME
    same_items = None
    if not same and not calibration.adaptive:
        # People with the same items have the same mean difficulty of these, to the last digits.
        _, of_person, people = np.unique(met.round(DIGITS), return_inverse=True, return_counts=True)
        same_items = float(np.mean(people[of_person] > 1))
    return Reliability(
        eap_reliability=None if eap is None else eap.reliability,
        eap_people=0 if eap is None else eap.n,
        population_mean=None if eap is None else eap.mean,
        population_sd=None if eap is None else eap.sd,
        kr20=alpha if calibration.layout.binary else None,
        alpha=None if calibration.layout.binary else alpha,
        persons=persons,
        persons_real=separation(found.ability, real, weights),
        persons_with_extremes=separation(found.ability, np.where(answered, found.se, np.nan), weights),
        items=separation(beta, of_items),
        items_real=separation(beta, real_items),
        sep_rel=separation(ml.ability, np.where(mixed, ml.se, np.nan), weights).reliability,
        n_persons=int(answered.sum()),
        n_lowest=int(np.sum(found.extreme & (found.score == 0))),
        n_highest=int(np.sum(found.extreme & (found.score > 0))),
        targeting=persons.mean - float(beta[ok].mean()) if ok.any() else float("nan"),
        form_correlation=None if same else float(np.corrcoef(met, able)[0, 1]),
        method=found.method,
        same_items=same_items,
    )


def mean_and_sd(values: Floats, weights: Floats | None = None) -> tuple[float, float]:
    """Mean and standard deviation (with n - 1), each value counting by its weight."""
    mean, n = float(np.average(values, weights=weights)), len(values)
    return mean, float(np.sqrt(np.average((values - mean) ** 2, weights=weights) * n / (n - 1))) if n > 1 else np.nan


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
        own = None if weights is None else weights[rated]
        posterior, with_severities, with_halo = (
            float(np.average(found.se[rated] ** 2, weights=own)) for found in (plain, severities, all_errors)
        )
        variance = self.sd**2
        kept = max(1 - posterior / variance, 1e-9)
        lost = (with_severities - posterior) / variance + (with_halo - with_severities) / (kept * variance)
        return replace(self, reliability=max(self.reliability - lost, 0.0))


def sample_of_people(responses: Responses) -> Ints:
    """Positions of the people who answered something; of very many, a sample that is taken evenly over the data."""
    someone = np.flatnonzero(responses.counts)
    most = max(LEAST_SAMPLE, int(ENOUGH / max(responses.counts[someone].mean(), 1))) if len(someone) else 0
    if len(someone) > most:
        someone = someone[np.linspace(0, len(someone) - 1, most).astype(np.int64)]
    return someone


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
        people = people.in_one_block() if len(chosen) < np.count_nonzero(responses.counts) else people
    counts = None if weights is None else weights[chosen]
    try:
        found = abilities(people, difficulty, "eap", weights=counts)
    except OptionError:  # too few people, who do not differ
        return None
    answered = found.n > 0
    if found.prior is None or answered.sum() < 2:
        return None
    counts = None if counts is None else counts[answered]
    mean = np.average(found.ability[answered], weights=counts)
    spread = float(np.average((found.ability[answered] - mean) ** 2, weights=counts))
    error = float(np.average(found.se[answered] ** 2, weights=counts))
    return Marginal(spread / (spread + error), *found.prior, int(answered.sum()), spread**0.5)
