"""What every estimator shares: parameters, `fit`, and the calibration it leaves.

A method is a class that declares its parameters as the fields of a dataclass, and implements `_estimate(responses,
tell) -> Estimate`. This class checks the data, makes the `Calibration`, follows scikit-learn's conventions without
importing it, and logs to `logging.getLogger("spectral_irt")`.
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from numbers import Real
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_irt import __version__, notebook
from spectral_irt.calibration import CONDITIONAL, LOGITS, SMALL, Calibration, Provenance, Scale
from spectral_irt.chain.prior import Regularization
from spectral_irt.conditional.errors import location_covariance
from spectral_irt.data import Finding, Responses, as_responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.design import Mask, check_usable
from spectral_irt.data.labels import Labels
from spectral_irt.engine import LocalEngine, one_blas_thread
from spectral_irt.errors import ConvergenceWarning, NotFittedError, OptionError
from spectral_irt.numerics import read_only
from spectral_irt.tables import Columns, Table, as_html
from spectral_irt.text import count, listed, one_or_many, sentence_case, stopped_early

if TYPE_CHECKING:
    from spectral_irt.analysis import Analysis
    from spectral_irt.data.facets import FacetMeasures


Tell = Callable[[str], None]
# Whether the answers decided what a person was asked next.
FIXED = "fixed"
ADAPTIVE = "adaptive"
DESIGNS = (FIXED, ADAPTIVE)
RAISE = "Raise `max_iter`."
WEAK_LINKS = "Raise `max_iter`, or look for weak links between groups of items."

SMALL_ALGEBRA = 1_000  # thresholds up to which one thread does a fit's matrices sooner than several have woken up
KEEP_COVARIANCE = 2_000  # thresholds up to which a fit keeps its covariance matrix (32 MB)
LONGEST_SETTING = 200  # characters of a parameter, such as a bank, that a record names
OUT_OF_ORDER = 1.96  # standard errors beyond which a threshold below the one before is more than chance

log = logging.getLogger("spectral_irt")
log.addHandler(logging.NullHandler())  # a program that sets up no log hears nothing
LEVELS = {"note": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def _of_calibration(path: str) -> Any:
    """An attribute of a fitted estimator that its calibration has; where that is None the method has no such thing."""

    def attribute(estimator: RaschEstimator) -> Any:
        value = attrgetter(path)(estimator._fitted_calibration)
        if value is None:
            raise AttributeError(f"{type(estimator).__name__} has no {path.rpartition('.')[2]}_")
        return value

    return property(attribute)


OF_SOME_METHODS = ("loglik_", "regularization_", "se_method_", "solver_", "contraction_")


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a method found, in the order of the responses' items.

    Of every threshold, item after item, NaN without an estimate; `status` of an item is "ok", or why the number is less
    than that: "all right", "all wrong", "no information", "no responses", "unlinked". `further` are columns of the
    table of items, and each entry `name` of `extra` becomes the attribute `name_` of the fitted estimator.
    """

    thresholds: Floats
    se: Floats
    status: NDArray[Any]
    n_iter: int
    residual: float  # how far the solution is from exact, in the method's own measure
    item_se: Floats | None = None  # of the locations; by default as if each threshold were known by itself
    covariance: Floats | None = None
    information: Floats | None = None  # of the answers, without any prior, on each location; by default 1 / item_se^2
    threshold_information: Floats | None = None  # the same on the thresholds of each item, as a calibration has it
    threshold_score: Floats | None = None  # of the answers at these thresholds
    without_prior: Floats | None = None  # the thresholds without the prior, as a calibration has them
    loglik: Any = None  # a number, where the method has a likelihood
    findings: tuple[Finding, ...] = ()
    regularization: Regularization | None = None
    se_method: str | None = None
    solver: str | None = None
    contraction: float | None = None
    scale: Scale = LOGITS
    further: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    facets: FacetMeasures | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


def as_json(value: Any) -> Any:
    """A parameter as a record of settings has it: in types of JSON, or what it calls itself, shortened."""
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): as_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    return repr(value)[:LONGEST_SETTING]


def with_missing(values: Floats, mask: Mask) -> Floats:
    """A vector, or a square matrix, with NaN for what the mask leaves out."""
    if mask.all():
        return values
    full = np.full((len(mask),) * values.ndim, np.nan)
    full[np.ix_(*(mask,) * values.ndim)] = values
    return full


def of_all_items(blocks: Floats, included: Mask, layout: Thresholds) -> Floats:
    """Blocks of the items included, thresholds of one x thresholds of one, for all items: zero for the others."""
    if included.all():
        return blocks
    full = np.zeros((layout.n_items, layout.widest, layout.widest))
    full[included, : blocks.shape[1], : blocks.shape[1]] = blocks
    return full


def convergence(
    what: str, steps: int, unit: str, size: str, reached: float, asked: float, *, remedy: str = RAISE, warn: bool = True
) -> list[Finding]:
    """Nothing where an iteration reached its tolerance; else the finding that it did not, and perhaps a warning."""
    if reached <= asked:
        return []
    sentence = stopped_early(what, steps, unit, size, reached, asked)
    if warn:
        warnings.warn(f"{sentence} {remedy}", ConvergenceWarning, stacklevel=4)  # where `fit` was called
    return [Finding("not_converged", "warning", sentence_case(sentence), remedy)]


def out_of_order(responses: Responses, estimate: Estimate) -> tuple[Finding, ...]:
    """The finding that a threshold lies below the one before it, if any does; of ratings, by item. Where a prior moved
    thresholds, also what is so without it."""
    disorder = _disorder(responses, estimate)
    if not len(disorder.items) and not len(disorder.items_without_prior):
        return ()
    use = "look at whether people use the category as meant, or join it with a neighbor"
    guessed = any(note.code == "ordered_categories" for note in responses.notes)
    many = 3 * len(disorder.significant) > responses.n_items
    if guessed and many and np.nanmin(responses.category_codes()) > 0:  # points have a 0
        use = "so many are typical of multiple choice: if the numbers are options, say `key=`"
    return (
        Finding(
            "thresholds_out_of_order",
            "warning" if len(disorder.significant) else "note",
            _disorder_in_words(disorder),
            f"The category between two such thresholds is never the most likely answer. The model allows that; {use}.",
            tuple(dict.fromkeys([*disorder.items.tolist(), *disorder.items_without_prior.tolist()])),
        ),
    )


class Disorder(NamedTuple):
    """Items with a threshold below the one before it; those where that is more than chance, and those where it is so
    without the prior."""

    items: Labels
    significant: Labels
    items_without_prior: Labels


def _disorder(responses: Responses, estimate: Estimate) -> Disorder:
    """Neighboring thresholds compared, with the standard error of their difference."""
    layout = responses.thresholds
    beta = estimate.thresholds
    se = estimate.se
    labels = responses.items
    covariance = estimate.covariance
    without_prior = estimate.without_prior
    if estimate.facets is not None:
        items = estimate.facets.items
        layout = items.layout
        beta = items.thresholds
        se = items.threshold_se
        labels = items.labels
        covariance = None
        without_prior = None
    upper = np.flatnonzero(layout.below)
    distance = beta[upper] - beta[upper - 1]
    disordered = distance < 0
    disordered_without_prior = disordered
    if without_prior is not None:
        both_known = np.isfinite(without_prior[upper]) & np.isfinite(without_prior[upper - 1])
        disordered_without_prior = both_known & (without_prior[upper] < without_prior[upper - 1])
    variance = se[upper] ** 2 + se[upper - 1] ** 2
    if covariance is not None:
        with np.errstate(invalid="ignore"):  # infinite where nothing links the item: then it may be chance
            variance -= 2 * covariance[upper, upper - 1]
    significant = distance < -OUT_OF_ORDER * np.sqrt(np.maximum(variance, 0))

    def items_of(pairs: Mask) -> Labels:
        return labels[np.unique(layout.item[upper[pairs]])]

    return Disorder(items_of(disordered), items_of(significant), items_of(disordered_without_prior))


def _disorder_in_words(disorder: Disorder) -> str:
    """Which items have disordered thresholds, which of them by more than chance, and which without the prior."""
    items = disorder.items
    without_prior = disorder.items_without_prior
    if not len(items):
        none = "No item has a threshold below the one before it; without the prior on thresholds with few responses"
        return f"{none}, {have_disorder(without_prior)}."
    chance = "; it may be chance"
    if len(disorder.significant):
        names = listed(disorder.significant)
        chance = f"; significant in {len(disorder.significant):,} of them ({names})"
        if len(disorder.significant) == len(items):
            chance = ", significant" if len(items) == 1 else "; significant in all of them"
    sentence = f"{have_disorder(items)}{chance}."
    if items.tolist() == without_prior.tolist():
        return sentence
    sentence += " Without the prior on thresholds with few responses "
    if not len(without_prior):
        return f"{sentence}none has."
    have = one_or_many(len(without_prior), "has", "have")
    return f"{sentence}{len(without_prior):,} {have}: {listed(without_prior)}."


def have_disorder(items: Labels) -> str:
    have = one_or_many(len(items), "has", "have")
    return f"{count(len(items), 'item')} {have} a threshold below the one before it: {listed(items)}"


def work_kind(responses: Responses) -> str:
    """What `engine.WorkSize` calls these responses: the temporary arrays of each kind have sizes of their own."""
    if responses.facets is not None:
        return "ratings"
    return "binary" if responses.thresholds.binary else "ordered"


def reserve_memory(responses: Responses, *, matrices_certain: bool) -> None:
    """Set memory aside for a fit of these responses; an error if there is not enough."""
    layout = responses.thresholds
    facets = responses.facets
    responses.engine.reserve(
        persons=responses.n_persons,
        items=layout.n_entries,
        answers=responses.n_responses,
        kind=work_kind(responses),
        parameters=layout.n_entries if facets is None else facets.n_parameters(layout.widest),
        combinations_have_tables=facets is not None and facets.tables_fit,
        matrices_certain=matrices_certain,
        noun="items" if layout.binary else "thresholds",
    )


def _categories(responses: Responses) -> dict[str, Floats]:
    """What a calibration records of categories: how often each was used, where there are several, and their codes,
    unless they are 0 and 1."""
    categories: dict[str, Floats] = {}
    if not responses.thresholds.binary:
        categories["category_n"] = responses.category_counts
        categories["codes"] = responses.category_codes()
    elif responses.codes is not None and np.nan_to_num(responses.codes[:, :2] - [0, 1]).any():  # such as 1 and 2
        categories["codes"] = responses.codes[:, :2]
    if responses.codes_high is not None:
        categories["codes_high"] = responses.codes_high
    return categories


class RaschEstimator:
    """Base of all estimators; see `SpectralRasch` for the one to use."""

    several: ClassVar[bool] = False  # whether answers may be in more than two categories
    model: ClassVar[str] = ""  # as a calibration records it; "": by the number of categories
    likelihood: ClassVar[str] = CONDITIONAL  # what is maximized
    takes_facets: ClassVar[bool] = False  # whether ratings may be more than answers to items
    threads: int | None
    threshold: float | None = None
    unused: str = "collapse"
    calibration_: Calibration
    covariance_: Floats | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters and their values; the defaults are those of the class."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # a dataclass

    def set_params(self, **params: Any) -> Self:
        """Change parameters; the fitted results stay until the next `fit`."""
        names = self.get_params()
        unknown = listed(sorted(set(params) - set(names)))
        if unknown:
            raise OptionError(f"{type(self).__name__} has no parameter {unknown}; it has {', '.join(names)}.")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),  # `transform` gives abilities
            input_tags=InputTags(two_d_array=True, sparse=True, allow_nan=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return "calibration_" in vars(self)

    def __repr__(self) -> str:
        changed = []
        for name, value in self.get_params().items():
            default = getattr(type(self), name)
            if type(value) is not type(default) or value != default:
                changed.append(f"{name}={value!r}")
        call = f"{type(self).__name__}({', '.join(changed)})"
        if not self.__sklearn_is_fitted__():
            return call
        difficulty = self.difficulty_[np.isfinite(self.difficulty_)]
        se = self.se_[np.isfinite(self.se_)]
        median = f", median se {np.median(se):.3f}" if len(se) else ""
        span = f"{difficulty.min():.2f} to {difficulty.max():.2f}"
        return f"<{call}: {len(difficulty):,} items, difficulty {span}{median}, {self.n_iter_} iterations>"

    def fit(self, data: Any, y: object = None, *, progress: Tell | None = None) -> Self:
        """Calibrate the items.

        Parameters
        ----------
        data : Responses, 2-D array, scipy sparse matrix, or any dataframe
            One row per person, one column per item; 1 right, 0 wrong, or whole numbers from 0 where the model has
            ordered categories; NaN or None not answered. A dataframe may also be long, or have a column of labels; it
            is read by `read`, which takes options, and `findings_` says which columns are items.
        y : ignored
            Present because scikit-learn's pipelines pass it.
        progress : callable, optional
            Called with a few words on what is going on. By default a notebook shows them, where it takes long.
        """
        return self._fit_design(data, progress)

    def _fit_design(self, data: Any, progress: Tell | None, **design: Any) -> Self:
        """`fit`; what only some methods take about the design goes to their `_estimate`."""
        self._check_numbers()
        start = time.perf_counter()
        responses = self._read(data)
        linear = design.get("design")
        if linear is not None and not isinstance(linear, str):  # which may name columns about persons
            responses = linear.cross_columns(responses)
        if self.threads is not None:
            responses = self._with_threads(responses)
        check_usable(responses)
        if responses.facets is not None and not self.takes_facets:
            raise OptionError(
                f"{type(self).__name__} knows items only, and these answers have facets "
                f"({listed(responses.facets.names[1:])}); take a spectral estimator, with a fixed design."
            )
        reserve_memory(responses, matrices_certain=self._surely_forms_matrices(responses, **design))

        def tell(text: str) -> None:
            log.debug("%s", text)
            listener = progress or notebook.say
            listener(text)

        small_algebra = responses.thresholds.n_entries <= SMALL_ALGEBRA
        with notebook.progress_line(progress), one_blas_thread() if small_algebra else nullcontext():
            estimate = self._estimate(responses, tell, **design)
        self._learn(responses, estimate)
        self._remember(data)
        log.info(
            "%s: %d items from %d responses of %d people, %d iterations, %.2f s",
            type(self).__name__,
            responses.n_items,
            responses.n_responses,
            responses.n_persons,
            estimate.n_iter,
            time.perf_counter() - start,
        )
        for finding in self.calibration_.findings:
            log.log(LEVELS[finding.severity], "%s: %s", finding.code, finding)
        return self

    def _learn(self, responses: Responses, estimate: Estimate) -> None:
        """What the fitted estimator has: the calibration, its covariance matrix, and what else ends in `_`."""
        self._forget()
        self.calibration_ = self._calibration(responses, estimate)
        self.covariance_ = None
        covariance = estimate.covariance
        if covariance is not None and (len(covariance) <= KEEP_COVARIANCE or getattr(self, "se", None) == "dense"):
            self.covariance_ = read_only(covariance)
        for name, value in estimate.extra.items():
            setattr(self, f"{name}_", read_only(value) if isinstance(value, np.ndarray) else value)

    def _remember(self, data: Any) -> None:
        """Keep a weak reference to the data, in an estimator that computes something from them when it is asked for."""

    def _surely_forms_matrices(self, responses: Responses, **design: Any) -> bool:
        """Whether the fit holds matrices of thresholds by thresholds, where these are few enough, whatever the answers
        turn out to be."""
        return True

    def _forget(self) -> None:
        """Nothing of an earlier fit survives."""
        for name in tuple(vars(self)):
            if name.endswith("_") and not name.startswith("_"):
                delattr(self, name)

    def _read(self, data: Any) -> Responses:
        """What `fit` makes of its argument."""
        if self.several:
            return as_responses(data, ordered=True, unused=self.unused)
        responses = as_responses(data, threshold=self.threshold)
        responses.right_and_wrong_only()
        return responses

    def _check_numbers(self) -> None:
        """Refuse an option that is no number where its default is one, before anything is computed with it."""
        for name, value in self.get_params().items():
            default = getattr(type(self), name)
            usual = {"threads": 1, "regularization": 0.0}.get(name, default)
            if isinstance(usual, bool) or not isinstance(usual, int | float) or value is default:
                continue
            if name == "regularization" and isinstance(value, str):
                continue  # checked by the fit, which knows the words
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            must_be_whole = isinstance(usual, int)
            if not is_number or (must_be_whole and value % 1 != 0) or (name == "random_state" and value < 0):
                what = "a whole number" if must_be_whole else "a number"
                if name == "regularization":
                    what = "'auto' or a number"
                elif name == "random_state":
                    what += ", zero or more"
                raise OptionError(f"`{name}` is {value!r}; it must be {what}.")
            if name == "tol" and not value > 0:
                raise OptionError(f"`tol` is {value!r}; it must be above zero.")
            if name == "max_iter" and value < 1:
                raise OptionError(f"`max_iter` is {value!r}; it must be at least 1.")

    def _with_threads(self, responses: Responses) -> Responses:
        if responses.engine.remote:
            raise OptionError("`threads` is for answers in this process, and these are on a cluster; leave it out.")
        return responses.with_engine(LocalEngine(self.threads))

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        raise NotImplementedError

    def _calibration(self, responses: Responses, estimate: Estimate) -> Calibration:
        layout = responses.thresholds
        item_se = estimate.item_se
        if item_se is None:
            item_se = estimate.se
            if not layout.binary:
                item_se = np.sqrt(layout.mean(estimate.se**2) / layout.max_score)
        information = estimate.information
        if information is None:
            with np.errstate(divide="ignore"):
                information = np.nan_to_num(1 / item_se**2, posinf=0.0)
        covariance = None
        if estimate.covariance is not None and len(estimate.covariance) <= SMALL:
            covariance = estimate.covariance
        findings = responses.notes + tuple(estimate.findings)
        if not layout.binary:
            findings += out_of_order(responses, estimate)
        return Calibration(
            labels=responses.items,
            layout=layout,
            thresholds=estimate.thresholds,
            threshold_se=estimate.se,
            location_se=None if layout.binary else item_se,
            status=estimate.status,
            n=responses.item_counts,
            score=responses.item_scores,
            item_information=information,
            threshold_covariance=covariance,
            threshold_information=None if layout.binary else estimate.threshold_information,
            threshold_score=estimate.threshold_score,
            without_prior=estimate.without_prior,
            model=self.model,
            scale_of_item=self._scale_of_item(responses),
            likelihood=self.likelihood,
            scale=estimate.scale,
            prior=estimate.regularization,
            findings=findings,
            provenance=self._provenance(estimate),
            further=estimate.further,
            frame_kind=responses.frame_kind,
            facets=estimate.facets,
            **_categories(responses),
        )

    def _provenance(self, estimate: Estimate) -> Provenance:
        return Provenance(
            estimator=type(self).__name__,
            settings={name: as_json(value) for name, value in self.get_params().items()},
            iterations=estimate.n_iter,
            residual=estimate.residual,
            loglik=estimate.loglik,
            se_method=estimate.se_method,
            solver=estimate.solver,
            contraction=estimate.contraction,
            version=__version__,
        )

    def _scale_of_item(self, responses: Responses) -> Ints | None:
        """The rating scale of each item; None of other models."""
        return None

    @property
    def _fitted_calibration(self) -> Calibration:
        if "calibration_" not in vars(self):
            kinds: tuple[type, ...] = (NotFittedError,)
            if "sklearn" in sys.modules:  # whoever uses scikit-learn may catch its own error
                from sklearn.exceptions import NotFittedError as Theirs

                kinds = (NotFittedError, Theirs)
            error = type("NotFittedError", kinds, {})
            raise error(f"this {type(self).__name__} is not fitted yet; call fit(responses) first.")
        return self.calibration_

    difficulty_: Floats = _of_calibration("difficulty")  # the mean of an item's thresholds; NaN without an estimate
    se_: Floats = _of_calibration("se")
    thresholds_: Floats = _of_calibration("thresholds")  # item after item; one for each item that is right or wrong
    threshold_se_: Floats = _of_calibration("threshold_se")
    n_thresholds_: Ints = _of_calibration("layout.max_score")
    status_: NDArray[Any] = _of_calibration("status")
    information_: Floats = _of_calibration("item_information")  # on each location, without any prior
    item_labels_: Labels = _of_calibration("labels")
    item_counts_: Ints = _of_calibration("n")
    item_scores_: Ints = _of_calibration("score")
    n_features_in_: int = _of_calibration("n_items")
    n_iter_: int = _of_calibration("provenance.iterations")
    residual_: float = _of_calibration("provenance.residual")
    findings_: tuple[Finding, ...] = _of_calibration("findings")
    # Only some methods have these; see `OF_SOME_METHODS`.
    loglik_: float = _of_calibration("provenance.loglik")
    regularization_: Regularization = _of_calibration("prior")
    se_method_: str = _of_calibration("provenance.se_method")
    solver_: str = _of_calibration("provenance.solver")
    contraction_: float = _of_calibration("provenance.contraction")

    def __dir__(self) -> list[str]:
        """After `fit`, without the results that this method does not have."""
        fitted = "calibration_" in vars(self)
        absent = {name for name in OF_SOME_METHODS if fitted and not self._offers(name)}
        return [name for name in super().__dir__() if name not in absent]

    def _offers(self, name: str) -> bool:
        """Whether there is such a result, without computing it."""
        return hasattr(self, name)

    def items(self) -> Table:
        """`Calibration.items`."""
        return self._fitted_calibration.items()

    def item_columns(self) -> Columns:
        """The columns of `items()`."""
        return self._fitted_calibration.item_columns()

    def covariance(self) -> Floats:
        """Covariance matrix of the thresholds, on the scale whose mean location is zero; NaN without an estimate.

        Of items that are right or wrong these are the difficulties; of others `location_covariance()` has those. Kept
        where the standard errors came from a matrix, for up to 2,000 thresholds or with `se="dense"`.
        """
        learned = self._fitted_calibration
        if self.covariance_ is None:
            why = f"{learned.layout.n_entries:,} thresholds"
            if learned.provenance.se_method is not None:
                why += f"; standard errors: {learned.provenance.se_method}"
            use = "use se_ instead, or a spectral fit with `se='dense'`"
            raise OptionError(f"this fit kept no covariance matrix ({why}); {use}.")
        return self.covariance_

    def location_covariance(self) -> Floats:
        """Covariance matrix of the difficulties, the means of the items' thresholds; kept where `covariance()` is."""
        return location_covariance(self._fitted_calibration.layout, self.covariance())

    def predict_proba(self, abilities: ArrayLike, items: Sequence[Any] | None = None) -> Floats:
        """Probability of a right answer, abilities x items; see `Calibration.probability`."""
        return self._fitted_calibration.probability(abilities, items)

    def predict_score(self, abilities: ArrayLike, items: Sequence[Any] | None = None) -> Floats:
        """The expected answer, abilities x items; see `Calibration.category_probability` for each category."""
        return self._fitted_calibration.expected_score(abilities, items)

    def score(self, responses: Any, y: object = None) -> float:
        """The mean conditional log-likelihood of a response at these thresholds: larger is better.

        For `cross_val_score` and `GridSearchCV` of scikit-learn: of responses that the fit has not seen. Abilities are
        conditioned out, so nothing is assumed about the persons.

        Parameters
        ----------
        responses : Responses, array or dataframe
            As in `fit`, with items that were fitted.
        y : ignored
            Present because scikit-learn passes it.
        """
        likelihood = self.analyse(responses).likelihood()
        return likelihood.loglik / likelihood.n_responses

    def transform(self, responses: Any) -> Floats:
        """The abilities of persons, as a matrix with one column; for pipelines of scikit-learn.

        Warm's estimates; `analyse(responses).persons()` has them with labels and standard errors.
        """
        return self.analyse(responses).abilities().ability[:, np.newaxis]

    def fit_transform(self, data: Any, y: object = None) -> Floats:
        """Calibrate the items, and estimate the abilities of the same persons."""
        return self.fit(data, y).transform(data)

    def _repr_html_(self) -> str:
        """For notebooks: what was fitted, and the first items."""
        if not self.__sklearn_is_fitted__():
            return as_html(repr(self))
        return as_html(repr(self), self.item_columns())

    def analyse(self, responses: Any, **options: Any) -> Analysis:
        """The calibration together with responses, those it was fitted to or others; the options of `Analysis`."""
        from spectral_irt.analysis import Analysis

        calibration = self._fitted_calibration
        if self.several:
            answers = as_responses(responses, ordered=True, unused="keep")
        else:
            answers = as_responses(responses, threshold=self.threshold)
        if self.threads is not None:
            answers = self._with_threads(answers)
        return Analysis(calibration, answers, estimator=self, **options)
