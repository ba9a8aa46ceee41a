"""Pages of the app, in the look of the report."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from starlette.responses import HTMLResponse

from spectral_irt import __version__
from spectral_irt.text import size_text

HERE = Path(__file__).parent
STYLE = (HERE.parent / "report" / "page.css", HERE / "app.css")
PROGRAM = HERE / "app.js"


class Pages:
    """Templates filled in; `base` is where addresses begin."""

    def __init__(self, base: str, limit: int) -> None:
        self._always = {"base": base, "limit": limit, "limit_text": size_text(limit), "version": __version__}

    def show(self, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A page made of a template."""
        text = _templates().get_template(name).render(style=_style(), program=_program(), **self._always, **values)
        return HTMLResponse(text, status, headers={"content-security-policy": _policy()})

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
def _style() -> str:
    return "\n".join(path.read_text(encoding="utf-8").strip() for path in STYLE)


@cache
def _program() -> str:
    return PROGRAM.read_text(encoding="utf-8").strip()


@cache
def _policy() -> str:
    style, program = (
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in (_style(), _program())
    )
    return (
        f"default-src 'none'; script-src {program}; style-src {style}; img-src data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )


@cache
def _templates() -> Any:
    import jinja2
    import markupsafe

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["ours"] = markupsafe.Markup  # text that we wrote ourselves
    environment.filters["sentence"] = sentence
    environment.filters["thousands"] = lambda number: f"{number:,}"
    return environment
