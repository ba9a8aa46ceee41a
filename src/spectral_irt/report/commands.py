"""The command and the lines of Python by which what is in a report is had again: the command as it was given."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import PurePath
from typing import Any

from spectral_irt.estimators.by_name import METHODS, ORDERED, Method
from spectral_irt.report.blocks import within

ANSWERS = "answers.csv"  # where the files are not known
HOW_IT_RUNS = ("threads", "unused")  # parameters that change nothing, or were said when reading
# Options whose value is a file or a folder: a report says its name alone.
PLACES = (*("-o", "--output", "--key", "--group-file", "--anchors", "--bank", "--spill", "--plots"), "--report")


def fit_command(record: Mapping[str, Any]) -> str:
    """The command as it was given, names of files without their folders; "" for what was made in Python."""
    said: Sequence[str] = record.get("argv") or []
    files = set(within(record, "input", "files") or [])
    words = ["spectral-irt"]
    for before, word in zip(["", *said], said, strict=False):
        flag, equals, value = word.partition("=")
        if before in PLACES or word in files:
            word = PurePath(word).name
        elif equals and flag in PLACES:
            word = f"{flag}={PurePath(value).name}"
        words.append(word)
    return shlex.join(words) if said else ""


def python_lines(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The lines of Python that make the analysis, `study`."""
    said = within(record, "input") or {}
    files = [PurePath(file).name for file in said.get("files") or [ANSWERS]]
    options = {name: value for name, value in (said.get("reading") or {}).items() if value not in ([], None)}
    if record.get("model") in ORDERED:
        options["ordered"] = True
    if "reverse" in options:
        options["reverse"] = [name for names in options["reverse"] for name in str(names).split(",")]
    after = ".largest_component()" if options.pop("largest_component", False) else ""
    if "key" in options:
        options["key"] = PurePath(str(options["key"])).name
    if said.get("people"):
        beside = said["people"]
        given = "".join(f", {name}={beside[name]!r}" for name in ("person", "sheet") if beside.get(name) is not None)
        after += f".with_people({PurePath(beside['file']).name!r}, {list(beside['columns'])!r}{given})"
    rest = "".join(f", {name}={value!r}" for name, value in options.items())
    design = {"weights": said.get("weight"), "groups": said.get("population_by")}
    fitted = [f"{name}={column!r}" for name, column in design.items() if column is not None]
    fitted += ["design='adaptive'"] if record.get("design") == "adaptive" else []
    ability = within(record, "persons", "ability")
    analysed = "answers" if ability in (None, "wle") else f"answers, ability={ability!r}"
    study = f"fit.analyse({analysed})"
    if said.get("clustered_by") is not None:
        by = [said["clustered_by"], *([design["groups"]] if design["groups"] is not None else [])]
        study += f".clustered({', '.join(map(repr, by))})"
    scale = record.get("scale") or {}
    if scale.get("people_mean") is not None:
        study += f".rescale({scale['people_mean']:g}, {scale['people_sd']:g})"
    return (
        "import spectral_irt as si",
        f"answers = si.read({files if len(files) > 1 else files[0]!r}{rest}){after}",
        f"fit = {_maker(record)}.fit({', '.join(['answers', *fitted])})",
        f"study = {study}",
    )


def _maker(record: Mapping[str, Any]) -> str:
    method = made(record)
    given = ", ".join(f"{parameter}={value!r}" for parameter, value in settings(record).items())
    anchors = within(record, "input", "anchors")
    if anchors is not None:
        place = PurePath(str(anchors)).name
        return f"si.AnchoredRasch({', '.join([repr(place), *([given] if given else [])])})"
    return f"si.{(method or METHODS['spectral']).where.partition(':')[2]}({given})"


def of_groups(record: Mapping[str, Any], named: str) -> str:
    """How a method asks of the groups of a column: by its name where the column was read with the answers."""
    known = within(record, "input", "reading", "people") or within(record, "input", "people", "columns") or []
    return repr(named) if named in known else "groups"


def made(record: Mapping[str, Any]) -> Method | None:
    """By what the calibration was made; None if that has no name on the command line."""
    methods = {"rasch": METHODS, **ORDERED}.get(record.get("model") or "rasch", {})
    return methods.get(str(record.get("estimator")))


def in_categories(record: Mapping[str, Any]) -> bool:
    """Whether the model is one of ordered categories."""
    return record.get("model") in ORDERED


def settings(record: Mapping[str, Any]) -> dict[str, Any]:
    """The estimator's parameters that are not at their defaults."""
    method = made(record)
    if method is None:
        return {}
    module, _, maker_name = method.where.partition(":")
    maker: Any = import_module(f"spectral_irt.estimators.{module}")
    for part in maker_name.split("."):
        maker = getattr(maker, part)
    defaults = inspect.signature(maker).parameters
    return {
        parameter: value
        for parameter, value in (record.get("settings") or {}).items()
        if parameter in defaults and parameter not in HOW_IT_RUNS and value != defaults[parameter].default
    }
