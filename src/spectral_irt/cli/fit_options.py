"""Options of `fit` beside those of reading: the method, and what is to be computed and written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from spectral_irt.cli.move_options import MoveOptions, column_and_cuts
from spectral_irt.cli.options import AskedScale, asked_scale, columns, item_names, method, people, results, with_sheet
from spectral_irt.errors import SETTINGS, OptionError
from spectral_irt.estimators.by_name import ABILITIES

if TYPE_CHECKING:
    from spectral_irt.analysis.folder import TreeOptions

PARTS = ("persons", "fit")
TREE_OPTIONS = ("dif_size", "tree_leaf", "tree_sample", "tree_subsamples")
IDLE_SEED = (
    "--seed is about plausible values, --hold-out and --dif-tree; say --ability pv, --hold-out or --dif-tree, or leave "
    "it out."
)


def _counts(flag: str, example: str, text: str) -> tuple[int, int | None]:
    """One or two whole numbers above zero."""
    first, colon, second = text.partition(":")
    try:
        numbers = [int(first), *([int(second)] if colon else [])]
        if min(numbers) < 1:
            raise ValueError
    except ValueError:
        raise OptionError(f"{flag} is {text!r}; it is a number above zero, as in {flag} {example}.") from None
    return numbers[0], numbers[1] if colon else None


def _checklist(text: str) -> str:
    if text != "ruler":
        raise OptionError(f"--checklist is {text!r}; there is one, ruler.")
    return text


def _ability(text: str) -> tuple[str, int | None]:
    name, colon, draws = text.partition(":")
    if name not in ABILITIES or (colon and name != "pv"):
        raise OptionError(f"--ability is {text!r}; it can be wle, ml, eap, pv or, with 10 draws, pv:10.")
    if not colon:
        return name, None
    if not draws.isdecimal() or int(draws) < 1:
        raise OptionError(f"--ability is {text!r}; the number of draws is whole and above zero, as in --ability pv:10.")
    return name, int(draws)


def _settings(texts: list[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if name not in SETTINGS or not equals:
            raise OptionError(f"--set is {text!r}; it is NAME=VALUE, where NAME is one of {', '.join(SETTINGS)}.")
        settings[name] = _value(name, value.strip())
    return settings


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


def _parts_to_skip(texts: list[str]) -> dict[str, bool]:
    """Whether people and fit are wanted; what is not said is left to the size of the data."""
    parts = {part.strip() for text in texts for part in text.split(",")}
    if parts == {"none"}:
        return dict.fromkeys(PARTS, True)
    if not parts <= {*PARTS}:
        raise OptionError(f"--skip is {','.join(texts)!r}; it can be persons, fit, both of them, or none.")
    return dict.fromkeys(parts, False)


def _ranking(text: str) -> tuple[int, str]:
    top, _, by = text.partition(":")
    if by not in ("", "lower", "difficulty"):
        raise OptionError(f"--rank is {text!r}; it is a number, as in 10, or 10:lower.")
    return _counts("--rank", "10 or 10:lower", top)[0], by or "difficulty"


def _cuts(text: str) -> tuple[tuple[float, ...], bool | Literal["codes"]]:
    """The cuts, and whether they are raw scores, or sums of codes."""
    kinds: dict[str, bool | Literal["codes"]] = {"raw": True, "codes": "codes"}
    name, colon, numbers = text.rpartition(":")
    try:
        return tuple(map(float, numbers.split(","))), kinds[name] if colon else False
    except (KeyError, ValueError):
        raise OptionError(f"--cut is {text!r}; it is numbers, as in --cut 450,550, raw:20,25 or codes:30,35.") from None


def _groupings(texts: list[str]) -> dict[str, tuple[float, ...]]:
    """Columns about people, each with the numbers at which it is to be cut (age:40,65), or none."""
    groupings: dict[str, tuple[float, ...]] = {}
    for text in texts:
        column, cuts = _column_and_cuts(text)
        if groupings.setdefault(column, cuts) != cuts:
            raise OptionError(f"--group names {column!r} twice, with different cuts; say one of them.")
    return groupings


def _column_and_cuts(text: str) -> tuple[str, tuple[float, ...]]:
    column, cuts = column_and_cuts(text)
    if not all(map(math.isfinite, cuts)) or list(cuts) != sorted(set(cuts)):
        raise OptionError(f"--group is {text!r}; cuts are numbers that rise, as in {column}:40,65.")
    return column, cuts


def _ordered_columns(texts: list[str]) -> dict[str, tuple[str, ...]]:
    """Columns about people, each with the order of its labels (grade:low<high), "categories", or nothing."""
    columns: dict[str, tuple[str, ...]] = {}
    for text in item_names(texts):
        name, colon, order = text.rpartition(":")
        if not colon or ("<" not in order and order != "categories"):
            name, order = text, ""
        columns[name] = tuple(filter(None, order.split("<")))
    return columns


def _tree_size(text: str) -> str | float:
    if text in ("B", "C", "any"):
        return text
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"--dif-size is {text!r}; it is B, C, any, or a difference in logits, such as 0.5.") from None


@dataclass(frozen=True)
class TreeWanted:
    """Groups that are to be found for whom items work differently."""

    dif_tree: dict[str, tuple[str, ...]] = people(
        "COLUMN,...",
        "Find the groups of persons for whom items work differently, by any of these columns: numbers are cut where "
        "items change most, labels divided. grade:low<mid<high gives the order of labels; site:categories says that "
        "numbers are names. Writes dif_tree.csv.",
        default={},
        parse=_ordered_columns,
    )
    dif_size: str | float = people(
        "B|C|any|LOGITS",
        "With --dif-tree: the difference of an item from which a split counts (default B, 0.43 logits).",
        default="B",
        parse=_tree_size,
    )
    tree_leaf: int = people("NUMBER", "With --dif-tree: fewest persons of a group (default 200).", default=200, min=1)
    tree_sample: Literal["auto", "half", "all"] = people(
        "",
        "With --dif-tree: grow the tree on one half of the persons and take sizes from the other (half), or use all "
        "for both. By default all below 1,000 persons.",
        default="auto",
    )
    tree_subsamples: int = people(
        "NUMBER",
        "With --dif-tree: so many further trees, each on half of the persons, show how stable the choice of "
        "columns is.",
        default=0,
        min=0,
    )

    def tree(self, seed: int | None) -> TreeOptions | None:
        """What is asked of a tree, if one is."""
        from spectral_irt.analysis.folder import TreeOptions

        if not self.dif_tree:
            return None
        return TreeOptions(
            self.dif_tree, self.dif_size, self.tree_leaf, self.tree_sample, self.tree_subsamples, seed or 0
        )


@dataclass(frozen=True)
class Abilities:
    """How abilities are estimated."""

    ability: tuple[str, int | None] = people(
        "wle|ml|eap|pv[:DRAWS]",
        "Ability estimate: Warm's weighted likelihood (wle, default), maximum likelihood (ml) or posterior mean (eap). "
        "pv:10 adds 10 plausible values (default 5), for statements about populations.",
        default=("wle", None),
        parse=_ability,
    )
    seed: int | None = people(
        "NUMBER", "Random seed of plausible values, of --hold-out and of --dif-tree (default 0).", min=0
    )


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
        "adaptive: earlier responses decided which item came next or when to stop (adaptive tests, routing, stopping "
        "rules). Difficulties are then estimated by marginal maximum likelihood.",
        default="fixed",
    )
    chain_weights: Literal["ability", "persons", "pairs"] | None = method(
        "", "Weight of each person in the Markov chain (default ability, the most accurate)."
    )
    facet: list[str] = columns(
        "COLUMN",
        "Column of a facet, such as rater or occasion; repeatable. Severities are estimated with the items.",
        default=[],
    )
    wave: dict[str, tuple[str, ...]] = columns(
        "COLUMN",
        "Column of waves, where persons answered the same items several times: change between waves, in change.csv. "
        "time:pre<post gives their order.",
        default={},
        parse=_ordered_columns,
    )
    waves: list[str] = columns(
        "PATTERN,PATTERN",
        "The same in a wide table: a pattern of columns for each wave in order, as in 'q*_t1,q*_t2'; auto: by the ends "
        "of the names.",
        default=[],
        parse=item_names,
    )
    arm: str | None = columns("COLUMN", "With --wave or --waves: the column with the arm of each person.")
    each_item: bool = columns(
        "", "With --wave or --waves: also fit Fischer's LLRA, each item of a person for itself.", default=False
    )
    set: dict[str, Any] = method(
        "NAME=VALUE", f"A setting of the method: {', '.join(SETTINGS)}; repeatable.", default={}, parse=_settings
    )
    population_by: str | None = people(
        "COLUMN", "With --design adaptive or --estimator mml: an ability distribution for each value, such as grade."
    )
    clustered_by: str | None = people(
        "COLUMN", "Standard errors that allow for dependence within each value of this column, such as the class."
    )
    survey_weight: str | None = people(
        "COLUMN", "Survey weights of the persons: for difficulties, standard errors, mean, sd and reliability."
    )

    def with_estimator(self) -> Method:
        """The same, with the estimator that the design needs; an error where options do not go together."""
        if self.design == "adaptive" and self.estimator not in ("spectral", "mml"):
            raise OptionError(
                "--design adaptive is calibrated by marginal maximum likelihood; leave out "
                f"--estimator {self.estimator}."
            )
        chosen = self
        if self.design == "adaptive":
            chosen = replace(self, estimator="mml")
        if self.population_by is not None and chosen.estimator != "mml":
            raise OptionError(
                "--population-by gives each group a distribution of ability, which only marginal maximum likelihood "
                "has; add --estimator mml, or --design adaptive if the answers decided what came next."
            )
        if self.survey_weight is not None and chosen.estimator != "spectral":
            how = "--design adaptive" if self.design == "adaptive" else f"--estimator {self.estimator}"
            raise OptionError(f"--survey-weight goes with the spectral estimator; leave it out, or {how}.")
        return chosen

    def parameters(self, threads: int | None) -> dict[str, Any]:
        """The estimator's parameters that were said."""
        parameters = dict(self.set)
        adds_nu = parameters.get("nu", self.estimator == "paper")  # which has some by default
        if "nu_rule" in parameters and not adds_nu:
            raise OptionError("`nu_rule` says which pairs `nu` is added to; say how much with `nu=1`, or leave it out.")
        if self.chain_weights is not None:
            parameters["weighting"] = self.chain_weights
        if threads is not None:
            parameters["threads"] = threads
        return parameters

    def design_given(self, groups: Mapping[str, list[Any]]) -> dict[str, Any]:
        """What an estimator is told about the design; the groups are those of the columns."""
        if self.survey_weight is not None:
            return {"weights": _numbers(groups[self.survey_weight], self.survey_weight)}
        if self.estimator != "mml":
            return {}
        design: dict[str, Any] = {"design": self.design}
        if self.population_by is not None:
            design["groups"] = groups[self.population_by]
        return design


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
class Results(Abilities, MoveOptions, TreeWanted):
    """What to compute and write beside the difficulties."""

    output: Path | None = results(
        "DIR|FILE.xlsx|.sav|.dta",
        "Write items.csv, persons.csv, scores.csv, a record (fit.json), and the tables of --group, --cut and --rank. A "
        "workbook gets every table as a sheet; a file of SPSS or Stata the persons.",
        "--output",
        "-o",
    )
    every_table: bool = results(
        "",
        "With -o: write every table, with item fit and analysis, distractors, forms and curves.",
        "--all",
        default=False,
    )
    report: Path | None = results(
        "FILE.html|.docx", "Write everything as one HTML page, which needs no network, or as a Word document."
    )
    pupil_pages: Path | None = results(
        "FILE.html",
        "Write a class list (points, percent, measure), and a page to hand out for each person, as one file to print.",
    )
    plots: Path | None = results("DIR", "Write the standard figures as SVG and PNG.")
    bank: Path | None = results("DIR", "Keep the calibration for score, update, link and --anchors.")
    scale: AskedScale | None = results(
        "MEAN,SD",
        "Also report on a scale, for example 500,100: the mean and sd of these persons. formula:A,B is A + B x logit; "
        "items:50,10 gives the mean of the items and the units per logit. The scale of anchors is kept.",
        parse=asked_scale,
    )
    rank: tuple[int | None, str] = results(
        "K[:lower]",
        "Rank items, with the probability that each is among the K hardest (default 10). K:lower sorts by the lower "
        "bound.",
        default=(None, "difficulty"),
        parse=_ranking,
    )
    list_persons: bool = results("", "With --report: list individual persons (default: no).", default=False)
    checklist: str | None = results(
        "ruler", "With --report: a checklist of what to report, answered point by point.", parse=_checklist
    )
    title: str | None = results("TITLE", "With --report or --pupil-pages: title of the page.")
    author: str | None = results("NAME", "With --report: author shown on the report.")
    parquet: bool = results("", "With -o: also write every table as Parquet.", default=False)
    skip: dict[str, bool] = results(
        "persons,fit|none",
        "Skip person measures and/or item fit; none forces both on large data.",
        default={},
        parse=_parts_to_skip,
    )
    dry_run: bool = results("", "Read and check everything as for this fit, without fitting or writing.", default=False)
    group: dict[str, tuple[float, ...]] = people(
        "COLUMN[:CUT,...]",
        "Compare groups of persons (DIF, means); repeatable. Numbers such as age are cut at their median, or as asked: "
        "age:40,65. Writes dif.csv and groups.csv.",
        default={},
        parse=_groupings,
    )
    form: str | None = people(
        "COLUMN",
        "Column with the form (booklet) of each person. Score tables are named by form, and items that a form does not "
        "have count as not presented. By default forms are found from the pattern of responses.",
    )
    group_file: tuple[str, str | None] | None = people(
        "FILE[#SHEET]",
        "Table with a row for each person, for columns about persons that the responses lack.",
        parse=with_sheet,
    )
    cut: tuple[tuple[float, ...], bool | Literal["codes"]] = people(
        "[raw:|codes:]NUMBER,...",
        "Classify persons at these points of the --scale (or in logits), such as 450,550, or at raw scores on the "
        "whole test, raw:20,25, or codes:30,35 as sums of the codes in the data. "
        "Writes cuts.csv, with accuracy and consistency.",
        default=((), False),
        parse=_cuts,
    )
    trait: str | None = people(
        "WORD",
        "What is measured, such as anxiety: tables, figures and the report say so instead of ability. Columns of files "
        "keep their names.",
    )
    anchors: str | None = method(
        "DIR|FILE",
        "Fix items at the difficulties of a bank, of results, or of a file: columns item, difficulty (or category, "
        "threshold), or an IFILE=, IAFILE= or control file of Winsteps.",
    )
    free: list[str] = method(
        "ITEM,...",
        "With --anchors: drop the anchors of these items, which stay in the test and are estimated; repeatable.",
        default=[],
        parse=item_names,
    )
    item_covariates: str | None = results(
        "FILE", "Table of item properties, one column each: their effects on difficulty (LLTM), in covariates.csv."
    )
    subset: list[str] = method(
        "ITEM,...",
        "Items of one of the two sets whose measures Smith's test compares; repeatable. By default the items on either "
        "side of the first residual contrast.",
        default=[],
        parse=item_names,
    )
    critical: tuple[int | None, int | None] = method(
        "DRAWS[:PEOPLE]",
        "Critical values and p-values of fit, Q3 and the first contrast from so many data sets drawn given the scores, "
        "such as 1000; of item fit from so many people at most, 1000:5000.",
        default=(None, None),
        parse=partial(_counts, "--critical", "1000 or 1000:5000"),
    )
