"""Jobs without a server: what is idle goes, what goes wrong is a page."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from spectral_irt.app.jobs import MOST_JOBS, BusyError, FullError, Jobs
from spectral_irt.app.site import Site


def test_what_nobody_looks_at_any_more_is_removed(tmp_path: Path) -> None:
    async def run() -> None:
        jobs = Jobs(tmp_path, 1e6)
        old, new = jobs.new("old.csv"), jobs.new("new.csv")
        old.touched -= 100
        started = asyncio.Event()

        async def forever() -> None:
            started.set()
            await asyncio.sleep(1000)

        old.start("check", forever)
        await started.wait()
        with pytest.raises(BusyError, match="Wait until that is done, or cancel it"):
            old.start("fit", forever)
        await jobs.close_idle(50)
        assert old.work is None
        assert jobs.all() == [new]
        assert list(tmp_path.iterdir()) == [new.folder]
        assert jobs.find(old.id) is None
        new.touched -= 100
        assert jobs.find(new.id) is new  # a page asks for it
        await jobs.close_idle(50)
        assert jobs.all() == [new]

    asyncio.run(run())


def test_not_more_files_than_can_be_overseen(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, 1e6)
    for k in range(MOST_JOBS):
        jobs.new(f"{k}.csv")
    with pytest.raises(FullError, match="close one of them first"):
        jobs.new("more.csv")


def test_our_own_mistake_is_a_page_without_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path, "token", 8000, 10**6, quit=lambda: None)

    def broken() -> None:
        raise ZeroDivisionError("secret of /home/somebody")

    monkeypatch.setattr(site.jobs, "all", broken)
    status, text = asyncio.run(asked(site.asgi, "/token/"))
    assert status == 500
    assert "Internal error: ZeroDivisionError. This is our mistake" in text
    assert "Traceback" not in text
    assert "secret" not in text


async def asked(asgi: Callable[..., Awaitable[None]], path: str) -> tuple[int, str]:
    """The answer to a GET."""
    heard: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        heard.append(dict(message))

    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "root_path": "", "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8000")], "scheme": "http", "http_version": "1.1", "server": None,
        "client": None,
    }  # fmt: skip
    with pytest.raises(ZeroDivisionError):  # for the log of a developer
        await asgi(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in heard)
    return int(heard[0]["status"]), body.decode()
