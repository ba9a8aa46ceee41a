"""Options of `fit` beside those of reading: the method, and what is to be computed and written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from spectral_irt.cli.options import columns, mean_and_sd, method, people, results
from spectral_irt.errors import OptionError
from spectral_irt.estimators.by_name import ABILITIES

SETTINGS = ("regularization", "refine", "se", "nu", "nu_rule", "assume_equal_means", "max_iter")
PARTS = ("persons", "fit")


@dataclass(frozen=True)
class Abilities:
    """How abilities are estimated."""

    ability: str = people(
        "wle|ml|eap|pv[:DRAWS]",
        "How abilities are estimated: by Warm's weighted likelihood (default), maximum likelihood, or the mean under a "
        "prior; pv:10 also draws 10 plausible values (5 by default), for statements about populations.",
        default="wle",
    )
    seed: int | None = people("NUMBER", "Seed of plausible values; 0.", min=0)

    def draws(self) -> tuple[str, int | None]:
        """How abilities are estimated, and how many plausible values."""
        name, colon, number = self.ability.partition(":")
        if name not in ABILITIES or (colon and name != "pv"):
            raise OptionError(f"--ability is {self.ability!r}; it can be wle, ml, eap, pv or, with 10 draws, pv:10.")
        if self.seed is not None and name != "pv":
            raise OptionError("--seed is about plausible values; say --ability pv, or leave it out.")
        return name, _counts("--ability pv:", number, "10")[0] if colon else None


@dataclass(frozen=True)
class Method:
    """How a fit is to be done; None leaves a choice to the estimator."""

    estimator: Literal["spectral", "paper", "cml", "mml", "jml", "pml", "vb", "choppin", "eigenvector"] = method(
        "NAME",
        "spectral (default); paper: the estimator of Nguyen & Zhang (2022) as printed; cml, mml, jml, pml: "
        "conditional, marginal, joint, pairwise maximum likelihood; vb: variational Bayes, whose intervals are too "
        "narrow; choppin; eigenvector.",
        default="spectral",
    )
    design: Literal["fixed", "adaptive"] = method(
        "",
        "adaptive: the answers so far decided which item came next, or when to stop (adaptive tests, routing, stopping "
        "rules). Difficulties are then estimated by marginal maximum likelihood.",
        default="fixed",
    )
    chain_weights: Literal["ability", "persons", "pairs"] | None = method(
        "", "Weight of each person in the Markov chain; ability by default, the most accurate."
    )
    facet: list[str] = columns(
        "COLUMN", "Ratings: who rated, or when; repeatable. Severities are estimated beside difficulties.", default=[]
    )
    set: list[str] = method("NAME=VALUE", f"A setting of the method: {', '.join(SETTINGS)}; repeatable.", default=[])
    population_by: str | None = people(
        "COLUMN", "With --design adaptive or --estimator mml: an ability distribution for each value, such as grade."
    )
    clustered_by: str | None = people(
        "COLUMN", "Standard errors that allow for dependence within each value of this column, such as the class."
    )
    survey_weight: str | None = people(
        "COLUMN", "Weights of people, for difficulties, their errors, and mean, sd and reliability of people."
    )

    def settled(self) -> Method:
        """The same, with the estimator that the design needs; an error where options do not go together."""
        if self.design == "adaptive" and self.estimator not in ("spectral", "mml"):
            raise OptionError(
                "--design adaptive is calibrated by marginal maximum likelihood; leave out "
                f"--estimator {self.estimator}."
            )
        found = replace(self, estimator="mml") if self.design == "adaptive" else self
        if self.population_by is not None and found.estimator != "mml":
            raise OptionError(
                "--population-by gives each group a distribution of ability, which only marginal maximum likelihood "
                "has; add --estimator mml, or --design adaptive if the answers decided what came next."
            )
        if self.survey_weight is not None and found.estimator != "spectral":
            how = "--design adaptive" if self.design == "adaptive" else f"--estimator {self.estimator}"
            raise OptionError(f"--survey-weight goes with the spectral estimator; leave it out, or {how}.")
        return found

    def settings(self) -> dict[str, Any]:
        """What --set says."""
        said: dict[str, Any] = {}
        for text in self.set:
            name, equals, value = text.partition("=")
            name = name.strip().replace("-", "_")
            if name not in SETTINGS or not equals:
                raise OptionError(f"--set is {text!r}; it is NAME=VALUE, where NAME is one of {', '.join(SETTINGS)}.")
            said[name] = _value(name, value.strip())
        return said

    def parameters(self, threads: int | None) -> dict[str, Any]:
        """The estimator's parameters that were said."""
        said = {**self.settings(), "weighting": self.chain_weights, "threads": threads}
        if "nu_rule" in said and not (said.get("nu") or ("nu" not in said and self.estimator == "paper")):
            raise OptionError("`nu_rule` says which pairs `nu` is added to; say how much with `nu=1`, or leave it out.")
        return {name: value for name, value in said.items() if value is not None}

    def design_given(self, groups: Mapping[str, list[Any]]) -> dict[str, Any]:
        """What an estimator is told about the design; the groups are those of the columns."""
        if self.survey_weight is not None:
            return {"weights": _numbers(groups[self.survey_weight], self.survey_weight)}
        if self.estimator != "mml":
            return {}
        by = self.population_by
        return {"design": self.design, **({} if by is None else {"groups": groups[by]})}


def _value(name: str, text: str) -> Any:
    """The value of a setting as the estimator takes it."""
    if name in ("refine", "assume_equal_means"):
        if text not in ("true", "false"):
            raise OptionError(f"--set {name} is {text!r}; it can be true or false.")
        return text == "true"
    if name in ("se", "nu_rule") or text == "auto":
        return text
    try:
        return int(text) if name == "max_iter" else float(text)
    except ValueError:
        what = "'auto' or a number, 0 or more" if name == "regularization" else "a number"
        raise OptionError(f"--set {name} is {text!r}; it can be {what}.") from None


def _numbers(values: list[Any], column: str) -> list[float]:
    """The weights of all people; an error that shows the first that is no number."""
    out = []
    for value in values:
        try:
            out.append(float("nan") if value is None else float(value))
        except (TypeError, ValueError):
            raise OptionError(f"--survey-weight {column}: {value!r} is not a number above zero.") from None
    return out


@dataclass(frozen=True)
class Results(Abilities):
    """What to compute and write beside the difficulties."""

    output: Path | None = results(
        "DIR|FILE.xlsx",
        "Write items.csv, persons.csv, scores.csv, a record (fit.json), and the tables of --group, --cut and --rank; a "
        "workbook has every table as a sheet.",
        "--output",
        "-o",
    )
    every_table: bool = results(
        "", "With -o: every table. Also item fit and analysis, distractors, forms, curves.", "--all", default=False
    )
    report: Path | None = results("FILE.html", "Write everything as one HTML page. It needs no network.")
    plots: Path | None = results("DIR", "Write the standard figures as SVG and PNG.")
    bank: Path | None = results("DIR", "Keep the calibration for score, update, link and --anchors.")
    scale: str | None = results(
        "MEAN,SD", "Report also on a scale, such as 500,100. These people have this mean and sd."
    )
    rank: str | None = results(
        "K[:lower]", "Rank the items, with the chance to be among the K hardest; 10. K:lower sorts by the lower bound."
    )
    list_persons: bool = results("", "With --report: list single people in it; by default nobody is.", default=False)
    title: str | None = results("TITLE", "With --report: its title.")
    author: str | None = results("NAME", "With --report: whose report it is.")
    parquet: bool = results("", "With -o: every table as Parquet as well.", default=False)
    skip: list[str] = results(
        "persons,fit|none", "Leave out people or the fit of items; none: compute them however long.", default=[]
    )
    dry_run: bool = results("", "Read and check everything as for this fit, but fit and write nothing.", default=False)
    group: list[str] = people(
        "COLUMN", "Compare groups of people (DIF); repeatable. Tables: dif.csv, groups.csv.", default=[]
    )
    group_file: str | None = people(
        "FILE[#SHEET]", "A table of people with these columns, where the answers do not have them."
    )
    cut: str | None = people(
        "[raw:]NUMBER,...",
        "Classify people at these points of the --scale (without one, of the logits), such as 450,550, or of the raw "
        "score on the whole test, raw:20,25: cuts.csv, with accuracy and consistency.",
    )
    trait: str | None = people(
        "WORD",
        "What is measured, such as anxiety: texts and figures say so instead of ability, and higher and lower instead "
        "of harder and easier. Columns keep their names.",
    )
    anchors: str | None = method(
        "DIR|FILE",
        "Fix items at the difficulties of a bank or file. Columns: item, difficulty (or category, threshold).",
    )
    item_covariates: str | None = results(
        "FILE", "Properties of items, a column each: their effects on difficulty (LLTM), covariates.csv."
    )
    bootstrap: str | None = method(
        "SETS[:PEOPLE]", "Critical values of item fit from so many simulated data sets, such as 200 or 200:5000."
    )

    def part(self, name: str) -> bool | None:
        """Whether people or fit are wanted; None leaves that to the size of the data."""
        said = {one.strip() for text in self.skip for one in text.split(",")}
        if said - {*PARTS, "none"} or ("none" in said and len(said) > 1):
            raise OptionError(f"--skip is {','.join(self.skip)!r}; it can be persons, fit, both of them, or none.")
        return False if name in said else True if "none" in said else None

    def simulated(self) -> tuple[int | None, int | None]:
        """Data sets of --bootstrap, and people for them."""
        return (None, None) if self.bootstrap is None else _counts("--bootstrap", self.bootstrap, "200 or 200:5000")

    def ranked(self) -> tuple[int | None, str]:
        """Among how many hardest items --rank looks, and the order."""
        if self.rank is None:
            return None, "difficulty"
        top, _, by = self.rank.partition(":")
        if by not in ("", "lower", "difficulty"):
            raise OptionError(f"--rank is {self.rank!r}; it is a number, as in 10, or 10:lower.")
        return _counts("--rank", top, "10 or 10:lower")[0], by or "difficulty"

    def cuts(self) -> tuple[tuple[float, ...], bool]:
        """What --cut says, and whether that are raw scores."""
        if self.cut is None:
            return (), False
        try:
            return tuple(map(float, self.cut.removeprefix("raw:").split(","))), self.cut.startswith("raw:")
        except ValueError:
            raise OptionError(f"--cut is {self.cut!r}; it is numbers, as in --cut 450,550 or raw:20,25.") from None

    def mean_and_sd(self) -> tuple[float, float] | None:
        """What --scale says."""
        return mean_and_sd("--scale", self.scale, "500,100")


def _counts(flag: str, text: str, example: str) -> tuple[int, int | None]:
    """One or two whole numbers above zero."""
    first, colon, second = text.partition(":")
    try:
        numbers = [int(first), *([int(second)] if colon else [])]
        if min(numbers) < 1:
            raise ValueError
    except ValueError:
        raise OptionError(f"{flag} is {text!r}; it is a number above zero, as in {flag} {example}.") from None
    return numbers[0], numbers[1] if colon else None
