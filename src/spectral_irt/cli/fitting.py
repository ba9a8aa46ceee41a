"""Options of how a fit is to be done."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

from spectral_irt.cli.options import panel
from spectral_irt.errors import OptionError
from spectral_irt.estimators.by_name import CHOICES, METHODS

_method = panel("How to fit")


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
