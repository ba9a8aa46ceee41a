"""Pages of the app, in the look of the report."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from starlette.responses import HTMLResponse

from spectral_irt import __version__
from spectral_irt.report.page import own_text, policy, templates

HERE = Path(__file__).parent
STYLE = (HERE.parent / "report" / "page.css", HERE / "app.css")
PROGRAM = HERE / "app.js"


class Pages:
    """Templates filled in; `base` is where addresses begin."""

    def __init__(self, base: str) -> None:
        self._always = {"base": base, "version": __version__}

    def show(self, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A page made of a template."""
        program, style = own_text(PROGRAM), own_text(*STYLE)
        text = _templates().get_template(name).render(style=style, program=program, **self._always, **values)
        allowed = policy(program, style, "connect-src 'self'; form-action 'self'; frame-ancestors 'none'")
        return HTMLResponse(text, status, headers={"content-security-policy": allowed})

    def message(self, title: str, text: str, *, status: int, back: str = "") -> HTMLResponse:
        """A page with something to say; `back` is where to go from there."""
        return self.show("message.html", status=status, title=title, text=text, back=back)


def sentence(text: str) -> str:
    """An error as it stands on a page: with a capital, unless it begins with the name of a file.

    >>> sentence("fewer than two columns"), sentence("answers.csv is empty."), sentence("'a' and 'b'")
    ('Fewer than two columns', 'answers.csv is empty.', "'a' and 'b'")
    """
    first = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if first.isalpha() else text


@cache
def _templates() -> Any:
    environment = templates(HERE)
    environment.filters["sentence"] = sentence
    environment.filters["thousands"] = lambda number: f"{number:,}"
    return environment
