"""Take the pictures of the report and of the app that the documentation shows, docs/figures/screenshots/*.png.

`make screenshots` runs it. The quiz that comes with the package goes through the app in a headless Chromium.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # where the browser is driven from

from app_server import App  # noqa: E402
from browser import Browser, chromium  # noqa: E402

TARGET = ROOT / "docs" / "figures" / "screenshots"
LARGEST = 200_000  # bytes
READY = "document.documentElement?.dataset.ready === 'yes' && document.readyState === 'complete'"
REST = f"{READY} && !document.querySelector('[data-busy]')"
PATIENCE = 180.0  # seconds


def take(app: App, browser: Browser) -> None:
    """The app with the quiz; its report; an item of it, opened."""
    browser.look(width=1100, height=820)
    browser.ask("Emulation.setScrollbarsHidden", hidden=True)
    browser.open(app.address)
    picture(browser, "app_start")
    press(browser, "Try it with a quiz")
    browser.wait(f"{REST} && document.querySelector('.findings') !== null", PATIENCE)
    picture(browser, "app_columns")
    press(browser, "Run the calibration")
    browser.wait(f"{REST} && document.querySelector('#results') !== null", PATIENCE)
    picture(browser, "app_results")
    browser.open(browser.run("location.href") + "report.html")
    browser.run("document.querySelector('#findings').scrollIntoView()")
    picture(browser, "report")
    opener = "[...document.querySelectorAll('#table-items tbody button')].find((e) => e.textContent === 'density')"
    browser.run(f"{opener}.click()")
    browser.run("document.querySelector('#table-items .opened').previousElementSibling.scrollIntoView()")
    picture(browser, "report_item")


def press(browser: Browser, text: str) -> None:
    browser.run(f"[...document.querySelectorAll('button')].find((e) => e.textContent === '{text}').click()")


def picture(browser: Browser, name: str) -> None:
    path = TARGET / f"{name}.png"
    browser.picture(path, whole=False)
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}: {size / 1000:.0f} kB")
    if size > LARGEST:
        raise SystemExit(f"{path.name} is larger than {LARGEST / 1000:.0f} kB; take less of the page.")


def main() -> None:
    if chromium() is None:
        raise SystemExit("There is no Chromium; apt-get install chromium, or name it in SPECTRAL_IRT_CHROMIUM.")
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with App(folder / "app") as app, Browser(folder, network=True) as browser:
            take(app, browser)


if __name__ == "__main__":
    main()
