"""What `--design`, `--population-by`, `--clustered-by` and `--weight` mean for a fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spectral_irt.cli.fitting import Fitting
from spectral_irt.cli.wanted import Wanted
from spectral_irt.errors import OptionError, check_option
from spectral_irt.estimators.by_name import CHOICES


def by_design(fitting: Fitting) -> Fitting:
    """The same, with the estimator that the design needs; an error where options do not go together."""
    check_option("design", fitting.design, CHOICES["design"])
    if fitting.design == "adaptive" and fitting.estimator not in ("spectral", "mml"):
        raise OptionError(
            "--design adaptive is calibrated by marginal maximum likelihood; leave out "
            f"--estimator {fitting.estimator}."
        )
    settled = replace(fitting, estimator="mml") if fitting.design == "adaptive" else fitting
    if fitting.population_by is not None and settled.estimator != "mml":
        raise OptionError(
            "--population-by gives each group a distribution of ability, which only marginal maximum likelihood has; "
            "add --estimator mml, or --design adaptive if the answers decided what came next."
        )
    if fitting.weight is not None and settled.estimator != "spectral":
        raise OptionError(f"--weight goes with the spectral estimator; leave it out, or {_how(fitting)}.")
    return settled


def _how(fitting: Fitting) -> str:
    return "--design adaptive" if fitting.design == "adaptive" else f"--estimator {fitting.estimator}"


def design_columns(fitting: Fitting) -> list[str]:
    """The columns of people that a fit needs, beside those whose groups are compared."""
    columns = (fitting.population_by, fitting.clustered_by, fitting.weight)
    return [column for column in columns if column is not None]


def is_compared(column: str, wanted: Wanted, fitting: Fitting) -> bool:
    """Whether groups by this column are to be compared: one of `--group`, or the only one of `--group-file`."""
    return column in (wanted.group or []) or not (wanted.group or design_columns(fitting))


def is_described(column: str, wanted: Wanted, fitting: Fitting) -> bool:
    """Whether the mean ability of groups by this column is wanted: of those compared, and of populations."""
    return wanted.persons is not False and (is_compared(column, wanted, fitting) or column == fitting.population_by)


def design_of(fitting: Fitting, groups: dict[str, list[Any]]) -> dict[str, Any]:
    """What an estimator is told about the design; the groups are those of the columns."""
    if fitting.weight is not None:
        return {"weights": _numbers(groups[fitting.weight], fitting.weight)}
    if fitting.estimator != "mml":
        return {}
    by = fitting.population_by
    return {"design": fitting.design, "groups": None if by is None else groups[by]}


def _numbers(values: list[Any], column: str) -> list[float]:
    """The weights of all people; an error that shows the first that is no number."""
    out = []
    for value in values:
        try:
            out.append(float("nan") if value is None else float(value))
        except (TypeError, ValueError):
            raise OptionError(
                f"--weight {column}: {value!r} is not a number; give each person a number above zero."
            ) from None
    return out
