"""The server: a socket of this machine alone, a temporary folder, and their end."""

from __future__ import annotations

import asyncio
import errno
import secrets
import signal
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from spectral_irt.app.site import Site
from spectral_irt.errors import OptionError
from spectral_irt.files import reason_of

HERE = "127.0.0.1"
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
PATIENCE = 2  # seconds for requests that are being answered at the end


def serve(*, port: int, browser: bool, say: Callable[[str], None]) -> None:
    """Answer until a signal or the page says to stop; then nothing is left."""
    with listening_socket(port) as listener, temporary_folder() as folder:
        number = listener.getsockname()[1]
        token = secrets.token_urlsafe(24)
        server: Server
        site = Site(folder, token, number, quit=lambda: server.stop())
        config = uvicorn.Config(
            site.asgi, log_config=None, log_level="critical", access_log=False, server_header=False, ws="none",
            http="h11", loop="asyncio", timeout_graceful_shutdown=PATIENCE,
        )  # fmt: skip
        server = Server(config)
        address = f"http://{HERE}:{number}/{token}/"
        say(f"The page is open at {address}")
        say("Ctrl-C closes it. Files stay on this machine, and nothing is kept.")
        if browser:
            threading.Timer(0.5, webbrowser.open, (address,)).start()
        asyncio.run(server.serve(sockets=[listener]))


class Server(uvicorn.Server):
    """A server that a signal ends without more ado: closing the page is how it is meant to end."""

    def stop(self) -> None:
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
        before = {number: signal.signal(number, lambda *_: self.stop()) for number in numbers}
        try:
            yield
        finally:
            for number in before:
                signal.signal(number, signal.SIG_IGN)  # until all is removed


@contextmanager
def listening_socket(port: int) -> Iterator[socket.socket]:
    """A socket for this machine alone, at a port that is free."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        if hasattr(signal, "SIGHUP"):  # elsewhere this would let two programs share a port
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((HERE, port))
        except OSError as error:
            used = error.errno in (errno.EADDRINUSE, getattr(errno, "WSAEADDRINUSE", None))
            why = "is in use by another program" if used else f"cannot be used: {reason_of(error) or error.strerror}"
            raise OptionError(
                f"port {port} {why}. Choose another with `port=`, or leave it out for a free one."
            ) from None
        one.listen(64)
        yield one


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that only this person can read, gone at the end; everything temporary goes there."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="spectral-irt-app-", ignore_cleanup_errors=True) as name:
        tempfile.tempdir = name  # uploads that do not fit into memory wait there too
        try:
            yield Path(name)
        finally:
            tempfile.tempdir = before
