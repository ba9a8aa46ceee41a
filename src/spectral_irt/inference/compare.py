"""Several estimators on the same data: who predicts, who agrees with CML, and what each costs."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spectral_irt.data import Responses
from spectral_irt.errors import OptionError, SpectralIrtError
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.inference.ordered_holdout import evaluate_ordered
from spectral_irt.inference.prediction import TEN_PRIORS, evaluate, split_persons

CML = ("cml", "pcm-cml")  # what distances are taken from, where it is among the methods
VALIDATION = 0.1  # of the training people, to choose the prior of the predictions: the paper's share


@dataclass(frozen=True)
class Comparison:
    """One estimator's row.

    `distance_to_cml` is the root mean square difference of difficulties (of thresholds, where answers are ordered) over
    items that both have, NaN without a CML fit; `auc` is NaN of ordered answers; `problem` is empty, or says in one
    sentence why the method has no result.
    """

    method: str
    auc: float
    loglik: float
    prior_mean: float
    prior_sd: float
    distance_to_cml: float
    items_estimated: int
    seconds: float
    peak_mb: float
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare(
    responses: Responses,
    methods: Mapping[str, Callable[[], RaschEstimator]],
    *,
    holdout: float = 0.2,
    seed: int = 0,
    priors: Sequence[tuple[float, float]] = TEN_PRIORS,
    tell: Callable[[str], None] = lambda text: None,
) -> list[Comparison]:
    """Fit each method to the same training people and predict the same test people.

    People are divided at random: `holdout` for the test; of the others nine tenths to fit and one tenth to choose the
    prior of the predictions. A method that fails says why in its row; the others go on.
    """
    if not 0 < holdout < 1:
        raise OptionError(f"`holdout` is {holdout}; it must lie between 0 and 1.")
    train = 1 - holdout
    fit_on, validation, test = split_persons(responses, [train * (1 - VALIDATION), train * VALIDATION, holdout], seed)
    rows: list[Comparison] = []
    difficulties: dict[str, Any] = {}
    for name, make in methods.items():
        tell(name)
        rows.append(_row(name, make, fit_on, validation, test, priors, difficulties))
    reference = next((name for name in CML if name in difficulties), None)
    if reference is not None:
        rows = [_with_distance(row, difficulties, reference) for row in rows]
    return rows


def _row(
    name: str,
    make: Callable[[], RaschEstimator],
    fit_on: Responses,
    validation: Responses,
    test: Responses,
    priors: Sequence[tuple[float, float]],
    difficulties: dict[str, Any],
) -> Comparison:
    # Blocks remember what they prepared; a fresh copy makes every method pay for its own preparation.
    data = fit_on.take_persons(np.arange(fit_on.n_persons))
    before = peak_memory(reset=True)
    start = time.perf_counter()
    nan = float("nan")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = make().fit(data)
    except (SpectralIrtError, MemoryError, ArithmeticError, np.linalg.LinAlgError) as error:
        seconds = time.perf_counter() - start
        sentence = " ".join(str(error).split()) or type(error).__name__
        return Comparison(name, nan, nan, nan, nan, nan, 0, seconds, nan, sentence)
    seconds = time.perf_counter() - start
    peak = (peak_memory() - before) / 1e6
    if not test.thresholds.binary:
        difficulties[name] = fit.calibration_.thresholds
        found = evaluate_ordered(difficulties[name], validation, test, priors)
    else:
        difficulties[name] = fit.difficulty_
        found = evaluate(fit.difficulty_, validation, test, priors)
    estimated = int(np.isfinite(fit.difficulty_).sum())
    return Comparison(name, found.auc, found.loglik, *found.prior, nan, estimated, seconds, max(peak, 0.0))


def _with_distance(row: Comparison, difficulties: Mapping[str, Any], reference: str) -> Comparison:
    if row.method not in difficulties:
        return row
    own, cml = difficulties[row.method], difficulties[reference]
    both = np.isfinite(own) & np.isfinite(cml)
    a, b = own[both] - own[both].mean(), cml[both] - cml[both].mean()
    return Comparison(**{**row.to_dict(), "distance_to_cml": float(np.sqrt(np.mean((a - b) ** 2)))})


def peak_memory(*, reset: bool = False) -> int:
    """Peak resident memory of this process in bytes; with `reset`, the present memory, and the peak starts anew.

    Linux can start it anew; elsewhere the peak of the whole process is all there is.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if reset:
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            return _field(status, "VmHWM")
    return _field(status, "VmHWM")


def _field(status: Path, name: str) -> int:
    line = next(line for line in status.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024
