"""`spectral-irt app` as a process of its own, asked over HTTP or in a browser."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import psutil

PATIENCE = 600.0  # seconds for anything that the app is asked


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8")


class App:
    """A server whose temporary files are in `folder`, which has to be empty when it ends."""

    def __init__(self, folder: Path, *options: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        command = [sys.executable, "-m", "spectral_irt", "app", "--no-browser", *options]
        environment = {**os.environ, "TMPDIR": str(folder)}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, text=True, env=environment, **pipes)
        self.address = self.process.stdout.readline().split()[-1]
        parts = urlsplit(self.address)
        self.host, self.port, self.base = parts.netloc, parts.port or 0, parts.path
        self.origin = f"http://{self.host}"
        self.token = self.base.strip("/")

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str | None) -> Answer:
        """A request with these headers (`_` for `-`; None leaves one out); by default those of a page of the app."""
        said = {"Host": self.host, **({"Origin": self.origin} if method == "POST" else {})}
        said |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {**said, "Content-Length": str(len(body))}.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        found = Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        connection.close()
        return found

    def get(self, path: str = "", **headers: str | None) -> Answer:
        return self.ask("GET", path if path.startswith("/") else self.base + path, **headers)

    def post(self, path: str, fields: dict[str, str | tuple[str, bytes]], **headers: str | None) -> Answer:
        """A form, with files as (name, content)."""
        body, kind = form(fields)
        return self.ask("POST", path if path.startswith("/") else self.base + path, body, Content_Type=kind, **headers)

    def upload(self, name: str, content: bytes, **more: str | tuple[str, bytes]) -> str:
        """Upload a file; the address of its page."""
        answer = self.post("upload", {"answers": (name, content), **more})
        assert answer.status == 303, answer.text
        return answer.headers["location"]

    def wait(self, job: str) -> str:
        """The page of a job when its work is done."""
        end = time.monotonic() + PATIENCE
        while json.loads(self.get(job + "status").body)["busy"]:
            assert time.monotonic() < end
            time.sleep(0.1)
        return self.get(job).text

    def children(self) -> list[int]:
        """Processes that the app has started and that are still there."""
        return [child.pid for child in psutil.Process(self.process.pid).children()]

    def until(self, holds: Any, seconds: float = PATIENCE) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.02)

    def files(self) -> list[Path]:
        """What there is on the disk."""
        return [path for path in self.folder.rglob("*") if path.is_file()]

    def job_folders(self) -> list[Path]:
        return [path for top in self.folder.iterdir() for path in top.iterdir() if path.is_dir()]

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """End the app; its exit code, and what it said on stderr."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        _, said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def form(fields: dict[str, str | tuple[str, bytes]]) -> tuple[bytes, str]:
    """A form as a browser sends it."""
    mark = uuid.uuid4().hex
    parts = []
    for name, value in fields.items():
        file, content = ("", value.encode()) if isinstance(value, str) else value
        named = f'; filename="{file}"' if not isinstance(value, str) else ""
        head = f'--{mark}\r\nContent-Disposition: form-data; name="{name}"{named}\r\n'
        kind = "Content-Type: application/octet-stream\r\n" if named else ""
        parts.append(f"{head}{kind}\r\n".encode() + content + b"\r\n")
    return b"".join(parts) + f"--{mark}--\r\n".encode(), f"multipart/form-data; boundary={mark}"


def said_on(page: str) -> str:
    """The words of a page."""
    main = re.search(r"<main.*?</main>", page, re.S)
    assert main is not None
    return " ".join(re.sub(r"<[^>]+>", " ", main[0]).split())
