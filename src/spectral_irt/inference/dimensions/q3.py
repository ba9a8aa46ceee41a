"""Local dependence: do some items share more than the ability behind them all?

Two signs of it: pairs of items whose residuals correlate more than the average pair (Yen's Q3), and components of the
residuals that run through many items. Critical values come from the parametric bootstrap of the same design, since no
rule of thumb fits all numbers of items and people.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.errors import DesignError, OptionError, listed
from spectral_irt.inference.dimensions.residual_components import Components, residual_components
from spectral_irt.inference.dimensions.residual_pairs import ALL_PAIRS, Pairs, pairs_of
from spectral_irt.inference.fit.answer_kinds import kind_of
from spectral_irt.inference.fit.bootstrap import bootstrap as run_bootstrap
from spectral_irt.inference.probability import two_sided
from spectral_irt.numerics import generator
from spectral_irt.persons.abilities import abilities
from spectral_irt.tables import make_table

MIN_USERS = 30  # who answered both items of a pair: with fewer, a correlation of 0.35 is chance
FEWEST = 10  # below, a correlation of 0.6 is chance
TOP = 1_000  # pairs listed where not all are
EXCESS = 0.2  # Q3 above the average that is usually taken for dependence (Christensen et al. 2017)
EIGENVALUE = 2.0  # the strength of two items: Linacre's rule for a second dimension
RESIDUALS = ("q3_star", "z", "eigenvalue")


@dataclass(frozen=True, eq=False)
class Critical:
    """What a statistic does under the model.

    Attributes
    ----------
    value : float
        What it exceeds with probability `level`.
    p : float
        Chance of a value as large as the observed one.
    drawn : float array
        Its value in every replicate.
    """

    value: float
    p: float
    drawn: Floats = field(repr=False)

    def chance(self, observed: Floats) -> Floats:
        """Chance of values as large as these, each one more replicate."""
        above = len(self.drawn) - np.searchsorted(np.sort(self.drawn), observed, side="left")
        return (1 + above) / (len(self.drawn) + 1)


@dataclass(frozen=True, eq=False, repr=False)
class LocalDependence:
    """What `local_dependence` found.

    Attributes
    ----------
    pairs : Pairs
        Q3 of every pair (of more than 1,000 items: of the strongest), with its matrix where it is kept.
    q3_star : float
        Largest Q3 minus the average one.
    components : Components
        Of the standardized residuals.
    critical : mapping
        With a bootstrap: "q3_star"; "z", the largest `z` of a pair; "eigenvalue", the first.
    level : float
    items : labels
    findings : tuple of Finding
    """

    pairs: Pairs
    q3_star: float
    components: Components
    critical: dict[str, Critical]
    level: float
    items: NDArray[Any]
    findings: tuple[Finding, ...]
    frame_kind: str | None

    def table(self) -> Any:
        """The pairs, strongest first: `item_1, item_2, n, q3, excess, z, p, dependent`.

        `excess` is Q3 above the average pair, `z` the same in standard errors. `p` is the chance that the strongest of
        all pairs is as strong as this one under the model, from the bootstrap (NaN without), and a pair is `dependent`
        when that is below the level; without a bootstrap, when its excess is above 0.2 and `z` beyond Bonferroni's
        limit.
        """
        pairs, limit = self.pairs, self.critical.get("z")
        columns = {
            "item_1": self.items[pairs.first],
            "item_2": self.items[pairs.second],
            "n": pairs.n,
            "q3": pairs.correlation,
            "excess": pairs.correlation - pairs.mean,
            "z": pairs.z,
            "p": limit.chance(pairs.z) if limit else np.full(len(pairs.z), np.nan),
            "dependent": dependent(pairs, self.critical, self.level),
        }
        return make_table(columns, self.frame_kind)

    def loadings(self) -> Any:
        """The items' loadings on the components of their residuals: `item, component_1, component_2, ...`."""
        values = self.components.loadings
        columns = {"item": self.items} | {f"component_{k + 1}": values[:, k] for k in range(values.shape[1])}
        return make_table(columns, self.frame_kind)

    def __repr__(self) -> str:
        def beside(name: str) -> str:
            limit = self.critical.get(name)
            return f" (critical {limit.value:.3f}, p = {limit.p:.3g})" if limit else ""

        first = self.components.eigenvalues[0] if len(self.components.eigenvalues) else float("nan")
        return (
            f"<Local dependence: {self.pairs.n_pairs:,} pairs, mean Q3 {self.pairs.mean:.3f}, Q3* {self.q3_star:.3f}"
            f"{beside('q3_star')}; first component {first:.2f} items{beside('eigenvalue')}>"
        )


def local_dependence(
    calibration: Calibration,
    responses: Responses,
    *,
    bootstrap: int = 0,
    level: float = 0.05,
    min_people: int = MIN_USERS,
    top: int | None = None,
    n_components: int = 5,
    sample: int | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> LocalDependence:
    """Yen's Q3 of pairs of items, and principal components of residuals, at Warm's abilities.

    Parameters
    ----------
    calibration, responses
        The responses in the order of the calibration's items.
    bootstrap : int
        Replicates for critical values; 0 (default): none, and rules of thumb instead. 100 is a good number.
    level : float
        Chance of any false alarm in the pairs, and in the first component.
    min_people : int
        Who must have answered both items of a pair.
    top : int, optional
        Pairs to list. Default: all of up to 1,000 items, the 1,000 strongest of more.
    n_components : int
    sample : int, optional
        People to take at random: for very large data. The work grows with the square of the answers of a person.
    seed : int
        Of sample and bootstrap.
    progress : callable, optional

    References
    ----------
    Yen (1984), Appl. Psych. Meas. 8; Christensen, Makransky & Horton (2017), Appl. Psych. Meas. 41, 178-194.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> lsat = datasets.load_lsat()
    >>> local_dependence(SpectralRasch().fit(lsat).calibration_, lsat)
    <Local dependence: 10 pairs, mean Q3 -0.235, Q3* 0.096; first component 1.33 items>
    """
    everyone = answers = responses
    _check(top, min_people, n_components, sample)
    if sample is not None and sample < answers.n_persons:  # the same people that the bootstrap takes
        chosen = generator(seed, 0).choice(answers.n_persons, sample, replace=False)
        answers = answers.take_persons(np.sort(chosen))
    beta = calibration.thresholds
    shown = TOP if top is None and answers.n_items > ALL_PAIRS else top
    pairs, components = _look(answers, beta, min_people, shown, n_components)
    if not pairs.n_pairs:
        raise DesignError(
            f"{answers.source}: no two items have {min_people} people in common, so no residuals can be correlated. "
            "Lower min_people, or collect more answers."
        )
    limits: dict[str, Critical] = {}
    if bootstrap:

        def summary(again: Responses, difficulty: Floats) -> dict[str, float]:
            return _summary(*_look(again, difficulty, min_people, 1, 1))

        options = {"sample": sample, "seed": seed, "progress": progress}
        limits = _critical(everyone, beta, summary, bootstrap, level, options)
    findings = _findings(pairs, components, limits, level, answers.items)
    star = pairs.largest - pairs.mean
    return LocalDependence(pairs, star, components, limits, level, answers.items, findings, answers.frame_kind)


def _check(top: int | None, min_people: int, n_components: int, sample: int | None) -> None:
    if top is not None and top < 1:
        raise OptionError(f"`top` is {top}; it is a number of pairs, at least 1.")
    if min_people < FEWEST:
        raise OptionError(f"`min_people` is {min_people}; a correlation of fewer than {FEWEST} people says nothing.")
    if n_components < 1:
        raise OptionError(f"`n_components` is {n_components}; it must be at least 1.")
    if sample is not None and sample < min_people:
        least = f"at least `min_people={min_people}`."
        raise OptionError(f"`sample` is {sample}; it is a number of people, {least}")


def _look(
    answers: Responses, beta: Floats, min_people: int, top: int | None, n_components: int
) -> tuple[Pairs, Components]:
    kind = kind_of(answers)
    theta = abilities(answers, beta, "wle").ability
    raw = kind.residuals(answers, beta, theta, standardized=False)
    pairs = pairs_of(raw, answers.n_items, min_people=min_people, top=top)
    standard = kind.residuals(answers, beta, theta, standardized=True)
    return pairs, residual_components(standard, answers.n_items, n_components, min_people=min_people)


def _summary(pairs: Pairs, components: Components) -> dict[str, float]:
    values = (pairs.largest - pairs.mean, pairs.z[0] if len(pairs.z) else np.nan, *components.eigenvalues[:1])
    return dict(zip(RESIDUALS, map(float, values), strict=False))


def _critical(
    answers: Responses,
    beta: Floats,
    summary: Callable[..., dict[str, float]],
    replicates: int,
    level: float,
    options: dict[str, Any],
) -> dict[str, Critical]:
    """The upper `level` of each summary over replicates from the model, and the observed value's rank among them."""
    values: list[dict[str, float]] = []  # the observed ones, then one of each replicate

    def statistic(again: Responses, difficulty: Floats) -> dict[str, Floats]:
        values.append(summary(again, difficulty))
        return {name: np.array([value]) for name, value in values[-1].items()}

    # Each tail of the bootstrap's band has half its level; only the upper one matters here.
    bands = run_bootstrap(answers, beta, statistic, replicates=replicates, level=2 * level, **options)
    observed, *replicated = values
    limits = {}
    for name, value in observed.items():
        drawn = np.array([each[name] for each in replicated])
        p = (1 + int((drawn >= value).sum())) / (len(drawn) + 1)
        limits[name] = Critical(float(bands[name].high[0]), p, drawn)
    return limits


# ----------------------------------------------------------------------------------------- findings


def dependent(pairs: Pairs, critical: dict[str, Critical], level: float) -> NDArray[np.bool_]:
    """Which pairs are more correlated than the strongest of all would be by chance."""
    if "z" in critical:
        return pairs.z > critical["z"].value
    beyond = (pairs.z > 0) & (two_sided(pairs.z) / 2 < level / max(pairs.n_pairs, 1))
    return beyond & (pairs.correlation - pairs.mean > EXCESS)


def _findings(
    pairs: Pairs, components: Components, critical: dict[str, Critical], level: float, items: NDArray[Any]
) -> tuple[Finding, ...]:
    found = []
    flagged = np.flatnonzero(dependent(pairs, critical, level))
    if len(flagged):
        names = [
            f"{a!r} and {b!r}" for a, b in zip(items[pairs.first].tolist(), items[pairs.second].tolist(), strict=True)
        ]
        told = "; ".join(names[k] for k in flagged[:5]) + (f"; {len(flagged) - 5:,} more" if len(flagged) > 5 else "")
        codes = np.unique(np.concatenate([pairs.first[flagged], pairs.second[flagged]]))
        one = len(flagged) == 1
        found.append(
            Finding(
                "dependent_items",
                "warning",
                f"{len(flagged):,} {'pair' if one else 'pairs'} of items share more than the ability ({told}).",
                "Look for a common text or a clue from one to the other; keep one of each pair, or score them as one.",
                tuple(items[codes].tolist()),
            )
        )
    if not len(components.eigenvalues):
        return tuple(found)
    first = float(components.eigenvalues[0])
    limit = critical["eigenvalue"].value if "eigenvalue" in critical else max(EIGENVALUE, components.noise)
    if first > limit:
        load = np.where(np.isfinite(components.loadings[:, 0]), components.loadings[:, 0], 0.0)
        high, low = np.argsort(-load)[:5], np.argsort(load)[:5]
        found.append(
            Finding(
                "second_dimension",
                "warning",
                f"The residuals have a component of the strength of {first:.1f} items, above {limit:.1f}: on one side "
                f"{listed(items[high])}, on the other {listed(items[low])}.",
                "If both sides differ in what they ask, consider a scale for each.",
                tuple(items[np.sort(np.concatenate([high, low]))].tolist()),
            )
        )
    return tuple(found)
