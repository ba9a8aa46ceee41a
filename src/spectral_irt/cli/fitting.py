"""Options of how a fit is to be done, and what those about columns of people mean for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

from spectral_irt.cli.options import panel
from spectral_irt.errors import DesignError, OptionError, check_option, listed
from spectral_irt.estimators.by_name import CHOICES, METHODS

if TYPE_CHECKING:
    from spectral_irt.data import Responses

_method = panel("How to fit")
MOST_LEVELS = 100  # beyond, the column is more likely an age or a name than a group


@dataclass(frozen=True)
class Fitting:
    """How a fit is to be done; None leaves a choice to the estimator."""

    estimator: Annotated[
        str,
        _method(
            metavar="NAME",
            offers="|".join(METHODS),
            help="spectral (default); paper: the estimator of Nguyen & Zhang (2022) as printed; cml, mml, jml, pml: "
            "conditional, marginal, joint, pairwise maximum likelihood; vb: variational Bayes, whose "
            "intervals are too narrow; choppin; eigenvector.",
        ),
    ] = "spectral"
    design: Annotated[
        str,
        _method(
            metavar="|".join(CHOICES["design"]),
            help="adaptive: the answers so far decided which item came next, or when to stop (adaptive tests, routing, "
            "stopping rules). Difficulties are then found by marginal maximum likelihood.",
        ),
    ] = "fixed"
    population_by: Annotated[
        str | None,
        _method(
            metavar="COLUMN",
            help="With --design adaptive or --estimator mml: a mean and a standard deviation of ability for each value "
            "of this column, such as the grade.",
        ),
    ] = None
    clustered_by: Annotated[
        str | None,
        _method(
            metavar="COLUMN",
            help="Standard errors that allow for answers that are alike within each value of this column, such as "
            "the classroom.",
        ),
    ] = None
    weight: Annotated[
        str | None,
        _method(
            metavar="COLUMN",
            help="Survey weights: people count by the numbers in this column, in difficulties, their errors, "
            "and mean, sd and reliability of people.",
        ),
    ] = None
    weighting: Annotated[
        str | None,
        _method(
            metavar="|".join(CHOICES["weighting"]),
            help="How much each person counts; ability by default, the most accurate.",
        ),
    ] = None
    regularization: Annotated[
        str | None,
        _method(metavar="auto|NUMBER", help="Precision of the prior on difficulties; auto by default, 0 for none."),
    ] = None
    nu: Annotated[
        float | None, _method(metavar="NUMBER", help="The paper's regularization: disagreements added to each pair.")
    ] = None
    nu_rule: Annotated[
        str | None,
        _method(metavar="|".join(CHOICES["nu_rule"]), help="Which pairs --nu is added to; differed by default."),
    ] = None
    refine: Annotated[
        bool | None,
        _method(
            "--refine/--no-refine",
            help="Land on the conditional likelihood (default), or leave the chain's own estimate.",
        ),
    ] = None
    assume_equal_means: Annotated[
        bool | None,
        _method("--assume-equal-means", help="Tie groups of items that share no people: equally hard on average."),
    ] = None
    se: Annotated[
        str | None,
        _method(
            metavar="METHOD",
            offers="|".join(CHOICES["se"]),
            help="Standard errors: auto (default), dense, one-pass or multiplier (robust, three ways); information, "
            "from the model alone; none.",
        ),
    ] = None
    max_iter: Annotated[int | None, _method(metavar="NUMBER", min=1, help="Most iterations of the solver.")] = None
    threads: Annotated[
        int | None, _method(metavar="NUMBER", help="All processors by default; results do not change.")
    ] = None

    def parameters(self) -> dict[str, Any]:
        """The estimator's parameters that were said."""
        if self.nu_rule is not None and not (self.nu or (self.nu is None and self.estimator == "paper")):
            raise OptionError("--nu-rule says which pairs --nu is added to; say how much with --nu 1, or leave it out.")
        not_its_own = ("estimator", "design", "population_by", "clustered_by", "weight")
        said = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in not_its_own}
        said["regularization"] = number_or_auto(self.regularization)
        return {name: value for name, value in said.items() if value is not None}


def number_or_auto(text: str | None) -> str | float | None:
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"`regularization` is {text!r}; it can be 'auto' or a number, 0 or more.") from None


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


def design_of(fitting: Fitting, groups: dict[str, list[Any]]) -> dict[str, Any]:
    """What an estimator is told about the design; the groups are those of the columns."""
    if fitting.weight is not None:
        return {"weights": _numbers(groups[fitting.weight], fitting.weight)}
    if fitting.estimator != "mml":
        return {}
    by = fitting.population_by
    return {"design": fitting.design, **({} if by is None else {"groups": groups[by]})}


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


def groups_of(responses: Responses, many: Sequence[str | None], beside: bool) -> dict[str, list[Any]]:
    """The group of every person by each column about people, None for those who have none; they were read with the
    answers, or stand in a table `beside`. A column among `many` may have any number of values."""
    people = responses.people
    if people is None:
        return {}
    found: Mapping[str, Any] = people
    if beside and all(value is None for values in found.values() for value in values.tolist()):
        raise OptionError(
            f"none of the people in {people.source} is in {responses.source} ({listed(responses.persons)}). Check that "
            "both name people alike."
        )
    source = people.source if beside else responses.source
    for column, values in found.items():
        _check_levels(sorted({str(value) for value in values.tolist() if value is not None}), column, source, many)
    return {column: values.tolist() for column, values in found.items()}


def _check_levels(levels: list[str], column: str, source: str, many: Sequence[str | None]) -> None:
    if len(levels) < 2:
        what = f"a single value, {levels[0]!r}" if levels else "no value at all"
        raise DesignError(f"{source}: the column {column!r} has {what}; groups are two or more. Check the column.")
    if len(levels) > MOST_LEVELS and column not in many:
        raise OptionError(
            f"{source}: the column {column!r} has {len(levels):,} different values ({listed(levels)}); at most "
            f"{MOST_LEVELS} groups are compared. Merge them into a few, each of some hundred people."
        )
