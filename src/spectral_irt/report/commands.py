"""The command and the lines of Python by which what is in a report is had again."""

from __future__ import annotations

import inspect
import math
import shlex
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import PurePath
from typing import Any, NamedTuple

from spectral_irt.estimators.by_name import METHODS, ORDERED, Method
from spectral_irt.report.blocks import How, within

ALIASES = {"person": "person"}  # options that have another name in the shell
ANSWERS = "answers.csv"  # where the files are not known
FROM_COLUMNS = ("population_by", "clustered_by", "weight")
HOW_IT_RUNS = ("threads", "unused")  # parameters that change nothing, or were said when reading
IN_PYTHON = {"populations": "population_by", "clusters": "clustered_by", "weights": "weight"}


def how(record: Mapping[str, Any], table: str, python: str, *options: str) -> How:
    """How to get a table that `fit -o` writes."""
    return How(f"{fit_command(record, *options)} -o results", python, f"results/{table}.csv")


def fit_command(record: Mapping[str, Any], *options: str) -> str:
    """The command that fits these data in this way; names of files without their folders."""
    said = within(record, "input") or {}
    words = ["spectral-irt", "fit", *(PurePath(file).name for file in said.get("files") or [ANSWERS])]
    for name, value in reading(record).items():
        flag = "--" + ALIASES.get(name, name).replace("_", "-")
        if name == "key":
            value = PurePath(str(value)).name
        if value is True:
            words.append(flag)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            words += [word for one in value for word in (flag, str(one))]
        else:
            words += [flag, str(value)]
    maker = made(record)
    if maker is not None and maker.model in ORDERED:
        words += ["--model", maker.model]
    if record.get("design") == "adaptive":
        words += ["--design", "adaptive"]
    elif maker is not None and maker.name != "spectral":
        words += ["--estimator", maker.name]
    for parameter, value in settings(record).items():
        flag = f"--{parameter.replace('_', '-')}"
        if maker is not None and parameter in maker.method.takes.split():
            words += ([flag] if value else [f"--no-{flag[2:]}"]) if isinstance(value, bool) else [flag, f"{value}"]
    if within(record, "counts", "items_anchored"):
        words += ["--anchors", "BANK"]
    for column in FROM_COLUMNS:
        if said.get(column) is not None:
            words += [f"--{column.replace('_', '-')}", str(said[column])]
    for one in groupings(record):
        words += ["--group", str(one.get("column"))]
    ability = within(record, "persons", "ability")
    if ability not in (None, "wle"):
        words += ["--ability", str(ability)]
    if within(record, "item_fit", "bootstrap"):
        words += ["--bootstrap", str(within(record, "item_fit", "bootstrap"))]
    scale = scale_option(record)
    if scale:
        words += ["--scale", scale]
    return shlex.join([*words, *options])


def python_lines(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The lines of Python that make the analysis, `study`; columns of the people are left for the reader to fill in."""
    said = within(record, "input") or {}
    files = [PurePath(file).name for file in said.get("files") or [ANSWERS]]
    options = {**(said.get("reading") or {})}
    if in_categories(record):
        options["ordered"] = True
    if "reverse" in options:
        options["reverse"] = [name for names in options["reverse"] for name in str(names).split(",")]
    largest = ".largest_component()" if options.pop("largest_component", False) else ""
    if "key" in options:
        options["key"] = PurePath(str(options["key"])).name
    rest = "".join(f", {name}={value!r}" for name, value in options.items())
    columns = {"groups": [one.get("column") for one in groupings(record)]}
    columns |= {name: [said[column]] for name, column in IN_PYTHON.items() if said.get(column) is not None}
    read_along = options.get("people", [])
    filled = [
        f"{name} = ...  # a value for each person: {column!r}"
        for name in columns
        for column in columns[name]
        if column not in read_along
    ]
    called = {name: repr(each[0]) if each and each[0] in read_along else name for name, each in columns.items()}
    how = {"weights": "weights", "populations": "groups"}
    given = [f"{parameter}={called[name]}" for name, parameter in how.items() if name in columns]
    given += ["design='adaptive'"] if record.get("design") == "adaptive" else []
    if within(record, "counts", "items_anchored") and in_categories(record):
        filled.append("anchors = ...  # a list of thresholds for each item of BANK")
        given.append("anchors=anchors")
    ability = within(record, "persons", "ability")
    analysed = "answers" if ability in (None, "wle") else f"answers, ability={ability!r}"
    scale = scale_option(record)
    both = f", {called['populations']}" if "populations" in columns else ""
    after = f".clustered({called['clusters']}{both})" if "clusters" in columns else ""
    after += f".rescale({scale.replace(',', ', ')})" if scale else ""
    return (
        "import spectral_irt as si",
        f"answers = si.read({files if len(files) > 1 else files[0]!r}{rest}){largest}",
        *filled,
        f"fit = {_maker(record)}.fit({', '.join(['answers', *given])})",
        f"study = fit.analyse({analysed}){after}",
    )


def _maker(record: Mapping[str, Any]) -> str:
    maker = made(record)
    if within(record, "counts", "items_anchored") and not in_categories(record):
        return 'si.AnchoredRasch(si.load("BANK"))'
    given = ", ".join(f"{parameter}={value!r}" for parameter, value in settings(record).items())
    return f"si.{(maker.method if maker else METHODS['spectral']).where.partition(':')[2]}({given})"


def reading(record: Mapping[str, Any]) -> dict[str, Any]:
    """The options of reading; columns that are groups of people are named by options of their own."""
    options = dict(within(record, "input", "reading") or {})
    return {name: value for name, value in options.items() if name != "people" and value not in ([], None)}


def groupings(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The comparisons of groups in the record, which holds one as it is and several as a list."""
    found = record.get("dif")
    return list(found) if isinstance(found, list) else [found] if found else []


class Made(NamedTuple):
    """What `--model` and `--estimator` are called that made a calibration."""

    model: str
    name: str
    method: Method


def made(record: Mapping[str, Any]) -> Made | None:
    """By what the calibration was made; None if that has no name on the command line."""
    said = str(record.get("estimator"))
    for model, methods in {"rasch": METHODS, **ORDERED}.items():
        for name, method in methods.items():
            if said == method.where.partition(":")[2] or (model == "rasch" and said == name):
                return Made(model, name, method)
    return None


def in_categories(record: Mapping[str, Any]) -> bool:
    """Whether the answers were in ordered categories."""
    maker = made(record)
    return maker is not None and maker.model in ORDERED


def cli_name(record: Mapping[str, Any]) -> str | None:
    """The estimator's name on the command line; None if it has none."""
    maker = made(record)
    return None if maker is None else maker.name


def settings(record: Mapping[str, Any]) -> dict[str, Any]:
    """The estimator's parameters that are not at their defaults."""
    found = made(record)
    if found is None:
        return {}
    module, _, maker_name = found.method.where.partition(":")
    maker: Any = import_module(f"spectral_irt.estimators.{module}")
    for part in maker_name.split("."):
        maker = getattr(maker, part)
    defaults = inspect.signature(maker).parameters
    return {
        parameter: value
        for parameter, value in (record.get("settings") or {}).items()
        if parameter in defaults and parameter not in HOW_IT_RUNS and value != defaults[parameter].default
    }


def scale_option(record: Mapping[str, Any]) -> str | None:
    """What `--scale` said: mean and standard deviation of these people on the scale of report."""
    scale, people = record.get("scale"), record.get("persons")
    if not scale or not people or within(record, "counts", "items_anchored"):
        return None
    mean, sd, n = people.get("mean"), people.get("sd"), people.get("with_ability")
    if people.get("ability") == "pv":
        mean, sd, n = (
            within(record, "reliability", "population_mean"),
            within(record, "reliability", "population_sd"),
            0,
        )
    if mean is None or sd is None:
        return None
    sd *= math.sqrt((n - 1) / n) if n else 1.0
    return f"{scale['mean'] + scale['unit'] * mean:.6g},{scale['unit'] * sd:.6g}"
