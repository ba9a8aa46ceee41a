"""The site without a server: one piece of work at a time, and what goes wrong is a page."""

import asyncio
import json

import pytest

from spectral_irt.app.runs import BusyError, Job
from spectral_irt.app.site import Site


def test_one_piece_of_work_at_a_time_and_nothing_when_closed(tmp_path):
    async def run():
        job = Job(tmp_path, "a.csv")
        started = asyncio.Event()

        async def forever():
            started.set()
            await asyncio.sleep(1000)

        job.start("check", forever)
        await started.wait()
        with pytest.raises(BusyError, match="Wait until that is done, or cancel it"):
            job.start("fit", forever)
        await job.close()
        assert job.work is None
        assert list(tmp_path.iterdir()) == []

    asyncio.run(run())


def test_our_own_mistake_is_a_page_without_traceback(tmp_path, monkeypatch):
    site = Site(tmp_path, "token", 8000, quit=lambda: None)

    class Broken(dict):
        def values(self):
            raise ZeroDivisionError("secret of /home/somebody")

    monkeypatch.setattr(site, "jobs", Broken())
    status, text = asyncio.run(asked(site.asgi, "/token/"))
    assert status == 500
    assert "Internal error: ZeroDivisionError. This is our mistake" in text
    assert "Traceback" not in text
    assert "secret" not in text


async def asked(asgi, path):
    """The answer to a GET."""
    heard = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
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


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), json.JSONDecodeError("x", "y", 0)])
def test_a_mistake_of_ours_is_said_on_the_page(tmp_path, error):
    """Nobody waits for the task: what it does not say, nobody learns."""

    async def fails():
        raise error

    async def work():
        job = Job(tmp_path, "a.csv")
        job.start("check", fails)
        await job._task
        return job

    job = asyncio.run(work())
    assert type(error).__name__ in job.problems["check"]
    assert job.work is None
