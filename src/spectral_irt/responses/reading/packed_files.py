"""Packed files among those that can be read: everything about them was said when they were packed."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, NoReturn

from spectral_irt.errors import OptionError, ReadError, ResponseValueError, join, option
from spectral_irt.responses.ordered import OrderedResponses
from spectral_irt.responses.ordered_scoring import OrderedScoring
from spectral_irt.responses.packed import open_packed

if TYPE_CHECKING:
    from spectral_irt.responses.reading.files import File
    from spectral_irt.responses.reading.request import Asked
    from spectral_irt.responses.responses import Responses
    from spectral_irt.responses.scorer import Scoring


def open_table(file: File) -> NoReturn:
    """A packed file has no columns to be asked for."""
    raise ReadError(
        f"{file.name} is a packed file: it holds answers, and no other columns. Give what is known of the people in a "
        "table of their own, ",
        option("group_file", ...),
        ".",
    )


def responses_of_packed(files: list[File], how: Scoring, asked: Asked, duplicates: str) -> Responses:
    """The responses of a packed file; an error if it is one of several, or if anything was said about its layout."""
    name = files[0].name
    if len(files) > 1:
        raise ReadError(
            f"a packed file is read alone, and here are {len(files)}; pack together the files that they were made from."
        )
    said = [option(one, ...) for group in (how, asked) for one in _said(group)]
    said += [option("duplicates", duplicates)] if duplicates != "error" else []
    if said:
        raise OptionError(
            f"{name} is a packed file, whose answers were read and scored when it was packed; leave out ",
            join(said, ", "),
            ", or say it when packing.",
        )
    found = open_packed(files[0].path)
    ordered = isinstance(found, OrderedResponses)
    if ordered and not isinstance(how, OrderedScoring):
        raise ResponseValueError(
            f"{name} holds answers in ordered categories; say ", option("model", "pcm"), " or read_ordered."
        )
    if not ordered and isinstance(how, OrderedScoring):
        raise ResponseValueError(f"{name} holds right and wrong answers; fit a Rasch model to them.")
    return found


def _said(group: Any) -> list[str]:
    default = type(group)()
    return [one.name for one in fields(group) if getattr(group, one.name) != getattr(default, one.name)]
