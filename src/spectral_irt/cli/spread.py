"""Groups of options, spread over the signature of a command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, get_type_hints


def with_options(*groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Spread the fields of option groups over a command's signature; the command gets each group as one argument.

    The parameter of a group is named after it in lower case: `def fit(files: Files, reading: Reading)`.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        by_name = {group.__name__.lower(): group for group in groups}
        hints = get_type_hints(command, include_extras=True)
        parameters: list[inspect.Parameter] = []
        for name, parameter in inspect.signature(command).parameters.items():
            if name not in by_name:
                parameters.append(parameter.replace(annotation=hints[name]))
                continue
            group_hints = get_type_hints(by_name[name], include_extras=True)
            for one in fields(by_name[name]):
                default = one.default_factory() if one.default_factory is not MISSING else one.default
                kind = inspect.Parameter.KEYWORD_ONLY
                parameters.append(inspect.Parameter(one.name, kind, default=default, annotation=group_hints[one.name]))

        @functools.wraps(command)
        def spread(**given: Any) -> None:
            grouped = {
                name: group(**{one.name: given.pop(one.name) for one in fields(group)})
                for name, group in by_name.items()
            }
            command(**given, **grouped)

        del spread.__wrapped__
        keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
        spread.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
        spread.__annotations__ = {p.name: p.annotation for p in keyword}
        return spread

    return decorate
