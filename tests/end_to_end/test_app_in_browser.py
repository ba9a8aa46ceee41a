"""The app as a person has it: in a browser, by mouse and keyboard, in two tabs, on any screen."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from app_server import App
from browser import Browser, axe, chromium
from drawn import drawn
from end_to_end.tables import wide
from end_to_end.test_messy_files import LIKERT, MESSY

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="NO CHROMIUM: the app was NOT tested in a browser"),
]
READY = "document.documentElement?.dataset.ready === 'yes' && document.readyState === 'complete'"
REST = f"{READY} && location.pathname.includes('/job/') && !document.querySelector('[data-busy]')"
PATIENCE = 120.0


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser"), network=True) as one:
        yield one


@pytest.fixture
def browser(app: App, chrome: Browser) -> Iterator[Browser]:
    """The browser at the start page; nothing may be complained of, and nothing asked of anybody else."""
    chrome.complaints.clear()
    chrome.requests.clear()
    chrome.look()
    chrome.open(app.address)
    yield chrome
    assert chrome.complaints == []
    assert [url[:200] for url in chrome.requests if not url.startswith((app.address, "data:", "blob:"))] == []


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(6)
    right = drawn(rng, rng.normal(size=(150, 1)) - np.linspace(-1.5, 1.5, 10))
    people = {"student": [f"s{k}" for k in range(150)], "sex": ["f", "m"] * 75, "visits": rng.integers(0, 2, 150)}
    return wide(tmp_path_factory.mktemp("answers") / "answers.csv", right, **people)


def upload(browser: Browser, path: Path) -> None:
    browser.choose_files("#answers", path)
    browser.run("document.querySelector('.drop-form button').click()")


def rest(browser: Browser, also: str = "true") -> str:
    """The words of the page when the work is done."""
    browser.wait(f"{REST} && {also}", PATIENCE)
    return " ".join(browser.run("document.querySelector('main').innerText").split())


def press(browser: Browser, text: str) -> None:
    browser.run(
        f"[...document.querySelectorAll('button, a')].find((e) => e.textContent === {json.dumps(text)}).click()"
    )


def downloaded(browser: Browser, name: str) -> bytes:
    path = browser.folder / name
    browser.until(lambda: path.is_file() and path.stat().st_size, name)
    return path.read_bytes()


@pytest.mark.skipif(axe() is None, reason="NO AXE-CORE: the accessibility of the app was NOT checked")
def test_axe_is_there() -> None:
    assert axe() is not None


def test_from_a_file_to_the_report(browser: Browser, app: App, answers: Path) -> None:
    assert browser.problems() == []
    upload(browser, answers)
    assert "150 people, 11 items, 1,650 answers" in rest(browser, "document.querySelector('.findings') !== null")
    assert browser.problems() == []
    browser.look(dark=True)
    assert browser.problems() == []

    # "visits" holds zeros and ones and is no item: its role is corrected, by keyboard.
    browser.run("document.querySelector('[name=role-2]').focus()")
    browser.press("End", 35)  # the last of the roles
    assert browser.run("document.querySelector('[name=role-2]').value") == "unused"
    press(browser, "Look again with these choices")
    browser.wait(f"{READY} && document.querySelector('[data-busy]') !== null")
    assert "150 people, 10 items, 1,500 answers" in rest(browser, "document.querySelector('.findings') !== null")

    press(browser, "Run the calibration")
    browser.wait(f"{READY} && document.querySelector('#share') !== null")
    assert browser.problems() == []
    page = rest(browser, "document.querySelector('#results') !== null")
    assert "150 people, 10 items" in page
    assert browser.problems() == []
    browser.look(width=390, height=800)
    assert browser.problems() == []
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")  # nothing is cut off on a phone
    browser.look()

    at = browser.run("location.href")
    press(browser, "Workbook")
    assert downloaded(browser, "answers-results.xlsx")[:2] == b"PK"
    press(browser, "Bank")
    assert downloaded(browser, "answers-bank.zip")[:2] == b"PK"
    press(browser, "Tables")
    assert downloaded(browser, "answers-tables.zip")[:2] == b"PK"

    browser.choose_files(".line-form [type=file]", answers)
    press(browser, "Score")
    assert "150 people scored" in rest(browser, "document.body.innerText.includes('people scored')")
    press(browser, "Download the scores")
    assert downloaded(browser, "second_answers-scores.csv").startswith(b"person,")

    browser.open(at + "report.html")
    assert browser.run("document.querySelector('h1').textContent") == "Report: answers.csv"
    assert browser.run("document.querySelectorAll('#table-items tbody tr').length") == 10
    assert browser.problems() == []
    browser.open(at)
    press(browser, "Close this file")
    browser.wait(f"{READY} && document.querySelector('#answers') !== null")
    assert app.job_folders() == []


@pytest.mark.parametrize("kind", ["demographics", "value labels", "key on a second sheet", "words", "title"])
def test_a_messy_file_is_put_right_by_clicks(browser: Browser, kind: str, tmp_path: Path) -> None:
    messy = MESSY[kind]
    messy.make(tmp_path / messy.name)
    upload(browser, tmp_path / messy.name)
    page = rest(browser)
    if kind == "words":  # the message names the option, and there is a field for it
        assert "--recode never,rarely,sometimes,often,always" in page
        assert browser.problems() == []
        browser.run(f"document.querySelector('[name=more]').value = '--recode {','.join(LIKERT)}'")
    elif kind == "demographics":  # 'couple' looks like an item
        assert "240 people, 13 items" in page
        script = """(() => { for (const row of document.querySelectorAll('tbody tr'))
            if (row.querySelector('th').textContent === 'couple') row.querySelector('select').value = 'unused'; })()"""
        browser.run(script)
    elif kind == "key on a second sheet":
        sheets = browser.run("[...document.querySelectorAll('[name=key_sheet] option')].map((o) => o.textContent)")
        assert sheets[1:] == ["Spring", "Answer key"]
        browser.run("document.querySelector('[name=key_sheet]').value = 'Answer key'")
    press(browser, "Look again with these choices")
    browser.wait(f"{READY} && document.querySelector('[data-busy]') !== null")
    assert "240 people, 12 items" in rest(browser, "document.querySelector('.findings') !== null")
    roles = browser.run("[...document.querySelectorAll('tbody select')].map((e) => e.value)")
    assert (roles.count("item"), roles.count("person")) == (12, 1)
    if kind == "words":  # the others are as any file now
        press(browser, "Run the calibration")
        assert "240 people, 12 items" in rest(browser, "document.querySelector('#results') !== null")
    press(browser, "Close this file")
    browser.wait(f"{READY} && document.querySelector('#answers') !== null")


def test_two_tabs_cancel_and_a_closed_tab(browser: Browser, app: App, answers: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("\n".join(answers.read_text(encoding="utf-8").splitlines()[:81]) + "\n", encoding="utf-8")
    upload(browser, answers)
    browser.wait(f"{READY} && location.pathname.includes('/job/')")
    first = browser._session
    second = browser.tab()
    browser.open(app.address)
    upload(browser, other)
    assert "80 people" in rest(browser, "document.querySelector('.findings') !== null")
    press(browser, "Run the calibration")
    browser.wait(f"{READY} && document.querySelector('#working') !== null")
    app.until(app.children)
    press(browser, "Cancel")
    assert "Canceled; nothing came of it." in rest(browser)
    press(browser, "Run the calibration")
    browser.wait(f"{READY} && document.querySelector('#working') !== null")
    assert second != first
    browser.close_tab()  # while it runs

    browser.tab(first)
    assert "150 people" in rest(browser, "document.querySelector('.findings') !== null")
    press(browser, "All files")  # what the closed tab had begun is found again
    browser.wait(f"{READY} && document.querySelector('.jobs') !== null")
    assert "other.csv" in browser.run("document.querySelector('.jobs').innerText")
    press(browser, "other.csv")
    assert "80 people, 11 items" in rest(browser, "document.querySelector('#results') !== null")
    browser.open(app.address)
    for left in (1, 0):
        press(browser, "Close")
        browser.wait(f"{READY} && document.querySelectorAll('.jobs li').length === {left}")
    assert app.job_folders() == []
