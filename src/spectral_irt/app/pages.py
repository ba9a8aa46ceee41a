"""Pages of the app, in the look of the report, and who may ask for them: a page of ours in a browser on this machine,
by an address that only the person at it knows.

The address has a random token, so that other programs and pages cannot guess it; the Host must be this machine, so that
no name on the internet can be led here; what changes something must come from a page of ours (Origin).
"""

from __future__ import annotations

import secrets
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse

from spectral_irt import __version__
from spectral_irt.report.page import own_text, policy, templates

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HERE = Path(__file__).parent
STYLE = (HERE.parent / "report" / "page.css", HERE / "app.css")
PROGRAM = HERE / "app.js"
CHANGES = ("POST", "PUT", "PATCH", "DELETE")
HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",  # the address is a secret
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Pages:
    """Templates filled in; `base` is where addresses begin."""

    def __init__(self, base: str) -> None:
        self._always = {"base": base, "version": __version__}

    def show(self, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A page made of a template."""
        program = own_text(PROGRAM)
        style = own_text(*STYLE)
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


class Guard:
    """Lets through what may pass, and refuses the rest with a page that says why."""

    def __init__(self, app: ASGIApp, token: str, port: int, pages: Pages) -> None:
        self._app = app
        self._token = token
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self.refusal(scope)
        if refusal:
            await self._pages.message("Refused", refusal, status=403)(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def refusal(self, scope: Scope) -> str:
        """Why the request may not pass; "" when it may."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return "This page answers only under the address of this machine that the terminal shows."
        token = scope["path"].removeprefix("/").partition("/")[0]
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return "The address lacks its token. Use the whole address that the terminal shows."
        if scope["method"] in CHANGES:
            origins = headers.getlist("origin")
            if origins != [f"http://{hosts[0]}"] or headers.get("sec-fetch-site", "same-origin") != "same-origin":
                return "Another page has sent this. Nothing was done."
        return ""
