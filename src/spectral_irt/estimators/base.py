"""What every estimator shares: parameters, `fit`, and the calibration it leaves.

A method file holds a free function that computes and a class that derives from `RaschEstimator` and implements
`_estimate(responses, tell) -> Estimate`. This class does the rest: it checks the data, makes the `Calibration`, and
follows scikit-learn's conventions without importing scikit-learn.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_irt import __version__
from spectral_irt.calibration import LOGITS, SMALL, Calibration, Provenance, Scale
from spectral_irt.chain.regularization import Regularization
from spectral_irt.data import Finding, Responses, as_responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import check_usable
from spectral_irt.data.responses import Labels
from spectral_irt.engine import LocalEngine, one_blas_thread
from spectral_irt.errors import ConvergenceWarning, NotFittedError, OptionError, listed, stopped
from spectral_irt.estimators.logged import LoggedFit
from spectral_irt.numerics import fixed
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from spectral_irt.analysis import Analysis

Tell = Callable[[str], None]
WEAK_LINKS = "Raise `max_iter`, or look for weak links between groups of items."

SMALL_ALGEBRA = 1_000  # items up to which one thread does a fit's matrices sooner than several have woken up
KEEP_COVARIANCE = 2_000  # items up to which a fit keeps its covariance matrix (32 MB)


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a method found, one number per item, in the order of the responses' items.

    Attributes
    ----------
    difficulty, se : float arrays
        NaN where the item has no estimate.
    status : array of str
        "ok", or why the number is less than that: "all right", "all wrong", "no information", "no responses", "apart".
    n_iter, residual : int, float
        Iterations of the method, and how far the solution is from exact (the method says in what measure).
    loglik : float, optional
        The log-likelihood that the method maximizes, if it has one.
    findings : tuple of Finding
    information : float array, optional
        What the answers tell about each item; by default 1 / se^2.
    covariance : float array, optional
        Of the difficulties, items x items, where the method formed it.
    regularization, se_method, solver, contraction, scale
        How it was done, for the calibration's record.
    further : mapping
        Columns that the table of items has besides the usual ones.
    extra : mapping
        What only this method learns; each entry `name` becomes the attribute `name_` of the fitted estimator.
    """

    difficulty: Floats
    se: Floats
    status: NDArray[Any]
    n_iter: int
    residual: float
    loglik: float | None = None
    findings: tuple[Finding, ...] = ()
    information: Floats | None = None
    covariance: Floats | None = None
    regularization: Regularization | None = None
    se_method: str | None = None
    solver: str | None = None
    contraction: float | None = None
    scale: Scale = LOGITS
    further: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


def convergence(
    what: str,
    steps: int,
    unit: str,
    measure: str,
    reached: float,
    asked: float,
    *,
    remedy: str = "Raise `max_iter`.",
    warn: bool = True,
) -> list[Finding]:
    """Nothing where an iteration reached its tolerance; else the finding that it did not, and a warning.

    `warn=False` where the iteration itself has warned.
    """
    if reached <= asked:
        return []
    sentence = stopped(what, steps, unit, measure, reached, asked)
    if warn:
        warnings.warn(sentence, ConvergenceWarning, stacklevel=4)  # where `fit` was called
    return [Finding("not_converged", "warning", sentence[0].upper() + sentence[1:], remedy)]


class RaschEstimator:
    """Base of all estimators; see `SpectralRasch` for the one to use."""

    threads: int | None
    threshold: float | None
    calibration_: Calibration

    # ------------------------------------------------- parameters, as scikit-learn has them

    @classmethod
    def _param_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters and their values."""
        return {name: getattr(self, name) for name in self._param_names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters; the fitted results stay until the next `fit`."""
        unknown = set(params) - set(self._param_names())
        if unknown:
            raise OptionError(
                f"{type(self).__name__} has no parameter {listed(sorted(unknown))}; "
                f"it has {', '.join(self._param_names())}."
            )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(two_d_array=True, sparse=True, allow_nan=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return "calibration_" in vars(self)

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [f"{k}={v!r}" for k, v in self.get_params().items() if not _same(v, defaults[k].default)]
        call = f"{type(self).__name__}({', '.join(changed)})"
        if not self.__sklearn_is_fitted__():
            return call
        known = self.difficulty_[np.isfinite(self.difficulty_)]
        se = self.se_[np.isfinite(self.se_)]
        median = f", median se {np.median(se):.3f}" if len(se) else ""
        spread = f"{known.min():.2f} to {known.max():.2f}"
        return f"<{call}: {len(known):,} items, difficulty {spread}{median}, {self.n_iter_} iterations>"

    # ------------------------------------------------------------------------------- fit

    def fit(self, data: Any, y: object = None, *, progress: Tell | None = None) -> Self:
        """Calibrate the items.

        Parameters
        ----------
        data : Responses, 2-D array, scipy sparse matrix, or any dataframe
            One row per person, one column per item; 1 right, 0 wrong, NaN or None not answered. A dataframe may also
            be long, or have a column of labels: it is read as `read` reads it, and `findings_` tells
            which columns were taken for items. What must be said about it (person=, missing=, key=, ...) is said there.
        y : ignored
            Present because scikit-learn's pipelines pass it.
        progress : callable, optional
            Told in a few words what is going on.
        """
        return self._fitted(data, progress)

    def _fitted(self, data: Any, progress: Tell | None, **design: Any) -> Self:
        """`fit`, and what only some methods are told about the design, which goes to their `_estimate`."""
        self._check_numbers()
        responses = self._threaded(as_responses(data, threshold=self.threshold))
        responses.right_and_wrong_only()
        check_usable(responses)
        responses.engine.reserve(responses.n_persons, responses.n_items, responses.n_responses)
        logged = LoggedFit(progress)
        small = one_blas_thread() if responses.n_items <= SMALL_ALGEBRA else nullcontext()
        with small:
            found = self._estimate(responses, logged.tell, **design)
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)  # nothing of an earlier fit survives
        self.calibration_ = self._calibration(responses, found)
        for name, value in found.extra.items():
            setattr(self, f"{name}_", fixed(value) if isinstance(value, np.ndarray) else value)
        logged.done(responses, self.calibration_)
        return self

    def _check_numbers(self) -> None:
        """Refuse an option that is no number where its default is one, before anything is computed with it."""
        defaults = inspect.signature(type(self).__init__).parameters
        for name, value in self.get_params().items():
            usual = {"threads": 1, "regularization": 0.0}.get(name, defaults[name].default)
            if isinstance(usual, bool) or not isinstance(usual, int | float) or value is defaults[name].default:
                continue
            if name == "regularization" and isinstance(value, str):
                continue  # checked by the fit, which knows the words
            number = isinstance(value, Real) and not isinstance(value, bool)
            whole = isinstance(usual, int)
            if not number or (whole and value % 1 != 0) or (name == "random_state" and value < 0):
                what = "a whole number" if whole else "'auto' or a number" if name == "regularization" else "a number"
                more = ", zero or more" if name == "random_state" else ""
                raise OptionError(f"`{name}` is {value!r}; it must be {what}{more}.")

    def _threaded(self, responses: Responses) -> Responses:
        if self.threads is None:
            return responses
        if responses.engine.remote:
            raise OptionError("`threads` is for answers in this process, and these are on a cluster; leave it out.")
        return responses.using(LocalEngine(self.threads))

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        raise NotImplementedError

    def _calibration(self, responses: Responses, found: Estimate) -> Calibration:
        information = found.information
        if information is None:
            with np.errstate(divide="ignore"):
                information = np.nan_to_num(1 / found.se**2, posinf=0.0)
        small = found.covariance is not None and len(found.covariance) <= SMALL
        return Calibration(
            labels=responses.items,
            thresholds=found.difficulty,
            threshold_se=found.se,
            status=found.status,
            n=responses.item_counts,
            score=responses.item_scores,
            item_information=information,
            covariance=found.covariance if small else None,
            scale=found.scale,
            prior=found.regularization,
            findings=responses.notes + tuple(found.findings),
            provenance=self._provenance(found),
            further=found.further,
            frame_kind=responses.frame_kind,
        )

    def _provenance(self, found: Any) -> Provenance:
        """How an `Estimate`, of difficulties or of thresholds, came about."""
        return Provenance(
            estimator=type(self).__name__,
            settings=_plain(self.get_params()),
            iterations=found.n_iter,
            residual=found.residual,
            loglik=found.loglik,
            se_method=found.se_method,
            solver=found.solver,
            contraction=found.contraction,
            version=__version__,
        )

    # ------------------------------------------------------------- what was learned: the calibration

    @property
    def _learned(self) -> Calibration:
        if not self.__sklearn_is_fitted__():
            kinds: tuple[type, ...] = (NotFittedError,)
            if "sklearn" in sys.modules:  # whoever uses scikit-learn may catch its own error
                from sklearn.exceptions import NotFittedError as Theirs

                kinds = (NotFittedError, Theirs)
            error = type("NotFittedError", kinds, {})
            raise error(f"this {type(self).__name__} is not fitted yet; call fit(responses) first.")
        return self.calibration_

    @property
    def difficulty_(self) -> Floats:
        """Larger = harder; NaN without an estimate."""
        return self._learned.difficulty

    @property
    def se_(self) -> Floats:
        return self._learned.se

    @property
    def status_(self) -> NDArray[Any]:
        return self._learned.status

    @property
    def information_(self) -> Floats:
        """What the answers tell about each item."""
        return self._learned.item_information

    @property
    def item_labels_(self) -> Labels:
        return self._learned.labels

    @property
    def item_counts_(self) -> Ints:
        return self._learned.n

    @property
    def item_scores_(self) -> Ints:
        return self._learned.score

    @property
    def n_features_in_(self) -> int:
        return self._learned.n_items

    @property
    def n_iter_(self) -> int:
        return self._learned.provenance.iterations

    @property
    def residual_(self) -> float:
        return self._learned.provenance.residual

    @property
    def findings_(self) -> tuple[Finding, ...]:
        return self._learned.findings

    @property
    def loglik_(self) -> float:
        return _there(self._learned.provenance.loglik, "loglik_")

    @property
    def regularization_(self) -> Regularization:
        return _there(self._learned.prior, "regularization_")

    @property
    def se_method_(self) -> str:
        return _there(self._learned.provenance.se_method, "se_method_")

    @property
    def solver_(self) -> str:
        return _there(self._learned.provenance.solver, "solver_")

    @property
    def contraction_(self) -> float:
        return _there(self._learned.provenance.contraction, "contraction_")

    # --------------------------------------------------------------------------- results

    def items(self) -> Any:
        """The items as a table; see `Calibration.items`."""
        return self._learned.items()

    def item_columns(self) -> Columns:
        """The columns of `items()`."""
        return self._learned.item_columns()

    def predict_proba(self, abilities: ArrayLike, items: Sequence[Any] | None = None) -> Floats:
        """Probability of a right answer, abilities x items; see `Calibration.probability`."""
        return self._learned.probability(abilities, items)

    def analyse(self, responses: Any, **options: Any) -> Analysis:
        """The calibration together with responses, those it was fitted to or others: people, fit, tests, groups, files.

        The options are those of `Analysis`.
        """
        from spectral_irt.analysis import Analysis

        calibration = self._learned
        answers = self._threaded(as_responses(responses, threshold=self.threshold))
        return Analysis(calibration, answers, estimator=self, **options)


def _there(value: Any, name: str) -> Any:
    if value is None:
        raise AttributeError(f"this estimator has no {name}")
    return value


def _plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters in types that JSON has; what has none is described."""
    plain = str | int | float | bool | None
    return {name: value if isinstance(value, plain) else repr(value)[:200] for name, value in parameters.items()}


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)
