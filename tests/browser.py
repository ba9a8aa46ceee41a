"""A headless Chromium, driven through its own protocol over a pipe: no package, no port, no network.

Set up by `make test` (tests/set_up_browser.sh). Where there is no Chromium the tests of pages are skipped, loudly.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

PATIENCE = 60.0  # seconds for anything the browser is asked


def chromium() -> str | None:
    """Where the browser is."""
    named = os.environ.get("SPECTRAL_IRT_CHROMIUM")
    return named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def axe() -> Path | None:
    """Where axe-core is, which `make test` gets from npm."""
    named = os.environ.get("SPECTRAL_IRT_AXE")
    path = Path(named) if named else Path(sys.prefix) / "browser" / "node_modules" / "axe-core" / "axe.min.js"
    return path if path.is_file() else None


class Browser:
    """A browser with one page, and all that the page complains of."""

    def __init__(self, folder: Path, *, network: bool = False) -> None:
        self.folder = folder
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._events: list[dict[str, Any]] = []
        self._number = 0
        self._buffer = b""
        to_read, to_write = os.pipe(), os.pipe()
        switches = "headless=new no-sandbox disable-gpu disable-dev-shm-usage no-first-run disable-component-update"
        switches += " disable-background-networking remote-debugging-pipe"
        profile = f"--user-data-dir={folder / 'profile'}"
        command = [str(chromium()), *(f"--{switch}" for switch in switches.split()), profile, "about:blank"]

        def pipes() -> None:  # in the child: the protocol is spoken on 3 and 4
            read_end, write_end = os.dup(to_write[0]), os.dup(to_read[1])
            os.dup2(read_end, 3)
            os.dup2(write_end, 4)

        self._process = subprocess.Popen(
            command, preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_write[0])
        os.close(to_read[1])
        self._in, self._out = to_read[0], to_write[1]
        self._session: str | None = None
        self.tab()
        if not network:
            self.ask("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0,
                     uploadThroughput=0)  # fmt: skip
        self.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder), eventsEnabled=True)

    def ask(self, method: str, **parameters: Any) -> Any:
        """Send a command and wait for its answer."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            answer = self._next(end - time.monotonic())
            if answer is not None and answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
        raise TimeoutError(method)

    def _next(self, seconds: float) -> dict[str, Any] | None:
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], max(seconds, 0))[0]:
                return None
            part = os.read(self._in, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self._buffer += part
        one, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(one)
        self._hear(message)
        return message

    def _hear(self, message: dict[str, Any]) -> None:
        method, said = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(said["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(said["args"])[:500])
        elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.complaints.append(said["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append(f"dialog: {said['message']}")
            self._number += 1
            close = {"id": self._number, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}
            os.write(self._out, json.dumps({**close, "sessionId": self._session}).encode() + b"\0")
        elif method == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])
        if method:
            self._events.append(message)

    def tab(self, session: str | None = None) -> str:
        """Another tab, or the one of a session; what is asked from now on is about it. Its session."""
        if session is None:
            target = self.ask("Target.createTarget", url="about:blank")["targetId"]
            session = str(self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        self._session = session
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.ask(f"{domain}.enable")
        return session

    def close_tab(self) -> None:
        """Close the tab that is asked now."""
        self.ask("Page.close")

    def choose_files(self, selector: str, *paths: Path) -> None:
        """Choose files in a field of the page, as by its button."""
        root = self.ask("DOM.getDocument")["root"]["nodeId"]
        node = self.ask("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.ask("DOM.setFileInputFiles", nodeId=node, files=[str(path.resolve()) for path in paths])

    def open(self, path: Path | str) -> None:
        """Open a file or an address, and wait until its program has run to its end."""
        self.ask("Page.navigate", url=path if isinstance(path, str) else path.resolve().as_uri())
        self.wait("document.documentElement?.dataset.ready === 'yes' && document.readyState === 'complete'")

    def run(self, program: str) -> Any:
        """The value of an expression in the page."""
        done = self.ask("Runtime.evaluate", expression=program, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(json.dumps(done["exceptionDetails"])[:2000])
        return done["result"].get("value")

    def wait(self, condition: str, seconds: float = PATIENCE) -> None:
        """Until a condition of the page holds; a page that is just leaving is asked again."""

        def holds() -> Any:
            try:
                return self.run(condition)
            except RuntimeError as error:
                if "navigated" in str(error) or "context" in str(error):
                    return False
                raise

        self.until(holds, condition, seconds)

    def until(self, holds: Callable[[], Any], what: str, seconds: float = PATIENCE) -> None:
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                raise TimeoutError(what)
            time.sleep(0.02)

    def look(self, *, dark: bool = False, width: int = 1200, height: int = 900) -> None:
        """As on a screen of this size, in light or dark."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=scheme)

    def press(self, key: str, code: int) -> None:
        """A key of the keyboard."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            more = text if kind == "keyDown" else {}
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    def problems(self) -> list[str]:
        """What axe-core finds serious; nothing where it is not there, which tests say."""
        program = axe()
        if program is None:
            return []
        self.run(program.read_text(encoding="utf-8") + "; true")
        found = self.run("axe.run().then((r) => r.violations.map((v) => [v.impact, v.id, v.nodes[0].html]))")
        return [f"{what}: {where[:200]}" for impact, what, where in found if impact in ("serious", "critical")]

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """A picture of the page, from top to end unless `whole` is not wanted."""
        data = self.ask("Page.captureScreenshot", captureBeyondViewport=whole, format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def print(self, path: Path) -> None:
        """The page as PDF."""
        data = self.ask("Page.printToPDF", printBackground=True, preferCSSPageSize=True, paperWidth=8.27,
                        paperHeight=11.69)["data"]  # fmt: skip
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        for end in (self._out, self._in):
            os.close(end)
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
