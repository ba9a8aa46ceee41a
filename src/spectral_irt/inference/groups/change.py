"""Change over time: the same persons answer the same items on several occasions (waves), in one or several arms.

What belongs to a person and stays (ability, the arm's mean before) is conditioned out; what happens between waves is
not. Of item i in wave w and arm a the difficulty is

    delta_(i, w, a) = delta_i - trend_w - effect_(w, a),      zero in the first wave, and the effect in the first arm:

positive is growth. Two models (Fischer 1989, 1995):

    one ability     given the total over all items and waves; items keep their difficulty, which the tests of response
                    shift look at: score tests of a further column for each item and later wave, adjusted by Holm;
    each item       every item of a person is a person of its own, given its total over the waves (LLRA): items need
                    nothing in common, and may each have effects of their own.

Errors are those of the sandwich over persons. `analysis/change.py` makes an analysis of the items and the persons on
each occasion around it, `plots/change.py` draws it, `report/change.py` has its section.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Z95, Calibration, Provenance, Scale
from spectral_irt.conditional.exact_likelihood import information_at
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.newton import LINEAR_DESIGN, NEWTON
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.crossing import Regrouped, answers_of, cross_with_column, persons_by_level
from spectral_irt.data.facets import Facets
from spectral_irt.data.labels import Split, by_label, positions
from spectral_irt.engine import one_blas_thread
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.estimators.linear_design import ITEMS, DesignMatrix, Factor, LinearDesign
from spectral_irt.estimators.linear_fit import DesignResult, design_fit
from spectral_irt.inference.results import adjust_p, chi2_tail, two_sided
from spectral_irt.persons.abilities import Abilities, abilities
from spectral_irt.tables import Columns
from spectral_irt.text import count_are, listed, p_value

LEVEL = 0.05
ESTIMABLE = 1e-7  # of a contrast along a direction that the answers leave open
NO_INFORMATION = 1e-10  # of the largest eigenvalue
EVERYBODY = "all"  # the arm of everybody, where there are none


class Occasions(NamedTuple):
    """Waves and arms of a study: responses with a virtual item for each item, wave and arm, and the arm of each
    person; the responses given on each occasion, as those of a person."""

    responses: Responses
    wave: str
    arm: str
    waves: NDArray[Any]
    arms: tuple[str, ...]
    arm_of: Ints
    stacked: Regrouped


def occasions_of(
    responses: Responses, wave: str, arm: Any = None, arm_name: str = "arm", order: Sequence[Any] = ()
) -> Occasions:
    """The study, or an error that says why no change can be seen."""
    facets = responses.facets
    if facets is None or wave not in facets.facet_names:
        raise OptionError(f"{responses.source}: {wave!r} was not read as a column of waves, `facets=[{wave!r}]`.")
    if len(facets.facet_names) > 1:
        raise OptionError(f"change is about items and waves; {listed(facets.facet_names)} are too many facets.")
    if order:
        facets = in_order(facets, wave, order)
        responses = replace(responses, facets=facets)
    waves, code = facets.column(wave)
    if len(waves) < 2:
        raise DesignError(
            f"{responses.source}: the column {wave!r} has a single wave, {listed(waves)}; change needs two or more."
        )
    _refuse_unlinked(responses, wave, waves, code)
    split = Split((EVERYBODY,), np.zeros(responses.n_persons, dtype=np.int64))
    if arm is not None:
        split = by_label(responses, arm)
        if split.n_groups < 2:
            raise DesignError(f"{responses.source}: the column {arm_name!r} has a single arm; leave it out.")
    if len(np.unique(answers_of(responses).person)) == len(np.unique(_person_waves(responses, code), axis=0)):
        raise DesignError(f"{responses.source}: nobody has responses in two waves, so that no change can be seen.")
    name = arm_name if arm_name != wave else f"{arm_name}_arm"
    virtual = cross_with_column(responses, name, split)
    arm_of = split.group[split.group >= 0]
    assert virtual.facets is not None
    stacked = persons_by_level(virtual, virtual.facets.column(wave)[1], waves)
    return Occasions(virtual, wave, name, waves, split.names, arm_of, stacked)


def in_order(facets: Facets, name: str, order: Sequence[Any]) -> Facets:
    """The levels of a facet in this order, which has all of them."""
    k = facets.names.index(name)
    place = positions(facets.levels[k], order)
    if (place < 0).any():
        raise OptionError(f"the order of the waves lacks {listed(facets.levels[k][place < 0])}, which the data have.")
    levels = list(facets.levels)
    levels[k] = facets.levels[k][np.argsort(place)]
    codes = facets.codes.copy()
    codes[:, k] = np.argsort(np.argsort(place))[codes[:, k]]
    return Facets(facets.names, tuple(levels), codes)


def _person_waves(responses: Responses, code: Ints) -> Ints:
    answers = answers_of(responses)
    return np.column_stack([answers.person, code[answers.item]])


def _refuse_unlinked(responses: Responses, wave: str, waves: NDArray[Any], code: Ints) -> None:
    """An error where waves have no items in common, directly or by way of others."""
    assert responses.facets is not None
    met = responses.item_counts > 0
    item = responses.facets.item[met]
    code = code[met]
    reached = {0}
    while True:
        items = np.unique(item[np.isin(code, list(reached))])
        found = set(code[np.isin(item, items)].tolist())
        if found <= reached:
            break
        reached |= found
    apart = [waves[k] for k in range(len(waves)) if k not in reached]
    if apart:
        raise DesignError(
            f"{responses.source}: no items are in common between {wave} {listed(waves[sorted(reached)])} and {wave} "
            f"{listed(apart)}, so that no change can be seen. Items of different waves need the same names."
        )


class Contrast(NamedTuple):
    """One number that a model of change has, as a combination of its parameters: the change of an arm between the first
    wave and another, or by how much it differs from that of the first arm (`against`)."""

    arm: int
    wave: int
    against: int = -1
    item: int = -1  # of effects for each item


@dataclass(frozen=True, eq=False)
class ChangeModel:
    """A fit of change: changes and differences of arms with errors, and the log-likelihood."""

    contrasts: list[Contrast]
    value: Floats
    se: Floats
    se_model: Floats
    loglik: float
    n_parameters: int
    result: DesignResult

    def where(self, against: int = -1) -> Ints:
        return np.flatnonzero([each.against == against for each in self.contrasts])


def fit_change(
    responses: Responses,
    occasions: Occasions,
    clusters: Ints | None = None,
    *,
    scale: bool = False,
    by_item: bool = False,
) -> ChangeModel:
    """The model of the head of this module for these responses; with effects for each item if `by_item`."""
    items = Factor("items", ITEMS)
    wave = Factor("facet", occasions.wave)
    arm = Factor("facet", occasions.arm)
    of_waves: tuple[Factor, ...] = (items, wave) if by_item else (wave,)
    terms = [(items,), of_waves, (*of_waves, arm)]
    if len(occasions.arms) == 1:
        terms = terms[:2]
    design = DesignMatrix(LinearDesign(), responses, terms, scale=scale)
    try:
        result = design_fit(responses, design, regularization=0, se="dense", clusters=clusters, exact_up_to=10**6)
    except DesignError as error:
        raise DesignError(
            f"{responses.source}: there is no finite change, because in some wave and arm all responses are the lowest "
            "or all the highest, or a category of an item was used by nobody. Join waves, arms or categories, or leave "
            "out the item."
        ) from error
    n_items = len(design.facets.items) if by_item else 1
    contrasts = _contrasts(occasions, n_items if by_item else 0)
    matrix = np.array([_row(design, each) for each in contrasts])
    open_directions = result.optimum.open_directions
    if open_directions is not None and open_directions.size:
        is_estimable = np.abs(matrix @ open_directions).max(axis=1) < ESTIMABLE
        matrix[~is_estimable] = np.nan
    assert result.covariance is not None
    assert result.of_model is not None
    robust, by_model = (
        np.einsum("ij,jk,ik->i", matrix, covariance, matrix) for covariance in (result.covariance, result.of_model())
    )
    free = design.matrix.shape[1] - (0 if open_directions is None else open_directions.shape[1])
    return ChangeModel(
        contrasts=contrasts,
        value=matrix @ result.eta,
        se=np.sqrt(np.maximum(robust, 0)),
        se_model=np.sqrt(np.maximum(by_model, 0)),
        loglik=result.optimum.point.loglik,
        n_parameters=free,
        result=result,
    )


def _contrasts(occasions: Occasions, n_items: int) -> list[Contrast]:
    waves = range(1, len(occasions.waves))
    arms = range(len(occasions.arms))
    items = range(n_items) if n_items else [-1]
    changes = [Contrast(arm, wave, item=item) for arm in arms for wave in waves for item in items]
    return changes + [Contrast(arm, wave, 0, item) for arm in arms if arm for wave in waves for item in items]


def _row(design: DesignMatrix, contrast: Contrast) -> Floats:
    """Coefficients of the parameters, positive = growth: minus the difficulty in the wave, plus that in the first."""
    row = np.zeros(design.matrix.shape[1])
    arms = [(contrast.arm, -1.0)]
    if contrast.against >= 0:
        arms.append((contrast.against, 1.0))
    for arm, sign in arms:
        for wave, wave_sign in ((contrast.wave, sign), (0, -sign)):
            for term in design.terms:
                if not term.of_facet:
                    continue
                place = _column(design, term.factors, contrast.item, wave, arm)
                row[term.columns.start + place if place >= 0 else slice(None)] += wave_sign if place >= 0 else np.nan
    return row


def _column(design: DesignMatrix, factors: tuple[Factor, ...], item: int, wave: int, arm: int) -> int:
    """The column of a term for these levels; -1 where nobody was observed at them."""
    facets = design.facets
    wanted = []
    codes = []
    for factor in factors:
        if factor.kind == "items":
            wanted.append(item)
            codes.append(facets.item)
        else:
            k = facets.facet_names.index(factor.name)
            wanted.append(wave if k == 0 else arm)
            codes.append(facets.column(factor.name)[1])
    observed = np.unique(np.stack(codes, axis=1), axis=0)
    place = np.flatnonzero((observed == wanted).all(axis=1))
    return int(place[0]) if len(place) else -1


def response_shift(responses: Responses, occasions: Occasions, model: ChangeModel) -> Columns:
    """Does an item change in difficulty between waves other than the others do? A score test for each item and later
    wave: `item, wave, shift, se, z, p, p_holm`; `shift` is one Newton step, positive where the item becomes harder."""
    facets = responses.facets
    assert facets is not None
    layout = responses.thresholds
    beta = model.result.optimum.beta
    likelihood = Likelihood(responses, beta)
    gradient = likelihood.at(beta).gradient
    information = information_at(likelihood, beta).matrix
    design = model.result.design.matrix.toarray()
    code = facets.column(occasions.wave)[1]
    pairs = [(i, w) for i in range(len(facets.items)) for w in range(1, len(occasions.waves))]
    further = np.array([(facets.item == i) & (code == w) for i, w in pairs]).T.astype(float)[layout.item]
    h_design = information @ design
    inverse = np.linalg.pinv(design.T @ h_design, rcond=NO_INFORMATION, hermitian=True)
    left = further - design @ (inverse @ (h_design.T @ further))
    variance = np.einsum("ij,ij->j", left, information @ left)
    total = np.einsum("ij,ij->j", further, information @ further)
    testable = variance > 1e-6 * np.maximum(total, 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(testable, (left.T @ gradient) / variance, np.nan)
        se = np.where(testable, 1 / np.sqrt(variance), np.nan)
    p = two_sided(shift / se)
    return {
        "item": facets.items[[i for i, _ in pairs]],
        "wave": occasions.waves[[w for _, w in pairs]],
        "shift": shift,
        "se": se,
        "z": shift / se,
        "p": p,
        "p_holm": adjust_p(p, "holm"),
    }


@dataclass(frozen=True, eq=False, repr=False)
class Change:
    """What was found about change.

    Attributes
    ----------
    one_ability : ChangeModel
        Changes and differences of arms, given the total over all items and waves.
    each_item, item_effects : ChangeModel, optional
        Fischer's LLRA: effects that items share, and effects for each item.
    shifts : columns
        Response shift: `item, wave, shift, se, z, p, p_holm`.
    calibration, stacked : Calibration, Regrouped
        The items, and the responses of persons on each occasion.
    """

    occasions: Occasions
    one_ability: ChangeModel
    shifts: Columns
    calibration: Calibration
    each_item: ChangeModel | None = None
    item_effects: ChangeModel | None = None
    n_left_out: int = 0  # persons without an arm
    extreme_items: tuple[Any, ...] = ()  # left out

    @property
    def stacked(self) -> Regrouped:
        return self.occasions.stacked

    @cached_property
    def table_columns(self) -> Columns:
        """`model, arm, against, wave, since, change, se, se_model, p, p_holm, n`."""
        models = [("one ability", self.one_ability)]
        if self.each_item is not None:
            models.append(("each item", self.each_item))
        parts = [self._rows(name, model) for name, model in models]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _rows(self, name: str, model: ChangeModel) -> Columns:
        arms = np.array([*self.occasions.arms, ""], dtype=object)
        arm = np.array([each.arm for each in model.contrasts])
        against = np.array([each.against for each in model.contrasts])
        wave = np.array([each.wave for each in model.contrasts])
        p = two_sided(model.value / model.se)
        p_holm = np.empty(len(p))
        for pair in set(zip(arm.tolist(), against.tolist(), strict=True)):
            family = (arm == pair[0]) & (against == pair[1])
            p_holm[family] = adjust_p(p[family], "holm")
        n = [
            int(self._n_tested[a, w] + (self._n_tested[b, w] if b >= 0 else 0))
            for a, b, w in zip(arm, against, wave, strict=True)
        ]
        return {
            "model": np.full(len(arm), name, dtype=object),
            "arm": arms[arm],
            "against": arms[against],
            "wave": self.occasions.waves[wave],
            "since": np.repeat(self.occasions.waves[:1], len(arm)),
            "change": model.value,
            "se": model.se,
            "se_model": model.se_model,
            "p": p,
            "p_holm": p_holm,
            "n": np.array(n, dtype=np.int64),
        }

    @cached_property
    def _n_tested(self) -> Ints:
        """Arms x waves: persons with responses in the wave and in another one."""
        stacked = self.stacked
        several = np.bincount(stacked.person, minlength=len(self.occasions.arm_of))[stacked.person] > 1
        n = np.zeros((len(self.occasions.arms), len(self.occasions.waves)), dtype=np.int64)
        np.add.at(n, (self.occasions.arm_of[stacked.person][several], stacked.level[several]), 1)
        return n

    @property
    def likelihood_ratio(self) -> tuple[float, int, float] | None:
        """Of effects for each item against shared ones in the LLRA: statistic, degrees of freedom, p."""
        if self.each_item is None or self.item_effects is None:
            return None
        statistic = 2 * (self.item_effects.loglik - self.each_item.loglik)
        df = self.item_effects.n_parameters - self.each_item.n_parameters
        return statistic, df, float(chi2_tail(statistic, df))

    @cached_property
    def measures(self) -> Abilities:
        """The measure on each occasion, by Warm's likelihood, at the difficulties that all waves have in common."""
        return abilities(self.stacked.responses, self.calibration.thresholds, "wle")

    @cached_property
    def person_columns(self) -> Columns:
        """A row for each person: the measure in each wave with its error, the change from the first wave of the person
        to the last with its error, and whether it is reliable (beyond 1.96 standard errors)."""
        occasions = self.occasions
        persons = occasions.responses.persons
        n, n_waves = len(persons), len(occasions.waves)
        measure, se = np.full((2, n, n_waves), np.nan)
        place = (self.stacked.person, self.stacked.level)
        measure[place] = self.measures.ability
        se[place] = self.measures.se
        known = np.isfinite(measure)
        first = known.argmax(axis=1)
        last = n_waves - 1 - known[:, ::-1].argmax(axis=1)
        rows = np.arange(n)
        several = known.sum(axis=1) > 1
        change = np.where(several, measure[rows, last] - measure[rows, first], np.nan)
        change_se = np.where(several, np.hypot(se[rows, last], se[rows, first]), np.nan)
        reliable = np.full(n, "", dtype=object)
        reliable[change > Z95 * change_se] = "increase"
        reliable[change < -Z95 * change_se] = "decrease"
        columns: Columns = {"person": persons}
        if len(occasions.arms) > 1:
            columns["arm"] = np.array(occasions.arms, dtype=object)[occasions.arm_of]
        columns["waves"] = known.sum(axis=1)
        for k, name in enumerate(occasions.waves.tolist()):
            columns[f"measure_{name}"] = measure[:, k]
            columns[f"se_{name}"] = se[:, k]
        labels = np.append(occasions.waves.astype(object), "")
        columns["first_wave"] = labels[np.where(known.any(axis=1), first, -1)]
        columns["last_wave"] = labels[np.where(known.any(axis=1), last, -1)]
        return columns | {"change": change, "change_se": change_se, "reliable": reliable}

    def persons_on(self, scale: Scale) -> Columns:
        """`person_columns` on a scale of report."""
        columns = dict(self.person_columns)
        for name, values in columns.items():
            if name.startswith("measure_"):
                columns[name] = scale.measure(values)
            elif name.startswith(("se_", "change")):
                columns[name] = scale.width(values)
        return columns

    @cached_property
    def spread(self) -> list[dict[str, Any]]:
        """Of each arm: how many persons have a change, its mean and sd, the sd that errors of measurement explain, that
        beyond them, and how many changed reliably."""
        table = self.person_columns
        rows = []
        for k, arm in enumerate(self.occasions.arms):
            members = (self.occasions.arm_of == k) & np.isfinite(table["change"])
            change = table["change"][members]
            errors = float(np.mean(table["change_se"][members] ** 2)) if len(change) else np.nan
            variance = float(change.var(ddof=1)) if len(change) > 1 else np.nan
            reliable = table["reliable"][members]
            rows.append({
                "arm": arm, "n": len(change), "mean": float(change.mean()) if len(change) else np.nan,
                "sd": variance**0.5, "sd_of_errors": errors**0.5, "sd_beyond": max(variance - errors, 0.0) ** 0.5,
                "increase": int((reliable == "increase").sum()), "decrease": int((reliable == "decrease").sum()),
            })  # fmt: skip
        return rows

    @property
    def shifted(self) -> Ints:
        """Rows of the response shifts that are significant (Holm)."""
        rows = np.flatnonzero(self.shifts["p_holm"] < LEVEL)
        return rows[np.argsort(-np.abs(self.shifts["shift"][rows]))]

    @property
    def sentences(self) -> list[str]:
        """The change up to the last wave: of each arm, and the difference of arms."""
        table = self._rows("", self.one_ability)
        last = table["wave"] == self.occasions.waves[-1]
        clauses = []
        for k in np.flatnonzero(last).tolist():
            number = f"{table['change'][k]:+.2f} (SE {table['se'][k]:.2f}, adjusted {p_value(table['p_holm'][k])})"
            who = "change" if table["arm"][k] == EVERYBODY else f"{table['arm'][k]}"
            if table["against"][k]:
                who = f"{table['arm'][k]} less {table['against'][k]}"
            clauses.append(f"{who} {number}")
        since = f"from {self.occasions.wave} {self.occasions.waves[0]} to {self.occasions.waves[-1]}"
        return [f"Change in logits {since}: {'; '.join(clauses)}."]

    @property
    def findings(self) -> tuple[Finding, ...]:
        findings = []
        alone = int((self.person_columns["waves"] == 1).sum())
        if alone:
            sentence = (
                f"{count_are(alone, 'person')} in one wave only; they tell about items, and nothing about change."
            )
            findings.append(Finding("one_wave", "note", sentence))
        if self.n_left_out:
            sentence = f"{count_are(self.n_left_out, 'person')} in no arm and left out."
            findings.append(Finding("no_arm", "note", sentence))
        if self.extreme_items:
            sentence = f"Left out, with the same response from everybody in all waves: {listed(self.extreme_items)}."
            findings.append(Finding("items_left_out", "warning", sentence, "", self.extreme_items))
        shifted = self.shifted
        if len(shifted):
            parts = [
                f"{listed([self.shifts['item'][k]])} in {self.occasions.wave} {self.shifts['wave'][k]} by "
                f"{self.shifts['shift'][k]:+.2f} logits"
                for k in shifted[:5].tolist()
            ]
            more = f" and {len(shifted) - 5:,} more" if len(shifted) > 5 else ""
            sentence = (
                "Response shift: the difficulty of items changes otherwise than that of the others: "
                f"{'; '.join(parts)}{more}."
            )
            remedy = "Fit again with the other items alone, named by `items=`, and compare the changes."
            items = tuple(dict.fromkeys(self.shifts["item"][shifted].tolist()))
            findings.append(Finding("response_shift", "warning", sentence, remedy, items))
        return tuple(findings)

    def to_dict(self) -> dict[str, Any]:
        """The result as data."""
        ratio = self.likelihood_ratio
        return {
            "wave": self.occasions.wave,
            "n_persons": self.occasions.responses.n_persons,
            "waves": [str(wave) for wave in self.occasions.waves.tolist()],
            "arms": list(self.occasions.arms),
            "loglik": self.one_ability.loglik,
            "each_item": None if ratio is None else dict(zip(("statistic", "df", "p"), ratio, strict=True)),
            "response_shift": len(self.shifted),
            "persons": self.spread,
        }

    def __repr__(self) -> str:
        return f"<{' '.join(self.sentences)}>"


@one_blas_thread()
def change(
    responses: Responses, wave: str, arm: Any = None, *, arm_name: str = "arm", each_item: bool = False,
    order: Sequence[Any] = (), scale: bool = False, estimator: str = "", settings: Any = None,
) -> Change:  # fmt: skip
    """How much persons change between waves, in each arm; see the head of this module.

    Parameters
    ----------
    responses : Responses
        Read with the column of waves as a facet.
    wave : str
        That column; the first wave is what change counts from.
    arm : labels, optional
        The arm of each person; the first in order is what others are compared with.
    each_item : bool
        Whether to fit Fischer's LLRA too, with effects that items share and with effects for each.
    order : sequence of labels
        The waves from the first to the last; by default as they sort.
    scale : bool
        Whether items share a rating scale.

    References
    ----------
    Fischer (1989), Psychometrika 54; Fischer (1995), in Fischer & Molenaar, Rasch Models, ch. 9; Jacobson & Truax
    (1991).
    """
    extreme = _extreme_items(responses)
    all_items = responses.items if responses.facets is None else responses.facets.items
    if extreme.any():
        assert responses.facets is not None
        responses = responses.take_items(np.flatnonzero(~extreme[responses.facets.item]))
    occasions = occasions_of(responses, wave, arm, arm_name, order)
    virtual = occasions.responses
    one_ability = fit_change(virtual, occasions, scale=scale)
    calibration = _calibration(one_ability.result, responses, virtual, estimator, settings or {})
    found = Change(
        occasions=occasions,
        one_ability=one_ability,
        shifts=response_shift(virtual, occasions, one_ability),
        calibration=calibration,
        n_left_out=responses.n_persons - virtual.n_persons,
        extreme_items=tuple(all_items[extreme].tolist()),
    )
    if not each_item:
        return found
    assert virtual.facets is not None
    apart = persons_by_level(virtual, virtual.facets.item, virtual.facets.items, keep=virtual.facets)
    shared = fit_change(apart.responses, occasions, scale=scale)
    of_items = fit_change(apart.responses, occasions, scale=scale, by_item=True)
    return replace(found, each_item=shared, item_effects=of_items)


def _extreme_items(responses: Responses) -> NDArray[np.bool_]:
    """Items on which everybody, in all waves, has the lowest response or everybody the highest."""
    facets = responses.facets
    if facets is None:
        return np.zeros(responses.n_items, dtype=bool)
    score = facets.by_item(responses.item_scores)
    highest = facets.by_item(responses.item_counts * responses.thresholds.max_score)
    return np.asarray((score == 0) | (score == highest))


def _calibration(
    result: DesignResult, responses: Responses, virtual: Responses, estimator: str, settings: dict[str, Any]
) -> Calibration:
    """The items themselves, as the waves have them in common."""
    optimum = result.optimum
    loglik = float(optimum.point.loglik)
    return result.items(virtual).replace(
        findings=(*responses.notes, *result.findings()),
        provenance=Provenance(
            estimator=estimator,
            settings=settings,
            iterations=optimum.evaluations,
            residual=optimum.move,
            loglik=loglik if np.isfinite(loglik) else None,
            se_method=result.se_method,
            solver=LINEAR_DESIGN + NEWTON,
        ),
    )
