"""Calibration: what an estimator found. Numbers per item, frozen, without answers, engine or threads.

The k-th threshold of an item is where its categories k - 1 and k are equally likely; an item that is right or wrong has
one, its difficulty. Thresholds lie in one array, item after item, as `layout` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import scipy  # whose parts are loaded when they are first asked
from numpy.typing import ArrayLike, NDArray

from spectral_irt.ability import form_information, score_abilities
from spectral_irt.chain.prior import Regularization
from spectral_irt.conditional.errors import location_covariance
from spectral_irt.data import Finding, as_responses
from spectral_irt.data.block import Floats, Ints, Mask, Thresholds
from spectral_irt.data.code_sums import CodeSums, code_sums, counted_from_zero
from spectral_irt.data.labels import positions
from spectral_irt.data.responses import Labels, Responses
from spectral_irt.errors import OptionError
from spectral_irt.model import category_probabilities, sigmoid, thurstone
from spectral_irt.numerics import chosen_or_none, read_only, safe_divide
from spectral_irt.tables import Columns, Table, as_html, make_table
from spectral_irt.text import listed

if TYPE_CHECKING:
    from spectral_irt.data.facets import FacetMeasures

Z95 = 1.959963984540054  # standard normal quantile at 0.975
ADAPTIVE_DESIGN = "adaptive_design"  # code of a finding, and what it says of some
FREE_SHAPE = "takes the population as of free shape"
MOVED = 0.1  # logits by which a prior has to move a threshold for it to be marked
MEASURED = ("ok", "anchored")  # status of items whose difficulty rests on their own answers
# Models, by the names that commands and records have.
RASCH = "rasch"
PARTIAL_CREDIT = "pcm"
RATING_SCALE = "rsm"
# Likelihoods whose scores errors are computed from.
CONDITIONAL = "conditional"
MARGINAL = "marginal"
SMALL = 25  # thresholds up to which a calibration carries its covariance matrix: 200 bytes each


def t_quantile(df: float, tail: float = 0.025) -> float:
    """How many standard errors an interval of 95% reaches either way: a quantile of Student's t.

    >>> round(t_quantile(9), 3), t_quantile(float("inf")) == Z95
    (2.262, True)
    """
    if not np.isinf(df):
        return float(scipy.special.stdtrit(df, 1 - tail))
    if tail == 0.025:
        return Z95
    return float(scipy.special.ndtri(1 - tail))


SAME_SCALE = 1e-3  # of a logit: how far two formulas of one scale may be apart


@dataclass(frozen=True)
class Scale:
    """How logits are reported: mean + unit * logit. `mean` is what a logit of 0 becomes.

    Examples
    --------
    >>> Scale(500, 100).measure([-1, 0, 2]).tolist()
    [400.0, 500.0, 700.0]
    """

    mean: float = 0.0
    unit: float = 1.0

    @property
    def is_logits(self) -> bool:
        return self.mean == 0 and self.unit == 1

    def agrees_with(self, other: Scale) -> bool:
        """Whether both report alike, up to a thousandth of a logit: a formula is typed with few digits."""
        tolerance = SAME_SCALE * self.unit
        return abs(self.mean - other.mean) <= tolerance and abs(self.unit - other.unit) <= tolerance

    @property
    def formula(self) -> str:
        """The scale in words.

        >>> Scale(478.7, 82.3).formula
        '478.700 + 82.300 x logit'
        """
        return f"{self.mean:.3f} + {self.unit:.3f} x logit"

    def measure(self, logits: ArrayLike) -> Floats:
        """Difficulties or abilities as they are reported."""
        return self.mean + self.unit * np.asarray(logits, dtype=float)

    def width(self, logits: ArrayLike) -> Floats:
        """Standard errors, shifts and other distances as they are reported."""
        return self.unit * np.asarray(logits, dtype=float)


LOGITS = Scale()


@dataclass(frozen=True)
class Provenance:
    """How a calibration came about: the class that found it with its parameters, passes or steps, how far the solution
    is from exact in the estimator's own measure, the log-likelihood where one was maximized, how the standard errors
    were computed and their degrees of freedom, which solver ran, how much a pass shrinks the slowest error, and the
    version of the package."""

    estimator: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    iterations: int = 0
    residual: float = 0.0
    loglik: float | None = None
    se_method: str | None = None
    se_df: float = float("inf")
    solver: str | None = None
    contraction: float | None = None
    version: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibration:
    """Items with their thresholds, difficulties, standard errors and status.

    Attributes
    ----------
    thresholds, threshold_se : float arrays
        One number for every threshold, item after item, in logits; larger = harder, NaN without an estimate.
    layout : Thresholds, optional
        Which thresholds belong to which item; by default each item has one: it is right or wrong.
    difficulty, se : float arrays
        The location of every item, the mean of its thresholds, and its standard error.
    location_se : float array
        That standard error; needed where items have several thresholds.
    category_n, codes : float arrays, items x categories
        How many people gave each answer, and what stood in the data for each category; NaN where an item has fewer.
    status : array of str
        "ok", "anchored", "all right", "all wrong", "no information", "no responses" or "unlinked".
    known, measured, anchored : bool arrays
        Items that have a difficulty; those whose difficulty rests on their own answers, or is anchored; and those whose
        difficulty was given, not estimated.
    n, score, item_information : arrays
        How many people answered each item, the sum of their answers, and what these tell about it.
    codes_high : float array, optional
        Where categories were merged: the highest code of each, of which `codes` has the lowest.
    threshold_covariance, location_covariance : float arrays, optional
        Of the thresholds, for up to 25 of them, and of the difficulties, which are their means; the estimator, and an
        `Analysis` made by it, has those of up to 2,000.
    threshold_information : float array, items x thresholds of one x thresholds of one, optional
        What the responses told about the thresholds of each item, the other items given and without any prior; of
        items that are right or wrong `item_information` is that.
    threshold_score : float array, optional
        The gradient of the log-likelihood of the responses at the thresholds: what a prior holds against, zero without.
    without_prior : float array, optional
        Where a prior acts: the thresholds without it, NaN for those that have no finite estimate then.
    prior, further : Regularization, mapping
        What was added to the data; further columns of `items()`, such as the displacement of anchored items.
    model : str
        "rasch", "pcm" (partial credit: every threshold is free) or "rsm" (rating scale: items share their offsets); by
        default "rasch" where each item has one threshold, else "pcm".
    scale_of_item : int array, optional
        Of a rating scale model: the number of the scale of each item. Items of one scale have the same offsets.
    likelihood : str
        "conditional" (also of the chain alone, whose equations are given the score), "marginal", "joint", "pairwise" or
        "variational": what the estimator maximized.
    scale, frame_kind : Scale, str
        How measures are reported; the dataframe library of the tables: the one that the data came in, or polars.
    adaptive : bool
        Whether it was told that items were chosen by the answers.
    facets : FacetMeasures, optional
        Of ratings: what was found about raters and other facets, and about the items by themselves.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> calibration = SpectralRasch().fit(datasets.load_lsat()).calibration_
    >>> calibration
    <Calibration: 5 items, difficulty -1.26 to 1.24 logits, median se 0.073>
    >>> calibration.probability([0.0], items=["item3"]).round(2).tolist()
    [[0.23]]
    """

    labels: Labels
    thresholds: Floats
    threshold_se: Floats
    status: NDArray[Any]
    n: Ints
    score: Ints
    item_information: Floats
    layout: Thresholds = None  # type: ignore[assignment]  # made below
    location_se: Floats | None = None
    category_n: Floats = None  # type: ignore[assignment]
    codes: Floats = None  # type: ignore[assignment]
    codes_high: Floats | None = None
    threshold_covariance: Floats | None = None
    threshold_information: Floats | None = None
    threshold_score: Floats | None = None
    without_prior: Floats | None = None
    model: str = ""
    scale_of_item: Ints | None = None
    likelihood: str = CONDITIONAL
    scale: Scale = LOGITS
    prior: Regularization | None = None
    findings: tuple[Finding, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)
    further: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    frame_kind: str | None = None
    facets: FacetMeasures | None = None

    def __post_init__(self) -> None:
        # Written here only, for everybody else it is frozen: what was left out, and arrays as they may only be read.
        values = vars(self)
        if self.layout is None:
            values["layout"] = Thresholds.ones(self.n_items)
        if not self.model:
            values["model"] = RASCH if self.layout.binary else PARTIAL_CREDIT
        if self.model == RATING_SCALE and self.scale_of_item is None:
            values["scale_of_item"] = np.zeros(self.n_items, dtype=np.int64)
        if self.layout.binary and self.category_n is None:
            values["category_n"] = np.stack([self.n - self.score, self.score], axis=1).astype(float)
        if self.layout.binary and self.codes is None:
            values["codes"] = np.broadcast_to([0.0, 1.0], (self.n_items, 2))
        values["further"] = dict(self.further)
        for arrays in (values, values["further"]):
            for name, value in arrays.items():
                if isinstance(value, np.ndarray):
                    arrays[name] = read_only(value)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()  # numpy forgets in pickles and copies that an array is for reading only

    @property
    def n_items(self) -> int:
        return len(self.labels)

    @cached_property
    def difficulty(self) -> Floats:
        """The location of each item: the mean of its thresholds."""
        return self.thresholds if self.layout.binary else read_only(self.layout.mean(self.thresholds))

    @cached_property
    def se(self) -> Floats:
        """The standard error of each location."""
        if self.layout.binary:
            return self.threshold_se
        if self.location_se is None:
            return read_only(np.full(self.n_items, np.nan))
        return self.location_se

    @cached_property
    def known(self) -> Mask:
        """Items that have a difficulty."""
        return read_only(np.isfinite(self.difficulty))

    @cached_property
    def measured(self) -> Mask:
        """Items whose difficulty rests on their own answers, or is an anchor."""
        return read_only(self.known & np.isin(self.status, MEASURED))

    @cached_property
    def anchored(self) -> Mask:
        return read_only(np.asarray(self.further.get("anchored", np.zeros(self.n_items, dtype=bool))))

    @cached_property
    def adaptive(self) -> bool:
        """Whether answers decided what came next."""
        return any(finding.code == ADAPTIVE_DESIGN for finding in self.findings)

    def __repr__(self) -> str:
        text = f"{self.n_items:,} items"
        difficulty = self.difficulty[self.known]
        if len(difficulty):
            text += f", difficulty {difficulty.min():.2f} to {difficulty.max():.2f} logits"
        se = self.se[np.isfinite(self.se)]
        if len(se):
            text += f", median se {np.median(se):.3f}"
        return f"<{type(self).__name__}: {text}>"

    def _repr_html_(self) -> str:
        """For notebooks: the first items."""
        return as_html(repr(self), self.item_columns())

    @property
    def ci_width(self) -> float:
        """How many standard errors a 95% interval reaches either way: more than 1.96 where these come from clusters."""
        return t_quantile(self.provenance.se_df)

    @cached_property
    def moved_by_prior(self) -> Mask:
        """Thresholds that a prior moved by more than a tenth of a logit, or that have no finite estimate without it."""
        if self.without_prior is None:
            return read_only(np.zeros(self.layout.n_entries, dtype=bool))
        moved = ~(np.abs(self.thresholds - self.without_prior) <= MOVED)
        linked = self.status[self.layout.item] != "unlinked"  # the others are marked so
        return read_only(np.isfinite(self.thresholds) & moved & linked)

    @property
    def own_items(self) -> Calibration:
        """Of ratings, the items themselves, whoever rated; else the calibration as it is."""
        return self if self.facets is None else cast("Calibration", self.facets.items)

    @property
    def right_or_wrong(self) -> bool:
        """Whether all answers are 1 or 0."""
        return self.layout.binary and bool((self.codes == [0, 1]).all())

    def responses_of(self, data: Any) -> Responses:
        """Answers as `Responses` of the kind that was calibrated: right or wrong, or categories."""
        if self.right_or_wrong:
            return as_responses(data, threshold=self.provenance.settings.get("threshold"))
        return as_responses(data, ordered=True, unused="keep")

    @property
    def location_covariance(self) -> Floats | None:
        """The covariance of the difficulties, where that of the thresholds is known."""
        if self.threshold_covariance is None:
            return None
        return location_covariance(self.layout, self.threshold_covariance)

    @property
    def rating_scales(self) -> dict[Any, int] | None:
        """From item to rating scale, as `SpectralRatingScale(groups=...)` takes it; None of other models."""
        if self.scale_of_item is None:
            return None
        return dict(zip(self.labels.tolist(), self.scale_of_item.tolist(), strict=True))

    def with_free_thresholds(self) -> Calibration:
        """The calibration once thresholds have moved one by one: a rating scale is then a partial credit model."""
        if self.model != RATING_SCALE:
            return self
        return self.replace(model=PARTIAL_CREDIT, scale_of_item=None)

    def positions(self, items: Sequence[Any] | None) -> Ints:
        """Positions of these items, by label; by default of every item that has a difficulty."""
        if items is None:
            return np.flatnonzero(self.known)
        place = positions(items, self.labels)
        unknown = [label for label, k in zip(items, place.tolist(), strict=True) if k < 0]
        if unknown:
            raise OptionError(f"unknown items {listed(unknown)}; this calibration has {listed(self.labels)}.")
        return place

    def form(self, items: Sequence[Any] | None) -> tuple[Thresholds, Floats]:
        """The thresholds of the items of a form, each item named once and all with a difficulty."""
        return self.thresholds_of(self.form_positions(items))

    def form_positions(self, items: Sequence[Any] | None) -> Ints:
        """Positions of the items of a form, by label, each named once and all with a difficulty."""
        place = self.positions(items)
        if items is not None and not len(place):
            raise OptionError("`items` names no item; name those of the form, or leave it out for all.")
        if len(np.unique(place)) < len(place):
            raise OptionError("`items` names the same item more than once; name each once.")
        without = self.labels[place[~self.known[place]]]
        if len(without):
            raise OptionError(f"items without a difficulty: {listed(without)}. Leave them out of the form.")
        return place

    @property
    def has_codes(self) -> bool:
        """Whether categories were coded otherwise than 0, 1, ..., so that sums of codes differ from scores."""
        if self.codes is None:
            return False
        if self.codes_high is not None:
            return True
        return not counted_from_zero(self.codes[self.known], self.layout.max_score[self.known])

    def code_sums(self, place: Ints) -> CodeSums | None:
        """The sums of codes of every score on the items at these positions; None where a code is not known."""
        high = chosen_or_none(self.codes_high, place)
        return code_sums(self.codes[place], self.layout.max_score[place], high)

    def code_columns(self, forms: Sequence[Ints]) -> Columns:
        """`code_sum` (and `code_sum_high`) of every score on each form, one after the other; nothing where sums of
        codes are the scores, or a code is not known."""
        if not self.has_codes:
            return {}
        sums_of_forms = []
        for place in forms:
            sums = self.code_sums(place)
            if sums is None:
                return {}
            sums_of_forms.append(sums)
        nothing = np.zeros(0, dtype=np.int64)
        columns = {"code_sum": np.concatenate([nothing, *(sums.low for sums in sums_of_forms)])}
        if any(sums.ambiguous for sums in sums_of_forms):
            columns["code_sum_high"] = np.concatenate([nothing, *(sums.high for sums in sums_of_forms)])
        return columns

    def thresholds_of(self, place: Ints) -> tuple[Thresholds, Floats]:
        return Thresholds(self.layout.max_score[place]), self.thresholds[self.layout.of_items(place)]

    def replace(self, **changes: Any) -> Self:
        """The calibration with some of its fields changed."""
        return replace(self, **changes)

    def items(self) -> Table:
        """The items as a table: `item, difficulty, se, ci_low, ci_high, n, n_correct, p_correct, status`, and more.

        Larger difficulty = harder; `ci_low` to `ci_high` is the 95% interval; `n` people answered, `n_correct` of them
        right, `p_correct` = n_correct / n (the classical facility). Where items have several thresholds, `score` adds
        the categories, and `max_score` (the highest category) and `mean_score` = score / n stand for `p_correct`. The
        table is of the dataframe library that the data came in, polars otherwise.
        """
        return make_table(self.item_columns(), self.frame_kind)

    def items_named_by(self, code: str) -> list[Any]:
        """The items that findings of this code name, in their order."""
        return [label for finding in self.findings if finding.code == code for label in finding.items]

    def mean_in_codes(self, mean_score: Floats) -> Floats:
        """The mean answer to each item in the codes of the data, of one counted from 0: 1.6 is 2.6 where the codes are
        1 to 5. As it is where codes are not known, or where a category stands for several."""
        if self.codes is None or self.codes_high is not None:
            return mean_score
        counts = np.nan_to_num(self.category_n)
        return np.asarray(
            safe_divide((counts * np.nan_to_num(self.codes)).sum(axis=1), counts.sum(axis=1), otherwise=np.nan)
        )

    def item_columns(self) -> Columns:
        mean = safe_divide(self.score, self.n, otherwise=np.nan)
        if self.layout.binary:
            scores = {"n_correct": self.score, "p_correct": mean}
        else:
            scores = {"score": self.score, "max_score": self.layout.max_score, "mean_score": mean}
        columns = {
            "item": self.labels,
            "difficulty": self.difficulty,
            "se": self.se,
            "ci_low": self.difficulty - self.ci_width * self.se,
            "ci_high": self.difficulty + self.ci_width * self.se,
            "n": self.n,
            **scores,
            "status": self.status,
            **self.further,
        }
        if self.without_prior is not None:
            columns["without_prior"] = self.layout.mean(self.without_prior)
        columns.pop("anchor_se", None)
        return columns

    def threshold_table(self) -> Table:
        """The thresholds as a table; see `threshold_columns`."""
        return make_table(self.threshold_columns(), self.frame_kind)

    def threshold_columns(self) -> Columns:
        """A row for each threshold: where the `category` and the one below are equally likely, how many people answered
        in the category (`n`) and in the one below (`n_below`), and where half answer in it or above (`thurstone`).
        Where a prior acts, the threshold `without_prior`, NaN where there is no finite one."""
        layout = self.layout
        beta = self.thresholds
        se = self.threshold_se
        columns = {
            "item": self.labels[layout.item],
            "category": layout.level,
            "threshold": beta,
            "se": se,
            "ci_low": beta - self.ci_width * se,
            "ci_high": beta + self.ci_width * se,
            "n": self.category_n[layout.item, layout.level].astype(np.int64),
            "n_below": self.category_n[layout.item, layout.level - 1].astype(np.int64),
            "thurstone": thurstone(layout.cumulated(beta)[layout.item], layout.level),
        }
        if self.without_prior is not None:
            columns["without_prior"] = self.without_prior
        return columns

    def probability(self, abilities: ArrayLike, items: Sequence[Any] | None = None) -> Floats:
        """Probability of a right answer: a row for each ability, a column for each item (all of them by default).

        P(X = 1) = 1 / (1 + exp(difficulty - ability)); NaN for an item without a difficulty.
        """
        if not self.layout.binary:
            raise OptionError(
                "items with several categories have a probability each: ask category_probability, per item."
            )
        difficulty = self.difficulty if items is None else self.difficulty[self.positions(items)]
        return sigmoid(as_abilities(abilities)[:, None] - difficulty[None, :])

    def category_probability(self, abilities: ArrayLike, item: Any) -> Floats:
        """P(X = k) of one item: a row for each ability, a column for each category."""
        layout, beta = self.thresholds_of(self.positions([item]))
        return category_probabilities(as_abilities(abilities), layout.cumulated(beta))

    def expected_score(self, abilities: ArrayLike, items: Sequence[Any] | None = None) -> Floats:
        """The expected answer: a row for each ability, a column for each item (by default all with a difficulty)."""
        layout, beta = self.thresholds_of(self.positions(items))
        theta = as_abilities(abilities)[:, None]
        if layout.binary:  # a quarter of the time
            return sigmoid(theta - beta)
        p = category_probabilities(theta, layout.cumulated(beta))
        return p @ np.arange(p.shape[-1])

    def information(self, theta: ArrayLike | None = None, items: Sequence[Any] | None = None) -> Any:
        """The test information function as a table: `ability, information, se`.

        I(theta) is the variance of the total score there, and 1 / sqrt(I) the standard error of an ability.

        Parameters
        ----------
        theta : array, optional
            Abilities; by default 121 of them, from two logits below the lowest threshold to two above the highest.
        items : sequence of labels, optional
            The items of a form; by default all that have a difficulty.

        Examples
        --------
        >>> from spectral_irt import SpectralRasch, datasets
        >>> calibration = SpectralRasch().fit(datasets.load_lsat()).calibration_
        >>> calibration.information([0.0])["information"].round(2).to_list()
        [1.06]
        """
        layout, beta = self.form(items)
        if theta is None:
            theta = np.linspace(beta.min() - 2, beta.max() + 2, 121)
        ability = as_abilities(theta)
        information = form_information(beta, ability, layout)
        with np.errstate(divide="ignore"):
            se = 1 / np.sqrt(information)
        return make_table({"ability": ability, "information": information, "se": se}, self.frame_kind)

    def score_table(self, items: Sequence[Any] | None = None) -> Table:
        """From total score to ability on a complete set of items: `score, ability, se, ability_ml, se_ml`.

        `ability` is Warm's weighted likelihood estimate, finite for every score; `ability_ml` the maximum likelihood
        estimate, infinite for the lowest and the highest. `items` are those of the form, by default all with a
        difficulty: name them where items were split by groups, for nobody has two parts of an item. Where categories
        are coded otherwise than 0, 1, ..., `code_sum` is the sum of the codes; where a
        renumbered category gives one score to several sums, it is the lowest and `code_sum_high` the highest."""
        place = self.form_positions(items)
        layout, beta = self.thresholds_of(place)
        ability, se = score_abilities(beta, layout)
        ability_ml, se_ml = score_abilities(beta, layout, warm=False)
        scores = np.arange(len(ability))
        columns = {"score": scores, **self.code_columns([place])}
        columns |= {"ability": ability, "se": se, "ability_ml": ability_ml, "se_ml": se_ml}
        return make_table(columns, self.frame_kind)

    def save(self, folder: str | Path) -> Path:
        """Keep the calibration in a folder, as a bank that scores people, anchors and links; `study.to_bank()` also
        keeps what updating needs."""
        from spectral_irt.bank.build import without_data

        return without_data(self).save(folder)

    @classmethod
    def load(cls, folder: str | Path) -> Calibration:
        """The calibration of a bank that was saved; every file is checked, nothing is unpickled."""
        from spectral_irt.bank.bank import Bank

        return Bank.load(folder).calibration


def as_abilities(given: Any) -> Floats:
    """Abilities as an array; a table of answers is refused."""
    what = type(given).__name__
    with suppress(TypeError, ValueError):
        theta = np.atleast_1d(np.asarray(given, dtype=float))
        if theta.ndim == 1:
            return theta
        what = f"a table of shape {theta.shape}"
    raise OptionError(
        f"this takes abilities, one number per person, not {what}. Abilities of the people who gave these answers: "
        "fit.analyse(answers).persons()."
    )
