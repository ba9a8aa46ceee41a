"""What every estimator shares: parameters, `fit`, and a table of items.

A method file holds a free function that computes and a class that derives from `RaschEstimator` and implements
`_estimate(responses) -> Estimate`. This class does the rest: it checks the data, keeps labels and counts, and
follows scikit-learn's conventions without importing scikit-learn.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_irt.engines import LocalEngine
from spectral_irt.errors import NotFittedError, OptionError, listed
from spectral_irt.responses import Finding, Responses, as_responses
from spectral_irt.responses.block import Floats
from spectral_irt.responses.labels import positions
from spectral_irt.responses.responses import fixed
from spectral_irt.responses.usable import check_usable
from spectral_irt.results import Results

Z95 = 1.959963984540054  # standard normal quantile at 0.975
KEEP_COVARIANCE = 2_000  # items up to which a fit keeps its covariance matrix (32 MB)


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a method found, one number an item, in the order of the responses' items.

    Attributes
    ----------
    difficulty, se : float arrays
        NaN where the item has no estimate.
    status : array of str
        "ok", or why the number is less than that: "all right", "all wrong", "no information", "no responses", "apart".
    n_iter, residual : int, float
        Iterations of the method, and how far the solution is from exact (the method says in what measure).
    loglik : float, optional
        The log-likelihood that the method maximises, if it has one.
    findings : tuple of Finding
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
    extra: Mapping[str, Any] = field(default_factory=dict)


class RaschEstimator(Results):
    """Base of all estimators; see `SpectralRasch` for the one to use."""

    threads: int | None
    threshold: float | None
    difficulty_: Floats
    se_: Floats
    status_: NDArray[Any]
    n_iter_: int
    residual_: float
    findings_: tuple[Finding, ...]
    loglik_: float

    # Told in a few words what goes on during `fit`; whoever wants to show that sets it on the instance.
    _progress: Callable[[str], None] | None = None

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
        return hasattr(self, "difficulty_")

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [f"{k}={v!r}" for k, v in self.get_params().items() if not _same(v, defaults[k].default)]
        call = f"{type(self).__name__}({', '.join(changed)})"
        if not self.__sklearn_is_fitted__():
            return call
        known = np.isfinite(self.difficulty_)
        spread = f"{np.min(self.difficulty_[known]):.2f} to {np.max(self.difficulty_[known]):.2f}"
        se = self.se_[np.isfinite(self.se_)]
        median = f", median se {np.median(se):.3f}" if len(se) else ""
        return f"<{call}: {known.sum():,} items, difficulty {spread}{median}, {self.n_iter_} iterations>"

    # ------------------------------------------------------------------------------- fit

    def fit(self, data: Any, y: object = None) -> Self:
        """Calibrate the items.

        Parameters
        ----------
        data : Responses, 2-D array, scipy sparse matrix, or any dataframe
            One row per user, one column per item; 1 right, 0 wrong, NaN or None not answered. A dataframe may also be
            long, or have a column of labels: it is read as `responses_from_frame` reads it, and `findings_` tells
            which columns were taken for items. What must be said about it (user=, missing=, key=, ...) is said there.
        y : ignored
            Present because scikit-learn's pipelines pass it.
        """
        responses = as_responses(data, threshold=self.threshold)
        if self.threads is not None:
            responses = responses.using(LocalEngine(self.threads))
        check_usable(responses)
        estimate = self._estimate(responses)
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)  # nothing of an earlier fit survives
        for name in ("difficulty", "se", "status"):
            setattr(self, f"{name}_", fixed(getattr(estimate, name)))
        self.n_iter_ = estimate.n_iter
        self.residual_ = estimate.residual
        self.findings_ = responses.notes + tuple(estimate.findings)
        if estimate.loglik is not None:
            self.loglik_ = estimate.loglik
        for name, value in estimate.extra.items():
            setattr(self, f"{name}_", fixed(value) if isinstance(value, np.ndarray) else value)
        self.item_labels_ = fixed(responses.items)
        self.item_counts_ = responses.item_counts
        self.item_scores_ = responses.item_scores
        self.frame_kind_ = responses.frame_kind
        self.n_features_in_ = responses.n_items
        return self

    def _estimate(self, responses: Responses) -> Estimate:
        raise NotImplementedError

    def _require_fit(self) -> None:
        if not self.__sklearn_is_fitted__():
            kinds: tuple[type, ...] = (NotFittedError,)
            if "sklearn" in sys.modules:  # whoever uses scikit-learn may catch its own error
                from sklearn.exceptions import NotFittedError as Theirs

                kinds = (NotFittedError, Theirs)
            error = type("NotFittedError", kinds, {})
            raise error(f"this {type(self).__name__} is not fitted yet; call fit(responses) first.")

    # --------------------------------------------------------------------------- results

    def items(self) -> Any:
        """The items as a table: `item, difficulty, se, ci_low, ci_high, n, score, p_value, status`.

        Larger difficulty = harder; `ci_low` to `ci_high` is the 95 % interval; `n` users answered, `score` of them
        right, `p_value` = score / n (the classical item facility). The table is of the dataframe library that the data
        came in, polars otherwise.
        """
        self._require_fit()
        return make_table(self.item_columns(), self.frame_kind_)

    def item_columns(self) -> dict[str, NDArray[Any]]:
        """The columns of `items()`."""
        self._require_fit()
        n, score = self.item_counts_, self.item_scores_
        return {
            "item": self.item_labels_,
            "difficulty": self.difficulty_,
            "se": self.se_,
            "ci_low": self.difficulty_ - Z95 * self.se_,
            "ci_high": self.difficulty_ + Z95 * self.se_,
            "n": n,
            "score": score,
            "p_value": np.divide(score, n, out=np.full(len(n), np.nan), where=n > 0),
            "status": self.status_,
        }

    def predict_proba(self, abilities: ArrayLike, items: Sequence[Any] | None = None) -> Floats:
        """Probability of a right answer: a row for each ability, a column for each item (all of them by default).

        P(X = 1) = 1 / (1 + exp(difficulty - ability)).
        """
        self._require_fit()
        difficulty = self.difficulty_
        if items is not None:
            difficulty = difficulty[self._places_of(items)]
        theta = _abilities(abilities)
        with np.errstate(over="ignore"):
            return 1 / (1 + np.exp(difficulty[None, :] - theta[:, None]))

    def _places_of(self, items: Sequence[Any]) -> NDArray[np.int64]:
        """Where these items are among those of the calibration; each must be one of them."""
        place = positions(items, self.item_labels_)
        if (place < 0).any():
            unknown = [label for label, k in zip(items, place, strict=True) if k < 0]
            raise OptionError(f"unknown items {listed(unknown)}; this calibration has {listed(self.item_labels_)}.")
        return place


def _abilities(given: Any) -> Floats:
    """Abilities as an array; a table of answers, which `predict_proba` takes elsewhere, is refused."""
    try:
        theta = np.atleast_1d(np.asarray(given, dtype=float))
    except (TypeError, ValueError):
        theta = None
    if theta is None or theta.ndim > 1:
        what = type(given).__name__ if theta is None else f"a table of shape {theta.shape}"
        raise OptionError(
            f"predict_proba takes abilities, one number per person, not {what}. Abilities of the people who gave these "
            "answers: fit.persons(answers)."
        )
    return theta


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


def make_table(columns: Mapping[str, NDArray[Any]], frame_kind: str | None) -> Any:
    """A dataframe of the named library (polars by default)."""
    import narwhals as nw

    plain = {name: values.tolist() if values.dtype == object else values for name, values in columns.items()}
    kind: Any = frame_kind or "polars"
    return nw.from_dict(plain, backend=kind).to_native()
